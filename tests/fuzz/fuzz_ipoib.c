/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Any bytes as a frame of IP over InfiniBand, and as a packet that the host sends. */
#include <stdlib.h>
#include <string.h>

#include "ulp/ipoib/frame.h"

#define MOST 2048

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void hear(void *ctx, const struct in6_addr *group, bool join)
{
	if (!ipoib_is_group(group))
		abort();
}

/* a neighbour that was read is one that could be written */
static void check_link(const struct ipoib_resolution *r)
{
	u8 bytes[IPOIB_LINK_BYTES];
	struct ipoib_link again;

	if (!r->has_sender)
		return;
	if (r->sender.qpn < 2 || r->sender.qpn == 0xffffff || r->sender.gid.raw[0] == 0xff)
		abort();
	ipoib_put_link(&r->sender, bytes);
	if (!ipoib_get_link(bytes, &again) || again.qpn != r->sender.qpn)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct in6_addr self = {.s6_addr = {0xfd, [15] = 1}};
	u8 said[IPOIB_UNREACHABLE_BYTES(MOST)];
	struct ipoib_resolution r;
	struct ipoib_packet p;

	if (size > MOST)
		return 0;
	if (!ipoib_get_arp(data, size, &r))
		check_link(&r);
	if (ipoib_read_packet(data, size, &p))
		return 0;
	if (p.payload < data || p.payload + p.payload_bytes > data + size)
		abort();
	if (!ipoib_get_nd(&p, &r))
		check_link(&r);
	ipoib_each_report(&p, hear, NULL);
	size = ipoib_put_unreachable(said, data, size, &self);
	if (size && (size > sizeof(said) || ipoib_read_packet(said, size, &p)))
		abort();
	return 0;
}
