/* SPDX-License-Identifier: MIT */
/* tests/regress/destroy_race.c - wakers, handles and ids are used by many
 * threads while their runtime ends.
 *
 * The sanitizers look on; the counting allocator says that nothing stayed.
 */
#include "sched/runtime_test.h"

enum { THREADS = 16 };

struct ruin {
    struct meter meter;
    pirn_runtime *rt;
    pirn_waker wakers[THREADS];
    pirn_task *task;
    pirn_task_id id;
    struct bell bell;
    tally running;
    tally stop;
};

static enum pirn_poll step_give_wakers(struct probe *probe, pirn_cx *cx)
{
    struct ruin *ruin = probe->arg;

    if (probe->polls > 0)
        return PIRN_PENDING;
    for (int i = 0; i < THREADS; i++)
        ruin->wakers[i] = pirn_waker_clone(cx->waker);
    return PIRN_PENDING;
}

static void ruin_init(struct ruin *ruin)
{
    pirn_spawn_options options = {.name = "listener"};
    struct bell_wait wait;

    *ruin = (struct ruin){.stop = {0}};
    meter_init(&ruin->meter);
    ruin->rt = runtime_on(&ruin->meter);
    bell_init(&ruin->bell);
    spawn_probe(ruin->rt, step_give_wakers, ruin, &ruin->task);
    ruin->id = pirn_task_get_id(ruin->task);
    wait = bell_wait_of(&ruin->bell);
    options.runtime = ruin->rt;
    EXPECT_EQ(0, pirn_spawn(&wait.future, sizeof wait, &options, NULL));
    turn(ruin->rt);
}

static void ruin_end(struct ruin *ruin)
{
    int outcome = join_and_unref(ruin->task);

    /* An unref ends it by force. */
    EXPECT(outcome == -ECANCELED || outcome == PIRN_EABORTED);
    EXPECT_EQ(1, tally_of(&ruin->meter.dones));
    EXPECT_EQ(0, tally_of(&ruin->meter.pieces));
}

/* Each thread has its own way of disturbing. */
static void disturb(void *arg, size_t index)
{
    struct ruin *ruin = arg;
    enum pirn_task_state state;
    unsigned rounds = 0;
    int rc = 0;

    tally_up(&ruin->running);
    while (tally_of(&ruin->stop) == 0) {
        switch (index % 8) {
        case 0:
            rc = pirn_id_wake(ruin->id);
            break;
        case 1:
            rc = pirn_id_state(ruin->id, &state);
            break;
        case 2:
            bell_ring(&ruin->bell);
            break;
        default:
            pirn_waker_wake_by_ref(&ruin->wakers[index]);
            break;
        }
        EXPECT(rc == 0 || rc == -ESRCH);
        /* There are more threads than processors. */
        if (++rounds % 64 == 0)
            sched_yield();
    }
    pirn_waker_wake(ruin->wakers[index]);
}

/* Goal: waking while the runtime is destroyed touches nothing that is gone.
 * Method: sixteen threads wake without pause; the last reference goes with and
 * without a shutdown before. */
TEST(destroy_while_sixteen_threads_wake)
{
    size_t rounds = test_size(10, 50, 1000);

    for (size_t i = 0; i < rounds; i++) {
        struct ruin ruin;
        struct crew crew;

        ruin_init(&ruin);
        crew_start(&crew, THREADS, disturb, &ruin);
        wait_for_tally(&ruin.running, THREADS);
        if (i % 2 == 0)
            EXPECT_EQ(0, pirn_runtime_shutdown(ruin.rt, PIRN_NEVER, NULL));
        pirn_runtime_unref(ruin.rt);
        tally_up(&ruin.stop);
        crew_join(&crew);
        ruin_end(&ruin);
    }
}

/* Let go of one waker each, at the same time as the others. */
static void let_go(void *arg, size_t index)
{
    struct ruin *ruin = arg;

    tally_up(&ruin->running);
    wait_for_tally(&ruin->running, THREADS + 1);
    if (index % 2 == 0)
        pirn_waker_drop(ruin->wakers[index]);
    else
        pirn_waker_wake(ruin->wakers[index]);
}

/* Goal: of the many who hold the memory the last one frees it, once.
 * Method: all let go together: wakers, the handle, and the runtime. */
TEST(destroy_together_with_the_last_wakers)
{
    size_t rounds = test_size(10, 200, 5000);

    for (size_t i = 0; i < rounds; i++) {
        struct ruin ruin;
        struct crew crew;

        ruin_init(&ruin);
        crew_start(&crew, THREADS, let_go, &ruin);
        while (tally_of(&ruin.running) < THREADS)
            sched_yield();
        tally_up(&ruin.running);
        pirn_runtime_unref(ruin.rt);
        crew_join(&crew);
        ruin_end(&ruin);
    }
}
