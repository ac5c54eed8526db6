/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a fabric's interfaces of one protocol receive for their hosts. Packets that arrive in a
 * burst are merged (merge.h), those of one interface at a time, and given to the host when
 * another one comes or no more does.
 */
#ifndef SOFTIB_ULP_NET_ARRIVALS_H
#define SOFTIB_ULP_NET_ARRIVALS_H

#include "runtime/rt.h"
#include "ulp/net/merge.h"

#define NET_LINK_BYTES 14 /* of an Ethernet header */

/**
 * struct net_host - the host's end of an interface
 * @fd: the TUN or TAP device
 * @takes_udp: merged datagrams of UDP as well: net_merge_is_udp()
 * @delivered: @packets of @bytes together, as they came, are the host's; or, unless @taken, lost
 * @release: the host has what these receives had: net_arrivals_deliver(). NULL: none is kept
 */
struct net_host {
	int fd;
	bool takes_udp;
	void (*delivered)(struct net_host *host, bool taken, unsigned int packets, size_t bytes);
	void (*release)(struct net_host *host, void *const *receive, unsigned int num);
};

/** struct net_arrival - a packet that was received
 *  @link_bytes: in front of it, of its Ethernet header; the host gets them, too; 0: there is none
 *  @is_ip: it may be merged, if it is what merge.h merges
 *  @checked: its checksums are right
 *  @receive: that has it, and may be kept; NULL: none */
struct net_arrival {
	const u8 *packet;
	size_t bytes, link_bytes;
	bool is_ip, checked;
	void *receive;
};

/** struct net_arrivals - of a fabric */
struct net_arrivals {
	struct rt *rt;
	struct net_host *owner; /* of what is in it; NULL: of nobody */
	unsigned int rounds;	/* of work since the last packet */
	struct rt_work flush;
	struct net_merge merge;
	u8 link[NET_LINK_BYTES]; /* in front of each packet of @merge */
	size_t link_bytes;
	unsigned int num_kept;
	void *kept[NET_MERGED_MOST]; /* receives that have parts of @merge */
};

void net_arrivals_init(struct net_arrivals *a, struct rt *rt);
/** net_arrivals_deliver() - give it to the host, now or later. What is not to be merged overtakes
 *  what other interfaces receive, but nothing of its own.
 *  Return: was @in->receive kept? Until @release is called */
bool net_arrivals_deliver(struct net_arrivals *a, struct net_host *host, const struct net_arrival *in);
/** net_arrivals_flush() - give the host what was kept for it */
void net_arrivals_flush(struct net_arrivals *a, struct net_host *host);
/** net_arrivals_forget() - the interface ends; flush first what it has kept */
void net_arrivals_forget(struct net_arrivals *a, struct net_host *host);

/** net_host_open() - learn from the device of @host, whose net_tun_check() was called, what it takes */
void net_host_open(struct net_host *host);
/** net_host_write() - a packet of the interface itself: its checksums are there, and the host
 *  verifies them. Return: did the host take it? */
bool net_host_write(struct net_host *host, const u8 *packet, size_t bytes);

#endif
