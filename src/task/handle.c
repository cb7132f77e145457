/* SPDX-License-Identifier: MIT */
/* src/task/handle.c - the public handle of a task.
 *
 * A pirn_task pointer is the address of the cell.  The word counts handles; all
 * of them together hold one reference.
 */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "task/local.h"
#include "task/task.h"

static struct pirn__task *of_handle(const pirn_task *handle)
{
    return (struct pirn__task *)(void *)handle;
}

pirn_task *pirn_task_ref(pirn_task *handle)
{
    pirn__state_add_handle(pirn__task_state(of_handle(handle)));
    return handle;
}

void pirn_task_unref(pirn_task *handle)
{
    struct pirn__task *task = of_handle(handle);
    const char *message;
    unsigned dropped;

    if (handle == NULL)
        return;
    dropped = pirn__state_drop_handle(pirn__task_state(task));
    if ((dropped & PIRN__HANDLE_UNSEEN) != 0) {
        message = task->message;
        pirn__task_report(task, message != NULL ? message : "");
    }
    if ((dropped & PIRN__HANDLE_OUTPUT) != 0)
        pirn_future_discard(pirn__task_future(task));
    if ((dropped & PIRN__HANDLE_LAST) != 0)
        pirn__task_unref(task);
}

void pirn_task_cancel(pirn_task *handle)
{
    struct pirn__task *task = of_handle(handle);

    if (task != NULL)
        pirn__task_submit(task, pirn__state_cancel(pirn__task_state(task)));
}

void pirn_task_abort(pirn_task *handle)
{
    struct pirn__task *task = of_handle(handle);

    if (task != NULL)
        pirn__task_submit(task, pirn__state_abort(pirn__task_state(task)));
}

bool pirn_task_is_done(const pirn_task *handle)
{
    struct pirn__task *task = of_handle(handle);

    return (pirn__state_peek(pirn__task_state(task)) & PIRN__COMPLETE) != 0;
}

pirn_task_id pirn_task_get_id(const pirn_task *handle)
{
    /* relaxed: constant while we hold a handle. */
    return (pirn_task_id){pirn__load(&of_handle(handle)->cell.id, relaxed)};
}

/* True if the task's future has `size` bytes, as far as its cell can tell,
 * whose size is a multiple of PIRN__SLAB_UNIT. */
static bool has_future_of(struct pirn__task *task, size_t size)
{
    size_t cell = sizeof *task + size;

    if (pirn__task_has_join_slot(task))
        cell += sizeof(pirn_waker);
    if (pirn__task_home(task)->stamps)
        cell += sizeof(uint64_t);
    cell += PIRN__SLAB_UNIT - 1;
    return pirn__cell_size(&task->cell) == cell - cell % PIRN__SLAB_UNIT;
}

int pirn_task_take_output(pirn_task *handle, void *out, size_t size)
{
    struct pirn__task *task = of_handle(handle);

    if (task == NULL)
        return -EINVAL;
    if (!pirn_task_is_done(handle))
        return -EAGAIN;
    if (out == NULL || task->ops->injects || !has_future_of(task, size))
        return -EINVAL;
    if (!pirn__state_take_output(pirn__task_state(task)))
        return -ENOENT;
    memcpy(out, pirn__task_future(task), size);
    return 0;
}

const char *pirn_task_site(const pirn_task *handle)
{
    struct pirn__task *task = of_handle(handle);
    struct pirn__extras *extras = pirn__task_extras(task);

    return extras != NULL ? extras->site : task->info.site;
}

const char *pirn_task_name(const pirn_task *handle)
{
    struct pirn__extras *extras =
        pirn__task_extras(of_handle(handle));

    return extras != NULL && extras->name[0] != '\0' ? extras->name : NULL;
}

/* The task that runs on this thread, or NULL. */
static struct pirn__task *running(void)
{
    struct pirn__local *local = pirn__local();

    return local == NULL || local->turn == NULL ? NULL : local->turn->task;
}

pirn_task_id pirn_task_self(void)
{
    struct pirn__task *task = running();

    return task == NULL ? (pirn_task_id){0}
                        : pirn_task_get_id((pirn_task *)task);
}

void *pirn_task_context(void)
{
    struct pirn__task *task = running();
    struct pirn__extras *extras =
        task == NULL ? NULL : pirn__task_extras(task);

    return extras == NULL ? NULL : extras->context;
}

bool pirn_task_cancelled(void)
{
    struct pirn__task *task = running();

    return task != NULL && pirn__task_is_cancelled(task);
}
