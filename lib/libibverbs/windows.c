/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The thread of windows. If the engine wants a window into a peer's memory, it asks softibd for it
 * (windows_take.c). If a peer wants one into our memory, it grants it (windows_give.c). It also unmaps
 * memory that is no longer granted.
 */
#include "windows_private.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/fds.h"
#include "engine/window.h"
#include "faults.h"
#include "runtime/posix/slice.h"
#include "soft.h"
#include "thread_start.h"

#define FORK_MS 5000 /* how long a parent waits for its child to copy the extents */
#define STACK_BYTES (256u << 10)
#define EXTENTS_MAX 256

/* --- talking --- */

void windows_say(struct windows *w, const struct abi_window_msg *m, int fd)
{
	abi_send_fds(w->sock, m, sizeof(*m), &fd, fd >= 0, 0);
}

/* under the engine's lock: a full socket means no window now */
static bool ask(void *arg, const struct eng_ask *a)
{
	struct soft_context *ctx = arg;
	struct abi_window_msg m = {.kind = ABI_WINDOW_ASK,
				   .qpn = a->qpn,
				   .rkey = a->rkey,
				   .connection = a->connection,
				   .va = a->va,
				   .length_bytes = a->length_bytes};

	/* not send(): a thread that is cancelled in it keeps the lock */
	return syscall(SYS_sendto, ctx->windows.sock, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL,
		       NULL, 0) == (long)sizeof(m);
}

/* --- the thread --- */

static void handle_message(struct soft_context *ctx, const struct abi_window_msg *m,
		  const int fds[2])
{
	switch (m->kind) {
	case ABI_WINDOW_WANT:
		windows_wanted(ctx, m, fds[0]);
		break;
	case ABI_WINDOW_GRANT:
		if (windows_granted(ctx, m, fds))
			break;
		/* fall through */
	case ABI_WINDOW_DENY:
		eng_window_denied(ctx->engine, m->qpn, m->rkey);
		break;
	case ABI_WINDOW_GONE:
		windows_forget(ctx, m->peer, m->window);
		break;
	case ABI_WINDOW_PEER_GONE:
		windows_forget(ctx, m->peer, ENG_WINDOW_ALL);
		windows_peer_gone(&ctx->windows, m->peer);
		break;
	}
}

static void *run(void *arg)
{
	struct soft_context *ctx = arg;
	struct windows *w = &ctx->windows;
	struct abi_window_msg m;
	int fds[2];
	ssize_t n;

	threads_begin();
	rt_short_slice();
	do {
		n = abi_receive(w->sock, &m, sizeof(m), 0, fds, 2);
		if (n == (ssize_t)sizeof(m))
			handle_message(ctx, &m, fds);
		for (int i = 0; i < 2; i++)
			if (fds[i] >= 0)
				close(fds[i]);
	} while (n > 0 || n == -EINTR);
	/* softibd is gone, or the device is closed */
	windows_forget(ctx, ENG_WINDOW_ALL, ENG_WINDOW_ALL);
	windows_end_extents(ctx);
	windows_peers_gone(w);
	threads_end();
	return NULL;
}

/* --- coming and going --- */

static bool is_set(const char *name, const char *to)
{
	const char *wish = getenv(name);

	return wish && !strcmp(wish, to);
}

static int enable(struct soft_context *ctx)
{
	struct windows *w = &ctx->windows;
	struct eng_window_config config = {
		.page = w->page,
		.fenced = windows_membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) != 0,
		.ask = ask,
		.quiesce = windows_quiesce,
		.sections_end = windows_sections_over,
		.unbound = windows_unbound,
		.ctx = ctx,
	};
	int rc = eng_windows_enable(ctx->engine, &config);

	return rc ? rc : threads_start(&w->thread, "softib-windows", STACK_BYTES, run, ctx);
}

/* Each extent takes a descriptor and some mappings. Extents may take a quarter of the descriptors that
 * the process may have, so that most are left to the program. */
static unsigned most_extents(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur / 4 > EXTENTS_MAX)
		return EXTENTS_MAX;
	return (unsigned)files.rlim_cur / 4;
}

int windows_start(struct soft_context *ctx, int sock, int page_fd)
{
	struct windows *w = &ctx->windows;
	void *page = MAP_FAILED;
	int rc = -EOPNOTSUPP;

	w->sock = sock;
	w->early = is_set("SOFTIB_WINDOWS", "early");
	w->max_extents = most_extents();
	pthread_mutex_init(&w->lock, NULL);
	pthread_mutex_init(&w->peers_lock, NULL);
	INIT_LIST_HEAD(&w->extents);
	INIT_LIST_HEAD(&w->peers);
	INIT_LIST_HEAD(&w->mapped);
	if (!is_set("SOFTIB_WINDOWS", "0") && !is_set("SOFTIB_LANES", "0") &&
	    abi_fd_holds(page_fd, sizeof(*w->page)))
		page = mmap(NULL, sizeof(*w->page), PROT_READ | PROT_WRITE, MAP_SHARED,
			    page_fd, 0);
	/* This forbids writable mappings other than this one. softibd shows the page to peers only
	 * with this seal. */
	if (page != MAP_FAILED)
		fcntl(page_fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
	close(page_fd);
	if (page != MAP_FAILED) {
		madvise(page, sizeof(*w->page), MADV_DONTFORK);
		w->page = page;
		w->copied = mmap(NULL, sizeof(*w->copied), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		rc = w->copied == MAP_FAILED ? -errno : enable(ctx);
	}
	w->on = !rc;
	if (!w->on) { /* the closed socket tells softibd that this program grants nothing */
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

/* Wait for the child without a pipe, because no descriptor is left. The end of a pipe would also report
 * a child that dies; here FORK_MS limits the wait for it. */
static void wait_for_word(_Atomic uint32_t *copied)
{
	const struct timespec most = {.tv_sec = FORK_MS / 1000};

	while (!atomic_load(copied) &&
	       (!syscall(SYS_futex, copied, FUTEX_WAIT, 0, &most, NULL, 0) || errno == EINTR))
		;
}

/* Until fork() has returned, no memory moves, and no extent is created or ended. */
void windows_before_fork(struct soft_context *ctx)
{
	struct windows *w = &ctx->windows;

	if (!w->on)
		return;
	w->fork_state = lock_for_calls(&w->lock);
	if (list_empty(&w->extents) || pipe2(w->fork_pipe, O_CLOEXEC))
		w->fork_pipe[0] = -1;
	atomic_store(w->copied, list_empty(&w->extents));
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
	} else {
		wait_for_word(w->copied);
	}
	unlock_after_calls(&w->lock, w->fork_state);
}

void windows_in_child(struct soft_context *ctx)
{
	struct windows *w = &ctx->windows;
	struct extent *x;

	if (!w->on)
		return;
	close(w->sock); /* memory_copy_for_child() needs a descriptor, and none may be left */
	list_for_each_entry(x, &w->extents, node)
		memory_copy_for_child(x);
	windows_drop_next(w);
	atomic_store(w->copied, 1);
	syscall(SYS_futex, w->copied, FUTEX_WAKE, 1, NULL, NULL, 0);
	if (w->fork_pipe[0] >= 0) {
		close(w->fork_pipe[0]);
		close(w->fork_pipe[1]);
	}
	w->on = false;
	unlock_after_calls(&w->lock, w->fork_state);
}

void windows_free(struct soft_context *ctx)
{
	struct windows *w = &ctx->windows;

	windows_drop_next(w);
	if (w->page)
		munmap(w->page, sizeof(*w->page));
	if (w->copied && w->copied != MAP_FAILED)
		munmap((void *)w->copied, sizeof(*w->copied));
	if (w->sock >= 0)
		close(w->sock);
}
