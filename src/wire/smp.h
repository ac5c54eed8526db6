/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Subnet management (IBA v1 chapter 14): the two SMP headers, the attributes
 * in the order of their ids, and the details of the traps.
 */
#ifndef SOFTIB_WIRE_SMP_H
#define SOFTIB_WIRE_SMP_H

#include "wire/mad.h"

#define WIRE_SMP_CLASS_VERSION 1
#define WIRE_SMP_DATA_OFFSET   64
#define WIRE_SMP_DATA_BYTES    64
#define WIRE_SMP_PATH_BYTES    64
#define WIRE_SMP_HOPS_MAX      63

/**
 * struct wire_smp - header of both kinds of SMP (14.2.1.1, 14.2.1.2)
 * The codecs do not change the attribute at WIRE_SMP_DATA_OFFSET.
 */
struct wire_smp {
	struct wire_mad mad; /* directed: status without the D bit, 15 bits */
	uint64_t mkey;
	/* --- directed route only --- */
	bool direction; /* D: 1 on the way back */
	uint8_t hop_pointer, hop_count;
	uint16_t dr_slid, dr_dlid;
	uint8_t initial_path[WIRE_SMP_PATH_BYTES];
	uint8_t return_path[WIRE_SMP_PATH_BYTES];
};
WIRE_CODEC_OF(smp_lid, struct wire_smp)
WIRE_CODEC_OF(smp_direct, struct wire_smp)

/** wire_smp_decode() - by the class in @buf. Return: 256; -EINVAL too short
 *  or a class that is not subnet management */
int wire_smp_decode(const void *buf, size_t len, struct wire_smp *smp);
/** wire_smp_encode() - by smp->mad.mgmt_class. Return: 256; -EINVAL */
int wire_smp_encode(const struct wire_smp *smp, void *buf);

/* Attributes (14.2.5) */
enum wire_smp_attr {
	WIRE_SMP_NOTICE = 0x0002,
	WIRE_SMP_NODE_DESCRIPTION = 0x0010,
	WIRE_SMP_NODE_INFO = 0x0011,
	WIRE_SMP_SWITCH_INFO = 0x0012,
	WIRE_SMP_GUID_INFO = 0x0014,
	WIRE_SMP_PORT_INFO = 0x0015,
	WIRE_SMP_PKEY_TABLE = 0x0016,
	WIRE_SMP_SL_TO_VL = 0x0017,
	WIRE_SMP_VL_ARB = 0x0018,
	WIRE_SMP_LFT = 0x0019,
	WIRE_SMP_RFT = 0x001a,
	WIRE_SMP_MFT = 0x001b,
	WIRE_SMP_SM_INFO = 0x0020,
	WIRE_SMP_VENDOR_DIAG = 0x0030,
	WIRE_SMP_LED_INFO = 0x0031,
	WIRE_SMP_PORT_INFO_EXTENDED = 0x0033,
	WIRE_SMP_MLNX_EXT_PORT_INFO = 0xff90, /* Mellanox */
};

struct wire_node_description {
	uint8_t text[64]; /* UTF-8, zero padded, not always terminated */
};
WIRE_CODEC(node_description)

enum wire_node_type { WIRE_NODE_CA = 1, WIRE_NODE_SWITCH = 2, WIRE_NODE_ROUTER = 3 };

/** struct wire_node_info - NodeInfo (14.2.5.3) */
struct wire_node_info {
	uint8_t base_version, class_version;
	uint8_t node_type; /* enum wire_node_type */
	uint8_t nr_ports;
	uint64_t system_guid, node_guid, port_guid;
	uint16_t partition_cap;
	uint16_t device_id;
	uint32_t revision;
	uint8_t local_port;
	uint32_t vendor_id; /* OUI, 24 bits */
};
WIRE_CODEC(node_info)

/** struct wire_switch_info - SwitchInfo (14.2.5.4) */
struct wire_switch_info {
	uint16_t lft_cap, rft_cap, mft_cap;
	uint16_t lft_top;
	uint8_t default_port, default_mcast_primary_port, default_mcast_not_primary_port;
	uint8_t life_time_enc;	/* 5 bits; 0..19: 4.096 us << value; 20..: unlimited */
	bool port_state_change; /* written as 1 to clear */
	uint8_t optimized_sl_to_vl;
	uint16_t lids_per_port;
	uint16_t partition_enforcement_cap;
	bool inbound_enforcement_cap, outbound_enforcement_cap;
	bool filter_raw_inbound_cap, filter_raw_outbound_cap;
	bool enhanced_port0;
	uint16_t mft_top;
};
WIRE_CODEC(switch_info)

#define WIRE_GUIDS_PER_BLOCK 8
/** struct wire_guid_info - GUIDInfo (14.2.5.5), block attr_mod */
struct wire_guid_info {
	uint64_t guid[WIRE_GUIDS_PER_BLOCK];
};
WIRE_CODEC(guid_info)

enum wire_port_state { /* 0 in a Set: no change */
		       WIRE_PORT_NO_CHANGE = 0,
		       WIRE_PORT_DOWN = 1,
		       WIRE_PORT_INIT = 2,
		       WIRE_PORT_ARMED = 3,
		       WIRE_PORT_ACTIVE = 4,
};
enum wire_phys_state {
	WIRE_PHYS_NO_CHANGE = 0,
	WIRE_PHYS_SLEEP = 1,
	WIRE_PHYS_POLLING = 2,
	WIRE_PHYS_DISABLED = 3,
	WIRE_PHYS_TRAINING = 4,
	WIRE_PHYS_LINK_UP = 5,
	WIRE_PHYS_ERROR_RECOVERY = 6,
	WIRE_PHYS_TEST = 7,
};
enum wire_mtu { /* exponent encoding: 128 << value bytes */
		WIRE_MTU_256 = 1,
		WIRE_MTU_512 = 2,
		WIRE_MTU_1024 = 3,
		WIRE_MTU_2048 = 4,
		WIRE_MTU_4096 = 5,
};
enum wire_link_width { /* enabled: 0 no change, 0xff as supported */
		       WIRE_WIDTH_1X = 1,
		       WIRE_WIDTH_4X = 2,
		       WIRE_WIDTH_8X = 4,
		       WIRE_WIDTH_12X = 8,
		       WIRE_WIDTH_2X = 16,
};
enum wire_link_speed { /* enabled: 0 no change, 0xf as supported */
		       WIRE_SPEED_SDR = 1,
		       WIRE_SPEED_DDR = 2,
		       WIRE_SPEED_QDR = 4,
};
enum wire_link_speed_ext { /* enabled: 0 no change, 0x1e..0x1f as specified */
			   WIRE_SPEED_EXT_FDR = 1,
			   WIRE_SPEED_EXT_EDR = 2,
			   WIRE_SPEED_EXT_HDR = 4,
			   WIRE_SPEED_EXT_NDR = 8,
};

/* PortInfo.CapabilityMask (14.2.5.6) */
enum wire_port_cap {
	WIRE_PORT_CAP_IS_SM = 1u << 1,
	WIRE_PORT_CAP_NOTICE = 1u << 2,
	WIRE_PORT_CAP_TRAP = 1u << 3,
	WIRE_PORT_CAP_OPT_IPD = 1u << 4,
	WIRE_PORT_CAP_AUTO_MIGRATION = 1u << 5,
	WIRE_PORT_CAP_SL_MAPPING = 1u << 6,
	WIRE_PORT_CAP_MKEY_NVRAM = 1u << 7,
	WIRE_PORT_CAP_PKEY_NVRAM = 1u << 8,
	WIRE_PORT_CAP_LED_INFO = 1u << 9,
	WIRE_PORT_CAP_SM_DISABLED = 1u << 10,
	WIRE_PORT_CAP_SYSTEM_GUID = 1u << 11,
	WIRE_PORT_CAP_PKEY_EXT_PORT_TRAP = 1u << 12,
	WIRE_PORT_CAP_EXT_SPEEDS = 1u << 14,
	WIRE_PORT_CAP_CAP_MASK2 = 1u << 15,
	WIRE_PORT_CAP_CM = 1u << 16,
	WIRE_PORT_CAP_SNMP = 1u << 17,
	WIRE_PORT_CAP_REINIT = 1u << 18,
	WIRE_PORT_CAP_DM = 1u << 19,
	WIRE_PORT_CAP_VENDOR_CLASS = 1u << 20,
	WIRE_PORT_CAP_DR_NOTICE = 1u << 21,
	WIRE_PORT_CAP_CAP_MASK_NOTICE = 1u << 22,
	WIRE_PORT_CAP_BOOT_MGMT = 1u << 23,
	WIRE_PORT_CAP_LINK_LATENCY = 1u << 24,
	WIRE_PORT_CAP_CLIENT_REREGISTER = 1u << 25,
	WIRE_PORT_CAP_OTHER_LOCAL_CHANGES = 1u << 26,
	WIRE_PORT_CAP_LINK_SPEED_WIDTH_PAIRS = 1u << 27,
	WIRE_PORT_CAP_VENDOR_MADS = 1u << 28,
	WIRE_PORT_CAP_MCAST_PKEY_TRAP_SUPPRESSION = 1u << 29,
	WIRE_PORT_CAP_MCAST_FDB_TOP = 1u << 30,
	WIRE_PORT_CAP_HIERARCHY_INFO = 1u << 31,
};
/* PortInfo.CapabilityMask2 */
enum wire_port_cap2 {
	WIRE_PORT_CAP2_SET_NODE_DESCRIPTION = 1u << 0,
	WIRE_PORT_CAP2_PORT_INFO_EXTENDED = 1u << 1,
	WIRE_PORT_CAP2_VIRTUALIZATION = 1u << 2,
	WIRE_PORT_CAP2_SWITCH_PORT_STATE_TABLE = 1u << 3,
	WIRE_PORT_CAP2_LINK_WIDTH_2X = 1u << 4,
	WIRE_PORT_CAP2_LINK_SPEED_HDR = 1u << 5,
	WIRE_PORT_CAP2_LINK_SPEED_NDR = 1u << 10,
};

/** struct wire_port_info - PortInfo (14.2.5.6), port attr_mod */
struct wire_port_info {
	uint64_t mkey;
	uint64_t gid_prefix;
	uint16_t lid, sm_lid;
	uint32_t cap_mask; /* enum wire_port_cap */
	uint16_t diag_code;
	uint16_t mkey_lease_period_s;
	uint8_t local_port;
	uint8_t link_width_enabled, link_width_supported, link_width_active;
	uint8_t link_speed_supported;
	uint8_t state;	    /* enum wire_port_state */
	uint8_t phys_state; /* enum wire_phys_state */
	uint8_t link_down_default_state;
	uint8_t mkey_protect_bits;
	uint8_t lmc;
	uint8_t link_speed_active, link_speed_enabled;
	uint8_t neighbor_mtu; /* enum wire_mtu */
	uint8_t sm_sl;
	uint8_t vl_cap; /* 1: VL0, 2: VL0-1, 3: VL0-3, 4: VL0-7, 5: VL0-14 */
	uint8_t init_type;
	uint8_t vl_high_limit;
	uint8_t vl_arb_high_cap, vl_arb_low_cap;
	uint8_t init_type_reply;
	uint8_t mtu_cap; /* enum wire_mtu */
	uint8_t vl_stall_count;
	uint8_t hoq_life_enc;
	uint8_t operational_vls; /* as vl_cap; 0 in a Set: no change */
	bool partition_enforcement_inbound, partition_enforcement_outbound;
	bool filter_raw_inbound, filter_raw_outbound;
	uint16_t mkey_violations, pkey_violations, qkey_violations;
	uint8_t guid_cap;
	bool client_reregister;
	uint8_t mcast_pkey_trap_suppression;
	uint8_t subnet_timeout_enc;
	uint8_t resp_time_enc;
	uint8_t local_phy_errors, overrun_errors; /* thresholds */
	uint16_t max_credit_hint;
	uint8_t link_speed_ext2_active, link_speed_ext2_supported,
	    link_speed_ext2_enabled;
	uint32_t link_round_trip_latency;
	uint16_t cap_mask2; /* enum wire_port_cap2 */
	uint8_t link_speed_ext_active, link_speed_ext_supported, link_speed_ext_enabled;
};
WIRE_CODEC(port_info)

#define WIRE_PKEYS_PER_BLOCK 32
/** struct wire_pkey_table - P_KeyTable (14.2.5.7); attr_mod: on switches the
 *  port in bits 31..16; block in 15..0 */
struct wire_pkey_table {
	uint16_t pkey[WIRE_PKEYS_PER_BLOCK];
};
WIRE_CODEC(pkey_table)

/** struct wire_sl_to_vl - SLtoVLMappingTable (14.2.5.8); attr_mod: input port
 *  in bits 15..8, output port in 7..0 */
struct wire_sl_to_vl {
	uint8_t vl[16];
};
WIRE_CODEC(sl_to_vl)

#define WIRE_VL_ARB_PER_BLOCK 32
/** struct wire_vl_arb - VLArbitrationTable (14.2.5.9); attr_mod: block 1..4
 *  (low, low, high, high priority) in bits 31..16, output port in 15..0 */
struct wire_vl_arb {
	struct {
		uint8_t vl, weight; /* weight in 64-byte units */
	} entry[WIRE_VL_ARB_PER_BLOCK];
};
WIRE_CODEC(vl_arb)

#define WIRE_LFT_PER_BLOCK 64
#define WIRE_LFT_NO_PORT   255
/** struct wire_lft - LinearForwardingTable (14.2.5.10), block attr_mod */
struct wire_lft {
	uint8_t port[WIRE_LFT_PER_BLOCK];
};
WIRE_CODEC(lft)

#define WIRE_RFT_PER_BLOCK 16
/** struct wire_rft - RandomForwardingTable (14.2.5.11), block attr_mod */
struct wire_rft {
	struct {
		uint16_t lid;
		bool valid;
		uint8_t lmc;
		uint8_t port;
	} entry[WIRE_RFT_PER_BLOCK];
};
WIRE_CODEC(rft)

#define WIRE_MFT_PER_BLOCK 32
/** struct wire_mft - MulticastForwardingTable (14.2.5.12); attr_mod: position
 *  (16 ports each) in bits 31..28, block in 8..0 */
struct wire_mft {
	uint16_t port_mask[WIRE_MFT_PER_BLOCK];
};
WIRE_CODEC(mft)

enum wire_sm_state {
	WIRE_SM_NOT_ACTIVE = 0,
	WIRE_SM_DISCOVERING = 1,
	WIRE_SM_STANDBY = 2,
	WIRE_SM_MASTER = 3,
};
/* SMInfo's attr_mod in a Set (14.4.1) */
enum wire_sm_control {
	WIRE_SM_HANDOVER = 1,
	WIRE_SM_ACKNOWLEDGE = 2,
	WIRE_SM_DISABLE = 3,
	WIRE_SM_STANDBY_COMMAND = 4,
	WIRE_SM_DISCOVER = 5,
};

/** struct wire_sm_info - SMInfo (14.2.5.13) */
struct wire_sm_info {
	uint64_t guid;
	uint64_t sm_key;
	uint32_t act_count;
	uint8_t priority;
	uint8_t state; /* enum wire_sm_state */
};
WIRE_CODEC(sm_info)

/** struct wire_vendor_diag - VendorDiag (14.2.5.14) */
struct wire_vendor_diag {
	uint16_t next_index;
	uint8_t data[62];
};
WIRE_CODEC(vendor_diag)

/** struct wire_led_info - LedInfo (14.2.5.15) */
struct wire_led_info {
	bool led_mask; /* 1: on */
};
WIRE_CODEC(led_info)

/** struct wire_port_info_extended - PortInfoExtended (14.2.5.19) */
struct wire_port_info_extended {
	uint32_t cap_mask;
	uint16_t fec_mode_active;
	uint16_t fdr_fec_mode_supported, fdr_fec_mode_enabled;
	uint16_t edr_fec_mode_supported, edr_fec_mode_enabled;
	uint16_t hdr_fec_mode_supported, hdr_fec_mode_enabled;
	uint16_t ndr_fec_mode_supported, ndr_fec_mode_enabled;
};
WIRE_CODEC(port_info_extended)

/** struct wire_mlnx_ext_port_info - Mellanox' ExtendedPortInfo: FDR10 */
struct wire_mlnx_ext_port_info {
	uint8_t state_change_enable;
	uint8_t link_speed_supported, link_speed_enabled, link_speed_active;
};
WIRE_CODEC(mlnx_ext_port_info)

/* Traps (14.2.5.1): the number, and the struct of its Notice.details */
enum wire_trap {
	WIRE_TRAP_GID_IN_SERVICE = 64,	       /* wire_trap_gid; by the SM */
	WIRE_TRAP_GID_OUT_OF_SERVICE = 65,     /* wire_trap_gid; by the SM */
	WIRE_TRAP_MCAST_CREATED = 66,	       /* wire_trap_gid; by the SM */
	WIRE_TRAP_MCAST_DELETED = 67,	       /* wire_trap_gid; by the SM */
	WIRE_TRAP_LINK_STATE = 128,	       /* wire_trap_switch; by a switch */
	WIRE_TRAP_LINK_INTEGRITY = 129,	       /* wire_trap_port */
	WIRE_TRAP_BUFFER_OVERRUN = 130,	       /* wire_trap_port */
	WIRE_TRAP_FLOW_CONTROL_WATCHDOG = 131, /* wire_trap_port */
	WIRE_TRAP_CAPABILITY_CHANGE = 144,     /* wire_trap_capability */
	WIRE_TRAP_SYSTEM_GUID_CHANGE = 145,    /* wire_trap_system_guid */
	WIRE_TRAP_BAD_MKEY = 256,	       /* wire_trap_mkey */
	WIRE_TRAP_BAD_PKEY = 257,	       /* wire_trap_key */
	WIRE_TRAP_BAD_QKEY = 258,	       /* wire_trap_key */
	WIRE_TRAP_SWITCH_BAD_PKEY = 259,       /* wire_trap_switch_pkey */
};

struct wire_trap_gid {
	union wire_gid gid;
};
WIRE_CODEC(trap_gid)

struct wire_trap_switch {
	uint16_t lid;
};
WIRE_CODEC(trap_switch)

struct wire_trap_port {
	uint16_t lid;
	uint8_t port;
};
WIRE_CODEC(trap_port)

/* wire_trap_capability.change_flags, valid with other_local_changes */
enum wire_trap_change {
	WIRE_CHANGE_NODE_DESCRIPTION = 1 << 0,
	WIRE_CHANGE_LINK_WIDTH_ENABLED = 1 << 1,
	WIRE_CHANGE_LINK_SPEED_ENABLED = 1 << 2,
	WIRE_CHANGE_SM_PRIORITY = 1 << 3,
	WIRE_CHANGE_CAP_MASK2 = 1 << 4,
	WIRE_CHANGE_HIERARCHY = 1 << 5,
};
struct wire_trap_capability {
	uint16_t lid;
	bool other_local_changes;
	uint32_t cap_mask;
	uint8_t change_flags; /* enum wire_trap_change */
	uint16_t cap_mask2;
};
WIRE_CODEC(trap_capability)

struct wire_trap_system_guid {
	uint16_t lid;
	uint64_t system_guid;
};
WIRE_CODEC(trap_system_guid)

struct wire_trap_mkey {
	uint16_t lid, dr_slid;
	uint8_t method;
	uint16_t attr_id;
	uint32_t attr_mod;
	uint64_t mkey;
	bool dr_notice; /* the offender came by directed route */
	bool dr_path_truncated;
	uint8_t dr_hop_count;
	uint8_t dr_return_path[30];
};
WIRE_CODEC(trap_mkey)

struct wire_trap_key {
	uint16_t lid1, lid2; /* source, destination */
	uint32_t key;	     /* Q_Key, or P_Key in the low 16 bits */
	uint8_t sl;
	uint32_t qpn1, qpn2;
	union wire_gid gid1, gid2; /* zero without a GRH */
};
WIRE_CODEC(trap_key)

/* wire_trap_switch_pkey.data_valid: which fields the switch could fill */
enum wire_trap_valid {
	WIRE_VALID_LID1 = 1 << 0,
	WIRE_VALID_LID2 = 1 << 1,
	WIRE_VALID_PKEY = 1 << 2,
	WIRE_VALID_SL = 1 << 3,
	WIRE_VALID_QP1 = 1 << 4,
	WIRE_VALID_QP2 = 1 << 5,
	WIRE_VALID_GID1 = 1 << 6,
	WIRE_VALID_GID2 = 1 << 7,
};
struct wire_trap_switch_pkey {
	uint16_t data_valid; /* enum wire_trap_valid */
	uint16_t lid1, lid2;
	uint16_t pkey;
	uint8_t sl;
	uint32_t qpn1, qpn2;
	union wire_gid gid1, gid2;
	uint16_t switch_lid;
	uint8_t port;
};
WIRE_CODEC(trap_switch_pkey)

/** wire_trap_codec() - Return: the codec of a generic SM trap's details; NULL */
const struct wire_codec *wire_trap_codec(uint16_t trap_number);

#endif
