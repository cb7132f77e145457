/* SPDX-License-Identifier: MIT */
/* src/blocking/job.c - jobs as their users see them: handles, joining, and the
 * call that waits.
 *
 * The owner of a job's operation record is the set of its handles.  Of these at
 * most one waits at a time: whoever set `joining` may lend a waker to the
 * record.
 */
#include "blocking/pool.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "sys/fork.h"
#include "task/await.h"
#include "task/local.h"

static struct pirn_job *job_of(struct pirn__op *op)
{
    return PIRN_CONTAINER_OF(op, struct pirn_job, op);
}

static void job_free(struct pirn__op *op)
{
    struct pirn_job *job = job_of(op);
    struct pirn__blocking_pool *pool = job->pool;

    pirn__home_give(pool->home, job, sizeof *job);
    pirn__blocking_pool_unref(pool);
}

static const struct pirn__op_ops job_op_ops = {.free = job_free};

static void copy_name(struct pirn_job *job, const pirn_spawn_options *options)
{
    size_t len;

    if (options == NULL || options->name == NULL)
        return;
    len = strnlen(options->name, sizeof job->name - 1);
    memcpy(job->name, options->name, len);
}

/* A job with one handle.  It takes over the caller's reference to the pool. */
static struct pirn_job *job_new(struct pirn__blocking_pool *pool,
                                pirn_blocking_fn *fn, void *arg,
                                const pirn_spawn_options *options,
                                const char *site)
{
    struct pirn_job *job = pirn__home_take(pool->home, sizeof *job);

    if (job == NULL)
        return NULL;
    *job = (struct pirn_job){
        .pool = pool,
        .fn = fn,
        .arg = arg,
        .site = site,
        .state = PIRN__JOB_QUEUED,
    };
    pirn__op_init(&job->op, &job_op_ops);
    pirn__init(&job->handles, 1);
    copy_name(job, options);
    return job;
}

/* True in a child process, where the pool has no threads and its lock may be
 * held by one that does not exist here. */
static bool is_forked(const struct pirn__home *home)
{
    return home->fork_generation != pirn__fork_generation();
}

static int job_spawn(struct pirn__home *home, pirn_blocking_fn *fn, void *arg,
                     const pirn_spawn_options *options, const char *site,
                     pirn_job **out)
{
    struct pirn__blocking_pool *pool;
    struct pirn_job *job;
    int rc = pirn__blocking_pool_get(home, &pool);

    if (rc < 0)
        return rc;
    job = job_new(pool, fn, arg, options, site);
    if (job == NULL) {
        pirn__blocking_pool_unref(pool);
        return -ENOMEM;
    }
    rc = pirn__blocking_pool_submit(pool, job);
    if (rc < 0) {
        job_free(&job->op);
        return rc;
    }
    *out = job;
    return 0;
}

int pirn_spawn_blocking_at(pirn_blocking_fn *fn, void *arg,
                           const pirn_spawn_options *options, pirn_job **out,
                           const char *site)
{
    struct pirn__home *home;
    pirn_job *job;
    int rc;

    if (out != NULL)
        *out = NULL;
    if (fn == NULL)
        return -EINVAL;
    home = pirn__home_for(options);
    if (home == NULL)
        return PIRN_ENORUNTIME;
    if (is_forked(home))
        return PIRN_EFORKED;
    rc = job_spawn(home, fn, arg, options, site, &job);
    if (rc < 0)
        return rc;
    if (out != NULL)
        *out = job;
    else
        pirn_job_unref(job);
    return 0;
}

pirn_job *pirn_job_ref(pirn_job *job)
{
    /* relaxed: the caller holds a handle. */
    (void)pirn__add(&job->handles, 1, relaxed);
    return job;
}

void pirn_job_unref(pirn_job *job)
{
    if (job == NULL)
        return;
    /* release [job.handles]: our use of the job comes before the last handle's
     * end. */
    if (pirn__sub(&job->handles, 1, release) != 1)
        return;
    /* acquire [job.handles]: sees whether somebody joined. */
    (void)pirn__load(&job->handles, acquire);
    if (!is_forked(job->pool->home))
        pirn__blocking_pool_orphan(job);
    pirn__op_detach(&job->op);
}

int pirn_job_cancel(pirn_job *job)
{
    if (job == NULL)
        return -EINVAL;
    if (is_forked(job->pool->home))
        return -EBUSY;
    return pirn__blocking_pool_cancel(job) ? 0 : -EBUSY;
}

/* Become the one handle that waits. */
static bool begin_joining(pirn_job *job)
{
    /* acquire [job.joining]: the record's waker is as the last one left it. */
    return !pirn__swap(&job->joining, true, acquire);
}

static void end_joining(pirn_job_join_op *op)
{
    op->waiting_ = false;
    /* release [job.joining]: the next one to wait sees our last use of the
     * record's waker. */
    pirn__store(&op->job_->joining, false, release);
}

/* After the end of the job nobody needs to be the one that waits, so the claim
 * may stay. */
static enum pirn_poll join_end(pirn_job_join_op *op, int rc)
{
    pirn_job *job = op->job_;

    op->rc = rc;
    op->waiting_ = false;
    if (rc == 0) {
        op->outcome = pirn__op_result(&job->op);
        /* relaxed: ordered by the end of our handle [job.handles]. */
        pirn__store(&job->joined, true, relaxed);
    }
    op->job_ = NULL;
    pirn_job_unref(job);
    return PIRN_READY;
}

static enum pirn_poll join_poll(pirn_future *self, pirn_cx *cx)
{
    pirn_job_join_op *op = PIRN_CONTAINER_OF(self, pirn_job_join_op, future);
    pirn_job *job = op->job_;

    if (!pirn_coop_spend(cx))
        return PIRN_PENDING;
    /* A job that has ended has room for any number. */
    if (pirn__op_is_complete(&job->op))
        return join_end(op, 0);
    if (is_forked(job->pool->home))
        return join_end(op, PIRN_EFORKED);
    if (!op->waiting_) {
        /* The other waiter may just have got its answer. */
        if (!begin_joining(job))
            return join_end(op, pirn__op_is_complete(&job->op) ? 0 : -EBUSY);
        op->waiting_ = true;
    }
    if (pirn__op_poll(&job->op, cx) == PIRN_READY)
        return join_end(op, 0);
    /* A job may itself wait for tasks of its runtime. */
    pirn__turn_note_home(cx, job->pool->home);
    return PIRN_PENDING;
}

static void join_drop(pirn_future *self)
{
    pirn_job_join_op *op = PIRN_CONTAINER_OF(self, pirn_job_join_op, future);

    if (op->waiting_) {
        pirn__op_withdraw(&op->job_->op);
        end_joining(op);
    }
    pirn_job_unref(op->job_);
    op->job_ = NULL;
}

static void join_describe(const pirn_future *self, pirn_text *out)
{
    const pirn_job_join_op *op =
        PIRN_CONTAINER_OF(self, pirn_job_join_op, future);
    const pirn_job *job = op->job_;

    if (job != NULL)
        pirn_text_append(out, "blocking job %s",
                         job->name[0] == '\0' ? job->site : job->name);
}

static int join_outcome(const pirn_future *self)
{
    const pirn_job_join_op *op =
        PIRN_CONTAINER_OF(self, pirn_job_join_op, future);

    return op->rc < 0 ? op->rc : op->outcome;
}

static const pirn_future_ops join_ops = {
    .poll = join_poll,
    .drop = join_drop,
    .describe = join_describe,
    .outcome = join_outcome,
};

void pirn_job_join_init(pirn_job_join_op *op, pirn_job *job)
{
    *op = (pirn_job_join_op){
        .future.ops = &join_ops,
        .job_ = pirn_job_ref(job),
    };
}

int pirn_job_join(pirn_job *job, pirn_deadline deadline, int *outcome)
{
    pirn_job_join_op op;
    int rc;

    if (job == NULL || outcome == NULL)
        return -EINVAL;
    pirn_job_join_init(&op, job);
    rc = pirn__await(&op.future, deadline);
    if (rc == 0)
        rc = op.rc;
    if (rc == 0)
        *outcome = op.outcome;
    return rc;
}

/* What a call does that may not skip its future: be ready once there is coop
 * budget. */
static enum pirn_poll entry_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    return pirn_coop_spend(cx) ? PIRN_READY : PIRN_PENDING;
}

static void entry_drop(pirn_future *self)
{
    (void)self;
}

/* The answers that a suspending call gives before it does anything. */
static int enter_call(void)
{
    static const pirn_future_ops entry_ops = {
        .poll = entry_poll,
        .drop = entry_drop,
    };
    pirn_future entry = {&entry_ops};
    int rc = pirn__fast_path(pirn__local());

    return rc <= 0 ? rc : pirn__await(&entry, PIRN_NEVER);
}

static bool is_in_fiber(void)
{
    const struct pirn__local *local = pirn__local();

    return local != NULL && local->waiter != NULL;
}

int pirn_blocking_run(pirn_blocking_fn *fn, void *arg)
{
    pirn_job *job;
    int outcome, rc;

    if (fn == NULL)
        return -EINVAL;
    rc = enter_call();
    if (rc < 0)
        return rc;
    if (!is_in_fiber())
        return fn(arg);
    rc = pirn_spawn_blocking(fn, arg, NULL, &job);
    if (rc < 0)
        return rc;
    /* `arg` may live on this stack, so nothing may end the wait but the job. */
    pirn_fiber_shield_begin();
    rc = pirn_job_join(job, PIRN_NEVER, &outcome);
    pirn_fiber_shield_end();
    PIRN_ASSERT(rc == 0);
    pirn_job_unref(job);
    return outcome;
}
