/* SPDX-License-Identifier: MIT */
/* tests/regress/sent_fault.c - signals of faults where the overflow report
 * watches for them. */
#include <pirn/blocking.h>
#include <pirn/runtime.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/test.h"

static void send_fault(void *arg)
{
    const pirn_runtime_options options = {.overflow_report = true};
    const struct sigaction fatal = {.sa_handler = SIG_DFL};
    pirn_runtime *rt;

    (void)arg;
    sigaction(SIGSEGV, &fatal, NULL);
    if (pirn_runtime_new(&options, &rt) == 0)
        raise(SIGSEGV);
    _exit(0);
}

/* Goal: a SIGSEGV that somebody sends ends the process, as it does without us;
 * it does not come again by itself as a fault does.
 * Method: a child process. */
TEST(fault_sent_by_hand_is_fatal)
{
    EXPECT_DEATH_BY(SIGSEGV, send_fault, NULL, "");
}

static void say_and_leave(int signal_number)
{
    static const char words[] = "the program's own handler\n";

    (void)signal_number;
    if (write(STDERR_FILENO, words, sizeof words - 1) > 0)
        abort();
    _exit(0);
}

static int touch(void *arg)
{
    *(volatile int *)arg = 1;
    return 0;
}

static void fault_in_a_job(void *arg)
{
    const struct sigaction own = {.sa_handler = say_and_leave};
    pirn_spawn_options options = {.name = "faulty"};
    void *page = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pirn_runtime *rt;
    pirn_job *job;
    int outcome;

    (void)arg;
    sigaction(SIGSEGV, &own, NULL);
    if (pirn_runtime_new(NULL, &rt) != 0)
        _exit(0);
    options.runtime = rt;
    if (pirn_spawn_blocking(touch, page, &options, &job) == 0)
        (void)!pirn_job_join(job, PIRN_NEVER, &outcome);
    _exit(0);
}

/* Goal: a fault on a thread of the blocking pool reaches the program's handler.
 * A thread that blocks the signal dies of it unheard.
 * Method: a child process. */
TEST(fault_in_a_job_reaches_the_programs_handler)
{
    EXPECT_DEATH(fault_in_a_job, NULL, "the program's own handler");
}
