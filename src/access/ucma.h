/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The rdma_cm endpoint: what /dev/infiniband/rdma_cm is to programs, on the socket
 * "rdma_cm" (abi/session.h). Each connection is one opening of the file; when it ends,
 * its ids are destroyed and their peers are told.
 */
#ifndef SOFTIB_ACCESS_UCMA_H
#define SOFTIB_ACCESS_UCMA_H

#include "runtime/posix/rt_posix.h"

struct ucma;
struct peer;

/** ucma_create() - @dir: the runtime directory; NULL: no socket, for tests. 0; -errno */
int ucma_create(struct rt *rt, const char *dir, struct ucma **out);
void ucma_destroy(struct ucma *ucma);
/** ucma_serve() - @fd is a connected socket, and now the endpoint's */
void ucma_serve(struct ucma *ucma, int fd, const struct peer *peer);

#endif
