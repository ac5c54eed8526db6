/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Queues of events and DTOs, and the names of an EP's states: pure. */
#include "ulp/kdapl/queue.h"

/* --- events --- */

void kd_events_init(struct kd_events *q, struct kd_event *slot, DAT_UINT32 size)
{
	*q = (struct kd_events){.slot = slot, .size = size};
}

bool kd_events_push(struct kd_events *q, const DAT_EVENT *event, bool quiet)
{
	if (q->count == q->size)
		return false;
	q->slot[(q->first + q->count++) % q->size] =
		(struct kd_event){.event = *event, .quiet = quiet};
	q->loud += !quiet;
	return true;
}

bool kd_events_pop(struct kd_events *q, DAT_EVENT *event)
{
	const struct kd_event *e = &q->slot[q->first];

	if (!q->count)
		return false;
	*event = e->event;
	q->loud -= !e->quiet;
	q->first = (q->first + 1) % q->size;
	q->count--;
	return true;
}

struct kd_event *kd_events_move(struct kd_events *q, struct kd_event *slot,
				DAT_UINT32 size)
{
	struct kd_event *old = q->slot;

	for (DAT_UINT32 i = 0; i < q->count; i++)
		slot[i] = old[(q->first + i) % q->size];
	q->slot = slot;
	q->size = size;
	q->first = 0;
	return old;
}

/* --- DTOs --- */

void kd_dtos_init(struct kd_dtos *q, struct kd_dto *slot, DAT_UINT32 size)
{
	*q = (struct kd_dtos){.slot = slot, .size = size};
}

struct kd_dto *kd_dtos_next(struct kd_dtos *q)
{
	return kd_dtos_count(q) < q->size ? &q->slot[q->tail % q->size] : NULL;
}

DAT_UINT32 kd_dtos_posted(struct kd_dtos *q)
{
	return q->tail++;
}

const struct kd_dto *kd_dtos_done(struct kd_dtos *q, DAT_UINT32 seq)
{
	if (seq - q->head >= kd_dtos_count(q))
		return NULL;
	q->head = seq + 1;
	return &q->slot[seq % q->size];
}

/* --- states --- */

DAT_RETURN_SUBTYPE kd_state_subtype(DAT_EP_STATE state)
{
	static const DAT_RETURN_SUBTYPE subtype[] = {
		[DAT_EP_STATE_UNCONNECTED] = DAT_INVALID_STATE_EP_UNCONNECTED,
		[DAT_EP_STATE_UNCONFIGURED_UNCONNECTED] =
			DAT_INVALID_STATE_EP_UNCONFIGURED,
		[DAT_EP_STATE_RESERVED] = DAT_INVALID_STATE_EP_RESERVED,
		[DAT_EP_STATE_UNCONFIGURED_RESERVED] =
			DAT_INVALID_STATE_EP_UNCONFRESERVED,
		[DAT_EP_STATE_PASSIVE_CONNECTION_PENDING] =
			DAT_INVALID_STATE_EP_PASSCONNPENDING,
		[DAT_EP_STATE_UNCONFIGURED_PASSIVE] = DAT_INVALID_STATE_EP_UNCONFPASSIVE,
		[DAT_EP_STATE_ACTIVE_CONNECTION_PENDING] =
			DAT_INVALID_STATE_EP_ACTCONNPENDING,
		[DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING] =
			DAT_INVALID_STATE_EP_TENTCONNPENDING,
		[DAT_EP_STATE_UNCONFIGURED_TENTATIVE] =
			DAT_INVALID_STATE_EP_UNCONFTENTATIVE,
		[DAT_EP_STATE_CONNECTED] = DAT_INVALID_STATE_EP_CONNECTED,
		[DAT_EP_STATE_DISCONNECT_PENDING] = DAT_INVALID_STATE_EP_DISCPENDING,
		[DAT_EP_STATE_DISCONNECTED] = DAT_INVALID_STATE_EP_DISCONNECTED,
		[DAT_EP_STATE_COMPLETION_PENDING] = DAT_INVALID_STATE_EP_COMPLPENDING,
	};

	return subtype[state];
}

static const struct {
	DAT_EP_STATE configured, unconfigured;
} pairs[] = {
	{DAT_EP_STATE_UNCONNECTED, DAT_EP_STATE_UNCONFIGURED_UNCONNECTED},
	{DAT_EP_STATE_RESERVED, DAT_EP_STATE_UNCONFIGURED_RESERVED},
	{DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, DAT_EP_STATE_UNCONFIGURED_PASSIVE},
	{DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING, DAT_EP_STATE_UNCONFIGURED_TENTATIVE},
};

DAT_EP_STATE kd_state_configured(DAT_EP_STATE state)
{
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (pairs[i].unconfigured == state)
			return pairs[i].configured;
	return state;
}

DAT_EP_STATE kd_state_unconfigured(DAT_EP_STATE state)
{
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (pairs[i].configured == state)
			return pairs[i].unconfigured;
	return state;
}
