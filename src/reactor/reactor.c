/* SPDX-License-Identifier: MIT */
/* src/reactor/reactor.c - epoll.
 *
 * An event carries the address of its pirn__io, and the driver meets that
 * address some time after the kernel wrote it down: the io may have been closed
 * in between.  Therefore the reactor holds a reference to each io of its list,
 * and when one leaves that was registered, the reference goes to the graveyard.
 * The driver empties the graveyard before it asks the kernel again.  By then the
 * last batch has been worked off, and as each io in the graveyard has left the
 * set, no later batch can name it.  A burst of closes on other threads cannot
 * pile the graveyard up without bound: from a certain size on the driver is
 * woken.
 *
 * Invariant, under the lock of an io: it is in the list exactly if its `reactor`
 * is this one.  So the reactor outlives whoever sees that under the io's lock.
 *
 * Lock order: an io, then the reactor.
 */
#include "reactor/reactor.h"

#include <errno.h>
#include <sys/epoll.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/lock.h"
#include "reactor/io.h"
#include "sys/fork.h"
#include "sys/sys.h"
#include "task/home.h"

enum {
    EVENT_BATCH = 1024,
    GRAVEYARD_LIMIT = 1024,
    REACTOR_ALIGN = 64,
};

/* The kernel's own timeout is late by the slack of the thread, 50 us by default;
 * below this it is worth a system call to be exact. */
static const uint64_t short_wait_ns = 4 * 1000 * 1000;

struct pirn__reactor {
    const pirn_alloc *alloc;
    struct pirn__home *home;
    int epoll_fd; /* constant until shutdown */
    int timer_fd;
    int wake_fd;                        /* lock: -1 from shutdown on */
    PIRN_ATOMIC(uint32_t) wake_pending; /* 1: written, not harvested yet */
    uint64_t timer_ns;                  /* driver: what timer_fd is armed for */
    pirn_lock lock;
    bool dead;                              /* lock: binds nothing more */
    pirn_link bound;                        /* lock */
    pirn_link graveyard;                    /* lock */
    PIRN_ATOMIC(uint32_t) grave_count;      /* written under the lock */
    struct epoll_event events[EVENT_BATCH]; /* driver */
};

/* Making. */

/* Nobody reads the counter of either, so they are edge-triggered: otherwise
 * they would stay ready for ever after the first time. */
static int add_own(struct pirn__reactor *reactor, int *fd)
{
    return pirn__sys->epoll_add(reactor->epoll_fd, *fd, EPOLLIN | EPOLLET, fd);
}

static int open_descriptors(struct pirn__reactor *reactor)
{
    int rc = pirn__sys->epoll_create();

    if (rc < 0)
        return rc;
    reactor->epoll_fd = rc;

    rc = pirn__sys->eventfd();
    if (rc < 0)
        goto fail_epoll_fd;
    reactor->wake_fd = rc;
    rc = add_own(reactor, &reactor->wake_fd);
    if (rc < 0)
        goto fail_wake_fd;

    rc = pirn__sys->timerfd();
    if (rc < 0)
        goto fail_wake_fd;
    reactor->timer_fd = rc;
    rc = add_own(reactor, &reactor->timer_fd);
    if (rc < 0)
        goto fail_timer_fd;
    return 0;

fail_timer_fd:
    pirn__sys->close(reactor->timer_fd);
fail_wake_fd:
    pirn__sys->close(reactor->wake_fd);
fail_epoll_fd:
    pirn__sys->close(reactor->epoll_fd);
    return rc;
}

int pirn__reactor_new(const pirn_alloc *alloc, struct pirn__home *home,
                      struct pirn__reactor **out)
{
    struct pirn__reactor *reactor =
        alloc->take(alloc->ctx, sizeof *reactor, REACTOR_ALIGN);
    int rc;

    *out = NULL;
    if (reactor == NULL)
        return -ENOMEM;
    reactor->alloc = alloc;
    reactor->home = home;
    reactor->timer_ns = UINT64_MAX;
    reactor->dead = false;
    pirn__init(&reactor->wake_pending, 0);
    pirn__init(&reactor->grave_count, 0);
    pirn__lock_init(&reactor->lock);
    pirn__list_init(&reactor->bound);
    pirn__list_init(&reactor->graveyard);
    rc = open_descriptors(reactor);
    if (rc < 0) {
        alloc->give(alloc->ctx, reactor, sizeof *reactor, REACTOR_ALIGN);
        return rc;
    }
    *out = reactor;
    return 0;
}

int pirn__reactor_fd(const struct pirn__reactor *reactor)
{
    return reactor->epoll_fd;
}

struct pirn__home *pirn__reactor_home(const struct pirn__reactor *reactor)
{
    return reactor->home;
}

/* Waking. */

/* True for the one who has to write. */
static bool claim_wake(struct pirn__reactor *reactor)
{
    /* acq_rel [reactor.wake]: release publishes what the driver is to find,
     * also when an earlier wake is still pending: its harvest reads this swap
     * or a later one. */
    return pirn__swap(&reactor->wake_pending, 1, acq_rel) == 0;
}

/* Under the lock the descriptor is open or known to be gone. */
static void write_wake_locked(struct pirn__reactor *reactor)
{
    if (reactor->wake_fd >= 0)
        (void)pirn__sys->eventfd_signal(reactor->wake_fd);
}

void pirn__reactor_wake(struct pirn__reactor *reactor)
{
    if (!claim_wake(reactor))
        return;
    pirn__lock(&reactor->lock);
    write_wake_locked(reactor);
    pirn__unlock(&reactor->lock);
}

/* The list. */

int pirn__reactor_bind(struct pirn__reactor *reactor, struct pirn__io *io)
{
    int rc = PIRN_ESHUTDOWN;

    pirn__lock(&reactor->lock);
    if (!reactor->dead) {
        pirn__io_keep(io);
        pirn__list_push_tail(&reactor->bound, &io->bound_link);
        rc = 0;
    }
    pirn__unlock(&reactor->lock);
    return rc;
}

/* The wake stays under the lock: without it the reactor may be gone once its
 * list is empty. */
static void bury_locked(struct pirn__reactor *reactor, struct pirn__io *io)
{
    uint32_t count;

    pirn__list_push_tail(&reactor->graveyard, &io->bound_link);
    /* relaxed: the lock orders it; the driver's look outside is a hint. */
    count = pirn__add(&reactor->grave_count, 1, relaxed) + 1;
    if (count % GRAVEYARD_LIMIT == 0 && claim_wake(reactor))
        write_wake_locked(reactor);
}

void pirn__reactor_unbind(struct pirn__reactor *reactor, struct pirn__io *io,
                          bool quiet)
{
    pirn__lock(&reactor->lock);
    pirn__list_remove(&io->bound_link);
    if (!quiet)
        bury_locked(reactor, io);
    pirn__unlock(&reactor->lock);
    /* Not the last one: the caller works on `io`. */
    if (quiet)
        pirn__io_drop(io);
}

int pirn__reactor_watch(struct pirn__reactor *reactor, struct pirn__io *io,
                        int fd)
{
    return pirn__sys->epoll_add(
        reactor->epoll_fd, fd,
        EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET, io);
}

void pirn__reactor_unwatch(struct pirn__reactor *reactor, int fd)
{
    /* The set is shared with the parent process, whose registration of the same
     * file this would end. */
    if (reactor->home->fork_generation != pirn__fork_generation())
        return;
    (void)pirn__sys->epoll_remove(reactor->epoll_fd, fd);
}

static void empty_graveyard(struct pirn__reactor *reactor)
{
    pirn_link graves;
    pirn_link *link;

    /* relaxed: a hint.  What is missed now goes before the next wait. */
    if (pirn__load(&reactor->grave_count, relaxed) == 0)
        return;
    pirn__list_init(&graves);
    pirn__lock(&reactor->lock);
    pirn__list_splice_tail(&graves, &reactor->graveyard);
    /* relaxed: the lock orders it. */
    pirn__store(&reactor->grave_count, 0, relaxed);
    pirn__unlock(&reactor->lock);
    /* Whoever is in the graveyard is sealed and never bound again: its link is
     * ours alone. */
    while ((link = pirn__list_pop_head(&graves)) != NULL)
        pirn__io_drop(PIRN_CONTAINER_OF(link, struct pirn__io, bound_link));
}

/* Waiting. */

/* The timeout for the kernel: a short one is given to the timerfd instead.
 * Usually that is armed for the same time already; one that is armed for an
 * earlier time costs one early return, less than to disarm it each time. */
static pirn_deadline prepare_timeout(struct pirn__reactor *reactor,
                                     pirn_deadline deadline)
{
    uint64_t now;

    if (deadline.ns == PIRN_NEVER.ns || deadline.ns == 0)
        return deadline;
    now = pirn__sys->clock_ns();
    if (deadline.ns <= now)
        return PIRN_EXPIRED;
    if (deadline.ns - now >= short_wait_ns)
        return deadline;
    if (reactor->timer_ns != deadline.ns) {
        if (pirn__sys->timerfd_set(reactor->timer_fd, deadline) < 0)
            return deadline;
        reactor->timer_ns = deadline.ns;
    }
    return PIRN_NEVER;
}

static void harvest_wake(struct pirn__reactor *reactor)
{
    /* acq_rel [reactor.wake]: acquire what each waker that found the flag set
     * has published; the driver looks at its queues after this.  A swap, for a
     * plain store would read from none of them. */
    (void)pirn__swap(&reactor->wake_pending, 0, acq_rel);
}

/* True for a descriptor, false for one of our own. */
static bool harvest(struct pirn__reactor *reactor,
                    const struct epoll_event *event)
{
    if (event->data.ptr == &reactor->wake_fd) {
        harvest_wake(reactor);
        return false;
    }
    if (event->data.ptr == &reactor->timer_fd)
        return false;
    pirn__io_event(event->data.ptr, event->events);
    return true;
}

int pirn__reactor_poll(struct pirn__reactor *reactor, pirn_deadline deadline)
{
    pirn_deadline timeout;
    int harvested = 0;
    int count;

    empty_graveyard(reactor);
    timeout = prepare_timeout(reactor, deadline);
    count = pirn__sys->epoll_wait(reactor->epoll_fd, reactor->events,
                                  EVENT_BATCH, timeout);
    if (count < 0)
        return count;
    for (int i = 0; i < count; i++)
        harvested += harvest(reactor, &reactor->events[i]);
    return harvested;
}

/* Ending. */

/* The first of the list, with a reference of the caller's; or NULL. */
static struct pirn__io *first_bound(struct pirn__reactor *reactor)
{
    struct pirn__io *io = NULL;
    pirn_link *link;

    pirn__lock(&reactor->lock);
    reactor->dead = true;
    link = pirn__list_first(&reactor->bound);
    if (link != NULL) {
        io = PIRN_CONTAINER_OF(link, struct pirn__io, bound_link);
        pirn__io_keep(io);
    }
    pirn__unlock(&reactor->lock);
    return io;
}

static void close_descriptors(struct pirn__reactor *reactor)
{
    int wake_fd;

    pirn__lock(&reactor->lock);
    wake_fd = reactor->wake_fd;
    reactor->wake_fd = -1;
    pirn__unlock(&reactor->lock);
    if (wake_fd < 0)
        return;
    pirn__sys->close(wake_fd);
    pirn__sys->close(reactor->timer_fd);
    pirn__sys->close(reactor->epoll_fd);
    reactor->epoll_fd = -1;
}

void pirn__reactor_shutdown(struct pirn__reactor *reactor)
{
    struct pirn__io *io;

    /* Ends: a dead reactor binds nothing, and each round unbinds one. */
    while ((io = first_bound(reactor)) != NULL) {
        pirn__io_end(io, reactor);
        pirn__io_drop(io);
    }
    empty_graveyard(reactor);
    close_descriptors(reactor);
}

void pirn__reactor_free(struct pirn__reactor *reactor)
{
    const pirn_alloc *alloc = reactor->alloc;

    PIRN_ASSERT(reactor->wake_fd < 0);
    PIRN_ASSERT(pirn__list_empty(&reactor->bound));
    alloc->give(alloc->ctx, reactor, sizeof *reactor, REACTOR_ALIGN);
}
