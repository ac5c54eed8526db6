/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Objects that programs share (abi/share.h): the descriptor by which a program gives another one
 * access to its objects, memory of other programs, and other programs' access to ours.
 */
#ifndef SOFTIB_LIBIBVERBS_SHARE_H
#define SOFTIB_LIBIBVERBS_SHARE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/share.h"
#include "base/list.h"

struct soft_context;
struct soft_device;
struct soft_mr;
struct abi_query_object_resp;

#define SHARE_BUCKETS 64 /* a power of two */

/** struct share - of a context */
struct share {
	pthread_mutex_t lock;
	/* --- protected by lock: an access by another program is made under it --- */
	struct list_head regions[SHARE_BUCKETS]; /* by key */
	/* --- protected by threads_lock --- */
	pthread_mutex_t threads_lock;
	struct list_head servers; /* threads that serve other programs */
	bool closing;
	/* --- protected by share.c's import_lock --- */
	struct list_head foreign; /* regions of others */
	struct list_head peers;	  /* programs that have them */
};

void share_init(struct soft_context *ctx);
/** share_descriptor() - context->cmd_fd. Return: it; -errno */
int share_descriptor(const struct soft_device *dev, const uint8_t token[ABI_TOKEN_BYTES]);
/** share_read() - what the descriptor of another program's context says. 0; -EOPNOTSUPP it
 *  is no such descriptor, or one of another version */
int share_read(int fd, struct abi_share *share);
/** share_end() - the device is closed, and its engine is no more: forget others' memory */
void share_end(struct soft_context *ctx);
/** share_in_child() - after fork(): the sockets are the parent's */
void share_in_child(struct soft_context *ctx);
/** share_peers_in_child() - share.c's part of it */
void share_peers_in_child(struct soft_context *ctx);

/* --- other programs' access to our memory: share_serve.c --- */

/** share_add() - others may access @mr from now on; not if there is no memory to note it */
void share_add(struct soft_context *ctx, const struct soft_mr *mr);
/** share_del() - nobody accesses the region that has @lkey after return */
void share_del(struct soft_context *ctx, uint32_t lkey);
/** share_serve() - begin to serve the program at the other end of @sock. Return: false: there is
 *  no memory, or no thread, and @sock stays the caller's */
bool share_serve(struct soft_context *ctx, int sock);
/** share_serve_end() - no program is served after return, and no region is known */
void share_serve_end(struct soft_context *ctx);

/* --- our access to other programs' memory: share.c --- */

/** struct foreign - a region that another program has registered, or that is device memory */
struct foreign;

/**
 * share_import() - the region of @resp, which this program has not registered
 * @memfd: its memory, of device memory, which stays the caller's; -1: a program has it
 *
 * The engine has the region on return, and finds its memory at share_memory(). Return: 0 and the
 * region, for share_release(); -EINVAL; -EOPNOTSUPP; -ENOMEM; -EIO; -EAGAIN
 */
int share_import(struct soft_context *ctx, uint32_t mr_handle,
		 const struct abi_query_object_resp *resp, int memfd, struct foreign **foreign);
void *share_memory(const struct foreign *foreign);
void share_release(struct soft_context *ctx, struct foreign *foreign);
/** share_drop() - softibd has given @key to a region of ours: what was imported with it has
 *  ended. Return: false: there is no such region */
bool share_drop(struct soft_context *ctx, uint32_t key);

#endif
