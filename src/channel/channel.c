/* SPDX-License-Identifier: MIT */
/* src/channel/channel.c - the life of a channel: made, counted, closed; and what
 * is done for those who wait when something has changed.
 */
#include "channel/channel.h"

#include <errno.h>

#include "base/assert.h"
#include "base/checked.h"
#include "task/home.h"
#include "task/local.h"

/* Making and freeing. */

/* What lies behind the struct. */
static size_t rest_bytes(const struct pirn__channel *ch)
{
    return ch->unbounded ? sizeof(struct pirn__chain)
                         : (size_t)ch->capacity * ch->message_size;
}

int pirn__ring_measure(const pirn_channel_options *options, size_t struct_size,
                       size_t *capacity, size_t *size)
{
    size_t bytes;

    if (!pirn__message_size_is_good(options))
        return -EINVAL;
    *capacity = options->capacity == 0 ? PIRN__CHANNEL_DEFAULT_CAPACITY
                                       : options->capacity;
    if (*capacity > UINT32_MAX ||
        !pirn__checked_mul(*capacity, options->message_size, &bytes) ||
        !pirn__checked_add(struct_size, bytes, size))
        return -EINVAL;
    return 0;
}

/* The same for a channel. */
static int measure(const pirn_channel_options *options, bool many,
                   size_t *capacity, size_t *size)
{
    if (!pirn__message_size_is_good(options))
        return -EINVAL;
    if (options->capacity != PIRN_UNBOUNDED)
        return pirn__ring_measure(options, sizeof(struct pirn__channel),
                                  capacity, size);
    *capacity = PIRN_UNBOUNDED;
    *size = sizeof(struct pirn__channel) + sizeof(struct pirn__chain);
    return many ? -EINVAL : 0;
}

static void channel_init(struct pirn__channel *ch, struct pirn__home *home,
                         const pirn_channel_options *options, size_t capacity)
{
    *ch = (struct pirn__channel){
        .capacity = capacity == PIRN_UNBOUNDED ? UINT64_MAX : capacity,
        .unbounded = capacity == PIRN_UNBOUNDED,
        .chained = capacity == PIRN_UNBOUNDED,
        .message_size = (uint32_t)options->message_size,
        .size = (uint32_t)options->message_size,
        .sender_count = 1,
        .receiver_count = 1,
        .home = home,
        .discard = options->discard,
        .discard_arg = options->discard_arg,
    };
    pirn__lock_init(&ch->lock);
    pirn__waitlist_init(&ch->senders);
    pirn__waitlist_init(&ch->receivers);
    /* Two: the senders' and the receivers'. */
    pirn__init(&ch->refs, 2);
    pirn__init(&ch->head, 0);
    pirn__init(&ch->waiting, 0);
    ch->tail_at = ch->ring;
    ch->tail_end = ch->ring + rest_bytes(ch);
    ch->head_at = ch->tail_at;
    ch->head_end = ch->tail_end;
}

/* An unbounded channel begins with a block, so that there always is one. */
static bool add_first_block(struct pirn__channel *ch)
{
    struct pirn__block *block = pirn__block_new(ch);

    memset(pirn__channel_chain(ch), 0, sizeof(struct pirn__chain));
    if (block != NULL)
        pirn__block_append_locked(ch, block);
    return block != NULL;
}

int pirn__channel_new(const pirn_channel_options *options, bool many,
                      struct pirn__channel **out)
{
    struct pirn__home *home = pirn__local_home();
    struct pirn__channel *ch;
    size_t capacity, size;
    int rc = measure(options, many, &capacity, &size);

    if (rc < 0)
        return rc;
    ch = pirn__home_take_object(home, size);
    if (ch == NULL)
        return -ENOMEM;
    channel_init(ch, home, options, capacity);
    ch->many = many;
    if (ch->unbounded && !add_first_block(ch)) {
        pirn__home_give_object(home, ch, size);
        return -ENOMEM;
    }
    *out = ch;
    return 0;
}

void pirn__channel_unref(struct pirn__channel *ch)
{
    /* acq_rel [channel.refs]: release [channel.refs] ends our use; acquire
     * [channel.refs] is the half of the one that frees. */
    if (pirn__sub(&ch->refs, 1, acq_rel) != 1)
        return;
    if (ch->unbounded)
        pirn__block_free_all(ch);
    pirn__home_give_object(ch->home, ch, sizeof *ch + rest_bytes(ch));
}

/* Those who wait. */

bool pirn__channel_has_ended_locked(const struct pirn__channel *ch)
{
    /* relaxed: a receiver asks, or one that is in line, which came here by the
     * lock. */
    return ch->sealed && ch->reserved == 0 &&
           pirn__load(&ch->head, relaxed) == ch->tail;
}

bool pirn__channel_has_message_locked(const struct pirn__channel *ch)
{
    /* relaxed: as above. */
    return ch->tail - pirn__load(&ch->head, relaxed) > ch->promised;
}

/* Grant places in turn, or end the wait of all. */
static void serve_senders_locked(struct pirn__channel *ch,
                                 struct pirn__wake_batch *batch)
{
    pirn_waiter *first;

    while ((first = pirn__waitlist_first(&ch->senders)) != NULL &&
           !pirn__wake_batch_full(batch)) {
        enum pirn__wait_state end = PIRN__WAIT_CLOSED;

        if (!ch->sealed) {
            if (!pirn__channel_has_room_locked(ch, first->count_))
                return;
            ch->reserved += first->count_;
            end = PIRN__WAIT_GRANTED;
        }
        pirn__wake_batch_add(batch, pirn__wait_end_locked(first, end));
    }
    /* relaxed, both: a hint, written under the lock; see
     * pirn__channel_ask_room_locked(). */
    if (first == NULL && pirn__load(&ch->waiting, relaxed) != 0)
        /* relaxed: as above. */
        pirn__store(&ch->waiting, 0, relaxed);
}

/* Promise messages in turn, or end the wait of all. */
static void serve_receivers_locked(struct pirn__channel *ch,
                                   struct pirn__wake_batch *batch)
{
    pirn_waiter *first;

    while ((first = pirn__waitlist_first(&ch->receivers)) != NULL &&
           !pirn__wake_batch_full(batch)) {
        pirn_waker waker;

        if (!pirn__channel_has_message_locked(ch)) {
            if (!pirn__channel_has_ended_locked(ch))
                return;
            waker = pirn__wait_end_locked(first, PIRN__WAIT_CLOSED);
        } else if (ch->many) {
            ch->promised++;
            waker = pirn__wait_end_locked(first, PIRN__WAIT_GRANTED);
        } else {
            waker = pirn__channel_tell_locked(ch, first);
        }
        pirn__wake_batch_add(batch, waker);
    }
}

/* A permit that has just been used up does not keep the channel, and those who
 * are woken may end it: so it is held when it is to be locked once more. */
void pirn__channel_settle(struct pirn__channel *ch)
{
    struct pirn__wake_batch batch;
    bool is_done, is_held = false;

    pirn__wake_batch_init(&batch);
    /* Ends: each round but the last ends the wait of a batch, and those who come
     * meanwhile find nothing to be granted. */
    do {
        serve_receivers_locked(ch, &batch);
        serve_senders_locked(ch, &batch);
        is_done = !pirn__wake_batch_full(&batch);
        if (!is_done && !is_held) {
            /* relaxed: under the lock it is still held by somebody. */
            (void)pirn__add(&ch->refs, 1, relaxed);
            is_held = true;
        }
        pirn__unlock(&ch->lock);
        pirn__wake_batch_wake(&batch);
        if (!is_done)
            pirn__lock(&ch->lock);
    } while (!is_done);
    if (is_held)
        pirn__channel_unref(ch);
}

/* Handles. */

void pirn__channel_sender_ref(struct pirn__channel *ch)
{
    pirn__lock(&ch->lock);
    ch->sender_count++;
    pirn__unlock(&ch->lock);
}

bool pirn__channel_sender_leave_locked(struct pirn__channel *ch)
{
    PIRN_REQUIRE(ch->sender_count > 0, "a sender is given up once");
    if (--ch->sender_count > 0)
        return false;
    PIRN_REQUIRE(pirn__waitlist_empty(&ch->senders),
                 "a sender is not given up while a send waits on it");
    ch->sealed = true;
    return true;
}

void pirn__channel_sender_unref(struct pirn__channel *ch)
{
    bool is_last;

    pirn__lock(&ch->lock);
    is_last = pirn__channel_sender_leave_locked(ch);
    if (!is_last) {
        pirn__unlock(&ch->lock);
        return;
    }
    pirn__channel_settle(ch);
    pirn__channel_unref(ch);
}

void pirn__channel_receiver_ref(struct pirn__channel *ch)
{
    pirn__lock(&ch->lock);
    ch->receiver_count++;
    pirn__unlock(&ch->lock);
}

void pirn__message_discard(pirn_discard_fn *discard, void *arg, void *message)
{
    struct pirn__local *local;

    if (discard == NULL)
        return;
    local = pirn__local();
    if (local != NULL)
        pirn__no_suspend_begin(local);
    discard(arg, message);
    if (local != NULL)
        pirn__no_suspend_end(local);
}

void pirn__channel_discard(struct pirn__channel *ch, void *message)
{
    pirn__message_discard(ch->discard, ch->discard_arg, message);
}

/* Nobody receives, and nobody can send, any more. */
static void discard_rest(struct pirn__channel *ch, uint64_t end)
{
    /* relaxed, both: receivers alone write it, and there is none but us. */
    uint64_t head = pirn__load(&ch->head, relaxed);

    for (; head != end; head++)
        pirn__channel_discard(ch, pirn__channel_next(ch));
    /* relaxed: as above. */
    pirn__store(&ch->head, head, relaxed);
}

void pirn__channel_receiver_unref(struct pirn__channel *ch)
{
    uint64_t end;

    pirn__lock(&ch->lock);
    PIRN_REQUIRE(ch->receiver_count > 0, "a receiver is given up once");
    if (--ch->receiver_count > 0) {
        pirn__unlock(&ch->lock);
        return;
    }
    PIRN_REQUIRE(pirn__waitlist_empty(&ch->receivers),
                 "a receiver is not given up while a receive waits on it");
    ch->sealed = true;
    ch->deaf = true;
    end = ch->tail;
    pirn__channel_settle(ch);
    discard_rest(ch, end);
    pirn__channel_unref(ch);
}

void pirn__channel_close(struct pirn__channel *ch)
{
    pirn__lock(&ch->lock);
    ch->sealed = true;
    pirn__channel_settle(ch);
}

pirn_channel_info pirn__channel_info(const struct pirn__channel *ch)
{
    /* The lock is the only thing that changes. */
    pirn_lock *lock = (pirn_lock *)(uintptr_t)&ch->lock;
    pirn_channel_info info;
    uint64_t used;

    pirn__lock(lock);
    /* relaxed: a count.  Never ahead of `tail`, which is read under the lock
     * that its messages came by. */
    info.length = (size_t)(ch->tail - pirn__load(&ch->head, relaxed));
    used = info.length + ch->reserved;
    info.capacity = ch->unbounded ? PIRN_UNBOUNDED : (size_t)ch->capacity;
    info.available =
        ch->unbounded ? PIRN_UNBOUNDED : (size_t)(ch->capacity - used);
    info.senders = ch->sender_count;
    info.receivers = ch->receiver_count;
    info.closed = ch->sealed;
    pirn__unlock(lock);
    return info;
}
