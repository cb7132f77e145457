/* SPDX-License-Identifier: MIT */
/* tests/engine/sweep.h - fail everything that can fail, one call at a time.
 *
 * A scenario uses the library the way a program does.  A sweep runs it again
 * and again: the first request for memory is refused, then the second, until
 * the scenario makes none that could be; then the same with threads, mappings,
 * descriptors, the wait set, connections and transfers, each with the answers
 * that the system may give.
 *
 *     static void connect_and_close(void)
 *     {
 *         pirn_tcp *conn = SWEEP_JUNK;
 *         int rc = SWEPT(pirn_tcp_connect(address, NULL, PIRN_NEVER, &conn));
 *
 *         EXPECT(rc == 0 || conn == NULL);
 *         pirn_tcp_close(conn);
 *     }
 *
 *     TEST(sweep_connect)
 *     {
 *         SWEEP(connect_and_close, SWEEP_MEMORY | SWEEP_SOCKETS);
 *     }
 *
 * After each round the sweep checks
 *   - that every result which SWEPT has seen is one that the header documents,
 *     and no failure at all where the library has to bear the fault silently
 *     (a short transfer, a signal, a wait that ends for no reason);
 *   - that nothing is left: memory, descriptors, threads, mappings;
 *   - that the same scenario works right afterwards.
 * That arguments are unchanged is for the scenario to check.
 *
 * A scenario runs on a thread of its own, whose record and parker are therefore
 * part of it.  It fails by EXPECT.  Its own system calls and requests for memory
 * count as if they were the library's, unless it is between sweep_hold() and
 * sweep_go_on().
 *
 *     PIRN_SWEEP_VERBOSE=1   say what each round fails, and after each sweep which
 *                            codes were seen so far, and which never
 */
#ifndef PIRN_TESTS_ENGINE_SWEEP_H
#define PIRN_TESTS_ENGINE_SWEEP_H

#include <pirn/alloc.h>

#include "engine/test.h"

/* What to fail; see the table in sweep.c. */
enum {
    SWEEP_MEMORY = 1 << 0,
    SWEEP_THREADS = 1 << 1,
    SWEEP_MAPPINGS = 1 << 2,
    SWEEP_DESCRIPTORS = 1 << 3, /* eventfd, timerfd, epoll */
    SWEEP_WAIT_SET = 1 << 4,    /* epoll_ctl */
    SWEEP_SOCKETS = 1 << 5,     /* socket, bind, listen, connect */
    SWEEP_ACCEPTS = 1 << 6,
    SWEEP_TRANSFERS = 1 << 7,   /* short ones, EAGAIN */
    SWEEP_WAITS = 1 << 8,       /* that end for no reason */
    SWEEP_INTERRUPTS = 1 << 9,  /* EINTR from the C library */
    SWEEP_EVERYTHING = (1 << 10) - 1,
    /* Not everywhere. */
    SWEEP_NETWORK = 1 << 10, /* connections that break */
    SWEEP_DEVICES = 1 << 11, /* EIO */
};

typedef void sweep_scenario_fn(void);

struct sweep_result {
    size_t points;     /* rounds in which something was failed */
    char problem[512]; /* the first one that was found, or "" */
};

/* Run a scenario with each fault of the groups; what it finds is a failure of
 * the test, and the number of points is printed. */
#define SWEEP(scenario, groups) \
    sweep__check(__FILE__, __LINE__, #scenario, sweep_run(scenario, groups))

/* The result of a call of the library, seen by the sweep. */
#define SWEPT(...) \
    ((__typeof__(__VA_ARGS__))sweep_saw(#__VA_ARGS__, (__VA_ARGS__)))

/* A pointer that nobody may leave behind. */
#define SWEEP_JUNK ((void *)sweep_junk)
extern char sweep_junk[];

struct sweep_result sweep_run(sweep_scenario_fn *scenario, unsigned groups);

/* `call` begins with the name of the function; returns `rc`. */
intptr_t sweep_saw(const char *call, intptr_t rc);

/* Nothing fails in between. */
void sweep_hold(void);
void sweep_go_on(void);

/* The allocator to make runtimes with: it counts, it can fail, and it checks
 * that size and alignment come back as they were asked for. */
const pirn_alloc *sweep_alloc(void);

void sweep__check(const char *file, int line, const char *scenario,
                  struct sweep_result result);

#endif /* PIRN_TESTS_ENGINE_SWEEP_H */
