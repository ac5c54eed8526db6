/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The file that preserves the reservations of a unit beyond the end of softibd (APTPL). It has two slots,
 * which are written alternately, so that the previous state remains if a loss of power interrupts a write.
 * A slot, in network byte order:
 *
 *  bytes    what
 *  8        SIGNATURE
 *  8        serial number: the slot with the higher one is the newer
 *  4        bytes of the state
 *  4        CRC-32 of the slot with this field 0, up to the end of the state
 *  n        the state: scsi_reservations_save()
 */
#include <errno.h>
#include <isa-l/crc.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "ulp/srpt/private.h"

#define SIGNATURE  "softibPR"
#define HEAD_BYTES 24
#define SLOT_BYTES 4096
#define CRC_AT	   20

_Static_assert(HEAD_BYTES + SCSI_SAVED_BYTES <= SLOT_BYTES, "a slot has room for all");

/* Return: the length of the state in @slot; -1: there is none */
static ssize_t check_slot(u8 slot[SLOT_BYTES])
{
	const u32 bytes = get_be32(slot + 16), crc = get_be32(slot + CRC_AT);

	if (memcmp(slot, SIGNATURE, 8) != 0 || bytes > SLOT_BYTES - HEAD_BYTES)
		return -1;
	put_be32(slot + CRC_AT, 0);
	return crc32_gzip_refl(0, slot, HEAD_BYTES + bytes) == crc ? (ssize_t)bytes : -1;
}

/* If the slot has a state that is newer than unit->kept_serial, make it the unit's state. Return:
 * true if it has */
static bool load_slot(struct srpt_unit *unit, unsigned int i)
{
	u8 slot[SLOT_BYTES] = {0};
	ssize_t n = pread(unit->kept_fd, slot, sizeof(slot), (off_t)i * SLOT_BYTES), bytes;
	u64 serial = get_be64(slot + 8);

	bytes = n < HEAD_BYTES ? -1 : check_slot(slot);
	if (bytes < 0 || serial <= unit->kept_serial ||
	    scsi_reservations_restore(&unit->scsi.reservations, slot + HEAD_BYTES,
				      (size_t)bytes))
		return false;
	unit->kept_serial = serial;
	return true;
}

int srpt_keep_load(struct srpt_unit *unit)
{
	bool any = false;
	struct stat st;

	if (fstat(unit->kept_fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADF;
	unit->kept_file[0] = st.st_dev;
	unit->kept_file[1] = st.st_ino;
	if (flock(unit->kept_fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -ETXTBSY : -errno;
	for (unsigned int i = 0; i < 2; i++)
		any |= load_slot(unit, i);
	return any || !st.st_size ? 0 : -EBADMSG;
}

void srpt_keep_unlock(const struct srpt_unit *unit)
{
	if (unit->kept_fd >= 0)
		flock(unit->kept_fd, LOCK_UN);
}

int srpt_keep(void *ctx, const u8 *state, size_t bytes)
{
	struct srpt_unit *unit = ctx;
	u8 slot[SLOT_BYTES] = SIGNATURE;
	ssize_t n;

	put_be64(slot + 8, unit->kept_serial + 1);
	put_be32(slot + 16, (u32)bytes);
	memcpy(slot + HEAD_BYTES, state, bytes);
	put_be32(slot + CRC_AT, crc32_gzip_refl(0, slot, HEAD_BYTES + bytes));
	n = pwrite(unit->kept_fd, slot, sizeof(slot),
		   (off_t)((unit->kept_serial + 1) % 2 * SLOT_BYTES));
	if (n != (ssize_t)sizeof(slot) || fdatasync(unit->kept_fd))
		return n < 0 ? -errno : -EIO;
	unit->kept_serial++;
	return 0;
}
