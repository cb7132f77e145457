/* SPDX-License-Identifier: MIT */
/* src/stream/merge_test.c - several streams as one, and a map of streams. */
#include "stream/source_test.h"

#include "scope/children_test.h"
#include "scope/wakeset.h"

enum { MANY = 100 };

static struct source sources[MANY];
static pirn_stream_slot slots[MANY];

static void slots_init(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        source_init(&sources[i]);
        slots[i] = (pirn_stream_slot){&sources[i].stream, 1000 + i};
    }
}

static int polls(size_t count)
{
    int sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += sources[i].polls;
    return sum;
}

/* Goal: items of all, with the key of their stream; each stream that ends is
 * dropped at once, and the merge ends with the last.
 * Method: three streams. */
TEST(merge_gives_the_items_of_all_with_their_keys)
{
    pirn_merge_stream merge;
    poller p = {0};
    int item = 0;

    slots_init(3);
    pirn_merge_init(&merge, slots, 3);
    EXPECT_EQ(3, pirn_merge_count(&merge));
    expect_describes("merge of 3 (source, source, source)", &merge.stream);
    EXPECT_EQ(WAITS, ask(&p, &merge.stream, &item));
    source_put(&sources[1], 11);
    EXPECT_EQ(1, p.wakes);
    EXPECT_EQ(1, ask(&p, &merge.stream, &item));
    EXPECT_EQ(11, item);
    EXPECT_EQ(1001, merge.key);
    pirn_stream_discard(&merge.stream, &item);
    EXPECT_EQ(1, sources[1].discards);
    source_fail(&sources[2], -EIO);
    EXPECT_EQ(-EIO, ask(&p, &merge.stream, &item));
    EXPECT_EQ(1002, merge.key);
    EXPECT_EQ(WAITS, ask(&p, &merge.stream, &item));
    source_end(&sources[1]);
    EXPECT_EQ(WAITS, ask(&p, &merge.stream, &item));
    EXPECT_EQ(1, sources[1].drops);
    EXPECT_EQ(2, pirn_merge_count(&merge));
    source_end(&sources[0]);
    source_end(&sources[2]);
    EXPECT_EQ(0, ask(&p, &merge.stream, &item));
    EXPECT_EQ(0, ask(&p, &merge.stream, &item));
    drop_stream(&p, &merge.stream);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(1, sources[i].drops);
}

static enum pirn_poll endless_poll_next(pirn_stream *self, pirn_cx *cx,
                                        void *item, int *rc)
{
    (void)self;
    if (!pirn_coop_spend(cx))
        return PIRN_PENDING;
    *(int *)item = 1;
    *rc = 1;
    return PIRN_READY;
}

static void endless_drop(pirn_stream *self)
{
    (void)self;
}

/* Goal: fair: streams that always have items are served about equally.
 * Method: few and many of them. */
TEST(merge_of_streams_that_always_have_items_is_fair)
{
    static const pirn_stream_ops ops = {.poll_next = endless_poll_next,
                                        .drop = endless_drop};
    pirn_stream endless = {&ops};

    for (size_t count = 3; count <= MANY; count += MANY - 3) {
        pirn_merge_stream merge;
        poller p = {0};
        int served[MANY] = {0};
        int item;

        for (size_t i = 0; i < count; i++)
            slots[i] = (pirn_stream_slot){&endless, i};
        pirn_merge_init(&merge, slots, count);
        for (size_t i = 0; i < count * 100; i++) {
            EXPECT_EQ(1, ask(&p, &merge.stream, &item));
            served[merge.key]++;
        }
        for (size_t i = 0; i < count; i++)
            EXPECT(served[i] > 40);
        drop_stream(&p, &merge.stream);
    }
}

/* Goal: a map of streams: they come and go by key, and whoever waits for the
 * next item is woken by one that comes.
 * Method: with few places and with many. */
static void come_and_go(size_t capacity)
{
    pirn_merge_stream merge;
    pirn_stream *out;
    poller p = {0};
    int item = 0;

    slots_init(2);
    memset(slots, 0, sizeof slots);
    pirn_merge_init(&merge, slots, capacity);
    EXPECT_EQ(0, ask(&p, &merge.stream, &item));
    EXPECT_EQ(-EINVAL, pirn_merge_insert(&merge, 5, NULL));
    EXPECT_EQ(0, pirn_merge_insert(&merge, 5, &sources[0].stream));
    EXPECT_EQ(-EEXIST, pirn_merge_insert(&merge, 5, &sources[1].stream));
    EXPECT_EQ(WAITS, ask(&p, &merge.stream, &item));
    EXPECT_EQ(0, pirn_merge_insert(&merge, 6, &sources[1].stream));
    EXPECT_EQ(1, p.wakes);
    source_put(&sources[1], 42);
    EXPECT_EQ(1, ask(&p, &merge.stream, &item));
    EXPECT_EQ(6, merge.key);
    EXPECT_EQ(WAITS, ask(&p, &merge.stream, &item));
    EXPECT_EQ(-ENOENT, pirn_merge_remove(&merge, 7, &out));
    EXPECT_PTR_EQ(NULL, out);
    EXPECT_EQ(0, pirn_merge_remove(&merge, 6, &out));
    EXPECT_PTR_EQ(&sources[1].stream, out);
    EXPECT_EQ(0, sources[1].drops);
    EXPECT_EQ(1, pirn_merge_count(&merge));

    /* What was taken out may come back, or wake late. */
    source_put(&sources[1], 43);
    EXPECT_EQ(WAITS, ask(&p, &merge.stream, &item));
    EXPECT_EQ(0, pirn_merge_insert(&merge, 8, out));
    EXPECT_EQ(1, ask(&p, &merge.stream, &item));
    EXPECT_EQ(43, item);
    EXPECT_EQ(8, merge.key);

    /* The last one that goes ends the wait. */
    EXPECT_EQ(0, pirn_merge_remove(&merge, 8, &out));
    EXPECT_EQ(WAITS, ask(&p, &merge.stream, &item));
    p.wakes = 0;
    pirn_stream_drop(out);
    EXPECT_EQ(0, pirn_merge_remove(&merge, 5, &out));
    EXPECT_EQ(1, p.wakes);
    pirn_stream_drop(out);
    EXPECT_EQ(0, ask(&p, &merge.stream, &item));
    drop_stream(&p, &merge.stream);
}

TEST(merge_as_a_map_lets_streams_come_and_go)
{
    come_and_go(2);
    come_and_go(MANY);
}

/* Goal: no place, no insert; the stream is still the caller's.
 * Method: one place. */
TEST(merge_that_is_full_refuses_a_stream)
{
    pirn_merge_stream merge;
    poller p = {0};

    slots_init(2);
    pirn_merge_init(&merge, slots, 1);
    EXPECT_EQ(-ENOSPC, pirn_merge_insert(&merge, 1, &sources[1].stream));
    drop_stream(&p, &merge.stream);
    EXPECT_EQ(1, sources[0].drops);
    EXPECT_EQ(0, sources[1].drops);
    pirn_stream_drop(&sources[1].stream);
}

/* Goal: with many streams a wake costs the poll of the one that was woken; an
 * early end of a round forgets nobody.
 * Method: count polls; several woken at once. */
TEST(merge_of_many_polls_only_what_was_woken)
{
    pirn_merge_stream merge;
    poller p = {0};
    int item = 0;
    int sum = 0;

    slots_init(MANY);
    pirn_merge_init(&merge, slots, MANY);
    EXPECT_EQ(WAITS, ask(&p, &merge.stream, &item));
    EXPECT_EQ(MANY, polls(MANY));
    for (int i = 0; i < MANY; i += 10)
        source_put(&sources[i], i);
    EXPECT_EQ(1, p.wakes);
    for (int i = 0; i < MANY; i += 10) {
        EXPECT_EQ(1, ask(&p, &merge.stream, &item));
        sum += item;
    }
    EXPECT_EQ(450, sum);
    EXPECT_EQ(WAITS, ask(&p, &merge.stream, &item));
    /* One poll for the item and one for what may come behind it. */
    EXPECT_EQ(MANY + 20, polls(MANY));
    drop_stream(&p, &merge.stream);
}

/* Goal: without memory for that, all are polled, and nothing else changes.
 * Method: an allocator that has none. */
TEST(merge_of_many_without_memory_polls_all)
{
    struct pirn__home home;
    struct pirn__turn turn = poor_turn(&home);
    pirn_merge_stream merge;
    poller p = {.turn = &turn};
    int item = 0;

    slots_init(MANY);
    pirn_merge_init(&merge, slots, MANY);
    EXPECT_EQ(WAITS, ask(&p, &merge.stream, &item));
    /* Those that had nothing cost nothing. */
    EXPECT_EQ(PIRN__COOP_BUDGET - 1, turn.budget);
    source_put(&sources[70], 7);
    EXPECT_EQ(1, p.wakes);
    EXPECT_EQ(1, ask(&p, &merge.stream, &item));
    EXPECT_EQ(1070, merge.key);
    drop_stream(&p, &merge.stream);
}

/* Goal: who gives up withdraws from all, and is told of items by the next ask.
 * Method: with few streams and with many. */
TEST(merge_given_up_withdraws_from_all)
{
    for (size_t count = 3; count <= MANY; count += MANY - 3) {
        pirn_merge_stream merge;
        poller p = {0};
        int item = 0;

        slots_init(count);
        pirn_merge_init(&merge, slots, count);
        EXPECT_EQ(WAITS, ask(&p, &merge.stream, &item));
        pirn_stream_withdraw(&merge.stream);
        for (size_t i = 0; i < count; i++)
            EXPECT_EQ(1, sources[i].withdraws);
        source_put(&sources[1], 1);
        EXPECT_EQ(0, p.wakes);
        EXPECT_EQ(1, ask(&p, &merge.stream, &item));
        EXPECT_EQ(WAITS, ask(&p, &merge.stream, &item));
        source_put(&sources[2], 2);
        EXPECT_EQ(1, p.wakes);
        drop_stream(&p, &merge.stream);
    }
}

/* Goal: without budget no stream is asked.
 * Method: no budget, and an item that is there. */
TEST(merge_without_budget_asks_nobody)
{
    struct pirn__turn turn = {.budget = 0};
    pirn_merge_stream merge;
    poller p = {.turn = &turn};
    int item = 0;

    slots_init(2);
    source_put(&sources[0], 1);
    pirn_merge_init(&merge, slots, 2);
    EXPECT_EQ(WAITS, ask(&p, &merge.stream, &item));
    EXPECT_EQ(0, polls(2));
    EXPECT_EQ(1, p.wakes);
    turn.budget = 2;
    EXPECT_EQ(1, ask(&p, &merge.stream, &item));
    drop_stream(&p, &merge.stream);
}
