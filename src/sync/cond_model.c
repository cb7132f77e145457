/* SPDX-License-Identifier: MIT */
/* src/sync/cond_model.c - conditions and barriers between threads. */
#include <pirn/barrier.h>
#include <pirn/cond.h>

#include "engine/model_home.h"

static pirn_cond cond;
static pirn_mutex mutex;
static pirn_cond_wait_op ops[2];
static struct model_bell bells[2];
static PIRN_SHARED(int) condition; /* mutex */
static bool waits;

static void wait_until_true(void *arg)
{
    (void)arg;
    if (pirn_mutex_try_lock(&mutex) < 0)
        return;
    if (pirn_cell_read(&condition) == 1) {
        pirn_mutex_unlock(&mutex);
        return;
    }
    pirn_cond_wait_init(&ops[0], &cond, &mutex);
    waits = model_bell_poll(&bells[0], &ops[0].future) == PIRN_PENDING;
    EXPLORE_CHECK(waits);
}

static void make_true_and_signal(void *arg)
{
    (void)arg;
    if (pirn_mutex_try_lock(&mutex) < 0)
        return;
    pirn_cell_write(&condition, 1);
    pirn_cond_signal(&cond);
    pirn_mutex_unlock(&mutex);
}

/* Goal: a signal under the mutex does not miss a wait that has seen the
 * condition false. */
MODEL(cond_signal_against_wait, .preemptions = 4)
{
    explore_thread(wait_until_true, NULL);
    explore_thread(make_true_and_signal, NULL);
    explore_join();
    if (waits && pirn_cell_read(&condition) == 1) {
        EXPLORE_CHECK(model_bell_rang(&bells[0]));
        EXPLORE_CHECK(model_bell_poll(&bells[0], &ops[0].future) == PIRN_READY);
        pirn_mutex_unlock(&mutex);
    } else if (waits) {
        pirn_future_drop(&ops[0].future);
    }
    pirn_mutex_deinit(&mutex);
    pirn_cond_deinit(&cond);
}

static void signal_one(void *arg)
{
    (void)arg;
    pirn_cond_signal(&cond);
}

static void drop_first(void *arg)
{
    (void)arg;
    /* It may get as far as the mutex. */
    if (model_bell_poll(&bells[0], &ops[0].future) == PIRN_READY)
        pirn_mutex_unlock(&mutex);
    else
        pirn_future_drop(&ops[0].future);
}

/* Goal: a signal for a wait that is dropped reaches the other; one that was
 * used does not. */
MODEL(cond_signal_against_drop, .preemptions = 3)
{
    for (int i = 0; i < 2; i++) {
        EXPLORE_CHECK(pirn_mutex_try_lock(&mutex) == 0);
        pirn_cond_wait_init(&ops[i], &cond, &mutex);
        EXPLORE_CHECK(model_bell_poll(&bells[i], &ops[i].future) ==
                      PIRN_PENDING);
    }
    explore_thread(signal_one, NULL);
    explore_thread(drop_first, NULL);
    explore_join();
    EXPLORE_CHECK(model_bell_rang(&bells[1]) != ops[0].locked);
    pirn_future_drop(&ops[1].future);
    pirn_mutex_deinit(&mutex);
    pirn_cond_deinit(&cond);
}

static pirn_barrier barrier;
static pirn_barrier_op comers[3];
static PIRN_SHARED(int) parts[2];

static void bring_part(void *arg)
{
    int index = *(int *)arg;

    pirn_cell_write(&parts[index], 1);
    pirn_barrier_wait_init(&comers[index], &barrier);
    if (model_bell_poll(&bells[index], &comers[index].future) == PIRN_PENDING)
        return;
    EXPLORE_CHECK(comers[index].is_leader);
    EXPLORE_CHECK(pirn_cell_read(&parts[1 - index]) == 1);
}

static int numbers[2] = {0, 1};

/* Goal: two meet: one leads and sees what the other brought, who is woken. */
MODEL(barrier_two_meet, .preemptions = 4)
{
    EXPLORE_CHECK(pirn_barrier_init(&barrier, 2) == 0);
    explore_thread(bring_part, &numbers[0]);
    explore_thread(bring_part, &numbers[1]);
    explore_join();
    EXPLORE_CHECK(comers[0].is_leader != comers[1].is_leader);
    for (int i = 0; i < 2; i++) {
        if (comers[i].is_leader)
            continue;
        EXPLORE_CHECK(model_bell_rang(&bells[i]));
        EXPLORE_CHECK(model_bell_poll(&bells[i], &comers[i].future) ==
                      PIRN_READY);
    }
    pirn_barrier_deinit(&barrier);
}

static void give_up(void *arg)
{
    (void)arg;
    pirn_future_drop(&comers[0].future);
}

static void come(void *arg)
{
    (void)arg;
    pirn_barrier_wait_init(&comers[1], &barrier);
    if (model_bell_poll(&bells[1], &comers[1].future) == PIRN_PENDING)
        pirn_future_drop(&comers[1].future);
}

/* Goal: one that gives up while the round ends does not upset the next. */
MODEL(barrier_drop_against_the_last, .preemptions = 4)
{
    EXPLORE_CHECK(pirn_barrier_init(&barrier, 2) == 0);
    pirn_barrier_wait_init(&comers[0], &barrier);
    EXPLORE_CHECK(model_bell_poll(&bells[0], &comers[0].future) ==
                  PIRN_PENDING);
    explore_thread(give_up, NULL);
    explore_thread(come, NULL);
    explore_join();
    EXPLORE_CHECK(barrier.arrived_ == 0);
    pirn_barrier_deinit(&barrier);
}

static void give_up_second(void *arg)
{
    (void)arg;
    pirn_future_drop(&comers[1].future);
}

static void come_last(void *arg)
{
    (void)arg;
    pirn_barrier_wait_init(&comers[2], &barrier);
    if (model_bell_poll(&bells[1], &comers[2].future) == PIRN_PENDING)
        pirn_future_drop(&comers[2].future);
}

/* Goal: the same for one that gives up while the others of its round are woken.
 * Method: two are in line, and a batch is one waker here. */
MODEL(barrier_drop_while_the_round_ends, .preemptions = 4)
{
    EXPLORE_CHECK(pirn_barrier_init(&barrier, 3) == 0);
    for (int i = 0; i < 2; i++) {
        pirn_barrier_wait_init(&comers[i], &barrier);
        EXPLORE_CHECK(model_bell_poll(&bells[0], &comers[i].future) ==
                      PIRN_PENDING);
    }
    explore_thread(come_last, NULL);
    explore_thread(give_up_second, NULL);
    explore_join();
    EXPLORE_CHECK(barrier.arrived_ == (comers[2].is_leader ? 0 : 1));
    pirn_future_drop(&comers[0].future);
    EXPLORE_CHECK(barrier.arrived_ == 0);
    pirn_barrier_deinit(&barrier);
}
