/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sessions of programs with the CM. The answer to the opening message carries a second socket, for
 * commands. The first socket then has one message for each event, so that a program can poll it like the
 * device file. The session ends when either socket is closed. When the adapter is removed, it goes on without
 * one: its commands fail with ENODEV until the program closes it.
 */
#include "access/ucm.h"

#include <errno.h>
#include <string.h>

#include "access/devices.h"
#include "access/ucm_private.h"
#include "runtime/posix/closer.h"

#define FDS_OF_A_SESSION 2
#define BUCKETS		 4096

struct ucm {
	struct rt *rt;
	struct listener *listener;
	struct list_head sessions;
	struct list_head ids[BUCKETS]; /* hashed by number */
	u32 next_number;
	_Alignas(8) char in[ABI_MESSAGE_MAX];
};

/* --- ids --- */

static struct list_head *bucket(const struct ucm_session *session, u32 number)
{
	return &session->ucm->ids[number % BUCKETS];
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
	charged = quota_take(&session->quota, UCM_ID_BYTES);
	if (!charged)
		return NULL;
	id = rt_zalloc(sizeof(*id));
	if (!id) {
		quota_give(charged, &session->quota, UCM_ID_BYTES);
		return NULL;
	}
	id->charged = charged;
	id->session = session;
	id->number = session->ucm->next_number++;
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
	quota_give(id->charged, &id->session->quota, UCM_ID_BYTES);
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
	list_for_each_entry(s, &ucm->sessions, node) {
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

static void close_session(struct ucm_session *s)
{
	while (!list_empty(&s->ids))
		ucm_id_drop(list_first_entry(&s->ids, struct ucm_id, node));
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

static int answer(struct ucm_session *s, size_t bytes)
{
	_Alignas(8) char out[UCM_RESPONSE_MAX];
	size_t out_bytes = 0;
	int ret = ucm_command(s, s->ucm->in, bytes, out, &out_bytes);

	return endpoint_send(s->control_fd, ret, out, ret ? 0 : out_bytes, NULL, 0);
}

static void on_command(struct rt_io *io, bool readable, bool writable)
{
	struct ucm_session *s = container_of(io, struct ucm_session, control);
	ssize_t n = rt_receive(s->control_fd, s->ucm->in, sizeof(s->ucm->in), MSG_DONTWAIT, NULL, 0);

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n <= 0 || answer(s, (size_t)n))
		close_session(s);
}

static struct ib_device *find_device(const struct rt *rt, const struct abi_open *open)
{
	const char *node = devices_node(rt, open->node);
	struct ib_device *device = node ? ib_device_get_by_name(rt, node, open->device) : NULL;

	return device && ib_get_client_data(device, &client) ? device : NULL;
}

static int open_file(struct ucm_session *s, size_t bytes)
{
	struct ib_device *device;
	struct abi_open open;
	int ret = devices_open_is_sound(s->ucm->in, bytes, &open);

	if (ret)
		return ret;
	if (open.kind != ABI_OPEN_UCM)
		return -EINVAL;
	device = find_device(s->ucm->rt, &open);
	if (!device)
		return -ENOENT;
	ret = quota_open(&s->quota, device->node_name);
	if (!ret)
		ret = endpoint_answer_open(s->fd, -1, &s->control_fd);
	if (ret)
		return ret;
	s->device = device;
	rt_io_init(s->ucm->rt, &s->control, s->control_fd, on_command);
	rt_io_watch(&s->control, true, false);
	return 0;
}

static void on_message(struct rt_io *io, bool readable, bool writable)
{
	struct ucm_session *s = container_of(io, struct ucm_session, news);
	ssize_t n;
	int ret;

	if (writable)
		event_queue_flush(&s->queue);
	if (!readable)
		return;
	n = rt_receive(s->fd, s->ucm->in, sizeof(s->ucm->in), MSG_DONTWAIT, NULL, 0);
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
	close_session(container_of(quota, struct ucm_session, quota));
}

void ucm_serve(struct ucm *ucm, int fd, const struct peer *peer)
{
	struct ucm_session *s = session_alloc(
		peer, fd, sessions_of_process(peer, &ucm->sessions, struct ucm_session, pid),
		FDS_OF_A_SESSION, sizeof(*s));

	if (!s)
		return;
	s->ucm = ucm;
	s->fd = fd;
	s->control_fd = -1;
	if (peer) {
		s->pid = peer->pid;
		memcpy(s->comm, peer->comm, sizeof(s->comm));
	}
	INIT_LIST_HEAD(&s->ids);
	list_add_tail(&s->node, &ucm->sessions);
	event_queue_init(&s->queue, ucm->rt, fd, &s->news, ucm_announce);
	rt_io_init(ucm->rt, &s->news, fd, on_message);
	rt_io_watch(&s->news, true, false);
	quota_arrive(&s->quota, ucm->rt, fd, FDS_OF_A_SESSION, drop_newcomer);
}

/* --- the endpoint --- */

static void on_accepted(void *ctx, int fd, const struct peer *peer)
{
	ucm_serve(ctx, fd, peer);
}

int ucm_create(struct rt *rt, const char *dir, struct ucm **out)
{
	struct ucm *ucm = rt_zalloc(sizeof(*ucm));
	int ret = 0;

	if (!ucm)
		return -ENOMEM;
	ucm->rt = rt;
	ucm->next_number = 1;
	INIT_LIST_HEAD(&ucm->sessions);
	for (int i = 0; i < BUCKETS; i++)
		INIT_LIST_HEAD(&ucm->ids[i]);
	if (dir)
		ret = listener_create(rt, dir, "ucm", on_accepted, ucm, &ucm->listener);
	if (ret)
		goto undo_alloc;
	if (ucm->listener)
		listener_refuse_fds(ucm->listener);
	rt_set_local(rt, RT_LOCAL_UCM, ucm);
	ret = ib_register_client(rt, &client);
	if (ret)
		goto undo_listener;
	*out = ucm;
	return 0;

undo_listener:
	rt_set_local(rt, RT_LOCAL_UCM, NULL);
	listener_destroy(ucm->listener);
undo_alloc:
	rt_free(ucm);
	return ret;
}

void ucm_destroy(struct ucm *ucm)
{
	listener_destroy(ucm->listener);
	while (!list_empty(&ucm->sessions))
		close_session(list_first_entry(&ucm->sessions, struct ucm_session, node));
	ib_unregister_client(ucm->rt, &client);
	rt_set_local(ucm->rt, RT_LOCAL_UCM, NULL);
	rt_free(ucm);
}
