/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Subnet administration (IBA v1 chapter 15): the SA header and the records in
 * the order of their ids. Bit n of ComponentMask is the n-th field of the
 * record's table (src/wire/sa.c), including reserved fields. The enums below name
 * the bits that programs use most.
 */
#ifndef SOFTIB_WIRE_SA_H
#define SOFTIB_WIRE_SA_H

#include "wire/rmpp.h"
#include "wire/smp.h"

#define WIRE_SA_CLASS_VERSION 2
#define WIRE_SA_DATA_OFFSET   56
#define WIRE_SA_DATA_BYTES    200

/** struct wire_sa - header of every SA MAD (15.2.1.1); the record or table
 *  follows at WIRE_SA_DATA_OFFSET */
struct wire_sa {
	struct wire_mad mad;
	struct wire_rmpp rmpp;
	uint64_t sm_key;
	uint16_t attr_offset; /* distance of records in a table, 8-byte words */
	uint64_t comp_mask;
};
WIRE_CODEC(sa)

/** wire_sa_attr_offset() - AttributeOffset for records of this codec */
static inline uint16_t wire_sa_attr_offset(const struct wire_codec *record)
{
	return (uint16_t)DIV_ROUND_UP(record->bytes, 8);
}

/* Status in bits 15..8 (15.2.1.1.3) */
enum wire_sa_status {
	WIRE_SA_NO_RESOURCES = 0x0100,
	WIRE_SA_REQUEST_INVALID = 0x0200,
	WIRE_SA_NO_RECORDS = 0x0300,
	WIRE_SA_TOO_MANY_RECORDS = 0x0400,
	WIRE_SA_INVALID_GID = 0x0500,
	WIRE_SA_INSUFFICIENT_COMPONENTS = 0x0600,
	WIRE_SA_DENIED = 0x0700,
	WIRE_SA_PRIORITY_SUGGESTED = 0x0800,
};

/* Attributes (15.2.5) */
enum wire_sa_attr {
	WIRE_SA_CLASS_PORT_INFO = 0x0001,
	WIRE_SA_NOTICE = 0x0002,
	WIRE_SA_INFORM_INFO = 0x0003,
	WIRE_SA_NODE_RECORD = 0x0011,
	WIRE_SA_PORT_INFO_RECORD = 0x0012,
	WIRE_SA_SL_TO_VL_RECORD = 0x0013,
	WIRE_SA_SWITCH_INFO_RECORD = 0x0014,
	WIRE_SA_LFT_RECORD = 0x0015,
	WIRE_SA_RFT_RECORD = 0x0016,
	WIRE_SA_MFT_RECORD = 0x0017,
	WIRE_SA_SM_INFO_RECORD = 0x0018,
	WIRE_SA_LINK_RECORD = 0x0020,
	WIRE_SA_GUID_INFO_RECORD = 0x0030,
	WIRE_SA_SERVICE_RECORD = 0x0031,
	WIRE_SA_PKEY_TABLE_RECORD = 0x0033,
	WIRE_SA_PATH_RECORD = 0x0035,
	WIRE_SA_VL_ARB_RECORD = 0x0036,
	WIRE_SA_MCMEMBER_RECORD = 0x0038,
	WIRE_SA_TRACE_RECORD = 0x0039,
	WIRE_SA_MULTIPATH_RECORD = 0x003a,
	WIRE_SA_SERVICE_ASSOCIATION_RECORD = 0x003b,
	WIRE_SA_INFORM_INFO_RECORD = 0x00f3,
};

/* SA's ClassPortInfo.CapabilityMask (15.2.5.1) */
enum wire_sa_cap {
	WIRE_SA_CAP_OPTIONAL_RECORDS = 1 << 8,
	WIRE_SA_CAP_UD_MULTICAST = 1 << 9,
	WIRE_SA_CAP_MULTIPATH = 1 << 10,
	WIRE_SA_CAP_REINIT = 1 << 12,
	WIRE_SA_CAP_PORT_INFO_CAP_MASK_MATCH = 1 << 13,
};

/* SA's ClassPortInfo.CapabilityMask2 (15.2.5.1) */
enum wire_sa_cap2 {
	WIRE_SA_CAP2_SEND_ONLY_FULL_MEMBER = 1 << 12, /* JoinState bit 3 is supported */
};

struct wire_node_record {
	uint16_t lid;
	struct wire_node_info info;
	struct wire_node_description description;
};
WIRE_CODEC(node_record)
enum wire_node_record_comp {
	WIRE_NR_LID = 1 << 0,
	WIRE_NR_NODE_TYPE = 1 << 4,
	WIRE_NR_NR_PORTS = 1 << 5,
	WIRE_NR_SYSTEM_GUID = 1 << 6,
	WIRE_NR_NODE_GUID = 1 << 7,
	WIRE_NR_PORT_GUID = 1 << 8,
	WIRE_NR_LOCAL_PORT = 1 << 12,
	WIRE_NR_DESCRIPTION = 1 << 14,
};

struct wire_port_info_record {
	uint16_t lid;
	uint8_t port;
	uint8_t options; /* bit 7: with PortInfoExtended data */
	struct wire_port_info info;
};
WIRE_CODEC(port_info_record)
enum wire_port_info_record_comp {
	WIRE_PIR_LID = 1 << 0,
	WIRE_PIR_PORT = 1 << 1,
	WIRE_PIR_BASE_LID = 1 << 5,
	WIRE_PIR_SM_LID = 1 << 6,
	WIRE_PIR_CAP_MASK = 1 << 7,
	WIRE_PIR_PORT_STATE = 1 << 15,
};
/* AttributeModifier bit: CapabilityMask selects ports that have all its bits */
#define WIRE_PIR_MATCH_CAP_MASK 0x80000000u

struct wire_sl_to_vl_record {
	uint16_t lid;
	uint8_t in_port, out_port;
	struct wire_sl_to_vl table;
};
WIRE_CODEC(sl_to_vl_record)
enum wire_sl_to_vl_record_comp {
	WIRE_SLVL_LID = 1 << 0,
	WIRE_SLVL_IN_PORT = 1 << 1,
	WIRE_SLVL_OUT_PORT = 1 << 2,
};

struct wire_switch_info_record {
	uint16_t lid;
	struct wire_switch_info info;
};
WIRE_CODEC(switch_info_record)
enum wire_switch_info_record_comp { WIRE_SWIR_LID = 1 << 0 };

struct wire_lft_record {
	uint16_t lid, block;
	struct wire_lft table;
};
WIRE_CODEC(lft_record)
enum wire_lft_record_comp { WIRE_LFTR_LID = 1 << 0, WIRE_LFTR_BLOCK = 1 << 1 };

struct wire_rft_record {
	uint16_t lid, block;
	struct wire_rft table;
};
WIRE_CODEC(rft_record)

struct wire_mft_record {
	uint16_t lid;
	uint8_t position; /* 4 bits */
	uint16_t block;	  /* 9 bits */
	struct wire_mft table;
};
WIRE_CODEC(mft_record)
enum wire_mft_record_comp {
	WIRE_MFTR_LID = 1 << 0,
	WIRE_MFTR_POSITION = 1 << 1,
	WIRE_MFTR_BLOCK = 1 << 3,
};

struct wire_sm_info_record {
	uint16_t lid;
	struct wire_sm_info info;
};
WIRE_CODEC(sm_info_record)
enum wire_sm_info_record_comp {
	WIRE_SMIR_LID = 1 << 0,
	WIRE_SMIR_GUID = 1 << 2,
	WIRE_SMIR_SM_KEY = 1 << 3,
	WIRE_SMIR_ACT_COUNT = 1 << 4,
	WIRE_SMIR_PRIORITY = 1 << 5,
	WIRE_SMIR_STATE = 1 << 6,
};

/** struct wire_link_record - LinkRecord (15.2.5.13) */
struct wire_link_record {
	uint16_t from_lid;
	uint8_t from_port, to_port;
	uint16_t to_lid;
};
WIRE_CODEC(link_record)
enum wire_link_record_comp {
	WIRE_LR_FROM_LID = 1 << 0,
	WIRE_LR_FROM_PORT = 1 << 1,
	WIRE_LR_TO_PORT = 1 << 2,
	WIRE_LR_TO_LID = 1 << 3,
};

struct wire_guid_info_record {
	uint16_t lid;
	uint8_t block;
	struct wire_guid_info table;
};
WIRE_CODEC(guid_info_record)
enum wire_guid_info_record_comp {
	WIRE_GIR_LID = 1 << 0,
	WIRE_GIR_BLOCK = 1 << 1,
	WIRE_GIR_GUID0 = 1 << 4,
};

/** struct wire_service_record - ServiceRecord (15.2.5.14) */
struct wire_service_record {
	uint64_t id;
	union wire_gid gid;
	uint16_t pkey;
	uint32_t lease_s; /* 0xffffffff: for ever */
	uint8_t key[16];
	uint8_t name[64]; /* UTF-8, zero terminated */
	uint8_t data8[16];
	uint16_t data16[8];
	uint32_t data32[4];
	uint64_t data64[2];
};
WIRE_CODEC(service_record)
#define WIRE_SR_ID	  (1ull << 0)
#define WIRE_SR_GID	  (1ull << 1)
#define WIRE_SR_PKEY	  (1ull << 2)
#define WIRE_SR_LEASE	  (1ull << 4)
#define WIRE_SR_KEY	  (1ull << 5)
#define WIRE_SR_NAME	  (1ull << 6)
#define WIRE_SR_DATA8(n)  (1ull << (7 + (n)))
#define WIRE_SR_DATA16(n) (1ull << (23 + (n)))
#define WIRE_SR_DATA32(n) (1ull << (31 + (n)))
#define WIRE_SR_DATA64(n) (1ull << (35 + (n)))

struct wire_pkey_table_record {
	uint16_t lid, block;
	uint8_t port;
	struct wire_pkey_table table;
};
WIRE_CODEC(pkey_table_record)
enum wire_pkey_table_record_comp {
	WIRE_PKR_LID = 1 << 0,
	WIRE_PKR_BLOCK = 1 << 1,
	WIRE_PKR_PORT = 1 << 2,
};

/* Selectors of MTU, rate and packet lifetime (15.2.5.16) */
enum wire_selector {
	WIRE_SELECT_GREATER = 0,
	WIRE_SELECT_LESS = 1,
	WIRE_SELECT_EXACTLY = 2,
	WIRE_SELECT_LARGEST = 3, /* for a lifetime: the smallest */
};
/* Rates (15.2.5.16); the specification's order is not monotonic */
enum wire_rate {
	WIRE_RATE_2_5G = 2,
	WIRE_RATE_10G = 3,
	WIRE_RATE_30G = 4,
	WIRE_RATE_5G = 5,
	WIRE_RATE_20G = 6,
	WIRE_RATE_40G = 7,
	WIRE_RATE_60G = 8,
	WIRE_RATE_80G = 9,
	WIRE_RATE_120G = 10,
	WIRE_RATE_14G = 11,
	WIRE_RATE_56G = 12,
	WIRE_RATE_112G = 13,
	WIRE_RATE_168G = 14,
	WIRE_RATE_25G = 15,
	WIRE_RATE_100G = 16,
	WIRE_RATE_200G = 17,
	WIRE_RATE_300G = 18,
	WIRE_RATE_28G = 19,
	WIRE_RATE_50G = 20,
	WIRE_RATE_400G = 21,
	WIRE_RATE_600G = 22,
	WIRE_RATE_LAST = WIRE_RATE_600G,
};
/** wire_rate_mbps() - the rate of an enum wire_rate, whose values are not in the order of
 *  rates; 0 if it is invalid */
uint32_t wire_rate_mbps(uint8_t rate_enc);

/** struct wire_path_record - PathRecord (15.2.5.16) */
struct wire_path_record {
	uint64_t service_id;
	union wire_gid dgid, sgid;
	uint16_t dlid, slid;
	bool raw_traffic;
	uint32_t flow_label;
	uint8_t hop_limit;
	uint8_t tclass;
	bool reversible;
	uint8_t numb_path; /* 7 bits */
	uint16_t pkey;
	uint16_t qos_class; /* 12 bits */
	uint8_t sl;
	uint8_t mtu_selector, mtu;	 /* enum wire_selector, wire_mtu */
	uint8_t rate_selector, rate;	 /* enum wire_selector, wire_rate */
	uint8_t life_selector, life_enc; /* packet lifetime: 4.096 us << value */
	uint8_t preference;
};
WIRE_CODEC(path_record)
enum wire_path_record_comp {
	WIRE_PR_SERVICE_ID = 3 << 0, /* two components: 8 and 56 bits */
	WIRE_PR_DGID = 1 << 2,
	WIRE_PR_SGID = 1 << 3,
	WIRE_PR_DLID = 1 << 4,
	WIRE_PR_SLID = 1 << 5,
	WIRE_PR_RAW_TRAFFIC = 1 << 6,
	WIRE_PR_FLOW_LABEL = 1 << 8,
	WIRE_PR_HOP_LIMIT = 1 << 9,
	WIRE_PR_TCLASS = 1 << 10,
	WIRE_PR_REVERSIBLE = 1 << 11,
	WIRE_PR_NUMB_PATH = 1 << 12,
	WIRE_PR_PKEY = 1 << 13,
	WIRE_PR_QOS_CLASS = 1 << 14,
	WIRE_PR_SL = 1 << 15,
	WIRE_PR_MTU_SELECTOR = 1 << 16,
	WIRE_PR_MTU = 1 << 17,
	WIRE_PR_RATE_SELECTOR = 1 << 18,
	WIRE_PR_RATE = 1 << 19,
	WIRE_PR_LIFE_SELECTOR = 1 << 20,
	WIRE_PR_LIFE = 1 << 21,
	WIRE_PR_PREFERENCE = 1 << 22,
};

struct wire_vl_arb_record {
	uint16_t lid;
	uint8_t out_port;
	uint8_t block;
	struct wire_vl_arb table;
};
WIRE_CODEC(vl_arb_record)
enum wire_vl_arb_record_comp {
	WIRE_VLAR_LID = 1 << 0,
	WIRE_VLAR_OUT_PORT = 1 << 1,
	WIRE_VLAR_BLOCK = 1 << 2,
};

/* MCMemberRecord.JoinState (15.2.5.17) */
enum wire_join_state {
	WIRE_JOIN_FULL = 1,
	WIRE_JOIN_NON = 2,
	WIRE_JOIN_SEND_ONLY_NON = 4,
	WIRE_JOIN_SEND_ONLY_FULL = 8,
};

/** struct wire_mcmember_record - MCMemberRecord (15.2.5.17) */
struct wire_mcmember_record {
	union wire_gid mgid, port_gid;
	uint32_t qkey;
	uint16_t mlid;
	uint8_t mtu_selector, mtu;
	uint8_t tclass;
	uint16_t pkey;
	uint8_t rate_selector, rate;
	uint8_t life_selector, life_enc;
	uint8_t sl;
	uint32_t flow_label;
	uint8_t hop_limit;
	uint8_t scope;
	uint8_t join_state; /* enum wire_join_state */
	bool proxy_join;
};
WIRE_CODEC(mcmember_record)
enum wire_mcmember_record_comp {
	WIRE_MCM_MGID = 1 << 0,
	WIRE_MCM_PORT_GID = 1 << 1,
	WIRE_MCM_QKEY = 1 << 2,
	WIRE_MCM_MLID = 1 << 3,
	WIRE_MCM_MTU_SELECTOR = 1 << 4,
	WIRE_MCM_MTU = 1 << 5,
	WIRE_MCM_TCLASS = 1 << 6,
	WIRE_MCM_PKEY = 1 << 7,
	WIRE_MCM_RATE_SELECTOR = 1 << 8,
	WIRE_MCM_RATE = 1 << 9,
	WIRE_MCM_LIFE_SELECTOR = 1 << 10,
	WIRE_MCM_LIFE = 1 << 11,
	WIRE_MCM_SL = 1 << 12,
	WIRE_MCM_FLOW_LABEL = 1 << 13,
	WIRE_MCM_HOP_LIMIT = 1 << 14,
	WIRE_MCM_SCOPE = 1 << 15,
	WIRE_MCM_JOIN_STATE = 1 << 16,
	WIRE_MCM_PROXY_JOIN = 1 << 17,
};

/** struct wire_trace_record - TraceRecord (15.2.5.18) */
struct wire_trace_record {
	uint64_t gid_prefix;
	uint16_t id_generation;
	uint8_t node_type;
	uint64_t node_id, chassis_id;
	uint64_t entry_port_id, exit_port_id;
	uint8_t entry_port, exit_port;
};
WIRE_CODEC(trace_record)

#define WIRE_MULTIPATH_GIDS_MAX 10 /* that fit a MAD without RMPP */
/** struct wire_multipath_record - MultiPathRecord (15.2.5.19): its header;
 *  sgid_count + dgid_count GIDs of 16 bytes follow */
struct wire_multipath_record {
	bool raw_traffic;
	uint32_t flow_label;
	uint8_t hop_limit;
	uint8_t tclass;
	bool reversible;
	uint8_t numb_path;
	uint16_t pkey;
	uint16_t qos_class;
	uint8_t sl;
	uint8_t mtu_selector, mtu;
	uint8_t rate_selector, rate;
	uint8_t life_selector, life_enc;
	uint8_t service_id_8msb;
	uint8_t independence; /* 2 bits */
	uint8_t sgid_count, dgid_count;
	uint64_t service_id_56lsb;
};
WIRE_CODEC(multipath_record)
enum wire_multipath_record_comp {
	WIRE_MPR_RAW_TRAFFIC = 1 << 0,
	WIRE_MPR_FLOW_LABEL = 1 << 2,
	WIRE_MPR_HOP_LIMIT = 1 << 3,
	WIRE_MPR_TCLASS = 1 << 4,
	WIRE_MPR_REVERSIBLE = 1 << 5,
	WIRE_MPR_NUMB_PATH = 1 << 6,
	WIRE_MPR_PKEY = 1 << 7,
	WIRE_MPR_QOS_CLASS = 1 << 8,
	WIRE_MPR_SL = 1 << 9,
	WIRE_MPR_MTU_SELECTOR = 1 << 10,
	WIRE_MPR_MTU = 1 << 11,
	WIRE_MPR_RATE_SELECTOR = 1 << 12,
	WIRE_MPR_RATE = 1 << 13,
	WIRE_MPR_LIFE_SELECTOR = 1 << 14,
	WIRE_MPR_LIFE = 1 << 15,
	WIRE_MPR_SERVICE_ID_MSB = 1 << 16,
	WIRE_MPR_INDEPENDENCE = 1 << 17,
	WIRE_MPR_SGID_COUNT = 1 << 19,
	WIRE_MPR_DGID_COUNT = 1 << 20,
	WIRE_MPR_SERVICE_ID_LSB = 1 << 21,
};

/** struct wire_inform_info_record - InformInfoRecord (15.2.5.12) */
struct wire_inform_info_record {
	union wire_gid subscriber_gid;
	uint16_t subscriber_enum;
	struct wire_inform_info inform_info;
};
WIRE_CODEC(inform_info_record)
enum wire_inform_info_record_comp {
	WIRE_IIR_SUBSCRIBER_GID = 1 << 0,
	WIRE_IIR_ENUM = 1 << 1,
	WIRE_IIR_GID = 1 << 3,
	WIRE_IIR_LID_RANGE_BEGIN = 1 << 4,
	WIRE_IIR_LID_RANGE_END = 1 << 5,
	WIRE_IIR_IS_GENERIC = 1 << 7,
	WIRE_IIR_SUBSCRIBE = 1 << 8,
	WIRE_IIR_TYPE = 1 << 9,
	WIRE_IIR_TRAP_NUMBER = 1 << 10,
	WIRE_IIR_QPN = 1 << 11,
	WIRE_IIR_PRODUCER = 1 << 15,
};

#endif
