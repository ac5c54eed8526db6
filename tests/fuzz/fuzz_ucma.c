/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What two programs may say to the rdma_cm device file (two_programs.h), with a subnet administrator on
 * n0. Nothing may be left when both programs have gone.
 */
#include "../unit/core/rdma_cm_net.h"
#include "abi/cm_event.h"
#include "access/ucma.h"
#include "two_programs.h"

static struct ucma *ucma;

static void start(void)
{
	if (!rt && rt_posix_create(&rt))
		abort();
	net = net_create_on(rt, 3);
	net->packet_ns = 0;
	if (ib_sa_init(rt) || ib_cm_init(rt) || rdma_cm_init(rt) || rdma_cm_set_hosts(rt, &hosts) ||
	    ucma_create(rt, NULL, &ucma))
		abort();
	sa = fake_sa_open(net->node[0]);
}

static int count(struct rdma_cm_id *id, void *ctx)
{
	return 1;
}

static void end(void)
{
	if (rdma_id_for_each(rt, count, NULL))
		abort();
	ucma_destroy(ucma);
	rdma_cm_set_hosts(rt, NULL);
	rdma_cm_cleanup(rt);
	ib_cm_cleanup(rt);
	ib_sa_cleanup(rt);
	fake_sa_close(sa);
	while (net->under_way) /* by the clock, on a busy machine for long */
		turn(1);
	if (net_take_down(net))
		abort();
}

static void serve(int fd, const struct peer *peer)
{
	ucma_serve(ucma, fd, peer);
}

/* Does the message end with a command that is told? Only ABI_CM_TAKEN may be followed by others. */
static bool is_answered(const uint8_t *bytes, size_t len)
{
	struct rdma_ucm_cmd_hdr hdr;

	for (int i = 0; i < ABI_CM_TOLD_MAX && len >= sizeof(hdr); i++) {
		memcpy(&hdr, bytes, sizeof(hdr));
		if (!(hdr.cmd & ABI_CM_TOLD) || hdr.in % 8 || hdr.in > len - sizeof(hdr))
			return true;
		bytes += sizeof(hdr) + hdr.in;
		len -= sizeof(hdr) + hdr.in;
		if (hdr.cmd != (ABI_CM_TAKEN | ABI_CM_TOLD))
			return len;
		if (!len)
			return false;
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	start();
	two_programs(ABI_OPEN_RDMA_CM, data, size);
	end();
	return 0;
}
