/* SPDX-License-Identifier: MIT */
/* src/blocking/pool.h - the threads of one runtime that may block, and the jobs
 * they run.
 *
 * A pool is made at the first job of its runtime and is a participant of the
 * runtime's shutdown.  Its threads start on demand and end after an idle time.
 *
 * Invariants, all under the pool's lock
 *   - A job that was accepted has either a thread on its way that started or
 *     was told because of it, or a live thread that looks into the queue before
 *     it idles or ends.  So no accepted job is left lying.
 *   - A thread is in the list of idlers only while it was not told of a job,
 *     and at most one thread is told for one job.
 *
 * Lifetime.  The runtime holds a reference to the pool until end(), each thread
 * and each job holds one as well, and with it one to the home, whose allocator
 * takes the memory back.  A thread that is still in a job when its runtime has
 * ended therefore leaves nothing dangling.
 */
#ifndef PIRN_BLOCKING_POOL_H
#define PIRN_BLOCKING_POOL_H

#include <pirn/blocking.h>

#include "reactor/op.h"
#include "task/home.h"

enum pirn__job_state {
    PIRN__JOB_QUEUED,
    PIRN__JOB_RUNNING,
    PIRN__JOB_ENDED, /* ran, was cancelled, or was refused by shutdown */
};

struct pirn_job {
    struct pirn__op op; /* first; its owner is the set of handles */
    struct pirn__blocking_pool *pool;
    pirn_blocking_fn *fn;
    void *arg;
    const char *site;
    char name[PIRN_NAME_SIZE]; /* "" without one */
    PIRN_ATOMIC(uint32_t) handles;
    PIRN_ATOMIC(bool)
    joining;                  /* [job.joining] whoever set it owns op's waker */
    PIRN_ATOMIC(bool) joined; /* somebody took the outcome */
    pirn_link link;           /* pool lock: the queue */
    enum pirn__job_state state; /* pool lock */
    int outcome;                /* pool lock, once ENDED */
    bool orphaned;              /* pool lock: the last handle is gone */
};

struct pirn__blocking_pool {
    struct pirn__participant participant;
    struct pirn__home *home;
    PIRN_ATOMIC(uint32_t) refs;
    pirn_lock lock;
    /* The rest is guarded by `lock`. */
    bool closed;
    bool ended; /* the runtime is gone, and with it who hears of failures */
    uint32_t starting; /* threads asked for that have not arrived */
    int32_t promised;  /* starts that worked, less arrivals; see pool.c */
    uint32_t alive;    /* threads that have arrived and not left */
    uint32_t told;     /* idlers that were told of a job and have not come */
    uint32_t queued;   /* jobs in `queue` */
    uint32_t running;  /* jobs on a thread, until they are accounted for */
    pirn_link queue;
    pirn_link idlers; /* the last to idle first, so that the others end */
    uint64_t idle_ns; /* how long a thread waits for a job */
    uint64_t completed;
    uint64_t refused;
};

/* The pool of a home, made if need be, with a reference for the caller.
 * -ENOMEM, PIRN_ESHUTDOWN. */
PIRN_MUST_CHECK int pirn__blocking_pool_get(struct pirn__home *home,
                                            struct pirn__blocking_pool **out);
void pirn__blocking_pool_ref(struct pirn__blocking_pool *pool);
void pirn__blocking_pool_unref(struct pirn__blocking_pool *pool);

/* Queue a job and see to it that a thread will run it.  On success the pool
 * completes job->op, maybe before this returns.  -EAGAIN, PIRN_ESHUTDOWN. */
PIRN_MUST_CHECK int pirn__blocking_pool_submit(struct pirn__blocking_pool *pool,
                                               struct pirn_job *job);

/* Take a job out of the queue and complete it with -ECANCELED.  False if it has
 * started or ended. */
bool pirn__blocking_pool_cancel(struct pirn_job *job);

/* The last handle of a job is gone: an outcome that nobody has joined is
 * reported if it is a failure, now or when there is one. */
void pirn__blocking_pool_orphan(struct pirn_job *job);

#endif /* PIRN_BLOCKING_POOL_H */
