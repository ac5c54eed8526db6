/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Raw packet QPs: a frame is a message, without GRH, Q_Key and address handle. */
#include "world.h"

#include <errno.h>

#include "base/bytes.h"
#include "wire/frame.h"

#define FRAME_MAX (4096 + WIRE_FRAME_OVERHEAD)

static void make_raw(struct side *s, uint32_t qpn, uint16_t dlid)
{
	struct eng_qp_init init = {.qpn = qpn, .type = IBV_QPT_UD, .is_raw = true, .pd = 1,
				   .send_cq = s->cq, .recv_cq = s->cq, .max_send_wr = 32,
				   .max_recv_wr = 32, .max_send_sge = 2, .max_recv_sge = 2,
				   .max_inline = 64, .ctx = s};

	s->page->port[0].frame_mtu = 4096;
	assert_int_equal(eng_qp_create(s->engine, &init, &s->qp), 0);
	to_rts(s, dlid, 0);
}

static void connect_raw(struct world *w)
{
	make_raw(&w->a, 0x11, 2);
	make_raw(&w->b, 0x22, 1);
}

/* as softibd does when it has found the QP, by a rule with the tag @tag */
static void deliver_tagged(struct world *w, uint32_t qpn, uint32_t tag)
{
	struct cable *c = w->a.out;

	for (unsigned i = c->head; i != c->tail; i++) {
		uint8_t *bytes = c->packet[i % WIRE_PACKETS].bytes;

		assert_int_equal(get_be24(bytes + 8 + 5), WIRE_QPN_FRAME);
		assert_int_equal(get_be16(bytes + 2), WIRE_LID_MULTICAST);
		put_be24(bytes + 8 + 5, qpn);
		put_be32(bytes + 8 + 12, tag);
	}
	run(w);
}

static void deliver_to(struct world *w, uint32_t qpn)
{
	deliver_tagged(w, qpn, 0);
}

static void a_frame_arrives_as_it_was_sent(void **state)
{
	static const uint32_t sizes[] = {WIRE_FRAME_MIN, 60, 61, 1514, FRAME_MAX};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct world *w = *state;

	connect_raw(w);
	fill(&w->a, FRAME_MAX);
	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct ibv_wc wc;

		recv_into(&w->b, i, 0, FRAME_MAX);
		assert_int_equal(send(&w->a, wr, sizes[i]), 0);
		deliver_to(w, 0x22);
		assert_int_equal(take(&w->a).status, IBV_WC_SUCCESS);
		wc = take(&w->b);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.byte_len, sizes[i]);
		assert_int_equal(wc.wc_flags, 0);
		assert_memory_equal(w->a.memory, w->b.memory, sizes[i]);
	}
	assert_int_equal(w->b.async_events, 0);
}

static void a_completion_has_the_tag_of_the_rule(void **state)
{
	static const uint32_t tags[] = {0, 1, 0xfedcba98};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct world *w = *state;

	connect_raw(w);
	for (unsigned i = 0; i < ARRAY_SIZE(tags); i++) {
		struct ibv_wc wc;

		recv_into(&w->b, i, 0, 100);
		assert_int_equal(send(&w->a, wr, 60), 0);
		deliver_tagged(w, 0x22, tags[i]);
		wc = take(&w->a);
		assert_int_equal(eng_wc_flow_tag(&wc), 0);
		wc = take(&w->b);
		assert_int_equal(eng_wc_flow_tag(&wc), tags[i]);
	}
}

static void inline_frames(void **state)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE};
	struct world *w = *state;

	connect_raw(w);
	fill(&w->a, 64);
	recv_into(&w->b, 1, 0, 100);
	assert_int_equal(send(&w->a, wr, 64), 0);
	deliver_to(w, 0x22);
	assert_int_equal(take(&w->b).byte_len, 64);
	assert_memory_equal(w->a.memory, w->b.memory, 64);
}

static void what_is_no_frame_is_refused(void **state)
{
	static const enum ibv_wr_opcode others[] = {IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
						    IBV_WR_RDMA_READ, IBV_WR_SEND_WITH_INV};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct world *w = *state;

	connect_raw(w);
	assert_int_equal(send(&w->a, wr, WIRE_FRAME_MIN - 1), -EINVAL);
	assert_int_equal(send(&w->a, wr, FRAME_MAX + 1), -EINVAL);
	for (unsigned i = 0; i < ARRAY_SIZE(others); i++) {
		wr.opcode = others[i];
		assert_int_equal(send(&w->a, wr, 64), -EINVAL);
	}
	assert_int_equal(w->a.out->tail, w->a.out->head);
}

/* as datagrams, it is dropped silently */
static void receives_that_are_missing_or_short(void **state)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct world *w = *state;

	connect_raw(w);
	assert_int_equal(send(&w->a, wr, 64), 0);
	deliver_to(w, 0x22);
	expect_empty(&w->b);
	recv_into(&w->b, 1, 0, 63);
	assert_int_equal(send(&w->a, wr, 64), 0);
	deliver_to(w, 0x22);
	expect_empty(&w->b);
}

/* a work queue that is moved to RTR only, as a rule finds it, raises no event */
static void a_first_frame_is_no_connection(void **state)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct world *w = *state;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	connect_raw(w);
	assert_int_equal(eng_qp_modify(w->b.qp, &attr, IBV_QP_STATE), 0);
	to_rtr(&w->b, 1, 0);
	recv_into(&w->b, 1, 0, 100);
	assert_int_equal(send(&w->a, wr, 64), 0);
	deliver_to(w, 0x22);
	assert_int_equal(take(&w->b).byte_len, 64);
	assert_int_equal(w->b.async_events, 0);
}

/* --- packet pacing --- */

#define FRAME_BYTES 1000
#define KBPS	    8000 /* a frame takes a millisecond */

static struct ibv_qp_attr rate(uint32_t kbps)
{
	return (struct ibv_qp_attr){.rate_limit = kbps};
}

static void post_frames(struct side *s, unsigned num)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

	while (num--)
		assert_int_equal(send(s, wr, FRAME_BYTES), 0);
}

static unsigned frames_sent(const struct world *w)
{
	return w->a.out->tail;
}

/* let @ns pass, in steps at which the engine itself asks to be called */
static void pass(struct world *w, uint64_t ns)
{
	mono_t end = mono_add(clock_now, ns);

	while (!mono_before(end, eng_expiry(w->a.engine))) {
		if (mono_before(clock_now, eng_expiry(w->a.engine)))
			clock_now = eng_expiry(w->a.engine);
		eng_tick(w->a.engine);
	}
	clock_now = end;
	eng_tick(w->a.engine);
}

static void a_paced_qp_keeps_to_its_rate(void **state)
{
	struct world *w = *state;
	struct ibv_qp_attr attr = rate(KBPS);

	connect_raw(w);
	assert_int_equal(eng_qp_modify(w->a.qp, &attr, IBV_QP_RATE_LIMIT), 0);
	eng_qp_query(w->a.qp, &attr);
	assert_int_equal(attr.rate_limit, KBPS);
	post_frames(&w->a, 30);
	assert_int_equal(frames_sent(w), 2); /* the default lets it be a millisecond ahead */
	for (unsigned ms = 1; ms <= 28; ms++) {
		pass(w, NSEC_PER_MSEC - 1);
		assert_int_equal(frames_sent(w), 1 + ms);
		pass(w, 1);
		assert_int_equal(frames_sent(w), 2 + ms);
	}
	/* it completes as it is sent */
	for (unsigned i = 0; i < 30; i++)
		assert_int_equal(take(&w->a).status, IBV_WC_SUCCESS);
	assert_true(eng_idle(w->a.engine));
}

/* nothing turns the engine but its timer: a QP that waits costs nothing until then */
static void a_paced_qp_sleeps_until_its_turn(void **state)
{
	struct world *w = *state;

	connect_raw(w);
	assert_int_equal(eng_qp_pace(w->a.qp, KBPS, FRAME_BYTES, FRAME_BYTES), 0);
	post_frames(&w->a, 2);
	assert_int_equal(frames_sent(w), 1);
	assert_true(eng_idle(w->a.engine));
	assert_int_equal(eng_expiry(w->a.engine).ns, clock_now.ns + NSEC_PER_MSEC);
	assert_int_equal(eng_wake_by(w->a.engine, clock_now).ns, clock_now.ns + NSEC_PER_MSEC);
}

static void a_burst_is_what_an_idle_qp_may_send(void **state)
{
	struct world *w = *state;

	connect_raw(w);
	assert_int_equal(eng_qp_pace(w->a.qp, KBPS, 5 * FRAME_BYTES, FRAME_BYTES), 0);
	for (unsigned i = 1; i <= 3; i++) {
		clock_now = mono_add(clock_now, NSEC_PER_SEC); /* nobody turns the engine */
		post_frames(&w->a, 5);
		assert_int_equal(frames_sent(w), 5 * i);
	}
	post_frames(&w->a, 1);
	assert_int_equal(frames_sent(w), 15);
	pass(w, NSEC_PER_MSEC);
	assert_int_equal(frames_sent(w), 16);
	/* without a length, frames as long as the port carries are meant: none is left over */
	assert_int_equal(eng_qp_pace(w->a.qp, KBPS, 5 * FRAME_BYTES, 0), 0);
	post_frames(&w->a, 5);
	assert_int_equal(frames_sent(w), 17);
}

static void a_limit_goes_with_its_removal_and_with_reset(void **state)
{
	struct world *w = *state;
	struct ibv_qp_attr attr = rate(1);

	connect_raw(w);
	assert_int_equal(eng_qp_modify(w->a.qp, &attr, IBV_QP_RATE_LIMIT), 0);
	post_frames(&w->a, 5);
	assert_int_equal(frames_sent(w), 1);
	attr.rate_limit = 0;
	assert_int_equal(eng_qp_modify(w->a.qp, &attr, IBV_QP_RATE_LIMIT), 0);
	assert_int_equal(frames_sent(w), 5);
	assert_int_equal(eng_qp_pace(w->a.qp, 1, 0, 0), 0);
	attr.qp_state = IBV_QPS_RESET;
	assert_int_equal(eng_qp_modify(w->a.qp, &attr, IBV_QP_STATE), 0);
	to_rts(&w->a, 2, 0);
	post_frames(&w->a, 5);
	assert_int_equal(frames_sent(w), 10);
}

static void what_cannot_be_paced_is_refused(void **state)
{
	struct world *w = *state;
	struct ibv_qp_attr attr = rate(KBPS);

	connect(w, IBV_QPT_UD);
	assert_int_equal(eng_qp_modify(w->a.qp, &attr, IBV_QP_RATE_LIMIT), -EINVAL);
	assert_int_equal(eng_qp_pace(w->a.qp, KBPS, 0, 0), -EINVAL);
	make_raw(&w->a, 0x33, 2);
	assert_int_equal(eng_qp_pace(w->a.qp, 0, 1, 0), -EINVAL);
	assert_int_equal(eng_qp_pace(w->a.qp, 0, 0, 1), -EINVAL);
	assert_int_equal(eng_qp_pace(w->a.qp, 0, 0, 0), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_frame_arrives_as_it_was_sent),
		CASE(a_completion_has_the_tag_of_the_rule),
		CASE(inline_frames),
		CASE(what_is_no_frame_is_refused),
		CASE(receives_that_are_missing_or_short),
		CASE(a_first_frame_is_no_connection),
		CASE(a_paced_qp_keeps_to_its_rate),
		CASE(a_paced_qp_sleeps_until_its_turn),
		CASE(a_burst_is_what_an_idle_qp_may_send),
		CASE(a_limit_goes_with_its_removal_and_with_reset),
		CASE(what_cannot_be_paced_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
