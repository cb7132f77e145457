/* SPDX-License-Identifier: MIT */
/* src/sched/alarm.c - a worker's wheel, and its alarm while it sleeps.
 *
 * A worker that runs looks at its wheel itself.  Before it sleeps it says so and
 * sets its alarm, an event of the wait set; whoever harvests it fires the wheel.
 * Who arms an earlier entry on the wheel meanwhile sets the alarm again.
 *
 * An alarm costs a processor to set, to be interrupted by and to leave its idle
 * state, all of which is about the time by which it is late: 20 us on a virtual
 * machine.  So if the next entry is nearer than that, a sleep would make it
 * late and save nothing, and the worker stays up and looks again.  How late alarms
 * are it learns from those that wake it; what a busy machine adds counts up to a
 * bound, and so do the looks, in case the clock stands still.
 *
 * If the next entry is a little farther the worker sleeps, but has itself woken
 * before it is due, by most of that lateness, and stays up for the rest, if the
 * alarm leaves any.  One that is far costs nobody a look: its alarm is set for its
 * time.
 *
 * Often the kernel wakes another worker than the one whose alarm it is, the one
 * that fell asleep last, and again for the next one.  If that is near, the wheel
 * becomes its *ward*: it looks at it as at its own as long as it stays up and the
 * owner sleeps, and sets the alarm when it sleeps itself.  Meanwhile the alarm is
 * set for a later time, in case what it runs takes long.  A wheel has one guardian.
 */
#include "sched/runtime.h"
#include "sched/worker.h"

enum {
    LATE_MOST_NS = 16 * 1000,
    LATE_WEIGHT = 8, /* the mean of about so many alarms */
    EARLY_EIGHTHS = 5, /* of the lateness: so much before its time */
    FAR_TIMES = 12, /* far is what is not due within so many times the lateness */
    WARD_ALARM_NS = 500 * 1000, /* the alarm of a wheel that has a guardian */
};

#ifdef PIRN_MODEL
enum { WAITS_MOST = 1 }; /* a look has many steps */
#else
enum { WAITS_MOST = 128 };
#endif

static bool is_asleep(const struct pirn__worker *worker)
{
    /* seq_cst [worker.state]: after a deadline was published; against a worker
     * that says it sleeps and then looks at its wheel. */
    return pirn__load(&worker->state, seq_cst) == PIRN__WORKER_SLEEPING;
}

static uint64_t read_next(const struct pirn__worker *worker)
{
    /* seq_cst [timers.next]: after the state says that it sleeps, against a
     * thread that arms an earlier timer. */
    return pirn__load(&worker->timers.next, seq_cst);
}

/* Set the alarm for a time of the wheel's clock. */
static void set_for(struct pirn__worker *worker, uint64_t when)
{
    pirn_deadline deadline = pirn__timers_to_system(&worker->timers, when);

    if (deadline.ns == UINT64_MAX)
        return;
    /* relaxed: a measure; see pirn__worker_alarm(). */
    pirn__store(&worker->alarm_ns, when, relaxed);
    pirn__alarm_arm(&worker->alarm, deadline);
}

/* Set it for the next entry. */
static void set_exact(struct pirn__worker *worker)
{
    set_for(worker, read_next(worker));
}

/* When to get up for an entry that is due at `next`: not before now, for one that
 * is nearer than alarms are late has been waited for in vain.  What one early alarm
 * teaches cannot make the rest too long to stay up for. */
static uint64_t time_to_get_up(const struct pirn__worker *self, uint64_t next)
{
    uint64_t late = self->alarm_late_ns;
    uint64_t now = self->turn.now_ns;

    if (now == 0 || next < now + late || next >= now + FAR_TIMES * late)
        return next;
    return next - late * EARLY_EIGHTHS / 8;
}

/* Wards. */

/* True if `self` now serves the wheel of `worker`, which sleeps. */
static bool take_ward(struct pirn__worker *self, struct pirn__worker *worker)
{
    /* relaxed: several guardians would only be one too many. */
    if (self->ward != NULL || pirn__swap(&worker->is_ward, 1, relaxed) != 0)
        return false;
    self->ward = worker;
    return true;
}

static void leave_ward(struct pirn__worker *self)
{
    /* relaxed: as above. */
    pirn__store(&self->ward->is_ward, 0, relaxed);
    self->ward = NULL;
}

/* We sleep as well. */
static void hand_ward_back(struct pirn__worker *self)
{
    struct pirn__worker *worker = self->ward;

    leave_ward(self);
    if (is_asleep(worker))
        set_exact(worker);
}

void pirn__worker_set_alarm(struct pirn__worker *worker)
{
    set_for(worker, time_to_get_up(worker, read_next(worker)));
    if (worker->ward != NULL)
        hand_ward_back(worker);
}

/* Looking. */

static void look_at_wheel(struct pirn__worker *self,
                          struct pirn__timers *timers)
{
    /* relaxed: only whether a look is worth it; who arms an entry on this wheel
     * from elsewhere is seen the next time, or before we sleep. */
    uint64_t next = pirn__load(&timers->next, relaxed);

    if (next == UINT64_MAX)
        return;
    if (self->turn.now_ns == 0)
        self->turn.now_ns = pirn__timers_now(timers);
    if (next <= self->turn.now_ns &&
        pirn__timers_fire_at(timers, self->turn.now_ns,
                             PIRN__EVENT_INTERVAL) > 0)
        self->waits = 0;
}

void pirn__worker_fire_timers(struct pirn__worker *worker)
{
    look_at_wheel(worker, &worker->timers);
    if (worker->ward == NULL)
        return;
    if (is_asleep(worker->ward))
        look_at_wheel(worker, &worker->ward->timers);
    else
        leave_ward(worker);
}

/* Of the wheel, and that of the ward. */
static uint64_t next_of(const struct pirn__worker *worker)
{
    /* relaxed: an earlier one is seen the next time, or before we sleep. */
    uint64_t next = pirn__load(&worker->timers.next, relaxed);
    uint64_t other = UINT64_MAX;

    if (worker->ward != NULL)
        /* relaxed: as above. */
        other = pirn__load(&worker->ward->timers.next, relaxed);
    return next < other ? next : other;
}

static bool is_near(const struct pirn__worker *worker, uint64_t now)
{
    return now != 0 && next_of(worker) < now + worker->alarm_late_ns;
}

bool pirn__worker_awaits_timer(struct pirn__worker *worker)
{
    if (worker->waits == WAITS_MOST || !is_near(worker, worker->turn.now_ns)) {
        worker->waits = 0;
        return false;
    }
    worker->waits++;
    return true;
}

/* Alarms. */

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

/* The alarm of another worker, which sleeps, has woken `self`. */
static void serve_sleeper(struct pirn__worker *self,
                          struct pirn__worker *worker, uint64_t now)
{
    if (self != NULL && take_ward(self, worker)) {
        if (is_near(self, now)) {
            set_for(worker, now + WARD_ALARM_NS);
            return;
        }
        leave_ward(self);
    }
    set_exact(worker);
}

void pirn__worker_alarm(struct pirn__alarm *alarm)
{
    struct pirn__worker *worker =
        PIRN_CONTAINER_OF(alarm, struct pirn__worker, alarm);
    struct pirn__worker *self = pirn__worker_here(worker->pool);
    /* relaxed: a measure; who sets it meanwhile may spoil it. */
    uint64_t due = pirn__load(&worker->alarm_ns, relaxed);
    uint64_t now = pirn__timers_now(&worker->timers);

    if (self != NULL)
        learn_lateness(self, due, now);
    pirn__timers_fire_at(&worker->timers, now, SIZE_MAX);
    /* Its own worker gets up, and sets the alarm before it sleeps again: to set
     * it twice would cost as much again as to be woken by it. */
    if (worker != self && is_asleep(worker))
        serve_sleeper(self, worker, now);
}

void pirn__worker_earlier(struct pirn__timers *timers)
{
    struct pirn__worker *worker =
        PIRN_CONTAINER_OF(timers, struct pirn__worker, timers);

    /* The timer descriptor would wake a worker of the parent. */
    if (pirn__home_is_forked(timers->home))
        return;
    if (is_asleep(worker))
        set_exact(worker);
}
