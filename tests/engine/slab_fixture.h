/* SPDX-License-Identifier: MIT */
/* tests/engine/slab_fixture.h - a set of cells over a counting allocator, for
 * the tests of src/base/slab.c and chunk.c.
 *
 * The user of a cell here is a reference count in `word`, as the task layer's
 * is at heart.
 */
#ifndef PIRN_TESTS_ENGINE_SLAB_FIXTURE_H
#define PIRN_TESTS_ENGINE_SLAB_FIXTURE_H

#include <stdlib.h>

#include "base/directory.h"
#include "base/slab.h"
#include "engine/test.h"
#include "sys/heap.h"
#include "sys/sys.h"

enum {
    CELL_SIZE = 152,
    CHUNK_CELLS = 430, /* of this size in one chunk */
};

/* An allocator that counts, and refuses from the `fail_at`-th call on, once. */
struct counter {
    pirn_alloc alloc;
    PIRN_ATOMIC(size_t) pieces;
    PIRN_ATOMIC(size_t) bytes;
    size_t calls;
    size_t fail_at; /* 0: never */
};

static inline void *counter_take(void *ctx, size_t size, size_t align)
{
    struct counter *counter = ctx;

    if (counter->fail_at != 0 && ++counter->calls == counter->fail_at)
        return NULL;
    /* relaxed: statistics. */
    pirn__add(&counter->pieces, 1, relaxed);
    /* relaxed: statistics. */
    pirn__add(&counter->bytes, size, relaxed);
    EXPECT_EQ(16, align);
    return malloc(size);
}

static inline void counter_give(void *ctx, void *memory, size_t size,
                                size_t align)
{
    struct counter *counter = ctx;

    (void)align;
    /* relaxed: statistics. */
    pirn__sub(&counter->pieces, 1, relaxed);
    /* relaxed: statistics. */
    pirn__sub(&counter->bytes, size, relaxed);
    free(memory);
}

static inline size_t bytes_of(struct counter *counter)
{
    /* relaxed: asked when other threads are done. */
    return pirn__load(&counter->bytes, relaxed);
}

static inline size_t pieces_of(struct counter *counter)
{
    /* relaxed: asked when other threads are done. */
    return pirn__load(&counter->pieces, relaxed);
}

/* A set with its allocator, and how often it was told to be empty. */
struct fixture {
    struct counter counter;
    struct pirn__slabs slabs;
    size_t pieces_at_empty;
    int empties;
};

static inline void note_empty(void *owner)
{
    struct fixture *fixture = owner;

    fixture->empties++;
    fixture->pieces_at_empty = pieces_of(&fixture->counter);
}

static inline void fixture_init(struct fixture *fixture)
{
    *fixture = (struct fixture){
        .counter.alloc = {.take = counter_take, .give = counter_give},
    };
    fixture->counter.alloc.ctx = &fixture->counter;
    /* Pulls both into this program: the blocks of the directory and the waiting
     * side of locks. */
    pirn__directory_set_alloc(&pirn__alloc_malloc);
    EXPECT(pirn__sys != NULL);
    pirn__slabs_init(&fixture->slabs, &fixture->counter.alloc, note_empty,
                     fixture);
}

/* Everything has been given back, so that the set can go. */
static inline void fixture_deinit(struct fixture *fixture)
{
    pirn__slabs_validate(&fixture->slabs);
    EXPECT(pirn__slabs_retire(&fixture->slabs));
    EXPECT_EQ(0, pieces_of(&fixture->counter));
    EXPECT_EQ(0, bytes_of(&fixture->counter));
    EXPECT_EQ(0, fixture->empties);
}

static inline size_t cells_out(struct fixture *fixture)
{
    struct pirn__slab_stats stats;

    pirn__slabs_stats(&fixture->slabs, &stats);
    EXPECT_EQ(pieces_of(&fixture->counter), stats.chunks);
    EXPECT_EQ(bytes_of(&fixture->counter), stats.bytes);
    return stats.cells_out;
}

static inline uint64_t id_of(const struct pirn__cell *cell)
{
    /* relaxed: constant while the cell is out. */
    return pirn__load(&cell->id, relaxed);
}

static inline uint32_t generation_of(const struct pirn__cell *cell)
{
    return (uint32_t)(id_of(cell) >> 32);
}

static inline void use(struct pirn__cell *cell)
{
    /* release [slab_test.word]: the cell is ready for try_ref(). */
    pirn__store(&cell->word, 1, release);
}

static inline bool try_ref(struct pirn__cell *cell)
{
    /* relaxed: the swap below orders. */
    uint64_t count = pirn__load(&cell->word, relaxed);

    while (count != 0) {
        /* acquire [slab_test.word]: sees the cell as its user made it. */
        if (pirn__cas_weak(&cell->word, &count, count + 1, acquire, relaxed))
            return true;
    }
    return false;
}

/* True for the last one, who gives the cell back. */
static inline bool unref_last(struct pirn__cell *cell)
{
    /* acq_rel [slab_test.word]: every user's writes come before the give. */
    return pirn__sub(&cell->word, 1, acq_rel) == 1;
}

static inline void unref(struct pirn__cell *cell)
{
    if (unref_last(cell))
        pirn__slabs_give(NULL, cell);
}

/* True if the id names a cell now. */
static inline bool is_known(uint64_t id)
{
    struct pirn__cell *cell = pirn__slab_lookup(id, try_ref, unref);

    if (cell == NULL)
        return false;
    EXPECT_EQ(id, id_of(cell));
    unref(cell);
    return true;
}

#endif /* PIRN_TESTS_ENGINE_SLAB_FIXTURE_H */
