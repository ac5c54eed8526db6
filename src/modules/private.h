/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared by the files of the module loader:
 *
 *	loader.c     states of a module, from modprobe to rmmod
 *	file.c	     its file: the copy, the dynamic linker, required symbols
 *	param.c	     its parameters
 *	client.c     its clients, and devices that are added and removed
 *	wait.c	     sleep and the log
 *	work.c	     work items
 *	crash.c	     faults: finds the module, and returns to its caller
 *	leftovers.c  frees what it did not free
 */
#ifndef SOFTIB_MODULES_PRIVATE_H
#define SOFTIB_MODULES_PRIVATE_H

#include <limits.h>
#include <stdint.h>

#define SOFTIB_MODULE_LOADER
#include "modules/modules.h"
#include "runtime/fiber.h"
#include "softib/module.h"

#define MODULE_TEXT_BYTES 512 /* length of messages */

enum module_phase {
	MODULE_LOADING,
	MODULE_LIVE,
	MODULE_UNLOADING,
	MODULE_CRASHED, /* its objects were freed; rmmod removes it */
	MODULE_GONE,	/* its code may still be in memory */
};

struct modules {
	struct list_head node; /* in the list of all loaders, for the crash handler */
	struct rt *rt;
	char dir[PATH_MAX];
	struct list_head modules; /* struct module_state, in order of loading */
	unsigned int serial;	  /* makes the names of the copies unique */
};

/** struct module_state - a module of a node */
struct module_state {
	struct list_head node; /* modules->modules */
	struct modules *loader;
	struct ib_client_module scope; /* its rt and node */
	char node_name[IB_DEVICE_NAME_BYTES];
	char name[MODULE_NAME_BYTES];
	enum module_phase phase;
	bool dead;	   /* it has crashed: none of its functions may be called */
	unsigned int refs; /* try_module_get() */

	/* --- its file --- */
	char path[PATH_MAX];
	void *handle;
	uintptr_t from, to; /* its address range */
	struct module *module;
	int (*init)(void);
	void (*exit)(void);
	struct list_head texts; /* values of charp parameters */

	/* --- its functions that run on fibers --- */
	unsigned int calls;
	struct list_head sleepers; /* struct waiter */
	wait_queue_head_t changed; /* signalled when a member of this struct changes */
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

	/* --- called when it is loaded or unloaded --- */
	modules_done *done;
	void *ctx;
	char note[MODULE_TEXT_BYTES];
};

/* --- loader.c --- */

/** module_enter(), module_leave() - enclose each call of a function of the module that may
 *  sleep. module_enter() returns the argument @before of module_leave(). */
void *module_enter(struct module_state *state);
void module_leave(struct module_state *state, void *before);
/** module_log() - write to softibd's log */
__attribute__((format(printf, 2, 3)))
void module_log(const struct module_state *state, const char *fmt, ...);
/** module_crashed() - mark a module as crashed, and let a new fiber clean up */
void module_crashed(struct module_state *state);
/** module_at() - Return: the module whose code or data is at @address; NULL */
struct module_state *module_at(uintptr_t address);

/* --- file.c --- */

/** module_open() - copy and load the file @fd. Return: 0; -1 and a message in @err */
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
/** module_clients_drop() - unregister the clients that the module left, with their remove()
 *  unless it has crashed. Runs on a fiber. Return: the number of clients */
unsigned int module_clients_drop(struct module_state *state);

/* --- wait.c --- */

/** module_wake_all() - wake all fibers that sleep in functions of the module */
void module_wake_all(struct module_state *state);

/* --- work.c --- */

void module_works_init(struct module_state *state);
/** module_works_drop() - cancel scheduled work items, and wait for the one that runs. Runs
 *  on a fiber. Return: the number of items that were scheduled */
unsigned int module_works_drop(struct module_state *state);

/* --- crash.c --- */

/** module_bug() - crash the calling module
 *  @why: the message; NULL: the module has crashed already, and nothing is logged */
_Noreturn void module_bug(const char *why);
/** module_catch_faults() - install the handler of faults in modules */
void module_catch_faults(void);

/* --- leftovers.c --- */

/** module_free_leftovers() - destroy the objects that the module left; list them in @text */
void module_free_leftovers(struct module_state *state, char text[MODULE_TEXT_BYTES]);

#endif
