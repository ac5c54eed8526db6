/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Windows as a program sees them (docs/WINDOWS.md): memory that it granted
 * to peers (extents), memory that peers granted to it (mapped), and the
 * window pages of both kinds of peers. One thread for each opened device
 * speaks with softibd; nothing here is on the path of a request.
 */
#ifndef SOFTIB_LIBIBVERBS_WINDOWS_H
#define SOFTIB_LIBIBVERBS_WINDOWS_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "abi/window.h"
#include "base/list.h"
#include "windows_memory.h"

struct soft_context;

struct windows {
	bool on;
	bool early; /* memory moves when it is registered (SOFTIB_WINDOWS=early) */
	int sock; /* ABI_FD_WINDOWS */
	struct abi_window_page *page;
	pthread_t thread;
	pthread_mutex_t lock; /* extents; held while memory moves */
	struct list_head extents;
	unsigned num_extents, max_extents; /* each holds a descriptor */
	/* the extent that is being made, which has a memfd already; NULL: none */
	struct extent *next;
	uint32_t next_id;
	pthread_mutex_t peers_lock;
	uint32_t self; /* --- both protected by peers_lock --- */
	struct list_head peers;
	struct list_head mapped; /* used by the thread of windows only */
	int fork_pipe[2];	 /* the child closes it when its copies are made; -1: none */
	_Atomic uint32_t *copied; /* in memory shared with the child, which sets it then, too */
	int fork_state;		 /* of unlock_after_calls() */
};

/* --- windows.c --- */

/** windows_start() - use windows, unless the environment or the system does not allow it. Both
 *  descriptors belong to it, whatever it returns. Return: 0; -errno */
int windows_start(struct soft_context *ctx, int sock, int page_fd);
/** windows_stop() - no peer reaches our memory after return */
void windows_stop(struct soft_context *ctx);
/** windows_free() - free everything. Context: the engine has been destroyed */
void windows_free(struct soft_context *ctx);
/** windows_before_fork(), windows_after_fork() - called by the parent around fork(). The parent
 *  continues only after the child, in windows_in_child(), has made private copies of the
 *  memory that the two would otherwise share */
void windows_before_fork(struct soft_context *ctx);
void windows_after_fork(struct soft_context *ctx);
void windows_in_child(struct soft_context *ctx);

/* --- windows_give.c --- */

/** windows_prepare() - called before the program registers memory: move it now if it cannot move
 *  later, or if the user wants that. windows_registered() has to follow in any case, with @key 0
 *  if the registration failed */
void windows_prepare(struct soft_context *ctx, void *addr, size_t length, int access);
void windows_registered(struct soft_context *ctx, void *addr, size_t length, uint32_t key);
/** windows_key_gone() - take memory back from peers: none reaches it by @key after return.
 *  Context: the engine has removed the key; may take milliseconds for each MiB */
void windows_key_gone(struct soft_context *ctx, uint32_t key);

#endif
