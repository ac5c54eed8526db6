/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Programs in a multicast group: each joins by its node's client, attaches a
 * UD QP, and sends datagrams that name their sender and number. A member gets
 * each once, whole, or not at all; when all is well again (and all have joined
 * anew, as after an SM's request) each member gets every probe.
 */
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "conn.h"

#define MESSAGE_BYTES 192
#define DEPTH	      64
#define SLOT	      (MESSAGE_BYTES + 40)
#define AGAIN_NS      (50 * NSEC_PER_MSEC)
#define MESSAGES_MAX  64

/* the IPoIB broadcast group, which the manager keeps */
static const union wire_gid group_gid = {.raw = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0,
						 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}};

struct member {
	struct sim *sim;
	struct program *program;
	struct rt_timer timer;
	bool joined, joining, rejoin, probed;
	struct wire_mcmember_record record;
	struct ib_qp *qp;
	struct eng_qp *eng;
	uint32_t handle;
	struct region rx, src;
	uint32_t rq_tail, sends; /* of this life */
	uint32_t sent;		 /* of the run: numbers of messages */
	uint8_t seen[PLAN_PROGRAMS][MESSAGES_MAX];
	uint32_t probes; /* bit per sender */
};

static struct member *members[PLAN_PROGRAMS];

/* --- the QP --- */

static void *make_qp(struct ib_uobject *u, void *arg)
{
	struct member *m = arg;
	struct ib_qp_init_attr attr = {
		.send_cq = m->program->cq,
		.recv_cq = m->program->cq,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IB_QPT_UD,
	};

	return ib_create_qp_user(u, m->program->pd, &attr);
}

static int modify(struct member *m, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr v = {.qp_state = state, .port_num = 1, .qkey = m->record.qkey};
	struct ib_qp_attr k = {.qp_state = (enum ib_qp_state)state,
			       .port_num = 1,
			       .qkey = m->record.qkey};
	int ret = ib_modify_qp(m->qp, &k, mask | IBV_QP_STATE);

	return ret ?: eng_qp_modify(m->eng, &v, mask | IBV_QP_STATE);
}

static void post_recv(struct member *m)
{
	struct ibv_sge sge = {.addr = m->rx.iova + m->rq_tail % DEPTH * SLOT,
			      .length = SLOT,
			      .lkey = m->rx.key};
	struct ibv_recv_wr *bad,
		wr = {.wr_id = GROUP_BIT | 1ull << 40 | m->rq_tail % DEPTH,
		      .sg_list = &sge,
		      .num_sge = 1};

	if (eng_post_recv(m->eng, &wr, &bad))
		sim_fail(m->sim, ORACLE_ORDER, "member %d: a receive was refused",
			 m->program->index);
	m->rq_tail++;
}

static int build(struct member *m)
{
	struct eng_qp_init init = {
		.type = IBV_QPT_UD,
		.pd = 1,
		.send_cq = m->program->eng_cq,
		.recv_cq = m->program->eng_cq,
		.max_send_wr = DEPTH,
		.max_recv_wr = DEPTH,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.ctx = m,
	};
	union ib_gid gid;
	int ret = region_make(m->program, &m->rx, DEPTH * SLOT, IBV_ACCESS_LOCAL_WRITE);

	ret = ret ?: region_make(m->program, &m->src, DEPTH * MESSAGE_BYTES, 0);
	if (ret)
		return ret;
	m->qp = program_object(m->program, IB_UOBJECT_QP, &m->handle, make_qp, m);
	if (!m->qp)
		return -ENOMEM;
	init.qpn = m->qp->qp_num;
	ret = eng_qp_create(m->program->soft.engine, &init, &m->eng);
	ret = ret
		      ?: modify(m, IBV_QPS_INIT,
				IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	ret = ret ?: modify(m, IBV_QPS_RTR, 0);
	ret = ret ?: modify(m, IBV_QPS_RTS, IBV_QP_SQ_PSN);
	memcpy(gid.raw, group_gid.raw, sizeof(gid.raw));
	ret = ret ?: ib_attach_mcast(m->qp, &gid, m->record.mlid);
	return ret ?: eng_qp_attach_mcast(m->eng, &group_gid, m->record.mlid);
}

static void leave(struct member *m)
{
	struct program *p = m->program;
	union ib_gid gid;

	if (p->alive) {
		if (m->eng)
			eng_qp_destroy(m->eng);
		memcpy(gid.raw, group_gid.raw, sizeof(gid.raw));
		if (m->qp)
			ib_detach_mcast(m->qp, &gid, m->record.mlid);
		if (m->qp)
			ib_uobject_destroy(p->context, IB_UOBJECT_QP, m->handle);
	}
	region_free(p, &m->rx);
	region_free(p, &m->src);
	m->qp = NULL;
	m->eng = NULL;
	m->joined = false;
}

/* --- joining --- */

static void on_joined(void *ctx, int status, const uint8_t *mad, size_t len)
{
	struct member *m = ctx;
	struct wire_mcmember_record record;

	m->joining = false;
	if (status || !m->program->alive || m->sim->ending)
		return;
	if (wire_mcmember_record_decode(mad + WIRE_SA_DATA_OFFSET,
					len - WIRE_SA_DATA_OFFSET, &record) < 0 ||
	    record.mlid < WIRE_LID_MULTICAST)
		sim_fail(m->sim, ORACLE_DATA, "member %d joined a group without MLID",
			 m->program->index);
	if (m->qp && record.mlid == m->record.mlid) {
		m->joined = true;
		m->rejoin = false;
		return;
	}
	leave(m);
	m->record = record;
	m->rq_tail = m->sends = 0;
	if (build(m)) {
		leave(m);
		return;
	}
	while (m->rq_tail < DEPTH)
		post_recv(m);
	m->joined = true;
	m->rejoin = false;
}

static void join(struct member *m)
{
	struct wire_mcmember_record key = {.mgid = group_gid,
					   .join_state = WIRE_JOIN_FULL};

	if (!m->program->alive)
		return;
	memcpy(key.port_gid.raw, program_port(m->program)->gid[0],
	       sizeof(key.port_gid.raw));
	m->joining = !client_ask(m->sim, m->program->index, WIRE_METHOD_SET,
				 WIRE_SA_MCMEMBER_RECORD,
				 WIRE_MCM_MGID | WIRE_MCM_PORT_GID | WIRE_MCM_JOIN_STATE,
				 &wire_mcmember_record_codec, &key, on_joined, m);
}

/* --- messages --- */

struct text {
	uint32_t sender, number, probe;
	uint8_t filling[MESSAGE_BYTES - 12];
};

static void write_text(struct text *t, const struct member *m, uint32_t number,
		       bool probe)
{
	*t = (struct text){(uint32_t)m->program->index, number, probe, {0}};
	for (size_t i = 0; i < sizeof(t->filling); i++)
		t->filling[i] = (uint8_t)(number * 7 + t->sender * 31 + i);
}

static struct tp_av vector; /* of the request being posted */

static const struct tp_av *av_of(struct ibv_ah *ah)
{
	return &vector;
}

static void send(struct member *m, bool probe)
{
	uint32_t slot = m->sends++ % DEPTH;
	struct ibv_sge sge = {.addr = m->src.iova + slot * MESSAGE_BYTES,
			      .length = MESSAGE_BYTES,
			      .lkey = m->src.key};
	struct ibv_send_wr *bad, wr = {.wr_id = GROUP_BIT,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED};

	write_text((struct text *)(m->src.bytes + slot * MESSAGE_BYTES), m, m->sent++,
		   probe);
	wr.wr.ud.ah = (void *)m;
	wr.wr.ud.remote_qpn = WIRE_QPN_MULTICAST;
	wr.wr.ud.remote_qkey = m->record.qkey;
	vector = (struct tp_av){.dlid = m->record.mlid,
				.port_num = 1,
				.is_global = true,
				.hop_limit = 1,
				.dgid = group_gid};
	if (eng_post_send(m->eng, &wr, &bad, av_of))
		sim_fail(m->sim, ORACLE_ORDER, "member %d: a datagram was refused",
			 m->program->index);
	program_kick(m->program);
}

static void take(struct member *m, const uint8_t *bytes, const struct ibv_wc *wc)
{
	const enum plan_kind kind = m->sim->plan->kind;
	struct text want, got;

	memcpy(&got, bytes + 40, sizeof(got));
	if (wc->byte_len != SLOT || got.sender >= PLAN_PROGRAMS || !members[got.sender])
		sim_fail(m->sim, ORACLE_DATA, "member %d took %u bytes that nobody sent",
			 m->program->index, wc->byte_len);
	write_text(&want, members[got.sender], got.number, got.probe);
	if (memcmp(&want, &got, sizeof(want)) || got.number >= members[got.sender]->sent)
		sim_fail(m->sim, ORACLE_DATA,
			 "member %d: message %u of %u is not what was sent",
			 m->program->index, got.number, got.sender);
	if (m->seen[got.sender][got.number % MESSAGES_MAX]++ && kind != KIND_PACKETS &&
	    kind != KIND_CHAOS)
		sim_fail(m->sim, ORACLE_ORDER, "member %d took message %u of %u twice",
			 m->program->index, got.number, got.sender);
	if (got.probe)
		m->probes |= 1u << got.sender;
}

void group_completion(struct program *p, const struct ibv_wc *wc)
{
	struct member *m = members[p->index];

	if (wc->status == IBV_WC_WR_FLUSH_ERR && !m->qp)
		return;
	if (wc->status != IBV_WC_SUCCESS)
		sim_fail(p->sim, ORACLE_RELIABLE, "member %d: status %d without cause",
			 p->index, wc->status);
	if (!(wc->wr_id & 1ull << 40))
		return;
	take(m, m->rx.bytes + (wc->wr_id & (DEPTH - 1)) * SLOT, wc);
	post_recv(m);
}

/* --- life --- */

static bool all_joined(const struct sim *sim)
{
	for (int i = 0; i < sim->plan->num_programs; i++)
		if (!members[i]->joined || members[i]->rejoin)
			return false;
	return true;
}

static void turn(struct rt_timer *timer)
{
	struct member *m = container_of(timer, struct member, timer);
	struct sim *sim = m->sim;
	uint64_t pause = sim->plan->window_ns / MESSAGES_MAX * 2 + 1;

	rt_timer_arm(timer, mono_add(rt_now(sim->rt),
				     sim->calm || !m->joined ? AGAIN_NS : pause));
	if (!m->program->alive || m->joining)
		return;
	if (!m->joined || m->rejoin) {
		join(m);
		return;
	}
	if (!sim->calm && m->sent < MESSAGES_MAX / 2)
		send(m, false);
	else if (sim->calm && all_joined(sim) && m->sent < MESSAGES_MAX && !m->probed) {
		m->probed = true;
		send(m, true);
	}
}

void groups_start(struct sim *sim)
{
	for (int i = 0; sim->plan->multicast && i < sim->plan->num_programs; i++) {
		members[i] = calloc(1, sizeof(*members[i]));
		members[i]->sim = sim;
		members[i]->program = sim->program[i];
		rt_timer_init(sim->rt, &members[i]->timer, turn);
		rt_timer_arm(&members[i]->timer,
			     mono_add(rt_now(sim->rt), 1000 + (uint64_t)i));
	}
}

void groups_begin_calm(struct sim *sim)
{
	for (int i = 0; sim->plan->multicast && i < sim->plan->num_programs; i++) {
		members[i]->rejoin = true;
		rt_timer_arm(&members[i]->timer,
			     mono_add(rt_now(sim->rt), 1000 + (uint64_t)i));
	}
}

bool groups_done(struct sim *sim)
{
	uint32_t all = (1u << sim->plan->num_programs) - 1;

	for (int i = 0; sim->plan->multicast && i < sim->plan->num_programs; i++)
		if (members[i]->probes != all)
			return false;
	return true;
}

void groups_stop(struct sim *sim)
{
	for (int i = 0; sim->plan->multicast && i < sim->plan->num_programs; i++) {
		rt_timer_disarm(&members[i]->timer);
		leave(members[i]);
	}
}

void groups_free(struct sim *sim)
{
	for (int i = 0; sim->plan->multicast && i < sim->plan->num_programs; i++)
		free(members[i]);
}

void group_of_dead(struct program *p)
{
	struct member *m = members[p->index];

	if (m)
		leave(m);
}
