/* SPDX-License-Identifier: MIT */
/* tests/engine/explore_memory.c - the atomics of the explorer.
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
 *   by patience         the same old store a third time in a row: caches do not
 *                       stay stale for ever, and loops on them must end
 *
 * A compare-and-swap that fails is such a load, too.
 */
#include <stdlib.h>

#include "engine/explore_internal.h"

enum {
    MAX_STORES = 64, /* of one location, in one execution */
    MAX_READS = 32,  /* steps of what one thread saw of one location */
    TABLE_BITS = 12, /* locations */
    TABLE_SIZE = 1 << TABLE_BITS,
    TABLE_LIMIT = TABLE_SIZE * 3 / 4,
    PATIENCE = 2,
};

struct store {
    uint64_t value;
    int thread;
    uint16_t tick;             /* of its thread */
    struct explore_clock sync; /* what an acquire takes over */
};

/* From `tick` of the reading thread on, it has seen store `index`. */
struct seen {
    uint16_t tick;
    uint16_t index;
};

struct location {
    const void *address;
    uint64_t run; /* the execution it belongs to */
    size_t size;
    int count;
    int sc_floor;
    struct store stores[MAX_STORES];
    int seen_count[EXPLORE_THREADS];
    struct seen seen[EXPLORE_THREADS][MAX_READS];
    struct {
        int index; /* the stale store that was read last */
        int count; /* how often in a row */
    } stale[EXPLORE_THREADS];
    /* Of a lock. */
    bool held;
    struct explore_clock lock_clock;
};

static uint64_t run = 1;
static struct location locations[TABLE_SIZE];
static int location_count;

void explore_memory_keep(void)
{
    explore_snapshot_keep(&run, sizeof run);
    explore_snapshot_keep(locations, sizeof locations);
    explore_snapshot_keep(&location_count, sizeof location_count);
}

void explore_memory_reset(void)
{
    run++;
    location_count = 0;
}

static uint64_t read_plain(const void *address, size_t size)
{
    uint64_t value = 0;

    memcpy(&value, address, size);
    return value;
}

static struct location *find(const void *address)
{
    size_t i = (size_t)((uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15ULL >>
                        (64 - TABLE_BITS));

    while (locations[i].run == run && locations[i].address != address)
        i = (i + 1) & (TABLE_SIZE - 1);
    return &locations[i];
}

/* One store, which everybody has seen. */
static void begin(struct location *location, size_t size, uint64_t value)
{
    location->size = size;
    location->count = 1;
    location->sc_floor = 0;
    location->stores[0] = (struct store){.value = value};
    memset(location->seen_count, 0, sizeof location->seen_count);
    memset(location->stale, 0, sizeof location->stale);
    location->held = false;
    memset(&location->lock_clock, 0, sizeof location->lock_clock);
}

/* The location, made with its present content.  What was written there by plain
 * code is the first content of a new object: that nobody had a claim on the old
 * one any more is checked elsewhere. */
static struct location *location_of(const void *address, size_t size)
{
    struct location *location = find(address);
    uint64_t content = read_plain(address, size);

    if (location->run != run) {
        if (++location_count == TABLE_LIMIT)
            explore_fail(EXPLORE_TOO_LARGE, "too many atomics", EXPLORE_PLACE);
        location->run = run;
        location->address = address;
        begin(location, size, content);
    } else if (location->size != size ||
               location->stores[location->count - 1].value != content) {
        begin(location, size, content);
    }
    return location;
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
static int floor_of(const struct location *location, enum explore_order order)
{
    const struct explore_clock *clock = explore_my_clock();
    unsigned self = explore_self();
    int newest = location->count - 1;
    int floor = order == EXPLORE_seq_cst ? location->sc_floor : 0;

    if (!explore_may_be_stale())
        return newest;
    for (int i = newest; i > floor; i--) {
        const struct store *store = &location->stores[i];

        if (store->tick <= clock->at[store->thread])
            floor = i;
    }
    for (unsigned of = 0; of < EXPLORE_THREADS; of++) {
        int seen = seen_by(location, of, clock->at[of]);

        if (floor < seen)
            floor = seen;
    }
    if (location->stale[self].count >= PATIENCE &&
        location->stale[self].index == floor && floor < newest)
        floor++;
    return floor;
}

static void note_stale(struct location *location, int index)
{
    unsigned self = explore_self();

    if (index == location->count - 1)
        return;
    explore_was_stale();
    if (location->stale[self].index != index)
        location->stale[self].count = 0;
    location->stale[self].index = index;
    location->stale[self].count++;
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
    note_stale(location, index);
    note_seen(location, index, place);
    if (acquires(order))
        explore_clock_join(explore_my_clock(), &location->stores[index].sync);
    if (order == EXPLORE_seq_cst && location->sc_floor < index)
        location->sc_floor = index;
    explore_touch(location->address, location->size, EXPLORE_ATOMIC, place);
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
    explore_touch(address, location->size, EXPLORE_ATOMIC, place);
}

static void announce(const void *address, size_t size, bool write,
                     enum explore_order order, struct explore_place place)
{
    struct explore_op op = {
        .address = (uintptr_t)address,
        .size = size,
        .write = write,
        .seq_cst = order == EXPLORE_seq_cst,
        .place = place,
    };

    explore_point(&op);
    explore_check_alive(address, size, place);
}

uint64_t explore_load(const void *address, size_t size,
                      enum explore_order order, struct explore_place place)
{
    struct location *location;
    int newest;
    int index;

    if (!explore_active())
        return read_plain(address, size);
    announce(address, size, false, order, place);
    location = location_of(address, size);
    newest = location->count - 1;
    index = newest - (int)explore_choose(
                         (unsigned)(newest - floor_of(location, order) + 1));
    see(location, index, order, place);
    explore_trace(index == newest ? "load" : "load (stale)", address,
                  location->stores[index].value, place);
    return location->stores[index].value;
}

void explore_store(void *address, size_t size, uint64_t value,
                   enum explore_order order, struct explore_place place)
{
    if (!explore_active()) {
        memcpy(address, &value, size);
        return;
    }
    announce(address, size, true, order, place);
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
static void replace(struct location *location, void *address, uint64_t value,
                    enum explore_order order, struct explore_place place)
{
    int last = location->count - 1;
    struct explore_clock chain = location->stores[last].sync;

    see(location, last, order, place);
    append(location, address, value, order, &chain, place);
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
    announce(address, size, true, order, place);
    location = location_of(address, size);
    old = location->stores[location->count - 1].value;
    value = apply(what, old, operand, size);
    replace(location, address, value, order, place);
    explore_trace("rmw", address, value, place);
    return old;
}

/* Choose what a compare-and-swap reads: -1 if it is to succeed, else the store
 * that is not what it expected.  An old one counts as a failure for no reason:
 * loops would multiply them without end. */
static int choose_cas(const struct location *location, uint64_t expected,
                      enum explore_order failure_order, bool weak)
{
    int newest = location->count - 1;
    int floor = floor_of(location, failure_order);
    bool matches = location->stores[newest].value == expected;
    int candidates[MAX_STORES];
    unsigned count = 0;

    if (matches && weak)
        candidates[count++] = newest;
    for (int i = newest - 1; i >= floor; i--) {
        if (location->stores[i].value != expected)
            candidates[count++] = i;
    }
    if (count == 0 || !explore_spurious())
        return matches ? -1 : newest;
    return candidates[explore_choose(count)];
}

static bool cas_plain(void *address, size_t size, uint64_t *expected,
                      uint64_t desired)
{
    uint64_t found = read_plain(address, size);

    if (found != *expected) {
        *expected = found;
        return false;
    }
    memcpy(address, &desired, size);
    return true;
}

bool explore_cas(void *address, size_t size, uint64_t *expected,
                 uint64_t desired, enum explore_order order,
                 enum explore_order failure_order, bool weak,
                 struct explore_place place)
{
    struct location *location;
    int index;

    if (!explore_active())
        return cas_plain(address, size, expected, desired);
    announce(address, size, true, order, place);
    location = location_of(address, size);
    index = choose_cas(location, *expected, failure_order, weak);
    if (index < 0) {
        replace(location, address, desired, order, place);
        explore_trace("cas", address, desired, place);
        return true;
    }
    *expected = location->stores[index].value;
    see(location, index, failure_order, place);
    explore_trace(index == location->count - 1 ? "cas (failed)"
                                               : "cas (stale)",
                  address, *expected, place);
    return false;
}

void explore_init(void *address, size_t size, uint64_t value,
                  struct explore_place place)
{
    explore_touch(address, size, EXPLORE_PLAIN_WRITE, place);
    memcpy(address, &value, size);
    if (explore_active())
        begin(location_of(address, size), size, value);
}

/* Locks. */

bool explore_lock_is_held(const void *address)
{
    const struct location *location = find(address);

    return location->run == run && location->held;
}

void explore_lock(void *address, struct explore_place place)
{
    struct explore_op op = {
        .address = (uintptr_t)address,
        .size = 4,
        .write = true,
        .lock = true,
        .place = place,
    };
    struct location *location;

    if (!explore_active())
        return;
    /* Returns once it is free. */
    explore_point(&op);
    explore_check_alive(address, 4, place);
    location = location_of(address, 4);
    explore_check(!location->held, "the lock was free", place);
    location->held = true;
    explore_clock_join(explore_my_clock(), &location->lock_clock);
    tick();
    explore_touch(address, 4, EXPLORE_ATOMIC, place);
    explore_trace("lock", address, 1, place);
}

void explore_unlock(void *address, struct explore_place place)
{
    struct location *location;

    if (!explore_active())
        return;
    explore_check_alive(address, 4, place);
    location = location_of(address, 4);
    explore_check(location->held, "an unlocked lock was held", place);
    location->held = false;
    tick();
    location->lock_clock = *explore_my_clock();
    explore_touch(address, 4, EXPLORE_ATOMIC, place);
    explore_trace("unlock", address, 0, place);
    explore_released(address, 4);
}
