/* SPDX-License-Identifier: MIT */
/* src/sched/injection.c - see injection.h. */
#include "sched/injection.h"

#include "base/lock.h"

/* Under the lock. */
static void set_length(struct pirn__injection *injection, uint64_t length)
{
    /* seq_cst [injection.length]: a push comes before the pusher's look at who
     * sleeps; a worker that goes to sleep looks here after it has said so. */
    pirn__store(&injection->length, length, seq_cst);
}

static uint64_t length_locked(const struct pirn__injection *injection)
{
    /* relaxed: written under the lock, which we hold. */
    return pirn__load(&injection->length, relaxed);
}

void pirn__injection_push(struct pirn__injection *injection, pirn_slink *link)
{
    pirn__lock(&injection->lock);
    pirn__queue_push(&injection->queue, link);
    set_length(injection, length_locked(injection) + 1);
    pirn__unlock(&injection->lock);
}

void pirn__injection_push_all(struct pirn__injection *injection,
                              struct pirn__queue *queue, uint64_t count)
{
    pirn__lock(&injection->lock);
    pirn__queue_splice(&injection->queue, queue);
    set_length(injection, length_locked(injection) + count);
    pirn__unlock(&injection->lock);
}

pirn_slink *pirn__injection_pop(struct pirn__injection *injection)
{
    pirn_slink *link;

    /* relaxed: a hint that saves the lock; a push that it misses is found by
     * the look before the next sleep. */
    if (pirn__load(&injection->length, relaxed) == 0)
        return NULL;
    pirn__lock(&injection->lock);
    link = pirn__queue_pop(&injection->queue);
    if (link != NULL)
        set_length(injection, length_locked(injection) - 1);
    pirn__unlock(&injection->lock);
    return link;
}

static void take_all(struct pirn__injection *injection,
                     struct pirn__queue *out, uint64_t *length)
{
    pirn__lock(&injection->lock);
    pirn__queue_splice(out, &injection->queue);
    *length = length_locked(injection);
    if (*length > 0)
        set_length(injection, 0);
    pirn__unlock(&injection->lock);
}

/* Before what has come meanwhile. */
static void put_back(struct pirn__injection *injection,
                     struct pirn__queue *rest, uint64_t length)
{
    pirn__lock(&injection->lock);
    pirn__queue_splice(rest, &injection->queue);
    injection->queue = *rest;
    set_length(injection, length_locked(injection) + length);
    pirn__unlock(&injection->lock);
}

uint64_t pirn__injection_take(struct pirn__injection *injection,
                              struct pirn__queue *out, uint64_t limit)
{
    struct pirn__queue all = {0};
    struct pirn__queue part;
    uint64_t length;
    uint64_t taken = 0;

    /* relaxed: a hint that saves the lock. */
    if (limit == 0 || pirn__load(&injection->length, relaxed) == 0)
        return 0;
    take_all(injection, &all, &length);
    if (length <= limit) {
        pirn__queue_splice(out, &all);
        return length;
    }
    part.head = all.head;
    for (; taken < limit; taken++) {
        if (injection->on_take != NULL)
            injection->on_take(all.head);
        part.tail = all.head;
        all.head = all.head->next_;
    }
    part.tail->next_ = NULL;
    pirn__queue_splice(out, &part);
    put_back(injection, &all, length - taken);
    return taken;
}

uint64_t pirn__injection_len(const struct pirn__injection *injection)
{
    /* seq_cst [injection.length]: after the caller has said that it sleeps. */
    return pirn__load(&injection->length, seq_cst);
}
