/* SPDX-License-Identifier: MIT */
/* tests/engine/sim_internal.h - between sim.c, sim_story.c, sim_plant.c
 * and sim_preempt.c.
 */
#ifndef PIRN_TESTS_ENGINE_SIM_INTERNAL_H
#define PIRN_TESTS_ENGINE_SIM_INTERNAL_H

#include "engine/sim.h"
#include "testing/sim.h"

/* Put in the bugs of the system table that this run has; at its beginning. */
void sim_plant_begin(void);

/* From now on threads are preempted inside functions, too, if the library was
 * compiled for it. */
void sim_preempt_begin(void);
void sim_preempt_end(void);

/* True once in a run, at a random call, if this bug is planted. */
bool sim_planted(enum sim_plant plant, uint32_t one_of);

#endif /* PIRN_TESTS_ENGINE_SIM_INTERNAL_H */
