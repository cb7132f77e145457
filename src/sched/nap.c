/* SPDX-License-Identifier: MIT */
/* src/sched/nap.c - see nap.h. */
#include "sched/nap.h"

#include "sched/runtime.h"
#include "sys/sys.h"

/* What a hunt costs at least, and more for each task; how long naps are. */
enum {
    HUNT_COST_NS = 10 * 1000,
    HUNT_TASK_COST_NS = 1000,
    NAP_FIRST_NS = 64 * 1000,
    NAP_LONGEST_NS = 4 * 1024 * 1000,
};

void pirn__nap_begin_hunt(struct pirn__worker *worker, uint32_t tasks)
{
    worker->hunting = true;
    worker->hunt_ns = pirn__sys->clock_ns();
    worker->hunt_tasks = tasks;
}

void pirn__nap_forget_wake(struct pirn__worker *worker)
{
    if (worker->hunt_tasks == 0)
        worker->hunting = false;
}

uint64_t pirn__nap_plan(struct pirn__worker *worker)
{
    uint64_t spent;

    if (!worker->hunting)
        return 0;
    worker->hunting = false;
    spent = pirn__sys->clock_ns() - worker->hunt_ns;
    if (spent > HUNT_COST_NS + worker->hunt_tasks * HUNT_TASK_COST_NS)
        worker->nap_ns = 0;
    else if (worker->nap_ns == 0)
        worker->nap_ns = NAP_FIRST_NS;
    else if (worker->nap_ns < NAP_LONGEST_NS)
        worker->nap_ns *= 2;
    return worker->nap_ns;
}

/* What does not wait for the end of a nap; what is in our own queues comes from
 * a hook. */
static bool is_wanted(struct pirn__worker *worker)
{
    return pirn__ring_len(&worker->ring) > 0 ||
           worker->pool->tasks->has_outside(worker) ||
           pirn__pool_is_stopped(worker->pool);
}

static void wait_a_moment(struct pirn__worker *worker, uint64_t nap_ns)
{
    pirn_deadline end = {pirn__sys->clock_ns() + nap_ns};

    pirn__count(&worker->counters.parks);
    (void)pirn__reactor_harvest(worker->pool->rt->home.reactor,
                                &worker->harvest, end);
}

bool pirn__nap_try(struct pirn__worker *worker, bool searching,
                   uint64_t nap_ns)
{
    struct pirn__pool *pool = worker->pool;

    if (!pirn__idle_enter_nap(&pool->idle, pool->count, searching))
        return false;
    /* Who counted on our search has woken no sleeper. */
    if (searching && pirn__idle_sleepers(&pool->idle) > 0 &&
        pool->tasks->has_some(worker))
        pirn__pool_wake_one(pool);
    if (!is_wanted(worker))
        wait_a_moment(worker, nap_ns);
    pirn__idle_leave_nap(&pool->idle);
    return true;
}
