/* SPDX-License-Identifier: MIT */
/* tests/regress/wake_before_sleep.c - a wake that meets the driver between its
 * last look at what it waits for and the announcement of its sleep.
 *
 * Pushes were found in the inbox, but an unpark, a phase, a wanted seat or the
 * end of the last job stands nowhere that the driver looks at before it sleeps:
 * it slept on.  The steps of block_on() are taken here by hand, so that the
 * wake stands exactly there.
 */
#include <pirn/time.h>

#include <pthread.h>

#include "engine/test.h"
#include "sched/runtime.h"

/* A turn that sleeps lasts this long. */
enum { WAIT_MS = 2000 };

static void *unpark(void *arg)
{
    pirn__parker_unpark(arg);
    return NULL;
}

static void *wake(void *arg)
{
    pirn__driver_wake(arg);
    return NULL;
}

static void on_another_thread(void *(*fn)(void *arg), void *arg)
{
    pthread_t thread;

    REQUIRE(pthread_create(&thread, NULL, fn, arg) == 0);
    pthread_join(thread, NULL);
}

/* One turn; true if it slept to the end. */
static bool turn_sleeps(pirn_runtime *rt)
{
    pirn_deadline end = pirn_after_ms(WAIT_MS);

    (void)pirn__driver_turn(rt, end);
    return pirn_deadline_expired(end);
}

static void sit_down(pirn_runtime *rt, struct pirn__home **outer)
{
    const struct pirn__seat_request request = {.deadline = PIRN_NEVER};

    EXPECT_EQ(0, pirn__seat_take(&rt->seat, &rt->home, &request));
    pirn__driver_enter(rt, outer);
}

static void get_up(pirn_runtime *rt, struct pirn__home *outer)
{
    pirn__driver_leave(rt, outer);
    pirn__seat_leave(&rt->seat);
    pirn_runtime_unref(rt);
}

/* Goal: an unpark after the thread has said that it drives, and before it
 * announces its sleep, is not slept over.
 * Method: exactly there. */
TEST(unpark_between_begin_and_sleep_is_not_lost)
{
    struct pirn__parker *parker = pirn__parker_of(pirn__local());
    struct pirn__home *outer;
    pirn_runtime *rt;

    REQUIRE(parker != NULL && pirn_runtime_new(NULL, &rt) == 0);
    sit_down(rt, &outer);
    pirn__parker_reset(parker);
    EXPECT(pirn__parker_drive_begin(parker, &rt->home));
    on_another_thread(unpark, parker);
    EXPECT(!turn_sleeps(rt));
    EXPECT(pirn__parker_drive_end(parker));
    pirn__parker_drive_over(parker);
    get_up(rt, outer);
}

/* Goal: the same for any other reason to wake the driver.
 * Method: a bare wake while it is awake. */
TEST(wake_of_an_awake_driver_is_not_lost)
{
    struct pirn__home *outer;
    pirn_runtime *rt;

    REQUIRE(pirn_runtime_new(NULL, &rt) == 0);
    sit_down(rt, &outer);
    on_another_thread(wake, &rt->home);
    EXPECT(!turn_sleeps(rt));
    get_up(rt, outer);
}
