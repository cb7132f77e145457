/* SPDX-License-Identifier: MIT */
/* src/stream/filter_test.c - items that a function lets through. */
#include "stream/source_test.h"

#include "task/local.h"

static bool is_even(void *arg, const void *item)
{
    (void)arg;
    return *(const int *)item % 2 == 0;
}

/* Goal: what passes comes out, what does not is discarded; waits, failures and
 * the end as they are.
 * Method: all kinds of answers in turn. */
TEST(filter_lets_through_what_passes_and_discards_the_rest)
{
    struct source source;
    pirn_filter_stream filter;
    poller p = {0};
    int item = 0;

    source_init(&source);
    pirn_filter_init(&filter, &source.stream, is_even, NULL);
    for (int i = 1; i <= 4; i++)
        source_put(&source, i);
    EXPECT_EQ(1, ask(&p, &filter.stream, &item));
    EXPECT_EQ(2, item);
    EXPECT_EQ(1, ask(&p, &filter.stream, &item));
    EXPECT_EQ(4, item);
    EXPECT_EQ(2, source.discards);
    EXPECT_EQ(WAITS, ask(&p, &filter.stream, &item));
    source_put(&source, 5);
    EXPECT_EQ(1, p.wakes);
    source_fail(&source, -EIO);
    EXPECT_EQ(-EIO, ask(&p, &filter.stream, &item));
    pirn_stream_discard(&filter.stream, &item);
    EXPECT_EQ(4, source.discards);
    expect_describes("filter of source", &filter.stream);
    source_end(&source);
    EXPECT_EQ(0, ask(&p, &filter.stream, &item));
    EXPECT_EQ(0, ask(&p, &filter.stream, &item));
    pirn_stream_withdraw(&filter.stream);
    EXPECT_EQ(1, source.withdraws);
    drop_stream(&p, &filter.stream);
    EXPECT_EQ(1, source.drops);
}

/* Goal: a stream that is always ready, and of which nothing passes, does not
 * hold the task for ever.
 * Method: a source that spends no budget, and little budget. */
TEST(filter_that_lets_nothing_through_spends_budget)
{
    struct pirn__turn turn = {.budget = 3};
    struct source source;
    pirn_filter_stream filter;
    poller p = {.turn = &turn};
    int item = 0;

    source_init(&source);
    source.unbudgeted = true;
    pirn_filter_init(&filter, &source.stream, is_even, NULL);
    for (int i = 0; i < 60; i++)
        source_put(&source, 1);
    EXPECT_EQ(WAITS, ask(&p, &filter.stream, &item));
    EXPECT_EQ(4, source.discards);
    EXPECT(turn.deferred);
    EXPECT_EQ(1, p.wakes);
    drop_stream(&p, &filter.stream);
}
