/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A relay copies bytes between two stream sockets: that of a program whose connection by SDP was
 * pending (ABI_SDP_PENDING), and a TCP socket, which is used because the peer does not speak SDP.
 */
#ifndef SOFTIB_ACCESS_SDP_RELAY_H
#define SOFTIB_ACCESS_SDP_RELAY_H

#include "access/quota.h"
#include "runtime/posix/rt_posix.h"

/**
 * sdp_relay_begin() - relay until both directions have ended, or one of the sockets fails
 * @all: the list that the relay is added to
 * @of: its descriptors are charged to the node of this session, which it may outlive
 * @program, @tcp: connected sockets; on success, the relay owns them
 * Return: 0; -ENOMEM; -EMFILE
 */
int sdp_relay_begin(struct rt *rt, struct list_head *all, const struct quota_share *of, int program, int tcp);
/** sdp_relay_end_all() - end all relays in the list, and close their sockets */
void sdp_relay_end_all(struct list_head *all);

#endif
