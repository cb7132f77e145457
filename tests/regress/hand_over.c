/* SPDX-License-Identifier: MIT */
/* tests/regress/hand_over.c - the driver's seat goes from thread to thread and
 * no task is left behind. */
#include <sched.h>

#include "sched/runtime_test.h"

static int count_up(void *arg)
{
    tally_up(arg);
    return 0;
}

enum { CHILDREN = 1000 };

static int spawn_children(void *arg)
{
    for (int i = 0; i < CHILDREN; i++)
        EXPECT_EQ(0, pirn_go(count_up, arg));
    return 0;
}

struct relay {
    pirn_runtime *rt;
    tally runs;
};

static void spawn_and_leave(void *arg, size_t index)
{
    struct relay *relay = arg;
    pirn_join_op join;
    pirn_task *task = go_task(relay->rt, spawn_children, &relay->runs);

    (void)index;
    pirn_join_init(&join, task);
    EXPECT_EQ(0, pirn_block_on(relay->rt, &join.future, PIRN_NEVER));
    EXPECT_EQ(0, join.outcome);
    pirn_task_unref(task);
}

static enum pirn_poll step_wait_for_all(struct probe *probe, pirn_cx *cx)
{
    if (tally_of(probe->arg) == CHILDREN)
        return PIRN_READY;
    pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

/* Goal: what one driver left in its queues the next one runs.
 * Method: thread A spawns a thousand tasks under block_on and returns; this
 * thread drives then. */
TEST(hand_over_of_queued_tasks_to_the_next_driver)
{
    struct relay relay = {.rt = runtime_new()};
    struct probe probe = probe_of(step_wait_for_all, &relay.runs, NULL);

    on_another_thread(spawn_and_leave, &relay);
    EXPECT_EQ(0, pirn_block_on(relay.rt, &probe.future, PIRN_NEVER));
    EXPECT_EQ(CHILDREN + 1, runtime_end(relay.rt).completed);
}

enum { JOINERS = 4 };

/* Several plain threads that wait, each for a task of its own. */
struct queue {
    pirn_runtime *rt;
    size_t rounds;
    tally arrived;
};

/* The tasks of one round end together, so that threads which were woken for the
 * seat find that they need it no more. */
static int end_together(void *arg)
{
    struct queue *queue = arg;
    uint64_t round = tally_up(&queue->arrived) / JOINERS;

    while (tally_of(&queue->arrived) < (round + 1) * JOINERS) {
        EXPECT_EQ(0, pirn_yield());
        /* The others may have to share a processor with us. */
        (void)sched_yield();
    }
    return 0;
}

static void join_many(void *arg, size_t index)
{
    struct queue *queue = arg;

    (void)index;
    for (size_t i = 0; i < queue->rounds; i++)
        EXPECT_EQ(0, join_and_unref(go_task(queue->rt, end_together, queue)));
}

/* Goal: a thread that waits is never left beside a free seat.
 * Method: four threads join tasks, round after round, and drive in turn; nobody
 * else drives. */
TEST(hand_over_among_waiting_threads)
{
    struct queue queue = {.rt = runtime_new(),
                          .rounds = test_size(100, 5000, 100000)};
    struct crew crew;

    crew_start(&crew, JOINERS, join_many, &queue);
    crew_join(&crew);
    EXPECT_EQ(JOINERS * queue.rounds, runtime_end(queue.rt).completed);
}

static void block_on_many(void *arg, size_t index)
{
    struct queue *queue = arg;

    (void)index;
    for (size_t i = 0; i < queue->rounds; i++) {
        pirn_join_op join;
        pirn_task *task = go_task(queue->rt, count_up, &queue->arrived);

        pirn_join_init(&join, task);
        EXPECT_EQ(0, pirn_block_on(queue->rt, &join.future, PIRN_NEVER));
        pirn_task_unref(task);
    }
}

static int yield_a_few_times(void *arg)
{
    for (int i = 0; i < 5; i++)
        EXPECT_EQ(0, pirn_yield());
    return count_up(arg);
}

static void join_until_late(void *arg, size_t index)
{
    struct queue *queue = arg;

    (void)index;
    for (size_t i = 0; i < queue->rounds; i++) {
        pirn_task *task =
            go_task(queue->rt, yield_a_few_times, &queue->arrived);
        int outcome;
        int rc = pirn_task_join(task, pirn_after_us(20), &outcome);

        EXPECT(rc == 0 || rc == -ETIMEDOUT);
        pirn_task_unref(task);
    }
}

/* Goal: the same with a thread that makes host calls and threads that give up
 * early among them.
 * Method: all at once; every task must have run at the end. */
TEST(hand_over_among_host_calls_and_waiting_threads)
{
    struct queue queue = {.rt = runtime_new(),
                          .rounds = test_size(50, 5000, 100000)};
    struct queue together = {.rt = queue.rt, .rounds = queue.rounds};
    struct crew host;
    struct crew joiners;
    struct crew hurried;

    crew_start(&host, 1, block_on_many, &queue);
    crew_start(&joiners, JOINERS, join_many, &together);
    crew_start(&hurried, 2, join_until_late, &queue);
    crew_join(&host);
    crew_join(&joiners);
    crew_join(&hurried);
    /* Tasks whose joiner went early have nobody to drive them. */
    while (tally_of(&queue.arrived) < 3 * queue.rounds)
        turn(queue.rt);
    EXPECT_EQ((3 + JOINERS) * queue.rounds, runtime_end(queue.rt).spawned);
}
