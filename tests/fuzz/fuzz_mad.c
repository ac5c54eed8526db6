/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Any bytes as a MAD of the class MGMT_CLASS (set by meson.build): header and
 * attribute decode, encode, and decode to the same again.
 */
#include <stdlib.h>
#include <string.h>

#include "wire/mad.h"
#include "wire/smp.h"

#define STRUCT_MAX 1024

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void survive(const struct wire_codec *codec, const uint8_t *data, size_t size)
{
	uint64_t first[STRUCT_MAX / 8], second[STRUCT_MAX / 8];
	uint8_t bytes[STRUCT_MAX] = {0};
	uint8_t *exact;

	if (wire_fields_decode(codec, data, size, first) != codec->bytes) {
		if (size >= codec->bytes)
			abort();
		return;
	}
	exact = malloc(codec->bytes); /* so that one byte too far is noticed */
	if (!exact)
		abort();
	if (wire_fields_encode(codec, first, bytes) != codec->bytes)
		abort();
	memcpy(exact, bytes, codec->bytes);
	wire_fields_decode(codec, exact, codec->bytes, second);
	if (memcmp(first, second, codec->struct_bytes) ||
	    !wire_fields_match(codec, ~0ull, first, second))
		abort();
	free(exact);
}

static void notice_details(const uint8_t *data, size_t size)
{
	struct wire_notice notice;
	const struct wire_codec *details;

	if (wire_smp_notice_decode(data, size, &notice) < 0)
		return;
	details = wire_trap_codec(notice.trap_number);
	if (details)
		survive(details, notice.details, sizeof(notice.details));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct wire_mgmt_class *cls = wire_class_find(MGMT_CLASS);
	const struct wire_attr *attr;
	struct wire_mad mad;

	survive(cls->header, data, size);
	if (wire_mad_decode(data, size, &mad) < 0 || size < cls->data_offset)
		return 0;
	attr = wire_attr_find(cls, mad.attr_id);
	if (attr)
		survive(attr->codec, data + cls->data_offset, size - cls->data_offset);
	if (mad.attr_id == WIRE_ATTR_NOTICE)
		notice_details(data + cls->data_offset, size - cls->data_offset);
	return 0;
}
