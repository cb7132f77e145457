/* SPDX-License-Identifier: MIT */
/* src/reactor/reactor.h - the wait set of a runtime.
 *
 * One epoll set with every bound descriptor (edge-triggered, registered once),
 * the wake descriptor and a timerfd for short waits.  pirn__reactor_poll() is
 * called only by the thread that holds the driver's seat; everything else by
 * any thread.
 */
#ifndef PIRN_REACTOR_REACTOR_H
#define PIRN_REACTOR_REACTOR_H

#include <pirn/alloc.h>
#include <pirn/link.h>

#include "base/atomic.h"

struct pirn__reactor;
struct pirn__home;
struct pirn__io;

/* `home` is set into the objects that are made under it. */
int pirn__reactor_new(const pirn_alloc *alloc, struct pirn__home *home,
                      struct pirn__reactor **out);

/* Wait until the deadline for events and wake their first waiters.  Returns
 * the number of descriptors that had one (the wake descriptor and the timer not
 * counted), or a negative code.  PIRN_EXPIRED only looks.  It may return early,
 * with 0. */
int pirn__reactor_poll(struct pirn__reactor *reactor, pirn_deadline deadline);

/* A timer in the set: whoever harvests it calls fn.  The lock makes one step of
 * what is noted here and what the kernel is told: of two threads that arm it for
 * different times the earlier must have the last word.  It also orders arming
 * after the event: who finds it armed still is seen by fn, in whatever he did
 * before. */
struct pirn__alarm {
    pirn_lock lock;
    int fd;            /* lock: -1 once it is closed */
    uint64_t armed_ns; /* lock: UINT64_MAX: not armed */
    uint32_t slot;     /* constant */
    void (*fn)(struct pirn__alarm *alarm);
};

int pirn__alarm_open(struct pirn__reactor *reactor, struct pirn__alarm *alarm,
                     void (*fn)(struct pirn__alarm *alarm));
void pirn__alarm_close(struct pirn__reactor *reactor,
                       struct pirn__alarm *alarm);

/* Arm for a time of the system's clock, unless it is armed for an earlier one
 * or the same.  Nothing once it is closed.  Any thread. */
void pirn__alarm_arm(struct pirn__alarm *alarm, pirn_deadline deadline);

/* The events of one poll of one thread.  Few, because what an event brings into
 * the caches must still be there when its task runs, and each of the tasks
 * before it makes the kernel touch many kilobytes; see docs/decisions/0006. */
enum { PIRN__HARVEST_SIZE = 32 };
struct pirn__harvest {
    bool woken; /* the wake descriptor was among them: the wake is yours */
    void *events; /* the system's, PIRN__HARVEST_SIZE of them */
};

int pirn__harvest_init(struct pirn__harvest *harvest, const pirn_alloc *alloc);
void pirn__harvest_deinit(struct pirn__harvest *harvest,
                          const pirn_alloc *alloc);

/* As pirn__reactor_poll(), for many threads at once, each with its own
 * harvest.  Times to be kept are alarms: a deadline here may be late by the slack
 * of the thread. */
int pirn__reactor_harvest(struct pirn__reactor *reactor,
                          struct pirn__harvest *harvest,
                          pirn_deadline deadline);

/* False if the set holds nothing but our own: wakes and alarms.  Any thread. */
bool pirn__reactor_is_watching(const struct pirn__reactor *reactor);

/* Make the poll that runs now, or the next one, return.  Nothing after
 * shutdown. */
void pirn__reactor_wake(struct pirn__reactor *reactor);

/* -1 after shutdown. */
int pirn__reactor_fd(const struct pirn__reactor *reactor);

/* Unbind every descriptor: its waiters answer PIRN_ESHUTDOWN, close still
 * works. */
void pirn__reactor_unbind_all(struct pirn__reactor *reactor);

/* The same, and close the set and the wake descriptor.  Not during a poll: the
 * thread would sleep on, or wake up in the set that gets the number next. */
void pirn__reactor_shutdown(struct pirn__reactor *reactor);

/* After one of the two, when nobody can poll or call wake any more. */
void pirn__reactor_free(struct pirn__reactor *reactor);

/* For io.c, which holds the lock of `io` meanwhile. */

/* Take a reference to `io` and enter it in the list; PIRN_ESHUTDOWN. */
int pirn__reactor_bind(struct pirn__reactor *reactor, struct pirn__io *io);

/* Out of the list; gives the reference up.  Events that are under way are for
 * nobody from here on. */
void pirn__reactor_unbind(struct pirn__reactor *reactor, struct pirn__io *io);

/* Enter or remove the descriptor in the set.  -ENOBUFS: without any lock,
 * pirn__reactor_grow() first. */
int pirn__reactor_watch(struct pirn__reactor *reactor, struct pirn__io *io,
                        int fd);
void pirn__reactor_unwatch(struct pirn__reactor *reactor, int fd);

/* Make room for more descriptors; calls the allocator, so under no lock. */
int pirn__reactor_grow(struct pirn__reactor *reactor);

struct pirn__home *pirn__reactor_home(const struct pirn__reactor *reactor);

#endif /* PIRN_REACTOR_REACTOR_H */
