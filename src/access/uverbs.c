/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sessions of programs: opening, commands, asynchronous events, and the release of all objects
 * when the connection ends. The kernel closes the socket of a process that dies, so a crash
 * has the same effect as a close.
 *
 * A session never blocks softibd: a peer that does not read its answers is disconnected, and a
 * peer whose event queue is full loses events.
 */
#include "access/uverbs_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "access/devices.h"
#include "runtime/posix/closer.h"

#define MESSAGES_PER_TURN 32
#define FDS_OF_A_SESSION (ABI_CONTEXT_FDS + 6) /* those of the context, softibd's ends of sockets, a doorbell */

struct uverbs {
	struct rt *rt;
	struct listener *listener;
	struct list_head sessions;
	unsigned int num_sessions;
	uint32_t last_number; /* the struct session.number that was assigned last */
	bool memlock; /* registered memory counts against RLIMIT_MEMLOCK */
	bool net_raw; /* only programs with CAP_NET_RAW may send frames */
	uint64_t in[ABI_MESSAGE_MAX / 8], out[UVERBS_RESPONSE_MAX / 8];
};

/* Return: the endpoint of the fabric of @device; NULL: there is none */
static struct uverbs *endpoint_of(const struct ib_device *device)
{
	return rt_local(device->rt, RT_LOCAL_UVERBS);
}

/* --- the end of a session --- */

static void drop_context(struct session *s)
{
	if (s->context)
		ib_ucontext_close(s->context);
	s->context = NULL;
	s->num_granted = 0;
}

static void close_session(struct session *s)
{
	told_close(s->told);
	told_process_put(s->process);
	drop_context(s);
	rt_work_cancel(&s->settle);
	rt_free(s->command);
	rt_io_watch(&s->io, false, false);
	rt_close_socket(s->fd);
	quota_leave(&s->quota);
	list_del(&s->node);
	s->uverbs->num_sessions--;
	rt_free(s);
}

/* --- packets that a program queued leave before its QP or context is destroyed --- */

static bool is_quiet(const struct session *s)
{
	return !s->context || !s->device->ops->quiesce || s->device->ops->quiesce(s->context);
}

static void wait_for_quiet(struct session *s)
{
	rt_io_watch(&s->io, false, false);
	rt_work_queue(s->uverbs->rt, &s->settle);
}

static void end_session(struct session *s)
{
	if (is_quiet(s)) {
		close_session(s);
		return;
	}
	s->closing = true;
	wait_for_quiet(s);
}

static bool destroys_qp(const struct session *s, size_t bytes)
{
	struct ib_uverbs_cmd_hdr hdr = {0};

	memcpy(&hdr, s->uverbs->in, MIN(bytes, sizeof(hdr)));
	return s->context && hdr.command == IB_USER_VERBS_CMD_DESTROY_QP;
}

/* Keep a command of @bytes until the packets are forwarded. Return: false if there is no memory */
static bool keep_command(struct session *s, size_t bytes)
{
	s->command = rt_zalloc(bytes);
	if (!s->command)
		return false;
	memcpy(s->command, s->uverbs->in, bytes);
	s->command_bytes = bytes;
	wait_for_quiet(s);
	return true;
}

static bool on_command(struct session *s, size_t bytes, bool *answered);

static void settle(struct rt_work *work)
{
	struct session *s = container_of(work, struct session, settle);
	bool answered;

	if (!is_quiet(s)) {
		rt_work_queue(s->uverbs->rt, work);
	} else if (s->closing) {
		close_session(s);
	} else {
		memcpy(s->uverbs->in, s->command, s->command_bytes);
		rt_free(s->command);
		s->command = NULL;
		rt_io_watch(&s->io, true, false);
		if (!on_command(s, s->command_bytes, &answered))
			end_session(s);
	}
}

/* --- asynchronous events --- */

void uverbs_send_event(struct session *s, enum ib_event_type type, u64 element)
{
	struct ib_uverbs_async_event_desc desc = {.element = element, .event_type = type};

	if (s->context)
		(void)send(s->context->driver_fds[ABI_FD_ASYNC_WRITE], &desc, sizeof(desc),
			   MSG_DONTWAIT | MSG_NOSIGNAL);
}

void uverbs_object_event(struct ib_event *event, void *ctx)
{
	const struct ib_uobject *uobject = ctx;

	uverbs_send_event(uobject->context->priv, event->event, uobject->user_handle);
}

void uverbs_target_event(struct ib_event *event, void *ctx)
{
	struct ib_uobject *uobject;

	list_for_each_entry(uobject, &event->element.qp->openers, opener)
		uverbs_object_event(event, uobject);
}

static void become_zombie(struct session *s)
{
	uverbs_send_event(s, IB_EVENT_DEVICE_FATAL, 0);
	drop_context(s);
	s->device = NULL;
	s->state = SESSION_ZOMBIE;
}

void uverbs_context_lost(struct ib_ucontext *context)
{
	struct session *s = context->priv;

	peer_log(&s->peer, "lost its adapter: what stands in its rings is no packet");
	become_zombie(s);
}

static void on_event(struct ib_event_handler *handler, struct ib_event *event)
{
	const struct uverbs *endpoint = endpoint_of(event->device);
	struct session *s;

	if (!endpoint)
		return;
	list_for_each_entry(s, &endpoint->sessions, node)
		if (s->device == event->device)
			uverbs_send_event(s, event->event, event->element.port_num);
}

/* --- the core's client --- */

static int add_device(struct ib_device *device);
static void remove_device(struct ib_device *device, void *client_data);
static const struct ib_client client = {
	.name = "uverbs", .add = add_device, .remove = remove_device};

static int add_device(struct ib_device *device)
{
	struct ib_event_handler *handler = rt_zalloc(sizeof(*handler));

	if (!handler)
		return -ENOMEM;
	INIT_IB_EVENT_HANDLER(handler, device, on_event);
	ib_register_event_handler(handler);
	ib_set_client_data(device, &client, handler);
	return 0;
}

static void remove_device(struct ib_device *device, void *client_data)
{
	const struct uverbs *endpoint = endpoint_of(device);
	struct session *s;

	if (endpoint)
		list_for_each_entry(s, &endpoint->sessions, node)
			if (s->device == device)
				become_zombie(s);
	ib_unregister_event_handler(client_data);
	rt_free(client_data);
}

/* --- opening --- */

static int open_device(struct session *s, const char *node, const char *name)
{
	struct ib_device *device = ib_device_get_by_name(s->uverbs->rt, node, name);

	/* the core would not announce the removal of a device that it has not announced */
	if (!device || !ib_get_client_data(device, &client))
		return -ENOENT;
	s->device = device;
	s->state = SESSION_OPENED;
	return 0;
}

/* Return: true if the session continues */
static bool on_open(struct session *s, size_t bytes)
{
	struct abi_open open;
	const char *node;
	int ret = devices_open_is_sound(s->uverbs->in, bytes, &open);

	if (ret)
		goto refuse;
	ret = -ENOENT;
	node = devices_node(s->uverbs->rt, open.node);
	if (!node)
		goto refuse;
	if (open.kind == ABI_OPEN_LIST) {
		devices_answer_list(s->uverbs->rt, s->fd, node);
		return false;
	}
	ret = open.kind == ABI_OPEN_UVERBS ? open_device(s, node, open.device) : -EINVAL;
	ret = ret ?: quota_open(&s->quota, node);
	if (!ret)
		return endpoint_send(s->fd, 0, NULL, 0, NULL, 0) == 0;
refuse:
	if (ret == -EPROTONOSUPPORT)
		peer_log(&s->peer, "turned away: its libibverbs is of another version");
	endpoint_send(s->fd, ret, NULL, 0, NULL, 0);
	return false;
}

/* --- commands --- */

static const struct command *row(const struct command *table, unsigned int rows, u32 number)
{
	return number < rows && table[number].handler ? &table[number] : NULL;
}

static const struct command *find_command(u32 number)
{
	if (number - ABI_CMD_RESOLVE < uverbs_num_driver_commands)
		return &uverbs_driver_commands[number - ABI_CMD_RESOLVE];
	if (number & IB_USER_VERBS_CMD_FLAG_EXTENDED)
		return row(uverbs_ex_commands, uverbs_num_ex_commands,
			   number & ~IB_USER_VERBS_CMD_FLAG_EXTENDED);
	return row(uverbs_commands, uverbs_num_commands, number);
}

/* Return: the length of the headers of a command of @bytes; 0 if they state another length.
 * Extended commands count words of eight bytes, without the headers
 * (drivers/infiniband/core/uverbs_main.c, verify_hdr()). */
static size_t check_headers(const void *message, size_t bytes, const struct ib_uverbs_cmd_hdr *hdr)
{
	struct ib_uverbs_ex_cmd_hdr ex;
	size_t headers = sizeof(*hdr);

	if (!(hdr->command & IB_USER_VERBS_CMD_FLAG_EXTENDED))
		return hdr->in_words * 4u == bytes ? headers : 0;
	headers += sizeof(ex);
	if (bytes < headers)
		return 0;
	memcpy(&ex, (const char *)message + sizeof(*hdr), sizeof(ex));
	if (ex.cmd_hdr_reserved ||
	    headers + (hdr->in_words + (size_t)ex.provider_in_words) * 8 != bytes)
		return 0;
	return headers;
}

/* @in: the command, aligned to 8 */
static int run(struct session *s, struct call *call, const void *in, size_t bytes)
{
	const struct command *command;
	struct ib_uverbs_cmd_hdr hdr;
	size_t headers;

	if (bytes < sizeof(hdr))
		return -EINVAL;
	memcpy(&hdr, in, sizeof(hdr));
	if (s->state == SESSION_ZOMBIE)
		return -EIO;
	command = find_command(hdr.command);
	if (!command)
		return -EOPNOTSUPP;
	headers = check_headers(in, bytes, &hdr);
	if (!headers || bytes - headers < command->in_min)
		return -EINVAL;
	/* GET_CONTEXT must be the first command, and is allowed only once */
	if ((s->state == SESSION_OPENED) != (hdr.command == IB_USER_VERBS_CMD_GET_CONTEXT))
		return -EINVAL;
	call->in = (const char *)in + headers;
	call->number = hdr.command;
	call->room = hdr.out_words * (hdr.command & IB_USER_VERBS_CMD_FLAG_EXTENDED ? 8u : 4u);
	call->out_bytes = command->out_bytes;
	return command->handler(call);
}

/* Return: true if the session continues. *@answered: the program has an answer to read */
static bool on_command(struct session *s, size_t bytes, bool *answered)
{
	struct call call = {.session = s, .out = s->uverbs->out};
	int ret;

	memset(s->uverbs->out, 0, sizeof(s->uverbs->out));
	ret = run(s, &call, s->uverbs->in, bytes);
	*answered = !call.unanswered;
	if (call.unanswered)
		return true;
	if (ret)
		call.out_bytes = call.num_fds = 0;
	ret = endpoint_send(s->fd, ret, call.out, call.out_bytes, call.fds, call.num_fds);
	if (call.fds == call.driver_fds) /* the message carries duplicates of them */
		while (call.num_fds)
			close(call.driver_fds[--call.num_fds]);
	if (ret == -EAGAIN)
		peer_log(&s->peer, "disconnected: it does not read its answers");
	return ret == 0;
}

/* May another command follow in the message? */
static bool may_precede(u32 command)
{
	return command == ABI_CMD_MODIFIED || command == ABI_CMD_CREATED_QP;
}

/* Run the commands without an answer that stand before another command. Return: the bytes of what is left of
 * the message, at the front of @in */
static size_t run_told(struct session *s, char *in, size_t bytes)
{
	struct ib_uverbs_cmd_hdr hdr;
	size_t len;

	for (int i = 0; i < ABI_TOLD_FIRST_MAX && bytes >= sizeof(hdr); i++) {
		struct call call = {.session = s, .out = s->uverbs->out};

		memcpy(&hdr, in, sizeof(hdr));
		len = hdr.in_words * 4u;
		if (!may_precede(hdr.command) || len % 8 || len < sizeof(hdr) || len >= bytes)
			break;
		(void)run(s, &call, in, len);
		bytes -= len;
		memmove(in, in + len, bytes);
	}
	return bytes;
}

/* --- commands that are told by a ring --- */

static void run_record(void *session, void *record, size_t bytes)
{
	struct session *s = session;
	struct call call = {.session = s, .out = s->uverbs->out};
	struct ib_uverbs_cmd_hdr hdr = {0};
	size_t last = run_told(s, record, bytes);

	memcpy(&hdr, record, MIN(last, sizeof(hdr)));
	if (may_precede(hdr.command))
		(void)run(s, &call, record, last);
}

static void on_broken_ring(void *session)
{
	struct session *s = session;

	peer_log(&s->peer, "disconnected: what stands in its ring of commands is no record");
	shutdown(s->fd, SHUT_RDWR); /* which ends the session in a later turn */
}

int uverbs_open_told(struct session *s, int fds[ABI_TOLD_FDS])
{
	static const struct told_ops ops = {.verbs = true, .run = run_record, .broken = on_broken_ring};

	if (s->told)
		return -EEXIST;
	if (!s->process)
		s->process = told_process_get(s->uverbs->rt, s->peer.pid);
	return s->process ? told_open(s->process, &ops, s, fds, &s->told) : -ENOMEM;
}

static void on_message(struct rt_io *io, bool readable, bool writable)
{
	struct session *s = container_of(io, struct session, io);
	struct uverbs *u = s->uverbs;
	const int most = told_by_rings(s->process) ? 1 : MESSAGES_PER_TURN;
	bool answered = false;

	if (!told_run(s->process))
		return;
	/* A program that has an answer to read has sent nothing behind its command. */
	for (int i = 0; i < most && !answered; i++) {
		ssize_t n = rt_receive(s->fd, u->in, sizeof(u->in), MSG_DONTWAIT | MSG_TRUNC, NULL,
				       0);
		bool alive;

		if (n == -EAGAIN || n == -EINTR)
			return;
		alive = n > 0 && (size_t)n <= sizeof(u->in);
		if (n > 0 && !alive)
			peer_log(&s->peer, "disconnected: a command of %zd bytes", n);
		if (alive && s->state != SESSION_NEW)
			n = (ssize_t)run_told(s, (char *)u->in, (size_t)n);
		if (alive && destroys_qp(s, (size_t)n) && !is_quiet(s) &&
		    keep_command(s, (size_t)n))
			return;
		if (alive)
			alive = s->state == SESSION_NEW ? on_open(s, (size_t)n) :
							  on_command(s, (size_t)n, &answered);
		if (!alive) {
			end_session(s);
			return;
		}
	}
}

/* --- the endpoint --- */

static void drop_newcomer(struct quota_share *quota)
{
	close_session(container_of(quota, struct session, quota));
}

void uverbs_serve(struct uverbs *uverbs, int fd, const struct peer *peer)
{
	struct session *s = session_alloc(
		peer, fd, sessions_of_process(peer, &uverbs->sessions, struct session, peer.pid),
		FDS_OF_A_SESSION, sizeof(*s));

	if (!s)
		return;
	s->uverbs = uverbs;
	s->number = ++uverbs->last_number;
	s->fd = fd;
	s->peer = *peer;
	list_add_tail(&s->node, &uverbs->sessions);
	uverbs->num_sessions++;
	rt_work_init(&s->settle, settle);
	rt_io_init(uverbs->rt, &s->io, fd, on_message);
	rt_io_watch(&s->io, true, false);
	quota_arrive(&s->quota, uverbs->rt, fd, FDS_OF_A_SESSION, drop_newcomer);
}

static void on_accepted(void *ctx, int fd, const struct peer *peer)
{
	uverbs_serve(ctx, fd, peer);
}

unsigned int uverbs_num_sessions(const struct uverbs *uverbs)
{
	return uverbs->num_sessions;
}

struct session *uverbs_session_of(struct uverbs *uverbs, const uint8_t token[ABI_TOKEN_BYTES])
{
	struct session *s;

	list_for_each_entry(s, &uverbs->sessions, node)
		if (s->state == SESSION_ACTIVE && !memcmp(s->token, token, ABI_TOKEN_BYTES))
			return s;
	return NULL;
}

void uverbs_enforce_memlock(struct uverbs *uverbs)
{
	uverbs->memlock = true;
}

void uverbs_demand_net_raw(struct uverbs *uverbs)
{
	uverbs->net_raw = true;
}

bool uverbs_may_send_raw(const struct session *s)
{
	return !s->uverbs->net_raw || peer_may_send_raw(&s->peer);
}

/* The kernel accounts locked memory by process (mm->pinned_vm), over all devices. */
u64 uverbs_memlock_bytes(const struct session *s)
{
	struct session *other;
	u64 limit;

	if (!s->uverbs->memlock)
		return UINT64_MAX;
	limit = peer_memlock_bytes(&s->peer);
	if (limit == UINT64_MAX)
		return limit;
	list_for_each_entry(other, &s->uverbs->sessions, node)
		if (other != s && other->context && other->peer.pid == s->peer.pid)
			limit -= MIN(limit, other->context->locked_bytes);
	return limit;
}

int uverbs_create(struct rt *rt, const char *dir, struct uverbs **uverbs)
{
	struct uverbs *u;
	int ret;

	u = rt_zalloc(sizeof(*u));
	if (!u)
		return -ENOMEM;
	u->rt = rt;
	INIT_LIST_HEAD(&u->sessions);
	if (dir) {
		ret = listener_create(rt, dir, "uverbs", on_accepted, u, &u->listener);
		if (ret) {
			rt_free(u);
			return ret;
		}
		listener_refuse_fds(u->listener);
	}
	rt_set_local(rt, RT_LOCAL_UVERBS, u);
	ret = ib_register_client(rt, &client);
	if (ret)
		goto undo_local;
	*uverbs = u;
	return 0;

undo_local:
	rt_set_local(rt, RT_LOCAL_UVERBS, NULL);
	if (u->listener)
		listener_destroy(u->listener);
	rt_free(u);
	return ret;
}

void uverbs_destroy(struct uverbs *u)
{
	listener_destroy(u->listener);
	while (!list_empty(&u->sessions))
		close_session(list_first_entry(&u->sessions, struct session, node));
	ib_unregister_client(u->rt, &client);
	rt_set_local(u->rt, RT_LOCAL_UVERBS, NULL);
	rt_free(u);
}
