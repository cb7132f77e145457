/* SPDX-License-Identifier: MIT */
/* src/scope/join_all.c - all of several futures: join_all and try_join_all. */
#include <errno.h>

#include "scope/branch.h"
#include "task/await.h"

static enum pirn_poll join_end(pirn_join_all_op *op, int rc)
{
    op->rc = rc;
    pirn__branches_end(&op->set_, false);
    return PIRN_READY;
}

/* A failure from an earlier wait over the same branches counts, too. */
static int earlier_failure(const pirn_branches *set)
{
    for (size_t i = 0; i < set->count_; i++) {
        const pirn_branch *branch = &set->branches_[i];

        if (branch->future != NULL && branch->ended && branch->outcome < 0)
            return branch->outcome;
    }
    return 0;
}

/* At the first poll: 0, or why the wait is over already. */
static int begin(pirn_join_all_op *op, const pirn_cx *cx)
{
    if (op->rc < 0)
        return op->rc;
    op->left_ = pirn__branches_begin(&op->set_, cx);
    return op->tries_ ? earlier_failure(&op->set_) : 0;
}

static enum pirn_poll join_all_poll(pirn_future *self, pirn_cx *cx)
{
    pirn_join_all_op *op = PIRN_CONTAINER_OF(self, pirn_join_all_op, future);
    pirn_branches *set = &op->set_;
    struct pirn__round round;
    size_t index;

    if (!pirn__coop_enter(cx))
        return PIRN_PENDING;
    if (!set->begun_) {
        int rc = begin(op, cx);

        if (rc < 0)
            return join_end(op, rc);
    }
    round = pirn__branches_round(set, cx);
    while (pirn__branches_poll(set, &round, cx, &index)) {
        op->left_--;
        if (op->tries_ && set->branches_[index].outcome < 0)
            return join_end(op, set->branches_[index].outcome);
    }
    return op->left_ == 0 ? join_end(op, 0) : PIRN_PENDING;
}

static void join_all_drop(pirn_future *self)
{
    pirn_join_all_op *op = PIRN_CONTAINER_OF(self, pirn_join_all_op, future);
    pirn_branches *set = &op->set_;

    pirn__branches_end(set, false);
    if (!op->hand_back_)
        pirn_branches_discard(set->branches_, set->count_);
}

static void join_all_discard(pirn_future *self)
{
    pirn_join_all_op *op = PIRN_CONTAINER_OF(self, pirn_join_all_op, future);

    pirn_branches_discard(op->set_.branches_, op->set_.count_);
}

static void join_all_describe(const pirn_future *self, pirn_text *out)
{
    const pirn_join_all_op *op =
        PIRN_CONTAINER_OF(self, const pirn_join_all_op, future);

    pirn_text_append(out, "join of %zu ", op->set_.count_);
    pirn__branches_describe(&op->set_, out);
}

static int join_all_outcome(const pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, const pirn_join_all_op, future)->rc;
}

static const pirn_future_ops join_all_ops = {
    .poll = join_all_poll,
    .drop = join_all_drop,
    .discard = join_all_discard,
    .describe = join_all_describe,
    .outcome = join_all_outcome,
};

static void init(pirn_join_all_op *op, pirn_branch *branches, size_t count,
                 bool tries)
{
    *op = (pirn_join_all_op){.future = {&join_all_ops}, .tries_ = tries};
    op->rc = pirn__branches_init(&op->set_, branches, count);
}

void pirn_join_all_init(pirn_join_all_op *op, pirn_branch *branches,
                        size_t count)
{
    init(op, branches, count, false);
}

void pirn_try_join_all_init(pirn_join_all_op *op, pirn_branch *branches,
                            size_t count)
{
    init(op, branches, count, true);
}

static int wait_here(pirn_join_all_op *op, pirn_deadline deadline)
{
    int rc;

    if (op->rc < 0)
        return op->rc;
    op->hand_back_ = true;
    rc = pirn__await(&op->future, deadline);
    return rc < 0 ? rc : op->rc;
}

int pirn_join_all(pirn_branch *branches, size_t count, pirn_deadline deadline)
{
    pirn_join_all_op op;

    init(&op, branches, count, false);
    return wait_here(&op, deadline);
}

int pirn_try_join_all(pirn_branch *branches, size_t count,
                      pirn_deadline deadline)
{
    pirn_join_all_op op;

    init(&op, branches, count, true);
    return wait_here(&op, deadline);
}
