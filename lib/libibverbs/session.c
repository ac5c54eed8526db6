/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The command socket: what write() on /dev/infiniband/uverbsN is to the
 * kernel's verbs (src/abi/session.h). One command and its answer at a time;
 * an answer may carry descriptors. Commands that are not answered go by a
 * ring if the program tells often (src/abi/told.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/fds.h"
#include "abi/await.h"
#include "soft.h"

#define COMMAND_MAX 1024

/* A signal may interrupt a call before it did anything: repeat it. */
static ssize_t send_message(int sock, const struct iovec *iov, size_t iovlen)
{
	struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = iovlen};
	ssize_t n;

	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/*
 * receive_reply() - the answer to a command
 * @fds: of the answer, the caller's to close, whatever is returned; *@num_fds: how many there
 *       may be, and on return are. @num_fds may be NULL: none
 *
 * Return: bytes behind struct abi_reply, or -errno: the command's own error,
 * or -EIO when softibd is gone
 */
static ssize_t receive_reply(int sock, void *body, size_t body_bytes, int *fds, unsigned *num_fds)
{
	struct abi_reply reply;
	struct iovec parts[2] = {{&reply, sizeof(reply)}, {body, body_bytes}};
	unsigned max = num_fds ? *num_fds : 0, got = 0;
	ssize_t n = abi_receive_answer(sock, parts, 2, fds, max);

	while (got < max && fds[got] >= 0)
		got++;
	if (num_fds)
		*num_fds = got;
	if (n < (ssize_t)sizeof(reply))
		return -EIO;
	if (reply.error)
		return abi_reply_error(&reply);
	return MIN(n - (ssize_t)sizeof(reply), (ssize_t)body_bytes);
}

/**
 * session_connect() - connect to the "uverbs" socket of a fabric
 * @open: the first message, saying what this connection is for
 *
 * Return: the socket; -ENAMETOOLONG; -ECONNREFUSED when no softibd listens in
 * @dir; -EACCES when it is another user's
 */
int session_connect(const char *dir, const struct abi_open *open)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct iovec iov = {(void *)open, sizeof(*open)};
	int sock, rc;

	if (snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/uverbs", dir) >=
	    (int)sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	if (connect(sock, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		/* no socket, or one on which nobody listens, makes no difference to users */
		rc = errno == ENOENT ? -ECONNREFUSED : -errno;
		goto undo_socket;
	}
	rc = (int)send_message(sock, &iov, 1);
	if (rc >= 0 || rc == -EPIPE) /* softibd refused the connection, and its answer says why */
		return sock;
undo_socket:
	close(sock);
	return rc;
}

/**
 * session_list() - the adapters of a node
 * @infos: set to an array to be freed by the caller
 * Return: how many; -ETIMEDOUT softibd does not answer (said); -errno
 */
int session_list(const char *dir, const char *node, struct abi_device_info **infos)
{
	struct abi_open open = {.magic = ABI_MAGIC, .version = ABI_VERSION, .kind = ABI_OPEN_LIST};
	struct abi_device_info *list;
	ssize_t n;
	int sock;

	if (strlen(node) >= sizeof(open.node))
		return -ENAMETOOLONG;
	strcpy(open.node, node);
	sock = session_connect(dir, &open);
	if (sock < 0)
		return sock;
	list = malloc(ABI_MESSAGE_MAX);
	n = list ? abi_await(sock, "libibverbs") : -ENOMEM;
	if (!n)
		n = receive_reply(sock, list, ABI_MESSAGE_MAX, NULL, NULL);
	close(sock);
	if (n < 0) {
		free(list);
		return (int)n;
	}
	*infos = list;
	return (int)(n / (ssize_t)sizeof(*list));
}

/**
 * session_get_context() - make the connection a device's context
 * @fds: in the order of enum abi_context_fd; the caller's to close
 * Return: 0; -EPROTO when softibd answers something else; -ETIMEDOUT when it does
 * not (said); its -errno
 */
int session_get_context(int sock, struct abi_context_resp *resp, int fds[ABI_CONTEXT_FDS])
{
	struct ib_uverbs_get_context req = {0};
	struct ib_uverbs_cmd_hdr hdr = {
		.command = IB_USER_VERBS_CMD_GET_CONTEXT,
		.in_words = (sizeof(hdr) + sizeof(req)) / 4,
		.out_words = sizeof(*resp) / 4,
	};
	struct iovec iov[2] = {{&hdr, sizeof(hdr)}, {&req, sizeof(req)}};
	unsigned num_fds = ABI_CONTEXT_FDS;
	ssize_t n;

	/* softibd answers the opening message itself, then the command */
	n = abi_await(sock, "libibverbs");
	if (!n)
		n = receive_reply(sock, NULL, 0, NULL, NULL);
	if (n < 0)
		return (int)n;
	n = send_message(sock, iov, 2);
	if (n < 0)
		return (int)n;
	n = receive_reply(sock, resp, sizeof(*resp), fds, &num_fds);
	if (n == (ssize_t)sizeof(*resp) && num_fds == ABI_CONTEXT_FDS)
		return 0;
	while (num_fds)
		close(fds[--num_fds]);
	/* the answer came without all of its descriptors: this process has too many */
	if (n == (ssize_t)sizeof(*resp))
		return -EMFILE;
	return n < 0 ? (int)n : -EPROTO;
}

static struct ib_uverbs_cmd_hdr header(uint32_t command, size_t req_bytes, size_t resp_bytes)
{
	return (struct ib_uverbs_cmd_hdr){
		.command = command,
		.in_words = (uint16_t)((sizeof(struct ib_uverbs_cmd_hdr) + req_bytes) / 4),
		.out_words = (uint16_t)(resp_bytes / 4),
	};
}

#define PARTS_MAX 3 /* of a command */

/* Send a command, and before it those that are kept (session_tell_later()). Context: sock_lock
 * Return: as send_message() */
static ssize_t send_command(struct soft_context *ctx, int sock, const struct iovec *iov, size_t iovlen)
{
	struct iovec parts[1 + PARTS_MAX] = {{ctx->told.message, ctx->told.bytes}};

	if (sock != ctx->sock || !ctx->told.bytes)
		return send_message(sock, iov, iovlen);
	memcpy(parts + 1, iov, iovlen * sizeof(*iov));
	ctx->told.bytes = ctx->told.num = 0;
	return send_message(sock, parts, 1 + iovlen);
}

static void flush_ring(struct soft_context *ctx)
{
	if (abi_told_usable(&ctx->ring))
		abi_told_flush(&ctx->ring);
}

/*
 * exchange_locked() - a command and its answer, on the context's session or the child's own
 * @fds: of the answer, the caller's to close; *@num_fds: how many there may be, and on return are
 * Context: sock_lock
 */
static int exchange_locked(struct soft_context *ctx, int sock, const struct iovec *iov, size_t iovlen,
			   void *resp, size_t resp_bytes, int *fds, unsigned *num_fds)
{
	const unsigned max_fds = *num_fds;
	char spare[COMMAND_MAX];
	ssize_t n;

	*num_fds = 0;
	if (sock < 0 || ctx->dead)
		return -EIO;
	if (sock == ctx->sock)
		flush_ring(ctx);
	n = send_command(ctx, sock, iov, iovlen);
	if (n >= 0) {
		*num_fds = max_fds;
		n = receive_reply(sock, resp ? resp : spare, resp ? resp_bytes : sizeof(spare), fds, num_fds);
	}
	if (n == -EPIPE || n == -ECONNRESET)
		n = -EIO;
	if (n < 0)
		return (int)n;
	return resp && (size_t)n < resp_bytes ? -EPROTO : 0;
}

/* exchange_locked(). @fds: NULL: the answer has none */
static int exchange(struct soft_context *ctx, int sock, const struct iovec *iov, size_t iovlen,
		    void *resp, size_t resp_bytes, int *fds, unsigned *num_fds)
{
	unsigned none = 0;
	int state = lock_for_calls(&ctx->sock_lock);
	int rc = exchange_locked(ctx, sock, iov, iovlen, resp, resp_bytes, fds, fds ? num_fds : &none);

	unlock_after_calls(&ctx->sock_lock, state);
	return rc;
}

/**
 * session_resolve() - ABI_CMD_RESOLVE: is there a lane for a flow?
 * @modify: to be done before, by ABI_CMD_CONNECT; NULL: nothing
 * @fds: of a lane that is new, the caller's; *@num_fds: 0 or 2. 0 as well when
 *       we have no descriptors left for them
 * Return: 0; -errno
 */
int session_resolve(struct soft_context *ctx, const struct ib_uverbs_modify_qp *modify,
		    const struct abi_resolve *key, struct abi_resolve_resp *resp, int fds[2],
		    unsigned *num_fds)
{
	const size_t modify_bytes = modify ? sizeof(*modify) : 0;
	struct ib_uverbs_cmd_hdr hdr = {
		.command = modify ? ABI_CMD_CONNECT : ABI_CMD_RESOLVE,
		.in_words = (uint16_t)((sizeof(hdr) + modify_bytes + sizeof(*key)) / 4),
		.out_words = sizeof(*resp) / 4,
	};
	struct iovec iov[3] = {{&hdr, sizeof(hdr)}, {(void *)modify, modify_bytes},
			       {(void *)key, sizeof(*key)}};
	int rc = exchange(ctx, ctx->forked ? -1 : ctx->sock, iov, 3, resp, sizeof(*resp), fds,
			  num_fds);

	while (*num_fds && (rc || *num_fds == 1))
		close(fds[--*num_fds]);
	return rc;
}

/* A child has no access to its parent's session. */
static int own_sock(const struct soft_context *ctx)
{
	return ctx->forked ? ctx->child_sock : ctx->sock;
}

/**
 * session_command() - one command of <rdma/ib_user_verbs.h> and its answer
 * @req: the command's struct, without struct ib_uverbs_cmd_hdr
 * @resp: filled with @resp_bytes bytes; NULL when the command answers nothing
 *
 * Context: may wait for softibd; takes sock_lock.
 * Return: 0; -EIO when softibd is gone; what the command returned
 */
int session_command(struct soft_context *ctx, uint32_t command, const void *req,
		    size_t req_bytes, void *resp, size_t resp_bytes)
{
	struct ib_uverbs_cmd_hdr hdr = header(command, req_bytes, resp_bytes);
	struct iovec iov[2] = {{&hdr, sizeof(hdr)}, {(void *)req, req_bytes}};

	return exchange(ctx, ctx->forked ? -1 : ctx->sock, iov, 2, resp, resp_bytes, NULL, NULL);
}

/* --- commands that are not answered --- */

/* Ask for a ring, or, if there is one, let softibd run all that stands in it. Context: sock_lock */
static void ask_for_ring(struct soft_context *ctx, int fds[ABI_TOLD_FDS])
{
	struct ib_uverbs_cmd_hdr hdr = header(ABI_CMD_TOLD_RING, 0, 0);
	unsigned num_fds = ABI_TOLD_FDS;

	exchange_locked(ctx, ctx->sock, &(struct iovec){&hdr, sizeof(hdr)}, 1, NULL, 0, fds, &num_fds);
}

/* The context was told by a message, which programs of the RDMA CM do often. Context: sock_lock */
static void after_message(struct soft_context *ctx)
{
	int fds[ABI_TOLD_FDS] = {-1, -1};

	if (!context_tells_now() || !abi_told_asks(&ctx->ring))
		return;
	ask_for_ring(ctx, fds);
	abi_told_map(&ctx->ring, fds);
}

/* Put a command into the ring, which is usable. Context: sock_lock. Return: 0; -EIO: softibd is gone */
static int put_told(struct soft_context *ctx, const struct iovec *parts, size_t num)
{
	int fds[ABI_TOLD_FDS];

	if (abi_told_put(&ctx->ring, parts, num))
		return 0;
	ask_for_ring(ctx, fds);
	return abi_told_put(&ctx->ring, parts, num) ? 0 : -EIO;
}

/* Context: sock_lock */
static int tell_locked(struct soft_context *ctx, uint32_t command, const void *req, size_t req_bytes)
{
	struct ib_uverbs_cmd_hdr hdr = header(command, req_bytes, 0);
	struct iovec iov[2] = {{&hdr, sizeof(hdr)}, {(void *)req, req_bytes}};

	if (ctx->forked || ctx->dead)
		return -EIO;
	if (abi_told_usable(&ctx->ring)) {
		int rc = put_told(ctx, iov, 2);

		flush_ring(ctx);
		return rc;
	}
	if (send_command(ctx, ctx->sock, iov, 2) < 0)
		return -EIO;
	after_message(ctx);
	return 0;
}

/**
 * session_tell() - a command that softibd does not answer
 * Context: as session_command(), but waits for nobody unless the socket, or the ring, is full
 * Return: 0; -EIO when softibd is gone
 */
int session_tell(struct soft_context *ctx, uint32_t command, const void *req, size_t req_bytes)
{
	int state = lock_for_calls(&ctx->sock_lock);
	int rc = tell_locked(ctx, command, req, req_bytes);

	unlock_after_calls(&ctx->sock_lock, state);
	return rc;
}

/* Send what is kept. Context: sock_lock. Return: as send_message() */
static ssize_t send_kept(struct soft_context *ctx)
{
	const struct iovec kept = {ctx->told.message, ctx->told.bytes};
	ssize_t n;

	if (!kept.iov_len)
		return 0;
	ctx->told.bytes = ctx->told.num = 0;
	n = send_message(ctx->sock, &kept, 1);
	after_message(ctx);
	return n;
}

/* Context: sock_lock */
static int keep_locked(struct soft_context *ctx, uint32_t command, const void *req, size_t req_bytes)
{
	const struct ib_uverbs_cmd_hdr hdr = header(command, req_bytes, 0);
	const size_t bytes = sizeof(hdr) + req_bytes;
	ssize_t n = 0;
	char *end;

	if (ctx->forked || ctx->dead)
		return -EIO;
	if (ctx->told.num == ABI_TOLD_FIRST_MAX || ctx->told.bytes + bytes > sizeof(ctx->told.message))
		n = send_kept(ctx);
	if (abi_told_usable(&ctx->ring)) /* nothing is kept any more */
		return put_told(ctx, (struct iovec[]){{(void *)&hdr, sizeof(hdr)}, {(void *)req, req_bytes}}, 2);
	end = (char *)ctx->told.message + ctx->told.bytes;
	memcpy(end, &hdr, sizeof(hdr));
	memcpy(end + sizeof(hdr), req, req_bytes);
	ctx->told.bytes += bytes;
	ctx->told.num++;
	return n < 0 ? -EIO : 0;
}

/**
 * session_tell_later() - session_tell() of what softibd need not know before the next command
 * @command: ABI_CMD_MODIFIED or ABI_CMD_CREATED_QP, which may precede another one in a message
 * Context: as session_tell()
 * Return: 0; -EIO when softibd is gone
 */
int session_tell_later(struct soft_context *ctx, uint32_t command, const void *req, size_t req_bytes)
{
	int state = lock_for_calls(&ctx->sock_lock);
	int rc = keep_locked(ctx, command, req, req_bytes);

	unlock_after_calls(&ctx->sock_lock, state);
	return rc;
}

/** session_tell_now() - send what session_tell_later() keeps. Context: as session_tell() */
void session_tell_now(struct soft_context *ctx)
{
	int state;

	if (ctx->forked || ctx->dead)
		return;
	state = lock_for_calls(&ctx->sock_lock);
	flush_ring(ctx);
	send_kept(ctx);
	unlock_after_calls(&ctx->sock_lock, state);
}

/**
 * session_command_own() - session_command(); in a child with a session of its own, by that
 * @fd: set to the descriptor that the answer carries, the caller's to close; -1: there was no
 *      room for it. NULL: the answer carries none
 */
int session_command_own(struct soft_context *ctx, uint32_t command, const void *req,
			size_t req_bytes, void *resp, size_t resp_bytes, int *fd)
{
	struct ib_uverbs_cmd_hdr hdr = header(command, req_bytes, resp_bytes);
	struct iovec iov[2] = {{&hdr, sizeof(hdr)}, {(void *)req, req_bytes}};
	unsigned num_fds = 1;
	int rc = exchange(ctx, own_sock(ctx), iov, 2, resp, resp_bytes, fd, &num_fds);

	if (!fd)
		return rc;
	if (rc && num_fds)
		close(*fd);
	if (rc || !num_fds)
		*fd = -1;
	return rc;
}

/* --- queue pairs, which softibd may have granted (ABI_CMD_CREATED_QP) --- */

/* Context: sock_lock. Return: false: softibd must be asked */
static bool take_granted(struct soft_context *ctx, const struct ib_uverbs_create_qp *req,
			 struct ib_uverbs_create_qp_resp *resp)
{
	const struct abi_granted_qp *next;

	if (req->qp_type != IBV_QPT_RC || !ctx->granted.num || ctx->granted.send_sge != req->max_send_sge ||
	    ctx->granted.inline_asked != req->max_inline_data ||
	    atomic_load_explicit(&ctx->devpage->creation_faults, memory_order_relaxed))
		return false;
	next = &ctx->granted.qp[--ctx->granted.num];
	resp->qp_handle = next->handle;
	resp->qpn = next->qpn;
	resp->max_inline_data = ctx->granted.inline_given;
	return true;
}

/* Context: sock_lock */
static void keep_grant(struct soft_context *ctx, const struct ib_uverbs_create_qp *req,
		       const struct abi_created_qp *created)
{
	if (created->count > ABI_QPS_GRANTED)
		return;
	for (unsigned i = 0; i < created->count; i++) /* the first one is taken first */
		ctx->granted.qp[created->count - 1 - i] = created->granted[i];
	ctx->granted.num = created->count;
	ctx->granted.send_sge = req->max_send_sge;
	ctx->granted.inline_asked = req->max_inline_data;
	ctx->granted.inline_given = created->resp.max_inline_data;
}

/* Context: sock_lock */
static int tell_created(struct soft_context *ctx, const struct ib_uverbs_create_qp *req, uint32_t handle)
{
	struct abi_create_granted_qp told = {.cmd = *req, .handle = handle};

	return (context_tells_now() ? keep_locked : tell_locked)(ctx, ABI_CMD_CREATED_QP, &told, sizeof(told));
}

/* Context: sock_lock */
static int ask_to_create(struct soft_context *ctx, const struct ib_uverbs_create_qp *req,
			 struct ib_uverbs_create_qp_resp *resp)
{
	struct abi_created_qp created;
	struct ib_uverbs_cmd_hdr hdr = header(IB_USER_VERBS_CMD_CREATE_QP, sizeof(*req), sizeof(created));
	struct iovec iov[2] = {{&hdr, sizeof(hdr)}, {(void *)req, sizeof(*req)}};
	unsigned none = 0;
	int rc;

	ctx->granted.num = 0;
	rc = exchange_locked(ctx, ctx->forked ? -1 : ctx->sock, iov, 2, &created, sizeof(created), NULL, &none);
	if (rc)
		return rc;
	*resp = created.resp;
	keep_grant(ctx, req, &created);
	return 0;
}

/**
 * session_create_qp() - IB_USER_VERBS_CMD_CREATE_QP
 * @req: within the limits of the device
 * @granted: true: softibd need not be asked if it has granted such a QP; set to whether it was not
 * Context: as session_command()
 * Return: as session_command()
 */
int session_create_qp(struct soft_context *ctx, const struct ib_uverbs_create_qp *req,
		      struct ib_uverbs_create_qp_resp *resp, bool *granted)
{
	int state = lock_for_calls(&ctx->sock_lock), rc;

	*granted = *granted && !ctx->forked && take_granted(ctx, req, resp);
	rc = *granted ? tell_created(ctx, req, resp->qp_handle) : ask_to_create(ctx, req, resp);
	unlock_after_calls(&ctx->sock_lock, state);
	return rc;
}

/**
 * session_of_child() - give a forked child a session with softibd that is its own, once
 * Return: 0; -errno
 */
int session_of_child(struct soft_context *ctx)
{
	int fds[ABI_CONTEXT_FDS], state, sock, rc = 0;
	struct abi_context_resp resp;

	state = lock_for_calls(&ctx->sock_lock);
	if (ctx->child_sock >= 0)
		goto unlock;
	sock = context_connect(ctx->device);
	rc = sock < 0 ? sock : session_get_context(sock, &resp, fds);
	if (!rc) {
		ctx->child_sock = sock;
		for (int i = 0; i < ABI_CONTEXT_FDS; i++) /* it moves no data */
			close(fds[i]);
	} else if (sock >= 0) {
		close(sock);
	}
unlock:
	unlock_after_calls(&ctx->sock_lock, state);
	return rc;
}

/** session_command_ex() - session_command() of IB_USER_VERBS_EX_CMD_*; both structs are
 *  multiples of eight bytes */
int session_command_ex(struct soft_context *ctx, uint32_t command, const void *req,
		       size_t req_bytes, void *resp, size_t resp_bytes)
{
	struct ib_uverbs_cmd_hdr hdr = {
		.command = command | IB_USER_VERBS_CMD_FLAG_EXTENDED,
		.in_words = (uint16_t)(req_bytes / 8),
		.out_words = (uint16_t)(resp_bytes / 8),
	};
	struct ib_uverbs_ex_cmd_hdr ex = {0};
	struct iovec iov[3] = {{&hdr, sizeof(hdr)}, {&ex, sizeof(ex)}, {(void *)req, req_bytes}};

	return exchange(ctx, ctx->forked ? -1 : ctx->sock, iov, 3, resp, resp_bytes, NULL, NULL);
}

/**
 * session_destroy() - session_command() for an object that goes
 *
 * Where there is no session any more (softibd died, or this is a forked
 * child) the object is gone already.
 */
int session_destroy(struct soft_context *ctx, uint32_t command, const void *req,
		    size_t req_bytes, void *resp, size_t resp_bytes)
{
	int rc = session_command(ctx, command, req, req_bytes, resp, resp_bytes);

	return rc == -EIO ? 0 : rc;
}

/**
 * session_completion() - ABI_CMD_COMPLETION: eng_config.completion_fault
 *
 * Context: under the engine's lock, and takes sock_lock: nobody wants the
 * engine's while he has that one.
 * Return: enum ibv_wc_status; ENG_CQ_OVERRUN
 */
int session_completion(void *ctx, uint32_t qpn, enum ibv_wc_opcode opcode)
{
	struct abi_completion req = {.qpn = qpn, .opcode = opcode};
	struct abi_completion_resp resp;

	if (session_command(ctx, ABI_CMD_COMPLETION, &req, sizeof(req), &resp, sizeof(resp)))
		return IBV_WC_SUCCESS;
	return resp.status == ABI_COMPLETION_OVERRUN ? ENG_CQ_OVERRUN : resp.status;
}
