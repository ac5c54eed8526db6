/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The parts of the ucm endpoint: sessions and ids (ucm.c), commands (ucm_cmd.c), and events (ucm_event.c).
 * As in the rdma_cm endpoint, "news" is an event for the program, as opposed to struct ib_cm_event. */
#ifndef SOFTIB_ACCESS_UCM_PRIVATE_H
#define SOFTIB_ACCESS_UCM_PRIVATE_H

#include <string.h>

#include "abi/ucm.h"
#include "access/devfile.h"
#include "access/ucm.h"
#include "rdma/ib_cm.h"

#define UCM_IDS_MAX  65536 /* ids of one session, those of requests included */
#define UCM_BACKLOG  1024  /* requests that wait for the program, for each listener */
#define UCM_ID_BYTES 2048  /* memory that is charged for one id, without its events */
#define UCM_DATA_MAX 224   /* most private data of a message (12.6) */
#define UCM_INFO_MAX 72	   /* most additional information */

/** struct ucm_session - one open device file. Its queue has struct ucm_event
 *  @device: NULL: not open yet, or the adapter was removed */
struct ucm_session {
	struct devfile file;
	struct ib_device *device;
	struct list_head ids; /* struct ucm_id */
	unsigned int num_ids;
};

/** struct ucm_id - an id of a program, or of a request that the program has not taken yet
 *  @uid: the program's name for it; 0 of a request before SEND_REP; @cm_id: NULL: the adapter was removed */
struct ucm_id {
	struct list_head node;
	struct list_head hash_node;
	struct ucm_session *session;
	struct list_head events;   /* struct ucm_event: of this id, the oldest first */
	struct ucm_event *request; /* the queued event that reports this id; NULL */
	struct ib_cm_id *cm_id;
	struct quota_node *charged; /* the node whose quota its memory counts against */
	u32 number;
	u64 uid;
	__be64 service_mask; /* 0: it neither listens nor has a peer */
	u32 events_reported;
	unsigned int waiting; /* of a listener: queued events with a request */
};

/** struct ucm_event - an event, in the queue of its session and in the list of its id
 *  @request: the new id of a REQ or SIDR_REQ, which is an event of the listener @id; NULL */
struct ucm_event {
	struct queued_event queued;
	struct list_head of_id;
	struct ucm_id *id, *request;
	struct quota_node *charged;
	struct abi_ucm_event news;
	u8 data[UCM_DATA_MAX], info[UCM_INFO_MAX];
};

/* --- ucm.c --- */

/** ucm_id_add() - Return: a new id without a cm_id; NULL: the session has too many, or there is no memory */
struct ucm_id *ucm_id_add(struct ucm_session *session, u64 uid);
/** ucm_id_find() - Return: the id of @session with this number; NULL: there is none, or it is another's */
struct ucm_id *ucm_id_find(struct ucm_session *session, u32 number);
/** ucm_id_drop() - destroy an id, its events, and the ids that only these report
 *  Return: the number of these events whose message was sent */
u32 ucm_id_drop(struct ucm_id *id);

/* --- ucm_cmd.c --- */

/**
 * ucm_command() - perform a command, as write() to the device file does
 * @in: the message (abi/ucm.h) of @bytes
 * @out: room for DEVFILE_RESPONSE_MAX; @out_bytes: set to the length of the response
 * Return: 0; -EINVAL: unknown, malformed, or refused by the CM; -ENOENT: the session has no such id;
 * -ENOSPC: no room for the response; -ENODEV; -ENOMEM; -EAGAIN: there is no event
 */
int ucm_command(struct ucm_session *session, const void *in, size_t bytes, void *out,
		size_t *out_bytes);

/* --- ucm_event.c --- */

int ucm_on_event(struct ib_cm_id *cm_id, const struct ib_cm_event *event);
/** ucm_announce() - write the message that announces an event */
size_t ucm_announce(struct event_queue *queue, struct queued_event *event, void *message);
/** ucm_event_taken() - the program has @event, the oldest one */
void ucm_event_taken(struct ucm_event *event);
/** ucm_events_drop() - drop the events of @id and the one that reports it. Return: as ucm_id_drop() */
u32 ucm_events_drop(struct ucm_id *id);

#endif
