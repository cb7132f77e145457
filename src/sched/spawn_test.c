/* SPDX-License-Identifier: MIT */
/* src/sched/spawn_test.c - what spawn takes, refuses, and leaves behind. */
#include <pirn/async.h>

#include "sched/runtime_test.h"

static int count_up(void *arg)
{
    tally_up(arg);
    return 0;
}

/* A refused spawn leaves *out NULL. */
static int spawn_into(pirn_future *future, size_t size,
                      const pirn_spawn_options *options)
{
    pirn_task *task = (pirn_task *)(void *)&task;
    int rc = pirn_spawn(future, size, options, &task);

    EXPECT_EQ(rc == 0, task != NULL);
    pirn_task_unref(task);
    return rc;
}

static int go_into(pirn_fiber_fn *fn, const pirn_spawn_options *options)
{
    pirn_task *task = (pirn_task *)(void *)&task;
    int rc = pirn_go_with(fn, NULL, options, &task);

    EXPECT_EQ(rc == 0, task != NULL);
    pirn_task_unref(task);
    return rc;
}

/* Goal: nonsense gets -EINVAL, and no runtime PIRN_ENORUNTIME.
 * Method: each argument in turn. */
TEST(spawn_of_nonsense_is_refused)
{
    pirn_runtime *rt = runtime_new();
    pirn_spawn_options options = {.runtime = rt};
    tally drops = {0};
    struct probe probe = probe_of(step_never, NULL, &drops);
    pirn_future_ops ops = *probe.future.ops;
    pirn_future bare = {NULL};

    EXPECT_EQ(-EINVAL, spawn_into(NULL, sizeof probe, &options));
    EXPECT_EQ(-EINVAL, spawn_into(&bare, sizeof bare, &options));
    ops.poll = NULL;
    bare.ops = &ops;
    EXPECT_EQ(-EINVAL, spawn_into(&bare, sizeof bare, &options));
    EXPECT_EQ(-EINVAL, spawn_into(&probe.future, 0, &options));
    EXPECT_EQ(-EINVAL,
              spawn_into(&probe.future, sizeof(pirn_future) - 1, &options));
    EXPECT_EQ(-EINVAL, spawn_into(&probe.future, (16 << 20) + 1, &options));
    EXPECT_EQ(PIRN_ENORUNTIME, spawn_into(&probe.future, sizeof probe, NULL));

    EXPECT_EQ(-EINVAL, go_into(NULL, &options));
    options.stack_size_bytes = 16 * 1024 - 1;
    EXPECT_EQ(-EINVAL, go_into(count_up, &options));
    options.stack_size_bytes = ((size_t)1 << 30) + 1;
    EXPECT_EQ(-EINVAL, go_into(count_up, &options));
    EXPECT_EQ(PIRN_ENORUNTIME, go_into(count_up, NULL));

    /* Nothing happened to what was refused. */
    EXPECT_EQ(0, tally_of(&drops));
    EXPECT_EQ(0, probe.polls);
    EXPECT_EQ(0, runtime_end(rt).spawned);
}

/* A future with an awkward size and alignment. */
struct wide {
    pirn_future future;
    bool *seen_aligned;
    bool *intact;
    char filling[16 * 1024] __attribute__((aligned(16)));
};

static enum pirn_poll wide_poll(pirn_future *self, pirn_cx *cx)
{
    struct wide *wide = PIRN_CONTAINER_OF(self, struct wide, future);

    (void)cx;
    *wide->seen_aligned = (uintptr_t)wide % 16 == 0;
    *wide->intact =
        wide->filling[0] == 1 && wide->filling[sizeof wide->filling - 1] == 2;
    return PIRN_READY;
}

static void wide_drop(pirn_future *self)
{
    (void)self;
}

/* Goal: the struct is moved into the task with its alignment, and the caller's
 * copy is dead.
 * Method: spoil the copy before the first poll. */
TEST(spawn_moves_the_future)
{
    static const pirn_future_ops ops = {.poll = wide_poll, .drop = wide_drop};
    pirn_runtime *rt = runtime_new();
    bool aligned = false;
    bool intact = false;
    struct wide wide = {
        .future = {&ops}, .seen_aligned = &aligned, .intact = &intact};

    wide.filling[0] = 1;
    wide.filling[sizeof wide.filling - 1] = 2;
    EXPECT_EQ(0, pirn_spawn(&wide.future, sizeof wide,
                            &(pirn_spawn_options){.runtime = rt}, NULL));
    memset(&wide, 0xff, sizeof wide);
    turn(rt);
    EXPECT(aligned);
    EXPECT(intact);
    EXPECT_EQ(1, runtime_end(rt).completed);
}

/* Goal: the largest struct is taken.
 * Method: 16 MiB of it. */
TEST(spawn_takes_the_largest_future)
{
    pirn_runtime *rt = runtime_new();
    size_t size = 16 << 20;
    struct probe *probe = calloc(1, size);

    REQUIRE(probe != NULL);
    *probe = probe_of(step_ready, NULL, NULL);
    EXPECT_EQ(0, pirn_spawn(&probe->future, size,
                            &(pirn_spawn_options){.runtime = rt}, NULL));
    free(probe);
    turn(rt);
    EXPECT_EQ(1, runtime_end(rt).completed);
}

static enum pirn_poll step_look_at_self(struct probe *probe, pirn_cx *cx)
{
    (void)cx;
    EXPECT_PTR_EQ(probe->arg, pirn_task_context());
    EXPECT_NE(0, pirn_task_self().value);
    EXPECT_NE(NULL, pirn_runtime_current());
    EXPECT(!pirn_task_cancelled());
    return PIRN_READY;
}

/* Goal: name, site and context are what the spawn said.
 * Method: a name that is too long is cut at 31 bytes. */
TEST(spawn_remembers_name_site_and_context)
{
    pirn_runtime *rt = runtime_new();
    int context;
    const pirn_spawn_options options = {
        .runtime = rt,
        .name = "0123456789012345678901234567890123456789",
        .context = &context};
    struct probe probe = probe_of(step_look_at_self, &context, NULL);
    pirn_task *named;
    pirn_task *plain;

    EXPECT_EQ(0, pirn_spawn(&probe.future, sizeof probe, &options, &named));
    spawn_probe(rt, step_ready, NULL, &plain);
    EXPECT_STR_EQ("0123456789012345678901234567890", pirn_task_name(named));
    EXPECT_STR_EQ(NULL, pirn_task_name(plain));
    EXPECT(strstr(pirn_task_site(named), "spawn_test.c:") != NULL);
    EXPECT_NE(pirn_task_get_id(named).value, pirn_task_get_id(plain).value);
    EXPECT_EQ(0, pirn_task_self().value);
    EXPECT_PTR_EQ(NULL, pirn_task_context());
    turn(rt);
    pirn_task_unref(named);
    pirn_task_unref(plain);
    runtime_end(rt);
}

/* Goal: after shutdown spawn is refused and the caller keeps everything.
 * Method: both front ends, while a handle keeps the runtime's memory. */
TEST(spawn_after_shutdown_is_refused)
{
    pirn_runtime *rt = runtime_new();
    const pirn_spawn_options options = {.runtime = rt};
    tally drops = {0};
    struct probe probe = probe_of(step_never, NULL, &drops);

    EXPECT_EQ(0, pirn_runtime_shutdown(rt, PIRN_NEVER, NULL));
    EXPECT_EQ(PIRN_ESHUTDOWN,
              spawn_into(&probe.future, sizeof probe, &options));
    EXPECT_EQ(PIRN_ESHUTDOWN, go_into(count_up, &options));
    EXPECT_EQ(0, tally_of(&drops));
    runtime_end(rt);
}

struct flood {
    pirn_runtime *rt;
    size_t each;
    tally runs;
};

static enum pirn_poll step_count(struct probe *probe, pirn_cx *cx)
{
    (void)cx;
    tally_up(probe->arg);
    return PIRN_READY;
}

static void spawn_many(void *arg, size_t index)
{
    struct flood *flood = arg;

    for (size_t i = 0; i < flood->each; i++) {
        if ((i + index) % 8 == 0)
            go(flood->rt, count_up, &flood->runs);
        else
            spawn_probe(flood->rt, step_count, &flood->runs, NULL);
    }
}

static enum pirn_poll step_wait_for_runs(struct probe *probe, pirn_cx *cx)
{
    struct flood *flood = probe->arg;

    if (tally_of(&flood->runs) == 8 * flood->each)
        return PIRN_READY;
    if (pirn_coop_spend(cx))
        pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

/* Goal: eight threads may spawn at once; every task runs exactly once.
 * Method: both kinds of task, while this thread drives. */
TEST(spawn_from_eight_threads)
{
    struct flood flood = {.rt = runtime_new(),
                          .each = test_size(500, 10000, 300000)};
    struct probe probe = probe_of(step_wait_for_runs, &flood, NULL);
    struct crew crew;
    pirn_report report;

    crew_start(&crew, 8, spawn_many, &flood);
    EXPECT_EQ(0, pirn_block_on(flood.rt, &probe.future, PIRN_NEVER));
    crew_join(&crew);
    report = runtime_end(flood.rt);
    EXPECT_EQ(8 * flood.each, report.spawned);
    EXPECT_EQ(8 * flood.each, report.completed);
}

struct refusal {
    pirn_runtime *rt;
    tally admitted;
    tally refused;
};

static void spawn_until_refused(void *arg, size_t index)
{
    struct refusal *refusal = arg;
    const pirn_spawn_options options = {.runtime = refusal->rt};
    int rc = 0;

    while (rc == 0) {
        struct probe probe = probe_of(step_ready, NULL, NULL);

        rc = index % 2 == 0
                 ? pirn_spawn(&probe.future, sizeof probe, &options, NULL)
                 : pirn_go_with(count_up, &refusal->admitted, &options, NULL);
        if (rc == 0 && index % 2 == 0)
            tally_up(&refusal->admitted);
    }
    EXPECT_EQ(PIRN_ESHUTDOWN, rc);
    tally_up(&refusal->refused);
}

/* Goal: a spawn that meets a shutdown is either admitted, and then runs and is
 * counted, or refused with PIRN_ESHUTDOWN: nothing in between.
 * Method: threads spawn without pause until they are refused. */
TEST(spawn_against_shutdown_is_admitted_or_refused)
{
    size_t rounds = test_size(5, 30, 1000);

    for (size_t i = 0; i < rounds; i++) {
        struct refusal refusal = {.rt = runtime_new()};
        struct crew crew;
        pirn_report report;

        crew_start(&crew, 4, spawn_until_refused, &refusal);
        /* They spawn without end, so a turn needs one. */
        while (tally_of(&refusal.admitted) < 10)
            EXPECT_GE(pirn_runtime_turn(refusal.rt, PIRN_EXPIRED), 0);
        EXPECT_EQ(0, pirn_runtime_shutdown(refusal.rt, PIRN_NEVER, &report));
        crew_join(&crew);
        EXPECT_EQ(report.spawned, report.completed + report.cancelled);
        EXPECT_EQ(0, report.aborted);
        pirn_runtime_unref(refusal.rt);
    }
}
