/* SPDX-License-Identifier: MIT */
/* examples/million.c - a million sleeping tasks, and what they cost.
 *
 *     million [--count N] [--hold SECONDS] [--self-test]
 *
 * Each is a stackless task: a frame, a sleep and the runtime's own header.
 * Everything that the process needs for them is counted: the growth of its
 * resident memory and of its page tables, from before there was a runtime. */
#include <pirn/pirn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_COUNT = 1000000,
    SELF_TEST_COUNT = 20000,
    MEASURABLE_COUNT = 500000, /* with fewer the fixed costs show */
    BYTES_ALLOWED = 176,
    REPORT_SIZE = 4096
};

struct sleeper {
    pirn_frame frame; /* first */
    pirn_sleep_op sleep;
};

static enum pirn_poll sleeper_poll(pirn_future *self, pirn_cx *cx)
{
    struct sleeper *sleeper = PIRN_FRAME_OF(self, struct sleeper, frame);

    PIRN_ASYNC_BEGIN(&sleeper->frame, cx);
    pirn_sleep_init(&sleeper->sleep, pirn_after_ms(3600 * 1000));
    PIRN_AWAIT(&sleeper->sleep.future);
    PIRN_ASYNC_RETURN(pirn_sleep_rc(&sleeper->sleep));
    PIRN_ASYNC_END();
}

static const pirn_async_ops sleeper_ops = PIRN_ASYNC_OPS(sleeper_poll, NULL);

struct memory {
    double resident_kb;
    double page_tables_kb;
};

static struct memory read_memory(void)
{
    struct memory memory = {0, 0};
    FILE *stream = fopen("/proc/self/status", "re");
    char line[256];

    if (stream == NULL)
        return memory;
    while (fgets(line, sizeof line, stream) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0)
            memory.resident_kb = strtod(line + 6, NULL);
        else if (strncmp(line, "VmPTE:", 6) == 0)
            memory.page_tables_kb = strtod(line + 6, NULL);
    }
    (void)fclose(stream);
    return memory;
}

static int spawn_all(pirn_runtime *rt, long count)
{
    const pirn_spawn_options options = {.runtime = rt};

    for (long i = 0; i < count; i++) {
        struct sleeper sleeper;

        pirn_frame_init(&sleeper.frame, &sleeper_ops);
        int rc =
            pirn_spawn(&sleeper.frame.future, sizeof sleeper, &options, NULL);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Drive the runtime for that long; at least until all have gone to sleep. */
static int drive(pirn_runtime *rt, uint64_t ms)
{
    pirn_sleep_op sleep;

    pirn_sleep_init(&sleep, pirn_after_ms(ms));
    return pirn_block_on(rt, &sleep.future, PIRN_NEVER);
}

/* Start them, put them to sleep, and say what that took.  The bytes for each,
 * or a negative code. */
static int measure(pirn_runtime *rt, long count, struct memory before)
{
    uint64_t start_ns = pirn_now_ns();
    int rc = spawn_all(rt, count);

    if (rc < 0)
        return rc;
    rc = pirn_runtime_turn(rt, PIRN_NEVER);
    if (rc < 0)
        return rc;
    double seconds = (double)(pirn_now_ns() - start_ns) / 1e9;
    struct memory after = read_memory();
    pirn_runtime_info info;
    pirn_runtime_get_info(rt, &info);

    double resident = (after.resident_kb - before.resident_kb) * 1024;
    double tables = (after.page_tables_kb - before.page_tables_kb) * 1024;
    (void)printf("%ld tasks sleep; started in %.2f s (%.0f ns each)\n", count,
                 seconds, seconds * 1e9 / (double)count);
    (void)printf("each costs %.1f bytes of memory and %.2f of page tables\n",
                 resident / (double)count, tables / (double)count);
    (void)printf("%llu timers are armed\n", (unsigned long long)info.timers);
    (void)fflush(stdout);
    if (info.timers < (uint64_t)count)
        return -1;
    return (int)((resident + tables) / (double)count + 0.999);
}

static int print_end(pirn_runtime *rt)
{
    uint64_t start_ns = pirn_now_ns();
    pirn_report report;
    char text[REPORT_SIZE];
    int rc = pirn_runtime_shutdown(rt, pirn_after_ms(60000), &report);

    (void)printf("all of them cancelled in %.2f s; the report:\n",
                 (double)(pirn_now_ns() - start_ns) / 1e9);
    (void)pirn_report_format(&report, text, sizeof text);
    (void)fputs(text, stdout);
    return rc;
}

static int run(long count, long hold_seconds)
{
    struct memory before = read_memory();
    pirn_runtime *rt;
    int rc = pirn_runtime_new(NULL, &rt);

    if (rc < 0)
        return rc;
    int bytes = measure(rt, count, before);
    if (bytes >= 0 && hold_seconds > 0)
        rc = drive(rt, (uint64_t)hold_seconds * 1000);
    int ended = print_end(rt);
    pirn_runtime_unref(rt);

    if (bytes < 0)
        return bytes;
    if (count >= MEASURABLE_COUNT && bytes > BYTES_ALLOWED) {
        (void)printf("too much: %d bytes, %d are allowed\n", bytes,
                     BYTES_ALLOWED);
        return -1;
    }
    return rc < 0 ? rc : ended;
}

static int print_usage(void)
{
    (void)fputs("usage: million [--count N] [--hold SECONDS] [--self-test]\n",
                stderr);
    return 2;
}

int main(int argc, char **argv)
{
    long count = DEFAULT_COUNT;
    long hold_seconds = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--self-test") == 0)
            count = SELF_TEST_COUNT;
        else if (strcmp(argv[i], "--count") == 0 && i + 1 < argc)
            count = strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--hold") == 0 && i + 1 < argc)
            hold_seconds = strtol(argv[++i], NULL, 10);
        else
            return print_usage();
    }
    if (count < 1 || hold_seconds < 0)
        return print_usage();
    return run(count, hold_seconds) < 0 ? 1 : 0;
}
