/* SPDX-License-Identifier: MIT */
/* tools/pirn/range_test.c - the Range header. */
#include "range.h"

#include "engine/test.h"

struct range_case {
    const char *text;
    uint64_t size;
    enum range_kind kind;
    uint64_t offset;
    uint64_t count;
};

static void check(const struct range_case *c)
{
    struct range range = {0, 0};
    enum range_kind kind = range_parse(c->text, c->size, &range);

    EXPECT_EQ((int)c->kind, (int)kind);
    if (kind != RANGE_PART)
        return;
    EXPECT_EQ(c->offset, range.offset);
    EXPECT_EQ(c->count, range.count);
}

/* Goal: one range is understood, and clipped to the file.
 * Method: first-last, open end, suffix, at the borders and far beyond. */
TEST(range_single_is_a_part)
{
    static const struct range_case cases[] = {
        {"bytes=0-0", 10, RANGE_PART, 0, 1},
        {"bytes=0-9", 10, RANGE_PART, 0, 10},
        {"bytes=0-99", 10, RANGE_PART, 0, 10},
        {"bytes=3-5", 10, RANGE_PART, 3, 3},
        {"bytes=9-9", 10, RANGE_PART, 9, 1},
        {"bytes=9-", 10, RANGE_PART, 9, 1},
        {"bytes=0-", 10, RANGE_PART, 0, 10},
        {"bytes=-1", 10, RANGE_PART, 9, 1},
        {"bytes=-10", 10, RANGE_PART, 0, 10},
        {"bytes=-11", 10, RANGE_PART, 0, 10},
        {"BYTES=1-2", 10, RANGE_PART, 1, 2},
        {"bytes= 1-2 ", 10, RANGE_PART, 1, 2},
        {"bytes=0-18446744073709551615", 10, RANGE_PART, 0, 10},
        {"bytes=0-99999999999999999999999", 10, RANGE_PART, 0, 10},
        {"bytes=-99999999999999999999999", 10, RANGE_PART, 0, 10},
        {"bytes=5-6", UINT64_MAX, RANGE_PART, 5, 2},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(&cases[i]);
}

/* Goal: a range behind the end is told from nonsense.
 * Method: starts at and behind the end, an empty file, an empty suffix. */
TEST(range_behind_end_is_unsatisfiable)
{
    static const struct range_case cases[] = {
        {"bytes=10-", 10, RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=10-20", 10, RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=99999999999999999999999-", 10, RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=-0", 10, RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=0-", 0, RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=-5", 0, RANGE_UNSATISFIABLE, 0, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(&cases[i]);
}

/* Goal: everything else gets the whole file.
 * Method: no header, other units, several ranges, nonsense. */
TEST(range_nonsense_is_the_whole)
{
    static const struct range_case cases[] = {
        {"", 10, RANGE_WHOLE, 0, 0},
        {"bytes", 10, RANGE_WHOLE, 0, 0},
        {"bytes=", 10, RANGE_WHOLE, 0, 0},
        {"bytes=-", 10, RANGE_WHOLE, 0, 0},
        {"bytes=5-3", 10, RANGE_WHOLE, 0, 0},
        {"bytes=0-1,3-4", 10, RANGE_WHOLE, 0, 0},
        {"bytes=0-1,", 10, RANGE_WHOLE, 0, 0},
        {"bytes=a-b", 10, RANGE_WHOLE, 0, 0},
        {"bytes=1", 10, RANGE_WHOLE, 0, 0},
        {"bytes=1-2x", 10, RANGE_WHOLE, 0, 0},
        {"bytes=--1", 10, RANGE_WHOLE, 0, 0},
        {"bytes=+1-2", 10, RANGE_WHOLE, 0, 0},
        {"lines=1-2", 10, RANGE_WHOLE, 0, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(&cases[i]);
}
