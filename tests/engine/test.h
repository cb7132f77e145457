/* SPDX-License-Identifier: MIT */
/* tests/engine/test.h - how a Pirn test is written.
 *
 * A test file holds TEST functions and nothing else; main() comes with the
 * engine, which runs them in the order of the file under cmocka.
 *
 *     TEST(list_pop_of_empty_gives_null)
 *     {
 *         EXPECT_PTR_EQ(NULL, pirn__list_pop_head(&head));
 *     }
 *
 * EXPECT_* may be used on any thread, in any fiber, in a poll: a failure is
 * counted and printed, and the test goes on.  When the body has returned the
 * main thread looks at the count.  REQUIRE also leaves the function it stands
 * in.  Arguments are evaluated once; the expected value comes first.
 *
 *     ./x_test              all tests
 *     ./x_test WORD         those with WORD in their name
 *     ./x_test --seed N     random tests repeat the run with seed N
 *     ./x_test --list       the names
 *
 * Environment
 *     PIRN_SEED            as --seed
 *     PIRN_TEST_TIMEOUT_S  seconds one test may take; 0: for ever; default 60
 *     PIRN_TEST_SIZE       small, everyday (default), long, or a number: so
 *                          many per cent of the way to long; see test_size()
 */
#ifndef PIRN_TESTS_ENGINE_TEST_H
#define PIRN_TESTS_ENGINE_TEST_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Define a test; a body follows. */
#define TEST(name) \
    static void name(void); \
    __attribute__((constructor)) static void test__register_##name(void) \
    { \
        static struct test__case entry = {#name, name, NULL}; \
        test__register(&entry); \
    } \
    static void name(void)

#define EXPECT(condition) \
    ((condition) ? (void)0 \
                 : test__fail(__FILE__, __LINE__, "expected: %s", #condition))

#define EXPECT_EQ(expected, actual) \
    test__integers(__FILE__, __LINE__, #expected " == " #actual, TEST__EQ, \
                   TEST__INTEGER(expected), TEST__INTEGER(actual))
#define EXPECT_NE(unexpected, actual) \
    test__integers(__FILE__, __LINE__, #unexpected " != " #actual, TEST__NE, \
                   TEST__INTEGER(unexpected), TEST__INTEGER(actual))
/* low <= high, and the other way round. */
#define EXPECT_LE(low, high) \
    test__integers(__FILE__, __LINE__, #low " <= " #high, TEST__LE, \
                   TEST__INTEGER(low), TEST__INTEGER(high))
#define EXPECT_GE(high, low) \
    test__integers(__FILE__, __LINE__, #high " >= " #low, TEST__GE, \
                   TEST__INTEGER(high), TEST__INTEGER(low))

#define EXPECT_STR_EQ(expected, actual) \
    test__strings(__FILE__, __LINE__, #actual, (expected), (actual))
#define EXPECT_PTR_EQ(expected, actual) \
    test__pointers(__FILE__, __LINE__, #actual, (expected), (actual))

/* Record and leave the enclosing function, which returns nothing. */
#define REQUIRE(condition) \
    do { \
        if (!(condition)) { \
            test__fail(__FILE__, __LINE__, "required: %s", #condition); \
            return; \
        } \
    } while (0)

/* The same in a function that returns something. */
#define REQUIRE_OR_RETURN(condition, value) \
    do { \
        if (!(condition)) { \
            test__fail(__FILE__, __LINE__, "required: %s", #condition); \
            return value; \
        } \
    } while (0)

/* A child process that runs fn(arg) must end by abort() (or by `signal`) after
 * it has printed `words` on standard error. */
#define EXPECT_DEATH(fn, arg, words) \
    test__death(__FILE__, __LINE__, (fn), (arg), SIGABRT, (words))
#define EXPECT_DEATH_BY(signal, fn, arg, words) \
    test__death(__FILE__, __LINE__, (fn), (arg), (signal), (words))

/* Leave the test: the machine lacks what it needs.  Only in the TEST body. */
#define SKIP(reason) \
    do { \
        test__skip(reason); \
        return; \
    } while (0)

/* A seed for this run, printed so that the run can be repeated. */
uint64_t test_seed(void);

/* How much to do: `small` under sanitizers, `everyday` else, `soak` when the
 * long sizes are asked for. */
size_t test_size(size_t small, size_t everyday, size_t soak);

/* How many expectations of the running test have failed so far. */
int test_failures(void);

/* Internals of the macros. */
struct test__case {
    const char *name;
    void (*body)(void);
    struct test__case *next;
};

enum test__relation { TEST__EQ, TEST__NE, TEST__LE, TEST__GE };

/* Any integer: the bits, and whether the top one is a sign. */
struct test__integer {
    intmax_t value;
    bool is_unsigned;
};

#define TEST__INTEGER(x) \
    ((struct test__integer){(intmax_t)(x), \
                            _Generic((x), unsigned long: true, \
                                     unsigned long long: true, \
                                     default: false)})

void test__register(struct test__case *entry);
void test__fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void test__integers(const char *file, int line, const char *text,
                    enum test__relation relation, struct test__integer left,
                    struct test__integer right);
void test__strings(const char *file, int line, const char *text,
                   const char *expected, const char *actual);
void test__pointers(const char *file, int line, const char *text,
                    const void *expected, const void *actual);
void test__death(const char *file, int line, void (*fn)(void *arg), void *arg,
                 int signal, const char *words);
void test__skip(const char *reason);

#endif /* PIRN_TESTS_ENGINE_TEST_H */
