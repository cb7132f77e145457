/* SPDX-License-Identifier: MIT */
/* src/sync/notify_model.c - notifications between threads. */
#include <pirn/notify.h>

#include "engine/model_home.h"

static pirn_notify notify;
static pirn_notify_op ops[2];
static struct model_bell bells[2];
static enum pirn_poll polls[2];
static PIRN_ATOMIC(int) condition;

static void prepare(int index)
{
    pirn_notify_wait_init(&ops[index], &notify);
}

static void poll(int index)
{
    polls[index] = model_bell_poll(&bells[index], &ops[index].future);
}

static void check_reached(int index)
{
    if (polls[index] == PIRN_READY)
        return;
    EXPLORE_CHECK(model_bell_rang(&bells[index]));
    poll(index);
    EXPLORE_CHECK(polls[index] == PIRN_READY);
    EXPLORE_CHECK(model_bell_wakers(&bells[index]) == 0);
}

static void make_true_and_notify(void *arg)
{
    (void)arg;
    pirn__store(&condition, 1, relaxed);
    pirn_notify_one(&notify);
}

static void look_and_wait(void *arg)
{
    (void)arg;
    prepare(0);
    polls[0] = PIRN_READY;
    if (pirn__load(&condition, relaxed) == 0)
        poll(0);
}

/* Goal: between the look at the condition and the wait no notification is lost,
 * and the condition is seen after it. */
MODEL(notify_one_against_look_and_wait, .preemptions = 4)
{
    pirn_notify_init(&notify);
    explore_thread(make_true_and_notify, NULL);
    explore_thread(look_and_wait, NULL);
    explore_join();
    check_reached(0);
    EXPLORE_CHECK(pirn__load(&condition, relaxed) == 1);
}

static void notify_one(void *arg)
{
    (void)arg;
    pirn_notify_one(&notify);
}

static void notify_last(void *arg)
{
    (void)arg;
    pirn_notify_last(&notify);
}

static void drop_first(void *arg)
{
    (void)arg;
    pirn_future_drop(&ops[0].future);
}

static void begin_with_two(void)
{
    pirn_notify_init(&notify);
    for (int i = 0; i < 2; i++) {
        prepare(i);
        poll(i);
    }
}

/* Goal: a notification for one that is dropped reaches the other, or is kept.
 */
MODEL(notify_one_against_drop, .preemptions = 4)
{
    begin_with_two();
    explore_thread(notify_one, NULL);
    explore_thread(drop_first, NULL);
    explore_join();
    EXPLORE_CHECK(model_bell_wakers(&bells[0]) == 0);
    check_reached(1);
    EXPLORE_CHECK(pirn_notify_try_wait(&notify) < 0);
}

/* Goal: two notifications, the first and the last, reach two. */
MODEL(notify_one_and_last_reach_two, .preemptions = 3)
{
    begin_with_two();
    explore_thread(notify_one, NULL);
    explore_thread(notify_last, NULL);
    explore_join();
    check_reached(0);
    check_reached(1);
}

/* Goal: with two notifications and a drop, one is left, and one only. */
MODEL(notify_two_against_drop, .preemptions = 2)
{
    begin_with_two();
    explore_thread(notify_one, NULL);
    explore_thread(notify_last, NULL);
    explore_thread(drop_first, NULL);
    explore_join();
    EXPLORE_CHECK(model_bell_wakers(&bells[0]) == 0);
    check_reached(1);
    EXPLORE_CHECK(pirn_notify_try_wait(&notify) == 0);
    EXPLORE_CHECK(pirn_notify_try_wait(&notify) < 0);
}

static void make_true_and_notify_all(void *arg)
{
    (void)arg;
    pirn__store(&condition, 1, relaxed);
    pirn_notify_all(&notify);
}

/* Goal: who has prepared before it looked is reached by all. */
MODEL(notify_all_against_look_and_wait, .preemptions = 4)
{
    pirn_notify_init(&notify);
    prepare(1);
    poll(1);
    explore_thread(make_true_and_notify_all, NULL);
    explore_thread(look_and_wait, NULL);
    explore_join();
    check_reached(0);
    check_reached(1);
    EXPLORE_CHECK(pirn_notify_try_wait(&notify) < 0);
}

static void notify_all(void *arg)
{
    (void)arg;
    pirn_notify_all(&notify);
}

static void drop_second_and_come_again(void *arg)
{
    (void)arg;
    pirn_future_drop(&ops[1].future);
    prepare(1);
    poll(1);
}

/* Goal: one that leaves, or comes, while all are woken batch by batch upsets
 * nobody.
 * Method: a batch is one waker here. */
MODEL(notify_all_against_drop, .preemptions = 4)
{
    begin_with_two();
    explore_thread(notify_all, NULL);
    explore_thread(drop_second_and_come_again, NULL);
    explore_join();
    check_reached(0);
    if (polls[1] == PIRN_PENDING)
        pirn_future_drop(&ops[1].future);
    EXPLORE_CHECK(model_bell_wakers(&bells[1]) == 0);
    EXPLORE_CHECK(pirn_notify_try_wait(&notify) < 0);
    pirn_notify_deinit(&notify);
}

static PIRN_SHARED(int) guarded;

static void write_and_notify(void *arg)
{
    (void)arg;
    pirn_cell_write(&guarded, 1);
    pirn_notify_one(&notify);
}

static void take_and_read(void *arg)
{
    (void)arg;
    if (pirn_notify_try_wait(&notify) == 0)
        EXPLORE_CHECK(pirn_cell_read(&guarded) == 1);
}

/* Goal: what was written before a notification is seen by who takes it. */
MODEL(notify_carries_data, .preemptions = 3)
{
    pirn_notify_init(&notify);
    explore_thread(write_and_notify, NULL);
    explore_thread(take_and_read, NULL);
    explore_join();
}
