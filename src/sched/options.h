/* SPDX-License-Identifier: MIT */
/* src/sched/options.h - from what the program asks for to what a runtime does.
 *
 * Each option is checked, then filled in where it was left at its default: from
 * its variable in the environment, else by the default itself.  A variable never
 * overrides what the program chose, and then is not even looked at.
 */
#ifndef PIRN_SCHED_OPTIONS_H
#define PIRN_SCHED_OPTIONS_H

#include <pirn/runtime.h>

/* A thread's name has 15 bytes, of which "-511" are the worker's. */
enum { PIRN__WORKER_NAME_SIZE = 12 };

struct pirn__options {
    /* No number is left at a 0 that stands for a default, but the size of the
     * workers' stacks, which the system knows, and the seed. */
    pirn_runtime_options set;
    const char *workers_source; /* see pirn_runtime_info */
};

/* `given` may be NULL.  0, or -EINVAL and in *field what is wrong; `field` may
 * be NULL. */
int pirn__options_resolve(const pirn_runtime_options *given,
                          struct pirn__options *out, const char **field);

#endif /* PIRN_SCHED_OPTIONS_H */
