/* SPDX-License-Identifier: MIT */
/* src/blocking/pool.c - threads that wait for jobs, run them, and end.
 *
 * Starting a thread blocks and can fail, so it happens outside the lock, after
 * the job was queued.  Until the start has worked nobody may lean on it: if it
 * fails and there is no other thread, the submitter takes its own job back.
 * That is why a submitter who finds no thread that is sure to come always
 * starts one itself, even while others do the same and even above the limit.
 * Whoever arrives and finds the limit reached leaves again.
 *
 * An idle thread is told of a job by name.  Its record stands on its own stack,
 * and is touched by others only under the lock, while it is in the list.
 */
#include "blocking/pool.h"

#include <errno.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/list.h"
#include "base/lock.h"
#include "sys/sys.h"
#include "task/local.h"

#define IDLE_NS (UINT64_C(10) * 1000 * 1000 * 1000)

/* A thread that waits. */
struct idler {
    pirn_link link;             /* pool lock: the idlers */
    PIRN_ATOMIC(uint32_t) told; /* 1: come back; set under the pool lock */
};

static void drop_reference(struct pirn__blocking_pool *pool)
{
    /* release [pool.refs]: our use of the pool comes before its end. */
    if (pirn__sub(&pool->refs, 1, release) != 1)
        return;
    /* acquire [pool.refs]: the end comes after everybody's use. */
    (void)pirn__load(&pool->refs, acquire);
    PIRN_DASSERT(pirn__list_empty(&pool->queue));
    PIRN_DASSERT(pirn__list_empty(&pool->idlers));
    pirn__home_give(pool->home, pool, sizeof *pool);
}

void pirn__blocking_pool_ref(struct pirn__blocking_pool *pool)
{
    pirn__home_ref(pool->home);
    /* relaxed: the caller knows the pool by a reference that is already there,
     * or by the runtime's under the participants' lock. */
    (void)pirn__add(&pool->refs, 1, relaxed);
}

void pirn__blocking_pool_unref(struct pirn__blocking_pool *pool)
{
    struct pirn__home *home = pool->home;

    drop_reference(pool);
    pirn__home_unref(home);
}

/* Tell one idle thread, or NULL.  The caller wakes it after unlocking. */
static struct idler *tell_idler_locked(struct pirn__blocking_pool *pool)
{
    pirn_link *link = pirn__list_pop_head(&pool->idlers);
    struct idler *idler;

    if (link == NULL)
        return NULL;
    idler = PIRN_CONTAINER_OF(link, struct idler, link);
    pool->told++;
    /* relaxed: it only ends a wait; all else is read under the lock. */
    pirn__store(&idler->told, 1, relaxed);
    return idler;
}

/* The record may be gone by now.  Waking an address that nobody waits on does
 * nothing, and every futex wait of ours bears a wake for no reason. */
static void wake_idler(struct idler *idler)
{
    pirn__sys->futex_wake(&idler->told.v_, 1);
}

/* Wait for a job.  False when the idle time is over.  The lock is given up
 * meanwhile. */
static bool idle_locked(struct pirn__blocking_pool *pool)
{
    struct idler idler;
    pirn_deadline until = {
        pirn__saturating_add(pirn__sys->clock_ns(), pool->idle_ns)};
    int rc = 0;

    pirn__init(&idler.told, 0);
    pirn__list_push_head(&pool->idlers, &idler.link);
    pirn__unlock(&pool->lock);
    /* relaxed: it only ends the wait; all else is read under the lock. */
    while (pirn__load(&idler.told, relaxed) == 0 && rc == 0)
        rc = pirn__sys->futex_wait(&idler.told.v_, 0, until);
    pirn__lock(&pool->lock);
    if (pirn__list_linked(&idler.link)) {
        pirn__list_remove(&idler.link);
        return false;
    }
    pool->told--;
    return true;
}

static struct pirn_job *take_job_locked(struct pirn__blocking_pool *pool)
{
    pirn_link *link = pirn__list_pop_head(&pool->queue);

    if (link == NULL)
        return NULL;
    pool->queued--;
    return PIRN_CONTAINER_OF(link, struct pirn_job, link);
}

/* The next job for a live thread; NULL when the thread is to end, and then it
 * no longer counts as alive. */
static struct pirn_job *next_job(struct pirn__blocking_pool *pool)
{
    struct pirn_job *job;

    pirn__lock(&pool->lock);
    /* Ends with a job, with the idle time, or when the pool is closed.  Who goes
     * when its idle time is over leaves no job behind: one that came meanwhile
     * is for somebody who was told of it. */
    while ((job = take_job_locked(pool)) == NULL && !pool->closed &&
           idle_locked(pool))
        continue;
    if (job == NULL) {
        pool->alive--;
    } else {
        job->state = PIRN__JOB_RUNNING;
        pool->running++;
    }
    pirn__unlock(&pool->lock);
    return job;
}

/* A job is accounted for.  True if shutdown waits for just that. */
static bool count_down_locked(struct pirn__blocking_pool *pool)
{
    pool->running--;
    return pool->closed && pool->running == 0;
}

/* Tell the home of an outcome that nobody will join, if it is a failure.  To
 * have been stopped is none. */
static void report_outcome(struct pirn_job *job, int outcome)
{
    struct pirn__home *home = job->pool->home;
    const pirn_failure failure = {
        .name = job->name[0] == '\0' ? NULL : job->name,
        .site = job->site,
        .outcome = outcome,
        .message = "",
    };

    if (outcome < 0 && outcome != -ECANCELED && outcome != PIRN_ESHUTDOWN)
        home->ops->failed(home, &failure);
}

/* The job has returned.  It is accounted for before its end is published, so
 * that who has joined everything finds nothing running; an orphan's failure is
 * reported even before that, so that shutdown waits for the hook. */
static void finish_job(struct pirn__blocking_pool *pool, struct pirn_job *job,
                       int outcome)
{
    bool orphaned, was_last = false, reports;

    pirn__lock(&pool->lock);
    job->state = PIRN__JOB_ENDED;
    job->outcome = outcome;
    pool->completed++;
    orphaned = job->orphaned;
    reports = orphaned && !pool->ended;
    if (!orphaned)
        was_last = count_down_locked(pool);
    pirn__unlock(&pool->lock);

    if (reports)
        report_outcome(job, outcome);
    if (orphaned) {
        pirn__lock(&pool->lock);
        was_last = count_down_locked(pool);
        pirn__unlock(&pool->lock);
    }
    pirn__op_complete(&job->op, outcome);
    if (was_last)
        pool->home->ops->wake(pool->home);
}

/* The runtime is entered for the time of the job, so that it can spawn.  Where
 * there is no memory for the thread's record it runs without. */
static int call_job(struct pirn__blocking_pool *pool, struct pirn_job *job)
{
    struct pirn__local *local = pirn__local();
    int outcome;

    if (local == NULL)
        return job->fn(job->arg);
    local->entered = pool->home;
    outcome = job->fn(job->arg);
    local->entered = NULL;
    return outcome;
}

/* A thread that was asked for is here.  False if it is one too many. */
static bool arrive(struct pirn__blocking_pool *pool)
{
    bool stays;

    pirn__lock(&pool->lock);
    pool->starting--;
    pool->promised--;
    stays = pool->alive < pool->home->blocking_threads;
    if (stays)
        pool->alive++;
    pirn__unlock(&pool->lock);
    return stays;
}

static void run_thread(void *arg)
{
    struct pirn__blocking_pool *pool = arg;
    struct pirn_job *job;

    if (arrive(pool)) {
        while ((job = next_job(pool)) != NULL)
            finish_job(pool, job, call_job(pool, job));
    }
    pirn__blocking_pool_unref(pool);
}

/* True if there is a thread that is sure to look into the queue.  `promised` is
 * negative while a thread has arrived before its starter could say so; then it
 * is alive, or others are. */
static bool has_thread_locked(const struct pirn__blocking_pool *pool)
{
    return pool->alive > 0 || pool->promised > 0;
}

/* True if `queued` jobs are more than may wait.  A thread that is on its way
 * will take one at once, so that one does not wait. */
static bool is_over_bound_locked(const struct pirn__blocking_pool *pool,
                                 uint32_t queued)
{
    uint32_t coming = pool->starting + pool->told;

    return queued > coming && queued - coming > pool->home->blocking_queue;
}

/* Start a thread for a job that is in the queue.  If that fails the job stays
 * there only if a live thread will come for it. */
static int start_thread(struct pirn__blocking_pool *pool, struct pirn_job *job)
{
    bool withdrawn;

    /* The new thread's reference. */
    pirn__blocking_pool_ref(pool);
    if (pirn__sys->thread_start("pirn-blocking", 0, run_thread, pool) == 0) {
        pirn__lock(&pool->lock);
        pool->promised++;
        pirn__unlock(&pool->lock);
        return 0;
    }
    pirn__lock(&pool->lock);
    pool->starting--;
    withdrawn =
        job->state == PIRN__JOB_QUEUED &&
        (!has_thread_locked(pool) || is_over_bound_locked(pool, pool->queued));
    if (withdrawn) {
        pirn__list_remove(&job->link);
        pool->queued--;
    }
    pirn__unlock(&pool->lock);
    pirn__blocking_pool_unref(pool);
    return withdrawn ? -EAGAIN : 0;
}

int pirn__blocking_pool_submit(struct pirn__blocking_pool *pool,
                               struct pirn_job *job)
{
    uint32_t limit = pool->home->blocking_threads;
    struct idler *idler = NULL;
    bool starts = false;
    int rc = 0;

    pirn__lock(&pool->lock);
    if (pool->closed) {
        rc = PIRN_ESHUTDOWN;
    } else if ((idler = tell_idler_locked(pool)) == NULL) {
        starts =
            !has_thread_locked(pool) || pool->alive + pool->starting < limit;
        if (starts)
            pool->starting++;
        else if (is_over_bound_locked(pool, pool->queued + 1))
            rc = -EAGAIN;
    }
    if (rc == 0) {
        pirn__list_push_tail(&pool->queue, &job->link);
        pool->queued++;
    }
    pirn__unlock(&pool->lock);

    if (idler != NULL)
        wake_idler(idler);
    return starts ? start_thread(pool, job) : rc;
}

bool pirn__blocking_pool_cancel(struct pirn_job *job)
{
    struct pirn__blocking_pool *pool = job->pool;
    bool is_queued;

    pirn__lock(&pool->lock);
    is_queued = job->state == PIRN__JOB_QUEUED;
    if (is_queued) {
        pirn__list_remove(&job->link);
        pool->queued--;
        job->state = PIRN__JOB_ENDED;
        job->outcome = -ECANCELED;
    }
    pirn__unlock(&pool->lock);
    if (is_queued)
        pirn__op_complete(&job->op, -ECANCELED);
    return is_queued;
}

void pirn__blocking_pool_orphan(struct pirn_job *job)
{
    struct pirn__blocking_pool *pool = job->pool;
    int outcome = 0;

    pirn__lock(&pool->lock);
    job->orphaned = true;
    if (job->state == PIRN__JOB_ENDED && !pool->ended)
        outcome = job->outcome;
    pirn__unlock(&pool->lock);
    /* relaxed: who joined did so with a handle, and the caller has just seen
     * the end of all handles. */
    if (!pirn__load(&job->joined, relaxed))
        report_outcome(job, outcome);
}

/* ---- What shutdown asks ---- */

static struct pirn__blocking_pool *pool_of(struct pirn__participant *self)
{
    return PIRN_CONTAINER_OF(self, struct pirn__blocking_pool, participant);
}

static struct pirn_job *refuse_one(struct pirn__blocking_pool *pool)
{
    struct pirn_job *job;

    pirn__lock(&pool->lock);
    pool->closed = true;
    job = take_job_locked(pool);
    if (job != NULL) {
        job->state = PIRN__JOB_ENDED;
        job->outcome = PIRN_ESHUTDOWN;
        pool->refused++;
    }
    pirn__unlock(&pool->lock);
    return job;
}

static void pool_close(struct pirn__participant *self)
{
    struct pirn__blocking_pool *pool = pool_of(self);
    struct pirn_job *job;
    struct idler *idler;

    /* Both end, for a closed pool admits neither jobs nor idlers. */
    while ((job = refuse_one(pool)) != NULL)
        pirn__op_complete(&job->op, PIRN_ESHUTDOWN);
    do {
        pirn__lock(&pool->lock);
        idler = tell_idler_locked(pool);
        pirn__unlock(&pool->lock);
        if (idler != NULL)
            wake_idler(idler);
    } while (idler != NULL);
}

static size_t pool_busy(struct pirn__participant *self)
{
    struct pirn__blocking_pool *pool = pool_of(self);
    size_t running;

    pirn__lock(&pool->lock);
    running = pool->running;
    pirn__unlock(&pool->lock);
    return running;
}

static void pool_report(struct pirn__participant *self, pirn_report *report)
{
    struct pirn__blocking_pool *pool = pool_of(self);

    pirn__lock(&pool->lock);
    report->jobs_completed += pool->completed;
    report->jobs_refused += pool->refused;
    report->jobs_still_running += pool->running;
    pirn__unlock(&pool->lock);
}

static void pool_end(struct pirn__participant *self)
{
    struct pirn__blocking_pool *pool = pool_of(self);

    pirn__lock(&pool->lock);
    pool->ended = true;
    pirn__unlock(&pool->lock);
    drop_reference(pool);
}

static const struct pirn__participant_ops participant_ops = {
    .close = pool_close,
    .busy = pool_busy,
    .report = pool_report,
    .end = pool_end,
};

static struct pirn__blocking_pool *pool_new(struct pirn__home *home)
{
    struct pirn__blocking_pool *pool = pirn__home_take(home, sizeof *pool);

    if (pool == NULL)
        return NULL;
    *pool = (struct pirn__blocking_pool){
        .participant.ops = &participant_ops,
        .home = home,
        .idle_ns = IDLE_NS,
    };
    pirn__init(&pool->refs, 1);
    pirn__lock_init(&pool->lock);
    pirn__list_init(&pool->queue);
    pirn__list_init(&pool->idlers);
    return pool;
}

/* Look for the pool, or put `fresh` in its place; *out stays NULL if there is
 * none either way.  Once shutdown has begun the pool may be gone, and the
 * pointer with it. */
static int find_pool(struct pirn__home *home, struct pirn__blocking_pool *fresh,
                     struct pirn__blocking_pool **out)
{
    struct pirn__blocking_pool *pool;
    int rc = 0;

    *out = NULL;
    pirn__lock(&home->participants_lock);
    /* relaxed: only touched under this lock. */
    pool = pirn__load(&home->blocking, relaxed);
    if (home->participants_closed) {
        rc = PIRN_ESHUTDOWN;
        pool = NULL;
    } else if (pool == NULL && fresh != NULL) {
        pool = fresh;
        /* relaxed: only touched under this lock. */
        pirn__store(&home->blocking, pool, relaxed);
        pirn__list_push_tail(&home->participants, &pool->participant.link);
    }
    if (pool != NULL)
        pirn__blocking_pool_ref(pool);
    pirn__unlock(&home->participants_lock);
    *out = pool;
    return rc;
}

int pirn__blocking_pool_get(struct pirn__home *home,
                            struct pirn__blocking_pool **out)
{
    struct pirn__blocking_pool *fresh;
    int rc = find_pool(home, NULL, out);

    if (rc < 0 || *out != NULL)
        return rc;
    fresh = pool_new(home);
    if (fresh == NULL)
        return -ENOMEM;
    rc = find_pool(home, fresh, out);
    if (*out != fresh)
        pirn__home_give(home, fresh, sizeof *fresh);
    return rc;
}
