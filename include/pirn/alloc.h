/* SPDX-License-Identifier: MIT */
/* pirn/alloc.h - the allocator a runtime takes its memory from.
 *
 * Every allocation of a runtime and of the objects bound to it goes through
 * one such table.  Without one, malloc and free serve.
 *
 *     static void *take(void *ctx, size_t size, size_t align);
 *     static void give(void *ctx, void *memory, size_t size, size_t align);
 *
 *     static const pirn_alloc counted = { .take = take, .give = give };
 *     const pirn_runtime_options options = { .alloc = &counted };
 */
#ifndef PIRN_ALLOC_H
#define PIRN_ALLOC_H

#include <pirn/base.h>

PIRN_BEGIN_DECLS

/* Both functions may be called from any thread, also after the runtime was
 * given up: wakers and handles keep parts of it alive.  The table and `ctx`
 * must live until `done` has been called, which happens exactly once, when the
 * last piece has been given back.  A quarantined fiber is never given back, so
 * after a panic or an abort `done` is not called; nor is it when the kernel
 * refuses to unmap stacks, or when pirn_runtime_new() fails. */
typedef struct pirn_alloc {
    /* `size` > 0 bytes aligned to `align` (a power of two, at most 4096), or
     * NULL when there is no memory.  The content is undefined. */
    void *(*take)(void *ctx, size_t size, size_t align);
    /* Take back what take() returned, with the same size and align. */
    void (*give)(void *ctx, void *memory, size_t size, size_t align);
    /* The last piece is back; may be NULL. */
    void (*done)(void *ctx);
    void *ctx;
} pirn_alloc;

PIRN_END_DECLS

#endif /* PIRN_ALLOC_H */
