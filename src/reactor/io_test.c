/* SPDX-License-Identifier: MIT */
/* src/reactor/io_test.c - lines of waiters, binding, and what a system call
 * does to the readiness.  Futures are polled by hand and the reactor is turned
 * by hand: no runtime, no second thread.
 */
#include <sys/epoll.h>

#include "engine/lock_watch.h"
#include "engine/reactor_fixture.h"
#include "reactor/io.h"

/* A descriptor under test: a pirn__io and nothing else. */

static void test_name(struct pirn__io *io, pirn_text *out)
{
    pirn_text_append(out, "test %d", io->fd);
}

static const struct pirn__io_ops test_ops = {.name = test_name};

static struct pirn__io *open_io(int fd, int kind, unsigned ready)
{
    const struct pirn__io_kind what = {kind, ready, false, &test_ops};
    struct pirn__io *io = pirn__io_take(sizeof(struct pirn__io));

    pirn__io_open(io, fd, &what);
    return io;
}

/* As the reactor hands one event over. */
static void take_event(struct pirn__io *io, uint32_t events)
{
    pirn_waker wakers[2];
    int count = pirn__io_take_event(io, events, wakers);

    for (int i = 0; i < count; i++)
        pirn_waker_wake(wakers[i]);
}

/* An operation that reads up to `wanted` bytes. */
struct read_op {
    pirn_future future;
    pirn_io_waiter waiter;
    size_t wanted;
    char buf[16];
    ssize_t n;
    struct poller poller;
};

static int reads; /* system calls */

static ssize_t call_read(int fd, void *arg)
{
    struct read_op *op = arg;
    ssize_t n = read(fd, op->buf, op->wanted);

    reads++;
    return n < 0 ? -errno : n;
}

static enum pirn_poll read_poll(pirn_future *self, pirn_cx *cx)
{
    struct read_op *op = PIRN_CONTAINER_OF(self, struct read_op, future);
    const struct pirn__io_call call = {call_read, op, op->wanted};

    if (pirn__waiter_poll_call(&op->waiter, cx, &call, &op->n) == PIRN_PENDING)
        return PIRN_PENDING;
    pirn__waiter_leave(&op->waiter);
    return PIRN_READY;
}

static void read_drop(pirn_future *self)
{
    struct read_op *op = PIRN_CONTAINER_OF(self, struct read_op, future);

    pirn__waiter_leave(&op->waiter);
}

static const pirn_future_ops read_ops = {.poll = read_poll, .drop = read_drop};

static void read_init(struct read_op *op, struct pirn__io *io, size_t wanted)
{
    *op = (struct read_op){.future = {&read_ops}, .wanted = wanted};
    op->poller.future = &op->future;
    pirn__waiter_init(&op->waiter, io, PIRN_READABLE);
}

static enum pirn_poll read_step(struct read_op *op)
{
    return poller_poll(&op->poller);
}

/* A fixture with a pipe, whose reading end is bound, and three readers that
 * wait for it in order. */
struct line {
    struct reactor_fixture fixture;
    struct pirn__io *io;
    int writer;
    struct read_op ops[3];
};

static void line_open(struct line *line)
{
    int fds[2];

    fixture_open(&line->fixture);
    open_pipe(fds);
    line->writer = fds[1];
    line->io = open_io(fds[0], PIRN__FD_PIPE, PIRN__READY_READ);
    for (int i = 0; i < 3; i++) {
        read_init(&line->ops[i], line->io, 1);
        EXPECT_EQ(PIRN_PENDING, read_step(&line->ops[i]));
        EXPECT_EQ(0, poller_wakes(&line->ops[i].poller));
    }
    reads = 0;
}

static void line_close(struct line *line)
{
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(0, poller_clones(&line->ops[i].poller));
    pirn__io_close(line->io);
    close(line->writer);
    fixture_close(&line->fixture);
}

static void expect_wakes(const struct line *line, int a, int b, int c)
{
    EXPECT_EQ(a, poller_wakes(&line->ops[0].poller));
    EXPECT_EQ(b, poller_wakes(&line->ops[1].poller));
    EXPECT_EQ(c, poller_wakes(&line->ops[2].poller));
}

/* Goal: an event wakes the first of the line, who passes it on exactly if
 * something is left.
 * Method: two bytes for three readers of one byte each. */
TEST(io_event_wakes_first_who_passes_on_what_remains)
{
    struct line line;

    line_open(&line);
    put_byte(line.writer);
    put_byte(line.writer);
    EXPECT_EQ(1, fixture_turn(&line.fixture));
    expect_wakes(&line, 1, 0, 0);

    EXPECT_EQ(PIRN_READY, read_step(&line.ops[0]));
    EXPECT_EQ(1, line.ops[0].n);
    expect_wakes(&line, 1, 1, 0);
    EXPECT_EQ(PIRN_READY, read_step(&line.ops[1]));
    /* A full read says nothing of the next one, so the third has to look. */
    expect_wakes(&line, 1, 1, 1);
    EXPECT_EQ(PIRN_PENDING, read_step(&line.ops[2]));
    EXPECT_EQ(3, reads);

    put_byte(line.writer);
    EXPECT_EQ(1, fixture_turn(&line.fixture));
    expect_wakes(&line, 1, 1, 2);
    EXPECT_EQ(PIRN_READY, read_step(&line.ops[2]));
    line_close(&line);
}

/* Goal: a waiter that was woken and then gives up does not swallow the event.
 * Method: drop the first after its wake. */
TEST(io_woken_waiter_dropped_passes_event_on)
{
    struct line line;

    line_open(&line);
    put_byte(line.writer);
    EXPECT_EQ(1, fixture_turn(&line.fixture));
    pirn_future_drop(&line.ops[0].future);
    expect_wakes(&line, 1, 1, 0);
    EXPECT_EQ(PIRN_READY, read_step(&line.ops[1]));
    EXPECT_EQ(1, line.ops[1].n);
    pirn_future_drop(&line.ops[2].future);
    line_close(&line);
}

/* Goal: a waiter that gives up in the middle of the line leaves no trace.
 * Method: drop the second, serve the others. */
TEST(io_queued_waiter_dropped_leaves_line_intact)
{
    struct line line;

    line_open(&line);
    pirn_future_drop(&line.ops[1].future);
    put_byte(line.writer);
    put_byte(line.writer);
    EXPECT_EQ(1, fixture_turn(&line.fixture));
    EXPECT_EQ(PIRN_READY, read_step(&line.ops[0]));
    expect_wakes(&line, 1, 0, 1);
    EXPECT_EQ(PIRN_READY, read_step(&line.ops[2]));
    line_close(&line);
}

/* Goal: nobody overtakes: neither a newcomer nor one who polls for no reason.
 * Method: after the wake of the first, the second and a new one poll. */
TEST(io_newcomer_and_idle_poll_do_not_overtake)
{
    struct line line;
    struct read_op late;
    const struct pirn__io_call call = {call_read, &late, 1};

    line_open(&line);
    read_init(&late, line.io, 1);
    put_byte(line.writer);
    EXPECT_EQ(1, fixture_turn(&line.fixture));
    EXPECT_EQ(PIRN_PENDING, read_step(&line.ops[1]));
    EXPECT_EQ(-EAGAIN, pirn__io_try(line.io, PIRN_READABLE, &call));
    EXPECT_EQ(PIRN_PENDING, read_step(&late));
    EXPECT_EQ(0, reads);
    EXPECT_EQ(PIRN_READY, read_step(&line.ops[0]));
    EXPECT_EQ(1, reads);
    pirn_future_drop(&line.ops[1].future);
    pirn_future_drop(&line.ops[2].future);
    pirn_future_drop(&late.future);
    EXPECT_EQ(0, poller_clones(&late.poller));
    line_close(&line);
}

/* Goal: who was woken for nothing is still the first.
 * Method: the byte is stolen between the wake and the poll; the next byte goes
 * to the same waiter. */
TEST(io_woken_for_nothing_keeps_its_place)
{
    struct line line;
    char byte;

    line_open(&line);
    put_byte(line.writer);
    EXPECT_EQ(1, fixture_turn(&line.fixture));
    EXPECT_EQ(1, read(line.io->fd, &byte, 1));
    EXPECT_EQ(PIRN_PENDING, read_step(&line.ops[0]));
    expect_wakes(&line, 1, 0, 0);
    put_byte(line.writer);
    EXPECT_EQ(1, fixture_turn(&line.fixture));
    expect_wakes(&line, 2, 0, 0);
    EXPECT_EQ(PIRN_READY, read_step(&line.ops[0]));
    pirn_future_drop(&line.ops[1].future);
    pirn_future_drop(&line.ops[2].future);
    line_close(&line);
}

/* Goal: a poll with another waker replaces the first one.
 * Method: poll twice from two pollers; only the second is woken. */
TEST(io_poll_again_renews_waker)
{
    struct line line;
    struct poller other = {.future = &line.ops[0].future};

    line_open(&line);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&other));
    EXPECT_EQ(0, poller_clones(&line.ops[0].poller));
    put_byte(line.writer);
    EXPECT_EQ(1, fixture_turn(&line.fixture));
    EXPECT_EQ(1, poller_wakes(&other));
    EXPECT_EQ(0, poller_wakes(&line.ops[0].poller));
    for (int i = 0; i < 3; i++)
        pirn_future_drop(&line.ops[i].future);
    EXPECT_EQ(0, poller_clones(&other));
    line_close(&line);
}

static enum pirn_poll poll_watched(pirn_future *future,
                                   struct lock_watch *watch)
{
    pirn_waker waker = lock_watch_waker(watch);
    pirn_cx cx = pirn_cx_of_waker(&waker);

    return pirn_future_poll(future, &cx);
}

/* Goal: no foreign waker is called under the lock of a descriptor, and it is
 * cloned only if it differs.
 * Method: one that looks at the lock waits, again, instead of another, is woken
 * and dropped. */
TEST(io_calls_no_foreign_waker_under_its_lock)
{
    struct line line;
    struct lock_watch watch = {0}, other = {0};

    line_open(&line);
    watch.locks[0] = &line.io->lock;
    other.locks[0] = &line.io->lock;
    EXPECT_EQ(PIRN_PENDING, poll_watched(&line.ops[0].future, &watch));
    EXPECT_EQ(PIRN_PENDING, poll_watched(&line.ops[0].future, &watch));
    EXPECT_EQ(1, watch.clones);
    EXPECT_EQ(PIRN_PENDING, poll_watched(&line.ops[0].future, &other));
    EXPECT_EQ(0, watch.wakers);
    put_byte(line.writer);
    EXPECT_EQ(1, fixture_turn(&line.fixture));
    EXPECT_EQ(1, other.wakes);
    EXPECT_EQ(PIRN_READY, poll_watched(&line.ops[0].future, &other));
    EXPECT_EQ(PIRN_PENDING, poll_watched(&line.ops[1].future, &watch));
    for (int i = 1; i < 3; i++)
        pirn_future_drop(&line.ops[i].future);
    EXPECT_EQ(0, watch.found + other.found);
    EXPECT_EQ(0, watch.wakers + other.wakers);
    line_close(&line);
}

/* An allocator that looks, with each call, whether a lock of the reactor or of a
 * descriptor is held. */
struct nosy {
    struct reactor_fixture fixture;
    pirn_alloc alloc;
    const struct pirn__io *io;
    int calls;
    int under_lock;
};

static void nosy_look(struct nosy *nosy)
{
    nosy->calls++;
    /* relaxed: a lock that is held here was taken by this thread. */
    if (nosy->io != NULL && pirn__load(&nosy->io->lock.word_, relaxed) != 0)
        nosy->under_lock++;
}

static void *nosy_take(void *ctx, size_t size, size_t align)
{
    nosy_look(ctx);
    return pirn__alloc_malloc.take(NULL, size, align);
}

static void nosy_give(void *ctx, void *memory, size_t size, size_t align)
{
    nosy_look(ctx);
    pirn__alloc_malloc.give(NULL, memory, size, align);
}

/* Goal: the reactor makes room for more descriptors without a lock held in the
 * allocator.
 * Method: a few hundred that wait, one after the other, on a reactor with an
 * allocator that looks at the lock of the latest. */
TEST(io_reactor_grows_without_a_lock)
{
    enum { MANY = 300 };
    static struct pirn__io *ios[MANY];
    static struct read_op ops[MANY];
    static int writers[MANY];
    struct nosy nosy = {.alloc = {.take = nosy_take, .give = nosy_give}};
    struct reactor_fixture *fixture = &nosy.fixture;

    nosy.alloc.ctx = &nosy;
    fixture_open(fixture);
    pirn__reactor_shutdown(fixture->reactor);
    pirn__reactor_free(fixture->reactor);
    EXPECT_EQ(0, pirn__reactor_new(&nosy.alloc, &fixture->home,
                                   &fixture->reactor));
    fixture->home.reactor = fixture->reactor;
    nosy.calls = 0;
    for (int i = 0; i < MANY; i++) {
        int fds[2];

        open_pipe(fds);
        writers[i] = fds[1];
        ios[i] = open_io(fds[0], PIRN__FD_PIPE, PIRN__READY_READ);
        nosy.io = ios[i];
        read_init(&ops[i], ios[i], 1);
        EXPECT_EQ(PIRN_PENDING, read_step(&ops[i]));
    }
    nosy.io = NULL;
    EXPECT_GE(nosy.calls, 2);
    EXPECT_EQ(0, nosy.under_lock);
    put_byte(writers[MANY - 1]);
    EXPECT_EQ(1, fixture_turn(fixture));
    EXPECT_EQ(PIRN_READY, read_step(&ops[MANY - 1]));
    for (int i = 0; i < MANY; i++) {
        if (i < MANY - 1)
            pirn_future_drop(&ops[i].future);
        pirn__io_close(ios[i]);
        close(writers[i]);
    }
    fixture_close(fixture);
}

/* An event that comes while the system call is under way. */

struct late_event {
    struct pirn__io *io;
    int calls;
};

static ssize_t call_with_event_inside(int fd, void *arg)
{
    struct late_event *late = arg;

    (void)fd;
    if (late->calls++ == 0)
        take_event(late->io, EPOLLIN);
    return late->calls == 1 ? -EAGAIN : 7;
}

static enum pirn_poll no_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    (void)cx;
    return PIRN_PENDING;
}

static const pirn_future_ops no_ops = {.poll = no_poll};

/* Goal: "would block" does not erase an event that is newer than the answer.
 * Method: the call itself lets the event happen before it answers; the
 * operation must try again at once instead of waiting. */
TEST(io_event_during_call_is_not_erased)
{
    struct line line;
    struct late_event late = {0};
    struct pirn__io_call call = {call_with_event_inside, &late, 4};
    pirn_future unused = {&no_ops};
    struct poller poller = {.future = &unused};
    const pirn_waker waker = {&poller, &poller_waker_ops};
    pirn_cx cx = pirn_cx_of_waker(&waker);
    pirn_io_waiter waiter;
    ssize_t n;

    line_open(&line);
    for (int i = 0; i < 3; i++)
        pirn_future_drop(&line.ops[i].future);
    late.io = line.io;
    pirn__readiness_add(&line.io->readiness, PIRN__READY_READ);
    pirn__waiter_init(&waiter, line.io, PIRN_READABLE);
    EXPECT_EQ(PIRN_READY, pirn__waiter_poll_call(&waiter, &cx, &call, &n));
    EXPECT_EQ(7, n);
    EXPECT_EQ(2, late.calls);
    pirn__waiter_leave(&waiter);
    line_close(&line);
}

static ssize_t call_liar(int fd, void *arg)
{
    struct late_event *late = arg;

    (void)fd;
    late->calls++;
    take_event(late->io, EPOLLIN);
    return -EAGAIN;
}

/* Goal: a descriptor that says "ready" and "would block" without end does not
 * catch the thread in a loop.
 * Method: each call brings an event and fails; the poll ends PENDING with a
 * wake of its own after a few tries. */
TEST(io_contradicting_kernel_ends_poll_with_a_wake)
{
    struct line line;
    struct late_event late = {0};
    struct pirn__io_call call = {call_liar, &late, 4};
    pirn_future unused = {&no_ops};
    struct poller poller = {.future = &unused};
    const pirn_waker waker = {&poller, &poller_waker_ops};
    pirn_cx cx = pirn_cx_of_waker(&waker);
    pirn_io_waiter waiter;
    ssize_t n;

    line_open(&line);
    for (int i = 0; i < 3; i++)
        pirn_future_drop(&line.ops[i].future);
    late.io = line.io;
    pirn__readiness_add(&line.io->readiness, PIRN__READY_READ);
    pirn__waiter_init(&waiter, line.io, PIRN_READABLE);
    EXPECT_EQ(PIRN_PENDING, pirn__waiter_poll_call(&waiter, &cx, &call, &n));
    EXPECT_EQ(1, poller_wakes(&poller));
    EXPECT_LE(late.calls, 8);
    pirn__waiter_leave(&waiter);
    line_close(&line);
}

/* How many system calls it takes to see that a socket of `kind` is empty after
 * a read that was short. */
static int calls_after_short_read(int kind)
{
    struct reactor_fixture fixture;
    struct read_op op;
    struct pirn__io *io;
    int fds[2];

    fixture_open(&fixture);
    EXPECT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds));
    io = open_io(fds[0], kind, PIRN__READY_READ);
    put_byte(fds[1]);
    reads = 0;
    for (int i = 0; i < 2; i++) {
        read_init(&op, io, 8);
        EXPECT_EQ(i == 0 ? PIRN_READY : PIRN_PENDING, read_step(&op));
    }
    pirn_future_drop(&op.future);
    pirn__io_close(io);
    close(fds[1]);
    fixture_close(&fixture);
    return reads - 1;
}

/* Goal: a short read spares the next call where the kind promises it, and only
 * there.
 * Method: the same socket under both names. */
TEST(io_short_read_counts_as_would_block_for_trusted_kinds_only)
{
    EXPECT_EQ(0, calls_after_short_read(PIRN__FD_TCP));
    EXPECT_EQ(0, calls_after_short_read(PIRN__FD_PIPE));
    EXPECT_EQ(1, calls_after_short_read(PIRN__FD_STREAM_SOCKET));
    EXPECT_EQ(1, calls_after_short_read(PIRN__FD_OTHER));
}

/* Binding. */

/* Goal: a poll by hand on a descriptor that nobody watches says so instead of
 * waiting for ever.
 * Method: made without a current home. */
TEST(io_unbound_polled_by_hand_answers_enoruntime)
{
    struct read_op op;
    struct pirn__io *io;
    int fds[2];

    open_pipe(fds);
    io = open_io(fds[0], PIRN__FD_PIPE, PIRN__READY_READ);
    read_init(&op, io, 1);
    EXPECT_EQ(PIRN_READY, read_step(&op));
    EXPECT_EQ(PIRN_ENORUNTIME, op.n);
    put_byte(fds[1]);
    pirn__readiness_add(&io->readiness, PIRN__READY_READ);
    read_init(&op, io, 1);
    EXPECT_EQ(PIRN_READY, read_step(&op));
    EXPECT_EQ(1, op.n);
    pirn__io_close(io);
    close(fds[1]);
}

/* Goal: the first task that waits binds an unbound descriptor, and events come.
 * Method: poll under a turn of the fixture's home. */
TEST(io_unbound_binds_to_the_first_task_that_waits)
{
    struct reactor_fixture fixture;
    struct pirn__turn turn = {0};
    struct read_op op;
    struct pirn__io *io;
    const pirn_waker waker = {&op.poller, &poller_waker_ops};
    pirn_cx cx = {.waker = &waker, .turn_ = &turn};
    int fds[2];

    open_pipe(fds);
    io = open_io(fds[0], PIRN__FD_PIPE, PIRN__READY_READ);
    EXPECT_PTR_EQ(NULL, io->reactor);
    fixture_open(&fixture);
    turn.home = &fixture.home;
    turn.budget = 100;
    read_init(&op, io, 1);
    EXPECT_EQ(PIRN_PENDING, pirn_future_poll(&op.future, &cx));
    EXPECT_PTR_EQ(fixture.reactor, io->reactor);
    put_byte(fds[1]);
    EXPECT_EQ(1, fixture_turn(&fixture));
    EXPECT_EQ(1, poller_wakes(&op.poller));
    EXPECT_EQ(PIRN_READY, read_step(&op));
    EXPECT_EQ(1, op.n);
    pirn__io_close(io);
    close(fds[1]);
    fixture_close(&fixture);
}

/* Goal: a descriptor whose runtime ended answers PIRN_ESHUTDOWN to who waits,
 * and is unbound afterwards.
 * Method: shut the reactor down under two waiters; poll them; read by hand. */
TEST(io_reactor_shutdown_answers_waiters_and_unbinds)
{
    struct line line;
    struct read_op late;

    line_open(&line);
    pirn_future_drop(&line.ops[2].future);
    pirn__reactor_shutdown(line.fixture.reactor);
    expect_wakes(&line, 1, 1, 0);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(PIRN_READY, read_step(&line.ops[i]));
        EXPECT_EQ(PIRN_ESHUTDOWN, line.ops[i].n);
    }
    EXPECT_PTR_EQ(NULL, line.io->reactor);
    read_init(&late, line.io, 1);
    EXPECT_EQ(PIRN_READY, read_step(&late));
    EXPECT_EQ(PIRN_ENORUNTIME, late.n);
    line_close(&line);
}

/* Goal: a plain thread that waits on the descriptor itself is told to look
 * again when a reactor takes over.
 * Method: a poll as of a plain thread, then one of a task. */
TEST(io_binding_wakes_who_waited_alone)
{
    struct reactor_fixture fixture;
    struct pirn__turn alone = {.parker = pirn__parker_of(pirn__local())};
    struct pirn__turn bound = {.budget = 100};
    struct read_op ops[2];
    struct pirn__io *io;
    int fds[2];

    open_pipe(fds);
    io = open_io(fds[0], PIRN__FD_PIPE, PIRN__READY_READ);
    fixture_open(&fixture);
    bound.home = &fixture.home;
    for (int i = 0; i < 2; i++) {
        const pirn_waker waker = {&ops[i].poller, &poller_waker_ops};
        pirn_cx cx = {.waker = &waker, .turn_ = i == 0 ? &alone : &bound};

        read_init(&ops[i], io, 1);
        EXPECT_EQ(PIRN_PENDING, pirn_future_poll(&ops[i].future, &cx));
    }
    EXPECT_EQ(1, poller_wakes(&ops[0].poller));
    EXPECT_EQ(0, poller_wakes(&ops[1].poller));
    put_byte(fds[1]);
    put_byte(fds[1]);
    EXPECT_EQ(1, fixture_turn(&fixture));
    EXPECT_EQ(1, poller_wakes(&ops[1].poller));
    EXPECT_EQ(PIRN_PENDING, read_step(&ops[0]));
    EXPECT_EQ(PIRN_READY, read_step(&ops[1]));
    EXPECT_EQ(2, poller_wakes(&ops[0].poller));
    EXPECT_EQ(PIRN_READY, read_step(&ops[0]));
    pirn__io_close(io);
    close(fds[1]);
    fixture_close(&fixture);
}

/* Goal: each event of the kernel means what readiness.h says, and the peer's
 * end of stream is no more than readable.
 * Method: deliver each alone. */
TEST(io_events_map_to_readiness)
{
    const struct {
        uint32_t events;
        unsigned bits;
    } rows[] = {
        {EPOLLIN, PIRN__READY_READ},
        {EPOLLOUT, PIRN__READY_WRITE},
        {EPOLLRDHUP, PIRN__READY_READ | PIRN__READY_ENDED},
        {EPOLLPRI, PIRN__READY_READ | PIRN__READY_URGENT},
        {EPOLLHUP, PIRN__READY_READ | PIRN__READY_WRITE | PIRN__READY_HUNG_UP},
        {EPOLLERR, PIRN__READY_READ | PIRN__READY_WRITE | PIRN__READY_FAILED},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pirn__io *io;
        int fds[2];

        open_pipe(fds);
        io = open_io(fds[0], PIRN__FD_PIPE, 0);
        take_event(io, rows[i].events);
        EXPECT_EQ(PIRN__READY_TICK | rows[i].bits,
                  pirn__readiness_get(&io->readiness));
        pirn__io_close(io);
        close(fds[1]);
    }
}

/* Failing system calls. */

static int add_result;

static int failing_add(int epoll_fd, int fd, uint32_t events, void *data)
{
    (void)epoll_fd;
    (void)fd;
    (void)events;
    (void)data;
    return add_result;
}

/* What a read answers when the descriptor cannot be registered. */
static ssize_t read_with_add_result(int result)
{
    const struct pirn__sys *before = pirn__sys;
    struct pirn__sys table = *before;
    struct reactor_fixture fixture;
    struct read_op op;
    struct pirn__io *io;
    int fds[2];

    fixture_open(&fixture);
    open_pipe(fds);
    io = open_io(fds[0], PIRN__FD_PIPE, 0);
    read_init(&op, io, 1);
    table.epoll_add = failing_add;
    add_result = result;
    pirn__sys = &table;
    EXPECT_EQ(PIRN_READY, read_step(&op));
    pirn__sys = before;
    pirn__io_close(io);
    close(fds[1]);
    fixture_close(&fixture);
    return op.n;
}

/* Goal: the limits of the wait set reach the caller of the operation.
 * Method: epoll_ctl fails; EPERM means a device without readiness, which is
 * read at once and whose EAGAIN is final. */
TEST(io_failed_registration_is_the_result)
{
    EXPECT_EQ(-ENOSPC, read_with_add_result(-ENOSPC));
    EXPECT_EQ(-ENOMEM, read_with_add_result(-ENOMEM));
    EXPECT_EQ(-EAGAIN, read_with_add_result(-EPERM));
}

/* Goal: many waiters of one descriptor are all woken by its end.
 * Method: more than one batch of them; shut the reactor down. */
TEST(io_end_wakes_more_than_a_batch)
{
    enum { COUNT = 40 };
    struct line line;
    static struct read_op ops[COUNT];

    line_open(&line);
    for (int i = 0; i < 3; i++)
        pirn_future_drop(&line.ops[i].future);
    for (int i = 0; i < COUNT; i++) {
        read_init(&ops[i], line.io, 1);
        EXPECT_EQ(PIRN_PENDING, read_step(&ops[i]));
    }
    pirn__reactor_shutdown(line.fixture.reactor);
    for (int i = 0; i < COUNT; i++) {
        EXPECT_EQ(1, poller_wakes(&ops[i].poller));
        EXPECT_EQ(PIRN_READY, read_step(&ops[i]));
        EXPECT_EQ(0, poller_clones(&ops[i].poller));
    }
    line_close(&line);
}
