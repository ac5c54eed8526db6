/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* INQUIRY: what a unit is, its names, and its limits (SPC-4 6.6, 7.8; SBC-3 6.6). */
#include "scsi/private.h"

#define VENDOR	 "softib  "	    /* 8 characters */
#define PRODUCT	 "SCSI disk       " /* 16 */
#define REVISION "1   "		    /* 4 */

#define STANDARD_BYTES	96
#define MAX_PAGE_BYTES	64
#define MAX_DESCRIPTORS 3

enum { NO_UNIT = 0x7f, HIERARCHICAL = 0x10, COMMAND_QUEUE = 0x02 };
enum { SAM_5 = 0x00a0, SPC_4 = 0x0460, SBC_3 = 0x04c0 };

static void standard(struct scsi_call *call, size_t room)
{
	static const uint16_t versions[MAX_DESCRIPTORS] = {SAM_5, SPC_4, SBC_3};
	uint8_t data[STANDARD_BYTES] = {
		[0] = call->unit ? 0 : NO_UNIT,
		[2] = 6, /* SPC-4 */
		[3] = HIERARCHICAL | 2,
		[4] = STANDARD_BYTES - 5,
		[7] = COMMAND_QUEUE,
	};

	memcpy(data + 8, VENDOR, 8);
	memcpy(data + 16, PRODUCT, 16);
	memcpy(data + 32, REVISION, 4);
	for (size_t i = 0; i < MAX_DESCRIPTORS; i++)
		put_be16(data + 58 + 2 * i, versions[i]);
	scsi_reply(call, data, sizeof(data), room);
}

static void put_hex(uint8_t to[16], uint64_t id)
{
	for (int i = 15; i >= 0; i--, id >>= 4)
		to[i] = (uint8_t) "0123456789abcdef"[id & 15];
}

/* --- pages: each fills in what follows the header of four bytes. Return: bytes --- */

static size_t serial_number(const struct scsi_unit *u, uint8_t *to)
{
	put_hex(to, u->id);
	return 16;
}

/* A T10 vendor id, which is unique with the vendor; and an NAA identifier of the locally
 * assigned kind, which hosts make paths of (SPC-4 7.8.6). */
static size_t identification(const struct scsi_unit *u, uint8_t *to)
{
	uint8_t *naa = to + 4 + 24;

	memcpy(to, (uint8_t[]){2, 1, 0, 24}, 4); /* ASCII; of the unit, T10 vendor id */
	memcpy(to + 4, VENDOR, 8);
	put_hex(to + 12, u->id);
	memcpy(naa, (uint8_t[]){1, 3, 0, 8}, 4); /* binary; of the unit, NAA */
	put_be64(naa + 4, 3ull << 60 | (u->id & ~(15ull << 60)));
	return 4 + 24 + 4 + 8;
}

static size_t block_limits(const struct scsi_unit *u, uint8_t *to)
{
	const uint32_t transfer = SCSI_MAX_TRANSFER_BYTES / u->block_bytes;

	to[0] = 1;	   /* WSNZ: WRITE SAME of zero blocks is refused */
	to[1] = UINT8_MAX; /* COMPARE AND WRITE: the field's own limit */
	put_be16(to + 2, 1);
	put_be32(to + 4, transfer);
	put_be32(to + 8, MIN(transfer, (1u << 20) / u->block_bytes));
	if (u->backend->discard) {
		put_be32(to + 16, UINT32_MAX);
		put_be32(to + 20, SCSI_MAX_UNMAP_DESCS);
		put_be32(to + 24, 1);
	}
	put_be64(to + 32, SCSI_MAX_SAME_BYTES / u->block_bytes);
	return 60;
}

static size_t characteristics(const struct scsi_unit *u, uint8_t *to)
{
	put_be16(to, 1); /* it does not rotate */
	return 60;
}

/* Thin provisioning: UNMAP and both WRITE SAME commands unmap blocks, which then read as
 * zero. */
static size_t provisioning(const struct scsi_unit *u, uint8_t *to)
{
	if (u->backend->discard) {
		to[1] = 0xe0 | 0x04; /* LBPU, LBPWS, LBPWS10; LBPRZ */
		to[2] = 2;	     /* thin */
	}
	return 4;
}

static size_t supported(const struct scsi_unit *u, uint8_t *to);

static const struct {
	uint8_t code;
	size_t (*fill)(const struct scsi_unit *u, uint8_t *to);
} pages[] = {
	{0x00, supported},    {0x80, serial_number},   {0x83, identification},
	{0xb0, block_limits}, {0xb1, characteristics}, {0xb2, provisioning},
};

static size_t supported(const struct scsi_unit *u, uint8_t *to)
{
	for (size_t i = 0; i < ARRAY_SIZE(pages); i++)
		to[i] = pages[i].code;
	return ARRAY_SIZE(pages);
}

void scsi_inquiry(struct scsi_call *call)
{
	const uint8_t *cdb = call->task->cdb;
	const size_t room = get_be16(cdb + 3);
	uint8_t data[4 + MAX_PAGE_BYTES] = {0, cdb[2]};

	if (!(cdb[1] & 1)) {
		if (cdb[2])
			scsi_bad_cdb(call, 2);
		else
			standard(call, room);
		return;
	}
	for (size_t i = 0; call->unit && i < ARRAY_SIZE(pages); i++)
		if (pages[i].code == cdb[2]) {
			size_t bytes = pages[i].fill(call->unit, data + 4);

			put_be16(data + 2, (uint16_t)bytes);
			scsi_reply(call, data, 4 + bytes, room);
			return;
		}
	scsi_bad_cdb(call, 2);
}
