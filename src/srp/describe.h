/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How a target describes itself by device management (IBA v1 16.3, annex A1; SRP annex
 * B.7): an I/O unit with controllers in some of its slots, each of which has one service.
 */
#ifndef SOFTIB_SRP_DESCRIBE_H
#define SOFTIB_SRP_DESCRIBE_H

#include "wire/dm.h"

#define SRP_SERVICE_NAME_BYTES 40

#define SRP_CONTROLLERS 4 /* slots of an I/O unit */

/** struct srp_description - an I/O controller */
struct srp_description {
	uint64_t guid; /* 0: its slot is empty */
	uint32_t vendor_id, device_id;
	uint16_t send_queue_depth;
	uint32_t send_size_bytes, rdma_size_bytes;
	char id_string[64]; /* up to its NUL */
};

/** struct srp_io_unit - the I/O unit
 *  @change_id: another one whenever a controller came or went
 *  @controller: [0] is in slot 1 */
struct srp_io_unit {
	uint16_t change_id;
	struct srp_description controller[SRP_CONTROLLERS];
};

/** srp_controller_guid() - of the controller in @slot (1 to SRP_CONTROLLERS) of an adapter with
 *  @node_guid, which is that of slot 1 itself. Spec: EUI-64, locally administered */
uint64_t srp_controller_guid(uint64_t node_guid, unsigned int slot);
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
bool srp_describe(const struct srp_io_unit *unit, const uint8_t in[WIRE_MAD_BYTES],
		  uint8_t out[WIRE_MAD_BYTES]);

#endif
