/* SPDX-License-Identifier: MIT */
/* tests/regress/lost_wake.c - a wake that comes just before the driver goes to
 * sleep.
 *
 * Each test repeats one hand-over between two threads so often, and so tightly,
 * that every order of the steps occurs.  A lost wake hangs the test and the
 * engine ends it.
 */
#include <poll.h>

#include "sched/runtime_test.h"

struct duel {
    pirn_runtime *rt;
    size_t rounds;
    struct bell bell;
};

static void ring_when_waited_for(void *arg, size_t index)
{
    struct duel *duel = arg;

    (void)index;
    for (size_t i = 0; i < duel->rounds; i++) {
        /* No yield: the wake shall come at once. */
        while (tally_of(&duel->bell.waiting) <= i)
            pirn__spin_hint();
        for (size_t pause = i % 128; pause > 0; pause--)
            pirn__spin_hint();
        bell_ring(&duel->bell);
    }
}

/* Every wait must have waited, so that the ringer counts along. */
static int wait_in_turn(struct duel *duel, size_t round, pirn_runtime *rt)
{
    struct bell_wait wait = bell_wait_of(&duel->bell);
    int rc = rt != NULL ? pirn_block_on(rt, &wait.future, PIRN_NEVER)
                        : pirn_await(&wait.future, PIRN_NEVER);

    /* Spurious polls count twice; start the next round level. */
    EXPECT_GE(tally_of(&duel->bell.waiting), round + 1);
    tally_set(&duel->bell.waiting, round + 1);
    return rc;
}

/* Goal: block_on ends when another thread wakes its future, whenever that is.
 * Method: ring a moment after each poll; the moment grows from round to
 * round. */
TEST(lost_wake_of_a_future_under_block_on)
{
    struct duel duel = {.rt = runtime_new(),
                        .rounds = test_size(2000, 50000, 500000)};
    struct crew crew;

    bell_init(&duel.bell);
    crew_start(&crew, 1, ring_when_waited_for, &duel);
    for (size_t i = 0; i < duel.rounds; i++)
        EXPECT_EQ(0, wait_in_turn(&duel, i, duel.rt));
    crew_join(&crew);
    runtime_end(duel.rt);
}

static int wait_as_fiber(void *arg)
{
    struct duel *duel = arg;

    for (size_t i = 0; i < duel->rounds; i++)
        EXPECT_EQ(0, wait_in_turn(duel, i, NULL));
    return 0;
}

/* Goal: the same for a task, while a plain thread drives.
 * Method: join here. */
TEST(lost_wake_of_a_task_while_a_waiting_thread_drives)
{
    struct duel duel = {.rt = runtime_new(),
                        .rounds = test_size(2000, 50000, 200000)};
    struct crew crew;

    bell_init(&duel.bell);
    crew_start(&crew, 1, ring_when_waited_for, &duel);
    EXPECT_EQ(0, join_and_unref(go_task(duel.rt, wait_as_fiber, &duel)));
    crew_join(&crew);
    runtime_end(duel.rt);
}

static int next_wait_ms(pirn_runtime *rt)
{
    pirn_deadline next = pirn_runtime_next_deadline(rt);
    uint64_t now = pirn_now_ns();

    if (next.ns == UINT64_MAX)
        return -1;
    return next.ns <= now ? 0 : (int)((next.ns - now) / 1000000) + 1;
}

/* Goal: a host's own loop that waits for the descriptor and the next deadline
 * loses no wake between two turns.
 * Method: it waits without a limit while a fiber waits for its bell. */
TEST(lost_wake_of_a_host_between_turns)
{
    struct duel duel = {.rt = runtime_new(),
                        .rounds = test_size(2000, 30000, 500000)};
    struct pollfd fd = {.fd = pirn_runtime_fd(duel.rt), .events = POLLIN};
    struct crew crew;
    pirn_task *task;

    bell_init(&duel.bell);
    task = go_task(duel.rt, wait_as_fiber, &duel);
    crew_start(&crew, 1, ring_when_waited_for, &duel);
    while (!pirn_task_is_done(task)) {
        EXPECT_GE(poll(&fd, 1, next_wait_ms(duel.rt)), 0);
        turn(duel.rt);
    }
    EXPECT_EQ(0, join_and_unref(task));
    crew_join(&crew);
    runtime_end(duel.rt);
}

static void join_repeatedly(void *arg, size_t index)
{
    struct duel *duel = arg;
    pirn_task *task = go_task(duel->rt, hear_bell, &duel->bell);

    (void)index;
    EXPECT_EQ(0, join_and_unref(task));
}

/* Goal: a host call gets the seat from a plain thread that drives, even if it
 * asks just before that one goes to sleep.
 * Method: take it many times while the thread joins one long task. */
TEST(lost_wake_of_a_waiting_thread_that_is_asked_to_leave)
{
    struct duel duel = {.rt = runtime_new(),
                        .rounds = test_size(1000, 20000, 400000)};
    struct crew crew;

    bell_init(&duel.bell);
    crew_start(&crew, 1, join_repeatedly, &duel);
    wait_for_tally(&duel.bell.waiting, 1);
    for (size_t i = 0; i < duel.rounds; i++) {
        struct probe probe = probe_of(step_ready, NULL, NULL);

        EXPECT_EQ(0, pirn_block_on(duel.rt, &probe.future, PIRN_NEVER));
        for (size_t pause = i % 256; pause > 0; pause--)
            pirn__spin_hint();
    }
    bell_ring(&duel.bell);
    crew_join(&crew);
    runtime_end(duel.rt);
}

struct idle {
    pirn_runtime *rt;
    struct bell bell;
    int rc;
};

static void idle_in_block_on(void *arg, size_t index)
{
    struct idle *idle = arg;

    (void)index;
    idle->rc = bell_block_on(idle->rt, &idle->bell, PIRN_NEVER);
}

/* Goal: shutdown reaches a driver that is about to sleep with nothing to do.
 * Method: stop a runtime without tasks right after the only poll there is. */
TEST(lost_wake_of_a_driver_whose_runtime_stops)
{
    size_t rounds = test_size(50, 500, 10000);

    for (size_t i = 0; i < rounds; i++) {
        struct idle idle = {.rt = runtime_new()};
        struct crew crew;

        bell_init(&idle.bell);
        crew_start(&crew, 1, idle_in_block_on, &idle);
        while (tally_of(&idle.bell.waiting) == 0)
            pirn__spin_hint();
        for (size_t pause = i % 64; pause > 0; pause--)
            pirn__spin_hint();
        runtime_end(idle.rt);
        crew_join(&crew);
        EXPECT_EQ(PIRN_ESHUTDOWN, idle.rc);
    }
}

enum { WAKERS = 8 };

/* A task that nobody but foreign threads wakes. */
struct target {
    pirn_runtime *rt;
    pirn_waker waker; /* complete when `ready` is set */
    tally ready;
    tally posted; /* raised before each wake */
    tally seen;   /* what the task last saw of it */
    size_t each;
};

static enum pirn_poll step_see(struct probe *probe, pirn_cx *cx)
{
    struct target *target = probe->arg;

    if (probe->polls == 0) {
        target->waker = pirn_waker_clone(cx->waker);
        tally_up(&target->ready);
    }
    tally_set(&target->seen, tally_of(&target->posted));
    return PIRN_PENDING;
}

static void wake_many_times(void *arg, size_t index)
{
    struct target *target = arg;
    uint64_t random = index + 1;

    wait_for_tally(&target->ready, 1);
    for (size_t i = 0; i < target->each; i++) {
        tally_up(&target->posted);
        pirn_waker_wake_by_ref(&target->waker);
        random = random * 6364136223846793005u + 1442695040888963407u;
        for (uint64_t pause = random >> 56; pause > 0; pause--)
            pirn__spin_hint();
    }
}

static void wake_then_cancel(void *arg, size_t index)
{
    struct target *target = *(struct target **)arg;
    pirn_task *task = ((pirn_task **)arg)[1];
    struct crew crew;

    (void)index;
    crew_start(&crew, WAKERS, wake_many_times, target);
    crew_join(&crew);
    wait_for_tally(&target->seen, WAKERS * target->each);
    pirn_task_cancel(task);
}

/* Goal: of wakes from eight foreign threads the last one is never lost, and
 * after them a cancel still ends the task.
 * Method: each raises a counter and wakes; the task must see its last value. */
TEST(lost_wake_from_eight_foreign_threads)
{
    struct target target = {.rt = runtime_new(),
                            .each = test_size(1000, 20000, 250000)};
    void *both[2] = {&target, NULL};
    struct crew crew;
    pirn_join_op join;
    pirn_task *task;

    spawn_probe(target.rt, step_see, &target, &task);
    both[1] = task;
    crew_start(&crew, 1, wake_then_cancel, both);
    pirn_join_init(&join, task);
    EXPECT_EQ(0, pirn_block_on(target.rt, &join.future, PIRN_NEVER));
    EXPECT_EQ(-ECANCELED, join.outcome);
    crew_join(&crew);
    pirn_waker_drop(target.waker);
    pirn_task_unref(task);
    runtime_end(target.rt);
}
