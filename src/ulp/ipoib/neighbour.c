/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Unicast: who has an IP address, and the path there. A neighbour is asked for by its
 * address (ARP, neighbour discovery) with a multicast to all of the partition, then its
 * path is asked for at the subnet administrator. What the host sends waits meanwhile.
 *
 * States (enum state)
 *   ASKING  the link address is not known; asked ASK_TRIES times
 *   PATH    it is known; the path record is under way
 *   READY   what is sent leaves at once; or, while the connection to a neighbour in
 *	     connected mode is being made, waits for that
 * One that nobody used for LIFE_MS is forgotten. One in use that was not heard of for
 * that long is asked itself, and forgotten when it does not answer: the next packet asks
 * all.
 */
#include <string.h>

#include "ulp/ipoib/private.h"
#include "ulp/ipoib/trace.h"

#define ASK_TRIES	3
#define ASK_MS		1000
#define LIFE_MS		30000
#define PATH_TIMEOUT_MS 3000
#define NEIGHBOURS_MOST 4096

enum state { ASKING, PATH, READY };

/** struct path_query - under way at the subnet administrator, and then told by it; the
 *  neighbour may be gone by then */
struct path_query {
	struct ipoib_neighbour *neighbour; /* NULL: nobody wants the answer any more */
	struct ib_sa_query *query;
	int id;
};

/** struct ipoib_neighbour - an IP address of the link */
struct ipoib_neighbour {
	struct list_head node; /* of its bucket */
	struct ipoib *ipoib;
	struct in6_addr ip;
	enum state state;
	unsigned int tries; /* questions without an answer */
	bool used;	    /* since the timer was armed */
	bool has_link;
	struct ipoib_link link;
	struct ib_ah *ah;	  /* READY */
	struct ipoib_conn_user user; /* READY, in connected mode; without connection: datagrams */
	bool refused;		     /* this link takes no connections */
	bool announce;		     /* PATH: it has to learn the own link address */
	struct path_query *query; /* PATH */
	struct ipoib_waiting waiting;
	struct rt_timer timer;
};

static struct list_head *bucket(struct ipoib *p, const struct in6_addr *ip)
{
	u32 h = 0;

	for (size_t i = 0; i < sizeof(ip->s6_addr); i++)
		h = h * 31 + ip->s6_addr[i];
	return &p->neighbours[h % IPOIB_BUCKETS];
}

static struct ipoib_neighbour *find(struct ipoib *p, const struct in6_addr *ip)
{
	struct ipoib_neighbour *n;

	list_for_each_entry(n, bucket(p, ip), node)
		if (!memcmp(&n->ip, ip, sizeof(*ip)))
			return n;
	return NULL;
}

static void trace(const struct ipoib_neighbour *n, const char *what)
{
	trace_ipoib_neighbour(IPOIB_TRACE_AT(n->ipoib), &n->ip, what, n->link.qpn);
}

static void arm(struct ipoib_neighbour *n, unsigned int ms)
{
	rt_timer_arm(&n->timer,
		     mono_add(rt_now(n->ipoib->device->rt), ms * NSEC_PER_MSEC));
}

static void drop_path(struct ipoib_neighbour *n)
{
	if (n->query) {
		n->query->neighbour = NULL;
		ib_sa_cancel_query(n->query->id, n->query->query);
		n->query = NULL;
	}
	ipoib_hold(&n->waiting);
	ipoib_conn_close(&n->user);
	if (n->ah)
		ib_destroy_ah(n->ah);
	n->ah = NULL;
}

/* nobody answers: the host hears it for each packet that waits */
static void fail_waiting(struct ipoib_neighbour *n, bool say)
{
	struct ipoib_send *s;

	while ((s = ipoib_wait_end(&n->waiting))) {
		n->ipoib->stats.tx_dropped++;
		if (say)
			ipoib_unreachable(s);
		ipoib_send_free(s);
	}
}

static void forget(struct ipoib_neighbour *n, bool say)
{
	trace(n, "forget");
	rt_timer_disarm(&n->timer);
	drop_path(n);
	fail_waiting(n, say);
	list_del(&n->node);
	if (!--n->ipoib->num_neighbours)
		ipoib_queue_idle(n->ipoib);
	rt_free(n);
}

/* --- questions --- */

/* one for the link address of @n, to all or to itself. Return: is it on its way? */
static void ask(struct ipoib_neighbour *n)
{
	struct ipoib *p = n->ipoib;
	const struct in6_addr *self = ipoib_address_for(p, &n->ip);
	bool v4 = IN6_IS_ADDR_V4MAPPED(&n->ip);
	struct in6_addr group =
		v4 ? ipoib_from_v4(INADDR_BROADCAST) : ipoib_solicited(&n->ip);
	struct ipoib_send *s = self ? ipoib_send_alloc(p) : NULL;
	u8 *at = s ? s->frame + IPOIB_ENCAP_BYTES : NULL;

	if (!s)
		return;
	trace(n, "ask");
	if (v4)
		ipoib_set_frame(
			s, IPOIB_ARP,
			ipoib_put_arp(at, IPOIB_REQUEST, &p->own, self, NULL, &n->ip));
	else
		ipoib_set_frame(s, IPOIB_IPV6,
				ipoib_put_nd(at, IPOIB_REQUEST, &p->own, self,
					     n->ah ? &n->ip : &group, &n->ip));
	if (n->ah)
		ipoib_post(s, n->ah, n->link.qpn);
	else
		ipoib_send_to_group(p, &group, s);
}

static void tick(struct rt_timer *timer)
{
	struct ipoib_neighbour *n = container_of(timer, struct ipoib_neighbour, timer);

	if (n->state == READY && !n->used) {
		forget(n, false);
		return;
	}
	if (n->tries == ASK_TRIES) {
		forget(n, n->state == ASKING);
		return;
	}
	n->tries++;
	ask(n);
	arm(n, ASK_MS);
}

static void send_waiting(struct ipoib_waiting *w, struct ipoib_send *s);

static struct ipoib_neighbour *make(struct ipoib *p, const struct in6_addr *ip)
{
	struct ipoib_neighbour *n =
		p->num_neighbours == NEIGHBOURS_MOST ? NULL : rt_zalloc(sizeof(*n));

	if (!n)
		return NULL;
	n->ipoib = p;
	n->ip = *ip;
	ipoib_waiting_init(&n->waiting, send_waiting);
	rt_timer_init(p->device->rt, &n->timer, tick);
	list_add(&n->node, bucket(p, ip));
	p->num_neighbours++;
	ipoib_queue_expect(p);
	return n;
}

static struct ipoib_neighbour *begin_asking(struct ipoib *p, const struct in6_addr *ip)
{
	struct ipoib_neighbour *n = make(p, ip);

	if (!n)
		return NULL;
	n->tries = 1;
	ask(n);
	arm(n, ASK_MS);
	return n;
}

/* --- paths --- */

static void ask_path(struct ipoib_neighbour *n);

static void send_on(struct ipoib_neighbour *n, struct ipoib_send *s)
{
	if (n->user.conn && !s->offloaded)
		ipoib_conn_send(n->user.conn, s);
	else if (ipoib_longest(s) > IPOIB_ENCAP_BYTES + n->ipoib->mtu)
		ipoib_too_big(s, n->ipoib->mtu);
	else
		ipoib_post(s, n->ah, n->link.qpn);
}

static void send_waiting(struct ipoib_waiting *w, struct ipoib_send *s)
{
	send_on(container_of(w, struct ipoib_neighbour, waiting), s);
}

void ipoib_neighbour_connected(struct ipoib_conn_user *user, bool up, bool refused)
{
	struct ipoib_neighbour *n = container_of(user, struct ipoib_neighbour, user);

	n->refused = refused;
	if (up || refused)
		ipoib_release(n->ipoib, &n->waiting);
	else
		ask_path(n); /* and connect anew */
}

static bool is_connecting(const struct ipoib_neighbour *n)
{
	return n->user.conn && !ipoib_conn_is_up(n->user.conn);
}

static void connect_to(struct ipoib_neighbour *n, const struct sa_path_rec *path)
{
	if (n->ipoib->own.connected && n->link.connected && !n->refused)
		ipoib_conn_open(n->ipoib, &n->user, &n->link, path);
}

static void have_path(struct ipoib_neighbour *n, const struct sa_path_rec *path)
{
	struct ipoib *p = n->ipoib;
	struct rdma_ah_attr attr;
	struct ib_ah *ah = NULL;

	n->query = NULL;
	if (path && !ib_init_ah_from_path(p->device, p->port_num, path, &attr))
		ah = ib_create_ah(p->pd, &attr);
	if (!ah || IS_ERR(ah)) {
		forget(n, true);
		return;
	}
	n->ah = ah;
	n->state = READY;
	trace(n, "ready");
	n->tries = 0;
	n->used = false;
	arm(n, LIFE_MS);
	if (n->announce)
		ask(n);
	n->announce = false;
	connect_to(n, path);
	if (!is_connecting(n))
		ipoib_release(p, &n->waiting);
}

static void path_answered(int status, struct sa_path_rec *path, unsigned int num,
			  void *context)
{
	struct path_query *q = context;

	if (q->neighbour)
		have_path(q->neighbour, status || !num ? NULL : path);
	rt_free(q);
}

static void ask_path(struct ipoib_neighbour *n)
{
	struct ipoib *p = n->ipoib;
	struct path_query *q = rt_zalloc(sizeof(*q));
	const struct sa_path_rec rec = {
		.dgid = n->link.gid,
		.sgid = p->own.gid,
		.pkey = cpu_to_be16(p->pkey),
		.numb_path = 1,
	};

	drop_path(n);
	n->refused = false;
	n->state = PATH;
	trace(n, "path");
	rt_timer_disarm(&n->timer);
	if (q)
		q->id = ib_sa_path_rec_get(
			&p->sa, p->device, p->port_num, &rec,
			IB_SA_PATH_REC_DGID | IB_SA_PATH_REC_SGID | IB_SA_PATH_REC_PKEY |
				IB_SA_PATH_REC_NUMB_PATH,
			PATH_TIMEOUT_MS, GFP_KERNEL, path_answered, q, &q->query);
	if (!q || q->id < 0) {
		rt_free(q);
		forget(n, true);
		return;
	}
	q->neighbour = n;
	n->query = q;
}

/* the neighbour told its link address */
static void have_link(struct ipoib_neighbour *n, const struct ipoib_link *link)
{
	bool same = n->has_link && ipoib_is_same_link(&n->link, link);

	n->tries = 0;
	if (same && n->state == READY) {
		n->used = false; /* until the next packet */
		arm(n, LIFE_MS);
	}
	if (same)
		return;
	n->link = *link;
	n->has_link = true;
	trace(n, "link");
	ask_path(n);
}

/* --- what the others use --- */

static bool is_ready(const struct ipoib_neighbour *n)
{
	return n->state == READY && !is_connecting(n);
}

void ipoib_send_to(struct ipoib *p, const struct in6_addr *ip, struct ipoib_send *s)
{
	struct ipoib_neighbour *n = find(p, ip);

	if (!n)
		n = begin_asking(p, ip);
	if (n)
		n->used = true;
	if (n && is_ready(n))
		send_on(n, s);
	else
		ipoib_wait(n ? &n->waiting : NULL, s);
}

static void answer(struct ipoib *p, const struct ipoib_resolution *r)
{
	struct ipoib_send *s = ipoib_send_alloc(p);
	u8 *at = s ? s->frame + IPOIB_ENCAP_BYTES : NULL;

	if (!s)
		return;
	if (IN6_IS_ADDR_V4MAPPED(&r->target_ip))
		ipoib_set_frame(s, IPOIB_ARP,
				ipoib_put_arp(at, IPOIB_REPLY, &p->own, &r->target_ip,
					      &r->sender, &r->sender_ip));
	else
		ipoib_set_frame(s, IPOIB_IPV6,
				ipoib_put_nd(at, IPOIB_REPLY, &p->own, &r->target_ip,
					     &r->reply_to, &r->target_ip));
	if (ipoib_is_group(&r->reply_to))
		ipoib_send_to_group(p, &r->reply_to, s);
	else
		ipoib_send_to(p, &r->reply_to, s);
}

void ipoib_resolution(struct ipoib *p, const struct ipoib_resolution *r)
{
	struct ipoib_neighbour *n;
	bool for_us;

	if (ipoib_conflict_look(p, r))
		return;
	for_us = r->op == IPOIB_REQUEST && ipoib_has_address(p, &r->target_ip) &&
		 !ipoib_conflict_is_open(p, r);
	if (r->has_sender && !ipoib_has_address(p, &r->sender_ip)) {
		n = find(p, &r->sender_ip);
		/* who asks for us will be sent to; nobody else is believed unasked */
		if (!n && for_us)
			n = make(p, &r->sender_ip);
		if (n)
			have_link(n, &r->sender);
	}
	if (for_us)
		answer(p, r);
}

void ipoib_neighbours_init(struct ipoib *p)
{
	for (size_t i = 0; i < IPOIB_BUCKETS; i++)
		INIT_LIST_HEAD(&p->neighbours[i]);
}

void ipoib_neighbours_ask(struct ipoib *p)
{
	struct ipoib_neighbour *n;

	for (size_t i = 0; i < IPOIB_BUCKETS; i++)
		list_for_each_entry(n, &p->neighbours[i], node)
			if (n->state == ASKING)
				ask(n);
}

/* All of them leave their connections before one looks for a new one. */
void ipoib_neighbours_flush(struct ipoib *p)
{
	struct ipoib_neighbour *n, *next;

	for (size_t i = 0; i < IPOIB_BUCKETS; i++)
		list_for_each_entry(n, &p->neighbours[i], node)
			drop_path(n);
	for (size_t i = 0; i < IPOIB_BUCKETS; i++)
		list_for_each_entry_safe(n, next, &p->neighbours[i], node)
			if (n->state != ASKING)
				ask_path(n);
}

/* The question carries the own link address. It goes to each neighbour itself, whose path may
 * have to be waited for: a multicast to a group that was joined just now gets lost, as long as
 * the subnet manager has not told all switches of the new member. */
void ipoib_neighbours_announce(struct ipoib *p)
{
	struct ipoib_neighbour *n;

	for (size_t i = 0; i < IPOIB_BUCKETS; i++) {
		list_for_each_entry(n, &p->neighbours[i], node) {
			n->announce = n->state == PATH;
			if (!n->announce)
				ask(n);
		}
	}
}

void ipoib_neighbours_close(struct ipoib *p)
{
	struct ipoib_neighbour *n, *next;

	for (size_t i = 0; i < IPOIB_BUCKETS; i++)
		list_for_each_entry_safe(n, next, &p->neighbours[i], node)
			forget(n, false);
}

static int tell(struct ipoib_neighbour *n, int (*fn)(void *ctx, const struct ipoib_peer *peer),
		void *ctx)
{
	struct rdma_ah_attr path;
	const struct ipoib_peer peer = {
		.ip = &n->ip,
		.link = n->has_link ? &n->link : NULL,
		.path = n->ah && !rdma_query_ah(n->ah, &path) ? &path : NULL,
		.connected = n->user.conn && ipoib_conn_is_up(n->user.conn),
	};

	return fn(ctx, &peer);
}

int ipoib_each_neighbour(struct ipoib *p, int (*fn)(void *ctx, const struct ipoib_peer *peer),
			 void *ctx)
{
	struct ipoib_neighbour *n;
	int ret;

	for (size_t i = 0; i < IPOIB_BUCKETS; i++) {
		list_for_each_entry(n, &p->neighbours[i], node) {
			ret = tell(n, fn, ctx);
			if (ret)
				return ret;
		}
	}
	return 0;
}
