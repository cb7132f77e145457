/* SPDX-License-Identifier: MIT */
/* bench/bench_timer.c - the price of a deadline that is not needed after all.
 *
 * Insert and cancel through the public sleep: init, the poll that arms it, the
 * drop that takes it out again.  N sleeps are live all the time; one after the
 * other is dropped and armed anew, in the order in which they were made or in
 * a random one, with deadlines spread evenly over an hour.  A million timers
 * do not fit the caches, and in random order each costs several misses: that is
 * the memory's price, not the wheel's.
 *
 * With --growth, in order, with more and more of them instead.
 */
#include "sample.h"

#include "countdown.h"

#include <pirn/pirn.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { MILLION = 1000000, BURST = 100, SAMPLES = 9 };

struct churn {
    pirn_future future;
    pirn_sleep_op *sleeps;
    size_t count;
    bool in_order;
    uint64_t base_ns; /* a time in the future that no deadline is before */
    uint64_t random;
    size_t next;
    size_t armed;    /* set up: so many of `sleeps` are live */
    uint64_t rounds; /* still to do */
    uint64_t begin_ns;
    uint64_t spent_ns;
};

static uint64_t draw(struct churn *churn)
{
    churn->random ^= churn->random << 13;
    churn->random ^= churn->random >> 7;
    churn->random ^= churn->random << 17;
    return churn->random;
}

static void arm(struct churn *churn, pirn_sleep_op *sleep, pirn_cx *cx)
{
    uint64_t hour_ns = 3600u * 1000000000ull;
    pirn_deadline until = {churn->base_ns + draw(churn) % hour_ns};

    pirn_sleep_init(sleep, until);
    if (pirn_future_poll(&sleep->future, cx) != PIRN_PENDING)
        sample_require(-EINVAL, "a sleep of minutes ended at once");
}

static pirn_sleep_op *pick(struct churn *churn)
{
    size_t index = churn->next++;

    if (!churn->in_order)
        index = (size_t)(draw(churn) >> 16);
    return &churn->sleeps[index % churn->count];
}

static void arm_burst(struct churn *churn, pirn_cx *cx)
{
    for (int i = 0; i < BURST && churn->armed < churn->count; i++)
        arm(churn, &churn->sleeps[churn->armed++], cx);
}

static void churn_burst(struct churn *churn, pirn_cx *cx)
{
    for (int i = 0; i < BURST; i++) {
        pirn_sleep_op *sleep = pick(churn);

        pirn_future_drop(&sleep->future);
        arm(churn, sleep, cx);
    }
    churn->rounds -= BURST;
}

static void drop_all(struct churn *churn)
{
    while (churn->armed > 0)
        pirn_future_drop(&churn->sleeps[--churn->armed].future);
}

/* A burst a poll, so that the coop budget of a poll is never used up; the turn
 * from one poll to the next is a small part of a hundred rounds. */
static enum pirn_poll churn_poll(pirn_future *self, pirn_cx *cx)
{
    struct churn *churn = PIRN_CONTAINER_OF(self, struct churn, future);

    if (churn->armed < churn->count) {
        arm_burst(churn, cx);
        churn->begin_ns = sample_cpu_ns();
    } else if (churn->rounds > 0) {
        churn_burst(churn, cx);
    } else {
        churn->spent_ns = sample_cpu_ns() - churn->begin_ns;
        drop_all(churn);
        return PIRN_READY;
    }
    pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

static void churn_drop(pirn_future *self)
{
    drop_all(PIRN_CONTAINER_OF(self, struct churn, future));
}

static const pirn_future_ops churn_ops = {
    .poll = churn_poll,
    .drop = churn_drop,
};

static struct countdown churned;

static int churn_fiber(void *arg)
{
    struct churn *churn = arg;

    sample_require(pirn_await(&churn->future, PIRN_NEVER), "pirn_await");
    countdown_hit(&churned);
    return 0;
}

static void measure(pirn_runtime *rt, const char *name, size_t count,
                    bool in_order, uint64_t rounds)
{
    pirn_sleep_op *sleeps;

    if (!sample_is_wanted(name))
        return;
    sleeps = calloc(count, sizeof *sleeps);
    sample_require(sleeps == NULL ? -ENOMEM : 0, "calloc");
    for (int i = 0; i < SAMPLES; i++) {
        struct churn churn = {
            .future.ops = &churn_ops,
            .sleeps = sleeps,
            .count = count,
            .in_order = in_order,
            .base_ns = pirn_after_ms(600000).ns,
            .random = 88172645463325252u,
            .rounds = rounds / BURST * BURST,
        };

        countdown_init(&churned, 1);
        sample_require(pirn_go(churn_fiber, &churn), "pirn_go");
        sample_require(pirn_block_on(rt, &churned.future, PIRN_NEVER),
                       "pirn_block_on");
        sample_print(name, "ns",
                     (double)churn.spent_ns / (double)(rounds / BURST * BURST));
    }
    free(sleeps);
}

static void measure_growth(pirn_runtime *rt, uint64_t rounds)
{
    char name[64];

    for (size_t count = 1000; count <= MILLION; count *= 10) {
        snprintf(name, sizeof name, "growth/timer/%zu", count);
        measure(rt, name, count, true, rounds);
    }
}

static void measure_timers(pirn_runtime *rt, uint64_t rounds)
{
    measure(rt, "timer/insert_cancel_1_live", 1, true, rounds);
    measure(rt, "timer/insert_cancel_1m_live_in_order", MILLION, true, rounds);
    measure(rt, "timer/insert_cancel_1m_live_random", MILLION, false, rounds);
}

int main(int argc, char **argv)
{
    uint64_t rounds =
        sample_has_flag(argc, argv, "--quick") ? 200000 : 1000000;
    pirn_runtime *rt;

    sample_choose(argc, argv);
    sample_require(pirn_runtime_new(NULL, &rt), "pirn_runtime_new");
    pirn_runtime_enter(rt);
    if (sample_has_flag(argc, argv, "--growth"))
        measure_growth(rt, rounds);
    else
        measure_timers(rt, rounds);
    pirn_runtime_enter(NULL);
    pirn_runtime_unref(rt);
    return 0;
}
