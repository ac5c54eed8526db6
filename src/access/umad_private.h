/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of the umad endpoint share. */
#ifndef SOFTIB_ACCESS_UMAD_PRIVATE_H
#define SOFTIB_ACCESS_UMAD_PRIVATE_H

#include <rdma/ib_user_mad.h>

#include "abi/session.h"
#include "access/umad.h"
#include "rdma/ib_mad.h"

#define UMAD_AGENTS 32		    /* per open port, as the kernel's limit */
#define UMAD_QUEUE_MAX 16384	    /* records that wait for a slow reader */
#define UMAD_MESSAGE_MAX (64u << 20) /* bytes of one RMPP message */
#define UMAD_SENDS_BYTES (64u << 20) /* of a session's sends that are under way */
#define UMAD_SEND_OVERHEAD 1024	    /* what a send takes beside its MAD, at most */

struct umad_session;

/** struct umad_agent - a registration; its id is its place in the table. It outlives
 *  its session by as long as it takes to cancel its sends, some in each turn */
struct umad_agent {
	struct umad_session *session; /* NULL: it ends */
	uint32_t id;
	struct ib_mad_agent *mad;
	struct list_head sends; /* struct umad_send, not completed and not cancelled */
	struct list_head node;	/* in umad_ends.agents, when it ends */
};

/** struct umad_ends - the agents of an endpoint that end */
struct umad_ends {
	struct rt *rt;
	struct rt_work work;
	struct list_head agents;
};

/** struct umad_record - what one read() returns, waiting for its reader */
struct umad_record {
	struct list_head node;
	size_t bytes; /* of mad, header included */
	struct ib_user_mad mad;
};

/** struct umad_session - one connection, from abi_open to its end */
struct umad_session {
	struct list_head node; /* in umad.sessions */
	struct umad *umad;
	struct rt_io data, control;
	int fd, control_fd; /* control_fd -1 before the port is open */
	struct ib_device *device; /* NULL: not open yet, or unplugged */
	unsigned port_num;
	struct umad_ends *ends; /* the endpoint's */
	struct umad_agent *agent[UMAD_AGENTS]; /* NULL: free */
	size_t send_bytes;	/* of its sends under way; UMAD_SENDS_BYTES at most */
	struct list_head queue; /* records; watched for writing when not empty */
	unsigned queue_len;
};

/* umad_agent.c */
/** umad_ioctl() - answer one message of the control socket.
 *  Return: 0; -errno when the answer could not be sent */
int umad_ioctl(struct umad_session *s, const void *message, size_t bytes);
/** umad_agents_drop() - end the agents of @s. Their sends are cancelled by and by */
void umad_agents_drop(struct umad_session *s);
void umad_ends_init(struct umad_ends *ends, struct rt *rt);
/** umad_ends_finish() - end the rest of what ends on @device now; NULL: on all */
void umad_ends_finish(struct umad_ends *ends, const struct ib_device *device);

/* umad_send.c */
/** umad_write() - one record from the program, @bytes of it. Problems that
 *  write(2) would have reported come back as a record with that status. */
void umad_write(struct umad_session *s, const struct ib_user_mad *mad, size_t bytes);
/** umad_send_cancel_some() - cancel up to @count sends of @agent.
 *  Return: true when none is left that is not */
bool umad_send_cancel_some(struct umad_agent *agent, unsigned count);
void umad_send_handler(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc);
void umad_recv_handler(struct ib_mad_agent *agent, struct ib_mad_send_buf *send,
		       struct ib_mad_recv_wc *wc);

/* umad_queue.c */
/** umad_record_alloc() - @mad_bytes behind the header; NULL */
struct umad_record *umad_record_alloc(size_t mad_bytes);
/** umad_queue() - hand @record, the queue's from now on, to the program; one
 *  that a reader who sleeps has no room for is lost */
void umad_queue(struct umad_session *s, struct umad_record *record);
/** umad_queue_flush() - as much as the socket takes */
void umad_queue_flush(struct umad_session *s);
void umad_queue_drop(struct umad_session *s);
/** umad_read_memfd() - a record that came as a descriptor, for the caller to
 *  rt_free(). Return: NULL when it is no memfd or does not hold a record */
struct ib_user_mad *umad_read_memfd(int fd, size_t *bytes);

/* issm.c: files whose being open is the port's IsSM bit (14.2.5.6) */
struct issm;
int issm_create(struct rt *rt, const char *dir, struct issm **issm);
void issm_destroy(struct issm *issm);
/** issm_path() - make the file of a port if need be
 *  @path: ABI_NAME_BYTES; below the runtime directory. 0; -errno */
int issm_path(struct issm *issm, struct ib_device *device, unsigned port_num, char *path);
/** issm_forget() - the device goes */
void issm_forget(struct issm *issm, const struct ib_device *device);

#endif
