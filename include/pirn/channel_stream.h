/* SPDX-License-Identifier: MIT */
/* pirn/channel_stream.h - the receiving side of a channel as a stream.
 *
 *     pirn_channel_stream jobs;
 *
 *     pirn_mpsc_stream_init(&jobs, receiver);
 *     while ((rc = pirn_next(&jobs.stream, &job, PIRN_NEVER)) > 0)
 *         run(&job);
 *     pirn_stream_drop(&jobs.stream);        // and the receiver with it
 *
 * An item is a message.  The stream ends when the channel is closed and empty.
 * For what only receives, the calls of the channel are shorter; a stream can be
 * merged, batched and wrapped.
 */
#ifndef PIRN_CHANNEL_STREAM_H
#define PIRN_CHANNEL_STREAM_H

#include <pirn/broadcast.h>
#include <pirn/mpmc.h>
#include <pirn/mpsc.h>
#include <pirn/stream.h>
#include <pirn/watch.h>

PIRN_BEGIN_DECLS

typedef struct pirn_channel_stream {
    pirn_stream stream;
    const struct pirn__channel_kind *kind_;
    void *receiver_;
    bool waits_; /* the operation is live */
    bool ended_;
    union {
        pirn_channel_recv_op channel;
        pirn_broadcast_recv_op broadcast;
        pirn_watch_op watch;
    } op_;
} pirn_channel_stream;

/* The messages of a channel.  A receiver of a broadcast that has missed some
 * says -EOVERFLOW and goes on.  The items of a watch are the values that are
 * new when it is asked.
 *
 * Thread    any
 * Cancel    dropping the stream gives the receiver up, as
 *           pirn_mpsc_receiver_free() and its kin; nothing else is lost
 * Owns      `receiver` is its own from here on
 */
PIRN_API void pirn_mpsc_stream_init(pirn_channel_stream *stream,
                                    pirn_mpsc_receiver *receiver);
PIRN_API void pirn_mpmc_stream_init(pirn_channel_stream *stream,
                                    pirn_mpmc_receiver *receiver);
PIRN_API void pirn_broadcast_stream_init(pirn_channel_stream *stream,
                                         pirn_broadcast_receiver *receiver);
PIRN_API void pirn_watch_stream_init(pirn_channel_stream *stream,
                                     pirn_watch_receiver *receiver);

PIRN_END_DECLS

#endif /* PIRN_CHANNEL_STREAM_H */
