/* SPDX-License-Identifier: MIT */
/* pirn/stream.h - one item after the other: streams that are pulled.
 *
 * A stream is a struct whose first member `stream` points to a table of
 * operations.  Whoever wants an item asks for it:
 *
 *     struct reading reading;
 *     int rc;
 *
 *     while ((rc = pirn_next(readings, &reading, pirn_after_ms(500))) > 0)
 *         record(&reading);
 *     pirn_stream_drop(readings);
 *
 * An item is of a size that both sides know; it is moved by copy.  What an
 * adapter wraps, it owns.  There is no adapter for what is better written in
 * the body of this loop.
 *
 * Cancel-safe.  A stream gives an item out only in the poll that says
 * PIRN_READY, and keeps no pointer to the buffer in between.  So a `next` that
 * is cancelled, times out or loses a select loses no item: the following one
 * gets it.  Where something is lost when a stream itself is dropped, its
 * comment says what.
 *
 * An item costs the coop budget that its source spends: a unit for a message of
 * a channel.  A merge spends a unit for each poll, a filter one for each item
 * that it throws away.
 */
#ifndef PIRN_STREAM_H
#define PIRN_STREAM_H

#include <pirn/time.h>

PIRN_BEGIN_DECLS

typedef struct pirn_stream pirn_stream;

typedef struct pirn_stream_ops {
    /* Ask for the next item.  PIRN_READY with *rc 1: it has been moved to
     * `item`; 0: there are no more, now and ever after; negative: a failure,
     * after which one may ask again.  PIRN_PENDING: the waker of `cx` has been
     * stored, or an earlier one renewed.  But for 1, what is in `item` means
     * nothing. */
    enum pirn_poll (*poll_next)(pirn_stream *self, pirn_cx *cx, void *item,
                                int *rc);
    /* Give the stream up, also after its end; called once.  Releases
     * everything at once and never suspends. */
    void (*drop)(pirn_stream *self);
    /* Whoever asked has given up, and may ask again or not: what has been set
     * aside for it is for others now.  NULL when there are no others. */
    void (*withdraw)(pirn_stream *self);
    /* An item that nobody takes: close the descriptor, free the message.  NULL
     * when items own nothing. */
    void (*discard)(pirn_stream *self, void *item);
    /* Say in a few words what it waits for; may be NULL. */
    void (*describe)(const pirn_stream *self, pirn_text *out);
} pirn_stream_ops;

struct pirn_stream {
    const pirn_stream_ops *ops;
};

/* Ask a stream for its next item once; see poll_next above.
 *
 * Thread    the one that may touch the stream
 */
PIRN_API PIRN_MUST_CHECK enum pirn_poll
pirn_stream_poll_next(pirn_stream *stream, pirn_cx *cx, void *item, int *rc);

/* Give a stream up, whether it has ended or not.  Once.
 *
 * Thread    the one that may touch the stream
 * Suspends  no
 */
PIRN_API void pirn_stream_drop(pirn_stream *stream);

/* Say that nobody waits for an answer any more.  Whoever polls a stream by hand
 * and then gives up calls it; pirn_next_op does.
 *
 * Thread    the one that may touch the stream
 * Suspends  no
 */
PIRN_API void pirn_stream_withdraw(pirn_stream *stream);

/* Throw away an item that came from this stream.
 *
 * Thread    the one that may touch the stream
 * Suspends  no
 */
PIRN_API void pirn_stream_discard(pirn_stream *stream, void *item);

/* Append what a stream waits for, or "?" if it does not say. */
PIRN_API void pirn_stream_describe(const pirn_stream *stream, pirn_text *out);

/* Wait for the next item: 1, and it is in `item`; 0 at the end.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    nothing is lost: ask again
 * Owns      on 1 the item is the caller's; otherwise the buffer holds none
 * Errors    -EINVAL     no stream
 *           -ECANCELED  the task was cancelled
 *           -ETIMEDOUT  no item before the deadline
 *           -EDEADLK    called inside a poll, a drop, a waker or a hook
 *           -ENOMEM     a plain thread's first call found no memory
 *           PIRN_ESHUTDOWN  the runtime that would have to wake us is gone
 *           and what the stream itself says
 */
PIRN_API PIRN_MUST_CHECK int pirn_next(pirn_stream *stream, void *item,
                                       pirn_deadline deadline);

/* The same as a future.  It borrows the stream and the buffer. */
typedef struct pirn_next_op {
    pirn_future future;
    pirn_stream *stream_;
    void *item_;
    int rc; /* once READY: 1, 0, or what the stream says */
} pirn_next_op;

/* Prepare to wait for the next item.
 *
 * Thread    any
 * Cancel    dropping it loses nothing
 * Owns      as pirn_next()
 */
PIRN_API void pirn_next_init(pirn_next_op *op, pirn_stream *stream, void *item);

/* Items changed one by one. */
typedef void pirn_map_fn(void *arg, const void *in, void *out);
typedef struct pirn_map_stream {
    pirn_stream stream;
    pirn_stream *inner_;
    void *in_;
    pirn_map_fn *fn_;
    void *arg_;
} pirn_map_stream;

/* Each item of `inner` is moved to `in` and comes out as fn(arg, in, out) leaves
 * it in the asker's buffer.  fn takes over what `in` owns; an outgoing item
 * that nobody takes is not discarded.
 *
 * Thread    any
 * Cancel    dropping it loses nothing but `inner`
 * Owns      `inner` is its own from here on; `in`, room for one item of
 *           `inner`, is borrowed until the drop
 */
PIRN_API void pirn_map_init(pirn_map_stream *map, pirn_stream *inner, void *in,
                            pirn_map_fn *fn, void *arg);

/* Items for which a function says true. */
typedef bool pirn_filter_fn(void *arg, const void *item);
typedef struct pirn_filter_stream {
    pirn_stream stream;
    pirn_stream *inner_;
    pirn_filter_fn *fn_;
    void *arg_;
} pirn_filter_stream;

/* The items of `inner` for which fn(arg, item) is true; the others are
 * discarded, and spend budget.  The asker's buffer holds each of them for a
 * moment.
 *
 * Thread    any
 * Cancel    dropping it loses nothing but `inner`
 * Owns      `inner` is its own from here on
 */
PIRN_API void pirn_filter_init(pirn_filter_stream *filter, pirn_stream *inner,
                               pirn_filter_fn *fn, void *arg);

/* The first items. */
typedef struct pirn_take_stream {
    pirn_stream stream;
    pirn_stream *inner_;
    uint64_t left_;
} pirn_take_stream;

/* The first `count` items of `inner`, which is not asked for more.
 *
 * Thread    any
 * Cancel    dropping it loses nothing but `inner`
 * Owns      `inner` is its own from here on
 */
PIRN_API void pirn_take_init(pirn_take_stream *take, pirn_stream *inner,
                             uint64_t count);

/* Items by the batch.  The item of this stream is a pirn_chunk: some items, at
 * least one, side by side, valid until the stream is asked again. */
typedef struct pirn_chunk {
    void *items;
    size_t count;
} pirn_chunk;

typedef void pirn_item_fn(void *arg, void *item);

typedef struct pirn_chunk_options {
    void *items;          /* room for `max` items */
    size_t item_size;     /* at least 1 */
    size_t max;           /* at least 1 */
    uint64_t patience_ns; /* how long the first of a chunk waits for the rest;
                             UINT64_MAX: until the chunk is full */
    /* Throws an item away.  NULL: the inner stream does; a merge can do so only
     * with what came last, and from a stream that it still has. */
    pirn_item_fn *discard;
    void *discard_arg;
} pirn_chunk_options;

typedef struct pirn_chunks_stream {
    pirn_stream stream;
    pirn_stream *inner_;
    pirn_chunk_options options_;
    size_t count_;     /* items collected */
    int after_;        /* what the inner stream said behind them */
    bool has_after_;   /* and that has not been passed on */
    bool handed_out_;  /* the items are the asker's until it asks again */
    bool has_clock_;   /* the first item waits: */
    pirn_timer clock_;
} pirn_chunks_stream;

/* Collect the items of `inner` into chunks.  A chunk is given out when it is
 * full, when its first item has waited long enough, and when `inner` ends or
 * fails, which is said after it.  Without a runtime to keep the time it does
 * not wait for more.
 *
 * Thread    any
 * Cancel    a `next` that is given up loses nothing; dropping the stream
 *           discards what has been collected since the last chunk
 * Owns      on success `inner` is its own, and options->items is borrowed until
 *           the drop; on error nothing changes
 * Errors    -EINVAL  no room for items, item_size or max is 0
 */
PIRN_API PIRN_MUST_CHECK int
pirn_chunks_init(pirn_chunks_stream *chunks, pirn_stream *inner,
                 const pirn_chunk_options *options);

/* Several streams of equal items as one, and a map of streams by key. */
typedef struct pirn_stream_slot {
    pirn_stream *stream; /* NULL: free */
    uint64_t key;
} pirn_stream_slot;

typedef struct pirn_merge_stream {
    pirn_stream stream;
    uint64_t key; /* of the stream that the latest answer came from */
    pirn_stream_slot *slots_;
    size_t capacity_;
    size_t count_;
    pirn_waker waker_; /* for who comes in later */
    struct pirn__wakeset *wakes_;
    bool begun_;
} pirn_merge_stream;

/* Merge the streams that stand in `slots`, in `capacity` places of which some
 * may be free.  Fair: each poll begins at a random one and goes round.  One that
 * ends is dropped and its place is free; a failure is passed on and ends
 * nothing.  `merge->key` names the stream of each answer.  The merge ends when
 * it is empty; after an insert it goes on.  With more than 4 places only those
 * streams are polled that were woken; that takes one allocation, and without
 * memory for it all are.
 *
 * Thread    any
 * Cancel    dropping it loses nothing but its streams
 * Owns      the streams are its own from here on; `slots` is borrowed until the
 *           drop
 */
PIRN_API void pirn_merge_init(pirn_merge_stream *merge, pirn_stream_slot *slots,
                              size_t capacity);

/* Add a stream; take one out, which is live and the caller's again; how many
 * there are.  Whoever waits for the next item is woken by an insert, and when
 * the last stream is taken out.  Each looks through the places.
 *
 * Thread    the one that may touch the stream
 * Suspends  no
 * Owns      on success insert takes `stream` over; on error it is the caller's
 * Errors    -EINVAL  no stream
 *           -EEXIST  there is one with this key
 *           -ENOSPC  no place is free
 *           -ENOENT  remove: there is none with this key; *out is NULL
 */
PIRN_API PIRN_MUST_CHECK int pirn_merge_insert(pirn_merge_stream *merge,
                                               uint64_t key,
                                               pirn_stream *stream);
PIRN_API PIRN_MUST_CHECK int pirn_merge_remove(pirn_merge_stream *merge,
                                               uint64_t key, pirn_stream **out);
PIRN_API size_t pirn_merge_count(const pirn_merge_stream *merge);

PIRN_END_DECLS

#endif /* PIRN_STREAM_H */
