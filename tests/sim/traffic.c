/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Requests, their bytes, and what their completions must say. Every byte of
 * a message follows from its key, so that the receiver can tell which message
 * it has and whether it is whole.
 */
#include <string.h>

#include "base/bytes.h"
#include "client.h"
#include "conn.h"
#include "engine/fast.h"
#include "pair.h"

#define RECV_BIT    (1ull << 63)
#define PROBE_BYTES 64
#define QKEY	    0x1ee7

/* --- bytes --- */

static uint64_t key_of(const struct end *e, uint32_t what)
{
	struct rng r = {e->conn->sim->plan->seed ^ ((uint64_t)e->conn->index << 40 |
						    (uint64_t)e->side << 36 | what)};

	return rng_next(&r);
}
#define KEY_FIXED 0xfffff

static uint64_t word_of(uint64_t key, size_t i)
{
	return (key + i) * 0x9e3779b97f4a7c15ull;
}

static void fill(uint8_t *to, size_t len, uint64_t key)
{
	uint64_t word;

	for (size_t i = 0; i < len; i += 8) {
		word = word_of(key, i);
		memcpy(to + i, &word, MIN(len - i, sizeof(word)));
	}
}

static bool holds(const uint8_t *bytes, size_t len, uint64_t key)
{
	uint64_t word;

	for (size_t i = 0; i < len; i += 8) {
		word = word_of(key, i);
		if (memcmp(bytes + i, &word, MIN(len - i, sizeof(word))))
			return false;
	}
	return true;
}

/* --- the wire as an engine sees it: PSNs, MSNs, the digest --- */

/* The end of @p that sends to this QP; NULL: none, or nobody knows: LIDs changed
 * under a connection when two subnets met, and another has its addresses now */
static struct end *sender_of(struct program *p, const struct wire_packet *pkt)
{
	struct end *found = NULL;

	for (int i = 0; p->sim->conn && i < p->sim->plan->num_conns; i++) {
		struct conn *c = &p->sim->conn[i];

		for (int side = 0; side < 2 && c->state != CONN_DOWN; side++) {
			struct end *e = &c->end[side];

			if (e->program != p || !e->eng || e->peer_qpn != pkt->bth.dest_qpn ||
			    e->av.dlid != pkt->lrh.dlid)
				continue;
			if (found)
				found->mixed_up = e->mixed_up = true;
			found = e;
		}
	}
	return found && !found->mixed_up ? found : NULL;
}

/* 9.7.3: a request takes one PSN, a read as many as its responses */
static uint32_t psns_of(const struct end *e, const struct wire_packet *pkt)
{
	uint32_t mtu = e->conn->plan->mtu_bytes;

	if ((pkt->bth.opcode & 0x1f) != WIRE_READ_REQUEST)
		return MAX(1u,
			   DIV_ROUND_UP(pkt->payload_bytes, mtu)); /* lanes: segments */
	return MAX(1u, DIV_ROUND_UP(pkt->reth.length_bytes, mtu));
}

static void check_psn(struct end *e, const struct wire_packet *pkt)
{
	bool repeat, rc = e->conn->plan->transport == PLAN_RC;
	psn_t at = pkt->bth.psn;

	if (e->mixed_up) /* some were not seen */
		return;
	if (sim_sabotage(e->conn->sim, ORACLE_PSN))
		at = psn_add(at, 1);
	if (!e->psn_known) {
		e->psn_known = true;
		e->psn_next = psn(e->conn->plan->start_psn[e->side]);
	}
	if (e->program->gave_up && psn_before(e->psn_next, at))
		e->psn_next = at;
	repeat = psn_before(at, e->psn_next);
	if ((repeat && !rc) || psn_before(e->psn_next, at))
		sim_fail(e->conn->sim, ORACLE_PSN,
			 "conn %d.%d sent PSN %06x of opcode %02x where %06x was next",
			 e->conn->index, e->side, at.v, pkt->bth.opcode, e->psn_next.v);
	if (!repeat)
		violation_check_fence(e, pkt->bth.psn);
	at = psn_add(at, psns_of(e, pkt));
	if (psn_before(e->psn_next, at))
		e->psn_next = at;
}

/* 9.7.7.1: the count of completed messages only grows, and not beyond what
 * was asked. (What answers a repeated read bears the count of its own time.) */
static void check_msn(struct end *e, const struct wire_packet *pkt)
{
	uint32_t msn = pkt->aeth.msn, asked = peer_of(e)->sq_tail;

	if (sim_sabotage(e->conn->sim, ORACLE_CREDIT))
		msn = asked + 1;
	if (msn < e->msn_seen || msn > asked)
		sim_fail(e->conn->sim, ORACLE_CREDIT,
			 "conn %d.%d: MSN %u after %u, %u requests were made",
			 e->conn->index, e->side, msn, e->msn_seen, asked);
	e->msn_seen = msn;
}

static void watch(struct program *p, const void *bytes, size_t len)
{
	struct wire_packet pkt;
	struct end *e;
	uint32_t flags;

	p->sim->result->packets++;
	sim_note_bytes(p->sim, bytes, len);
	if (wire_packet_decode(bytes, len, &pkt) < 0)
		sim_fail(p->sim, ORACLE_PSN,
			 "program %d sent %zu bytes that are no packet", p->index, len);
	flags = wire_opcodes[pkt.bth.opcode].flags;
	e = sender_of(p, &pkt);
	if (!e || e->conn->plan->transport == PLAN_UD)
		return;
	if (!(flags & WIRE_IS_RESPONSE))
		check_psn(e, &pkt);
	else if (pkt.bth.opcode == WIRE_ACKNOWLEDGE)
		check_msn(e, &pkt);
}

/* --- the library's link, overheard --- */

static const uint8_t *reserved;
static bool is_packet; /* or a message about a target, abi/target.h */

static struct program *program_of(void *link)
{
	return container_of(link, struct program, soft.link);
}

static void *reserve(void *link, const struct wire_packet *pkt, unsigned port_num,
		     size_t len)
{
	void *room = link_ops.reserve(link, pkt, port_num, len);

	reserved = room;
	is_packet = pkt;
	return room;
}

/* What a QP has put into a lane before was sent before. A program that is its own peer may have
 * read it already, so that the flow can leave the lane within a turn. */
static void commit(void *link, unsigned port_num, size_t len)
{
	traffic_watch_lanes(program_of(link));
	if (is_packet)
		watch(program_of(link), reserved, len);
	else
		sim_note_bytes(program_of(link)->sim, reserved, len);
	link_ops.commit(link, port_num, len);
}

/* a segment is given up after the head-of-queue lifetime, as by a link: nobody sees its PSNs */
static enum eng_medium note_medium(void *link, enum eng_medium medium)
{
	program_of(link)->gave_up |= medium == ENG_LOST;
	return medium;
}

static enum eng_medium choose(void *link, const struct eng_path *path, uint32_t bytes,
			   struct eng_flow **flow)
{
	return note_medium(link, link_ops.choose(link, path, bytes, flow));
}

static enum eng_medium stuck(void *link, struct eng_flow *flow)
{
	return note_medium(link, link_ops.stuck(link, flow));
}

static const void *receive(void *link, size_t *len, unsigned *port_num)
{
	const void *bytes = link_ops.receive(link, len, port_num);

	if (bytes)
		sim_note_bytes(program_of(link)->sim, bytes, MIN(*len, (size_t)20));
	return bytes;
}

const struct eng_link_ops *traffic_link_ops(void)
{
	static struct eng_link_ops overheard;

	overheard = link_ops;
	overheard.reserve = reserve;
	overheard.commit = commit;
	overheard.receive = receive;
	overheard.choose = choose;
	overheard.stuck = stuck;
	return &overheard;
}

/* --- lanes: what was written into them since the last look --- */

/* the record's contents belong to the run's digest: its headers, and its payload in the
 * cell or in bulk */
static void note_record(struct program *p, struct abi_lane_rx *look,
			const struct abi_cell *cell, const uint64_t word[3])
{
	struct abi_record record;
	const uint8_t *payload;
	uint32_t ext;

	abi_record_unpack(word, &record);
	ext = wire_opcodes[record.opcode].ext_bytes;
	if (wire_opcodes[record.opcode].flags & WIRE_HAS_DETH)
		ext -= WIRE_DETH_BYTES - ABI_RECORD_QKEY_BYTES;
	sim_note_bytes(p->sim, word, 3 * sizeof(word[0]));
	payload = eng_payload_at(look, cell, word, ext);
	if (!payload) {
		sim_fail(p->sim, ORACLE_COUNT, "the payload of record %u of a lane is not in it",
			 look->head);
		return;
	}
	sim_note_bytes(p->sim, cell->data, ext);
	sim_note_bytes(p->sim, payload, record.length_bytes);
}

/* the record at @position, as its receiver sees it */
static void watch_record(struct program *p, struct abi_lane *memory, uint32_t position)
{
	struct abi_lane_rx look = {.memory = memory, .head = position};
	uint64_t word[3] = {0};
	const struct abi_cell *cell = abi_lane_next(&look, word);
	struct wire_packet pkt = {0};
	const struct program *peer;
	struct abi_record record;
	struct end *e;

	if (!cell) {
		sim_fail(p->sim, ORACLE_COUNT, "record %u of a lane is none", position);
		return;
	}
	abi_record_unpack(word, &record);
	p->sim->result->packets += record.packets;
	p->sim->result->by_lane += record.packets;
	note_record(p, &look, cell, word);
	e = conns_end_of(p, record.src_qpn);
	peer = e ? peer_of(e)->program : pairs_peer_of(p, record.src_qpn);
	if (peer && peer->node != p->node)
		p->sim->laned += record.packets;
	if (!e || e->conn->plan->transport == PLAN_UD ||
	    wire_opcodes[record.opcode].flags & WIRE_IS_RESPONSE)
		return;
	wire_ext_decode(cell->data, wire_opcodes[record.opcode].flags, &pkt);
	pkt.bth.opcode = record.opcode;
	pkt.bth.psn = psn(record.psn);
	pkt.payload_bytes = record.packets * e->conn->plan->mtu_bytes;
	check_psn(e, &pkt);
}

void traffic_watch_lanes(struct program *p)
{
	struct lane_out *lane;

	list_for_each_entry(lane, &p->soft.link.lanes.out, node)
	{
		struct lane_watch *w =
			&p->lane_watch[lane->id % ARRAY_SIZE(p->lane_watch)];
		const struct abi_lane_tx *tx = &lane->eng.tx;

		if (w->lane != lane || w->id != lane->id)
			*w = (struct lane_watch){.lane = lane, .id = lane->id};
		for (; w->seen != tx->tail; w->seen++)
			if (tx->tail - w->seen <= ABI_LANE_CELLS)
				watch_record(p, tx->memory, w->seen);
	}
}

/* --- receives --- */

static size_t recv_slot(const struct end *e)
{
	return e->conn->plan->slot_bytes + (e->conn->plan->transport == PLAN_UD ? 40 : 0);
}

void traffic_post_recv(struct end *e)
{
	size_t slot = recv_slot(e), at = e->rq_tail % e->conn->plan->rq_depth * slot;
	struct ibv_sge sge[2] = {{.addr = e->rx.iova + at,
				  .length = (uint32_t)(slot / 2),
				  .lkey = e->rx.key},
				 {.addr = e->rx.iova + at + slot / 2,
				  .length = (uint32_t)(slot - slot / 2),
				  .lkey = e->rx.key}};
	struct ibv_recv_wr wr = {
		.wr_id = RECV_BIT | (uint64_t)e->conn->index << 40 |
			 (uint64_t)e->side << 36 | (e->rq_tail & 0xffffffff),
		.sg_list = sge,
		.num_sge = 2,
	};
	struct ibv_recv_wr *bad;
	int ret;

	violation_shape_recv(e, sge, ARRAY_SIZE(sge));
	ret = e->eng_srq ? eng_srq_post_recv(e->eng_srq, &wr, &bad)
			     : eng_post_recv(e->eng, &wr, &bad);

	if (ret)
		sim_fail(e->conn->sim, ORACLE_ORDER,
			 "conn %d.%d: a receive was refused: %d", e->conn->index, e->side,
			 ret);
	memset(e->rx.bytes + at, 0xee, slot);
	e->rq_tail++;
}

static void later_recv(struct end *e)
{
	uint64_t delay = e->conn->plan->repost_ns[e->side];

	if (e->failed)
		return;
	if (violation_withholds(e)) {
		e->rules.withheld++;
		return;
	}
	if (!delay || e->conn->plan->transport != PLAN_RC) {
		traffic_post_recv(e);
		return;
	}
	e->repost[(e->repost_head + e->num_reposts++) % SQ_MAX] =
		rt_now(e->conn->sim->rt).ns + delay;
}

static bool post_late_recvs(struct end *e, mono_t *next)
{
	uint64_t now = rt_now(e->conn->sim->rt).ns;
	bool posted = false;

	if (violation_withholds(e))
		return false;
	while (e->num_reposts && e->repost[e->repost_head % SQ_MAX] <= now) {
		e->repost_head++;
		e->num_reposts--;
		traffic_post_recv(e);
		posted = true;
	}
	if (e->num_reposts)
		*next = mono_min(*next, (mono_t){e->repost[e->repost_head % SQ_MAX]});
	return posted;
}

/* --- posting --- */

static const enum ibv_wr_opcode opcodes[VERB_NUM] = {
	[VERB_SEND] = IBV_WR_SEND,
	[VERB_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
	[VERB_WRITE] = IBV_WR_RDMA_WRITE,
	[VERB_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
	[VERB_READ] = IBV_WR_RDMA_READ,
	[VERB_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	[VERB_CMP_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
};

static const struct plan_op probe = {
	.verb = VERB_SEND, .bytes = PROBE_BYTES, .num_sge = 1, .signalled = true};

static const struct plan_op *op_of(const struct end *e, const struct posted *posted)
{
	if (posted->violation)
		return &posted->violation->op;
	return posted->is_probe ? &probe : &e->conn->plan->op[e->side][posted->op];
}

const struct plan_op *traffic_op(const struct end *e, uint32_t seq)
{
	return op_of(e, &e->sq[seq % SQ_MAX]);
}

static uint32_t key_number(const struct posted *posted)
{
	return posted->violation ? PLAN_OPS + 1 + posted->op :
	       posted->is_probe	 ? PLAN_OPS :
				   posted->op;
}

static const struct tp_av *av_of(struct ibv_ah *ah)
{
	return &((struct end *)(void *)ah)->av;
}

static int cut(const struct end *e, const struct plan_op *op, uint8_t *bytes,
	       uint64_t iova, struct ibv_sge *sge)
{
	uint32_t at = 0, n = op->num_sge;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t part = i == n - 1 ? op->bytes - at : op->bytes / n;

		sge[i] = (struct ibv_sge){
			.addr = op->inlined ? (uint64_t)(uintptr_t)bytes + at : iova + at,
			.length = part,
			.lkey = e->src.key};
		at += part;
	}
	return (int)n;
}

static void fill_remote(struct end *e, const struct plan_op *op, struct ibv_send_wr *wr)
{
	struct end *peer = peer_of(e);
	size_t slot = (size_t)(e->sq_tail % e->conn->plan->sq_depth) *
		      e->conn->plan->slot_bytes;

	switch (op->verb) {
	case VERB_WRITE:
	case VERB_WRITE_IMM:
		wr->wr.rdma.remote_addr = peer->target.iova + slot;
		wr->wr.rdma.rkey = peer->target.key;
		break;
	case VERB_READ:
		wr->wr.rdma.remote_addr = peer->fixed.iova;
		wr->wr.rdma.rkey = peer->fixed.key;
		break;
	case VERB_FETCH_ADD:
	case VERB_CMP_SWAP:
		wr->wr.atomic.remote_addr = peer->counter.iova;
		wr->wr.atomic.rkey = peer->counter.key;
		wr->wr.atomic.compare_add =
			op->verb == VERB_FETCH_ADD ? 1 : e->counter_high;
		wr->wr.atomic.swap = e->counter_high + 1;
		break;
	default:
		break;
	}
	if (e->conn->plan->transport != PLAN_UD)
		return;
	wr->wr.ud.ah = (void *)e;
	wr->wr.ud.remote_qpn = peer->qp->qp_num;
	wr->wr.ud.remote_qkey = QKEY;
}

static void note_message(struct end *e, const struct posted *posted,
			 const struct plan_op *op)
{
	bool write = op->verb == VERB_WRITE_IMM;

	if (op->verb != VERB_SEND && op->verb != VERB_SEND_IMM && !write)
		return;
	if (posted->violation && !violation_delivers(posted->violation))
		return;
	e->message[e->num_messages++] = (struct message){
		.key = key_of(e, key_number(posted)),
		.bytes = op->bytes,
		.imm = key_number(posted) | 0xabc00000,
		.has_imm = op->verb == VERB_SEND_IMM || write,
		.is_write = write,
	};
}

/* the PSNs that it will take, once it is its turn (9.7.2) */
static psn_t take_psns(struct end *e, const struct plan_op *op)
{
	psn_t first = e->psn_posted;

	e->psn_posted = psn_add(first, DIV_ROUND_UP(op->bytes, e->conn->plan->mtu_bytes));
	return first;
}

static void post(struct end *e, struct posted what)
{
	uint32_t depth = e->conn->plan->sq_depth;
	struct posted *posted = &e->sq[e->sq_tail % SQ_MAX];
	size_t at = (size_t)(e->sq_tail % depth) * e->conn->plan->slot_bytes;
	struct ibv_sge sge[4];
	struct ibv_send_wr *bad, wr = {
					 .wr_id = (uint64_t)e->conn->index << 40 |
						  (uint64_t)e->side << 36 | e->sq_tail,
					 .sg_list = sge,
				 };
	const struct plan_op *op;
	int ret;

	*posted = what;
	op = op_of(e, posted);
	posted->at = rt_now(e->conn->sim->rt);
	posted->psn = take_psns(e, op);
	/* a queue of unsignalled requests alone would never be free again */
	posted->signalled = op->signalled || e->conn->plan->sig_all ||
			    e->sq_tail % depth == depth - 1;
	wr.opcode = opcodes[op->verb];
	wr.send_flags =
		(posted->signalled ? IBV_SEND_SIGNALED : 0) |
		(op->inlined ? IBV_SEND_INLINE : 0) |
		(op->solicited ? IBV_SEND_SOLICITED : 0) |
		(op->fenced && e->conn->plan->transport == PLAN_RC ? IBV_SEND_FENCE : 0);
	wr.imm_data = htobe32(key_number(posted) | 0xabc00000);
	fill(e->src.bytes + at, MIN(op->bytes, e->conn->plan->slot_bytes),
	     key_of(e, key_number(posted)));
	wr.num_sge = cut(e, op, e->src.bytes + at, e->src.iova + at, sge);
	fill_remote(e, op, &wr);
	if (posted->violation)
		violation_shape(e, posted->violation, &wr);
	note_message(e, posted, op);
	if (op->verb >= VERB_FETCH_ADD && !posted->violation)
		e->counter_high++;
	e->sq_tail++;
	ret = eng_post_send(e->eng, &wr, &bad, av_of);
	if (ret)
		sim_fail(e->conn->sim, ORACLE_ORDER,
			 "conn %d.%d: a %u of %u bytes was refused: %d", e->conn->index,
			 e->side, op->verb, op->bytes, ret);
	if (op->inlined) /* copied: 10.7.2.3 */
		memset(e->src.bytes + at, 0xdd, op->bytes);
}

/* an unreliable sender must not outrun a receiver that only lags */
static bool paced(const struct end *e)
{
	const struct end *peer = peer_of((struct end *)e);

	return e->conn->plan->transport == PLAN_RC ||
	       !plan_is_faultless(e->conn->sim->plan->kind) ||
	       e->num_messages - peer->delivered < e->conn->plan->rq_depth / 2;
}

static bool next_is_due(const struct end *e, mono_t *next)
{
	const struct plan_conn *plan = e->conn->plan;
	const struct plan_op *op = &plan->op[e->side][e->next_op];
	uint64_t at;

	if (e->next_op >= plan->num_ops[e->side])
		return false;
	at = e->conn->sim->traffic_began.ns + op->at_ns;
	if (at <= rt_now(e->conn->sim->rt).ns || e->conn->sim->calm)
		return true;
	*next = mono_min(*next, (mono_t){at});
	return false;
}

static bool post_due(struct end *e, mono_t *next)
{
	const struct plan_conn *plan = e->conn->plan;
	const struct plan_violation *v;
	bool posted = false;

	while (e->sq_tail - e->sq_head < plan->sq_depth && paced(e) &&
	       next_is_due(e, next)) {
		post(e, (struct posted){.op = e->next_op++});
		posted = true;
	}
	while (e->sq_tail - e->sq_head < plan->sq_depth && paced(e) &&
	       (v = violation_due(e, next))) {
		violation_begins(e, v);
		post(e, (struct posted){.op = e->rules.repeats, .violation = v});
		posted = true;
	}
	if (e->conn->sim->calm && !e->probed && e->next_op == plan->num_ops[e->side] &&
	    e->sq_tail - e->sq_head < plan->sq_depth) {
		e->probed = true;
		post(e, (struct posted){.is_probe = true});
		posted = true;
	}
	return posted;
}

bool traffic_turn(struct program *p, mono_t *next)
{
	bool posted = false;

	for (int i = 0; p->sim->conn && i < p->sim->plan->num_conns; i++)
		for (int side = 0; side < 2; side++) {
			struct end *e = &p->sim->conn[i].end[side];

			if (e->program != p || e->conn->state != CONN_UP || e->failed)
				continue;
			posted |= post_late_recvs(e, next);
			posted |= post_due(e, next);
		}
	return posted;
}

/* --- completions of sends --- */

static void data_error(const struct end *e, const char *what, uint32_t bytes)
{
	sim_fail(e->conn->sim, ORACLE_DATA,
		 "conn %d.%d: %s of %u bytes is not what was sent", e->conn->index,
		 e->side, what, bytes);
}

static void check_atomic(struct end *e, uint64_t seen)
{
	if (seen != e->counter_low)
		sim_fail(e->conn->sim, ORACLE_DATA,
			 "conn %d.%d: an atomic saw %llu where %llu was due",
			 e->conn->index, e->side, (unsigned long long)seen,
			 (unsigned long long)e->counter_low);
	e->counter_low++;
}

/* the request at the head of the queue succeeded */
static void succeeded(struct end *e, const struct posted *posted)
{
	const struct plan_op *op = op_of(e, posted);
	size_t at = (size_t)(e->sq_head % e->conn->plan->sq_depth) *
		    e->conn->plan->slot_bytes;
	struct end *peer = peer_of(e);
	bool rc = e->conn->plan->transport == PLAN_RC;
	uint64_t value;

	e->ok++;
	if (posted->violation) {
		violation_succeeded(e, posted);
		e->reported += violation_delivers(posted->violation);
		return;
	}
	if (op->verb == VERB_SEND || op->verb == VERB_SEND_IMM ||
	    op->verb == VERB_WRITE_IMM)
		e->reported++;
	if (sim_sabotage(e->conn->sim, ORACLE_DATA) && op->verb == VERB_WRITE && rc &&
	    peer->qp)
		peer->target.bytes[at] ^= 1;
	switch (op->verb) {
	case VERB_WRITE:
	case VERB_WRITE_IMM:
		if (rc && peer->qp && peer->program->alive &&
		    !holds(peer->target.bytes + at, op->bytes,
			   key_of(e, key_number(posted))))
			data_error(e, "a write", op->bytes);
		break;
	case VERB_READ:
		if (!holds(e->src.bytes + at, op->bytes, key_of(peer, KEY_FIXED)))
			data_error(e, "a read", op->bytes);
		break;
	case VERB_FETCH_ADD:
	case VERB_CMP_SWAP:
		memcpy(&value, e->src.bytes + at, 8);
		check_atomic(e, value);
		break;
	default:
		break;
	}
}

bool traffic_answered(const struct end *e, uint32_t seq)
{
	const struct plan_conn *plan = e->conn->plan;
	const uint8_t *slot = e->src.bytes + (size_t)(seq % plan->sq_depth) * plan->slot_bytes;
	const struct posted *posted = &e->sq[seq % SQ_MAX];

	if (op_of(e, posted)->verb == VERB_READ)
		return holds(slot, op_of(e, posted)->bytes, key_of(peer_of((struct end *)e), KEY_FIXED));
	return !holds(slot, 8, key_of(e, key_number(posted)));
}

/* the request @posted did not succeed: may that be? */
static bool excused(struct end *e, const struct posted *posted, enum ibv_wc_status status)
{
	const struct sim *sim = e->conn->sim;

	if (posted->violation && violation_failed(e, posted, status))
		return true;
	if (violation_excuses(e, status))
		return true;
	if (status == IBV_WC_WR_FLUSH_ERR)
		return e->failed;
	if (status == IBV_WC_RNR_RETRY_EXC_ERR)
		return e->conn->plan->rnr_retry < 7;
	if (status != IBV_WC_RETRY_EXC_ERR || e->conn->plan->transport != PLAN_RC)
		return false;
	return !plan_is_faultless(sim->plan->kind) && !e->conn->made_in_calm;
}

static void send_completion(struct end *e, const struct ibv_wc *wc)
{
	uint32_t seq = (uint32_t)(wc->wr_id & 0xffffffff);

	if (sim_sabotage(e->conn->sim, ORACLE_ORDER))
		seq++;
	if (seq - e->sq_head >= e->sq_tail - e->sq_head)
		sim_fail(e->conn->sim, ORACLE_ORDER,
			 "conn %d.%d: request %u completed, open are %u to %u",
			 e->conn->index, e->side, seq, e->sq_head, e->sq_tail);
	while (e->sq_head != seq) {
		if (e->sq[e->sq_head % SQ_MAX].signalled || e->failed)
			sim_fail(e->conn->sim, ORACLE_ORDER,
				 "conn %d.%d: request %u completed before %u",
				 e->conn->index, e->side, seq, e->sq_head);
		succeeded(e, &e->sq[e->sq_head % SQ_MAX]);
		e->sq_head++;
	}
	if (wc->status == IBV_WC_SUCCESS) {
		if (!e->sq[seq % SQ_MAX].signalled || e->failed)
			sim_fail(e->conn->sim, ORACLE_ORDER,
				 "conn %d.%d: request %u completed and should not",
				 e->conn->index, e->side, seq);
		succeeded(e, &e->sq[seq % SQ_MAX]);
	} else {
		const struct posted *posted = &e->sq[seq % SQ_MAX];

		if (!excused(e, posted, wc->status))
			sim_fail(e->conn->sim,
				 posted->violation ? ORACLE_VIOLATION : ORACLE_RELIABLE,
				 "conn %d.%d: request %u ended with status %d without "
				 "cause",
				 e->conn->index, e->side, seq, wc->status);
		e->failed = true;
		e->errors++;
		e->conn->sim->result->errors++;
	}
	e->sq_head++;
	if (e->failed)
		conn_broken(e->conn);
}

/* --- completions of receives --- */

static bool matches(const struct message *m, const struct end *e, const struct ibv_wc *wc,
		    const uint8_t *bytes)
{
	bool has_imm = wc->wc_flags & IBV_WC_WITH_IMM;
	uint32_t grh = e->conn->plan->transport == PLAN_UD ? 40 : 0;

	if (m->has_imm != has_imm || wc->byte_len != m->bytes + grh ||
	    m->is_write != (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) ||
	    (has_imm && be32toh(wc->imm_data) != m->imm))
		return false;
	return m->is_write || holds(bytes + grh, m->bytes, m->key);
}

/* RC: the next one. UC, UD: one of the next, those between are lost; with
 * copies and delays on the way, any */
static void take_message(struct end *e, const struct ibv_wc *wc, const uint8_t *bytes)
{
	struct end *peer = peer_of(e);
	bool rc = e->conn->plan->transport == PLAN_RC;
	uint32_t first = e->delivered, last = peer->num_messages;

	if (rc)
		last = MIN(last, first + 1);
	else if (e->conn->sim->plan->kind == KIND_PACKETS ||
		 e->conn->sim->plan->kind == KIND_CHAOS)
		first = 0;
	for (uint32_t i = first; i < last; i++) {
		if (!matches(&peer->message[i], e, wc, bytes))
			continue;
		peer->message[i].seen = true;
		if (i >= e->delivered) {
			e->lost += i - e->delivered;
			e->conn->sim->result->lost += i - e->delivered;
			e->delivered = i + 1;
			program_kick(peer->program); /* it may wait for this: paced() */
		}
		return;
	}
	sim_fail(e->conn->sim, ORACLE_DATA,
		 "conn %d.%d took a message of %u bytes that is none of %u to %u sent",
		 e->conn->index, e->side, wc->byte_len, first, last);
}

/* May the LIDs of a datagram have changed under way? With a GRH the ICRC does not cover the LRH
 * (7.8.1), and the rules of these faults make the VCRC anew ("crc=vcrc"). */
static bool path_is_unprotected(const struct end *e)
{
	const struct plan *plan = e->conn->sim->plan;

	for (int i = 0; i < plan->num_faults && e->conn->plan->grh; i++)
		if (plan->fault[i].kind == FAULT_CORRUPT && plan->fault[i].kept &&
		    !plan_spoils_vcrc(&plan->fault[i]))
			return true;
	return false;
}

/* 11.4.2.1: a datagram's completion tells the LID that it came from, and the
 * path bits of the one that it came to */
static void check_path(const struct end *e, const struct ibv_wc *wc)
{
	const struct plan *plan = e->conn->sim->plan;
	const uint8_t *bits = e->conn->plan->path_bits;
	uint32_t from = wc->slid & ((1u << plan->lmc) - 1);

	if (sim_sabotage(e->conn->sim, ORACLE_PATHS))
		from ^= 1;
	if (e->conn->plan->transport == PLAN_UD &&
	    (from != bits[!e->side] || wc->dlid_path_bits != bits[e->side]) &&
	    !path_is_unprotected(e))
		sim_fail(e->conn->sim, ORACLE_PATHS,
			 "conn %d.%d: from path %u to %u came a datagram of %u to %u",
			 e->conn->index, e->side, bits[!e->side], bits[e->side], from,
			 wc->dlid_path_bits);
}

static void recv_completion(struct end *e, const struct ibv_wc *wc)
{
	uint32_t seq = (uint32_t)(wc->wr_id & 0xffffffff);
	size_t at = seq % e->conn->plan->rq_depth * recv_slot(e);

	if (seq != e->rq_head || e->rq_head == e->rq_tail)
		sim_fail(e->conn->sim, ORACLE_ORDER,
			 "conn %d.%d: receive %u completed, %u was next of %u",
			 e->conn->index, e->side, seq, e->rq_head, e->rq_tail);
	e->rq_head++;
	e->conn->sim->starved |=
		e->rq_head == e->rq_tail && e->conn->plan->transport != PLAN_RC;
	if (wc->status == IBV_WC_SUCCESS) {
		take_message(e, wc, e->rx.bytes + at);
		check_path(e, wc);
		later_recv(e);
		return;
	}
	if (!violation_excuses_recv(e, seq, wc->status) &&
	    (wc->status != IBV_WC_WR_FLUSH_ERR || !e->failed))
		sim_fail(e->conn->sim, ORACLE_RELIABLE,
			 "conn %d.%d: receive %u ended with status %d without cause",
			 e->conn->index, e->side, seq, wc->status);
}

void traffic_completion(struct program *p, const struct ibv_wc *wc)
{
	struct end *e = &p->sim->conn[wc->wr_id >> 40 & 0xff].end[wc->wr_id >> 36 & 1];

	p->sim->result->completions++;
	sim_note(p->sim, wc->wr_id, (uint64_t)wc->status << 32 | wc->opcode);
	if (wc->wr_id & GROUP_BIT) {
		group_completion(p, wc);
		return;
	}
	if (wc->wr_id & PAIR_BIT) {
		pairs_completion(p, wc);
		return;
	}
	if (!e->qp || wc->qp_num != e->qp->qp_num)
		sim_fail(p->sim, ORACLE_ORDER, "a completion of QP %x, which is gone",
			 wc->qp_num);
	if (wc->wr_id & RECV_BIT)
		recv_completion(e, wc);
	else
		send_completion(e, wc);
}

/* --- incarnations --- */

void traffic_open(struct end *e)
{
	e->sq_head = e->sq_tail = 0;
	e->num_messages = e->reported = e->delivered = 0;
	e->rq_head = e->rq_tail = 0;
	e->num_reposts = e->repost_head = 0;
	e->counter_low = e->counter_high = 0;
	e->failed = e->psn_known = e->mixed_up = false;
	e->msn_seen = 0;
	memset(e->counter.bytes, 0, 8);
	fill(e->fixed.bytes, e->fixed.len, key_of(e, KEY_FIXED));
	e->psn_posted = psn(e->conn->plan->start_psn[e->side]);
	violation_open(e);
	while (e->rq_tail < e->conn->plan->rq_depth)
		traffic_post_recv(e);
}

void traffic_fixed(struct end *e)
{
	if (e->fixed.block && !holds(e->fixed.bytes, e->fixed.len, key_of(e, KEY_FIXED)))
		sim_fail(e->conn->sim, ORACLE_GUARD,
			 "conn %d.%d: a region that nobody may write was written",
			 e->conn->index, e->side);
}

void traffic_close(struct end *e)
{
	struct end *peer = peer_of(e);
	struct ibv_wc wc;

	while (eng_cq_poll(e->program->eng_cq, 1, &wc) > 0)
		traffic_completion(e->program, &wc);
	traffic_fixed(e);
	if (e->conn->plan->transport != PLAN_RC && !violation_broke(e->conn) &&
	    plan_is_faultless(e->conn->sim->plan->kind) &&
	    (e->lost || e->delivered != peer->num_messages))
		sim_fail(e->conn->sim, ORACLE_RELIABLE,
			 "conn %d.%d: %u datagrams of %u arrived, %u passed over, "
			 "nothing is wrong",
			 e->conn->index, e->side, e->delivered, peer->num_messages,
			 e->lost);
	if (e->conn->plan->transport != PLAN_RC)
		e->conn->sim->result->lost += violation_broke(e->conn) ? 0 : peer->num_messages - e->delivered;
	else if (e->delivered < peer->reported ||
		 sim_sabotage(e->conn->sim, ORACLE_RELIABLE))
		sim_fail(e->conn->sim, ORACLE_RELIABLE,
			 "conn %d.%d: %u messages reported sent, %u arrived",
			 e->conn->index, e->side, peer->reported, e->delivered);
	if (e->sq_tail != e->sq_head && e->failed && e->conn->state == CONN_BROKEN)
		e->lost += e->sq_tail - e->sq_head;
}
