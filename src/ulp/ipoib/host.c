/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The host's end: a TUN device. Each packet has a virtio-net header in front of its IP
 * header: the host leaves checksums and the cutting of large TCP segments to us.
 */
#include <errno.h>
#include <linux/if_tun.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "ulp/ipoib/private.h"
#include "ulp/net/segment.h"
#include "ulp/net/tun.h"

#define READ_FRAMES 64	     /* sent in a turn of the loop: a receiver takes more in one */
#define READ_BYTES  (128u << 10) /* and bytes: what is on its way stays in the caches */

/* --- from the host --- */

static void report(void *ctx, const struct in6_addr *group, bool join)
{
	ipoib_group_member(ctx, group, join);
}

static void transmit(struct ipoib *p, struct ipoib_send *s, size_t bytes)
{
	struct ipoib_packet packet;

	if (ipoib_read_packet(s->frame + IPOIB_ENCAP_BYTES, bytes, &packet)) {
		p->stats.tx_errors++;
		ipoib_send_free(s);
		return;
	}
	ipoib_each_report(&packet, report, p);
	ipoib_set_frame(s, packet.type, bytes);
	if (ipoib_is_group(&packet.dst))
		ipoib_send_to_group(p, &packet.dst, s);
	else if (ipoib_is_broadcast(p, &packet.dst))
		ipoib_send_to_group(p, &(struct in6_addr){0}, s);
	else
		ipoib_send_to(p, ipoib_next_hop(p, &packet), s);
}

/* before the broadcast group has told its own, that of most fabrics */
unsigned int ipoib_datagram_mtu(const struct ipoib *p)
{
	return p->mtu ? p->mtu : IPOIB_MTU;
}

unsigned int ipoib_mtu(const struct ipoib *p)
{
	return p->own.connected ? IPOIB_CONNECTED_MTU : ipoib_datagram_mtu(p);
}

/* may the adapter complete what the host sends? Connections carry it as it is. */
static bool offloads(const struct ipoib *p)
{
	return p->offloads && !p->own.connected;
}

/* @large: the packet of @s and what did not fit there */
static void transmit_large(struct ipoib *p, struct ipoib_send *s,
			   const struct virtio_net_hdr *h, const u8 *large, size_t bytes)
{
	struct net_cut cut;

	if (net_cut_begin(&cut, h, large, bytes, ipoib_mtu(p))) {
		p->stats.tx_errors++;
		ipoib_send_free(s);
		return;
	}
	for (; s; s = ipoib_send_alloc(p)) {
		if (cut.headers + cut.mss > s->room && !ipoib_send_enlarge(s)) {
			ipoib_send_free(s);
			break;
		}
		transmit(p, s, net_cut_next(&cut, s->frame + IPOIB_ENCAP_BYTES));
		if (net_cut_is_done(&cut))
			return;
	}
	p->stats.tx_dropped++; /* the rest, which TCP sends again */
}

/* The adapter cuts it. Return: false: it cannot, or there is no memory */
static bool transmit_whole(struct ipoib *p, struct ipoib_send *s, const struct virtio_net_hdr *h,
			   const u8 *large, size_t bytes)
{
	struct net_cut cut;

	if (!offloads(p) || net_cut_begin(&cut, h, large, bytes, ipoib_datagram_mtu(p)) ||
	    !net_cut_is_plain(&cut) || !ipoib_send_enlarge(s))
		return false;
	if (s->frame + IPOIB_ENCAP_BYTES != large)
		memcpy(s->frame + IPOIB_ENCAP_BYTES, large, bytes);
	s->offloaded = true;
	s->headers = (u16)(IPOIB_ENCAP_BYTES + cut.headers);
	s->mss = (u16)cut.mss;
	transmit(p, s, bytes);
	return true;
}

static u8 large_buffer[NET_LARGE_BYTES]; /* one thread */

/* Where to put together what exceeds a small frame: it may become a frame as it is. An interface that knows
 * nobody sends nothing large, and keeps no memory for it. */
static u8 *place_of_large(struct ipoib *p)
{
	bool wanted = p->num_neighbours && (p->own.connected || p->offloads);
	u8 *frame = wanted ? ipoib_spare_frame(p) : NULL;

	return frame ? frame + IPOIB_ENCAP_BYTES : large_buffer;
}

/* Return: bytes of the packet: those that exceed the room of @s are in @large, behind where the
 * others belong; 0, -1 as read(2) */
static ssize_t read_packet(struct ipoib_send *s, struct virtio_net_hdr *h, u8 *large)
{
	struct ipoib *p = s->ipoib;
	struct iovec part[] = {{h, sizeof(*h)},
			       {s->frame + IPOIB_ENCAP_BYTES, s->room},
			       {large + s->room, NET_LARGE_BYTES - s->room}};
	ssize_t n = net_tun_read(p->host.fd, part, ARRAY_SIZE(part));

	return n > (ssize_t)sizeof(*h) ? n - (ssize_t)sizeof(*h) : MIN(n, 0);
}

/* Most packets are read into their frame; what is larger is put together. */
static void transmit_read(struct ipoib *p, struct ipoib_send *s,
			  const struct virtio_net_hdr *h, u8 *large, size_t bytes)
{
	u8 *packet = s->frame + IPOIB_ENCAP_BYTES;

	if (bytes > s->room || net_is_large(h))
		memcpy(large, packet, MIN(bytes, (size_t)s->room));
	if (net_is_large(h)) {
		if (transmit_whole(p, s, h, large, bytes))
			return;
		if (large != large_buffer) /* its parts become frames, of which that is the next */
			memcpy(large_buffer, large, bytes);
		transmit_large(p, s, h, large_buffer, bytes);
		return;
	}
	if (bytes > s->room && bytes <= ipoib_mtu(p) && ipoib_send_enlarge(s)) {
		packet = s->frame + IPOIB_ENCAP_BYTES;
		if (packet != large)
			memcpy(packet, large, bytes);
	}
	s->offloaded = offloads(p) && bytes <= s->room && net_checksum_is_plain(h, packet, bytes);
	if ((bytes > s->room && s->frame == s->small) ||
	    (!s->offloaded && net_fill_checksum(h, packet, bytes))) {
		p->stats.tx_errors++;
		ipoib_send_free(s);
	} else {
		transmit(p, s, bytes);
	}
}

static bool has_room(const struct ipoib *p)
{
	return ipoib_sends_left(p) >= IPOIB_SENDS_OF_READ;
}

/* Return: the bytes of a packet; 0: no more is there, or has room */
static size_t read_one(struct ipoib *p)
{
	struct virtio_net_hdr header;
	struct ipoib_send *s;
	u8 *large;
	ssize_t n;

	if (!has_room(p) || (offloads(p) && !p->spare_frame && p->num_sends > p->num_waiting))
		ipoib_queue_poll(p); /* the adapter has sent most of it by now */
	s = has_room(p) ? ipoib_send_alloc(p) : NULL;
	if (!s) { /* what the host sends waits in its queue */
		p->host_waits = true;
		rt_io_watch(&p->tun_io, false, false);
		if (p->moderation.frames)
			ipoib_queue_moderate(p);
		return 0;
	}
	large = place_of_large(p);
	n = read_packet(s, &header, large);
	if (n > 0) {
		transmit_read(p, s, &header, large, (size_t)n);
		return (size_t)n;
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR) { /* the device was deleted */
		rt_io_watch(&p->tun_io, false, false);
		rt_work_queue(p->device->rt, &p->end);
	}
	ipoib_send_free(s);
	return 0;
}

static void readable(struct rt_io *io, bool in, bool out)
{
	struct ipoib *p = container_of(io, struct ipoib, tun_io);
	size_t bytes = 0, n = 1;

	for (p->num_begun = 0; p->num_begun < READ_FRAMES && bytes < READ_BYTES && n; bytes += n)
		n = read_one(p);
}

void ipoib_host_resume(struct ipoib *p)
{
	p->host_waits = false;
	if (p->closing)
		return;
	rt_io_watch(&p->tun_io, true, false);
	if (p->moderation.frames)
		ipoib_queue_moderate(p);
}

/* --- for the host --- */

static struct net_arrivals *arrivals_of(const struct ipoib *p)
{
	return rt_local(p->device->rt, RT_LOCAL_IPOIB);
}

static void delivered(struct net_host *host, bool taken, unsigned int packets, size_t bytes)
{
	struct ipoib *p = container_of(host, struct ipoib, host);

	if (taken) {
		p->stats.rx_packets += packets;
		p->stats.rx_bytes += bytes;
	} else {
		p->stats.rx_dropped += packets;
	}
}

static void release(struct net_host *host, void *const *receive, unsigned int num)
{
	ipoib_receives_free(container_of(host, struct ipoib, host), receive, num);
}

void ipoib_host_flush(struct ipoib *p)
{
	net_arrivals_flush(arrivals_of(p), &p->host);
}

/* The host knows no link addresses, and takes no message that has one. */
static void deliver_claim(struct ipoib *p, const struct ipoib_packet *packet,
			  const struct ipoib_resolution *r)
{
	u8 message[IPOIB_ND_BYTES];
	struct net_arrival in = {.packet = message, .is_ip = true};

	in.bytes = ipoib_put_nd(message, r->op, NULL, &packet->src, &packet->dst, &r->target_ip);
	net_arrivals_deliver(arrivals_of(p), &p->host, &in);
}

/* Return: was its receive kept? */
static bool received_ip(struct ipoib *p, const struct net_arrival *in)
{
	struct ipoib_resolution r;
	struct ipoib_packet packet;
	int ret = ipoib_read_packet(in->packet, in->bytes, &packet);

	if (!ret)
		ret = ipoib_get_nd(&packet, &r);
	if (ret == -ENOMSG)
		return net_arrivals_deliver(arrivals_of(p), &p->host, in);
	if (ret) {
		p->stats.rx_errors++;
	} else {
		ipoib_resolution(p, &r);
		if (ipoib_conflict_is_hosts(p, &r, &packet.dst))
			deliver_claim(p, &packet, &r);
	}
	return false;
}

static void received_arp(struct ipoib *p, const u8 *at, size_t bytes)
{
	struct ipoib_resolution r;

	if (ipoib_get_arp(at, bytes, &r))
		p->stats.rx_errors++;
	else
		ipoib_resolution(p, &r);
}

bool ipoib_received(struct ipoib *p, const u8 *frame, size_t bytes, bool checked,
		    struct ipoib_receive *receive)
{
	struct net_arrival in = {.packet = frame + IPOIB_ENCAP_BYTES,
				 .bytes = bytes - IPOIB_ENCAP_BYTES,
				 .is_ip = true,
				 .checked = checked,
				 .receive = receive};

	switch (get_be16(frame)) {
	case IPOIB_IPV4:
	case IPOIB_IPV6:
		return received_ip(p, &in);
	case IPOIB_ARP:
		received_arp(p, in.packet, in.bytes);
		break;
	default:
		p->stats.rx_errors++;
	}
	return false;
}

/* @mtu: of the link that is too small; 0: nobody answers there */
static void put_error(struct ipoib_send *s, size_t mtu)
{
	const u8 *ip = s->frame + IPOIB_ENCAP_BYTES;
	size_t bytes = s->bytes - IPOIB_ENCAP_BYTES;
	u8 message[IPOIB_UNREACHABLE_BYTES(NET_LARGE_BYTES)];
	const struct in6_addr *self;
	struct ipoib_packet packet;

	if (ipoib_read_packet(ip, bytes, &packet))
		return;
	self = ipoib_address_for(s->ipoib, &packet.src);
	if (!self && packet.type == IPOIB_IPV6)
		return;
	bytes = mtu ? ipoib_put_too_big(message, ip, bytes, self, (u16)mtu) :
		      ipoib_put_unreachable(message, ip, bytes, self);
	if (bytes && !net_host_write(&s->ipoib->host, message, bytes))
		s->ipoib->stats.rx_dropped++;
}

void ipoib_unreachable(struct ipoib_send *s)
{
	put_error(s, 0);
}

void ipoib_too_big(struct ipoib_send *s, size_t mtu)
{
	s->ipoib->stats.tx_dropped++;
	put_error(s, mtu);
	ipoib_send_free(s);
}

void ipoib_set_carrier(struct ipoib *p, bool up)
{
	net_tun_set_carrier(p->host.fd, up);
}

static void init_arrivals(struct rt *rt, void *arrivals)
{
	net_arrivals_init(arrivals, rt);
}

int ipoib_host_init(struct rt *rt)
{
	if (rt_local(rt, RT_LOCAL_IPOIB))
		return -EEXIST;
	return rt_local_get(rt, RT_LOCAL_IPOIB, sizeof(struct net_arrivals), init_arrivals) ? 0 :
											      -ENOMEM;
}

void ipoib_host_cleanup(struct rt *rt)
{
	rt_local_free(rt, RT_LOCAL_IPOIB);
}

void ipoib_host_open(struct ipoib *p)
{
	p->host.delivered = delivered;
	p->host.release = release;
	net_host_open(&p->host);
	rt_io_init(p->device->rt, &p->tun_io, p->host.fd, readable);
	rt_io_watch(&p->tun_io, true, false);
}

void ipoib_host_close(struct ipoib *p)
{
	net_arrivals_forget(arrivals_of(p), &p->host);
	rt_io_watch(&p->tun_io, false, false);
	net_tun_close(p->host.fd);
}
