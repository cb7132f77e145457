/* SPDX-License-Identifier: MIT */
/* tools/pirn/roster.c - a ring of guests under a mutex, and a future. */
#include "roster.h"

static void lock(struct roster *roster)
{
    (void)pthread_mutex_lock(&roster->lock);
}

static void unlock(struct roster *roster)
{
    (void)pthread_mutex_unlock(&roster->lock);
}

void roster_init(struct roster *roster, size_t limit)
{
    (void)pthread_mutex_init(&roster->lock, NULL);
    roster->guests.next = &roster->guests;
    roster->guests.prev = &roster->guests;
    roster->count = 0;
    roster->limit = limit;
    atomic_init(&roster->closed, false);
    roster->abandoned = false;
    roster->waiter = (pirn_waker){NULL, NULL};
}

void roster_deinit(struct roster *roster)
{
    (void)pthread_mutex_destroy(&roster->lock);
}

bool roster_admit(struct roster *roster, struct guest *guest)
{
    lock(roster);
    bool admitted =
        !atomic_load(&roster->closed) && roster->count < roster->limit;
    if (admitted) {
        guest->task = (pirn_task_id){0};
        atomic_init(&guest->state, GUEST_WORKS);
        guest->next = &roster->guests;
        guest->prev = roster->guests.prev;
        guest->prev->next = guest;
        guest->next->prev = guest;
        roster->count++;
    }
    unlock(roster);
    return admitted;
}

void roster_arrive(struct roster *roster, struct guest *guest)
{
    lock(roster);
    guest->task = pirn_task_self();
    unlock(roster);
}

bool roster_rest(const struct roster *roster, struct guest *guest)
{
    /* In this order; both are sequentially consistent. */
    atomic_store(&guest->state, GUEST_RESTS);
    return !atomic_load(&roster->closed);
}

bool roster_work(struct guest *guest)
{
    return atomic_exchange(&guest->state, GUEST_WORKS) != GUEST_LEAVES;
}

bool roster_is_closed(const struct roster *roster)
{
    return atomic_load(&roster->closed);
}

static bool has_departed_locked(const struct roster *roster)
{
    return roster->count == 0 || roster->abandoned;
}

void roster_leave(struct roster *roster, struct guest *guest)
{
    pirn_waker waiter = {NULL, NULL};

    lock(roster);
    guest->prev->next = guest->next;
    guest->next->prev = guest->prev;
    roster->count--;
    if (has_departed_locked(roster))
        waiter = pirn_waker_take(&roster->waiter);
    unlock(roster);
    pirn_waker_wake(waiter);
}

void roster_close(struct roster *roster)
{
    lock(roster);
    atomic_store(&roster->closed, true);
    for (struct guest *guest = roster->guests.next; guest != &roster->guests;
         guest = guest->next) {
        int resting = GUEST_RESTS;

        /* A stale id would be an error and nothing worse. */
        if (atomic_compare_exchange_strong(&guest->state, &resting,
                                           GUEST_LEAVES))
            (void)!pirn_id_cancel(guest->task);
    }
    unlock(roster);
}

void roster_abandon(struct roster *roster)
{
    lock(roster);
    roster->abandoned = true;
    pirn_waker waiter = pirn_waker_take(&roster->waiter);
    unlock(roster);
    pirn_waker_wake(waiter);
}

size_t roster_count(struct roster *roster)
{
    lock(roster);
    size_t count = roster->count;
    unlock(roster);
    return count;
}

static enum pirn_poll departure_poll(pirn_future *self, pirn_cx *cx)
{
    struct roster_departure *departure =
        PIRN_CONTAINER_OF(self, struct roster_departure, future);
    struct roster *roster = departure->roster;
    pirn_waker old;

    lock(roster);
    bool departed = has_departed_locked(roster);
    if (departed)
        old = pirn_waker_take(&roster->waiter);
    else
        old = pirn_waker_store(&roster->waiter, cx);
    unlock(roster);
    pirn_waker_drop(old);
    return departed ? PIRN_READY : PIRN_PENDING;
}

static void departure_drop(pirn_future *self)
{
    struct roster_departure *departure =
        PIRN_CONTAINER_OF(self, struct roster_departure, future);
    struct roster *roster = departure->roster;

    lock(roster);
    pirn_waker old = pirn_waker_take(&roster->waiter);
    unlock(roster);
    pirn_waker_drop(old);
}

static void departure_describe(const pirn_future *self, pirn_text *out)
{
    (void)self;
    pirn_text_append(out, "last connections");
}

static const pirn_future_ops departure_ops = {
    .poll = departure_poll,
    .drop = departure_drop,
    .describe = departure_describe,
};

void roster_departure_init(struct roster_departure *departure,
                           struct roster *roster)
{
    departure->future.ops = &departure_ops;
    departure->roster = roster;
}
