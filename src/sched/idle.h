/* SPDX-License-Identifier: MIT */
/* src/sched/idle.h - who sleeps, who naps, who searches, and when to wake another.
 *
 * One word counts the workers that sleep in the wait set, those that nap there
 * for a moment (nap.h), and those that search for work.  Whoever makes work
 * visible wakes a sleeper only if nobody searches: a searcher will find it, and
 * the last searcher to find something wakes the next.  So one wake is under way
 * at a time, never a broadcast.
 *
 * No wake is lost:
 *   the waker    makes the work visible (seq_cst), then looks at the word
 *   the sleeper  enters the word (seq_cst), then looks at all queues again, and
 *                only then sleeps
 *   who naps     enters the word (seq_cst), then looks at what ends a nap
 * and a wake that was claimed counts as a searcher from then on, until whoever
 * harvests the wake descriptor has searched.
 */
#ifndef PIRN_SCHED_IDLE_H
#define PIRN_SCHED_IDLE_H

#include "base/atomic.h"

/* The word's fields, from the top: sleepers, nappers, searchers. */
enum { PIRN__IDLE_NAPPER = 1 << 10, PIRN__IDLE_SLEEPER = 1 << 20 };

struct pirn__idle {
    PIRN_ATOMIC(uint32_t) word PIRN_CACHE_ALIGNED;
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

/* Nap, unless all of `workers` but the caller sleep or nap, so that somebody must
 * be there to be woken: false.  `searching` is as for a sleep.  The caller now
 * looks at what ends a nap. */
bool pirn__idle_enter_nap(struct pirn__idle *idle, uint32_t workers,
                          bool searching);

void pirn__idle_leave_nap(struct pirn__idle *idle);

/* After work became visible: true for the one who has to wake a sleeper; the
 * wake counts as a searcher. */
bool pirn__idle_claim_wake(struct pirn__idle *idle);

/* The same for work for which also a nap ends. */
bool pirn__idle_claim_any(struct pirn__idle *idle);

/* How many sleep.  After work became visible 0 means that nobody needs to be
 * woken; else it is a hint. */
static inline uint32_t pirn__idle_sleepers(const struct pirn__idle *idle)
{
    /* seq_cst [idle.word]: as in pirn__idle_claim_wake(); for a pinned worker
     * after it has said that it sleeps apart. */
    return pirn__load(&idle->word, seq_cst) / PIRN__IDLE_SLEEPER;
}

/* Whether somebody sleeps or naps; the same for work for which also a nap ends. */
static inline bool pirn__idle_is_away(const struct pirn__idle *idle)
{
    /* seq_cst [idle.word]: as in pirn__idle_claim_any(). */
    return pirn__load(&idle->word, seq_cst) >= PIRN__IDLE_NAPPER;
}

#endif /* PIRN_SCHED_IDLE_H */
