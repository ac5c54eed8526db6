/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Internal declarations of the MAD layer. Its files:
 *
 *  mad.c		 the ports: QP0 and QP1, their CQ, opening and closing
 *  mad_agent.c	 registration, snooping, the choice of an agent for an unsolicited MAD
 *  mad_send.c	 send buffers, and the states of a send (below)
 *  mad_match.c	 the choice of the send to which a received MAD belongs
 *  mad_post.c	 the send queue: posted sends, sends that wait for room, loopback
 *  mad_recv.c	 the path of a received MAD: checks, the device's agents, clients' agents
 *  mad_redirect.c MAD services on a client's QP
 *  smi.c	 directed routes (14.2.2)
 *  rmpp_recv.c	 reassembly of messages; rmpp_send.c: their segmentation
 *
 * States of a send, in their order:
 *  posted	 its work request is posted or in the backlog: mad_send.posted
 *  waiting	 for the ACK of a window, or for the response: the timer is armed
 *  done	 its handler is called, and the client frees it
 * A send may be done while it is posted, because the response came before the
 * completion of the work request, or because it was cancelled. Then that
 * completion calls the handler.
 */
#ifndef SOFTIB_CORE_MAD_PRIV_H
#define SOFTIB_CORE_MAD_PRIV_H

#include "rdma/ib_mad.h"
#include "rdma/ib_smi.h"
#include "runtime/rt.h"
#include "runtime/tree.h"

#define MAD_SEND_WRS 24	    /* the most sends posted to one QP; further ones are in its backlog */
#define MAD_RECV_WRS 39	    /* the most receives posted to one QP; with the sends, they fill a CQ of 63 */
#define MAD_RECV_INITIAL 16 /* receives of a quiet port, as many as the adapter delivers in a turn
			       (HCA_RX_TURN); a busy port has more */
#define MAD_RECV_QUIET_NS (10 * NSEC_PER_SEC)
#define RMPP_ACK_RETRIES 5 /* retries without a newly acknowledged segment */
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
	mono_t busy_until; /* afterwards it needs only the receives of a quiet port */
	struct list_head snoops; /* mad_agent */
};

/** struct mad_port - one port of a device */
struct mad_port {
	struct list_head node; /* in the device's mad_device */
	struct ib_device *device;
	struct ib_pd *pd;
	u32 port_num;
	struct ib_cq *cq;
	bool cq_is_small; /* the CQ has room for one queue pair only */
	struct mad_qp qp[2]; /* IB_QPT_SMI, IB_QPT_GSI */
	struct list_head agents;
	struct rt_work drain;	   /* continues with a CQ that had more completions than one turn handles */
	struct list_head loopback; /* mad_recv: MADs for this port itself, to be received in the next turn */
	struct list_head loopback_sent; /* mad_send: the sends of these MADs */
	struct rt_work loop_work;
};

/** struct mad_send - a send; the client sees its first member */
struct mad_send {
	struct ib_mad_send_buf buf;
	struct ib_cqe cqe;
	struct mad_agent *agent; /* NULL: the MAD layer itself sends it: a reply or an ACK */
	struct mad_qp *mqp;
	struct rt_tree_node match_node; /* in agent->sends, until it is done */
	u8 match_key[32];		/* the fields that have to match in an answer: mad_match.c */
	struct list_head queue_node; /* posted, backlog, loopback_sent, or done */
	struct rt_timer timer;
	struct ib_ud_wr wr;
	struct ib_sge sge[2];
	int retries_left;
	bool active; /* the client has posted it, and its handler has not been called */
	bool posted; /* it is in posted, backlog or loopback_sent */
	bool in_backlog;
	bool answered; /* the final status is known */
	bool loops;    /* it is for this port itself, and never on the wire */
	bool orphan;   /* the client freed it while it was posted: the completion frees the memory */
	enum ib_wc_status status;
	u32 vendor_err;
	/* --- RMPP (13.6.6.1): segment numbers begin at 1 --- */
	bool rmpp;
	int seg_num;  /* the last segment that was sent */
	int last_ack; /* the last one that was acknowledged */
	int newwin;   /* the last one that may be sent */
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
	struct rt_tree sends; /* mad_send, by match_key */
	struct list_head done; /* cancelled sends whose handlers have to be called */
	struct rt_work done_work;
	struct rt_tree rmpp_recvs; /* struct rmpp_recv, by struct transfer */
	struct rt_tree rmpp_sources; /* struct source, by LID */
	struct list_head rmpp_all_sources; /* the same sources as a list */
	u32 rmpp_segments;		   /* number of segments that the transfers hold */
	const struct ib_mad_keeper *keeper; /* accounts their memory; NULL: it is not accounted */
	struct mad_qp *own_qp; /* of an agent whose class is redirected to a QP of the client */
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

/** mad_port_get() - find a port that has its queue pair of type @type (IB_QPT_SMI, IB_QPT_GSI). If
 *  the device answers MADs without it, the queue pair is made by the first call.
 *  Return: the port; ERR_PTR(-ENODEV), or ERR_PTR() of the error of opening it */
struct mad_port *mad_port_get(struct ib_device *device, u32 port_num, enum ib_qp_type type);
/** mad_qp_setup() - initialize @mqp for @qp, with empty queues */
void mad_qp_setup(struct mad_qp *mqp, struct mad_port *port, struct ib_qp *qp);
/** mad_qp_refill() - post receives until the QP has as many as it needs */
void mad_qp_refill(struct mad_qp *mqp);
/** mad_qp_expect_window() - post as many receives as possible, because a window of segments will
 *  arrive */
void mad_qp_expect_window(struct mad_qp *mqp);
/** mad_recv_alloc() - Return: a receive buffer for @mqp; NULL: no memory */
struct mad_recv *mad_recv_alloc(struct mad_qp *mqp);

/* --- mad_agent.c --- */

/** mad_agent_find() - Return: the agent that gets @mad: found by TID for a response, else by class;
 *  NULL */
struct mad_agent *mad_agent_find(struct mad_qp *mqp, const struct ib_mad *mad);
/** mad_agent_alloc() - Return: an agent with empty queues and a new hi_tid; NULL: no memory */
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
/** mad_send_finish() - the outcome of @send is known: call its handler, now or
 *  when its work request completes */
void mad_send_finish(struct mad_send *send, enum ib_wc_status status, u32 vendor_err);
/** mad_transmit() - send or resend the current contents of the buffer. Return: 0; -errno */
int mad_transmit(struct mad_send *send);
/** mad_send_sent() - the work request of @send has completed: go to its next state */
void mad_send_sent(struct mad_send *send, enum ib_wc_status status);
/** mad_send_flush() - finish all outstanding sends of @agent */
void mad_send_flush(struct mad_agent *agent);

/* --- mad_match.c --- */

/** mad_match_init() - initialize the sends of @agent, which has none yet */
void mad_match_init(struct mad_agent *agent);
/** mad_match_add() - let mad_match_find() find @send, until rt_tree_remove(). Its header and its
 *  address are final */
void mad_match_add(struct mad_send *send);
/** mad_match_find() - find the send of @agent that @recv answers or acknowledges; of
 *  several, the one that was added first. O(log n) of the agent's sends. Return: NULL: none */
struct mad_send *mad_match_find(const struct mad_agent *agent, const struct mad_recv *recv);
/** mad_match_first() - any send of @agent that can be found; NULL */
struct mad_send *mad_match_first(const struct mad_agent *agent);

/* --- mad_post.c --- */

/** mad_post() - post @send, or add it to the backlog of its QP. Return: 0; -errno */
int mad_post(struct mad_send *send);
/** mad_loopback() - as mad_post(), for a send to this port itself. Return: 0; -ENOMEM */
int mad_loopback(struct mad_send *send);
/** mad_loops_back() - is @send for the port that it leaves by? */
bool mad_loops_back(const struct mad_send *send);
void mad_loop_work(struct rt_work *work);
/** mad_send_done() - handle the completion of a work request */
void mad_send_done(struct ib_cq *cq, struct ib_wc *wc);
/** mad_unpost() - remove a send from the backlog. Return: false: its work
 *  request is posted, and will complete */
bool mad_unpost(struct mad_send *send);
/**
 * mad_reply() - send @mad to the sender of @recv. There is no handler and no retry
 * Return: 0; -errno: it is not sent, and the requester will time out
 */
int mad_reply(struct mad_recv *recv, const struct ib_mad *mad);

/* --- mad_recv.c --- */

/** mad_receive() - handle @recv, whose wc is filled; it is freed or delivered to an agent */
void mad_receive(struct mad_recv *recv);
/** mad_deliver() - deliver a MAD to @agent: RMPP, matching, handler */
void mad_deliver(struct mad_agent *agent, struct mad_recv *recv);
void mad_recv_done(struct ib_cq *cq, struct ib_wc *wc);

/* --- smi.c (14.2.2) --- */

enum smi_action {
	SMI_DISCARD,
	SMI_LOCAL, /* for this port's SMA or SM */
	SMI_SEND,  /* out of the port */
};

/** smi_send() - decide about an SMP that a CA is about to send, and update its hop pointer */
enum smi_action smi_send(struct ib_smp *smp, u32 port_num);
/** smi_receive() - decide about an SMP that arrived at a CA, and update its hop pointer and path */
enum smi_action smi_receive(struct ib_smp *smp, u32 port_num);

/* --- rmpp_recv.c, rmpp_send.c (13.6) --- */

/** rmpp_is_active() - is @mad part of a transfer that the core handles? */
bool rmpp_is_active(const struct mad_agent *agent, const struct ib_mad *mad);
/**
 * rmpp_receive() - handle a packet of a transfer
 * Return: the whole message if @recv completes it; NULL: @recv was consumed
 */
struct mad_recv *rmpp_receive(struct mad_agent *agent, struct mad_recv *recv);
/** rmpp_recv_init() - initialize the transfers that @agent receives; there is none yet */
void rmpp_recv_init(struct mad_agent *agent);
/** rmpp_recv_cleanup() - discard @agent's reassemblies */
void rmpp_recv_cleanup(struct mad_agent *agent);
/** rmpp_recv_window() - Return: the window that the peer announced at the
 *  direction switch of a double-sided transfer; 1 otherwise */
int rmpp_recv_window(const struct mad_send *send);
/** rmpp_abort() - end the transfer of @recv by an ABORT with @status (13.6.2.4) */
void rmpp_abort(struct mad_agent *agent, struct mad_recv *recv, u8 status);
/** rmpp_control() - answer @recv with an ACK, STOP or ABORT */
void rmpp_control(struct mad_agent *agent, struct mad_recv *recv, u8 type, u8 status,
		  u32 seg_num, u32 newwin);

/** rmpp_send_start() - send the first segment. Return: 0; -errno */
int rmpp_send_start(struct mad_send *send);
/** rmpp_send_sent() - a segment was sent: send the next one, or wait for an ACK
 *  Return: false: the whole message is acknowledged already */
bool rmpp_send_sent(struct mad_send *send);
/** rmpp_send_retry() - send again, since no ACK or no response came in time. Return: 0; -errno */
int rmpp_send_retry(struct mad_send *send);
/** rmpp_send_gave_up() - no retry is left: send an ABORT to the receiver */
void rmpp_send_gave_up(struct mad_send *send);
void rmpp_send_ack(struct mad_agent *agent, struct mad_recv *recv);
/** rmpp_send_stop() - handle a STOP or ABORT of the receiver */
void rmpp_send_stop(struct mad_agent *agent, struct mad_recv *recv);

#endif
