/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* For protocols in softibd whose bytes programs exchange by shared memory, as those of windows
 * (docs/WINDOWS.md): may they, and what the ports count of it. */
#ifndef SOFTIB_HCA_BYPASS_H
#define SOFTIB_HCA_BYPASS_H

#include "rdma/ib_verbs.h"

struct hca_bypass;

/** struct hca_bypass_user - as struct fab_way_user. @moved: called at most once; nothing that is
 *  exchanged afterwards may bypass the fabric. @fold: call hca_bypass_count_reads() now */
struct hca_bypass_user {
	void (*moved)(void *ctx);
	void (*fold)(void *ctx);
	void *ctx;
};

/** hca_bypass_open() - @qp: two RC QPs in RTS. Return: NULL: they are not connected to each
 *  other, or a link, fault rule or capture demands that packets be sent; no memory */
struct hca_bypass *hca_bypass_open(struct ib_qp *const qp[2], const struct hca_bypass_user *user);
void hca_bypass_close(struct hca_bypass *bypass);
/** hca_bypass_count_reads() - the memory at QP @from was read by the other one: @bytes, in
 *  requests for @bytes_of_each */
void hca_bypass_count_reads(struct hca_bypass *bypass, int from, u64 bytes, u32 bytes_of_each);

#endif
