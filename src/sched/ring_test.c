/* SPDX-License-Identifier: MIT */
/* src/sched/ring_test.c - the ring alone, without a runtime. */
#include "sched/ring.h"

#include "sched/runtime_test.h"

enum { SIZE = PIRN__RING_SIZE, HALF = SIZE / 2 };

/* Links with a number: their place in the array. */
struct deck {
    pirn_slink links[2 * SIZE];
};

static size_t number_of(const struct deck *deck, const pirn_slink *link)
{
    return (size_t)(link - deck->links);
}

/* Both ends start close to where the positions wrap, so that each test crosses
 * it. */
static void ring_at(struct pirn__ring *ring, uint32_t position)
{
    pirn__ring_init(ring);
    pirn__init(&ring->head, (uint64_t)position << 32 | position);
    pirn__init(&ring->tail, position);
    ring->room_end = position + PIRN__RING_SIZE;
}

static void push_some(struct pirn__ring *ring, struct deck *deck, size_t first,
                      size_t count)
{
    for (size_t i = first; i < first + count; i++)
        EXPECT(pirn__ring_push(ring, &deck->links[i]));
}

static void expect_pops(struct pirn__ring *ring, const struct deck *deck,
                        size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++) {
        pirn_slink *link = pirn__ring_pop(ring);

        REQUIRE(link != NULL);
        EXPECT_EQ(i, number_of(deck, link));
    }
}

/* A thief has claimed [first, first + count) and is copying. */
static void claim_as_thief(struct pirn__ring *ring, uint32_t first,
                           uint32_t count)
{
    pirn__init(&ring->head, (uint64_t)first << 32 | (first + count));
}

/* Goal: the owner gets back what it pushed, oldest first, and NULL after that.
 * Method: three times the size through a ring that is never full, across the
 * wrap of the positions. */
TEST(ring_pops_in_order_of_pushes)
{
    struct pirn__ring ring;
    struct deck deck;

    ring_at(&ring, UINT32_MAX - SIZE);
    EXPECT_PTR_EQ(NULL, pirn__ring_pop(&ring));
    for (size_t round = 0; round < 6; round++) {
        push_some(&ring, &deck, round, HALF);
        EXPECT_EQ(HALF, pirn__ring_len(&ring));
        expect_pops(&ring, &deck, round, HALF);
        EXPECT_PTR_EQ(NULL, pirn__ring_pop(&ring));
        EXPECT_EQ(0, pirn__ring_len(&ring));
    }
}

/* Goal: a full ring refuses, and its older half can be taken out at once.
 * Method: fill it, push one more, overflow, push again. */
TEST(ring_full_refuses_and_gives_its_older_half)
{
    struct pirn__queue half = {0};
    struct pirn__ring ring;
    struct deck deck;

    ring_at(&ring, UINT32_MAX - HALF);
    push_some(&ring, &deck, 0, SIZE);
    EXPECT_EQ(SIZE, pirn__ring_len(&ring));
    EXPECT(!pirn__ring_push(&ring, &deck.links[SIZE]));
    EXPECT(pirn__ring_overflow(&ring, &half));
    for (size_t i = 0; i < HALF; i++) {
        pirn_slink *link = pirn__queue_pop(&half);

        REQUIRE(link != NULL);
        EXPECT_EQ(i, number_of(&deck, link));
    }
    EXPECT(pirn__queue_empty(&half));
    push_some(&ring, &deck, SIZE, HALF);
    EXPECT(!pirn__ring_push(&ring, &deck.links[0]));
    expect_pops(&ring, &deck, HALF, SIZE);
}

/* Goal: of a batch the ring takes what it has room for, in order behind what is
 * there; the rest stays in the batch.
 * Method: batches that fit, that do not, and one for a full ring, while a thief
 * has a claim. */
TEST(ring_push_all_fills_it)
{
    struct pirn__queue batch = {0};
    struct pirn__ring ring;
    struct deck deck;

    ring_at(&ring, UINT32_MAX - HALF);
    pirn__ring_push_all(&ring, &batch);
    EXPECT_EQ(0, pirn__ring_len(&ring));
    push_some(&ring, &deck, 0, 1);
    for (size_t i = 1; i < HALF; i++)
        pirn__queue_push(&batch, &deck.links[i]);
    pirn__ring_push_all(&ring, &batch);
    EXPECT(pirn__queue_empty(&batch));
    EXPECT_EQ(HALF, pirn__ring_len(&ring));
    for (size_t i = HALF; i < SIZE + 3; i++)
        pirn__queue_push(&batch, &deck.links[i]);
    pirn__ring_push_all(&ring, &batch);
    EXPECT_EQ(SIZE, pirn__ring_len(&ring));
    EXPECT_EQ(SIZE, number_of(&deck, batch.head));
    claim_as_thief(&ring, UINT32_MAX - HALF, 2);
    pirn__ring_push_all(&ring, &batch);
    EXPECT_EQ(SIZE, number_of(&deck, batch.head));
    pirn__init(&ring.head, (uint64_t)(UINT32_MAX - HALF + 2) << 32 |
                               (uint32_t)(UINT32_MAX - HALF + 2));
    pirn__ring_push_all(&ring, &batch);
    EXPECT_EQ(SIZE + 2, number_of(&deck, batch.head));
    expect_pops(&ring, &deck, 2, SIZE);
}

/* Goal: a thief takes half of what is there, rounded up, oldest first, and
 * returns the newest of them to run.
 * Method: rings of 0 to 5 tasks, and a full one. */
TEST(ring_steal_takes_half)
{
    static const size_t counts[] = {0, 1, 2, 3, 4, 5, SIZE};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        size_t stolen = counts[i] - counts[i] / 2;
        struct pirn__ring victim;
        struct pirn__ring thief;
        struct deck deck;
        pirn_slink *link;

        ring_at(&victim, UINT32_MAX - 1);
        ring_at(&thief, UINT32_MAX - 3);
        push_some(&victim, &deck, 0, counts[i]);
        link = pirn__ring_steal(&victim, &thief);
        EXPECT_EQ(stolen > 0, link != NULL);
        if (link == NULL)
            continue;
        EXPECT_EQ(stolen - 1, number_of(&deck, link));
        EXPECT_EQ(stolen - 1, pirn__ring_len(&thief));
        expect_pops(&thief, &deck, 0, stolen - 1);
        expect_pops(&victim, &deck, stolen, counts[i] - stolen);
        EXPECT_PTR_EQ(NULL, pirn__ring_pop(&victim));
    }
}

/* Goal: a thief takes no more than it has room for, and nothing without room.
 * Method: leave three places in the thief's ring, then none. */
TEST(ring_steal_is_limited_by_room)
{
    struct pirn__ring victim;
    struct pirn__ring thief;
    struct deck deck;
    pirn_slink *link;

    ring_at(&victim, 7);
    ring_at(&thief, UINT32_MAX - 5);
    push_some(&victim, &deck, 0, 20);
    push_some(&thief, &deck, SIZE, SIZE - 3);
    link = pirn__ring_steal(&victim, &thief);
    REQUIRE(link != NULL);
    EXPECT_EQ(2, number_of(&deck, link));
    EXPECT_EQ(SIZE - 1, pirn__ring_len(&thief));
    EXPECT_EQ(17, pirn__ring_len(&victim));
    push_some(&thief, &deck, 2 * SIZE - 3, 1);
    EXPECT_PTR_EQ(NULL, pirn__ring_steal(&victim, &thief));
    EXPECT_EQ(17, pirn__ring_len(&victim));
    expect_pops(&victim, &deck, 3, 17);
}

/* Goal: while a thief copies, the owner goes on behind the claimed range, whose
 * places are not used again, and a second thief gets nothing.
 * Method: a head as a thief leaves it between its two steps. */
TEST(ring_claimed_range_is_left_alone)
{
    struct pirn__queue half = {0};
    struct pirn__ring ring;
    struct pirn__ring other;
    struct deck deck;

    ring_at(&ring, 100);
    pirn__ring_init(&other);
    push_some(&ring, &deck, 0, 10);
    claim_as_thief(&ring, 100, 5);
    EXPECT_EQ(5, pirn__ring_len(&ring));
    EXPECT_PTR_EQ(NULL, pirn__ring_steal(&ring, &other));
    expect_pops(&ring, &deck, 5, 2);
    push_some(&ring, &deck, 10, SIZE - 10);
    EXPECT(!pirn__ring_push(&ring, &deck.links[SIZE]));
    /* It is full, but not with tasks of the owner's. */
    EXPECT(!pirn__ring_overflow(&ring, &half));
    EXPECT(pirn__queue_empty(&half));
    expect_pops(&ring, &deck, 7, SIZE - 7);
    EXPECT_PTR_EQ(NULL, pirn__ring_pop(&ring));
    /* The thief is done. */
    claim_as_thief(&ring, 100 + SIZE, 0);
    push_some(&ring, &deck, SIZE, 1);
    expect_pops(&ring, &deck, SIZE, 1);
}

/* Goal: overflow does nothing to a ring that is no longer full.
 * Method: pop one, or let a thief take some, before it. */
TEST(ring_overflow_needs_a_full_ring)
{
    struct pirn__queue half = {0};
    struct pirn__ring ring;
    struct pirn__ring thief;
    struct deck deck;

    ring_at(&ring, UINT32_MAX - 9);
    pirn__ring_init(&thief);
    push_some(&ring, &deck, 0, SIZE);
    EXPECT(pirn__ring_steal(&ring, &thief) != NULL);
    EXPECT(!pirn__ring_overflow(&ring, &half));
    EXPECT(pirn__queue_empty(&half));
    EXPECT_EQ(HALF, pirn__ring_len(&ring));
    expect_pops(&ring, &deck, HALF, HALF);
}

/* Goal: all of a ring can be taken out, oldest first; not what a thief is at.
 * Method: empty, some, full; then with a claimed range. */
TEST(ring_take_empties_it)
{
    static const size_t counts[] = {0, 1, 2, 7, SIZE};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct pirn__queue queue = {0};
        struct pirn__ring ring;
        struct deck deck;

        ring_at(&ring, UINT32_MAX - 3);
        push_some(&ring, &deck, 0, counts[i]);
        EXPECT_EQ(counts[i], pirn__ring_take(&ring, &queue));
        EXPECT_EQ(0, pirn__ring_len(&ring));
        for (size_t n = 0; n < counts[i]; n++) {
            pirn_slink *link = pirn__queue_pop(&queue);

            REQUIRE(link != NULL);
            EXPECT_EQ(n, number_of(&deck, link));
        }
        EXPECT(pirn__queue_empty(&queue));
        push_some(&ring, &deck, 0, SIZE);
        claim_as_thief(&ring, UINT32_MAX - 3 + (uint32_t)counts[i], 5);
        EXPECT_EQ(0, pirn__ring_take(&ring, &queue));
        expect_pops(&ring, &deck, 5, SIZE - 5);
    }
}

/* One owner and two thieves, each with a ring. */
enum { THIEVES = 2 };

struct chase {
    struct pirn__ring rings[1 + THIEVES];
    pirn_slink *links;
    uint8_t *seen; /* by place of the link; whoever took it writes */
    size_t count;
    PIRN_ATOMIC(uint64_t) taken;
};

static void chase_take(struct chase *chase, const pirn_slink *link)
{
    size_t number = (size_t)(link - chase->links);

    chase->seen[number]++;
    /* release [test.taken]: the mark above is seen by who counts. */
    pirn__add(&chase->taken, 1, release);
}

static bool chase_is_over(struct chase *chase)
{
    /* acquire [test.taken]: sees the marks. */
    return pirn__load(&chase->taken, acquire) == chase->count;
}

static void chase_run(struct chase *chase, size_t thief)
{
    struct pirn__ring *own = &chase->rings[thief];

    struct pirn__queue queue = {0};

    while (!chase_is_over(chase)) {
        size_t victim = (thief + 1) % (1 + THIEVES);
        pirn_slink *link = pirn__ring_pop(own);

        for (size_t i = 0; link == NULL && i < THIEVES; i++) {
            link = pirn__ring_steal(&chase->rings[victim], own);
            victim = (victim + 1) % (1 + THIEVES);
        }
        if (link != NULL)
            chase_take(chase, link);
        else if (pirn__ring_take(&chase->rings[victim], &queue) == 0)
            sched_yield();
        while ((link = pirn__queue_pop(&queue)) != NULL)
            chase_take(chase, link);
    }
}

static void chase_member(void *arg, size_t index)
{
    chase_run(arg, index + 1);
}

/* Push all, through overflows; run some in between. */
static void chase_own(struct chase *chase)
{
    struct pirn__ring *ring = &chase->rings[0];
    struct pirn__queue half = {0};
    pirn_slink *link;

    for (size_t i = 0; i < chase->count; i++) {
        while (!pirn__ring_push(ring, &chase->links[i]))
            (void)pirn__ring_overflow(ring, &half);
        while ((link = pirn__queue_pop(&half)) != NULL)
            chase_take(chase, link);
        if (i % 3 == 0 && (link = pirn__ring_pop(ring)) != NULL)
            chase_take(chase, link);
    }
    chase_run(chase, 0);
}

/* Goal: under pushes, pops, overflows and thefts at once each task comes out
 * exactly once.
 * Method: an owner and two thieves, who steal from each other, too; a mark for
 * each task. */
TEST(ring_each_task_comes_out_once)
{
    struct chase chase = {.count = test_size(20000, 300000, 20000000)};
    struct crew crew;
    size_t wrong = 0;

    chase.links = calloc(chase.count, sizeof *chase.links);
    chase.seen = calloc(chase.count, 1);
    REQUIRE(chase.links != NULL && chase.seen != NULL);
    for (size_t i = 0; i <= THIEVES; i++)
        ring_at(&chase.rings[i], UINT32_MAX - 1000);
    crew_start(&crew, THIEVES, chase_member, &chase);
    chase_own(&chase);
    crew_join(&crew);
    for (size_t i = 0; i < chase.count; i++)
        wrong += chase.seen[i] != 1;
    EXPECT_EQ(0, wrong);
    free(chase.links);
    free(chase.seen);
}
