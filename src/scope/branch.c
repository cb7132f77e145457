/* SPDX-License-Identifier: MIT */
/* src/scope/branch.c - polling the branches of a select or a join. */
#include "scope/branch.h"

#include <errno.h>
#include <limits.h>

enum { DESCRIBED = 4 }; /* branches that a text names */

void pirn_branch_set(pirn_branch *branch, pirn_future *future)
{
    branch->future = future;
    branch->ended = false;
    branch->outcome = 0;
}

static bool is_live(const pirn_branch *branch)
{
    return branch->future != NULL && !branch->ended;
}

static void drop_branch(pirn_branch *branch)
{
    pirn_future *future = branch->future;

    branch->future = NULL;
    pirn_future_drop(future);
}

void pirn_branches_drop(pirn_branch *branches, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_live(&branches[i]))
            drop_branch(&branches[i]);
}

void pirn_branches_discard(pirn_branch *branches, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pirn_branch *branch = &branches[i];

        if (branch->future == NULL || !branch->ended)
            continue;
        pirn_future_discard(branch->future);
        branch->future = NULL;
    }
}

bool pirn__coop_enter(pirn_cx *cx)
{
    if (pirn__coop_left(cx) == 1)
        cx->turn_->budget = 0;
    return pirn__coop_spend(cx);
}

int pirn__branches_init(pirn_branches *set, pirn_branch *branches,
                        size_t count)
{
    int rc = 0;

    if (count > INT_MAX || (branches == NULL && count > 0)) {
        rc = -EINVAL;
        count = 0;
    }
    *set = (pirn_branches){.branches_ = branches, .count_ = count};
    return rc;
}

size_t pirn__branches_begin(pirn_branches *set, const pirn_cx *cx)
{
    size_t waiting = 0;

    set->begun_ = true;
    for (size_t i = 0; i < set->count_; i++)
        waiting += pirn__branch_waits(&set->branches_[i]);
    if (waiting > PIRN__WAKESET_FEW)
        set->wakes_ = pirn__wakeset_for(set->count_, PIRN__WAKESET_FEW, cx);
    return waiting;
}

struct pirn__round pirn__branches_round(pirn_branches *set,
                                        const pirn_cx *cx)
{
    if (set->wakes_ != NULL)
        pirn__wakeset_arm(set->wakes_, cx);
    return pirn__round_begin(set->wakes_, set->count_, set->start_);
}

static enum pirn_poll poll_branch(pirn_branch *branch, pirn_cx *cx)
{
    int32_t before = pirn__coop_left(cx);

    if (branch->future->ops->poll(branch->future, cx) == PIRN_PENDING) {
        pirn__coop_refund(cx, before);
        return PIRN_PENDING;
    }
    branch->ended = true;
    branch->outcome = pirn_future_outcome(branch->future);
    return PIRN_READY;
}

bool pirn__branches_poll(pirn_branches *set, struct pirn__round *round,
                         pirn_cx *cx, size_t *index)
{
    bool had_budget = pirn__coop_left(cx) > 0;
    pirn_cx child;

    while (pirn__round_next(round, cx, &child, index)) {
        pirn_branch *branch = &set->branches_[*index];

        if (!pirn__branch_waits(branch))
            continue;
        /* Whoever comes too late for this poll is the first of the next. */
        if (had_budget && pirn__coop_left(cx) <= 0) {
            had_budget = false;
            set->start_ = *index;
        }
        if (poll_branch(branch, &child) == PIRN_READY)
            return true;
    }
    return false;
}

void pirn__branches_end(pirn_branches *set, bool all)
{
    for (size_t i = 0; i < set->count_; i++) {
        pirn_branch *branch = &set->branches_[i];

        if (pirn__branch_waits(branch) && (all || !branch->keep))
            drop_branch(branch);
    }
    pirn__wakeset_close(set->wakes_);
    set->wakes_ = NULL;
}

void pirn__branches_describe(const pirn_branches *set, pirn_text *out)
{
    size_t named = 0;

    for (size_t i = 0; i < set->count_ && named < DESCRIBED; i++) {
        const pirn_branch *branch = &set->branches_[i];

        if (!pirn__branch_waits(branch))
            continue;
        pirn_text_append(out, named == 0 ? "(" : ", ");
        pirn_future_describe(branch->future, out);
        named++;
    }
    pirn_text_append(out, named == 0 ? "()" : ")");
}
