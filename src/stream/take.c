/* SPDX-License-Identifier: MIT */
/* src/stream/take.c - the first items of a stream. */
#include <pirn/stream.h>

static pirn_take_stream *take_of(pirn_stream *self)
{
    return PIRN_CONTAINER_OF(self, pirn_take_stream, stream);
}

static enum pirn_poll take_poll_next(pirn_stream *self, pirn_cx *cx, void *item,
                                     int *rc)
{
    pirn_take_stream *take = take_of(self);
    pirn_stream *inner = take->inner_;

    *rc = 0;
    if (take->left_ == 0)
        return PIRN_READY;
    if (inner->ops->poll_next(inner, cx, item, rc) == PIRN_PENDING)
        return PIRN_PENDING;
    if (*rc > 0)
        take->left_--;
    return PIRN_READY;
}

static void take_drop(pirn_stream *self)
{
    pirn_stream_drop(take_of(self)->inner_);
}

static void take_withdraw(pirn_stream *self)
{
    pirn_stream_withdraw(take_of(self)->inner_);
}

static void take_discard(pirn_stream *self, void *item)
{
    pirn_stream_discard(take_of(self)->inner_, item);
}

static void take_describe(const pirn_stream *self, pirn_text *out)
{
    const pirn_take_stream *take =
        PIRN_CONTAINER_OF(self, const pirn_take_stream, stream);

    pirn_text_append(out, "%llu more of ", (unsigned long long)take->left_);
    pirn_stream_describe(take->inner_, out);
}

static const pirn_stream_ops take_ops = {
    .poll_next = take_poll_next,
    .drop = take_drop,
    .withdraw = take_withdraw,
    .discard = take_discard,
    .describe = take_describe,
};

void pirn_take_init(pirn_take_stream *take, pirn_stream *inner, uint64_t count)
{
    *take = (pirn_take_stream){
        .stream = {&take_ops},
        .inner_ = inner,
        .left_ = count,
    };
}
