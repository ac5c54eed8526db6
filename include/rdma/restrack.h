/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Resource tracking: every object of the midlayer stands in its device's
 * table, with the process or the kernel client that owns it. `softib
 * resource show` reads these tables; a leak is an entry that stays.
 */
#ifndef RDMA_RESTRACK_H
#define RDMA_RESTRACK_H

#include <sys/types.h>

#include "rdma/ib_types.h"

#pragma GCC visibility push(default)

enum rdma_restrack_type {
	RDMA_RESTRACK_PD,
	RDMA_RESTRACK_CQ,
	RDMA_RESTRACK_QP,
	RDMA_RESTRACK_CM_ID, /* of the CM */
	RDMA_RESTRACK_MR,
	RDMA_RESTRACK_CTX,
	RDMA_RESTRACK_SRQ,
	RDMA_RESTRACK_AH,
	RDMA_RESTRACK_MW,
	RDMA_RESTRACK_FMR,
	RDMA_RESTRACK_MAD_AGENT,
	RDMA_RESTRACK_SA_QUERY,
	RDMA_RESTRACK_RDMA_CM_ID, /* of the RDMA CM, which Linux lists as cm_id */
	RDMA_RESTRACK_MAX
};

#define RDMA_RESTRACK_COMM_BYTES 16

/** struct rdma_restrack_entry - embedded in each tracked object */
struct rdma_restrack_entry {
	struct list_head node; /* in the device's list of its type */
	enum rdma_restrack_type type;
	bool valid;
	u32 id;		       /* unique per device and type */
	bool user;
	bool of_program; /* made for a program, not by the midlayer or a module */
	pid_t pid;	       /* the owner; 0 when it is not a process */
	char comm[RDMA_RESTRACK_COMM_BYTES]; /* its name, or the client's */
};

/** struct rdma_restrack_root - the tables of one device */
struct rdma_restrack_root {
	struct list_head list[RDMA_RESTRACK_MAX];
	u32 count[RDMA_RESTRACK_MAX], of_programs[RDMA_RESTRACK_MAX];
	u32 next_id[RDMA_RESTRACK_MAX];
	struct list_head cursors; /* rdma_restrack_cursor, that stand in these tables */
};

/** struct rdma_restrack_cursor - a walk over one table that may pause for as long as it
 *  likes, while objects come and go */
struct rdma_restrack_cursor {
	struct list_head node;	  /* in the root's cursors */
	struct ib_device *device; /* NULL: the device has gone */
	enum rdma_restrack_type type;
	struct list_head *next; /* the node of the entry that is next, or the table's head */
};

struct ib_device;

/** rdma_restrack_name() - "pd", "cq", "qp" ... */
const char *rdma_restrack_name(enum rdma_restrack_type type);
/** rdma_restrack_count() - objects of @type that live on @device */
u32 rdma_restrack_count(struct ib_device *device, enum rdma_restrack_type type);
/**
 * rdma_restrack_for_each() - call @fn for each object of @type, oldest first
 * @fn: returns 0 to go on; it must not create or destroy objects
 * Return: 0, or what @fn returned
 */
int rdma_restrack_for_each(struct ib_device *device, enum rdma_restrack_type type,
			   int (*fn)(const struct rdma_restrack_entry *entry, void *ctx),
			   void *ctx);

/** rdma_restrack_open() - let @cursor stand before the oldest object of @type */
void rdma_restrack_open(struct ib_device *device, struct rdma_restrack_cursor *cursor,
			enum rdma_restrack_type type);
/** rdma_restrack_next() - Return: the next object; NULL at the end */
const struct rdma_restrack_entry *rdma_restrack_next(struct rdma_restrack_cursor *cursor);
/** rdma_restrack_close() - of every cursor that was opened, also of a device that has gone */
void rdma_restrack_close(struct rdma_restrack_cursor *cursor);

/** rdma_restrack_describe() - the state of the object of @entry, for people: "RC, RTS, to QP
 *  0x000012". Return: @text, which is empty for objects of which there is nothing to say */
#define RDMA_RESTRACK_TEXT_BYTES 96
const char *rdma_restrack_describe(const struct rdma_restrack_entry *entry,
				   char text[RDMA_RESTRACK_TEXT_BYTES]);
/** rdma_restrack_forget() - destroy what the kernel client named @client has on @device
 *  @count: of each type is raised by how many there were. What an object of another client
 *  uses stays. Context: may sleep */
void rdma_restrack_forget(struct ib_device *device, const char *client,
			  u32 count[RDMA_RESTRACK_MAX]);

/* --- the core's own --- */

/** rdma_restrack_init() - tables without objects */
void rdma_restrack_init(struct rdma_restrack_root *root);
/** rdma_restrack_leave() - the device of @root goes: no cursor stands in its tables then */
void rdma_restrack_leave(struct rdma_restrack_root *root);
/** rdma_restrack_add() - enter @entry; @client names a kernel owner, or pid
 *  is the process. Used by those who make objects. */
void rdma_restrack_add(struct ib_device *device, struct rdma_restrack_entry *entry,
		       enum rdma_restrack_type type, const char *client, pid_t pid);
/** rdma_restrack_set_owner() - @entry belongs to the process @pid, which is called @comm */
void rdma_restrack_set_owner(struct rdma_restrack_entry *entry, pid_t pid, const char *comm);
/** rdma_restrack_del() - @entry goes, whether it was entered or not */
void rdma_restrack_del(struct ib_device *device, struct rdma_restrack_entry *entry);

#pragma GCC visibility pop

#endif
