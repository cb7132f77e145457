/* SPDX-License-Identifier: MIT */
/* src/sys/checker.h - what ASan, TSan, LSan and Valgrind must be told about
 * memory that serves as a stack.
 *
 * Without them every call below does nothing.  The announcements of a switch
 * itself are in switch.c.
 */
#ifndef PIRN_SYS_CHECKER_H
#define PIRN_SYS_CHECKER_H

#include <pirn/base.h>

/* GCC defines a macro for each sanitizer, clang answers a question. */
#if defined(__SANITIZE_ADDRESS__)
#define PIRN__WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PIRN__WITH_ASAN 1
#endif
#endif
#ifndef PIRN__WITH_ASAN
#define PIRN__WITH_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__)
#define PIRN__WITH_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PIRN__WITH_TSAN 1
#endif
#endif
#ifndef PIRN__WITH_TSAN
#define PIRN__WITH_TSAN 0
#endif

/* True if something watches memory; caches of stacks then switch themselves
 * off, so that use after free is seen. */
bool pirn__checker_active(void);

/* [base, base + size) becomes a stack; returns Valgrind's id for it or 0. */
uint32_t pirn__checker_stack_begin(void *base, size_t size);

/* Nothing runs on the stack any more; `id` is what begin returned. */
void pirn__checker_stack_end(uint32_t id, void *base, size_t size);

/* The stack is never used nor unmapped again: what it points to is no leak. */
void pirn__checker_stack_keep(void *base, size_t size);

#endif /* PIRN_SYS_CHECKER_H */
