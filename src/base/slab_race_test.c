/* SPDX-License-Identifier: MIT */
/* src/base/slab_race_test.c - a set of cells used by two threads. */
#include "base/slab.h"

#include <pthread.h>

#include "base/lock.h"
#include "engine/slab_fixture.h"

enum { MAILBOX = 64 };

/* Cells that threads pass among themselves, and the ids last seen. */
struct exchange {
    struct fixture fixture;
    pirn_lock lock;
    struct pirn__cell *cells[MAILBOX]; /* lock */
    PIRN_ATOMIC(uint64_t) ids[MAILBOX];
    size_t rounds;
    uint64_t seed;
    PIRN_ATOMIC(uint64_t) found;
};

struct player {
    struct exchange *exchange;
    bool has_cache;
    uint64_t random;
};

static uint64_t player_random(struct player *player)
{
    player->random =
        player->random * 6364136223846793005u + 1442695040888963407u;
    return player->random >> 33;
}

/* Put a new cell into a box and drop the one that was there, whoever took it
 * first. */
static void player_swap(struct player *player, struct pirn__slab_cache *cache)
{
    struct exchange *exchange = player->exchange;
    size_t box = player_random(player) % MAILBOX;
    size_t size = 24 + player_random(player) % 160 * 8;
    struct pirn__cell *cell =
        pirn__slabs_take(&exchange->fixture.slabs, cache, size);
    struct pirn__cell *old;

    REQUIRE(cell != NULL);
    memset(cell + 1, (int)size & 0x7f, size - sizeof *cell);
    use(cell);
    /* relaxed: any id, old or new, may be looked up. */
    pirn__store(&exchange->ids[box], id_of(cell), relaxed);
    pirn__lock(&exchange->lock);
    old = exchange->cells[box];
    exchange->cells[box] = cell;
    pirn__unlock(&exchange->lock);
    if (old != NULL && unref_last(old))
        pirn__slabs_give(cache, old);
}

static void player_look(struct player *player, struct pirn__slab_cache *cache)
{
    struct exchange *exchange = player->exchange;
    size_t box = player_random(player) % MAILBOX;
    /* relaxed: see player_swap(). */
    uint64_t id = pirn__load(&exchange->ids[box], relaxed);
    struct pirn__cell *cell = pirn__slab_lookup(id, try_ref, unref);

    if (cell == NULL)
        return;
    EXPECT_EQ(id, id_of(cell));
    /* relaxed: a statistic. */
    pirn__add(&exchange->found, 1, relaxed);
    if (unref_last(cell))
        pirn__slabs_give(cache, cell);
}

static void player_walk(struct player *player)
{
    struct pirn__slabs *slabs = &player->exchange->fixture.slabs;
    struct pirn__cell *cell;
    uint64_t cursor = 0;

    while ((cell = pirn__slabs_walk(slabs, &cursor, try_ref)) != NULL)
        unref(cell);
}

static void *play(void *arg)
{
    struct player *player = arg;
    struct exchange *exchange = player->exchange;
    struct pirn__slab_cache cache = {0};
    struct pirn__slab_cache *used = player->has_cache ? &cache : NULL;

    for (size_t i = 0; i < exchange->rounds; i++) {
        player_swap(player, used);
        player_look(player, used);
        if (player_random(player) % 2000 == 0)
            player_walk(player);
        if (player_random(player) % 500 == 0)
            pirn__slabs_flush(&exchange->fixture.slabs, &cache);
    }
    pirn__slabs_flush(&exchange->fixture.slabs, &cache);
    return NULL;
}

static void exchange_run(bool first_has_cache, bool second_has_cache)
{
    static struct exchange exchange;
    struct player players[2];
    pthread_t other;

    memset(&exchange, 0, sizeof exchange);
    exchange.rounds = test_size(20000, 200000, 5000000);
    exchange.seed = test_seed();
    fixture_init(&exchange.fixture);
    for (int i = 0; i < 2; i++) {
        players[i] = (struct player){
            .exchange = &exchange,
            .has_cache = i == 0 ? first_has_cache : second_has_cache,
            .random = exchange.seed + (uint64_t)i,
        };
    }
    REQUIRE(pthread_create(&other, NULL, play, &players[1]) == 0);
    play(&players[0]);
    pthread_join(other, NULL);
    pirn__slabs_validate(&exchange.fixture.slabs);
    for (int i = 0; i < MAILBOX; i++)
        if (exchange.cells[i] != NULL)
            unref(exchange.cells[i]);
    EXPECT(exchange.found.v_ > 0);
    EXPECT_EQ(0, cells_out(&exchange.fixture));
    fixture_deinit(&exchange.fixture);
}

/* Goal: takes, gives, lookups of fresh and stale ids and walks do not disturb
 * each other.
 * Method: two threads replace each other's cells at random; nothing may be left
 * over.  TSan looks on in its build. */
TEST(slab_two_threads_with_caches_lose_nothing)
{
    exchange_run(true, true);
}

/* Goal and method: as above, through the lock alone. */
TEST(slab_two_threads_without_caches_lose_nothing)
{
    exchange_run(false, false);
}

/* Goal and method: as above, one of each. */
TEST(slab_thread_with_and_without_cache_lose_nothing)
{
    exchange_run(true, false);
}

struct last_give {
    struct pirn__cell *cell;
};

static void *give_last(void *arg)
{
    struct last_give *last = arg;

    pirn__slabs_give(NULL, last->cell);
    return NULL;
}

/* Goal: when retire and the last give race, exactly one of them learns that the
 * set is empty, and all memory is back by then.
 * Method: many small sets, a thread gives the only cell while this one
 * retires. */
TEST(slab_retire_racing_last_give_ends_once)
{
    size_t rounds = test_size(200, 2000, 100000);

    for (size_t i = 0; i < rounds; i++) {
        struct fixture fixture;
        struct last_give last;
        pthread_t other;
        bool was_empty;

        fixture_init(&fixture);
        last.cell = pirn__slabs_take(&fixture.slabs, NULL, CELL_SIZE);
        REQUIRE(last.cell != NULL);
        REQUIRE(pthread_create(&other, NULL, give_last, &last) == 0);
        was_empty = pirn__slabs_retire(&fixture.slabs);
        if (was_empty)
            EXPECT_EQ(0, pieces_of(&fixture.counter));
        pthread_join(other, NULL);
        EXPECT_EQ(was_empty ? 0 : 1, fixture.empties);
        EXPECT_EQ(0, pieces_of(&fixture.counter));
        EXPECT_EQ(0, fixture.pieces_at_empty);
    }
}
