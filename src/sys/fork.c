/* SPDX-License-Identifier: MIT */
/* src/sys/fork.c - how a child process learns that it is one.
 *
 * What a runtime made in the child shares with those of the parent are the chunk
 * directory and the few things whose locks are guarded here: they cross the fork
 * unlocked.  All other locks belong to a runtime, and a child leaves those of
 * its parent alone.
 */
#include "sys/fork.h"

#include <pthread.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/directory.h"
#include "base/lock.h"

enum { FORK_GUARDS = 8 };

pirn__fork_counter pirn__fork_count;
static pirn_lock *guarded[FORK_GUARDS]; /* constant after the constructors */
static uint32_t guarded_count;

void pirn__fork_guard(pirn_lock *lock)
{
    PIRN_ASSERT(guarded_count < FORK_GUARDS);
    guarded[guarded_count++] = lock;
}

static void prepare(void)
{
    for (uint32_t i = 0; i < guarded_count; i++)
        pirn__lock(guarded[i]);
    pirn__directory_fork_prepare();
}

static void stay_parent(void)
{
    pirn__directory_fork_parent();
    for (uint32_t i = 0; i < guarded_count; i++)
        pirn__unlock(guarded[i]);
}

static void enter_child(void)
{
    pirn__directory_fork_child();
    for (uint32_t i = 0; i < guarded_count; i++)
        pirn__lock_init(guarded[i]);
    /* relaxed: the child has no other thread yet. */
    pirn__add(&pirn__fork_count, 1, relaxed);
}

/* A refusal for want of memory leaves forks unseen; there is nobody to tell. */
__attribute__((constructor(101))) static void watch_forks(void)
{
    (void)pthread_atfork(prepare, stay_parent, enter_child);
}
