/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sessions of programs with the RDMA CM (devfile.h), and their ids. With the answer to the opening message comes
 * also the page of ucma_ahead.c.
 */
#include "access/ucma.h"

#include <errno.h>
#include <string.h>

#include "access/devices.h"
#include "access/ucma_private.h"

#define BUCKETS 4096

struct ucma {
	struct devfiles files;
	struct list_head ids[BUCKETS], mcasts[BUCKETS]; /* hashed by number */
	u32 next_number;
	struct ucma_page page;
};

static struct ucma *ucma_of(const struct ucma_session *session)
{
	return container_of(session->file.files, struct ucma, files);
}

struct rt *ucma_rt(const struct ucma_session *session)
{
	return session->file.files->rt;
}

const struct ucma_page *ucma_page_of(const struct ucma_session *session)
{
	return &ucma_of(session)->page;
}

/* --- ids --- */

static struct list_head *ids_of(const struct ucma_session *session, u32 number)
{
	return list_bucket(&ucma_of(session)->ids[number % BUCKETS]);
}

struct ucma_id *ucma_id_find(struct ucma_session *session, u32 number)
{
	struct ucma_id *id;

	list_for_each_entry(id, ids_of(session, number), hash_node)
		if (id->number == number && id->session == session)
			return id;
	return NULL;
}

u32 ucma_next_number(struct ucma_session *session)
{
	return ucma_of(session)->next_number++;
}

struct list_head *ucma_mcasts(const struct ucma_session *session, u32 number)
{
	return list_bucket(&ucma_of(session)->mcasts[number % BUCKETS]);
}

/* Return: an id in no list, which counts as one of the session's; NULL */
static struct ucma_id *alloc_id(struct ucma_session *session)
{
	struct quota_node *charged;
	struct ucma_id *id;

	if (session->num_ids >= UCMA_IDS_MAX)
		return NULL;
	charged = quota_take(&session->file.quota, UCMA_ID_BYTES);
	if (!charged)
		return NULL;
	id = rt_zalloc(sizeof(*id));
	if (!id) {
		quota_give(charged, &session->file.quota, UCMA_ID_BYTES);
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
	quota_give(id->charged, &id->session->file.quota, UCMA_ID_BYTES);
	rt_free(id);
}

static void show(struct ucma_id *id, u64 uid)
{
	id->uid = uid;
	list_add_tail(&id->node, &id->session->ids);
	list_add_tail(&id->hash_node, ids_of(id->session, id->number));
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

	list_for_each_entry(id, ids_of(session, number), hash_node)
		if (id->number == number &&
		    (id->session == session ||
		     (session->file.pid && id->session->file.pid == session->file.pid)))
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
	id->session->file.quota.bytes -= UCMA_ID_BYTES;
	to->file.quota.bytes += UCMA_ID_BYTES; /* the charge to the node of the first session remains */
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

static struct ucma_session *session_of(struct devfile *file)
{
	return container_of(file, struct ucma_session, file);
}

static void init_session(struct devfile *file)
{
	INIT_LIST_HEAD(&session_of(file)->ids);
	INIT_LIST_HEAD(&session_of(file)->granted);
}

static int open_session(struct devfile *file, const struct abi_open *open, const char **node)
{
	struct ucma_session *s = session_of(file);

	*node = devices_node(file->files->rt, open->node);
	if (!*node)
		return -ENOENT;
	strncpy(s->node_name, *node, sizeof(s->node_name) - 1);
	return 0;
}

static int command(struct devfile *file, const void *in, size_t bytes, void *out, size_t *out_bytes)
{
	return ucma_command(session_of(file), in, bytes, out, out_bytes);
}

static void close_session(struct devfile *file)
{
	struct ucma_session *s = session_of(file);

	while (!list_empty(&s->ids))
		ucma_id_drop(list_first_entry(&s->ids, struct ucma_id, node));
	ucma_ids_take_back(s);
}

/* --- the endpoint --- */

static const struct devfile_ops ops = {
	.bytes = sizeof(struct ucma_session),
	.kind = ABI_OPEN_RDMA_CM,
	.init = init_session,
	.open = open_session,
	.command = command,
	.close = close_session,
	.put = ucma_event_put,
};

void ucma_serve(struct ucma *ucma, int fd, const struct peer *peer)
{
	devfiles_serve(&ucma->files, fd, peer);
}

int ucma_create(struct rt *rt, const char *dir, struct ucma **out)
{
	struct ucma *ucma = rt_zalloc(sizeof(*ucma));
	int ret;

	if (!ucma)
		return -ENOMEM;
	ucma->next_number = 1;
	ret = ucma_page_create(&ucma->page, rt);
	if (ret)
		goto undo_alloc;
	ret = devfiles_open(&ucma->files, rt, dir, "rdma_cm", &ops, ucma->page.fd);
	if (ret)
		goto undo_page;
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
	devfiles_close(&ucma->files);
	ucma_page_destroy(&ucma->page);
	rt_free(ucma);
}
