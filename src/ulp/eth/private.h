/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An Ethernet interface and its parts.
 *
 *  eth.c    making and unmaking; events of the port
 *  queue.c  the queue pair: rules, buffers, sends, receives
 *  host.c   the TAP device: frames from the host, frames for it
 *  rtnl.c   the routing socket, by which the host's kernel tells MTU, VLAN interfaces and addresses
 */
#ifndef SOFTIB_ULP_ETH_PRIVATE_H
#define SOFTIB_ULP_ETH_PRIVATE_H

#define SOFTIB_CLIENT_NAME "eth"

#include "runtime/posix/rt_posix.h"
#include "ulp/eth/eth.h"
#include "ulp/eth/trace.h"
#include "ulp/net/arrivals.h"
#include "wire/frame.h"
#include "wire/packet.h"

#define ETH_FRAME_MAX (WIRE_FRAME_MTU_MAX + WIRE_FRAME_OVERHEAD)
#define ETH_RECEIVES  16 /* as many packets as the adapter takes up in a turn of the loop */
#define ETH_SENDS     56
#define ETH_ADDRESSES 24 /* more have no GIDs: a port has a table of 32, two for each */
#define ETH_VLANS     16
#define ETH_SPARE     16	 /* sends that are kept for the next frames */

/** struct eth_send - a frame on its way out */
struct eth_send {
	struct ib_cqe cqe;
	struct eth *eth;
	struct list_head node; /* of the spare ones */
	size_t bytes;
	u8 frame[ETH_FRAME_MAX];
};

/** struct eth_receive - a buffer in the receive queue */
struct eth_receive {
	struct ib_cqe cqe;
	struct eth *eth;
	u8 *frame; /* of ETH_FRAME_MAX */
};

/** struct eth_vlan - a VLAN interface that the host's kernel has made upon the interface */
struct eth_vlan {
	unsigned int ifindex;
	u16 id;
};

/** enum eth_lists - what the kernel is listing on the routing socket */
enum eth_lists { ETH_LISTS_NOTHING, ETH_LISTS_LINKS, ETH_LISTS_ADDRESSES };

enum eth_rule { ETH_RULE_OWN, ETH_RULE_GROUPS, ETH_RULES };

/** struct eth - an interface */
struct eth {
	struct list_head node; /* of its device's interfaces */
	struct ib_device *device;
	u32 port_num;
	u16 vlan_id; /* 0: untagged */
	bool closing; /* nothing new is begun */
	struct ib_event_handler events;
	struct rt_work end;	/* the TAP device is gone */
	struct rt_work restart; /* the queue pair is in error */
	struct eth_stats stats;
	u8 mac[ETH_MAC_BYTES];
	unsigned int mtu;
	/* --- host.c --- */
	struct net_host host;
	struct rt_io tap_io;
	bool host_waits; /* for room in the send queue */
	/* --- rtnl.c --- */
	int rtnl_fd;
	unsigned int ifindex;
	struct rt_io rtnl_io;
	enum eth_lists rtnl_lists;
	bool rtnl_wanted; /* a new list */
	struct eth_vlan vlan[ETH_VLANS];
	struct ib_port_address address[ETH_ADDRESSES];
	unsigned int num_vlans, num_addresses;
	/* --- queue.c --- */
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ib_flow *flow[ETH_RULES];
	struct rt_work drain;
	struct eth_receive receive[ETH_RECEIVES];
	u8 *receive_frames;
	struct list_head spare_sends;
	unsigned int num_sends, num_spare;
};

/* --- eth.c --- */

/** eth_set_mtu() - the host's device has this MTU now */
void eth_set_mtu(struct eth *eth, unsigned int bytes);
/** eth_find_index() - Return: the interface of the same port whose device has this index; NULL */
const struct eth *eth_find_index(const struct eth *eth, unsigned int ifindex);

/* --- queue.c --- */

/** eth_queue_init() - before eth_queue_close() may be called */
void eth_queue_init(struct eth *eth);
int eth_queue_open(struct eth *eth);
/** eth_queue_restart() - from any state of the queue pair; what was posted is flushed */
void eth_queue_restart(struct eth *eth);
void eth_queue_close(struct eth *eth);
/** eth_queue_poll() - take up what has completed, without waiting for the event */
void eth_queue_poll(struct eth *eth);
/** eth_send_alloc() - for a frame of up to ETH_FRAME_MAX. Return: NULL: too many are under way, or
 *  no memory; eth_host_resume() is called when there is room */
struct eth_send *eth_send_alloc(struct eth *eth);
void eth_send_free(struct eth_send *s);
/** eth_post() - send the frame, which is freed when it has left */
void eth_post(struct eth_send *s);

/* --- host.c --- */

/** eth_host_init() - before the first interface of the fabric. 0; -EEXIST; -ENOMEM */
int eth_host_init(struct rt *rt);
/** eth_host_cleanup() - behind the last one */
void eth_host_cleanup(struct rt *rt);
void eth_host_open(struct eth *eth);
void eth_host_close(struct eth *eth);
/** eth_host_resume() - read what waits in the host's queue */
void eth_host_resume(struct eth *eth);
/** eth_received() - a frame for the host, which is copied. @frame: is overwritten */
void eth_received(struct eth *eth, u8 *frame, size_t bytes);

/* --- rtnl.c --- */

/** eth_rtnl_open() - from now on the GID table of the port follows the interface's addresses, if that is
 *  untagged: it tells those of the others, too */
void eth_rtnl_open(struct eth *eth);
void eth_rtnl_close(struct eth *eth);

#endif
