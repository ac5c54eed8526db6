/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The initiator's parts:
 *
 *  discover.c  device management: which targets there are
 *  session.c   sessions: made, found, ended; recovery
 *  channel.c   a channel: path, login, queue pair, messages, its end
 *  io.c        commands: slots, the queue, repeats and time-outs
 *  probe.c     what units a target has, and what they are
 *  export.c    units as NBD exports: the socket and its connections
 *  serve.c     NBD requests become commands
 *
 * Everything runs in the loop. A command has a slot of its session, and pieces of memory in
 * one registered region, which the target reads and writes by RDMA: one that is always the
 * slot's, and for a large request as many others as it needs, wherever they are free. It
 * waits in session->waiting, or is in channel->sent; when a channel ends, its queue pair is
 * gone before its commands are sent again by another one.
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
#define SRP_PIECES	   1024 /* of a session; the first of them are the slots' own */
#define SRP_PIECES_MOST	   128	/* of a request */
#define SRP_TRANSFER_BYTES (SRP_PIECES_MOST * SRP_PIECE_BYTES) /* of a request */
#define SRP_TABLE_BYTES	   (SRP_PIECES_MOST * WIRE_SRP_DESC_BYTES)
#define SRP_RECEIVES	   (2 * SRPI_SLOTS + 16)
#define SRP_SIGNAL_EVERY   16 /* sends: the others complete with it */
#define SRP_SENDS	   (2 * SRPI_SLOTS + 64)
#define SRP_REPEATS_MOST   16

struct srp_connection;
struct srp_unit;

/** enum srp_task - what was done about a command that takes too long */
enum srp_task { SRP_NO_TASK, SRP_ABORTING, SRP_RESETTING };

/** struct srp_io - a slot, and the command in it */
struct srp_io {
	struct list_head node; /* free, waiting, sent, or in a connection's replies */
	struct srp_session *session;
	struct srp_channel *channel; /* that has sent it; NULL */
	unsigned int slot;
	u8 *piece[SRP_PIECES_MOST]; /* nr_pieces of them; the first is the slot's own */
	u32 nr_pieces;
	struct wire_srp_desc desc[SRP_PIECES_MOST]; /* of the command in work */
	struct srpi_command command;
	u8 iu[SRPI_IU_BYTES], task_iu[SRPI_IU_BYTES];
	mono_t sent_at, task_at;
	enum srp_task task;
	u32 repeats, residual_bytes;
	/** done() - @error: 0 or errno. The slot is still the command's */
	void (*done)(struct srp_io *io, int error);
	struct srp_unit *unit;
	/* --- of an NBD request (serve.c) --- */
	struct srp_connection *connection; /* NULL: it is gone */
	struct nbd_request request;
	u64 at;
	u32 left; /* bytes */
	u32 part; /* of them, that the command in work performs */
	u32 held; /* of the connection's memory */
	bool flushing;
	u8 reply[NBD_REPLY_BYTES];
	size_t reply_bytes, data_bytes;
};

/** struct srp_unit - a disk; one that is gone stays until its last request is over */
struct srp_unit {
	struct srp_session *session;
	u8 lun[8];
	struct srpi_disk disk;
	u32 clients, requests;
	bool no_write_same, gone;
};

/** struct srp_probe - what units there are, is asked at the beginning, when the target says that
 *  they changed, and when a session that had no channel has one again: the target may be
 *  another one. In the last case nothing else is sent before the answer. */
struct srp_probe {
	struct srp_io *io; /* always the probe's */
	bool active, again, holding;
	struct srp_unit *unit; /* that is asked what it is */
	unsigned int next;     /* of the list */
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
	u8 *ius; /* memory of the receives, and of answers behind it */
	u32 ti_iu_bytes, unsignaled;
	struct list_head sent;
	mono_t heard; /* when the last message came */
	bool probing; /* an empty RDMA WRITE asks whether the path works */
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
	u8 *arena; /* the slots' tables, then the pieces */
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
	bool ready; /* its units are known */
	bool indirect; /* the target takes indirect descriptors */
	u64 commands, repeated, aborted;
	u64 tables, fetched_tables; /* indirect: commands; those that have the target fetch it */
};

static inline struct srp_fabric *srp_fabric_of(const struct rt *rt)
{
	return rt_local(rt, RT_LOCAL_SRP);
}

/** srp_trace_at() - of a session, for events of the trace; srp_trace_path() - the number of a
 *  channel */
#define srp_trace_at(s) RT_TRACE_AT((s)->config.device, 0)
#define srp_trace_path(ch) ((unsigned int)((ch) - (ch)->session->channel))

/* --- discover.c --- */
/** srp_discover_device_gone() - the discoveries of @device end with -ENODEV */
void srp_discover_device_gone(struct ib_device *device);

/* --- session.c --- */
/** srp_session_channel() - a channel came up or went down */
void srp_session_channel(struct srp_session *s, struct srp_channel *ch);
/** srp_session_fence() - a channel broke with commands outstanding. The target may have fetched
 *  the data of a write already and store it late, over what is written after the repeated
 *  command. So all channels log in anew: the first login ends what the target still has. */
void srp_session_fence(struct srp_session *s);
/** srp_session_ready() - the probe is over. @error: NULL; why the session ends */
void srp_session_ready(struct srp_session *s, const char *error);

/* --- channel.c --- */
void srp_channel_init(struct srp_session *s, struct srp_channel *ch,
		      const struct srp_path *path);
/** srp_channel_connect() - begin to log in */
void srp_channel_connect(struct srp_channel *ch);
/** srp_channel_fail() - take it down soon. Context: any; @why is printf's */
__attribute__((format(printf, 2, 3)))
void srp_channel_fail(struct srp_channel *ch, const char *why, ...);
/** srp_channel_close() - at once; its commands go back to the queue. Context: not from its
 *  handlers */
void srp_channel_close(struct srp_channel *ch);
/** srp_channel_send() - a message; 0; -errno, and the channel fails */
int srp_channel_send(struct srp_channel *ch, const u8 *iu, size_t bytes);
/** srp_channel_ask() - does the path work? If not, the channel fails */
void srp_channel_ask(struct srp_channel *ch);

/* --- io.c --- */
void srp_io_init(struct srp_session *s);
/** srp_io_get() - Return: a slot with memory of @bytes; NULL: srp_connections_resume() tells
 *  when to try again */
struct srp_io *srp_io_get(struct srp_session *s, u32 bytes);
/** srp_io_iovec() - the memory of the request's first @bytes, from @from on
 *  Return: entries of @iov; SRP_PIECES_MOST at most */
size_t srp_io_iovec(const struct srp_io *io, size_t from, size_t bytes, struct iovec *iov);
void srp_io_put(struct srp_io *io);
/** srp_io_submit() - perform io->command: io->done is called, perhaps at once */
void srp_io_submit(struct srp_io *io);
/** srp_io_kick() - send what waits, as far as the channels take it */
void srp_io_kick(struct srp_session *s);
/** srp_io_fail_waiting() - commands that wait end with @error
 *  @unit: those of the unit alone; NULL: all */
void srp_io_fail_waiting(struct srp_session *s, const struct srp_unit *unit, int error);
/** srp_io_take() - a message that is about a command or task management */
void srp_io_take(struct srp_channel *ch, const struct srpi_news *news);
/** srp_io_requeue() - the commands of @ch, which is closed, wait again */
void srp_io_requeue(struct srp_channel *ch);
/** srp_io_watch() - a second has passed: commands that take too long are aborted */
void srp_io_watch(struct srp_channel *ch);
/** srp_io_data() - the command's data are the @bytes of the slot's memory from @from on */
void srp_io_data(struct srp_io *io, bool out, u32 from, u32 bytes);

/* --- probe.c --- */
/** srp_probe_begin() - ask what units there are; once more, if it is asked already
 *  @hold: let other commands wait for the answer */
void srp_probe_begin(struct srp_session *s, bool hold);

/* --- export.c --- */
void srp_exports_init(struct srp_exports *exports);
/** srp_exports_open() - make the socket in the fabric's folder, unless it is there
 *  Return: 0; -ENAMETOOLONG; -errno of socket(), bind(), chmod(), listen() */
int srp_exports_open(struct srp_fabric *fabric);
void srp_exports_close(struct srp_fabric *fabric);
void srp_unit_name(const struct srp_unit *unit, char name[NBD_NAME_BYTES]);
/** srp_connections_resume() - a slot of the session is free: one that waits goes on */
void srp_connections_resume(struct srp_session *s);
/** srp_connections_end() - those of @unit; NULL: of all of the session's */
void srp_connections_end(struct srp_session *s, const struct srp_unit *unit);
/** srp_connection_reply() - answer io->request, with io->data_bytes of its memory; then the slot
 *  is put. @error: 0; enum nbd_error */
void srp_connection_reply(struct srp_io *io, int error);

/* --- serve.c --- */
void srp_serve_describe(const struct srp_unit *unit, struct nbd_export *export);
/** srp_serve() - begin with the valid io->request, of which the data to write is in the buffer */
void srp_serve(struct srp_io *io);

#endif
