/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The details of the traps of subnet management (IBA v1 14.2.5.1): tables of the fields in
 * the 54 bytes of Notice.details, by trap number. */
#include "wire/smp.h"
#include "wire/fields_table.h"

#define DETAILS WIRE_NOTICE_DETAILS_BYTES

#define S struct wire_trap_gid
static const struct wire_field trap_gid_fields[] = {
	R(0, 48),
	B(gid.raw, 48, 16),
	R(176, 256),
};
CODEC(trap_gid, "traps 64..67", DETAILS);
#undef S

#define S struct wire_trap_switch
static const struct wire_field trap_switch_fields[] = {
	F(lid, 0, 16),
	R(16, 416),
};
CODEC(trap_switch, "trap 128", DETAILS);
#undef S

#define S struct wire_trap_port
static const struct wire_field trap_port_fields[] = {
	R(0, 16),
	F(lid, 16, 16),
	F(port, 32, 8),
	R(40, 392),
};
CODEC(trap_port, "traps 129..131", DETAILS);
#undef S

#define S struct wire_trap_capability
static const struct wire_field trap_capability_fields[] = {
	R(0, 16),
	F(lid, 16, 16),
	R(32, 15),
	F(other_local_changes, 47, 1),
	F(cap_mask, 48, 32),
	R(80, 10),
	F(change_flags, 90, 6),
	F(cap_mask2, 96, 16),
	R(112, 320),
};
CODEC(trap_capability, "trap 144", DETAILS);
#undef S

#define S struct wire_trap_system_guid
static const struct wire_field trap_system_guid_fields[] = {
	R(0, 16),
	F(lid, 16, 16),
	R(32, 16),
	F(system_guid, 48, 64),
	R(112, 320),
};
CODEC(trap_system_guid, "trap 145", DETAILS);
#undef S

#define S struct wire_trap_mkey
static const struct wire_field trap_mkey_fields[] = {
	R(0, 16),
	F(lid, 16, 16),
	F(dr_slid, 32, 16),
	F(method, 48, 8),
	R(56, 8),
	F(attr_id, 64, 16),
	F(attr_mod, 80, 32),
	F(mkey, 112, 64),
	R(176, 8),
	F(dr_notice, 184, 1),
	F(dr_path_truncated, 185, 1),
	F(dr_hop_count, 186, 6),
	B(dr_return_path, 192, 30),
};
CODEC(trap_mkey, "trap 256", DETAILS);
#undef S

#define S struct wire_trap_key
static const struct wire_field trap_key_fields[] = {
	R(0, 16),
	F(lid1, 16, 16),
	F(lid2, 32, 16),
	F(key, 48, 32),
	F(sl, 80, 4),
	R(84, 4),
	F(qpn1, 88, 24),
	R(112, 8),
	F(qpn2, 120, 24),
	B(gid1.raw, 144, 16),
	B(gid2.raw, 272, 16),
	R(400, 32),
};
CODEC(trap_key, "traps 257, 258", DETAILS);
#undef S

#define S struct wire_trap_switch_pkey
static const struct wire_field trap_switch_pkey_fields[] = {
	F(data_valid, 0, 16),
	F(lid1, 16, 16),
	F(lid2, 32, 16),
	F(pkey, 48, 16),
	F(sl, 64, 4),
	R(68, 4),
	F(qpn1, 72, 24),
	R(96, 8),
	F(qpn2, 104, 24),
	B(gid1.raw, 128, 16),
	B(gid2.raw, 256, 16),
	F(switch_lid, 384, 16),
	F(port, 400, 8),
	R(408, 24),
};
CODEC(trap_switch_pkey, "trap 259", DETAILS);
#undef S

static const struct wire_attr traps[] = {
	{WIRE_TRAP_GID_IN_SERVICE, &wire_trap_gid_codec},
	{WIRE_TRAP_GID_OUT_OF_SERVICE, &wire_trap_gid_codec},
	{WIRE_TRAP_MCAST_CREATED, &wire_trap_gid_codec},
	{WIRE_TRAP_MCAST_DELETED, &wire_trap_gid_codec},
	{WIRE_TRAP_LINK_STATE, &wire_trap_switch_codec},
	{WIRE_TRAP_LINK_INTEGRITY, &wire_trap_port_codec},
	{WIRE_TRAP_BUFFER_OVERRUN, &wire_trap_port_codec},
	{WIRE_TRAP_FLOW_CONTROL_WATCHDOG, &wire_trap_port_codec},
	{WIRE_TRAP_CAPABILITY_CHANGE, &wire_trap_capability_codec},
	{WIRE_TRAP_SYSTEM_GUID_CHANGE, &wire_trap_system_guid_codec},
	{WIRE_TRAP_BAD_MKEY, &wire_trap_mkey_codec},
	{WIRE_TRAP_BAD_PKEY, &wire_trap_key_codec},
	{WIRE_TRAP_BAD_QKEY, &wire_trap_key_codec},
	{WIRE_TRAP_SWITCH_BAD_PKEY, &wire_trap_switch_pkey_codec},
};

const struct wire_codec *wire_trap_codec(uint16_t trap_number)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(traps); i++)
		if (traps[i].id == trap_number)
			return traps[i].codec;
	return NULL;
}
