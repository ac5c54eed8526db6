/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Transfers of scatter lists, and pools of regions. The device takes 4 entries in a SEND or
 * RDMA WRITE, and 3 in an RDMA READ. */
#include "../test.h"

#include "core/private.h"
#include "fake_device.h"
#include "rdma/rw.h"
#include "runtime/sim/rt_sim.h"

#define ENTRIES	   8
#define ENTRY_BYTES 0x1000
#define REMOTE	   0x700000000ull
#define RKEY	   0x1234

struct world {
	struct rt *rt;
	struct fake *fake;
	struct ib_device_ops ops;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct scatterlist sg[ENTRIES];
};

static const struct ib_send_wr *posted;

static int post(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad_wr)
{
	posted = wr;
	return 0;
}

static struct ib_qp *make_qp(struct world *w, struct ib_qp_init_attr *attr)
{
	attr->send_cq = attr->recv_cq = w->cq;
	attr->qp_type = IB_QPT_RC;
	return ib_create_qp(w->pd, attr);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct ib_cq_init_attr cq_attr = {.cqe = 16};
	struct ib_qp_init_attr attr = {.cap = {.max_send_wr = 4, .max_send_sge = 4}};

	if (rt_sim_create(1, &w->rt))
		return -1;
	w->fake = fake_create(w->rt, "n1");
	w->ops = *w->fake->ib.ops;
	w->ops.post_send = post;
	w->fake->ib.ops = &w->ops;
	if (ib_register_device(&w->fake->ib, "softib0"))
		return -1;
	w->fake->ib.attrs.max_sge_rd = 3;
	w->pd = ib_alloc_pd(&w->fake->ib, 0);
	w->cq = ib_create_cq(&w->fake->ib, NULL, NULL, NULL, &cq_attr);
	w->qp = make_qp(w, &attr);
	sg_init_table(w->sg, ENTRIES);
	for (u32 i = 0; i < ENTRIES; i++) /* not one behind the other, and never used */
		sg_set_buf(&w->sg[i], (void *)(uintptr_t)(0x100000 * (i + 1)), ENTRY_BYTES);
	*state = w;
	return IS_ERR(w->qp) ? -1 : 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	int left;

	if (ib_destroy_qp(w->qp) || ib_destroy_cq(w->cq) || ib_dealloc_pd(w->pd))
		return -1;
	left = fake_end(w->fake);
	rt_sim_destroy(w->rt);
	free(w);
	return left ? -1 : 0;
}

/* Each byte of the list behind the first @skip ones goes to its place in the peer's memory. */
static void check_requests(const struct world *w, const struct ib_send_wr *wr, u32 skip, u32 most,
			   enum ib_wr_opcode opcode)
{
	u64 at = REMOTE;

	for (u32 i = skip / ENTRY_BYTES; wr; wr = wr->next) {
		assert_int_equal(wr->opcode, opcode);
		assert_int_equal(rdma_wr(wr)->rkey, RKEY);
		assert_int_equal(rdma_wr(wr)->remote_addr, at);
		assert_in_range(wr->num_sge, 1, most);
		assert_true(wr->num_sge == (int)most || !wr->next);
		for (int e = 0; e < wr->num_sge; e++, i++) {
			u32 skipped = i == skip / ENTRY_BYTES ? skip % ENTRY_BYTES : 0;

			assert_int_equal(wr->sg_list[e].addr, sg_dma_address(&w->sg[i]) + skipped);
			assert_int_equal(wr->sg_list[e].length, ENTRY_BYTES - skipped);
			assert_int_equal(wr->sg_list[e].lkey, w->pd->local_dma_lkey);
			at += wr->sg_list[e].length;
		}
	}
	assert_int_equal(at, REMOTE + ENTRIES * ENTRY_BYTES - skip);
}

static void requests_are_full(void **state)
{
	static const struct {
		u32 skip;
		enum dma_data_direction dir;
		u32 most;
		int requests;
	} rows[] = {
		{0, DMA_TO_DEVICE, 4, 2},
		{0, DMA_FROM_DEVICE, 3, 3},
		{1, DMA_TO_DEVICE, 4, 2},
		{ENTRY_BYTES - 1, DMA_FROM_DEVICE, 3, 3},
		{ENTRY_BYTES, DMA_TO_DEVICE, 4, 2},
		{4 * ENTRY_BYTES, DMA_TO_DEVICE, 4, 1},
		{4 * ENTRY_BYTES + 8, DMA_FROM_DEVICE, 3, 2},
		{7 * ENTRY_BYTES, DMA_FROM_DEVICE, 3, 1},
		{7 * ENTRY_BYTES + 1, DMA_TO_DEVICE, 4, 1},
	};
	struct world *w = *state;
	struct ib_cqe cqe;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		enum ib_wr_opcode opcode = rows[i].dir == DMA_TO_DEVICE ? IB_WR_RDMA_WRITE :
									  IB_WR_RDMA_READ;
		const struct ib_send_wr *last;
		struct rdma_rw_ctx ctx;

		assert_int_equal(rdma_rw_ctx_init(&ctx, w->qp, 1, w->sg, ENTRIES, rows[i].skip,
						  REMOTE, RKEY, rows[i].dir),
				 rows[i].requests);
		assert_int_equal(rdma_rw_ctx_post(&ctx, w->qp, 1, &cqe, NULL), 0);
		check_requests(w, posted, rows[i].skip, rows[i].most, opcode);
		for (last = posted; last->next; last = last->next) {
			assert_null(last->wr_cqe);
			assert_int_equal(last->send_flags, 0);
		}
		assert_ptr_equal(last->wr_cqe, &cqe);
		assert_int_equal(last->send_flags, IB_SEND_SIGNALED);
		rdma_rw_ctx_destroy(&ctx, w->qp, 1, w->sg, ENTRIES, rows[i].dir);
	}
}

static void what_is_chained_comes_last(void **state)
{
	struct world *w = *state;
	struct ib_send_wr answer = {.opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED};
	struct rdma_rw_ctx ctx;
	struct ib_send_wr *wr;

	for (u32 entries = 1; entries <= ENTRIES; entries++) {
		assert_true(rdma_rw_ctx_init(&ctx, w->qp, 1, w->sg, entries, 0, REMOTE, RKEY,
					     DMA_TO_DEVICE) > 0);
		wr = rdma_rw_ctx_wrs(&ctx, w->qp, 1, NULL, &answer);
		for (u32 i = 0; i < ctx.nr_ops; i++, wr = wr->next)
			assert_int_equal(wr->send_flags, 0);
		assert_ptr_equal(wr, &answer);
		rdma_rw_ctx_destroy(&ctx, w->qp, 1, w->sg, entries, DMA_TO_DEVICE);
	}
}

static void what_is_no_transfer(void **state)
{
	struct world *w = *state;
	struct rdma_rw_ctx ctx;

	assert_int_equal(rdma_rw_ctx_init(&ctx, w->qp, 1, w->sg, ENTRIES, 0, REMOTE, RKEY,
					  DMA_BIDIRECTIONAL),
			 -EINVAL);
	assert_int_equal(rdma_rw_ctx_init(&ctx, w->qp, 1, w->sg, ENTRIES, ENTRIES * ENTRY_BYTES,
					  REMOTE, RKEY, DMA_TO_DEVICE),
			 -EINVAL);
}

static void a_send_queue_has_room_for_transfers(void **state)
{
	struct world *w = *state;
	struct ib_device *device = &w->fake->ib;
	struct ib_qp_init_attr attr = {.cap = {.max_send_wr = 4, .max_rdma_ctxs = 10}};

	ib_destroy_qp(w->qp);
	w->qp = make_qp(w, &attr);
	assert_int_equal(w->qp->cap.max_send_wr, 14);
	ib_destroy_qp(w->qp);
	attr.cap.max_rdma_ctxs = UINT32_MAX - 20; /* as many as the device has */
	w->qp = make_qp(w, &attr);
	assert_int_equal(w->qp->cap.max_send_wr, device->attrs.max_qp_wr);
	assert_int_equal(rdma_rw_max_send_wr(device, 1, 7, 0), 7);
	assert_int_equal(rdma_rw_mr_factor(device, 1, 16), 1); /* pages of a region: 16 */
	assert_int_equal(rdma_rw_mr_factor(device, 1, 17), 2);
}

/* --- pools of regions --- */

static void regions_are_taken_and_given_back(void **state)
{
	struct world *w = *state;
	struct list_head *pool = &w->qp->rdma_mrs;
	struct ib_mr *mr[3];

	assert_null(ib_mr_pool_get(w->qp, pool));
	assert_int_equal(ib_mr_pool_init(w->qp, pool, 3, IB_MR_TYPE_MEM_REG, 16, 0), 0);
	for (int i = 0; i < 3; i++) {
		mr[i] = ib_mr_pool_get(w->qp, pool);
		assert_int_equal(mr[i]->num_pages, 16);
	}
	assert_null(ib_mr_pool_get(w->qp, pool));
	ib_mr_pool_put(w->qp, pool, mr[1]);
	assert_ptr_equal(ib_mr_pool_get(w->qp, pool), mr[1]);
	for (int i = 0; i < 3; i++)
		ib_mr_pool_put(w->qp, pool, mr[i]);
	ib_mr_pool_destroy(w->qp, pool);
	assert_true(list_empty(pool));
}

static void a_pool_that_cannot_be_made_is_empty(void **state)
{
	struct world *w = *state;
	u32 before = rdma_restrack_count(&w->fake->ib, RDMA_RESTRACK_MR);
	LIST_HEAD(pool);

	w->fake->ib.attrs.max_mr = (int)before + 2; /* it ends in the midst of it */
	assert_int_equal(ib_mr_pool_init(w->qp, &pool, 3, IB_MR_TYPE_MEM_REG, 16, 0), -ENOMEM);
	assert_true(list_empty(&pool));
	assert_int_equal(ib_mr_pool_init(w->qp, &pool, 2, IB_MR_TYPE_MEM_REG, 17, 0), -EINVAL);
	assert_int_equal(ib_mr_pool_init(w->qp, &pool, 2, IB_MR_TYPE_MEM_REG, 16, 1), -EINVAL);
	assert_int_equal(rdma_restrack_count(&w->fake->ib, RDMA_RESTRACK_MR), before);
}

/* The pool's list goes with the queue pair, and the regions stay their client's. */
static void a_pool_that_its_client_forgets(void **state)
{
	struct world *w = *state;
	struct ib_qp_init_attr attr = {.cap = {.max_send_wr = 4}};
	struct ib_qp *qp = make_qp(w, &attr);
	struct ib_mr *mr;

	assert_int_equal(ib_mr_pool_init(qp, &qp->rdma_mrs, 1, IB_MR_TYPE_MEM_REG, 16, 0), 0);
	mr = list_first_entry(&qp->rdma_mrs, struct ib_mr, qp_entry);
	assert_int_equal(ib_destroy_qp(qp), 0);
	assert_int_equal(ib_dereg_mr(mr), 0);
}

#define IN(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN(requests_are_full),
		IN(what_is_chained_comes_last),
		IN(what_is_no_transfer),
		IN(a_send_queue_has_room_for_transfers),
		IN(regions_are_taken_and_given_back),
		IN(a_pool_that_cannot_be_made_is_empty),
		IN(a_pool_that_its_client_forgets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
