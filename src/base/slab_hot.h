/* SPDX-License-Identifier: MIT */
/* src/base/slab_hot.h - what every task does to a cache of cells; see slab.h, which
 * includes this.
 */
#ifndef PIRN_BASE_SLAB_HOT_H
#define PIRN_BASE_SLAB_HOT_H

#include "base/assert.h"
#include "base/directory.h"
#include "base/poison.h"

/* The bin of cells of at least `size` bytes, at most PIRN__SLAB_SIZE_MAX. */
static inline struct pirn__slab_bin *
pirn__slab_bin_of(struct pirn__slab_cache *cache, size_t size)
{
    size_t above = size < PIRN__SLAB_SIZE_MIN ? 0 : size - PIRN__SLAB_SIZE_MIN;

    return &cache->bins[(above + PIRN__SLAB_UNIT - 1) / PIRN__SLAB_UNIT];
}

static inline struct pirn__cell *pirn__slab_bin_pop(struct pirn__slab_bin *bin)
{
    pirn_slink *link = bin->head;

    if (link == NULL)
        return NULL;
    bin->head = link->next_;
    bin->count--;
    return PIRN_CONTAINER_OF(link, struct pirn__cell, link);
}

static inline void pirn__slab_bin_push(struct pirn__slab_bin *bin,
                                       struct pirn__cell *cell)
{
    cell->link.next_ = bin->head;
    bin->head = &cell->link;
    bin->count++;
}

static inline struct pirn__cell *
pirn__slab_take_cached(struct pirn__slab_cache *cache, size_t size)
{
    struct pirn__cell *cell;

    if (size > PIRN__SLAB_SIZE_MAX)
        return NULL;
    cell = pirn__slab_bin_pop(pirn__slab_bin_of(cache, size));
    if (cell != NULL)
        pirn__memory_show(cell + 1, size - sizeof *cell);
    return cell;
}

static inline bool pirn__slab_give_cached(struct pirn__slab_cache *cache,
                                          struct pirn__cell *cell, size_t size)
{
    /* Of less than PIRN__SLAB_SIZE_MIN it is beyond all bins. */
    size_t index = (size - PIRN__SLAB_SIZE_MIN) / PIRN__SLAB_UNIT;
    struct pirn__slab_bin *bin;
    uint64_t id;

    if (index >= PIRN__SLAB_CLASSES)
        return false;
    bin = &cache->bins[index];
    /* relaxed: only the holder of a cell changes its id. */
    id = pirn__load(&cell->id, relaxed);
    if (__builtin_add_overflow(id, (uint64_t)1 << 32, &id) ||
        id >> 32 > PIRN__GENERATION_MAX || bin->count >= bin->limit)
        return false;
    PIRN_DASSERT(cache->set == pirn__cell_slabs(cell));
    /* relaxed: a lookup that meets the next user's word takes its reference
     * with acquire, and that word was stored with release after this. */
    pirn__store(&cell->id, id, relaxed);
    pirn__memory_hide(cell + 1, size - sizeof *cell);
    pirn__slab_bin_push(bin, cell);
    return true;
}

#endif /* PIRN_BASE_SLAB_HOT_H */
