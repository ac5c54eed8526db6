/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The link-layer addresses of IPoIB interfaces in what the kernel says of network interfaces.
 *
 * The interface of IPoIB is a TUN device, to which Linux gives no link-layer address. In a node, the files
 * "address" and "broadcast" in /sys/class/net/INTERFACE have the 20 bytes of each
 * (tools/softib/sysfs_net.c). This adds them to what a routing socket says, so that programs find an
 * interface of IPoIB as Linux has it: with both addresses, and able to broadcast (RFC 4391 section 9.1).
 */
#ifndef SOFTIB_LIB_LINKS_H
#define SOFTIB_LIB_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define LINKS_ADDRESS_BYTES 20 /* RFC 4391 section 9.1.1: flags, QPN and GID */
/* Messages of so many bytes grow to less than this. */
#define LINKS_ROOM(bytes) (3 * (bytes))

/** struct link_addresses - of one interface, as its files in sysfs tell them */
struct link_addresses {
	uint8_t own[LINKS_ADDRESS_BYTES], broadcast[LINKS_ADDRESS_BYTES];
};

/**
 * links_complete() - add the addresses to messages of the type RTM_NEWLINK
 * @in: @bytes of netlink messages, aligned to 4; what is malformed is copied as it is
 * @out: LINKS_ROOM(@bytes), aligned to 4
 * @find: the addresses of the interface @name; false: it has none, and its message is copied
 *
 * Changed are messages about interfaces of the hardware type InfiniBand that have no address.
 * Context: any. Return: bytes of @out
 * Spec: rtnetlink(7)
 */
size_t links_complete(const void *in, size_t bytes, void *out,
		      bool (*find)(const char *name, struct link_addresses *addresses));
/**
 * links_receive() - recvmsg(2), with the addresses in what a routing socket receives
 *
 * Other sockets are libc's. Context: any thread. Return: as recvmsg(2), flags MSG_PEEK and
 * MSG_TRUNC included
 */
ssize_t links_receive(int fd, struct msghdr *msg, int flags);

#endif
