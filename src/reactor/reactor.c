/* SPDX-License-Identifier: MIT */
/* src/reactor/reactor.c - epoll.
 *
 * An event carries a token: the number of a slot of the reactor's table, and how
 * often that slot has been used.  A thread meets the token some time after the
 * kernel wrote it down, and the io may have been closed in between; then the
 * slot has moved on and the event is for nobody.  Under the lock a token that is
 * still good gives the io and lends the reactor's reference to it, so no event
 * ever meets freed memory, however many threads poll the set.  A slot that is
 * left while its reference is lent keeps it until that is back.
 *
 * Invariant, under the lock of an io: it is in the list exactly if its `reactor`
 * is this one.  So the reactor outlives whoever sees that under the io's lock.
 *
 * Lock order: an io, then the reactor.
 */
#include "reactor/reactor.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/prefetch.h"
#include "reactor/io.h"
#include "sys/fork.h"
#include "sys/sys.h"
#include "task/home.h"
#include "task/waker.h"

enum {
    SLOTS_FIRST = 64, /* the table's first size; it doubles */
    SLOT_NONE = INT32_MAX - 8,
    /* Of a slot that is not free, in next_free. */
    SLOT_USED = SLOT_NONE + 1,
    SLOT_LENT, /* a thread works with the io, on the slot's reference */
    SLOT_LEFT, /* and nobody else has the slot any more */
    REACTOR_ALIGN = 64,
    EVENTS_ALIGN = 16,
    BATCH_SIZE = 16,
    TASK_BYTES = 256, /* of a task, that a wake and the run after it touch */
};

/* Tokens of our own descriptors; slots have generations from 1 on. */
enum { TOKEN_WAKE = 1, TOKEN_TIMER = 2 };

/* The kernel's own timeout is late by the slack of the thread, 50 us by default;
 * below this it is worth a system call to be exact. */
static const uint64_t short_wait_ns = 4 * 1000 * 1000;

/* In wake_writers: nobody begins to write any more. */
static const uint32_t wake_shut = UINT32_C(1) << 31;

/* What a token names. */
struct slot {
    struct pirn__io *io;        /* or NULL */
    struct pirn__alarm *alarm;  /* or NULL */
    uint32_t generation;        /* of the present or the next use; from 1 */
    uint32_t next_free;         /* while it is free; else see above */
};

struct pirn__reactor {
    const pirn_alloc *alloc;
    struct pirn__home *home;
    PIRN_ATOMIC(int) epoll_fd; /* constant until shutdown, then -1 */
    int timer_fd;
    int wake_fd;                        /* open while somebody writes to it */
    PIRN_ATOMIC(uint32_t) wake_pending; /* 1: written, not harvested yet */
    PIRN_ATOMIC(uint32_t) wake_writers; /* how many write; wake_shut */
    uint64_t timer_ns;                  /* driver: what timer_fd is armed for */
    pirn_lock lock;
    bool dead;                         /* lock: binds nothing more */
    pirn_link bound;                   /* lock */
    struct slot *slots;                /* lock */
    uint32_t slot_count;               /* lock */
    uint32_t free_slot;                /* lock: the first, or SLOT_NONE */
    PIRN_ATOMIC(uint32_t) watched;     /* lock: descriptors in slots; anybody
                                          reads it */
    struct pirn__harvest harvest;      /* driver */
};

/* A thread may come late, when a shutdown could not wait for it. */
static int epoll_of(const struct pirn__reactor *reactor)
{
    /* relaxed: the number is all there is. */
    return pirn__load(&reactor->epoll_fd, relaxed);
}

/* Making. */

/* Nobody reads the counter of either, so they are edge-triggered: otherwise
 * they would stay ready for ever after the first time. */
static int add_own(struct pirn__reactor *reactor, int fd, uint64_t token)
{
    return pirn__sys->epoll_add(epoll_of(reactor), fd, EPOLLIN | EPOLLET,
                                (void *)(uintptr_t)token);
}

static int open_descriptors(struct pirn__reactor *reactor)
{
    int rc = pirn__sys->epoll_create();

    if (rc < 0)
        return rc;
    pirn__init(&reactor->epoll_fd, rc);

    rc = pirn__sys->eventfd();
    if (rc < 0)
        goto fail_epoll_fd;
    reactor->wake_fd = rc;
    rc = add_own(reactor, reactor->wake_fd, TOKEN_WAKE);
    if (rc < 0)
        goto fail_wake_fd;

    rc = pirn__sys->timerfd();
    if (rc < 0)
        goto fail_wake_fd;
    reactor->timer_fd = rc;
    rc = add_own(reactor, reactor->timer_fd, TOKEN_TIMER);
    if (rc < 0)
        goto fail_timer_fd;
    return 0;

fail_timer_fd:
    pirn__sys->close(reactor->timer_fd);
fail_wake_fd:
    pirn__sys->close(reactor->wake_fd);
fail_epoll_fd:
    pirn__sys->close(epoll_of(reactor));
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
    pirn__init(&reactor->wake_writers, 0);
    pirn__init(&reactor->watched, 0);
    reactor->slots = NULL;
    reactor->slot_count = 0;
    reactor->free_slot = SLOT_NONE;
    pirn__lock_init(&reactor->lock);
    pirn__list_init(&reactor->bound);
    rc = pirn__harvest_init(&reactor->harvest, alloc);
    if (rc == 0) {
        rc = open_descriptors(reactor);
        if (rc < 0)
            pirn__harvest_deinit(&reactor->harvest, alloc);
    }
    if (rc < 0) {
        alloc->give(alloc->ctx, reactor, sizeof *reactor, REACTOR_ALIGN);
        return rc;
    }
    *out = reactor;
    return 0;
}

int pirn__reactor_fd(const struct pirn__reactor *reactor)
{
    return epoll_of(reactor);
}

struct pirn__home *pirn__reactor_home(const struct pirn__reactor *reactor)
{
    return reactor->home;
}

/* Waking. */

/* True for the one who has to write. */
static bool claim_wake(struct pirn__reactor *reactor)
{
    /* release [reactor.wake]: publishes what the driver is to find, also when
     * an earlier wake is still pending: its harvest reads this swap or a later
     * one. */
    return pirn__swap(&reactor->wake_pending, 1, release) == 0;
}

/* Often the thread that is woken runs at once in the place of the one that
 * writes.  So no lock is held meanwhile, for which the former would have to wait;
 * writers are counted, and who closes the descriptor waits for them. */
void pirn__reactor_wake(struct pirn__reactor *reactor)
{
    uint32_t before;

    if (!claim_wake(reactor))
        return;
    /* relaxed: one word; either this finds it shut, or who shuts it finds us. */
    before = pirn__add(&reactor->wake_writers, 1, relaxed);
    if ((before & wake_shut) == 0)
        (void)pirn__sys->eventfd_signal(reactor->wake_fd);
    /* release [reactor.writers]: our write comes before the close. */
    before = pirn__sub(&reactor->wake_writers, 1, release);
    /* The reactor may be gone by now.  The kernel only compares the address. */
    if (before == (wake_shut | 1))
        pirn__sys->futex_wake(&reactor->wake_writers.v_, INT32_MAX);
}

/* The wake descriptor may be closed from here on.  False: it was before. */
static bool shut_wake(struct pirn__reactor *reactor)
{
    uint32_t now;

    /* relaxed: as in pirn__reactor_wake(). */
    if ((pirn__or(&reactor->wake_writers, wake_shut, relaxed) & wake_shut) != 0)
        return false;
    /* acquire [reactor.writers]: after the last write.  Ends: nobody begins one,
     * and the last to leave wakes us. */
    while ((now = pirn__load(&reactor->wake_writers, acquire)) != wake_shut)
        (void)pirn__sys->futex_wait(&reactor->wake_writers.v_, now,
                                    PIRN_NEVER);
    return true;
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

/* Slots. */

static size_t table_size(uint32_t count)
{
    return (size_t)count * sizeof(struct slot);
}

static uint32_t count_slots(struct pirn__reactor *reactor)
{
    uint32_t count;

    pirn__lock(&reactor->lock);
    count = reactor->slot_count;
    pirn__unlock(&reactor->lock);
    return count;
}

/* Take over a table of `count` slots; returns the one before. */
static struct slot *replace_slots_locked(struct pirn__reactor *reactor,
                                         struct slot *slots, uint32_t count)
{
    struct slot *old_slots = reactor->slots;
    uint32_t old = reactor->slot_count;

    if (old > 0)
        memcpy(slots, old_slots, table_size(old));
    for (uint32_t i = count; i-- > old;) {
        slots[i] = (struct slot){.generation = 1,
                                 .next_free = reactor->free_slot};
        reactor->free_slot = i;
    }
    reactor->slots = slots;
    reactor->slot_count = count;
    return old_slots;
}

/* Twice as many slots.  Another thread may have seen to it meanwhile, which is
 * as good. */
int pirn__reactor_grow(struct pirn__reactor *reactor)
{
    const pirn_alloc *alloc = reactor->alloc;
    uint32_t old = count_slots(reactor);
    uint32_t count = old == 0 ? SLOTS_FIRST : 2 * old;
    struct slot *slots, *spare;
    bool is_ours;

    if (count >= SLOT_NONE)
        return -ENOMEM;
    slots = alloc->take(alloc->ctx, table_size(count), REACTOR_ALIGN);
    if (slots == NULL)
        return -ENOMEM;
    pirn__lock(&reactor->lock);
    is_ours = reactor->slot_count == old;
    spare = is_ours ? replace_slots_locked(reactor, slots, count) : slots;
    pirn__unlock(&reactor->lock);
    if (spare != NULL)
        alloc->give(alloc->ctx, spare, table_size(is_ours ? old : count),
                    REACTOR_ALIGN);
    return 0;
}

/* -ENOBUFS: the table has to grow first. */
static int take_slot_locked(struct pirn__reactor *reactor, uint32_t *out)
{
    if (reactor->free_slot == SLOT_NONE)
        return -ENOBUFS;
    *out = reactor->free_slot;
    reactor->free_slot = reactor->slots[*out].next_free;
    reactor->slots[*out].next_free = SLOT_USED;
    return 0;
}

static void free_slot_locked(struct pirn__reactor *reactor, uint32_t index)
{
    struct slot *slot = &reactor->slots[index];

    slot->io = NULL;
    slot->alarm = NULL;
    slot->next_free = reactor->free_slot;
    reactor->free_slot = index;
}

static void count_watched_locked(struct pirn__reactor *reactor, int change)
{
    /* relaxed: only under the lock is it written. */
    uint32_t watched = pirn__load(&reactor->watched, relaxed);

    /* relaxed: who does not see the first one yet has looked before it came. */
    pirn__store(&reactor->watched, watched + (uint32_t)change, relaxed);
}

bool pirn__reactor_is_watching(const struct pirn__reactor *reactor)
{
    /* relaxed: as above. */
    return pirn__load(&reactor->watched, relaxed) != 0;
}

/* From here on its tokens are stale.  False: it keeps the reference to its io
 * until that is back. */
static bool give_slot_locked(struct pirn__reactor *reactor, uint32_t index)
{
    struct slot *slot = &reactor->slots[index];

    /* 2^32 uses while one event waits to be looked at: does not happen. */
    slot->generation = slot->generation == UINT32_MAX ? 1
                                                      : slot->generation + 1;
    if (slot->next_free == SLOT_LENT) {
        slot->next_free = SLOT_LEFT;
        return false;
    }
    free_slot_locked(reactor, index);
    return true;
}

static uint64_t token_locked(const struct pirn__reactor *reactor,
                             uint32_t index)
{
    return (uint64_t)reactor->slots[index].generation << 32 | index;
}

void pirn__reactor_unbind(struct pirn__reactor *reactor, struct pirn__io *io)
{
    bool is_free = true;

    /* In a child process a thread that is not there may hold the lock for ever.
     * Nobody uses the set there, and what it keeps ends with the process. */
    if (pirn__home_is_forked(reactor->home))
        return;
    pirn__lock(&reactor->lock);
    pirn__list_remove(&io->bound_link);
    if (io->slot != PIRN__IO_NO_SLOT) {
        is_free = give_slot_locked(reactor, io->slot);
        count_watched_locked(reactor, -1);
    }
    io->slot = PIRN__IO_NO_SLOT;
    pirn__unlock(&reactor->lock);
    /* Not the last one: the caller works on `io`. */
    if (is_free)
        pirn__io_drop(io);
}

/* A slot for the io, and its token. */
static int enter_io(struct pirn__reactor *reactor, struct pirn__io *io,
                    uint64_t *token)
{
    int rc;

    pirn__lock(&reactor->lock);
    rc = take_slot_locked(reactor, &io->slot);
    if (rc == 0) {
        reactor->slots[io->slot].io = io;
        count_watched_locked(reactor, 1);
        *token = token_locked(reactor, io->slot);
    }
    pirn__unlock(&reactor->lock);
    return rc;
}

static void leave_io(struct pirn__reactor *reactor, struct pirn__io *io)
{
    pirn__lock(&reactor->lock);
    /* Not lent: no event has come of it. */
    free_slot_locked(reactor, io->slot);
    count_watched_locked(reactor, -1);
    io->slot = PIRN__IO_NO_SLOT;
    pirn__unlock(&reactor->lock);
}

int pirn__reactor_watch(struct pirn__reactor *reactor, struct pirn__io *io,
                        int fd)
{
    uint64_t token;
    int rc = enter_io(reactor, io, &token);

    if (rc < 0)
        return rc;
    rc = pirn__sys->epoll_add(epoll_of(reactor), fd,
                              EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI |
                                  EPOLLET,
                              (void *)(uintptr_t)token);
    if (rc < 0)
        leave_io(reactor, io);
    return rc;
}

void pirn__reactor_unwatch(struct pirn__reactor *reactor, int fd)
{
    /* The set is shared with the parent process, whose registration of the same
     * file this would end. */
    if (pirn__home_is_forked(reactor->home))
        return;
    (void)pirn__sys->epoll_remove(epoll_of(reactor), fd);
}

/* Alarms. */

static int try_enter_alarm(struct pirn__reactor *reactor,
                           struct pirn__alarm *alarm, uint64_t *token)
{
    int rc;

    pirn__lock(&reactor->lock);
    rc = take_slot_locked(reactor, &alarm->slot);
    if (rc == 0) {
        reactor->slots[alarm->slot].alarm = alarm;
        *token = token_locked(reactor, alarm->slot);
    }
    pirn__unlock(&reactor->lock);
    return rc;
}

/* A slot for the alarm, and its token. */
static int enter_alarm(struct pirn__reactor *reactor,
                       struct pirn__alarm *alarm, uint64_t *token)
{
    int rc;

    /* Ends: each growth makes as much room as there was. */
    while ((rc = try_enter_alarm(reactor, alarm, token)) == -ENOBUFS) {
        rc = pirn__reactor_grow(reactor);
        if (rc < 0)
            return rc;
    }
    return rc;
}

int pirn__alarm_open(struct pirn__reactor *reactor, struct pirn__alarm *alarm,
                     void (*fn)(struct pirn__alarm *alarm))
{
    uint64_t token = 0;
    int rc = pirn__sys->timerfd();

    if (rc < 0)
        return rc;
    *alarm = (struct pirn__alarm){.fd = rc, .fn = fn, .armed_ns = UINT64_MAX};
    rc = enter_alarm(reactor, alarm, &token);
    if (rc < 0)
        goto fail_fd;
    rc = add_own(reactor, alarm->fd, token);
    if (rc < 0)
        goto fail_slot;
    return 0;

fail_slot:
    pirn__lock(&reactor->lock);
    (void)give_slot_locked(reactor, alarm->slot);
    pirn__unlock(&reactor->lock);
fail_fd:
    pirn__sys->close(alarm->fd);
    return rc;
}

void pirn__alarm_close(struct pirn__reactor *reactor,
                       struct pirn__alarm *alarm)
{
    int fd;

    pirn__lock(&reactor->lock);
    /* Only the references to descriptors are ever lent. */
    (void)give_slot_locked(reactor, alarm->slot);
    pirn__unlock(&reactor->lock);
    /* A thread that comes late must not arm whatever gets the number next. */
    pirn__lock(&alarm->lock);
    fd = alarm->fd;
    alarm->fd = -1;
    pirn__unlock(&alarm->lock);
    (void)pirn__sys->epoll_remove(epoll_of(reactor), fd);
    pirn__sys->close(fd);
}

void pirn__alarm_arm(struct pirn__alarm *alarm, pirn_deadline deadline)
{
    pirn__lock(&alarm->lock);
    if (alarm->fd >= 0 && deadline.ns < alarm->armed_ns) {
        alarm->armed_ns = deadline.ns;
        (void)pirn__sys->timerfd_set(alarm->fd, deadline);
    }
    pirn__unlock(&alarm->lock);
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
    /* acquire [reactor.wake]: what each waker that found the flag set has
     * published; the driver looks at its queues after this.  A swap, for a
     * plain store would read from none of them. */
    (void)pirn__swap(&reactor->wake_pending, 0, acquire);
}

int pirn__harvest_init(struct pirn__harvest *harvest, const pirn_alloc *alloc)
{
    *harvest = (struct pirn__harvest){
        .events = alloc->take(alloc->ctx,
                              PIRN__HARVEST_SIZE * sizeof(struct epoll_event),
                              EVENTS_ALIGN),
    };
    return harvest->events == NULL ? -ENOMEM : 0;
}

void pirn__harvest_deinit(struct pirn__harvest *harvest,
                          const pirn_alloc *alloc)
{
    if (harvest->events != NULL)
        alloc->give(alloc->ctx, harvest->events,
                    PIRN__HARVEST_SIZE * sizeof(struct epoll_event),
                    EVENTS_ALIGN);
    harvest->events = NULL;
}

/* Who an event is for. */
struct target {
    struct pirn__io *io; /* with a reference, see below */
    struct pirn__alarm *alarm;
    uint32_t events;
    uint32_t slot; /* whose reference to `io` is lent; or SLOT_NONE: the
                      target has its own */
};

/* A few events that are worked on together: what one of them waits for is
 * fetched while the others have their turn. */
struct batch {
    struct target targets[BATCH_SIZE];
    pirn_waker wakers[2 * BATCH_SIZE];
    int target_count;
    int waker_count;
};

/* Whom the token names; false if nobody, any more. */
static bool resolve_locked(struct pirn__reactor *reactor, uint64_t token,
                           struct target *out)
{
    uint32_t index = (uint32_t)token;
    struct slot *slot = &reactor->slots[index];

    if (index >= reactor->slot_count || slot->generation != token >> 32)
        return false;
    out->io = slot->io;
    out->alarm = slot->alarm;
    out->slot = SLOT_NONE;
    if (slot->io == NULL)
        return slot->alarm != NULL;
    pirn__prefetch(slot->io, PIRN__IO_EVENT_BYTES);
    if (slot->next_free == SLOT_USED) {
        slot->next_free = SLOT_LENT;
        out->slot = index;
    }
    return true;
}

static void resolve_all_locked(struct pirn__reactor *reactor,
                               const struct epoll_event *events, int count,
                               struct batch *batch)
{
    struct target *target = batch->targets;

    for (int i = 0; i < count; i++) {
        if (!resolve_locked(reactor, events[i].data.u64, target))
            continue;
        /* Two threads with events of one descriptor. */
        if (target->io != NULL && target->slot == SLOT_NONE)
            pirn__io_keep(target->io);
        target->events = events[i].events;
        target++;
    }
    batch->target_count = (int)(target - batch->targets);
}

/* Give the lent references back.  Those that nobody else has any more stay in
 * the targets, as their own. */
static void return_all_locked(struct pirn__reactor *reactor,
                              struct batch *batch)
{
    for (int i = 0; i < batch->target_count; i++) {
        struct target *target = &batch->targets[i];
        struct slot *slot;

        if (target->slot == SLOT_NONE)
            continue;
        slot = &reactor->slots[target->slot];
        if (slot->next_free == SLOT_LEFT) {
            free_slot_locked(reactor, target->slot);
            continue;
        }
        slot->next_free = SLOT_USED;
        target->io = NULL;
    }
}

static void return_all(struct pirn__reactor *reactor, struct batch *batch)
{
    pirn__lock(&reactor->lock);
    return_all_locked(reactor, batch);
    pirn__unlock(&reactor->lock);
    for (int i = 0; i < batch->target_count; i++) {
        if (batch->targets[i].io != NULL)
            pirn__io_drop(batch->targets[i].io);
    }
}

PIRN__COLD static void ring_alarm(struct pirn__alarm *alarm)
{
    /* From here on it may be armed again. */
    pirn__lock(&alarm->lock);
    alarm->armed_ns = UINT64_MAX;
    pirn__unlock(&alarm->lock);
    alarm->fn(alarm);
}

/* Hand an event to its descriptor; true if it was for one. */
static bool deliver(const struct target *target, struct batch *batch)
{
    if (target->alarm != NULL)
        ring_alarm(target->alarm);
    if (target->io == NULL)
        return false;
    batch->waker_count += pirn__io_take_event(
        target->io, target->events, &batch->wakers[batch->waker_count]);
    return true;
}

static void wake_all(const struct batch *batch, struct pirn__home *home)
{
    /* The first lines of a task, which a task's waker points to. */
    for (int i = 0; i < batch->waker_count; i++)
        pirn__prefetch(batch->wakers[i].data, TASK_BYTES);
    for (int i = 0; i < batch->waker_count; i++)
        pirn__waker_wake_by_driver(batch->wakers[i], home);
}

/* Returns how many of the events were for descriptors. */
static int dispatch(struct pirn__reactor *reactor,
                    const struct epoll_event *events, int count)
{
    struct batch batch;
    int delivered = 0;

    pirn__lock(&reactor->lock);
    resolve_all_locked(reactor, events, count, &batch);
    pirn__unlock(&reactor->lock);
    batch.waker_count = 0;
    for (int i = 0; i < batch.target_count; i++)
        delivered += deliver(&batch.targets[i], &batch);
    return_all(reactor, &batch);
    wake_all(&batch, reactor->home);
    return delivered;
}

/* Take our own descriptors out of the events; how many remain. */
static int take_own(struct pirn__reactor *reactor,
                    struct pirn__harvest *harvest, int count)
{
    struct epoll_event *events = harvest->events;
    int kept = 0;

    for (int i = 0; i < count; i++) {
        if (events[i].data.u64 == TOKEN_WAKE) {
            harvest_wake(reactor);
            harvest->woken = true;
        } else if (events[i].data.u64 != TOKEN_TIMER) {
            events[kept++] = events[i];
        }
    }
    return kept;
}

int pirn__reactor_harvest(struct pirn__reactor *reactor,
                          struct pirn__harvest *harvest,
                          pirn_deadline deadline)
{
    struct epoll_event *events = harvest->events;
    int harvested = 0;
    int count;

    harvest->woken = false;
    count = pirn__sys->epoll_wait(epoll_of(reactor), events,
                                  PIRN__HARVEST_SIZE, deadline);
    if (count < 0)
        return count;
    count = take_own(reactor, harvest, count);
    for (int i = 0; i < count; i += BATCH_SIZE)
        harvested += dispatch(reactor, &events[i],
                              count - i < BATCH_SIZE ? count - i : BATCH_SIZE);
    return harvested;
}

int pirn__reactor_poll(struct pirn__reactor *reactor, pirn_deadline deadline)
{
    return pirn__reactor_harvest(reactor, &reactor->harvest,
                                 prepare_timeout(reactor, deadline));
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
    int epoll_fd = epoll_of(reactor);

    if (!shut_wake(reactor))
        return;
    /* relaxed: the number is all there is; before the close, after which it may
     * be another's. */
    pirn__store(&reactor->epoll_fd, -1, relaxed);
    pirn__sys->close(reactor->wake_fd);
    pirn__sys->close(reactor->timer_fd);
    pirn__sys->close(epoll_fd);
}

void pirn__reactor_unbind_all(struct pirn__reactor *reactor)
{
    struct pirn__io *io;

    /* Ends: a dead reactor binds nothing, and each round unbinds one. */
    while ((io = first_bound(reactor)) != NULL) {
        pirn__io_end(io, reactor);
        pirn__io_drop(io);
    }
}

void pirn__reactor_shutdown(struct pirn__reactor *reactor)
{
    pirn__reactor_unbind_all(reactor);
    close_descriptors(reactor);
}

void pirn__reactor_free(struct pirn__reactor *reactor)
{
    const pirn_alloc *alloc = reactor->alloc;

    PIRN_ASSERT(pirn__list_empty(&reactor->bound));
    close_descriptors(reactor);
    pirn__harvest_deinit(&reactor->harvest, alloc);
    if (reactor->slots != NULL)
        alloc->give(alloc->ctx, reactor->slots,
                    table_size(reactor->slot_count), REACTOR_ALIGN);
    alloc->give(alloc->ctx, reactor, sizeof *reactor, REACTOR_ALIGN);
}
