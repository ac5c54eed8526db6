/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An interface and its parts.
 *
 *  ipoib.c      making and unmaking; events of the port
 *  host.c       the TUN device: packets from the host, packets for it
 *  queue.c      the queue pair: buffers, sends, receives
 *  neighbour.c  unicast: who has an IP address, and the path there
 *  connected.c  reliable connections to neighbours, and from them
 *  group.c      multicast: memberships, and sends to groups
 *  rtnl.c       the routing socket, by which the host's kernel tells of the following
 *  address.c    which addresses the host has given the interface
 *  conflict.c   whether another has one of them
 *  route.c      next hops: the host's routes by the interface
 *  frame.c, icmp.c  formats, pure; those of large packets are in ulp/net
 */
#ifndef SOFTIB_ULP_IPOIB_PRIVATE_H
#define SOFTIB_ULP_IPOIB_PRIVATE_H

#define SOFTIB_CLIENT_NAME "ipoib"

#include "rdma/ib_cm.h"
#include "runtime/posix/rt_posix.h"
#include "ulp/ipoib/ipoib.h"
#include "ulp/net/arrivals.h"

#define IPOIB_BROADCAST_SCOPE 2 /* link-local */
#define IPOIB_ADDRESSES_MAX   16
#define IPOIB_BUCKETS	      64 /* of neighbours */
#define IPOIB_RECEIVES_FIRST  3	 /* two pages; doubled whenever half of them are used at once */
#define IPOIB_RECEIVES_KNOWN  32 /* when there is a neighbour */
#define IPOIB_RECEIVES_MOST   127 /* the ring of the queue pair has one more */
#define IPOIB_SENDS_MOST      56  /* with the first receives, a completion queue of 64 */
#define IPOIB_CONN_RECEIVES   8 /* of 64 KiB, when there is a connection */
#define IPOIB_CONNS_MOST      1024 /* also those of peers, who may be hostile */
#define IPOIB_SENDS_OF_READ   IPOIB_SEGMENTS /* that must be free */

struct ipoib_conn;
struct ipoib_hops;
struct nlmsghdr;
struct ipoib_neighbour;

/** struct ipoib_send - a frame on its way out: encapsulation header and packet */
struct ipoib_send {
	struct ib_cqe cqe;
	struct ipoib *ipoib;
	struct list_head node; /* of who lets it wait */
	struct ipoib_conn *conn; /* that carries it; NULL: a datagram */
	size_t bytes;
	/* The adapter completes it, so it leaves as a datagram: of a TCP segment, whose packets have @mss
	 * bytes of its payload, the first @headers are in each; @mss 0: of a packet, the checksums */
	bool offloaded;
	u16 headers, mss;
	u8 *frame; /* @small, or memory for the largest frame: ipoib_send_enlarge() */
	unsigned int room; /* of @small, for a packet behind the header */
	u8 small[];
};

/** struct ipoib_conn_user - a neighbour as one of those that send by a connection */
struct ipoib_conn_user {
	struct list_head node;
	struct ipoib_conn *conn; /* NULL: it has none */
};

/** struct ipoib_waiting - sends for whose destination something is asked, or that have no room yet */
struct ipoib_waiting {
	struct list_head sends;
	unsigned int num;
	struct list_head released_node; /* in it: ipoib_release() was called, and some wait for room */
	void (*send)(struct ipoib_waiting *w, struct ipoib_send *s);
};

/** struct ipoib_receives - the memory of receives that were added together, which lie behind it */
struct ipoib_receives {
	size_t bytes;	  /* in all */
	unsigned int num; /* that are not dropped */
};

/** struct ipoib_receive - a buffer in the receive queue */
struct ipoib_receive {
	struct ib_cqe cqe;
	struct ipoib *ipoib;
	struct ipoib_receives *block; /* that it is part of */
	struct list_head node;
	u32 bytes; /* of @grh and @frame */
	u8 grh[sizeof(struct ib_grh)];
	u8 frame[];
};

/** struct ipoib_address - of the interface */
struct ipoib_address {
	struct in6_addr ip;
	u8 prefix_bits; /* of 128: IPv4-mapped */
	bool listed;	/* since ipoib_addresses_begin() */
	/* --- conflict.c --- */
	bool duplicate;		  /* it was another's before: it is not used */
	bool has_other;		  /* @other: who has it as well */
	bool was_defended;	  /* at @defended */
	bool verifying, probed;
	struct ipoib_link other;
	mono_t due;	 /* while it is being verified: the next step */
	mono_t defended;
};

/** struct ipoib - an interface */
struct ipoib {
	struct list_head node; /* of its device's interfaces */
	struct ib_device *device;
	u32 port_num;
	u16 pkey;
	bool closing; /* nothing new is begun */
	bool stopped; /* its P_Key is gone, or its queue pair failed: nothing is sent */
	struct ib_event_handler events;
	struct ib_sa_client sa;
	struct rt_work end;	/* the TUN device is gone */
	struct rt_work restart; /* the queue pair is in error */
	struct ipoib_stats stats;
	/* --- host.c --- */
	struct net_host host;
	unsigned int ifindex;
	struct rt_io tun_io;
	bool host_waits; /* for room in the send queue */
	unsigned int num_begun; /* sends, in this turn of the loop: ipoib_send_alloc() */
	bool offloads;	 /* @qp takes IB_WR_LSO and IB_SEND_IP_CSUM */
	/* --- rtnl.c, address.c, route.c --- */
	int rtnl_fd;
	struct rt_io rtnl_io;
	struct rt_timer rtnl_retry;
	unsigned int rtnl_wanted, rtnl_busy;
	struct ipoib_address address[IPOIB_ADDRESSES_MAX];
	unsigned int num_addresses;
	struct rt_timer conflict_timer; /* armed while an address is being verified */
	struct in6_addr claimed; /* the last IPv6 address that a neighbour claimed unasked */
	struct ipoib_link claimed_by;
	bool has_gateway, listed_gateway; /* a route by the interface; since ipoib_routes_begin() */
	struct ipoib_hops *hops;	  /* NULL: none is kept */
	bool route_told, route_answered;  /* ipoib_route_answer() was called; with @route_via */
	struct in6_addr route_via;
	/* --- queue.c --- */
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	u16 pkey_index; /* of @pkey, which @qp uses */
	unsigned int mtu; /* of the broadcast group, less the header */
	unsigned int room; /* of buffers: the largest @mtu so far */
	struct ipoib_link own;
	struct rt_work drain;
	struct list_head receives, spare_sends;
	struct list_head released; /* struct ipoib_waiting */
	u8 *spare_frame; /* for ipoib_send_enlarge(); NULL: there is none */
	unsigned int num_receives, want_receives, num_kept; /* receives; kept: ipoib_received() */
	unsigned int num_sends, num_waiting, num_free_sends;
	struct rt_timer shrink; /* armed while more than the first receives are wanted and nobody is known */
	unsigned int most_used; /* receives, in one turn, since @shrink was armed */
	struct ipoib_moderation moderation; /* not while @host_waits */
	/* --- neighbour.c --- */
	struct list_head neighbours[IPOIB_BUCKETS];
	unsigned int num_neighbours;
	/* --- connected.c --- */
	struct ib_cm_id *listener;
	struct ib_srq *srq; /* of all connections; NULL: there was none yet */
	struct list_head conns, conn_receives;
	unsigned int num_conns;
	struct rt_work reap;
	struct rt_timer idle; /* armed while a peer has a connection */
	/* --- group.c --- */
	struct list_head groups;
	struct ipoib_group *broadcast;
	u32 qkey; /* of all in the partition; 0 before the broadcast group is joined */
};

/* --- queue.c --- */

/** ipoib_queue_init() - before ipoib_queue_close() may be called */
void ipoib_queue_init(struct ipoib *p);
int ipoib_queue_open(struct ipoib *p);
/** ipoib_queue_restart() - in any state of the queue pair: with the P_Key's present index
 *  and new receives. What was posted is flushed. 0; -errno the partition is not there */
int ipoib_queue_restart(struct ipoib *p);
void ipoib_queue_close(struct ipoib *p);
/** ipoib_queue_expect() - there is a neighbour, who may send many packets at once */
void ipoib_queue_expect(struct ipoib *p);
/** ipoib_queue_size() - let the completion queue have room for @receives datagrams that are
 *  posted and, once there is a connection, for its messages. 0; -errno */
int ipoib_queue_size(struct ipoib *p, unsigned int receives);
/** ipoib_queue_poll() - take up what has completed, without waiting for the event */
void ipoib_queue_poll(struct ipoib *p);
/** ipoib_queue_moderate() - as the interface is to do, unless the host waits for completions
 *  of sends, which come by the same completion queue. 0; -errno */
int ipoib_queue_moderate(struct ipoib *p);
/** ipoib_sends_left() - how many more may be under way; those that wait do not count */
unsigned int ipoib_sends_left(const struct ipoib *p);
/** ipoib_waiting_init() - @send: takes what may leave, in order, and consumes it */
void ipoib_waiting_init(struct ipoib_waiting *w, void (*send)(struct ipoib_waiting *w, struct ipoib_send *s));
/** ipoib_release() - the destination is known: send what waits in @w, as soon as there is room */
void ipoib_release(struct ipoib *p, struct ipoib_waiting *w);
/** ipoib_hold() - it is not known any more */
void ipoib_hold(struct ipoib_waiting *w);
/** ipoib_wait() - let it wait in @w. Return: false: too many do, or @w is NULL; dropped */
bool ipoib_wait(struct ipoib_waiting *w, struct ipoib_send *s);
/** ipoib_wait_end() - Return: the first that waits, and waits no longer; NULL: none does */
struct ipoib_send *ipoib_wait_end(struct ipoib_waiting *w);
/** ipoib_send_alloc() - a frame to fill. NULL: too many are under way */
struct ipoib_send *ipoib_send_alloc(struct ipoib *p);
void ipoib_send_free(struct ipoib_send *s);
/** ipoib_queue_idle() - there is no neighbour any more: give back what is kept for the next
 *  sends at once, and, when nothing has come for a while, the receives beyond the first */
void ipoib_queue_idle(struct ipoib *p);
/** ipoib_spare_frame() - what the next ipoib_send_enlarge() gives. NULL: no memory */
u8 *ipoib_spare_frame(struct ipoib *p);
/** ipoib_send_enlarge() - make room for NET_LARGE_BYTES, with any contents.
 *  Return: false: no memory */
bool ipoib_send_enlarge(struct ipoib_send *s);
/** ipoib_receives_free() - the host has what they had: post them again
 *  @receive: each a struct ipoib_receive */
void ipoib_receives_free(struct ipoib *p, void *const *receive, unsigned int num);
/** ipoib_sent() - the completion of a send */
void ipoib_sent(struct ib_cq *cq, struct ib_wc *wc);
/** ipoib_longest() - bytes of the longest frame that leaves for @s */
static inline size_t ipoib_longest(const struct ipoib_send *s)
{
	return s->mss ? MIN(s->bytes, (size_t)s->headers + s->mss) : s->bytes;
}
/** ipoib_set_frame() - the header in front of @bytes of packet in the frame */
void ipoib_set_frame(struct ipoib_send *s, enum ipoib_type type, size_t bytes);
/** ipoib_post() - send it, in any case consumed */
void ipoib_post(struct ipoib_send *s, struct ib_ah *ah, u32 qpn);
/** ipoib_queue_set_mtu() - that of the broadcast group, header included. The first is the time
 *  at which datagrams may be received. Return: 0; -ENOMEM; -EAGAIN what is posted is too
 *  small, and the interface is about to restart with larger buffers; -EINVAL it is none */
int ipoib_queue_set_mtu(struct ipoib *p, int bytes);
/** ipoib_datagram_mtu() - in datagram mode: ipoib_mtu() */
unsigned int ipoib_datagram_mtu(const struct ipoib *p);
/** ipoib_set_qkey() - that of the partition's broadcast group. 0; -errno */
int ipoib_set_qkey(struct ipoib *p, u32 qkey);

/* --- host.c --- */

/** ipoib_host_init() - before the first interface of the fabric. 0; -EEXIST; -ENOMEM */
int ipoib_host_init(struct rt *rt);
/** ipoib_host_cleanup() - behind the last one */
void ipoib_host_cleanup(struct rt *rt);
void ipoib_host_open(struct ipoib *p);
void ipoib_host_close(struct ipoib *p);
/** ipoib_host_resume() - there is room for what the host sends */
void ipoib_host_resume(struct ipoib *p);
/** ipoib_received() - a frame from the fabric, for the host or for us
 *  @checked: the adapter says that its checksums are right
 *  @receive: that has it; NULL: it may not be kept. Return: was it kept? Until
 *  ipoib_receives_free() */
bool ipoib_received(struct ipoib *p, const u8 *frame, size_t bytes, bool checked,
		    struct ipoib_receive *receive);
/** ipoib_host_flush() - give the host what was kept for it */
void ipoib_host_flush(struct ipoib *p);
/** ipoib_unreachable() - tell the host that nobody answers for where @s goes */
void ipoib_unreachable(struct ipoib_send *s);
/** ipoib_too_big() - tell the host that what @s has does not fit there; consumed */
void ipoib_too_big(struct ipoib_send *s, size_t mtu);
/** ipoib_set_mtu() - give the device that of ipoib_mtu() */
void ipoib_set_mtu(struct ipoib *p);
/** ipoib_set_carrier() - is the link up? */
void ipoib_set_carrier(struct ipoib *p, bool up);

/* --- neighbour.c --- */

void ipoib_neighbours_init(struct ipoib *p);
/** ipoib_send_to() - to a host of the link; it waits until the address is resolved */
void ipoib_send_to(struct ipoib *p, const struct in6_addr *ip, struct ipoib_send *s);
/** ipoib_resolution() - an ARP packet or its like came */
void ipoib_resolution(struct ipoib *p, const struct ipoib_resolution *r);
/** ipoib_neighbours_ask() - the broadcast group is joined: ask for those that wait */
void ipoib_neighbours_ask(struct ipoib *p);
/** ipoib_neighbours_flush() - forget paths: the fabric has changed */
void ipoib_neighbours_flush(struct ipoib *p);
void ipoib_neighbours_close(struct ipoib *p);
/** ipoib_neighbours_announce() - tell those that are known of the own link address */
void ipoib_neighbours_announce(struct ipoib *p);
/** ipoib_neighbour_connected() - the connection of @user is up, or has ended and is @user's no
 *  longer. @refused: the peer takes none */
void ipoib_neighbour_connected(struct ipoib_conn_user *user, bool up, bool refused);

/* --- connected.c --- */

struct sa_path_rec;

void ipoib_connected_init(struct ipoib *p);
/** ipoib_conn_open() - let @user send by a connection to @link: one that is there, or a new one
 *  by @path. @user->conn: the connection, of whose steps ipoib_neighbour_connected() tells from
 *  now on; NULL: no memory, or there are too many */
void ipoib_conn_open(struct ipoib *p, struct ipoib_conn_user *user, const struct ipoib_link *link,
		     const struct sa_path_rec *path);
bool ipoib_conn_is_up(const struct ipoib_conn *conn);
/** ipoib_conn_close() - @user wants its connection no more, if it has one, and hears nothing of
 *  it; it ends with its last user */
void ipoib_conn_close(struct ipoib_conn_user *user);
/** ipoib_conn_send() - send it over a connection that is up; consumed */
void ipoib_conn_send(struct ipoib_conn *conn, struct ipoib_send *s);
/** ipoib_conn_sent() - a send of it has completed. @error: it failed */
void ipoib_conn_sent(struct ipoib_conn *conn, bool error);
/** ipoib_connected_end() - end all connections, and refuse new ones */
void ipoib_connected_end(struct ipoib *p);
/** ipoib_connected_close() - free them, when nothing is under way any more */
void ipoib_connected_close(struct ipoib *p);

/* --- group.c --- */

int ipoib_groups_open(struct ipoib *p);
void ipoib_groups_close(struct ipoib *p);
/** ipoib_groups_leave() - all of them; the host stays a member, and ipoib_groups_join() joins
 *  what it is a member of */
void ipoib_groups_leave(struct ipoib *p);
void ipoib_groups_join(struct ipoib *p);
/** ipoib_send_to_group() - joins as a sender, if the host is no member */
void ipoib_send_to_group(struct ipoib *p, const struct in6_addr *group,
			 struct ipoib_send *s);
/** ipoib_group_member() - the host joins or leaves */
void ipoib_group_member(struct ipoib *p, const struct in6_addr *group, bool join);
/** ipoib_groups_flush() - forget paths, and join at once what was not joined */
void ipoib_groups_flush(struct ipoib *p);

/* --- rtnl.c --- */

void ipoib_rtnl_open(struct ipoib *p);
void ipoib_rtnl_close(struct ipoib *p);
/** ipoib_rtnl_ask() - ask about one route; what the kernel answers has been told by
 *  ipoib_route_answer() when this returns, if it did. @request: its number is set here */
void ipoib_rtnl_ask(struct ipoib *p, struct nlmsghdr *request);
/** ipoib_rtnl_address() - read the address of an attribute. Return: false: it is none */
bool ipoib_rtnl_address(int family, const void *data, size_t bytes, struct in6_addr *ip);

/* --- route.c --- */

/** ipoib_next_hop() - whose link address a packet needs: of its destination or of a gateway.
 *  Valid until the next call */
const struct in6_addr *ipoib_next_hop(struct ipoib *p, const struct ipoib_packet *packet);
/** ipoib_routes_begin(), ipoib_routes_end() - the kernel lists all of them in between */
void ipoib_routes_begin(struct ipoib *p);
void ipoib_routes_end(struct ipoib *p);
/** ipoib_route_message() - RTM_NEWROUTE in a list, of any interface */
void ipoib_route_message(struct ipoib *p, const struct nlmsghdr *h);
void ipoib_routes_free(struct ipoib *p);
/** ipoib_routes_flush() - a route or a rule has changed */
void ipoib_routes_flush(struct ipoib *p);
/** ipoib_route_answer() - RTM_NEWROUTE that answers ipoib_rtnl_ask(); NULL: an error did */
void ipoib_route_answer(struct ipoib *p, const struct nlmsghdr *h);

/* --- address.c --- */

/** ipoib_addresses_begin(), ipoib_addresses_end() - the kernel lists all of them in between */
void ipoib_addresses_begin(struct ipoib *p);
void ipoib_addresses_end(struct ipoib *p);
/** ipoib_address_message() - RTM_NEWADDR or RTM_DELADDR, of any interface */
void ipoib_address_message(struct ipoib *p, const struct nlmsghdr *h);
/** ipoib_prefix_matches() - are the first @bits of 128 equal? */
bool ipoib_prefix_matches(const struct in6_addr *a, const struct in6_addr *b, unsigned int bits);
/** ipoib_find_address() - Return: what is known of @ip, one of the interface; NULL */
struct ipoib_address *ipoib_find_address(struct ipoib *p, const struct in6_addr *ip);
/** ipoib_has_address() - is @ip one of the interface, and nobody else's? */
bool ipoib_has_address(struct ipoib *p, const struct in6_addr *ip);
/** ipoib_address_for() - whose address a question about @ip bears: one of its network,
 *  or any of its kind. NULL: there is none */
const struct in6_addr *ipoib_address_for(const struct ipoib *p,
					 const struct in6_addr *ip);
/** ipoib_is_broadcast() - the last address of one of the interface's IPv4 networks */
bool ipoib_is_broadcast(const struct ipoib *p, const struct in6_addr *ip);

/* --- conflict.c --- */

void ipoib_conflict_open(struct ipoib *p);
void ipoib_conflict_close(struct ipoib *p);
/** ipoib_conflict_begin() - ask whether another has @a, which is the host's from now on */
void ipoib_conflict_begin(struct ipoib *p, struct ipoib_address *a);
/** ipoib_conflict_failed() - the host itself has found that another has it */
void ipoib_conflict_failed(struct ipoib *p, struct ipoib_address *a);
/** ipoib_conflict_begin_all() - the link is up again: others may have appeared meanwhile */
void ipoib_conflict_begin_all(struct ipoib *p);
/** ipoib_conflict_joined() - the broadcast group is joined: questions reach others */
void ipoib_conflict_joined(struct ipoib *p);
/** ipoib_conflict_look() - does @r claim an address of the interface? It is defended, or
 *  used no more. Return: it does */
bool ipoib_conflict_look(struct ipoib *p, const struct ipoib_resolution *r);
/** ipoib_conflict_is_open() - is @r the probe of another who verifies an address that is being
 *  verified here as well? */
bool ipoib_conflict_is_open(struct ipoib *p, const struct ipoib_resolution *r);
/** ipoib_conflict_is_hosts() - is @r, of IPv6, for the host, which is verifying an address of
 *  its own? @to: the destination of the packet */
bool ipoib_conflict_is_hosts(struct ipoib *p, const struct ipoib_resolution *r,
			     const struct in6_addr *to);

#endif
