/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Management datagrams (IBA v1 chapter 13) for clients of the midlayer. A
 * client registers an agent on QP0 or QP1 of a port; it sends requests whose
 * responses the core matches by transaction, class and source, with retries
 * and time-outs, and it receives what arrives for the class and methods that
 * it registered. Messages longer than a MAD travel by RMPP (13.6), in both
 * directions, without the client's doing.
 *
 * Names and rules are those of the Linux InfiniBand core. Handlers run from
 * the loop, never on the stack of the call that caused them, except that
 * ib_unregister_mad_agent() completes what is outstanding before it returns.
 */
#ifndef RDMA_IB_MAD_H
#define RDMA_IB_MAD_H

#include "rdma/ib_verbs.h"

#pragma GCC visibility push(default)

#define IB_MGMT_BASE_VERSION 1

/* --- classes (13.4.4) --- */

#define IB_MGMT_CLASS_SUBN_LID_ROUTED 0x01
#define IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE 0x81
#define IB_MGMT_CLASS_SUBN_ADM 0x03
#define IB_MGMT_CLASS_PERF_MGMT 0x04
#define IB_MGMT_CLASS_BM 0x05
#define IB_MGMT_CLASS_DEVICE_MGMT 0x06
#define IB_MGMT_CLASS_CM 0x07
#define IB_MGMT_CLASS_SNMP 0x08
#define IB_MGMT_CLASS_DEVICE_ADM 0x10
#define IB_MGMT_CLASS_BOOT_MGMT 0x11
#define IB_MGMT_CLASS_BIS 0x12
#define IB_MGMT_CLASS_CONG_MGMT 0x21
#define IB_MGMT_CLASS_VENDOR_RANGE2_START 0x30
#define IB_MGMT_CLASS_VENDOR_RANGE2_END 0x4f

#define IB_OPENIB_OUI 0x001405

/* --- methods (13.4.5) and status (13.4.7) --- */

#define IB_MGMT_METHOD_GET 0x01
#define IB_MGMT_METHOD_SET 0x02
#define IB_MGMT_METHOD_SEND 0x03
#define IB_MGMT_METHOD_TRAP 0x05
#define IB_MGMT_METHOD_REPORT 0x06
#define IB_MGMT_METHOD_TRAP_REPRESS 0x07
#define IB_MGMT_METHOD_RESP 0x80
#define IB_MGMT_METHOD_GET_RESP 0x81
#define IB_MGMT_METHOD_REPORT_RESP 0x86
#define IB_SA_METHOD_GET_MULTI 0x14
#define IB_SA_METHOD_GET_MULTI_RESP 0x94
#define IB_MGMT_MAX_METHODS 128

#define IB_BM_ATTR_MOD_RESP cpu_to_be32(1) /* BM: AttributeModifier bit 0 */

#define IB_MGMT_MAD_STATUS_SUCCESS 0x0000
#define IB_MGMT_MAD_STATUS_BUSY 0x0001
#define IB_MGMT_MAD_STATUS_REDIRECT_REQD 0x0002
#define IB_MGMT_MAD_STATUS_BAD_VERSION 0x0004
#define IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD 0x0008
#define IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB 0x000c
#define IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE 0x001c

/* --- RMPP (13.6.2) --- */

#define IB_MGMT_RMPP_VERSION 1

enum ib_rmpp_type {
	IB_MGMT_RMPP_TYPE_NONE = 0,
	IB_MGMT_RMPP_TYPE_DATA = 1,
	IB_MGMT_RMPP_TYPE_ACK = 2,
	IB_MGMT_RMPP_TYPE_STOP = 3,
	IB_MGMT_RMPP_TYPE_ABORT = 4,
};

enum ib_rmpp_flags {
	IB_MGMT_RMPP_FLAG_ACTIVE = 1,
	IB_MGMT_RMPP_FLAG_FIRST = 1 << 1,
	IB_MGMT_RMPP_FLAG_LAST = 1 << 2,
};

#define IB_MGMT_RMPP_NO_RESPTIME 0x1f

enum ib_rmpp_status {
	IB_MGMT_RMPP_STATUS_SUCCESS = 0,
	IB_MGMT_RMPP_STATUS_RESX = 1,	  /* STOP: resources exhausted */
	IB_MGMT_RMPP_STATUS_ABORT_MIN = 118,
	IB_MGMT_RMPP_STATUS_T2L = 118,	  /* total time too long */
	IB_MGMT_RMPP_STATUS_BAD_LEN = 119, /* inconsistent last and length */
	IB_MGMT_RMPP_STATUS_BAD_SEG = 120, /* inconsistent first and segment */
	IB_MGMT_RMPP_STATUS_BADT = 121,	  /* bad RMPP type */
	IB_MGMT_RMPP_STATUS_W2S = 122,	  /* new window too small */
	IB_MGMT_RMPP_STATUS_S2B = 123,	  /* segment number too big */
	IB_MGMT_RMPP_STATUS_BAD_STATUS = 124,
	IB_MGMT_RMPP_STATUS_UNV = 125,	  /* unsupported version */
	IB_MGMT_RMPP_STATUS_TMR = 126,	  /* too many retries */
	IB_MGMT_RMPP_STATUS_UNSPEC = 127,
	IB_MGMT_RMPP_STATUS_ABORT_MAX = 127,
};

/* --- bytes of the wire --- */

enum {
	IB_MGMT_MAD_HDR = 24,
	IB_MGMT_MAD_DATA = 232,
	IB_MGMT_RMPP_HDR = 36,
	IB_MGMT_RMPP_DATA = 220,
	IB_MGMT_VENDOR_HDR = 40,
	IB_MGMT_VENDOR_DATA = 216,
	IB_MGMT_SA_HDR = 56,
	IB_MGMT_SA_DATA = 200,
	IB_MGMT_DEVICE_HDR = 64,
	IB_MGMT_DEVICE_DATA = 192,
	IB_MGMT_MAD_SIZE = IB_MGMT_MAD_HDR + IB_MGMT_MAD_DATA,
};

/** struct ib_mad_hdr - 13.4.3, in wire order */
struct ib_mad_hdr {
	u8 base_version;
	u8 mgmt_class;
	u8 class_version;
	u8 method;
	__be16 status;
	__be16 class_specific;
	__be64 tid;
	__be16 attr_id;
	__be16 resv;
	__be32 attr_mod;
};

struct ib_rmpp_hdr {
	u8 rmpp_version;
	u8 rmpp_type;
	u8 rmpp_rtime_flags; /* response time in bits 7..3, flags in 2..0 */
	u8 rmpp_status;
	__be32 seg_num;
	__be32 paylen_newwin;
};

/** struct ib_class_port_info - ClassPortInfo of any class (IBA v1 13.4.8.1), as on the wire.
 *  @redirect_tcslfl: traffic class, SL and flow label in 8, 4 and 20 bits; @trap_hlqp: hop
 *  limit and QP in 8 and 24 */
struct ib_class_port_info {
	u8 base_version, class_version;
	__be16 capability_mask;
	__be32 cap_mask2_resp_time; /* 27 and 5 bits */
	u8 redirect_gid[16];
	__be32 redirect_tcslfl;
	__be16 redirect_lid, redirect_pkey;
	__be32 redirect_qp, redirect_qkey;
	u8 trap_gid[16];
	__be32 trap_tcslfl;
	__be16 trap_lid, trap_pkey;
	__be32 trap_hlqp, trap_qkey;
};

/** ib_set_cpi_resp_time() - @resp_time_enc: 4.096 us << it; 5 bits */
static inline void ib_set_cpi_resp_time(struct ib_class_port_info *cpi, u8 resp_time_enc)
{
	cpi->cap_mask2_resp_time = (cpi->cap_mask2_resp_time & ~cpu_to_be32(0x1f)) |
				   cpu_to_be32(resp_time_enc & 0x1fu);
}

struct ib_mad {
	struct ib_mad_hdr mad_hdr;
	u8 data[IB_MGMT_MAD_DATA];
};

struct ib_rmpp_mad {
	struct ib_mad_hdr mad_hdr;
	struct ib_rmpp_hdr rmpp_hdr;
	u8 data[IB_MGMT_RMPP_DATA];
};

struct ib_vendor_mad {
	struct ib_mad_hdr mad_hdr;
	struct ib_rmpp_hdr rmpp_hdr;
	u8 reserved;
	u8 oui[3];
	u8 data[IB_MGMT_VENDOR_DATA];
};

static inline u8 ib_get_rmpp_resptime(const struct ib_rmpp_hdr *hdr)
{
	return hdr->rmpp_rtime_flags >> 3;
}

static inline u8 ib_get_rmpp_flags(const struct ib_rmpp_hdr *hdr)
{
	return hdr->rmpp_rtime_flags & 7;
}

static inline void ib_set_rmpp_resptime(struct ib_rmpp_hdr *hdr, u8 resptime_enc)
{
	hdr->rmpp_rtime_flags = ib_get_rmpp_flags(hdr) | resptime_enc << 3;
}

static inline void ib_set_rmpp_flags(struct ib_rmpp_hdr *hdr, u8 flags)
{
	hdr->rmpp_rtime_flags = (hdr->rmpp_rtime_flags & 0xf8) | (flags & 7);
}

/** ib_response_mad() - is it a response by the rules of 13.4.5? */
bool ib_response_mad(const struct ib_mad_hdr *hdr);
/** ib_get_mad_data_offset() - where the data that RMPP segments begins */
int ib_get_mad_data_offset(u8 mgmt_class);
/** ib_is_mad_class_rmpp() - may the class carry an RMPP header (13.6.1)? */
bool ib_is_mad_class_rmpp(u8 mgmt_class);

/* --- agents --- */

struct ib_mad_agent;
struct ib_mad_send_wc;
struct ib_mad_recv_wc;

/**
 * struct ib_mad_send_buf - a MAD, or an RMPP message, to send
 * @mad: the whole MAD; of an RMPP message the first hdr_len bytes head every
 *	 segment, and the data is reached by ib_get_rmpp_segment()
 * @ah: the destination; the caller's, who keeps it until the send completes
 * @timeout_ms: how long to wait for a response; 0: none is expected
 * @retries: how often to send again after a time-out
 */
struct ib_mad_send_buf {
	struct ib_mad_send_buf *next;
	void *mad;
	struct ib_mad_agent *mad_agent;
	struct ib_ah *ah;
	void *context[2];
	int hdr_len;
	int data_len;
	int seg_count; /* of an RMPP message; 0 otherwise */
	int seg_size;
	int seg_rmpp_size;
	int timeout_ms;
	int retries;
};

/** a send is over: @wc->status IB_WC_SUCCESS (sent; answered, when a response
 *  was awaited), IB_WC_RESP_TIMEOUT_ERR, IB_WC_WR_FLUSH_ERR when cancelled,
 *  IB_WC_REM_ABORT_ERR with vendor_err the RMPP status */
typedef void (*ib_mad_send_handler)(struct ib_mad_agent *mad_agent,
				    struct ib_mad_send_wc *mad_send_wc);
/** a MAD or a whole RMPP message arrived; @send_buf is the request that it
 *  answers (about to complete), or NULL. The handler must in time give
 *  @mad_recv_wc to ib_free_recv_mad(). */
typedef void (*ib_mad_recv_handler)(struct ib_mad_agent *mad_agent,
				    struct ib_mad_send_buf *send_buf,
				    struct ib_mad_recv_wc *mad_recv_wc);
/** a MAD is about to go out: for snoops */
typedef void (*ib_mad_snoop_handler)(struct ib_mad_agent *mad_agent,
				     struct ib_mad_send_buf *send_buf,
				     struct ib_mad_send_wc *mad_send_wc);

enum {
	IB_MAD_USER_RMPP = 1,
	IB_MAD_SHARES = 2,
};

struct ib_mad_agent {
	struct ib_device *device;
	struct ib_qp *qp;
	ib_mad_recv_handler recv_handler;
	ib_mad_send_handler send_handler;
	ib_mad_snoop_handler snoop_handler;
	void *context;
	u32 hi_tid; /* the upper half of the TID of its requests */
	u32 flags;
	u8 port_num;
	u8 rmpp_version;
	struct rdma_restrack_entry res;
};

struct ib_mad_send_wc {
	struct ib_mad_send_buf *send_buf;
	enum ib_wc_status status;
	u32 vendor_err;
};

/** struct ib_mad_recv_buf - one segment; @grh valid when IB_WC_GRH is set */
struct ib_mad_recv_buf {
	struct list_head list;
	struct ib_grh *grh;
	struct ib_mad *mad;
};

/**
 * struct ib_mad_recv_wc - what arrived
 * @recv_buf: the first segment; @rmpp_list: all of them, in order
 * @mad_len: bytes of the message: headers once, then the data of all
 */
struct ib_mad_recv_wc {
	struct ib_wc *wc;
	struct ib_mad_recv_buf recv_buf;
	struct list_head rmpp_list;
	int mad_len;
	size_t mad_seg_size;
};

/** struct ib_mad_reg_req - the unsolicited MADs that an agent wants: bit m of
 *  @method_mask is method m; @oui for the vendor classes 0x30 to 0x4f */
struct ib_mad_reg_req {
	u8 mgmt_class;
	u8 mgmt_class_version;
	u8 oui[3];
	unsigned long method_mask[IB_MGMT_MAX_METHODS / (8 * sizeof(long))];
};

/**
 * ib_register_mad_agent() - begin to send and receive MADs
 * @qp_type: IB_QPT_SMI (QP0) or IB_QPT_GSI (QP1)
 * @reg_req: NULL for an agent that only sends requests
 * @rmpp_version: IB_MGMT_RMPP_VERSION to have messages segmented; 0
 * @recv_handler: needed with @reg_req, and to receive responses
 * @flags: IB_MAD_USER_RMPP: the client does RMPP itself. IB_MAD_SHARES: another agent may have the
 *         same methods, and gets what this one passes on by ib_pass_on_recv_mad()
 *
 * Return: the agent, or ERR_PTR: -EINVAL (class, version, QP, handlers, OUI),
 * -EBUSY another agent has one of the methods, -ENODEV port, -ENOMEM
 */
struct ib_mad_agent *ib_register_mad_agent_(struct ib_device *device, u32 port_num,
					    enum ib_qp_type qp_type,
					    const struct ib_mad_reg_req *reg_req,
					    u8 rmpp_version, ib_mad_send_handler send_handler,
					    ib_mad_recv_handler recv_handler, void *context,
					    u32 flags, const char *client);
#define ib_register_mad_agent(device, port_num, qp_type, reg_req, rmpp_version, send_handler,  \
			      recv_handler, context, flags)                                \
	ib_register_mad_agent_(device, port_num, qp_type, reg_req, rmpp_version, send_handler, \
			       recv_handler, context, flags, SOFTIB_CLIENT_NAME)
/** ib_unregister_mad_agent() - its sends complete with IB_WC_WR_FLUSH_ERR
 *  before this returns; received MADs that it holds stay its own to free */
void ib_unregister_mad_agent(struct ib_mad_agent *mad_agent);

/** struct ib_mad_keeper - who counts the memory that reassemblies of an agent take, each with the context
 *  of its handlers. @take: Return: false: there is no room for @bytes, and the transfer is aborted.
 *  @give: @bytes of one take() are free again */
struct ib_mad_keeper {
	bool (*take)(void *context, size_t bytes);
	void (*give)(void *context, size_t bytes);
};

/** ib_mad_agent_set_keeper() - before the agent has received anything. @keeper: must outlive it */
void ib_mad_agent_set_keeper(struct ib_mad_agent *mad_agent, const struct ib_mad_keeper *keeper);

/** ib_mad_agent_for_each() - call @fn for every agent and snoop on @device
 *  @fn: returns 0 to go on; it must not register or unregister any
 *  Return: 0, or what @fn returned */
int ib_mad_agent_for_each(struct ib_device *device,
			  int (*fn)(struct ib_mad_agent *agent, void *ctx), void *ctx);

enum ib_mad_snoop_flags {
	IB_MAD_SNOOP_POSTED_SENDS = 1,
	IB_MAD_SNOOP_SEND_COMPLETIONS = 1 << 2,
	IB_MAD_SNOOP_RECVS = 1 << 4,
};

/** ib_register_mad_snoop() - look at all MADs of a QP. @recv_handler may
 *  keep nothing of what it sees. Return: an agent or ERR_PTR(-EINVAL, ...) */
struct ib_mad_agent *ib_register_mad_snoop_(struct ib_device *device, u32 port_num,
					    enum ib_qp_type qp_type, int mad_snoop_flags,
					    ib_mad_snoop_handler snoop_handler,
					    ib_mad_recv_handler recv_handler, void *context,
					    const char *client);
#define ib_register_mad_snoop(device, port_num, qp_type, mad_snoop_flags, snoop_handler,       \
			      recv_handler, context)                                       \
	ib_register_mad_snoop_(device, port_num, qp_type, mad_snoop_flags, snoop_handler,      \
			       recv_handler, context, SOFTIB_CLIENT_NAME)

/**
 * ib_create_send_mad() - room for a MAD to send
 * @rmpp_active: send as an RMPP message (also when one segment is enough)
 * @hdr_len: bytes of headers: MAD, RMPP, class
 * @data_len: bytes that follow
 * Return: a buffer with all 0 but the RMPP header; ERR_PTR(-EINVAL, -ENOMEM)
 */
struct ib_mad_send_buf *ib_create_send_mad(struct ib_mad_agent *mad_agent, u32 remote_qpn,
					   u16 pkey_index, int rmpp_active, int hdr_len,
					   int data_len, gfp_t gfp_mask, u8 base_version);
void ib_free_send_mad(struct ib_mad_send_buf *send_buf);
/** ib_get_rmpp_segment() - data of segment @seg_num (from 1), seg_size bytes */
void *ib_get_rmpp_segment(struct ib_mad_send_buf *send_buf, int seg_num);
/**
 * ib_set_mad_contents() - what to send: @mad, hdr_len + data_len bytes
 * The data goes to the segments of an RMPP message. The TID of a request gets
 * the agent's upper half, by which its response is known.
 */
void ib_set_mad_contents(struct ib_mad_send_buf *send_buf, const void *mad);
/** ib_set_mad_headers() - as ib_set_mad_contents(), the first hdr_len bytes only: the
 *  data is written to ib_get_rmpp_segment() */
void ib_set_mad_headers(struct ib_mad_send_buf *send_buf, const void *mad);
/** ib_set_mad_qkey() - other than the well-known Q_Key of QP1 */
void ib_set_mad_qkey(struct ib_mad_send_buf *send_buf, u32 qkey);

/**
 * ib_post_send_mad() - send a list of MADs
 * Each that was accepted completes by the send handler, in any order.
 * Context: any; never sleeps. Return: 0; -EINVAL (no handler for what is
 * asked, a directed route that cannot be), -ENOMEM, with *@bad_send_buf the
 * first that was not accepted.
 */
int ib_post_send_mad(struct ib_mad_send_buf *send_buf,
		     struct ib_mad_send_buf **bad_send_buf);
/** ib_cancel_mad() - complete a send with IB_WC_WR_FLUSH_ERR, soon */
void ib_cancel_mad(struct ib_mad_send_buf *send_buf);
/** ib_modify_mad() - a new time-out, counted from now; 0 cancels.
 *  Return: 0; -EINVAL when it is over already */
int ib_modify_mad(struct ib_mad_send_buf *send_buf, u32 timeout_ms);

/** ib_coalesce_recv_mad() - copy a received message, headers once, to @buf
 *  of mad_len bytes */
void ib_coalesce_recv_mad(struct ib_mad_recv_wc *mad_recv_wc, void *buf);
/**
 * ib_take_recv_mad() - ib_coalesce_recv_mad() by and by: move the next bytes of a message
 * @mad_recv_wc: its mad_len says what is left; ib_free_recv_mad() ends it at any time
 * @buf:	 gets whole segments, which are freed
 * @room:	 bytes, at least IB_MGMT_MAD_SIZE
 * Return: the bytes; 0: nothing was left
 */
size_t ib_take_recv_mad(struct ib_mad_recv_wc *mad_recv_wc, void *buf, size_t room);
void ib_free_recv_mad(struct ib_mad_recv_wc *mad_recv_wc);
/**
 * ib_pass_on_recv_mad() - give a MAD that an agent with IB_MAD_SHARES has no use for to the agent
 *			    that has registered the same class and method beside it
 * @mad_agent: that received it, and whose handler is running
 * Return: true: it belongs to the other agent now; false: there is none
 */
bool ib_pass_on_recv_mad(struct ib_mad_agent *mad_agent, struct ib_mad_recv_wc *mad_recv_wc);

/**
 * ib_redirect_mad_qp() - MAD services on a QP of the client's own (13.5.2)
 * @qp: a UD QP in RTS. Requesters are told of it by ClassPortInfo.
 * The client keeps polling its CQs and posting receives of GRH and MAD (296
 * bytes, wr_id the buffer's address), and hands each completion of the QP to
 * ib_process_mad_wc(). Answers go to QP1 of who asks, which takes those with the Q_Key
 * 0x80010000: it has to be the Q_Key of @qp, as one with the highest bit in a work request
 * stands for that (10.2.5).
 */
struct ib_mad_agent *ib_redirect_mad_qp(struct ib_qp *qp, u8 rmpp_version,
					ib_mad_send_handler send_handler,
					ib_mad_recv_handler recv_handler, void *context);
/** ib_process_mad_wc() - go on with a send, or take a received MAD: matched,
 *  reassembled, and given to the agent's handlers. The receive buffer may be
 *  posted again on return. Return: 0; -EINVAL not a redirected agent's */
int ib_process_mad_wc(struct ib_mad_agent *mad_agent, struct ib_wc *wc);

/* --- the core's own --- */

/** ib_mad_init() - start the MAD layer: a client of every device. 0; -errno */
int ib_mad_init(struct rt *rt);
void ib_mad_cleanup(struct rt *rt);

#pragma GCC visibility pop

#endif
