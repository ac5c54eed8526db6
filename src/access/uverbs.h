/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The "uverbs" endpoint: the counterpart of /dev/infiniband/uverbsN (abi/session.h defines the
 * messages). It serves every device that is registered with the core, now or later.
 */
#ifndef SOFTIB_ACCESS_UVERBS_H
#define SOFTIB_ACCESS_UVERBS_H

#include "access/listener.h"

struct uverbs;

/**
 * uverbs_create() - register with the core and listen on @dir/uverbs
 * @dir: NULL: do not listen; peers are passed to uverbs_serve()
 * Return: 0; as listener_create()
 */
int uverbs_create(struct rt *rt, const char *dir, struct uverbs **uverbs);
/** uverbs_destroy() - close all sessions, and unregister from the core */
void uverbs_destroy(struct uverbs *uverbs);

/** uverbs_serve() - begin a session with the peer at @fd (non-blocking), and take ownership of @fd */
void uverbs_serve(struct uverbs *uverbs, int fd, const struct peer *peer);
/** uverbs_num_sessions() - Return: the number of connections */
unsigned int uverbs_num_sessions(const struct uverbs *uverbs);

/**
 * uverbs_enforce_memlock() - from now on, limit memory regions by RLIMIT_MEMLOCK
 *
 * softib pins no pages, so memory regions are not limited by default. With the limit, a registration
 * fails with -ENOMEM where it would fail in the kernel: the limit applies to the whole process, a page
 * counts once for each region that includes it, and a process with CAP_IPC_LOCK is exempt.
 * Source: Documentation/infiniband/user_verbs.rst, "Memory pinning"
 */
void uverbs_enforce_memlock(struct uverbs *uverbs);

/**
 * uverbs_demand_net_raw() - from now on, creating raw packet QPs and flow steering rules fails with
 * -EPERM for programs without CAP_NET_RAW, as in the kernel
 * (drivers/infiniband/core/uverbs_cmd.c)
 */
void uverbs_demand_net_raw(struct uverbs *uverbs);

#endif
