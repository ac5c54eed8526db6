/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What two programs may say to the ucm device file (two_programs.h). The CM has no id of theirs, and the devices no
 * object, when both programs have gone.
 */
#include "../unit/core/mad_net.h"
#include "access/ucm.h"
#include "rdma/ib_cm.h"
#include "two_programs.h"

static struct net *net;
static struct ucm *ucm;

static void start(void)
{
	if (!rt && rt_posix_create(&rt))
		abort();
	net = net_create_on(rt, 3);
	net->packet_ns = 0;
	if (ib_sa_init(rt) || ib_cm_init(rt) || ucm_create(rt, NULL, &ucm))
		abort();
}

static void end(void)
{
	for (int i = 0; i < 3; i++)
		if (rdma_restrack_count(&net->node[i]->ib, RDMA_RESTRACK_CM_ID))
			abort();
	ucm_destroy(ucm);
	ib_cm_cleanup(rt);
	ib_sa_cleanup(rt);
	while (net->under_way) /* by the clock, on a busy machine for long */
		turn(1);
	if (net_take_down(net))
		abort();
}

static void serve(int fd, const struct peer *peer)
{
	ucm_serve(ucm, fd, peer);
}

static bool is_answered(const uint8_t *bytes, size_t len)
{
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	start();
	two_programs(ABI_OPEN_UCM, data, size);
	end();
	return 0;
}
