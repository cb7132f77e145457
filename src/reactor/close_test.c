/* SPDX-License-Identifier: MIT */
/* src/reactor/close_test.c - how descriptors end, step by step. */
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "engine/lock_watch.h"
#include "engine/reactor_fixture.h"
#include "reactor/io.h"

static void test_name(struct pirn__io *io, pirn_text *out)
{
    pirn_text_append(out, "test %d", io->fd);
}

static int sealed;

static void test_sealed(struct pirn__io *io)
{
    (void)io;
    sealed++;
}

static const struct pirn__io_ops test_ops = {
    .sealed = test_sealed,
    .name = test_name,
};

static struct pirn__io *open_io(int fd)
{
    const struct pirn__io_kind kind = {PIRN__FD_OTHER, 0, true, &test_ops};
    struct pirn__io *io = pirn__io_take(sizeof(struct pirn__io));

    sealed = 0;
    pirn__io_open(io, fd, &kind);
    return io;
}

/* A pipe whose reading end is watched by the fixture's reactor. */
struct watched {
    struct reactor_fixture fixture;
    struct pirn__io *io;
    int reader;
    int writer;
    pirn_future future;
    struct poller poller;
    pirn_io_waiter waiter;
    int rc;
};

static enum pirn_poll wait_poll(pirn_future *self, pirn_cx *cx)
{
    struct watched *watched = PIRN_CONTAINER_OF(self, struct watched, future);

    return pirn__waiter_poll_ready(&watched->waiter, cx, &watched->rc);
}

static const pirn_future_ops wait_ops = {.poll = wait_poll};

/* Under the fixture that is open. */
static void further_open(struct watched *watched)
{
    int fds[2];

    open_pipe(fds);
    watched->reader = fds[0];
    watched->writer = fds[1];
    watched->io = open_io(fds[0]);
    watched->future.ops = &wait_ops;
    watched->poller = (struct poller){.future = &watched->future};
    pirn__waiter_init(&watched->waiter, watched->io, PIRN_READABLE);
}

static void further_close(struct watched *watched)
{
    pirn__waiter_leave(&watched->waiter);
    pirn__io_close(watched->io);
    close(watched->writer);
}

static void watched_open(struct watched *watched)
{
    fixture_open(&watched->fixture);
    further_open(watched);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&watched->poller));
}

static void watched_close(struct watched *watched)
{
    EXPECT_EQ(0, poller_clones(&watched->poller));
    close(watched->writer);
    fixture_close(&watched->fixture);
}

/* Goal: close wakes the waiters, who answer PIRN_ECLOSED, and the descriptor is
 * gone.
 * Method: one waiter, with a handle of its own. */
TEST(close_wakes_waiters_with_eclosed)
{
    struct watched watched;

    watched_open(&watched);
    pirn__io_ref(watched.io);
    pirn__io_close(watched.io);
    EXPECT(!is_open(watched.reader));
    EXPECT_EQ(1, sealed);
    EXPECT_EQ(1, poller_wakes(&watched.poller));
    EXPECT_EQ(PIRN_READY, poller_poll(&watched.poller));
    EXPECT_EQ(PIRN_ECLOSED, watched.rc);
    pirn__waiter_leave(&watched.waiter);
    pirn__io_unref(watched.io);
    watched_close(&watched);
}

/* Goal: the last handle closes too.
 * Method: two handles, no close. */
TEST(close_by_the_last_handle)
{
    struct watched watched;

    watched_open(&watched);
    pirn__waiter_leave(&watched.waiter);
    pirn__io_ref(watched.io);
    pirn__io_unref(watched.io);
    EXPECT(is_open(watched.reader));
    pirn__io_unref(watched.io);
    EXPECT(!is_open(watched.reader));
    watched_close(&watched);
}

/* A system call during which the owner closes. */

static ssize_t call_close_inside(int fd, void *arg)
{
    struct watched *watched = arg;

    /* As another thread would, in a place that may not wait. */
    pirn__no_suspend_begin(pirn__local());
    pirn__io_close(watched->io);
    pirn__no_suspend_end(pirn__local());
    EXPECT(is_open(fd));
    EXPECT_EQ(1, sealed);
    return 3;
}

/* Goal: the descriptor stays until the last system call is out, which keeps its
 * result.
 * Method: close from inside a call. */
TEST(close_during_a_call_waits_for_its_end)
{
    struct watched watched;
    const struct pirn__io_call call = {call_close_inside, &watched, 0};

    watched_open(&watched);
    pirn__waiter_leave(&watched.waiter);
    pirn__io_ref(watched.io);
    EXPECT_EQ(3, pirn__io_call(watched.io, PIRN_READABLE, &call));
    EXPECT(!is_open(watched.reader));
    EXPECT_EQ(PIRN_ECLOSED, pirn__io_call(watched.io, PIRN_READABLE, &call));
    pirn__io_unref(watched.io);
    watched_close(&watched);
}

/* Goal: a close can be awaited, and giving the wait up does no harm.
 * Method: two close operations of one descriptor cannot be, so one operation is
 * polled inside a call, and another one dropped there. */
static pirn_close_op close_op;
static struct poller closer;

static ssize_t call_begin_close(int fd, void *arg)
{
    struct watched *watched = arg;

    (void)fd;
    pirn__io_close_init(&close_op, watched->io);
    closer = (struct poller){.future = &close_op.future};
    EXPECT_EQ(PIRN_PENDING, poller_poll(&closer));
    return 0;
}

TEST(close_awaited_is_ready_when_the_descriptor_is_gone)
{
    struct watched watched;
    const struct pirn__io_call call = {call_begin_close, &watched, 0};

    watched_open(&watched);
    pirn__waiter_leave(&watched.waiter);
    pirn__io_ref(watched.io);
    EXPECT_EQ(0, pirn__io_call(watched.io, PIRN_READABLE, &call));
    EXPECT(!is_open(watched.reader));
    EXPECT_EQ(1, poller_wakes(&closer));
    EXPECT_EQ(PIRN_READY, poller_poll(&closer));
    EXPECT_EQ(0, poller_clones(&closer));
    pirn__io_unref(watched.io);
    watched_close(&watched);
}

/* Goal: a close that is given up leaves nothing behind, and NULL is closed
 * already.
 * Method: drop inside the call. */
static ssize_t call_begin_and_drop_close(int fd, void *arg)
{
    ssize_t n = call_begin_close(fd, arg);

    pirn_future_drop(&close_op.future);
    return n;
}

TEST(close_awaited_and_dropped_leaves_nothing)
{
    struct watched watched;
    const struct pirn__io_call call = {call_begin_and_drop_close, &watched, 0};

    watched_open(&watched);
    pirn__waiter_leave(&watched.waiter);
    pirn__io_ref(watched.io);
    EXPECT_EQ(0, pirn__io_call(watched.io, PIRN_READABLE, &call));
    EXPECT_EQ(0, poller_wakes(&closer));
    EXPECT_EQ(0, poller_clones(&closer));
    pirn__io_unref(watched.io);
    watched_close(&watched);

    pirn__io_close_init(&close_op, NULL);
    closer = (struct poller){.future = &close_op.future};
    EXPECT_EQ(PIRN_READY, poller_poll(&closer));
}

static enum pirn_poll poll_watched(pirn_future *future,
                                   struct lock_watch *watch)
{
    pirn_waker waker = lock_watch_waker(watch);
    pirn_cx cx = pirn_cx_of_waker(&waker);

    return pirn_future_poll(future, &cx);
}

/* Goal: a close calls no foreign waker under the lock of the descriptor.
 * Method: inside the call poll it twice with a waker that looks at the lock, and
 * once with another; then it is woken. */
static ssize_t call_and_close_watched(int fd, void *arg)
{
    struct lock_watch *watches = arg;
    struct pirn__io *io = PIRN_CONTAINER_OF(watches[0].locks[0],
                                            struct pirn__io, lock);

    (void)fd;
    pirn__io_close_init(&close_op, io);
    EXPECT_EQ(PIRN_PENDING, poll_watched(&close_op.future, &watches[0]));
    EXPECT_EQ(PIRN_PENDING, poll_watched(&close_op.future, &watches[0]));
    EXPECT_EQ(1, watches[0].clones);
    EXPECT_EQ(PIRN_PENDING, poll_watched(&close_op.future, &watches[1]));
    return 0;
}

TEST(close_calls_no_foreign_waker_under_the_lock)
{
    struct watched watched;
    struct lock_watch watches[2] = {{{0}, 0, 0, 0, 0}, {{0}, 0, 0, 0, 0}};
    const struct pirn__io_call call = {call_and_close_watched, watches, 0};

    watched_open(&watched);
    pirn__waiter_leave(&watched.waiter);
    pirn__io_ref(watched.io);
    watches[0].locks[0] = &watched.io->lock;
    watches[1].locks[0] = &watched.io->lock;
    EXPECT_EQ(0, pirn__io_call(watched.io, PIRN_READABLE, &call));
    EXPECT_EQ(0, watches[0].wakers);
    EXPECT_EQ(0, watches[0].wakes);
    EXPECT_EQ(1, watches[1].wakes);
    EXPECT_EQ(PIRN_READY, poll_watched(&close_op.future, &watches[1]));
    EXPECT_EQ(0, watches[1].wakers);
    EXPECT_EQ(0, watches[0].found + watches[1].found);
    pirn__io_unref(watched.io);
    watched_close(&watched);
}

static void close_twice(void *arg)
{
    struct pirn__io *io = arg;

    pirn__io_ref(io);
    pirn__io_close(io);
    pirn__io_close(io);
}

/* Goal: closing twice is a broken rule, not a closed foreign descriptor.
 * Method: in a child process. */
TEST(close_twice_aborts)
{
    struct watched watched;

    watched_open(&watched);
    pirn__waiter_leave(&watched.waiter);
    EXPECT_DEATH(close_twice, watched.io, "closed only once");
    pirn__io_close(watched.io);
    watched_close(&watched);
}

/* In a child process. */

enum { FORKS = 40 };

static PIRN_ATOMIC(int) is_rebinding;

/* Takes the lock of the wait set again and again. */
static void *rebind(void *arg)
{
    struct pirn__reactor *reactor = arg;
    struct pirn__io io = {.slot = PIRN__IO_NO_SLOT};

    pirn__init(&io.refs, 1);
    /* relaxed: nothing else is told by it. */
    while (pirn__load(&is_rebinding, relaxed) != 0) {
        EXPECT_EQ(0, pirn__reactor_bind(reactor, &io));
        pirn__reactor_unbind(reactor, &io);
    }
    return NULL;
}

static void exit_in_vain(uint32_t *word, uint32_t expected)
{
    (void)word;
    (void)expected;
    _exit(1);
}

static int close_in_child(struct watched *watched)
{
    static const struct pirn__lock_ops ops = {.wait = exit_in_vain};
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        (void)pirn__lock_set_ops(&ops);
        pirn__io_close(watched->io);
        _exit(0);
    }
    EXPECT_EQ(child, waitpid(child, &status, 0));
    return status;
}

/* Goal: a close in a child waits for no lock that another thread of the parent held
 * when it forked: nobody will release it.
 * Method: a thread that takes the lock of the wait set again and again; to wait for
 * a lock ends the child. */
TEST(close_in_a_child_takes_no_lock_of_the_wait_set)
{
    struct watched watched;
    pthread_t thread;

    watched_open(&watched);
    pirn__init(&is_rebinding, 1);
    EXPECT_EQ(0, pthread_create(&thread, NULL, rebind,
                                watched.fixture.reactor));
    for (int i = 0; i < FORKS; i++)
        EXPECT_EQ(0, close_in_child(&watched));
    /* relaxed: as above. */
    pirn__store(&is_rebinding, 0, relaxed);
    EXPECT_EQ(0, pthread_join(thread, NULL));
    pirn__waiter_leave(&watched.waiter);
    pirn__io_close(watched.io);
    watched_close(&watched);
}

/* The order of system calls. */

static char order[8];

static void note(char what)
{
    size_t len = strlen(order);

    if (len + 1 < sizeof order)
        order[len] = what;
}

static void noting_close(int fd)
{
    note('c');
    pirn__sys_linux.close(fd);
}

static int noting_remove(int epoll_fd, int fd)
{
    note('r');
    return pirn__sys_linux.epoll_remove(epoll_fd, fd);
}

/* Goal: a descriptor leaves the wait set before it is closed, always.
 * Method: note the calls. */
TEST(close_leaves_wait_set_first)
{
    struct pirn__sys table = pirn__sys_linux;
    struct watched watched;

    watched_open(&watched);
    pirn__waiter_leave(&watched.waiter);
    table.close = noting_close;
    table.epoll_remove = noting_remove;
    memset(order, 0, sizeof order);
    pirn__sys = &table;
    pirn__io_close(watched.io);
    pirn__sys = &pirn__sys_linux;
    EXPECT_STR_EQ("rc", order);
    watched_close(&watched);
}

/* Goal: a copy of the descriptor keeps no events alive.
 * Method: dup, close, make the copy readable, turn. */
TEST(close_with_a_copy_elsewhere_ends_events)
{
    struct watched watched;
    int copy;

    watched_open(&watched);
    pirn__waiter_leave(&watched.waiter);
    copy = dup(watched.reader);
    pirn__io_close(watched.io);
    put_byte(watched.writer);
    EXPECT_EQ(0, fixture_turn(&watched.fixture));
    close(copy);
    watched_close(&watched);
}

/* A waker that closes a descriptor. */

static pirn_waker closing_clone(const pirn_waker *self)
{
    return *self;
}

static void closing_wake_by_ref(const pirn_waker *self)
{
    pirn__io_close(self->data);
}

static void closing_wake(pirn_waker self)
{
    closing_wake_by_ref(&self);
}

static void closing_drop(pirn_waker self)
{
    (void)self;
}

static const pirn_waker_ops closing_ops = {
    .clone = closing_clone,
    .wake = closing_wake,
    .wake_by_ref = closing_wake_by_ref,
    .drop = closing_drop,
};

/* One harvest: an event whose waker closes a descriptor, `between` others, and
 * one for the descriptor that is closed.  Returns how many were for somebody. */
static int harvest_across_a_close(int between)
{
    struct watched watched;
    struct watched others[PIRN__HARVEST_SIZE];
    struct watched first;
    pirn_waker waker;
    pirn_cx cx;
    int harvested;

    watched_open(&watched);
    pirn__waiter_leave(&watched.waiter);
    further_open(&first);
    waker = (pirn_waker){watched.io, &closing_ops};
    cx = pirn_cx_of_waker(&waker);
    EXPECT_EQ(PIRN_PENDING, pirn_future_poll(&first.future, &cx));
    put_byte(first.writer);
    for (int i = 0; i < between; i++) {
        further_open(&others[i]);
        EXPECT_EQ(PIRN_PENDING, poller_poll(&others[i].poller));
        put_byte(others[i].writer);
    }
    put_byte(watched.writer);
    harvested = fixture_turn(&watched.fixture);
    EXPECT_EQ(1, sealed);
    EXPECT(!is_open(watched.reader));
    for (int i = 0; i < between; i++)
        further_close(&others[i]);
    further_close(&first);
    watched_close(&watched);
    return harvested;
}

/* Goal: an event that was harvested before its descriptor was closed, and is
 * looked at afterwards, meets no freed memory and is for nobody.
 * Method: the waker of the first event closes the descriptor of the last, whose
 * memory goes with that: next to it, where the two are worked on together, and
 * as far away as in one harvest it can be. */
TEST(close_before_a_harvested_event_is_harmless)
{
    EXPECT_EQ(2, harvest_across_a_close(0));
    EXPECT_EQ(PIRN__HARVEST_SIZE - 1,
              harvest_across_a_close(PIRN__HARVEST_SIZE - 2));
}

/* Release. */

/* Goal: release gives back what was adopted, and waiters answer PIRN_ECLOSED.
 * Method: the kind says that it was blocking. */
TEST(release_returns_descriptor_in_its_old_mode)
{
    struct watched watched;

    watched_open(&watched);
    pirn__io_ref(watched.io);
    EXPECT_EQ(watched.reader, pirn__io_release(watched.io));
    EXPECT_EQ(0, fcntl(watched.reader, F_GETFL) & O_NONBLOCK);
    EXPECT_EQ(1, sealed);
    EXPECT_EQ(1, poller_wakes(&watched.poller));
    EXPECT_EQ(PIRN_READY, poller_poll(&watched.poller));
    EXPECT_EQ(PIRN_ECLOSED, watched.rc);
    pirn__waiter_leave(&watched.waiter);
    EXPECT_EQ(PIRN_ECLOSED, pirn__io_release(watched.io));
    pirn__io_unref(watched.io);
    EXPECT(is_open(watched.reader));
    put_byte(watched.writer);
    EXPECT_EQ(0, fixture_turn(&watched.fixture));
    close(watched.reader);
    watched_close(&watched);
}

static ssize_t call_release_inside(int fd, void *arg)
{
    struct watched *watched = arg;

    (void)fd;
    EXPECT_EQ(-EBUSY, pirn__io_release(watched->io));
    EXPECT_EQ(0, sealed);
    return 0;
}

/* Goal: a descriptor in use is not handed out, and nothing has changed.
 * Method: release from inside a call, then use it. */
TEST(release_during_a_call_answers_ebusy)
{
    struct watched watched;
    const struct pirn__io_call call = {call_release_inside, &watched, 0};

    watched_open(&watched);
    EXPECT_EQ(0, pirn__io_call(watched.io, PIRN_READABLE, &call));
    put_byte(watched.writer);
    EXPECT_EQ(1, fixture_turn(&watched.fixture));
    EXPECT_EQ(PIRN_READY, poller_poll(&watched.poller));
    EXPECT_EQ(0, watched.rc);
    pirn__waiter_leave(&watched.waiter);
    pirn__io_close(watched.io);
    watched_close(&watched);
}

/* Goal: what is closed while no runtime is there, or after it ended, goes too.
 * Method: shut down first. */
TEST(close_after_reactor_shutdown)
{
    struct watched watched;

    watched_open(&watched);
    pirn__reactor_shutdown(watched.fixture.reactor);
    EXPECT_EQ(PIRN_READY, poller_poll(&watched.poller));
    EXPECT_EQ(PIRN_ESHUTDOWN, watched.rc);
    pirn__waiter_leave(&watched.waiter);
    pirn__io_close(watched.io);
    EXPECT(!is_open(watched.reader));
    watched_close(&watched);
}
