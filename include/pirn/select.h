/* SPDX-License-Identifier: MIT */
/* pirn/select.h - wait for several futures at once.
 *
 * A branch names a future.  The branches of a wait stand in an array; array and
 * futures are the caller's, and nothing is allocated for a few of them.
 *
 *     pirn_branch branches[] = {PIRN_BRANCH(&reading),
 *                               PIRN_BRANCH(&sleeping)};
 *     int winner = pirn_select(branches, 2, pirn_after_ms(500));
 *
 *     if (winner == 0)
 *         use(reading.n);
 *
 * Afterwards each branch says what became of it.  `ended`: its future said
 * PIRN_READY, and its result is in the future's own struct, to be taken or
 * discarded.  `future` NULL: it was dropped.  Else it is live, because it has
 * been kept or was off, and waits on in the next call.
 *
 * There are straight-line calls for fibers and plain threads, and operations,
 * which are futures, for everything else.  From the init of an operation to its
 * end the branches and what they name belong to it.
 *
 * Each poll of an operation takes one unit of coop budget, before a branch is
 * polled.  A branch that is polled and has to wait costs none.  Up to 16
 * branches are all polled when one of them is woken.  With more, only those
 * that were woken are; that takes one allocation at the first poll, about four
 * bytes a branch, and without memory for it all are polled.
 */
#ifndef PIRN_SELECT_H
#define PIRN_SELECT_H

#include <pirn/future.h>

PIRN_BEGIN_DECLS

typedef struct pirn_branch {
    pirn_future *future; /* live; NULL: there is no such branch */
    bool off;   /* as though it were not there: neither polled nor dropped */
    bool keep;  /* stays live when the wait ends without it */
    bool ended; /* out: its future said PIRN_READY; not polled again */
    int outcome; /* out: pirn_future_outcome(), once it has ended */
} pirn_branch;

/* The initialiser of a branch: a pointer to any struct whose member `future`
 * is the future. */
#define PIRN_BRANCH(op) \
    { \
        &(op)->future, false, false, false, 0 \
    }
/* The same of one that is kept. */
#define PIRN_BRANCH_KEPT(op) \
    { \
        &(op)->future, false, true, false, 0 \
    }

/* Give a branch a live future, for instance the next operation after the one
 * that has ended.  `off` and `keep` stay as they are.
 *
 * Thread    the one that may touch the branch
 * Owns      a live future that the branch had before is not dropped
 */
PIRN_API void pirn_branch_set(pirn_branch *branch, pirn_future *future);

/* Drop the futures that are live, off or not.
 *
 * Thread    the one that may touch the branches
 * Suspends  no
 */
PIRN_API void pirn_branches_drop(pirn_branch *branches, size_t count);

/* Discard the results of the futures that have ended and whose results nobody
 * has taken; `future` is NULL afterwards.
 *
 * Thread    the one that may touch the branches
 * Suspends  no
 */
PIRN_API void pirn_branches_discard(pirn_branch *branches, size_t count);

/* Wait until one branch is ready and return its index.  The others are dropped,
 * but for those with `keep`.  Fair: each call begins at a random branch and
 * goes round.  The biased form begins at the first, so that an earlier branch
 * wins over a later one; one that is always ready, or that uses the whole
 * budget of the task up, then starves the rest.  Race ignores `keep`: the
 * losers are dropped.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    no branch has a result.  What is kept is still live; what is
 *           dropped loses what its own Cancel line says
 * Owns      on every error but -EINVAL the branches have been dropped, but for
 *           those kept or off
 * Errors    -EINVAL     no array, or more than INT_MAX branches
 *           -ENOENT     there is nothing to wait for: every branch is off, has
 *                       ended, or is NULL
 *           -ECANCELED  the task was cancelled
 *           -ETIMEDOUT  the deadline passed first
 *           -EDEADLK    called inside a poll, a drop, a waker or a hook
 *           -ENOMEM     a plain thread's first call found no memory
 *           PIRN_ESHUTDOWN  the runtime that would have to wake us is gone
 */
PIRN_API PIRN_MUST_CHECK int pirn_select(pirn_branch *branches, size_t count,
                                         pirn_deadline deadline);
PIRN_API PIRN_MUST_CHECK int pirn_select_biased(pirn_branch *branches,
                                                size_t count,
                                                pirn_deadline deadline);
PIRN_API PIRN_MUST_CHECK int pirn_race(pirn_branch *branches, size_t count,
                                       pirn_deadline deadline);

/* Wait until all branches have ended: 0, also if there are none.  try_join_all
 * waits no longer once a branch ends with a negative outcome: it returns that
 * outcome, and the other live branches are dropped.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    branches that have ended keep their results, the others are
 *           dropped, but for those with `keep`: call again to wait for these
 * Owns      on every answer, also on an error, the results of ended branches
 *           are the caller's to take or discard
 * Errors    -EINVAL     no array, or more than INT_MAX branches
 *           -ECANCELED  the task was cancelled
 *           -ETIMEDOUT  the deadline passed first
 *           -EDEADLK    called inside a poll, a drop, a waker or a hook
 *           -ENOMEM     a plain thread's first call found no memory
 *           PIRN_ESHUTDOWN  the runtime that would have to wake us is gone
 *           and from try_join_all the first negative outcome
 */
PIRN_API PIRN_MUST_CHECK int pirn_join_all(pirn_branch *branches, size_t count,
                                           pirn_deadline deadline);
PIRN_API PIRN_MUST_CHECK int pirn_try_join_all(pirn_branch *branches,
                                               size_t count,
                                               pirn_deadline deadline);

/* What both operations have in common. */
typedef struct pirn_branches {
    pirn_branch *branches_;
    size_t count_;
    size_t start_; /* the branch to begin with */
    struct pirn__wakeset *wakes_; /* who was woken; NULL: poll all */
    bool begun_;
} pirn_branches;

/* Select and race as an operation. */
typedef struct pirn_select_op {
    pirn_future future;
    pirn_branches set_;
    bool biased_;
    bool races_; /* keeps nothing */
    int index; /* the winner, once READY; -EINVAL or -ENOENT */
} pirn_select_op;

/* Prepare an operation over `branches`.
 *
 * Thread    any
 * Cancel    dropping it drops the live branches, but for those kept or off
 * Owns      the branches until its end
 * Errors    index after PIRN_READY: -EINVAL and -ENOENT as above
 */
PIRN_API void pirn_select_init(pirn_select_op *op, pirn_branch *branches,
                               size_t count);
PIRN_API void pirn_select_biased_init(pirn_select_op *op, pirn_branch *branches,
                                      size_t count);
PIRN_API void pirn_race_init(pirn_select_op *op, pirn_branch *branches,
                             size_t count);

/* join_all and try_join_all as an operation. */
typedef struct pirn_join_all_op {
    pirn_future future;
    pirn_branches set_;
    size_t left_;    /* branches that have not ended */
    bool tries_;     /* ends with the first failure */
    bool hand_back_; /* results outlive a drop */
    int rc; /* once READY: 0; the first failure; -EINVAL */
} pirn_join_all_op;

/* Prepare an operation over `branches`.
 *
 * Thread    any
 * Cancel    dropping it drops the live branches, but for those kept or off,
 *           and discards the results of those that have ended
 * Owns      the branches until its end
 * Errors    rc after PIRN_READY: -EINVAL as above; of try_join_all the first
 *           negative outcome
 */
PIRN_API void pirn_join_all_init(pirn_join_all_op *op, pirn_branch *branches,
                                 size_t count);
PIRN_API void pirn_try_join_all_init(pirn_join_all_op *op,
                                     pirn_branch *branches, size_t count);

PIRN_END_DECLS

#endif /* PIRN_SELECT_H */
