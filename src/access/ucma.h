/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The rdma_cm endpoint: the counterpart of /dev/infiniband/rdma_cm, on the socket "rdma_cm"
 * (abi/session.h). Each connection stands for one open file. When it ends, its ids are destroyed, which
 * disconnects their peers.
 */
#ifndef SOFTIB_ACCESS_UCMA_H
#define SOFTIB_ACCESS_UCMA_H

#include "runtime/posix/rt_posix.h"

struct ucma;
struct peer;

/** ucma_create() - listen on @dir/rdma_cm. @dir: NULL: do not listen; peers are passed to ucma_serve()
 *  Return: 0; as listener_create() */
int ucma_create(struct rt *rt, const char *dir, struct ucma **out);
void ucma_destroy(struct ucma *ucma);
/** ucma_serve() - begin a session with the peer at @fd (non-blocking), and take ownership of @fd */
void ucma_serve(struct ucma *ucma, int fd, const struct peer *peer);

#endif
