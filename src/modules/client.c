/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The clients of a module and the devices. Each pair of a client and a device is a
 * *member*:
 *
 *	WAITING	  the device exists, and add() was not called yet
 *	ADDING	  add() runs, and may sleep
 *	ADDED	  add() has accepted the device
 *	REFUSED	  add() has failed or crashed: remove() is not called
 *	REMOVING  remove() runs, and may sleep
 *	REMOVED	  remove() has returned; the core has not been told yet
 *
 * Three fibers may use a member at the same time: the one that calls add() of waiting
 * members (pump()), the one that unregisters the client, and the one that unregisters the
 * device. A fiber changes the state of a member between two sleeps; the others wait on
 * state->changed for the next state.
 */
#include <errno.h>
#include <string.h>

#include "modules/private.h"

enum member_phase { WAITING, ADDING, ADDED, REFUSED, REMOVING, REMOVED };

struct member {
	struct list_head node; /* state->members */
	const struct ib_client *client;
	struct ib_device *device;
	enum member_phase phase;
	bool unplugged; /* the fiber that unregisters the device owns and frees it */
};

struct module_client {
	struct list_head node; /* state->clients */
	struct ib_client *client;
	bool leaving;
};

/* a struct ib_sa_client is allocated by the module */
struct module_sa_client {
	struct list_head node; /* state->sa_clients */
	struct ib_sa_client *client;
};

static struct module_state *state_of(const struct ib_client *client)
{
	return container_of(client->module, struct module_state, scope);
}

static struct module_client *find_client(struct module_state *state,
					 const struct ib_client *client)
{
	struct module_client *c;

	list_for_each_entry(c, &state->clients, node)
		if (c->client == client)
			return c;
	return NULL;
}

static struct member *find_member(struct module_state *state, const struct ib_client *client,
				  const struct ib_device *device)
{
	struct member *m;

	list_for_each_entry(m, &state->members, node)
		if (m->client == client && m->device == device)
			return m;
	return NULL;
}

/* Return: a member of @client (NULL: any client) in @phase; NULL */
static struct member *find_in_phase(struct module_state *state, const struct ib_client *client,
				    enum member_phase phase)
{
	struct member *m;

	list_for_each_entry(m, &state->members, node)
		if ((!client || m->client == client) && m->phase == phase)
			return m;
	return NULL;
}

static void set_phase(struct module_state *state, struct member *m, enum member_phase phase)
{
	m->phase = phase;
	wake_up(&state->changed);
}

/* --- the module's functions, on a fiber --- */

static void call_add(struct module_state *state, struct member *m)
{
	void *before;
	int ret = 0;

	set_phase(state, m, ADDING);
	before = module_enter(state);
	if (m->client->add)
		ret = m->client->add(m->device);
	module_leave(state, before);
	if (ret < 0 && ret != -EOPNOTSUPP && !state->dead)
		module_log(state, "add() of client %s failed for %s: %s", m->client->name,
			   m->device->name, strerror(-ret));
	set_phase(state, m, ret < 0 || state->dead ? REFUSED : ADDED);
}

static void call_remove(struct module_state *state, struct member *m, void *client_data)
{
	void *before;

	set_phase(state, m, REMOVING);
	before = module_enter(state);
	if (m->client->remove && !state->dead)
		m->client->remove(m->device, client_data);
	module_leave(state, before);
	set_phase(state, m, REMOVED);
}

/* --- add() --- */

static void pump(void *arg)
{
	struct module_state *state = arg;
	struct member *m;

	if (state->pumping)
		return;
	state->pumping = true;
	while (!state->dead && (m = find_in_phase(state, NULL, WAITING)))
		call_add(state, m);
	state->pumping = false;
	wake_up(&state->changed);
}

static void start_pump(struct rt_work *work)
{
	struct module_state *state = container_of(work, struct module_state, pump_work);

	if (rt_fiber_start(state->loader->rt, pump, state, NULL))
		module_log(state, "no memory to tell it of a device");
}

/* called by the core, which continues before add() runs */
static int on_add(const struct ib_client *client, struct ib_device *device)
{
	struct module_state *state = state_of(client);
	struct module_client *c = find_client(state, client);
	struct member *m = state->dead || c->leaving ? NULL : rt_zalloc(sizeof(*m));

	if (!m)
		return -ENODEV;
	m->client = client;
	m->device = device;
	list_add_tail(&m->node, &state->members);
	rt_work_queue(state->loader->rt, &state->pump_work);
	return 0;
}

/* --- remove() --- */

/* The device is unregistered. Only a fiber can wait for add() or remove() to return.
 * softibd's exit does not run on a fiber; it first unloads all modules that can be. */
static void on_remove(const struct ib_client *client, struct ib_device *device, void *client_data)
{
	struct module_state *state = state_of(client);
	struct member *m = find_member(state, client, device);

	m->unplugged = true;
	if (rt_fiber_current()) {
		wait_event(state->changed, m->phase != ADDING && m->phase != REMOVING);
		if (m->phase == ADDED)
			call_remove(state, m, ib_get_client_data(device, client));
	}
	list_del(&m->node);
	rt_free(m);
	wake_up(&state->changed);
}

/* --- clients --- */

int softib_register_client(struct module *module, struct ib_client *client)
{
	struct module_state *state = module->state;
	struct module_client *c;
	int ret;

	if (find_client(state, client))
		return -EEXIST;
	c = rt_zalloc(sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->client = client;
	list_add_tail(&c->node, &state->clients);
	client->module = &state->scope;
	ret = (ib_register_client)(state->loader->rt, client);
	if (ret) {
		list_del(&c->node);
		rt_free(c);
		return ret;
	}
	if (!rt_fiber_current()) /* the fiber of pump() calls remove() */
		return 0;
	pump(state);
	wait_event(state->changed, state->dead || (!find_in_phase(state, client, WAITING) &&
						   !find_in_phase(state, client, ADDING)));
	return 0;
}

/* a member whose remove() the caller still has to call; NULL */
static struct member *next_to_remove(struct module_state *state, const struct ib_client *client)
{
	struct member *m;

	list_for_each_entry(m, &state->members, node)
		if (m->client == client && !m->unplugged && (m->phase == ADDED || m->phase == WAITING))
			return m;
	return NULL;
}

static bool is_settled(struct module_state *state, const struct ib_client *client)
{
	struct member *m;

	list_for_each_entry(m, &state->members, node)
		if (m->client == client &&
		    (m->unplugged || (m->phase != REFUSED && m->phase != REMOVED)))
			return false;
	return true;
}

void softib_unregister_client(struct module *module, struct ib_client *client)
{
	struct module_state *state = module->state;
	struct module_client *c = find_client(state, client);
	struct member *m;

	if (!c)
		return;
	c->leaving = true;
	for (;;) {
		while ((m = next_to_remove(state, client))) {
			if (m->phase == WAITING)
				set_phase(state, m, REMOVED);
			else
				call_remove(state, m, ib_get_client_data(m->device, client));
		}
		if (is_settled(state, client))
			break;
		softib_wait(&state->changed, MAX_SCHEDULE_TIMEOUT);
	}
	(ib_unregister_client)(state->loader->rt, client); /* calls on_remove() */
	list_del(&c->node);
	rt_free(c);
}

/* --- clients of the subnet administration --- */

void softib_sa_register_client(struct module *module, struct ib_sa_client *client)
{
	struct module_sa_client *c = rt_zalloc(sizeof(*c));

	ib_sa_register_client_(client, module->name);
	if (!c)
		return;
	c->client = client;
	list_add_tail(&c->node, &module->state->sa_clients);
}

void softib_sa_unregister_client(struct module *module, struct ib_sa_client *client)
{
	struct module_sa_client *c, *next;

	(ib_sa_unregister_client)(client);
	list_for_each_entry_safe(c, next, &module->state->sa_clients, node)
		if (c->client == client) {
			list_del(&c->node);
			rt_free(c);
		}
}

/* --- of the module --- */

void module_clients_init(struct module_state *state)
{
	INIT_LIST_HEAD(&state->clients);
	INIT_LIST_HEAD(&state->members);
	INIT_LIST_HEAD(&state->sa_clients);
	rt_work_init(&state->pump_work, start_pump);
	state->scope = (struct ib_client_module){
		.rt = state->loader->rt,
		.node = state->node_name,
		.add = on_add,
		.remove = on_remove,
	};
}

unsigned int module_clients_drop(struct module_state *state)
{
	struct module_sa_client *sa;
	struct module_client *c;
	unsigned int n = 0;

	rt_work_cancel(&state->pump_work);
	while (!list_empty(&state->clients)) {
		c = list_first_entry(&state->clients, struct module_client, node);
		softib_unregister_client(state->module, c->client);
		n++;
	}
	while (!list_empty(&state->sa_clients)) {
		sa = list_first_entry(&state->sa_clients, struct module_sa_client, node);
		softib_sa_unregister_client(state->module, sa->client);
		n++;
	}
	return n;
}
