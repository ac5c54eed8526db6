/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * XRC targets that several programs share (IBA v1 annex A14). A packet is for the program whose
 * SRQ it names. The PSN that is expected and the other state of the responder are with one
 * program at a time, the holder; before a packet for another program is delivered, softibd asks
 * the holder for the state and gives it to that program (abi/target.h):
 *
 *   HELD       the holder has it; packets for the holder are delivered
 *   RELEASING  the holder was asked; every packet waits here, in order
 *   FREE       softibd has it; the next packet decides who is given it
 *
 * A packet that waits for the state is not left in the ring of its sender, because that could be a
 * deadlock: the sender may itself be the holder whose answer is needed, or a chain of senders may wait
 * for each other's targets, and the answer would be in the ring behind the packet. If the holder is
 * stopped and there is no room for further packets here, they are dropped, and RC retransmits them. A
 * packet that waits only for room in a program's ring stays in its sender's ring, as for any other QP.
 *
 * The state of a holder that dies is lost. Then the PSN of the next packet becomes the expected PSN.
 * Packets of a shared target never use lanes, so that softibd determines their order. None of this
 * applies while only one program has opened the domain.
 */
#include <string.h>

#include "hca/private.h"

/* limits on the packets that wait: of one target, as much as a sender's ring holds; of all
 * targets of an adapter */
#define TARGET_WAITING_BYTES  ((size_t)ABI_LINK_RING_BYTES)
#define ADAPTER_WAITING_BYTES (16 * TARGET_WAITING_BYTES)

#define EVENTS_OF_TARGETS                                                                          \
	(1u << IB_EVENT_COMM_EST | 1u << IB_EVENT_QP_REQ_ERR | 1u << IB_EVENT_QP_ACCESS_ERR |      \
	 1u << IB_EVENT_QP_FATAL | 1u << IB_EVENT_PATH_MIG | 1u << IB_EVENT_PATH_MIG_ERR)

/** struct hca_part - a program that has been told of a target */
struct hca_part {
	struct list_head node; /* in target.parts */
	struct hca_user *user;
	uint32_t serial; /* version of the attributes that it was told: hca_target.serial */
};

static void retry(struct rt_timer *timer);

void hca_target_init(struct hca *hca, struct hca_qp *qp)
{
	INIT_LIST_HEAD(&qp->target.parts);
	INIT_LIST_HEAD(&qp->target.waiting);
	rt_timer_init(hca->rt, &qp->target.retry, retry);
}

static bool is_target(const struct hca_qp *qp)
{
	return qp->ib.qp_type == IB_QPT_XRC_TGT;
}

bool hca_target_is_shared(const struct hca_qp *qp)
{
	return is_target(qp) && qp->ib.xrcd && qp->ib.xrcd->domain->is_shared;
}

static struct hca_part *find_part(const struct hca_qp *qp, const struct hca_user *user)
{
	struct hca_part *part;

	list_for_each_entry(part, &qp->target.parts, node)
		if (part->user == user)
			return part;
	return NULL;
}

bool hca_target_may_send(const struct hca_qp *qp, uint32_t owner)
{
	const struct hca_part *part;

	if (!hca_target_is_shared(qp))
		return false;
	list_for_each_entry(part, &qp->target.parts, node)
		if (part->user->owner == owner)
			return true;
	return false;
}

static void free_part(struct hca_part *part)
{
	list_del(&part->node);
	rt_free(part);
}

/* --- messages --- */

/* Send a message about the target to @user. Return: 0; -EAGAIN: its ring is full */
static int send_message(const struct hca_qp *qp, struct hca_user *user, enum abi_target_kind kind)
{
	struct abi_target_message message = {
		.mark = ABI_TARGET_MARK, .kind = (uint8_t)kind, .qpn = qp->ib.qp_num};

	return hca_user_deliver(user, &message, sizeof(message));
}

/* Record that @user has been told the attributes of version @serial. Return: NULL: no memory */
static struct hca_part *note_part(struct hca_qp *qp, struct hca_user *user, uint32_t serial)
{
	struct hca_part *part = find_part(qp, user);

	if (part)
		return part;
	part = rt_zalloc(sizeof(*part));
	if (!part)
		return NULL;
	part->user = user;
	part->serial = serial;
	list_add_tail(&part->node, &qp->target.parts);
	return part;
}

/* Give the state to @user, which becomes the holder. @epsn: PSN of the packet at hand, which
 * becomes the expected PSN if the state was lost */
static int give(struct hca_qp *qp, struct hca_user *user, uint32_t epsn)
{
	struct hca_target *t = &qp->target;
	struct hca_part *part = note_part(qp, user, t->serial - 1);
	struct abi_target_message message = {.mark = ABI_TARGET_MARK,
					     .kind = ABI_TARGET_TAKE,
					     .qpn = qp->ib.qp_num,
					     .xrcd = qp->ib.xrcd->domain->number,
					     .state = t->state};
	int ret;

	if (!part)
		return -EAGAIN;
	message.is_new = part->serial != t->serial;
	message.attr = hca_ibv_qp_attr(&qp->ib.attr);
	if (t->state.is_guess)
		message.state.epsn = epsn;
	ret = hca_user_deliver(user, &message, sizeof(message));
	if (ret)
		return ret;
	part->serial = t->serial;
	t->holder = user;
	return 0;
}

/* --- packets --- */

/* Return: the program whose SRQ @pkt names. If there is no such SRQ, the holder gets the packet
 * and refuses it; if the state is free, the program that created the target does. */
static struct hca_user *addressee(const struct hca_qp *qp, const struct wire_packet *pkt)
{
	struct hca *hca = hca_of(qp->ib.device);
	const struct hca_srq *srq = eng_table_get(&hca->xrc_srqs, pkt->xrc_srqn & 0xffffff);

	if (srq && srq->ib.xrcd && srq->ib.xrcd->domain == qp->ib.xrcd->domain)
		return srq->user;
	return qp->target.holder ? qp->target.holder : qp->user;
}

/* Deliver a packet if the state is free or with its addressee. Return: 0; -EINPROGRESS: the
 * holder has to release the state first; -EAGAIN: the ring of a program has no room */
static int offer(struct hca_qp *qp, const void *bytes, size_t len)
{
	struct hca_target *t = &qp->target;
	struct wire_packet packet;
	struct hca_user *to;
	int ret;

	if (!hca_qp_receives(qp) || wire_packet_decode(bytes, len, &packet) < 0)
		return 0;
	if (t->holder && t->holder->broken)
		hca_targets_leave(t->holder);
	to = addressee(qp, &packet);
	if (t->is_asked)
		return -EINPROGRESS;
	if (t->holder && t->holder != to) {
		/* a program that has been the holder from the start has set the attributes itself */
		t->is_asked = note_part(qp, t->holder, t->serial) &&
			      !send_message(qp, t->holder, ABI_TARGET_RELEASE);
		return t->is_asked ? -EINPROGRESS : -EAGAIN;
	}
	ret = t->holder ? 0 : give(qp, to, packet.bth.psn.v);
	return ret ? ret : hca_user_deliver(to, bytes, len);
}

static void free_waiting(struct hca_qp *qp, struct hca_frame *f)
{
	qp->target.waiting_bytes -= f->len;
	hca_of(qp->ib.device)->targets_waiting_bytes -= f->len;
	list_del(&f->node);
	rt_free(f);
}

static void drop_waiting(struct hca_qp *qp)
{
	while (!list_empty(&qp->target.waiting))
		free_waiting(qp, list_first_entry(&qp->target.waiting, struct hca_frame, node));
	rt_timer_disarm(&qp->target.retry);
}

/* Queue the packet here until the state is released. If there is no room, it is dropped. */
static void wait_here(struct hca_qp *qp, const struct fab_packet *pkt)
{
	struct hca *hca = hca_of(qp->ib.device);
	struct hca_target *t = &qp->target;
	struct hca_frame *f;

	if (t->waiting_bytes + pkt->len > TARGET_WAITING_BYTES ||
	    hca->targets_waiting_bytes + pkt->len > ADAPTER_WAITING_BYTES)
		return;
	f = rt_zalloc(sizeof(*f) + pkt->len);
	if (!f)
		return;
	f->len = pkt->len;
	memcpy(f->bytes, pkt->bytes, pkt->len);
	list_add_tail(&f->node, &t->waiting);
	t->waiting_bytes += f->len;
	hca->targets_waiting_bytes += f->len;
}

/* Deliver the packets that wait here, in order. Return: 0; the error of offer() for the first
 * packet that has to wait longer */
static int offer_waiting(struct hca_qp *qp)
{
	struct hca_target *t = &qp->target;

	while (!list_empty(&t->waiting)) {
		struct hca_frame *f = list_first_entry(&t->waiting, struct hca_frame, node);
		int ret = offer(qp, f->bytes, f->len);

		if (ret) {
			/* no event reports that a ring has room again, hence the timer */
			if (ret == -EAGAIN)
				rt_timer_arm(&t->retry, mono_add(rt_now(hca_of(qp->ib.device)->rt),
								 FAB_RETRY_MAX_NS));
			return ret;
		}
		free_waiting(qp, f);
	}
	return 0;
}

static void retry(struct rt_timer *timer)
{
	struct hca_target *t = container_of(timer, struct hca_target, retry);

	(void)offer_waiting(container_of(t, struct hca_qp, target));
}

int hca_target_deliver(struct hca_qp *qp, const struct fab_packet *pkt)
{
	int ret;

	if (!hca_target_is_shared(qp))
		return hca_user_deliver(qp->user, pkt->bytes, pkt->len);
	if (!(wire_opcodes[pkt->opcode].flags & WIRE_HAS_XRCETH))
		return 0;
	ret = offer_waiting(qp);
	ret = ret ? ret : offer(qp, pkt->bytes, pkt->len);
	if (ret != -EINPROGRESS)
		return ret;
	wait_here(qp, pkt);
	return 0;
}

/* --- messages from programs --- */

static void event(struct hca_qp *qp, const struct hca_user *from,
		  const struct abi_target_message *message)
{
	struct ib_event event = {.device = qp->ib.device,
				 .element.qp = &qp->ib,
				 .event = (enum ib_event_type)message->event};
	const struct hca_part *part;

	if (message->event >= 32 || !(EVENTS_OF_TARGETS & 1u << message->event))
		return;
	ib_dispatch_event(&event);
	if (!message->failed)
		return;
	qp->ib.state = IB_QPS_ERR;
	drop_waiting(qp);
	list_for_each_entry(part, &qp->target.parts, node)
		if (part->user != from)
			(void)send_message(qp, part->user, ABI_TARGET_FAILED);
}

void hca_target_message(struct hca_user *user, const void *bytes, size_t len)
{
	struct abi_target_message message;
	struct hca_target *t;
	struct hca_qp *qp;

	if (len != sizeof(message))
		return;
	memcpy(&message, bytes, sizeof(message));
	qp = eng_table_get(&user->hca->qps, message.qpn & 0xffffff);
	if (!qp || !is_target(qp) || qp->target.holder != user)
		return;
	t = &qp->target;
	if (message.kind == ABI_TARGET_EVENT) {
		event(qp, user, &message);
	} else if (message.kind == ABI_TARGET_RELEASED && t->is_asked) {
		t->state = message.state;
		t->state.is_guess = false;
		t->holder = NULL;
		t->is_asked = false;
		(void)offer_waiting(qp);
	}
}

/* --- changes --- */

void hca_target_modified(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct hca_target *t = &qp->target;
	const struct hca_part *part;

	if (!is_target(qp))
		return;
	t->serial++;
	if (!(mask & IBV_QP_STATE))
		return;
	if (!tp_state_receives(attr->qp_state) || attr->qp_state == IBV_QPS_RTR)
		drop_waiting(qp); /* packets of the connection that ends */
	if (attr->qp_state == IBV_QPS_RTR) {
		t->holder = hca_target_is_shared(qp) ? NULL : qp->user;
		t->is_asked = false;
		t->state = (struct abi_target_state){.epsn = attr->rq_psn};
	}
	if (attr->qp_state == IBV_QPS_ERR)
		list_for_each_entry(part, &t->parts, node)
			(void)send_message(qp, part->user, ABI_TARGET_FAILED);
}

/* The holder ends: its state is lost. Waiting packets are delivered to other programs afterwards. */
static void lose_state(struct hca_qp *qp)
{
	struct hca_target *t = &qp->target;

	t->holder = NULL;
	t->is_asked = false;
	t->state = (struct abi_target_state){.is_guess = true};
	if (!list_empty(&t->waiting))
		rt_timer_arm(&t->retry, rt_now(hca_of(qp->ib.device)->rt));
}

void hca_target_gone(struct hca_qp *qp)
{
	drop_waiting(qp);
	while (!list_empty(&qp->target.parts)) {
		struct hca_part *part =
			list_first_entry(&qp->target.parts, struct hca_part, node);

		(void)send_message(qp, part->user, ABI_TARGET_FORGET);
		free_part(part);
	}
}

void hca_targets_leave(struct hca_user *user)
{
	struct hca_qp *qp;

	list_for_each_entry(qp, &user->hca->user_qps, node) {
		struct hca_part *part = is_target(qp) ? find_part(qp, user) : NULL;

		if (is_target(qp) && qp->target.holder == user)
			lose_state(qp);
		if (part)
			free_part(part);
	}
}

void hca_inherit_qp(struct ib_qp *ibqp, struct ib_ucontext *to)
{
	struct hca_qp *qp = container_of(ibqp, struct hca_qp, ib);

	if (qp->target.holder == qp->user)
		note_part(qp, qp->user, qp->target.serial);
	qp->user = container_of(to, struct hca_user, ib);
}

/* The domain is shared from now on, so its targets must not use lanes. Make programs resolve
 * their flows again. */
void hca_xrcd_shared(struct ib_device *device)
{
	struct hca_qp *qp;
	struct hca *hca;

	list_for_each_entry(qp, &hca_of(device)->user_qps, node)
		if (hca_target_is_shared(qp) && qp->target.holder &&
		    !find_part(qp, qp->target.holder) &&
		    note_part(qp, qp->target.holder, qp->target.serial))
			(void)send_message(qp, qp->target.holder, ABI_TARGET_SHARED);
	list_for_each_entry(hca, &hca_of(device)->set->shared, shared_node)
		hca_route_moved(hca);
}
