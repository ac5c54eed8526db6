/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Macros for the tables of this layer: one line per field, in wire order. S must
 * be defined as the C struct of the table.
 *
 *   F(member, bit, width)		a scalar
 *   A(member, bit, width, count)	an array of scalars, packed on the wire
 *   B(member, bit, bytes)		bytes: a GID, a string, a block
 *   E(array, member, bit, width, stride)  a member of each struct of an array
 *   N(member, bit, thing)		another structure, wire_<thing>_codec
 *   R(bit, width)			reserved
 *   RE(bit, width, count, stride)	reserved bits in each entry of an array
 *   GAP(bit, bytes)			not in this structure: the attribute after a header
 *
 * F2: an F with two bits in ComponentMask; F0, R0: without one; AC: an array
 * whose elements have one bit each.
 */
#ifndef SOFTIB_WIRE_FIELDS_TABLE_H
#define SOFTIB_WIRE_FIELDS_TABLE_H

#include "wire/fields.h"

#define MEMBER_BYTES(m) sizeof(((S *)0)->m)

/* A reserved field (@sz 0) is in no struct. */
#define IS_WHOLE_(sz, b, w, n) ((n) == 1 && (b) % 8 == 0 && (!(sz) || (sz) * 8 == (w)))
#define FORM_(sz, b, w, n, st, ms)                                                       \
	(IS_WHOLE_(sz, b, w, n) && (w) == 8    ? WIRE_FORM_8                             \
	 : IS_WHOLE_(sz, b, w, n) && (w) == 16 ? WIRE_FORM_16                            \
	 : IS_WHOLE_(sz, b, w, n) && (w) == 32 ? WIRE_FORM_32                            \
	 : IS_WHOLE_(sz, b, w, n) && (w) == 64 ? WIRE_FORM_64                            \
	 : (n) > 1 && (b) % 8 == 0 && (w) == 8 && (st) == 8 && (sz) == 1 && (ms) == 1    \
		 ? WIRE_FORM_BYTES                                                       \
		 : WIRE_FORM_BITS)
#define FIELD_(text, k, sz, comps, b, w, n, st, off, ms, nest)                           \
	{                                                                                \
		.name = text, .kind = k, .form = FORM_(sz, b, w, n, st, ms),             \
		.size_bytes = sz, .components = comps,                                   \
		.bit = b, .width = w, .count = n, .stride = st, .offset = off,           \
		.mem_stride = ms, .nested = nest                                         \
	}
#define SCALAR_(m, b, w, comps)                                                          \
	FIELD_(#m, WIRE_FIELD_VALUE, MEMBER_BYTES(m), comps, b, w, 1, w, offsetof(S, m), \
	       MEMBER_BYTES(m), NULL)
#define ARRAY_(m, b, w, n, comps)                                                        \
	FIELD_(#m, WIRE_FIELD_VALUE, MEMBER_BYTES(m[0]), comps, b, w, n, w,              \
	       offsetof(S, m), MEMBER_BYTES(m[0]), NULL)
#define F(m, b, w) SCALAR_(m, b, w, 1)
#define F2(m, b, w) SCALAR_(m, b, w, 2)
#define F0(m, b, w) SCALAR_(m, b, w, 0)
#define A(m, b, w, n) ARRAY_(m, b, w, n, 1)
#define AC(m, b, w, n) ARRAY_(m, b, w, n, n)
#define B(m, b, bytes)                                                                   \
	FIELD_(#m, WIRE_FIELD_VALUE, 1, 1, b, 8, bytes, 8, offsetof(S, m), 1, NULL)
#define E(arr, m, b, w, st)                                                              \
	FIELD_(#m, WIRE_FIELD_VALUE, MEMBER_BYTES(arr[0].m), 1, b, w,                    \
	       MEMBER_BYTES(arr) / MEMBER_BYTES(arr[0]), st, offsetof(S, arr[0].m),      \
	       MEMBER_BYTES(arr[0]), NULL)
#define N(m, b, thing)                                                                   \
	FIELD_(#m, WIRE_FIELD_NESTED, 0, 0, b, 0, 0, 0, offsetof(S, m), 0,               \
	       &wire_##thing##_codec)
#define R(b, w) RE(b, w, 1, 0)
#define R0(b, w) FIELD_(NULL, WIRE_FIELD_RESERVED, 0, 0, b, w, 1, 0, 0, 0, NULL)
#define RE(b, w, n, st) FIELD_(NULL, WIRE_FIELD_RESERVED, 0, 1, b, w, n, st, 0, 0, NULL)
#define GAP(b, bytes) FIELD_(NULL, WIRE_FIELD_OPAQUE, 0, 0, b, 8, bytes, 8, 0, 0, NULL)

/** CODEC() - define wire_<thing>_codec from <thing>_fields and the current S */
#define CODEC(thing, text, wire_bytes)                                                   \
	const struct wire_codec wire_##thing##_codec = {                                 \
		.name = text,                                                            \
		.bytes = wire_bytes,                                                     \
		.struct_bytes = sizeof(S),                                               \
		.nr_fields = ARRAY_SIZE(thing##_fields),                                 \
		.fields = thing##_fields,                                                \
	}

#endif
