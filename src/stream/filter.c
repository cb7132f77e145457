/* SPDX-License-Identifier: MIT */
/* src/stream/filter.c - the items of a stream that a function lets through. */
#include <pirn/stream.h>

#include "task/local.h"

static pirn_filter_stream *filter_of(pirn_stream *self)
{
    return PIRN_CONTAINER_OF(self, pirn_filter_stream, stream);
}

static enum pirn_poll filter_poll_next(pirn_stream *self, pirn_cx *cx,
                                       void *item, int *rc)
{
    pirn_filter_stream *filter = filter_of(self);
    pirn_stream *inner = filter->inner_;

    /* Ends with the budget, if the inner stream has not waited before. */
    for (;;) {
        if (inner->ops->poll_next(inner, cx, item, rc) == PIRN_PENDING)
            return PIRN_PENDING;
        if (*rc <= 0 || filter->fn_(filter->arg_, item))
            return PIRN_READY;
        pirn_stream_discard(inner, item);
        if (!pirn__coop_spend(cx))
            return PIRN_PENDING;
    }
}

static void filter_drop(pirn_stream *self)
{
    pirn_stream_drop(filter_of(self)->inner_);
}

static void filter_withdraw(pirn_stream *self)
{
    pirn_stream_withdraw(filter_of(self)->inner_);
}

static void filter_discard(pirn_stream *self, void *item)
{
    pirn_stream_discard(filter_of(self)->inner_, item);
}

static void filter_describe(const pirn_stream *self, pirn_text *out)
{
    pirn_text_append(out, "filter of ");
    pirn_stream_describe(
        PIRN_CONTAINER_OF(self, const pirn_filter_stream, stream)->inner_, out);
}

static const pirn_stream_ops filter_ops = {
    .poll_next = filter_poll_next,
    .drop = filter_drop,
    .withdraw = filter_withdraw,
    .discard = filter_discard,
    .describe = filter_describe,
};

void pirn_filter_init(pirn_filter_stream *filter, pirn_stream *inner,
                      pirn_filter_fn *fn, void *arg)
{
    *filter = (pirn_filter_stream){
        .stream = {&filter_ops},
        .inner_ = inner,
        .fn_ = fn,
        .arg_ = arg,
    };
}
