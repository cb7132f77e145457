/* SPDX-License-Identifier: MIT */
/* src/base/directory.c - indices, blocks and entries of the chunk directory.
 *
 * Free indices form a stack through their entries, so that the directory stays
 * dense.  `directory.lock` guards that stack and the making of blocks; an
 * entry's own lock guards its chunk pointer and keeps the chunk in place for
 * the holder.  Neither is held while another lock is taken, nor while memory is
 * allocated.
 */
#include "base/directory.h"

#include <string.h>

#include "base/assert.h"
#include "base/lock.h"

enum {
    BLOCK_BITS = PIRN__DIRECTORY_BLOCK_BITS,
    BLOCK_ENTRIES = 1 << BLOCK_BITS,
    ROOT_BLOCKS = PIRN__DIRECTORY_BLOCKS,
    INDEX_LIMIT = ROOT_BLOCKS * BLOCK_ENTRIES,
    BLOCK_ALIGN = 16,
};

pirn__directory_block pirn__directory_root[PIRN__DIRECTORY_BLOCKS];

static struct {
    pirn_lock lock;
    uint32_t first_free;     /* lock; index + 1, 0 when there is none */
    uint32_t limit;          /* lock; indices from here on were never used */
    const pirn_alloc *alloc; /* set before the first use */
} directory;

void pirn__directory_set_alloc(const pirn_alloc *alloc)
{
    directory.alloc = alloc;
}

/* NULL if there is no block for this index yet. */
static struct pirn__directory_entry *entry_find(uint32_t index)
{
    /* acquire [directory.root]: sees the zeroed block. */
    struct pirn__directory_entry *block =
        pirn__load(&pirn__directory_root[index >> BLOCK_BITS], acquire);

    return block == NULL ? NULL : &block[index & (BLOCK_ENTRIES - 1)];
}

/* Make the block that the first unused index falls into; false if it cannot be
 * had.  Another thread may have made it meanwhile, which is as good. */
static bool block_add(void)
{
    const pirn_alloc *alloc = directory.alloc;
    const size_t size = BLOCK_ENTRIES * sizeof(struct pirn__directory_entry);
    struct pirn__directory_entry *block;
    bool is_full;

    PIRN_ASSERT(alloc != NULL);
    block = alloc->take(alloc->ctx, size, BLOCK_ALIGN);
    if (block == NULL)
        return false;
    memset(block, 0, size);

    pirn__lock(&directory.lock);
    is_full = directory.limit == INDEX_LIMIT;
    if (!is_full && entry_find(directory.limit) == NULL) {
        /* release [directory.root]: publishes the zeroed block. */
        pirn__store(&pirn__directory_root[directory.limit >> BLOCK_BITS], block,
                    release);
        block = NULL;
    }
    pirn__unlock(&directory.lock);

    if (block != NULL)
        alloc->give(alloc->ctx, block, size, BLOCK_ALIGN);
    return !is_full;
}

static bool index_take_locked(uint32_t *index)
{
    if (directory.first_free != 0) {
        *index = directory.first_free - 1;
        directory.first_free = entry_find(*index)->next_free;
        return true;
    }
    if (directory.limit == INDEX_LIMIT || entry_find(directory.limit) == NULL)
        return false;
    *index = directory.limit++;
    return true;
}

bool pirn__directory_take(uint32_t *index, uint32_t *generation)
{
    bool taken;

    /* Ends: each turn without an index adds a block or finds one that another
     * thread has added, and there are only so many. */
    for (;;) {
        pirn__lock(&directory.lock);
        taken = index_take_locked(index);
        pirn__unlock(&directory.lock);
        if (taken)
            break;
        if (!block_add())
            return false;
    }
    *generation = entry_find(*index)->generation;
    if (*generation == 0)
        *generation = 1;
    return true;
}

void pirn__directory_publish(uint32_t index, void *chunk)
{
    struct pirn__directory_entry *entry = entry_find(index);

    pirn__lock(&entry->lock);
    /* relaxed: readers hold the entry's lock, or were handed a cell of the
     * chunk by its owner. */
    pirn__store(&entry->chunk, chunk, relaxed);
    pirn__unlock(&entry->lock);
}

void pirn__directory_give(uint32_t index, uint32_t generation, bool used_up)
{
    struct pirn__directory_entry *entry = entry_find(index);

    pirn__lock(&entry->lock);
    /* relaxed: as in publish(). */
    pirn__store(&entry->chunk, NULL, relaxed);
    pirn__unlock(&entry->lock);

    entry->generation = generation;
    if (used_up)
        return;
    pirn__lock(&directory.lock);
    entry->next_free = directory.first_free;
    directory.first_free = index + 1;
    pirn__unlock(&directory.lock);
}

/* Put a free index, as it stands in the stack, before the first greater one. */
static void insert_free_locked(uint32_t free)
{
    uint32_t *link = &directory.first_free;

    while (*link != 0 && *link < free)
        link = &entry_find(*link - 1)->next_free;
    entry_find(free - 1)->next_free = *link;
    *link = free;
}

void pirn__directory_sort_free(void)
{
    uint32_t rest;

    pirn__lock(&directory.lock);
    rest = directory.first_free;
    directory.first_free = 0;
    while (rest != 0) {
        uint32_t next = entry_find(rest - 1)->next_free;

        insert_free_locked(rest);
        rest = next;
    }
    pirn__unlock(&directory.lock);
}

void *pirn__directory_enter(uint32_t index)
{
    struct pirn__directory_entry *entry;
    void *chunk;

    if (index >= INDEX_LIMIT)
        return NULL;
    entry = entry_find(index);
    if (entry == NULL)
        return NULL;
    pirn__lock(&entry->lock);
    /* relaxed: under the entry's lock. */
    chunk = pirn__load(&entry->chunk, relaxed);
    if (chunk == NULL)
        pirn__unlock(&entry->lock);
    return chunk;
}

void *pirn__directory_enter_next(uint32_t *index)
{
    uint32_t limit = pirn__directory_limit();

    for (; *index < limit; ++*index) {
        void *chunk = pirn__directory_enter(*index);

        if (chunk != NULL)
            return chunk;
    }
    return NULL;
}

void pirn__directory_leave(uint32_t index)
{
    pirn__unlock(&entry_find(index)->lock);
}

uint32_t pirn__directory_limit(void)
{
    uint32_t limit;

    pirn__lock(&directory.lock);
    limit = directory.limit;
    pirn__unlock(&directory.lock);
    return limit;
}

void pirn__directory_fork_prepare(void)
{
    pirn__lock(&directory.lock);
}

void pirn__directory_fork_parent(void)
{
    pirn__unlock(&directory.lock);
}

/* Entries may have been locked by threads that the child does not have.  What
 * they guard is one pointer, which is whole in either state. */
void pirn__directory_fork_child(void)
{
    for (uint32_t index = 0; index < directory.limit; index++)
        pirn__lock_init(&entry_find(index)->lock);
    pirn__lock_init(&directory.lock);
}

void pirn__directory_set_generation(uint32_t index, uint32_t generation)
{
    entry_find(index)->generation = generation;
}
