/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Any bytes as any structure that has a codec: the first byte chooses from
 * the list of all of them. Decoded, encoded, decoded: the same again; where
 * nothing is reserved the bytes are the same, too.
 */
#include <stdlib.h>
#include <string.h>

#include "../unit/wire/codecs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void count(void *ctx, const struct wire_field *field, unsigned int index, uint64_t value)
{
	check(field->width == 64 || value < 1ull << field->width);
	++*(unsigned int *)ctx;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct wire_codec *list[CODECS_MAX], *codec;
	uint64_t first[CODEC_BYTES_MAX / 8], second[CODEC_BYTES_MAX / 8];
	uint8_t *bytes;
	unsigned int fields = 0;

	if (!size)
		return 0;
	codec = list[data[0] % codecs_all(list)];
	if (wire_fields_decode(codec, data + 1, size - 1, first) < 0) {
		check(size - 1 < codec->bytes);
		return 0;
	}
	bytes = calloc(1, codec->bytes); /* so that one byte too far is noticed */
	check(bytes && wire_fields_encode(codec, first, bytes) == codec->bytes);
	check(wire_fields_decode(codec, bytes, codec->bytes, second) == codec->bytes);
	check(!memcmp(first, second, codec->struct_bytes));
	check(wire_fields_match(codec, ~0ull, first, second));
	wire_fields_visit(codec, first, count, &fields);
	check(fields > 0);
	free(bytes);
	return 0;
}
