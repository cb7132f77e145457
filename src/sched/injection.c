/* SPDX-License-Identifier: MIT */
/* src/sched/injection.c - see injection.h. */
#include "sched/injection.h"

#include "base/lock.h"
#include "base/prefetch.h"
#include "task/task.h"

enum { PREFETCH_SIZE = 128 }; /* of each task that is told of */

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

/* Move what stands behind the first `count` to `rest`.  What one of those knows of
 * may be gone meanwhile: it is only prefetched. */
static void cut(const struct pirn__injection *injection,
                struct pirn__queue *queue, uint64_t count,
                struct pirn__queue *rest)
{
    pirn_slink *last = queue->head;

    for (uint64_t i = 1;; i++) {
        if (injection->tells_ahead)
            pirn__prefetch(pirn__task_of_link(last)->ahead, PREFETCH_SIZE);
        if (i == count)
            break;
        last = last->next_;
    }
    *rest = (struct pirn__queue){last->next_, queue->tail};
    last->next_ = NULL;
    queue->tail = last;
}

uint64_t pirn__injection_take(struct pirn__injection *injection,
                              struct pirn__queue *out, uint64_t limit)
{
    return pirn__injection_take_to(injection, injection, out, limit);
}

uint64_t pirn__injection_take_to(struct pirn__injection *injection,
                                 struct pirn__injection *rests,
                                 struct pirn__queue *out, uint64_t limit)
{
    struct pirn__queue all = {0};
    struct pirn__queue rest;
    uint64_t length = 0;
    uint64_t count;

    /* relaxed: a hint that saves the lock. */
    if (limit > 0 && pirn__load(&injection->length, relaxed) > 0)
        take_all(injection, &all, &length);
    if (length == 0)
        return 0;
    count = length < limit ? length : limit;
    if (count < length || injection->tells_ahead)
        cut(injection, &all, count, &rest);
    pirn__queue_splice(out, &all);
    if (count < length)
        put_back(rests, &rest, length - count);
    return count;
}
