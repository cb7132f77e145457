/* SPDX-License-Identifier: MIT */
/* tools/pirn/options.h - what the subcommands share in reading arguments. */
#ifndef PIRN_TOOLS_OPTIONS_H
#define PIRN_TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    EXIT_USAGE = 2 /* the arguments make no sense */
};

/* Read the number given to `option`.  Anything else than a decimal number of
 * min..max is explained on standard error. */
bool option_number(const char *command, const char *option, const char *text,
                   uint64_t min, uint64_t max, uint64_t *out);

/* The same for "on" and "off". */
bool option_switch(const char *command, const char *option, const char *text,
                   bool *out);

#endif /* PIRN_TOOLS_OPTIONS_H */
