/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The host's end: a TAP device, whose frames have a virtio-net header each. */
#include <errno.h>
#include <sys/uio.h>

#include "ulp/eth/private.h"
#include "ulp/net/tun.h"

#define READ_FRAMES 32 /* in a turn of the loop */

/* --- from the host --- */

/* Return: the bytes of a frame; 0, -1 as read(2) */
static ssize_t read_frame(struct eth_send *s)
{
	struct virtio_net_hdr header;
	struct iovec part[] = {{&header, sizeof(header)}, {s->frame, sizeof(s->frame)}};
	ssize_t n = readv(s->eth->tap_fd, part, ARRAY_SIZE(part));

	return n > (ssize_t)sizeof(header) ? n - (ssize_t)sizeof(header) : MIN(n, 0);
}

/* what the host sends waits in its queue */
static void wait_for_room(struct eth *eth)
{
	eth->host_waits = true;
	rt_io_watch(&eth->tap_io, false, false);
}

/* Return: was a frame there, and room for it? */
static bool read_one(struct eth *eth)
{
	struct eth_send *s = eth_send_alloc(eth);
	ssize_t n;

	if (!s) {
		eth_queue_poll(eth); /* the adapter has sent most of it by now */
		s = eth_send_alloc(eth);
	}
	if (!s) {
		wait_for_room(eth);
		return false;
	}
	n = read_frame(s);
	if (n > 0) {
		s->bytes = (size_t)n;
		eth_post(s);
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
	if (!eth->closing)
		rt_io_watch(&eth->tap_io, true, false);
}

/* --- for the host --- */

void eth_received(struct eth *eth, const u8 *frame, size_t bytes)
{
	const struct virtio_net_hdr header = {.gso_type = VIRTIO_NET_HDR_GSO_NONE};

	if (net_tun_write(eth->tap_fd, &header, frame, bytes)) {
		eth->stats.rx_packets++;
		eth->stats.rx_bytes += bytes;
	} else {
		eth->stats.rx_dropped++;
	}
}

/* --- coming and going --- */

void eth_host_open(struct eth *eth)
{
	rt_io_init(eth->device->rt, &eth->tap_io, eth->tap_fd, readable);
	rt_io_watch(&eth->tap_io, true, false);
}

void eth_host_close(struct eth *eth)
{
	rt_io_watch(&eth->tap_io, false, false);
	net_tun_close(eth->tap_fd);
}
