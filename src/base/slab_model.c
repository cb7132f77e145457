/* SPDX-License-Identifier: MIT */
/* src/base/slab_model.c - cells, ids and the chunk directory against look-ups
 * from other threads.
 *
 * The model build has two bits of generation, so that a slot is used up after
 * three users.  A cell's word counts references here, as a task's does.
 */
#include "base/slab.h"

#include "base/directory.h"
#include "engine/explore.h"

enum { CELL_SIZE = 1016 }; /* 64 to a chunk */

struct item {
    struct pirn__cell cell;
    PIRN_SHARED(uint64_t) id; /* written before the word, by the user */
};

static struct pirn__slabs slabs;
static PIRN_ATOMIC(uint64_t) known; /* an id that others may look up */
static PIRN_SHARED(int) ends; /* on_empty */

static void note_end(void *owner)
{
    (void)owner;
    pirn_cell_write(&ends, pirn_cell_read(&ends) + 1);
}

static void begin(void)
{
    pirn__slabs_init(&slabs, &explore_heap, note_end, NULL);
    pirn__init(&known, 0);
}

/* The user's side: a reference count in the word. */

static bool try_ref(struct pirn__cell *cell)
{
    uint64_t word = pirn__load(&cell->word, relaxed);

    do {
        if (word == 0)
            return false;
    } while (
        !pirn__cas_weak(&cell->word, &word, word + 1, acquire, relaxed));
    return true;
}

static void unref(struct pirn__cell *cell)
{
    if (pirn__sub(&cell->word, 1, acq_rel) == 1)
        pirn__slabs_give(NULL, cell);
}

/* A user comes: it knows its id and stores it before it opens the word. */
static struct item *open_item(void)
{
    struct pirn__cell *cell = pirn__slabs_take(&slabs, NULL, CELL_SIZE);
    struct item *item = (struct item *)(void *)cell;
    uint64_t id;

    EXPLORE_CHECK(cell != NULL);
    id = pirn__load(&cell->id, relaxed);
    pirn_cell_write(&item->id, id);
    pirn__store(&cell->word, 1, release);
    return item;
}

static void look_up(void *arg)
{
    uint64_t id = pirn__load(&known, acquire);
    struct pirn__cell *cell = pirn__slab_lookup(id, try_ref, unref);

    (void)arg;
    if (cell == NULL)
        return;
    /* Whoever it is, it is the one with this id. */
    EXPLORE_CHECK(pirn_cell_read(&((struct item *)(void *)cell)->id) == id);
    unref(cell);
}

static void end(void)
{
    explore_join();
    EXPLORE_CHECK(slabs.cells_out == 0);
    EXPLORE_CHECK(pirn__slabs_retire(&slabs));
    EXPLORE_CHECK(pirn_cell_read(&ends) == 0);
}

static void close_and_open_again(void *arg)
{
    unref(arg);
    unref(&open_item()->cell);
}

/* Goal: a look-up by an id gets the user with that id or nobody, while that
 * user goes and another comes into its cell. */
MODEL(slab_look_up_meets_the_next_user, .preemptions = 3)
{
    struct item *item;

    begin();
    item = open_item();
    pirn__store(&known, pirn__load(&item->cell.id, relaxed), release);
    explore_thread(close_and_open_again, item);
    explore_thread(look_up, NULL);
    end();
}

static void open_and_tell(void *arg)
{
    struct item *item = open_item();

    (void)arg;
    pirn__store(&known, pirn__load(&item->cell.id, relaxed), release);
    unref(&item->cell);
}

static void look_up_first_slot(void *arg)
{
    /* A forged id: the first slot there ever was, first generation. */
    struct pirn__cell *cell =
        pirn__slab_lookup(UINT64_C(1) << 32, try_ref, unref);

    (void)arg;
    if (cell != NULL)
        unref(cell);
}

/* Goal: a chunk that is just being made is found whole or not at all. */
MODEL(slab_first_chunk_against_a_forged_id, .preemptions = 3)
{
    begin();
    explore_thread(open_and_tell, NULL);
    explore_thread(look_up_first_slot, NULL);
    explore_thread(look_up, NULL);
    end();
}

static void retire(void *arg)
{
    (void)arg;
    if (pirn__slabs_retire(&slabs))
        note_end(NULL);
}

static void unref_last(void *arg)
{
    unref(arg);
}

/* Goal: the end of a set is told exactly once, by whoever is last, and a
 * look-up that comes then touches no freed chunk. */
MODEL(slab_retire_against_the_last_cell, .preemptions = 3)
{
    struct item *item;

    begin();
    item = open_item();
    pirn__store(&known, pirn__load(&item->cell.id, relaxed), release);
    explore_thread(unref_last, item);
    explore_thread(retire, NULL);
    explore_thread(look_up, NULL);
    explore_join();
    EXPLORE_CHECK(pirn_cell_read(&ends) == 1);
}

/* Goal: a slot is retired after its last generation, an id is never given out
 * twice, and stale ids find nobody, also after their chunk is gone.
 * Method: alone; the order of threads does not matter, the numbers do. */
MODEL(slab_generations_run_out, .preemptions = 1)
{
    uint64_t ids[6];

    begin();
    for (int i = 0; i < 6; i++) {
        struct item *item = open_item();

        ids[i] = pirn__load(&item->cell.id, relaxed);
        for (int k = 0; k < i; k++) {
            EXPLORE_CHECK(ids[k] != ids[i]);
            EXPLORE_CHECK(pirn__slab_lookup(ids[k], try_ref, unref) == NULL);
        }
        unref(&item->cell);
        /* The second set begins where the first one's slots ended. */
        if (i == 1) {
            EXPLORE_CHECK(pirn__slabs_retire(&slabs));
            begin();
        }
    }
    end();
}

/* Two sets in two threads share the directory. */

static struct pirn__slabs other_slabs;

static void use_other_set(void *arg)
{
    struct pirn__cell *cell;

    (void)arg;
    pirn__slabs_init(&other_slabs, &explore_heap, note_end, NULL);
    cell = pirn__slabs_take(&other_slabs, NULL, CELL_SIZE);
    EXPLORE_CHECK(cell != NULL);
    pirn__slabs_give(NULL, cell);
    EXPLORE_CHECK(pirn__slabs_retire(&other_slabs));
}

/* Goal: two first chunks have two indices, whoever makes the block. */
MODEL(slab_two_sets_take_their_first_chunk, .preemptions = 2)
{
    begin();
    explore_thread(use_other_set, NULL);
    explore_thread(open_and_tell, NULL);
    end();
}

/* Two threads take from one set that has no chunk yet, and give back. */

static void open_and_close(void *arg)
{
    (void)arg;
    unref(&open_item()->cell);
}

/* Goal: two chunks made for one want are both accounted for. */
MODEL(slab_two_takers_of_an_empty_set, .preemptions = 3)
{
    begin();
    explore_thread(open_and_close, NULL);
    explore_thread(open_and_close, NULL);
    end();
}

/* Several cells at a time, as for threads outside the workers. */

enum { OTHER_SIZE = 1024 };

/* Take some, use one, and give back. */
static void take_some(void *arg)
{
    struct pirn__slab_cache cache = {0};
    struct pirn__queue cells = {0};
    uint32_t count = pirn__slabs_take_some(&slabs, CELL_SIZE, &cells);
    struct pirn__cell *cell;

    (void)arg;
    if (count == 0)
        return;
    EXPLORE_CHECK(count == PIRN__SLAB_REFILL);
    pirn__slab_cache_add(&slabs, &cache, CELL_SIZE, &cells, count);
    cell = pirn__slab_take_cached(&cache, CELL_SIZE);
    EXPLORE_CHECK(pirn__load(&cell->word, relaxed) == 0);
    pirn__slabs_flush(&slabs, &cache);
    pirn__store(&cell->word, 1, release);
    unref(cell);
}

static void look_up_second_chunk(void *arg)
{
    /* A forged id, and a walk: no cell of it has a user who would be met. */
    uint64_t id = UINT64_C(1) << 32 | UINT64_C(1) << PIRN__SLAB_PLACE_BITS;
    struct pirn__cell *cell = pirn__slab_lookup(id, try_ref, unref);
    uint64_t cursor = 0;

    (void)arg;
    if (cell != NULL)
        unref(cell);
    while ((cell = pirn__slabs_walk(&slabs, &cursor, try_ref)) != NULL)
        unref(cell);
}

/* Goal: a chunk that is made ready at once is found whole or not at all.
 * Method: a set that is not small, for it has a chunk of another size. */
MODEL(slab_chunk_made_at_once_against_a_forged_id, .preemptions = 2)
{
    struct pirn__cell *other;

    begin();
    other = pirn__slabs_take(&slabs, NULL, OTHER_SIZE);
    EXPLORE_CHECK(other != NULL);
    explore_thread(take_some, NULL);
    explore_thread(look_up_second_chunk, NULL);
    explore_join();
    pirn__slabs_give(NULL, other);
    end();
}

/* Goal: who chains cells under no lock has them alone, and the set does not end
 * meanwhile.
 * Method: all are used ones, of a chunk that is kept. */
MODEL(slab_takers_of_some_against_the_end, .preemptions = 2)
{
    begin();
    take_some(NULL);
    explore_thread(take_some, NULL);
    explore_thread(take_some, NULL);
    explore_thread(retire, NULL);
    explore_join();
    EXPLORE_CHECK(pirn_cell_read(&ends) == 1);
}
