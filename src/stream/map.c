/* SPDX-License-Identifier: MIT */
/* src/stream/map.c - the items of a stream, changed one by one. */
#include <pirn/stream.h>

static pirn_map_stream *map_of(pirn_stream *self)
{
    return PIRN_CONTAINER_OF(self, pirn_map_stream, stream);
}

static enum pirn_poll map_poll_next(pirn_stream *self, pirn_cx *cx, void *item,
                                    int *rc)
{
    pirn_map_stream *map = map_of(self);
    pirn_stream *inner = map->inner_;

    if (inner->ops->poll_next(inner, cx, map->in_, rc) == PIRN_PENDING)
        return PIRN_PENDING;
    if (*rc > 0)
        map->fn_(map->arg_, map->in_, item);
    return PIRN_READY;
}

static void map_drop(pirn_stream *self)
{
    pirn_stream_drop(map_of(self)->inner_);
}

static void map_withdraw(pirn_stream *self)
{
    pirn_stream_withdraw(map_of(self)->inner_);
}

static void map_describe(const pirn_stream *self, pirn_text *out)
{
    pirn_text_append(out, "map of ");
    pirn_stream_describe(
        PIRN_CONTAINER_OF(self, const pirn_map_stream, stream)->inner_, out);
}

static const pirn_stream_ops map_ops = {
    .poll_next = map_poll_next,
    .drop = map_drop,
    .withdraw = map_withdraw,
    .describe = map_describe,
};

void pirn_map_init(pirn_map_stream *map, pirn_stream *inner, void *in,
                   pirn_map_fn *fn, void *arg)
{
    *map = (pirn_map_stream){
        .stream = {&map_ops},
        .inner_ = inner,
        .in_ = in,
        .fn_ = fn,
        .arg_ = arg,
    };
}
