/* SPDX-License-Identifier: MIT */
/* src/time/wheel.c - nine levels of 128 slots, each 64 times as coarse as the
 * one below.
 *
 * Level 0 has one slot a tick.  64 slots are a group, as long as one slot of the
 * next level; a level holds the group of `elapsed` and the one after it.  Ticks
 * never wrap: 54 bits of them are all the times there are.  An entry is put into
 * the group of `elapsed`, on the only level where that has a slot for it.
 *
 * The next slot of a level is *ripe*: its entries may go down into the next groups
 * of the levels below at any time before it begins.  They do so a few at a time
 * (pirn__wheel_settle()), long before anybody waits for them, for each is a miss of
 * the cache: at once, those of a crowded slot would hold all others up for
 * milliseconds.  Only what is left when the slot begins goes down then.
 *
 * Invariants
 *   - Every entry in a slot has tick > elapsed, and its slot begins after
 *     `elapsed`, within the group of `elapsed` or the next one.
 *   - Entries of one tick come out of the slots in order of insertion: each slot is
 *     first in, first out, a new entry is put behind or above the older ones, and
 *     none goes down past a slot that has some of its time.
 *   - An entry in `due` has tick <= elapsed; `due` is ordered by time, and
 *     entries of one time stand in order of insertion.
 *   - `elapsed` steps from one beginning of an occupied slot to the next, and no
 *     further while `due` holds anything.  It passes a slot only by emptying it.
 *
 * A tick is when_ns rounded down and `due` is looked at by the nanosecond, so
 * an entry comes out at its time exactly: not early, and not a tick late, which
 * a clock advanced by hand to that very time would wait for in vain.
 */
#include "time/wheel.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/prefetch.h"

enum {
    TICK_SHIFT = PIRN__WHEEL_TICK_SHIFT,
    SLOT_BITS = PIRN__WHEEL_SLOT_BITS,
    GROUP = 1 << SLOT_BITS,
    LEVELS = PIRN__WHEEL_LEVELS,
    NEXT_SCAN = 16, /* entries looked at for the exact next time */
    SORT_BITS = 5,  /* digits of a time within a tick: two passes */
    SORT_BINS = 1 << SORT_BITS,
};

_Static_assert(TICK_SHIFT + LEVELS * SLOT_BITS == 64, "every time has a slot");
_Static_assert(PIRN__WHEEL_SLOTS == 2 * GROUP, "two groups a level");
_Static_assert(TICK_SHIFT % SORT_BITS == 0, "whole digits in a tick");

static pirn_timer *timer_of(pirn_link *link)
{
    return PIRN_CONTAINER_OF(link, pirn_timer, link_);
}

static uint64_t tick_of(const pirn_timer *timer)
{
    return timer->when_ns_ >> TICK_SHIFT;
}

/* The number of the slot of a level that holds a tick; of the same tick, one
 * level up, it is the number of the group. */
static uint64_t number_of(uint64_t tick, uint32_t level)
{
    return tick >> (level * SLOT_BITS);
}

static uint64_t start_of(uint64_t number, uint32_t level)
{
    return number << (level * SLOT_BITS);
}

static uint32_t slot_of(uint64_t number)
{
    return (uint32_t)number & (PIRN__WHEEL_SLOTS - 1);
}

static uint64_t *word_of(struct pirn__wheel *wheel, uint32_t level,
                         uint32_t slot)
{
    return &wheel->occupied[level][slot / GROUP];
}

static uint64_t bit_of(uint32_t slot)
{
    return 1ull << (slot % GROUP);
}

static bool is_occupied(const struct pirn__wheel *wheel, uint32_t level,
                        uint64_t number)
{
    uint32_t slot = slot_of(number);

    return (wheel->occupied[level][slot / GROUP] & bit_of(slot)) != 0;
}

/* The number of the next slot of a level, which for all but the lowest one is the
 * ripe one. */
static uint64_t next_number(const struct pirn__wheel *wheel, uint32_t level)
{
    return number_of(wheel->elapsed, level) + 1;
}

/* The earliest occupied slot of a level; false if it has none. */
static bool find_earliest(const struct pirn__wheel *wheel, uint32_t level,
                          uint64_t *number)
{
    uint64_t group = number_of(wheel->elapsed, level) / GROUP;
    uint64_t bits = wheel->occupied[level][group % 2];

    if (bits == 0) {
        group++;
        bits = wheel->occupied[level][group % 2];
    }
    if (bits == 0)
        return false;
    *number = group * GROUP + (uint64_t)__builtin_ctzll(bits);
    return true;
}

/* The highest level on which a tick and `elapsed` differ: the group there is the
 * same, but not the slot. */
static uint32_t highest_level(uint64_t tick, uint64_t elapsed)
{
    return (63 - (uint32_t)__builtin_clzll(tick ^ elapsed)) / SLOT_BITS;
}

static void enter_slot(struct pirn__wheel *wheel, pirn_timer *timer,
                       uint32_t level, uint64_t number)
{
    uint32_t slot = slot_of(number);

    timer->level_ = (uint8_t)level;
    timer->slot_ = (uint8_t)slot;
    pirn__list_push_tail(&wheel->slots[level][slot], &timer->link_);
    *word_of(wheel, level, slot) |= bit_of(slot);
}

/* Enter on the lowest level that may be, from `level` down. */
static void sink(struct pirn__wheel *wheel, pirn_timer *timer, uint32_t level)
{
    uint64_t tick = tick_of(timer);
    uint64_t number = number_of(tick, level);

    while (level > 0 && number == next_number(wheel, level) &&
           !is_occupied(wheel, level, number)) {
        level--;
        number = number_of(tick, level);
    }
    enter_slot(wheel, timer, level, number);
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

/* Move up to `limit` entries of a ripe slot down; returns how many. */
static size_t drain_slot(struct pirn__wheel *wheel, uint32_t level,
                         uint64_t number, size_t limit)
{
    uint32_t slot = slot_of(number);
    pirn_link *list = &wheel->slots[level][slot];
    size_t count = 0;

    while (count < limit && !pirn__list_empty(list)) {
        pirn_link *link = pirn__list_pop_head(list);

        pirn__prefetch(list->next_->next_, sizeof(pirn_link));
        sink(wheel, timer_of(link), level - 1);
        count++;
    }
    if (pirn__list_empty(list))
        *word_of(wheel, level, slot) &= ~bit_of(slot);
    return count;
}

/* The slot of one tick, `elapsed`, becomes due. */
static void open_tick(struct pirn__wheel *wheel)
{
    uint32_t slot = slot_of(wheel->elapsed);
    pirn_link *list = &wheel->slots[0][slot];
    uint64_t last_ns = 0;
    bool is_sorted = true;

    *word_of(wheel, 0, slot) &= ~bit_of(slot);
    for (pirn_link *link = list->next_; link != list; link = link->next_) {
        pirn_timer *timer = timer_of(link);

        timer->level_ = PIRN__WHEEL_DUE;
        is_sorted = is_sorted && timer->when_ns_ >= last_ns;
        last_ns = timer->when_ns_;
    }
    pirn__list_splice_tail(&wheel->due, list);
    if (!is_sorted)
        sort_tick(&wheel->due);
}

/* The first tick, from the next on, with which an occupied slot begins;
 * UINT64_MAX if there is none. */
static uint64_t earliest_start(const struct pirn__wheel *wheel)
{
    uint64_t earliest = UINT64_MAX;

    for (uint32_t level = 0; level < LEVELS; level++) {
        uint64_t number;

        /* Nothing above can be earlier. */
        if (earliest <= start_of(next_number(wheel, level), level))
            break;
        if (find_earliest(wheel, level, &number) &&
            start_of(number, level) < earliest)
            earliest = start_of(number, level);
    }
    return earliest;
}

/* Go on to a tick with which occupied slots begin: first what is above goes down,
 * from the top, since it was entered earlier than what is on its way. */
static void step_to(struct pirn__wheel *wheel, uint64_t tick)
{
    wheel->elapsed = tick - 1;
    for (uint32_t level = LEVELS - 1; level > 0; level--) {
        uint64_t number = number_of(tick, level);

        if (start_of(number, level) == tick &&
            is_occupied(wheel, level, number))
            drain_slot(wheel, level, number, SIZE_MAX);
    }
    wheel->elapsed = tick;
    open_tick(wheel);
}

/* Move `elapsed` to the next tick that has entries, or to `target` if none has
 * until then.  Nothing is due yet. */
static void advance(struct pirn__wheel *wheel, uint64_t target)
{
    /* Ends: each turn goes on by a tick at least. */
    while (wheel->elapsed < target && pirn__list_empty(&wheel->due)) {
        uint64_t start = earliest_start(wheel);

        if (start > target) {
            wheel->elapsed = target;
            return;
        }
        step_to(wheel, start);
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

/* When the wheel next needs service for a slot.  For a crowded one that is as
 * soon as it is ripe. */
static uint64_t service_ns(const struct pirn__wheel *wheel, uint32_t level,
                           uint64_t number)
{
    uint64_t earliest_ns;

    if (scan_slot(&wheel->slots[level][slot_of(number)], &earliest_ns))
        return earliest_ns;
    return start_of(level > 0 ? number - 1 : number, level) << TICK_SHIFT;
}

void pirn__wheel_init(struct pirn__wheel *wheel, uint64_t now_ns)
{
    wheel->elapsed = now_ns >> TICK_SHIFT;
    wheel->latest_ns = now_ns;
    wheel->count = 0;
    pirn__list_init(&wheel->due);
    for (uint32_t level = 0; level < LEVELS; level++) {
        wheel->occupied[level][0] = 0;
        wheel->occupied[level][1] = 0;
        for (uint32_t slot = 0; slot < PIRN__WHEEL_SLOTS; slot++)
            pirn__list_init(&wheel->slots[level][slot]);
    }
}

void pirn__wheel_insert(struct pirn__wheel *wheel, pirn_timer *timer)
{
    uint64_t tick = tick_of(timer);
    uint32_t level;

    wheel->count++;
    if (tick <= wheel->elapsed) {
        insert_due(wheel, timer);
        return;
    }
    level = highest_level(tick, wheel->elapsed);
    enter_slot(wheel, timer, level, number_of(tick, level));
}

void pirn__wheel_remove(struct pirn__wheel *wheel, pirn_timer *timer)
{
    PIRN_DASSERT(wheel->count > 0 && pirn__list_linked(&timer->link_));
    wheel->count--;
    pirn__list_remove(&timer->link_);
    if (timer->level_ == PIRN__WHEEL_DUE)
        return;
    if (pirn__list_empty(&wheel->slots[timer->level_][timer->slot_]))
        *word_of(wheel, timer->level_, timer->slot_) &= ~bit_of(timer->slot_);
}

uint64_t pirn__wheel_next_ns(const struct pirn__wheel *wheel)
{
    const pirn_link *first = pirn__list_first(&wheel->due);
    uint64_t next_ns = UINT64_MAX;

    if (first != NULL)
        return PIRN_CONTAINER_OF(first, pirn_timer, link_)->when_ns_;
    for (uint32_t level = 0; level < LEVELS; level++) {
        uint64_t number, at_ns;

        if (!find_earliest(wheel, level, &number))
            continue;
        /* The entries are not looked at unless they may matter. */
        if (start_of(number - 1, level) << TICK_SHIFT >= next_ns)
            continue;
        at_ns = service_ns(wheel, level, number);
        next_ns = at_ns < next_ns ? at_ns : next_ns;
    }
    return next_ns;
}

void pirn__wheel_settle(struct pirn__wheel *wheel, size_t limit)
{
    for (uint32_t level = 1; level < LEVELS && limit > 0; level++) {
        uint64_t number = next_number(wheel, level);

        if (is_occupied(wheel, level, number))
            limit -= drain_slot(wheel, level, number, limit);
    }
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
    uint64_t number;

    for (uint32_t level = 0; level < LEVELS && link == NULL; level++)
        if (find_earliest(wheel, level, &number))
            link = pirn__list_first(&wheel->slots[level][slot_of(number)]);
    if (link == NULL)
        return NULL;
    pirn__wheel_remove(wheel, timer_of(link));
    return timer_of(link);
}

static size_t slot_validate(const struct pirn__wheel *wheel, uint32_t level,
                            uint32_t slot)
{
    const pirn_link *list = &wheel->slots[level][slot];
    uint64_t group = number_of(wheel->elapsed, level) / GROUP;
    size_t count = 0;

    for (pirn_link *link = list->next_; link != list; link = link->next_) {
        pirn_timer *timer = timer_of(link);
        uint64_t number = number_of(tick_of(timer), level);

        PIRN_ASSERT(link->next_->prev_ == link);
        PIRN_ASSERT(timer->level_ == level && timer->slot_ == slot);
        PIRN_ASSERT(slot_of(number) == slot);
        PIRN_ASSERT(number >= next_number(wheel, level));
        PIRN_ASSERT(number / GROUP - group <= 1);
        count++;
    }
    PIRN_ASSERT((count > 0) == ((wheel->occupied[level][slot / GROUP] &
                                 bit_of(slot)) != 0));
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
