/* SPDX-License-Identifier: MIT */
/* tests/regress/pool_failures.c - tasks that fail on a pool.
 */
#include "engine/pool_fixture.h"

/* What the failure hook has seen. */
struct failures {
    tally panics;
    tally fails;
    tally others;
};

static void note_failure(void *arg, const pirn_failure *failure)
{
    struct failures *failures = arg;

    EXPECT_STR_EQ("clumsy", failure->name);
    if (failure->outcome == PIRN_EPANIC) {
        EXPECT_STR_EQ("at 42", failure->message);
        tally_up(&failures->panics);
    } else if (failure->outcome == PIRN_EFAILED) {
        EXPECT_STR_EQ("no 7", failure->message);
        tally_up(&failures->fails);
    } else {
        EXPECT_EQ(-EIO, failure->outcome);
        tally_up(&failures->others);
    }
}

static int panic(void *arg)
{
    (void)arg;
    EXPECT_EQ(0, pirn_yield());
    pirn_panic("at %d", 42);
}

static int fail(void *arg)
{
    (void)arg;
    EXPECT_EQ(0, pirn_yield());
    return -EIO;
}

static enum pirn_poll step_fail(struct probe *probe, pirn_cx *cx)
{
    (void)probe;
    pirn_cx_fail(cx, "no %d", 7);
    return PIRN_READY;
}

/* Goal: every failure that nobody joined reaches the hook once, from whatever
 * worker; panics leave their stacks behind and are counted; the others go on.
 * Method: many of each, on several workers. */
TEST(pool_failures_reach_the_hook)
{
    enum { EACH = 30 };

    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        struct failures failures = {.panics = {0}};
        pirn_runtime *rt =
            pool_with(&(pirn_runtime_options){.workers = workers,
                                              .on_failure = note_failure,
                                              .on_failure_arg = &failures});
        const pirn_spawn_options options = {.runtime = rt, .name = "clumsy"};
        struct probe probe = probe_of(step_fail, NULL, NULL);
        pirn_runtime_info info;
        pirn_report report;

        for (int i = 0; i < EACH; i++) {
            EXPECT_EQ(0, pirn_go_with(panic, NULL, &options, NULL));
            EXPECT_EQ(0, pirn_go_with(fail, NULL, &options, NULL));
            EXPECT_EQ(0,
                      pirn_spawn(&probe.future, sizeof probe, &options, NULL));
        }
        wait_for_tally(&failures.panics, EACH);
        wait_for_tally(&failures.fails, EACH);
        wait_for_tally(&failures.others, EACH);
        pirn_runtime_get_info(rt, &info);
        EXPECT_EQ(3 * EACH, info.failures);
        EXPECT_EQ(0, pirn_runtime_shutdown(rt, PIRN_NEVER, &report));
        EXPECT_EQ(3 * EACH, report.failed);
        EXPECT_EQ(EACH, report.quarantined);
        pirn_runtime_unref(rt);
        EXPECT_EQ(EACH, tally_of(&failures.panics));
        EXPECT_EQ(EACH, tally_of(&failures.fails));
        EXPECT_EQ(EACH, tally_of(&failures.others));
    }
}

/* Goal: a failure that is joined reaches the joiner alone.
 * Method: join each. */
TEST(pool_failures_joined_are_silent)
{
    struct failures failures = {.panics = {0}};
    pirn_runtime *rt =
        pool_with(&(pirn_runtime_options){.workers = 2,
                                          .on_failure = note_failure,
                                          .on_failure_arg = &failures});
    pirn_task *task = NULL;

    EXPECT_EQ(PIRN_EPANIC, join_and_unref(go_task(rt, panic, NULL)));
    EXPECT_EQ(-EIO, join_and_unref(go_task(rt, fail, NULL)));
    spawn_probe(rt, step_fail, NULL, &task);
    EXPECT_EQ(PIRN_EFAILED, join_and_unref(task));
    EXPECT_EQ(0, pirn_runtime_shutdown(rt, PIRN_NEVER, NULL));
    EXPECT_EQ(0, tally_of(&failures.panics) + tally_of(&failures.fails) +
                     tally_of(&failures.others));
    pirn_runtime_unref(rt);
}

static int abort_other(void *arg)
{
    pirn_task_abort(arg);
    return 0;
}

/* Goal: a task may be aborted from anywhere, any number of times, and ends once; a
 * stackless task is dropped, and a fiber that hears of it while it runs may leave
 * by its own path.
 * Method: several tasks and a thread abort the same ones. */
TEST(pool_abort_from_many_places)
{
    for (size_t i = 0; i < test_size(5, 100, 5000); i++) {
        pirn_runtime *rt = pool_new(2);
        const pirn_spawn_options options = {.runtime = rt};
        struct bell bell;
        tally drops = {0};
        struct probe probe = probe_of(step_never, NULL, &drops);
        pirn_task *fiber, *stackless, *hands[4];
        pirn_report report;
        int outcome;

        bell_init(&bell);
        fiber = go_task(rt, hear_bell, &bell);
        EXPECT_EQ(0,
                  pirn_spawn(&probe.future, sizeof probe, &options, &stackless));
        if (i % 2 == 0)
            wait_for_tally(&bell.waiting, 1);
        for (int h = 0; h < 4; h++)
            hands[h] =
                go_task(rt, abort_other, h % 2 == 0 ? fiber : stackless);
        pirn_task_abort(fiber);
        pirn_task_abort(stackless);
        for (int h = 0; h < 4; h++)
            EXPECT_EQ(0, join_and_unref(hands[h]));
        outcome = join_and_unref(fiber);
        EXPECT(outcome == PIRN_EABORTED || outcome == -ECANCELED);
        EXPECT_EQ(PIRN_EABORTED, join_and_unref(stackless));
        EXPECT_EQ(1, tally_of(&drops));
        EXPECT_EQ(0, pirn_runtime_shutdown(rt, PIRN_NEVER, &report));
        EXPECT_EQ(2, report.aborted + report.cancelled);
        pirn_runtime_unref(rt);
        bell_ring(&bell);
    }
}
