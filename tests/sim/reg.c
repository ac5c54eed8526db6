/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Fast registration (IB_WR_REG_MR), by the midlayer of two nodes: an owner registers pages in any
 * order under a new key each time and tells it to a user by a SEND behind the request. The user
 * writes and reads across the pages. Then the region is freed by the owner's LOCAL_INV or by the
 * user's SEND_WITH_INV.
 *
 * What is verified (oracle "bound"): the key serves as soon as the message has come, each byte is in
 * the page that it belongs to, and from the completion of what freed the region on its memory does
 * not change, and requests by its key fail.
 */
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "hca/hca.h"
#include "rc.h"

#define PAGE	4096u
#define PAGES	4
#define ROUNDS	25
#define CALM_NS (1 * NSEC_PER_MSEC)
#define SLOTS	4
#define SLOT	6000u

enum verb { REGISTER, TELL, INVALIDATE, WRITE, READ, TAKE_BACK, LATE, RECEIVE };
enum state { FREE, REGISTERING, TOLD, ENDING };

struct party {
	int node;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp; /* NULL: not connected */
	uint8_t rx[64];
};

struct regs {
	struct sim *sim;
	struct rng rng;
	struct party party[2]; /* the owner, the user */
	struct ib_mr *mr;
	uint8_t *memory; /* PAGES */
	uint8_t shadow[PAGES * PAGE];
	uint32_t order[PAGES], skip, length;
	enum state state;
	u32 old_key;
	bool frozen;	     /* shadow is what the memory has to stay */
	bool broken;
	uint8_t src[SLOTS][SLOT], want[SLOT];
	uint32_t posted, ended; /* the user's WRITEs and READs, one after the other */
	uint32_t at, bytes;	/* of the last */
	uint32_t rounds_left, psn;
	bool excused; /* the connection was made while faults acted */
	struct rt_timer timer;
};

static struct regs *regs;

static bool faultless(const struct regs *r)
{
	return plan_is_faultless(r->sim->plan->kind) || !r->excused;
}

/* where byte @at of the region is in memory */
static uint32_t place_of(const struct regs *r, uint32_t at)
{
	uint32_t i = r->skip + at;

	return r->order[i / PAGE] * PAGE + i % PAGE;
}

static void check_frozen(const struct regs *r)
{
	if (r->frozen && memcmp(r->memory, r->shadow, sizeof(r->shadow)))
		sim_fail(r->sim, ORACLE_BOUND, "a region was written after it was invalidated");
}

/* --- connections --- */

static int bring_up(struct regs *r, struct party *p, struct party *peer, uint32_t psn)
{
	return rc_bring_up(p->qp, fab_node(r->sim->fab, peer->node)->port[1].lid, peer->qp->qp_num, psn,
			   IB_MTU_1024);
}

static void post_recv(struct party *p)
{
	struct ib_sge sge = {(uintptr_t)p->rx, sizeof(p->rx), p->pd->local_dma_lkey};
	struct ib_recv_wr wr = {.wr_id = RECEIVE, .sg_list = &sge, .num_sge = 1};

	ib_post_recv(p->qp, &wr, NULL);
}

static void disconnect(struct regs *r)
{
	check_frozen(r);
	for (int i = 0; i < 2; i++) {
		if (r->party[i].qp)
			ib_destroy_qp(r->party[i].qp);
		r->party[i].qp = NULL;
	}
	if (r->mr)
		ib_dereg_mr(r->mr);
	r->mr = NULL;
	r->frozen = false;
}

static void reconnect(struct regs *r)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.cap = {.max_send_wr = 8, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	uint32_t psn = r->psn = (r->psn + 0x654321) & 0xffffff;
	bool ok;

	disconnect(r);
	r->mr = ib_alloc_mr(r->party[0].pd, IB_MR_TYPE_MEM_REG, PAGES);
	ok = !IS_ERR(r->mr);
	r->mr = ok ? r->mr : NULL;
	for (int i = 0; i < 2 && ok; i++) {
		init.send_cq = init.recv_cq = r->party[i].cq;
		r->party[i].qp = ib_create_qp(r->party[i].pd, &init);
		ok = !IS_ERR(r->party[i].qp);
		r->party[i].qp = ok ? r->party[i].qp : NULL;
	}
	ok = ok && !bring_up(r, &r->party[0], &r->party[1], psn) &&
	     !bring_up(r, &r->party[1], &r->party[0], psn);
	r->broken = !ok;
	if (!ok) {
		disconnect(r);
		return;
	}
	post_recv(&r->party[0]);
	post_recv(&r->party[1]);
	r->state = FREE;
	r->old_key = 0;
	r->posted = r->ended = 0;
	r->excused = !r->sim->calm;
}

/* --- the owner --- */

static void post(struct regs *r, int who, struct ib_send_wr *wr, enum verb verb)
{
	wr->wr_id = (u64)verb;
	wr->send_flags |= IB_SEND_SIGNALED;
	if (ib_post_send(r->party[who].qp, wr, NULL))
		sim_fail(r->sim, ORACLE_ORDER, "a request %d of a registered region was refused", verb);
}

static void draw_region(struct regs *r)
{
	for (uint32_t i = 0; i < PAGES; i++) {
		uint32_t k = rng_below(&r->rng, i + 1);

		r->order[i] = r->order[k];
		r->order[k] = i;
	}
	r->skip = rng_below(&r->rng, PAGE);
	r->length = PAGES * PAGE - r->skip - rng_below(&r->rng, PAGE);
	memset(r->memory, 0x80 | (int)rng_below(&r->rng, 0x40), PAGES * PAGE);
	memcpy(r->shadow, r->memory, sizeof(r->shadow));
}

static void register_region(struct regs *r)
{
	struct scatterlist sg[PAGES];
	struct ib_reg_wr reg = {.wr.opcode = IB_WR_REG_MR, .mr = r->mr,
				.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
					  IB_ACCESS_REMOTE_READ};
	struct ib_sge sge = {(uintptr_t)r->memory, 8, r->party[0].pd->local_dma_lkey};
	struct ib_send_wr tell = {.opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1};

	check_frozen(r);
	r->frozen = false;
	draw_region(r);
	sg_init_table(sg, PAGES);
	for (uint32_t i = 0; i < PAGES; i++)
		sg_set_buf(&sg[i], r->memory + r->order[i] * PAGE,
			   i == PAGES - 1 ? (r->skip + r->length - 1) % PAGE + 1 : PAGE);
	if (ib_map_mr_sg(r->mr, sg, PAGES, &r->skip, PAGE) != PAGES || r->mr->length != r->length)
		sim_fail(r->sim, ORACLE_BOUND, "a region of %u bytes cannot be mapped", r->length);
	r->old_key = r->mr->rkey;
	ib_update_fast_reg_key(r->mr, (u8)ib_inc_rkey(r->mr->rkey));
	reg.key = r->mr->rkey;
	post(r, 0, &reg.wr, REGISTER);
	post(r, 0, &tell, TELL);
	r->state = REGISTERING;
}

static void freed(struct regs *r)
{
	if (memcmp(r->memory, r->shadow, sizeof(r->shadow)))
		sim_fail(r->sim, ORACLE_BOUND,
			 "what was written to a registered region before it was freed is not there, or elsewhere");
	r->frozen = true;
	r->state = FREE;
	r->rounds_left -= r->rounds_left > 0;
}

/* --- the user --- */

static void use(struct regs *r, enum verb verb)
{
	struct party *p = &r->party[1];
	uint8_t *bytes = r->src[r->posted % SLOTS];
	struct ib_sge sge = {(uintptr_t)bytes, 0, p->pd->local_dma_lkey};
	struct ib_rdma_wr wr = {.wr = {.opcode = verb == READ ? IB_WR_RDMA_READ : IB_WR_RDMA_WRITE,
				       .sg_list = &sge, .num_sge = 1}};
	uint8_t value = (uint8_t)rng_below(&r->rng, 0x80);

	r->at = rng_below(&r->rng, r->length);
	r->bytes = sge.length = 1 + rng_below(&r->rng, MIN(r->length - r->at, SLOT));
	wr.remote_addr = r->mr->iova + r->at;
	wr.rkey = verb == LATE && r->state == FREE ? r->mr->rkey :
		  verb == LATE			   ? r->old_key :
						     r->mr->rkey;
	for (uint32_t i = 0; i < r->bytes; i++) {
		bytes[i] = (uint8_t)((value + i) & 0x7f);
		if (verb == WRITE)
			r->shadow[place_of(r, r->at + i)] = bytes[i];
		r->want[i] = r->shadow[place_of(r, r->at + i)];
	}
	r->posted++;
	post(r, 1, &wr.wr, verb);
}

static void take_back(struct regs *r)
{
	struct ib_sge sge = {(uintptr_t)r->src[0], 8, r->party[1].pd->local_dma_lkey};
	struct ib_send_wr wr = {.opcode = IB_WR_SEND_WITH_INV, .sg_list = &sge, .num_sge = 1,
				.ex.invalidate_rkey = r->mr->rkey};

	r->state = ENDING;
	post(r, 1, &wr, TAKE_BACK);
}

static void invalidate(struct regs *r)
{
	struct ib_send_wr wr = {.opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = r->mr->rkey};

	r->state = ENDING;
	post(r, 0, &wr, INVALIDATE);
}

/* --- completions --- */

static void received(struct regs *r, int who, const struct ib_wc *wc)
{
	post_recv(&r->party[who]);
	if (who) {
		r->state = TOLD;
		return;
	}
	if (!(wc->wc_flags & IB_WC_WITH_INVALIDATE) || wc->ex.invalidate_rkey != r->mr->rkey)
		sim_fail(r->sim, ORACLE_BOUND, "another region was invalidated than the user said");
	freed(r);
}

static void completed(struct regs *r, int who, const struct ib_wc *wc)
{
	enum verb verb = (enum verb)wc->wr_id;

	if (wc->status != IB_WC_SUCCESS) {
		bool due = verb == LATE ? wc->status == IB_WC_REM_ACCESS_ERR : false;

		if (!due && !r->broken && faultless(r))
			sim_fail(r->sim, ORACLE_RELIABLE, "a request %d of a registered region failed: %s", verb,
				 ib_wc_status_msg(wc->status));
		r->sim->result->violations += due;
		r->broken = true;
		return;
	}
	if (verb == RECEIVE)
		received(r, who, wc);
	if (verb == INVALIDATE)
		freed(r);
	if (verb == LATE)
		sim_fail(r->sim, ORACLE_BOUND, "the key of a region that was invalidated gave access");
	if (verb != WRITE && verb != READ)
		return;
	if (verb == READ && memcmp(r->src[r->ended % SLOTS], r->want, r->bytes))
		sim_fail(r->sim, ORACLE_BOUND, "a READ of a registered region has other bytes");
	r->ended++;
}

static void poll(struct regs *r)
{
	struct ib_wc wc;

	/* the user first: who is refused is told before the owner's QP flushes what it had */
	for (int who = 1; who >= 0; who--)
		while (r->party[who].qp && ib_poll_cq(r->party[who].cq, 1, &wc) == 1) {
			sim_note(r->sim, wc.wr_id, wc.status);
			r->sim->result->completions++;
			completed(r, who, &wc);
		}
}

/* --- turns --- */

static bool may_be_late(struct regs *r)
{
	return r->sim->plan->kind != KIND_CALM && !r->sim->calm && r->old_key && rng_chance(&r->rng, 3);
}

static void act(struct regs *r)
{
	uint32_t what = rng_below(&r->rng, 100);

	if (r->posted != r->ended || r->state == REGISTERING || r->state == ENDING)
		return;
	if (may_be_late(r))
		use(r, LATE);
	else if (r->state == FREE)
		register_region(r);
	else if (what < 40)
		use(r, WRITE);
	else if (what < 70)
		use(r, READ);
	else if (what < 85)
		take_back(r);
	else
		invalidate(r);
}

static void take_turn(struct rt_timer *timer)
{
	struct regs *r = container_of(timer, struct regs, timer);
	uint64_t ns = r->sim->calm ? CALM_NS : r->sim->plan->window_ns / 100;

	poll(r);
	check_frozen(r);
	if (r->broken)
		reconnect(r);
	if (!r->broken)
		act(r);
	rt_timer_arm(timer, mono_add(rt_now(r->sim->rt), 1 + rng_next(&r->rng) % ns));
}

/* --- life --- */

void regs_start(struct sim *sim)
{
	int num = 0;

	if (!sim->plan->fast_registration)
		return;
	regs = calloc(1, sizeof(*regs));
	regs->sim = sim;
	regs->rng.state = sim->plan->seed ^ 0x4652;
	regs->memory = aligned_alloc(PAGE, PAGES * PAGE);
	regs->rounds_left = ROUNDS;
	regs->broken = true;
	for (int n = 0; n < sim->topo->num_nodes && num < 2; n++) {
		struct party *p = &regs->party[num];

		if (!sim->hca[n])
			continue;
		p->node = n;
		p->pd = ib_alloc_pd(ib_device_get_by_name(sim->rt, sim->topo->node[n].name, "softib0"), 0);
		p->cq = ib_alloc_cq(p->pd->device, NULL, 64, 0, IB_POLL_DIRECT);
		num++;
	}
	rt_timer_init(sim->rt, &regs->timer, take_turn);
	take_turn(&regs->timer);
}

void regs_begin_calm(struct sim *sim)
{
	if (!regs)
		return;
	regs->rounds_left += 5;
	/* a connection that broke last may not have been used since */
	regs->broken |= !plan_is_faultless(sim->plan->kind);
}

bool regs_done(struct sim *sim)
{
	return !regs || (!regs->rounds_left && !regs->broken);
}

void regs_stop(struct sim *sim)
{
	if (!regs)
		return;
	rt_timer_disarm(&regs->timer);
	disconnect(regs);
	for (int i = 0; i < 2; i++) {
		ib_free_cq(regs->party[i].cq);
		ib_dealloc_pd(regs->party[i].pd);
	}
	free(regs->memory);
	free(regs);
	regs = NULL;
}
