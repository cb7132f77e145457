/* SPDX-License-Identifier: MIT */
/* tests/sweep/cancel_fixture.h - cancel sweeps whose scenarios must be sound. */
#ifndef PIRN_TESTS_SWEEP_CANCEL_FIXTURE_H
#define PIRN_TESTS_SWEEP_CANCEL_FIXTURE_H

#include <pirn/testing.h>
#include <pirn/time.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#include "engine/test.h"

static inline int cancel_count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    while (dir != NULL && readdir(dir) != NULL)
        count++;
    if (dir != NULL)
        closedir(dir);
    return count;
}

/* Sweep; no problem, no descriptor left, at least `least` points. */
#define CANCEL_SWEEP(begin, end, arg, least) \
    cancel_sweep(__FILE__, __LINE__, #begin, \
                 &(const pirn_cancel_case){begin, end, arg, 0, 0}, least)

static inline void cancel_sweep(const char *file, int line, const char *name,
                                const pirn_cancel_case *scenario, int least)
{
    pirn_cancel_report report;
    int fds, rc;

    /* A thread's first wait takes a descriptor that it keeps. */
    rc = pirn_cancel_sweep(scenario, &report);
    fds = cancel_count_fds();
    if (rc >= 0)
        rc = pirn_cancel_sweep(scenario, &report);
    fprintf(stderr, "cancel sweep %s: %u points\n", name, report.points);
    if (rc < least)
        test__fail(file, line, "cancel sweep %s: %d points: %s", name, rc,
                   report.problem);
    if (fds != cancel_count_fds())
        test__fail(file, line, "cancel sweep %s: %d descriptors are left", name,
                   cancel_count_fds() - fds);
}

#endif /* PIRN_TESTS_SWEEP_CANCEL_FIXTURE_H */
