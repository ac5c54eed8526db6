/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared by the files of the module loader:
 *
 *	loader.c     states of a module, from modprobe to rmmod
 *	file.c	     its file: the copy, the dynamic linker, required symbols
 *	param.c	     its parameters
 *	client.c     its clients, and devices that are added and removed
 *	wait.c	     sleep and the log
 *	work.c	     work items
 *	timer.c	     timers
 *	thread.c     threads
 *	symbol.c     symbols that modules export to each other
 *	trace.c	     trace points
 *	watchdog.c   functions that do not return
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
#include "runtime/trace.h"
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
	bool ending;		  /* all are being unloaded */
};

/** struct module_state - a module of a node */
struct module_state {
	struct list_head node; /* modules->modules */
	struct modules *loader;
	struct ib_client_module scope; /* its rt and node */
	char node_name[IB_DEVICE_NAME_BYTES];
	char name[MODULE_NAME_BYTES];
	enum module_phase phase;
	uint64_t watchdog_ns; /* for which a function of it may run; 0: for ever */
	bool dead;	   /* it has crashed: none of its functions may be called */
	unsigned int refs; /* try_module_get() */

	/* --- its file --- */
	char path[PATH_MAX];
	void *handle;
	uintptr_t from, to; /* its address range */
	uintptr_t relro_from, relro_to; /* the part of it that is read-only */
	struct list_head uses; /* modules whose symbols it uses (symbol.c) */
	struct module *module;
	int (*init)(void);
	void (*exit)(void);
	struct list_head texts; /* values of charp parameters */
	struct rt_trace_source trace; /* points: NULL: it has none */

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

	struct list_head kernel_timers; /* struct timer_list, pending */
	struct list_head threads;	/* struct task_struct */

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
/** module_param_text() - the value of @param as modprobe takes it, cut at @bytes. Return: its
 *  length */
size_t module_param_text(const struct kernel_param *param, char *text, size_t bytes);

/* --- client.c --- */

void module_clients_init(struct module_state *state);
/** module_clients_drop() - unregister the clients that the module left, with their remove()
 *  unless it has crashed. Runs on a fiber. Return: the number of clients */
unsigned int module_clients_drop(struct module_state *state);

/* --- wait.c --- */

/** module_wake_fiber() - let @fiber, if it sleeps, look at its condition again. Return: it slept */
bool module_wake_fiber(struct module_state *state, const struct rt_fiber *fiber);
/** module_wake_all() - wake all fibers that sleep in functions of the module */
void module_wake_all(struct module_state *state);

/* --- work.c --- */

void module_works_init(struct module_state *state);
/** module_works_drop() - cancel scheduled work items, and wait for the one that runs. Runs
 *  on a fiber. Return: the number of items that were scheduled */
unsigned int module_works_drop(struct module_state *state);

/* --- timer.c --- */

/** module_timers_drop() - cancel all timers. Return: how many were pending */
unsigned int module_timers_drop(struct module_state *state);

/* --- thread.c --- */

struct task_struct;
/** module_thread_of() - Return: the thread that @fiber is; NULL */
struct task_struct *module_thread_of(struct rt_fiber *fiber);
/** module_thread_is_killed() - shall @task, which may be NULL, end where it sleeps? */
bool module_thread_is_killed(const struct task_struct *task);
/** module_threads_drop() - end all threads where they sleep, and free them. Runs on a fiber.
 *  Return: how many had not ended */
unsigned int module_threads_drop(struct module_state *state);

/* --- symbol.c --- */

/** module_weaken_symbols() - edit the copy of a module's file: it may be loaded although modules
 *  of the node have symbols that it uses. These stay loaded. Return: 0; -errno */
int module_weaken_symbols(struct module_state *state);
/** module_bind_symbols() - let the module, which is loaded, use them. Return: 0; -errno */
int module_bind_symbols(const struct module_state *state);
/** module_check_exports() - Return: 0; -1 and a message: a module of the node exports a symbol
 *  of that name */
int module_check_exports(const struct module_state *state, char err[MODULE_TEXT_BYTES]);
bool module_uses(const struct module_state *state, const struct module_state *exporter);
/** module_uses_drop() - the module goes, and does not use any more */
void module_uses_drop(struct module_state *state);

/* --- crash.c --- */

/** module_bug() - crash the calling module
 *  @why: the message; NULL: end the calling function of the module alone, which has crashed
 *  already or whose thread is killed, and log nothing */
_Noreturn void module_bug(const char *why);
/** module_interrupted() - for handlers of signals. Return: the module whose function is on the
 *  stack of @context; NULL. *@is_own: the interrupted instruction is the module's, whose call
 *  may be ended */
struct module_state *module_interrupted(void *context, bool *is_own);
/** module_abandon() - after module_interrupted(): end that call as one that crashed
 *  @what: it does, for the log */
void module_abandon(void *context, const char *what);
/** module_catch_faults() - install the handler of faults in modules */
void module_catch_faults(void);

/* --- trace.c --- */

/** module_trace_begin() - users can trace the module, which is linked. 0; -ENOMEM */
int module_trace_begin(struct module_state *state);
/** module_trace_end() - its points are off, and not listed any more */
void module_trace_end(struct module_state *state);

/* --- watchdog.c --- */

/** module_watch() - look for functions that run longer than @least_ns, or than the limit of their
 *  module; 0: there are no modules to watch */
void module_watch(uint64_t least_ns);
/** modules_turns() - of the loops that modules are in (loader.c) */
uint64_t modules_turns(void);

/* --- leftovers.c --- */

/** module_free_leftovers() - destroy the objects that the module left; list them in @text */
void module_free_leftovers(struct module_state *state, char text[MODULE_TEXT_BYTES]);

#endif
