/* SPDX-License-Identifier: MIT */
/* bench/bench_memory.c - what a task costs while it waits.
 *
 *     bench_memory --stackless N    N frames that sleep for an hour
 *     bench_memory --fibers N       N fibers that sleep for an hour
 *
 * The figure is the growth of the whole process, from before its runtime
 * exists until every task has reached its sleep: resident memory (Rss of
 * /proc/self/smaps_rollup) and page tables (VmPTE), which are not part of it.
 * For fibers the pages that a stack touched are what is left of Rss without
 * the task cells.  A fiber starts the tasks in batches of 1000 and lets each
 * batch run.  In the end all are cancelled and the report must say so.
 */
#include "sample.h"

#include "countdown.h"

#include <pirn/pirn.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 1000, PAGE = 4096 };

struct footprint {
    double rss_bytes;
    double pte_bytes;
};

struct field {
    const char *path;
    const char *name;
};

static double read_kilobytes(struct field field)
{
    FILE *file = fopen(field.path, "re");
    char line[256];
    size_t length = strlen(field.name);
    double kilobytes = -1;

    sample_require(file == NULL ? -ENOENT : 0, field.path);
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, field.name, length) == 0)
            kilobytes = strtod(line + length, NULL);
    fclose(file);
    sample_require(kilobytes < 0 ? -ENOENT : 0, field.name);
    return kilobytes;
}

static struct footprint measure_footprint(void)
{
    struct field rss = {"/proc/self/smaps_rollup", "Rss:"};
    struct field pte = {"/proc/self/status", "VmPTE:"};

    return (struct footprint){
        .rss_bytes = read_kilobytes(rss) * 1024,
        .pte_bytes = read_kilobytes(pte) * 1024,
    };
}

static struct {
    size_t count;
    bool as_fibers;
    pirn_deadline until;
    struct countdown asleep; /* tasks that have not reached their sleep */
} plan;

struct sleeper {
    pirn_frame frame;
    pirn_sleep_op sleep;
};

static enum pirn_poll sleeper_poll(pirn_future *self, pirn_cx *cx)
{
    struct sleeper *sleeper = PIRN_FRAME_OF(self, struct sleeper, frame);

    PIRN_ASYNC_BEGIN(&sleeper->frame, cx);
    countdown_hit(&plan.asleep);
    pirn_sleep_init(&sleeper->sleep, plan.until);
    PIRN_AWAIT(&sleeper->sleep.future);
    PIRN_ASYNC_RETURN(pirn_sleep_rc(&sleeper->sleep));
    PIRN_ASYNC_END();
}

static const pirn_async_ops sleeper_ops = PIRN_ASYNC_OPS(sleeper_poll, NULL);

static int sleep_fiber(void *arg)
{
    (void)arg;
    countdown_hit(&plan.asleep);
    return pirn_sleep(plan.until);
}

static int start_sleeper(void)
{
    struct sleeper sleeper;

    if (plan.as_fibers)
        return pirn_go(sleep_fiber, NULL);
    pirn_frame_init(&sleeper.frame, &sleeper_ops);
    return pirn_spawn(&sleeper.frame.future, sizeof sleeper, NULL, NULL);
}

static int start_fiber(void *arg)
{
    (void)arg;
    for (size_t i = 1; i <= plan.count; i++) {
        sample_require(start_sleeper(), "spawn");
        if (i % BATCH == 0)
            sample_require(pirn_yield(), "pirn_yield");
    }
    return 0;
}

static void print_per_task(const char *what, const char *unit, double value)
{
    char name[64];

    snprintf(name, sizeof name, "memory/%s_%s",
             plan.as_fibers ? "fiber" : "stackless", what);
    sample_print(name, unit, value);
}

static void note_limits(const pirn_runtime_info *info)
{
    char text[160];
    char limit[32] = "no limit";

    if (info->stack_limit != SIZE_MAX)
        snprintf(limit, sizeof limit, "at most %zu", info->stack_limit);
    snprintf(text, sizeof text,
             "%zu tasks, %" PRIu64 " timers; guards: %s, %s stacks", plan.count,
             info->timers, info->guards, limit);
    sample_note(plan.as_fibers ? "memory/fiber" : "memory/stackless", text);
}

static void print_footprint(const struct footprint *before,
                            const struct footprint *after,
                            const pirn_runtime_info *info)
{
    double count = (double)plan.count;
    double rss_bytes = after->rss_bytes - before->rss_bytes;
    double pte_bytes = after->pte_bytes - before->pte_bytes;
    double cell_bytes = (double)info->task_bytes;

    print_per_task("rss", "bytes", rss_bytes / count);
    print_per_task("pte", "bytes", pte_bytes / count);
    print_per_task("cells", "bytes", cell_bytes / count);
    if (plan.as_fibers)
        print_per_task("touched_pages", "pages",
                       (rss_bytes - cell_bytes) / PAGE / count);
    else
        print_per_task("total", "bytes", (rss_bytes + pte_bytes) / count);
}

static void stop(pirn_runtime *rt)
{
    pirn_report report;
    uint64_t begin_ns = sample_cpu_ns();

    sample_require(pirn_runtime_shutdown(rt, pirn_after_ms(60000), &report),
                   "pirn_runtime_shutdown");
    sample_require(report.cancelled == plan.count ? 0 : -EINVAL,
                   "the report does not name every task as cancelled");
    print_per_task("stop", "ns",
                   (double)(sample_cpu_ns() - begin_ns) / (double)plan.count);
    pirn_runtime_unref(rt);
}

int main(int argc, char **argv)
{
    struct footprint before;
    struct footprint after;
    pirn_runtime_info info;
    pirn_runtime *rt;

    plan.count = sample_get_number(argc, argv, "--fibers", 0);
    plan.as_fibers = plan.count > 0;
    if (!plan.as_fibers)
        plan.count = sample_get_number(argc, argv, "--stackless", 1000000);
    plan.until = pirn_after_ms(3600 * 1000);
    countdown_init(&plan.asleep, plan.count);
    before = measure_footprint();
    sample_require(pirn_runtime_new(NULL, &rt), "pirn_runtime_new");
    pirn_runtime_enter(rt);

    uint64_t begin_ns = sample_cpu_ns();

    sample_require(pirn_go(start_fiber, NULL), "pirn_go");
    sample_require(pirn_block_on(rt, &plan.asleep.future, PIRN_NEVER),
                   "pirn_block_on");
    print_per_task("start", "ns",
                   (double)(sample_cpu_ns() - begin_ns) / (double)plan.count);
    /* The last task woke us before it armed its timer. */
    sample_require(pirn_runtime_turn(rt, PIRN_NEVER), "pirn_runtime_turn");
    after = measure_footprint();
    pirn_runtime_get_info(rt, &info);
    sample_require(
        info.tasks >= plan.count && info.timers >= plan.count ? 0 : -EINVAL,
        "not every task sleeps");
    print_footprint(&before, &after, &info);
    note_limits(&info);
    pirn_runtime_enter(NULL);
    stop(rt);
    return 0;
}
