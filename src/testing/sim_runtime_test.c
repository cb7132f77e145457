/* SPDX-License-Identifier: MIT */
/* src/testing/sim_runtime_test.c - a simulated program's runtimes. */
#include "testing/sim_test.h"

#include <stdlib.h>

struct visit {
    int spawned, ended, starts, failures, taken;
    uint32_t workers;
};

static void visit_spawn(void *arg, const pirn_task_event *event)
{
    (void)event;
    ((struct visit *)arg)->spawned++;
}

static void visit_end(void *arg, const pirn_task_event *event)
{
    (void)event;
    ((struct visit *)arg)->ended++;
}

static void visit_thread(void *arg, uint32_t worker)
{
    (void)worker;
    ((struct visit *)arg)->starts++;
}

static void visit_failure(void *arg, const pirn_failure *failure)
{
    (void)failure;
    ((struct visit *)arg)->failures++;
}

static void *visit_take(void *ctx, size_t size, size_t align)
{
    ((struct visit *)ctx)->taken++;
    return aligned_alloc(align, (size + align - 1) & ~(align - 1));
}

static void visit_give(void *ctx, void *memory, size_t size, size_t align)
{
    (void)size;
    (void)align;
    ((struct visit *)ctx)->taken--;
    free(memory);
}

static int look_around(void *arg)
{
    struct visit *visit = arg;
    pirn_runtime_info info;
    int rc = pirn_go(return_error, NULL);

    pirn_runtime_get_info(pirn_runtime_current(), &info);
    visit->workers = info.workers;
    return rc < 0 ? rc : pirn_sleep(pirn_after_ms(10));
}

static int visit(void *arg)
{
    const pirn_alloc alloc = {
        .take = visit_take, .give = visit_give, .ctx = arg};
    const pirn_runtime_options options = {
        .alloc = &alloc,
        .workers = PIRN_WORKERS_AUTO,
        .on_task_spawn = visit_spawn,
        .on_task_end = visit_end,
        .on_thread_start = visit_thread,
        .hook_arg = arg,
        .on_failure = visit_failure,
        .on_failure_arg = arg,
    };

    return pirn_run_with(look_around, arg, &options, NULL);
}

/* Goal: a program's own allocator and hooks serve as ever, and workers that it
 * leaves to the system are the world's.  Method: count; ask the runtime. */
TEST(sim_runtime_keeps_what_the_program_wants)
{
    struct visit seen = {0};
    const pirn_sim_case scenario = {
        .program = visit,
        .arg = &seen,
        .options = {.workers = 3,
                    .refusals = PIRN_SIM_NONE,
                    .weather_ms = PIRN_SIM_NONE},
    };

    EXPECT_EQ(0, pirn_sim_run(&scenario, 3, NULL));
    EXPECT_EQ(3, seen.workers);
    EXPECT_EQ(3, seen.starts);
    EXPECT_EQ(2, seen.spawned);
    EXPECT_EQ(2, seen.ended);
    EXPECT_EQ(1, seen.failures);
    EXPECT_EQ(0, seen.taken);
}
