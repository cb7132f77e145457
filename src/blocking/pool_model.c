/* SPDX-License-Identifier: MIT */
/* src/blocking/pool_model.c - jobs, the threads that run them, and the end of
 * both.
 *
 * The pool's threads are the explorer's.  The idle time passes when nobody can
 * go on, and as a choice before that.
 */
#include "blocking/pool.h"

#include <errno.h>

#include "engine/model_home.h"

static struct model_home model;
static PIRN_ATOMIC(int) runs;
static PIRN_ATOMIC(int) ended;    /* joins that got an outcome */
static PIRN_ATOMIC(int) rejected; /* spawns that failed */
static PIRN_ATOMIC(int) over;     /* 1: after the shutdown nothing runs */

static void begin(void)
{
    model_home_begin(&model);
}

static int work(void *arg)
{
    (void)arg;
    EXPLORE_CHECK(pirn__load(&over, relaxed) == 0);
    pirn__add(&runs, 1, relaxed);
    return 3;
}

/* A job with a handle, or NULL. */
static pirn_job *spawn(void)
{
    const pirn_spawn_options options = {
        .runtime = (pirn_runtime *)(void *)&model.home};
    pirn_job *job;
    int rc = pirn_spawn_blocking(work, NULL, &options, &job);

    if (rc < 0)
        pirn__add(&rejected, 1, relaxed);
    EXPLORE_CHECK(rc == 0 || rc == -EAGAIN || rc == PIRN_ESHUTDOWN);
    return rc == 0 ? job : NULL;
}

static struct pirn__participant *first_participant(void)
{
    pirn_link *link;

    pirn__lock(&model.home.participants_lock);
    model.home.participants_closed = true;
    link = pirn__list_first(&model.home.participants);
    pirn__unlock(&model.home.participants_lock);
    return link == NULL ? NULL
                        : PIRN_CONTAINER_OF(link, struct pirn__participant,
                                            link);
}

/* As shutdown does it: close, wait until nothing runs, end. */
static void shut_down(void)
{
    struct pirn__participant *pool = first_participant();

    if (pool != NULL)
        pool->ops->close(pool);
    while (pool != NULL) {
        uint32_t seen = model_home_wakes(&model);

        if (pool->ops->busy(pool) == 0)
            break;
        model_home_wait(&model, seen);
    }
    pirn__store(&over, 1, relaxed);
    if (pool != NULL)
        pool->ops->end(pool);
}

/* Nobody holds the home any more. */
static void end(void)
{
    explore_join();
    EXPLORE_CHECK(pirn__load(&model.home.refs, relaxed) == 1);
    EXPLORE_CHECK(pirn__load(&model.frees, relaxed) == 0);
}

/* Wait on this plain thread. */
static void join_and_unref(pirn_job *job)
{
    int outcome = 0;

    EXPLORE_CHECK(pirn_job_join(job, PIRN_NEVER, &outcome) == 0);
    EXPLORE_CHECK(outcome == 3 || outcome == PIRN_ESHUTDOWN ||
                  outcome == -ECANCELED);
    pirn__add(&ended, outcome == 3, relaxed);
    pirn_job_unref(job);
}

static void spawn_and_join(void *arg)
{
    pirn_job *job = spawn();

    (void)arg;
    if (job != NULL)
        join_and_unref(job);
}

/* Goal: a job that is queued while the only thread's idle time ends is run: by
 * that thread, or by a new one. */
MODEL(pool_idle_thread_ends_against_submit, .preemptions = 2, .timeouts = 2,
      .stale = 1, .spurious = -1)
{
    begin();
    spawn_and_join(NULL);
    spawn_and_join(NULL);
    EXPLORE_CHECK(pirn__load(&runs, relaxed) == 2);
    shut_down();
    end();
}

/* Goal: a thread that idles is told of a job, and of the end.
 * Method: its idle time never passes. */
MODEL(pool_idle_thread_is_told, .preemptions = 2, .stale = 1, .spurious = -1,
      .frozen = true)
{
    begin();
    spawn_and_join(NULL);
    spawn_and_join(NULL);
    EXPLORE_CHECK(pirn__load(&runs, relaxed) == 2);
    shut_down();
    end();
}

/* Goal: of two who submit at once each gets its job run, or is told that it
 * will not be, when threads cannot always be started. */
MODEL(pool_two_submitters_and_a_refused_thread, .preemptions = 2,
      .refusals = 1, .stale = 1, .spurious = -1)
{
    begin();
    explore_thread(spawn_and_join, NULL);
    spawn_and_join(NULL);
    /* The idle threads end in time. */
    explore_join();
    shut_down();
    end();
    EXPLORE_CHECK(pirn__load(&runs, relaxed) +
                      pirn__load(&rejected, relaxed) == 2);
    EXPLORE_CHECK(pirn__load(&ended, relaxed) == pirn__load(&runs, relaxed));
}

/* Goal: a job that meets the shutdown is run, refused or answered; nobody waits
 * for ever. */
MODEL(pool_submit_against_shutdown, .preemptions = 3, .stale = 2,
      .spurious = -1, .frozen = true)
{
    begin();
    explore_thread(spawn_and_join, NULL);
    /* There may be no pool yet, and then there will be none. */
    shut_down();
    end();
    EXPLORE_CHECK(pirn__load(&ended, relaxed) == pirn__load(&runs, relaxed));
}

static void cancel_then_join(void)
{
    pirn_job *job = spawn();
    int rc = pirn_job_cancel(job);

    EXPLORE_CHECK(rc == 0 || rc == -EBUSY);
    join_and_unref(job);
    /* Cancelled means that it has not run and will not. */
    EXPLORE_CHECK(pirn__load(&runs, relaxed) == (rc != 0));
}

/* Goal: a job is cancelled or runs. */
MODEL(pool_cancel_against_the_thread, .preemptions = 3, .stale = 2,
      .spurious = -1, .frozen = true)
{
    begin();
    cancel_then_join();
    shut_down();
    end();
}

static void unref_now(void *arg)
{
    pirn_job_unref(arg);
}

/* Goal: a job whose handles go while it runs is freed by whoever is last. */
MODEL(pool_last_handle_against_the_end_of_the_job, .preemptions = 3,
      .stale = 2, .spurious = -1, .frozen = true)
{
    pirn_job *job;

    begin();
    job = spawn();
    explore_thread(unref_now, pirn_job_ref(job));
    pirn_job_unref(job);
    shut_down();
    end();
}

static PIRN_ATOMIC(int) busy;

static void poll_and_drop(void *arg)
{
    static struct model_bell bells[2];
    pirn_job_join_op op;

    pirn_job_join_init(&op, arg);
    if (model_bell_poll(&bells[0], &op.future) == PIRN_PENDING)
        pirn_future_drop(&op.future);
    else
        pirn__add(&busy, op.rc == -EBUSY, relaxed);
    pirn_job_unref(arg);
}

/* Goal: two who wait for one job do not use its waker at once. */
MODEL(pool_two_joiners_of_one_job, .preemptions = 2, .stale = 1,
      .spurious = -1, .frozen = true)
{
    pirn_job *job;

    begin();
    job = spawn();
    explore_thread(poll_and_drop, pirn_job_ref(job));
    poll_and_drop(job);
    shut_down();
    end();
    EXPLORE_CHECK(pirn__load(&busy, relaxed) <= 1);
}
