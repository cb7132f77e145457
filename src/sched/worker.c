/* SPDX-License-Identifier: MIT */
/* src/sched/worker.c - the loop of a worker.
 *
 *     own queues -> shared queue -> look for events -> search -> sleep
 *
 * Every few dozen runs the shared queue comes first, and every so often the
 * worker looks for events itself, but only if nobody sleeps: a sleeper in the
 * wait set is told of each event by the kernel.
 *
 * Sleeping.  All idle workers wait on one epoll set, in which are the wake
 * descriptor, an alarm for each worker's wheel and the monitor's.  The kernel
 * wakes one thread for each event.  Whoever harvests the wake descriptor owns
 * that wake and searches; idle.h says why none is lost.
 *
 * Napping.  To wake a worker and to move tasks to it costs more than a few short
 * tasks are worth, above all to the one they are taken from.  How long tasks are
 * is known only afterwards: so a worker whose last hunt was not worth it does not
 * count as a sleeper for a moment, longer after each such hunt, and then looks
 * again by itself.  One worker at least is awake or can be woken meanwhile; what
 * comes from outside ends the nap.
 */
#include "sched/worker.h"

#include <errno.h>

#include "base/assert.h"
#include "sched/histogram.h"
#include "sched/pinned.h"
#include "sched/runtime.h"
#include "sys/sys.h"
#include "task/task.h"

/* What a hunt costs at least, and more for each task; how long naps are. */
enum {
    HUNT_COST_NS = 10 * 1000,
    HUNT_TASK_COST_NS = 1000,
    NAP_FIRST_NS = 64 * 1000,
    NAP_LONGEST_NS = 4 * 1024 * 1000,
};

struct pirn__worker *pirn__worker_here(const struct pirn__pool *pool)
{
    struct pirn__local *local = pirn__local();
    struct pirn__worker *worker = local == NULL ? NULL : local->worker;

    return worker != NULL && worker->pool == pool ? worker : NULL;
}

void pirn__pool_wake_one(struct pirn__pool *pool)
{
    struct pirn__worker *self;

    if (!pirn__idle_claim_wake(&pool->idle))
        return;
    self = pirn__worker_here(pool);
    if (self != NULL)
        pirn__count(&self->counters.wakes);
    pirn__reactor_wake(pool->rt->home.reactor);
}

void pirn__pool_wake_any(struct pirn__pool *pool)
{
    pirn__pool_wake_one(pool);
    /* relaxed: one that begins its nap at this moment ends it soon. */
    if (pirn__load(&pool->napping, relaxed) == 0 ||
        pirn__idle_sleepers(&pool->idle) > 0)
        return;
    if (pirn__idle_claim_nap(&pool->idle))
        pirn__reactor_wake(pool->rt->home.reactor);
}

static void set_state(struct pirn__worker *worker,
                      enum pirn__worker_state state)
{
    /* seq_cst [worker.state]: against a thread that arms a timer on this wheel
     * and then looks whether it has to set the alarm. */
    pirn__store(&worker->state, (uint32_t)state, seq_cst);
}

/* Running. */

/* What events, timers and yields made ready comes in batches, so it is looked at
 * once, after the batch: one task we run ourselves, for more we want help. */
static void share_batch(struct pirn__worker *worker)
{
    if (worker->searching || pirn__idle_sleepers(&worker->pool->idle) == 0)
        return;
    if (pirn__ring_len(&worker->ring) > 1)
        pirn__pool_wake_one(worker->pool);
}

static void put_back(struct pirn__worker *worker, struct pirn__task *task)
{
    pirn__histograms_stamp(&worker->pool->rt->home, task);
    if (worker->turn.deferred) {
        pirn__count(&worker->counters.yields);
        pirn__inbox_push(&worker->deferred, &task->cell.link);
        return;
    }
    worker->turn.task = NULL;
    (void)worker->pool->tasks->push(worker->pool, worker, task,
                                    PIRN__ORIGIN_WAKE);
    share_batch(worker);
}

static enum pirn__wake poll_task(struct pirn__worker *worker,
                                 struct pirn__task *task)
{
    if (worker->histograms != NULL)
        return pirn__histograms_run(worker->histograms, task, &worker->turn,
                                    &worker->cache);
    return pirn__task_run(task, &worker->turn, &worker->cache);
}

/* A shutdown that waits for the last task looks again: before each sleep, and
 * where a task has ended on a thread that will not sleep. */
static void tell_shutdown(struct pirn__pool *pool)
{
    if (pirn__runtime_phase(pool->rt) != PIRN__PHASE_OPEN)
        pool->rt->home.ops->wake(&pool->rt->home);
}

/* Run a task; false if it gave the core to another thread meanwhile, which then
 * must not be touched any more. */
static bool run_task(struct pirn__worker *worker, struct pirn__task *task,
                     const struct pirn__local *local)
{
    struct pirn__pool *pool = worker->pool;
    enum pirn__wake wake;

    /* A task woken by the one before shares its budget. */
    if (worker->lifo_runs == 0)
        worker->turn.budget = PIRN__COOP_BUDGET;
    pirn__count(&worker->counters.polls);
    wake = poll_task(worker, task);
    if (local->worker != worker) {
        pirn__task_submit(task, wake);
        tell_shutdown(pool);
        return false;
    }
    if (wake == PIRN__WAKE_SUBMIT)
        put_back(worker, task);
    worker->turn.task = NULL;
    return true;
}

int pirn__worker_hand_off(struct pirn__local *local)
{
    struct pirn__worker *worker = local->worker;
    struct pirn__task *task = worker->turn.task;
    struct pirn__home *home = local->driving;
    int rc;

    if (pirn__pinned_has(worker))
        return -EPERM;
    local->lone = (struct pirn__turn){.home = home,
                                      .timers = home->timers,
                                      .task = task,
                                      .worker_index = worker->index,
                                      .budget = worker->turn.budget};
    worker->turn.task = NULL;
    local->turn = &local->lone;
    local->worker = NULL;
    local->driving = NULL;
    rc = pirn__pool_start_thread(worker);
    if (rc < 0) {
        local->driving = home;
        local->worker = worker;
        local->turn = &worker->turn;
        worker->turn.task = task;
    }
    return rc;
}

/* Those that yielded may run again. */
static void release_deferred(struct pirn__worker *worker)
{
    struct pirn__queue ready = {0};
    pirn_slink *link;

    pirn__inbox_take(&worker->deferred, &ready);
    while ((link = pirn__queue_pop(&ready)) != NULL)
        (void)worker->pool->tasks->push(worker->pool, worker,
                                        pirn__task_of_link(link),
                                        PIRN__ORIGIN_WAKE);
}

static void fire_timers(struct pirn__worker *worker)
{
    /* relaxed: only whether a clock read is worth it. */
    if (pirn__load(&worker->timers.next, relaxed) != UINT64_MAX)
        pirn__timers_fire(&worker->timers, PIRN__EVENT_INTERVAL);
}

static void begin_hunt(struct pirn__worker *worker, uint32_t tasks)
{
    worker->hunt_ns = pirn__sys->clock_ns();
    worker->hunt_tasks = tasks;
}

/* A harvested wake is ours, and counts as a searcher: we search from now on.
 * The wake of a stop was not claimed, and is passed on at once: we may be about
 * to run a task that does not come back. */
static void take_wake(struct pirn__worker *worker)
{
    if (!worker->harvest.woken)
        return;
    if (pirn__pool_is_stopped(worker->pool)) {
        pirn__reactor_wake(worker->pool->rt->home.reactor);
        return;
    }
    if (worker->searching) {
        /* One search is enough for both. */
        (void)pirn__idle_stop_search(&worker->pool->idle);
        return;
    }
    worker->searching = true;
    begin_hunt(worker, 0);
}

/* Look for events without waiting. */
static void look_for_events(struct pirn__worker *worker)
{
    struct pirn__pool *pool = worker->pool;

    /* A worker that comes back late finds no set any more. */
    if (pirn__idle_sleepers(&pool->idle) == 0 && !pirn__pool_is_stopped(pool)) {
        (void)pirn__reactor_harvest(pool->rt->home.reactor, &worker->harvest,
                                    PIRN_EXPIRED);
        take_wake(worker);
    }
    fire_timers(worker);
    release_deferred(worker);
    share_batch(worker);
}

/* Something to run was found: now the monitor has somebody to watch.  No longer
 * a searcher, and the last one sees to it that the next pair of hands comes. */
static void found_work(struct pirn__worker *worker)
{
    if (worker->rested)
        pirn__monitor_arm(worker->pool);
    worker->rested = false;
    /* What we were woken for has come from outside. */
    if (worker->hunt_tasks == 0)
        worker->hunt_ns = 0;
    if (!worker->searching)
        return;
    worker->searching = false;
    if (pirn__idle_stop_search(&worker->pool->idle) &&
        worker->pool->tasks->has_some(worker))
        pirn__pool_wake_one(worker->pool);
}

static struct pirn__task *next_own(struct pirn__worker *worker)
{
    const struct pirn__taskpool_ops *tasks = worker->pool->tasks;
    struct pirn__task *task = NULL;

    worker->tick++;
    if (--worker->until_shared == 0) {
        worker->until_shared = worker->pool->rt->shared_interval;
        task = tasks->pop_shared(worker);
        worker->lifo_runs = task != NULL ? 0 : worker->lifo_runs;
    }
    if (--worker->until_events == 0) {
        worker->until_events = worker->pool->rt->event_interval;
        look_for_events(worker);
    }
    if (task == NULL)
        task = tasks->pop(worker);
    if (task == NULL) {
        worker->lifo_runs = 0;
        task = tasks->pop_shared(worker);
    }
    return task;
}

static struct pirn__task *search(struct pirn__worker *worker)
{
    struct pirn__pool *pool = worker->pool;
    struct pirn__task *task;

    if (!worker->searching) {
        if (!pirn__idle_start_search(&pool->idle, pool->count))
            return NULL;
        worker->searching = true;
    }
    task = pool->tasks->steal(worker);
    if (task != NULL)
        begin_hunt(worker, 1 + pirn__ring_len(&worker->ring));
    return task;
}

/* Sleeping. */

/* Set the alarm for the wheel, which nobody else looks at while we sleep. */
static void set_alarm(struct pirn__worker *worker)
{
    /* seq_cst [timers.next]: after the state says that we sleep, against a
     * thread that arms an earlier timer. */
    uint64_t next = pirn__load(&worker->timers.next, seq_cst);
    pirn_deadline deadline = pirn__timers_to_system(&worker->timers, next);

    if (deadline.ns != UINT64_MAX)
        pirn__alarm_arm(&worker->alarm, deadline);
}

static void wait_for_event(struct pirn__worker *worker)
{
    struct pirn__pool *pool = worker->pool;

    pirn__count(&worker->counters.parks);
    (void)pirn__reactor_harvest(pool->rt->home.reactor, &worker->harvest,
                                PIRN_NEVER);
}

/* How long to nap before the next hunt; 0: not at all. */
static uint64_t plan_nap(struct pirn__worker *worker)
{
    uint64_t spent;

    if (worker->hunt_ns == 0)
        return 0;
    spent = pirn__sys->clock_ns() - worker->hunt_ns;
    worker->hunt_ns = 0;
    if (spent > HUNT_COST_NS + worker->hunt_tasks * HUNT_TASK_COST_NS)
        worker->nap_ns = 0;
    else if (worker->nap_ns == 0)
        worker->nap_ns = NAP_FIRST_NS;
    else if (worker->nap_ns < NAP_LONGEST_NS)
        worker->nap_ns *= 2;
    return worker->nap_ns;
}

/* Nap, unless everybody else sleeps or naps, so that somebody must be there to
 * be woken; false. */
static bool nap(struct pirn__worker *worker, bool searching, uint64_t nap_ns)
{
    struct pirn__pool *pool = worker->pool;
    /* seq_cst [pool.napping]: of the last two one sees the other. */
    uint32_t napping = pirn__add(&pool->napping, 1, seq_cst) + 1;
    bool may = pirn__idle_sleepers(&pool->idle) + napping < pool->count;

    if (may) {
        if (searching)
            (void)pirn__idle_stop_search(&pool->idle);
        pirn__count(&worker->counters.parks);
        (void)pirn__reactor_harvest(
            pool->rt->home.reactor, &worker->harvest,
            (pirn_deadline){pirn__sys->clock_ns() + nap_ns});
    }
    /* seq_cst [pool.napping]: as above. */
    pirn__sub(&pool->napping, 1, seq_cst);
    return may;
}

static void sleep_in_set(struct pirn__worker *worker, bool searching)
{
    struct pirn__pool *pool = worker->pool;

    pirn__idle_enter_sleep(&pool->idle, searching);
    /* After we are counted: what was pushed before a waker could see us. */
    if (!pool->tasks->has_some(worker) && !pirn__pool_is_stopped(pool))
        wait_for_event(worker);
    if (pirn__idle_leave_sleep(&pool->idle))
        pirn__pinned_nudge(pool);
}

/* The same for one with pinned tasks. */
static void sleep_by_name(struct pirn__worker *worker, bool searching)
{
    if (pirn__pinned_sleep(worker, searching))
        (void)pirn__reactor_harvest(worker->pool->rt->home.reactor,
                                    &worker->harvest, PIRN_EXPIRED);
}

/* A hook may take its time: nobody counts on our search meanwhile.  What comes
 * without a wake therefore is found by the look before the sleep. */
static void tell_park(struct pirn__worker *worker)
{
    struct pirn__pool *pool = worker->pool;
    const struct pirn__hooks *hooks = &pool->rt->hooks;

    if (hooks->on_park == NULL)
        return;
    if (worker->searching)
        (void)pirn__idle_stop_search(&pool->idle);
    worker->searching = false;
    pirn__hooks_tell(hooks, hooks->on_park, worker->index);
}

static void sleep_until_event(struct pirn__worker *worker, uint64_t nap_ns)
{
    struct pirn__pool *pool = worker->pool;
    bool searching;

    tell_park(worker);
    searching = worker->searching;
    worker->harvest.woken = false;
    worker->searching = false;
    set_state(worker, PIRN__WORKER_SLEEPING);
    set_alarm(worker);
    tell_shutdown(pool);
    if (pirn__pinned_has(worker))
        sleep_by_name(worker, searching);
    else if (nap_ns == 0 || !nap(worker, searching, nap_ns))
        sleep_in_set(worker, searching);
    take_wake(worker);
    set_state(worker, PIRN__WORKER_RUNNING);
    pirn__hooks_tell(&pool->rt->hooks, pool->rt->hooks.on_unpark,
                     worker->index);
    share_batch(worker);
    worker->rested = true;
}

/* Find something, or sleep; the loop looks again. */
static struct pirn__task *find_or_sleep(struct pirn__worker *worker)
{
    struct pirn__task *task;
    uint64_t nap_ns;

    look_for_events(worker);
    task = next_own(worker);
    if (task != NULL)
        return task;
    nap_ns = plan_nap(worker);
    if (nap_ns == 0)
        task = search(worker);
    if (task == NULL)
        sleep_until_event(worker, nap_ns);
    return task;
}

/* The alarm of a wheel whose worker sleeps: whoever harvests it fires. */
void pirn__worker_alarm(struct pirn__alarm *alarm)
{
    struct pirn__worker *worker =
        PIRN_CONTAINER_OF(alarm, struct pirn__worker, alarm);

    pirn__timers_fire(&worker->timers, SIZE_MAX);
    /* relaxed: a hint; a worker that runs looks at its wheel itself. */
    if (pirn__load(&worker->state, relaxed) == PIRN__WORKER_SLEEPING)
        set_alarm(worker);
}

/* An earlier deadline was published on a wheel. */
void pirn__worker_earlier(struct pirn__timers *timers)
{
    struct pirn__worker *worker =
        PIRN_CONTAINER_OF(timers, struct pirn__worker, timers);

    /* The timer descriptor would wake a worker of the parent. */
    if (pirn__home_is_forked(timers->home))
        return;
    /* seq_cst [worker.state]: after the deadline was published; against a
     * worker that says it sleeps and then looks at its wheel. */
    if (pirn__load(&worker->state, seq_cst) == PIRN__WORKER_SLEEPING)
        set_alarm(worker);
}

void pirn__worker_drain(struct pirn__worker *worker)
{
    const struct pirn__taskpool_ops *tasks = worker->pool->tasks;
    struct pirn__task *task;

    release_deferred(worker);
    /* Ends: past the deadline a popped task is only dropped. */
    while ((task = tasks->pop(worker)) != NULL ||
           (task = tasks->pop_shared(worker)) != NULL ||
           (task = tasks->steal(worker)) != NULL)
        (void)run_task(worker, task, pirn__local());
}

/* The pool stops: let the next sleeper see it, and drop what is left to us. */
static void end_run(struct pirn__worker *worker)
{
    struct pirn__pool *pool = worker->pool;

    pirn__reactor_wake(pool->rt->home.reactor);
    if (pirn__runtime_phase(pool->rt) >= PIRN__PHASE_ABORTING)
        pirn__worker_drain(worker);
    if (worker->searching)
        (void)pirn__idle_stop_search(&pool->idle);
    worker->searching = false;
    set_state(worker, PIRN__WORKER_ENDED);
    pirn__slabs_flush(&pool->rt->slabs, &worker->cache);
}

void pirn__worker_run(struct pirn__worker *worker)
{
    struct pirn__pool *pool = worker->pool;
    struct pirn__local *local = pirn__local();

    PIRN_ASSERT(local != NULL);
    local->driving = &pool->rt->home;
    local->worker = worker;
    local->turn = &worker->turn;
    pirn__no_suspend_begin(local);
    set_state(worker, PIRN__WORKER_RUNNING);
    worker->rested = true;
    while (!pirn__pool_is_stopped(pool)) {
        struct pirn__task *task = next_own(worker);

        if (task == NULL)
            task = find_or_sleep(worker);
        if (task == NULL)
            continue;
        found_work(worker);
        if (!run_task(worker, task, local))
            break;
    }
    if (local->worker == worker)
        end_run(worker);
    pirn__no_suspend_end(local);
    local->turn = NULL;
    local->worker = NULL;
    local->driving = NULL;
}
