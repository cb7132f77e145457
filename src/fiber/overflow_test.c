/* SPDX-License-Identifier: MIT */
/* src/fiber/overflow_test.c - the words before a fiber that overran its stack
 * stops the process, and that no disposition of a signal changes otherwise. */
#include "engine/overrun.h"
#include "fiber/rig_test.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "task/local.h"

/* Overrunning. */

static int overrun_at_once(void *arg)
{
    volatile int depth = 0;

    (void)arg;
    return overrun(&depth);
}

/* One frame far larger than the guard below the stack. */
__attribute__((noinline, no_sanitize_address)) static int leap(void)
{
    volatile char block[1024 * 1024];

    /* Keeps the compiler from making the block smaller. */
    __asm__ volatile("" : : "r"(block) : "memory");
    block[0] = 1;
    return block[0];
}

static int leap_at_once(void *arg)
{
    (void)arg;
    return leap();
}

struct dive {
    pirn_fiber_fn *fn;
    const char *name;
    size_t stack_size_bytes;
};

static int start_dive(void *arg)
{
    const struct dive *dive = arg;
    const pirn_spawn_options options = {
        .name = dive->name,
        .stack_size_bytes = dive->stack_size_bytes,
    };
    pirn_task *task;
    int outcome;
    int rc = pirn_go_with(dive->fn, NULL, &options, &task);

    if (rc == 0)
        rc = pirn_task_join(task, PIRN_NEVER, &outcome);
    return rc;
}

static void run_dive(void *arg)
{
    (void)!pirn_run(start_dive, arg);
}

/* Goal: a fiber that overruns its stack stops the process, which says who it
 * was and how large its stack is.
 * Method: a child process for each part of the message; with and without a
 * name. */
TEST(overflow_report_names_the_fiber_and_its_stack)
{
    struct dive named = {overrun_at_once, "diver", 0};
    struct dive plain = {overrun_at_once, NULL, 32 * 1024};

    EXPECT_DEATH_BY(SIGSEGV, run_dive, &named,
                    "stack overflow in fiber diver (");
    EXPECT_DEATH_BY(SIGSEGV, run_dive, &named, "its stack has 6");
    EXPECT_DEATH_BY(SIGSEGV, run_dive, &plain, "overflow_test.c:");
    EXPECT_DEATH_BY(SIGSEGV, run_dive, &plain, "its stack has 3");
}

/* Goal: a frame larger than the guard does not step over it.
 * Method: one of a megabyte on a small stack. */
TEST(overflow_by_one_large_frame_is_caught)
{
    struct dive dive = {leap_at_once, "leaper", 0};

#ifdef __riscv
    SKIP("compilers for this processor do not probe large frames");
#endif
    EXPECT_DEATH_BY(SIGSEGV, run_dive, &dive, "stack overflow in fiber leaper");
}

/* As the process was started: sanitizers have handlers of their own. */
static void set_default(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};

    (void)sigaction(SIGSEGV, &action, NULL);
}

static void run_dive_without_report(void *arg)
{
    const pirn_runtime_options options = {0};

    set_default();
    (void)!pirn_run_with(start_dive, arg, &options, NULL);
}

/* Goal: without the report an overrun still stops the process, at the guard.
 * Method: a child process. */
TEST(overflow_without_report_dies_at_the_guard)
{
    struct dive dive = {overrun_at_once, "diver", 0};

    EXPECT_DEATH_BY(SIGSEGV, run_dive_without_report, &dive, "");
}

/* Dispositions. */

static const int watched[] = {SIGSEGV, SIGBUS};

struct dispositions {
    struct sigaction of[2];
};

static struct dispositions dispositions_now(void)
{
    struct dispositions now;

    for (int i = 0; i < 2; i++)
        EXPECT_EQ(0, sigaction(watched[i], NULL, &now.of[i]));
    return now;
}

/* Not by bytes: libc leaves most of the mask undefined. */
static bool same_mask(const sigset_t *a, const sigset_t *b)
{
    for (int i = 1; i <= 64; i++) {
        if (sigismember(a, i) != sigismember(b, i))
            return false;
    }
    return true;
}

static bool same(const struct dispositions *a, const struct dispositions *b)
{
    for (int i = 0; i < 2; i++) {
        if (a->of[i].sa_handler != b->of[i].sa_handler ||
            a->of[i].sa_flags != b->of[i].sa_flags ||
            !same_mask(&a->of[i].sa_mask, &b->of[i].sa_mask))
            return false;
    }
    return true;
}

static int return_zero(void *arg)
{
    (void)arg;
    return 0;
}

/* A runtime with or without the report that has run a fiber. */
static pirn_runtime *new_runtime(bool report)
{
    const pirn_runtime_options options = {.overflow_report = report};
    pirn_spawn_options spawn = {0};

    EXPECT_EQ(0, pirn_runtime_new(&options, &spawn.runtime));
    EXPECT_EQ(0, pirn_go_with(return_zero, NULL, &spawn, NULL));
    EXPECT_LE(1, pirn_runtime_turn(spawn.runtime, PIRN_NEVER));
    return spawn.runtime;
}

/* Whether the thread watches for faults on which the fiber begins, and that on which
 * it goes on. */
struct roamer {
    pirn_task *task;
    bool goes_on;
    bool first_watches;
    bool second_watches;
};

static int roam(void *arg)
{
    struct roamer *roamer = arg;

    roamer->first_watches = pirn__local()->watches_faults;
    while (!roamer->goes_on)
        EXPECT_EQ(0, pirn_yield());
    roamer->second_watches = pirn__local()->watches_faults;
    return 0;
}

static void *join_roamer(void *arg)
{
    struct roamer *roamer = arg;
    int outcome;

    EXPECT_EQ(0, pirn_task_join(roamer->task, PIRN_NEVER, &outcome));
    return NULL;
}

/* Goal: each thread that a fiber runs on can report an overrun.
 * Method: a fiber that one thread begins to run, while it waits for another task,
 * and a second thread ends. */
TEST(overflow_report_follows_a_fiber_to_another_thread)
{
    const pirn_runtime_options options = {.overflow_report = true};
    pirn_spawn_options spawn = {0};
    struct roamer roamer = {0};
    pirn_task *other;
    pthread_t thread;
    int outcome;

    EXPECT_EQ(0, pirn_runtime_new(&options, &spawn.runtime));
    EXPECT_EQ(0, pirn_go_with(roam, &roamer, &spawn, &roamer.task));
    EXPECT_EQ(0, pirn_go_with(return_zero, NULL, &spawn, &other));
    EXPECT_EQ(0, pirn_task_join(other, PIRN_NEVER, &outcome));
    roamer.goes_on = true;
    EXPECT_EQ(0, pthread_create(&thread, NULL, join_roamer, &roamer));
    EXPECT_EQ(0, pthread_join(thread, NULL));
    EXPECT(roamer.first_watches);
    EXPECT(roamer.second_watches);
    pirn_runtime_unref(spawn.runtime);
}

/* Goal: a runtime without the report touches no disposition.
 * Method: compare before, while it runs and after. */
TEST(overflow_report_off_touches_no_disposition)
{
    struct dispositions before = dispositions_now();
    pirn_runtime *rt = new_runtime(false);
    struct dispositions during = dispositions_now();

    EXPECT(same(&before, &during));
    pirn_runtime_unref(rt);
    during = dispositions_now();
    EXPECT(same(&before, &during));
}

static int other_signals_are_as_before(void *arg)
{
    const struct sigaction *before = arg;
    struct sigaction now;

    for (int i = 1; i < 32; i++) {
        if (i == SIGSEGV || i == SIGBUS || sigaction(i, NULL, &now) != 0)
            continue;
        EXPECT(now.sa_handler == before[i].sa_handler);
        EXPECT_EQ(before[i].sa_flags, now.sa_flags);
    }
    return 0;
}

/* Goal: the report takes SIGSEGV and SIGBUS only, while at least one runtime
 * wants it, and then leaves everything as it was.
 * Method: two runtimes that end one after the other; a whole run. */
TEST(overflow_report_restores_what_was_there)
{
    struct dispositions before = dispositions_now();
    struct dispositions now;
    struct sigaction all[32];
    pirn_runtime *first = new_runtime(true);
    pirn_runtime *second = new_runtime(true);
    /* No threads: children that start some follow. */
    const pirn_runtime_options here = {.overflow_report = true};

    now = dispositions_now();
    EXPECT(!same(&before, &now));
    pirn_runtime_unref(first);
    now = dispositions_now();
    EXPECT(!same(&before, &now));
    EXPECT_EQ(0, pirn_runtime_shutdown(second, PIRN_EXPIRED, NULL));
    now = dispositions_now();
    EXPECT(same(&before, &now));
    pirn_runtime_unref(second);

    for (int i = 1; i < 32; i++)
        (void)sigaction(i, NULL, &all[i]);
    EXPECT_EQ(0, pirn_run_with(other_signals_are_as_before, all, &here, NULL));
    now = dispositions_now();
    EXPECT(same(&before, &now));
}

static void ignore_signal(int number)
{
    (void)number;
}

static void ignore_informed(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    (void)context;
}

/* Goal: who installs a handler after us keeps it.
 * Method: install one of each kind while a runtime watches. */
TEST(overflow_report_leaves_later_handlers_alone)
{
    struct dispositions before = dispositions_now();
    struct sigaction plain = {.sa_handler = ignore_signal};
    struct sigaction informed = {.sa_sigaction = ignore_informed,
                                 .sa_flags = SA_SIGINFO};
    pirn_runtime *rt = new_runtime(true);
    struct dispositions now;

    EXPECT_EQ(0, sigaction(SIGSEGV, &informed, NULL));
    EXPECT_EQ(0, sigaction(SIGBUS, &plain, NULL));
    pirn_runtime_unref(rt);
    now = dispositions_now();
    EXPECT(now.of[0].sa_sigaction == ignore_informed);
    EXPECT(now.of[1].sa_handler == ignore_signal);
    for (int i = 0; i < 2; i++)
        EXPECT_EQ(0, sigaction(watched[i], &before.of[i], NULL));
    struct dispositions after = dispositions_now();

    EXPECT(same(&before, &after));
}

/* Chaining: other faults, in a fiber and outside, go to who was there. */

static void say(const char *words)
{
    if (write(STDERR_FILENO, words, strlen(words)) < 0)
        return;
}

static void plain_handler(int number)
{
    say(number == SIGSEGV ? "plain handler\n" : "wrong signal\n");
    abort();
}

static void informed_handler(int number, siginfo_t *info, void *context)
{
    (void)number;
    say(info->si_addr == NULL && context != NULL ? "informed handler\n"
                                                 : "wrong address\n");
    abort();
}

__attribute__((no_sanitize("address", "undefined", "thread"))) static int
read_nowhere(void *arg)
{
    int *volatile nowhere = NULL;

    (void)arg;
    return *nowhere;
}

static void fault_with_plain_handler(void *arg)
{
    struct sigaction action = {.sa_handler = plain_handler};

    (void)sigaction(SIGSEGV, &action, NULL);
    (void)!pirn_run(read_nowhere, arg);
}

static void fault_with_informed_handler(void *arg)
{
    struct sigaction action = {.sa_sigaction = informed_handler,
                               .sa_flags = SA_SIGINFO};

    (void)sigaction(SIGSEGV, &action, NULL);
    (void)!pirn_run(read_nowhere, arg);
}

static void fault_without_handler(void *arg)
{
    set_default();
    (void)!pirn_run(read_nowhere, arg);
}

/* Goal: a fault that is no overrun goes to the handler that was there, with all
 * it was told; without one the process dies of it as it always would.
 * Method: a NULL pointer read in a fiber, under three dispositions. */
TEST(overflow_report_passes_other_faults_on)
{
    EXPECT_DEATH(fault_with_plain_handler, NULL, "plain handler");
    EXPECT_DEATH(fault_with_informed_handler, NULL, "informed handler");
    EXPECT_DEATH_BY(SIGSEGV, fault_without_handler, NULL, "");
}

static int raise_segv(void *arg)
{
    (void)arg;
    (void)raise(SIGSEGV);
    say("survived\n");
    return 0;
}

static void raise_without_handler(void *arg)
{
    set_default();
    (void)!pirn_run(raise_segv, arg);
}

static void raise_with_plain_handler(void *arg)
{
    struct sigaction action = {.sa_handler = plain_handler};

    (void)sigaction(SIGSEGV, &action, NULL);
    (void)!pirn_run(raise_segv, arg);
}

static void raise_when_ignored(void *arg)
{
    struct sigaction action = {.sa_handler = SIG_IGN};

    (void)sigaction(SIGSEGV, &action, NULL);
    if (pirn_run(raise_segv, arg) == 0)
        abort();
}

/* Goal: a signal that somebody sent has the effect it would have without us.
 * Method: raise it by default, with a handler, and ignored. */
TEST(overflow_report_passes_sent_signals_on)
{
    EXPECT_DEATH_BY(SIGSEGV, raise_without_handler, NULL, "");
    EXPECT_DEATH(raise_with_plain_handler, NULL, "plain handler");
    EXPECT_DEATH(raise_when_ignored, NULL, "survived");
}
