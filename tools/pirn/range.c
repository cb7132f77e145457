/* SPDX-License-Identifier: MIT */
/* tools/pirn/range.c - one byte range, or the whole.
 *
 * A client that asks for several ranges must be ready to get the whole file;
 * one that writes nonsense gets the same. */
#include "range.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* Read digits at *at and move it behind them; false if there are none.  What
 * does not fit saturates: it is larger than any file. */
static bool take_number(const char **at, uint64_t *out)
{
    const char *start = *at;
    uint64_t value = 0;

    for (; **at >= '0' && **at <= '9'; (*at)++) {
        uint64_t digit = (uint64_t)(**at - '0');

        if (value > (UINT64_MAX - digit) / 10)
            value = UINT64_MAX;
        else
            value = value * 10 + digit;
    }
    *out = value;
    return *at != start;
}

static const char *skip_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t')
        at++;
    return at;
}

static enum range_kind last_bytes(uint64_t count, uint64_t size,
                                  struct range *out)
{
    if (count == 0 || size == 0)
        return RANGE_UNSATISFIABLE;
    out->count = count < size ? count : size;
    out->offset = size - out->count;
    return RANGE_PART;
}

static enum range_kind first_to_last(uint64_t first, uint64_t last,
                                     uint64_t size, struct range *out)
{
    if (last < first)
        return RANGE_WHOLE;
    if (first >= size)
        return RANGE_UNSATISFIABLE;
    if (last > size - 1)
        last = size - 1;
    out->offset = first;
    out->count = last - first + 1;
    return RANGE_PART;
}

enum range_kind range_parse(const char *text, uint64_t size, struct range *out)
{
    static const char unit[] = "bytes=";
    uint64_t first = 0;
    uint64_t last = UINT64_MAX;

    if (strncasecmp(text, unit, strlen(unit)) != 0)
        return RANGE_WHOLE;
    const char *at = skip_blanks(text + strlen(unit));
    bool has_first = take_number(&at, &first);
    if (*at != '-')
        return RANGE_WHOLE;
    at++;
    bool has_last = take_number(&at, &last);
    if (!has_last)
        last = UINT64_MAX;
    if (*skip_blanks(at) != '\0' || (!has_first && !has_last))
        return RANGE_WHOLE;
    if (!has_first)
        return last_bytes(last, size, out);
    return first_to_last(first, last, size, out);
}
