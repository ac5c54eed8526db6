/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The tables of subnet management, in the order of smp.h. */
#include "wire/smp.h"
#include "wire/attrs.h"
#include "wire/fields_table.h"
#include "base/bytes.h"

#include <errno.h>

/* --- headers --- */

#define S struct wire_smp
static const struct wire_field smp_lid_fields[] = {
	N(mad, 0, mad),
	F(mkey, 192, 64),
	R(256, 256),
	GAP(512, 64), /* the attribute */
	R(1024, 1024),
};
CODEC(smp_lid, "SMP, LID routed", WIRE_MAD_BYTES);

static const struct wire_field smp_direct_fields[] = {
	F(mad.base_version, 0, 8),
	F(mad.mgmt_class, 8, 8),
	F(mad.class_version, 16, 8),
	F(mad.method, 24, 8),
	F(direction, 32, 1),
	F(mad.status, 33, 15),
	F(hop_pointer, 48, 8),
	F(hop_count, 56, 8),
	F(mad.tid, 64, 64),
	F(mad.attr_id, 128, 16),
	R(144, 16),
	F(mad.attr_mod, 160, 32),
	F(mkey, 192, 64),
	F(dr_slid, 256, 16),
	F(dr_dlid, 272, 16),
	R(288, 224),
	GAP(512, 64), /* the attribute */
	B(initial_path, 1024, 64),
	B(return_path, 1536, 64),
};
CODEC(smp_direct, "SMP, directed route", WIRE_MAD_BYTES);
#undef S

static const struct wire_codec *smp_codec(uint8_t mgmt_class)
{
	if (mgmt_class == WIRE_CLASS_SM_DIRECT)
		return &wire_smp_direct_codec;
	return mgmt_class == WIRE_CLASS_SM_LID ? &wire_smp_lid_codec : NULL;
}

int wire_smp_decode(const void *buf, size_t len, struct wire_smp *smp)
{
	const uint8_t *b = buf;
	const struct wire_codec *codec = len >= 2 ? smp_codec(b[1]) : NULL;

	return codec ? wire_fields_decode(codec, buf, len, smp) : -EINVAL;
}

int wire_smp_encode(const struct wire_smp *smp, void *buf)
{
	const struct wire_codec *codec = smp_codec(smp->mad.mgmt_class);

	return codec ? wire_fields_encode(codec, smp, buf) : -EINVAL;
}

/* --- attributes --- */

#define S struct wire_node_description
static const struct wire_field node_description_fields[] = {
	B(text, 0, 64),
};
CODEC(node_description, "NodeDescription", 64);
#undef S

#define S struct wire_node_info
static const struct wire_field node_info_fields[] = {
	F(base_version, 0, 8),
	F(class_version, 8, 8),
	F(node_type, 16, 8),
	F(nr_ports, 24, 8),
	F(system_guid, 32, 64),
	F(node_guid, 96, 64),
	F(port_guid, 160, 64),
	F(partition_cap, 224, 16),
	F(device_id, 240, 16),
	F(revision, 256, 32),
	F(local_port, 288, 8),
	F(vendor_id, 296, 24),
};
CODEC(node_info, "NodeInfo", 40);
#undef S

#define S struct wire_switch_info
static const struct wire_field switch_info_fields[] = {
	F(lft_cap, 0, 16),
	F(rft_cap, 16, 16),
	F(mft_cap, 32, 16),
	F(lft_top, 48, 16),
	F(default_port, 64, 8),
	F(default_mcast_primary_port, 72, 8),
	F(default_mcast_not_primary_port, 80, 8),
	F(life_time_enc, 88, 5),
	F(port_state_change, 93, 1),
	F(optimized_sl_to_vl, 94, 2),
	F(lids_per_port, 96, 16),
	F(partition_enforcement_cap, 112, 16),
	F(inbound_enforcement_cap, 128, 1),
	F(outbound_enforcement_cap, 129, 1),
	F(filter_raw_inbound_cap, 130, 1),
	F(filter_raw_outbound_cap, 131, 1),
	F(enhanced_port0, 132, 1),
	R(133, 11),
	F(mft_top, 144, 16),
};
CODEC(switch_info, "SwitchInfo", 20);
#undef S

#define S struct wire_guid_info
static const struct wire_field guid_info_fields[] = {
	AC(guid, 0, 64, 8),
};
CODEC(guid_info, "GUIDInfo", 64);
#undef S

#define S struct wire_port_info
static const struct wire_field port_info_fields[] = {
	F(mkey, 0, 64),
	F(gid_prefix, 64, 64),
	F(lid, 128, 16),
	F(sm_lid, 144, 16),
	F(cap_mask, 160, 32),
	F(diag_code, 192, 16),
	F(mkey_lease_period_s, 208, 16),
	F(local_port, 224, 8),
	F(link_width_enabled, 232, 8),
	F(link_width_supported, 240, 8),
	F(link_width_active, 248, 8),
	F(link_speed_supported, 256, 4),
	F(state, 260, 4),
	F(phys_state, 264, 4),
	F(link_down_default_state, 268, 4),
	F(mkey_protect_bits, 272, 2),
	R(274, 3),
	F(lmc, 277, 3),
	F(link_speed_active, 280, 4),
	F(link_speed_enabled, 284, 4),
	F(neighbor_mtu, 288, 4),
	F(sm_sl, 292, 4),
	F(vl_cap, 296, 4),
	F(init_type, 300, 4),
	F(vl_high_limit, 304, 8),
	F(vl_arb_high_cap, 312, 8),
	F(vl_arb_low_cap, 320, 8),
	F(init_type_reply, 328, 4),
	F(mtu_cap, 332, 4),
	F(vl_stall_count, 336, 3),
	F(hoq_life_enc, 339, 5),
	F(operational_vls, 344, 4),
	F(partition_enforcement_inbound, 348, 1),
	F(partition_enforcement_outbound, 349, 1),
	F(filter_raw_inbound, 350, 1),
	F(filter_raw_outbound, 351, 1),
	F(mkey_violations, 352, 16),
	F(pkey_violations, 368, 16),
	F(qkey_violations, 384, 16),
	F(guid_cap, 400, 8),
	F(client_reregister, 408, 1),
	F(mcast_pkey_trap_suppression, 409, 2),
	F(subnet_timeout_enc, 411, 5),
	R(416, 3),
	F(resp_time_enc, 419, 5),
	F(local_phy_errors, 424, 4),
	F(overrun_errors, 428, 4),
	F(max_credit_hint, 432, 16),
	R(448, 1), /* these eight bits are one component in SA's mask */
	F0(link_speed_ext2_active, 449, 2),
	F0(link_speed_ext2_supported, 451, 2),
	F0(link_speed_ext2_enabled, 453, 3),
	F(link_round_trip_latency, 456, 24),
	F(cap_mask2, 480, 16),
	F(link_speed_ext_active, 496, 4),
	F(link_speed_ext_supported, 500, 4),
	R(504, 3),
	F(link_speed_ext_enabled, 507, 5),
};
CODEC(port_info, "PortInfo", 64);
#undef S

#define S struct wire_pkey_table
static const struct wire_field pkey_table_fields[] = {
	A(pkey, 0, 16, 32),
};
CODEC(pkey_table, "P_KeyTable", 64);
#undef S

#define S struct wire_sl_to_vl
static const struct wire_field sl_to_vl_fields[] = {
	A(vl, 0, 4, 16),
};
CODEC(sl_to_vl, "SLtoVLMappingTable", 8);
#undef S

#define S struct wire_vl_arb
static const struct wire_field vl_arb_fields[] = {
	RE(0, 4, 32, 16),
	E(entry, vl, 4, 4, 16),
	E(entry, weight, 8, 8, 16),
};
CODEC(vl_arb, "VLArbitrationTable", 64);
#undef S

#define S struct wire_lft
static const struct wire_field lft_fields[] = {
	B(port, 0, 64),
};
CODEC(lft, "LinearForwardingTable", 64);
#undef S

#define S struct wire_rft
static const struct wire_field rft_fields[] = {
	E(entry, lid, 0, 16, 32),
	E(entry, valid, 16, 1, 32),
	E(entry, lmc, 17, 3, 32),
	RE(20, 4, 16, 32),
	E(entry, port, 24, 8, 32),
};
CODEC(rft, "RandomForwardingTable", 64);
#undef S

#define S struct wire_mft
static const struct wire_field mft_fields[] = {
	A(port_mask, 0, 16, 32),
};
CODEC(mft, "MulticastForwardingTable", 64);
#undef S

#define S struct wire_sm_info
static const struct wire_field sm_info_fields[] = {
	F(guid, 0, 64),
	F(sm_key, 64, 64),
	F(act_count, 128, 32),
	F(priority, 160, 4),
	F(state, 164, 4),
};
CODEC(sm_info, "SMInfo", 21);
#undef S

#define S struct wire_vendor_diag
static const struct wire_field vendor_diag_fields[] = {
	F(next_index, 0, 16),
	B(data, 16, 62),
};
CODEC(vendor_diag, "VendorDiag", 64);
#undef S

#define S struct wire_led_info
static const struct wire_field led_info_fields[] = {
	F(led_mask, 0, 1),
	R(1, 31),
};
CODEC(led_info, "LedInfo", 4);
#undef S

#define S struct wire_port_info_extended
static const struct wire_field port_info_extended_fields[] = {
	F(cap_mask, 0, 32),
	F(fec_mode_active, 32, 16),
	F(fdr_fec_mode_supported, 48, 16),
	F(fdr_fec_mode_enabled, 64, 16),
	F(edr_fec_mode_supported, 80, 16),
	F(edr_fec_mode_enabled, 96, 16),
	F(hdr_fec_mode_supported, 112, 16),
	F(hdr_fec_mode_enabled, 128, 16),
	F(ndr_fec_mode_supported, 144, 16),
	F(ndr_fec_mode_enabled, 160, 16),
	R(176, 336),
};
CODEC(port_info_extended, "PortInfoExtended", 64);
#undef S

#define S struct wire_mlnx_ext_port_info
static const struct wire_field mlnx_ext_port_info_fields[] = {
	R(0, 24),
	F(state_change_enable, 24, 8),
	R(32, 24),
	F(link_speed_supported, 56, 8),
	R(64, 24),
	F(link_speed_enabled, 88, 8),
	R(96, 24),
	F(link_speed_active, 120, 8),
	R(128, 384),
};
CODEC(mlnx_ext_port_info, "ExtendedPortInfo (Mellanox)", 64);
#undef S

const struct wire_attr wire_smp_attrs[] = {
	{WIRE_SMP_NOTICE, &wire_smp_notice_codec},
	{WIRE_SMP_NODE_DESCRIPTION, &wire_node_description_codec},
	{WIRE_SMP_NODE_INFO, &wire_node_info_codec},
	{WIRE_SMP_SWITCH_INFO, &wire_switch_info_codec},
	{WIRE_SMP_GUID_INFO, &wire_guid_info_codec},
	{WIRE_SMP_PORT_INFO, &wire_port_info_codec},
	{WIRE_SMP_PKEY_TABLE, &wire_pkey_table_codec},
	{WIRE_SMP_SL_TO_VL, &wire_sl_to_vl_codec},
	{WIRE_SMP_VL_ARB, &wire_vl_arb_codec},
	{WIRE_SMP_LFT, &wire_lft_codec},
	{WIRE_SMP_RFT, &wire_rft_codec},
	{WIRE_SMP_MFT, &wire_mft_codec},
	{WIRE_SMP_SM_INFO, &wire_sm_info_codec},
	{WIRE_SMP_VENDOR_DIAG, &wire_vendor_diag_codec},
	{WIRE_SMP_LED_INFO, &wire_led_info_codec},
	{WIRE_SMP_PORT_INFO_EXTENDED, &wire_port_info_extended_codec},
	{WIRE_SMP_MLNX_EXT_PORT_INFO, &wire_mlnx_ext_port_info_codec},
	{0, NULL},
};
