/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reliable datagrams (IBA v1 9.7, 10.2.6, 11.2.7): one RD QP exchanges messages with any number of
 * others, as a UD QP does, and none is lost or comes twice, as on RC. What travels between two
 * ports goes over a connection whose ends are EE contexts; each send request names the EE context
 * and the RD QP at its other end. A message is as long as on RC, and may be an RDMA request.
 *
 *   ib_alloc_rdd()	an RD domain: RD QPs use its EE contexts alone
 *   ib_create_eec()	one end of a connection; ib_modify_eec() takes it to RTS, as an RC QP
 *   ib_create_qp()	of type IB_QPT_RD, with init_attr.rdd; its modify needs Q_Key and access
 *			rights alone, since port, path and PSNs belong to EE contexts
 *   ib_post_send()	struct ib_rd_wr; of the completion of a receive, src_qp is the sender, and
 *			eec_num the EE context that the message came by
 *
 * An EE context carries one message at a time; RD QPs that use it take turns. If a message fails,
 * the send queue of its RD QP goes to SQE, and the EE context goes on; if the peer does not answer,
 * the EE context goes to ERR. A message for which the peer has no receive is suspended, and delays
 * only those of its own RD QP; the EE context's rnr_retry says how often it is tried again.
 *
 * In SQD an RD QP ends the message that it has begun and begins none; an EE context does so for all
 * RD QPs, whose requests wait. An EE context may have an alternate path, as an RC QP (17.2.8).
 */
#ifndef RDMA_IB_RD_H
#define RDMA_IB_RD_H

#ifndef RDMA_IB_VERBS_H
#include "rdma/ib_verbs.h"
#endif

#pragma GCC visibility push(default)

/** struct ib_eec - an EE context. @qp: the core's record of its attributes, and its connection
 *  in the driver; clients use @eec_num, @rdd and the functions below */
struct ib_eec {
	struct ib_rdd *rdd;
	u32 eec_num; /* what the peer's ib_modify_eec() names as dest_qp_num */
	struct ib_qp *qp;
};

/** struct ib_rd_wr - a send request of an RD QP. @atomic.wr is that which is posted; of SEND
 *  requests the other members of @atomic are unused */
struct ib_rd_wr {
	struct ib_atomic_wr atomic;
	struct ib_eec *eec;
	u32 remote_qpn;
	u32 remote_qkey; /* with its high bit set: that of the QP (10.2.5) */
};

static inline const struct ib_rd_wr *rd_wr(const struct ib_send_wr *wr)
{
	return container_of(wr, struct ib_rd_wr, atomic.wr);
}

/** ib_alloc_rdd() - Return: the domain; ERR_PTR(-EOPNOTSUPP the device has no RD, -ENOMEM).
 *  Spec: 11.2.1.7 */
struct ib_rdd *ib_alloc_rdd(struct ib_device *device);
/** ib_dealloc_rdd() - 0; -EBUSY while a QP or an EE context is in it. Spec: 11.2.1.8 */
int ib_dealloc_rdd(struct ib_rdd *rdd);

/**
 * ib_create_eec() - an EE context in RESET
 * @event_handler, @context: for its asynchronous events, as of a QP; may be NULL
 * Context: may sleep. Return: ERR_PTR(-ENOMEM, -EOPNOTSUPP). Spec: 11.2.7.1
 */
struct ib_eec *ib_create_eec_(struct ib_rdd *rdd,
			      void (*event_handler)(struct ib_event *event, void *context),
			      void *context, const char *client);
#define ib_create_eec(rdd, event_handler, context)                                                 \
	ib_create_eec_(rdd, event_handler, context, SOFTIB_CLIENT_NAME)
/**
 * ib_modify_eec() - attributes and state, as ib_modify_qp() of an RC QP
 *
 * RESET to INIT needs IB_QP_PKEY_INDEX and IB_QP_PORT; INIT to RTR the attributes of an RC QP, of
 * which dest_qp_num is the number of the peer's EE context; RTR to RTS those of an RC QP.
 * Return: 0; -EINVAL. Spec: 11.2.7.2
 */
int ib_modify_eec(struct ib_eec *eec, struct ib_qp_attr *attr, int mask);
/** ib_query_eec() - attributes and the true state. Spec: 11.2.7.3 */
int ib_query_eec(struct ib_eec *eec, struct ib_qp_attr *attr, int mask);
/** ib_destroy_eec() - requests that name it fail with IB_WC_INV_EECN_ERR. Spec: 11.2.7.4 */
void ib_destroy_eec(struct ib_eec *eec);

#pragma GCC visibility pop

#endif
