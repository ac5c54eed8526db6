/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Sessions of programs that have two sockets: opening, commands, the end. devfile.h says what they are for. */
#include "access/devfile.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "access/devices.h"
#include "runtime/posix/closer.h"

#define COMMANDS_PER_TURN 16
#define FDS_OF_A_SESSION  3 /* two sockets, and the doorbell of a ring */

static void close_session(struct devfile *f)
{
	told_close(f->told);
	told_process_put(f->process);
	f->files->ops->close(f);
	event_queue_end(&f->queue);
	rt_io_watch(&f->news, false, false);
	rt_close_socket(f->fd);
	if (f->control_fd >= 0) {
		rt_io_watch(&f->control, false, false);
		rt_close_socket(f->control_fd);
	}
	quota_leave(&f->quota);
	list_del(&f->node);
	rt_free(f);
}

/* --- commands --- */

/* Return: 0; DEVFILE_NO_ANSWER; -errno */
static int answer(struct devfile *f, size_t bytes)
{
	_Alignas(8) char out[DEVFILE_RESPONSE_MAX];
	size_t out_bytes = 0;
	int ret = f->files->ops->command(f, f->files->in, bytes, out, &out_bytes);

	if (ret == DEVFILE_NO_ANSWER)
		return ret;
	ret = endpoint_send(f->control_fd, ret, out, ret ? 0 : out_bytes, f->answer_fds, f->num_answer_fds);
	while (f->num_answer_fds) /* the message carries duplicates of them */
		close(f->answer_fds[--f->num_answer_fds]);
	return ret;
}

static void on_command(struct rt_io *io, bool readable, bool writable)
{
	struct devfile *f = container_of(io, struct devfile, control);
	const int most = told_by_rings(f->process) ? 1 : COMMANDS_PER_TURN;
	int ret = DEVFILE_NO_ANSWER;

	if (!told_run(f->process))
		return;
	/* A program that has an answer to read has sent nothing behind its command. */
	for (int i = 0; i < most && ret == DEVFILE_NO_ANSWER; i++) {
		ssize_t n = rt_receive(f->control_fd, f->files->in, sizeof(f->files->in), MSG_DONTWAIT,
				       NULL, 0);

		if (n == -EAGAIN || n == -EINTR)
			return;
		ret = n <= 0 ? -ECONNRESET : answer(f, (size_t)n);
	}
	if (ret < 0)
		close_session(f);
}

/* --- commands that are told by a ring --- */

static void run_record(void *session, void *record, size_t bytes)
{
	_Alignas(8) char out[DEVFILE_RESPONSE_MAX];
	struct devfile *f = session;
	size_t out_bytes = 0;

	f->files->ops->command(f, record, bytes, out, &out_bytes);
}

static void on_broken_ring(void *session)
{
	struct devfile *f = session;

	shutdown(f->control_fd, SHUT_RDWR); /* which ends the session in a later turn */
}

int devfile_open_told(struct devfile *f)
{
	static const struct told_ops ops = {.run = run_record, .broken = on_broken_ring};
	int ret = f->told ? -EEXIST : told_open(f->process, &ops, f, f->answer_fds, &f->told);

	f->num_answer_fds = ret ? 0 : ABI_TOLD_FDS;
	return ret;
}

/* --- opening --- */

static int open_file(struct devfile *f, size_t bytes)
{
	const struct devfile_ops *ops = f->files->ops;
	const char *node;
	struct abi_open open;
	int ret = devices_open_is_sound(f->files->in, bytes, &open);

	if (!ret && open.kind != ops->kind)
		ret = -EINVAL;
	ret = ret ?: ops->open(f, &open, &node);
	ret = ret ?: quota_open(&f->quota, node);
	if (!ret && !(f->process = told_process_get(f->files->rt, f->pid)))
		ret = -ENOMEM;
	ret = ret ?: endpoint_answer_open(f->fd, f->files->page_fd, &f->control_fd);
	if (ret)
		return ret;
	rt_io_init(f->files->rt, &f->control, f->control_fd, on_command);
	rt_io_watch(&f->control, true, false);
	return 0;
}

static void on_message(struct rt_io *io, bool readable, bool writable)
{
	struct devfile *f = container_of(io, struct devfile, news);
	ssize_t n;
	int ret;

	if (writable)
		event_queue_flush(&f->queue);
	if (!readable)
		return;
	n = rt_receive(f->fd, f->files->in, sizeof(f->files->in), MSG_DONTWAIT, NULL, 0);
	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n > 0 && f->control_fd >= 0) /* ignore messages after the opening message */
		return;
	ret = n > 0 ? open_file(f, (size_t)n) : -ECONNRESET;
	if (!ret)
		return;
	if (n > 0)
		endpoint_send(f->fd, ret, NULL, 0, NULL, 0);
	close_session(f);
}

static void drop_newcomer(struct quota_share *quota)
{
	close_session(container_of(quota, struct devfile, quota));
}

void devfiles_serve(struct devfiles *files, int fd, const struct peer *peer)
{
	struct devfile *f = session_alloc(
		peer, fd, sessions_of_process(peer, &files->sessions, struct devfile, pid),
		FDS_OF_A_SESSION, files->ops->bytes);

	if (!f)
		return;
	f->files = files;
	f->fd = fd;
	f->control_fd = -1;
	if (peer) {
		f->pid = peer->pid;
		memcpy(f->comm, peer->comm, sizeof(f->comm));
	}
	files->ops->init(f);
	list_add_tail(&f->node, &files->sessions);
	event_queue_init(&f->queue, files->rt, fd, &f->news, files->ops->put);
	rt_io_init(files->rt, &f->news, fd, on_message);
	rt_io_watch(&f->news, true, false);
	quota_arrive(&f->quota, files->rt, fd, FDS_OF_A_SESSION, drop_newcomer);
}

/* --- the endpoint --- */

static void on_accepted(void *ctx, int fd, const struct peer *peer)
{
	devfiles_serve(ctx, fd, peer);
}

int devfiles_open(struct devfiles *files, struct rt *rt, const char *dir, const char *name,
		  const struct devfile_ops *ops, int page_fd)
{
	int ret = 0;

	files->rt = rt;
	files->ops = ops;
	files->page_fd = page_fd;
	files->listener = NULL;
	INIT_LIST_HEAD(&files->sessions);
	if (dir)
		ret = listener_create(rt, dir, name, on_accepted, files, &files->listener);
	if (files->listener)
		listener_refuse_fds(files->listener);
	return ret;
}

void devfiles_close(struct devfiles *files)
{
	listener_destroy(files->listener);
	while (!list_empty(&files->sessions))
		close_session(list_first_entry(&files->sessions, struct devfile, node));
}
