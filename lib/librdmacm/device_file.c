/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * /dev/infiniband/rdma_cm for the distribution's librdmacm. Programs and plug-ins that
 * are linked with librdmacm.so.1 load this library by that name and, through it, the
 * distribution's, whose calls of open(), fstat(), write() and close() are led here when
 * it has been loaded (redirect.h). For the device file they are what abi/session.h says
 * of the socket "rdma_cm"; for every other descriptor they are libc's. Calls of the
 * program itself and of other libraries do not come here.
 *
 * The descriptor that open() gives is the socket of events: it polls readable when there is
 * an event, and honours O_NONBLOCK. Commands go by a socket of their own, one at a time.
 *
 * A message on the socket of events brings the event (abi/cm_event.h). softibd hears that it
 * was taken with the next command.
 */
#undef _FILE_OFFSET_BITS /* librdmacm calls open() and fstat(), not open64() */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rdma/rdma_user_cm.h>

#include "abi/endpoint.h"
#include "abi/fds.h"
#include "abi/session.h"
#include "commands.h"
#include "libibverbs/expect.h"
#include "redirect/redirect.h"

#define DEVICE_FILE "/dev/infiniband/rdma_cm"
#define FILES_MAX   65536 /* descriptors beyond are not served: EMFILE */
#define NO_RESPONSE SIZE_MAX

/** struct file - an open device file. @users: its descriptor, and threads in a command */
struct file {
	int users;
	struct commands commands;
};

static struct file *files[FILES_MAX]; /* by descriptor; untouched pages cost nothing */
static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;

static struct file *file_of(int fd)
{
	return fd >= 0 && fd < FILES_MAX ? __atomic_load_n(&files[fd], __ATOMIC_RELAXED)
					 : NULL;
}

/* Return: the file, in use until put_file(); NULL */
static struct file *get_file(int fd)
{
	struct file *file;

	if (!file_of(fd))
		return NULL;
	pthread_mutex_lock(&files_lock);
	file = files[fd];
	if (file)
		file->users++;
	pthread_mutex_unlock(&files_lock);
	return file;
}

static void put_file(struct file *file)
{
	bool last;

	pthread_mutex_lock(&files_lock);
	last = --file->users == 0;
	pthread_mutex_unlock(&files_lock);
	if (!last)
		return;
	commands_close(&file->commands);
	free(file);
}

/* --- opening --- */

/** enum opened - the descriptors that come with softibd's answer */
enum opened { OPENED_CONTROL, OPENED_PAGE, OPENED_FDS };

static int open_device(const char *dir, int flags)
{
	struct file *file = calloc(1, sizeof(*file));
	int fd = file ? abi_endpoint_connect(dir, "rdma_cm") : -ENOMEM, ret = fd < 0 ? fd : 0;
	int fds[OPENED_FDS] = {-1, -1};

	if (!ret)
		ret = fd < FILES_MAX ? abi_endpoint_open(fd, ABI_OPEN_RDMA_CM, "", fds, OPENED_FDS) : -EMFILE;
	if (!ret && fds[OPENED_PAGE] < 0)
		ret = -EPROTO;
	if (!ret && (flags & O_NONBLOCK) && fcntl(fd, F_SETFL, O_NONBLOCK))
		ret = -errno;
	if (!ret)
		ret = commands_open(&file->commands, fds[OPENED_CONTROL], fds[OPENED_PAGE]);
	if (fds[OPENED_PAGE] >= 0)
		close(fds[OPENED_PAGE]);
	if (!ret) {
		file->commands.expect_flow = softib_expect_flow;
		file->commands.tell_now = softib_tell_now;
		file->users = 1;
		pthread_mutex_lock(&files_lock);
		__atomic_store_n(&files[fd], file, __ATOMIC_RELAXED);
		pthread_mutex_unlock(&files_lock);
		return fd;
	}
	if (fds[OPENED_CONTROL] >= 0)
		close(fds[OPENED_CONTROL]);
	if (fd >= 0)
		close(fd);
	free(file);
	errno = -ret;
	return -1;
}

static int open_file(const char *path, int flags, ...)
{
	const char *dir = getenv(ABI_ENV_DIR);
	mode_t mode = 0;
	va_list args;

	if (flags & (O_CREAT | O_TMPFILE)) {
		va_start(args, flags);
		mode = va_arg(args, mode_t);
		va_end(args);
	}
	if (dir && !strcmp(path, DEVICE_FILE))
		return open_device(dir, flags);
	return open(path, flags, mode);
}

static int close_file(int fd)
{
	struct file *file = get_file(fd);

	if (file) {
		pthread_mutex_lock(&files_lock);
		__atomic_store_n(&files[fd], NULL, __ATOMIC_RELAXED);
		file->users--;
		pthread_mutex_unlock(&files_lock);
		/* The end of the session, of which a thread that waits hears at once: it
		 * must find the descriptor closed */
		shutdown(file->commands.control, SHUT_RDWR);
		put_file(file);
	}
	return close(fd);
}

/* librdmacm asks whether the device file is a character device */
static int stat_file(int fd, struct stat *st)
{
	int ret = fstat(fd, st);

	if (!ret && file_of(fd))
		st->st_mode = S_IFCHR | 0666;
	return ret;
}

/* --- commands --- */

/* where the address of the response stands in each command */
static const size_t response_at[] = {
	[RDMA_USER_CM_CMD_CREATE_ID] = offsetof(struct rdma_ucm_create_id, response),
	[RDMA_USER_CM_CMD_DESTROY_ID] = offsetof(struct rdma_ucm_destroy_id, response),
	[RDMA_USER_CM_CMD_BIND_IP] = NO_RESPONSE,
	[RDMA_USER_CM_CMD_RESOLVE_IP] = NO_RESPONSE,
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = NO_RESPONSE,
	[RDMA_USER_CM_CMD_QUERY_ROUTE] = offsetof(struct rdma_ucm_query, response),
	[RDMA_USER_CM_CMD_CONNECT] = NO_RESPONSE,
	[RDMA_USER_CM_CMD_LISTEN] = NO_RESPONSE,
	[RDMA_USER_CM_CMD_ACCEPT] = NO_RESPONSE,
	[RDMA_USER_CM_CMD_REJECT] = NO_RESPONSE,
	[RDMA_USER_CM_CMD_DISCONNECT] = NO_RESPONSE,
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] =
		offsetof(struct rdma_ucm_init_qp_attr, response),
	[RDMA_USER_CM_CMD_GET_EVENT] = offsetof(struct rdma_ucm_get_event, response),
	[RDMA_USER_CM_CMD_GET_OPTION] = NO_RESPONSE,
	[RDMA_USER_CM_CMD_SET_OPTION] = NO_RESPONSE,
	[RDMA_USER_CM_CMD_NOTIFY] = NO_RESPONSE,
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] =
		offsetof(struct rdma_ucm_join_ip_mcast, response),
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = offsetof(struct rdma_ucm_destroy_id, response),
	[RDMA_USER_CM_CMD_MIGRATE_ID] = offsetof(struct rdma_ucm_migrate_id, response),
	[RDMA_USER_CM_CMD_QUERY] = offsetof(struct rdma_ucm_query, response),
	[RDMA_USER_CM_CMD_BIND] = NO_RESPONSE,
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = NO_RESPONSE,
	[RDMA_USER_CM_CMD_JOIN_MCAST] = offsetof(struct rdma_ucm_join_mcast, response),
};
#define NUM_COMMANDS (sizeof(response_at) / sizeof(response_at[0]))

/* --- events --- */

/* The response to a command by which an id left the channel @fd: messages for its events are read
 * here, or others in their place. */
static void take_back(int fd, struct file *file, const struct answer *answer, size_t bytes)
{
	struct abi_cm_gone gone;
	char byte;

	if (bytes < sizeof(gone))
		return;
	memcpy(&gone, answer->body, sizeof(gone));
	if (!gone.excess)
		return;
	commands_distrust(&file->commands, gone.last);
	while (gone.excess-- && recv(fd, &byte, 1, MSG_DONTWAIT) == 1)
		;
}

/* A thread that waits for an event while another closes the descriptor waits on, as it
 * does on the device file. Return: -errno */
static int failed_to_wait(int fd, const struct file *file, int error)
{
	if (file_of(fd) == file)
		return error;
	pause();
	return -EINTR;
}

/* --- write() --- */

static void put_response(const struct rdma_ucm_cmd_hdr *hdr, const struct answer *answer,
			 size_t bytes)
{
	uint64_t to;

	if (hdr->cmd >= NUM_COMMANDS || response_at[hdr->cmd] == NO_RESPONSE ||
	    hdr->in < response_at[hdr->cmd] + sizeof(to))
		return;
	memcpy(&to, (const char *)(hdr + 1) + response_at[hdr->cmd], sizeof(to));
	memcpy((void *)(uintptr_t)to, answer->body, bytes < hdr->out ? bytes : hdr->out);
}

static int get_event(int fd, struct file *file, const struct rdma_ucm_cmd_hdr *hdr, size_t bytes)
{
	struct answer answer;
	ssize_t n;

	do {
		n = abi_receive_news(fd, answer.body, sizeof(answer.body));
		if (n < 0)
			return failed_to_wait(fd, file, (int)n);
		n = commands_take_event(&file->commands, hdr, bytes, &answer, n);
	} while (n == -EAGAIN);
	if (n < 0)
		return failed_to_wait(fd, file, (int)n);
	put_response(hdr, &answer, (size_t)n);
	return 0;
}

/* Of the channel that an id leaves, softibd must know first which events were taken: the command
 * goes by another socket. */
static int migrate(struct file *file, const struct rdma_ucm_cmd_hdr *hdr, size_t bytes)
{
	const struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct abi_cm_taken taken;
	} nothing = {{.cmd = ABI_CM_TAKEN, .in = sizeof(nothing.taken)}};
	const int fd = (int)((const struct rdma_ucm_migrate_id *)(hdr + 1))->fd;
	struct file *from = get_file(fd);
	struct answer answer;
	ssize_t n;

	if (from)
		commands_exchange(&from->commands, &nothing.hdr, sizeof(nothing), &answer);
	n = commands_exchange(&file->commands, hdr, bytes, &answer);
	if (n >= 0)
		put_response(hdr, &answer, (size_t)n);
	if (n >= 0 && from)
		take_back(fd, from, &answer, (size_t)n);
	if (from)
		put_file(from);
	return n < 0 ? (int)n : 0;
}

static int command(int fd, struct file *file, const struct rdma_ucm_cmd_hdr *hdr,
		   size_t bytes)
{
	struct answer answer;
	ssize_t n;

	if (hdr->cmd == RDMA_USER_CM_CMD_GET_EVENT)
		return get_event(fd, file, hdr, bytes);
	if (hdr->cmd == RDMA_USER_CM_CMD_MIGRATE_ID &&
	    bytes >= sizeof(*hdr) + sizeof(struct rdma_ucm_migrate_id))
		return migrate(file, hdr, bytes);
	n = commands_exchange(&file->commands, hdr, bytes, &answer);
	if (n < 0)
		return (int)n;
	put_response(hdr, &answer, (size_t)n);
	if (hdr->cmd == RDMA_USER_CM_CMD_DESTROY_ID ||
	    hdr->cmd == RDMA_USER_CM_CMD_LEAVE_MCAST)
		take_back(fd, file, &answer, (size_t)n);
	return 0;
}

static ssize_t write_file(int fd, const void *buf, size_t bytes)
{
	struct file *file = get_file(fd);
	int ret;

	if (!file)
		return write(fd, buf, bytes);
	ret = bytes < sizeof(struct rdma_ucm_cmd_hdr) ? -EINVAL
						      : command(fd, file, buf, bytes);
	put_file(file);
	if (!ret)
		return (ssize_t)bytes;
	errno = -ret;
	return -1;
}

/* --- the distribution's library --- */

static const struct redirection redirections[] = {
	{"open", (void (*)(void))open_file},
	{"close", (void (*)(void))close_file},
	{"fstat", (void (*)(void))stat_file},
	{"write", (void (*)(void))write_file},
};
#define NUM_REDIRECTIONS (sizeof(redirections) / sizeof(redirections[0]))

__attribute__((constructor)) static void redirect(void)
{
	redirect_or_warn(GENUINE, redirections, NUM_REDIRECTIONS, "librdmacm",
			 "softib's device file", "Programs see no RDMA CM");
}
