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
