/* SPDX-License-Identifier: MIT */
/* tests/engine/explore_memory.c - the memory of the explorer.
 *
 * Each location keeps its stores in the order in which they were executed, each
 * with the clock of its thread and, if it releases, the clock that an acquiring
 * reader takes over.  A load may see any store that is not hidden:
 *
 *   by happens-before   a later store that the reader's clock covers
 *   by coherence        a store that the reader, or a read that happens before
 *                       it, has gone past
 *   by seq_cst          for a seq_cst load: the latest store that a seq_cst
 *                       operation made or saw
 *
 * Cells follow FastTrack (C. Flanagan and S. Freund, 2009): the last write and
 * each thread's last read must happen before what conflicts with them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine/explore_internal.h"

enum {
    MAX_STORES = 64,  /* of one location, in one execution */
    MAX_READS = 24,   /* steps of what one thread saw of one location */
    TABLE_SIZE = 4096, /* locations and cells; a power of two */
    HEAP_SIZE = 1 << 20,
    HEAP_UNIT = 16,
};

struct store {
    uint64_t value;
    int thread;
    uint16_t tick;              /* of its thread */
    struct explore_clock sync;  /* what an acquire takes over */
};

/* From `tick` of the reading thread on, it has seen store `index`. */
struct seen {
    uint16_t tick;
    uint16_t index;
};

struct location {
    const void *address; /* NULL: unused */
    uint64_t run;        /* the execution it belongs to */
    size_t size;
    int count;
    int sc_floor;
    struct store stores[MAX_STORES];
    int seen_count[EXPLORE_THREADS];
    struct seen seen[EXPLORE_THREADS][MAX_READS];
    /* Of a lock. */
    bool held;
    struct explore_clock lock_clock;
};

struct cell {
    const void *address;
    uint64_t run;
    int writer;
    uint16_t write_tick;
    uint16_t read_tick[EXPLORE_THREADS];
};

static uint64_t run = 1;
static struct location locations[TABLE_SIZE];
static struct cell cells[TABLE_SIZE];

static char heap[HEAP_SIZE] __attribute__((aligned(4096)));
static size_t heap_used;
static size_t heap_out;
static bool heap_freed[HEAP_SIZE / HEAP_UNIT];

static size_t hash(const void *address)
{
    return (size_t)(((uintptr_t)address >> 2) * 0x9e3779b97f4a7c15ULL >> 40) &
           (TABLE_SIZE - 1);
}

void explore_memory_reset(void)
{
    run++;
    memset(heap_freed, 0, (heap_used + HEAP_UNIT - 1) / HEAP_UNIT);
    heap_used = 0;
    heap_out = 0;
}

static uint64_t read_plain(const void *address, size_t size)
{
    uint64_t value = 0;

    memcpy(&value, address, size);
    return value;
}

/* The location, made with its present content as a store that everybody has
 * seen. */
static struct location *location_of(const void *address, size_t size)
{
    size_t i = hash(address);

    while (locations[i].run == run && locations[i].address != address)
        i = (i + 1) & (TABLE_SIZE - 1);

    struct location *location = &locations[i];

    if (location->run != run) {
        location->run = run;
        location->address = address;
        location->size = size;
        location->count = 1;
        location->sc_floor = 0;
        location->stores[0] =
            (struct store){.value = read_plain(address, size)};
        memset(location->seen_count, 0, sizeof location->seen_count);
        location->held = false;
        memset(&location->lock_clock, 0, sizeof location->lock_clock);
    }
    return location;
}

void explore_check_alive(const void *address, struct explore_place place)
{
    size_t offset = (size_t)((uintptr_t)address - (uintptr_t)heap);

    if ((uintptr_t)address >= (uintptr_t)heap && offset < HEAP_SIZE &&
        heap_freed[offset / HEAP_UNIT])
        explore_fail(EXPLORE_USE_AFTER_FREE, "freed memory is used", place);
}

static uint16_t tick(void)
{
    return ++explore_my_clock()->at[explore_self()];
}

/* The newest store that thread `of` had seen when it was at `tick_limit`. */
static int seen_by(const struct location *location, unsigned of,
                   uint16_t tick_limit)
{
    for (int i = location->seen_count[of] - 1; i >= 0; i--) {
        if (location->seen[of][i].tick <= tick_limit)
            return location->seen[of][i].index;
    }
    return 0;
}

/* The oldest store that the running thread may see. */
static int floor_of(const struct location *location)
{
    const struct explore_clock *clock = explore_my_clock();
    int floor = 0;

    for (int i = location->count - 1; i > floor; i--) {
        const struct store *store = &location->stores[i];

        if (store->tick <= clock->at[store->thread])
            floor = i;
    }
    for (unsigned of = 0; of < EXPLORE_THREADS; of++) {
        int seen = seen_by(location, of, clock->at[of]);

        if (floor < seen)
            floor = seen;
    }
    return floor;
}

static void note_seen(struct location *location, int index,
                      struct explore_place place)
{
    unsigned self = explore_self();
    int *count = &location->seen_count[self];
    uint16_t now = tick();

    if (*count > 0 && location->seen[self][*count - 1].index == index)
        return;
    if (*count == MAX_READS)
        explore_fail(EXPLORE_TOO_LARGE, "too many reads of one place", place);
    location->seen[self][(*count)++] = (struct seen){now, (uint16_t)index};
}

static bool acquires(enum explore_order order)
{
    return order == EXPLORE_acquire || order == EXPLORE_acq_rel ||
           order == EXPLORE_seq_cst;
}

static bool releases(enum explore_order order)
{
    return order == EXPLORE_release || order == EXPLORE_acq_rel ||
           order == EXPLORE_seq_cst;
}

static void see(struct location *location, int index, enum explore_order order,
                struct explore_place place)
{
    note_seen(location, index, place);
    if (acquires(order))
        explore_clock_join(explore_my_clock(), &location->stores[index].sync);
    if (order == EXPLORE_seq_cst && location->sc_floor < index)
        location->sc_floor = index;
}

static void append(struct location *location, void *address, uint64_t value,
                   enum explore_order order, const struct explore_clock *chain,
                   struct explore_place place)
{
    struct store *store = &location->stores[location->count];

    if (location->count == MAX_STORES)
        explore_fail(EXPLORE_TOO_LARGE, "too many stores to one place", place);
    *store = (struct store){.value = value, .thread = (int)explore_self()};
    store->tick = tick();
    if (chain != NULL)
        store->sync = *chain;
    if (releases(order))
        explore_clock_join(&store->sync, explore_my_clock());
    if (order == EXPLORE_seq_cst)
        location->sc_floor = location->count;
    location->count++;
    memcpy(address, &value, location->size);
}

static void announce(const char *what, const void *address, size_t size,
                     bool write, struct explore_place place)
{
    struct explore_op op = {what, (uintptr_t)address, size, write, place};

    explore_point(&op);
    explore_check_alive(address, place);
}

uint64_t explore_load(const void *address, size_t size,
                      enum explore_order order, struct explore_place place)
{
    struct location *location;
    int floor;
    int index;

    if (!explore_active())
        return read_plain(address, size);
    announce("load", address, size, false, place);
    location = location_of(address, size);
    floor = floor_of(location);
    if (order == EXPLORE_seq_cst && floor < location->sc_floor)
        floor = location->sc_floor;
    index = location->count - 1 -
            (int)explore_choose((unsigned)(location->count - floor));
    see(location, index, order, place);
    explore_trace(index == location->count - 1 ? "load" : "load (stale)",
                  address, location->stores[index].value, place);
    return location->stores[index].value;
}

void explore_store(void *address, size_t size, uint64_t value,
                   enum explore_order order, struct explore_place place)
{
    if (!explore_active()) {
        memcpy(address, &value, size);
        return;
    }
    announce("store", address, size, true, place);
    append(location_of(address, size), address, value, order, NULL, place);
    explore_trace("store", address, value, place);
}

static uint64_t apply(enum explore_rmw what, uint64_t old, uint64_t operand,
                      size_t size)
{
    uint64_t mask = size == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * size)) - 1;

    switch (what) {
    case EXPLORE_SWAP:
        return operand & mask;
    case EXPLORE_ADD:
        return (old + operand) & mask;
    case EXPLORE_SUB:
        return (old - operand) & mask;
    case EXPLORE_OR:
        return (old | operand) & mask;
    case EXPLORE_AND:
        return old & operand & mask;
    }
    abort();
}

/* Read the newest store and put a new one right behind it. */
static uint64_t replace(struct location *location, void *address,
                        uint64_t value, enum explore_order order,
                        struct explore_place place)
{
    int last = location->count - 1;
    uint64_t old = location->stores[last].value;
    struct explore_clock chain = location->stores[last].sync;

    see(location, last, order, place);
    append(location, address, value, order, &chain, place);
    return old;
}

uint64_t explore_rmw(void *address, size_t size, enum explore_rmw what,
                     uint64_t operand, enum explore_order order,
                     struct explore_place place)
{
    struct location *location;
    uint64_t old;
    uint64_t value;

    if (!explore_active()) {
        old = read_plain(address, size);
        value = apply(what, old, operand, size);
        memcpy(address, &value, size);
        return old;
    }
    announce("rmw", address, size, true, place);
    location = location_of(address, size);
    old = location->stores[location->count - 1].value;
    value = apply(what, old, operand, size);
    (void)replace(location, address, value, order, place);
    explore_trace("rmw", address, value, place);
    return old;
}

bool explore_cas(void *address, size_t size, uint64_t *expected,
                 uint64_t desired, enum explore_order order,
                 enum explore_order failure_order, bool weak,
                 struct explore_place place)
{
    struct location *location;
    uint64_t found;

    if (!explore_active()) {
        found = read_plain(address, size);
        if (found != *expected) {
            *expected = found;
            return false;
        }
        memcpy(address, &desired, size);
        return true;
    }
    announce("cas", address, size, true, place);
    location = location_of(address, size);
    found = location->stores[location->count - 1].value;
    if (found != *expected || (weak && explore_spurious())) {
        see(location, location->count - 1, failure_order, place);
        explore_trace("cas (failed)", address, found, place);
        *expected = found;
        return false;
    }
    (void)replace(location, address, desired, order, place);
    explore_trace("cas", address, desired, place);
    return true;
}

void explore_init(void *address, size_t size, uint64_t value)
{
    memcpy(address, &value, size);
    if (explore_active()) {
        struct location *location = location_of(address, size);

        /* A new object: nobody may have a claim on an older one here. */
        location->count = 1;
        location->sc_floor = 0;
        location->stores[0] = (struct store){.value = value};
        memset(location->seen_count, 0, sizeof location->seen_count);
    }
}

void explore_lock(void *address, struct explore_place place)
{
    struct location *location;

    if (!explore_active())
        return;
    announce("lock", address, 4, true, place);
    /* Ends: whoever holds it unlocks, or nobody can go on, which is found. */
    while ((location = location_of(address, 4))->held) {
        explore_block(EXPLORE_BLOCK_LOCK, address, place);
        explore_check_alive(address, place);
    }
    location->held = true;
    explore_clock_join(explore_my_clock(), &location->lock_clock);
    tick();
    explore_trace("lock", address, 1, place);
}

void explore_unlock(void *address, struct explore_place place)
{
    struct location *location;

    if (!explore_active())
        return;
    announce("unlock", address, 4, true, place);
    location = location_of(address, 4);
    explore_check(location->held, "an unlocked lock was held", place);
    location->held = false;
    tick();
    location->lock_clock = *explore_my_clock();
    explore_trace("unlock", address, 0, place);
    explore_unblock(EXPLORE_BLOCK_LOCK, address, EXPLORE_THREADS);
}

/* Cells. */

static struct cell *cell_of(const void *address)
{
    size_t i = hash(address);

    while (cells[i].run == run && cells[i].address != address)
        i = (i + 1) & (TABLE_SIZE - 1);
    if (cells[i].run != run)
        cells[i] = (struct cell){.address = address, .run = run};
    return &cells[i];
}

void explore_cell(const void *address, size_t size, bool write,
                  struct explore_place place)
{
    const struct explore_clock *clock;
    struct cell *cell;
    unsigned self = explore_self();

    (void)size;
    if (!explore_active())
        return;
    explore_check_alive(address, place);
    clock = explore_my_clock();
    cell = cell_of(address);
    if (cell->write_tick > clock->at[cell->writer])
        explore_fail(EXPLORE_RACE, "a write that does not happen before",
                     place);
    for (int i = 0; write && i < EXPLORE_THREADS; i++) {
        if (cell->read_tick[i] > clock->at[i])
            explore_fail(EXPLORE_RACE, "a read that does not happen before",
                         place);
    }
    if (write) {
        cell->writer = (int)self;
        cell->write_tick = tick();
    } else {
        cell->read_tick[self] = tick();
    }
    explore_trace(write ? "cell write" : "cell read", address, 0, place);
}

/* The heap: memory is never reused within an execution. */

static void *heap_take(void *ctx, size_t size, size_t align)
{
    size_t start = (heap_used + align - 1) & ~(align - 1);
    size_t rounded = (size + HEAP_UNIT - 1) & ~(size_t)(HEAP_UNIT - 1);

    (void)ctx;
    if (align < HEAP_UNIT)
        start = (heap_used + HEAP_UNIT - 1) & ~(size_t)(HEAP_UNIT - 1);
    if (start + rounded > HEAP_SIZE)
        return NULL;
    heap_used = start + rounded;
    heap_out++;
    return heap + start;
}

static void heap_give(void *ctx, void *memory, size_t size, size_t align)
{
    size_t first = (size_t)((char *)memory - heap) / HEAP_UNIT;
    size_t units = (size + HEAP_UNIT - 1) / HEAP_UNIT;

    (void)ctx;
    (void)align;
    if (explore_active())
        announce("free", memory, size, true, EXPLORE_PLACE);
    heap_out--;
    memset(heap_freed + first, 1, units);
    explore_trace("free", memory, size, EXPLORE_PLACE);
}

const pirn_alloc explore_heap = {.take = heap_take, .give = heap_give};

size_t explore_heap_out(void)
{
    return heap_out;
}
