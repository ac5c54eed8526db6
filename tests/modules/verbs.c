/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A module that calls the verbs of an adapter: two queue pairs of it are connected to each
 * other, and one uses the memory of the other. What is not as it should be stands in the log.
 */
#include <linux/completion.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>
#include <rdma/rw.h>

#define PAGES 4
#define BYTES (PAGES * PAGE_SIZE)
#define BOTH  (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE)

static int checks, failures;

static bool check(bool holds, const char *what, int line)
{
	checks++;
	if (!holds) {
		failures++;
		pr_err("line %d: %s\n", line, what);
	}
	return holds;
}
#define CHECK(condition) check(condition, #condition, __LINE__)

/** struct world - an adapter; its second queue pair has an SRQ */
struct world {
	struct ib_device *device;
	u32 port;
	struct ib_port_attr port_attr;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_srq *srq;
	struct ib_qp *qp[2]; /* of one test */
	u64 page[PAGES];     /* not one behind the other */
	u8 *from;	     /* BYTES */
};

/* --- queue pairs --- */

static bool connect_qp(struct world *w, struct ib_qp *qp, const struct ib_qp *peer)
{
	struct ib_qp_attr init = {.qp_state = IB_QPS_INIT,
				  .port_num = (u8)w->port,
				  .qp_access_flags = IB_ACCESS_REMOTE_WRITE |
						     IB_ACCESS_REMOTE_READ};
	struct ib_qp_attr rtr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = w->port_attr.active_mtu,
		.dest_qp_num = peer->qp_num,
		.min_rnr_timer = 1,
		.max_dest_rd_atomic = 1,
		.ah_attr = {.dlid = (u16)w->port_attr.lid, .port_num = (u8)w->port}};
	struct ib_qp_attr rts = {
		.qp_state = IB_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};

	return !ib_modify_qp(qp, &init, IB_QP_STATE | IB_QP_PORT | IB_QP_PKEY_INDEX |
						IB_QP_ACCESS_FLAGS) &&
	       !ib_modify_qp(qp, &rtr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
					       IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
					       IB_QP_MIN_RNR_TIMER) &&
	       !ib_modify_qp(qp, &rts, IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT |
					       IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
					       IB_QP_MAX_QP_RD_ATOMIC);
}

/* a new pair for each test: the last one's may have failed */
static bool open_qps(struct world *w, struct ib_cq *cq)
{
	struct ib_qp_init_attr attr = {.send_cq = cq,
				       .recv_cq = cq,
				       .qp_type = IB_QPT_RC,
				       .sq_sig_type = IB_SIGNAL_ALL_WR,
				       .cap = {.max_send_wr = 8,
					       .max_recv_wr = 8,
					       .max_send_sge = 1,
					       .max_recv_sge = 1}};

	for (int i = 0; i < 2; i++) {
		attr.srq = i ? w->srq : NULL;
		w->qp[i] = ib_create_qp(w->pd, &attr);
		if (!CHECK(!IS_ERR(w->qp[i])))
			return false;
	}
	return CHECK(connect_qp(w, w->qp[0], w->qp[1])) && CHECK(connect_qp(w, w->qp[1], w->qp[0]));
}

static void close_qps(struct world *w)
{
	CHECK(!ib_destroy_qp(w->qp[0]));
	CHECK(!ib_destroy_qp(w->qp[1]));
}

/* the next completion, which comes while this sleeps */
static struct ib_wc next(struct ib_cq *cq)
{
	struct ib_wc wc = {.status = IB_WC_GENERAL_ERR};

	for (int i = 0; i < 10000; i++) {
		if (ib_poll_cq(cq, 1, &wc) == 1)
			return wc;
		msleep(1);
	}
	CHECK(!"no completion came");
	return wc;
}

static enum ib_wc_status do_one(struct world *w, int qp, struct ib_send_wr *wr)
{
	if (!CHECK(!ib_post_send(w->qp[qp], wr, NULL)))
		return IB_WC_GENERAL_ERR;
	return next(w->cq).status;
}

static enum ib_wc_status write_to(struct world *w, u64 at, u32 rkey, u32 bytes)
{
	struct ib_sge sge = {(uintptr_t)w->from, bytes, w->pd->local_dma_lkey};
	struct ib_rdma_wr wr = {.wr = {.sg_list = &sge, .num_sge = 1, .opcode = IB_WR_RDMA_WRITE},
				.remote_addr = at,
				.rkey = rkey};

	w->from[0]++; /* something else each time */
	return do_one(w, 0, &wr.wr);
}

static bool arrived(const struct world *w)
{
	for (int i = 0; i < PAGES; i++)
		if (memcmp((void *)(uintptr_t)w->page[i], w->from + i * PAGE_SIZE, PAGE_SIZE))
			return false;
	return true;
}

/* --- what it says of itself --- */

static void queries(struct world *w)
{
	struct ib_device_modify modify = {.node_desc = "what a module says"};
	char before[IB_DEVICE_NODE_DESC_MAX + 1];
	struct ib_device_attr attr;
	enum ib_port_state state;
	u16 pkey;
	u8 lmc;

	CHECK(!ib_query_device(w->device, &attr) && attr.max_fmr > 0);
	CHECK(attr.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS);
	CHECK(!ib_query_pkey(w->device, w->port, 0, &pkey) && pkey == 0xffff);
	CHECK(ib_query_pkey(w->device, w->port, 0xffff, &pkey) == -EINVAL);
	CHECK(!ib_get_cached_lmc(w->device, w->port, &lmc) && lmc == w->port_attr.lmc);
	CHECK(!ib_get_cached_port_state(w->device, w->port, &state) && state == IB_PORT_ACTIVE);
	strcpy(before, w->device->node_desc);
	CHECK(!ib_modify_device(w->device, IB_DEVICE_MODIFY_NODE_DESC, &modify));
	CHECK(!strcmp(w->device->node_desc, modify.node_desc));
	CHECK(ib_modify_device(w->device, IB_DEVICE_MODIFY_SYS_IMAGE_GUID, &modify) == -EOPNOTSUPP);
	memcpy(modify.node_desc, before, sizeof(modify.node_desc));
	CHECK(!ib_modify_device(w->device, IB_DEVICE_MODIFY_NODE_DESC, &modify));
}

/* The port of an adapter that the node n1 has: 4 lanes of InfiniBand. */
static void ports(struct world *w)
{
	char version[IB_FW_VERSION_NAME_MAX] = "";
	const struct ib_gid_attr *attr;
	union ib_gid gid;

	CHECK(rdma_protocol_ib(w->device, w->port) && !rdma_cap_opa_ah(w->device, w->port));
	CHECK(ib_width_enum_to_int(w->port_attr.active_width) == 4);
	CHECK(rdma_mtu_from_attr(w->device, w->port, &w->port_attr) == 4096);
	ib_get_device_fw_str(w->device, version);
	CHECK(*version);
	CHECK(!rdma_query_gid(w->device, w->port, 0, &gid));
	attr = rdma_find_gid(w->device, &gid, IB_GID_TYPE_IB, NULL);
	if (CHECK(!IS_ERR(attr))) {
		CHECK(attr->port_num == w->port && attr->index == 0);
		rdma_put_gid_attr(attr);
	}
	CHECK(ibdev_to_node(w->device) == NUMA_NO_NODE && ib_dma_max_seg_size(w->device) >= BYTES);
	CHECK(!ib_dma_pci_p2p_dma_supported(w->device));
}

static void address_handles(struct world *w)
{
	struct rdma_ah_attr attr = {0}, seen;
	struct ib_ah *ah;

	rdma_ah_set_dlid(&attr, 7);
	rdma_ah_set_sl(&attr, 1);
	rdma_ah_set_port_num(&attr, w->port);
	rdma_ah_set_path_bits(&attr, 0);
	rdma_ah_set_static_rate(&attr, IB_RATE_PORT_CURRENT);
	rdma_ah_set_grh(&attr, NULL, 1, 0, 64, 3);
	rdma_ah_set_dgid_raw(&attr, (u8[16]){0xfe, 0x80, [15] = 5});
	ah = ib_create_ah(w->pd, &attr);
	CHECK(!IS_ERR(ah) && !rdma_query_ah(ah, &seen));
	CHECK(rdma_ah_get_dlid(&seen) == 7 && rdma_ah_get_sl(&seen) == 1 &&
	      rdma_ah_get_port_num(&seen) == w->port && !rdma_ah_get_path_bits(&seen) &&
	      !rdma_ah_get_static_rate(&seen) && rdma_ah_get_ah_flags(&seen) == IB_AH_GRH &&
	      rdma_ah_read_grh(&seen)->hop_limit == 64 && rdma_ah_read_grh(&seen)->dgid.raw[15] == 5);
	rdma_ah_set_ah_flags(&attr, 0);
	attr.dlid = 9;
	CHECK(!IS_ERR(ah) && !rdma_modify_ah(ah, &attr));
	CHECK(!rdma_query_ah(ah, &seen) && seen.dlid == 9 && seen.sl == 1);
	attr.dlid = 11; /* by the names that were before */
	CHECK(!ib_modify_ah(ah, &attr) && !ib_query_ah(ah, &seen) && seen.dlid == 11);
	CHECK(!ib_destroy_ah(ah));
	rdma_destroy_ah_attr(&attr);
}

static int post_receive(struct world *w, void *buf, u32 bytes)
{
	struct ib_sge sge = {(uintptr_t)buf, bytes, w->pd->local_dma_lkey};
	struct ib_recv_wr wr = {.wr_id = 77, .sg_list = &sge, .num_sge = 1};

	return ib_post_srq_recv(w->srq, &wr, NULL);
}

static void shared_receives(struct world *w)
{
	struct ib_sge sge = {(uintptr_t)w->from, 64, w->pd->local_dma_lkey};
	struct ib_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND};
	u64 addr = ib_dma_map_single(w->device, (void *)(uintptr_t)w->page[0], 64, DMA_FROM_DEVICE);
	struct ib_srq_attr attr;

	CHECK(!ib_dma_mapping_error(w->device, addr));
	CHECK(!ib_query_srq(w->srq, &attr) && attr.max_wr >= 8 && !attr.srq_limit);
	CHECK(!post_receive(w, (void *)(uintptr_t)addr, 64));
	CHECK(!ib_post_send(w->qp[0], &wr, NULL));
	for (int i = 0; i < 2; i++) {
		struct ib_wc wc = next(w->cq);

		CHECK(!wc.status && (wc.opcode != IB_WC_RECV || (wc.wr_id == 77 && wc.byte_len == 64)));
	}
	ib_dma_sync_single_for_cpu(w->device, addr, 64, DMA_FROM_DEVICE);
	ib_dma_sync_single_for_device(w->device, addr, 64, DMA_FROM_DEVICE);
	ib_dma_unmap_single(w->device, addr, 64, DMA_FROM_DEVICE);
	CHECK(!memcmp((void *)(uintptr_t)w->page[0], w->from, 64));
}

/* --- regions --- */

static void buffers(struct world *w)
{
	struct ib_phys_buf buf[PAGES];
	struct ib_mr_attr attr;
	u64 iova = 0x10000000;
	struct ib_mr *mr;

	for (int i = 0; i < PAGES; i++)
		buf[i] = (struct ib_phys_buf){w->page[i], PAGE_SIZE};
	mr = ib_reg_phys_mr(w->pd, buf, PAGES, BOTH, &iova);
	if (!CHECK(!IS_ERR(mr)))
		return;
	CHECK(!ib_query_mr(mr, &attr) && attr.size == BYTES && attr.rkey == mr->rkey);
	CHECK(write_to(w, iova, mr->rkey, BYTES) == IB_WC_SUCCESS && arrived(w));
	iova = 0x20000000; /* one page of it, elsewhere */
	CHECK(!ib_rereg_phys_mr(mr, IB_MR_REREG_TRANS, NULL, buf, 1, 0, &iova));
	CHECK(write_to(w, iova, mr->rkey, PAGE_SIZE) == IB_WC_SUCCESS);
	CHECK(write_to(w, iova, mr->rkey, BYTES) == IB_WC_REM_ACCESS_ERR);
	CHECK(!ib_dereg_mr(mr));
}

static void fast_regions(struct world *w)
{
	struct ib_fmr_attr attr = {.max_pages = PAGES, .max_maps = 2, .page_shift = PAGE_SHIFT};
	struct ib_fmr *fmr = ib_alloc_fmr(w->pd, BOTH, &attr);
	LIST_HEAD(list);
	u32 old;

	if (!CHECK(!IS_ERR(fmr)))
		return;
	CHECK(!ib_map_phys_fmr(fmr, w->page, PAGES, PAGE_SIZE));
	CHECK(write_to(w, PAGE_SIZE, fmr->rkey, BYTES) == IB_WC_SUCCESS && arrived(w));
	old = fmr->rkey;
	CHECK(!ib_map_phys_fmr(fmr, w->page, PAGES, 0));
	CHECK(write_to(w, 0, fmr->rkey, BYTES) == IB_WC_SUCCESS && arrived(w));
	list_add_tail(&fmr->list, &list);
	CHECK(!ib_unmap_fmr(&list));
	CHECK(!ib_map_phys_fmr(fmr, w->page, PAGES, 0));
	CHECK(write_to(w, 0, old, 8) == IB_WC_REM_ACCESS_ERR);
	CHECK(!ib_dealloc_fmr(fmr));
}

static enum ib_wc_status register_mr(struct world *w, struct ib_mr *mr)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR, .mr = mr, .key = mr->rkey, .access = BOTH};

	return do_one(w, 1, &wr.wr);
}

static enum ib_wc_status invalidate(struct world *w, u32 key)
{
	struct ib_send_wr wr = {.opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = key};

	return do_one(w, 1, &wr);
}

static void registered_by_requests(struct world *w)
{
	struct ib_mr *mr = ib_alloc_mr(w->pd, IB_MR_TYPE_MEM_REG, PAGES);
	struct ib_send_wr send = {.opcode = IB_WR_SEND_WITH_INV};
	struct scatterlist sg[PAGES], *entry;
	bool invalidated = false;
	int i;

	if (!CHECK(!IS_ERR(mr)))
		return;
	sg_init_table(sg, PAGES);
	for_each_sg(sg, entry, PAGES, i)
		sg_set_buf(entry, (void *)(uintptr_t)w->page[i], PAGE_SIZE);
	CHECK(ib_dma_map_sg(w->device, sg, PAGES, DMA_FROM_DEVICE) == PAGES);
	CHECK(ib_map_mr_sg(mr, sg, PAGES, NULL, PAGE_SIZE) == PAGES && mr->length == BYTES);
	ib_dma_unmap_sg(w->device, sg, PAGES, DMA_FROM_DEVICE);
	CHECK(register_mr(w, mr) == IB_WC_SUCCESS);
	CHECK(write_to(w, mr->iova, mr->rkey, BYTES) == IB_WC_SUCCESS && arrived(w));
	CHECK(invalidate(w, mr->rkey) == IB_WC_SUCCESS);
	CHECK(ib_map_mr_sg_zbva(mr, sg, PAGES, NULL, PAGE_SIZE) == PAGES && !mr->iova);
	ib_update_fast_reg_key(mr, (u8)ib_inc_rkey(mr->rkey));
	CHECK(register_mr(w, mr) == IB_WC_SUCCESS);
	CHECK(write_to(w, mr->iova, mr->rkey, BYTES) == IB_WC_SUCCESS && arrived(w));
	/* the peer is done with it */
	send.ex.invalidate_rkey = mr->rkey;
	CHECK(!post_receive(w, NULL, 0) && !ib_post_send(w->qp[0], &send, NULL));
	for (i = 0; i < 2; i++) {
		struct ib_wc wc = next(w->cq);

		CHECK(!wc.status);
		invalidated |= wc.wc_flags & IB_WC_WITH_INVALIDATE &&
			       wc.ex.invalidate_rkey == mr->rkey;
	}
	CHECK(invalidated);
	CHECK(write_to(w, mr->iova, mr->rkey, 8) == IB_WC_REM_ACCESS_ERR);
	CHECK(!ib_dereg_mr(mr));
}

/* --- transfers of scatter lists --- */

static void on_transfer(struct ib_cq *cq, struct ib_wc *wc)
{
}

/* by the first pair; the entries are the pages, and the peer's memory is @from */
static bool transfer(struct world *w, u32 skip, enum dma_data_direction dir)
{
	struct ib_mr *mr = ib_get_dma_mr(w->pd, BOTH | IB_ACCESS_REMOTE_READ);
	struct ib_cqe cqe = {.done = on_transfer};
	struct scatterlist sg[PAGES];
	struct rdma_rw_ctx ctx;
	struct ib_wc wc;
	int requests;

	if (!CHECK(!IS_ERR(mr)))
		return false;
	sg_init_table(sg, PAGES);
	for (int i = 0; i < PAGES; i++)
		sg_set_page(&sg[i], virt_to_page(w->page[i]), PAGE_SIZE, 0);
	requests = rdma_rw_ctx_init(&ctx, w->qp[0], w->port, sg, PAGES, skip,
				    (uintptr_t)w->from + skip, mr->rkey, dir);
	CHECK(requests == PAGES - (int)(skip / PAGE_SIZE)); /* the pair has 1 entry each */
	CHECK(!rdma_rw_ctx_post(&ctx, w->qp[0], w->port, &cqe, NULL));
	for (int i = 0; i < requests; i++) { /* each is signalled by this pair */
		wc = next(w->cq);
		CHECK(!wc.status && wc.wr_cqe == (i == requests - 1 ? &cqe : NULL));
	}
	rdma_rw_ctx_destroy(&ctx, w->qp[0], w->port, sg, PAGES, dir);
	CHECK(!ib_dereg_mr(mr));
	return arrived(w);
}

static void transfers(struct world *w)
{
	struct page *page = alloc_page(GFP_KERNEL);
	u64 addr = ib_dma_map_page(w->device, page, 8, 16, DMA_TO_DEVICE);

	CHECK(page && addr == (uintptr_t)page_address(page) + 8);
	ib_dma_unmap_page(w->device, addr, 16, DMA_TO_DEVICE);
	__free_page(page);
	for (u32 skip = 0; skip < BYTES; skip += PAGE_SIZE + 17) {
		w->from[skip]++;
		CHECK(transfer(w, skip, DMA_FROM_DEVICE));
		((u8 *)(uintptr_t)w->page[skip / PAGE_SIZE])[skip % PAGE_SIZE]++;
		CHECK(transfer(w, skip, DMA_TO_DEVICE));
	}
}

/* --- windows --- */

static void windows_of_type_1(struct world *w)
{
	struct ib_mr *mr = ib_get_dma_mr(w->pd, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND);
	struct ib_mw *mw = ib_alloc_mw(w->pd);
	struct ib_mw_bind bind = {.bind_info = {mr, w->page[0], 64, IB_ACCESS_REMOTE_WRITE}};

	if (!CHECK(!IS_ERR(mr) && !IS_ERR(mw)))
		return;
	CHECK(!ib_bind_mw(w->qp[1], mw, &bind));
	CHECK(next(w->cq).opcode == IB_WC_BIND_MW);
	CHECK(write_to(w, w->page[0], mw->rkey, 64) == IB_WC_SUCCESS);
	CHECK(!memcmp((void *)(uintptr_t)w->page[0], w->from, 64));
	CHECK(ib_dereg_mr(mr) == -EBUSY);
	CHECK(write_to(w, w->page[0], mw->rkey, 65) == IB_WC_REM_ACCESS_ERR);
	CHECK(!ib_dealloc_mw(mw));
	CHECK(!ib_dereg_mr(mr));
}

static void windows_of_type_2(struct world *w)
{
	struct ib_mr *mr = ib_get_dma_mr(w->pd, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND);
	struct ib_mw *mw = ib_alloc_mw(w->pd, IB_MW_TYPE_2);
	struct ib_bind_mw_wr bind = {
		.wr.opcode = IB_WR_BIND_MW,
		.mw = mw,
		.rkey = ib_inc_rkey(mw->rkey),
		.bind_info = {mr, w->page[1], 64, IB_ACCESS_REMOTE_WRITE | IB_ZERO_BASED}};

	CHECK(do_one(w, 1, &bind.wr) == IB_WC_SUCCESS);
	mw->rkey = bind.rkey;
	CHECK(write_to(w, 0, mw->rkey, 64) == IB_WC_SUCCESS);
	CHECK(!memcmp((void *)(uintptr_t)w->page[1], w->from, 64));
	CHECK(invalidate(w, mw->rkey) == IB_WC_SUCCESS);
	CHECK(write_to(w, 0, mw->rkey, 64) == IB_WC_REM_ACCESS_ERR);
	CHECK(!ib_dealloc_mw(mw));
	CHECK(!ib_dereg_mr(mr));
}

/* --- notification after so many completions --- */

static int calls;

static void on_completion(struct ib_cq *cq, void *context)
{
	calls++;
	complete(context);
}

static void notified_after_three(struct world *w)
{
	struct ib_cq_init_attr attr = {.cqe = 16};
	struct completion told;
	struct ib_cq *own = w->cq;
	struct ib_wc wc[4];

	init_completion(&told);
	w->cq = ib_create_cq(w->device, on_completion, NULL, &told, &attr);
	if (!CHECK(!IS_ERR(w->cq)))
		goto out;
	CHECK(ib_req_ncomp_notif(w->cq, 0) == -EINVAL && ib_req_ncomp_notif(w->cq, 17) == -EINVAL);
	if (open_qps(w, w->cq)) {
		struct ib_rdma_wr wr = {.wr.opcode = IB_WR_RDMA_WRITE}; /* of no bytes */

		CHECK(!ib_req_ncomp_notif(w->cq, 3));
		for (int i = 0; i < 2; i++)
			CHECK(!ib_post_send(w->qp[0], &wr.wr, NULL));
		while (ib_peek_cq(w->cq, 16) < 2)
			msleep(1);
		msleep(1);
		CHECK(!calls);
		CHECK(!ib_post_send(w->qp[0], &wr.wr, NULL));
		wait_for_completion(&told);
		CHECK(calls == 1 && ib_poll_cq(w->cq, 4, wc) == 3);
		close_qps(w);
	}
	CHECK(!ib_destroy_cq(w->cq));
out:
	w->cq = own;
}

/* --- draining --- */

#define POSTED 4

/** struct flushed - requests of a queue: how many have completed */
struct flushed {
	struct ib_cqe cqe;
	int num;
};

static void on_flushed(struct ib_cq *cq, struct ib_wc *wc)
{
	struct flushed *f = container_of(wc->wr_cqe, struct flushed, cqe);

	f->num++;
	CHECK(wc->status == IB_WC_WR_FLUSH_ERR);
}

/* The peer has no receive, so that no message arrives and none completes before. */
static void post_some(struct ib_qp *qp, struct flushed *sends, struct flushed *receives)
{
	struct ib_send_wr send = {.wr_cqe = &sends->cqe, .opcode = IB_WR_SEND};
	struct ib_recv_wr recv = {.wr_cqe = &receives->cqe};

	for (int i = 0; i < POSTED; i++)
		CHECK(!ib_post_send(qp, &send, NULL) && !ib_post_recv(qp, &recv, NULL));
}

static void drained(struct world *w, enum ib_poll_context context)
{
	struct flushed sends = {.cqe.done = on_flushed}, receives = sends;
	struct ib_cq *cq = ib_alloc_cq(w->device, NULL, 64, 0, context);
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	if (!CHECK(!IS_ERR(cq)))
		return;
	if (open_qps(w, cq)) {
		post_some(w->qp[0], &sends, &receives);
		ib_drain_qp(w->qp[0]);
		CHECK(sends.num == POSTED && receives.num == POSTED);
		CHECK(!ib_query_qp(w->qp[0], &attr, IB_QP_STATE, &init) &&
		      attr.qp_state == IB_QPS_ERR);
		post_some(w->qp[0], &sends, &receives); /* in ERR already */
		ib_drain_sq(w->qp[0]);
		CHECK(sends.num == 2 * POSTED);
		ib_drain_rq(w->qp[0]);
		CHECK(receives.num == 2 * POSTED);
		ib_drain_qp(w->qp[1]); /* which has an SRQ, and nothing to complete */
		close_qps(w);
	}
	ib_free_cq(cq);
}

/* --- all --- */

static void run(struct world *w)
{
	static void (*const with_qps[])(struct world *w) = {
		shared_receives,	buffers,	   fast_regions,
		registered_by_requests, transfers,	   windows_of_type_1,
		windows_of_type_2,
	};

	queries(w);
	ports(w);
	address_handles(w);
	for (size_t i = 0; i < sizeof(with_qps) / sizeof(with_qps[0]); i++)
		if (open_qps(w, w->cq)) {
			with_qps[i](w);
			close_qps(w);
		}
	notified_after_three(w);
	drained(w, IB_POLL_SOFTIRQ);
	drained(w, IB_POLL_DIRECT);
}

static int add_one(struct ib_device *device)
{
	struct ib_srq_init_attr srq_attr = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ib_cq_init_attr cq_attr = {.cqe = 64};
	struct world w = {.device = device, .port = rdma_start_port(device)};

	CHECK(!ib_query_port(device, w.port, &w.port_attr));
	w.pd = ib_alloc_pd(device, 0);
	w.cq = ib_create_cq(device, NULL, NULL, NULL, &cq_attr);
	w.srq = ib_create_srq(w.pd, &srq_attr);
	w.from = kzalloc(BYTES, GFP_KERNEL);
	for (u32 i = 0; i < BYTES; i++)
		w.from[i] = (u8)(i + i / PAGE_SIZE);
	for (int i = PAGES; i--;)
		w.page[i] = get_zeroed_page(GFP_KERNEL);
	run(&w);
	for (int i = 0; i < PAGES; i++)
		free_page(w.page[i]);
	kfree(w.from);
	CHECK(!ib_destroy_srq(w.srq));
	CHECK(!ib_destroy_cq(w.cq));
	CHECK(!ib_dealloc_pd(w.pd));
	pr_info("%d checks, %d failed\n", checks, failures);
	return 0;
}

static void remove_one(struct ib_device *device, void *client_data)
{
}

static struct ib_client client = {.name = "verbs", .add = add_one, .remove = remove_one};

static int __init verbs_init(void)
{
	return ib_register_client(&client);
}

static void __exit verbs_exit(void)
{
	ib_unregister_client(&client);
}

module_init(verbs_init);
module_exit(verbs_exit);
MODULE_LICENSE("Dual BSD/GPL");
