/* SPDX-License-Identifier: MIT */
/* src/sys/switch_ucontext.c - the context switch of the C library.
 *
 * For processors that have no assembly of ours, or on request.  It costs two
 * system calls for the signal mask and keeps the floating-point environment
 * with every context, asked for or not.
 *
 * A suspended context's `sp` points to its record: on its own stack, at the
 * top for one that has not started yet.
 */
#define _GNU_SOURCE

#include <ucontext.h>

#include "base/assert.h"
#include "sys/switch_frame.h"

/* makecontext wants to know the room below the record but uses only its upper
 * end; every stack has more than this. */
enum { STACK_HINT = 4096 };

struct record {
    ucontext_t machine;
    int word; /* written by whoever continues it */
    pirn__context_fn *start;
    void *arg;
};

/* What cannot be fetched or continued is a broken stack. */
#define MUST(call) PIRN_ASSERT((call) == 0)

int pirn__switch_raw(struct pirn__context *from, struct pirn__context *to,
                     int word)
{
    struct record here = { .start = NULL };
    struct record *there = to->sp;

    from->sp = &here;
    there->word = word;
    MUST(swapcontext(&here.machine, &there->machine));
    return here.word;
}

/* makecontext passes ints only, so the pointer comes in halves. */
static void start_record(unsigned high, unsigned low)
{
    uint64_t bits = (uint64_t)high << 32 | low;
    struct record *record = (struct record *)(uintptr_t)bits;

    record->start(record->arg);
    PIRN_ASSERT(!"a context returned from its entry");
}

void *pirn__switch_make(void *top, pirn__context_fn *start, void *arg)
{
    struct record *record = (struct record *)(void *)((char *)top -
                                                      sizeof *record);
    uint64_t bits = (uint64_t)(uintptr_t)record;

    record->start = start;
    record->arg = arg;
    MUST(getcontext(&record->machine));
    record->machine.uc_stack.ss_sp = (char *)record - STACK_HINT;
    record->machine.uc_stack.ss_size = STACK_HINT;
    record->machine.uc_link = NULL;
    makecontext(&record->machine, (void (*)(void))start_record, 2,
                (unsigned)(bits >> 32), (unsigned)bits);
    return record;
}

uint64_t pirn__switch_fp_read(void)
{
    return 0;
}

void pirn__switch_fp_write(uint64_t words)
{
    (void)words;
}
