/* SPDX-License-Identifier: MIT */
/* src/base/chunk.c - making chunks, and their cells one by one. */
#include "base/chunk.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/list.h"
#include "base/poison.h"

_Static_assert(sizeof(struct pirn__cell) == PIRN__SLAB_SIZE_MIN,
               "the least cell is its header");

static struct pirn__cell *cell_at(const struct pirn__slab_chunk *chunk,
                                  uint32_t place)
{
    return (struct pirn__cell *)(void *)(chunk->cells + place * chunk->stride);
}

/* The lowest place that is marked in a word of the map. */
static uint32_t place_in(uint32_t index, uint64_t word)
{
    return index * 64 + (uint32_t)__builtin_ctzll(word);
}

/* Of a chunk with so many cells: how long its map is. */
static uint32_t map_words(size_t capacity)
{
    return (uint32_t)(capacity + 63) / 64;
}

/* How far from its beginning its cells are. */
static size_t cells_at(size_t capacity)
{
    return pirn__round_up(sizeof(struct pirn__slab_chunk) +
                              map_words(capacity) * sizeof(uint64_t),
                          PIRN__CHUNK_ALIGN);
}

static size_t capacity_for(size_t stride)
{
    size_t most = PIRN__CHUNK_BYTES / stride;
    size_t capacity;

    if (stride > PIRN__SLAB_SIZE_MAX)
        return 1;
    if (most > PIRN__CHUNK_PLACES)
        most = PIRN__CHUNK_PLACES;
    capacity = (PIRN__CHUNK_BYTES - cells_at(most)) / stride;
    return capacity < most ? capacity : most;
}

/* Cells that were never used, as a chain in the order in which they lie: a processor
 * fetches what lies ahead. */
static pirn_slink *begin_cells(const struct pirn__slab_chunk *chunk,
                               uint32_t first, uint32_t count)
{
    uint32_t slot = chunk->index << PIRN__SLAB_PLACE_BITS | first;
    pirn_slink *head;
    pirn_slink **end = &head;

    for (uint32_t i = 0; i < count; i++) {
        struct pirn__cell *cell = cell_at(chunk, first + i);

        pirn__init(&cell->word, 0);
        pirn__init(&cell->id, (uint64_t)chunk->generation << 32 | (slot + i));
        *end = &cell->link;
        end = &cell->link.next_;
    }
    *end = NULL;
    return head;
}

/* All are free and none is fresh; nobody knows the chunk yet. */
static void begin_all(struct pirn__slab_chunk *chunk)
{
    (void)begin_cells(chunk, 0, chunk->capacity);
    for (uint32_t place = 0; place < chunk->capacity; place++)
        chunk->free[place / 64] |= UINT64_C(1) << place % 64;
    chunk->free_count = chunk->capacity;
    pirn__init(&chunk->fresh, chunk->capacity);
}

struct pirn__slab_chunk *pirn__chunk_new(struct pirn__slabs *set, size_t stride,
                                         uint32_t class_index, bool at_once)
{
    const pirn_alloc *alloc = set->alloc;
    size_t capacity = capacity_for(stride);
    struct pirn__slab_chunk *chunk;
    size_t bytes;

    if (!pirn__checked_add(cells_at(capacity), capacity * stride, &bytes))
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
        .cells = (char *)chunk + cells_at(capacity),
    };
    memset(chunk->free, 0, map_words(capacity) * sizeof chunk->free[0]);
    if (!pirn__directory_take(&chunk->index, &chunk->generation)) {
        alloc->give(alloc->ctx, chunk, bytes, PIRN__CHUNK_ALIGN);
        return NULL;
    }
    chunk->next_generation = chunk->generation;
    pirn__list_init(&chunk->link);
    if (at_once)
        begin_all(chunk);
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

/* Up to `wanted` cells that were given back. */
static void take_free_locked(struct pirn__slab_chunk *chunk,
                             struct pirn__handful *taken, uint32_t wanted)
{
    uint32_t most = chunk->free_count < wanted ? chunk->free_count : wanted;
    uint32_t left = most;

    for (uint32_t i = 0; left > 0; i++) {
        uint64_t word = chunk->free[i];

        for (; word != 0 && left > 0; left--, word &= word - 1)
            taken->used[taken->used_count++] = cell_at(chunk, place_in(i, word));
        chunk->free[i] = word;
    }
    chunk->free_count -= most;
    taken->count += most;
}

/* The same of those that were never used. */
static void take_fresh_locked(struct pirn__slab_chunk *chunk,
                              struct pirn__handful *taken, uint32_t wanted)
{
    /* relaxed: written under the set's lock, which is held. */
    uint32_t first = pirn__load(&chunk->fresh, relaxed);
    uint32_t room = chunk->capacity - first;
    uint32_t count = wanted < room ? wanted : room;
    struct pirn__queue fresh;

    if (count == 0)
        return;
    fresh.head = begin_cells(chunk, first, count);
    fresh.tail = &cell_at(chunk, first + count - 1)->link;
    pirn__queue_splice(&taken->fresh, &fresh);
    taken->count += count;
    /* release [chunk.fresh]: a lookup that sees these places in use sees their
     * words and ids. */
    pirn__store(&chunk->fresh, first + count, release);
}

void pirn__chunk_take_locked(struct pirn__slab_chunk *chunk,
                             struct pirn__handful *taken, uint32_t wanted)
{
    uint32_t before = taken->count;

    take_free_locked(chunk, taken, wanted - before);
    take_fresh_locked(chunk, taken, wanted - taken->count);
    chunk->used += taken->count - before;
}

static uint64_t id_of(pirn_slink *link)
{
    /* relaxed: the slot part of an id never changes, and the cell is ours. */
    return pirn__load(&pirn__cell_of_link(link)->id, relaxed);
}

/* Marks that are to be set, gathered word by word: cells that go back together are
 * often neighbours, and a word that has just been stored is slow to read. */
struct marks {
    uint64_t word;
    uint32_t index;
};

static void set_marks_locked(struct pirn__slab_chunk *chunk,
                             const struct marks *marks)
{
    PIRN_DASSERT((chunk->free[marks->index] & marks->word) == 0);
    chunk->free[marks->index] |= marks->word;
}

static inline void mark_free_locked(struct pirn__slab_chunk *chunk,
                                    struct marks *marks, uint32_t place)
{
    uint32_t index = place / 64;

    if (index != marks->index) {
        set_marks_locked(chunk, marks);
        *marks = (struct marks){0, index};
    }
    marks->word |= UINT64_C(1) << place % 64;
}

uint32_t pirn__chunk_give_locked(struct pirn__slab_chunk *chunk,
                                 pirn_slink **first, uint32_t limit)
{
    uint32_t first_slot = chunk->index << PIRN__SLAB_PLACE_BITS;
    pirn_slink *link = *first;
    uint64_t id = id_of(link);
    uint32_t place = (uint32_t)id - first_slot;
    struct marks marks = {0};
    uint32_t latest = chunk->next_generation;
    uint32_t retired = 0;
    uint32_t count = 0;

    do {
        uint32_t generation = (uint32_t)(id >> 32);

        if (generation == 0)
            retired++;
        else
            mark_free_locked(chunk, &marks, place);
        if (generation > latest)
            latest = generation;
        link = link->next_;
        count++;
        if (link == NULL || count == limit)
            break;
        id = id_of(link);
        place = (uint32_t)id - first_slot;
    } while (place < PIRN__CHUNK_PLACES);
    set_marks_locked(chunk, &marks);
    PIRN_DASSERT(chunk->used >= count);
    chunk->used -= count;
    chunk->retired += retired;
    chunk->free_count += count - retired;
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

    for (uint32_t place = 0; place < map_words(chunk->capacity) * 64; place++) {
        const struct pirn__cell *cell = cell_at(chunk, place);

        if ((chunk->free[place / 64] >> place % 64 & 1) == 0)
            continue;
        PIRN_ASSERT(place < fresh);
        PIRN_ASSERT(pirn__chunk_of_cell(cell) == chunk);
        PIRN_ASSERT(pirn__cell_generation(cell) >= chunk->generation);
        PIRN_ASSERT(pirn__cell_generation(cell) <= chunk->next_generation);
        free_count++;
    }
    PIRN_ASSERT(free_count == chunk->free_count);
    PIRN_ASSERT(fresh <= chunk->capacity);
    PIRN_ASSERT(chunk->used + chunk->retired + free_count == fresh);
    PIRN_ASSERT(pirn__chunk_can_give_locked(chunk));
}
