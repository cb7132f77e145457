/* SPDX-License-Identifier: MIT */
/* src/reactor/readiness_test.c - the word alone, one step after the other. */
#include "engine/test.h"
#include "reactor/readiness.h"

static bool has(const struct pirn__readiness *readiness, unsigned direction)
{
    return pirn__readiness_has(pirn__readiness_get(readiness), direction);
}

/* Goal: a clear that is older than an event does not erase it.
 * Method: look, let an event come, clear by the look; then clear by a fresh
 * look. */
TEST(readiness_late_clear_keeps_fresh_event)
{
    struct pirn__readiness readiness = {{0}};
    uint64_t seen;

    pirn__readiness_add(&readiness, PIRN__READY_READ);
    seen = pirn__readiness_get(&readiness);
    pirn__readiness_add(&readiness, PIRN__READY_READ);
    pirn__readiness_clear(&readiness, seen, PIRN__READY_READ);
    EXPECT(has(&readiness, PIRN__READY_READ));

    seen = pirn__readiness_get(&readiness);
    pirn__readiness_clear(&readiness, seen, PIRN__READY_READ);
    EXPECT(!has(&readiness, PIRN__READY_READ));
}

/* Goal: one direction is cleared even if the other was cleared meanwhile, which
 * is no event.
 * Method: look, clear writing, clear reading by the look. */
TEST(readiness_clear_of_one_direction_spares_the_other)
{
    struct pirn__readiness readiness = {{0}};
    uint64_t seen;

    pirn__readiness_add(&readiness, PIRN__READY_READ | PIRN__READY_WRITE);
    seen = pirn__readiness_get(&readiness);
    pirn__readiness_clear(&readiness, seen, PIRN__READY_WRITE);
    EXPECT(has(&readiness, PIRN__READY_READ));
    EXPECT(!has(&readiness, PIRN__READY_WRITE));
    pirn__readiness_clear(&readiness, seen, PIRN__READY_READ);
    EXPECT(!has(&readiness, PIRN__READY_READ));
}

/* Goal: short counts are trusted only where nothing can stand behind them.
 * Method: each doubt alone, in both directions. */
TEST(readiness_short_count_is_doubted_at_the_end_and_at_urgent_data)
{
    const struct {
        unsigned bits;
        bool reading;
        bool writing;
    } rows[] = {
        {PIRN__READY_READ | PIRN__READY_WRITE, true, true},
        {PIRN__READY_ENDED, false, true},
        {PIRN__READY_URGENT, false, true},
        {PIRN__READY_HUNG_UP, false, false},
        {PIRN__READY_FAILED, false, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EXPECT_EQ(rows[i].reading,
                  pirn__readiness_trusts_short(rows[i].bits, PIRN__READY_READ));
        EXPECT_EQ(rows[i].writing, pirn__readiness_trusts_short(
                                       rows[i].bits, PIRN__READY_WRITE));
    }
}

/* Goal: a hold stops reading, not writing, and keeps the readiness.
 * Method: mark and unmark around an event. */
TEST(readiness_held_hides_reading_until_unmarked)
{
    struct pirn__readiness readiness = {{0}};

    pirn__readiness_mark(&readiness, PIRN__READY_HELD);
    pirn__readiness_add(&readiness, PIRN__READY_READ | PIRN__READY_WRITE);
    EXPECT(!has(&readiness, PIRN__READY_READ));
    EXPECT(has(&readiness, PIRN__READY_WRITE));
    pirn__readiness_unmark(&readiness, PIRN__READY_HELD);
    EXPECT(has(&readiness, PIRN__READY_READ));
}

/* Goal: what no event has confirmed is known as an assumption.
 * Method: initial bits, then an event, then a device without readiness. */
TEST(readiness_is_assumed_until_the_first_event)
{
    struct pirn__readiness readiness = {{PIRN__READY_READ}};

    EXPECT(pirn__readiness_is_assumed(pirn__readiness_get(&readiness)));
    pirn__readiness_add(&readiness, PIRN__READY_READ);
    EXPECT(!pirn__readiness_is_assumed(pirn__readiness_get(&readiness)));
    EXPECT(!pirn__readiness_is_assumed(PIRN__READY_ALWAYS));
}
