/* SPDX-License-Identifier: MIT */
/* src/time/wheel.c - nine levels of 64 slots, each 64 times as coarse as the
 * one below.
 *
 * Level 0 has one slot a tick.  The level of an entry is the highest group of
 * six bits in which its tick differs from `elapsed`, its slot is that group of
 * its tick.  So ticks never wrap: 54 bits of ticks are all the times there are.
 *
 * Invariants
 *   - Every entry in a slot has tick > elapsed and stands exactly where its
 *     tick and the present `elapsed` put it.  Hence on each level the occupied
 *     slots lie beyond that group of `elapsed`, and everything on a level comes
 *     before everything on the next: the earliest slot is the lowest bit of the
 *     lowest level.  Entries of one tick share a slot, in order of insertion.
 *   - An entry in `due` has tick <= elapsed; `due` is ordered by time, and
 *     entries of one time stand in order of insertion.
 *   - `elapsed` steps from occupied slot to occupied slot, and no further while
 *     `due` holds anything.  It passes a slot only by emptying it.
 *
 * A tick is when_ns rounded down and `due` is looked at by the nanosecond, so
 * an entry comes out at its time exactly: not early, and not a tick late, which
 * a clock advanced by hand to that very time would wait for in vain.
 *
 * An empty wheel whose `elapsed` lies far back costs one cascade for each level
 * at most when it is next popped.
 */
#include "time/wheel.h"

#include "base/assert.h"
#include "base/list.h"

enum {
    TICK_SHIFT = PIRN__WHEEL_TICK_SHIFT,
    SLOT_BITS = PIRN__WHEEL_SLOT_BITS,
    LEVELS = PIRN__WHEEL_LEVELS,
    NEXT_SCAN = 16, /* entries looked at for the exact next time */
    SORT_BITS = 5,  /* digits of a time within a tick: two passes */
    SORT_BINS = 1 << SORT_BITS,
};

_Static_assert(TICK_SHIFT + LEVELS * SLOT_BITS == 64, "every time has a slot");
_Static_assert(TICK_SHIFT % SORT_BITS == 0, "whole digits in a tick");

static pirn_timer *timer_of(pirn_link *link)
{
    return PIRN_CONTAINER_OF(link, pirn_timer, link_);
}

static uint64_t tick_of(const pirn_timer *timer)
{
    return timer->when_ns_ >> TICK_SHIFT;
}

static uint32_t lowest_bit(uint64_t bits)
{
    return (uint32_t)__builtin_ctzll(bits);
}

/* The level of a tick that differs from `elapsed`. */
static uint32_t level_for(uint64_t tick, uint64_t elapsed)
{
    return (63 - (uint32_t)__builtin_clzll(tick ^ elapsed)) / SLOT_BITS;
}

static uint32_t slot_for(uint64_t tick, uint32_t level)
{
    return (uint32_t)(tick >> (level * SLOT_BITS)) & (PIRN__WHEEL_SLOTS - 1);
}

/* The first tick of a slot on a level, as seen from `elapsed`. */
static uint64_t slot_start(uint64_t elapsed, uint32_t level, uint32_t slot)
{
    uint32_t shift = level * SLOT_BITS;
    uint64_t group = elapsed >> shift;

    return ((group & ~(uint64_t)(PIRN__WHEEL_SLOTS - 1)) | slot) << shift;
}

/* The earliest occupied slot; false if all are empty. */
static bool find_earliest(const struct pirn__wheel *wheel, uint32_t *level,
                          uint32_t *slot)
{
    for (uint32_t i = 0; i < LEVELS; i++) {
        if (wheel->occupied[i] == 0)
            continue;
        *level = i;
        *slot = lowest_bit(wheel->occupied[i]);
        return true;
    }
    return false;
}

static void place(struct pirn__wheel *wheel, pirn_timer *timer)
{
    uint64_t tick = tick_of(timer);
    uint32_t level = level_for(tick, wheel->elapsed);
    uint32_t slot = slot_for(tick, level);

    timer->level_ = (uint8_t)level;
    timer->slot_ = (uint8_t)slot;
    pirn__list_push_tail(&wheel->slots[level][slot], &timer->link_);
    wheel->occupied[level] |= 1ull << slot;
}

/* Order entries of one tick by time, those of one time by their order so far: a
 * radix sort of the bits below the tick. */
static void sort_tick(pirn_link *list)
{
    pirn_link bins[SORT_BINS];

    for (uint32_t shift = 0; shift < TICK_SHIFT; shift += SORT_BITS) {
        pirn_link *link;

        for (uint32_t i = 0; i < SORT_BINS; i++)
            pirn__list_init(&bins[i]);
        while ((link = pirn__list_pop_head(list)) != NULL) {
            uint64_t digit = timer_of(link)->when_ns_ >> shift;

            pirn__list_push_tail(&bins[digit & (SORT_BINS - 1)], link);
        }
        for (uint32_t i = 0; i < SORT_BINS; i++)
            pirn__list_splice_tail(list, &bins[i]);
    }
}

/* Empty a slot whose first tick is `elapsed`: what falls on that tick becomes
 * due, the rest finds its place on a lower level. */
static void open_slot(struct pirn__wheel *wheel, uint32_t level, uint32_t slot)
{
    pirn_link *list = &wheel->slots[level][slot];
    uint64_t last_ns = 0;
    bool is_sorted = true;
    pirn_link *link;

    wheel->occupied[level] &= ~(1ull << slot);
    /* Ends: place() puts nothing back here, since the level of every entry has
     * become lower. */
    while ((link = pirn__list_pop_head(list)) != NULL) {
        pirn_timer *timer = timer_of(link);

        if (tick_of(timer) != wheel->elapsed) {
            place(wheel, timer);
            continue;
        }
        timer->level_ = PIRN__WHEEL_DUE;
        is_sorted = is_sorted && timer->when_ns_ >= last_ns;
        last_ns = timer->when_ns_;
        pirn__list_push_tail(&wheel->due, link);
    }
    if (!is_sorted)
        sort_tick(&wheel->due);
}

/* Move `elapsed` to the next tick that has entries, or to `target` if none has
 * until then.  Nothing is due yet. */
static void advance(struct pirn__wheel *wheel, uint64_t target)
{
    /* Ends: each turn opens a slot, and an entry is in at most one opened slot
     * of each level. */
    while (wheel->elapsed < target && pirn__list_empty(&wheel->due)) {
        uint64_t start = UINT64_MAX;
        uint32_t level;
        uint32_t slot;

        if (find_earliest(wheel, &level, &slot))
            start = slot_start(wheel->elapsed, level, slot);
        if (start > target) {
            wheel->elapsed = target;
            return;
        }
        wheel->elapsed = start;
        open_slot(wheel, level, slot);
    }
}

/* Enter a timer that is due behind those that are not later.  Times mostly
 * rise, and `due` holds no more than one tick and what was entered late, so the
 * walk is short. */
static void insert_due(struct pirn__wheel *wheel, pirn_timer *timer)
{
    pirn_link *before = wheel->due.prev_;

    while (before != &wheel->due &&
           timer_of(before)->when_ns_ > timer->when_ns_)
        before = before->prev_;
    timer->level_ = PIRN__WHEEL_DUE;
    pirn__list_push_head(before, &timer->link_);
}

/* The least time among the first entries of a slot; false if it has more. */
static bool scan_slot(const pirn_link *list, uint64_t *earliest_ns)
{
    uint32_t count = 0;

    *earliest_ns = UINT64_MAX;
    for (pirn_link *link = list->next_; link != list; link = link->next_) {
        uint64_t when_ns = timer_of(link)->when_ns_;

        count++;
        if (count > NEXT_SCAN)
            return false;
        if (when_ns < *earliest_ns)
            *earliest_ns = when_ns;
    }
    return true;
}

void pirn__wheel_init(struct pirn__wheel *wheel, uint64_t now_ns)
{
    wheel->elapsed = now_ns >> TICK_SHIFT;
    wheel->latest_ns = now_ns;
    wheel->count = 0;
    pirn__list_init(&wheel->due);
    for (uint32_t level = 0; level < LEVELS; level++) {
        wheel->occupied[level] = 0;
        for (uint32_t slot = 0; slot < PIRN__WHEEL_SLOTS; slot++)
            pirn__list_init(&wheel->slots[level][slot]);
    }
}

void pirn__wheel_insert(struct pirn__wheel *wheel, pirn_timer *timer)
{
    wheel->count++;
    if (tick_of(timer) <= wheel->elapsed)
        insert_due(wheel, timer);
    else
        place(wheel, timer);
}

void pirn__wheel_remove(struct pirn__wheel *wheel, pirn_timer *timer)
{
    PIRN_DASSERT(wheel->count > 0 && pirn__list_linked(&timer->link_));
    wheel->count--;
    pirn__list_remove(&timer->link_);
    if (timer->level_ == PIRN__WHEEL_DUE)
        return;
    if (pirn__list_empty(&wheel->slots[timer->level_][timer->slot_]))
        wheel->occupied[timer->level_] &= ~(1ull << timer->slot_);
}

uint64_t pirn__wheel_next_ns(const struct pirn__wheel *wheel)
{
    const pirn_link *first = pirn__list_first(&wheel->due);
    uint64_t earliest_ns;
    uint32_t level;
    uint32_t slot;

    if (first != NULL)
        return PIRN_CONTAINER_OF(first, pirn_timer, link_)->when_ns_;
    if (!find_earliest(wheel, &level, &slot))
        return UINT64_MAX;
    if (scan_slot(&wheel->slots[level][slot], &earliest_ns))
        return earliest_ns;
    return slot_start(wheel->elapsed, level, slot) << TICK_SHIFT;
}

pirn_timer *pirn__wheel_pop(struct pirn__wheel *wheel, uint64_t now_ns)
{
    pirn_timer *timer;

    if (now_ns < wheel->latest_ns)
        now_ns = wheel->latest_ns;
    wheel->latest_ns = now_ns;
    advance(wheel, now_ns >> TICK_SHIFT);
    if (pirn__list_empty(&wheel->due))
        return NULL;
    timer = timer_of(wheel->due.next_);
    if (timer->when_ns_ > now_ns)
        return NULL;
    pirn__wheel_remove(wheel, timer);
    return timer;
}

pirn_timer *pirn__wheel_pop_any(struct pirn__wheel *wheel)
{
    pirn_link *link = pirn__list_first(&wheel->due);
    uint32_t level;
    uint32_t slot;

    if (link == NULL && find_earliest(wheel, &level, &slot))
        link = pirn__list_first(&wheel->slots[level][slot]);
    if (link == NULL)
        return NULL;
    pirn__wheel_remove(wheel, timer_of(link));
    return timer_of(link);
}

static size_t slot_validate(const struct pirn__wheel *wheel, uint32_t level,
                            uint32_t slot)
{
    const pirn_link *list = &wheel->slots[level][slot];
    size_t count = 0;

    for (pirn_link *link = list->next_; link != list; link = link->next_) {
        pirn_timer *timer = timer_of(link);
        uint64_t tick = tick_of(timer);

        PIRN_ASSERT(link->next_->prev_ == link);
        PIRN_ASSERT(timer->level_ == level && timer->slot_ == slot);
        PIRN_ASSERT(tick > wheel->elapsed);
        PIRN_ASSERT(level_for(tick, wheel->elapsed) == level);
        PIRN_ASSERT(slot_for(tick, level) == slot);
        count++;
    }
    PIRN_ASSERT((count > 0) == ((wheel->occupied[level] >> slot & 1) == 1));
    return count;
}

static size_t due_validate(const struct pirn__wheel *wheel)
{
    uint64_t last_ns = 0;
    size_t count = 0;

    for (pirn_link *link = wheel->due.next_; link != &wheel->due;
         link = link->next_) {
        pirn_timer *timer = timer_of(link);

        PIRN_ASSERT(link->next_->prev_ == link);
        PIRN_ASSERT(timer->level_ == PIRN__WHEEL_DUE);
        PIRN_ASSERT(tick_of(timer) <= wheel->elapsed);
        PIRN_ASSERT(timer->when_ns_ >= last_ns);
        last_ns = timer->when_ns_;
        count++;
    }
    return count;
}

void pirn__wheel_validate(const struct pirn__wheel *wheel)
{
    size_t count = due_validate(wheel);

    PIRN_ASSERT(wheel->elapsed <= wheel->latest_ns >> TICK_SHIFT);
    for (uint32_t level = 0; level < LEVELS; level++)
        for (uint32_t slot = 0; slot < PIRN__WHEEL_SLOTS; slot++)
            count += slot_validate(wheel, level, slot);
    PIRN_ASSERT(count == wheel->count);
}
