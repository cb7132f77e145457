/* SPDX-License-Identifier: MIT */
/* src/fiber/fiber.h - a fiber: a future whose poll switches onto a stack.
 *
 * It is always the root future of its task, so the task header stands right in
 * front of it.  Everything here belongs to the holder of RUNNING: the poller
 * outside, the fiber itself inside.
 *
 *   NEW --first poll--> STARTED --fn returns--> DONE
 *                          '--pirn_panic--> PANICKED
 */
#ifndef PIRN_FIBER_FIBER_H
#define PIRN_FIBER_FIBER_H

#include <pirn/fiber.h>
#include <pirn/time.h>

#include "fiber/stack.h"
#include "sched/runtime.h"
#include "sched/worker.h"
#include "sys/switch.h"
#include "task/local.h"
#include "task/task.h"

enum pirn__fiber_state {
    PIRN__FIBER_NEW,
    PIRN__FIBER_STARTED,
    PIRN__FIBER_DONE,
    PIRN__FIBER_PANICKED,
};

/* What is to be run. */
struct pirn__fiber_plan {
    struct pirn__stack_pool *pool; /* that the stack is of, or is promised by */
    pirn_fiber_fn *fn;
    void *arg;
};

/* What a fiber needs once it has a stack, at the very top of it: in the cell it
 * would be memory that a fiber has while it waits for its first run, and cold
 * lines for one that ends in that. */
struct pirn__fiber_top {
    struct pirn__stack stack; /* this one */
    struct pirn__fiber_plan plan;
    pirn_timer timer;         /* the single entry; see wait.c */
};

/* First what every wait touches. */
struct pirn__fiber {
    pirn_future future;
    uint8_t state;     /* enum pirn__fiber_state */
    bool is_prepared;  /* its next poll only resumes it */
    uint32_t shield : 30;   /* depth of shielded sections */
    uint32_t has_timer : 1; /* it has been armed once */
    uint32_t has_clock : 1; /* the timer may be armed */
    pirn_cx *cx;                /* of the poll in progress */
    union {
        struct pirn__fiber_plan plan; /* when NEW; then it is at the top */
        struct {
            struct pirn__local *local; /* of the thread that makes the poll */
            pirn_future *awaiting; /* what the suspended fiber waits for, or
                                      NULL */
            int outcome;
        };
    };
    struct pirn__context context;
    struct pirn__fiber_top *top; /* but when NEW */
};

static inline struct pirn__task *pirn__fiber_task(struct pirn__fiber *fiber)
{
    return (struct pirn__task *)(void *)fiber - 1;
}

/* The fiber that runs on this thread, or NULL. */
struct pirn__fiber *pirn__fiber_current(void);

/* The thread is itself again, inside the poll. */
static inline void pirn__fiber_leave(struct pirn__fiber *fiber)
{
    struct pirn__local *local = fiber->local;

    local->waiter = NULL;
    local->fiber = NULL;
    pirn__no_suspend_begin(local);
}

/* Leave the stack until the next poll.  Returns 0: as the last act of a function
 * this is a jump. */
static inline int pirn__fiber_switch_out(struct pirn__fiber *fiber)
{
    pirn__fiber_leave(fiber);
    return pirn__host_return(&fiber->context, &fiber->local->host,
                             PIRN_PENDING);
}

/* wait.c: how a fiber waits. */
extern const struct pirn__waiter_ops pirn__fiber_waiter_ops;

/* stacks.c: the pool of `rt` for stacks of a size; 0: the usual one. */
struct pirn_runtime;
int pirn__stacks_pool(struct pirn_runtime *rt, size_t size_bytes,
                      struct pirn__stack_pool **out);

/* How a runtime's table of pools begins. */
struct pirn__stacks_head {
    PIRN_ATOMIC(struct pirn__stack_pool *) usual; /* NULL: not made yet */
};

/* The pool of stacks of the usual size, or NULL. */
static inline struct pirn__stack_pool *
pirn__stacks_usual(const struct pirn_runtime *rt)
{
    /* acquire [stacks.table]: sees it empty, as it was made. */
    const struct pirn__stacks_head *head =
        (const void *)pirn__load(&rt->stacks, acquire);

    /* acquire [stacks.pool]: sees the pool as it was made. */
    return head == NULL ? NULL : pirn__load(&head->usual, acquire);
}

/* What the thread whose record `local` is has at hand of it; NULL where it runs no
 * worker of `rt`. */
static inline struct pirn__stack_hand *
pirn__stacks_hand(struct pirn__stack_pool *pool, const struct pirn_runtime *rt,
                  const struct pirn__local *local)
{
    const struct pirn__worker *worker = local == NULL ? NULL : local->worker;

    if (local == NULL || local->driving != &rt->home)
        return NULL;
    if (worker == NULL)
        return rt->pool == NULL ? pirn__stack_hand(pool, 0) : NULL;
    /* The core that ends what others have left is none of them. */
    return worker == rt->pool->reaper ? NULL
                                      : pirn__stack_hand(pool, worker->index);
}

/* overflow.c: report overruns while at least one runtime wants it; on this
 * thread. */
void pirn__overflow_watch(void);
void pirn__overflow_unwatch(void);
void pirn__overflow_watch_thread(void);

#endif /* PIRN_FIBER_FIBER_H */
