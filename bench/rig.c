/* SPDX-License-Identifier: MIT */
/* bench/rig.c - see rig.h. */
#define _GNU_SOURCE
#include "rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plain.h"
#include "sample.h"

enum { RIG_POOLS = 2, RIG_NAME_SIZE = 96, RIG_ROW_SIZE = 64 };

static struct {
    struct rig pools[RIG_POOLS];
    uint32_t count; /* of pools */
    uint64_t samples;
    bool quick;
    const char *only; /* or NULL */
} rigs;

static void make_pool(uint32_t workers)
{
    pirn_runtime_options options = {.workers = workers};
    struct rig *rig = &rigs.pools[rigs.count++];

    rig->workers = workers;
    sample_require(pirn_runtime_new(&options, &rig->rt), "pirn_runtime_new");
}

static const char *argument_after(int argc, char **argv, const char *word)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], word) == 0)
            return argv[i + 1];
    return NULL;
}

void rig_begin(int argc, char **argv)
{
    uint64_t workers = sample_get_number(argc, argv, "--workers", 0);

    rigs.quick = sample_has_flag(argc, argv, "--quick");
    rigs.samples =
        sample_get_number(argc, argv, "--samples", rigs.quick ? 5 : 15);
    rigs.only = argument_after(argc, argv, "--row");
    sample_choose(argc, argv);
    if (workers != 0) {
        make_pool((uint32_t)workers);
        return;
    }
    make_pool(1);
    make_pool(2);
}

void rig_end(void)
{
    for (uint32_t i = 0; i < rigs.count; i++)
        pirn_runtime_unref(rigs.pools[i].rt);
}

uint64_t rig_scale(uint64_t small, uint64_t large)
{
    return rigs.quick ? small : large;
}

static void name_row(const struct rig *rig, const char *row, char *name)
{
    snprintf(name, RIG_NAME_SIZE, "pool%" PRIu32 "/%s", rig->workers, row);
}

void rig_print(const struct rig *rig, const char *row, const char *unit,
               double value)
{
    char name[RIG_NAME_SIZE];

    if (!rig->warm)
        return;
    name_row(rig, row, name);
    sample_print(name, unit, value);
}

/* What the workers of a pool have done since `before`, for each sample. */
static void note_counters(const struct rig *rig, const char *row,
                          const pirn_runtime_info *before)
{
    double samples = (double)rigs.samples;
    char name[RIG_NAME_SIZE];
    char text[160];
    pirn_runtime_info after;

    pirn_runtime_get_info(rig->rt, &after);
    name_row(rig, row, name);
    snprintf(text, sizeof text,
             "a sample: %.0f polls, %.0f steals, %.0f wakes, %.0f sleeps",
             (double)(after.polls - before->polls) / samples,
             (double)(after.steals - before->steals) / samples,
             (double)(after.wakes - before->wakes) / samples,
             (double)(after.turns - before->turns) / samples);
    sample_note(name, text);
}

static void run_once(struct rig *rig, rig_fn *fn, void *arg)
{
    pirn_runtime_enter(rig->rt);
    fn(rig, arg);
    pirn_runtime_enter(NULL);
}

void rig_each(const char *row, rig_fn *fn, void *arg)
{
    pirn_runtime_info before[RIG_POOLS];

    if (rigs.only != NULL && strstr(row, rigs.only) == NULL)
        return;
    if (!sample_is_wanted(row))
        return;
    for (uint32_t k = 0; k < rigs.count; k++) {
        rigs.pools[k].warm = false;
        run_once(&rigs.pools[k], fn, arg);
        rigs.pools[k].warm = true;
        pirn_runtime_get_info(rigs.pools[k].rt, &before[k]);
    }
    /* Each pair begins with the other one. */
    for (uint64_t i = 0; i < rigs.samples; i++)
        for (uint32_t k = 0; k < rigs.count; k++)
            run_once(&rigs.pools[(i + k) % rigs.count], fn, arg);
    for (uint32_t k = 0; k < rigs.count; k++)
        note_counters(&rigs.pools[k], row, &before[k]);
}

struct timing {
    const struct rig_row *row;
    uint64_t elapsed_ns;
    uint64_t cpu_ns;
};

/* Of all threads: the other pool sleeps meanwhile. */
static uint64_t process_cpu_ns(void)
{
    return plain_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static int time_fn(void *arg)
{
    struct timing *timing = arg;
    uint64_t begin_cpu_ns = process_cpu_ns();
    uint64_t begin_ns = sample_now_ns();

    timing->row->fn(timing->row->arg);
    timing->elapsed_ns = sample_now_ns() - begin_ns;
    timing->cpu_ns = process_cpu_ns() - begin_cpu_ns;
    return 0;
}

static void time_in_fiber(struct timing *timing)
{
    pirn_task *task;
    int outcome;

    sample_require(pirn_go_with(time_fn, timing, NULL, &task), "pirn_go");
    sample_require(pirn_task_join(task, PIRN_NEVER, &outcome),
                   "pirn_task_join");
    sample_require(outcome, "the fiber of a row");
    pirn_task_unref(task);
}

static void time_once(const struct rig *rig, void *arg)
{
    const struct rig_row *row = arg;
    struct timing timing = {.row = row};
    double operations = (double)row->operations;
    char cpu_name[RIG_ROW_SIZE];

    if (row->from_outside)
        (void)time_fn(&timing);
    else
        time_in_fiber(&timing);
    snprintf(cpu_name, sizeof cpu_name, "%s.cpu", row->name);
    rig_print(rig, row->name, "ns", (double)timing.elapsed_ns / operations);
    rig_print(rig, cpu_name, "ns", (double)timing.cpu_ns / operations);
}

void rig_time(const struct rig_row *row)
{
    struct rig_row copy = *row;

    rig_each(row->name, time_once, &copy);
}
