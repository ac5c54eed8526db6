/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The engine's side of lanes: the choice of the medium by which a packet leaves, and the records that
 * have arrived. The only system call is the doorbell of a receiver that sleeps.
 */
#include "lanes.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/doorbell.h"
#include "wire/packet.h"

#define ASK_AGAIN_PACKETS 1024
#define ASK_EVICTED_PACKETS 16 /* a flow that lost its slot does not ask at once */
#define ENTER_PACKETS 64
#define RECORDS_PER_BARRIER 64 /* a membarrier(2) costs as much as so many fences, or more */
#define SLEEPS_OFTEN 16 /* consecutive sleeps, each after fewer records */

static int membarrier(int command)
{
	return (int)syscall(SYS_membarrier, command, 0, 0);
}

int lanes_init(struct lanes *l, const struct abi_devpage *page, struct abi_ring_tx *by_softibd,
	       mono_t (*now)(void *ctx), void (*wake)(void *ctx), void *ctx)
{
	const char *wish = getenv("SOFTIB_LANES");

	memset(l, 0, sizeof(*l));
	l->off = wish && !strcmp(wish, "0");
	l->has_membarrier = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
	l->devpage = page;
	l->by_softibd = by_softibd;
	l->wake = wake;
	l->ctx = ctx;
	l->now = now;
	INIT_LIST_HEAD(&l->out);
	INIT_LIST_HEAD(&l->in);
	pthread_mutex_init(&l->ask_lock, NULL);
	l->flow = calloc(LANES_FLOWS, sizeof(*l->flow));
	return l->flow ? 0 : -ENOMEM;
}

/* --- flows --- */

static struct abi_resolve key_of(const struct eng_path *path)
{
	return (struct abi_resolve){
		.port_num = path->port_num,
		.dest_qpn = path->dest_qpn,
		.dlid = path->dlid,
		.pkey = path->pkey,
		.sl = path->sl,
	};
}

static bool drained(const struct abi_ring_tx *tx)
{
	return tx->tail == tx->published && abi_ring_drained(tx);
}

static void ask(struct lanes *l, struct flow *f)
{
	f->misses = 0;
	if (l->caller_asks || l->num_questions == LANES_QUESTIONS)
		return;
	l->question[l->num_questions++] = key_of(&f->path);
	l->wake(l->ctx);
}

/* QPNs are given out in turn: neighbours have neighbouring slots, so that a
 * program touches no more pages than it has flows for */
static struct flow *slot_of(const struct lanes *l, const struct eng_path *path, unsigned way)
{
	uint32_t home = path->dest_qpn + ((path->dlid ^ (uint32_t)path->sl << 16) * 0x9e3779b1u >> 12);

	return &l->flow[way * (LANES_FLOWS / LANES_WAYS) + home % (LANES_FLOWS / LANES_WAYS)];
}

static struct flow *find_flow(const struct lanes *l, const struct eng_path *path)
{
	for (unsigned way = 0; way < LANES_WAYS; way++) {
		struct flow *f = slot_of(l, path, way);

		if (f->used && eng_same_path(&f->path, path))
			return f;
	}
	return NULL;
}

/* may another flow take its slot? Not while packets of it are under way */
static bool may_go(const struct flow *f)
{
	return (f->state != FLOW_LANE && f->state != FLOW_LEAVING) ||
	       abi_lane_passed(&f->eng.lane->tx, f->eng.lane->tx.tail);
}

static void free_flow(struct flow *f)
{
	if (f->eng.lane)
		list_del(&f->on_lane);
	*f = (struct flow){.eng.serial = f->eng.serial + 1};
}

/* a slot for a flow that has none: one that nobody uses, or that of the victim */
static struct flow *free_slot(struct lanes *l, const struct eng_path *path, bool *taken)
{
	for (unsigned way = 0; way < LANES_WAYS; way++)
		if (!slot_of(l, path, way)->used)
			return slot_of(l, path, way);
	*taken = true;
	for (unsigned n = 0; n < LANES_WAYS; n++) {
		struct flow *f = slot_of(l, path, l->next_victim++ % LANES_WAYS);

		if (may_go(f))
			return f;
	}
	return NULL;
}

/* the slot of a flow; NULL if all candidates belong to flows with packets under way */
static struct flow *flow_of(struct lanes *l, const struct eng_path *path)
{
	struct flow *f = find_flow(l, path);
	bool taken = false;

	if (likely(f))
		return f;
	f = free_slot(l, path, &taken);
	if (!f)
		return NULL;
	free_flow(f);
	f->path = *path;
	f->used = true;
	f->since = MONO_NEVER;
	f->misses = ASK_AGAIN_PACKETS - (taken ? ASK_EVICTED_PACKETS : 0);
	return f;
}

static bool holds(const struct lanes *l, const struct flow *f, uint32_t bytes)
{
	return f->eng.epoch ==
		       atomic_load_explicit(&l->devpage->route_epoch, memory_order_acquire) &&
	       bytes <= f->eng.mtu_bytes;
}

/* The flow's packet could not leave. Return: whether it has waited longer than the head-of-queue
 * lifetime */
static enum eng_medium wait_or_lose(struct lanes *l, struct flow *f)
{
	mono_t now = l->now(l->ctx);

	if (f->since.ns == MONO_NEVER.ns)
		f->since = now;
	if (now.ns - f->since.ns < LANES_HOQ_NS)
		return ENG_WAIT;
	f->since = MONO_NEVER; /* the next packet begins a wait of its own */
	return ENG_LOST;
}

enum eng_medium lanes_stuck(struct lanes *l, struct eng_flow *flow)
{
	struct flow *f = container_of(flow, struct flow, eng);

	if (f->stuck_at != flow->lane->tx.tail) /* there was room since */
		f->since = MONO_NEVER;
	f->stuck_at = flow->lane->tx.tail;
	return wait_or_lose(l, f);
}

static enum eng_medium by_softibd(struct lanes *l, struct flow *f)
{
	f->state = FLOW_SOFTIBD;
	if (++f->misses > ASK_AGAIN_PACKETS)
		ask(l, f);
	return ENG_BY_PACKETS;
}

static enum eng_medium leave(struct lanes *l, struct flow *f)
{
	const struct abi_lane_tx *tx = &f->eng.lane->tx;

	if (f->state == FLOW_LANE) {
		f->state = FLOW_LEAVING;
		f->until = tx->tail;
		f->since = MONO_NEVER;
		f->eng.serial++;
	}
	if (!abi_lane_passed(tx, (uint32_t)f->until))
		return wait_or_lose(l, f);
	f->since = MONO_NEVER;
	f->misses = ASK_AGAIN_PACKETS;
	return by_softibd(l, f);
}

static bool ring_passed(const struct abi_ring_tx *tx, uint64_t until)
{
	return atomic_load_explicit(&tx->ring->head, memory_order_acquire) >= until;
}

static enum eng_medium enter(struct lanes *l, struct flow *f, uint32_t bytes)
{
	if (!holds(l, f, bytes))
		return by_softibd(l, f);
	if (!drained(l->by_softibd)) {
		if (f->misses < ENTER_PACKETS) {
			f->misses++;
			f->until = UINT64_MAX;
			return ENG_BY_PACKETS;
		}
		if (f->until == UINT64_MAX)
			f->until = l->by_softibd->tail;
		if (!ring_passed(l->by_softibd, f->until))
			return wait_or_lose(l, f);
	}
	f->since = MONO_NEVER;
	f->state = FLOW_LANE;
	return ENG_BY_LANE;
}

static enum eng_medium step(struct lanes *l, struct flow *f, uint32_t bytes)
{
	switch ((enum flow_state)f->state) {
	case FLOW_LANE:
		return likely(holds(l, f, bytes)) ? ENG_BY_LANE : leave(l, f);
	case FLOW_LEAVING:
		return leave(l, f);
	case FLOW_ENTERING:
		return enter(l, f, bytes);
	case FLOW_SOFTIBD:
		break;
	}
	return by_softibd(l, f);
}

enum eng_medium lanes_choose(struct lanes *l, const struct eng_path *path, uint32_t bytes,
			  struct eng_flow **flow)
{
	struct flow *f;

	*flow = NULL;
	if (l->off || path->dlid >= WIRE_LID_MULTICAST || path->dest_qpn < 2)
		return ENG_BY_PACKETS;
	f = flow_of(l, path);
	if (unlikely(!f))
		return ENG_BY_PACKETS;
	*flow = &f->eng;
	return step(l, f, bytes);
}

void lanes_known(struct lanes *l, const struct abi_resolve *key,
		 const struct abi_resolve_resp *resp, struct lane_out *lane)
{
	struct eng_path path = {.dest_qpn = key->dest_qpn, .dlid = key->dlid, .pkey = key->pkey,
				.sl = key->sl, .port_num = (uint8_t)key->port_num};
	struct flow *f = find_flow(l, &path);

	if (!f || f->state != FLOW_SOFTIBD || resp->flow >= ABI_LANE_FLOWS)
		return;
	if (f->eng.lane)
		list_del(&f->on_lane);
	list_add_tail(&f->on_lane, &lane->flows);
	f->eng = (struct eng_flow){.lane = &lane->eng,
				   .count = &lane->eng.tx.memory->flow[resp->flow],
				   .serial = f->eng.serial + 1,
				   .epoch = resp->epoch,
				   .mtu_bytes = resp->mtu_bytes};
	f->misses = 0;
	f->until = UINT64_MAX;
	f->since = MONO_NEVER;
	f->state = FLOW_ENTERING;
}

void lanes_forget(struct lane_out *lane)
{
	while (!list_empty(&lane->flows))
		free_flow(list_first_entry(&lane->flows, struct flow, on_lane));
	eng_lane_out_gone(&lane->eng);
}

void lanes_ring(struct lanes *l, struct eng_lane_out *lane)
{
	abi_doorbell_ring(container_of(lane, struct lane_out, eng)->doorbell_fd);
}

bool lanes_ring_overdue(struct lanes *l, mono_t now)
{
	struct lane_out *lane;
	bool some = false;

	list_for_each_entry(lane, &l->out, node) {
		uint32_t tail = lane->eng.tx.tail, head;

		if (lane->rung_for == tail)
			continue;
		head = atomic_load_explicit(&lane->eng.tx.memory->head, memory_order_acquire);
		if (head == tail) {
			lane->rung_for = tail;
			continue;
		}
		some = true;
		if (head != lane->head_then || lane->unread_since.ns == 0) {
			lane->head_then = head;
			lane->unread_since = now;
		} else if (now.ns - lane->unread_since.ns >= PROG_OVERDUE_NS) {
			lanes_ring(l, &lane->eng);
			lane->rung_for = tail;
			lane->unread_since = (mono_t){0};
		}
	}
	return some;
}

/* --- sleeping --- */

/* what its reader has given back so far is what the thread may know */
static bool is_waiting(const struct lane_in *lane)
{
	struct abi_lane_rx rx = {.memory = lane->eng.rx.memory};

	rx.head = atomic_load_explicit(&rx.memory->head, memory_order_acquire);
	return abi_lane_waiting(&rx);
}

/* Decide who executes the fence between publishing a record and reading `asleep`. While the
 * receiver takes many records between two sleeps, it executes an expensive one for all its
 * senders when it goes to sleep; otherwise each sender executes a cheap one for each record. */
static void divide_fences(struct lanes *l)
{
	bool waiting = false, senders;
	uint64_t position = lanes_position(l, &waiting);
	struct lane_in *lane;

	if (position - l->slept_at >= RECORDS_PER_BARRIER)
		l->sleeps = 0;
	else if (l->sleeps < SLEEPS_OFTEN)
		l->sleeps++;
	l->slept_at = position;
	senders = l->sleeps == SLEEPS_OFTEN;
	if (likely(senders == l->senders_fence))
		return;
	l->senders_fence = senders;
	list_for_each_entry(lane, &l->in, node)
		lanes_announce_fence(l, lane);
	if (senders) /* a sender that has not seen the change yet is fenced by this */
		membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

/* a sender that has published a record must see `asleep`: this is the fence that senders omit */
static void fence(const struct lanes *l)
{
	if (l->has_membarrier && !l->senders_fence && !list_empty(&l->in))
		membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
	else
		atomic_thread_fence(memory_order_seq_cst);
}

bool lanes_arm_sleep(struct lanes *l)
{
	struct lane_in *lane;
	bool empty = true;

	if (l->has_membarrier)
		divide_fences(l);
	list_for_each_entry(lane, &l->in, node)
		atomic_store_explicit(&lane->eng.rx.memory->asleep, 1, memory_order_relaxed);
	fence(l);
	list_for_each_entry(lane, &l->in, node)
		empty &= !is_waiting(lane);
	if (!empty)
		lanes_disarm_sleep(l);
	return empty;
}

void lanes_announce_fence(const struct lanes *l, struct lane_in *lane)
{
	atomic_store_explicit(&lane->eng.rx.memory->has_membarrier,
			      l->has_membarrier && !l->senders_fence, memory_order_relaxed);
}

void lanes_disarm_sleep(struct lanes *l)
{
	struct lane_in *lane;

	list_for_each_entry(lane, &l->in, node)
		atomic_store_explicit(&lane->eng.rx.memory->asleep, 0, memory_order_relaxed);
}

uint64_t lanes_position(struct lanes *l, bool *waiting)
{
	struct lane_in *lane;
	uint64_t sum = 0;

	list_for_each_entry(lane, &l->in, node) {
		sum += atomic_load_explicit(&lane->eng.rx.memory->head, memory_order_acquire);
		*waiting |= is_waiting(lane);
	}
	return sum;
}
