/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A device without an adapter: it makes objects, counts them, and answers
 * from a few variables, so that a test sees what the core asked of it.
 */
#ifndef SOFTIB_TESTS_FAKE_DEVICE_H
#define SOFTIB_TESTS_FAKE_DEVICE_H

#include <fcntl.h>
#include <unistd.h>

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi/session.h"
#include "rdma/ib_verbs.h"
#include "runtime/rt.h"

#define FAKE_MANY (1 << 20) /* objects of a type */
#define FAKE_GIDS 4
#define FAKE_PKEYS 4

struct fake {
	struct ib_device ib;
	int live;	   /* objects, contexts included */
	int modified;	   /* modify_qp calls that came through */
	int refuse_modify; /* what modify_qp returns */
	int busy;	   /* so often quiesce() says that packets are queued */
	u32 next_qpn, next_key;
	int reserved; /* numbers of QPs */
	struct ib_port_attr port;
	union ib_gid gid[FAKE_GIDS];
	u16 pkey[FAKE_PKEYS];
	/* --- of the last map_mr, or stage_mr: --- */
	int maps, refuse_map; /* maps, unmaps not counted; what it returns */
	int unmaps;
	struct ib_pages pages; /* its list is not kept */
	u64 first_page, last_page;
	bool bound; /* what mr_is_bound() says */
	/* --- of the last introduce(): --- */
	struct ib_ucontext *introduced_to;
	int introduced; /* the socket, the test's to close */
	int refuse_introduce; /* what it returns */
};

struct fake_ucontext {
	struct ib_ucontext ib;
	int fds[ABI_CONTEXT_FDS];
	struct abi_context_resp resp;
};

static inline struct fake *fake_of(struct ib_device *device)
{
	return container_of(device, struct fake, ib);
}

static inline int fake_query_device(struct ib_device *device, struct ib_device_attr *attr)
{
	*attr = (struct ib_device_attr){
		.fw_ver = "1.2.3", .max_mr_size = UINT64_MAX, .vendor_part_id = 7, .max_qp = 64,
		.max_inline_data = 512, .max_inline_data_ud = 512, .qp_types = UINT32_MAX,
		.device_cap_flags = IB_DEVICE_SRQ_RESIZE | IB_DEVICE_XRC |
				    IB_DEVICE_MEM_WINDOW | IB_DEVICE_MEM_WINDOW_TYPE_2B,
		.atomic_cap = IB_ATOMIC_HCA,
		.max_qp_wr = 128, .max_send_sge = 4, .max_recv_sge = 4, .max_cqe = 1000,
		.max_qp_rd_atom = 8, .max_qp_init_rd_atom = 6, .max_mcast_grp = 3,
		.max_mcast_qp_attach = 2, .max_total_mcast_qp_attach = 5, .max_res_rd_atom = 12,
		.max_srq_wr = 100, .max_srq_sge = 4, .max_pkeys = FAKE_PKEYS,
		.odp_caps = {.general_caps = IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT,
			     .per_transport_caps = {1, 2, 3, 4}},
		.hca_core_clock_khz = 156250,
		.min_rate_limit = 10, .max_rate_limit = 1000,
		.max_dm_size = 4096,
		.max_pd = FAKE_MANY, .max_cq = FAKE_MANY, .max_mr = FAKE_MANY,
		.max_fmr = FAKE_MANY, .max_map_per_fmr = 3, .max_fast_reg_page_list_len = 16,
		.max_srq = FAKE_MANY, .max_ah = FAKE_MANY, .max_mw = FAKE_MANY,
	};
	return 0;
}

static inline int fake_query_port(struct ib_device *device, u32 port_num,
				  struct ib_port_attr *attr)
{
	*attr = fake_of(device)->port;
	if (!attr->link_layer)
		attr->link_layer = IB_LINK_LAYER_INFINIBAND;
	attr->gid_tbl_len = FAKE_GIDS;
	attr->pkey_tbl_len = FAKE_PKEYS;
	return 0;
}

/* of Ethernet: only GIDs that begin with 0xfe are anybody's */
static inline int fake_find_station(struct ib_device *device, u32 port_num, unsigned int sgid_index,
				   const union ib_gid *gid, u16 *station)
{
	*station = gid->raw[15];
	return gid->raw[0] == 0xfe ? 0 : -EHOSTUNREACH;
}

static inline int fake_query_gid(struct ib_device *device, u32 port_num, int index,
				 union ib_gid *gid)
{
	if (index >= FAKE_GIDS)
		return -EINVAL;
	*gid = fake_of(device)->gid[index];
	gid->raw[15] = (u8)port_num;
	return 0;
}

static inline int fake_query_pkey(struct ib_device *device, u32 port_num, u16 index, u16 *pkey)
{
	if (index >= FAKE_PKEYS)
		return -EINVAL;
	*pkey = fake_of(device)->pkey[index];
	return 0;
}

/* one maker and one destroyer per type: zeroed memory, counted */
#define FAKE_NEW(device_, type)                                                \
	({                                                                     \
		type *o_ = rt_zalloc(sizeof(type));                            \
		if (o_)                                                        \
			fake_of(device_)->live++;                              \
		o_ ? o_ : ERR_PTR(-ENOMEM);                                    \
	})
#define FAKE_FREE(device_, o)                                                  \
	do {                                                                   \
		fake_of(device_)->live--;                                      \
		rt_free(o);                                                    \
	} while (0)

static inline struct ib_ucontext *fake_alloc_ucontext(struct ib_device *device)
{
	struct fake_ucontext *c = FAKE_NEW(device, struct fake_ucontext);

	if (IS_ERR(c))
		return (void *)c;
	for (int i = 0; i < ABI_FD_ASYNC_READ; i++)
		c->fds[i] = eventfd(0, EFD_CLOEXEC);
	for (int i = ABI_FD_LANES; i < ABI_CONTEXT_FDS; i++)
		c->fds[i] = eventfd(0, EFD_CLOEXEC);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, &c->fds[ABI_FD_ASYNC_READ]) ||
	    c->fds[0] < 0) {
		for (int i = 0; i < ABI_FD_ASYNC_READ; i++)
			close(c->fds[i]);
		FAKE_FREE(device, c);
		return ERR_PTR(-EMFILE);
	}
	c->resp.num_ports = device->phys_port_cnt;
	c->ib.driver_resp = &c->resp;
	c->ib.driver_resp_bytes = sizeof(c->resp);
	c->ib.driver_fds = c->fds;
	c->ib.num_driver_fds = ABI_CONTEXT_FDS;
	return &c->ib;
}

static inline void fake_dealloc_ucontext(struct ib_ucontext *context)
{
	struct fake_ucontext *c = container_of(context, struct fake_ucontext, ib);

	for (int i = 0; i < ABI_CONTEXT_FDS; i++)
		close(c->fds[i]);
	FAKE_FREE(context->device, c);
}

static inline int fake_introduce(struct ib_ucontext *to, int fd)
{
	struct fake *fake = fake_of(to->device);

	if (fake->refuse_introduce)
		return fake->refuse_introduce;
	fake->introduced_to = to;
	fake->introduced = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return 0;
}

static inline struct ib_pd *fake_alloc_pd(struct ib_device *device, struct ib_udata *udata)
{
	return FAKE_NEW(device, struct ib_pd);
}

static inline void fake_dealloc_pd(struct ib_pd *pd)
{
	FAKE_FREE(pd->device, pd);
}

static inline struct ib_ah *fake_create_ah(struct ib_pd *pd, const struct rdma_ah_attr *attr,
					   struct ib_udata *udata)
{
	return FAKE_NEW(pd->device, struct ib_ah);
}

static inline void fake_destroy_ah(struct ib_ah *ah)
{
	FAKE_FREE(ah->device, ah);
}

static inline struct ib_cq *fake_create_cq(struct ib_device *device,
					   const struct ib_cq_init_attr *attr,
					   struct ib_udata *udata)
{
	struct ib_cq *cq = FAKE_NEW(device, struct ib_cq);

	if (!IS_ERR(cq))
		cq->cqe = (int)attr->cqe;
	return cq;
}

static inline int fake_resize_cq(struct ib_cq *cq, int cqe)
{
	cq->cqe = cqe;
	return 0;
}

static inline int fake_modify_cq(struct ib_cq *cq, u16 cq_count, u16 cq_period)
{
	return cq_count == 7 && cq_period == 9 ? 0 : -EIO;
}

static inline void fake_destroy_cq(struct ib_cq *cq)
{
	FAKE_FREE(cq->device, cq);
}

static inline int fake_poll_cq(struct ib_cq *cq, int n, struct ib_wc *wc)
{
	return 0;
}

static inline int fake_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	return 0;
}

static inline struct ib_srq *fake_create_srq(struct ib_pd *pd, struct ib_srq_init_attr *attr,
					     struct ib_udata *udata)
{
	return FAKE_NEW(pd->device, struct ib_srq);
}

static inline int fake_modify_srq(struct ib_srq *srq, struct ib_srq_attr *attr, int mask)
{
	return 0;
}

static inline int fake_query_srq(struct ib_srq *srq, struct ib_srq_attr *attr)
{
	*attr = (struct ib_srq_attr){.max_wr = 10, .max_sge = 2, .srq_limit = 1};
	return 0;
}

static inline void fake_destroy_srq(struct ib_srq *srq)
{
	FAKE_FREE(srq->device, srq);
}

static inline struct ib_qp *fake_create_qp(struct ib_pd *pd, struct ib_qp_init_attr *attr,
					   struct ib_udata *udata)
{
	struct ib_device *device = pd	     ? pd->device :
				   attr->rdd ? attr->rdd->device :
					       attr->xrcd->device;
	struct ib_qp *qp = FAKE_NEW(device, struct ib_qp);

	if (!IS_ERR(qp))
		qp->qp_num = udata && udata->qpn ? udata->qpn : 0x100 + fake_of(device)->next_qpn++;
	return qp;
}

static inline int fake_reserve_qpn(struct ib_device *device, u32 *qpn)
{
	*qpn = 0x100 + fake_of(device)->next_qpn++;
	fake_of(device)->reserved++;
	return 0;
}

static inline void fake_release_qpn(struct ib_device *device, u32 qpn)
{
	fake_of(device)->reserved--;
}

static inline struct ib_xrcd *fake_alloc_xrcd(struct ib_device *device, struct ib_udata *udata)
{
	return FAKE_NEW(device, struct ib_xrcd);
}

static inline void fake_dealloc_xrcd(struct ib_xrcd *xrcd)
{
	FAKE_FREE(xrcd->device, xrcd);
}

static inline int fake_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask)
{
	fake_of(qp->device)->modified++;
	return fake_of(qp->device)->refuse_modify;
}

static inline int fake_query_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
				struct ib_qp_init_attr *init)
{
	return 0;
}

static inline void fake_destroy_qp(struct ib_qp *qp)
{
	FAKE_FREE(qp->device, qp);
}

static inline int fake_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
				 const struct ib_send_wr **bad_wr)
{
	*bad_wr = wr;
	return -EINVAL;
}

static inline int fake_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
				 const struct ib_recv_wr **bad_wr)
{
	*bad_wr = wr;
	return -EINVAL;
}

static inline int fake_mcast(struct ib_qp *qp, const union ib_gid *gid, u16 lid)
{
	return 0;
}

static inline struct ib_mr *fake_new_mr(struct ib_device *device)
{
	struct ib_mr *mr = FAKE_NEW(device, struct ib_mr);

	if (!IS_ERR(mr))
		mr->lkey = mr->rkey = ++fake_of(device)->next_key << 8;
	return mr;
}

static inline struct ib_mr *fake_get_dma_mr(struct ib_pd *pd, int access)
{
	return fake_new_mr(pd->device);
}

static inline struct ib_mr *fake_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova,
					     int access, struct ib_udata *udata)
{
	return fake_new_mr(pd->device);
}

static inline int fake_rereg_user_mr(struct ib_mr *mr, int flags, u64 start, u64 length, u64 iova,
				     int access, struct ib_pd *pd)
{
	return 0;
}

static inline void fake_dereg_mr(struct ib_mr *mr)
{
	FAKE_FREE(mr->device, mr);
}

static inline struct ib_mr *fake_alloc_mr(struct ib_pd *pd, u32 max_pages)
{
	return fake_new_mr(pd->device);
}

static inline int fake_stage_mr(struct ib_mr *mr, const struct ib_pages *pages)
{
	struct fake *fake = fake_of(mr->device);

	fake->pages = *pages;
	fake->first_page = pages->page[0];
	fake->last_page = pages->page[pages->num - 1];
	return 0;
}

static inline int fake_map_mr(struct ib_mr *mr, struct ib_pd *pd, int access,
			      const struct ib_pages *pages)
{
	struct fake *fake = fake_of(pd->device);

	if (fake->refuse_map)
		return fake->refuse_map;
	fake->maps += !!pages;
	fake->unmaps += !pages;
	mr->device = pd->device; /* the core's, later */
	return pages ? fake_stage_mr(mr, pages) : 0;
}

static inline bool fake_mr_is_bound(const struct ib_mr *mr)
{
	return fake_of(mr->device)->bound;
}

static inline struct ib_mw *fake_alloc_mw(struct ib_pd *pd, enum ib_mw_type type,
					  struct ib_udata *udata)
{
	struct ib_mw *mw = FAKE_NEW(pd->device, struct ib_mw);

	if (!IS_ERR(mw))
		mw->rkey = ++fake_of(pd->device)->next_key << 8 | 0xff;
	return mw;
}

static inline void fake_dealloc_mw(struct ib_mw *mw)
{
	FAKE_FREE(mw->device, mw);
}

/* its memory is a file that says nothing */
static inline struct ib_dm *fake_alloc_dm(struct ib_device *device, u64 length,
					  struct ib_udata *udata)
{
	struct ib_dm *dm = FAKE_NEW(device, struct ib_dm);

	if (!IS_ERR(dm))
		dm->fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	return dm;
}

static inline void fake_dealloc_dm(struct ib_dm *dm)
{
	close(dm->fd);
	FAKE_FREE(dm->device, dm);
}

static inline struct ib_mr *fake_reg_dm_mr(struct ib_pd *pd, struct ib_dm *dm, u64 offset,
					   u64 length, int access, struct ib_udata *udata)
{
	return fake_new_mr(pd->device);
}

static bool fake_quiesce(struct ib_ucontext *context)
{
	struct fake *fake = container_of(context->device, struct fake, ib);

	return !fake->busy || !fake->busy--;
}

/* it has no completions that anybody is told of */
static bool fake_poll_events(struct ib_device *device)
{
	return false;
}

static const struct ib_device_ops fake_ops = {
	.poll_events = fake_poll_events,
	.quiesce = fake_quiesce,
	.query_device = fake_query_device,
	.query_port = fake_query_port,
	.query_gid = fake_query_gid,
	.query_pkey = fake_query_pkey,
	.find_station = fake_find_station,
	.alloc_ucontext = fake_alloc_ucontext,
	.dealloc_ucontext = fake_dealloc_ucontext,
	.introduce = fake_introduce,
	.alloc_pd = fake_alloc_pd,
	.dealloc_pd = fake_dealloc_pd,
	.create_ah = fake_create_ah,
	.destroy_ah = fake_destroy_ah,
	.create_cq = fake_create_cq,
	.resize_cq = fake_resize_cq,
	.modify_cq = fake_modify_cq,
	.destroy_cq = fake_destroy_cq,
	.poll_cq = fake_poll_cq,
	.req_notify_cq = fake_req_notify_cq,
	.create_srq = fake_create_srq,
	.modify_srq = fake_modify_srq,
	.query_srq = fake_query_srq,
	.destroy_srq = fake_destroy_srq,
	.alloc_xrcd = fake_alloc_xrcd,
	.dealloc_xrcd = fake_dealloc_xrcd,
	.create_qp = fake_create_qp,
	.reserve_qpn = fake_reserve_qpn,
	.release_qpn = fake_release_qpn,
	.modify_qp = fake_modify_qp,
	.query_qp = fake_query_qp,
	.destroy_qp = fake_destroy_qp,
	.post_send = fake_post_send,
	.post_recv = fake_post_recv,
	.attach_mcast = fake_mcast,
	.detach_mcast = fake_mcast,
	.get_dma_mr = fake_get_dma_mr,
	.reg_user_mr = fake_reg_user_mr,
	.rereg_user_mr = fake_rereg_user_mr,
	.dereg_mr = fake_dereg_mr,
	.alloc_mr = fake_alloc_mr,
	.map_mr = fake_map_mr,
	.stage_mr = fake_stage_mr,
	.mr_is_bound = fake_mr_is_bound,
	.alloc_mw = fake_alloc_mw,
	.dealloc_mw = fake_dealloc_mw,
	.alloc_dm = fake_alloc_dm,
	.dealloc_dm = fake_dealloc_dm,
	.reg_dm_mr = fake_reg_dm_mr,
};

/** fake_create() - a device of node @node, not yet registered */
static inline struct fake *fake_create(struct rt *rt, const char *node)
{
	struct fake *f = ib_alloc_device(struct fake, ib);

	f->ib.rt = rt;
	f->ib.ops = &fake_ops;
	/* the same tests of a device that raises no interrupt: meson.build */
	f->ib.polled = getenv("POLLED") != NULL;
	f->ib.node_type = RDMA_NODE_IB_CA;
	f->ib.phys_port_cnt = 2;
	f->ib.node_guid = cpu_to_be64(0x1122);
	snprintf(f->ib.node_name, sizeof(f->ib.node_name), "%s", node);
	snprintf(f->ib.node_desc, sizeof(f->ib.node_desc), "%s HCA-1", node);
	f->port = (struct ib_port_attr){.state = IB_PORT_ACTIVE, .max_mtu = IB_MTU_4096,
					.active_mtu = IB_MTU_2048, .lid = 5, .sm_lid = 1};
	f->gid[0].raw[0] = 0xfe;
	f->gid[1].raw[0] = 0xfd;
	f->pkey[0] = 0xffff;
	f->pkey[1] = 0x0012;
	f->pkey[2] = 0x8012;
	return f;
}

/* the device goes. Return: how many objects were left, and tracked ones */
static inline int fake_end(struct fake *fake)
{
	int left = fake->live;

	for (int type = 0; type < RDMA_RESTRACK_MAX; type++)
		left += (int)rdma_restrack_count(&fake->ib, type);
	ib_unregister_device(&fake->ib);
	ib_dealloc_device(&fake->ib);
	return left;
}

#endif
