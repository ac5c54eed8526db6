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

struct soft_context;

#define WINDOWS_KEYS 16 /* keys that one extent may be granted under */

/** struct extent - whole pages of ours that lie in a memfd, for peers to map.
 *  It ends with the first of the keys under which it was granted */
struct extent {
	struct list_head node; /* windows.extents */
	uint32_t id;	       /* abi_window_msg.window */
	char *addr;
	size_t bytes;
	int memfd;
	off_t offset; /* of addr in it */
	dev_t dev;
	ino_t inode;
	uint32_t token;
	uint64_t value;
	uint32_t key[WINDOWS_KEYS];
	unsigned num_keys;
};

struct windows {
	bool on;
	int sock; /* ABI_FD_WINDOWS */
	struct abi_window_page *page;
	pthread_t thread;
	pthread_mutex_t lock; /* extents; held while memory moves */
	struct list_head extents;
	uint32_t next_id;
	pthread_mutex_t peers_lock;
	uint32_t self; /* --- both protected by peers_lock --- */
	struct list_head peers;
	struct list_head mapped; /* the thread's own */
	int fork_pipe[2];	 /* the child closes it when it has its copies */
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

/** windows_key_gone() - no peer reaches memory by @key after return. The
 *  engine knows the key no more. Context: may take milliseconds for each MiB */
void windows_key_gone(struct soft_context *ctx, uint32_t key);

/* --- windows_memory.c: under windows.lock --- */

/** memory_can_move() - can this system hold off writers while pages move? */
bool memory_can_move(void);
/** memory_move_out() - private pages from @x->addr, at most @x->bytes, into a
 *  memfd; x gets what was moved. 0; -errno: nothing was */
int memory_move_out(struct extent *x);
/** memory_take_back() - its pages are private again, contents kept; those
 *  that the program unmapped meanwhile are left alone. Closes the memfd */
void memory_take_back(struct extent *x);
/** memory_copy_for_child() - in a child: what memory_take_back() does, when
 *  nobody else runs */
void memory_copy_for_child(struct extent *x);

/** struct area - a mapping of this process, as /proc tells */
struct area {
	char *start, *end;
	off_t offset;
	dev_t dev;
	ino_t inode;
	bool movable; /* private anonymous memory, readable and writable */
};
/** memory_area_at() - the mapping that holds @addr. False: none */
bool memory_area_at(const char *addr, struct area *area);

#endif
