/* SPDX-License-Identifier: MIT */
/* src/base/text_test.c - text that fits, just fits, and does not. */
#include <pirn/future.h>

#include "engine/test.h"

/* Goal: pieces stand one behind the other, terminated.
 * Method: two pieces into a buffer with room. */
TEST(text_append_adds_behind)
{
    char buf[16] = "";
    pirn_text text = {.buf = buf, .size = sizeof buf, .len = 0};

    pirn_text_append(&text, "%s-%d", "fd", 7);
    pirn_text_append(&text, "%s", "!");
    EXPECT_STR_EQ("fd-7!", buf);
    EXPECT_EQ(5, text.len);
}

/* Goal: nothing is ever written beyond the buffer, and len stays below size.
 * Method: append "abcdef" into every size, and look at the byte behind. */
TEST(text_append_beyond_the_end_is_cut)
{
    for (size_t size = 1; size <= 8; size++) {
        char buf[10];
        pirn_text text = {.buf = buf, .size = size, .len = 0};
        size_t wanted = size - 1 < 6 ? size - 1 : 6;

        memset(buf, '#', sizeof buf);
        pirn_text_append(&text, "abc%s", "def");
        EXPECT_EQ(wanted, text.len);
        EXPECT_EQ(0, memcmp(buf, "abcdef", wanted));
        EXPECT_EQ('\0', buf[wanted]);
        EXPECT_EQ('#', buf[size]);
        pirn_text_append(&text, "%s", "gh");
        EXPECT(text.len < size);
        EXPECT_EQ('\0', buf[text.len]);
        EXPECT_EQ('#', buf[size]);
    }
}

/* Goal: a text without a buffer takes nothing.
 * Method: size 0. */
TEST(text_append_to_nothing_does_nothing)
{
    pirn_text text = {.buf = NULL, .size = 0, .len = 0};

    pirn_text_append(&text, "%d", 1);
    EXPECT_EQ(0, text.len);
}
