/* SPDX-License-Identifier: MIT */
/* tests/confined/planted.c - a program that needs what tests/confined/check takes
 * away: more than one processor, many descriptors, locked memory. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { DESCRIPTORS = 100 };

static int needs_processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1;
}

static int needs_descriptors(void)
{
    for (int i = 0; i < DESCRIPTORS; i++) {
        if (dup(0) < 0)
            return 0;
    }
    return 1;
}

static int needs_locked_memory(void)
{
    static char page[1];

    return mlock(page, sizeof page) == 0;
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "";
    int content = 0;

    if (strcmp(kind, "one-cpu") == 0)
        content = needs_processors();
    else if (strcmp(kind, "descriptors") == 0)
        content = needs_descriptors();
    else if (strcmp(kind, "memlock") == 0)
        content = needs_locked_memory();
    printf("%s: %s\n", kind, content ? "enough" : "too little");
    return content ? 0 : 1;
}
