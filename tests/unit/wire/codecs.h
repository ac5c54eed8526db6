/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Every codec of the layer in one list, and pseudo-random bits to feed them. */
#ifndef SOFTIB_TEST_WIRE_CODECS_H
#define SOFTIB_TEST_WIRE_CODECS_H

#include "wire/cm.h"
#include "wire/mad.h"
#include "wire/rmpp.h"
#include "wire/sdp.h"
#include "wire/smp.h"
#include "wire/srp.h"

#define CODECS_MAX	256
#define CODEC_BYTES_MAX 1024 /* wire form or struct of any codec */

/** codecs_all() - fill @list; each codec once. Return: how many */
static inline unsigned int codecs_all(const struct wire_codec *list[CODECS_MAX])
{
	const struct wire_codec *loose[] = {
		&wire_rmpp_codec,	   &wire_cm_path_codec,
		&wire_cm_lap_path_codec,   &wire_srp_desc_codec,
		&wire_sdp_bsdh_codec,	   &wire_sdp_hello_codec,
		&wire_sdp_hello_ack_codec, &wire_sdp_count_codec,
		&wire_sdp_mode_change_codec, &wire_sdp_susp_comm_codec,
		&wire_sdp_src_avail_codec, &wire_sdp_sink_avail_codec};
	unsigned int n = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(loose); i++)
		list[n++] = loose[i];
	for (unsigned int opcode = 0; opcode < 256; opcode++)
		if (wire_srp_codec((uint8_t)opcode))
			list[n++] = wire_srp_codec((uint8_t)opcode);
	for (uint16_t trap = 0; trap < 300; trap++)
		if (wire_trap_codec(trap))
			list[n++] = wire_trap_codec(trap);
	for (unsigned int c = 0; c < wire_nr_classes; c++) {
		list[n++] = wire_classes[c].header;
		for (const struct wire_attr *a = wire_classes[c].attrs; a && a->codec;
		     a++)
			list[n++] = a->codec;
	}
	return n;
}

/** codecs_random() - fill @buf; the same @seed gives the same bytes (xorshift) */
static inline void codecs_random(uint64_t seed, void *buf, size_t len)
{
	uint8_t *b = buf;
	uint64_t x = seed * 0x9e3779b97f4a7c15ull + 1;

	for (size_t i = 0; i < len; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		b[i] = (uint8_t)(x >> 32);
	}
}

#endif
