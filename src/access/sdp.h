/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The "sdp" endpoint: sockets of programs that run under libsdp. abi/sdp.h defines the messages. */
#ifndef SOFTIB_ACCESS_SDP_H
#define SOFTIB_ACCESS_SDP_H

#include "access/listener.h"

struct sdp_endpoint;

/** sdp_endpoint_create() - listen on @dir/sdp. @dir: NULL: do not listen; peers are passed to
 *  sdp_endpoint_serve(). Return: 0; as listener_create() */
int sdp_endpoint_create(struct rt *rt, const char *dir, struct sdp_endpoint **out);
/** sdp_endpoint_destroy() - end all sockets and connections */
void sdp_endpoint_destroy(struct sdp_endpoint *endpoint);
/** sdp_endpoint_serve() - begin a session with the peer at @fd (non-blocking), and take ownership of
 *  @fd */
void sdp_endpoint_serve(struct sdp_endpoint *endpoint, int fd, const struct peer *peer);

#endif
