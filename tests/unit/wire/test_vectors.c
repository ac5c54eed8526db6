/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The vectors of tests/vectors: each *.hex decodes to the text beside it and
 * encodes to the same bytes. Directory packet has packets from the LRH to the
 * ICRC, roce from the IP header to the ICRC (sent by the Linux kernel), the
 * others MADs of their class. With UPDATE=1 in the environment the texts are
 * written instead of compared: read what changed before committing it.
 */
#include "../test.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>

#include "base/bytes.h"
#include "text.h"
#include "wire/roce.h"

struct kind {
	const char *dir;
	void (*decode)(const uint8_t *b, size_t len, FILE *out);
};

static size_t read_hex(const char *path, uint8_t *buf, size_t room)
{
	FILE *in = fopen(path, "r");
	char line[1024];
	size_t n = 0;

	assert_non_null(in);
	while (fgets(line, sizeof(line), in)) {
		char *at = line;
		unsigned int byte;
		int used;

		line[strcspn(line, "#\n")] = '\0';
		while (sscanf(at, " %2x%n", &byte, &used) == 1) {
			assert_true(n < room);
			buf[n++] = (uint8_t)byte;
			at += used;
		}
	}
	fclose(in);
	return n;
}

static void decode_packet(const uint8_t *b, size_t len, FILE *out)
{
	uint8_t again[WIRE_HEADERS_MAX];
	struct wire_packet p;
	int n;

	len -= WIRE_ICRC_BYTES;
	assert_int_equal(wire_icrc(b, len), get_be32(b + len));
	n = wire_packet_decode(b, len, &p);
	assert_true(n > 0);
	text_packet(out, &p, true);
	assert_int_equal(wire_packet_encode(&p, again), n);
	assert_memory_equal(again, b, n);
}

/* the same packet behind an Ethernet header, and padded: its parts, and the frame again */
static void decode_frame(const uint8_t *ip, size_t len, size_t bth)
{
	uint8_t frame[WIRE_ROCE_FRAME_MAX] = {2, [5] = 2, [6] = 2, [11] = 1}, again[WIRE_ROCE_FRAME_MAX];
	struct wire_roce roce;
	bool v4 = ip[0] >> 4 == 4;

	put_be16(frame + 12, v4 ? 0x0800 : 0x86dd);
	memcpy(frame + 14, ip, len);
	assert_int_equal(wire_roce_decode(frame, 14 + len + 7, &roce), 0);
	assert_ptr_equal(roce.bth, frame + 14 + bth);
	assert_int_equal(roce.bytes, len - bth - WIRE_ICRC_BYTES);
	assert_memory_equal(roce.headers.dst_mac, frame, 12);
	assert_memory_equal(roce.headers.grh.sgid.raw + (v4 ? 12 : 0), ip + (v4 ? 12 : 8), v4 ? 4 : 16);
	assert_memory_equal(roce.headers.grh.dgid.raw + (v4 ? 12 : 0), ip + (v4 ? 16 : 24), v4 ? 4 : 16);
	assert_int_equal(wire_roce_encode(&roce.headers, roce.bth, roce.bytes, again), 14 + len);
	assert_memory_equal(again + 14 + bth, ip + bth, len - bth - WIRE_ICRC_BYTES);
	for (size_t i = 14 + bth; i < 14 + len; i += 3) { /* each byte counts */
		frame[i] ^= 1;
		assert_int_equal(wire_roce_decode(frame, 14 + len, &roce), i == 14 + bth + 4 ? 0 : -EINVAL);
		frame[i] ^= 1;
	}
}

static void decode_roce(const uint8_t *b, size_t len, FILE *out)
{
	size_t bth = (b[0] >> 4 == 4 ? 20 : 40) + 8;
	uint8_t again[WIRE_HEADERS_MAX];
	struct wire_packet p;
	uint32_t icrc;
	int n;

	decode_frame(b, len, bth);
	len -= WIRE_ICRC_BYTES;
	assert_int_equal(wire_roce_icrc(b, len, &icrc), 0);
	assert_int_equal(icrc, get_be32(b + len));
	n = wire_bth_decode(b + bth, len - bth, &p);
	assert_true(n > 0);
	text_packet(out, &p, false);
	assert_int_equal(wire_bth_encode(&p, again), n);
	assert_memory_equal(again, b + bth, n);
}

static void decode_mad(const uint8_t *b, size_t len, FILE *out)
{
	const struct wire_mgmt_class *cls = wire_class_find(b[1]);
	uint64_t header[CODEC_BYTES_MAX / 8], obj[CODEC_BYTES_MAX / 8];
	const struct wire_attr *attr;
	uint8_t again[WIRE_MAD_BYTES] = {0};

	assert_int_equal(len, WIRE_MAD_BYTES);
	assert_non_null(cls);
	attr = wire_attr_find(cls, get_be16(b + 16));
	assert_non_null(attr);
	assert_true(wire_fields_decode(cls->header, b, len, header) > 0);
	assert_true(wire_fields_decode(attr->codec, b + cls->data_offset, cls->data_bytes,
				       obj) > 0);
	text_struct(out, cls->header, header);
	text_struct(out, attr->codec, obj);
	assert_true(wire_fields_encode(cls->header, header, again) > 0);
	assert_true(wire_fields_encode(attr->codec, obj, again + cls->data_offset) > 0);
	assert_memory_equal(again, b, len);
}

static const struct kind kinds[] = {
    {"packet",     decode_packet},
	{"roce",	 decode_roce  },
    {"smp_lid",	   decode_mad   },
    {"smp_direct", decode_mad   },
	{"sa",	       decode_mad	 },
    {"pma",	       decode_mad	 },
    {"cm",	   decode_mad   },
	{"dm",	       decode_mad	 },
    {"bm",	      decode_mad	},
};

static void compare_text(const char *path, const char *text)
{
	char expected[16384];
	FILE *file = fopen(path, getenv("UPDATE") ? "w" : "r");
	size_t n;

	if (!file)
		fail_msg("%s is missing", path);
	if (getenv("UPDATE")) {
		fputs(text, file);
	} else {
		n = fread(expected, 1, sizeof(expected) - 1, file);
		expected[n] = '\0';
		if (strcmp(expected, text))
			fail_msg("%s differs from:\n%s", path, text);
	}
	fclose(file);
}

static void one_vector(const struct kind *kind, const char *dir, const char *name)
{
	char path[2 * PATH_MAX], *text = NULL;
	uint8_t bytes[WIRE_PACKET_MAX];
	size_t len, text_len = 0;
	FILE *out = open_memstream(&text, &text_len);

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	len = read_hex(path, bytes, sizeof(bytes));
	assert_true(len > 24);
	kind->decode(bytes, len, out);
	fclose(out);
	memcpy(strrchr(path, '.'), ".txt", 5);
	compare_text(path, text);
	free(text);
}

static void vectors_decode_and_encode(void **state)
{
	unsigned int all = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++) {
		char dir[PATH_MAX];
		struct dirent *entry;
		unsigned int found = 0;
		DIR *d;

		snprintf(dir, sizeof(dir), "%s/%s", VECTORS_DIR, kinds[i].dir);
		d = opendir(dir);
		if (!d)
			fail_msg("%s is missing", dir);
		while ((entry = readdir(d))) {
			const char *dot = strrchr(entry->d_name, '.');

			if (!dot || strcmp(dot, ".hex"))
				continue;
			one_vector(&kinds[i], dir, entry->d_name);
			found++;
		}
		closedir(d);
		assert_true(found > 0);
		all += found;
	}
	assert_true(all >= 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(vectors_decode_and_encode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
