/* SPDX-License-Identifier: MIT */
/* src/base/chunk.c - making chunks, and their cells one by one. */
#include "base/chunk.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/list.h"
#include "base/poison.h"

_Static_assert(sizeof(struct pirn__cell) == PIRN__SLAB_SIZE_MIN,
               "the least cell is its header");

static struct pirn__cell *cell_at(struct pirn__slab_chunk *chunk,
                                  uint32_t place)
{
    return (struct pirn__cell *)(void *)((char *)(chunk + 1) +
                                         place * chunk->stride);
}

static size_t capacity_for(size_t stride)
{
    size_t room = PIRN__CHUNK_BYTES - sizeof(struct pirn__slab_chunk);
    size_t count = room / stride;

    if (stride > PIRN__SLAB_SIZE_MAX)
        return 1;
    return count < PIRN__CHUNK_PLACES ? count : PIRN__CHUNK_PLACES;
}

struct pirn__slab_chunk *pirn__chunk_new(struct pirn__slabs *set, size_t stride,
                                         uint32_t class_index)
{
    const pirn_alloc *alloc = set->alloc;
    size_t capacity = capacity_for(stride);
    struct pirn__slab_chunk *chunk;
    size_t bytes;

    if (!pirn__checked_add(sizeof *chunk, capacity * stride, &bytes))
        return NULL;
    chunk = alloc->take(alloc->ctx, bytes, PIRN__CHUNK_ALIGN);
    if (chunk == NULL)
        return NULL;
    *chunk = (struct pirn__slab_chunk){
        .set = set,
        .bytes = bytes,
        .stride = stride,
        .class_index = class_index,
        .capacity = (uint32_t)capacity,
    };
    if (!pirn__directory_take(&chunk->index, &chunk->generation)) {
        alloc->give(alloc->ctx, chunk, bytes, PIRN__CHUNK_ALIGN);
        return NULL;
    }
    chunk->next_generation = chunk->generation;
    pirn__list_init(&chunk->link);
    pirn__directory_publish(chunk->index, chunk);
    return chunk;
}

void pirn__chunk_free(struct pirn__slab_chunk *chunk)
{
    const pirn_alloc *alloc = chunk->set->alloc;
    size_t bytes = chunk->bytes;

    pirn__directory_give(chunk->index, chunk->next_generation,
                         chunk->retired > 0);
    pirn__memory_show(chunk, bytes);
    alloc->give(alloc->ctx, chunk, bytes, PIRN__CHUNK_ALIGN);
}

/* The same from those that were never used. */
static uint32_t take_fresh_locked(struct pirn__slab_chunk *chunk,
                                  struct pirn__queue *out, uint32_t wanted)
{
    /* relaxed: written under the set's lock, which is held. */
    uint32_t first = pirn__load(&chunk->fresh, relaxed);
    uint32_t room = chunk->capacity - first;
    uint32_t count = wanted < room ? wanted : room;

    for (uint32_t place = first; place < first + count; place++) {
        uint32_t slot = chunk->index << PIRN__SLAB_PLACE_BITS | place;
        struct pirn__cell *cell = cell_at(chunk, place);

        pirn__init(&cell->word, 0);
        pirn__init(&cell->id, (uint64_t)chunk->generation << 32 | slot);
        pirn__queue_push(out, &cell->link);
    }
    /* release [chunk.fresh]: a lookup that sees these places in use sees the two
     * values above. */
    pirn__store(&chunk->fresh, first + count, release);
    return count;
}

/* Append up to `wanted` cells that were given back to `out`; how many there
 * were. */
static uint32_t take_free_locked(struct pirn__slab_chunk *chunk,
                                 struct pirn__queue *out, uint32_t wanted)
{
    struct pirn__queue taken = {chunk->free, NULL};
    pirn_slink *link = chunk->free;
    uint32_t count = 0;

    for (; count < wanted && link != NULL; count++) {
        taken.tail = link;
        link = link->next_;
    }
    if (count == 0)
        return 0;
    chunk->free = link;
    taken.tail->next_ = NULL;
    pirn__queue_splice(out, &taken);
    return count;
}

uint32_t pirn__chunk_take_locked(struct pirn__slab_chunk *chunk,
                                 struct pirn__queue *out, uint32_t wanted)
{
    uint32_t count = take_free_locked(chunk, out, wanted);

    if (count < wanted)
        count += take_fresh_locked(chunk, out, wanted - count);
    chunk->used += count;
    return count;
}

static bool is_of(const struct pirn__slab_chunk *chunk, pirn_slink *link)
{
    /* relaxed: the slot part of an id never changes. */
    uint32_t slot =
        (uint32_t)pirn__load(&pirn__cell_of_link(link)->id, relaxed);

    return slot >> PIRN__SLAB_PLACE_BITS == chunk->index;
}

uint32_t pirn__chunk_give_locked(struct pirn__slab_chunk *chunk,
                                 pirn_slink **first, uint32_t limit)
{
    pirn_slink *link = *first;
    pirn_slink *free = chunk->free;
    uint32_t latest = chunk->next_generation;
    uint32_t count = 0;

    do {
        pirn_slink *next = link->next_;
        uint32_t generation = pirn__cell_generation(pirn__cell_of_link(link));

        if (generation == 0) {
            chunk->retired++;
        } else {
            link->next_ = free;
            free = link;
        }
        if (generation > latest)
            latest = generation;
        link = next;
        count++;
    } while (count < limit && link != NULL && is_of(chunk, link));
    PIRN_DASSERT(chunk->used >= count);
    chunk->used -= count;
    chunk->free = free;
    chunk->next_generation = latest;
    *first = link;
    return count;
}

uint32_t pirn__chunk_fresh(const struct pirn__slab_chunk *chunk)
{
    /* acquire [chunk.fresh]: the first word and the id of every cell below are
     * there. */
    return pirn__load(&chunk->fresh, acquire);
}

struct pirn__cell *pirn__chunk_ref(struct pirn__slab_chunk *chunk,
                                   uint32_t place, uint64_t id,
                                   pirn__try_ref_fn *try_ref)
{
    struct pirn__cell *cell;

    if (place >= pirn__chunk_fresh(chunk))
        return NULL;
    cell = cell_at(chunk, place);
    /* relaxed: a hint; the caller looks again after try_ref. */
    if (id != 0 && pirn__load(&cell->id, relaxed) != id)
        return NULL;
    return try_ref(cell) ? cell : NULL;
}

void pirn__chunk_validate_locked(const struct pirn__slab_chunk *chunk)
{
    /* relaxed: written under the set's lock, which is held. */
    uint32_t fresh = pirn__load(&chunk->fresh, relaxed);
    uint32_t free_count = 0;

    for (pirn_slink *link = chunk->free; link != NULL; link = link->next_) {
        struct pirn__cell *cell = pirn__cell_of_link(link);
        uint32_t generation = pirn__cell_generation(cell);

        PIRN_ASSERT(pirn__chunk_of_cell(cell) == chunk);
        PIRN_ASSERT(generation >= chunk->generation);
        PIRN_ASSERT(generation <= chunk->next_generation);
        free_count++;
        PIRN_ASSERT(free_count <= fresh);
    }
    PIRN_ASSERT(fresh <= chunk->capacity);
    PIRN_ASSERT(chunk->used + chunk->retired + free_count == fresh);
    PIRN_ASSERT(pirn__chunk_can_give_locked(chunk));
}
