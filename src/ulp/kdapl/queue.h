/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What kDAPL remembers in order: the events of an EVD, and the DTOs that are posted.
 * Pure.
 *
 * An event is *quiet* when no upcall is made for it alone: of a DTO that was posted with
 * DAT_COMPLETION_UNSIGNALLED_FLAG. Upcalls begin when an event that is not quiet is
 * queued, and go on until the queue is empty.
 */
#ifndef ULP_KDAPL_QUEUE_H
#define ULP_KDAPL_QUEUE_H

#include <dat/kdat.h>
#include <stdbool.h>

struct kd_event {
	DAT_EVENT event;
	bool quiet;
};

/** struct kd_events - @loud: how many of @count are not quiet */
struct kd_events {
	struct kd_event *slot;
	DAT_UINT32 size, first, count, loud;
};

/** kd_events_init() - @slot: @size of them, the caller's */
void kd_events_init(struct kd_events *q, struct kd_event *slot, DAT_UINT32 size);
/** kd_events_push() - false: there is no room */
bool kd_events_push(struct kd_events *q, const DAT_EVENT *event, bool quiet);
/** kd_events_pop() - false: it is empty */
bool kd_events_pop(struct kd_events *q, DAT_EVENT *event);
/** kd_events_move() - to other memory with room for as many: what @q used is the caller's
 * again */
struct kd_event *kd_events_move(struct kd_events *q, struct kd_event *slot,
				DAT_UINT32 size);

enum kd_op { KD_SEND, KD_RECV, KD_WRITE, KD_READ, KD_BIND, KD_DRAIN };

/** struct kd_dto - a request or receive that is posted */
struct kd_dto {
	DAT_CONTEXT cookie;
	DAT_VLEN length; /* bytes that it moves; of a receive, the completion tells */
	DAT_HANDLE rmr;	 /* of KD_BIND */
	enum kd_op op;
	bool quiet;
};

/**
 * struct kd_dtos - those of one work queue, by their number. They complete in order, and
 * those that complete without an event, with the next that has one
 */
struct kd_dtos {
	struct kd_dto *slot;
	DAT_UINT32 size, head, tail; /* head: the oldest that is posted; tail: the next */
};

void kd_dtos_init(struct kd_dtos *q, struct kd_dto *slot, DAT_UINT32 size);
/** kd_dtos_next() - where the next is to be written; NULL: the queue is full. It is
 * posted by kd_dtos_posted(), which returns its number */
struct kd_dto *kd_dtos_next(struct kd_dtos *q);
DAT_UINT32 kd_dtos_posted(struct kd_dtos *q);
/** kd_dtos_done() - number @seq and all before it are complete. Return: it, until the
 * next is posted; NULL: there is none of this number */
const struct kd_dto *kd_dtos_done(struct kd_dtos *q, DAT_UINT32 seq);
static inline DAT_UINT32 kd_dtos_count(const struct kd_dtos *q)
{
	return q->tail - q->head;
}

/** kd_state_subtype() - of DAT_INVALID_STATE: which state an EP is in */
DAT_RETURN_SUBTYPE kd_state_subtype(DAT_EP_STATE state);
/** kd_state_configured() - @state of an EP whose PZ and EVDs are known now */
DAT_EP_STATE kd_state_configured(DAT_EP_STATE state);
/** kd_state_unconfigured() - the inverse: of one for which something is missing */
DAT_EP_STATE kd_state_unconfigured(DAT_EP_STATE state);

#endif
