/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Declarations that the files of the umad endpoint share. */
#ifndef SOFTIB_ACCESS_UMAD_PRIVATE_H
#define SOFTIB_ACCESS_UMAD_PRIVATE_H

#include <rdma/ib_user_mad.h>

#include "abi/session.h"
#include "access/quota.h"
#include "access/told.h"
#include "access/umad.h"
#include "rdma/ib_mad.h"

#define UMAD_AGENTS 32		    /* per open port, as the kernel's limit */
#define UMAD_QUEUE_MAX 16384	    /* records that are queued for a slow reader */
#define UMAD_QUEUE_BYTES (64u << 20) /* total length of these records */
#define UMAD_MESSAGE_MAX (64u << 20) /* bytes of one RMPP message */
#define UMAD_SENDS_BYTES (64u << 20) /* memory of the sends of a session that have not completed */
#define UMAD_SEND_OVERHEAD 1024	    /* memory of a send besides its MAD, at most */

struct umad_session;

/** struct umad_agent - a registration; its id is its index in the session's table. After the end of the
 *  session it exists until its sends are cancelled, a batch in each turn of the loop */
struct umad_agent {
	struct umad_session *session; /* NULL: the agent is being destroyed */
	uint32_t id;
	struct ib_mad_agent *mad;
	struct list_head sends; /* struct umad_send, not completed and not cancelled */
	size_t send_bytes; /* memory of these sends that the session is charged for */
	size_t recv_bytes; /* memory of reassemblies that the session is charged for */
	struct quota_node *charged; /* the node that is charged for these, unless they are 0 */
	struct list_head node;	/* in umad_ends.agents while the agent is being destroyed */
};

/** struct umad_ends - the agents of an endpoint that are being destroyed */
struct umad_ends {
	struct rt *rt;
	struct rt_work work;
	struct list_head agents;
};

/** struct umad_record - a record that one read() of the program will return */
struct umad_record {
	struct list_head node;
	size_t bytes; /* length of the whole record, including the header */
	struct ib_mad_recv_wc *segments; /* of a long message, of which @mad has only the header; NULL */
	struct quota_node *charged; /* NULL: it is not queued */
	struct ib_user_mad mad;
};

/** struct umad_session - one connection, from abi_open to its end */
struct umad_session {
	struct list_head node; /* in umad.sessions */
	struct umad *umad;
	struct rt_io data, control;
	pid_t pid;
	char comm[RDMA_RESTRACK_COMM_BYTES];
	int fd, control_fd; /* control_fd -1 before the port is open */
	struct quota_share quota;
	struct ib_device *device; /* NULL: not open yet, or unplugged */
	unsigned port_num;
	struct rt *rt;
	struct umad_ends *ends; /* the endpoint's */
	struct umad_load *load; /* a long record that is being read; NULL */
	struct told_process *process;
	struct told *told; /* NULL: the program has not asked for a ring; it is paused while @load is not NULL */
	struct umad_store *store; /* a long message that becomes a memfd; NULL */
	struct umad_agent *agent[UMAD_AGENTS]; /* NULL: free */
	size_t send_bytes;	/* memory of its sends; UMAD_SENDS_BYTES at most */
	struct list_head queue; /* records */
	unsigned queue_len;
	size_t queue_bytes;
	struct rt_work flush; /* sends the records that were queued in this turn */
};

/* umad.c */
/** umad_open_told() - make a ring for records. Return: 0; -EEXIST: there is one; as told_open() */
int umad_open_told(struct umad_session *s, int fds[ABI_TOLD_FDS]);

/* umad_agent.c */
/** umad_ioctl() - answer one message of the control socket.
 *  Return: 0; -errno when the answer could not be sent */
int umad_ioctl(struct umad_session *s, const void *message, size_t bytes);
/** umad_agents_drop() - end the agents of @s. Their sends are cancelled in the next turns of the loop */
void umad_agents_drop(struct umad_session *s);
void umad_ends_init(struct umad_ends *ends, struct rt *rt);
/** umad_ends_finish() - destroy the agents of @device (NULL: of all devices) in @ends at once */
void umad_ends_finish(struct umad_ends *ends, const struct ib_device *device);

/* umad_send.c */
/** struct umad_send - a send, and the part of its record that is needed when it completes */
struct umad_send {
	struct umad_agent *agent;
	struct list_head node; /* in the agent's sends; in no list once it is cancelled */
	struct ib_mad_send_buf *msg;
	size_t bytes; /* memory that its session is charged for */
	struct quota_node *charged; /* the node that is charged for it */
	struct ib_user_mad_hdr hdr;
	uint8_t head[IB_MGMT_RMPP_HDR];
};

/** umad_write() - send the MAD in a record of the program, which has @bytes. An
 *  error that write(2) would return is reported by a record with that status */
void umad_write(struct umad_session *s, const struct ib_user_mad *mad, size_t bytes);
/**
 * umad_send_prepare() - allocate the message for a record, with its headers and without data
 * @mad: the beginning of the record, including the headers of its MAD
 * @mad_bytes: length of the whole MAD
 * Return: NULL: it cannot be sent, which a record has reported to the program
 */
struct umad_send *umad_send_prepare(struct umad_session *s, const struct ib_user_mad *mad,
				    size_t mad_bytes);
/** umad_send_submit() - send a message whose data are complete. A failure is reported by a record */
void umad_send_submit(struct umad_send *send);
/** umad_send_discard() - free a message that was not submitted */
void umad_send_discard(struct umad_send *send);
/** umad_send_refuse() - as umad_send_discard(), and report the error to the program. @ret: -errno */
void umad_send_refuse(struct umad_send *send, int ret);
/** umad_send_cancel_some() - cancel up to @count sends of @agent
 *  Return: true: all its sends are cancelled */
bool umad_send_cancel_some(struct umad_agent *agent, unsigned count);
void umad_send_handler(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc);
void umad_recv_handler(struct ib_mad_agent *agent, struct ib_mad_send_buf *send,
		       struct ib_mad_recv_wc *wc);

/* umad_queue.c */
/** umad_record_alloc() - Return: a record with @mad_bytes behind its header; NULL: no memory */
struct umad_record *umad_record_alloc(size_t mad_bytes);
/** umad_record_of() - Return: a record for the message @wc, whose header the caller fills in; the
 *  record owns the message. NULL: no memory, and the message is freed */
struct umad_record *umad_record_of(struct ib_mad_recv_wc *wc);
/** umad_queue() - queue @record for the program, and take ownership of it. If the
 *  program does not read and its queue is full, the record is dropped */
void umad_queue(struct umad_session *s, struct umad_record *record);
void umad_queue_init(struct umad_session *s);
/** umad_queue_flush() - send records until the socket is full */
void umad_queue_flush(struct umad_session *s);
void umad_queue_drop(struct umad_session *s);
/** umad_queue_pop() - free the oldest record */
void umad_queue_pop(struct umad_session *s);
/** umad_watch() - watch the socket: for records, unless one is being read; for room, if
 *  records wait in the queue */
void umad_watch(struct umad_session *s);

/* umad_store.c */
/** umad_store_begin() - move the segments of @record, the oldest, to a memfd, some in each turn;
 *  umad_queue_flush() is called at the end. Return: 0; -errno */
int umad_store_begin(struct umad_session *s, struct umad_record *record);
/** umad_store_moves() - are there still segments to be moved to the memfd? */
bool umad_store_moves(const struct umad_session *s);
/** umad_store_send() - send the record. Return: 0; -EAGAIN: no room in the socket; -errno */
int umad_store_send(struct umad_session *s);
/** umad_store_drop() - close the memfd, if there is one */
void umad_store_drop(struct umad_session *s);

/* umad_load.c */
/** umad_load() - as umad_write(), with the record in the memfd @fd, which is closed
 *  afterwards. Another file, or one without a record, is ignored */
void umad_load(struct umad_session *s, int fd);
/** umad_load_drop() - discard the record that is being read, if there is one */
void umad_load_drop(struct umad_session *s);
/** umad_load_agent() - Return: the agent that will send the record that is being read; NULL:
 *  there is no such record */
struct umad_agent *umad_load_agent(const struct umad_session *s);

/* issm.c: files; a port has the capability IsSM (14.2.5.6) while a program has its file open */
struct issm;
int issm_create(struct rt *rt, const char *dir, struct issm **issm);
void issm_destroy(struct issm *issm);
/** issm_path() - make the file of a port, unless it exists
 *  @path: ABI_NAME_BYTES; set to the file's path below the runtime directory. Return: 0; -errno */
int issm_path(struct issm *issm, struct ib_device *device, unsigned port_num, char *path);
/** issm_forget() - close the files of @device, which is being removed */
void issm_forget(struct issm *issm, const struct ib_device *device);

#endif
