/* SPDX-License-Identifier: MIT */
/* src/sched/inbox_model.c - pushes against a taker that may be asleep. */
#include "sched/inbox.h"

#include "engine/explore.h"
#include "sys/sys.h"

struct item {
    pirn_slink link;
    PIRN_SHARED(int) value; /* written before the push, read after the take */
};

static struct pirn__inbox inbox;
static struct item items[3];
static int taken[3]; /* in the order in which they came out */
static int taken_count;

static void reset(void)
{
    memset(&inbox, 0, sizeof inbox);
    pirn__init(&inbox.top, NULL);
    for (int i = 0; i < 3; i++) {
        items[i].link.next_ = NULL;
        items[i].value.c_ = 0;
    }
    taken_count = 0;
}

static void push_one(int index)
{
    pirn_cell_write(&items[index].value, index + 1);
    pirn__inbox_push(&inbox, &items[index].link);
}

static void push_first(void *arg)
{
    (void)arg;
    push_one(0);
}

static void push_two_more(void *arg)
{
    (void)arg;
    push_one(1);
    push_one(2);
}

static void take(void)
{
    struct pirn__queue queue = {0};
    pirn_slink *link;

    pirn__inbox_take(&inbox, &queue);
    while ((link = pirn__queue_pop(&queue)) != NULL) {
        struct item *item = PIRN_CONTAINER_OF(link, struct item, link);

        EXPLORE_CHECK(taken_count < 3);
        taken[taken_count++] = pirn_cell_read(&item->value);
    }
}

static void take_twice(void *arg)
{
    (void)arg;
    take();
    take();
}

/* Goal: every push comes out once, whole, and each pusher's in its order. */
MODEL(inbox_pushes_come_out_once_and_in_order, .preemptions = 3)
{
    int second = 0;
    int third = 0;

    reset();
    explore_thread(push_first, NULL);
    explore_thread(push_two_more, NULL);
    explore_thread(take_twice, NULL);
    explore_join();
    take();
    EXPLORE_CHECK(taken_count == 3);
    for (int i = 0; i < 3; i++) {
        second = taken[i] == 2 ? i + 1 : second;
        third = taken[i] == 3 ? i + 1 : third;
    }
    EXPLORE_CHECK(second != 0 && third != 0 && second < third);
}

/* An owner that announces its sleep, as a driver does; that one's third state
 * and everything else it must see is in runtime_model.c. */
static PIRN_ATOMIC(uint32_t) sleeping;

static void owner(void *arg)
{
    (void)arg;
    while (taken_count == 0) {
        take();
        if (taken_count > 0)
            break;
        pirn__store(&sleeping, 1, seq_cst);
        if (!pirn__inbox_has_some(&inbox))
            (void)pirn__sys->futex_wait(&sleeping.v_, 1, PIRN_NEVER);
        pirn__store(&sleeping, 0, relaxed);
    }
}

static void push_and_wake(void *arg)
{
    (void)arg;
    push_one(0);
    if (pirn__load(&sleeping, seq_cst) != 0 &&
        pirn__swap(&sleeping, 0, acq_rel) != 0)
        pirn__sys->futex_wake(&sleeping.v_, 1);
}

/* Goal: a push between the owner's last look and its sleep is not lost. */
MODEL(inbox_push_before_sleep_wakes_the_owner,
      .preemptions = EXPLORE_UNBOUNDED, .spurious = -1)
{
    reset();
    pirn__init(&sleeping, 0);
    explore_thread(owner, NULL);
    explore_thread(push_and_wake, NULL);
    explore_join();
    EXPLORE_CHECK(taken_count == 1);
}
