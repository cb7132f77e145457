/* SPDX-License-Identifier: MIT */
/* src/sync/cond_test.c - the condition variable, polled by hand; its
 * straight-line call is in tests/conformance/sync.c.
 */
#include <pirn/cond.h>

#include <errno.h>
#include <string.h>

#include "engine/poller.h"

/* Lock the mutex and prepare a wait. */
static poller waiter(pirn_cond_wait_op *op, pirn_cond *cond, pirn_mutex *mutex)
{
    EXPECT_EQ(0, pirn_mutex_try_lock(mutex));
    pirn_cond_wait_init(op, cond, mutex);
    return (poller){.fut = &op->future};
}

/* Goal: a wait gives the mutex up at its first poll and has it when READY.
 * Method: the signal comes under the mutex; the wait goes on after the unlock.
 */
TEST(cond_wait_gives_the_mutex_up_and_has_it_again)
{
    pirn_cond cond = PIRN_COND_INIT;
    pirn_mutex mutex = PIRN_MUTEX_INIT;
    pirn_cond_wait_op op;
    poller a = waiter(&op, &cond, &mutex);

    EXPECT_EQ(-EAGAIN, pirn_mutex_try_lock(&mutex));
    EXPECT(op.locked);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT(!op.locked);
    EXPECT_EQ(0, pirn_mutex_try_lock(&mutex));
    pirn_cond_signal(&cond);
    EXPECT_EQ(1, a.wakes);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    pirn_mutex_unlock(&mutex);
    EXPECT_EQ(2, a.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    EXPECT(op.locked);
    EXPECT_EQ(-EAGAIN, pirn_mutex_try_lock(&mutex));
    pirn_future_discard(&op.future);
    pirn_mutex_deinit(&mutex);
    pirn_cond_deinit(&cond);
}

/* Goal: a signal reaches the first, a broadcast all; neither is stored. */
TEST(cond_signal_and_broadcast)
{
    pirn_cond cond;
    pirn_mutex mutex = PIRN_MUTEX_INIT;
    pirn_cond_wait_op ops[3];
    poller p[3];

    pirn_cond_init(&cond);
    pirn_cond_signal(&cond);
    pirn_cond_broadcast(&cond);
    for (int i = 0; i < 3; i++) {
        p[i] = waiter(&ops[i], &cond, &mutex);
        EXPECT_EQ(PIRN_PENDING, poller_poll(&p[i]));
    }
    pirn_cond_signal(&cond);
    EXPECT_EQ(1, p[0].wakes);
    EXPECT_EQ(0, p[1].wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&p[0]));
    pirn_mutex_unlock(&mutex);
    pirn_cond_broadcast(&cond);
    EXPECT_EQ(PIRN_READY, poller_poll(&p[1]));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p[2])); /* for the mutex */
    pirn_mutex_unlock(&mutex);
    EXPECT_EQ(PIRN_READY, poller_poll(&p[2]));
    pirn_mutex_unlock(&mutex);
    pirn_cond_deinit(&cond);
}

/* Goal: a signal for a wait that is dropped goes to another, before it has been
 * seen and while the mutex is waited for; a broadcast does not. */
TEST(cond_dropped_wait_passes_its_signal_on)
{
    pirn_cond cond = PIRN_COND_INIT;
    pirn_mutex mutex = PIRN_MUTEX_INIT;
    pirn_cond_wait_op ops[4];
    poller p[4];

    for (int i = 0; i < 4; i++) {
        p[i] = waiter(&ops[i], &cond, &mutex);
        EXPECT_EQ(PIRN_PENDING, poller_poll(&p[i]));
    }
    pirn_cond_signal(&cond);
    poller_drop(&p[0]);
    EXPECT(!ops[0].locked);
    EXPECT_EQ(1, p[1].wakes);
    EXPECT_EQ(0, pirn_mutex_try_lock(&mutex));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p[1])); /* for the mutex */
    poller_drop(&p[1]);
    EXPECT_EQ(1, p[2].wakes);
    EXPECT_EQ(0, p[3].wakes);
    pirn_mutex_unlock(&mutex);
    EXPECT_EQ(PIRN_READY, poller_poll(&p[2]));
    pirn_mutex_unlock(&mutex);
    p[2] = waiter(&ops[2], &cond, &mutex);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p[2]));
    pirn_cond_broadcast(&cond);
    p[0] = waiter(&ops[0], &cond, &mutex);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p[0]));
    poller_drop(&p[2]);
    poller_drop(&p[3]);
    EXPECT_EQ(0, p[0].wakes);
    poller_drop(&p[0]);
    EXPECT_EQ(0, pirn_mutex_try_lock(&mutex));
    pirn_mutex_unlock(&mutex);
    pirn_cond_deinit(&cond);
}

/* Goal: never polled, the mutex is still the caller's. */
TEST(cond_dropped_before_its_first_poll_keeps_the_mutex)
{
    pirn_cond cond = PIRN_COND_INIT;
    pirn_mutex mutex = PIRN_MUTEX_INIT;
    pirn_cond_wait_op op;
    poller a = waiter(&op, &cond, &mutex);

    poller_drop(&a);
    EXPECT(op.locked);
    EXPECT_EQ(-EAGAIN, pirn_mutex_try_lock(&mutex));
    pirn_mutex_unlock(&mutex);
}

/* Goal: on a plain thread an expired wait returns with the mutex locked. */
TEST(cond_expired_wait_has_the_mutex)
{
    pirn_cond cond = PIRN_COND_INIT;
    pirn_mutex mutex = PIRN_MUTEX_INIT;

    EXPECT_EQ(0, pirn_mutex_try_lock(&mutex));
    EXPECT_EQ(-ETIMEDOUT, pirn_cond_wait(&cond, &mutex, PIRN_EXPIRED));
    EXPECT_EQ(-EAGAIN, pirn_mutex_try_lock(&mutex));
    pirn_mutex_unlock(&mutex);
    pirn_mutex_deinit(&mutex);
    pirn_cond_deinit(&cond);
}

static void deinit_cond(void *arg)
{
    pirn_cond_deinit(arg);
}

/* Goal: a condition for which somebody waits does not end; the wait says for
 * what. */
TEST(cond_deinit_with_waiter_aborts)
{
    char buf[64];
    pirn_text text = {buf, sizeof buf, 0};
    pirn_cond cond = PIRN_COND_INIT;
    pirn_mutex mutex = PIRN_MUTEX_INIT;
    pirn_cond_wait_op op;
    poller a = waiter(&op, &cond, &mutex);

    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    pirn_future_describe(&op.future, &text);
    EXPECT(strstr(buf, "condition") != NULL);
    EXPECT_DEATH(deinit_cond, &cond, "nobody waits");
    EXPECT_EQ(0, pirn_mutex_try_lock(&mutex));
    pirn_cond_signal(&cond);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    text.len = 0;
    pirn_future_describe(&op.future, &text);
    EXPECT(strstr(buf, "lock mutex") != NULL);
    poller_drop(&a);
    pirn_mutex_unlock(&mutex);
}

/* Goal: a wait costs a unit of budget, for the mutex that it locks again; without
 * any that is left alone. */
TEST(cond_wait_spends_budget)
{
    struct pirn__turn turn = {.budget = 0};
    pirn_cond cond = PIRN_COND_INIT;
    pirn_mutex mutex = PIRN_MUTEX_INIT;
    pirn_cond_wait_op op;
    poller a = waiter(&op, &cond, &mutex);

    a.turn = &turn;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    pirn_cond_signal(&cond);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_EQ(0, pirn_mutex_try_lock(&mutex));
    pirn_mutex_unlock(&mutex);
    turn.budget = 1;
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    EXPECT_EQ(0, turn.budget);
    pirn_future_discard(&op.future);
    pirn_mutex_deinit(&mutex);
    pirn_cond_deinit(&cond);
}
