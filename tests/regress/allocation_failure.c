/* SPDX-License-Identifier: MIT */
/* tests/regress/allocation_failure.c - every allocation of a runtime may fail.
 *
 * Each sweep fails the first request for memory, then the second, and so on
 * until nothing fails any more; once only that one, once all from there on.
 * After each round the call that failed has left its arguments alone, and at
 * the end of the runtime every piece is back.
 */
#include <pirn/blocking.h>
#include <pirn/io.h>

#include "sched/runtime_test.h"

struct plan {
    uint64_t kth;
    bool onwards;
};

static void begin_failing(struct meter *meter, const struct plan *plan)
{
    meter_fail(meter, plan->kth, plan->onwards);
}

/* True if a request was refused meanwhile. */
static bool end_failing(struct meter *meter)
{
    bool failed = meter_has_failed(meter);

    meter->fails_at = 0;
    return failed;
}

/* One round; true if something was refused. */
typedef bool round_fn(struct meter *meter, const struct plan *plan);

static void sweep(round_fn *fn)
{
    for (int onwards = 0; onwards < 2; onwards++) {
        struct plan plan = {.onwards = onwards != 0};
        struct meter meter;

        do {
            plan.kth++;
            meter_init(&meter);
        } while (fn(&meter, &plan) && plan.kth < 1000);
        EXPECT_GE(plan.kth, 2);
        EXPECT_LE(plan.kth, 999);
    }
}

/* All is given back, and `done` has been called. */
static void end_runtime(pirn_runtime *rt, struct meter *meter)
{
    runtime_end(rt);
    EXPECT_EQ(0, tally_of(&meter->pieces));
    EXPECT_EQ(1, tally_of(&meter->dones));
}

static bool try_new(struct meter *meter, const struct plan *plan)
{
    const pirn_runtime_options options = {.alloc = &meter->alloc};
    pirn_runtime *rt = (pirn_runtime *)(void *)meter;
    bool failed;
    int rc;

    begin_failing(meter, plan);
    rc = pirn_runtime_new(&options, &rt);
    failed = end_failing(meter);
    EXPECT_EQ(failed ? -ENOMEM : 0, rc);
    if (rc == 0) {
        end_runtime(rt, meter);
        return failed;
    }
    EXPECT_PTR_EQ(NULL, rt);
    EXPECT_EQ(0, tally_of(&meter->pieces));
    EXPECT_EQ(0, tally_of(&meter->dones));
    return failed;
}

/* Goal: without memory no runtime is made and nothing stays behind.
 * Method: see above. */
TEST(allocation_failure_in_runtime_new)
{
    sweep(try_new);
}

static bool try_spawn(struct meter *meter, const struct plan *plan)
{
    pirn_runtime *rt = runtime_on(meter);
    const pirn_spawn_options options = {.runtime = rt, .name = "named"};
    tally drops = {0};
    struct probe probe = probe_of(step_ready, NULL, &drops);
    pirn_task *task = (pirn_task *)(void *)rt;
    bool failed;
    int rc;

    begin_failing(meter, plan);
    rc = pirn_spawn(&probe.future, sizeof probe, &options, &task);
    failed = end_failing(meter);
    EXPECT_EQ(failed ? -ENOMEM : 0, rc);
    EXPECT_EQ(rc == 0, task != NULL);
    /* The caller still has it, and may try again. */
    EXPECT_EQ(0, tally_of(&drops));
    if (rc < 0)
        EXPECT_EQ(0, pirn_spawn(&probe.future, sizeof probe, &options, &task));
    EXPECT_EQ(0, join_and_unref(task));
    end_runtime(rt, meter);
    return failed;
}

/* Goal: a spawn without memory leaves the future with its caller.
 * Method: see above; a name makes one allocation more. */
TEST(allocation_failure_in_spawn)
{
    sweep(try_spawn);
}

static int count_up(void *arg)
{
    tally_up(arg);
    return 0;
}

static bool try_go(struct meter *meter, const struct plan *plan)
{
    pirn_runtime *rt = runtime_on(meter);
    const pirn_spawn_options options = {.runtime = rt, .name = "named"};
    tally runs = {0};
    pirn_task *task = (pirn_task *)(void *)rt;
    bool failed;
    int rc;

    begin_failing(meter, plan);
    rc = pirn_go_with(count_up, &runs, &options, &task);
    failed = end_failing(meter);
    EXPECT_EQ(failed ? -ENOMEM : 0, rc);
    EXPECT_EQ(rc == 0, task != NULL);
    if (rc < 0) {
        turn(rt);
        EXPECT_EQ(0, tally_of(&runs));
        EXPECT_EQ(0, pirn_go_with(count_up, &runs, &options, &task));
    }
    turn(rt);
    EXPECT_EQ(0, join_and_unref(task));
    EXPECT_EQ(1, tally_of(&runs));
    end_runtime(rt, meter);
    return failed;
}

/* Goal: a fiber without memory does not run, neither then nor later.
 * Method: see above; the first one also makes the pool of stacks. */
TEST(allocation_failure_in_go)
{
    sweep(try_go);
}

/* What a program does, with every refusal taken as it comes. */
struct life {
    tally runs;
    tally spawned;
    tally failed;
};

static bool is_refusal(int rc)
{
    return rc == -ENOMEM || rc == -EAGAIN;
}

static int child(void *arg)
{
    struct life *life = arg;
    char *text = NULL;
    pirn_buf *buf;
    int rc = pirn_buf_new(100, &buf);

    if (rc == 0) {
        text = pirn_buf_data(buf);
        text[99] = 'x';
        pirn_buf_unref(buf);
    }
    EXPECT(rc == 0 || is_refusal(rc));
    EXPECT_EQ(0, pirn_yield());
    tally_up(&life->runs);
    return 0;
}

/* Spawn and join some children, each with a stack of its own size. */
static int parent(void *arg)
{
    struct life *life = arg;
    pirn_task *tasks[4];

    for (size_t i = 0; i < 4; i++) {
        const pirn_spawn_options options = {.stack_size_bytes = (size_t)16384
                                                                << i};
        int rc = pirn_go_with(child, life, &options, &tasks[i]);

        EXPECT(rc == 0 || is_refusal(rc));
        tally_up(rc == 0 ? &life->spawned : &life->failed);
    }
    for (size_t i = 0; i < 4; i++) {
        int outcome = -1;

        if (tasks[i] == NULL)
            continue;
        EXPECT_EQ(0, pirn_task_join(tasks[i], PIRN_NEVER, &outcome));
        EXPECT_EQ(0, outcome);
        pirn_task_unref(tasks[i]);
    }
    return 0;
}

static bool try_block_on(struct meter *meter, const struct plan *plan)
{
    pirn_runtime *rt = runtime_on(meter);
    struct life life = {.runs = {0}};
    pirn_task *task = go_task(rt, parent, &life);
    pirn_join_op join;
    bool failed;

    pirn_join_init(&join, task);
    begin_failing(meter, plan);
    EXPECT_EQ(0, pirn_block_on(rt, &join.future, PIRN_NEVER));
    failed = end_failing(meter);
    EXPECT_EQ(0, join.outcome);
    EXPECT_EQ(tally_of(&life.spawned), tally_of(&life.runs));
    EXPECT_EQ(4, tally_of(&life.spawned) + tally_of(&life.failed));
    pirn_task_unref(task);
    end_runtime(rt, meter);
    return failed;
}

/* Goal: what runs under block_on gets codes, loses nothing and leaks nothing.
 * Method: a fiber that spawns and joins others, whose stacks come from pools
 * that are only then made. */
TEST(allocation_failure_under_block_on)
{
    sweep(try_block_on);
}

static int jobs(void *arg)
{
    struct life *life = arg;
    pirn_job *job;
    int outcome;
    int rc = pirn_spawn_blocking(count_up, &life->runs, NULL, &job);

    EXPECT(rc == 0 || is_refusal(rc));
    if (rc == 0) {
        tally_up(&life->spawned);
        EXPECT_EQ(0, pirn_job_join(job, PIRN_NEVER, &outcome));
        pirn_job_unref(job);
    }
    rc = pirn_blocking_run(count_up, &life->runs);
    EXPECT(rc == 0 || is_refusal(rc));
    if (rc == 0)
        tally_up(&life->spawned);
    return 0;
}

static bool try_jobs(struct meter *meter, const struct plan *plan)
{
    pirn_runtime *rt = runtime_on(meter);
    struct life life = {.runs = {0}};
    pirn_task *task = go_task(rt, jobs, &life);
    bool failed;

    begin_failing(meter, plan);
    EXPECT_EQ(0, join_and_unref(task));
    failed = end_failing(meter);
    EXPECT_EQ(tally_of(&life.spawned), tally_of(&life.runs));
    runtime_end(rt);
    /* A pool thread gives the last piece back when it has ended. */
    wait_for_tally(&meter->dones, 1);
    EXPECT_EQ(0, tally_of(&meter->pieces));
    return failed;
}

/* Goal: the same for blocking jobs.
 * Method: one with a handle, one that is waited for. */
TEST(allocation_failure_in_blocking_jobs)
{
    sweep(try_jobs);
}
