/* SPDX-License-Identifier: MIT */
/* src/scope/select.c - the first of several futures: select and race. */
#include <errno.h>

#include "scope/branch.h"
#include "task/await.h"

static enum pirn_poll select_end(pirn_select_op *op, int index)
{
    op->index = index;
    pirn__branches_end(&op->set_, op->races_);
    return PIRN_READY;
}

static enum pirn_poll select_poll(pirn_future *self, pirn_cx *cx)
{
    pirn_select_op *op = PIRN_CONTAINER_OF(self, pirn_select_op, future);
    pirn_branches *set = &op->set_;
    struct pirn__round round;
    size_t index;

    if (!pirn__coop_enter(cx))
        return PIRN_PENDING;
    if (op->index < 0)
        return select_end(op, op->index);
    if (!set->begun_ && pirn__branches_begin(set, cx) == 0)
        return select_end(op, -ENOENT);
    set->start_ = op->biased_ ? 0 : pirn__random_below((uint32_t)set->count_);
    round = pirn__branches_round(set, cx);
    if (!pirn__branches_poll(set, &round, cx, &index))
        return PIRN_PENDING;
    return select_end(op, (int)index);
}

static void select_drop(pirn_future *self)
{
    pirn_select_op *op = PIRN_CONTAINER_OF(self, pirn_select_op, future);

    pirn__branches_end(&op->set_, op->races_);
}

static void select_discard(pirn_future *self)
{
    pirn_select_op *op = PIRN_CONTAINER_OF(self, pirn_select_op, future);

    if (op->index >= 0)
        pirn_branches_discard(&op->set_.branches_[op->index], 1);
}

static void select_describe(const pirn_future *self, pirn_text *out)
{
    const pirn_select_op *op =
        PIRN_CONTAINER_OF(self, const pirn_select_op, future);

    pirn_text_append(out, op->races_ ? "race" : "select");
    pirn__branches_describe(&op->set_, out);
}

static int select_outcome(const pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, const pirn_select_op, future)->index;
}

static const pirn_future_ops select_ops = {
    .poll = select_poll,
    .drop = select_drop,
    .discard = select_discard,
    .describe = select_describe,
    .outcome = select_outcome,
};

static void init(pirn_select_op *op, pirn_branch *branches, size_t count)
{
    *op = (pirn_select_op){.future = {&select_ops}};
    op->index = pirn__branches_init(&op->set_, branches, count);
}

void pirn_select_init(pirn_select_op *op, pirn_branch *branches, size_t count)
{
    init(op, branches, count);
}

void pirn_select_biased_init(pirn_select_op *op, pirn_branch *branches,
                             size_t count)
{
    init(op, branches, count);
    op->biased_ = true;
}

void pirn_race_init(pirn_select_op *op, pirn_branch *branches, size_t count)
{
    init(op, branches, count);
    op->races_ = true;
}

static int wait_here(pirn_select_op *op, pirn_deadline deadline)
{
    int rc;

    if (op->index < 0)
        return op->index;
    rc = pirn__await(&op->future, deadline);
    return rc < 0 ? rc : op->index;
}

int pirn_select(pirn_branch *branches, size_t count, pirn_deadline deadline)
{
    pirn_select_op op;

    init(&op, branches, count);
    return wait_here(&op, deadline);
}

int pirn_select_biased(pirn_branch *branches, size_t count,
                       pirn_deadline deadline)
{
    pirn_select_op op;

    pirn_select_biased_init(&op, branches, count);
    return wait_here(&op, deadline);
}

int pirn_race(pirn_branch *branches, size_t count, pirn_deadline deadline)
{
    pirn_select_op op;

    pirn_race_init(&op, branches, count);
    return wait_here(&op, deadline);
}
