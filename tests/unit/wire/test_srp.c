/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* SRP: the places of fields on the wire, and lengths that lie. */
#include "../test.h"

#include <errno.h>

#include "base/bytes.h"
#include "wire/srp.h"

static const struct wire_srp_cmd write_cmd = {
	.opcode = WIRE_SRP_CMD,
	.tag = 0x1122334455667788,
	.lun = {0, 3},
	.task_attr = WIRE_SRP_ORDERED,
	.cdb = {0x2a, [8] = 8},
};

static const uint8_t two_descs[32] = {
	[6] = 0x10,  [11] = 7, [14] = 0x0c, /* 0x1000, key 7, 3,072 bytes */
	[22] = 0x20, [27] = 8, [30] = 0x04, /* 0x2000, key 8, 1,024 bytes */
};

/* a table of @nr_table descriptors, 4,096 bytes in all, the first @nr_here in the IU */
static struct wire_srp_cmd_parts indirect(uint32_t nr_here, uint32_t nr_table)
{
	return (struct wire_srp_cmd_parts){.out = {.format = WIRE_SRP_INDIRECT,
						   .bytes = 4096,
						   .where = {0xabc0, 9, nr_table * 16},
						   .nr_here = nr_here,
						   .here = two_descs}};
}

static int split(const uint8_t *iu, size_t len, uint16_t offset,
		 struct wire_srp_cmd_parts *parts)
{
	/* of its own, so that a sanitizer sees a byte too far */
	uint8_t *copy = malloc(len ? len : 1);
	struct wire_srp_cmd cmd;
	int err = -EINVAL;

	assert_non_null(copy);
	memcpy(copy, iu, len);
	if (wire_srp_cmd_decode(copy, len, &cmd) >= 0)
		err = wire_srp_cmd_split(&cmd, copy, len, offset, parts);
	free(copy);
	return err;
}

/* the places of fields as include/scsi/srp.h of Linux has them */
static void a_direct_command_on_the_wire(void **state)
{
	struct wire_srp_cmd_parts parts = {
		.in = {.format = WIRE_SRP_DIRECT,
		       .where = {0x123456789abcdef0, 0x77, 512}}};
	uint8_t iu[64];

	assert_int_equal(wire_srp_cmd_build(&write_cmd, &parts, iu, sizeof(iu)), 64);
	assert_int_equal(iu[0], 2);
	assert_int_equal(iu[5], 0x01); /* data-out above, data-in below */
	assert_int_equal(get_be64(iu + 8), write_cmd.tag);
	assert_int_equal(iu[21], 3);
	assert_int_equal(iu[29], WIRE_SRP_ORDERED);
	assert_int_equal(iu[32], 0x2a);
	assert_int_equal(get_be64(iu + 48), 0x123456789abcdef0);
	assert_int_equal(get_be32(iu + 56), 0x77);
	assert_int_equal(get_be32(iu + 60), 512);
}

static void an_indirect_command_is_read_as_written(void **state)
{
	struct wire_srp_cmd_parts parts = indirect(2, 2), again;
	struct wire_srp_cmd cmd;
	uint8_t iu[256], more[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	int len;

	parts.more_cdb = more;
	parts.more_cdb_bytes = sizeof(more);
	len = wire_srp_cmd_build(&write_cmd, &parts, iu, sizeof(iu));
	assert_int_equal(len, 48 + 8 + 20 + 32);
	assert_int_equal(iu[5], 0x20);
	assert_int_equal(iu[6], 2);
	assert_int_equal(iu[31], 8); /* dwords, from bit 2: bytes */
	assert_int_equal(wire_srp_cmd_decode(iu, len, &cmd), 48);
	assert_int_equal(wire_srp_cmd_split(&cmd, iu, len, 0, &again), 0);
	assert_memory_equal(again.more_cdb, more, 8);
	assert_int_equal(again.out.bytes, 4096);
	assert_int_equal(again.out.nr_descs, 2);
	assert_int_equal(wire_srp_data_desc(&again.out, 1).address, 0x2000);
	assert_int_equal(wire_srp_data_desc(&again.out, 1).bytes, 1024);
	assert_int_equal(again.in.format, WIRE_SRP_NO_DATA);
}

static void every_truncation_is_refused(void **state)
{
	struct wire_srp_cmd_parts parts = indirect(2, 2);
	uint8_t iu[256];
	int len = wire_srp_cmd_build(&write_cmd, &parts, iu, sizeof(iu));

	assert_true(len > 0);
	assert_int_equal(split(iu, len, 0, &parts), 0);
	for (int cut = 0; cut < len; cut++)
		assert_int_equal(split(iu, cut, 0, &parts), -EINVAL);
	assert_int_equal(wire_srp_cmd_build(&write_cmd, &parts, iu, len - 1), -ENOSPC);
}

static void tables_that_lie_are_refused(void **state)
{
	static const struct {
		uint8_t at, value; /* a byte of an otherwise good IU */
		int result;
	} cases[] = {
		{6, 2, 0},
		{6, 1, 0}, /* the rest of the table is the initiator's memory */
		{6, 0, 0},
		{6, 3, -EINVAL},     /* more than the IU has */
		{63, 33, -EINVAL},   /* no whole number of descriptors */
		{63, 16, -EINVAL},   /* fewer than in the IU */
		{66, 0x11, -EINVAL}, /* total length above what the table describes */
		{66, 0x0f, 0},	     /* below it */
		{5, 0x40, -EINVAL},  /* an unknown format */
		{5, 0x22, -EINVAL},  /* a second table, which is not there */
		{5, 0x03, -EINVAL},  /* immediate data from the target */
		{31, 0xfc, -EINVAL}, /* a CDB past the end */
	};
	struct wire_srp_cmd_parts parts = indirect(2, 2), found;
	uint8_t iu[256], changed[256];
	int len = wire_srp_cmd_build(&write_cmd, &parts, iu, sizeof(iu));

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		memcpy(changed, iu, sizeof(iu));
		changed[cases[i].at] = cases[i].value;
		if (split(changed, len, 0, &found) != cases[i].result)
			fail_msg("byte %u = %#x", cases[i].at, cases[i].value);
	}
}

static void immediate_data_stays_in_its_iu(void **state)
{
	static const struct {
		uint16_t offset;
		uint32_t bytes;
		int result;
	} cases[] = {
		{80, 20, 0},	  {80, 21, -EINVAL}, {80, UINT32_MAX, -EINVAL},
		{100, 0, 0},	  {101, 0, -EINVAL}, {52, 48, 0},
		{51, 1, -EINVAL}, /* inside of the length */
		{0, 1, -EINVAL},  /* not agreed at login */
	};
	uint8_t iu[100] = {WIRE_SRP_CMD, [5] = 0x30};
	struct wire_srp_cmd_parts parts;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		put_be32(iu + 48, cases[i].bytes);
		if (split(iu, sizeof(iu), cases[i].offset, &parts) != cases[i].result)
			fail_msg("%u bytes at %u", cases[i].bytes, cases[i].offset);
	}
}

static void a_response_is_read_as_written(void **state)
{
	struct wire_srp_rsp rsp = {.opcode = WIRE_SRP_RSP,
				   .limit_delta = 1,
				   .tag = 5,
				   .flags = WIRE_SRP_RSP_VALID | WIRE_SRP_SENSE_VALID,
				   .status = 2,
				   .response_bytes = 4,
				   .sense_bytes = 18};
	const uint8_t code[4] = {0, 0, 0, WIRE_SRP_RESPONSE_FAILED},
		      sense[18] = {0x70, 0, 5};
	const uint8_t *response, *said;
	uint8_t iu[58];

	assert_int_equal(wire_srp_rsp_build(&rsp, code, sense, iu, sizeof(iu)),
			 sizeof(iu));
	assert_int_equal(iu[18], 3);
	assert_int_equal(iu[19], 2);
	assert_int_equal(iu[39],
			 WIRE_SRP_RESPONSE_FAILED); /* response data stands first */
	assert_int_equal(wire_srp_rsp_split(&rsp, iu, sizeof(iu), &response, &said), 0);
	assert_memory_equal(said, sense, sizeof(sense));
	for (size_t len = 0; len < sizeof(iu); len++)
		assert_int_equal(wire_srp_rsp_split(&rsp, iu, len, &response, &said),
				 -EINVAL);
	assert_int_equal(wire_srp_rsp_build(&rsp, code, sense, iu, 57), -ENOSPC);
	rsp.sense_bytes = UINT32_MAX;
	assert_int_equal(wire_srp_rsp_split(&rsp, iu, sizeof(iu), &response, &said),
			 -EINVAL);
	rsp.flags = 0; /* lengths without their flags mean nothing */
	assert_int_equal(wire_srp_rsp_split(&rsp, iu, sizeof(iu), &response, &said), 0);
	assert_null(said);
}

static void the_sense_of_an_event_stays_in_its_iu(void **state)
{
	struct wire_srp_aer_req aer = {.opcode = WIRE_SRP_AER_REQ, .sense_bytes = 18};
	uint8_t iu[54];
	const uint8_t *sense = NULL;

	assert_int_equal(wire_srp_aer_req_encode(&aer, iu), 36);
	assert_int_equal(wire_srp_aer_split(&aer, iu, 54, &sense), 0);
	assert_ptr_equal(sense, iu + 36);
	assert_int_equal(wire_srp_aer_split(&aer, iu, 53, &sense), -EINVAL);
}

static void each_opcode_has_its_length(void **state)
{
	static const struct {
		uint8_t opcode;
		uint16_t bytes;
	} cases[] = {
		{WIRE_SRP_LOGIN_REQ, 64}, {WIRE_SRP_LOGIN_RSP, 52},
		{WIRE_SRP_LOGIN_REJ, 32}, {WIRE_SRP_CMD, 48},
		{WIRE_SRP_RSP, 36},	  {WIRE_SRP_TSK_MGMT, 48},
		{WIRE_SRP_I_LOGOUT, 16},  {WIRE_SRP_T_LOGOUT, 16},
		{WIRE_SRP_CRED_REQ, 16},  {WIRE_SRP_CRED_RSP, 16},
		{WIRE_SRP_AER_REQ, 36},	  {WIRE_SRP_AER_RSP, 16},
	};
	size_t known = 0;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(wire_srp_codec(cases[i].opcode)->bytes, cases[i].bytes);
	for (unsigned opcode = 0; opcode < 256; opcode++)
		known += wire_srp_codec((uint8_t)opcode) != NULL;
	assert_int_equal(known, ARRAY_SIZE(cases));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_direct_command_on_the_wire),
		cmocka_unit_test(an_indirect_command_is_read_as_written),
		cmocka_unit_test(every_truncation_is_refused),
		cmocka_unit_test(tables_that_lie_are_refused),
		cmocka_unit_test(immediate_data_stays_in_its_iu),
		cmocka_unit_test(a_response_is_read_as_written),
		cmocka_unit_test(the_sense_of_an_event_stays_in_its_iu),
		cmocka_unit_test(each_opcode_has_its_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
