/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The runtime under a virtual clock: deterministic, seeded, integers only. */
#ifndef SOFTIB_RUNTIME_RT_SIM_H
#define SOFTIB_RUNTIME_RT_SIM_H

#include "runtime/rt.h"

/** rt_sim_create() - @seed names the run. Return: 0; -ENOMEM */
int rt_sim_create(uint64_t seed, struct rt **rt);
void rt_sim_destroy(struct rt *rt);
/** rt_sim_step() - run all queued work; else a turn of the pollers, which
 *  takes a moment of virtual time while they are busy; else advance the clock
 *  to the next timer and fire it. Return: false when nothing is left to do. */
bool rt_sim_step(struct rt *rt);
/** rt_sim_run_for() - step until @ns of virtual time passed or all is idle */
void rt_sim_run_for(struct rt *rt, uint64_t ns);
/** rt_sim_run() - step until idle, at most @steps. Return: true when idle */
bool rt_sim_run(struct rt *rt, uint64_t steps);
/** rt_sim_jump() - the clock leaps, as when a machine was suspended */
void rt_sim_jump(struct rt *rt, uint64_t ns);
/** rt_sim_look() - serve the watched descriptors that are ready, now. Nothing
 *  outside this process may write to one, or runs would differ. */
void rt_sim_look(struct rt *rt);

#endif
