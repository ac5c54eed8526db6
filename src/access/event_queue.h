/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Events of a session that its program has not taken yet, the oldest first. A socket has one message for each,
 * so that the program can poll it; those for which it has no room are sent when it has. An event
 * stays in the queue after its message was sent, until it leaves: the program has taken it, or its id goes.
 */
#ifndef SOFTIB_ACCESS_EVENT_QUEUE_H
#define SOFTIB_ACCESS_EVENT_QUEUE_H

#include "base/list.h"
#include "runtime/posix/rt_posix.h"

#define EVENT_MESSAGE_MAX 2048

/** struct queued_event - embedded in an event of an endpoint. @number: of its message, if that was sent */
struct queued_event {
	struct list_head node;
	bool sent;
	uint32_t number;
};

struct event_queue {
	struct rt *rt;
	struct rt_io *io; /* of the socket. Its handler calls event_queue_flush() when there is room */
	int fd;
	size_t (*put)(struct event_queue *queue, struct queued_event *event, void *message);
	struct list_head sent, waiting; /* struct queued_event: those whose message was sent, and the later ones */
	struct rt_work send;
	uint32_t last_sent; /* number of the last message */
};

/**
 * event_queue_init() - make an empty queue
 * @fd: the socket; @io: its watch, which need not be initialised yet
 * @put: writes the message of an event, whose number is set, to @message, of EVENT_MESSAGE_MAX.
 *	 Return: its length. It is called again if the socket has no room
 */
void event_queue_init(struct event_queue *queue, struct rt *rt, int fd, struct rt_io *io,
		      size_t (*put)(struct event_queue *queue, struct queued_event *event, void *message));
/** event_queue_end() - send nothing any more. The events remain */
void event_queue_end(struct event_queue *queue);
/** event_queue_add() - append an event, whose message is sent in the next turn of the loop */
void event_queue_add(struct event_queue *queue, struct queued_event *event);
/** event_queue_first() - Return: the oldest event; NULL: there is none */
struct queued_event *event_queue_first(const struct event_queue *queue);
/** event_queue_leave() - remove an event from its queue. Return: 1: its message was sent; 0 */
uint32_t event_queue_leave(struct queued_event *event);
/** event_queue_flush() - send the messages that were not sent yet, as far as the socket has room */
void event_queue_flush(struct event_queue *queue);

#endif
