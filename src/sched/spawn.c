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
 * for the queue of its own thread.  It does what spawn_any() does, in place. */

void pirn__spawn_usually(struct pirn_runtime *rt, struct pirn__turn *turn)
{
    if (rt->hooks.on_task_spawn == NULL)
        turn->starts_in = &rt->group;
}

/* The poll that this thread is in, if what its task starts may be started so and
 * the task has not ended yet; else NULL. */
static inline struct pirn__turn *usual_turn(void)
{
    const struct pirn__local *local = pirn__tls_get();
    struct pirn__turn *turn = local == NULL ? NULL : local->turn;

    if (turn == NULL || turn->starts_in == NULL || turn->task == NULL ||
        turn->own_waker == NULL)
        return NULL;
    return turn;
}

/* The gate has closed since we looked. */
PIRN__COLD static void start_late(struct pirn__group *group,
                                  struct pirn__task *task,
                                  enum pirn__group_gate gate)
{
    pirn__group_tell_late(task, gate);
    group->home->ops->submit(group->home, task, PIRN__ORIGIN_SPAWN);
}

/* The ring is full. */
PIRN__COLD static void start_elsewhere(struct pirn__worker *worker,
                                       struct pirn__task *task)
{
    (void)worker->pool->tasks->push(worker->pool, worker, task,
                                    PIRN__ORIGIN_SPAWN);
    pirn__pool_wake_one(worker->pool);
}

/* No call comes back to what is inline here, so that nothing has to be kept in
 * registers that a call leaves alone.  False, and nothing done: another way. */

static PIRN__HOT_INLINE bool
spawn_in_ring(struct pirn__pool *pool, struct pirn__worker *worker,
              struct pirn__group *group, const struct pirn__task_ops *ops,
              const pirn_future *future, size_t size, const char *site)
{
    enum pirn__group_gate gate;
    struct pirn__task *task =
        pirn__task_from_cache(&worker->cache, ops, future, size, site);

    if (task == NULL)
        return false;
    task->group = group;
    pirn__state_open(pirn__task_state(task), 0, false);
    gate = pirn__group_count_in(group, &worker->ledger);
    if (gate != PIRN__GROUP_OPEN)
        start_late(group, task, gate);
    else if (!pirn__ring_push(&worker->ring, &task->cell.link))
        start_elsewhere(worker, task);
    else if (pirn__idle_sleepers(&pool->idle) > 0)
        pirn__pool_wake_one(pool);
    return true;
}

static __attribute__((noinline)) bool
spawn_in_queue(struct pirn_runtime *rt, const struct pirn__task_ops *ops,
               const pirn_future *future, size_t size, const char *site)
{
    enum pirn__group_gate gate;
    struct pirn__task *task =
        pirn__task_from_cache(&rt->cache, ops, future, size, site);

    if (task == NULL)
        return false;
    task->group = &rt->group;
    pirn__state_open(pirn__task_state(task), 0, false);
    gate = pirn__group_count_in(&rt->group, &rt->ledger);
    if (gate != PIRN__GROUP_OPEN)
        start_late(&rt->group, task, gate);
    else
        pirn__queue_push(&rt->ready, &task->cell.link);
    return true;
}

static PIRN__HOT_INLINE bool
spawn_usual(struct pirn__turn *turn, const struct pirn__task_ops *ops,
            const pirn_future *future, size_t size, const char *site)
{
    struct pirn__group *group = turn->starts_in;
    struct pirn_runtime *rt =
        PIRN_CONTAINER_OF(group, struct pirn_runtime, group);

    if (pirn__home_is_forked(&rt->home) ||
        pirn__group_gate(group) != PIRN__GROUP_OPEN)
        return false;
    if (rt->pool == NULL)
        return spawn_in_queue(rt, ops, future, size, site);
    return spawn_in_ring(rt->pool,
                         PIRN_CONTAINER_OF(turn, struct pirn__worker, turn),
                         group, ops, future, size, site);
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
    struct pirn__turn *turn = usual_turn();

    if (options == NULL && out == NULL && turn != NULL && turn->home == home &&
        spawn_usual(turn, ops, future, size, site))
        return 0;
    return spawn_unusual(pirn__local(), home, ops, future, size, options, site,
                         out);
}

static bool is_future(const pirn_future *future)
{
    return future != NULL && future->ops != NULL && future->ops->poll != NULL &&
           future->ops->drop != NULL;
}

/* With all that may be asked for or be wrong. */
static __attribute__((noinline)) int
spawn_stackless(pirn_future *future, size_t size,
                const pirn_spawn_options *options, pirn_task **out,
                const char *site)
{
    struct pirn__home *home;
    int rc;

    if (out != NULL)
        *out = NULL;
    if (!is_future(future) || site == NULL)
        return -EINVAL;
    if (size < sizeof *future || size > SPAWN_SIZE_MAX)
        return -EINVAL;
    home = pirn__home_for(options);
    rc = pirn__spawn_check(home);
    if (rc < 0)
        return rc;
    return pirn__spawn(home, &pirn__stackless_ops, future, size, options, site,
                       out);
}

/* The usual spawn of what is small enough to be moved without a call. */
int pirn_spawn_at(pirn_future *future, size_t size,
                  const pirn_spawn_options *options, pirn_task **out,
                  const char *site)
{
    struct pirn__turn *turn;

    if (options != NULL || out != NULL || !pirn__task_moves_words(size) ||
        !is_future(future) || site == NULL)
        return spawn_stackless(future, size, options, out, site);
    turn = usual_turn();
    if (turn != NULL &&
        spawn_usual(turn, &pirn__stackless_ops, future, size, site))
        return 0;
    return spawn_stackless(future, size, NULL, NULL, site);
}
