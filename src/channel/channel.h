/* SPDX-License-Identifier: MIT */
/* src/channel/channel.h - the queue behind mpsc and mpmc.
 *
 *     senders --lock--> [ tail ... head ] --> receivers
 *
 * Messages lie in a ring (bounded) or in a chain of blocks (unbounded) and are
 * counted by two numbers that only grow: `tail`, how many were put in, and
 * `head`, how many were taken out.
 *
 * Senders work under the lock.  Several receivers do, too.  A single receiver
 * (mpsc) takes the lock only to see how far the senders have come; what lies
 * between `head` and `span_end` is then its own, and it takes these messages out
 * without the lock.
 *
 * Invariants
 *   - tail - head + reserved <= capacity.  Places are reserved for waiting
 *     senders that were granted one and have not been polled since, and for
 *     permits.
 *   - promised <= tail - head: messages that were granted to waiting receivers
 *     (mpmc) which have not been polled since.
 *   - `waiting` is set while a sender is in line.  A single receiver advances
 *     `head` and then looks at `waiting`; a sender sets `waiting` and then looks
 *     at `head`.  Both are seq_cst, so that one of the two sees the other.
 *   - A single receiver that waits is told of a message by `told_` of its
 *     operation, the last thing that is touched there, and of `tail` at that time
 *     by its `n`; so it needs no lock to go on.  The channel stays: to give the
 *     receiver up takes the lock.
 *   - Once sealed, nobody is granted a place any more; places that are reserved
 *     stay good, and the channel ends for receivers only after them.
 *   - All handles of the senders together have one reference, those of the
 *     receivers too, each weak sender one.
 *
 * Who changes the state under the lock leaves by pirn__channel_settle(), which
 * does what has become possible for those who wait.
 */
#ifndef PIRN_CHANNEL_CHANNEL_H
#define PIRN_CHANNEL_CHANNEL_H

#include <pirn/channel.h>

#include <string.h>

#include "sync/waitlist.h"

struct pirn__home;

/* Of a block of an unbounded channel, at most; the model build has few. */
#ifndef PIRN__CHANNEL_BLOCK_MESSAGES
#define PIRN__CHANNEL_BLOCK_MESSAGES 64
#endif

enum {
    PIRN__CHANNEL_DEFAULT_CAPACITY = 64,
    PIRN__CHANNEL_BLOCK_BYTES = 4096,  /* unless one message is larger */
    PIRN__CHANNEL_MESSAGE_LIMIT = 1 << 20,
};

/* What an unbounded channel is made of. */
struct pirn__block {
    struct pirn__block *next; /* lock, until the block has been left */
    void *align_;             /* messages are aligned to 16 */
    char data[];
};

struct pirn__channel {
    /* What every send touches. */
    pirn_lock lock;
    bool sealed;            /* lock; nothing more is accepted */
    bool deaf;              /* lock; no receiver is left */
    bool many;              /* constant; several receivers */
    bool unbounded;         /* constant */
    uint64_t tail;          /* lock */
    uint64_t head_seen;     /* lock; `head` when a sender last looked */
    uint64_t capacity;      /* constant; UINT64_MAX if unbounded */
    uint32_t reserved;      /* lock */
    uint32_t message_size;  /* constant */
    char *tail_at;          /* lock; where the next message goes, unless this */
    char *tail_end;         /* lock; is the end of the ring or block */
    pirn_waitlist receivers; /* lock */
    pirn_waitlist senders;  /* lock; waiter.count_ is how many places */
    /* What is seldom touched keeps senders and receiver apart, and is as little
     * as can do that. */
    uint32_t sender_count;  /* lock; handles and permits */
    uint32_t receiver_count; /* lock; handles */
    PIRN_ATOMIC(uint32_t) refs;
    uint32_t promised;          /* lock; mpmc */
    struct pirn__home *home;    /* constant; where memory comes from, or NULL */
    pirn_discard_fn *discard;   /* constant */
    void *discard_arg;          /* constant */
    struct pirn__block *tail_block; /* lock; unbounded */
    /* The receivers'; with several of them, under the lock. */
    PIRN_ATOMIC(uint64_t) head;
    PIRN_ATOMIC(uint16_t) waiting; /* written under the lock */
    bool chained;        /* constant: `unbounded` */
    uint32_t size;       /* constant: message_size */
    uint64_t span_end;   /* mpsc */
    char *head_at;       /* where the next message is, unless this is the end */
    char *head_end;      /* of the ring or block */
    _Alignas(16) char ring[]; /* bounded; else a struct pirn__chain */
};

/* The rest of an unbounded channel, where the ring of a bounded one is. */
struct pirn__chain {
    struct pirn__block *head_block; /* the receiver's */
    struct pirn__block *emptied;    /* its: to become the spare, or NULL */
    struct pirn__block *spare;      /* lock; an empty one, or NULL */
};

static inline struct pirn__chain *pirn__channel_chain(struct pirn__channel *ch)
{
    return (struct pirn__chain *)(void *)ch->ring;
}

_Static_assert(sizeof(struct pirn__channel) <= 176,
               "an empty bounded channel is small");
_Static_assert(offsetof(struct pirn__channel, head) -
                       offsetof(struct pirn__channel, senders) >=
                   PIRN__CACHE_LINE,
               "senders and receiver share no cache line");
_Static_assert(offsetof(struct pirn__channel, ring) % 16 == 0 &&
                   offsetof(struct pirn__block, data) % 16 == 0,
               "messages are aligned");

/* channel.c: making, counting, closing. */

/* Do these say how large a message is, and is it not too large? */
static inline bool
pirn__message_size_is_good(const pirn_channel_options *options)
{
    return options != NULL && options->message_size > 0 &&
           options->message_size <= PIRN__CHANNEL_MESSAGE_LIMIT;
}

/* For a ring that lies behind a struct of `struct_size` bytes: how many messages
 * it takes, and how much memory both need.  0, or -EINVAL. */
int pirn__ring_measure(const pirn_channel_options *options, size_t struct_size,
                       size_t *capacity, size_t *size);

/* A channel with one handle on each side; `many`: for several receivers. */
int pirn__channel_new(const pirn_channel_options *options, bool many,
                      struct pirn__channel **out);
void pirn__channel_unref(struct pirn__channel *ch);

void pirn__channel_sender_ref(struct pirn__channel *ch);
void pirn__channel_sender_unref(struct pirn__channel *ch);
void pirn__channel_receiver_ref(struct pirn__channel *ch);
void pirn__channel_receiver_unref(struct pirn__channel *ch);
void pirn__channel_close(struct pirn__channel *ch);
pirn_channel_info pirn__channel_info(const struct pirn__channel *ch);

/* Under the lock: one handle of the senders fewer.  True if it was the last:
 * settle, then give their reference up. */
bool pirn__channel_sender_leave_locked(struct pirn__channel *ch);

/* Under the lock, which is released: grant places and messages to those who wait
 * for them, end the wait of those who wait in vain, and wake both. */
void pirn__channel_settle(struct pirn__channel *ch);

/* Throw a message away that the user has got no hold of; without a function
 * there is nothing to do. */
void pirn__message_discard(pirn_discard_fn *discard, void *arg, void *message);
void pirn__channel_discard(struct pirn__channel *ch, void *message);

/* Under the lock, mpsc: the wait of this receive ends, for there is a message.
 * Wake the waker after unlock. */
static inline PIRN_MUST_CHECK pirn_waker
pirn__channel_tell_locked(struct pirn__channel *ch, pirn_waiter *waiter)
{
    pirn_channel_recv_op *op =
        PIRN_CONTAINER_OF(waiter, pirn_channel_recv_op, waiter_);
    pirn_waker waker = pirn__wait_end_locked(waiter, PIRN__WAIT_GRANTED);

    op->n = (ssize_t)ch->tail;
    /* release [channel.told]: the messages up to `n`, and our last use of the
     * operation. */
    pirn__store(&op->told_, 1, release);
    return waker;
}

/* Under the lock: nothing is in the channel, and nothing can come. */
bool pirn__channel_has_ended_locked(const struct pirn__channel *ch);

/* Under the lock: is there a message that is not promised to anybody? */
bool pirn__channel_has_message_locked(const struct pirn__channel *ch);

/* block.c: the chain of an unbounded channel. */

struct pirn__block *pirn__block_new(const struct pirn__channel *ch);
void pirn__block_free(struct pirn__channel *ch, struct pirn__block *block);
/* Under the lock: put new messages into `block` from now on. */
void pirn__block_append_locked(struct pirn__channel *ch,
                               struct pirn__block *block);
/* By a receiver that has read its block to the end: go on in the next one.  At
 * most one of those it has left is kept for the senders. */
void pirn__block_leave(struct pirn__channel *ch);
/* Under the lock: let the senders have the one that was kept. */
void pirn__block_recycle_locked(struct pirn__channel *ch);
/* All that are left, of a channel that nobody uses any more. */
void pirn__block_free_all(struct pirn__channel *ch);

/* send.c */

int pirn__channel_try_send(struct pirn__channel *ch, const void *message);
int pirn__channel_send(struct pirn__channel *ch, const void *message,
                       pirn_deadline deadline);
void pirn__channel_send_init(pirn_channel_send_op *op, struct pirn__channel *ch,
                             const void *message);

/* How a waiter of the senders is answered. */
enum pirn__room {
    PIRN__ROOM_NONE,   /* it has to wait */
    PIRN__ROOM_TAKEN,  /* waiter->count_ places are reserved for it now */
    PIRN__ROOM_CLOSED, /* it gets none, ever */
};

/* Under the lock, in a poll, for a waiter that is in line or wants to be: the
 * rules by which places are given away. */
enum pirn__room pirn__channel_ask_room_locked(struct pirn__channel *ch,
                                              const pirn_waiter *waiter);

/* Under the lock, for one that comes without a waiter: may it take as many?  No
 * while others are in line. */
bool pirn__channel_has_room_locked(struct pirn__channel *ch, uint64_t count);

/* The operation of this waiter is dropped. */
void pirn__channel_drop_sender(struct pirn__channel *ch, pirn_waiter *waiter);

/* Under the lock, in a poll: there is nothing for this waiter.  One that was told
 * of something which a try_ call has taken since stands in line anew. */
static inline bool pirn__channel_wait_on_locked(pirn_waiter *waiter)
{
    if (waiter->state_ == PIRN__WAIT_GRANTED)
        waiter->state_ = PIRN__WAIT_NEW;
    return false;
}

/* Messages are often one or two words; a call costs more than the copy. */
static inline void pirn__message_copy(void *target, const void *source,
                                      size_t size)
{
    if (size == 8)
        memcpy(target, source, 8);
    else if (size == 16)
        memcpy(target, source, 16);
    else
        memcpy(target, source, size);
}

/* Under the lock: put a message in, into a place that is free or whose
 * reservation has just been taken back, in a block that is not full. */
static inline void pirn__channel_put_locked(struct pirn__channel *ch,
                                            const void *message)
{
    if (ch->tail_at == ch->tail_end)
        ch->tail_at = ch->ring;
    pirn__message_copy(ch->tail_at, message, ch->message_size);
    ch->tail_at += ch->message_size;
    ch->tail++;
}

/* By a receiver: step over the next message, which is there, and return it. */
static inline char *pirn__channel_next(struct pirn__channel *ch)
{
    char *at;

    if (ch->head_at == ch->head_end) {
        if (ch->chained)
            pirn__block_leave(ch);
        else
            ch->head_at = ch->ring;
    }
    at = ch->head_at;
    ch->head_at += ch->size;
    return at;
}

#endif /* PIRN_CHANNEL_CHANNEL_H */
