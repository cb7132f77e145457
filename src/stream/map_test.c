/* SPDX-License-Identifier: MIT */
/* src/stream/map_test.c - items changed one by one. */
#include "stream/source_test.h"

static void triple(void *arg, const void *in, void *out)
{
    const int *number = in;
    double *result = out;

    (*(int *)arg)++;
    *result = *number * 3.0;
}

/* Goal: each item once through the function; waits, failures and the end as
 * they are; a next that is given up loses nothing.
 * Method: all kinds of answers in turn. */
TEST(map_changes_each_item_and_passes_the_rest)
{
    struct source source;
    pirn_map_stream map;
    poller p = {0};
    int calls = 0;
    int in;
    double out = 0;

    source_init(&source);
    pirn_map_init(&map, &source.stream, &in, triple, &calls);
    EXPECT_EQ(WAITS, ask(&p, &map.stream, &out));
    source_put(&source, 5);
    EXPECT_EQ(1, p.wakes);
    EXPECT_EQ(1, ask(&p, &map.stream, &out));
    EXPECT(out > 14.9 && out < 15.1);
    source_fail(&source, -EIO);
    EXPECT_EQ(-EIO, ask(&p, &map.stream, &out));
    source_put(&source, 1);
    EXPECT_EQ(1, ask(&p, &map.stream, &out));
    expect_describes("map of source", &map.stream);
    source_end(&source);
    EXPECT_EQ(0, ask(&p, &map.stream, &out));
    EXPECT_EQ(2, calls);
    pirn_stream_withdraw(&map.stream);
    EXPECT_EQ(1, source.withdraws);
    drop_stream(&p, &map.stream);
    EXPECT_EQ(1, source.drops);
}
