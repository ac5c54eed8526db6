/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Connections are made when both programs live and both ports are Active,
 * and made anew when they broke: each incarnation has new QPs and empty
 * books. What failed for want of memory is taken down and tried again.
 */
#include "conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define RETRY_NS (2 * NSEC_PER_MSEC)
#define DEATH_NS (300 * NSEC_PER_MSEC) /* the survivor may give up meanwhile */
#define QKEY	 0x1ee7

/* --- objects of an end --- */

static void *make_qp(struct ib_uobject *u, void *arg)
{
	static const enum ib_qp_type types[] = {IB_QPT_RC, IB_QPT_UC, IB_QPT_UD};
	struct end *e = arg;
	struct ib_qp_init_attr attr = {
		.send_cq = e->program->cq,
		.recv_cq = e->program->cq,
		.srq = e->srq,
		.cap = {.max_send_wr = e->conn->plan->sq_depth,
			.max_recv_wr = e->conn->plan->rq_depth,
			.max_send_sge = 4,
			.max_recv_sge = 2,
			.max_inline_data = 64},
		.qp_type = types[e->conn->plan->transport],
	};

	return ib_create_qp_user(u, e->program->pd, &attr);
}

static void *make_srq(struct ib_uobject *u, void *arg)
{
	struct end *e = arg;
	struct ib_srq_init_attr attr = {
		.attr = {.max_wr = e->conn->plan->rq_depth, .max_sge = 2}};

	return ib_create_srq_user(u, e->program->pd, &attr);
}

static int make_regions(struct end *e)
{
	const struct plan_conn *plan = e->conn->plan;
	size_t slot = plan->slot_bytes, grh = plan->transport == PLAN_UD ? 40 : 0;
	struct program *p = e->program;
	const int local = IBV_ACCESS_LOCAL_WRITE;
	int ret = region_make(p, &e->src, plan->sq_depth * slot, local);

	ret = ret ?: region_make(p, &e->rx, plan->rq_depth * (slot + grh), local);
	ret = ret
		      ?: region_make(p, &e->target, plan->sq_depth * slot,
				     local | IBV_ACCESS_REMOTE_WRITE);
	ret = ret ?: region_make(p, &e->fixed, slot, IBV_ACCESS_REMOTE_READ);
	ret = ret ?: region_make(p, &e->counter, 16, local | IBV_ACCESS_REMOTE_ATOMIC);
	if (ret || !e->conn->sim->plan->violations)
		return ret;
	return region_make_foreign(p, &e->foreign, slot,
				   local | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
					   IBV_ACCESS_REMOTE_ATOMIC);
}

static int make_srq_pair(struct end *e)
{
	if (!e->conn->plan->srq[e->side])
		return 0;
	e->srq = program_object(e->program, IB_UOBJECT_SRQ, &e->srq_handle, make_srq, e);
	if (!e->srq)
		return -ENOMEM;
	return eng_srq_create(e->program->soft.engine, 1, e->conn->plan->rq_depth, 2, 0,
			      e, &e->eng_srq);
}

static int make_qp_pair(struct end *e)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
	const struct plan_conn *plan = e->conn->plan;
	struct eng_qp_init init = {
		.type = types[plan->transport],
		.pd = 1,
		.send_cq = e->program->eng_cq,
		.recv_cq = e->program->eng_cq,
		.srq = e->eng_srq,
		.max_send_wr = plan->sq_depth,
		.max_recv_wr = plan->rq_depth,
		.max_send_sge = 4,
		.max_recv_sge = 2,
		.max_inline = 64,
		.sq_sig_all = plan->sig_all,
		.ctx = e,
	};

	e->qp = program_object(e->program, IB_UOBJECT_QP, &e->handle, make_qp, e);
	if (!e->qp)
		return -ENOMEM;
	init.qpn = e->qp->qp_num;
	return eng_qp_create(e->program->soft.engine, &init, &e->eng);
}

static void free_end(struct end *e)
{
	struct program *p = e->program;

	if (p->alive) {
		if (e->eng)
			eng_qp_destroy(e->eng);
		if (e->qp)
			ib_uobject_destroy(p->context, IB_UOBJECT_QP, e->handle);
		if (e->eng_srq)
			eng_srq_destroy(e->eng_srq);
		if (e->srq)
			ib_uobject_destroy(p->context, IB_UOBJECT_SRQ, e->srq_handle);
	}
	region_free(p, &e->src);
	region_free(p, &e->rx);
	region_free(p, &e->target);
	region_free(p, &e->fixed);
	region_free(p, &e->counter);
	region_free(p, &e->foreign);
	e->eng = NULL;
	e->qp = NULL;
	e->eng_srq = NULL;
	e->srq = NULL;
}

/* --- states --- */

uint16_t end_lid(const struct end *e)
{
	return program_port(e->program)->lid | e->conn->plan->path_bits[e->side];
}

static void fill_address(const struct end *e, struct ibv_ah_attr *ah)
{
	const struct abi_devport *to = program_port(peer_of((struct end *)e)->program);

	*ah = (struct ibv_ah_attr){.dlid = end_lid(peer_of((struct end *)e)),
				   .src_path_bits = e->conn->plan->path_bits[e->side],
				   .port_num = 1};
	if (!e->conn->plan->grh)
		return;
	ah->is_global = 1;
	ah->grh.hop_limit = 4;
	memcpy(ah->grh.dgid.raw, to->gid[0], 16);
}

static int modify(struct end *e, struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_AV)
		fill_address(e, &attr->ah_attr);
	return program_modify_qp(e->qp, e->eng, attr, mask);
}

static int to_init(struct end *e)
{
	bool ud = e->conn->plan->transport == PLAN_UD;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	if (e->conn->plan->transport == PLAN_RC)
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	return modify(e, &attr,
		      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			      (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static enum ibv_mtu mtu_enc(uint32_t bytes)
{
	return (enum ibv_mtu)(__builtin_ctz(bytes) - 7);
}

static int to_rtr(struct end *e)
{
	const struct plan_conn *plan = e->conn->plan;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_enc(plan->mtu_bytes),
		.dest_qp_num = peer_of(e)->qp->qp_num,
		.rq_psn = plan->start_psn[!e->side],
		.max_dest_rd_atomic = plan->rd_atomic,
		.min_rnr_timer = plan->rnr_timer_enc,
	};
	int mask = IBV_QP_STATE;

	if (plan->transport != PLAN_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (plan->transport == PLAN_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return modify(e, &attr, mask);
}

static int to_rts(struct end *e)
{
	const struct plan_conn *plan = e->conn->plan;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = plan->start_psn[e->side],
		.timeout = plan->timeout_enc,
		.retry_cnt = plan->retry_cnt,
		.rnr_retry = plan->rnr_retry,
		.max_rd_atomic = plan->rd_atomic,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (plan->transport != PLAN_UD)
		program_prepare_way(e->program, e->eng, peer_of(e)->qp->qp_num,
				    end_lid(peer_of(e)));
	if (plan->transport == PLAN_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return modify(e, &attr, mask);
}

static void fill_av(struct end *e)
{
	const struct abi_devport *to = program_port(peer_of(e)->program);

	e->av = (struct tp_av){.dlid = end_lid(peer_of(e)),
			       .src_path_bits = e->conn->plan->path_bits[e->side],
			       .port_num = 1,
			       .is_global = e->conn->plan->grh,
			       .hop_limit = 4};
	memcpy(e->av.dgid.raw, to->gid[0], 16);
	e->peer_qpn = peer_of(e)->qp->qp_num;
}

/* --- incarnations --- */

static bool ready(const struct conn *c)
{
	for (int side = 0; side < 2; side++) {
		const struct program *p = c->end[side].program;

		if (!p->alive || program_port(p)->state != IBV_PORT_ACTIVE)
			return false;
	}
	return true;
}

static int build(struct conn *c)
{
	int (*const steps[])(struct end * e) = {make_regions, make_srq_pair, make_qp_pair,
						to_init,      to_rtr,	     to_rts};
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(steps) && !ret; i++)
		for (int side = 0; side < 2 && !ret; side++)
			ret = steps[i](&c->end[side]);
	return ret;
}

static void take_down(struct conn *c)
{
	for (int side = 0; side < 2; side++) {
		if (c->state != CONN_DOWN && c->end[side].eng)
			traffic_close(&c->end[side]);
	}
	for (int side = 0; side < 2; side++) {
		if (c->state != CONN_DOWN && c->end[side].eng)
			violation_close(&c->end[side]);
	}
	for (int side = 0; side < 2; side++)
		free_end(&c->end[side]);
	c->state = CONN_DOWN;
}

void conn_broken(struct conn *c)
{
	if (c->state != CONN_UP)
		return;
	sim_log(c->sim, "conn %d broke", c->index);
	c->state = CONN_BROKEN;
	c->sim->result->reconnects++;
	/* the other end may notice too, and both flush */
	rt_timer_arm(&c->timer, mono_add(rt_now(c->sim->rt), RETRY_NS));
}

static bool is_stale(struct conn *c)
{
	for (int side = 0; side < 2; side++)
		if (c->end[side].av.dlid != end_lid(peer_of(&c->end[side])))
			return true;
	return false;
}

/* Where two subnets met, LIDs changed under connections: their programs are told,
 * and end them before others have the same addresses */
static void retire_stale(struct sim *sim)
{
	for (int i = 0; i < sim->plan->num_conns; i++) {
		if (sim->conn[i].state != CONN_UP || !is_stale(&sim->conn[i]))
			continue;
		conn_broken(&sim->conn[i]);
		take_down(&sim->conn[i]);
	}
	pairs_retire_stale(sim);
}

static void conn_turn(struct rt_timer *timer)
{
	struct conn *c = container_of(timer, struct conn, timer);
	int ret;

	if (c->state != CONN_DOWN)
		take_down(c);
	rt_timer_arm(timer, mono_add(rt_now(c->sim->rt), RETRY_NS));
	if (!ready(c))
		return;
	retire_stale(c->sim);
	ret = build(c);
	if (ret) {
		if (ret != -ENOMEM)
			sim_fail(c->sim, ORACLE_RELIABLE, "conn %d cannot be made: %d",
				 c->index, ret);
		take_down(c);
		return;
	}
	rt_timer_disarm(timer);
	c->state = CONN_UP;
	c->incarnations++;
	c->made_in_calm = c->sim->calm;
	for (int side = 0; side < 2; side++) {
		fill_av(&c->end[side]);
		traffic_open(&c->end[side]);
		program_kick(c->end[side].program);
	}
	sim_log(c->sim, "conn %d is up, incarnation %u: QPs %x %x", c->index,
		c->incarnations, c->end[0].qp->qp_num, c->end[1].qp->qp_num);
}

void conns_of_dead(struct program *p)
{
	for (int i = 0; p->sim->conn && i < p->sim->plan->num_conns; i++) {
		struct conn *c = &p->sim->conn[i];
		bool touched = false;

		for (int side = 0; side < 2; side++) {
			struct end *e = &c->end[side];

			if (e->program != p)
				continue;
			free_end(e);
			touched = true;
		}
		/* the survivor gets errors by itself, or none when it is idle */
		if (!touched || c->state == CONN_DOWN)
			continue;
		c->state = CONN_BROKEN;
		rt_timer_arm(&c->timer, mono_add(rt_now(p->sim->rt), DEATH_NS));
	}
}

/* --- all of them --- */

struct end *conns_end_of(struct program *p, uint32_t qpn)
{
	for (int i = 0; p->sim->conn && i < p->sim->plan->num_conns; i++)
		for (int side = 0; side < 2; side++) {
			struct end *e = &p->sim->conn[i].end[side];

			if (e->program == p && e->eng && e->qp->qp_num == qpn)
				return e;
		}
	return NULL;
}

bool conns_flow_of(struct program *p, uint32_t qpn, struct window_flow *flow)
{
	struct end *e = conns_end_of(p, qpn), *peer;

	if (!e || e->conn->state != CONN_UP)
		return false;
	peer = peer_of(e);
	*flow = (struct window_flow){.target = peer->program,
				     .peer_qpn = peer->qp->qp_num,
				     .dlid = e->av.dlid,
				     .dlid_back = peer->av.dlid,
				     .index = (unsigned)(e->conn->index * 2 + e->side)};
	return true;
}

void conns_init(struct sim *sim)
{
	sim->conn = calloc((size_t)sim->plan->num_conns, sizeof(*sim->conn));
	for (int i = 0; i < sim->plan->num_conns; i++) {
		struct conn *c = &sim->conn[i];

		c->sim = sim;
		c->index = i;
		c->plan = &sim->plan->conn[i];
		for (int side = 0; side < 2; side++) {
			c->end[side].conn = c;
			c->end[side].side = side;
			c->end[side].program = sim->program[c->plan->program[side]];
		}
		rt_timer_init(sim->rt, &c->timer, conn_turn);
		rt_timer_arm(&c->timer,
			     mono_add(rt_now(sim->rt), 1000u * (uint64_t)(i + 1)));
	}
}

void conns_exit(struct sim *sim)
{
	for (int i = 0; i < sim->plan->num_conns; i++) {
		rt_timer_disarm(&sim->conn[i].timer);
		take_down(&sim->conn[i]);
	}
	free(sim->conn);
	sim->conn = NULL;
}

void conns_begin_calm(struct sim *sim)
{
	for (int i = 0; i < sim->plan->num_conns; i++)
		for (int side = 0; side < 2; side++)
			if (sim->conn[i].end[side].program->alive)
				program_kick(sim->conn[i].end[side].program);
}

static bool end_done(const struct end *e)
{
	return e->probed && e->sq_head == e->sq_tail &&
	       e->next_op == e->conn->plan->num_ops[e->side];
}

bool conns_done(struct sim *sim)
{
	for (int i = 0; i < sim->plan->num_conns; i++) {
		struct conn *c = &sim->conn[i];

		if (c->state != CONN_UP || !end_done(&c->end[0]) || !end_done(&c->end[1]))
			return false;
		for (int side = 0; side < 2; side++)
			if (c->end[side].delivered <
				    peer_of(&c->end[side])->num_messages &&
			    c->plan->transport == PLAN_RC)
				return false;
	}
	return true;
}

void conns_describe_undone(struct sim *sim, char *text, size_t bytes)
{
	*text = 0;
	for (int i = 0; i < sim->plan->num_conns; i++) {
		struct conn *c = &sim->conn[i];

		for (int side = 0; side < 2; side++) {
			struct end *e = &c->end[side];
			size_t used = strlen(text);

			if (c->state == CONN_UP && end_done(e) &&
			    e->delivered == peer_of(e)->num_messages)
				continue;
			snprintf(text + used, bytes - used,
				 " conn %d.%d state %d: %u of %u asked, %u open, %u of "
				 "%u delivered;",
				 i, side, c->state, e->next_op, c->plan->num_ops[side],
				 e->sq_tail - e->sq_head, e->delivered,
				 peer_of(e)->num_messages);
		}
	}
}
