/* SPDX-License-Identifier: MIT */
/* src/reactor/io.h - the counted core of everything that has a descriptor.
 *
 * A pirn_tcp, a pirn_listener and a pirn_fd start with a pirn__io.  It belongs
 * to two sets of owners:
 *
 *   handles   what users hold; the last one closes the descriptor
 *   refs      keep the memory: one for all handles together, one of the
 *             reactor that it is bound to, one of each close operation and of
 *             an armed hold
 *
 * Bound, its readiness comes from a reactor, which it is registered with when
 * somebody first has to wait.  Unbound, plain threads wait on the descriptor
 * itself; the first task that has to wait binds it.
 *
 * Waiters stand in two lines, one a direction; see line.h.  The invariant:
 *
 *     a line with waiters and readiness has one that was called up
 *
 * (or an event is on its way to it).  So nobody needs to be told twice, and
 * readiness is never left lying.
 *
 * Lock order: io, then reactor.  Under the lock of an io stand epoll_ctl calls,
 * which can only wait for the kernel's own short lock of the set.
 */
#ifndef PIRN_REACTOR_IO_H
#define PIRN_REACTOR_IO_H

#include <pirn/io.h>

#include <errno.h>

#include "base/atomic.h"
#include "base/hint.h"
#include "base/list.h"
#include "reactor/gate.h"
#include "reactor/line.h"
#include "reactor/readiness.h"

struct pirn__home;
struct pirn__io;
struct pirn__reactor;

struct pirn__io_ops {
    /* The gate was sealed just now, by whatever call.  Once, outside locks.
     * May be NULL. */
    void (*sealed)(struct pirn__io *io);
    /* Append what it is: "tcp 127.0.0.1:80". */
    void (*name)(struct pirn__io *io, pirn_text *out);
};

/* First what every call and every event touches, all in one cache line if malloc
 * puts the object 16 bytes behind its start, as the usual ones do. */
struct pirn__io {
    struct pirn__gate gate;
    int fd; /* constant */
    struct pirn__readiness readiness;
    PIRN_ATOMIC(uint32_t) watch_generation; /* the process that watches it */
    bool trusts_short;     /* constant: TCP, plain pipes */
    bool was_blocking;     /* constant: as adopted */
    bool registered;       /* lock: `reactor` watches it */
    bool gone;             /* lock: the descriptor is closed or released */
    pirn__front fronts[2]; /* of the lines, see pirn__io_front() */
    pirn_lock lock;
    PIRN_ATOMIC(uint32_t) handles;
    PIRN_ATOMIC(uint32_t) refs;
    struct pirn__line lines[2];    /* see pirn__io_line() */
    pirn_link closers;             /* lock: wait for `gone` */
    struct pirn__reactor *reactor; /* lock: NULL when unbound */
    pirn_link bound_link;          /* the reactor's lock */
    uint32_t slot;                 /* the reactor's lock; or PIRN__IO_NO_SLOT */
    struct pirn__home *bound_home; /* lock: the latest, kept with a reference */
    struct pirn__home *memory_home; /* constant, with a reference; or NULL */
    size_t size;                    /* constant: of the whole object */
    const struct pirn__io_ops *ops; /* constant */
};

enum {
    PIRN__IO_NO_SLOT = INT32_MAX,
    /* The kernel cuts longer transfers (at 2 GiB less a page) for no reason
     * that the descriptor knows. */
    PIRN__IO_KERNEL_LIMIT = 1 << 30,
};

static inline struct pirn__line *pirn__io_line(struct pirn__io *io,
                                               unsigned direction)
{
    return &io->lines[direction == PIRN_WRITABLE];
}

static inline pirn__front *pirn__io_front(struct pirn__io *io,
                                          unsigned direction)
{
    return &io->fronts[direction == PIRN_WRITABLE];
}

/* One system call on a descriptor. */
struct pirn__io_call {
    ssize_t (*fn)(int fd, void *arg); /* -EAGAIN: would block */
    void *arg;
    size_t wanted; /* bytes; 0 where a short count says nothing */
};

/* Life. */

/* Memory for an object of `size` bytes that starts with a pirn__io, from the
 * current home; zeroed, so that it may be given back unopened.  NULL without
 * memory. */
struct pirn__io *pirn__io_take(size_t size);
void pirn__io_give(struct pirn__io *io);

/* What an open descriptor is. */
struct pirn__io_kind {
    int kind;       /* enum pirn__fd_kind */
    unsigned ready; /* what is assumed: PIRN__READY_READ, PIRN__READY_WRITE */
    bool was_blocking;
    const struct pirn__io_ops *ops;
};

/* Take over a non-blocking descriptor: one handle, bound to the current home.
 * Cannot fail. */
void pirn__io_open(struct pirn__io *io, int fd,
                   const struct pirn__io_kind *kind);

/* The same for a descriptor of the user's, into an object of `size` bytes: it
 * does not block from now on, and is assumed to be ready.  `kind` says what it is
 * and whose operations it has.  On failure the descriptor is as it was. */
int pirn__io_adopt(size_t size, int fd, struct pirn__io_kind kind,
                   struct pirn__io **out);

void pirn__io_ref(struct pirn__io *io);   /* handles */
void pirn__io_unref(struct pirn__io *io); /* handles; the last one closes */
void pirn__io_keep(struct pirn__io *io);  /* refs */
void pirn__io_drop(struct pirn__io *io);  /* refs */

/* Closing; in close.c. */

/* For the owner: seal, wake, wait for the descriptor to be gone if this may
 * suspend, give the handle up. */
void pirn__io_close(struct pirn__io *io);

/* The same without waiting, for results that have no taker. */
void pirn__io_abandon(struct pirn__io *io);

/* Give the handle up and hand the descriptor back in its old mode; -EBUSY with
 * a call inside, PIRN_ECLOSED when it is closed: then nothing has changed. */
int pirn__io_release(struct pirn__io *io);

/* Seal, give the handle up and prepare the wait; `io` may be NULL. */
void pirn__io_close_init(pirn_close_op *op, struct pirn__io *io);

/* False: it was sealed before. */
bool pirn__io_seal(struct pirn__io *io);

/* The gate is sealed and empty: close the descriptor. */
PIRN__COLD void pirn__io_finish(struct pirn__io *io);

/* Close a descriptor that never got an object. */
void pirn__io_close_fd(int fd);

/* Calls. */

/* One call through the gate, which corrects the readiness. */
ssize_t pirn__io_call(struct pirn__io *io, unsigned direction,
                      const struct pirn__io_call *call);

/* True if the call that answered `n` says that the next one would block. */
static inline bool pirn__io_would_block(const struct pirn__io *io,
                                        unsigned direction, uint64_t seen,
                                        const struct pirn__io_call *call,
                                        ssize_t n)
{
    if (n <= 0)
        return n == -EAGAIN;
    return (size_t)n < call->wanted && io->trusts_short &&
           n < PIRN__IO_KERNEL_LIMIT &&
           pirn__readiness_trusts_short(seen, direction);
}

/* The same by one who has looked before: `seen` is the readiness that made it
 * try. */
ssize_t pirn__io_call_after(struct pirn__io *io, unsigned direction,
                            const struct pirn__io_call *call, uint64_t seen);

/* The same in place. */
static inline ssize_t pirn__io_call_here(struct pirn__io *io,
                                         unsigned direction,
                                         const struct pirn__io_call *call,
                                         uint64_t seen)
{
    ssize_t n;

    if (!pirn__gate_enter(&io->gate))
        return PIRN_ECLOSED;
    n = call->fn(io->fd, call->arg);
    if (pirn__io_would_block(io, direction, seen, call, n)) {
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

/* The same for who has not waited: -EAGAIN at once if it would have to. */
static inline ssize_t pirn__io_try(struct pirn__io *io, unsigned direction,
                                   const struct pirn__io_call *call)
{
    uint64_t seen = pirn__readiness_get(&io->readiness);

    if (!pirn__readiness_has(seen, direction) ||
        pirn__front_look(pirn__io_front(io, direction)) != 0)
        return -EAGAIN;
    return pirn__io_call_after(io, direction, call, seen);
}

/* Ask the kernel for a descriptor that no reactor watches, and set or clear the
 * direction. */
void pirn__io_ask(struct pirn__io *io, unsigned direction);

/* Waiting; in waiter.c. */

/* Field by field, because it is part of every operation and a compiler zeroes
 * a whole struct first. */
static inline void pirn__waiter_init(pirn_io_waiter *waiter,
                                     struct pirn__io *io,
                                     enum pirn_interest direction)
{
    waiter->waker_.data = NULL;
    waiter->waker_.ops = NULL;
    waiter->io_ = io;
    pirn__init(&waiter->state_, PIRN__WAITER_OUT);
    waiter->direction_ = (uint8_t)direction;
    waiter->entered_ = false;
}

/* PIRN_PENDING: in line.  PIRN_READY: *rc is 0, worth a try, or says why there
 * will be none. */
enum pirn_poll pirn__waiter_poll_ready(pirn_io_waiter *waiter, pirn_cx *cx,
                                       int *rc);

/* The rest of pirn__waiter_poll_call(): the call may not be made now, or has
 * found nothing. */
enum pirn_poll pirn__waiter_wait(pirn_io_waiter *waiter, pirn_cx *cx,
                                 const struct pirn__io_call *call,
                                 ssize_t *result);

/* True if whoever has the waiter may make its call at once, after the look `seen`
 * at the readiness: it was called up to the front, or has not waited and overtakes
 * nobody. */
static inline bool pirn__waiter_may_try(const pirn_io_waiter *waiter,
                                        uint64_t seen)
{
    unsigned direction = waiter->direction_;
    uintptr_t front = pirn__front_look(pirn__io_front(waiter->io_, direction));

    if (!pirn__readiness_has(seen, direction))
        return false;
    if (!waiter->entered_)
        return front == 0;
    return pirn__waiter_state(waiter) == PIRN__WAITER_FRONT &&
           (front & PIRN__FRONT_CALLED) != 0;
}

/* Try `call` until it does not block, or wait: PIRN_READY with its result.  The
 * waiter keeps its place for further calls of the same operation. */
enum pirn_poll pirn__waiter_poll_call(pirn_io_waiter *waiter, pirn_cx *cx,
                                      const struct pirn__io_call *call,
                                      ssize_t *result);

/* The same in place. */
static inline enum pirn_poll
pirn__waiter_poll_call_here(pirn_io_waiter *waiter, pirn_cx *cx,
                            const struct pirn__io_call *call, ssize_t *result)
{
    struct pirn__io *io = waiter->io_;
    uint64_t seen = pirn__readiness_get(&io->readiness);

    if (pirn__waiter_may_try(waiter, seen)) {
        *result = pirn__io_call_here(io, waiter->direction_, call, seen);
        if (*result != -EAGAIN)
            return PIRN_READY;
    }
    return pirn__waiter_wait(waiter, cx, call, result);
}

/* The rest of pirn__waiter_leave(). */
PIRN__COLD void pirn__waiter_leave_list(pirn_io_waiter *waiter);

/* The operation has ended, one way or the other: out of line, and what it did
 * not use goes to the next. */
static inline void pirn__waiter_leave(pirn_io_waiter *waiter)
{
    if (!waiter->entered_)
        return;
    if (pirn__waiter_state(waiter) == PIRN__WAITER_FRONT &&
        pirn__front_leave(pirn__io_front(waiter->io_, waiter->direction_))) {
        pirn__waiter_set_state(waiter, PIRN__WAITER_OUT);
        waiter->entered_ = false;
        return;
    }
    pirn__waiter_leave_list(waiter);
}

/* For describe: what is done, and to what. */
void pirn__io_describe(struct pirn__io *io, const char *verb, pirn_text *out);

/* Tell the tasks at the fronts, for CALLED or ENDED.  Their wakers, for the caller
 * to wake after unlock: at most two.  Returns how many. */
int pirn__io_tell_fronts_locked(struct pirn__io *io, uintptr_t flag,
                                pirn_waker *wakers);

/* Restore the invariant of a line: the waker of the first, if it should try
 * now, else the empty one. */
PIRN_MUST_CHECK pirn_waker pirn__io_call_up_locked(struct pirn__io *io,
                                                   unsigned direction);

/* For the reactor. */

/* What an event touches: the fields up to `lock`. */
enum { PIRN__IO_EVENT_BYTES = 64 };

/* Events of epoll_wait().  Those who are called up are appended to `wakers`, for
 * the caller to wake: at most two.  Returns how many. */
int pirn__io_take_event(struct pirn__io *io, uint32_t events,
                        pirn_waker *wakers);

/* The reactor ends: unbind, the waiters answer PIRN_ESHUTDOWN. */
void pirn__io_end(struct pirn__io *io, struct pirn__reactor *reactor);

/* For close.c. */

/* Stop being watched. */
void pirn__io_unbind_locked(struct pirn__io *io);

/* Move both lines to `out`, an initialised list. */
void pirn__io_empty_locked(struct pirn__io *io, pirn_link *out);

/* Wake everybody in a list that is guarded by the lock of `io`; afterwards they
 * are in state `state`. */
void pirn__io_wake_list(struct pirn__io *io, pirn_link *list, uint8_t state);

#endif /* PIRN_REACTOR_IO_H */
