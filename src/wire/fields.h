/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The codec of all management structures. One table per structure gives the
 * position of each field on the wire and in the C struct; one decoder and one
 * encoder use these tables. Above this layer all scalars are in host order.
 *
 * A table lists the fields in wire order, reserved ones included, so that it
 * tiles the structure: the tests check that no bit is missing or named twice,
 * and the position of a field is its component number in SA's ComponentMask
 * (15.2.1.1).
 */
#ifndef SOFTIB_WIRE_FIELDS_H
#define SOFTIB_WIRE_FIELDS_H

#include "base/types.h"

struct wire_codec;

/** enum wire_field_kind - kind of an entry of a table */
enum wire_field_kind {
	WIRE_FIELD_VALUE,    /* a scalar, or count of them */
	WIRE_FIELD_RESERVED, /* sent as zero, ignored on receipt */
	WIRE_FIELD_NESTED,   /* another structure with its own table */
	WIRE_FIELD_OPAQUE,   /* bytes that are neither decoded nor encoded */
};

/** enum wire_form - how a field stands on the wire. The tables' macros derive it from the other members. */
enum wire_form {
	WIRE_FORM_BITS,	 /* any */
	WIRE_FORM_8,	 /* one number of 8 bits in whole bytes, and as many in the C struct */
	WIRE_FORM_16,
	WIRE_FORM_32,
	WIRE_FORM_64,
	WIRE_FORM_BYTES, /* an array of bytes on both sides: a GID, a string, an LFT block */
};

/** struct wire_field - one field, or an array of equal ones */
struct wire_field {
	const char *name;    /* the member's, NULL for reserved */
	uint8_t kind;	     /* enum wire_field_kind */
	uint8_t form;	     /* enum wire_form */
	uint8_t size_bytes;  /* of one element in the C struct: 1, 2, 4, 8 */
	uint8_t components;  /* number of bits in ComponentMask: 1; for arrays 1 or count */
	uint16_t bit;	     /* of the first element from the structure's start */
	uint16_t width;	     /* bits of one element, 1..64 */
	uint16_t count;	     /* elements */
	uint16_t stride;     /* bits from one element to the next */
	uint16_t offset;     /* of the first element in the C struct */
	uint16_t mem_stride; /* bytes from one element to the next */
	const struct wire_codec *nested;
};

/** struct wire_codec - a structure's name, sizes and fields */
struct wire_codec {
	const char *name;      /* as the specification spells it */
	uint16_t bytes;	       /* on the wire */
	uint16_t struct_bytes; /* in memory */
	uint16_t nr_fields;
	const struct wire_field *fields;
};

/**
 * wire_fields_decode() - bytes to struct
 * @buf: @len bytes, at least codec->bytes; further bytes are ignored
 * @obj: the codec's struct; zeroed, then filled; untouched on failure
 * Return: codec->bytes; -EINVAL @len is too short.
 */
int wire_fields_decode(const struct wire_codec *codec, const void *buf, size_t len,
		       void *obj);

/**
 * wire_fields_encode() - struct to bytes
 * @buf: room for codec->bytes; reserved fields are set to zero, opaque ones are
 *	 not changed
 * Return: codec->bytes; -EINVAL a value does not fit its field; the contents of
 * @buf are then undefined.
 */
int wire_fields_encode(const struct wire_codec *codec, const void *obj, void *buf);

/**
 * wire_fields_match() - do two structs agree in the selected components?
 * @mask: bit n selects the n-th component of the table (15.2.1.1)
 * Reserved components always match.
 */
bool wire_fields_match(const struct wire_codec *codec, uint64_t mask, const void *a,
		       const void *b);

/**
 * wire_fields_visit() - call @fn for every scalar of a struct, nested ones too
 * @fn: gets the field, the element's index and its value; for printing
 */
void wire_fields_visit(const struct wire_codec *codec, const void *obj,
		       void (*fn)(void *ctx, const struct wire_field *field,
				  unsigned int index, uint64_t value),
		       void *ctx);

/*
 * WIRE_CODEC() - declare the codec of struct wire_<thing>:
 *   int wire_<thing>_decode(const void *buf, size_t len, struct wire_<thing> *)
 *   int wire_<thing>_encode(const struct wire_<thing> *, void *buf)
 * with the results of wire_fields_decode() and wire_fields_encode().
 * WIRE_CODEC_OF() - the same for a second wire form of another thing's struct.
 */
#define WIRE_CODEC(thing) WIRE_CODEC_OF(thing, struct wire_##thing)
#define WIRE_CODEC_OF(thing, type)                                                       \
	extern const struct wire_codec wire_##thing##_codec;                             \
	static inline int wire_##thing##_decode(const void *buf, size_t len, type *obj)  \
	{                                                                                \
		return wire_fields_decode(&wire_##thing##_codec, buf, len, obj);         \
	}                                                                                \
	static inline int wire_##thing##_encode(const type *obj, void *buf)              \
	{                                                                                \
		return wire_fields_encode(&wire_##thing##_codec, obj, buf);              \
	}

#endif
