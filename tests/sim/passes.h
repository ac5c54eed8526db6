/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Runs that tests of the simulator expect to pass. */
#ifndef SOFTIB_SIM_PASSES_H
#define SOFTIB_SIM_PASSES_H

#include "../unit/test.h"

#include <inttypes.h>

#include "sim.h"

static inline struct sim_options options(uint64_t seed, enum plan_kind kind)
{
	return (struct sim_options){.seed = seed, .sabotage = -1, .kind = (int)kind};
}

static inline void passes(const struct sim_options *o, struct sim_result *r)
{
	run_child(o, r);
	if (r->failed)
		fail_msg("seed %" PRIu64 " of %s: %s", o->seed, plan_kind_names[o->kind],
			 r->text);
}

#endif
