/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reservations as bytes, for what outlasts a loss of power: the number of registrations, the type
 * of the reservation (0: none), which of them holds it, 0; then of each its TransportID, its key
 * and whether it is for all ports. Who is to be told something, and which commands are aborted,
 * is gone with the power.
 */
#include <errno.h>

#include "scsi/private.h"

#define HEAD_BYTES  4
#define ENTRY_BYTES (SCSI_TRANSPORT_ID_BYTES + 9)

size_t scsi_reservations_save(const struct scsi_reservations *r, uint8_t to[SCSI_SAVED_BYTES])
{
	uint8_t nr = 0;

	memset(to, 0, HEAD_BYTES);
	for (uint8_t i = 0; r->kept && i < SCSI_MAX_REGISTRANTS; i++) {
		const struct scsi_registrant *e = &r->registrants[i];
		uint8_t *at = to + HEAD_BYTES + (size_t)nr * ENTRY_BYTES;

		if (!e->key)
			continue;
		if (r->type && i == r->holder)
			to[2] = nr;
		memcpy(at, e->id, SCSI_TRANSPORT_ID_BYTES);
		put_be64(at + SCSI_TRANSPORT_ID_BYTES, e->key);
		at[SCSI_TRANSPORT_ID_BYTES + 8] = e->all_ports;
		nr++;
	}
	to[0] = nr;
	to[1] = r->kept ? r->type : 0;
	return HEAD_BYTES + (size_t)nr * ENTRY_BYTES;
}

static bool is_valid(const uint8_t *from, size_t bytes)
{
	const uint8_t nr = bytes ? from[0] : 0;

	if (bytes < HEAD_BYTES || nr > SCSI_MAX_REGISTRANTS ||
	    bytes != HEAD_BYTES + (size_t)nr * ENTRY_BYTES || from[3])
		return false;
	for (uint8_t i = 0; i < nr; i++) {
		const uint8_t *at = from + HEAD_BYTES + (size_t)i * ENTRY_BYTES;

		if (!get_be64(at + SCSI_TRANSPORT_ID_BYTES) ||
		    at[SCSI_TRANSPORT_ID_BYTES + 8] > 1)
			return false;
	}
	return from[1] ? scsi_is_reservation_type(from[1]) && from[2] < nr : !from[2];
}

int scsi_reservations_restore(struct scsi_reservations *r, const uint8_t *from, size_t bytes)
{
	if (!is_valid(from, bytes))
		return -EINVAL;
	*r = (struct scsi_reservations){.kept = from[0], .type = from[1], .holder = from[2]};
	for (uint8_t i = 0; i < from[0]; i++) {
		const uint8_t *at = from + HEAD_BYTES + (size_t)i * ENTRY_BYTES;
		struct scsi_registrant *e = &r->registrants[i];

		e->known = true;
		memcpy(e->id, at, SCSI_TRANSPORT_ID_BYTES);
		e->key = get_be64(at + SCSI_TRANSPORT_ID_BYTES);
		e->all_ports = at[SCSI_TRANSPORT_ID_BYTES + 8];
	}
	return 0;
}
