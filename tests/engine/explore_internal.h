/* SPDX-License-Identifier: MIT */
/* tests/engine/explore_internal.h - what the parts of the explorer share.
 *
 *   explore.c           the search: choices, threads, schedules, findings
 *   explore_report.c    findings and traces as text
 *   explore_memory.c    atomics: store histories, locks
 *   explore_plain.c     plain data: who touched what when, freed memory
 *   explore_heap.c      the allocators
 *   explore_snapshot.c  the program's variables, put back each time
 *   explore_sys.c       the controlled system table and thread-local
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
    uintptr_t address;
    size_t size;
    bool write;
    bool seq_cst; /* two such loads of one place do not commute: see dependent()
                     in explore.c */
    bool lock;    /* it can only be made while the lock is free */
    bool time;    /* it may move the clock, which all may read */
    struct explore_place place;
};

/* Why a thread cannot run. */
enum explore_block {
    EXPLORE_RUNNABLE,
    EXPLORE_BLOCK_WAIT, /* until woken through an address, or a time */
    EXPLORE_BLOCK_JOIN, /* until all other threads are done */
    EXPLORE_DONE,
};

struct explore_event {
    uint8_t thread;
    const char *what;
    const void *address;
    uint64_t value;
    struct explore_place place;
};

/* ---- The search. ---- */

/* True while an exploration runs and this code is inside it. */
bool explore_active(void);

unsigned explore_thread_count(void);

/* True while only the body runs: what it does then happens before all that
 * comes, and after all that was. */
bool explore_alone(void);

/* Announce an operation: other threads may run before it. */
void explore_point(const struct explore_op *op);

/* A lock is given back: no choice, for what another thread could do just
 * before it can also do just after. */
void explore_released(const void *address, size_t size);

/* The clock of the running thread. */
struct explore_clock *explore_my_clock(void);

/* Note what an operation did, for the trace. */
void explore_trace(const char *what, const void *address, uint64_t value,
                   struct explore_place place);

/* End this execution with a finding; does not return. */
__attribute__((noreturn)) void explore_fail(enum explore_finding finding,
                                            const char *text,
                                            struct explore_place place);

/* Block the running thread until explore_unblock(), or until the time, which
 * comes when nobody else can go on.  True if it was the time. */
bool explore_wait(const void *address, uint64_t until_ns,
                  struct explore_place place);
/* Make up to `count` threads that wait on `address` runnable. */
void explore_unblock(const void *address, int count);

/* The time, and whether a wait until then ends before anything else happens:
 * one of the execution's early timeouts, as a choice. */
uint64_t explore_now(void);
bool explore_may_time_out(uint64_t until_ns);
bool explore_times_out(uint64_t until_ns);

/* Take one of the execution's spurious failures, stale values, refused
 * threads, as a choice. */
bool explore_spurious(void);
bool explore_refused(void);
bool explore_may_be_stale(void);
void explore_was_stale(void);

/* The thread-local of the running virtual thread. */
void **explore_tls(void);

/* ---- Reports. ---- */

void explore_print_place(struct explore_place place);
void explore_print_event(const struct explore_event *event);

/* ---- Memory. ---- */

void explore_memory_reset(void);
void explore_memory_keep(void);
bool explore_lock_is_held(const void *address);

/* ---- Plain data. ---- */

enum explore_access {
    EXPLORE_PLAIN_READ,
    EXPLORE_PLAIN_WRITE, /* and the first content, and the end */
    EXPLORE_ATOMIC,
};

void explore_plain_reset(void);
void explore_plain_keep(void);
void explore_touch(const void *address, size_t size, enum explore_access how,
                   struct explore_place place);

/* Memory in nobody's use; a touch is a finding. */
void explore_bury(const void *address, size_t size);
void explore_dig_up(const void *address, size_t size);
void explore_check_alive(const void *address, size_t size,
                         struct explore_place place);

/* ---- The heap. ---- */

enum { EXPLORE_HEAP_SIZE = 2 << 20, EXPLORE_HEAP_UNIT = 8 };

extern char explore_heap_memory[EXPLORE_HEAP_SIZE];

void explore_heap_reset(void);
void explore_heap_keep(void);
/* How many pieces are still allocated. */
size_t explore_heap_out(void);

/* ---- The program's variables. ---- */

/* Leave this one alone; before the first explore_snapshot_take(). */
void explore_snapshot_keep(void *start, size_t size);
void explore_snapshot_take(void);
void explore_snapshot_restore(void);

/* ---- The system. ---- */

void explore_sys_reset(void);
void explore_sys_install(void);
void explore_sys_remove(void);
/* When the next armed timer is due, or UINT64_MAX; fire those that are. */
uint64_t explore_sys_next_timer(void);
void explore_sys_fire_timers(void);
/* What the library wants done at the end of a thread. */
void explore_tls_end(void);

#endif /* PIRN_TESTS_ENGINE_EXPLORE_INTERNAL_H */
