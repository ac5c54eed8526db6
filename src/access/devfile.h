/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An open device file as two sockets, which the endpoints rdma_cm and ucm have in common. On the connection that the
 * program makes, it sends the opening message, and softibd announces events. The answer to the opening message
 * carries a second socket, for commands. The session ends when either socket is closed.
 */
#ifndef SOFTIB_ACCESS_DEVFILE_H
#define SOFTIB_ACCESS_DEVFILE_H

#include "abi/session.h"
#include "access/event_queue.h"
#include "access/listener.h"
#include "access/quota.h"
#include "access/told.h"
#include "rdma/restrack.h"

#define DEVFILE_RESPONSE_MAX EVENT_MESSAGE_MAX
#define DEVFILE_NO_ANSWER    1

/** struct devfile - a session, the first member of the endpoint's own struct */
struct devfile {
	struct list_head node; /* in devfiles.sessions */
	struct devfiles *files;
	pid_t pid; /* of the process; 0: not known */
	char comm[RDMA_RESTRACK_COMM_BYTES];
	int fd, control_fd; /* sockets of events, and of commands (-1 before the opening message) */
	struct rt_io news, control;
	struct event_queue queue;
	struct quota_share quota;
	struct told_process *process;
	struct told *told; /* NULL: the program has not asked for a ring */
	int answer_fds[ABI_TOLD_FDS]; /* which go with the answer to the command, and are closed then */
	unsigned int num_answer_fds;
};

/**
 * struct devfile_ops - what an endpoint is
 * @bytes: size of its struct of a session, which begins zeroed; @kind: of its opening message
 * @init: initialises the rest of a session, which is not open
 * @open: opens it. Return: 0, and @node is the name of the node that is charged; -errno
 * @command: performs a command of @bytes; @out: room for DEVFILE_RESPONSE_MAX, @out_bytes: 0, set to the length of
 *	the response. Return: 0; -errno; DEVFILE_NO_ANSWER: the program does not wait for one, and may have sent more
 * @close: destroys what the program has. The sockets are still open
 * @put: as in event_queue_init()
 */
struct devfile_ops {
	size_t bytes;
	enum abi_open_kind kind;
	void (*init)(struct devfile *file);
	int (*open)(struct devfile *file, const struct abi_open *open, const char **node);
	int (*command)(struct devfile *file, const void *in, size_t bytes, void *out, size_t *out_bytes);
	void (*close)(struct devfile *file);
	size_t (*put)(struct event_queue *queue, struct queued_event *event, void *message);
};

/** struct devfiles - the sessions of an endpoint. @page_fd: a descriptor that programs get with the answer to the
 *  opening message; -1: none */
struct devfiles {
	struct rt *rt;
	const struct devfile_ops *ops;
	struct listener *listener;
	struct list_head sessions; /* struct devfile */
	int page_fd;
	_Alignas(8) char in[ABI_MESSAGE_MAX];
};

/** devfiles_open() - listen on @dir/@name. @dir: NULL: do not listen; peers are passed to devfiles_serve()
 *  Return: 0; as listener_create() */
int devfiles_open(struct devfiles *files, struct rt *rt, const char *dir, const char *name,
		  const struct devfile_ops *ops, int page_fd);
/** devfiles_close() - stop listening, and end the sessions */
void devfiles_close(struct devfiles *files);
/** devfiles_serve() - begin a session with the peer at @fd (non-blocking), and take ownership of @fd */
void devfiles_serve(struct devfiles *files, int fd, const struct peer *peer);

/** devfile_open_told() - make a ring for the commands that are told, whose descriptors go with the answer
 *  Return: 0; -EEXIST: there is one; as told_open() */
int devfile_open_told(struct devfile *file);

#endif
