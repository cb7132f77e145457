/* SPDX-License-Identifier: MIT */
/* src/base/lock.c - the slow paths of the four-byte lock.
 *
 *     0 --lock--> 1 --second thread waits--> 2
 *
 * A thread that has waited takes the lock as 2, because it cannot know whether
 * others still wait; the cost is at most one wake for nobody.
 */
#include "base/lock.h"

#include "base/assert.h"

static const struct pirn__lock_ops *lock_ops;

const struct pirn__lock_ops *
pirn__lock_set_ops(const struct pirn__lock_ops *ops)
{
    const struct pirn__lock_ops *before = lock_ops;

    lock_ops = ops;
    return before;
}

void pirn__lock_slow(pirn_lock *lock)
{
    for (int i = 0; i < PIRN__LOCK_SPINS; i++) {
        uint32_t free_word = 0;

        /* relaxed: a hint; a swap that fails would take the line from the holder,
         * who has more to write there. */
        if (pirn__load(&lock->word_, relaxed) == 0 &&
            /* acquire [lock.word]: as in pirn__futex_lock(). */
            pirn__cas_weak(&lock->word_, &free_word, 1, acquire, relaxed))
            return;
        pirn__spin_hint();
    }
    /* acquire [lock.word]: as in pirn__futex_lock(); the 2 tells the holder that
     * it must wake somebody.  Ends when a holder leaves. */
    while (pirn__swap(&lock->word_, 2, acquire) != 0)
        lock_ops->wait(&lock->word_.v_, 2);
}

void pirn__unlock_slow(pirn_lock *lock)
{
    PIRN_DASSERT(lock_ops != NULL);
    lock_ops->wake_one(&lock->word_.v_);
}
