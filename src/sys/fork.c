/* SPDX-License-Identifier: MIT */
/* src/sys/fork.c - how a child process learns that it is one.
 *
 * The chunk directory is the one lock-guarded thing that a runtime made in the
 * child shares with those of the parent, so it crosses the fork unlocked.
 */
#include "sys/fork.h"

#include <pthread.h>

#include "base/atomic.h"
#include "base/directory.h"

static PIRN_ATOMIC(uint32_t) generation;

uint32_t pirn__fork_generation(void)
{
    /* relaxed: changes only while a child has one thread, which reads its own
     * write. */
    return pirn__load(&generation, relaxed);
}

static void enter_child(void)
{
    pirn__directory_fork_child();
    /* relaxed: the child has no other thread yet. */
    pirn__add(&generation, 1, relaxed);
}

/* A refusal for want of memory leaves forks unseen; there is nobody to tell. */
__attribute__((constructor(101))) static void watch_forks(void)
{
    (void)pthread_atfork(pirn__directory_fork_prepare,
                         pirn__directory_fork_parent, enter_child);
}
