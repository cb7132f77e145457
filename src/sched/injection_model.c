/* SPDX-License-Identifier: MIT */
/* src/sched/injection_model.c - the shared queue: pushes, batches that are taken
 * out and put back, and its length as what a sleeper looks at.
 */
#include "sched/injection.h"

#include "base/lock.h"
#include "engine/explore.h"
#include "sys/sys.h"

enum { ITEMS = 4 };

struct item {
    pirn_slink link;
    PIRN_SHARED(int) value; /* written before the push */
};

static struct pirn__injection injection;
static struct pirn__injection rests; /* of those who take by way of it */
static struct item items[ITEMS];
static PIRN_ATOMIC(int) runs[ITEMS];

static pirn_slink *prepare(int index)
{
    pirn_cell_write(&items[index].value, index + 1);
    return &items[index].link;
}

static void push(int index)
{
    pirn__injection_push(&injection, prepare(index));
}

static void push_two(int first)
{
    struct pirn__queue queue = {0};

    pirn__queue_push(&queue, prepare(first));
    pirn__queue_push(&queue, prepare(first + 1));
    pirn__injection_push_all(&injection, &queue, 2);
}

static int run(pirn_slink *link)
{
    struct item *item = PIRN_CONTAINER_OF(link, struct item, link);
    int index = (int)(item - items);

    EXPLORE_CHECK(pirn_cell_read(&item->value) == index + 1);
    pirn__add(&runs[index], 1, relaxed);
    return index;
}

static void run_taken(struct pirn__queue *queue, uint64_t count)
{
    pirn_slink *link;
    uint64_t found = 0;

    while ((link = pirn__queue_pop(queue)) != NULL) {
        (void)run(link);
        found++;
    }
    EXPLORE_CHECK(found == count);
}

/* How many came. */
static uint64_t take(uint64_t limit)
{
    struct pirn__queue queue = {0};
    uint64_t count = pirn__injection_take(&injection, &queue, limit);

    run_taken(&queue, count);
    return count;
}

static uint64_t take_rests_first(uint64_t limit, struct pirn__queue *queue)
{
    uint64_t count = pirn__injection_take_to(&rests, &rests, queue, limit);

    if (count == 0)
        count = pirn__injection_take_to(&injection, &rests, queue, limit);
    return count;
}

/* As a place of threads outside is taken from. */
static uint64_t take_by_way(uint64_t limit)
{
    struct pirn__queue queue = {0};
    uint64_t count = take_rests_first(limit, &queue);

    run_taken(&queue, count);
    return count;
}

/* Everything was run once. */
static void end(int count)
{
    explore_join();
    (void)take(ITEMS);
    EXPLORE_CHECK(pirn__injection_len(&injection) == 0);
    for (int i = 0; i < count; i++)
        EXPLORE_CHECK(pirn__load(&runs[i], relaxed) == 1);
}

static void take_one_twice(void *arg)
{
    (void)arg;
    (void)take(1);
    (void)take(1);
}

/* Goal: two takers, one of which puts back, and a pusher: all come out once. */
MODEL(injection_takers_against_a_pusher, .preemptions = 4)
{
    push_two(0);
    explore_thread(take_one_twice, NULL);
    explore_thread(take_one_twice, NULL);
    push(2);
    end(3);
}

static void pop_two(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2; i++) {
        pirn_slink *link = pirn__injection_pop(&injection);

        if (link != NULL)
            (void)run(link);
    }
}

/* Goal: the same for one that takes them one by one. */
MODEL(injection_pop_against_a_taker, .preemptions = 4)
{
    push_two(0);
    explore_thread(pop_two, NULL);
    explore_thread(take_one_twice, NULL);
    push_two(2);
    end(4);
}

/* Goal: what was put back comes before what was pushed meanwhile. */
MODEL(injection_keeps_the_order, .preemptions = 4)
{
    int last = -1;

    push_two(0);
    explore_thread(take_one_twice, NULL);
    push_two(2);
    explore_join();
    for (int i = 0; i < 2; i++) {
        pirn_slink *link = pirn__injection_pop(&injection);
        int index;

        EXPLORE_CHECK(link != NULL);
        index = run(link);
        EXPLORE_CHECK(index > last);
        last = index;
    }
    EXPLORE_CHECK(last == 3);
}

static void take_one_twice_by_way(void *arg)
{
    (void)arg;
    (void)take_by_way(1);
    (void)take_by_way(1);
}

/* Goal: two takers whose rests lie apart, and a pusher: all come out once. */
MODEL(injection_rests_apart_against_a_pusher, .preemptions = 4)
{
    push_two(0);
    explore_thread(take_one_twice_by_way, NULL);
    explore_thread(take_one_twice_by_way, NULL);
    push(2);
    explore_join();
    while (take_by_way(ITEMS) > 0)
        continue;
    end(3);
}

static void push_two_more(void *arg)
{
    (void)arg;
    push(2);
    push(3);
}

/* Goal: one who takes so has all in the order of the pushes. */
MODEL(injection_rests_apart_keep_the_order, .preemptions = 4)
{
    int last = -1;

    push_two(0);
    explore_thread(push_two_more, NULL);
    while (last < 3) {
        struct pirn__queue queue = {0};

        if (take_rests_first(1, &queue) == 0) {
            explore_join();
            continue;
        }
        EXPLORE_CHECK(run(queue.head) == last + 1);
        last++;
    }
    explore_join();
}

/* A sleeper, and whoever has put something looks for it: as in idle.h. */

static PIRN_ATOMIC(uint32_t) asleep;

static void wake_sleeper(void)
{
    if (pirn__load(&asleep, seq_cst) == 0)
        return;
    pirn__store(&asleep, 0, release);
    pirn__sys->futex_wake(&asleep.v_, 1);
}

static void sleep_until_some(void)
{
    pirn__store(&asleep, 1, seq_cst);
    if (pirn__injection_len(&injection) > 0 || pirn__injection_len(&rests) > 0)
        return;
    while (pirn__load(&asleep, acquire) != 0)
        (void)pirn__sys->futex_wait(&asleep.v_, 1, PIRN_NEVER);
}

static void sleep_and_take(void *arg)
{
    (void)arg;
    while (take(1) == 0)
        sleep_until_some();
}

/* Goal: a push meets a worker on its way to sleep. */
MODEL(injection_push_against_sleep, .preemptions = 4, .frozen = true)
{
    explore_thread(sleep_and_take, NULL);
    push(0);
    wake_sleeper();
    explore_join();
}

/* Goal: the same for a batch. */
MODEL(injection_batch_against_sleep, .preemptions = 4, .frozen = true)
{
    explore_thread(sleep_and_take, NULL);
    push_two(0);
    wake_sleeper();
    end(2);
}

/* Goal: who found nothing because another one had taken all, and sleeps, is
 * woken for what that one puts back. */
MODEL(injection_put_back_against_sleep, .preemptions = 4, .frozen = true)
{
    push_two(0);
    explore_thread(sleep_and_take, NULL);
    if (take(1) > 0 && pirn__injection_len(&injection) > 0)
        wake_sleeper();
    end(2);
}

static void push_and_look(void *arg)
{
    bool was_empty;

    (void)arg;
    pirn__lock(&injection.lock);
    was_empty = pirn__injection_push_locked(&injection, prepare(2));
    pirn__unlock(&injection.lock);
    if (was_empty)
        wake_sleeper();
}

static void sleep_and_take_by_way(void *arg)
{
    (void)arg;
    while (take_by_way(1) == 0)
        sleep_until_some();
}

/* Goal: the same where the rests lie apart, and one more is pushed meanwhile:
 * whoever finds the queue empty looks, and who finds it not need not. */
MODEL(injection_rests_apart_against_sleep, .preemptions = 4, .frozen = true)
{
    push(0);
    push(1);
    explore_thread(sleep_and_take_by_way, NULL);
    explore_thread(push_and_look, NULL);
    if (take_by_way(1) > 0 && pirn__injection_len(&rests) > 0)
        wake_sleeper();
    explore_join();
    while (take_by_way(ITEMS) > 0)
        continue;
    end(3);
}
