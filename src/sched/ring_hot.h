/* SPDX-License-Identifier: MIT */
/* src/sched/ring_hot.h - what every run of a task does to a ring; see ring.h,
 * which includes this.
 */
#ifndef PIRN_SCHED_RING_HOT_H
#define PIRN_SCHED_RING_HOT_H

enum { PIRN__RING_MASK = PIRN__RING_SIZE - 1 };

_Static_assert((PIRN__RING_SIZE & PIRN__RING_MASK) == 0, "a power of two");

static inline uint64_t pirn__ring_pack(uint32_t steal, uint32_t real)
{
    return (uint64_t)steal << 32 | real;
}

static inline uint32_t pirn__ring_steal_of(uint64_t head)
{
    return (uint32_t)(head >> 32);
}

static inline uint32_t pirn__ring_real_of(uint64_t head)
{
    return (uint32_t)head;
}

static inline void pirn__ring_put(struct pirn__ring *ring, uint32_t position, pirn_slink *link)
{
    pirn_cell_write(&ring->slots[position & PIRN__RING_MASK], link);
}

static inline pirn_slink *pirn__ring_get(struct pirn__ring *ring, uint32_t position)
{
    return pirn_cell_read(&ring->slots[position & PIRN__RING_MASK]);
}

/* Owner.  Where the room ends now. */
static inline uint32_t pirn__ring_find_room(struct pirn__ring *ring)
{
    /* acquire [ring.head]: a thief that has moved `steal` on is done reading
     * the slots we are about to use again. */
    uint64_t head = pirn__load(&ring->head, acquire);

    ring->room_end = pirn__ring_steal_of(head) + PIRN__RING_SIZE;
    return ring->room_end;
}

static inline bool pirn__ring_push(struct pirn__ring *ring, pirn_slink *link)
{
    /* relaxed: only we write it. */
    uint32_t tail = pirn__load(&ring->tail, relaxed);

    /* Once in a round, unless it is full. */
    if (__builtin_expect(tail == ring->room_end, 0) &&
        tail == pirn__ring_find_room(ring))
        return false;
    pirn__ring_put(ring, tail, link);
    /* seq_cst [ring.tail]: publishes the task to thieves, and comes before our
     * look at who sleeps; a worker that goes to sleep looks here after it has
     * said so. */
    pirn__store(&ring->tail, tail + 1, seq_cst);
    return true;
}

static inline bool pirn__ring_take_first(struct pirn__ring *ring,
                                         pirn_slink **first)
{
    /* relaxed: a guess that the swap below confirms. */
    uint64_t head = pirn__load(&ring->head, relaxed);
    /* relaxed: only we write it. */
    uint32_t tail = pirn__load(&ring->tail, relaxed);

    for (;;) {
        uint32_t steal = pirn__ring_steal_of(head);
        uint32_t real = pirn__ring_real_of(head);
        uint64_t next;

        if (real == tail)
            return false;
        /* While a thief copies, only `real` moves. */
        next = pirn__ring_pack(steal == real ? real + 1 : steal, real + 1);
        /* release [ring.head]: a thief that sees this head sees a tail that is
         * not older, or it would count tasks that are not there. */
        if (pirn__cas_weak(&ring->head, &head, next, release, relaxed)) {
            *first = pirn__ring_get(ring, real);
            return true;
        }
    }
}

static inline pirn_slink *pirn__ring_pop(struct pirn__ring *ring)
{
    pirn_slink *first;

    return pirn__ring_take_first(ring, &first) ? first : NULL;
}

static inline uint32_t pirn__ring_len(const struct pirn__ring *ring)
{
    /* acquire [ring.head]: before the tail, so that the tail is not older; one
     * that is itself too old only makes the ring look fuller. */
    uint64_t head = pirn__load(&ring->head, acquire);
    /* seq_cst [ring.tail]: after the caller has said that it sleeps. */
    uint32_t tail = pirn__load(&ring->tail, seq_cst);

    return tail - pirn__ring_real_of(head);
}

#endif /* PIRN_SCHED_RING_HOT_H */
