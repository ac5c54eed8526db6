/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Events of a session: queued, sent to the program as messages, and kept until the program has taken them. */
#include "access/event_queue.h"

#include <sys/socket.h>

#define BATCH 8 /* events that are sent by one system call */

static void send_in_turn(struct rt_work *work)
{
	event_queue_flush(container_of(work, struct event_queue, send));
}

void event_queue_init(struct event_queue *q, struct rt *rt, int fd, struct rt_io *io,
		      size_t (*put)(struct event_queue *queue, struct queued_event *event, void *message))
{
	*q = (struct event_queue){.rt = rt, .io = io, .fd = fd, .put = put};
	INIT_LIST_HEAD(&q->sent);
	INIT_LIST_HEAD(&q->waiting);
	rt_work_init(&q->send, send_in_turn);
}

void event_queue_end(struct event_queue *q)
{
	rt_work_cancel(&q->send);
}

/* Send the first events that wait. Return: how many were sent, at most BATCH */
static unsigned int send_events(struct event_queue *q)
{
	_Alignas(8) uint8_t out[BATCH][EVENT_MESSAGE_MAX];
	struct mmsghdr messages[BATCH] = {0};
	struct iovec parts[BATCH];
	struct queued_event *event;
	unsigned int n = 0;
	int sent;

	list_for_each_entry(event, &q->waiting, node) {
		if (n == BATCH)
			break;
		event->number = q->last_sent + 1 + n;
		parts[n] = (struct iovec){out[n], q->put(q, event, out[n])};
		messages[n].msg_hdr = (struct msghdr){.msg_iov = &parts[n], .msg_iovlen = 1};
		n++;
	}
	sent = sendmmsg(q->fd, messages, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	return sent > 0 ? (unsigned int)sent : 0;
}

void event_queue_flush(struct event_queue *q)
{
	struct queued_event *event;
	unsigned int n;

	while (!list_empty(&q->waiting) && (n = send_events(q)))
		for (; n; n--) {
			event = list_first_entry(&q->waiting, struct queued_event, node);
			event->sent = true;
			q->last_sent++;
			list_del(&event->node);
			list_add_tail(&event->node, &q->sent);
		}
	rt_io_watch(q->io, true, !list_empty(&q->waiting));
}

/* The message is made in the next turn, from the state in which the handler of the event leaves the id. */
void event_queue_add(struct event_queue *q, struct queued_event *event)
{
	event->sent = false;
	if (list_empty(&q->waiting)) /* else the socket is full */
		rt_work_queue(q->rt, &q->send);
	list_add_tail(&event->node, &q->waiting);
}

struct queued_event *event_queue_first(const struct event_queue *q)
{
	const struct list_head *oldest = list_empty(&q->sent) ? &q->waiting : &q->sent;

	return list_empty(oldest) ? NULL : list_first_entry(oldest, struct queued_event, node);
}

uint32_t event_queue_leave(struct queued_event *event)
{
	list_del(&event->node);
	return event->sent;
}
