/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Ethernet interfaces: an upper-level protocol on the midlayer's interface alone, which gives a
 * port of Ethernet what its network driver gives it on a real host.
 *
 * The host's end is a TAP device in a network namespace, made by who opens it. A raw packet QP of
 * the port carries its frames: rules of flow steering lead those to it that are for the port's MAC
 * address or for a group. A program's rules come first, as they do in Linux.
 */
#ifndef SOFTIB_ULP_ETH_H
#define SOFTIB_ULP_ETH_H

#include "rdma/ib_verbs.h"

#define ETH_MAC_BYTES 6
#define ETH_VLAN_ID   4094 /* the largest */
/* the MTU of a new interface: RDMA has 4096 bytes of payload in a packet, with all its headers */
#define ETH_MTU	      4200
#define ETH_SEGMENTS  40 /* the most that a large TCP segment of the host may be cut into */

struct eth;

/**
 * struct eth_config - an interface
 * @vlan_id: of a VLAN (IEEE 802.1Q), whose frames have a tag in the fabric and none at the device; 0: the
 *           interface has the frames of the port, except those that are for its interfaces of VLANs
 * @tap_fd: the device, IFF_TAP | IFF_NO_PI | IFF_VNET_HDR
 * @rtnl_fd: NETLINK_ROUTE, in the device's network namespace
 * @ifindex: of the device there
 */
struct eth_config {
	struct ib_device *device;
	u32 port_num;
	u16 vlan_id;
	int tap_fd, rtnl_fd;
	unsigned int ifindex;
};

/** struct eth_stats - counted since the interface was opened */
struct eth_stats {
	u64 rx_packets, rx_bytes, tx_packets, tx_bytes;
	u64 rx_errors;	/* of a status, and those of a wrong length */
	u64 rx_length_errors; /* longer than the MTU, or shorter than an Ethernet header */
	u64 rx_dropped; /* the host's queue was full, or the interface down */
	u64 tx_errors;	/* what the host sent is malformed, or refused by the queue pair; and the following: */
	u64 tx_length_errors; /* too long for the port, or too short */
	u64 tx_dropped; /* no memory, or no room for all parts of a large segment */
	u64 tx_waits;	/* the send queue was full: the host's queue had to wait */
	u64 restarts;	/* of a queue pair in the state Error */
};

/** eth_init() - 0; -errno */
int eth_init(struct rt *rt);
void eth_cleanup(struct rt *rt);

/**
 * eth_open() - make an interface of a port, which has one for each VLAN at most
 * Both descriptors of @config are the interface's from now on, unless it fails. It ends
 * with its adapter, with the TAP device, or by eth_close().
 * Return: 0; -EINVAL the descriptors are something else, or there is no such VLAN; -EOPNOTSUPP the port is not Ethernet's;
 * -EEXIST it has one; -ENODEV; -ENOMEM; what the device said
 */
int eth_open(const struct eth_config *config);
/** eth_find() - @vlan_id: as in struct eth_config. Return: the interface; NULL */
struct eth *eth_find(struct ib_device *device, u32 port_num, u16 vlan_id);
void eth_close(struct eth *eth);

/** eth_count() - Return: the number of interfaces of an adapter */
unsigned int eth_count(struct ib_device *device);
/** eth_mac() - the port's MAC address, which that of the TAP device is to be */
const u8 *eth_mac(const struct eth *eth);
/** eth_mtu() - the longest IP packet, or payload of a frame, that the host sends and receives: that of
 *  its device since this is up, ETH_MTU before; WIRE_FRAME_MTU_MAX at most */
unsigned int eth_mtu(const struct eth *eth);
unsigned int eth_ifindex(const struct eth *eth);
/** eth_name() - @name: the device's name in its network namespace, of IFNAMSIZ bytes; "" without it */
void eth_name(const struct eth *eth, char *name);
const struct eth_stats *eth_stats(const struct eth *eth);

#endif
