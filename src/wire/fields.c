/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Decodes and encodes structures by the tables that fields.h describes. */
#include "wire/fields.h"
#include "base/bytes.h"

#include <errno.h>

/* --- bits of the wire --- */

/* Read @width (1..64) bits from bit @bit on; bit 0 is the first byte's highest */
static uint64_t bits_get(const uint8_t *buf, unsigned int bit, unsigned int width)
{
	const uint8_t *p = buf + bit / 8;
	unsigned int end = bit % 8 + width; /* bits from the highest one of *p */
	uint64_t v = *p & 0xffu >> bit % 8;

	if (end <= 8)
		return v >> (8 - end);
	for (end -= 8, p++; end >= 8; end -= 8, p++)
		v = v << 8 | *p;
	return end ? v << end | *p >> (8 - end) : v;
}

/* Write those bits of a byte that @mask has */
static void byte_put(uint8_t *p, unsigned int mask, uint64_t bits)
{
	*p = (uint8_t)((*p & ~mask) | (bits & mask));
}

static void bits_put(uint8_t *buf, unsigned int bit, unsigned int width, uint64_t v)
{
	uint8_t *p = buf + bit / 8;
	unsigned int mask = 0xff >> bit % 8, room = 8 - bit % 8;

	if (width <= room) {
		byte_put(p, mask & 0xffu << (room - width), v << (room - width));
		return;
	}
	width -= room;
	byte_put(p++, mask, v >> width);
	for (; width >= 8; p++) {
		width -= 8;
		*p = (uint8_t)(v >> width);
	}
	if (width)
		byte_put(p, 0xffu << (8 - width), v << (8 - width));
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

/* --- fields --- */

static void decode_value(const struct wire_field *f, const uint8_t *buf, uint8_t *obj)
{
	const uint8_t *from = buf + f->bit / 8;
	uint8_t *to = obj + f->offset;

	switch (f->form) {
	case WIRE_FORM_8:
		*to = *from;
		break;
	case WIRE_FORM_16:
		memcpy(to, &(uint16_t){get_be16(from)}, 2);
		break;
	case WIRE_FORM_32:
		memcpy(to, &(uint32_t){get_be32(from)}, 4);
		break;
	case WIRE_FORM_64:
		memcpy(to, &(uint64_t){get_be64(from)}, 8);
		break;
	case WIRE_FORM_BYTES:
		memcpy(to, from, f->count);
		break;
	default:
		for (unsigned int i = 0; i < f->count; i++)
			member_put(f, obj, i, bits_get(buf, f->bit + i * f->stride, f->width));
	}
}

static void decode_table(const struct wire_codec *codec, const uint8_t *buf, uint8_t *obj)
{
	for (unsigned int n = 0; n < codec->nr_fields; n++) {
		const struct wire_field *f = &codec->fields[n];

		if (f->kind == WIRE_FIELD_VALUE)
			decode_value(f, buf, obj);
		else if (f->kind == WIRE_FIELD_NESTED)
			decode_table(f->nested, buf + f->bit / 8, obj + f->offset);
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

/* Return: -EINVAL a value does not fit its field */
static int encode_bits(const struct wire_field *f, const uint8_t *obj, uint8_t *buf)
{
	for (unsigned int i = 0; i < f->count; i++) {
		uint64_t v = member_get(f, obj, i);

		if (f->width < 64 && v >> f->width)
			return -EINVAL;
		bits_put(buf, f->bit + i * f->stride, f->width, v);
	}
	return 0;
}

static int encode_value(const struct wire_field *f, const uint8_t *obj, uint8_t *buf)
{
	const uint8_t *from = obj + f->offset;
	uint8_t *to = buf + f->bit / 8;

	switch (f->form) {
	case WIRE_FORM_8:
		*to = *from;
		break;
	case WIRE_FORM_16:
		put_be16(to, (uint16_t)member_get(f, obj, 0));
		break;
	case WIRE_FORM_32:
		put_be32(to, (uint32_t)member_get(f, obj, 0));
		break;
	case WIRE_FORM_64:
		put_be64(to, member_get(f, obj, 0));
		break;
	case WIRE_FORM_BYTES:
		memcpy(to, from, f->count);
		break;
	default:
		return encode_bits(f, obj, buf);
	}
	return 0;
}

static void encode_reserved(const struct wire_field *f, uint8_t *buf)
{
	uint8_t *to = buf + f->bit / 8;

	switch (f->form) {
	case WIRE_FORM_8:
		*to = 0;
		return;
	case WIRE_FORM_16:
		put_be16(to, 0);
		return;
	case WIRE_FORM_32:
		put_be32(to, 0);
		return;
	}
	if (f->count == 1 && f->bit % 8 == 0 && f->width % 8 == 0) {
		memset(to, 0, f->width / 8);
		return;
	}
	for (unsigned int i = 0; i < f->count; i++)
		for (unsigned int at = 0; at < f->width; at += 8)
			bits_put(buf, f->bit + i * f->stride + at, MIN(8u, f->width - at), 0);
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
