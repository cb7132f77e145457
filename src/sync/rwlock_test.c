/* SPDX-License-Identifier: MIT */
/* src/sync/rwlock_test.c - the lock of readers and writers, polled by hand. */
#include <pirn/rwlock.h>

#include <errno.h>
#include <string.h>

#include "engine/poller.h"

static poller reader(pirn_rwlock_op *op, pirn_rwlock *lock)
{
    pirn_rwlock_read_init(op, lock);
    return (poller){.fut = &op->future};
}

static poller writer(pirn_rwlock_op *op, pirn_rwlock *lock)
{
    pirn_rwlock_write_init(op, lock);
    return (poller){.fut = &op->future};
}

/* Goal: readers go together, writers alone. */
TEST(rwlock_readers_together_writers_alone)
{
    pirn_rwlock lock = PIRN_RWLOCK_INIT;

    EXPECT_EQ(0, pirn_rwlock_try_read(&lock));
    EXPECT_EQ(0, pirn_rwlock_read(&lock, PIRN_EXPIRED));
    EXPECT_EQ(-EAGAIN, pirn_rwlock_try_write(&lock));
    EXPECT_EQ(-ETIMEDOUT, pirn_rwlock_write(&lock, PIRN_EXPIRED));
    pirn_rwlock_read_unlock(&lock);
    pirn_rwlock_read_unlock(&lock);
    EXPECT_EQ(0, pirn_rwlock_write(&lock, PIRN_EXPIRED));
    EXPECT_EQ(-EAGAIN, pirn_rwlock_try_read(&lock));
    EXPECT_EQ(-EAGAIN, pirn_rwlock_try_write(&lock));
    pirn_rwlock_write_unlock(&lock);
    EXPECT_EQ(0, pirn_rwlock_try_write(&lock));
    pirn_rwlock_write_unlock(&lock);
    pirn_rwlock_deinit(&lock);
}

/* Goal: a writer does not starve: readers that come later stand behind it, and
 * then go in together.
 * Method: one reads, one wants to write, two want to read, one to write. */
TEST(rwlock_later_readers_wait_behind_a_writer)
{
    pirn_rwlock lock = PIRN_RWLOCK_INIT;
    pirn_rwlock_op ops[4];
    poller first = writer(&ops[0], &lock);
    poller left = reader(&ops[1], &lock), right = reader(&ops[2], &lock);
    poller last = writer(&ops[3], &lock);

    EXPECT_EQ(0, pirn_rwlock_try_read(&lock));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&first));
    EXPECT_EQ(-EAGAIN, pirn_rwlock_try_read(&lock));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&left));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&right));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&last));
    pirn_rwlock_read_unlock(&lock);
    EXPECT_EQ(1, first.wakes);
    EXPECT_EQ(0, left.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&first));
    pirn_rwlock_write_unlock(&lock);
    EXPECT_EQ(1, left.wakes);
    EXPECT_EQ(1, right.wakes);
    EXPECT_EQ(0, last.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&left));
    EXPECT_EQ(PIRN_READY, poller_poll(&right));
    pirn_rwlock_read_unlock(&lock);
    EXPECT_EQ(0, last.wakes);
    pirn_rwlock_read_unlock(&lock);
    EXPECT_EQ(PIRN_READY, poller_poll(&last));
    pirn_rwlock_write_unlock(&lock);
    pirn_rwlock_deinit(&lock);
}

/* Goal: a downgrade lets in readers that stand first, and no writer. */
TEST(rwlock_downgrade_lets_readers_in)
{
    pirn_rwlock lock = PIRN_RWLOCK_INIT;
    pirn_rwlock_op ops[3];
    poller r = reader(&ops[0], &lock), w = writer(&ops[1], &lock);
    poller behind = reader(&ops[2], &lock);

    EXPECT_EQ(0, pirn_rwlock_try_write(&lock));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&r));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&w));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&behind));
    pirn_rwlock_downgrade(&lock);
    EXPECT_EQ(PIRN_READY, poller_poll(&r));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&w));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&behind));
    /* The writer gives up: who stood behind it goes in. */
    poller_drop(&w);
    EXPECT_EQ(PIRN_READY, poller_poll(&behind));
    for (int i = 0; i < 3; i++)
        pirn_rwlock_read_unlock(&lock);
    pirn_rwlock_deinit(&lock);
}

/* Goal: no more readers than the limit. */
TEST(rwlock_limit_on_readers)
{
    pirn_rwlock lock;
    pirn_rwlock_op op;
    poller third;

    EXPECT_EQ(-EINVAL, pirn_rwlock_init(&lock, PIRN_RWLOCK_READERS_MAX + 1));
    EXPECT_EQ(0, pirn_rwlock_init(&lock, 2));
    EXPECT_EQ(0, pirn_rwlock_try_read(&lock));
    EXPECT_EQ(0, pirn_rwlock_try_read(&lock));
    EXPECT_EQ(-EAGAIN, pirn_rwlock_try_read(&lock));
    third = reader(&op, &lock);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&third));
    pirn_rwlock_read_unlock(&lock);
    EXPECT_EQ(PIRN_READY, poller_poll(&third));
    pirn_rwlock_read_unlock(&lock);
    pirn_rwlock_read_unlock(&lock);
    EXPECT_EQ(0, pirn_rwlock_try_write(&lock));
    pirn_rwlock_write_unlock(&lock);
    pirn_rwlock_deinit(&lock);
}

/* Goal: dropped after the grant, or discarded, it is as if it had not been. */
TEST(rwlock_drop_after_grant_and_discard_unlock)
{
    pirn_rwlock lock = PIRN_RWLOCK_INIT;
    pirn_rwlock_op a_op, b_op;
    poller a = writer(&a_op, &lock), b = writer(&b_op, &lock);

    EXPECT_EQ(0, pirn_rwlock_try_read(&lock));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&b));
    pirn_rwlock_read_unlock(&lock);
    EXPECT_EQ(1, a.wakes);
    poller_drop(&a);
    EXPECT_EQ(1, b.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&b));
    EXPECT_EQ(0, pirn_future_outcome(&b_op.future));
    pirn_future_discard(&b_op.future);
    pirn_rwlock_deinit(&lock);
}

static void unlock_read(void *arg)
{
    pirn_rwlock_read_unlock(arg);
}

static void unlock_write(void *arg)
{
    pirn_rwlock_write_unlock(arg);
}

static void deinit_lock(void *arg)
{
    pirn_rwlock_deinit(arg);
}

/* Goal: broken rules abort. */
TEST(rwlock_broken_rules_abort)
{
    pirn_rwlock lock = PIRN_RWLOCK_INIT;

    EXPECT_DEATH(unlock_read, &lock, "unlocked so");
    EXPECT_EQ(0, pirn_rwlock_try_read(&lock));
    EXPECT_DEATH(unlock_write, &lock, "unlocked so");
    EXPECT_DEATH(deinit_lock, &lock, "is unlocked");
}

/* Goal: it says what it waits for. */
TEST(rwlock_describes_itself)
{
    char buf[64];
    pirn_text text = {buf, sizeof buf, 0};
    pirn_rwlock lock = PIRN_RWLOCK_INIT;
    pirn_rwlock_op op;

    pirn_rwlock_write_init(&op, &lock);
    pirn_future_describe(&op.future, &text);
    EXPECT(strstr(buf, "write lock") != NULL);
    text.len = 0;
    pirn_rwlock_read_init(&op, &lock);
    pirn_future_describe(&op.future, &text);
    EXPECT(strstr(buf, "read lock") != NULL);
}

/* Goal: each lock costs one unit of budget, to read and to write alike, and
 * without any it is left alone. */
TEST(rwlock_lock_spends_budget)
{
    pirn_rwlock lock = PIRN_RWLOCK_INIT;
    pirn_rwlock_op ops[2];
    poller locks[2] = {reader(&ops[0], &lock), writer(&ops[1], &lock)};

    for (int i = 0; i < 2; i++) {
        struct pirn__turn turn = {.budget = 0};

        locks[i].turn = &turn;
        EXPECT_EQ(PIRN_PENDING, poller_poll(&locks[i]));
        EXPECT_EQ(0, pirn_rwlock_try_write(&lock));
        pirn_rwlock_write_unlock(&lock);
        turn.budget = 1;
        EXPECT_EQ(PIRN_READY, poller_poll(&locks[i]));
        EXPECT_EQ(0, turn.budget);
        pirn_future_discard(&ops[i].future);
    }
    pirn_rwlock_deinit(&lock);
}
