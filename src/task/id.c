/* SPDX-License-Identifier: MIT */
/* src/task/id.c - reaching a task by its id alone.
 *
 * A look-up takes a plain reference, which keeps the cell but is no handle.
 */
#include <errno.h>

#include "task/task.h"

static bool try_ref(struct pirn__cell *cell)
{
    return pirn__state_try_ref(pirn__task_state(pirn__task_of_cell(cell)));
}

static void unref(struct pirn__cell *cell)
{
    pirn__task_unref(pirn__task_of_cell(cell));
}

static struct pirn__task *look_up(pirn_task_id id)
{
    struct pirn__cell *cell = pirn__slab_lookup(id.value, try_ref, unref);

    return cell == NULL ? NULL : pirn__task_of_cell(cell);
}

int pirn_id_find(pirn_task_id id, pirn_task **out)
{
    struct pirn__task *task;

    if (out == NULL)
        return -EINVAL;
    *out = NULL;
    task = look_up(id);
    if (task == NULL)
        return -ESRCH;
    pirn__state_add_handle(pirn__task_state(task));
    pirn__task_unref(task);
    *out = (pirn_task *)task;
    return 0;
}

/* Apply a transition that may ask for a submission. */
static int wake_with(pirn_task_id id, enum pirn__wake (*step)(pirn__state *))
{
    struct pirn__task *task = look_up(id);

    if (task == NULL)
        return -ESRCH;
    pirn__task_submit(task, step(pirn__task_state(task)));
    pirn__task_unref(task);
    return 0;
}

int pirn_id_wake(pirn_task_id id)
{
    return wake_with(id, pirn__state_wake_by_id);
}

int pirn_id_cancel(pirn_task_id id)
{
    return wake_with(id, pirn__state_cancel);
}

int pirn_id_suspend(pirn_task_id id)
{
    struct pirn__task *task = look_up(id);

    if (task == NULL)
        return -ESRCH;
    pirn__state_suspend(pirn__task_state(task));
    pirn__task_unref(task);
    return 0;
}

static enum pirn_task_state state_of(uint64_t word)
{
    if ((word & PIRN__COMPLETE) != 0)
        return PIRN_TASK_DONE;
    if ((word & PIRN__RUNNING) != 0)
        return PIRN_TASK_RUNNING;
    if ((word & PIRN__SUSPENDED) != 0)
        return PIRN_TASK_SUSPENDED;
    return (word & PIRN__QUEUED) != 0 ? PIRN_TASK_QUEUED : PIRN_TASK_IDLE;
}

int pirn_id_state(pirn_task_id id, enum pirn_task_state *out)
{
    struct pirn__task *task;

    if (out == NULL)
        return -EINVAL;
    task = look_up(id);
    if (task == NULL)
        return -ESRCH;
    *out = state_of(pirn__state_peek(pirn__task_state(task)));
    pirn__task_unref(task);
    return 0;
}
