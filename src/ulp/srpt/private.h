/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The parts of a target:
 *
 *  srpt.c     creation, search and end of targets and their logical units
 *  add.c      units whose files are being examined
 *  agent.c    device management: MADs, and the capability bit of the ports
 *  unit.c     the medium of a unit, which is a descriptor
 *  keep.c     the file that preserves a unit's reservations beyond the end of softibd
 *  worker.c   the threads of a unit whose medium may be slow
 *  login.c    connections: login requests, and initiators
 *  channel.c  a channel: queue pair, receives, messages, end
 *  command.c  commands: RDMA and execution
 *  line.c     the order of a unit's commands
 *  task.c     task management
 *
 * Everything runs in the loop, except for what the files of a unit that has a worker are asked: their
 * server may be elsewhere and not answer (FUSE, NFS). Even fstat(2), flock(2) and close(2) then wait.
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

#define SRPT_LIMIT_FIRST     32 /* initial request limit of a channel; SRP_CRED_REQ doubles it */
#define SRPT_LIMIT_MOST	     128
#define SRPT_SPARE_RECEIVES  8	 /* for messages that the limit does not count: logout, responses */
#define SRPT_CHANNELS_MOST   8	 /* channels of an initiator port */
#define SRPT_CHANNELS_TARGET 256 /* channels of a target... */
#define SRPT_CHANNELS_PORT   64	 /* ...and of those, from one port: initiators name themselves */
#define SRPT_MOVES	     4	 /* outstanding RDMA requests of a command */
#define SRPT_SENDS	     (SRPT_LIMIT_MOST * (SRPT_MOVES + 1) + 8)
#define SRPT_HELD_MOST	     (64u << 20) /* bytes of buffers for the data of a target's commands */
#define SRPT_ADDING_MOST     16 /* units of a fabric whose files are being examined */

/** struct srpt_fabric - what the targets of a fabric share, found by its loop
 *  @adding: struct srpt_adding
 *  @leaving: units that were removed, until their commands have ended and their files are closed */
struct srpt_fabric {
	struct list_head adding, leaving;
	u32 nr_adding;
};

/** struct srpt_adding - a unit that is to be attached when its files have been examined
 *  @device: NULL: it was removed meanwhile
 *  @done: NULL: nobody waits for the outcome any more, and the unit is not attached
 *  @waits: for the end of a unit that was removed and has the same file for its reservations */
struct srpt_adding {
	struct list_head node;
	struct rt *rt;
	struct ib_device *device;
	unsigned int slot;
	struct srpt_unit *unit;
	struct srpt_job job;
	struct rt_work turn;
	int result;
	bool waits;
	void (*done)(void *ctx, int result, unsigned int lun);
	void *ctx;
};

/** struct srpt_unit - a logical unit. It exists longer than its target while a command is being performed */
struct srpt_unit {
	struct scsi_unit scsi;
	struct srpt *srpt; /* NULL: removed */
	struct rt *rt;
	unsigned int lun;
	struct scsi_backend backend;
	int fd, kept_fd; /* kept_fd: -1: reservations are not preserved */
	u64 kept_serial; /* of the slot of kept_fd that was written last */
	u64 file; /* identifies the medium: its device and inode */
	u64 kept_file[2]; /* device and inode of kept_fd */
	bool sparse, in_memory;
	struct srpt_worker *worker; /* NULL: the medium is memory, and the loop performs commands */
	pthread_mutex_t admission;  /* held while one command is checked against reservations */
	u32 users;		    /* commands that refer to the unit */
	u64 arrivals;		    /* commands received so far */
	struct list_head line;	    /* commands that have not been performed, the oldest first */
	u32 barriers, nr_waiting;   /* commands in line that are barriers, and that wait (line.c) */
	struct rt_work turn;
	struct list_head node;	    /* in srpt_fabric.leaving, once it is removed */
	struct srpt_job leave;
	bool closed;		    /* its files are; it can be freed */
	struct srpt_adding *adding; /* the unit is refused: who waits for the outcome hears of it last */
	struct rt_work gone;
	char name[128];
};

/** struct srpt_initiator - an initiator port that has at least one channel */
struct srpt_initiator {
	struct list_head node;
	u8 id[16];
	u8 transport_id[SCSI_TRANSPORT_ID_BYTES];
	u32 channels;
	struct scsi_nexus nexus[SCSI_MAX_LUNS];
};

/** struct srpt_adapter - what the targets of an adapter share: the client data of its device. It exists while
 *  the adapter has a target */
struct srpt_adapter {
	struct ib_device *device;
	struct srpt *target[SRP_CONTROLLERS]; /* target[0] is in slot 1 */
	u16 change_id;
	struct ib_mad_agent **agent; /* one for each port, port 1 first */
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

/** struct srpt_move - a transfer of data between a buffer and the initiator's memory */
struct srpt_move {
	u8 *buffer;
	u32 at, bytes;
	enum ib_wr_opcode opcode;
};

/** struct srpt_request - a message of the initiator that is to be answered, or one of the target to it */
struct srpt_request {
	struct list_head node; /* in srpt_channel.requests */
	struct srpt_channel *channel;
	struct srpt_receive *receive; /* the initiator's message; NULL: the message is the target's */
	struct ib_cqe moved, sent;
	u32 in_flight; /* RDMA requests and sends that have not completed */
	bool answered; /* the answer has been posted, or there will be none */
	/* --- of a command --- */
	bool is_command;
	struct srp_command command;
	struct srpt_unit *unit; /* NULL: the LUN names no unit */
	u64 order;		/* number of the command in the unit's order of arrival */
	struct scsi_nexus
		nexus; /* a copy of the initiator's, during execution */
	struct srpt_move move;
	bool moving;
	u8 *out, *in, *table[2];
	u64 held_bytes;
	struct srpt_job job;
	bool executing;		   /* the unit's worker has the command */
	struct list_head in_line;  /* of its unit, until it is performed */
	bool barrier, waiting;	   /* line.c */
	struct scsi_target target; /* a copy of the target's, during execution */
	struct srpt_request *aborter;
	struct list_head of_aborter; /* in @aborted of @aborter */
	/* --- of task management --- */
	struct wire_srp_tsk_mgmt task;
	struct list_head aborted; /* commands whose end it waits for */
	u32 credits;		  /* credits of these commands, which its answer returns */
	/* --- the answer --- */
	u8 answer[SRP_RSP_IU_BYTES];
};

/** struct srpt_channel - a connection of an initiator */
struct srpt_channel {
	struct list_head node; /* in srpt.channels */
	struct srpt *srpt;     /* NULL: it is closed, but has commands that are being performed */
	struct rt *rt;
	struct srpt_initiator *initiator;
	struct ib_cm_id *cm;
	struct ib_qp *qp;
	struct ib_cq *cq;
	union ib_gid gid;
	u16 remote_lid; /* from which the login came */
	u32 port_num;
	u32 iu_bytes;
	u16 immediate_offset;
	bool ending; /* further messages of the initiator are ignored */
	struct srp_credits credits;
	struct srp_events events;
	struct list_head receives; /* all of them */
	struct list_head requests;
	u64 commands;
	struct rt_work end;
};

/* --- srpt.c --- */
static inline struct srpt_fabric *srpt_fabric_of(const struct rt *rt)
{
	return rt_local(rt, RT_LOCAL_SRPT);
}

/** srpt_unit_attach() - give an examined unit a LUN of a target, which is started if there is none
 *  Return: 0 and unit->lun; -errno, see srpt_unit_add() */
int srpt_unit_attach(struct ib_device *device, unsigned int slot, struct srpt_unit *unit);
/** srpt_unit_of() - Return: the unit that @lun names; NULL */
struct srpt_unit *srpt_unit_of(struct srpt *srpt, const u8 lun[8]);
/** srpt_unit_release() - end a command's reference to the unit */
void srpt_unit_release(struct srpt_unit *unit);

/* --- agent.c --- */
int srpt_agent_open(struct srpt_adapter *adapter);
void srpt_agent_close(struct srpt_adapter *adapter);
/** srpt_agent_announce() - a target was added or removed beside others: send a trap 144, so that initiators
 *  discover the targets again */
void srpt_agent_announce(struct srpt_adapter *adapter);

/* --- add.c --- */
/** srpt_adding_end() - tell who waits for the outcome, and free @adding */
void srpt_adding_end(struct srpt_adding *adding, int result);
/** srpt_adding_retry() - a unit has left: those that waited for its file of reservations are examined again */
void srpt_adding_retry(struct srpt_fabric *fabric);
/** srpt_adding_lose() - @device is being removed: no unit is attached to it any more */
void srpt_adding_lose(struct srpt_fabric *fabric, const struct ib_device *device);
/** srpt_adding_finish() - all units that are being added leave. Waits for their files */
void srpt_adding_finish(struct srpt_fabric *fabric);

/* --- unit.c --- */
/** srpt_unit_make() - Return: 0 and *@unit, without a LUN, which owns the descriptors; -ENOTSUP; -ENOMEM;
 *  -errno */
int srpt_unit_make(struct rt *rt, const struct srpt_unit_config *config, struct srpt_unit **unit);
/** srpt_unit_examine() - look at the files of a unit. Context: a thread of the unit, or the loop if the medium
 *  is memory; waits for the files' server
 *  Return: 0; -errno, see srpt_unit_add() */
int srpt_unit_examine(struct srpt_unit *unit);
/** srpt_unit_leave() - end a unit without commands, which is in srpt_fabric.leaving: its files are closed by its
 *  worker, then it is freed */
void srpt_unit_leave(struct srpt_unit *unit);
/** srpt_unit_free() - end the threads of a unit whose files are closed */
void srpt_unit_free(struct srpt_unit *unit);
/** srpt_unit_finish() - end a unit that was removed, now. Waits for its media */
void srpt_unit_finish(struct srpt_unit *unit);

/* --- keep.c --- */
/** srpt_keep_load() - read the unit's reservations from unit->kept_fd
 *  Context: a thread of the unit; waits for the file's server
 *  Return: 0; -EBADMSG: the file contains something else; -ETXTBSY: another unit uses it; -EBADF: it is no
 *  regular file; -errno */
int srpt_keep_load(struct srpt_unit *unit);
/** srpt_keep_unlock() - let other units use the file, although the process that sent unit->kept_fd may still have
 *  it, too. Context: as srpt_keep_load() */
void srpt_keep_unlock(const struct srpt_unit *unit);
/** srpt_keep() - scsi_backend.keep(): write the reservations to unit->kept_fd. Context: a thread of the unit,
 *  or the loop; waits for the disk */
int srpt_keep(void *ctx, const u8 *state, size_t bytes);

/* --- login.c --- */
int srpt_listen(struct srpt *srpt);
/** srpt_initiator_leave() - a channel of @initiator has ended. Frees it with the last one */
void srpt_initiator_leave(struct srpt_initiator *initiator);

/* --- channel.c --- */
/** srpt_channel_open() - make the channel of an accepted login
 *  @cm: in IB_CM_REQ_RCVD; owned by the channel on success
 *  Return: the channel, ready to send; ERR_PTR */
struct srpt_channel *srpt_channel_open(struct srpt *srpt, struct ib_cm_id *cm,
				       const struct srp_login *login, u32 psn);
/** srpt_channel_close() - close a channel at once. Its commands end without an answer
 *  Context: not from a handler of the channel */
void srpt_channel_close(struct srpt_channel *ch);
/** srpt_channel_end() - close a channel in the next turn of the loop. Context: any */
void srpt_channel_end(struct srpt_channel *ch);
/** srpt_channel_logout() - send an SRP_T_LOGOUT, then end it */
void srpt_channel_logout(struct srpt_channel *ch, u32 reason);
/** srpt_channel_report() - send an SRP_AER_REQ with @sense, now or when the previous one has been answered */
void srpt_channel_report(struct srpt_channel *ch, enum scsi_sense sense);
/** srpt_post_send() - post a request. Return: 0; -errno: the channel ends */
int srpt_post_send(struct srpt_channel *ch, struct ib_send_wr *wr);
/** srpt_request_answer() - send @bytes of r->answer */
void srpt_request_answer(struct srpt_request *r, size_t bytes);
/** srpt_request_finish() - free a request if it is answered and has nothing in flight */
void srpt_request_finish(struct srpt_request *r);

/* --- command.c --- */
/** srpt_command_begin() - begin the command in an SRP_CMD. One that cannot be decoded ends the channel */
void srpt_command_begin(struct srpt_request *r, const u8 *iu, size_t len);
/** srpt_command_drop() - free the buffers of a command */
void srpt_command_drop(struct srpt_request *r);

/** srpt_command_go_on() - continue a command that waited in its unit's line, because it may be performed now
 *  or was aborted */
void srpt_command_go_on(struct srpt_request *r);
/** srpt_command_abandon() - the answer to a command is not needed any more. Do not perform it unless it has
 *  begun */
void srpt_command_abandon(struct srpt_request *r);

/* --- line.c --- */
void srpt_line_open(struct srpt_unit *unit);
/** srpt_line_join() - add a command to the line of r->unit */
void srpt_line_join(struct srpt_request *r);
/** srpt_line_leave() - take a command out of the line: it was performed, or will not be. A second call has no
 *  effect. Context: any */
void srpt_line_leave(struct srpt_request *r);
/** srpt_line_hold() - make a command that is being performed a barrier: later ones wait until it ends */
void srpt_line_hold(struct srpt_request *r);
/** srpt_line_turn() - may a command be performed now? If not, srpt_command_go_on() is called later */
bool srpt_line_turn(struct srpt_request *r);
/** srpt_line_recall() - a command was aborted: take it back from the unit's worker, or end its wait. Unless it
 *  has begun, srpt_command_go_on() is called later */
void srpt_line_recall(struct srpt_request *r);

/* --- task.c --- */
void srpt_task_begin(struct srpt_request *r, const u8 *iu, size_t len);
/** srpt_task_release() - command @r has ended without an answer: continue the task management request that
 *  aborted it */
void srpt_task_release(struct srpt_request *r);
/** srpt_task_forget() - task management request @r is freed: remove it from the commands that it aborted */
void srpt_task_forget(struct srpt_request *r);

#endif
