/* SPDX-License-Identifier: MIT */
/* src/sched/idle.c - see idle.h. */
#include "sched/idle.h"

#include "base/assert.h"
#include "task/state.h"

enum {
    IDLE_SLEEPER = PIRN__IDLE_SLEEPER,
    IDLE_NAPPER = PIRN__IDLE_NAPPER,
    IDLE_SEARCHERS = IDLE_NAPPER - 1,
};

_Static_assert(PIRN__HOME_LIMIT < IDLE_NAPPER &&
                   PIRN__HOME_LIMIT < IDLE_SLEEPER / IDLE_NAPPER,
               "each count has room for all workers and one wake");

bool pirn__idle_start_search(struct pirn__idle *idle, uint32_t workers)
{
    /* relaxed: the limit is a matter of cost, not of correctness. */
    uint32_t word = pirn__load(&idle->word, relaxed);

    if (2 * (word & IDLE_SEARCHERS) >= workers)
        return false;
    /* relaxed: a waker that sees us counts on the look that ends our search,
     * when we stop or enter a sleep or a nap. */
    pirn__add(&idle->word, 1, relaxed);
    return true;
}

bool pirn__idle_stop_search(struct pirn__idle *idle)
{
    /* seq_cst [idle.word]: before the last one's look at the queues; against a
     * waker that pushes and then sees us here. */
    uint32_t before = pirn__sub(&idle->word, 1, seq_cst);

    PIRN_ASSERT((before & IDLE_SEARCHERS) > 0);
    return (before & IDLE_SEARCHERS) == 1;
}

void pirn__idle_enter_sleep(struct pirn__idle *idle, bool searching)
{
    /* seq_cst [idle.word]: before the last look at the queues; against a waker
     * that pushes and then looks here. */
    pirn__add(&idle->word, IDLE_SLEEPER - (searching ? 1 : 0), seq_cst);
}

bool pirn__idle_leave_sleep(struct pirn__idle *idle)
{
    /* seq_cst [idle.word]: a waker no longer counts on us. */
    uint32_t before = pirn__sub(&idle->word, IDLE_SLEEPER, seq_cst);

    PIRN_ASSERT(before >= IDLE_SLEEPER);
    return before < 2 * IDLE_SLEEPER;
}

bool pirn__idle_enter_nap(struct pirn__idle *idle, uint32_t workers,
                          bool searching)
{
    /* relaxed: a guess that the swap below confirms. */
    uint32_t word = pirn__load(&idle->word, relaxed);
    uint32_t next;

    /* Ends: each failure means that another thread changed the word. */
    do {
        uint32_t away = word / IDLE_SLEEPER +
                        word % IDLE_SLEEPER / IDLE_NAPPER;

        if (away + 1 >= workers)
            return false;
        next = word + IDLE_NAPPER - (searching ? 1 : 0);
        /* seq_cst [idle.word]: before the look at what ends a nap; against a
         * waker that pushes such and then looks here. */
    } while (!pirn__cas_weak(&idle->word, &word, next, seq_cst, relaxed));
    return true;
}

void pirn__idle_leave_nap(struct pirn__idle *idle)
{
    /* relaxed: a waker that still counts on us only wakes once too often. */
    uint32_t before = pirn__sub(&idle->word, IDLE_NAPPER, relaxed);

    PIRN_ASSERT((before & (IDLE_SLEEPER - 1)) >= IDLE_NAPPER);
}

/* Count a wake that is under way as a searcher, unless there is one already or
 * nobody to be woken: the word is less than `least`. */
static bool claim(struct pirn__idle *idle, uint32_t least)
{
    /* seq_cst [idle.word]: after the work became visible; against a sleeper
     * that enters and then looks at the queues. */
    uint32_t word = pirn__load(&idle->word, seq_cst);

    /* Ends: each failure means that another thread changed the word. */
    do {
        if (word < least || (word & IDLE_SEARCHERS) != 0)
            return false;
        /* relaxed: of several wakers one wakes; whoever is woken sees why by
         * the wake descriptor. */
    } while (!pirn__cas_weak(&idle->word, &word, word + 1, relaxed, relaxed));
    return true;
}

bool pirn__idle_claim_wake(struct pirn__idle *idle)
{
    return claim(idle, IDLE_SLEEPER);
}

bool pirn__idle_claim_any(struct pirn__idle *idle)
{
    return claim(idle, IDLE_NAPPER);
}
