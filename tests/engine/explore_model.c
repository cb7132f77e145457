/* SPDX-License-Identifier: MIT */
/* tests/engine/explore_model.c - the search leaves nothing out.
 *
 * What sleep sets cut off must have been seen in another order.  Random tiny
 * programs are explored with and without them: the outcomes must be the same,
 * under every bound.
 */
#include <stdio.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "engine/explore.h"
#include "sys/sys.h"

enum { MAX_THREADS = 3, MAX_OPS = 4, PLACES = 2, MAX_READS = 6 };

enum kind { LOAD, STORE, ADD, CAS, LOCKED, WAIT, WAKE, KINDS };

struct step {
    enum kind kind;
    unsigned place;
    enum explore_order order;
};

static struct {
    unsigned threads;
    unsigned ops;
    struct step steps[MAX_THREADS][MAX_OPS];
} program;

static PIRN_ATOMIC(uint32_t) places[PLACES];
static PIRN_SHARED(unsigned) guarded;
static pirn_lock guard;
/* What each step read, two bits each. */
static unsigned reads[MAX_THREADS][MAX_OPS];

static unsigned run_locked(void)
{
    unsigned before;

    pirn__lock(&guard);
    before = pirn_cell_read(&guarded);
    pirn_cell_write(&guarded, before + 1);
    pirn__unlock(&guard);
    return before;
}

static unsigned run_step(const struct step *step)
{
    void *place = &places[step->place];
    uint64_t expected = 1;

    switch (step->kind) {
    case LOAD:
        return (unsigned)explore_load(place, 4, step->order, EXPLORE_PLACE);
    case STORE:
        explore_store(place, 4, 1, step->order, EXPLORE_PLACE);
        return 0;
    case ADD:
        return (unsigned)explore_rmw(place, 4, EXPLORE_ADD, 1, step->order,
                                     EXPLORE_PLACE);
    case CAS:
        return explore_cas(place, 4, &expected, 3, step->order, step->order,
                           false, EXPLORE_PLACE);
    case LOCKED:
        return run_locked();
    case WAIT:
        (void)pirn__sys->futex_wait(place, 0, PIRN_NEVER);
        return 0;
    case WAKE:
        pirn__sys->futex_wake(place, 1);
        return 0;
    case KINDS:
        break;
    }
    return 0;
}

static void run_thread(void *arg)
{
    unsigned self = (unsigned)(uintptr_t)arg;

    for (unsigned i = 0; i < program.ops; i++)
        reads[self][i] = run_step(&program.steps[self][i]) & 3;
}

/* The outcome is all that was read, mixed down to the words there are. */
static void body(void)
{
    uint64_t outcome = 0;

    for (unsigned i = 0; i < program.threads; i++)
        explore_thread(run_thread, (void *)(uintptr_t)i);
    explore_join();
    for (unsigned i = 0; i < program.threads; i++) {
        for (unsigned k = 0; k < program.ops; k++)
            outcome = outcome * 5 + reads[i][k];
    }
    explore_outcome((unsigned)(outcome % (64 * EXPLORE_OUTCOME_WORDS - 3)));
}

static uint64_t draw(uint64_t *state, uint64_t limit)
{
    /* Knuth's MMIX generator. */
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (*state >> 33) % limit;
}

/* Mostly loads and stores: the other kinds leave fewer outcomes. */
static enum kind draw_kind(uint64_t *state)
{
    uint64_t number = draw(state, 2 * KINDS);

    if (number < KINDS)
        return (enum kind)number;
    return number % 2 == 0 ? LOAD : STORE;
}

static void draw_program(uint64_t *state)
{
    program.threads = 2 + (unsigned)draw(state, MAX_THREADS - 1);
    program.ops = 2 + (unsigned)draw(state, program.threads == 2 ? 3 : 2);
    for (unsigned i = 0; i < program.threads; i++) {
        for (unsigned k = 0; k < program.ops; k++)
            program.steps[i][k] = (struct step){
                draw_kind(state), (unsigned)draw(state, PLACES),
                (enum explore_order)draw(state, 5)};
    }
}

/* Explore with `options`; outcomes are empty where it did not end. */
static enum explore_finding outcomes(const struct explore_options *options,
                                     uint64_t *words)
{
    struct explore_result result = explore_run(body, options, true);

    memset(words, 0, EXPLORE_OUTCOME_WORDS * sizeof *words);
    if (result.finding == EXPLORE_CLEAN)
        memcpy(words, explore_outcomes(),
               EXPLORE_OUTCOME_WORDS * sizeof *words);
    return result.finding;
}

static bool same_outcomes(int preemptions)
{
    struct explore_options options = {
        .preemptions = preemptions, .spurious = -1, .timeouts = -1};
    uint64_t reduced[EXPLORE_OUTCOME_WORDS];
    uint64_t full[EXPLORE_OUTCOME_WORDS];
    enum explore_finding finding;

    finding = outcomes(&options, reduced);
    options.every_order = true;
    return outcomes(&options, full) == finding &&
           memcmp(full, reduced, sizeof full) == 0;
}

static void print_program(void)
{
    for (unsigned i = 0; i < program.threads; i++) {
        for (unsigned k = 0; k < program.ops; k++)
            fprintf(stderr, " %u:%u:%u", program.steps[i][k].kind,
                    program.steps[i][k].place, program.steps[i][k].order);
        fprintf(stderr, "\n");
    }
}

/* Goal: sleep sets change no outcome, bounded or not.
 * Method: random programs of loads, stores, swaps, locks and waits. */
TEST(explore_reduction_keeps_every_outcome)
{
    static const int bounds[] = {-1, 1, 2, 3, EXPLORE_UNBOUNDED};
    uint64_t state = test_seed();
    size_t count = test_size(50, 400, 10000);

    for (size_t i = 0; i < count; i++) {
        draw_program(&state);
        for (size_t k = 0; k < sizeof bounds / sizeof bounds[0]; k++) {
            bool same = same_outcomes(bounds[k]);

            if (!same) {
                fprintf(stderr, "preemptions %d:\n", bounds[k]);
                print_program();
            }
            REQUIRE(same);
        }
    }
}

static void spin(void *arg)
{
    (void)arg;
    while (pirn__load(&places[0], relaxed) == 0)
        continue;
}

static void set(void *arg)
{
    (void)arg;
    pirn__store(&places[0], 1, relaxed);
}

static void spin_body(void)
{
    explore_thread(set, NULL);
    explore_join();
    explore_thread(spin, NULL);
    explore_join();
}

/* Goal: a variable starts each execution with its content of before, and a loop
 * on an old value ends. */
TEST(explore_starts_each_execution_from_the_same_memory)
{
    const struct explore_options options = {0};

    pirn__init(&places[0], 0);
    pirn__init(&places[1], 7);
    EXPECT_EQ(EXPLORE_CLEAN, explore_run(spin_body, &options, false).finding);
    EXPECT_EQ(0, pirn__load(&places[0], relaxed));
    EXPECT_EQ(7, pirn__load(&places[1], relaxed));
}
