/* SPDX-License-Identifier: MIT */
/* src/blocking/pool_test.c - threads of the pool, on a home without a
 * scheduler.  Order comes from gates that jobs stand at and from a replaced
 * table of system calls; nothing here waits for time to pass. */
#include "engine/blocking_fixture.h"

#include <errno.h>
#include <pthread.h>

enum { MANY = 100 };

static struct pirn__sys system_copy;

/* What a test does to the system; reset by begin(). */
static struct {
    test_count starts;       /* calls of thread_start */
    int fails_from;          /* the first call that fails; 0: none */
    int fails_until;         /* the last one, or 0: all from there */
    void (*in_start)(void);  /* called inside the next thread_start */
    test_count idle_is_over; /* waits with a deadline end at once */
    void (*in_idle)(void);   /* called inside the next such wait */
} world;

static int world_thread_start(const char *name, size_t stack_size,
                              void (*fn)(void *arg), void *arg)
{
    int call = count_up(&world.starts) + 1;
    void (*in_start)(void) = world.in_start;

    if (in_start != NULL) {
        world.in_start = NULL;
        in_start();
    }
    if (world.fails_from != 0 && call >= world.fails_from &&
        (world.fails_until == 0 || call <= world.fails_until))
        return -EAGAIN;
    return pirn__sys_linux.thread_start(name, stack_size, fn, arg);
}

static int world_futex_wait(uint32_t *word, uint32_t expected,
                            pirn_deadline deadline)
{
    void (*in_idle)(void) = world.in_idle;

    if (deadline.ns == PIRN_NEVER.ns || count_of(&world.idle_is_over) == 0)
        return pirn__sys_linux.futex_wait(word, expected, deadline);
    if (in_idle != NULL) {
        world.in_idle = NULL;
        in_idle();
    }
    return -ETIMEDOUT;
}

static void begin(struct test_home *home, uint32_t threads, uint32_t queue)
{
    memset(&world, 0, sizeof world);
    system_copy = pirn__sys_linux;
    system_copy.thread_start = world_thread_start;
    system_copy.futex_wait = world_futex_wait;
    pirn__sys = &system_copy;
    test_home_begin(home, threads, queue);
}

static void finish(struct test_home *home)
{
    test_home_finish(home);
    pirn__sys = &pirn__sys_linux;
}

static void wait_for_idlers(struct test_home *home, bool some)
{
    struct pirn__blocking_pool *pool = test_pool(home);
    bool found;

    /* Ends with the threads' progress; the engine watches the time. */
    do {
        sched_yield();
        pirn__lock(&pool->lock);
        found = !pirn__list_empty(&pool->idlers);
        pirn__unlock(&pool->lock);
    } while (found != some);
}

static int return_arg(void *arg)
{
    return arg == NULL ? 0 : *(int *)arg;
}

/* ---- Running ---- */

static int order[MANY];
static int order_length;

static int note_order(void *arg)
{
    order[order_length++] = *(int *)arg;
    return 0;
}

/* Goal: jobs start in the order in which they were given.
 * Method: one thread, held at a gate while many more queue behind. */
TEST(pool_of_one_thread_runs_jobs_in_order)
{
    struct test_home home;
    struct gate gate;
    pirn_job *last = NULL;
    int numbers[MANY];

    begin(&home, 1, MANY);
    gate_init(&gate, 0);
    order_length = 0;
    EXPECT_EQ(0, pirn_spawn_blocking(pass_gate, &gate, NULL, NULL));
    wait_for(&gate.begun);
    for (int i = 0; i < MANY; i++) {
        numbers[i] = i;
        REQUIRE(pirn_spawn_blocking(note_order, &numbers[i], NULL,
                                    i == MANY - 1 ? &last : NULL) == 0);
    }
    sem_post(&gate.open);
    EXPECT_EQ(0, join_and_unref(last));
    EXPECT_EQ(MANY, order_length);
    for (int i = 0; i < MANY; i++)
        EXPECT_EQ(i, order[i]);
    EXPECT_EQ(1, count_of(&world.starts));
    finish(&home);
}

static test_count in_job;
static test_count most_in_job;

static int count_neighbours(void *arg)
{
    int now = count_up(&in_job) + 1;

    if (arg != NULL)
        pass_gate(arg);
    /* A few tries are enough for a test: the value only grows. */
    while (now > count_of(&most_in_job))
        count_up(&most_in_job);
    count_down(&in_job);
    return 0;
}

/* Goal: as many threads as there are jobs, but never more than the limit.
 * Method: three jobs stand at a gate at the same time; twenty more, given
 * meanwhile, start no thread and never run beside more than two others. */
TEST(pool_starts_threads_up_to_its_limit)
{
    enum { THREADS = 3, LATE = 20 };
    struct test_home home;
    struct gate gate;
    pirn_job *jobs[THREADS + LATE];

    begin(&home, THREADS, LATE);
    gate_init(&gate, 0);
    for (int i = 0; i < THREADS; i++)
        REQUIRE(pirn_spawn_blocking(count_neighbours, &gate, NULL, &jobs[i]) ==
                0);
    for (int i = 0; i < THREADS; i++)
        wait_for(&gate.begun);
    for (int i = THREADS; i < THREADS + LATE; i++)
        REQUIRE(pirn_spawn_blocking(count_neighbours, NULL, NULL, &jobs[i]) ==
                0);
    for (int i = 0; i < THREADS; i++)
        sem_post(&gate.open);
    for (int i = 0; i < THREADS + LATE; i++)
        EXPECT_EQ(0, join_and_unref(jobs[i]));
    EXPECT_EQ(THREADS, count_of(&world.starts));
    EXPECT_LE(count_of(&most_in_job), THREADS);
    finish(&home);
}

/* Goal: an idle thread takes the next job.
 * Method: jobs one after the other, each given when the thread idles; only the
 * first starts a thread. */
TEST(pool_gives_a_job_to_an_idle_thread)
{
    struct test_home home;
    pirn_job *job;
    int value = 12;

    begin(&home, 8, 8);
    for (int i = 0; i < MANY; i++) {
        REQUIRE(pirn_spawn_blocking(return_arg, &value, NULL, &job) == 0);
        EXPECT_EQ(12, join_and_unref(job));
        wait_for_idlers(&home, true);
    }
    EXPECT_EQ(1, count_of(&world.starts));
    finish(&home);
}

/* Goal: a full queue refuses a job and leaves its argument to the caller; the
 * jobs that run do not count.
 * Method: one thread, which was idle before, stands at a gate; the queue holds
 * two. */
TEST(pool_with_full_queue_answers_eagain)
{
    struct test_home home;
    struct gate gate;
    pirn_job *job = NULL, *queued = NULL;

    begin(&home, 1, 2);
    gate_init(&gate, 0);
    EXPECT_EQ(0, pirn_spawn_blocking(return_arg, NULL, NULL, &job));
    EXPECT_EQ(0, join_and_unref(job));
    wait_for_idlers(&home, true);
    EXPECT_EQ(0, pirn_spawn_blocking(pass_gate, &gate, NULL, NULL));
    wait_for(&gate.begun);
    EXPECT_EQ(0, pirn_spawn_blocking(return_arg, NULL, NULL, NULL));
    EXPECT_EQ(0, pirn_spawn_blocking(return_arg, NULL, NULL, &queued));
    job = queued;
    EXPECT_EQ(-EAGAIN, pirn_spawn_blocking(pass_gate, &gate, NULL, &job));
    EXPECT_PTR_EQ(NULL, job);
    EXPECT_EQ(-EAGAIN, pirn_spawn_blocking(pass_gate, &gate, NULL, NULL));

    EXPECT_EQ(0, pirn_job_cancel(queued));
    pirn_job_unref(queued);
    EXPECT_EQ(0, pirn_spawn_blocking(return_arg, NULL, NULL, &queued));
    sem_post(&gate.open);
    EXPECT_EQ(0, join_and_unref(queued));
    EXPECT_EQ(1, count_of(&gate.runs));
    finish(&home);
}

static int look_around(void *arg)
{
    *(pirn_runtime **)arg = pirn_runtime_current();
    return 0;
}

/* Goal: a job may use its runtime as the current one.
 * Method: look from inside a job. */
TEST(pool_job_sees_its_runtime_as_the_current_one)
{
    struct test_home home;
    pirn_runtime *seen = NULL;
    pirn_job *job;

    begin(&home, 1, 4);
    EXPECT_EQ(0, pirn_spawn_blocking(look_around, &seen, NULL, &job));
    EXPECT_EQ(0, join_and_unref(job));
    EXPECT_PTR_EQ(home.home.runtime, seen);
    finish(&home);
}

/* Goal: nonsense and dead ends have their own codes.
 * Method: each of them; *out is NULL each time. */
TEST(pool_refuses_what_cannot_be)
{
    struct test_home home;
    pirn_job *job = (pirn_job *)(void *)&home;

    begin(&home, 1, 4);
    EXPECT_EQ(-EINVAL, pirn_spawn_blocking(NULL, NULL, NULL, &job));
    EXPECT_PTR_EQ(NULL, job);
    EXPECT_EQ(-EINVAL, pirn_blocking_run(NULL, NULL));

    (void)pirn_runtime_enter(NULL);
    job = (pirn_job *)(void *)&home;
    EXPECT_EQ(PIRN_ENORUNTIME,
              pirn_spawn_blocking(return_arg, NULL, NULL, &job));
    EXPECT_PTR_EQ(NULL, job);
    (void)pirn_runtime_enter(home.home.runtime);

    home.home.fork_generation++;
    EXPECT_EQ(PIRN_EFORKED, pirn_spawn_blocking(return_arg, NULL, NULL, NULL));
    home.home.fork_generation--;

    const pirn_spawn_options options = {.runtime = home.home.runtime};

    (void)pirn_runtime_enter(NULL);
    EXPECT_EQ(0, pirn_spawn_blocking(return_arg, NULL, &options, &job));
    EXPECT_EQ(0, join_and_unref(job));
    finish(&home);
}

/* Goal: memory that runs out is an error and leaves nothing behind.
 * Method: fail the first allocation, then the second, and so on until a job
 * could be queued. */
TEST(pool_without_memory_answers_enomem)
{
    int failed = 0;

    for (int rc = -ENOMEM; rc == -ENOMEM; failed++) {
        struct test_home home;
        pirn_job *job = NULL;

        begin(&home, 1, 4);
        pirn__init(&home.fails_in, failed);
        rc = pirn_spawn_blocking(return_arg, NULL, NULL, &job);
        if (rc < 0)
            EXPECT_PTR_EQ(NULL, job);
        else
            EXPECT_EQ(0, join_and_unref(job));
        EXPECT(rc == 0 || rc == -ENOMEM);
        finish(&home);
    }
    EXPECT_EQ(3, failed); /* the pool and the job, then success */
}

/* ---- Threads that cannot be started ---- */

static int count_run(void *arg)
{
    count_up(arg);
    return 0;
}

/* Give many jobs; each that was accepted must run. */
static void give_many(int *accepted_total, test_count *runs)
{
    pirn_job *jobs[MANY];
    int accepted = 0;

    for (int i = 0; i < MANY; i++) {
        int rc = pirn_spawn_blocking(count_run, runs, NULL, &jobs[accepted]);

        EXPECT(rc == 0 || rc == -EAGAIN);
        if (rc == 0)
            accepted++;
        else
            EXPECT_PTR_EQ(NULL, jobs[accepted]);
    }
    for (int i = 0; i < accepted; i++)
        EXPECT_EQ(0, join_and_unref(jobs[i]));
    *accepted_total += accepted;
}

/* Goal: a job that was accepted runs, whichever thread could not be started.
 * Method: the k-th start and all later ones fail, for several k; 100 jobs each
 * run or were refused, and with k = 1 all were refused. */
TEST(pool_whose_threads_stop_starting_runs_or_refuses_each_job)
{
    for (int k = 1; k <= 5; k++) {
        struct test_home home;
        test_count runs = {0};
        int accepted = 0;

        begin(&home, 64, MANY);
        world.fails_from = k;
        give_many(&accepted, &runs);
        EXPECT_EQ(accepted, count_of(&runs));
        EXPECT_EQ(k == 1 ? 0 : MANY, accepted);
        finish(&home);
    }
}

struct submitter {
    pthread_t thread;
    pirn_runtime *runtime;
    test_count *runs;
    int accepted;
};

static void *submit_many(void *arg)
{
    struct submitter *submitter = arg;

    (void)pirn_runtime_enter(submitter->runtime);
    give_many(&submitter->accepted, submitter->runs);
    return NULL;
}

/* Goal: the same while several threads give jobs and threads end as soon as
 * they have nothing to do, so that there is often no live thread.
 * Method: the idle time is over at once, the first starts fail, the limit is
 * one; each accepted job runs, or a join below would hang. */
TEST(pool_under_racing_submitters_runs_or_refuses_each_job)
{
    enum { SUBMITTERS = 3, FAILING = 20 };
    struct submitter submitters[SUBMITTERS];
    struct test_home home;
    test_count runs = {0};
    int accepted = 0;

    begin(&home, 1, MANY * SUBMITTERS);
    world.fails_from = 1;
    world.fails_until = FAILING;
    count_up(&world.idle_is_over);
    for (int i = 0; i < SUBMITTERS; i++) {
        submitters[i] = (struct submitter){
            .runtime = home.home.runtime,
            .runs = &runs,
        };
        REQUIRE(pthread_create(&submitters[i].thread, NULL, submit_many,
                               &submitters[i]) == 0);
    }
    for (int i = 0; i < SUBMITTERS; i++) {
        pthread_join(submitters[i].thread, NULL);
        accepted += submitters[i].accepted;
    }
    EXPECT_EQ(accepted, count_of(&runs));
    EXPECT_LE(MANY * SUBMITTERS - FAILING, accepted);
    finish(&home);
}

/* What is submitted inside a replaced system call. */
static pirn_runtime *nested_runtime;
static test_count nested_runs;
static int nested_rc;
static pirn_job *nested_job;

static void submit_nested(void)
{
    const pirn_spawn_options options = {.runtime = nested_runtime};

    nested_rc =
        pirn_spawn_blocking(count_run, &nested_runs, &options, &nested_job);
}

static void begin_nested(struct test_home *home)
{
    begin(home, 1, 8);
    nested_runtime = home->home.runtime;
    pirn__init(&nested_runs, 0);
}

/* Goal: nobody leans on a thread that is only being started.
 * Method: the limit is one; while the first submitter's thread start is under
 * way a second submits.  Both starts fail: both are refused. */
TEST(pool_second_job_during_a_failing_start_is_refused_too)
{
    struct test_home home;
    test_count runs = {0};
    pirn_job *job;

    begin_nested(&home);
    world.fails_from = 1;
    world.in_start = submit_nested;
    EXPECT_EQ(-EAGAIN, pirn_spawn_blocking(count_run, &runs, NULL, &job));
    EXPECT_EQ(-EAGAIN, nested_rc);
    EXPECT_PTR_EQ(NULL, nested_job);
    EXPECT_EQ(2, count_of(&world.starts));
    finish(&home);
    EXPECT_EQ(0, count_of(&runs));
    EXPECT_EQ(0, count_of(&nested_runs));
}

/* Goal: two who started a thread at the same time do not break the limit.
 * Method: as above, but both starts work; the second to arrive leaves, and both
 * jobs run. */
TEST(pool_thread_beyond_the_limit_leaves_again)
{
    struct test_home home;
    struct gate gate;
    pirn_job *job;

    begin_nested(&home);
    gate_init(&gate, 0);
    world.in_start = submit_nested;
    EXPECT_EQ(0, pirn_spawn_blocking(pass_gate, &gate, NULL, &job));
    EXPECT_EQ(0, nested_rc);
    wait_for(&gate.begun);
    wait_until_zero(&test_pool(&home)->starting, &test_pool(&home)->lock);
    pirn__lock(&test_pool(&home)->lock);
    EXPECT_EQ(1, test_pool(&home)->alive);
    pirn__unlock(&test_pool(&home)->lock);
    sem_post(&gate.open);
    EXPECT_EQ(0, join_and_unref(job));
    EXPECT_EQ(0, join_and_unref(nested_job));
    finish(&home);
}

/* ---- Threads that end ---- */

/* Goal: a thread ends when its idle time is over, and the next job starts one.
 * Method: the replaced wait says that the time is over. */
TEST(pool_thread_ends_after_its_idle_time)
{
    struct test_home home;
    pirn_job *job;

    begin(&home, 4, 4);
    count_up(&world.idle_is_over);
    for (int i = 1; i <= 3; i++) {
        REQUIRE(pirn_spawn_blocking(return_arg, NULL, NULL, &job) == 0);
        EXPECT_EQ(0, join_and_unref(job));
        wait_until_zero(&test_pool(&home)->alive, &test_pool(&home)->lock);
        EXPECT_EQ(i, count_of(&world.starts));
    }
    finish(&home);
}

/* Goal: a job that comes in the moment in which the idle time is over is run.
 * Method: the replaced wait submits it and then says that the time is over; the
 * pool believed that the thread still waits. */
TEST(pool_job_at_the_end_of_the_idle_time_is_not_lost)
{
    struct test_home home;
    pirn_job *job;

    begin_nested(&home);
    count_up(&world.idle_is_over);
    world.in_idle = submit_nested;
    REQUIRE(pirn_spawn_blocking(return_arg, NULL, NULL, &job) == 0);
    EXPECT_EQ(0, join_and_unref(job));
    /* Ends when the nested job runs; the engine watches the time. */
    while (count_of(&nested_runs) == 0)
        sched_yield();
    EXPECT_EQ(0, nested_rc);
    EXPECT_EQ(0, join_and_unref(nested_job));
    EXPECT_EQ(1, count_of(&world.starts));
    finish(&home);
}

/* ---- Failures ---- */

/* Goal: a negative outcome is joined or reported, and reported once.
 * Method: every way to lose a handle, before and after the end. */
TEST(pool_reports_a_failure_that_nobody_joined)
{
    const pirn_spawn_options named = {.name = "loader"};
    struct test_home home;
    struct gate gate;
    pirn_job *job, *second;
    int bad = -EIO, good = 3;

    begin(&home, 1, 8);
    /* Joined: not reported, also with a second handle that nobody joined. */
    REQUIRE(pirn_spawn_blocking(return_arg, &bad, NULL, &job) == 0);
    second = pirn_job_ref(job);
    EXPECT_EQ(-EIO, join_and_unref(job));
    pirn_job_unref(second);
    EXPECT_EQ(0, count_of(&home.failures));

    /* The handle goes after the end. */
    REQUIRE(pirn_spawn_blocking_at(return_arg, &bad, &named, &job, "here:1") ==
            0);
    wait_for_idlers(&home, true);
    EXPECT_EQ(0, count_of(&home.failures));
    pirn_job_unref(job);
    EXPECT_EQ(1, count_of(&home.failures));
    EXPECT_EQ(-EIO, home.failure.outcome);
    EXPECT_STR_EQ("here:1", home.failure.site);
    EXPECT_STR_EQ("", home.failure.message);
    EXPECT_EQ(0, home.failure.id.value);

    /* The handle goes before the end. */
    gate_init(&gate, -ENOENT);
    REQUIRE(pirn_spawn_blocking(pass_gate, &gate, NULL, &job) == 0);
    pirn_job_unref(job);
    EXPECT_EQ(1, count_of(&home.failures));
    sem_post(&gate.open);
    wait_for_idlers(&home, true);
    EXPECT_EQ(2, count_of(&home.failures));
    EXPECT_EQ(-ENOENT, home.failure.outcome);
    EXPECT_PTR_EQ(NULL, home.failure.name);

    /* There never was a handle; a success is none of the hook's business. */
    REQUIRE(pirn_spawn_blocking(return_arg, &bad, NULL, NULL) == 0);
    REQUIRE(pirn_spawn_blocking(return_arg, &good, NULL, &job) == 0);
    EXPECT_EQ(3, join_and_unref(job));
    EXPECT_EQ(3, count_of(&home.failures));
    finish(&home);
    EXPECT_EQ(3, count_of(&home.failures));
}

/* Goal: to have been stopped is no failure.
 * Method: jobs that end with the two codes for it, cancelled and refused ones
 * included, none of them joined. */
TEST(pool_reports_no_cancellation)
{
    struct test_home home;
    struct gate gate;
    pirn_job *job;
    int cancelled = -ECANCELED, shut = PIRN_ESHUTDOWN;

    begin(&home, 1, 8);
    gate_init(&gate, 0);
    REQUIRE(pirn_spawn_blocking(return_arg, &cancelled, NULL, NULL) == 0);
    REQUIRE(pirn_spawn_blocking(return_arg, &shut, NULL, NULL) == 0);
    REQUIRE(pirn_spawn_blocking(pass_gate, &gate, NULL, NULL) == 0);
    REQUIRE(pirn_spawn_blocking(return_arg, NULL, NULL, &job) == 0);
    EXPECT_EQ(0, pirn_job_cancel(job));
    pirn_job_unref(job);
    REQUIRE(pirn_spawn_blocking(return_arg, NULL, NULL, NULL) == 0);
    wait_for(&gate.begun);
    test_home_close(&home);
    sem_post(&gate.open);
    finish(&home);
    EXPECT_EQ(0, count_of(&home.failures));
}

/* ---- Shutdown ---- */

/* Goal: shutdown refuses what has not started, waits for what runs, and is told
 * when that has ended.
 * Method: one job at a gate, two behind it; close, look, open the gate. */
TEST(pool_closed_refuses_queued_jobs_and_waits_for_running_ones)
{
    struct test_home home;
    struct gate gate;
    pirn_job *running, *queued, *refused;
    pirn_report report;

    begin(&home, 1, 8);
    gate_init(&gate, 5);
    REQUIRE(pirn_spawn_blocking(pass_gate, &gate, NULL, &running) == 0);
    wait_for(&gate.begun);
    REQUIRE(pirn_spawn_blocking(pass_gate, &gate, NULL, &queued) == 0);
    REQUIRE(pirn_spawn_blocking(pass_gate, &gate, NULL, NULL) == 0);

    test_home_close(&home);
    EXPECT_EQ(PIRN_ESHUTDOWN, join_and_unref(queued));
    EXPECT_EQ(1, test_home_busy(&home));
    EXPECT_EQ(0, count_of(&home.wakes));
    refused = running;
    EXPECT_EQ(PIRN_ESHUTDOWN,
              pirn_spawn_blocking(pass_gate, &gate, NULL, &refused));
    EXPECT_PTR_EQ(NULL, refused);

    sem_post(&gate.open);
    EXPECT_EQ(5, join_and_unref(running));
    EXPECT_EQ(0, test_home_busy(&home));
    while (count_of(&home.wakes) == 0)
        sched_yield();
    report = test_home_report(&home);
    EXPECT_EQ(1, report.jobs_completed);
    EXPECT_EQ(2, report.jobs_refused);
    EXPECT_EQ(0, report.jobs_still_running);
    test_home_end(&home);
    test_home_expect_gone(&home);
    EXPECT_EQ(1, count_of(&home.wakes));
    EXPECT_EQ(1, count_of(&gate.runs));
    pirn__sys = &pirn__sys_linux;
}

/* Goal: a submission that has found the pool and then finds it closed is
 * refused as well.
 * Method: close the pool alone, not the home's door. */
TEST(pool_closed_after_it_was_found_refuses)
{
    struct test_home home;
    struct pirn__blocking_pool *pool;

    begin(&home, 1, 8);
    REQUIRE(pirn_spawn_blocking(return_arg, NULL, NULL, NULL) == 0);
    pool = test_pool(&home);
    pool->participant.ops->close(&pool->participant);
    EXPECT_EQ(PIRN_ESHUTDOWN,
              pirn_spawn_blocking(return_arg, NULL, NULL, NULL));
    finish(&home);
}

/* Goal: idle threads end with the pool instead of waiting their time out.
 * Method: four threads idle in the real wait; finish() hangs unless each ends.
 */
TEST(pool_closed_ends_idle_threads)
{
    enum { THREADS = 4 };
    struct test_home home;
    struct gate gate;
    pirn_job *jobs[THREADS];

    begin(&home, THREADS, 8);
    gate_init(&gate, 0);
    for (int i = 0; i < THREADS; i++)
        REQUIRE(pirn_spawn_blocking(pass_gate, &gate, NULL, &jobs[i]) == 0);
    for (int i = 0; i < THREADS; i++)
        wait_for(&gate.begun);
    for (int i = 0; i < THREADS; i++)
        sem_post(&gate.open);
    for (int i = 0; i < THREADS; i++)
        EXPECT_EQ(0, join_and_unref(jobs[i]));
    finish(&home);
}

/* Goal: a job that does not end in time is left behind and harms nobody.
 * Method: end the pool and give the home up while a job stands at its gate;
 * then let it go.  Its handle still works, and all memory comes back. */
TEST(pool_ended_under_a_running_job_lives_until_it_returns)
{
    struct test_home home;
    struct gate gate;
    pirn_job *job;

    begin(&home, 1, 8);
    gate_init(&gate, -EIO);
    REQUIRE(pirn_spawn_blocking(pass_gate, &gate, NULL, &job) == 0);
    REQUIRE(pirn_spawn_blocking(pass_gate, &gate, NULL, NULL) == 0);
    wait_for(&gate.begun);
    test_home_close(&home);
    EXPECT_EQ(1, test_home_report(&home).jobs_still_running);
    test_home_end(&home);
    EXPECT_EQ(0, count_of(&home.freed));
    EXPECT_EQ(PIRN_ESHUTDOWN,
              pirn_spawn_blocking(return_arg, NULL, NULL, NULL));

    sem_post(&gate.open);
    EXPECT_EQ(-EIO, join_and_unref(job));
    test_home_expect_gone(&home);
    /* Who hears of failures may be gone by now. */
    EXPECT_EQ(0, count_of(&home.failures));
    pirn__sys = &pirn__sys_linux;
}

/* Goal: an orphan that fails after its runtime has ended is not reported.
 * Method: as above, without a handle. */
TEST(pool_orphan_that_fails_after_the_end_is_silent)
{
    struct test_home home;
    struct gate gate;

    begin(&home, 1, 8);
    gate_init(&gate, -EIO);
    REQUIRE(pirn_spawn_blocking(pass_gate, &gate, NULL, NULL) == 0);
    wait_for(&gate.begun);
    test_home_close(&home);
    test_home_end(&home);
    sem_post(&gate.open);
    test_home_expect_gone(&home);
    EXPECT_EQ(0, count_of(&home.failures));
    pirn__sys = &pirn__sys_linux;
}
