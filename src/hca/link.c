/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The link between the kernel engine and the ports. Packets that the midlayer sends are queued. The
 * loop sends them, or lets them wait for room at their destination (waiting.c). Packets that arrive
 * for QP0 and QP1 are queued until the engine takes them. In each turn it takes at most as many as a
 * quiet port has receives posted (HCA_RX_TURN). The consumers of these packets run between two turns
 * and post new receives, so a burst of packets is delayed, but not lost. Nothing runs on the caller's
 * stack.
 */
#include <string.h>

#include "hca/private.h"

/* Return: room for the packet; NULL: there is no memory, and the packet stays in its send queue.
 * A frame that was reserved before and never committed, because its payload could not be read, is
 * replaced. */
static void *reserve(void *link, size_t each, size_t len)
{
	struct hca_set *set = ((struct hca *)link)->set;

	rt_free(set->reserved);
	set->reserved = rt_alloc(sizeof(*set->reserved) + len);
	if (!set->reserved)
		return NULL;
	set->reserved->each = each;
	set->reserved->taken = 0;
	set->reserved->ip_checked = false;
	return set->reserved->bytes;
}

static void *link_reserve(void *link, const struct wire_packet *pkt, unsigned port_num,
			  size_t len)
{
	return reserve(link, 0, len);
}

static void *link_reserve_train(void *link, size_t each, size_t len)
{
	return reserve(link, each < len ? each : 0, len);
}

static void link_checked(void *link)
{
	((struct hca *)link)->set->reserved->ip_checked = true;
}

static bool link_is_checked(void *link)
{
	return list_first_entry(&((struct hca *)link)->rx, struct hca_frame, node)->ip_checked;
}

static void link_commit(void *link, unsigned port_num, size_t len)
{
	struct hca *hca = link;
	struct hca_frame *f = hca->set->reserved;

	hca->set->reserved = NULL;
	f->len = len;
	f->port_num = port_num;
	list_add_tail(&f->node, &hca->tx);
}

static void link_flush(void *link)
{
	struct hca *hca = link;

	rt_work_queue(hca->rt, &hca->progress);
}

static const void *link_receive(void *link, size_t *len, unsigned *port_num)
{
	struct hca *hca = link;
	struct hca_frame *f;

	if (list_empty(&hca->rx) || hca->rx_turn == 0)
		return NULL;
	f = list_first_entry(&hca->rx, struct hca_frame, node);
	*len = f->len - f->taken;
	if (f->each)
		*len = MIN(*len, f->each);
	*port_num = f->port_num;
	return f->bytes + f->taken;
}

static void drop_first(struct list_head *queue)
{
	struct hca_frame *f = list_first_entry(queue, struct hca_frame, node);

	list_del(&f->node);
	rt_free(f);
}

static void link_release(void *link)
{
	struct hca *hca = link;
	struct hca_frame *f = list_first_entry(&hca->rx, struct hca_frame, node);

	f->taken += f->each;
	if (!f->each || f->taken >= f->len)
		drop_first(&hca->rx);
	hca->rx_len--;
	hca->rx_turn--;
}

const struct eng_link_ops hca_link_ops = {
	.reserve = link_reserve,
	.commit = link_commit,
	.flush = link_flush,
	.receive = link_receive,
	.release = link_release,
	.reserve_train = link_reserve_train,
	.checked = link_checked,
	.is_checked = link_is_checked,
};

struct hca_frame *hca_frame_copy(const void *bytes, size_t len)
{
	struct hca_frame *f = rt_alloc(sizeof(*f) + len);

	if (!f)
		return NULL;
	f->len = len;
	f->each = f->taken = 0;
	f->ip_checked = false;
	memcpy(f->bytes, bytes, len);
	return f;
}

/* Return: a frame with the packet, which the caller owns; NULL: no memory. If a kernel engine has
 * sent the packet, the first receiver takes its frame without a copy. Further members of a group
 * copy the packet, since that frame is not changed before the loop's next turn. */
static struct hca_frame *take_frame(struct hca_set *set, const void *bytes, size_t len)
{
	struct hca_frame *f = set->passing;

	if (f && bytes == f->bytes) {
		set->passing = NULL;
		return f;
	}
	return hca_frame_copy(bytes, len);
}

int hca_link_receive(struct hca *hca, unsigned port_num, const void *bytes, size_t len)
{
	struct hca_frame *f;

	if (hca->rx_len >= HCA_RX_QUEUE_MAX)
		return -EAGAIN;
	f = take_frame(hca->set, bytes, len);
	if (!f)
		return -EAGAIN;
	f->len = len;
	f->port_num = port_num;
	list_add_tail(&f->node, &hca->rx);
	hca->rx_len += hca_frame_packets(f);
	rt_work_queue(hca->rt, &hca->progress);
	return 0;
}

static void send_queued(struct hca *hca)
{
	while (!list_empty(&hca->tx)) {
		struct hca_frame *f = list_first_entry(&hca->tx, struct hca_frame, node);

		list_del(&f->node);
		hca_frame_address(hca, f->bytes, f->len);
		hca_waiting_send(hca, f);
	}
}

static void link_progress(struct rt_work *work)
{
	struct hca *hca = container_of(work, struct hca, progress);

	hca->rx_turn = HCA_RX_TURN;
	if (eng_tick(hca->engine))
		rt_work_queue(hca->rt, &hca->progress);
	hca_waiting_retry(hca);
	send_queued(hca);
	rt_timer_arm(&hca->retry, mono_min(hca->waiting_due, eng_expiry(hca->engine)));
	hca_users_flush(hca->set);
}

static void link_retry(struct rt_timer *timer)
{
	struct hca *hca = container_of(timer, struct hca, retry);

	rt_work_queue(hca->rt, &hca->progress);
}

void hca_link_init(struct hca *hca)
{
	INIT_LIST_HEAD(&hca->tx);
	INIT_LIST_HEAD(&hca->rx);
	INIT_LIST_HEAD(&hca->waiting);
	hca->waiting_due = MONO_NEVER;
	rt_work_init(&hca->progress, link_progress);
	rt_timer_init(hca->rt, &hca->retry, link_retry);
}

void hca_link_drain(struct hca *hca)
{
	rt_work_cancel(&hca->progress);
	rt_timer_disarm(&hca->retry);
	hca_waiting_drop(hca);
	while (!list_empty(&hca->tx))
		drop_first(&hca->tx);
	while (!list_empty(&hca->rx))
		drop_first(&hca->rx);
}
