/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Packets of a cable whose destinations have no room: held.h. */
#include "cable/held.h"

#include <errno.h>
#include <string.h>

#define QUEUES_MAX 256 /* destinations; beyond them the packets are dropped */

/** struct queue - of a destination: packets that wait, or none while its packets are dropped */
struct queue {
	struct list_head node;
	struct list_head packets;
	uint16_t dlid;
	uint32_t qpn;
	mono_t since; /* it has accepted nothing; and while it is stalled: until then its packets are dropped */
	bool stalled;
};

struct held_packet {
	struct list_head node;
	bool again;	       /* it was offered, and found no room */
	struct fab_packet pkt; /* of @bytes */
	uint8_t bytes[];
};

static struct queue *find(struct cable_held *held, const struct fab_packet *pkt)
{
	struct queue *q;

	list_for_each_entry(q, &held->queues, node)
		if (q->dlid == pkt->lrh.dlid && q->qpn == pkt->dest_qpn)
			return q;
	return NULL;
}

static struct queue *begin(struct cable_held *held, const struct fab_packet *pkt)
{
	struct queue *q, *tmp;
	unsigned int n = 0;

	list_for_each_entry_safe(q, tmp, &held->queues, node)
		n++;
	q = n < QUEUES_MAX ? rt_zalloc(sizeof(*q)) : NULL;
	if (!q)
		return NULL;
	INIT_LIST_HEAD(&q->packets);
	q->dlid = pkt->lrh.dlid;
	q->qpn = pkt->dest_qpn;
	q->since = rt_now(held->rt);
	list_add_tail(&q->node, &held->queues);
	return q;
}

static void end(struct queue *q)
{
	list_del(&q->node);
	rt_free(q);
}

static void drop(struct held_packet *h)
{
	list_del(&h->node);
	rt_free(h);
}

/* Return: false: no memory */
static bool keep(struct queue *q, const struct fab_packet *pkt, bool again)
{
	struct held_packet *h = rt_alloc(sizeof(*h) + pkt->len);

	if (!h)
		return false;
	h->again = again;
	h->pkt = *pkt;
	memcpy(h->bytes, pkt->bytes, pkt->len);
	h->pkt.bytes = h->bytes;
	list_add_tail(&h->node, &q->packets);
	return true;
}

static void arm(struct cable_held *held)
{
	rt_timer_arm(&held->retry, mono_add(rt_now(held->rt), held->retry_ns));
}

void cable_held_packet(struct cable_held *held, struct fab_packet *pkt)
{
	struct queue *q = list_empty(&held->queues) ? NULL : find(held, pkt);
	const bool waits = q && !q->stalled;
	const bool room = !waits && held->ops->offer(held->ctx, pkt, false) != -EAGAIN;

	if (room) {
		if (q)
			end(q);
		held->ops->done(held->ctx, pkt->len, false);
		return;
	}
	if (!q)
		q = begin(held, pkt);
	if (!q || q->stalled || !keep(q, pkt, !waits)) {
		held->ops->done(held->ctx, pkt->len, true);
		return;
	}
	if (!rt_timer_armed(&held->retry)) {
		held->retry_ns = FAB_RETRY_MIN_NS;
		arm(held);
	}
}

static void discard_all(struct cable_held *held, struct queue *q)
{
	struct held_packet *h, *tmp;

	list_for_each_entry_safe(h, tmp, &q->packets, node) {
		held->ops->done(held->ctx, h->pkt.len, true);
		drop(h);
	}
	q->stalled = true;
	q->since = mono_add(rt_now(held->rt), FAB_HOQ_NS);
}

/* Deliver what waits for one destination. Return: true: some of it was delivered */
static bool try_queue(struct cable_held *held, struct queue *q)
{
	const mono_t now = rt_now(held->rt);
	struct held_packet *h, *tmp;
	bool any = false;

	list_for_each_entry_safe(h, tmp, &q->packets, node) {
		if (held->ops->offer(held->ctx, &h->pkt, h->again) == -EAGAIN) {
			h->again = true;
			break;
		}
		held->ops->done(held->ctx, h->pkt.len, false);
		drop(h);
		q->since = now;
		any = true;
	}
	if (list_empty(&q->packets))
		end(q);
	else if (now.ns - q->since.ns >= FAB_HOQ_NS)
		discard_all(held, q);
	return any;
}

static void retry(struct rt_timer *timer)
{
	struct cable_held *held = container_of(timer, struct cable_held, retry);
	const mono_t now = rt_now(held->rt);
	struct queue *q, *tmp;
	bool any = false;

	list_for_each_entry_safe(q, tmp, &held->queues, node) {
		if (!q->stalled)
			any |= try_queue(held, q);
		else if (!mono_before(now, q->since))
			end(q);
	}
	held->retry_ns = any ? FAB_RETRY_MIN_NS : MIN(2 * held->retry_ns, FAB_RETRY_MAX_NS);
	if (!list_empty(&held->queues))
		arm(held);
}

void cable_held_init(struct cable_held *held, struct rt *rt, const struct cable_held_ops *ops, void *ctx)
{
	*held = (struct cable_held){.rt = rt, .ops = ops, .ctx = ctx};
	INIT_LIST_HEAD(&held->queues);
	rt_timer_init(rt, &held->retry, retry);
}

void cable_held_exit(struct cable_held *held)
{
	struct queue *q, *tmp;
	struct held_packet *h, *next;

	rt_timer_disarm(&held->retry);
	list_for_each_entry_safe(q, tmp, &held->queues, node) {
		list_for_each_entry_safe(h, next, &q->packets, node)
			drop(h);
		end(q);
	}
}
