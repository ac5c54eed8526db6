/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A virtual clock: time stands still while there is work, then jumps to the
 * next timer; busy pollers take a little. Random bits come from the seed (splitmix64). */
#include <errno.h>
#include <poll.h>

#include "runtime/posix/rt_posix.h"
#include "runtime/rt_private.h"
#include "runtime/sim/rt_sim.h"

/* what a turn of busy pollers costs: doubled while nothing else happens, so
 * that a packet that is held for a second does not take a million turns */
#define TURN_MIN_NS 500
#define TURN_MAX_NS (100 * NSEC_PER_USEC)

struct rt_sim {
	struct rt rt;
	mono_t clock;
	uint64_t random_state;
	uint64_t turn_ns;
	struct list_head watched;
};

static mono_t sim_now(struct rt *rt)
{
	return container_of(rt, struct rt_sim, rt)->clock;
}

static uint32_t sim_random(struct rt *rt)
{
	struct rt_sim *sim = container_of(rt, struct rt_sim, rt);
	uint64_t z = sim->random_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (uint32_t)((z ^ (z >> 31)) >> 32);
}

static void sim_io_watch(struct rt_io *io, bool readable, bool writable)
{
	struct rt_sim *sim = container_of(io->rt, struct rt_sim, rt);

	list_del_init(&io->node);
	io->ev.events = (readable ? POLLIN : 0) | (writable ? POLLOUT : 0);
	if (io->ev.events)
		list_add_tail(&io->node, &sim->watched);
}

void rt_sim_look(struct rt *rt)
{
	struct rt_sim *sim = container_of(rt, struct rt_sim, rt);
	LIST_HEAD(batch);

	list_splice_tail_init(&sim->watched, &batch);
	while (!list_empty(&batch)) {
		struct rt_io *io = list_first_entry(&batch, struct rt_io, node);
		struct pollfd fd = {.fd = io->ev.fd, .events = (short)io->ev.events};

		list_del(&io->node);
		list_add_tail(&io->node, &sim->watched);
		if (poll(&fd, 1, 0) > 0)
			io->fn(io, fd.revents & (POLLIN | POLLHUP | POLLERR),
			       fd.revents & POLLOUT);
	}
}

int rt_sim_create(uint64_t seed, struct rt **rt)
{
	struct rt_sim *sim = rt_zalloc(sizeof(*sim));

	if (!sim)
		return -ENOMEM;
	rt_init(&sim->rt);
	sim->rt.now = sim_now;
	sim->rt.random = sim_random;
	sim->rt.io_watch = sim_io_watch;
	INIT_LIST_HEAD(&sim->watched);
	sim->turn_ns = TURN_MIN_NS;
	sim->random_state = seed;
	sim->clock = (mono_t){NSEC_PER_SEC};
	*rt = &sim->rt;
	return 0;
}

void rt_sim_destroy(struct rt *rt)
{
	rt_free(container_of(rt, struct rt_sim, rt));
}

static bool turn_pollers(struct rt_sim *sim)
{
	if (!rt_poll_all(&sim->rt))
		return false;
	sim->clock = mono_add(sim->clock, sim->turn_ns);
	sim->turn_ns = MIN(2 * sim->turn_ns, (uint64_t)TURN_MAX_NS);
	rt_fire_timers(&sim->rt, sim->clock);
	return true;
}

bool rt_sim_step(struct rt *rt)
{
	struct rt_sim *sim = container_of(rt, struct rt_sim, rt);
	mono_t due;

	if (rt_run_work(rt, RT_WORK_PER_TURN)) {
		sim->turn_ns = TURN_MIN_NS;
		return true;
	}
	if (turn_pollers(sim))
		return true;
	sim->turn_ns = TURN_MIN_NS;
	due = rt_next_expiry(rt);
	if (due.ns == MONO_NEVER.ns)
		return false;
	if (mono_before(sim->clock, due))
		sim->clock = due;
	rt_fire_timers(rt, sim->clock);
	return true;
}

void rt_sim_run_for(struct rt *rt, uint64_t ns)
{
	struct rt_sim *sim = container_of(rt, struct rt_sim, rt);
	mono_t end = mono_add(sim->clock, ns);

	for (;;) {
		if (!list_empty(&rt->work) || rt_next_expiry(rt).ns <= end.ns)
			rt_sim_step(rt);
		else if (!mono_before(sim->clock, end) || !turn_pollers(sim))
			break;
	}
	if (mono_before(sim->clock, end))
		sim->clock = end;
}

bool rt_sim_run(struct rt *rt, uint64_t steps)
{
	while (steps--)
		if (!rt_sim_step(rt))
			return true;
	return false;
}

void rt_sim_jump(struct rt *rt, uint64_t ns)
{
	struct rt_sim *sim = container_of(rt, struct rt_sim, rt);

	sim->clock = mono_add(sim->clock, ns);
}
