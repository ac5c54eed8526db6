/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sessions of programs with the CM (devfile.h), and their ids. When the adapter is removed, a session goes on
 * without one: its commands fail with ENODEV until the program closes it.
 */
#include "access/ucm.h"

#include <errno.h>
#include <string.h>

#include "access/devices.h"
#include "access/ucm_private.h"

#define BUCKETS 4096

struct ucm {
	struct devfiles files;
	struct list_head ids[BUCKETS]; /* hashed by number */
	u32 next_number;
};

static struct ucm *ucm_of(const struct ucm_session *session)
{
	return container_of(session->file.files, struct ucm, files);
}

/* --- ids --- */

static struct list_head *bucket(const struct ucm_session *session, u32 number)
{
	return list_bucket(&ucm_of(session)->ids[number % BUCKETS]);
}

struct ucm_id *ucm_id_find(struct ucm_session *session, u32 number)
{
	struct ucm_id *id;

	list_for_each_entry(id, bucket(session, number), hash_node)
		if (id->number == number && id->session == session)
			return id;
	return NULL;
}

struct ucm_id *ucm_id_add(struct ucm_session *session, u64 uid)
{
	struct quota_node *charged;
	struct ucm_id *id;

	if (session->num_ids >= UCM_IDS_MAX)
		return NULL;
	charged = quota_take(&session->file.quota, UCM_ID_BYTES);
	if (!charged)
		return NULL;
	id = rt_zalloc(sizeof(*id));
	if (!id) {
		quota_give(charged, &session->file.quota, UCM_ID_BYTES);
		return NULL;
	}
	id->charged = charged;
	id->session = session;
	id->number = ucm_of(session)->next_number++;
	id->uid = uid;
	INIT_LIST_HEAD(&id->events);
	list_add_tail(&id->node, &session->ids);
	list_add_tail(&id->hash_node, bucket(session, id->number));
	session->num_ids++;
	return id;
}

u32 ucm_id_drop(struct ucm_id *id)
{
	u32 announced;

	if (id->cm_id)
		ib_destroy_cm_id(id->cm_id);
	announced = ucm_events_drop(id);
	list_del(&id->node);
	list_del(&id->hash_node);
	id->session->num_ids--;
	quota_give(id->charged, &id->session->file.quota, UCM_ID_BYTES);
	rt_free(id);
	return announced;
}

/* --- the core's client --- */

static int add_device(struct ib_device *device);
static void remove_device(struct ib_device *device, void *client_data);
static const struct ib_client client = {.name = "ucm", .add = add_device, .remove = remove_device};

static int add_device(struct ib_device *device)
{
	ib_set_client_data(device, &client, device); /* the core announced it */
	return 0;
}

static void remove_device(struct ib_device *device, void *client_data)
{
	struct ucm *ucm = rt_local(device->rt, RT_LOCAL_UCM);
	struct ucm_session *s;
	struct ucm_id *id;

	if (!ucm)
		return;
	list_for_each_entry(s, &ucm->files.sessions, file.node) {
		if (s->device != device)
			continue;
		s->device = NULL;
		list_for_each_entry(id, &s->ids, node) {
			ib_destroy_cm_id(id->cm_id);
			id->cm_id = NULL;
		}
	}
}

/* --- sessions --- */

static struct ucm_session *session_of(struct devfile *file)
{
	return container_of(file, struct ucm_session, file);
}

static void init_session(struct devfile *file)
{
	INIT_LIST_HEAD(&session_of(file)->ids);
}

static int open_session(struct devfile *file, const struct abi_open *open, const char **node)
{
	const struct rt *rt = file->files->rt;
	struct ib_device *device;

	*node = devices_node(rt, open->node);
	device = *node ? ib_device_get_by_name(rt, *node, open->device) : NULL;
	if (!device || !ib_get_client_data(device, &client))
		return -ENOENT;
	session_of(file)->device = device;
	return 0;
}

static int command(struct devfile *file, const void *in, size_t bytes, void *out, size_t *out_bytes)
{
	return ucm_command(session_of(file), in, bytes, out, out_bytes);
}

static void close_session(struct devfile *file)
{
	struct ucm_session *s = session_of(file);

	while (!list_empty(&s->ids))
		ucm_id_drop(list_first_entry(&s->ids, struct ucm_id, node));
}

/* --- the endpoint --- */

static const struct devfile_ops ops = {
	.bytes = sizeof(struct ucm_session),
	.kind = ABI_OPEN_UCM,
	.init = init_session,
	.open = open_session,
	.command = command,
	.close = close_session,
	.put = ucm_announce,
};

void ucm_serve(struct ucm *ucm, int fd, const struct peer *peer)
{
	devfiles_serve(&ucm->files, fd, peer);
}

int ucm_create(struct rt *rt, const char *dir, struct ucm **out)
{
	struct ucm *ucm = rt_zalloc(sizeof(*ucm));
	int ret;

	if (!ucm)
		return -ENOMEM;
	ucm->next_number = 1;
	ret = devfiles_open(&ucm->files, rt, dir, "ucm", &ops, -1);
	if (ret)
		goto undo_alloc;
	rt_set_local(rt, RT_LOCAL_UCM, ucm);
	ret = ib_register_client(rt, &client);
	if (ret)
		goto undo_files;
	*out = ucm;
	return 0;

undo_files:
	rt_set_local(rt, RT_LOCAL_UCM, NULL);
	devfiles_close(&ucm->files);
undo_alloc:
	rt_free(ucm);
	return ret;
}

void ucm_destroy(struct ucm *ucm)
{
	struct rt *rt = ucm->files.rt;

	devfiles_close(&ucm->files);
	ib_unregister_client(rt, &client);
	rt_set_local(rt, RT_LOCAL_UCM, NULL);
	rt_free(ucm);
}
