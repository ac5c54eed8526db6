/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reliable datagrams, in the midlayer of the nodes: up to three parties, one for each adapter, have
 * two RD QPs each, and any two parties have one connection of EE contexts. Each RD QP sends numbered
 * messages to all RD QPs of the others. Receives are sometimes missing, queues are stopped (SQD),
 * and in scenarios with faults RD QPs fail and EE contexts are replaced.
 *
 * What is verified: requests complete in the order of posting, each once, and receives each once;
 * messages by two EE contexts may end in another order than they began (order). The
 * messages from one RD QP to another arrive in order and no more than once (order), with their bytes
 * and the number of the EE context (data). A message that completed with success has arrived, and
 * without faults none fails (reliable).
 */
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "hca/hca.h"
#include "rdma/ib_rd.h"

#define PARTIES	    3
#define QPS	    2
#define MESSAGES    40 /* of each RD QP */
#define OUTSTANDING 4
#define RECEIVES    8
#define SLOT	    5000
#define MTU_BYTES   1024
#define QKEY	    0x5344
#define RECV_BIT    (1ull << 32)
#define CALM_NS	    (2 * NSEC_PER_MSEC) /* between two turns at the end */

/** struct head - the first bytes of a message; the rest follow from them */
struct head {
	uint32_t party, qp, number, bytes;
};

/** struct message - what became of one */
struct message {
	uint8_t party, qp; /* to whom */
	bool ended, succeeded, arrived;
	bool excused; /* it was posted while faults acted */
};

struct rd_qp {
	struct party *party;
	uint32_t index;
	struct ib_qp *qp;
	struct message message[MESSAGES];
	uint32_t posted, ended; /* of these */
	bool failed;		/* the send queue did */
	uint32_t paused;	/* turns in SQD that are left */
	uint32_t withheld;	/* turns without new receives that are left */
	bool posted_receive[RECEIVES]; /* by slot of rx */
	uint32_t seen[PARTIES][QPS]; /* behind the last number from each */
	uint8_t tx[OUTSTANDING][SLOT], rx[RECEIVES][SLOT];
};

/** struct party - an adapter */
struct party {
	struct rds *all;
	uint32_t index;
	int node;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_rdd *rdd;
	struct ib_eec *eec[PARTIES]; /* to each other; NULL: none now */
	bool broken[PARTIES];	     /* the connection is to be made anew */
	struct rd_qp qp[QPS];
};

struct rds {
	struct sim *sim;
	struct rng rng;
	uint32_t num;
	uint32_t psn;
	struct party party[PARTIES];
	struct rt_timer timer;
};

static struct rds *rds;

static bool expects_no_error(const struct rds *all)
{
	return all->sim->calm || plan_is_faultless(all->sim->plan->kind);
}

/* --- connections --- */

static void disconnect(struct party *a, struct party *b)
{
	if (a->eec[b->index])
		ib_destroy_eec(a->eec[b->index]);
	if (b->eec[a->index])
		ib_destroy_eec(b->eec[a->index]);
	a->eec[b->index] = b->eec[a->index] = NULL;
}

static int make_eec(struct party *a, struct party *b)
{
	struct ib_eec *eec = ib_create_eec(a->rdd, NULL, NULL);

	if (IS_ERR(eec))
		return -ENOMEM;
	a->eec[b->index] = eec;
	return 0;
}

static int bring_up(struct party *a, struct party *b, uint32_t send_psn, uint32_t receive_psn)
{
	struct ib_eec *eec = a->eec[b->index];
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.ah_attr = {.dlid = fab_node(a->all->sim->fab, b->node)->port[1].lid, .port_num = 1},
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = b->eec[a->index]->eec_num,
		.rq_psn = receive_psn,
		.sq_psn = send_psn,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 12,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};
	int ret = ib_modify_eec(eec, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT);

	attr.qp_state = IB_QPS_RTR;
	ret = ret ?: ib_modify_eec(eec, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
					       IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
					       IB_QP_MIN_RNR_TIMER);
	attr.qp_state = IB_QPS_RTS;
	return ret ?: ib_modify_eec(eec, &attr, IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT |
						IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
						IB_QP_MAX_QP_RD_ATOMIC);
}

/* EE contexts with new numbers: what is on its way to the old ones reaches nobody */
static void reconnect(struct party *a, struct party *b)
{
	uint32_t psn[2] = {a->all->psn, a->all->psn + 0x1234};

	a->all->psn = (a->all->psn + 0x54321) & 0xffffff;
	psn[1] &= 0xffffff;
	disconnect(a, b);
	a->broken[b->index] = b->broken[a->index] =
		make_eec(a, b) || make_eec(b, a) || bring_up(a, b, psn[0], psn[1]) ||
		bring_up(b, a, psn[1], psn[0]);
	if (a->broken[b->index])
		disconnect(a, b);
}

static void mend_connections(struct rds *all)
{
	for (uint32_t i = 0; i < all->num; i++)
		for (uint32_t k = 0; k < i; k++)
			if (all->party[i].broken[k] || all->party[k].broken[i])
				reconnect(&all->party[i], &all->party[k]);
}

/* --- RD QPs --- */

static int open_qp(struct rd_qp *q)
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_INIT, .qkey = QKEY};
	int ret = ib_modify_qp(q->qp, &attr, IB_QP_STATE | IB_QP_QKEY | IB_QP_ACCESS_FLAGS);

	for (attr.qp_state = IB_QPS_RTR; !ret && attr.qp_state <= IB_QPS_RTS; attr.qp_state++)
		ret = ib_modify_qp(q->qp, &attr, IB_QP_STATE);
	return ret;
}

static int to_state(struct rd_qp *q, enum ib_qp_state state)
{
	struct ib_qp_attr attr = {.qp_state = state};

	return ib_modify_qp(q->qp, &attr, IB_QP_STATE);
}

static void post_recv(struct rd_qp *q, uint32_t slot)
{
	struct ib_sge sge = {(uintptr_t)q->rx[slot], SLOT, q->party->pd->local_dma_lkey};
	struct ib_recv_wr wr = {.wr_id = RECV_BIT | slot, .sg_list = &sge, .num_sge = 1};

	if (ib_post_recv(q->qp, &wr, NULL))
		sim_fail(q->party->all->sim, ORACLE_ORDER, "RD QP %u.%u: a receive was refused",
			 q->party->index, q->index);
	q->posted_receive[slot] = true;
}

static uint8_t byte_of(const struct head *h, uint32_t at)
{
	return (uint8_t)(h->number * 31 + h->party * 7 + h->qp * 3 + at);
}

static void post_send(struct rd_qp *q)
{
	struct rds *all = q->party->all;
	struct message *m = &q->message[q->posted];
	uint8_t *bytes = q->tx[q->posted % OUTSTANDING];
	struct head head = {q->party->index, q->index, q->posted, sizeof(head)};
	struct ib_sge sge = {(uintptr_t)bytes, 0, q->party->pd->local_dma_lkey};
	struct ib_rd_wr wr = {
		.atomic.wr = {.wr_id = q->posted, .sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND,
			      .send_flags = IB_SEND_SIGNALED},
		.remote_qkey = QKEY,
	};

	*m = (struct message){
		.party = (uint8_t)((q->party->index + 1 + rng_below(&all->rng, all->num - 1)) % all->num),
		.qp = (uint8_t)rng_below(&all->rng, QPS),
		.excused = !expects_no_error(all),
	};
	if (rng_chance(&all->rng, 50))
		head.bytes += rng_below(&all->rng, SLOT - (uint32_t)sizeof(head));
	memcpy(bytes, &head, sizeof(head));
	for (uint32_t i = sizeof(head); i < head.bytes; i++)
		bytes[i] = byte_of(&head, i);
	sge.length = head.bytes;
	wr.eec = q->party->eec[m->party];
	wr.remote_qpn = all->party[m->party].qp[m->qp].qp->qp_num;
	if (ib_post_send(q->qp, &wr.atomic.wr, NULL))
		sim_fail(all->sim, ORACLE_ORDER, "RD QP %u.%u: a request was refused", q->party->index,
			 q->index);
	q->posted++;
}

/* --- completions --- */

static void sent(struct rd_qp *q, const struct ib_wc *wc)
{
	struct rds *all = q->party->all;
	struct message *m = &q->message[q->ended];

	if (wc->wr_id != q->ended || q->ended == q->posted)
		sim_fail(all->sim, ORACLE_ORDER, "RD QP %u.%u: request %u ended, %u was next of %u",
			 q->party->index, q->index, (unsigned)wc->wr_id, q->ended, q->posted);
	q->ended++;
	m->ended = true;
	m->succeeded = wc->status == IB_WC_SUCCESS;
	if (m->succeeded)
		return;
	if (!m->excused)
		sim_fail(all->sim, ORACLE_RELIABLE, "RD QP %u.%u: message %u failed: %s", q->party->index,
			 q->index, q->ended - 1, ib_wc_status_msg(wc->status));
	q->failed = true;
	if (wc->status == IB_WC_RETRY_EXC_ERR || wc->status == IB_WC_INV_EEC_STATE_ERR ||
	    wc->status == IB_WC_INV_EECN_ERR)
		q->party->broken[m->party] = true;
}

static void arrived(struct rd_qp *q, const struct ib_wc *wc, const uint8_t *bytes)
{
	struct sim *sim = q->party->all->sim;
	const struct ib_eec *eec;
	struct message *m;
	struct head head;
	uint32_t *seen;

	memcpy(&head, bytes, sizeof(head));
	if (wc->byte_len < sizeof(head) || head.party >= PARTIES || head.qp >= QPS ||
	    head.number >= MESSAGES || head.bytes != wc->byte_len)
		sim_fail(sim, ORACLE_DATA, "RD QP %u.%u took %u bytes that nobody sent", q->party->index,
			 q->index, wc->byte_len);
	for (uint32_t i = sizeof(head); i < head.bytes; i++)
		if (bytes[i] != byte_of(&head, i))
			sim_fail(sim, ORACLE_DATA, "RD QP %u.%u: byte %u of a message is wrong",
				 q->party->index, q->index, i);
	m = &q->party->all->party[head.party].qp[head.qp].message[head.number];
	seen = &q->seen[head.party][head.qp];
	if (m->party != q->party->index || m->qp != q->index || head.number < *seen)
		sim_fail(sim, ORACLE_ORDER, "RD QP %u.%u took message %u of %u.%u, which %s",
			 q->party->index, q->index, head.number, head.party, head.qp,
			 head.number < *seen ? "comes too late, or again" : "was for another");
	*seen = head.number + 1;
	m->arrived = true;
	eec = q->party->eec[head.party];
	if (expects_no_error(q->party->all) && !m->excused && eec && wc->eec_num != eec->eec_num)
		sim_fail(sim, ORACLE_DATA, "RD QP %u.%u: a message came by EE context 0x%x, not 0x%x",
			 q->party->index, q->index, wc->eec_num, eec->eec_num);
}

static void received(struct rd_qp *q, const struct ib_wc *wc)
{
	uint32_t slot = (uint32_t)wc->wr_id;

	if (!q->posted_receive[slot])
		sim_fail(q->party->all->sim, ORACLE_ORDER, "RD QP %u.%u: receive %u completed twice",
			 q->party->index, q->index, slot);
	q->posted_receive[slot] = false;
	if (wc->status == IB_WC_SUCCESS)
		arrived(q, wc, q->rx[slot]);
}

static void poll(struct party *p)
{
	struct ib_wc wc;

	while (ib_poll_cq(p->cq, 1, &wc) == 1) {
		struct rd_qp *q = &p->qp[wc.qp == p->qp[1].qp];

		sim_note(p->all->sim, wc.wr_id, wc.status);
		p->all->sim->result->completions++;
		if (wc.wr_id & RECV_BIT)
			received(q, &wc);
		else
			sent(q, &wc);
	}
}

/* --- turns --- */

/* the RD QP fails, and comes back: every request and every receive has ended */
static void restart(struct rd_qp *q)
{
	to_state(q, IB_QPS_ERR);
	poll(q->party);
	if (q->ended != q->posted || memchr(q->posted_receive, true, RECEIVES))
		sim_fail(q->party->all->sim, ORACLE_ORDER,
			 "RD QP %u.%u failed, and some of its requests or receives have not ended",
			 q->party->index, q->index);
	to_state(q, IB_QPS_RESET);
	open_qp(q);
	q->failed = false;
	q->paused = 0;
}

static void stop_and_go(struct rd_qp *q)
{
	struct rng *rng = &q->party->all->rng;

	if (q->failed) {
		if (q->ended == q->posted)
			q->failed = to_state(q, IB_QPS_RTS) != 0;
		if (!q->failed)
			q->paused = 0;
	} else if (q->paused) {
		if (!--q->paused)
			to_state(q, IB_QPS_RTS);
	} else if (rng_chance(rng, 3) && !to_state(q, IB_QPS_SQD)) {
		q->paused = 1 + rng_below(rng, 5);
	}
}

static void turn_of(struct rd_qp *q)
{
	struct rds *all = q->party->all;

	if (!expects_no_error(all) && rng_chance(&all->rng, 1))
		restart(q);
	stop_and_go(q);
	if (q->withheld)
		q->withheld--;
	else if (rng_chance(&all->rng, 10))
		q->withheld = rng_below(&all->rng, 10);
	for (uint32_t slot = 0; slot < RECEIVES && !q->withheld; slot++)
		if (!q->posted_receive[slot])
			post_recv(q, slot);
	while (!q->failed && q->posted < MESSAGES && q->posted - q->ended < OUTSTANDING &&
	       rng_chance(&all->rng, 60))
		post_send(q);
}

static void take_turn(struct rt_timer *timer)
{
	struct rds *all = container_of(timer, struct rds, timer);
	uint64_t ns = all->sim->calm ? CALM_NS : all->sim->plan->window_ns / 100;
	uint32_t i;

	for (i = 0; i < all->num; i++)
		poll(&all->party[i]);
	if (!expects_no_error(all) && rng_chance(&all->rng, 2))
		all->party[0].broken[1] = true;
	mend_connections(all);
	for (i = 0; i < all->num * QPS; i++)
		turn_of(&all->party[i / QPS].qp[i % QPS]);
	rt_timer_arm(&all->timer, mono_add(rt_now(all->sim->rt), 1 + rng_next(&all->rng) % ns));
}

/* --- life --- */

static void make_party(struct rds *all, int node)
{
	const char *name = all->sim->topo->node[node].name;
	struct ib_device *device = ib_device_get_by_name(all->sim->rt, name, "softib0");
	struct party *p = &all->party[all->num];
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RD,
		.cap = {.max_send_wr = OUTSTANDING, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1},
	};

	*p = (struct party){.all = all, .index = all->num++, .node = node};
	p->pd = ib_alloc_pd(device, 0);
	p->cq = ib_alloc_cq(device, NULL, 4 * RECEIVES, 0, IB_POLL_DIRECT);
	p->rdd = ib_alloc_rdd(device);
	attr.send_cq = attr.recv_cq = p->cq;
	attr.rdd = p->rdd;
	for (uint32_t i = 0; i < QPS; i++) {
		struct rd_qp *q = &p->qp[i];

		q->party = p;
		q->index = i;
		q->qp = ib_create_qp(p->pd, &attr);
		if (IS_ERR(q->qp) || open_qp(q))
			sim_fail(all->sim, ORACLE_RECOVERY, "an RD QP cannot be made");
	}
}

void rds_start(struct sim *sim)
{
	if (!sim->plan->rd)
		return;
	rds = calloc(1, sizeof(*rds));
	rds->sim = sim;
	rds->rng.state = ~sim->plan->seed;
	rds->psn = 0xfffff0;
	for (int n = 0; n < sim->topo->num_nodes && rds->num < PARTIES; n++)
		if (sim->hca[n])
			make_party(rds, n);
	for (uint32_t i = 0; i < rds->num * rds->num; i++)
		rds->party[i / rds->num].broken[i % rds->num] = i / rds->num != i % rds->num;
	mend_connections(rds);
	rt_timer_init(sim->rt, &rds->timer, take_turn);
	take_turn(&rds->timer);
}

void rds_begin_calm(struct sim *sim)
{
	if (!rds)
		return;
	/* a connection that broke last may not have been used since */
	for (uint32_t i = 1; i < rds->num && !plan_is_faultless(sim->plan->kind); i++)
		for (uint32_t k = 0; k < i; k++)
			reconnect(&rds->party[i], &rds->party[k]);
}

static bool is_done(const struct rd_qp *q)
{
	if (q->ended < MESSAGES)
		return false;
	for (uint32_t i = 0; i < MESSAGES; i++)
		if (q->message[i].succeeded && !q->message[i].arrived)
			return false;
	return true;
}

bool rds_done(struct sim *sim)
{
	for (uint32_t i = 0; rds && i < rds->num * QPS; i++)
		if (!is_done(&rds->party[i / QPS].qp[i % QPS]))
			return false;
	return true;
}

void rds_stop(struct sim *sim)
{
	if (!rds)
		return;
	rt_timer_disarm(&rds->timer);
	for (uint32_t i = 0; i < rds->num; i++)
		for (uint32_t k = 0; k < i; k++)
			disconnect(&rds->party[i], &rds->party[k]);
	for (uint32_t i = 0; i < rds->num; i++) {
		struct party *p = &rds->party[i];

		for (uint32_t k = 0; k < QPS; k++)
			ib_destroy_qp(p->qp[k].qp);
		ib_dealloc_rdd(p->rdd);
		ib_free_cq(p->cq);
		ib_dealloc_pd(p->pd);
	}
	free(rds);
	rds = NULL;
}
