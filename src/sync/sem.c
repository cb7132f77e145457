/* SPDX-License-Identifier: MIT */
/* src/sync/sem.c - the semaphore.
 *
 * One word says it all while nobody waits: the permits, whether the semaphore
 * is closed, and whether somebody waits.
 *
 * Invariants
 *   - WAITERS is set and cleared under the lock, and while it is set the word
 *     is changed only under the lock.  Then the short ways, which are one
 *     compare-and-swap each, keep out.
 *   - At each unlock WAITERS says whether somebody is in line.
 *   - At each unlock with WAITERS set the first in line wants more than there
 *     is.  So whoever adds permits, or takes the first out of line, grants.
 *   - A release touches the semaphore no more once its permits are visible: the
 *     short way ends with them, and on the long one they are visible only under
 *     the lock.  That is why the long way, when it finds that nobody waits any
 *     more, leaves the lock first and then takes the short one.
 */
#include <pirn/sem.h>

#include <errno.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "sync/giver.h"
#include "sync/waitlist.h"
#include "task/await.h"
#include "task/local.h"

_Static_assert(sizeof(pirn_sem) <= 32, "a semaphore is small");

enum {
    SEM_WAITERS = 1u,
    SEM_CLOSED = 2u,
    SEM_PERMIT = 4u, /* one of them */
    SEM_SHIFT = 2,
};

static uint32_t permits_in(uint32_t word)
{
    return word >> SEM_SHIFT;
}

/* Under the lock with WAITERS set, where nobody else writes. */

static uint32_t word_locked(const pirn_sem *sem)
{
    /* relaxed: ordered by the lock. */
    return pirn__load(&sem->word_, relaxed);
}

static void set_word_locked(pirn_sem *sem, uint32_t word)
{
    /* release [sem.word]: a short acquire of what is left comes after all that
     * was released here. */
    pirn__store(&sem->word_, word, release);
}

/* Taking. */

/* What an acquire says of this word; 0: it may take its permits. */
static int judge(uint32_t word, uint32_t permits)
{
    if ((word & SEM_CLOSED) != 0)
        return PIRN_ECLOSED;
    if (permits == 0)
        return 0;
    if ((word & SEM_WAITERS) != 0 || permits_in(word) < permits)
        return -EAGAIN;
    return 0;
}

static inline int try_acquire(pirn_sem *sem, uint32_t permits)
{
    /* acquire [sem.word]: for an answer that takes nothing; as below. */
    uint32_t word = pirn__load(&sem->word_, acquire);
    int rc = judge(word, permits);

    /* Ends: each turn fails because somebody else has succeeded. */
    while (rc == 0 && permits > 0) {
        /* acquire [sem.word]: sees what the releasers of these permits wrote.
         */
        if (pirn__cas_weak(&sem->word_, &word, word - permits * SEM_PERMIT,
                           acquire, acquire))
            break;
        rc = judge(word, permits);
    }
    return rc;
}

/* Giving. */

/* Serve the line as far as the permits reach or the batch does, and keep
 * WAITERS true.  False if the batch is full and there may be more to do. */
static bool grant_locked(pirn_sem *sem, struct pirn__wake_batch *batch)
{
    uint32_t word = word_locked(sem);
    pirn_waiter *first;

    while ((first = pirn__waitlist_first(&sem->waiters_)) != NULL &&
           permits_in(word) >= first->count_) {
        if (pirn__wake_batch_full(batch))
            break;
        word -= first->count_ * SEM_PERMIT;
        pirn__wake_batch_add(batch,
                             pirn__wait_end_locked(first, PIRN__WAIT_GRANTED));
    }
    if (first == NULL)
        word &= ~(uint32_t)SEM_WAITERS;
    set_word_locked(sem, word);
    return first == NULL || permits_in(word) < first->count_;
}

/* With the lock held and WAITERS set: serve the line, wake, and return without
 * the lock.  `giver`: who has released permits, or 0. */
static void grant_and_unlock(pirn_sem *sem, uint32_t giver)
{
    struct pirn__wake_batch batch;
    bool is_done;

    pirn__wake_batch_init(&batch);
    /* Ends: each turn but the last serves a whole batch. */
    for (;;) {
        /* After the first turn others may have done the rest. */
        is_done =
            (word_locked(sem) & SEM_WAITERS) == 0 || grant_locked(sem, &batch);
        if (batch.count > 0)
            pirn__giver_note_locked(&sem->giver_, giver);
        pirn__unlock(&sem->lock_);
        pirn__wake_batch_wake(&batch);
        if (is_done)
            return;
        pirn__lock(&sem->lock_);
    }
}

static void require_room(uint32_t word, uint32_t permits)
{
    PIRN_REQUIRE(permits <= PIRN_SEM_MAX - permits_in(word),
                 "a semaphore holds at most PIRN_SEM_MAX permits");
}

/* The short way; false if somebody waits. */
static inline bool try_release(pirn_sem *sem, uint32_t permits)
{
    /* relaxed: only a guess for the swap. */
    uint32_t word = pirn__load(&sem->word_, relaxed);

    /* Ends: each turn fails because somebody else has succeeded. */
    while ((word & SEM_WAITERS) == 0) {
        require_room(word, permits);
        /* release [sem.word]: what was written before is seen by who acquires.
         */
        if (pirn__cas_weak(&sem->word_, &word, word + permits * SEM_PERMIT,
                           release, relaxed))
            return true;
    }
    return false;
}

/* The long way; false if nobody waits any more. */
static bool release_to_line(pirn_sem *sem, uint32_t permits)
{
    uint32_t giver = pirn__giver_here();
    uint32_t word;

    pirn__lock(&sem->lock_);
    word = word_locked(sem);
    if ((word & SEM_WAITERS) == 0) {
        pirn__unlock(&sem->lock_);
        return false;
    }
    require_room(word, permits);
    /* relaxed: WAITERS is set, so only holders of the lock act on it. */
    pirn__store(&sem->word_, word + permits * SEM_PERMIT, relaxed);
    grant_and_unlock(sem, giver);
    return true;
}

void pirn_sem_release(pirn_sem *sem, uint32_t permits)
{
    if (permits == 0)
        return;
    /* Ends: it is turned only by others who come and go. */
    while (!try_release(sem, permits) && !release_to_line(sem, permits))
        continue;
}

/* The operation. */

/* Say that somebody waits, unless the permits are there; what an acquire says.
 */
static int announce_locked(pirn_sem *sem, uint32_t permits)
{
    int rc = try_acquire(sem, permits);

    while (rc == -EAGAIN) {
        uint32_t word = word_locked(sem);

        if ((word & SEM_WAITERS) != 0)
            break;
        /* acquire [sem.word]: unlike a release it may see enough now, and is
         * asked again. */
        if (permits_in(word) < permits &&
            pirn__cas(&sem->word_, &word, word | SEM_WAITERS, acquire, relaxed))
            break;
        rc = try_acquire(sem, permits);
    }
    return rc;
}

static pirn_sem_acquire_op *acquire_of(pirn_waiter *waiter)
{
    return PIRN_CONTAINER_OF(waiter, pirn_sem_acquire_op, waiter_);
}

static bool acquire_may_end_locked(pirn_waiter *waiter)
{
    pirn_sem_acquire_op *op = acquire_of(waiter);
    int rc;

    switch ((enum pirn__wait_state)waiter->state_) {
    case PIRN__WAIT_NEW:
        rc = announce_locked(op->sem_, waiter->count_);
        if (rc == -EAGAIN)
            return false;
        op->rc = rc;
        return true;
    case PIRN__WAIT_QUEUED:
        return false;
    case PIRN__WAIT_GRANTED:
        op->rc = 0;
        return true;
    case PIRN__WAIT_CLOSED:
        op->rc = PIRN_ECLOSED;
        return true;
    case PIRN__WAIT_OUT:
        break;
    }
    return true;
}

/* Without standing in line: READY, or PENDING with a wake arranged; false if it
 * has to stand in line. */
static bool try_first(pirn_sem_acquire_op *op, pirn_cx *cx,
                      enum pirn_poll *poll)
{
    int rc;

    *poll = PIRN_READY;
    if (op->rc < 0) /* said by init */
        return true;
    *poll = PIRN_PENDING;
    if (!pirn__coop_spend(cx))
        return true;
    rc = try_acquire(op->sem_, op->waiter_.count_);
    if (rc == -EAGAIN)
        return pirn__giver_gives_way(&op->sem_->giver_, cx, &op->waiter_);
    op->rc = rc;
    *poll = PIRN_READY;
    pirn__giver_repay(&op->sem_->giver_);
    return true;
}

static enum pirn_poll acquire_poll(pirn_future *self, pirn_cx *cx)
{
    static const struct pirn__wait_rules rules = {acquire_may_end_locked};
    pirn_sem_acquire_op *op =
        PIRN_CONTAINER_OF(self, pirn_sem_acquire_op, future);
    pirn_sem *sem = op->sem_;
    enum pirn_poll poll;

    if (!pirn__wait_is_in(&op->waiter_) && try_first(op, cx, &poll))
        return poll;
    return pirn__wait_poll(&op->waiter_, cx, &sem->waiters_, &sem->lock_,
                           &rules);
}

/* Whoever was first in line may have stood in the way of others. */
static void acquire_drop(pirn_future *self)
{
    pirn_sem_acquire_op *op =
        PIRN_CONTAINER_OF(self, pirn_sem_acquire_op, future);
    pirn_sem *sem = op->sem_;
    enum pirn__wait_state state;
    pirn_waker own;

    if (!pirn__wait_is_in(&op->waiter_))
        return;
    pirn__lock(&sem->lock_);
    state = pirn__wait_leave_locked(&op->waiter_, &own);
    if (state == PIRN__WAIT_QUEUED)
        grant_and_unlock(sem, 0);
    else
        pirn__unlock(&sem->lock_);
    if (own.ops != NULL)
        pirn_waker_drop(own);
    if (state == PIRN__WAIT_GRANTED)
        pirn_sem_release(sem, op->waiter_.count_);
}

static void acquire_discard(pirn_future *self)
{
    pirn_sem_acquire_op *op =
        PIRN_CONTAINER_OF(self, pirn_sem_acquire_op, future);

    if (op->rc == 0)
        pirn_sem_release(op->sem_, op->waiter_.count_);
}

static void acquire_describe(const pirn_future *self, pirn_text *out)
{
    const pirn_sem_acquire_op *op =
        PIRN_CONTAINER_OF(self, const pirn_sem_acquire_op, future);

    pirn_text_append(out, "acquire %u of semaphore %p",
                     (unsigned)op->waiter_.count_, (const void *)op->sem_);
}

static int acquire_outcome(const pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, const pirn_sem_acquire_op, future)->rc;
}

static const pirn_future_ops acquire_ops = {
    .poll = acquire_poll,
    .drop = acquire_drop,
    .discard = acquire_discard,
    .describe = acquire_describe,
    .outcome = acquire_outcome,
};

void pirn_sem_acquire_init(pirn_sem_acquire_op *op, pirn_sem *sem,
                           uint32_t permits)
{
    op->future.ops = &acquire_ops;
    op->sem_ = sem;
    op->rc = permits > PIRN_SEM_MAX ? -EINVAL : 0;
    pirn__wait_init(&op->waiter_);
    op->waiter_.count_ = permits;
    op->waiter_.kind_ = PIRN__GIVER_PATIENT;
}

/* Straight-line calls. */

int pirn_sem_try_acquire(pirn_sem *sem, uint32_t permits)
{
    return permits > PIRN_SEM_MAX ? -EINVAL : try_acquire(sem, permits);
}

/* Apart, so that the short way does not pay for the long one's frame. */
__attribute__((noinline)) static int wait_and_acquire(struct pirn__local *local,
                                                      pirn_sem *sem,
                                                      uint32_t permits,
                                                      pirn_deadline deadline)
{
    pirn_sem_acquire_op op;
    int rc;

    pirn_sem_acquire_init(&op, sem, permits);
    if (deadline.ns == 0) /* it is to try, not to wait for a turn */
        op.waiter_.kind_ = PIRN__GIVER_AT_ONCE;
    rc = pirn__await_here(local, &op.future, deadline);
    return rc < 0 ? rc : op.rc;
}

int pirn_sem_acquire(pirn_sem *sem, uint32_t permits, pirn_deadline deadline)
{
    struct pirn__local *local = pirn__local();
    int rc = pirn__fast_path(local);

    if (rc < 0)
        return rc;
    if (permits > PIRN_SEM_MAX)
        return -EINVAL;
    if (rc == 0) {
        rc = try_acquire(sem, permits);
        if (rc == 0)
            pirn__giver_repay(&sem->giver_);
        if (rc != -EAGAIN)
            return rc;
    }
    return wait_and_acquire(local, sem, permits, deadline);
}

/* The object. */

int pirn_sem_init(pirn_sem *sem, uint32_t permits)
{
    if (permits > PIRN_SEM_MAX)
        return -EINVAL;
    pirn__init(&sem->word_, permits << SEM_SHIFT);
    pirn__lock_init(&sem->lock_);
    pirn__waitlist_init(&sem->waiters_);
    pirn__giver_init(&sem->giver_);
    return 0;
}

void pirn_sem_deinit(pirn_sem *sem)
{
    PIRN_REQUIRE(pirn__waitlist_empty(&sem->waiters_),
                 "nobody waits for a semaphore that ends");
}

uint32_t pirn_sem_remove(pirn_sem *sem, uint32_t permits)
{
    /* relaxed: only a guess for the swap. */
    uint32_t word = pirn__load(&sem->word_, relaxed);

    /* Ends: each turn fails because somebody else has succeeded. */
    while ((word & SEM_WAITERS) == 0) {
        uint32_t count =
            permits < permits_in(word) ? permits : permits_in(word);

        /* acquire [sem.word]: these permits are acquired like others. */
        if (pirn__cas_weak(&sem->word_, &word, word - count * SEM_PERMIT,
                           acquire, relaxed))
            return count;
    }
    return 0;
}

uint32_t pirn_sem_available(const pirn_sem *sem)
{
    /* relaxed: old by the time that the caller looks at it. */
    return permits_in(pirn__load(&sem->word_, relaxed));
}

void pirn_sem_close(pirn_sem *sem)
{
    pirn__lock(&sem->lock_);
    /* release [sem.word]: what was written before is seen by who is told.  The
     * short ways go on meanwhile, hence not a plain store. */
    pirn__or(&sem->word_, SEM_CLOSED, release);
    /* relaxed: what comes after the step above in the order of the word is seen
     * with it.  The line is empty from here on. */
    pirn__and(&sem->word_, ~(uint32_t)SEM_WAITERS, relaxed);
    pirn__waitlist_end_all_and_unlock(&sem->waiters_, &sem->lock_,
                                      PIRN__WAIT_CLOSED);
}

bool pirn_sem_is_closed(const pirn_sem *sem)
{
    /* acquire [sem.word]: sees what was written before the close. */
    return (pirn__load(&sem->word_, acquire) & SEM_CLOSED) != 0;
}

/* Permits as a value. */

pirn_permit pirn_permit_of(pirn_sem *sem, uint32_t permits)
{
    return (pirn_permit){sem, permits};
}

uint32_t pirn_permit_count(const pirn_permit *permit)
{
    return permit->count_;
}

pirn_permit pirn_permit_take(pirn_permit *permit)
{
    pirn_permit taken = *permit;

    permit->count_ = 0;
    return taken;
}

void pirn_permit_release(pirn_permit *permit)
{
    if (permit->count_ > 0)
        pirn_sem_release(permit->sem_, pirn_permit_forget(permit));
}

uint32_t pirn_permit_forget(pirn_permit *permit)
{
    uint32_t count = permit->count_;

    permit->count_ = 0;
    return count;
}

int pirn_permit_split(pirn_permit *permit, uint32_t permits, pirn_permit *out)
{
    *out = (pirn_permit){permit->sem_, 0};
    if (permits > permit->count_)
        return -EINVAL;
    permit->count_ -= permits;
    out->count_ = permits;
    return 0;
}

int pirn_permit_merge(pirn_permit *target, pirn_permit *source)
{
    if (source->count_ == 0)
        return 0;
    if (target->count_ == 0)
        target->sem_ = source->sem_;
    if (target->sem_ != source->sem_ ||
        source->count_ > PIRN_SEM_MAX - target->count_)
        return -EINVAL;
    target->count_ += pirn_permit_forget(source);
    return 0;
}
