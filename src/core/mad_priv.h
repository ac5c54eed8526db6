/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The MAD layer's inside. Who does what:
 *
 *  mad.c		 the ports: QP0 and QP1, their CQ, opening and closing
 *  mad_agent.c	 registration, snooping, who gets an unsolicited MAD
 *  mad_send.c	 send buffers; the life of a send (states below)
 *  mad_match.c	 which send a received MAD belongs to
 *  mad_post.c	 the send queue: what is posted, what waits for room, loopback
 *  mad_recv.c	 a received MAD's way: checks, device agents, clients' agents
 *  mad_redirect.c MAD services on a client's QP
 *  smi.c	 directed routes (14.2.2)
 *  rmpp_recv.c	 reassembly of messages; rmpp_send.c: their segmentation
 *
 * A send is, in this order:
 *  posted	 on the wire or in the queue before it: mad_send.posted
 *  waiting	 for an ACK of its window, or for the response: timer armed
 *  done	 its handler runs, and the client frees it
 * It may become done while posted (response overtakes completion, cancel):
 * then the completion of the work request calls the handler.
 */
#ifndef SOFTIB_CORE_MAD_PRIV_H
#define SOFTIB_CORE_MAD_PRIV_H

#include "rdma/ib_mad.h"
#include "rdma/ib_smi.h"
#include "runtime/rt.h"
#include "runtime/tree.h"

#define MAD_SEND_WRS 24	    /* posted at once to one QP; the rest queues */
#define MAD_RECV_WRS 39	    /* the most receives posted to one QP; with the sends a CQ of 63 */
#define MAD_RECV_INITIAL 16 /* a quiet port's: a turn of the adapter (HCA_RX_TURN); it grows with
			       the traffic */
#define MAD_RECV_QUIET_NS (10 * NSEC_PER_SEC)
#define RMPP_ACK_RETRIES 5 /* without progress */
#define RMPP_WINDOW	 32 /* segments of a message that a peer may send before an ACK */

_Static_assert(RMPP_WINDOW < MAD_RECV_WRS, "a window finds receives");

struct mad_agent;
struct mad_port;

/** struct mad_qp - QP0 or QP1 of a port, or a redirected QP */
struct mad_qp {
	struct mad_port *port;
	struct ib_qp *qp;
	struct list_head posted;  /* mad_send, work requests not completed */
	struct list_head backlog; /* mad_send, waiting for room */
	unsigned int num_posted;
	struct list_head receives; /* mad_recv, posted */
	unsigned int num_receives, want_receives;
	mono_t busy_until; /* then it wants a quiet port's receives again */
	struct list_head snoops; /* mad_agent */
};

/** struct mad_port - one port of a device */
struct mad_port {
	struct list_head node; /* in the device's mad_device */
	struct ib_device *device;
	struct ib_pd *pd;
	u32 port_num;
	struct ib_cq *cq;
	bool cq_is_small; /* for one queue pair */
	struct mad_qp qp[2]; /* IB_QPT_SMI, IB_QPT_GSI */
	struct list_head agents;
	struct rt_work drain;	   /* goes on with a CQ that had too much */
	struct list_head loopback; /* mad_recv, to be received as if from the wire */
	struct list_head loopback_sent; /* mad_send that put them there */
	struct rt_work loop_work;
};

/** struct mad_send - a send; the client sees its first member */
struct mad_send {
	struct ib_mad_send_buf buf;
	struct ib_cqe cqe;
	struct mad_agent *agent; /* NULL: the layer's own: reply, ACK */
	struct mad_qp *mqp;
	struct rt_tree_node match_node; /* in agent->sends, from post to done */
	u8 match_key[32];		/* what its answer must fit: mad_match.c */
	struct list_head queue_node; /* posted, backlog, loopback_sent, or done */
	struct rt_timer timer;
	struct ib_ud_wr wr;
	struct ib_sge sge[2];
	int retries_left;
	bool active; /* posted by the client, its handler not called */
	bool posted; /* in posted, backlog or loopback_sent */
	bool in_backlog;
	bool answered; /* the final status is known */
	bool loops;    /* to this port itself: never on the wire */
	bool orphan;   /* freed while posted: the completion frees it */
	enum ib_wc_status status;
	u32 vendor_err;
	/* --- RMPP (13.6.6.1): segment numbers begin at 1 --- */
	bool rmpp;
	int seg_num;  /* last sent */
	int last_ack; /* last acknowledged */
	int newwin;   /* last that may be sent */
	int pad;      /* unused bytes of the last segment */
	int ack_retries_left;
	u8 *segments;
	_Alignas(8) u8 mad[];
};

/** struct mad_recv - a receive buffer, from posting to ib_free_recv_mad() */
struct mad_recv {
	struct ib_mad_recv_wc recv_wc;
	struct ib_cqe cqe;
	struct mad_qp *mqp;
	struct list_head node;
	struct ib_wc wc;
	struct {
		struct ib_grh grh;
		union {
			struct ib_mad mad;
			struct ib_rmpp_mad rmpp;
			struct ib_smp smp;
		};
	} packet;
};

struct mad_agent {
	struct ib_mad_agent agent;
	struct mad_port *port;
	struct mad_qp *mqp;
	struct list_head node; /* port->agents, or mqp->snoops */
	bool registered;       /* reg_req is valid */
	struct ib_mad_reg_req reg_req;
	int snoop_flags;
	struct rt_tree sends; /* mad_send, by what a MAD that belongs to it says */
	struct list_head done; /* cancelled: handlers to be called */
	struct rt_work done_work;
	struct rt_tree rmpp_recvs; /* struct rmpp_recv, by what tells transfers apart */
	struct rt_tree rmpp_sources; /* struct source, by LID */
	struct list_head rmpp_all_sources; /* the same */
	u32 rmpp_segments;		   /* held by the transfers */
	const struct ib_mad_keeper *keeper; /* of their memory; NULL: nobody counts it */
	struct mad_qp *own_qp; /* redirected */
};

static inline struct mad_agent *mad_agent_of(struct ib_mad_agent *agent)
{
	return container_of(agent, struct mad_agent, agent);
}

static inline struct mad_send *mad_send_of(struct ib_mad_send_buf *buf)
{
	return container_of(buf, struct mad_send, buf);
}

static inline struct mad_recv *mad_recv_of(struct ib_mad_recv_wc *recv_wc)
{
	return container_of(recv_wc, struct mad_recv, recv_wc);
}

static inline bool mad_is_smp(u8 mgmt_class)
{
	return mgmt_class == IB_MGMT_CLASS_SUBN_LID_ROUTED ||
	       mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE;
}

static inline bool mad_is_vendor2(u8 mgmt_class)
{
	return mgmt_class >= IB_MGMT_CLASS_VENDOR_RANGE2_START &&
	       mgmt_class <= IB_MGMT_CLASS_VENDOR_RANGE2_END;
}

/* --- mad.c --- */

/** mad_port_get() - a port with its queue pair of type @type (IB_QPT_SMI, IB_QPT_GSI),
 *  which is made now if it is the first use of one whose device answers MADs without it.
 *  Return: -ENODEV, or what opening failed with, as ERR_PTR() */
struct mad_port *mad_port_get(struct ib_device *device, u32 port_num, enum ib_qp_type type);
/** mad_qp_setup() - empty queues around @qp */
void mad_qp_setup(struct mad_qp *mqp, struct mad_port *port, struct ib_qp *qp);
/** mad_qp_refill() - post receives up to what the QP wants */
void mad_qp_refill(struct mad_qp *mqp);
/** mad_qp_expect_window() - as many receives as it may have: a window of segments comes */
void mad_qp_expect_window(struct mad_qp *mqp);
/** mad_recv_alloc() - Return: NULL when there is no memory */
struct mad_recv *mad_recv_alloc(struct mad_qp *mqp);

/* --- mad_agent.c --- */

/** mad_agent_find() - who gets @mad: by TID for a response, else by class */
struct mad_agent *mad_agent_find(struct mad_qp *mqp, const struct ib_mad *mad);
/** mad_agent_alloc() - an agent with empty queues and a new hi_tid */
struct mad_agent *mad_agent_alloc(struct mad_port *port, struct mad_qp *mqp,
				  ib_mad_send_handler send_handler,
				  ib_mad_recv_handler recv_handler, void *context);
void mad_snoop_send(struct mad_send *send, int flag);
void mad_snoop_recv(struct mad_recv *recv);

/* --- mad_send.c --- */

struct mad_send *mad_send_alloc(struct mad_agent *agent, struct mad_qp *mqp, int rmpp,
				int hdr_len, int data_len);
void mad_send_free(struct mad_send *send);
/** mad_send_wait() - (re)start the wait for a response or an ACK */
void mad_send_wait(struct mad_send *send, int timeout_ms);
/** mad_send_finish() - the outcome is known: call the handler, now or when
 *  the work request completes */
void mad_send_finish(struct mad_send *send, enum ib_wc_status status, u32 vendor_err);
/** mad_transmit() - send, or send again, the current bytes. 0; -errno */
int mad_transmit(struct mad_send *send);
/** mad_send_sent() - the work request is over: what comes next */
void mad_send_sent(struct mad_send *send, enum ib_wc_status status);
/** mad_send_flush() - finish everything that @agent has outstanding */
void mad_send_flush(struct mad_agent *agent);

/* --- mad_match.c --- */

/** mad_match_init() - @agent has sent nothing yet */
void mad_match_init(struct mad_agent *agent);
/** mad_match_add() - let @send, whose header and address are those that it leaves
 *  with, be found by what belongs to it; rt_tree_remove() ends that */
void mad_match_add(struct mad_send *send);
/** mad_match_find() - the send of @agent that @recv answers or acknowledges; of
 *  several, the one that was added first. NULL. O(log n) of the agent's sends */
struct mad_send *mad_match_find(const struct mad_agent *agent, const struct mad_recv *recv);
/** mad_match_first() - any send of @agent that can be found; NULL */
struct mad_send *mad_match_first(const struct mad_agent *agent);

/* --- mad_post.c --- */

/** mad_post() - put @send on the wire, or in line for it. 0; -errno */
int mad_post(struct mad_send *send);
/** mad_loopback() - as mad_post(), to this port itself. 0; -ENOMEM */
int mad_loopback(struct mad_send *send);
/** mad_loops_back() - is @send for the port that it leaves by? */
bool mad_loops_back(const struct mad_send *send);
void mad_loop_work(struct rt_work *work);
/** mad_send_done() - completion of a work request */
void mad_send_done(struct ib_cq *cq, struct ib_wc *wc);
/** mad_unpost() - take a send out of the line before the QP. Return: false
 *  when it is past it: its completion will come */
bool mad_unpost(struct mad_send *send);
/**
 * mad_reply() - send @mad back to where @recv came from, and forget it
 * Return: 0; -errno, and it is not sent: who asked will time out
 */
int mad_reply(struct mad_recv *recv, const struct ib_mad *mad);

/* --- mad_recv.c --- */

/** mad_receive() - take @recv, whose wc is filled; it is freed or delivered */
void mad_receive(struct mad_recv *recv);
/** mad_deliver() - give a MAD of @agent's to it: RMPP, matching, handler */
void mad_deliver(struct mad_agent *agent, struct mad_recv *recv);
void mad_recv_done(struct ib_cq *cq, struct ib_wc *wc);

/* --- smi.c (14.2.2) --- */

enum smi_action {
	SMI_DISCARD,
	SMI_LOCAL, /* for this port's SMA or SM */
	SMI_SEND,  /* out of the port */
};

/** smi_send() - an SMP is about to leave a CA: updates the hop pointer */
enum smi_action smi_send(struct ib_smp *smp, u32 port_num);
/** smi_receive() - an SMP arrived at a CA: updates hop pointer and path */
enum smi_action smi_receive(struct ib_smp *smp, u32 port_num);

/* --- rmpp_recv.c, rmpp_send.c (13.6) --- */

/** rmpp_is_active() - is @mad part of a transfer that the core handles? */
bool rmpp_is_active(const struct mad_agent *agent, const struct ib_mad *mad);
/**
 * rmpp_receive() - a packet of a transfer arrived
 * Return: the whole message when it completes one; NULL: @recv was taken
 */
struct mad_recv *rmpp_receive(struct mad_agent *agent, struct mad_recv *recv);
/** rmpp_recv_init() - @agent receives no transfer yet */
void rmpp_recv_init(struct mad_agent *agent);
/** rmpp_recv_cleanup() - drop @agent's reassemblies */
void rmpp_recv_cleanup(struct mad_agent *agent);
/** rmpp_recv_window() - what the peer said of its window in the direction
 *  switch of a double-sided transfer; 1 otherwise */
int rmpp_recv_window(const struct mad_send *send);
/** rmpp_abort() - tell the sender of @recv that its transfer is over:
 *  ABORT with @status (13.6.2.4) */
void rmpp_abort(struct mad_agent *agent, struct mad_recv *recv, u8 status);
/** rmpp_control() - answer @recv with an ACK, STOP or ABORT */
void rmpp_control(struct mad_agent *agent, struct mad_recv *recv, u8 type, u8 status,
		  u32 seg_num, u32 newwin);

/** rmpp_send_start() - the first segment. 0; -errno */
int rmpp_send_start(struct mad_send *send);
/** rmpp_send_sent() - a segment left; true: more is to come (next segment
 *  or ACK), false: the message is acknowledged as a whole */
bool rmpp_send_sent(struct mad_send *send);
/** rmpp_send_retry() - no ACK, or no response, came in time. 0; -errno */
int rmpp_send_retry(struct mad_send *send);
/** rmpp_send_gave_up() - no retry is left: tell the receiver */
void rmpp_send_gave_up(struct mad_send *send);
void rmpp_send_ack(struct mad_agent *agent, struct mad_recv *recv);
/** rmpp_send_stop() - STOP or ABORT came from the receiver */
void rmpp_send_stop(struct mad_agent *agent, struct mad_recv *recv);

#endif
