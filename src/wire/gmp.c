/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The tables of the vendor, baseboard and device management classes. */
#include "wire/attrs.h"
#include "wire/bm.h"
#include "wire/dm.h"
#include "wire/fields_table.h"
#include "wire/vendor.h"

#define S struct wire_vendor
static const struct wire_field vendor_fields[] = {
	N(mad, 0, mad),
	N(rmpp, 192, rmpp),
	R(288, 8),
	F(oui, 296, 24),
};
CODEC(vendor, "VendorOUI", WIRE_VENDOR_HIGH_DATA_OFFSET);
#undef S

/* --- baseboard management --- */

#define S struct wire_bm
static const struct wire_field bm_fields[] = {
	N(mad, 0, mad),
	F(bkey, 192, 64),
	R(256, 256),
};
CODEC(bm, "BM", WIRE_BM_DATA_OFFSET);
#undef S

#define S struct wire_bkey_info
static const struct wire_field bkey_info_fields[] = {
	F(bkey, 0, 64),
	F(protect, 64, 1),
	R(65, 15),
	F(lease_period_s, 80, 16),
	F(violations, 96, 16),
};
CODEC(bkey_info, "BKeyInfo", 14);
#undef S

#define S struct wire_bm_command
static const struct wire_field bm_command_fields[] = {
	B(data, 0, WIRE_BM_DATA_BYTES),
};
CODEC(bm_command, "BM command", WIRE_BM_DATA_BYTES);
#undef S

const struct wire_attr wire_bm_attrs[] = {
	{WIRE_ATTR_CLASS_PORT_INFO, &wire_class_port_info_codec},
	{WIRE_ATTR_NOTICE, &wire_notice_codec},
	{WIRE_BM_BKEY_INFO, &wire_bkey_info_codec},
	{WIRE_BM_WRITE_VPD, &wire_bm_command_codec},
	{WIRE_BM_READ_VPD, &wire_bm_command_codec},
	{WIRE_BM_RESET_IBML, &wire_bm_command_codec},
	{WIRE_BM_SET_MODULE_PM_CONTROL, &wire_bm_command_codec},
	{WIRE_BM_GET_MODULE_PM_CONTROL, &wire_bm_command_codec},
	{WIRE_BM_SET_UNIT_PM_CONTROL, &wire_bm_command_codec},
	{WIRE_BM_GET_UNIT_PM_CONTROL, &wire_bm_command_codec},
	{WIRE_BM_SET_IOC_PM_CONTROL, &wire_bm_command_codec},
	{WIRE_BM_GET_IOC_PM_CONTROL, &wire_bm_command_codec},
	{WIRE_BM_SET_MODULE_STATE, &wire_bm_command_codec},
	{WIRE_BM_SET_MODULE_ATTENTION, &wire_bm_command_codec},
	{WIRE_BM_GET_MODULE_STATUS, &wire_bm_command_codec},
	{WIRE_BM_IB2IBML, &wire_bm_command_codec},
	{WIRE_BM_IB2CME, &wire_bm_command_codec},
	{WIRE_BM_IB2MME, &wire_bm_command_codec},
	{WIRE_BM_OEM, &wire_bm_command_codec},
	{0, NULL},
};

/* --- device management --- */

#define S struct wire_io_unit_info
static const struct wire_field io_unit_info_fields[] = {
	F(change_id, 0, 16),
	F(max_controllers, 16, 8),
	F(option_rom, 24, 1),
	F(diag_device_id, 25, 1),
	R(26, 6),
	A(controller, 32, 4, 256),
};
CODEC(io_unit_info, "IOUnitInfo", 132);
#undef S

#define S struct wire_ioc_profile
static const struct wire_field ioc_profile_fields[] = {
	F(guid, 0, 64),
	F(vendor_id, 64, 24),
	R(88, 8),
	F(device_id, 96, 32),
	F(device_version, 128, 16),
	R(144, 16),
	F(subsystem_vendor_id, 160, 24),
	R(184, 8),
	F(subsystem_id, 192, 32),
	F(io_class, 224, 16),
	F(io_subclass, 240, 16),
	F(protocol, 256, 16),
	F(protocol_version, 272, 16),
	R(288, 32),
	F(send_queue_depth, 320, 16),
	R(336, 8),
	F(rdma_read_depth, 344, 8),
	F(send_size_bytes, 352, 32),
	F(rdma_size_bytes, 384, 32),
	F(operations, 416, 8),
	R(424, 8),
	F(nr_services, 432, 8),
	R(440, 72),
	B(id_string, 512, 64),
};
CODEC(ioc_profile, "IOControllerProfile", 128);
#undef S

#define S struct wire_service_entries
static const struct wire_field service_entries_fields[] = {
	B(name0, 0, 40),
	F(id0, 320, 64),
	B(name1, 384, 40),
	F(id1, 704, 64),
	B(name2, 768, 40),
	F(id2, 1088, 64),
	B(name3, 1152, 40),
	F(id3, 1472, 64),
};
CODEC(service_entries, "ServiceEntries", 192);
#undef S

#define S struct wire_dm_word
static const struct wire_field dm_word_fields[] = {
	F(value, 0, 32),
};
CODEC(dm_word, "DiagCode", 4);
#undef S

const struct wire_attr wire_dm_attrs[] = {
	{WIRE_DM_CLASS_PORT_INFO, &wire_class_port_info_codec},
	{WIRE_DM_NOTICE, &wire_notice_codec},
	{WIRE_DM_IO_UNIT_INFO, &wire_io_unit_info_codec},
	{WIRE_DM_IOC_PROFILE, &wire_ioc_profile_codec},
	{WIRE_DM_SERVICE_ENTRIES, &wire_service_entries_codec},
	{WIRE_DM_DIAGNOSTIC_TIMEOUT, &wire_dm_word_codec},
	{WIRE_DM_DIAG_CODE, &wire_dm_word_codec},
	{0, NULL},
};
