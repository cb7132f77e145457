/* SPDX-License-Identifier: MIT */
/* tests/regress/fiber_moves.c - a fiber that goes on on another thread finds that
 * thread's state, not the one that it has left.
 *
 * tests/cross/tls_addresses runs this once more in builds that optimise across
 * all files, where a compiler may keep the address of a thread-local.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pirn/io.h>

#include <unistd.h>

#include "engine/pool_fixture.h"

enum { WORKERS = 4, FIBERS = 64, TURNS = 200, MOVES_WANTED = 20 };

struct travel {
    pirn_runtime *rt;
    tally moves;
    tally wrong;
    tally ended;
};

/* What is read through the thread: the task, its runtime, the result of a system
 * call that fails. */
static bool all_is_right(const struct travel *travel, pirn_task_id self)
{
    pirn_fd *fd = NULL;

    return pirn_runtime_current() == travel->rt &&
           pirn_task_self().value == self.value &&
           pirn_fd_adopt(-1, &fd) < 0 && pirn_fd_adopt(1 << 20, &fd) == -EBADF;
}

static int go_about(void *arg)
{
    struct travel *travel = arg;
    pirn_task_id self = pirn_task_self();

    for (int i = 0; i < TURNS; i++) {
        pid_t before = gettid();

        if (pirn_yield() < 0 || !all_is_right(travel, self))
            tally_up(&travel->wrong);
        if (gettid() != before)
            tally_up(&travel->moves);
    }
    tally_up(&travel->ended);
    return 0;
}

/* Goal: what a fiber asks of its thread is right after each move.
 * Method: fibers on several workers that yield to each other; rounds until some
 * of them were stolen in between. */
TEST(fiber_moves_and_finds_the_new_thread)
{
    struct travel travel = {0};
    uint64_t sent = 0;

    NEEDS_STEALING();
    travel.rt = pool_new(WORKERS);
    while (tally_of(&travel.moves) < MOVES_WANTED) {
        for (int i = 0; i < FIBERS; i++)
            pirn_task_unref(go_task(travel.rt, go_about, &travel));
        sent += FIBERS;
        wait_for_tally(&travel.ended, sent);
    }
    EXPECT_EQ(0, tally_of(&travel.wrong));
    runtime_end(travel.rt);
}
