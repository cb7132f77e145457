/* SPDX-License-Identifier: MIT */
/* tools/pirn/options.c - numbers and switches on the command line. */
#include "options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Digits only: no sign, no blank, no overflow. */
static bool read_number(const char *text, uint64_t *out)
{
    uint64_t value = 0;

    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        uint64_t digit = (uint64_t)(unsigned char)*text - '0';

        if (digit > 9 || value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

bool option_number(const char *command, const char *option, const char *text,
                   uint64_t min, uint64_t max, uint64_t *out)
{
    uint64_t value;

    if (read_number(text, &value) && value >= min && value <= max) {
        *out = value;
        return true;
    }
    (void)fprintf(stderr,
                  "pirn %s: %s: '%s' is not a number from %" PRIu64
                  " to %" PRIu64 "\n",
                  command, option, text, min, max);
    return false;
}

bool option_switch(const char *command, const char *option, const char *text,
                   bool *out)
{
    *out = strcmp(text, "on") == 0;
    if (*out || strcmp(text, "off") == 0)
        return true;
    (void)fprintf(stderr, "pirn %s: %s: '%s' is neither on nor off\n", command,
                  option, text);
    return false;
}

bool option_workers(const char *command, const char *text, uint32_t *out)
{
    uint64_t value = PIRN_WORKERS_AUTO;

    if (strcmp(text, "auto") != 0 &&
        (!read_number(text, &value) || value < 1 || value > WORKERS_MAX)) {
        (void)fprintf(stderr,
                      "pirn %s: --workers: '%s' is neither auto nor a number "
                      "from 1 to %d\n",
                      command, text, WORKERS_MAX);
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

bool option_runtime(const char *command, const pirn_runtime_options *options)
{
    const char *field;

    if (pirn_runtime_check(options, &field) == 0)
        return true;
    (void)fprintf(stderr, "pirn %s: %s has a value that makes no sense\n",
                  command, field);
    return false;
}
