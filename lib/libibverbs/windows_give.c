/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Windows, the target's side: our memory is granted to peers, and grants are revoked. Memory is moved
 * into memfds only by this file: when the first peer asks for it, or at registration, if it cannot be
 * moved later (memory_can_move()). Grants are revoked from the program's threads, when a key or a QP
 * ends.
 */
#include <stdlib.h>
#include <unistd.h>

#include "engine/window.h"
#include "soft.h"
#include "windows_private.h"

#define WRITING_RIGHTS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/* Revoke all grants of an extent. Context: windows.lock. A peer that does not leave its section in time
 * keeps the old pages. */
static void shut_extent(struct soft_context *ctx, struct extent *x)
{
	struct abi_window_msg m = {.kind = ABI_WINDOW_CLOSE, .window = x->id};

	eng_token_give(ctx->engine, x->token);
	for (unsigned i = 0; i < x->num_keys; i++)
		if (x->key[i].is_window)
			eng_mw_revoke(ctx->engine, x->key[i].key);
	if (!x->granted)
		return;
	windows_sections_end(&ctx->windows);
	windows_say(&ctx->windows, &m, -1);
}

static void end_extent(struct soft_context *ctx, struct extent *x)
{
	shut_extent(ctx, x);
	memory_take_back(x);
	list_del(&x->node);
	ctx->windows.num_extents--;
	free(x);
}

void windows_end_extents(struct soft_context *ctx)
{
	struct windows *w = &ctx->windows;
	int state = lock_for_calls(&w->lock);

	while (!list_empty(&w->extents))
		end_extent(ctx, list_first_entry(&w->extents, struct extent, node));
	unlock_after_calls(&w->lock, state);
}

void windows_quiesce(void *arg)
{
	struct soft_context *ctx = arg;

	if (!windows_sections_end(&ctx->windows))
		windows_end_extents(ctx);
}

/* Return: the index of @key in @x->key; num_keys: the extent has no such key */
static unsigned find_key(const struct extent *x, uint32_t key)
{
	unsigned i = 0;

	while (i < x->num_keys && x->key[i].key != key)
		i++;
	return i;
}

/* @key grants no access to the extent any more. Return: true: the extent has to end, because a peer was
 * granted it by this key, or because no key is left */
static bool drop_key(struct extent *x, uint32_t key)
{
	unsigned i = find_key(x, key);
	bool granted;

	if (i == x->num_keys)
		return false;
	granted = x->key[i].granted;
	x->key[i] = x->key[--x->num_keys];
	return granted || !x->num_keys;
}

void windows_key_gone(struct soft_context *ctx, uint32_t key)
{
	struct windows *w = &ctx->windows;
	struct extent *x, *tmp;
	int state;

	if (!w->on)
		return;
	state = lock_for_calls(&w->lock);
	list_for_each_entry_safe(x, tmp, &w->extents, node)
		if (drop_key(x, key))
			end_extent(ctx, x);
	unlock_after_calls(&w->lock, state);
}

void windows_sections_over(void *arg)
{
	struct soft_context *ctx = arg;

	windows_sections_end(&ctx->windows);
}

/* Drop the keys of memory windows that are not bound any more. Return: true: the extent has to end */
static bool drop_unbound(struct soft_context *ctx, struct extent *x)
{
	bool ends = false;

	for (unsigned i = x->num_keys; i--;)
		if (x->key[i].is_window && !eng_mw_is_bound(ctx->engine, x->key[i].key))
			ends |= drop_key(x, x->key[i].key);
	return ends;
}

void windows_unbound(void *arg)
{
	struct soft_context *ctx = arg;
	struct windows *w = &ctx->windows;
	struct extent *x, *tmp;
	int state = lock_for_calls(&w->lock);

	list_for_each_entry_safe(x, tmp, &w->extents, node)
		if (drop_unbound(ctx, x))
			end_extent(ctx, x);
	unlock_after_calls(&w->lock, state);
}

/** struct range - the whole pages of a region */
struct range {
	char *start, *end;
};

static struct range whole_pages(const void *addr, size_t length)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = ((uintptr_t)addr + page - 1) & ~(page - 1);
	uintptr_t end = ((uintptr_t)addr + length) & ~(page - 1);

	return (struct range){(char *)start, (char *)MAX(start, end)};
}

/* Return: a new extent, which may have its memfd already; NULL: there are too many */
static struct extent *take_extent(struct windows *w)
{
	struct extent *x = w->next;

	if (w->num_extents >= w->max_extents)
		return NULL;
	w->next = NULL;
	return x ? x : calloc(1, sizeof(*x));
}

/* Context: the thread of windows, when nobody waits for it */
static void make_next(struct windows *w)
{
	struct extent *x = calloc(1, sizeof(*x));

	if (!x)
		return;
	if (memory_make_file(x)) {
		free(x);
		return;
	}
	pthread_mutex_lock(&w->lock);
	w->next = x;
	pthread_mutex_unlock(&w->lock);
}

void windows_drop_next(struct windows *w)
{
	if (!w->next)
		return;
	memory_drop_file(w->next);
	free(w->next);
	w->next = NULL;
}

static struct extent *make_extent(struct soft_context *ctx, const struct area *a,
				  const struct range *r)
{
	struct windows *w = &ctx->windows;
	struct extent *x = take_extent(w);
	char *end = MIN(a->end, r->end);

	if (!x)
		return NULL;
	x->addr = MAX(a->start, r->start);
	x->bytes = MIN((size_t)(end - x->addr), (size_t)ABI_WINDOW_MAX_BYTES);
	x->token = eng_token_take(ctx->engine, &x->value);
	if (!x->token)
		goto undo_extent;
	if (memory_move_out(x))
		goto undo_token;
	x->id = ++w->next_id;
	w->num_extents++;
	list_add_tail(&x->node, &w->extents);
	return x;
undo_token:
	eng_token_give(ctx->engine, x->token);
undo_extent:
	memory_drop_file(x);
	free(x);
	return NULL;
}

/*
 * The extent that contains the page at @addr of a region: an existing one, or a new one. NULL: there can
 * be none. An existing extent that reaches beyond the region is not used, because the peer could access
 * more than the region. Memory that is paged on demand gets no extent, because the program may map
 * something else there at any time.
 */
static struct extent *extent_for(struct soft_context *ctx, const struct eng_mr_attr *mr,
				 const char *addr)
{
	struct range r = whole_pages(mr->addr, mr->length);
	struct extent *x;
	struct area a;

	if (mr->access & IBV_ACCESS_ON_DEMAND)
		return NULL;
	if (addr < r.start || addr >= r.end || !memory_area_at(addr, &a))
		return NULL;
	if (a.movable)
		return memory_can_move() ? make_extent(ctx, &a, &r) : NULL;
	list_for_each_entry(x, &ctx->windows.extents, node) {
		if (x->inode != a.inode || x->dev != a.dev)
			continue;
		/* still where it was, and no larger than the region? */
		return a.start - a.offset == x->addr - x->offset && x->addr >= r.start &&
				       x->addr + x->bytes <= r.end ?
			       x :
			       NULL;
	}
	return NULL;
}

static bool add_key(struct extent *x, uint32_t key, bool is_window, bool granted)
{
	unsigned i = find_key(x, key);

	if (i == EXTENT_KEYS)
		return false;
	if (i == x->num_keys) {
		x->key[x->num_keys++].key = key;
		x->key[i].granted = false;
		x->key[i].is_window = is_window;
	}
	x->key[i].granted |= granted;
	return true;
}

/* --- at registration --- */

static bool moves_early(const struct windows *w)
{
	return w->on && (w->early || memory_moves() == MEMORY_MOVES_ALONE);
}

static bool is_for_peers(int access)
{
	return access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
}

void windows_prepare(struct soft_context *ctx, void *addr, size_t length, int access)
{
	struct windows *w = &ctx->windows;
	struct range r = whole_pages(addr, length);
	struct area a;
	int state;

	if (!is_for_peers(access) || !moves_early(w) || !memory_can_move())
		return;
	state = lock_for_calls(&w->lock);
	for (char *at = r.start; at < r.end && memory_area_at(at, &a); at = a.end)
		if (a.movable)
			make_extent(ctx, &a, &r);
	unlock_after_calls(&w->lock, state);
}

void windows_registered(struct soft_context *ctx, void *addr, size_t length, uint32_t key)
{
	struct windows *w = &ctx->windows;
	struct range r = whole_pages(addr, length);
	struct extent *x, *tmp;
	int state;

	if (!moves_early(w))
		return;
	state = lock_for_calls(&w->lock);
	list_for_each_entry_safe(x, tmp, &w->extents, node) {
		if (key && x->addr >= r.start && x->addr + x->bytes <= r.end)
			add_key(x, key, false, false);
		if (!x->num_keys)
			end_extent(ctx, x);
	}
	unlock_after_calls(&w->lock, state);
}

/* --- a peer's question --- */

/* Grant what a peer has asked for. Context: windows.lock. Return: false: it is not granted, and the peer
 * goes on by packets */
static bool give(struct soft_context *ctx, const struct abi_window_msg *want)
{
	struct abi_window_msg m = {.kind = ABI_WINDOW_GIVE, .id = want->id};
	struct eng_offer offer;
	struct extent *x;

	if (eng_window_offer(ctx->engine, want->qpn, want->rkey, &offer) ||
	    want->va - offer.mr.iova >= offer.mr.length)
		return false;
	x = extent_for(ctx, &offer.mr,
		       (char *)offer.mr.addr + (want->va - offer.mr.iova));
	if (!x || !add_key(x, want->rkey, offer.key_token, true))
		return false;
	/* while pages moved, the key or the QP may have gone */
	if (eng_window_offer(ctx->engine, want->qpn, want->rkey, &offer)) {
		end_extent(ctx, x);
		return false;
	}
	if (!memory_seal(x, !(offer.access & WRITING_RIGHTS)))
		return false;
	m.window = x->id;
	m.va = offer.mr.iova + (uint64_t)(x->addr - (char *)offer.mr.addr);
	m.length_bytes = x->bytes;
	m.offset = (uint64_t)x->offset;
	m.access = (uint32_t)offer.access;
	m.qp_token = offer.token;
	m.qp_value = offer.value;
	m.window_token = offer.key_token ? offer.key_token : x->token;
	m.window_value = offer.key_token ? offer.key_value : x->value;
	x->granted = true;
	windows_say(&ctx->windows, &m, x->memfd);
	return true;
}

void windows_wanted(struct soft_context *ctx, const struct abi_window_msg *want, int page_fd)
{
	struct windows *w = &ctx->windows;
	struct abi_window_msg no = {.kind = ABI_WINDOW_DENY, .id = want->id};
	bool given, used;

	pthread_mutex_lock(&w->lock);
	w->self = want->window;
	given = windows_peer_take(w, want->peer, page_fd) && give(ctx, want);
	used = !w->next;
	pthread_mutex_unlock(&w->lock);
	if (!given)
		windows_say(w, &no, -1);
	else if (used)
		make_next(w);
}
