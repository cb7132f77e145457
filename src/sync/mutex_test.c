/* SPDX-License-Identifier: MIT */
/* src/sync/mutex_test.c - the mutex, polled by hand. */
#include <pirn/mutex.h>

#include <errno.h>
#include <string.h>

#include <pirn/fiber.h>
#include <pirn/time.h>

#include "engine/one_thread.h"
#include "engine/poller.h"
#include "sync/waitlist.h"

static poller lock(pirn_mutex_lock_op *op, pirn_mutex *mutex)
{
    pirn_mutex_lock_init(op, mutex);
    return (poller){.fut = &op->future};
}

/* Goal: a mutex is locked once at a time, made either way. */
TEST(mutex_is_locked_once_at_a_time)
{
    pirn_mutex by_init, by_macro = PIRN_MUTEX_INIT;

    pirn_mutex_init(&by_init);
    EXPECT_EQ(0, pirn_mutex_try_lock(&by_init));
    EXPECT_EQ(-EAGAIN, pirn_mutex_try_lock(&by_init));
    EXPECT_EQ(-ETIMEDOUT, pirn_mutex_lock(&by_init, PIRN_EXPIRED));
    pirn_mutex_unlock(&by_init);
    EXPECT_EQ(0, pirn_mutex_lock(&by_macro, PIRN_EXPIRED));
    pirn_mutex_unlock(&by_macro);
    pirn_mutex_deinit(&by_init);
    pirn_mutex_deinit(&by_macro);
}

/* Goal: an unlock hands the mutex over in the order of coming, and nobody
 * passes.
 * Method: A and B wait; a newcomer tries between the unlock and A's next poll.
 */
TEST(mutex_is_handed_over_in_order)
{
    pirn_mutex mutex = PIRN_MUTEX_INIT;
    pirn_mutex_lock_op a_op, b_op;
    poller a = lock(&a_op, &mutex), b = lock(&b_op, &mutex);

    EXPECT_EQ(0, pirn_mutex_try_lock(&mutex));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&b));
    pirn_mutex_unlock(&mutex);
    EXPECT_EQ(1, a.wakes);
    EXPECT_EQ(0, b.wakes);
    EXPECT_EQ(-EAGAIN, pirn_mutex_try_lock(&mutex));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&b));
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    pirn_mutex_unlock(&mutex);
    EXPECT_EQ(1, b.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&b));
    pirn_mutex_unlock(&mutex);
    EXPECT_EQ(0, pirn_mutex_try_lock(&mutex));
    pirn_mutex_unlock(&mutex);
    pirn_mutex_deinit(&mutex);
}

/* Goal: a mutex handed to a future that is then dropped goes to the next. */
TEST(mutex_drop_after_hand_over_passes_on)
{
    pirn_mutex mutex = PIRN_MUTEX_INIT;
    pirn_mutex_lock_op a_op, b_op;
    poller a = lock(&a_op, &mutex), b = lock(&b_op, &mutex);

    EXPECT_EQ(0, pirn_mutex_try_lock(&mutex));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&b));
    pirn_mutex_unlock(&mutex);
    poller_drop(&a);
    EXPECT_EQ(1, b.wakes);
    EXPECT_EQ(-EAGAIN, pirn_mutex_try_lock(&mutex));
    poller_drop(&b);
    EXPECT_EQ(0, pirn_mutex_try_lock(&mutex));
    pirn_mutex_unlock(&mutex);
    pirn_mutex_deinit(&mutex);
}

/* Goal: who leaves the line is forgotten, and the last one leaves the mutex as
 * if nobody had waited. */
TEST(mutex_waiter_that_gives_up_is_forgotten)
{
    pirn_mutex mutex = PIRN_MUTEX_INIT;
    pirn_mutex_lock_op a_op, b_op;
    poller a = lock(&a_op, &mutex), b = lock(&b_op, &mutex);

    EXPECT_EQ(0, pirn_mutex_try_lock(&mutex));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&b));
    poller_drop(&a);
    pirn_mutex_unlock(&mutex);
    EXPECT_EQ(0, a.wakes);
    EXPECT_EQ(1, b.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&b));
    a = lock(&a_op, &mutex);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    poller_drop(&a);
    pirn_mutex_unlock(&mutex);
    pirn_mutex_deinit(&mutex);
}

/* Goal: the result nobody wants is an unlock; an operation never polled is
 * nothing. */
TEST(mutex_discard_unlocks)
{
    pirn_mutex mutex = PIRN_MUTEX_INIT;
    pirn_mutex_lock_op op;
    poller a = lock(&op, &mutex);

    poller_drop(&a);
    a = lock(&op, &mutex);
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    EXPECT_EQ(-EAGAIN, pirn_mutex_try_lock(&mutex));
    pirn_future_discard(&op.future);
    pirn_mutex_deinit(&mutex);
}

/* Goal: each lock costs one unit of budget. */
TEST(mutex_lock_spends_budget)
{
    struct pirn__turn turn = {.budget = 1};
    pirn_mutex mutex = PIRN_MUTEX_INIT;
    pirn_mutex_lock_op op;
    poller a = lock(&op, &mutex);

    a.turn = &turn;
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    pirn_mutex_unlock(&mutex);
    a = lock(&op, &mutex);
    a.turn = &turn;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT(turn.deferred);
    EXPECT_EQ(0, pirn_mutex_try_lock(&mutex));
    pirn_mutex_unlock(&mutex);
    poller_drop(&a);
}

static void unlock_again(void *arg)
{
    pirn_mutex_unlock(arg);
}

static void deinit_mutex(void *arg)
{
    pirn_mutex_deinit(arg);
}

/* Goal: broken rules abort. */
TEST(mutex_broken_rules_abort)
{
    pirn_mutex mutex = PIRN_MUTEX_INIT;

    EXPECT_DEATH(unlock_again, &mutex, "only a locked mutex");
    EXPECT_EQ(0, pirn_mutex_try_lock(&mutex));
    EXPECT_DEATH(deinit_mutex, &mutex, "is unlocked");
}

/* Goal: it says what it waits for. */
TEST(mutex_lock_describes_itself)
{
    char buf[64];
    pirn_text text = {buf, sizeof buf, 0};
    pirn_mutex mutex = PIRN_MUTEX_INIT;
    pirn_mutex_lock_op op;

    pirn_mutex_lock_init(&op, &mutex);
    pirn_future_describe(&op.future, &text);
    EXPECT(strstr(buf, "lock mutex") != NULL);
}

/* Goal: the duty to unlock is a value, used once. */
TEST(mutex_guard_unlocks_once)
{
    pirn_mutex mutex = PIRN_MUTEX_INIT;
    pirn_mutex_guard guard, moved;

    EXPECT_EQ(0, pirn_mutex_try_lock(&mutex));
    guard = pirn_mutex_guard_of(&mutex);
    moved = pirn_mutex_guard_take(&guard);
    pirn_mutex_guard_unlock(&guard); /* empty: nothing */
    EXPECT_EQ(-EAGAIN, pirn_mutex_try_lock(&mutex));
    pirn_mutex_guard_unlock(&moved);
    pirn_mutex_guard_unlock(&moved);
    EXPECT_EQ(0, pirn_mutex_try_lock(&mutex));
    pirn_mutex_unlock(&mutex);
}

/* In a runtime. */

enum { TURNS = 30 };

static struct {
    pirn_mutex mutex;
    int holders;
    int done;
    int turns;
    int turns_with_line; /* in which somebody stood in line */
} play;

static int lock_again_and_again(void *arg)
{
    (void)arg;
    for (int i = 0; i < TURNS; i++) {
        EXPECT_EQ(0, pirn_mutex_lock(&play.mutex, PIRN_NEVER));
        EXPECT_EQ(1, ++play.holders);
        /* The first holder suspends, and all others come to stand in line. */
        if (play.turns++ == 0)
            EXPECT_EQ(0, pirn_yield());
        if (!pirn__waitlist_empty(&play.mutex.waiters_))
            play.turns_with_line++;
        play.holders--;
        pirn_mutex_unlock(&play.mutex);
    }
    play.done++;
    return 0;
}

static int start_and_wait(void *arg)
{
    (void)arg;
    pirn_mutex_init(&play.mutex);
    for (int i = 0; i < 4; i++)
        EXPECT_EQ(0, pirn_go(lock_again_and_again, NULL));
    while (play.done < 4)
        EXPECT_EQ(0, pirn_yield());
    EXPECT_EQ(4 * TURNS, play.turns);
    EXPECT_GE(play.turns_with_line, 3);
    EXPECT_LE(play.turns_with_line, 8);
    pirn_mutex_deinit(&play.mutex);
    return 0;
}

/* Goal: tasks that lock again and again, and were in line together once, do not
 * stay in line for ever.
 * Method: four fibers on one thread.  Somebody is in line at the beginning, and
 * hardly ever afterwards. */
TEST(mutex_line_of_tasks_that_come_back_dissolves)
{
    play.done = play.turns = play.turns_with_line = 0;
    EXPECT_EQ(0, run_on_one_thread(start_and_wait, NULL));
}

static int lock_and_give_away(void *arg)
{
    pirn_mutex_lock_op op;
    poller other;

    (void)arg;
    pirn_mutex_init(&play.mutex);
    EXPECT_EQ(0, pirn_mutex_lock(&play.mutex, PIRN_NEVER));
    other = lock(&op, &play.mutex);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&other));
    pirn_mutex_unlock(&play.mutex);
    /* Given to the other, who does not run: one turn, then in line. */
    EXPECT_EQ(-ETIMEDOUT, pirn_mutex_lock(&play.mutex, PIRN_EXPIRED));
    EXPECT_EQ(-ETIMEDOUT, pirn_mutex_lock(&play.mutex, pirn_after_us(100)));
    EXPECT_EQ(PIRN_READY, poller_poll(&other));
    pirn_mutex_unlock(&play.mutex);
    EXPECT_EQ(0, pirn_mutex_lock(&play.mutex, PIRN_NEVER));
    pirn_mutex_unlock(&play.mutex);
    pirn_mutex_deinit(&play.mutex);
    return 0;
}

/* Goal: who gives way stands in line after a turn, and meets its deadline. */
TEST(mutex_that_was_given_away_is_waited_for)
{
    EXPECT_EQ(0, run_on_one_thread(lock_and_give_away, NULL));
}
