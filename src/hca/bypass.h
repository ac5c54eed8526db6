/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A protocol in softibd may let programs exchange the bytes of a connection by shared memory, as
 * they do through windows (docs/WINDOWS.md). This interface says whether a connection may bypass
 * the fabric, and adds what bypassed it to the counters of the ports. */
#ifndef SOFTIB_HCA_BYPASS_H
#define SOFTIB_HCA_BYPASS_H

#include "rdma/ib_verbs.h"

struct hca_bypass;

/** struct hca_bypass_user - the callbacks of a protocol, as those of struct fab_way_user
 *  @moved: called at most once; nothing that is exchanged afterwards may bypass the fabric
 *  @fold: called before the counters are read; the protocol calls hca_bypass_count_reads() */
struct hca_bypass_user {
	void (*moved)(void *ctx);
	void (*fold)(void *ctx);
	void *ctx;
};

/** hca_bypass_open() - let two RC QPs in RTS bypass the fabric
 *  Return: NULL: they are not connected to each other; a link, a fault rule or a capture requires
 *  that packets be sent; or there is no memory */
struct hca_bypass *hca_bypass_open(struct ib_qp *const qp[2], const struct hca_bypass_user *user);
void hca_bypass_close(struct hca_bypass *bypass);
/** hca_bypass_count_reads() - count RDMA READs of memory at QP @from by its peer: @bytes in total, in
 *  requests for @bytes_of_each */
void hca_bypass_count_reads(struct hca_bypass *bypass, int from, u64 bytes, u32 bytes_of_each);

#endif
