/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The window pages of other programs. A target reads in them whether an initiator is in a section, and
 * waits until no initiator accesses its memory.
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
/* A peer that never leaves its section, or enters it again each time, must not cost us that
 * much at every deregistration. Each peer has an allowance: waiting for the peer uses it up,
 * and it grows by a hundredth of the time that passes. A target does not wait for a peer
 * without allowance. That is safe, because memory is taken back onto private pages in any
 * case. */
#define ALLOWANCE_NS (5 * SECTION_NS)
#define ALLOWANCE_PART 100

/** struct peer - another program's window page */
struct peer {
	struct list_head node;
	uint32_t id;
	const struct abi_window_page *page;
	/* --- protected by peers_lock --- */
	uint64_t allowance_ns;
	mono_t grown_at; /* it grew until then */
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
	p->allowance_ns = ALLOWANCE_NS;
	p->grown_at = progress_now(NULL);
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

/** struct wait - for sections to end */
struct wait {
	mono_t start;
	uint64_t elapsed_ns;
	bool inside;	 /* somebody is, as seen last */
	bool goes_on;	 /* somebody is whose allowance is not used up */
	uint32_t for_whom; /* the peer that was waited for last */
};

static void grow_allowances(struct windows *w, mono_t now)
{
	struct peer *p;

	pthread_mutex_lock(&w->peers_lock);
	list_for_each_entry(p, &w->peers, node) {
		p->allowance_ns = MIN(p->allowance_ns + (now.ns - p->grown_at.ns) / ALLOWANCE_PART,
				     ALLOWANCE_NS);
		p->grown_at = now;
	}
	pthread_mutex_unlock(&w->peers_lock);
}

static void look(struct windows *w, struct wait *wait)
{
	struct peer *p;

	wait->elapsed_ns = progress_now(NULL).ns - wait->start.ns;
	wait->inside = wait->goes_on = false;
	pthread_mutex_lock(&w->peers_lock);
	list_for_each_entry(p, &w->peers, node) {
		if (!w->self ||
		    atomic_load_explicit(&p->page->section, memory_order_acquire) != w->self)
			continue;
		wait->inside = true;
		if (wait->elapsed_ns >= MIN(p->allowance_ns, SECTION_NS))
			continue;
		wait->goes_on = true;
		wait->for_whom = p->id;
	}
	pthread_mutex_unlock(&w->peers_lock);
}

static void charge(struct windows *w, const struct wait *wait)
{
	struct peer *p;

	pthread_mutex_lock(&w->peers_lock);
	p = find_peer(w, wait->for_whom);
	if (p)
		p->allowance_ns -= MIN(p->allowance_ns, wait->elapsed_ns);
	pthread_mutex_unlock(&w->peers_lock);
}

bool windows_sections_end(struct windows *w)
{
	struct wait wait = {.start = progress_now(NULL)};
	bool waited = false;

	grow_allowances(w, wait.start);
	/* After this, an initiator that begins a section reads the changed token, or its section is
	 * visible to us. It pairs with window_enter(). */
	if (windows_membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED))
		atomic_thread_fence(memory_order_seq_cst);
	for (look(w, &wait); wait.goes_on; look(w, &wait)) {
		waited = true;
		sched_yield();
	}
	if (waited)
		charge(w, &wait);
	return !wait.inside;
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
