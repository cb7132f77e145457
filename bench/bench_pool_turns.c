/* SPDX-License-Identifier: MIT */
/* bench/bench_pool_turns.c - what it costs a pool to run tasks again and again.
 *
 *   yield      K tasks give way in turn.  A fiber calls pirn_yield(), after
 *              which the worker looks for events; a stackless task wakes itself
 *              and returns PENDING.  The figure is one yield
 *   ping_pong  1000 pairs of tasks, each of which wakes its partner and waits
 *              for it.  The figure is a round trip: two wakes and two runs
 */
#include "mailbox.h"
#include "rig.h"
#include "sample.h"
#include "tally.h"

enum { MANY = 1000, PAIRS = 1000 };

/* Yield. */

static struct {
    struct tally left;
    uint64_t tasks;
    uint64_t each;
    bool as_fibers;
} yields;

static int yield_fiber(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < yields.each; i++)
        sample_require(pirn_yield(), "pirn_yield");
    tally_hit(&yields.left);
    return 0;
}

struct yielder {
    pirn_future future;
    uint64_t left;
};

static enum pirn_poll yielder_poll(pirn_future *self, pirn_cx *cx)
{
    struct yielder *yielder = PIRN_CONTAINER_OF(self, struct yielder, future);

    if (yielder->left == 0) {
        tally_hit(&yields.left);
        return PIRN_READY;
    }
    yielder->left--;
    pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

static void nothing_drop(pirn_future *self)
{
    (void)self;
}

static const pirn_future_ops yielder_ops = {
    .poll = yielder_poll,
    .drop = nothing_drop,
};

static int start_yielder(void)
{
    struct yielder yielder = {{&yielder_ops}, yields.each};

    if (yields.as_fibers)
        return pirn_go(yield_fiber, NULL);
    return pirn_spawn(&yielder.future, sizeof yielder, NULL, NULL);
}

static void run_yields(void *arg)
{
    (void)arg;
    tally_init(&yields.left, yields.tasks);
    for (uint64_t i = 0; i < yields.tasks; i++)
        sample_require(start_yielder(), "spawn");
    tally_await(&yields.left);
}

static void measure_yield(const char *name, uint64_t tasks, uint64_t count,
                          bool as_fibers)
{
    struct rig_row row = {
        .name = name,
        .operations = count,
        .fn = run_yields,
    };

    yields.tasks = tasks;
    yields.each = count / tasks;
    yields.as_fibers = as_fibers;
    rig_time(&row);
}

/* Ping-pong. */

/* On cache lines of its own: pairs on different workers share nothing. */
struct pair {
    struct mailbox boxes[2] PIRN_CACHE_ALIGNED; /* of the two players */
};

static struct {
    struct pair pairs[PAIRS];
    struct tally left; /* players */
    uint64_t each;     /* round trips of a pair */
    bool as_fibers;
} rallies;

/* A player, as a fiber knows itself. */
static struct seat {
    struct pair *pair;
    int number; /* 0 serves */
} seats[2 * PAIRS];

static int player_fiber(void *arg)
{
    const struct seat *seat = arg;
    struct mailbox *own = &seat->pair->boxes[seat->number];
    struct mailbox *other = &seat->pair->boxes[1 - seat->number];

    for (uint64_t i = 0; i < rallies.each; i++) {
        if (seat->number == 0)
            mailbox_send(other);
        sample_require(pirn_await(&own->future, PIRN_NEVER), "pirn_await");
        if (seat->number == 1)
            mailbox_send(other);
    }
    tally_hit(&rallies.left);
    return 0;
}

struct player {
    pirn_frame frame;
    struct mailbox *own;
    struct mailbox *other;
    uint64_t left;
    bool serves;
};

static enum pirn_poll player_poll(pirn_future *self, pirn_cx *cx)
{
    struct player *player = PIRN_FRAME_OF(self, struct player, frame);

    PIRN_ASYNC_BEGIN(&player->frame, cx);
    while (player->left-- > 0) {
        if (player->serves)
            mailbox_send(player->other);
        PIRN_AWAIT(&player->own->future);
        if (!player->serves)
            mailbox_send(player->other);
    }
    tally_hit(&rallies.left);
    PIRN_ASYNC_END();
}

static const pirn_async_ops player_ops = PIRN_ASYNC_OPS(player_poll, NULL);

static int start_player(struct seat *seat)
{
    struct player player = {
        .own = &seat->pair->boxes[seat->number],
        .other = &seat->pair->boxes[1 - seat->number],
        .left = rallies.each,
        .serves = seat->number == 0,
    };

    if (rallies.as_fibers)
        return pirn_go(player_fiber, seat);
    pirn_frame_init(&player.frame, &player_ops);
    return pirn_spawn(&player.frame.future, sizeof player, NULL, NULL);
}

static void run_rallies(void *arg)
{
    (void)arg;
    tally_init(&rallies.left, 2 * PAIRS);
    for (int i = 0; i < 2 * PAIRS; i++)
        mailbox_init(&rallies.pairs[i / 2].boxes[i % 2]);
    for (int i = 0; i < 2 * PAIRS; i++) {
        seats[i] = (struct seat){&rallies.pairs[i / 2], i % 2};
        sample_require(start_player(&seats[i]), "spawn");
    }
    tally_await(&rallies.left);
    for (int i = 0; i < 2 * PAIRS; i++)
        mailbox_deinit(&rallies.pairs[i / 2].boxes[i % 2]);
}

static void measure_ping_pong(const char *name, uint64_t count, bool as_fibers)
{
    struct rig_row row = {
        .name = name,
        .operations = count,
        .fn = run_rallies,
    };

    rallies.each = count / PAIRS;
    rallies.as_fibers = as_fibers;
    rig_time(&row);
}

int main(int argc, char **argv)
{
    uint64_t yields_count;
    uint64_t rounds;

    rig_begin(argc, argv);
    yields_count = rig_scale(500000, 2000000);
    rounds = rig_scale(100000, 500000);
    measure_yield("yield_async_1", 1, yields_count, false);
    measure_yield("yield_async_1000", MANY, yields_count, false);
    measure_yield("yield_fiber_1", 1, yields_count / 4, true);
    measure_yield("yield_fiber_1000", MANY, yields_count, true);
    measure_ping_pong("ping_pong_async", rounds, false);
    measure_ping_pong("ping_pong_fiber", rounds, true);
    rig_end();
    return 0;
}
