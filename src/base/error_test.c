/* SPDX-License-Identifier: MIT */
/* src/base/error_test.c - the table of results against itself and libc. */
#include "base/error.h"

#include <limits.h>
#include <stdio.h>

#include "engine/test.h"

#define ROW(code, name, text, category) \
    {(code), (name), (text), PIRN_CATEGORY_##category},
static const struct row {
    int code;
    const char *name;
    const char *text;
    enum pirn_category category;
} rows[] = {PIRN__ERROR_TABLE(ROW)};
#undef ROW

enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

/* Goal: every row is what the three functions answer.
 * Method: ask for each. */
TEST(error_of_each_row_is_answered)
{
    for (int i = 0; i < ROW_COUNT; i++) {
        EXPECT_STR_EQ(rows[i].name, pirn_err_name(rows[i].code));
        EXPECT_STR_EQ(rows[i].text, pirn_err_text(rows[i].code));
        EXPECT_EQ(rows[i].category, pirn_err_category(rows[i].code));
    }
}

/* Goal: rows are well formed: a name of its own, a sentence without a full
 * stop, an errno value above the codes of ours.
 * Method: look at each and at all pairs. */
TEST(error_rows_are_well_formed)
{
    for (int i = 0; i < ROW_COUNT; i++) {
        bool is_own = strncmp(rows[i].name, "PIRN_E", 6) == 0;
        size_t len = strlen(rows[i].text);

        EXPECT(len > 0 && rows[i].text[len - 1] != '.');
        EXPECT_EQ(is_own, rows[i].code < -4096);
        EXPECT_NE(PIRN_CATEGORY_NONE, rows[i].category);
        for (int j = 0; j < i; j++)
            EXPECT(strcmp(rows[i].name, rows[j].name) != 0);
    }
}

#if defined(__GLIBC__) && __GLIBC__ == 2 && __GLIBC_MINOR__ >= 32
const char *strerrorname_np(int code);

/* Goal: the name stands for the right number.
 * Method: libc has names too. */
TEST(error_names_of_errno_are_those_of_libc)
{
    for (int i = 0; i < ROW_COUNT; i++) {
        if (rows[i].code < -4096)
            continue;
        EXPECT_STR_EQ(strerrorname_np(-rows[i].code), rows[i].name);
    }
}
#endif

/* Goal: no code of pirn/base.h lacks a row.
 * Method: they are numbered without a gap; the first unknown one is the one
 * behind the last. */
TEST(error_codes_of_ours_all_have_a_row)
{
    for (int rc = PIRN_ECLOSED; rc >= PIRN_EFORKED; rc--)
        EXPECT(strcmp("UNKNOWN", pirn_err_name(rc)) != 0);
    EXPECT_STR_EQ("UNKNOWN", pirn_err_name(PIRN_EFORKED - 1));
}

/* Goal: what the header promises for success and for nonsense.
 * Method: ask. */
TEST(error_of_success_and_nonsense_is_named)
{
    EXPECT_STR_EQ("OK", pirn_err_name(0));
    EXPECT_STR_EQ("OK", pirn_err_name(INT_MAX));
    EXPECT_EQ(PIRN_CATEGORY_NONE, pirn_err_category(17));
    EXPECT_STR_EQ("UNKNOWN", pirn_err_name(-4000));
    EXPECT_STR_EQ("UNKNOWN", pirn_err_name(INT_MIN));
    EXPECT_STR_EQ("unknown error", pirn_err_text(INT_MIN));
    EXPECT_EQ(PIRN_CATEGORY_SYSTEM, pirn_err_category(INT_MIN));
}

/* Goal: exit statuses as a shell expects them.
 * Method: one of each. */
TEST(exit_code_of_each_kind)
{
    EXPECT_EQ(0, pirn_exit_code(0));
    EXPECT_EQ(0, pirn_exit_code(200));
    EXPECT_EQ(1, pirn_exit_code(-EIO));
    EXPECT_EQ(1, pirn_exit_code(PIRN_EPANIC));
    EXPECT_EQ(130, pirn_exit_code(-ECANCELED));
}
