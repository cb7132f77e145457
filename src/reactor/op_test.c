/* SPDX-License-Identifier: MIT */
/* src/reactor/op_test.c - an operation record between its two sides.  Polled by
 * hand: the order of the calls is the one written down, except in the last
 * test, where two threads race for TSan to watch. */
#include "reactor/op.h"

#include <pthread.h>

#include "engine/test.h"

/* A record that counts what happens to it. */
struct record {
    struct pirn__op op;
    int discards;
    int frees;
    int note;      /* written by the owner before it goes */
    int last_note; /* what the discard saw of it */
    int discarded; /* the result it was discarded with */
};

static struct record *record_of(struct pirn__op *op)
{
    return PIRN_CONTAINER_OF(op, struct record, op);
}

static void record_free(struct pirn__op *op)
{
    record_of(op)->frees++;
    /* What anybody still does to the record is now a race, for TSan. */
    memset(&op->result, 0xee, sizeof op->result);
    memset(&op->waker, 0xee, sizeof op->waker);
}

static void record_discard(struct pirn__op *op)
{
    record_of(op)->discards++;
    record_of(op)->discarded = pirn__op_result(op);
    record_of(op)->last_note = record_of(op)->note;
}

static const struct pirn__op_ops record_ops = {
    .free = record_free,
    .discard = record_discard,
};

static void record_init(struct record *record)
{
    *record = (struct record){.frees = 0};
    pirn__op_init(&record->op, &record_ops);
}

/* A waker that counts its copies and its wakes. */
struct bell {
    PIRN_ATOMIC(int) copies;
    PIRN_ATOMIC(int) rings;
};

static pirn_waker bell_clone(const pirn_waker *self)
{
    struct bell *bell = self->data;

    /* relaxed: a count, read when all is over. */
    (void)pirn__add(&bell->copies, 1, relaxed);
    return *self;
}

static void bell_drop(pirn_waker self)
{
    struct bell *bell = self.data;

    /* relaxed: as above. */
    (void)pirn__sub(&bell->copies, 1, relaxed);
}

static void bell_wake_by_ref(const pirn_waker *self)
{
    struct bell *bell = self->data;

    /* release [test.bell]: the racing test waits for it. */
    (void)pirn__add(&bell->rings, 1, release);
}

static void bell_wake(pirn_waker self)
{
    bell_wake_by_ref(&self);
    bell_drop(self);
}

static const pirn_waker_ops bell_ops = {
    .clone = bell_clone,
    .wake = bell_wake,
    .wake_by_ref = bell_wake_by_ref,
    .drop = bell_drop,
};

static pirn_waker bell_waker(struct bell *bell)
{
    return (pirn_waker){.data = bell, .ops = &bell_ops};
}

static enum pirn_poll poll_with(struct record *record, struct bell *bell)
{
    pirn_waker waker = bell_waker(bell);
    pirn_cx cx = pirn_cx_of_waker(&waker);

    return pirn__op_poll(&record->op, &cx);
}

static int copies_of(struct bell *bell)
{
    /* relaxed: no other thread. */
    return pirn__load(&bell->copies, relaxed);
}

static int rings_of(struct bell *bell)
{
    /* acquire [test.bell]: the racing test reads what came before the ring. */
    return pirn__load(&bell->rings, acquire);
}

/* Goal: the ordinary life: wait, be woken once, take the result.
 * Method: poll, complete, poll, release; nothing is discarded and the record
 * goes with the second side. */
TEST(op_completed_while_waited_for_wakes_once_and_gives_its_result)
{
    struct record record;
    struct bell bell = {{0}, {0}};

    record_init(&record);
    EXPECT_EQ(PIRN_PENDING, poll_with(&record, &bell));
    EXPECT_EQ(1, copies_of(&bell));
    EXPECT(!pirn__op_is_complete(&record.op));

    pirn__op_complete(&record.op, 42);
    EXPECT_EQ(1, rings_of(&bell));
    EXPECT_EQ(0, copies_of(&bell));
    EXPECT_EQ(0, record.frees);
    EXPECT_EQ(PIRN_READY, poll_with(&record, &bell));
    EXPECT_EQ(42, pirn__op_result(&record.op));

    pirn__op_release(&record.op);
    EXPECT_EQ(1, record.frees);
    EXPECT_EQ(0, record.discards);
    EXPECT_EQ(0, copies_of(&bell));
}

/* Goal: completion before the first poll needs no waker.
 * Method: complete, then poll. */
TEST(op_completed_before_poll_is_ready_at_once)
{
    struct record record;
    struct bell bell = {{0}, {0}};

    record_init(&record);
    pirn__op_complete(&record.op, -5);
    EXPECT_EQ(PIRN_READY, poll_with(&record, &bell));
    EXPECT_EQ(-5, pirn__op_result(&record.op));
    EXPECT_EQ(0, copies_of(&bell));
    EXPECT_EQ(0, rings_of(&bell));
    pirn__op_release(&record.op);
    EXPECT_EQ(1, record.frees);
}

/* Goal: a waker is cloned only if it differs, and the newest one wins.
 * Method: poll twice with one bell and then with another; only the other
 * rings, and the first is dropped at the change. */
TEST(op_polled_with_another_waker_wakes_only_the_newest)
{
    struct record record;
    struct bell first = {{0}, {0}}, second = {{0}, {0}};

    record_init(&record);
    EXPECT_EQ(PIRN_PENDING, poll_with(&record, &first));
    EXPECT_EQ(PIRN_PENDING, poll_with(&record, &first));
    EXPECT_EQ(1, copies_of(&first));
    EXPECT_EQ(PIRN_PENDING, poll_with(&record, &second));
    EXPECT_EQ(0, copies_of(&first));
    EXPECT_EQ(1, copies_of(&second));

    pirn__op_complete(&record.op, 0);
    EXPECT_EQ(0, rings_of(&first));
    EXPECT_EQ(1, rings_of(&second));
    EXPECT_EQ(0, copies_of(&second));
    pirn__op_release(&record.op);
}

/* Goal: a waiter may go and another come, without losing the operation.
 * Method: withdraw takes the waker back, a second withdraw does nothing, and a
 * completion rings nobody; the next poll finds the result. */
TEST(op_withdrawn_keeps_its_result_for_the_next_poll)
{
    struct record record;
    struct bell bell = {{0}, {0}};

    record_init(&record);
    pirn__op_withdraw(&record.op);
    EXPECT_EQ(PIRN_PENDING, poll_with(&record, &bell));
    pirn__op_withdraw(&record.op);
    pirn__op_withdraw(&record.op);
    EXPECT_EQ(0, copies_of(&bell));

    pirn__op_complete(&record.op, 7);
    EXPECT_EQ(0, rings_of(&bell));
    EXPECT_EQ(0, record.discards);
    pirn__op_withdraw(&record.op);
    EXPECT_EQ(PIRN_READY, poll_with(&record, &bell));
    EXPECT_EQ(7, pirn__op_result(&record.op));
    pirn__op_release(&record.op);
    EXPECT_EQ(1, record.frees);
}

/* Goal: a record outlives its owner, and the late result is discarded once.
 * Method: detach while waiting; the waker goes at once, the record only with
 * the completion, which rings nobody. */
TEST(op_detached_lives_until_its_completion_discards_the_result)
{
    struct record record;
    struct bell bell = {{0}, {0}};

    record_init(&record);
    EXPECT_EQ(PIRN_PENDING, poll_with(&record, &bell));
    pirn__op_detach(&record.op);
    EXPECT_EQ(0, copies_of(&bell));
    EXPECT_EQ(0, record.frees);

    pirn__op_complete(&record.op, 9);
    EXPECT_EQ(0, rings_of(&bell));
    EXPECT_EQ(1, record.discards);
    EXPECT_EQ(9, record.discarded);
    EXPECT_EQ(1, record.frees);
}

/* Goal: a result that the owner never saw is discarded by the owner's end.
 * Method: complete, with and without a waiter, then detach. */
TEST(op_detached_after_completion_discards_the_result_at_once)
{
    struct bell bell = {{0}, {0}};

    for (int waits = 0; waits < 2; waits++) {
        struct record record;

        record_init(&record);
        if (waits)
            EXPECT_EQ(PIRN_PENDING, poll_with(&record, &bell));
        pirn__op_complete(&record.op, 11);
        EXPECT_EQ(0, record.discards);
        pirn__op_detach(&record.op);
        EXPECT_EQ(1, record.discards);
        EXPECT_EQ(11, record.discarded);
        EXPECT_EQ(1, record.frees);
    }
    EXPECT_EQ(0, copies_of(&bell));
}

/* Goal: code that only looks at a record keeps it.
 * Method: a third reference; the record goes when that is given up. */
TEST(op_ref_keeps_the_record_after_both_sides)
{
    static const struct pirn__op_ops no_discard = {.free = record_free};
    struct record record;

    record_init(&record);
    record.op.ops = &no_discard;
    pirn__op_ref(&record.op);
    pirn__op_detach(&record.op);
    pirn__op_complete(&record.op, 1);
    EXPECT_EQ(0, record.frees);
    EXPECT(pirn__op_is_complete(&record.op));
    pirn__op_unref(&record.op);
    EXPECT_EQ(1, record.frees);
}

/* The racing test: the back end completes many records, the owner does
 * something else with each. */
enum { RACE_COUNT = 4096, OWNER_STYLES = 4 };

static struct record race_records[RACE_COUNT];
static PIRN_ATOMIC(int) race_ready;

static void *complete_all(void *count)
{
    int total = *(int *)count;

    for (int i = 0; i < total; i++) {
        /* acquire [test.ready]: the record has been made.  Ends when the owner
         * comes to it. */
        for (int spins = 0; pirn__load(&race_ready, acquire) <= i; spins++) {
            if (spins % 1024 == 1023)
                sched_yield();
        }
        /* Meet the owner at another of its steps each time. */
        for (int spins = i % 61; spins > 0; spins--)
            pirn__spin_hint();
        pirn__op_complete(&race_records[i].op, i);
    }
    return NULL;
}

/* Wait as a task would: poll again only after a ring. */
static void wait_for(struct record *record, struct bell *bell, int expected)
{
    int seen = rings_of(bell);

    while (poll_with(record, bell) == PIRN_PENDING) {
        /* Ends with the completion: a lost wake would hang the test. */
        while (rings_of(bell) == seen)
            sched_yield();
        seen = rings_of(bell);
    }
    EXPECT_EQ(expected, pirn__op_result(&record->op));
    pirn__op_release(&record->op);
}

/* Goal: whatever the owner does in the moment of the completion, no wake is
 * lost, no waker leaks, and each result is taken or discarded exactly once.
 * Method: two threads, thousands of records, four kinds of owner. */
TEST(op_owner_and_back_end_racing_lose_nothing)
{
    int total = (int)test_size(512, RACE_COUNT, RACE_COUNT);
    struct bell bell = {{0}, {0}}, other = {{0}, {0}};
    pthread_t back_end;

    /* relaxed: the thread does not exist yet. */
    pirn__store(&race_ready, 0, relaxed);
    REQUIRE(pthread_create(&back_end, NULL, complete_all, &total) == 0);
    for (int i = 0; i < total; i++) {
        struct record *record = &race_records[i];

        record_init(record);
        /* release [test.ready]: publishes the record. */
        pirn__store(&race_ready, i + 1, release);
        if (i % OWNER_STYLES == 1)
            (void)poll_with(record, &other);
        if (i % OWNER_STYLES == 2) {
            (void)poll_with(record, &other);
            pirn__op_withdraw(&record->op);
        }
        if (i % OWNER_STYLES == 3) {
            (void)poll_with(record, &bell);
            record->note = i;
            pirn__op_detach(&record->op);
        } else {
            wait_for(record, &bell, i);
        }
    }
    pthread_join(back_end, NULL);
    for (int i = 0; i < total; i++) {
        EXPECT_EQ(1, race_records[i].frees);
        EXPECT_EQ(i % OWNER_STYLES == 3, race_records[i].discards);
        EXPECT_EQ(i % OWNER_STYLES == 3 ? i : 0, race_records[i].last_note);
    }
    EXPECT_EQ(0, copies_of(&bell));
    EXPECT_EQ(0, copies_of(&other));
}
