/* SPDX-License-Identifier: MIT */
/* src/task/group.h - an owner of tasks: its members, its gate, its counters.
 *
 * Every task belongs to exactly one group from admission to settlement.  Closing
 * a group touches only its own members.
 *
 * Invariants, under `lock`: live == number of members in both lists; spawned ==
 * live + completed + failed + cancelled + aborted; once closed, live only falls.
 */
#ifndef PIRN_TASK_GROUP_H
#define PIRN_TASK_GROUP_H

#include <pirn/link.h>

#include "task/home.h"

struct pirn__task;
struct pirn__task_plan;

struct pirn__group_counts {
    uint64_t live;
    uint64_t spawned;
    uint64_t completed;
    uint64_t failed;
    uint64_t cancelled;
    uint64_t aborted;
};

struct pirn__group {
    struct pirn__home *home; /* constant, and alone: every wake reads it */
    pirn_lock lock PIRN_CACHE_ALIGNED;
    bool closed;              /* lock: admits nobody */
    pirn_link members;        /* lock */
    pirn_link visiting;       /* lock: members a visit has not reached yet */
    struct pirn__group_counts counts; /* lock */
};

void pirn__group_init(struct pirn__group *group, struct pirn__home *home);

/* Enter a new task and open it, in one step, so that a visit finds only tasks
 * that can be cancelled; PIRN_ESHUTDOWN when the gate is closed. */
int pirn__group_admit(struct pirn__group *group, struct pirn__task *task,
                      const struct pirn__task_plan *plan);

/* A task is over: leave the list and count the outcome. */
void pirn__group_leave(struct pirn__group *group, struct pirn__task *task,
                       int outcome);

void pirn__group_close(struct pirn__group *group);

/* Call fn on every member that was there at the start, outside the lock, with
 * a reference held.  One visit at a time. */
void pirn__group_visit(struct pirn__group *group,
                       void (*fn)(struct pirn__task *task, void *arg),
                       void *arg);

struct pirn__group_counts pirn__group_read(struct pirn__group *group);

#endif /* PIRN_TASK_GROUP_H */
