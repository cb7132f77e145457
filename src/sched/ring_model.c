/* SPDX-License-Identifier: MIT */
/* src/sched/ring_model.c - a worker's run queue, its owner and thieves.
 *
 * The model build has four slots.  The positions start just before they come
 * round, so that every model wraps.
 */
#include "sched/ring.h"

#include "engine/explore.h"

enum { ITEMS = 7 };

struct item {
    pirn_slink link;
    PIRN_SHARED(int) value; /* written before the push */
};

static struct pirn__ring ring;
static struct pirn__ring loot[2]; /* of the thieves */
static struct item items[ITEMS];
static PIRN_ATOMIC(int) runs[ITEMS];

static void start_at(struct pirn__ring *self, uint32_t position)
{
    pirn__ring_init(self);
    pirn__init(&self->head, (uint64_t)position << 32 | position);
    pirn__init(&self->tail, position);
    self->room_end = position + PIRN__RING_SIZE;
}

static void begin(void)
{
    start_at(&ring, UINT32_MAX - 1);
    start_at(&loot[0], UINT32_MAX);
    start_at(&loot[1], 2);
}

static void push(int index)
{
    pirn_cell_write(&items[index].value, index + 1);
    EXPLORE_CHECK(pirn__ring_push(&ring, &items[index].link));
}

static void run(pirn_slink *link)
{
    struct item *item = PIRN_CONTAINER_OF(link, struct item, link);
    int index = (int)(item - items);

    EXPLORE_CHECK(pirn_cell_read(&item->value) == index + 1);
    pirn__add(&runs[index], 1, relaxed);
}

static bool pop(struct pirn__ring *from)
{
    pirn_slink *link = pirn__ring_pop(from);

    if (link != NULL)
        run(link);
    return link != NULL;
}

/* As a thief does it: one is run, the others are in its own ring. */
static void steal(void *arg)
{
    struct pirn__ring *own = arg;
    pirn_slink *link = pirn__ring_steal(&ring, own);

    if (link != NULL)
        run(link);
    while (pop(own))
        continue;
}

/* Everything was run once. */
static void end(int count)
{
    explore_join();
    while (pop(&ring))
        continue;
    for (int i = 0; i < count; i++)
        EXPLORE_CHECK(pirn__load(&runs[i], relaxed) == 1);
    EXPLORE_CHECK(pirn__ring_len(&ring) == 0);
}

static void push_two_pop_two(void *arg)
{
    (void)arg;
    push(2);
    (void)pop(&ring);
    push(3);
    (void)pop(&ring);
}

/* Goal: what the owner pushes and pops and a thief takes comes out once. */
MODEL(ring_owner_against_a_thief, .preemptions = 4)
{
    begin();
    push(0);
    push(1);
    explore_thread(steal, &loot[0]);
    push_two_pop_two(NULL);
    end(4);
}

/* Goal: two thieves and the owner; one thief at a time copies. */
MODEL(ring_owner_against_two_thieves, .preemptions = 3, .stale = 2)
{
    begin();
    push(0);
    push(1);
    push(2);
    explore_thread(steal, &loot[0]);
    explore_thread(steal, &loot[1]);
    (void)pop(&ring);
    push(3);
    end(4);
}

/* Fill it up; what does not fit goes elsewhere, as in push_ring(). */
static void push_over(int index)
{
    struct pirn__queue half = {0};
    pirn_slink *link;

    pirn_cell_write(&items[index].value, index + 1);
    if (pirn__ring_push(&ring, &items[index].link))
        return;
    (void)pirn__ring_overflow(&ring, &half);
    pirn__queue_push(&half, &items[index].link);
    while ((link = pirn__queue_pop(&half)) != NULL)
        run(link);
}

/* Goal: a full ring gives half away while a thief is at it: nothing is given
 * twice, and a slot is used again only after the thief has read it. */
MODEL(ring_overflow_against_a_thief, .preemptions = 4)
{
    begin();
    for (int i = 0; i < 4; i++)
        push(i);
    explore_thread(steal, &loot[0]);
    push_over(4);
    push_over(5);
    end(6);
}

/* Goal: a thief that was overtaken counts from the new head to a tail that is
 * not older. */
MODEL(ring_thief_that_was_overtaken, .preemptions = 4)
{
    begin();
    push(0);
    explore_thread(steal, &loot[0]);
    (void)pop(&ring);
    push(1);
    (void)pop(&ring);
    push(2);
    end(3);
}

/* Goal: a thief counts no task that is not there, however fast the owner fills
 * the ring and empties half of it. */
MODEL(ring_thief_that_has_not_seen_the_pushes, .preemptions = 3)
{
    begin();
    explore_thread(steal, &loot[0]);
    for (int i = 0; i < 4; i++)
        push(i);
    push_over(4);
    end(5);
}

/* Two at once. */
static void push_batch(int first)
{
    struct pirn__queue batch = {0};

    for (int i = first; i < first + 2; i++) {
        pirn_cell_write(&items[i].value, i + 1);
        pirn__queue_push(&batch, &items[i].link);
    }
    pirn__ring_push_all(&ring, &batch);
    /* What there was no room for. */
    while (!pirn__queue_empty(&batch))
        run(pirn__queue_pop(&batch));
}

/* Goal: a batch goes into slots that a thief has just left. */
MODEL(ring_batch_against_a_thief, .preemptions = 4)
{
    begin();
    for (int i = 0; i < 4; i++)
        push(i);
    explore_thread(steal, &loot[0]);
    push_batch(4);
    end(6);
}

/* A thief that is itself robbed. */
static void rob_the_thief(void *arg)
{
    pirn_slink *link = pirn__ring_steal(&loot[0], &loot[1]);

    (void)arg;
    if (link != NULL)
        run(link);
    while (pop(&loot[1]))
        continue;
}

/* Goal: what a thief puts into its own ring is whole for who steals it
 * there. */
MODEL(ring_thief_of_a_thief, .preemptions = 4, .stale = 3)
{
    begin();
    for (int i = 0; i < 4; i++)
        push(i);
    explore_thread(steal, &loot[0]);
    explore_thread(rob_the_thief, NULL);
    end(4);
}

/* Goal: a thief that fills its own ring again waits for who robs it. */
MODEL(ring_thief_fills_slots_that_are_being_robbed, .preemptions = 4,
      .stale = 3)
{
    begin();
    for (int i = 0; i < 4; i++) {
        pirn_cell_write(&items[i].value, i + 1);
        EXPLORE_CHECK(pirn__ring_push(&loot[0], &items[i].link));
    }
    for (int i = 4; i < 7; i++)
        push(i);
    explore_thread(rob_the_thief, NULL);
    steal(&loot[0]);
    end(7);
}

/* As the monitor empties the ring of a worker that may be about to go on. */
static void take_all(void *arg)
{
    struct pirn__queue taken = {0};
    pirn_slink *link;

    (void)arg;
    (void)pirn__ring_take(&ring, &taken);
    while ((link = pirn__queue_pop(&taken)) != NULL)
        run(link);
}

/* Goal: who takes the whole ring and its owner share it. */
MODEL(ring_taken_whole_against_its_owner, .preemptions = 3, .stale = 3)
{
    begin();
    push(0);
    push(1);
    explore_thread(take_all, NULL);
    push_two_pop_two(NULL);
    end(4);
}

/* Who looks from outside, as a statistic does. */
static void look_at_the_length(void *arg)
{
    EXPLORE_CHECK(pirn__ring_len(arg) <= PIRN__RING_SIZE);
}

/* Goal: a length that is out of date is still one that was possible, for a ring
 * that is filled by pushes and for one that is filled by a theft. */
MODEL(ring_length_from_outside, .preemptions = EXPLORE_UNBOUNDED)
{
    begin();
    explore_thread(look_at_the_length, &ring);
    explore_thread(look_at_the_length, &loot[0]);
    for (int i = 0; i < 3; i++)
        push(i);
    steal(&loot[0]);
    end(3);
}

/* The word in which a worker says that it goes to sleep. */
static PIRN_ATOMIC(uint32_t) asleep;
static PIRN_ATOMIC(int) found;

static void fall_asleep(void *arg)
{
    (void)arg;
    pirn__add(&asleep, 1, seq_cst);
    if (pirn__ring_len(&ring) > 0)
        pirn__add(&found, 1, relaxed);
}

static void look_who_sleeps(void)
{
    if (pirn__load(&asleep, seq_cst) != 0)
        pirn__add(&found, 1, relaxed);
}

/* Goal: one that pushes and then looks who sleeps, and one that goes to sleep
 * and then looks at the ring, do not miss each other. */
MODEL(ring_push_against_who_falls_asleep, .preemptions = EXPLORE_UNBOUNDED)
{
    begin();
    explore_thread(fall_asleep, NULL);
    if (explore_choose(2) == 0)
        push(0);
    else
        push_batch(0);
    look_who_sleeps();
    explore_join();
    EXPLORE_CHECK(pirn__load(&found, relaxed) > 0);
}
