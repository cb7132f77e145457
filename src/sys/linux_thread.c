/* SPDX-License-Identifier: MIT */
/* src/sys/linux_thread.c - time, chance, futexes and threads.
 *
 * Futexes are private to the process and take absolute monotonic times, so a
 * wait that is restarted needs no arithmetic.
 *
 * The constructor at the end gives base its way of waiting for a lock before
 * any user code can run, so that locks need no initialisation of the library.
 */
#define _GNU_SOURCE

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/lock.h"
#include "sys/linux.h"

/* The C libraries differ in their defaults (8 MiB, 128 KiB); ours is never
 * smaller than this, unless the caller says so. */
enum { STACK_MIN_BYTES = 256 * 1024, NAME_MAX_BYTES = 15 };

enum {
    TURN_NS = 500 * 1000,
    RESET_ON_FORK = 1, /* SCHED_FLAG_RESET_ON_FORK: children have usual turns */
};

/* What a new thread needs to know.  It stands on the starter's stack until the
 * thread has copied it and set `taken`. */
struct start {
    void (*fn)(void *arg);
    void *arg;
    char name[NAME_MAX_BYTES + 1];
    PIRN_ATOMIC(uint32_t) taken;
};

uint64_t pirn__linux_clock_ns(void)
{
    struct timespec now;
    uint64_t ns;

    clock_gettime(CLOCK_MONOTONIC, &now);
    ns = (uint64_t)now.tv_sec * PIRN__NS_PER_S + (uint64_t)now.tv_nsec;
    return ns == 0 ? 1 : ns;
}

uint64_t pirn__linux_remaining_ns(pirn_deadline deadline)
{
    uint64_t now = pirn__linux_clock_ns();

    return deadline.ns <= now ? 0 : deadline.ns - now;
}

/* For kernels and sandboxes that refuse getrandom: the bytes that the kernel
 * gave the process at its start, made different each time by the clock. */
static uint64_t random_without_kernel(void)
{
    const void *seed = (const void *)(uintptr_t)getauxval(AT_RANDOM);
    uint64_t value = 0;

    if (seed != NULL)
        memcpy(&value, seed, sizeof value);
    value ^= pirn__linux_clock_ns();
    return value * UINT64_C(0x9e3779b97f4a7c15);
}

uint64_t pirn__linux_random(void)
{
    uint64_t value;
    ssize_t n;

    do {
        n = getrandom(&value, sizeof value, 0);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof value ? value : random_without_kernel();
}

int pirn__linux_futex_wait(uint32_t *word, uint32_t expected,
                           pirn_deadline deadline)
{
    struct timespec until = pirn__linux_timespec(deadline.ns);
    bool endless = deadline.ns == PIRN_NEVER.ns;
    long rc = syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected,
                      endless ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);

    return rc < 0 && errno == ETIMEDOUT ? -ETIMEDOUT : 0;
}

void pirn__linux_futex_wake(uint32_t *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

/* The kernel's struct sched_attr in its first version, of which the C library
 * knows nothing. */
struct scheduling {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t turn_ns; /* from Linux 6.12 on also of a usual thread; before, 0 */
    uint64_t deadline_ns;
    uint64_t period_ns;
};

/* Of two threads the one with the earlier deadline runs, and the deadline is the
 * end of a turn.  So with turns of one length a thread that is woken often waits
 * until the one that woke it sleeps.  The kernel's own are 0.7 ms or longer. */
void pirn__linux_thread_shorten_turns(void)
{
    struct scheduling now = {.size = sizeof now};

    if (syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) < 0 ||
        now.policy != SCHED_OTHER || now.turn_ns <= TURN_NS)
        return;
    now.turn_ns = TURN_NS;
    /* Nor would a child keep a nice value below 0. */
    if (now.nice >= 0)
        now.flags |= RESET_ON_FORK;
    (void)syscall(SYS_sched_setattr, 0, &now, 0);
}

static void *run_thread(void *argument)
{
    struct start *start = argument;
    void (*fn)(void *arg) = start->fn;
    void *arg = start->arg;

    pthread_setname_np(pthread_self(), start->name);
    /* release [thread.taken]: our reads of *start come before the starter
     * leaves the frame that it lives in. */
    pirn__store(&start->taken, 1, release);
    /* The starter may be gone by now.  Waking an address that nobody waits on
     * does nothing, and every futex wait of ours bears a wake for no reason. */
    pirn__linux_futex_wake(&start->taken.v_, 1);
    fn(arg);
    return NULL;
}

static size_t default_stack_size(const pthread_attr_t *attributes)
{
    size_t size = 0;

    pthread_attr_getstacksize(attributes, &size);
    return size < STACK_MIN_BYTES ? STACK_MIN_BYTES : size;
}

static int make_attributes(pthread_attr_t *attributes, size_t stack_size)
{
    int error = pthread_attr_init(attributes);

    if (error != 0)
        return -error;
    if (stack_size == 0)
        stack_size = default_stack_size(attributes);
    pthread_attr_setdetachstate(attributes, PTHREAD_CREATE_DETACHED);
    error = pthread_attr_setstacksize(attributes, stack_size);
    if (error != 0)
        pthread_attr_destroy(attributes);
    return -error;
}

/* Everything but faults: the kernel kills a thread that blocks its own, past
 * every handler. */
static void fill_blocked(sigset_t *set)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP,
                                 SIGSYS};

    sigfillset(set);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(set, faults[i]);
}

int pirn__linux_thread_start(const char *name, size_t stack_size,
                             void (*fn)(void *arg), void *arg)
{
    struct start start = { .fn = fn, .arg = arg };
    pthread_attr_t attributes;
    sigset_t blocked, before;
    pthread_t thread;
    int error = make_attributes(&attributes, stack_size);

    if (error < 0)
        return error;
    strncpy(start.name, name, NAME_MAX_BYTES);
    /* A new thread inherits the mask, so no signal can slip in before the
     * thread blocks them itself. */
    fill_blocked(&blocked);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    error = pthread_create(&thread, &attributes, run_thread, &start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (error != 0)
        return -error;
    /* acquire [thread.taken]: the frame may go once the thread has read it.
     * Ends when the new thread has run its first lines. */
    while (pirn__load(&start.taken, acquire) == 0)
        pirn__linux_futex_wait(&start.taken.v_, 0, PIRN_NEVER);
    return 0;
}

/* Locks wait in the real kernel, whatever table is installed above. */
static void wait_for_lock(uint32_t *word, uint32_t expected)
{
    (void)pirn__linux_futex_wait(word, expected, PIRN_NEVER);
}

static void wake_lock_waiter(uint32_t *word)
{
    pirn__linux_futex_wake(word, 1);
}

/* The earliest priority that is not reserved: other constructors may already
 * use the library. */
__attribute__((constructor(101))) static void register_lock_ops(void)
{
    static const struct pirn__lock_ops ops = {
        .wait = wait_for_lock,
        .wake_one = wake_lock_waiter,
    };

    (void)pirn__lock_set_ops(&ops);
}
