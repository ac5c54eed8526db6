/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The fast paths do what the general path does: two programs draw what they post and poll
 * from a seed, once with the fast paths and once without (eng_config.general_only). Every
 * record of their lanes, every completion and all memory must be the same, step by step.
 *
 * A script can have verbs of its own beside these (struct extra). Some of them fail, since
 * scripts do not know what has taken effect; then both QPs begin anew.
 */
#include <infiniband/tm_types.h>

#include "engine/fast.h"
#include "lanes.h"
#include "wire/packet.h"

#define STEPS 1500
#define SEEDS 12
#define TRACE 20000
#define EXPORTED 0x701 /* all memory, by addresses that messages tell: the same in both runs */
#define EXPORTED_IOVA 0x10000000

/** struct event - something that can be seen from outside an engine */
struct event {
	unsigned step;
	/* 'r': a record that left; 'c': a completion; 'p': what a post returned; 't': the
	 * QPs' timers; 'm': all memory */
	char side, what;
	uint64_t a, b, c, hash;
};

static struct event trace[2][TRACE];
static unsigned traced[2];

struct play;

/** struct extra - what a script does beside SENDs, WRITEs, READs and atomics of plain regions */
struct extra {
	enum ibv_qp_type type;
	/** prepare() - before the first step, and when the QPs begin anew */
	void (*prepare)(struct play *p);
	/** request() - a step of @s */
	void (*request)(struct play *p, struct side *s);
};

/** struct bound - a memory window of one side, as far as its script knows */
struct bound {
	struct ibv_mw mw;
	uint64_t va;
	uint32_t bytes;
	bool is_free;
};

/** struct play - one of the two runs */
struct play {
	const struct extra *extra;
	struct bound bound[2][2]; /* by side and type - 1 */
	struct eng_srq *srq[2];	  /* of tags, or of XRC; NULL: QPs have receives of their own */
	struct eng_qp *target[2]; /* of XRC */
	uint32_t unexpected[2];	  /* messages without a tagged buffer */
	struct joined *j;
	struct event *trace;
	unsigned *n, step;
	uint64_t random;
	uint32_t seen[2]; /* records of each lane */
	struct tp_av av[3]; /* of A; of B, which has two LIDs */
	uint64_t next_id;
};

static uint32_t below(struct play *p, uint32_t n)
{
	p->random ^= p->random << 13;
	p->random ^= p->random >> 7;
	p->random ^= p->random << 17;
	return (uint32_t)((p->random >> 32) * n >> 32);
}

static uint64_t hash_of(const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	uint64_t hash = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ at[i]) * 0x100000001b3ull;
	return hash;
}

static void note(struct play *p, struct event e)
{
	assert_in_range(*p->n, 0, TRACE - 1);
	e.step = p->step;
	p->trace[(*p->n)++] = e;
}

/* the records that side @i wrote since the last look */
static void watch(struct play *p, unsigned i)
{
	const struct side *peer = i ? &p->j->w->a : &p->j->w->b;
	const struct abi_lane_tx *tx = &p->j->out[i].tx;

	for (; p->seen[i] != tx->tail; p->seen[i]++) {
		struct abi_lane_rx look = {.memory = tx->memory, .head = p->seen[i]};
		uint64_t word[3] = {0};
		const struct abi_cell *cell = abi_lane_next(&look, word);
		struct wire_packet pkt;
		struct abi_record r;
		const uint8_t *at;
		size_t ext;

		assert_non_null(cell);
		memset(&pkt, 0, sizeof(pkt));
		abi_record_unpack(word, &r);
		ext = eng_ext_decode(cell->data, wire_opcodes[r.opcode].flags, &pkt);
		/* the two runs' memory lies at different addresses */
		if (pkt.reth.va && pkt.reth.rkey != EXPORTED)
			pkt.reth.va -= (uintptr_t)peer->memory;
		if (pkt.atomic.va)
			pkt.atomic.va -= (uintptr_t)peer->memory;
		at = eng_payload_at(&look, cell, word, (uint32_t)ext);
		assert_non_null(at);
		note(p, (struct event){.side = "AB"[i],
				       .what = 'r',
				       .a = word[0],
				       .b = word[1],
				       .c = word[2],
				       .hash = hash_of(at, r.length_bytes) ^
					       hash_of(&pkt, sizeof(pkt))});
	}
}

static void watch_poll(struct play *p, struct side *s, int n)
{
	struct ibv_wc wc[8];
	int got = eng_cq_poll(s->cq, n, wc);

	for (int i = 0; i < got; i++)
		p->unexpected[s == &p->j->w->b] +=
			wc[i].opcode == IBV_WC_TM_RECV && !wc[i].wc_flags && !wc[i].status;
	for (int i = 0; i < got; i++)
		note(p, (struct event){.side = s == &p->j->w->a ? 'A' : 'B',
				       .what = 'c',
				       .a = wc[i].wr_id,
				       .b = (uint64_t)wc[i].status << 32 | wc[i].opcode,
				       .c = wc[i].byte_len,
				       .hash = hash_of(&wc[i], sizeof(wc[i]))});
}

#define SRQN 0x700

static const uint32_t sizes[] = {1,  3,	 4,   7,   8,	8,    8,    8,	 9,
				 12, 15, 23,  24,  36,	37,   38,   39,	 40,
				 41, 64, 65,  80,  96,	97,   100, 500, 600, 1000, 1023, 1024};
/* of a message, of RC */
static const uint32_t long_sizes[] = {0, 1025, 2048, 3000, 9000};

static void step_receive(struct play *p, struct side *s)
{
	uint32_t len = below(p, 400) ? 9100 : 16,
		 split = below(p, 4) ? 0 : 40 + below(p, 30);
	uint64_t at = (uintptr_t)s->memory + 128 * 1024 + below(p, 100) * 1000;
	struct ibv_sge sge[2] = {{at, split ? split : len, 0x101},
				 {at + split, len, 0x101}};
	struct ibv_recv_wr wr = {
		.wr_id = p->next_id++, .sg_list = sge, .num_sge = split ? 2 : 1};
	struct ibv_recv_wr *bad;
	struct eng_srq *srq = p->srq[s == &p->j->w->b];

	note(p, (struct event){.what = 'p',
			       .a = (uint64_t)(srq ? eng_srq_post_recv(srq, &wr, &bad) :
						     eng_post_recv(s->qp, &wr, &bad))});
}

static void fill_request(struct play *p, struct side *s, struct ibv_send_wr *wr)
{
	struct side *peer = s == &p->j->w->a ? &p->j->w->b : &p->j->w->a;
	bool ud = s->qp->init.type == IBV_QPT_UD;
	uint32_t kind = ud ? below(p, 10) : below(p, 14);

	wr->opcode = kind == 9 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
	wr->imm_data = htobe32(below(p, 1000));
	if (p->target[0]) /* seldom one that is not there */
		wr->qp_type.xrc.remote_srqn = below(p, 200) ? SRQN : SRQN + 1;
	if (ud) {
		wr->wr.ud.ah = (struct ibv_ah *)(void *)&p->av[s == &p->j->w->b ? 1 + below(p, 2) : 0];
		wr->wr.ud.remote_qpn = s->qp->init.qpn == 0x11 ? 0x22 : 0x11;
		wr->wr.ud.remote_qkey = below(p, 30)  ? 0x1234
					: below(p, 2) ? 0x80000001
						      : 0x77;
		return;
	}
	if (kind < 10)
		return;
	wr->opcode = kind == 10	  ? IBV_WR_RDMA_WRITE
		     : kind == 11 ? IBV_WR_RDMA_WRITE_WITH_IMM
		     : kind == 12 ? IBV_WR_RDMA_READ
				  : IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr->wr.rdma.remote_addr = (uintptr_t)peer->memory + 120 * 1024;
	wr->wr.rdma.rkey = 0x101;
	if (kind == 13) {
		wr->wr.atomic.remote_addr = (uintptr_t)peer->memory + 120 * 1024;
		wr->wr.atomic.rkey = 0x101;
		wr->wr.atomic.compare_add = below(p, 9);
	}
}

static void step_send(struct play *p, struct side *s)
{
	bool rc = s->qp->init.type == IBV_QPT_RC;
	uint32_t len = rc && !below(p, 20) ? long_sizes[below(p, ARRAY_SIZE(long_sizes))]
					   : sizes[below(p, ARRAY_SIZE(sizes))];
	struct ibv_sge sge[2] = {{(uintptr_t)s->memory + below(p, 5000), len, 0x101}};
	struct ibv_send_wr wr = {.wr_id = p->next_id++, .sg_list = sge, .num_sge = 1},
			   *bad;

	fill_request(p, s, &wr);
	if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		sge[0].length = 8;
	if (wr.opcode <= IBV_WR_SEND_WITH_IMM && !below(p, 6) && len > 1 && len < 1000) {
		sge[0].length = 1 + below(p, len - 1);
		sge[1] = sge[0];
		sge[1].length = len - sge[0].length;
		wr.num_sge = 2;
	}
	wr.send_flags = (below(p, 3) ? IBV_SEND_SIGNALED : 0) |
			(below(p, 5) ? 0 : IBV_SEND_SOLICITED) |
			(below(p, 20) ? 0 : IBV_SEND_FENCE);
	if (len <= 64 && wr.opcode != IBV_WR_RDMA_READ &&
	    wr.opcode < IBV_WR_ATOMIC_CMP_AND_SWP && below(p, 2))
		wr.send_flags |= IBV_SEND_INLINE;
	note(p, (struct event){.what = 'p',
			       .a = (uint64_t)eng_post_send(s->qp, &wr, &bad, av_of)});
	/* the buffer of an inline request is the program's again */
	if (wr.send_flags & IBV_SEND_INLINE)
		memset((void *)(uintptr_t)sge[0].addr, (int)below(p, 256), 8);
}

/* --- QPs that failed begin anew --- */

#define TARGET(side) (0x33u + 0x11 * (side))

static void connect_ends(struct play *p)
{
	struct side *s[2] = {&p->j->w->a, &p->j->w->b};

	for (unsigned i = 0; i < 2; i++) {
		struct eng_qp *sender = s[i]->qp;

		to_rts(s[i], i ? 1 : 2, p->target[!i] ? TARGET(!i) : i ? 0x11 : 0x22);
		if (!p->target[i])
			continue;
		s[i]->qp = p->target[i];
		to_rts(s[i], i ? 1 : 2, i ? 0x11 : 0x22);
		s[i]->qp = sender;
	}
}

static void begin_anew(struct play *p)
{
	const struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct side *s[2] = {&p->j->w->a, &p->j->w->b};

	run(p->j->w);
	for (unsigned i = 0; i < 2; i++) {
		while (eng_cq_pending(s[i]->cq))
			watch_poll(p, s[i], 8);
		assert_int_equal(eng_qp_modify(s[i]->qp, &reset, IBV_QP_STATE), 0);
		if (p->target[i])
			assert_int_equal(eng_qp_modify(p->target[i], &reset, IBV_QP_STATE), 0);
	}
	run(p->j->w);
	connect_ends(p);
	if (p->extra->prepare)
		p->extra->prepare(p);
}

static bool has_failed(const struct play *p, unsigned i)
{
	const struct eng_qp *qp = (i ? &p->j->w->b : &p->j->w->a)->qp;

	return tp_qp_state(qp->tp) == IBV_QPS_ERR ||
	       (p->target[i] && tp_qp_state(p->target[i]->tp) == IBV_QPS_ERR);
}

/* --- memory windows --- */

#define REGION 0x201
#define WINDOW(type) (0x301u + 0x100 * (type))

static void make_windows(struct play *p)
{
	for (unsigned i = 0; i < 2; i++) {
		struct side *s = i ? &p->j->w->b : &p->j->w->a;
		const struct eng_mr_attr region = {
			.key = REGION, .pd = 1, .addr = s->memory, .length = MEMORY,
			.iova = (uintptr_t)s->memory,
			.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND};

		for (int type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
			eng_mw_del(s->engine, WINDOW(type));
			assert_int_equal(eng_mw_add(s->engine, WINDOW(type), 1, (enum ibv_mw_type)type), 0);
			p->bound[i][type - 1] = (struct bound){.mw.rkey = WINDOW(type), .is_free = true};
		}
		eng_mr_del(s->engine, REGION);
		assert_int_equal(eng_mr_add(s->engine, &region), 0);
	}
}

static void post(struct play *p, struct side *s, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->wr_id = p->next_id++;
	wr->send_flags |= (below(p, 3) ? IBV_SEND_SIGNALED : 0) | (below(p, 8) ? 0 : IBV_SEND_FENCE);
	note(p, (struct event){.what = 'p', .a = (uint64_t)eng_post_send(s->qp, wr, &bad, av_of)});
}

static void bind_window(struct play *p, struct side *s, struct bound *b, int type)
{
	static const unsigned rights[] = {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ,
					  IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
	struct ibv_mr region = {.lkey = REGION};
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW};

	/* one of type 2 that is bound is bound again in vain */
	if (type == IBV_MW_TYPE_2 && !b->is_free && below(p, 20))
		return;
	b->bytes = 1 + below(p, 3000);
	b->va = (uintptr_t)s->memory + 120 * 1024 + below(p, 4000);
	wr.bind_mw.mw = &b->mw;
	wr.bind_mw.rkey = (b->mw.rkey & ~0xffu) | ((b->mw.rkey + 1) & 0xff);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){&region, b->va, b->bytes,
							 rights[below(p, 20) ? 2 : below(p, 2)]};
	post(p, s, &wr);
	b->mw.rkey = wr.bind_mw.rkey;
	b->is_free = false;
}

static void invalidate(struct play *p, struct side *s, struct bound *b, bool of_peer)
{
	struct ibv_sge sge = {(uintptr_t)s->memory, 1 + below(p, 100), 0x101};
	struct ibv_send_wr wr = {.opcode = of_peer ? IBV_WR_SEND_WITH_INV : IBV_WR_LOCAL_INV,
				 .sg_list = &sge,
				 .num_sge = of_peer,
				 .invalidate_rkey = b->mw.rkey};

	post(p, s, &wr);
	b->is_free = true;
}

static void use_window(struct play *p, struct side *s, const struct bound *b)
{
	struct ibv_sge sge = {(uintptr_t)s->memory + below(p, 5000), 0, 0x101};
	struct ibv_send_wr wr = {.opcode = below(p, 3) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
				 .sg_list = &sge, .num_sge = 1};
	uint32_t at = below(p, b->bytes);

	if (b->is_free && below(p, 30))
		return;
	sge.length = below(p, 100) ? 1 + below(p, b->bytes - at) : b->bytes - at + 1;
	wr.wr.rdma.remote_addr = b->va + at;
	wr.wr.rdma.rkey = b->mw.rkey;
	post(p, s, &wr);
}

static void window_request(struct play *p, struct side *s)
{
	unsigned mine = s == &p->j->w->b;
	int type = below(p, 2) ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1;
	struct bound *b = &p->bound[mine][type - 1], *peers = &p->bound[!mine][type - 1];
	uint32_t what = below(p, 10);

	if (what < 2)
		bind_window(p, s, b, type);
	else if (what == 2 && type == IBV_MW_TYPE_2)
		invalidate(p, s, b, false);
	else if (what == 3 && type == IBV_MW_TYPE_2 && !peers->is_free)
		invalidate(p, s, peers, true);
	else if (peers->bytes)
		use_window(p, s, peers);
}

/* --- ATOMIC WRITE and FLUSH --- */

#define FLUSHABLE 0x601

static void make_flushable(struct play *p)
{
	struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
						      IBV_ACCESS_REMOTE_ATOMIC | TP_ACCESS_FLUSH_GLOBAL};

	for (unsigned i = 0; i < 2; i++) {
		struct side *s = i ? &p->j->w->b : &p->j->w->a;
		const struct eng_mr_attr region = {
			.key = FLUSHABLE, .pd = 1, .addr = s->memory, .length = MEMORY,
			.iova = (uintptr_t)s->memory,
			.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				  TP_ACCESS_FLUSH_GLOBAL};

		eng_mr_del(s->engine, FLUSHABLE);
		assert_int_equal(eng_mr_add(s->engine, &region), 0);
		assert_int_equal(eng_qp_modify(s->qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
	}
}

static void placement_request(struct play *p, struct side *s)
{
	struct side *peer = s == &p->j->w->a ? &p->j->w->b : &p->j->w->a;
	uint64_t va = (uintptr_t)peer->memory + 120 * 1024 + 8 * below(p, 100) + !below(p, 60);
	struct ibv_sge sge = {(uintptr_t)s->memory + below(p, 5000), 8, 0x101};
	struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_WRITE, .sg_list = &sge, .num_sge = 1};

	if (below(p, 2)) {
		wr.wr.rdma.remote_addr = va;
		wr.wr.rdma.rkey = FLUSHABLE;
	} else {
		wr.num_sge = 0;
		eng_flush_wr(&wr, below(p, 60) ? FLUSHABLE : 0x101, va, below(p, 3000),
			     WIRE_FLUSH_GLOBAL, (uint8_t)below(p, 2));
	}
	post(p, s, &wr);
}

/* --- tag matching --- */

static void make_tags(struct play *p)
{
	struct side *s[2] = {&p->j->w->a, &p->j->w->b};

	if (p->srq[0])
		return;
	for (unsigned i = 0; i < 2; i++) {
		const struct eng_mr_attr region = {
			.key = EXPORTED, .pd = 1, .addr = s[i]->memory, .length = MEMORY,
			.iova = EXPORTED_IOVA, .access = IBV_ACCESS_REMOTE_READ};

		assert_int_equal(eng_mr_add(s[i]->engine, &region), 0);
		eng_qp_destroy(s[i]->qp);
		assert_int_equal(eng_srq_create(s[i]->engine, 1, 32, 2, 0, NULL, &p->srq[i]), 0);
		assert_int_equal(eng_srq_match_tags(p->srq[i], s[i]->cq, 16), 0);
		make_qp(s[i], IBV_QPT_RC, i ? 0x22 : 0x11, p->srq[i]);
	}
	connect_ends(p);
}

static void tag_operation(struct play *p, struct side *s)
{
	unsigned i = s == &p->j->w->b;
	struct ibv_sge sge = {(uintptr_t)s->memory + 128 * 1024 + below(p, 100) * 1000,
			      below(p, 30) ? 9100 : 40, 0x101};
	struct ibv_ops_wr wr = {
		.wr_id = p->next_id++,
		.opcode = (enum ibv_ops_wr_opcode)(below(p, 4) ? IBV_WR_TAG_ADD :
						   below(p, 3) ? IBV_WR_TAG_SYNC :
								 IBV_WR_TAG_DEL),
		.flags = below(p, 2) ? IBV_OPS_SIGNALED : 0,
		.tm = {.unexpected_cnt = p->unexpected[i] - !below(p, 8),
		       .handle = below(p, 50),
		       .add = {.recv_wr_id = p->next_id++,
			       .sg_list = &sge,
			       .num_sge = 1,
			       .tag = below(p, 4),
			       .mask = below(p, 4) ? UINT64_MAX : ~1ull}}};

	note(p, (struct event){.what = 'p', .a = (uint64_t)eng_srq_post_ops(p->srq[i], &wr, NULL)});
}

static void tag_request(struct play *p, struct side *s)
{
	struct ibv_tmh tmh = {.opcode = below(p, 3) ? IBV_TMH_EAGER : IBV_TMH_RNDV,
			      .app_ctx = htobe32(below(p, 100)), .tag = htobe64(below(p, 4))};
	struct ibv_rvh rvh = {.va = htobe64(EXPORTED_IOVA + below(p, 5000)),
			      .rkey = htobe32(EXPORTED), .len = htobe32(1 + below(p, 5000))};
	uint8_t *at = s->memory + 100 * 1024 + 256 * below(p, 64);
	struct ibv_sge sge = {(uintptr_t)at, sizeof(tmh) + 1 + below(p, 200), 0x101};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};

	if (below(p, 2)) {
		tag_operation(p, s);
		return;
	}
	if (tmh.opcode == IBV_TMH_RNDV)
		sge.length = sizeof(tmh) + sizeof(rvh);
	memcpy(at, &tmh, sizeof(tmh));
	memcpy(at + sizeof(tmh), &rvh, sizeof(rvh));
	if (sge.length <= 64 && below(p, 2))
		wr.send_flags = IBV_SEND_INLINE;
	post(p, s, &wr);
}

/* --- XRC: an initiator and a target on each side --- */

static void make_xrc(struct play *p)
{
	struct side *s[2] = {&p->j->w->a, &p->j->w->b};

	if (p->target[0])
		return;
	for (unsigned i = 0; i < 2; i++) {
		struct eng_qp_init init = {.qpn = i ? 0x22 : 0x11, .type = IBV_QPT_XRC_SEND, .pd = 1,
					   .send_cq = s[i]->cq, .recv_cq = s[i]->cq,
					   .max_send_wr = 32, .max_send_sge = 2, .max_inline = 64,
					   .ctx = s[i]};

		eng_qp_destroy(s[i]->qp);
		assert_int_equal(eng_srq_create(s[i]->engine, 1, 32, 2, 0, NULL, &p->srq[i]), 0);
		assert_int_equal(eng_srq_join_xrcd(p->srq[i], SRQN, 5, s[i]->cq), 0);
		assert_int_equal(eng_qp_create(s[i]->engine, &init, &s[i]->qp), 0);
		init = (struct eng_qp_init){.qpn = TARGET(i), .type = IBV_QPT_XRC_RECV, .xrcd = 5,
					    .ctx = s[i]};
		assert_int_equal(eng_qp_create(s[i]->engine, &init, &p->target[i]), 0);
	}
	connect_ends(p);
}

/* --- the script --- */

static void step(struct play *p)
{
	struct side *s = below(p, 2) ? &p->j->w->a : &p->j->w->b;
	uint32_t what = below(p, 100), n = 1 + below(p, 8);

	if ((has_failed(p, 0) || has_failed(p, 1)) && !below(p, 5))
		begin_anew(p);
	else if (what < 25)
		while (n--)
			step_receive(p, s);
	else if (what < 45 && p->extra->request)
		p->extra->request(p, s);
	else if (what < 60)
		for (n = below(p, 3) ? 1 : n; n--;)
			step_send(p, s);
	else if (what < 90)
		watch_poll(p, s, (int)n);
	else if (what < 94)
		clock_now.ns += 1000 * below(p, 40000);
	else if (what < 97)
		eng_tick(s->engine);
	else if (what < 99)
		eng_progress(s->engine);
	else /* as after a change of the fabric: the next packet asks for the way again */
		s->flow->serial++;
	watch(p, 0);
	watch(p, 1);
	note(p, (struct event){.what = 't',
			       .a = (uint64_t)tp_qp_expiry(p->j->w->a.qp->tp).ns,
			       .b = (uint64_t)tp_qp_expiry(p->j->w->b.qp->tp).ns});
}

static void play(const struct extra *extra, uint64_t seed, bool general)
{
	struct play p = {.extra = extra,
			 .trace = trace[general],
			 .n = &traced[general],
			 .random = seed * 0x9e3779b97f4a7c15ull + 1,
			 .av = {{.dlid = 2, .port_num = 1},
				{.dlid = 1, .port_num = 1},
				{.dlid = 1, .port_num = 1, .src_path_bits = 1}}};
	struct side *s[2];

	*p.n = 0;
	p.j = seed % 3 ? join_biased_as(extra->type) : join_as(extra->type);
	s[0] = &p.j->w->a;
	s[1] = &p.j->w->b;
	for (unsigned i = 0; i < 2; i++) {
		s[i]->engine->cfg.general_only = general;
		fill(s[i], 64 * 1024);
		eng_flow_drop(s[i]->qp); /* it notes anew what it may do */
	}
	s[1]->page->port[0].lmc = 1;
	p.j->in[1].source.mask = 0xfffe;
	if (extra->prepare)
		extra->prepare(&p);
	for (p.step = 0; p.step < STEPS; p.step++)
		step(&p);
	for (unsigned i = 0; i < 2; i++)
		note(&p, (struct event){.side = "AB"[i],
					.what = 'm',
					.hash = hash_of(s[i]->memory, MEMORY)});
	part(p.j);
}

/* Return: how many completions there were */
static unsigned compare(uint64_t seed)
{
	unsigned completions = 0;

	for (unsigned i = 0; i < traced[0] || i < traced[1]; i++) {
		const struct event *f = &trace[0][i], *g = &trace[1][i];

		if (i < traced[0] && i < traced[1] && f->side == g->side &&
		    f->what == g->what && f->a == g->a && f->b == g->b && f->c == g->c &&
		    f->hash == g->hash && f->step == g->step) {
			completions += f->what == 'c';
			continue;
		}
		fail_msg("seed %u, event %u of %u, %u: fast: step %u %c%c %lx %lx %lx "
			 "%lx, general: "
			 "step %u %c%c %lx %lx %lx %lx",
			 (unsigned)seed, i, traced[0], traced[1], f->step, f->side,
			 f->what, f->a, f->b, f->c, f->hash, g->step, g->side, g->what,
			 g->a, g->b, g->c, g->hash);
	}
	return completions;
}

static void both_paths_agree(const struct extra *extra)
{
	unsigned completions = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		play(extra, seed, false);
		play(extra, seed, true);
		completions += compare(seed);
	}
	assert_in_range(completions, 100 * SEEDS, UINT32_MAX);
}

static void rc_is_the_same_by_both_paths(void **state)
{
	both_paths_agree(&(struct extra){.type = IBV_QPT_RC});
}

static void ud_is_the_same_by_both_paths(void **state)
{
	both_paths_agree(&(struct extra){.type = IBV_QPT_UD});
}

static void memory_windows_are_the_same_by_both_paths(void **state)
{
	both_paths_agree(&(struct extra){IBV_QPT_RC, make_windows, window_request});
}

static void placement_is_the_same_by_both_paths(void **state)
{
	both_paths_agree(&(struct extra){IBV_QPT_RC, make_flushable, placement_request});
}

static void tags_are_the_same_by_both_paths(void **state)
{
	both_paths_agree(&(struct extra){IBV_QPT_RC, make_tags, tag_request});
}

static void xrc_is_the_same_by_both_paths(void **state)
{
	both_paths_agree(&(struct extra){IBV_QPT_RC, make_xrc, NULL});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rc_is_the_same_by_both_paths),
		cmocka_unit_test(ud_is_the_same_by_both_paths),
		cmocka_unit_test(memory_windows_are_the_same_by_both_paths),
		cmocka_unit_test(placement_is_the_same_by_both_paths),
		cmocka_unit_test(tags_are_the_same_by_both_paths),
		cmocka_unit_test(xrc_is_the_same_by_both_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
