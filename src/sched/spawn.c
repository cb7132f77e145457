/* SPDX-License-Identifier: MIT */
/* src/sched/spawn.c - from a future to a queued task, for every front end. */
#include <errno.h>

#include "sched/outside.h"
#include "sched/pinned.h"
#include "sched/runtime.h"
#include "sched/worker.h"
#include "sys/fork.h"
#include "task/task.h"

enum { SPAWN_SIZE_MAX = 16 << 20 };

int pirn__spawn_check(struct pirn__home *home)
{
    if (home == NULL)
        return PIRN_ENORUNTIME;
    return home->fork_generation == pirn__fork_generation() ? 0 : PIRN_EFORKED;
}

static bool is_priority(enum pirn_priority priority)
{
    return (unsigned)priority <= PIRN_PRIORITY_LOW;
}

/* Nothing that the task would keep is asked for. */
static bool is_plain(const pirn_spawn_options *options)
{
    return options == NULL ||
           (options->name == NULL && options->context == NULL &&
            !options->pinned && options->priority == PIRN_PRIORITY_NORMAL);
}

/* A pinned task belongs to the worker that spawns it. */
static int pin_here(struct pirn__pool *pool, struct pirn__task_plan *plan)
{
    struct pirn__worker *worker = pirn__worker_here(pool);

    if (worker == NULL)
        return -EINVAL;
    plan->home_worker = worker->index;
    return pirn__pinned_prepare(worker);
}

/* The usual spawn: a running task starts another one, without options or handle,
 * for the ring of its own worker.  It does what spawn_any() does, in place. */

/* That worker, or NULL. */
static inline struct pirn__worker *usual_spawner(const struct pirn__home *home,
                                                 const struct pirn__local *local)
{
    struct pirn__worker *worker;

    if (local == NULL || local->driving != home || local->worker == NULL)
        return NULL;
    worker = local->worker;
    if (!worker->by_ring || worker->turn.task == NULL ||
        worker->turn.task->group == NULL ||
        worker->pool->rt->hooks.on_task_spawn != NULL)
        return NULL;
    return worker;
}

static inline void start_usual(struct pirn__worker *worker,
                               struct pirn__task *task)
{
    struct pirn__pool *pool = worker->pool;
    struct pirn__group *group = &pool->rt->group;

    task->group = group;
    pirn__state_open(pirn__task_state(task), 0, false);
    pirn__group_count_in(group, &worker->ledger, task);
    if (!pirn__ring_push(&worker->ring, &task->cell.link))
        (void)pool->tasks->push(pool, worker, task, PIRN__ORIGIN_SPAWN);
    if (pirn__idle_sleepers(&pool->idle) > 0)
        pirn__pool_wake_one(pool);
}

/* Any spawn. */
static int spawn_any(struct pirn__home *home, const struct pirn__task_ops *ops,
                     pirn_future *future, size_t size,
                     const pirn_spawn_options *options, const char *site,
                     pirn_task **out)
{
    struct pirn_runtime *rt = pirn__runtime_of(home);
    struct pirn__local *local = pirn__local();
    struct pirn__spawner here = pirn__spawner_here(rt, local);
    struct pirn__task_plan plan = {
        .ops = ops,
        .home = home,
        .slabs = &rt->slabs,
        .cache = here.cache,
        .future = future,
        .size = size,
        .options = options,
        .site = site,
        .handle = out != NULL,
    };
    struct pirn__task *task;
    int rc = 0;

    if (options != NULL && !is_priority(options->priority))
        return -EINVAL;
    if (options != NULL && options->pinned && rt->pool != NULL)
        rc = pin_here(rt->pool, &plan);
    if (rc < 0)
        return rc;
    /* Before any allocation: a dead runtime has given its slabs up. */
    if (pirn__runtime_phase(rt) != PIRN__PHASE_OPEN)
        return PIRN_ESHUTDOWN;
    task = pirn__task_new(&plan);
    /* It may have ended meanwhile; then there is no memory to be had. */
    if (task == NULL)
        return pirn__runtime_phase(rt) == PIRN__PHASE_OPEN ? -ENOMEM
                                                            : PIRN_ESHUTDOWN;
    rc = pirn__group_admit(&rt->group, here.ledger, task, &plan);
    if (rc < 0) {
        pirn__task_discard_new(task, &plan);
        return rc;
    }
    if (out != NULL)
        *out = (pirn_task *)task;
    pirn__hooks_task_spawned(&rt->hooks, task);
    home->ops->submit(home, task, PIRN__ORIGIN_SPAWN);
    return 0;
}

/* The usual spawn, or false where it is none. */
static PIRN__HOT_INLINE bool
spawn_usual(const struct pirn__local *local, struct pirn__home *home,
            const struct pirn__task_ops *ops, const pirn_future *future,
            size_t size, const char *site)
{
    struct pirn__worker *worker = usual_spawner(home, local);
    struct pirn__task *task;

    if (worker == NULL ||
        pirn__group_gate(&worker->pool->rt->group) != PIRN__GROUP_OPEN)
        return false;
    task = pirn__task_from_cache(&worker->cache, ops, future, size, site);
    if (task == NULL)
        return false;
    start_usual(worker, task);
    return true;
}

/* What is not the usual spawn: by a thread outside, or any other. */
static inline int spawn_unusual(struct pirn__local *local,
                                struct pirn__home *home,
                                const struct pirn__task_ops *ops,
                                pirn_future *future, size_t size,
                                const pirn_spawn_options *options,
                                const char *site, pirn_task **out)
{
    struct pirn_runtime *rt = pirn__runtime_of(home);

    if (out == NULL && is_plain(options) &&
        pirn__outside_serves(rt, local, size))
        return pirn__outside_spawn(rt, pirn__outside_of(rt->pool, local), ops,
                                   future, size, site);
    return spawn_any(home, ops, future, size, options, site, out);
}

int pirn__spawn(struct pirn__home *home, const struct pirn__task_ops *ops,
                pirn_future *future, size_t size,
                const pirn_spawn_options *options, const char *site,
                pirn_task **out)
{
    struct pirn__local *local = pirn__local();

    if (options == NULL && out == NULL &&
        spawn_usual(local, home, ops, future, size, site))
        return 0;
    return spawn_unusual(local, home, ops, future, size, options, site, out);
}

int pirn_spawn_at(pirn_future *future, size_t size,
                  const pirn_spawn_options *options, pirn_task **out,
                  const char *site)
{
    struct pirn__local *local = pirn__local();
    struct pirn__home *home;
    int rc;

    if (out != NULL)
        *out = NULL;
    if (future == NULL || future->ops == NULL || future->ops->poll == NULL ||
        future->ops->drop == NULL || site == NULL)
        return -EINVAL;
    if (size < sizeof *future || size > SPAWN_SIZE_MAX)
        return -EINVAL;
    home = options != NULL && options->runtime != NULL
               ? pirn__home_of(options->runtime)
               : pirn__local_home_of(local);
    rc = pirn__spawn_check(home);
    if (rc < 0)
        return rc;
    if (options == NULL && out == NULL &&
        spawn_usual(local, home, &pirn__stackless_ops, future, size, site))
        return 0;
    return spawn_unusual(local, home, &pirn__stackless_ops, future, size,
                         options, site, out);
}
