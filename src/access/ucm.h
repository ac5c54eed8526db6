/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The ucm endpoint: the counterpart of /dev/infiniband/ucmN, by which programs use the CM itself, on the
 * socket "ucm" (abi/session.h, abi/ucm.h). Each connection stands for one open file of an adapter. When it ends, its
 * ids are destroyed, of which the CM tells their peers.
 */
#ifndef SOFTIB_ACCESS_UCM_H
#define SOFTIB_ACCESS_UCM_H

#include "runtime/posix/rt_posix.h"

struct ucm;
struct peer;

/** ucm_create() - listen on @dir/ucm. @dir: NULL: do not listen; peers are passed to ucm_serve()
 *  Return: 0; as listener_create() and ib_register_client() */
int ucm_create(struct rt *rt, const char *dir, struct ucm **out);
void ucm_destroy(struct ucm *ucm);
/** ucm_serve() - begin a session with the peer at @fd (non-blocking), and take ownership of @fd */
void ucm_serve(struct ucm *ucm, int fd, const struct peer *peer);

#endif
