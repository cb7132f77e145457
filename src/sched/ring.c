/* SPDX-License-Identifier: MIT */
/* src/sched/ring.c - see ring.h. */
#include "sched/ring.h"

#include "base/assert.h"

void pirn__ring_init(struct pirn__ring *ring)
{
    pirn__init(&ring->head, 0);
    pirn__init(&ring->tail, 0);
    ring->room_end = PIRN__RING_SIZE;
}

void pirn__ring_push_all(struct pirn__ring *ring, struct pirn__queue *queue)
{
    /* relaxed: only we write it. */
    uint32_t tail = pirn__load(&ring->tail, relaxed);
    uint32_t end = pirn__ring_find_room(ring);

    for (; tail != end && !pirn__queue_empty(queue); tail++)
        pirn__ring_put(ring, tail, pirn__queue_pop(queue));
    /* seq_cst [ring.tail]: as in push. */
    pirn__store(&ring->tail, tail, seq_cst);
}

/* Append what `count` > 0 slots hold to `out`. */
static void copy_out(struct pirn__ring *ring, uint32_t first, uint32_t count,
                     struct pirn__queue *out)
{
    pirn_slink *link = pirn__ring_get(ring, first);
    struct pirn__queue copied = {link, NULL};

    for (uint32_t i = 1; i < count; i++) {
        link->next_ = pirn__ring_get(ring, first + i);
        link = link->next_;
    }
    link->next_ = NULL;
    copied.tail = link;
    pirn__queue_splice(out, &copied);
}

bool pirn__ring_overflow(struct pirn__ring *ring, struct pirn__queue *out)
{
    /* relaxed: only we write it. */
    uint32_t tail = pirn__load(&ring->tail, relaxed);
    uint32_t first = tail - PIRN__RING_SIZE;
    uint64_t head = pirn__ring_pack(first, first);
    uint64_t next = pirn__ring_pack(first + PIRN__RING_SIZE / 2,
                         first + PIRN__RING_SIZE / 2);

    /* release [ring.head]: as in pop, for the half at once; it fails if a thief
     * is at work, who makes room. */
    if (!pirn__cas(&ring->head, &head, next, release, relaxed))
        return false;
    copy_out(ring, first, PIRN__RING_SIZE / 2, out);
    return true;
}

/* Claim half of what is there: *first and the count; 0: nothing to have. */
static uint32_t claim(struct pirn__ring *ring, uint32_t *first, uint32_t room)
{
    /* Ends: the swap fails only when another thread has moved the head. */
    for (;;) {
        /* acquire [ring.head]: before the tail, so that the tail is not
         * older. */
        uint64_t head = pirn__load(&ring->head, acquire);
        uint32_t real = pirn__ring_real_of(head);
        /* acquire [ring.tail]: sees the tasks that were pushed. */
        uint32_t count = pirn__load(&ring->tail, acquire) - real;

        if (pirn__ring_steal_of(head) != real)
            return 0; /* another thief is copying */
        count = count - count / 2;
        if (count > room)
            count = room;
        if (count == 0)
            return 0;
        /* relaxed: the tail has shown the tasks, and what we do with them is
         * published when the claim is released. */
        if (pirn__cas_weak(&ring->head, &head, pirn__ring_pack(real, real + count),
                           relaxed, relaxed)) {
            *first = real;
            return count;
        }
    }
}

/* The copies are made: give the slots back to the owner. */
static void release_claim(struct pirn__ring *ring)
{
    /* relaxed: a guess that the swap below confirms. */
    uint64_t head = pirn__load(&ring->head, relaxed);

    /* Ends: it fails only when the owner pops in between. */
    for (;;) {
        uint64_t next = pirn__ring_pack(pirn__ring_real_of(head), pirn__ring_real_of(head));

        /* release [ring.head]: our reads of the slots come before the owner's
         * next use of them. */
        if (pirn__cas_weak(&ring->head, &head, next, release, relaxed))
            return;
    }
}

pirn_slink *pirn__ring_steal(struct pirn__ring *ring, struct pirn__ring *into)
{
    /* relaxed: only we, its owner, write it. */
    uint32_t tail = pirn__load(&into->tail, relaxed);
    uint32_t room = pirn__ring_find_room(into) - tail;
    uint32_t first;
    uint32_t count;
    pirn_slink *link;

    if (room == 0)
        return NULL;
    count = claim(ring, &first, room);
    if (count == 0)
        return NULL;
    /* The last one is run at once; the others go to our ring. */
    count--;
    for (uint32_t i = 0; i < count; i++)
        pirn__ring_put(into, tail + i, pirn__ring_get(ring, first + i));
    link = pirn__ring_get(ring, first + count);
    release_claim(ring);
    /* release [ring.tail]: publishes the moved tasks to other thieves. */
    if (count > 0)
        pirn__store(&into->tail, tail + count, release);
    return link;
}

uint32_t pirn__ring_take(struct pirn__ring *ring, struct pirn__queue *out)
{
    uint32_t taken = 0;
    uint32_t first;
    uint32_t count;

    /* Ends: each round takes half, and an owner that goes on pushing is not the
     * one this is for; so never more than a ring holds. */
    while (taken < PIRN__RING_SIZE &&
           (count = claim(ring, &first, PIRN__RING_SIZE)) > 0) {
        copy_out(ring, first, count, out);
        release_claim(ring);
        taken += count;
    }
    return taken;
}
