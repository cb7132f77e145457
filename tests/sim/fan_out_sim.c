/* SPDX-License-Identifier: MIT */
/* tests/sim/fan_out_sim.c - many tasks, some of which are cancelled.
 *
 * A fiber starts tasks of several kinds, cancels some of them at a random
 * moment, itself or by a thread outside, and joins them all.
 */
#include <errno.h>

#include "engine/sim.h"

enum { CHILDREN = 12, NAP_MS = 30, PATIENCE_MS = 200 };

/* One round; lives in the parent's frame. */
struct round {
    pirn_sem sem;
    pirn_mutex mutex;
    bool inside; /* somebody has it */
    pirn_mpsc_sender *sender;
    uint32_t begun; /* fibers that have run; one thread of the system */
    uint32_t fibers;
    uint32_t held; /* permits */
    uint32_t sent;
    uint32_t count;
    bool cancelled[CHILDREN];
    bool acquires[CHILDREN]; /* a stackless one: its outcome says whether */
    pirn_task *tasks[CHILDREN];
};

/* The kinds of children. */

static int sleep_well(void *arg)
{
    struct round *round = arg;

    round->begun++;
    return sim_sleep_ms(sim_below(NAP_MS));
}

static int take_permit(void *arg)
{
    struct round *round = arg;
    pirn_sem_acquire_op op;
    int rc;

    round->begun++;
    if (sim_chance(500)) {
        rc = pirn_sem_acquire(&round->sem, 1, PIRN_NEVER);
    } else {
        pirn_sem_acquire_init(&op, &round->sem, 1);
        rc = sim_await(&op.future, PIRN_NEVER);
        if (rc == 0)
            rc = op.rc;
    }
    round->held += rc == 0;
    return rc;
}

static int send_message(void *arg)
{
    struct round *round = arg;
    uint32_t message = ++round->begun;
    int rc = pirn_mpsc_send(round->sender, &message, PIRN_NEVER);

    round->sent += rc == 0;
    return rc;
}

static int nap_on_thread(void *arg)
{
    (void)arg;
    return sim_sleep_ms(sim_below(NAP_MS));
}

static int use_thread(void *arg)
{
    struct round *round = arg;
    int rc;

    round->begun++;
    rc = pirn_blocking_run(nap_on_thread, NULL);
    /* The system may refuse a thread. */
    return rc == -EAGAIN ? 0 : rc;
}

/* A permit, or the end of a nap: the one that comes second is dropped, perhaps
 * with a permit that it has not seen. */
static int race_two(void *arg)
{
    struct round *round = arg;
    pirn_sem_acquire_op acquire;
    pirn_sleep_op nap;
    pirn_branch branches[] = {PIRN_BRANCH(&acquire), PIRN_BRANCH(&nap)};
    int rc;

    round->begun++;
    pirn_sem_acquire_init(&acquire, &round->sem, 1);
    pirn_sleep_init(&nap, pirn_after_ms(sim_below(NAP_MS)));
    sim_watch(&acquire.future);
    sim_watch(&nap.future);
    rc = pirn_select(branches, 2, PIRN_NEVER);
    round->held += rc == 0;
    return rc < 0 ? rc : 0;
}

/* Alone for a while, or not at all. */
static int hold_lock(void *arg)
{
    struct round *round = arg;
    int rc;

    round->begun++;
    rc = pirn_mutex_lock(&round->mutex, pirn_after_ms(sim_below(NAP_MS)));
    if (rc < 0)
        return rc == -ETIMEDOUT ? 0 : rc;
    sim_check(!round->inside, "a mutex lets one in");
    round->inside = true;
    rc = sim_chance(500) ? sim_sleep_ms(sim_below(NAP_MS)) : pirn_yield();
    round->inside = false;
    pirn_mutex_unlock(&round->mutex);
    return rc;
}

static int block(void *arg)
{
    (void)arg;
    sim_block_ms(sim_below(NAP_MS));
    return 0;
}

static int block_here(void *arg)
{
    struct round *round = arg;
    int rc;

    round->begun++;
    rc = pirn_block_in_place(block, NULL);
    /* Without workers, pinned, or without a thread it cannot be. */
    return rc == -EPERM || rc == -EAGAIN ? 0 : rc;
}

static int spawn_sleep(pirn_task **task)
{
    pirn_sleep_op op;

    pirn_sleep_init(&op, pirn_after_ms(sim_below(NAP_MS)));
    sim_watch(&op.future);
    return pirn_spawn(&op.future, sizeof op, NULL, task);
}

/* One that is cancelled is dropped, and with it what it has been granted. */
static int spawn_acquire(struct round *round, pirn_task **task)
{
    pirn_sem_acquire_op op;

    pirn_sem_acquire_init(&op, &round->sem, 1);
    sim_watch(&op.future);
    return pirn_spawn(&op.future, sizeof op, NULL, task);
}

static int start_child(struct round *round, pirn_task **task, bool *acquires)
{
    static pirn_fiber_fn *const kinds[] = {sleep_well, take_permit,
                                           send_message, use_thread, race_two,
                                           hold_lock, block_here};
    enum { KINDS = sizeof kinds / sizeof kinds[0] };
    pirn_spawn_options options = {
        .pinned = sim_chance(100),
        .priority = sim_chance(200) ? PIRN_PRIORITY_HIGH
                                    : PIRN_PRIORITY_NORMAL,
    };
    uint32_t kind = sim_below(KINDS + 2);
    int rc;

    *acquires = kind > KINDS;
    if (kind >= KINDS)
        return *acquires ? spawn_acquire(round, task) : spawn_sleep(task);
    rc = pirn_go_with(kinds[kind], round, &options, task);
    if (rc == -EMFILE) {
        /* A worker with pinned tasks needs a descriptor. */
        options.pinned = false;
        rc = pirn_go_with(kinds[kind], round, &options, task);
    }
    round->fibers += rc == 0;
    return rc;
}

/* Cancelling. */

static void cancel_from_outside(void *arg)
{
    pirn_task *task = arg;

    sim_pause("outside", 0);
    pirn_task_cancel(task);
    pirn_task_unref(task);
}

static void cancel_some(struct round *round)
{
    for (uint32_t i = 0; i < round->count; i++) {
        if (!sim_chance(400))
            continue;
        round->cancelled[i] = true;
        if (sim_chance(300))
            sim_thread(cancel_from_outside, pirn_task_ref(round->tasks[i]));
        else
            pirn_task_cancel(round->tasks[i]);
    }
}

/* Who does not take it gives it back with the last handle. */
static void take_permit_of(struct round *round, pirn_task *task)
{
    pirn_sem_acquire_op op;

    sim_check(pirn_task_take_output(task, &op, sizeof op) == 0,
              "the output can be taken");
    round->held++;
}

static void join_child(struct round *round, uint32_t i)
{
    pirn_task *task = round->tasks[i];
    pirn_join_op op;
    int rc = -ETIMEDOUT;

    /* Ends: what it waits for comes. */
    while (rc == -ETIMEDOUT) {
        pirn_join_init(&op, task);
        rc = sim_await(&op.future, pirn_after_ms(sim_below(PATIENCE_MS)));
    }
    sim_check(rc == 0 && op.rc == 0, "a task can be joined");
    sim_check(op.outcome == 0 ||
                  (round->cancelled[i] && op.outcome == -ECANCELED),
              "it ended well, or was cancelled");
    if (round->acquires[i] && op.outcome == 0)
        take_permit_of(round, task);
    pirn_task_unref(task);
}

/* All that the senders have sent, and then the end. */
static void drain(struct round *round, pirn_mpsc_receiver *receiver)
{
    uint32_t message, received = 0;

    while (pirn_mpsc_recv(receiver, &message, PIRN_NEVER) == 0)
        received++;
    sim_check(received == round->sent, "each message arrives once");
}

static int receive_all(void *arg)
{
    void **both = arg;

    drain(both[0], both[1]);
    return 0;
}

static void run_round(struct round *round)
{
    uint32_t early;
    int rc = 0;

    while (round->count < 1 + sim_below(CHILDREN) && rc == 0) {
        rc = start_child(round, &round->tasks[round->count],
                         &round->acquires[round->count]);
        sim_check(rc == 0, "a task starts");
        round->count += rc == 0;
    }
    if (sim_chance(700))
        sim_check(sim_sleep_ms(sim_below(NAP_MS)) == 0, "the parent sleeps");
    early = sim_below(CHILDREN + 1);
    pirn_sem_release(&round->sem, early);
    cancel_some(round);
    pirn_sem_release(&round->sem, CHILDREN - early);
    for (uint32_t i = 0; i < round->count; i++)
        join_child(round, i);
    sim_check(round->begun == round->fibers, "each fiber has run once");
    sim_check(pirn_sem_available(&round->sem) == CHILDREN - round->held,
              "no permit is lost");
}

static int fan_out(void *arg)
{
    const pirn_channel_options options = {.message_size = sizeof(uint32_t),
                                          .capacity = 1 + sim_below(3)};
    struct round round = {0};
    pirn_mpsc_receiver *receiver;
    void *both[] = {&round, NULL};
    pirn_task *drainer;
    int outcome, rc;

    (void)arg;
    sim_check(pirn_sem_init(&round.sem, 0) == 0, "a semaphore can be made");
    pirn_mutex_init(&round.mutex);
    rc = pirn_mpsc_new(&options, &round.sender, &receiver);
    sim_check(rc == 0, "a channel can be made");
    both[1] = receiver;
    rc = pirn_go_with(receive_all, both, NULL, &drainer);
    sim_check(rc == 0, "the receiver starts");
    run_round(&round);
    pirn_mpsc_sender_unref(round.sender);
    rc = pirn_task_join(drainer, PIRN_NEVER, &outcome);
    sim_check(rc == 0 && outcome == 0, "the receiver ends");
    pirn_task_unref(drainer);
    pirn_mpsc_receiver_free(receiver);
    pirn_mutex_deinit(&round.mutex);
    pirn_sem_deinit(&round.sem);
    return 0;
}

static void story(void)
{
    struct sim_program program = sim_program_begin();

    for (uint32_t i = 0; i < sim_options()->requests; i++)
        sim_check(sim_program_run(&program, fan_out, NULL) == 0,
                  "a round ends well");
    sim_program_shutdown(&program, 60000);
    sim_check(program.report.in_time, "shutdown is in time");
    sim_program_end(&program);
}

/* Goal: each task runs and ends once, whenever it is cancelled, and what it was
 * given goes nowhere else.  Method: a run for each seed. */
TEST(fan_out_loses_nobody)
{
    sim_expect_clean("fan_out_loses_nobody", story, NULL,
                     test_size(30, 400, 20000));
}

/* Goal: with threads outside, too, a seed makes one run.  Method: as for
 * echo. */
TEST(fan_out_can_be_repeated)
{
    sim_expect_repeatable("fan_out_loses_nobody", story, 10);
}
