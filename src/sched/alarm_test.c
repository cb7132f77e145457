/* SPDX-License-Identifier: MIT */
/* src/sched/alarm_test.c - when a worker stays up for its next timer.
 *
 * The worker is memory; nobody runs it.
 */
#include "engine/test.h"
#include "sched/worker.h"

enum { NOW_NS = 1000000000, LATE_NS = 10000 };

static void worker_init(struct pirn__worker *worker, uint64_t next_ns)
{
    memset(worker, 0, sizeof *worker);
    pirn__init(&worker->timers.next, next_ns);
    worker->turn.now_ns = NOW_NS;
    worker->alarm_late_ns = LATE_NS;
}

/* Goal: a worker stays up if an alarm would come too late for its next timer, and
 * only then.
 * Method: timers before, at and behind the bound, and none. */
TEST(alarm_too_late_for_the_next_timer_keeps_the_worker_up)
{
    static struct pirn__worker worker;

    worker_init(&worker, NOW_NS - 1);
    EXPECT(pirn__worker_awaits_timer(&worker));
    worker_init(&worker, NOW_NS + LATE_NS - 1);
    EXPECT(pirn__worker_awaits_timer(&worker));
    worker_init(&worker, NOW_NS + LATE_NS);
    EXPECT(!pirn__worker_awaits_timer(&worker));
    worker_init(&worker, UINT64_MAX);
    EXPECT(!pirn__worker_awaits_timer(&worker));
}

/* Goal: where alarms are in time, or none has come yet, the worker sleeps.
 * Method: a timer in a nanosecond, and no lateness. */
TEST(alarm_in_time_lets_the_worker_sleep)
{
    static struct pirn__worker worker;

    worker_init(&worker, NOW_NS + 1);
    worker.alarm_late_ns = 0;
    EXPECT(!pirn__worker_awaits_timer(&worker));
}

/* Goal: a worker that has not looked at the clock in this turn sleeps.
 * Method: no time. */
TEST(alarm_without_a_look_at_the_clock_lets_the_worker_sleep)
{
    static struct pirn__worker worker;

    worker_init(&worker, 1);
    worker.turn.now_ns = 0;
    EXPECT(!pirn__worker_awaits_timer(&worker));
}

/* Goal: the wheel of a sleeper that a worker serves counts as its own.
 * Method: nothing of its own, and a ward with a timer at hand. */
TEST(alarm_of_a_ward_keeps_the_worker_up)
{
    static struct pirn__worker worker, ward;

    worker_init(&worker, UINT64_MAX);
    worker_init(&ward, NOW_NS + 1);
    EXPECT(!pirn__worker_awaits_timer(&worker));
    worker.ward = &ward;
    EXPECT(pirn__worker_awaits_timer(&worker));
}

/* Goal: on a clock that stands still nobody stays up for ever.
 * Method: the same time, again and again; after the sleep it may begin anew. */
TEST(alarm_on_a_standing_clock_is_set_in_the_end)
{
    static struct pirn__worker worker;
    int looks = 0;

    worker_init(&worker, NOW_NS + 1);
    while (pirn__worker_awaits_timer(&worker)) {
        looks++;
        REQUIRE(looks < 1000);
    }
    EXPECT(looks > 0);
    EXPECT(pirn__worker_awaits_timer(&worker));
}
