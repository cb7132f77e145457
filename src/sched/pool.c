/* SPDX-License-Identifier: MIT */
/* src/sched/pool.c - the workers of a runtime: made, started, stopped.
 *
 * A pool runtime drives itself.  A plain thread that waits for something of it
 * parks; block_on polls its future there and parks in between.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/lock.h"
#include "sched/histogram.h"
#include "sched/pinned.h"
#include "sched/runtime.h"
#include "sched/worker.h"
#include "sys/sys.h"
#include "task/await.h"
#include "task/task.h"

/* Making. */

static int worker_init(struct pirn__pool *pool, struct pirn__worker *worker,
                       uint32_t index)
{
    struct pirn_runtime *rt = pool->rt;
    int rc;

    memset(worker, 0, sizeof *worker);
    worker->pool = pool;
    worker->index = index;
    worker->turn.home = &rt->home;
    worker->turn.timers = &worker->timers;
    worker->turn.ledger = &worker->ledger;
    worker->turn.quiet_ledger =
        rt->home.ended == NULL ? &worker->ledger : NULL;
    worker->turn.worker_index = index;
    pirn__prng_seed(&worker->prng, rt->seed + index);
    pirn__ring_init(&worker->ring);
    pirn__timers_init(&worker->timers, &rt->home);
    worker->timers.earlier = pirn__worker_earlier;
    pirn__init(&worker->state, PIRN__WORKER_RUNNING);
    pirn__init(&worker->own_fd, -1);
    worker->cache.may_grow = true;
    worker->cache.set = &rt->slabs;
    worker->shared_at = rt->shared_interval;
    worker->inbox_at = PIRN__INBOX_INTERVAL;
    worker->events_at = rt->event_interval;
    rc = pirn__harvest_init(&worker->harvest, &rt->alloc);
    if (rc < 0)
        return rc;
    rc = pirn__alarm_open(rt->home.reactor, &worker->alarm, pirn__worker_alarm);
    if (rc < 0)
        goto fail_harvest;
    if (!rt->home.stamps)
        return 0;
    worker->histograms = pirn__histograms_new(&rt->alloc);
    if (worker->histograms != NULL)
        return 0;
    rc = -ENOMEM;
    pirn__alarm_close(rt->home.reactor, &worker->alarm);
fail_harvest:
    pirn__harvest_deinit(&worker->harvest, &rt->alloc);
    return rc;
}

static int worker_new(struct pirn__pool *pool, uint32_t index,
                      struct pirn__worker **out)
{
    const pirn_alloc *alloc = &pool->rt->alloc;
    struct pirn__worker *worker = alloc->take(
        alloc->ctx, sizeof *worker, _Alignof(struct pirn__worker));
    int rc;

    if (worker == NULL)
        return -ENOMEM;
    rc = worker_init(pool, worker, index);
    if (rc < 0) {
        alloc->give(alloc->ctx, worker, sizeof *worker,
                    _Alignof(struct pirn__worker));
        return rc;
    }
    *out = worker;
    return 0;
}

static void worker_free(struct pirn__pool *pool, struct pirn__worker *worker)
{
    const pirn_alloc *alloc = &pool->rt->alloc;

    if (worker->own_fd.v_ >= 0)
        pirn__sys->close(worker->own_fd.v_);
    pirn__histograms_free(worker->histograms, alloc);
    pirn__harvest_deinit(&worker->harvest, alloc);
    alloc->give(alloc->ctx, worker, sizeof *worker,
                _Alignof(struct pirn__worker));
}

static size_t pool_size(uint32_t workers)
{
    return sizeof(struct pirn__pool) +
           (size_t)workers * sizeof(struct pirn__worker *);
}

static void close_some_alarms(struct pirn__pool *pool, uint32_t workers)
{
    struct pirn__reactor *reactor = pool->rt->home.reactor;

    for (uint32_t i = 0; i < workers; i++)
        pirn__alarm_close(reactor, &pool->workers[i]->alarm);
    pirn__alarm_close(reactor, &pool->monitor);
}

void pirn__pool_close_alarms(struct pirn__pool *pool)
{
    close_some_alarms(pool, pool->count);
    pirn__alarm_close(pool->rt->home.reactor, &pool->reaper->alarm);
}

static int prepare_workers(struct pirn__pool *pool)
{
    int rc = 0;

    for (uint32_t i = 0; i < pool->count && rc == 0; i++)
        rc = pool->tasks->prepare(pool->workers[i]);
    return rc;
}

int pirn__pool_new(struct pirn_runtime *rt, uint32_t workers,
                   struct pirn__pool **out)
{
    const pirn_alloc *alloc = &rt->alloc;
    struct pirn__pool *pool =
        alloc->take(alloc->ctx, pool_size(workers), PIRN__CACHE_LINE);
    uint32_t made = 0;
    int rc;

    *out = NULL;
    if (pool == NULL)
        return -ENOMEM;
    memset(pool, 0, pool_size(workers));
    pool->rt = rt;
    pool->tasks = rt->pool_kind == PIRN_POOL_COMPUTATIONAL
                      ? &pirn__computational_ops
                      : &pirn__stealable_ops;
    pool->count = workers;
    pool->lifo_off = rt->lifo_off;
    rc = pirn__alarm_open(rt->home.reactor, &pool->monitor,
                          pirn__monitor_event);
    if (rc < 0)
        goto fail_pool;
    for (; made < workers; made++) {
        rc = worker_new(pool, made, &pool->workers[made]);
        if (rc < 0)
            goto fail_workers;
    }
    rc = prepare_workers(pool);
    if (rc == 0)
        rc = worker_new(pool, 0, &pool->reaper);
    if (rc < 0)
        goto fail_workers;
    *out = pool;
    return 0;

fail_workers:
    close_some_alarms(pool, made);
    while (made > 0)
        worker_free(pool, pool->workers[--made]);
fail_pool:
    alloc->give(alloc->ctx, pool, pool_size(workers), PIRN__CACHE_LINE);
    return rc;
}

void pirn__pool_free(struct pirn__pool *pool)
{
    const pirn_alloc *alloc = &pool->rt->alloc;

    for (uint32_t i = 0; i < pool->count; i++)
        worker_free(pool, pool->workers[i]);
    worker_free(pool, pool->reaper);
    alloc->give(alloc->ctx, pool, pool_size(pool->count), PIRN__CACHE_LINE);
}

/* Threads. */

static void thread_ended(struct pirn__pool *pool)
{
    struct pirn__home *home = &pool->rt->home;

    /* release [pool.running]: all that this thread did, for whoever waits for
     * the last one. */
    pirn__sub(&pool->running, 1, release);
    pirn__sys->futex_wake(&pool->running.v_, INT32_MAX);
    pirn__home_unref(home);
}

/* `arg`: the record of this thread, which names the worker. */
static void worker_thread(void *arg)
{
    struct pirn__local *local = arg;
    struct pirn__worker *worker = local->worker;
    struct pirn__pool *pool = worker->pool;
    const struct pirn_runtime *rt = pool->rt;

    local->worker = NULL;
    pirn__local_adopt(local);
    pirn__sys->thread_shorten_turns();
    pirn__hooks_tell(&rt->hooks, rt->hooks.on_thread_start, worker->index);
    pirn__worker_run(worker);
    pirn__hooks_tell(&rt->hooks, rt->hooks.on_thread_stop, worker->index);
    thread_ended(pool);
}

int pirn__pool_start_thread(struct pirn__worker *worker)
{
    struct pirn__pool *pool = worker->pool;
    const struct pirn_runtime *rt = pool->rt;
    struct pirn__local *local = pirn__local_new();
    char name[PIRN__WORKER_NAME_SIZE + 4];
    int rc;

    if (local == NULL)
        return -ENOMEM;
    local->worker = worker;
    snprintf(name, sizeof name, "%s-%u", rt->worker_name,
             worker->index % 1000);
    /* The thread keeps the memory, also when it never comes back. */
    pirn__home_ref(&pool->rt->home);
    /* relaxed: published by the start of the thread. */
    pirn__add(&pool->running, 1, relaxed);
    rc = pirn__sys->thread_start(name, rt->worker_stack_size_bytes,
                                 worker_thread, local);
    if (rc < 0) {
        pirn__local_disown(local);
        /* relaxed: the thread was never there. */
        pirn__sub(&pool->running, 1, relaxed);
        pirn__home_unref(&pool->rt->home);
    }
    return rc;
}

/* Of a start that failed, nothing is left when it returns: neither a hook nor
 * a thread that would give the memory back later. */
static void end_threads(struct pirn__pool *pool, uint32_t refs)
{
    struct pirn__home *home = &pool->rt->home;
    uint32_t now;

    pirn__pool_stop(pool);
    (void)pirn__pool_wait_stopped(pool, PIRN_NEVER);
    /* Ends: they are on their last lines. */
    for (;;) {
        /* acquire [home.refs]: as for the last reference. */
        now = pirn__load(&home->refs, acquire);
        if (now == refs)
            break;
        pirn_deadline soon = {pirn__sys->clock_ns() + 1000000};

        (void)pirn__sys->futex_wait(&home->refs.v_, now, soon);
    }
}

int pirn__pool_start(struct pirn__pool *pool)
{
    /* relaxed: nobody else has one yet. */
    uint32_t refs = pirn__load(&pool->rt->home.refs, relaxed);

    for (uint32_t i = 0; i < pool->count; i++) {
        int rc = pirn__pool_start_thread(pool->workers[i]);

        if (rc < 0) {
            end_threads(pool, refs);
            return rc;
        }
    }
    return 0;
}

static void wake_all(struct pirn__pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++)
        pirn__pinned_wake(pool->workers[i]);
    /* Each one that wakes passes the wake on; see worker.c. */
    pirn__reactor_wake(pool->rt->home.reactor);
}

void pirn__pool_stop(struct pirn__pool *pool)
{
    /* seq_cst [pool.stop]: a worker looks at it after it has said that it
     * sleeps, and we wake those that have said so after this. */
    pirn__store(&pool->stop, 1, seq_cst);
    wake_all(pool);
}

bool pirn__pool_is_running(const struct pirn__pool *pool)
{
    /* acquire [pool.running]: sees all that the threads did. */
    return pirn__load(&pool->running, acquire) != 0;
}

bool pirn__pool_wait_stopped(struct pirn__pool *pool, pirn_deadline deadline)
{
    for (;;) {
        /* acquire [pool.running]: sees all that the threads did. */
        uint32_t running = pirn__load(&pool->running, acquire);

        if (running == 0)
            return true;
        if (pirn__sys->futex_wait(&pool->running.v_, running, deadline) < 0)
            /* acquire [pool.running]: as above. */
            return pirn__load(&pool->running, acquire) == 0;
    }
}

/* The reaper is a core without a thread: run by us, it takes what the others
 * have, which is made reachable before. */
void pirn__pool_drain_stuck(struct pirn__pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++)
        (void)pool->tasks->reclaim(pool->workers[i]);
    pirn__worker_run(pool->reaper);
}

/* The operations of a pool's home. */

/* The ring is full.  In a child process nobody gives a lock back that another
 * thread of the parent held at the fork. */
PIRN__COLD static void submit_to_spill(struct pirn__worker *worker,
                                       pirn_slink *link)
{
    struct pirn__pool *pool = worker->pool;

    if (!pirn__home_is_forked(&pool->rt->home))
        (void)pool->tasks->push(pool, worker, pirn__task_of_link(link),
                                PIRN__ORIGIN_SPAWN);
}

/* What a running task has woken or spawned: as push() does it. */
static void submit_to_ring(struct pirn__worker *worker, pirn_slink *link)
{
    struct pirn__pool *pool = worker->pool;

    if (!pirn__ring_push(&worker->ring, link))
        submit_to_spill(worker, link);
    /* In a child process the descriptor would wake a worker of the parent. */
    if (pirn__idle_sleepers(&pool->idle) > 0 &&
        !pirn__home_is_forked(&pool->rt->home))
        pirn__pool_wake_one(pool);
}

void pirn__pool_queue_woken(struct pirn__turn *turn, struct pirn__task *task)
{
    struct pirn__worker *worker =
        PIRN_CONTAINER_OF(turn, struct pirn__worker, turn);
    pirn_slink *link = &task->cell.link;

    if (pirn__state_is_pinned(pirn__task_state(task))) {
        pirn__pool_submit(turn->home, task, PIRN__ORIGIN_WAKE);
        return;
    }
    link = pirn__worker_swap_lifo(worker, link);
    if (link != NULL)
        submit_to_ring(worker, link);
}

static void submit_elsewhere(struct pirn__pool *pool,
                             struct pirn__worker *worker,
                             struct pirn__task *task, enum pirn__origin origin)
{
    /* Between tasks it is one of a batch, which the worker shares itself. */
    bool batched = worker != NULL && worker->turn.task == NULL;
    bool visible;

    pirn__histograms_stamp(&pool->rt->home, task);
    if (batched)
        pirn__task_prefetch(task);
    visible = pool->tasks->push(pool, worker, task, origin);
    if (!visible || batched)
        return;
    if (worker == NULL)
        pirn__pool_wake_any(pool);
    else if (pirn__idle_sleepers(&pool->idle) > 0)
        pirn__pool_wake_one(pool);
}

void pirn__pool_submit(struct pirn__home *home, struct pirn__task *task,
                       enum pirn__origin origin)
{
    struct pirn__pool *pool = pirn__runtime_of(home)->pool;
    struct pirn__worker *worker = pirn__worker_here(pool);

    /* Nobody runs it here, and the descriptor would wake a worker of the
     * parent. */
    if (pirn__home_is_forked(home))
        return;
    if (worker == NULL || !worker->by_ring || worker->turn.task == NULL ||
        pirn__state_is_pinned(pirn__task_state(task)))
        submit_elsewhere(pool, worker, task, origin);
    else if (origin == PIRN__ORIGIN_WAKE && worker->turn.queue_woken != NULL)
        pirn__pool_queue_woken(&worker->turn, task);
    else
        submit_to_ring(worker, &task->cell.link);
}

void pirn__pool_wake(struct pirn__home *home)
{
    struct pirn_runtime *rt = pirn__runtime_of(home);

    /* release [runtime.nudge]: what has ended is counted; see drain_pool(). */
    pirn__add(&rt->nudge, 1, release);
    pirn__sys->futex_wake(&rt->nudge.v_, INT32_MAX);
}

/* What it waits for wakes it, also at the end of the runtime. */
void pirn__pool_park(struct pirn__home *home, struct pirn__parker *parker,
                     pirn_deadline deadline)
{
    (void)home;
    pirn__parker_park(parker, pirn__deadline_to_system(deadline));
}

/* For a block_on, which shutdown ends before what it waits for. */
static void park_while_open(struct pirn_runtime *rt,
                            struct pirn__parker *parker, pirn_deadline deadline)
{
    pirn__seat_enter_waiters(&rt->seat, parker);
    /* Now shutdown finds us, if we do not find it. */
    if (pirn__runtime_phase(rt) == PIRN__PHASE_OPEN)
        pirn__parker_park(parker, pirn__deadline_to_system(deadline));
    pirn__seat_leave_waiters(&rt->seat, parker);
}

int pirn__pool_block_on(struct pirn_runtime *rt, pirn_future *future,
                        struct pirn__parker *parker, pirn_deadline deadline)
{
    pirn_waker waker = pirn__parker_waker(parker);
    struct pirn__turn turn = {.home = &rt->home,
                              .timers = rt->home.timers,
                              .parker = parker};
    pirn_cx cx = {.waker = &waker, .turn_ = &turn};
    int rc = -EINPROGRESS;

    while (rc == -EINPROGRESS) {
        pirn__parker_reset(parker);
        turn.budget = PIRN__COOP_UNLIMITED;
        turn.now_ns = 0;
        if (pirn__poll_outside(future, &cx) == PIRN_READY)
            rc = 0;
        else if (pirn_deadline_expired(deadline))
            rc = -ETIMEDOUT;
        else if (pirn__runtime_phase(rt) != PIRN__PHASE_OPEN)
            rc = PIRN_ESHUTDOWN;
        else
            park_while_open(rt, parker, deadline);
    }
    if (rc < 0)
        pirn_future_drop(future);
    pirn__parker_reset(parker);
    pirn_waker_drop(waker);
    return rc;
}
