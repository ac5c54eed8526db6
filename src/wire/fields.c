/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Decodes and encodes structures by the tables that fields.h describes. */
#include "wire/fields.h"
#include "base/bytes.h"

#include <errno.h>

/* --- bits of the wire --- */

/* Is it a number of whole bytes, as most are? Then it is read and written at once. */
static bool is_whole(unsigned int bit, unsigned int width)
{
	return bit % 8 == 0 && (width == 8 || width == 16 || width == 32 || width == 64);
}

static uint64_t whole_get(const uint8_t *p, unsigned int width)
{
	switch (width) {
	case 8:
		return *p;
	case 16:
		return get_be16(p);
	case 32:
		return get_be32(p);
	default:
		return get_be64(p);
	}
}

static void whole_put(uint8_t *p, unsigned int width, uint64_t v)
{
	switch (width) {
	case 8:
		*p = (uint8_t)v;
		break;
	case 16:
		put_be16(p, (uint16_t)v);
		break;
	case 32:
		put_be32(p, (uint32_t)v);
		break;
	default:
		put_be64(p, v);
	}
}

/* Read @width (1..64) bits from bit @bit on; bit 0 is the first byte's highest */
static uint64_t bits_get(const uint8_t *buf, unsigned int bit, unsigned int width)
{
	uint64_t v = 0;

	if (is_whole(bit, width))
		return whole_get(buf + bit / 8, width);
	while (width) {
		unsigned int room = 8 - bit % 8; /* bits left in this byte */
		unsigned int n = MIN(room, width);
		uint8_t part =
		    (uint8_t)(buf[bit / 8] >> (room - n)) & (uint8_t)(0xff >> (8 - n));

		v = v << n | part;
		bit += n;
		width -= n;
	}
	return v;
}

static void bits_put(uint8_t *buf, unsigned int bit, unsigned int width, uint64_t v)
{
	if (is_whole(bit, width)) {
		whole_put(buf + bit / 8, width, v);
		return;
	}
	while (width) {
		unsigned int room = 8 - bit % 8;
		unsigned int n = MIN(room, width);
		uint8_t mask = (uint8_t)((0xff >> (8 - n)) << (room - n));
		uint8_t part = (uint8_t)((v >> (width - n)) << (room - n));

		buf[bit / 8] = (uint8_t)((buf[bit / 8] & ~mask) | (part & mask));
		bit += n;
		width -= n;
	}
}

/* --- members of the C struct --- */

static uint64_t member_get(const struct wire_field *f, const void *obj, unsigned int i)
{
	const uint8_t *p = (const uint8_t *)obj + f->offset + i * f->mem_stride;
	uint16_t v16;
	uint32_t v32;
	uint64_t v64;

	switch (f->size_bytes) {
	case 1:
		return *p;
	case 2:
		memcpy(&v16, p, 2);
		return v16;
	case 4:
		memcpy(&v32, p, 4);
		return v32;
	default:
		memcpy(&v64, p, 8);
		return v64;
	}
}

static void member_put(const struct wire_field *f, void *obj, unsigned int i, uint64_t v)
{
	uint8_t *p = (uint8_t *)obj + f->offset + i * f->mem_stride;
	uint16_t v16 = (uint16_t)v;
	uint32_t v32 = (uint32_t)v;

	switch (f->size_bytes) {
	case 1:
		*p = (uint8_t)v;
		break;
	case 2:
		memcpy(p, &v16, 2);
		break;
	case 4:
		memcpy(p, &v32, 4);
		break;
	default:
		memcpy(p, &v, 8);
	}
}

/* Arrays of bytes on both sides are copied at once (GIDs, strings, LFT blocks) */
static bool is_byte_array(const struct wire_field *f)
{
	return f->count > 1 && f->width == 8 && f->stride == 8 && f->bit % 8 == 0 &&
	       f->size_bytes == 1 && f->mem_stride == 1;
}

static void decode_value(const struct wire_field *f, const uint8_t *buf, void *obj)
{
	if (is_byte_array(f)) {
		memcpy((uint8_t *)obj + f->offset, buf + f->bit / 8, f->count);
		return;
	}
	for (unsigned int i = 0; i < f->count; i++)
		member_put(f, obj, i, bits_get(buf, f->bit + i * f->stride, f->width));
}

static void decode_table(const struct wire_codec *codec, const uint8_t *buf, void *obj)
{
	for (unsigned int n = 0; n < codec->nr_fields; n++) {
		const struct wire_field *f = &codec->fields[n];

		if (f->kind == WIRE_FIELD_VALUE)
			decode_value(f, buf, obj);
		else if (f->kind == WIRE_FIELD_NESTED)
			decode_table(f->nested, buf + f->bit / 8,
				     (uint8_t *)obj + f->offset);
	}
}

int wire_fields_decode(const struct wire_codec *codec, const void *buf, size_t len,
		       void *obj)
{
	if (len < codec->bytes)
		return -EINVAL;
	memset(obj, 0, codec->struct_bytes);
	decode_table(codec, buf, obj);
	return codec->bytes;
}

static int encode_value(const struct wire_field *f, const void *obj, uint8_t *buf)
{
	if (is_byte_array(f)) {
		memcpy(buf + f->bit / 8, (const uint8_t *)obj + f->offset, f->count);
		return 0;
	}
	for (unsigned int i = 0; i < f->count; i++) {
		uint64_t v = member_get(f, obj, i);

		if (f->width < 64 && v >> f->width)
			return -EINVAL;
		bits_put(buf, f->bit + i * f->stride, f->width, v);
	}
	return 0;
}

static void encode_reserved(const struct wire_field *f, uint8_t *buf)
{
	if (f->count == 1 && f->bit % 8 == 0 && f->width % 8 == 0) {
		memset(buf + f->bit / 8, 0, f->width / 8);
		return;
	}
	for (unsigned int i = 0; i < f->count; i++)
		for (unsigned int at = 0; at < f->width; at += 8)
			bits_put(buf, f->bit + i * f->stride + at, MIN(8u, f->width - at),
				 0);
}

int wire_fields_encode(const struct wire_codec *codec, const void *obj, void *buf)
{
	for (unsigned int n = 0; n < codec->nr_fields; n++) {
		const struct wire_field *f = &codec->fields[n];
		int rc = 0;

		if (f->kind == WIRE_FIELD_VALUE)
			rc = encode_value(f, obj, buf);
		else if (f->kind == WIRE_FIELD_RESERVED)
			encode_reserved(f, buf);
		else if (f->kind == WIRE_FIELD_NESTED)
			rc = wire_fields_encode(f->nested,
						(const uint8_t *)obj + f->offset,
						(uint8_t *)buf + f->bit / 8);
		if (rc < 0)
			return rc;
	}
	return codec->bytes;
}

/* Do elements [@from, @from + @count) of a field agree? */
static bool elements_match(const struct wire_field *f, unsigned int from,
			   unsigned int count, const void *a, const void *b)
{
	for (unsigned int i = from; i < from + count; i++)
		if (member_get(f, a, i) != member_get(f, b, i))
			return false;
	return true;
}

/* One field; @mask has bit 0 for its first component */
static bool field_matches(const struct wire_field *f, uint64_t mask, const void *a,
			  const void *b)
{
	if (f->kind != WIRE_FIELD_VALUE)
		return true;
	if (f->components != f->count) /* one component, or two for one scalar */
		return !(mask & ((1ull << f->components) - 1)) ||
		       elements_match(f, 0, f->count, a, b);
	for (unsigned int i = 0; i < f->count; i++)
		if (mask >> i & 1 && !elements_match(f, i, 1, a, b))
			return false;
	return true;
}

/* Continue at component *@at, and advance it by the number of the table's components */
static bool table_matches(const struct wire_codec *codec, uint64_t mask, unsigned int *at,
			  const uint8_t *a, const uint8_t *b)
{
	for (unsigned int n = 0; n < codec->nr_fields && *at < 64; n++) {
		const struct wire_field *f = &codec->fields[n];

		if (f->kind == WIRE_FIELD_NESTED) {
			if (!table_matches(f->nested, mask, at, a + f->offset,
					   b + f->offset))
				return false;
			continue;
		}
		if (f->components && !field_matches(f, mask >> *at, a, b))
			return false;
		*at += f->components;
	}
	return true;
}

bool wire_fields_match(const struct wire_codec *codec, uint64_t mask, const void *a,
		       const void *b)
{
	unsigned int at = 0;

	return table_matches(codec, mask, &at, a, b);
}

void wire_fields_visit(const struct wire_codec *codec, const void *obj,
		       void (*fn)(void *ctx, const struct wire_field *field,
				  unsigned int index, uint64_t value),
		       void *ctx)
{
	for (unsigned int n = 0; n < codec->nr_fields; n++) {
		const struct wire_field *f = &codec->fields[n];

		if (f->kind == WIRE_FIELD_NESTED)
			wire_fields_visit(f->nested, (const uint8_t *)obj + f->offset, fn,
					  ctx);
		if (f->kind != WIRE_FIELD_VALUE)
			continue;
		for (unsigned int i = 0; i < f->count; i++)
			fn(ctx, f, i, member_get(f, obj, i));
	}
}
