/* SPDX-License-Identifier: MIT */
/* tools/pirn/load_stats_test.c - counting, and adding up what was counted in
 * parts. */
#include "load_stats.h"

#include "engine/test.h"

#include <stdlib.h>
#include <string.h>

static struct load_stats *make(void)
{
    return calloc(1, sizeof(struct load_stats));
}

static void count(struct load_stats *stats, enum load_result result,
                  uint64_t now_ns)
{
    const struct load_sample sample = {
        .result = result, .bytes = 100, .start_ns = 1000, .now_ns = now_ns};

    load_stats_count(stats, &sample);
}

/* Goal: each end is counted where it belongs.
 * Method: one request of each kind. */
TEST(load_stats_count_by_result)
{
    struct load_stats *stats = make();

    REQUIRE(stats != NULL);
    for (int result = 0; result <= LOAD_CANCELLED; result++)
        count(stats, (enum load_result)result, 2000 + (uint64_t)result);
    for (int i = 0; i < LOAD_ERROR_COUNT; i++)
        EXPECT_EQ(1, stats->errors[i]);
    EXPECT_EQ(LOAD_ERROR_COUNT, load_stats_errors(stats));
    /* A bad status is an error and a whole answer. */
    EXPECT_EQ(2, stats->requests);
    EXPECT_EQ(2, stats->latency_ns.count);
    EXPECT_EQ(1, stats->unfinished);
    EXPECT_EQ(100 * (LOAD_CANCELLED + 1), stats->bytes);
    EXPECT_EQ(2000 + LOAD_FINE, stats->last_ns);
    free(stats);
}

/* Goal: the sum of parts is what one would have counted alone.
 * Method: the same random samples to one, and in turn to three; compared byte
 * for byte. */
TEST(load_stats_parts_add_up)
{
    struct load_stats *whole = make();
    struct load_stats *sum = make();
    struct load_stats *parts[] = {make(), make(), make()};
    uint64_t state = test_seed() | 1;

    REQUIRE(whole != NULL && sum != NULL);
    REQUIRE(parts[0] != NULL && parts[1] != NULL && parts[2] != NULL);
    for (int i = 0; i < 3000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        enum load_result result =
            (enum load_result)((state >> 33) % (LOAD_CANCELLED + 1));
        uint64_t now_ns = 1000 + (state >> 20) % 1000000000;

        count(whole, result, now_ns);
        count(parts[i % 3], result, now_ns);
    }
    for (int i = 0; i < 3; i++) {
        load_stats_add(sum, parts[i]);
        free(parts[i]);
    }
    EXPECT_EQ(0, memcmp(whole, sum, sizeof *sum));
    free(sum);
    free(whole);
}
