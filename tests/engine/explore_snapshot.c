/* SPDX-License-Identifier: MIT */
/* tests/engine/explore_snapshot.c - every execution starts from the same
 * memory: the program's variables, those of the library included, are saved
 * once and put back before each one.  The explorer's own are left alone.
 */
#include <stdlib.h>

#include "engine/explore_internal.h"

enum { MAX_KEPT = 32 };

struct range {
    char *start;
    char *end;
};

/* Set by the linker: where initialised variables begin and all end. */
extern char __data_start[];
extern char _end[];

static struct range kept[MAX_KEPT]; /* in order, without overlap */
static int kept_count;
static char *saved; /* all that is not kept, in order */

void explore_snapshot_keep(void *start, size_t size)
{
    struct range range = {start, (char *)start + size};
    int i = kept_count++;

    if (kept_count > MAX_KEPT)
        abort();
    for (; i > 0 && kept[i - 1].start > range.start; i--)
        kept[i] = kept[i - 1];
    kept[i] = range;
}

/* Copy everything between the kept ranges to or from `saved`. */
static size_t for_each_gap(void (*copy)(char *variables, char *copy,
                                        size_t size))
{
    char *at = __data_start;
    size_t total = 0;

    for (int i = 0; i <= kept_count; i++) {
        char *end = i < kept_count ? kept[i].start : _end;

        if (end > at) {
            if (copy != NULL)
                copy(at, saved + total, (size_t)(end - at));
            total += (size_t)(end - at);
        }
        if (i < kept_count)
            at = kept[i].end;
    }
    return total;
}

static void save(char *variables, char *copy, size_t size)
{
    memcpy(copy, variables, size);
}

static void restore(char *variables, char *copy, size_t size)
{
    memcpy(variables, copy, size);
}

void explore_snapshot_take(void)
{
    if (saved == NULL) {
        explore_snapshot_keep(kept, sizeof kept);
        explore_snapshot_keep(&kept_count, sizeof kept_count);
        explore_snapshot_keep(&saved, sizeof saved);
        saved = malloc(for_each_gap(NULL));
        if (saved == NULL)
            abort();
    }
    for_each_gap(save);
}

void explore_snapshot_restore(void)
{
    for_each_gap(restore);
}
