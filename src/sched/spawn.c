/* SPDX-License-Identifier: MIT */
/* src/sched/spawn.c - from a future to a queued task, for every front end. */
#include <errno.h>

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

/* A pinned task belongs to the worker that spawns it. */
static int pin_here(struct pirn__pool *pool, struct pirn__task_plan *plan)
{
    struct pirn__worker *worker = pirn__worker_here(pool);

    if (worker == NULL)
        return -EINVAL;
    plan->home_worker = worker->index;
    return pirn__pinned_prepare(worker);
}

int pirn__spawn(struct pirn__home *home, const struct pirn__task_ops *ops,
                pirn_future *future, size_t size,
                const pirn_spawn_options *options, const char *site,
                pirn_task **out)
{
    struct pirn_runtime *rt = pirn__runtime_of(home);
    struct pirn__spawner here = pirn__spawner_here(rt, pirn__local());
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

int pirn_spawn_at(pirn_future *future, size_t size,
                  const pirn_spawn_options *options, pirn_task **out,
                  const char *site)
{
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
               : pirn__local_home();
    rc = pirn__spawn_check(home);
    if (rc < 0)
        return rc;
    return pirn__spawn(home, &pirn__stackless_ops, future, size, options, site,
                       out);
}
