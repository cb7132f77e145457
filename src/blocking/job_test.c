/* SPDX-License-Identifier: MIT */
/* src/blocking/job_test.c - handles of jobs, joining them, and the call that
 * waits.  The first half polls by hand on a home without a scheduler; the
 * second half runs fibers on a real runtime. */
#include "engine/blocking_fixture.h"
#include "engine/one_thread.h"

#include <errno.h>
#include <pthread.h>

#include <pirn/time.h>

static int return_arg(void *arg)
{
    return arg == NULL ? 0 : *(int *)arg;
}

/* One thread that stands at a gate, and the job it stands in. */
static void begin_at_gate(struct test_home *home, struct gate *gate,
                          pirn_job **job)
{
    test_home_begin(home, 1, 8);
    gate_init(gate, 4);
    EXPECT_EQ(0, pirn_spawn_blocking(pass_gate, gate, NULL, job));
    wait_for(&gate->begun);
}

/* Goal: a job that has not started can be taken back, one that has cannot.
 * Method: cancel one behind the gate twice, the one at it, and one that has
 * ended. */
TEST(job_cancelled_before_it_started_never_runs)
{
    struct test_home home;
    struct gate gate;
    pirn_job *running, *queued;

    begin_at_gate(&home, &gate, &running);
    REQUIRE(pirn_spawn_blocking(pass_gate, &gate, NULL, &queued) == 0);
    EXPECT_EQ(-EBUSY, pirn_job_cancel(running));
    EXPECT_EQ(0, pirn_job_cancel(queued));
    EXPECT_EQ(-EBUSY, pirn_job_cancel(queued));
    EXPECT_EQ(-ECANCELED, join_and_unref(queued));

    sem_post(&gate.open);
    EXPECT_EQ(4, join_and_unref(pirn_job_ref(running)));
    EXPECT_EQ(-EBUSY, pirn_job_cancel(running));
    pirn_job_unref(running);
    test_home_finish(&home);
    EXPECT_EQ(1, count_of(&gate.runs));
}

/* Goal: nonsense gets a code.
 * Method: no job, no place for the outcome. */
TEST(job_join_of_nothing_answers_einval)
{
    struct test_home home;
    struct gate gate;
    pirn_job *job;
    int outcome;

    begin_at_gate(&home, &gate, &job);
    EXPECT_EQ(-EINVAL, pirn_job_join(NULL, PIRN_NEVER, &outcome));
    EXPECT_EQ(-EINVAL, pirn_job_join(job, PIRN_NEVER, NULL));
    EXPECT_EQ(-EINVAL, pirn_job_cancel(NULL));
    pirn_job_unref(NULL);
    sem_post(&gate.open);
    pirn_job_unref(job);
    test_home_finish(&home);
}

/* Goal: one waiter at a time, and its place is free again when it goes.
 * Method: while A waits B is refused; A is dropped, B waits and is woken;
 * afterwards any number may ask. */
TEST(job_joined_by_two_answers_ebusy_to_the_second)
{
    struct test_home home;
    struct gate gate;
    struct joiner a, b;
    pirn_job *job;

    begin_at_gate(&home, &gate, &job);
    joiner_init(&a, job);
    joiner_init(&b, job);
    EXPECT_EQ(PIRN_PENDING, joiner_poll(&a));
    EXPECT_EQ(PIRN_READY, joiner_poll(&b));
    EXPECT_EQ(-EBUSY, b.op.rc);
    EXPECT_EQ(-EBUSY, pirn_future_outcome(&b.op.future));
    EXPECT_EQ(PIRN_PENDING, joiner_poll(&a));

    pirn_future_drop(&a.op.future);
    joiner_init(&b, job);
    EXPECT_EQ(PIRN_PENDING, joiner_poll(&b));
    sem_post(&gate.open);
    wait_for(&b.bell.rings);
    EXPECT_EQ(PIRN_READY, joiner_poll(&b));
    EXPECT_EQ(0, b.op.rc);
    EXPECT_EQ(4, b.op.outcome);
    EXPECT_EQ(4, pirn_future_outcome(&b.op.future));

    for (int i = 0; i < 3; i++) {
        joiner_init(&a, job);
        EXPECT_EQ(PIRN_READY, joiner_poll(&a));
        EXPECT_EQ(4, a.op.outcome);
    }
    pirn_job_unref(job);
    test_home_finish(&home);
}

/* Goal: a join that is given up loses nothing and leaks nothing.
 * Method: drop joins that were never polled, that wait, and that were woken and
 * did not look; the next join gets the outcome. */
TEST(job_join_dropped_loses_nothing)
{
    struct test_home home;
    struct gate gate;
    struct joiner early, joiner;
    pirn_job *job;

    begin_at_gate(&home, &gate, &job);
    joiner_init(&joiner, job);
    pirn_future_drop(&joiner.op.future);

    joiner_init(&early, job);
    EXPECT_EQ(PIRN_PENDING, joiner_poll(&early));
    EXPECT_EQ(1, count_of(&early.bell.wakers));
    pirn_future_drop(&early.op.future);
    EXPECT_EQ(0, count_of(&early.bell.wakers));

    joiner_init(&joiner, job);
    EXPECT_EQ(PIRN_PENDING, joiner_poll(&joiner));
    sem_post(&gate.open);
    wait_for(&joiner.bell.rings);
    pirn_future_drop(&joiner.op.future);

    EXPECT_EQ(4, join_and_unref(job));
    test_home_finish(&home);
    EXPECT_EQ(0, count_of(&home.failures));
}

/* Goal: a join keeps its job by itself.
 * Method: give the handle up before the first poll. */
TEST(job_join_holds_a_reference_of_its_own)
{
    struct test_home home;
    struct gate gate;
    struct joiner joiner;
    pirn_job *job;

    begin_at_gate(&home, &gate, &job);
    joiner_init(&joiner, job);
    pirn_job_unref(job);
    EXPECT_EQ(PIRN_PENDING, joiner_poll(&joiner));
    sem_post(&gate.open);
    wait_for(&joiner.bell.rings);
    EXPECT_EQ(PIRN_READY, joiner_poll(&joiner));
    EXPECT_EQ(4, joiner.op.outcome);
    test_home_finish(&home);
}

/* Goal: a dump can say what a joiner waits for.
 * Method: a job with a name and one without. */
TEST(job_join_describes_its_job)
{
    const pirn_spawn_options named = {
        .name = "a name that is too long for its place, surely"};
    struct test_home home;
    struct gate gate;
    struct joiner joiner;
    pirn_job *job;
    char buf[80] = "";
    pirn_text text = {.buf = buf, .size = sizeof buf};

    begin_at_gate(&home, &gate, &job);
    pirn_job_unref(job);
    REQUIRE(pirn_spawn_blocking(return_arg, NULL, &named, &job) == 0);
    joiner_init(&joiner, job);
    pirn_future_describe(&joiner.op.future, &text);
    EXPECT_STR_EQ("blocking job a name that is too long for its", buf);
    pirn_future_drop(&joiner.op.future);
    pirn_job_unref(job);

    REQUIRE(pirn_spawn_blocking_at(return_arg, NULL, NULL, &job, "here:7") ==
            0);
    joiner_init(&joiner, job);
    text.len = 0;
    pirn_future_describe(&joiner.op.future, &text);
    EXPECT_STR_EQ("blocking job here:7", buf);
    pirn_future_drop(&joiner.op.future);
    pirn_job_unref(job);
    sem_post(&gate.open);
    test_home_finish(&home);
}

/* Goal: a plain thread joins, with and without a deadline that passes.
 * Method: an expired deadline first; then the gate opens. */
TEST(job_join_on_a_plain_thread_keeps_its_deadline)
{
    struct test_home home;
    struct gate gate;
    pirn_job *job;
    int outcome = 0;

    begin_at_gate(&home, &gate, &job);
    EXPECT_EQ(-ETIMEDOUT, pirn_job_join(job, PIRN_EXPIRED, &outcome));
    EXPECT_EQ(-ETIMEDOUT, pirn_job_join(job, pirn_after_ns(1), &outcome));
    sem_post(&gate.open);
    EXPECT_EQ(0, pirn_job_join(job, PIRN_NEVER, &outcome));
    EXPECT_EQ(4, outcome);
    EXPECT_EQ(0, pirn_job_join(job, PIRN_EXPIRED, &outcome));
    pirn_job_unref(job);
    test_home_finish(&home);
}

static int own_thread(void *arg)
{
    *(pthread_t *)arg = pthread_self();
    return 17;
}

/* Goal: outside any task there is nothing to hold up.
 * Method: the function runs on the calling thread, without any runtime. */
TEST(blocking_run_on_a_plain_thread_runs_right_there)
{
    pthread_t ran_on;

    EXPECT_EQ(17, pirn_blocking_run(own_thread, &ran_on));
    EXPECT(pthread_equal(ran_on, pthread_self()));
}

/* ---- On a real runtime ---- */

/* Run a fiber as a whole program. */
static void run_fiber(pirn_fiber_fn *fn, void *arg)
{
    EXPECT_EQ(0, run_on_one_thread(fn, arg));
}

static int run_one(void *arg)
{
    pthread_t ran_on;

    (void)arg;
    EXPECT_EQ(17, pirn_blocking_run(own_thread, &ran_on));
    EXPECT(!pthread_equal(ran_on, pthread_self()));
    return 0;
}

/* Goal: a fiber's blocking call runs elsewhere and gives its result.
 * Method: compare the threads. */
TEST(blocking_run_in_a_fiber_runs_on_another_thread)
{
    run_fiber(run_one, NULL);
}

/* A fiber that runs through the gate; what it saw. */
struct caller {
    struct gate gate;
    int rc;
    int next_rc;
    bool ended;
};

static int call_through_gate(void *arg)
{
    struct caller *caller = arg;

    caller->rc = pirn_blocking_run(pass_gate, &caller->gate);
    caller->next_rc = pirn_blocking_run(return_arg, NULL);
    caller->ended = true;
    return 0;
}

static int cancel_waiting_caller(void *arg)
{
    struct caller *caller = arg;
    pirn_task *task;
    int outcome;

    REQUIRE_OR_RETURN(pirn_go_with(call_through_gate, caller, NULL, &task) == 0,
                      -EIO);
    while (sem_trywait(&caller->gate.begun) != 0)
        EXPECT_EQ(0, pirn_yield());
    pirn_task_cancel(task);
    for (int i = 0; i < 10; i++)
        EXPECT_EQ(0, pirn_yield());
    EXPECT(!caller->ended);
    sem_post(&caller->gate.open);
    EXPECT_EQ(0, pirn_task_join(task, PIRN_NEVER, &outcome));
    pirn_task_unref(task);
    return 0;
}

/* Goal: cancelling the caller does not cut the call short, because the argument
 * may be on its stack; the next call answers the cancellation.
 * Method: cancel while the job stands at the gate, let others run, and see that
 * the caller still waits. */
TEST(blocking_run_is_not_cut_short_by_cancellation)
{
    struct caller caller = {.ended = false};

    gate_init(&caller.gate, 23);
    run_fiber(cancel_waiting_caller, &caller);
    EXPECT(caller.ended);
    EXPECT_EQ(23, caller.rc);
    EXPECT_EQ(-ECANCELED, caller.next_rc);
}

static int call_when_cancelled(void *arg)
{
    struct caller *caller = arg;

    caller->rc = pirn_blocking_run(pass_gate, &caller->gate);
    pirn_fiber_shield_begin();
    caller->next_rc = pirn_blocking_run(return_arg, &caller->gate.outcome);
    pirn_fiber_shield_end();
    return 0;
}

static int cancel_before_call(void *arg)
{
    pirn_task *task;
    int outcome;

    REQUIRE_OR_RETURN(pirn_go_with(call_when_cancelled, arg, NULL, &task) == 0,
                      -EIO);
    pirn_task_cancel(task);
    EXPECT_EQ(0, pirn_task_join(task, PIRN_NEVER, &outcome));
    pirn_task_unref(task);
    return 0;
}

/* Goal: a caller that was cancelled before is answered at once, and the
 * function has not run; under a shield it runs.
 * Method: cancel a fiber before its first run. */
TEST(blocking_run_when_cancelled_does_not_run)
{
    struct caller caller = {.ended = false};

    gate_init(&caller.gate, 6);
    run_fiber(cancel_before_call, &caller);
    EXPECT_EQ(-ECANCELED, caller.rc);
    EXPECT_EQ(0, count_of(&caller.gate.runs));
    EXPECT_EQ(6, caller.next_rc);
}

/* A future whose poll calls what must not be called there. */
struct nested {
    pirn_future future;
    pirn_job *job;
    int run_rc;
    int join_rc;
};

static enum pirn_poll nested_poll(pirn_future *self, pirn_cx *cx)
{
    struct nested *nested = PIRN_CONTAINER_OF(self, struct nested, future);
    int outcome;

    (void)cx;
    nested->run_rc = pirn_blocking_run(return_arg, NULL);
    nested->join_rc = pirn_job_join(nested->job, PIRN_EXPIRED, &outcome);
    return PIRN_READY;
}

static void nested_drop(pirn_future *self)
{
    (void)self;
}

static const pirn_future_ops nested_ops = {
    .poll = nested_poll,
    .drop = nested_drop,
};

static int poll_nested(void *arg)
{
    struct nested nested = {.future.ops = &nested_ops};
    int outcome;

    (void)arg;
    REQUIRE_OR_RETURN(
        pirn_spawn_blocking(return_arg, NULL, NULL, &nested.job) == 0, -EIO);
    EXPECT_EQ(0, pirn_await(&nested.future, PIRN_NEVER));
    EXPECT_EQ(-EDEADLK, nested.run_rc);
    EXPECT_EQ(-EDEADLK, nested.join_rc);
    EXPECT_EQ(0, pirn_job_join(nested.job, PIRN_NEVER, &outcome));
    pirn_job_unref(nested.job);
    return 0;
}

/* Goal: inside a poll nothing may wait, even for what is ready.
 * Method: a future whose poll tries both calls. */
TEST(blocking_calls_inside_a_poll_answer_edeadlk)
{
    run_fiber(poll_nested, NULL);
}

struct join_story {
    pirn_job *job;
    struct gate gate;
    int rc;
};

static int join_until_cancelled(void *arg)
{
    struct join_story *story = arg;
    int outcome;

    story->rc = pirn_job_join(story->job, PIRN_NEVER, &outcome);
    return 0;
}

static int cancel_a_joiner(void *arg)
{
    struct join_story *story = arg;
    pirn_task *task;
    int outcome = 0;

    REQUIRE_OR_RETURN(
        pirn_spawn_blocking(pass_gate, &story->gate, NULL, &story->job) == 0,
        -EIO);
    EXPECT_EQ(-ETIMEDOUT,
              pirn_job_join(story->job, pirn_after_ns(1), &outcome));
    REQUIRE_OR_RETURN(
        pirn_go_with(join_until_cancelled, story, NULL, &task) == 0, -EIO);
    EXPECT_EQ(0, pirn_yield());
    EXPECT_EQ(-EBUSY, pirn_job_join(story->job, PIRN_NEVER, &outcome));
    pirn_task_cancel(task);
    EXPECT_EQ(0, pirn_task_join(task, PIRN_NEVER, &outcome));
    pirn_task_unref(task);
    EXPECT_EQ(-ECANCELED, story->rc);

    sem_post(&story->gate.open);
    EXPECT_EQ(0, pirn_job_join(story->job, PIRN_NEVER, &outcome));
    EXPECT_EQ(9, outcome);
    pirn_job_unref(story->job);
    return 0;
}

/* Goal: a deadline and a cancellation end the wait, not the job.
 * Method: both, then join again. */
TEST(job_join_in_a_fiber_cut_short_loses_nothing)
{
    struct join_story story = {.rc = 0};

    gate_init(&story.gate, 9);
    run_fiber(cancel_a_joiner, &story);
}

static test_count done_by_jobs;

static int note_done(void *arg)
{
    (void)arg;
    count_up(&done_by_jobs);
    return 0;
}

/* A job that uses its runtime: it spawns a fiber and waits for it. */
static int spawn_from_job(void *arg)
{
    pirn_task *task;
    int outcome, rc;

    (void)arg;
    rc = pirn_go_with(note_done, NULL, NULL, &task);
    if (rc < 0)
        return rc;
    rc = pirn_task_join(task, PIRN_NEVER, &outcome);
    pirn_task_unref(task);
    return rc;
}

static int run_spawning_job(void *arg)
{
    (void)arg;
    EXPECT_EQ(0, pirn_blocking_run(spawn_from_job, NULL));
    return 0;
}

/* Goal: a job is a plain thread of its runtime: it may spawn and wait there.
 * Method: a fiber waits for a job that waits for a fiber. */
TEST(blocking_job_may_spawn_and_join_fibers)
{
    pirn__init(&done_by_jobs, 0);
    run_fiber(run_spawning_job, NULL);
    EXPECT_EQ(1, count_of(&done_by_jobs));
}

enum { CROWD = 300 };

static int run_in_crowd(void *arg)
{
    int rc = pirn_blocking_run(note_done, NULL);

    (void)arg;
    EXPECT_EQ(0, rc);
    return rc;
}

static int start_crowd(void *arg)
{
    (void)arg;
    for (int i = 0; i < CROWD; i++)
        EXPECT_EQ(0, pirn_go(run_in_crowd, NULL));
    while (count_of(&done_by_jobs) < CROWD)
        EXPECT_EQ(0, pirn_yield());
    return 0;
}

/* Goal: many fibers at once, each with its call.
 * Method: more of them than the pool has threads. */
TEST(blocking_run_serves_many_fibers)
{
    pirn__init(&done_by_jobs, 0);
    run_fiber(start_crowd, NULL);
    EXPECT_EQ(CROWD, count_of(&done_by_jobs));
}
