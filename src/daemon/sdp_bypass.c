/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "daemon/sdp_bypass.h"

#include "hca/bypass.h"
#include "ulp/sdp/socket.h"

static void *open_bypass(struct ib_qp *const qp[2], void (*moved)(void *), void (*fold)(void *),
			 void *ctx)
{
	const struct hca_bypass_user user = {.moved = moved, .fold = fold, .ctx = ctx};

	return hca_bypass_open(qp, &user);
}

static void close_bypass(void *bypass)
{
	hca_bypass_close(bypass);
}

static void count_reads(void *bypass, int from, u64 bytes, u32 bytes_of_each)
{
	hca_bypass_count_reads(bypass, from, bytes, bytes_of_each);
}

void daemon_set_sdp_bypass(void)
{
	static const struct sdp_bypass_ops ops = {
		.open = open_bypass, .close = close_bypass, .count_reads = count_reads};

	sdp_set_bypass(&ops);
}
