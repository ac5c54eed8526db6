/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The adapter's operations on objects. A program's object is a number and an
 * owner here, its queues live in the program's engine; the midlayer's own
 * lives in the adapter's engine. Queue pairs are in verbs_qp.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hca/private.h"

/* --- protection domains, address handles --- */

static struct ib_pd *alloc_pd(struct ib_device *device, struct ib_udata *udata)
{
	int ret = udata ? hca_refused(hca_of(device), FLT_OBJECT_PD) : 0;
	struct hca_pd *pd;

	if (ret)
		return ERR_PTR(ret);
	pd = rt_zalloc(sizeof(*pd));
	if (!pd)
		return ERR_PTR(-ENOMEM);
	pd->number = ++hca_of(device)->next_pd;
	return &pd->ib;
}

static void dealloc_pd(struct ib_pd *pd)
{
	rt_free(container_of(pd, struct hca_pd, ib));
}

static struct ib_ah *create_ah(struct ib_pd *pd, const struct rdma_ah_attr *attr,
			       struct ib_udata *udata)
{
	struct hca_ah *ah = rt_zalloc(sizeof(*ah));

	if (!ah)
		return ERR_PTR(-ENOMEM);
	ah->attr = *attr;
	ah->av = hca_av(attr);
	return &ah->ib;
}

static int modify_ah(struct ib_ah *ibah, const struct rdma_ah_attr *attr)
{
	struct hca_ah *ah = container_of(ibah, struct hca_ah, ib);

	ah->attr = *attr;
	ah->av = hca_av(attr);
	return 0;
}

static int query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	*attr = container_of(ibah, struct hca_ah, ib)->attr;
	return 0;
}

static void destroy_ah(struct ib_ah *ah)
{
	rt_free(container_of(ah, struct hca_ah, ib));
}

/* --- memory --- */

static struct ib_mr *new_mr(struct hca *hca)
{
	struct hca_mr *mr = rt_zalloc(sizeof(*mr));
	int ret = mr ? hca_key_alloc(hca, mr, &mr->ib.rkey) : -ENOMEM;

	if (ret) {
		rt_free(mr);
		return ERR_PTR(ret);
	}
	mr->ib.lkey = mr->ib.rkey;
	return &mr->ib;
}

static void dereg_mr(struct ib_mr *ibmr)
{
	struct hca_mr *mr = container_of(ibmr, struct hca_mr, ib);
	struct hca *hca = hca_of(ibmr->device);

	if (mr->in_engine)
		eng_mr_del(hca->engine, ibmr->lkey);
	hca_key_free(hca, ibmr->rkey);
	rt_free(mr);
}

static struct ib_mr *get_dma_mr(struct ib_pd *pd, int access)
{
	struct hca *hca = hca_of(pd->device);
	struct ib_mr *ibmr = new_mr(hca);
	struct eng_mr_attr attr = {
		.pd = container_of(pd, struct hca_pd, ib)->number,
		.length = UINT64_MAX,
		.access = access,
	};
	int ret;

	if (IS_ERR(ibmr))
		return ibmr;
	ibmr->device = pd->device;
	attr.key = ibmr->lkey;
	ret = eng_mr_add(hca->engine, &attr);
	if (ret) {
		dereg_mr(ibmr);
		return ERR_PTR(ret);
	}
	container_of(ibmr, struct hca_mr, ib)->in_engine = true;
	return ibmr;
}

/* the memory is the program's and its engine's; here it has a key */
static struct ib_mr *reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access,
				 struct ib_udata *udata)
{
	int ret = hca_refused(hca_of(pd->device), FLT_OBJECT_MR);

	return ret ? ERR_PTR(ret) : new_mr(hca_of(pd->device));
}

static int rereg_user_mr(struct ib_mr *mr, int flags, u64 start, u64 length, u64 iova, int access,
			 struct ib_pd *pd)
{
	return 0;
}

/* what a window is bound to, its program's engine knows */
static struct ib_mw *alloc_mw(struct ib_pd *pd, enum ib_mw_type type, struct ib_udata *udata)
{
	int ret = hca_refused(hca_of(pd->device), FLT_OBJECT_MW);
	struct ib_mw *mw;

	if (ret)
		return ERR_PTR(ret);
	mw = rt_zalloc(sizeof(*mw));
	ret = mw ? hca_key_alloc(hca_of(pd->device), mw, &mw->rkey) : -ENOMEM;
	if (!ret)
		return mw;
	rt_free(mw);
	return ERR_PTR(ret);
}

static void dealloc_mw(struct ib_mw *mw)
{
	hca_key_free(hca_of(mw->device), mw->rkey);
	rt_free(mw);
}

/* --- device memory --- */

static int make_memory(u64 length)
{
	int fd = memfd_create("softib-device-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int ret;

	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, (off_t)length) &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

static u64 whole_units(u64 length)
{
	return (length + HCA_DM_UNIT_BYTES - 1) & ~(u64)(HCA_DM_UNIT_BYTES - 1);
}

static struct ib_dm *alloc_dm(struct ib_device *device, u64 length, struct ib_udata *udata)
{
	struct hca *hca = hca_of(device);
	u64 bytes = whole_units(length);
	struct ib_dm *dm;

	if (hca->dm_bytes + bytes > device->attrs.max_dm_size)
		return ERR_PTR(-ENOMEM);
	dm = rt_zalloc(sizeof(*dm));
	if (!dm)
		return ERR_PTR(-ENOMEM);
	dm->fd = make_memory(length);
	if (dm->fd < 0) {
		int ret = dm->fd;

		rt_free(dm);
		return ERR_PTR(ret);
	}
	hca->dm_bytes += bytes;
	return dm;
}

static void dealloc_dm(struct ib_dm *dm)
{
	hca_of(dm->device)->dm_bytes -= whole_units(dm->length);
	close(dm->fd);
	rt_free(dm);
}

static struct ib_mr *reg_dm_mr(struct ib_pd *pd, struct ib_dm *dm, u64 offset, u64 length,
			       int access, struct ib_udata *udata)
{
	return reg_user_mr(pd, offset, length, 0, access, udata);
}

/* --- completion queues --- */

static void run_comp_handler(struct rt_work *work)
{
	struct hca_cq *cq = container_of(work, struct hca_cq, completed);

	if (cq->ib.comp_handler)
		cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
}

static struct ib_cq *create_cq(struct ib_device *device, const struct ib_cq_init_attr *attr,
			       struct ib_udata *udata)
{
	int ret = udata ? hca_refused(hca_of(device), FLT_OBJECT_CQ) : 0;
	struct hca_cq *cq;

	if (ret)
		return ERR_PTR(ret);
	cq = rt_zalloc(sizeof(*cq));
	if (!cq)
		return ERR_PTR(-ENOMEM);
	cq->ib.cqe = (int)attr->cqe;
	rt_work_init(&cq->completed, run_comp_handler);
	if (udata)
		return &cq->ib;
	ret = eng_cq_create(hca_of(device)->engine, attr->cqe, cq, &cq->eng);
	if (!ret)
		return &cq->ib;
	rt_free(cq);
	return ERR_PTR(ret);
}

static int resize_cq(struct ib_cq *ibcq, int cqe)
{
	struct hca_cq *cq = container_of(ibcq, struct hca_cq, ib);
	int ret = cq->eng ? eng_cq_resize(cq->eng, (uint32_t)cqe) : 0;

	if (!ret)
		ibcq->cqe = cqe;
	return ret;
}

static void destroy_cq(struct ib_cq *ibcq)
{
	struct hca_cq *cq = container_of(ibcq, struct hca_cq, ib);

	rt_work_cancel(&cq->completed);
	if (cq->eng)
		eng_cq_destroy(cq->eng);
	rt_free(cq);
}

/* --- shared receive queues --- */

static struct ib_srq *create_srq(struct ib_pd *pd, struct ib_srq_init_attr *init,
				 struct ib_udata *udata)
{
	int ret = udata ? hca_refused(hca_of(pd->device), FLT_OBJECT_SRQ) : 0;
	struct hca_srq *srq;

	if (ret)
		return ERR_PTR(ret);
	srq = rt_zalloc(sizeof(*srq));
	if (!srq)
		return ERR_PTR(-ENOMEM);
	srq->attr = init->attr;
	if (init->xrcd) /* round once, 0 is none */
		srq->ib.srq_num = hca_of(pd->device)->next_srqn++ % IB_QPN_MASK + 1;
	if (udata)
		return &srq->ib;
	if (init->xrcd) {
		rt_free(srq);
		return ERR_PTR(-EOPNOTSUPP);
	}
	ret = eng_srq_create(hca_of(pd->device)->engine, container_of(pd, struct hca_pd, ib)->number,
			     init->attr.max_wr, init->attr.max_sge, init->attr.srq_limit, srq,
			     &srq->eng);
	if (!ret)
		return &srq->ib;
	rt_free(srq);
	return ERR_PTR(ret);
}

static int modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, int mask)
{
	struct hca_srq *srq = container_of(ibsrq, struct hca_srq, ib);
	int ret = 0;

	if (srq->eng)
		ret = eng_srq_modify(srq->eng, mask & IB_SRQ_MAX_WR ? &attr->max_wr : NULL,
				     mask & IB_SRQ_LIMIT ? &attr->srq_limit : NULL);
	if (ret)
		return ret;
	if (mask & IB_SRQ_MAX_WR)
		srq->attr.max_wr = attr->max_wr;
	if (mask & IB_SRQ_LIMIT)
		srq->attr.srq_limit = attr->srq_limit;
	return 0;
}

static int query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct hca_srq *srq = container_of(ibsrq, struct hca_srq, ib);

	*attr = srq->attr;
	if (srq->eng)
		eng_srq_query(srq->eng, &attr->max_wr, &attr->max_sge, &attr->srq_limit);
	return 0;
}

static void destroy_srq(struct ib_srq *ibsrq)
{
	struct hca_srq *srq = container_of(ibsrq, struct hca_srq, ib);

	if (srq->eng)
		eng_srq_destroy(srq->eng);
	rt_free(srq);
}

/* --- XRC domains: what is in them is in the program's engine --- */

static struct ib_xrcd *alloc_xrcd(struct ib_device *device, struct ib_udata *udata)
{
	struct ib_xrcd *xrcd = rt_zalloc(sizeof(*xrcd));

	return xrcd ? xrcd : ERR_PTR(-ENOMEM);
}

static void dealloc_xrcd(struct ib_xrcd *xrcd)
{
	rt_free(xrcd);
}

const struct ib_device_ops hca_ops = {
	.query_device = hca_query_device,
	.modify_device = hca_modify_device,
	.query_port = hca_query_port,
	.modify_port = hca_modify_port,
	.query_gid = hca_query_gid,
	.query_pkey = hca_query_pkey,
	.find_station = hca_find_station,
	.alloc_ucontext = hca_alloc_ucontext,
	.dealloc_ucontext = hca_dealloc_ucontext,
	.driver_command = hca_driver_command,
	.alloc_pd = alloc_pd,
	.dealloc_pd = dealloc_pd,
	.create_ah = create_ah,
	.modify_ah = modify_ah,
	.query_ah = query_ah,
	.destroy_ah = destroy_ah,
	.create_cq = create_cq,
	.resize_cq = resize_cq,
	.destroy_cq = destroy_cq,
	.poll_cq = hca_poll_cq,
	.peek_cq = hca_peek_cq,
	.req_notify_cq = hca_req_notify_cq,
	.create_srq = create_srq,
	.modify_srq = modify_srq,
	.query_srq = query_srq,
	.destroy_srq = destroy_srq,
	.post_srq_recv = hca_post_srq_recv,
	.alloc_xrcd = alloc_xrcd,
	.dealloc_xrcd = dealloc_xrcd,
	.create_qp = hca_create_qp,
	.modify_qp = hca_modify_qp,
	.query_qp = hca_query_qp,
	.quiesce = hca_quiesce,
	.destroy_qp = hca_destroy_qp,
	.post_send = hca_post_send,
	.post_recv = hca_post_recv,
	.attach_mcast = hca_attach_mcast,
	.detach_mcast = hca_detach_mcast,
	.get_dma_mr = get_dma_mr,
	.reg_user_mr = reg_user_mr,
	.rereg_user_mr = rereg_user_mr,
	.dereg_mr = dereg_mr,
	.alloc_mw = alloc_mw,
	.dealloc_mw = dealloc_mw,
	.alloc_dm = alloc_dm,
	.dealloc_dm = dealloc_dm,
	.reg_dm_mr = reg_dm_mr,
	.process_mad = hca_process_mad,
};
