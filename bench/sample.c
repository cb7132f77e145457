/* SPDX-License-Identifier: MIT */
/* bench/sample.c - see sample.h. */
#define _GNU_SOURCE
#include "sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pirn/base.h>

#include "plain.h"

uint64_t sample_now_ns(void)
{
    return plain_clock_ns(CLOCK_MONOTONIC);
}

uint64_t sample_cpu_ns(void)
{
    return plain_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void sample_print(const char *name, const char *unit, double value)
{
    plain_print(name, unit, value);
}

void sample_note(const char *name, const char *text)
{
    printf("{\"note\": \"%s\", \"text\": \"%s\"}\n", name, text);
    fflush(stdout);
}

void sample_require(int rc, const char *what)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "bench: %s: %s (%s)\n", what, pirn_err_name(rc),
            pirn_err_text(rc));
    exit(1);
}

bool sample_has_flag(int argc, char **argv, const char *word)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], word) == 0)
            return true;
    return false;
}

uint64_t sample_get_number(int argc, char **argv, const char *word,
                           uint64_t fallback)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], word) == 0)
            return strtoull(argv[i + 1], NULL, 10);
    return fallback;
}

static const char *only; /* or NULL */

void sample_choose(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--only") == 0)
            only = argv[i + 1];
}

bool sample_is_wanted(const char *name)
{
    return only == NULL || strcmp(only, name) == 0;
}
