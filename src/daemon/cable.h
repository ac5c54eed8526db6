/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Cables to other softibds: the sockets beneath the protocol of src/cable, and the outlets of the fabric that they
 * serve (docs/CABLES.md). A cable listens or connects. It serves one connection at a time; one that is lost
 * takes the link down, and a cable that connects tries again until it is removed.
 */
#ifndef SOFTIB_DAEMON_CABLE_H
#define SOFTIB_DAEMON_CABLE_H

#include "cable/session.h"
#include "fabric/fabric.h"

#define CABLE_ERROR_BYTES 240

struct cables;

/** struct cable_request - a cable that is to be plugged in */
struct cable_request {
	int node, port;
	bool listens;
	const char *address; /* HOST:PORT with a numeric host, or the absolute path of a Unix socket */
	const uint8_t *key;  /* CABLE_KEY_BYTES; NULL: none. TCP needs one */
};

/** struct cable_status - for those who ask */
struct cable_status {
	int node, port;
	bool listens, has_key, is_ethernet;
	const char *address;
	bool connected;
	const char *far;   /* the name of the port at the other end, as that says itself; "": not connected */
	const char *error; /* why the last connection ended, or was not made; "": nothing to tell */
	uint64_t packets_sent, packets_received, bytes_sent, bytes_received; /* of all connections; bytes of data packets */
	uint64_t waits;	     /* times that a packet had to wait for credits or for the socket */
	uint64_t discarded;  /* packets that arrived, and for which their destinations had no room in time */
	uint64_t malformed, spoofed; /* of Ethernet: frames that were dropped (fabric/frames.h) */
};

/** cables_create() - Return: owned by the caller; NULL no memory
 *  @name: of the fabric; the caller keeps it */
struct cables *cables_create(struct rt *rt, struct fabric *fab, const char *name);
/** cables_destroy() - remove all cables; before fab_destroy() */
void cables_destroy(struct cables *cables);

/** cables_add() - plug a cable in, and listen or begin to connect
 *  @err: on failure a sentence that says what to do
 *  Return: 0; -errno */
int cables_add(struct cables *cables, const struct cable_request *req, char err[CABLE_ERROR_BYTES]);
/** cables_remove() - Return: 0; -ENOENT no such cable at this port */
int cables_remove(struct cables *cables, int node, int port);
/** cables_get() - the cable number @i, from 0. Return: false: there are fewer */
bool cables_get(const struct cables *cables, unsigned int i, struct cable_status *status);

#endif
