/* SPDX-License-Identifier: MIT */
/* src/sync/waitlist_test.c - the wait list under a small object: a door that
 * lets in whom it is told to.
 */
#include "sync/waitlist.h"

#include "engine/poller.h"

static pirn_lock lock;
static pirn_waitlist line;
static bool is_open; /* a newcomer need not wait */

struct guest {
    pirn_future future;
    pirn_waiter waiter;
};

static bool may_end_locked(pirn_waiter *waiter)
{
    return waiter->state_ > PIRN__WAIT_QUEUED || is_open;
}

static enum pirn_poll guest_poll(pirn_future *self, pirn_cx *cx)
{
    static const struct pirn__wait_rules rules = {may_end_locked};
    struct guest *guest = PIRN_CONTAINER_OF(self, struct guest, future);

    return pirn__wait_poll(&guest->waiter, cx, &line, &lock, &rules);
}

static void guest_drop(pirn_future *self)
{
    struct guest *guest = PIRN_CONTAINER_OF(self, struct guest, future);

    pirn__wait_drop(&guest->waiter, &lock);
}

static const pirn_future_ops guest_ops = {
    .poll = guest_poll,
    .drop = guest_drop,
};

static poller guest_init(struct guest *guest)
{
    guest->future.ops = &guest_ops;
    pirn__wait_init(&guest->waiter);
    return (poller){.fut = &guest->future};
}

static void begin(void)
{
    lock = (pirn_lock){{0}};
    line = (pirn_waitlist){{NULL, NULL}};
    is_open = false;
}

static void end_first(enum pirn__wait_state state)
{
    pirn_waker waker;

    pirn__lock(&lock);
    waker = pirn__wait_end_locked(pirn__waitlist_first(&line), state);
    pirn__unlock(&lock);
    pirn_waker_wake(waker);
}

/* Goal: a zeroed list is an empty one.
 * Method: ask it, enter it, and leave it. */
TEST(waitlist_all_zero_is_empty)
{
    struct guest guest;
    poller a;

    begin();
    EXPECT(pirn__waitlist_empty(&line));
    EXPECT_PTR_EQ(NULL, pirn__waitlist_first(&line));
    EXPECT_PTR_EQ(NULL, pirn__waitlist_last(&line));
    a = guest_init(&guest);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT(!pirn__waitlist_empty(&line));
    poller_drop(&a);
    EXPECT(pirn__waitlist_empty(&line));
}

/* Goal: who comes first is first.
 * Method: three enter; the ends of the list, and the order of the wakes. */
TEST(waitlist_keeps_the_order_of_coming)
{
    struct guest guests[3];
    poller pollers[3];

    begin();
    for (int i = 0; i < 3; i++) {
        pollers[i] = guest_init(&guests[i]);
        EXPECT_EQ(PIRN_PENDING, poller_poll(&pollers[i]));
    }
    EXPECT_PTR_EQ(&guests[0].waiter, pirn__waitlist_first(&line));
    EXPECT_PTR_EQ(&guests[2].waiter, pirn__waitlist_last(&line));
    for (int i = 0; i < 3; i++) {
        end_first(PIRN__WAIT_GRANTED);
        EXPECT_EQ(1, pollers[i].wakes);
        EXPECT_EQ(PIRN_READY, poller_poll(&pollers[i]));
    }
}

/* Goal: polled again, a waiter keeps its place and one waker.
 * Method: the same waker is not cloned again; another one replaces it. */
TEST(waitlist_polled_again_keeps_place_and_one_waker)
{
    struct guest guest, other;
    poller a, b, moved;

    begin();
    a = guest_init(&guest);
    b = guest_init(&other);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&b));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_EQ(1, poller_clones(&a));
    moved = (poller){.fut = a.fut};
    EXPECT_EQ(PIRN_PENDING, poller_poll(&moved));
    EXPECT_EQ(0, a.wakers);
    EXPECT_EQ(1, moved.wakers);
    end_first(PIRN__WAIT_GRANTED);
    EXPECT_EQ(0, a.wakes);
    EXPECT_EQ(1, moved.wakes);
    EXPECT_EQ(0, b.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&moved));
    poller_drop(&b);
}

static void expect_unlocked(poller *p)
{
    (void)p;
    EXPECT_EQ(0, lock.word_.v_);
}

/* Goal: no foreign waker is cloned under the lock.
 * Method: a clone that looks at the lock; for a first poll and a renewal. */
TEST(waitlist_clones_foreign_wakers_without_the_lock)
{
    struct guest guest;
    poller a, moved;

    begin();
    a = guest_init(&guest);
    a.on_clone = expect_unlocked;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    moved = (poller){.fut = a.fut, .on_clone = expect_unlocked};
    EXPECT_EQ(PIRN_PENDING, poller_poll(&moved));
    EXPECT_EQ(1, poller_clones(&a));
    EXPECT_EQ(1, poller_clones(&moved));
    poller_drop(&moved);
}

static void let_in_meanwhile(poller *p)
{
    (void)p;
    end_first(PIRN__WAIT_GRANTED);
}

/* Goal: what comes while a waker is cloned for a renewal is not lost.
 * Method: the clone itself ends the wait; the same poll says READY. */
TEST(waitlist_end_during_the_clone_is_seen)
{
    struct guest guest;
    poller a, moved;

    begin();
    a = guest_init(&guest);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    moved = (poller){.fut = a.fut, .on_clone = let_in_meanwhile};
    EXPECT_EQ(PIRN_READY, poller_poll(&moved));
    EXPECT_EQ(0, a.wakers);
}

/* Goal: a newcomer that need not wait leaves nothing behind. */
TEST(waitlist_newcomer_that_may_end_does_not_enter)
{
    struct guest guest;
    poller a;

    begin();
    is_open = true;
    a = guest_init(&guest);
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    EXPECT(pirn__waitlist_empty(&line));
    EXPECT(!pirn__wait_is_in(&guest.waiter));
}

/* Goal: one that may end while it is in line takes its waker with it. */
TEST(waitlist_waiter_that_ends_itself_drops_its_waker)
{
    struct guest guest;
    poller a;

    begin();
    a = guest_init(&guest);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    is_open = true;
    EXPECT_EQ(PIRN_READY, poller_poll(&a)); /* which looks for wakers */
    EXPECT(pirn__waitlist_empty(&line));
}

/* Goal: leaving tells what the state was.
 * Method: never in line, in line, granted, closed. */
TEST(waitlist_leave_tells_the_state)
{
    enum pirn__wait_state ends[] = {PIRN__WAIT_GRANTED, PIRN__WAIT_CLOSED};
    struct guest guest;
    pirn_waker own;
    poller a;

    begin();
    a = guest_init(&guest);
    EXPECT_EQ(PIRN__WAIT_NEW, pirn__wait_leave_locked(&guest.waiter, &own));
    for (size_t i = 0; i < 2; i++) {
        a = guest_init(&guest);
        EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
        end_first(ends[i]);
        EXPECT_EQ(ends[i], pirn__wait_leave_locked(&guest.waiter, &own));
        EXPECT_PTR_EQ(NULL, own.ops);
    }
    a = guest_init(&guest);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_EQ(PIRN__WAIT_QUEUED, pirn__wait_leave_locked(&guest.waiter, &own));
    EXPECT(!pirn__wait_is_in(&guest.waiter));
    pirn_waker_drop(own);
    EXPECT_EQ(0, a.wakers);
}

enum { CROWD = 3 * PIRN__WAKE_BATCH + 1 };

static struct guest crowd[CROWD], late;
static poller crowd_pollers[CROWD], late_poller;

/* Run by the first wake: somebody comes, and somebody who has not been reached
 * yet goes. */
static void come_and_go(void)
{
    late_poller = guest_init(&late);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&late_poller));
    poller_drop(&crowd_pollers[CROWD - 1]);
}

static void disturbing_wake(pirn_waker self)
{
    come_and_go();
    (void)self;
}

static pirn_waker disturbing_clone(const pirn_waker *self)
{
    return *self;
}

static void disturbing_drop(pirn_waker self)
{
    (void)self;
}

/* Goal: ending all wakes everybody who was in line once, in any number; not who
 * comes meanwhile, nor who goes.
 * Method: more than three batches; the first wake lets one come and one go. */
TEST(waitlist_end_all_reaches_those_in_line)
{
    static const pirn_waker_ops ops = {
        .clone = disturbing_clone,
        .wake = disturbing_wake,
        .drop = disturbing_drop,
    };
    const pirn_waker disturbing = {NULL, &ops};
    pirn_cx cx = pirn_cx_of_waker(&disturbing);
    struct guest first;

    begin();
    guest_init(&first);
    EXPECT_EQ(PIRN_PENDING, pirn_future_poll(&first.future, &cx));
    for (int i = 0; i < CROWD; i++) {
        crowd_pollers[i] = guest_init(&crowd[i]);
        EXPECT_EQ(PIRN_PENDING, poller_poll(&crowd_pollers[i]));
    }
    pirn__lock(&lock);
    pirn__waitlist_end_all_and_unlock(&line, &lock, PIRN__WAIT_CLOSED);
    EXPECT_EQ(0, lock.word_.v_);
    for (int i = 0; i < CROWD - 1; i++) {
        EXPECT_EQ(1, crowd_pollers[i].wakes);
        EXPECT_EQ(PIRN__WAIT_CLOSED, crowd[i].waiter.state_);
        EXPECT_EQ(PIRN_READY, poller_poll(&crowd_pollers[i]));
    }
    EXPECT_EQ(0, crowd_pollers[CROWD - 1].wakes);
    EXPECT_EQ(0, late_poller.wakes);
    EXPECT_PTR_EQ(&late.waiter, pirn__waitlist_first(&line));
    poller_drop(&late_poller);
}

/* Goal: ending all of an empty list only unlocks. */
TEST(waitlist_end_all_of_empty_list_unlocks)
{
    begin();
    pirn__lock(&lock);
    pirn__waitlist_end_all_and_unlock(&line, &lock, PIRN__WAIT_GRANTED);
    EXPECT_EQ(0, lock.word_.v_);
}

/* Goal: a batch wakes in order, says when it is full, and is empty afterwards.
 */
TEST(wake_batch_wakes_in_order_and_empties)
{
    poller pollers[PIRN__WAKE_BATCH] = {{0}};
    struct pirn__wake_batch batch;

    pirn__wake_batch_init(&batch);
    for (int i = 0; i < PIRN__WAKE_BATCH; i++) {
        pirn_waker waker = poller_waker(&pollers[i]);

        EXPECT(!pirn__wake_batch_full(&batch));
        pirn__wake_batch_add(&batch, pirn_waker_clone(&waker));
    }
    EXPECT(pirn__wake_batch_full(&batch));
    pirn__wake_batch_wake(&batch);
    pirn__wake_batch_wake(&batch);
    for (int i = 0; i < PIRN__WAKE_BATCH; i++) {
        EXPECT_EQ(1, pollers[i].wakes);
        EXPECT_EQ(0, pollers[i].wakers);
    }
}

/* Goal: the drop of an operation that is not in line takes no lock.
 * Method: there is none, before the wait and after its end. */
TEST(waitlist_drop_of_who_is_not_in_line_takes_no_lock)
{
    pirn_waker own;
    pirn_waiter waiter;

    pirn__wait_init(&waiter);
    pirn__wait_drop(&waiter, NULL);
    pirn__wait_grant_new_locked(&waiter);
    EXPECT_EQ(PIRN__WAIT_GRANTED, pirn__wait_leave_locked(&waiter, &own));
    pirn__wait_drop(&waiter, NULL);
    EXPECT_PTR_EQ(NULL, own.ops);
}
