/* SPDX-License-Identifier: MIT */
/* src/stream/merge.c - several streams as one, and a map of streams by key. */
#include <pirn/stream.h>

#include <errno.h>

#include "scope/branch.h"
#include "scope/wakeset.h"
#include "task/local.h"

enum { DESCRIBED = 4 }; /* streams that a text names */

static pirn_merge_stream *merge_of(pirn_stream *self)
{
    return PIRN_CONTAINER_OF(self, pirn_merge_stream, stream);
}

/* Ask the stream of a slot.  True if its answer is one of the merge. */
static bool ask(pirn_merge_stream *merge, pirn_stream_slot *slot, pirn_cx *cx,
                void *item, int *rc)
{
    int32_t before = pirn__coop_left(cx);
    pirn_stream *stream = slot->stream;

    if (stream->ops->poll_next(stream, cx, item, rc) == PIRN_PENDING) {
        pirn__coop_refund(cx, before);
        return false;
    }
    if (*rc == 0) {
        slot->stream = NULL;
        merge->count_--;
        pirn_stream_drop(stream);
        return false;
    }
    merge->key = slot->key;
    return true;
}

/* Before a round: who is to be woken, by members and by an insert. */
static void store_waker(pirn_merge_stream *merge, const pirn_cx *cx)
{
    if (!merge->begun_)
        merge->wakes_ = pirn__wakeset_for(merge->capacity_,
                                          PIRN__WAKESET_FEW_STREAMS, cx);
    merge->begun_ = true;
    if (merge->wakes_ != NULL)
        pirn__wakeset_arm(merge->wakes_, cx);
    else
        pirn_waker_drop(pirn_waker_store(&merge->waker_, cx));
}

/* Ask those that may have an item, from a random one round, until one has. */
static bool ask_round(pirn_merge_stream *merge, pirn_cx *cx, void *item,
                      int *rc)
{
    size_t start = pirn__random_below((uint32_t)merge->capacity_);
    struct pirn__round round =
        pirn__round_begin(merge->wakes_, merge->capacity_, start);
    size_t index;
    pirn_cx child;

    while (pirn__round_next(&round, cx, &child, &index)) {
        pirn_stream_slot *slot = &merge->slots_[index];

        if (slot->stream == NULL || !ask(merge, slot, &child, item, rc))
            continue;
        /* It may have more, and has no waker of ours now. */
        if (merge->wakes_ != NULL)
            pirn__wakeset_mark(merge->wakes_, index);
        pirn__round_end(&round);
        return true;
    }
    return false;
}

static enum pirn_poll merge_poll_next(pirn_stream *self, pirn_cx *cx,
                                      void *item, int *rc)
{
    pirn_merge_stream *merge = merge_of(self);

    if (!pirn__coop_enter(cx))
        return PIRN_PENDING;
    if (merge->count_ > 0) {
        store_waker(merge, cx);
        if (ask_round(merge, cx, item, rc))
            return PIRN_READY;
    }
    *rc = 0;
    return merge->count_ == 0 ? PIRN_READY : PIRN_PENDING;
}

static void merge_drop(pirn_stream *self)
{
    pirn_merge_stream *merge = merge_of(self);

    for (size_t i = 0; i < merge->capacity_; i++)
        if (merge->slots_[i].stream != NULL)
            pirn_stream_drop(merge->slots_[i].stream);
    merge->count_ = 0;
    pirn__wakeset_close(merge->wakes_);
    merge->wakes_ = NULL;
    pirn_waker_drop(pirn_waker_take(&merge->waker_));
}

static void merge_withdraw(pirn_stream *self)
{
    pirn_merge_stream *merge = merge_of(self);

    for (size_t i = 0; i < merge->capacity_; i++) {
        pirn_stream *stream = merge->slots_[i].stream;

        if (stream == NULL || stream->ops->withdraw == NULL)
            continue;
        pirn_stream_withdraw(stream);
        /* It will wake nobody now. */
        if (merge->wakes_ != NULL)
            pirn__wakeset_mark(merge->wakes_, i);
    }
}

static pirn_stream_slot *find(pirn_merge_stream *merge, uint64_t key)
{
    for (size_t i = 0; i < merge->capacity_; i++)
        if (merge->slots_[i].stream != NULL && merge->slots_[i].key == key)
            return &merge->slots_[i];
    return NULL;
}

static void merge_discard(pirn_stream *self, void *item)
{
    pirn_merge_stream *merge = merge_of(self);
    pirn_stream_slot *slot = find(merge, merge->key);

    if (slot != NULL)
        pirn_stream_discard(slot->stream, item);
}

static void merge_describe(const pirn_stream *self, pirn_text *out)
{
    const pirn_merge_stream *merge =
        PIRN_CONTAINER_OF(self, const pirn_merge_stream, stream);
    size_t named = 0;

    pirn_text_append(out, "merge of %zu (", merge->count_);
    for (size_t i = 0; i < merge->capacity_ && named < DESCRIBED; i++) {
        if (merge->slots_[i].stream == NULL)
            continue;
        if (named > 0)
            pirn_text_append(out, ", ");
        pirn_stream_describe(merge->slots_[i].stream, out);
        named++;
    }
    pirn_text_append(out, ")");
}

static const pirn_stream_ops merge_ops = {
    .poll_next = merge_poll_next,
    .drop = merge_drop,
    .withdraw = merge_withdraw,
    .discard = merge_discard,
    .describe = merge_describe,
};

void pirn_merge_init(pirn_merge_stream *merge, pirn_stream_slot *slots,
                     size_t capacity)
{
    *merge = (pirn_merge_stream){
        .stream = {&merge_ops},
        .slots_ = slots,
        .capacity_ = capacity,
    };
    for (size_t i = 0; i < capacity; i++)
        merge->count_ += slots[i].stream != NULL;
}

/* The first free place, or NULL. */
static pirn_stream_slot *find_free(pirn_merge_stream *merge)
{
    for (size_t i = 0; i < merge->capacity_; i++)
        if (merge->slots_[i].stream == NULL)
            return &merge->slots_[i];
    return NULL;
}

/* Something has changed at `slot`: whoever waits for the next item looks. */
static void wake_asker(pirn_merge_stream *merge, const pirn_stream_slot *slot)
{
    if (merge->wakes_ != NULL)
        pirn__wakeset_wake(merge->wakes_, (size_t)(slot - merge->slots_));
    else
        pirn_waker_wake(pirn_waker_take(&merge->waker_));
}

int pirn_merge_insert(pirn_merge_stream *merge, uint64_t key,
                      pirn_stream *stream)
{
    pirn_stream_slot *slot;

    if (stream == NULL)
        return -EINVAL;
    if (find(merge, key) != NULL)
        return -EEXIST;
    slot = find_free(merge);
    if (slot == NULL)
        return -ENOSPC;
    *slot = (pirn_stream_slot){stream, key};
    merge->count_++;
    wake_asker(merge, slot);
    return 0;
}

int pirn_merge_remove(pirn_merge_stream *merge, uint64_t key, pirn_stream **out)
{
    pirn_stream_slot *slot = find(merge, key);

    *out = NULL;
    if (slot == NULL)
        return -ENOENT;
    *out = slot->stream;
    slot->stream = NULL;
    merge->count_--;
    if (merge->count_ == 0)
        wake_asker(merge, slot);
    return 0;
}

size_t pirn_merge_count(const pirn_merge_stream *merge)
{
    return merge->count_;
}
