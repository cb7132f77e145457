/* SPDX-License-Identifier: MIT */
/* src/sched/runtime.c - making a runtime, its references, its facts. */
#include "sched/runtime.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/list.h"
#include "reactor/reactor.h"
#include "sched/histogram.h"
#include "sched/worker.h"
#include "sys/fork.h"
#include "sys/heap.h"
#include "sys/sys.h"
#include "task/task.h"

static const struct pirn__stacks_ops *stacks_ops;

void pirn__runtime_set_stacks_ops(const struct pirn__stacks_ops *ops)
{
    stacks_ops = ops;
}

static pirn__adjust_fn *adjust_fn;

void pirn__runtime_set_adjust(pirn__adjust_fn *fn)
{
    adjust_fn = fn;
}

static uint64_t runtime_now(struct pirn__home *home)
{
    return pirn__timers_now(home->timers);
}

/* One line on standard error, for a failure that has no other taker. */
static void print_failure(const pirn_failure *failure)
{
    char line[320];
    int length = snprintf(line, sizeof line, "pirn: task %s (%s) failed: %s%s%s\n",
                          failure->name != NULL ? failure->name : "-",
                          failure->site, pirn_err_name(failure->outcome),
                          failure->message[0] != '\0' ? ": " : "",
                          failure->message);
    size_t size = length < (int)sizeof line ? (size_t)length : sizeof line - 1;

    (void)pirn__sys->write(2, line, size);
}

static void runtime_failed(struct pirn__home *home, const pirn_failure *failure)
{
    struct pirn_runtime *rt = pirn__runtime_of(home);
    struct pirn__gate *gate;

    /* relaxed: a statistic. */
    pirn__add(&rt->failures, 1, relaxed);
    gate = pirn__hooks_enter(&rt->hooks);
    if (gate == NULL)
        return;
    if (rt->on_failure != NULL)
        rt->on_failure(rt->on_failure_arg, failure);
    else
        print_failure(failure);
    pirn__hooks_leave(gate);
}

static const struct pirn__home_ops home_ops = {
    .submit = pirn__driver_submit,
    .wake = pirn__driver_wake,
    .drive_or_park = pirn__host_drive_or_park,
    .now = runtime_now,
    .failed = runtime_failed,
    .free = pirn__runtime_free,
};

/* A pool drives itself. */
static const struct pirn__home_ops pool_home_ops = {
    .submit = pirn__pool_submit,
    .wake = pirn__pool_wake,
    .drive_or_park = pirn__pool_park,
    .now = runtime_now,
    .failed = runtime_failed,
    .aborts = pirn__shutdown_note_wait,
    .free = pirn__runtime_free,
};

/* The cells are all back, after shutdown: they no longer keep the memory. */
static void cells_are_back(void *owner)
{
    pirn__home_unref(owner);
}

static void fill_home(struct pirn_runtime *rt,
                      const pirn_runtime_options *options)
{
    struct pirn__home *home = &rt->home;

    home->ops = &home_ops;
    home->alloc = &rt->alloc;
    home->runtime = rt;
    home->timers = &rt->timers;
    home->blocking_threads = options->blocking_threads;
    home->blocking_queue = options->blocking_queue;
    home->stamps = options->histograms;
    home->ended = options->on_task_end != NULL
                      ? pirn__hooks_task_ended
                      : NULL;
    home->fork_generation = pirn__fork_generation();
    pirn__list_init(&home->participants);
    /* Two: all handles together, and the cells. */
    pirn__init(&home->refs, 2);
}

/* What its workers do, or its driver. */
static void fill_workers(struct pirn_runtime *rt,
                         const pirn_runtime_options *options)
{
    strncpy(rt->worker_name, options->worker_name, sizeof rt->worker_name - 1);
    rt->worker_stack_size_bytes = options->worker_stack_size_bytes;
    rt->shared_interval = options->shared_interval;
    rt->event_interval = options->event_interval;
    rt->until_inbox = (int32_t)options->shared_interval;
    rt->lifo_off = options->lifo_off;
    rt->pool_kind = options->pool;
}

static void fill_runtime(struct pirn_runtime *rt,
                         const pirn_runtime_options *options)
{
    fill_home(rt, options);
    rt->stack_size_bytes = options->stack_size_bytes;
    rt->overflow_report = options->overflow_report;
    rt->on_failure = options->on_failure;
    rt->on_failure_arg = options->on_failure_arg;
    pirn__hooks_init(&rt->hooks, rt->hook_gates, options);
    fill_workers(rt, options);
    rt->seed = options->seed != 0 ? options->seed : pirn__sys->random();
    rt->turn.home = &rt->home;
    rt->turn.timers = &rt->timers;
    rt->turn.ledger = &rt->ledger;
    rt->cache.may_grow = true;
    rt->turn.quiet_ledger = rt->home.ended == NULL ? &rt->ledger : NULL;
    pirn__init(&rt->handles, 1);
    /* Before the first turn a wake must reach the descriptor. */
    pirn__init(&rt->sleeping, PIRN__DRIVER_ASLEEP);
    pirn__seat_init(&rt->seat);
    pirn__slabs_init(&rt->slabs, &rt->alloc, cells_are_back, &rt->home);
    pirn__group_init(&rt->group, &rt->home, &rt->slabs);
    pirn__timers_init(&rt->timers, &rt->home);
}

/* Make a pool of so many workers, not started. */
static int make_pool(struct pirn_runtime *rt, uint32_t workers)
{
    int rc = pirn__pool_new(rt, workers, &rt->pool);

    if (rc < 0)
        return rc;
    rt->home.ops = &pool_home_ops;
    rt->home.timers = &rt->pool->workers[0]->timers;
    return 0;
}

/* Make what runs the tasks: a pool, or the records of the driver. */
static int make_runner(struct pirn_runtime *rt, uint32_t workers)
{
    if (workers > 0)
        return make_pool(rt, workers);
    if (!rt->home.stamps) {
        pirn__spawn_usually(rt, &rt->turn);
        return 0;
    }
    rt->histograms = pirn__histograms_new(&rt->alloc);
    return rt->histograms != NULL ? 0 : -ENOMEM;
}

/* Made, but no thread of its own runs yet. */
static int make_runtime(const struct pirn__options *options,
                        struct pirn_runtime **out)
{
    const pirn_alloc *alloc = options->set.alloc;
    struct pirn_runtime *rt =
        alloc->take(alloc->ctx, sizeof *rt, _Alignof(struct pirn_runtime));
    int rc;

    if (rt == NULL)
        return -ENOMEM;
    memset(rt, 0, sizeof *rt);
    rt->alloc = *alloc;
    rt->workers_source = options->workers_source;
    fill_runtime(rt, &options->set);
    rc = pirn__reactor_new(&rt->alloc, &rt->home, &rt->home.reactor);
    if (rc < 0)
        goto fail_memory;
    rc = make_runner(rt, options->set.workers);
    if (rc < 0)
        goto fail_reactor;
    *out = rt;
    return 0;

fail_reactor:
    pirn__reactor_shutdown(rt->home.reactor);
    pirn__reactor_free(rt->home.reactor);
fail_memory:
    alloc->give(alloc->ctx, rt, sizeof *rt, _Alignof(struct pirn_runtime));
    return rc;
}

int pirn_runtime_new(const pirn_runtime_options *options, pirn_runtime **out)
{
    struct pirn__options resolved;
    struct pirn_runtime *rt = NULL;
    int rc;

    if (out == NULL)
        return -EINVAL;
    *out = NULL;
    rc = pirn__options_resolve(options, &resolved, NULL);
    if (rc < 0)
        return rc;
    if (adjust_fn != NULL)
        adjust_fn(options, &resolved);
    rc = make_runtime(&resolved, &rt);
    if (rc < 0)
        return rc;
    if (stacks_ops != NULL)
        stacks_ops->begin(rt);
    rc = rt->pool == NULL ? 0 : pirn__pool_start(rt->pool);
    if (rc < 0) {
        /* Nobody was given the runtime, so nobody is told of its end. */
        rt->alloc.done = NULL;
        pirn_runtime_unref(rt);
        return rc;
    }
    *out = rt;
    return 0;
}

void pirn__runtime_end_stacks(struct pirn_runtime *rt)
{
    if (stacks_ops != NULL)
        stacks_ops->end(rt);
}

pirn_runtime *pirn_runtime_ref(pirn_runtime *rt)
{
    /* relaxed: the caller has a reference already. */
    if (rt != NULL)
        pirn__add(&rt->handles, 1, relaxed);
    return rt;
}

void pirn_runtime_unref(pirn_runtime *rt)
{
    if (rt == NULL)
        return;
    /* A child has no driver and shares the wait set with its parent: it leaves
     * everything alone. */
    if (rt->home.fork_generation != pirn__fork_generation())
        return;
    /* acq_rel: release [runtime.handles] our uses before the end; acquire
     * [runtime.handles] everybody's, for the last one. */
    if (pirn__sub(&rt->handles, 1, acq_rel) != 1)
        return;
    /* The result says what the report would; nobody asked for one. */
    int rc = pirn_runtime_shutdown(rt, PIRN_EXPIRED, NULL);

    PIRN_REQUIRE(rc != -EDEADLK, "the last reference to a runtime is not "
                                 "given up inside a task");
    pirn__home_unref(&rt->home);
}

void pirn__runtime_free(struct pirn__home *home)
{
    struct pirn_runtime *rt = pirn__runtime_of(home);
    pirn_alloc alloc = rt->alloc;
    bool all = true;

    if (stacks_ops != NULL)
        all = stacks_ops->free(rt);
    if (rt->pool != NULL)
        pirn__pool_free(rt->pool);
    pirn__histograms_free(rt->histograms, &alloc);
    pirn__reactor_free(home->reactor);
    alloc.give(alloc.ctx, rt, sizeof *rt, _Alignof(struct pirn_runtime));
    if (all && alloc.done != NULL)
        alloc.done(alloc.ctx);
}

static uint64_t read_counter(const pirn__counter *counter)
{
    /* relaxed: a statistic. */
    return pirn__load(counter, relaxed);
}

static void add_pool_info(struct pirn__pool *pool, pirn_runtime_info *out)
{
    out->workers = pool->count;
    out->pool = pool->tasks->name;
    out->injected =
        pirn__injection_len(&pool->injection) + pirn__outside_len(pool);
    for (uint32_t i = 0; i < pool->count; i++) {
        struct pirn__worker *worker = pool->workers[i];
        const struct pirn__worker_counters *counters = &worker->counters;

        out->polls += read_counter(&counters->polls);
        out->turns += read_counter(&counters->parks);
        out->wakes += read_counter(&counters->wakes);
        out->deferred += read_counter(&counters->yields);
        out->steals += read_counter(&counters->steals);
        out->rescues += read_counter(&counters->rescues);
        out->timers += pirn__timers_count(&worker->timers);
    }
}

/* Tasks in all its queues but the inbox. */
static uint32_t count_queued(const struct pirn__worker *worker)
{
    uint64_t count =
        pirn__ring_len(&worker->ring) + pirn__injection_len(&worker->spill);

    for (uint32_t i = 0; i < PIRN__CLASSES; i++)
        count += pirn__injection_len(&worker->slot[i]);
    return (uint32_t)count;
}

int pirn_runtime_get_worker(pirn_runtime *rt, uint32_t index,
                            pirn_worker_info *out)
{
    struct pirn__worker *worker;
    const struct pirn__worker_counters *counters;

    if (rt == NULL || out == NULL || rt->pool == NULL ||
        index >= rt->pool->count)
        return -EINVAL;
    worker = rt->pool->workers[index];
    counters = &worker->counters;
    *out = (pirn_worker_info){
        .polls = read_counter(&counters->polls),
        .steals = read_counter(&counters->steals),
        .overflows = read_counter(&counters->overflows),
        .parks = read_counter(&counters->parks),
        .wakes = read_counter(&counters->wakes),
        .lifo_runs = read_counter(&counters->lifo_runs),
        .yields = read_counter(&counters->yields),
        .rescues = read_counter(&counters->rescues),
        .queued = count_queued(worker),
        .inbox = read_counter(&worker->inbox_len),
    };
    return 0;
}

void pirn_runtime_get_info(pirn_runtime *rt, pirn_runtime_info *out)
{
    struct pirn__slab_stats slabs;
    struct pirn__group_counts counts;

    if (out == NULL)
        return;
    *out = (pirn_runtime_info){0};
    if (rt == NULL)
        return;
    counts = pirn__root_read(rt);
    pirn__slabs_stats(&rt->slabs, &slabs);
    out->tasks = counts.live;
    out->spawned = counts.spawned;
    out->timers = pirn__timers_count(&rt->timers);
    /* relaxed: a statistic. */
    out->polls = pirn__load(&rt->polls, relaxed);
    /* relaxed: a statistic. */
    out->turns = pirn__load(&rt->turns, relaxed);
    /* relaxed: a statistic. */
    out->deferred = pirn__load(&rt->deferrals, relaxed);
    /* relaxed: a statistic. */
    out->wakes = pirn__load(&rt->wakes, relaxed);
    /* relaxed: a statistic. */
    out->failures = pirn__load(&rt->failures, relaxed);
    out->task_bytes = slabs.bytes;
    out->backend = "epoll";
    out->guards = "";
    out->workers_source = rt->workers_source;
    out->pool = "";
    if (rt->pool != NULL)
        add_pool_info(rt->pool, out);
    if (stacks_ops != NULL)
        stacks_ops->info(rt, out);
}

/* The clock is that of the one wheel of a current-thread runtime. */
static int may_set_clock(const pirn_runtime *rt)
{
    if (rt == NULL)
        return -EINVAL;
    return rt->pool != NULL ? -EPERM : 0;
}

int pirn_runtime_clock_pause(pirn_runtime *rt)
{
    int rc = may_set_clock(rt);

    if (rc == 0)
        pirn__timers_pause(&rt->timers);
    return rc;
}

int pirn_runtime_clock_advance(pirn_runtime *rt, uint64_t ns)
{
    int rc = may_set_clock(rt);

    return rc == 0 ? pirn__timers_advance(&rt->timers, ns) : rc;
}

int pirn_runtime_clock_resume(pirn_runtime *rt)
{
    int rc = may_set_clock(rt);

    if (rc == 0)
        pirn__timers_resume(&rt->timers);
    return rc;
}
