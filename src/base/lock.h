/* SPDX-License-Identifier: MIT */
/* src/base/lock.h - a mutual exclusion lock of four bytes.
 *
 * For sections of a few dozen instructions.  Under a lock nothing is woken, no
 * counted reference is dropped, no user code runs and no system call can
 * block.  The order in which locks may nest stands in docs/architecture.md.
 *
 * The states and the slow path follow U. Drepper, "Futexes Are Tricky" (2011),
 * mutex 2.  How a thread waits is a table that sys registers, so that base
 * itself makes no system call.
 */
#ifndef PIRN_BASE_LOCK_H
#define PIRN_BASE_LOCK_H

#include <pirn/link.h>

#include "base/atomic.h"
#include "base/hint.h"

/* How to wait while *word == expected, and how to wake one waiter. */
struct pirn__lock_ops {
    void (*wait)(uint32_t *word, uint32_t expected);
    void (*wake_one)(uint32_t *word);
};

/* Tries before a thread waits; the model build has few. */
#ifndef PIRN__LOCK_SPINS
#define PIRN__LOCK_SPINS 256
#endif

/* Returns those before, or NULL. */
const struct pirn__lock_ops *
pirn__lock_set_ops(const struct pirn__lock_ops *ops);

PIRN__COLD void pirn__lock_slow(pirn_lock *lock);
PIRN__COLD void pirn__unlock_slow(pirn_lock *lock);

static inline void pirn__lock_init(pirn_lock *lock)
{
    pirn__init(&lock->word_, 0);
}

/* The lock as it is. */

static inline void pirn__futex_lock(pirn_lock *lock)
{
    uint32_t free_word = 0;

    /* acquire [lock.word]: sees what the previous holder wrote. */
    if (!pirn__cas(&lock->word_, &free_word, 1, acquire, relaxed))
        pirn__lock_slow(lock);
}

static inline void pirn__futex_unlock(pirn_lock *lock)
{
    /* release [lock.word]: publishes this section to the next holder. */
    if (pirn__swap(&lock->word_, 0, release) == 2)
        pirn__unlock_slow(lock);
}

#ifdef PIRN_MODEL

/* The model build: the explorer knows who holds what. */
#define pirn__lock(lock) explore_lock((lock), EXPLORE_PLACE)
#define pirn__unlock(lock) explore_unlock((lock), EXPLORE_PLACE)

#else

static inline void pirn__lock(pirn_lock *lock)
{
    pirn__futex_lock(lock);
}

static inline void pirn__unlock(pirn_lock *lock)
{
    pirn__futex_unlock(lock);
}

#endif /* PIRN_MODEL */

#endif /* PIRN_BASE_LOCK_H */
