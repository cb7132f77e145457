/* SPDX-License-Identifier: MIT */
/* bench/bench_pool_spawn.c - what it costs a pool to start tasks.
 *
 *   spawn_burst    a fiber starts a million tasks that end at once, and waits
 *                  for the last
 *   spawn_batch    the same in batches of 1000, each waited for
 *   spawn_outside  two threads that are no workers start them
 *   chain          each task starts the next one and ends
 *   skynet         a task starts ten, each of which starts ten, down to a
 *                  million leaves; each waits for the sum of its ten
 *
 * The figure is the time of one task from start to end, over all workers; of
 * skynet the time of one of its 1,111,111 tasks.  Of fibers there are a tenth as
 * many, for they may all be there at once, and a stack takes a page or two.
 */
#define _GNU_SOURCE
#include "rig.h"
#include "sample.h"
#include "tally.h"

#include <errno.h>
#include <pthread.h>

enum { BATCH = 1000, OUTSIDE_THREADS = 2, FAN_OUT = 10 };

static void nothing_drop(pirn_future *self)
{
    (void)self;
}

/* A task that ends at once. */

static int brief_fiber(void *arg)
{
    tally_hit(arg);
    return 0;
}

struct brief {
    pirn_future future;
    struct tally *left;
};

static enum pirn_poll brief_poll(pirn_future *self, pirn_cx *cx)
{
    (void)cx;
    tally_hit(PIRN_CONTAINER_OF(self, struct brief, future)->left);
    return PIRN_READY;
}

static const pirn_future_ops brief_ops = {
    .poll = brief_poll,
    .drop = nothing_drop,
};

static void start_brief(struct tally *left, bool as_fiber)
{
    struct brief brief = {{&brief_ops}, left};
    int rc;

    if (as_fiber)
        rc = pirn_go(brief_fiber, left);
    else
        rc = pirn_spawn(&brief.future, sizeof brief, NULL, NULL);
    sample_require(rc, "spawn");
}

/* Bursts and batches. */

struct spawning {
    uint64_t batches;
    uint64_t batch;
    bool as_fibers;
};

static void spawn_batches(void *arg)
{
    const struct spawning *spawning = arg;
    struct tally left;

    for (uint64_t i = 0; i < spawning->batches; i++) {
        tally_init(&left, spawning->batch);
        for (uint64_t k = 0; k < spawning->batch; k++)
            start_brief(&left, spawning->as_fibers);
        tally_await(&left);
    }
}

static void measure_spawn(const char *name, uint64_t batches, uint64_t batch,
                          bool as_fibers)
{
    struct spawning spawning = {batches, batch, as_fibers};
    struct rig_row row = {
        .name = name,
        .operations = batches * batch,
        .fn = spawn_batches,
        .arg = &spawning,
    };

    rig_time(&row);
}

/* From outside. */

struct outside {
    pirn_runtime *rt;
    struct tally left;
    uint64_t count; /* of each thread */
};

static void *spawn_here(void *arg)
{
    struct outside *outside = arg;
    uint64_t count = outside->count;

    pirn_runtime_enter(outside->rt);
    for (uint64_t i = 0; i < count; i++)
        start_brief(&outside->left, false);
    pirn_runtime_enter(NULL);
    return NULL;
}

static void spawn_outside(void *arg)
{
    struct outside *outside = arg;
    pthread_t threads[OUTSIDE_THREADS];

    outside->rt = pirn_runtime_current();
    tally_init(&outside->left, OUTSIDE_THREADS * outside->count);
    for (int i = 0; i < OUTSIDE_THREADS; i++)
        sample_require(-pthread_create(&threads[i], NULL, spawn_here, outside),
                       "pthread_create");
    for (int i = 0; i < OUTSIDE_THREADS; i++)
        pthread_join(threads[i], NULL);
    tally_await(&outside->left);
}

static void measure_outside(const char *name, uint64_t count)
{
    struct outside outside = {.count = count / OUTSIDE_THREADS};
    struct rig_row row = {
        .name = name,
        .operations = count,
        .from_outside = true,
        .fn = spawn_outside,
        .arg = &outside,
    };

    rig_time(&row);
}

/* Chain. */

struct chain_link {
    pirn_future future;
    struct tally *end;
    uint64_t left; /* of the chain, after this one */
};

static void start_chain_link(struct tally *end, uint64_t left);

static enum pirn_poll chain_link_poll(pirn_future *self, pirn_cx *cx)
{
    struct chain_link *here =
        PIRN_CONTAINER_OF(self, struct chain_link, future);

    (void)cx;
    if (here->left == 0)
        tally_hit(here->end);
    else
        start_chain_link(here->end, here->left - 1);
    return PIRN_READY;
}

static const pirn_future_ops chain_link_ops = {
    .poll = chain_link_poll,
    .drop = nothing_drop,
};

static void start_chain_link(struct tally *end, uint64_t left)
{
    struct chain_link next = {{&chain_link_ops}, end, left};

    sample_require(pirn_spawn(&next.future, sizeof next, NULL, NULL),
                   "pirn_spawn");
}

static void run_chain(void *arg)
{
    const uint64_t *count = arg;
    struct tally end;

    tally_init(&end, 1);
    start_chain_link(&end, *count - 1);
    tally_await(&end);
}

static void measure_chain(const char *name, uint64_t count)
{
    struct rig_row row = {
        .name = name,
        .operations = count,
        .fn = run_chain,
        .arg = &count,
    };

    rig_time(&row);
}

/* Skynet.  A node sums up the numbers of the leaves below it. */

struct sum {
    struct tally parts; /* that are missing */
    PIRN_ATOMIC(uint64_t) value;
};

static void sum_init(struct sum *sum)
{
    tally_init(&sum->parts, FAN_OUT);
    pirn__init(&sum->value, 0);
}

static void sum_add(struct sum *sum, uint64_t value)
{
    /* relaxed: the tally publishes it. */
    pirn__add(&sum->value, value, relaxed);
    tally_hit(&sum->parts);
}

static uint64_t sum_get(const struct sum *sum)
{
    /* relaxed: the tally has published it. */
    return pirn__load(&sum->value, relaxed);
}

/* The leaves `first` to `first + count - 1`, for whose sum somebody waits. */
struct span {
    struct sum *above;
    uint64_t first;
    uint64_t count;
};

static struct span part_of(const struct span *span, uint64_t i,
                           struct sum *above)
{
    uint64_t count = span->count / FAN_OUT;

    return (struct span){above, span->first + i * count, count};
}

static int node_fiber(void *arg)
{
    const struct span *span = arg;
    struct span parts[FAN_OUT];
    struct sum sum;

    if (span->count == 1) {
        sum_add(span->above, span->first);
        return 0;
    }
    sum_init(&sum);
    for (uint64_t i = 0; i < FAN_OUT; i++) {
        parts[i] = part_of(span, i, &sum);
        sample_require(pirn_go(node_fiber, &parts[i]), "pirn_go");
    }
    tally_await(&sum.parts);
    sum_add(span->above, sum_get(&sum));
    return 0;
}

/* A leaf has no room for a sum. */
struct leaf {
    pirn_future future;
    struct span span;
};

static enum pirn_poll leaf_poll(pirn_future *self, pirn_cx *cx)
{
    struct leaf *leaf = PIRN_CONTAINER_OF(self, struct leaf, future);

    (void)cx;
    sum_add(leaf->span.above, leaf->span.first);
    return PIRN_READY;
}

static const pirn_future_ops leaf_ops = {
    .poll = leaf_poll,
    .drop = nothing_drop,
};

struct node {
    pirn_frame frame;
    struct span span;
    struct sum sum;
};

static void start_span(const struct span *span);

static enum pirn_poll node_poll(pirn_future *self, pirn_cx *cx)
{
    struct node *node = PIRN_FRAME_OF(self, struct node, frame);

    PIRN_ASYNC_BEGIN(&node->frame, cx);
    sum_init(&node->sum);
    for (uint64_t i = 0; i < FAN_OUT; i++) {
        struct span part = part_of(&node->span, i, &node->sum);

        start_span(&part);
    }
    PIRN_AWAIT(&node->sum.parts.future);
    sum_add(node->span.above, sum_get(&node->sum));
    PIRN_ASYNC_END();
}

static const pirn_async_ops node_ops = PIRN_ASYNC_OPS(node_poll, NULL);

static void start_span(const struct span *span)
{
    struct leaf leaf = {{&leaf_ops}, *span};
    struct node node = {.span = *span};
    int rc;

    if (span->count == 1) {
        rc = pirn_spawn(&leaf.future, sizeof leaf, NULL, NULL);
    } else {
        pirn_frame_init(&node.frame, &node_ops);
        rc = pirn_spawn(&node.frame.future, sizeof node, NULL, NULL);
    }
    sample_require(rc, "pirn_spawn");
}

struct skynet {
    uint64_t leaves;
    bool as_fibers;
};

static void run_skynet(void *arg)
{
    const struct skynet *skynet = arg;
    struct sum sum;
    struct span span = {&sum, 0, skynet->leaves};

    sum_init(&sum);
    tally_init(&sum.parts, 1);
    if (skynet->as_fibers)
        sample_require(pirn_go(node_fiber, &span), "pirn_go");
    else
        start_span(&span);
    tally_await(&sum.parts);
    sample_require(sum_get(&sum) == skynet->leaves * (skynet->leaves - 1) / 2
                       ? 0
                       : -EINVAL,
                   "the sum of the leaves");
}

static void measure_skynet(const char *name, uint64_t leaves, bool as_fibers)
{
    struct skynet skynet = {leaves, as_fibers};
    struct rig_row row = {
        .name = name,
        .operations = 0,
        .fn = run_skynet,
        .arg = &skynet,
    };

    for (uint64_t level = leaves; level > 0; level /= FAN_OUT)
        row.operations += level;
    rig_time(&row);
}

int main(int argc, char **argv)
{
    uint64_t count;

    rig_begin(argc, argv);
    count = rig_scale(100000, 1000000);
    measure_spawn("spawn_burst_async", 1, count, false);
    measure_spawn("spawn_burst_fiber", 1, count / 10, true);
    measure_spawn("spawn_batch_async", count / BATCH, BATCH, false);
    measure_spawn("spawn_batch_fiber", count / 10 / BATCH, BATCH, true);
    measure_outside("spawn_outside_async", count / 2);
    measure_chain("chain_async", count / 2);
    measure_skynet("skynet_async", count, false);
    measure_skynet("skynet_fiber", count / 10, true);
    rig_end();
    return 0;
}
