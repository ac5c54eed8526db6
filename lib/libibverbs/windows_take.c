/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Windows, the initiator's side: maps the memory that peers have granted. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/fds.h"
#include "engine/window.h"
#include "soft.h"
#include "windows_private.h"

#define WRITING_RIGHTS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/** struct mapped - memory of a peer, mapped here */
struct mapped {
	struct list_head node;
	uint32_t peer, window;
	bool writable;
	char *base;
	size_t bytes;
	uint64_t offset;
};

static struct mapped *find_mapped(struct windows *w, const struct abi_window_msg *g)
{
	bool writable = g->access & WRITING_RIGHTS;
	struct mapped *m;

	list_for_each_entry(m, &w->mapped, node)
		if (m->peer == g->peer && m->window == g->window && m->writable == writable)
			return m;
	return NULL;
}

/*
 * Map the pages now, so that the first requests cause no page faults. A page of a memfd that was mapped by
 * a read can be written as well, and MADV_POPULATE_READ maps many pages by one call. It would allocate
 * pages where the memfd has holes, and these would be charged to this process. Memory that was moved
 * into a memfd has no holes. If there are some, the peer is hostile or has released pages, and nothing
 * is mapped ahead.
 */
static void map_ahead(void *base, const struct abi_window_msg *g, int fd)
{
	if (lseek(fd, (off_t)g->offset, SEEK_HOLE) >= (off_t)(g->offset + g->length_bytes))
		madvise(base, g->length_bytes, MADV_POPULATE_READ);
}

static struct mapped *map_memory(struct windows *w, const struct abi_window_msg *g,
				 int fd)
{
	bool writable = g->access & WRITING_RIGHTS;
	struct mapped *m = calloc(1, sizeof(*m));
	void *base;

	if (!m)
		return NULL;
	base = mmap(NULL, g->length_bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ,
		    MAP_SHARED, fd, (off_t)g->offset);
	if (base == MAP_FAILED) {
		free(m);
		return NULL;
	}
	madvise(base, g->length_bytes, MADV_DONTFORK);
	map_ahead(base, g, fd);
	*m = (struct mapped){.peer = g->peer,
			     .window = g->window,
			     .writable = writable,
			     .base = base,
			     .bytes = g->length_bytes,
			     .offset = g->offset};
	list_add_tail(&m->node, &w->mapped);
	return m;
}

static void unmap_memory(struct mapped *m)
{
	list_del(&m->node);
	munmap(m->base, m->bytes);
	free(m);
}

static bool grant_is_sound(const struct abi_window_msg *g)
{
	return g->qp_token < ABI_WINDOW_TOKENS && g->window_token < ABI_WINDOW_TOKENS &&
	       g->flow < ABI_WINDOW_FLOWS && g->length_bytes &&
	       g->length_bytes <= ABI_WINDOW_MAX_BYTES;
}

bool windows_granted(struct soft_context *ctx, const struct abi_window_msg *g, const int fds[2])
{
	struct windows *w = &ctx->windows;
	const struct abi_window_page *page;
	struct eng_grant grant;
	struct mapped *m;

	if (!grant_is_sound(g) || fds[1] < 0 ||
	    !abi_fd_holds(fds[0], (size_t)(g->offset + g->length_bytes)))
		return false;
	page = windows_peer_take(w, g->peer, fds[1]);
	m = find_mapped(w, g);
	if (!m)
		m = map_memory(w, g, fds[0]);
	if (!page || !m || m->offset != g->offset || m->bytes != g->length_bytes)
		return false;
	grant = (struct eng_grant){
		.qpn = g->qpn,
		.rkey = g->rkey,
		.connection = g->connection,
		.peer = g->peer,
		.window = g->window,
		.epoch = g->epoch,
		.access = (int)g->access,
		.va = g->va,
		.length_bytes = g->length_bytes,
		.base = m->base,
		.qp_token = &page->token[g->qp_token],
		.qp_value = g->qp_value,
		.window_token = &page->token[g->window_token],
		.window_value = g->window_value,
		.flow = &w->page->flow[g->flow],
	};
	eng_window_grant(ctx->engine, &grant);
	return true;
}

void windows_forget(struct soft_context *ctx, uint32_t peer, uint32_t window)
{
	struct mapped *m, *tmp;

	eng_window_forget(ctx->engine, peer, window);
	list_for_each_entry_safe(m, tmp, &ctx->windows.mapped, node)
		if ((peer == ENG_WINDOW_ALL || m->peer == peer) &&
		    (window == ENG_WINDOW_ALL || m->window == window))
			unmap_memory(m);
}
