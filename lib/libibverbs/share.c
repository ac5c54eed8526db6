/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Access to memory regions of other programs (abi/share.h).
 *
 * An imported region is a reserved range of addresses in this process, without any memory and
 * without any access right (PROT_NONE). When the engine loads from it or stores to it, the access
 * faults. The engine's accesses to registered memory survive a fault (src/transport/guard.h);
 * the fault handler calls this file, which sends the access as a message to the program that
 * owns the memory and waits for the answer. The data path has no code for imported regions, and
 * memory that is not imported costs nothing more.
 *
 * The engine treats an imported region as one that is paged on demand: it checks that the memory is
 * present before it is used, and completes the request with an error otherwise. The memory
 * is absent when its owner has deregistered or unmapped it, has died, or does not answer in time.
 *
 * A region in device memory is mapped like any other memory.
 */
#include "share.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "abi/fds.h"
#include "faults.h"
#include "soft.h"

#define ANSWER_MS      1000 /* that a program is waited for, */
#define LATE_ANSWER_MS 10   /* ... when it has not answered before: it is stopped, perhaps */

/** struct peer - a program that has memory of ours; one access at a time */
struct peer {
	struct list_head node; /* share.peers */
	uint32_t owner; /* its number */
	unsigned users; /* regions */
	int sock;
	pthread_mutex_t lock;
	/* --- protected by lock --- */
	uint32_t number; /* of the last question */
	bool is_late;
};

struct foreign {
	struct list_head node; /* share.foreign */
	struct list_head in_all;
	unsigned users; /* imports */
	char *map;
	size_t map_bytes, in_page; /* the region begins there */
	uint32_t handle, lkey; /* 0: another region has them by now */
	struct peer *peer; /* NULL: it is device memory */
};

/* import_lock is held during an import, so there is one at a time. It is taken before the engine's
 * lock, and @lock inside of the engine's lock. */
static pthread_mutex_t import_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(all); /* --- protected by lock --- struct foreign, of all contexts */

/* --- the descriptor --- */

int share_descriptor(const struct soft_device *dev, const uint8_t token[ABI_TOKEN_BYTES])
{
	struct abi_share share = {.magic = ABI_MAGIC, .version = ABI_VERSION};
	size_t dir_bytes = strlen(dev->dir) + 1;
	int pair[2];
	ssize_t n;

	if (dir_bytes > sizeof(share.dir)) /* then no socket in it can be named */
		return -ENAMETOOLONG;
	memcpy(share.dir, dev->dir, dir_bytes);
	memcpy(share.node, dev->node, sizeof(share.node));
	memcpy(share.device, dev->info.name, sizeof(share.device));
	memcpy(share.token, token, sizeof(share.token));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	n = send(pair[1], &share, sizeof(share), MSG_NOSIGNAL);
	close(pair[1]);
	if (n == (ssize_t)sizeof(share))
		return pair[0];
	close(pair[0]);
	return -EIO;
}

int share_read(int fd, struct abi_share *share)
{
	ssize_t n = recv(fd, share, sizeof(*share), MSG_PEEK | MSG_DONTWAIT);

	if (n != (ssize_t)sizeof(*share) || share->magic != ABI_MAGIC ||
	    share->version != ABI_VERSION)
		return -EOPNOTSUPP;
	share->dir[sizeof(share->dir) - 1] = '\0';
	share->node[sizeof(share->node) - 1] = '\0';
	share->device[sizeof(share->device) - 1] = '\0';
	return 0;
}

/* --- accesses --- */

static void set_time(int sock, unsigned ms)
{
	struct timeval t = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
}

/* Answers to earlier questions may come late. System calls that are no cancellation points: the
 * caller holds the engine's lock. Return: 0; -ETIMEDOUT; -EIO it is gone */
static int hear(struct peer *peer, struct abi_access_answer *answer, void *bytes, size_t len)
{
	const uint64_t end = progress_now(NULL).ns + ANSWER_MS * NSEC_PER_MSEC;
	struct iovec iov[2] = {{answer, sizeof(*answer)}, {bytes, len}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	long n;

	do {
		n = syscall(SYS_recvmsg, peer->sock, &msg, 0);
		if (!n || (n < 0 && errno != EINTR))
			return n && errno == EAGAIN ? -ETIMEDOUT : -EIO;
		if (n >= (long)sizeof(*answer) && answer->number == peer->number)
			return answer->error || (size_t)n == sizeof(*answer) + len ? 0 : -EIO;
	} while (progress_now(NULL).ns < end);
	return -ETIMEDOUT;
}

static void note_time(struct peer *peer, bool is_late)
{
	if (is_late != peer->is_late)
		set_time(peer->sock, is_late ? LATE_ANSWER_MS : ANSWER_MS);
	peer->is_late = is_late;
}

/* @in: what is stored, or NULL; @out: where to what is loaded. Return: 0; -errno */
static int ask(struct peer *peer, struct abi_access *a, void *in, void *out, uint64_t *was)
{
	struct iovec iov[2] = {{a, sizeof(*a)}, {in, in ? a->length_bytes : 0}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	struct abi_access_answer answer = {.error = -EIO};
	int rc = -EIO;

	pthread_mutex_lock(&peer->lock);
	a->number = ++peer->number;
	if (syscall(SYS_sendmsg, peer->sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		rc = hear(peer, &answer, out, out ? a->length_bytes : 0);
	note_time(peer, rc == -ETIMEDOUT);
	pthread_mutex_unlock(&peer->lock);
	*was = answer.was;
	return rc ? rc : answer.error;
}

static uintptr_t begin(const struct foreign *f)
{
	return (uintptr_t)f->map + f->in_page;
}

/* The memory of @len bytes at @at. It is not released while the engine uses it. */
static struct foreign *find(const void *at, size_t len)
{
	struct foreign *f, *found = NULL;

	pthread_mutex_lock(&lock);
	list_for_each_entry(f, &all, in_all)
		if (f->peer && range_covers((uintptr_t)f->map, f->map_bytes, (uintptr_t)at, len))
			found = f;
	pthread_mutex_unlock(&lock);
	return found;
}

/* faults_reach_foreign */
static enum guard_reached reach(void *program, void *buf, size_t len, bool store)
{
	const struct foreign *f = find(program, len);
	struct abi_access a = {.kind = store ? ABI_ACCESS_STORE : ABI_ACCESS_LOAD,
			       .length_bytes = (uint32_t)len};
	uint64_t unused;

	if (!f)
		return GUARD_UNKNOWN;
	a.lkey = f->lkey;
	a.offset = (uintptr_t)program - begin(f);
	if (ask(f->peer, &a, store ? buf : NULL, store ? NULL : buf, &unused))
		return GUARD_GONE;
	return GUARD_REACHED;
}

/* guard_reach_atomic */
static bool reach_atomic(uint64_t *word, const struct guard_atomic *what, uint64_t *was)
{
	const struct foreign *f = find(word, sizeof(*word));
	struct abi_access a = {.kind = what->is_swap ? ABI_ACCESS_SWAP : ABI_ACCESS_ADD,
			       .length_bytes = sizeof(*word),
			       .operand = what->operand,
			       .swap = what->swap};

	if (!f)
		return false;
	a.lkey = f->lkey;
	a.offset = (uintptr_t)word - begin(f);
	return !ask(f->peer, &a, NULL, NULL, was);
}

/* --- programs --- */

/* under import_lock */
static void put_peer(struct peer *peer)
{
	if (--peer->users)
		return;
	close(peer->sock);
	list_del(&peer->node);
	free(peer);
}

static int connect_peer(struct soft_context *ctx, uint32_t mr_handle, int *sock)
{
	struct abi_reach req = {.mr_handle = mr_handle};
	int rc = session_command_own(ctx, ABI_CMD_REACH, &req, sizeof(req), NULL, 0, sock);

	return rc ? rc : *sock < 0 ? -EMFILE : 0;
}

/* under import_lock. Return: 0 and the program that has the region, once more */
static int get_peer(struct soft_context *ctx, uint32_t mr_handle, uint32_t owner,
		    struct peer **found)
{
	struct peer *peer;
	int rc;

	list_for_each_entry(peer, &ctx->share.peers, node) {
		if (peer->owner == owner) {
			peer->users++;
			*found = peer;
			return 0;
		}
	}
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return -ENOMEM;
	rc = connect_peer(ctx, mr_handle, &peer->sock);
	if (rc) {
		free(peer);
		return rc;
	}
	peer->owner = owner;
	peer->users = 1;
	pthread_mutex_init(&peer->lock, NULL);
	set_time(peer->sock, ANSWER_MS);
	list_add_tail(&peer->node, &ctx->share.peers);
	*found = peer;
	return 0;
}

/* --- regions --- */

static uint64_t page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Addresses for @resp's memory, or a mapping of it. What is as far into a page as it is for its
 * users keeps their alignment. */
static int map_memory(struct foreign *f, const struct abi_query_object_resp *resp, int memfd)
{
	bool writes = resp->access & IBV_ACCESS_LOCAL_WRITE;
	uint64_t at = memfd >= 0 ? resp->dm_offset : resp->iova;

	f->in_page = at & (page_bytes() - 1);
	if (!resp->length_bytes || resp->length_bytes > SIZE_MAX / 2)
		return -EOPNOTSUPP; /* all of a program's memory: nothing could name it here */
	f->map_bytes = resp->length_bytes + f->in_page;
	if (memfd >= 0)
		f->map = mmap(NULL, f->map_bytes, writes ? PROT_READ | PROT_WRITE : PROT_READ,
			      MAP_SHARED, memfd, (off_t)(at - f->in_page));
	else
		f->map = mmap(NULL, f->map_bytes, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return f->map == MAP_FAILED ? -errno : 0;
}

static int engine_add(struct soft_context *ctx, const struct foreign *f,
		      const struct abi_query_object_resp *resp)
{
	struct eng_mr_attr attr = {
		.key = resp->lkey,
		.pd = resp->pd_handle,
		.addr = (void *)begin(f),
		.length = resp->length_bytes,
		.iova = resp->iova,
		.access = (int)resp->access | (f->peer ? IBV_ACCESS_ON_DEMAND : 0),
		.is_pinned = !(resp->access & IBV_ACCESS_ON_DEMAND),
	};

	return eng_mr_add(ctx->engine, &attr);
}

/* softibd has given @key away once more. Under import_lock. Return: false: no region had it */
static bool drop(struct soft_context *ctx, uint32_t key)
{
	struct foreign *f;

	list_for_each_entry(f, &ctx->share.foreign, node) {
		if (!f->lkey || (f->lkey ^ key) >> 8)
			continue;
		eng_mr_del(ctx->engine, f->lkey);
		f->handle = f->lkey = 0;
		return true;
	}
	return false;
}

/* What addresses are for is known before the engine uses them, and after. */
static void show(struct foreign *f)
{
	pthread_mutex_lock(&lock);
	list_add_tail(&f->in_all, &all);
	pthread_mutex_unlock(&lock);
}

static void hide(struct foreign *f)
{
	pthread_mutex_lock(&lock);
	list_del(&f->in_all);
	pthread_mutex_unlock(&lock);
}

/* under import_lock */
static int import(struct soft_context *ctx, uint32_t mr_handle,
		  const struct abi_query_object_resp *resp, int memfd, struct foreign **foreign)
{
	struct foreign *f = calloc(1, sizeof(*f));
	int rc = f ? map_memory(f, resp, memfd) : -ENOMEM;

	if (rc)
		goto undo_foreign;
	rc = memfd < 0 ? get_peer(ctx, mr_handle, resp->owner, &f->peer) : 0;
	if (rc)
		goto undo_map;
	f->users = 1;
	f->handle = mr_handle;
	f->lkey = resp->lkey;
	show(f);
	drop(ctx, resp->lkey);
	rc = engine_add(ctx, f, resp);
	if (rc)
		goto undo_peer;
	list_add_tail(&f->node, &ctx->share.foreign);
	*foreign = f;
	return 0;
undo_peer:
	hide(f);
	if (f->peer)
		put_peer(f->peer);
undo_map:
	munmap(f->map, f->map_bytes);
undo_foreign:
	free(f);
	return rc;
}

/* under import_lock */
static struct foreign *find_region(struct soft_context *ctx, uint32_t handle, uint32_t key)
{
	struct foreign *f;

	list_for_each_entry(f, &ctx->share.foreign, node)
		if (f->handle == handle && f->lkey == key)
			return f;
	return NULL;
}

int share_import(struct soft_context *ctx, uint32_t mr_handle,
		 const struct abi_query_object_resp *resp, int memfd, struct foreign **foreign)
{
	int state, rc = 0;

	if (memfd < 0 && !guard_reach)
		return -EOPNOTSUPP; /* nobody sees the faults: faults.c */
	faults_reach_foreign = reach;
	guard_reach_atomic = reach_atomic;
	state = lock_for_calls(&import_lock);
	*foreign = find_region(ctx, mr_handle, resp->lkey);
	if (*foreign)
		(*foreign)->users++;
	else
		rc = import(ctx, mr_handle, resp, memfd, foreign);
	unlock_after_calls(&import_lock, state);
	return rc;
}

void *share_memory(const struct foreign *foreign)
{
	return (void *)begin(foreign);
}

/* The engine does not know it any more. Under import_lock */
static void free_foreign(struct foreign *f)
{
	hide(f);
	list_del(&f->node);
	munmap(f->map, f->map_bytes);
	if (f->peer)
		put_peer(f->peer);
	free(f);
}

void share_release(struct soft_context *ctx, struct foreign *f)
{
	int state = lock_for_calls(&import_lock);

	if (!--f->users) {
		eng_mr_del(ctx->engine, f->lkey);
		free_foreign(f);
	}
	unlock_after_calls(&import_lock, state);
}

bool share_drop(struct soft_context *ctx, uint32_t key)
{
	int state = lock_for_calls(&import_lock);
	bool dropped = drop(ctx, key);

	unlock_after_calls(&import_lock, state);
	return dropped;
}

/* --- coming and going --- */

void share_init(struct soft_context *ctx)
{
	struct share *share = &ctx->share;

	pthread_mutex_init(&share->lock, NULL);
	pthread_mutex_init(&share->threads_lock, NULL);
	for (unsigned i = 0; i < SHARE_BUCKETS; i++)
		INIT_LIST_HEAD(&share->regions[i]);
	INIT_LIST_HEAD(&share->servers);
	INIT_LIST_HEAD(&share->foreign);
	INIT_LIST_HEAD(&share->peers);
}

void share_end(struct soft_context *ctx)
{
	int state = lock_for_calls(&import_lock);

	while (!list_empty(&ctx->share.foreign))
		free_foreign(list_first_entry(&ctx->share.foreign, struct foreign, node));
	unlock_after_calls(&import_lock, state);
}

void share_peers_in_child(struct soft_context *ctx)
{
	struct peer *peer;

	list_for_each_entry(peer, &ctx->share.peers, node)
		close(peer->sock);
}
