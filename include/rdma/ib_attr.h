/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Names and attributes of the verbs (IBA v1 chapter 11): what is asked of
 * devices, ports, queue pairs and completions, and what they answer. The
 * values equal those of libibverbs' IBV_ names, so that the same integer
 * means the same on both sides of the uverbs socket.
 */
#ifndef RDMA_IB_ATTR_H
#define RDMA_IB_ATTR_H

#include <rdma/rdma_netlink.h> /* RDMA_NODE_IB_CA ... */

#include "rdma/ib_types.h"

#pragma GCC visibility push(default)

union ib_gid {
	u8 raw[16];
	struct {
		__be64 subnet_prefix;
		__be64 interface_id;
	} global;
};

#define IB_DEVICE_NAME_BYTES 64
#define IB_DEVICE_NODE_DESC_MAX 64
#define IB_FW_VERSION_NAME_MAX 64
#define IB_QPN_MASK 0xFFFFFF
#define IB_MULTICAST_QPN 0xffffff
#define IB_LID_PERMISSIVE 0xffff
#define IB_MULTICAST_LID_BASE 0xc000

/* --- devices (11.2.1) --- */

enum ib_device_cap_flags {
	IB_DEVICE_RESIZE_MAX_WR = 1 << 0,
	IB_DEVICE_BAD_PKEY_CNTR = 1 << 1,
	IB_DEVICE_BAD_QKEY_CNTR = 1 << 2,
	IB_DEVICE_RAW_MULTI = 1 << 3,
	IB_DEVICE_AUTO_PATH_MIG = 1 << 4,
	IB_DEVICE_CHANGE_PHY_PORT = 1 << 5,
	IB_DEVICE_UD_AV_PORT_ENFORCE = 1 << 6,
	IB_DEVICE_CURR_QP_STATE_MOD = 1 << 7,
	IB_DEVICE_SHUTDOWN_PORT = 1 << 8,
	IB_DEVICE_INIT_TYPE = 1 << 9,
	IB_DEVICE_PORT_ACTIVE_EVENT = 1 << 10,
	IB_DEVICE_SYS_IMAGE_GUID = 1 << 11,
	IB_DEVICE_RC_RNR_NAK_GEN = 1 << 12,
	IB_DEVICE_SRQ_RESIZE = 1 << 13,
	IB_DEVICE_N_NOTIFY_CQ = 1 << 14,
	IB_DEVICE_MEM_WINDOW = 1 << 17,
	IB_DEVICE_UD_IP_CSUM = 1 << 18, /* IB_SEND_IP_CSUM, IB_WC_IP_CSUM_OK */
	IB_DEVICE_UD_TSO = 1 << 19,	/* IB_WR_LSO */
	IB_DEVICE_XRC = 1 << 20,
	IB_DEVICE_MEM_MGT_EXTENSIONS = 1 << 21,
	IB_DEVICE_MEM_WINDOW_TYPE_2A = 1 << 23,
	IB_DEVICE_MEM_WINDOW_TYPE_2B = 1 << 24,
	IB_DEVICE_MANAGED_FLOW_STEERING = 1 << 29,
};
/** further bits of device_cap_flags, beyond the range of an enum */
#define IB_DEVICE_FLUSH_GLOBAL (1ull << 38)
#define IB_DEVICE_FLUSH_PERSISTENT (1ull << 39)
#define IB_DEVICE_ATOMIC_WRITE (1ull << 40)

enum ib_atomic_cap { IB_ATOMIC_NONE, IB_ATOMIC_HCA, IB_ATOMIC_GLOB };

enum ib_odp_general_cap_bits {
	IB_ODP_SUPPORT = 1 << 0,
	IB_ODP_SUPPORT_IMPLICIT = 1 << 1,
};

enum ib_odp_transport_cap_bits {
	IB_ODP_SUPPORT_SEND = 1 << 0,
	IB_ODP_SUPPORT_RECV = 1 << 1,
	IB_ODP_SUPPORT_WRITE = 1 << 2,
	IB_ODP_SUPPORT_READ = 1 << 3,
	IB_ODP_SUPPORT_ATOMIC = 1 << 4,
	IB_ODP_SUPPORT_SRQ_RECV = 1 << 5,
	IB_ODP_SUPPORT_FLUSH = 1 << 6,
	IB_ODP_SUPPORT_ATOMIC_WRITE = 1 << 7,
};

/** struct ib_odp_caps - on-demand paging: which requests may use such memory,
 *  by transport (enum ib_odp_transport_cap_bits) */
struct ib_odp_caps {
	u64 general_caps; /* enum ib_odp_general_cap_bits */
	struct {
		u32 rc_odp_caps, uc_odp_caps, ud_odp_caps, xrc_odp_caps;
	} per_transport_caps;
};

/** struct ib_cq_caps - how long the event of a CQ may be told to wait: for how many
 *  completions, and how many microseconds; 0: not at all */
struct ib_cq_caps {
	u16 max_cq_moderation_count, max_cq_moderation_period;
};

/** struct ib_tm_caps - what shared receive queues that match tags can do; max_num_tags 0: there
 *  are none */
struct ib_tm_caps {
	u32 max_rndv_hdr_size; /* bytes of a rendezvous request, with what its sender adds */
	u32 max_num_tags;      /* buffers in the list of an SRQ */
	u32 max_ops;	       /* on the list, that are under way */
	u32 max_sge;	       /* pieces of a buffer */
	u8 flags;	       /* enum ib_tm_cap_flags */
};
enum ib_tm_cap_flags { IB_TM_CAP_RC = 1 << 0 };

struct ib_device_attr {
	char fw_ver[IB_FW_VERSION_NAME_MAX];
	__be64 sys_image_guid;
	u64 max_mr_size;
	u64 page_size_cap;
	u32 vendor_id, vendor_part_id, hw_ver;
	int max_qp, max_qp_wr;
	u64 device_cap_flags;
	int max_send_sge, max_recv_sge, max_sge_rd;
	int max_cq, max_cqe;
	int max_mr, max_pd;
	int max_qp_rd_atom, max_ee_rd_atom, max_res_rd_atom;
	int max_qp_init_rd_atom, max_ee_init_rd_atom;
	enum ib_atomic_cap atomic_cap;
	int max_ee, max_rdd, max_mw;
	int max_fmr, max_map_per_fmr;
	u32 max_fast_reg_page_list_len; /* pages of a region of ib_alloc_mr() */
	int max_raw_ipv6_qp, max_raw_ethy_qp;
	int max_mcast_grp, max_mcast_qp_attach, max_total_mcast_qp_attach;
	int max_ah;
	int max_srq, max_srq_wr, max_srq_sge;
	u16 max_pkeys;
	u8 local_ca_ack_delay; /* exponent: 4.096 us * 2^n */
	struct ib_odp_caps odp_caps;
	struct ib_cq_caps cq_caps;
	struct ib_tm_caps tm_caps;
	u64 timestamp_mask;  /* the bits that a completion's time stamp has */
	u64 hca_core_clock_khz;
	u64 rss_fields; /* enum ib_rx_hash_fields; 0: there are no work queues */
	u32 min_rate_limit, max_rate_limit; /* of raw packet QPs, in kbit/s; 0: there is none */
	u64 max_dm_size; /* device memory, all of it; 0: there is none */
	/* --- what no verb reports: creating a queue pair tells --- */
	int max_inline_data, max_inline_data_ud; /* bytes */
	u32 qp_types; /* a bit for each enum ib_qp_type that programs may have */
};

enum ib_device_modify_flags {
	IB_DEVICE_MODIFY_SYS_IMAGE_GUID = 1 << 0,
	IB_DEVICE_MODIFY_NODE_DESC = 1 << 1,
};

struct ib_device_modify {
	u64 sys_image_guid;
	char node_desc[IB_DEVICE_NODE_DESC_MAX];
};

/* --- ports (11.2.1.3, 14.2.5.6) --- */

enum ib_mtu {
	IB_MTU_256 = 1,
	IB_MTU_512,
	IB_MTU_1024,
	IB_MTU_2048,
	IB_MTU_4096,
};

static inline int ib_mtu_enum_to_int(enum ib_mtu mtu)
{
	return mtu >= IB_MTU_256 && mtu <= IB_MTU_4096 ? 128 << mtu : -1;
}

enum ib_port_state {
	IB_PORT_NOP,
	IB_PORT_DOWN,
	IB_PORT_INIT,
	IB_PORT_ARMED,
	IB_PORT_ACTIVE,
	IB_PORT_ACTIVE_DEFER,
};

enum ib_port_phys_state {
	IB_PORT_PHYS_STATE_SLEEP = 1,
	IB_PORT_PHYS_STATE_POLLING,
	IB_PORT_PHYS_STATE_DISABLED,
	IB_PORT_PHYS_STATE_PORT_CONFIGURATION_TRAINING,
	IB_PORT_PHYS_STATE_LINK_UP,
	IB_PORT_PHYS_STATE_LINK_ERROR_RECOVERY,
	IB_PORT_PHYS_STATE_PHY_TEST,
};

enum ib_port_cap_mask_bits {
	IB_PORT_SM = 1 << 1,
	IB_PORT_NOTICE_SUP = 1 << 2,
	IB_PORT_TRAP_SUP = 1 << 3,
	IB_PORT_AUTO_MIGR_SUP = 1 << 5,
	IB_PORT_SL_MAP_SUP = 1 << 6,
	IB_PORT_SYS_IMAGE_GUID_SUP = 1 << 11,
	IB_PORT_EXTENDED_SPEEDS_SUP = 1 << 14,
	IB_PORT_CM_SUP = 1 << 16,
	IB_PORT_SNMP_TUNNEL_SUP = 1 << 17,
	IB_PORT_REINIT_SUP = 1 << 18,
	IB_PORT_DEVICE_MGMT_SUP = 1 << 19,
	IB_PORT_VENDOR_CLASS_SUP = 1 << 20,
	IB_PORT_CLIENT_REG_SUP = 1 << 25,
};

enum ib_link_layer { IB_LINK_LAYER_UNSPECIFIED, IB_LINK_LAYER_INFINIBAND = 1, IB_LINK_LAYER_ETHERNET = 2 };

struct ib_port_attr {
	u64 subnet_prefix; /* host order */
	enum ib_port_state state;
	enum ib_mtu max_mtu, active_mtu;
	int gid_tbl_len;
	u32 port_cap_flags;
	u32 max_msg_sz; /* bytes */
	u32 bad_pkey_cntr, qkey_viol_cntr;
	u16 pkey_tbl_len;
	u32 lid, sm_lid; /* lid: of a port of Ethernet the number of its station */
	u8 lmc, max_vl_num, sm_sl;
	u8 subnet_timeout; /* exponent */
	u8 init_type_reply;
	u8 active_width;
	u16 active_speed;
	u8 phys_state; /* enum ib_port_phys_state */
	u8 link_layer; /* enum ib_link_layer */
};

enum ib_port_modify_flags {
	IB_PORT_SHUTDOWN = 1,
	IB_PORT_INIT_TYPE = 1 << 2,
	IB_PORT_RESET_QKEY_CNTR = 1 << 3,
};

struct ib_port_modify {
	u32 set_port_cap_mask, clr_port_cap_mask;
	u8 init_type;
};

/* --- asynchronous events (11.6.3) --- */

enum ib_event_type {
	IB_EVENT_CQ_ERR,
	IB_EVENT_QP_FATAL,
	IB_EVENT_QP_REQ_ERR,
	IB_EVENT_QP_ACCESS_ERR,
	IB_EVENT_COMM_EST,
	IB_EVENT_SQ_DRAINED,
	IB_EVENT_PATH_MIG,
	IB_EVENT_PATH_MIG_ERR,
	IB_EVENT_DEVICE_FATAL,
	IB_EVENT_PORT_ACTIVE,
	IB_EVENT_PORT_ERR,
	IB_EVENT_LID_CHANGE,
	IB_EVENT_PKEY_CHANGE,
	IB_EVENT_SM_CHANGE,
	IB_EVENT_SRQ_ERR,
	IB_EVENT_SRQ_LIMIT_REACHED,
	IB_EVENT_QP_LAST_WQE_REACHED,
	IB_EVENT_CLIENT_REREGISTER,
	IB_EVENT_GID_CHANGE,
};

/** enum ib_event_subject - the kind of object that an event is about */
enum ib_event_subject {
	IB_EVENT_OF_NONE,
	IB_EVENT_OF_DEVICE,
	IB_EVENT_OF_PORT,
	IB_EVENT_OF_QP,
	IB_EVENT_OF_CQ,
	IB_EVENT_OF_SRQ,
};

/** ib_subject_of_event() - Return: what events of this type are about: they are affiliated with a QP, CQ or
 *  SRQ, or are unaffiliated (IBA v1 11.6.3); IB_EVENT_OF_NONE: there is no such event */
enum ib_event_subject ib_subject_of_event(enum ib_event_type event);
/** ib_event_msg() - "port active" and so on, for people */
const char *ib_event_msg(enum ib_event_type event);

/* --- address handles (11.2.2) --- */

struct ib_grh {
	__be32 version_tclass_flow;
	__be16 paylen;
	u8 next_hdr;
	u8 hop_limit;
	union ib_gid sgid, dgid;
};

struct ib_global_route {
	union ib_gid dgid;
	u32 flow_label;
	u8 sgid_index, hop_limit, traffic_class;
};

enum ib_ah_flags { IB_AH_GRH = 1 };

struct rdma_ah_attr {
	struct ib_global_route grh; /* used when ah_flags has IB_AH_GRH */
	u16 dlid;
	u8 sl;
	u8 src_path_bits;
	u8 static_rate; /* enum ibv_rate; 0: the port's */
	u8 ah_flags;
	u8 port_num;
};
/* the name before Linux 4.12 */
#define ib_ah_attr rdma_ah_attr

static inline void rdma_ah_set_dlid(struct rdma_ah_attr *attr, u32 dlid)
{
	attr->dlid = (u16)dlid;
}

static inline void rdma_ah_set_sl(struct rdma_ah_attr *attr, u8 sl)
{
	attr->sl = sl;
}

static inline void rdma_ah_set_path_bits(struct rdma_ah_attr *attr, u8 src_path_bits)
{
	attr->src_path_bits = src_path_bits;
}

static inline void rdma_ah_set_port_num(struct rdma_ah_attr *attr, u32 port_num)
{
	attr->port_num = (u8)port_num;
}

static inline void rdma_ah_set_static_rate(struct rdma_ah_attr *attr, u8 static_rate)
{
	attr->static_rate = static_rate;
}

static inline void rdma_ah_set_ah_flags(struct rdma_ah_attr *attr, enum ib_ah_flags flags)
{
	attr->ah_flags = (u8)flags;
}

/** rdma_ah_set_grh() - packets have a GRH. @dgid: NULL: it stays as it is */
static inline void rdma_ah_set_grh(struct rdma_ah_attr *attr, const union ib_gid *dgid,
				   u32 flow_label, u8 sgid_index, u8 hop_limit, u8 traffic_class)
{
	attr->ah_flags = IB_AH_GRH;
	if (dgid)
		attr->grh.dgid = *dgid;
	attr->grh.flow_label = flow_label;
	attr->grh.sgid_index = sgid_index;
	attr->grh.hop_limit = hop_limit;
	attr->grh.traffic_class = traffic_class;
}

/** rdma_ah_set_dgid_raw() - @dgid: 16 bytes */
static inline void rdma_ah_set_dgid_raw(struct rdma_ah_attr *attr, const void *dgid)
{
	const u8 *from = dgid;

	for (size_t i = 0; i < sizeof(attr->grh.dgid.raw); i++)
		attr->grh.dgid.raw[i] = from[i];
}

static inline u32 rdma_ah_get_dlid(const struct rdma_ah_attr *attr)
{
	return attr->dlid;
}

static inline u8 rdma_ah_get_sl(const struct rdma_ah_attr *attr)
{
	return attr->sl;
}

static inline u8 rdma_ah_get_path_bits(const struct rdma_ah_attr *attr)
{
	return attr->src_path_bits;
}

static inline u32 rdma_ah_get_port_num(const struct rdma_ah_attr *attr)
{
	return attr->port_num;
}

static inline u8 rdma_ah_get_static_rate(const struct rdma_ah_attr *attr)
{
	return attr->static_rate;
}

static inline enum ib_ah_flags rdma_ah_get_ah_flags(const struct rdma_ah_attr *attr)
{
	return (enum ib_ah_flags)attr->ah_flags;
}

static inline const struct ib_global_route *rdma_ah_read_grh(const struct rdma_ah_attr *attr)
{
	return &attr->grh;
}

/** rdma_destroy_ah_attr() - @attr holds nothing that had to be given back */
static inline void rdma_destroy_ah_attr(struct rdma_ah_attr *attr)
{
}

/* --- queue pairs (10.3, 11.2.4) --- */

enum ib_qp_type {
	IB_QPT_SMI, /* QP0 */
	IB_QPT_GSI, /* QP1 */
	IB_QPT_RC,
	IB_QPT_UC,
	IB_QPT_UD,
	IB_QPT_EEC = 6,	       /* an EE context (rdma/ib_rd.h), which the core treats as a QP */
	IB_QPT_RD = 7,	       /* reliable datagrams: rdma/ib_rd.h */
	IB_QPT_RAW_PACKET = 8, /* Ethernet frames */
	IB_QPT_XRC_INI = 9,
	IB_QPT_XRC_TGT,
	IB_QPT_MAX,
};

/* --- Ethernet frames: steering (ibv_create_flow(3)), receive side scaling --- */

enum ib_flow_attr_type {
	IB_FLOW_ATTR_NORMAL,
	IB_FLOW_ATTR_ALL_DEFAULT,
	IB_FLOW_ATTR_MC_DEFAULT,
	IB_FLOW_ATTR_SNIFFER,
};

enum ib_flow_flags { IB_FLOW_ATTR_FLAGS_DONT_TRAP = 1 << 1 };

#define IB_FLOW_KEY_BYTES 64

/** struct ib_flow_attr - which frames: those whose fields have the bits of @value that @mask
 *  selects; the driver says what the bytes are */
struct ib_flow_attr {
	enum ib_flow_attr_type type;
	u16 priority; /* 0 is looked at first */
	u8 port;
	u32 flags;  /* enum ib_flow_flags */
	bool drops; /* frames that match go nowhere */
	u32 tag;    /* that their completions report */
	u8 value[IB_FLOW_KEY_BYTES], mask[IB_FLOW_KEY_BYTES];
};

#define IB_RSS_MAX_LOG_SIZE 7
#define IB_RSS_KEY_BYTES    40

/* as enum ibv_rx_hash_fields */
enum ib_rx_hash_fields {
	IB_RX_HASH_SRC_IPV4 = 1 << 0,
	IB_RX_HASH_DST_IPV4 = 1 << 1,
	IB_RX_HASH_SRC_IPV6 = 1 << 2,
	IB_RX_HASH_DST_IPV6 = 1 << 3,
	IB_RX_HASH_SRC_PORT_TCP = 1 << 4,
	IB_RX_HASH_DST_PORT_TCP = 1 << 5,
	IB_RX_HASH_SRC_PORT_UDP = 1 << 6,
	IB_RX_HASH_DST_PORT_UDP = 1 << 7,
	IB_RX_HASH_ALL = (1 << 8) - 1,
};

/** struct ib_rss - the Toeplitz hash over these fields selects the work queue */
struct ib_rss {
	u64 fields; /* enum ib_rx_hash_fields */
	u8 key[IB_RSS_KEY_BYTES];
	u32 log_size;
	struct ib_qp *wq[1 << IB_RSS_MAX_LOG_SIZE]; /* the first 2^log_size */
};

enum ib_sig_type { IB_SIGNAL_ALL_WR, IB_SIGNAL_REQ_WR };

struct ib_qp_cap {
	u32 max_send_wr, max_recv_wr, max_send_sge, max_recv_sge;
	u32 max_inline_data; /* bytes */
	/* transfers of rw.h that are under way at one time: creating a QP adds to max_send_wr what
	 * they need. Not reported */
	u32 max_rdma_ctxs;
};

enum ib_qp_state {
	IB_QPS_RESET,
	IB_QPS_INIT,
	IB_QPS_RTR,
	IB_QPS_RTS,
	IB_QPS_SQD,
	IB_QPS_SQE,
	IB_QPS_ERR,
};

enum ib_mig_state { IB_MIG_MIGRATED, IB_MIG_REARM, IB_MIG_ARMED };

enum ib_qp_attr_mask {
	IB_QP_STATE = 1 << 0,
	IB_QP_CUR_STATE = 1 << 1,
	IB_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	IB_QP_ACCESS_FLAGS = 1 << 3,
	IB_QP_PKEY_INDEX = 1 << 4,
	IB_QP_PORT = 1 << 5,
	IB_QP_QKEY = 1 << 6,
	IB_QP_AV = 1 << 7,
	IB_QP_PATH_MTU = 1 << 8,
	IB_QP_TIMEOUT = 1 << 9,
	IB_QP_RETRY_CNT = 1 << 10,
	IB_QP_RNR_RETRY = 1 << 11,
	IB_QP_RQ_PSN = 1 << 12,
	IB_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	IB_QP_ALT_PATH = 1 << 14,
	IB_QP_MIN_RNR_TIMER = 1 << 15,
	IB_QP_SQ_PSN = 1 << 16,
	IB_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	IB_QP_PATH_MIG_STATE = 1 << 18,
	IB_QP_CAP = 1 << 19,
	IB_QP_DEST_QPN = 1 << 20,
	IB_QP_RATE_LIMIT = 1 << 25,
};

struct ib_qp_attr {
	enum ib_qp_state qp_state, cur_qp_state;
	enum ib_mtu path_mtu;
	enum ib_mig_state path_mig_state;
	u32 qkey;
	u32 rq_psn, sq_psn;
	u32 dest_qp_num;
	int qp_access_flags;
	struct ib_qp_cap cap;
	struct rdma_ah_attr ah_attr, alt_ah_attr;
	u16 pkey_index, alt_pkey_index;
	u8 en_sqd_async_notify, sq_draining;
	u8 max_rd_atomic, max_dest_rd_atomic;
	u8 min_rnr_timer; /* exponent table of 9.7.5.2.8 */
	u8 port_num;
	u8 timeout; /* exponent: 4.096 us * 2^n */
	u8 retry_cnt, rnr_retry;
	u8 alt_port_num, alt_timeout;
	u32 rate_limit; /* of a raw packet QP, in kbit/s; 0: none */
};

enum ib_access_flags {
	IB_ACCESS_LOCAL_WRITE = 1 << 0,
	IB_ACCESS_REMOTE_WRITE = 1 << 1,
	IB_ACCESS_REMOTE_READ = 1 << 2,
	IB_ACCESS_REMOTE_ATOMIC = 1 << 3,
	IB_ACCESS_MW_BIND = 1 << 4,
	IB_ZERO_BASED = 1 << 5,
	IB_ACCESS_ON_DEMAND = 1 << 6,
	IB_ACCESS_HUGETLB = 1 << 7,
	IB_ACCESS_FLUSH_GLOBAL = 1 << 8,
	/** what a device may ignore (relaxed ordering is among them) */
	IB_ACCESS_OPTIONAL = 0x3ff00000,
};

enum ib_mr_rereg_flags {
	IB_MR_REREG_TRANS = 1 << 0,
	IB_MR_REREG_PD = 1 << 1,
	IB_MR_REREG_ACCESS = 1 << 2,
	IB_MR_REREG_SUPPORTED = 7,
};

enum ib_srq_attr_mask { IB_SRQ_MAX_WR = 1 << 0, IB_SRQ_LIMIT = 1 << 1 };

struct ib_srq_attr {
	u32 max_wr, max_sge, srq_limit;
};

/* --- work requests (11.4.1) and completions (11.4.2) --- */

enum ib_wr_opcode {
	IB_WR_RDMA_WRITE,
	IB_WR_RDMA_WRITE_WITH_IMM,
	IB_WR_SEND,
	IB_WR_SEND_WITH_IMM,
	IB_WR_RDMA_READ,
	IB_WR_ATOMIC_CMP_AND_SWP,
	IB_WR_ATOMIC_FETCH_AND_ADD,
	IB_WR_LOCAL_INV,
	IB_WR_BIND_MW,
	IB_WR_SEND_WITH_INV,
	IB_WR_LSO,
	IB_WR_REG_MR = 0x20, /* the midlayer's own: struct ib_reg_wr */
};

enum ib_send_flags {
	IB_SEND_FENCE = 1 << 0,
	IB_SEND_SIGNALED = 1 << 1,
	IB_SEND_SOLICITED = 1 << 2,
	IB_SEND_INLINE = 1 << 3,
	IB_SEND_IP_CSUM = 1 << 4,
};

struct ib_sge {
	u64 addr;
	u32 length;
	u32 lkey;
};

enum ib_wc_status {
	IB_WC_SUCCESS,
	IB_WC_LOC_LEN_ERR,
	IB_WC_LOC_QP_OP_ERR,
	IB_WC_LOC_EEC_OP_ERR,
	IB_WC_LOC_PROT_ERR,
	IB_WC_WR_FLUSH_ERR,
	IB_WC_MW_BIND_ERR,
	IB_WC_BAD_RESP_ERR,
	IB_WC_LOC_ACCESS_ERR,
	IB_WC_REM_INV_REQ_ERR,
	IB_WC_REM_ACCESS_ERR,
	IB_WC_REM_OP_ERR,
	IB_WC_RETRY_EXC_ERR,
	IB_WC_RNR_RETRY_EXC_ERR,
	IB_WC_LOC_RDD_VIOL_ERR,
	IB_WC_REM_INV_RD_REQ_ERR,
	IB_WC_REM_ABORT_ERR,
	IB_WC_INV_EECN_ERR,
	IB_WC_INV_EEC_STATE_ERR,
	IB_WC_FATAL_ERR,
	IB_WC_RESP_TIMEOUT_ERR,
	IB_WC_GENERAL_ERR,
};

/** ib_wc_status_msg() - "retry exceeded" and so on, for people */
const char *ib_wc_status_msg(enum ib_wc_status status);

enum ib_wc_opcode {
	IB_WC_SEND,
	IB_WC_RDMA_WRITE,
	IB_WC_RDMA_READ,
	IB_WC_COMP_SWAP,
	IB_WC_FETCH_ADD,
	IB_WC_BIND_MW,
	IB_WC_LOCAL_INV,
	IB_WC_LSO,
	IB_WC_REG_MR = 0x20,
	IB_WC_RECV = 1 << 7,
	IB_WC_RECV_RDMA_WITH_IMM,
};

enum ib_wc_flags {
	IB_WC_GRH = 1 << 0,
	IB_WC_WITH_IMM = 1 << 1,
	IB_WC_IP_CSUM_OK = 1 << 2,
	IB_WC_WITH_INVALIDATE = 1 << 3,
};

enum ib_cq_notify_flags {
	IB_CQ_SOLICITED = 1 << 0,
	IB_CQ_NEXT_COMP = 1 << 1,
	IB_CQ_SOLICITED_MASK = IB_CQ_SOLICITED | IB_CQ_NEXT_COMP,
	IB_CQ_REPORT_MISSED_EVENTS = 1 << 2,
};

struct ib_cq_init_attr {
	unsigned int cqe;
	u32 comp_vector;
	u32 flags;
};

#pragma GCC visibility pop

#endif
