/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How a target describes itself by device management (IBA v1 16.3, annex A1; SRP annex
 * B.7): an I/O unit with one controller in slot 1, which has one service.
 */
#ifndef SOFTIB_SRP_DESCRIBE_H
#define SOFTIB_SRP_DESCRIBE_H

#include "wire/dm.h"

#define SRP_SERVICE_NAME_BYTES 40

/** struct srp_description - the I/O controller */
struct srp_description {
	uint64_t guid;
	uint32_t vendor_id, device_id;
	uint16_t change_id; /* of the I/O unit */
	uint16_t send_queue_depth;
	uint32_t send_size_bytes, rdma_size_bytes;
	char id_string[64]; /* up to its NUL */
};

/** srp_service_id() - of the target with this GUID. Linux has the GUID itself; but those
 * of software adapters lie where service ids belong to the operating system (A3.2.3.3),
 * so a bit above makes it one that is administered externally. */
uint64_t srp_service_id(uint64_t guid);
/** srp_service_name() - "SRP.T10:" and the identifier extension, which is the GUID */
void srp_service_name(uint64_t guid, char name[SRP_SERVICE_NAME_BYTES]);
/** srp_port_id() - identifier extension, then GUID */
void srp_port_id(uint64_t guid, uint8_t id[16]);

/** srp_transport_id() - what SCSI commands call the initiator port @id (SPC-4 7.6.4.6) */
void srp_transport_id(const uint8_t id[16], uint8_t to[24]);

/** srp_describe() - answer a MAD of the device management class
 *  Return: is there an answer, in @out? Only Get and Set have one. */
bool srp_describe(const struct srp_description *d, const uint8_t in[WIRE_MAD_BYTES],
		  uint8_t out[WIRE_MAD_BYTES]);

#endif
