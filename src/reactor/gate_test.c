/* SPDX-License-Identifier: MIT */
/* src/reactor/gate_test.c - whoever finds the sealed gate empty is one alone. */
#include <pthread.h>

#include "engine/test.h"
#include "reactor/gate.h"

/* Goal: an open gate admits any number, a sealed one nobody.
 * Method: two go in, the gate is sealed, a third is refused; the second of the
 * two to leave is told that it was the last. */
TEST(gate_sealed_while_busy_ends_with_the_last_one_out)
{
    struct pirn__gate gate = {{0}};

    EXPECT(pirn__gate_enter(&gate));
    EXPECT(pirn__gate_enter(&gate));
    EXPECT(!pirn__gate_is_sealed(&gate));
    EXPECT_EQ(PIRN__GATE_BUSY, pirn__gate_seal(&gate));
    EXPECT(pirn__gate_is_sealed(&gate));
    EXPECT(!pirn__gate_enter(&gate));
    EXPECT(!pirn__gate_leave(&gate));
    EXPECT(pirn__gate_leave(&gate));
}

/* Goal: an empty gate is the sealer's to finish, once.
 * Method: seal twice. */
TEST(gate_sealed_while_empty_is_the_sealers)
{
    struct pirn__gate gate = {{0}};

    EXPECT(pirn__gate_enter(&gate));
    EXPECT(!pirn__gate_leave(&gate));
    EXPECT_EQ(PIRN__GATE_EMPTY, pirn__gate_seal(&gate));
    EXPECT_EQ(PIRN__GATE_WAS_SEALED, pirn__gate_seal(&gate));
    EXPECT_EQ(PIRN__GATE_WAS_SEALED, pirn__gate_try_seal(&gate));
}

/* Goal: trying to seal a busy gate changes nothing.
 * Method: try with one inside, go in again, leave, try again. */
TEST(gate_try_seal_while_busy_leaves_it_open)
{
    struct pirn__gate gate = {{0}};

    EXPECT(pirn__gate_enter(&gate));
    EXPECT_EQ(PIRN__GATE_BUSY, pirn__gate_try_seal(&gate));
    EXPECT(pirn__gate_enter(&gate));
    EXPECT(!pirn__gate_leave(&gate));
    EXPECT(!pirn__gate_leave(&gate));
    EXPECT_EQ(PIRN__GATE_EMPTY, pirn__gate_try_seal(&gate));
    EXPECT(!pirn__gate_enter(&gate));
}

struct race {
    struct pirn__gate gate;
    PIRN_ATOMIC(int) finishers;
    int guarded; /* a descriptor, as it were */
};

static void *go_in_and_out(void *arg)
{
    struct race *race = arg;

    while (pirn__gate_enter(&race->gate)) {
        /* A data race with the finisher if the gate does not order them. */
        EXPECT_EQ(1, race->guarded);
        if (!pirn__gate_leave(&race->gate))
            continue;
        race->guarded = 0;
        /* relaxed: a count. */
        pirn__add(&race->finishers, 1, relaxed);
    }
    return NULL;
}

/* Goal: under any interleaving exactly one side finishes, after everybody.
 * Method: three threads go in and out while a fourth seals; the finisher writes
 * what those inside read. */
TEST(gate_race_has_one_finisher)
{
    size_t rounds = test_size(50, 200, 20000);

    for (size_t i = 0; i < rounds; i++) {
        struct race race = {.guarded = 1};
        pthread_t threads[3];

        for (int k = 0; k < 3; k++)
            REQUIRE(pthread_create(&threads[k], NULL, go_in_and_out, &race) ==
                    0);
        if (pirn__gate_seal(&race.gate) == PIRN__GATE_EMPTY) {
            race.guarded = 0;
            /* relaxed: a count. */
            pirn__add(&race.finishers, 1, relaxed);
        }
        for (int k = 0; k < 3; k++)
            pthread_join(threads[k], NULL);
        /* relaxed: the threads have been joined. */
        EXPECT_EQ(1, pirn__load(&race.finishers, relaxed));
        EXPECT_EQ(0, race.guarded);
    }
}
