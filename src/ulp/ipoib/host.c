/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The host's end: a TUN device, whose packets begin with their IP header. */
#include <errno.h>
#include <linux/if_tun.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/bytes.h"
#include "runtime/posix/closer.h"
#include "ulp/ipoib/private.h"

#define READ_BUDGET 64 /* packets of the host's in a turn of the loop */

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
		ipoib_send_to(p, &packet.dst, s);
}

/* Return: may more be there? */
static bool read_one(struct ipoib *p)
{
	struct ipoib_send *s = ipoib_send_alloc(p);
	ssize_t n;

	if (!s) { /* what the host sends waits in its queue */
		rt_io_watch(&p->tun_io, false, false);
		return false;
	}
	n = read(p->tun_fd, s->frame + IPOIB_ENCAP_BYTES, IPOIB_MTU);
	if (n > 0) {
		transmit(p, s, (size_t)n);
		return true;
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR) { /* the device was deleted */
		rt_io_watch(&p->tun_io, false, false);
		rt_work_queue(p->device->rt, &p->end);
	}
	ipoib_send_free(s);
	return false;
}

static void readable(struct rt_io *io, bool in, bool out)
{
	struct ipoib *p = container_of(io, struct ipoib, tun_io);

	for (unsigned int i = 0; i < READ_BUDGET && read_one(p); i++)
		;
}

void ipoib_host_resume(struct ipoib *p)
{
	if (!p->closing)
		rt_io_watch(&p->tun_io, true, false);
}

/* --- for the host --- */

static void deliver(struct ipoib *p, const u8 *packet, size_t bytes)
{
	if (write(p->tun_fd, packet, bytes) == (ssize_t)bytes) {
		p->stats.rx_packets++;
		p->stats.rx_bytes += bytes;
	} else {
		p->stats.rx_dropped++;
	}
}

static void received_ip(struct ipoib *p, const u8 *at, size_t bytes)
{
	struct ipoib_resolution r;
	struct ipoib_packet packet;
	int ret = ipoib_read_packet(at, bytes, &packet);

	if (!ret)
		ret = ipoib_get_nd(&packet, &r);
	if (ret == -ENOMSG)
		deliver(p, at, bytes);
	else if (ret)
		p->stats.rx_errors++;
	else
		ipoib_resolution(p, &r);
}

static void received_arp(struct ipoib *p, const u8 *at, size_t bytes)
{
	struct ipoib_resolution r;

	if (ipoib_get_arp(at, bytes, &r))
		p->stats.rx_errors++;
	else
		ipoib_resolution(p, &r);
}

void ipoib_received(struct ipoib *p, const u8 *frame, size_t bytes)
{
	const u8 *at = frame + IPOIB_ENCAP_BYTES;

	switch (get_be16(frame)) {
	case IPOIB_IPV4:
	case IPOIB_IPV6:
		received_ip(p, at, bytes - IPOIB_ENCAP_BYTES);
		break;
	case IPOIB_ARP:
		received_arp(p, at, bytes - IPOIB_ENCAP_BYTES);
		break;
	default:
		p->stats.rx_errors++;
	}
}

void ipoib_unreachable(struct ipoib_send *s)
{
	const u8 *ip = s->frame + IPOIB_ENCAP_BYTES;
	size_t bytes = s->bytes - IPOIB_ENCAP_BYTES;
	u8 message[IPOIB_UNREACHABLE_BYTES(IPOIB_MTU)];
	const struct in6_addr *self;
	struct ipoib_packet packet;

	if (ipoib_read_packet(ip, bytes, &packet))
		return;
	self = ipoib_address_for(s->ipoib, &packet.src);
	bytes = self ? ipoib_put_unreachable(message, ip, bytes, self) : 0;
	if (bytes && write(s->ipoib->tun_fd, message, bytes) < 0)
		s->ipoib->stats.rx_dropped++;
}

void ipoib_set_carrier(struct ipoib *p, bool up)
{
	int on = up;

	ioctl(p->tun_fd, TUNSETCARRIER, &on);
}

void ipoib_host_open(struct ipoib *p)
{
	rt_io_init(p->device->rt, &p->tun_io, p->tun_fd, readable);
	rt_io_watch(&p->tun_io, true, false);
}

void ipoib_host_close(struct ipoib *p)
{
	rt_io_watch(&p->tun_io, false, false);
	rt_close_foreign(p->tun_fd);
}
