/* SPDX-License-Identifier: MIT */
/* src/sys/switch.h - leave one stack and continue on another.
 *
 * The switch saves the callee-saved registers.  It ends in an indirect jump,
 * because a `ret` to another stack is mispredicted.  Each switch is announced
 * to ASan and TSan where they are compiled in; elsewhere it is the bare
 * assembly, inlined down to one call.
 *
 * Floating-point control words (rounding, masked exceptions) belong to the
 * thread: a context made without `fp_controls` finds those of whoever ran
 * before and leaves its changes behind.  A context made with `fp_controls` has
 * words of its own, at first those of its maker; while it runs the thread's
 * are kept aside, and come back with the next context that has none.
 *
 * A thread's own stack takes part through a context that stays on that thread
 * and never has `fp_controls`; see pirn__context_of_thread().
 */
#ifndef PIRN_SYS_SWITCH_H
#define PIRN_SYS_SWITCH_H

#include <pirn/base.h>

#include "sys/checker.h"

/* In the model build some files are instrumented, for the explorer and not for
 * TSan. */
#ifdef PIRN_MODEL
#define PIRN__WATCH_SWITCH 0
#else
#define PIRN__WATCH_SWITCH (PIRN__WITH_ASAN || PIRN__WITH_TSAN)
#endif

/* Not with the sixteen registers more of APX, which no list here names. */
#if defined(__x86_64__) && defined(__LP64__) && !defined(__APX_F__) && \
    !PIRN__WATCH_SWITCH && !defined(PIRN_PORTABLE_SWITCH)
#define PIRN__SWITCH_IN_PLACE 1
#else
#define PIRN__SWITCH_IN_PLACE 0
#endif

/* Code that is compiled with -fstack-clash-protection touches a large frame at
 * least once in so many bytes, so that it cannot step over a guard of this size.
 * Compilers for 64-bit ARM rely on guards of 64 KiB. */
#if defined(__aarch64__)
#define PIRN__STACK_PROBE_BYTES (64 << 10)
#else
#define PIRN__STACK_PROBE_BYTES (4 << 10)
#endif

/* The entry of a context; never returns, it leaves by pirn__context_exit(). */
typedef void pirn__context_fn(void *arg);

struct pirn__context {
    void *sp;         /* where the registers are saved while suspended; the
                         assembly knows that it comes first */
    bool fp_controls;
    uint64_t fp_own;    /* its control words while it is suspended */
    uint64_t fp_thread; /* the thread's, while it runs */
#if PIRN__WATCH_SWITCH
    void *stack_base; /* lowest usable byte; NULL for a thread's own stack */
    void *fake_stack;        /* ASan's, while suspended */
    const void *asan_bottom; /* bounds of the stack as ASan knows them */
    size_t asan_size;
    void *tsan_fiber;
    struct pirn__context *previous; /* who continued it */
    pirn__context_fn *fn; /* what the announcing entry goes on to call */
    void *arg;
#endif
};

/* Prepare a context for the thread's own stack. */
static inline void pirn__context_of_thread(struct pirn__context *context)
{
#if PIRN__WATCH_SWITCH
    *context = (struct pirn__context){0};
#else
    /* Once a poll: only what is read before it is written. */
    context->fp_controls = false;
#endif
}

/* Prepare `context` to start fn(arg) on [stack_base, stack_base + size). */
void pirn__context_make(struct pirn__context *context, void *stack_base,
                        size_t stack_size, pirn__context_fn *fn, void *arg,
                        bool fp_controls);

/* Release what the sanitizers hold for a context that is not running. */
void pirn__context_dispose(struct pirn__context *context);

/* The bare switch, one file per processor.  Returns `word` on the stack of
 * `to`. */
int pirn__switch_raw(struct pirn__context *from, struct pirn__context *to,
                     int word);

/* The floating-point half; only needed if one of the two has `fp_controls`. */
void pirn__switch_fp(struct pirn__context *from, struct pirn__context *to);

#if PIRN__WATCH_SWITCH

void pirn__context_switch(struct pirn__context *from, struct pirn__context *to);
int pirn__context_pass(struct pirn__context *from, struct pirn__context *to,
                       int word);
void pirn__context_exit_with(struct pirn__context *from,
                             struct pirn__context *to, int word);

#else

/* Save the caller in `from`, continue `to`. */
static inline void pirn__context_switch(struct pirn__context *from,
                                        struct pirn__context *to)
{
    if (__builtin_expect(from->fp_controls | to->fp_controls, 0))
        pirn__switch_fp(from, to);
    (void)pirn__switch_raw(from, to, 0);
}

/* The same, and hand a word over: what the switch that `to` once left by returns
 * there, unless it has not started yet. */
static inline int pirn__context_pass(struct pirn__context *from,
                                     struct pirn__context *to, int word)
{
    if (__builtin_expect(from->fp_controls | to->fp_controls, 0))
        pirn__switch_fp(from, to);
    return pirn__switch_raw(from, to, word);
}

/* The same, and `from` will never continue. */
static inline void pirn__context_exit_with(struct pirn__context *from,
                                           struct pirn__context *to, int word)
{
    (void)pirn__context_pass(from, to, word);
}

#endif

/* The same, to who does not look at the word. */
static inline void pirn__context_exit(struct pirn__context *from,
                                      struct pirn__context *to)
{
    pirn__context_exit_with(from, to, 0);
}

/* A loop that enters contexts, which return to it.
 *
 * The processor predicts each `ret` by a list of the calls that it has seen, and
 * knows nothing of stacks.  A loop that enters by a call, and contexts that leave by
 * another, leave the list askew, and every `ret` until the next wait is
 * mispredicted: 8 ns each on our machines.  Here the loop enters without a call,
 * and a context that is entered pops from the list what the one that left last has
 * pushed there.  Where those two wait in the same way, as tasks of a kind do, the
 * list is right all the way up. */
struct pirn__host {
    void *sp; /* the assembly knows these three */
    void *frame;
    void *address;
    struct pirn__context context; /* elsewhere */
};

#if PIRN__SWITCH_IN_PLACE

int pirn__switch_return(struct pirn__context *from, struct pirn__host *host,
                        int word);

#if defined(__AVX512F__)
#define PIRN__MORE_REGISTERS                                                   \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23",  \
        "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30",         \
        "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define PIRN__MORE_REGISTERS
#endif

/* Enter `to`; returns the word with which a context returns here.  Everything that
 * a call may change is lost, and what it may not, but for the stack and the frame
 * pointer, is the compiler's to keep. */
__attribute__((always_inline)) static inline int
pirn__host_enter(struct pirn__host *host, struct pirn__context *to)
{
    int word;

    if (__builtin_expect(to->fp_controls, 0))
        pirn__switch_fp(&host->context, to);
    __asm__ volatile("leaq 1f(%%rip), %%rax\n\t"
                     "jmp pirn__switch_enter\n"
                     "1:"
                     : "=&a"(word), "+D"(host), "+S"(to)
                     :
                     : "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12",
                       "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3",
                       "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                       "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory",
                       "cc" PIRN__MORE_REGISTERS);
    return word;
}

/* switch.c: the same for a context with `fp_controls`. */
int pirn__switch_fp_return(struct pirn__context *from, struct pirn__host *host,
                           int word);

/* Back to the host, with a word, until `from` is entered again.  Returns 0, so that
 * it may be the last act of a function, which is a jump. */
static inline int pirn__host_return(struct pirn__context *from,
                                    struct pirn__host *host, int word)
{
    if (__builtin_expect(from->fp_controls, 0))
        return pirn__switch_fp_return(from, host, word);
    return pirn__switch_return(from, host, word);
}

/* The same, and `from` will never continue. */
static inline void pirn__host_exit(struct pirn__context *from,
                                   struct pirn__host *host, int word)
{
    (void)pirn__host_return(from, host, word);
}

#else

static inline int pirn__host_enter(struct pirn__host *host,
                                   struct pirn__context *to)
{
    return pirn__context_pass(&host->context, to, 0);
}

static inline int pirn__host_return(struct pirn__context *from,
                                    struct pirn__host *host, int word)
{
    return pirn__context_pass(from, &host->context, word);
}

static inline void pirn__host_exit(struct pirn__context *from,
                                   struct pirn__host *host, int word)
{
    pirn__context_exit_with(from, &host->context, word);
}

#endif

#endif /* PIRN_SYS_SWITCH_H */
