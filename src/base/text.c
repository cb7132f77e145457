/* SPDX-License-Identifier: MIT */
/* src/base/text.c - bounded text under construction. */
#include <pirn/future.h>

#include <stdarg.h>
#include <stdio.h>

void pirn_text_append(pirn_text *text, const char *format, ...)
{
    va_list args;
    size_t room;
    int wanted;

    if (text->size == 0)
        return;
    room = text->size - text->len;
    va_start(args, format);
    wanted = vsnprintf(text->buf + text->len, room, format, args);
    va_end(args);
    if (wanted < 0)
        text->buf[text->len] = '\0';
    else if ((size_t)wanted < room)
        text->len += (size_t)wanted;
    else
        text->len = text->size - 1;
}
