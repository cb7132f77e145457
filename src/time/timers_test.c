/* SPDX-License-Identifier: MIT */
/* src/time/timers_test.c - entries, their states and the clock, on a paused
 * clock that the test moves; one test races real threads for TSan. */
#include "engine/lock_watch.h"
#include "engine/timers_fixture.h"

#include <pthread.h>
#include <sched.h>

#include "sys/sys.h"
#include "task/await.h"

/* Goal: entries fire at their time, not before, in the order of their times.
 * Method: three entries armed out of order; step to just before and to each. */
TEST(timers_fire_in_order_and_never_early)
{
    static const uint64_t after_ms[] = {30, 10, 20};
    struct test_home home;
    struct bell bells[3] = {0};
    pirn_timer timers[3];
    int order = 1;

    test_home_begin(&home);
    for (int i = 0; i < 3; i++) {
        bells[i].order = &order;
        pirn__timer_init(&timers[i], in_ms(&home, after_ms[i]));
        EXPECT_EQ(0, arm(&home, &timers[i], &bells[i]));
    }
    EXPECT_EQ(3, pirn__timers_count(&home.timers));
    EXPECT_EQ(0, advance_ns(&home, 10 * MS - 1));
    EXPECT_EQ(1, advance_ns(&home, 1));
    EXPECT_EQ(PIRN__TIMER_FIRED, pirn__timer_state(&timers[1]));
    EXPECT_EQ(0, advance_ns(&home, 10 * MS - 1));
    EXPECT_EQ(2, advance_ns(&home, 20 * MS));
    EXPECT_EQ(3, bells[0].place);
    EXPECT_EQ(1, bells[1].place);
    EXPECT_EQ(2, bells[2].place);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(1, rings(&bells[i]));
        pirn__timer_end(&timers[i], PIRN__TIMER_ENDED);
        EXPECT_EQ(0, wakers(&bells[i]));
    }
    test_home_finish(&home);
}

/* Goal: the driver is disturbed only by a deadline earlier than its own.
 * Method: arm at 20, 30, 20 and 10 ms; only the first and the last tell. */
TEST(timers_tell_their_owner_only_of_an_earlier_deadline)
{
    static const uint64_t after_ms[] = {20, 30, 20, 10};
    static const int expected[] = {1, 1, 1, 2};
    struct test_home home;
    struct bell bell = {0};
    pirn_timer timers[4];

    test_home_begin(&home);
    for (int i = 0; i < 4; i++) {
        pirn__timer_init(&timers[i], in_ms(&home, after_ms[i]));
        EXPECT_EQ(0, arm(&home, &timers[i], &bell));
        EXPECT_EQ(expected[i], told(&home));
    }
    pirn__timer_reset(&timers[1], in_ms(&home, 15));
    EXPECT_EQ(2, told(&home));
    pirn__timer_reset(&timers[1], in_ms(&home, 5));
    EXPECT_EQ(3, told(&home));
    for (int i = 0; i < 4; i++)
        pirn__timer_end(&timers[i], PIRN__TIMER_ENDED);
    test_home_finish(&home);
}

/* Goal: a crowd of due entries cannot keep the driver for ever.
 * Method: a hundred, fired with a limit of ten and then without. */
TEST(timers_fire_no_more_than_the_limit)
{
    enum { CROWD = 100 };
    static pirn_timer timers[CROWD];
    struct test_home home;
    struct bell bell = {0};

    test_home_begin(&home);
    for (int i = 0; i < CROWD; i++) {
        pirn__timer_init(&timers[i], in_ms(&home, 1));
        EXPECT_EQ(0, arm(&home, &timers[i], &bell));
    }
    EXPECT_EQ(0, pirn__timers_advance(&home.timers, MS));
    EXPECT_EQ(10, pirn__timers_fire(&home.timers, 10));
    EXPECT_EQ(10, rings(&bell));
    EXPECT_EQ(CROWD - 10, pirn__timers_fire(&home.timers, SIZE_MAX));
    EXPECT_EQ(CROWD, rings(&bell));
    EXPECT_EQ(0, pirn__timers_fire(&home.timers, SIZE_MAX));
    for (int i = 0; i < CROWD; i++)
        pirn__timer_end(&timers[i], PIRN__TIMER_ENDED);
    EXPECT_EQ(0, wakers(&bell));
    test_home_finish(&home);
}

static int arm_watched(struct test_home *home, pirn_timer *timer,
                       struct lock_watch *watch)
{
    pirn_waker waker = lock_watch_waker(watch);
    pirn_cx cx = pirn_cx_of_waker(&waker);

    watch->locks[0] = &home->timers.lock;
    watch->locks[1] = &timer->lock_;
    return pirn__timer_arm(timer, &home->timers, &cx);
}

/* Goal: no foreign waker is called under a lock of the timers.
 * Method: one that looks at the locks is armed, renewed, replaced, fired, armed
 * again after the time was moved, cancelled, and killed with the wheel. */
TEST(timers_call_no_foreign_waker_under_a_lock)
{
    struct test_home home;
    struct lock_watch first = {0}, second = {0};
    pirn_timer timer, forever, refused;

    test_home_begin(&home);
    pirn__timer_init(&timer, in_ms(&home, 5));
    EXPECT_EQ(0, arm_watched(&home, &timer, &first));
    EXPECT_EQ(0, arm_watched(&home, &timer, &first));
    EXPECT_EQ(1, first.clones);
    EXPECT_EQ(0, arm_watched(&home, &timer, &second));
    EXPECT_EQ(0, first.wakers);
    EXPECT_EQ(1, advance_ns(&home, 5 * MS));
    EXPECT_EQ(1, second.wakes);
    pirn__timer_reset(&timer, in_ms(&home, 5));
    EXPECT_EQ(0, arm_watched(&home, &timer, &first));
    EXPECT_EQ(1, advance_ns(&home, 5 * MS));
    EXPECT_EQ(1, first.wakes);
    pirn__timer_reset(&timer, in_ms(&home, 5));
    EXPECT_EQ(0, arm_watched(&home, &timer, &second));
    pirn__timer_cancel(&timer);
    EXPECT_EQ(2, second.wakes);
    pirn__timer_end(&timer, PIRN__TIMER_ENDED);

    pirn__timer_init(&forever, PIRN_NEVER);
    EXPECT_EQ(0, arm_watched(&home, &forever, &first));
    pirn__timers_shutdown(&home.timers);
    EXPECT_EQ(2, first.wakes);
    pirn__timer_end(&forever, PIRN__TIMER_ENDED);
    pirn__timer_init(&refused, in_ms(&home, 5));
    EXPECT_EQ(PIRN_ESHUTDOWN, arm_watched(&home, &refused, &first));
    EXPECT_EQ(0, first.found + second.found);
    EXPECT_EQ(0, first.wakers + second.wakers);
    test_home_finish(&home);
}

/* Goal: an entry that is armed again keeps its place and takes the newest
 * waker, which is cloned only if it differs.
 * Method: arm twice with one bell, then with another. */
TEST(timer_armed_again_takes_the_newest_waker)
{
    struct test_home home;
    struct bell first = {0}, second = {0};
    pirn_timer timer;

    test_home_begin(&home);
    pirn__timer_init(&timer, in_ms(&home, 5));
    EXPECT_EQ(0, arm(&home, &timer, &first));
    EXPECT_EQ(0, arm(&home, &timer, &first));
    EXPECT_EQ(1, wakers(&first));
    EXPECT_EQ(0, arm(&home, &timer, &second));
    EXPECT_EQ(0, wakers(&first));
    EXPECT_EQ(1, wakers(&second));
    EXPECT_EQ(1, advance_ns(&home, 5 * MS));
    EXPECT_EQ(0, rings(&first));
    EXPECT_EQ(1, rings(&second));
    pirn__timer_end(&timer, PIRN__TIMER_ENDED);
    EXPECT_EQ(0, wakers(&second));
    test_home_finish(&home);
}

/* Goal: whoever arms an entry that has fired already is woken at once: the
 * wake may have gone to another waker.
 * Method: fire, then arm with another bell. */
TEST(timer_armed_after_it_fired_wakes_the_newcomer)
{
    struct test_home home;
    struct bell first = {0}, second = {0};
    pirn_timer timer;

    test_home_begin(&home);
    pirn__timer_init(&timer, in_ms(&home, 5));
    EXPECT_EQ(0, arm(&home, &timer, &first));
    EXPECT_EQ(1, advance_ns(&home, 5 * MS));
    EXPECT_EQ(0, arm(&home, &timer, &second));
    EXPECT_EQ(1, rings(&second));
    pirn__timer_end(&timer, PIRN__TIMER_ENDED);
    EXPECT_EQ(0, wakers(&first));
    EXPECT_EQ(0, wakers(&second));
    test_home_finish(&home);
}

/* A waker that touches the entry it belongs to. */
static pirn_waker touch_clone(const pirn_waker *self)
{
    return *self;
}

static void touch_wake_by_ref(const pirn_waker *self)
{
    pirn__timer_cancel(self->data);
}

static void touch_wake(pirn_waker self)
{
    touch_wake_by_ref(&self);
}

static void touch_drop(pirn_waker self)
{
    (void)self;
}

/* Goal: an entry's waker is woken under no lock.
 * Method: a waker that cancels its own entry when it is woken: by the firing,
 * by a cancel, and because the entry is over before it is armed. */
TEST(timer_waker_may_touch_its_timer)
{
    static const pirn_waker_ops ops = {
        .clone = touch_clone,
        .wake = touch_wake,
        .wake_by_ref = touch_wake_by_ref,
        .drop = touch_drop,
    };
    struct test_home home;
    pirn_timer timer;
    pirn_waker waker = {&timer, &ops};
    pirn_cx cx = pirn_cx_of_waker(&waker);

    test_home_begin(&home);
    for (int way = 0; way < 3; way++) {
        pirn__timer_init(&timer, in_ms(&home, 5));
        if (way == 0)
            pirn__timer_cancel(&timer);
        EXPECT_EQ(0, pirn__timer_arm(&timer, &home.timers, &cx));
        if (way == 1)
            pirn__timer_cancel(&timer);
        if (way == 2)
            EXPECT_EQ(1, advance_ns(&home, 5 * MS));
        EXPECT_EQ(PIRN__TIMER_CANCELLED, pirn__timer_state(&timer));
        EXPECT_EQ(0, pirn__timer_arm(&timer, &home.timers, &cx));
        pirn__timer_end(&timer, PIRN__TIMER_ENDED_CANCELLED);
    }
    test_home_finish(&home);
}

/* Goal: cancelling ends the wait now, in every state, and never twice.
 * Method: cancel an IDLE, an ARMED and a FIRED entry. */
TEST(timer_cancelled_wakes_and_does_not_fire)
{
    struct test_home home;
    struct bell bell = {0};
    pirn_timer timer;

    test_home_begin(&home);
    pirn__timer_init(&timer, in_ms(&home, 5));
    pirn__timer_cancel(&timer);
    EXPECT_EQ(PIRN__TIMER_CANCELLED, pirn__timer_state(&timer));
    EXPECT_EQ(0, arm(&home, &timer, &bell));
    EXPECT_EQ(1, rings(&bell));
    pirn__timer_end(&timer, PIRN__TIMER_ENDED);

    pirn__timer_init(&timer, in_ms(&home, 5));
    EXPECT_EQ(0, arm(&home, &timer, &bell));
    pirn__timer_cancel(&timer);
    EXPECT_EQ(2, rings(&bell));
    pirn__timer_cancel(&timer);
    EXPECT_EQ(2, rings(&bell));
    EXPECT_EQ(0, advance_ns(&home, 10 * MS));
    pirn__timer_end(&timer, PIRN__TIMER_ENDED_CANCELLED);

    pirn__timer_init(&timer, in_ms(&home, 5));
    EXPECT_EQ(0, arm(&home, &timer, &bell));
    EXPECT_EQ(1, advance_ns(&home, 5 * MS));
    pirn__timer_cancel(&timer);
    EXPECT_EQ(PIRN__TIMER_CANCELLED, pirn__timer_state(&timer));
    pirn__timer_end(&timer, PIRN__TIMER_ENDED_CANCELLED);
    /* After its end nothing reaches it. */
    pirn__timer_cancel(&timer);
    pirn__timer_reset(&timer, in_ms(&home, 1));
    EXPECT_EQ(PIRN__TIMER_ENDED_CANCELLED, pirn__timer_state(&timer));
    EXPECT_EQ(0, wakers(&bell));
    test_home_finish(&home);
}

/* Goal: an entry can be moved to an earlier and to a later time, before it was
 * armed, while it is, and after it fired.
 * Method: each of them, stepping around the new time. */
TEST(timer_reset_fires_at_the_new_time_only)
{
    struct test_home home;
    struct bell bell = {0};
    pirn_timer timer;

    test_home_begin(&home);
    pirn__timer_init(&timer, in_ms(&home, 50));
    pirn__timer_reset(&timer, in_ms(&home, 10));
    EXPECT_EQ(0, arm(&home, &timer, &bell));
    EXPECT_EQ(0, advance_ns(&home, 5 * MS));
    pirn__timer_reset(&timer, in_ms(&home, 10));
    EXPECT_EQ(0, advance_ns(&home, 10 * MS - 1));
    pirn__timer_reset(&timer, in_ms(&home, 0));
    EXPECT_EQ(1, advance_ns(&home, 0));

    pirn__timer_reset(&timer, in_ms(&home, 1));
    EXPECT_EQ(PIRN__TIMER_ARMED, pirn__timer_state(&timer));
    /* What the poll does that the ring has asked for. */
    EXPECT_EQ(0, arm(&home, &timer, &bell));
    EXPECT_EQ(1, rings(&bell));
    EXPECT_EQ(0, advance_ns(&home, MS - 1));
    EXPECT_EQ(1, advance_ns(&home, 1));
    EXPECT_EQ(2, rings(&bell));
    pirn__timer_end(&timer, PIRN__TIMER_ENDED);
    test_home_finish(&home);
}

/* Goal: "for ever" is no time that could come.
 * Method: PIRN_NEVER beside the largest real deadline; the clock goes to its
 * far end; a reset brings the first one back into time. */
TEST(timer_for_ever_never_fires)
{
    struct test_home home;
    struct bell bell = {0}, far_bell = {0};
    pirn_timer timer, far;

    test_home_begin(&home);
    pirn__timer_init(&timer, PIRN_NEVER);
    pirn__timer_init(&far, (pirn_deadline){UINT64_MAX - 1});
    EXPECT_EQ(0, arm(&home, &timer, &bell));
    EXPECT_EQ(0, told(&home));
    EXPECT_EQ(0, arm(&home, &far, &far_bell));
    EXPECT_EQ(1, pirn__timers_count(&home.timers));
    EXPECT_EQ(0, advance_ns(&home, UINT64_MAX / 2));
    EXPECT_EQ(1, advance_ns(&home, UINT64_MAX));
    EXPECT_EQ(1, rings(&far_bell));
    EXPECT_EQ(0, rings(&bell));
    EXPECT_EQ(PIRN__TIMER_ARMED, pirn__timer_state(&timer));

    pirn__timer_reset(&timer, PIRN_EXPIRED);
    EXPECT_EQ(1, pirn__timers_fire(&home.timers, SIZE_MAX));
    EXPECT_EQ(1, rings(&bell));
    pirn__timer_end(&timer, PIRN__TIMER_ENDED);
    pirn__timer_end(&far, PIRN__TIMER_ENDED);
    test_home_finish(&home);
}

/* Goal: the end of the runtime reaches everyone who waits, and who comes late
 * is refused.
 * Method: one entry waits for a time, one for ever, one has fired; afterwards
 * another is armed.  The home stays until the last of them is ended. */
TEST(timers_shut_down_wake_every_waiter_as_dead)
{
    struct test_home home;
    struct bell bell = {0}, endless_bell = {0}, late_bell = {0};
    pirn_timer timer, endless, fired, late;

    test_home_begin(&home);
    pirn__timer_init(&timer, in_ms(&home, 10));
    pirn__timer_init(&endless, PIRN_NEVER);
    pirn__timer_init(&fired, in_ms(&home, 1));
    pirn__timer_init(&late, in_ms(&home, 1));
    EXPECT_EQ(0, arm(&home, &timer, &bell));
    EXPECT_EQ(0, arm(&home, &endless, &endless_bell));
    EXPECT_EQ(0, arm(&home, &fired, &late_bell));
    EXPECT_EQ(1, advance_ns(&home, MS));

    pirn__timers_shutdown(&home.timers);
    EXPECT_EQ(PIRN__TIMER_DEAD, pirn__timer_state(&timer));
    EXPECT_EQ(1, rings(&bell));
    EXPECT_EQ(PIRN__TIMER_DEAD, pirn__timer_state(&endless));
    EXPECT_EQ(1, rings(&endless_bell));
    pirn__timer_reset(&fired, in_ms(&home, 1));
    EXPECT_EQ(PIRN__TIMER_FIRED, pirn__timer_state(&fired));
    EXPECT_EQ(PIRN_ESHUTDOWN, arm(&home, &late, &late_bell));
    EXPECT_EQ(PIRN__TIMER_IDLE, pirn__timer_state(&late));

    pirn__home_unref(&home.home);
    EXPECT_EQ(0, home.frees);
    pirn__timer_end(&timer, PIRN__TIMER_ENDED_SHUTDOWN);
    pirn__timer_end(&late, PIRN__TIMER_ENDED_SHUTDOWN);
    pirn__timer_end(&fired, PIRN__TIMER_ENDED);
    EXPECT_EQ(0, home.frees);
    pirn__timer_end(&endless, PIRN__TIMER_ENDED_SHUTDOWN);
    EXPECT_EQ(1, home.frees);
    EXPECT_EQ(0, wakers(&bell));
    EXPECT_EQ(0, wakers(&endless_bell));
    EXPECT_EQ(0, wakers(&late_bell));
    test_home_finish(&home);
}

/* Goal: a fiber's single entry serves one wait after the other, without
 * counting a reference for its waker.
 * Method: rearm, stop, rearm for another time, fire, rearm again, end. */
TEST(timer_of_a_fiber_is_reused_from_wait_to_wait)
{
    struct test_home home;
    struct bell bell = {0};
    pirn_waker waker = bell_waker(&bell);
    pirn_timer timer;

    test_home_begin(&home);
    pirn__timer_init(&timer, PIRN_NEVER);
    pirn__timer_stop(&timer);
    EXPECT_EQ(0,
              pirn__timer_rearm(&timer, &home.timers, waker, in_ms(&home, 10)));
    EXPECT_EQ(0, wakers(&bell));
    pirn__timer_stop(&timer);
    EXPECT_EQ(PIRN__TIMER_IDLE, pirn__timer_state(&timer));
    EXPECT_EQ(0, advance_ns(&home, 10 * MS));

    for (int i = 1; i <= 3; i++) {
        EXPECT_EQ(0, pirn__timer_rearm(&timer, &home.timers, waker,
                                       in_ms(&home, 10)));
        EXPECT_EQ(
            0, pirn__timer_rearm(&timer, &home.timers, waker, in_ms(&home, 5)));
        EXPECT_EQ(1, pirn__timers_count(&home.timers));
        EXPECT_EQ(1, advance_ns(&home, 5 * MS));
        EXPECT_EQ(i, rings(&bell));
        EXPECT_EQ(PIRN__TIMER_FIRED, pirn__timer_state(&timer));
    }
    pirn__timer_end(&timer, PIRN__TIMER_ENDED);
    EXPECT_EQ(0, wakers(&bell));

    pirn__timers_shutdown(&home.timers);
    pirn__timer_init(&timer, PIRN_NEVER);
    EXPECT_EQ(PIRN_ESHUTDOWN,
              pirn__timer_rearm(&timer, &home.timers, waker, in_ms(&home, 1)));
    test_home_finish(&home);
}

/* Goal: a fiber that has moved to another worker takes its entry along.
 * Method: rearm the same entry on a second wheel, armed and fired on the first. */
TEST(timers_entry_moves_to_another_wheel)
{
    struct test_home homes[2];
    struct bell bell = {0};
    pirn_waker waker = bell_waker(&bell);
    pirn_timer timer;

    test_home_begin(&homes[0]);
    test_home_begin(&homes[1]);
    pirn__timer_init(&timer, PIRN_NEVER);
    for (int round = 0; round < 4; round++) {
        struct test_home *here = &homes[round % 2];
        struct test_home *there = &homes[1 - round % 2];

        EXPECT_EQ(0, pirn__timer_rearm(&timer, &here->timers, waker,
                                       in_ms(here, 10)));
        EXPECT_EQ(1, pirn__timers_count(&here->timers));
        EXPECT_EQ(0, pirn__timers_count(&there->timers));
        EXPECT_EQ(1, here->timers.users);
        EXPECT_EQ(0, there->timers.users);
        if (round == 2)
            EXPECT_EQ(1, advance_ns(here, 10 * MS));
    }
    EXPECT_EQ(1, rings(&bell));
    pirn__timer_end(&timer, PIRN__TIMER_ENDED);
    pirn_waker_drop(waker);
    test_home_finish(&homes[1]);
    test_home_finish(&homes[0]);
}

/* Goal: the clock can stand still, be moved and follow the system again.
 * Method: pause, advance by an hour, resume; it never goes back. */
TEST(timers_clock_pauses_advances_and_resumes)
{
    const uint64_t hour = 3600 * 1000 * MS;
    struct test_home home;
    struct pirn__timers *timers = &home.timers;
    uint64_t start;

    test_home_begin(&home);
    start = pirn__timers_now(timers);
    EXPECT_EQ(start, pirn__timers_now(timers));
    pirn__timers_pause(timers);
    EXPECT_EQ(start, pirn_now_ns());
    EXPECT_EQ(PIRN_EXPIRED.ns, pirn__timers_to_system(timers, start).ns);
    EXPECT_EQ(PIRN_NEVER.ns, pirn__timers_to_system(timers, start + 1).ns);

    EXPECT_EQ(0, pirn__timers_advance(timers, hour));
    EXPECT_EQ(start + hour, pirn_now_ns());
    EXPECT_EQ(start + hour + 5 * MS, pirn_after_ms(5).ns);
    EXPECT(pirn_deadline_expired((pirn_deadline){start + hour}));
    EXPECT(!pirn_deadline_expired((pirn_deadline){start + hour + 1}));

    pirn__timers_resume(timers);
    EXPECT(!pirn__timers_are_paused(timers));
    EXPECT_EQ(-EINVAL, pirn__timers_advance(timers, 1));
    EXPECT_GE(pirn__timers_now(timers), start + hour);
    EXPECT_LE(pirn__timers_to_system(timers, start + hour).ns,
              pirn__sys->clock_ns());
    EXPECT_EQ(PIRN_NEVER.ns, pirn__timers_to_system(timers, UINT64_MAX).ns);
    test_home_finish(&home);
}

/* Goal: a deadline of a clock that was moved is known on the system's clock, by
 * which threads sleep.
 * Method: move it by an hour; ask for the past, the future and the ends of
 * time, and without a runtime. */
TEST(deadlines_of_a_moved_clock_are_known_on_the_systems)
{
    const uint64_t hour = 3600 * 1000 * MS;
    struct test_home home;
    pirn_deadline soon, told;
    uint64_t before;

    EXPECT_EQ(12345, pirn__deadline_to_system((pirn_deadline){12345}).ns);
    test_home_begin(&home);
    EXPECT_EQ(0, pirn__timers_advance(&home.timers, hour));
    for (int way = 0; way < 2; way++) {
        before = pirn__sys->clock_ns();
        soon = pirn_after_ms(60 * 1000);
        told = pirn__deadline_to_system(soon);
        EXPECT_GE(told.ns, before);
        EXPECT_LE(told.ns, pirn__sys->clock_ns() + 60 * 1000 * MS);
        EXPECT_EQ(PIRN_EXPIRED.ns,
                  pirn__deadline_to_system((pirn_deadline){1}).ns);
        EXPECT_EQ(PIRN_EXPIRED.ns, pirn__deadline_to_system(PIRN_EXPIRED).ns);
        EXPECT_EQ(PIRN_NEVER.ns, pirn__deadline_to_system(PIRN_NEVER).ns);
        pirn__timers_resume(&home.timers);
    }
    test_home_finish(&home);
}

/* Goal: deadlines saturate instead of wrapping, and for ever stays for ever.
 * Method: the far end of each unit. */
TEST(deadlines_far_away_saturate)
{
    struct test_home home;
    pirn_deadline soon, late;

    test_home_begin(&home);
    EXPECT_EQ(UINT64_MAX, pirn_after_ns(UINT64_MAX).ns);
    EXPECT_EQ(UINT64_MAX, pirn_after_us(UINT64_MAX).ns);
    EXPECT_EQ(UINT64_MAX, pirn_after_ms(UINT64_MAX).ns);
    EXPECT_EQ(UINT64_MAX - 1, pirn_after_ns(UINT64_MAX - 1).ns);
    EXPECT_EQ(UINT64_MAX - 1, pirn_after_us(UINT64_MAX / 2).ns);
    EXPECT_EQ(UINT64_MAX - 1, pirn_after_ms(UINT64_MAX - 1).ns);
    soon = pirn_after_ms(1);
    late = pirn_after_ms(2);
    EXPECT_EQ(soon.ns, pirn_deadline_min(late, soon).ns);
    EXPECT_EQ(soon.ns, pirn_deadline_min(soon, PIRN_NEVER).ns);
    EXPECT(pirn_deadline_expired(PIRN_EXPIRED));
    EXPECT(!pirn_deadline_expired(PIRN_NEVER));
    test_home_finish(&home);
}

/* Threads. */

enum { RACE_TIMERS = 64 };

struct race {
    struct test_home home;
    pirn_timer timers[RACE_TIMERS];
    PIRN_ATOMIC(int) stop;
};

/* What other threads may do to an entry at any time. */
static void *meddle(void *arg)
{
    struct race *race = arg;

    /* acquire [test.stop]: nothing is published; the end is enough.  Ends when
     * the test has done its rounds. */
    for (unsigned i = 0; pirn__load(&race->stop, acquire) == 0; i++) {
        pirn_timer *timer = &race->timers[i * 7 % RACE_TIMERS];

        if (i % 3 == 0)
            pirn__timer_cancel(timer);
        else
            pirn__timer_reset(timer, in_ms(&race->home, i % 5));
    }
    return NULL;
}

/* One life of every entry. */
static void live_once(struct race *race, struct bell *bell)
{
    for (int i = 0; i < RACE_TIMERS; i++) {
        EXPECT_EQ(0, arm(&race->home, &race->timers[i], bell));
        (void)arm(&race->home, &race->timers[i], bell);
    }
    (void)advance_ns(&race->home, MS);
}

/* Goal: reset and cancel may come from any thread, also while the entry is
 * being armed and fired.
 * Method: one thread arms, fires and ends; another meddles.  No waker leaks,
 * and each entry that waits is either woken or still in the wheel. */
TEST(timers_meddled_with_by_another_thread_stay_whole)
{
    static struct race race;
    struct bell bell = {0};
    size_t rounds = test_size(50, 400, 4000);
    pthread_t thread;

    test_home_begin(&race.home);
    for (int i = 0; i < RACE_TIMERS; i++)
        pirn__timer_init(&race.timers[i], in_ms(&race.home, 1));
    /* relaxed: the thread does not exist yet. */
    pirn__store(&race.stop, 0, relaxed);
    REQUIRE(pthread_create(&thread, NULL, meddle, &race) == 0);
    for (size_t round = 0; round < rounds; round++) {
        live_once(&race, &bell);
        if (round % 16 == 0)
            sched_yield();
    }
    /* release [test.stop]: as above. */
    pirn__store(&race.stop, 1, release);
    pthread_join(thread, NULL);
    for (int i = 0; i < RACE_TIMERS; i++)
        pirn__timer_end(&race.timers[i], PIRN__TIMER_ENDED);
    EXPECT_EQ(0, wakers(&bell));
    test_home_finish(&race.home);
}
