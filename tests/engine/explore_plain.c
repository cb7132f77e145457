/* SPDX-License-Identifier: MIT */
/* tests/engine/explore_plain.c - plain data under the explorer.
 *
 * The library is compiled with the hooks of ThreadSanitizer, which are below
 * instead of in its runtime: so every plain read and write is seen, as well as
 * what models declare PIRN_SHARED.  For each byte stand the latest read, write
 * and atomic operation of each thread; a conflicting access must happen after
 * all of them (FastTrack, C. Flanagan and S. Freund, 2009, with full vectors).
 * Happens-before does not depend on where threads are switched, so accesses to
 * plain data need no choice points.
 *
 * An access belongs to the next tick of its thread: a release that follows has
 * that tick and publishes it.
 */
#include <stdio.h>

#include "engine/explore_internal.h"

enum {
    GRANULE = 8,
    TABLE_BITS = 15,
    TABLE_SIZE = 1 << TABLE_BITS,
    TABLE_LIMIT = TABLE_SIZE * 3 / 4,
};

/* One for each byte of a granule. */
typedef uint16_t ticks __attribute__((vector_size(2 * GRANULE)));

struct granule {
    uintptr_t number; /* address / GRANULE */
    uint64_t run;     /* the execution it belongs to */
    struct explore_place wrote_at;
    struct explore_place read_at;
    ticks wrote[EXPLORE_THREADS];
    ticks read[EXPLORE_THREADS];
    ticks atomic[EXPLORE_THREADS];
};

static uint64_t run = 1;
static struct granule granules[TABLE_SIZE];
static uint32_t used[TABLE_LIMIT]; /* in this execution */
static uint32_t used_count;
static bool buried[EXPLORE_HEAP_SIZE / EXPLORE_HEAP_UNIT];

void explore_plain_keep(void)
{
    explore_snapshot_keep(&run, sizeof run);
    explore_snapshot_keep(granules, sizeof granules);
    explore_snapshot_keep(used, sizeof used);
    explore_snapshot_keep(&used_count, sizeof used_count);
    explore_snapshot_keep(buried, sizeof buried);
}

void explore_plain_reset(void)
{
    run++;
    used_count = 0;
}

/* Freed memory. */

static void mark(const void *address, size_t size, bool value)
{
    size_t offset = (size_t)((uintptr_t)address -
                             (uintptr_t)explore_heap_memory);

    if (offset < EXPLORE_HEAP_SIZE)
        memset(buried + offset / EXPLORE_HEAP_UNIT, value,
               (size + EXPLORE_HEAP_UNIT - 1) / EXPLORE_HEAP_UNIT);
}

void explore_bury(const void *address, size_t size)
{
    mark(address, size, true);
}

void explore_dig_up(const void *address, size_t size)
{
    mark(address, size, false);
}

void explore_check_alive(const void *address, size_t size,
                         struct explore_place place)
{
    size_t offset = (size_t)((uintptr_t)address -
                             (uintptr_t)explore_heap_memory);

    if (offset >= EXPLORE_HEAP_SIZE || size == 0)
        return;
    if (buried[offset / EXPLORE_HEAP_UNIT] ||
        buried[(offset + size - 1) / EXPLORE_HEAP_UNIT])
        explore_fail(EXPLORE_USE_AFTER_FREE, "freed memory is used", place);
}

/* Races. */

static uint32_t find(uintptr_t number)
{
    uint32_t i = (uint32_t)(number * 0x9e3779b97f4a7c15ULL >>
                            (64 - TABLE_BITS));

    while (granules[i].run == run && granules[i].number != number)
        i = (i + 1) & (TABLE_SIZE - 1);
    return i;
}

static struct granule *granule_of(uintptr_t number)
{
    uint32_t i = find(number);
    struct granule *granule = &granules[i];

    if (granule->run != run) {
        if (used_count == TABLE_LIMIT)
            explore_fail(EXPLORE_TOO_LARGE, "too much memory is touched",
                         EXPLORE_PLACE);
        memset(granule, 0, sizeof *granule);
        granule->number = number;
        granule->run = run;
        used[used_count++] = i;
    }
    return granule;
}

static bool any(ticks value)
{
    uint64_t half[2];

    memcpy(half, &value, sizeof half);
    return (half[0] | half[1]) != 0;
}

/* All ones for the bytes [offset, offset + size). */
static ticks mask_of(size_t offset, size_t size)
{
    static const uint16_t bits[3 * GRANULE] = {
        [GRANULE] = 0xffff, 0xffff, 0xffff, 0xffff,
        0xffff,             0xffff, 0xffff, 0xffff,
    };
    ticks from, to;

    memcpy(&from, bits + GRANULE - offset, sizeof from);
    memcpy(&to, bits + GRANULE - offset - size, sizeof to);
    return from & ~to;
}

__attribute__((noreturn, noinline)) static void
race(const struct granule *granule, bool with_write, struct explore_place place)
{
    const struct explore_place *other =
        with_write ? &granule->wrote_at : &granule->read_at;

    explore_trace(with_write ? "races: write" : "races: read",
                  (void *)(granule->number * GRANULE), 0, *other);
    explore_fail(EXPLORE_RACE,
                 with_write ? "a write does not happen before this"
                            : "an access does not happen before this write",
                 place);
}

/* Every earlier access that conflicts must happen before the running thread. */
static void check(const struct granule *granule, ticks mask,
                  enum explore_access how, struct explore_place place)
{
    const struct explore_clock *clock = explore_my_clock();
    unsigned self = explore_self();
    unsigned count = explore_thread_count();

    for (unsigned of = 0; of < count; of++) {
        ticks seen = (ticks){0} + clock->at[of];

        if (of == self)
            continue;
        if (any((ticks)(granule->wrote[of] > seen) & mask))
            race(granule, true, place);
        if (how == EXPLORE_PLAIN_WRITE &&
            any((ticks)((granule->read[of] > seen) |
                        (granule->atomic[of] > seen)) & mask))
            race(granule, false, place);
    }
}

static void note(struct granule *granule, ticks mask, enum explore_access how,
                 struct explore_place place)
{
    unsigned self = explore_self();
    ticks now = (ticks){0} + explore_my_clock()->at[self];
    ticks *slot;

    if (how == EXPLORE_ATOMIC) {
        slot = &granule->atomic[self];
        granule->read_at = place;
    } else if (how == EXPLORE_PLAIN_WRITE) {
        slot = &granule->wrote[self];
        granule->wrote_at = place;
        now += 1;
    } else {
        slot = &granule->read[self];
        granule->read_at = place;
        now += 1;
    }
    *slot = (*slot & ~mask) | (now & mask);
}

static void touch_one(uintptr_t number, size_t offset, size_t size,
                      enum explore_access how, struct explore_place place)
{
    struct granule *granule = granule_of(number);
    ticks mask = mask_of(offset, size);

    check(granule, mask, how, place);
    note(granule, mask, how, place);
}

void explore_touch(const void *address, size_t size, enum explore_access how,
                   struct explore_place place)
{
    uintptr_t at = (uintptr_t)address;

    if (!explore_active())
        return;
    explore_check_alive(address, size, place);
    if (explore_alone())
        return;
    while (size > 0) {
        size_t offset = at % GRANULE;
        size_t part = size < GRANULE - offset ? size : GRANULE - offset;

        touch_one(at / GRANULE, offset, part, how, place);
        at += part;
        size -= part;
    }
}

void explore_cell(const void *address, size_t size, bool write,
                  struct explore_place place)
{
    if (!explore_active())
        return;
    explore_touch(address, size,
                  write ? EXPLORE_PLAIN_WRITE : EXPLORE_PLAIN_READ, place);
    explore_trace(write ? "cell write" : "cell read", address, 0, place);
}

/* The end of a piece of memory comes after all that was done with it.  Only
 * what was touched at all is looked at. */
static void end_of(const void *address, size_t size, struct explore_place place)
{
    uintptr_t first = (uintptr_t)address / GRANULE;
    uintptr_t last = ((uintptr_t)address + size - 1) / GRANULE;

    for (uint32_t i = 0; i < used_count; i++) {
        struct granule *granule = &granules[used[i]];

        if (granule->number >= first && granule->number <= last)
            check(granule, mask_of(0, GRANULE), EXPLORE_PLAIN_WRITE, place);
    }
}

void explore_hide(const void *address, size_t size, struct explore_place place)
{
    if (!explore_active() || size == 0)
        return;
    if (!explore_alone())
        end_of(address, size, place);
    explore_bury(address, size);
}

void explore_show(const void *address, size_t size)
{
    if (explore_active())
        explore_dig_up(address, size);
}

/* The hooks that the compiler calls.  Their names are the compiler's. */

#define HOOK_PLACE \
    ((struct explore_place){NULL, 0, __builtin_return_address(0)})

#define HOOK(name, size, how) \
    void __tsan_##name(const void *address); \
    void __tsan_##name(const void *address) \
    { \
        if (explore_active()) \
            explore_touch(address, size, how, HOOK_PLACE); \
    }

#define HOOKS(size) \
    HOOK(read##size, size, EXPLORE_PLAIN_READ) \
    HOOK(write##size, size, EXPLORE_PLAIN_WRITE) \
    HOOK(unaligned_read##size, size, EXPLORE_PLAIN_READ) \
    HOOK(unaligned_write##size, size, EXPLORE_PLAIN_WRITE)

HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

void __tsan_read_range(const void *address, size_t size);
void __tsan_read_range(const void *address, size_t size)
{
    if (explore_active())
        explore_touch(address, size, EXPLORE_PLAIN_READ, HOOK_PLACE);
}

void __tsan_write_range(const void *address, size_t size);
void __tsan_write_range(const void *address, size_t size)
{
    if (explore_active())
        explore_touch(address, size, EXPLORE_PLAIN_WRITE, HOOK_PLACE);
}

/* The C library is not instrumented: the build renames these calls; clang calls
 * hooks of its own where it copies by itself. */

#define COPY(name, function) \
    void *name(void *to, const void *from, size_t size); \
    void *name(void *to, const void *from, size_t size) \
    { \
        if (explore_active()) { \
            explore_touch(from, size, EXPLORE_PLAIN_READ, HOOK_PLACE); \
            explore_touch(to, size, EXPLORE_PLAIN_WRITE, HOOK_PLACE); \
        } \
        return function(to, from, size); \
    }

#define FILL(name) \
    void *name(void *to, int byte, size_t size); \
    void *name(void *to, int byte, size_t size) \
    { \
        if (explore_active()) \
            explore_touch(to, size, EXPLORE_PLAIN_WRITE, HOOK_PLACE); \
        return memset(to, byte, size); \
    }

COPY(explore_memcpy, memcpy)
COPY(__tsan_memcpy, memcpy)
COPY(__tsan_memmove, memmove)
FILL(explore_memset)
FILL(__tsan_memset)

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_func_entry(const void *caller);
void __tsan_func_entry(const void *caller)
{
    (void)caller;
}

void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}
