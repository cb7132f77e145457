/* SPDX-License-Identifier: MIT */
/* src/stream/source_test.h - a stream of numbers that the test fills, and asking
 * a stream by hand.
 */
#ifndef PIRN_STREAM_SOURCE_TEST_H
#define PIRN_STREAM_SOURCE_TEST_H

#include <errno.h>

#include <pirn/stream.h>

#include "engine/poller.h"

struct source {
    pirn_stream stream;
    int items[64];
    size_t count; /* put in */
    size_t given;
    bool ended;
    bool unbudgeted; /* spends nothing */
    int failure; /* said once, behind the items */
    int polls;
    int drops;
    int withdraws;
    int discards;
    pirn_waker waker;
};

/* What it says at once; false: nothing yet. */
static inline bool source_answer(struct source *source, int *item, int *rc)
{
    if (source->given < source->count) {
        *item = source->items[source->given++];
        *rc = 1;
        return true;
    }
    *rc = source->failure;
    source->failure = 0;
    return *rc < 0 || source->ended;
}

static inline enum pirn_poll source_poll_next(pirn_stream *self, pirn_cx *cx,
                                              void *item, int *rc)
{
    struct source *source = PIRN_CONTAINER_OF(self, struct source, stream);

    source->polls++;
    EXPECT_EQ(0, source->drops);
    if (!source->unbudgeted && !pirn_coop_spend(cx))
        return PIRN_PENDING;
    if (source_answer(source, item, rc)) {
        pirn_waker_drop(pirn_waker_take(&source->waker));
        return PIRN_READY;
    }
    pirn_waker_drop(pirn_waker_store(&source->waker, cx));
    return PIRN_PENDING;
}

static inline void source_drop(pirn_stream *self)
{
    struct source *source = PIRN_CONTAINER_OF(self, struct source, stream);

    source->drops++;
    pirn_waker_drop(pirn_waker_take(&source->waker));
}

static inline void source_withdraw(pirn_stream *self)
{
    struct source *source = PIRN_CONTAINER_OF(self, struct source, stream);

    source->withdraws++;
    pirn_waker_drop(pirn_waker_take(&source->waker));
}

static inline void source_discard(pirn_stream *self, void *item)
{
    (void)item;
    PIRN_CONTAINER_OF(self, struct source, stream)->discards++;
}

static inline void source_describe(const pirn_stream *self, pirn_text *out)
{
    (void)self;
    pirn_text_append(out, "source");
}

static inline void source_init(struct source *source)
{
    static const pirn_stream_ops ops = {
        .poll_next = source_poll_next,
        .drop = source_drop,
        .withdraw = source_withdraw,
        .discard = source_discard,
        .describe = source_describe,
    };

    *source = (struct source){.stream = {&ops}};
}

static inline void source_wake(struct source *source)
{
    pirn_waker_wake(pirn_waker_take(&source->waker));
}

static inline void source_put(struct source *source, int item)
{
    source->items[source->count++] = item;
    source_wake(source);
}

static inline void source_end(struct source *source)
{
    source->ended = true;
    source_wake(source);
}

static inline void source_fail(struct source *source, int rc)
{
    source->failure = rc;
    source_wake(source);
}

enum { WAITS = 77 }; /* what ask() answers for PIRN_PENDING */

/* Ask once, with the waker and the turn of `p`. */
static inline int ask(poller *p, pirn_stream *stream, void *item)
{
    pirn_waker waker = poller_waker(p);
    pirn_cx cx = pirn_cx_of_waker(&waker);
    int rc = 0;

    cx.turn_ = p->turn;
    if (pirn_stream_poll_next(stream, &cx, item, &rc) == PIRN_PENDING)
        return WAITS;
    return rc;
}

/* Give it up; no waker is left. */
static inline void drop_stream(poller *p, pirn_stream *stream)
{
    pirn_stream_drop(stream);
    EXPECT_EQ(0, poller_wakers(p));
}

static inline void expect_describes(const char *expected,
                                    const pirn_stream *stream)
{
    char buf[80] = "";
    pirn_text text = {.buf = buf, .size = sizeof buf};

    pirn_stream_describe(stream, &text);
    EXPECT_STR_EQ(expected, buf);
}

#endif /* PIRN_STREAM_SOURCE_TEST_H */
