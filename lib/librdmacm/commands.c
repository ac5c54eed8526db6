/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands that softibd answers, commands that it is told, and which events the program has taken.
 */
#include "commands.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi/endpoint.h"

int commands_open(struct commands *c, int control, int page_fd)
{
	int ret = ahead_open(&c->ahead, page_fd);

	if (ret) {
		ahead_close(&c->ahead);
		return ret;
	}
	ret = resolved_open(&c->resolved);
	if (ret) {
		ahead_close(&c->ahead);
		return ret;
	}
	c->control = control;
	c->told.len = c->asked_until = c->num_granted = 0;
	pthread_mutex_init(&c->lock, NULL);
	return 0;
}

void commands_close(struct commands *c)
{
	close(c->control);
	abi_told_unmap(&c->ring);
	ahead_close(&c->ahead);
	resolved_close(&c->resolved);
	pthread_mutex_destroy(&c->lock);
}

/* --- commands that softibd does not answer --- */

/* Ask for a ring, or, if there is one, let softibd run all that stands in it. Context: lock */
static void ask_for_ring(struct commands *c, int fds[ABI_TOLD_FDS])
{
	const struct rdma_ucm_cmd_hdr hdr = {.cmd = ABI_CM_TOLD_RING};

	(void)abi_exchange_fds(c->control, &(struct iovec){(void *)&hdr, sizeof(hdr)}, 1, NULL, 0, fds, ABI_TOLD_FDS);
}

/* Context: lock. Return: 0; -ENODEV: softibd is gone */
static int send_message(struct commands *c, const struct iovec *parts, size_t num)
{
	int fds[ABI_TOLD_FDS] = {-1, -1};

	if (abi_sendv_fds(c->control, parts, num, NULL, 0, 0))
		return -ENODEV;
	if (abi_told_asks(&c->ring)) {
		ask_for_ring(c, fds);
		abi_told_map(&c->ring, fds);
	}
	return 0;
}

/* Context: lock. Return: as send_message() */
static int send_told(struct commands *c, const struct iovec *parts, size_t num)
{
	int fds[ABI_TOLD_FDS];

	if (!abi_told_usable(&c->ring))
		return send_message(c, parts, num);
	if (!abi_told_put(&c->ring, parts, num)) {
		ask_for_ring(c, fds);
		if (!abi_told_put(&c->ring, parts, num))
			return -ENODEV;
	}
	abi_told_flush(&c->ring);
	return 0;
}

/* Keep a command until the next one. Context: lock. Return: as send_told() */
static int tell_later(struct commands *c, uint32_t cmd, const void *body, size_t bytes)
{
	const struct rdma_ucm_cmd_hdr hdr = {.cmd = cmd | ABI_CM_TOLD, .in = (uint16_t)bytes};
	int ret = 0;

	if (c->told.len + sizeof(hdr) + bytes > sizeof(c->told.bytes)) {
		ret = send_told(c, &(struct iovec){c->told.bytes, c->told.len}, 1);
		c->told.len = 0;
	}
	memcpy(c->told.bytes + c->told.len, &hdr, sizeof(hdr));
	memcpy(c->told.bytes + c->told.len + sizeof(hdr), body, bytes);
	c->told.len += sizeof(hdr) + bytes;
	return ret;
}

/* --- commands --- */

/* the value that an option's command points to goes behind it */
static size_t option_of(const struct rdma_ucm_cmd_hdr *hdr, struct iovec *value)
{
	struct rdma_ucm_set_option option;

	if (hdr->cmd != RDMA_USER_CM_CMD_SET_OPTION || hdr->in < sizeof(option))
		return 0;
	memcpy(&option, hdr + 1, sizeof(option));
	*value = (struct iovec){(void *)(uintptr_t)option.optval, option.optlen};
	return 1;
}

/* What the program has done to its queue pairs, softibd is told first. */
static void tell_verbs(const struct commands *c)
{
	if (c->tell_now)
		c->tell_now();
}

/* Return: bytes of the answer; -errno. Context: lock */
static ssize_t ask(struct commands *c, const void *command, size_t bytes, struct answer *answer)
{
	struct iovec parts[3] = {{c->told.bytes, c->told.len}, {(void *)command, bytes}};
	size_t num = 2 + option_of(command, &parts[2]);
	ssize_t n;

	tell_verbs(c);
	n = abi_exchange(c->control, parts, num, answer->body, sizeof(answer->body));
	c->told.len = 0;
	return n;
}

/* Commands that softibd may accept ahead: where the number of the id stands, and, for those that
 * have them, the parameters of the connection with @most bytes of private data */
static const struct certain {
	uint32_t cmd;
	size_t bytes, id_at, param_at, most;
} certain[] = {
	{RDMA_USER_CM_CMD_RESOLVE_ROUTE, sizeof(struct rdma_ucm_resolve_route),
	 offsetof(struct rdma_ucm_resolve_route, id), 0, 0},
	{RDMA_USER_CM_CMD_CONNECT, offsetof(struct rdma_ucm_connect, ece),
	 offsetof(struct rdma_ucm_connect, id), offsetof(struct rdma_ucm_connect, conn_param), 56},
	{RDMA_USER_CM_CMD_ACCEPT, offsetof(struct rdma_ucm_accept, ece),
	 offsetof(struct rdma_ucm_accept, id), offsetof(struct rdma_ucm_accept, conn_param), 196},
};

/* Return: false: softibd may refuse the command. @id: set to the number of its id */
static bool is_certain(struct commands *c, const struct rdma_ucm_cmd_hdr *hdr, size_t bytes, uint32_t *id)
{
	const char *body = (const char *)(hdr + 1);
	const struct certain *row = certain;
	struct rdma_ucm_conn_param param;

	while (row->cmd != hdr->cmd)
		if (++row == certain + sizeof(certain) / sizeof(certain[0]))
			return false;
	if (hdr->in < row->bytes || hdr->in % 8 || hdr->in != bytes - sizeof(*hdr))
		return false;
	memcpy(id, body + row->id_at, sizeof(*id));
	if (!ahead_accepts(&c->ahead, *id, hdr->cmd))
		return false;
	if (hdr->cmd == RDMA_USER_CM_CMD_RESOLVE_ROUTE)
		return true;
	memcpy(&param, body + row->param_at, sizeof(param));
	return (param.valid || hdr->cmd == RDMA_USER_CM_CMD_ACCEPT) && param.private_data_len <= row->most;
}

/* Return: as send_told(). Context: lock */
static int tell(struct commands *c, const struct rdma_ucm_cmd_hdr *hdr, uint32_t id)
{
	struct rdma_ucm_cmd_hdr head = {.cmd = hdr->cmd | ABI_CM_TOLD, .in = hdr->in};
	const struct iovec parts[] = {{c->told.bytes, c->told.len}, {&head, sizeof(head)},
				      {(void *)(hdr + 1), hdr->in}};

	tell_verbs(c);
	ahead_drop(&c->ahead, id);
	c->told.len = 0;
	return send_told(c, parts, 3);
}

/* RESOLVE_ADDR. If softibd fails to resolve what it has resolved before, the program learns so by an event,
 * as of an address that nobody has. Context: lock. Return: as commands_exchange() */
static ssize_t resolve_addr(struct commands *c, const struct rdma_ucm_cmd_hdr *hdr, size_t bytes,
			    struct answer *answer)
{
	const uint32_t all = abi_ahead_all_changes(c->ahead.page);
	struct rdma_ucm_resolve_addr cmd;
	bool fresh;
	ssize_t n;

	if (hdr->in != sizeof(cmd) || bytes != sizeof(*hdr) + sizeof(cmd))
		return ask(c, hdr, bytes, answer);
	memcpy(&cmd, hdr + 1, sizeof(cmd));
	fresh = resolved_takes(&c->resolved, cmd.id);
	if (fresh && resolved_before(&c->resolved, &cmd, all))
		return tell(c, hdr, cmd.id);
	n = ask(c, hdr, bytes, answer);
	if (fresh && n >= 0)
		resolved_keep(&c->resolved, &cmd, all);
	return n;
}

/* --- ids that softibd grants --- */

/* Would softibd create such an id, apart from a lack of memory? */
static bool is_known(const struct rdma_ucm_create_id *cmd)
{
	return cmd->ps == RDMA_PS_TCP || cmd->ps == RDMA_PS_UDP || cmd->ps == RDMA_PS_IPOIB;
}

/* CREATE_ID. Nobody hears of an id before its next command, so softibd is told then. Context: lock.
 * Return: as commands_exchange() */
static ssize_t create_id(struct commands *c, const struct rdma_ucm_cmd_hdr *hdr, size_t bytes,
			 struct answer *answer)
{
	struct rdma_ucm_create_id cmd = {0};
	struct abi_cm_created created = {0};
	ssize_t n;

	if (bytes == sizeof(*hdr) + sizeof(cmd) && hdr->in == sizeof(cmd))
		memcpy(&cmd, hdr + 1, sizeof(cmd));
	if (is_known(&cmd) && c->num_granted) {
		c->num_granted--;
		cmd.response = created.id = c->granted++;
		memcpy(answer->body, &created.id, sizeof(created.id));
		resolved_created(&c->resolved, created.id, cmd.ps);
		n = tell_later(c, hdr->cmd, &cmd, sizeof(cmd));
		return n ? n : (ssize_t)sizeof(created.id);
	}
	c->num_granted = 0;
	n = ask(c, hdr, bytes, answer);
	if (n < (ssize_t)sizeof(created))
		return n < 0 ? n : -EPROTO;
	memcpy(&created, answer->body, sizeof(created));
	resolved_created(&c->resolved, created.id, cmd.ps);
	c->granted = created.first;
	c->num_granted = created.count;
	return sizeof(created.id);
}

static ssize_t exchange(struct commands *c, const struct rdma_ucm_cmd_hdr *hdr, size_t bytes,
			struct answer *answer)
{
	ssize_t n = ahead_find(&c->ahead, hdr, bytes, answer->body, sizeof(answer->body));
	uint32_t id;

	if (n >= 0)
		return n;
	if (hdr->cmd == RDMA_USER_CM_CMD_CREATE_ID)
		return create_id(c, hdr, bytes, answer);
	if (hdr->cmd == RDMA_USER_CM_CMD_RESOLVE_ADDR)
		return resolve_addr(c, hdr, bytes, answer);
	if (is_certain(c, hdr, bytes, &id))
		return tell(c, hdr, id);
	resolved_touched(&c->resolved);
	return ask(c, hdr, bytes, answer);
}

ssize_t commands_exchange(struct commands *c, const struct rdma_ucm_cmd_hdr *hdr, size_t bytes,
			  struct answer *answer)
{
	ssize_t n;

	pthread_mutex_lock(&c->lock);
	n = exchange(c, hdr, bytes, answer);
	pthread_mutex_unlock(&c->lock);
	return n;
}

/* --- events --- */

/* Message numbers are compared as serial numbers. */
static bool is_after(uint32_t number, uint32_t other)
{
	return (int32_t)(number - other) > 0;
}

/* Context: lock */
static void tell_taken(struct commands *c, uint32_t number)
{
	const struct abi_cm_taken taken = {.number = number};

	_Static_assert(sizeof(c->told.bytes) / (sizeof(struct rdma_ucm_cmd_hdr) + sizeof(taken)) <
		       ABI_CM_TOLD_MAX, "another one may follow");
	tell_later(c, ABI_CM_TAKEN, &taken, sizeof(taken));
}

/* Does the message say which event comes next? Then softibd hears that it was taken. An
 * older one only says that there was an event. Context: lock */
static bool take(struct commands *c, const struct abi_cm_event *event)
{
	if (!is_after(event->number, c->asked_until))
		return false;
	tell_taken(c, event->number);
	return true;
}

/* softibd may give an event whose message another thread has in its hands and asks about next. */
static ssize_t ask_for_event(struct commands *c, const struct rdma_ucm_cmd_hdr *hdr, size_t bytes,
			     struct answer *answer)
{
	const struct abi_cm_event *event = (const void *)answer->body;
	ssize_t n = ask(c, hdr, bytes, answer);

	if (n >= 0 && n < (ssize_t)sizeof(*event))
		return -EPROTO;
	if (n >= 0 && is_after(event->number, c->asked_until))
		c->asked_until = event->number;
	return n;
}

/* @bytes: what softibd has answered ahead. Context: lock */
static void keep(struct commands *c, const void *bytes, size_t len)
{
	const struct abi_flow_answer *flow;
	struct abi_ahead head;

	ahead_keep(&c->ahead, bytes, len);
	if (!c->expect_flow || len < sizeof(head))
		return;
	memcpy(&head, bytes, sizeof(head));
	flow = ahead_flow(&c->ahead, head.id);
	if (flow)
		c->expect_flow(flow);
}

ssize_t commands_take_event(struct commands *c, const struct rdma_ucm_cmd_hdr *hdr, size_t bytes,
			    struct answer *answer, ssize_t n)
{
	const struct abi_cm_event *event = (const void *)answer->body;

	pthread_mutex_lock(&c->lock);
	if (n < (ssize_t)sizeof(*event) || !take(c, event))
		n = ask_for_event(c, hdr, bytes, answer);
	if (n > 0)
		keep(c, event + 1, (size_t)n - sizeof(*event));
	pthread_mutex_unlock(&c->lock);
	return n < 0 ? n : (ssize_t)sizeof(event->resp);
}

void commands_distrust(struct commands *c, uint32_t last)
{
	pthread_mutex_lock(&c->lock);
	if (is_after(last, c->asked_until))
		c->asked_until = last;
	pthread_mutex_unlock(&c->lock);
}
