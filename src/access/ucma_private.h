/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The parts of the rdma_cm endpoint: sessions (ucma.c), commands (ucma_cmd.c), queries about an id
 * (ucma_query.c) and their answers in advance (ucma_ahead.c), multicast memberships (ucma_mcast.c),
 * and events (ucma_event.c). A name with "news" in it is about events for the program, as opposed to
 * those of the core (struct rdma_cm_event). */
#ifndef SOFTIB_ACCESS_UCMA_PRIVATE_H
#define SOFTIB_ACCESS_UCMA_PRIVATE_H

#include <string.h>

#include "abi/ahead.h"
#include "abi/cm_event.h"
#include "access/devfile.h"
#include "access/ucma.h"
#include "rdma/rdma_cm.h"

#define UCMA_IDS_MAX	65536 /* ids of one session; RDMA_USER_CM_CMD_CREATE_ID fails beyond */
#define UCMA_ID_BYTES	2048  /* memory that is charged for one id, without its events */
#define UCMA_GRANT_MAX	16    /* ids that a session is granted ahead */
#define UCMA_MCASTS_MAX 8192  /* memberships of one session, as many as an adapter has groups */

/** struct ucma_session - one open device file, which is one event channel. Its queue has struct ucma_event */
struct ucma_session {
	struct devfile file;
	char node_name[ABI_NAME_BYTES];
	struct list_head ids;	/* struct ucma_id */
	struct list_head granted; /* struct ucma_id, by their numbers: the program may create them by telling */
	unsigned int num_ids, num_mcasts; /* num_ids: with those that are granted */
	unsigned int created; /* ids that the program has created so far */
};

/** struct ucma_id - an id of a program. @uid: the program's name for it; 0: the id belongs to a connect
 *  request that the program has not accepted yet, and no further events of it are reported
 *  @cm_id: NULL: there was no memory for it when the program told of the id, whose commands fail */
struct ucma_id {
	struct list_head node;
	struct list_head hash_node;
	struct ucma_session *session;
	struct list_head mcasts; /* struct ucma_mcast */
	struct list_head events; /* struct ucma_event: of this id, the oldest first */
	struct ucma_event *request; /* the queued CONNECT_REQUEST that reports this id; NULL */
	struct rdma_cm_id *cm_id;
	struct quota_node *charged; /* the node whose quota its memory counts against */
	u32 number;
	u64 uid;
	u32 events_reported;
};

/** struct ucma_mcast - a multicast membership of an id. Ids and memberships share one series of
 *  numbers */
struct ucma_mcast {
	struct list_head node;
	struct list_head hash_node;
	struct ucma_id *id;
	u32 number;
	u64 uid;
	u32 events_reported;
	struct sockaddr_storage addr;
};

/** struct ucma_event - an event, in the queue of its session and in the list of its id
 *  @request: the new id of a CONNECT_REQUEST, which is an event of the listener @id; @mcast: the
 *  membership of @id that the event is about, or NULL */
struct ucma_event {
	struct queued_event queued;
	struct list_head of_id;
	struct ucma_id *id, *request;
	struct ucma_mcast *mcast;
	struct quota_node *charged; /* the node whose quota its memory counts against */
	struct rdma_ucm_event_resp resp;
};

/* --- ucma.c --- */

struct ucma_id *ucma_id_add(struct ucma_session *session, u64 uid);
/** ucma_ids_grant() - grant ids to a program that has created as many: it will create more of them
 *  @first: set to the number of the first one. Return: how many; 0: none */
u32 ucma_ids_grant(struct ucma_session *session, u32 *first);
/** ucma_ids_take_back() - end the grant */
void ucma_ids_take_back(struct ucma_session *session);
/** ucma_id_take() - Return: the next id that was granted, if it has this number; NULL */
struct ucma_id *ucma_id_take(struct ucma_session *session, u32 number, u64 uid);
/** ucma_id_find() - Return: the id of @session with this number; NULL */
struct ucma_id *ucma_id_find(struct ucma_session *session, u32 number);
/** ucma_id_of_process() - Return: the id with this number of any session of the process of @session;
 *  NULL */
struct ucma_id *ucma_id_of_process(struct ucma_session *session, u32 number);
/** ucma_id_move() - move an id and its events to another session
 *  Return: the number of these events that were sent to the old session */
u32 ucma_id_move(struct ucma_id *id, struct ucma_session *to);
/** ucma_id_drop() - destroy an id and its events
 *  Return: the number of these events that were sent to the program */
u32 ucma_id_drop(struct ucma_id *id);
u32 ucma_next_number(struct ucma_session *session);
/** ucma_mcasts() - Return: the bucket of the endpoint's hash of memberships for this number */
struct list_head *ucma_mcasts(const struct ucma_session *session, u32 number);
struct rt *ucma_rt(const struct ucma_session *session);
const struct ucma_page *ucma_page_of(const struct ucma_session *session);

/* --- ucma_cmd.c --- */

#define UCMA_RESPONSE_MAX DEVFILE_RESPONSE_MAX
/**
 * ucma_command() - perform a command, as write() to the device file does
 * @in: struct rdma_ucm_cmd_hdr and the command, @bytes together
 * @out: room for UCMA_RESPONSE_MAX; @out_bytes: set to the length of the response
 * Return: 0; -errno; DEVFILE_NO_ANSWER: the program does not wait for one
 */
int ucma_command(struct ucma_session *session, const void *in, size_t bytes, void *out,
		 size_t *out_bytes);

/** ucma_ask() - make the response to RDMA_USER_CM_CMD_QUERY or RDMA_USER_CM_CMD_INIT_QP_ATTR
 *  @option: the option of the query, or the state of the QP
 *  @out: room for UCMA_RESPONSE_MAX. Return: 0; -errno */
int ucma_ask(struct ucma_id *id, u32 cmd, u32 option, void *out, size_t *out_bytes);

/** struct ucma_call - a command, and the place for its response */
struct ucma_call {
	struct ucma_session *session;
	bool told; /* the program does not wait for the response */
	struct ucma_id *id; /* the id that the command names, if its row of the table has one */
	const void *in;	    /* the command's struct, of at least the length in its row */
	size_t in_bytes;
	void *out;
	size_t *out_bytes, room;
};

/** ucma_respond() - respond by as much of @resp as the program has room for */
static inline void ucma_respond(struct ucma_call *call, const void *resp, size_t bytes)
{
	*call->out_bytes = MIN(bytes, call->room);
	memcpy(call->out, resp, *call->out_bytes);
}

/* --- ucma_ahead.c --- */

/** struct ucma_page - the change counters of an endpoint's ids, in shared memory (abi/ahead.h) */
struct ucma_page {
	struct rt *rt;
	struct abi_ahead_page *shared;
	int fd; /* the memfd, which programs map */
};

/** ucma_page_create() - make the page. Until ucma_page_destroy(), a change of a device counts as a change
 *  of all ids. Return: 0; -errno */
int ucma_page_create(struct ucma_page *page, struct rt *rt);
void ucma_page_destroy(struct ucma_page *page);
/** ucma_changed() - invalidate the answers about the id @number that were given in advance */
void ucma_changed(const struct ucma_page *page, u32 number);
/** ucma_put_ahead() - give answers in advance to the queries about @id that librdmacm makes after an event
 *  of the type @event. Return: the length of struct abi_ahead and the answers; 0: there are none */
size_t ucma_put_ahead(const struct ucma_page *page, struct ucma_id *id, u32 event, void *to,
		      size_t room);

/* --- ucma_query.c --- */

/** ucma_query_route() - perform RDMA_USER_CM_CMD_QUERY_ROUTE: respond by IP addresses, GIDs and path
 *  Return: 0 */
int ucma_query_route(struct ucma_call *call);
/** ucma_query() - perform RDMA_USER_CM_CMD_QUERY: respond by one of these, in any address family
 *  Return: 0; -ENOSYS: the option is unknown */
int ucma_query(struct ucma_call *call);

/* --- ucma_mcast.c --- */

/** ucma_mcast_join() - begin to join the group of @addr, which has @bytes. @flags: RDMA_MC_JOIN_FLAG_...
 *  Return: 0, and *@out is the membership; -errno */
int ucma_mcast_join(struct ucma_id *id, u64 uid, const void *addr, size_t bytes,
		    u16 flags, struct ucma_mcast **out);
/** ucma_mcast_find() - Return: the membership of @session with this number; NULL */
struct ucma_mcast *ucma_mcast_find(struct ucma_session *session, u32 number);
/** ucma_mcast_leave() - leave the group, and drop the events of the membership. Return: as
 *  ucma_id_drop() */
u32 ucma_mcast_leave(struct ucma_mcast *mcast);

/* --- ucma_event.c --- */

int ucma_on_event(struct rdma_cm_id *cm_id, struct rdma_cm_event *event);
/** ucma_event_put() - write an event as struct abi_cm_event and answers in advance
 *  @out: room for UCMA_RESPONSE_MAX. Return: the length */
size_t ucma_event_put(struct event_queue *queue, struct queued_event *queued, void *out);
/** ucma_event_taken() - the program has the oldest event @event, which leaves the queue */
void ucma_event_taken(struct ucma_event *event);
/** ucma_event_find() - Return: the event of @session that was sent with this number; NULL: there is none
 *  among the oldest ones */
struct ucma_event *ucma_event_find(struct ucma_session *session, u32 number);
/** ucma_events_move() - move the events of @id to @to. Return: the number of events that were sent to the
 *  old session */
u32 ucma_events_move(struct ucma_id *id, struct ucma_session *to);
/** ucma_events_drop() - drop the events of @id or, if @mcast is not NULL, only those of this membership
 *  Return: the number of events that were sent */
u32 ucma_events_drop(struct ucma_id *id, const struct ucma_mcast *mcast);

#endif
