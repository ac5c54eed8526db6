/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Extended reliable connections (IBA v1 annex A14): the connection of two nodes serves many
 * receivers. An initiator's request names a shared receive queue (SRQ) of the target's XRC
 * domain; its receive, its completion queue and its protection domain count for the request.
 *
 *   ib_alloc_xrcd()	an XRC domain: its targets receive into its SRQs alone
 *   ib_create_srq()	with srq_init_attr.xrcd and .cq; the peer needs its srq_num
 *   ib_create_qp()	of type IB_QPT_XRC_TGT, with init_attr.xrcd and no protection domain, or of
 *			type IB_QPT_XRC_INI, as an RC QP without receives; ib_modify_qp() as of RC
 *   ib_post_send()	on an initiator: struct ib_xrc_wr
 *
 * Completions of a target's receives are in the CQ of their SRQ, and their qp is the target.
 */
#ifndef RDMA_IB_XRC_H
#define RDMA_IB_XRC_H

#ifndef RDMA_IB_VERBS_H
#include "rdma/ib_verbs.h"
#endif

#pragma GCC visibility push(default)

/** struct ib_xrc_wr - a send request of an XRC initiator. @atomic.wr is that which is posted; of
 *  SEND requests the other members of @atomic are unused */
struct ib_xrc_wr {
	struct ib_atomic_wr atomic;
	u32 remote_srqn; /* 24 bits; of RDMA requests, too: its protection domain grants them */
};

static inline const struct ib_xrc_wr *xrc_wr(const struct ib_send_wr *wr)
{
	return container_of(wr, struct ib_xrc_wr, atomic.wr);
}

/** ib_alloc_xrcd() - an XRC domain that the client alone uses. Context: any.
 *  Return: the domain; ERR_PTR(-EOPNOTSUPP the device has no XRC, -ENOMEM). Spec: A14.4.1 */
struct ib_xrcd *ib_alloc_xrcd(struct ib_device *device);
/** ib_dealloc_xrcd() - 0; -EBUSY while it has targets or SRQs. Spec: A14.4.1 */
int ib_dealloc_xrcd(struct ib_xrcd *xrcd);

#pragma GCC visibility pop

#endif
