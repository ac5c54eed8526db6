/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An interface and its parts.
 *
 *  ipoib.c      making and unmaking; events of the port
 *  host.c       the TUN device: packets from the host, packets for it
 *  queue.c      the queue pair: buffers, sends, receives
 *  neighbour.c  unicast: who has an IP address, and the path there
 *  group.c      multicast: memberships, and sends to groups
 *  address.c    which addresses the host has given the interface
 *  frame.c, icmp.c, segment.c  formats, pure
 */
#ifndef SOFTIB_ULP_IPOIB_PRIVATE_H
#define SOFTIB_ULP_IPOIB_PRIVATE_H

#define SOFTIB_CLIENT_NAME "ipoib"

#include "rdma/ib_sa.h"
#include "runtime/posix/rt_posix.h"
#include "ulp/ipoib/ipoib.h"

#define IPOIB_BROADCAST_SCOPE 2 /* link-local */
#define IPOIB_ADDRESSES_MAX   16
#define IPOIB_BUCKETS	      64 /* of neighbours */
#define IPOIB_RECEIVES_FIRST  32 /* doubled whenever half of them are used at once */
#define IPOIB_RECEIVES_MOST   256
#define IPOIB_SENDS_MOST      128
#define IPOIB_SENDS_OF_READ   48 /* that must be free: a large segment is 33 packets */

/** struct ipoib_send - a frame on its way out: encapsulation header and packet */
struct ipoib_send {
	struct ib_cqe cqe;
	struct ipoib *ipoib;
	struct list_head node; /* of who lets it wait */
	size_t bytes;
	u8 frame[IPOIB_ENCAP_BYTES + IPOIB_MTU];
};

/** struct ipoib_receive - a buffer in the receive queue */
struct ipoib_receive {
	struct ib_cqe cqe;
	struct ipoib *ipoib;
	struct list_head node;
	u8 grh[sizeof(struct ib_grh)];
	u8 frame[IPOIB_ENCAP_BYTES + IPOIB_MTU];
};

/** struct ipoib_address - of the interface */
struct ipoib_address {
	struct in6_addr ip;
	u8 prefix_bits; /* of 128: IPv4-mapped */
};

/** struct ipoib - an interface */
struct ipoib {
	struct list_head node; /* of its device's interfaces */
	struct ib_device *device;
	u32 port_num;
	u16 pkey;
	bool closing; /* nothing new is begun */
	struct ib_event_handler events;
	struct ib_sa_client sa;
	struct rt_work end; /* the TUN device is gone */
	struct ipoib_stats stats;
	/* --- host.c, address.c --- */
	int tun_fd, address_fd;
	unsigned int ifindex;
	struct rt_io tun_io, address_io;
	bool host_waits; /* for room in the send queue */
	struct ipoib_address address[IPOIB_ADDRESSES_MAX];
	unsigned int num_addresses;
	/* --- queue.c --- */
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ipoib_link own;
	struct rt_work drain;
	struct list_head receives, spare_sends;
	unsigned int num_receives, want_receives, num_sends, num_free_sends;
	/* --- neighbour.c --- */
	struct list_head neighbours[IPOIB_BUCKETS];
	unsigned int num_neighbours;
	/* --- group.c --- */
	struct list_head groups;
	struct ipoib_group *broadcast;
	u32 qkey; /* of all in the partition; 0 before the broadcast group is joined */
};

/* --- queue.c --- */

/** ipoib_queue_init() - before ipoib_queue_close() may be called */
void ipoib_queue_init(struct ipoib *p);
int ipoib_queue_open(struct ipoib *p);
void ipoib_queue_close(struct ipoib *p);
/** ipoib_send_alloc() - a frame to fill. NULL: too many are under way */
struct ipoib_send *ipoib_send_alloc(struct ipoib *p);
void ipoib_send_free(struct ipoib_send *s);
/** ipoib_set_frame() - the header in front of @bytes of packet in the frame */
void ipoib_set_frame(struct ipoib_send *s, enum ipoib_type type, size_t bytes);
/** ipoib_post() - send it, in any case consumed */
void ipoib_post(struct ipoib_send *s, struct ib_ah *ah, u32 qpn);
/** ipoib_set_qkey() - that of the partition's broadcast group. 0; -errno */
int ipoib_set_qkey(struct ipoib *p, u32 qkey);

/* --- host.c --- */

void ipoib_host_open(struct ipoib *p);
void ipoib_host_close(struct ipoib *p);
/** ipoib_host_resume() - there is room for what the host sends */
void ipoib_host_resume(struct ipoib *p);
/** ipoib_received() - a frame from the fabric */
void ipoib_received(struct ipoib *p, const u8 *frame, size_t bytes);
/** ipoib_unreachable() - tell the host that nobody answers for where @s goes */
void ipoib_unreachable(struct ipoib_send *s);
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

/* --- group.c --- */

int ipoib_groups_open(struct ipoib *p);
void ipoib_groups_close(struct ipoib *p);
/** ipoib_send_to_group() - joins as a sender, if the host is no member */
void ipoib_send_to_group(struct ipoib *p, const struct in6_addr *group,
			 struct ipoib_send *s);
/** ipoib_group_member() - the host joins or leaves */
void ipoib_group_member(struct ipoib *p, const struct in6_addr *group, bool join);
/** ipoib_groups_flush() - forget paths, and join at once what was not joined */
void ipoib_groups_flush(struct ipoib *p);

/* --- address.c --- */

void ipoib_addresses_open(struct ipoib *p);
void ipoib_addresses_close(struct ipoib *p);
/** ipoib_has_address() - is @ip one of the interface? */
bool ipoib_has_address(const struct ipoib *p, const struct in6_addr *ip);
/** ipoib_address_for() - whose address a question about @ip bears: one of its network,
 *  or any of its kind. NULL: there is none */
const struct in6_addr *ipoib_address_for(const struct ipoib *p,
					 const struct in6_addr *ip);
/** ipoib_is_broadcast() - the last address of one of the interface's IPv4 networks */
bool ipoib_is_broadcast(const struct ipoib *p, const struct in6_addr *ip);

#endif
