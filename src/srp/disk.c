/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Commands to a disk, and what it answers. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "srp/disk.h"

enum operation {
	TEST_UNIT_READY = 0x00,
	INQUIRY = 0x12,
	MODE_SENSE_6 = 0x1a,
	UNMAP = 0x42,
	READ_16 = 0x88,
	WRITE_16 = 0x8a,
	SYNCHRONIZE_CACHE_16 = 0x91,
	WRITE_SAME_16 = 0x93,
	SERVICE_ACTION_IN_16 = 0x9e,
	REPORT_LUNS = 0xa0,
};

enum status {
	GOOD = 0x00,
	CHECK_CONDITION = 0x02,
	BUSY = 0x08,
	TASK_SET_FULL = 0x28,
	TASK_ABORTED = 0x40,
};

#define READ_CAPACITY_16 0x10 /* a service action */
#define CACHING_PAGE	 0x08

/* --- the probe --------------------------------------------------------------------- */

uint32_t srpi_probe_command(enum srpi_probe_step step, uint8_t cdb[SRPI_CDB_BYTES])
{
	static const struct {
		uint8_t cdb[SRPI_CDB_BYTES];
		uint32_t bytes;
	} steps[] = {
		[SRPI_INQUIRY] = {{INQUIRY, 0, 0, 0, 96}, 96},
		[SRPI_READY] = {{TEST_UNIT_READY}, 0},
		[SRPI_CAPACITY] = {{SERVICE_ACTION_IN_16, READ_CAPACITY_16, [13] = 32}, 32},
		[SRPI_LIMITS] = {{INQUIRY, 1, 0xb0, 0, 64}, 64},
		[SRPI_PROVISIONING] = {{INQUIRY, 1, 0xb2, 0, 64}, 64},
		[SRPI_MODE] = {{MODE_SENSE_6, 8 /* no block descriptors */, CACHING_PAGE, 0, 64},
			       64},
		[SRPI_IDENTITY] = {{INQUIRY, 1, 0x83, 0, 4 + SRPI_IDENTITY_BYTES},
				   4 + SRPI_IDENTITY_BYTES},
	};

	memcpy(cdb, steps[step].cdb, SRPI_CDB_BYTES);
	return steps[step].bytes;
}

static void copy_text(char *to, const uint8_t *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = from[i] >= ' ' && from[i] < 0x7f ? (char)from[i] : '?';
	while (bytes && to[bytes - 1] == ' ')
		bytes--;
	to[bytes] = '\0';
}

static int take_inquiry(struct srpi_disk *disk, const uint8_t *data, uint32_t bytes)
{
	if (bytes < 36 || data[0]) /* a direct-access block device that is there */
		return -ENODEV;
	copy_text(disk->vendor, data + 8, 8);
	copy_text(disk->product, data + 16, 16);
	return 0;
}

static int take_capacity(struct srpi_disk *disk, const uint8_t *data, uint32_t bytes)
{
	uint64_t last = bytes >= 16 ? get_be64(data) : UINT64_MAX;
	uint32_t block = bytes >= 16 ? get_be32(data + 8) : 0;

	if (block < 512 || block > 65536 || block & (block - 1) || last >= INT64_MAX / block)
		return -ENODEV;
	disk->blocks = last + 1;
	disk->block_bytes = block;
	disk->unmapped_is_zero = (data[14] & 0xc0) == 0xc0; /* LBPME, LBPRZ */
	return 0;
}

static void take_limits(struct srpi_disk *disk, const uint8_t *data, uint32_t bytes)
{
	if (bytes >= 12)
		disk->max_transfer_blocks = get_be32(data + 8);
	if (bytes >= 28)
		disk->max_unmap_blocks = get_be32(data + 20);
	if (bytes >= 44)
		disk->max_same_blocks = get_be64(data + 36);
}

static void take_provisioning(struct srpi_disk *disk, const uint8_t *data, uint32_t bytes)
{
	if (bytes < 8)
		return;
	disk->can_unmap = data[5] & 0x80;
	disk->can_unmap_same = data[5] & 0x40;
}

static void take_mode(struct srpi_disk *disk, const uint8_t *data, uint32_t bytes)
{
	if (bytes < 4)
		return;
	disk->read_only = data[2] & 0x80;
	disk->can_fua = data[2] & 0x10;
	if (bytes >= 4u + data[3] + 3 && (data[4 + data[3]] & 0x3f) == CACHING_PAGE)
		disk->write_back = data[4 + data[3] + 2] & 4;
}

int srpi_probe_take(struct srpi_disk *disk, enum srpi_probe_step step, bool ok,
		    const uint8_t *data, uint32_t bytes)
{
	if (!ok)
		return step <= SRPI_CAPACITY ? -ENODEV : 0;
	switch (step) {
	case SRPI_INQUIRY:
		return take_inquiry(disk, data, bytes);
	case SRPI_CAPACITY:
		return take_capacity(disk, data, bytes);
	case SRPI_LIMITS:
		take_limits(disk, data, bytes);
		break;
	case SRPI_PROVISIONING:
		take_provisioning(disk, data, bytes);
		break;
	case SRPI_MODE:
		take_mode(disk, data, bytes);
		break;
	case SRPI_IDENTITY:
		if (bytes > 4)
			memcpy(disk->identity, data + 4, MIN(bytes - 4, SRPI_IDENTITY_BYTES));
		break;
	default:
		break;
	}
	return 0;
}

bool srpi_is_same(const struct srpi_disk *before, const struct srpi_disk *now)
{
	return before->blocks == now->blocks && before->block_bytes == now->block_bytes &&
	       before->read_only == now->read_only &&
	       !memcmp(before->identity, now->identity, sizeof(now->identity));
}

uint32_t srpi_report_luns(uint8_t cdb[SRPI_CDB_BYTES])
{
	uint32_t bytes = 8 + 8 * SRPI_MAX_UNITS;

	memset(cdb, 0, SRPI_CDB_BYTES);
	cdb[0] = REPORT_LUNS;
	put_be32(cdb + 6, bytes);
	return bytes;
}

bool srpi_lun_nth(const uint8_t *list, uint32_t bytes, uint32_t i, uint8_t lun[8])
{
	if (bytes < 8 || i >= SRPI_MAX_UNITS || i >= get_be32(list) / 8 || bytes < 16 + 8 * i)
		return false;
	memcpy(lun, list + 8 + 8 * i, 8);
	return true;
}

/* --- use ------------------------------------------------------------------------------ */

static void transfer(uint8_t *cdb, enum operation op, uint8_t flags, uint64_t lba,
		     uint32_t blocks)
{
	memset(cdb, 0, SRPI_CDB_BYTES);
	cdb[0] = op;
	cdb[1] = flags;
	put_be64(cdb + 2, lba);
	put_be32(cdb + 10, blocks);
}

void srpi_read(uint8_t cdb[SRPI_CDB_BYTES], uint64_t lba, uint32_t blocks, bool fua)
{
	transfer(cdb, READ_16, fua ? 8 : 0, lba, blocks);
}

void srpi_write(uint8_t cdb[SRPI_CDB_BYTES], uint64_t lba, uint32_t blocks, bool fua)
{
	transfer(cdb, WRITE_16, fua ? 8 : 0, lba, blocks);
}

void srpi_flush(uint8_t cdb[SRPI_CDB_BYTES])
{
	transfer(cdb, SYNCHRONIZE_CACHE_16, 0, 0, 0);
}

void srpi_write_same(uint8_t cdb[SRPI_CDB_BYTES], uint64_t lba, uint32_t blocks, bool unmap)
{
	transfer(cdb, WRITE_SAME_16, unmap ? 8 : 0, lba, blocks);
}

void srpi_unmap(uint8_t cdb[SRPI_CDB_BYTES], uint8_t parameters[SRPI_UNMAP_BYTES],
		uint64_t lba, uint32_t blocks)
{
	memset(cdb, 0, SRPI_CDB_BYTES);
	cdb[0] = UNMAP;
	put_be16(cdb + 7, SRPI_UNMAP_BYTES);
	memset(parameters, 0, SRPI_UNMAP_BYTES);
	put_be16(parameters, SRPI_UNMAP_BYTES - 2);
	put_be16(parameters + 2, SRPI_UNMAP_BYTES - 8);
	put_be64(parameters + 8, lba);
	put_be32(parameters + 16, blocks);
}

/* --- outcomes -------------------------------------------------------------------------- */

/* Fixed and descriptor formats (SPC-4 4.5). Return: 0xKCCQQ; 0: none */
static uint32_t read_sense(const uint8_t *sense, uint32_t bytes)
{
	uint8_t code = sense && bytes ? sense[0] & 0x7f : 0;

	if ((code == 0x70 || code == 0x71) && bytes >= 14)
		return (sense[2] & 0xfu) << 16 | (uint32_t)sense[12] << 8 | sense[13];
	if ((code == 0x72 || code == 0x73) && bytes >= 4)
		return (sense[1] & 0xfu) << 16 | (uint32_t)sense[2] << 8 | sense[3];
	return 0;
}

bool srpi_units_changed(const uint8_t *sense, uint32_t bytes)
{
	const uint32_t code = read_sense(sense, bytes);

	return code == 0x63f0e    /* reported LUNs data has changed */
	       || code == 0x63f03 /* inquiry data */
	       || code == 0x62a09; /* capacity data */
}

bool srpi_unit_is_new(const uint8_t *sense, uint32_t bytes)
{
	return read_sense(sense, bytes) == 0x62900; /* power on */
}

enum { NOT_READY = 2, ILLEGAL_REQUEST = 5, UNIT_ATTENTION = 6, DATA_PROTECT = 7 };

static int error_of(uint32_t sense)
{
	if (sense == 0x72707) /* space allocation failed */
		return ENOSPC;
	if (sense == 0x52500 || sense >> 16 == NOT_READY)
		return ENODEV;
	if (sense >> 16 == ILLEGAL_REQUEST)
		return EINVAL;
	return sense >> 16 == DATA_PROTECT ? EPERM : EIO;
}

enum srpi_verdict srpi_judge(uint8_t status, const uint8_t *sense, uint32_t bytes, int *error)
{
	uint32_t code = read_sense(sense, bytes);

	*error = 0;
	switch (status) {
	case GOOD:
		return SRPI_GOOD;
	case BUSY:
	case TASK_SET_FULL:
		return SRPI_LATER;
	case TASK_ABORTED: /* by a reset that another initiator asked for */
		return SRPI_REPEAT;
	case CHECK_CONDITION:
		if (code >> 16 == UNIT_ATTENTION)
			return SRPI_REPEAT;
		if (code >> 8 == 0x204) /* becoming ready */
			return SRPI_LATER;
		*error = error_of(code);
		return SRPI_FAILED;
	default:
		*error = EIO;
		return SRPI_FAILED;
	}
}
