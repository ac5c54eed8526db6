/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Between the files of the module loader:
 *
 *  loader.c	  a module's life, from modprobe to rmmod
 *  file.c	  its file: the copy, the dynamic linker, what it must have
 *  param.c	  its parameters
 *  client.c	  its clients, and the devices that come and go
 *  wait.c	  sleep and the log
 *  work.c	  work items
 *  crash.c	  faults: whose code it was, and the way back to who called it
 *  leftovers.c  what it forgot to give back
 */
#ifndef SOFTIB_MODULES_PRIVATE_H
#define SOFTIB_MODULES_PRIVATE_H

#include <limits.h>
#include <stdint.h>

#define SOFTIB_MODULE_LOADER
#include "modules/modules.h"
#include "runtime/fiber.h"
#include "softib/module.h"

#define MODULE_TEXT_BYTES 512 /* of messages for people */

enum module_phase {
	MODULE_LOADING,
	MODULE_LIVE,
	MODULE_UNLOADING,
	MODULE_CRASHED, /* what it had is given back; rmmod forgets it */
	MODULE_GONE,	/* its code may still be in memory */
};

struct modules {
	struct list_head node; /* in the list of all loaders, which the crash handler reads */
	struct rt *rt;
	char dir[PATH_MAX];
	struct list_head modules; /* struct module_state, in order of loading */
	unsigned int serial;	  /* of files: no two have one name */
};

/** struct module_state - a module of a node */
struct module_state {
	struct list_head node; /* modules->modules */
	struct modules *loader;
	struct ib_client_module scope; /* its rt and node */
	char node_name[IB_DEVICE_NAME_BYTES];
	char name[MODULE_NAME_BYTES];
	enum module_phase phase;
	bool dead;	   /* it has crashed: call nothing of it */
	unsigned int refs; /* try_module_get() */

	/* --- its file --- */
	char path[PATH_MAX];
	void *handle;
	uintptr_t from, to; /* where it is in memory */
	struct module *module;
	int (*init)(void);
	void (*exit)(void);
	struct list_head texts; /* values of charp parameters */

	/* --- what runs of it on fibers --- */
	unsigned int calls;
	struct list_head sleepers; /* struct waiter */
	wait_queue_head_t changed; /* anything of this struct */
	struct rt_work bury;

	/* --- clients --- */
	struct list_head clients; /* struct module_client */
	struct list_head members; /* struct member */
	struct rt_work pump_work;
	bool pumping;
	struct list_head sa_clients; /* struct module_sa_client */

	/* --- work items --- */
	struct list_head works, timers;
	struct work_struct *running;
	struct rt_fiber *worker;
	struct rt_work start_worker;
	bool worker_queued;

	/* --- who is told --- */
	modules_done *done;
	void *ctx;
	char note[MODULE_TEXT_BYTES];
};

/* --- loader.c --- */

/** module_enter(), module_leave() - around each call of a function of the module that may
 *  sleep. module_enter() Return: what module_leave() wants */
void *module_enter(struct module_state *state);
void module_leave(struct module_state *state, void *before);
/** module_tell() - softibd's log */
__attribute__((format(printf, 2, 3)))
void module_tell(const struct module_state *state, const char *fmt, ...);
/** module_crashed() - its code did what ends it; a fiber of its own cleans up behind it */
void module_crashed(struct module_state *state);
/** module_at() - Return: whose code or data is at @address; NULL */
struct module_state *module_at(uintptr_t address);

/* --- file.c --- */

/** module_open() - copy and load @fd. Return: 0; -1 and a text in @err */
int module_open(struct module_state *state, int fd, char err[MODULE_TEXT_BYTES]);
/** module_close() - @keep: its code stays in memory */
void module_close(struct module_state *state, bool keep);

/* --- param.c --- */

/** module_set_params() - Return: 0; -1 and a text in @err */
int module_set_params(struct module_state *state, const char *const *params, size_t num,
		      char err[MODULE_TEXT_BYTES]);
void module_free_params(struct module_state *state);

/* --- client.c --- */

void module_clients_init(struct module_state *state);
/** module_clients_drop() - those that it left; remove() is called unless it is dead.
 *  On a fiber. Return: how many */
unsigned int module_clients_drop(struct module_state *state);

/* --- wait.c --- */

/** module_wake_all() - whoever sleeps on behalf of @state */
void module_wake_all(struct module_state *state);

/* --- work.c --- */

void module_works_init(struct module_state *state);
/** module_works_drop() - what is scheduled does not run any more; one that runs is waited
 *  for, on a fiber. Return: how many were scheduled */
unsigned int module_works_drop(struct module_state *state);

/* --- crash.c --- */

/** module_bug() - end the module whose function called; @why: for people; NULL: it is dead
 *  already, and nothing is said */
_Noreturn void module_bug(const char *why);
/** module_catch_faults() - from now on a fault in a module's code ends the module */
void module_catch_faults(void);

/* --- leftovers.c --- */

/** module_free_leftovers() - destroy what it still has; list it in @text */
void module_free_leftovers(struct module_state *state, char text[MODULE_TEXT_BYTES]);

#endif
