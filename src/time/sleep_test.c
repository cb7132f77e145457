/* SPDX-License-Identifier: MIT */
/* src/time/sleep_test.c - a sleep as a future and as a call, polled by hand on a
 * paused clock. */
#include "engine/timers_fixture.h"

#include <pthread.h>

/* A sleep that waits for `ms` from now. */
static void begin_sleep(struct test_home *home, pirn_sleep_op *op, uint64_t ms,
                        struct bell *bell)
{
    pirn_sleep_init(op, in_ms(home, ms));
    EXPECT_EQ(PIRN_PENDING, poll_in(home, &op->future, bell));
}

/* Goal: a sleep ends at its time and not before, whoever polls it meanwhile.
 * Method: poll at once, just before the time, and at it. */
TEST(sleep_ends_at_its_time_and_never_early)
{
    struct test_home home;
    struct bell bell = {0};
    pirn_sleep_op op;

    test_home_begin(&home);
    begin_sleep(&home, &op, 10, &bell);
    EXPECT_EQ(0, advance_ns(&home, 10 * MS - 1));
    EXPECT_EQ(PIRN_PENDING, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(0, rings(&bell));
    EXPECT_EQ(1, advance_ns(&home, 1));
    EXPECT_EQ(1, rings(&bell));
    EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(0, pirn_sleep_rc(&op));
    EXPECT_EQ(0, pirn_future_outcome(&op.future));
    EXPECT_EQ(0, wakers(&bell));
    test_home_finish(&home);
}

/* Goal: a time that has passed needs neither a wheel nor a runtime.
 * Method: poll once, with a home and without. */
TEST(sleep_until_the_past_is_ready_at_once)
{
    struct test_home home;
    struct bell bell = {0};
    pirn_sleep_op op;

    test_home_begin(&home);
    pirn_sleep_init(&op, in_ms(&home, 0));
    EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(0, pirn_sleep_rc(&op));
    pirn_sleep_init(&op, PIRN_EXPIRED);
    EXPECT_EQ(PIRN_READY, poll_in(NULL, &op.future, &bell));
    EXPECT_EQ(0, pirn_sleep_rc(&op));
    EXPECT_EQ(0, wakers(&bell));
    test_home_finish(&home);
}

/* Goal: a time that has passed is no error of a runtime that has ended.
 * Method: poll such a sleep on a dead wheel. */
TEST(sleep_until_the_past_is_ready_on_a_dead_runtime)
{
    struct test_home home;
    struct bell bell = {0};
    pirn_sleep_op op;

    test_home_begin(&home);
    pirn__timers_shutdown(&home.timers);
    pirn_sleep_init(&op, in_ms(&home, 0));
    EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(0, pirn_sleep_rc(&op));
    test_home_finish(&home);
}

/* Goal: a task that has held its worker for long is told of a time that came
 * meanwhile by the wheel; one that has not, at once.
 * Method: a clock that runs, and a turn that looked at it a second ago, or not
 * yet. */
TEST(sleep_over_in_a_long_turn_ends_in_the_next)
{
    struct test_home home;
    struct bell bell = {0};
    pirn_sleep_op op;
    pirn_deadline past;

    test_home_begin(&home);
    pirn__timers_resume(&home.timers);
    past = (pirn_deadline){pirn__timers_now(&home.timers) - MS};
    home.turn.now_ns = past.ns - 1000 * MS;
    pirn_sleep_init(&op, past);
    EXPECT_EQ(PIRN_PENDING, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(1, pirn__timers_fire(&home.timers, SIZE_MAX));
    EXPECT_EQ(1, rings(&bell));
    EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));

    home.turn.now_ns = 0;
    pirn_sleep_init(&op, past);
    EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));
    EXPECT(home.turn.now_ns > past.ns);
    EXPECT_EQ(0, wakers(&bell));
    test_home_finish(&home);
}

/* Goal: where nobody keeps the time a sleep says so instead of sleeping on.
 * Method: poll without a runtime, and on one that has ended before and during
 * the sleep. */
TEST(sleep_without_a_living_runtime_ends_with_an_error)
{
    struct test_home home;
    struct bell bell = {0};
    pirn_sleep_op op;

    test_home_begin(&home);
    pirn_sleep_init(&op, in_ms(&home, 10));
    EXPECT_EQ(PIRN_READY, poll_in(NULL, &op.future, &bell));
    EXPECT_EQ(PIRN_ENORUNTIME, pirn_sleep_rc(&op));

    begin_sleep(&home, &op, 10, &bell);
    pirn__timers_shutdown(&home.timers);
    EXPECT_EQ(1, rings(&bell));
    EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(PIRN_ESHUTDOWN, pirn_sleep_rc(&op));
    EXPECT_EQ(PIRN_ESHUTDOWN, pirn_future_outcome(&op.future));

    pirn_sleep_init(&op, in_ms(&home, 10));
    EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(PIRN_ESHUTDOWN, pirn_sleep_rc(&op));
    EXPECT_EQ(0, wakers(&bell));
    test_home_finish(&home);
}

/* Goal: cancelling a sleep ends it now, before its first poll as well.
 * Method: both; a cancel after the end changes nothing. */
TEST(sleep_cancelled_is_ready_with_ecanceled)
{
    struct test_home home;
    struct bell bell = {0};
    pirn_sleep_op op;

    test_home_begin(&home);
    pirn_sleep_init(&op, in_ms(&home, 10));
    pirn_sleep_cancel(&op);
    EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(-ECANCELED, pirn_sleep_rc(&op));

    begin_sleep(&home, &op, 10, &bell);
    pirn_sleep_cancel(&op);
    EXPECT_EQ(1, rings(&bell));
    EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(-ECANCELED, pirn_sleep_rc(&op));

    begin_sleep(&home, &op, 10, &bell);
    EXPECT_EQ(1, advance_ns(&home, 10 * MS));
    EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));
    pirn_sleep_cancel(&op);
    EXPECT_EQ(0, pirn_sleep_rc(&op));
    EXPECT_EQ(0, wakers(&bell));
    test_home_finish(&home);
}

/* Goal: a sleep can be moved, also after it fired, as long as nobody has seen
 * that.
 * Method: move it earlier, later, and once more after it fired. */
TEST(sleep_reset_follows_the_new_time)
{
    struct test_home home;
    struct bell bell = {0};
    pirn_sleep_op op;

    test_home_begin(&home);
    begin_sleep(&home, &op, 10, &bell);
    pirn_sleep_reset(&op, in_ms(&home, 2));
    EXPECT_EQ(1, advance_ns(&home, 2 * MS));
    pirn_sleep_reset(&op, in_ms(&home, 20));
    EXPECT_EQ(PIRN_PENDING, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(0, advance_ns(&home, 20 * MS - 1));
    EXPECT_EQ(1, advance_ns(&home, 1));
    EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(0, pirn_sleep_rc(&op));
    test_home_finish(&home);
}

/* Goal: dropping a sleep is always safe and releases everything.
 * Method: drop one that was never polled, one that waits, one that fired. */
TEST(sleep_dropped_leaves_nothing_behind)
{
    struct test_home home;
    struct bell bell = {0};
    pirn_sleep_op op;

    test_home_begin(&home);
    pirn_sleep_init(&op, in_ms(&home, 10));
    pirn_future_drop(&op.future);

    begin_sleep(&home, &op, 10, &bell);
    EXPECT_EQ(1, wakers(&bell));
    pirn_future_drop(&op.future);
    EXPECT_EQ(0, wakers(&bell));
    EXPECT_EQ(0, pirn__timers_count(&home.timers));

    begin_sleep(&home, &op, 10, &bell);
    EXPECT_EQ(1, advance_ns(&home, 10 * MS));
    pirn_future_drop(&op.future);
    EXPECT_EQ(0, wakers(&bell));
    test_home_finish(&home);
}

/* Goal: sleeps that are ready many times in a row yield to others.
 * Method: a task without budget polls one that would be ready. */
TEST(sleep_without_coop_budget_lets_others_run_first)
{
    struct test_home home;
    struct bell bell = {0};
    pirn_sleep_op op;

    test_home_begin(&home);
    home.turn.budget = 0;
    pirn_sleep_init(&op, PIRN_EXPIRED);
    EXPECT_EQ(PIRN_PENDING, poll_in(&home, &op.future, &bell));
    EXPECT(home.turn.deferred);
    EXPECT_EQ(1, rings(&bell));
    home.turn.budget = 1;
    EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));
    /* The turn that it let go by was the price. */
    EXPECT_EQ(1, home.turn.budget);
    test_home_finish(&home);
}

/* Goal: who has used its budget up wakes in time all the same.
 * Method: the first poll finds no budget, and no other one comes before the
 * time. */
TEST(sleep_without_coop_budget_is_armed_all_the_same)
{
    struct test_home home;
    struct bell bell = {0};
    pirn_sleep_op op;

    test_home_begin(&home);
    home.turn.budget = 0;
    pirn_sleep_init(&op, in_ms(&home, 10));
    EXPECT_EQ(PIRN_PENDING, poll_in(&home, &op.future, &bell));
    EXPECT(!home.turn.deferred);
    EXPECT_EQ(1, advance_ns(&home, 10 * MS));
    EXPECT_EQ(1, rings(&bell));
    EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));
    test_home_finish(&home);
}

/* Goal: a dump can say that it sleeps.
 * Method: describe. */
TEST(sleep_describes_itself)
{
    char buf[16] = "";
    pirn_text text = {.buf = buf, .size = sizeof buf};
    pirn_sleep_op op;

    pirn_sleep_init(&op, PIRN_NEVER);
    pirn_future_describe(&op.future, &text);
    EXPECT_STR_EQ("sleep", buf);
    pirn_future_drop(&op.future);
}

/* Goal: the call on a plain thread waits until the time.
 * Method: here waiting moves the clock, so an hour is soon over. */
TEST(sleep_call_on_a_plain_thread_waits_until_the_time)
{
    struct test_home home;
    pirn_deadline until;

    test_home_begin(&home);
    until = in_ms(&home, 3600 * 1000);
    EXPECT_EQ(0, pirn_sleep(until));
    EXPECT_EQ(until.ns, pirn_now_ns());
    EXPECT_EQ(0, pirn_sleep(PIRN_EXPIRED));
    EXPECT_EQ(until.ns, pirn_now_ns());
    test_home_finish(&home);
}

static enum pirn_poll sleeping_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    (void)cx;
    EXPECT_EQ(-EDEADLK, pirn_sleep(PIRN_EXPIRED));
    return PIRN_READY;
}

/* Goal: inside a poll the call is refused, even if it would not wait.
 * Method: call it in one. */
TEST(sleep_call_inside_a_poll_answers_edeadlk)
{
    static const pirn_future_ops ops = {.poll = sleeping_poll};
    struct test_home home;
    struct bell bell = {0};
    pirn_future future = {&ops};

    test_home_begin(&home);
    EXPECT_EQ(PIRN_READY, poll_in(&home, &future, &bell));
    test_home_finish(&home);
}

/* Threads. */

struct meddler {
    pirn_sleep_op *op;
    bool cancels;
    PIRN_ATOMIC(int) go;
};

static void *meddle_once(void *arg)
{
    struct meddler *meddler = arg;

    /* acquire [sleep_test.go]: the operation is prepared.  Ends: the test
     * sets it. */
    while (pirn__load(&meddler->go, acquire) == 0)
        pirn__spin_hint();
    if (meddler->cancels)
        pirn_sleep_cancel(meddler->op);
    else
        pirn_sleep_reset(meddler->op, PIRN_EXPIRED);
    return NULL;
}

/* Goal: a sleep may be reset or cancelled on another thread while its owner
 * polls it for the first time, and the change is never lost.
 * Method: a sleep for ever; whatever the order, it ends. */
TEST(sleep_changed_by_another_thread_at_its_first_poll_ends)
{
    size_t rounds = test_size(60, 400, 10000);
    struct test_home home;

    test_home_begin(&home);
    for (size_t i = 0; i < rounds; i++) {
        pirn_sleep_op op;
        struct meddler meddler = {.op = &op, .cancels = i % 2 == 0};
        struct bell bell = {0};
        pthread_t thread;

        home.turn.budget = PIRN__COOP_BUDGET;
        pirn_sleep_init(&op, PIRN_NEVER);
        REQUIRE(pthread_create(&thread, NULL, meddle_once, &meddler) == 0);
        /* release [sleep_test.go]: pairs with the thread's load. */
        pirn__store(&meddler.go, 1, release);
        if (poll_in(&home, &op.future, &bell) == PIRN_PENDING) {
            pthread_join(thread, NULL);
            (void)advance_ns(&home, 0);
            EXPECT_EQ(1, rings(&bell));
            EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));
        } else {
            pthread_join(thread, NULL);
        }
        EXPECT_EQ(meddler.cancels ? -ECANCELED : 0, pirn_sleep_rc(&op));
        EXPECT_EQ(0, wakers(&bell));
    }
    test_home_finish(&home);
}
