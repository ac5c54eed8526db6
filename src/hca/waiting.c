/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets of the kernel engine for which the destination has no room. Each destination, which
 * is a QP and a LID, has its own queue, so a program that does not read its answers delays
 * only these. A packet waits for the head-of-queue lifetime (18.2.5.4). There are up to
 * HCA_WAITING_QUEUES queues of up to HCA_WAITING_EACH packets; a packet that exceeds a limit is
 * discarded, as a port would discard it.
 */
#include "hca/private.h"

struct hca_queue {
	struct list_head node;	 /* of hca->waiting, the oldest first */
	struct list_head frames; /* struct hca_frame, never empty */
	unsigned num_frames;
	unsigned port_num;
	uint16_t dlid;
	uint32_t qpn;
};

/* Packets whose destination cannot be decoded share one queue. */
static void read_destination(const struct hca_frame *f, struct hca_queue *to)
{
	struct wire_packet pkt = {0};

	wire_packet_decode(f->bytes, f->len, &pkt);
	to->port_num = f->port_num;
	to->dlid = pkt.lrh.dlid;
	to->qpn = pkt.bth.dest_qpn;
}

static struct hca_queue *find(struct hca *hca, const struct hca_queue *to)
{
	struct hca_queue *q;

	list_for_each_entry(q, &hca->waiting, node)
		if (q->dlid == to->dlid && q->qpn == to->qpn && q->port_num == to->port_num)
			return q;
	return NULL;
}

static void drop_first(struct hca *hca, struct hca_queue *q)
{
	struct hca_frame *f = list_first_entry(&q->frames, struct hca_frame, node);

	list_del(&f->node);
	rt_free(f);
	if (--q->num_frames)
		return;
	list_del(&q->node);
	hca->num_waiting--;
	rt_free(q);
}

static void discard(struct hca *hca, struct hca_frame *f)
{
	fab_discard(hca->fab, hca->node, (int)f->port_num);
	rt_free(f);
}

static void discard_queue(struct hca *hca, struct hca_queue *q)
{
	for (unsigned n = q->num_frames; n; n--) {
		fab_discard(hca->fab, hca->node, (int)q->port_num);
		drop_first(hca, q);
	}
}

/* Return: a new queue; NULL no memory */
static struct hca_queue *begin(struct hca *hca, const struct hca_queue *to)
{
	struct hca_queue *q = rt_zalloc(sizeof(*q));

	if (!q)
		return NULL;
	if (!hca->num_waiting) {
		hca->waiting_ns = FAB_RETRY_MIN_NS;
		hca->waiting_due = mono_add(rt_now(hca->rt), hca->waiting_ns);
	}
	if (hca->num_waiting == HCA_WAITING_QUEUES) /* too many destinations: discard the oldest queue */
		discard_queue(hca, list_first_entry(&hca->waiting, struct hca_queue, node));
	*q = *to;
	INIT_LIST_HEAD(&q->frames);
	list_add_tail(&q->node, &hca->waiting);
	hca->num_waiting++;
	return q;
}

static int offer(struct hca *hca, const struct hca_frame *f)
{
	struct fab_packet pkt;
	int ret = fab_packet_decode(&pkt, f->bytes, f->len);

	pkt.source = 1 + (uint32_t)hca->node;
	return ret ? ret : fab_send(hca->fab, hca->node, (int)f->port_num, &pkt);
}

/* Try to send a frame. Return: true if it has left: another kernel engine owns it now, or it was
 * freed */
static bool pass_on(struct hca *hca, struct hca_frame *f)
{
	struct hca_set *set = hca->set;
	bool kept, waits;

	set->passing = f;
	waits = offer(hca, f) == -EAGAIN;
	kept = !set->passing;
	set->passing = NULL;
	if (!kept && !waits)
		rt_free(f);
	return kept || !waits;
}

/* Return: true: another kernel engine keeps it */
static bool pass_train(struct hca *hca, struct hca_frame *f)
{
	struct fab_train train = {.bytes = f->bytes, .len = f->len,
				  .packets = hca_frame_packets(f)};
	struct fab_packet pkt;
	int ret;

	/* LRH:PktLen of each packet counts its ICRC */
	train.dwords = (uint32_t)(f->len + train.packets * WIRE_ICRC_BYTES) / 4;
	if (!list_empty(&hca->waiting) || fab_packet_decode(&pkt, f->bytes, f->each))
		return false;
	pkt.source = 1 + (uint32_t)hca->node;
	hca->set->passing = f;
	ret = fab_send_train(hca->fab, hca->node, (int)f->port_num, &pkt, &train);
	hca->set->passing = NULL;
	return !ret;
}

static void send_packet(struct hca *hca, struct hca_frame *f)
{
	struct hca_queue *q = NULL, to = {0};

	if (!list_empty(&hca->waiting)) {
		read_destination(f, &to);
		q = find(hca, &to);
	}
	if (!q && pass_on(hca, f))
		return;
	if (!q) {
		read_destination(f, &to);
		q = begin(hca, &to);
	}
	if (!q || q->num_frames == HCA_WAITING_EACH) {
		discard(hca, f);
		return;
	}
	f->since = rt_now(hca->rt);
	list_add_tail(&f->node, &q->frames);
	q->num_frames++;
}

/* Each packet of the train leaves, waits or is discarded by itself. */
static void take_apart(struct hca *hca, struct hca_frame *train)
{
	for (size_t at = 0; at < train->len; at += train->each) {
		struct hca_frame *f = hca_frame_copy(train->bytes + at,
						     MIN(train->each, train->len - at));

		if (!f)
			break; /* datagrams may get lost */
		f->port_num = train->port_num;
		f->ip_checked = train->ip_checked;
		send_packet(hca, f);
	}
	rt_free(train);
}

void hca_waiting_send(struct hca *hca, struct hca_frame *f)
{
	if (likely(!f->each))
		send_packet(hca, f);
	else if (!pass_train(hca, f))
		take_apart(hca, f);
}

/* Return: true if any packet has left */
static bool retry_queue(struct hca *hca, struct hca_queue *q)
{
	const mono_t now = rt_now(hca->rt);
	bool sent = false;

	for (unsigned n = q->num_frames; n; n--) {
		struct hca_frame *f = list_first_entry(&q->frames, struct hca_frame, node);

		if (now.ns - f->since.ns >= FAB_HOQ_NS)
			fab_discard(hca->fab, hca->node, (int)f->port_num);
		else if (offer(hca, f) == -EAGAIN)
			break;
		else
			sent = true;
		drop_first(hca, q); /* frees @q with its last packet */
	}
	return sent;
}

void hca_waiting_retry(struct hca *hca)
{
	struct hca_queue *q, *tmp;
	bool sent = false;

	if (mono_before(rt_now(hca->rt), hca->waiting_due))
		return;
	list_for_each_entry_safe(q, tmp, &hca->waiting, node)
		sent |= retry_queue(hca, q);
	hca->waiting_ns = sent ? FAB_RETRY_MIN_NS : MIN(2 * hca->waiting_ns, FAB_RETRY_MAX_NS);
	hca->waiting_due = list_empty(&hca->waiting) ?
				   MONO_NEVER :
				   mono_add(rt_now(hca->rt), hca->waiting_ns);
}

void hca_waiting_drop(struct hca *hca)
{
	while (!list_empty(&hca->waiting)) {
		struct hca_queue *q = list_first_entry(&hca->waiting, struct hca_queue, node);

		for (unsigned n = q->num_frames; n; n--)
			drop_first(hca, q);
	}
}
