/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Addresses of cables that leave the fabric, and sockets that listen at them. */
#ifndef SOFTIB_DAEMON_CABLE_ADDRESS_H
#define SOFTIB_DAEMON_CABLE_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

struct cable_address {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_un un;
	};
	socklen_t len;
};

/** cable_address_parse() - "10.0.0.1:7471", "[::1]:7471", or the absolute path of a Unix socket
 *  Return: false: @text is no address */
bool cable_address_parse(const char *text, struct cable_address *addr);
/** cable_address_is_unix() - is it a path? cable_address_is_loopback() - is it TCP's, of this host itself? */
static inline bool cable_address_is_unix(const struct cable_address *addr)
{
	return addr->sa.sa_family == AF_UNIX;
}
bool cable_address_is_loopback(const struct cable_address *addr);
/** cable_address_socket() - Return: a socket of its family, which does not block; -errno */
int cable_address_socket(const struct cable_address *addr);
/** cable_address_listen() - listen there; a socket file that a killed softibd has left is replaced
 *  @backlog: as that of listen(2). Return: the socket; -errno */
int cable_address_listen(const struct cable_address *addr, int backlog);

#endif
