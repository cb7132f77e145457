/* SPDX-License-Identifier: MIT */
/* src/task/state_hot.h - the transitions that every wake and every poll makes;
 * see state.h, which includes this.
 */
#ifndef PIRN_TASK_STATE_HOT_H
#define PIRN_TASK_STATE_HOT_H

#include "base/assert.h"

/* Why every transition is acq_rel: release publishes what the caller did before
 * to whoever runs next, acquire lets the claim see what all earlier callers
 * did.  The other half of each is every other transition of the same word. */
static inline bool pirn__state_step(pirn__state *state, uint64_t *expected,
                                    uint64_t desired)
{
    /* acq_rel [state.word]: see above; a failure only reloads. */
    return pirn__cas_weak(state, expected, desired, acq_rel, relaxed);
}

static inline uint64_t pirn__state_peek(const pirn__state *state)
{
    /* acquire [state.word]: a glance that finds COMPLETE may read the
     * outcome. */
    return pirn__load(state, acquire);
}

/* The first value for a pirn__state_step() loop. */
static inline uint64_t pirn__state_guess(const pirn__state *state)
{
    /* relaxed: only a guess, which the compare-and-swap confirms. */
    return pirn__load(state, relaxed);
}

static inline void pirn__state_open(pirn__state *state, uint64_t flags,
                                    bool handle)
{
    uint64_t word = flags | PIRN__QUEUED | PIRN__REF;

    if (handle)
        word |= PIRN__JOIN_INTEREST | PIRN__HANDLE;
    if (handle)
        word += PIRN__REF;
    /* release [state.word]: a look-up by id that finds the word non-zero sees
     * the whole header. */
    pirn__store(state, word, release);
}

static inline bool pirn__state_is_held(uint64_t word)
{
    return (word & PIRN__SUSPENDED) != 0 &&
           (word & (PIRN__CANCELLED | PIRN__ABORTED)) == 0;
}

/* The word after a wake. */
static inline uint64_t pirn__state_woken(uint64_t word)
{
    if ((word & (PIRN__COMPLETE | PIRN__QUEUED)) != 0)
        return word;
    if ((word & PIRN__RUNNING) != 0 || pirn__state_is_held(word))
        return word | PIRN__NOTIFIED;
    return word | PIRN__QUEUED;
}

static inline enum pirn__wake pirn__state_submit_if_queued(uint64_t before,
                                                           uint64_t after)
{
    return (~before & after & PIRN__QUEUED) != 0 ? PIRN__WAKE_SUBMIT
                                                 : PIRN__WAKE_NONE;
}

/* Nothing stands in the way: a wake makes it QUEUED.  It has the reference of its
 * group, which is not the waker's. */
static inline bool pirn__state_waits(uint64_t word)
{
    return (word & (PIRN__RUNNING | PIRN__QUEUED | PIRN__COMPLETE |
                    PIRN__SUSPENDED)) == 0;
}

static inline enum pirn__wake pirn__state_wake(pirn__state *state)
{
    uint64_t word = pirn__state_guess(state);

    if (pirn__state_waits(word) &&
        pirn__state_step(state, &word, word | PIRN__QUEUED))
        return PIRN__WAKE_SUBMIT;
    while (!pirn__state_step(state, &word, pirn__state_woken(word)))
        continue;
    return pirn__state_submit_if_queued(word, pirn__state_woken(word));
}

static inline bool pirn__state_is_pinned(const pirn__state *state)
{
    return (pirn__state_guess(state) & PIRN__PINNED) != 0;
}

static inline uint32_t pirn__state_class(const pirn__state *state)
{
    return (uint32_t)((pirn__state_guess(state) & PIRN__CLASS_MASK) >>
                      PIRN__CLASS_SHIFT);
}

static inline uint32_t pirn__state_home(const pirn__state *state)
{
    return (uint32_t)((pirn__state_guess(state) & PIRN__HOME_MASK) >>
                      PIRN__HOME_SHIFT);
}

/* state.c: start() and end() of any word. */
PIRN__COLD enum pirn__start pirn__state_start_any(pirn__state *state,
                                                  uint32_t home);
PIRN__COLD enum pirn__wake pirn__state_end_any(pirn__state *state, bool again,
                                               uint32_t loan);

static inline uint64_t pirn__state_claim(uint32_t home)
{
    return ((uint64_t)home << PIRN__HOME_SHIFT) +
           (PIRN__LOAN * PIRN__REF + PIRN__RUNNING - PIRN__QUEUED);
}

static inline bool pirn__state_start_usually(pirn__state *state, uint64_t claim)
{
    uint64_t word = pirn__state_guess(state);
    uint64_t next = (word & ~PIRN__HOME_MASK) + claim;

    /* QUEUED, and nobody wants anything else of it. */
    return (word & PIRN__TURN_MASK) == PIRN__QUEUED &&
           pirn__state_step(state, &word, next);
}

static inline enum pirn__wake pirn__state_wake_and_unref(pirn__state *state)
{
    uint64_t word = pirn__state_guess(state);

    if (pirn__state_waits(word) &&
        pirn__state_step(state, &word, (word | PIRN__QUEUED) - PIRN__REF))
        return PIRN__WAKE_SUBMIT;
    while (!pirn__state_step(state, &word,
                             pirn__state_woken(word) - PIRN__REF))
        continue;
    PIRN_ASSERT((word & PIRN__REFS_MASK) != 0);
    if ((word & PIRN__REFS_MASK) == PIRN__REF)
        return PIRN__WAKE_FREE;
    return pirn__state_submit_if_queued(word, pirn__state_woken(word));
}

static inline enum pirn__wake pirn__state_end(pirn__state *state, bool again,
                                              uint32_t loan)
{
    uint64_t word = pirn__state_guess(state);
    uint64_t next = word - PIRN__RUNNING - loan * PIRN__REF;

    if (again)
        next += PIRN__QUEUED;
    /* RUNNING, and nothing has happened meanwhile. */
    if ((word & PIRN__TURN_MASK) == PIRN__RUNNING &&
        pirn__state_step(state, &word, next))
        return again ? PIRN__WAKE_SUBMIT : PIRN__WAKE_NONE;
    return pirn__state_end_any(state, again, loan);
}

static inline bool pirn__state_may_finish(uint64_t word)
{
    return (word & (PIRN__RUNNING | PIRN__REFS_MASK | PIRN__JOIN_INTEREST |
                    PIRN__EXTRAS)) ==
           (PIRN__RUNNING | (PIRN__LOAN + 1) * PIRN__REF);
}

static inline bool pirn__state_finish_from(pirn__state *state, uint64_t word)
{
    return pirn__state_step(state, &word, 0);
}

static inline bool pirn__state_finish(pirn__state *state)
{
    uint64_t word = pirn__state_guess(state);

    do {
        PIRN_ASSERT((word & PIRN__RUNNING) != 0);
        if ((word & (PIRN__REFS_MASK | PIRN__JOIN_INTEREST)) !=
            (PIRN__LOAN + 1) * PIRN__REF)
            return false;
    } while (!pirn__state_step(state, &word, 0));
    return true;
}

static inline void pirn__state_ref_many(pirn__state *state, uint32_t count)
{
    /* relaxed: the caller has a reference already, through which it learned of
     * the cell. */
    uint64_t before = pirn__add(state, count * PIRN__REF, relaxed);

    PIRN_ASSERT((before & PIRN__REFS_MASK) < PIRN__REFS_MASK - PIRN__LOAN *
                                                 PIRN__REF);
}

static inline void pirn__state_ref(pirn__state *state)
{
    pirn__state_ref_many(state, 1);
}

static inline bool pirn__state_unref(pirn__state *state)
{
    /* acq_rel [state.word]: release orders our last use before the free, and
     * acquire lets the one that frees see all of them. */
    uint64_t before = pirn__sub(state, PIRN__REF, acq_rel);

    PIRN_ASSERT((before & PIRN__REFS_MASK) != 0);
    return (before & PIRN__REFS_MASK) == PIRN__REF;
}

#endif /* PIRN_TASK_STATE_HOT_H */
