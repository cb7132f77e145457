/* SPDX-License-Identifier: MIT */
/* src/reactor/waiter.c - how an operation waits for a descriptor; see io.h and
 * line.h.
 *
 * The order of things keeps an event from being lost.  An operation tries its
 * call; if that would block, the readiness is cleared, unless an event has come
 * since; then, under the lock, the readiness is looked at again before the
 * waiter enters the line.  An event changes the readiness first and looks at the
 * line afterwards, and who has entered looks at the readiness once more.  So
 * either the look finds the event, or the event finds the waiter.
 *
 * A task that waits alone does so at the front of the line, without the lock.
 * Whatever is out of the ordinary there begins with a move into the list behind,
 * under the lock, where the rest of this file knows what to do.
 */
#include <errno.h>
#include <poll.h>

#include "base/list.h"
#include "base/lock.h"
#include "reactor/io.h"
#include "reactor/reactor.h"
#include "sys/fork.h"
#include "task/home.h"
#include "task/local.h"
#include "task/waker.h"

/* Calls in one poll that may find the kernel's readiness wrong. */
enum { MOST_TRIES = 4 };

/* Binding. */

/* What must happen to others once the lock is free. */
struct aftermath {
    struct pirn__home *grows;  /* its reactor has no room; or NULL */
    pirn_waker next;           /* called up; or empty */
    bool bound;                /* what follows is set */
    struct pirn__home *before; /* bound earlier; or NULL */
    pirn_link moved;           /* wait on the descriptor, but now a reactor
                                  watches it: have them look again */
};

static void clean_up(struct pirn__io *io, struct aftermath *after)
{
    if (after->next.ops != NULL)
        pirn_waker_wake(after->next);
    if (!after->bound)
        return;
    if (after->before != NULL)
        pirn__home_unref(after->before);
    pirn__io_wake_list(io, &after->moved, PIRN__WAITER_OUT);
}

static int bind_locked(struct pirn__io *io, struct pirn__home *home,
                       struct aftermath *after)
{
    int rc = pirn__reactor_bind(home->reactor, io);

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
    if (rc < 0)
        return rc;
    /* relaxed: WATCHED publishes it. */
    pirn__store(&io->watch_generation, pirn__fork_generation(), relaxed);
    pirn__readiness_mark(&io->readiness, PIRN__READY_WATCHED);
    return 0;
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
    /* The wait set is shared with the parent, who alone harvests it. */
    if (pirn__home_is_forked(pirn__reactor_home(io->reactor)))
        return PIRN_EFORKED;
    rc = register_locked(io);
    /* Only a plain thread has to be told who will wake it. */
    if (rc == 0 && turn != NULL && turn->parker != NULL)
        pirn__turn_note_home(cx, pirn__reactor_home(io->reactor));
    return rc;
}

/* Waiting. */

static bool is_always_ready(const struct pirn__io *io)
{
    uint64_t word = pirn__readiness_get(&io->readiness);

    return (word & PIRN__READY_ALWAYS) != 0;
}

/* The usual case, which needs no lock: it was woken, and may try. */
static bool is_woken(const pirn_io_waiter *waiter)
{
    const struct pirn__io *io = waiter->io_;

    return pirn__waiter_state(waiter) == PIRN__WAITER_WOKEN &&
           pirn__readiness_has(pirn__readiness_get(&io->readiness),
                               waiter->direction_) &&
           !pirn__gate_is_sealed(&io->gate);
}

/* Under the lock: may this waiter try now? */
static bool may_try_locked(struct pirn__io *io, pirn_io_waiter *waiter)
{
    uint64_t word = pirn__readiness_get(&io->readiness);

    if (!pirn__readiness_has(word, waiter->direction_))
        return false;
    /* Plain threads that wait on the descriptor see the same readiness and are
     * not told apart: the kernel decides who gets it. */
    if (io->reactor == NULL || (word & PIRN__READY_ALWAYS) != 0)
        return true;
    return pirn__line_is_turn_of(pirn__io_line(io, waiter->direction_), waiter);
}

/* What to do, if nothing is wrong.  The last two need the lock to be free, and
 * then another decision. */
enum { TRY, WAIT, CLONE_WAKER, GROW_REACTOR };

static int decide_locked(struct pirn__io *io, pirn_io_waiter *waiter,
                         pirn_cx *cx, pirn_waker *spare,
                         struct aftermath *after)
{
    int rc;

    if (pirn__gate_is_sealed(&io->gate))
        return PIRN_ECLOSED;
    if (pirn__waiter_state(waiter) == PIRN__WAITER_ENDED)
        return PIRN_ESHUTDOWN;
    if (may_try_locked(io, waiter))
        return TRY;
    rc = attach_locked(io, waiter->direction_, cx, after);
    if (rc == -ENOBUFS) {
        after->grows = pirn__reactor_home(io->reactor);
        pirn__home_ref(after->grows);
        return GROW_REACTOR;
    }
    if (rc < 0)
        return rc;
    if (is_always_ready(io))
        return TRY;
    if (!pirn__waker_place(&waiter->waker_, cx, spare))
        return CLONE_WAKER;
    pirn__line_enter(pirn__io_line(io, waiter->direction_), waiter);
    waiter->entered_ = true;
    /* An event may have looked before we stood here. */
    after->next = pirn__io_call_up_locked(io, waiter->direction_);
    return WAIT;
}

static int grow_reactor(struct pirn__home *home)
{
    int rc = pirn__reactor_grow(home->reactor);

    pirn__home_unref(home);
    return rc < 0 ? rc : GROW_REACTOR;
}

static int decide_once(struct pirn__io *io, pirn_io_waiter *waiter, pirn_cx *cx,
                       pirn_waker *spare)
{
    struct aftermath after;
    int rc;

    after.grows = NULL;
    after.next = (pirn_waker){0};
    after.bound = false;
    pirn__lock(&io->lock);
    rc = decide_locked(io, waiter, cx, spare, &after);
    pirn__unlock(&io->lock);
    clean_up(io, &after);
    if (rc == CLONE_WAKER)
        *spare = pirn_waker_clone(cx->waker);
    return rc == GROW_REACTOR ? grow_reactor(after.grows) : rc;
}

/* Ends: a spare is wanted once, and each growth makes as much room as there
 * was. */
static int decide(struct pirn__io *io, pirn_io_waiter *waiter, pirn_cx *cx,
                  pirn_waker *spare)
{
    int rc;

    do {
        rc = decide_once(io, waiter, cx, spare);
    } while (rc == CLONE_WAKER || rc == GROW_REACTOR);
    return rc;
}

/* The front of the line. */

/* Out of the front, into the list if it is to stay in line.  The waker of a task
 * that still waited, for the caller to drop after unlock. */
static pirn_waker leave_front_locked(struct pirn__io *io,
                                     pirn_io_waiter *waiter, bool stays)
{
    struct pirn__line *line = pirn__io_line(io, waiter->direction_);
    uintptr_t word = pirn__front_clear_locked(line->front, stays);

    pirn__waiter_set_state(waiter, PIRN__WAITER_OUT);
    if (stays)
        pirn__line_return(line, waiter);
    if (stays && (word & PIRN__FRONT_ENDED) != 0) {
        pirn__line_leave(line, waiter);
        pirn__waiter_set_state(waiter, PIRN__WAITER_ENDED);
    }
    return pirn__front_waits(word)
               ? pirn__task_waker_borrowed(pirn__front_task(word))
               : (pirn_waker){0};
}

static void move_behind_front(pirn_io_waiter *waiter)
{
    struct pirn__io *io = waiter->io_;
    pirn_waker own;

    pirn__lock(&io->lock);
    own = leave_front_locked(io, waiter, true);
    pirn__unlock(&io->lock);
    pirn_waker_drop(own);
}

/* True if the task of this poll waits at the front now.  False leaves all as it
 * was. */
static bool enter_front(pirn_io_waiter *waiter, const pirn_cx *cx)
{
    struct pirn__io *io = waiter->io_;
    struct pirn__task *task = pirn__cx_task(cx);
    uint64_t readiness = pirn__readiness_get(&io->readiness);

    if (task == NULL || (readiness & PIRN__READY_WATCHED) == 0)
        return false;
    /* relaxed: WATCHED was found before.  The wait set of a parent process is
     * harvested by the parent alone. */
    if (pirn__load(&io->watch_generation, relaxed) != pirn__fork_generation())
        return false;
    /* From the moment it stands there the reference may be used. */
    pirn__cx_ref_task(cx);
    if (!pirn__front_enter(pirn__io_front(io, waiter->direction_), task)) {
        pirn__cx_unref_task(cx);
        return false;
    }
    waiter->entered_ = true;
    pirn__waiter_set_state(waiter, PIRN__WAITER_FRONT);
    readiness = pirn__readiness_look(&io->readiness);
    return (readiness & PIRN__READY_WATCHED) != 0 &&
           !pirn__readiness_has(readiness, waiter->direction_);
}

/* True if the task of this poll waits at the front already, and rightly. */
static bool waits_at_front(const pirn_io_waiter *waiter, const pirn_cx *cx)
{
    struct pirn__io *io = waiter->io_;
    uint64_t readiness = pirn__readiness_get(&io->readiness);
    uintptr_t front = pirn__front_look(pirn__io_front(io, waiter->direction_));

    return pirn__waiter_state(waiter) == PIRN__WAITER_FRONT &&
           pirn__front_waits(front) &&
           pirn__front_task(front) == pirn__cx_task(cx) &&
           (readiness & PIRN__READY_WATCHED) != 0 &&
           !pirn__readiness_has(readiness, waiter->direction_);
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

enum pirn_poll pirn__waiter_poll_ready(pirn_io_waiter *waiter, pirn_cx *cx,
                                       int *rc)
{
    struct pirn__io *io = waiter->io_;
    pirn_waker spare = {0};

    *rc = TRY;
    if (is_woken(waiter))
        return PIRN_READY;
    if (pirn__waiter_state(waiter) == PIRN__WAITER_FRONT)
        move_behind_front(waiter);
    if (cx->turn_ != NULL && cx->turn_->parker != NULL)
        ask_if_alone(io, waiter->direction_);
    *rc = decide(io, waiter, cx, &spare);
    /* As a rule there is none. */
    if (spare.ops != NULL)
        pirn_waker_drop(spare);
    return *rc == WAIT ? PIRN_PENDING : PIRN_READY;
}

/* Apart, so that the usual case does not pay for its frame. */
PIRN__COLD static enum pirn_poll
poll_call_in_line(pirn_io_waiter *waiter, pirn_cx *cx,
                  const struct pirn__io_call *call, ssize_t *result)
{
    struct pirn__io *io = waiter->io_;
    int rc;

    if (waiter->entered_ && waits_at_front(waiter, cx))
        return PIRN_PENDING;
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        if (pirn__waiter_poll_ready(waiter, cx, &rc) == PIRN_PENDING)
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

enum pirn_poll pirn__waiter_wait(pirn_io_waiter *waiter, pirn_cx *cx,
                                 const struct pirn__io_call *call,
                                 ssize_t *result)
{
    if (!waiter->entered_ && enter_front(waiter, cx))
        return PIRN_PENDING;
    return poll_call_in_line(waiter, cx, call, result);
}

enum pirn_poll pirn__waiter_poll_call(pirn_io_waiter *waiter, pirn_cx *cx,
                                      const struct pirn__io_call *call,
                                      ssize_t *result)
{
    return pirn__waiter_poll_call_here(waiter, cx, call, result);
}

void pirn__waiter_leave_list(pirn_io_waiter *waiter)
{
    struct pirn__io *io = waiter->io_;
    pirn_waker own, next;

    pirn__lock(&io->lock);
    if (pirn__waiter_state(waiter) == PIRN__WAITER_FRONT) {
        own = leave_front_locked(io, waiter, false);
    } else {
        pirn__line_leave(pirn__io_line(io, waiter->direction_), waiter);
        own = pirn_waker_take(&waiter->waker_);
    }
    next = pirn__io_call_up_locked(io, waiter->direction_);
    pirn__unlock(&io->lock);
    waiter->entered_ = false;
    /* As a rule there is neither. */
    if (own.ops != NULL)
        pirn_waker_drop(own);
    if (next.ops != NULL)
        pirn_waker_wake(next);
}
