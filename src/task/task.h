/* SPDX-License-Identifier: MIT */
/* src/task/task.h - the task cell.
 *
 *     | header, 64 bytes | the future, in place | stamp, if any | join slot,
 *     if any |
 *
 * Who may touch what:
 *   cell.word   everybody, through state.h
 *   cell.link, ahead, stamp   whoever made the task QUEUED, then the queue,
 *               then the popper
 *   ops, info, size   constant
 *   group       constant until settlement, then the settler's
 *   outcome, message   written by the settler before COMPLETE, constant
 *               afterwards
 *   the future  the holder of RUNNING; after COMPLETE whoever cleared OUTPUT
 *   join slot   see state.h
 *
 * References: one of the group until settlement, one of all handles together,
 * one of each waker.  A queue needs none: a QUEUED task is settled only by
 * whoever popped it.
 */
#ifndef PIRN_TASK_TASK_H
#define PIRN_TASK_TASK_H

#include <pirn/task.h>

#include <string.h>

#include "base/checked.h"
#include "base/hint.h"
#include "base/list.h"
#include "base/slab.h"
#include "task/group.h"
#include "task/home.h"
#include "task/local.h"
#include "task/state.h"

struct pirn__turn;

/* Up to this size a future is moved word by word. */
enum { PIRN__SMALL_FUTURE = 64 };

/* What kinds of task differ in. */
struct pirn__task_ops {
    /* Cancellation reaches the code through its calls (fibers); else the
     * runtime drops the future. */
    bool injects;
    /* Have what the next run touches fetched, but for the first lines of the
     * cell; NULL: nothing.  By who owns the link of the task. */
    void (*prefetch)(struct pirn__task *task);
};

extern const struct pirn__task_ops pirn__stackless_ops;

/* The optional record of a task that has more to say than its spawn site. */
struct pirn__extras {
    const char *site;
    void *context;
    uint64_t polls; /* the holder of RUNNING */
    char name[PIRN_NAME_SIZE];
};

struct pirn__task {
    struct pirn__cell cell;
    const struct pirn__task_ops *ops;
    struct pirn__group *group;
    union {
        struct pirn__task *ahead; /* while it is queued: whom to prefetch */
        char *message; /* after settlement: of a failure, for whoever reports
                          it; or NULL */
    };
    int outcome;   /* after settlement */
    uint32_t size; /* of the cell, in bytes */
    union {
        const char *site;
        struct pirn__extras *extras; /* with EXTRAS in the word */
    } info;
};

_Static_assert(sizeof(struct pirn__task) == 64, "the task header is 64 bytes");
_Static_assert(offsetof(struct pirn__task, cell) == 0, "a task is a cell");

static inline struct pirn__task *pirn__task_of_cell(struct pirn__cell *cell)
{
    return (struct pirn__task *)(void *)cell;
}

static inline struct pirn__task *pirn__task_of_link(pirn_slink *link)
{
    return PIRN_CONTAINER_OF(link, struct pirn__task, cell.link);
}

static inline pirn_future *pirn__task_future(struct pirn__task *task)
{
    return (pirn_future *)(void *)(task + 1);
}

static inline pirn__state *pirn__task_state(struct pirn__task *task)
{
    return (pirn__state *)(void *)&task->cell.word;
}

/* Everything about a new task. */
struct pirn__task_plan {
    const struct pirn__task_ops *ops;
    struct pirn__home *home;
    struct pirn__slabs *slabs;
    struct pirn__slab_cache *cache; /* or NULL */
    const pirn_future *future;      /* moved into the cell */
    size_t size;
    const pirn_spawn_options *options; /* or NULL */
    const char *site;
    bool handle; /* a join slot and a first handle */
    uint32_t home_worker; /* of a pinned task */
};

/* Word by word: its owner has just written it so, and a processor waits long for
 * a wide read of what two narrow writes have left in its store queue. */
static inline bool pirn__task_moves_words(size_t size)
{
    return size % sizeof(uint64_t) == 0 && size - 1 < PIRN__SMALL_FUTURE;
}

static inline void pirn__task_move_in(struct pirn__task *task,
                                      const pirn_future *future, size_t size)
{
    char *target = (char *)pirn__task_future(task);
    const char *source = (const char *)future;

    if (!pirn__task_moves_words(size)) {
        memcpy(target, source, size);
        return;
    }
    do {
        size -= sizeof(uint64_t);
        memcpy(target + size, source + size, sizeof(uint64_t));
    } while (size > 0);
}

/* The cell of a task without extras: without a handle or stamps. */
static inline size_t pirn__task_cell_size(size_t future_size)
{
    return pirn__round_up(sizeof(struct pirn__task) + future_size,
                          PIRN__SLAB_UNIT);
}

/* Such a task, as pirn__task_new() builds it, in a cell of the caller's cache; NULL
 * if that has none. */
static inline struct pirn__task *
pirn__task_from_cache(struct pirn__slab_cache *cache,
                      const struct pirn__task_ops *ops,
                      const pirn_future *future, size_t future_size,
                      const char *site)
{
    size_t size = pirn__task_cell_size(future_size);
    struct pirn__cell *cell = pirn__slab_take_cached(cache, size);
    struct pirn__task *task;

    if (cell == NULL)
        return NULL;
    task = pirn__task_of_cell(cell);
    task->ops = ops;
    task->size = (uint32_t)size;
    task->info.site = site;
    pirn__task_move_in(task, future, future_size);
    return task;
}

/* Build a cell; it belongs to no group and no queue yet and its word is 0.
 * NULL without memory. */
struct pirn__task *pirn__task_new(const struct pirn__task_plan *plan);

/* Undo pirn__task_new() for a task that was never admitted.  Its future is the
 * caller's again. */
void pirn__task_discard_new(struct pirn__task *task,
                            const struct pirn__task_plan *plan);

static inline bool pirn__task_wants_extras(const struct pirn__task_plan *plan)
{
    return plan->options != NULL &&
           (plan->options->name != NULL || plan->options->context != NULL);
}

/* Make it visible: QUEUED, with its group's reference.  Submit it next. */
static inline void pirn__task_open(struct pirn__task *task,
                                   const struct pirn__task_plan *plan)
{
    uint64_t flags = plan->handle ? PIRN__JOIN_STATE : 0;

    if (pirn__task_wants_extras(plan))
        flags |= PIRN__EXTRAS;
    if (plan->options != NULL && plan->options->pinned)
        flags |= PIRN__PINNED | (uint64_t)plan->home_worker << PIRN__HOME_SHIFT;
    if (plan->options != NULL)
        flags |= (uint64_t)plan->options->priority << PIRN__CLASS_SHIFT;
    pirn__state_open(pirn__task_state(task), flags, plan->handle);
}

/* Poll or settle a popped task.  Says whether it must be submitted again; the
 * task may be gone when the answer is no. */
enum pirn__wake pirn__task_run(struct pirn__task *task, struct pirn__turn *turn,
                               struct pirn__slab_cache *cache);

/* Before a task is queued that will run here, but not at once. */
static inline void pirn__task_prefetch(struct pirn__task *task)
{
    if (task->ops->prefetch != NULL)
        task->ops->prefetch(task);
}

/* Free a cell whose last reference has been given up. */
void pirn__task_free(struct pirn__task *task);

/* Give up a reference; frees the cell with the last one. */
static inline void pirn__task_unref(struct pirn__task *task)
{
    if (pirn__state_unref(pirn__task_state(task)))
        pirn__task_free(task);
}

/* After the last reference. */
PIRN__COLD void pirn__task_free(struct pirn__task *task);

/* Hand a task that `wake` says has just become QUEUED to its runtime.  The
 * caller holds a reference. */
static inline void pirn__task_submit(struct pirn__task *task,
                                     enum pirn__wake wake)
{
    if (wake == PIRN__WAKE_SUBMIT) {
        /* QUEUED by us and not yet in a queue: nobody can settle it, so its
         * group and home are there. */
        struct pirn__home *home = task->group->home;

        home->ops->submit(home, task, PIRN__ORIGIN_WAKE);
    }
}

/* The runtime whose memory the cell is. */
struct pirn__home *pirn__task_home(struct pirn__task *task);

/* Tell the failure hook about the bad end of a task that nobody has seen and
 * nobody will see. */
void pirn__task_report(struct pirn__task *task, const char *message);

/* The join slot of a task that has one. */
static inline bool pirn__task_has_join_slot(struct pirn__task *task)
{
    return (pirn__state_peek(pirn__task_state(task)) & PIRN__JOIN_STATE) != 0;
}
pirn_waker *pirn__task_join_slot(struct pirn__task *task);

/* When it was queued last, in a cell of a home that has stamps; whoever owns the
 * link owns the stamp. */
uint64_t *pirn__task_stamp(struct pirn__task *task);

/* A waker of the task without a reference: it may be used only while the task is
 * in a poll or in a timer that its owner disarms, and only cloned or woken by
 * reference. */
extern const pirn_waker_ops pirn__task_waker_ops;

static inline pirn_waker pirn__task_waker_borrowed(struct pirn__task *task)
{
    return (pirn_waker){.data = task, .ops = &pirn__task_waker_ops};
}

static inline bool pirn__waker_is_of(const pirn_waker *waker,
                                     const struct pirn__task *task)
{
    return waker->data == task && waker->ops == &pirn__task_waker_ops;
}

/* The task that this poll is of, if the waker is the one it was given; else
 * NULL. */
static inline struct pirn__task *pirn__cx_task(const pirn_cx *cx)
{
    const struct pirn__turn *turn = cx->turn_;

    return turn != NULL && turn->own_waker == cx->waker ? turn->task : NULL;
}

/* One more reference to the task of this poll. */
static inline void pirn__cx_ref_task(const pirn_cx *cx)
{
    struct pirn__turn *turn = cx->turn_;

    if (turn->loan > 0)
        turn->loan--;
    else
        pirn__state_ref(pirn__task_state(turn->task));
}

/* Give one up that was taken in this poll. */
static inline void pirn__cx_unref_task(const pirn_cx *cx)
{
    cx->turn_->loan++;
}

/* The end of an ended task, and its extras or NULL. */
int pirn__task_outcome(const struct pirn__task *task);
struct pirn__extras *pirn__task_extras(struct pirn__task *task);

/* Ask the running task's word whether it was told to stop. */
static inline bool pirn__task_is_cancelled(struct pirn__task *task)
{
    return (pirn__state_peek(pirn__task_state(task)) &
            (PIRN__CANCELLED | PIRN__ABORTED)) != 0;
}

#endif /* PIRN_TASK_TASK_H */
