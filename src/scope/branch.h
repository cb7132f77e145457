/* SPDX-License-Identifier: MIT */
/* src/scope/branch.h - polling the branches of a select or a join.
 *
 * Budget.  An operation spends one unit before it polls a branch, so that a
 * loop over waits that are always ready comes to its end.  A branch that has
 * to wait gets the unit back with which it looked: otherwise a wait for more
 * branches than the budget has units would never have polled them all, and
 * would run again and again for that reason alone.
 */
#ifndef PIRN_SCOPE_BRANCH_H
#define PIRN_SCOPE_BRANCH_H

#include <pirn/select.h>

#include "scope/wakeset.h"
#include "task/local.h"

static inline bool pirn__branch_waits(const pirn_branch *branch)
{
    return branch->future != NULL && !branch->ended && !branch->off;
}

/* 0, or -EINVAL for an array that cannot be; the set is empty then. */
int pirn__branches_init(pirn_branches *set, pirn_branch *branches,
                        size_t count);

/* At the first poll: how many branches are to be waited for. */
size_t pirn__branches_begin(pirn_branches *set, const pirn_cx *cx);

/* In each poll: a round over those that may be ready, beginning at start_. */
struct pirn__round pirn__branches_round(pirn_branches *set,
                                        const pirn_cx *cx);

/* Poll on until one has ended; its index.  False at the end of the round. */
bool pirn__branches_poll(pirn_branches *set, struct pirn__round *round,
                         pirn_cx *cx, size_t *index);

/* The operation ends: drop what is neither kept nor off, with `all` also what
 * is kept. */
void pirn__branches_end(pirn_branches *set, bool all);

/* What a select or a join over these waits for. */
void pirn__branches_describe(const pirn_branches *set, pirn_text *out);

/* Before the branches: spend a unit of the operation's own, if there is another
 * one for a branch; else as pirn_coop_spend() without budget.  Not in the middle:
 * an operation that knows no budget would win then, whatever the order. */
bool pirn__coop_enter(pirn_cx *cx);

/* The coop units that are left, and the return of one to a child that has been
 * polled with `before` and waits. */
static inline int32_t pirn__coop_left(const pirn_cx *cx)
{
    return cx->turn_ == NULL ? PIRN__COOP_UNLIMITED : cx->turn_->budget;
}

static inline void pirn__coop_refund(pirn_cx *cx, int32_t before)
{
    if (pirn__coop_left(cx) < before)
        cx->turn_->budget++;
}

#endif /* PIRN_SCOPE_BRANCH_H */
