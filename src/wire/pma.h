/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Performance management (IBA v1 16.1): the attributes of the PMA in the
 * order of their ids. Counters that count data do so in 4-byte words.
 */
#ifndef SOFTIB_WIRE_PMA_H
#define SOFTIB_WIRE_PMA_H

#include "wire/mad.h"

#define WIRE_PMA_CLASS_VERSION 1
#define WIRE_PMA_DATA_OFFSET 64
#define WIRE_PMA_DATA_BYTES 192
#define WIRE_PMA_ALL_PORTS 0xff /* port_select */

/** struct wire_gmp - a MAD of PMA or DM: the common header, 40 reserved
 *  bytes, the attribute at byte 64 */
struct wire_gmp {
	struct wire_mad mad;
};
WIRE_CODEC(gmp)

enum wire_pma_attr {
	WIRE_PMA_CLASS_PORT_INFO = 0x0001,
	WIRE_PMA_PORT_SAMPLES_CONTROL = 0x0010,
	WIRE_PMA_PORT_SAMPLES_RESULT = 0x0011,
	WIRE_PMA_PORT_COUNTERS = 0x0012,
	WIRE_PMA_PORT_RCV_ERROR_DETAILS = 0x0015,
	WIRE_PMA_PORT_XMIT_DISCARD_DETAILS = 0x0016,
	WIRE_PMA_PORT_OP_RCV_COUNTERS = 0x0017,
	WIRE_PMA_PORT_FLOW_CTL_COUNTERS = 0x0018,
	WIRE_PMA_PORT_VL_OP_PACKETS = 0x0019,
	WIRE_PMA_PORT_VL_OP_DATA = 0x001a,
	WIRE_PMA_PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS = 0x001b,
	WIRE_PMA_PORT_VL_XMIT_WAIT_COUNTERS = 0x001c,
	WIRE_PMA_PORT_COUNTERS_EXTENDED = 0x001d,
	WIRE_PMA_PORT_SAMPLES_RESULT_EXTENDED = 0x001e,
	WIRE_PMA_PORT_EXT_SPEEDS_COUNTERS = 0x001f,
	WIRE_PMA_SW_PORT_VL_CONGESTION = 0x0030,
	WIRE_PMA_PORT_RCV_CON_CTRL = 0x0031,
	WIRE_PMA_PORT_SL_RCV_FECN = 0x0032,
	WIRE_PMA_PORT_SL_RCV_BECN = 0x0033,
	WIRE_PMA_PORT_XMIT_CON_CTRL = 0x0034,
	WIRE_PMA_PORT_VL_XMIT_TIME_CONG = 0x0035,
	WIRE_PMA_PORT_XMIT_DATA_SL = 0x0036,
	WIRE_PMA_PORT_RCV_DATA_SL = 0x0037,
};

/* ClassPortInfo.CapabilityMask of the PMA (16.1.3.1) */
enum wire_pma_cap {
	WIRE_PMA_CAP_ALL_PORTS = 1 << 8,
	WIRE_PMA_CAP_EXTENDED_COUNTERS = 1 << 9, /* PortCountersExtended, all fields */
	WIRE_PMA_CAP_EXTENDED_NO_IETF = 1 << 10, /* without uni- and multicast ones */
	WIRE_PMA_CAP_SAMPLES_ONLY = 1 << 11,
	WIRE_PMA_CAP_XMIT_WAIT = 1 << 12,
	WIRE_PMA_CAP_INHIBIT_LIMITED_PKEY = 1 << 13,
	WIRE_PMA_CAP_RSFEC = 1 << 14,
	WIRE_PMA_CAP_QP1_DROPPED = 1 << 15,
};
/* ClassPortInfo.CapabilityMask2 of the PMA */
enum wire_pma_cap2 {
	WIRE_PMA_CAP2_PM_KEY = 1 << 0,
	WIRE_PMA_CAP2_ADDITIONAL_EXTENDED = 1 << 1, /* error counters of 64 bits */
	WIRE_PMA_CAP2_VIRTUAL_PORTS = 1 << 2,
};

/** struct wire_port_samples_control - PortSamplesControl (16.1.3.2) */
struct wire_port_samples_control {
	uint8_t op_code;
	uint8_t port_select;
	uint8_t tick;
	uint8_t counter_width;
	uint8_t counter_mask0;	      /* 3 bits */
	uint32_t counter_masks_1to9;  /* 27 bits */
	uint16_t counter_masks_10to14; /* 15 bits */
	uint8_t sample_mechanisms;
	uint8_t sample_status; /* 2 bits */
	uint64_t option_mask, vendor_mask;
	uint32_t sample_start, sample_interval;
	uint16_t tag;
	uint16_t counter_select[15];
	uint64_t samples_only_option_mask;
};
WIRE_CODEC(port_samples_control)

/** struct wire_port_samples_result - PortSamplesResult (16.1.3.4) */
struct wire_port_samples_result {
	uint16_t tag;
	uint8_t sample_status;
	uint32_t counter[15];
};
WIRE_CODEC(port_samples_result)

/** struct wire_port_samples_result_extended - with counters of 64 bits */
struct wire_port_samples_result_extended {
	uint16_t tag;
	uint8_t sample_status;
	uint8_t extended_width; /* 2 bits: 1 for 48, 2 for 64 bits */
	uint64_t counter[15];
};
WIRE_CODEC(port_samples_result_extended)

/** struct wire_port_counters - PortCounters (16.1.3.5) */
struct wire_port_counters {
	uint8_t port_select;
	uint16_t counter_select; /* enum wire_port_counters_select: Set clears */
	uint16_t symbol_errors;
	uint8_t link_error_recovery;
	uint8_t link_downed;
	uint16_t rcv_errors, rcv_remote_physical_errors, rcv_switch_relay_errors;
	uint16_t xmit_discards;
	uint8_t xmit_constraint_errors, rcv_constraint_errors;
	uint8_t counter_select2; /* bit 0: xmit_wait */
	uint8_t local_link_integrity_errors;   /* 4 bits */
	uint8_t excessive_buffer_overrun_errors; /* 4 bits */
	uint16_t qp1_dropped;
	uint16_t vl15_dropped;
	uint32_t xmit_data_dwords, rcv_data_dwords;
	uint32_t xmit_pkts, rcv_pkts;
	uint32_t xmit_wait; /* ticks */
};
WIRE_CODEC(port_counters)
enum wire_port_counters_select {
	WIRE_PC_SYMBOL_ERRORS = 1 << 0,
	WIRE_PC_LINK_ERROR_RECOVERY = 1 << 1,
	WIRE_PC_LINK_DOWNED = 1 << 2,
	WIRE_PC_RCV_ERRORS = 1 << 3,
	WIRE_PC_RCV_REMOTE_PHYSICAL_ERRORS = 1 << 4,
	WIRE_PC_RCV_SWITCH_RELAY_ERRORS = 1 << 5,
	WIRE_PC_XMIT_DISCARDS = 1 << 6,
	WIRE_PC_XMIT_CONSTRAINT_ERRORS = 1 << 7,
	WIRE_PC_RCV_CONSTRAINT_ERRORS = 1 << 8,
	WIRE_PC_LOCAL_LINK_INTEGRITY_ERRORS = 1 << 9,
	WIRE_PC_EXCESSIVE_BUFFER_OVERRUN_ERRORS = 1 << 10,
	WIRE_PC_VL15_DROPPED = 1 << 11,
	WIRE_PC_XMIT_DATA = 1 << 12,
	WIRE_PC_RCV_DATA = 1 << 13,
	WIRE_PC_XMIT_PKTS = 1 << 14,
	WIRE_PC_RCV_PKTS = 1 << 15,
	WIRE_PC2_XMIT_WAIT = 1 << 0, /* in counter_select2 */
};

/** struct wire_port_rcv_error_details - PortRcvErrorDetails (16.1.4.1) */
struct wire_port_rcv_error_details {
	uint8_t port_select;
	uint16_t counter_select; /* bit n: the n-th counter below */
	uint16_t local_physical_errors, malformed_packet_errors, buffer_overrun_errors;
	uint16_t dlid_mapping_errors, vl_mapping_errors, looping_errors;
};
WIRE_CODEC(port_rcv_error_details)

/** struct wire_port_xmit_discard_details - PortXmitDiscardDetails (16.1.4.2) */
struct wire_port_xmit_discard_details {
	uint8_t port_select;
	uint16_t counter_select;
	uint16_t inactive_discards, neighbor_mtu_discards;
	uint16_t sw_lifetime_limit_discards, sw_hoq_lifetime_limit_discards;
};
WIRE_CODEC(port_xmit_discard_details)

/** struct wire_port_op_rcv_counters - PortOpRcvCounters (16.1.4.3) */
struct wire_port_op_rcv_counters {
	uint8_t op_code;
	uint8_t port_select;
	uint16_t counter_select;
	uint32_t rcv_pkts, rcv_data_dwords;
};
WIRE_CODEC(port_op_rcv_counters)

/** struct wire_port_flow_ctl_counters - PortFlowCtlCounters (16.1.4.4) */
struct wire_port_flow_ctl_counters {
	uint8_t port_select;
	uint16_t counter_select;
	uint32_t xmit_flow_pkts, rcv_flow_pkts;
};
WIRE_CODEC(port_flow_ctl_counters)

/** struct wire_port_vl_op_packets - PortVLOpPackets (16.1.4.5) */
struct wire_port_vl_op_packets {
	uint8_t op_code;
	uint8_t port_select;
	uint16_t counter_select;
	uint16_t pkts[16];
};
WIRE_CODEC(port_vl_op_packets)

/** struct wire_port_vl_op_data - PortVLOpData (16.1.4.6) */
struct wire_port_vl_op_data {
	uint8_t op_code;
	uint8_t port_select;
	uint16_t counter_select;
	uint32_t data_dwords[16];
};
WIRE_CODEC(port_vl_op_data)

/** struct wire_port_vl_xmit_flow_ctl_update_errors - (16.1.4.7), 2 bits each */
struct wire_port_vl_xmit_flow_ctl_update_errors {
	uint8_t port_select;
	uint16_t counter_select;
	uint8_t errors[16];
};
WIRE_CODEC(port_vl_xmit_flow_ctl_update_errors)

/** struct wire_port_vl_xmit_wait_counters - PortVLXmitWaitCounters (16.1.4.8) */
struct wire_port_vl_xmit_wait_counters {
	uint8_t port_select;
	uint16_t counter_select;
	uint16_t wait[16];
};
WIRE_CODEC(port_vl_xmit_wait_counters)

/** struct wire_port_counters_extended - PortCountersExtended (16.1.4.11) */
struct wire_port_counters_extended {
	uint8_t port_select;
	uint16_t counter_select;
	uint32_t counter_select2; /* the error counters, bit n: the n-th */
	uint64_t xmit_data_dwords, rcv_data_dwords;
	uint64_t xmit_pkts, rcv_pkts;
	uint64_t unicast_xmit_pkts, unicast_rcv_pkts;
	uint64_t multicast_xmit_pkts, multicast_rcv_pkts;
	/* --- with WIRE_PMA_CAP2_ADDITIONAL_EXTENDED --- */
	uint64_t symbol_errors, link_error_recovery, link_downed;
	uint64_t rcv_errors, rcv_remote_physical_errors, rcv_switch_relay_errors;
	uint64_t xmit_discards;
	uint64_t xmit_constraint_errors, rcv_constraint_errors;
	uint64_t local_link_integrity_errors, excessive_buffer_overrun_errors;
	uint64_t vl15_dropped;
	uint64_t xmit_wait;
	uint64_t qp1_dropped;
};
WIRE_CODEC(port_counters_extended)
enum wire_port_counters_extended_select {
	WIRE_PCX_XMIT_DATA = 1 << 0, WIRE_PCX_RCV_DATA = 1 << 1,
	WIRE_PCX_XMIT_PKTS = 1 << 2, WIRE_PCX_RCV_PKTS = 1 << 3,
	WIRE_PCX_UNICAST_XMIT_PKTS = 1 << 4, WIRE_PCX_UNICAST_RCV_PKTS = 1 << 5,
	WIRE_PCX_MULTICAST_XMIT_PKTS = 1 << 6, WIRE_PCX_MULTICAST_RCV_PKTS = 1 << 7,
};

/** struct wire_port_ext_speeds_counters - PortExtendedSpeedsCounters (16.1.4.12) */
struct wire_port_ext_speeds_counters {
	uint8_t port_select;
	uint64_t counter_select;
	uint16_t sync_header_errors, unknown_blocks;
	uint16_t error_detection_lane[12];
	uint32_t fec_correctable_block_lane[12]; /* with RS-FEC: symbols */
	uint32_t fec_uncorrectable_block_lane[12];
	uint32_t fec_correctable_blocks, fec_uncorrectable_blocks, fec_corrected_symbols;
};
WIRE_CODEC(port_ext_speeds_counters)

/* Congestion control counters (A10.5) */
struct wire_sw_port_vl_congestion {
	uint8_t port_select;
	uint16_t counter_select;
	uint16_t congestion[16];
};
WIRE_CODEC(sw_port_vl_congestion)

struct wire_port_rcv_con_ctrl {
	uint8_t port_select;
	uint16_t counter_select;
	uint32_t pkt_rcv_fecn, pkt_rcv_becn;
};
WIRE_CODEC(port_rcv_con_ctrl)

struct wire_port_sl_rcv_fecn {
	uint8_t port_select;
	uint16_t counter_select;
	uint32_t fecn[16];
};
WIRE_CODEC(port_sl_rcv_fecn)

struct wire_port_sl_rcv_becn {
	uint8_t port_select;
	uint16_t counter_select;
	uint32_t becn[16];
};
WIRE_CODEC(port_sl_rcv_becn)

struct wire_port_xmit_con_ctrl {
	uint8_t port_select;
	uint16_t counter_select;
	uint32_t time_congested;
};
WIRE_CODEC(port_xmit_con_ctrl)

struct wire_port_vl_xmit_time_cong {
	uint8_t port_select;
	uint16_t counter_select;
	uint32_t time_congested[15];
};
WIRE_CODEC(port_vl_xmit_time_cong)

/* Data per service level, 4-byte words (16.1.4.9, 16.1.4.10) */
struct wire_port_xmit_data_sl {
	uint8_t port_select;
	uint16_t counter_select;
	uint32_t data_dwords[16];
};
WIRE_CODEC(port_xmit_data_sl)

struct wire_port_rcv_data_sl {
	uint8_t port_select;
	uint16_t counter_select;
	uint32_t data_dwords[16];
};
WIRE_CODEC(port_rcv_data_sl)

#endif
