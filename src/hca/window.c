/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Windows: softibd introduces two programs to each other and counts what they
 * then do without it (src/abi/window.h). A question is checked against what
 * softibd itself knows: both QPs, connected to each other, the key, its
 * protection domain and rights, and the ways of requests and answers. The
 * target only adds where the memory is. No memory of a program is mapped
 * here but its window page, and nobody is waited for.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/fds.h"
#include "abi/window.h"
#include "hca/private.h"

#define REMOTE_RIGHTS                                                                    \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define WRITING_RIGHTS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define FLOW_WORDS     (ABI_WINDOW_FLOWS / 64)

/** struct flow - a QP that uses windows, and the ways it is counted on */
struct flow {
	struct list_head node; /* hca_windows.flows */
	uint32_t qpn, index;
	struct fab_way *way, *back;
	uint64_t packets, dwords, answer_packets, answer_dwords; /* counted */
};

/** struct hca_windows - a program's half of all its windows */
struct hca_windows {
	struct list_head all;
	struct hca_user *user;
	uint32_t id;
	int fd, page_fd; /* our end of ABI_FD_WINDOWS; the page, read-only */
	struct rt_io io;
	bool deaf; /* it does not read what it is told: it takes no part */
	const struct abi_window_page *page;
	unsigned num_asks;
	struct list_head flows;
	uint64_t flow_used[FLOW_WORDS];
};

/** struct question - an ASK on its way: struct abi_window_msg.id names it */
struct question {
	struct list_head node;
	uint32_t id, epoch;
	struct hca_windows *from, *to;
	uint32_t from_qpn, to_qpn, rkey;
};

/** struct pair - @from was once granted memory of @to */
struct pair {
	struct list_head node;
	struct hca_windows *from, *to;
};

/** struct connection - what an ASK names, as softibd knows it */
struct connection {
	struct hca_windows *to;
	const struct hca_qp *from_qp, *to_qp;
	const struct ib_mr *mr;
	int access;
	struct fab_way *way, *back;
};

static LIST_HEAD(everyone); /* struct hca_windows */
static LIST_HEAD(questions);
static LIST_HEAD(pairs);
static uint32_t next_id, next_question;
static uint64_t of_the_dead; /* operations of programs that are gone */

/* --- counting --- */

static void fold_flow(const struct hca_windows *w, struct flow *f)
{
	const struct abi_window_flow *c = &w->page->flow[f->index];
	struct flow now = {
		.packets = atomic_load_explicit(&c->packets, memory_order_relaxed),
		.dwords = atomic_load_explicit(&c->dwords, memory_order_relaxed),
		.answer_packets =
			atomic_load_explicit(&c->answer_packets, memory_order_relaxed),
		.answer_dwords =
			atomic_load_explicit(&c->answer_dwords, memory_order_relaxed),
	};

	if (f->way) {
		fab_way_count(f->way, now.packets - f->packets, now.dwords - f->dwords);
		fab_way_count(f->back, now.answer_packets - f->answer_packets,
			      now.answer_dwords - f->answer_dwords);
	}
	f->packets = now.packets;
	f->dwords = now.dwords;
	f->answer_packets = now.answer_packets;
	f->answer_dwords = now.answer_dwords;
}

void hca_windows_fold(void)
{
	struct hca_windows *w;
	struct flow *f;

	list_for_each_entry(w, &everyone, all) list_for_each_entry(f, &w->flows, node)
		fold_flow(w, f);
}

uint64_t hca_windows_operations(void)
{
	uint64_t sum = of_the_dead;
	struct hca_windows *w;

	list_for_each_entry(w, &everyone, all) sum +=
		atomic_load_explicit(&w->page->operations, memory_order_relaxed);
	return sum;
}

static void set_ways(struct flow *f, struct fab_way *way, struct fab_way *back)
{
	if (f->way) {
		fab_way_free(f->way);
		fab_way_free(f->back);
	}
	f->way = way;
	f->back = back;
}

static void free_flow(struct hca_windows *w, struct flow *f)
{
	fold_flow(w, f);
	set_ways(f, NULL, NULL);
	w->flow_used[f->index / 64] &= ~(1ull << f->index % 64);
	list_del(&f->node);
	rt_free(f);
}

/* those of QPs that are no more */
static void reclaim_flows(struct hca_windows *w)
{
	struct flow *f, *tmp;

	list_for_each_entry_safe(f, tmp, &w->flows,
				 node) if (!eng_table_get(&w->user->hca->qps, f->qpn))
		free_flow(w, f);
}

static int unused_index(const struct hca_windows *w)
{
	for (unsigned i = 0; i < FLOW_WORDS; i++)
		if (w->flow_used[i] != UINT64_MAX)
			return (int)(i * 64) + __builtin_ctzll(~w->flow_used[i]);
	return -1;
}

/* Return: the flow of QP @qpn, its own of before or a new one; NULL: none */
static struct flow *take_flow(struct hca_windows *w, uint32_t qpn)
{
	struct flow *f;
	int index;

	list_for_each_entry(f, &w->flows, node) if (f->qpn == qpn) return f;
	if (unused_index(w) < 0)
		reclaim_flows(w);
	index = unused_index(w);
	f = index < 0 ? NULL : rt_zalloc(sizeof(*f));
	if (!f)
		return NULL;
	f->qpn = qpn;
	f->index = (uint32_t)index;
	fold_flow(w, f); /* what an earlier QP left there is counted */
	w->flow_used[index / 64] |= 1ull << index % 64;
	list_add_tail(&f->node, &w->flows);
	return f;
}

/* --- talking --- */

/* Who does not read is told no more: its end closes, and it learns by that
 * that it must forget every window. */
static void say(struct hca_windows *to, const struct abi_window_msg *m, const int *fds,
		unsigned n)
{
	if (to->deaf || !abi_send_fds(to->fd, m, sizeof(*m), fds, n, MSG_DONTWAIT))
		return;
	to->deaf = true;
	shutdown(to->fd, SHUT_RDWR);
}

static void deny(struct hca_windows *to, uint32_t qpn, uint32_t rkey)
{
	struct abi_window_msg m = {.kind = ABI_WINDOW_DENY, .qpn = qpn, .rkey = rkey};

	say(to, &m, NULL, 0);
}

static void free_question(struct question *q)
{
	q->from->num_asks--;
	list_del(&q->node);
	rt_free(q);
}

/* --- what may be asked --- */

static uint16_t pkey_of(const struct hca_qp *qp)
{
	const struct ib_qp_attr *a = &qp->ib.attr;
	const struct hca *hca = hca_of(qp->ib.device);

	if (!a->port_num || a->port_num > hca->ib.phys_port_cnt ||
	    a->pkey_index >= ABI_PKEYS)
		return 0;
	return hca_devport(hca, a->port_num)->pkey[a->pkey_index];
}

/* the way of @qp's packets to its peer; NULL: it is not clean */
static struct fab_way *way_of(const struct hca_qp *qp)
{
	const struct ib_qp_attr *a = &qp->ib.attr;
	struct hca *hca = hca_of(qp->ib.device);
	uint16_t pkey = pkey_of(qp);
	struct fab_way *way;

	if (!(pkey & 0x7fff) || !hca_devport(hca, a->port_num)->lid ||
	    fab_way_create(hca->fab, hca->node, a->port_num, (uint16_t)a->ah_attr.dlid,
			   a->ah_attr.sl, pkey, &way))
		return NULL;
	return way;
}

/* the program's QP that @qp is connected to, at the end of @way */
static const struct hca_qp *peer_of(const struct hca_qp *qp, const struct fab_way *way)
{
	const struct fab_sink *sink = fab_way_sink(way);
	const struct hca_port *port = sink->ctx;
	const struct hca_qp *peer;

	if (sink->deliver != hca_port_deliver || qp->ib.attr.dest_qp_num < 2)
		return NULL;
	peer = eng_table_get(&port->hca->qps, qp->ib.attr.dest_qp_num);
	if (!peer || !peer->user || peer->ib.qp_type != IB_QPT_RC ||
	    peer->ib.attr.port_num != port->port_num)
		return NULL;
	return peer;
}

/* 9.6.1.1.1: one of the two is a full member */
static bool same_partition(uint16_t a, uint16_t b)
{
	return (a & 0x7fff) == (b & 0x7fff) && (a | b) & 0x8000;
}

static bool mtu_fits(const struct connection *c)
{
	unsigned bytes = 128u << c->from_qp->ib.attr.path_mtu;

	return c->from_qp->ib.attr.path_mtu == c->to_qp->ib.attr.path_mtu &&
	       bytes <= fab_way_mtu(c->way) && bytes <= fab_way_mtu(c->back);
}

/* 10.3.1: requests are accepted from RTR on */
static bool responds(enum ib_qp_state state)
{
	return state == IB_QPS_RTR || state == IB_QPS_RTS || state == IB_QPS_SQD;
}

static bool find_qps(struct hca_windows *w, uint32_t qpn, struct connection *c)
{
	const struct hca_qp *qp = eng_table_get(&w->user->hca->qps, qpn & 0xffffff);

	if (!qp || qp->user != w->user || qp->ib.qp_type != IB_QPT_RC ||
	    qp->ib.state != IB_QPS_RTS)
		return false;
	c->from_qp = qp;
	c->way = way_of(qp);
	c->to_qp = c->way ? peer_of(qp, c->way) : NULL;
	if (!c->to_qp || !c->to_qp->user->windows || !responds(c->to_qp->ib.state))
		return false;
	c->to = c->to_qp->user->windows;
	c->back = way_of(c->to_qp);
	return c->back && peer_of(c->to_qp, c->back) == qp &&
	       same_partition(pkey_of(qp), pkey_of(c->to_qp)) && mtu_fits(c);
}

static bool find_key(uint32_t rkey, struct connection *c)
{
	const struct hca_mr *mr = eng_table_get(&c->to->user->hca->keys, rkey >> 8);

	if (!mr || mr->ib.rkey != rkey || mr->ib.pd != c->to_qp->ib.pd)
		return false;
	c->mr = &mr->ib;
	c->access = mr->ib.access & c->to_qp->ib.attr.qp_access_flags & REMOTE_RIGHTS;
	if (!c->to_qp->ib.attr.max_dest_rd_atomic)
		c->access &= IBV_ACCESS_REMOTE_WRITE;
	return c->access != 0;
}

static void free_ways(struct connection *c)
{
	if (c->way)
		fab_way_free(c->way);
	if (c->back)
		fab_way_free(c->back);
}

/* Return: true and *@c, whose ways are the caller's */
static bool find(struct hca_windows *w, uint32_t qpn, uint32_t rkey, struct connection *c)
{
	*c = (struct connection){0};
	if (find_qps(w, qpn, c) && find_key(rkey, c))
		return true;
	free_ways(c);
	return false;
}

/* --- the four steps --- */

static void asked(struct hca_windows *w, const struct abi_window_msg *m)
{
	struct question *q;
	struct connection c;
	struct abi_window_msg want = {.kind = ABI_WINDOW_WANT,
				      .rkey = m->rkey,
				      .peer = w->id,
				      .va = m->va,
				      .length_bytes = m->length_bytes};

	if (w->num_asks >= ABI_WINDOW_ASKS || !find(w, m->qpn, m->rkey, &c)) {
		deny(w, m->qpn, m->rkey);
		return;
	}
	free_ways(&c);
	q = c.to->deaf ? NULL : rt_zalloc(sizeof(*q));
	if (!q) {
		deny(w, m->qpn, m->rkey);
		return;
	}
	*q = (struct question){.id = ++next_question,
			       .epoch = fab_epoch(w->user->hca->fab),
			       .from = w,
			       .to = c.to,
			       .from_qpn = m->qpn,
			       .to_qpn = c.to_qp->ib.qp_num,
			       .rkey = m->rkey};
	list_add_tail(&q->node, &questions);
	w->num_asks++;
	want.id = q->id;
	want.qpn = q->to_qpn;
	want.window = c.to->id;
	want.access = (uint32_t)c.access;
	say(c.to, &want, &w->page_fd, 1);
	if (c.to->deaf) {
		deny(w, m->qpn, m->rkey);
		free_question(q);
	}
}

static bool make_pair(struct hca_windows *from, struct hca_windows *to)
{
	struct pair *p;

	list_for_each_entry(p, &pairs,
			    node) if (p->from == from && p->to == to) return true;
	p = rt_zalloc(sizeof(*p));
	if (!p)
		return false;
	p->from = from;
	p->to = to;
	list_add_tail(&p->node, &pairs);
	return true;
}

/* memory that its owner cannot take from under its peers, and that is there */
static bool memory_is_sound(int fd, const struct abi_window_msg *m)
{
	int seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct stat st;

	return seals >= 0 && seals & F_SEAL_SHRINK && !fstat(fd, &st) &&
	       m->length_bytes && m->length_bytes <= ABI_WINDOW_MAX_BYTES &&
	       !(m->length_bytes % page) && !(m->offset % page) &&
	       m->offset <= (uint64_t)st.st_size &&
	       m->length_bytes <= (uint64_t)st.st_size - m->offset;
}

static bool inside_key(const struct ib_mr *mr, const struct abi_window_msg *m)
{
	return m->va >= mr->iova && m->va - mr->iova <= mr->length &&
	       m->length_bytes <= mr->length - (m->va - mr->iova);
}

/* the same memory, but not to be written through this descriptor */
static int read_only(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static bool grant(const struct question *q, const struct abi_window_msg *m, int fd,
		  struct connection *c)
{
	struct flow *f = take_flow(q->from, q->from_qpn);
	struct abi_window_msg g = *m;
	int fds[2] = {-1, c->to->page_fd};

	g.access = m->access & (uint32_t)c->access;
	if (!f || !g.access || !make_pair(q->from, c->to))
		return false;
	fds[0] = g.access & WRITING_RIGHTS ? dup(fd) : read_only(fd);
	if (fds[0] < 0)
		return false;
	fold_flow(q->from, f);
	set_ways(f, c->way, c->back);
	c->way = c->back = NULL;
	g.kind = ABI_WINDOW_GRANT;
	g.qpn = q->from_qpn;
	g.rkey = q->rkey;
	g.peer = c->to->id;
	g.flow = f->index;
	g.epoch = q->epoch;
	atomic_store(&q->from->user->hca->shared->route_epoch, q->epoch);
	say(q->from, &g, fds, 2);
	close(fds[0]);
	return true;
}

static void answered(struct hca_windows *w, const struct abi_window_msg *m, int fd)
{
	struct connection c;
	struct question *q;
	bool granted = false;

	list_for_each_entry(q, &questions, node) if (q->id == m->id && q->to == w) break;
	if (&q->node == &questions)
		return;
	/* what was checked may have changed since */
	if (m->kind == ABI_WINDOW_GIVE && q->epoch == fab_epoch(w->user->hca->fab) &&
	    memory_is_sound(fd, m) && find(q->from, q->from_qpn, q->rkey, &c)) {
		if (c.to == w && c.to_qp->ib.qp_num == q->to_qpn && inside_key(c.mr, m))
			granted = grant(q, m, fd, &c);
		free_ways(&c);
	}
	if (!granted)
		deny(q->from, q->from_qpn, q->rkey);
	free_question(q);
}

static void closed(struct hca_windows *w, const struct abi_window_msg *m)
{
	struct abi_window_msg gone = {
		.kind = ABI_WINDOW_GONE, .peer = w->id, .window = m->window};
	struct pair *p;

	list_for_each_entry(p, &pairs, node) if (p->to == w) say(p->from, &gone, NULL, 0);
}

/* --- a program's messages --- */

static void heard(struct hca_windows *w, const struct abi_window_msg *m, int fd)
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

static ssize_t receive(int sock, struct abi_window_msg *m, int *fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {m, sizeof(*m)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*fd = n < 0 ? -1 : abi_take_fd(&msg);
	return n;
}

static void on_message(struct rt_io *io, bool readable, bool writable)
{
	struct hca_windows *w = container_of(io, struct hca_windows, io);
	struct abi_window_msg m;
	int fd;
	ssize_t n = receive(w->fd, &m, &fd);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) { /* closed: the session ends, or the program wants none */
		w->deaf = true;
		rt_io_watch(io, false, false);
	} else if (n == (ssize_t)sizeof(m) && !w->user->broken) {
		heard(w, &m, fd);
	}
	if (fd >= 0)
		close(fd);
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
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) ||
	    fchmod(fd, 0400))
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
	int pair[2], ret;

	if (!w)
		return -ENOMEM;
	user->windows = w;
	w->user = user;
	w->fd = w->page_fd = -1;
	w->id = ++next_id;
	INIT_LIST_HEAD(&w->flows);
	INIT_LIST_HEAD(&w->all);
	ret = make_page(w, &user->fd[ABI_FD_WINDOW_PAGE]);
	if (ret)
		return ret;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	user->fd[ABI_FD_WINDOWS] = pair[0];
	w->fd = pair[1];
	rt_io_init(user->hca->rt, &w->io, w->fd, on_message);
	rt_io_watch(&w->io, true, false);
	list_add_tail(&w->all, &everyone);
	return 0;
}

static void drop_questions(struct hca_windows *w)
{
	struct question *q, *tmp;

	list_for_each_entry_safe(q, tmp, &questions, node)
	{
		if (q->from != w && q->to != w)
			continue;
		if (q->to == w && q->from != w)
			deny(q->from, q->from_qpn, q->rkey);
		free_question(q);
	}
}

static void drop_pairs(struct hca_windows *w)
{
	struct abi_window_msg gone = {.kind = ABI_WINDOW_PEER_GONE, .peer = w->id};
	struct pair *p, *tmp;

	list_for_each_entry_safe(p, tmp, &pairs, node)
	{
		if (p->from != w && p->to != w)
			continue;
		say(p->from == w ? p->to : p->from, &gone, NULL, 0);
		list_del(&p->node);
		rt_free(p);
	}
}

void hca_windows_close(struct hca_user *user)
{
	struct hca_windows *w = user->windows;

	if (!w)
		return;
	w->deaf = true; /* nothing is said to it any more */
	drop_questions(w);
	drop_pairs(w);
	while (!list_empty(&w->flows))
		free_flow(w, list_first_entry(&w->flows, struct flow, node));
	list_del(&w->all);
	if (w->fd >= 0) {
		rt_io_watch(&w->io, false, false);
		close(w->fd);
	}
	if (w->page) {
		of_the_dead +=
			atomic_load_explicit(&w->page->operations, memory_order_relaxed);
		munmap((void *)w->page, sizeof(*w->page));
	}
	if (w->page_fd >= 0)
		close(w->page_fd);
	user->windows = NULL;
	rt_free(w);
}

void hca_windows_epoch(uint32_t epoch)
{
	struct hca_windows *w;

	list_for_each_entry(w, &everyone, all) if (w->user->hca->shared)
		atomic_store_explicit(&w->user->hca->shared->route_epoch, epoch,
				      memory_order_release);
}
