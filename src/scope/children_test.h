/* SPDX-License-Identifier: MIT */
/* src/scope/children_test.h - futures that a test makes ready when it likes, for
 * the tests of what waits for many.
 */
#ifndef PIRN_SCOPE_CHILDREN_TEST_H
#define PIRN_SCOPE_CHILDREN_TEST_H

#include <errno.h>

#include <pirn/select.h>

#include "engine/poller.h"
#include "task/home.h"

struct child {
    pirn_future future;
    bool ready;
    bool unbudgeted; /* spends nothing */
    bool greedy;     /* spends all there is, and waits */
    int outcome;
    int polls;
    int full_polls; /* those for which there was budget */
    int drops;
    int discards;
    pirn_waker waker;
};

static inline enum pirn_poll child_poll(pirn_future *self, pirn_cx *cx)
{
    struct child *child = PIRN_CONTAINER_OF(self, struct child, future);

    child->polls++;
    if (!child->unbudgeted && !pirn_coop_spend(cx))
        return PIRN_PENDING;
    child->full_polls++;
    while (child->greedy && pirn_coop_spend(cx))
        continue;
    if (child->ready)
        pirn_waker_drop(pirn_waker_take(&child->waker));
    else
        pirn_waker_drop(pirn_waker_store(&child->waker, cx));
    return child->ready ? PIRN_READY : PIRN_PENDING;
}

static inline void child_drop(pirn_future *self)
{
    struct child *child = PIRN_CONTAINER_OF(self, struct child, future);

    child->drops++;
    pirn_waker_drop(pirn_waker_take(&child->waker));
}

static inline void child_discard(pirn_future *self)
{
    PIRN_CONTAINER_OF(self, struct child, future)->discards++;
}

static inline void child_describe(const pirn_future *self, pirn_text *out)
{
    (void)self;
    pirn_text_append(out, "child");
}

static inline int child_outcome(const pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, const struct child, future)->outcome;
}

static inline void child_init(struct child *child)
{
    static const pirn_future_ops ops = {
        .poll = child_poll,
        .drop = child_drop,
        .discard = child_discard,
        .describe = child_describe,
        .outcome = child_outcome,
    };

    *child = (struct child){.future = {&ops}};
}

/* Make it ready, and wake whoever waits for it. */
static inline void child_fire(struct child *child)
{
    child->ready = true;
    pirn_waker_wake(pirn_waker_take(&child->waker));
}

/* Fresh children, and a branch for each. */
static inline void children_init(struct child *children, pirn_branch *branches,
                                 size_t count)
{
    for (size_t i = 0; i < count; i++) {
        child_init(&children[i]);
        branches[i] = (pirn_branch)PIRN_BRANCH(&children[i]);
    }
}

static inline int children_polls(const struct child *children, size_t count)
{
    int polls = 0;

    for (size_t i = 0; i < count; i++)
        polls += children[i].polls;
    return polls;
}

static inline int children_drops(const struct child *children, size_t count)
{
    int drops = 0;

    for (size_t i = 0; i < count; i++)
        drops += children[i].drops;
    return drops;
}

/* A runtime's place whose memory has run out. */
static inline void *no_memory(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    (void)size;
    (void)align;
    return NULL;
}

static inline struct pirn__turn poor_turn(struct pirn__home *home)
{
    static const pirn_alloc nothing = {.take = no_memory};

    *home = (struct pirn__home){.alloc = &nothing};
    return (struct pirn__turn){.home = home, .budget = PIRN__COOP_BUDGET};
}

#endif /* PIRN_SCOPE_CHILDREN_TEST_H */
