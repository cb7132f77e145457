/* SPDX-License-Identifier: MIT */
/* src/reactor/io.c - life, calls and events; see io.h.  Waiting is in waiter.c,
 * closing in close.c.
 */
#include "reactor/io.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/lock.h"
#include "reactor/reactor.h"
#include "sys/sys.h"
#include "task/home.h"
#include "task/local.h"

enum {
    /* Wakers that are taken out under the lock at a time. */
    WAKE_BATCH = 16,
};

/* Life. */

struct pirn__io *pirn__io_take(size_t size)
{
    struct pirn__home *home = pirn__local_home();
    struct pirn__io *io = pirn__home_take_object(home, size);

    if (io == NULL)
        return NULL;
    memset(io, 0, size);
    io->size = size;
    io->memory_home = home;
    return io;
}

void pirn__io_give(struct pirn__io *io)
{
    pirn__home_give_object(io->memory_home, io, io->size);
}

void pirn__io_open(struct pirn__io *io, int fd,
                   const struct pirn__io_kind *kind)
{
    struct pirn__home *home = io->memory_home;

    io->fd = fd;
    io->slot = PIRN__IO_NO_SLOT;
    io->trusts_short =
        kind->kind == PIRN__FD_TCP || kind->kind == PIRN__FD_PIPE;
    io->was_blocking = kind->was_blocking;
    io->ops = kind->ops;
    pirn__init(&io->handles, 1);
    pirn__init(&io->refs, 1);
    pirn__init(&io->readiness.word, kind->ready);
    pirn__lock_init(&io->lock);
    pirn__line_init(&io->lines[0], &io->fronts[0]);
    pirn__line_init(&io->lines[1], &io->fronts[1]);
    pirn__list_init(&io->closers);
    pirn__list_init(&io->bound_link);
    if (home == NULL || home->reactor == NULL)
        return;
    /* From the moment it is bound, the end of the reactor may look at it.  A
     * reactor that has ended leaves it unbound. */
    pirn__lock(&io->lock);
    if (pirn__reactor_bind(home->reactor, io) == 0)
        io->reactor = home->reactor;
    pirn__unlock(&io->lock);
}

int pirn__io_adopt(size_t size, int fd, struct pirn__io_kind kind,
                   struct pirn__io **out)
{
    struct pirn__io *io = pirn__io_take(size);
    int rc;

    if (io == NULL)
        return -ENOMEM;
    rc = pirn__sys->set_nonblock(fd, true);
    if (rc < 0) {
        pirn__io_give(io);
        return rc;
    }
    kind.was_blocking = rc == 0;
    kind.ready = PIRN__READY_READ | PIRN__READY_WRITE;
    pirn__io_open(io, fd, &kind);
    *out = io;
    return 0;
}

void pirn__io_ref(struct pirn__io *io)
{
    /* relaxed: the caller has a handle already. */
    pirn__add(&io->handles, 1, relaxed);
}

void pirn__io_unref(struct pirn__io *io)
{
    /* acq_rel [io.handles]: release [io.handles] ends our use; acquire
     * [io.handles] is the half of the last owner, who closes after all
     * others. */
    if (pirn__sub(&io->handles, 1, acq_rel) != 1)
        return;
    (void)pirn__io_seal(io);
    pirn__io_drop(io);
}

void pirn__io_keep(struct pirn__io *io)
{
    /* relaxed: the caller has a reference already. */
    pirn__add(&io->refs, 1, relaxed);
}

void pirn__io_drop(struct pirn__io *io)
{
    /* acq_rel [io.refs]: release [io.refs] ends our use; acquire [io.refs] is
     * the half of the one that frees. */
    if (pirn__sub(&io->refs, 1, acq_rel) != 1)
        return;
    PIRN_ASSERT(io->gone);
    PIRN_ASSERT(io->reactor == NULL);
    if (io->bound_home != NULL)
        pirn__home_unref(io->bound_home);
    pirn__io_give(io);
}

void pirn__io_describe(struct pirn__io *io, const char *verb, pirn_text *out)
{
    pirn_text_append(out, "%s ", verb);
    io->ops->name(io, out);
}

/* Calls. */

ssize_t pirn__io_call_after(struct pirn__io *io, unsigned direction,
                            const struct pirn__io_call *call, uint64_t seen)
{
    return pirn__io_call_here(io, direction, call, seen);
}

ssize_t pirn__io_call(struct pirn__io *io, unsigned direction,
                      const struct pirn__io_call *call)
{
    return pirn__io_call_after(io, direction, call,
                               pirn__readiness_get(&io->readiness));
}

static bool kernel_says_ready(int fd, unsigned direction)
{
    struct pollfd poll = {.fd = fd};

    poll.events =
        direction == PIRN_READABLE ? (short)(POLLIN | POLLPRI) : (short)POLLOUT;
    return pirn__sys->poll(&poll, 1, PIRN_EXPIRED) > 0;
}

void pirn__io_ask(struct pirn__io *io, unsigned direction)
{
    uint64_t seen = pirn__readiness_get(&io->readiness);

    if (!pirn__gate_enter(&io->gate))
        return;
    if (kernel_says_ready(io->fd, direction))
        pirn__readiness_add(&io->readiness, direction);
    else
        pirn__readiness_clear(&io->readiness, seen, direction);
    if (pirn__gate_leave(&io->gate))
        pirn__io_finish(io);
}

/* Lines. */

static inline pirn_waker call_up_locked(struct pirn__io *io, unsigned direction)
{
    struct pirn__line *line = pirn__io_line(io, direction);
    uintptr_t front = pirn__front_look(line->front);

    if (front == 0 || !pirn__readiness_has(
                          pirn__readiness_look(&io->readiness), direction))
        return (pirn_waker){0};
    if (pirn__front_waits(front))
        return pirn__front_call_up(line->front, PIRN__FRONT_CALLED);
    return pirn__line_can_call(line) ? pirn__line_call_up(line)
                                     : (pirn_waker){0};
}

pirn_waker pirn__io_call_up_locked(struct pirn__io *io, unsigned direction)
{
    return call_up_locked(io, direction);
}

void pirn__io_empty_locked(struct pirn__io *io, pirn_link *out)
{
    for (int i = 0; i < 2; i++)
        pirn__line_empty(&io->lines[i], out);
}

int pirn__io_tell_fronts_locked(struct pirn__io *io, uintptr_t flag,
                                pirn_waker *wakers)
{
    int count = 0;

    for (int i = 0; i < 2; i++) {
        wakers[count] = pirn__front_call_up(&io->fronts[i], flag);
        count += wakers[count].ops != NULL;
    }
    return count;
}

/* Up to WAKE_BATCH wakers out of a list. */
static int take_wakers_locked(pirn_link *list, uint8_t state,
                              pirn_waker *wakers)
{
    int count = 0;

    while (count < WAKE_BATCH && !pirn__list_empty(list)) {
        pirn_io_waiter *waiter =
            PIRN_CONTAINER_OF(pirn__list_pop_head(list), pirn_io_waiter, link_);

        pirn__waiter_set_state(waiter, state);
        wakers[count++] = pirn_waker_take(&waiter->waker_);
    }
    return count;
}

void pirn__io_wake_list(struct pirn__io *io, pirn_link *list, uint8_t state)
{
    pirn_waker wakers[WAKE_BATCH];
    int count;

    /* Ends: nobody adds to the list. */
    do {
        pirn__lock(&io->lock);
        count = take_wakers_locked(list, state, wakers);
        pirn__unlock(&io->lock);
        for (int i = 0; i < count; i++)
            pirn_waker_wake(wakers[i]);
    } while (count == WAKE_BATCH);
}

/* Binding. */

void pirn__io_unbind_locked(struct pirn__io *io)
{
    struct pirn__reactor *reactor = io->reactor;

    if (reactor == NULL)
        return;
    if (io->registered)
        pirn__reactor_unwatch(reactor, io->fd);
    pirn__reactor_unbind(reactor, io);
    pirn__readiness_unmark(&io->readiness, PIRN__READY_WATCHED);
    io->registered = false;
    io->reactor = NULL;
}

void pirn__io_end(struct pirn__io *io, struct pirn__reactor *reactor)
{
    pirn_waker fronts[2];
    pirn_link waiters;
    int count = 0;

    pirn__list_init(&waiters);
    pirn__lock(&io->lock);
    if (io->reactor == reactor) {
        pirn__io_unbind_locked(io);
        pirn__io_empty_locked(io, &waiters);
        count = pirn__io_tell_fronts_locked(io, PIRN__FRONT_ENDED, fronts);
    }
    pirn__unlock(&io->lock);
    while (count > 0)
        pirn_waker_wake(fronts[--count]);
    pirn__io_wake_list(io, &waiters, PIRN__WAITER_ENDED);
}

/* Events. */

PIRN__COLD static unsigned readiness_of_rare(uint32_t events)
{
    unsigned bits = 0;

    /* The peer's end of stream, EPOLLRDHUP, makes the descriptor readable and
     * no more: there may be data before the end, and writing goes on. */
    if ((events & (EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
        bits |= PIRN__READY_READ;
    if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0)
        bits |= PIRN__READY_WRITE;
    if ((events & EPOLLRDHUP) != 0)
        bits |= PIRN__READY_ENDED;
    if ((events & EPOLLHUP) != 0)
        bits |= PIRN__READY_HUNG_UP;
    if ((events & EPOLLERR) != 0)
        bits |= PIRN__READY_FAILED;
    if ((events & EPOLLPRI) != 0)
        bits |= PIRN__READY_URGENT;
    return bits;
}

PIRN__COLD static int call_up_slowly(struct pirn__io *io, unsigned direction,
                                     pirn_waker *waker)
{
    pirn__lock(&io->lock);
    *waker = call_up_locked(io, direction);
    pirn__unlock(&io->lock);
    return waker->ops != NULL;
}

/* Call up who waits in line, after an event that left the readiness `word`.
 * Returns how many wakers that are. */
static inline int call_up(struct pirn__io *io, unsigned direction,
                          uint64_t word, pirn_waker *waker)
{
    pirn__front *front = pirn__io_front(io, direction);
    uintptr_t seen = pirn__front_look(front);

    /* As a rule one task waits to read, and nobody to write. */
    if (seen == 0 || !pirn__readiness_has(word, direction))
        return 0;
    if (!pirn__front_waits(seen) ||
        !pirn__front_step(front, &seen, seen | PIRN__FRONT_CALLED))
        return call_up_slowly(io, direction, waker);
    *waker = pirn__task_waker_borrowed(pirn__front_task(seen));
    return 1;
}

static inline unsigned readiness_of(uint32_t events)
{
    if ((events & ~(uint32_t)(EPOLLIN | EPOLLOUT)) != 0)
        return readiness_of_rare(events);
    return ((events & EPOLLIN) != 0 ? PIRN__READY_READ : 0u) |
           ((events & EPOLLOUT) != 0 ? PIRN__READY_WRITE : 0u);
}

int pirn__io_take_event(struct pirn__io *io, uint32_t events,
                        pirn_waker *wakers)
{
    uint64_t word = pirn__readiness_add(&io->readiness, readiness_of(events));
    int count = call_up(io, PIRN_READABLE, word, wakers);

    return count + call_up(io, PIRN_WRITABLE, word, &wakers[count]);
}
