/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of the adapter share. */
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
#define HCA_RX_TURN 16 /* the most of them that the engine takes in a turn: a quiet port of the MAD
			 layer has no more receives (MAD_RECV_INITIAL) */
#define HCA_MAX_MSG_BYTES 0x80000000u
#define HCA_DM_BYTES (256ull << 10) /* of device memory */
#define HCA_DM_UNIT_BYTES 64	    /* is given out in these */
/** how long a packet may wait at the head of a program's queue before it is
 *  dropped: the head-of-queue lifetime (18.2.5.4) */
#define HCA_HOQ_NS (1 * NSEC_PER_SEC)
/** it is tried again after a time that doubles from one to the other */
#define HCA_RETRY_MIN_NS (20 * NSEC_PER_USEC)
#define HCA_RETRY_MAX_NS (1 * NSEC_PER_MSEC)
/** the kernel engine's queues of packets for destinations without room */
#define HCA_WAITING_QUEUES 256
#define HCA_WAITING_EACH   256

struct hca;

/** struct hca_set - what the adapters of one fabric share */
struct hca_set {
	struct rt *rt;
	struct fabric *fab;
	const struct profile *profile; /* NULL: what softib has is what is reported */
	const bool *polled;	 /* by node; NULL: no adapter is polled */
	struct list_head shared; /* struct hca.shared_node: programs have their page */
	struct list_head dirty;	 /* struct hca_user.dirty */
	uint32_t last_owner;	 /* the last struct hca_user.owner */
	struct rt_work flush;	 /* hca_users_flush() */
	/* --- lane.c --- */
	uint32_t next_lane;
	/* --- window.c --- */
	struct list_head windows, questions, pairs;
	uint32_t next_windows, next_question;
	uint64_t window_operations; /* counted, of all programs ever */
	/* --- bypass.c --- */
	struct list_head bypasses; /* struct hca_bypass */
	/* --- link.c, waiting.c --- */
	struct hca_frame *reserved; /* between reserve and commit of a kernel engine */
	struct hca_frame *passing;  /* in fab_send(): who receives it may keep it */
};

/** struct hca_frame - a packet on its way between the kernel engine and a port */
struct hca_frame {
	struct list_head node;
	unsigned port_num;
	mono_t since; /* it waits for room (waiting.c) */
	size_t len;
	uint8_t bytes[];
};

struct hca_port {
	struct hca *hca;
	unsigned port_num;
	uint8_t last_state;
	bool has_qp[2]; /* QP0, QP1: else the node's own agents answer MADs */
	struct list_head flows; /* struct hca_flow, by priority */
};

/** struct hca_mcast - a program's QP wants packets of a group */
struct hca_mcast {
	struct list_head node;
	uint32_t qpn;
	union ib_gid gid;
	uint16_t lid; /* one group may have several */
};

/** struct hca_user - a program that opened the device */
struct hca_user {
	uint64_t quiet_at; /* the ring's head when hca_quiesce() is content; 0: not asked */
	struct ib_ucontext ib;
	struct hca *hca;
	uint32_t owner; /* a number that no other program of the fabric has; not 0 */
	struct rt_poller poller;
	struct rt_io doorbell;
	struct abi_ring_rx rx; /* packets from the program */
	struct abi_ring_tx tx; /* packets to it */
	void *link_memory;
	size_t link_bytes;
	int fd[ABI_CONTEXT_FDS];
	struct abi_context_resp resp;
	struct list_head mcast;
	struct list_head dirty; /* in the list of those with unpublished packets */
	struct list_head lanes_out, lanes_in;
	unsigned num_lanes;
	int lanes_fd;		/* our end of ABI_FD_LANES */
	int program_doorbell_fd;	/* the writing end of ABI_FD_PROGRAM_DOORBELL */
	struct rt_io lanes_io;
	struct list_head unsent;	/* what found no room there (lane_notify.c) */
	unsigned num_unsent;
	bool lanes_full;		/* there was none when it was looked at last */
	bool lanes_dead;	/* it has closed its end, or reads nothing at all */
	mono_t refused_until;	/* it had no room for a lane: it gets none before */
	uint64_t refused_ns;	/* how long that was */
	struct hca_windows *windows;
	/* --- the packet at the head of rx, for which its destination has no room --- */
	mono_t held_since;	/* MONO_NEVER: there is none */
	struct rt_timer retry;	/* armed: rx is not looked at before */
	uint64_t retry_ns;	/* until the next time */
	bool broken;		/* it wrote nonsense, or the device is gone */
};

/** struct hca_key - what a key stands for, in hca.keys: first in its struct */
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
	struct eng_cq *eng; /* NULL: a program's */
	struct rt_work completed;
	struct list_head event_node; /* hca->cq_events: its handler is to be called */
	bool handler_wanted;
};
struct hca_srq {
	struct ib_srq ib;
	struct hca_user *user; /* of an XRC domain */
	struct eng_srq *eng;
	struct ib_srq_attr attr;
};

/** struct hca_target - an XRC target in the hands of several programs (target.c) */
struct hca_target {
	struct list_head parts; /* struct hca_part: programs that know of it */
	struct hca_user *holder; /* it has the state of the responder; NULL: @state is it */
	bool is_asked;		 /* the holder was told to release it */
	uint32_t serial;	 /* of the attributes */
	struct list_head waiting; /* struct hca_frame: packets that wait for the state, in order */
	size_t waiting_bytes;
	struct rt_timer retry;	 /* of those packets, when they wait for room in a ring */
	struct abi_target_state state;
};

struct hca_qp {
	struct ib_qp ib;
	struct hca_target target; /* XRC_TGT */
	struct list_head node; /* hca->kernel_qps or user_qps */
	struct eng_qp *eng; /* NULL: a program's */
	struct hca_user *user;
	uint64_t last_frame; /* hca.frames when it received one */
};

/** struct hca - the adapter. One thread: softibd's loop. */
struct hca {
	struct ib_device ib;
	struct hca_set *set;
	struct rt *rt;
	struct fabric *fab;
	int node;
	struct engine *engine;
	struct hca_port *port;	      /* [num_ports], port 1 first */
	struct abi_devpage *page;     /* what the kernel engine reads */
	struct abi_devpage *shared;   /* what programs read; NULL before the first */
	int shared_fd;
	struct list_head shared_node; /* of those with @shared */
	uint32_t route_epoch;	      /* abi_devpage's: answers of before do not hold */
	struct list_head tx, rx;      /* struct hca_frame of the kernel engine */
	unsigned rx_len;
	unsigned rx_turn; /* packets that the engine may still take in this turn */
	struct rt_work progress;
	struct rt_timer retry;	      /* of what waits, and of the kernel engine */
	struct list_head waiting;     /* struct hca_queue (waiting.c) */
	unsigned num_waiting;
	uint64_t waiting_ns;	      /* from one offer to the next */
	mono_t waiting_due;	      /* offer them again; MONO_NEVER: none waits */
	struct eng_table qps;	      /* QPN to struct hca_qp */
	struct eng_table keys;	      /* key index to its region or window */
	struct eng_table xrc_srqs;    /* SRQ number to struct hca_srq */
	size_t targets_waiting_bytes; /* hca_target.waiting_bytes of all */
	uint32_t next_qpn, next_key, next_pd, next_srqn;
	uint64_t dm_bytes;	      /* of device memory given out */
	struct list_head cq_events; /* of an adapter that is polled */
	struct list_head kernel_qps, user_qps; /* struct hca_qp.node */
	unsigned kernel_groups;	      /* their attachments to multicast groups */
	uint64_t frames;	      /* how many arrived */
};

/** hca_qp_receives() - by the state that the core knows. An error of which only its program knows
 *  has not changed that */
static inline bool hca_qp_receives(const struct hca_qp *qp)
{
	return tp_state_receives((enum ibv_qp_state)qp->ib.state);
}

/** hca_owner() - who owns @qp: a program's number; 0: the adapter itself */
static inline uint32_t hca_owner(const struct hca_qp *qp)
{
	return qp->user ? qp->user->owner : 0;
}

static inline struct hca *hca_of(struct ib_device *device)
{
	return container_of(device, struct hca, ib);
}

/* devpage.c */
int hca_page_create(struct hca *hca);
void hca_page_destroy(struct hca *hca);
/** hca_page_publish() - copy a port's attributes to both pages */
void hca_page_publish(struct hca *hca, unsigned port_num);
/** hca_route_moved() - fab_way_user.moved() of programs' flows: they see by their next
 *  request that what they know of routes from this adapter is void */
void hca_route_moved(void *hca);
/** hca_rules_changed() - fab_on_rules()'s: the same at every adapter, and whether to
 *  ask about completions */
void hca_rules_changed(void *set);
/** hca_page_share() - make the page that programs map. 0; -errno */
int hca_page_share(struct hca *hca);
static inline const struct abi_devport *hca_devport(const struct hca *hca, unsigned port_num)
{
	return &hca->page->port[port_num - 1];
}

/* bypass.c */
/** hca_bypass_revoke() - rules, or what a port may do, have changed: none may be used any more */
void hca_bypass_revoke(const struct hca_set *set);

/* port.c */
int hca_port_deliver(void *ctx, const struct fab_packet *pkt);
/** hca_qkey_violations() - datagrams to @qp, a program's, came by a lane with a wrong
 *  Q_Key: by what the program says of them, its port counts and tells */
struct abi_lane_event;
void hca_qkey_violations(const struct hca_qp *qp, const struct abi_lane_event *event);
void hca_port_changed(void *ctx, uint32_t changes);

/* flow.c: frames of raw packet QPs */
/** hca_frame_route() - a program sends a frame: set the station of its MAC address, also in
 *  @bytes, which are the packet's. Return: false: it may not */
bool hca_frame_route(const struct hca *hca, unsigned port, struct fab_packet *pkt, uint8_t *bytes);
/** hca_frame_address() - the same for a packet of @len bytes that the midlayer sends; unless it
 *  is a frame it stays as it is */
void hca_frame_address(const struct hca *hca, uint8_t *bytes, size_t len);
/** hca_frame_deliver() - a frame reached the port. 0; -EAGAIN its QP's program has no room */
int hca_frame_deliver(struct hca_port *port, const struct fab_packet *pkt);
struct ib_flow *hca_create_flow(struct ib_qp *qp, const struct ib_flow_attr *attr);
void hca_destroy_flow(struct ib_flow *flow);

/* link.c: the kernel engine's way to the ports */
extern const struct eng_link_ops hca_link_ops;
void hca_link_init(struct hca *hca);
void hca_link_drain(struct hca *hca);
/** hca_link_receive() - a packet for the kernel engine. 0; -EAGAIN full */
int hca_link_receive(struct hca *hca, unsigned port_num, const void *bytes, size_t len);

/* waiting.c: what the kernel engine finds no room for */
/** hca_waiting_send() - send @f, which is the queue's from now on: it may wait behind
 *  others of its destination, and is discarded after the head-of-queue lifetime */
void hca_waiting_send(struct hca *hca, struct hca_frame *f);
/** hca_waiting_retry() - offer what waits again, if it is time to (hca->waiting_due) */
void hca_waiting_retry(struct hca *hca);
/** hca_waiting_drop() - the adapter goes, and all that waits */
void hca_waiting_drop(struct hca *hca);

/* user.c: programs */
struct ib_ucontext *hca_alloc_ucontext(struct ib_device *device);
void hca_dealloc_ucontext(struct ib_ucontext *context);
/** hca_user_deliver() - put a packet into a program's ring. 0; -EAGAIN */
int hca_user_deliver(struct hca_user *user, const void *bytes, size_t len);
/** hca_quiesce() - struct ib_device_ops.quiesce(): what the program sent leaves before its
 *  QP goes. A packet whose destination has no room is given up */
bool hca_quiesce(struct ib_ucontext *context);
/** hca_user_wants() - is a QP of @user attached to the group? */
bool hca_user_wants(const struct hca_user *user, const union wire_gid *gid);
/** hca_users_flush() - publish what was put into rings, ring the doorbells; comes by
 *  itself in the next turn of the loop */
void hca_users_flush(struct hca_set *set);
/** hca_users_init() - no program is there yet */
void hca_users_init(struct hca_set *set);

/** hca_driver_command() - ABI_CMD_RESOLVE, ABI_CMD_COMPLETION, ABI_CMD_FIND_STATION */
int hca_driver_command(struct ib_ucontext *context, u32 command, const void *in, void *out,
		       int fds[2], unsigned int *num_fds);

/* lane.c: shortcuts between programs */
/** hca_lane_resolve() - ABI_CMD_RESOLVE; fds are the caller's to close */
struct abi_resolve;
struct abi_resolve_resp;
int hca_lane_resolve(struct hca_user *user, const struct abi_resolve *in,
		     struct abi_resolve_resp *out, int fds[2], unsigned int *num_fds);
/** hca_lanes_drop() - the program goes: its lanes end, both ways */
void hca_lanes_drop(struct hca_user *user);
/** hca_lanes_heard() - the rt_io of lanes_fd: a program refuses a lane, or tells of
 *  wrong Q_Keys */
void hca_lanes_heard(struct rt_io *io, bool readable, bool writable);
/* lane_notify.c: what programs are notified of about lanes */
#define HCA_LANE_FDS 2 /* of a new lane: its memory, its doorbell */
/** hca_lane_takes_events() - is there room to announce a lane to @user? */
bool hca_lane_takes_events(const struct hca_user *user);
/** hca_lane_announce() - a new lane to @user. Return: false: it does not learn of it */
struct abi_lane_event;
bool hca_lane_announce(struct hca_user *user, const struct abi_lane_event *event,
		       const int fds[HCA_LANE_FDS]);
/** hca_introduce() - struct ib_device_ops.introduce() */
int hca_introduce(struct ib_ucontext *to, int fd);
/** hca_lane_notify() - anything else; waits here when there is no room */
void hca_lane_notify(struct hca_user *user, const struct abi_lane_event *event);
/** hca_lane_notify_rest() - there is room again */
void hca_lane_notify_rest(struct hca_user *user);
/** hca_lane_forget_unsent() - the program goes */
void hca_lane_forget_unsent(struct hca_user *user);

/** hca_lanes_check() - a port of @hca changed: lanes end whose receivers were told
 *  another LID or P_Key of it */
void hca_lanes_check(struct hca *hca);

/* window.c: one-sided requests between programs */
/** hca_windows_open() - make user->fd of them. 0; -errno, and still to be
 *  closed */
int hca_windows_open(struct hca_user *user);
/** hca_windows_close() - the program goes: tell its peers */
void hca_windows_close(struct hca_user *user);

/* fault.c: rules about objects, completions and events */
/** hca_refused() - shall a program's new object fail? Return: 0; -errno */
int hca_refused(struct hca *hca, enum flt_object_kind kind);
/** hca_completion() - ABI_CMD_COMPLETION */
void hca_completion(struct hca_user *user, const struct abi_completion *in,
		    struct abi_completion_resp *out);
/** hca_spoils() - has @fab a rule about completions? */
bool hca_spoils(struct fabric *fab);

/* target.c: XRC targets that several programs share */
void hca_target_init(struct hca *hca, struct hca_qp *qp);
/** hca_target_deliver() - a packet for a target. 0, also when it waits for the target's state;
 *  -EAGAIN there is no room in its program's ring */
int hca_target_deliver(struct hca_qp *qp, const struct fab_packet *pkt);
/** hca_target_heard() - the program sent a message instead of a packet */
void hca_target_heard(struct hca_user *user, const void *bytes, size_t len);
/** hca_target_modified() - a program, whichever it is, is about to set @mask of @attr */
void hca_target_modified(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask);
/** hca_target_is_shared() - then no packet of it goes by a lane */
bool hca_target_is_shared(const struct hca_qp *qp);
/** hca_target_speaks() - is @owner one of the programs that send for the target @qp? */
bool hca_target_speaks(const struct hca_qp *qp, uint32_t owner);
/** hca_target_gone() - it is destroyed */
void hca_target_gone(struct hca_qp *qp);
/** hca_targets_leave() - the program goes */
void hca_targets_leave(struct hca_user *user);
void hca_inherit_qp(struct ib_qp *qp, struct ib_ucontext *to);
void hca_xrcd_shared(struct ib_device *device);

/* numbers.c */
/** hca_qpn_alloc() - a QPN that was not used for long, or 0/1 of a port;
 *  -ENOMEM none or no memory */
int hca_qpn_alloc(struct hca *hca, struct hca_qp *qp);
void hca_qpn_free(struct hca *hca, struct hca_qp *qp);
/** hca_srqn_alloc() - of an SRQ of an XRC domain. 0; -ENOMEM */
int hca_srqn_alloc(struct hca *hca, struct hca_srq *srq);
int hca_key_alloc(struct hca *hca, struct hca_key *owner, u32 *key);
void hca_key_free(struct hca *hca, u32 key);

/* hca.c */
/** hca_poll_events() - struct ib_device_ops.poll_events() */
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
/** hca_vlan_is_ours() - may a program send from this port with these addresses? Of Ethernet, if
 *  both are in one VLAN and the port is as well */
bool hca_vlan_is_ours(const struct hca *hca, unsigned port_num, uint16_t slid, uint16_t dlid);
/** hca_has_ethernet() - has the adapter a port of Ethernet? */
bool hca_has_ethernet(const struct hca *hca);
int hca_find_station(struct ib_device *device, u32 port_num, unsigned int sgid_index,
		     const union ib_gid *gid, u16 *station);
void hca_set_addresses(struct ib_device *device, u32 port_num, const union ib_gid *address,
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
/** hca_ibv_qp_attr() - in the engine's words */
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
/** hca_av() - an address handle's attributes as the transport wants them */
struct tp_av hca_av(const struct rdma_ah_attr *attr);

#endif
