/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The parts of the initiator:
 *
 *  discover.c  discovery of targets by device management
 *  session.c   creation, search and end of sessions, and their recovery
 *  channel.c   a channel: path, login, queue pair, messages, end
 *  io.c        commands: slots, the queue, repetition and time-outs
 *  probe.c     the logical units of a target and their properties
 *  export.c    logical units as NBD exports: the socket and its connections
 *  serve.c     conversion of NBD requests to commands
 *
 * Everything runs in the loop. A command occupies a slot of its session, and pieces of memory in one
 * registered region, which the target accesses by RDMA. One piece belongs to the slot; a large request
 * gets as many others as it needs from those that are free. A command is either in session->waiting
 * or in channel->sent. When a channel ends, its queue pair is destroyed before its commands are sent
 * again on another channel.
 */
#ifndef SOFTIB_ULP_SRP_PRIVATE_H
#define SOFTIB_ULP_SRP_PRIVATE_H

#define SOFTIB_CLIENT_NAME "srp"

#include <sys/uio.h>
#include <sys/un.h>

#include "nbd/nbd.h"
#include "rdma/ib_cm.h"
#include "runtime/posix/rt_posix.h"
#include "ulp/srp/srp.h"

#define SRP_PIECE_BYTES	   (64u << 10)
#define SRP_PIECES	   1024 /* pieces of a session; the first ones belong to its slots */
#define SRP_PIECES_MOST	   128	/* pieces of one request */
#define SRP_TRANSFER_BYTES (SRP_PIECES_MOST * SRP_PIECE_BYTES) /* data of one request */
#define SRP_TABLE_BYTES	   (SRP_PIECES_MOST * WIRE_SRP_DESC_BYTES)
#define SRP_RECEIVES	   (2 * SRPI_SLOTS + 16)
#define SRP_SIGNAL_EVERY   16 /* one in so many sends is signaled, and completes those before it */
#define SRP_SENDS	   (2 * SRPI_SLOTS + 64)
#define SRP_REPEATS_MOST   16

struct srp_connection;
struct srp_unit;

/** enum srp_task - the task management that is under way for a command that has timed out */
enum srp_task { SRP_NO_TASK, SRP_ABORTING, SRP_RESETTING };

/** struct srp_io - a slot, and the command in it */
struct srp_io {
	struct list_head node; /* free, waiting, sent, or in a connection's replies */
	struct srp_session *session;
	struct srp_channel *channel; /* the channel that has sent the command; NULL */
	unsigned int slot;
	u8 *piece[SRP_PIECES_MOST]; /* its pieces of memory; the first belongs to the slot */
	u32 nr_pieces;
	struct wire_srp_desc desc[SRP_PIECES_MOST]; /* descriptors of the current command */
	struct srpi_command command;
	u8 iu[SRPI_IU_BYTES], task_iu[SRPI_IU_BYTES];
	mono_t sent_at, task_at;
	enum srp_task task;
	u32 repeats, residual_bytes;
	/** done() - the command has ended. @error: 0 or errno. The slot is not free yet */
	void (*done)(struct srp_io *io, int error);
	struct srp_unit *unit;
	/* --- of an NBD request (serve.c) --- */
	struct srp_connection *connection; /* NULL: the client has disconnected */
	struct nbd_request request;
	u64 at;
	u32 left; /* bytes of the request that are still to be transferred */
	u32 part; /* bytes that the current command transfers */
	u32 held; /* bytes that it counts in the connection's held */
	bool flushing;
	u8 reply[NBD_REPLY_BYTES];
	size_t reply_bytes, data_bytes;
};

/** struct srp_unit - a logical unit. One that the target has removed exists until its last request ends */
struct srp_unit {
	struct srp_session *session;
	u8 lun[8];
	struct srpi_disk disk;
	u32 clients, requests;
	bool no_write_same, gone;
};

/** struct srp_probe - the inquiry about the logical units of a target. It is made after the login, when the
 *  target reports that the units have changed, and when a session that had lost all channels has one
 *  again, since another target may have taken the place. In the last case, other commands wait for the
 *  result (@holding) */
struct srp_probe {
	struct srp_io *io; /* a slot that is reserved for the probe */
	bool active, again, holding;
	struct srp_unit *unit; /* the unit whose properties are requested */
	unsigned int next;     /* index of the next unit in @luns */
	enum srpi_probe_step step;
	u8 *luns;
	u32 luns_bytes;
};

enum srp_channel_state {
	SRP_DOWN,
	SRP_QUERYING,	/* the path */
	SRP_LOGGING_IN, /* the REQ is sent */
	SRP_UP,
};

struct srp_receive {
	struct ib_cqe cqe;
	struct srp_channel *channel;
	u8 *iu;
};

struct srp_channel {
	struct srp_session *session;
	struct srp_path path;
	enum srp_channel_state state;
	struct srpi_channel machine;
	struct ib_sa_query *query;
	int query_id;
	struct ib_cm_id *cm;
	struct ib_qp *qp;
	struct ib_cq *cq;
	struct ib_cqe sent_cqe;
	struct srp_receive *receives;
	u8 *ius; /* memory of the receives, followed by that of responses to the target */
	u32 ti_iu_bytes, unsignaled;
	struct list_head sent;
	mono_t received_at; /* when the last message of the target arrived */
	bool probing; /* an RDMA WRITE of no bytes is under way, to test the path */
	struct rt_work down;
	struct rt_timer again, watch;
	unsigned int failures;
	u64 commands;
	u32 answers;
	char error[SRP_ERROR_BYTES];
};

/** struct srp_exports - the socket by which clients of NBD reach the units of a fabric */
struct srp_exports {
	int fd; /* -1: there is no session, so that there is no socket */
	struct rt_io io;
	struct sockaddr_un address;
	struct rt_timer accept_timer; /* armed: there was no descriptor for a client */
	unsigned int num; /* of connections */
	struct list_head connections;
};

/** struct srp_fabric - the initiators of a fabric, found by its loop */
struct srp_fabric {
	struct rt *rt;
	char dir[256];
	struct list_head sessions, discoveries;
	struct srp_exports exports;
};

struct srp_session {
	struct list_head node;
	struct srp_fabric *fabric;
	struct srp_session_config config;
	struct ib_pd *pd;
	struct ib_mr *mr;
	u8 *arena; /* the registered memory: a table for each slot, then the pieces */
	u8 *spare[SRP_PIECES];
	u32 nr_spare;
	struct ib_sa_client sa;
	struct srp_io io[SRPI_SLOTS];
	struct list_head free, waiting;
	struct srp_channel channel[SRP_CHANNELS_MOST];
	unsigned int nr_up, next_channel;
	struct srpi_recovery recovery;
	struct rt_timer tick, busy;
	struct rt_work end;
	struct srp_unit *unit[SRPI_MAX_UNITS];
	unsigned int nr_units;
	struct srp_probe probe;
	bool ready; /* its logical units are known */
	bool indirect; /* the target accepts indirect descriptors */
	u64 commands, repeated, aborted;
	u64 tables, fetched_tables; /* commands with a table of descriptors; those whose table the target fetches */
};

static inline struct srp_fabric *srp_fabric_of(const struct rt *rt)
{
	return rt_local(rt, RT_LOCAL_SRP);
}

/** srp_trace_at() - the place of a session in events of the trace; srp_trace_path() - the number of a channel
 *  in its session */
#define srp_trace_at(s) RT_TRACE_AT((s)->config.device, 0)
#define srp_trace_path(ch) ((unsigned int)((ch) - (ch)->session->channel))

/* --- discover.c --- */
/** srp_discover_device_gone() - end the discoveries of @device with -ENODEV */
void srp_discover_device_gone(struct ib_device *device);

/* --- session.c --- */
/** srp_session_channel() - called when channel @ch has come up or gone down */
void srp_session_channel(struct srp_session *s, struct srp_channel *ch);
/** srp_session_fence() - called when a channel has failed with commands outstanding. The target may have
 *  fetched the data of a write and store it later, over data that is written after the repeated command.
 *  Therefore all channels are closed and log in again: the first login ends all commands at the target */
void srp_session_fence(struct srp_session *s);
/** srp_session_ready() - called when the probe has ended. @error: NULL: it succeeded; else the reason why the
 *  session ends */
void srp_session_ready(struct srp_session *s, const char *error);

/* --- channel.c --- */
void srp_channel_init(struct srp_session *s, struct srp_channel *ch,
		      const struct srp_path *path);
/** srp_channel_connect() - begin to log in */
void srp_channel_connect(struct srp_channel *ch);
/** srp_channel_fail() - take the channel down in the next turn of the loop. @why: format of printf()
 *  Context: any */
__attribute__((format(printf, 2, 3)))
void srp_channel_fail(struct srp_channel *ch, const char *why, ...);
/** srp_channel_close() - take the channel down at once, and return its commands to the queue
 *  Context: not from a handler of the channel */
void srp_channel_close(struct srp_channel *ch);
/** srp_channel_send() - send a message. Return: 0; -errno: the channel fails */
int srp_channel_send(struct srp_channel *ch, const u8 *iu, size_t bytes);
/** srp_channel_ask() - test the path. If it does not work, the channel fails */
void srp_channel_ask(struct srp_channel *ch);

/* --- io.c --- */
void srp_io_init(struct srp_session *s);
/** srp_io_get() - Return: a slot with memory for @bytes; NULL: there is none now, and srp_connections_resume()
 *  will be called when there is */
struct srp_io *srp_io_get(struct srp_session *s, u32 bytes);
/** srp_io_iovec() - set @iov to the memory of @bytes of the request, which begin at @from
 *  Return: the number of entries, at most SRP_PIECES_MOST */
size_t srp_io_iovec(const struct srp_io *io, size_t from, size_t bytes, struct iovec *iov);
void srp_io_put(struct srp_io *io);
/** srp_io_submit() - perform io->command. io->done() is called at its end, perhaps before this returns */
void srp_io_submit(struct srp_io *io);
/** srp_io_kick() - send waiting commands as far as the channels have credits */
void srp_io_kick(struct srp_session *s);
/** srp_io_fail_waiting() - end waiting commands with @error. @unit: only those of this unit; NULL: all */
void srp_io_fail_waiting(struct srp_session *s, const struct srp_unit *unit, int error);
/** srp_io_take() - handle a message about a command or about task management */
void srp_io_take(struct srp_channel *ch, const struct srpi_news *news);
/** srp_io_requeue() - return the commands of @ch, which has been closed, to the queue */
void srp_io_requeue(struct srp_channel *ch);
/** srp_io_watch() - called each second: abort the commands that have timed out */
void srp_io_watch(struct srp_channel *ch);
/** srp_io_data() - make @bytes of the slot's memory, which begin at @from, the data of the command */
void srp_io_data(struct srp_io *io, bool out, u32 from, u32 bytes);

/* --- probe.c --- */
/** srp_probe_begin() - begin a probe, or repeat the one that is under way. @hold: let other commands wait
 *  until it ends */
void srp_probe_begin(struct srp_session *s, bool hold);

/* --- export.c --- */
void srp_exports_init(struct srp_exports *exports);
/** srp_exports_open() - make the socket in the fabric's folder, unless it is there
 *  Return: 0; -ENAMETOOLONG; -errno of socket(), bind(), chmod(), listen() */
int srp_exports_open(struct srp_fabric *fabric);
void srp_exports_close(struct srp_fabric *fabric);
void srp_unit_name(const struct srp_unit *unit, char name[NBD_NAME_BYTES]);
/** srp_connections_resume() - a slot of the session is free: continue the connections that wait for one */
void srp_connections_resume(struct srp_session *s);
/** srp_connections_end() - close the connections of @unit; NULL: of all units of the session */
void srp_connections_end(struct srp_session *s, const struct srp_unit *unit);
/** srp_connection_reply() - answer io->request, with io->data_bytes of its memory, and free the slot
 *  afterwards. @error: 0; enum nbd_error */
void srp_connection_reply(struct srp_io *io, int error);

/* --- serve.c --- */
void srp_serve_describe(const struct srp_unit *unit, struct nbd_export *export);
/** srp_serve() - begin to perform io->request, which is valid. Data to be written is in the memory of @io */
void srp_serve(struct srp_io *io);

#endif
