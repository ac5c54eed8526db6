/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory windows between two engines: B binds parts of a region, A uses their keys by packets and
 * by data-path windows.
 */
#include "windows.h"

#define REGION 0x201 /* B's, which windows may be bound to; no right for peers */
#define WINDOW 0x301
#define BOUND 0x302 /* the key that it is bound by */
#define OTHER_PD 2

static struct ibv_mr region = {.lkey = REGION};
static struct ibv_mw window = {.rkey = WINDOW};

static int with_window(void **state, enum ibv_mw_type type)
{
	struct eng_mr_attr attr = {
		.key = REGION,
		.pd = 1,
		.length = MEMORY,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND,
	};
	struct world *w;

	connected(state);
	other_asks = true;
	w = *state;
	attr.addr = w->b.memory;
	attr.iova = (uintptr_t)w->b.memory;
	assert_int_equal(eng_mr_add(w->b.engine, &attr), 0);
	assert_int_equal(eng_mw_add(w->b.engine, WINDOW, 1, type), 0);
	return 0;
}

static int with_type_1(void **state)
{
	return with_window(state, IBV_MW_TYPE_1);
}

static int with_type_2(void **state)
{
	return with_window(state, IBV_MW_TYPE_2);
}

static enum ibv_wc_status local(struct world *w, struct ibv_send_wr wr)
{
	wr.send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(eng_post_send(w->b.qp, &wr, NULL, NULL), 0);
	return take(&w->b).status;
}

static struct ibv_send_wr bind_wr(struct world *w, uint32_t at, uint32_t len, int access)
{
	return (struct ibv_send_wr){
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = {&window,
			    BOUND,
			    {&region, (uintptr_t)w->b.memory + at, len, (unsigned)access}},
	};
}

static void bind(struct world *w, uint32_t at, uint32_t len, int access)
{
	assert_int_equal(local(w, bind_wr(w, at, len, access)), IBV_WC_SUCCESS);
}

static enum ibv_wc_status invalidate(struct world *w, uint32_t key)
{
	return local(w, (struct ibv_send_wr){.opcode = IBV_WR_LOCAL_INV,
					     .invalidate_rkey = key});
}

/* A's request for B's memory by @key; of its status */
static enum ibv_wc_status use(struct world *w, enum ibv_wr_opcode op, uint32_t key, uint64_t va,
			      uint32_t len)
{
	struct ibv_send_wr wr = {.opcode = op};

	wr.wr.rdma.remote_addr = va;
	wr.wr.rdma.rkey = key;
	assert_int_equal(send(&w->a, wr, len), 0);
	assert_true(by_wire(w));
	run(w);
	return take(&w->a).status;
}

static enum ibv_wc_status write_by(struct world *w, uint32_t key, uint32_t at, uint32_t len)
{
	return use(w, IBV_WR_RDMA_WRITE, key, (uintptr_t)w->b.memory + at, len);
}

static void a_bound_window_gives_access_to_its_part(void **state)
{
	struct world *w = *state;

	fill(&w->a, 256);
	bind(w, 1000, 64, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(write_by(w, BOUND, 1000, 64), IBV_WC_SUCCESS);
	assert_memory_equal(w->b.memory + 1000, w->a.memory, 64);
	assert_int_equal(write_by(w, BOUND, 1001, 64), IBV_WC_REM_ACCESS_ERR);
}

/* its key gives nothing before it is bound, nor does the old one after */
static void only_the_key_of_the_bind_holds(void **state)
{
	struct world *w = *state;

	bind(w, 0, 64, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(write_by(w, WINDOW, 0, 8), IBV_WC_REM_ACCESS_ERR);
}

static void a_free_window_gives_nothing(void **state)
{
	assert_int_equal(write_by(*state, WINDOW, 0, 8), IBV_WC_REM_ACCESS_ERR);
}

/* whatever the region allows */
static void it_has_rights_of_its_own(void **state)
{
	struct world *w = *state;

	bind(w, 0, 64, IBV_ACCESS_REMOTE_READ);
	assert_int_equal(use(w, IBV_WR_RDMA_READ, BOUND, (uintptr_t)w->b.memory, 64),
			 IBV_WC_SUCCESS);
	assert_int_equal(write_by(w, BOUND, 0, 8), IBV_WC_REM_ACCESS_ERR);
}

static void a_zero_based_one_counts_from_its_beginning(void **state)
{
	struct world *w = *state;

	fill(&w->a, 64);
	bind(w, 500, 64, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED);
	assert_int_equal(use(w, IBV_WR_RDMA_WRITE, BOUND, 32, 32), IBV_WC_SUCCESS);
	assert_memory_equal(w->b.memory + 532, w->a.memory, 32);
}

/* A is granted what BOUND gives access to, as the library arranges it */
static void grant_bound(struct world *w)
{
	struct eng_offer offer;
	struct eng_grant g = {.qpn = 0x11, .rkey = BOUND, .connection = asked_for, .peer = 7, .window = 1,
			      .epoch = w->a.page->route_epoch, .flow = &page_a.flow[3]};

	assert_int_equal(eng_window_offer(w->b.engine, 0x22, BOUND, &offer), 0);
	g.access = offer.access;
	g.va = offer.mr.iova;
	g.length_bytes = offer.mr.length;
	g.base = offer.mr.addr;
	g.qp_token = &page_b.token[offer.token];
	g.qp_value = offer.value;
	g.window_token = &page_b.token[offer.key_token];
	g.window_value = offer.key_value;
	assert_true(eng_window_grant(w->a.engine, &g));
}

/* B's window is bound to the first 4 KiB, and A has a data-path window into them */
static struct world *bound_and_granted(void **state)
{
	struct world *w = *state;

	bind(w, 0, 4096, IBV_ACCESS_REMOTE_WRITE);
	for (int i = 0; i < 2; i++) /* by packets; then it asks */
		assert_int_equal(write_by(w, BOUND, 0, 8), IBV_WC_SUCCESS);
	assert_int_equal(asks, 1);
	grant_bound(w);
	return w;
}

static bool posts_past_the_wire(struct world *w, uint32_t at, uint32_t len)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};

	wr.wr.rdma.remote_addr = (uintptr_t)w->b.memory + at;
	wr.wr.rdma.rkey = BOUND;
	assert_int_equal(send(&w->a, wr, len), 0);
	return !by_wire(w);
}

/* its offer is of its own part and its own rights, not of the region's */
static void a_data_path_window_is_granted_for_its_part(void **state)
{
	struct world *w = *state;
	struct eng_offer offer;

	assert_int_equal(eng_window_offer(w->b.engine, 0x22, WINDOW, &offer), -EACCES);
	bind(w, 4096, 100, IBV_ACCESS_REMOTE_READ);
	assert_int_equal(eng_window_offer(w->b.engine, 0x22, WINDOW, &offer), -EACCES);
	assert_int_equal(eng_window_offer(w->b.engine, 0x22, REGION, &offer), -EACCES);
	assert_int_equal(eng_window_offer(w->b.engine, 0x22, BOUND, &offer), 0);
	assert_ptr_equal(offer.mr.addr, w->b.memory + 4096);
	assert_int_equal(offer.mr.length, 100);
	assert_int_equal(offer.access, IBV_ACCESS_REMOTE_READ);
	assert_int_not_equal(offer.key_token, offer.token);
	assert_int_equal(eng_window_offer(w->b.engine, 0x22, KEY, &offer), 0);
	assert_int_equal(offer.key_token, 0);
}

static int offer_to_another_qp(struct world *w)
{
	struct eng_offer offer;

	bind(w, 0, 64, IBV_ACCESS_REMOTE_WRITE);
	make_qp(&w->a, IBV_QPT_RC, 0x33, NULL);
	make_qp(&w->b, IBV_QPT_RC, 0x44, NULL);
	to_rts(&w->a, 2, 0x44);
	to_rts(&w->b, 1, 0x33);
	return eng_window_offer(w->b.engine, 0x44, BOUND, &offer);
}

static void one_of_type_1_is_granted_to_the_peers_of_its_domain(void **state)
{
	assert_int_equal(offer_to_another_qp(*state), 0);
}

static void one_of_type_2_is_granted_to_one_peer(void **state)
{
	assert_int_equal(offer_to_another_qp(*state), -EACCES);
}

static void a_write_by_its_key_needs_no_packet(void **state)
{
	struct world *w = bound_and_granted(state);

	fill(&w->a, 256);
	assert_true(posts_past_the_wire(w, 100, 256));
	assert_memory_equal(w->b.memory + 100, w->a.memory, 256);
	assert_int_equal(take(&w->a).status, IBV_WC_SUCCESS);
	assert_int_equal(eng_window_operations(w->a.engine), 1);
	/* outside of it: packets, which are refused */
	assert_false(posts_past_the_wire(w, 4095, 2));
	run(w);
	assert_int_equal(take(&w->a).status, IBV_WC_REM_ACCESS_ERR);
}

/* Nobody who saw the old token is at work when it is unbound, and no peer has a mapping when the
 * program hears of it. A's next request is sent as packets, and is refused. */
static void expect_unbound(struct world *w, unsigned unbound_before)
{
	assert_int_equal(sections_ended, 1);
	assert_int_equal(unbounds, unbound_before + 1);
	assert_false(posts_past_the_wire(w, 0, 8));
	run(w);
	assert_int_equal(take(&w->a).status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(eng_window_operations(w->a.engine), 0);
	expect_empty(&w->b);
	assert_int_equal(unbounds, unbound_before + 1); /* once */
}

static void an_invalidated_one_stops_its_peer_at_once(void **state)
{
	struct world *w = bound_and_granted(state);
	struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = BOUND,
				 .send_flags = IBV_SEND_SIGNALED};

	assert_int_equal(eng_post_send(w->b.qp, &wr, NULL, NULL), 0);
	run(w);
	assert_int_equal(sections_ended, 1);
	assert_int_equal(unbounds, 0);
	assert_int_equal(take(&w->b).status, IBV_WC_SUCCESS);
	expect_unbound(w, 0);
}

static void one_that_the_peer_invalidates_is_unbound_when_it_is_told(void **state)
{
	struct world *w = bound_and_granted(state);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = BOUND};

	assert_int_equal(recv_into(&w->b, 5, 4096, 64), 0);
	assert_int_equal(send(&w->a, wr, 8), 0);
	run(w);
	assert_int_equal(take(&w->a).status, IBV_WC_SUCCESS);
	assert_int_equal(take(&w->b).wc_flags, IBV_WC_WITH_INV);
	expect_unbound(w, 0);
}

static void one_that_is_bound_anew_stops_its_peer(void **state)
{
	struct world *w = bound_and_granted(state);
	struct ibv_send_wr wr = bind_wr(w, 8192, 64, IBV_ACCESS_REMOTE_WRITE);

	wr.bind_mw.rkey = BOUND + 1;
	assert_int_equal(local(w, wr), IBV_WC_SUCCESS);
	expect_unbound(w, 0);
}

static void one_that_is_freed_stops_its_peer(void **state)
{
	struct world *w = bound_and_granted(state);

	assert_int_equal(eng_mw_del(w->b.engine, WINDOW), 0);
	expect_unbound(w, 0);
}

/* its memory ends for another reason: it goes on by packets, until A is granted it again */
static void a_revoked_grant_is_granted_again(void **state)
{
	struct world *w = bound_and_granted(state);

	eng_mw_revoke(w->b.engine, KEY); /* no memory window's */
	assert_true(posts_past_the_wire(w, 0, 8));
	take(&w->a);
	eng_mw_revoke(w->b.engine, BOUND);
	assert_false(posts_past_the_wire(w, 0, 8));
	run(w);
	assert_int_equal(take(&w->a).status, IBV_WC_SUCCESS);
	assert_true(eng_mw_is_bound(w->b.engine, BOUND));
	assert_false(eng_mw_is_bound(w->b.engine, WINDOW));
	grant_bound(w);
	assert_true(posts_past_the_wire(w, 0, 8));
	assert_int_equal(sections_ended + unbounds, 0);
}

static void its_key_is_for_peers_alone(void **state)
{
	struct world *w = *state;
	struct ibv_sge sge = {(uintptr_t)w->b.memory, 8, BOUND};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED};

	bind(w, 0, 64, IBV_ACCESS_REMOTE_READ);
	/* it is among the keys that were used last, or is it? */
	assert_int_equal(use(w, IBV_WR_RDMA_READ, BOUND, (uintptr_t)w->b.memory, 8),
			 IBV_WC_SUCCESS);
	assert_int_equal(eng_post_send(w->b.qp, &wr, NULL, NULL), 0);
	run(w);
	assert_int_equal(take(&w->b).status, IBV_WC_LOC_PROT_ERR);
}

static void a_region_with_a_window_stays(void **state)
{
	struct world *w = *state;

	bind(w, 0, 64, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(eng_mr_del(w->b.engine, REGION), -EBUSY);
	assert_int_equal(eng_mr_del(w->b.engine, BOUND), -ENOENT);
	assert_int_equal(eng_mw_del(w->b.engine, WINDOW), 0);
	assert_int_equal(eng_mw_del(w->b.engine, WINDOW), -ENOENT);
	assert_int_equal(eng_mr_del(w->b.engine, REGION), 0);
	assert_int_equal(write_by(w, BOUND, 0, 8), IBV_WC_REM_ACCESS_ERR);
}

static void it_is_invalidated_here_and_bound_again(void **state)
{
	struct world *w = *state;

	bind(w, 0, 64, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(invalidate(w, BOUND), IBV_WC_SUCCESS);
	bind(w, 64, 64, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(write_by(w, BOUND, 64, 64), IBV_WC_SUCCESS);
	assert_int_equal(write_by(w, BOUND, 0, 64), IBV_WC_REM_ACCESS_ERR);
}

static void the_peer_invalidates_it(void **state)
{
	struct world *w = *state;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = BOUND};
	struct ibv_wc wc;

	bind(w, 0, 64, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(recv_into(&w->b, 5, 4096, 64), 0);
	assert_int_equal(send(&w->a, wr, 8), 0);
	run(w);
	assert_int_equal(take(&w->a).status, IBV_WC_SUCCESS);
	wc = take(&w->b);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, BOUND);
	assert_int_equal(eng_mr_del(w->b.engine, REGION), 0);
	assert_int_equal(write_by(w, BOUND, 0, 8), IBV_WC_REM_ACCESS_ERR);
}

static void the_peer_invalidates_no_region(void **state)
{
	struct world *w = *state;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = REGION};

	assert_int_equal(recv_into(&w->b, 5, 4096, 64), 0);
	assert_int_equal(send(&w->a, wr, 8), 0);
	run(w);
	assert_int_equal(take(&w->a).status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(take(&w->b).status, IBV_WC_LOC_ACCESS_ERR);
}

/* 2B: it serves the peer of the QP that bound it, as long as that QP lives */
static void a_window_of_type_2_is_of_one_qp(void **state)
{
	struct world *w = *state;
	struct eng_qp *binder = w->b.qp;

	bind(w, 0, 64, IBV_ACCESS_REMOTE_WRITE);
	make_qp(&w->a, IBV_QPT_RC, 0x33, NULL);
	make_qp(&w->b, IBV_QPT_RC, 0x44, NULL);
	to_rts(&w->a, 2, 0x44);
	to_rts(&w->b, 1, 0x33);
	assert_int_equal(invalidate(w, BOUND), IBV_WC_MW_BIND_ERR);
	eng_qp_destroy(w->b.qp);
	make_qp(&w->b, IBV_QPT_RC, 0x44, NULL);
	to_rts(&w->b, 1, 0x33);
	assert_int_equal(write_by(w, BOUND, 0, 8), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(eng_mr_del(w->b.engine, REGION), -EBUSY);
	eng_qp_destroy(binder);
	assert_int_equal(eng_mr_del(w->b.engine, REGION), 0);
}

static void a_window_of_type_1_is_of_its_domain(void **state)
{
	struct world *w = *state;

	bind(w, 0, 64, IBV_ACCESS_REMOTE_WRITE);
	make_qp(&w->a, IBV_QPT_RC, 0x33, NULL);
	make_qp(&w->b, IBV_QPT_RC, 0x44, NULL);
	to_rts(&w->a, 2, 0x44);
	to_rts(&w->b, 1, 0x33);
	assert_int_equal(write_by(w, BOUND, 0, 8), IBV_WC_SUCCESS);
	/* bound while it is, and to nothing */
	bind(w, 64, 64, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(eng_mr_del(w->b.engine, REGION), -EBUSY);
	bind(w, 0, 0, 0);
	assert_int_equal(eng_mr_del(w->b.engine, REGION), 0);
	assert_int_equal(write_by(w, BOUND, 64, 8), IBV_WC_REM_ACCESS_ERR);
}

static void a_window_of_type_1_is_not_invalidated(void **state)
{
	struct world *w = *state;

	bind(w, 0, 64, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(invalidate(w, BOUND), IBV_WC_MW_BIND_ERR);
}

static void binds_that_are_refused(void **state)
{
	for (unsigned i = 0; i < 10; i++) {
		struct ibv_mr other = {.lkey = KEY}; /* no right to bind */
		struct ibv_mw second = {.rkey = 0x401};
		struct ibv_send_wr wr;
		struct world *w;

		with_window(state, i == 9 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
		w = *state;
		wr = bind_wr(w, 0, 64, IBV_ACCESS_REMOTE_WRITE);
		switch (i) {
		case 0:
			wr.bind_mw.bind_info.mr = &other;
			break;
		case 1:
			wr.bind_mw.rkey = 0x402; /* another's key */
			break;
		case 2:
			wr.bind_mw.bind_info.length = MEMORY + 1;
			break;
		case 3:
			wr.bind_mw.bind_info.addr--;
			break;
		case 4: /* bound twice */
			bind(w, 0, 64, IBV_ACCESS_REMOTE_WRITE);
			break;
		case 5:
			wr.bind_mw.bind_info.length = 0;
			break;
		case 6: /* the window of another protection domain */
			eng_mw_del(w->b.engine, WINDOW);
			eng_mw_add(w->b.engine, WINDOW, OTHER_PD, IBV_MW_TYPE_2);
			break;
		case 7:
			eng_mw_del(w->b.engine, WINDOW);
			break;
		case 8: /* a window is no region */
			bind(w, 0, 64, IBV_ACCESS_REMOTE_WRITE);
			other.lkey = BOUND;
			eng_mw_add(w->b.engine, 0x401, 1, IBV_MW_TYPE_2);
			wr.bind_mw = (typeof(wr.bind_mw)){&second, 0x402, {&other, 0, 1, 0}};
			break;
		case 9:
			wr.bind_mw.bind_info.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
			break;
		}
		assert_int_equal(local(w, wr), IBV_WC_MW_BIND_ERR);
		if (i < 9)
			teardown(state);
	}
}

static void requests_that_are_not_posted(void **state)
{
	struct world *w = *state;
	struct ibv_send_wr wr = bind_wr(w, 0, 64, 0), *bad = NULL;

	wr.bind_mw.bind_info.mr = NULL;
	assert_int_equal(eng_post_send(w->b.qp, &wr, &bad, NULL), -EINVAL);
	assert_ptr_equal(bad, &wr);
	wr.bind_mw.mw = NULL;
	assert_int_equal(eng_post_send(w->b.qp, &wr, &bad, NULL), -EINVAL);
	assert_int_equal(eng_mw_add(w->b.engine, WINDOW, 1, IBV_MW_TYPE_2), -EEXIST);
}

#define OF_TYPE(type, name) cmocka_unit_test_setup_teardown(name, with_type_##type, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF_TYPE(2, a_bound_window_gives_access_to_its_part),
		OF_TYPE(1, a_bound_window_gives_access_to_its_part),
		OF_TYPE(2, only_the_key_of_the_bind_holds),
		OF_TYPE(2, a_free_window_gives_nothing),
		OF_TYPE(2, it_has_rights_of_its_own),
		OF_TYPE(2, a_zero_based_one_counts_from_its_beginning),
		OF_TYPE(2, a_data_path_window_is_granted_for_its_part),
		OF_TYPE(1, one_of_type_1_is_granted_to_the_peers_of_its_domain),
		OF_TYPE(2, one_of_type_2_is_granted_to_one_peer),
		OF_TYPE(1, a_write_by_its_key_needs_no_packet),
		OF_TYPE(2, a_write_by_its_key_needs_no_packet),
		OF_TYPE(2, an_invalidated_one_stops_its_peer_at_once),
		OF_TYPE(2, one_that_the_peer_invalidates_is_unbound_when_it_is_told),
		OF_TYPE(1, one_that_is_bound_anew_stops_its_peer),
		OF_TYPE(1, one_that_is_freed_stops_its_peer),
		OF_TYPE(2, one_that_is_freed_stops_its_peer),
		OF_TYPE(2, a_revoked_grant_is_granted_again),
		OF_TYPE(2, its_key_is_for_peers_alone),
		OF_TYPE(2, a_region_with_a_window_stays),
		OF_TYPE(2, it_is_invalidated_here_and_bound_again),
		OF_TYPE(2, the_peer_invalidates_it),
		OF_TYPE(2, the_peer_invalidates_no_region),
		OF_TYPE(2, a_window_of_type_2_is_of_one_qp),
		OF_TYPE(1, a_window_of_type_1_is_of_its_domain),
		OF_TYPE(1, a_window_of_type_1_is_not_invalidated),
		cmocka_unit_test_teardown(binds_that_are_refused, teardown),
		OF_TYPE(2, requests_that_are_not_posted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
