/* SPDX-License-Identifier: MIT */
/* src/stream/chunks.c - the items of a stream, by the batch.
 *
 *   collecting --full, late, or the inner stream has no more--> handed out
 *        ^----------------- asked again -----------------------'
 *
 * While a chunk is collected its items lie in the caller's memory, of which
 * count_ are ours.  Handed out they are the asker's.  What the inner stream said
 * after the last item waits in after_ until it can be passed on.
 */
#include <pirn/stream.h>

#include <errno.h>

#include "task/local.h"
#include "time/timers.h"

static pirn_chunks_stream *chunks_of(pirn_stream *self)
{
    return PIRN_CONTAINER_OF(self, pirn_chunks_stream, stream);
}

static void *place_of(const pirn_chunks_stream *chunks, size_t index)
{
    return (char *)chunks->options_.items + index * chunks->options_.item_size;
}

static void stop_clock(pirn_chunks_stream *chunks)
{
    if (chunks->has_clock_)
        pirn__timer_drop(&chunks->clock_);
    chunks->has_clock_ = false;
}

/* Take what the inner stream has, as far as there is room. */
static void collect(pirn_chunks_stream *chunks, pirn_cx *cx)
{
    pirn_stream *inner = chunks->inner_;

    while (!chunks->has_after_ && chunks->count_ < chunks->options_.max) {
        void *place = place_of(chunks, chunks->count_);
        int rc;

        if (inner->ops->poll_next(inner, cx, place, &rc) == PIRN_PENDING)
            return;
        if (rc > 0) {
            chunks->count_++;
        } else {
            chunks->has_after_ = true;
            chunks->after_ = rc;
        }
    }
}

/* An incomplete chunk: has its first item waited long enough?  Spends no budget,
 * as no deadline does. */
static bool is_late(pirn_chunks_stream *chunks, pirn_cx *cx)
{
    uint64_t patience_ns = chunks->options_.patience_ns;

    if (patience_ns == UINT64_MAX)
        return false;
    if (!chunks->has_clock_) {
        pirn__timer_init(&chunks->clock_, pirn_after_ns(patience_ns));
        chunks->has_clock_ = true;
    }
    switch (pirn__timer_state(&chunks->clock_)) {
    case PIRN__TIMER_IDLE:
    case PIRN__TIMER_MOVING:
    case PIRN__TIMER_ARMED:
        break;
    case PIRN__TIMER_FIRED:
    case PIRN__TIMER_CANCELLED:
    case PIRN__TIMER_DEAD:
    case PIRN__TIMER_ENDED:
    case PIRN__TIMER_ENDED_CANCELLED:
    case PIRN__TIMER_ENDED_SHUTDOWN:
    case PIRN__TIMER_ENDED_NORUNTIME:
        return true;
    }
    return patience_ns == 0 || pirn__cx_home(cx) == NULL ||
           pirn__timer_arm(&chunks->clock_, pirn__cx_timers(cx), cx) < 0;
}

static bool has_chunk(pirn_chunks_stream *chunks, pirn_cx *cx)
{
    if (chunks->count_ == 0)
        return false;
    return chunks->has_after_ || chunks->count_ == chunks->options_.max ||
           is_late(chunks, cx);
}

static int hand_out(pirn_chunks_stream *chunks, pirn_chunk *chunk)
{
    stop_clock(chunks);
    chunks->handed_out_ = true;
    *chunk = (pirn_chunk){chunks->options_.items, chunks->count_};
    return 1;
}

static enum pirn_poll chunks_poll_next(pirn_stream *self, pirn_cx *cx,
                                       void *item, int *rc)
{
    pirn_chunks_stream *chunks = chunks_of(self);

    if (chunks->handed_out_) {
        chunks->handed_out_ = false;
        chunks->count_ = 0;
    }
    collect(chunks, cx);
    if (has_chunk(chunks, cx)) {
        *rc = hand_out(chunks, item);
        return PIRN_READY;
    }
    if (!chunks->has_after_)
        return PIRN_PENDING;
    /* A failure is said once, the end each time. */
    *rc = chunks->after_;
    chunks->has_after_ = chunks->after_ == 0;
    return PIRN_READY;
}

static void discard_items(pirn_chunks_stream *chunks)
{
    const pirn_chunk_options *options = &chunks->options_;

    for (size_t i = 0; i < chunks->count_; i++) {
        void *item = place_of(chunks, i);

        if (options->discard != NULL)
            options->discard(options->discard_arg, item);
        else
            pirn_stream_discard(chunks->inner_, item);
    }
    chunks->count_ = 0;
}

static void chunks_drop(pirn_stream *self)
{
    pirn_chunks_stream *chunks = chunks_of(self);

    stop_clock(chunks);
    if (!chunks->handed_out_)
        discard_items(chunks);
    pirn_stream_drop(chunks->inner_);
}

static void chunks_withdraw(pirn_stream *self)
{
    pirn_stream_withdraw(chunks_of(self)->inner_);
}

static void chunks_discard(pirn_stream *self, void *item)
{
    pirn_chunks_stream *chunks = chunks_of(self);

    (void)item;
    if (chunks->handed_out_)
        discard_items(chunks);
}

static void chunks_describe(const pirn_stream *self, pirn_text *out)
{
    const pirn_chunks_stream *chunks =
        PIRN_CONTAINER_OF(self, const pirn_chunks_stream, stream);

    pirn_text_append(out, "chunk (%zu of %zu) of ",
                     chunks->handed_out_ ? 0 : chunks->count_,
                     chunks->options_.max);
    pirn_stream_describe(chunks->inner_, out);
}

static const pirn_stream_ops chunks_ops = {
    .poll_next = chunks_poll_next,
    .drop = chunks_drop,
    .withdraw = chunks_withdraw,
    .discard = chunks_discard,
    .describe = chunks_describe,
};

int pirn_chunks_init(pirn_chunks_stream *chunks, pirn_stream *inner,
                     const pirn_chunk_options *options)
{
    if (options->items == NULL || options->item_size == 0 || options->max == 0)
        return -EINVAL;
    *chunks = (pirn_chunks_stream){
        .stream = {&chunks_ops},
        .inner_ = inner,
        .options_ = *options,
    };
    return 0;
}
