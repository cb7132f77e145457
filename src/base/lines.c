/* SPDX-License-Identifier: MIT */
/* src/base/lines.c - text that counts on when its buffer is full. */
#include "base/lines.h"

#include <stdarg.h>
#include <stdio.h>

void pirn__lines_add(struct pirn__lines *lines, const char *format, ...)
{
    size_t used = lines->len < lines->size ? lines->len : lines->size;
    va_list args;
    int added;

    va_start(args, format);
    added = vsnprintf(lines->size > used ? lines->buf + used : NULL,
                      lines->size - used, format, args);
    va_end(args);
    if (added > 0)
        lines->len += (size_t)added;
}
