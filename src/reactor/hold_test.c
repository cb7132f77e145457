/* SPDX-License-Identifier: MIT */
/* src/reactor/hold_test.c - holds without a runtime; with one, and on its clock,
 * they are tested in src/net/listener_test.c.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "engine/reactor_fixture.h"
#include "reactor/hold.h"

/* Something that can be held: the reading end of a pipe that is readable. */
struct held {
    struct pirn__io io; /* first */
    struct pirn__hold hold;
};

static struct held *held_of(struct pirn__io *io)
{
    return PIRN_CONTAINER_OF(io, struct held, io);
}

static void held_sealed(struct pirn__io *io)
{
    pirn__hold_end(&held_of(io)->hold);
}

static void held_name(struct pirn__io *io, pirn_text *out)
{
    pirn_text_append(out, "held %d", io->fd);
}

static const struct pirn__io_ops held_ops = {
    .sealed = held_sealed,
    .name = held_name,
};

static struct held *held_open(int *writer)
{
    const struct pirn__io_kind kind = {PIRN__FD_PIPE, PIRN__READY_READ, false,
                                       &held_ops};
    struct pirn__io *io = pirn__io_take(sizeof(struct held));
    int fds[2];

    open_pipe(fds);
    put_byte(fds[1]);
    *writer = fds[1];
    pirn__hold_init(&held_of(io)->hold, io);
    pirn__io_open(io, fds[0], &kind);
    return held_of(io);
}

static bool may_read(const struct held *held)
{
    return pirn__readiness_has(pirn__readiness_get(&held->io.readiness),
                               PIRN_READABLE);
}

/* Goal: an untimed hold says when it must end, each one twice as far away, and
 * success starts over.
 * Method: begin and end by hand; a second begin during one changes nothing. */
TEST(hold_untimed_doubles_until_success)
{
    const uint64_t ms = 1000 * 1000;
    int writer;
    struct held *held = held_open(&writer);
    struct pirn__hold *hold = &held->hold;

    EXPECT_EQ(PIRN_NEVER.ns, pirn__hold_until(hold).ns);
    for (uint64_t pause = 5; pause <= 20; pause *= 2) {
        uint64_t before = pirn__sys->clock_ns();
        uint64_t until;

        pirn__hold_begin_untimed(hold);
        until = pirn__hold_until(hold).ns;
        EXPECT(!may_read(held));
        EXPECT_GE(until, before + pause * ms);
        pirn__hold_begin_untimed(hold);
        EXPECT_EQ(until, pirn__hold_until(hold).ns);
        pirn__hold_end(hold);
        EXPECT(may_read(held));
        EXPECT_EQ(PIRN_NEVER.ns, pirn__hold_until(hold).ns);
    }
    EXPECT_EQ(3u, pirn__hold_count(hold));
    pirn__hold_succeeded(hold);
    pirn__hold_begin_untimed(hold);
    EXPECT_LE(pirn__hold_until(hold).ns, pirn__sys->clock_ns() + 5 * ms);
    pirn__hold_end(hold);
    pirn__io_close(&held->io);
    close(writer);
}

/* Goal: where nobody keeps the time a timed hold does not begin.
 * Method: no home in the context, and unbound. */
TEST(hold_without_a_runtime_is_refused)
{
    const pirn_waker nobody = {0};
    pirn_cx cx = pirn_cx_of_waker(&nobody);
    int writer;
    struct held *held = held_open(&writer);

    EXPECT(!pirn__hold_begin(&held->hold, &cx));
    EXPECT(may_read(held));
    EXPECT_EQ(0u, pirn__hold_count(&held->hold));
    pirn__io_close(&held->io);
    close(writer);
}

/* Goal: every hold ends when a descriptor is closed, and the waiters of each
 * look again; writing never rests.
 * Method: two held pipes with a waiter each; close a third descriptor. */

struct wait_op {
    pirn_future future;
    pirn_io_waiter waiter;
    struct poller poller;
    int rc;
};

static enum pirn_poll wait_poll(pirn_future *self, pirn_cx *cx)
{
    struct wait_op *op = PIRN_CONTAINER_OF(self, struct wait_op, future);

    return pirn__waiter_poll_ready(&op->waiter, cx, &op->rc);
}

static const pirn_future_ops wait_ops = {.poll = wait_poll};

static void wait_init(struct wait_op *op, struct held *held)
{
    *op = (struct wait_op){.future = {&wait_ops}};
    op->poller.future = &op->future;
    pirn__waiter_init(&op->waiter, &held->io, PIRN_READABLE);
}

TEST(hold_ends_with_any_closed_descriptor)
{
    struct reactor_fixture fixture;
    struct held *held[2];
    struct wait_op ops[2];
    int writers[2];

    fixture_open(&fixture);
    for (int i = 0; i < 2; i++) {
        held[i] = held_open(&writers[i]);
        pirn__hold_begin_untimed(&held[i]->hold);
        wait_init(&ops[i], held[i]);
        EXPECT_EQ(PIRN_PENDING, poller_poll(&ops[i].poller));
    }
    /* The events of the registrations do not end a hold. */
    EXPECT_EQ(2, fixture_turn(&fixture));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&ops[0].poller));
    EXPECT_EQ(0, poller_wakes(&ops[0].poller));
    pirn__io_close_fd(dup(writers[0]));
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(1, poller_wakes(&ops[i].poller));
        EXPECT_EQ(PIRN_READY, poller_poll(&ops[i].poller));
        EXPECT_EQ(0, ops[i].rc);
        pirn__waiter_leave(&ops[i].waiter);
        pirn__io_close(&held[i]->io);
        close(writers[i]);
    }
    fixture_close(&fixture);
}

/* Goal: closing what is held ends the hold, and none begins afterwards.
 * Method: a second handle; the list of holds must not keep it. */
TEST(hold_ends_with_its_own_descriptor)
{
    int writer;
    struct held *held = held_open(&writer);

    pirn__io_ref(&held->io);
    pirn__hold_begin_untimed(&held->hold);
    pirn__io_close(&held->io);
    EXPECT_EQ(PIRN_NEVER.ns, pirn__hold_until(&held->hold).ns);
    pirn__hold_begin_untimed(&held->hold);
    EXPECT_EQ(1u, pirn__hold_count(&held->hold));
    pirn__io_unref(&held->io);
    pirn__hold_end_all();
    close(writer);
}

static int closes_and_leaves_holds_alone(struct held *held, int writer)
{
    pirn__io_close_fd(dup(writer));
    return may_read(held);
}

/* Goal: a child that closes a descriptor of its own ends no hold of its parent,
 * whose locks it must not touch.
 * Method: fork with a hold; the exit status says whether it ended there. */
TEST(hold_of_the_parent_is_left_alone)
{
    int status = -1;
    int writer;
    struct held *held = held_open(&writer);
    pid_t child;

    pirn__hold_begin_untimed(&held->hold);
    child = fork();
    if (child == 0)
        _exit(closes_and_leaves_holds_alone(held, writer));
    EXPECT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
    pirn__io_close_fd(dup(writer));
    EXPECT(may_read(held));
    pirn__io_close(&held->io);
    close(writer);
}
