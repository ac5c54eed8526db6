/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The "uverbs" endpoint: what /dev/infiniband/uverbsN is to a program
 * (src/abi/session.h says what is spoken). It serves every device that is
 * registered with the core, now or later.
 */
#ifndef SOFTIB_ACCESS_UVERBS_H
#define SOFTIB_ACCESS_UVERBS_H

#include "access/listener.h"

struct uverbs;

/**
 * uverbs_create() - register with the core and listen on @dir/uverbs
 * @dir: NULL: do not listen; uverbs_serve() brings the peers
 * Return: 0; as listener_create()
 */
int uverbs_create(struct rt *rt, const char *dir, struct uverbs **uverbs);
/** uverbs_destroy() - close all sessions, unregister */
void uverbs_destroy(struct uverbs *uverbs);

/** uverbs_serve() - a session with the peer at @fd (non-blocking), which is
 *  the endpoint's from now on */
void uverbs_serve(struct uverbs *uverbs, int fd, const struct peer *peer);
/** uverbs_num_sessions() - open connections */
unsigned int uverbs_num_sessions(const struct uverbs *uverbs);

/**
 * uverbs_enforce_memlock() - hold programs to their RLIMIT_MEMLOCK from now on
 *
 * softib pins no page, so memory regions are not limited unless this is asked
 * for. Then a registration fails with -ENOMEM where the kernel's would: the
 * limit binds the whole process, a page counts once for each region that it
 * is part of, and a process with CAP_IPC_LOCK is exempt.
 * Source: Documentation/infiniband/user_verbs.rst, "Memory pinning"
 */
void uverbs_enforce_memlock(struct uverbs *uverbs);

/**
 * uverbs_demand_net_raw() - only programs with CAP_NET_RAW have raw packet QPs and rules of
 * flow steering from now on; for others both fail with -EPERM, as in the kernel
 * (drivers/infiniband/core/uverbs_cmd.c)
 */
void uverbs_demand_net_raw(struct uverbs *uverbs);

#endif
