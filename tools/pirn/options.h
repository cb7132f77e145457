/* SPDX-License-Identifier: MIT */
/* tools/pirn/options.h - what the subcommands share in reading arguments. */
#ifndef PIRN_TOOLS_OPTIONS_H
#define PIRN_TOOLS_OPTIONS_H

#include <pirn/pirn.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    EXIT_USAGE = 2,   /* the arguments make no sense */
    WORKERS_MAX = 512 /* of pirn_runtime_options.workers */
};

/* Read the number given to `option`.  Anything else than a decimal number of
 * min..max is explained on standard error. */
bool option_number(const char *command, const char *option, const char *text,
                   uint64_t min, uint64_t max, uint64_t *out);

/* The same for "on" and "off". */
bool option_switch(const char *command, const char *option, const char *text,
                   bool *out);

/* The same for --workers: a number of 1..WORKERS_MAX, or "auto", which is
 * PIRN_WORKERS_AUTO.  0 is refused: it would be a runtime without workers. */
bool option_workers(const char *command, const char *text, uint32_t *out);

/* Whether a runtime can be made with these options in this environment; a
 * variable that is wrong is named on standard error. */
bool option_runtime(const char *command, const pirn_runtime_options *options);

#endif /* PIRN_TOOLS_OPTIONS_H */
