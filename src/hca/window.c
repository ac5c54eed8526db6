/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Windows: softibd introduces two programs to each other, and counts the
 * requests that they then perform without it (src/abi/window.h). It checks a
 * question (ABI_WINDOW_ASK) against its own state: the two QPs must be connected
 * to each other, the key must have the right protection domain and access
 * rights, and packets must be able to pass both ways without being observed or
 * changed. The target only adds where the memory is. softibd maps no memory of a
 * program but its window page, and never waits for a program.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "abi/fds.h"
#include "hca/window_private.h"
#include "runtime/posix/closer.h"

/** struct question - an ASK that the target has not answered; struct abi_window_msg.id identifies
 *  it */
struct question {
	struct list_head node;
	uint32_t id, epoch;
	struct hca_windows *from, *to;
	uint32_t from_qpn, to_qpn, rkey;
	uint32_t connection; /* the number by which @from identifies it */
};

/** struct pair - two programs: @from has asked @to for memory, and @to has the window page of
 *  @from */
struct pair {
	struct list_head node;
	struct hca_windows *from, *to;
};

/** struct given - memory of a target, which identifies it by @window. @from was granted access to
 *  it, and has not been told to forget it */
struct given {
	struct list_head node; /* hca_windows.given of the target */
	struct hca_windows *from;
	uint32_t window;
};

#define GIVEN_MAX 16384 /* grants of one target: 256 extents, to 64 peers each */

static struct hca_set *set_of(const struct hca_windows *w)
{
	return w->user->hca->set;
}

/* --- messages to programs --- */

/* A program that does not read its socket gets no more messages. The socket is shut down, which
 * tells the program to forget every window. */
static void send_message(struct hca_windows *to, const struct abi_window_msg *m, const int *fds,
		unsigned n)
{
	if (to->dead || !abi_send_fds(to->fd, m, sizeof(*m), fds, n, MSG_DONTWAIT))
		return;
	to->dead = true;
	shutdown(to->fd, SHUT_RDWR);
}

static void deny(struct hca_windows *to, uint32_t qpn, uint32_t rkey)
{
	struct abi_window_msg m = {.kind = ABI_WINDOW_DENY, .qpn = qpn, .rkey = rkey};

	send_message(to, &m, NULL, 0);
}

static void free_question(struct question *q)
{
	q->from->num_asks--;
	list_del(&q->node);
	rt_free(q);
}

/* --- the four steps --- */

static bool make_pair(struct hca_windows *from, struct hca_windows *to)
{
	struct list_head *pairs = &set_of(from)->pairs;
	struct pair *p;

	list_for_each_entry(p, pairs, node)
		if (p->from == from && p->to == to)
			return true;
	p = rt_zalloc(sizeof(*p));
	if (!p)
		return false;
	p->from = from;
	p->to = to;
	list_add_tail(&p->node, pairs);
	return true;
}

/* The owner of a page maps it writable and then seals it. Without the seal, a peer could open the
 * descriptor anew for writing through /proc: it runs as the same user, so no mode of the file
 * forbids it. */
static bool page_is_sealed(struct hca_windows *w)
{
	if (!w->page_sealed)
		w->page_sealed = fcntl(w->page_fd, F_GET_SEALS) & F_SEAL_FUTURE_WRITE;
	return w->page_sealed;
}

static void asked(struct hca_windows *w, const struct abi_window_msg *m)
{
	struct question *q;
	struct window_connection c;
	struct abi_window_msg want = {.kind = ABI_WINDOW_WANT,
				      .rkey = m->rkey,
				      .peer = w->id,
				      .va = m->va,
				      .length_bytes = m->length_bytes};

	if (w->num_asks >= ABI_WINDOW_ASKS || !hca_window_find(w, m->qpn, m->rkey, &c)) {
		deny(w, m->qpn, m->rkey);
		return;
	}
	hca_window_free_ways(&c);
	q = c.to->dead || !page_is_sealed(w) || !page_is_sealed(c.to) || !make_pair(w, c.to) ?
		    NULL :
		    rt_zalloc(sizeof(*q));
	if (!q) {
		deny(w, m->qpn, m->rkey);
		return;
	}
	*q = (struct question){.id = ++set_of(w)->next_question,
			       .epoch = w->user->hca->route_epoch,
			       .from = w,
			       .to = c.to,
			       .from_qpn = m->qpn,
			       .to_qpn = c.to_qp->ib.qp_num,
			       .rkey = m->rkey,
			       .connection = m->connection};
	list_add_tail(&q->node, &set_of(w)->questions);
	w->num_asks++;
	want.id = q->id;
	want.qpn = q->to_qpn;
	want.window = c.to->id;
	want.access = (uint32_t)c.access;
	send_message(c.to, &want, &w->page_fd, 1);
	if (c.to->dead) {
		deny(w, m->qpn, m->rkey);
		free_question(q);
	}
}

/* May peers map this memory safely? Its size must be sealed, so that the owner cannot truncate it
 * under its peers, which would raise SIGBUS there. It must also not be in hugetlbfs: if the owner
 * punches a hole into ordinary shared memory, peers read zeros, but in hugetlbfs they get a
 * SIGBUS when no huge page is left. */
static bool memory_is_sound(int fd, const struct abi_window_msg *m)
{
	int seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct statfs fs;
	struct stat st;

	return seals >= 0 && seals & F_SEAL_SHRINK && !fstatfs(fd, &fs) &&
	       fs.f_type == TMPFS_MAGIC && !fstat(fd, &st) &&
	       m->length_bytes && m->length_bytes <= ABI_WINDOW_MAX_BYTES &&
	       !(m->length_bytes % page) && !(m->offset % page) &&
	       m->offset <= (uint64_t)st.st_size &&
	       m->length_bytes <= (uint64_t)st.st_size - m->offset;
}

static void drop_given(struct hca_windows *to, struct given *g)
{
	list_del(&g->node);
	to->num_given--;
	rt_free(g);
}

/* Record a grant, so that it can be revoked later. Return: false: it must not be given, because the
 * target has too many grants, or there is no memory */
static bool note_given(struct hca_windows *to, struct hca_windows *from, uint32_t window)
{
	struct given *g;

	list_for_each_entry(g, &to->given, node)
		if (g->from == from && g->window == window)
			return true;
	g = to->num_given < GIVEN_MAX ? rt_zalloc(sizeof(*g)) : NULL;
	if (!g)
		return false;
	g->from = from;
	g->window = window;
	list_add_tail(&g->node, &to->given);
	to->num_given++;
	return true;
}

/* Is the memory of the answer inside the region of the key? @mr: NULL: the key is that of a
 * memory window, whose bounds only the target knows */
static bool inside_key(const struct ib_mr *mr, const struct abi_window_msg *m)
{
	return !mr || range_covers(mr->iova, mr->length, m->va, m->length_bytes);
}

/* Open the same memory read-only. O_NONBLOCK keeps open(2) from waiting for a lease that the
 * owner may have taken on the file. */
static int read_only(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

static bool grant(const struct question *q, const struct abi_window_msg *m, int fd,
		  struct window_connection *c)
{
	struct window_flow *f = hca_window_flow(q->from, q->from_qpn);
	struct abi_window_msg g = *m;
	int fds[2] = {-1, c->to->page_fd};

	g.access = m->access & (uint32_t)c->access;
	if (!f || !g.access)
		return false;
	if (!(g.access & WRITING_RIGHTS) && !(fcntl(fd, F_GET_SEALS) & F_SEAL_FUTURE_WRITE))
		return false; /* a peer could open the descriptor anew for writing */
	fds[0] = g.access & WRITING_RIGHTS ? dup(fd) : read_only(fd);
	if (fds[0] < 0)
		return false;
	if (!note_given(c->to, q->from, m->window)) {
		rt_close_foreign(fds[0]);
		return false;
	}
	hca_window_flow_set(q->from, f, c->way, c->back);
	c->way = c->back = NULL;
	g.kind = ABI_WINDOW_GRANT;
	g.qpn = q->from_qpn;
	g.rkey = q->rkey;
	g.peer = c->to->id;
	g.flow = f->index;
	g.epoch = q->epoch;
	g.connection = q->connection;
	send_message(q->from, &g, fds, 2);
	rt_close_foreign(fds[0]);
	return true;
}

static void answered(struct hca_windows *w, const struct abi_window_msg *m, int fd)
{
	struct window_connection c;
	struct list_head *questions = &set_of(w)->questions;
	struct question *q;
	bool granted = false;

	list_for_each_entry(q, questions, node)
		if (q->id == m->id && q->to == w)
			break;
	if (&q->node == questions)
		return;
	/* the state against which the question was checked may have changed meanwhile */
	if (m->kind == ABI_WINDOW_GIVE && q->epoch == q->from->user->hca->route_epoch &&
	    memory_is_sound(fd, m) && hca_window_find(q->from, q->from_qpn, q->rkey, &c)) {
		if (c.to == w && c.to_qp->ib.qp_num == q->to_qpn && inside_key(c.mr, m))
			granted = grant(q, m, fd, &c);
		hca_window_free_ways(&c);
	}
	if (!granted)
		deny(q->from, q->from_qpn, q->rkey);
	free_question(q);
}

/* Only the programs that were granted the memory are told, and only once. Otherwise a target
 * could fill the sockets of its peers, which would then get no more messages. */
static void closed(struct hca_windows *w, const struct abi_window_msg *m)
{
	struct abi_window_msg gone = {
		.kind = ABI_WINDOW_GONE, .peer = w->id, .window = m->window};
	struct given *g, *tmp;

	list_for_each_entry_safe(g, tmp, &w->given, node)
	{
		if (g->window != m->window)
			continue;
		send_message(g->from, &gone, NULL, 0);
		drop_given(w, g);
	}
}

/* --- a program's messages --- */

static void handle_message(struct hca_windows *w, const struct abi_window_msg *m, int fd)
{
	switch (m->kind) {
	case ABI_WINDOW_ASK:
		asked(w, m);
		break;
	case ABI_WINDOW_GIVE:
	case ABI_WINDOW_DENY:
		answered(w, m, fd);
		break;
	case ABI_WINDOW_CLOSE:
		closed(w, m);
		break;
	}
}

static void on_message(struct rt_io *io, bool readable, bool writable)
{
	struct hca_windows *w = container_of(io, struct hca_windows, io);
	struct abi_window_msg m;
	int fd;
	ssize_t n = rt_receive(w->fd, &m, sizeof(m), MSG_DONTWAIT, &fd, 1);

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n <= 0) { /* the program has closed its end: the session ends, or it wants no windows */
		w->dead = true;
		rt_io_watch(io, false, false);
	} else if (n == (ssize_t)sizeof(m) && !w->user->broken) {
		handle_message(w, &m, fd);
	}
	rt_close_foreign(fd);
}

/* --- coming and going --- */

static int make_page(struct hca_windows *w, int *page_fd)
{
	void *map;
	int fd = memfd_create("softib-windows", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	*page_fd = fd;
	if (ftruncate(fd, (off_t)sizeof(struct abi_window_page)) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		return -errno;
	map = mmap(NULL, sizeof(struct abi_window_page), PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	w->page = map;
	w->page_fd = read_only(fd);
	return w->page_fd < 0 ? -errno : 0;
}

int hca_windows_open(struct hca_user *user)
{
	struct hca_windows *w = rt_zalloc(sizeof(*w));
	const int on = 1;
	int pair[2], ret;

	if (!w)
		return -ENOMEM;
	user->windows = w;
	w->user = user;
	w->fd = w->page_fd = -1;
	w->id = ++user->hca->set->next_windows;
	INIT_LIST_HEAD(&w->flows);
	INIT_LIST_HEAD(&w->given);
	INIT_LIST_HEAD(&w->all);
	ret = make_page(w, &user->fd[ABI_FD_WINDOW_PAGE]);
	if (ret)
		return ret;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	user->fd[ABI_FD_WINDOWS] = pair[0];
	w->fd = pair[1];
	/* this end was made by softibd: rt_receive() knows by the credentials who sends descriptors */
	setsockopt(w->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	rt_io_init(user->hca->rt, &w->io, w->fd, on_message);
	rt_io_watch(&w->io, true, false);
	list_add_tail(&w->all, &user->hca->set->windows);
	return 0;
}

static void drop_questions(struct hca_windows *w)
{
	struct question *q, *tmp;

	list_for_each_entry_safe(q, tmp, &set_of(w)->questions, node)
	{
		if (q->from != w && q->to != w)
			continue;
		if (q->to == w && q->from != w)
			deny(q->from, q->from_qpn, q->rkey);
		free_question(q);
	}
}

/* Free the grants from @to to @from, because one of the two ends. */
static void drop_all_given(struct hca_windows *to, const struct hca_windows *from)
{
	struct given *g, *tmp;

	list_for_each_entry_safe(g, tmp, &to->given, node)
		if (!from || g->from == from)
			drop_given(to, g);
}

static void drop_pairs(struct hca_windows *w)
{
	struct abi_window_msg gone = {.kind = ABI_WINDOW_PEER_GONE, .peer = w->id};
	struct pair *p, *tmp;

	list_for_each_entry_safe(p, tmp, &set_of(w)->pairs, node)
	{
		if (p->from != w && p->to != w)
			continue;
		send_message(p->from == w ? p->to : p->from, &gone, NULL, 0);
		drop_all_given(p->to, p->from);
		list_del(&p->node);
		rt_free(p);
	}
}

void hca_windows_close(struct hca_user *user)
{
	struct hca_windows *w = user->windows;

	if (!w)
		return;
	w->dead = true; /* no message is sent to it any more */
	drop_questions(w);
	drop_pairs(w);
	hca_window_count_end(w);
	list_del(&w->all);
	if (w->fd >= 0) {
		rt_io_watch(&w->io, false, false);
		rt_close_socket(w->fd);
	}
	if (w->page)
		munmap((void *)w->page, sizeof(*w->page));
	if (w->page_fd >= 0)
		close(w->page_fd);
	user->windows = NULL;
	rt_free(w);
}
