/* SPDX-License-Identifier: MIT */
/* src/task/group.h - an owner of tasks: its gate, its counters, its members.
 *
 * Every task belongs to exactly one group from admission to settlement, and a
 * group owns all tasks of one set of slabs.  So it keeps no list: who wants to
 * see the members walks through the cells.
 *
 * Who admits tasks or sees them end for much of the time has a ledger, which it
 * alone writes; everybody else counts in the group's own, under its lock.
 *
 * Whoever closes the gate sees every member, or its spawner sees the gate closed:
 *   by a ledger      the spawner opens the task, counts it (seq_cst) and then
 *                    looks at the gate once more; who closes it (seq_cst) then
 *                    looks at all ledgers.  A spawner that finds it closed tells
 *                    the task what the visit may have been too early to tell.
 *   without          both do so under the lock
 *
 * Live are those that were counted as spawned and not as ended; the ends are
 * read first, so that there are never too few.  A task may be admitted by a
 * ledger only while the member that spawns it has not left: so a closed group
 * without live members stays so.
 */
#ifndef PIRN_TASK_GROUP_H
#define PIRN_TASK_GROUP_H

#include <pirn/link.h>

#include <errno.h>

#include "base/hint.h"
#include "base/slab.h"
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

typedef PIRN_ATOMIC(uint64_t) pirn__tally;

/* Written by its owner, read by anybody. */
struct pirn__ledger {
    pirn__tally spawned;
    pirn__tally completed;
    pirn__tally failed;
    pirn__tally cancelled;
    pirn__tally aborted;
};

enum pirn__group_gate {
    PIRN__GROUP_OPEN,
    PIRN__GROUP_CLOSED, /* admits nobody; members are being cancelled */
    PIRN__GROUP_FORCED, /* they are being aborted */
};

struct pirn__group {
    struct pirn__home *home;   /* constant: every wake reads it */
    struct pirn__slabs *slabs; /* constant */
    PIRN_ATOMIC(uint32_t) gate; /* enum pirn__group_gate; written under the lock */
    pirn_lock lock PIRN_CACHE_ALIGNED;
    struct pirn__ledger ledger; /* written under the lock */
};

void pirn__group_init(struct pirn__group *group, struct pirn__home *home,
                      struct pirn__slabs *slabs);

/* Enter a new task and open it; PIRN_ESHUTDOWN when the gate is closed.
 * `ledger`: the caller's, in a poll of a member; or NULL. */
int pirn__group_admit(struct pirn__group *group, struct pirn__ledger *ledger,
                      struct pirn__task *task,
                      const struct pirn__task_plan *plan);

/* Its parts, for who has a ledger: look at the gate; open the task; count it and
 * look again.  If the gate has closed meanwhile, tell the task so. */
static inline enum pirn__group_gate
pirn__group_gate(const struct pirn__group *group)
{
    /* seq_cst [group.gate]: after a task was counted; see
     * pirn__ledger_see(). */
    return (enum pirn__group_gate)pirn__load(&group->gate, seq_cst);
}

static inline enum pirn__group_gate
pirn__group_count_in(const struct pirn__group *group,
                     struct pirn__ledger *ledger);

PIRN__COLD void pirn__group_tell_late(struct pirn__task *task,
                                      enum pirn__group_gate gate);

/* The same as below, under the lock. */
void pirn__group_leave_locked(struct pirn__group *group, int outcome);

static inline uint64_t pirn__tally_next(const pirn__tally *tally)
{
    /* relaxed: only the owner, or who has the lock, writes it. */
    return pirn__load(tally, relaxed) + 1;
}

static inline enum pirn__group_gate
pirn__group_count_in(const struct pirn__group *group,
                     struct pirn__ledger *ledger)
{
    /* seq_cst [group.spawned]: publishes the task, and comes before the second
     * look at the gate. */
    pirn__store(&ledger->spawned, pirn__tally_next(&ledger->spawned), seq_cst);
    return pirn__group_gate(group);
}

static inline pirn__tally *pirn__ledger_tally_of(struct pirn__ledger *ledger,
                                                 int outcome)
{
    if (outcome >= 0)
        return &ledger->completed;
    if (outcome == -ECANCELED)
        return &ledger->cancelled;
    return outcome == PIRN_EABORTED ? &ledger->aborted : &ledger->failed;
}

static inline void pirn__ledger_count_end(struct pirn__ledger *ledger,
                                          int outcome)
{
    pirn__tally *tally = pirn__ledger_tally_of(ledger, outcome);

    /* release [group.ended]: who sees the end sees that it was spawned, and
     * whom it has spawned itself. */
    pirn__store(tally, pirn__tally_next(tally), release);
}

/* A task is over: count the outcome, in the caller's ledger or with NULL in the
 * group's. */
static inline void pirn__group_leave(struct pirn__group *group,
                                     struct pirn__ledger *ledger, int outcome)
{
    if (ledger != NULL)
        pirn__ledger_count_end(ledger, outcome);
    else
        pirn__group_leave_locked(group, outcome);
}

/* Close the gate, or say that it is closed by force.  Look at each ledger, by
 * pirn__ledger_see(), before a visit. */
void pirn__group_close(struct pirn__group *group, enum pirn__group_gate gate);

/* From here on every task that this ledger has admitted can be seen, or will be
 * told by its spawner. */
void pirn__ledger_see(const struct pirn__ledger *ledger);

/* Call fn with a reference on every member that is there all the time, under no
 * lock; one that comes meanwhile may be met, and one that just leaves. */
void pirn__group_visit(struct pirn__group *group,
                       void (*fn)(struct pirn__task *task, void *arg),
                       void *arg);

/* Add what a ledger says.  First the ends of all ledgers of a group, then what
 * was spawned; live is the difference. */
void pirn__ledger_read_ends(const struct pirn__ledger *ledger,
                            struct pirn__group_counts *counts);
void pirn__ledger_read_spawned(const struct pirn__ledger *ledger,
                               struct pirn__group_counts *counts);

/* What the group's own ledger says: all there is if there is no other. */
struct pirn__group_counts pirn__group_read(struct pirn__group *group);

#endif /* PIRN_TASK_GROUP_H */
