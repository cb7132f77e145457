/* SPDX-License-Identifier: MIT */
/* src/stream/take_test.c - the first items. */
#include "stream/source_test.h"

/* Goal: so many and no more; the inner stream is not asked again.
 * Method: a limit below what there is, with a failure in between, which does
 * not count. */
TEST(take_ends_after_so_many_items)
{
    struct source source;
    pirn_take_stream take;
    poller p = {0};
    int item = 0;

    source_init(&source);
    pirn_take_init(&take, &source.stream, 2);
    EXPECT_EQ(WAITS, ask(&p, &take.stream, &item));
    source_put(&source, 1);
    EXPECT_EQ(1, ask(&p, &take.stream, &item));
    source_fail(&source, -EIO);
    EXPECT_EQ(-EIO, ask(&p, &take.stream, &item));
    expect_describes("1 more of source", &take.stream);
    source_put(&source, 2);
    source_put(&source, 3);
    EXPECT_EQ(1, ask(&p, &take.stream, &item));
    EXPECT_EQ(2, item);
    pirn_stream_discard(&take.stream, &item);
    EXPECT_EQ(1, source.discards);
    EXPECT_EQ(4, source.polls);
    EXPECT_EQ(0, ask(&p, &take.stream, &item));
    EXPECT_EQ(0, ask(&p, &take.stream, &item));
    EXPECT_EQ(4, source.polls);
    pirn_stream_withdraw(&take.stream);
    EXPECT_EQ(1, source.withdraws);
    drop_stream(&p, &take.stream);
    EXPECT_EQ(1, source.drops);
}

/* Goal: the inner stream may end first; none is none.
 * Method: both. */
TEST(take_of_less_than_there_is_ends_with_it)
{
    struct source source;
    pirn_take_stream take;
    poller p = {0};
    int item = 0;

    source_init(&source);
    source_end(&source);
    pirn_take_init(&take, &source.stream, 5);
    EXPECT_EQ(0, ask(&p, &take.stream, &item));
    drop_stream(&p, &take.stream);

    source_init(&source);
    source_put(&source, 1);
    pirn_take_init(&take, &source.stream, 0);
    EXPECT_EQ(0, ask(&p, &take.stream, &item));
    EXPECT_EQ(0, source.polls);
    drop_stream(&p, &take.stream);
}
