/* SPDX-License-Identifier: MIT */
/* src/sys/heap.c - the only callers of malloc and free. */
#include "sys/heap.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/directory.h"
#include "base/poison.h"

static void *take(size_t size, size_t align)
{
    if (align <= _Alignof(max_align_t))
        return malloc(size);
    /* C11 wants a size that is a multiple of the alignment. */
    if (size > SIZE_MAX - align)
        return NULL;
    return aligned_alloc(align, pirn__round_up(size, align));
}

static void *heap_take(void *ctx, size_t size, size_t align)
{
    void *memory = take(size, align);

    (void)ctx;
    if (PIRN__IS_HOSTILE && memory != NULL)
        memset(memory, PIRN__FRESH_BYTE, size);
    return memory;
}

static void heap_give(void *ctx, void *memory, size_t size, size_t align)
{
    (void)ctx;
    (void)align;
    if (PIRN__IS_HOSTILE)
        memset(memory, PIRN__HIDDEN_BYTE, size);
    free(memory);
}

const pirn_alloc pirn__alloc_malloc = {
    .take = heap_take,
    .give = heap_give,
};

/* The chunk directory belongs to the process, not to a runtime.  The earliest
 * priority that is not reserved: other constructors may use the library. */
__attribute__((constructor(101))) static void serve_directory(void)
{
    pirn__directory_set_alloc(&pirn__alloc_malloc);
}
