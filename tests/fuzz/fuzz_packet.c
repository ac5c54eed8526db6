/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Any bytes as a packet from the LRH on: refused, or encoded again to headers
 * that decode to the same.
 */
#include <stdlib.h>
#include <string.h>

#include "wire/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Decode what was encoded: it must be what was decoded first */
static void encode_and_decode(struct wire_packet *p, const uint8_t *data, size_t size,
			      int headers)
{
	struct wire_packet again;
	uint8_t *buf = calloc(1, WIRE_HEADERS_MAX + size);

	if (!buf)
		abort();
	memset(&again, 0, sizeof(again));
	if (wire_packet_encode(p, buf) != headers)
		abort();
	memcpy(buf + headers, data + headers, size - (size_t)headers);
	if (wire_packet_decode(buf, size, &again) != headers)
		abort();
	if (p->payload != data + headers || p->payload_bytes > size - (size_t)headers)
		abort();
	again.payload = p->payload = NULL;
	if (memcmp(&again.bth, &p->bth, sizeof(p->bth)) || again.imm != p->imm ||
	    again.reth.va != p->reth.va || again.atomic.compare != p->atomic.compare ||
	    again.payload_bytes != p->payload_bytes || again.aeth.msn != p->aeth.msn)
		abort();
	free(buf);
}

static void as_packet(const uint8_t *data, size_t size)
{
	struct wire_packet p;
	int n;

	memset(&p, 0, sizeof(p));
	n = wire_packet_decode(data, size, &p);
	/* the encoder pads to the next word; a packet may carry more, never less */
	if (n > 0 && p.bth.pad_bytes == (-p.payload_bytes & 3))
		encode_and_decode(&p, data, size, n);
	wire_icrc(data, size);
	wire_vcrc(data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	as_packet(data, size);
	if (size >= WIRE_ICRC_BYTES) /* the vectors end with one */
		as_packet(data, size - WIRE_ICRC_BYTES);
	return 0;
}
