/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Properties that every table of the layer must have. They hold for a new
 * attribute as soon as it stands in its class's list: nothing to add here.
 */
#include "../test.h"

#include <errno.h>

#include "codecs.h"

#define SEEDS 50

static const struct wire_codec *codecs[CODECS_MAX];
static unsigned int nr_codecs;

static int setup(void **state)
{
	nr_codecs = codecs_all(codecs);
	return nr_codecs > 90 ? 0 : -1;
}

/* Count how often a table names each bit of the wire (or byte of the struct) */
static void count_bits(const struct wire_codec *codec, unsigned int base, uint8_t *named)
{
	for (unsigned int n = 0; n < codec->nr_fields; n++) {
		const struct wire_field *f = &codec->fields[n];

		if (f->kind == WIRE_FIELD_NESTED)
			count_bits(f->nested, base + f->bit, named);
		for (unsigned int i = 0; i < f->count; i++)
			for (unsigned int w = 0; w < f->width; w++)
				named[base + f->bit + i * f->stride + w]++;
	}
}

static void count_members(const struct wire_codec *codec, unsigned int base,
			  uint8_t *named)
{
	for (unsigned int n = 0; n < codec->nr_fields; n++) {
		const struct wire_field *f = &codec->fields[n];

		if (f->kind == WIRE_FIELD_NESTED)
			count_members(f->nested, base + f->offset, named);
		if (f->kind != WIRE_FIELD_VALUE)
			continue;
		for (unsigned int i = 0; i < f->count; i++)
			for (unsigned int k = 0; k < f->size_bytes; k++)
				named[base + f->offset + i * f->mem_stride + k]++;
	}
}

static void tables_tile_the_wire(void **state)
{
	for (unsigned int c = 0; c < nr_codecs; c++) {
		uint8_t named[CODEC_BYTES_MAX * 8] = {0};

		assert_in_range(codecs[c]->bytes, 1, CODEC_BYTES_MAX);
		count_bits(codecs[c], 0, named);
		for (unsigned int bit = 0; bit < sizeof(named); bit++)
			if (named[bit] != (bit < codecs[c]->bytes * 8u))
				fail_msg("%s: bit %u named %u times", codecs[c]->name,
					 bit, named[bit]);
	}
}

static void members_do_not_overlap(void **state)
{
	for (unsigned int c = 0; c < nr_codecs; c++) {
		uint8_t named[CODEC_BYTES_MAX * 2] = {0};

		assert_in_range(codecs[c]->struct_bytes, 1, CODEC_BYTES_MAX);
		count_members(codecs[c], 0, named);
		for (unsigned int i = 0; i < sizeof(named); i++)
			if (named[i] > (i < codecs[c]->struct_bytes))
				fail_msg("%s: byte %u of the struct named %u times",
					 codecs[c]->name, i, named[i]);
	}
}

/* A member narrower than its field would lose bits */
static void members_hold_their_fields(void **state)
{
	for (unsigned int c = 0; c < nr_codecs; c++)
		for (unsigned int n = 0; n < codecs[c]->nr_fields; n++) {
			const struct wire_field *f = &codecs[c]->fields[n];

			if (f->kind == WIRE_FIELD_VALUE && f->size_bytes * 8 < f->width)
				fail_msg("%s.%s", codecs[c]->name, f->name);
		}
}

/* bytes -> struct -> bytes: what is not reserved comes back */
static void bytes_survive(void **state)
{
	uint8_t in[CODEC_BYTES_MAX], once[CODEC_BYTES_MAX], twice[CODEC_BYTES_MAX];
	uint64_t obj[CODEC_BYTES_MAX / 8], again[CODEC_BYTES_MAX / 8];

	for (unsigned int c = 0; c < nr_codecs; c++) {
		const struct wire_codec *k = codecs[c];

		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			codecs_random(seed, in, sizeof(in));
			memset(once, 0, sizeof(once));
			memset(twice, 0, sizeof(twice));
			memset(obj, 0xee, sizeof(obj));
			assert_int_equal(wire_fields_decode(k, in, k->bytes, obj),
					 k->bytes);
			assert_int_equal(wire_fields_encode(k, obj, once), k->bytes);
			assert_int_equal(wire_fields_decode(k, once, k->bytes, again),
					 k->bytes);
			assert_memory_equal(obj, again, k->struct_bytes);
			assert_int_equal(wire_fields_encode(k, again, twice), k->bytes);
			assert_memory_equal(once, twice, k->bytes);
		}
	}
}

/* Each single wire bit either comes back alone or was reserved */
static void each_bit_is_its_own(void **state)
{
	uint8_t in[CODEC_BYTES_MAX], out[CODEC_BYTES_MAX];
	const uint8_t zero[CODEC_BYTES_MAX] = {0};
	uint64_t obj[CODEC_BYTES_MAX / 8];

	for (unsigned int c = 0; c < nr_codecs; c++) {
		const struct wire_codec *k = codecs[c];

		for (unsigned int bit = 0; bit < k->bytes * 8u; bit++) {
			memset(in, 0, sizeof(in));
			memset(out, 0, sizeof(out));
			in[bit / 8] = (uint8_t)(0x80 >> bit % 8);
			wire_fields_decode(k, in, k->bytes, obj);
			wire_fields_encode(k, obj, out);
			if (memcmp(out, zero, k->bytes) && memcmp(out, in, k->bytes))
				fail_msg("%s: bit %u moved", k->name, bit);
		}
	}
}

static void encode_keeps_to_its_bytes(void **state)
{
	uint8_t out[CODEC_BYTES_MAX + 8];
	uint64_t obj[CODEC_BYTES_MAX / 8] = {0};

	for (unsigned int c = 0; c < nr_codecs; c++) {
		memset(out, 0xa5, sizeof(out));
		wire_fields_encode(codecs[c], obj, out);
		for (unsigned int i = codecs[c]->bytes; i < sizeof(out); i++)
			assert_int_equal(out[i], 0xa5);
	}
}

static void truncation(void **state)
{
	uint8_t in[CODEC_BYTES_MAX] = {0};
	uint64_t obj[CODEC_BYTES_MAX / 8];

	for (unsigned int c = 0; c < nr_codecs; c++)
		for (unsigned int len = 0; len < codecs[c]->bytes; len++)
			assert_int_equal(wire_fields_decode(codecs[c], in, len, obj),
					 -EINVAL);
}

static void too_large_a_value_is_refused(void **state)
{
	struct wire_node_info info = {.vendor_id = 0x1000000};
	struct wire_port_info port = {.state = 16};
	uint8_t out[64];

	assert_int_equal(wire_node_info_encode(&info, out), -EINVAL);
	info.vendor_id = 0xffffff;
	assert_int_equal(wire_node_info_encode(&info, out), 40);
	assert_int_equal(wire_port_info_encode(&port, out), -EINVAL);
	port.state = WIRE_PORT_ACTIVE;
	assert_int_equal(wire_port_info_encode(&port, out), 64);
}

static void header_leaves_the_attribute(void **state)
{
	struct wire_smp smp = {.mad.mgmt_class = WIRE_CLASS_SM_DIRECT, .hop_count = 1};
	uint8_t mad[WIRE_MAD_BYTES];

	memset(mad, 0x5a, sizeof(mad));
	assert_int_equal(wire_smp_encode(&smp, mad), WIRE_MAD_BYTES);
	for (int i = 0; i < WIRE_SMP_DATA_BYTES; i++)
		assert_int_equal(mad[WIRE_SMP_DATA_OFFSET + i], 0x5a);
	assert_int_equal(mad[WIRE_SMP_DATA_OFFSET - 1], 0);
	assert_int_equal(mad[WIRE_SMP_DATA_OFFSET + WIRE_SMP_DATA_BYTES], 0);
	smp.mad.mgmt_class = WIRE_CLASS_PERF;
	assert_int_equal(wire_smp_encode(&smp, mad), -EINVAL);
}

static void attributes_fit_their_class(void **state)
{
	for (unsigned int c = 0; c < wire_nr_classes; c++) {
		const struct wire_mgmt_class *cls = &wire_classes[c];

		assert_int_equal(cls->data_offset + cls->data_bytes,
				 cls->header == &wire_smp_lid_codec ||
					 cls->header == &wire_smp_direct_codec
				     ? 128
				     : WIRE_MAD_BYTES);
		for (const struct wire_attr *a = cls->attrs; a && a->codec; a++) {
			assert_in_range(a->codec->bytes, 1, cls->data_bytes);
			assert_ptr_equal(wire_attr_find(cls, a->id), a);
		}
		assert_null(wire_attr_find(cls, 0xeeee));
		assert_ptr_equal(wire_class_find(cls->first), cls);
		assert_ptr_equal(wire_class_find(cls->last), cls);
	}
	assert_null(wire_class_find(0x77));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(tables_tile_the_wire),
	    cmocka_unit_test(members_do_not_overlap),
	    cmocka_unit_test(members_hold_their_fields),
	    cmocka_unit_test(bytes_survive),
	    cmocka_unit_test(each_bit_is_its_own),
	    cmocka_unit_test(encode_keeps_to_its_bytes),
	    cmocka_unit_test(truncation),
	    cmocka_unit_test(too_large_a_value_is_refused),
	    cmocka_unit_test(header_leaves_the_attribute),
	    cmocka_unit_test(attributes_fit_their_class),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
