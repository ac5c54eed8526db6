/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The window pages of other programs, and waiting until none of them is at
 * work in our memory.
 */
#include <linux/membarrier.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/fds.h"
#include "soft.h"
#include "windows_private.h"

/* how long an initiator may be inside a section before it is left behind:
 * one that runs needs microseconds, one that lost its core some slices */
#define SECTION_NS (20 * NSEC_PER_MSEC)

/** struct peer - another program's window page */
struct peer {
	struct list_head node;
	uint32_t id;
	const struct abi_window_page *page;
};

long windows_membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

static struct peer *find_peer(struct windows *w, uint32_t id)
{
	struct peer *p;

	list_for_each_entry(p, &w->peers, node)
		if (p->id == id)
			return p;
	return NULL;
}

const struct abi_window_page *windows_peer_take(struct windows *w, uint32_t id, int fd)
{
	struct peer *p = find_peer(w, id);
	void *page;

	if (p)
		return p->page;
	if (!abi_fd_holds(fd, sizeof(*p->page)))
		return NULL;
	p = calloc(1, sizeof(*p));
	page = p ? mmap(NULL, sizeof(*p->page), PROT_READ, MAP_SHARED, fd, 0)
		 : MAP_FAILED;
	if (page == MAP_FAILED) {
		free(p);
		return NULL;
	}
	madvise(page, sizeof(*p->page), MADV_DONTFORK);
	p->id = id;
	p->page = page;
	pthread_mutex_lock(&w->peers_lock);
	list_add_tail(&p->node, &w->peers);
	pthread_mutex_unlock(&w->peers_lock);
	return p->page;
}

static void drop_peer(struct windows *w, struct peer *p)
{
	pthread_mutex_lock(&w->peers_lock);
	list_del(&p->node);
	pthread_mutex_unlock(&w->peers_lock);
	munmap((void *)p->page, sizeof(*p->page));
	free(p);
}

static bool peer_inside(struct windows *w)
{
	struct peer *p;

	list_for_each_entry(p, &w->peers, node)
		if (atomic_load_explicit(&p->page->section, memory_order_acquire) == w->self)
			return true;
	return false;
}

bool windows_sections_end(struct windows *w)
{
	mono_t start = progress_now(NULL);
	bool inside;

	/* from here on every initiator sees the token that changed, or we see
	 * that it is inside */
	if (windows_membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED))
		atomic_thread_fence(memory_order_seq_cst);
	do {
		pthread_mutex_lock(&w->peers_lock);
		inside = w->self && peer_inside(w);
		pthread_mutex_unlock(&w->peers_lock);
	} while (inside && progress_now(NULL).ns - start.ns < SECTION_NS &&
		 !sched_yield());
	return !inside;
}

void windows_peer_gone(struct windows *w, uint32_t id)
{
	struct peer *p = find_peer(w, id);

	if (p)
		drop_peer(w, p);
}

void windows_peers_gone(struct windows *w)
{
	while (!list_empty(&w->peers))
		drop_peer(w, list_first_entry(&w->peers, struct peer, node));
}
