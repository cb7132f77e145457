/* SPDX-License-Identifier: MIT */
/* src/base/slab_test.c - sets and caches: what they keep, what they cost, and
 * how they end. */
#include "base/slab.h"

#include "base/chunk.h"
#include "engine/slab_fixture.h"

/* Goal: cells cost what they are, plus chunk headers.
 * Method: a million of 152 bytes through a cache, counted at the allocator. */
TEST(slab_million_cells_cost_little_more_than_their_size)
{
    size_t count = test_size(100000, 1000000, 4000000);
    struct pirn__cell **cells = calloc(count, sizeof *cells);
    struct pirn__slab_cache cache = {0};
    struct fixture fixture;

    REQUIRE(cells != NULL);
    fixture_init(&fixture);
    for (size_t i = 0; i < count; i++) {
        cells[i] = pirn__slabs_take(&fixture.slabs, &cache, CELL_SIZE);
        REQUIRE(cells[i] != NULL);
        use(cells[i]);
    }
    EXPECT_LE(bytes_of(&fixture.counter), count * (CELL_SIZE + 1));
    for (size_t i = 0; i < count; i += 997)
        EXPECT(is_known(id_of(cells[i])));
    for (size_t i = 0; i < count; i++)
        if (unref_last(cells[i]))
            pirn__slabs_give(&cache, cells[i]);
    pirn__slabs_flush(&fixture.slabs, &cache);
    EXPECT_EQ(0, cells_out(&fixture));
    EXPECT_LE(pieces_of(&fixture.counter), 1);
    fixture_deinit(&fixture);
    free(cells);
}

/* Goal: of empty chunks one a size is kept, and it serves the next take.
 * Method: fill three chunks, give all back in an order that empties each. */
TEST(slab_keeps_one_empty_chunk_a_size)
{
    static struct pirn__cell *cells[3 * CHUNK_CELLS];
    struct fixture fixture;

    fixture_init(&fixture);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3 * CHUNK_CELLS; i++)
            cells[i] = pirn__slabs_take(&fixture.slabs, NULL, CELL_SIZE);
        REQUIRE(cells[3 * CHUNK_CELLS - 1] != NULL);
        EXPECT_EQ(3, pieces_of(&fixture.counter));
        for (int i = 0; i < 3 * CHUNK_CELLS; i++)
            pirn__slabs_give(NULL, cells[i * 7 % (3 * CHUNK_CELLS)]);
        EXPECT_EQ(1, pieces_of(&fixture.counter));
        pirn__slabs_validate(&fixture.slabs);
    }
    fixture_deinit(&fixture);
}

/* Goal: a cache holds a bounded number, and after a flush it is not used until
 * the next take.
 * Method: give many through it, flush, give one more. */
TEST(slab_cache_is_bounded_and_flush_unbinds_it)
{
    static struct pirn__cell *cells[300];
    struct pirn__slab_cache cache = {0};
    struct fixture fixture;

    fixture_init(&fixture);
    for (int i = 0; i < 300; i++)
        cells[i] = pirn__slabs_take(&fixture.slabs, &cache, CELL_SIZE);
    REQUIRE(cells[299] != NULL);
    for (int i = 0; i < 299; i++)
        pirn__slabs_give(&cache, cells[i]);
    EXPECT_LE(cells_out(&fixture), 1 + PIRN__SLAB_CACHE_LIMIT);
    pirn__slabs_flush(&fixture.slabs, &cache);
    EXPECT_EQ(1, cells_out(&fixture));
    pirn__slabs_give(&cache, cells[299]);
    EXPECT_EQ(0, cells_out(&fixture));
    pirn__slabs_flush(&fixture.slabs, &cache);
    fixture_deinit(&fixture);
}

/* Goal: a chain of cells goes back to the chunks that they are of, wherever one
 * changes to the other, and each is handed out again once.
 * Method: two chunks; cells of both are given back turn about, by a cache that is
 * flushed; then all are taken anew. */
TEST(slab_chain_of_several_chunks_goes_home)
{
    enum { COUNT = 2 * CHUNK_CELLS, MIXED = 20 };
    static struct pirn__cell *cells[COUNT];
    struct pirn__slab_cache cache = {0};
    struct fixture fixture;

    fixture_init(&fixture);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++) {
            cells[i] = pirn__slabs_take(&fixture.slabs, NULL, CELL_SIZE);
            REQUIRE(cells[i] != NULL);
            use(cells[i]);
        }
        EXPECT_EQ(2, pieces_of(&fixture.counter));
        for (int i = 0; i < COUNT; i++)
            EXPECT(unref_last(cells[i]));
        cache.set = &fixture.slabs;
        for (int i = 0; i < MIXED; i++) {
            pirn__slabs_give(&cache, cells[i]);
            pirn__slabs_give(&cache, cells[COUNT - 1 - i]);
            if (i % 3 == 0)
                pirn__slabs_give(&cache, cells[MIXED + i]);
            else
                pirn__slabs_give(NULL, cells[MIXED + i]);
        }
        pirn__slabs_flush(&fixture.slabs, &cache);
        EXPECT_EQ(COUNT - 3 * MIXED, cells_out(&fixture));
        pirn__slabs_validate(&fixture.slabs);
        for (int i = 2 * MIXED; i < COUNT - MIXED; i++)
            pirn__slabs_give(NULL, cells[i]);
        EXPECT_EQ(0, cells_out(&fixture));
        EXPECT_EQ(1, pieces_of(&fixture.counter));
        pirn__slabs_validate(&fixture.slabs);
    }
    fixture_deinit(&fixture);
}

/* Goal: the inline ways give and take the same cells, with a new id each time, and
 * leave what they cannot do to the others.
 * Method: one cell round through a cache; then an empty cache, a full one, an
 * unbound one, a cell that is too big, one that is too small. */
TEST(slab_cached_ways_do_what_they_can)
{
    static struct pirn__cell *cells[PIRN__SLAB_CACHE_LIMIT + 1];
    struct pirn__slab_cache cache = {0};
    struct fixture fixture;
    uint64_t id;

    fixture_init(&fixture);
    EXPECT_PTR_EQ(NULL, pirn__slab_take_cached(&cache, CELL_SIZE));
    for (int i = 0; i <= PIRN__SLAB_CACHE_LIMIT; i++)
        cells[i] = pirn__slabs_take(&fixture.slabs, &cache, CELL_SIZE);
    pirn__slabs_flush(&fixture.slabs, &cache);
    /* relaxed: this is the only thread. */
    id = pirn__load(&cells[0]->id, relaxed);
    EXPECT(!pirn__slab_give_cached(&cache, cells[0], CELL_SIZE));
    cache.set = &fixture.slabs;
    pirn__slabs_give(&cache, cells[0]);
    EXPECT_PTR_EQ(cells[0], pirn__slab_take_cached(&cache, CELL_SIZE));
    EXPECT(!pirn__slab_give_cached(&cache, cells[0],
                                   PIRN__SLAB_SIZE_MAX + PIRN__SLAB_UNIT));
    EXPECT(!pirn__slab_give_cached(&cache, cells[0],
                                   PIRN__SLAB_SIZE_MIN - PIRN__SLAB_UNIT));
    for (int i = 0; i < PIRN__SLAB_CACHE_LIMIT; i++)
        EXPECT(pirn__slab_give_cached(&cache, cells[i], CELL_SIZE));
    EXPECT(!pirn__slab_give_cached(&cache, cells[PIRN__SLAB_CACHE_LIMIT],
                                   CELL_SIZE));
    EXPECT_PTR_EQ(cells[PIRN__SLAB_CACHE_LIMIT - 1],
                  pirn__slab_take_cached(&cache, CELL_SIZE));
    EXPECT_PTR_EQ(NULL, pirn__slab_take_cached(&cache, PIRN__SLAB_SIZE_MAX + 1));
    pirn__slabs_give(&cache, cells[PIRN__SLAB_CACHE_LIMIT - 1]);
    pirn__slabs_give(&cache, cells[PIRN__SLAB_CACHE_LIMIT]);
    /* relaxed: as above. */
    EXPECT_EQ(id + (UINT64_C(2) << 32), pirn__load(&cells[0]->id, relaxed));
    pirn__slabs_flush(&fixture.slabs, &cache);
    EXPECT_EQ(0, cells_out(&fixture));
    fixture_deinit(&fixture);
}

/* Goal: a cache that may grow keeps more after it has overflowed, within its own
 * bound, and no more than usual when it has been trimmed.
 * Method: give more than it may ever hold, then trim, twice. */
TEST(slab_cache_grows_until_it_is_trimmed)
{
    enum { COUNT = 2 * PIRN__SLAB_CACHE_MOST };
    static struct pirn__cell *cells[COUNT];
    struct pirn__slab_cache cache = {.may_grow = true};
    struct fixture fixture;

    fixture_init(&fixture);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++)
            cells[i] = pirn__slabs_take(&fixture.slabs, &cache, CELL_SIZE);
        REQUIRE(cells[COUNT - 1] != NULL);
        for (int i = 0; i < COUNT; i++)
            pirn__slabs_give(&cache, cells[i]);
        EXPECT_LE(PIRN__SLAB_CACHE_LIMIT + 1, cells_out(&fixture));
        EXPECT_LE(cells_out(&fixture), PIRN__SLAB_CACHE_BYTES / CELL_SIZE);
        pirn__slabs_validate(&fixture.slabs);
        pirn__slabs_trim(&fixture.slabs, &cache);
        EXPECT_EQ(PIRN__SLAB_REFILL, cells_out(&fixture));
        pirn__slabs_trim(&fixture.slabs, &cache);
        EXPECT_EQ(PIRN__SLAB_REFILL, cells_out(&fixture));
    }
    pirn__slabs_flush(&fixture.slabs, &cache);
    EXPECT_EQ(0, cells_out(&fixture));
    fixture_deinit(&fixture);
}

/* Goal: a cell given through the cache of another set goes home.
 * Method: two sets, one cache bound to the first. */
TEST(slab_give_through_foreign_cache_goes_home)
{
    struct pirn__slab_cache cache = {0};
    struct pirn__cell *own;
    struct pirn__cell *other;
    struct fixture first;
    struct fixture second;

    fixture_init(&first);
    fixture_init(&second);
    own = pirn__slabs_take(&first.slabs, &cache, CELL_SIZE);
    other = pirn__slabs_take(&second.slabs, NULL, CELL_SIZE);
    REQUIRE(own != NULL && other != NULL);
    pirn__slabs_give(&cache, other);
    EXPECT_EQ(0, cells_out(&second));
    pirn__slabs_give(&cache, own);
    pirn__slabs_flush(&first.slabs, &cache);
    fixture_deinit(&first);
    fixture_deinit(&second);
}

/* Goal: when allocation k fails, take gives NULL, the set is whole, and with
 * memory it goes on.
 * Method: for each k until a run without a failure: take 1,000 cells of three
 * sizes; those that came are given back. */
TEST(slab_failing_allocation_loses_nothing)
{
    static struct pirn__cell *cells[1000];
    static const size_t sizes[] = {24, CELL_SIZE, 2000};
    size_t failures = 1;

    for (size_t k = 1; failures > 0; k++) {
        struct pirn__slab_cache cache = {0};
        struct fixture fixture;

        REQUIRE(k < 2000);
        failures = 0;
        fixture_init(&fixture);
        fixture.counter.fail_at = k;
        for (size_t i = 0; i < 1000; i++) {
            cells[i] = pirn__slabs_take(
                &fixture.slabs, i % 2 == 0 ? &cache : NULL, sizes[i % 3]);
            failures += cells[i] == NULL;
        }
        EXPECT_LE(failures, 1);
        for (size_t i = 0; i < 1000; i++)
            if (cells[i] != NULL)
                pirn__slabs_give(i % 2 == 0 ? &cache : NULL, cells[i]);
        pirn__slabs_flush(&fixture.slabs, &cache);
        EXPECT_EQ(0, cells_out(&fixture));
        fixture_deinit(&fixture);
    }
}

static void *refuse(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    (void)size;
    (void)align;
    return NULL;
}

/* Goal: no room in the directory is no memory, and the chunk goes back.
 * Method: the directory's allocator refuses; big cells use up its indices. */
TEST(slab_take_without_directory_fails_whole)
{
    static const pirn_alloc refusing = {.take = refuse};
    static struct pirn__cell *cells[20000];
    struct fixture fixture;
    int count = 0;

    fixture_init(&fixture);
    pirn__directory_set_alloc(&refusing);
    while (count < 20000) {
        cells[count] = pirn__slabs_take(&fixture.slabs, NULL, 1032);
        if (cells[count] == NULL)
            break;
        count++;
    }
    pirn__directory_set_alloc(&pirn__alloc_malloc);
    EXPECT(count < 20000);
    EXPECT_EQ(count, cells_out(&fixture));
    while (count > 0)
        pirn__slabs_give(NULL, cells[--count]);
    fixture_deinit(&fixture);
}

/* Goal: a set retired with cells out ends exactly once, when the last is back,
 * and all its memory is back by then.
 * Method: three cells in two chunks and a kept empty chunk. */
TEST(slab_retire_with_cells_out_ends_with_the_last)
{
    struct pirn__cell *cells[3];
    struct fixture fixture;

    fixture_init(&fixture);
    cells[0] = pirn__slabs_take(&fixture.slabs, NULL, CELL_SIZE);
    cells[1] = pirn__slabs_take(&fixture.slabs, NULL, CELL_SIZE);
    cells[2] = pirn__slabs_take(&fixture.slabs, NULL, 5000);
    pirn__slabs_give(NULL, pirn__slabs_take(&fixture.slabs, NULL, 64));
    REQUIRE(cells[0] != NULL && cells[1] != NULL && cells[2] != NULL);
    EXPECT_EQ(3, pieces_of(&fixture.counter));

    EXPECT(!pirn__slabs_retire(&fixture.slabs));
    EXPECT_EQ(2, pieces_of(&fixture.counter));
    EXPECT_PTR_EQ(NULL, pirn__slabs_take(&fixture.slabs, NULL, CELL_SIZE));
    use(cells[1]);
    EXPECT(is_known(id_of(cells[1])));
    pirn__slabs_give(NULL, cells[0]);
    pirn__slabs_give(NULL, cells[2]);
    EXPECT_EQ(0, fixture.empties);
    unref(cells[1]);
    EXPECT_EQ(1, fixture.empties);
    EXPECT_EQ(0, fixture.pieces_at_empty);
}

/* An allocator during whose calls the set is retired, by a thread that happens
 * to come at that moment. */
struct intruder {
    struct fixture fixture;
    bool during_take;
    bool was_empty;
};

static void *intruder_take(void *ctx, size_t size, size_t align)
{
    struct intruder *intruder = ctx;

    if (intruder->during_take)
        intruder->was_empty = pirn__slabs_retire(&intruder->fixture.slabs);
    return counter_take(&intruder->fixture.counter, size, align);
}

static void intruder_give(void *ctx, void *memory, size_t size, size_t align)
{
    struct intruder *intruder = ctx;

    if (!intruder->during_take)
        intruder->was_empty = pirn__slabs_retire(&intruder->fixture.slabs);
    counter_give(&intruder->fixture.counter, memory, size, align);
}

static void intruder_init(struct intruder *intruder, pirn_alloc *alloc)
{
    intruder->was_empty = true;
    fixture_init(&intruder->fixture);
    *alloc = (pirn_alloc){
        .take = intruder_take, .give = intruder_give, .ctx = intruder};
    pirn__slabs_init(&intruder->fixture.slabs, alloc, note_empty,
                     &intruder->fixture);
}

/* Goal: a set that is retired while a thread frees its last chunk ends when
 * that thread is through, not before.
 * Method: the allocator retires the set when it is given the chunk. */
TEST(slab_retire_while_last_chunk_is_freed_ends_after_it)
{
    struct intruder intruder = {.during_take = false};
    struct pirn__cell *cell;
    pirn_alloc alloc;

    intruder_init(&intruder, &alloc);
    cell = pirn__slabs_take(&intruder.fixture.slabs, NULL, 5000);
    REQUIRE(cell != NULL);
    pirn__slabs_give(NULL, cell);
    EXPECT(!intruder.was_empty);
    EXPECT_EQ(1, intruder.fixture.empties);
    EXPECT_EQ(0, intruder.fixture.pieces_at_empty);
}

/* Goal: a take that finds the set retired when it comes back with a chunk gives
 * the chunk up, and ends the set.
 * Method: the allocator retires the set when it is asked for the chunk. */
TEST(slab_retire_during_take_ends_after_it)
{
    struct intruder intruder = {.during_take = true};
    pirn_alloc alloc;

    intruder_init(&intruder, &alloc);
    EXPECT_PTR_EQ(NULL, pirn__slabs_take(&intruder.fixture.slabs, NULL, 64));
    EXPECT(!intruder.was_empty);
    EXPECT_EQ(1, intruder.fixture.empties);
    EXPECT_EQ(0, intruder.fixture.pieces_at_empty);
}

/* Goal: a walk meets each cell in use once, and those of this set only.
 * Method: cells of several sizes, every third not in use; a second set beside
 * it; mark what the walk brings. */
TEST(slab_walk_meets_each_live_cell_once)
{
    static struct pirn__cell *cells[3000];
    struct fixture fixture;
    struct fixture beside;
    struct pirn__cell *foreign;
    struct pirn__cell *cell;
    uint64_t cursor = 0;
    size_t met = 0;
    size_t live = 0;

    fixture_init(&fixture);
    fixture_init(&beside);
    foreign = pirn__slabs_take(&beside.slabs, NULL, CELL_SIZE);
    REQUIRE(foreign != NULL);
    use(foreign);
    for (size_t i = 0; i < 3000; i++) {
        cells[i] = pirn__slabs_take(&fixture.slabs, NULL, 24 + i % 50 * 24);
        REQUIRE(cells[i] != NULL);
        if (i % 3 == 0)
            continue;
        use(cells[i]);
        live++;
    }
    while ((cell = pirn__slabs_walk(&fixture.slabs, &cursor, try_ref)) !=
           NULL) {
        EXPECT_PTR_EQ(&fixture.slabs, pirn__cell_slabs(cell));
        EXPECT_EQ(2, cell->word.v_); /* not met before: we keep them */
        met++;
        REQUIRE(met <= live);
    }
    EXPECT_EQ(live, met);
    EXPECT_PTR_EQ(NULL, pirn__slabs_walk(&fixture.slabs, &cursor, try_ref));
    for (size_t i = 0; i < 3000; i++) {
        cells[i]->word.v_ = 0;
        pirn__slabs_give(NULL, cells[i]);
    }
    unref(foreign);
    fixture_deinit(&fixture);
    fixture_deinit(&beside);
}

static void give_in_use(void *arg)
{
    struct fixture *fixture = arg;
    struct pirn__cell *cell =
        pirn__slabs_take(&fixture->slabs, NULL, CELL_SIZE);

    use(cell);
    pirn__slabs_give(NULL, cell);
}

static uint32_t fresh_of(pirn_slink *link)
{
    return pirn__chunk_fresh(pirn__chunk_of_cell(pirn__cell_of_link(link)));
}

/* Goal: who takes some cells of a set that is not small has a new chunk touched
 * whole; of a small one only what is needed.  All come out in order, once.
 * Method: one chunk more than makes a set large, and all back in the same order,
 * in which the last cell of a chunk is followed by the first of the next. */
TEST(slab_new_chunk_of_a_large_set_is_made_ready)
{
    struct pirn__queue all = {0};
    struct fixture fixture;
    uint64_t latest = 0;

    fixture_init(&fixture);
    while (pieces_of(&fixture.counter) <= PIRN__SLAB_LARGE) {
        struct pirn__queue some = {0};

        REQUIRE(pirn__slabs_take_some(&fixture.slabs, CELL_SIZE, &some) > 0);
        if (pirn__queue_empty(&all))
            EXPECT_EQ(PIRN__SLAB_REFILL, fresh_of(some.head));
        pirn__queue_splice(&all, &some);
    }
    EXPECT_EQ(CHUNK_CELLS, fresh_of(all.tail));
    for (pirn_slink *link = all.head; link != NULL; link = link->next_) {
        uint64_t id = id_of(pirn__cell_of_link(link));

        EXPECT(id == latest + 1 || id % PIRN__CHUNK_PLACES == 0);
        EXPECT(!is_known(id));
        latest = id;
    }
    pirn__slabs_validate(&fixture.slabs);
    pirn__slabs_give_back(&fixture.slabs, &all);
    EXPECT_EQ(0, cells_out(&fixture));
    fixture_deinit(&fixture);
}

/* Goal: a cell given back while somebody holds it stops the process.
 * Method: word is not 0. */
TEST(slab_give_of_cell_in_use_dies)
{
    struct fixture fixture;

    fixture_init(&fixture);
    EXPECT_DEATH(give_in_use, &fixture, "internal error");
    fixture_deinit(&fixture);
}
