/* SPDX-License-Identifier: MIT */
/* src/sys/environment.c - see environment.h. */
#define _GNU_SOURCE
#include "sys/environment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a digit is worth; 16 of anything else. */
static uint64_t digit_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return (uint64_t)(digit - '0');
    if (digit >= 'a' && digit <= 'f')
        return (uint64_t)(digit - 'a') + 10;
    return digit >= 'A' && digit <= 'F' ? (uint64_t)(digit - 'A') + 10 : 16;
}

/* Digits to the end, without a sign, a blank or an overflow. */
static bool parse_number(const char *text, uint64_t *value)
{
    bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const uint64_t base = is_hex ? 16 : 10;
    uint64_t sum = 0;

    text += is_hex ? 2 : 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        uint64_t digit = digit_value(*text);

        if (digit >= base || sum > (UINT64_MAX - digit) / base)
            return false;
        sum = sum * base + digit;
    }
    *value = sum;
    return true;
}

const char *pirn__environment_text(const char *name)
{
    return secure_getenv(name);
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

int pirn__environment_word(const char *name, const char *const *words,
                           uint32_t count, uint32_t *index)
{
    const char *text = secure_getenv(name);

    if (text == NULL || *text == '\0')
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(text, words[i]) == 0) {
            *index = i;
            return 1;
        }
    }
    return -EINVAL;
}
