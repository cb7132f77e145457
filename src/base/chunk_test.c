/* SPDX-License-Identifier: MIT */
/* src/base/chunk_test.c - cells within a chunk: ids, generations, places. */
#include "base/chunk.h"

#include "base/chunk.h"
#include "engine/slab_fixture.h"

enum { GARBAGE_IDS = 100000, CELLS = 200 };

/* Goal: an id names its cell while that is in use, and never again: neither
 * while the cell is free nor when its memory serves another.
 * Method: take, give and take again without a cache, which reuses the cell. */
TEST(chunk_reuse_bumps_generation_and_old_id_stays_stale)
{
    struct fixture fixture;
    struct pirn__cell *again;
    struct pirn__cell *cell;
    uint64_t id;

    fixture_init(&fixture);
    cell = pirn__slabs_take(&fixture.slabs, NULL, CELL_SIZE);
    REQUIRE(cell != NULL);
    EXPECT_EQ(0, cell->word.v_);
    EXPECT_PTR_EQ(&fixture.slabs, pirn__cell_slabs(cell));
    id = id_of(cell);
    EXPECT(id != 0);
    EXPECT(!is_known(id)); /* taken, not in use yet */
    use(cell);
    EXPECT(is_known(id));
    unref(cell);
    EXPECT(!is_known(id));
    EXPECT(!is_known(id + (1ull << 32)));

    again = pirn__slabs_take(&fixture.slabs, NULL, CELL_SIZE);
    EXPECT_PTR_EQ(cell, again);
    EXPECT_EQ(id + (1ull << 32), id_of(again));
    use(again);
    EXPECT(!is_known(id));
    EXPECT(is_known(id_of(again)));
    unref(again);
    fixture_deinit(&fixture);
}

/* Goal: any 64 bits may be looked up.
 * Method: all bits, none, places never used in a chunk that exists, chunks that
 * do not, and random numbers. */
TEST(chunk_lookup_of_garbage_finds_nothing)
{
    uint64_t random = test_seed() | 1;
    struct fixture fixture;
    struct pirn__cell *cell;
    uint64_t id;

    fixture_init(&fixture);
    cell = pirn__slabs_take(&fixture.slabs, NULL, CELL_SIZE);
    REQUIRE(cell != NULL);
    use(cell);
    id = id_of(cell);
    EXPECT(!is_known(0));
    EXPECT(!is_known(UINT64_MAX));
    for (uint64_t place = 1; place < 1024; place++)
        EXPECT(!is_known(id + place));
    EXPECT(!is_known(id & UINT32_MAX));
    for (int i = 0; i < GARBAGE_IDS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        if (random != id)
            EXPECT(!is_known(random));
    }
    EXPECT(is_known(id));
    unref(cell);
    fixture_deinit(&fixture);
}

static int undone;

static void count_unref(struct pirn__cell *cell)
{
    undone++;
    unref(cell);
}

/* Takes its reference one user too late: in between, the cell was given back
 * and taken again. */
static bool try_ref_too_late(struct pirn__cell *cell)
{
    struct pirn__slabs *slabs = pirn__cell_slabs(cell);

    EXPECT(unref_last(cell));
    pirn__slabs_give(NULL, cell);
    EXPECT_PTR_EQ(cell, pirn__slabs_take(slabs, NULL, CELL_SIZE));
    use(cell);
    return try_ref(cell);
}

/* Goal: a lookup that met the cell's next user finds nothing, and gives that
 * user's reference back.
 * Method: a try_ref that lets the cell change hands first. */
TEST(chunk_lookup_overtaken_by_reuse_undoes_its_reference)
{
    struct fixture fixture;
    struct pirn__cell *cell;
    uint64_t id;

    fixture_init(&fixture);
    cell = pirn__slabs_take(&fixture.slabs, NULL, CELL_SIZE);
    REQUIRE(cell != NULL);
    use(cell);
    id = id_of(cell);
    undone = 0;
    EXPECT_PTR_EQ(NULL, pirn__slab_lookup(id, try_ref_too_late, count_unref));
    EXPECT_EQ(1, undone);
    EXPECT_EQ(1, cell->word.v_);
    EXPECT(is_known(id + (1ull << 32)));
    unref(cell);
    fixture_deinit(&fixture);
}

/* Goal: free cells come in the order in which they lie, in whatever order they were
 * given back, so that tasks which are started one after the other are neighbours.
 * Method: 200 cells of one chunk, given back by a step that meets each once. */
TEST(chunk_free_cells_come_in_the_order_in_which_they_lie)
{
    static struct pirn__cell *cells[CELLS];
    struct fixture fixture;

    fixture_init(&fixture);
    for (int i = 0; i < CELLS; i++) {
        cells[i] = pirn__slabs_take(&fixture.slabs, NULL, CELL_SIZE);
        REQUIRE(cells[i] != NULL);
    }
    for (int i = 0; i < CELLS; i++)
        pirn__slabs_give(NULL, cells[i * 7 % CELLS]);
    pirn__slabs_validate(&fixture.slabs);
    for (int i = 0; i < CELLS; i++) {
        struct pirn__cell *cell =
            pirn__slabs_take(&fixture.slabs, NULL, CELL_SIZE);

        EXPECT_PTR_EQ(cells[i], cell);
    }
    for (int i = 0; i < CELLS; i++)
        pirn__slabs_give(NULL, cells[i]);
    fixture_deinit(&fixture);
}

/* Goal: so they do also where the last ones were never used.
 * Method: the first 40 cells of a chunk, of which 10 come back, and more. */
TEST(chunk_free_cells_come_before_fresh_ones)
{
    enum { TAKEN = 40, BACK = 10 };
    struct pirn__cell *cells[TAKEN];
    struct pirn__queue some = {0};
    struct fixture fixture;
    uint32_t slot;

    fixture_init(&fixture);
    for (int i = 0; i < TAKEN; i++) {
        cells[i] = pirn__slabs_take(&fixture.slabs, NULL, CELL_SIZE);
        REQUIRE(cells[i] != NULL);
    }
    for (int i = 0; i < BACK; i++)
        pirn__slabs_give(NULL, cells[BACK - 1 - i]);
    EXPECT_EQ(PIRN__SLAB_REFILL,
              pirn__slabs_take_some(&fixture.slabs, CELL_SIZE, &some));
    slot = (uint32_t)id_of(cells[0]);
    for (pirn_slink *link = some.head; link != NULL; link = link->next_) {
        EXPECT_EQ(slot, (uint32_t)id_of(pirn__cell_of_link(link)));
        slot++;
        if (slot == (uint32_t)id_of(cells[BACK]))
            slot += TAKEN - BACK;
    }
    pirn__slabs_give_back(&fixture.slabs, &some);
    for (int i = BACK; i < TAKEN; i++)
        pirn__slabs_give(NULL, cells[i]);
    fixture_deinit(&fixture);
}

/* Goal: when a chunk is freed and its index serves another, generations go on
 * rising, so that no id of the old one comes alive.
 * Method: use a cell three times, end the set, which frees the chunk, and take
 * from a new set: the directory hands out the index freed last. */
TEST(chunk_index_reused_keeps_generations_rising)
{
    struct fixture fixture;
    struct pirn__cell *cell;
    uint64_t id = 0;
    uint64_t next;

    fixture_init(&fixture);
    for (int i = 0; i < 3; i++) {
        cell = pirn__slabs_take(&fixture.slabs, NULL, CELL_SIZE);
        REQUIRE(cell != NULL);
        id = id_of(cell);
        pirn__slabs_give(NULL, cell);
    }
    fixture_deinit(&fixture);
    EXPECT(!is_known(id));

    fixture_init(&fixture);
    cell = pirn__slabs_take(&fixture.slabs, NULL, CELL_SIZE);
    REQUIRE(cell != NULL);
    next = id_of(cell);
    EXPECT_EQ((uint32_t)id, (uint32_t)next);
    EXPECT_EQ((id >> 32) + 1, next >> 32);
    use(cell);
    EXPECT(!is_known(id));
    EXPECT(is_known(next));
    unref(cell);
    fixture_deinit(&fixture);
}

/* A set whose next chunk starts at `generation`: on an index that is free. */
static void fixture_init_at(struct fixture *fixture, uint32_t generation)
{
    uint32_t first_generation;
    uint32_t index;

    fixture_init(fixture);
    REQUIRE(pirn__directory_take(&index, &first_generation));
    pirn__directory_give(index, first_generation, false);
    pirn__directory_set_generation(index, generation);
}

/* Goal: a cell in its last generation is not kept by a cache.
 * Method: set the first generation of a chunk to the last one there is. */
TEST(slab_cached_give_of_a_used_up_slot_is_refused)
{
    struct pirn__slab_cache cache = {0};
    struct pirn__cell *cell;
    struct fixture fixture;

    fixture_init_at(&fixture, PIRN__GENERATION_MAX);
    cell = pirn__slabs_take(&fixture.slabs, NULL, CELL_SIZE);
    REQUIRE(cell != NULL);
    cache.set = &fixture.slabs;
    pirn__slab_bin_of(&cache, CELL_SIZE)->limit = PIRN__SLAB_CACHE_LIMIT;
    EXPECT(!pirn__slab_give_cached(&cache, cell, CELL_SIZE));
    pirn__slabs_give(&cache, cell);
    EXPECT_EQ(0, cells_out(&fixture));
    pirn__slabs_flush(&fixture.slabs, &cache);
    fixture_deinit(&fixture);
}

/* Goal: a slot with its last generation behind it is never used again, and
 * neither is the index of its chunk.
 * Method: start two below the end, use one slot until it is gone, then the rest
 * of the chunk, then free it and take again. */
TEST(chunk_slot_without_generations_is_retired)
{
    struct pirn__cell *first;
    struct fixture fixture;
    struct pirn__cell *cell;
    uint64_t id;

    fixture_init_at(&fixture, PIRN__GENERATION_MAX - 1);
    first = pirn__slabs_take(&fixture.slabs, NULL, CELL_SIZE);
    REQUIRE(first != NULL);
    id = id_of(first);
    EXPECT_EQ(PIRN__GENERATION_MAX - 1, generation_of(first));
    pirn__slabs_give(NULL, first);
    cell = pirn__slabs_take(&fixture.slabs, NULL, CELL_SIZE);
    EXPECT_PTR_EQ(first, cell);
    EXPECT_EQ(PIRN__GENERATION_MAX, generation_of(cell));
    pirn__slabs_give(NULL, cell);
    pirn__slabs_validate(&fixture.slabs);
    EXPECT(!is_known((uint32_t)id));

    cell = pirn__slabs_take(&fixture.slabs, NULL, CELL_SIZE);
    REQUIRE(cell != NULL);
    EXPECT(cell != first);
    EXPECT_EQ((uint32_t)id + 1, (uint32_t)id_of(cell));
    EXPECT_EQ(1, cells_out(&fixture));
    pirn__slabs_give(NULL, cell);
    fixture_deinit(&fixture);

    fixture_init(&fixture);
    cell = pirn__slabs_take(&fixture.slabs, NULL, CELL_SIZE);
    REQUIRE(cell != NULL);
    EXPECT((uint32_t)id != (uint32_t)id_of(cell));
    pirn__slabs_give(NULL, cell);
    fixture_deinit(&fixture);
}

/* Goal: retirement also works through a cache, and a chunk of nothing but
 * retired slots is freed.
 * Method: start at the end; every cell taken is the last of its slot. */
TEST(chunk_of_retired_slots_is_freed)
{
    static struct pirn__cell *cells[CHUNK_CELLS];
    struct pirn__slab_cache cache = {0};
    struct fixture fixture;
    uint32_t index;

    fixture_init_at(&fixture, PIRN__GENERATION_MAX);
    for (int i = 0; i < CHUNK_CELLS; i++) {
        cells[i] = pirn__slabs_take(&fixture.slabs, &cache, CELL_SIZE);
        REQUIRE(cells[i] != NULL);
        EXPECT_EQ(PIRN__GENERATION_MAX, generation_of(cells[i]));
    }
    index = (uint32_t)id_of(cells[0]) >> PIRN__SLAB_PLACE_BITS;
    EXPECT_EQ(index, (uint32_t)id_of(cells[CHUNK_CELLS - 1]) >>
                         PIRN__SLAB_PLACE_BITS);
    EXPECT_EQ(1, pieces_of(&fixture.counter));
    for (int i = 0; i < CHUNK_CELLS; i++)
        pirn__slabs_give(&cache, cells[i]);
    pirn__slabs_flush(&fixture.slabs, &cache);
    EXPECT_EQ(0, cells_out(&fixture));
    EXPECT_EQ(0, pieces_of(&fixture.counter));
    EXPECT_PTR_EQ(NULL, pirn__directory_enter(index));
    fixture_deinit(&fixture);
}

/* Goal: every size gets cells that do not overlap and are aligned as promised.
 * Method: for each size up to beyond the largest class take three, fill them,
 * and read them back. */
TEST(chunk_cells_of_each_size_are_apart_and_aligned)
{
    struct fixture fixture;

    fixture_init(&fixture);
    for (size_t size = 0; size <= 1100; size += size < 40 ? 1 : 4) {
        size_t align = size >= 32 && size % 16 == 0 ? 16 : 8;
        struct pirn__cell *cells[3];

        for (int i = 0; i < 3; i++) {
            cells[i] = pirn__slabs_take(&fixture.slabs, NULL, size);
            REQUIRE(cells[i] != NULL);
            EXPECT_EQ(0, (uintptr_t)cells[i] % align);
            if (size > sizeof *cells[i])
                memset(cells[i] + 1, 'a' + i, size - sizeof *cells[i]);
        }
        for (int i = 0; i < 3; i++) {
            const char *bytes = (const char *)(cells[i] + 1);

            for (size_t at = sizeof *cells[i]; at < size; at++)
                EXPECT_EQ('a' + i, bytes[at - sizeof *cells[i]]);
            EXPECT_EQ(0, cells[i]->word.v_);
            pirn__slabs_give(NULL, cells[i]);
        }
    }
    fixture_deinit(&fixture);
}

/* Goal: big cells have a chunk each, are looked up like others and are freed
 * at once.  A size that cannot be is no memory.
 * Method: 100,000 bytes, through a cache as callers would; absurd sizes. */
TEST(chunk_big_cell_has_its_own_chunk)
{
    struct pirn__slab_cache cache = {0};
    struct fixture fixture;
    struct pirn__cell *cell;
    uint64_t id;

    fixture_init(&fixture);
    cell = pirn__slabs_take(&fixture.slabs, &cache, 100000);
    REQUIRE(cell != NULL);
    memset(cell + 1, 1, 100000 - sizeof *cell);
    EXPECT_EQ(0, (uintptr_t)cell % 16);
    EXPECT_EQ(1, pieces_of(&fixture.counter));
    use(cell);
    id = id_of(cell);
    EXPECT(is_known(id));
    EXPECT(!is_known(id + 1));
    EXPECT_EQ(1, cells_out(&fixture));
    EXPECT(unref_last(cell));
    pirn__slabs_give(&cache, cell);
    EXPECT_EQ(0, pieces_of(&fixture.counter));
    EXPECT(!is_known(id));
    EXPECT_PTR_EQ(NULL, pirn__slabs_take(&fixture.slabs, NULL, SIZE_MAX));
    EXPECT_PTR_EQ(NULL, pirn__slabs_take(&fixture.slabs, NULL, SIZE_MAX - 20));
    EXPECT_EQ(0, cells_out(&fixture));
    fixture_deinit(&fixture);
}
