/* SPDX-License-Identifier: MIT */
/* tools/pirn/options_test.c - numbers and switches. */
#include "options.h"

#include <stdlib.h>

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

/* Goal: workers are a number that a runtime takes, or its own choice; never 0.
 * Method: the borders, one beyond each, the word, other words. */
TEST(option_workers_is_a_number_or_auto)
{
    static const char *const wrong[] = {"",    "0",    "513", "-1",
                                        "two", "Auto", "1x",  "4294967297"};
    uint32_t workers = 0;

    EXPECT(option_workers("test", "1", &workers));
    EXPECT_EQ(1, workers);
    EXPECT(option_workers("test", "auto", &workers));
    EXPECT_EQ(PIRN_WORKERS_AUTO, workers);
    EXPECT(option_workers("test", "512", &workers));
    EXPECT_EQ(512, workers);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        EXPECT(!option_workers("test", wrong[i], &workers));
    EXPECT_EQ(512, workers);
}

/* Goal: a variable of the environment that makes no sense is refused.
 * Method: one that does, and one that does not. */
TEST(option_runtime_refuses_a_wrong_variable)
{
    const pirn_runtime_options options = {.workers = PIRN_WORKERS_AUTO};

    REQUIRE(setenv("PIRN_WORKERS", "2", 1) == 0);
    EXPECT(option_runtime("test", &options));
    REQUIRE(setenv("PIRN_WORKERS", "nonsense", 1) == 0);
    EXPECT(!option_runtime("test", &options));
    (void)unsetenv("PIRN_WORKERS");
}
