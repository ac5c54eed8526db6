/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sessions of programs with the RDMA CM. The answer to the opening message carries a second socket, for
 * commands. The first socket then has one message for each event, so that a program can poll it like the
 * device file. The session ends when either socket is closed.
 */
#include "access/ucma.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "abi/fds.h"
#include "access/devices.h"
#include "access/ucma_private.h"
#include "runtime/posix/closer.h"

#define COMMANDS_PER_TURN 16
#define FDS_OF_A_SESSION  2
#define BUCKETS		  4096

struct ucma {
	struct rt *rt;
	struct listener *listener;
	struct list_head sessions;
	struct list_head ids[BUCKETS], mcasts[BUCKETS]; /* hashed by number */
	u32 next_number;
	struct ucma_page page;
	_Alignas(8) char in[ABI_MESSAGE_MAX];
};

struct rt *ucma_rt(const struct ucma_session *session)
{
	return session->ucma->rt;
}

const struct ucma_page *ucma_page_of(const struct ucma_session *session)
{
	return &session->ucma->page;
}

/* --- ids --- */

struct ucma_id *ucma_id_find(struct ucma_session *session, u32 number)
{
	struct ucma_id *id;

	list_for_each_entry(id, &session->ucma->ids[number % BUCKETS], hash_node)
		if (id->number == number && id->session == session)
			return id;
	return NULL;
}

u32 ucma_next_number(struct ucma_session *session)
{
	return session->ucma->next_number++;
}

struct list_head *ucma_mcasts(const struct ucma_session *session, u32 number)
{
	return &session->ucma->mcasts[number % BUCKETS];
}

/* Return: an id in no list, which counts as one of the session's; NULL */
static struct ucma_id *alloc_id(struct ucma_session *session)
{
	struct quota_node *charged;
	struct ucma_id *id;

	if (session->num_ids >= UCMA_IDS_MAX)
		return NULL;
	charged = quota_take(&session->quota, UCMA_ID_BYTES);
	if (!charged)
		return NULL;
	id = rt_zalloc(sizeof(*id));
	if (!id) {
		quota_give(charged, &session->quota, UCMA_ID_BYTES);
		return NULL;
	}
	id->charged = charged;
	id->session = session;
	id->number = ucma_next_number(session);
	INIT_LIST_HEAD(&id->mcasts);
	INIT_LIST_HEAD(&id->events);
	session->num_ids++;
	return id;
}

static void free_id(struct ucma_id *id)
{
	id->session->num_ids--;
	quota_give(id->charged, &id->session->quota, UCMA_ID_BYTES);
	rt_free(id);
}

static void show(struct ucma_id *id, u64 uid)
{
	id->uid = uid;
	list_add_tail(&id->node, &id->session->ids);
	list_add_tail(&id->hash_node, &id->session->ucma->ids[id->number % BUCKETS]);
}

struct ucma_id *ucma_id_add(struct ucma_session *session, u64 uid)
{
	struct ucma_id *id = alloc_id(session);

	if (id)
		show(id, uid);
	return id;
}

/* --- ids that are granted ahead --- */

u32 ucma_ids_grant(struct ucma_session *session, u32 *first)
{
	const u32 most = MIN(session->created, (u32)UCMA_GRANT_MAX);
	struct ucma_id *id;
	u32 count = 0;

	while (count < most && (id = alloc_id(session))) {
		list_add_tail(&id->node, &session->granted);
		if (!count++)
			*first = id->number;
	}
	return count;
}

void ucma_ids_take_back(struct ucma_session *session)
{
	struct ucma_id *id, *next;

	list_for_each_entry_safe(id, next, &session->granted, node) {
		list_del(&id->node);
		free_id(id);
	}
}

struct ucma_id *ucma_id_take(struct ucma_session *session, u32 number, u64 uid)
{
	struct ucma_id *id;

	if (list_empty(&session->granted))
		return NULL;
	id = list_first_entry(&session->granted, struct ucma_id, node);
	if (id->number != number)
		return NULL;
	list_del(&id->node);
	show(id, uid);
	return id;
}

/* --- */

struct ucma_id *ucma_id_of_process(struct ucma_session *session, u32 number)
{
	struct ucma_id *id;

	list_for_each_entry(id, &session->ucma->ids[number % BUCKETS], hash_node)
		if (id->number == number &&
		    (id->session == session ||
		     (session->pid && id->session->pid == session->pid)))
			return id;
	return NULL;
}

static void move(struct ucma_id *id, struct ucma_session *to)
{
	const struct ucma_mcast *mcast;

	list_for_each_entry(mcast, &id->mcasts, node) {
		id->session->num_mcasts--;
		to->num_mcasts++;
	}
	id->session->num_ids--;
	id->session->quota.bytes -= UCMA_ID_BYTES;
	to->quota.bytes += UCMA_ID_BYTES; /* the charge to the node of the first session remains */
	list_del(&id->node);
	id->session = to;
	list_add_tail(&id->node, &to->ids);
	to->num_ids++;
}

u32 ucma_id_move(struct ucma_id *id, struct ucma_session *to)
{
	u32 told = ucma_events_move(id, to);

	move(id, to);
	return told;
}

u32 ucma_id_drop(struct ucma_id *id)
{
	u32 told = ucma_events_drop(id, NULL); /* first: each membership searches the list that is left */

	while (!list_empty(&id->mcasts))
		told += ucma_mcast_leave(
			list_first_entry(&id->mcasts, struct ucma_mcast, node));
	if (id->cm_id)
		rdma_destroy_id(id->cm_id);
	told += ucma_events_drop(id, NULL);
	list_del(&id->node);
	list_del(&id->hash_node);
	free_id(id);
	return told;
}

/* --- sessions --- */

static void close_session(struct ucma_session *s)
{
	while (!list_empty(&s->ids))
		ucma_id_drop(list_first_entry(&s->ids, struct ucma_id, node));
	ucma_ids_take_back(s);
	event_queue_end(&s->queue);
	rt_io_watch(&s->news, false, false);
	rt_close_socket(s->fd);
	if (s->control_fd >= 0) {
		rt_io_watch(&s->control, false, false);
		rt_close_socket(s->control_fd);
	}
	quota_leave(&s->quota);
	list_del(&s->node);
	rt_free(s);
}

/* Return: 0; UCMA_NO_ANSWER; -errno */
static int answer(struct ucma_session *s, size_t bytes)
{
	_Alignas(8) char out[UCMA_RESPONSE_MAX];
	size_t out_bytes = 0;
	int ret = ucma_command(s, s->ucma->in, bytes, out, &out_bytes);

	if (ret == UCMA_NO_ANSWER)
		return ret;
	return endpoint_send(s->control_fd, ret, out, ret ? 0 : out_bytes, NULL, 0);
}

static void on_command(struct rt_io *io, bool readable, bool writable)
{
	struct ucma_session *s = container_of(io, struct ucma_session, control);

	int ret = UCMA_NO_ANSWER;

	/* A program that has an answer to read has sent nothing behind its command. */
	for (int i = 0; i < COMMANDS_PER_TURN && ret == UCMA_NO_ANSWER; i++) {
		ssize_t n = rt_receive(s->control_fd, s->ucma->in, sizeof(s->ucma->in),
				       MSG_DONTWAIT, NULL, 0);

		if (n == -EAGAIN || n == -EINTR)
			return;
		ret = n <= 0 ? -ECONNRESET : answer(s, (size_t)n);
	}
	if (ret < 0)
		close_session(s);
}

static int open_file(struct ucma_session *s, size_t bytes)
{
	struct abi_open open;
	const char *node;
	int ret = devices_open_is_sound(s->ucma->in, bytes, &open);

	if (ret)
		return ret;
	node = devices_node(s->ucma->rt, open.node);
	if (!node)
		return -ENOENT;
	if (open.kind != ABI_OPEN_RDMA_CM)
		return -EINVAL;
	ret = quota_open(&s->quota, node);
	if (ret)
		return ret;
	ret = endpoint_answer_open(s->fd, s->ucma->page.fd, &s->control_fd);
	if (ret)
		return ret;
	strncpy(s->node_name, node, sizeof(s->node_name) - 1);
	rt_io_init(s->ucma->rt, &s->control, s->control_fd, on_command);
	rt_io_watch(&s->control, true, false);
	return 0;
}

static void on_message(struct rt_io *io, bool readable, bool writable)
{
	struct ucma_session *s = container_of(io, struct ucma_session, news);
	ssize_t n;
	int ret;

	if (writable)
		event_queue_flush(&s->queue);
	if (!readable)
		return;
	n = rt_receive(s->fd, s->ucma->in, sizeof(s->ucma->in), MSG_DONTWAIT, NULL, 0);
	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n > 0 && s->control_fd >= 0) /* ignore messages after the opening message */
		return;
	ret = n > 0 ? open_file(s, (size_t)n) : -ECONNRESET;
	if (!ret)
		return;
	if (n > 0)
		endpoint_send(s->fd, ret, NULL, 0, NULL, 0);
	close_session(s);
}

static void drop_newcomer(struct quota_share *quota)
{
	close_session(container_of(quota, struct ucma_session, quota));
}

void ucma_serve(struct ucma *ucma, int fd, const struct peer *peer)
{
	struct ucma_session *s = session_alloc(
		peer, fd, sessions_of_process(peer, &ucma->sessions, struct ucma_session, pid),
		FDS_OF_A_SESSION, sizeof(*s));

	if (!s)
		return;
	s->ucma = ucma;
	s->fd = fd;
	s->control_fd = -1;
	if (peer) {
		s->pid = peer->pid;
		memcpy(s->comm, peer->comm, sizeof(s->comm));
	}
	INIT_LIST_HEAD(&s->ids);
	INIT_LIST_HEAD(&s->granted);
	list_add_tail(&s->node, &ucma->sessions);
	event_queue_init(&s->queue, ucma->rt, fd, &s->news, ucma_event_put);
	rt_io_init(ucma->rt, &s->news, fd, on_message);
	rt_io_watch(&s->news, true, false);
	quota_arrive(&s->quota, ucma->rt, fd, FDS_OF_A_SESSION, drop_newcomer);
}

/* --- the endpoint --- */

static void on_accepted(void *ctx, int fd, const struct peer *peer)
{
	ucma_serve(ctx, fd, peer);
}

int ucma_create(struct rt *rt, const char *dir, struct ucma **out)
{
	struct ucma *ucma = rt_zalloc(sizeof(*ucma));
	int ret;

	if (!ucma)
		return -ENOMEM;
	ucma->rt = rt;
	ucma->next_number = 1;
	INIT_LIST_HEAD(&ucma->sessions);
	for (int i = 0; i < BUCKETS; i++) {
		INIT_LIST_HEAD(&ucma->ids[i]);
		INIT_LIST_HEAD(&ucma->mcasts[i]);
	}
	ret = ucma_page_create(&ucma->page, rt);
	if (ret)
		goto undo_alloc;
	if (dir)
		ret = listener_create(rt, dir, "rdma_cm", on_accepted, ucma,
				      &ucma->listener);
	if (ret)
		goto undo_page;
	if (ucma->listener)
		listener_refuse_fds(ucma->listener);
	*out = ucma;
	return 0;

undo_page:
	ucma_page_destroy(&ucma->page);
undo_alloc:
	rt_free(ucma);
	return ret;
}

void ucma_destroy(struct ucma *ucma)
{
	if (ucma->listener)
		listener_destroy(ucma->listener);
	while (!list_empty(&ucma->sessions))
		close_session(
			list_first_entry(&ucma->sessions, struct ucma_session, node));
	ucma_page_destroy(&ucma->page);
	rt_free(ucma);
}
