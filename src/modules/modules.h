/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The loader of modules: shared objects written against include/rdma and softib/module.h,
 * loaded into the stack of a node. docs/MODULES.md describes them.
 */
#ifndef SOFTIB_MODULES_MODULES_H
#define SOFTIB_MODULES_MODULES_H

#include "runtime/rt.h"

struct modules;

#define MODULE_NAME_BYTES 16 /* as much as the tables of resources show of a name */

/** modules_done - a module is loaded or gone
 *  @error: what went wrong, for people; NULL: nothing. @note: what they should know; or NULL */
typedef void modules_done(void *ctx, const char *error, const char *note);

/** struct modules_request - a module to load
 * @fd: the file, the caller's to close; a copy of it is loaded
 * @name: letters, digits and '_'; params: "name=value" each; both copied */
struct modules_request {
	const char *node, *name;
	int fd;
	const char *const *params;
	size_t num_params;
	modules_done *done;
	void *ctx;
};

/** modules_create() - a loader for the fabric whose loop is @rt; it keeps files in @dir.
 *  0; -ENOMEM */
int modules_create(struct rt *rt, const char *dir, struct modules **modules);
/** modules_destroy() - modules that are still there stay in memory, and are not called */
void modules_destroy(struct modules *modules);

/** modules_load() - calls @request->done once, at once or from the loop */
void modules_load(struct modules *modules, const struct modules_request *request);
/** modules_unload() - the same of module @name of @node */
void modules_unload(struct modules *modules, const char *node, const char *name,
		    modules_done *done, void *ctx);

/** struct modules_row - one module as users see it. @state: "loading", "live",
 *  "unloading", "crashed". @refs: how often it is in use */
struct modules_row {
	const char *node, *name, *state;
	size_t bytes;
	unsigned int refs;
};
/** modules_each() - those of @node, of all nodes when it is NULL, in order of loading;
 *  stops when @fn does not return 0. Return: what it returned */
int modules_each(struct modules *modules, const char *node,
		 int (*fn)(void *ctx, const struct modules_row *row), void *ctx);

/** modules_unload_all() - begin to; modules_busy() tells when it is done */
void modules_unload_all(struct modules *modules);
/** modules_busy() - Return: the name of one that is not unloaded yet; NULL */
const char *modules_busy(struct modules *modules);

#endif
