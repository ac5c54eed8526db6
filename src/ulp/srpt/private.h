/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A target and its parts.
 *
 *  srpt.c     targets and their units: made, found, ended
 *  agent.c    device management: MADs, and the capability bit of the ports
 *  unit.c     a unit's medium: a descriptor
 *  keep.c     the file in which a unit's reservations outlast softibd
 *  worker.c   the threads of a unit whose medium may be slow
 *  login.c    connections: requests to log in, and initiators
 *  channel.c  a channel: its queue pair, receives, messages in and out, its end
 *  command.c  commands: RDMA and execution
 *  line.c     the order of a unit's commands
 *  task.c     task management
 *
 * Everything runs in the loop, but scsi_execute() of a unit that has a worker.
 */
#ifndef SOFTIB_ULP_SRPT_PRIVATE_H
#define SOFTIB_ULP_SRPT_PRIVATE_H

#define SOFTIB_CLIENT_NAME "srpt"

#include <pthread.h>

#include "rdma/ib_cm.h"
#include "runtime/rt.h"
#include "srp/describe.h"
#include "srp/target.h"
#include "ulp/srpt/srpt.h"
#include "ulp/srpt/worker.h"

#define SRPT_LIMIT_FIRST     32 /* requests of a channel; SRP_CRED_REQ doubles it */
#define SRPT_LIMIT_MOST	     128
#define SRPT_SPARE_RECEIVES  8	 /* for messages that do not count: logout, responses */
#define SRPT_CHANNELS_MOST   8	 /* of an initiator port */
#define SRPT_CHANNELS_TARGET 256 /* of a target */
#define SRPT_MOVES	     4	 /* RDMA requests of a command at once */
#define SRPT_SENDS	     (SRPT_LIMIT_MOST * (SRPT_MOVES + 1) + 8)
#define SRPT_HELD_MOST	     (64u << 20) /* bytes of data that commands of a target hold */

/** struct srpt_fabric - what the targets of a fabric share, found by its loop
 *  @leaving: units that were removed while their media had commands in work */
struct srpt_fabric {
	struct list_head leaving;
};

/** struct srpt_unit - a logical unit; it outlives its target while a command is in work
 */
struct srpt_unit {
	struct scsi_unit scsi;
	struct srpt *srpt; /* NULL: removed */
	struct rt *rt;
	unsigned int lun;
	struct scsi_backend backend;
	int fd, kept_fd; /* kept_fd: -1: reservations end with the unit */
	u64 kept_serial;
	u64 file; /* tells the medium from others */
	bool sparse, in_memory;
	struct srpt_worker *worker; /* NULL: in memory, so that nothing waits */
	pthread_mutex_t admission;  /* one command at a time is admitted */
	u32 users;		    /* commands in work */
	u64 arrivals;		    /* commands so far */
	struct list_head line;	    /* commands that came and are not performed, the oldest first */
	u32 barriers, nr_waiting;   /* of them: others may have to wait for it; waits itself */
	struct rt_work turn;
	struct list_head node;	    /* in srpt_fabric.leaving, once it is removed with users */
	struct rt_work gone;
	char name[128];
};

/** struct srpt_initiator - an initiator port, as long as it has a channel */
struct srpt_initiator {
	struct list_head node;
	u8 id[16];
	u8 transport_id[SCSI_TRANSPORT_ID_BYTES];
	u32 channels;
	struct scsi_nexus nexus[SCSI_MAX_LUNS];
};

/** struct srpt_adapter - what the targets of an adapter share; the client data of its device. It
 *  lasts as long as one of them */
struct srpt_adapter {
	struct ib_device *device;
	struct srpt *target[SRP_CONTROLLERS]; /* [0] is in slot 1 */
	u16 change_id;
	struct ib_mad_agent **agent; /* of each port, port 1 first */
};

/** struct srpt - a target */
struct srpt {
	struct srpt_adapter *adapter;
	struct ib_device *device;
	unsigned int slot;
	u64 guid;
	struct scsi_target scsi;
	struct srpt_unit *unit[SCSI_MAX_LUNS];
	u32 nr_units;
	u64 held_bytes;
	struct list_head channels, initiators;
	u32 nr_channels;
	struct ib_cm_id *listener;
	struct ib_pd *pd;
};

/** struct srpt_receive - a buffer in the receive queue */
struct srpt_receive {
	struct ib_cqe cqe;
	struct list_head node;
	struct srpt_channel *channel;
	u8 iu[];
};

/** struct srpt_move - data on its way between a buffer and the initiator's memory */
struct srpt_move {
	u8 *buffer;
	u32 at, bytes;
	enum ib_wr_opcode opcode;
};

/** struct srpt_request - a message of the initiator that is to be answered, or one to it
 */
struct srpt_request {
	struct list_head node; /* in the channel's */
	struct srpt_channel *channel;
	struct srpt_receive *receive; /* its message; NULL: one of the target's own */
	struct ib_cqe moved, sent;
	u32 in_flight; /* RDMA requests and sends */
	bool answered; /* the answer is posted, or there will be none */
	/* --- of a command --- */
	bool is_command;
	struct srp_command command;
	struct srpt_unit *unit; /* NULL: the LUN has none */
	u64 order;		/* among the commands of the unit */
	struct scsi_nexus
		nexus; /* taken from the initiator's for the time of execution */
	struct srpt_move move;
	bool moving;
	u8 *out, *in, *table[2];
	u64 held_bytes;
	struct srpt_job job;
	bool executing;		   /* in the worker's hands */
	struct list_head in_line;  /* of its unit, until it is performed */
	bool barrier, waiting;	   /* line.c */
	struct scsi_target target; /* as it was then */
	struct srpt_request *aborter;
	struct list_head of_aborter; /* in its list */
	/* --- of task management --- */
	struct wire_srp_tsk_mgmt task;
	struct list_head aborted; /* commands that it waits for */
	u32 credits;		  /* requests that it returns for them */
	/* --- the answer --- */
	u8 answer[SRP_RSP_IU_BYTES];
};

/** struct srpt_channel - a connection of an initiator */
struct srpt_channel {
	struct list_head node; /* in the target's */
	struct srpt *srpt;     /* NULL: it is closed, and commands are still in work */
	struct rt *rt;
	struct srpt_initiator *initiator;
	struct ib_cm_id *cm;
	struct ib_qp *qp;
	struct ib_cq *cq;
	union ib_gid gid;
	u32 port_num;
	u32 iu_bytes;
	u16 immediate_offset;
	bool ending; /* no more messages are taken */
	struct srp_credits credits;
	struct srp_events events;
	struct list_head receives; /* all of them */
	struct list_head requests;
	u64 commands;
	struct rt_work drain, end;
};

/* --- srpt.c --- */
/** srpt_unit_of() - that a LUN names; NULL */
struct srpt_unit *srpt_unit_of(struct srpt *srpt, const u8 lun[8]);
/** srpt_unit_release() - a command does not need it any more */
void srpt_unit_release(struct srpt_unit *unit);

/* --- agent.c --- */
int srpt_agent_open(struct srpt_adapter *adapter);
void srpt_agent_close(struct srpt_adapter *adapter);
/** srpt_agent_announce() - a target came or went beside others: let initiators look again */
void srpt_agent_announce(struct srpt_adapter *adapter);

/* --- unit.c --- */
/** srpt_unit_open() - Return: 0 and *@unit, without a LUN; -errno, see srpt_unit_add() */
int srpt_unit_open(struct rt *rt, const struct srpt_unit_config *config,
		   struct srpt_unit **unit);
/** srpt_unit_forget_fds() - its descriptors stay the caller's */
void srpt_unit_forget_fds(struct srpt_unit *unit);
/** srpt_unit_free() - close its descriptors, end its thread; no command is in work */
void srpt_unit_free(struct srpt_unit *unit);

/* --- keep.c --- */
/** srpt_keep_load() - the reservations in unit->kept_fd become the unit's
 *  Return: 0; -EBADMSG what is in the file is no reservations; -ETXTBSY another unit has it;
 *  -EBADF it is no file; -errno */
int srpt_keep_load(struct srpt_unit *unit);
/** srpt_keep() - of the unit's back end. Context: a thread of the unit, or the loop; waits for the
 *  disk */
int srpt_keep(void *ctx, const u8 *state, size_t bytes);

/* --- login.c --- */
int srpt_listen(struct srpt *srpt);
/** srpt_initiator_leave() - a channel of @initiator is gone */
void srpt_initiator_leave(struct srpt_initiator *initiator);

/* --- channel.c --- */
/** srpt_channel_open() - make the queue pair of a login that is accepted
 *  @cm: in IB_CM_REQ_RCVD; the channel's on success
 *  Return: the channel, ready to send; ERR_PTR */
struct srpt_channel *srpt_channel_open(struct srpt *srpt, struct ib_cm_id *cm,
				       const struct srp_login *login, u32 psn);
/** srpt_channel_close() - at once; commands in work end without an answer. Context: not
 * from a handler of the channel */
void srpt_channel_close(struct srpt_channel *ch);
/** srpt_channel_end() - close it soon. Context: any */
void srpt_channel_end(struct srpt_channel *ch);
/** srpt_channel_logout() - send an SRP_T_LOGOUT, then end it */
void srpt_channel_logout(struct srpt_channel *ch, u32 reason);
/** srpt_channel_report() - send an SRP_AER_REQ with @sense, now or after the last one */
void srpt_channel_report(struct srpt_channel *ch, enum scsi_sense sense);
/** srpt_post_send() - 0; -errno, and the channel ends */
int srpt_post_send(struct srpt_channel *ch, struct ib_send_wr *wr);
/** srpt_request_answer() - send @bytes of r->answer */
void srpt_request_answer(struct srpt_request *r, size_t bytes);
/** srpt_request_finish() - free it if nothing of it is under way any more */
void srpt_request_finish(struct srpt_request *r);

/* --- command.c --- */
/** srpt_command_begin() - an SRP_CMD came; one that cannot be read ends the channel */
void srpt_command_begin(struct srpt_request *r, const u8 *iu, size_t len);
/** srpt_command_drop() - free what it holds */
void srpt_command_drop(struct srpt_request *r);

/** srpt_command_go_on() - its turn has come, or it was aborted while it waited */
void srpt_command_go_on(struct srpt_request *r);
/** srpt_command_abandon() - nobody waits for its answer any more: what is not begun, is not */
void srpt_command_abandon(struct srpt_request *r);

/* --- line.c --- */
void srpt_line_open(struct srpt_unit *unit);
/** srpt_line_join() - a command for r->unit came */
void srpt_line_join(struct srpt_request *r);
/** srpt_line_leave() - it was performed, or never will be. Context: any, also twice */
void srpt_line_leave(struct srpt_request *r);
/** srpt_line_hold() - nothing behind a command that is being performed begins before it is done */
void srpt_line_hold(struct srpt_request *r);
/** srpt_line_turn() - may it be performed now? If not, srpt_command_go_on() follows */
bool srpt_line_turn(struct srpt_request *r);
/** srpt_line_recall() - it was aborted: take it back from the unit's worker, or from waiting. It
 *  goes on later by srpt_command_go_on(), if it has not begun */
void srpt_line_recall(struct srpt_request *r);

/* --- task.c --- */
void srpt_task_begin(struct srpt_request *r, const u8 *iu, size_t len);
/** srpt_task_release() - the command @r is over, without an answer: who aborted it goes
 * on */
void srpt_task_release(struct srpt_request *r);
/** srpt_task_forget() - @r goes: no command waits for it */
void srpt_task_forget(struct srpt_request *r);

#endif
