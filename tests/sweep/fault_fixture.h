/* SPDX-License-Identifier: MIT */
/* tests/sweep/fault_fixture.h - scenarios inside a runtime. */
#ifndef PIRN_TESTS_SWEEP_FAULT_FIXTURE_H
#define PIRN_TESTS_SWEEP_FAULT_FIXTURE_H

#include <pirn/runtime.h>
#include <pirn/time.h>

#include "engine/sweep.h"

enum { FAULT_PATIENCE_MS = 20 * 1000 };

/* A runtime, or NULL. */
static inline pirn_runtime *fault_runtime(uint32_t workers)
{
    const pirn_runtime_options options = {
        .alloc = sweep_alloc(), .workers = workers, .seed = 1};
    pirn_runtime *rt = SWEEP_JUNK;
    int rc = SWEPT(pirn_runtime_new(&options, &rt));

    EXPECT(rc == 0 || rt == NULL);
    return rt;
}

/* An end cannot fail for want of anything. */
static inline void fault_runtime_end(pirn_runtime *rt)
{
    pirn_report report;

    if (rt == NULL)
        return;
    EXPECT_EQ(0, pirn_runtime_shutdown(rt, pirn_after_ms(FAULT_PATIENCE_MS),
                                       &report));
    EXPECT(report.in_time);
    EXPECT_EQ(0, report.quarantined + report.aborted + report.still_running +
                     report.jobs_still_running);
    pirn_runtime_unref(rt);
}

/* Run fn(arg) as a fiber of a runtime of its own, to its end. */
static inline void fault_run(uint32_t workers, pirn_fiber_fn *fn, void *arg)
{
    pirn_runtime *rt = fault_runtime(workers);
    const pirn_spawn_options options = {.runtime = rt};
    pirn_task *task = SWEEP_JUNK;
    int outcome = -1;
    int rc;

    if (rt == NULL)
        return;
    rc = SWEPT(pirn_go_with(fn, arg, &options, &task));
    EXPECT(rc == 0 || task == NULL);
    if (rc == 0) {
        rc = SWEPT(pirn_task_join(task, PIRN_NEVER, &outcome));
        if (rc < 0) {
            sweep_hold();
            EXPECT_EQ(0, pirn_task_join(task, PIRN_NEVER, &outcome));
            sweep_go_on();
        }
        EXPECT_GE(outcome, 0);
    }
    fault_runtime_end(rt);
    pirn_task_unref(task);
}

#endif /* PIRN_TESTS_SWEEP_FAULT_FIXTURE_H */
