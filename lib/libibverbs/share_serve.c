/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Accesses of other programs to our regions, which we share with them (abi/share.h). Each program
 * has a thread here that performs its accesses and nothing else: it takes no lock under which
 * anyone waits for another program, so that two programs that use each other's memory
 * do not wait for each other.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi/fds.h"
#include "faults.h"
#include "share.h"
#include "soft.h"
#include "thread_start.h"

#define STACK_BYTES (64u << 10)
#define SERVERS_MAX 64 /* programs that are served at a time */

/** struct server - the thread for one program */
struct server {
	struct list_head node; /* share.servers */
	struct soft_context *ctx;
	pthread_t thread;
	int sock;
	_Atomic bool ended;
};

/** struct region - of ours. Not struct soft_mr, of which there may be several for one region */
struct region {
	struct list_head node; /* share.regions */
	uint32_t lkey;
	char *memory;
	size_t length;
	bool is_writable;
};

/** struct message - an access, or its answer, with the bytes */
struct message {
	union {
		struct abi_access access;
		struct abi_access_answer answer;
	};
	uint8_t bytes[ABI_ACCESS_MAX];
};

/* --- regions --- */

static struct list_head *bucket(struct share *share, uint32_t key)
{
	return &share->regions[key >> 8 & (SHARE_BUCKETS - 1)];
}

void share_add(struct soft_context *ctx, const struct soft_mr *mr)
{
	struct region *region = calloc(1, sizeof(*region));

	if (!region)
		return;
	*region = (struct region){.lkey = mr->ibv.lkey,
				  .memory = mr->memory,
				  .length = mr->ibv.length,
				  .is_writable = mr->access & IBV_ACCESS_LOCAL_WRITE};
	pthread_mutex_lock(&ctx->share.lock);
	list_add(&region->node, bucket(&ctx->share, region->lkey));
	pthread_mutex_unlock(&ctx->share.lock);
}

/* under share.lock */
static struct region *find_region(struct share *share, uint32_t lkey)
{
	struct region *region;

	list_for_each_entry(region, bucket(share, lkey), node)
		if (region->lkey == lkey)
			return region;
	return NULL;
}

static void free_region(struct region *region)
{
	if (!region)
		return;
	list_del(&region->node);
	free(region);
}

void share_del(struct soft_context *ctx, uint32_t lkey)
{
	if (ctx->forked) /* a thread of the parent may have held the lock during fork() */
		return;
	pthread_mutex_lock(&ctx->share.lock);
	free_region(find_region(&ctx->share, lkey));
	pthread_mutex_unlock(&ctx->share.lock);
}

/* Return: the memory that is accessed; NULL: there is none, or not the right to store to it */
static void *place(struct share *share, const struct abi_access *a)
{
	const struct region *region = find_region(share, a->lkey);

	if (!region || !range_covers(0, region->length, a->offset, a->length_bytes) ||
	    (a->kind != ABI_ACCESS_LOAD && !region->is_writable))
		return NULL;
	return region->memory + a->offset;
}

/* --- accesses --- */

static bool is_word(const void *at, const struct abi_access *a)
{
	return a->length_bytes == sizeof(uint64_t) && !((uintptr_t)at & 7);
}

/* Return: false: the memory is gone */
static bool perform(const struct abi_access *a, void *at, void *bytes, uint64_t *was)
{
	switch (a->kind) {
	case ABI_ACCESS_LOAD:
		return guard_load(bytes, at, a->length_bytes);
	case ABI_ACCESS_STORE:
		if (!guard_probe_write(at, a->length_bytes))
			return false;
		guard_store(at, bytes, a->length_bytes);
		return true;
	case ABI_ACCESS_ADD:
		return is_word(at, a) && guard_fetch_add(at, a->operand, was);
	case ABI_ACCESS_SWAP:
		return is_word(at, a) && guard_compare_swap(at, a->operand, a->swap, was);
	}
	return false;
}

/* @n: its bytes. Return: those of the answer, which is in the same place; 0: it is no access */
static size_t serve(struct share *share, struct message *m, size_t n)
{
	struct abi_access a = m->access;
	uint8_t *in = (uint8_t *)&m->access + sizeof(a);
	uint8_t *out = (uint8_t *)&m->answer + sizeof(m->answer);
	uint64_t was = 0;
	bool done;
	void *at;

	if (n < sizeof(a) || a.length_bytes > ABI_ACCESS_MAX ||
	    (a.kind == ABI_ACCESS_STORE && n - sizeof(a) != a.length_bytes))
		return 0;
	pthread_mutex_lock(&share->lock);
	at = place(share, &a);
	done = at && perform(&a, at, a.kind == ABI_ACCESS_STORE ? in : out, &was);
	pthread_mutex_unlock(&share->lock);
	m->answer = (struct abi_access_answer){
		.number = a.number, .error = done ? 0 : -EFAULT, .was = was};
	return sizeof(m->answer) + (done && a.kind == ABI_ACCESS_LOAD ? a.length_bytes : 0);
}

static void *run(void *arg)
{
	struct server *server = arg;
	struct message m;
	ssize_t n;

	threads_begin();
	do {
		n = recv(server->sock, &m, sizeof(m), 0);
		if (n > 0) {
			n = (ssize_t)serve(&server->ctx->share, &m, (size_t)n);
			n = n ? send(server->sock, &m, (size_t)n, MSG_NOSIGNAL) : 0;
		}
	} while (n > 0);
	threads_end();
	server->ended = true;
	return NULL;
}

/* --- coming and going --- */

static void free_server(struct server *server)
{
	shutdown(server->sock, SHUT_RDWR);
	pthread_join(server->thread, NULL);
	close(server->sock);
	list_del(&server->node);
	free(server);
}

/* those whose program is gone. Return: how many are left */
static unsigned reap(struct share *share)
{
	struct server *server, *tmp;
	unsigned left = 0;

	list_for_each_entry_safe(server, tmp, &share->servers, node) {
		if (server->ended)
			free_server(server);
		else
			left++;
	}
	return left;
}

/* under threads_lock */
static bool add_server(struct soft_context *ctx, int sock)
{
	struct share *share = &ctx->share;
	struct server *server;

	if (share->closing || reap(share) >= SERVERS_MAX)
		return false;
	server = calloc(1, sizeof(*server));
	if (!server)
		return false;
	server->ctx = ctx;
	server->sock = sock;
	if (threads_start(&server->thread, "softib-share", STACK_BYTES, run, server)) {
		free(server);
		return false;
	}
	list_add_tail(&server->node, &share->servers);
	return true;
}

bool share_serve(struct soft_context *ctx, int sock)
{
	bool done;

	pthread_mutex_lock(&ctx->share.threads_lock);
	done = add_server(ctx, sock);
	pthread_mutex_unlock(&ctx->share.threads_lock);
	return done;
}

void share_serve_end(struct soft_context *ctx)
{
	struct share *share = &ctx->share;

	pthread_mutex_lock(&share->threads_lock);
	share->closing = true;
	while (!list_empty(&share->servers))
		free_server(list_first_entry(&share->servers, struct server, node));
	pthread_mutex_unlock(&share->threads_lock);
	for (unsigned i = 0; i < SHARE_BUCKETS; i++)
		while (!list_empty(&share->regions[i]))
			free_region(list_first_entry(&share->regions[i], struct region, node));
}

void share_in_child(struct soft_context *ctx)
{
	struct server *server;

	list_for_each_entry(server, &ctx->share.servers, node)
		close(server->sock);
	INIT_LIST_HEAD(&ctx->share.servers);
	share_peers_in_child(ctx);
}
