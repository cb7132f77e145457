/* SPDX-License-Identifier: MIT */
/* bench/bench_pool_late.c - how late timers are when many are due.
 *
 *   late_async, late_fiber   100,000 tasks sleep until moments spread at random
 *                            over a second, the first of them a second after
 *                            the beginning, when all have been started.  The
 *                            figures are the median and the 99th percentile of
 *                            how late a task runs again, and the processor time
 *                            of a task from start to end
 */
#define _GNU_SOURCE
#include "plain.h"
#include "rig.h"
#include "sample.h"
#include "tally.h"

#include <stdio.h>

enum { TASKS_MAX = 100000, SPAN_NS = 1000000000, LEAD_MS = 1000 };

static struct {
    uint64_t count;
    uint64_t late_ns[TASKS_MAX];
    uint64_t random;
    uint64_t base_ns;
    const char *name;
    bool as_fibers;
    struct tally left;
} sleepers;

static uint64_t draw_until(void)
{
    sleepers.random ^= sleepers.random << 13;
    sleepers.random ^= sleepers.random >> 7;
    sleepers.random ^= sleepers.random << 17;
    return sleepers.base_ns + sleepers.random % SPAN_NS;
}

/* One sleeper; its number finds the place for its result. */
struct nap {
    uint64_t until_ns;
    uint64_t number;
};

static struct nap naps[TASKS_MAX];

static void end_nap(const struct nap *nap)
{
    uint64_t now_ns = sample_now_ns();

    sample_require(now_ns >= nap->until_ns ? 0 : -EINVAL, "a sleep, too short");
    sleepers.late_ns[nap->number] = now_ns - nap->until_ns;
    tally_hit(&sleepers.left);
}

static int nap_fiber(void *arg)
{
    const struct nap *nap = arg;

    sample_require(pirn_sleep((pirn_deadline){nap->until_ns}), "pirn_sleep");
    end_nap(nap);
    return 0;
}

struct nap_task {
    pirn_frame frame;
    pirn_sleep_op sleep;
    const struct nap *nap;
};

static enum pirn_poll nap_poll(pirn_future *self, pirn_cx *cx)
{
    struct nap_task *task = PIRN_FRAME_OF(self, struct nap_task, frame);

    PIRN_ASYNC_BEGIN(&task->frame, cx);
    pirn_sleep_init(&task->sleep, (pirn_deadline){task->nap->until_ns});
    PIRN_AWAIT(&task->sleep.future);
    end_nap(task->nap);
    PIRN_ASYNC_END();
}

static const pirn_async_ops nap_ops = PIRN_ASYNC_OPS(nap_poll, NULL);

static int start_nap(struct nap *nap)
{
    struct nap_task task = {.nap = nap};

    if (sleepers.as_fibers)
        return pirn_go(nap_fiber, nap);
    pirn_frame_init(&task.frame, &nap_ops);
    return pirn_spawn(&task.frame.future, sizeof task, NULL, NULL);
}

static int start_naps(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < sleepers.count; i++) {
        naps[i] = (struct nap){draw_until(), i};
        sample_require(start_nap(&naps[i]), "spawn");
    }
    tally_await(&sleepers.left);
    return 0;
}

static void print_value(const struct rig *rig, const char *what, double value)
{
    char name[64];

    snprintf(name, sizeof name, "%s_%s", sleepers.name, what);
    rig_print(rig, name, "ns", value);
}

static void run(const struct rig *rig, void *arg)
{
    uint64_t cpu_ns = plain_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    pirn_task *task;
    int outcome;

    (void)arg;
    tally_init(&sleepers.left, sleepers.count);
    sleepers.random = 88172645463325252u;
    sleepers.base_ns = pirn_after_ms(LEAD_MS).ns;
    sample_require(pirn_go_with(start_naps, NULL, NULL, &task), "pirn_go");
    sample_require(pirn_task_join(task, PIRN_NEVER, &outcome),
                   "pirn_task_join");
    pirn_task_unref(task);
    cpu_ns = plain_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
    plain_sort(sleepers.late_ns, sleepers.count);
    print_value(rig, "p50",
                plain_percentile(sleepers.late_ns, sleepers.count, 50));
    print_value(rig, "p99",
                plain_percentile(sleepers.late_ns, sleepers.count, 99));
    print_value(rig, "cpu", (double)cpu_ns / (double)sleepers.count);
}

static void measure(const char *name, bool as_fibers)
{
    sleepers.name = name;
    sleepers.as_fibers = as_fibers;
    rig_each(name, run, NULL);
}

int main(int argc, char **argv)
{
    rig_begin(argc, argv);
    sleepers.count = rig_scale(20000, TASKS_MAX);
    measure("late_async", false);
    measure("late_fiber", true);
    rig_end();
    return 0;
}
