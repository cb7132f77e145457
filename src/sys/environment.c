/* SPDX-License-Identifier: MIT */
/* src/sys/environment.c - see environment.h. */
#define _GNU_SOURCE
#include "sys/environment.h"

#include <errno.h>
#include <stdlib.h>

/* Digits to the end, without a sign, a blank or an overflow. */
static bool parse_number(const char *text, uint64_t *value)
{
    uint64_t sum = 0;

    for (; *text >= '0' && *text <= '9'; text++) {
        uint64_t digit = (uint64_t)(*text - '0');

        if (sum > (UINT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *value = sum;
    return *text == '\0';
}

int pirn__environment_number(const char *name, uint64_t low, uint64_t high,
                             uint64_t *value)
{
    const char *text = secure_getenv(name);
    uint64_t number;

    if (text == NULL || *text == '\0')
        return 0;
    if (!parse_number(text, &number) || number < low || number > high)
        return -EINVAL;
    *value = number;
    return 1;
}
