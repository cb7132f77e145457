/* SPDX-License-Identifier: MIT */
/* src/sys/switch.c - contexts, and their announcements to the sanitizers.
 *
 * The order around one switch, where sanitizers watch:
 *
 *     old stack   ASan start_switch (where we go), TSan switch_to_fiber, raw
 *     new stack   ASan finish_switch (where we came from)
 *
 * Between start and finish no instrumented code may run, so those functions
 * are not instrumented.  ASan tells the arriving side the bounds of the stack
 * that was left; that is how a thread's own stack becomes known.
 */
#include "base/assert.h"
#include "sys/switch_frame.h"

#if PIRN__WITH_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#if PIRN__WITH_TSAN
#include <sanitizer/tsan_interface.h>
#endif

_Static_assert(offsetof(struct pirn__context, sp) == 0,
               "the assembly stores the stack pointer at the start");
#if PIRN__SWITCH_IN_PLACE
_Static_assert(offsetof(struct pirn__host, sp) == 0 &&
                   offsetof(struct pirn__host, frame) == 8 &&
                   offsetof(struct pirn__host, address) == 16,
               "the assembly knows where a host keeps what it goes on with");
#endif

enum { STACK_ALIGN = 16 };

#define UNWATCHED __attribute__((no_sanitize("address", "thread")))

/* TSan counts calls in and out for each fiber, even in functions that it does
 * not watch, so the switch must not happen inside a call of its own: the call
 * would be counted on one fiber and the return on the other. */
#define TSAN_INLINE UNWATCHED __attribute__((always_inline))

void pirn__switch_fp(struct pirn__context *from, struct pirn__context *to)
{
    uint64_t now = pirn__switch_fp_read();
    uint64_t thread_words = now;

    if (from->fp_controls) {
        from->fp_own = now;
        thread_words = from->fp_thread;
    }
    if (to->fp_controls) {
        to->fp_thread = thread_words;
        pirn__switch_fp_write(to->fp_own);
    } else {
        pirn__switch_fp_write(thread_words);
    }
}

#if PIRN__SWITCH_IN_PLACE

int pirn__switch_fp_return(struct pirn__context *from, struct pirn__host *host,
                           int word)
{
    pirn__switch_fp(from, &host->context);
    return pirn__switch_return(from, host, word);
}

#endif

static void *aligned_top(void *stack_base, size_t stack_size)
{
    uintptr_t top = (uintptr_t)stack_base + stack_size;

    return (char *)stack_base + (stack_size - top % STACK_ALIGN);
}

#if PIRN__WATCH_SWITCH

#if PIRN__WITH_ASAN

UNWATCHED static void asan_leave(void **fake_stack, struct pirn__context *to)
{
    __sanitizer_start_switch_fiber(fake_stack, to->asan_bottom, to->asan_size);
}

UNWATCHED static void asan_arrive(struct pirn__context *self,
                                  struct pirn__context *previous)
{
    __sanitizer_finish_switch_fiber(self->fake_stack, &previous->asan_bottom,
                                    &previous->asan_size);
}

#else

UNWATCHED static void asan_leave(void **fake_stack, struct pirn__context *to)
{
    (void)fake_stack;
    (void)to;
}

UNWATCHED static void asan_arrive(struct pirn__context *self,
                                  struct pirn__context *previous)
{
    (void)self;
    (void)previous;
}

#endif

#if PIRN__WITH_TSAN

static void *tsan_create(void)
{
    return __tsan_create_fiber(0);
}

TSAN_INLINE static inline void tsan_leave(struct pirn__context *from,
                                          struct pirn__context *to)
{
    from->tsan_fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to->tsan_fiber, 0);
}

static void tsan_destroy(void *fiber)
{
    __tsan_destroy_fiber(fiber);
}

#else

static void *tsan_create(void)
{
    return NULL;
}

TSAN_INLINE static inline void tsan_leave(struct pirn__context *from,
                                          struct pirn__context *to)
{
    (void)from;
    (void)to;
}

static void tsan_destroy(void *fiber)
{
    (void)fiber;
}

#endif

/* The first code on a new stack. */
UNWATCHED static void start_watched(void *arg)
{
    struct pirn__context *self = arg;

    asan_arrive(self, self->previous);
    self->fn(self->arg);
}

UNWATCHED int pirn__context_pass(struct pirn__context *from,
                                 struct pirn__context *to, int word)
{
    if (from->fp_controls || to->fp_controls)
        pirn__switch_fp(from, to);
    to->previous = from;
    asan_leave(&from->fake_stack, to);
    tsan_leave(from, to);
    word = pirn__switch_raw(from, to, word);
    asan_arrive(from, from->previous);
    return word;
}

UNWATCHED void pirn__context_switch(struct pirn__context *from,
                                    struct pirn__context *to)
{
    (void)pirn__context_pass(from, to, 0);
}

UNWATCHED void pirn__context_exit_with(struct pirn__context *from,
                                       struct pirn__context *to, int word)
{
    if (from->fp_controls || to->fp_controls)
        pirn__switch_fp(from, to);
    to->previous = from;
    /* NULL has ASan free the fake frames of a stack that ends. */
    asan_leave(NULL, to);
    tsan_leave(from, to);
    (void)pirn__switch_raw(from, to, word);
    __builtin_unreachable();
}

void pirn__context_make(struct pirn__context *context, void *stack_base,
                        size_t stack_size, pirn__context_fn *fn, void *arg,
                        bool fp_controls)
{
    *context = (struct pirn__context){
        .sp = pirn__switch_make(aligned_top(stack_base, stack_size),
                                start_watched, context),
        .stack_base = stack_base,
        .fp_own = fp_controls ? pirn__switch_fp_read() : 0,
        .fp_controls = fp_controls,
        .asan_bottom = stack_base,
        .asan_size = stack_size,
        .tsan_fiber = tsan_create(),
        .fn = fn,
        .arg = arg,
    };
}

void pirn__context_dispose(struct pirn__context *context)
{
    if (context->stack_base != NULL && context->tsan_fiber != NULL)
        tsan_destroy(context->tsan_fiber);
    context->tsan_fiber = NULL;
}

#else

void pirn__context_make(struct pirn__context *context, void *stack_base,
                        size_t stack_size, pirn__context_fn *fn, void *arg,
                        bool fp_controls)
{
    context->sp = pirn__switch_make(aligned_top(stack_base, stack_size), fn, arg);
    context->fp_controls = fp_controls;
    if (fp_controls)
        context->fp_own = pirn__switch_fp_read();
}

void pirn__context_dispose(struct pirn__context *context)
{
    (void)context;
}

#endif
