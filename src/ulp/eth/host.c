/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The host's end: a TAP device, whose frames have a virtio-net header each: the host leaves
 * checksums and the cutting of large TCP segments to us. What arrives is merged (net/arrivals.h).
 */
#include <errno.h>
#include <linux/if_ether.h>
#include <string.h>

#include "base/bytes.h"
#include "ulp/eth/private.h"
#include "ulp/net/segment.h"
#include "ulp/net/tun.h"

#define READ_FRAMES   32 /* in a turn of the loop */
#define ETHER_TYPE_AT 12
#define TAG_BYTES     (WIRE_FRAME_OVERHEAD - WIRE_FRAME_MIN)

/* --- from the host --- */

/* a TCP segment of 64 KiB behind its Ethernet header, and a small one behind what does not fit a
 * send; one thread */
static u8 large[WIRE_FRAME_OVERHEAD + NET_LARGE_BYTES];

/* Return: the bytes of a frame: those that exceed a send are in @large, behind where the others
 * belong; 0, -1 as read(2) */
static ssize_t read_frame(struct eth_send *s, struct virtio_net_hdr *h)
{
	struct iovec part[] = {{h, sizeof(*h)},
			       {s->frame, sizeof(s->frame)},
			       {large + sizeof(s->frame), sizeof(large) - sizeof(s->frame)}};
	ssize_t n = net_tun_read(s->eth->host.fd, part, ARRAY_SIZE(part));

	return n > (ssize_t)sizeof(*h) ? n - (ssize_t)sizeof(*h) : MIN(n, 0);
}

static size_t ethernet_header(const u8 *frame)
{
	return get_be16(frame + ETHER_TYPE_AT) == ETH_P_8021Q ? WIRE_FRAME_OVERHEAD : WIRE_FRAME_MIN;
}

/* The frame, with its tag if the interface has one, is the adapter's. @s->bytes: without it */
static void post(struct eth_send *s)
{
	u8 *type = s->frame + ETHER_TYPE_AT;

	if (s->eth->vlan_id) {
		memmove(type + TAG_BYTES, type, s->bytes - ETHER_TYPE_AT);
		put_be16(type, ETH_P_8021Q);
		put_be16(type + 2, s->eth->vlan_id);
		s->bytes += TAG_BYTES;
	}
	eth_post(s);
}

static void refuse(struct eth_send *s)
{
	s->eth->stats.tx_errors++;
	eth_send_free(s);
}

/* the longest frame of the host: it may have a VLAN tag, which the MTU does not count, if the interface
 * itself does not add one */
static size_t frame_max(const struct eth *eth, const u8 *frame)
{
	return eth->mtu + (eth->vlan_id ? (size_t)WIRE_FRAME_MIN : ethernet_header(frame));
}

/* Return: false: it was refused */
static bool has_right_length(struct eth_send *s, size_t bytes)
{
	if (bytes >= WIRE_FRAME_MIN && bytes <= frame_max(s->eth, s->frame))
		return true;
	s->eth->stats.tx_length_errors++;
	refuse(s);
	return false;
}

/* The whole segment is in @large. What is cut follows from its IP packet: each part has the same
 * Ethernet header. */
static void transmit_large(struct eth_send *s, struct virtio_net_hdr h, size_t bytes)
{
	struct eth *eth = s->eth;
	size_t header = bytes < WIRE_FRAME_OVERHEAD ? bytes : ethernet_header(large);
	struct net_cut cut;

	if (eth->vlan_id && header > WIRE_FRAME_MIN) { /* it has a tag, and is to get another one */
		refuse(s);
		return;
	}
	h.csum_start -= (u16)MIN((size_t)h.csum_start, header);
	if (net_cut_begin(&cut, &h, large + header, bytes - header, eth->mtu)) {
		refuse(s);
		return;
	}
	for (; s; s = eth_send_alloc(eth)) {
		memcpy(s->frame, large, header);
		s->bytes = header + net_cut_next(&cut, s->frame + header);
		post(s);
		if (net_cut_is_done(&cut))
			return;
	}
	eth->stats.tx_dropped++; /* the rest, which TCP sends again */
}

static void transmit(struct eth_send *s, const struct virtio_net_hdr *h, size_t bytes)
{
	if (net_is_large(h)) {
		memcpy(large, s->frame, MIN(bytes, sizeof(s->frame)));
		transmit_large(s, *h, bytes);
	} else if (has_right_length(s, bytes)) {
		if (net_fill_checksum(h, s->frame, bytes)) {
			refuse(s);
			return;
		}
		s->bytes = bytes;
		post(s);
	}
}

static bool has_room(const struct eth *eth)
{
	return eth->num_sends + ETH_SEGMENTS <= ETH_SENDS;
}

/* Return: was a frame there, and room for it? */
static bool read_one(struct eth *eth)
{
	struct virtio_net_hdr header;
	struct eth_send *s;
	ssize_t n;

	if (!has_room(eth))
		eth_queue_poll(eth); /* the adapter has sent most of it by now */
	s = has_room(eth) ? eth_send_alloc(eth) : NULL;
	if (!s) { /* what the host sends waits in its queue */
		eth->stats.tx_waits++;
		eth->host_waits = true;
		trace_eth_queue(ETH_TRACE_AT(eth), "full");
		rt_io_watch(&eth->tap_io, false, false);
		return false;
	}
	n = read_frame(s, &header);
	if (n > 0) {
		transmit(s, &header, (size_t)n);
		return true;
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR) { /* the device was deleted */
		rt_io_watch(&eth->tap_io, false, false);
		rt_work_queue(eth->device->rt, &eth->end);
	}
	eth_send_free(s);
	return false;
}

static void readable(struct rt_io *io, bool in, bool out)
{
	struct eth *eth = container_of(io, struct eth, tap_io);

	for (unsigned int n = 0; n < READ_FRAMES && read_one(eth); n++)
		;
}

void eth_host_resume(struct eth *eth)
{
	eth->host_waits = false;
	if (eth->closing)
		return;
	rt_io_watch(&eth->tap_io, true, false);
	trace_eth_queue(ETH_TRACE_AT(eth), "resume");
}

/* --- for the host --- */

static struct net_arrivals *arrivals_of(const struct eth *eth)
{
	return rt_local(eth->device->rt, RT_LOCAL_ETH);
}

static void delivered(struct net_host *host, bool taken, unsigned int packets, size_t bytes)
{
	struct eth *eth = container_of(host, struct eth, host);

	if (taken) {
		eth->stats.rx_packets += packets;
		eth->stats.rx_bytes += bytes;
	} else {
		eth->stats.rx_dropped += packets;
	}
}

void eth_received(struct eth *eth, u8 *frame, size_t bytes)
{
	struct net_arrival in = {.link_bytes = WIRE_FRAME_MIN};
	u16 type;

	if (eth->vlan_id && bytes >= WIRE_FRAME_OVERHEAD) { /* the tag, by which it came here */
		memmove(frame + TAG_BYTES, frame, ETHER_TYPE_AT);
		frame += TAG_BYTES;
		bytes -= TAG_BYTES;
	}
	if (bytes < WIRE_FRAME_MIN || bytes > frame_max(eth, frame)) {
		eth->stats.rx_errors++;
		eth->stats.rx_length_errors++;
		return;
	}
	type = get_be16(frame + ETHER_TYPE_AT);
	in.packet = frame + WIRE_FRAME_MIN;
	in.bytes = bytes - WIRE_FRAME_MIN;
	in.is_ip = type == ETH_P_IP || type == ETH_P_IPV6; /* without a VLAN tag */
	net_arrivals_deliver(arrivals_of(eth), &eth->host, &in);
}

/* --- coming and going --- */

static void init_arrivals(struct rt *rt, void *arrivals)
{
	net_arrivals_init(arrivals, rt);
}

int eth_host_init(struct rt *rt)
{
	if (rt_local(rt, RT_LOCAL_ETH))
		return -EEXIST;
	return rt_local_get(rt, RT_LOCAL_ETH, sizeof(struct net_arrivals), init_arrivals) ? 0 : -ENOMEM;
}

void eth_host_cleanup(struct rt *rt)
{
	rt_local_free(rt, RT_LOCAL_ETH);
}

void eth_host_open(struct eth *eth)
{
	eth->host.delivered = delivered;
	net_host_open(&eth->host);
	rt_io_init(eth->device->rt, &eth->tap_io, eth->host.fd, readable);
	rt_io_watch(&eth->tap_io, true, false);
}

void eth_host_close(struct eth *eth)
{
	net_arrivals_flush(arrivals_of(eth), &eth->host);
	net_arrivals_forget(arrivals_of(eth), &eth->host);
	rt_io_watch(&eth->tap_io, false, false);
	net_tun_close(eth->host.fd);
}
