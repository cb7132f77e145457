/* SPDX-License-Identifier: MIT */
/* tests/engine/lock_watch.h - a foreign waker that looks, whenever it is called,
 * whether a lock of the library is held: foreign code must not run under one.
 */
#ifndef PIRN_TESTS_ENGINE_LOCK_WATCH_H
#define PIRN_TESTS_ENGINE_LOCK_WATCH_H

#include <pirn/future.h>
#include <pirn/link.h>

#include "base/atomic.h"

enum { LOCK_WATCH_LOCKS = 2 };

struct lock_watch {
    const pirn_lock *locks[LOCK_WATCH_LOCKS]; /* or NULL */
    int clones;
    int wakes;
    int wakers; /* clones that are still held somewhere */
    int found;  /* calls under a lock */
};

static inline struct lock_watch *lock_watch_look(void *data)
{
    struct lock_watch *watch = data;

    for (int i = 0; i < LOCK_WATCH_LOCKS; i++) {
        /* relaxed: a lock that is held here was taken by this thread. */
        if (watch->locks[i] != NULL &&
            pirn__load(&watch->locks[i]->word_, relaxed) != 0)
            watch->found++;
    }
    return watch;
}

static inline pirn_waker lock_watch_clone(const pirn_waker *self)
{
    struct lock_watch *watch = lock_watch_look(self->data);

    watch->clones++;
    watch->wakers++;
    return *self;
}

static inline void lock_watch_wake_by_ref(const pirn_waker *self)
{
    lock_watch_look(self->data)->wakes++;
}

static inline void lock_watch_drop(pirn_waker self)
{
    lock_watch_look(self.data)->wakers--;
}

static inline void lock_watch_wake(pirn_waker self)
{
    lock_watch_wake_by_ref(&self);
    lock_watch_drop(self);
}

/* The waker; valid as long as the watch. */
static inline pirn_waker lock_watch_waker(struct lock_watch *watch)
{
    static const pirn_waker_ops ops = {
        .clone = lock_watch_clone,
        .wake = lock_watch_wake,
        .wake_by_ref = lock_watch_wake_by_ref,
        .drop = lock_watch_drop,
    };

    return (pirn_waker){.data = watch, .ops = &ops};
}

#endif /* PIRN_TESTS_ENGINE_LOCK_WATCH_H */
