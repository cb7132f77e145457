/* SPDX-License-Identifier: MIT */
/* tools/pirn/roster.h - who is connected, and how they are asked to leave.
 *
 * Each connection is a guest: on the roster from its admission until its fiber
 * has closed the socket.  A guest is idle while it waits for the next request.
 * Closing the roster admits no more and cancels the idle ones; those with a
 * request in flight finish it, and leave when they want to become idle again.
 * A future of our own waits until all have left.
 *
 * Guests run on all workers.  They come and go under the lock; between requests
 * they take none: a guest first says that it is idle and then looks whether the
 * roster is closed, the closing does the same the other way round, and so at
 * least one of them sees the other.  The closing claims an idle guest before it
 * cancels it: a guest with a request by then either was faster, and answers it,
 * or learns that it has to leave, and does not begin to.
 */
#ifndef PIRN_TOOLS_ROSTER_H
#define PIRN_TOOLS_ROSTER_H

#include <pirn/pirn.h>
#include <pthread.h>
#include <stdatomic.h>

enum guest_state {
    GUEST_WORKS,
    GUEST_RESTS,
    GUEST_LEAVES /* it is being cancelled */
};

struct guest {
    struct guest *next; /* roster lock */
    struct guest *prev; /* roster lock */
    pirn_task_id task;  /* roster lock; 0 until its fiber runs */
    atomic_int state;   /* enum guest_state; the closing makes it LEAVES */
};

struct roster {
    pthread_mutex_t lock; /* never held across a call that suspends */
    struct guest guests;  /* head of a ring */
    size_t count;         /* lock */
    size_t limit;         /* constant */
    atomic_bool closed;   /* written under the lock */
    bool abandoned;       /* lock: nobody is waited for any more */
    pirn_waker waiter;    /* lock: of the departure */
};

void roster_init(struct roster *roster, size_t limit);
void roster_deinit(struct roster *roster);

/* Add a guest; false if the roster is full or closed. */
bool roster_admit(struct roster *roster, struct guest *guest);

/* The guest's fiber runs: it can be cancelled from now on. */
void roster_arrive(struct roster *roster, struct guest *guest);

/* The guest has nothing to do, and may be cancelled; false if it should leave
 * instead. */
bool roster_rest(const struct roster *roster, struct guest *guest);

/* The guest has something to do; false if it should leave instead. */
bool roster_work(struct guest *guest);

/* True once the roster is closed: the current answer is the last. */
bool roster_is_closed(const struct roster *roster);

/* The guest is gone; its memory is the caller's again. */
void roster_leave(struct roster *roster, struct guest *guest);

/* Admit no more and cancel the idle. */
void roster_close(struct roster *roster);

/* Wait for nobody any more: a departure in progress ends. */
void roster_abandon(struct roster *roster);

size_t roster_count(struct roster *roster);

/* Ready when the last guest has left, or the roster was abandoned. */
struct roster_departure {
    pirn_future future;
    struct roster *roster;
};

/* One at a time. */
void roster_departure_init(struct roster_departure *departure,
                           struct roster *roster);

#endif /* PIRN_TOOLS_ROSTER_H */
