/* SPDX-License-Identifier: MIT */
/* tests/engine/explore_report.c - places and events as text. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/explore_internal.h"

static const char *base_name(const char *file)
{
    const char *slash = strrchr(file, '/');

    return slash != NULL ? slash + 1 : file;
}

/* Ask the tool that comes with the linker; it is for people only, so without it
 * the offset in the program must do. */
static bool print_line_of(size_t offset)
{
    char command[128];
    char line[256];
    bool found = false;
    FILE *tool;

    snprintf(command, sizeof command,
             "addr2line -e /proc/%ld/exe %#zx 2>/dev/null", (long)getpid(),
             offset);
    tool = popen(command, "r");
    if (tool == NULL)
        return false;
    if (fgets(line, sizeof line, tool) != NULL && line[0] != '?') {
        line[strcspn(line, " \n")] = '\0';
        fprintf(stderr, "%s", base_name(line));
        found = true;
    }
    pclose(tool);
    return found;
}

void explore_print_place(struct explore_place place)
{
    Dl_info info;
    size_t offset;

    if (place.file != NULL) {
        fprintf(stderr, "%s:%d", base_name(place.file), place.line);
        return;
    }
    if (place.pc == NULL || dladdr(place.pc, &info) == 0) {
        fprintf(stderr, "?");
        return;
    }
    /* The address is that of the return: one back is in the call. */
    offset = (size_t)((const char *)place.pc - (char *)info.dli_fbase) - 1;
    if (!print_line_of(offset))
        fprintf(stderr, "+%#zx", offset);
}

void explore_print_event(const struct explore_event *event)
{
    fprintf(stderr, "  %u%*s %-13s %p = %#llx  ", event->thread,
            event->thread * 4, "", event->what, event->address,
            (unsigned long long)event->value);
    explore_print_place(event->place);
    fprintf(stderr, "\n");
}
