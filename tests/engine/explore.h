/* SPDX-License-Identifier: MIT */
/* tests/engine/explore.h - model tests: a few threads, all interleavings.
 *
 * A model is a body that makes some objects, starts two to four threads on
 * them, joins them and checks.  The explorer runs it again and again, depth
 * first, until every schedule within the bound, and every store that a load may
 * see, has been tried.
 *
 *     static void push(void *arg) { pirn__inbox_push(&inbox, arg); }
 *
 *     MODEL(inbox_two_pushes_are_both_taken, .preemptions = 2)
 *     {
 *         explore_thread(push, &a);
 *         explore_thread(push, &b);
 *         explore_join();
 *         EXPLORE_CHECK(taken(&a) && taken(&b));
 *     }
 *
 * Each execution starts from the same memory: variables of the program have
 * their contents of before the exploration.
 *
 * The memory is C11's as far as hardware and compilers use it: each location
 * has its stores in one order; a relaxed or acquire load, and a
 * compare-and-swap that fails, may see any store that is not hidden by
 * happens-before or coherence; release sequences; seq_cst operations in one
 * total order, which is the order of execution.  Not modelled: load buffering,
 * values out of thin air, a store that takes its place before an older store of
 * its location; see docs/decisions/blind-spots.md.
 *
 * Plain data of the library, and what a model declares PIRN_SHARED, is checked
 * for races, and memory of explore_heap and of slabs for use after free.
 *
 * Search: preemption-bounded depth-first search (M. Musuvathi and S. Qadeer,
 * "Iterative Context Bounding", 2007) with sleep sets (P. Godefroid, 1996) that
 * respect the bound in the sense of K. Coons, M. Musuvathi and K. McKinley,
 * "Bounded Partial-Order Reduction" (2013); see explore.c.  The treatment of
 * stores follows B. Norris and B. Demsky, "CDSChecker" (2013), and the loom
 * library; that of plain data C. Flanagan and S. Freund, "FastTrack" (2009).
 */
#ifndef PIRN_TESTS_ENGINE_EXPLORE_H
#define PIRN_TESTS_ENGINE_EXPLORE_H

#include <pirn/alloc.h>

#include "engine/explore_atomic.h"
#include "engine/test.h"

enum {
    EXPLORE_UNBOUNDED = 1000, /* preemptions: all schedules */
    EXPLORE_OUTCOME_WORDS = 64,
};

/* Zero is a default, which stands behind the colon; -1 is none. */
struct explore_options {
    int preemptions; /* of one execution: 2.  EXPLORE_UNBOUNDED: no bound */
    int spurious;    /* weak compare-and-swaps and waits that fail for no
                        reason: 1 */
    int timeouts;    /* waits that end by their time before anything else
                        happens: 1.  When nobody can go on, time passes */
    bool frozen;     /* it does not: who waits, waits for ever */
    int stale;       /* loads of old values: 1000, which is to say all */
    int refusals;    /* threads that cannot be started: none */
    int steps;       /* operations; more are a livelock: 2000 */
    bool may_leak;   /* memory may be out at the end */
    bool every_order;    /* no sleep sets: for tests of the explorer */
    uint64_t executions; /* give up after so many: 20 million */
};

enum explore_finding {
    EXPLORE_CLEAN,
    EXPLORE_CHECK_FAILED,
    EXPLORE_RACE,
    EXPLORE_DEADLOCK, /* nobody can go on: a lost wake-up, or a lock cycle */
    EXPLORE_LIVELOCK,
    EXPLORE_LEAK,
    EXPLORE_USE_AFTER_FREE,
    EXPLORE_TOO_LARGE, /* given up: the model is not small enough */
};

struct explore_result {
    enum explore_finding finding;
    uint64_t executions; /* complete ones */
    uint64_t redundant;  /* cut short by sleep sets */
    uint64_t walks;      /* of the executions: drawn at random */
    char text[160];      /* what was found */
};

/* Explore; with `quiet` a finding is not printed. */
struct explore_result explore_run(void (*body)(void),
                                  const struct explore_options *options,
                                  bool quiet);

/* Look beyond the bound for about so long: all executions with one preemption
 * more; if there are too many, others at random. */
struct explore_result explore_beyond(void (*body)(void),
                                     const struct explore_options *options,
                                     double seconds, bool quiet);

/* Explore and make a finding a failure of the current test.  With
 * PIRN_MODEL_SECONDS in the environment: beyond the bound, for so long. */
void explore_expect_clean(const char *name, void (*body)(void),
                          const struct explore_options *options);

#define MODEL(name, ...) \
    static void name##_body(void); \
    TEST(name) \
    { \
        static const struct explore_options options = {__VA_ARGS__}; \
        explore_expect_clean(#name, name##_body, &options); \
    } \
    static void name##_body(void)

/* In a body: start a thread, wait for all threads, choose one of `count`. */
void explore_thread(void (*fn)(void *arg), void *arg);
void explore_join(void);
unsigned explore_choose(unsigned count);

/* The number of the running virtual thread; 0 is the body. */
unsigned explore_self(void);

void explore_check(bool condition, const char *text,
                   struct explore_place place);
#define EXPLORE_CHECK(condition) \
    explore_check((condition), #condition, EXPLORE_PLACE)

/* Count an outcome of an execution, for litmus tests: a bit of the words that
 * explore_outcomes() returns after the exploration. */
void explore_outcome(unsigned outcome);
const uint64_t *explore_outcomes(void);

/* An allocator that sees leaks and uses after free, emptied before each
 * execution. */
extern const pirn_alloc explore_heap;

#endif /* PIRN_TESTS_ENGINE_EXPLORE_H */
