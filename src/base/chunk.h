/* SPDX-License-Identifier: MIT */
/* src/base/chunk.h - one piece of memory full of cells of one size.
 *
 *     | header | map | used | free | used | ... | never used ... |
 *                                               ^ fresh
 *
 * A chunk marks its free cells in a map and hands them out in the order in which
 * they lie, so that what is used together lies together; cells behind `fresh` only
 * when no other is free, so that memory is touched as it is used.
 *
 * Invariants
 *   - A cell's id carries the generation of its present user or, while it is
 *     free, of the next; generation 0 marks a slot that has none left.
 *   - used + retired + free cells == fresh.
 *
 * Part of slab.c: `_locked` means the lock of the set that the chunk is in.
 */
#ifndef PIRN_BASE_CHUNK_H
#define PIRN_BASE_CHUNK_H

#include "base/assert.h"
#include "base/directory.h"
#include "base/list.h"
#include "base/slab.h"

enum {
    PIRN__CHUNK_BYTES = 64 * 1024 - 32, /* and malloc's part: 64 KiB at most */
    PIRN__CHUNK_ALIGN = 16,
    PIRN__CHUNK_PLACES = 1 << PIRN__SLAB_PLACE_BITS,
};

struct pirn__slab_chunk {
    struct pirn__slabs *set; /* constant, as all that has no other word */
    pirn_link link;          /* set lock; linked while it can give */
    size_t bytes;
    size_t stride;
    uint32_t index; /* in the directory */
    uint32_t class_index;
    uint32_t capacity;
    uint32_t generation;         /* of cells that were never used */
    uint32_t next_generation;    /* set lock; above every used one */
    uint32_t used;               /* set lock; cells out, caches included */
    uint32_t retired;            /* set lock; slots without a generation left */
    PIRN_ATOMIC(uint32_t) fresh; /* written under the set's lock */
    uint32_t free_count;         /* set lock */
    char *cells;                 /* behind the map */
    uint64_t free[];             /* set lock; the map: a bit for each place */
};

/* Cells on their way out of a set.  Used ones are not touched under its lock, for
 * another processor may have used them last, and are chained later. */
struct pirn__handful {
    struct pirn__cell *used[PIRN__SLAB_REFILL];
    struct pirn__queue fresh;
    uint32_t used_count;
    uint32_t count; /* of both kinds */
};

static inline struct pirn__cell *pirn__cell_of_link(pirn_slink *link)
{
    return PIRN_CONTAINER_OF(link, struct pirn__cell, link);
}

static inline uint32_t pirn__cell_generation(const struct pirn__cell *cell)
{
    /* relaxed: asked only by the cell's holder, who has written it or was
     * handed the cell. */
    return (uint32_t)(pirn__load(&cell->id, relaxed) >> 32);
}

static inline struct pirn__slab_chunk *
pirn__chunk_of_cell(const struct pirn__cell *cell)
{
    /* relaxed: the slot part of an id never changes. */
    uint32_t slot = (uint32_t)pirn__load(&cell->id, relaxed);

    return pirn__directory_chunk(slot >> PIRN__SLAB_PLACE_BITS);
}

/* A chunk that the directory knows and its set does not yet; NULL without
 * memory.  One cell if `stride` is above PIRN__SLAB_SIZE_MAX.  `at_once`: all its
 * memory is touched now. */
struct pirn__slab_chunk *pirn__chunk_new(struct pirn__slabs *set, size_t stride,
                                         uint32_t class_index, bool at_once);

/* No cell is out, and the set has forgotten the chunk. */
void pirn__chunk_free(struct pirn__slab_chunk *chunk);

static inline bool
pirn__chunk_can_give_locked(const struct pirn__slab_chunk *chunk)
{
    /* relaxed: written under the set's lock, which is held. */
    return chunk->free_count > 0 ||
           pirn__load(&chunk->fresh, relaxed) < chunk->capacity;
}

/* Fill up to `wanted` cells, in the order in which they lie. */
void pirn__chunk_take_locked(struct pirn__slab_chunk *chunk,
                             struct pirn__handful *taken, uint32_t wanted);

/* Take back up to `limit` cells at the front of a chain of which the first is of
 * this chunk, as far as the next ones are, too; how many.  *first: the rest.  Their
 * ids have been renewed, or not been used. */
uint32_t pirn__chunk_give_locked(struct pirn__slab_chunk *chunk,
                                 pirn_slink **first, uint32_t limit);

/* The cell at `place` if it seems to have this id and try_ref accepts it; an id
 * of 0 stands for any.  The chunk is held in place by the directory. */
struct pirn__cell *pirn__chunk_ref(struct pirn__slab_chunk *chunk,
                                   uint32_t place, uint64_t id,
                                   pirn__try_ref_fn *try_ref);

/* How many places have ever been used; as pirn__chunk_ref(). */
uint32_t pirn__chunk_fresh(const struct pirn__slab_chunk *chunk);

/* Assert every invariant of a chunk that can give. */
void pirn__chunk_validate_locked(const struct pirn__slab_chunk *chunk);

#endif /* PIRN_BASE_CHUNK_H */
