/* SPDX-License-Identifier: MIT */
/* src/stream/next.c - calling a stream's operations; the next item as a future
 * and as a call. */
#include <pirn/stream.h>

#include <errno.h>

#include "task/await.h"
#include "task/local.h"

enum pirn_poll pirn_stream_poll_next(pirn_stream *stream, pirn_cx *cx,
                                     void *item, int *rc)
{
    struct pirn__local *local = pirn__local();
    enum pirn_poll poll;

    if (local != NULL)
        pirn__no_suspend_begin(local);
    poll = stream->ops->poll_next(stream, cx, item, rc);
    if (local != NULL)
        pirn__no_suspend_end(local);
    return poll;
}

void pirn_stream_drop(pirn_stream *stream)
{
    struct pirn__local *local = pirn__local();

    if (local != NULL)
        pirn__no_suspend_begin(local);
    stream->ops->drop(stream);
    if (local != NULL)
        pirn__no_suspend_end(local);
}

void pirn_stream_withdraw(pirn_stream *stream)
{
    struct pirn__local *local;

    if (stream->ops->withdraw == NULL)
        return;
    local = pirn__local();
    if (local != NULL)
        pirn__no_suspend_begin(local);
    stream->ops->withdraw(stream);
    if (local != NULL)
        pirn__no_suspend_end(local);
}

void pirn_stream_discard(pirn_stream *stream, void *item)
{
    struct pirn__local *local;

    if (stream->ops->discard == NULL)
        return;
    local = pirn__local();
    if (local != NULL)
        pirn__no_suspend_begin(local);
    stream->ops->discard(stream, item);
    if (local != NULL)
        pirn__no_suspend_end(local);
}

void pirn_stream_describe(const pirn_stream *stream, pirn_text *out)
{
    struct pirn__local *local;

    if (stream->ops->describe == NULL) {
        pirn_text_append(out, "?");
        return;
    }
    local = pirn__local();
    if (local != NULL)
        pirn__no_suspend_begin(local);
    stream->ops->describe(stream, out);
    if (local != NULL)
        pirn__no_suspend_end(local);
}

static enum pirn_poll next_poll(pirn_future *self, pirn_cx *cx)
{
    pirn_next_op *op = PIRN_CONTAINER_OF(self, pirn_next_op, future);

    return op->stream_->ops->poll_next(op->stream_, cx, op->item_, &op->rc);
}

/* The waker that the stream has stored stays there: it is replaced by the next
 * that asks, or goes with the stream. */
static void next_drop(pirn_future *self)
{
    pirn_stream_withdraw(PIRN_CONTAINER_OF(self, pirn_next_op, future)->stream_);
}

static void next_discard(pirn_future *self)
{
    pirn_next_op *op = PIRN_CONTAINER_OF(self, pirn_next_op, future);

    if (op->rc > 0)
        pirn_stream_discard(op->stream_, op->item_);
}

static void next_describe(const pirn_future *self, pirn_text *out)
{
    pirn_text_append(out, "next of ");
    pirn_stream_describe(
        PIRN_CONTAINER_OF(self, const pirn_next_op, future)->stream_, out);
}

static int next_outcome(const pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, const pirn_next_op, future)->rc;
}

static const pirn_future_ops next_ops = {
    .poll = next_poll,
    .drop = next_drop,
    .discard = next_discard,
    .describe = next_describe,
    .outcome = next_outcome,
};

void pirn_next_init(pirn_next_op *op, pirn_stream *stream, void *item)
{
    *op = (pirn_next_op){
        .future = {&next_ops},
        .stream_ = stream,
        .item_ = item,
    };
}

int pirn_next(pirn_stream *stream, void *item, pirn_deadline deadline)
{
    pirn_next_op op;
    int rc;

    if (stream == NULL)
        return -EINVAL;
    pirn_next_init(&op, stream, item);
    rc = pirn__await(&op.future, deadline);
    return rc < 0 ? rc : op.rc;
}
