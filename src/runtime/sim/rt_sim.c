/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A virtual clock: time stands still while there is work, then jumps to the
 * next timer. Random bits come from the seed (splitmix64). */
#include <errno.h>

#include "runtime/rt_private.h"
#include "runtime/sim/rt_sim.h"

struct rt_sim {
	struct rt rt;
	mono_t clock;
	uint64_t random_state;
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

int rt_sim_create(uint64_t seed, struct rt **rt)
{
	struct rt_sim *sim = rt_zalloc(sizeof(*sim));

	if (!sim)
		return -ENOMEM;
	rt_init(&sim->rt);
	sim->rt.now = sim_now;
	sim->rt.random = sim_random;
	sim->random_state = seed;
	sim->clock = (mono_t){NSEC_PER_SEC};
	*rt = &sim->rt;
	return 0;
}

void rt_sim_destroy(struct rt *rt)
{
	rt_free(container_of(rt, struct rt_sim, rt));
}

bool rt_sim_step(struct rt *rt)
{
	struct rt_sim *sim = container_of(rt, struct rt_sim, rt);
	mono_t due;

	if (rt_run_work(rt))
		return true;
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

	while (!list_empty(&rt->work) || rt_next_expiry(rt).ns <= end.ns)
		rt_sim_step(rt);
	sim->clock = end;
}

bool rt_sim_run(struct rt *rt, uint64_t steps)
{
	while (steps--)
		if (!rt_sim_step(rt))
			return true;
	return false;
}
