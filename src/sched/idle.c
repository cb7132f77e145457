/* SPDX-License-Identifier: MIT */
/* src/sched/idle.c - see idle.h. */
#include "sched/idle.h"

#include "base/assert.h"

enum {
    IDLE_SLEEPER = PIRN__IDLE_SLEEPER,
    IDLE_SEARCHERS = IDLE_SLEEPER - 1,
};

bool pirn__idle_start_search(struct pirn__idle *idle, uint32_t workers)
{
    /* relaxed: the limit is a matter of cost, not of correctness. */
    uint32_t word = pirn__load(&idle->word, relaxed);

    if (2 * (word & IDLE_SEARCHERS) >= workers)
        return false;
    /* seq_cst [idle.word]: a waker that sees us counts on our search, which
     * comes after this. */
    pirn__add(&idle->word, 1, seq_cst);
    return true;
}

bool pirn__idle_stop_search(struct pirn__idle *idle)
{
    /* seq_cst [idle.word]: as above; work that becomes visible after this needs
     * a wake of its own. */
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

/* Count a wake that is under way as a searcher, unless there is one already or
 * fewer than `sleeping` sleep. */
static bool claim(struct pirn__idle *idle, uint32_t sleeping)
{
    /* seq_cst [idle.word]: after the work became visible; against a sleeper
     * that enters and then looks at the queues. */
    uint32_t word = pirn__load(&idle->word, seq_cst);

    /* Ends: each failure means that another thread changed the word. */
    do {
        if (word < sleeping * IDLE_SLEEPER || (word & IDLE_SEARCHERS) != 0)
            return false;
        /* seq_cst [idle.word]: of several wakers one wakes. */
    } while (!pirn__cas_weak(&idle->word, &word, word + 1, seq_cst, relaxed));
    return true;
}

bool pirn__idle_claim_wake(struct pirn__idle *idle)
{
    return claim(idle, 1);
}

bool pirn__idle_claim_nap(struct pirn__idle *idle)
{
    return claim(idle, 0);
}
