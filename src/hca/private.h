/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Declarations that the files of the adapter share. */
#ifndef SOFTIB_HCA_PRIVATE_H
#define SOFTIB_HCA_PRIVATE_H

#include "abi/ring.h"
#include "abi/session.h"
#include "abi/target.h"
#include "engine/engine.h"
#include "engine/table.h"
#include "hca/hca.h"

#define HCA_FIRST_QPN 0x11
#define HCA_RX_QUEUE_MAX 2048 /* packets waiting for the midlayer */
/** the number of these packets that the engine receives in one turn: a port of the MAD layer that is
 *  not busy has only so many receives posted (MAD_RECV_INITIAL) */
#define HCA_RX_TURN 16
#define HCA_MAX_MSG_BYTES 0x80000000u
#define HCA_DM_BYTES (256ull << 10) /* size of the device memory (ibv_alloc_dm()) */
#define HCA_DM_UNIT_BYTES 64	    /* each allocation from it is a multiple of this */
/** limits of waiting.c: queues of packets from the kernel engine, one queue for each destination
 *  whose receive ring is full, and packets in each */
#define HCA_WAITING_QUEUES 256
#define HCA_WAITING_EACH   256

struct hca;

/** struct hca_numbers - the numbers that an adapter hands out next (numbers.c) */
struct hca_numbers {
	uint32_t qpn, key;
};

/** struct hca_set - what the adapters of one fabric share */
struct hca_set {
	struct rt *rt;
	struct fabric *fab;
	const struct profile *profile; /* of a device to imitate; NULL: report softib's own attributes */
	const bool *polled;	 /* by node; NULL: no adapter is polled */
	struct hca_numbers *numbers; /* by node: the next numbers of an adapter that was removed */
	struct list_head shared; /* adapters whose device page programs map: struct hca.shared_node */
	struct list_head dirty;	 /* programs with unpublished packets: struct hca_user.dirty */
	uint32_t last_owner;	 /* the struct hca_user.owner that was assigned last */
	struct rt_work flush;	 /* hca_users_flush() */
	/* --- lane.c --- */
	uint32_t next_lane;
	/* --- window.c --- */
	struct list_head windows, questions, pairs;
	uint32_t next_windows, next_question;
	uint64_t window_operations; /* performed by windows since the start, for the statistics */
	/* --- bypass.c --- */
	struct list_head bypasses; /* struct hca_bypass */
	/* --- link.c, waiting.c --- */
	struct hca_frame *reserved; /* the frame that a kernel engine is filling: reserve() to commit() */
	struct hca_frame *passing;  /* the frame in fab_send(): its receiver may keep it, and sets NULL */
};

/** struct hca_frame - a packet on its way between the kernel engine and a port, or a train: packets of
 *  one datagram request after the other, with the same destination (engine/cut.c) */
struct hca_frame {
	struct list_head node;
	unsigned port_num;
	mono_t since; /* when it began to wait for room at its destination (waiting.c) */
	size_t len;
	size_t each; /* bytes of each packet of a train; the last has what remains. 0: one packet */
	size_t taken; /* of these the receiver has processed */
	bool ip_checked; /* the engine that made it has computed its IP checksums, and nobody changed it */
	uint8_t bytes[];
};

struct hca_port {
	struct hca *hca;
	unsigned port_num;
	uint8_t last_state;
	bool has_qp[2]; /* QP0 and QP1 exist; without one, the node's agents answer its MADs */
	struct list_head flows; /* struct hca_flow, ordered by priority */
};

/** struct hca_mcast - the attachment of a program's QP to a multicast group */
struct hca_mcast {
	struct list_head node;
	uint32_t qpn;
	union ib_gid gid;
	uint16_t lid; /* a MGID may be reached by several MLIDs */
};

/** struct hca_user - a program that has opened the device */
struct hca_user {
	uint64_t quiet_at; /* hca_quiesce() waits until the head of rx is here; 0: it does not wait */
	struct ib_ucontext ib;
	struct hca *hca;
	uint32_t owner; /* a number that no other program of the fabric has; not 0 */
	struct rt_poller poller;
	struct rt_io doorbell;
	struct abi_ring_rx rx; /* packets from the program */
	struct abi_ring_tx tx; /* packets to it */
	void *link_memory;
	size_t link_bytes;
	struct abi_counters *counters; /* in link_memory, by ports */
	int fd[ABI_CONTEXT_FDS];
	struct abi_context_resp resp;
	struct list_head mcast;
	struct list_head dirty; /* in hca_set.dirty while packets in tx are not published */
	struct list_head lanes_out, lanes_in;
	unsigned num_lanes;
	int lanes_fd;		/* our end of ABI_FD_LANES */
	int program_doorbell_fd;	/* the writing end of ABI_FD_PROGRAM_DOORBELL */
	struct rt_io lanes_io;
	struct list_head unsent;	/* events that lanes_fd had no room for (lane_notify.c) */
	unsigned num_unsent;
	bool lanes_full;		/* lanes_fd had no room at the last attempt to send */
	bool lanes_dead;	/* the program has closed its end, or does not read from it */
	mono_t refused_until;	/* the program refused a lane for lack of room: no offer before */
	uint64_t refused_ns;	/* the interval of that back-off */
	struct hca_windows *windows;
	/* --- the packet at the head of rx, while its destination has no room for it --- */
	mono_t held_since;	/* MONO_NEVER: no packet waits there */
	struct rt_timer retry;	/* while it is armed, rx is not polled */
	uint64_t retry_ns;	/* the next interval of retry */
	bool broken;		/* the program wrote an invalid ring, or the device is gone */
};

/** struct hca_key - the first member of the region or memory window that an L_Key or R_Key in hca.keys
 *  names. @is_window: it is a struct hca_mw, else a struct hca_mr */
struct hca_key {
	bool is_window;
};
struct hca_mr {
	struct hca_key key;
	struct ib_mr ib;
	bool in_engine;
};
struct hca_mw {
	struct hca_key key;
	struct ib_mw ib;
};
struct hca_pd {
	struct ib_pd ib;
	uint32_t number;
};
struct hca_ah {
	struct ib_ah ib;
	struct rdma_ah_attr attr;
	struct tp_av av;
};
struct hca_cq {
	struct ib_cq ib;
	struct eng_cq *eng; /* NULL: the engine of a program has this CQ */
	struct rt_work completed;
	struct list_head event_node; /* in hca->cq_events while a call of its handler is pending */
	bool handler_wanted;
};
struct hca_srq {
	struct ib_srq ib;
	struct hca_user *user; /* the program of an SRQ in an XRC domain */
	struct eng_srq *eng;
	struct ib_srq_attr attr;
};

/** struct hca_target - an XRC target QP that several programs share (target.c) */
struct hca_target {
	struct list_head parts; /* struct hca_part: the programs that share it */
	struct hca_user *holder; /* the program whose engine has the responder's state; NULL: @state has it */
	bool is_asked;		 /* the holder has been asked to release the state */
	uint32_t serial;	 /* version of the QP's attributes; incremented by each change */
	struct list_head waiting; /* struct hca_frame: packets that wait for the state, in order of arrival */
	size_t waiting_bytes;
	struct rt_timer retry;	 /* delivers those packets when the holder's ring was full */
	struct abi_target_state state;
};

struct hca_qp {
	struct ib_qp ib;
	struct hca_target target; /* XRC_TGT */
	struct list_head node; /* hca->kernel_qps or user_qps */
	struct eng_qp *eng; /* NULL: the engine of a program has this QP */
	struct hca_user *user; /* that program; NULL: the QP is the midlayer's */
	uint64_t last_frame; /* hca.frames at the arrival of the last frame that was delivered to it */
};

/** struct hca - the adapter. Only the thread of softibd's loop accesses it. */
struct hca {
	struct ib_device ib;
	struct hca_set *set;
	struct rt *rt;
	struct fabric *fab;
	int node;
	struct engine *engine;
	struct hca_port *port;	      /* [num_ports], port 1 first */
	struct abi_devpage *page;     /* the device page that the kernel engine reads */
	struct abi_devpage *shared;   /* its copy that programs map; NULL before the first program */
	int shared_fd;
	struct list_head shared_node; /* in hca_set.shared, with @shared */
	uint32_t route_epoch;	      /* as in abi_devpage: resolutions of earlier epochs are void */
	struct list_head tx, rx;      /* struct hca_frame: from and to the kernel engine */
	unsigned rx_len;
	unsigned rx_turn; /* packets that the kernel engine may still receive in this turn */
	struct rt_work progress;
	struct rt_timer retry;	      /* the kernel engine's timers, and waiting_due */
	struct list_head waiting;     /* struct hca_queue: packets for full destinations (waiting.c) */
	unsigned num_waiting;
	uint64_t waiting_ns;	      /* the interval between two attempts to deliver them */
	mono_t waiting_due;	      /* time of the next attempt; MONO_NEVER: no packet waits */
	struct eng_table qps;	      /* QPN to struct hca_qp */
	struct eng_table reserved;    /* QPNs of QPs that programs may create (hca_qpn_reserve()) */
	struct eng_table keys;	      /* key index to struct hca_key */
	struct eng_table xrc_srqs;    /* SRQ number to struct hca_srq */
	size_t targets_waiting_bytes; /* the sum of all hca_target.waiting_bytes */
	uint32_t next_qpn, next_key, next_pd, next_srqn;
	uint64_t dm_bytes;	      /* device memory that is allocated */
	struct list_head cq_events; /* struct hca_cq.event_node; of a polled adapter only */
	struct list_head kernel_qps, user_qps; /* struct hca_qp.node */
	unsigned kernel_groups;	      /* multicast attachments of the QPs in kernel_qps */
	uint64_t frames;	      /* Ethernet frames received so far */
	struct abi_counters *counted; /* by ports, of the kernel engine and of programs that have ended; NULL: none */
};

/** hca_qp_receives() - does @qp receive in the state that the core has of it? The core does not know
 *  of an error that only the program's engine has seen */
static inline bool hca_qp_receives(const struct hca_qp *qp)
{
	return tp_state_receives((enum ibv_qp_state)qp->ib.state);
}

/** hca_qp_may_use_windows() - may RDMA and atomics of a QP of this type be performed through a window? */
bool hca_qp_may_use_windows(const struct hca_qp *qp);

/** hca_owner() - Return: hca_user.owner of the program that owns @qp; 0: the midlayer owns it */
static inline uint32_t hca_owner(const struct hca_qp *qp)
{
	return qp->user ? qp->user->owner : 0;
}

static inline struct hca *hca_of(struct ib_device *device)
{
	return container_of(device, struct hca, ib);
}

/* counters.c */
/** hca_count() - eng_config.count() of the kernel engine of @hca */
void hca_count(void *hca, unsigned port_num, enum tp_counter counter);
/** hca_counters_keep() - keep what @user has counted, which ends */
void hca_counters_keep(struct hca_user *user);

/* devpage.c */
int hca_page_create(struct hca *hca);
void hca_page_destroy(struct hca *hca);
/** hca_page_publish() - copy a port's attributes to both copies of the device page */
void hca_page_publish(struct hca *hca, unsigned port_num);
/** hca_route_moved() - the callback fab_way_user.moved() of programs' flows. It advances route_epoch,
 *  so that each program resolves its flows from adapter @hca anew with its next request */
void hca_route_moved(void *hca);
/** hca_rules_changed() - the callback of fab_on_rules(). It advances route_epoch of each adapter of
 *  @set, and publishes whether programs are to ask softibd about each completion */
void hca_rules_changed(void *set);
/** hca_page_share() - make the copy of the device page that programs map. 0; -errno */
int hca_page_share(struct hca *hca);
static inline const struct abi_devport *hca_devport(const struct hca *hca, unsigned port_num)
{
	return &hca->page->port[port_num - 1];
}

/* bypass.c */
/** hca_bypass_revoke() - end the leases of all SDP connections of @set, since a rule or the state of a
 *  port has changed */
void hca_bypass_revoke(const struct hca_set *set);

/* port.c */
int hca_port_deliver(void *ctx, const struct fab_packet *pkt);
/** hca_port_deliver_train() - struct fab_sink.deliver_train() */
int hca_port_deliver_train(void *ctx, const struct fab_packet *first, const struct fab_train *train);
/** hca_qkey_violations() - a program reports datagrams with a wrong Q_Key, which it received by a lane
 *  for its @qp. The port counts them and sends trap 258 */
struct abi_lane_event;
void hca_qkey_violations(const struct hca_qp *qp, const struct abi_lane_event *event);
void hca_port_changed(void *ctx, uint32_t changes);

/* flow.c: frames of raw packet QPs */
/** hca_frame_route() - set the DLID of an Ethernet frame that a program sends to the station that has
 *  its destination address, both in @pkt and in @bytes, its encoded form. Return: false: the program
 *  may not send it */
bool hca_frame_route(const struct hca *hca, unsigned port, struct fab_packet *pkt, uint8_t *bytes);
/** hca_frame_address() - the same for a packet of @len bytes that the midlayer sends. A packet that is
 *  no Ethernet frame is not changed */
void hca_frame_address(const struct hca *hca, uint8_t *bytes, size_t len);
/** hca_frame_deliver() - deliver a frame that arrived at the port to the QPs whose flow rules match
 *  Return: 0; -EAGAIN: nobody has received it, because the ring of a QP's program is full */
int hca_frame_deliver(struct hca_port *port, const struct fab_packet *pkt);
struct ib_flow *hca_create_flow(struct ib_qp *qp, const struct ib_flow_attr *attr);
void hca_destroy_flow(struct ib_flow *flow);

/* link.c: the kernel engine's link to the ports */
extern const struct eng_link_ops hca_link_ops;
void hca_link_init(struct hca *hca);
void hca_link_drain(struct hca *hca);
/** hca_link_receive() - queue a packet, or a train, for the kernel engine. Return: 0; -EAGAIN: the queue is
 *  full */
int hca_link_receive(struct hca *hca, unsigned port_num, const void *bytes, size_t len);
/** hca_frame_copy() - a frame of its own for one packet. Return: NULL: no memory */
struct hca_frame *hca_frame_copy(const void *bytes, size_t len);
/** hca_frame_packets() - the number of packets in @f */
static inline unsigned hca_frame_packets(const struct hca_frame *f)
{
	return f->each ? (unsigned)DIV_ROUND_UP(f->len, f->each) : 1;
}

/* waiting.c: packets of the kernel engine for destinations without room */
/** hca_waiting_send() - send @f, and take ownership of it. It may wait behind others to the same
 *  destination, and is discarded after the head-of-queue lifetime. A train that cannot pass as one
 *  is taken apart */
void hca_waiting_send(struct hca *hca, struct hca_frame *f);
/** hca_waiting_retry() - try to deliver the waiting packets if hca->waiting_due has passed */
void hca_waiting_retry(struct hca *hca);
/** hca_waiting_drop() - discard all waiting packets, before the adapter is freed */
void hca_waiting_drop(struct hca *hca);

/* user.c: programs */
struct ib_ucontext *hca_alloc_ucontext(struct ib_device *device);
void hca_dealloc_ucontext(struct ib_ucontext *context);
/** hca_user_deliver() - put a packet into a program's ring. 0; -EAGAIN: the ring is full */
int hca_user_deliver(struct hca_user *user, const void *bytes, size_t len);
/** hca_quiesce() - struct ib_device_ops.quiesce(): forward the packets that the program has sent before
 *  its QP is destroyed. A packet whose destination has no room is discarded.
 *  Return: true when none is left */
bool hca_quiesce(struct ib_ucontext *context);
/** hca_user_wants() - is a QP of @user attached to the group? */
bool hca_user_wants(const struct hca_user *user, const union wire_gid *gid);
/** hca_users_flush() - publish the packets that were put into programs' rings, and ring the doorbells.
 *  Without a call, it happens in the next turn of the loop */
void hca_users_flush(struct hca_set *set);
/** hca_users_init() - prepare the list of programs of a new @set */
void hca_users_init(struct hca_set *set);

/** hca_driver_command() - ABI_CMD_RESOLVE, ABI_CMD_COMPLETION, ABI_CMD_FIND_STATION */
int hca_driver_command(struct ib_ucontext *context, u32 command, const void *in, void *out,
		       int fds[2], unsigned int *num_fds);

/* lane.c: lanes between programs */
/** hca_lane_resolve() - perform ABI_CMD_RESOLVE. The caller closes @fds. NULL: no lane is made */
struct abi_resolve;
struct abi_resolve_resp;
int hca_lane_resolve(struct hca_user *user, const struct abi_resolve *in,
		     struct abi_resolve_resp *out, int fds[2], unsigned int *num_fds);
/** hca_lanes_drop() - end all lanes from and to a program that ends */
void hca_lanes_drop(struct hca_user *user);
/** hca_lanes_readable() - the rt_io callback of lanes_fd: read the program's messages, which refuse a lane
 *  or report datagrams with a wrong Q_Key */
void hca_lanes_readable(struct rt_io *io, bool readable, bool writable);
/* lane_notify.c: events about lanes for programs */
#define HCA_LANE_FDS 2 /* descriptors of a new lane: its memory and its doorbell */
/** hca_lane_takes_events() - has the socket lanes_fd room to announce a lane to @user? */
bool hca_lane_takes_events(const struct hca_user *user);
/** hca_lane_announce() - tell @user of a new lane. Return: false: the socket had no room, and the lane
 *  has to end */
struct abi_lane_event;
bool hca_lane_announce(struct hca_user *user, const struct abi_lane_event *event,
		       const int fds[HCA_LANE_FDS]);
/** hca_introduce() - struct ib_device_ops.introduce() */
int hca_introduce(struct ib_ucontext *to, int fd);
/** hca_lane_notify() - send any other event; it is queued in unsent while the socket has no room */
void hca_lane_notify(struct hca_user *user, const struct abi_lane_event *event);
/** hca_lane_notify_rest() - send the events in unsent, as the socket has room again */
void hca_lane_notify_rest(struct hca_user *user);
/** hca_lane_forget_unsent() - discard the events in unsent of a program that ends */
void hca_lane_forget_unsent(struct hca_user *user);

/** hca_lanes_check() - end the lanes that were made with a LID or P_Key that a port of @hca does not
 *  have any more */
void hca_lanes_check(struct hca *hca);

/* window.c: one-sided requests between programs */
/** hca_windows_open() - make the program's half of its windows, and their descriptors in user->fd
 *  Return: 0; -errno, and hca_windows_close() is still to be called */
int hca_windows_open(struct hca_user *user);
/** hca_windows_close() - free the windows of a program that ends, and tell its peers */
void hca_windows_close(struct hca_user *user);

/* fault.c: rules about objects, completions and events */
/** hca_refused() - does a rule make the creation of an object fail? Return: 0; the -errno of the rule */
int hca_refused(struct hca *hca, enum flt_object_kind kind);
/** hca_refuses() - has @fab a rule about the creation of objects? */
bool hca_refuses(struct fabric *fab);
/** hca_completion() - perform ABI_CMD_COMPLETION: the verdict of the rules on one completion */
void hca_completion(struct hca_user *user, const struct abi_completion *in,
		    struct abi_completion_resp *out);
/** hca_spoils() - has @fab a rule about completions? */
bool hca_spoils(struct fabric *fab);

/* target.c: XRC targets that several programs share */
void hca_target_init(struct hca *hca, struct hca_qp *qp);
/** hca_target_deliver() - deliver a packet to the holder of target @qp
 *  Return: 0, also if the packet was queued until the state can move to another holder; -EAGAIN: the
 *  holder's ring is full */
int hca_target_deliver(struct hca_qp *qp, const struct fab_packet *pkt);
/** hca_target_message() - handle a message about targets that a program put into its ring */
void hca_target_message(struct hca_user *user, const void *bytes, size_t len);
/** hca_target_modified() - record a modification before it is made: a program sets the attributes
 *  @mask of @attr */
void hca_target_modified(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask);
/** hca_target_is_shared() - do several programs share @qp? Its packets take no lane then */
bool hca_target_is_shared(const struct hca_qp *qp);
/** hca_target_may_send() - may program @owner send packets whose source is the target @qp? */
bool hca_target_may_send(const struct hca_qp *qp, uint32_t owner);
/** hca_target_gone() - free the target's state when @qp is destroyed */
void hca_target_gone(struct hca_qp *qp);
/** hca_targets_leave() - take a program that ends out of all the targets it shares */
void hca_targets_leave(struct hca_user *user);
void hca_inherit_qp(struct ib_qp *qp, struct ib_ucontext *to);
void hca_xrcd_shared(struct ib_device *device);

/* numbers.c */
/** hca_qpn_alloc() - set the number of @qp. QPNs are assigned in a circle, so that one is reused as late
 *  as possible. @reserved: the number, which was reserved; 0: none. 0; -ENOMEM: no number or no memory
 *  is left */
int hca_qpn_alloc(struct hca *hca, struct hca_qp *qp, u32 reserved);
/** hca_qpn_reserve() - reserve a number for a QP that a program will create. 0 and *@qpn; -ENOMEM */
int hca_qpn_reserve(struct ib_device *device, u32 *qpn);
/** hca_qpn_release() - end the reservation of a number that no QP has (any more) */
void hca_qpn_release(struct ib_device *device, u32 qpn);
void hca_qpn_free(struct hca *hca, struct hca_qp *qp);
/** hca_srqn_alloc() - set the SRQ number of an SRQ in an XRC domain. 0; -ENOMEM */
int hca_srqn_alloc(struct hca *hca, struct hca_srq *srq);
int hca_key_alloc(struct hca *hca, struct hca_key *owner, u32 *key);
void hca_key_free(struct hca *hca, u32 key);

/* hca.c */
/** hca_poll_events() - struct ib_device_ops.poll_events(): call the handlers in cq_events */
bool hca_poll_events(struct ib_device *device);

/* verbs.c, query.c */
extern const struct ib_device_ops hca_ops;
int hca_query_device(struct ib_device *device, struct ib_device_attr *attr);
int hca_modify_device(struct ib_device *device, int mask, struct ib_device_modify *modify);
int hca_query_port(struct ib_device *device, u32 port_num, struct ib_port_attr *attr);
int hca_modify_port(struct ib_device *device, u32 port_num, int mask,
		    struct ib_port_modify *modify);
int hca_query_gid(struct ib_device *device, u32 port_num, int index, union ib_gid *gid);
int hca_query_pkey(struct ib_device *device, u32 port_num, u16 index, u16 *pkey);
/** hca_vlan_is_ours() - may a program send from this port of Ethernet with these addresses? It may if
 *  source, destination and port are members of one VLAN */
bool hca_vlan_is_ours(const struct hca *hca, unsigned port_num, uint16_t slid, uint16_t dlid);
/** hca_has_ethernet() - has the adapter a port of Ethernet? */
bool hca_has_ethernet(const struct hca *hca);
int hca_find_station(struct ib_device *device, u32 port_num, unsigned int sgid_index,
		     const union ib_gid *gid, u16 *station);
/** hca_ask_station() - let the port ask hosts outside of the fabric who has @gid, which no station is known to have
 *  Return: false: there is nobody to ask */
bool hca_ask_station(const struct hca *hca, u32 port_num, unsigned int sgid_index, const union ib_gid *gid);
void hca_set_mtu(struct ib_device *device, u32 port_num, unsigned int bytes);
void hca_set_addresses(struct ib_device *device, u32 port_num, const struct ib_port_address *address,
		       unsigned int num);
int hca_process_mad(struct ib_device *device, int flags, u32 port_num, const struct ib_wc *in_wc,
		    const struct ib_grh *in_grh, const struct ib_mad *in, struct ib_mad *out,
		    size_t *out_mad_bytes, u16 *out_mad_pkey_index);

/* verbs_memory.c */
struct ib_mr *hca_get_dma_mr(struct ib_pd *pd, int access);
struct ib_mr *hca_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access,
			      struct ib_udata *udata);
int hca_rereg_user_mr(struct ib_mr *mr, int flags, u64 start, u64 length, u64 iova, int access,
		      struct ib_pd *pd);
void hca_dereg_mr(struct ib_mr *ibmr);
struct ib_mr *hca_alloc_mr(struct ib_pd *pd, u32 max_pages);
int hca_map_mr(struct ib_mr *mr, struct ib_pd *pd, int access, const struct ib_pages *pages);
int hca_stage_mr(struct ib_mr *mr, const struct ib_pages *pages);
bool hca_mr_is_bound(const struct ib_mr *mr);
struct ib_mw *hca_alloc_mw(struct ib_pd *pd, enum ib_mw_type type, struct ib_udata *udata);
void hca_dealloc_mw(struct ib_mw *mw);
struct ib_dm *hca_alloc_dm(struct ib_device *device, u64 length, struct ib_udata *udata);
void hca_dealloc_dm(struct ib_dm *dm);
struct ib_mr *hca_reg_dm_mr(struct ib_pd *pd, struct ib_dm *dm, u64 offset, u64 length,
			    int access, struct ib_udata *udata);

/* verbs_qp.c */
struct ib_qp *hca_create_qp(struct ib_pd *pd, struct ib_qp_init_attr *init,
			    struct ib_udata *udata);
/** hca_ibv_qp_attr() - convert attributes of the midlayer to those of the engine */
struct ibv_qp_attr hca_ibv_qp_attr(const struct ib_qp_attr *in);
int hca_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask);
int hca_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init_attr);
void hca_destroy_qp(struct ib_qp *ibqp);
int hca_attach_mcast(struct ib_qp *ibqp, const union ib_gid *gid, u16 lid);
int hca_detach_mcast(struct ib_qp *ibqp, const union ib_gid *gid, u16 lid);

/* post.c: the kernel engine's queues */
int hca_post_send(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad);
int hca_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad);
int hca_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad);
int hca_peek_cq(struct ib_cq *cq, int wc_cnt);
int hca_poll_cq(struct ib_cq *cq, int n, struct ib_wc *wc);
int hca_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags);
int hca_req_ncomp_notif(struct ib_cq *cq, int wc_cnt);
/** hca_av() - convert the attributes of an address handle to an address vector of the transport */
struct tp_av hca_av(const struct rdma_ah_attr *attr);

#endif
