/* SPDX-License-Identifier: MIT */
/* src/reactor/io_model.c - a descriptor, those who wait for it, the driver that
 * brings events, and its end, against each other.
 *
 * The descriptor is the explorer's event descriptor, the reactor the real one.
 */
#include "reactor/io.h"

#include <errno.h>

#include "engine/model_home.h"
#include "reactor/reactor.h"
#include "sys/sys.h"

static struct model_home model;
static struct pirn__reactor *reactor;
static struct pirn__io *io;
static int fd;

static void io_name(struct pirn__io *self, pirn_text *out)
{
    (void)self;
    (void)out;
}

static ssize_t read_count(int descriptor, void *arg)
{
    uint64_t count;

    (void)arg;
    return pirn__sys->read(descriptor, &count, sizeof count);
}

static const struct pirn__io_call reading = {.fn = read_count};

/* A reactor and a bound descriptor; `ready` is what is assumed of it. */
static void begin(unsigned ready)
{
    static const struct pirn__io_ops ops = {.name = io_name};
    const struct pirn__io_kind kind = {.ready = ready, .ops = &ops};

    model_home_begin(&model);
    EXPLORE_CHECK(
        pirn__reactor_new(&explore_heap, &model.home, &reactor) == 0);
    model.home.reactor = reactor;
    pirn__local()->entered = &model.home;
    fd = pirn__sys->eventfd();
    io = pirn__io_take(sizeof *io);
    pirn__io_open(io, fd, &kind);
    pirn__local()->entered = NULL;
}

static void end(void)
{
    explore_join();
    pirn__reactor_shutdown(reactor);
    pirn__reactor_free(reactor);
    EXPLORE_CHECK(pirn__load(&model.home.refs, relaxed) == 1);
}

static void drive_once(void)
{
    (void)pirn__reactor_poll(reactor, PIRN_EXPIRED);
}

static void signal_fd(void *arg)
{
    (void)arg;
    (void)pirn__sys->eventfd_signal(fd);
}

/* Somebody who reads once. */
struct reader {
    pirn_io_waiter waiter;
    struct model_bell bell;
    ssize_t result;
};

static struct reader readers[2];

/* True when it has its result. */
static bool reader_poll(struct reader *reader)
{
    const pirn_waker waker = model_bell_waker(&reader->bell);
    pirn_cx cx = pirn_cx_of_waker(&waker);

    if (pirn__waiter_poll_call(&reader->waiter, &cx, &reading,
                               &reader->result) == PIRN_PENDING)
        return false;
    pirn__waiter_leave(&reader->waiter);
    return true;
}

static void reader_begin(struct reader *reader)
{
    pirn__waiter_init(&reader->waiter, io, PIRN_READABLE);
}

static void close_io(void *arg)
{
    (void)arg;
    pirn__io_abandon(io);
}

/* Goal: an event between the call that would block and the place in line is not
 * lost: the reader gets it, or is woken for it. */
MODEL(io_event_against_a_reader_on_its_way_to_sleep, .preemptions = 3)
{
    bool done;

    begin(PIRN__READY_READ);
    reader_begin(&readers[0]);
    explore_thread(signal_fd, NULL);
    done = reader_poll(&readers[0]);
    /* The driver is this thread, too. */
    while (!done) {
        (void)pirn__reactor_poll(reactor, PIRN_NEVER);
        if (model_bell_rang(&readers[0].bell))
            done = reader_poll(&readers[0]);
    }
    EXPLORE_CHECK(readers[0].result > 0);
    explore_join();
    close_io(NULL);
    end();
    EXPLORE_CHECK(model_bell_wakers(&readers[0].bell) == 0);
}


/* The reader's own thread, which sleeps until it is rung for. */
static void look_in_passing(void *arg)
{
    struct reader *reader = arg;

    reader_begin(reader);
    if (!reader_poll(reader))
        pirn__waiter_leave(&reader->waiter);
}

static void wait_in_line(void *arg)
{
    struct reader *reader = arg;

    reader_begin(reader);
    (void)reader_poll(reader);
}

/* Goal: who was called up and gives up passes it on: the one that stays in line
 * is called, whatever the other did. */
MODEL(io_dropped_reader_passes_it_on, .preemptions = 2, .stale = 2,
      .spurious = -1)
{
    struct reader *stays = &readers[0];

    begin(0);
    explore_thread(wait_in_line, stays);
    explore_thread(look_in_passing, &readers[1]);
    signal_fd(NULL);
    drive_once();
    explore_join();
    drive_once();
    if (stays->result == 0 && readers[1].result <= 0) {
        EXPLORE_CHECK(model_bell_rang(&stays->bell));
        EXPLORE_CHECK(reader_poll(stays));
    }
    EXPLORE_CHECK((stays->result > 0) + (readers[1].result > 0) == 1);
    pirn__io_keep(io);
    close_io(NULL);
    /* It may have been called up, and overtaken by a newcomer's hint. */
    if (stays->result <= 0)
        EXPLORE_CHECK(reader_poll(stays) && stays->result == PIRN_ECLOSED);
    pirn__io_drop(io);
    end();
    EXPLORE_CHECK(model_bell_wakers(&stays->bell) == 0);
    EXPLORE_CHECK(model_bell_wakers(&readers[1].bell) == 0);
}

static void read_once(void *arg)
{
    ssize_t n = pirn__io_call(io, PIRN_READABLE, &reading);

    (void)arg;
    EXPLORE_CHECK(n > 0 || n == -EAGAIN || n == PIRN_ECLOSED);
    pirn__io_drop(io);
}

/* Goal: the descriptor is closed once, after the last call out, and an event
 * that is under way meets no freed memory.
 * Method: the explorer's table knows which descriptors are open. */
MODEL(io_close_against_a_call_and_an_event, .preemptions = 2)
{
    begin(PIRN__READY_READ);
    wait_in_line(&readers[0]);
    signal_fd(NULL);
    pirn__io_keep(io);
    explore_thread(read_once, NULL);
    explore_thread(close_io, NULL);
    drive_once();
    explore_join();
    /* It waited in line, and is told. */
    EXPLORE_CHECK(model_bell_rang(&readers[0].bell));
    EXPLORE_CHECK(model_bell_wakers(&readers[0].bell) == 0);
    end();
}

static void wait_and_be_told(void *arg)
{
    struct reader *reader = arg;

    reader_begin(reader);
    if (!reader_poll(reader)) {
        /* In line: the close must ring. */
        return;
    }
    EXPLORE_CHECK(reader->result == PIRN_ECLOSED ||
                  reader->result == -EAGAIN);
}

/* Goal: a reader that comes while the descriptor is being closed gets the
 * answer, or is woken for it. */
MODEL(io_close_against_a_new_reader, .preemptions = 3)
{
    begin(PIRN__READY_READ);
    pirn__io_keep(io);
    explore_thread(wait_and_be_told, &readers[0]);
    explore_thread(close_io, NULL);
    explore_join();
    if (readers[0].result == 0) {
        EXPLORE_CHECK(model_bell_rang(&readers[0].bell));
        EXPLORE_CHECK(reader_poll(&readers[0]));
        EXPLORE_CHECK(readers[0].result == PIRN_ECLOSED);
    }
    EXPLORE_CHECK(model_bell_wakers(&readers[0].bell) == 0);
    pirn__io_drop(io);
    end();
}

/* Goal: the same when the descriptor goes elsewhere, which a call may delay. */
MODEL(io_release_against_a_new_reader, .preemptions = 3)
{
    int released;

    begin(PIRN__READY_READ);
    pirn__io_keep(io);
    explore_thread(wait_and_be_told, &readers[0]);
    while ((released = pirn__io_release(io)) == -EBUSY)
        explore_join();
    EXPLORE_CHECK(released == fd);
    explore_join();
    if (readers[0].result == 0) {
        EXPLORE_CHECK(model_bell_rang(&readers[0].bell));
        EXPLORE_CHECK(reader_poll(&readers[0]));
        EXPLORE_CHECK(readers[0].result == PIRN_ECLOSED);
    }
    EXPLORE_CHECK(model_bell_wakers(&readers[0].bell) == 0);
    pirn__io_drop(io);
    pirn__sys->close(fd);
    end();
}

/* Goal: who waits for the end of the descriptor is told, also when the last
 * call out is another thread's. */
MODEL(io_closer_waits_for_the_last_call, .preemptions = 3)
{
    static struct model_bell bell;
    pirn_close_op op;

    begin(PIRN__READY_READ);
    pirn__io_keep(io);
    explore_thread(read_once, NULL);
    pirn__io_close_init(&op, io);
    if (model_bell_poll(&bell, &op.future) == PIRN_PENDING) {
        explore_join();
        EXPLORE_CHECK(model_bell_rang(&bell));
        EXPLORE_CHECK(model_bell_poll(&bell, &op.future) == PIRN_READY);
    }
    end();
    EXPLORE_CHECK(model_bell_wakers(&bell) == 0);
}

static void shut_down(void *arg)
{
    (void)arg;
    pirn__reactor_shutdown(reactor);
}

/* Goal: the reactor's end and a descriptor's end may meet: it is unbound once,
 * closed once, and who waits is told. */
MODEL(io_close_against_the_end_of_the_reactor, .preemptions = 3)
{
    begin(0);
    wait_in_line(&readers[0]);
    explore_thread(shut_down, NULL);
    explore_thread(close_io, NULL);
    explore_join();
    EXPLORE_CHECK(model_bell_rang(&readers[0].bell));
    EXPLORE_CHECK(model_bell_wakers(&readers[0].bell) == 0);
    end();
}

static PIRN_ATOMIC(int) asked; /* relaxed: the wake orders it */

static void ask_driver(void *arg)
{
    (void)arg;
    pirn__add(&asked, 1, relaxed);
    pirn__reactor_wake(reactor);
}

/* Goal: of two wakes one may do for both, but what both were for is seen; no
 * poll sleeps over one. */
MODEL(io_two_wakes_of_the_driver, .preemptions = 3, .spurious = -1)
{
    begin(0);
    explore_thread(ask_driver, NULL);
    explore_thread(ask_driver, NULL);
    while (pirn__load(&asked, relaxed) < 2)
        (void)pirn__reactor_poll(reactor, PIRN_NEVER);
    explore_join();
    close_io(NULL);
    end();
}

/* What stands behind the pirn__io in an object of ours. */
struct object {
    struct pirn__io io;
    PIRN_SHARED(int) field;
};

static void use_and_unref(void *arg)
{
    struct object *object = arg;
    ssize_t n = pirn__io_call(&object->io, PIRN_READABLE, &reading);

    EXPLORE_CHECK(n == -EAGAIN);
    pirn__io_unref(&object->io);
}

static void write_and_unref(void *arg)
{
    struct object *object = arg;

    pirn_cell_write(&object->field, 1);
    pirn__io_unref(&object->io);
}

/* Goal: the last of two owners closes and frees, after all that the other did
 * with the object. */
MODEL(io_two_owners_and_the_last_one_closes, .preemptions = 3)
{
    static const struct pirn__io_ops ops = {.name = io_name};
    const struct pirn__io_kind kind = {.ops = &ops};
    struct object *object;

    begin(0);
    close_io(NULL);
    pirn__local()->entered = &model.home;
    object = PIRN_CONTAINER_OF(pirn__io_take(sizeof *object), struct object,
                               io);
    pirn__io_open(&object->io, pirn__sys->eventfd(), &kind);
    pirn__local()->entered = NULL;
    pirn__io_ref(&object->io);
    explore_thread(use_and_unref, object);
    explore_thread(write_and_unref, object);
    explore_join();
    end();
}

static void close_and_open_another(void *arg)
{
    static const struct pirn__io_ops ops = {.name = io_name};
    const struct pirn__io_kind kind = {.ops = &ops};
    struct pirn__io **other = arg;

    close_io(NULL);
    pirn__local()->entered = &model.home;
    *other = pirn__io_take(sizeof **other);
    pirn__io_open(*other, pirn__sys->eventfd(), &kind);
    pirn__local()->entered = NULL;
    pirn__waiter_init(&readers[1].waiter, *other, PIRN_READABLE);
    EXPLORE_CHECK(!reader_poll(&readers[1]));
}

/* Goal: an event that is under way for a descriptor that was closed is not taken
 * for one of the next, which has its place in the table. */
MODEL(io_stale_event_is_for_nobody, .preemptions = 3)
{
    static struct pirn__io *other;

    begin(0);
    wait_in_line(&readers[0]);
    signal_fd(NULL);
    explore_thread(close_and_open_another, &other);
    drive_once();
    explore_join();
    EXPLORE_CHECK(!pirn__readiness_has(
        pirn__readiness_get(&other->readiness), PIRN_READABLE));
    EXPLORE_CHECK(!model_bell_rang(&readers[1].bell));
    pirn__waiter_leave(&readers[1].waiter);
    pirn__io_abandon(other);
    end();
    EXPLORE_CHECK(model_bell_wakers(&readers[0].bell) == 0);
}

static ssize_t never_quite(int descriptor, void *arg)
{
    (void)descriptor;
    (void)arg;
    /* Ready again before the answer is out. */
    pirn__readiness_add(&io->readiness, PIRN__READY_READ);
    return -EAGAIN;
}

/* Goal: a poll that finds the readiness wrong each time comes back later, by its
 * own wake. */
MODEL(io_readiness_that_is_always_wrong, .preemptions = 1)
{
    static const struct pirn__io_call call = {.fn = never_quite};
    const pirn_waker waker = model_bell_waker(&readers[0].bell);
    pirn_cx cx = pirn_cx_of_waker(&waker);
    ssize_t result;

    begin(PIRN__READY_READ);
    reader_begin(&readers[0]);
    EXPLORE_CHECK(pirn__waiter_poll_call(&readers[0].waiter, &cx, &call,
                                         &result) == PIRN_PENDING);
    EXPLORE_CHECK(model_bell_rang(&readers[0].bell));
    pirn__waiter_leave(&readers[0].waiter);
    close_io(NULL);
    end();
}

/* A plain thread that waits on a descriptor which no reactor watches. */

static enum pirn_poll alone_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    return pirn__waiter_poll_call(&readers[0].waiter, cx, &reading,
                                  &readers[0].result);
}

static void alone_drop(pirn_future *self)
{
    (void)self;
}

static void wait_alone(void *arg)
{
    static const pirn_future_ops ops = {.poll = alone_poll,
                                        .drop = alone_drop};
    pirn_future future = {&ops};

    (void)arg;
    reader_begin(&readers[0]);
    EXPLORE_CHECK(pirn_await(&future, PIRN_NEVER) == 0);
    EXPLORE_CHECK(readers[0].result == PIRN_ECLOSED);
    pirn__waiter_leave(&readers[0].waiter);
    pirn__io_drop(io);
}

/* As the poll of a task of this runtime. */
static void bind_it(void)
{
    const pirn_waker waker = model_bell_waker(&readers[1].bell);
    struct pirn__turn turn = {.home = &model.home};
    pirn_cx cx = {.waker = &waker, .turn_ = &turn};
    int rc;

    pirn__waiter_init(&readers[1].waiter, io, PIRN_READABLE);
    EXPLORE_CHECK(pirn__waiter_poll_ready(&readers[1].waiter, &cx, &rc) ==
                  PIRN_PENDING);
    pirn__waiter_leave(&readers[1].waiter);
}

/* Goal: a thread that waits on the descriptor itself is told that from now on a
 * reactor watches it, and of the close after that. */
MODEL(io_bound_under_a_waiting_thread, .preemptions = 3, .stale = 2,
      .spurious = -1)
{
    static const struct pirn__io_ops ops = {.name = io_name};
    const struct pirn__io_kind kind = {.ops = &ops};

    begin(0);
    close_io(NULL);
    io = pirn__io_take(sizeof *io);
    pirn__io_open(io, pirn__sys->eventfd(), &kind);
    pirn__io_keep(io);
    explore_thread(wait_alone, NULL);
    bind_it();
    close_io(NULL);
    explore_join();
    end();
}

/* Goal: a wake that meets the end of the reactor writes to no closed
 * descriptor. */
MODEL(io_wake_against_the_end_of_the_reactor, .preemptions = 3)
{
    begin(0);
    explore_thread(ask_driver, NULL);
    explore_thread(shut_down, NULL);
    explore_join();
    close_io(NULL);
    end();
}

/* Goal: the end of the reactor waits for all who write. */
MODEL(io_two_wakes_against_the_end_of_the_reactor, .preemptions = 3)
{
    begin(0);
    close_io(NULL);
    explore_thread(ask_driver, NULL);
    explore_thread(ask_driver, NULL);
    drive_once();
    pirn__reactor_shutdown(reactor);
    end();
}

/* The front of a line.  A task of the model's runtime waits there, so its own
 * waker is asked for. */

/* A task that reads once. */
struct front_reader {
    pirn_future future;
    struct front_end *end;
    pirn_io_waiter waiter;
    ssize_t n;
};

/* How its reading ended; each thread runs the task at times. */
struct front_end {
    PIRN_SHARED(ssize_t) result; /* 0: not yet */
    PIRN_SHARED(int) ends;
};

static struct front_end front_ends[2];

static enum pirn_poll front_poll(pirn_future *self, pirn_cx *cx)
{
    struct front_reader *reader =
        PIRN_CONTAINER_OF(self, struct front_reader, future);

    if (pirn__waiter_poll_call(&reader->waiter, cx, &reading, &reader->n) ==
        PIRN_PENDING)
        return PIRN_PENDING;
    pirn__waiter_leave(&reader->waiter);
    pirn_cell_write(&reader->end->result, reader->n);
    pirn_cell_write(&reader->end->ends, pirn_cell_read(&reader->end->ends) + 1);
    return PIRN_READY;
}

static void front_drop(pirn_future *self)
{
    struct front_reader *reader =
        PIRN_CONTAINER_OF(self, struct front_reader, future);

    pirn__waiter_leave(&reader->waiter);
    pirn_cell_write(&reader->end->ends, pirn_cell_read(&reader->end->ends) + 1);
}

static pirn_task *front_spawn(int index, bool handle)
{
    static const pirn_future_ops ops = {.poll = front_poll,
                                        .drop = front_drop};
    struct front_reader reader = {.future = {&ops}, .end = &front_ends[index]};

    pirn__waiter_init(&reader.waiter, io, PIRN_READABLE);
    return (pirn_task *)model_home_spawn(&model, &reader.future, sizeof reader,
                                         handle);
}

/* A descriptor that is watched already, and a task at the front of its line. */
static void front_begin(void)
{
    begin(0);
    bind_it();
    (void)front_spawn(0, false);
    model_home_drain(&model);
    EXPLORE_CHECK(pirn__front_waits(
        pirn__front_look(pirn__io_front(io, PIRN_READABLE))));
}

static void front_finish(void)
{
    model_home_drain(&model);
    EXPLORE_CHECK(
        pirn__front_look(pirn__io_front(io, PIRN_READABLE)) == 0);
}

static void run_tasks(void *arg)
{
    (void)arg;
    model_home_drain(&model);
}

/* Goal: an event between the look of a task and its place at the front is not
 * lost, and it ends once, whoever runs it. */
MODEL(io_event_against_a_task_on_its_way_to_the_front, .preemptions = 3,
      .spurious = -1)
{
    begin(0);
    bind_it();
    (void)front_spawn(0, false);
    explore_thread(run_tasks, NULL);
    signal_fd(NULL);
    drive_once();
    explore_join();
    model_home_drain(&model);
    EXPLORE_CHECK(pirn_cell_read(&front_ends[0].ends) == 1);
    EXPLORE_CHECK(pirn_cell_read(&front_ends[0].result) > 0);
    pirn__io_keep(io);
    close_io(NULL);
    front_finish();
    pirn__io_drop(io);
    model_home_finish(&model);
    end();
}

static void drive_in_thread(void *arg)
{
    (void)arg;
    drive_once();
    model_home_drain(&model);
}

/* Goal: the same for a reader that enters the list. */
MODEL(io_event_against_a_reader_on_its_way_into_the_list, .preemptions = 3,
      .spurious = -1)
{
    struct reader *reader = &readers[0];

    begin(0);
    bind_it();
    explore_thread(wait_in_line, reader);
    signal_fd(NULL);
    drive_once();
    explore_join();
    if (reader->result == 0) {
        EXPLORE_CHECK(model_bell_rang(&reader->bell));
        EXPLORE_CHECK(reader_poll(reader) && reader->result > 0);
    }
    close_io(NULL);
    end();
    EXPLORE_CHECK(model_bell_wakers(&reader->bell) == 0);
}

/* Goal: a task that comes to the front while the descriptor is being closed gets
 * the answer, or is woken for it. */
MODEL(io_close_against_a_task_on_its_way_to_the_front, .preemptions = 3,
      .spurious = -1)
{
    begin(0);
    bind_it();
    (void)front_spawn(0, false);
    pirn__io_keep(io);
    explore_thread(run_tasks, NULL);
    close_io(NULL);
    explore_join();
    front_finish();
    EXPLORE_CHECK(pirn_cell_read(&front_ends[0].ends) == 1);
    EXPLORE_CHECK(pirn_cell_read(&front_ends[0].result) == PIRN_ECLOSED);
    pirn__io_drop(io);
    model_home_finish(&model);
    end();
}

/* As front_poll(), after so many waits in the same poll that nothing is left of
 * its loan, all of which have been woken. */
static enum pirn_poll front_poll_without_loan(pirn_future *self, pirn_cx *cx)
{
    struct pirn__turn *turn = cx->turn_;

    /* release: as each of them gave its reference up. */
    pirn__sub(pirn__task_state(turn->task), turn->loan * PIRN__REF, release);
    turn->loan = 0;
    return front_poll(self, cx);
}

/* Goal: a task that gives its waker's reference away at the front has one to
 * give: whoever is quick and wakes it at once does not free it. */
MODEL(io_event_against_a_task_that_has_used_its_loan_up, .preemptions = 2,
      .spurious = -1, .stale = 1)
{
    static const pirn_future_ops ops = {.poll = front_poll_without_loan,
                                        .drop = front_drop};
    struct front_reader reader = {.future = {&ops}, .end = &front_ends[0]};

    begin(0);
    bind_it();
    pirn__waiter_init(&reader.waiter, io, PIRN_READABLE);
    (void)model_home_spawn(&model, &reader.future, sizeof reader, false);
    explore_thread(run_tasks, NULL);
    signal_fd(NULL);
    drive_once();
    explore_join();
    model_home_drain(&model);
    EXPLORE_CHECK(pirn_cell_read(&front_ends[0].ends) == 1);
    pirn__io_keep(io);
    close_io(NULL);
    front_finish();
    pirn__io_drop(io);
    model_home_finish(&model);
    end();
}

/* Goal: a task at the front is told of the close, or gets what came before. */
MODEL(io_close_against_the_front_and_an_event, .preemptions = 3,
      .spurious = -1)
{
    front_begin();
    pirn__io_keep(io);
    signal_fd(NULL);
    explore_thread(drive_in_thread, NULL);
    close_io(NULL);
    explore_join();
    front_finish();
    EXPLORE_CHECK(pirn_cell_read(&front_ends[0].ends) == 1);
    EXPLORE_CHECK(pirn_cell_read(&front_ends[0].result) > 0 ||
                  pirn_cell_read(&front_ends[0].result) == PIRN_ECLOSED);
    pirn__io_drop(io);
    model_home_finish(&model);
    end();
}

/* Goal: the same with the end of the reactor. */
MODEL(io_end_of_the_reactor_against_the_front, .preemptions = 3,
      .spurious = -1)
{
    front_begin();
    pirn__io_keep(io);
    explore_thread(shut_down, NULL);
    model_home_drain(&model);
    close_io(NULL);
    explore_join();
    front_finish();
    EXPLORE_CHECK(pirn_cell_read(&front_ends[0].ends) == 1);
    EXPLORE_CHECK(pirn_cell_read(&front_ends[0].result) == PIRN_ESHUTDOWN ||
                  pirn_cell_read(&front_ends[0].result) == PIRN_ECLOSED);
    pirn__io_drop(io);
    model_home_finish(&model);
    end();
}

/* Goal: who stands behind the front gets its turn: called when the task at the
 * front has left, or has been dropped, whatever it found. */
MODEL(io_line_behind_the_front_is_called, .preemptions = 3, .spurious = -1)
{
    struct reader *behind = &readers[0];

    front_begin();
    explore_thread(wait_in_line, behind);
    signal_fd(NULL);
    drive_once();
    model_home_drain(&model);
    explore_join();
    model_home_drain(&model);
    /* One event, one count: one of the two has it. */
    if (behind->result <= 0) {
        EXPLORE_CHECK(pirn_cell_read(&front_ends[0].ends) == 1);
        signal_fd(NULL);
        drive_once();
        EXPLORE_CHECK(model_bell_rang(&behind->bell));
        EXPLORE_CHECK(reader_poll(behind) && behind->result > 0);
    } else {
        pirn__waiter_leave(&behind->waiter);
    }
    pirn__io_keep(io);
    close_io(NULL);
    front_finish();
    EXPLORE_CHECK(pirn_cell_read(&front_ends[0].ends) == 1);
    pirn__io_drop(io);
    model_home_finish(&model);
    end();
    EXPLORE_CHECK(model_bell_wakers(&behind->bell) == 0);
}

static void abort_task(void *arg)
{
    pirn_task_abort(arg);
    model_home_drain(&model);
}

/* Goal: a task that is dropped at the front passes the event on. */
MODEL(io_dropped_front_passes_it_on, .preemptions = 3, .spurious = -1)
{
    struct reader *behind = &readers[0];
    pirn_task *task;

    begin(0);
    bind_it();
    task = front_spawn(0, true);
    model_home_drain(&model);
    wait_in_line(behind);
    EXPLORE_CHECK(behind->result == 0);
    explore_thread(abort_task, task);
    signal_fd(NULL);
    drive_once();
    explore_join();
    model_home_drain(&model);
    EXPLORE_CHECK(pirn_cell_read(&front_ends[0].ends) == 1);
    if (pirn_cell_read(&front_ends[0].result) == 0) {
        EXPLORE_CHECK(model_bell_rang(&behind->bell));
        EXPLORE_CHECK(reader_poll(behind) && behind->result > 0);
    } else {
        pirn__waiter_leave(&behind->waiter);
    }
    pirn_task_unref(task);
    pirn__io_keep(io);
    close_io(NULL);
    front_finish();
    pirn__io_drop(io);
    model_home_finish(&model);
    end();
    EXPLORE_CHECK(model_bell_wakers(&behind->bell) == 0);
}

/* Goal: two tasks that come at once, and one event: one of them has it, the other
 * stays in line and is called by the next. */
MODEL(io_two_tasks_for_one_front, .preemptions = 2, .spurious = -1)
{
    begin(0);
    bind_it();
    (void)front_spawn(0, false);
    (void)front_spawn(1, false);
    explore_thread(run_tasks, NULL);
    explore_thread(run_tasks, NULL);
    explore_join();
    for (int i = 0; i < 2; i++) {
        signal_fd(NULL);
        drive_once();
        model_home_drain(&model);
    }
    EXPLORE_CHECK(pirn_cell_read(&front_ends[0].result) > 0);
    EXPLORE_CHECK(pirn_cell_read(&front_ends[1].result) > 0);
    pirn__io_keep(io);
    close_io(NULL);
    front_finish();
    pirn__io_drop(io);
    model_home_finish(&model);
    end();
}

/* As a worker, which has a harvest of its own. */
static void harvest_once(void *arg)
{
    struct pirn__harvest harvest;

    (void)arg;
    EXPLORE_CHECK(pirn__harvest_init(&harvest, &explore_heap) == 0);
    (void)pirn__reactor_harvest(reactor, &harvest, PIRN_EXPIRED);
    pirn__harvest_deinit(&harvest, &explore_heap);
}

/* Goal: a descriptor that goes while a thread works on its event, on the
 * reference of the reactor, is freed after that; also when a second thread has
 * got an event of it meanwhile. */
MODEL(io_event_on_the_reference_of_the_reactor, .preemptions = 3,
      .spurious = -1)
{
    begin(0);
    wait_in_line(&readers[0]);
    signal_fd(NULL);
    explore_thread(harvest_once, NULL);
    explore_thread(harvest_once, NULL);
    signal_fd(NULL);
    close_io(NULL);
    explore_join();
    end();
    EXPLORE_CHECK(model_bell_wakers(&readers[0].bell) == 0);
}
