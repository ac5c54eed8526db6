/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The midlayer's interface: what drivers give (struct ib_device and its
 * operations) and what clients and protocols use (ib_*). Names and rules are
 * those of the Linux InfiniBand core.
 *
 * One struct rt owns a device: everything about it runs on that thread, one
 * call at a time. Calls of which the rules say that they may sleep complete
 * before they return. Callbacks (add, remove, completion and event handlers)
 * never run on the caller's stack unless their description says so: they are
 * queued with rt_work. A CQ's completion handler is never entered twice.
 *
 * Errors are -errno, or ERR_PTR() where a pointer is returned.
 */
#ifndef RDMA_IB_VERBS_H
#define RDMA_IB_VERBS_H

#include "rdma/ib_attr.h"
#include "rdma/ib_types.h"
#include "rdma/restrack.h"

#pragma GCC visibility push(default)

struct rt;
struct ib_device;
struct ib_ucontext;
struct ib_uobject;
struct ib_mad;
struct ib_handle;
struct ib_ucontext_work;
struct ib_client;
struct ib_pages;
struct core_poll;
struct client_data;

/* --- objects --- */

struct ib_pd {
	struct ib_device *device;
	struct ib_uobject *uobject; /* NULL: a kernel consumer's */
	unsigned int usecnt;	    /* QPs, AHs, MRs, SRQs, MWs in it */
	u32 local_dma_lkey; /* covers all memory; kernel consumers only */
	struct ib_mr *internal_mr;
	struct rdma_restrack_entry res;
};

struct ib_ah {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_uobject *uobject;
	struct rdma_restrack_entry res;
};

struct ib_cq;
struct ib_event;
/** completion handler: runs from the loop; may poll, post and re-arm */
typedef void (*ib_comp_handler)(struct ib_cq *cq, void *cq_context);

struct ib_cq {
	struct ib_device *device;
	struct ib_uobject *uobject;
	ib_comp_handler comp_handler;
	void (*event_handler)(struct ib_event *event, void *cq_context);
	void *cq_context;
	int cqe; /* entries; at least as many as asked for */
	unsigned int usecnt;
	/* --- of ib_cq_pool_get() --- */
	struct list_head pool_node; /* in device->cq_pool; else alone */
	unsigned int cqe_used;	    /* entries that its users were promised */
	struct rdma_restrack_entry res;
};

struct ib_srq {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_uobject *uobject;
	void (*event_handler)(struct ib_event *event, void *srq_context);
	void *srq_context;
	unsigned int usecnt;
	/* --- of an XRC domain; NULL: it is of none --- */
	struct ib_xrcd *xrcd;
	struct ib_cq *cq;
	u32 srq_num; /* the driver's */
	struct rdma_restrack_entry res;
};

/** struct ib_xrc_domain - targets of an XRC domain take receives from its SRQs (A14). It lives
 *  as long as one program has it open */
struct ib_xrc_domain {
	struct list_head node; /* in device->xrc_domains */
	u32 number;	       /* of the device's domains; not 0 */
	bool has_file;	       /* whoever opens the file joins the domain; else nobody can */
	bool is_shared;	       /* two programs had it open at one time */
	u64 file_device, inode;
	struct list_head openings; /* struct ib_xrcd.node */
	struct list_head targets;  /* struct ib_qp.target_node */
};

/** struct ib_xrcd - a program's opening of an XRC domain */
struct ib_xrcd {
	struct list_head node; /* in domain->openings */
	struct ib_device *device;
	struct ib_xrc_domain *domain;
	struct ib_ucontext *context;
	unsigned int usecnt; /* targets and SRQs */
};

/** struct ib_rdd - an RD domain (10.2.6): RD QPs send by its EE contexts alone */
struct ib_rdd {
	struct ib_device *device;
	u32 number;
	unsigned int usecnt; /* RD QPs and EE contexts */
};

struct ib_mr {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_uobject *uobject;
	u32 lkey, rkey;
	u64 iova, length;
	int access;
	struct ib_dm *dm; /* its memory; NULL: the program's */
	u64 dm_offset;
	/* --- of a region that is made of pages --- */
	enum {
		IB_MR_WHOLE,   /* it is not */
		IB_MR_BUFFERS, /* ib_reg_phys_mr() */
		IB_MR_FAST,    /* ib_alloc_mr() */
	} made_of;
	u32 page_size; /* bytes */
	u32 num_pages; /* of the list; of a region for fast registration those it has room for */
	u64 *page_list;
	struct list_head qp_entry; /* in a pool (mr_pool.h), or alone */
	struct rdma_restrack_entry res;
};

/** struct ib_dm - device memory, which one program has */
struct ib_dm {
	struct ib_device *device;
	u64 length;
	int fd; /* the driver's: the memory, for programs to map */
	int usecnt; /* regions on it */
};

enum ib_mw_type { IB_MW_TYPE_1 = 1, IB_MW_TYPE_2 = 2 };

struct ib_mw {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_uobject *uobject;
	u32 rkey;
	enum ib_mw_type type;
	struct rdma_restrack_entry res;
};

struct ib_qp {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_cq *send_cq, *recv_cq;
	struct ib_srq *srq;
	struct ib_xrcd *xrcd; /* XRC_TGT, which has neither pd nor CQs */
	struct ib_rdd *rdd;   /* RD, and EEC, which has neither pd nor CQs */
	struct ib_uobject *uobject;
	void (*event_handler)(struct ib_event *event, void *qp_context);
	void *qp_context;
	u32 qp_num;
	enum ib_qp_type qp_type;
	u8 port; /* 0 until it is known */
	/* --- core's record of what modify did: state table, resource show --- */
	enum ib_qp_state state;
	struct ib_qp_attr attr;
	struct ib_qp_cap cap;
	enum ib_sig_type sq_sig_type;
	struct list_head mcast_list; /* attachments */
	struct list_head rdma_mrs;   /* the client's, for a pool of regions (mr_pool.h) */
	struct ib_rss *rss;	     /* NULL: it receives its frames itself */
	unsigned int usecnt; /* attachments, rules, QPs that pass frames on to this work queue */
	/* --- XRC_TGT --- */
	struct list_head target_node; /* in xrcd->domain->targets */
	struct list_head openers;     /* struct ib_uobject.opener: handles of programs */
	struct rdma_restrack_entry res;
};

/** struct ib_flow - a rule that leads frames to a raw packet QP, or drops them.
 *  @packets, @bytes: those that it was for; the driver counts them */
struct ib_flow {
	struct ib_qp *qp;
	u64 packets, bytes;
};

struct ib_event {
	struct ib_device *device;
	union {
		struct ib_cq *cq;
		struct ib_qp *qp;
		struct ib_srq *srq;
		u32 port_num;
	} element;
	enum ib_event_type event;
};

/**
 * enum ib_qp_create_flags - of struct ib_qp_init_attr, for UD QPs
 * @IB_QP_CREATE_IPOIB_UD_LSO: the QP carries IPoIB (RFC 4391) and takes IB_WR_LSO and
 *                             IB_SEND_IP_CSUM. -EOPNOTSUPP: the device has no IB_DEVICE_UD_TSO
 */
enum ib_qp_create_flags {
	IB_QP_CREATE_IPOIB_UD_LSO = 1 << 0,
};

struct ib_qp_init_attr {
	void (*event_handler)(struct ib_event *event, void *qp_context);
	void *qp_context;
	struct ib_cq *send_cq, *recv_cq; /* XRC_INI: recv_cq is none */
	struct ib_srq *srq;
	struct ib_xrcd *xrcd; /* XRC_TGT */
	struct ib_rdd *rdd;   /* RD, EEC */
	struct ib_qp_cap cap;
	enum ib_sig_type sq_sig_type;
	enum ib_qp_type qp_type;
	u32 create_flags; /* enum ib_qp_create_flags */
	u32 port_num; /* SMI and GSI only */
};

struct ib_srq_init_attr {
	void (*event_handler)(struct ib_event *event, void *srq_context);
	void *srq_context;
	struct ib_srq_attr attr;
	struct ib_xrcd *xrcd; /* and @cq, or NULL */
	struct ib_cq *cq;
};

/* --- work requests --- */

/** struct ib_cqe - where a completion goes when wr_cqe is used as wr_id */
struct ib_wc;
struct ib_cqe {
	void (*done)(struct ib_cq *cq, struct ib_wc *wc);
};

struct ib_send_wr {
	struct ib_send_wr *next;
	union {
		u64 wr_id;
		struct ib_cqe *wr_cqe;
	};
	struct ib_sge *sg_list;
	int num_sge;
	enum ib_wr_opcode opcode;
	int send_flags;
	union {
		__be32 imm_data;
		u32 invalidate_rkey;
	} ex;
};

struct ib_rdma_wr {
	struct ib_send_wr wr;
	u64 remote_addr;
	u32 rkey;
};

struct ib_atomic_wr {
	struct ib_send_wr wr;
	u64 remote_addr;
	u64 compare_add, swap;
	u32 rkey;
};

/**
 * struct ib_ud_wr - a datagram; with IB_WR_LSO, all that a large TCP segment of IPoIB is cut into
 * @header: IB_WR_LSO: what the first packet begins with: encapsulation (RFC 4391 section 6), IP and TCP
 *          header; copied before ib_post_send() returns. wr.sg_list has the segment's payload
 * @hlen:   its length
 * @mss:    no packet has more of the payload than so many bytes
 *
 * The adapter gives each packet the header with its own length, identification, sequence number
 * and checksums; FIN and PSH are in the last packet alone, CWR in the first one. There is one
 * completion, IB_WC_LSO.
 *
 * IB_SEND_IP_CSUM, of a datagram of IPoIB with TCP or UDP: the adapter computes the checksums of IPv4's
 * header and of TCP or UDP. Any other datagram is sent as it is. The receiver's completion has
 * IB_WC_IP_CSUM_OK if its adapter knows that these checksums are right.
 *
 * Both need a QP with IB_QP_CREATE_IPOIB_UD_LSO. -EINVAL: the QP is another, @hlen or @mss is 0, @header
 * has other headers or is longer than they are, @hlen and @mss exceed the MTU together, or the
 * payload is empty or exceeds 64 KiB. Without that flag IB_SEND_IP_CSUM is ignored.
 */
struct ib_ud_wr {
	struct ib_send_wr wr;
	struct ib_ah *ah;
	void *header;
	int hlen, mss;
	u32 remote_qpn;
	u32 remote_qkey;
	u16 pkey_index; /* GSI only */
	u32 port_num;	/* of a directed-route SMP on a switch */
};

static inline const struct ib_rdma_wr *rdma_wr(const struct ib_send_wr *wr)
{
	return container_of(wr, struct ib_rdma_wr, wr);
}

static inline const struct ib_atomic_wr *atomic_wr(const struct ib_send_wr *wr)
{
	return container_of(wr, struct ib_atomic_wr, wr);
}

static inline const struct ib_ud_wr *ud_wr(const struct ib_send_wr *wr)
{
	return container_of(wr, struct ib_ud_wr, wr);
}

struct ib_recv_wr {
	struct ib_recv_wr *next;
	union {
		u64 wr_id;
		struct ib_cqe *wr_cqe;
	};
	struct ib_sge *sg_list;
	int num_sge;
};

struct ib_wc {
	union {
		u64 wr_id;
		struct ib_cqe *wr_cqe;
	};
	enum ib_wc_status status;
	enum ib_wc_opcode opcode;
	u32 vendor_err;
	u32 byte_len;
	struct ib_qp *qp;
	union {
		__be32 imm_data;
		u32 invalidate_rkey;
	} ex;
	u32 src_qp;
	u32 slid;
	int wc_flags;
	u16 pkey_index;
	u8 sl;
	u8 dlid_path_bits;
	union {
		u32 port_num; /* set for QP0 and QP1 */
		u32 eec_num;  /* RD: the EE context that a received message came by (11.4.2.1) */
	};
};

/* --- drivers --- */

/**
 * struct ib_ucontext - one opening of a device by a program. The driver
 * allocates it (alloc_ucontext) with its answer filled; the rest is the
 * core's (src/core/uobject.h).
 */
struct ib_ucontext {
	struct ib_device *device;
	/* --- the driver's answer to the program's opening --- */
	const void *driver_resp;
	size_t driver_resp_bytes;
	const int *driver_fds; /* enum abi_context_fd; sent to the program as copies */
	unsigned int num_driver_fds;
	/* --- the core's --- */
	struct list_head node; /* in device->ucontext_list */
	pid_t pid;
	struct list_head objects; /* struct ib_uobject, oldest first */
	struct ib_handles *handles; /* perhaps with others: ib_ucontext_share() */
	struct list_head sharer;    /* in handles->contexts */
	u64 locked_bytes;
	/** fatal() - the device gave this context up: close it. From the loop */
	void (*fatal)(struct ib_ucontext *context);
	void *priv; /* of who opened it */
	struct ib_ucontext_work *fatal_work;
	struct rdma_restrack_entry res;
};

/** struct ib_udata - the program's side of a call; NULL for kernel consumers */
struct ib_udata {
	struct ib_ucontext *context;
	u32 qpn; /* create_qp(): the number that the QP gets, which was reserved; 0: any */
};

/* What process_mad did: a bit set */
enum ib_mad_result {
	IB_MAD_RESULT_FAILURE = 0,
	IB_MAD_RESULT_SUCCESS = 1 << 0,
	IB_MAD_RESULT_REPLY = 1 << 1,
	IB_MAD_RESULT_CONSUMED = 1 << 2,
};

enum ib_process_mad_flags {
	IB_MAD_IGNORE_MKEY = 1,
	IB_MAD_IGNORE_BKEY = 2,
};

/** struct ib_port_address - an IP address of the host at a port of Ethernet
 *  @gid: as a GID: IPv4's is mapped (::ffff:a.b.c.d)
 *  @vlan_id: of the VLAN interface that has it; 0: untagged */
struct ib_port_address {
	union ib_gid gid;
	u16 vlan_id;
};

/**
 * struct ib_device_ops - what a driver gives. Arguments were checked by the
 * core (attributes against the device's limits, states against the table of
 * qp_state.c) before they come here. An operation that a device lacks is
 * NULL: the core answers -EOPNOTSUPP. Objects are allocated by the driver,
 * with the ib_ struct embedded; the core fills that struct's fields.
 * A non-NULL udata makes an object of a program: its queues live there.
 */
struct ib_device_ops {
	int (*query_device)(struct ib_device *device, struct ib_device_attr *attr);
	int (*modify_device)(struct ib_device *device, int mask,
			     struct ib_device_modify *modify);
	int (*query_port)(struct ib_device *device, u32 port_num, struct ib_port_attr *attr);
	int (*modify_port)(struct ib_device *device, u32 port_num, int mask,
			   struct ib_port_modify *modify);
	int (*query_gid)(struct ib_device *device, u32 port_num, int index, union ib_gid *gid);
	int (*query_pkey)(struct ib_device *device, u32 port_num, u16 index, u16 *pkey);
	/** find_station() - which station has this GID in the VLAN of entry @sgid_index of the
	 *  port's GID table? @station is used as a LID; what it has below the port's LMC is the
	 *  source's path bits. 0; -EHOSTUNREACH none. NULL: the link layer is InfiniBand */
	int (*find_station)(struct ib_device *device, u32 port_num, unsigned int sgid_index,
			    const union ib_gid *gid, u16 *station);

	/** poll_events() - of a device that is polled: call the completion handlers that an
	 *  interrupt would have led to. Bounded work. Return: was there any? */
	bool (*poll_events)(struct ib_device *device);

	struct ib_ucontext *(*alloc_ucontext)(struct ib_device *device);
	void (*dealloc_ucontext)(struct ib_ucontext *context);
	/** quiesce() - is what the program had queued for its adapter, when this was asked
	 *  first, on its way? Asked again after a turn of the loop if not, before a QP or
	 *  the context goes. NULL: always */
	bool (*quiesce)(struct ib_ucontext *context);

	/**
	 * driver_command() - what a program's library asks of its driver
	 * @command: ABI_CMD_... (abi/session.h), which says what @in and @out are
	 * @fds: at most 2 descriptors for it, the caller's to close; NULL: it cannot be given any
	 */
	int (*driver_command)(struct ib_ucontext *context, u32 command, const void *in,
			      void *out, int fds[2], unsigned int *num_fds);
	/** introduce() - give the program of @to a socket to another program, which stays the
	 *  caller's as well. 0; -EAGAIN it takes nothing now */
	int (*introduce)(struct ib_ucontext *to, int fd);

	struct ib_pd *(*alloc_pd)(struct ib_device *device, struct ib_udata *udata);
	void (*dealloc_pd)(struct ib_pd *pd);

	struct ib_ah *(*create_ah)(struct ib_pd *pd, const struct rdma_ah_attr *attr,
				   struct ib_udata *udata);
	int (*modify_ah)(struct ib_ah *ah, const struct rdma_ah_attr *attr);
	int (*query_ah)(struct ib_ah *ah, struct rdma_ah_attr *attr);
	void (*destroy_ah)(struct ib_ah *ah);

	struct ib_cq *(*create_cq)(struct ib_device *device, const struct ib_cq_init_attr *attr,
				   struct ib_udata *udata);
	int (*resize_cq)(struct ib_cq *cq, int cqe);
	int (*modify_cq)(struct ib_cq *cq, u16 cq_count, u16 cq_period);
	void (*destroy_cq)(struct ib_cq *cq);
	int (*poll_cq)(struct ib_cq *cq, int num_entries, struct ib_wc *wc);
	int (*peek_cq)(struct ib_cq *cq, int wc_cnt);
	int (*req_notify_cq)(struct ib_cq *cq, enum ib_cq_notify_flags flags);
	int (*req_ncomp_notif)(struct ib_cq *cq, int wc_cnt);

	struct ib_srq *(*create_srq)(struct ib_pd *pd, struct ib_srq_init_attr *attr,
				     struct ib_udata *udata);
	int (*modify_srq)(struct ib_srq *srq, struct ib_srq_attr *attr, int mask);
	int (*query_srq)(struct ib_srq *srq, struct ib_srq_attr *attr);
	void (*destroy_srq)(struct ib_srq *srq);
	int (*post_srq_recv)(struct ib_srq *srq, const struct ib_recv_wr *wr,
			     const struct ib_recv_wr **bad_wr);

	struct ib_xrcd *(*alloc_xrcd)(struct ib_device *device, struct ib_udata *udata);
	void (*dealloc_xrcd)(struct ib_xrcd *xrcd);
	/** xrcd_shared() - from now on several programs have the domain. May be NULL */
	void (*xrcd_shared)(struct ib_device *device);
	/** inherit_qp() - the program of @to owns the target @qp from now on, which another has
	 *  closed. May be NULL */
	void (*inherit_qp)(struct ib_qp *qp, struct ib_ucontext *to);

	/** create_qp() - @pd is NULL for XRC_TGT and EEC, whose device is its domain's */
	struct ib_qp *(*create_qp)(struct ib_pd *pd, struct ib_qp_init_attr *attr,
				   struct ib_udata *udata);
	/** reserve_qpn() - reserve a number for a QP that a program will create, until
	 *  release_qpn(). NULL: the device cannot. 0; -ENOMEM */
	int (*reserve_qpn)(struct ib_device *device, u32 *qpn);
	void (*release_qpn)(struct ib_device *device, u32 qpn);
	int (*modify_qp)(struct ib_qp *qp, struct ib_qp_attr *attr, int mask);
	int (*query_qp)(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			struct ib_qp_init_attr *init_attr);
	void (*destroy_qp)(struct ib_qp *qp);
	int (*post_send)(struct ib_qp *qp, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad_wr);
	int (*post_recv)(struct ib_qp *qp, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad_wr);
	int (*attach_mcast)(struct ib_qp *qp, const union ib_gid *gid, u16 lid);
	int (*detach_mcast)(struct ib_qp *qp, const union ib_gid *gid, u16 lid);

	struct ib_mr *(*get_dma_mr)(struct ib_pd *pd, int access);
	/** reg_user_mr() - the memory is the program's: @start is its address */
	struct ib_mr *(*reg_user_mr)(struct ib_pd *pd, u64 start, u64 length, u64 iova,
				     int access, struct ib_udata *udata);
	int (*rereg_user_mr)(struct ib_mr *mr, int flags, u64 start, u64 length, u64 iova,
			     int access, struct ib_pd *pd);
	void (*dereg_mr)(struct ib_mr *mr);
	/** create_flow() - -EOPNOTSUPP the link layer is InfiniBand. NULL: it has no steering */
	struct ib_flow *(*create_flow)(struct ib_qp *qp, const struct ib_flow_attr *attr);
	void (*destroy_flow)(struct ib_flow *flow);
	/** alloc_dm() - device memory that programs map: @fd of what it returns */
	struct ib_dm *(*alloc_dm)(struct ib_device *device, u64 length, struct ib_udata *udata);
	void (*dealloc_dm)(struct ib_dm *dm);
	struct ib_mr *(*reg_dm_mr)(struct ib_pd *pd, struct ib_dm *dm, u64 offset, u64 length,
				   int access, struct ib_udata *udata);
	/** alloc_mr() - of the midlayer's own consumers: a region that is made of pages, and
	 *  gives access to nothing. Freed by dereg_mr() */
	struct ib_mr *(*alloc_mr)(struct ib_pd *pd, u32 max_pages);
	/** map_mr() - it is these pages from now on, by mr->lkey, of which the core may have
	 *  changed the last 8 bits. @pages is NULL: it gives access to nothing. 0; -EINVAL;
	 *  -ENOMEM; -EBUSY: a memory window is bound to it */
	int (*map_mr)(struct ib_mr *mr, struct ib_pd *pd, int access,
		      const struct ib_pages *pages);
	/** stage_mr() - what the next IB_WR_REG_MR makes of it */
	int (*stage_mr)(struct ib_mr *mr, const struct ib_pages *pages);
	/** mr_is_bound() - is a memory window bound to it? NULL: never */
	bool (*mr_is_bound)(const struct ib_mr *mr);
	struct ib_mw *(*alloc_mw)(struct ib_pd *pd, enum ib_mw_type type,
				  struct ib_udata *udata);
	void (*dealloc_mw)(struct ib_mw *mw);

	/**
	 * process_mad() - the device's own agents (SMA, PMA) answer @in
	 * @in_wc, @in_grh: how it came; NULL wc for a local request
	 * Return: enum ib_mad_result bits
	 */
	int (*process_mad)(struct ib_device *device, int flags, u32 port_num,
			   const struct ib_wc *in_wc, const struct ib_grh *in_grh,
			   const struct ib_mad *in, struct ib_mad *out, size_t *out_mad_bytes,
			   u16 *out_mad_pkey_index);
	/** set_addresses() - of ports of Ethernet alone: ib_set_addresses() */
	void (*set_addresses)(struct ib_device *device, u32 port_num,
			      const struct ib_port_address *address, unsigned int num);
	/** set_mtu() - of ports of Ethernet alone: ib_set_mtu() */
	void (*set_mtu)(struct ib_device *device, u32 port_num, unsigned int bytes);
};

/** ib_ucontext_fatal() - a driver's word that the program behind @context
 *  broke the rules and is no longer served: its endpoint tells it
 *  (DEVICE_FATAL) and closes the context. Context: any; deferred. */
void ib_ucontext_fatal(struct ib_ucontext *context);

struct ib_port_cache;

/** struct ib_pages - pages of one size that are one region: it begins in the first page, at the
 *  offset that @iova has in a page */
struct ib_pages {
	u64 iova, length;
	unsigned int shift; /* a page has 2^shift bytes */
	u32 num;
	const u64 *page; /* addresses, multiples of the size of a page */
};

struct ib_device {
	/* --- set by the driver before ib_register_device() --- */
	struct rt *rt;
	const struct ib_device_ops *ops;
	char node_name[IB_DEVICE_NAME_BYTES]; /* the host it is in: "n1" */
	char node_desc[IB_DEVICE_NODE_DESC_MAX + 1];
	__be64 node_guid;
	u8 node_type; /* RDMA_NODE_IB_CA ... */
	u32 phys_port_cnt;
	/* MADs for QP0 and QP1 of a port that has no such queue pairs are answered by
	 * the device itself, by its SMA and PMA: the MAD layer opens a port with the
	 * first agent on it */
	bool answers_mads;
	/* it raises no interrupt: the core asks it in each turn of the loop (poll_events()) */
	bool polled;
	/* --- set by the core --- */
	char name[IB_DEVICE_NAME_BYTES];
	u32 index; /* uverbsN: unique in its node */
	struct ib_device_attr attrs;
	bool registered;
	struct list_head node;		   /* in the core's list */
	struct list_head name_node;	   /* of those whose node_name has one hash */
	struct client_data *client_data;   /* added clients, the last one first */
	struct list_head event_handler_list;
	struct list_head event_queue;	/* dispatched, not yet delivered */
	struct list_head cq_pool;	/* struct ib_cq.pool_node */
	struct list_head mcast_groups;	/* that QPs are attached to */
	u32 num_mcast_groups, num_mcast_attached; /* groups; QPs, for each of its groups */
	u64 rd_resources; /* for READs and atomics of peers, of all connected QPs */
	u32 reserved_qps; /* that programs may create, beside those that they have created */
	struct list_head ucontext_list;
	struct list_head xrc_domains; /* struct ib_xrc_domain.node */
	struct core_poll *poll;
	u32 last_xrc_domain;
	u32 last_rdd; /* RD domains are compared by number; 0 is none */
	struct ib_port_cache *cache; /* [phys_port_cnt], port 1 first */
	struct rdma_restrack_root res;
};

/**
 * ib_alloc_device() - zeroed memory for a driver's struct with struct
 * ib_device first, its lists initialised. Return: NULL when there is none.
 */
struct ib_device *ib_alloc_device_(size_t size);
#define ib_alloc_device(type, member)                                          \
	((type *)ib_alloc_device_(sizeof(type) +                               \
				  0 * sizeof(char[offsetof(type, member) ? -1 : 1])))
void ib_dealloc_device(struct ib_device *device);

/**
 * ib_register_device() - make @device known: its clients are told
 * @name: "softib0"; unique among the devices of its node_name that have its rt:
 *	  several fabrics in one process have loops, and names, of their own
 *
 * When this returns, add() of every registered client has run, but those of loaded
 * modules, which may sleep.
 * Context: may sleep. Return: 0; -EEXIST the name; -EINVAL an operation
 * that every device must have is missing; -ENOMEM; what a query returned.
 */
int ib_register_device(struct ib_device *device, const char *name);
/** ib_unregister_device() - clients' remove() run, last added first, before
 *  this returns; user contexts are turned into zombies (-EIO) before */
void ib_unregister_device(struct ib_device *device);

/** ib_device_get_by_name() - Return: the device @name of @node in the fabric whose
 *  loop is @rt; NULL */
struct ib_device *ib_device_get_by_name(const struct rt *rt, const char *node, const char *name);
/** ib_device_for_each() - every device that is registered in the fabric whose loop is
 *  @rt, oldest first; @fn as in rdma_restrack_for_each() */
int ib_device_for_each(const struct rt *rt, int (*fn)(struct ib_device *device, void *ctx),
		       void *ctx);
/** ib_device_for_each_of_node() - the same of the devices of one node, found by hash */
int ib_device_for_each_of_node(const struct rt *rt, const char *node,
			       int (*fn)(struct ib_device *device, void *ctx), void *ctx);

#define rdma_start_port(device) ((u32)((device)->node_type == RDMA_NODE_IB_SWITCH ? 0 : 1))
static inline u32 rdma_end_port(const struct ib_device *device)
{
	return device->node_type == RDMA_NODE_IB_SWITCH ? 0 : device->phys_port_cnt;
}
static inline bool rdma_is_port_valid(const struct ib_device *device, u32 port)
{
	return port >= rdma_start_port(device) && port <= rdma_end_port(device);
}

/* --- clients --- */

/**
 * struct ib_client - who wants to know of devices
 * @add: a device is there: called for present and later devices, after the
 *	 registration is complete; a negative return means not interested, and
 *	 remove() will not be called
 * @remove: it goes: called before its resources go; @client_data is what
 *	 ib_set_client_data() stored
 */
struct ib_client {
	const char *name;
	int (*add)(struct ib_device *device);
	void (*remove)(struct ib_device *device, void *client_data);
	struct list_head list;		 /* unused: a client may be in several fabrics */
	struct ib_client_module *module; /* the loader's; NULL: softibd's own client */
};

/**
 * struct ib_client_module - a loaded module, whose clients know one node alone
 * @add: called in place of the client's, which it calls later, where it may sleep
 * @remove: called in place of the client's; where a fiber unregisters the device, it
 *	 returns when the client's remove() has
 */
struct ib_client_module {
	struct rt *rt;
	const char *node;
	int (*add)(const struct ib_client *client, struct ib_device *device);
	void (*remove)(const struct ib_client *client, struct ib_device *device, void *client_data);
};

/**
 * ib_register_client() - make @client known to the fabric whose loop is @rt
 * @client: remains the caller's, and is unregistered before it goes; one struct may be
 *	    registered with several fabrics
 *
 * add() runs for every device of the fabric before this returns. Clients are added in the
 * order of registration and removed in reverse. A loaded module calls this function without
 * @rt (softib/module.h).
 * Context: may sleep. Return: 0; -EEXIST registered already; -ENOMEM
 */
int ib_register_client(struct rt *rt, const struct ib_client *client);
/** ib_unregister_client() - remove() runs for every device of the fabric before this returns */
void ib_unregister_client(struct rt *rt, const struct ib_client *client);
/** ib_set_client_data() - remember @data for (@device, @client); only
 *  between the start of add() and the end of remove() */
void ib_set_client_data(struct ib_device *device, const struct ib_client *client, void *data);
/** ib_get_client_data() - Return: what was set; NULL */
void *ib_get_client_data(struct ib_device *device, const struct ib_client *client);

/* --- events --- */

struct ib_event_handler {
	struct ib_device *device;
	void (*handler)(struct ib_event_handler *handler, struct ib_event *event);
	struct list_head list;
};

#define INIT_IB_EVENT_HANDLER(_ptr, _device, _handler)                         \
	do {                                                                   \
		(_ptr)->device = (_device);                                    \
		(_ptr)->handler = (_handler);                                  \
		INIT_LIST_HEAD(&(_ptr)->list);                                 \
	} while (0)

/** ib_register_event_handler() - unaffiliated events of a device, from the
 *  loop, in the order of dispatch, after the caches were refreshed */
void ib_register_event_handler(struct ib_event_handler *handler);
void ib_unregister_event_handler(struct ib_event_handler *handler);
/**
 * ib_dispatch_event() - a driver's news: of a port or the device to all
 * handlers; of a QP, CQ or SRQ to that object's event_handler
 * Context: any; never sleeps; delivery is deferred, in the order of dispatch.
 * An object that is destroyed meanwhile hears nothing more.
 */
void ib_dispatch_event(const struct ib_event *event);

/* --- queries (may sleep); cached forms never do --- */

int ib_query_device(struct ib_device *device, struct ib_device_attr *attr);
/** ib_query_port() - 0; -EINVAL no such port */
int ib_query_port(struct ib_device *device, u32 port_num, struct ib_port_attr *attr);
/** ib_query_gid() - 0; -EINVAL port or index */
int ib_query_gid(struct ib_device *device, u32 port_num, int index, union ib_gid *gid);
#define rdma_query_gid ib_query_gid
int ib_query_pkey(struct ib_device *device, u32 port_num, u16 index, u16 *pkey);
/** ib_find_gid() - 0 and *@port_num, *@index (may be NULL); -ENOENT */
int ib_find_gid(struct ib_device *device, const union ib_gid *gid, u32 *port_num, u16 *index);
/** ib_find_pkey() - full membership is preferred to limited. 0; -ENOENT */
int ib_find_pkey(struct ib_device *device, u32 port_num, u16 pkey, u16 *index);
int ib_modify_device(struct ib_device *device, int mask, struct ib_device_modify *modify);
int ib_modify_port(struct ib_device *device, u32 port_num, int mask,
		   struct ib_port_modify *modify);

int ib_get_cached_gid(struct ib_device *device, u32 port_num, int index, union ib_gid *gid);
int ib_find_cached_gid(struct ib_device *device, const union ib_gid *gid, u32 *port_num,
		       u16 *index);
int ib_get_cached_pkey(struct ib_device *device, u32 port_num, int index, u16 *pkey);
int ib_find_cached_pkey(struct ib_device *device, u32 port_num, u16 pkey, u16 *index);
int ib_get_cached_lmc(struct ib_device *device, u32 port_num, u8 *lmc);
int ib_get_cached_port_state(struct ib_device *device, u32 port_num,
			     enum ib_port_state *state);

/* --- protection domains --- */

/**
 * ib_alloc_pd() - a protection domain, with a key for all local memory
 * @client: the kernel client's name, for resource tracking
 */
struct ib_pd *ib_alloc_pd_(struct ib_device *device, unsigned int flags, const char *client);
#define ib_alloc_pd(device, flags) ib_alloc_pd_(device, flags, SOFTIB_CLIENT_NAME)
#ifndef SOFTIB_CLIENT_NAME
#define SOFTIB_CLIENT_NAME "core"
#endif
/** ib_dealloc_pd() - 0; -EBUSY while an object is in it */
int ib_dealloc_pd(struct ib_pd *pd);

/* --- address handles: any context, never sleep --- */

#define RDMA_CREATE_AH_SLEEPABLE 1
struct ib_ah *rdma_create_ah(struct ib_pd *pd, struct rdma_ah_attr *attr, u32 flags);
#define ib_create_ah(pd, attr) rdma_create_ah(pd, attr, 0)
/** ib_init_ah_attr_from_wc() - the way back to where @wc came from.
 *  @grh: of the received packet, when wc_flags has IB_WC_GRH. 0; -EINVAL */
int ib_init_ah_attr_from_wc(struct ib_device *device, u32 port_num, const struct ib_wc *wc,
			    const struct ib_grh *grh, struct rdma_ah_attr *attr);
struct ib_ah *ib_create_ah_from_wc(struct ib_pd *pd, const struct ib_wc *wc,
				   const struct ib_grh *grh, u32 port_num);
int rdma_modify_ah(struct ib_ah *ah, struct rdma_ah_attr *attr);
int rdma_query_ah(struct ib_ah *ah, struct rdma_ah_attr *attr);
int rdma_destroy_ah(struct ib_ah *ah, u32 flags);
#define ib_modify_ah rdma_modify_ah
#define ib_query_ah rdma_query_ah
#define ib_destroy_ah(ah) rdma_destroy_ah(ah, 0)

/* --- completion queues --- */

struct ib_cq *ib_create_cq_(struct ib_device *device, ib_comp_handler comp_handler,
			    void (*event_handler)(struct ib_event *event, void *cq_context),
			    void *cq_context, const struct ib_cq_init_attr *attr,
			    const char *client);
#define ib_create_cq(device, comp, event, context, attr)                       \
	ib_create_cq_(device, comp, event, context, attr, SOFTIB_CLIENT_NAME)
/** ib_resize_cq() - entries are kept. 0; -EINVAL when they do not fit */
int ib_resize_cq(struct ib_cq *cq, int cqe);
/** rdma_set_cq_moderation() - let the handler of an armed @cq wait until @cq_count completions
 *  are there, at most @cq_period microseconds from the first of them on; either 0: it waits for
 *  nothing. Return: 0; -EINVAL beyond the device's cq_caps; -EOPNOTSUPP */
int rdma_set_cq_moderation(struct ib_cq *cq, u16 cq_count, u16 cq_period);
/** ib_destroy_cq() - 0, and its handler will not run again; -EBUSY while a
 *  QP uses it */
int ib_destroy_cq(struct ib_cq *cq);

/** ib_poll_cq() - Return: how many of @wc were filled; -errno */
static inline int ib_poll_cq(struct ib_cq *cq, int num_entries, struct ib_wc *wc)
{
	return cq->device->ops->poll_cq(cq, num_entries, wc);
}

/** ib_peek_cq() - Return: how many completions wait, at most @wc_cnt */
int ib_peek_cq(struct ib_cq *cq, int wc_cnt);

/**
 * ib_req_notify_cq() - one call of the handler at the next completion
 * Return: 0; 1 with IB_CQ_REPORT_MISSED_EVENTS when entries may be there
 * already (poll again); -errno. Spec: IBA v1 11.4.2.2
 */
static inline int ib_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	return cq->device->ops->req_notify_cq(cq, flags);
}

/**
 * ib_req_ncomp_notif() - one call of the handler when @wc_cnt or more completions wait in the
 * CQ, soon if they do already. ib_req_notify_cq() takes its place
 * Context: any; never sleeps. Return: 0; -EINVAL: less than 1, or more than the CQ has entries;
 * -EOPNOTSUPP: the device has no IB_DEVICE_N_NOTIFY_CQ
 */
int ib_req_ncomp_notif(struct ib_cq *cq, int wc_cnt);

/** enum ib_poll_context - who polls a CQ of ib_alloc_cq(). softibd has one thread: the core
 *  calls done() from the loop, where it may not sleep, in all but the first */
enum ib_poll_context {
	IB_POLL_DIRECT, /* the client, by ib_process_cq_direct() */
	IB_POLL_SOFTIRQ,
	IB_POLL_WORKQUEUE,
	IB_POLL_UNBOUND_WORKQUEUE,
};

/**
 * ib_alloc_cq() - a CQ that the core polls
 * @private: the CQ's cq_context
 * @nr_cqe: entries
 *
 * Every work request that completes there names its struct ib_cqe in wr_cqe; done() of it is
 * called with the completion, in the order of completion. done() may post, but not free the
 * CQ. The client neither polls nor arms the CQ.
 *
 * Context: may sleep. Return: the CQ, to be freed by ib_free_cq(); ERR_PTR(-EINVAL no such
 * number of entries or @poll_ctx, -ENOMEM)
 */
struct ib_cq *ib_alloc_cq_(struct ib_device *device, void *private, int nr_cqe, u32 comp_vector,
			   enum ib_poll_context poll_ctx, const char *client);
#define ib_alloc_cq(device, private, nr_cqe, comp_vector, poll_ctx)            \
	ib_alloc_cq_(device, private, nr_cqe, comp_vector, poll_ctx, SOFTIB_CLIENT_NAME)
/** ib_alloc_cq_any() - as ib_alloc_cq(), with a completion vector of the core's choice */
#define ib_alloc_cq_any(device, private, nr_cqe, poll_ctx)                               \
	ib_alloc_cq(device, private, nr_cqe, 0, poll_ctx)
/** ib_free_cq() - done() is not called any more. No QP may use @cq */
#define ib_free_cq(cq) ((void)ib_destroy_cq(cq))
/**
 * ib_cq_pool_get() - room for completions in a CQ that several QPs of the client share
 * @nr_cqe: how many completions may wait there
 * @comp_vector_hint: not used: softibd polls all CQs in one thread
 * @poll_ctx: any but IB_POLL_DIRECT; makes no difference
 *
 * The CQ is as one of ib_alloc_cq(), but for its cq_context, which is NULL. A client shares its
 * CQs with no other. The device's last CQ of the client goes with its last user.
 *
 * Context: may sleep. Return: the CQ, for ib_cq_pool_put(), never ib_free_cq(); ERR_PTR(-EINVAL
 * IB_POLL_DIRECT, or more entries than a CQ of the device has; -ENOMEM)
 */
struct ib_cq *ib_cq_pool_get_(struct ib_device *device, unsigned int nr_cqe, int comp_vector_hint,
			      enum ib_poll_context poll_ctx, const char *client);
#define ib_cq_pool_get(device, nr_cqe, comp_vector_hint, poll_ctx)                       \
	ib_cq_pool_get_(device, nr_cqe, comp_vector_hint, poll_ctx, SOFTIB_CLIENT_NAME)
/** ib_cq_pool_put() - give back the room for @nr_cqe completions that ib_cq_pool_get() gave. No QP
 *  of the caller uses @cq for them any more. Context: may sleep; not from done() */
void ib_cq_pool_put(struct ib_cq *cq, unsigned int nr_cqe);
/** ib_process_cq_direct() - call done() for at most @budget completions of an IB_POLL_DIRECT
 *  CQ; -1: for all. Return: for how many */
int ib_process_cq_direct(struct ib_cq *cq, int budget);

/**
 * ib_drain_qp() - move a QP to ERR, and wait until all that was posted before has completed
 * @qp: of type RC or UC and not in RESET; its CQs are those of ib_alloc_cq(), and each has one
 *	entry to spare, as each queue has room for one request more
 *
 * done() of each request, with IB_WC_WR_FLUSH_ERR if nothing else, has returned afterwards. An
 * IB_POLL_DIRECT CQ is polled meanwhile. Nobody posts at the same time. What is posted to an SRQ
 * stays there. If the QP is in RESET, or the queue is full, the log says so and nothing is waited for.
 *
 * Context: may sleep; of modules.
 */
void ib_drain_qp(struct ib_qp *qp);
/** ib_drain_sq() - as ib_drain_qp(), of the send queue alone */
void ib_drain_sq(struct ib_qp *qp);
/** ib_drain_rq() - as ib_drain_qp(), of the receive queue alone. The QP has no SRQ */
void ib_drain_rq(struct ib_qp *qp);

/* --- shared receive queues --- */

struct ib_srq *ib_create_srq(struct ib_pd *pd, struct ib_srq_init_attr *attr);
int ib_modify_srq(struct ib_srq *srq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask);
int ib_query_srq(struct ib_srq *srq, struct ib_srq_attr *attr);
int ib_destroy_srq(struct ib_srq *srq);

static inline int ib_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr,
				   const struct ib_recv_wr **bad_wr)
{
	const struct ib_recv_wr *dummy;
	return srq->device->ops->post_srq_recv(srq, wr, bad_wr ? bad_wr : &dummy);
}

/* --- queue pairs --- */

struct ib_qp *ib_create_qp_(struct ib_pd *pd, struct ib_qp_init_attr *attr, const char *client);
#define ib_create_qp(pd, attr) ib_create_qp_(pd, attr, SOFTIB_CLIENT_NAME)

/**
 * ib_modify_qp() - change attributes and state
 * @mask: enum ib_qp_attr_mask; checked against the table of transitions
 * (ib_modify_qp_is_ok()) and the device's limits
 * Return: 0; -EINVAL; -errno of the device. On error nothing has changed.
 * Spec: IBA v1 10.3.1, 11.2.4.2
 */
int ib_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask);
/** ib_modify_qp_is_ok() - may a QP of @type go from @cur to @next with
 *  exactly the attributes of @mask? */
bool ib_modify_qp_is_ok(enum ib_qp_state cur, enum ib_qp_state next, enum ib_qp_type type,
			int mask);
int ib_query_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
		struct ib_qp_init_attr *init_attr);
/** ib_destroy_qp() - 0; -EBUSY while attached to a multicast group */
int ib_destroy_qp(struct ib_qp *qp);

/** ib_post_send() - queue requests. Context: any; never sleeps.
 *  Return: 0; -errno and *@bad_wr (may be NULL) the first not queued */
static inline int ib_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			       const struct ib_send_wr **bad_wr)
{
	const struct ib_send_wr *dummy;
	return qp->device->ops->post_send(qp, wr, bad_wr ? bad_wr : &dummy);
}

static inline int ib_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			       const struct ib_recv_wr **bad_wr)
{
	const struct ib_recv_wr *dummy;
	return qp->device->ops->post_recv(qp, wr, bad_wr ? bad_wr : &dummy);
}

/** ib_attach_mcast() - UD only. 0; -EINVAL type, not a multicast GID or LID */
int ib_attach_mcast(struct ib_qp *qp, const union ib_gid *gid, u16 lid);
/** ib_detach_mcast() - 0; -EINVAL not attached */
int ib_detach_mcast(struct ib_qp *qp, const union ib_gid *gid, u16 lid);

/** ib_set_mtu() - the MTU of the network interface of a port of Ethernet, in bytes behind a frame's
 *  header: the port sends no longer frames, and the active MTU follows */
void ib_set_mtu(struct ib_device *device, u32 port_num, unsigned int bytes);

/** ib_set_addresses() - the addresses that the network interface of a port of Ethernet and its VLAN
 *  interfaces have now: its GID table follows them, with an event IB_EVENT_GID_CHANGE
 *  Source: IBA v1 A17.4.2 */
void ib_set_addresses(struct ib_device *device, u32 port_num, const struct ib_port_address *address,
		      unsigned int num);

/** ib_create_flow() - lead frames that @attr describes to @qp, or drop them
 *  Return: the rule, for ib_destroy_flow(); ERR_PTR(-EOPNOTSUPP) the port has no Ethernet, or a
 *  flag; -EINVAL no raw packet QP, no such port, or a default rule that names frames; -ENOMEM
 *  Source: ibv_create_flow(3) */
struct ib_flow *ib_create_flow(struct ib_qp *qp, const struct ib_flow_attr *attr);
/** ib_destroy_flow() - before its QP. Return: 0 */
int ib_destroy_flow(struct ib_flow *flow);

#pragma GCC visibility pop

#include "rdma/ib_memory.h"
#include "rdma/ib_port.h"
#include "rdma/ib_rd.h"
#include "rdma/ib_xrc.h"

#endif
