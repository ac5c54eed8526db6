/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tag matching: messages of A to a QP of B whose SRQ has a list of tagged buffers. Each case
 * that sends runs by packets and by lanes.
 */
#include <infiniband/tm_types.h>

#include "lanes.h"

#define PAYLOAD_AT 16384 /* of a rendezvous, in A's memory */
#define BUFFERS_AT 65536 /* in B's memory */
#define RING_AT 32768
#define TAG 0x1234567890abcdefull
#define EXACT UINT64_MAX

/** struct tagged - A and B, whose QP is of an SRQ that matches tags */
struct tagged {
	struct joined *j; /* NULL: by packets */
	struct world *w;
	struct eng_srq *srq;
};

/* @max_send_wr: of B's QP, which stays in RTR if @passive */
static struct tagged *begin_with(bool by_lanes, uint32_t max_send_wr, bool passive)
{
	struct tagged *t = calloc(1, sizeof(*t));
	struct eng_qp_init init;
	struct engine *e;
	void *state;

	if (by_lanes) {
		t->j = join();
		t->w = t->j->w;
		eng_qp_destroy(t->w->a.qp);
		eng_qp_destroy(t->w->b.qp);
	} else {
		setup(&state);
		t->w = state;
	}
	e = t->w->b.engine;
	assert_int_equal(eng_srq_create(e, 1, 16, 2, 0, NULL, &t->srq), 0);
	assert_int_equal(eng_srq_match_tags(t->srq, t->w->b.cq, 8), 0);
	make_qp(&t->w->a, IBV_QPT_RC, 0x11, NULL);
	init = (struct eng_qp_init){.qpn = 0x22, .type = IBV_QPT_RC, .pd = 1,
				    .send_cq = t->w->b.cq, .recv_cq = t->w->b.cq, .srq = t->srq,
				    .max_send_wr = max_send_wr, .max_send_sge = 1};
	assert_int_equal(eng_qp_create(e, &init, &t->w->b.qp), 0);
	to_rts(&t->w->a, 2, 0x22);
	(passive ? to_rtr : to_rts)(&t->w->b, 1, 0x11);
	return t;
}

static struct tagged *begin(bool by_lanes)
{
	return begin_with(by_lanes, 32, false);
}

static void end(struct tagged *t)
{
	void *state = t->w;

	if (t->j)
		part(t->j);
	else
		teardown(&state);
	free(t);
}

static struct ibv_sge sge_of(struct side *s, uint32_t at, uint32_t len)
{
	return (struct ibv_sge){(uintptr_t)s->memory + at, len, 0x101};
}

/* Return: the handle. The buffer @wr_id is the @wr_id-th of those at BUFFERS_AT */
static uint32_t add_masked(struct tagged *t, uint64_t wr_id, uint64_t tag, uint64_t mask,
			   uint32_t len, uint32_t seen)
{
	struct ibv_sge sge = sge_of(&t->w->b, BUFFERS_AT + (uint32_t)wr_id * 8192, len);
	struct ibv_ops_wr wr = {.wr_id = 1000 + wr_id,
				.opcode = IBV_WR_TAG_ADD,
				.tm = {.unexpected_cnt = seen,
				       .add = {.recv_wr_id = wr_id,
					       .sg_list = &sge,
					       .num_sge = 1,
					       .tag = tag,
					       .mask = mask}}};

	assert_int_equal(eng_srq_post_ops(t->srq, &wr, NULL), 0);
	return wr.tm.handle;
}

static uint32_t add(struct tagged *t, uint64_t wr_id, uint64_t tag)
{
	return add_masked(t, wr_id, tag, EXACT, 8192, 0);
}

/* an operation that is signalled. Return: its completion */
static struct ibv_wc operate(struct tagged *t, struct ibv_ops_wr wr)
{
	struct ibv_wc wc;

	wr.flags |= IBV_OPS_SIGNALED;
	assert_int_equal(eng_srq_post_ops(t->srq, &wr, NULL), 0);
	wc = take(&t->w->b);
	assert_int_equal(wc.wr_id, wr.wr_id);
	return wc;
}

static void give(struct tagged *t, uint64_t wr_id)
{
	struct ibv_sge sge = sge_of(&t->w->b, RING_AT, 8192);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(eng_srq_post_recv(t->srq, &wr, &bad), 0);
}

static void put_header(struct tagged *t, uint8_t opcode, uint64_t tag)
{
	struct ibv_tmh header = {.opcode = opcode, .app_ctx = htobe32(77), .tag = htobe64(tag)};

	memcpy(t->w->a.memory, &header, sizeof(header));
}

/* Return: the status of the SEND of a message with @len bytes behind its header */
static enum ibv_wc_status message(struct tagged *t, uint8_t opcode, uint64_t tag, uint32_t len)
{
	fill(&t->w->a, sizeof(struct ibv_tmh) + len);
	put_header(t, opcode, tag);
	assert_int_equal(send(&t->w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND},
			      (uint32_t)sizeof(struct ibv_tmh) + len),
			 0);
	run(t->w);
	return take(&t->w->a).status;
}

/* ask for the fetch of @len bytes at PAYLOAD_AT; @extra bytes of the sender's own follow */
static void request(struct tagged *t, uint64_t tag, uint32_t len, uint32_t rkey, uint32_t extra)
{
	struct ibv_rvh rvh = {.va = htobe64((uintptr_t)t->w->a.memory + PAYLOAD_AT),
			      .rkey = htobe32(rkey),
			      .len = htobe32(len)};

	put_header(t, IBV_TMH_RNDV, tag);
	memcpy(t->w->a.memory + sizeof(struct ibv_tmh), &rvh, sizeof(rvh));
	for (uint32_t i = 0; i < len; i++)
		t->w->a.memory[PAYLOAD_AT + i] = (uint8_t)(i * 5 + 1);
	assert_int_equal(send(&t->w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND},
			      (uint32_t)(sizeof(struct ibv_tmh) + sizeof(rvh)) + extra),
			 0);
	run(t->w);
}

static void expect_received(struct tagged *t, uint64_t wr_id, enum ibv_wc_opcode opcode,
			    unsigned flags)
{
	struct ibv_wc wc = take(&t->w->b);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.opcode, opcode);
	assert_int_equal(wc.wc_flags, flags);
	assert_int_equal(wc.qp_num, 0x22);
}

/* by packets and by lanes, of one packet and of many */
static void a_message_goes_into_the_buffer_of_its_tag(void **state)
{
	static const uint32_t lengths[] = {0, 1, 8, 500, 1008, 1009, 5000};

	for (unsigned i = 0; i < 2 * ARRAY_SIZE(lengths); i++) {
		struct tagged *t = begin(i % 2);
		uint32_t len = lengths[i / 2];
		struct ibv_wc_tm_info info;
		struct ibv_wc wc;

		add(t, 1, TAG + 1);
		add(t, 2, TAG);
		assert_int_equal(message(t, IBV_TMH_EAGER, TAG, len), IBV_WC_SUCCESS);
		wc = take(&t->w->b);
		assert_int_equal(wc.wr_id, 2);
		assert_int_equal(wc.opcode, IBV_WC_TM_RECV);
		assert_int_equal(wc.wc_flags, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
		assert_int_equal(wc.byte_len, len);
		eng_wc_tm_info(&wc, &info);
		assert_true(info.tag == TAG);
		assert_int_equal(info.priv, 77);
		assert_memory_equal(t->w->b.memory + BUFFERS_AT + 2 * 8192,
				    t->w->a.memory + sizeof(struct ibv_tmh), len);
		end(t);
	}
}

/* After the first, they go from their cells into the buffers: the general path would copy the
 * pieces of the buffer. */
static void each_message_of_a_run_is_matched(void **state)
{
	struct tagged *t = begin(true);
	struct eng_qp *qp = t->w->b.qp;
	struct tp_sge pieces;

	needs_fast_paths(t->j);
	for (unsigned i = 1; i <= 8; i++)
		add(t, i, i);
	for (unsigned i = 8; i > 0; i--) {
		give(t, 100);
		pieces = qp->srq_sge[0];
		assert_int_equal(message(t, IBV_TMH_EAGER, i, 8), IBV_WC_SUCCESS);
		expect_received(t, i, IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
		assert_int_equal(qp->predicted.kind, ENG_TAGGED_MESSAGE);
		if (i < 8)
			assert_memory_equal(&qp->srq_sge[0], &pieces, sizeof(pieces));
	}
	/* one without a buffer is none for the fast path; the next one is again */
	add(t, 1, 1);
	assert_int_equal(message(t, IBV_TMH_EAGER, 2, 8), IBV_WC_SUCCESS);
	expect_received(t, 100, IBV_WC_TM_RECV, 0);
	pieces = qp->srq_sge[0];
	assert_int_equal(message(t, IBV_TMH_EAGER, 1, 8), IBV_WC_SUCCESS);
	expect_received(t, 1, IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
	assert_memory_equal(&qp->srq_sge[0], &pieces, sizeof(pieces));
	end(t);
}

static void the_oldest_buffer_that_matches_is_taken(void **state)
{
	struct tagged *t = begin(false);

	add_masked(t, 1, 0xaa00, 0xff00, 8192, 0);
	add(t, 2, 0xaa01);
	add(t, 3, 0xaa01);
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(message(t, IBV_TMH_EAGER, 0xaa01, 8), IBV_WC_SUCCESS);
		expect_received(t, i, IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
	}
	end(t);
}

/* --- the list, as plainly as it can be --- */

#define MODEL_MAX 8 /* what begin() lets the SRQ have */

struct model_buffer {
	uint64_t wr_id, tag, mask;
	uint32_t handle;
	bool enabled;
};

struct model {
	struct model_buffer buffer[MODEL_MAX]; /* in the order of posting */
	unsigned count;
	uint32_t unexpected;
	bool in_sync;
	uint64_t random, last_id;
};

static uint32_t random_below(struct model *m, uint32_t n)
{
	m->random = m->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(m->random >> 33) % n;
}

static void model_remove(struct model *m, unsigned i)
{
	memmove(&m->buffer[i], &m->buffer[i + 1], (--m->count - i) * sizeof(m->buffer[0]));
}

/* most programs' masks, of the context, of the sender; and one that takes all */
static const uint64_t model_masks[] = {EXACT, EXACT, EXACT, 1, EXACT << 1, 0};

static void model_add(struct tagged *t, struct model *m)
{
	struct model_buffer *b = &m->buffer[m->count];
	uint32_t seen = m->unexpected - !random_below(m, 8);
	struct ibv_sge sge = sge_of(&t->w->b, BUFFERS_AT, 64);
	struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_ADD,
				.tm = {.unexpected_cnt = seen,
				       .add = {.recv_wr_id = ++m->last_id,
					       .sg_list = &sge,
					       .num_sge = 1,
					       .tag = random_below(m, 4) * 0x100000001u,
					       .mask = model_masks[random_below(m, 6)]}}};

	if (m->count == MODEL_MAX) {
		assert_int_equal(eng_srq_post_ops(t->srq, &wr, NULL), -ENOMEM);
		return;
	}
	assert_int_equal(eng_srq_post_ops(t->srq, &wr, NULL), 0);
	m->in_sync &= seen == m->unexpected;
	*b = (struct model_buffer){m->last_id, wr.tm.add.tag, wr.tm.add.mask, wr.tm.handle,
				   m->in_sync};
	m->count++;
}

static void model_delete(struct tagged *t, struct model *m)
{
	unsigned i = random_below(m, MODEL_MAX);
	bool exists = i < m->count;
	struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_DEL,
				.tm.handle = exists ? m->buffer[i].handle : 0x7fffffff};

	assert_int_equal(operate(t, wr).status, exists ? IBV_WC_SUCCESS : IBV_WC_TM_ERR);
	if (exists)
		model_remove(m, i);
}

static void model_sync(struct tagged *t, struct model *m)
{
	struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_SYNC, .tm.unexpected_cnt = m->unexpected};

	assert_int_equal(operate(t, wr).wc_flags, 0);
	m->in_sync = true;
	for (unsigned i = 0; i < m->count; i++)
		m->buffer[i].enabled = true;
}

static void model_message(struct tagged *t, struct model *m)
{
	uint64_t tag = random_below(m, 4) * 0x100000001u;
	unsigned i = 0;

	while (i < m->count && (!m->buffer[i].enabled ||
				(m->buffer[i].tag ^ tag) & m->buffer[i].mask))
		i++;
	if (i == m->count)
		give(t, 1u << 30);
	assert_int_equal(message(t, IBV_TMH_EAGER, tag, 8), IBV_WC_SUCCESS);
	if (i < m->count) {
		expect_received(t, m->buffer[i].wr_id, IBV_WC_TM_RECV,
				IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
		model_remove(m, i);
	} else {
		expect_received(t, 1u << 30, IBV_WC_TM_RECV, 0);
		m->unexpected++;
	}
}

/* However the engine finds a buffer, it is the one that a search of the list finds. */
static void the_list_is_searched_in_order(void **state)
{
	static void (*const steps[])(struct tagged *t, struct model *m) = {
		model_add, model_add, model_add, model_message, model_message, model_delete,
		model_sync};

	for (unsigned seed = 1; seed <= 20; seed++) {
		struct model m = {.in_sync = true, .random = seed};
		struct tagged *t = begin(seed % 2);

		for (unsigned i = 0; i < 400; i++)
			steps[random_below(&m, ARRAY_SIZE(steps))](t, &m);
		end(t);
	}
}

/* what has no tag, and what no buffer matches, goes as it is into a receive of the ring */
static void the_ring_has_the_rest(void **state)
{
	static const struct {
		uint8_t opcode;
		uint64_t tag;
		enum ibv_wc_opcode completes;
	} rest[] = {{IBV_TMH_NO_TAG, TAG, IBV_WC_TM_NO_TAG},
		    {IBV_TMH_FIN, TAG, IBV_WC_TM_NO_TAG},
		    {99, TAG, IBV_WC_TM_NO_TAG},
		    {IBV_TMH_EAGER, TAG + 1, IBV_WC_TM_RECV},
		    {IBV_TMH_RNDV, TAG + 1, IBV_WC_TM_RECV},
		    /* a rendezvous that does not say of what */
		    {IBV_TMH_RNDV, TAG, IBV_WC_TM_RECV}};
	struct tagged *t = begin(false);

	add(t, 1, TAG);
	for (size_t i = 0; i < ARRAY_SIZE(rest); i++) {
		give(t, 50 + i);
		assert_int_equal(message(t, rest[i].opcode, rest[i].tag, 8), IBV_WC_SUCCESS);
		expect_received(t, 50 + i, rest[i].completes, 0);
		assert_memory_equal(t->w->b.memory + RING_AT, t->w->a.memory,
				    sizeof(struct ibv_tmh) + 8);
	}
	/* shorter than a header, and with an immediate, which no tagged message has */
	give(t, 60);
	assert_int_equal(send(&t->w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 5), 0);
	run(t->w);
	expect_received(t, 60, IBV_WC_TM_NO_TAG, 0);
	give(t, 61);
	put_header(t, IBV_TMH_EAGER, TAG);
	assert_int_equal(
		send(&t->w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND_WITH_IMM}, 24), 0);
	run(t->w);
	expect_received(t, 61, IBV_WC_RECV, IBV_WC_WITH_IMM);
	end(t);
}

static void without_a_receive_the_sender_waits(void **state)
{
	struct tagged *t = begin(false);

	put_header(t, IBV_TMH_EAGER, TAG);
	assert_int_equal(send(&t->w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 24), 0);
	run(t->w);
	expect_empty(&t->w->b);
	add(t, 1, TAG); /* it is not too late */
	clock_now.ns += NSEC_PER_SEC;
	run(t->w);
	expect_received(t, 1, IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
	end(t);
}

static void a_message_too_long_for_its_buffer_fails(void **state)
{
	struct tagged *t = begin(false);
	struct ibv_wc wc;

	add_masked(t, 1, TAG, EXACT, 8, 0);
	assert_int_equal(message(t, IBV_TMH_EAGER, TAG, 9), IBV_WC_REM_INV_REQ_ERR);
	wc = take(&t->w->b);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.status, IBV_WC_LOC_LEN_ERR);
	end(t);
}

/* --- the program and the list in step --- */

static void a_buffer_added_too_late_waits_for_sync(void **state)
{
	struct tagged *t = begin(false);
	struct ibv_ops_wr late = {.wr_id = 5, .opcode = IBV_WR_TAG_ADD,
				  .tm.add = {.recv_wr_id = 3, .tag = TAG + 1, .mask = EXACT}},
			  sync = {.wr_id = 6, .opcode = IBV_WR_TAG_SYNC};
	struct ibv_sge sge = sge_of(&t->w->b, BUFFERS_AT, 64);

	late.tm.add.sg_list = &sge;
	late.tm.add.num_sge = 1;
	add(t, 1, TAG);
	give(t, 50);
	give(t, 51);
	message(t, IBV_TMH_EAGER, TAG + 1, 8); /* unexpected */
	expect_received(t, 50, IBV_WC_TM_RECV, 0);
	/* the program does not know of it yet, and its buffer must not take the next one */
	assert_int_equal(operate(t, late).wc_flags, IBV_WC_TM_SYNC_REQ);
	message(t, IBV_TMH_EAGER, TAG + 1, 8);
	expect_received(t, 51, IBV_WC_TM_RECV, 0);
	/* buffers that were there before are as good as ever */
	message(t, IBV_TMH_EAGER, TAG, 8);
	expect_received(t, 1, IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
	/* a count that is not right yet does not help */
	sync.tm.unexpected_cnt = 1;
	assert_int_equal(operate(t, sync).wc_flags, IBV_WC_TM_SYNC_REQ);
	late.tm.unexpected_cnt = 2;
	assert_int_equal(operate(t, late).wc_flags, IBV_WC_TM_SYNC_REQ);
	sync.tm.unexpected_cnt = 2;
	assert_int_equal(operate(t, sync).opcode, IBV_WC_TM_SYNC);
	for (unsigned i = 0; i < 2; i++) {
		message(t, IBV_TMH_EAGER, TAG + 1, 8);
		expect_received(t, 3, IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
	}
	end(t);
}

static void a_deleted_buffer_matches_nothing(void **state)
{
	struct tagged *t = begin(false);
	struct ibv_ops_wr del = {.wr_id = 9, .opcode = IBV_WR_TAG_DEL};
	struct ibv_wc wc;

	del.tm.handle = add(t, 1, TAG);
	wc = operate(t, del);
	assert_int_equal(wc.opcode, IBV_WC_TM_DEL);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(operate(t, del).status, IBV_WC_TM_ERR); /* it is not there any more */
	give(t, 50);
	message(t, IBV_TMH_EAGER, TAG, 8);
	expect_received(t, 50, IBV_WC_TM_RECV, 0);
	end(t);
}

/* neither one that a message took, nor one that was deleted, in whose place there is another */
static void a_handle_names_its_buffer_alone(void **state)
{
	struct tagged *t = begin(false);
	struct ibv_ops_wr del = {.wr_id = 9, .opcode = IBV_WR_TAG_DEL};
	uint32_t old[2] = {add(t, 1, TAG)};

	message(t, IBV_TMH_EAGER, TAG, 8);
	expect_received(t, 1, IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
	del.tm.handle = old[1] = add(t, 2, TAG);
	assert_int_equal(operate(t, del).status, IBV_WC_SUCCESS);
	add(t, 3, TAG);
	for (unsigned i = 0; i < 2; i++) {
		del.tm.handle = old[i];
		assert_int_equal(operate(t, del).status, IBV_WC_TM_ERR);
	}
	message(t, IBV_TMH_EAGER, TAG, 8);
	expect_received(t, 3, IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
	end(t);
}

static void operations_that_are_refused(void **state)
{
	struct tagged *t = begin(false);
	struct ibv_sge sge[ENG_TAG_SGES + 1];
	struct ibv_ops_wr wr[2] = {{.opcode = IBV_WR_TAG_SYNC, .next = &wr[1]},
				   {.opcode = IBV_WR_TAG_ADD}}, *bad = NULL;
	struct eng_srq *plain;

	memset(sge, 0, sizeof(sge));
	wr[1].tm.add.sg_list = sge;
	wr[1].tm.add.num_sge = ENG_TAG_SGES + 1;
	assert_int_equal(eng_srq_post_ops(t->srq, wr, &bad), -EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	wr[1].opcode = 7;
	assert_int_equal(eng_srq_post_ops(t->srq, wr, &bad), -EINVAL);
	wr[1] = (struct ibv_ops_wr){.opcode = IBV_WR_TAG_ADD};
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(eng_srq_post_ops(t->srq, &wr[1], &bad), 0);
	assert_int_equal(eng_srq_post_ops(t->srq, &wr[1], &bad), -ENOMEM);
	assert_int_equal(eng_srq_create(t->w->b.engine, 1, 16, 2, 0, NULL, &plain), 0);
	assert_int_equal(eng_srq_post_ops(plain, wr, &bad), -EINVAL);
	assert_ptr_equal(bad, &wr[0]);
	assert_int_equal(eng_srq_destroy(t->srq), -EBUSY);
	end(t);
}

static void only_rc_matches_tags(void **state)
{
	struct tagged *t = begin(false);
	struct eng_qp_init init = {.qpn = 0x33, .type = IBV_QPT_UD, .pd = 1, .send_cq = t->w->b.cq,
				   .recv_cq = t->w->b.cq, .srq = t->srq};
	struct eng_qp *qp;

	assert_int_equal(eng_qp_create(t->w->b.engine, &init, &qp), -EINVAL);
	init.type = IBV_QPT_UC;
	assert_int_equal(eng_qp_create(t->w->b.engine, &init, &qp), -EINVAL);
	end(t);
}

/* --- rendezvous --- */

static void a_rendezvous_fetches_and_says_so(void **state)
{
	static const uint32_t lengths[] = {0, 1, 1024, 8000};

	for (unsigned i = 0; i < 2 * ARRAY_SIZE(lengths); i++) {
		struct tagged *t = begin(i % 2);
		uint32_t len = lengths[i / 2];
		struct ibv_tmh fin;
		struct ibv_wc wc;

		add(t, 1, TAG);
		assert_int_equal(recv_into(&t->w->a, 5, 60000, 64), 0);
		request(t, TAG, len, 0x101, i % 2 * 20);
		expect_received(t, 1, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
		wc = take(&t->w->b);
		assert_int_equal(wc.wr_id, 1);
		assert_int_equal(wc.wc_flags, IBV_WC_TM_DATA_VALID);
		assert_int_equal(wc.byte_len, len);
		expect_empty(&t->w->b); /* what the QP posted itself is nobody's */
		assert_memory_equal(t->w->b.memory + BUFFERS_AT + 8192,
				    t->w->a.memory + PAYLOAD_AT, len);
		assert_int_equal(take(&t->w->a).opcode, IBV_WC_SEND);
		wc = take(&t->w->a);
		assert_int_equal(wc.wr_id, 5);
		assert_int_equal(wc.byte_len, sizeof(fin));
		memcpy(&fin, t->w->a.memory + 60000, sizeof(fin));
		assert_int_equal(fin.opcode, IBV_TMH_FIN);
		assert_true(be64toh(fin.tag) == TAG);
		assert_int_equal(be32toh(fin.app_ctx), 77);
		end(t);
	}
}

/* requests of the QP's own have places of their own, and the program's are all there */
static void the_programs_places_are_its_own(void **state)
{
	struct tagged *t = begin(false);

	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(recv_into(&t->w->a, i, 60000, 64), 0);
	for (unsigned i = 1; i <= 8; i++)
		add_masked(t, i, i, EXACT, 1024, 0);
	t->w->a.in.limit = 0; /* B has something to say and cannot */
	for (unsigned i = 1; i <= 8; i++)
		request(t, i, 1000, 0x101, 0);
	for (unsigned i = 0; i < 32; i++)
		assert_int_equal(send(&t->w->b, (struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE,
								     .wr.rdma = {(uintptr_t)t->w->a.memory, 0x101}}, 8),
				 0);
	assert_int_equal(send(&t->w->b, (struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE}, 8),
			 -ENOMEM);
	t->w->a.in.limit = WIRE_PACKETS;
	clock_now.ns += NSEC_PER_SEC;
	run(t->w);
	for (unsigned fetched = 0, written = 0; fetched < 8 || written < 32;) {
		struct ibv_wc wc = take(&t->w->b);

		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		written += wc.opcode == IBV_WC_RDMA_WRITE;
		fetched += wc.opcode == IBV_WC_TM_RECV && wc.wc_flags == IBV_WC_TM_DATA_VALID;
	}
	end(t);
}

/* More of its own are under way than the program has places: these are no more, nor fewer. */
static void a_small_queue_is_as_large_as_it_was_made(void **state)
{
	for (unsigned places = 0; places <= 2; places += 2) {
		struct tagged *t = begin_with(true, places, false);
		struct ibv_wc wc;

		for (unsigned i = 0; i < 4 + places; i++)
			assert_int_equal(recv_into(&t->w->a, i, 60000, 64), 0);
		for (unsigned i = 1; i <= 4; i++)
			add_masked(t, i, i, EXACT, 1024, 0);
		for (unsigned i = 1; i <= 4; i++) { /* B's READs are sent, and not answered yet */
			struct ibv_rvh rvh = {.va = htobe64((uintptr_t)t->w->a.memory),
					      .rkey = htobe32(0x101), .len = htobe32(100)};

			put_header(t, IBV_TMH_RNDV, i);
			memcpy(t->w->a.memory + sizeof(struct ibv_tmh), &rvh, sizeof(rvh));
			assert_int_equal(send(&t->w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 32), 0);
			eng_tick(t->w->b.engine);
		}
		for (unsigned i = 0; i < places; i++)
			assert_int_equal(send(&t->w->b, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8), 0);
		assert_int_equal(send(&t->w->b, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8),
				 -ENOMEM);
		run(t->w);
		for (unsigned fetched = 0, sent = 0; fetched < 4 || sent < places;) {
			wc = take(&t->w->b);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			sent += wc.opcode == IBV_WC_SEND;
			fetched += wc.opcode == IBV_WC_TM_RECV &&
				   wc.wc_flags == IBV_WC_TM_DATA_VALID;
		}
		end(t);
	}
}

static void a_rendezvous_begins_when_the_qp_may_send(void **state)
{
	struct tagged *t = begin_with(false, 0, true);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .sq_psn = 100, .timeout = 14,
				   .retry_cnt = 2, .rnr_retry = 7, .max_rd_atomic = 4};

	add(t, 1, TAG);
	assert_int_equal(recv_into(&t->w->a, 5, 60000, 64), 0);
	request(t, TAG, 100, 0x101, 0);
	expect_received(t, 1, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
	expect_empty(&t->w->b);
	assert_int_equal(eng_qp_modify(t->w->b.qp, &attr,
				       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
					       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					       IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
	run(t->w);
	expect_received(t, 1, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
	end(t);
}

static void a_rendezvous_that_is_refused(void **state)
{
	struct tagged *t = begin(false);
	struct ibv_wc wc;

	add(t, 1, TAG);
	request(t, TAG, 100, 0xbad, 0);
	expect_received(t, 1, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
	wc = take(&t->w->b);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	end(t);
	t = begin(false); /* and one that is longer than its buffer */
	add_masked(t, 1, TAG, EXACT, 99, 0);
	request(t, TAG, 100, 0x101, 0);
	wc = take(&t->w->b);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.status, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(take(&t->w->a).status, IBV_WC_REM_INV_REQ_ERR);
	end(t);
}

/* Of 20 rendezvous 16 have a request under way when the QP ends, and 4 wait. */
static void the_end_of_the_qp_ends_its_rendezvous(void **state)
{
	static const enum ibv_qp_state ends[] = {IBV_QPS_ERR, IBV_QPS_RESET};

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		struct tagged *t = begin(false);
		struct ibv_qp_attr attr = {.qp_state = ends[i]};
		unsigned incomplete = 0;
		struct ibv_wc wc;

		t->w->a.in.limit = 0;
		for (unsigned n = 0; n < 20; n++) {
			add_masked(t, 1, n, EXACT, 64, 0);
			request(t, n, 64, 0x101, 0);
			expect_received(t, 1, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
		}
		assert_int_equal(eng_qp_modify(t->w->b.qp, &attr, IBV_QP_STATE), 0);
		while (eng_cq_poll(t->w->b.cq, 1, &wc) == 1)
			incomplete += wc.status == IBV_WC_TM_RNDV_INCOMPLETE;
		assert_int_equal(incomplete, ends[i] == IBV_QPS_ERR ? 20 : 0);
		end(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_goes_into_the_buffer_of_its_tag),
		cmocka_unit_test(each_message_of_a_run_is_matched),
		cmocka_unit_test(the_oldest_buffer_that_matches_is_taken),
		cmocka_unit_test(the_list_is_searched_in_order),
		cmocka_unit_test(the_ring_has_the_rest),
		cmocka_unit_test(without_a_receive_the_sender_waits),
		cmocka_unit_test(a_message_too_long_for_its_buffer_fails),
		cmocka_unit_test(a_buffer_added_too_late_waits_for_sync),
		cmocka_unit_test(a_deleted_buffer_matches_nothing),
		cmocka_unit_test(a_handle_names_its_buffer_alone),
		cmocka_unit_test(operations_that_are_refused),
		cmocka_unit_test(only_rc_matches_tags),
		cmocka_unit_test(a_rendezvous_fetches_and_says_so),
		cmocka_unit_test(the_programs_places_are_its_own),
		cmocka_unit_test(a_small_queue_is_as_large_as_it_was_made),
		cmocka_unit_test(a_rendezvous_begins_when_the_qp_may_send),
		cmocka_unit_test(a_rendezvous_that_is_refused),
		cmocka_unit_test(the_end_of_the_qp_ends_its_rendezvous),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
