/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Regions that are made of pages: B has one of pages that stand in its memory the other way
 * round, and A, or B itself, uses its keys.
 */
#include "world.h"

#define REGION 0x501 /* B's, free at first */
#define SECOND 0x502 /* its next key */
#define PAGES  4
#define PAGE   4096u
#define IOVA   (0x70000000u + 100) /* it begins within its first page */
#define BYTES  (PAGES * PAGE - 200)
#define RIGHTS                                                                           \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |     \
	 IBV_ACCESS_REMOTE_ATOMIC)

static uint64_t page[PAGES];
static struct eng_mapping mapping;

/* the memory that @offset of the region is in */
static uint8_t *byte_at(uint32_t offset)
{
	uint32_t at = IOVA % PAGE + offset;

	return (uint8_t *)(uintptr_t)page[at / PAGE] + at % PAGE;
}

static int with_region(void **state)
{
	struct world *w;

	setup(state);
	w = *state;
	for (unsigned i = 0; i < PAGES; i++)
		page[i] = ALIGN_UP((uintptr_t)w->b.memory, PAGE) + (PAGES - 1 - i) * PAGE;
	mapping = (struct eng_mapping){IOVA, BYTES, 12, PAGES, page};
	connect(w, IBV_QPT_RC);
	return eng_paged_add(w->b.engine, REGION, 1, PAGES);
}

static int mapped(void **state)
{
	struct world *w;

	with_region(state);
	w = *state;
	return eng_paged_map(w->b.engine, SECOND, 1, RIGHTS, &mapping);
}

static int staged(void **state)
{
	struct world *w;

	with_region(state);
	w = *state;
	return eng_paged_stage(w->b.engine, REGION, &mapping);
}

static enum ibv_wc_status ends(struct side *s, struct world *w)
{
	run(w);
	return take(s).status;
}

static enum ibv_wc_status use(struct world *w, enum ibv_wr_opcode op, uint32_t key, uint32_t at,
			      uint32_t len)
{
	struct ibv_send_wr wr = {.opcode = op};

	wr.wr.rdma.remote_addr = IOVA + at;
	wr.wr.rdma.rkey = key;
	assert_int_equal(send(&w->a, wr, len), 0);
	return ends(&w->a, w);
}

static enum ibv_wc_status write_by(struct world *w, uint32_t key)
{
	return use(w, IBV_WR_RDMA_WRITE, key, 0, 64);
}

static enum ibv_wc_status make(struct world *w, struct eng_register reg)
{
	struct ibv_wc wc;

	reg.send_flags = IBV_SEND_SIGNALED;
	reg.wr_id = 9;
	assert_int_equal(eng_post_register(w->b.qp, &reg), 0);
	run(w);
	wc = take(&w->b);
	assert_int_equal(wc.wr_id, 9);
	if (wc.status == IBV_WC_SUCCESS)
		assert_int_equal((unsigned)wc.opcode, TP_WC_REG_MR);
	return wc.status;
}

static enum ibv_wc_status register_it(struct world *w)
{
	return make(w, (struct eng_register){
			       .key = REGION, .new_key = SECOND, .access = RIGHTS});
}

static enum ibv_wc_status invalidate(struct world *w, uint32_t key)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV,
				 .invalidate_rkey = key,
				 .send_flags = IBV_SEND_SIGNALED};

	assert_int_equal(eng_post_send(w->b.qp, &wr, NULL, NULL), 0);
	return ends(&w->b, w);
}

static void expect_same(const struct world *w, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		assert_int_equal(*byte_at(i), w->a.memory[i]);
}

/* --- its pages are one buffer --- */

static void a_peer_writes_over_the_edges_of_pages(void **state)
{
	struct world *w = *state;

	fill(&w->a, BYTES);
	assert_int_equal(use(w, IBV_WR_RDMA_WRITE, SECOND, 0, BYTES), IBV_WC_SUCCESS);
	expect_same(w, BYTES);
}

static void a_peer_reads_over_them(void **state)
{
	struct world *w = *state;

	for (uint32_t i = 0; i < BYTES; i++)
		*byte_at(i) = (uint8_t)(i * 5 + i / 256);
	assert_int_equal(use(w, IBV_WR_RDMA_READ, SECOND, 0, BYTES), IBV_WC_SUCCESS);
	expect_same(w, BYTES);
}

static void it_is_sent_and_received_into(void **state)
{
	struct world *w = *state;
	struct ibv_sge sge = {IOVA, BYTES, SECOND};
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

	fill(&w->a, BYTES);
	assert_int_equal(eng_post_recv(w->b.qp, &recv, &bad_recv), 0);
	assert_int_equal(send(&w->a, wr, BYTES), 0);
	assert_int_equal(ends(&w->b, w), IBV_WC_SUCCESS);
	assert_int_equal(take(&w->a).status, IBV_WC_SUCCESS);
	expect_same(w, BYTES);
	memset(w->a.memory, 0, BYTES);
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	assert_int_equal(recv_into(&w->a, 1, 0, BYTES), 0);
	assert_int_equal(eng_post_send(w->b.qp, &wr, NULL, NULL), 0);
	assert_int_equal(ends(&w->a, w), IBV_WC_SUCCESS);
	expect_same(w, BYTES);
}

static void a_word_of_it_is_added_to(void **state)
{
	struct world *w = *state;
	struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
	uint32_t at = 2 * PAGE - IOVA % PAGE; /* the first word of a page */

	*(uint64_t *)(void *)byte_at(at) = 5;
	wr.wr.atomic.remote_addr = IOVA + at;
	wr.wr.atomic.rkey = SECOND;
	wr.wr.atomic.compare_add = 7;
	assert_int_equal(send(&w->a, wr, 8), 0);
	assert_int_equal(ends(&w->a, w), IBV_WC_SUCCESS);
	assert_int_equal(*(uint64_t *)(void *)byte_at(at), 12);
}

static void nothing_beside_it_is_touched(void **state)
{
	for (unsigned i = 0; i < 3; i++) {
		static const uint32_t at[] = {(uint32_t)-1, BYTES - 63, BYTES};
		struct world *w;

		mapped(state);
		w = *state;
		assert_int_equal(use(w, IBV_WR_RDMA_WRITE, SECOND, at[i], 64),
				 IBV_WC_REM_ACCESS_ERR);
		if (i < 2)
			teardown(state);
	}
}

static void neighbours_are_one_piece(void **state)
{
	struct world *w = *state;
	uint64_t len = BYTES;

	for (unsigned i = 0; i < PAGES; i++)
		page[i] = ALIGN_UP((uintptr_t)w->b.memory, PAGE) + i * PAGE;
	assert_int_equal(eng_paged_map(w->b.engine, SECOND, 1, RIGHTS, &mapping), 0);
	assert_ptr_equal(eng_mem_run(w->b.qp, 1, SECOND, IOVA, &len, 0, TP_KEY_SEND), byte_at(0));
	assert_int_equal(len, BYTES);
	assert_ptr_equal(eng_mem(w->b.engine, 1, SECOND, IOVA, BYTES, 0), byte_at(0));
}

static void a_window_on_it_has_its_pages(void **state)
{
	struct world *w = *state;
	struct ibv_mr region = {.lkey = SECOND};
	struct ibv_mw window = {.rkey = 0x601};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {&window, 0x602,
			    {&region, IOVA + 300, 2 * PAGE, IBV_ACCESS_REMOTE_WRITE}}};

	assert_int_equal(eng_paged_map(w->b.engine, SECOND, 1, RIGHTS | IBV_ACCESS_MW_BIND, &mapping),
			 0);
	assert_int_equal(eng_mw_add(w->b.engine, 0x601, 1, IBV_MW_TYPE_2), 0);
	assert_int_equal(eng_post_send(w->b.qp, &wr, NULL, NULL), 0);
	assert_int_equal(ends(&w->b, w), IBV_WC_SUCCESS);
	fill(&w->a, 2 * PAGE);
	assert_int_equal(use(w, IBV_WR_RDMA_WRITE, 0x602, 300, 2 * PAGE), IBV_WC_SUCCESS);
	for (uint32_t i = 0; i < 2 * PAGE; i++)
		assert_int_equal(*byte_at(300 + i), w->a.memory[i]);
	/* and holds it */
	assert_true(eng_mr_is_bound(w->b.engine, SECOND));
	assert_int_equal(eng_paged_map(w->b.engine, SECOND, 1, RIGHTS, &mapping), -EBUSY);
	assert_int_equal(eng_mr_del(w->b.engine, SECOND), -EBUSY);
	assert_int_equal(invalidate(w, SECOND), IBV_WC_MW_BIND_ERR);
}

/* --- mapped by calls --- */

static void each_map_has_its_key(void **state)
{
	struct world *w = *state;

	assert_int_equal(write_by(w, SECOND), IBV_WC_SUCCESS);
	assert_int_equal(eng_paged_map(w->b.engine, REGION, 1, RIGHTS, &mapping), 0);
	assert_int_equal(write_by(w, SECOND), IBV_WC_REM_ACCESS_ERR);
}

static void what_is_mapped_to_nothing_gives_nothing(void **state)
{
	struct world *w = *state;

	assert_int_equal(eng_paged_map(w->b.engine, SECOND, 1, 0, NULL), 0);
	assert_null(eng_mem(w->b.engine, 1, SECOND, IOVA, 1, 0));
	assert_int_equal(write_by(w, SECOND), IBV_WC_REM_ACCESS_ERR);
}

static void more_pages_get_more_room(void **state)
{
	struct world *w = *state;
	uint64_t twice[2 * PAGES];
	struct eng_mapping more = {0, 2 * PAGES * PAGE, 12, 2 * PAGES, twice};

	memcpy(twice, page, sizeof(page));
	memcpy(twice + PAGES, page, sizeof(page));
	assert_int_equal(eng_paged_map(w->b.engine, SECOND, 1, RIGHTS, &more), 0);
	assert_ptr_equal(eng_mem(w->b.engine, 1, SECOND, 5 * PAGE, PAGE, 0),
			 (void *)(uintptr_t)page[1]);
	assert_int_equal(eng_mr_del(w->b.engine, REGION), 0); /* by any of its keys */
}

static void mappings_that_are_refused(void **state)
{
	struct engine *e = ((struct world *)*state)->b.engine;
	struct eng_mapping m = mapping;

#define REFUSED(change)                                                                  \
	do {                                                                             \
		m = mapping;                                                             \
		change;                                                                  \
		assert_int_equal(eng_paged_map(e, REGION, 1, RIGHTS, &m), -EINVAL);      \
		assert_int_equal(eng_paged_stage(e, REGION, &m), -EINVAL);               \
	} while (0)
	REFUSED(m.page_shift = 11);
	REFUSED(m.page_shift = 32);
	REFUSED(m.page_shift = 13); /* and the pages are none of that size */
	REFUSED(m.length_bytes = 0);
	REFUSED(m.length_bytes = BYTES + 200);
	REFUSED(m.num_pages = PAGES - 1);
	REFUSED(m.iova = UINT64_MAX - 100);
	page[1]++;
	REFUSED();
	page[1]--;
	assert_int_equal(eng_paged_map(e, REGION, 1, IBV_ACCESS_REMOTE_WRITE, &mapping), -EINVAL);
	assert_int_equal(eng_paged_map(e, 0x101, 1, RIGHTS, &mapping), -ENOENT);
	assert_int_equal(eng_paged_stage(e, 0x801, &mapping), -ENOENT);
	assert_int_equal(eng_paged_add(e, REGION + 1, 1, 1), -EEXIST);
}

/* --- fast registration --- */

static void a_request_registers_it(void **state)
{
	struct world *w = *state;

	fill(&w->a, BYTES);
	assert_int_equal(register_it(w), IBV_WC_SUCCESS);
	assert_int_equal(use(w, IBV_WR_RDMA_WRITE, SECOND, 0, BYTES), IBV_WC_SUCCESS);
	expect_same(w, BYTES);
	assert_int_equal(write_by(w, REGION), IBV_WC_REM_ACCESS_ERR);
}

static void it_is_invalidated_and_registered_again(void **state)
{
	struct world *w = *state;

	assert_int_equal(register_it(w), IBV_WC_SUCCESS);
	assert_int_equal(invalidate(w, SECOND), IBV_WC_SUCCESS);
	assert_null(eng_mem(w->b.engine, 1, SECOND, IOVA, 1, 0));
	assert_int_equal(make(w, (struct eng_register){.key = SECOND, .new_key = SECOND + 1,
						       .access = RIGHTS}),
			 IBV_WC_SUCCESS);
	assert_int_equal(write_by(w, SECOND + 1), IBV_WC_SUCCESS);
	assert_int_equal(write_by(w, SECOND), IBV_WC_REM_ACCESS_ERR);
}

/* what it is stays until a request says otherwise */
static void staging_changes_nothing_yet(void **state)
{
	struct world *w = *state;

	assert_int_equal(register_it(w), IBV_WC_SUCCESS);
	mapping.iova += PAGE;
	assert_int_equal(eng_paged_stage(w->b.engine, REGION, &mapping), 0);
	assert_int_equal(write_by(w, SECOND), IBV_WC_SUCCESS);
	assert_int_equal(invalidate(w, SECOND), IBV_WC_SUCCESS);
	assert_int_equal(register_it(w), IBV_WC_SUCCESS);
	assert_int_equal(write_by(w, SECOND), IBV_WC_REM_ACCESS_ERR);
}

static enum ibv_wc_status peer_invalidates(struct world *w, uint32_t key)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = key};

	assert_int_equal(recv_into(&w->b, 5, 65536, 64), 0);
	assert_int_equal(send(&w->a, wr, 8), 0);
	return ends(&w->a, w);
}

static void the_peer_invalidates_it(void **state)
{
	struct world *w = *state;
	struct ibv_wc wc;

	assert_int_equal(register_it(w), IBV_WC_SUCCESS);
	assert_int_equal(peer_invalidates(w, SECOND), IBV_WC_SUCCESS);
	wc = take(&w->b);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, SECOND);
	assert_int_equal(write_by(w, SECOND), IBV_WC_REM_ACCESS_ERR);
}

static void the_peer_invalidates_none_without_rights(void **state)
{
	struct world *w = *state;

	assert_int_equal(make(w, (struct eng_register){.key = REGION, .new_key = SECOND,
						       .access = IBV_ACCESS_LOCAL_WRITE}),
			 IBV_WC_SUCCESS);
	assert_int_equal(peer_invalidates(w, SECOND), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(take(&w->b).status, IBV_WC_LOC_ACCESS_ERR);
	assert_non_null(eng_mem(w->b.engine, 1, SECOND, IOVA, 1, 0));
}

static void registrations_that_fail(void **state)
{
	static const struct eng_register bad[] = {
		{.key = SECOND, .new_key = SECOND, .access = IBV_ACCESS_REMOTE_WRITE},
		{.key = REGION, .new_key = 0x601, .access = RIGHTS}, /* another's key */
		{.key = 0x101, .new_key = 0x102, .access = RIGHTS},  /* another kind of region */
		{.key = 0x601, .new_key = 0x602, .access = RIGHTS},  /* of another PD */
		{.key = 0x701, .new_key = 0x702, .access = RIGHTS},  /* never staged */
	};

	for (unsigned i = 0; i <= ARRAY_SIZE(bad); i++) {
		struct world *w;

		staged(state);
		w = *state;
		assert_int_equal(eng_paged_add(w->b.engine, 0x601, 2, PAGES), 0);
		assert_int_equal(eng_paged_stage(w->b.engine, 0x601, &mapping), 0);
		assert_int_equal(eng_paged_add(w->b.engine, 0x701, 1, PAGES), 0);
		if (i < ARRAY_SIZE(bad)) {
			assert_int_equal(make(w, bad[i]), IBV_WC_MW_BIND_ERR);
			teardown(state);
			continue;
		}
		assert_int_equal(register_it(w), IBV_WC_SUCCESS);
		assert_int_equal(register_it(w), IBV_WC_MW_BIND_ERR); /* it is not free */
	}
}

/* the opcode is the midlayer's alone */
static void a_program_registers_nothing(void **state)
{
	struct world *w = *state;
	struct ibv_send_wr wr = {.opcode = TP_WR_REG_MR, .send_flags = IBV_SEND_SIGNALED}, *bad;

	assert_int_equal(eng_post_send(w->b.qp, &wr, &bad, NULL), -EINVAL);
	assert_ptr_equal(bad, &wr);
}

int main(void)
{
#define IN(test, setup) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		IN(a_peer_writes_over_the_edges_of_pages, mapped),
		IN(a_peer_reads_over_them, mapped),
		IN(it_is_sent_and_received_into, mapped),
		IN(a_word_of_it_is_added_to, mapped),
		cmocka_unit_test_teardown(nothing_beside_it_is_touched, teardown),
		IN(neighbours_are_one_piece, mapped),
		IN(a_window_on_it_has_its_pages, mapped),
		IN(each_map_has_its_key, mapped),
		IN(what_is_mapped_to_nothing_gives_nothing, mapped),
		IN(more_pages_get_more_room, mapped),
		IN(mappings_that_are_refused, with_region),
		IN(a_request_registers_it, staged),
		IN(it_is_invalidated_and_registered_again, staged),
		IN(staging_changes_nothing_yet, staged),
		IN(the_peer_invalidates_it, staged),
		IN(the_peer_invalidates_none_without_rights, staged),
		cmocka_unit_test_teardown(registrations_that_fail, teardown),
		IN(a_program_registers_nothing, with_region),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
