/* SPDX-License-Identifier: MIT */
/* src/stream/chunks_test.c - items by the batch, on a paused clock. */
#include "stream/source_test.h"

#include "engine/timers_fixture.h"

enum { MAX = 4 };

struct story {
    struct test_home home;
    struct source source;
    pirn_chunks_stream chunks;
    pirn_chunk chunk;
    poller p;
    int items[MAX];
};

static void story_begin(struct story *story, uint64_t patience_ns)
{
    const pirn_chunk_options options = {
        .items = story->items,
        .item_size = sizeof story->items[0],
        .max = MAX,
        .patience_ns = patience_ns,
    };

    test_home_begin(&story->home);
    source_init(&story->source);
    story->p = (poller){.turn = &story->home.turn};
    EXPECT_EQ(0, pirn_chunks_init(&story->chunks, &story->source.stream,
                                  &options));
}

static int story_ask(struct story *story)
{
    return ask(&story->p, &story->chunks.stream, &story->chunk);
}

static void story_finish(struct story *story)
{
    drop_stream(&story->p, &story->chunks.stream);
    EXPECT_EQ(1, story->source.drops);
    test_home_finish(&story->home);
}

static void expect_chunk(const struct story *story, int first, size_t count)
{
    EXPECT_PTR_EQ(story->items, story->chunk.items);
    EXPECT_EQ(count, story->chunk.count);
    for (size_t i = 0; i < count; i++)
        EXPECT_EQ(first + (int)i, story->items[i]);
}

/* Goal: a chunk is given out as soon as it is full, without a clock.
 * Method: more items than one chunk holds. */
TEST(chunks_full_are_given_out_at_once)
{
    struct story story;

    story_begin(&story, 10 * MS);
    for (int i = 0; i < 2 * MAX; i++)
        source_put(&story.source, i);
    EXPECT_EQ(1, story_ask(&story));
    expect_chunk(&story, 0, MAX);
    EXPECT_EQ(1, story_ask(&story));
    expect_chunk(&story, MAX, MAX);
    EXPECT_EQ(0, pirn__timers_count(&story.home.timers));
    EXPECT_EQ(WAITS, story_ask(&story));
    EXPECT_EQ(0, pirn__timers_count(&story.home.timers));
    story_finish(&story);
}

/* Goal: an incomplete chunk waits as long as its first item may, and no longer;
 * without an item there is no clock.
 * Method: two items, some time apart. */
TEST(chunks_incomplete_are_given_out_in_time)
{
    struct story story;

    story_begin(&story, 10 * MS);
    EXPECT_EQ(WAITS, story_ask(&story));
    EXPECT_EQ(0, advance_ns(&story.home, 100 * MS));
    source_put(&story.source, 1);
    EXPECT_EQ(WAITS, story_ask(&story));
    EXPECT_EQ(1, pirn__timers_count(&story.home.timers));
    EXPECT_EQ(0, advance_ns(&story.home, 9 * MS));
    source_put(&story.source, 2);
    EXPECT_EQ(WAITS, story_ask(&story));
    EXPECT_EQ(1, advance_ns(&story.home, 1 * MS));
    EXPECT_EQ(1, story_ask(&story));
    expect_chunk(&story, 1, 2);
    EXPECT_EQ(0, pirn__timers_count(&story.home.timers));

    /* The next one has its own clock. */
    source_put(&story.source, 7);
    EXPECT_EQ(WAITS, story_ask(&story));
    EXPECT_EQ(0, advance_ns(&story.home, 10 * MS - 1));
    EXPECT_EQ(WAITS, story_ask(&story));
    EXPECT_EQ(1, advance_ns(&story.home, 1));
    EXPECT_EQ(1, story_ask(&story));
    expect_chunk(&story, 7, 1);
    story_finish(&story);
}

/* Goal: the clock of a chunk needs no budget.
 * Method: none is left when the first item has come. */
TEST(chunks_without_budget_are_still_in_time)
{
    struct story story;

    story_begin(&story, 10 * MS);
    story.source.unbudgeted = true;
    story.home.turn.budget = 0;
    source_put(&story.source, 1);
    EXPECT_EQ(WAITS, story_ask(&story));
    EXPECT_EQ(1, advance_ns(&story.home, 10 * MS));
    EXPECT_EQ(1, story_ask(&story));
    expect_chunk(&story, 1, 1);
    story_finish(&story);
}

/* Goal: end and failure come behind the items before them; after a failure it
 * goes on, after the end it does not.
 * Method: each behind an incomplete chunk. */
TEST(chunks_say_end_and_failure_behind_the_items)
{
    struct story story;

    story_begin(&story, UINT64_MAX);
    source_put(&story.source, 1);
    EXPECT_EQ(WAITS, story_ask(&story));
    source_fail(&story.source, -EIO);
    EXPECT_EQ(1, story_ask(&story));
    expect_chunk(&story, 1, 1);
    EXPECT_EQ(-EIO, story_ask(&story));
    EXPECT_EQ(WAITS, story_ask(&story));
    source_put(&story.source, 2);
    source_end(&story.source);
    EXPECT_EQ(1, story_ask(&story));
    expect_chunk(&story, 2, 1);
    EXPECT_EQ(0, story_ask(&story));
    EXPECT_EQ(0, story_ask(&story));
    EXPECT_EQ(0, pirn__timers_count(&story.home.timers));
    story_finish(&story);
}

/* Goal: what has been collected and not been given out is discarded with the
 * stream, what has been given out is not; a chunk without a taker is.
 * Method: drop in both states; discard in between. */
TEST(chunks_dropped_discard_what_they_hold)
{
    struct story story;

    story_begin(&story, 10 * MS);
    source_put(&story.source, 1);
    source_put(&story.source, 2);
    EXPECT_EQ(WAITS, story_ask(&story));
    expect_describes("chunk (2 of 4) of source", &story.chunks.stream);
    pirn_stream_withdraw(&story.chunks.stream);
    EXPECT_EQ(1, story.source.withdraws);
    story_finish(&story);
    EXPECT_EQ(2, story.source.discards);

    story_begin(&story, 0);
    source_put(&story.source, 1);
    EXPECT_EQ(1, story_ask(&story));
    story_finish(&story);
    EXPECT_EQ(0, story.source.discards);

    story_begin(&story, 0);
    source_put(&story.source, 1);
    EXPECT_EQ(1, story_ask(&story));
    pirn_stream_discard(&story.chunks.stream, &story.chunk);
    pirn_stream_discard(&story.chunks.stream, &story.chunk);
    EXPECT_EQ(1, story.source.discards);
    story_finish(&story);
}

static void add_item(void *arg, void *item)
{
    *(int *)arg += *(int *)item;
}

/* Goal: the program's own way to throw an item away comes first.
 * Method: drop a stream that has collected two. */
TEST(chunks_dropped_discard_by_the_option)
{
    struct source source;
    int items[4];
    int sum = 0;
    const pirn_chunk_options options = {
        .items = items,
        .item_size = sizeof items[0],
        .max = 4,
        .patience_ns = UINT64_MAX,
        .discard = add_item,
        .discard_arg = &sum,
    };
    pirn_chunks_stream chunks;
    pirn_chunk chunk;
    poller p = {0};

    source_init(&source);
    EXPECT_EQ(0, pirn_chunks_init(&chunks, &source.stream, &options));
    source_put(&source, 3);
    source_put(&source, 4);
    EXPECT_EQ(WAITS, ask(&p, &chunks.stream, &chunk));
    drop_stream(&p, &chunks.stream);
    EXPECT_EQ(7, sum);
    EXPECT_EQ(0, source.discards);
}

/* Goal: nobody keeps the time, nobody waits for it.
 * Method: no runtime; a runtime that ends during the wait; no patience. */
TEST(chunks_without_a_clock_do_not_wait)
{
    struct story story;

    story_begin(&story, 10 * MS);
    story.p.turn = NULL;
    source_put(&story.source, 1);
    EXPECT_EQ(1, story_ask(&story));
    expect_chunk(&story, 1, 1);
    story_finish(&story);

    story_begin(&story, 10 * MS);
    source_put(&story.source, 1);
    EXPECT_EQ(WAITS, story_ask(&story));
    pirn__timers_shutdown(&story.home.timers);
    EXPECT_EQ(1, story.p.wakes);
    EXPECT_EQ(1, story_ask(&story));
    source_put(&story.source, 2);
    EXPECT_EQ(1, story_ask(&story));
    expect_chunk(&story, 2, 1);
    story_finish(&story);
}

/* Goal: options that cannot be are refused.
 * Method: each in turn. */
TEST(chunks_with_impossible_options_are_refused)
{
    struct source source;
    pirn_chunks_stream chunks;
    int item;
    pirn_chunk_options options = {.items = &item, .item_size = sizeof item};

    source_init(&source);
    EXPECT_EQ(-EINVAL, pirn_chunks_init(&chunks, &source.stream, &options));
    options = (pirn_chunk_options){.items = &item, .max = 1};
    EXPECT_EQ(-EINVAL, pirn_chunks_init(&chunks, &source.stream, &options));
    options = (pirn_chunk_options){.item_size = sizeof item, .max = 1};
    EXPECT_EQ(-EINVAL, pirn_chunks_init(&chunks, &source.stream, &options));
    pirn_stream_drop(&source.stream);
}
