/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The target's side of the SCSI RDMA Protocol (T10 SRP, revision 16a), pure: what a login
 * is answered with, which steps a command takes, what a response says, how the request
 * limit grows. Messages come in and go out as bytes; RDMA, queue pairs and disks are the
 * caller's.
 *
 * A command goes through the steps of enum srp_step in their order, without those that it
 * has no need of. For each, the caller moves or computes what the step says and asks for
 * the next one.
 */
#ifndef SOFTIB_SRP_TARGET_H
#define SOFTIB_SRP_TARGET_H

#include "scsi/scsi.h"
#include "wire/srp.h"

#define SRP_MAX_IU_BYTES 8260 /* from an initiator; the largest that Linux's asks for */
#define SRP_RSP_IU_BYTES (WIRE_SRP_RSP_BYTES + 4 + SCSI_SENSE_BYTES) /* to it, at most   \
								      */
#define SRP_MAX_CDB_BYTES (16 + 63 * 4)
#define SRP_MAX_DESCS	  2048 /* of a table that is fetched from memory */

/** enum srp_logout - why a target ends a channel (SRP 6.7) */
enum srp_logout {
	SRP_LOGOUT_NO_REASON = 0,
	SRP_LOGOUT_INACTIVE = 1,
	SRP_LOGOUT_BAD_OPCODE = 2,
	SRP_LOGOUT_SPONTANEOUS_RESPONSE = 3,
	SRP_LOGOUT_MULTICHANNEL = 4,
	SRP_LOGOUT_OUT_FORMAT = 6,
	SRP_LOGOUT_IN_FORMAT = 7,
	SRP_LOGOUT_OUT_COUNT = 8,
	SRP_LOGOUT_IN_COUNT = 9,
};

/* --- login ------------------------------------------------------------------------ */

/** struct srp_port - what the target tells of itself, and what it has at a login
 *  @others: channels that the same initiator port has already */
struct srp_port {
	uint8_t id[16];
	uint32_t limit;	       /* requests of a new channel */
	uint32_t max_channels; /* of an initiator port */
	uint32_t others;
	bool has_room; /* for one more channel */
};

/** struct srp_login - a request to log in, and what it is answered with
 *  @reject: enum wire_srp_reject; 0: accepted
 *  @end_others: the initiator's other channels are to be logged out */
struct srp_login {
	struct wire_srp_login_req req;
	uint32_t reject;
	bool end_others;
	uint16_t immediate_offset; /* 0: without immediate data */
	uint32_t it_iu_bytes;	   /* what the channel's receives have room for */
};

/** srp_login_read() - decode the private data of a REQ, so that the caller can look the
 *  initiator up. Return: 0; -EINVAL it is no SRP_LOGIN_REQ */
int srp_login_read(struct srp_login *login, const void *data, size_t len);
/** srp_login_judge() - accept or reject what srp_login_read() has read
 *  Spec: SRP 6.2, 6.3, 6.4, table 11 */
void srp_login_judge(struct srp_login *login, const struct srp_port *port);
/** srp_login_answer() - the private data of the REP or REJ
 *  @port: of srp_login_judge()
 *  Return: bytes */
size_t srp_login_answer(const struct srp_login *login, const struct srp_port *port,
			uint8_t to[WIRE_SRP_MIN_IU_BYTES]);

/* --- commands ----------------------------------------------------------------------- */

enum srp_step {
	SRP_FETCH_OUT_TABLE, /* RDMA READ of cmd->parts.out.where into cmd->out_table */
	SRP_FETCH_IN_TABLE,
	SRP_FETCH_DATA, /* RDMA READ of cmd->out_bytes from the segments of SRP_OUT */
	SRP_EXECUTE,	/* srp_command_task(), scsi_execute() */
	SRP_PUT_DATA,	/* RDMA WRITE of cmd->in_bytes to the segments of SRP_IN */
	SRP_RESPOND,	/* srp_command_answer() */
	SRP_DONE,
};

enum srp_direction { SRP_OUT, SRP_IN };

/** struct srp_command - an SRP_CMD in work */
struct srp_command {
	struct wire_srp_cmd cmd;
	struct wire_srp_cmd_parts parts; /* point into the IU, which the caller keeps */
	enum srp_step step;
	bool bad_fields;   /* it is answered with that */
	bool aborted;	   /* nothing more is moved, and it is not answered, */
	bool tell_aborted; /* but with the status TASK ABORTED: another nexus aborted it
			    */
	uint8_t cdb[SRP_MAX_CDB_BYTES];
	size_t cdb_bytes;
	uint32_t out_bytes; /* that the command takes, or all there is */
	uint32_t in_bytes;  /* that it delivers into the initiator's buffer */
	/* --- tables that are fetched, the caller's; set before the step is over --- */
	const uint8_t *out_table, *in_table;
	/* --- after SRP_EXECUTE --- */
	struct scsi_task task;
};

/**
 * srp_command_read() - begin with a command
 * @len: of @iu, at least that of an SRP_CMD's fixed part
 * @immediate_offset: as agreed at login
 * @logout: set on failure: why the channel ends, enum srp_logout
 * Return: 0: take cmd->step; -EINVAL it is to be answered by logging the initiator out.
 */
int srp_command_read(struct srp_command *cmd, const uint8_t *iu, size_t len,
		     uint16_t immediate_offset, uint32_t *logout);
/** srp_command_size() - decide how much data is fetched
 *  @unit: that the LUN names; NULL: there is none */
void srp_command_size(struct srp_command *cmd, const struct scsi_unit *unit);
/** srp_command_next() - cmd->step is done. Return: the next one */
enum srp_step srp_command_next(struct srp_command *cmd);
/** srp_command_task() - fill cmd->task
 *  @out: the fetched data, not looked at for immediate data; @in: room for cmd->parts.in
 */
void srp_command_task(struct srp_command *cmd, const uint8_t *out, uint8_t *in,
		      struct scsi_nexus *nexus);
/** srp_command_fail() - end it with @status and @sense (0: none) in place of the next
 * step: the answer follows */
void srp_command_fail(struct srp_command *cmd, enum scsi_status status,
		      enum scsi_sense sense);
/** srp_command_refuse() - end it with the response code that its fields are not valid:
 * its descriptors describe less than they say */
void srp_command_refuse(struct srp_command *cmd);
/** srp_command_in_room() - how much of what it delivers the command's buffer can take */
uint32_t srp_command_in_room(const struct srp_command *cmd);

/**
 * srp_command_segment() - the memory of the initiator behind a part of the data
 * @at: bytes from the start of the data; below the total
 * @segment: set to a part of one descriptor: as much as is contiguous from there
 * Return: 0; -EINVAL the descriptors end before @at
 */
int srp_command_segment(const struct srp_command *cmd, enum srp_direction direction,
			uint32_t at, struct wire_srp_desc *segment);

/** srp_command_answer() - build the SRP_RSP. Return: bytes */
size_t srp_command_answer(const struct srp_command *cmd, uint32_t limit_delta,
			  uint8_t to[SRP_RSP_IU_BYTES]);

/** srp_task_answer() - build the SRP_RSP to an SRP_TSK_MGMT. Return: bytes */
size_t srp_task_answer(const struct wire_srp_tsk_mgmt *task, enum wire_srp_response code,
		       uint32_t limit_delta, uint8_t to[SRP_RSP_IU_BYTES]);

/** srp_logout_build() - build an SRP_T_LOGOUT. Return: bytes */
size_t srp_logout_build(uint32_t reason, uint8_t to[SRP_RSP_IU_BYTES]);

/* --- asynchronous events (SRP 6.13)
 * ------------------------------------------------------------------ */

/** struct srp_events - what a channel was told: one event at a time; zero at first */
struct srp_events {
	bool asking, again; /* an SRP_AER_REQ is not answered yet; another one follows it */
	uint64_t tag;	    /* of the last one */
};

/** srp_event_build() - the SRP_AER_REQ that reports @sense of the target as a whole
 *  Return: bytes; 0: the last one is not answered yet, and this one follows it */
size_t srp_event_build(struct srp_events *events, enum scsi_sense sense,
		       uint8_t to[SRP_RSP_IU_BYTES]);
/** srp_event_answered() - an SRP_AER_RSP came. @again: set to: it is to be built again
 *  Return: 0; -EINVAL nobody asked */
int srp_event_answered(struct srp_events *events, uint64_t tag, bool *again);

/* --- the request limit
 * ------------------------------------------------------------------ */

/** struct srp_credits - the request limit of a channel, which the target never exceeds
 * with what it promises: it has a receive for each */
struct srp_credits {
	uint32_t limit; /* requests that may be outstanding; srp_port.limit at first */
	uint32_t max;	/* that it may grow to */
	uint32_t outstanding; /* received, and not returned by an answer */
	bool asking;	      /* an SRP_CRED_REQ is not answered yet */
	uint64_t tag;	      /* of the last one */
};

/** srp_credits_take() - a request came. Return: 0; -EINVAL the initiator exceeds its
 * limit */
int srp_credits_take(struct srp_credits *credits);
/** srp_credits_return() - an answer goes out, for @nr requests that are over
 *  Return: its REQUEST LIMIT DELTA */
uint32_t srp_credits_return(struct srp_credits *credits, uint32_t nr);
/** srp_credits_grow() - offer a higher limit if all requests of the present one are in
 * use
 *  @to: the SRP_CRED_REQ. Return: bytes; 0: there is no reason to. The caller posts
 *  *@more receives before it sends it */
size_t srp_credits_grow(struct srp_credits *credits, uint32_t *more,
			uint8_t to[SRP_RSP_IU_BYTES]);
/** srp_credits_answered() - an SRP_CRED_RSP came. Return: 0; -EINVAL nobody asked */
int srp_credits_answered(struct srp_credits *credits, uint64_t tag);

#endif
