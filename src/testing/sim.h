/* SPDX-License-Identifier: MIT */
/* src/testing/sim.h - between the parts of the simulated world.
 *
 *   sim.c          the run, and what programs ask
 *   sim_thread.c   virtual threads, virtual time, events
 *   sim_options.c  how options are drawn, read and written
 *   sim_search.c   many seeds, in a child process
 *   sim_sys.c      the table: clock, futexes, eventfds, timers, wait sets
 *   sim_link.c     connections, what happens to them, and the weather
 *   sim_net.c      the calls for sockets
 *   sim_runtime.c  the runtimes of the program
 *   sim_watch.c    futures that are watched
 *   sim_check.c    the checkers
 *
 * Everything here is used by one thread of the system at a time, the one whose
 * run is on; sim.c sees to that.  Each part has its state in one static struct,
 * which is empty between runs.
 *
 * Without memory a run is given up, from wherever it stands: nobody has to bear
 * a NULL once it is on.
 */
#ifndef PIRN_TESTING_SIM_H
#define PIRN_TESTING_SIM_H

#include <pirn/sim.h>

#include "sys/sys.h"

struct epoll_event;

/* Parts with memory of their own: begin before a run, and a code; end after it,
 * also after a begin that has failed. */
int pirn__sim_threads_begin(void);
void pirn__sim_threads_end(void);
int pirn__sim_files_begin(void);
void pirn__sim_files_end(void);
int pirn__sim_checkers_begin(const pirn_sim_case *scenario);
void pirn__sim_checkers_end(void);

/* sim.c */

/* The options of the run that is on, all drawn. */
const pirn_sim_options *pirn__sim_options(void);

/* Bad things happen: with so many chances of a thousand, and only before it is
 * calm. */
bool pirn__sim_fault(uint32_t per_thousand);

/* Note the first thing that is found. */
void pirn__sim_find(enum pirn_sim_finding finding, const char *checker,
                    const char *text);
void pirn__sim_blame(const char *checker, const char *format, ...)
    PIRN_PRINTF(2, 3);

/* Give the run up; by the second for want of memory. */
PIRN_NORETURN void pirn__sim_give_up(enum pirn_sim_finding finding,
                                     const char *text);

/* Zeroed memory; NULL only while no run is on. */
void *pirn__sim_take(size_t size);
void pirn__sim_give(void *memory, size_t size);
/* Room for one more than *room items, at least; what was there is moved. */
void *pirn__sim_grow(void *items, size_t *room, size_t size);

/* 0 if the case makes sense and this thread may begin a run of it now. */
int pirn__sim_may_begin(const pirn_sim_case *scenario);

/* As pirn_sim_run(), with arguments that make sense. */
int pirn__sim_run(const pirn_sim_case *scenario, uint64_t seed,
                  pirn_sim_result *result);

/* sim_thread.c */

/* True while a virtual thread runs. */
bool pirn__sim_is_on(void);

/* Run entry(arg) as the first thread; returns when pirn__sim_leave() was
 * called, or with a code if there is no memory for it. */
int pirn__sim_enter(void (*entry)(void *arg), void *arg);
/* End the run; `given_up`: other threads stand somewhere. */
PIRN_NORETURN void pirn__sim_leave(bool given_up);
/* Wait until all other threads have ended, and make ready to leave. */
void pirn__sim_wait_for_others(void);

/* Steps so far, the hash, the time since the beginning. */
void pirn__sim_tell(pirn_sim_result *result);

/* Wait until somebody wakes `address`; true at the time instead. */
bool pirn__sim_wait(const void *address, uint64_t until_ns);
/* Wake up to `count` of those who wait, in any order. */
void pirn__sim_wake(const void *address, int count);
int pirn__sim_spawn(void (*fn)(void *arg), void *arg);

/* Call fn(object, number) at that time, on whatever thread runs then. */
typedef void pirn__sim_event_fn(void *object, uint64_t number);
void pirn__sim_at(uint64_t ns, pirn__sim_event_fn *fn, void *object,
                  uint64_t number);

/* A time that a wait for `ns` may end at. */
uint64_t pirn__sim_latest(uint64_t ns);

/* sim_options.c */

/* False if one is out of its range. */
bool pirn__sim_options_are_right(const pirn_sim_options *options);
/* What the environment says of a name, which may also be one of the program:
 * 0 nothing, PIRN_SIM_NONE none. */
uint32_t pirn__sim_told(const char *name);
/* Draw the ones that are 0, after the environment; none becomes 0. */
void pirn__sim_options_draw(pirn_sim_options *options);
void pirn__sim_options_print(const pirn_sim_options *options, char *buf,
                             size_t size);
/* A name for people. */
const char *pirn__sim_finding_name(enum pirn_sim_finding finding);

/* sim_search.c: as pirn_sim_search(), without a look at PIRN_SIM_SEED; `quiet`:
 * the child has no standard error. */
int pirn__sim_search(const pirn_sim_case *scenario, uint64_t first,
                     uint64_t count, bool quiet, pirn_sim_result *result);

/* sim_sys.c: the table. */
void pirn__sim_sys_install(void);
void pirn__sim_sys_remove(void);

/* Descriptors. */

enum pirn__sim_kind {
    PIRN__SIM_CLOSED,
    PIRN__SIM_EVENT,
    PIRN__SIM_TIMER,
    PIRN__SIM_SET,
    PIRN__SIM_SOCKET, /* fresh, connecting or connected */
    PIRN__SIM_LISTENER,
};

struct pirn__sim_entry {
    int fd;
    uint32_t events;
    void *data;
    bool ready;
};

struct pirn__sim_end;

struct pirn__sim_file {
    enum pirn__sim_kind kind;
    bool blocking;
    uint64_t count;      /* of an eventfd or a timer */
    uint64_t generation; /* of a timer's arming, or of this use of the number */
    struct pirn__sim_entry *entries; /* of a set */
    size_t entry_count, entry_room;
    struct pirn__sim_end *end;  /* of a socket */
    uint16_t port;              /* that it is bound to, or 0 */
    struct pirn__sim_end **queue; /* of a listener: who waits to be accepted */
    size_t queue_len, queue_room;
    int backlog;
};

/* NULL, and a finding, for one that is not open. */
struct pirn__sim_file *pirn__sim_file_of(int fd);
int pirn__sim_file_open(enum pirn__sim_kind kind);
int pirn__sim_file_fd(const struct pirn__sim_file *file);
/* NULL: the first. */
struct pirn__sim_file *pirn__sim_file_next(struct pirn__sim_file *after);
/* How many more may be opened from now on; UINT32_MAX: no limit. */
void pirn__sim_files_limit(uint32_t more);
/* There is news of this descriptor. */
void pirn__sim_file_signal(int fd);

/* sim_net.c and sim_link.c: sockets; what a file of theirs would poll. */
uint32_t pirn__sim_net_mask(const struct pirn__sim_file *file);
void pirn__sim_net_close(struct pirn__sim_file *file);
void pirn__sim_net_begin(void);
void pirn__sim_net_end(void);
void pirn__sim_net_weather(void);
void pirn__sim_net_fill(struct pirn__sys *table);
ssize_t pirn__sim_net_recv(int fd, void *buf, size_t len);
ssize_t pirn__sim_net_send(int fd, const void *buf, size_t len);

/* So many threads more are started without a refusal. */
void pirn__sim_spare_threads(uint32_t count);

/* sim_runtime.c: see to it that the runtimes of the program are seen. */
void pirn__sim_runtimes_begin(void);
void pirn__sim_runtimes_end(void);

/* sim_watch.c */
void pirn__sim_watches_end(void);

/* sim_check.c: facts for the checkers. */
void pirn__sim_see(enum pirn_sim_fact fact, uint64_t number);
/* Ask them when all is over. */
void pirn__sim_checkers_ask(void);
/* Who checks now: a checker of the user, or NULL. */
const char *pirn__sim_speaker(void);

#endif /* PIRN_TESTING_SIM_H */
