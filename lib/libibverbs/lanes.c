/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The engine's side of lanes: which way a packet leaves, and what came in.
 * No system call but the doorbell of a receiver that sleeps.
 */
#include "lanes.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"

#define ASK_AGAIN_PACKETS 1024
#define ASK_EVICTED_PACKETS 16 /* flows that fight for a slot: not at once */
#define ENTER_PACKETS 64
#define HOQ_NS (1 * NSEC_PER_SEC) /* head-of-queue lifetime, as softibd's */

void lanes_init(struct lanes *l, const struct abi_devpage *page, struct abi_ring_tx *by_softibd,
		mono_t (*now)(void *ctx), void (*wake)(void *ctx), void *ctx)
{
	const char *wish = getenv("SOFTIB_LANES");

	memset(l, 0, sizeof(*l));
	l->off = wish && !strcmp(wish, "0");
	l->devpage = page;
	l->by_softibd = by_softibd;
	l->wake = wake;
	l->ctx = ctx;
	l->now = now;
	INIT_LIST_HEAD(&l->out);
	INIT_LIST_HEAD(&l->in);
	INIT_LIST_HEAD(&l->dirty);
	pthread_mutex_init(&l->ask_lock, NULL);
}

/* --- flows --- */

static struct abi_resolve key_of(const struct wire_packet *pkt, unsigned port_num)
{
	return (struct abi_resolve){
		.port_num = port_num,
		.dest_qpn = pkt->bth.dest_qpn,
		.dlid = pkt->lrh.dlid,
		.pkey = pkt->bth.pkey,
		.sl = pkt->lrh.sl,
	};
}

static bool same_key(const struct abi_resolve *a, const struct abi_resolve *b)
{
	return a->dest_qpn == b->dest_qpn && a->dlid == b->dlid && a->pkey == b->pkey &&
	       a->sl == b->sl && a->port_num == b->port_num;
}

static bool drained(const struct abi_ring_tx *tx)
{
	return tx->tail == tx->published && abi_ring_drained(tx);
}

static void ask(struct lanes *l, struct flow *f)
{
	f->misses = 0;
	if (l->num_questions == LANES_QUESTIONS)
		return;
	l->question[l->num_questions++] = f->key;
	l->wake(l->ctx);
}

/* its slot; NULL when another flow has it whose packets are under way */
static struct flow *flow_of(struct lanes *l, const struct abi_resolve *key)
{
	uint32_t hash = (key->dest_qpn * 0x9e3779b1u) ^ (key->dlid * 0x85ebca6bu) ^ key->sl;
	struct flow *f = &l->flow[hash >> 16 & (LANES_FLOWS - 1)];

	if (likely(f->used && same_key(&f->key, key)))
		return f;
	if (f->used && (f->state == FLOW_LANE || f->state == FLOW_LEAVING) &&
	    !drained(&f->lane->tx))
		return NULL;
	*f = (struct flow){.key = *key,
			   .used = true,
			   .since = MONO_NEVER,
			   .misses = ASK_AGAIN_PACKETS - (f->used ? ASK_EVICTED_PACKETS : 0)};
	return f;
}

static bool holds(const struct lanes *l, const struct flow *f, uint32_t payload_bytes)
{
	return f->epoch == atomic_load_explicit(&l->devpage->route_epoch, memory_order_acquire) &&
	       payload_bytes <= f->mtu_bytes;
}

bool lanes_stuck(struct lanes *l, struct flow *f)
{
	mono_t now = l->now(l->ctx);

	if (f->since.ns == MONO_NEVER.ns)
		f->since = now;
	if (now.ns - f->since.ns < HOQ_NS)
		return false;
	f->since = MONO_NEVER; /* the next packet has its own time */
	return true;
}

/* Return: true when the ring is read up to @until */
static bool passed(const struct abi_ring_tx *tx, uint64_t until)
{
	return atomic_load_explicit(&tx->ring->head, memory_order_acquire) >= until;
}

static enum lanes_way wait_for(struct lanes *l, struct flow *f, const struct abi_ring_tx *tx)
{
	if (passed(tx, f->until)) {
		f->since = MONO_NEVER;
		return LANES_BY_LANE;
	}
	return lanes_stuck(l, f) ? LANES_LOST : LANES_WAIT;
}

static enum lanes_way by_softibd(struct lanes *l, struct flow *f)
{
	f->state = FLOW_SOFTIBD;
	if (++f->misses > ASK_AGAIN_PACKETS)
		ask(l, f);
	return LANES_BY_SOFTIBD;
}

static enum lanes_way leave(struct lanes *l, struct flow *f)
{
	enum lanes_way way;

	if (f->state == FLOW_LANE) {
		f->state = FLOW_LEAVING;
		f->until = f->lane->tx.tail;
		f->since = MONO_NEVER;
	}
	way = wait_for(l, f, &f->lane->tx);
	if (way != LANES_BY_LANE)
		return way;
	f->misses = ASK_AGAIN_PACKETS;
	return by_softibd(l, f);
}

static enum lanes_way enter(struct lanes *l, struct flow *f, uint32_t payload_bytes)
{
	enum lanes_way way = LANES_BY_LANE;

	if (!holds(l, f, payload_bytes))
		return by_softibd(l, f);
	if (!drained(l->by_softibd)) {
		if (f->misses < ENTER_PACKETS) {
			f->misses++;
			f->until = UINT64_MAX;
			return LANES_BY_SOFTIBD;
		}
		if (f->until == UINT64_MAX)
			f->until = l->by_softibd->tail;
		way = wait_for(l, f, l->by_softibd);
	}
	if (way == LANES_BY_LANE)
		f->state = FLOW_LANE;
	return way;
}

enum lanes_way lanes_choose(struct lanes *l, const struct wire_packet *pkt, unsigned port_num,
			    struct flow **flow)
{
	struct abi_resolve key;
	struct flow *f;

	if (l->off || pkt->lrh.dlid >= WIRE_LID_MULTICAST || pkt->bth.dest_qpn < 2)
		return LANES_BY_SOFTIBD;
	key = key_of(pkt, port_num);
	f = *flow = flow_of(l, &key);
	if (unlikely(!f))
		return LANES_BY_SOFTIBD;
	switch ((enum flow_state)f->state) {
	case FLOW_LANE:
		return likely(holds(l, f, pkt->payload_bytes)) ? LANES_BY_LANE : leave(l, f);
	case FLOW_LEAVING:
		return leave(l, f);
	case FLOW_ENTERING:
		return enter(l, f, pkt->payload_bytes);
	case FLOW_SOFTIBD:
		break;
	}
	return by_softibd(l, f);
}

void lanes_known(struct lanes *l, const struct abi_resolve *key,
		 const struct abi_resolve_resp *resp, struct lane_out *lane)
{
	struct flow *f = NULL;

	for (unsigned i = 0; i < LANES_FLOWS && !f; i++)
		if (l->flow[i].used && same_key(&l->flow[i].key, key))
			f = &l->flow[i];
	if (!f || f->state != FLOW_SOFTIBD || resp->flow >= ABI_LANE_FLOWS)
		return;
	f->lane = lane;
	f->index = resp->flow;
	f->epoch = resp->epoch;
	f->mtu_bytes = resp->mtu_bytes;
	f->misses = 0;
	f->until = UINT64_MAX;
	f->since = MONO_NEVER;
	f->state = FLOW_ENTERING;
}

/* --- sending --- */

void *lanes_reserve(struct lanes *l, struct flow *f, size_t len)
{
	void *room = abi_ring_reserve(&f->lane->tx, len);

	if (likely(room != NULL))
		f->since = MONO_NEVER;
	return room;
}

void lanes_commit(struct lanes *l, struct flow *f, size_t len)
{
	struct abi_flow_count *c = &f->lane->memory->flow[f->index];
	uint64_t packets = atomic_load_explicit(&c->packets, memory_order_relaxed);
	uint64_t dwords = atomic_load_explicit(&c->dwords, memory_order_relaxed);

	abi_ring_commit(&f->lane->tx, len);
	/* LRH:PktLen counts the ICRC too, which a lane does not carry */
	atomic_store_explicit(&c->dwords, dwords + len / 4 + 1, memory_order_relaxed);
	atomic_store_explicit(&c->packets, packets + 1, memory_order_relaxed);
	if (!f->lane->dirty) {
		f->lane->dirty = true;
		list_add_tail(&f->lane->dirty_node, &l->dirty);
	}
}

void lanes_flush(struct lanes *l)
{
	uint64_t one = 1;

	while (!list_empty(&l->dirty)) {
		struct lane_out *lane = list_first_entry(&l->dirty, struct lane_out, dirty_node);

		list_del(&lane->dirty_node);
		lane->dirty = false;
		if (!abi_ring_publish(&lane->tx))
			continue;
		if (write(lane->doorbell_fd, &one, sizeof(one)) < 0)
			continue; /* the counter is full: the receiver is awake */
	}
}

/* --- receiving --- */

void lanes_look(struct lanes *l)
{
	struct lane_in *lane;

	list_for_each_entry(lane, &l->in, node) {
		lane->limit = atomic_load_explicit(&lane->memory->ring.tail, memory_order_acquire);
		lane->rx.tail_seen = lane->limit;
	}
	l->reading = list_empty(&l->in) ? NULL : list_first_entry(&l->in, struct lane_in, node);
}

static void next_lane(struct lanes *l)
{
	struct lane_in *lane = l->reading;

	abi_ring_release(&lane->rx);
	l->reading = lane->node.next == &l->in ? NULL :
						 list_entry(lane->node.next, struct lane_in, node);
}

/* a lane belongs to one source port; who forges another is not heard */
static bool is_from(const struct lane_in *lane, const uint8_t *packet, size_t len)
{
	return len >= WIRE_LRH_BYTES && (get_be16(packet + 6) & lane->slid_mask) == lane->slid;
}

const void *lanes_receive(struct lanes *l, size_t *len)
{
	while (l->reading) {
		struct lane_in *lane = l->reading;
		const void *packet = NULL;

		if (lane->rx.head != lane->limit)
			packet = abi_ring_peek(&lane->rx, len);
		if (likely(packet && is_from(lane, packet, *len)))
			return packet;
		if (packet) {
			abi_ring_consume(&lane->rx);
			continue;
		}
		if (lane->rx.head != lane->limit) /* nonsense: forget the rest */
			lane->rx.head = lane->limit;
		next_lane(l);
	}
	return NULL;
}

void lanes_release(struct lanes *l)
{
	abi_ring_consume(&l->reading->rx);
}

/* --- sleeping --- */

bool lanes_sleep(struct lanes *l)
{
	struct lane_in *lane;
	bool empty = true;

	list_for_each_entry(lane, &l->in, node)
		atomic_store_explicit(&lane->memory->ring.asleep, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	list_for_each_entry(lane, &l->in, node) {
		struct abi_ring *ring = &lane->memory->ring;

		empty &= atomic_load_explicit(&ring->tail, memory_order_acquire) ==
			 atomic_load_explicit(&ring->head, memory_order_acquire);
	}
	if (!empty)
		lanes_wake(l);
	return empty;
}

void lanes_wake(struct lanes *l)
{
	struct lane_in *lane;

	list_for_each_entry(lane, &l->in, node)
		atomic_store_explicit(&lane->memory->ring.asleep, 0, memory_order_relaxed);
}

uint64_t lanes_position(struct lanes *l, bool *waiting)
{
	struct lane_in *lane;
	uint64_t sum = 0;

	list_for_each_entry(lane, &l->in, node) {
		uint64_t head = atomic_load_explicit(&lane->memory->ring.head, memory_order_acquire);

		sum += head;
		*waiting |= atomic_load_explicit(&lane->memory->ring.tail, memory_order_acquire) !=
			    head;
	}
	return sum;
}
