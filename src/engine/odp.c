/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * On-demand paging: which requests may use a region of IBV_ACCESS_ON_DEMAND. The engine itself can
 * serve all of them. An adapter profile may leave capabilities out (ibv_query_device_ex(3), odp_caps and
 * xrc_odp_caps). A request that needs one of these fails as if its key gave no access, because on the
 * adapter nobody would resolve its page faults. An RDMA request needs its capability at both ends.
 * There are no capabilities for raw packet QPs and RD, whose requests may use any region.
 */
#include "engine/private.h"

#define RECEIVES (IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV)
#define DATAGRAM (IBV_ODP_SUPPORT_SEND | RECEIVES)
#define UNRELIABLE (DATAGRAM | IBV_ODP_SUPPORT_WRITE)
#define RELIABLE (UNRELIABLE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC)

void eng_odp_init(struct engine *e, const struct eng_odp *odp)
{
	if (!odp)
		return;
	e->odp = *odp;
	e->odp_is_limited = RELIABLE & ~odp->rc || UNRELIABLE & ~odp->uc ||
			    DATAGRAM & ~odp->ud || RELIABLE & ~odp->xrc;
}

/* the capabilities of the QP's transport */
static uint32_t has(const struct eng_qp *qp)
{
	const struct eng_odp *odp = &qp->engine->odp;

	switch (qp->init.type) {
	case IBV_QPT_RC:
		return odp->rc;
	case IBV_QPT_UC:
		return odp->uc;
	case IBV_QPT_UD:
		return odp->ud;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return odp->xrc;
	default:
		return UINT32_MAX;
	}
}

/* the capability that a request of the peer needs for @access. None is asked of a FLUSH: the
 * verbs of Debian 12 have no name for it, so no profile could grant it */
static uint32_t needed_by_peer(int access)
{
	return access & IBV_ACCESS_REMOTE_WRITE  ? IBV_ODP_SUPPORT_WRITE :
	       access & IBV_ACCESS_REMOTE_READ	 ? IBV_ODP_SUPPORT_READ :
	       access & IBV_ACCESS_REMOTE_ATOMIC ? IBV_ODP_SUPPORT_ATOMIC :
						   0;
}

static uint32_t needed(const struct eng_qp *qp, int access, enum tp_key whose)
{
	bool has_srq = qp->init.srq || eng_is_xrc_target(qp);

	switch (whose) {
	case TP_KEY_WRITE:
		return IBV_ODP_SUPPORT_WRITE;
	case TP_KEY_READ:
		return IBV_ODP_SUPPORT_READ;
	case TP_KEY_ATOMIC:
		return IBV_ODP_SUPPORT_ATOMIC;
	case TP_KEY_RECEIVE:
		return has_srq ? IBV_ODP_SUPPORT_SRQ_RECV : IBV_ODP_SUPPORT_RECV;
	case TP_KEY_REMOTE:
		return needed_by_peer(access);
	default:
		return IBV_ODP_SUPPORT_SEND;
	}
}

bool eng_odp_serves(const struct eng_qp *qp, const struct eng_mr *mr, int access,
		    enum tp_key whose)
{
	return likely(!eng_odp_depends(qp->engine, mr)) ||
	       !(needed(qp, access, whose) & ~has(qp));
}
