/* SPDX-License-Identifier: MIT */
/* src/sched/monitor.c - so that one bad task never freezes the rest.
 *
 * The monitor is an event in the wait set, not a thread: an alarm of a few
 * milliseconds.  A worker that has slept and found a task arms it if it is not
 * armed.  Whoever harvests it, an idle worker or, if there is none, a running one
 * at its fairness tick, compares the poll counters.  A worker that runs and has
 * not moved since the last time holds up its LIFO slot, its inbox, what has
 * yielded there, its due timers and what is in its ring: those are made
 * reachable, and a sleeper is woken for them.  The alarm is armed again only if
 * somebody has run meanwhile, so an idle runtime has no timer.  A worker that is
 * alone arms none: there is nobody who could take what it holds up.
 */
#include "base/lock.h"
#include "sched/runtime.h"
#include "sched/worker.h"
#include "sys/sys.h"

enum { MONITOR_PERIOD_NS = 5 * 1000 * 1000 };

void pirn__monitor_arm(struct pirn__pool *pool)
{
    /* seq_cst [monitor.armed]: after the worker has said that it runs; against
     * an event that disarms it and then looks who runs.  One of the two sees the
     * other. */
    if (pirn__load(&pool->monitor_armed, seq_cst) != 0)
        return;
    /* relaxed: of several workers one arms it; the alarm's lock orders that
     * after its event. */
    if (pirn__swap(&pool->monitor_armed, 1, relaxed) != 0)
        return;
    pirn__alarm_arm(&pool->monitor,
                    (pirn_deadline){pirn__sys->clock_ns() + MONITOR_PERIOD_NS});
}

static bool is_running(const struct pirn__worker *worker)
{
    /* seq_cst [worker.state]: after the alarm was disarmed, see above. */
    return pirn__load(&worker->state, seq_cst) == PIRN__WORKER_RUNNING;
}

/* Help what waits for a worker that does not move. */
static uint64_t rescue(struct pirn__worker *stuck)
{
    uint64_t count = stuck->pool->tasks->rescue(stuck);

    count += pirn__timers_fire(&stuck->timers, PIRN__EVENT_INTERVAL);
    return count;
}

/* True if it has moved since the last look. */
static bool has_moved(struct pirn__worker *worker)
{
    /* relaxed: a statistic that tells whether it moves. */
    uint64_t polls = pirn__load(&worker->counters.polls, relaxed);
    bool moved;

    pirn__lock(&worker->pool->monitor_lock);
    moved = polls != worker->polls_seen;
    worker->polls_seen = polls;
    pirn__unlock(&worker->pool->monitor_lock);
    return moved;
}

/* Compare and rescue; true if anybody runs. */
static bool look_at_all(struct pirn__pool *pool, uint64_t *rescued)
{
    bool running = false;

    for (uint32_t i = 0; i < pool->count; i++) {
        struct pirn__worker *worker = pool->workers[i];
        bool moved = has_moved(worker);

        if (!is_running(worker))
            continue;
        running = true;
        if (!moved)
            *rescued += rescue(worker);
    }
    return running;
}

void pirn__monitor_event(struct pirn__alarm *alarm)
{
    struct pirn__pool *pool =
        PIRN_CONTAINER_OF(alarm, struct pirn__pool, monitor);
    struct pirn__worker *self = pirn__worker_here(pool);
    uint64_t rescued = 0;
    bool running;

    /* seq_cst [monitor.armed]: before the look at who runs. */
    pirn__store(&pool->monitor_armed, 0, seq_cst);
    running = look_at_all(pool, &rescued);
    if (rescued > 0 && self != NULL)
        pirn__count(&self->counters.rescues);
    if (running)
        pirn__monitor_arm(pool);
    if (rescued > 0)
        pirn__pool_wake_any(pool);
}
