/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Regions that are paged on demand (odp.c): each request succeeds with the capability that it
 * needs, though all others are missing, and fails without it, though all others are there; by
 * packets and by lanes, at both ends.
 */
#include "../../../lib/libibverbs/faults.h"
#include "lanes.h"

#define KEY 0x202 /* all of the memory once more, on demand */
#define SRQN 0x700
#define XRCD 5
#define ALL_BITS 0x3fu

enum whose { LOCAL, REMOTE };

/** struct use - of memory on demand, by a request of A at its end or B's */
struct use {
	enum ibv_qp_type type;
	enum ibv_wr_opcode opcode;
	enum whose whose;
	uint32_t bit;		 /* enum ibv_odp_transport_cap_bits */
	enum ibv_wc_status sent; /* without that capability */
	bool has_srq;
};

#define RELIABLE(type_)                                                                            \
	{type_, IBV_WR_SEND, LOCAL, IBV_ODP_SUPPORT_SEND, IBV_WC_LOC_PROT_ERR},                    \
	{type_, IBV_WR_RDMA_WRITE, LOCAL, IBV_ODP_SUPPORT_WRITE, IBV_WC_LOC_PROT_ERR},             \
	{type_, IBV_WR_RDMA_WRITE, REMOTE, IBV_ODP_SUPPORT_WRITE, IBV_WC_REM_ACCESS_ERR},          \
	{type_, IBV_WR_RDMA_READ, LOCAL, IBV_ODP_SUPPORT_READ, IBV_WC_LOC_PROT_ERR},               \
	{type_, IBV_WR_RDMA_READ, REMOTE, IBV_ODP_SUPPORT_READ, IBV_WC_REM_ACCESS_ERR},            \
	{type_, IBV_WR_ATOMIC_FETCH_AND_ADD, LOCAL, IBV_ODP_SUPPORT_ATOMIC, IBV_WC_LOC_PROT_ERR},  \
	{type_, IBV_WR_ATOMIC_CMP_AND_SWP, REMOTE, IBV_ODP_SUPPORT_ATOMIC, IBV_WC_REM_ACCESS_ERR}

static const struct use uses[] = {
	RELIABLE(IBV_QPT_RC),
	{IBV_QPT_RC, IBV_WR_SEND, REMOTE, IBV_ODP_SUPPORT_RECV, IBV_WC_REM_OP_ERR},
	{IBV_QPT_RC, IBV_WR_SEND, REMOTE, IBV_ODP_SUPPORT_SRQ_RECV, IBV_WC_REM_OP_ERR, true},
	RELIABLE(IBV_QPT_XRC_SEND),
	{IBV_QPT_XRC_SEND, IBV_WR_SEND, REMOTE, IBV_ODP_SUPPORT_SRQ_RECV, IBV_WC_REM_OP_ERR, true},
	{IBV_QPT_UC, IBV_WR_SEND, LOCAL, IBV_ODP_SUPPORT_SEND, IBV_WC_LOC_PROT_ERR},
	{IBV_QPT_UC, IBV_WR_SEND, REMOTE, IBV_ODP_SUPPORT_RECV, IBV_WC_SUCCESS},
	{IBV_QPT_UC, IBV_WR_RDMA_WRITE, LOCAL, IBV_ODP_SUPPORT_WRITE, IBV_WC_LOC_PROT_ERR},
	{IBV_QPT_UC, IBV_WR_RDMA_WRITE, REMOTE, IBV_ODP_SUPPORT_WRITE, IBV_WC_SUCCESS},
	{IBV_QPT_UD, IBV_WR_SEND, LOCAL, IBV_ODP_SUPPORT_SEND, IBV_WC_LOC_PROT_ERR},
	{IBV_QPT_UD, IBV_WR_SEND, REMOTE, IBV_ODP_SUPPORT_RECV, IBV_WC_SUCCESS},
	{IBV_QPT_UD, IBV_WR_SEND, REMOTE, IBV_ODP_SUPPORT_SRQ_RECV, IBV_WC_SUCCESS, true},
};

/** struct try - a fabric in which a use is tried once */
struct try {
	struct joined *j; /* NULL: by packets */
	struct world *w;
	struct eng_srq *srq; /* B's, if the use has one */
	struct eng_cq *recv_cq;
};

static void add_region(struct side *s, bool is_pinned)
{
	struct eng_mr_attr mr = {.key = KEY, .pd = 1, .addr = s->memory, .length = MEMORY,
				 .iova = (uintptr_t)s->memory, .is_pinned = is_pinned,
				 .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
					   IBV_ACCESS_ON_DEMAND};

	assert_int_equal(eng_mr_add(s->engine, &mr), 0);
}

/* the capabilities of @type are @bits, and the other transports have none of them */
static void limit(struct side *s, enum ibv_qp_type type, uint32_t bits)
{
	struct eng_odp odp = {.rc = ~bits, .uc = ~bits, .ud = ~bits, .xrc = ~bits};

	*(type == IBV_QPT_RC ? &odp.rc :
	  type == IBV_QPT_UC ? &odp.uc :
	  type == IBV_QPT_UD ? &odp.ud :
			       &odp.xrc) = bits;
	eng_odp_init(s->engine, &odp);
}

static void make_xrc(struct try *t)
{
	struct eng_qp_init init = {.qpn = 0x11, .type = IBV_QPT_XRC_SEND, .pd = 1,
				   .send_cq = t->w->a.cq, .recv_cq = t->w->a.cq,
				   .max_send_wr = 32, .max_send_sge = 2, .max_inline = 64};

	assert_int_equal(eng_qp_create(t->w->a.engine, &init, &t->w->a.qp), 0);
	init = (struct eng_qp_init){.qpn = 0x22, .type = IBV_QPT_XRC_RECV, .xrcd = XRCD};
	assert_int_equal(eng_qp_create(t->w->b.engine, &init, &t->w->b.qp), 0);
	assert_int_equal(eng_cq_create(t->w->b.engine, 16, &t->w->b, &t->recv_cq), 0);
	assert_int_equal(eng_srq_join_xrcd(t->srq, SRQN, XRCD, t->recv_cq), 0);
}

static void begin(struct try *t, const struct use *u, bool by_lanes)
{
	void *state;

	*t = (struct try){0};
	if (by_lanes) {
		t->j = join(); /* and its QPs, of the same numbers, are not wanted */
		t->w = t->j->w;
		eng_qp_destroy(t->w->a.qp);
		eng_qp_destroy(t->w->b.qp);
	} else {
		setup(&state);
		t->w = state;
	}
	t->recv_cq = t->w->b.cq;
	if (u->has_srq || u->type == IBV_QPT_XRC_SEND)
		assert_int_equal(eng_srq_create(t->w->b.engine, 1, 16, 2, 0, NULL, &t->srq), 0);
	if (u->type == IBV_QPT_XRC_SEND) {
		make_xrc(t);
	} else {
		make_qp(&t->w->a, u->type, 0x11, NULL);
		make_qp(&t->w->b, u->type, 0x22, t->srq);
	}
	to_rts(&t->w->a, 2, 0x22);
	to_rts(&t->w->b, 1, 0x11);
}

static void end(struct try *t)
{
	void *state = t->w;

	if (t->j)
		part(t->j);
	else
		teardown(&state);
}

static void post_receive(struct try *t, uint32_t key, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)t->w->b.memory, len, key};
	struct ibv_recv_wr wr = {.wr_id = 77, .sg_list = &sge, .num_sge = 1}, *bad;

	if (t->srq)
		assert_int_equal(eng_srq_post_recv(t->srq, &wr, &bad), 0);
	else
		assert_int_equal(eng_post_recv(t->w->b.qp, &wr, &bad), 0);
}

/* Return: how the request ends at A. */
static enum ibv_wc_status request(struct try *t, const struct use *u, uint32_t lkey, uint32_t rkey,
				  uint32_t len)
{
	struct tp_av av = {.dlid = 2, .port_num = 1};
	struct ibv_sge sge = {(uintptr_t)t->w->a.memory, len, lkey};
	struct ibv_send_wr wr = {.opcode = u->opcode, .sg_list = &sge, .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;
	uintptr_t remote = (uintptr_t)t->w->b.memory;

	if (u->type == IBV_QPT_UD) {
		wr.wr.ud.ah = (void *)&av;
		wr.wr.ud.remote_qpn = 0x22;
		wr.wr.ud.remote_qkey = 0x1234;
	} else if (u->opcode == IBV_WR_RDMA_WRITE || u->opcode == IBV_WR_RDMA_READ) {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = rkey;
	} else if (u->opcode != IBV_WR_SEND) {
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = rkey;
	}
	if (u->type == IBV_QPT_XRC_SEND)
		wr.qp_type.xrc.remote_srqn = SRQN;
	assert_int_equal(eng_post_send(t->w->a.qp, &wr, &bad, av_of), 0);
	run(t->w);
	return take(&t->w->a).status;
}

static bool changes_b(const struct use *u)
{
	return u->opcode == IBV_WR_SEND || u->opcode == IBV_WR_RDMA_WRITE;
}

/* the second request uses memory on demand: the first has found the way, and predictions */
static void expect(const struct use *u, bool by_lanes, uint32_t bits, bool is_pinned)
{
	bool serves = is_pinned || bits & u->bit;
	uint32_t key[2] = {0x101, 0x101};
	struct ibv_wc wc;
	struct try t;
	uint32_t len = 8;

	begin(&t, u, by_lanes);
	for (unsigned i = 0; i < 2; i++) {
		add_region(i ? &t.w->b : &t.w->a, is_pinned);
		limit(i ? &t.w->b : &t.w->a, u->type, bits);
	}
	for (unsigned i = 0; i < 2; i++) {
		memset(t.w->a.memory, 0x30 + (int)i, len);
		key[u->whose] = i ? KEY : 0x101;
		if (u->opcode == IBV_WR_SEND)
			post_receive(&t, key[REMOTE], len + 40);
		assert_int_equal(request(&t, u, key[LOCAL], key[REMOTE], len),
				 i && !serves ? u->sent : IBV_WC_SUCCESS);
		if (i && !serves)
			break;
		if (u->opcode == IBV_WR_SEND) {
			assert_int_equal(eng_cq_poll(t.recv_cq, 1, &wc), 1);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
		}
		if (changes_b(u))
			assert_int_equal(t.w->b.memory[u->type == IBV_QPT_UD ? 40 : 0], 0x30 + i);
	}
	if (!serves && u->opcode == IBV_WR_SEND && u->whose == REMOTE) {
		assert_int_equal(eng_cq_poll(t.recv_cq, 1, &wc), 1);
		assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
	}
	if (!serves && changes_b(u)) /* as after the first */
		assert_int_equal(t.w->b.memory[u->type == IBV_QPT_UD ? 40 : 0], 0x30);
	end(&t);
}

static void a_capability_decides(void **state)
{
	faults_watch();
	for (unsigned i = 0; i < 2 * ARRAY_SIZE(uses); i++) {
		const struct use *u = &uses[i / 2];

		expect(u, i % 2, u->bit, false);
		expect(u, i % 2, ALL_BITS & ~u->bit, false);
		expect(u, i % 2, ALL_BITS & ~u->bit, true);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_capability_decides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
