/* SPDX-License-Identifier: MIT */
/* src/stream/receiver.c - the receiving side of a channel as a stream: one
 * receive after the other, begun when somebody asks.
 *
 * A receive that waits lives on when the asker gives up, unless others could have
 * what it waits for.  Its message is written by the poll that ends it, so each
 * poll first says where that is.
 */
#include <pirn/channel_stream.h>

/* What the channels differ in. */
struct pirn__channel_kind {
    void (*begin)(pirn_channel_stream *stream, void *item);
    void (*aim)(pirn_channel_stream *stream, void *item);
    int (*answer)(const pirn_channel_stream *stream); /* 1 or a code */
    void (*discard)(pirn_channel_stream *stream, void *item);
    void (*let_go)(void *receiver);
    bool sets_aside; /* a message for who waits, which others cannot have */
};

static pirn_channel_stream *stream_of(pirn_stream *self)
{
    return PIRN_CONTAINER_OF(self, pirn_channel_stream, stream);
}

/* The operation, of whatever kind: each begins with its future. */
static pirn_future *future_of(pirn_channel_stream *stream)
{
    return &stream->op_.channel.future;
}

/* Ready to be polled for `item`. */
static void prepare(pirn_channel_stream *stream, void *item)
{
    if (stream->waits_)
        stream->kind_->aim(stream, item);
    else
        stream->kind_->begin(stream, item);
    stream->waits_ = true;
}

static enum pirn_poll receiver_poll_next(pirn_stream *self, pirn_cx *cx,
                                         void *item, int *rc)
{
    pirn_channel_stream *stream = stream_of(self);
    pirn_future *future = future_of(stream);

    *rc = 0;
    if (stream->ended_)
        return PIRN_READY;
    prepare(stream, item);
    if (future->ops->poll(future, cx) == PIRN_PENDING)
        return PIRN_PENDING;
    stream->waits_ = false;
    *rc = stream->kind_->answer(stream);
    if (*rc == PIRN_ECLOSED) {
        stream->ended_ = true;
        *rc = 0;
    }
    return PIRN_READY;
}

static void receiver_drop(pirn_stream *self)
{
    pirn_channel_stream *stream = stream_of(self);

    if (stream->waits_)
        pirn_future_drop(future_of(stream));
    stream->waits_ = false;
    stream->kind_->let_go(stream->receiver_);
}

static void receiver_withdraw(pirn_stream *self)
{
    pirn_channel_stream *stream = stream_of(self);

    if (!stream->waits_ || !stream->kind_->sets_aside)
        return;
    stream->waits_ = false;
    pirn_future_drop(future_of(stream));
}

static void receiver_discard(pirn_stream *self, void *item)
{
    pirn_channel_stream *stream = stream_of(self);

    if (stream->kind_->discard != NULL)
        stream->kind_->discard(stream, item);
}

static void receiver_describe(const pirn_stream *self, pirn_text *out)
{
    (void)self;
    pirn_text_append(out, "messages of a channel");
}

static void init(pirn_channel_stream *stream,
                 const struct pirn__channel_kind *kind, void *receiver)
{
    static const pirn_stream_ops ops = {
        .poll_next = receiver_poll_next,
        .drop = receiver_drop,
        .withdraw = receiver_withdraw,
        .discard = receiver_discard,
        .describe = receiver_describe,
    };

    *stream = (pirn_channel_stream){
        .stream = {&ops},
        .kind_ = kind,
        .receiver_ = receiver,
    };
}

/* mpsc and mpmc. */

static void mpsc_begin(pirn_channel_stream *stream, void *item)
{
    pirn_mpsc_recv_init(&stream->op_.channel, stream->receiver_, item);
}

static void mpmc_begin(pirn_channel_stream *stream, void *item)
{
    pirn_mpmc_recv_init(&stream->op_.channel, stream->receiver_, item);
}

static void channel_aim(pirn_channel_stream *stream, void *item)
{
    stream->op_.channel.messages_ = item;
}

static int channel_answer(const pirn_channel_stream *stream)
{
    return (int)stream->op_.channel.n;
}

/* As a receive that has just ended with this message. */
static void discard_by(pirn_mpsc_recv_op *ended)
{
    ended->n = 1;
    pirn_future_discard(&ended->future);
}

static void mpsc_discard(pirn_channel_stream *stream, void *item)
{
    pirn_mpsc_recv_op ended;

    pirn_mpsc_recv_init(&ended, stream->receiver_, item);
    discard_by(&ended);
}

static void mpmc_discard(pirn_channel_stream *stream, void *item)
{
    pirn_mpmc_recv_op ended;

    pirn_mpmc_recv_init(&ended, stream->receiver_, item);
    discard_by(&ended);
}

static void mpsc_let_go(void *receiver)
{
    pirn_mpsc_receiver_free(receiver);
}

static void mpmc_let_go(void *receiver)
{
    pirn_mpmc_receiver_unref(receiver);
}

void pirn_mpsc_stream_init(pirn_channel_stream *stream,
                           pirn_mpsc_receiver *receiver)
{
    static const struct pirn__channel_kind kind = {
        .begin = mpsc_begin,
        .aim = channel_aim,
        .answer = channel_answer,
        .discard = mpsc_discard,
        .let_go = mpsc_let_go,
    };

    init(stream, &kind, receiver);
}

void pirn_mpmc_stream_init(pirn_channel_stream *stream,
                           pirn_mpmc_receiver *receiver)
{
    static const struct pirn__channel_kind kind = {
        .begin = mpmc_begin,
        .aim = channel_aim,
        .answer = channel_answer,
        .discard = mpmc_discard,
        .let_go = mpmc_let_go,
        .sets_aside = true,
    };

    init(stream, &kind, receiver);
}

/* Broadcast. */

static void broadcast_begin(pirn_channel_stream *stream, void *item)
{
    pirn_broadcast_recv_init(&stream->op_.broadcast, stream->receiver_, item);
}

static void broadcast_aim(pirn_channel_stream *stream, void *item)
{
    stream->op_.broadcast.message_ = item;
}

static int broadcast_answer(const pirn_channel_stream *stream)
{
    int rc = stream->op_.broadcast.rc;

    return rc == 0 ? 1 : rc;
}

static void broadcast_let_go(void *receiver)
{
    pirn_broadcast_receiver_free(receiver);
}

void pirn_broadcast_stream_init(pirn_channel_stream *stream,
                                pirn_broadcast_receiver *receiver)
{
    static const struct pirn__channel_kind kind = {
        .begin = broadcast_begin,
        .aim = broadcast_aim,
        .answer = broadcast_answer,
        .let_go = broadcast_let_go,
    };

    init(stream, &kind, receiver);
}

/* Watch. */

static void watch_begin(pirn_channel_stream *stream, void *item)
{
    pirn_watch_changed_init(&stream->op_.watch, stream->receiver_, item);
}

static void watch_aim(pirn_channel_stream *stream, void *item)
{
    stream->op_.watch.value_ = item;
}

static int watch_answer(const pirn_channel_stream *stream)
{
    int rc = stream->op_.watch.rc;

    return rc == 0 ? 1 : rc;
}

static void watch_let_go(void *receiver)
{
    pirn_watch_receiver_free(receiver);
}

void pirn_watch_stream_init(pirn_channel_stream *stream,
                            pirn_watch_receiver *receiver)
{
    static const struct pirn__channel_kind kind = {
        .begin = watch_begin,
        .aim = watch_aim,
        .answer = watch_answer,
        .let_go = watch_let_go,
    };

    init(stream, &kind, receiver);
}
