/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The "umad" endpoint: the counterpart of /dev/infiniband/umadN and issmN.
 * src/abi/session.h defines its messages; their meaning is that of the kernel's
 * "Userspace MAD access". It serves every device that is registered with the core.
 */
#ifndef SOFTIB_ACCESS_UMAD_H
#define SOFTIB_ACCESS_UMAD_H

#include "access/listener.h"

struct umad;

/**
 * umad_create() - register with the core and listen on @dir/umad
 * @dir: NULL: do not listen; peers are passed to umad_serve()
 * Return: 0; as listener_create()
 */
int umad_create(struct rt *rt, const char *dir, struct umad **umad);
void umad_destroy(struct umad *umad);
/** umad_serve() - begin a session with the peer at @fd (non-blocking), and take ownership of @fd */
void umad_serve(struct umad *umad, int fd, const struct peer *peer);
/** umad_num_sessions() - Return: the number of connections */
unsigned int umad_num_sessions(const struct umad *umad);

#endif
