/* SPDX-License-Identifier: MIT */
/* bench/bench_task.c - what running tasks costs when they do nothing else.
 *
 *   yield      K tasks give way in turn.  A fiber calls pirn_yield(), which
 *              lets the driver look for events first, once a round.  A
 *              stackless task wakes itself and returns PENDING
 *   ping-pong  two tasks wake each other in turn; the figure is a round trip,
 *              two wakes and two runs
 *   spawn      a fiber starts 1000 tasks that end at once and waits for the
 *              last, again and again; the figure is one task from start to end
 *   wake       K tasks wait, and a fiber wakes a thousand of them, far from each
 *              other, and lets them run; the figure is one wake and one run
 *
 * With --growth, yield, spawn and wake among more and more tasks instead.
 */
#include "sample.h"

#include "countdown.h"

#include <pirn/pirn.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 1000, SAMPLES = 9 };

static pirn_runtime *rt;

static void block_on(pirn_future *future)
{
    sample_require(pirn_block_on(rt, future, PIRN_NEVER), "pirn_block_on");
}

/* Yield. */

static struct countdown yielders_left;
static uint64_t yields_each;

static int yield_fiber(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < yields_each; i++)
        sample_require(pirn_yield(), "pirn_yield");
    countdown_hit(&yielders_left);
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
        countdown_hit(&yielders_left);
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

static int start_yielder(bool as_fiber)
{
    struct yielder yielder = {{&yielder_ops}, yields_each};

    if (as_fiber)
        return pirn_go(yield_fiber, NULL);
    return pirn_spawn(&yielder.future, sizeof yielder, NULL, NULL);
}

static void measure_yield(const char *name, size_t tasks, uint64_t yields,
                          bool as_fiber)
{
    if (!sample_is_wanted(name))
        return;
    yields_each = yields / tasks;
    for (int i = 0; i < SAMPLES; i++) {
        countdown_init(&yielders_left, tasks);
        for (size_t k = 0; k < tasks; k++)
            sample_require(start_yielder(as_fiber), "spawn");

        uint64_t begin_ns = sample_cpu_ns();

        block_on(&yielders_left.future);
        sample_print(name, "ns",
                     (double)(sample_cpu_ns() - begin_ns) /
                         (double)(yields_each * tasks));
    }
}

/* Ping-pong. */

/* Whose turn it is, and the waker of the one that waits. */
static struct {
    int turn;
    pirn_waker waiter;
} table;

struct turn {
    pirn_future future;
    int player;
};

static enum pirn_poll turn_poll(pirn_future *self, pirn_cx *cx)
{
    struct turn *turn = PIRN_CONTAINER_OF(self, struct turn, future);

    if (table.turn == turn->player)
        return PIRN_READY;
    pirn_waker_drop(pirn_waker_store(&table.waiter, cx));
    return PIRN_PENDING;
}

static void turn_drop(pirn_future *self)
{
    (void)self;
    pirn_waker_drop(pirn_waker_take(&table.waiter));
}

static const pirn_future_ops turn_ops = {
    .poll = turn_poll,
    .drop = turn_drop,
};

static void pass_turn(int player)
{
    table.turn = 1 - player;
    pirn_waker_wake(pirn_waker_take(&table.waiter));
}

static struct countdown players_left;
static uint64_t rallies;
static int player_numbers[2] = {0, 1};

static int player_fiber(void *arg)
{
    struct turn turn = {{&turn_ops}, *(int *)arg};

    for (uint64_t i = 0; i < rallies; i++) {
        sample_require(pirn_await(&turn.future, PIRN_NEVER), "pirn_await");
        pass_turn(turn.player);
    }
    countdown_hit(&players_left);
    return 0;
}

struct player {
    pirn_frame frame;
    struct turn turn;
    uint64_t left;
};

static enum pirn_poll player_poll(pirn_future *self, pirn_cx *cx)
{
    struct player *player = PIRN_FRAME_OF(self, struct player, frame);

    PIRN_ASYNC_BEGIN(&player->frame, cx);
    while (player->left-- > 0) {
        PIRN_AWAIT(&player->turn.future);
        pass_turn(player->turn.player);
    }
    countdown_hit(&players_left);
    PIRN_ASYNC_END();
}

static const pirn_async_ops player_ops = PIRN_ASYNC_OPS(player_poll, NULL);

static int start_player(int number, bool as_fiber)
{
    struct player player = {
        .turn = {{&turn_ops}, number},
        .left = rallies,
    };

    if (as_fiber)
        return pirn_go(player_fiber, &player_numbers[number]);
    pirn_frame_init(&player.frame, &player_ops);
    return pirn_spawn(&player.frame.future, sizeof player, NULL, NULL);
}

static void measure_ping_pong(const char *name, uint64_t rounds, bool as_fiber)
{
    if (!sample_is_wanted(name))
        return;
    rallies = rounds;
    for (int i = 0; i < SAMPLES; i++) {
        table.turn = 0;
        countdown_init(&players_left, 2);
        sample_require(start_player(0, as_fiber), "spawn");
        sample_require(start_player(1, as_fiber), "spawn");

        uint64_t begin_ns = sample_cpu_ns();

        block_on(&players_left.future);
        sample_print(name, "ns",
                     (double)(sample_cpu_ns() - begin_ns) / (double)rounds);
    }
}

/* Spawn. */

struct spawner {
    const char *name;
    uint64_t batches;
    size_t batch;
    bool as_fibers;
    struct countdown left; /* of the batch */
    struct countdown *all_done;
};

static int brief_fiber(void *arg)
{
    countdown_hit(arg);
    return 0;
}

struct brief {
    pirn_future future;
    struct countdown *left;
};

static enum pirn_poll brief_poll(pirn_future *self, pirn_cx *cx)
{
    (void)cx;
    countdown_hit(PIRN_CONTAINER_OF(self, struct brief, future)->left);
    return PIRN_READY;
}

static const pirn_future_ops brief_ops = {
    .poll = brief_poll,
    .drop = nothing_drop,
};

static int start_brief(struct spawner *spawner)
{
    struct brief brief = {{&brief_ops}, &spawner->left};

    if (spawner->as_fibers)
        return pirn_go(brief_fiber, &spawner->left);
    return pirn_spawn(&brief.future, sizeof brief, NULL, NULL);
}

static void run_batch(struct spawner *spawner)
{
    countdown_init(&spawner->left, spawner->batch);
    for (size_t i = 0; i < spawner->batch; i++)
        sample_require(start_brief(spawner), "spawn");
    sample_require(pirn_await(&spawner->left.future, PIRN_NEVER), "pirn_await");
}

static int spawner_fiber(void *arg)
{
    struct spawner *spawner = arg;

    run_batch(spawner);
    for (int i = 0; i < SAMPLES; i++) {
        uint64_t begin_ns = sample_cpu_ns();

        for (uint64_t k = 0; k < spawner->batches; k++)
            run_batch(spawner);
        sample_print(spawner->name, "ns",
                     (double)(sample_cpu_ns() - begin_ns) /
                         (double)(spawner->batches * spawner->batch));
    }
    countdown_hit(spawner->all_done);
    return 0;
}

static void measure_spawn(const char *name, size_t batch, uint64_t spawns,
                          bool as_fibers)
{
    struct countdown all_done;
    struct spawner spawner = {
        .name = name,
        .batches = spawns / batch,
        .batch = batch,
        .as_fibers = as_fibers,
        .all_done = &all_done,
    };

    if (!sample_is_wanted(name))
        return;
    countdown_init(&all_done, 1);
    sample_require(pirn_go(spawner_fiber, &spawner), "pirn_go");
    block_on(&all_done.future);
}

/* Wake. */

struct bell {
    pirn_waker waker;
    bool over;
};

struct dozer {
    pirn_future future;
    struct bell *bell;
};

static struct countdown dozers_left;

static enum pirn_poll dozer_poll(pirn_future *self, pirn_cx *cx)
{
    struct bell *bell = PIRN_CONTAINER_OF(self, struct dozer, future)->bell;

    if (bell->over) {
        countdown_hit(&dozers_left);
        return PIRN_READY;
    }
    pirn_waker_drop(pirn_waker_store(&bell->waker, cx));
    return PIRN_PENDING;
}

static void dozer_drop(pirn_future *self)
{
    struct bell *bell = PIRN_CONTAINER_OF(self, struct dozer, future)->bell;

    pirn_waker_drop(pirn_waker_take(&bell->waker));
}

static const pirn_future_ops dozer_ops = {
    .poll = dozer_poll,
    .drop = dozer_drop,
};

struct waking {
    const char *name;
    struct bell *bells;
    size_t tasks;
    size_t next;
    uint64_t batches;
    struct countdown all_done;
};

/* Neighbours in the order of waking are far from each other in memory. */
static void ring_batch(struct waking *waking)
{
    for (int i = 0; i < BATCH; i++) {
        waking->next = (waking->next + 611953) % waking->tasks;
        pirn_waker_wake(pirn_waker_take(&waking->bells[waking->next].waker));
    }
    sample_require(pirn_yield(), "pirn_yield");
}

static void ring_all(struct waking *waking)
{
    countdown_init(&dozers_left, waking->tasks);
    for (size_t i = 0; i < waking->tasks; i++) {
        waking->bells[i].over = true;
        pirn_waker_wake(pirn_waker_take(&waking->bells[i].waker));
    }
    sample_require(pirn_await(&dozers_left.future, PIRN_NEVER), "pirn_await");
}

static int waking_fiber(void *arg)
{
    struct waking *waking = arg;

    for (size_t i = 0; i < waking->tasks; i++) {
        struct dozer dozer = {{&dozer_ops}, &waking->bells[i]};

        sample_require(pirn_spawn(&dozer.future, sizeof dozer, NULL, NULL),
                       "pirn_spawn");
        if ((i + 1) % BATCH == 0)
            sample_require(pirn_yield(), "pirn_yield");
    }
    for (int i = 0; i < SAMPLES; i++) {
        uint64_t begin_ns = sample_cpu_ns();

        for (uint64_t k = 0; k < waking->batches; k++)
            ring_batch(waking);
        sample_print(waking->name, "ns",
                     (double)(sample_cpu_ns() - begin_ns) /
                         (double)(waking->batches * BATCH));
    }
    ring_all(waking);
    countdown_hit(&waking->all_done);
    return 0;
}

/* `tasks` is a multiple of BATCH and shares no factor with the stride, so that
 * no task is woken twice before it has run. */
static void measure_wake(const char *name, size_t tasks, uint64_t wakes)
{
    struct waking waking = {
        .name = name,
        .bells = calloc(tasks, sizeof(struct bell)),
        .tasks = tasks,
        .batches = wakes / BATCH,
    };

    sample_require(waking.bells == NULL ? -ENOMEM : 0, "calloc");
    countdown_init(&waking.all_done, 1);
    sample_require(pirn_go(waking_fiber, &waking), "pirn_go");
    block_on(&waking.all_done.future);
    free(waking.bells);
}

static void measure_growth(uint64_t scale)
{
    static const size_t counts[] = {1000, 10000, 100000, 1000000};
    uint64_t work = scale * 1000000;
    char name[64];

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        size_t tasks = counts[i];

        snprintf(name, sizeof name, "growth/spawn/%zu", tasks);
        measure_spawn(name, tasks, work, false);
        snprintf(name, sizeof name, "growth/yield/%zu", tasks);
        measure_yield(name, tasks, work, false);
        snprintf(name, sizeof name, "growth/wake/%zu", tasks);
        measure_wake(name, tasks, work);
        if (tasks > 100000)
            continue; /* more stacks than a process may have by default */
        snprintf(name, sizeof name, "growth/spawn_fiber/%zu", tasks);
        measure_spawn(name, tasks, work / 10, true);
        snprintf(name, sizeof name, "growth/yield_fiber/%zu", tasks);
        measure_yield(name, tasks, work, true);
    }
}

static void measure_tasks(uint64_t scale)
{
    uint64_t yields = scale * 400000;

    measure_yield("task/yield_async_1", 1, yields, false);
    measure_yield("task/yield_async_1000", 1000, yields, false);
    measure_yield("task/yield_fiber_1", 1, yields, true);
    measure_yield("task/yield_fiber_1000", 1000, yields, true);
    measure_ping_pong("task/ping_pong_async", scale * 200000, false);
    measure_ping_pong("task/ping_pong_fiber", scale * 200000, true);
    measure_spawn("task/spawn_async", BATCH, scale * 100000, false);
    measure_spawn("task/spawn_fiber", BATCH, scale * 100000, true);
}

int main(int argc, char **argv)
{
    uint64_t scale = sample_has_flag(argc, argv, "--quick") ? 1 : 5;

    sample_choose(argc, argv);
    sample_require(pirn_runtime_new(NULL, &rt), "pirn_runtime_new");
    pirn_runtime_enter(rt);
    if (sample_has_flag(argc, argv, "--growth"))
        measure_growth(scale);
    else
        measure_tasks(scale);
    pirn_runtime_enter(NULL);
    pirn_runtime_unref(rt);
    return 0;
}
