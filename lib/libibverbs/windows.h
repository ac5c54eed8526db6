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
	bool early; /* the user wants memory to move when it is registered */
	int sock; /* ABI_FD_WINDOWS */
	struct abi_window_page *page;
	pthread_t thread;
	pthread_mutex_t lock; /* extents; held while memory moves */
	struct list_head extents;
	unsigned num_extents, max_extents; /* each holds a descriptor */
	struct extent *next; /* not one of them yet, but has its file; NULL: it has not */
	uint32_t next_id;
	pthread_mutex_t peers_lock;
	uint32_t self; /* --- both protected by peers_lock --- */
	struct list_head peers;
	struct list_head mapped; /* the thread's own */
	int fork_pipe[2];	 /* the child closes it when it has its copies; -1: none */
	_Atomic uint32_t *copied; /* it says so here, too: shared with it */
	int fork_state;		 /* of unlock_after_calls() */
};

/* --- windows.c --- */

/** windows_start() - take part, unless the environment or this system says
 *  no. Takes both descriptors, whatever it returns. 0; -errno */
int windows_start(struct soft_context *ctx, int sock, int page_fd);
/** windows_stop() - no peer reaches our memory after return */
void windows_stop(struct soft_context *ctx);
/** windows_free() - when the engine is gone */
void windows_free(struct soft_context *ctx);
/** windows_before_fork(), windows_after_fork() - around fork(): the parent
 *  goes on when the child, in windows_in_child(), has made itself private
 *  copies of what would else be shared */
void windows_before_fork(struct soft_context *ctx);
void windows_after_fork(struct soft_context *ctx);
void windows_in_child(struct soft_context *ctx);

/* --- windows_give.c --- */

/** windows_prepare() - the program registers memory: it moves now if it cannot
 *  move later, or as the user wishes. windows_registered() follows, whatever becomes of the region;
 *  @key 0: nothing did */
void windows_prepare(struct soft_context *ctx, void *addr, size_t length, int access);
void windows_registered(struct soft_context *ctx, void *addr, size_t length, uint32_t key);
/** windows_key_gone() - no peer reaches memory by @key after return. The
 *  engine knows the key no more. Context: may take milliseconds for each MiB */
void windows_key_gone(struct soft_context *ctx, uint32_t key);

#endif
