/* SPDX-License-Identifier: MIT */
/* bench/bench_pool_wake.c - how long it takes to reach another processor.
 *
 *   hand_over   a cache line goes to another thread that waits for it, spinning,
 *               and back.  Nothing of Pirn: it says what sharing anything costs
 *               on this machine now, which in a guest may change by the hour
 *   wake        a wake reaches a task of a pool all of whose workers sleep
 *
 * For `wake` a thread that is no worker wakes a fiber every 200 us.  The figure is the
 * time from before the wake to the first line of the fiber after its wait: the median
 * and the 99th percentile of the wakes of a sample.
 */
#define _GNU_SOURCE
#include "mailbox.h"
#include "plain.h"
#include "rig.h"
#include "sample.h"

#include <pthread.h>

enum { WAKES_MAX = 2000, GAP_NS = 200 * 1000, HAND_OVERS = 20000 };

/* Hand-over. */

static PIRN_ATOMIC(uint32_t) ball PIRN_CACHE_ALIGNED; /* whose it is: 0 or 1 */

/* Wait until it is ours, and hand it over; again and again. */
static void play(uint32_t player)
{
    for (int i = 0; i < HAND_OVERS; i++) {
        /* relaxed: nothing but the ball itself is handed over. */
        while (pirn__load(&ball, relaxed) != player)
            pirn__spin_hint();
        /* relaxed: as above. */
        pirn__store(&ball, 1 - player, relaxed);
    }
}

static void *play_other(void *arg)
{
    (void)arg;
    play(1);
    return NULL;
}

static void measure_hand_over(void)
{
    pthread_t other;
    uint64_t begin_ns;

    sample_require(-pthread_create(&other, NULL, play_other, NULL),
                   "pthread_create");
    begin_ns = sample_now_ns();
    play(0);
    pthread_join(other, NULL);
    sample_print("machine/hand_over", "ns",
                 (double)(sample_now_ns() - begin_ns) / HAND_OVERS);
}

/* Wake. */

static struct {
    struct mailbox box;
    uint64_t count;
    uint64_t sent_ns; /* of the wake under way */
    PIRN_ATOMIC(uint64_t) received;
    uint64_t latencies[WAKES_MAX];
} wakes;

static int woken_fiber(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < wakes.count; i++) {
        sample_require(pirn_await(&wakes.box.future, PIRN_NEVER), "pirn_await");
        wakes.latencies[i] = sample_now_ns() - wakes.sent_ns;
        /* release [wakes.received]: the sender may write sent_ns again. */
        pirn__store(&wakes.received, i + 1, release);
    }
    return 0;
}

/* On a busy machine a gap may be too short for the fiber to wait again. */
static void wait_for_receipt(uint64_t count)
{
    do {
        plain_sleep_until(sample_now_ns() + GAP_NS);
        /* acquire [wakes.received]: before sent_ns is written again. */
    } while (pirn__load(&wakes.received, acquire) < count);
}

static void wake_all(void)
{
    for (uint64_t i = 0; i < wakes.count; i++) {
        wait_for_receipt(i);
        wakes.sent_ns = sample_now_ns();
        mailbox_send(&wakes.box);
    }
}

static void measure_wakes(const struct rig *rig, void *arg)
{
    pirn_task *task;
    int outcome;

    (void)arg;
    pirn__init(&wakes.received, 0);
    mailbox_init(&wakes.box);
    sample_require(pirn_go_with(woken_fiber, NULL, NULL, &task), "pirn_go");
    wake_all();
    sample_require(pirn_task_join(task, PIRN_NEVER, &outcome),
                   "pirn_task_join");
    sample_require(outcome, "the woken fiber");
    pirn_task_unref(task);
    mailbox_deinit(&wakes.box);
    plain_sort(wakes.latencies, wakes.count);
    rig_print(rig, "wake_p50", "ns",
              plain_percentile(wakes.latencies, wakes.count, 50));
    rig_print(rig, "wake_p99", "ns",
              plain_percentile(wakes.latencies, wakes.count, 99));
}

int main(int argc, char **argv)
{
    sample_choose(argc, argv);
    for (int i = 0; i < 5 && sample_is_wanted("hand_over"); i++)
        measure_hand_over();
    rig_begin(argc, argv);
    wakes.count = rig_scale(500, WAKES_MAX);
    rig_each("wake", measure_wakes, NULL);
    rig_end();
    return 0;
}
