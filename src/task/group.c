/* SPDX-License-Identifier: MIT */
/* src/task/group.c - see group.h. */
#include "task/group.h"

#include <errno.h>

#include "base/lock.h"
#include "task/task.h"

void pirn__group_init(struct pirn__group *group, struct pirn__home *home,
                      struct pirn__slabs *slabs)
{
    *group = (struct pirn__group){.home = home, .slabs = slabs};
    pirn__lock_init(&group->lock);
    pirn__init(&group->gate, PIRN__GROUP_OPEN);
}

/* Ledgers. */

static uint64_t read_end(const pirn__tally *tally)
{
    /* acquire [group.ended]: before the looks at what was spawned. */
    return pirn__load(tally, acquire);
}

void pirn__ledger_read_ends(const struct pirn__ledger *ledger,
                            struct pirn__group_counts *counts)
{
    counts->completed += read_end(&ledger->completed);
    counts->failed += read_end(&ledger->failed);
    counts->cancelled += read_end(&ledger->cancelled);
    counts->aborted += read_end(&ledger->aborted);
}

void pirn__ledger_read_spawned(const struct pirn__ledger *ledger,
                               struct pirn__group_counts *counts)
{
    /* relaxed: what matters was made visible by the ends. */
    counts->spawned += pirn__load(&ledger->spawned, relaxed);
    counts->live = counts->spawned - counts->completed - counts->failed -
                   counts->cancelled - counts->aborted;
}

void pirn__ledger_see(const struct pirn__ledger *ledger)
{
    /* seq_cst [group.spawned]: after the gate was closed; against a spawner that
     * counts and then looks at the gate. */
    (void)pirn__load(&ledger->spawned, seq_cst);
}

/* Admission and end. */

/* The gate has closed meanwhile.  The task is not queued yet, so there is
 * nothing to submit. */
void pirn__group_tell_late(struct pirn__task *task, enum pirn__group_gate gate)
{
    if (gate == PIRN__GROUP_CLOSED)
        (void)pirn__state_cancel(pirn__task_state(task));
    else
        (void)pirn__state_abort(pirn__task_state(task));
}

static int admit_alone(struct pirn__group *group, struct pirn__ledger *ledger,
                       struct pirn__task *task,
                       const struct pirn__task_plan *plan)
{
    enum pirn__group_gate gate = pirn__group_gate(group);

    if (gate != PIRN__GROUP_OPEN)
        return PIRN_ESHUTDOWN;
    pirn__task_open(task, plan);
    gate = pirn__group_count_in(group, ledger);
    if (gate != PIRN__GROUP_OPEN)
        pirn__group_tell_late(task, gate);
    return 0;
}

static int admit_locked(struct pirn__group *group, struct pirn__task *task,
                        const struct pirn__task_plan *plan)
{
    struct pirn__ledger *ledger = &group->ledger;

    /* relaxed: written under the lock. */
    if (pirn__load(&group->gate, relaxed) != PIRN__GROUP_OPEN)
        return PIRN_ESHUTDOWN;
    pirn__task_open(task, plan);
    /* relaxed: the lock publishes it. */
    pirn__store(&ledger->spawned, pirn__tally_next(&ledger->spawned), relaxed);
    return 0;
}

int pirn__group_admit(struct pirn__group *group, struct pirn__ledger *ledger,
                      struct pirn__task *task,
                      const struct pirn__task_plan *plan)
{
    int rc;

    task->group = group;
    if (ledger != NULL)
        return admit_alone(group, ledger, task, plan);
    pirn__lock(&group->lock);
    rc = admit_locked(group, task, plan);
    pirn__unlock(&group->lock);
    return rc;
}

void pirn__group_leave_locked(struct pirn__group *group, int outcome)
{
    pirn__lock(&group->lock);
    pirn__ledger_count_end(&group->ledger, outcome);
    pirn__unlock(&group->lock);
}

void pirn__group_close(struct pirn__group *group, enum pirn__group_gate gate)
{
    pirn__lock(&group->lock);
    /* seq_cst [group.gate]: before the looks at the ledgers. */
    pirn__store(&group->gate, (uint32_t)gate, seq_cst);
    pirn__unlock(&group->lock);
}

/* Members. */

static bool try_ref_member(struct pirn__cell *cell)
{
    return pirn__state_try_ref_live(
        pirn__task_state(pirn__task_of_cell(cell)));
}

void pirn__group_visit(struct pirn__group *group,
                       void (*fn)(struct pirn__task *task, void *arg),
                       void *arg)
{
    struct pirn__cell *cell;
    uint64_t cursor = 0;

    /* Ends: the directory does, and once the gate is closed nobody comes. */
    while ((cell = pirn__slabs_walk(group->slabs, &cursor, try_ref_member)) !=
           NULL) {
        struct pirn__task *task = pirn__task_of_cell(cell);

        fn(task, arg);
        pirn__task_unref(task);
    }
}

struct pirn__group_counts pirn__group_read(struct pirn__group *group)
{
    struct pirn__group_counts counts = {0};

    pirn__lock(&group->lock);
    pirn__ledger_read_ends(&group->ledger, &counts);
    pirn__ledger_read_spawned(&group->ledger, &counts);
    pirn__unlock(&group->lock);
    return counts;
}
