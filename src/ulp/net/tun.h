/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The host's end of a network interface whose other end is an upper-level protocol: a TUN or TAP
 * device in a network namespace, with virtio-net headers, and a routing socket (rtnetlink(7)) of
 * the same namespace. Both are made by who opens the interface.
 */
#ifndef SOFTIB_ULP_NET_TUN_H
#define SOFTIB_ULP_NET_TUN_H

#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <sys/uio.h>

#include "base/types.h"

/* what the host may leave to an interface: segment.h */
#define NET_OFFLOADS (TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN)

/**
 * net_tun_check() - make sure of descriptors that a program handed over, which may be anything:
 * no other descriptor is read or written
 * @kind: IFF_TUN or IFF_TAP
 * Return: 0: the device does not block, its packets have a struct virtio_net_hdr each, and the host leaves
 * NET_OFFLOADS to the interface; -EINVAL they are something else; -errno
 */
int net_tun_check(int tun_fd, int rtnl_fd, int kind);

/** net_tun_name() - the device's name now, of IFNAMSIZ bytes; "" if it was deleted */
void net_tun_name(int tun_fd, char *name);

/** net_tun_read() - one packet, whose struct virtio_net_hdr comes first. Never waits.
 *  Return: as readv(2) */
ssize_t net_tun_read(int tun_fd, const struct iovec *part, int parts);
/** net_tun_write() - a packet for the host, behind @h. Return: did the host take it? */
bool net_tun_write(int tun_fd, const struct virtio_net_hdr *h, const void *packet, size_t bytes);

/** net_tun_write_parts() - the same of a packet in @num parts
 *  @part: entry 0 is free, for @h; the packet begins with entry 1 */
bool net_tun_write_parts(int tun_fd, const struct virtio_net_hdr *h, struct iovec *part,
			 unsigned int num);

/** net_tun_set_carrier() - does the host see a link? */
void net_tun_set_carrier(int tun_fd, bool up);

/** net_tun_close() - with which the kernel deletes the device, unless net_tun_leave() was called.
 *  @tun_fd: or -1 */
void net_tun_close(int tun_fd);

/**
 * net_tun_leave() - from now on, an interface that ends leaves its device to the device's network
 * namespace, with which the kernel deletes it
 *
 * softibd calls it before it exits. The kernel deletes a device whose file is closed on its own,
 * which takes about 30 ms, but the devices of namespaces that end together in one batch.
 */
void net_tun_leave(void);

#endif
