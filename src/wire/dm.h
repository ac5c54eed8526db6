/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Device management (IBA v1 16.3): which I/O controllers a unit has and which
 * services they offer. The header is struct wire_gmp (pma.h).
 */
#ifndef SOFTIB_WIRE_DM_H
#define SOFTIB_WIRE_DM_H

#include "wire/mad.h"

#define WIRE_DM_CLASS_VERSION 1
#define WIRE_DM_DATA_OFFSET 64
#define WIRE_DM_DATA_BYTES 192

enum wire_dm_attr {
	WIRE_DM_CLASS_PORT_INFO = 0x0001,
	WIRE_DM_NOTICE = 0x0002,
	WIRE_DM_IO_UNIT_INFO = 0x0010,
	WIRE_DM_IOC_PROFILE = 0x0011,	 /* attr_mod: slot 1.. */
	WIRE_DM_SERVICE_ENTRIES = 0x0012, /* attr_mod: slot << 16, last << 8, first */
	WIRE_DM_DIAGNOSTIC_TIMEOUT = 0x0020,
	WIRE_DM_PREPARE_TO_TEST = 0x0021,
	WIRE_DM_TEST_DEVICE_ONCE = 0x0022,
	WIRE_DM_TEST_DEVICE_LOOP = 0x0023,
	WIRE_DM_DIAG_CODE = 0x0024,
};

enum wire_dm_slot { WIRE_DM_NO_IOC = 0, WIRE_DM_IOC = 1, WIRE_DM_NO_SLOT = 0xf };

/** struct wire_io_unit_info - IOUnitInfo (16.3.3.3) */
struct wire_io_unit_info {
	uint16_t change_id;
	uint8_t max_controllers;
	bool option_rom, diag_device_id;
	uint8_t controller[256]; /* enum wire_dm_slot, 4 bits; [0]: slot 1 */
};
WIRE_CODEC(io_unit_info)

/** struct wire_ioc_profile - IOControllerProfile (16.3.3.4) */
struct wire_ioc_profile {
	uint64_t guid;
	uint32_t vendor_id; /* 24 bits */
	uint32_t device_id;
	uint16_t device_version;
	uint32_t subsystem_vendor_id; /* 24 bits */
	uint32_t subsystem_id;
	uint16_t io_class, io_subclass;
	uint16_t protocol, protocol_version;
	uint16_t send_queue_depth;
	uint8_t rdma_read_depth;
	uint32_t send_size_bytes, rdma_size_bytes;
	uint8_t operations; /* bits: ST SF RT RF WT WF AT AF */
	uint8_t nr_services;
	uint8_t id_string[64];
};
WIRE_CODEC(ioc_profile)

/** struct wire_service_entries - ServiceEntries (16.3.3.5) */
struct wire_service_entries {
	uint8_t name0[40];
	uint64_t id0;
	uint8_t name1[40];
	uint64_t id1;
	uint8_t name2[40];
	uint64_t id2;
	uint8_t name3[40];
	uint64_t id3;
};
WIRE_CODEC(service_entries)

/** struct wire_dm_word - DiagCode (16.3.3.9) and the other 32-bit attributes */
struct wire_dm_word {
	uint32_t value;
};
WIRE_CODEC(dm_word)

#endif
