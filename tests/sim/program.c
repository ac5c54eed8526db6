/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A program on a node. The library's link and lanes and an engine work as in
 * a real one; where that would send a command to softibd, the same function
 * of the core is called here. Its one thread is a timer.
 */
#include "program.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/session.h"
#include "client.h"
#include "conn.h"
#include "engine/window.h"
#include "hca/hca.h"
#include "pair.h"

#define CQ_DEPTH 4096

/* lanes were made or ended: who has some should read what softibd says */
static uint32_t lane_news;

/* --- what the library asks of a session --- */

/* no program of the simulator shares its objects */
bool share_serve(struct soft_context *ctx, int sock)
{
	return false;
}

int session_resolve(struct soft_context *ctx, const struct ib_uverbs_modify_qp *modify,
		    const struct abi_resolve *key, struct abi_resolve_resp *resp, int fds[2],
		    unsigned *num_fds)
{
	struct program *p = container_of(ctx, struct program, soft);

	lane_news++;
	return p->context->device->ops->driver_command(p->context, ABI_CMD_RESOLVE, key, resp, fds,
						       num_fds);
}

/* --- callbacks of the engine and the lanes --- */

static mono_t program_now(void *ctx)
{
	return rt_now(((struct program *)ctx)->sim->rt);
}

static void on_cq_event(void *ctx, void *cq)
{
	((struct program *)ctx)->cq_event = true;
}

static void on_async_event(void *ctx, enum ibv_event_type type, void *element)
{
	sim_note(((struct program *)ctx)->sim, 0xa5, type);
	if (pairs_event(ctx, type, element))
		return;
	if (type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_QP_REQ_ERR)
		violation_event(element, type);
}

static void on_question(void *ctx)
{
	program_kick(ctx);
}

static void on_fatal(struct ib_ucontext *context)
{
	struct program *p = context->priv;

	sim_fail(p->sim, ORACLE_CREDIT, "program %d was cut off: its ring is nonsense",
		 p->index);
}

/* --- objects --- */

void *program_object(struct program *p, enum ib_uobject_type type, uint32_t *handle,
		     void *(*make)(struct ib_uobject *uobject, void *arg), void *arg)
{
	struct ib_uobject *u = ib_uobject_alloc(p->context, type);
	void *object;

	if (IS_ERR(u))
		return NULL;
	object = make(u, arg);
	if (IS_ERR(object)) {
		ib_uobject_abort(u);
		return NULL;
	}
	*handle = u->handle;
	ib_uobject_commit(u, object);
	return object;
}

static void *make_pd(struct ib_uobject *u, void *arg)
{
	return ib_alloc_pd_user(u);
}

static void *make_cq(struct ib_uobject *u, void *arg)
{
	return ib_create_cq_user(u, &(struct ib_cq_init_attr){.cqe = CQ_DEPTH});
}

struct mr_args {
	struct ib_pd *pd;
	struct region *region;
	int access;
};

static void *make_mr(struct ib_uobject *u, void *arg)
{
	const struct mr_args *a = arg;

	return ib_reg_user_mr(u, a->pd, a->region->iova, a->region->len, a->region->iova,
			      a->access);
}

/* --- queue pairs --- */

static void translate_address(const struct ibv_ah_attr *from, struct rdma_ah_attr *to)
{
	*to = (struct rdma_ah_attr){.dlid = from->dlid,
				    .src_path_bits = from->src_path_bits,
				    .port_num = from->port_num};
	if (!from->is_global)
		return;
	to->ah_flags = IB_AH_GRH;
	to->grh.hop_limit = from->grh.hop_limit;
	memcpy(to->grh.dgid.raw, from->grh.dgid.raw, 16);
}

/* The fields of both structs have the same names. */
int program_modify_qp(struct ib_qp *qp, struct eng_qp *eng, const struct ibv_qp_attr *v, int mask)
{
	struct ib_qp_attr k = {
		.qp_state = (enum ib_qp_state)v->qp_state,
		.path_mtu = (enum ib_mtu)v->path_mtu,
		.qkey = v->qkey,
		.rq_psn = v->rq_psn,
		.sq_psn = v->sq_psn,
		.dest_qp_num = v->dest_qp_num,
		.qp_access_flags = (int)v->qp_access_flags,
		.pkey_index = v->pkey_index,
		.max_rd_atomic = v->max_rd_atomic,
		.max_dest_rd_atomic = v->max_dest_rd_atomic,
		.min_rnr_timer = v->min_rnr_timer,
		.port_num = v->port_num,
		.timeout = v->timeout,
		.retry_cnt = v->retry_cnt,
		.rnr_retry = v->rnr_retry,
	};
	int ret;

	if (mask & IBV_QP_AV)
		translate_address(&v->ah_attr, &k.ah_attr);
	ret = ib_modify_qp(qp, &k, mask);
	return ret ?: eng_qp_modify(eng, v, mask);
}

void program_prepare_way(struct program *p, struct eng_qp *eng, uint32_t dest_qpn, uint16_t dlid)
{
	struct abi_resolve key = {
		.port_num = 1,
		.dest_qpn = dest_qpn,
		.dlid = dlid,
		.pkey = program_port(p)->pkey[0],
	};

	if (!p->soft.link.lanes.off)
		eng_qp_set_peer_owner(eng, lanes_prepare(&p->soft, &key));
}

/* --- memory --- */

/* @pd: as the engine knows it */
static int make_region(struct program *p, uint32_t pd, struct region *r, size_t bytes, int access)
{
	struct mr_args args = {pd == 1 ? p->pd : p->other_pd, r, access};
	struct eng_mr_attr attr;
	struct ib_mr *mr;
	int ret;

	*r = (struct region){
		.len = bytes, .iova = p->next_iova, .guard = (uint8_t)rng_next(&p->rng)};
	p->next_iova += ALIGN_UP(bytes, (size_t)4096) + 4096;
	r->block = malloc(bytes + 2 * GUARD_BYTES);
	r->bytes = r->block + GUARD_BYTES;
	memset(r->block, r->guard, bytes + 2 * GUARD_BYTES);
	mr = program_object(p, IB_UOBJECT_MR, &r->handle, make_mr, &args);
	ret = mr ? 0 : -ENOMEM;
	if (!ret) {
		r->key = mr->lkey;
		attr = (struct eng_mr_attr){.key = r->key,
					    .pd = pd,
					    .addr = r->bytes,
					    .length = bytes,
					    .iova = r->iova,
					    .access = access};
		ret = eng_mr_add(p->soft.engine, &attr);
		if (ret)
			ib_uobject_destroy(p->context, IB_UOBJECT_MR, r->handle);
	}
	if (ret) {
		free(r->block);
		*r = (struct region){0};
		return ret;
	}
	list_add_tail(&r->node, &p->regions);
	return 0;
}

int region_make(struct program *p, struct region *r, size_t bytes, int access)
{
	return make_region(p, 1, r, bytes, access);
}

int region_make_foreign(struct program *p, struct region *r, size_t bytes, int access)
{
	return make_region(p, 2, r, bytes, access);
}

void region_free(struct program *p, struct region *r)
{
	if (!r->block)
		return;
	if (p->alive) {
		window_region_gone(p, r);
		eng_mr_del(p->soft.engine, r->key);
		ib_uobject_destroy(p->context, IB_UOBJECT_MR, r->handle);
	}
	list_del(&r->node);
	free(r->block);
	*r = (struct region){0};
}

/* --- turns --- */

const struct abi_devport *program_port(const struct program *p)
{
	return &p->soft.devpage->port[0];
}

static void take_completions(struct program *p)
{
	struct ibv_wc wc[16];
	int want = 1 + (int)rng_below(&p->rng, ARRAY_SIZE(wc)), n;

	n = eng_cq_poll(p->eng_cq, want, wc);
	if (n < 0)
		sim_fail(p->sim, ORACLE_ORDER, "program %d: its CQ overran", p->index);
	for (int i = 0; i < n; i++)
		traffic_completion(p, &wc[i]);
}

static void arm(struct program *p)
{
	p->cq_armed = true;
	p->cq_event = false;
	eng_cq_arm(p->eng_cq, false);
}

/* A program that sleeps polls only after an event, which must come: armed,
 * looked once more, then asleep (11.4.2.2). One of two does not look once more, and may arm
 * while completions wait: it is told of those at once. */
static void take_events(struct program *p)
{
	if (p->cq_armed && !p->cq_event) {
		if (eng_cq_pending(p->eng_cq))
			sim_fail(p->sim, ORACLE_WAKE,
				 "program %d: a completion, but no event", p->index);
		return;
	}
	if (p->index % 2) {
		take_completions(p);
		arm(p);
		return;
	}
	if (!p->cq_armed)
		arm(p);
	while (eng_cq_pending(p->eng_cq))
		take_completions(p);
	if (p->cq_event)
		p->cq_armed = false;
}

static bool run_engine(struct program *p)
{
	uint32_t rounds = 1 + rng_below(&p->rng, 3);
	bool busy = false;

	while (rounds--)
		busy |= eng_tick(p->soft.engine);
	return busy;
}

/* does softibd say something about lanes? */
static bool has_lane_news(const struct program *p)
{
	struct pollfd fd = {.fd = p->context->driver_fds[ABI_FD_LANES], .events = POLLIN};

	return poll(&fd, 1, 0) > 0;
}

static void serve_lanes(struct program *p)
{
	if (p->news_seen != lane_news)
		while (has_lane_news(p))
			lanes_events(&p->soft, p->context->driver_fds[ABI_FD_LANES]);
	p->news_seen = lane_news;
	lanes_answer(&p->soft);
	lanes_reap(&p->soft);
}

static bool try_to_sleep(struct program *p)
{
	if (!p->sim->plan->sleepy || !eng_idle(p->soft.engine))
		return false;
	doorbells_wait(&p->soft.progress.doorbells, 0); /* what rang before does not count */
	p->asleep = link_arm_sleep(&p->soft.link);
	return p->asleep;
}

static void take_turn(struct rt_timer *timer)
{
	struct program *p = container_of(timer, struct program, turn);
	mono_t now = rt_now(p->sim->rt), next = MONO_NEVER;
	bool busy;

	if (p->asleep)
		link_disarm_sleep(&p->soft.link);
	p->asleep = false;
	serve_lanes(p);
	window_answer(p);
	busy = run_engine(p);
	if (p->sim->plan->sleepy)
		take_events(p);
	else
		take_completions(p);
	busy |= traffic_turn(p, &next);
	busy |= pairs_turn(p, &next);
	traffic_watch_lanes(p);
	busy |= eng_cq_pending(p->eng_cq) > 0;
	if (busy) {
		next = mono_add(now, rng_between(&p->rng, 1, p->sim->plan->think_ns));
	} else {
		next = mono_min(next, eng_expiry(p->soft.engine));
		if (!eng_idle(p->soft.engine))
			next = mono_min(next, mono_add(now, ENG_RETRY_NS));
		try_to_sleep(p);
	}
	if (next.ns <= now.ns)
		next.ns = now.ns + 1;
	rt_timer_arm(&p->turn, next);
}

void program_kick(struct program *p)
{
	mono_t soon = mono_add(rt_now(p->sim->rt), 1 + rng_below(&p->rng, 1000));

	if (p->alive && (!rt_timer_armed(&p->turn) || mono_before(soon, p->turn.expiry)))
		rt_timer_arm(&p->turn, soon);
}

/* Did a doorbell of @p ring, or one of its control descriptors? A lane's doorbell is gone with its
 * sender: who dies after it rang is told by softibd. */
static bool was_woken(struct program *p)
{
	return doorbells_wait(&p->soft.progress.doorbells, 0) || has_lane_news(p);
}

void program_notice(struct program *p)
{
	bool waiting = false;

	if (!p->alive)
		return;
	link_position(&p->soft.link, &waiting);
	if (!waiting && p->news_seen == lane_news)
		return;
	if (p->asleep && waiting && (sim_sabotage(p->sim, ORACLE_WAKE) || !was_woken(p)))
		sim_fail(p->sim, ORACLE_WAKE, "program %d sleeps and nobody rang",
			 p->index);
	if (p->asleep && waiting) {
		link_disarm_sleep(&p->soft.link);
		p->asleep = false;
	}
	if (!rt_timer_armed(&p->turn) ||
	    p->turn.expiry.ns > rt_now(p->sim->rt).ns + p->sim->plan->think_ns)
		program_kick(p);
}

/* --- life --- */

static int map_shared(struct program *p)
{
	const struct abi_context_resp *resp = p->context->driver_resp;
	const int *fds = p->context->driver_fds;
	void *page;
	int ret, doorbell;

	p->soft.devpage_bytes = abi_devpage_bytes(resp->num_ports);
	page = mmap(NULL, p->soft.devpage_bytes, PROT_READ, MAP_SHARED,
		    fds[ABI_FD_DEVPAGE], 0);
	if (page == MAP_FAILED)
		return -errno;
	p->soft.devpage = page;
	ret = link_map(&p->soft.link, fds[ABI_FD_LINK], fds[ABI_FD_DOORBELL], resp);
	if (ret)
		goto undo_page;
	ret = lanes_init(&p->soft.link.lanes, page, &p->soft.link.tx, program_now,
			 on_question, p);
	if (ret)
		goto undo_link;
	p->soft.link.lanes.off = !p->sim->plan->lanes;
	p->soft.progress.lanes_fd = fds[ABI_FD_LANES];
	doorbell = fcntl(fds[ABI_FD_PROGRAM_DOORBELL], F_DUPFD_CLOEXEC, 0);
	ret = doorbell < 0 ? -errno : doorbells_open(&p->soft.progress.doorbells, doorbell);
	if (!ret)
		return 0;
	if (doorbell >= 0)
		close(doorbell);
undo_link:
	link_unmap(&p->soft.link);
undo_page:
	munmap(page, p->soft.devpage_bytes);
	return ret;
}

/* all is one thread: nobody has to see anything, and the engine's lock is biased, as
 * that of a program that polls */
static void no_barrier(void *ctx)
{
}

static int make_engine(struct program *p)
{
	struct eng_config config = {
		.devpage = p->soft.devpage,
		.link_ops = traffic_link_ops(),
		.link = &p->soft.link,
		.packets = &p->soft.link.rx,
		.now = program_now,
		.cq_event = on_cq_event,
		.async_event = on_async_event,
		.barrier = no_barrier,
		.general_only = p->sim->options->general_only,
		.ctx = p,
	};
	int ret = eng_create(&config, &p->soft.engine);

	if (ret)
		return ret;
	p->window = NULL;
	if (p->sim->plan->windows)
		ret = window_start(p);
	ret = ret ?: eng_cq_create(p->soft.engine, CQ_DEPTH, p, &p->eng_cq);
	if (ret)
		eng_destroy(p->soft.engine);
	return ret;
}

int program_pid(const struct program *p)
{
	return 1000 + p->index;
}

static int open_device(struct program *p)
{
	const char *name = p->sim->topo->node[p->node].name;
	struct ib_device *device = ib_device_get_by_name(p->sim->rt, name, "softib0");

	p->context = ib_ucontext_open(device, program_pid(p), "sim");
	if (IS_ERR(p->context))
		return -ENOMEM;
	p->context->priv = p;
	p->context->fatal = on_fatal;
	return 0;
}

void program_init(struct program *p)
{
	rt_timer_init(p->sim->rt, &p->turn, take_turn);
	INIT_LIST_HEAD(&p->regions);
}

bool program_start(struct program *p)
{
	memset(&p->soft, 0, sizeof(p->soft));
	memset(p->lane_watch, 0, sizeof(p->lane_watch));
	p->asleep = p->cq_armed = p->cq_event = p->gave_up = false;
	p->next_iova = 0x10000000ull * (uint64_t)(p->index + 1);
	INIT_LIST_HEAD(&p->regions);
	if (open_device(p))
		return false;
	if (map_shared(p))
		goto undo_context;
	if (make_engine(p))
		goto undo_map;
	p->pd = program_object(p, IB_UOBJECT_PD, &p->pd_handle, make_pd, NULL);
	p->cq = p->pd ? program_object(p, IB_UOBJECT_CQ, &p->cq_handle, make_cq, NULL)
		      : NULL;
	if (!p->cq)
		goto undo_engine;
	if (p->sim->plan->violations)
		p->other_pd = program_object(p, IB_UOBJECT_PD, &p->other_pd_handle, make_pd, NULL);
	if (p->sim->plan->violations && !p->other_pd)
		goto undo_engine;
	p->alive = true;
	p->lives++;
	program_kick(p);
	return true;

undo_engine:
	eng_destroy(p->soft.engine);
undo_map:
	doorbells_close(&p->soft.progress.doorbells);
	link_unmap(&p->soft.link);
	munmap((void *)p->soft.devpage, p->soft.devpage_bytes);
undo_context:
	ib_ucontext_close(p->context);
	return false;
}

void program_kill(struct program *p)
{
	if (!p->alive)
		return;
	p->alive = false;
	sim_log(p->sim, "program %d dies", p->index);
	rt_timer_disarm(&p->turn);
	conns_of_dead(p);
	pairs_of_dead(p);
	group_of_dead(p);
	p->sim->result->by_window += eng_window_operations(p->soft.engine);
	window_stop(p);
	eng_destroy(p->soft.engine);
	doorbells_close(&p->soft.progress.doorbells);
	link_unmap(&p->soft.link);
	munmap((void *)p->soft.devpage, p->soft.devpage_bytes);
	ib_ucontext_close(p->context);
	lane_news++;
	oracle_forgotten(p->sim, p);
}
