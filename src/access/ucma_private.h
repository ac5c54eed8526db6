/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The rdma_cm endpoint's inside: sessions (ucma.c), commands (ucma_cmd.c), what a program asks
 * of an id (ucma_query.c) and is told ahead (ucma_ahead.c), multicast memberships (ucma_mcast.c), news (ucma_event.c). */
#ifndef SOFTIB_ACCESS_UCMA_PRIVATE_H
#define SOFTIB_ACCESS_UCMA_PRIVATE_H

#include <string.h>

#include "abi/ahead.h"
#include "abi/session.h"
#include "access/guest.h"
#include "access/listener.h"
#include "access/ucma.h"
#include "rdma/rdma_cm.h"

#define UCMA_IDS_MAX	65536 /* of one session: a program that makes more is refused */
#define UCMA_ID_BYTES	2048  /* what one takes, without its events */
#define UCMA_MCASTS_MAX 8192  /* as many groups as an adapter has */

/** struct ucma_session - one opening of the device file, which is one event channel.
 *  @unsent: news for which no byte could be sent yet */
struct ucma_session {
	struct list_head node;
	struct ucma *ucma;
	char node_name[ABI_NAME_BYTES];
	pid_t pid;	    /* of the process; 0: not known */
	char comm[RDMA_RESTRACK_COMM_BYTES];
	int fd, control_fd; /* news; commands: -1 before the opening message */
	struct rt_io news, control;
	struct guest guest;
	struct list_head ids;	/* struct ucma_id */
	struct list_head queue; /* struct ucma_event, the oldest first */
	unsigned int num_ids, num_mcasts, unsent;
};

/** struct ucma_id - an id of a program. @uid: the program's name for it; 0: of a request
 * that it has not accepted yet, and hears nothing more about */
struct ucma_id {
	struct list_head node;
	struct list_head hash_node;
	struct ucma_session *session;
	struct list_head mcasts; /* struct ucma_mcast */
	struct list_head events; /* struct ucma_event: of this id, the oldest first */
	struct ucma_event *request; /* by which the listener's program hears of this id; NULL */
	struct rdma_cm_id *cm_id;
	struct guest_node *charged; /* for its memory */
	u32 number;
	u64 uid;
	u32 events_reported;
};

/** struct ucma_mcast - a multicast membership of an id; numbers are of ids and
 *  memberships together */
struct ucma_mcast {
	struct list_head node;
	struct list_head hash_node;
	struct ucma_id *id;
	u32 number;
	u64 uid;
	u32 events_reported;
	struct sockaddr_storage addr;
};

/** struct ucma_event - in its session's queue, and among its id's. @request: of a
 *  CONNECT_REQUEST, which is news of the listener @id; @mcast: of a membership of @id, or NULL */
struct ucma_event {
	struct list_head node;
	struct list_head of_id;
	struct ucma_id *id, *request;
	struct ucma_mcast *mcast;
	struct guest_node *charged; /* for its memory */
	struct rdma_ucm_event_resp resp;
};

/* --- ucma.c --- */

struct ucma_id *ucma_id_add(struct ucma_session *session, u64 uid);
/** ucma_id_find() - an id of @session; NULL */
struct ucma_id *ucma_id_find(struct ucma_session *session, u32 number);
/** ucma_id_of_process() - an id of any session of @session's process; NULL */
struct ucma_id *ucma_id_of_process(struct ucma_session *session, u32 number);
/** ucma_id_move() - to another session, with its news. Return: bytes of news that were
 *  sent to the old one */
u32 ucma_id_move(struct ucma_id *id, struct ucma_session *to);
/** ucma_id_drop() - destroy it and its news. Return: bytes of news that were sent for it
 */
u32 ucma_id_drop(struct ucma_id *id);
u32 ucma_next_number(struct ucma_session *session);
/** ucma_mcasts() - the list of the endpoint's memberships that one with this number is in */
struct list_head *ucma_mcasts(const struct ucma_session *session, u32 number);
struct rt *ucma_rt(const struct ucma_session *session);
const struct ucma_page *ucma_page_of(const struct ucma_session *session);

/* --- ucma_cmd.c --- */

#define UCMA_RESPONSE_MAX 2048
/**
 * ucma_command() - do what a write() to the device file asks for
 * @in: struct rdma_ucm_cmd_hdr and its command, @bytes of them
 * @out: room for UCMA_RESPONSE_MAX; @out_bytes: how many are the response
 * Return: 0; -errno
 */
int ucma_command(struct ucma_session *session, const void *in, size_t bytes, void *out,
		 size_t *out_bytes);

/** ucma_ask() - the response to a question of librdmacm: RDMA_USER_CM_CMD_QUERY or _INIT_QP_ATTR
 *  @option: of the query, or the state of the queue pair
 *  @out: room for UCMA_RESPONSE_MAX. Return: 0; -errno */
int ucma_ask(struct ucma_id *id, u32 cmd, u32 option, void *out, size_t *out_bytes);

/** struct ucma_call - a command and where its response goes */
struct ucma_call {
	struct ucma_session *session;
	struct ucma_id *id; /* that the command names, if its row says so */
	const void *in;	    /* the command's struct: as many bytes as the table says, at least */
	size_t in_bytes;
	void *out;
	size_t *out_bytes, room;
};

/** ucma_respond() - as much of @resp as the program has room for */
static inline void ucma_respond(struct ucma_call *call, const void *resp, size_t bytes)
{
	*call->out_bytes = MIN(bytes, call->room);
	memcpy(call->out, resp, *call->out_bytes);
}

/* --- ucma_ahead.c --- */

/** struct ucma_page - the counts of changes of an endpoint's ids (abi/ahead.h) */
struct ucma_page {
	struct rt *rt;
	struct abi_ahead_page *shared;
	int fd; /* of the memfd, for programs */
};

/** ucma_page_create() - until ucma_page_destroy(), changes of devices count as changes of all
 *  ids. Return: 0; -errno */
int ucma_page_create(struct ucma_page *page, struct rt *rt);
void ucma_page_destroy(struct ucma_page *page);
/** ucma_changed() - answers about the id @number that were given ahead hold no more */
void ucma_changed(const struct ucma_page *page, u32 number);
/** ucma_put_ahead() - the answers to what is asked about @id after an event of the type @event.
 *  Return: bytes of struct abi_ahead and the answers; 0: there are none */
size_t ucma_put_ahead(const struct ucma_page *page, struct ucma_id *id, u32 event, void *to,
		      size_t room);

/* --- ucma_query.c --- */

/** ucma_query_route() - RDMA_USER_CM_CMD_QUERY_ROUTE: IP addresses, GIDs and path in one. 0 */
int ucma_query_route(struct ucma_call *call);
/** ucma_query() - RDMA_USER_CM_CMD_QUERY: one of them, in any address family. 0; -ENOSYS */
int ucma_query(struct ucma_call *call);

/* --- ucma_mcast.c --- */

/** ucma_mcast_join() - @flags: RDMA_MC_JOIN_FLAG_..., @addr of @bytes.
 *  Return: 0 and the membership; -errno */
int ucma_mcast_join(struct ucma_id *id, u64 uid, const void *addr, size_t bytes,
		    u16 flags, struct ucma_mcast **out);
/** ucma_mcast_find() - a membership of @session; NULL */
struct ucma_mcast *ucma_mcast_find(struct ucma_session *session, u32 number);
/** ucma_mcast_leave() - leave, and drop its news. Return: as ucma_id_drop() */
u32 ucma_mcast_leave(struct ucma_mcast *mcast);

/* --- ucma_event.c --- */

int ucma_on_event(struct rdma_cm_id *cm_id, struct rdma_cm_event *event);
void ucma_put_ah(struct ib_uverbs_ah_attr *to, const struct rdma_ah_attr *from);
/** ucma_event_free() - it is in no session's queue any more */
void ucma_event_free(struct ucma_event *event);
/** ucma_flush() - send the bytes that are due */
void ucma_flush(struct ucma_session *session);
/** ucma_events_move() - those of @id, to @to. Return: for how many a byte was sent */
u32 ucma_events_move(struct ucma_id *id, struct ucma_session *to);
/** ucma_events_drop() - those of @id, or of its membership @mcast alone if that is not
 *  NULL. Return: for how many a byte was sent */
u32 ucma_events_drop(struct ucma_id *id, const struct ucma_mcast *mcast);

#endif
