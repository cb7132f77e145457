/* SPDX-License-Identifier: MIT */
/* src/sched/idle.h - who sleeps, who searches, and when to wake another.
 *
 * One word counts the workers that sleep in the wait set and those that search
 * for work.  Whoever makes work visible wakes a sleeper only if nobody searches:
 * a searcher will find it, and the last searcher to find something wakes the
 * next.  So one wake is under way at a time, never a broadcast.
 *
 * No wake is lost:
 *   the waker    makes the work visible (seq_cst), then looks at the word
 *   the sleeper  enters the word (seq_cst), then looks at all queues again, and
 *                only then sleeps
 * and a wake that was claimed counts as a searcher from then on, until whoever
 * harvests the wake descriptor has searched.
 */
#ifndef PIRN_SCHED_IDLE_H
#define PIRN_SCHED_IDLE_H

#include "base/atomic.h"

enum { PIRN__IDLE_SLEEPER = 1 << 16 };

struct pirn__idle {
    PIRN_ATOMIC(uint32_t) word PIRN_CACHE_ALIGNED; /* sleeping << 16 |
                                                      searching */
};

/* Become a searcher, unless half of `workers` search already. */
bool pirn__idle_start_search(struct pirn__idle *idle, uint32_t workers);

/* Stop searching.  True for the last one: if it found something it wakes the
 * next. */
bool pirn__idle_stop_search(struct pirn__idle *idle);

/* About to sleep; `searching` also stops that.  The caller now looks at all
 * queues once more. */
void pirn__idle_enter_sleep(struct pirn__idle *idle, bool searching);

/* Awake again; true if nobody sleeps any more. */
bool pirn__idle_leave_sleep(struct pirn__idle *idle);

/* After work became visible: true for the one who has to wake a sleeper; the
 * wake counts as a searcher. */
bool pirn__idle_claim_wake(struct pirn__idle *idle);
/* The same where somebody naps, though nobody may sleep.  One wake at a time in
 * this case too: two would be harvested as one. */
bool pirn__idle_claim_nap(struct pirn__idle *idle);

/* How many sleep.  After work became visible 0 means that nobody needs to be
 * woken; else it is a hint. */
static inline uint32_t pirn__idle_sleepers(const struct pirn__idle *idle)
{
    /* seq_cst [idle.word]: as in pirn__idle_claim_wake(); for a pinned worker
     * after it has said that it sleeps apart. */
    return pirn__load(&idle->word, seq_cst) / PIRN__IDLE_SLEEPER;
}

#endif /* PIRN_SCHED_IDLE_H */
