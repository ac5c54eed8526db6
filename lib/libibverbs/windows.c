/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The thread of windows: it asks softibd for peers' memory when the engine
 * wants it, gives ours when a peer does, and forgets what is gone. Memory
 * moves only here, when the first peer asks for it; keys and QPs that end
 * call in from the program's threads.
 */
#include "windows.h"

#include <fcntl.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/fds.h"
#include "engine/window.h"
#include "runtime/posix/slice.h"
#include "soft.h"

#define WRITING_RIGHTS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
/* how long an initiator may be inside a section before it is left behind:
 * one that runs needs microseconds, one that lost its core some slices */
#define SECTION_NS  (20 * NSEC_PER_MSEC)
#define FORK_MS 5000 /* for a child to copy what it must not share */
#define STACK_BYTES (256u << 10)

/** struct peer - another program's window page */
struct peer {
	struct list_head node;
	uint32_t id;
	const struct abi_window_page *page;
};

/** struct mapped - memory of a peer, mapped here */
struct mapped {
	struct list_head node;
	uint32_t peer, window;
	bool writable;
	char *base;
	size_t bytes;
	uint64_t offset;
};

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

/* --- talking --- */

/* what does not go through is softibd's end: then nothing matters */
static void say(struct windows *w, const struct abi_window_msg *m, int fd)
{
	abi_send_fds(w->sock, m, sizeof(*m), &fd, fd >= 0, 0);
}

/* under the engine's lock: a full socket means no window now */
static void ask(void *arg, uint32_t qpn, uint32_t rkey, uint64_t va,
		uint64_t length_bytes)
{
	struct soft_context *ctx = arg;
	struct abi_window_msg m = {.kind = ABI_WINDOW_ASK,
				   .qpn = qpn,
				   .rkey = rkey,
				   .va = va,
				   .length_bytes = length_bytes};

	send(ctx->windows.sock, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* --- peers' pages --- */

static struct peer *find_peer(struct windows *w, uint32_t id)
{
	struct peer *p;

	list_for_each_entry(p, &w->peers, node) if (p->id == id) return p;
	return NULL;
}

/* Return: the page of program @id, mapped from @fd when it is new; NULL */
static const struct abi_window_page *take_peer(struct windows *w, uint32_t id, int fd)
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

	list_for_each_entry(
		p, &w->peers,
		node) if (atomic_load_explicit(&p->page->section, memory_order_acquire) ==
			  w->self) return true;
	return false;
}

/* Return: false: an initiator is still inside, stopped perhaps */
static bool sections_end(struct windows *w)
{
	mono_t start = progress_now(NULL);
	bool inside;

	/* from here on every initiator sees the token that changed, or we see
	 * that it is inside */
	if (membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED))
		atomic_thread_fence(memory_order_seq_cst);
	do {
		pthread_mutex_lock(&w->peers_lock);
		inside = w->self && peer_inside(w);
		pthread_mutex_unlock(&w->peers_lock);
	} while (inside && progress_now(NULL).ns - start.ns < SECTION_NS &&
		 !sched_yield());
	return !inside;
}

/* --- as a target --- */

/* under windows.lock. Whoever does not leave in time keeps the old pages. */
static void end_extent(struct soft_context *ctx, struct extent *x)
{
	struct abi_window_msg m = {.kind = ABI_WINDOW_CLOSE, .window = x->id};

	eng_token_give(ctx->engine, x->token);
	sections_end(&ctx->windows);
	say(&ctx->windows, &m, -1);
	memory_take_back(x);
	list_del(&x->node);
	free(x);
}

static void end_extents(struct soft_context *ctx)
{
	struct windows *w = &ctx->windows;

	pthread_mutex_lock(&w->lock);
	while (!list_empty(&w->extents))
		end_extent(ctx, list_first_entry(&w->extents, struct extent, node));
	pthread_mutex_unlock(&w->lock);
}

/* eng_window_config.quiesce: a QP's peer may do nothing any more */
static void quiesce(void *arg)
{
	struct soft_context *ctx = arg;

	if (!sections_end(&ctx->windows))
		end_extents(ctx);
}

static bool has_key(const struct extent *x, uint32_t key)
{
	for (unsigned i = 0; i < x->num_keys; i++)
		if (x->key[i] == key)
			return true;
	return false;
}

void windows_key_gone(struct soft_context *ctx, uint32_t key)
{
	struct windows *w = &ctx->windows;
	struct extent *x, *tmp;

	if (!w->on)
		return;
	pthread_mutex_lock(&w->lock);
	list_for_each_entry_safe(x, tmp, &w->extents, node) if (has_key(x, key))
		end_extent(ctx, x);
	pthread_mutex_unlock(&w->lock);
}

/** struct range - the whole pages of a region */
struct range {
	char *start, *end;
};

static struct range whole_pages(const struct eng_mr_attr *mr)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = ((uintptr_t)mr->addr + page - 1) & ~(page - 1);
	uintptr_t end = ((uintptr_t)mr->addr + mr->length) & ~(page - 1);

	return (struct range){(char *)start, (char *)MAX(start, end)};
}

static struct extent *make_extent(struct soft_context *ctx, const struct area *a,
				  const struct range *r)
{
	struct windows *w = &ctx->windows;
	struct extent *x = memory_can_move() ? calloc(1, sizeof(*x)) : NULL;
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
	list_add_tail(&x->node, &w->extents);
	return x;
undo_token:
	eng_token_give(ctx->engine, x->token);
undo_extent:
	free(x);
	return NULL;
}

/*
 * The extent for the page at @addr of a region: one that is there already or
 * a new one. An extent that reaches beyond the region would show more than
 * the region does: then there is none.
 */
static struct extent *extent_for(struct soft_context *ctx, const struct eng_mr_attr *mr,
				 const char *addr)
{
	struct range r = whole_pages(mr);
	struct extent *x;
	struct area a;

	if (addr < r.start || addr >= r.end || !memory_area_at(addr, &a))
		return NULL;
	if (a.movable)
		return make_extent(ctx, &a, &r);
	list_for_each_entry(x, &ctx->windows.extents,
			    node) if (x->inode == a.inode &&
				      x->dev == a.dev) return a.start -
					a.offset ==
				x->addr - x->offset &&
			x->addr >= r.start && x->addr + x->bytes <= r.end
		? x
		: NULL;
	return NULL;
}

static bool add_key(struct extent *x, uint32_t key)
{
	if (has_key(x, key))
		return true;
	if (x->num_keys == WINDOWS_KEYS)
		return false;
	x->key[x->num_keys++] = key;
	return true;
}

/* under windows.lock: what a peer wants. Return: false: it goes by packets */
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
	if (!x || !add_key(x, want->rkey))
		return false;
	/* while pages moved, the key or the QP may have gone */
	if (eng_window_offer(ctx->engine, want->qpn, want->rkey, &offer)) {
		end_extent(ctx, x);
		return false;
	}
	m.window = x->id;
	m.va = offer.mr.iova + (uint64_t)(x->addr - (char *)offer.mr.addr);
	m.length_bytes = x->bytes;
	m.offset = (uint64_t)x->offset;
	m.access = (uint32_t)offer.access;
	m.qp_token = offer.token;
	m.qp_value = offer.value;
	m.window_token = x->token;
	m.window_value = x->value;
	say(&ctx->windows, &m, x->memfd);
	return true;
}

static void wanted(struct soft_context *ctx, const struct abi_window_msg *want,
		   int page_fd)
{
	struct windows *w = &ctx->windows;
	struct abi_window_msg no = {.kind = ABI_WINDOW_DENY, .id = want->id};
	bool given;

	pthread_mutex_lock(&w->lock);
	w->self = want->window;
	given = take_peer(w, want->peer, page_fd) && give(ctx, want);
	pthread_mutex_unlock(&w->lock);
	if (!given)
		say(w, &no, -1);
}

/* --- as an initiator --- */

static struct mapped *find_mapped(struct windows *w, const struct abi_window_msg *g)
{
	bool writable = g->access & WRITING_RIGHTS;
	struct mapped *m;

	list_for_each_entry(m, &w->mapped, node) if (m->peer == g->peer &&
						     m->window == g->window &&
						     m->writable == writable) return m;
	return NULL;
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
	/* the faults of a first use, here rather than there */
	madvise(base, g->length_bytes,
		writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
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

static bool granted(struct soft_context *ctx, const struct abi_window_msg *g,
		    const int fds[2])
{
	struct windows *w = &ctx->windows;
	const struct abi_window_page *page;
	struct eng_grant grant;
	struct mapped *m;

	if (!grant_is_sound(g) || fds[1] < 0 ||
	    !abi_fd_holds(fds[0], (size_t)(g->offset + g->length_bytes)))
		return false;
	page = take_peer(w, g->peer, fds[1]);
	m = find_mapped(w, g);
	if (!m)
		m = map_memory(w, g, fds[0]);
	if (!page || !m || m->offset != g->offset || m->bytes != g->length_bytes)
		return false;
	grant = (struct eng_grant){
		.qpn = g->qpn,
		.rkey = g->rkey,
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

static void forget_memory(struct soft_context *ctx, uint32_t peer, uint32_t window)
{
	struct mapped *m, *tmp;

	eng_window_forget(ctx->engine, peer, window);
	list_for_each_entry_safe(m, tmp, &ctx->windows.mapped,
				 node) if ((peer == ENG_WINDOW_ALL || m->peer == peer) &&
					   (window == ENG_WINDOW_ALL ||
					    m->window == window)) unmap_memory(m);
}

static void peer_gone(struct soft_context *ctx, uint32_t id)
{
	struct peer *p = find_peer(&ctx->windows, id);

	forget_memory(ctx, id, ENG_WINDOW_ALL);
	if (p)
		drop_peer(&ctx->windows, p);
}

/* --- the thread --- */

static void heard(struct soft_context *ctx, const struct abi_window_msg *m,
		  const int fds[2])
{
	switch (m->kind) {
	case ABI_WINDOW_WANT:
		wanted(ctx, m, fds[0]);
		break;
	case ABI_WINDOW_GRANT:
		if (granted(ctx, m, fds))
			break;
		/* fall through */
	case ABI_WINDOW_DENY:
		eng_window_denied(ctx->engine, m->qpn, m->rkey);
		break;
	case ABI_WINDOW_GONE:
		forget_memory(ctx, m->peer, m->window);
		break;
	case ABI_WINDOW_PEER_GONE:
		peer_gone(ctx, m->peer);
		break;
	}
}

static ssize_t receive(int sock, struct abi_window_msg *m, int fds[2])
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct iovec iov = {m, sizeof(*m)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t n;

	fds[0] = fds[1] = -1;
	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		abi_take_fds(&msg, fds, 2);
	return n;
}

static void *run(void *arg)
{
	struct soft_context *ctx = arg;
	struct windows *w = &ctx->windows;
	struct abi_window_msg m;
	int fds[2];
	ssize_t n;

	rt_short_slice();
	do {
		n = receive(w->sock, &m, fds);
		if (n == (ssize_t)sizeof(m))
			heard(ctx, &m, fds);
		for (int i = 0; i < 2; i++)
			if (fds[i] >= 0)
				close(fds[i]);
	} while (n > 0);
	/* softibd is gone, or the device is closed */
	forget_memory(ctx, ENG_WINDOW_ALL, ENG_WINDOW_ALL);
	end_extents(ctx);
	while (!list_empty(&w->peers))
		drop_peer(w, list_first_entry(&w->peers, struct peer, node));
	return NULL;
}

/* --- coming and going --- */

static bool is_off(const char *name)
{
	const char *wish = getenv(name);

	return wish && !strcmp(wish, "0");
}

static int start_thread(struct soft_context *ctx)
{
	struct windows *w = &ctx->windows;
	pthread_attr_t attr;
	sigset_t all, old;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&w->thread, &attr, run, ctx);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (!rc)
		pthread_setname_np(w->thread, "softib-windows");
	return -rc;
}

static int enable(struct soft_context *ctx)
{
	struct windows *w = &ctx->windows;
	struct eng_window_config config = {
		.page = w->page,
		.fenced = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) != 0,
		.ask = ask,
		.quiesce = quiesce,
		.ctx = ctx,
	};
	int rc = eng_windows_enable(ctx->engine, &config);

	return rc ? rc : start_thread(ctx);
}

int windows_start(struct soft_context *ctx, int sock, int page_fd)
{
	struct windows *w = &ctx->windows;
	void *page = MAP_FAILED;
	int rc = -EOPNOTSUPP;

	w->sock = sock;
	pthread_mutex_init(&w->lock, NULL);
	pthread_mutex_init(&w->peers_lock, NULL);
	INIT_LIST_HEAD(&w->extents);
	INIT_LIST_HEAD(&w->peers);
	INIT_LIST_HEAD(&w->mapped);
	if (!is_off("SOFTIB_WINDOWS") && !is_off("SOFTIB_LANES") &&
	    abi_fd_holds(page_fd, sizeof(*w->page)))
		page = mmap(NULL, sizeof(*w->page), PROT_READ | PROT_WRITE, MAP_SHARED,
			    page_fd, 0);
	close(page_fd);
	if (page != MAP_FAILED) {
		madvise(page, sizeof(*w->page), MADV_DONTFORK);
		w->page = page;
		rc = enable(ctx);
	}
	w->on = !rc;
	if (!w->on) { /* softibd hears that nobody listens here */
		close(sock);
		w->sock = -1;
	}
	return rc;
}

void windows_stop(struct soft_context *ctx)
{
	struct windows *w = &ctx->windows;

	if (!w->on)
		return;
	shutdown(w->sock, SHUT_RDWR);
	pthread_join(w->thread, NULL);
}

/* Nothing moves, and no extent comes or goes, until fork() is over. */
void windows_before_fork(struct soft_context *ctx)
{
	struct windows *w = &ctx->windows;

	if (!w->on)
		return;
	pthread_mutex_lock(&w->lock);
	if (list_empty(&w->extents) || pipe2(w->fork_pipe, O_CLOEXEC))
		w->fork_pipe[0] = -1;
}

void windows_after_fork(struct soft_context *ctx)
{
	struct windows *w = &ctx->windows;
	struct pollfd copied = {.fd = w->fork_pipe[0], .events = POLLIN};

	if (!w->on)
		return;
	if (copied.fd >= 0) {
		close(w->fork_pipe[1]);
		while (poll(&copied, 1, FORK_MS) < 0 && errno == EINTR)
			;
		close(copied.fd);
	}
	pthread_mutex_unlock(&w->lock);
}

void windows_in_child(struct soft_context *ctx)
{
	struct windows *w = &ctx->windows;
	struct extent *x;

	if (!w->on)
		return;
	list_for_each_entry(x, &w->extents, node)
		memory_copy_for_child(x);
	if (w->fork_pipe[0] >= 0) {
		close(w->fork_pipe[0]);
		close(w->fork_pipe[1]);
	}
	close(w->sock);
	w->on = false;
	pthread_mutex_unlock(&w->lock);
}

void windows_free(struct soft_context *ctx)
{
	struct windows *w = &ctx->windows;

	if (w->page)
		munmap(w->page, sizeof(*w->page));
	if (w->sock >= 0)
		close(w->sock);
}
