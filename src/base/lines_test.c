/* SPDX-License-Identifier: MIT */
/* src/base/lines_test.c - text that counts on when its buffer is full. */
#include "base/lines.h"

#include "engine/test.h"

/* Goal: what fits is there and ends, and the length is that of the whole.
 * Method: two lines into buffers with room, with too little, and with none. */
TEST(lines_count_on_when_there_is_no_room)
{
    char buf[16] = "";
    struct pirn__lines roomy = {buf, sizeof buf, 0};
    struct pirn__lines tight = {buf, 6, 0};
    struct pirn__lines none = {NULL, 0, 0};

    pirn__lines_add(&roomy, "one %d\n", 1);
    pirn__lines_add(&roomy, "two\n");
    EXPECT_STR_EQ("one 1\ntwo\n", buf);
    EXPECT_EQ(10, (int)roomy.len);
    pirn__lines_add(&tight, "three %d\n", 3);
    pirn__lines_add(&tight, "four\n");
    EXPECT_STR_EQ("three", buf);
    EXPECT_EQ(13, (int)tight.len);
    pirn__lines_add(&none, "five\n");
    EXPECT_EQ(5, (int)none.len);
}
