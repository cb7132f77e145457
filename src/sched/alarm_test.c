/* SPDX-License-Identifier: MIT */
/* src/sched/alarm_test.c - when a worker stays up for its next timer, and when
 * it is woken for one.
 *
 * The worker is memory; nobody runs it.  Its clock is paused, where it matters.
 */
#include "engine/test.h"
#include "sched/worker.h"
#include "sys/sys.h"

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

/* What the alarm of `worker` is set for when it sleeps. */
static uint64_t when_set(struct pirn__worker *worker)
{
    uint64_t armed_ns;

    worker->alarm.armed_ns = UINT64_MAX;
    worker->alarm.fd = pirn__sys->timerfd();
    EXPECT(worker->alarm.fd >= 0);
    pirn__worker_set_alarm(worker);
    armed_ns = worker->alarm.armed_ns;
    pirn__sys->close(worker->alarm.fd);
    return armed_ns;
}

/* Goal: for a timer that is not far a worker has itself woken before it is due, but
 * not before now, and then stays up for it.
 * Method: from the bound below which it does not sleep to the one where far begins;
 * the alarm that is in time makes the lateness that it has learned less. */
TEST(alarm_of_a_timer_not_far_is_set_early)
{
    static struct pirn__worker worker;

    for (uint64_t ahead = LATE_NS; ahead < 12 * LATE_NS; ahead += 100) {
        uint64_t when;

        worker_init(&worker, NOW_NS + ahead);
        EXPECT(!pirn__worker_awaits_timer(&worker));
        when = when_set(&worker);
        EXPECT(when > NOW_NS);
        EXPECT(when < NOW_NS + ahead);
        EXPECT_EQ(when, pirn__load(&worker.alarm_ns, relaxed));
        worker.turn.now_ns = when;
        worker.alarm_late_ns -= worker.alarm_late_ns / 8;
        EXPECT(pirn__worker_awaits_timer(&worker));
    }
}

/* Goal: for one that is far, as for a lone one, it is woken when it is due; so it is
 * where alarms are in time.
 * Method: timers at the bound and behind it; no lateness. */
TEST(alarm_of_a_far_timer_is_set_for_its_time)
{
    static struct pirn__worker worker;

    worker_init(&worker, NOW_NS + 12 * LATE_NS);
    EXPECT_EQ(NOW_NS + 12 * LATE_NS, when_set(&worker));
    worker_init(&worker, 5u * NOW_NS);
    EXPECT_EQ(5u * NOW_NS, when_set(&worker));
    worker_init(&worker, NOW_NS + 1);
    worker.alarm_late_ns = 0;
    EXPECT_EQ(NOW_NS + 1, when_set(&worker));
}

/* Goal: a worker that has stayed up for a timer in vain sleeps until it is due, and
 * is not woken again and again before.
 * Method: a timer nearer than alarms are late, and one for which it did not look at
 * the clock. */
TEST(alarm_of_a_timer_waited_for_in_vain_is_set_for_its_time)
{
    static struct pirn__worker worker;

    worker_init(&worker, NOW_NS + LATE_NS - 1);
    EXPECT_EQ(NOW_NS + LATE_NS - 1, when_set(&worker));
    /* Nor far from 0, were that a time. */
    worker_init(&worker, 2 * LATE_NS);
    worker.turn.now_ns = 0;
    EXPECT_EQ(2 * LATE_NS, when_set(&worker));
}

/* Goal: on a paused clock no alarm is set for a timer ahead, however near.
 * Method: the clock stands at the last look. */
TEST(alarm_on_a_paused_clock_is_not_set)
{
    static struct pirn__worker worker;

    for (uint64_t ahead = 1; ahead < 13 * LATE_NS; ahead += 99) {
        worker_init(&worker, NOW_NS + ahead);
        pirn__init(&worker.timers.paused_ns, NOW_NS);
        EXPECT(when_set(&worker) == UINT64_MAX);
    }
}

/* What `worker` has learned when an alarm that was set for `set_ns` wakes it now. */
static uint64_t learn(struct pirn__worker *worker, uint64_t set_ns)
{
    static struct pirn__pool pool;
    struct pirn__local *local = pirn__local();

    worker_init(worker, UINT64_MAX);
    worker->pool = &pool;
    worker->alarm_late_ns = 0;
    pirn__timers_init(&worker->timers, NULL);
    pirn__init(&worker->timers.paused_ns, NOW_NS);
    pirn__init(&worker->alarm_ns, set_ns);
    local->worker = worker;
    pirn__worker_alarm(&worker->alarm);
    local->worker = NULL;
    return worker->alarm_late_ns;
}

/* Goal: how late alarms are is told from the time that they were set for, not from
 * that of the timer, for which they may have been set early.
 * Method: a wheel without a timer, and alarms that come late and in time. */
TEST(alarm_teaches_how_late_it_is)
{
    static struct pirn__worker worker;

    EXPECT_EQ(LATE_NS / 8, learn(&worker, NOW_NS - LATE_NS));
    EXPECT_EQ(0u, learn(&worker, NOW_NS));
    EXPECT_EQ(0u, learn(&worker, NOW_NS + 1));
}
