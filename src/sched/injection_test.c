/* SPDX-License-Identifier: MIT */
/* src/sched/injection_test.c - the shared queue alone, without a runtime. */
#include "sched/injection.h"

#include "sched/runtime_test.h"
#include "sys/sys.h"

/* A link that knows who pushed it, and as which. */
struct parcel {
    pirn_slink link;
    size_t sender;
    uint64_t number;
};

static struct parcel *parcel_of(pirn_slink *link)
{
    return PIRN_CONTAINER_OF(link, struct parcel, link);
}

/* Take up to `limit`; they must be `first`, `first` + 1, ... */
static void expect_take(struct pirn__injection *injection, uint64_t limit,
                        uint64_t first, uint64_t count)
{
    struct pirn__queue queue = {0};

    EXPECT_EQ(count, pirn__injection_take(injection, &queue, limit));
    for (uint64_t i = 0; i < count; i++) {
        pirn_slink *link = pirn__queue_pop(&queue);

        REQUIRE(link != NULL);
        EXPECT_EQ(first + i, parcel_of(link)->number);
    }
    EXPECT(pirn__queue_empty(&queue));
}

/* Goal: first in, first out, never more than asked for, and a length that says
 * how many are in.
 * Method: push one by one and as a batch, take in pieces. */
TEST(injection_is_fifo_and_counts)
{
    struct pirn__injection injection = {.queue = {0}};
    struct pirn__queue batch = {0};
    struct parcel parcels[10];

    expect_take(&injection, 5, 0, 0);
    for (uint64_t i = 0; i < 10; i++)
        parcels[i].number = i;
    for (int i = 0; i < 3; i++)
        pirn__injection_push(&injection, &parcels[i].link);
    for (int i = 3; i < 8; i++)
        pirn__queue_push(&batch, &parcels[i].link);
    pirn__injection_push_all(&injection, &batch, 5);
    EXPECT(pirn__queue_empty(&batch));
    pirn__injection_push(&injection, &parcels[8].link);
    EXPECT_EQ(9, pirn__injection_len(&injection));
    expect_take(&injection, 0, 0, 0);
    expect_take(&injection, 4, 0, 4);
    EXPECT_EQ(5, pirn__injection_len(&injection));
    pirn__injection_push(&injection, &parcels[9].link);
    expect_take(&injection, 100, 4, 6);
    EXPECT_EQ(0, pirn__injection_len(&injection));
    expect_take(&injection, 1, 0, 0);
}

/* Goal: what is taken goes behind what the queue already holds.
 * Method: a queue with one. */
TEST(injection_take_appends)
{
    struct pirn__injection injection = {.queue = {0}};
    struct pirn__queue queue = {0};
    struct parcel parcels[2];

    pirn__queue_push(&queue, &parcels[0].link);
    pirn__injection_push(&injection, &parcels[1].link);
    EXPECT_EQ(1, pirn__injection_take(&injection, &queue, 9));
    EXPECT_PTR_EQ(&parcels[0].link, pirn__queue_pop(&queue));
    EXPECT_PTR_EQ(&parcels[1].link, pirn__queue_pop(&queue));
    EXPECT_PTR_EQ(NULL, pirn__queue_pop(&queue));
}

/* Goal: one by one they come out as in batches, and the length follows.
 * Method: three, popped until there are none, with a batch in between. */
TEST(injection_pop_takes_the_oldest)
{
    struct pirn__injection injection = {.queue = {0}};
    struct parcel parcels[4];

    EXPECT_PTR_EQ(NULL, pirn__injection_pop(&injection));
    for (uint64_t i = 0; i < 4; i++) {
        parcels[i].number = i;
        pirn__injection_push(&injection, &parcels[i].link);
    }
    EXPECT_PTR_EQ(&parcels[0].link, pirn__injection_pop(&injection));
    EXPECT_EQ(3, pirn__injection_len(&injection));
    expect_take(&injection, 2, 1, 2);
    EXPECT_PTR_EQ(&parcels[3].link, pirn__injection_pop(&injection));
    EXPECT_EQ(0, pirn__injection_len(&injection));
    EXPECT_PTR_EQ(NULL, pirn__injection_pop(&injection));
}

enum { SENDERS = 3 };

struct post {
    struct pirn__injection injection;
    struct parcel *parcels; /* of all senders */
    size_t count;           /* of each */
};

static void send_all(void *arg, size_t index)
{
    struct post *post = arg;
    struct parcel *own = &post->parcels[index * post->count];
    struct pirn__queue batch = {0};

    for (size_t i = 0; i < post->count; i++) {
        own[i] = (struct parcel){.sender = index, .number = i};
        if (i % 2 == 0) {
            pirn__injection_push(&post->injection, &own[i].link);
            continue;
        }
        pirn__queue_push(&batch, &own[i].link);
        pirn__injection_push_all(&post->injection, &batch, 1);
    }
}

/* Goal: with several threads pushing, each parcel arrives once and those of one
 * sender in its order.
 * Method: take batches until all are there. */
TEST(injection_keeps_each_senders_order)
{
    struct post post = {.count = test_size(5000, 50000, 2000000)};
    uint64_t next[SENDERS] = {0};
    struct pirn__queue queue = {0};
    size_t left = SENDERS * post.count;
    struct crew crew;
    pirn_slink *link;

    /* The table brings the futex operations into this program. */
    REQUIRE(pirn__sys != NULL);
    post.parcels = malloc(left * sizeof *post.parcels);
    REQUIRE(post.parcels != NULL);
    crew_start(&crew, SENDERS, send_all, &post);
    while (left > 0) {
        if (pirn__injection_take(&post.injection, &queue, 64) == 0)
            sched_yield();
        while ((link = pirn__queue_pop(&queue)) != NULL) {
            struct parcel *parcel = parcel_of(link);

            EXPECT_EQ(next[parcel->sender], parcel->number);
            next[parcel->sender]++;
            left--;
        }
    }
    crew_join(&crew);
    EXPECT_EQ(0, pirn__injection_len(&post.injection));
    free(post.parcels);
}
