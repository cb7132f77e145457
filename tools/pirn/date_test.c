/* SPDX-License-Identifier: MIT */
/* tools/pirn/date_test.c - the three forms of an HTTP date. */
#include "date.h"

#include "engine/test.h"

enum { EXAMPLE = 784111777 };

/* Goal: dates are written as RFC 9110 shows.
 * Method: its own example, the epoch, and a leap day. */
TEST(date_format_is_the_fixed_form)
{
    char buf[DATE_SIZE];

    date_format(EXAMPLE, buf);
    EXPECT_STR_EQ("Sun, 06 Nov 1994 08:49:37 GMT", buf);
    date_format(0, buf);
    EXPECT_STR_EQ("Thu, 01 Jan 1970 00:00:00 GMT", buf);
    date_format(1709164800, buf);
    EXPECT_STR_EQ("Thu, 29 Feb 2024 00:00:00 GMT", buf);
}

/* Goal: all three forms are read.
 * Method: the same moment in each. */
TEST(date_parse_reads_three_forms)
{
    static const char *const texts[] = {
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int64_t seconds = 0;

        EXPECT(date_parse(texts[i], &seconds));
        EXPECT_EQ(EXAMPLE, seconds);
    }
}

/* Goal: what is no date is refused.
 * Method: nonsense, a tail, another zone. */
TEST(date_parse_refuses_nonsense)
{
    int64_t seconds;

    EXPECT(!date_parse("", &seconds));
    EXPECT(!date_parse("yesterday", &seconds));
    EXPECT(!date_parse("784111777", &seconds));
    EXPECT(!date_parse("Sun, 06 Nov 1994 08:49:37 GMT!", &seconds));
    EXPECT(!date_parse("Sun, 06 Nov 1994 08:49:37 CET", &seconds));
}

/* Goal: the cache gives the current time and is not stuck.
 * Method: an entry of long ago is replaced; a fresh one is kept. */
TEST(date_now_replaces_old_entry)
{
    struct date_cache cache = {.second = 1};
    int64_t seconds = 0;

    strcpy(cache.text, "old");
    EXPECT(date_parse(date_now(&cache), &seconds));
    EXPECT_EQ(cache.second, seconds);
    EXPECT(seconds > 1700000000);
}
