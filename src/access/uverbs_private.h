/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Declarations that the files of the uverbs endpoint share. */
#ifndef SOFTIB_ACCESS_UVERBS_PRIVATE_H
#define SOFTIB_ACCESS_UVERBS_PRIVATE_H

#include <rdma/ib_user_verbs.h>

#include "abi/lane.h"
#include "abi/objects.h"
#include "abi/session.h"
#include "abi/share.h"
#include "abi/target.h"
#include "access/quota.h"
#include "access/told.h"
#include "access/uverbs.h"
#include "core/uobject.h"
#include "rdma/ib_verbs.h"

/**
 * struct session - one connection. Its states:
 *   NEW     connected; waits for struct abi_open
 *   OPENED  a device is chosen; waits for GET_CONTEXT
 *   ACTIVE  has a context
 *   ZOMBIE  the device was removed, or has abandoned the program: all commands fail with -EIO
 */
struct session {
	struct list_head node; /* in uverbs.sessions */
	struct uverbs *uverbs;
	struct rt_io io;
	int fd;
	struct peer peer;
	struct quota_share quota;
	uint32_t number; /* unique among the sessions, never 0 */
	uint8_t token[ABI_TOKEN_BYTES]; /* ACTIVE: authorizes its holders to share the context's objects */
	enum { SESSION_NEW, SESSION_OPENED, SESSION_ACTIVE, SESSION_ZOMBIE } state;
	struct ib_device *device;
	struct ib_ucontext *context;
	struct told_process *process;
	struct told *told; /* NULL: the program has not asked for a ring */
	/* --- while packets that the program has queued are forwarded --- */
	struct rt_work settle;
	bool closing;	     /* the session ends afterwards */
	void *command;	     /* the command to execute afterwards; NULL */
	size_t command_bytes;
	/* --- queue pairs that the program may create by telling (ABI_CMD_CREATED_QP) --- */
	struct ib_uobject *granted[ABI_QPS_GRANTED];
	unsigned int num_granted;
	unsigned int qps_created;
};

#define UVERBS_RESPONSE_MAX 512

/** struct call - one command and its response, for its handler */
struct call {
	struct session *session;
	const void *in; /* the command's struct, which follows ib_uverbs_cmd_hdr */
	void *out;	/* the response, zeroed at first */
	uint32_t number;
	size_t room;	  /* bytes of the response that the program has room for */
	size_t out_bytes; /* from the table; a handler may change it */
	const int *fds; /* descriptors to send with the response: driver_fds, or those of another object */
	unsigned int num_fds;
	int driver_fds[2]; /* closed once they are sent */
	bool unanswered; /* the program does not wait for a response */
};

/** struct command - a row of the table of commands */
struct command {
	const char *name;
	size_t in_min; /* the bytes that the handler reads; further ones are ignored */
	size_t out_bytes;
	int (*handler)(struct call *call);
};

/** uverbs_commands - indexed by IB_USER_VERBS_CMD_*. handler: NULL: the command is not supported */
extern const struct command uverbs_commands[];
extern const unsigned int uverbs_num_commands;
/** uverbs_ex_commands - commands with IB_USER_VERBS_CMD_FLAG_EXTENDED, indexed by
 *  IB_USER_VERBS_EX_CMD_* */
extern const struct command uverbs_ex_commands[];
extern const unsigned int uverbs_num_ex_commands;
/** uverbs_driver_commands - softib's own commands, of which ABI_CMD_RESOLVE is the first */
extern const struct command uverbs_driver_commands[];
extern const unsigned int uverbs_num_driver_commands;

/* uverbs_qp.c */
int cmd_create_qp(struct call *call);
int cmd_created_qp(struct call *call);
int cmd_open_qp(struct call *call);
int cmd_query_qp(struct call *call);
int cmd_modify_qp(struct call *call);
int cmd_ex_modify_qp(struct call *call);
int cmd_modified(struct call *call);
int cmd_destroy_qp(struct call *call);
int cmd_create_ah(struct call *call);
int cmd_destroy_ah(struct call *call);
int cmd_attach_mcast(struct call *call);
int cmd_detach_mcast(struct call *call);

/* uverbs_memory.c */
int cmd_reg_mr(struct call *call);
int cmd_rereg_mr(struct call *call);
int cmd_dereg_mr(struct call *call);
int cmd_alloc_mw(struct call *call);
int cmd_dealloc_mw(struct call *call);
int cmd_alloc_dm(struct call *call);
int cmd_free_dm(struct call *call);
int cmd_reg_dm_mr(struct call *call);
int cmd_query_object(struct call *call);

/* uverbs_share.c */
/** share_make_token() - make the token of @s, which becomes ACTIVE. Return: 0; -errno */
int share_make_token(struct session *s);
int cmd_share(struct call *call);
int cmd_reach(struct call *call);
int cmd_create_flow(struct call *call);
int cmd_destroy_flow(struct call *call);
int cmd_read_flow(struct call *call);
int cmd_set_rss(struct call *call);

/* uverbs.c */
/** uverbs_object_event() - event_handler of a program's QP, CQ or SRQ, with @uobject as its context:
 *  report the event to the program, with the name that the program gave the object */
void uverbs_object_event(struct ib_event *event, void *uobject);
/** uverbs_send_event() - report an event to the program; @element: the name that it gave the object */
void uverbs_send_event(struct session *s, enum ib_event_type type, u64 element);
/** uverbs_target_event() - event_handler of an XRC target QP: report the event to every program that has
 *  it open */
void uverbs_target_event(struct ib_event *event, void *uobject);
/** uverbs_memlock_bytes() - Return: the locked memory that the context of @s may have; UINT64_MAX: it is
 *  not limited */
u64 uverbs_memlock_bytes(const struct session *s);
/** uverbs_may_send_raw() - may the program of @s create raw packet QPs and flow steering rules? */
bool uverbs_may_send_raw(const struct session *s);
/** uverbs_session_of() - Return: the session whose token is @token; NULL: there is none */
struct session *uverbs_session_of(struct uverbs *uverbs, const uint8_t token[ABI_TOKEN_BYTES]);
/** uverbs_open_told() - make the ring of ABI_CMD_TOLD_RING. Return: -EEXIST: there is one; as told_open() */
int uverbs_open_told(struct session *s, int fds[ABI_TOLD_FDS]);
/** uverbs_context_lost() - ib_ucontext.fatal(): report a fatal error to the program, and end its context */
void uverbs_context_lost(struct ib_ucontext *context);

#endif
