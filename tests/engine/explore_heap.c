/* SPDX-License-Identifier: MIT */
/* tests/engine/explore_heap.c - the allocators of the model build.
 *
 * Within an execution memory is never reused, so that every touch of freed
 * memory is seen.  It starts with nonsense in it, the same each time.  The
 * chunk directory's blocks are never given back and therefore not counted.
 *
 * This file stands in for src/sys/heap.c.
 */
#include <stdlib.h>

#include "base/directory.h"
#include "engine/explore_internal.h"
#include "sys/heap.h"

enum { NONSENSE = 0xa5, NONSENSE_LIMIT = 4096 };

char explore_heap_memory[EXPLORE_HEAP_SIZE] __attribute__((aligned(4096)));
static size_t heap_used;
static size_t heap_out;

void explore_heap_keep(void)
{
    explore_snapshot_keep(explore_heap_memory, sizeof explore_heap_memory);
    explore_snapshot_keep(&heap_used, sizeof heap_used);
    explore_snapshot_keep(&heap_out, sizeof heap_out);
}

void explore_heap_reset(void)
{
    explore_dig_up(explore_heap_memory, heap_used);
    heap_used = 0;
    heap_out = 0;
}

size_t explore_heap_out(void)
{
    return heap_out;
}

static void *take(size_t size, size_t align)
{
    size_t start;

    if (align < EXPLORE_HEAP_UNIT)
        align = EXPLORE_HEAP_UNIT;
    start = (heap_used + align - 1) & ~(align - 1);
    if (size > EXPLORE_HEAP_SIZE || start > EXPLORE_HEAP_SIZE - size)
        return NULL;
    heap_used = start + size;
    memset(explore_heap_memory + start, NONSENSE,
           size < NONSENSE_LIMIT ? size : NONSENSE_LIMIT);
    return explore_heap_memory + start;
}

static void *counted_take(void *ctx, size_t size, size_t align)
{
    void *memory = take(size, align);

    (void)ctx;
    heap_out += memory != NULL;
    return memory;
}

/* Whoever touches it from now on makes a mistake, also if it does so in an
 * order that this execution does not show: hence the look at happens-before. */
static void counted_give(void *ctx, void *memory, size_t size, size_t align)
{
    (void)ctx;
    (void)align;
    explore_check_alive(memory, size, EXPLORE_PLACE);
    explore_hide(memory, size, EXPLORE_PLACE);
    explore_trace("free", memory, size, EXPLORE_PLACE);
    heap_out--;
}

const pirn_alloc explore_heap = {.take = counted_take, .give = counted_give};

/* What the process owns: a thread's record, its parker. */

static void *process_take(void *ctx, size_t size, size_t align)
{
    if (explore_active())
        return counted_take(ctx, size, align);
    return align <= _Alignof(max_align_t) ? malloc(size) : NULL;
}

static void process_give(void *ctx, void *memory, size_t size, size_t align)
{
    size_t offset = (size_t)((char *)memory - explore_heap_memory);

    if (offset < EXPLORE_HEAP_SIZE)
        counted_give(ctx, memory, size, align);
    else
        free(memory);
}

const pirn_alloc pirn__alloc_malloc = {
    .take = process_take,
    .give = process_give,
};

static void *directory_take(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    return explore_active() ? take(size, align) : malloc(size);
}

static void directory_give(void *ctx, void *memory, size_t size, size_t align)
{
    (void)ctx;
    (void)align;
    if (explore_active())
        explore_hide(memory, size, EXPLORE_PLACE);
    else
        free(memory);
}

static const pirn_alloc directory_alloc = {
    .take = directory_take,
    .give = directory_give,
};

__attribute__((constructor(101))) static void serve_directory(void)
{
    pirn__directory_set_alloc(&directory_alloc);
}
