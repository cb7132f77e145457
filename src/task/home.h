/* SPDX-License-Identifier: MIT */
/* src/task/home.h - what the lower layers may know about a runtime.
 *
 * A runtime embeds one home.  Tasks, timers, descriptors and blocking jobs
 * reach their runtime through it and through its table of operations, so that
 * they need not include the scheduler that stands above them.
 *
 * A home lives as long as a cell of one of its tasks, a handle, or anything
 * else that holds a reference to it: pirn__home_ref().
 */
#ifndef PIRN_TASK_HOME_H
#define PIRN_TASK_HOME_H

#include <pirn/alloc.h>
#include <pirn/link.h>
#include <pirn/runtime.h>

#include "base/atomic.h"
#include "sys/fork.h"

struct pirn__home;
struct pirn__task;
struct pirn__timers;
struct pirn__reactor;
struct pirn__parker;

/* Where a submission comes from; a pool may treat the two differently. */
enum pirn__origin {
    PIRN__ORIGIN_SPAWN, /* a new task */
    PIRN__ORIGIN_WAKE,  /* a task that waited */
};

struct pirn__home_ops {
    /* Queue a task that has just become QUEUED.  Cannot fail.  Any thread. */
    void (*submit)(struct pirn__home *home, struct pirn__task *task,
                   enum pirn__origin origin);
    /* Make the driver look again (after an earlier deadline, a participant's
     * end).  Nothing on a dead runtime.  Any thread. */
    void (*wake)(struct pirn__home *home);
    /* A plain thread waits for something of this runtime: take the driver's
     * seat if it is free for it and run one turn that ends when the parker is
     * unparked or the deadline passes, else park.  May return early. */
    void (*drive_or_park)(struct pirn__home *home, struct pirn__parker *parker,
                          pirn_deadline deadline);
    /* The time on the runtime's clock.  Any thread. */
    uint64_t (*now)(struct pirn__home *home);
    /* Report a bad outcome that nobody joined. */
    void (*failed)(struct pirn__home *home, const pirn_failure *failure);
    /* The one that runs a task is about to drop it by force; what it waits for can
     * still be described.  NULL: nobody asks. */
    void (*aborts)(struct pirn__home *home, struct pirn__task *task);
    /* The last reference is gone: free the runtime. */
    void (*free)(struct pirn__home *home);
};

/* Something that shutdown must stop besides tasks. */
struct pirn__participant {
    pirn_link link;
    const struct pirn__participant_ops *ops;
};

struct pirn__participant_ops {
    /* Admit nothing more and stop what has not started.  Must not block. */
    void (*close)(struct pirn__participant *self);
    /* How much still runs; when it becomes 0 after close, home->ops->wake is
     * called. */
    size_t (*busy)(struct pirn__participant *self);
    /* Add to the report; the deadline is over or nothing is busy. */
    void (*report)(struct pirn__participant *self, pirn_report *report);
    /* The runtime is going; what still runs must keep itself alive. */
    void (*end)(struct pirn__participant *self);
};

struct pirn__home {
    const struct pirn__home_ops *ops;
    const pirn_alloc *alloc;
    pirn_runtime *runtime;
    struct pirn__timers *timers;
    struct pirn__reactor *reactor;
    /* Called when a task has ended, before anybody knows; NULL: nobody asks. */
    void (*ended)(struct pirn__home *home, struct pirn__task *task,
                  int outcome);
    bool stamps; /* constant: cells have room for the time of queueing */
    uint32_t blocking_threads; /* limits of the blocking pool */
    uint32_t blocking_queue;
    uint32_t fork_generation; /* differs from the process's in a child */
    PIRN_ATOMIC(uint32_t) refs;
    pirn_lock participants_lock;
    pirn_link participants; /* participants_lock */
    bool participants_closed; /* participants_lock; later ones are refused */
    /* The blocking pool, made at its first use; participants_lock guards the
     * making, the pointer never changes afterwards. */
    PIRN_ATOMIC(struct pirn__blocking_pool *) blocking;
};

void pirn__home_ref(struct pirn__home *home);
void pirn__home_unref(struct pirn__home *home);

/* A runtime embeds its home as its first member; NULL gives NULL. */
static inline struct pirn__home *pirn__home_of(pirn_runtime *rt)
{
    return (struct pirn__home *)(void *)rt;
}

/* True in a child process of the one that made it: the home has no driver here,
 * shares its descriptors with the parent, and locks may be held by threads that
 * do not exist. */
static inline bool pirn__home_is_forked(const struct pirn__home *home)
{
    return home->fork_generation != pirn__fork_generation();
}

/* Register something for shutdown; false once shutdown has begun. */
bool pirn__home_add_participant(struct pirn__home *home,
                                struct pirn__participant *participant);

/* The home of options->runtime, else the current one; NULL without. */
struct pirn__home *pirn__home_for(const pirn_spawn_options *options);

/* Allocation through a home's hook; `home` NULL means malloc and free.  Memory
 * is aligned to 16. */
void *pirn__home_take(struct pirn__home *home, size_t size);
void pirn__home_give(struct pirn__home *home, void *memory, size_t size);

/* The same for an object that may be there longer than all others who know its
 * home: it holds a reference to it until its memory is given back. */
void *pirn__home_take_object(struct pirn__home *home, size_t size);
void pirn__home_give_object(struct pirn__home *home, void *object, size_t size);

#endif /* PIRN_TASK_HOME_H */
