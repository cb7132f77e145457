/* SPDX-License-Identifier: MIT */
/* src/sys/environment.h - numbers and words that the process's environment
 * holds.
 */
#ifndef PIRN_SYS_ENVIRONMENT_H
#define PIRN_SYS_ENVIRONMENT_H

#include <pirn/base.h>

/* Read variable `name`, decimal digits, or hexadecimal ones after 0x: 1 and
 * *value when it holds a number from `low` to `high`; 0 when it is not set or
 * empty; -EINVAL when it holds anything else.  A program that runs with more rights than its
 * caller (setuid) has no variables. */
int pirn__environment_number(const char *name, uint64_t low, uint64_t high,
                             uint64_t *value);

/* The same for one of `count` words, of which *index becomes the number. */
int pirn__environment_word(const char *name, const char *const *words,
                           uint32_t count, uint32_t *index);

/* The variable as it is; NULL when it is not set or there are none. */
const char *pirn__environment_text(const char *name);

#endif /* PIRN_SYS_ENVIRONMENT_H */
