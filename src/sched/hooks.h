/* SPDX-License-Identifier: MIT */
/* src/sched/hooks.h - functions of the program that a runtime calls.
 *
 * A hook runs in the middle of the scheduler, so it may not suspend: the calls
 * that would answer -EDEADLK.
 *
 * Once shutdown has returned the program may put away what its hooks need, while
 * a worker or a driver that came too late is yet to come back.  So each call is
 * made inside a gate, which shutdown seals.
 */
#ifndef PIRN_SCHED_HOOKS_H
#define PIRN_SCHED_HOOKS_H

#include <pirn/runtime.h>

#include "base/atomic.h"
#include "reactor/gate.h"

struct pirn__home;
struct pirn__task;

/* One for each few workers, so that they do not meet in it for every task. */
#ifndef PIRN__HOOK_GATES
#define PIRN__HOOK_GATES 8
#endif
struct pirn__hook_gate {
    _Alignas(PIRN__CACHE_LINE) struct pirn__gate gate;
};

/* Constant, but for the gates.  Each hook may be NULL. */
struct pirn__hooks {
    struct pirn__hook_gate *gates; /* PIRN__HOOK_GATES of them */
    pirn_worker_fn *on_thread_start;
    pirn_worker_fn *on_thread_stop;
    pirn_worker_fn *on_park;
    pirn_worker_fn *on_unpark;
    pirn_task_event_fn *on_task_spawn;
    pirn_task_event_fn *on_task_end;
    void *arg;
};

void pirn__hooks_init(struct pirn__hooks *hooks,
                      struct pirn__hook_gate *gates,
                      const pirn_runtime_options *options);

/* Around a call of one; NULL: they have ended, do not call. */
struct pirn__gate *pirn__hooks_enter(const struct pirn__hooks *hooks);
void pirn__hooks_leave(struct pirn__gate *gate);

/* Let nobody call one any more, and wait for those that do, but not beyond
 * `deadline`: a hook may be what holds a thread up. */
void pirn__hooks_end(const struct pirn__hooks *hooks, pirn_deadline deadline);

/* Call one of those about a worker, if there is one. */
void pirn__hooks_tell(const struct pirn__hooks *hooks, pirn_worker_fn *hook,
                      uint32_t worker);

/* A task was admitted and is not queued yet. */
void pirn__hooks_tell_spawned(const struct pirn__hooks *hooks,
                              struct pirn__task *task);

static inline void pirn__hooks_task_spawned(const struct pirn__hooks *hooks,
                                            struct pirn__task *task)
{
    if (hooks->on_task_spawn != NULL)
        pirn__hooks_tell_spawned(hooks, task);
}

/* As home->ended; only if there is such a hook. */
void pirn__hooks_task_ended(struct pirn__home *home, struct pirn__task *task,
                            int outcome);

#endif /* PIRN_SCHED_HOOKS_H */
