/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The host's end: a TUN device. Each packet has a virtio-net header in front of its IP
 * header: the host leaves checksums and the cutting of large TCP segments to us.
 */
#include <errno.h>
#include <linux/if_tun.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/bytes.h"
#include "ulp/ipoib/private.h"
#include "ulp/net/merge.h"
#include "ulp/net/segment.h"
#include "ulp/net/tun.h"

#define USO	    0x60 /* TUN_F_USO4 and TUN_F_USO6 */
#define READ_FRAMES 64	    /* sent in a turn of the loop: a receiver takes more in one */
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

/* Where to put together what exceeds a small frame: it may become a frame as it is. */
static u8 *place_of_large(struct ipoib *p)
{
	u8 *frame = p->own.connected || p->offloads ? ipoib_spare_frame(p) : NULL;

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
	ssize_t n = net_tun_read(p->tun_fd, part, ARRAY_SIZE(part));

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

/* What arrives in a burst is merged, of one interface of the fabric at a time. An engine takes few packets
 * when it has its turn, so what is merged stays until the loop has run its work FLUSH_AFTER times and
 * brought no more of it. Datagrams stay in their receives, which are posted again thereafter. */
#define FLUSH_AFTER 8

/** struct ipoib_arrivals - of a fabric */
struct ipoib_arrivals {
	struct ipoib *owner; /* of what is in it */
	unsigned int rounds; /* of work since the last packet */
	struct rt_work flush;
	struct net_merge merge;
	unsigned int num_kept;
	struct ipoib_receive *kept[NET_MERGED_MOST]; /* that have parts of @merge */
};

static struct ipoib_arrivals *arrivals_of(const struct ipoib *p)
{
	return rt_local(p->device->rt, RT_LOCAL_IPOIB);
}

/* Its checksums are there, and the host verifies them. */
static bool write_packet(struct ipoib *p, const u8 *packet, size_t bytes)
{
	const struct virtio_net_hdr header = {.gso_type = VIRTIO_NET_HDR_GSO_NONE};

	return net_tun_write(p->tun_fd, &header, packet, bytes);
}

static void count_delivered(struct ipoib *p, bool taken, unsigned int packets, size_t bytes)
{
	if (taken) {
		p->stats.rx_packets += packets;
		p->stats.rx_bytes += bytes;
	} else {
		p->stats.rx_dropped += packets;
	}
}

/* for the host, behind @h */
static bool write_merged(struct ipoib *p, const struct virtio_net_hdr *h, const struct net_merge *m)
{
	struct iovec part[2 + NET_MERGED_MOST] = {
		[1] = {(void *)(uintptr_t)m->header, m->headers}};

	memcpy(&part[2], m->part, m->num_parts * sizeof(*part));
	return net_tun_write_parts(p->tun_fd, h, part, 2 + m->num_parts);
}

static void flush(struct ipoib_arrivals *a)
{
	struct net_merge *m = &a->merge;
	struct ipoib *p = a->owner;
	struct virtio_net_hdr header;

	if (!m->count)
		return;
	net_merge_end(m, &header);
	count_delivered(p, write_merged(p, &header, m), m->count,
			m->bytes + (m->count - 1) * m->headers);
	m->count = 0;
	ipoib_receives_free(p, a->kept, a->num_kept);
	a->num_kept = 0;
}

void ipoib_host_flush(struct ipoib *p)
{
	struct ipoib_arrivals *a = arrivals_of(p);

	if (a->owner == p)
		flush(a);
}

static void flush_later(struct rt_work *work)
{
	struct ipoib_arrivals *a = container_of(work, struct ipoib_arrivals, flush);

	if (a->merge.count && ++a->rounds < FLUSH_AFTER)
		rt_work_queue(a->owner->device->rt, work);
	else
		flush(a);
}

/** struct arrival - a packet that was received */
struct arrival {
	const u8 *packet;
	size_t bytes;
	bool checked;		       /* its checksums are right */
	struct ipoib_receive *receive; /* that has it, and may be kept; NULL: none */
	bool kept;
};

/* Return: false: the packet is to be delivered by itself */
static bool merge(struct ipoib_arrivals *a, struct ipoib *p, struct arrival *in)
{
	if (!net_merge_add(&a->merge, in->packet, in->bytes, in->checked, in->receive))
		return false;
	in->kept = in->receive;
	if (in->kept)
		a->kept[a->num_kept++] = in->receive;
	a->owner = p;
	a->rounds = 0;
	rt_work_queue(p->device->rt, &a->flush);
	return true;
}

/* What is not to be merged overtakes what other interfaces receive, but nothing of its own. */
static void deliver(struct ipoib *p, struct arrival *in)
{
	struct ipoib_arrivals *a = arrivals_of(p);
	bool mergeable = net_merge_may_begin(in->packet, in->bytes) &&
			 (p->takes_udp || !net_merge_is_udp(in->packet));

	if (mergeable && (!a->merge.count || a->owner == p) && merge(a, p, in))
		return;
	if (mergeable || a->owner == p)
		flush(a);
	if (!mergeable || !merge(a, p, in))
		count_delivered(p, write_packet(p, in->packet, in->bytes), 1, in->bytes);
}

/* The host knows no link addresses, and takes no message that has one. */
static void deliver_claim(struct ipoib *p, const struct ipoib_packet *packet,
			  const struct ipoib_resolution *r)
{
	u8 message[IPOIB_ND_BYTES];
	struct arrival in = {.packet = message};

	in.bytes = ipoib_put_nd(message, r->op, NULL, &packet->src, &packet->dst, &r->target_ip);
	deliver(p, &in);
}

static void received_ip(struct ipoib *p, struct arrival *in)
{
	struct ipoib_resolution r;
	struct ipoib_packet packet;
	int ret = ipoib_read_packet(in->packet, in->bytes, &packet);

	if (!ret)
		ret = ipoib_get_nd(&packet, &r);
	if (ret == -ENOMSG) {
		deliver(p, in);
	} else if (ret) {
		p->stats.rx_errors++;
	} else {
		ipoib_resolution(p, &r);
		if (ipoib_conflict_is_hosts(p, &r, &packet.dst))
			deliver_claim(p, &packet, &r);
	}
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
	struct arrival in = {.packet = frame + IPOIB_ENCAP_BYTES,
			     .bytes = bytes - IPOIB_ENCAP_BYTES,
			     .checked = checked,
			     .receive = receive};

	switch (get_be16(frame)) {
	case IPOIB_IPV4:
	case IPOIB_IPV6:
		received_ip(p, &in);
		break;
	case IPOIB_ARP:
		received_arp(p, in.packet, in.bytes);
		break;
	default:
		p->stats.rx_errors++;
	}
	return in.kept;
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
	if (bytes && !write_packet(s->ipoib, message, bytes))
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
	net_tun_set_carrier(p->tun_fd, up);
}

static void init_arrivals(struct rt *rt, void *state)
{
	struct ipoib_arrivals *a = state;

	rt_work_init(&a->flush, flush_later);
}

int ipoib_host_init(struct rt *rt)
{
	if (rt_local(rt, RT_LOCAL_IPOIB))
		return -EEXIST;
	return rt_local_get(rt, RT_LOCAL_IPOIB, sizeof(struct ipoib_arrivals), init_arrivals) ? 0 :
												-ENOMEM;
}

void ipoib_host_cleanup(struct rt *rt)
{
	rt_local_free(rt, RT_LOCAL_IPOIB);
}

void ipoib_host_open(struct ipoib *p)
{
	/* Linux before 6.2 refuses the offload, and large datagrams of UDP that are written as well. It
	 * is not asked for: the host would hand over such packets, too. */
	p->takes_udp = !ioctl(p->tun_fd, TUNSETOFFLOAD, OFFLOADS | USO);
	ioctl(p->tun_fd, TUNSETOFFLOAD, OFFLOADS);
	rt_io_init(p->device->rt, &p->tun_io, p->tun_fd, readable);
	rt_io_watch(&p->tun_io, true, false);
}

void ipoib_host_close(struct ipoib *p)
{
	struct ipoib_arrivals *a = arrivals_of(p);

	if (a->owner == p) {
		a->owner = NULL;
		a->merge.count = 0;
		rt_work_cancel(&a->flush);
	}
	rt_io_watch(&p->tun_io, false, false);
	net_tun_close(p->tun_fd);
}
