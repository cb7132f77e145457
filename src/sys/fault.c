/* SPDX-License-Identifier: MIT */
/* src/sys/fault.c - see fault.h. */
#define _GNU_SOURCE
#include "sys/fault.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/lock.h"
#include "sys/fork.h"

enum { FAULT_STACK_SIZE = 64 * 1024, FAULT_SIGNALS = 2 };

static const int signals[FAULT_SIGNALS] = {SIGSEGV, SIGBUS};

static pirn_lock lock;
static uint32_t users;                          /* lock */
static struct sigaction before[FAULT_SIGNALS];  /* constant while users > 0 */
static pirn__explain_fn *explain_fault;

static const struct sigaction *action_before(int signal_number)
{
    return &before[signal_number == signals[0] ? 0 : 1];
}

/* Let whoever was there before have it. */
static void chain(int signal_number, siginfo_t *info, void *context)
{
    const struct sigaction *old = action_before(signal_number);

    if ((old->sa_flags & SA_SIGINFO) != 0) {
        old->sa_sigaction(signal_number, info, context);
        return;
    }
    if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
        old->sa_handler(signal_number);
        return;
    }
    /* The fault repeats after we return, and then the old action applies.  What
     * somebody has sent does not repeat. */
    sigaction(signal_number, old, NULL);
    if (info->si_code <= 0)
        raise(signal_number);
}

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    char words[512];

    if (info->si_code > 0 &&
        explain_fault(info->si_addr, words, sizeof words)) {
        struct sigaction fatal = {.sa_handler = SIG_DFL};

        if (write(2, words, strlen(words)) < 0)
            words[0] = '\0'; /* Nothing else can be done about it. */
        sigaction(signal_number, &fatal, NULL);
        return;
    }
    chain(signal_number, info, context);
}

void pirn__fault_watch(pirn__explain_fn *explain)
{
    struct sigaction action = {.sa_sigaction = on_fault,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK |
                                           SA_NODEFER};

    pirn__lock(&lock);
    if (users++ == 0) {
        explain_fault = explain;
        sigemptyset(&action.sa_mask);
        for (int i = 0; i < FAULT_SIGNALS; i++)
            sigaction(signals[i], &action, &before[i]);
    }
    pirn__unlock(&lock);
}

void pirn__fault_unwatch(void)
{
    pirn__lock(&lock);
    if (--users == 0) {
        for (int i = 0; i < FAULT_SIGNALS; i++) {
            struct sigaction now;

            /* Somebody who came after us keeps what he installed. */
            sigaction(signals[i], NULL, &now);
            if ((now.sa_flags & SA_SIGINFO) != 0 &&
                now.sa_sigaction == on_fault)
                sigaction(signals[i], &before[i], NULL);
        }
    }
    pirn__unlock(&lock);
}

static pthread_key_t stack_key;
static bool have_stack_key;

static void stack_release(void *base)
{
    stack_t off = {.ss_flags = SS_DISABLE};

    sigaltstack(&off, NULL);
    munmap(base, FAULT_STACK_SIZE);
}

__attribute__((constructor)) static void prepare_process(void)
{
    pirn__fork_guard(&lock);
    have_stack_key = pthread_key_create(&stack_key, stack_release) == 0;
}

void pirn__fault_watch_thread(void)
{
    stack_t now;
    stack_t stack = {.ss_size = FAULT_STACK_SIZE};

    if (!have_stack_key || sigaltstack(NULL, &now) != 0 ||
        (now.ss_flags & SS_DISABLE) == 0)
        return;
    stack.ss_sp = mmap(NULL, FAULT_STACK_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack.ss_sp == MAP_FAILED)
        return;
    if (sigaltstack(&stack, NULL) != 0) {
        munmap(stack.ss_sp, FAULT_STACK_SIZE);
        return;
    }
    /* Without the key it stays when the thread ends. */
    (void)pthread_setspecific(stack_key, stack.ss_sp);
}
