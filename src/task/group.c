/* SPDX-License-Identifier: MIT */
/* src/task/group.c - see group.h. */
#include "task/group.h"

#include <errno.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/lock.h"
#include "task/task.h"

void pirn__group_init(struct pirn__group *group, struct pirn__home *home)
{
    *group = (struct pirn__group){.home = home};
    pirn__list_init(&group->members);
    pirn__list_init(&group->visiting);
}

int pirn__group_admit(struct pirn__group *group, struct pirn__task *task,
                      const struct pirn__task_plan *plan)
{
    bool closed;

    task->group = group;
    pirn__lock(&group->lock);
    closed = group->closed;
    if (!closed) {
        pirn__task_open(task, plan);
        pirn__list_push_tail(&group->members, &task->u.siblings);
        group->counts.live++;
        group->counts.spawned++;
    }
    pirn__unlock(&group->lock);
    return closed ? PIRN_ESHUTDOWN : 0;
}

static uint64_t *counter_of(struct pirn__group_counts *counts, int outcome)
{
    if (outcome >= 0)
        return &counts->completed;
    if (outcome == -ECANCELED)
        return &counts->cancelled;
    return outcome == PIRN_EABORTED ? &counts->aborted : &counts->failed;
}

void pirn__group_leave(struct pirn__group *group, struct pirn__task *task,
                       int outcome)
{
    pirn__lock(&group->lock);
    pirn__list_remove(&task->u.siblings);
    PIRN_ASSERT(group->counts.live > 0);
    group->counts.live--;
    ++*counter_of(&group->counts, outcome);
    pirn__unlock(&group->lock);
}

void pirn__group_close(struct pirn__group *group)
{
    pirn__lock(&group->lock);
    group->closed = true;
    pirn__unlock(&group->lock);
}

/* The next member a visit has not seen, moved back to the members, with a
 * reference; NULL at the end. */
static struct pirn__task *visit_next(struct pirn__group *group)
{
    struct pirn__task *task = NULL;
    pirn_link *link;

    pirn__lock(&group->lock);
    link = pirn__list_pop_head(&group->visiting);
    if (link != NULL) {
        pirn__list_push_tail(&group->members, link);
        task = PIRN_CONTAINER_OF(link, struct pirn__task, u.siblings);
        pirn__state_ref(pirn__task_state(task));
    }
    pirn__unlock(&group->lock);
    return task;
}

void pirn__group_visit(struct pirn__group *group,
                       void (*fn)(struct pirn__task *task, void *arg),
                       void *arg)
{
    struct pirn__task *task;

    pirn__lock(&group->lock);
    pirn__list_splice_tail(&group->visiting, &group->members);
    pirn__unlock(&group->lock);
    /* Ends: newcomers go to the members, so `visiting` only shrinks. */
    while ((task = visit_next(group)) != NULL) {
        fn(task, arg);
        pirn__task_unref(task);
    }
}

struct pirn__group_counts pirn__group_read(struct pirn__group *group)
{
    struct pirn__group_counts counts;

    pirn__lock(&group->lock);
    counts = group->counts;
    pirn__unlock(&group->lock);
    return counts;
}
