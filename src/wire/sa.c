/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The tables of subnet administration, in the order of sa.h. The position of
 * a field in its record is its bit in ComponentMask. */
#include "wire/sa.h"
#include "wire/attrs.h"
#include "wire/fields_table.h"

#define S struct wire_sa
static const struct wire_field sa_fields[] = {
	N(mad, 0, mad),
	N(rmpp, 192, rmpp),
	F(sm_key, 288, 64),
	F(attr_offset, 352, 16),
	R(368, 16),
	F(comp_mask, 384, 64),
};
CODEC(sa, "SA", WIRE_SA_DATA_OFFSET);
#undef S

#define S struct wire_node_record
static const struct wire_field node_record_fields[] = {
	F(lid, 0, 16),
	R(16, 16),
	N(info, 32, node_info),
	N(description, 352, node_description),
};
CODEC(node_record, "NodeRecord", 108);
#undef S

#define S struct wire_port_info_record
static const struct wire_field port_info_record_fields[] = {
	F(lid, 0, 16),
	F(port, 16, 8),
	F(options, 24, 8),
	N(info, 32, port_info),
};
CODEC(port_info_record, "PortInfoRecord", 68);
#undef S

#define S struct wire_sl_to_vl_record
static const struct wire_field sl_to_vl_record_fields[] = {
	F(lid, 0, 16),
	F(in_port, 16, 8),
	F(out_port, 24, 8),
	R(32, 32),
	N(table, 64, sl_to_vl),
};
CODEC(sl_to_vl_record, "SLtoVLMappingTableRecord", 16);
#undef S

#define S struct wire_switch_info_record
static const struct wire_field switch_info_record_fields[] = {
	F(lid, 0, 16),
	R(16, 16),
	N(info, 32, switch_info),
};
CODEC(switch_info_record, "SwitchInfoRecord", 24);
#undef S

#define S struct wire_lft_record
static const struct wire_field lft_record_fields[] = {
	F(lid, 0, 16),
	F(block, 16, 16),
	R(32, 32),
	N(table, 64, lft),
};
CODEC(lft_record, "LinearForwardingTableRecord", 72);
#undef S

#define S struct wire_rft_record
static const struct wire_field rft_record_fields[] = {
	F(lid, 0, 16),
	F(block, 16, 16),
	R(32, 32),
	N(table, 64, rft),
};
CODEC(rft_record, "RandomForwardingTableRecord", 72);
#undef S

#define S struct wire_mft_record
static const struct wire_field mft_record_fields[] = {
	F(lid, 0, 16),
	F(position, 16, 4),
	R(20, 3),
	F(block, 23, 9),
	R(32, 32),
	N(table, 64, mft),
};
CODEC(mft_record, "MulticastForwardingTableRecord", 72);
#undef S

#define S struct wire_sm_info_record
static const struct wire_field sm_info_record_fields[] = {
	F(lid, 0, 16),
	R(16, 16),
	N(info, 32, sm_info),
};
CODEC(sm_info_record, "SMInfoRecord", 25);
#undef S

#define S struct wire_link_record
static const struct wire_field link_record_fields[] = {
	F(from_lid, 0, 16),
	F(from_port, 16, 8),
	F(to_port, 24, 8),
	F(to_lid, 32, 16),
};
CODEC(link_record, "LinkRecord", 6);
#undef S

#define S struct wire_guid_info_record
static const struct wire_field guid_info_record_fields[] = {
	F(lid, 0, 16),
	F(block, 16, 8),
	R(24, 8),
	R(32, 32),
	N(table, 64, guid_info),
};
CODEC(guid_info_record, "GUIDInfoRecord", 72);
#undef S

#define S struct wire_service_record
static const struct wire_field service_record_fields[] = {
	F(id, 0, 64),
	B(gid.raw, 64, 16),
	F(pkey, 192, 16),
	R(208, 16),
	F(lease_s, 224, 32),
	B(key, 256, 16),
	B(name, 384, 64),
	AC(data8, 896, 8, 16),
	AC(data16, 1024, 16, 8),
	AC(data32, 1152, 32, 4),
	AC(data64, 1280, 64, 2),
};
CODEC(service_record, "ServiceRecord", 176);
#undef S

#define S struct wire_pkey_table_record
static const struct wire_field pkey_table_record_fields[] = {
	F(lid, 0, 16),
	F(block, 16, 16),
	F(port, 32, 8),
	R(40, 24),
	N(table, 64, pkey_table),
};
CODEC(pkey_table_record, "P_KeyTableRecord", 72);
#undef S

#define S struct wire_path_record
static const struct wire_field path_record_fields[] = {
	F2(service_id, 0, 64),
	B(dgid.raw, 64, 16),
	B(sgid.raw, 192, 16),
	F(dlid, 320, 16),
	F(slid, 336, 16),
	F(raw_traffic, 352, 1),
	R(353, 3),
	F(flow_label, 356, 20),
	F(hop_limit, 376, 8),
	F(tclass, 384, 8),
	F(reversible, 392, 1),
	F(numb_path, 393, 7),
	F(pkey, 400, 16),
	F(qos_class, 416, 12),
	F(sl, 428, 4),
	F(mtu_selector, 432, 2),
	F(mtu, 434, 6),
	F(rate_selector, 440, 2),
	F(rate, 442, 6),
	F(life_selector, 448, 2),
	F(life_enc, 450, 6),
	F(preference, 456, 8),
	R(464, 48),
};
CODEC(path_record, "PathRecord", 64);
#undef S

#define S struct wire_vl_arb_record
static const struct wire_field vl_arb_record_fields[] = {
	F(lid, 0, 16),
	F(out_port, 16, 8),
	F(block, 24, 8),
	R(32, 32),
	N(table, 64, vl_arb),
};
CODEC(vl_arb_record, "VLArbitrationTableRecord", 72);
#undef S

#define S struct wire_mcmember_record
static const struct wire_field mcmember_record_fields[] = {
	B(mgid.raw, 0, 16),
	B(port_gid.raw, 128, 16),
	F(qkey, 256, 32),
	F(mlid, 288, 16),
	F(mtu_selector, 304, 2),
	F(mtu, 306, 6),
	F(tclass, 312, 8),
	F(pkey, 320, 16),
	F(rate_selector, 336, 2),
	F(rate, 338, 6),
	F(life_selector, 344, 2),
	F(life_enc, 346, 6),
	F(sl, 352, 4),
	F(flow_label, 356, 20),
	F(hop_limit, 376, 8),
	F(scope, 384, 4),
	F(join_state, 388, 4),
	F(proxy_join, 392, 1),
	R(393, 23),
};
CODEC(mcmember_record, "MCMemberRecord", 52);
#undef S

#define S struct wire_trace_record
static const struct wire_field trace_record_fields[] = {
	F(gid_prefix, 0, 64),
	F(id_generation, 64, 16),
	R(80, 8),
	F(node_type, 88, 8),
	F(node_id, 96, 64),
	F(chassis_id, 160, 64),
	F(entry_port_id, 224, 64),
	F(exit_port_id, 288, 64),
	F(entry_port, 352, 8),
	F(exit_port, 360, 8),
};
CODEC(trace_record, "TraceRecord", 46);
#undef S

#define S struct wire_multipath_record
static const struct wire_field multipath_record_fields[] = {
	F(raw_traffic, 0, 1),
	R(1, 3),
	F(flow_label, 4, 20),
	F(hop_limit, 24, 8),
	F(tclass, 32, 8),
	F(reversible, 40, 1),
	F(numb_path, 41, 7),
	F(pkey, 48, 16),
	F(qos_class, 64, 12),
	F(sl, 76, 4),
	F(mtu_selector, 80, 2),
	F(mtu, 82, 6),
	F(rate_selector, 88, 2),
	F(rate, 90, 6),
	F(life_selector, 96, 2),
	F(life_enc, 98, 6),
	F(service_id_8msb, 104, 8),
	F(independence, 112, 2),
	R(114, 6),
	F(sgid_count, 120, 8),
	F(dgid_count, 128, 8),
	F(service_id_56lsb, 136, 56),
};
CODEC(multipath_record, "MultiPathRecord", 24);
#undef S

#define S struct wire_inform_info_record
static const struct wire_field inform_info_record_fields[] = {
	B(subscriber_gid.raw, 0, 16),
	F(subscriber_enum, 128, 16),
	R(144, 48),
	N(inform_info, 192, inform_info),
};
CODEC(inform_info_record, "InformInfoRecord", 60);
#undef S

const struct wire_attr wire_sa_attrs[] = {
	{WIRE_SA_CLASS_PORT_INFO, &wire_class_port_info_codec},
	{WIRE_SA_NOTICE, &wire_notice_codec},
	{WIRE_SA_INFORM_INFO, &wire_inform_info_codec},
	{WIRE_SA_NODE_RECORD, &wire_node_record_codec},
	{WIRE_SA_PORT_INFO_RECORD, &wire_port_info_record_codec},
	{WIRE_SA_SL_TO_VL_RECORD, &wire_sl_to_vl_record_codec},
	{WIRE_SA_SWITCH_INFO_RECORD, &wire_switch_info_record_codec},
	{WIRE_SA_LFT_RECORD, &wire_lft_record_codec},
	{WIRE_SA_RFT_RECORD, &wire_rft_record_codec},
	{WIRE_SA_MFT_RECORD, &wire_mft_record_codec},
	{WIRE_SA_SM_INFO_RECORD, &wire_sm_info_record_codec},
	{WIRE_SA_LINK_RECORD, &wire_link_record_codec},
	{WIRE_SA_GUID_INFO_RECORD, &wire_guid_info_record_codec},
	{WIRE_SA_SERVICE_RECORD, &wire_service_record_codec},
	{WIRE_SA_PKEY_TABLE_RECORD, &wire_pkey_table_record_codec},
	{WIRE_SA_PATH_RECORD, &wire_path_record_codec},
	{WIRE_SA_VL_ARB_RECORD, &wire_vl_arb_record_codec},
	{WIRE_SA_MCMEMBER_RECORD, &wire_mcmember_record_codec},
	{WIRE_SA_TRACE_RECORD, &wire_trace_record_codec},
	{WIRE_SA_MULTIPATH_RECORD, &wire_multipath_record_codec},
	{WIRE_SA_INFORM_INFO_RECORD, &wire_inform_info_record_codec},
	{0, NULL},
};

uint32_t wire_rate_mbps(uint8_t rate_enc)
{
	static const uint32_t mbps[WIRE_RATE_LAST + 1] = {
		[WIRE_RATE_2_5G] = 2500,   [WIRE_RATE_10G] = 10000,   [WIRE_RATE_30G] = 30000,
		[WIRE_RATE_5G] = 5000,	   [WIRE_RATE_20G] = 20000,   [WIRE_RATE_40G] = 40000,
		[WIRE_RATE_60G] = 60000,   [WIRE_RATE_80G] = 80000,   [WIRE_RATE_120G] = 120000,
		[WIRE_RATE_14G] = 14000,   [WIRE_RATE_56G] = 56000,   [WIRE_RATE_112G] = 112000,
		[WIRE_RATE_168G] = 168000, [WIRE_RATE_25G] = 25000,   [WIRE_RATE_100G] = 100000,
		[WIRE_RATE_200G] = 200000, [WIRE_RATE_300G] = 300000, [WIRE_RATE_28G] = 28000,
		[WIRE_RATE_50G] = 50000,   [WIRE_RATE_400G] = 400000, [WIRE_RATE_600G] = 600000,
	};

	return rate_enc < ARRAY_SIZE(mbps) ? mbps[rate_enc] : 0;
}
