/* SPDX-License-Identifier: MIT */
/* src/sched/worker.h - a worker of a pool, and the pool.
 *
 * A worker is a core: queues, a wheel, a slab cache.  A thread runs it.
 *
 * Who may touch what:
 *   "owner"    the thread that runs the core
 *   "shared"   any thread, by its own protocol
 *   counters   written by the owner, read by anybody
 */
#ifndef PIRN_SCHED_WORKER_H
#define PIRN_SCHED_WORKER_H

#include "base/prng.h"
#include "base/slab.h"
#include "reactor/reactor.h"
#include "sched/idle.h"
#include "sched/inbox.h"
#include "sched/injection.h"
#include "sched/outside.h"
#include "sched/ring.h"
#include "sched/runtime.h"
#include "sched/taskpool.h"
#include "task/group.h"
#include "task/local.h"
#include "time/timers.h"

struct pirn__histograms;
struct pirn__pool;

/* How many turns may end for want of budget between two looks for events, and for
 * how long that may go on.  A budget lasts for less than a microsecond of locks
 * and messages, and a look is a system call; of calls of the kernel, or with work
 * between the operations, it lasts for milliseconds, and timers would be late. */
enum { PIRN__SPENT_TURNS = 16, PIRN__SPENT_NS = 100 * 1000 };

/* How long a look at a set without descriptors brings nothing that is urgent: a
 * fifth of what the monitor waits. */
enum { PIRN__LOOK_NS = 1000 * 1000 };

enum pirn__worker_state {
    PIRN__WORKER_RUNNING,
    PIRN__WORKER_SLEEPING, /* in the shared wait set, or about to be */
    PIRN__WORKER_ENDED,
};

/* A count that its owner writes and anybody reads. */
typedef PIRN_ATOMIC(uint64_t) pirn__counter;

struct pirn__worker_counters {
    pirn__counter polls;
    pirn__counter steals;     /* successful */
    pirn__counter overflows;  /* of the ring */
    pirn__counter parks;
    pirn__counter wakes;      /* of other workers */
    pirn__counter lifo_runs;
    pirn__counter yields;     /* budget or pirn_yield() */
    pirn__counter rescues;    /* tasks taken from a worker that did not move */
};

struct pirn__worker {
    struct pirn__pool *pool; /* constant */
    uint32_t index;          /* constant */
    struct pirn__histograms *histograms; /* constant; NULL: does not measure */

    /* Owner. */
    struct pirn__turn turn;
    struct pirn__ledger ledger; /* of the root group */
    struct pirn__slab_cache cache;
    struct pirn__harvest harvest;
    int harvested; /* events of descriptors that ended the last sleep */
    struct pirn__queue pinned_ready; /* taken from `pinned` */
    struct pirn__prng prng;
    uint64_t hunt_ns;    /* see nap.h: when it stole last, or was woken */
    uint32_t hunt_tasks; /* that it stole; 0: it was woken */
    uint64_t nap_ns;     /* the last one; 0: the last hunt was worth it */
    uint64_t alarm_late_ns; /* see alarm.c: how late it has been of late */
    struct pirn__worker *ward; /* see alarm.c: NULL, or whose wheel it serves */
    uint32_t waits; /* see alarm.c: looks in a row that were waits for a timer */
    uint32_t lifo_runs;
    uint32_t shared_at; /* the tick at which it looks at the shared queues */
    uint32_t next_shared; /* the one of those it begins with */
    uint32_t inbox_at;  /* as shared_at, for its inbox */
    uint32_t events_at; /* and for events */
    uint32_t look_at;   /* the next tick at which something else may come before
                           slot and ring, or there is something else to do */
    bool by_ring; /* constant: what gets ready here waits in the ring, and is not
                     stamped */
    uint32_t spent_turns; /* that ended for want of budget, since it looked */
    uint64_t spent_ns;    /* when it last looked for the sake of those */
    uint64_t looked_ns;   /* when it last looked at a set without descriptors */
    bool searching;
    bool rested;       /* has slept and not found a task since */
    bool keeps_thread; /* has had pinned tasks */
    bool hunting;      /* see nap.h */
    bool pinned_first; /* before the ring, next time */
    bool spill_first;  /* before the shared queues, next time */

    /* Shared. */
    PIRN_ATOMIC(uint32_t) state; /* enum pirn__worker_state */
    PIRN_ATOMIC(pirn_slink *) lifo;
    struct pirn__ring ring;
    struct pirn__injection spill; /* what overflowed the ring */
    struct pirn__inbox inbox;
    pirn__counter inbox_len; /* adjusted by whoever pushes or takes */
    struct pirn__inbox deferred; /* pushed by the owner: after its next look for
                                    events */
    struct pirn__inbox pinned; /* tasks that only this worker runs */
    PIRN_ATOMIC(int) own_fd;   /* to wake it by name; -1 without pinned tasks */
    PIRN_ATOMIC(uint32_t) named_sleep; /* 1: asleep, to be woken by name */
    struct pirn__timers timers;
    struct pirn__alarm alarm; /* the next due time, while it sleeps */
    PIRN_ATOMIC(uint64_t) alarm_ns; /* see alarm.c: what it was set for last */
    PIRN_ATOMIC(uint32_t) is_ward; /* 1: see alarm.c */

    struct pirn__worker_counters counters;
    uint64_t polls_seen; /* the monitor's, under its lock */

    /* Of a computational pool. */
    uint32_t next_slot; /* owner: for what it spawns next */
    struct pirn__injection slot[PIRN__CLASSES]; /* shared: its tasks, by class */
};

struct pirn__pool {
    struct pirn_runtime *rt;
    const struct pirn__taskpool_ops *tasks; /* where ready tasks are kept */
    uint32_t count;
    struct pirn__idle idle;
    struct pirn__injection injection; /* what was rescued or reclaimed */
    struct pirn__alarm monitor;
    PIRN_ATOMIC(uint32_t) monitor_armed;
    PIRN_ATOMIC(uint32_t) pinned_apart; /* workers that sleep outside the set */
    PIRN_ATOMIC(uint32_t) next_slot;    /* for what no worker spawns */
    pirn_lock monitor_lock;
    bool lifo_off;                 /* constant: nothing goes to a LIFO slot */
    PIRN_ATOMIC(uint32_t) stop;    /* 1: workers end */
    PIRN_ATOMIC(uint32_t) running; /* threads that have not ended */
    PIRN_ATOMIC(uint32_t) next_outside; /* for the next thread that asks */
    struct pirn__outside outside[PIRN__OUTSIDES];
    struct pirn__worker *reaper; /* a core without a thread, for shutdown */
    struct pirn__worker *workers[];
};

static inline void pirn__count(pirn__counter *counter)
{
    /* relaxed: only the owner writes; readers want any recent value. */
    uint64_t value = pirn__load(counter, relaxed);

    /* relaxed: as above. */
    pirn__store(counter, value + 1, relaxed);
}

/* Owner.  Its runs are its ticks; they come round. */
static inline uint32_t pirn__worker_tick(const struct pirn__worker *worker)
{
    /* relaxed: only the owner writes it. */
    return (uint32_t)pirn__load(&worker->counters.polls, relaxed);
}

/* Owner.  True if that tick has come. */
static inline bool pirn__worker_is_due(const struct pirn__worker *worker,
                                       uint32_t tick)
{
    return (int32_t)(pirn__worker_tick(worker) - tick) >= 0;
}

/* Owner.  All that may come before slot and ring is asked for next time. */
static inline void pirn__worker_look_soon(struct pirn__worker *worker)
{
    worker->look_at = pirn__worker_tick(worker);
}

/* Swap what is in the LIFO slot; NULL empties it. */
static inline pirn_slink *pirn__worker_swap_lifo(struct pirn__worker *worker,
                                                 pirn_slink *link)
{
    /* acq_rel: release [worker.lifo] hands a task over to the monitor, acquire
     * [worker.lifo] is the other side of that. */
    return pirn__swap(&worker->lifo, link, acq_rel);
}

/* Owner: whether the slot, which it alone fills, seems to hold something. */
static inline bool pirn__worker_has_lifo(const struct pirn__worker *worker)
{
    /* relaxed: only a hint; who takes swaps. */
    return pirn__load(&worker->lifo, relaxed) != NULL;
}

/* The worker that this thread runs, if it is one of `pool`, else NULL. */
static inline struct pirn__worker *
pirn__worker_here(const struct pirn__pool *pool)
{
    struct pirn__local *local = pirn__local();
    struct pirn__worker *worker = local == NULL ? NULL : local->worker;

    return worker != NULL && worker->pool == pool ? worker : NULL;
}

/* worker.c: run a core on this thread until the pool stops. */
void pirn__worker_run(struct pirn__worker *worker);

static inline bool pirn__pool_is_stopped(const struct pirn__pool *pool)
{
    /* seq_cst [pool.stop]: sees what shutdown did before; after a worker with
     * pinned tasks has said that it sleeps. */
    return pirn__load(&pool->stop, seq_cst) != 0;
}

/* worker.c: give the core to another thread, so that this one may block; the
 * caller's task goes on with local->lone as its turn.  -EPERM with pinned tasks;
 * -EAGAIN or -ENOMEM when no thread can be had. */
int pirn__worker_hand_off(struct pirn__local *local);

/* pool.c: a thread for a core. */
int pirn__pool_start_thread(struct pirn__worker *worker);

/* Wake one sleeper if there is reason to; after work became visible. */
void pirn__pool_wake_one(struct pirn__pool *pool);
/* The same for work that comes from outside, for which also a nap ends. */
void pirn__pool_wake_any(struct pirn__pool *pool);

/* monitor.c: an event of the monitor's alarm; arm it if it is not. */
void pirn__monitor_event(struct pirn__alarm *alarm);
void pirn__monitor_arm(struct pirn__pool *pool);

/* pool.c */
int pirn__pool_new(struct pirn_runtime *rt, uint32_t workers,
                   struct pirn__pool **out);
int pirn__pool_start(struct pirn__pool *pool);
void pirn__pool_stop(struct pirn__pool *pool);
/* Take what the queues of workers that do not come back hold, and drop it. */
void pirn__pool_drain_stuck(struct pirn__pool *pool);
void pirn__pool_close_alarms(struct pirn__pool *pool);
bool pirn__pool_wait_stopped(struct pirn__pool *pool, pirn_deadline deadline);
/* True while a thread has not ended. */
bool pirn__pool_is_running(const struct pirn__pool *pool);
void pirn__pool_free(struct pirn__pool *pool);
int pirn__pool_block_on(struct pirn_runtime *rt, pirn_future *future,
                        struct pirn__parker *parker, pirn_deadline deadline);

/* pool.c: the operations of its home. */
void pirn__pool_submit(struct pirn__home *home, struct pirn__task *task,
                       enum pirn__origin origin);
/* Of the turn of a worker with a LIFO slot. */
void pirn__pool_queue_woken(struct pirn__turn *turn, struct pirn__task *task);
void pirn__pool_wake(struct pirn__home *home);
void pirn__pool_park(struct pirn__home *home, struct pirn__parker *parker,
                     pirn_deadline deadline);

/* alarm.c: fire what is due, at the beginning of a turn.  Owner. */
void pirn__worker_fire_timers(struct pirn__worker *worker);

/* alarm.c: the next entry is due before an alarm could wake us: look again instead
 * of a sleep.  Owner; after a look at the wheel. */
bool pirn__worker_awaits_timer(struct pirn__worker *worker);

/* alarm.c: set the alarm of a worker that has said that it sleeps; its event; an
 * earlier deadline on the wheel. */
void pirn__worker_set_alarm(struct pirn__worker *worker);
void pirn__worker_alarm(struct pirn__alarm *alarm);
void pirn__worker_earlier(struct pirn__timers *timers);

/* worker.c: run what this worker's queues hold, by the hand of another thread
 * or its own, when nothing is polled any more. */
void pirn__worker_drain(struct pirn__worker *worker);

/* What a spawn uses that a thread has for itself. */
struct pirn__spawner {
    struct pirn__slab_cache *cache;
    struct pirn__ledger *ledger; /* of the root group */
};

/* Those of the thread whose record `local` is; NULL both where it does not drive
 * `rt`.  The ledger only in the poll of a task that has not ended yet: between
 * two, what is spawned is counted under the lock. */
static inline struct pirn__spawner
pirn__spawner_here(struct pirn_runtime *rt, const struct pirn__local *local)
{
    struct pirn__spawner here = {0};
    const struct pirn__turn *turn = &rt->turn;

    if (local == NULL || local->driving != &rt->home)
        return here;
    here.cache = &rt->cache;
    if (local->worker != NULL) {
        turn = &local->worker->turn;
        here.cache = &local->worker->cache;
    }
    if (turn->task != NULL && turn->task->group != NULL)
        here.ledger = turn->ledger;
    return here;
}

/* The place of this thread, whose record `local` is. */
static inline struct pirn__outside *
pirn__outside_of(struct pirn__pool *pool, struct pirn__local *local)
{
    if (local->outside == 0)
        pirn__outside_choose(pool, local);
    return &pool->outside[local->outside - 1];
}

/* Whether this thread, whose record `local` is, spawns a task of this size by
 * pirn__outside_spawn(), if it has no options and no handle. */
static inline bool pirn__outside_serves(const struct pirn_runtime *rt,
                                        const struct pirn__local *local,
                                        size_t size)
{
    return rt->pool != NULL && local != NULL && local->driving != &rt->home &&
           !rt->home.stamps && rt->hooks.on_task_spawn == NULL &&
           pirn__task_cell_size(size) <= PIRN__SLAB_SIZE_MAX;
}

#endif /* PIRN_SCHED_WORKER_H */
