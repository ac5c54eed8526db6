/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The server's side of NBD: what a client is answered, byte for byte. */
#include "../test.h"

#include "base/bytes.h"
#include "nbd/nbd.h"

static const struct nbd_export disk = {
	.bytes = 1 << 20,
	.block_bytes = 512,
	.max_bytes = 65536,
	.flags =
		NBD_HAS_FLAGS | NBD_CAN_FLUSH | NBD_CAN_FUA | NBD_CAN_TRIM | NBD_CAN_ZERO,
};

static uint8_t out[8192], in[8192];
static size_t out_bytes, in_bytes;

static bool find(void *ctx, const char *name, struct nbd_export *export)
{
	*export = disk;
	return !strcmp(name, "n1/n2/0");
}

static bool nth(void *ctx, unsigned int i, char name[NBD_NAME_BYTES])
{
	snprintf(name, NBD_NAME_BYTES, "n1/n2/%u", i);
	return i < 3;
}

static void send_out(void *ctx, const void *data, size_t bytes)
{
	assert_in_range(out_bytes + bytes, 0, sizeof(out));
	memcpy(out + out_bytes, data, bytes);
	out_bytes += bytes;
}

static const struct nbd_server server = {NULL, find, nth, send_out};

static void say_option(uint32_t option, const void *data, uint32_t bytes)
{
	memcpy(in + in_bytes, "IHAVEOPT", 8);
	put_be32(in + in_bytes + 8, option);
	put_be32(in + in_bytes + 12, bytes);
	memcpy(in + in_bytes + 16, data, bytes);
	in_bytes += 16 + bytes;
}

static int begin(void **state)
{
	out_bytes = 0;
	put_be32(in, 3); /* fixed newstyle, no zeroes */
	in_bytes = 4;
	return 0;
}

/* all of @in at once, or byte by byte as a slow socket brings it: the outcome is the same
 */
static enum nbd_verdict take(struct nbd_handshake *hs, size_t step)
{
	enum nbd_verdict verdict = NBD_MORE;
	size_t done = 0, used;

	*hs = (struct nbd_handshake){0};
	out_bytes = 0;
	for (size_t have = step; verdict == NBD_MORE && have <= in_bytes; have += step) {
		verdict = nbd_handshake_take(hs, &server, in + done, have - done, &used);
		done += used;
	}
	return verdict;
}

static uint32_t reply_type(size_t *at)
{
	uint32_t type = get_be32(out + *at + 12);

	assert_int_equal(get_be64(out + *at), 0x0003e889045565a9ull);
	*at += 20 + get_be32(out + *at + 16);
	assert_in_range(*at, 0, out_bytes);
	return type;
}

static void the_server_speaks_first(void **state)
{
	nbd_greet(&server);
	assert_int_equal(out_bytes, 18);
	assert_memory_equal(out, "NBDMAGICIHAVEOPT\0\3", 18);
}

static void a_client_lists_and_goes(void **state)
{
	struct nbd_handshake hs;

	say_option(8, "", 0);
	say_option(3, "", 0);
	say_option(7, "\0\0\0\7n1/n2/0\0\1\0\1", 15);
	for (size_t step = 1; step <= in_bytes; step += in_bytes - 1) {
		size_t at = 0;

		assert_int_equal(take(&hs, step), NBD_TRANSMIT);
		assert_true(hs.structured);
		assert_int_equal(reply_type(&at), 1);
		for (int i = 0; i < 3; i++)
			assert_int_equal(reply_type(&at), 2);
		assert_int_equal(reply_type(&at), 1);
		assert_int_equal(get_be64(out + at + 22), disk.bytes);
		assert_int_equal(get_be16(out + at + 30), disk.flags);
		assert_int_equal(reply_type(&at), 3);
		assert_int_equal(get_be32(out + at + 22), 512);
		assert_int_equal(get_be32(out + at + 30), 65536);
		assert_int_equal(reply_type(&at), 3);
		assert_memory_equal(out + at + 22, "n1/n2/0", 7);
		assert_int_equal(reply_type(&at), 3);
		assert_int_equal(reply_type(&at), 1);
		assert_int_equal(at, out_bytes);
	}
}

static void an_old_client_names_its_export(void **state)
{
	struct nbd_handshake hs;

	say_option(1, "n1/n2/0", 7);
	assert_int_equal(take(&hs, in_bytes), NBD_TRANSMIT);
	assert_int_equal(out_bytes, 10);
	put_be32(in, 1); /* with zeroes */
	assert_int_equal(take(&hs, in_bytes), NBD_TRANSMIT);
	assert_int_equal(out_bytes, 134);
	in[in_bytes - 1] = '9';
	assert_int_equal(take(&hs, in_bytes), NBD_CLOSE);
}

static void refused_options_leave_the_connection_usable(void **state)
{
	static const struct {
		uint32_t option, bytes;
		const char *data;
		uint32_t type;
	} refused[] = {
		{5, 0, "", 0x80000001},			    /* TLS */
		{99, 3, "abc", 0x80000001},		    /* nobody knows it */
		{3, 1, "x", 0x80000003},		    /* a list with data */
		{7, 4, "\0\0\0\0", 0x80000003},		    /* too short */
		{7, 6, "\0\0\1\0\0\0", 0x80000003},	    /* a name beyond the end */
		{6, 6, "\0\0\0\0\0\1", 0x80000003},	    /* a list beyond the end */
		{6, 9, "\0\0\0\3abc\0\0", 0x80000006},	    /* no such export */
		{6, 9, "\0\0\0\3a\0c\0\0", 0x80000006},	    /* a NUL in its name */
		{6, 6, "\xff\xff\xff\xff\0\0", 0x80000003}, /* a length that wraps */
	};
	struct nbd_handshake hs;
	size_t at = 0;

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		say_option(refused[i].option, refused[i].data, refused[i].bytes);
	say_option(7, "\0\0\0\7n1/n2/0\0\0", 13);
	assert_int_equal(take(&hs, in_bytes), NBD_TRANSMIT);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		assert_int_equal(reply_type(&at), refused[i].type);
}

static void an_option_that_is_too_long_is_skipped(void **state)
{
	static const uint8_t data[6000];
	struct nbd_handshake hs;
	size_t at = 0;

	say_option(7, data, sizeof(data));
	say_option(2, "", 0);
	assert_int_equal(take(&hs, 1), NBD_CLOSE);
	assert_int_equal(reply_type(&at), 0x80000009);
	assert_int_equal(reply_type(&at), 1);
}

static void what_is_no_handshake_ends_the_connection(void **state)
{
	struct nbd_handshake hs;

	say_option(3, "", 0);
	in[4] = 'X';
	assert_int_equal(take(&hs, in_bytes), NBD_CLOSE);
	put_be32(in, 0x80); /* a flag that nobody knows */
	assert_int_equal(take(&hs, in_bytes), NBD_CLOSE);
}

static void each_request_is_checked(void **state)
{
	static const struct {
		uint16_t type, flags, without;
		uint64_t offset;
		uint32_t bytes;
		int error;
	} cases[] = {
		{NBD_READ, 0, 0, 0, 512, 0},
		{NBD_READ, 0, 0, (1 << 20) - 512, 512, 0},
		{NBD_READ, 0, 0, 1 << 20, 512, NBD_EINVAL},
		{NBD_READ, 0, 0, UINT64_MAX, 512, NBD_EINVAL},
		{NBD_READ, 0, 0, 0, 0, NBD_EINVAL},
		{NBD_READ, 0, 0, 1, 512, NBD_EINVAL},
		{NBD_READ, 0, 0, 0, 100, NBD_EINVAL},
		{NBD_READ, 0, 0, 0, 65536 + 512, NBD_EINVAL},
		{NBD_WRITE, NBD_FUA, 0, 0, 65536, 0},
		{NBD_WRITE, NBD_FUA, NBD_CAN_FUA, 0, 512, NBD_EINVAL},
		{NBD_WRITE, NBD_NO_HOLE, 0, 0, 512, NBD_EINVAL},
		{NBD_WRITE, 0, 0, 1 << 20, 512, NBD_ENOSPC},
		{NBD_FLUSH, 0, 0, 0, 0, 0},
		{NBD_FLUSH, 0, NBD_CAN_FLUSH, 0, 0, NBD_EINVAL},
		{NBD_TRIM, 0, 0, 0, 1 << 20, 0},
		{NBD_TRIM, 0, NBD_CAN_TRIM, 0, 512, NBD_EINVAL},
		{NBD_WRITE_ZEROES, NBD_NO_HOLE | NBD_FUA, 0, 0, 1 << 20, 0},
		{NBD_WRITE_ZEROES, 1 << 4, 0, 0, 512, NBD_EINVAL},
		{NBD_CACHE, 0, 0, 0, 512, NBD_EINVAL},
		{NBD_BLOCK_STATUS, 0, 0, 0, 512, NBD_EINVAL},
		{200, 0, 0, 0, 512, NBD_EINVAL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct nbd_request r = {cases[i].flags, cases[i].type, 7, cases[i].offset,
					cases[i].bytes};
		struct nbd_export e = disk;

		e.flags &= ~cases[i].without;
		assert_int_equal(nbd_request_check(&r, &e), cases[i].error);
	}
	for (uint16_t type = NBD_WRITE; type <= NBD_WRITE_ZEROES; type++) {
		struct nbd_request r = {0, type, 7, 0, 512};
		struct nbd_export e = disk;

		e.flags |= NBD_READ_ONLY;
		if (type == NBD_WRITE || type == NBD_TRIM || type == NBD_WRITE_ZEROES)
			assert_int_equal(nbd_request_check(&r, &e), NBD_EPERM);
	}
}

static void requests_are_read_and_answered(void **state)
{
	static const uint8_t write[NBD_REQUEST_BYTES] = {
		0x25, 0x60, 0x95, 0x13, 0, 1, 0, 1, 1, 2, 3, 4, 5, 6,
		7,    8,    0,	  0,	0, 0, 0, 0, 2, 0, 0, 0, 4, 0};
	struct nbd_request r;
	uint8_t to[NBD_REPLY_BYTES];

	assert_int_equal(nbd_request_decode(write, &r), 0);
	assert_int_equal(r.type, NBD_WRITE);
	assert_int_equal(r.flags, NBD_FUA);
	assert_int_equal(r.cookie, 0x0102030405060708ull);
	assert_int_equal(r.offset, 512);
	assert_int_equal(nbd_request_payload(&r), 1024);
	assert_int_equal(nbd_reply_build(&r, true, NBD_EIO, to), 16);
	assert_int_equal(get_be32(to), 0x67446698);
	assert_int_equal(get_be32(to + 4), NBD_EIO);
	assert_int_equal(get_be64(to + 8), r.cookie);
	r.type = NBD_READ;
	assert_int_equal(nbd_request_payload(&r), 0);
	assert_int_equal(nbd_reply_build(&r, false, 0, to), 16);
	assert_int_equal(nbd_reply_build(&r, true, 0, to), 28);
	assert_int_equal(get_be32(to + 4), 0x00010001);
	assert_int_equal(get_be32(to + 16), 8 + 1024);
	assert_int_equal(get_be64(to + 20), 512);
	assert_int_equal(nbd_reply_build(&r, true, NBD_EIO, to), 26);
	assert_int_equal(get_be32(to + 4), 0x00018001);
	assert_int_equal(get_be32(to + 16), 6);
	assert_int_equal(nbd_request_decode((const uint8_t[NBD_REQUEST_BYTES]){0}, &r),
			 -22);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_server_speaks_first, begin),
		cmocka_unit_test_setup(a_client_lists_and_goes, begin),
		cmocka_unit_test_setup(an_old_client_names_its_export, begin),
		cmocka_unit_test_setup(refused_options_leave_the_connection_usable,
				       begin),
		cmocka_unit_test_setup(an_option_that_is_too_long_is_skipped, begin),
		cmocka_unit_test_setup(what_is_no_handshake_ends_the_connection, begin),
		cmocka_unit_test(each_request_is_checked),
		cmocka_unit_test(requests_are_read_and_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
