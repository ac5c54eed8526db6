/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Each command of the disk: what it does, and what it refuses. */
#include "../test.h"

#include "disk.h"

static struct disk d;

#define RUN(...)	     disk_run(&d, 0, (const uint8_t[16]){__VA_ARGS__}, NULL, 0)
#define SEND(data, len, ...) disk_run(&d, 0, (const uint8_t[16]){__VA_ARGS__}, data, len)

static uint8_t pattern[4 * 512];

static int setup(void **state)
{
	disk_init(&d);
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 7 + i / 512);
	return 0;
}

static void inquiry_describes_a_disk(void **state)
{
	assert_int_equal(RUN(0x12, 0, 0, 0, 96), 0);
	assert_int_equal(d.task.in_bytes, 96);
	assert_int_equal(d.in[0], 0);
	assert_memory_equal(d.in + 8, "softib  SCSI disk       ", 24);
	assert_int_equal(RUN(0x12, 0, 0, 0, 5), 0); /* what was allocated, no more */
	assert_int_equal(d.task.in_bytes, 5);
	assert_int_equal(RUN(0x12, 0, 0x80, 0, 96), SCSI_INVALID_FIELD_IN_CDB);
	assert_int_equal(d.task.sense[17], 2); /* the byte that is wrong */
	assert_int_equal(disk_run(&d, 7, (const uint8_t[16]){0x12, 0, 0, 0, 96}, NULL, 0),
			 0);
	assert_int_equal(d.in[0], 0x7f);
}

static void every_page_that_is_listed_can_be_read(void **state)
{
	uint8_t list[64];
	size_t nr;

	assert_int_equal(RUN(0x12, 1, 0, 0, 255), 0);
	nr = get_be16(d.in + 2);
	assert_int_equal(nr, 6);
	memcpy(list, d.in + 4, nr);
	for (size_t i = 0; i < nr; i++) {
		assert_int_equal(RUN(0x12, 1, list[i], 0, 255), 0);
		assert_int_equal(d.in[1], list[i]);
		assert_int_equal(d.task.in_bytes, get_be16(d.in + 2) + 4);
	}
	assert_int_equal(RUN(0x12, 1, 0x80, 0, 255), 0);
	assert_memory_equal(d.in + 4, "0123456789abcdef", 16);
	assert_int_equal(RUN(0x12, 1, 0x83, 0, 255), 0);
	assert_int_equal(get_be64(d.in + 4 + 28 + 4), 0x3123456789abcdef);
	assert_int_equal(RUN(0x12, 1, 0xb2, 0, 255), 0);
	assert_int_equal(d.in[5], 0xe4);
	d.backend.discard = NULL;
	assert_int_equal(RUN(0x12, 1, 0xb2, 0, 255), 0);
	assert_int_equal(d.in[5], 0);
	assert_int_equal(RUN(0x12, 1, 0xc0, 0, 255), SCSI_INVALID_FIELD_IN_CDB);
}

static void capacity_is_of_the_last_block(void **state)
{
	assert_int_equal(RUN(0x25), 0);
	assert_int_equal(get_be32(d.in), DISK_BLOCKS - 1);
	assert_int_equal(get_be32(d.in + 4), 512);
	assert_int_equal(RUN(0x9e, 0x10, [13] = 32), 0);
	assert_int_equal(get_be64(d.in), DISK_BLOCKS - 1);
	assert_int_equal(d.in[14], 0xc0);
	d.unit.nr_blocks = 1ull << 33;
	assert_int_equal(RUN(0x25), 0);
	assert_int_equal(get_be32(d.in), UINT32_MAX); /* "ask READ CAPACITY(16)" */
	assert_int_equal(RUN(0x9e, 0x11, [13] = 32), SCSI_INVALID_FIELD_IN_CDB);
	assert_int_equal(d.task.sense[17], 1); /* the service action */
}

static void what_is_written_is_read_by_every_length_of_cdb(void **state)
{
	static const uint8_t writes[][16] = {
		{0x0a, 0, 0, 10, 2},
		{0x2a, 0, 0, 0, 0, 10, 0, 0, 2},
		{0xaa, 0, 0, 0, 0, 10, 0, 0, 0, 2},
		{0x8a, 0, [9] = 10, [13] = 2},
	};
	static const uint8_t reads[][16] = {
		{0x08, 0, 0, 10, 2},
		{0x28, 0, 0, 0, 0, 10, 0, 0, 2},
		{0xa8, 0, 0, 0, 0, 10, 0, 0, 0, 2},
		{0x88, 0, [9] = 10, [13] = 2},
	};

	for (size_t i = 0; i < ARRAY_SIZE(writes); i++) {
		pattern[0] = (uint8_t)(100 + i);
		assert_int_equal(disk_run(&d, 0, writes[i], pattern, 1024), 0);
		assert_int_equal(d.task.out_taken, 1024);
		for (size_t k = 0; k < ARRAY_SIZE(reads); k++) {
			memset(d.in, 0, 1024);
			assert_int_equal(disk_run(&d, 0, reads[k], NULL, 0), 0);
			assert_int_equal(d.task.in_bytes, 1024);
			assert_memory_equal(d.in, pattern, 1024);
		}
	}
	assert_int_equal(d.medium[9 * 512], 0);
	assert_int_equal(d.medium[12 * 512], 0);
}

static void blocks_past_the_end_are_out_of_range(void **state)
{
	assert_int_equal(RUN(0x28, 0, 0, 0, 0, 63, 0, 0, 1), 0);
	assert_int_equal(RUN(0x28, 0, 0, 0, 0, 63, 0, 0, 2), SCSI_LBA_OUT_OF_RANGE);
	assert_int_equal(RUN(0x28, 0, 0, 0, 0, 65, 0, 0, 0), SCSI_LBA_OUT_OF_RANGE);
	assert_int_equal(RUN(0x88, 0, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 1),
			 SCSI_LBA_OUT_OF_RANGE);
	assert_int_equal(SEND(pattern, 1024, 0x2a, 0, 0, 0, 0, 63, 0, 0, 2),
			 SCSI_LBA_OUT_OF_RANGE);
	assert_int_equal(RUN(0x08, 0, 0, 0, 0), SCSI_LBA_OUT_OF_RANGE); /* 0 means 256 */
	assert_int_equal(RUN(0x35, 0, 0, 0, 0, 0, 0, 0, 65), SCSI_LBA_OUT_OF_RANGE);
}

static void a_transfer_above_the_limit_is_refused(void **state)
{
	d.unit.nr_blocks = UINT64_MAX / 512;
	assert_int_equal(RUN(0xa8, 0, 0, 0, 0, 0, 255, 255, 255, 255),
			 SCSI_INVALID_FIELD_IN_CDB);
	assert_int_equal(RUN(0x8a, 0, [10] = 255), SCSI_INVALID_FIELD_IN_CDB);
	assert_int_equal(
		scsi_data_out_bytes(&d.unit, (uint8_t[16]){0x8a, [10] = 255}, 16), -1);
	assert_int_equal(scsi_data_out_bytes(&d.unit, (uint8_t[16]){0x8a, [13] = 2}, 16),
			 1024);
	assert_int_equal(scsi_data_out_bytes(&d.unit, (uint8_t[16]){0x8a, [13] = 2}, 15),
			 -1);
}

static void buffers_that_are_too_small_lose_nothing_silently(void **state)
{
	memcpy(d.medium, pattern, 1024);
	d.in[700] = 0xee;
	d.in_room = 700;
	assert_int_equal(RUN(0x28, [8] = 2), 0);
	assert_int_equal(d.task.in_bytes, 1024); /* of which the transport sent 700 */
	assert_memory_equal(d.in, pattern, 700);
	assert_int_equal(d.in[700], 0xee);
	assert_int_equal(SEND(pattern, 1023, 0x2a, [8] = 2), SCSI_TRANSFER_TOO_SHORT);
	assert_int_equal(d.task.out_taken, 0);
}

static void a_read_only_unit_refuses_each_change(void **state)
{
	d.unit.read_only = true;
	assert_int_equal(SEND(pattern, 512, 0x2a, [8] = 1), SCSI_WRITE_PROTECTED);
	assert_int_equal(SEND(pattern, 512, 0x41, [8] = 1), SCSI_WRITE_PROTECTED);
	assert_int_equal(SEND(pattern, 24, 0x42, [8] = 24), SCSI_WRITE_PROTECTED);
	assert_int_equal(SEND(pattern, 1024, 0x89, [13] = 1), SCSI_WRITE_PROTECTED);
	assert_int_equal(RUN(0x28, [8] = 1), 0);
	assert_int_equal(RUN(0x1a, 8, 0x3f, 0, 255), 0);
	assert_int_equal(d.in[2], 0x90);
}

static void failures_of_the_medium_become_sense_data(void **state)
{
	d.err = -EIO;
	assert_int_equal(RUN(0x28, [8] = 1), SCSI_READ_ERROR);
	assert_int_equal(SEND(pattern, 512, 0x2a, [8] = 1), SCSI_WRITE_ERROR);
	assert_int_equal(RUN(0x35), SCSI_WRITE_ERROR);
	d.err = -ENOSPC;
	assert_int_equal(SEND(pattern, 512, 0x2a, [8] = 1), SCSI_SPACE_EXHAUSTED);
	assert_int_equal(d.task.sense_bytes, SCSI_SENSE_BYTES);
	assert_int_equal(d.task.sense[0], 0x70);
}

static void fua_and_synchronize_flush(void **state)
{
	assert_int_equal(SEND(pattern, 512, 0x2a, 0, [8] = 1), 0);
	assert_int_equal(d.flushes, 0);
	assert_int_equal(SEND(pattern, 512, 0x2a, 8, [8] = 1), 0);
	assert_int_equal(d.flushes, 1);
	assert_int_equal(RUN(0x91), 0);
	assert_int_equal(d.flushes, 2);
	assert_int_equal(SEND(pattern, 512, 0x0a, 8, 0, 0, 1), SCSI_LBA_OUT_OF_RANGE);
	assert_int_equal(d.flushes, 2); /* those bits are of the LBA in 6 bytes */
}

static void verify_compares_if_asked_to(void **state)
{
	memcpy(d.medium, pattern, 1024);
	assert_int_equal(RUN(0x2f, 0, [8] = 2), 0);
	assert_int_equal(SEND(pattern, 1024, 0x2f, 2, [8] = 2), 0);
	assert_int_equal(SEND(pattern, 512, 0x2f, 6, [8] = 2), SCSI_MISCOMPARE);
	memcpy(d.medium + 512, pattern, 512);
	assert_int_equal(SEND(pattern, 512, 0x2f, 6, [8] = 2), 0);
	d.medium[600] ^= 1;
	assert_int_equal(SEND(pattern, 512, 0x8f, 6, [13] = 2), SCSI_MISCOMPARE);
	assert_int_equal(SEND(pattern, 512, 0x2f, 4, [8] = 2), SCSI_INVALID_FIELD_IN_CDB);
}

static void compare_and_write_writes_all_or_nothing(void **state)
{
	uint8_t both[4 * 512];

	memcpy(both, d.medium, 1024);
	memcpy(both + 1024, pattern, 1024);
	d.medium[1000] = 1; /* in the second block */
	assert_int_equal(SEND(both, 2048, 0x89, [13] = 2), SCSI_MISCOMPARE);
	assert_int_equal(d.task.sense[0], 0xf0);
	assert_int_equal(get_be32(d.task.sense + 3), 1000);
	assert_int_equal(d.medium[1], 0);
	d.medium[1000] = 0;
	assert_int_equal(SEND(both, 2047, 0x89, [13] = 2), SCSI_TRANSFER_TOO_SHORT);
	assert_int_equal(SEND(both, 2048, 0x89, [13] = 2), 0);
	assert_memory_equal(d.medium, pattern, 1024);
	assert_int_equal(RUN(0x89), 0); /* no blocks: nothing to do */
}

static void unmap_checks_all_ranges_before_the_first(void **state)
{
	uint8_t list[40] = {0, 38, 0, 32, [15] = 2, [19] = 3, [31] = 63, [35] = 2};

	memset(d.medium, 1, sizeof(d.medium));
	assert_int_equal(SEND(list, 40, 0x42, [8] = 40), SCSI_LBA_OUT_OF_RANGE);
	assert_int_equal(d.discards, 0);
	list[35] = 1;
	assert_int_equal(SEND(list, 40, 0x42, [8] = 40), 0);
	assert_int_equal(d.discards, 2);
	assert_int_equal(d.medium[2 * 512], 0);
	assert_int_equal(d.medium[5 * 512], 1);
	assert_int_equal(d.medium[63 * 512], 0);
	assert_int_equal(SEND(list, 7, 0x42, [8] = 7), SCSI_PARAMETER_LIST_LENGTH);
	assert_int_equal(SEND(list, 24, 0x42, [8] = 24),
			 0); /* the list ends before its length */
	assert_int_equal(d.discards, 3);
	assert_int_equal(RUN(0x42), 0);
}

/* NORMACA of INQUIRY is not set; the bits of vendors mean nothing. */
static void the_control_byte_is_zero(void **state)
{
	for (int bit = 0; bit < 8; bit++) {
		const uint8_t cdb[16] = {0x28, [8] = 1, [9] = (uint8_t)(1 << bit)};

		assert_int_equal(disk_run(&d, 0, cdb, NULL, 0), SCSI_INVALID_FIELD_IN_CDB);
		assert_int_equal(d.task.sense[17], 9);
	}
}

/* LBPWS and LBPWS10 of page B2 say that blocks cannot be unmapped. */
static void write_same_does_not_unmap_what_it_cannot(void **state)
{
	static const uint8_t zero[512];
	const uint8_t same_10[16] = {0x41, 8, [8] = 1}, same_16[16] = {0x93, 8, [13] = 1};

	d.backend.discard = NULL;
	assert_int_equal(disk_run(&d, 0, same_10, zero, 512), SCSI_INVALID_FIELD_IN_CDB);
	assert_int_equal(d.task.sense[17], 1);
	assert_int_equal(disk_run(&d, 0, same_16, zero, 512), SCSI_INVALID_FIELD_IN_CDB);
}

static void write_same_fills_or_unmaps(void **state)
{
	assert_int_equal(SEND(pattern, 512, 0x41, 0, [5] = 4, [8] = 3), 0);
	for (unsigned block = 4; block < 7; block++)
		assert_memory_equal(d.medium + block * 512, pattern, 512);
	assert_int_equal(SEND(pattern, 512, 0x41, 8, [5] = 7, [8] = 1), 0);
	assert_memory_equal(d.medium + 7 * 512, pattern,
			    512); /* not zero: cannot be unmapped */
	assert_int_equal(d.discards, 0);
	assert_int_equal(RUN(0x93, 9, [9] = 4, [13] = 4), 0);
	assert_int_equal(d.discards, 1);
	assert_int_equal(d.medium[5 * 512 + 1], 0);
	assert_int_equal(SEND(pattern, 512, 0x41), SCSI_INVALID_FIELD_IN_CDB); /* WSNZ */
	assert_int_equal(SEND(pattern, 512, 0x93, 0x10, [13] = 1),
			 SCSI_INVALID_FIELD_IN_CDB);
}

static void luns_are_those_of_units(void **state)
{
	static const uint8_t ready[16] = {0};

	d.target.units[5] = &d.unit;
	assert_int_equal(RUN(0xa0, [9] = 64), 0);
	assert_int_equal(get_be32(d.in), 16);
	assert_int_equal(d.in[8 + 8 + 1], 5);
	assert_int_equal(disk_run(&d, 5, ready, NULL, 0), 0);
	assert_int_equal(disk_run(&d, 0x4005, ready, NULL, 0),
			 0); /* flat space addressing */
	assert_int_equal(disk_run(&d, 6, ready, NULL, 0), SCSI_NO_UNIT);
	assert_int_equal(disk_run(&d, 0x4fff, ready, NULL, 0), SCSI_NO_UNIT);
	assert_int_equal(disk_run(&d, 0x0105, ready, NULL, 0), SCSI_NO_UNIT);
	assert_int_equal(disk_run(&d, 0xc001, ready, NULL, 0), SCSI_NO_UNIT);
	assert_int_equal(RUN(0xa0, 0, 3, [9] = 64), SCSI_INVALID_FIELD_IN_CDB);
}

static void a_unit_attention_is_told_once(void **state)
{
	d.nexus.attention = SCSI_POWER_ON;
	assert_int_equal(RUN(0x12, 0, 0, 0, 96), 0);
	assert_int_equal(RUN(0xa0, [9] = 64), 0);
	assert_int_equal(SEND(pattern, 512, 0x2a, [8] = 1), SCSI_POWER_ON);
	assert_int_equal(d.medium[1], 0); /* it was not performed */
	assert_int_equal(RUN(0x00), 0);
	d.nexus.attention = SCSI_UNIT_RESET;
	assert_int_equal(RUN(0x03, 0, 0, 0, 18), 0);
	assert_int_equal(d.in[2], 6);
	assert_int_equal(get_be16(d.in + 12), 0x2903);
	assert_int_equal(RUN(0x00), 0);
}

static void modes_are_told_in_both_lengths(void **state)
{
	assert_int_equal(RUN(0x1a, 8, 8, 0, 255), 0);
	assert_int_equal(d.task.in_bytes, 4 + 20);
	assert_int_equal(d.in[0], 23);
	assert_int_equal(d.in[4 + 2], 4); /* WCE */
	assert_int_equal(RUN(0x1a, 8, 0x48, 0, 255), 0);
	assert_int_equal(d.in[4 + 2], 0); /* and it cannot be changed */
	assert_int_equal(RUN(0x5a, 0x10, 0x3f, [8] = 255), 0);
	assert_int_equal(d.task.in_bytes, 8 + 16 + 32);
	assert_int_equal(get_be64(d.in + 8), DISK_BLOCKS);
	assert_int_equal(RUN(0x1a, 0, 0xc8, 0, 255), SCSI_SAVING_UNSUPPORTED);
	assert_int_equal(RUN(0x1a, 0, 0x09, 0, 255), SCSI_INVALID_FIELD_IN_CDB);
}

static void a_unit_that_cannot_discard_has_no_unmap(void **state)
{
	size_t bytes;

	assert_int_equal(RUN(0xa3, 0x0c, 1, 0x42, [9] = 64), 0);
	assert_int_equal(d.in[1], 3);
	assert_int_equal(RUN(0xa3, 0x0c, 0, [8] = 4), 0);
	bytes = get_be32(d.in);
	d.backend.discard = NULL;
	assert_int_equal(RUN(0xa3, 0x0c, 1, 0x42, [9] = 64), 0);
	assert_int_equal(d.in[1], 1);
	assert_int_equal(RUN(0xa3, 0x0c, 0, [8] = 4), 0);
	assert_int_equal(get_be32(d.in), bytes - 8);
	for (size_t i = 0; i < bytes / 8 - 1; i++)
		assert_int_not_equal(d.in[4 + i * 8], 0x42);
	assert_int_equal(RUN(0x42), SCSI_INVALID_OPCODE);
}

static void the_table_of_commands_is_true(void **state)
{
	uint8_t list[4 + 64 * 8];
	size_t nr;

	assert_int_equal(RUN(0xa3, 0x0c, 0, [8] = 4), 0);
	nr = get_be32(d.in) / 8;
	assert_in_range(nr, 20, 64);
	memcpy(list, d.in, 4 + nr * 8);
	for (size_t i = 0; i < nr; i++) {
		const uint8_t *c = list + 4 + i * 8;
		const uint8_t cdb[16] = {0xa3, 0x0c, c[5] ? 2 : 1, c[0],
					 c[2], c[3], [9] = 64};

		assert_int_equal(disk_run(&d, 0, cdb, NULL, 0), 0);
		assert_int_equal(d.in[1], 3);
		assert_int_equal(get_be16(d.in + 2), get_be16(c + 6));
		assert_int_equal(d.in[4],
				 c[0]); /* the first byte of the usage is the opcode */
	}
	assert_int_equal(RUN(0xa3, 0x0c, 0x81, 0x28, [9] = 64), 0); /* with its time-outs */
	assert_int_equal(d.task.in_bytes, 4 + 10 + 12);
	assert_int_equal(d.in[1], 0x83);
	assert_int_equal(get_be16(d.in + 14), 10);
	assert_int_equal(RUN(0xa3, 0x0c, 0x80, [8] = 16), 0);
	assert_int_equal(get_be32(d.in), nr * 20);
	assert_int_equal(d.in[4 + 20 + 5] & 2, 2);
	assert_int_equal(RUN(0xa3, 0x0c, 1, 0xf0, [9] = 64), 0);
	assert_int_equal(d.in[1], 1);
	assert_int_equal(RUN(0xa3, 0x0c, 1, 0x9e, [9] = 64), SCSI_INVALID_FIELD_IN_CDB);
	assert_int_equal(RUN(0xf0), SCSI_INVALID_OPCODE);
	assert_int_equal(RUN(0x00, 1),
			 SCSI_INVALID_FIELD_IN_CDB); /* a bit that nobody reads */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(inquiry_describes_a_disk, setup),
		cmocka_unit_test_setup(every_page_that_is_listed_can_be_read, setup),
		cmocka_unit_test_setup(capacity_is_of_the_last_block, setup),
		cmocka_unit_test_setup(what_is_written_is_read_by_every_length_of_cdb,
				       setup),
		cmocka_unit_test_setup(blocks_past_the_end_are_out_of_range, setup),
		cmocka_unit_test_setup(a_transfer_above_the_limit_is_refused, setup),
		cmocka_unit_test_setup(buffers_that_are_too_small_lose_nothing_silently,
				       setup),
		cmocka_unit_test_setup(a_read_only_unit_refuses_each_change, setup),
		cmocka_unit_test_setup(failures_of_the_medium_become_sense_data, setup),
		cmocka_unit_test_setup(fua_and_synchronize_flush, setup),
		cmocka_unit_test_setup(verify_compares_if_asked_to, setup),
		cmocka_unit_test_setup(compare_and_write_writes_all_or_nothing, setup),
		cmocka_unit_test_setup(unmap_checks_all_ranges_before_the_first, setup),
		cmocka_unit_test_setup(the_control_byte_is_zero, setup),
		cmocka_unit_test_setup(write_same_does_not_unmap_what_it_cannot, setup),
		cmocka_unit_test_setup(write_same_fills_or_unmaps, setup),
		cmocka_unit_test_setup(luns_are_those_of_units, setup),
		cmocka_unit_test_setup(a_unit_attention_is_told_once, setup),
		cmocka_unit_test_setup(modes_are_told_in_both_lengths, setup),
		cmocka_unit_test_setup(a_unit_that_cannot_discard_has_no_unmap, setup),
		cmocka_unit_test_setup(the_table_of_commands_is_true, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
