/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The states of a module:
 *
 *  LOADING	its file is linked, init() runs, on a fiber
 *  LIVE	it has clients, or nothing
 *  UNLOADING	exit() runs; then what it forgot is given back
 *  CRASHED	a function of it faulted. All its functions on fibers were ended, and what
 *		it had was given back, with none of its functions called
 *  GONE	it is in no list. The code of one that crashed or forgot something stays in
 *		memory, since a pointer to it may be left somewhere
 */
#include <errno.h>
#include <stdarg.h>

#include "modules/private.h"
#include "runtime/posix/log.h"
#include "runtime/posix/rt_posix.h"

static LIST_HEAD(loaders);

static const char *const phase_name[] = {
	[MODULE_LOADING] = "loading",
	[MODULE_LIVE] = "live",
	[MODULE_UNLOADING] = "unloading",
	[MODULE_CRASHED] = "crashed",
	[MODULE_GONE] = "gone",
};

void module_log(const struct module_state *state, const char *fmt, ...)
{
	char text[MODULE_TEXT_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	rt_log("%s module %s: %s", state->node_name, state->name, text);
}

struct module_state *module_at(uintptr_t address)
{
	struct module_state *state;
	struct modules *loader;

	list_for_each_entry(loader, &loaders, node)
		list_for_each_entry(state, &loader->modules, node)
			if (address >= state->from && address < state->to)
				return state;
	return NULL;
}

bool is_module_text_address(unsigned long addr)
{
	const struct module_state *state = module_at(addr);

	return state && !state->dead;
}

uint64_t modules_turns(void)
{
	struct modules *loader;
	uint64_t n = 0;

	list_for_each_entry(loader, &loaders, node)
		n += rt_posix_turns(loader->rt);
	return n;
}

/* the shortest limit of the modules that are left decides how often to look */
static void watch(void)
{
	struct module_state *state;
	struct modules *loader;
	uint64_t least = 0;

	list_for_each_entry(loader, &loaders, node)
		list_for_each_entry(state, &loader->modules, node)
			if (state->phase < MODULE_CRASHED && state->watchdog_ns &&
			    (!least || state->watchdog_ns < least))
				least = state->watchdog_ns;
	module_watch(least);
}

static struct module_state *find(struct modules *loader, const char *node, const char *name)
{
	struct module_state *state;

	list_for_each_entry(state, &loader->modules, node)
		if (state->phase != MODULE_GONE && !strcmp(state->node_name, node) &&
		    !strcmp(state->name, name))
			return state;
	return NULL;
}

/* --- calls --- */

void *module_enter(struct module_state *state)
{
	struct rt_fiber *fiber = rt_fiber_current();
	void *before = rt_fiber_owner(fiber);

	rt_fiber_set_owner(fiber, state);
	state->calls++;
	return before;
}

void module_leave(struct module_state *state, void *before)
{
	rt_fiber_set_owner(rt_fiber_current(), before);
	state->calls--;
	wake_up(&state->changed);
}

static int call_init(struct module_state *state)
{
	void *before = module_enter(state);
	int ret = state->init();

	module_leave(state, before);
	return state->dead ? -EFAULT : ret;
}

static void call_exit(struct module_state *state)
{
	void *before = module_enter(state);

	if (state->exit)
		state->exit();
	module_leave(state, before);
}

bool try_module_get(struct module *module)
{
	struct module_state *state = module->state;

	if (state->dead || state->phase == MODULE_UNLOADING)
		return false;
	state->refs++;
	return true;
}

void module_put(struct module *module)
{
	if (module->state->refs)
		module->state->refs--;
}

/* --- the end --- */

static void finish(struct module_state *state, const char *error)
{
	modules_done *done = state->done;

	state->done = NULL;
	if (done)
		done(state->ctx, error, state->note[0] ? state->note : NULL);
}

static void note_left(struct module_state *state, const char *what, unsigned int n)
{
	size_t len = strlen(state->note);

	if (n)
		snprintf(state->note + len, sizeof(state->note) - len, " %u %s%s", n, what,
			 n > 1 && strcmp(what, "work") ? "s" : "");
}

/* Free what the module did not free, users before what they use. Runs on a fiber.
 * Return: was anything left? */
static bool clean_up(struct module_state *state)
{
	static const char first[] = "left behind, and freed:";
	unsigned int timers = module_timers_drop(state), threads = module_threads_drop(state);
	unsigned int works = module_works_drop(state), clients = module_clients_drop(state);
	char left[MODULE_TEXT_BYTES] = "";
	size_t len;

	snprintf(state->note, sizeof(state->note), "%s", first);
	note_left(state, "client", clients);
	note_left(state, "thread", threads);
	note_left(state, "timer", timers);
	note_left(state, "work", works);
	module_free_leftovers(state, left);
	len = strlen(state->note);
	snprintf(state->note + len, sizeof(state->note) - len, "%s", left);
	if (!strcmp(state->note, first)) {
		state->note[0] = 0;
		return false;
	}
	module_log(state, "%s", state->note);
	return true;
}

static void forget(struct module_state *state, bool keep)
{
	struct modules *loader = state->loader;

	module_uses_drop(state);
	module_close(state, keep);
	module_free_params(state);
	state->phase = MODULE_GONE;
	if (!keep) {
		list_del(&state->node);
		rt_free(state);
	}
	watch();
	if (loader->ending) /* those that it used may go now */
		modules_unload_all(loader);
}

static void bury(void *arg)
{
	struct module_state *state = arg;

	/* end each of its functions that sleeps, by waking it */
	while (state->calls) {
		module_wake_all(state);
		softib_wait(&state->changed, MAX_SCHEDULE_TIMEOUT);
	}
	clean_up(state);
	state->phase = MODULE_CRASHED;
	finish(state, "the module crashed: softibd.log tells where");
}

static void start_bury(struct rt_work *work)
{
	struct module_state *state = container_of(work, struct module_state, bury);

	if (rt_fiber_start(state->loader->rt, bury, state, NULL))
		module_log(state, "no memory to clean up behind it");
}

void module_crashed(struct module_state *state)
{
	if (state->dead)
		return;
	state->dead = true;
	rt_work_queue(state->loader->rt, &state->bury);
}

/* --- loading --- */

static struct module_state *alloc_state(struct modules *loader,
					const struct modules_request *request)
{
	struct module_state *state = rt_zalloc(sizeof(*state));

	if (!state)
		return NULL;
	state->loader = loader;
	state->done = request->done;
	state->ctx = request->ctx;
	snprintf(state->node_name, sizeof(state->node_name), "%s", request->node);
	snprintf(state->name, sizeof(state->name), "%s", request->name);
	INIT_LIST_HEAD(&state->texts);
	INIT_LIST_HEAD(&state->sleepers);
	INIT_LIST_HEAD(&state->uses);
	INIT_LIST_HEAD(&state->kernel_timers);
	INIT_LIST_HEAD(&state->threads);
	init_waitqueue_head(&state->changed);
	rt_work_init(&state->bury, start_bury);
	module_clients_init(state);
	module_works_init(state);
	state->watchdog_ns = request->watchdog_ns;
	list_add_tail(&state->node, &loader->modules);
	watch();
	return state;
}

static void load(void *arg)
{
	struct module_state *state = arg;
	char text[MODULE_TEXT_BYTES];
	int ret = call_init(state);

	if (state->dead) /* bury() reports the result */
		return;
	if (!ret) {
		state->phase = MODULE_LIVE;
		module_log(state, "loaded");
		finish(state, NULL);
		return;
	}
	snprintf(text, sizeof(text), "its init function returned %d (%s)", ret,
		 ret < 0 ? strerror(-ret) : "it must be 0 or -errno");
	module_log(state, "%s", text);
	state->phase = MODULE_UNLOADING;
	ret = clean_up(state);
	if (!state->dead) {
		finish(state, text);
		forget(state, ret);
	}
}

/* Objects of a module are tracked by its name, so no other client of the midlayer may have
 * this name. */
static bool name_is_good(const char *name)
{
	static const char *const taken[] = {"core", "mad", "sa", "cm", "rdma_cm", "ipoib"};
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		if (!strcmp(name, taken[i]))
			return false;
	return n && !name[n] && n < MODULE_NAME_BYTES;
}

void modules_load(struct modules *loader, const struct modules_request *request)
{
	struct module_state *state = find(loader, request->node, request->name);
	char err[MODULE_TEXT_BYTES] = "out of memory";

	if (state) {
		snprintf(err, sizeof(err), "%s has a module %s, which is %s: "
			 "'softib rmmod %s %s' unloads it",
			 request->node, request->name, phase_name[state->phase],
			 request->node, request->name);
		request->done(request->ctx, err, NULL);
		return;
	}
	if (!name_is_good(request->name)) {
		snprintf(err, sizeof(err), "'%.80s' is no name for a module: letters, digits and "
			 "'_', at most %d of them, and none of softibd's own parts", request->name, MODULE_NAME_BYTES - 1);
		request->done(request->ctx, err, NULL);
		return;
	}
	module_catch_faults();
	state = alloc_state(loader, request);
	if (!state) {
		request->done(request->ctx, err, NULL);
		return;
	}
	if (!module_open(state, request->fd, err) &&
	    !module_set_params(state, request->params, request->num_params, err)) {
		if (!rt_fiber_start(loader->rt, load, state, NULL))
			return;
		snprintf(err, sizeof(err), "out of memory");
	}
	finish(state, err);
	forget(state, false);
}

/* --- unloading --- */

static void unload(void *arg)
{
	struct module_state *state = arg;
	bool left;

	call_exit(state);
	if (state->dead)
		return;
	left = clean_up(state);
	if (state->dead)
		return;
	module_log(state, "unloaded");
	finish(state, NULL);
	forget(state, left);
}

/* Return: a module that uses symbols of @state; NULL */
static const struct module_state *find_user(const struct module_state *state)
{
	struct module_state *other;

	list_for_each_entry(other, &state->loader->modules, node)
		if (module_uses(other, state))
			return other;
	return NULL;
}

/* Return: may it be unloaded? If not, the reason is in @err */
static bool may_go(const struct module_state *state, char err[MODULE_TEXT_BYTES])
{
	if (state->phase != MODULE_LIVE)
		snprintf(err, MODULE_TEXT_BYTES, "the module %s is %s: wait until it is done", state->name,
			 phase_name[state->phase]);
	else if (state->dead)
		snprintf(err, MODULE_TEXT_BYTES, "the module %s has just crashed: try again", state->name);
	else if (find_user(state))
		snprintf(err, MODULE_TEXT_BYTES, "the module %s is in use by %s: unload that one first",
			 state->name, find_user(state)->name);
	else if (state->refs)
		snprintf(err, MODULE_TEXT_BYTES, "the module %s is in use %u times: end its users first",
			 state->name, state->refs);
	else if (!state->exit)
		snprintf(err, MODULE_TEXT_BYTES, "the module %s has no module_exit(): it stays until the "
			 "fabric ends", state->name);
	else
		return true;
	return false;
}

void modules_unload(struct modules *loader, const char *node, const char *name,
		    modules_done *done, void *ctx)
{
	struct module_state *state = find(loader, node, name);
	char err[MODULE_TEXT_BYTES];

	if (!state) {
		snprintf(err, sizeof(err), "%s has no module %.80s: 'softib lsmod %s' lists them", node,
			 name, node);
		done(ctx, err, NULL);
		return;
	}
	if (state->phase == MODULE_CRASHED) {
		forget(state, true);
		done(ctx, NULL, "it had crashed: its code stays in memory");
		return;
	}
	if (!may_go(state, err)) {
		done(ctx, err, NULL);
		return;
	}
	state->phase = MODULE_UNLOADING;
	state->done = done;
	state->ctx = ctx;
	if (rt_fiber_start(loader->rt, unload, state, NULL)) {
		state->phase = MODULE_LIVE;
		finish(state, "out of memory");
	}
}

/* --- all of them --- */

static void list_users(const struct module_state *state, char text[MODULE_TEXT_BYTES])
{
	struct module_state *other;
	size_t len = 0;

	text[0] = 0;
	list_for_each_entry(other, &state->loader->modules, node)
		if (module_uses(other, state) && len < MODULE_TEXT_BYTES)
			len += (size_t)snprintf(text + len, MODULE_TEXT_BYTES - len, "%s%s",
						len ? "," : "", other->name);
}

int modules_each(struct modules *loader, const char *node,
		 int (*fn)(void *ctx, const struct modules_row *row), void *ctx)
{
	struct module_state *state;
	int ret = 0;

	list_for_each_entry(state, &loader->modules, node) {
		struct modules_row row = {.node = state->node_name,
					  .name = state->name,
					  .state = phase_name[state->phase],
					  .bytes = state->to - state->from,
					  .refs = state->refs};
		char users[MODULE_TEXT_BYTES];

		if (state->phase == MODULE_GONE || (node && strcmp(node, state->node_name)))
			continue;
		list_users(state, users);
		row.users = users;
		row.private = state;
		ret = fn(ctx, &row);
		if (ret)
			break;
	}
	return ret;
}

void modules_each_param(const struct modules_row *row,
			void (*fn)(void *ctx, const char *name, const char *value), void *ctx)
{
	const struct module_state *state = row->private;
	const struct module *module = state->module;
	char value[MODULE_TEXT_BYTES];

	if (!module || state->dead || !state->handle)
		return;
	for (const struct kernel_param *p = module->params; p && p < module->params_end; p++) {
		if (!p->perm)
			continue;
		module_param_text(p, value, sizeof(value));
		fn(ctx, p->name, value);
	}
}

static void ignore(void *ctx, const char *error, const char *note)
{
}

void modules_unload_all(struct modules *loader)
{
	struct module_state *state;
	bool again;

	loader->ending = true;
	do {
		again = false;
		list_for_each_entry(state, &loader->modules, node) {
			if (state->phase != MODULE_LIVE || state->dead || !state->exit ||
			    find_user(state))
				continue;
			state->refs = 0; /* who has it, goes as well */
			modules_unload(loader, state->node_name, state->name, ignore, NULL);
			again = true; /* the list has changed */
			break;
		}
	} while (again);
}

const char *modules_busy(struct modules *loader)
{
	struct module_state *state;

	list_for_each_entry(state, &loader->modules, node)
		if (state->phase < MODULE_CRASHED && (state->exit || state->phase != MODULE_LIVE))
			return state->name;
	return NULL;
}

int modules_create(struct rt *rt, const char *dir, struct modules **out)
{
	struct modules *loader = rt_zalloc(sizeof(*loader));

	if (!loader)
		return -ENOMEM;
	loader->rt = rt;
	snprintf(loader->dir, sizeof(loader->dir), "%s", dir);
	INIT_LIST_HEAD(&loader->modules);
	list_add_tail(&loader->node, &loaders);
	*out = loader;
	return 0;
}

void modules_destroy(struct modules *loader)
{
	struct module_state *state, *next;

	list_for_each_entry_safe(state, next, &loader->modules, node) {
		module_close(state, true);
		if (state->phase == MODULE_GONE || state->phase == MODULE_CRASHED) {
			list_del(&state->node);
			rt_free(state);
		}
	}
	list_del(&loader->node);
	rt_free(loader);
}
