/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The netlink endpoint: the counterpart of a NETLINK_RDMA socket for programs such as iproute2's rdma,
 * on the socket "netlink" (abi/session.h). It answers requests of the client NLDEV about the adapters
 * of the program's node, their ports and the objects of programs. It changes nothing.
 *
 * Spec: <rdma/rdma_netlink.h>
 */
#ifndef SOFTIB_ACCESS_NLDEV_H
#define SOFTIB_ACCESS_NLDEV_H

#include "runtime/posix/rt_posix.h"

struct ib_device;
struct nldev;

/** struct nldev_counters - the counters of each port, as hw_counters of the kernel's drivers
 * @names: @num names; @read: sets @values, @num of them. Return: 0; -errno */
struct nldev_counters {
	unsigned int num; /* at most NLDEV_COUNTERS_MAX */
	const char *const *names;
	int (*read)(void *ctx, const struct ib_device *device, uint32_t port_num, uint64_t *values);
	void *ctx;
};
#define NLDEV_COUNTERS_MAX 32

/** nldev_create() - listen on @dir/netlink. @counters: is copied. Return: 0; as listener_create() */
int nldev_create(struct rt *rt, const char *dir, const struct nldev_counters *counters,
		 struct nldev **out);
void nldev_destroy(struct nldev *nldev);

#endif
