/* SPDX-License-Identifier: MIT */
/* src/sched/injection.c - see injection.h. */
#include "sched/injection.h"

#include "base/lock.h"

static void add_locked(struct pirn__injection *injection, uint64_t count)
{
    pirn__injection_set_len_locked(
        injection, pirn__injection_len_locked(injection) + count);
}

void pirn__injection_push(struct pirn__injection *injection, pirn_slink *link)
{
    pirn__lock(&injection->lock);
    (void)pirn__injection_push_locked(injection, link);
    pirn__unlock(&injection->lock);
}

void pirn__injection_push_all(struct pirn__injection *injection,
                              struct pirn__queue *queue, uint64_t count)
{
    pirn__lock(&injection->lock);
    pirn__queue_splice(&injection->queue, queue);
    add_locked(injection, count);
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
        pirn__injection_set_len_locked(
            injection, pirn__injection_len_locked(injection) - 1);
    pirn__unlock(&injection->lock);
    return link;
}

static void take_all(struct pirn__injection *injection,
                     struct pirn__queue *out, uint64_t *length)
{
    pirn__lock(&injection->lock);
    pirn__queue_splice(out, &injection->queue);
    *length = pirn__injection_len_locked(injection);
    if (*length > 0)
        pirn__injection_set_len_locked(injection, 0);
    injection->pushed = 0;
    pirn__unlock(&injection->lock);
}

/* Before what has come meanwhile. */
static void put_back(struct pirn__injection *injection,
                     struct pirn__queue *rest, uint64_t length)
{
    pirn__lock(&injection->lock);
    pirn__queue_splice(rest, &injection->queue);
    injection->queue = *rest;
    add_locked(injection, length);
    pirn__unlock(&injection->lock);
}

uint64_t pirn__injection_take(struct pirn__injection *injection,
                              struct pirn__queue *out, uint64_t limit)
{
    struct pirn__queue all = {0};
    uint64_t length;
    uint64_t taken = 0;

    /* relaxed: a hint that saves the lock. */
    if (limit == 0 || pirn__load(&injection->length, relaxed) == 0)
        return 0;
    take_all(injection, &all, &length);
    for (; taken < limit && taken < length; taken++) {
        if (injection->on_take != NULL)
            injection->on_take(all.head);
        pirn__queue_push(out, pirn__queue_pop(&all));
    }
    if (taken < length)
        put_back(injection, &all, length - taken);
    return taken;
}
