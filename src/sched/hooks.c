/* SPDX-License-Identifier: MIT */
/* src/sched/hooks.c - see hooks.h. */
#include "sched/hooks.h"

#include "sched/runtime.h"
#include "task/local.h"
#include "task/task.h"

void pirn__hooks_init(struct pirn__hooks *hooks,
                      const pirn_runtime_options *options)
{
    *hooks = (struct pirn__hooks){
        .on_thread_start = options->on_thread_start,
        .on_thread_stop = options->on_thread_stop,
        .on_park = options->on_park,
        .on_unpark = options->on_unpark,
        .on_task_spawn = options->on_task_spawn,
        .on_task_end = options->on_task_end,
        .arg = options->hook_arg,
    };
}

void pirn__hooks_tell(const struct pirn__hooks *hooks, pirn_worker_fn *hook,
                      uint32_t worker)
{
    struct pirn__local *local;

    if (hook == NULL)
        return;
    local = pirn__local();
    if (local != NULL)
        pirn__no_suspend_begin(local);
    hook(hooks->arg, worker);
    if (local != NULL)
        pirn__no_suspend_end(local);
}

static void tell_of_task(const struct pirn__hooks *hooks,
                         pirn_task_event_fn *hook, struct pirn__task *task,
                         int outcome)
{
    struct pirn__local *local = pirn__local();
    const pirn_task *handle = (pirn_task *)task;
    pirn_task_event event = {
        .id = pirn_task_get_id(handle),
        .name = pirn_task_name(handle),
        .site = pirn_task_site(handle),
        .outcome = outcome,
    };

    if (local != NULL)
        pirn__no_suspend_begin(local);
    hook(hooks->arg, &event);
    if (local != NULL)
        pirn__no_suspend_end(local);
}

void pirn__hooks_task_spawned(const struct pirn__hooks *hooks,
                              struct pirn__task *task)
{
    if (hooks->on_task_spawn != NULL)
        tell_of_task(hooks, hooks->on_task_spawn, task, 0);
}

void pirn__hooks_task_ended(struct pirn__home *home, struct pirn__task *task,
                            int outcome)
{
    struct pirn_runtime *rt = pirn__runtime_of(home);

    /* The program may have put away what the hook needs. */
    if (pirn__runtime_phase(rt) != PIRN__PHASE_DONE)
        tell_of_task(&rt->hooks, rt->hooks.on_task_end, task, outcome);
}
