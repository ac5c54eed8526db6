/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of cables that leave the fabric share: cable.c has the cables, cable_connection.c what one connection of theirs does. */
#ifndef SOFTIB_DAEMON_CABLE_PRIVATE_H
#define SOFTIB_DAEMON_CABLE_PRIVATE_H

#include "cable/held.h"
#include "daemon/cable.h"
#include "daemon/cable_address.h"
#include "runtime/posix/rt_posix.h"

#define CABLE_RX_BYTES (256u << 10)
#define CABLE_AGAIN_NS (500 * NSEC_PER_MSEC) /* until a cable connects, or looks who connects, once more */

struct cable;

/** struct connection - a socket, from accept() or connect() to its end */
struct connection {
	struct list_head node; /* cable.connections */
	struct cable *cable;
	struct cable_session session;
	int fd;
	bool connecting;
	struct rt_io io;
	struct rt_timer handshake;
	struct rt_work flush;
	size_t rx_len;
	uint8_t rx[CABLE_RX_BYTES];
};

struct cable {
	struct list_head node; /* cables.list */
	struct cables *all;
	int index, port; /* of the fabric */
	bool listens, has_key, is_ethernet;
	uint8_t key[CABLE_KEY_BYTES];
	struct fab_frames frames; /* of Ethernet */
	char *address;
	struct cable_address addr;
	struct fab_outlet *outlet;
	int listener;
	struct rt_io listener_io;
	struct rt_timer again;
	struct list_head connections;
	struct connection *active; /* the one whose session is open */
	struct cable_held held;
	char error[CABLE_ERROR_BYTES];
	mono_t quiet_until;
	struct cable_status total; /* its counters, of the connections that are over */
	uint64_t discarded;
};

struct cables {
	struct rt *rt;
	struct fabric *fab;
	const char *name;
	uint64_t instance;
	struct list_head list;
};

extern const struct cable_held_ops cable_held_ops; /* their context is the cable */
extern const struct fab_outlet_ops cable_outlet_ops;

/** connection_begin() - serve a socket
 *  @fd: this function's
 *  @connecting: connect(2) is under way
 *  Return: 0; -ENOMEM */
int connection_begin(struct cable *cable, int fd, bool connecting);
/** connection_end() - close it; if it was the active one, the link goes down. A cable that connects tries again later */
void connection_end(struct connection *conn);
/** connection_is_ours() - is the process at the other end of @fd this user's, or does the cable not depend on that? The folder of
 *  a Unix socket may let others connect, or listen in this user's place */
bool connection_is_ours(const struct cable *cable, int fd);
/** cable_by_key() - what the refusal of another user ends with */
const char *cable_by_key(const struct cable *cable);

#endif
