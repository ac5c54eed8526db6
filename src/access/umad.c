/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sessions of programs with the MAD layer: a program opens a port, gets two sockets, and
 * everything is released when the connection ends. A session is connected (it has no control
 * socket yet), open, or unplugged (its device is NULL, and writes fail with EIO until the
 * program closes it).
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "access/devices.h"
#include "access/umad_private.h"
#include "runtime/posix/closer.h"

#define MESSAGES_PER_TURN 64
#define FDS_OF_A_SESSION 5 /* two sockets, the doorbell of a ring, and long records: one that is read, one to be read */

struct umad {
	struct rt *rt;
	struct listener *listener;
	struct issm *issm;
	struct list_head sessions;
	struct umad_ends ends;
	unsigned int num_sessions;
	_Alignas(8) char in[ABI_MESSAGE_MAX];
};

/* Return: the endpoint of the fabric of @device; NULL: there is none */
static struct umad *endpoint_of(const struct ib_device *device)
{
	return rt_local(device->rt, RT_LOCAL_UMAD);
}

/* --- the end of a session --- */

static void close_session(struct umad_session *s)
{
	told_close(s->told);
	s->told = NULL;
	told_process_put(s->process);
	umad_agents_drop(s);
	umad_load_drop(s);
	umad_queue_drop(s);
	rt_io_watch(&s->data, false, false);
	rt_close_socket(s->fd);
	if (s->control_fd >= 0) {
		rt_io_watch(&s->control, false, false);
		rt_close_socket(s->control_fd);
	}
	quota_leave(&s->quota);
	list_del(&s->node);
	s->umad->num_sessions--;
	rt_free(s);
}

/* --- the core's client --- */

static int add_device(struct ib_device *device);
static void remove_device(struct ib_device *device, void *client_data);
static const struct ib_client client = {.name = "umad", .add = add_device, .remove = remove_device};

static int add_device(struct ib_device *device)
{
	ib_set_client_data(device, &client, device); /* the core announced it */
	return 0;
}

static void remove_device(struct ib_device *device, void *client_data)
{
	struct umad *endpoint = endpoint_of(device);
	struct umad_session *s;

	if (!endpoint)
		return;
	list_for_each_entry(s, &endpoint->sessions, node) {
		if (s->device != device)
			continue;
		umad_agents_drop(s);
		s->device = NULL;
	}
	umad_ends_finish(&endpoint->ends, device);
	if (endpoint->issm)
		issm_forget(endpoint->issm, device);
}

/* --- opening --- */

static struct ib_device *find_port(const struct rt *rt, const struct abi_open *open)
{
	const char *node = devices_node(rt, open->node);
	struct ib_device *device = node ? ib_device_get_by_name(rt, node, open->device) : NULL;

	if (!device || !ib_get_client_data(device, &client) ||
	    !rdma_is_port_valid(device, open->port))
		return NULL;
	return device;
}

static void on_control(struct rt_io *io, bool readable, bool writable)
{
	struct umad_session *s = container_of(io, struct umad_session, control);
	ssize_t n;

	if (!told_run_one(s->told))
		return;
	n = rt_receive(s->control_fd, s->umad->in, sizeof(s->umad->in), MSG_DONTWAIT, NULL, 0);
	if (n == -EAGAIN || n == -EINTR)
		return;
	/* If the program has closed one of the two sockets or does not read it, the other remains usable. */
	if (n <= 0 || umad_ioctl(s, s->umad->in, (size_t)n))
		rt_io_watch(io, false, false);
}

static int open_port(struct umad_session *s, struct ib_device *device, unsigned port_num)
{
	int ret = endpoint_answer_open(s->fd, -1, &s->control_fd);

	if (ret)
		return ret;
	s->device = device;
	s->port_num = port_num;
	rt_io_init(s->umad->rt, &s->control, s->control_fd, on_control);
	rt_io_watch(&s->control, true, false);
	return 0;
}

static int describe_port(struct umad *umad, struct ib_device *device, unsigned port_num,
			 struct abi_port_info *info)
{
	struct ib_port_attr attr;
	union ib_gid gid;
	int ret = ib_query_port(device, port_num, &attr);

	if (ret)
		return ret;
	ib_query_gid(device, port_num, 0, &gid);
	*info = (struct abi_port_info){
		.cap_mask = attr.port_cap_flags,
		.link_layer = attr.link_layer,
		.lid = (uint16_t)(attr.link_layer == IB_LINK_LAYER_ETHERNET ? 0 : attr.lid),
		.sm_lid = (uint16_t)attr.sm_lid,
		.lmc = attr.link_layer == IB_LINK_LAYER_ETHERNET ? 0 : attr.lmc,
		.sm_sl = attr.sm_sl,
		.state = (uint8_t)attr.state,
		.phys_state = attr.phys_state,
		.width_enc = attr.active_width,
		.speed_enc = attr.active_speed,
		.num_pkeys = MIN(attr.pkey_tbl_len, (u16)ABI_PORT_PKEYS),
	};
	memcpy(info->gid, gid.raw, sizeof(info->gid));
	for (u16 i = 0; i < info->num_pkeys; i++)
		ib_query_pkey(device, port_num, i, &info->pkey[i]);
	return umad->issm ? issm_path(umad->issm, device, port_num, info->issm) : 0;
}

static int answer_port(struct umad_session *s, struct ib_device *device, unsigned port_num)
{
	struct abi_port_info info;
	int ret = describe_port(s->umad, device, port_num, &info);

	return endpoint_send(s->fd, ret, &info, ret ? 0 : sizeof(info), NULL, 0);
}

/* Return: true if the session continues */
static bool on_open(struct umad_session *s, size_t bytes)
{
	struct ib_device *device;
	struct abi_open open;
	int ret = devices_open_is_sound(s->umad->in, bytes, &open);

	if (ret)
		goto refuse;
	ret = -ENOENT;
	if (open.kind == ABI_OPEN_LIST && devices_node(s->umad->rt, open.node)) {
		devices_answer_list(s->umad->rt, s->fd, devices_node(s->umad->rt, open.node));
		return false;
	}
	device = find_port(s->umad->rt, &open);
	if (!device)
		goto refuse;
	if (open.kind == ABI_OPEN_PORT) {
		answer_port(s, device, open.port);
		return false;
	}
	ret = open.kind == ABI_OPEN_UMAD ? quota_open(&s->quota, device->node_name) : -EINVAL;
	ret = ret ?: open_port(s, device, open.port);
	if (!ret)
		return true;
refuse:
	endpoint_send(s->fd, ret, NULL, 0, NULL, 0);
	return false;
}

/* --- records --- */

static void on_record(struct umad_session *s, size_t bytes, int fd)
{
	if (fd < 0)
		umad_write(s, (const struct ib_user_mad *)s->umad->in, bytes);
	else
		umad_load(s, fd);
}

static void run_record(void *session, void *record, size_t bytes)
{
	umad_write(session, record, bytes);
}

static void on_broken_ring(void *session)
{
	struct umad_session *s = session;

	shutdown(s->fd, SHUT_RDWR); /* which ends the session in a later turn */
}

int umad_open_told(struct umad_session *s, int fds[ABI_TOLD_FDS])
{
	static const struct told_ops ops = {.run = run_record, .broken = on_broken_ring};

	if (s->told)
		return -EEXIST;
	if (!s->process)
		s->process = told_process_get(s->rt, s->pid);
	return s->process ? told_open(s->process, &ops, s, fds, &s->told) : -ENOMEM;
}

static void on_message(struct rt_io *io, bool readable, bool writable)
{
	struct umad_session *s = container_of(io, struct umad_session, data);
	const int most = s->told ? 1 : MESSAGES_PER_TURN;

	if (writable)
		umad_queue_flush(s);
	if (!readable || !told_run_one(s->told))
		return;
	for (int i = 0; !s->load && i < most; i++) {
		int fd;
		ssize_t n = rt_receive(s->fd, s->umad->in, sizeof(s->umad->in), MSG_DONTWAIT,
				       &fd, 1);

		if (n == -EAGAIN || n == -EINTR)
			return;
		if (n > 0 && s->control_fd >= 0) {
			on_record(s, (size_t)n, fd);
			continue;
		}
		rt_close_foreign(fd); /* no descriptor belongs to an opening message */
		if (n <= 0 || !on_open(s, (size_t)n)) {
			close_session(s);
			return;
		}
	}
}

/* --- the endpoint --- */

static void drop_newcomer(struct quota_share *quota)
{
	close_session(container_of(quota, struct umad_session, quota));
}

void umad_serve(struct umad *umad, int fd, const struct peer *peer)
{
	struct umad_session *s = session_alloc(
		peer, fd, sessions_of_process(peer, &umad->sessions, struct umad_session, pid),
		FDS_OF_A_SESSION, sizeof(*s));

	if (!s)
		return;
	s->pid = peer->pid;
	memcpy(s->comm, peer->comm, sizeof(s->comm));
	s->umad = umad;
	s->rt = umad->rt;
	s->ends = &umad->ends;
	s->fd = fd;
	s->control_fd = -1;
	umad_queue_init(s);
	list_add_tail(&s->node, &umad->sessions);
	umad->num_sessions++;
	rt_io_init(umad->rt, &s->data, fd, on_message);
	rt_io_watch(&s->data, true, false);
	quota_arrive(&s->quota, umad->rt, fd, FDS_OF_A_SESSION, drop_newcomer);
}

static void on_accepted(void *ctx, int fd, const struct peer *peer)
{
	umad_serve(ctx, fd, peer);
}

unsigned int umad_num_sessions(const struct umad *umad)
{
	return umad->num_sessions;
}

int umad_create(struct rt *rt, const char *dir, struct umad **out)
{
	struct umad *u;
	int ret = 0;

	u = rt_zalloc(sizeof(*u));
	if (!u)
		return -ENOMEM;
	u->rt = rt;
	INIT_LIST_HEAD(&u->sessions);
	umad_ends_init(&u->ends, rt);
	if (dir) {
		ret = issm_create(rt, dir, &u->issm);
		if (!ret)
			ret = listener_create(rt, dir, "umad", on_accepted, u, &u->listener);
	}
	if (ret) {
		if (u->issm)
			issm_destroy(u->issm);
		rt_free(u);
		return ret;
	}
	rt_set_local(rt, RT_LOCAL_UMAD, u);
	ret = ib_register_client(rt, &client);
	if (ret)
		goto undo_local;
	*out = u;
	return 0;

undo_local:
	rt_set_local(rt, RT_LOCAL_UMAD, NULL);
	if (u->listener)
		listener_destroy(u->listener);
	if (u->issm)
		issm_destroy(u->issm);
	rt_free(u);
	return ret;
}

void umad_destroy(struct umad *u)
{
	if (u->listener)
		listener_destroy(u->listener);
	while (!list_empty(&u->sessions))
		close_session(list_first_entry(&u->sessions, struct umad_session, node));
	umad_ends_finish(&u->ends, NULL);
	ib_unregister_client(u->rt, &client);
	rt_set_local(u->rt, RT_LOCAL_UMAD, NULL);
	if (u->issm)
		issm_destroy(u->issm);
	rt_free(u);
}
