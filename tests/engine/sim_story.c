/* SPDX-License-Identifier: MIT */
/* tests/engine/sim_story.c - what stories are made of: waits that the checkers
 * see, and a runtime as the options want it.
 */
#include <errno.h>
#include <poll.h>

#include "engine/sim_internal.h"
#include "sched/runtime.h"

/* Waiting. */

int sim_await(pirn_future *future, pirn_deadline deadline)
{
    return pirn_sim_await(future, deadline);
}

int sim_sleep_ms(uint32_t ms)
{
    return pirn_sim_sleep(
        (pirn_deadline){sim_now_ns() + ms * UINT64_C(1000000)});
}

int sim_nap(void *ms)
{
    return sim_sleep_ms(*(uint32_t *)ms);
}

/* The runtime of a story. */

/* The home's table with one function replaced; of the running story. */
static struct pirn__home_ops dropping_ops;
static void (*submit_before)(struct pirn__home *home, struct pirn__task *task,
                             enum pirn__origin origin);

static void submit_or_drop(struct pirn__home *home, struct pirn__task *task,
                           enum pirn__origin origin)
{
    struct pirn_runtime *rt = pirn__runtime_of(home);

    if (pirn__runtime_phase(rt) != PIRN__PHASE_OPEN &&
        sim_planted(SIM_PLANT_DROPPED_TASK, 1))
        return;
    submit_before(home, task, origin);
}

static void plant_in(pirn_runtime *rt)
{
    if (sim_options()->plant != SIM_PLANT_DROPPED_TASK)
        return;
    dropping_ops = *rt->home.ops;
    submit_before = dropping_ops.submit;
    dropping_ops.submit = submit_or_drop;
    rt->home.ops = &dropping_ops;
}

struct sim_program sim_program_begin(void)
{
    const pirn_runtime_options options = {
        .workers = sim_options()->workers,
        .pool = sim_options()->computational != 0 ? PIRN_POOL_COMPUTATIONAL
                                                  : PIRN_POOL_STEALABLE,
        .blocking_threads = 3,
        .stack_size_bytes = 64 << 10,
    };
    struct sim_program program = {0};
    int rc = pirn_runtime_new(&options, &program.rt);

    /* Ends: the world gets calm. */
    while (rc == -EAGAIN || rc == -EMFILE) {
        rc = pirn_sleep((pirn_deadline){sim_now_ns() + 10000000});
        sim_check(rc == 0, "a plain thread can sleep");
        rc = pirn_runtime_new(&options, &program.rt);
    }
    sim_check(rc == 0, "a runtime can be made");
    program.by_turns =
        options.workers == 0 && options.pool == 0 && sim_chance(300);
    if (rc == 0)
        plant_in(program.rt);
    (void)pirn_runtime_enter(program.rt);
    return program;
}

/* A program with a loop of its own: it polls what the runtime waits for. */
static int drive_by_turns(pirn_runtime *rt, pirn_task *task)
{
    struct pollfd fd = {.fd = pirn_runtime_fd(rt), .events = POLLIN};
    int outcome;
    int rc = 0;

    /* Ends with the task. */
    while (!pirn_task_is_done(task)) {
        rc = pirn_runtime_turn(rt, pirn_after_us(1 + sim_below(1000)));
        if (rc < 0)
            return rc;
        if (!pirn_task_is_done(task))
            (void)pirn__sys->poll(&fd, 1, pirn_runtime_next_deadline(rt));
    }
    rc = pirn_task_join(task, PIRN_EXPIRED, &outcome);
    return rc < 0 ? rc : outcome;
}

static int block_on_join(pirn_runtime *rt, pirn_task *task)
{
    pirn_join_op join;
    int rc;

    pirn_join_init(&join, task);
    rc = pirn_block_on(rt, &join.future, PIRN_NEVER);
    if (rc == 0)
        rc = join.rc;
    return rc < 0 ? rc : join.outcome;
}

int sim_program_run(struct sim_program *program, pirn_fiber_fn *fn, void *arg)
{
    pirn_task *task;
    int rc = pirn_go_with(fn, arg, NULL, &task);

    if (rc < 0)
        return rc;
    rc = program->by_turns ? drive_by_turns(program->rt, task)
                           : block_on_join(program->rt, task);
    pirn_task_unref(task);
    return rc;
}

void sim_program_shutdown(struct sim_program *program, uint32_t ms)
{
    const pirn_report *report = &program->report;
    uint64_t ended;
    int rc;

    rc = pirn_runtime_shutdown(
        program->rt, (pirn_deadline){sim_now_ns() + ms * UINT64_C(1000000)},
        &program->report);
    sim_check(rc == 0 || rc == -ETIMEDOUT, "shutdown answers as documented");
    sim_check((rc == 0) == report->in_time, "the report says the same");
    ended = report->completed + report->failed + report->cancelled +
            report->aborted + report->still_running;
    sim_check(report->spawned == ended, "the report accounts for all tasks");
    if (!report->in_time)
        pirn__sim_see(PIRN_SIM_TASK_ABORTED, report->aborted);
}

void sim_program_end(struct sim_program *program)
{
    (void)pirn_runtime_enter(NULL);
    pirn_runtime_unref(program->rt);
    program->rt = NULL;
}
