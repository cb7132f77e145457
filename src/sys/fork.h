/* SPDX-License-Identifier: MIT */
/* src/sys/fork.h - how a child process learns that it is one. */
#ifndef PIRN_SYS_FORK_H
#define PIRN_SYS_FORK_H

#include <pirn/link.h>

#include "base/atomic.h"

typedef PIRN_ATOMIC(uint32_t) pirn__fork_counter;
extern pirn__fork_counter pirn__fork_count;

/* A number that differs from what the parent process reads, for each fork(2)
 * on the way down.  A runtime that remembers another number belongs to an
 * ancestor.  One load; any thread.  A bare clone(2) is not seen. */
static inline uint32_t pirn__fork_generation(void)
{
    /* relaxed: changes only while a child has one thread, which reads its own
     * write. */
    return pirn__load(&pirn__fork_count, relaxed);
}

/* Have `lock`, which belongs to the process and not to a runtime, free in every
 * child: nobody is inside while the process forks.  From a constructor, for a
 * few; they are never held together. */
void pirn__fork_guard(pirn_lock *lock);

#endif /* PIRN_SYS_FORK_H */
