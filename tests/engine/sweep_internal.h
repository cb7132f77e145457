/* SPDX-License-Identifier: MIT */
/* tests/engine/sweep_internal.h - what the parts of the sweep share.
 *
 *   sweep.c        the faults, the rounds, the verdicts
 *   sweep_world.c  a system table whose calls may fail
 *   sweep_libc.c   the heap, and signals that interrupt
 */
#ifndef PIRN_TESTS_ENGINE_SWEEP_INTERNAL_H
#define PIRN_TESTS_ENGINE_SWEEP_INTERNAL_H

#include "engine/sweep.h"

enum sweep__call {
    SWEEP__TAKE,
    SWEEP__THREAD,
    SWEEP__MAP,
    SWEEP__UNMAP,
    SWEEP__GUARD,
    SWEEP__PROTECT, /* of a kernel without guard regions */
    SWEEP__DISCARD,
    SWEEP__RESIDENT,
    SWEEP__LIMIT,
    SWEEP__EVENTFD,
    SWEEP__TIMERFD,
    SWEEP__EPOLL,
    SWEEP__EPOLL_ADD,
    SWEEP__SOCKET,
    SWEEP__BIND,
    SWEEP__LISTEN,
    SWEEP__CONNECT,
    SWEEP__ACCEPT,
    SWEEP__RECEIVE,
    SWEEP__SEND,
    SWEEP__SENDFILE,
    SWEEP__EPOLL_WAIT,
    SWEEP__POLL,
    SWEEP__FUTEX_WAIT,
    SWEEP__LIBC,
};

enum sweep__trick {
    SWEEP__ERROR,   /* the call is not made and answers `error` */
    SWEEP__AGAIN,   /* it would block, and an instant later it would not */
    SWEEP__SHORT,   /* one byte at most, and the rest comes an instant later */
    SWEEP__NOTHING, /* a wait ends at once */
};

enum sweep__rhythm {
    SWEEP__ONCE,        /* the kth call */
    SWEEP__ONWARDS,     /* and all later ones */
    SWEEP__EVERY_OTHER, /* and every second one after it */
    SWEEP__ALWAYS,      /* every one: there is but one such round */
};

struct sweep__fault {
    const char *name;
    unsigned group;
    enum sweep__call call;
    enum sweep__trick trick;
    int error;
    enum sweep__rhythm rhythm;
    bool is_borne;  /* the scenario must succeed all the same */
    bool is_leaky;  /* what the system does not take back stays */
};

/* The fault that befalls this call now, or NULL. */
const struct sweep__fault *sweep__strike(enum sweep__call call);

/* True if the fault of this round is one of such calls. */
bool sweep__concerns(enum sweep__call call);

/* Put the table of sweep_world.c under the library, once and for ever. */
void sweep__world_install(void);
int64_t sweep__world_mapped_bytes(void);

/* Pieces of the heap that are out. */
int64_t sweep__heap_pieces(void);
/* Wrong sizes, and allocators that were given up too early or too late. */
const char *sweep__heap_complaint(void);

/* "EINVAL ENOMEM" for a function in the public headers; NULL if it is not
 * there, "" if it documents none.  Made from the headers. */
struct sweep__documented {
    const char *function;
    const char *errors;
};
extern const struct sweep__documented sweep__documented[];
extern const size_t sweep__documented_count;

#endif /* PIRN_TESTS_ENGINE_SWEEP_INTERNAL_H */
