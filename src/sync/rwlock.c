/* SPDX-License-Identifier: MIT */
/* src/sync/rwlock.c - the lock of readers and writers: a semaphore with one
 * permit for each reader that may be inside.  A writer takes them all.  That
 * the semaphore serves strictly in order makes the lock fair.
 */
#include <pirn/rwlock.h>

#include <errno.h>

#include "base/assert.h"

/* The operation. */

static pirn_rwlock_op *op_of(pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, pirn_rwlock_op, future);
}

static enum pirn_poll rwlock_poll(pirn_future *self, pirn_cx *cx)
{
    pirn_future *acquire = &op_of(self)->acquire_.future;

    return acquire->ops->poll(acquire, cx);
}

static void rwlock_drop(pirn_future *self)
{
    pirn_future *acquire = &op_of(self)->acquire_.future;

    acquire->ops->drop(acquire);
}

static void rwlock_discard(pirn_future *self)
{
    pirn_future *acquire = &op_of(self)->acquire_.future;

    acquire->ops->discard(acquire);
}

static void read_describe(const pirn_future *self, pirn_text *out)
{
    pirn_text_append(
        out, "read lock %p",
        (void *)PIRN_CONTAINER_OF(self, const pirn_rwlock_op, future)->lock_);
}

static void write_describe(const pirn_future *self, pirn_text *out)
{
    pirn_text_append(
        out, "write lock %p",
        (void *)PIRN_CONTAINER_OF(self, const pirn_rwlock_op, future)->lock_);
}

static const pirn_future_ops read_ops = {
    .poll = rwlock_poll,
    .drop = rwlock_drop,
    .discard = rwlock_discard,
    .describe = read_describe,
};

static const pirn_future_ops write_ops = {
    .poll = rwlock_poll,
    .drop = rwlock_drop,
    .discard = rwlock_discard,
    .describe = write_describe,
};

static void op_init(pirn_rwlock_op *op, pirn_rwlock *lock, uint32_t permits)
{
    op->lock_ = lock;
    pirn_sem_acquire_init(&op->acquire_, &lock->sem_, permits);
}

void pirn_rwlock_read_init(pirn_rwlock_op *op, pirn_rwlock *lock)
{
    op->future.ops = &read_ops;
    op_init(op, lock, 1);
}

void pirn_rwlock_write_init(pirn_rwlock_op *op, pirn_rwlock *lock)
{
    op->future.ops = &write_ops;
    op_init(op, lock, lock->readers_max_);
}

/* Straight-line calls.  The semaphore is never closed, so no other error comes
 * out of it than those of the wait. */

int pirn_rwlock_read(pirn_rwlock *lock, pirn_deadline deadline)
{
    return pirn_sem_acquire(&lock->sem_, 1, deadline);
}

int pirn_rwlock_write(pirn_rwlock *lock, pirn_deadline deadline)
{
    return pirn_sem_acquire(&lock->sem_, lock->readers_max_, deadline);
}

int pirn_rwlock_try_read(pirn_rwlock *lock)
{
    return pirn_sem_try_acquire(&lock->sem_, 1);
}

int pirn_rwlock_try_write(pirn_rwlock *lock)
{
    return pirn_sem_try_acquire(&lock->sem_, lock->readers_max_);
}

static void give_back(pirn_rwlock *lock, uint32_t permits)
{
    PIRN_REQUIRE(permits <=
                     lock->readers_max_ - pirn_sem_available(&lock->sem_),
                 "only what was locked so is unlocked so");
    pirn_sem_release(&lock->sem_, permits);
}

void pirn_rwlock_read_unlock(pirn_rwlock *lock)
{
    give_back(lock, 1);
}

void pirn_rwlock_write_unlock(pirn_rwlock *lock)
{
    give_back(lock, lock->readers_max_);
}

void pirn_rwlock_downgrade(pirn_rwlock *lock)
{
    give_back(lock, lock->readers_max_ - 1);
}

/* The object. */

int pirn_rwlock_init(pirn_rwlock *lock, uint32_t readers_max)
{
    uint32_t most = readers_max == 0 ? PIRN_RWLOCK_READERS_MAX : readers_max;
    int rc = pirn_sem_init(&lock->sem_, most);

    if (rc == 0)
        lock->readers_max_ = most;
    return rc;
}

void pirn_rwlock_deinit(pirn_rwlock *lock)
{
    PIRN_REQUIRE(pirn_sem_available(&lock->sem_) == lock->readers_max_,
                 "a lock that ends is unlocked");
    pirn_sem_deinit(&lock->sem_);
}
