/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A pool of fast memory regions (FMRs): pages that stand anywhere in memory become one buffer
 * for a peer, for the time of one request. Here the peer is a queue pair of the same adapter:
 * add() connects two to each other, and one writes into the FMR of the other. After the pool was
 * flushed, the key that it was given is worth nothing, and a second write fails.
 */
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_fmr_pool.h>

#define PAGES	   4
#define BYTES	   (PAGES * PAGE_SIZE)
#define IOVA	   0x10000000ull /* where the buffer is for the peer */
#define CQ_ENTRIES 8
#define ACK_TIMEOUT 14 /* 4.096 us * 2^14: 67 ms */

static int uses = 3;
module_param(uses, int, 0444);
MODULE_PARM_DESC(uses, "how often the pages are mapped and written to");

/** struct test - what add() has while it runs */
struct test {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp[2]; /* the writer; who gives its memory */
	struct ib_fmr_pool *pool;
	u64 page[PAGES];     /* which the FMR is made of */
	u8 *from;	     /* BYTES, in one piece */
	struct ib_cqe cqe;
	struct completion written;
	enum ib_wc_status status;
	int flushes;
};

/* --- two queue pairs, one connected to the other --- */

static void on_completion(struct ib_cq *cq, struct ib_wc *wc)
{
	struct test *t = container_of(wc->wr_cqe, struct test, cqe);

	t->status = wc->status;
	complete(&t->written);
}

static int connect_qp(struct test *t, struct ib_qp *qp, const struct ib_qp *peer)
{
	u32 port = rdma_start_port(t->device);
	struct ib_qp_attr attr = {.qp_state = IB_QPS_INIT,
				  .port_num = (u8)port,
				  .qp_access_flags = IB_ACCESS_REMOTE_WRITE};
	struct ib_port_attr port_attr;
	int ret = ib_query_port(t->device, port, &port_attr);

	if (!ret)
		ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PORT | IB_QP_PKEY_INDEX |
						      IB_QP_ACCESS_FLAGS);
	if (ret)
		return ret;
	attr = (struct ib_qp_attr){.qp_state = IB_QPS_RTR,
				   .path_mtu = port_attr.active_mtu,
				   .dest_qp_num = peer->qp_num,
				   .min_rnr_timer = 1,
				   .ah_attr = {.dlid = (u16)port_attr.lid, .port_num = (u8)port}};
	ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
					      IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
					      IB_QP_MIN_RNR_TIMER);
	if (ret)
		return ret;
	attr = (struct ib_qp_attr){
		.qp_state = IB_QPS_RTS, .timeout = ACK_TIMEOUT, .retry_cnt = 7, .rnr_retry = 7};
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT |
					       IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
					       IB_QP_MAX_QP_RD_ATOMIC);
}

static int open_qps(struct test *t)
{
	struct ib_qp_init_attr init = {.send_cq = t->cq,
				       .recv_cq = t->cq,
				       .qp_type = IB_QPT_RC,
				       .sq_sig_type = IB_SIGNAL_ALL_WR,
				       .cap = {.max_send_wr = 1, .max_send_sge = 1}};
	int ret;

	for (int i = 0; i < 2; i++) {
		t->qp[i] = ib_create_qp(t->pd, &init);
		if (IS_ERR(t->qp[i]))
			return PTR_ERR(t->qp[i]);
	}
	ret = connect_qp(t, t->qp[0], t->qp[1]);
	return ret ? ret : connect_qp(t, t->qp[1], t->qp[0]);
}

/* Return: how the peer's write of @t->from to the key @rkey ended; -errno */
static int write_to(struct test *t, u32 rkey)
{
	struct ib_sge sge = {(uintptr_t)t->from, BYTES, t->pd->local_dma_lkey};
	struct ib_rdma_wr wr = {.wr = {.wr_cqe = &t->cqe,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IB_WR_RDMA_WRITE},
				.remote_addr = IOVA,
				.rkey = rkey};
	int ret = ib_post_send(t->qp[0], &wr.wr, NULL);

	if (ret)
		return ret;
	wait_for_completion(&t->written);
	return t->status;
}

/* --- the pool --- */

static void on_flush(struct ib_fmr_pool *pool, void *arg)
{
	((struct test *)arg)->flushes++;
}

static int open_pool(struct test *t)
{
	struct ib_fmr_pool_param param = {.max_pages_per_fmr = PAGES,
					  .page_shift = PAGE_SHIFT,
					  .access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
					  .pool_size = 2,
					  .dirty_watermark = 1,
					  .flush_function = on_flush,
					  .flush_arg = t,
					  .cache = 1};

	t->pool = ib_create_fmr_pool(t->pd, &param);
	return PTR_ERR_OR_ZERO(t->pool);
}

/* are the pages, in the order of the FMR, what was written? */
static bool arrived(const struct test *t)
{
	for (int i = 0; i < PAGES; i++)
		if (memcmp((void *)(uintptr_t)t->page[i], t->from + i * PAGE_SIZE, PAGE_SIZE))
			return false;
	return true;
}

/* map, let the peer write, give back. Return: 0, and *@rkey was the key; other: the error */
static int use_once(struct test *t, u8 pattern, u32 *rkey)
{
	struct ib_pool_fmr *fmr = ib_fmr_pool_map_phys(t->pool, t->page, PAGES, IOVA);
	int ret;

	if (IS_ERR(fmr))
		return PTR_ERR(fmr);
	for (unsigned int i = 0; i < BYTES; i++)
		t->from[i] = (u8)(pattern + i + i / PAGE_SIZE);
	*rkey = fmr->fmr->rkey;
	ret = write_to(t, *rkey);
	ib_fmr_pool_unmap(fmr);
	return ret ? ret : arrived(t) ? 0 : -EIO;
}

static void use_pool(struct test *t)
{
	u32 rkey = 0;
	int i, ret = 0;

	for (i = 0; i < uses && !ret; i++)
		ret = use_once(t, (u8)(3 * i), &rkey);
	if (ret) {
		pr_err("use %d failed: %d\n", i, ret);
		return;
	}
	pr_info("%s: %d times %d bytes over %d pages\n", t->device->name, uses, (int)BYTES, PAGES);
	ib_flush_fmr_pool(t->pool);
	pr_info("after %d flush: %s\n", t->flushes, ib_wc_status_msg(write_to(t, rkey)));
}

/* --- adapters --- */

static int open_test(struct test *t)
{
	int ret;

	/* the last page first: they are no buffer as they are */
	for (int i = 0; i < PAGES; i++)
		t->page[PAGES - 1 - i] = __get_free_page(GFP_KERNEL);
	t->from = kzalloc(BYTES, GFP_KERNEL);
	if (!t->from || !t->page[0])
		return -ENOMEM;
	t->pd = ib_alloc_pd(t->device, 0);
	if (IS_ERR(t->pd))
		return PTR_ERR(t->pd);
	t->cq = ib_alloc_cq(t->device, t, CQ_ENTRIES, 0, IB_POLL_SOFTIRQ);
	if (IS_ERR(t->cq))
		return PTR_ERR(t->cq);
	ret = open_qps(t);
	return ret ? ret : open_pool(t);
}

static void close_test(struct test *t)
{
	if (!IS_ERR_OR_NULL(t->pool))
		ib_destroy_fmr_pool(t->pool);
	for (int i = 0; i < 2; i++)
		if (!IS_ERR_OR_NULL(t->qp[i]))
			ib_destroy_qp(t->qp[i]);
	if (!IS_ERR_OR_NULL(t->cq))
		ib_free_cq(t->cq);
	if (!IS_ERR_OR_NULL(t->pd))
		ib_dealloc_pd(t->pd);
	for (int i = 0; i < PAGES; i++)
		free_page(t->page[i]);
	kfree(t->from);
	kfree(t);
}

static int pool_add(struct ib_device *device)
{
	struct test *t = kzalloc(sizeof(*t), GFP_KERNEL);
	int ret;

	if (!t)
		return -ENOMEM;
	t->device = device;
	t->cqe.done = on_completion;
	init_completion(&t->written);
	ret = open_test(t);
	if (!ret)
		use_pool(t);
	close_test(t);
	return ret;
}

static void pool_remove(struct ib_device *device, void *client_data)
{
}

static struct ib_client client = {.name = "fmr_pool", .add = pool_add, .remove = pool_remove};

static int __init pool_init(void)
{
	return ib_register_client(&client);
}

static void __exit pool_exit(void)
{
	ib_unregister_client(&client);
}

module_init(pool_init);
module_exit(pool_exit);
MODULE_LICENSE("Dual BSD/GPL");
