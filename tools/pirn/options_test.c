/* SPDX-License-Identifier: MIT */
/* tools/pirn/options_test.c - numbers and switches. */
#include "options.h"

#include "engine/test.h"

static bool is_number(const char *text, uint64_t *out)
{
    return option_number("test", "--number", text, 10, 1000, out);
}

/* Goal: numbers in the range are read, and nothing else is.
 * Method: the borders, one beyond each, signs, blanks, tails, overflow. */
TEST(option_number_keeps_its_range)
{
    static const char *const wrong[] = {"",
                                        "9",
                                        "1001",
                                        "-10",
                                        "+10",
                                        " 10",
                                        "10 ",
                                        "1e2",
                                        "0x20",
                                        "ten",
                                        "18446744073709551626"};
    uint64_t value = 0;

    EXPECT(is_number("10", &value));
    EXPECT_EQ(10, value);
    EXPECT(is_number("1000", &value));
    EXPECT_EQ(1000, value);
    EXPECT(is_number("0500", &value));
    EXPECT_EQ(500, value);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        EXPECT(!is_number(wrong[i], &value));
    EXPECT_EQ(500, value);
}

/* Goal: a switch is on or off.
 * Method: both, and something else. */
TEST(option_switch_has_two_words)
{
    bool on = false;

    EXPECT(option_switch("test", "--switch", "on", &on));
    EXPECT(on);
    EXPECT(option_switch("test", "--switch", "off", &on));
    EXPECT(!on);
    EXPECT(!option_switch("test", "--switch", "yes", &on));
    EXPECT(!option_switch("test", "--switch", "", &on));
}
