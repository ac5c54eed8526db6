/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Blocks of a pcapng file: see pcapng.h. A block is its type, its length, a
 * body, options (each padded to four bytes), and its length again. */
#include <string.h>

#include "base/bytes.h"
#include "wire/pcapng.h"

enum block_type {
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_STATISTICS = 5,
	BLOCK_PACKET = 6,
};

enum option_code {
	OPT_END = 0,
	OPT_COMMENT = 1,
	OPT_SECTION_APPLICATION = 4,
	OPT_IF_NAME = 2,
	OPT_IF_DESCRIPTION = 3,
	OPT_IF_TIME_RESOLUTION = 9,
	OPT_PACKET_FLAGS = 2,
	OPT_PACKET_DROPPED = 4,
	OPT_STATISTICS_RECEIVED = 4,
};

#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define NANOSECONDS	 9 /* digits after the point */
#define FLAG_INBOUND	 1
#define FLAG_OUTBOUND	 2

static uint8_t *put16(uint8_t *p, uint16_t v)
{
	v = htole16(v);
	return (uint8_t *)memcpy(p, &v, sizeof(v)) + sizeof(v);
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	return (uint8_t *)memcpy(p, &v, sizeof(v)) + sizeof(v);
}

static uint8_t *put64(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	return (uint8_t *)memcpy(p, &v, sizeof(v)) + sizeof(v);
}

/* a time is written as two halves, the higher one first */
static uint8_t *put_time(uint8_t *p, uint64_t time_ns)
{
	return put32(put32(p, (uint32_t)(time_ns >> 32)), (uint32_t)time_ns);
}

static uint8_t *put_option(uint8_t *p, enum option_code code, const void *value,
			   size_t bytes)
{
	p = put16(put16(p, (uint16_t)code), (uint16_t)bytes);
	memcpy(p, value, bytes);
	memset(p + bytes, 0, ALIGN_UP(bytes, (size_t)4) - bytes);
	return p + ALIGN_UP(bytes, (size_t)4);
}

static uint8_t *put_text(uint8_t *p, enum option_code code, const char *text)
{
	return text ? put_option(p, code, text, strnlen(text, WIRE_PCAPNG_TEXT_MAX)) : p;
}

static uint8_t *put_number(uint8_t *p, enum option_code code, uint64_t n)
{
	n = htole64(n);
	return put_option(p, code, &n, sizeof(n));
}

/* write the end of the options and both lengths. Return: length of the block */
static int finish(uint8_t *block, uint8_t *end)
{
	uint32_t bytes;

	end = put32(end, OPT_END);
	bytes = (uint32_t)(end + 4 - block);
	put32(block + 4, bytes);
	put32(end, bytes);
	return (int)bytes;
}

int wire_pcapng_section_encode(const char *application, void *buf)
{
	uint8_t *p = put32(buf, BLOCK_SECTION);

	p = put32(p + 4, BYTE_ORDER_MAGIC);
	p = put16(put16(p, 1), 0); /* version */
	p = put64(p, UINT64_MAX);  /* unknown length of the section */
	return finish(buf, put_text(p, OPT_SECTION_APPLICATION, application));
}

int wire_pcapng_interface_encode(uint16_t linktype, uint32_t snap_bytes, const char *name,
				 const char *description, void *buf)
{
	const uint8_t resolution = NANOSECONDS;
	uint8_t *p = put32(buf, BLOCK_INTERFACE);

	p = put16(put16(p + 4, linktype), 0);
	p = put32(p, snap_bytes);
	p = put_text(p, OPT_IF_NAME, name);
	p = put_text(p, OPT_IF_DESCRIPTION, description);
	return finish(buf, put_option(p, OPT_IF_TIME_RESOLUTION, &resolution, 1));
}

int wire_pcapng_packet_head(const struct wire_pcapng_packet *packet, void *buf)
{
	uint8_t tail[WIRE_PCAPNG_PACKET_TAIL], *p = put32(buf, BLOCK_PACKET);

	p = put32(p, WIRE_PCAPNG_PACKET_HEAD + packet->captured_bytes +
			     (uint32_t)wire_pcapng_packet_tail(packet, tail));
	p = put_time(put32(p, packet->interface), packet->time_ns);
	put32(put32(p, packet->captured_bytes), packet->bytes);
	return WIRE_PCAPNG_PACKET_HEAD;
}

int wire_pcapng_packet_tail(const struct wire_pcapng_packet *packet, void *buf)
{
	uint32_t pad = -packet->captured_bytes & 3;
	uint32_t flags = htole32(packet->sent ? FLAG_OUTBOUND : FLAG_INBOUND);
	uint8_t *start = buf, *p = start;

	memset(p, 0, pad);
	p = put_option(p + pad, OPT_PACKET_FLAGS, &flags, sizeof(flags));
	if (packet->dropped)
		p = put_number(p, OPT_PACKET_DROPPED, packet->dropped);
	p = put32(p, OPT_END);
	p = put32(p, (uint32_t)(WIRE_PCAPNG_PACKET_HEAD + packet->captured_bytes +
				(p - start) + 4));
	return (int)(p - start);
}

int wire_pcapng_statistics_encode(uint32_t interface, uint64_t time_ns, uint64_t received,
				  const char *comment, void *buf)
{
	uint8_t *p = put32(buf, BLOCK_STATISTICS);

	p = put_time(put32(p + 4, interface), time_ns);
	p = put_text(p, OPT_COMMENT, comment);
	return finish(buf, put_number(p, OPT_STATISTICS_RECEIVED, received));
}
