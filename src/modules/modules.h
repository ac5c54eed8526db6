/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The loader of modules: shared objects written against include/rdma and softib/module.h,
 * loaded into the stack of a node. docs/MODULES.md describes them.
 */
#ifndef SOFTIB_MODULES_MODULES_H
#define SOFTIB_MODULES_MODULES_H

#include "runtime/rt.h"

struct modules;

#define MODULES_WATCHDOG_NS (10 * NSEC_PER_SEC)
#define MODULE_NAME_BYTES 16 /* the length of names in resource tracking */

/** modules_done - a module was loaded or unloaded
 *  @error: a message; NULL: success
 *  @note: a remark for the user; may be NULL */
typedef void modules_done(void *ctx, const char *error, const char *note);

/** struct modules_request - a module to load
 * @fd: the file, which the caller closes; a copy of it is loaded
 * @name: letters, digits and '_'; copied
 * @params: "name=value" each; copied
 * @watchdog_ns: a function of it that does not return in this time is ended; 0: never.
 *  MODULES_WATCHDOG_NS is usual */
struct modules_request {
	const char *node, *name;
	int fd;
	const char *const *params;
	size_t num_params;
	uint64_t watchdog_ns;
	modules_done *done;
	void *ctx;
};

/** modules_create() - create a loader for the fabric with the loop @rt
 *  @dir: directory for copies of modules
 *  Return: 0; -ENOMEM */
int modules_create(struct rt *rt, const char *dir, struct modules **modules);
/** modules_destroy() - destroy the loader; modules that are still loaded stay in memory, and
 *  are not called any more */
void modules_destroy(struct modules *modules);

/** modules_load() - load a module; @request->done is called once, immediately or from the
 *  loop */
void modules_load(struct modules *modules, const struct modules_request *request);
/** modules_unload() - unload module @name of @node; @done is called likewise */
void modules_unload(struct modules *modules, const char *node, const char *name,
		    modules_done *done, void *ctx);

/** struct modules_row - one module, for users
 *  @state: "loading", "live", "unloading", "crashed"
 *  @users: the modules that use its symbols, with commas
 *  @refs: its reference count, those included */
struct modules_row {
	const char *node, *name, *state, *users;
	size_t bytes;
	unsigned int refs;
	const void *private; /* the loader's */
};
/** modules_each() - call @fn for the modules of @node, or of all nodes if it is NULL, in
 *  order of loading, until @fn does not return 0. Return: the last result of @fn */
int modules_each(struct modules *modules, const char *node,
		 int (*fn)(void *ctx, const struct modules_row *row), void *ctx);

/** modules_each_param() - call @fn for the parameters of a module that users may see */
void modules_each_param(const struct modules_row *row,
			void (*fn)(void *ctx, const char *name, const char *value), void *ctx);

/** modules_unload_all() - begin to unload all modules, until modules_busy() is NULL */
void modules_unload_all(struct modules *modules);
/** modules_busy() - Return: the name of a module that is not unloaded yet; NULL */
const char *modules_busy(struct modules *modules);

#endif
