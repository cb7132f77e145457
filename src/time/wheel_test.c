/* SPDX-License-Identifier: MIT */
/* src/time/wheel_test.c - the wheel against a sorted list, and at its edges.
 *
 * Time is an argument, so years pass in no time here.
 */
#include "time/wheel.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/list.h"
#include "engine/test.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define TICK (1ull << PIRN__WHEEL_TICK_SHIFT)

/* The wheel is 18 KiB: too much for some stacks. */
static struct pirn__wheel wheel;

static void insert(pirn_timer *timer, uint64_t when_ns)
{
    timer->when_ns_ = when_ns;
    pirn__wheel_insert(&wheel, timer);
    pirn__wheel_validate(&wheel);
}

static pirn_timer *pop(uint64_t now_ns)
{
    pirn_timer *timer = pirn__wheel_pop(&wheel, now_ns);

    pirn__wheel_validate(&wheel);
    return timer;
}

/* Goal: an empty wheel has nothing, whenever it is asked.
 * Method: ask at the start, years later, and at the end of time. */
TEST(wheel_empty_gives_nothing)
{
    pirn__wheel_init(&wheel, 5 * SECOND);
    pirn__wheel_validate(&wheel);
    EXPECT_EQ(UINT64_MAX, pirn__wheel_next_ns(&wheel));
    EXPECT_PTR_EQ(NULL, pop(5 * SECOND));
    EXPECT_PTR_EQ(NULL, pop(1ull << 60));
    EXPECT_PTR_EQ(NULL, pop(UINT64_MAX));
    EXPECT_PTR_EQ(NULL, pirn__wheel_pop_any(&wheel));
}

/* Goal: a timer comes out at its time, not a nanosecond early or late, however
 * far away it was.
 * Method: for each power of two and its neighbours: not before, then exactly
 * then; next_ns says when. */
TEST(wheel_timer_fires_exactly_at_its_time)
{
    for (int k = 0; k < 64; k++) {
        for (uint64_t offset = 0; offset <= 2; offset++) {
            uint64_t when_ns = (1ull << k) - 1 + offset;
            pirn_timer timer;

            pirn__wheel_init(&wheel, 0);
            insert(&timer, when_ns);
            EXPECT_EQ(when_ns, pirn__wheel_next_ns(&wheel));
            if (when_ns > 0)
                EXPECT_PTR_EQ(NULL, pop(when_ns - 1));
            EXPECT_EQ(when_ns, pirn__wheel_next_ns(&wheel));
            EXPECT_PTR_EQ(&timer, pop(when_ns));
            EXPECT_EQ(0, wheel.count);
            EXPECT_EQ(UINT64_MAX, pirn__wheel_next_ns(&wheel));
        }
    }
}

/* Goal: short timers go on working across every wrap of every level.
 * Method: hold a timer at the far end; stop at 2^k ms and a millisecond either
 * side for every k the clock can reach, and there let a 333 ms interval fire
 * three times. */
TEST(wheel_interval_fires_at_every_level_boundary)
{
    pirn_timer far;
    uint64_t now_ns = 0;

    pirn__wheel_init(&wheel, 0);
    insert(&far, UINT64_MAX);
    for (int k = 6; k < 64; k++) {
        for (uint64_t offset = 0; offset <= 2; offset++) {
            uint64_t ms = (1ull << k) - 1 + offset;
            pirn_timer interval;

            if (ms > UINT64_MAX / MS - 2000 || ms * MS < now_ns)
                continue;
            now_ns = ms * MS;
            EXPECT_PTR_EQ(NULL, pop(now_ns));
            for (int round = 0; round < 3; round++) {
                uint64_t due_ns = now_ns + 333 * MS;

                insert(&interval, due_ns);
                EXPECT_EQ(due_ns, pirn__wheel_next_ns(&wheel));
                EXPECT_PTR_EQ(NULL, pop(due_ns - 1));
                EXPECT_PTR_EQ(&interval, pop(due_ns));
                EXPECT_PTR_EQ(NULL, pop(due_ns));
                now_ns = due_ns;
            }
        }
    }
    EXPECT_PTR_EQ(NULL, pop(UINT64_MAX - 1));
    EXPECT_PTR_EQ(&far, pop(UINT64_MAX));
}

/* Goal: deadlines near the end of 64 bits have places and an order.
 * Method: the last four ticks, entered backward, popped in one jump. */
TEST(wheel_far_end_keeps_order)
{
    enum { COUNT = 40 };
    static pirn_timer timers[COUNT];

    pirn__wheel_init(&wheel, 1);
    for (int i = 0; i < COUNT; i++)
        insert(&timers[i], UINT64_MAX - (uint64_t)i * 100);
    EXPECT_EQ(COUNT, wheel.count);
    EXPECT(pirn__wheel_next_ns(&wheel) <= UINT64_MAX - (COUNT - 1) * 100);
    for (int i = COUNT - 1; i >= 0; i--)
        EXPECT_PTR_EQ(&timers[i], pop(UINT64_MAX));
    EXPECT_PTR_EQ(NULL, pop(UINT64_MAX));
}

/* Goal: entries come out by time, and those of one time in order of insertion,
 * also when the clock jumps over all of them and when some had been far away at
 * first.
 * Method: 300 times from a small range, entered at two points in time, popped
 * in one jump. */
TEST(wheel_jump_pops_in_order_of_time_then_insertion)
{
    enum { COUNT = 300 };
    static pirn_timer timers[COUNT];
    const uint64_t base_ns = 3600 * SECOND;
    uint64_t last_ns = 0;
    int last_index = -1;
    pirn_timer *timer;
    int count = 0;

    pirn__wheel_init(&wheel, 0);
    for (int i = 0; i < COUNT; i++) {
        if (i == COUNT / 2)
            EXPECT_PTR_EQ(NULL, pop(base_ns - 20 * TICK));
        insert(&timers[i], base_ns + (uint64_t)(i * 7919 % 97) * 100);
    }
    while ((timer = pop(400 * 24 * base_ns)) != NULL) {
        int index = (int)(timer - timers);

        EXPECT(timer->when_ns_ >= last_ns);
        if (timer->when_ns_ == last_ns)
            EXPECT(index > last_index);
        last_ns = timer->when_ns_;
        last_index = index;
        count++;
    }
    EXPECT_EQ(COUNT, count);
}

/* Goal: many entries of one tick are ordered by the nanosecond in little time,
 * in whatever order they came.
 * Method: 200,000 within one tick, falling; a quadratic sort would not end. */
TEST(wheel_crowded_tick_is_sorted_quickly)
{
    size_t count = test_size(20000, 200000, 2000000);
    pirn_timer *timers = calloc(count, sizeof *timers);
    uint64_t last_ns = 0;

    REQUIRE(timers != NULL);
    pirn__wheel_init(&wheel, 0);
    for (size_t i = 0; i < count; i++) {
        timers[i].when_ns_ = 64 * TICK - 1 - i % TICK;
        pirn__wheel_insert(&wheel, &timers[i]);
    }
    EXPECT_EQ(63 * TICK, pirn__wheel_next_ns(&wheel));
    for (size_t i = 0; i < count; i++) {
        pirn_timer *timer = pirn__wheel_pop(&wheel, 64 * TICK);

        REQUIRE(timer != NULL);
        EXPECT(timer->when_ns_ >= last_ns);
        last_ns = timer->when_ns_;
    }
    EXPECT_EQ(0, wheel.count);
    free(timers);
}

/* Goal: a clock that goes back does not: what was due stays due, and a timer
 * between the two times fires.
 * Method: at 10 s, then ask at 1 s. */
TEST(wheel_clock_going_back_is_clamped)
{
    pirn_timer first;
    pirn_timer second;
    pirn_timer third;

    pirn__wheel_init(&wheel, 0);
    insert(&first, 10 * SECOND);
    insert(&second, 10 * SECOND + 5);
    EXPECT_PTR_EQ(&first, pop(10 * SECOND + 5));
    EXPECT_PTR_EQ(&second, pop(SECOND));
    insert(&third, 5 * SECOND);
    EXPECT_EQ(5 * SECOND, pirn__wheel_next_ns(&wheel));
    EXPECT_PTR_EQ(&third, pop(SECOND));
    EXPECT_PTR_EQ(NULL, pop(SECOND));
}

/* Goal: a timer entered in the past is due at once, at its place among the due.
 * Method: three entries of a past tick, entered in an order of their own. */
TEST(wheel_insert_in_the_past_is_due_in_order)
{
    pirn_timer timers[4];

    pirn__wheel_init(&wheel, 100 * SECOND);
    insert(&timers[0], 7 * SECOND);
    insert(&timers[1], 3 * SECOND);
    insert(&timers[2], 7 * SECOND);
    insert(&timers[3], 0);
    EXPECT_EQ(0, pirn__wheel_next_ns(&wheel));
    EXPECT_PTR_EQ(&timers[3], pop(100 * SECOND));
    EXPECT_PTR_EQ(&timers[1], pop(100 * SECOND));
    EXPECT_PTR_EQ(&timers[0], pop(100 * SECOND));
    EXPECT_PTR_EQ(&timers[2], pop(100 * SECOND));
}

/* Goal: next_ns is never late, and following it reaches the timer in few steps
 * also where a slot holds too many to look at.
 * Method: 100 timers in one coarse slot; go where next_ns says until the first
 * fires. */
TEST(wheel_next_of_crowded_slot_leads_to_the_first)
{
    enum { COUNT = 100 };
    static pirn_timer timers[COUNT];
    const uint64_t base_ns = 3600 * SECOND;
    pirn_timer *timer = NULL;
    int steps = 0;

    pirn__wheel_init(&wheel, 0);
    for (uint64_t i = 0; i < COUNT; i++)
        insert(&timers[i], base_ns + (COUNT - i) * MS);
    while (timer == NULL) {
        uint64_t next_ns = pirn__wheel_next_ns(&wheel);

        EXPECT(next_ns <= base_ns + MS);
        timer = pop(next_ns);
        pirn__wheel_settle(&wheel, COUNT);
        pirn__wheel_validate(&wheel);
        steps++;
        REQUIRE(steps <= PIRN__WHEEL_LEVELS + 1);
    }
    EXPECT_PTR_EQ(&timers[COUNT - 1], timer);
}

/* The highest level on which a timer is. */
static int highest_level_of(const pirn_timer *timers, size_t count)
{
    int highest = 0;

    for (size_t i = 0; i < count; i++)
        if (timers[i].level_ != PIRN__WHEEL_DUE && timers[i].level_ > highest)
            highest = timers[i].level_;
    return highest;
}

/* Goal: who comes whenever next_ns says, and settles a few entries each time, never
 * meets a crowded slot that begins: all have gone down before.
 * Method: 10,000 timers in a fifth of a second, four seconds away; up to the first
 * one no visit lasts long, and by then none is higher than a slot of 65 us. */
TEST(wheel_settled_in_time_has_no_crowd_when_it_is_due)
{
    enum { COUNT = 10000, CHUNK = 32 };
    static pirn_timer timers[COUNT];
    const uint64_t base_ns = 1ull << 32;
    pirn_timer *timer = NULL;
    int steps = 0;

    pirn__wheel_init(&wheel, 0);
    for (uint64_t i = 0; i < COUNT; i++) {
        timers[i].when_ns_ = base_ns + i * 7919 % COUNT * 20000;
        pirn__wheel_insert(&wheel, &timers[i]);
    }
    EXPECT(highest_level_of(timers, COUNT) >= 3);
    while (timer == NULL) {
        uint64_t next_ns = pirn__wheel_next_ns(&wheel);

        EXPECT(next_ns <= base_ns);
        timer = pirn__wheel_pop(&wheel, next_ns);
        pirn__wheel_settle(&wheel, CHUNK);
        steps++;
        REQUIRE(steps <= 3 * COUNT / CHUNK);
    }
    pirn__wheel_validate(&wheel);
    EXPECT_PTR_EQ(&timers[0], timer);
    EXPECT_EQ(base_ns, timer->when_ns_);
    for (size_t i = 0; i < COUNT; i++)
        if (timers[i].when_ns_ < base_ns + (1 << 16))
            EXPECT(highest_level_of(&timers[i], 1) == 0);
}

/* Goal: entries of one tick stay in order of insertion also when some have been
 * settled before others come.
 * Method: one time, four entries; one is settled after each. */
TEST(wheel_settling_keeps_order_of_insertion)
{
    enum { COUNT = 4 };
    pirn_timer timers[COUNT];
    const uint64_t when_ns = 64 * TICK + 3;

    for (size_t settled = 0; settled <= COUNT; settled++) {
        pirn__wheel_init(&wheel, 0);
        /* So that the slot is not ripe yet. */
        for (int i = 0; i < COUNT / 2; i++)
            insert(&timers[i], 64 * 64 * TICK + when_ns);
        EXPECT_PTR_EQ(NULL, pop(64 * TICK * 63));
        pirn__wheel_settle(&wheel, settled);
        for (int i = COUNT / 2; i < COUNT; i++)
            insert(&timers[i], 64 * 64 * TICK + when_ns);
        pirn__wheel_settle(&wheel, 1);
        pirn__wheel_validate(&wheel);
        for (int i = 0; i < COUNT; i++)
            EXPECT_PTR_EQ(&timers[i], pop(1000 * MS));
    }
}

/* Goal: removal works wherever the entry is and leaves nothing behind.
 * Method: one entry on each level and one due; remove all. */
TEST(wheel_remove_on_every_level_leaves_nothing)
{
    pirn_timer timers[PIRN__WHEEL_LEVELS + 1];

    pirn__wheel_init(&wheel, 0);
    for (int i = 0; i <= PIRN__WHEEL_LEVELS; i++) {
        insert(&timers[i], i == 0 ? 0 : TICK << (6 * (i - 1)));
        EXPECT_EQ(i == 0 ? PIRN__WHEEL_DUE : i - 1, timers[i].level_);
    }
    for (int i = PIRN__WHEEL_LEVELS; i >= 0; i--) {
        pirn__wheel_remove(&wheel, &timers[i]);
        pirn__wheel_validate(&wheel);
        EXPECT_EQ(i, wheel.count);
    }
    EXPECT_EQ(UINT64_MAX, pirn__wheel_next_ns(&wheel));
    EXPECT_PTR_EQ(NULL, pop(UINT64_MAX));
}

/* Goal: pop_any empties the wheel whatever the time.
 * Method: entries due, near and at the far end. */
TEST(wheel_pop_any_empties_it)
{
    static const uint64_t times[] = {0, 5, SECOND, 1ull << 62, UINT64_MAX};
    pirn_timer timers[5];

    pirn__wheel_init(&wheel, 3);
    for (int i = 0; i < 5; i++)
        insert(&timers[i], times[i]);
    for (int i = 0; i < 5; i++) {
        EXPECT_PTR_EQ(&timers[i], pirn__wheel_pop_any(&wheel));
        pirn__wheel_validate(&wheel);
    }
    EXPECT_PTR_EQ(NULL, pirn__wheel_pop_any(&wheel));
}

/* The model: the same timers in one list, ordered by time and insertion. */
enum { MODEL_TIMERS = 48 };

struct entry {
    pirn_timer timer;
    pirn_link link;
    bool is_in;
};

struct model {
    struct entry entries[MODEL_TIMERS];
    pirn_link sorted;
    uint64_t now_ns;
    uint64_t random;
};

static uint64_t model_random(struct model *model)
{
    model->random ^= model->random << 13;
    model->random ^= model->random >> 7;
    model->random ^= model->random << 17;
    return model->random;
}

/* A number whose magnitude is random too. */
static uint64_t model_distance(struct model *model)
{
    return model_random(model) >> (model_random(model) % 64);
}

static struct entry *entry_of(pirn_link *link)
{
    return PIRN_CONTAINER_OF(link, struct entry, link);
}

static void model_insert(struct model *model, struct entry *entry)
{
    uint64_t distance_ns = model_distance(model);
    uint64_t when_ns = model->now_ns + distance_ns;
    pirn_link *before = model->sorted.prev_;

    if (when_ns < distance_ns)
        when_ns = UINT64_MAX;
    if (model_random(model) % 8 == 0)
        when_ns = model->now_ns - distance_ns % (model->now_ns + 1);
    /* Two entries of one time every now and then. */
    if (model_random(model) % 4 == 0 && !pirn__list_empty(&model->sorted))
        when_ns = entry_of(model->sorted.next_)->timer.when_ns_;
    while (before != &model->sorted &&
           entry_of(before)->timer.when_ns_ > when_ns)
        before = before->prev_;
    entry->is_in = true;
    pirn__list_push_head(before, &entry->link);
    insert(&entry->timer, when_ns);
}

static void model_remove(struct entry *entry)
{
    entry->is_in = false;
    pirn__list_remove(&entry->link);
    pirn__wheel_remove(&wheel, &entry->timer);
    pirn__wheel_validate(&wheel);
}

/* Move the clock and compare what comes out, at most `limit` entries. */
static void model_advance(struct model *model, uint64_t limit)
{
    uint64_t step_ns = model_distance(model) >> 3;
    uint64_t asked_ns;

    if (model->now_ns + step_ns >= model->now_ns)
        model->now_ns += step_ns;
    asked_ns = model->now_ns;
    if (model_random(model) % 8 == 0)
        asked_ns = model->now_ns / 2;
    for (uint64_t i = 0; i < limit; i++) {
        pirn_link *first = pirn__list_first(&model->sorted);
        pirn_timer *timer = pop(i == 0 ? model->now_ns : asked_ns);

        if (first == NULL || entry_of(first)->timer.when_ns_ > model->now_ns) {
            EXPECT_PTR_EQ(NULL, timer);
            return;
        }
        EXPECT_PTR_EQ(&entry_of(first)->timer, timer);
        if (timer != &entry_of(first)->timer)
            return;
        entry_of(first)->is_in = false;
        pirn__list_remove(first);
    }
}

static void model_check_next(struct model *model)
{
    pirn_link *first = pirn__list_first(&model->sorted);
    uint64_t next_ns = pirn__wheel_next_ns(&wheel);

    if (first == NULL)
        EXPECT_EQ(UINT64_MAX, next_ns);
    else
        EXPECT(next_ns <= entry_of(first)->timer.when_ns_);
}

static void model_settle(struct model *model)
{
    pirn__wheel_settle(&wheel, model_random(model) % 16);
    pirn__wheel_validate(&wheel);
}

static void model_step(struct model *model)
{
    struct entry *entry = &model->entries[model_random(model) % MODEL_TIMERS];
    uint64_t choice = model_random(model) % 16;

    if (choice < 4)
        model_advance(model, choice == 0 ? 2 : UINT64_MAX);
    else if (choice < 6)
        model_settle(model);
    else if (!entry->is_in)
        model_insert(model, entry);
    else if (choice < 8)
        model_remove(entry);
    model_check_next(model);
}

/* A new wheel, somewhere in the lower part of time. */
static void model_restart(struct model *model)
{
    model->now_ns = model_distance(model) >> 20;
    pirn__wheel_init(&wheel, model->now_ns);
    pirn__list_init(&model->sorted);
    for (int i = 0; i < MODEL_TIMERS; i++)
        model->entries[i].is_in = false;
}

/* Goal: whatever is entered, removed and waited for, the wheel gives what a
 * sorted list gives, in that order.
 * Method: 100,000 random steps over 48 timers with distances of every
 * magnitude, the clock standing, crawling, jumping and now and then going back;
 * when the end of time comes near, a new wheel. */
TEST(wheel_random_steps_agree_with_sorted_list)
{
    static struct model model;
    size_t steps = test_size(20000, 100000, 5000000);

    model.random = test_seed() | 1;
    model_restart(&model);
    for (size_t i = 0; i < steps && test_failures() == 0; i++) {
        model_step(&model);
        if (model.now_ns > UINT64_MAX / 2 && model_random(&model) % 64 == 0)
            model_restart(&model);
    }
}
