/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Regions of pages, windows, FMRs and their pools: what the core asks of the device. */
#include "../test.h"

#include "core/private.h"
#include "fake_device.h"
#include "rdma/ib_fmr_pool.h"
#include "runtime/sim/rt_sim.h"

#define LOCAL  IB_ACCESS_LOCAL_WRITE
#define REMOTE (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE)

struct world {
	struct rt *rt;
	struct fake *fake;
	struct ib_pd *pd;
	int flushes;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	if (rt_sim_create(1, &w->rt))
		return -1;
	w->fake = fake_create(w->rt, "n1");
	if (ib_register_device(&w->fake->ib, "softib0"))
		return -1;
	w->pd = ib_alloc_pd(&w->fake->ib, 0);
	*state = w;
	return IS_ERR(w->pd) ? -1 : 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	int left;

	if (ib_dealloc_pd(w->pd))
		return -1;
	left = fake_end(w->fake);
	rt_sim_destroy(w->rt);
	free(w);
	return left ? -1 : 0;
}

/* --- regions of buffers --- */

static void buffers_become_pages(void **state)
{
	static const struct {
		struct ib_phys_buf buf[3];
		int num;
		u64 iova, first, last, length;
		unsigned int shift;
		u32 pages;
		int ret;
	} rows[] = {
		/* one page; an offset in it; a hole between two */
		{{{0x10000, 4096}}, 1, 0x11000, 0x10000, 0x10000, 4096, 12, 1, 0},
		{{{0x10010, 100}}, 1, 0x2010, 0x10000, 0x10000, 100, 13, 1, 0},
		{{{0x1f000, 4096}, {0x5000, 8192}, {0x9000, 10}}, 3, 0x3000, 0x1f000, 0x9000, 12298,
		 12, 4, 0},
		/* larger pages where all edges allow them */
		{{{0x200000, 0x200000}, {0x800000, 5}}, 2, 0, 0x200000, 0x800000, 0x200005, 21, 2, 0},
		/* an edge within a page; another offset than that of the address; nothing; a wrap */
		{{{0x10000, 4000}, {0x20000, 4096}}, 2, 0, .ret = -EINVAL},
		{{{0x10000, 4096}, {0x20004, 4096}}, 2, 0, .ret = -EINVAL},
		{{{0x10004, 16}}, 1, 0, .ret = -EINVAL},
		{{{0x10000, 0}}, 1, 0, .ret = -EINVAL},
		{{{UINT64_MAX - 10, 100}}, 1, UINT64_MAX - 10, .ret = -EINVAL},
		{{{0}}, 0, 0, .ret = -EINVAL},
	};
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ib_phys_buf buf[3];
		u64 iova = rows[i].iova;
		struct ib_mr_attr attr;
		struct ib_mr *mr;

		memcpy(buf, rows[i].buf, sizeof(buf));
		mr = ib_reg_phys_mr(w->pd, buf, rows[i].num, REMOTE, &iova);
		assert_int_equal(PTR_ERR_OR_ZERO(mr), rows[i].ret);
		if (rows[i].ret)
			continue;
		assert_int_equal(w->fake->pages.shift, rows[i].shift);
		assert_int_equal(w->fake->pages.num, rows[i].pages);
		assert_int_equal(w->fake->first_page, rows[i].first);
		assert_int_equal(w->fake->last_page, rows[i].last);
		assert_int_equal(ib_query_mr(mr, &attr), 0);
		assert_ptr_equal(attr.pd, w->pd);
		assert_int_equal(attr.device_virt_addr, iova);
		assert_int_equal(attr.size, rows[i].length);
		assert_int_equal(attr.mr_access_flags, REMOTE);
		assert_int_equal(attr.lkey, mr->lkey);
		assert_int_equal(attr.rkey, mr->rkey);
		assert_int_equal(ib_dereg_mr(mr), 0);
	}
}

static void a_region_of_buffers_changes(void **state)
{
	struct world *w = *state;
	struct ib_pd *other = ib_alloc_pd(&w->fake->ib, 0);
	struct ib_phys_buf buf = {0x10000, 4096}, two = {0x40000, 0x3000};
	u64 iova = 0, new_iova = 0x1000;
	struct ib_mr *mr = ib_reg_phys_mr(w->pd, &buf, 1, LOCAL, &iova);

	assert_int_equal(ib_rereg_phys_mr(mr, IB_MR_REREG_ACCESS, NULL, NULL, 0, REMOTE, NULL), 0);
	assert_int_equal(mr->access, REMOTE);
	assert_int_equal(w->fake->first_page, 0x10000); /* the pages stay */
	assert_int_equal(ib_rereg_phys_mr(mr, IB_MR_REREG_TRANS | IB_MR_REREG_PD, other, &two, 1, 0,
					  &new_iova),
			 0);
	assert_int_equal(w->fake->pages.num, 3);
	assert_int_equal(mr->iova, 0x1000);
	assert_int_equal(mr->length, 0x3000);
	assert_int_equal(ib_dealloc_pd(other), -EBUSY);
	/* nothing changes where it fails */
	w->fake->refuse_map = -EBUSY;
	assert_int_equal(ib_rereg_phys_mr(mr, IB_MR_REREG_TRANS, NULL, &buf, 1, 0, &iova), -EBUSY);
	assert_int_equal(mr->iova, 0x1000);
	w->fake->refuse_map = 0;
	assert_int_equal(ib_rereg_phys_mr(mr, 0, NULL, NULL, 0, 0, NULL), -EINVAL);
	assert_int_equal(ib_rereg_phys_mr(mr, IB_MR_REREG_ACCESS, NULL, NULL, 0,
					  IB_ACCESS_REMOTE_WRITE, NULL),
			 -EINVAL);
	assert_int_equal(ib_rereg_phys_mr(w->pd->internal_mr, IB_MR_REREG_ACCESS, NULL, NULL, 0, 0,
					  NULL),
			 -EINVAL);
	assert_int_equal(ib_dereg_mr(mr), 0);
	assert_int_equal(ib_dealloc_pd(other), 0);
}

static void a_region_with_a_window_stays(void **state)
{
	struct world *w = *state;
	struct ib_mr *mr = ib_get_dma_mr(w->pd, LOCAL);

	w->fake->bound = true;
	assert_int_equal(ib_dereg_mr(mr), -EBUSY);
	w->fake->bound = false;
	assert_int_equal(ib_dereg_mr(mr), 0);
}

/* --- fast registration --- */

static void entries_become_pages(void **state)
{
	static const struct {
		struct {
			uintptr_t at;
			unsigned int length;
		} sg[4];
		unsigned int skip;
		int nents, mapped;
		u32 pages;
		u64 length;
	} rows[] = {
		{{{0x10100, 100}}, 0, 1, 1, 1, 100},
		{{{0x10100, 100}}, 60, 1, 1, 1, 40},
		/* from within a page over whole ones to within another */
		{{{0x10800, 0x800}, {0x20000, 0x2000}, {0x5000, 16}}, 0, 3, 3, 4, 0x2810},
		/* a gap, at the end of one and at the start of the next */
		{{{0x10000, 0x800}, {0x20000, 0x1000}}, 0, 2, 1, 1, 0x800},
		{{{0x10000, 0x1000}, {0x20004, 0x1000}}, 0, 2, 1, 1, 0x1000},
		/* entries that follow each other within a page; one page twice */
		{{{0x10000, 0x800}, {0x10800, 0x900}}, 0, 2, 2, 2, 0x1100},
		{{{0x10000, 0x1000}, {0x10000, 0x1000}}, 0, 2, 2, 2, 0x2000},
		/* 16 pages are all that there is room for */
		{{{0x10000, 0x8000}, {0x20000, 0x8000}, {0x30000, 1}}, 0, 3, 2, 16, 0x10000},
		{{{0x10000, 0x11000}}, 0, 1, 0, 0, 0},
		/* nothing is left of the first entry */
		{{{0x10000, 16}}, 16, 1, -EINVAL, 0, 0},
	};
	struct world *w = *state;
	struct ib_mr *mr = ib_alloc_mr(w->pd, IB_MR_TYPE_MEM_REG, 16);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		unsigned int skip = rows[i].skip;
		struct scatterlist sg[4];

		sg_init_table(sg, (unsigned)rows[i].nents);
		for (int n = 0; n < rows[i].nents; n++)
			sg_set_buf(&sg[n], (void *)rows[i].sg[n].at, rows[i].sg[n].length);
		assert_int_equal(ib_map_mr_sg(mr, sg, rows[i].nents, &skip, 4096), rows[i].mapped);
		if (rows[i].mapped <= 0)
			continue;
		assert_int_equal(mr->iova, rows[i].sg[0].at + skip);
		assert_int_equal(mr->length, rows[i].length);
		assert_int_equal(w->fake->pages.num, rows[i].pages);
		assert_int_equal(w->fake->pages.length, rows[i].length);
		w->fake->pages.num = 0;
		assert_int_equal(ib_map_mr_sg_zbva(mr, sg, rows[i].nents, &skip, 4096), rows[i].mapped);
		assert_int_equal(mr->iova, (rows[i].sg[0].at + skip) & 0xfff);
		assert_int_equal(w->fake->pages.iova, mr->iova);
		assert_int_equal(w->fake->pages.num, rows[i].pages);
	}
	assert_int_equal(ib_dereg_mr(mr), 0);
}

static void what_is_no_region_for_it(void **state)
{
	struct world *w = *state;
	struct scatterlist sg;
	struct ib_mr *mr = ib_alloc_mr(w->pd, IB_MR_TYPE_MEM_REG, 16);

	sg_init_one(&sg, w, 64);
	assert_int_equal(ib_map_mr_sg(w->pd->internal_mr, &sg, 1, NULL, 4096), -EINVAL);
	assert_int_equal(ib_map_mr_sg(mr, &sg, 0, NULL, 4096), -EINVAL);
	assert_int_equal(ib_map_mr_sg(mr, &sg, 1, NULL, 2048), -EINVAL);
	assert_int_equal(ib_map_mr_sg(mr, &sg, 1, NULL, 5000), -EINVAL);
	assert_int_equal(PTR_ERR(ib_alloc_mr(w->pd, IB_MR_TYPE_SG_GAPS, 16)), -EOPNOTSUPP);
	assert_int_equal(PTR_ERR(ib_alloc_mr(w->pd, IB_MR_TYPE_MEM_REG, 0)), -EINVAL);
	assert_int_equal(PTR_ERR(ib_alloc_mr(w->pd, IB_MR_TYPE_MEM_REG, 17)), -EINVAL);
	mr->lkey = mr->rkey = 0x123ff;
	ib_update_fast_reg_key(mr, (u8)ib_inc_rkey(mr->rkey));
	assert_int_equal(mr->rkey, 0x12300);
	assert_int_equal(mr->lkey, 0x12300);
	assert_int_equal(ib_dereg_mr(mr), 0);
}

/* --- windows --- */

static void windows_are_of_a_domain(void **state)
{
	struct world *w = *state;
	struct ib_mw *one = ib_alloc_mw(w->pd), *two = ib_alloc_mw(w->pd, IB_MW_TYPE_2);
	struct ib_mw_bind bind = {.wr_id = 1};
	struct ib_cq_init_attr cq_attr = {.cqe = 4};
	struct ib_cq *cq = ib_create_cq(&w->fake->ib, NULL, NULL, NULL, &cq_attr);
	struct ib_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IB_QPT_RC};
	struct ib_qp *qp = ib_create_qp(w->pd, &init);
	u32 key = one->rkey;

	assert_int_equal(one->type, IB_MW_TYPE_1);
	assert_int_equal(two->type, IB_MW_TYPE_2);
	assert_int_equal(rdma_restrack_count(&w->fake->ib, RDMA_RESTRACK_MW), 2);
	assert_int_equal(ib_bind_mw(qp, two, &bind), -EINVAL); /* by IB_WR_BIND_MW alone */
	assert_int_equal(ib_bind_mw(qp, one, &bind), -EINVAL); /* the fake device refuses */
	assert_int_equal(one->rkey, key);
	assert_int_equal(ib_destroy_qp(qp), 0);
	assert_int_equal(ib_destroy_cq(cq), 0);
	assert_int_equal(ib_dealloc_pd(w->pd), -EBUSY);
	assert_int_equal(ib_dealloc_mw(one), 0);
	assert_int_equal(ib_dealloc_mw(two), 0);
	assert_int_equal(PTR_ERR(ib_alloc_mw(w->pd, (enum ib_mw_type)3)), -EINVAL);
	w->fake->ib.attrs.device_cap_flags = 0;
	assert_int_equal(PTR_ERR(ib_alloc_mw(w->pd)), -EOPNOTSUPP);
}

/* --- FMRs --- */

static void an_fmr_is_mapped_so_often(void **state)
{
	struct world *w = *state;
	struct ib_fmr_attr attr = {.max_pages = 4, .max_maps = 2, .page_shift = 12};
	struct ib_fmr *fmr = ib_alloc_fmr(w->pd, REMOTE, &attr);
	u64 pages[] = {0x1000, 0x5000, 0x3000, 0x9000, 0x2000};
	u32 key = fmr->rkey;
	LIST_HEAD(list);

	assert_int_equal(ib_map_phys_fmr(fmr, pages, 4, 0x8000), 0);
	assert_int_equal(w->fake->pages.length, 4 * 4096);
	assert_int_equal(fmr->rkey, ib_inc_rkey(key));
	assert_int_equal(fmr->lkey, fmr->rkey);
	assert_int_equal(ib_map_phys_fmr(fmr, pages, 5, 0), -EINVAL);
	assert_int_equal(ib_map_phys_fmr(fmr, pages, 0, 0), -EINVAL);
	assert_int_equal(ib_map_phys_fmr(fmr, pages, 1, 0x8004), -EINVAL);
	assert_int_equal(ib_map_phys_fmr(fmr, pages, 1, 0), 0);
	assert_int_equal(ib_map_phys_fmr(fmr, pages, 1, 0), -ENOMEM);
	list_add_tail(&fmr->list, &list);
	assert_int_equal(ib_unmap_fmr(&list), 0);
	assert_int_equal(w->fake->unmaps, 1);
	assert_int_equal(ib_map_phys_fmr(fmr, pages, 1, 0), 0);
	/* a map that fails leaves the key */
	w->fake->refuse_map = -EINVAL;
	key = fmr->rkey;
	assert_int_equal(ib_map_phys_fmr(fmr, pages, 1, 0), -EINVAL);
	assert_int_equal(fmr->mr->rkey, key);
	w->fake->refuse_map = 0;
	assert_int_equal(ib_dealloc_pd(w->pd), -EBUSY);
	assert_int_equal(ib_dealloc_fmr(fmr), 0);
}

static void fmrs_that_are_refused(void **state)
{
	static const struct ib_fmr_attr bad[] = {
		{0, 1, 12}, {4, 0, 12}, {4, 4, 12}, {4, 1, 11}, {4, 1, 32}};
	struct world *w = *state;
	struct ib_fmr_attr good = {4, 1, 12};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct ib_fmr_attr attr = bad[i];

		assert_int_equal(PTR_ERR(ib_alloc_fmr(w->pd, LOCAL, &attr)), -EINVAL);
	}
	assert_int_equal(PTR_ERR(ib_alloc_fmr(w->pd, IB_ACCESS_REMOTE_WRITE, &good)), -EINVAL);
	w->fake->ib.attrs.max_fmr = 0;
	assert_int_equal(PTR_ERR(ib_alloc_fmr(w->pd, LOCAL, &good)), -ENOMEM);
}

/* --- pools --- */

static void on_flush(struct ib_fmr_pool *pool, void *arg)
{
	((struct world *)arg)->flushes++;
}

static struct ib_fmr_pool *make_pool(struct world *w, int size, int watermark, bool cache)
{
	struct ib_fmr_pool_param param = {.max_pages_per_fmr = 2,
					  .page_shift = 12,
					  .access = REMOTE,
					  .pool_size = size,
					  .dirty_watermark = watermark,
					  .flush_function = on_flush,
					  .flush_arg = w,
					  .cache = cache};
	struct ib_fmr_pool *pool = ib_create_fmr_pool(w->pd, &param);

	assert_false(IS_ERR(pool));
	return pool;
}

static struct ib_pool_fmr *map(struct ib_fmr_pool *pool, u64 page)
{
	return ib_fmr_pool_map_phys(pool, &page, 1, 0);
}

static void use_up(struct ib_fmr_pool *pool, struct world *w)
{
	/* max_map_per_fmr */
	for (int i = 0; i < 3; i++)
		assert_int_equal(ib_fmr_pool_unmap(map(pool, (u64)(i + 1) << 12)), 0);
}

static void a_pool_unmaps_late(void **state)
{
	struct world *w = *state;
	struct ib_fmr_pool *pool = make_pool(w, 1, 1, false);
	struct ib_pool_fmr *fmr = map(pool, 0x1000);

	assert_int_equal(PTR_ERR(map(pool, 0x2000)), -EAGAIN);
	assert_int_equal(ib_fmr_pool_unmap(fmr), 0);
	assert_int_equal(w->fake->unmaps, 0);
	assert_int_equal(ib_flush_fmr_pool(pool), 0); /* now it is */
	assert_int_equal(w->fake->unmaps, 1);
	assert_int_equal(w->flushes, 1);
	assert_int_equal(ib_flush_fmr_pool(pool), 0); /* which has nothing to do */
	assert_int_equal(w->fake->unmaps, 1);
	ib_destroy_fmr_pool(pool);
}

static void the_watermark_causes_a_flush(void **state)
{
	struct world *w = *state;
	struct ib_fmr_pool *pool = make_pool(w, 2, 2, false);

	use_up(pool, w);
	use_up(pool, w);
	assert_int_equal(w->flushes, 0); /* not on the stack of ib_fmr_pool_unmap() */
	assert_int_equal(PTR_ERR(map(pool, 0x2000)), -EAGAIN);
	rt_sim_run(w->rt, 100);
	assert_int_equal(w->flushes, 1);
	assert_int_equal(w->fake->unmaps, 2);
	/* a pool that goes calls nobody */
	use_up(pool, w);
	use_up(pool, w);
	ib_destroy_fmr_pool(pool);
	rt_sim_run(w->rt, 100);
	assert_int_equal(w->flushes, 1);
}

static void the_same_pages_are_mapped_once(void **state)
{
	struct world *w = *state;
	struct ib_fmr_pool *pool = make_pool(w, 2, 1, true);
	struct ib_pool_fmr *fmr = map(pool, 0x1000), *other;
	u64 two[] = {0x1000, 0x2000}, page = 0x1000;

	assert_ptr_equal(map(pool, 0x1000), fmr); /* in use */
	assert_int_equal(ib_fmr_pool_unmap(fmr), 0);
	assert_int_equal(ib_fmr_pool_unmap(fmr), 0);
	assert_ptr_equal(map(pool, 0x1000), fmr); /* or free */
	assert_int_equal(w->fake->maps, 1);
	other = ib_fmr_pool_map_phys(pool, two, 2, 0);
	assert_ptr_not_equal(other, fmr);
	assert_int_equal(PTR_ERR(ib_fmr_pool_map_phys(pool, &page, 1, 4096)), -EAGAIN);
	assert_int_equal(ib_fmr_pool_unmap(fmr), 0);
	ib_flush_fmr_pool(pool); /* it has no pages any more */
	assert_ptr_equal(map(pool, 0x1000), fmr);
	assert_int_equal(w->fake->maps, 3);
	ib_destroy_fmr_pool(pool); /* with what is in use */
}

/* a dirty one is not found, since its consumer waits for the flush */
static void a_dirty_one_is_not_used(void **state)
{
	struct world *w = *state;
	struct ib_fmr_pool *pool = make_pool(w, 1, 2, true);

	use_up(pool, w);
	assert_int_equal(PTR_ERR(map(pool, 0x3000)), -EAGAIN);
	ib_flush_fmr_pool(pool);
	assert_int_equal(ib_fmr_pool_unmap(map(pool, 0x3000)), 0);
	ib_destroy_fmr_pool(pool);
}

static void pools_that_are_refused(void **state)
{
	struct world *w = *state;
	struct ib_fmr_pool_param good = {2, 12, LOCAL, 4, 1, NULL, NULL, 1}, p;

#define REFUSED(change)                                                                  \
	do {                                                                             \
		p = good;                                                                \
		change;                                                                  \
		assert_int_equal(PTR_ERR(ib_create_fmr_pool(w->pd, &p)), -EINVAL);       \
	} while (0)
	REFUSED(p.pool_size = 0);
	REFUSED(p.dirty_watermark = 0);
	REFUSED(p.max_pages_per_fmr = 0);
	REFUSED(p.page_shift = 5);
	REFUSED(p.page_shift = -1);
	REFUSED(p.access = IB_ACCESS_REMOTE_WRITE);
	w->fake->ib.attrs.max_fmr = 2; /* the third one fails, and no other stays */
	assert_int_equal(PTR_ERR(ib_create_fmr_pool(w->pd, &good)), -ENOMEM);
	assert_int_equal(rdma_restrack_count(&w->fake->ib, RDMA_RESTRACK_FMR), 0);
}

static void what_a_client_leaves_is_freed(void **state)
{
	struct world *w = *state;
	u32 count[RDMA_RESTRACK_MAX] = {0};
	struct ib_fmr_attr attr = {4, 1, 12};

	use_up(make_pool(w, 3, 1, true), w);
	assert_false(IS_ERR(ib_alloc_fmr(w->pd, LOCAL, &attr)));
	assert_false(IS_ERR(ib_alloc_mr(w->pd, IB_MR_TYPE_MEM_REG, 4)));
	assert_false(IS_ERR(ib_alloc_mw(w->pd)));
	rdma_restrack_forget(&w->fake->ib, "core", count);
	assert_int_equal(count[RDMA_RESTRACK_FMR], 4);
	assert_int_equal(count[RDMA_RESTRACK_MR], 1);
	assert_int_equal(count[RDMA_RESTRACK_MW], 1);
	assert_int_equal(count[RDMA_RESTRACK_PD], 1);
	rt_sim_run(w->rt, 100);
	assert_int_equal(w->flushes, 0);
	w->pd = ib_alloc_pd(&w->fake->ib, 0);
}

int main(void)
{
#define IN(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		IN(buffers_become_pages),
		IN(a_region_of_buffers_changes),
		IN(a_region_with_a_window_stays),
		IN(entries_become_pages),
		IN(what_is_no_region_for_it),
		IN(windows_are_of_a_domain),
		IN(an_fmr_is_mapped_so_often),
		IN(fmrs_that_are_refused),
		IN(a_pool_unmaps_late),
		IN(the_watermark_causes_a_flush),
		IN(the_same_pages_are_mapped_once),
		IN(a_dirty_one_is_not_used),
		IN(pools_that_are_refused),
		IN(what_a_client_leaves_is_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
