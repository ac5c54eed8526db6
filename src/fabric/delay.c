/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets that fault rules keep inside the fabric, between sender and
 * destination:
 *
 *   on a link   Packets that are delayed, or reordered behind later ones. They
 *               are sorted by time of arrival and end with fab_land().
 *   waiting     Packets that arrived at a port and find no room. They are served
 *               in order, retried every RETRY_NS, and dropped after the
 *               head-of-queue lifetime (18.2.5.4). Later packets stay with
 *               their senders (fab_busy()).
 */
#include <errno.h>
#include <string.h>

#include "fabric/fabric_private.h"

#define HELD_BYTES_MAX (16u << 20) /* beyond this, senders keep their packets */
#define HELD_BYTES_END (32u << 20) /* beyond this, packets that cannot stay with their sender are dropped */
#define RETRY_NS       (50 * NSEC_PER_USEC)

static struct fab_delayed *make(struct fab_faults *f, const struct fab_packet *pkt)
{
	struct fab_delayed *h;

	if (f->held_bytes > HELD_BYTES_END)
		return NULL;
	h = rt_zalloc(sizeof(*h) + pkt->len);
	if (!h)
		return NULL;
	h->pkt = *pkt;
	memcpy(h->bytes, pkt->bytes, pkt->len);
	h->pkt.bytes = h->bytes;
	f->held_bytes += sizeof(*h) + pkt->len;
	return h;
}

static void drop(struct fab_faults *f, struct fab_delayed *h)
{
	f->held_bytes -= sizeof(*h) + h->pkt.len;
	h->step.from_port->late -= h->late;
	list_del(&h->node);
	rt_free(h);
}

bool fab_delayed_full(const struct fab_faults *f)
{
	return f->held_bytes > HELD_BYTES_MAX;
}

/* --- on a link --------------------------------------------------------- */

static void rearm(struct fab_faults *f)
{
	if (list_empty(&f->holds))
		rt_timer_disarm(&f->due);
	else
		rt_timer_arm(&f->due, list_first_entry(&f->holds, struct fab_delayed, node)->due);
}

/* behind all packets that are due at the same time or earlier */
static void insert(struct fab_faults *f, struct fab_delayed *h)
{
	struct list_head *at = f->holds.prev;

	while (at != &f->holds && mono_before(h->due, container_of(at, struct fab_delayed, node)->due))
		at = at->prev;
	list_add(&h->node, at);
}

static bool keeps_order(const struct fab_step *step, const struct fab_packet *pkt)
{
	return !fab_is_inside(step) && pkt->lrh.vl != WIRE_VL_MANAGEMENT;
}

/* a data packet arrives after all data packets that were sent before it */
static void queue_up(struct fab_delayed *h)
{
	struct fab_port *from = h->step.from_port;

	if (from->late && mono_before(h->due, from->late_until))
		h->due = from->late_until;
	from->late_until = h->due;
	from->late++;
	h->late = true;
}

bool fab_is_late(const struct fab_step *step, const struct fab_packet *pkt)
{
	return step->from_port->late && keeps_order(step, pkt);
}

void fab_delay_behind(const struct fab_step *step, const struct fab_packet *pkt)
{
	const struct flt_verdict v = {.now = step->from_port->late_until};

	fab_delay(step, pkt, &v);
}

void fab_delay(const struct fab_step *step, const struct fab_packet *pkt,
	      const struct flt_verdict *v)
{
	struct fab_faults *f = step->from_port->fab->faults;
	struct fab_delayed *h = make(f, pkt);

	if (!h) {
		step->from->count.raw[AG_XMIT_DISCARDS]++;
		return;
	}
	h->step = *step;
	h->due = mono_add(v->now, v->delay_ns + v->hold_ns);
	if (!v->hold_ns && keeps_order(step, pkt))
		queue_up(h);
	if (v->hold_ns) {
		h->rule = v->rule;
		h->way = v->hold_way;
		h->until = v->hold_until;
		f->num_reordered++;
	}
	insert(f, h);
	rearm(f);
}

void fab_land(const struct fab_step *step, const struct fab_packet *pkt)
{
	struct fab_port *in = step->to_port;

	if (!fab_is_inside(step)) {
		if (fab_peer(in) != step->from_port || step->to->state < WIRE_PORT_INIT)
			return; /* the link went down meanwhile */
		if (!fab_tap(in, false, pkt))
			return;
		fab_count_received(step, pkt);
		if (pkt->lrh.vl != WIRE_VL_MANAGEMENT)
			fab_activate(step);
	}
	if (!list_empty(&in->waiting) || fab_arrive(in, pkt) == -EAGAIN)
		fab_delay_for_room(in, pkt);
}

static void release(struct fab_faults *f, struct fab_delayed *h)
{
	list_del_init(&h->node);
	f->num_reordered -= h->rule != 0;
	fab_land(&h->step, &h->pkt);
	drop(f, h);
}

static void due(struct rt_timer *timer)
{
	struct fab_faults *f = container_of(timer, struct fab_faults, due);
	mono_t now = rt_now(f->fab->rt);

	while (!list_empty(&f->holds)) {
		struct fab_delayed *h = list_first_entry(&f->holds, struct fab_delayed, node);

		if (mono_before(now, h->due))
			break;
		release(f, h);
	}
	rearm(f);
}

/* fab_land() may call this function again: the outermost call releases all packets */
void fab_delayed_release(struct fab_faults *f)
{
	struct fab_delayed *h, *tmp;

	if (f->releasing || !f->num_reordered)
		return;
	f->releasing = true;
	list_for_each_entry_safe(h, tmp, &f->holds, node)
		if (h->rule && flt_hold_over(&f->set, h->rule, h->way, h->until))
			release(f, h);
	f->releasing = false;
	rearm(f);
}

void fab_delayed_forget(struct fab_faults *f, const struct fab_port *port)
{
	struct fab_delayed *h, *tmp;

	list_for_each_entry_safe(h, tmp, &f->holds, node) {
		if (h->step.from_port != port && h->step.to_port != port)
			continue;
		f->num_reordered -= h->rule != 0;
		drop(f, h);
	}
	rearm(f);
}

static void reordered(struct rt_work *work)
{
	fab_delayed_release(container_of(work, struct fab_faults, reordered));
}

/* --- waiting for room -------------------------------------------------- */

void fab_delay_for_room(struct fab_port *in, const struct fab_packet *pkt)
{
	struct fab_faults *f = in->fab->faults;
	struct fab_delayed *h = f ? make(f, pkt) : NULL;

	if (!h) {
		fab_ag_port(in)->count.raw[AG_XMIT_DISCARDS]++;
		return;
	}
	h->step.from_port = in;
	h->due = rt_now(f->fab->rt);
	list_add_tail(&h->node, &in->waiting);
	if (list_empty(&in->waiting_node))
		list_add_tail(&in->waiting_node, &f->blocked);
	if (!rt_timer_armed(&f->retry))
		rt_timer_arm(&f->retry, mono_add(h->due, RETRY_NS));
}

/* deliver the packets that wait at a port, in order, as far as there is room */
static void try_port(struct fab_faults *f, struct fab_port *port, mono_t now)
{
	while (!list_empty(&port->waiting)) {
		struct fab_delayed *h = list_first_entry(&port->waiting, struct fab_delayed, node);

		if (fab_arrive(port, &h->pkt) == -EAGAIN) {
			if (now.ns - h->due.ns < FAB_HOQ_NS)
				return;
			fab_ag_port(port)->count.raw[AG_XMIT_DISCARDS]++;
			fab_ag_port(port)->count.raw[AG_DISCARD_SW_HOQ]++;
		}
		drop(f, h);
	}
	list_del_init(&port->waiting_node);
}

static void retry(struct rt_timer *timer)
{
	struct fab_faults *f = container_of(timer, struct fab_faults, retry);
	mono_t now = rt_now(f->fab->rt);
	struct fab_port *port, *tmp;

	list_for_each_entry_safe(port, tmp, &f->blocked, waiting_node)
		try_port(f, port, now);
	if (!list_empty(&f->blocked))
		rt_timer_arm(timer, mono_add(now, RETRY_NS));
}

/* --- coming and going -------------------------------------------------- */

void fab_delayed_init(struct fab_faults *f)
{
	INIT_LIST_HEAD(&f->holds);
	INIT_LIST_HEAD(&f->blocked);
	rt_timer_init(f->fab->rt, &f->due, due);
	rt_timer_init(f->fab->rt, &f->retry, retry);
	rt_work_init(&f->reordered, reordered);
}

void fab_delayed_free(struct fab_faults *f)
{
	struct fab_port *port, *tmp;

	rt_timer_disarm(&f->due);
	rt_timer_disarm(&f->retry);
	rt_work_cancel(&f->reordered);
	while (!list_empty(&f->holds))
		drop(f, list_first_entry(&f->holds, struct fab_delayed, node));
	list_for_each_entry_safe(port, tmp, &f->blocked, waiting_node) {
		while (!list_empty(&port->waiting))
			drop(f, list_first_entry(&port->waiting, struct fab_delayed, node));
		list_del_init(&port->waiting_node);
	}
}
