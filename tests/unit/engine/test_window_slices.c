/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A long request lets go of the engine's lock between two slices of its copy:
 * whatever other threads do there, no byte is copied on grounds that are gone, and
 * the request has one completion, in its turn.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#include "windows.h"

#define BYTES (2 * SLICE_BYTES)
#define OWN_KEY 0x202

/** struct copy - from A's first half of @memory into the second */
struct copy {
	struct world *w;
	char *memory;
	struct eng_grant g;
	void (*between)(struct copy *c);
};

static struct copy copy;

static void unlocked(void *ctx)
{
	copy.between(&copy);
}

static void begin(void **state)
{
	struct world *w = granted(state);
	struct eng_mr_attr mr = {.key = OWN_KEY, .pd = 1, .length = BYTES};

	copy = (struct copy){.w = w, .memory = calloc(2, BYTES), .g = w->a.qp->slot->g};
	memset(copy.memory, 'w', BYTES);
	mr.addr = copy.memory;
	mr.iova = (uintptr_t)copy.memory;
	assert_int_equal(eng_mr_add(w->a.engine, &mr), 0);
	copy.g.va = 4096;
	copy.g.length_bytes = BYTES;
	copy.g.base = copy.memory + BYTES;
	assert_true(eng_window_grant(w->a.engine, &copy.g));
}

/* Return: the completion */
static struct ibv_wc write_with(void (*between)(struct copy *c))
{
	struct world *w = copy.w;
	struct ibv_sge sge = {(uintptr_t)copy.memory, BYTES, OWN_KEY};
	struct ibv_send_wr *bad, wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1,
				       .opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.rdma = {.remote_addr = 4096, .rkey = KEY}};

	copy.between = between;
	w->a.engine->cfg.unlocked = unlocked;
	w->a.engine->put_off = true;
	assert_int_equal(eng_post_send(w->a.qp, &wr, &bad, av_of), 0);
	w->a.engine->cfg.unlocked = NULL;
	run(w);
	return take(&w->a);
}

static void end(void)
{
	free(copy.memory);
}

static void expect_half(enum ibv_wc_status is, enum ibv_wc_status status)
{
	const char *to = copy.memory + BYTES;

	assert_int_equal(is, status);
	assert_memory_equal(to, copy.memory, SLICE_BYTES);
	assert_int_equal(to[SLICE_BYTES], 0);
	assert_memory_equal(to + SLICE_BYTES, to + SLICE_BYTES + 1, BYTES - SLICE_BYTES - 1);
	assert_int_equal(eng_window_operations(copy.w->a.engine), 0);
	end();
}

static void to_error(void *qp)
{
	tp_qp_modify(((struct eng_qp *)qp)->tp, IBV_QPS_ERR, clock_now);
}

/* a NAK has come, say */
static void qp_fails(struct copy *c)
{
	eng_locked(c->w->a.engine, to_error, c->w->a.qp);
}

static void a_qp_that_fails_copies_no_more(void **state)
{
	begin(state);
	expect_half(write_with(qp_fails).status, IBV_WC_WR_FLUSH_ERR);
}

static void peer_goes(struct copy *c)
{
	eng_window_forget(c->w->a.engine, 7, ENG_WINDOW_ALL);
}

static void memory_that_is_forgotten_is_written_no_more(void **state)
{
	begin(state);
	/* by packets B's responder, which never had such a key's address, refuses it */
	expect_half(write_with(peer_goes).status, IBV_WC_REM_ACCESS_ERR);
}

/* of another QP, whose window is elsewhere */
static void slot_is_taken(struct copy *c)
{
	struct slot *s = slot_of(c->w->a.engine->windows, 0x11, KEY);

	s->g.qpn = 0x99;
	s->g.base = c->memory + BYTES;
}

static void a_slot_that_others_take_is_not_used(void **state)
{
	begin(state);
	expect_half(write_with(slot_is_taken).status, IBV_WC_REM_ACCESS_ERR);
}

static void grant_shrinks(struct copy *c)
{
	c->g.length_bytes = SLICE_BYTES;
	assert_true(eng_window_grant(c->w->a.engine, &c->g));
}

static void a_smaller_grant_is_not_exceeded(void **state)
{
	begin(state);
	expect_half(write_with(grant_shrinks).status, IBV_WC_REM_ACCESS_ERR);
}

static void key_ends(struct copy *c)
{
	assert_int_equal(eng_mr_del(c->w->a.engine, OWN_KEY), 0);
}

static void a_key_that_ends_is_read_no_more(void **state)
{
	begin(state);
	expect_half(write_with(key_ends).status, IBV_WC_LOC_PROT_ERR);
}

/* --- another thread posts to the same QP --- */

static _Atomic bool posted;
static pthread_t thread;

static void *post_second(void *ctx)
{
	struct ibv_send_wr wr = {.wr_id = 2, .opcode = IBV_WR_RDMA_WRITE,
				 .wr.rdma = {.remote_addr = 4096, .rkey = KEY}};

	assert_int_equal(send(&copy.w->a, wr, 8), 0);
	posted = true;
	return NULL;
}

/* it waits for its turn; one that did not would be done by now */
static void others_post(struct copy *c)
{
	pthread_create(&thread, NULL, post_second, NULL);
	for (int i = 0; i < 10000 && !posted; i++)
		sched_yield();
}

static void requests_of_other_threads_keep_their_order(void **state)
{
	begin(state);
	posted = false;
	assert_int_equal(write_with(others_post).wr_id, 1);
	pthread_join(thread, NULL);
	assert_int_equal(take(&copy.w->a).wr_id, 2);
	assert_int_equal(eng_window_operations(copy.w->a.engine), 2);
	end();
}

/* --- the section --- */

static char *guarded;
static uint64_t section_inside;

static void on_fault(int number)
{
	section_inside = page_a.section;
	mprotect(guarded, 4096, PROT_READ | PROT_WRITE);
}

/* the target waits for who says that it is inside: whenever a byte is stored */
static void who_copies_says_so(void **state)
{
	struct world *w = granted(state);
	struct sigaction was, sa = {.sa_handler = on_fault};
	struct eng_grant g = w->a.qp->slot->g;

	guarded = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(guarded, MAP_FAILED);
	g.base = guarded;
	assert_true(eng_window_grant(w->a.engine, &g));
	sigaction(SIGSEGV, &sa, &was);
	write_to(w, 0, 8);
	sigaction(SIGSEGV, &was, NULL);
	assert_memory_equal(guarded, w->a.memory, 8);
	assert_int_equal(section_inside, 7);
	assert_int_equal(page_a.section, 0);
	munmap(guarded, 4096);
}

static unsigned polls;

static void another_polls(struct copy *c)
{
	struct ibv_wc wc[64];

	polls++;
	assert_int_equal(eng_cq_poll(c->w->a.cq, 64, wc), 0);
}

/* what waits for its turn is copied by who polls; meanwhile another polls the same CQ */
static void polls_of_others_take_nothing_twice(void **state)
{
	struct tp_sge sge = {.length_bytes = BYTES, .lkey = OWN_KEY};
	struct tp_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .num_sge = 1,
				.flags = IBV_SEND_SIGNALED, .remote_addr = 4096, .rkey = KEY,
				.length_bytes = BYTES, .sge = &sge};
	struct ibv_wc wc[64];
	struct world *w;

	begin(state);
	w = copy.w;
	sge.addr = (uintptr_t)copy.memory;
	assert_true(tp_qp_hold(w->a.qp->tp));
	list_add_tail(&w->a.qp->held_node, &w->a.engine->held);
	copy.between = another_polls;
	assert_int_equal(tp_qp_post_send(w->a.qp->tp, &wr), 0);
	w->a.engine->cfg.unlocked = unlocked;
	w->a.engine->put_off = true;
	assert_int_equal(eng_cq_poll(w->a.cq, 64, wc), 1);
	w->a.engine->cfg.unlocked = NULL;
	assert_int_equal(wc[0].wr_id, 1);
	assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
	assert_int_equal(eng_window_operations(w->a.engine), 1);
	expect_empty(&w->a);
	assert_true(polls > 0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_qp_that_fails_copies_no_more),
		CASE(memory_that_is_forgotten_is_written_no_more),
		CASE(a_slot_that_others_take_is_not_used),
		CASE(a_smaller_grant_is_not_exceeded),
		CASE(a_key_that_ends_is_read_no_more),
		CASE(requests_of_other_threads_keep_their_order),
		CASE(polls_of_others_take_nothing_twice),
		CASE(who_copies_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
