/* SPDX-License-Identifier: MIT */
/* tests/sweep/planted_faults.c - code that does not bear a fault, of each kind
 * that a sweep looks for: it must find every one.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <pirn/io.h>
#include <pirn/net.h>

#include "engine/sweep.h"
#include "sys/sys.h"

static void expect_found(sweep_scenario_fn *scenario, unsigned groups,
                         const char *words)
{
    struct sweep_result result = sweep_run(scenario, groups);

    EXPECT_GE(result.points, 1);
    if (strstr(result.problem, words) == NULL)
        EXPECT_STR_EQ(words, result.problem);
}

static pirn_buf *forgotten; /* a sanitizer need not find it, too */

/* Two pieces of memory; without the second the first is forgotten. */
static void forget_memory(void)
{
    pirn_buf *first, *second;

    if (SWEPT(pirn_buf_new(100, &first)) < 0)
        return;
    if (SWEPT(pirn_buf_new(100, &second)) < 0) {
        forgotten = first;
        return;
    }
    pirn_buf_unref(first);
    pirn_buf_unref(second);
}

/* Goal: a leak on a path of failure is found.
 * Method: the second request is refused. */
TEST(planted_leak_of_memory_is_found)
{
    expect_found(forget_memory, SWEEP_MEMORY,
                 "1 pieces of memory are left, after \"no memory\" at call");
    pirn_buf_unref(forgotten);
}

static void forget_descriptor(void)
{
    int fd = pirn__sys->eventfd();
    int other = fd < 0 ? fd : pirn__sys->eventfd();

    if (other < 0)
        return;
    pirn__sys->close(other);
    pirn__sys->close(fd);
}

/* Goal: the same for descriptors.
 * Method: the second eventfd is refused. */
TEST(planted_leak_of_a_descriptor_is_found)
{
    expect_found(forget_descriptor, SWEEP_DESCRIPTORS,
                 "1 descriptors are left, after \"eventfd: EMFILE\" at call 2");
}

static void forget_mapping(void)
{
    void *first, *second;
    size_t size = pirn__sys->page_size();

    if (pirn__sys->map(size, &first) < 0 || pirn__sys->map(size, &second) < 0)
        return;
    pirn__sys->unmap(first, size);
    pirn__sys->unmap(second, size);
}

/* Goal: the same for mappings.
 * Method: the second is refused. */
TEST(planted_leak_of_a_mapping_is_found)
{
    expect_found(forget_mapping, SWEEP_MAPPINGS,
                 "bytes of mappings are left, after \"no mapping\" at call 2");
}

static void undocumented(void)
{
    pirn_listener *listener = NULL;
    int rc = pirn_listener_open("127.0.0.1:0", NULL, &listener);

    /* As if that was what it answers. */
    if (SWEPT(pirn_addr_parse("127.0.0.1:0", &(pirn_addr){0})) == 0 && rc < 0)
        (void)sweep_saw("pirn_addr_parse(text)", -EMFILE);
    pirn_listener_close(listener);
}

/* Goal: a code that the header does not list is found.
 * Method: parsing an address is said to have run out of descriptors. */
TEST(planted_undocumented_code_is_found)
{
    expect_found(undocumented, SWEEP_SOCKETS,
                 "pirn_addr_parse answered EMFILE, which its header does not "
                 "list, after \"socket: EMFILE\" at call 1");
}

static int poisoned;

/* Once refused, for ever refused. */
static void remember_failure(void)
{
    pirn_buf *buf = NULL;
    int rc = poisoned ? -ENOMEM : pirn_buf_new(100, &buf);

    (void)sweep_saw("pirn_buf_new(100)", rc);
    poisoned |= rc < 0;
    pirn_buf_unref(buf);
}

/* Goal: what does not recover is found.
 * Method: a flag that stays. */
TEST(planted_failure_that_stays_is_found)
{
    poisoned = 0;
    expect_found(remember_failure, SWEEP_MEMORY,
                 "pirn_buf_new answered ENOMEM, and nothing was failed");
}

static int pipe_fds[2];

/* Believes that a read gives all there is. */
static void believe_in_whole_reads(void)
{
    char buf[4];

    EXPECT_EQ(4, pirn__sys_linux.write(pipe_fds[1], "four", 4));
    if (pirn__sys->read(pipe_fds[0], buf, 4) != 4) {
        (void)sweep_saw("pirn_fd_read(pipe)", -EIO);
        (void)pirn__sys_linux.read(pipe_fds[0], buf, 3);
    }
}

/* Goal: whoever takes a short transfer for a failure is found.
 * Method: one byte of four. */
TEST(planted_belief_in_whole_transfers_is_found)
{
    REQUIRE(pipe(pipe_fds) == 0);
    expect_found(believe_in_whole_reads, SWEEP_TRANSFERS,
                 "pirn_fd_read answered EIO, after \"receive: ");
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

/* Takes a signal for an error. */
static void believe_in_quiet(void)
{
    char byte = 1;

    if (write(pipe_fds[1], &byte, 1) != 1)
        (void)sweep_saw("pirn_fd_write(pipe)", -EIO);
    else
        (void)!read(pipe_fds[0], &byte, 1);
}

/* Goal: whoever does not try again after a signal is found.
 * Method: the C library says EINTR. */
TEST(planted_fear_of_signals_is_found)
{
    REQUIRE(pipe(pipe_fds) == 0);
    expect_found(believe_in_quiet, SWEEP_INTERRUPTS,
                 "pirn_fd_write answered EIO, after \"a signal\" at call 1");
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

static void give_wrong_size(void)
{
    const pirn_alloc *alloc = sweep_alloc();
    void *memory = alloc->take(alloc->ctx, 24, 8);

    if (memory != NULL)
        alloc->give(alloc->ctx, memory, 32, 8);
}

/* Goal: memory that is given back as another size is found.
 * Method: 32 instead of 24. */
TEST(planted_wrong_size_is_found)
{
    struct sweep_result result = sweep_run(give_wrong_size, SWEEP_MEMORY);

    EXPECT(strstr(result.problem, "give: not the size") != NULL);
}

/* Until the pipe is closed. */
static void *linger(void *arg)
{
    char byte;

    (void)!read(pipe_fds[0], &byte, 1);
    return arg;
}

static pthread_t lingering;

static void leave_thread(void)
{
    pirn_buf *buf;

    if (pirn_buf_new(10, &buf) == 0)
        pirn_buf_unref(buf);
    else
        EXPECT_EQ(0, pthread_create(&lingering, NULL, linger, NULL));
}

/* Goal: a thread that is left behind is found.
 * Method: one that waits for a byte; the sweep waits a while for it. */
TEST(planted_thread_is_found)
{
    REQUIRE(pipe(pipe_fds) == 0);
    expect_found(leave_thread, SWEEP_MEMORY,
                 "1 threads are left, after \"no memory\" at call");
    close(pipe_fds[1]);
    pthread_join(lingering, NULL);
    close(pipe_fds[0]);
}
