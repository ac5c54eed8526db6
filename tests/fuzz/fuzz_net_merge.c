/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets of other hosts, one after the other, as they are merged for this one. Input: packets, each behind
 * a word (big-endian) whose upper two bits say whether the adapter has verified its checksum, and whether it
 * stays where it was received, and whose others are its length.
 */
#include <stdlib.h>
#include <string.h>

#include "ulp/net/merge.h"
#include "wire/inet.h"

#define CHECKED 0x8000
#define STAYS	0x4000
#define PACKET	2048 /* the largest that is received */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct net_merge merge;
static u8 received[NET_MERGED_MOST + 1][PACKET]; /* those of @merge, and one that does not belong there */
static size_t lengths[NET_MERGED_MOST];

static void check(bool right)
{
	if (!right)
		abort();
}

/* Return: the packet that the host is given, in one piece */
static const u8 *whole(void)
{
	static u8 packet[NET_LARGE_BYTES];
	size_t at = merge.headers;

	check(merge.bytes <= sizeof(packet) && merge.headers <= sizeof(merge.header));
	check(merge.num_parts <= NET_MERGED_MOST);
	memcpy(packet, merge.header, at);
	for (unsigned int i = 0; i < merge.num_parts; i++) {
		check(at + merge.part[i].iov_len <= merge.bytes);
		memcpy(packet + at, merge.part[i].iov_base, merge.part[i].iov_len);
		at += merge.part[i].iov_len;
	}
	check(at == merge.bytes);
	return packet;
}

/* The host that cuts it again has the payloads that have come. */
static void give_to_host(void)
{
	struct virtio_net_hdr header;
	const u8 *packet;
	size_t at;

	if (!merge.count)
		return;
	net_merge_end(&merge, &header);
	packet = whole();
	at = merge.headers;
	check(merge.count > 1 ? header.gso_size == merge.mss && header.hdr_len == merge.headers :
				!header.gso_type);
	for (unsigned int i = 0; i < merge.count; i++) {
		const size_t bytes = lengths[i] - merge.headers;

		check(bytes == merge.mss || (i + 1 == merge.count && bytes < merge.mss));
		check(!memcmp(packet + at, received[i] + merge.headers, bytes));
		at += bytes;
	}
	check(at == merge.bytes);
	if (merge.count > 1 && wire_inet_is_v4(packet))
		check(!wire_inet_fold(wire_inet_sum(packet, merge.ip_header, 0)));
	merge.count = 0;
}

static bool add(size_t bytes, bool checked, bool stays)
{
	static u8 passing[PACKET];
	const unsigned int n = merge.count;
	u8 *packet = received[n];

	if (!stays) /* the next one is received in its place */
		packet = memcpy(passing, packet, bytes);
	if (!net_merge_add(&merge, packet, bytes, checked, stays))
		return false;
	lengths[n] = bytes;
	if (!stays)
		memset(passing, 0xee, sizeof(passing));
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	merge.count = 0;
	while (size > 2) {
		const u16 word = get_be16(data);
		const size_t bytes = MIN((size_t)(word & 0xfff), MIN(size - 2, (size_t)PACKET));
		/* not a byte more than came may be read */
		u8 *alone = malloc(bytes ? bytes : 1);

		memcpy(alone, data + 2, bytes);
		if (bytes && net_merge_may_begin(alone, bytes)) {
			memcpy(received[merge.count], alone, bytes);
			if (!add(bytes, word & CHECKED, word & STAYS)) {
				give_to_host();
				memcpy(received[0], alone, bytes);
				add(bytes, word & CHECKED, word & STAYS);
			}
		}
		free(alone);
		data += 2 + bytes;
		size -= 2 + bytes;
	}
	give_to_host();
	return 0;
}
