/* SPDX-License-Identifier: MIT */
/* src/sys/heap_test.c - the C library's heap behind the allocator contract. */
#include "sys/heap.h"

#include <string.h>

#include "engine/test.h"

/* Goal: every alignment up to a page is kept, the memory is usable, and what
 * cannot be had is NULL.
 * Method: sizes that are no multiple of the alignment. */
TEST(heap_take_keeps_alignment)
{
    for (size_t align = 1; align <= 4096; align *= 2) {
        const size_t size = 3 * align + 1;
        void *memory = pirn__alloc_malloc.take(NULL, size, align);

        REQUIRE(memory != NULL);
        EXPECT_EQ(0, (uintptr_t)memory % align);
        memset(memory, 0x5a, size);
        pirn__alloc_malloc.give(NULL, memory, size, align);
    }
    /* Wraps around when it is rounded up. */
    EXPECT_PTR_EQ(NULL, pirn__alloc_malloc.take(NULL, SIZE_MAX - 10, 4096));
}
