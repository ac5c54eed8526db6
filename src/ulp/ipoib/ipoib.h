/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * IP over InfiniBand (RFC 4391, 4392), datagram and connected mode (RFC 4755): an
 * upper-level protocol on the midlayer's interface alone.
 *
 * The host's end of an interface is a TUN device in a network namespace, made by who
 * opens it: IP packets are read from it and written to it. What a network driver asks of
 * its kernel is asked of a routing socket (rtnetlink(7)) of the same namespace: which
 * addresses the interface has, and which gateways its routes have. Address resolution is done here, as a TUN device carries
 * packets without link addresses; which IP groups the host has joined is read from its
 * own IGMP and MLD reports.
 */
#ifndef SOFTIB_ULP_IPOIB_H
#define SOFTIB_ULP_IPOIB_H

#include "rdma/ib_verbs.h"
#include "ulp/ipoib/frame.h"

#define IPOIB_MTU	    2044  /* of datagram mode, of a broadcast group with 2048: ipoib_mtu() */
#define IPOIB_CONNECTED_MTU 65520 /* of connected mode, as Linux has it */

#define IPOIB_SEGMENTS	    40    /* the most that a large packet of the host may have */

struct ipoib;

/**
 * struct ipoib_config - an interface
 * @pkey: of its partition; full membership is not asked for here
 * @connected: it begins in connected mode: ipoib_set_connected()
 * @tun_fd: the device, IFF_TUN | IFF_NO_PI | IFF_VNET_HDR
 * @rtnl_fd: NETLINK_ROUTE, bound to the groups of links and, of IPv4 and IPv6, of addresses,
 *           routes and rules
 * @ifindex: of the device in that namespace
 */
struct ipoib_config {
	struct ib_device *device;
	u32 port_num;
	u16 pkey;
	bool connected;
	int tun_fd, rtnl_fd;
	unsigned int ifindex;
};

/** struct ipoib_stats - counted since the interface was opened */
struct ipoib_stats {
	u64 rx_packets, rx_bytes, tx_packets, tx_bytes;
	u64 rx_errors;	/* malformed, or of a status */
	u64 rx_dropped; /* the host's queue was full, or the interface down */
	u64 tx_errors;	/* no IP packet, too long, or refused by the queue pair */
	u64 tx_dropped; /* nobody answered for the address, or too many waited */
	u64 conflicts;	/* messages of others that claimed an address of the host's */
	u64 completions, events; /* of sends and receives, and the calls that took them up */
};

/** struct ipoib_moderation - how long completions of receives may wait for others, as
 *  ethtool(8) -C has it. Either is 0: they do not wait */
struct ipoib_moderation {
	u16 usecs;  /* rx-usecs: from the first of them on */
	u16 frames; /* rx-frames: there are so many */
};

/** ipoib_init() - behind ib_sa_init(). 0; -errno */
int ipoib_init(struct rt *rt);
void ipoib_cleanup(struct rt *rt);
/**
 * ipoib_open() - make the interface of a port and partition
 * Both descriptors of @config are the interface's from now on, unless it fails. It ends
 * with its adapter, with the TUN device, or by ipoib_close().
 * Return: 0; -EINVAL they are something else; -EEXIST there is one; -ENOENT the port is
 * not in the partition; -ENOMEM; what the device said
 */
int ipoib_open(const struct ipoib_config *config);
/** ipoib_find() - Return: the interface; NULL */
struct ipoib *ipoib_find(struct ib_device *device, u32 port_num, u16 pkey);
void ipoib_close(struct ipoib *ipoib);

/** ipoib_count() - Return: the number of interfaces of an adapter */
unsigned int ipoib_count(struct ib_device *device);
/** ipoib_each_of_port() - the interfaces of the port of @ipoib, in the order in which they
 *  were opened. Until @fn, which may not end one, returns non-zero: that; else 0 */
int ipoib_each_of_port(const struct ipoib *ipoib,
		       int (*fn)(void *ctx, struct ipoib *ipoib), void *ctx);

/**
 * ipoib_set_connected() - choose the mode
 *
 * In connected mode neighbours that offer it are reached by reliable connections, which
 * carry packets up to IPOIB_CONNECTED_MTU; others, and groups, by datagrams. The TUN device
 * has the MTU of the mode: ipoib_mtu().
 * Return: 0; -errno, and the mode is as it was
 */
int ipoib_set_connected(struct ipoib *ipoib, bool connected);
bool ipoib_is_connected(const struct ipoib *ipoib);
/** ipoib_mtu() - the longest IP packet of the host. In datagram mode it is the MTU of the
 *  broadcast group less the header (RFC 4391 section 7), and that of the device follows it */
unsigned int ipoib_mtu(const struct ipoib *ipoib);
/** ipoib_set_moderation() - Return: 0; -EINVAL, -EOPNOTSUPP: the adapter does not have it */
int ipoib_set_moderation(struct ipoib *ipoib, const struct ipoib_moderation *moderation);
struct ipoib_moderation ipoib_moderation(const struct ipoib *ipoib);
/** ipoib_connections() - their number, also of those that are being made or ended */
unsigned int ipoib_connections(const struct ipoib *ipoib);
/** ipoib_pkey() - of its partition */
u16 ipoib_pkey(const struct ipoib *ipoib);
/** struct ipoib_own_address - one that its host has given it
 *  @duplicate: another has had it before: the interface does not answer for it
 *  @verifying: others are being asked whether they have it
 *  @other: who has claimed it as well; NULL: nobody that is known */
struct ipoib_own_address {
	const struct in6_addr *ip;
	unsigned int prefix_bits;
	bool duplicate, verifying;
	const struct ipoib_link *other;
};
/** ipoib_each_address() - until @fn returns non-zero */
int ipoib_each_address(const struct ipoib *ipoib,
		       int (*fn)(void *ctx, const struct ipoib_own_address *address), void *ctx);
/** ipoib_report_conflicts() - from now on, @fn is called when another claims an address of an
 *  interface, at most once in ten seconds for each address; NULL: nobody is told */
void ipoib_report_conflicts(void (*fn)(const struct ipoib *ipoib,
				       const struct ipoib_own_address *address));
/** ipoib_device() - whose port it is of. @port_num: set */
struct ib_device *ipoib_device(const struct ipoib *ipoib, u32 *port_num);
/** ipoib_own_link() - where it receives */
const struct ipoib_link *ipoib_own_link(const struct ipoib *ipoib);
const struct ipoib_stats *ipoib_stats(const struct ipoib *ipoib);
/** ipoib_is_joined() - is it a member of the broadcast group? Nothing is sent before */
bool ipoib_is_joined(const struct ipoib *ipoib);
/** struct ipoib_peer - a neighbour
 *  @link: NULL: it is being resolved
 *  @path: how it is reached; NULL: the subnet administrator has not answered yet
 *  @connected: by a connection that is up */
struct ipoib_peer {
	const struct in6_addr *ip;
	const struct ipoib_link *link;
	const struct rdma_ah_attr *path;
	bool connected;
};
/** ipoib_each_neighbour() - until @fn returns non-zero */
int ipoib_each_neighbour(struct ipoib *ipoib, int (*fn)(void *ctx, const struct ipoib_peer *peer),
			 void *ctx);
/** ipoib_each_group() - multicast groups it is in, or sends to (@send_only) */
int ipoib_each_group(struct ipoib *ipoib,
		     int (*fn)(void *ctx, const union ib_gid *mgid, bool send_only,
			       bool joined),
		     void *ctx);

#endif
