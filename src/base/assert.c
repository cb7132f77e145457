/* SPDX-License-Identifier: MIT */
/* src/base/assert.c - the last words of a process that must stop. */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

#include <pirn/future.h>

enum { MESSAGE_SIZE = 512 };

static pirn__who_fn *name_task;

void pirn__abort_set_who(pirn__who_fn *who)
{
    name_task = who;
}

void pirn__abort_at(const char *site, const char *kind, const char *rule)
{
    char buf[MESSAGE_SIZE] = "";
    pirn_text message = {.buf = buf, .size = sizeof buf, .len = 0};
    const char *who = name_task == NULL ? NULL : name_task();

    pirn_text_append(&message, "pirn: %s: %s: %s", site, kind, rule);
    if (who != NULL)
        pirn_text_append(&message, " (task %s)", who);
    /* One call each, so that two threads that die together stay legible; the
     * message may have been cut, the line end never is. */
    fputs(buf, stderr);
    fputs("\n", stderr);
    abort();
}
