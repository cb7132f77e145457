/* SPDX-License-Identifier: MIT */
/* src/sys/environment_test.c - numbers and words in the environment. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "sys/environment.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/test.h"

#define NAME "PIRN_ENVIRONMENT_TEST"

/* What is read when the variable holds `text`, between 1 and `high`. */
static int read_text(const char *text, uint64_t high, uint64_t *value)
{
    EXPECT_EQ(0, setenv(NAME, text, 1));
    return pirn__environment_number(NAME, 1, high, value);
}

/* Goal: a number is read up to both ends of its range.
 * Method: the ends, leading zeros, the largest there is, hexadecimal. */
TEST(environment_number_in_range_is_read)
{
    uint64_t value = 0;

    EXPECT_EQ(1, read_text("1", 512, &value));
    EXPECT_EQ(1, value);
    EXPECT_EQ(1, read_text("512", 512, &value));
    EXPECT_EQ(512, value);
    EXPECT_EQ(1, read_text("007", 512, &value));
    EXPECT_EQ(7, value);
    EXPECT_EQ(1, read_text("18446744073709551615", UINT64_MAX, &value));
    EXPECT(value == UINT64_MAX);
    EXPECT_EQ(1, read_text("0x1aF", 512, &value));
    EXPECT_EQ(0x1af, value);
    EXPECT_EQ(1, read_text("0Xffffffffffffffff", UINT64_MAX, &value));
    EXPECT(value == UINT64_MAX);
}

/* Goal: unset and empty are no number, and no error.
 * Method: both. */
TEST(environment_without_the_variable_says_nothing)
{
    uint64_t value = 42;

    EXPECT_EQ(0, unsetenv(NAME));
    EXPECT_EQ(0, pirn__environment_number(NAME, 1, 9, &value));
    EXPECT_EQ(0, read_text("", 9, &value));
    EXPECT_EQ(42, value);
}

/* Goal: anything else is refused, and the value is left alone.
 * Method: signs, blanks, letters, numbers beside the range and beyond all. */
TEST(environment_number_malformed_or_out_of_range_is_refused)
{
    static const char *const texts[] = {
        "0",   "513", "-1", "+4",   " 4",   "4 ",
        "4x",  "x",   "-",  "four", "1f",   "18446744073709551616",
        "1.5", "\n",  "0x", "0x1g", "0x0",  "0x10000000000000001",
    };
    uint64_t value = 42;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        EXPECT_EQ(-EINVAL, read_text(texts[i], 512, &value));
    EXPECT_EQ(-EINVAL, read_text("18446744073709551616", UINT64_MAX, &value));
    EXPECT_EQ(42, value);
}

/* Goal: one of the words is read, unset and empty say nothing, and anything else
 * is refused and changes nothing.
 * Method: each; parts and other spellings of a word. */
TEST(environment_word_is_one_of_those_given)
{
    static const char *const words[] = {"left", "right"};
    static const char *const wrong[] = {"lef", "leftright", "Left", " left",
                                        "0", "both"};
    uint32_t index = 7;

    EXPECT_EQ(0, unsetenv(NAME));
    EXPECT_EQ(0, pirn__environment_word(NAME, words, 2, &index));
    EXPECT_EQ(0, setenv(NAME, "", 1));
    EXPECT_EQ(0, pirn__environment_word(NAME, words, 2, &index));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        EXPECT_EQ(0, setenv(NAME, wrong[i], 1));
        EXPECT_EQ(-EINVAL, pirn__environment_word(NAME, words, 2, &index));
    }
    EXPECT_EQ(7, index);
    for (uint32_t i = 0; i < 2; i++) {
        EXPECT_EQ(0, setenv(NAME, words[i], 1));
        EXPECT_EQ(1, pirn__environment_word(NAME, words, 2, &index));
        EXPECT_EQ(i, index);
    }
}
