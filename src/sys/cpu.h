/* SPDX-License-Identifier: MIT */
/* src/sys/cpu.h - how many processors this process may use.
 *
 * The smaller of what the affinity mask allows and what the quota of the
 * process's control groups (version 2 or 1, along its own path and all its
 * parents) pays for, rounded up; at least one.
 */
#ifndef PIRN_SYS_CPU_H
#define PIRN_SYS_CPU_H

#include <pirn/base.h>

struct pirn__cpu_count {
    uint32_t count;
    const char *source; /* "affinity", "cgroup v2", "cgroup v1" */
};

/* Reads the mask and the quota. */
struct pirn__cpu_count pirn__cpu_workers(void);

/* The quota below `root` ("" for the real system, or a fixture's folder) as
 * whole processors, rounded up; 0: none.  *source is set if there is one. */
uint32_t pirn__cpu_quota(const char *root, const char **source);

#endif /* PIRN_SYS_CPU_H */
