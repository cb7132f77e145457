/* SPDX-License-Identifier: MIT */
/* tests/engine/state_start.h - the start of a popped task in one call, for tests
 * and models that have no turn: as pirn__task_run_here() makes it.
 */
#ifndef PIRN_TESTS_ENGINE_STATE_START_H
#define PIRN_TESTS_ENGINE_STATE_START_H

#include "task/state.h"

static inline enum pirn__start state_start(pirn__state *state, uint32_t home)
{
    if (pirn__state_start_usually(state, pirn__state_claim(home)))
        return PIRN__START_POLL;
    return pirn__state_start_any(state, home);
}

#endif /* PIRN_TESTS_ENGINE_STATE_START_H */
