/* SPDX-License-Identifier: MIT */
/* src/reactor/io.c - life, calls, binding and waiting; see io.h.  Closing is in
 * close.c.
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
    /* Calls in one poll that may find the kernel's readiness wrong. */
    MOST_TRIES = 4,
    /* Wakers that are taken out under the lock at a time. */
    WAKE_BATCH = 16,
    /* The kernel cuts longer transfers (at 2 GiB less a page) for no reason
     * that the descriptor knows. */
    KERNEL_LIMIT = 1 << 30,
};

static struct pirn__io_line *line_of(struct pirn__io *io, unsigned direction)
{
    return &io->lines[direction == PIRN_WRITABLE];
}

/* Life. */

struct pirn__io *pirn__io_take(size_t size)
{
    struct pirn__home *home = pirn__local_home();
    struct pirn__io *io = pirn__home_take(home, size);

    if (io == NULL)
        return NULL;
    memset(io, 0, size);
    io->size = size;
    io->memory_home = home;
    if (home != NULL)
        pirn__home_ref(home);
    return io;
}

void pirn__io_give(struct pirn__io *io)
{
    struct pirn__home *home = io->memory_home;

    pirn__home_give(home, io, io->size);
    if (home != NULL)
        pirn__home_unref(home);
}

static void init_line(struct pirn__io_line *line)
{
    pirn__list_init(&line->waiters);
    pirn__init(&line->length, 0);
}

void pirn__io_open(struct pirn__io *io, int fd, const struct pirn__io_kind *kind)
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
    init_line(&io->lines[0]);
    init_line(&io->lines[1]);
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

static bool would_block(const struct pirn__io *io, unsigned direction,
                        uint64_t seen, const struct pirn__io_call *call,
                        ssize_t n)
{
    if (n <= 0)
        return n == -EAGAIN;
    return io->trusts_short && (size_t)n < call->wanted && n < KERNEL_LIMIT &&
           pirn__readiness_trusts_short(seen, direction);
}

/* `seen` is the readiness that made the caller try. */
static ssize_t call_after(struct pirn__io *io, unsigned direction,
                          const struct pirn__io_call *call, uint64_t seen)
{
    ssize_t n;

    if (!pirn__gate_enter(&io->gate))
        return PIRN_ECLOSED;
    n = call->fn(io->fd, call->arg);
    if (would_block(io, direction, seen, call, n)) {
        /* An empty buffer has no urgent byte in it either. */
        unsigned bits = direction == PIRN_READABLE && n < 0
                            ? direction | PIRN__READY_URGENT
                            : direction;

        pirn__readiness_clear(&io->readiness, seen, bits);
    }
    if (pirn__gate_leave(&io->gate))
        pirn__io_finish(io);
    return n;
}

ssize_t pirn__io_call(struct pirn__io *io, unsigned direction,
                      const struct pirn__io_call *call)
{
    return call_after(io, direction, call,
                      pirn__readiness_get(&io->readiness));
}

ssize_t pirn__io_try(struct pirn__io *io, unsigned direction,
                     const struct pirn__io_call *call)
{
    uint64_t seen = pirn__readiness_get(&io->readiness);

    if (!pirn__readiness_has(seen, direction))
        return -EAGAIN;
    /* relaxed: a hint.  Who misses a waiter that has just come overtakes it,
     * as if it had been a little earlier itself. */
    if (pirn__load(&line_of(io, direction)->length, relaxed) > 0)
        return -EAGAIN;
    return call_after(io, direction, call, seen);
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

/* After every change of a line. */
static void publish_length_locked(struct pirn__io_line *line)
{
    uint32_t length = line->woken + !pirn__list_empty(&line->waiters);

    /* relaxed: a hint for pirn__io_try(). */
    pirn__store(&line->length, length, relaxed);
}

/* Take the first out of line, and its waker. */
static pirn_waker call_up_locked(struct pirn__io_line *line)
{
    pirn_io_waiter *waiter;

    waiter = PIRN_CONTAINER_OF(pirn__list_pop_head(&line->waiters),
                               pirn_io_waiter, link_);
    pirn__io_waiter_set(waiter, PIRN__WAITER_WOKEN);
    line->woken++;
    publish_length_locked(line);
    return pirn_waker_take(&waiter->waker_);
}

/* Restore the invariant of io.h: the waker of the first in line, if it should
 * try now, else the empty one. */
static inline pirn_waker wake_first_locked(struct pirn__io *io,
                                           unsigned direction)
{
    struct pirn__io_line *line = line_of(io, direction);
    uint64_t word;

    if (line->woken > 0 || pirn__list_empty(&line->waiters))
        return (pirn_waker){0};
    word = pirn__readiness_get(&io->readiness);
    if (!pirn__readiness_has(word, direction))
        return (pirn_waker){0};
    return call_up_locked(line);
}

void pirn__io_pass_on(struct pirn__io *io, unsigned direction)
{
    pirn_waker waker;

    pirn__lock(&io->lock);
    waker = wake_first_locked(io, direction);
    pirn__unlock(&io->lock);
    pirn_waker_wake(waker);
}

void pirn__io_empty_locked(struct pirn__io *io, pirn_link *out)
{
    for (int i = 0; i < 2; i++) {
        pirn__list_splice_tail(out, &io->lines[i].waiters);
        publish_length_locked(&io->lines[i]);
    }
}

/* Up to WAKE_BATCH wakers out of a list. */
static int take_wakers_locked(pirn_link *list, uint8_t state,
                              pirn_waker *wakers)
{
    int count = 0;

    while (count < WAKE_BATCH && !pirn__list_empty(list)) {
        pirn_io_waiter *waiter = PIRN_CONTAINER_OF(pirn__list_pop_head(list),
                                                   pirn_io_waiter, link_);

        pirn__io_waiter_set(waiter, state);
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

/* What must happen to others once the lock is free. */
struct aftermath {
    pirn_waker old; /* replaced by the caller's */
    bool bound;     /* what follows is set */
    struct pirn__home *before; /* bound earlier; or NULL */
    pirn_link moved;           /* wait on the descriptor, but now a reactor
                                  watches it: have them look again */
};

static void clean_up(struct pirn__io *io, struct aftermath *after)
{
    pirn_waker_drop(after->old);
    if (!after->bound)
        return;
    if (after->before != NULL)
        pirn__home_unref(after->before);
    pirn__io_wake_list(io, &after->moved, PIRN__WAITER_OUT);
}

static int bind_locked(struct pirn__io *io, struct pirn__home *home,
                       struct aftermath *after)
{
    int rc;

    if (home->reactor == NULL)
        return PIRN_ENORUNTIME;
    rc = pirn__reactor_bind(home->reactor, io);
    if (rc < 0)
        return rc;
    io->reactor = home->reactor;
    /* Plain threads that wait for this runtime know its home only through us,
     * so it is kept until we go, also when the runtime ends before. */
    pirn__home_ref(home);
    after->bound = true;
    after->before = io->bound_home;
    io->bound_home = home;
    pirn__list_init(&after->moved);
    pirn__io_empty_locked(io, &after->moved);
    return 0;
}

static int register_locked(struct pirn__io *io)
{
    int rc;

    if (io->registered)
        return 0;
    rc = pirn__reactor_watch(io->reactor, io, io->fd);
    if (rc == -EPERM) {
        /* A device without readiness, /dev/null among them. */
        pirn__readiness_mark(&io->readiness, PIRN__READY_ALWAYS);
        return 0;
    }
    io->registered = rc == 0;
    return rc;
}

void pirn__io_unbind_locked(struct pirn__io *io)
{
    struct pirn__reactor *reactor = io->reactor;

    if (reactor == NULL)
        return;
    if (io->registered)
        pirn__reactor_unwatch(reactor, io->fd);
    pirn__reactor_unbind(reactor, io);
    io->registered = false;
    io->reactor = NULL;
}

void pirn__io_end(struct pirn__io *io, struct pirn__reactor *reactor)
{
    pirn_link waiters;

    pirn__list_init(&waiters);
    pirn__lock(&io->lock);
    if (io->reactor == reactor) {
        pirn__io_unbind_locked(io);
        pirn__io_empty_locked(io, &waiters);
    }
    pirn__unlock(&io->lock);
    pirn__io_wake_list(io, &waiters, PIRN__WAITER_ENDED);
}

/* Nobody watches: the thread that polls will wait on the descriptor itself. */
static int watch_alone(struct pirn__io *io, unsigned direction, pirn_cx *cx)
{
    uint64_t word = pirn__readiness_get(&io->readiness);

    /* The descriptor may be ready all the time of a hold. */
    if (direction == PIRN_READABLE && (word & PIRN__READY_HELD) != 0)
        return 0;
    return pirn__turn_note_fd(cx, io->fd,
                              direction == PIRN_READABLE ? POLLIN : POLLOUT);
}

/* See to it that somebody will tell of an event. */
static int attach_locked(struct pirn__io *io, unsigned direction, pirn_cx *cx,
                         struct aftermath *after)
{
    struct pirn__turn *turn = cx->turn_;
    int rc;

    if (io->reactor == NULL) {
        if (turn == NULL)
            return PIRN_ENORUNTIME;
        if (turn->parker != NULL)
            return watch_alone(io, direction, cx);
        if (turn->home == NULL)
            return PIRN_ENORUNTIME;
        rc = bind_locked(io, turn->home, after);
        if (rc < 0)
            return rc;
    }
    rc = register_locked(io);
    /* Only a plain thread has to be told who will wake it. */
    if (rc == 0 && turn != NULL && turn->parker != NULL)
        pirn__turn_note_home(cx, pirn__reactor_home(io->reactor));
    return rc;
}

/* Waiting. */

void pirn__io_waiter_init(pirn_io_waiter *waiter, struct pirn__io *io,
                          enum pirn_interest direction)
{
    *waiter = (pirn_io_waiter){.io_ = io, .direction_ = (uint8_t)direction};
    pirn__list_init(&waiter->link_);
}

static bool is_always_ready(const struct pirn__io *io)
{
    uint64_t word = pirn__readiness_get(&io->readiness);

    return (word & PIRN__READY_ALWAYS) != 0;
}

/* The usual case, which needs no lock: it was woken, and may try. */
static bool is_woken(const pirn_io_waiter *waiter)
{
    const struct pirn__io *io = waiter->io_;

    return pirn__io_waiter_state(waiter) == PIRN__WAITER_WOKEN &&
           pirn__readiness_has(pirn__readiness_get(&io->readiness),
                               waiter->direction_) &&
           !pirn__gate_is_sealed(&io->gate);
}

/* True if it is this waiter's turn; it is not in line then. */
static bool may_try_locked(struct pirn__io *io, pirn_io_waiter *waiter)
{
    struct pirn__io_line *line = line_of(io, waiter->direction_);
    uint64_t word = pirn__readiness_get(&io->readiness);
    uint8_t state = pirn__io_waiter_state(waiter);

    if (!pirn__readiness_has(word, waiter->direction_))
        return false;
    /* Plain threads that wait on the descriptor see the same readiness and are
     * not told apart: the kernel decides who gets it. */
    if (state == PIRN__WAITER_WOKEN || io->reactor == NULL ||
        (word & PIRN__READY_ALWAYS) != 0)
        return true;
    if (line->woken > 0)
        return false;
    if (state == PIRN__WAITER_OUT)
        return pirn__list_empty(&line->waiters);
    if (pirn__list_first(&line->waiters) != &waiter->link_)
        return false;
    pirn__list_remove(&waiter->link_);
    pirn__io_waiter_set(waiter, PIRN__WAITER_WOKEN);
    line->woken++;
    return true;
}

static pirn_waker enqueue_locked(struct pirn__io *io, pirn_io_waiter *waiter,
                                 const pirn_cx *cx)
{
    struct pirn__io_line *line = line_of(io, waiter->direction_);
    uint8_t state = pirn__io_waiter_state(waiter);

    if (state == PIRN__WAITER_WOKEN) {
        /* It was the first, and found nothing: it is the first again. */
        line->woken--;
        pirn__list_push_head(&line->waiters, &waiter->link_);
    } else if (state == PIRN__WAITER_OUT) {
        pirn__list_push_tail(&line->waiters, &waiter->link_);
    }
    pirn__io_waiter_set(waiter, PIRN__WAITER_QUEUED);
    waiter->entered_ = true;
    publish_length_locked(line);
    return pirn_waker_store(&waiter->waker_, cx);
}

/* 0: try.  1: wait.  Negative: neither. */
static int decide_locked(struct pirn__io *io, pirn_io_waiter *waiter,
                         pirn_cx *cx, struct aftermath *after)
{
    int rc;

    if (pirn__gate_is_sealed(&io->gate))
        return PIRN_ECLOSED;
    if (pirn__io_waiter_state(waiter) == PIRN__WAITER_ENDED)
        return PIRN_ESHUTDOWN;
    if (may_try_locked(io, waiter))
        return 0;
    rc = attach_locked(io, waiter->direction_, cx, after);
    if (rc < 0)
        return rc;
    if (is_always_ready(io))
        return 0;
    /* An event between the look at the readiness above and here is not lost:
     * it changes the readiness first and then needs the lock, so it will find
     * us in line. */
    after->old = enqueue_locked(io, waiter, cx);
    return 1;
}

/* Before a plain thread waits on a descriptor of its own it asks the kernel:
 * nobody else keeps the readiness of an unbound one. */
static void ask_if_alone(struct pirn__io *io, unsigned direction)
{
    uint64_t word = pirn__readiness_get(&io->readiness);
    bool is_alone;

    if ((word & (direction | PIRN__READY_ALWAYS)) != 0)
        return;
    pirn__lock(&io->lock);
    is_alone = io->reactor == NULL;
    pirn__unlock(&io->lock);
    if (is_alone)
        pirn__io_ask(io, direction);
}

enum pirn_poll pirn__io_poll_ready(pirn_io_waiter *waiter, pirn_cx *cx, int *rc)
{
    struct pirn__io *io = waiter->io_;
    struct aftermath after = {.bound = false};

    *rc = 0;
    if (is_woken(waiter))
        return PIRN_READY;
    if (cx->turn_ != NULL && cx->turn_->parker != NULL)
        ask_if_alone(io, waiter->direction_);
    pirn__lock(&io->lock);
    *rc = decide_locked(io, waiter, cx, &after);
    pirn__unlock(&io->lock);
    clean_up(io, &after);
    return *rc > 0 ? PIRN_PENDING : PIRN_READY;
}

enum pirn_poll pirn__io_poll_call(pirn_io_waiter *waiter, pirn_cx *cx,
                                  const struct pirn__io_call *call,
                                  ssize_t *result)
{
    struct pirn__io *io = waiter->io_;
    int rc;

    for (int tries = 0; tries < MOST_TRIES; tries++) {
        if (pirn__io_poll_ready(waiter, cx, &rc) == PIRN_PENDING)
            return PIRN_PENDING;
        if (rc < 0) {
            *result = rc;
            return PIRN_READY;
        }
        *result = pirn__io_call(io, waiter->direction_, call);
        if (*result != -EAGAIN || is_always_ready(io))
            return PIRN_READY;
    }
    /* Others are quicker each time, or the kernel says "ready" and "not yet" in
     * one breath: let the rest of the world run, and the deadline be looked
     * at. */
    pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

void pirn__io_waiter_leave(pirn_io_waiter *waiter)
{
    struct pirn__io *io = waiter->io_;
    struct pirn__io_line *line;
    pirn_waker own, next;
    uint8_t state;

    if (!waiter->entered_)
        return;
    line = line_of(io, waiter->direction_);
    pirn__lock(&io->lock);
    state = pirn__io_waiter_state(waiter);
    if (state == PIRN__WAITER_QUEUED)
        pirn__list_remove(&waiter->link_);
    else if (state == PIRN__WAITER_WOKEN)
        line->woken--;
    pirn__io_waiter_set(waiter, PIRN__WAITER_OUT);
    own = pirn_waker_take(&waiter->waker_);
    publish_length_locked(line);
    next = wake_first_locked(io, waiter->direction_);
    pirn__unlock(&io->lock);
    waiter->entered_ = false;
    pirn_waker_drop(own);
    pirn_waker_wake(next);
}

/* Events. */

static unsigned readiness_of(uint32_t events)
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

void pirn__io_event(struct pirn__io *io, uint32_t events)
{
    unsigned bits = readiness_of(events);
    pirn_waker reader, writer;

    pirn__readiness_add(&io->readiness, bits);
    pirn__lock(&io->lock);
    reader = wake_first_locked(io, PIRN_READABLE);
    writer = wake_first_locked(io, PIRN_WRITABLE);
    pirn__unlock(&io->lock);
    pirn_waker_wake(reader);
    pirn_waker_wake(writer);
}
