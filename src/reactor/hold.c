/* SPDX-License-Identifier: MIT */
/* src/reactor/hold.c - see hold.h. */
#include "reactor/hold.h"

#include "base/list.h"
#include "base/lock.h"
#include "reactor/reactor.h"
#include "sys/fork.h"
#include "sys/sys.h"
#include "task/home.h"
#include "task/local.h"
#include "time/timers.h"

enum {
    SHORTEST_MS = 5,
    LONGEST_MS = 1000,
    /* Holds that one closed descriptor ends.  It serves one of them; the
     * others find nothing and are held again. */
    END_BATCH = 16,
};

static const uint64_t ns_per_ms = 1000 * 1000;

static pirn_lock list_lock;
static pirn_link list = {&list, &list};
/* Written under the lock; read as a hint by who closes a descriptor. */
static PIRN_ATOMIC(uint32_t) list_count;

__attribute__((constructor)) static void guard_list(void)
{
    pirn__fork_guard(&list_lock);
}

static void add_to_count(uint32_t n)
{
    /* relaxed: a hint; see pirn__hold_end_all(). */
    pirn__add(&list_count, n, relaxed);
}

static bool is_held_locked(const struct pirn__hold *hold)
{
    return pirn__list_linked(&hold->link);
}

void pirn__hold_init(struct pirn__hold *hold, struct pirn__io *io)
{
    hold->io = io;
    hold->home = NULL;
    hold->until_ns = 0;
    pirn__list_init(&hold->link);
    pirn__timer_init(&hold->timer, PIRN_NEVER);
    pirn__init(&hold->pause_ms, 0);
    pirn__init(&hold->count, 0);
}

/* Beginning. */

static uint64_t next_pause_ns(struct pirn__hold *hold)
{
    /* relaxed: how long to wait is a guess in any case. */
    uint32_t pause = pirn__load(&hold->pause_ms, relaxed);

    if (pause == 0)
        pause = SHORTEST_MS;
    /* relaxed: as above. */
    pirn__store(&hold->pause_ms,
                pause * 2 > LONGEST_MS ? LONGEST_MS : pause * 2, relaxed);
    return pause * ns_per_ms;
}

static void enter_locked(struct pirn__hold *hold)
{
    hold->fork_generation = pirn__fork_generation();
    pirn__list_push_tail(&list, &hold->link);
    add_to_count(1);
    /* relaxed: a statistic. */
    pirn__add(&hold->count, 1, relaxed);
    pirn__readiness_mark(&hold->io->readiness, PIRN__READY_HELD);
}

/* Begun by an ancestor of this process: what it waits on has no driver here, and
 * its locks may be held by threads that do not exist. */
static bool is_inherited_locked(const struct pirn__hold *hold)
{
    return hold->fork_generation != pirn__fork_generation();
}

/* Returns the home of its timer, with a reference, or NULL: the timer may be the
 * last that keeps it, and homes do not go under a lock. */
static struct pirn__home *leave_locked(struct pirn__hold *hold)
{
    struct pirn__home *home = hold->home;

    pirn__list_remove(&hold->link);
    add_to_count(UINT32_MAX);
    hold->until_ns = 0;
    hold->home = NULL;
    pirn__readiness_unmark(&hold->io->readiness, PIRN__READY_HELD);
    if (home == NULL || is_inherited_locked(hold))
        return NULL;
    pirn__home_ref(home);
    pirn__timer_end(&hold->timer, PIRN__TIMER_ENDED);
    return home;
}

static struct pirn__hold *hold_of(void *data)
{
    return data;
}

/* The waker of the timer: it holds a reference to the io. */

static pirn_waker hold_waker_clone(const pirn_waker *self)
{
    pirn__io_keep(hold_of(self->data)->io);
    return *self;
}

static void hold_waker_wake_by_ref(const pirn_waker *self)
{
    pirn__hold_end(hold_of(self->data));
}

static void hold_waker_drop(pirn_waker self)
{
    pirn__io_drop(hold_of(self.data)->io);
}

static void hold_waker_wake(pirn_waker self)
{
    hold_waker_wake_by_ref(&self);
    hold_waker_drop(self);
}

static const pirn_waker_ops hold_waker_ops = {
    .clone = hold_waker_clone,
    .wake = hold_waker_wake,
    .wake_by_ref = hold_waker_wake_by_ref,
    .drop = hold_waker_drop,
};

/* The timer clones the waker, which is ours only for the call. */
static int arm_locked(struct pirn__hold *hold, struct pirn__home *home)
{
    const pirn_waker waker = {.data = hold, .ops = &hold_waker_ops};
    pirn_cx cx = pirn_cx_of_waker(&waker);
    uint64_t now = pirn__timers_now(home->timers);

    pirn__timer_init(&hold->timer, (pirn_deadline){now + next_pause_ns(hold)});
    hold->home = home;
    return pirn__timer_arm(&hold->timer, home->timers, &cx);
}

static bool begin_locked(struct pirn__hold *hold, struct pirn__home *home)
{
    if (is_held_locked(hold))
        return true;
    /* Sealing ends a hold, and none begins after it. */
    if (pirn__gate_is_sealed(&hold->io->gate))
        return true;
    if (home == NULL || home->timers == NULL || arm_locked(hold, home) < 0) {
        hold->home = NULL;
        return false;
    }
    enter_locked(hold);
    return true;
}

/* Who keeps the time, with a reference; or NULL. */
static struct pirn__home *keep_home(struct pirn__io *io, const pirn_cx *cx)
{
    struct pirn__home *home = pirn__cx_home(cx);

    /* While it is bound, the runtime of its reactor is there. */
    pirn__lock(&io->lock);
    if (home == NULL && io->reactor != NULL)
        home = pirn__reactor_home(io->reactor);
    if (home != NULL)
        pirn__home_ref(home);
    pirn__unlock(&io->lock);
    return home;
}

bool pirn__hold_begin(struct pirn__hold *hold, const pirn_cx *cx)
{
    struct pirn__home *home = keep_home(hold->io, cx);
    bool begun;

    pirn__lock(&list_lock);
    begun = begin_locked(hold, home);
    pirn__unlock(&list_lock);
    if (home != NULL)
        pirn__home_unref(home);
    return begun;
}

void pirn__hold_begin_untimed(struct pirn__hold *hold)
{
    pirn__lock(&list_lock);
    if (!is_held_locked(hold) && !pirn__gate_is_sealed(&hold->io->gate)) {
        enter_locked(hold);
        hold->until_ns = pirn__sys->clock_ns() + next_pause_ns(hold);
    }
    pirn__unlock(&list_lock);
}

pirn_deadline pirn__hold_until(struct pirn__hold *hold)
{
    uint64_t until_ns;

    pirn__lock(&list_lock);
    until_ns = hold->until_ns;
    pirn__unlock(&list_lock);
    return until_ns == 0 ? PIRN_NEVER : (pirn_deadline){until_ns};
}

/* Ending. */

/* Those who waited for the end. */
static void resume(struct pirn__io *io)
{
    pirn_waker waker = {0};
    pirn_link waiters;

    pirn__list_init(&waiters);
    pirn__lock(&io->lock);
    /* Unbound, nobody waited on the descriptor: each has to look for itself. */
    if (io->reactor == NULL)
        pirn__io_empty_locked(io, &waiters);
    else
        waker = pirn__io_call_up_locked(io, PIRN_READABLE);
    pirn__unlock(&io->lock);
    pirn__io_wake_list(io, &waiters, PIRN__WAITER_OUT);
    pirn_waker_wake(waker);
}

void pirn__hold_end(struct pirn__hold *hold)
{
    struct pirn__home *home = NULL;
    bool was_held;

    pirn__lock(&list_lock);
    was_held = is_held_locked(hold);
    if (was_held)
        home = leave_locked(hold);
    pirn__unlock(&list_lock);
    if (was_held)
        resume(hold->io);
    if (home != NULL)
        pirn__home_unref(home);
}

/* A hold that was ended together with others. */
struct ended {
    struct pirn__io *io;     /* with a reference */
    struct pirn__home *home; /* with a reference, or NULL */
};

/* Up to END_BATCH holds of this process; how many. */
static int end_some_locked(struct ended *ended)
{
    pirn_link *next;
    int count = 0;

    for (pirn_link *link = list.next_; link != &list && count < END_BATCH;
         link = next) {
        struct pirn__hold *hold =
            PIRN_CONTAINER_OF(link, struct pirn__hold, link);

        next = link->next_;
        if (is_inherited_locked(hold))
            continue;
        /* Held, so it has not been sealed and somebody's handle keeps it. */
        pirn__io_keep(hold->io);
        ended[count].io = hold->io;
        ended[count++].home = leave_locked(hold);
    }
    return count;
}

void pirn__hold_end_all(void)
{
    struct ended ended[END_BATCH];
    int count;

    /* relaxed: who misses a hold that begins at this moment leaves it to its
     * timer, a few milliseconds later. */
    if (pirn__load(&list_count, relaxed) == 0)
        return;
    pirn__lock(&list_lock);
    count = end_some_locked(ended);
    pirn__unlock(&list_lock);
    for (int i = 0; i < count; i++) {
        resume(ended[i].io);
        pirn__io_drop(ended[i].io);
        if (ended[i].home != NULL)
            pirn__home_unref(ended[i].home);
    }
}

void pirn__hold_succeeded(struct pirn__hold *hold)
{
    /* relaxed: see next_pause_ns(). */
    if (pirn__load(&hold->pause_ms, relaxed) == 0)
        return;
    /* relaxed: as above. */
    pirn__store(&hold->pause_ms, 0, relaxed);
}

uint64_t pirn__hold_count(const struct pirn__hold *hold)
{
    /* relaxed: a statistic. */
    return pirn__load(&hold->count, relaxed);
}
