/* SPDX-License-Identifier: MIT */
/* tests/engine/world.h - the world in which the stories of tests/conformance
 * are told.
 *
 * There are two, and a program is linked with one of them:
 *
 *   world_real.c  threads and sockets of the system, time that passes; each
 *                 story is told in every way
 *   world_sim.c   the simulated world; each of many seeds chooses a way, and
 *                 the kind of runtime
 *
 * A story says the same in both.  So it starts no thread, opens no socket and
 * makes no runtime but through these functions, and where it spins it says
 * world_yield().
 */
#ifndef PIRN_TESTS_ENGINE_WORLD_H
#define PIRN_TESTS_ENGINE_WORLD_H

#include <pthread.h>

#include <pirn/pirn.h>

#include "engine/test.h"

/* Tell a story in a way, of which there are some. */
typedef void world_tell_fn(void *arg, size_t way);

/* Call tell(arg, way) for the ways below `count`, on behalf of the test of that
 * name. */
void world_tell(const char *test, size_t count, world_tell_fn *tell,
                void *arg);

/* How many of something are enough. */
size_t world_size(size_t real, size_t simulated);

/* Runtimes.  In the simulated world the seed says which kind it is. */

int world_run(const pirn_runtime_options *options, pirn_fiber_fn *fn,
              void *arg);
/* One at a time. */
pirn_runtime *world_runtime_new(const pirn_runtime_options *options);
void world_runtime_end(pirn_runtime *rt);

/* Let others run; sure to do so, or perhaps. */
void world_yield(void);
void world_pause(void);

/* From now on the simulator sees each poll and each waker of this future. */
void world_watch(pirn_future *future);

/* Threads that know nothing of the library. */

struct world_thread {
    void (*fn)(void *arg);
    void *arg;
    pthread_t thread; /* the real one */
    uint32_t ended;   /* the simulated one; a futex */
};

void world_thread_start(struct world_thread *thread, void (*fn)(void *arg),
                        void *arg);
void world_thread_join(struct world_thread *thread);

/* The other ends of connections; each call blocks, and failures are those of
 * the test. */

int world_listen(void);
uint16_t world_port(int fd);
int world_connect(uint16_t port);
int world_accept(int listener);
/* Two ends of one connection; what is written to [1] can be read from [0]. */
void world_pair(int fds[2]);
void world_pipe(int fds[2]);

void world_send(int fd, const void *data, size_t len);
/* At least one byte, or 0 at the end. */
size_t world_recv(int fd, void *buf, size_t len);
void world_end_writing(int fd);
void world_close(int fd);
/* So that the other end sees a reset; there has to be something to read. */
void world_reset(int fd);

#endif /* PIRN_TESTS_ENGINE_WORLD_H */
