/* SPDX-License-Identifier: MIT */
/* src/task/parker.c - how a plain thread sleeps until a waker wakes it.
 *
 * One word; see enum pirn__parker_state.  The thread moves it from EMPTY to the
 * state that says where it sleeps, and the unpark that replaces that state by
 * NOTIFIED knows from it whom to disturb.  Because both are atomic steps on one
 * word, an unpark between the last look and the sleep is never lost.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/assert.h"
#include "base/list.h"
#include "sys/heap.h"
#include "sys/sys.h"
#include "task/home.h"
#include "task/local.h"

struct pirn__parker *pirn__parker_of(struct pirn__local *local)
{
    const pirn_alloc *alloc = &pirn__alloc_malloc;
    struct pirn__parker *parker = local->parker;

    if (parker != NULL)
        return parker;
    parker =
        alloc->take(alloc->ctx, sizeof *parker, _Alignof(struct pirn__parker));
    if (parker == NULL)
        return NULL;
    memset(parker, 0, sizeof *parker);
    parker->wake_fd = -1;
    pirn__init(&parker->refs, 1);
    pirn__list_init(&parker->seat_link);
    local->parker = parker;
    return parker;
}

void pirn__parker_unref(struct pirn__parker *parker)
{
    const pirn_alloc *alloc = &pirn__alloc_malloc;

    /* acq_rel: release [parker.refs] our last use before the end; acquire
     * [parker.refs] everybody's, for the one that frees. */
    if (pirn__sub(&parker->refs, 1, acq_rel) != 1)
        return;
    if (parker->wake_fd >= 0)
        pirn__sys->close(parker->wake_fd);
    alloc->give(alloc->ctx, parker, sizeof *parker,
                _Alignof(struct pirn__parker));
}

bool pirn__parker_consume(struct pirn__parker *parker)
{
    uint32_t notified = PIRN__PARKER_NOTIFIED;

    /* acquire [parker.word]: sees what was written before the unpark. */
    return pirn__cas(&parker->word, &notified, PIRN__PARKER_EMPTY, acquire,
                     relaxed);
}

void pirn__parker_reset(struct pirn__parker *parker)
{
    struct pirn__home *home = parker->home;

    pirn__parker_consume(parker);
    parker->home = NULL;
    parker->fd_count = 0;
    if (home != NULL)
        pirn__home_unref(home);
}

/* Announce where we are going to sleep; false if an unpark came first. */
static bool announce(struct pirn__parker *parker, uint32_t where)
{
    uint32_t empty = PIRN__PARKER_EMPTY;

    /* release [parker.word]: hands `wake_fd` to the unparker.  relaxed when it
     * fails: who takes the unpark then does so with acquire. */
    if (pirn__cas(&parker->word, &empty, where, release, relaxed))
        return true;
    PIRN_ASSERT(empty == PIRN__PARKER_NOTIFIED);
    return false;
}

/* Be awake again; true if an unpark had come. */
static bool retreat(struct pirn__parker *parker)
{
    /* acquire [parker.word]: as in consume. */
    return pirn__swap(&parker->word, PIRN__PARKER_EMPTY, acquire) ==
           PIRN__PARKER_NOTIFIED;
}

/* The home in `driven`, whose reference is the caller's; or NULL. */
static struct pirn__home *take_driven(struct pirn__parker *parker)
{
    /* acquire [parker.driven]: the home is there.  Of the thread and the
     * unparkers one gets it. */
    return pirn__swap(&parker->driven, NULL, acquire);
}

void pirn__parker_drive_over(struct pirn__parker *parker)
{
    struct pirn__home *home = take_driven(parker);

    if (home != NULL)
        pirn__home_unref(home);
}

bool pirn__parker_drive_begin(struct pirn__parker *parker,
                              struct pirn__home *home)
{
    /* relaxed: an unparker may only take it out, and whoever does that now
     * wakes the driver once too often. */
    if (pirn__load(&parker->driven, relaxed) != home) {
        pirn__parker_drive_over(parker);
        pirn__home_ref(home);
        /* release [parker.driven]: hands the reference over. */
        pirn__store(&parker->driven, home, release);
    }
    return announce(parker, PIRN__PARKER_DRIVING);
}

bool pirn__parker_drive_end(struct pirn__parker *parker)
{
    return retreat(parker);
}

/* We have seen DRIVING.  Without a home there, another unparker has taken it for
 * this or a later sleep, and wakes the driver or has done so. */
static void wake_driven(struct pirn__parker *parker)
{
    struct pirn__home *home = take_driven(parker);

    if (home == NULL)
        return;
    home->ops->wake(home);
    pirn__home_unref(home);
}

static void park_on_word(struct pirn__parker *parker, pirn_deadline deadline)
{
    if (announce(parker, PIRN__PARKER_PARKED))
        (void)pirn__sys->futex_wait(&parker->word.v_, PIRN__PARKER_PARKED,
                                    deadline);
    retreat(parker);
}

/* After a sleep that found the wake descriptor written.  An unparker writes it
 * some time after it has changed the word, perhaps when the thread has long been
 * awake; then the next sleep finds it and ends at once. */
static void drain(struct pirn__parker *parker)
{
    uint64_t count;

    (void)pirn__sys->read(parker->wake_fd, &count, sizeof count);
}

static void park_in_poll(struct pirn__parker *parker, pirn_deadline deadline)
{
    struct pollfd fds[PIRN__PARKER_FDS + 1];
    struct pollfd *own = &fds[parker->fd_count];
    int count = 0;

    for (; count < (int)parker->fd_count; count++)
        fds[count] = (struct pollfd){.fd = parker->fds[count].fd,
                                     .events = (short)parker->fds[count].events};
    *own = (struct pollfd){.fd = parker->wake_fd, .events = POLLIN};
    if (announce(parker, PIRN__PARKER_POLLING))
        (void)pirn__sys->poll(fds, count + 1, deadline);
    (void)retreat(parker);
    if (own->revents != 0)
        drain(parker);
}

void pirn__parker_park(struct pirn__parker *parker, pirn_deadline deadline)
{
    if (parker->fd_count == 0) {
        park_on_word(parker, deadline);
        return;
    }
    if (parker->wake_fd < 0)
        parker->wake_fd = pirn__sys->eventfd();
    if (parker->wake_fd >= 0) {
        park_in_poll(parker, deadline);
        return;
    }
    /* Out of descriptors: look again soon, for readiness cannot wake us. */
    pirn_deadline soon = {pirn__sys->clock_ns() + 10000000};

    park_on_word(parker, deadline.ns < soon.ns ? deadline : soon);
}

void pirn__parker_unpark(struct pirn__parker *parker)
{
    /* acq_rel [parker.word]: release publishes the reason of the wake to the
     * thread; acquire sees `wake_fd`. */
    switch (pirn__swap(&parker->word, PIRN__PARKER_NOTIFIED, acq_rel)) {
    case PIRN__PARKER_PARKED:
        pirn__sys->futex_wake(&parker->word.v_, 1);
        break;
    case PIRN__PARKER_POLLING:
        pirn__sys->eventfd_signal(parker->wake_fd);
        break;
    case PIRN__PARKER_DRIVING:
        wake_driven(parker);
        break;
    default: /* awake, or notified already */
        break;
    }
}

static pirn_waker parker_waker_clone(const pirn_waker *self)
{
    return pirn__parker_waker(self->data);
}

static void parker_waker_wake_by_ref(const pirn_waker *self)
{
    pirn__parker_unpark(self->data);
}

static void parker_waker_drop(pirn_waker self)
{
    pirn__parker_unref(self.data);
}

static void parker_waker_wake(pirn_waker self)
{
    pirn__parker_unpark(self.data);
    pirn__parker_unref(self.data);
}

static const pirn_waker_ops parker_waker_ops = {
    .clone = parker_waker_clone,
    .wake = parker_waker_wake,
    .wake_by_ref = parker_waker_wake_by_ref,
    .drop = parker_waker_drop,
};

pirn_waker pirn__parker_waker(struct pirn__parker *parker)
{
    /* relaxed: the caller has a reference already. */
    pirn__add(&parker->refs, 1, relaxed);
    return (pirn_waker){.data = parker, .ops = &parker_waker_ops};
}
