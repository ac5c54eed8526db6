/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The initiator's side of the SCSI RDMA Protocol (T10 SRP, revision 16a), pure: logins, the
 * request limit and tags of a channel, what a target's messages mean, and when a target that
 * cannot be reached is tried again and given up. Queue pairs, memory and clocks are the
 * caller's.
 */
#ifndef SOFTIB_SRP_INITIATOR_H
#define SOFTIB_SRP_INITIATOR_H

#include "wire/srp.h"

#define SRPI_SLOTS	128 /* commands of a session that may be under way */
#define SRPI_DESCS_HERE 12  /* of an indirect table, in the message itself, at most */
/* the longest message of this initiator */
#define SRPI_IU_BYTES                                                                    \
	(WIRE_SRP_CMD_BYTES + WIRE_SRP_TABLE_BYTES + SRPI_DESCS_HERE * WIRE_SRP_DESC_BYTES)

/* --- login ----------------------------------------------------------------------- */

/** struct srpi_terms - what a login was answered with */
struct srpi_terms {
	uint32_t reject; /* enum wire_srp_reject; 0: accepted */
	uint32_t limit;	 /* requests that may be sent at first */
	uint32_t ti_iu_bytes; /* the longest message of the target */
	uint32_t it_iu_bytes; /* and of the initiator */
	bool indirect;	      /* the target takes indirect descriptors */
};

/** srpi_login_build() - the private data of a REQ
 *  @initiator, @target: port identifiers; @first: other channels of a session that is gone
 *  are to end. Return: bytes */
size_t srpi_login_build(const uint8_t initiator[16], const uint8_t target[16], bool first,
			uint8_t to[SRPI_IU_BYTES]);
/** srpi_login_take() - the private data of a REP or REJ. Return: 0; -EINVAL: it is no answer
 *  to a login, or its terms cannot be kept */
int srpi_login_take(const void *data, size_t len, struct srpi_terms *terms);
/** srpi_reject_text() - a reason in words; never NULL */
const char *srpi_reject_text(uint32_t reason);

/* --- a channel -------------------------------------------------------------------- */

/** struct srpi_channel - what is outstanding; zero but the limit of its login at first */
struct srpi_channel {
	int64_t limit; /* requests that may still be sent */
	uint32_t iu_bytes; /* the longest message that the target takes */
	bool indirect;	   /* it takes indirect descriptors */
	uint64_t serial;
	uint64_t command[SRPI_SLOTS]; /* the tag of what each slot has sent; 0: nothing */
	uint64_t task[SRPI_SLOTS];    /* and of the task management about it */
};

/** struct srpi_command - a SCSI command with data in at most one direction
 *  @piece: the memory of the data, in this order; the caller's until the command is over
 *  @table, @table_at: memory for a table of as many descriptors, and where the target finds
 *  it; looked at if there are several pieces */
struct srpi_command {
	uint8_t lun[8];
	uint8_t cdb[16];
	bool out;	/* the data goes to the target */
	uint32_t bytes; /* of data; 0: none */
	const struct wire_srp_desc *piece;
	uint32_t nr_pieces;
	uint8_t *table;
	struct wire_srp_desc table_at; /* its length is set by srpi_command_build() */
};

/** srpi_channel_ready() - may a command be sent now? The last request of the limit is kept
 *  for task management, without which a lost command would block the channel */
static inline bool srpi_channel_ready(const struct srpi_channel *ch)
{
	return ch->limit > 1;
}

/** srpi_command_build() - the SRP_CMD of @slot, which has none outstanding on @ch. The channel
 *  is ready. One piece of memory has a direct descriptor. Several have an indirect table; the
 *  message has as many of its entries as the target lets it be long, and the target fetches a
 *  table that is longer.
 *  Return: bytes; 0: the target takes direct descriptors alone, and there are several pieces */
size_t srpi_command_build(struct srpi_channel *ch, unsigned int slot,
			  const struct srpi_command *command, uint8_t to[SRPI_IU_BYTES]);
/** srpi_command_fetched() - does the target have to fetch the table of a command with
 *  @nr_pieces, because the message has no room for it? */
bool srpi_command_fetched(const struct srpi_channel *ch, uint32_t nr_pieces);
/** srpi_task_build() - an SRP_TSK_MGMT about the command of @slot
 *  Return: bytes; 0: the slot has one already or no command, or the limit is used up */
size_t srpi_task_build(struct srpi_channel *ch, unsigned int slot, const uint8_t lun[8],
		       enum wire_srp_task_function function, uint8_t to[SRPI_IU_BYTES]);

enum srpi_event {
	SRPI_NOTHING,	/* the message changed the limit alone, or answers what is over */
	SRPI_COMPLETED, /* the command of slot */
	SRPI_TASK_DONE, /* the task management of slot; ok: its command is over, too */
	SRPI_REPORT,	/* an asynchronous event: sense says which */
	SRPI_LOGOUT,	/* the target ends the channel */
	SRPI_VIOLATION, /* this is no message of a target: the channel ends */
};

/** struct srpi_news - what a message means */
struct srpi_news {
	enum srpi_event event;
	unsigned int slot;
	bool ok; /* the target did what it was asked for: of a command, status says how */
	uint8_t status;
	uint32_t residual_bytes; /* of the buffer: not transferred */
	const uint8_t *sense;	 /* in the message; NULL: none */
	uint32_t sense_bytes;
	uint32_t reason; /* of a logout */
	size_t answer_bytes;	 /* of the answer that the target wants; 0: none */
	uint8_t answer[16];
};

/** srpi_take() - a message of the target */
void srpi_take(struct srpi_channel *ch, const uint8_t *iu, size_t len, struct srpi_news *news);

/* --- recovery ----------------------------------------------------------------------- */

#define SRPI_OFF (-1) /* of a time: never */

/** struct srpi_timeouts - in seconds, with the meaning and limits of Linux's parameters of
 *  the same names */
struct srpi_timeouts {
	int reconnect_delay;  /* between attempts to log in again; SRPI_OFF */
	int fast_io_fail_tmo; /* until commands fail instead of waiting; SRPI_OFF */
	int dev_loss_tmo;     /* until the target is given up; SRPI_OFF */
};
#define SRPI_TIMEOUTS ((struct srpi_timeouts){10, 15, 600})

/** srpi_timeouts_fault() - what is wrong with them, in words; NULL: nothing */
const char *srpi_timeouts_fault(const struct srpi_timeouts *t);

enum srpi_state {
	SRPI_RUNNING,	/* a channel is up */
	SRPI_BLOCKED,	/* none is: commands wait */
	SRPI_FAIL_FAST, /* commands fail */
	SRPI_LOST,	/* the session ends */
};

/** struct srpi_recovery - the state of a session */
struct srpi_recovery {
	struct srpi_timeouts timeouts;
	enum srpi_state state;
	mono_t since; /* without a channel */
};

/** srpi_recovery_channels() - @nr of channels are up now */
void srpi_recovery_channels(struct srpi_recovery *r, unsigned int nr, mono_t now);
/** srpi_recovery_tick() - let time pass. Return: has the state changed? */
bool srpi_recovery_tick(struct srpi_recovery *r, mono_t now);
/** srpi_recovery_expiry() - when srpi_recovery_tick() is to be called next; MONO_NEVER */
mono_t srpi_recovery_expiry(const struct srpi_recovery *r);
/** srpi_recovery_again() - when a channel that has failed to log in @failures times in a row
 *  tries again; MONO_NEVER */
mono_t srpi_recovery_again(const struct srpi_recovery *r, unsigned int failures, mono_t now);

#endif
