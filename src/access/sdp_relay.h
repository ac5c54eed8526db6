/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Carries bytes between two stream sockets: the program's, which waited for a connection by SDP,
 * and a TCP socket, because the peer turned out to have no SDP (ABI_SDP_PENDING).
 */
#ifndef SOFTIB_ACCESS_SDP_RELAY_H
#define SOFTIB_ACCESS_SDP_RELAY_H

#include "runtime/posix/rt_posix.h"

/**
 * sdp_relay_begin() - until both directions have ended, or one of the sockets fails
 * @all: the list that it joins
 * @program, @tcp: sockets that are connected; the relay's from now on, if there is one
 * Return: 0; -ENOMEM
 */
int sdp_relay_begin(struct rt *rt, struct list_head *all, int program, int tcp);
/** sdp_relay_end_all() - end those of the list */
void sdp_relay_end_all(struct list_head *all);

#endif
