/* SPDX-License-Identifier: MIT */
/* src/sync/once_model.c - the once cell between threads. */
#include <pirn/once.h>

#include "engine/model_home.h"

static pirn_once once;
static pirn_once_begin_op ops[2];
static struct model_bell bells[2];
static enum pirn_poll polls[2];
static PIRN_SHARED(int) value;
static PIRN_ATOMIC(int) makings;

static void check_made(void)
{
    EXPLORE_CHECK(pirn_cell_read(&value) == 7);
}

static void make(void)
{
    pirn_cell_write(&value, 7);
    pirn__add(&makings, 1, relaxed);
    pirn_once_finish(&once);
}

/* One poll, and what follows if it is READY. */
static void go_on(int index)
{
    polls[index] = model_bell_poll(&bells[index], &ops[index].future);
    if (polls[index] == PIRN_PENDING)
        return;
    if (ops[index].must_make)
        make();
    else
        check_made();
}

static void use(void *arg)
{
    int index = *(int *)arg;

    pirn_once_begin_init(&ops[index], &once);
    go_on(index);
}

static void finish_waiting(int index)
{
    if (polls[index] == PIRN_READY)
        return;
    EXPLORE_CHECK(model_bell_rang(&bells[index]));
    go_on(index);
    EXPLORE_CHECK(polls[index] == PIRN_READY);
    EXPLORE_CHECK(model_bell_wakers(&bells[index]) == 0);
}

static int numbers[2] = {0, 1};

/* Goal: made once, and whoever is told so sees what was made. */
MODEL(once_two_users, .preemptions = 4)
{
    pirn_once_init(&once);
    explore_thread(use, &numbers[0]);
    explore_thread(use, &numbers[1]);
    explore_join();
    finish_waiting(0);
    finish_waiting(1);
    EXPLORE_CHECK(pirn__load(&makings, relaxed) == 1);
    pirn_once_deinit(&once);
}

static void finish(void *arg)
{
    (void)arg;
    make();
}

static void look(void *arg)
{
    (void)arg;
    if (pirn_once_is_done(&once))
        check_made();
}

/* Goal: the same for who only looks. */
MODEL(once_is_done_publishes, .preemptions = 3)
{
    pirn_once_init(&once);
    EXPLORE_CHECK(pirn_once_try_begin(&once) == 1);
    explore_thread(finish, NULL);
    explore_thread(look, NULL);
    explore_join();
}

static void abandon(void *arg)
{
    (void)arg;
    pirn_once_abandon(&once);
}

static void drop_first(void *arg)
{
    (void)arg;
    pirn_future_drop(&ops[0].future);
}

static void begin_with_two(void)
{
    pirn_once_init(&once);
    EXPLORE_CHECK(pirn_once_try_begin(&once) == 1);
    for (int i = 0; i < 2; i++) {
        pirn_once_begin_init(&ops[i], &once);
        polls[i] = model_bell_poll(&bells[i], &ops[i].future);
    }
}

/* Goal: an abandoned making reaches one that waits, whoever is dropped
 * meanwhile. */
MODEL(once_abandon_against_drop, .preemptions = 4)
{
    begin_with_two();
    explore_thread(abandon, NULL);
    explore_thread(drop_first, NULL);
    explore_join();
    finish_waiting(1);
    EXPLORE_CHECK(ops[1].must_make);
    EXPLORE_CHECK(pirn_once_is_done(&once));
    pirn_once_deinit(&once);
}

/* Goal: an abandon and a newcomer do not miss each other. */
MODEL(once_abandon_against_newcomer, .preemptions = 4)
{
    pirn_once_init(&once);
    EXPLORE_CHECK(pirn_once_try_begin(&once) == 1);
    explore_thread(abandon, NULL);
    explore_thread(use, &numbers[0]);
    explore_join();
    finish_waiting(0);
    EXPLORE_CHECK(pirn__load(&makings, relaxed) == 1);
    pirn_once_deinit(&once);
}
