/* SPDX-License-Identifier: MIT */
/* src/time/timers.c - see timers.h.
 *
 * When its entry fires a waker is moved out under the lock and woken after
 * unlock; the poll that follows stores another if it has to wait again.  Only a
 * borrowed one, which is always a task's own, is cloned: the entry's owner may
 * disarm it, and free the task behind, as soon as the lock is free.
 */
#include "time/timers.h"

#include <errno.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/list.h"
#include "base/lock.h"
#include "sys/sys.h"
#include "task/home.h"
#include "task/local.h"
#include "task/waker.h"

enum { TIMER_BORROWED = 1 }; /* flags_: the waker is not ours to drop */

void pirn__timers_init(struct pirn__timers *timers, struct pirn__home *home)
{
    *timers = (struct pirn__timers){.home = home};
    pirn__init(&timers->next, UINT64_MAX);
    pirn__wheel_init(&timers->wheel, pirn__sys->clock_ns());
    pirn__list_init(&timers->endless);
}

/* The clock. */

uint64_t pirn__timers_now(struct pirn__timers *timers)
{
    /* acquire [timers.clock]: the end of a pause comes after the offset. */
    uint64_t paused = pirn__load(&timers->paused_ns, acquire);

    if (paused != 0)
        return paused;
    /* relaxed: ordered by the end of the pause, above. */
    return pirn__sys->clock_ns() + pirn__load(&timers->offset_ns, relaxed);
}

/* A task that holds its worker for longer than this may be told a turn later
 * that its time has come. */
enum { TURN_NS = 10000000 };

static __attribute__((noinline)) bool
look_at_clock(struct pirn__timers *timers, struct pirn__turn *turn,
              uint64_t when_ns)
{
    if (when_ns <= turn->now_ns)
        return true;
    if (when_ns == UINT64_MAX)
        return false;
    turn->now_ns = pirn__timers_now(timers);
    return when_ns <= turn->now_ns;
}

/* True if the time has come, by the clock as this turn has seen it: it is read at
 * most once a turn for times that are far ahead. */
static inline bool has_come(struct pirn__timers *timers,
                            struct pirn__turn *turn, uint64_t when_ns)
{
    if (turn->now_ns != 0 && when_ns > turn->now_ns + TURN_NS &&
        !pirn__timers_are_paused(timers))
        return false;
    return look_at_clock(timers, turn, when_ns);
}

bool pirn__timers_are_paused(struct pirn__timers *timers)
{
    /* relaxed: asked under the lock, or before a sleep that the end of a pause
     * cuts short. */
    return pirn__load(&timers->paused_ns, relaxed) != 0;
}

size_t pirn__timers_count(struct pirn__timers *timers)
{
    size_t count;

    pirn__lock(&timers->lock);
    count = timers->wheel.count;
    pirn__unlock(&timers->lock);
    return count;
}

/* Publish when the wheel next needs service; true if that became earlier. */
static bool publish_next_locked(struct pirn__timers *timers)
{
    uint64_t next = pirn__wheel_next_ns(&timers->wheel);
    /* relaxed: only written under the lock, which we hold. */
    uint64_t before = pirn__load(&timers->next, relaxed);

    /* seq_cst [timers.next]: against the driver, which announces its sleep and
     * then reads this; see pirn__home_ops.wake. */
    pirn__store(&timers->next, next, seq_cst);
    return next < before;
}

struct pirn__timers *pirn__cx_timers(const pirn_cx *cx)
{
    struct pirn__turn *turn = cx->turn_;

    return turn->timers != NULL ? turn->timers : turn->home->timers;
}

static void tell_owner(struct pirn__timers *timers)
{
    if (timers->earlier != NULL)
        timers->earlier(timers);
    else if (timers->home != NULL)
        timers->home->ops->wake(timers->home);
}

static void take_waker(pirn_timer *timer, pirn_waker *waker)
{
    if ((timer->flags_ & TIMER_BORROWED) == 0)
        *waker = timer->waker_;
    timer->waker_ = (pirn_waker){0};
}

/* The waker of an entry whose wait is over, to be woken after unlock. */
static pirn_waker call_waker_locked(pirn_timer *timer)
{
    if ((timer->flags_ & TIMER_BORROWED) != 0)
        return pirn_waker_clone(&timer->waker_);
    return pirn_waker_take(&timer->waker_);
}

static void set_state(pirn_timer *timer, enum pirn__timer_state state)
{
    /* release [timer.state]: a poll that sees FIRED sees the time it fired
     * at. */
    pirn__store(&timer->state_, (uint8_t)state, release);
}

enum pirn__timer_state pirn__timer_state(const pirn_timer *timer)
{
    /* acquire [timer.state]: pairs with set_state(). */
    return (enum pirn__timer_state)pirn__load(&timer->state_, acquire);
}

/* Under the entry's lock.  Of an owner that arms and others that reset or cancel,
 * one gets an IDLE entry. */
static bool leave_idle(pirn_timer *timer, enum pirn__timer_state state)
{
    if (pirn__timer_state(timer) != PIRN__TIMER_IDLE)
        return false;
    set_state(timer, state);
    return true;
}

static bool has_ended(const pirn_timer *timer)
{
    return pirn__timer_state(timer) >= PIRN__TIMER_ENDED;
}

void pirn__timer_init(pirn_timer *timer, pirn_deadline deadline)
{
    *timer = (pirn_timer){.when_ns_ = deadline.ns};
}

pirn_deadline pirn__timer_deadline(pirn_timer *timer)
{
    pirn_deadline deadline;

    /* Another thread may be resetting it. */
    pirn__lock(&timer->lock_);
    deadline = (pirn_deadline){timer->when_ns_};
    pirn__unlock(&timer->lock_);
    return deadline;
}

static struct pirn__timers *owner_of(const pirn_timer *timer)
{
    /* relaxed: who did not arm the entry itself has seen that it is armed, or
     * was handed the entry by who did. */
    return pirn__load(&timer->owner_, relaxed);
}

/* Enter the wheel, or, for PIRN_NEVER, the list beside it.  True if the owner
 * must be told. */
static bool place_locked(struct pirn__timers *timers, pirn_timer *timer)
{
    if (timer->when_ns_ == UINT64_MAX) {
        pirn__list_push_tail(&timers->endless, &timer->link_);
        return false;
    }
    pirn__wheel_insert(&timers->wheel, timer);
    /* relaxed: only written under the lock, which we hold. */
    if (timer->when_ns_ >= pirn__load(&timers->next, relaxed))
        return false;
    return publish_next_locked(timers);
}

static bool enter_locked(struct pirn__timers *timers, pirn_timer *timer)
{
    set_state(timer, PIRN__TIMER_ARMED);
    return place_locked(timers, timer);
}

/* Out of the wheel, or the list, if it is in. */
static void leave_locked(struct pirn__timers *timers, pirn_timer *timer)
{
    if (pirn__timer_state(timer) != PIRN__TIMER_ARMED)
        return;
    if (timer->when_ns_ == UINT64_MAX)
        pirn__list_remove(&timer->link_);
    else
        pirn__wheel_remove(&timers->wheel, timer);
}

/* First contact of an entry with its wheel. */
static int join_locked(struct pirn__timers *timers, pirn_timer *timer)
{
    if (timers->dead)
        return PIRN_ESHUTDOWN;
    timers->users++;
    /* relaxed: see owner_of(). */
    pirn__store(&timer->owner_, timers, relaxed);
    return 0;
}

/* What arming an entry came to. */
enum armed {
    ARMED_DEAD,    /* not: the wheel takes none any more */
    ARMED_NOT,     /* not: it was cancelled */
    ARMED_WAITS,   /* it has the waker */
    ARMED_EARLIER, /* the same, and the owner must be told */
    ARMED_DUE,     /* FIRED */
};

/* An entry that has no wheel yet; `cx` unless it is to wait in any case. */
static inline enum armed arm_locked(pirn_timer *timer,
                                    struct pirn__timers *timers,
                                    const pirn_waker *waker, const pirn_cx *cx)
{
    if (timers->dead)
        return ARMED_DEAD;
    /* relaxed: see owner_of(). */
    pirn__store(&timer->owner_, timers, relaxed);
    if (!leave_idle(timer, PIRN__TIMER_ARMED)) {
        /* relaxed: the others do not look while it is not armed. */
        pirn__store(&timer->owner_, NULL, relaxed);
        return ARMED_NOT;
    }
    timers->users++;
    if (cx != NULL && has_come(timers, cx->turn_, timer->when_ns_)) {
        set_state(timer, PIRN__TIMER_FIRED);
        return ARMED_DUE;
    }
    timer->waker_ = *waker;
    return place_locked(timers, timer) ? ARMED_EARLIER : ARMED_WAITS;
}

/* Keep waiting; a wait that is over already wakes the poller, which may not be
 * the one that was woken. */
static void renew(pirn_timer *timer, struct pirn__timers *timers,
                  const pirn_cx *cx)
{
    pirn_waker spare = {0};
    bool placed, armed;

    /* Ends: with a spare it is placed. */
    do {
        pirn__lock(&timers->lock);
        placed = pirn__waker_place(&timer->waker_, cx, &spare);
        armed = pirn__timer_state(timer) == PIRN__TIMER_ARMED;
        pirn__unlock(&timers->lock);
        if (!placed)
            spare = pirn_waker_clone(cx->waker);
    } while (!placed);
    pirn_waker_drop(spare);
    if (!armed)
        pirn_waker_wake_by_ref(cx->waker);
}

/* What is over is over, also on a wheel that takes none any more. */
static bool is_over(pirn_timer *timer, struct pirn__timers *timers,
                    const pirn_cx *due)
{
    return due != NULL &&
           has_come(timers, due->turn_, pirn__timer_deadline(timer).ns);
}

/* After a first try that did not simply end with the entry in its wheel. */
static __attribute__((noinline)) int
finish_arming(pirn_timer *timer, struct pirn__timers *timers, const pirn_cx *cx,
              const pirn_cx *due, pirn_waker waker, enum armed armed)
{
    if (armed == ARMED_EARLIER)
        tell_owner(timers);
    if (armed == ARMED_EARLIER || armed == ARMED_WAITS)
        return 0;
    pirn__waker_give(waker);
    if (armed == ARMED_NOT)
        pirn_waker_wake_by_ref(cx->waker);
    if (armed == ARMED_DEAD)
        return is_over(timer, timers, due) ? 1 : PIRN_ESHUTDOWN;
    return armed == ARMED_DUE ? 1 : 0;
}

/* An entry that has no wheel yet.  `due` is `cx`, or NULL if it is to wait in
 * any case. */
static inline int arm_new(pirn_timer *timer, struct pirn__timers *timers,
                          const pirn_cx *cx, const pirn_cx *due)
{
    pirn_waker waker = pirn__waker_get(cx);
    enum armed armed;

    pirn__lock(&timer->lock_);
    pirn__lock(&timers->lock);
    armed = arm_locked(timer, timers, &waker, due);
    pirn__unlock(&timers->lock);
    pirn__unlock(&timer->lock_);
    if (armed == ARMED_WAITS)
        return 0;
    return finish_arming(timer, timers, cx, due, waker, armed);
}

int pirn__timer_arm(pirn_timer *timer, struct pirn__timers *timers,
                    const pirn_cx *cx)
{
    if (owner_of(timer) == NULL)
        return arm_new(timer, timers, cx, NULL);
    renew(timer, owner_of(timer), cx);
    return 0;
}

int pirn__timer_start(pirn_timer *timer, struct pirn__timers *timers,
                      const pirn_cx *cx)
{
    if (owner_of(timer) == NULL)
        return arm_new(timer, timers, cx, cx);
    renew(timer, owner_of(timer), cx);
    return 0;
}

void pirn__timer_stop(pirn_timer *timer)
{
    struct pirn__timers *timers = owner_of(timer);

    if (timers == NULL)
        return;
    pirn__lock(&timers->lock);
    leave_locked(timers, timer);
    set_state(timer, PIRN__TIMER_IDLE);
    pirn__unlock(&timers->lock);
}

/* Out of its wheel for good.  True if it was the last one of a dead wheel. */
static inline bool leave_for_good(pirn_timer *timer,
                                  struct pirn__timers *timers,
                                  enum pirn__timer_state how,
                                  pirn_waker *waker)
{
    bool last;

    pirn__lock(&timers->lock);
    leave_locked(timers, timer);
    set_state(timer, how);
    take_waker(timer, waker);
    timers->users--;
    last = timers->dead && timers->users == 0;
    pirn__unlock(&timers->lock);
    return last;
}

/* What is left to do when the entry is out, and no lock is held. */
static void after_end(struct pirn__timers *timers, pirn_waker old, bool last)
{
    if (old.ops != NULL)
        pirn__waker_give(old);
    /* The reference that shutdown took for those who came late. */
    if (last && timers->home != NULL)
        pirn__home_unref(timers->home);
}

void pirn__timer_end(pirn_timer *timer, enum pirn__timer_state how)
{
    struct pirn__timers *timers;
    pirn_waker old = {0};
    bool last = false;

    /* A reset or cancel that has found the wheel is done with it before we no
     * longer keep it. */
    pirn__lock(&timer->lock_);
    timers = owner_of(timer);
    if (timers == NULL || has_ended(timer))
        set_state(timer, how);
    else
        last = leave_for_good(timer, timers, how, &old);
    pirn__unlock(&timer->lock_);
    after_end(timers, old, last);
}

void pirn__timer_drop(pirn_timer *timer)
{
    struct pirn__timers *timers = owner_of(timer);
    pirn_waker old = {0};
    bool last;

    if (timers == NULL || has_ended(timer)) {
        set_state(timer, PIRN__TIMER_ENDED);
        return;
    }
    last = leave_for_good(timer, timers, PIRN__TIMER_ENDED, &old);
    after_end(timers, old, last);
}

/* The fiber has moved to another worker: its entry leaves the wheel of the one
 * before. */
static void leave_wheel(pirn_timer *timer)
{
    pirn__timer_end(timer, PIRN__TIMER_ENDED);
    set_state(timer, PIRN__TIMER_IDLE);
    /* relaxed: only the fiber looks, and its next wheel's lock orders it. */
    pirn__store(&timer->owner_, NULL, relaxed);
}

int pirn__timer_rearm(pirn_timer *timer, struct pirn__timers *timers,
                      pirn_waker waker, pirn_deadline deadline)
{
    struct pirn__timers *owner = owner_of(timer);
    bool earlier = false;
    int rc = 0;

    if (owner != NULL && owner != timers)
        leave_wheel(timer);
    pirn__lock(&timers->lock);
    if (owner_of(timer) == NULL)
        rc = join_locked(timers, timer);
    else if (timers->dead)
        rc = PIRN_ESHUTDOWN;
    if (rc == 0) {
        leave_locked(timers, timer);
        timer->when_ns_ = deadline.ns;
        timer->waker_ = waker;
        timer->flags_ = TIMER_BORROWED;
        earlier = enter_locked(timers, timer);
    }
    pirn__unlock(&timers->lock);
    if (earlier)
        tell_owner(timers);
    return rc;
}

/* Under the entry's lock.  True if the owner must be told; it is kept until
 * then, for once the locks are free the entry may fire and end. */
static bool reset_in_wheel(pirn_timer *timer, struct pirn__timers *timers,
                           pirn_deadline deadline)
{
    enum pirn__timer_state state;
    bool earlier = false;

    pirn__lock(&timers->lock);
    state = pirn__timer_state(timer);
    /* One that has fired stays so on a dead wheel, where nothing would fire it
     * again. */
    if (state == PIRN__TIMER_ARMED ||
        (state == PIRN__TIMER_FIRED && !timers->dead)) {
        leave_locked(timers, timer);
        timer->when_ns_ = deadline.ns;
        earlier = enter_locked(timers, timer);
    }
    if (earlier && timers->home != NULL)
        pirn__home_ref(timers->home);
    pirn__unlock(&timers->lock);
    return earlier;
}

/* Under the entry's lock: it has a wheel, and not been given up. */
static bool may_wait(const pirn_timer *timer)
{
    enum pirn__timer_state state = pirn__timer_state(timer);

    return state == PIRN__TIMER_ARMED || state == PIRN__TIMER_FIRED;
}

void pirn__timer_reset(pirn_timer *timer, pirn_deadline deadline)
{
    struct pirn__timers *timers = NULL;
    struct pirn__home *home;
    bool earlier = false;

    pirn__lock(&timer->lock_);
    if (leave_idle(timer, PIRN__TIMER_MOVING)) {
        timer->when_ns_ = deadline.ns;
        set_state(timer, PIRN__TIMER_IDLE);
    } else if (may_wait(timer)) {
        timers = owner_of(timer);
        earlier = reset_in_wheel(timer, timers, deadline);
    }
    pirn__unlock(&timer->lock_);
    if (!earlier)
        return;
    home = timers->home;
    tell_owner(timers);
    if (home != NULL)
        pirn__home_unref(home);
}

/* Under the entry's lock: CANCELLED, and its waker to be woken. */
static pirn_waker cancel_in_wheel(pirn_timer *timer,
                                  struct pirn__timers *timers)
{
    enum pirn__timer_state state;
    pirn_waker waker = {0};

    pirn__lock(&timers->lock);
    state = pirn__timer_state(timer);
    if (state == PIRN__TIMER_ARMED || state == PIRN__TIMER_FIRED) {
        leave_locked(timers, timer);
        set_state(timer, PIRN__TIMER_CANCELLED);
        waker = call_waker_locked(timer);
    }
    pirn__unlock(&timers->lock);
    return waker;
}

void pirn__timer_cancel(pirn_timer *timer)
{
    pirn_waker waker = {0};

    pirn__lock(&timer->lock_);
    if (!leave_idle(timer, PIRN__TIMER_CANCELLED) && may_wait(timer))
        waker = cancel_in_wheel(timer, owner_of(timer));
    pirn__unlock(&timer->lock_);
    pirn_waker_wake(waker);
}

/* What is done under the lock at a time: entries that are fired, and entries that
 * are brought nearer to it. */
enum { FIRE_BATCH = 32, SETTLE_BATCH = 32 };

/* Take up to a batch of due entries, and their wakers. */
static size_t fire_batch_locked(struct pirn__timers *timers, uint64_t now,
                                pirn_waker *wakers, size_t limit)
{
    size_t count = 0;

    while (count < limit) {
        pirn_timer *timer = pirn__wheel_pop(&timers->wheel, now);

        if (timer == NULL)
            break;
        set_state(timer, PIRN__TIMER_FIRED);
        wakers[count++] = call_waker_locked(timer);
    }
    pirn__wheel_settle(&timers->wheel, SETTLE_BATCH);
    publish_next_locked(timers);
    return count;
}

size_t pirn__timers_fire(struct pirn__timers *timers, size_t limit)
{
    return pirn__timers_fire_at(timers, pirn__timers_now(timers), limit);
}

size_t pirn__timers_fire_at(struct pirn__timers *timers, uint64_t now,
                            size_t limit)
{
    pirn_waker wakers[FIRE_BATCH];
    size_t fired = 0;
    size_t count;

    do {
        size_t want = limit - fired < FIRE_BATCH ? limit - fired : FIRE_BATCH;

        pirn__lock(&timers->lock);
        count = fire_batch_locked(timers, now, wakers, want);
        pirn__unlock(&timers->lock);
        for (size_t i = 0; i < count; i++)
            pirn_waker_wake(wakers[i]);
        fired += count;
    } while (count == FIRE_BATCH && fired < limit);
    return fired;
}

/* One entry of a dying wheel, dead, and its waker. */
static bool kill_one_locked(struct pirn__timers *timers, pirn_waker *waker)
{
    pirn_timer *timer = pirn__wheel_pop_any(&timers->wheel);

    if (timer == NULL) {
        pirn_link *link = pirn__list_pop_head(&timers->endless);

        if (link == NULL)
            return false;
        timer = PIRN_CONTAINER_OF(link, pirn_timer, link_);
    }
    set_state(timer, PIRN__TIMER_DEAD);
    *waker = call_waker_locked(timer);
    return true;
}

void pirn__timers_shutdown(struct pirn__timers *timers)
{
    pirn_waker waker;
    bool more;

    pirn__lock(&timers->lock);
    timers->dead = true;
    if (timers->users > 0 && timers->home != NULL)
        pirn__home_ref(timers->home);
    pirn__unlock(&timers->lock);
    /* Ends: a dead wheel admits no entry. */
    do {
        pirn__lock(&timers->lock);
        more = kill_one_locked(timers, &waker);
        pirn__unlock(&timers->lock);
        if (more)
            pirn_waker_wake(waker);
    } while (more);
}

/* Test clock. */

void pirn__timers_pause(struct pirn__timers *timers)
{
    pirn__lock(&timers->lock);
    if (!pirn__timers_are_paused(timers)) {
        /* relaxed: the time is all that is said. */
        pirn__store(&timers->paused_ns, pirn__timers_now(timers), relaxed);
    }
    /* The owner, if it sleeps, gets up at the time it planned, finds nothing
     * due, and sleeps until it is told. */
    pirn__unlock(&timers->lock);
}

int pirn__timers_advance(struct pirn__timers *timers, uint64_t ns)
{
    bool paused;

    pirn__lock(&timers->lock);
    paused = pirn__timers_are_paused(timers);
    if (paused) {
        uint64_t now =
            pirn__saturating_add(pirn__timers_now(timers), ns);

        /* relaxed: the time is all that is said. */
        pirn__store(&timers->paused_ns, now, relaxed);
    }
    pirn__unlock(&timers->lock);
    if (!paused)
        return -EINVAL;
    tell_owner(timers);
    return 0;
}

void pirn__timers_resume(struct pirn__timers *timers)
{
    pirn__lock(&timers->lock);
    if (pirn__timers_are_paused(timers)) {
        uint64_t offset = pirn__timers_now(timers) - pirn__sys->clock_ns();

        /* relaxed: published by the end of the pause. */
        pirn__store(&timers->offset_ns, offset, relaxed);
        /* release [timers.clock]: the offset stands before the pause ends. */
        pirn__store(&timers->paused_ns, 0, release);
    }
    pirn__unlock(&timers->lock);
    tell_owner(timers);
}

pirn_deadline pirn__timers_to_system(struct pirn__timers *timers, uint64_t ns)
{
    if (ns == UINT64_MAX)
        return PIRN_NEVER;
    if (pirn__timers_are_paused(timers))
        return ns <= pirn__timers_now(timers) ? PIRN_EXPIRED : PIRN_NEVER;
    /* relaxed: as in pirn__timers_are_paused(). */
    uint64_t offset = pirn__load(&timers->offset_ns, relaxed);

    /* A clock that stood still and was resumed is behind the system's. */
    if (offset > INT64_MAX)
        return (pirn_deadline){pirn__saturating_add(ns, 0 - offset)};
    return (pirn_deadline){ns > offset ? ns - offset : 0};
}
