/* SPDX-License-Identifier: MIT */
/* src/fiber/run.c - a whole program in one call. */
#include <pirn/runtime.h>
#include <pirn/time.h>

#include <errno.h>

#include "task/await.h"

enum { RUN_SHUTDOWN_MS = 30 * 1000 };

/* Run the first fiber to its end on this thread. */
static int run_first(pirn_runtime *rt, pirn_fiber_fn *fn, void *arg)
{
    const pirn_spawn_options options = {.runtime = rt, .name = "main"};
    pirn_task *task;
    pirn_join_op join;
    /* A line of ours would tell the reader of a report nothing. */
    int rc = pirn_go_with_at(fn, arg, &options, &task, "pirn_run");

    if (rc < 0)
        return rc;
    pirn_join_init(&join, task);
    rc = pirn_block_on(rt, &join.future, PIRN_NEVER);
    if (rc == 0)
        rc = join.rc < 0 ? join.rc : join.outcome;
    pirn_task_unref(task);
    return rc;
}

int pirn_run_with(pirn_fiber_fn *fn, void *arg,
                  const pirn_runtime_options *options, pirn_report *report)
{
    static const pirn_runtime_options defaults = {
        .workers = PIRN_WORKERS_AUTO,
        .overflow_report = true,
    };
    pirn_runtime *rt;
    int late;
    int rc;

    if (report != NULL)
        *report = (pirn_report){0};
    if (fn == NULL)
        return -EINVAL;
    rc = pirn__may_suspend();
    if (rc < 0 || pirn_task_self().value != 0)
        return rc < 0 ? rc : -EDEADLK;
    rc = pirn_runtime_new(options != NULL ? options : &defaults, &rt);
    if (rc < 0)
        return rc;
    rc = run_first(rt, fn, arg);
    late = pirn_runtime_shutdown(rt, pirn_after_ms(RUN_SHUTDOWN_MS), report);
    pirn_runtime_unref(rt);
    /* A shutdown that was not in order does not turn success into failure: the
     * report and the failure hook say what happened. */
    (void)late;
    return rc;
}

int pirn_run(pirn_fiber_fn *fn, void *arg)
{
    return pirn_run_with(fn, arg, NULL, NULL);
}
