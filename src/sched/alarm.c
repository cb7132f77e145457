/* SPDX-License-Identifier: MIT */
/* src/sched/alarm.c - the kernel timer of a worker that sleeps.
 *
 * A worker that runs looks at its wheel itself.  Before it sleeps it says so and
 * sets its alarm, an event of the wait set; whoever harvests it fires the wheel.
 * Who arms an earlier entry on the wheel meanwhile sets the alarm again.
 */
#include "sched/runtime.h"
#include "sched/worker.h"

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

void pirn__worker_alarm(struct pirn__alarm *alarm)
{
    struct pirn__worker *worker =
        PIRN_CONTAINER_OF(alarm, struct pirn__worker, alarm);

    pirn__timers_fire(&worker->timers, SIZE_MAX);
    /* Its own worker gets up, and sets the alarm before it sleeps again: to set
     * it twice would cost as much again as to be woken by it. */
    if (worker != pirn__worker_here(worker->pool) && is_asleep(worker))
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
