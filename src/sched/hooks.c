/* SPDX-License-Identifier: MIT */
/* src/sched/hooks.c - see hooks.h. */
#include "sched/hooks.h"

#include <errno.h>

#include "sched/runtime.h"
#include "sched/worker.h"
#include "sys/sys.h"
#include "task/local.h"
#include "task/task.h"

void pirn__hooks_init(struct pirn__hooks *hooks,
                      struct pirn__hook_gate *gates,
                      const pirn_runtime_options *options)
{
    *hooks = (struct pirn__hooks){
        .gates = gates,
        .on_thread_start = options->on_thread_start,
        .on_thread_stop = options->on_thread_stop,
        .on_park = options->on_park,
        .on_unpark = options->on_unpark,
        .on_task_spawn = options->on_task_spawn,
        .on_task_end = options->on_task_end,
        .arg = options->hook_arg,
    };
}

struct pirn__gate *pirn__hooks_enter(const struct pirn__hooks *hooks)
{
    struct pirn__local *local = pirn__local();
    uint32_t index = 0;
    struct pirn__gate *gate;

    if (local != NULL && local->worker != NULL)
        index = local->worker->index % PIRN__HOOK_GATES;
    gate = &hooks->gates[index].gate;
    if (!pirn__gate_enter(gate))
        return NULL;
    if (local != NULL)
        pirn__no_suspend_begin(local);
    return gate;
}

void pirn__hooks_leave(struct pirn__gate *gate)
{
    struct pirn__local *local = pirn__local();

    if (local != NULL)
        pirn__no_suspend_end(local);
    if (pirn__gate_leave(gate))
        pirn__sys->futex_wake(&gate->word.v_, INT32_MAX);
}

static void end_gate(struct pirn__gate *gate, pirn_deadline deadline)
{
    int rc = 0;

    (void)pirn__gate_seal(gate);
    while (rc != -ETIMEDOUT) {
        /* acquire [gate.out]: what the hooks did is done. */
        uint32_t word = pirn__load(&gate->word, acquire);

        if (word == PIRN__GATE_SEALED)
            return;
        rc = pirn__sys->futex_wait(&gate->word.v_, word, deadline);
    }
}

void pirn__hooks_end(const struct pirn__hooks *hooks, pirn_deadline deadline)
{
    for (uint32_t i = 0; i < PIRN__HOOK_GATES; i++)
        end_gate(&hooks->gates[i].gate, deadline);
}

void pirn__hooks_tell(const struct pirn__hooks *hooks, pirn_worker_fn *hook,
                      uint32_t worker)
{
    struct pirn__gate *gate = hook != NULL ? pirn__hooks_enter(hooks) : NULL;

    if (gate == NULL)
        return;
    hook(hooks->arg, worker);
    pirn__hooks_leave(gate);
}

static void tell_of_task(const struct pirn__hooks *hooks,
                         pirn_task_event_fn *hook, struct pirn__task *task,
                         int outcome)
{
    struct pirn__gate *gate = pirn__hooks_enter(hooks);
    const pirn_task *handle = (pirn_task *)task;
    pirn_task_event event = {
        .id = pirn_task_get_id(handle),
        .name = pirn_task_name(handle),
        .site = pirn_task_site(handle),
        .outcome = outcome,
    };

    if (gate == NULL)
        return;
    hook(hooks->arg, &event);
    pirn__hooks_leave(gate);
}

void pirn__hooks_tell_spawned(const struct pirn__hooks *hooks,
                              struct pirn__task *task)
{
    tell_of_task(hooks, hooks->on_task_spawn, task, 0);
}

void pirn__hooks_task_ended(struct pirn__home *home, struct pirn__task *task,
                            int outcome)
{
    struct pirn_runtime *rt = pirn__runtime_of(home);

    tell_of_task(&rt->hooks, rt->hooks.on_task_end, task, outcome);
}
