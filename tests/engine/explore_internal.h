/* SPDX-License-Identifier: MIT */
/* tests/engine/explore_internal.h - what the parts of the explorer share.
 *
 *   explore.c         the search: choices, threads, schedules, findings
 *   explore_memory.c  store histories, clocks, cells, the heap
 *   explore_sys.c     the controlled system table and thread-local
 */
#ifndef PIRN_TESTS_ENGINE_EXPLORE_INTERNAL_H
#define PIRN_TESTS_ENGINE_EXPLORE_INTERNAL_H

#include "engine/explore.h"

enum { EXPLORE_THREADS = 5 };

/* What a thread has seen of each thread's operations. */
struct explore_clock {
    uint16_t at[EXPLORE_THREADS];
};

static inline void explore_clock_join(struct explore_clock *into,
                                      const struct explore_clock *from)
{
    for (int i = 0; i < EXPLORE_THREADS; i++) {
        if (into->at[i] < from->at[i])
            into->at[i] = from->at[i];
    }
}

/* An operation that a thread is about to make, for the sleep sets. */
struct explore_op {
    const char *what;
    uintptr_t address;
    size_t size;
    bool write;
    struct explore_place place;
};

/* Why a thread cannot run. */
enum explore_block {
    EXPLORE_RUNNABLE,
    EXPLORE_BLOCK_LOCK, /* until the lock at `address` is free */
    EXPLORE_BLOCK_WAIT, /* until woken through `address` */
    EXPLORE_BLOCK_JOIN, /* until all other threads are done */
    EXPLORE_DONE,
};

/* True while an exploration runs and this code is inside it. */
bool explore_active(void);

/* Announce an operation: other threads may run before it. */
void explore_point(const struct explore_op *op);

/* The clock of the running thread. */
struct explore_clock *explore_my_clock(void);

/* Note what an operation did, for the trace. */
void explore_trace(const char *what, const void *address, uint64_t value,
                   struct explore_place place);

/* End this execution with a finding; does not return. */
__attribute__((noreturn)) void explore_fail(enum explore_finding finding,
                                            const char *text,
                                            struct explore_place place);

/* Block the running thread; returns when it runs again. */
void explore_block(enum explore_block why, const void *address,
                   struct explore_place place);
/* Make up to `count` threads that wait on `address` runnable; how many. */
int explore_unblock(enum explore_block why, const void *address, int count);

/* Take one of the execution's spurious failures, as a choice. */
bool explore_spurious(void);

/* The thread-local of the running virtual thread. */
void **explore_tls(void);

/* Memory: forget everything; count what is still allocated. */
void explore_memory_reset(void);
size_t explore_heap_out(void);
/* A finding if the address lies in freed memory. */
void explore_check_alive(const void *address, struct explore_place place);

/* System: forget every descriptor; install and remove the table. */
void explore_sys_reset(void);
void explore_sys_install(void);
void explore_sys_remove(void);

#endif /* PIRN_TESTS_ENGINE_EXPLORE_INTERNAL_H */
