/* SPDX-License-Identifier: MIT */
/* tests/engine/test_main.c - main() of every test program.
 *
 * cmocka runs and reports the tests; its assertions jump back to the runner,
 * which must not happen on a fiber or another thread, so that the checks of
 * test.h only count and the main thread asserts once, after the body.
 *
 * A child process watches the time.  It is no thread and no signal handler,
 * because both change what is tested: fork() in a death test would leave the
 * process with threads, and TSan delays handlers.  It leaves when its pipe
 * closes.
 *
 * With PIRN_TEST_PLAIN a small loop stands in for cmocka, for cross builds.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "engine/test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PIRN_TEST_PLAIN
#include <cmocka.h>
#endif

#include "base/atomic.h"

enum {
    DEFAULT_TIMEOUT_S = 60,
    MESSAGE_SIZE = 1024,
    DEATH_OUTPUT_SIZE = 16 * 1024,
    FATAL_SIGNAL_COUNT = 5
};

/* cmocka takes these over; a crash shall end in the sanitizer's report or in a
 * core dump instead. */
static const int fatal_signals[FATAL_SIGNAL_COUNT] = {SIGFPE, SIGILL, SIGSEGV,
                                                      SIGBUS, SIGSYS};
static struct sigaction fatal_actions[FATAL_SIGNAL_COUNT];

static struct test__case *first_case;
static struct test__case **last_case = &first_case;

static PIRN_ATOMIC(int) failure_count;
static const char *skip_reason;
static const char *seed_argument;
static int watchdog_fd = -1;

void test__register(struct test__case *entry)
{
    *last_case = entry;
    last_case = &entry->next;
}

/* One write per message: several threads may report at once. */
__attribute__((format(printf, 1, 0))) static void
print_line(const char *format, va_list args)
{
    char text[MESSAGE_SIZE];
    int len = vsnprintf(text, sizeof text - 1, format, args);

    if (len < 0)
        return;
    if (len > (int)sizeof text - 2)
        len = (int)sizeof text - 2;
    text[len++] = '\n';
    if (write(STDERR_FILENO, text, (size_t)len) < 0)
        return;
}

__attribute__((format(printf, 1, 2))) static void print(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_line(format, args);
    va_end(args);
}

void test__fail(const char *file, int line, const char *format, ...)
{
    char text[MESSAGE_SIZE / 2];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print("%s:%d: %s", file, line, text);
    /* relaxed: a count; the test joins its threads before it is read. */
    pirn__add(&failure_count, 1, relaxed);
}

int test_failures(void)
{
    /* relaxed: a count; the test joins its threads before it is read. */
    return pirn__load(&failure_count, relaxed);
}

static bool is_negative(struct test__integer number)
{
    return number.value < 0 && !number.is_unsigned;
}

static bool is_less(struct test__integer left, struct test__integer right)
{
    if (is_negative(left) != is_negative(right))
        return is_negative(left);
    return (uintmax_t)left.value < (uintmax_t)right.value;
}

static bool holds(enum test__relation relation, struct test__integer left,
                  struct test__integer right)
{
    switch (relation) {
    case TEST__EQ:
        return left.value == right.value;
    case TEST__NE:
        return left.value != right.value;
    case TEST__LE:
        return !is_less(right, left);
    case TEST__GE:
        return !is_less(left, right);
    }
    return false;
}

static void format_integer(char *buf, size_t size, struct test__integer number)
{
    if (is_negative(number))
        (void)snprintf(buf, size, "%" PRIdMAX, number.value);
    else
        (void)snprintf(buf, size, "%" PRIuMAX, (uintmax_t)number.value);
}

void test__integers(const char *file, int line, const char *text,
                    enum test__relation relation, struct test__integer left,
                    struct test__integer right)
{
    char left_number[32];
    char right_number[32];

    if (holds(relation, left, right))
        return;
    format_integer(left_number, sizeof left_number, left);
    format_integer(right_number, sizeof right_number, right);
    test__fail(file, line, "expected: %s, but %s and %s", text, left_number,
               right_number);
}

void test__strings(const char *file, int line, const char *text,
                   const char *expected, const char *actual)
{
    if (expected == actual)
        return;
    if (expected != NULL && actual != NULL && strcmp(expected, actual) == 0)
        return;
    test__fail(file, line, "%s: expected \"%s\", but \"%s\"", text,
               expected == NULL ? "(null)" : expected,
               actual == NULL ? "(null)" : actual);
}

void test__pointers(const char *file, int line, const char *text,
                    const void *expected, const void *actual)
{
    if (expected != actual)
        test__fail(file, line, "%s: expected %p, but %p", text, expected,
                   actual);
}

void test__skip(const char *reason)
{
    skip_reason = reason;
}

static void die_with_parent(void)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == 1)
        _exit(1);
}

__attribute__((noreturn)) static void
run_in_child(void (*fn)(void *arg), void *arg, int error_fd)
{
    die_with_parent();
    (void)dup2(error_fd, STDERR_FILENO);
    (void)prctl(PR_SET_DUMPABLE, 0);
    fn(arg);
    _exit(0);
}

/* Read to the end; what exceeds the buffer is dropped. */
static void read_all(int fd, char *buf, size_t size)
{
    char overflow[256];
    size_t used = 0;

    for (;;) {
        bool is_full = used == size - 1;
        ssize_t n = is_full ? read(fd, overflow, sizeof overflow)
                            : read(fd, buf + used, size - 1 - used);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        if (!is_full)
            used += (size_t)n;
    }
    buf[used] = '\0';
}

static int wait_for(pid_t child)
{
    int status = 0;

    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR)
            return -1;
    }
    return status;
}

void test__death(const char *file, int line, void (*fn)(void *arg), void *arg,
                 int signal, const char *words)
{
    static char output[DEATH_OUTPUT_SIZE];
    int fds[2];

    (void)fflush(NULL);
    if (pipe2(fds, O_CLOEXEC) < 0) {
        test__fail(file, line, "death test: no pipe");
        return;
    }
    pid_t child = fork();
    if (child == 0)
        run_in_child(fn, arg, fds[1]);
    (void)close(fds[1]);
    if (child > 0)
        read_all(fds[0], output, sizeof output);
    (void)close(fds[0]);
    if (child < 0) {
        test__fail(file, line, "death test: no process");
        return;
    }

    int status = wait_for(child);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != signal)
        test__fail(file, line, "expected death by signal %d, but %s %d", signal,
                   WIFSIGNALED(status) ? "signal" : "exit status",
                   WIFSIGNALED(status) ? WTERMSIG(status)
                                       : WEXITSTATUS(status));
    if (strstr(output, words) == NULL)
        test__fail(file, line, "expected \"%s\" on standard error, but \"%s\"",
                   words, output);
}

uint64_t test_seed(void)
{
    const char *text = seed_argument;
    uint64_t seed = 0;

    if (text == NULL)
        text = getenv("PIRN_SEED");
    if (text != NULL)
        seed = strtoull(text, NULL, 0);
    else if (getrandom(&seed, sizeof seed, 0) < 0)
        seed = (uint64_t)getpid();
    print("seed %" PRIu64 " (repeat with PIRN_SEED=%" PRIu64 ")", seed, seed);
    return seed;
}

size_t test_size(size_t small, size_t everyday, size_t soak)
{
    const char *wanted = getenv("PIRN_TEST_SIZE");
    uint64_t percent;

    if (wanted == NULL)
        return everyday;
    if (strcmp(wanted, "small") == 0)
        return small;
    if (strcmp(wanted, "long") == 0 || soak <= everyday)
        return soak;
    /* None in "everyday". */
    percent = strtoul(wanted, NULL, 10);
    return everyday + (size_t)((soak - everyday) * percent / 100);
}

static int timeout_s(void)
{
    const char *text = getenv("PIRN_TEST_TIMEOUT_S");

    return text == NULL ? DEFAULT_TIMEOUT_S : atoi(text);
}

__attribute__((noreturn)) static void kill_parent(const char *name)
{
    pid_t parent = getppid();

    print("test %s ran longer than %d s; ending it", name, timeout_s());
    (void)kill(parent, SIGABRT);
    (void)sleep(3);
    (void)kill(parent, SIGKILL);
    _exit(1);
}

/* Each message on the pipe is the name of the test that starts now. */
__attribute__((noreturn)) static void watch(int fd)
{
    struct pollfd pollfd = {.fd = fd, .events = POLLIN};
    const char *name = "(start)";

    for (;;) {
        int n = poll(&pollfd, 1, timeout_s() * 1000);

        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            kill_parent(name);
        if (read(fd, &name, sizeof name) != (ssize_t)sizeof name)
            _exit(0);
    }
}

static void start_watchdog(void)
{
    int fds[2];

    if (timeout_s() <= 0 || pipe2(fds, O_CLOEXEC) < 0)
        return;
    pid_t child = fork();
    if (child == 0) {
        (void)close(fds[1]);
        die_with_parent();
        watch(fds[0]);
    }
    (void)close(fds[0]);
    watchdog_fd = fds[1];
}

/* The watchdog has the same image, so that the pointer means the same there. */
static void feed_watchdog(const struct test__case *entry)
{
    if (watchdog_fd >= 0 &&
        write(watchdog_fd, &entry->name, sizeof entry->name) < 0)
        print("the watchdog is gone");
}

static void save_fatal_actions(void)
{
    for (int i = 0; i < FATAL_SIGNAL_COUNT; i++)
        (void)sigaction(fatal_signals[i], NULL, &fatal_actions[i]);
}

static void restore_fatal_actions(void)
{
    for (int i = 0; i < FATAL_SIGNAL_COUNT; i++)
        (void)sigaction(fatal_signals[i], &fatal_actions[i], NULL);
}

static void run_body(const struct test__case *entry)
{
    /* relaxed: the threads of the last test have ended. */
    pirn__store(&failure_count, 0, relaxed);
    skip_reason = NULL;
    restore_fatal_actions();
    feed_watchdog(entry);
    entry->body();
}

#ifdef PIRN_TEST_PLAIN

static int run_cases(struct test__case *const *cases, size_t count)
{
    int failed = 0;

    for (size_t i = 0; i < count; i++) {
        (void)printf("[ RUN      ] %s\n", cases[i]->name);
        run_body(cases[i]);
        failed += test_failures() != 0;
        (void)printf("[ %s ] %s\n",
                     test_failures() != 0 ? " FAILED " : "     OK ",
                     cases[i]->name);
        if (skip_reason != NULL)
            (void)printf("skipped: %s\n", skip_reason);
    }
    (void)printf("%zu tests, %d failed\n", count, failed);
    return failed;
}

#else

static void run_under_cmocka(void **state)
{
    const struct test__case *entry = *state;

    run_body(entry);
    if (test_failures() != 0)
        fail_msg("%d expectations failed", test_failures());
    if (skip_reason != NULL) {
        print("skipped: %s", skip_reason);
        skip();
    }
}

static int run_cases(struct test__case *const *cases, size_t count)
{
    struct CMUnitTest *tests = calloc(count, sizeof *tests);

    if (tests == NULL)
        return 1;
    for (size_t i = 0; i < count; i++) {
        tests[i].name = cases[i]->name;
        tests[i].test_func = run_under_cmocka;
        tests[i].initial_state = cases[i];
    }
    int failed = _cmocka_run_group_tests("tests", tests, count, NULL, NULL);
    free(tests);
    return failed;
}

#endif

static size_t count_cases(void)
{
    size_t count = 0;

    for (struct test__case *entry = first_case; entry; entry = entry->next)
        count++;
    return count;
}

/* Collect the cases whose names contain `word`. */
static size_t select_cases(struct test__case **out, const char *word)
{
    size_t count = 0;

    for (struct test__case *entry = first_case; entry; entry = entry->next) {
        if (word == NULL || strstr(entry->name, word) != NULL)
            out[count++] = entry;
    }
    return count;
}

static void list_cases(void)
{
    for (struct test__case *entry = first_case; entry; entry = entry->next)
        (void)printf("%s\n", entry->name);
}

int main(int argc, char **argv)
{
    const char *word = NULL;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0) {
            list_cases();
            return 0;
        }
        if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            seed_argument = argv[++i];
        else
            word = argv[i];
    }

    struct test__case **cases = calloc(count_cases() + 1, sizeof *cases);
    if (cases == NULL)
        return 1;
    size_t count = select_cases(cases, word);
    if (count == 0) {
        print("no test matches");
        free(cases);
        return 1;
    }

    /* A crash must not swallow what was printed before it. */
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    save_fatal_actions();
    start_watchdog();
    int failed = run_cases(cases, count);
    free(cases);
    return failed == 0 ? 0 : 1;
}
