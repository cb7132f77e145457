/* SPDX-License-Identifier: MIT */
/* src/task/local.h - what a thread is doing: which poll, which runtime, and how
 * straight-line calls wait on it.
 *
 * One record a thread, reached through the one thread-local of sys/tls.c.  A
 * fiber may change threads at each suspension, so nobody keeps the pointer that
 * pirn__local() returned across one.
 */
#ifndef PIRN_TASK_LOCAL_H
#define PIRN_TASK_LOCAL_H

#include <pirn/future.h>
#include <pirn/link.h>

#include <errno.h>

#include "base/atomic.h"
#include "base/hint.h"
#include "base/prng.h"
#include "sys/switch.h"
#include "sys/tls.h"

struct pirn__group;
struct pirn__home;
struct pirn__ledger;
struct pirn__task;
struct pirn__timers;
struct pirn__parker;
struct pirn__local;
struct pirn__worker;

enum {
    PIRN__COOP_BUDGET = 128, /* units a task may spend in one poll */
    PIRN__COOP_UNLIMITED = INT32_MAX,
};

/* Whether a task that is PENDING is run again all the same, and when. */
enum pirn__defer {
    PIRN__DEFER_NOT,
    PIRN__DEFER_AS_WOKEN, /* it has woken itself: as any that is woken, at once */
    PIRN__DEFER_TO_EVENTS, /* after the others and the driver */
    PIRN__DEFER_TO_OTHERS, /* its budget is used up: after the others, and after
                              the driver every few times */
};

/* The runtime's side of one poll; cx->turn_ points to it. */
struct pirn__turn {
    struct pirn__home *home;      /* whose reactor serves; or NULL */
    /* Queue a task of `home` that has become QUEUED in the poll of `task`, as
     * home->ops->submit would; NULL: let that do it. */
    void (*queue_woken)(struct pirn__turn *turn, struct pirn__task *task);
    struct pirn__timers *timers;  /* the wheel for entries armed here */
    struct pirn__task *task;      /* NULL between two polls, for block_on and
                                     plain threads */
    const pirn_waker *own_waker;  /* the poll's, of that task, to which its
                                     references are lent; NULL while its end
                                     is settled */
    struct pirn__parker *parker;  /* a plain thread that waits, else NULL */
    struct pirn__ledger *ledger;  /* of whose turn it is; or NULL */
    struct pirn__ledger *quiet_ledger; /* the same, of one who has a cache of cells
                                          and nobody to tell of each end */
    struct pirn__group *starts_in; /* constant: where its tasks may start others
                                      the usual way, until they have ended; or
                                      NULL */
    uint32_t worker_index;        /* of a pool; 0 */
    int32_t budget;               /* coop units left */
    uint64_t now_ns;              /* the runtime's time, some moment ago in this
                                     turn; 0: nobody has looked */
    struct pirn__local *local;    /* whoever runs a task: of this thread */
    struct pirn__context *context; /* to be entered, with PIRN__POLL_ENTERS */
    /* Set at the start of each poll, by a single store. */
    uint32_t loan;                /* references left to hand out; see state.h */
    uint8_t deferred;             /* enum pirn__defer */
    bool failed;                  /* pirn_cx_fail() was called */
    uint16_t rest;                /* 0 */
    char message[128];            /* of the failure */
};

/* What the poll of a task returns whose code stands on a stack of its own: enter
 * that, and take for the answer what it returns with.  Only to who runs tasks; a
 * number that no poll of a user's returns by mistake. */
#define PIRN__POLL_ENTERS ((enum pirn_poll)0x5049524e)

/* How a straight-line call waits here: registered by the fiber layer for
 * fibers; NULL on a plain thread, which parks. */
struct pirn__waiter_ops {
    int (*await)(struct pirn__local *local, pirn_future *future,
                 pirn_deadline deadline);
    int (*yield)(struct pirn__local *local);
};

struct pirn__local {
    /* Of a task whose worker went on on another thread; see
     * pirn_block_in_place(). */
    struct pirn__turn lone;
    struct pirn__turn *turn;    /* the innermost poll of a runtime, or NULL */
    struct pirn__home *driving; /* whose driver's seat this thread holds, or
                                   whose worker it is */
    struct pirn__worker *worker; /* of `driving`, on a thread of its pool */
    struct pirn__home *entered; /* pirn_runtime_enter() */
    const struct pirn__waiter_ops *waiter; /* inside a fiber */
    void *fiber;                           /* the fiber, for its waiter */
    /* > 0 inside a poll, a drop, a describe, a waker or a hook, where nothing
     * may suspend.  1 in a loop that runs tasks; a fiber that is entered from there
     * has 0 until it leaves. */
    uint32_t no_suspend;
    struct pirn__host host; /* its own stack, while a fiber runs */
    bool watches_faults; /* this thread has a stack for fault reports */
    struct pirn__parker *parker; /* made at the first park of this thread */
    struct pirn__prng prng; /* seeded at its first use; 0 before */
    uint32_t outside; /* which part of a pool it spawns with; 0: not asked yet */
};

/* pirn__local() of a thread that has no record yet. */
struct pirn__local *pirn__local_make(void);

/* This thread's record.  Made on first use; NULL only when there is no memory
 * for it.  The pointer is fetched by a real call each time. */
static inline struct pirn__local *pirn__local(void)
{
    struct pirn__local *local = pirn__tls_get();

    return __builtin_expect(local != NULL, 1) ? local : pirn__local_make();
}

/* A random number below `limit` > 0, for the order in which a combinator polls;
 * 0 on a thread without a record. */
uint32_t pirn__random_below(uint32_t limit);

/* A record for a thread that is yet to be started, so that want of memory is an
 * error of the start; NULL without.  That thread adopts it first of all; without
 * a thread it is disowned. */
struct pirn__local *pirn__local_new(void);
void pirn__local_adopt(struct pirn__local *local);
void pirn__local_disown(struct pirn__local *local);

/* For what must not fail: this thread's record, which is *spare until the
 * return if there is no memory for another. */
struct pirn__local *pirn__local_borrow(struct pirn__local *spare);
void pirn__local_return(struct pirn__local *spare);

/* The home that is current on the thread of this record, or NULL: of the running
 * task, else the entered one. */
static inline struct pirn__home *
pirn__local_home_of(const struct pirn__local *local)
{
    if (local == NULL)
        return NULL;
    if (local->turn != NULL && local->turn->home != NULL)
        return local->turn->home;
    return local->entered;
}

/* The same for this thread. */
static inline struct pirn__home *pirn__local_home(void)
{
    return pirn__local_home_of(pirn__local());
}

/* How a plain thread sleeps: woken by a waker, or by readiness of a few
 * descriptors that no runtime watches. */
enum { PIRN__PARKER_FDS = 16 };

struct pirn__parker_fd {
    int fd;
    uint32_t events; /* POLLIN, POLLOUT */
};

/* What the thread does; unpark moves every state to NOTIFIED. */
enum pirn__parker_state {
    PIRN__PARKER_EMPTY,    /* awake */
    PIRN__PARKER_PARKED,   /* sleeps on `word` */
    PIRN__PARKER_POLLING,  /* sleeps in poll with `wake_fd` */
    PIRN__PARKER_DRIVING,  /* drives `home`, perhaps asleep in its wait set */
    PIRN__PARKER_NOTIFIED, /* unparked; the next park returns at once */
};

struct pirn__parker {
    PIRN_ATOMIC(uint32_t) word; /* enum pirn__parker_state */
    PIRN_ATOMIC(uint32_t) refs; /* the thread and its wakers */
    int wake_fd;                /* made when descriptors are waited on; or -1 */
    /* What to wake while DRIVING, with a reference that goes to whoever takes
     * the pointer out: the thread may be gone, and its runtime, before an
     * unparker has looked here.  Put in by the thread alone. */
    PIRN_ATOMIC(struct pirn__home *) driven;
    /* The rest belongs to the thread alone. */
    struct pirn__home *home; /* what it waits for is served by this runtime;
                                with a reference, or NULL */
    uint32_t fd_count;
    struct pirn__parker_fd fds[PIRN__PARKER_FDS];
    pirn_link seat_link; /* the seat's lock: waits for the driver's seat */
};

/* This thread's parker, made at its first use; NULL without memory. */
struct pirn__parker *pirn__parker_of(struct pirn__local *local);

/* Forget what earlier waits noted, and an unpark that nobody took. */
void pirn__parker_reset(struct pirn__parker *parker);

/* From here to end an unpark also wakes `home`'s driver, which is this thread.
 * False if it has been unparked already: do not wait. */
bool pirn__parker_drive_begin(struct pirn__parker *parker,
                              struct pirn__home *home);
/* True if it was unparked meanwhile, which is consumed. */
bool pirn__parker_drive_end(struct pirn__parker *parker);
/* After the last end: this thread drives no more. */
void pirn__parker_drive_over(struct pirn__parker *parker);

/* Take an unpark that has come; false if none has. */
bool pirn__parker_consume(struct pirn__parker *parker);

/* Sleep until unparked, a noted descriptor is ready, or the deadline.  Consumes
 * the unpark.  May return early. */
void pirn__parker_park(struct pirn__parker *parker, pirn_deadline deadline);

/* Wake the thread, or make its next park return at once.  Any thread. */
void pirn__parker_unpark(struct pirn__parker *parker);

/* Give up a reference; frees the parker with the last one. */
void pirn__parker_unref(struct pirn__parker *parker);

/* A waker that unparks; takes a reference to the parker. */
pirn_waker pirn__parker_waker(struct pirn__parker *parker);

/* For operations: called in a poll that is about to return PIRN_PENDING, so
 * that a plain thread knows how to wait.  Both do nothing inside a task.
 * note_fd: no runtime watches `fd`; -ENOSPC when a wait has too many.
 * note_home: `home` will do the waking. */
int pirn__turn_note_fd(pirn_cx *cx, int fd, uint32_t events);
void pirn__turn_note_home(pirn_cx *cx, struct pirn__home *home);

/* The runtime whose timers and reactor serve this poll, or NULL. */
static inline struct pirn__home *pirn__cx_home(const pirn_cx *cx)
{
    return cx->turn_ == NULL ? NULL : cx->turn_->home;
}

/* Around every call into foreign code that must not suspend. */
static inline void pirn__no_suspend_begin(struct pirn__local *local)
{
    local->no_suspend++;
}

static inline void pirn__no_suspend_end(struct pirn__local *local)
{
    local->no_suspend--;
}

/* Poll as pirn_future_poll() does, on this thread, whose record `local` is. */
static inline enum pirn_poll pirn__local_poll(struct pirn__local *local,
                                              pirn_future *future, pirn_cx *cx)
{
    enum pirn_poll poll;

    pirn__no_suspend_begin(local);
    poll = future->ops->poll(future, cx);
    pirn__no_suspend_end(local);
    return poll;
}

/* This turn, which may be NULL, in the poll of a task; else NULL. */
static inline struct pirn__turn *pirn__turn_of_task(struct pirn__turn *turn)
{
    return turn == NULL || turn->task == NULL ? NULL : turn;
}

/* True if more is asked for than to be run again. */
static inline bool pirn__turn_is_deferred(const struct pirn__turn *turn)
{
    return turn->deferred > PIRN__DEFER_AS_WOKEN;
}

/* In a poll that has a turn and is about to return PIRN_PENDING: be polled again
 * after the others, and perhaps after a look for events. */
void pirn__turn_defer(pirn_cx *cx, enum pirn__defer until);

/* pirn_coop_spend() where nothing is left, or nothing is counted. */
PIRN__COLD bool pirn__coop_spend_last(pirn_cx *cx);

/* Spend one unit where some are left and counted; else false, and ask
 * pirn__coop_spend_last(). */
static inline bool pirn__coop_spend_counted(pirn_cx *cx)
{
    struct pirn__turn *turn = cx->turn_;

    if (turn == NULL || turn->budget <= 0)
        return false;
    turn->budget--;
    return true;
}

/* Spend one unit as pirn_coop_spend() does. */
static inline bool pirn__coop_spend(pirn_cx *cx)
{
    return pirn__coop_spend_counted(cx) || pirn__coop_spend_last(cx);
}

#endif /* PIRN_TASK_LOCAL_H */
