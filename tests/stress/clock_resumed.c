/* SPDX-License-Identifier: MIT */
/* tests/stress/clock_resumed.c - a clock that was moved and follows the system
 * again: whoever waits wakes by that clock, not hours later and not over and
 * over. */
#include <errno.h>
#include <time.h>

#include <pirn/runtime.h>
#include <pirn/time.h>

#include "engine/test.h"

enum { HOUR_MS = 3600 * 1000 };

static int sleep_for_ever(void *arg)
{
    (void)arg;
    return pirn_sleep(PIRN_NEVER);
}

/* Enter a runtime whose clock is an hour ahead. */
static pirn_runtime *enter_the_future(pirn_task **out)
{
    pirn_runtime *rt;

    EXPECT_EQ(0, pirn_runtime_new(NULL, &rt));
    EXPECT_PTR_EQ(NULL, pirn_runtime_enter(rt));
    EXPECT_EQ(0, pirn_runtime_clock_pause(rt));
    EXPECT_EQ(0, pirn_runtime_clock_advance(rt, HOUR_MS * UINT64_C(1000000)));
    EXPECT_EQ(0, pirn_runtime_clock_resume(rt));
    EXPECT_EQ(0, pirn_go_with(sleep_for_ever, NULL, NULL, out));
    return rt;
}

static void leave(pirn_runtime *rt, pirn_task *task)
{
    EXPECT_EQ(0, pirn_runtime_shutdown(rt, pirn_after_ms(1000), NULL));
    EXPECT_PTR_EQ(rt, pirn_runtime_enter(NULL));
    pirn_task_unref(task);
    pirn_runtime_unref(rt);
}

/* Goal: waits of a plain thread end by the clock that is current there.
 * Method: a sleep, a join and a block_on of a few milliseconds; by the system's
 * clock each would last an hour. */
TEST(clock_moved_ahead_does_not_prolong_waits)
{
    pirn_task *task;
    pirn_runtime *rt = enter_the_future(&task);
    pirn_deadline until = pirn_after_ms(3);
    pirn_join_op join;
    int outcome;

    EXPECT_EQ(0, pirn_sleep(until));
    EXPECT_GE(pirn_now_ns(), until.ns);
    until = pirn_after_ms(3);
    EXPECT_EQ(-ETIMEDOUT, pirn_task_join(task, until, &outcome));
    EXPECT_GE(pirn_now_ns(), until.ns);
    until = pirn_after_ms(3);
    pirn_join_init(&join, task);
    EXPECT_EQ(-ETIMEDOUT, pirn_block_on(rt, &join.future, until));
    EXPECT_GE(pirn_now_ns(), until.ns);
    leave(rt, task);
}

static int ignore_everything(void *arg)
{
    (void)arg;
    pirn_fiber_shield_begin();
    return pirn_sleep(PIRN_NEVER);
}

/* Goal: a shutdown ends by the clock that is current where it was called.
 * Method: a fiber that does not leave, and a deadline of a few milliseconds. */
TEST(clock_moved_ahead_does_not_prolong_a_shutdown)
{
    pirn_task *task;
    pirn_runtime *rt = enter_the_future(&task);
    pirn_report report;

    EXPECT_EQ(0, pirn_go(ignore_everything, NULL));
    EXPECT_LE(1, pirn_runtime_turn(rt, PIRN_NEVER));
    EXPECT_EQ(-ETIMEDOUT,
              pirn_runtime_shutdown(rt, pirn_after_ms(3), &report));
    EXPECT_EQ(1, report.aborted);
    EXPECT_PTR_EQ(rt, pirn_runtime_enter(NULL));
    pirn_task_unref(task);
    pirn_runtime_unref(rt);
}

static int sleep_for_long(void *arg)
{
    (void)arg;
    return pirn_sleep(pirn_after_ms(60000));
}

/* Goal: a clock that stood still and was resumed is behind the system's; its
 * timers are due later then, not at once for ever.
 * Method: ask when the next turn is due. */
TEST(resumed_clock_does_not_keep_the_driver_awake)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    pirn_spawn_options options = {.name = "sleeper"};
    pirn_runtime *rt;

    REQUIRE(pirn_runtime_new(NULL, &rt) == 0);
    options.runtime = rt;
    EXPECT_EQ(0, pirn_runtime_clock_pause(rt));
    nanosleep(&moment, NULL);
    EXPECT_EQ(0, pirn_runtime_clock_resume(rt));
    EXPECT_EQ(0, pirn_go_with(sleep_for_long, NULL, &options, NULL));
    EXPECT_EQ(1, pirn_runtime_turn(rt, PIRN_EXPIRED));
    EXPECT_GE(pirn_runtime_next_deadline(rt).ns, pirn_after_ms(30000).ns);
    pirn_runtime_unref(rt);
}
