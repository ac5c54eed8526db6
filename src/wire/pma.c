/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The tables of performance management, in the order of pma.h. */
#include "wire/pma.h"
#include "wire/attrs.h"
#include "wire/fields_table.h"

#define S struct wire_gmp
static const struct wire_field gmp_fields[] = {
	N(mad, 0, mad),
	R(192, 320),
};
CODEC(gmp, "GMP", 64);
#undef S

/* The first fields of nearly every counter attribute */
#define SELECTS R(0, 8), F(port_select, 8, 8), F(counter_select, 16, 16)
#define OP_SELECTS F(op_code, 0, 8), F(port_select, 8, 8), F(counter_select, 16, 16)

#define S struct wire_port_samples_control
static const struct wire_field port_samples_control_fields[] = {
	F(op_code, 0, 8),
	F(port_select, 8, 8),
	F(tick, 16, 8),
	R(24, 5),
	F(counter_width, 29, 3),
	R(32, 2),
	F(counter_mask0, 34, 3),
	F(counter_masks_1to9, 37, 27),
	R(64, 1),
	F(counter_masks_10to14, 65, 15),
	F(sample_mechanisms, 80, 8),
	R(88, 6),
	F(sample_status, 94, 2),
	F(option_mask, 96, 64),
	F(vendor_mask, 160, 64),
	F(sample_start, 224, 32),
	F(sample_interval, 256, 32),
	F(tag, 288, 16),
	A(counter_select, 304, 16, 15),
	R(544, 32),
	F(samples_only_option_mask, 576, 64),
};
CODEC(port_samples_control, "PortSamplesControl", 80);
#undef S

#define S struct wire_port_samples_result
static const struct wire_field port_samples_result_fields[] = {
	F(tag, 0, 16),
	R(16, 14),
	F(sample_status, 30, 2),
	A(counter, 32, 32, 15),
};
CODEC(port_samples_result, "PortSamplesResult", 64);
#undef S

#define S struct wire_port_samples_result_extended
static const struct wire_field port_samples_result_extended_fields[] = {
	F(tag, 0, 16),
	R(16, 14),
	F(sample_status, 30, 2),
	F(extended_width, 32, 2),
	R(34, 30),
	A(counter, 64, 64, 15),
};
CODEC(port_samples_result_extended, "PortSamplesResultExtended", 128);
#undef S

#define S struct wire_port_counters
static const struct wire_field port_counters_fields[] = {
	SELECTS,
	F(symbol_errors, 32, 16),
	F(link_error_recovery, 48, 8),
	F(link_downed, 56, 8),
	F(rcv_errors, 64, 16),
	F(rcv_remote_physical_errors, 80, 16),
	F(rcv_switch_relay_errors, 96, 16),
	F(xmit_discards, 112, 16),
	F(xmit_constraint_errors, 128, 8),
	F(rcv_constraint_errors, 136, 8),
	F(counter_select2, 144, 8),
	F(local_link_integrity_errors, 152, 4),
	F(excessive_buffer_overrun_errors, 156, 4),
	F(qp1_dropped, 160, 16),
	F(vl15_dropped, 176, 16),
	F(xmit_data_dwords, 192, 32),
	F(rcv_data_dwords, 224, 32),
	F(xmit_pkts, 256, 32),
	F(rcv_pkts, 288, 32),
	F(xmit_wait, 320, 32),
};
CODEC(port_counters, "PortCounters", 44);
#undef S

#define S struct wire_port_rcv_error_details
static const struct wire_field port_rcv_error_details_fields[] = {
	SELECTS,
	F(local_physical_errors, 32, 16),
	F(malformed_packet_errors, 48, 16),
	F(buffer_overrun_errors, 64, 16),
	F(dlid_mapping_errors, 80, 16),
	F(vl_mapping_errors, 96, 16),
	F(looping_errors, 112, 16),
};
CODEC(port_rcv_error_details, "PortRcvErrorDetails", 16);
#undef S

#define S struct wire_port_xmit_discard_details
static const struct wire_field port_xmit_discard_details_fields[] = {
	SELECTS,
	F(inactive_discards, 32, 16),
	F(neighbor_mtu_discards, 48, 16),
	F(sw_lifetime_limit_discards, 64, 16),
	F(sw_hoq_lifetime_limit_discards, 80, 16),
};
CODEC(port_xmit_discard_details, "PortXmitDiscardDetails", 12);
#undef S

#define S struct wire_port_op_rcv_counters
static const struct wire_field port_op_rcv_counters_fields[] = {
	OP_SELECTS,
	F(rcv_pkts, 32, 32),
	F(rcv_data_dwords, 64, 32),
};
CODEC(port_op_rcv_counters, "PortOpRcvCounters", 12);
#undef S

#define S struct wire_port_flow_ctl_counters
static const struct wire_field port_flow_ctl_counters_fields[] = {
	SELECTS,
	F(xmit_flow_pkts, 32, 32),
	F(rcv_flow_pkts, 64, 32),
};
CODEC(port_flow_ctl_counters, "PortFlowCtlCounters", 12);
#undef S

#define S struct wire_port_vl_op_packets
static const struct wire_field port_vl_op_packets_fields[] = {
	OP_SELECTS,
	A(pkts, 32, 16, 16),
};
CODEC(port_vl_op_packets, "PortVLOpPackets", 36);
#undef S

#define S struct wire_port_vl_op_data
static const struct wire_field port_vl_op_data_fields[] = {
	OP_SELECTS,
	A(data_dwords, 32, 32, 16),
};
CODEC(port_vl_op_data, "PortVLOpData", 68);
#undef S

#define S struct wire_port_vl_xmit_flow_ctl_update_errors
static const struct wire_field port_vl_xmit_flow_ctl_update_errors_fields[] = {
	SELECTS,
	A(errors, 32, 2, 16),
};
CODEC(port_vl_xmit_flow_ctl_update_errors, "PortVLXmitFlowCtlUpdateErrors", 8);
#undef S

#define S struct wire_port_vl_xmit_wait_counters
static const struct wire_field port_vl_xmit_wait_counters_fields[] = {
	SELECTS,
	A(wait, 32, 16, 16),
};
CODEC(port_vl_xmit_wait_counters, "PortVLXmitWaitCounters", 36);
#undef S

#define S struct wire_port_counters_extended
static const struct wire_field port_counters_extended_fields[] = {
	SELECTS,
	F(counter_select2, 32, 32),
	F(xmit_data_dwords, 64, 64),
	F(rcv_data_dwords, 128, 64),
	F(xmit_pkts, 192, 64),
	F(rcv_pkts, 256, 64),
	F(unicast_xmit_pkts, 320, 64),
	F(unicast_rcv_pkts, 384, 64),
	F(multicast_xmit_pkts, 448, 64),
	F(multicast_rcv_pkts, 512, 64),
	F(symbol_errors, 576, 64),
	F(link_error_recovery, 640, 64),
	F(link_downed, 704, 64),
	F(rcv_errors, 768, 64),
	F(rcv_remote_physical_errors, 832, 64),
	F(rcv_switch_relay_errors, 896, 64),
	F(xmit_discards, 960, 64),
	F(xmit_constraint_errors, 1024, 64),
	F(rcv_constraint_errors, 1088, 64),
	F(local_link_integrity_errors, 1152, 64),
	F(excessive_buffer_overrun_errors, 1216, 64),
	F(vl15_dropped, 1280, 64),
	F(xmit_wait, 1344, 64),
	F(qp1_dropped, 1408, 64),
};
CODEC(port_counters_extended, "PortCountersExtended", 184);
#undef S

#define S struct wire_port_ext_speeds_counters
static const struct wire_field port_ext_speeds_counters_fields[] = {
	R(0, 8),
	F(port_select, 8, 8),
	R(16, 48),
	F(counter_select, 64, 64),
	F(sync_header_errors, 128, 16),
	F(unknown_blocks, 144, 16),
	A(error_detection_lane, 160, 16, 12),
	A(fec_correctable_block_lane, 352, 32, 12),
	A(fec_uncorrectable_block_lane, 736, 32, 12),
	F(fec_correctable_blocks, 1120, 32),
	F(fec_uncorrectable_blocks, 1152, 32),
	F(fec_corrected_symbols, 1184, 32),
};
CODEC(port_ext_speeds_counters, "PortExtendedSpeedsCounters", 152);
#undef S

#define S struct wire_sw_port_vl_congestion
static const struct wire_field sw_port_vl_congestion_fields[] = {
	SELECTS,
	A(congestion, 32, 16, 16),
};
CODEC(sw_port_vl_congestion, "SwPortVLCongestion", 36);
#undef S

#define S struct wire_port_rcv_con_ctrl
static const struct wire_field port_rcv_con_ctrl_fields[] = {
	SELECTS,
	F(pkt_rcv_fecn, 32, 32),
	F(pkt_rcv_becn, 64, 32),
};
CODEC(port_rcv_con_ctrl, "PortRcvConCtrl", 12);
#undef S

#define S struct wire_port_sl_rcv_fecn
static const struct wire_field port_sl_rcv_fecn_fields[] = {
	SELECTS,
	A(fecn, 32, 32, 16),
};
CODEC(port_sl_rcv_fecn, "PortSLRcvFECN", 68);
#undef S

#define S struct wire_port_sl_rcv_becn
static const struct wire_field port_sl_rcv_becn_fields[] = {
	SELECTS,
	A(becn, 32, 32, 16),
};
CODEC(port_sl_rcv_becn, "PortSLRcvBECN", 68);
#undef S

#define S struct wire_port_xmit_con_ctrl
static const struct wire_field port_xmit_con_ctrl_fields[] = {
	SELECTS,
	F(time_congested, 32, 32),
};
CODEC(port_xmit_con_ctrl, "PortXmitConCtrl", 8);
#undef S

#define S struct wire_port_vl_xmit_time_cong
static const struct wire_field port_vl_xmit_time_cong_fields[] = {
	SELECTS,
	A(time_congested, 32, 32, 15),
};
CODEC(port_vl_xmit_time_cong, "PortVLXmitTimeCong", 64);
#undef S

#define S struct wire_port_xmit_data_sl
static const struct wire_field port_xmit_data_sl_fields[] = {
	SELECTS,
	A(data_dwords, 32, 32, 16),
};
CODEC(port_xmit_data_sl, "PortXmitDataSL", 68);
#undef S

#define S struct wire_port_rcv_data_sl
static const struct wire_field port_rcv_data_sl_fields[] = {
	SELECTS,
	A(data_dwords, 32, 32, 16),
};
CODEC(port_rcv_data_sl, "PortRcvDataSL", 68);
#undef S

const struct wire_attr wire_pma_attrs[] = {
	{WIRE_PMA_CLASS_PORT_INFO, &wire_class_port_info_codec},
	{WIRE_PMA_PORT_SAMPLES_CONTROL, &wire_port_samples_control_codec},
	{WIRE_PMA_PORT_SAMPLES_RESULT, &wire_port_samples_result_codec},
	{WIRE_PMA_PORT_COUNTERS, &wire_port_counters_codec},
	{WIRE_PMA_PORT_RCV_ERROR_DETAILS, &wire_port_rcv_error_details_codec},
	{WIRE_PMA_PORT_XMIT_DISCARD_DETAILS, &wire_port_xmit_discard_details_codec},
	{WIRE_PMA_PORT_OP_RCV_COUNTERS, &wire_port_op_rcv_counters_codec},
	{WIRE_PMA_PORT_FLOW_CTL_COUNTERS, &wire_port_flow_ctl_counters_codec},
	{WIRE_PMA_PORT_VL_OP_PACKETS, &wire_port_vl_op_packets_codec},
	{WIRE_PMA_PORT_VL_OP_DATA, &wire_port_vl_op_data_codec},
	{WIRE_PMA_PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS,
	 &wire_port_vl_xmit_flow_ctl_update_errors_codec},
	{WIRE_PMA_PORT_VL_XMIT_WAIT_COUNTERS, &wire_port_vl_xmit_wait_counters_codec},
	{WIRE_PMA_PORT_COUNTERS_EXTENDED, &wire_port_counters_extended_codec},
	{WIRE_PMA_PORT_SAMPLES_RESULT_EXTENDED, &wire_port_samples_result_extended_codec},
	{WIRE_PMA_PORT_EXT_SPEEDS_COUNTERS, &wire_port_ext_speeds_counters_codec},
	{WIRE_PMA_SW_PORT_VL_CONGESTION, &wire_sw_port_vl_congestion_codec},
	{WIRE_PMA_PORT_RCV_CON_CTRL, &wire_port_rcv_con_ctrl_codec},
	{WIRE_PMA_PORT_SL_RCV_FECN, &wire_port_sl_rcv_fecn_codec},
	{WIRE_PMA_PORT_SL_RCV_BECN, &wire_port_sl_rcv_becn_codec},
	{WIRE_PMA_PORT_XMIT_CON_CTRL, &wire_port_xmit_con_ctrl_codec},
	{WIRE_PMA_PORT_VL_XMIT_TIME_CONG, &wire_port_vl_xmit_time_cong_codec},
	{WIRE_PMA_PORT_XMIT_DATA_SL, &wire_port_xmit_data_sl_codec},
	{WIRE_PMA_PORT_RCV_DATA_SL, &wire_port_rcv_data_sl_codec},
	{0, NULL},
};
