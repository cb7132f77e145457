/* SPDX-License-Identifier: MIT */
/* tests/regress/fiber_in_place.c - the ends of a fiber that has left its worker by
 * blocking in place: it panics there, or is aborted.
 */
#include <pirn/blocking.h>
#include <pirn/select.h>

#include "engine/pool_fixture.h"

static int do_nothing(void *arg)
{
    (void)arg;
    return 0;
}

static void leave_worker(void)
{
    EXPECT_EQ(0, pirn_block_in_place(do_nothing, NULL));
}

/* What the failure hook was told. */
struct told {
    tally count;
    int outcome;
    char message[64];
};

static void note_failure(void *arg, const pirn_failure *failure)
{
    struct told *told = arg;

    told->outcome = failure->outcome;
    strncpy(told->message, failure->message, sizeof told->message - 1);
    tally_up(&told->count);
}

static pirn_report end_with_quarantined(pirn_runtime *rt, uint64_t count)
{
    pirn_runtime_info info;
    pirn_report report;

    EXPECT_EQ(0, pirn_runtime_shutdown(rt, pirn_after_ms(RESCUE_MS), &report));
    EXPECT_EQ(count, report.quarantined);
    pirn_runtime_get_info(rt, &info);
    EXPECT_EQ(count, info.stacks);
    pirn_runtime_unref(rt);
    return report;
}

static int panic_alone(void *arg)
{
    leave_worker();
    pirn_panic("%s is gone", (const char *)arg);
}

/* Goal: a panic without a worker ends the fiber alone, and says its words. */
TEST(fiber_panics_without_a_worker)
{
    struct told told = {0};
    pirn_runtime *rt = pool_with(&(pirn_runtime_options){
        .workers = 1,
        .on_failure = note_failure,
        .on_failure_arg = &told,
    });
    pirn_report report;

    go(rt, panic_alone, "the worker");
    wait_for_tally(&told.count, 1);
    EXPECT_EQ(PIRN_EPANIC, told.outcome);
    EXPECT_STR_EQ("the worker is gone", told.message);
    EXPECT_EQ(0, join_and_unref(go_task(rt, do_nothing, NULL)));
    report = end_with_quarantined(rt, 1);
    EXPECT_EQ(1, report.failed);
}

/* A fiber that is aborted while it blocks. */
struct blocked {
    tally blocks;
    tally let_go;
    pirn_task *child;
    tally ended;
    bool shielded;
};

static int block_until_let_go(void *arg)
{
    struct blocked *blocked = arg;

    tally_up(&blocked->blocks);
    wait_for_tally(&blocked->let_go, 1);
    return 0;
}

static int sleep_long(void *arg)
{
    (void)arg;
    return pirn_sleep(pirn_after_ms(RESCUE_MS));
}

/* A wait for several things at once. */
static int wait_for_some(struct blocked *blocked)
{
    pirn_sleep_op sleep;
    pirn_join_op join;
    pirn_branch branches[2] = {PIRN_BRANCH(&sleep), PIRN_BRANCH(&join)};

    pirn_sleep_init(&sleep, pirn_after_ms(RESCUE_MS));
    pirn_join_init(&join, blocked->child);
    return pirn_select(branches, 2, pirn_after_ms(RESCUE_MS / 2));
}

static int block_and_wait(void *arg)
{
    struct blocked *blocked = arg;
    int rc;

    if (blocked->shielded)
        pirn_fiber_shield_begin();
    EXPECT_EQ(0, pirn_block_in_place(block_until_let_go, blocked));
    rc = wait_for_some(blocked);
    tally_up(&blocked->ended);
    return rc;
}

static void abort_while_blocked(struct blocked *blocked, pirn_runtime *rt)
{
    pirn_task *task;

    blocked->child = go_task(rt, sleep_long, NULL);
    task = go_task(rt, block_and_wait, blocked);
    wait_for_tally(&blocked->blocks, 1);
    pirn_task_abort(task);
    tally_up(&blocked->let_go);
    EXPECT_EQ(blocked->shielded ? PIRN_EABORTED : -ECANCELED,
              join_and_unref(task));
    /* Nobody joins the child any more, so another one may. */
    pirn_task_cancel(blocked->child);
    EXPECT_EQ(-ECANCELED, join_and_unref(blocked->child));
}

/* Goal: a fiber that is aborted while it blocks in place is told so at its next
 * wait, and ends. */
TEST(fiber_aborted_without_a_worker_is_told)
{
    struct blocked blocked = {.shielded = false};
    pirn_runtime *rt = pool_new(1);

    abort_while_blocked(&blocked, rt);
    EXPECT_EQ(1, tally_of(&blocked.ended));
    (void)end_with_quarantined(rt, 0);
}

/* Goal: one that does not want to hear of it is dropped in the middle of its wait,
 * which is withdrawn: a select of a sleep and a join, under a deadline. */
TEST(fiber_aborted_without_a_worker_in_a_nested_wait)
{
    struct blocked blocked = {.shielded = true};
    pirn_runtime *rt = pool_new(1);

    abort_while_blocked(&blocked, rt);
    EXPECT_EQ(0, tally_of(&blocked.ended));
    (void)end_with_quarantined(rt, 1);
}
