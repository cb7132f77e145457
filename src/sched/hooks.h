/* SPDX-License-Identifier: MIT */
/* src/sched/hooks.h - functions of the program that a runtime calls.
 *
 * A hook runs in the middle of the scheduler, so it may not suspend: the calls
 * that would answer -EDEADLK.
 */
#ifndef PIRN_SCHED_HOOKS_H
#define PIRN_SCHED_HOOKS_H

#include <pirn/runtime.h>

struct pirn__home;
struct pirn__task;

/* Constant.  Each may be NULL. */
struct pirn__hooks {
    pirn_worker_fn *on_thread_start;
    pirn_worker_fn *on_thread_stop;
    pirn_worker_fn *on_park;
    pirn_worker_fn *on_unpark;
    pirn_task_event_fn *on_task_spawn;
    pirn_task_event_fn *on_task_end;
    void *arg;
};

void pirn__hooks_init(struct pirn__hooks *hooks,
                      const pirn_runtime_options *options);

/* Call one of those about a worker, if there is one. */
void pirn__hooks_tell(const struct pirn__hooks *hooks, pirn_worker_fn *hook,
                      uint32_t worker);

/* A task was admitted and is not queued yet. */
void pirn__hooks_task_spawned(const struct pirn__hooks *hooks,
                              struct pirn__task *task);

/* As home->ended; only if there is such a hook. */
void pirn__hooks_task_ended(struct pirn__home *home, struct pirn__task *task,
                            int outcome);

#endif /* PIRN_SCHED_HOOKS_H */
