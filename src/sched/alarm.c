/* SPDX-License-Identifier: MIT */
/* src/sched/alarm.c - the kernel timer of a worker that sleeps.
 *
 * A worker that runs looks at its wheel itself.  Before it sleeps it says so and
 * sets its alarm, an event of the wait set; whoever harvests it fires the wheel.
 * Who arms an earlier entry on the wheel meanwhile sets the alarm again.
 *
 * An alarm costs a processor to set, to be interrupted by and to leave its idle
 * state, all of which is about the time by which it is late: 4 us, or 20 on a
 * virtual machine.  So if the next entry is nearer than that, a sleep would make it
 * late and save nothing, and the worker stays up and looks again.  How late alarms
 * are it learns from those that wake it; what a busy machine adds counts up to a bound, and
 * so do the looks, in case the clock stands still.
 */
#include "sched/runtime.h"
#include "sched/worker.h"

enum {
    LATE_MOST_NS = 16 * 1000,
    LATE_WEIGHT = 8, /* the mean of about so many alarms */
    WAITS_MOST = 128,
};

void pirn__worker_set_alarm(struct pirn__worker *worker)
{
    /* seq_cst [timers.next]: after the state says that we sleep, against a
     * thread that arms an earlier timer. */
    uint64_t next = pirn__load(&worker->timers.next, seq_cst);
    pirn_deadline deadline = pirn__timers_to_system(&worker->timers, next);

    if (deadline.ns != UINT64_MAX)
        pirn__alarm_arm(&worker->alarm, deadline);
}

static bool is_asleep(const struct pirn__worker *worker)
{
    /* seq_cst [worker.state]: after a deadline was published; against a worker
     * that says it sleeps and then looks at its wheel. */
    return pirn__load(&worker->state, seq_cst) == PIRN__WORKER_SLEEPING;
}

/* `self` was woken at `now` by an alarm that was set for `due`, or for a time soon
 * after it. */
static void learn_lateness(struct pirn__worker *self, uint64_t due,
                           uint64_t now)
{
    uint64_t late = now > due ? now - due : 0;

    if (late > LATE_MOST_NS)
        late = LATE_MOST_NS;
    self->alarm_late_ns -= self->alarm_late_ns / LATE_WEIGHT;
    self->alarm_late_ns += late / LATE_WEIGHT;
}

bool pirn__worker_awaits_timer(struct pirn__worker *worker)
{
    /* relaxed: an earlier one is seen the next time, or before we sleep. */
    uint64_t next = pirn__load(&worker->timers.next, relaxed);
    uint64_t now = worker->turn.now_ns;

    if (now == 0 || worker->waits == WAITS_MOST ||
        next >= now + worker->alarm_late_ns) {
        worker->waits = 0;
        return false;
    }
    worker->waits++;
    return true;
}

void pirn__worker_alarm(struct pirn__alarm *alarm)
{
    struct pirn__worker *worker =
        PIRN_CONTAINER_OF(alarm, struct pirn__worker, alarm);
    struct pirn__worker *self = pirn__worker_here(worker->pool);
    /* relaxed: a measure; who arms entries meanwhile may spoil it. */
    uint64_t due = pirn__load(&worker->timers.next, relaxed);
    uint64_t now = pirn__timers_now(&worker->timers);

    if (self != NULL)
        learn_lateness(self, due, now);
    pirn__timers_fire_at(&worker->timers, now, SIZE_MAX);
    /* Its own worker gets up, and sets the alarm before it sleeps again: to set
     * it twice would cost as much again as to be woken by it. */
    if (worker != self && is_asleep(worker))
        pirn__worker_set_alarm(worker);
}

void pirn__worker_earlier(struct pirn__timers *timers)
{
    struct pirn__worker *worker =
        PIRN_CONTAINER_OF(timers, struct pirn__worker, timers);

    /* The timer descriptor would wake a worker of the parent. */
    if (pirn__home_is_forked(timers->home))
        return;
    if (is_asleep(worker))
        pirn__worker_set_alarm(worker);
}
