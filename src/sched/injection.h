/* SPDX-License-Identifier: MIT */
/* src/sched/injection.h - an unbounded queue of many threads: a few that all
 * workers share, for spawns from other threads; one for each worker, for what
 * overflows its ring; in a computational pool, all that a worker has.
 *
 * A FIFO under a four-byte lock.  Workers take batches, so that the lock is
 * taken once or twice for many tasks.  To find the end of a batch its links must
 * be read, which other processors have written last: that is done without the
 * lock, for which everything is taken out and the rest put back.
 */
#ifndef PIRN_SCHED_INJECTION_H
#define PIRN_SCHED_INJECTION_H

#include "base/atomic.h"
#include "base/list.h"

struct pirn__injection {
    pirn_lock lock;
    struct pirn__queue queue;     /* lock */
    uint32_t pushed; /* lock: since all was taken out, if the pusher counts */
    bool tells_ahead; /* constant: holds tasks that know whom to prefetch */
    PIRN_ATOMIC(uint64_t) length; /* written under the lock */
};

/* Any thread.  A push onto an empty queue is seq_cst in `length`, and one behind
 * others comes after such a one by the lock: after either a look at who sleeps is
 * reliable. */
void pirn__injection_push(struct pirn__injection *injection, pirn_slink *link);
/* The same for who has the lock, which may guard more.  True if the queue was empty;
 * else there is no need to look, for who pushed the first one does, or who put it
 * back. */
static inline bool
pirn__injection_push_locked(struct pirn__injection *injection,
                            pirn_slink *link);
void pirn__injection_push_all(struct pirn__injection *injection,
                              struct pirn__queue *queue, uint64_t count);

/* Take the oldest, or NULL. */
pirn_slink *pirn__injection_pop(struct pirn__injection *injection);

/* Move up to `limit` to the end of `out`; how many.  Meanwhile others may find
 * less than there is, so whoever sees something left afterwards looks at who
 * sleeps. */
uint64_t pirn__injection_take(struct pirn__injection *injection,
                              struct pirn__queue *out, uint64_t limit);

/* The same, but the rest goes to the front of `rests`, which is where to look
 * afterwards: so whoever pushes is not met again for it. */
uint64_t pirn__injection_take_to(struct pirn__injection *injection,
                                 struct pirn__injection *rests,
                                 struct pirn__queue *out, uint64_t limit);

/* How many are in; the look is seq_cst. */
static inline uint64_t
pirn__injection_len(const struct pirn__injection *injection)
{
    /* seq_cst [injection.length]: after the caller has said that it sleeps. */
    return pirn__load(&injection->length, seq_cst);
}

static inline uint64_t
pirn__injection_len_locked(const struct pirn__injection *injection)
{
    /* relaxed: written under the lock, which we hold. */
    return pirn__load(&injection->length, relaxed);
}

static inline void
pirn__injection_set_len_locked(struct pirn__injection *injection,
                               uint64_t length)
{
    /* seq_cst [injection.length]: a push comes before the pusher's look at who
     * sleeps; a worker that goes to sleep looks here after it has said so. */
    pirn__store(&injection->length, length, seq_cst);
}

static inline bool
pirn__injection_push_locked(struct pirn__injection *injection, pirn_slink *link)
{
    uint64_t length = pirn__injection_len_locked(injection);

    pirn__queue_push(&injection->queue, link);
    if (length == 0)
        pirn__injection_set_len_locked(injection, 1);
    else
        /* relaxed: who looks sees that there are some, by the first one. */
        pirn__store(&injection->length, length + 1, relaxed);
    return length == 0;
}

#endif /* PIRN_SCHED_INJECTION_H */
