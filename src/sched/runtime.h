/* SPDX-License-Identifier: MIT */
/* src/sched/runtime.h - the current-thread runtime.
 *
 * Who may touch what:
 *   home, alloc, options     constant after pirn_runtime_new()
 *   "seat" fields            whoever holds the driver's seat (seat.h)
 *   inbox, sleeping          any thread
 *   group                    its own lock
 *   shutdown fields          see shutdown.c
 *
 * Memory: `handles` counts what users hold; home.refs counts what keeps the
 * memory: all handles together, the cells that are still out, and whatever else
 * took a reference.
 */
#ifndef PIRN_SCHED_RUNTIME_H
#define PIRN_SCHED_RUNTIME_H

#include <pirn/runtime.h>

#include "base/slab.h"
#include "sched/hooks.h"
#include "sched/inbox.h"
#include "sched/options.h"
#include "sched/seat.h"
#include "task/group.h"
#include "task/home.h"
#include "task/local.h"
#include "task/task.h"
#include "time/timers.h"

enum {
    PIRN__LIFO_RUNS = 3,      /* runs in a row from the LIFO slot */
    /* Unless the options say otherwise; also how many timers fire in a row. */
    PIRN__EVENT_INTERVAL = 128, /* polls between two looks for events */
    PIRN__INBOX_INTERVAL = 31,  /* polls between two looks at the inbox */
};

enum pirn__phase {
    PIRN__PHASE_OPEN,
    PIRN__PHASE_CLOSING,   /* nothing is admitted, tasks are being cancelled */
    PIRN__PHASE_ABORTING,  /* past the deadline: popped tasks are only dropped */
    PIRN__PHASE_ABANDONED, /* past it, and the driver has not come back */
    PIRN__PHASE_DONE,
};

/* Whether a wake must be written to the wake descriptor. */
enum pirn__driver_sleep {
    PIRN__DRIVER_AWAKE,
    /* From just before the driver sleeps until it is awake again, and between
     * two turns of a host. */
    PIRN__DRIVER_ASLEEP,
    PIRN__DRIVER_TOLD, /* woken since it last was ASLEEP */
};

/* Written by the seat; anybody may look. */
typedef PIRN_ATOMIC(uint64_t) pirn__seat_counter;

struct pirn_runtime {
    struct pirn__home home; /* first */
    pirn_alloc alloc;
    size_t stack_size_bytes;
    bool overflow_report;
    pirn_failure_fn *on_failure;
    void *on_failure_arg;
    PIRN_ATOMIC(uint32_t) handles;
    PIRN_ATOMIC(uint64_t) failures;

    struct pirn__seat seat;
    struct pirn__slabs slabs;
    struct pirn__group group; /* the root: owner of every task */
    struct pirn__timers timers; /* without a pool */
    struct pirn__pool *pool;    /* constant; NULL: the host drives */
    enum pirn_pool_kind pool_kind; /* constant */
    uint64_t seed;              /* constant */
    struct pirn__hooks hooks;
    struct pirn__hook_gate hook_gates[PIRN__HOOK_GATES];
    char worker_name[PIRN__WORKER_NAME_SIZE]; /* constant, as all up to here */
    const char *workers_source;
    size_t worker_stack_size_bytes; /* 0: the system's default */
    uint32_t shared_interval; /* polls between two looks at what others put */
    uint32_t event_interval;  /* polls between two looks for events */
    bool lifo_off;
    PIRN_ATOMIC(uint32_t) nudge; /* counts what a shutdown may wait for */

    /* Any thread. */
    struct pirn__inbox inbox;
    PIRN_ATOMIC(uint32_t) sleeping; /* enum pirn__driver_sleep */
    PIRN_ATOMIC(uint64_t) wakes;
    PIRN_ATOMIC(uint64_t) quarantined;

    /* The seat's. */
    struct pirn__ledger ledger; /* of the root group; without a pool */
    struct pirn__slab_cache cache;
    struct pirn__queue ready;
    struct pirn__queue deferred; /* run again after the next look for events */
    struct pirn__task *lifo;
    uint32_t lifo_runs;
    int32_t until_inbox; /* polls until it looks there; 0 or less: now */
    struct pirn__turn turn;
    struct pirn__histograms *histograms; /* NULL: does not measure */
    pirn__seat_counter polls;
    pirn__seat_counter turns;
    pirn__seat_counter deferrals;

    /* Shutdown. */
    PIRN_ATOMIC(uint32_t) phase; /* enum pirn__phase */
    pirn_lock shutdown_lock;
    bool notes_open; /* shutdown_lock: workers may add to the report */
    pirn_report report; /* constant once DONE */

    /* The fiber layer's stack pools, made at first use. */
    pirn_lock stacks_lock; /* to make one */
    PIRN_ATOMIC(struct pirn__stacks *) stacks;
};

static inline struct pirn_runtime *pirn__runtime_of(struct pirn__home *home)
{
    return (struct pirn_runtime *)(void *)home;
}

/* True if this thread holds the driver's seat of `rt`. */
bool pirn__runtime_is_mine(const struct pirn_runtime *rt);

static inline enum pirn__phase
pirn__runtime_phase(const struct pirn_runtime *rt)
{
    /* acquire [runtime.phase]: sees what was prepared for the phase. */
    return (enum pirn__phase)pirn__load(&rt->phase, acquire);
}

/* driver.c: with the seat held, look for events, waiting for them until `wait`
 * when nothing is ready, then run up to one interval's worth of tasks.  Returns
 * the number of polls. */
size_t pirn__driver_turn(struct pirn_runtime *rt, pirn_deadline wait);

/* True if tasks are ready to run now. */
bool pirn__driver_has_ready(struct pirn_runtime *rt);

/* When timers want the next turn, on the system's clock. */
pirn_deadline pirn__driver_next(struct pirn_runtime *rt);

/* Bracket turns on this thread: becomes, ceases to be the driver. */
void pirn__driver_enter(struct pirn_runtime *rt, struct pirn__home **outer);
void pirn__driver_leave(struct pirn_runtime *rt, struct pirn__home *outer);

/* driver.c: the operations of a home. */
void pirn__driver_submit(struct pirn__home *home, struct pirn__task *task,
                         enum pirn__origin origin);
void pirn__driver_wake(struct pirn__home *home);

/* host.c */
void pirn__host_drive_or_park(struct pirn__home *home,
                              struct pirn__parker *parker,
                              pirn_deadline deadline);

/* root.c: the root group and all its ledgers.  Close the gate, or say that it is
 * closed by force; visit next. */
void pirn__root_close(struct pirn_runtime *rt, enum pirn__group_gate gate);
void pirn__root_visit(struct pirn_runtime *rt,
                      void (*fn)(struct pirn__task *task, void *arg),
                      void *arg);
struct pirn__group_counts pirn__root_read(struct pirn_runtime *rt);

/* spawn.c: what every front end ends in.  `future` of `size` bytes is moved
 * into the task. */
int pirn__spawn(struct pirn__home *home, const struct pirn__task_ops *ops,
                pirn_future *future, size_t size,
                const pirn_spawn_options *options, const char *site,
                pirn_task **out);
/* Let what is spawned in these turns, which queue without stamps, take the usual
 * way, if nobody wants to be told. */
void pirn__spawn_usually(struct pirn_runtime *rt, struct pirn__turn *turn);
/* The checks that come before any allocation. */
int pirn__spawn_check(struct pirn__home *home);

/* shutdown.c: what is left when the last reference to the memory goes. */
void pirn__runtime_free(struct pirn__home *home);

/* shutdown.c: a task of a pool is dropped by force; `aborts` of its home. */
void pirn__shutdown_note_wait(struct pirn__home *home, struct pirn__task *task);

/* shutdown.c: a driver that comes back after it was given up finishes. */
void pirn__shutdown_finish_abandoned(struct pirn_runtime *rt);

/* What the fiber layer adds to a runtime's life; registered by it. */
struct pirn__stacks_ops {
    void (*begin)(struct pirn_runtime *rt); /* a runtime was made */
    void (*end)(struct pirn_runtime *rt);   /* it was shut down */
    /* Its memory goes; false if some of the allocator's cannot be given back. */
    bool (*free)(struct pirn_runtime *rt);
    void (*info)(struct pirn_runtime *rt, pirn_runtime_info *out);
};
void pirn__runtime_set_stacks_ops(const struct pirn__stacks_ops *ops);
/* What the simulated world does to the options of each runtime that is made;
 * NULL: nothing.  `given` may be NULL.  No runtime is made meanwhile. */
typedef void pirn__adjust_fn(const pirn_runtime_options *given,
                             struct pirn__options *options);
void pirn__runtime_set_adjust(pirn__adjust_fn *fn);
/* Tell it of the end; nothing without fibers. */
void pirn__runtime_end_stacks(struct pirn_runtime *rt);

#endif /* PIRN_SCHED_RUNTIME_H */
