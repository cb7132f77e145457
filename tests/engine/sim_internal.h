/* SPDX-License-Identifier: MIT */
/* tests/engine/sim_internal.h - between the parts of the simulator.
 *
 *   sim.c        threads, time, the run
 *   sim_batch.c  options, batches of seeds, what is printed
 *   sim_sys.c    the table: clock, futexes, eventfds, timers, wait sets
 *   sim_net.c    sockets and what happens to them
 *   sim_check.c  the checkers
 *   sim_story.c  what stories use
 */
#ifndef PIRN_TESTS_ENGINE_SIM_INTERNAL_H
#define PIRN_TESTS_ENGINE_SIM_INTERNAL_H

#include "engine/sim.h"
#include "sys/sys.h"

struct epoll_event;

/* Scheduling. */

bool sim_active(void);

/* Wait until somebody wakes `address`; true at the time instead. */
bool sim_wait(const void *address, uint64_t until_ns);
/* Wake up to `count` of those who wait, in any order. */
void sim_wake(const void *address, int count);
/* False if there are too many. */
bool sim_spawn(void (*fn)(void *arg), void *arg);

/* Call fn(object, number) at that time, on whatever thread runs then. */
typedef void sim_event_fn(void *object, uint64_t number);
void sim_at(uint64_t ns, sim_event_fn *fn, void *object, uint64_t number);

/* A time that a wait for `ns` may end at. */
uint64_t sim_latest(uint64_t ns);

/* Give the run up. */
__attribute__((noreturn)) void sim_give_up(enum sim_finding finding,
                                           const char *text);

/* Bad things happen: with so many chances of a thousand, and only before it is
 * calm. */
bool sim_fault(uint32_t per_thousand);

/* True once in a run, at a random call, if this bug is planted. */
bool sim_planted(enum sim_plant plant, uint32_t one_of);

/* Options. */
struct sim_options sim_options_draw(const struct sim_options *wanted);
void sim_options_print(const struct sim_options *options, char *buf,
                       size_t size);

/* The table. */
void sim_sys_install(void);
void sim_sys_remove(void);
void sim_sys_reset(void);

/* Descriptors. */

enum sim_kind {
    SIM_CLOSED,
    SIM_EVENT,
    SIM_TIMER,
    SIM_SET,
    SIM_SOCKET, /* fresh, connecting or connected */
    SIM_LISTENER,
};

struct sim_entry {
    int fd;
    uint32_t events;
    void *data;
    bool ready;
};

struct sim_end;

struct sim_file {
    enum sim_kind kind;
    bool blocking;
    uint64_t count;      /* of an eventfd or a timer */
    uint64_t timer_ns;   /* UINT64_MAX: not armed */
    uint64_t generation; /* of its arming, or of this use of the number */
    struct sim_entry *entries; /* of a set */
    size_t entry_count, entry_room;
    struct sim_end *end;  /* of a socket */
    uint16_t port;        /* that it is bound to, or 0 */
    struct sim_end **queue; /* of a listener: who waits to be accepted */
    size_t queue_len, queue_room;
    int backlog;
};

/* NULL, and a finding, for one that is not open. */
struct sim_file *sim_file_of(int fd);
bool sim_is_ours(int fd);
int sim_file_open(enum sim_kind kind);
int sim_file_fd(const struct sim_file *file);
struct sim_file *sim_file_next(struct sim_file *after); /* NULL: the first */
/* How many more may be opened from now on; UINT32_MAX: no limit. */
void sim_files_limit(uint32_t more);
/* There is news of this descriptor. */
void sim_file_signal(int fd);

/* Sockets; what a file of theirs would poll. */
uint32_t sim_net_mask(const struct sim_file *file);
void sim_net_close(struct sim_file *file);
void sim_net_reset(void);
void sim_net_weather(void);
void sim_net_fill(struct pirn__sys *table);
ssize_t sim_net_recv(int fd, void *buf, size_t len);
ssize_t sim_net_send(int fd, const void *buf, size_t len);

/* Facts for the checkers. */

enum sim_fact_kind {
    SIM_FACT_TASK_SPAWNED, /* number: its id */
    SIM_FACT_TASK_ENDED,
    SIM_FACT_POLL_BEGUN, /* number: of the watch */
    SIM_FACT_POLL_ENDED,
    SIM_FACT_WOKEN,      /* number: of the watch, which has to be polled */
    SIM_FACT_FUTURE_GONE, /* number: of the watch: ready, or dropped */
    SIM_FACT_IDLE,       /* number: ns for which nobody had anything to do */
    SIM_FACT_WAKER_CLONED, /* number: of the watch */
    SIM_FACT_WAKER_GONE,
    SIM_FACT_TIME_CAME, /* number: the time that was asked for */
    SIM_FACT_FD_OPENED,
    SIM_FACT_FD_CLOSED,
    SIM_FACT_MEMORY_TAKEN, /* number: bytes */
    SIM_FACT_MEMORY_GIVEN,
    SIM_FACT_ABORTED, /* number: tasks that shutdown had to leave behind */
};

void sim_see(enum sim_fact_kind kind, uint64_t number);
void sim_checkers_reset(void);
void sim_checkers_end(void);

void sim_story_reset(void);

#endif /* PIRN_TESTS_ENGINE_SIM_INTERNAL_H */
