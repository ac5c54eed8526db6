/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Any bytes as a RoCEv2 packet from the IP header on, behind an Ethernet header, and from the BTH on. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/frame.h"
#include "wire/roce.h"

#define UDP_BYTES 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void as_bth(const uint8_t *data, size_t size)
{
	struct wire_packet p, again;
	uint8_t headers[WIRE_HEADERS_MAX + 3] = {0};
	int n;

	memset(&p, 0, sizeof(p));
	memset(&again, 0, sizeof(again));
	n = wire_bth_decode(data, size, &p);
	if (n < 0)
		return;
	if (p.payload != data + n ||
	    (size_t)n + p.payload_bytes + p.bth.pad_bytes != size)
		abort();
	p.payload_bytes = 0; /* headers only */
	if (wire_bth_encode(&p, headers) != n ||
	    wire_bth_decode(headers, (size_t)n, &again) != n)
		abort();
	p.payload = again.payload = NULL;
	if (memcmp(&p, &again, sizeof(p)))
		abort();
}

/* What a frame says comes back from the frame that says the same. */
static void as_frame(const uint8_t *data, size_t size)
{
	static uint8_t frame[WIRE_ROCE_FRAME_MAX], again[WIRE_ROCE_FRAME_MAX];
	struct wire_roce roce, twin;
	size_t n;

	if (!size || size > WIRE_PACKET_MAX)
		return;
	memset(frame, 2, 12);
	put_be16(frame + 12, data[0] >> 4 == 4 ? 0x0800 : 0x86dd);
	memcpy(frame + WIRE_FRAME_MIN, data, size);
	if (wire_roce_decode(frame, WIRE_FRAME_MIN + size, &roce))
		return;
	if (roce.bth + roce.bytes + WIRE_ICRC_BYTES > frame + WIRE_FRAME_MIN + size)
		abort();
	n = wire_roce_encode(&roce.headers, roce.bth, roce.bytes, again);
	if (wire_roce_decode(again, n, &twin) || twin.bytes != roce.bytes || memcmp(twin.bth, roce.bth, roce.bytes) ||
	    memcmp(&twin.headers.grh.sgid, &roce.headers.grh.sgid, 2 * sizeof(union wire_gid)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t icrc;
	size_t bth;

	as_frame(data, size);
	as_bth(data, size);
	if (wire_roce_icrc(data, size, &icrc) < 0)
		return 0;
	bth = (data[0] >> 4 == 4 ? 20 : 40) + UDP_BYTES;
	as_bth(data + bth, size - bth);
	if (size - bth >= WIRE_BTH_BYTES + WIRE_ICRC_BYTES)
		as_bth(data + bth, size - bth - WIRE_ICRC_BYTES);
	return 0;
}
