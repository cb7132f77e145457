/* SPDX-License-Identifier: MIT */
/* src/task/task_test.c - the life of a cell: what it costs, the order of its
 * settlement, what a poll may do, memory that runs out. */
#include "task/lab_test.h"

/* Goal: a sleeping stackless task without a handle costs its header and its
 * future, and nothing else; the join slot comes with a handle.
 * Method: the size of the cell. */
TEST(task_cell_holds_header_future_and_join_slot)
{
    struct script loose = {0}, joinable = {0};
    struct lab lab;
    struct pirn__task *task;

    lab_begin(&lab);
    task = lab_spawn_with(&lab, &loose, NULL, false);
    EXPECT_EQ(64 + sizeof(struct step), pirn__cell_size(&task->cell));
    EXPECT_PTR_EQ((char *)task + 64, pirn__task_future(task));
    task = lab_spawn_with(&lab, &joinable, NULL, true);
    EXPECT_EQ(64 + sizeof(struct step) + sizeof(pirn_waker),
              pirn__cell_size(&task->cell));
    pirn_task_unref((pirn_task *)task);
    EXPECT_EQ(2, lab_run_all(&lab));
    lab_finish(&lab);
}

/* Notes in the log what has happened when the joiner is woken. */
static void note_end(struct lab *lab, pirn_task *task)
{
    struct pirn__group_counts counts = pirn__group_read(&lab->group);

    lab_note(lab, counts.live == 0 ? 'g' : 'G');
    lab_note(lab, pirn_task_is_done(task) ? 'c' : 'C');
}

struct witness {
    struct lab *lab;
    pirn_task *task;
};

static pirn_waker witness_clone(const pirn_waker *self)
{
    return *self;
}

static void witness_wake_by_ref(const pirn_waker *self)
{
    struct witness *witness = self->data;

    note_end(witness->lab, witness->task);
    lab_note(witness->lab, 'w');
}

static void witness_wake(pirn_waker self)
{
    witness_wake_by_ref(&self);
}

static void witness_drop(pirn_waker self)
{
    (void)self;
}

/* Goal: settlement keeps its order: the future's resources, the group, the
 * completion, the join waker.
 * Method: a task that is dropped, joined by a waker that notes what it finds. */
TEST(task_settles_in_order)
{
    static const pirn_waker_ops ops = {
        .clone = witness_clone,
        .wake = witness_wake,
        .wake_by_ref = witness_wake_by_ref,
        .drop = witness_drop,
    };
    struct script script = {.on_poll = script_wait};
    struct lab lab;
    struct witness witness = {.lab = &lab};
    pirn_waker waker = {&witness, &ops};
    pirn_cx cx = pirn_cx_of_waker(&waker);
    pirn_join_op join;

    lab_begin(&lab);
    witness.task = lab_spawn(&lab, &script);
    pirn_join_init(&join, witness.task);
    EXPECT_EQ(PIRN_PENDING, pirn_future_poll(&join.future, &cx));
    pirn_task_abort(witness.task);
    EXPECT_EQ(1, lab_run_all(&lab));
    EXPECT_STR_EQ("dgcw", lab.log);
    EXPECT_EQ(PIRN_READY, pirn_future_poll(&join.future, &cx));
    pirn_task_unref(witness.task);
    lab_finish(&lab);
}

/* Goal: an output that nobody wants is discarded before the end is told.
 * Method: without a handle and with a bad outcome, which the hook hears of. */
TEST(task_discards_before_it_reports)
{
    struct script script = {.outcome = -EIO};
    struct lab lab;

    lab_begin(&lab);
    (void)lab_spawn_loose(&lab, &script);
    EXPECT_EQ(1, lab_run_all(&lab));
    EXPECT_STR_EQ("xf", lab.log);
    EXPECT_STR_EQ("", lab.fail_message);
    lab_finish(&lab);
}

static enum pirn_poll fail_with_words(struct script *script, pirn_cx *cx)
{
    pirn_cx_fail(cx, "disk %d: %s", 3, (const char *)script->arg);
    return PIRN_READY;
}

/* Goal: a task that fails with words ends as PIRN_EFAILED; the hook hears them,
 * cut at 127 bytes; the next task is not concerned.
 * Method: short words, long words, and a task that succeeds behind them. */
TEST(task_failed_with_words_tells_the_hook)
{
    char longest[200];
    struct script brief = {.on_poll = fail_with_words, .arg = "full"};
    struct script wordy = {.on_poll = fail_with_words, .arg = longest};
    struct script good = {0};
    struct lab lab;
    pirn_task *task;

    memset(longest, 'w', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    lab_begin(&lab);
    (void)lab_spawn_loose(&lab, &brief);
    task = lab_spawn(&lab, &good);
    EXPECT_EQ(2, lab_run_all(&lab));
    EXPECT_EQ(1, lab.fails);
    EXPECT_EQ(PIRN_EFAILED, lab.fail_outcome);
    EXPECT_STR_EQ("disk 3: full", lab.fail_message);
    EXPECT_EQ(0, lab_outcome(task));
    pirn_task_unref(task);

    task = lab_spawn(&lab, &wordy);
    EXPECT_EQ(1, lab_run_all(&lab));
    EXPECT_EQ(PIRN_EFAILED, lab_outcome(task));
    pirn_task_unref(task);
    EXPECT_EQ(1, lab.fails);
    (void)lab_spawn_loose(&lab, &wordy);
    EXPECT_EQ(1, lab_run_all(&lab));
    EXPECT_EQ(127, strlen(lab.fail_message));
    EXPECT_EQ(0, strncmp("disk 3: www", lab.fail_message, 11));
    EXPECT_EQ(3, pirn__group_read(&lab.group).failed);
    lab_finish(&lab);
}

static enum pirn_poll answer_nonsense(struct script *script, pirn_cx *cx)
{
    (void)script;
    (void)cx;
    return (enum pirn_poll)(PIRN_READY + 1);
}

/* Goal: a poll that does not say PIRN_PENDING has ended. */
TEST(task_with_a_nonsense_answer_has_ended)
{
    struct script script = {.on_poll = answer_nonsense};
    struct lab lab;

    lab_begin(&lab);
    (void)lab_spawn_loose(&lab, &script);
    EXPECT_EQ(1, lab_run_all(&lab));
    EXPECT_EQ(1, script.polls);
    EXPECT_EQ(1, pirn__group_read(&lab.group).completed);
    lab_finish(&lab);
}

/* Goal: memory that runs out at any allocation of a spawn refuses it and loses
 * nothing; the future is still the caller's.
 * Method: fail the first, the second, ... until it succeeds. */
TEST(task_without_memory_is_refused_whole)
{
    const pirn_spawn_options options = {.name = "named"};
    bool spawned = false;

    for (int fail_at = 1; !spawned; fail_at++) {
        struct script script = {0};
        struct lab lab;
        struct pirn__task *task;

        REQUIRE(fail_at < 10);
        lab_begin(&lab);
        lab.fail_at = fail_at;
        task = lab_spawn_with(&lab, &script, &options, true);
        spawned = task != NULL;
        if (spawned) {
            EXPECT_LE(3, fail_at);
            pirn_task_unref((pirn_task *)task);
            EXPECT_EQ(1, lab_run_all(&lab));
        }
        EXPECT_EQ(0, script.drops);
        EXPECT_EQ(spawned ? 1 : 0, script.polls);
        lab_finish(&lab);
    }
}

static void *find_context(void)
{
    return pirn_task_context();
}

static enum pirn_poll in_nested_poll(struct script *script, pirn_cx *cx)
{
    struct step inner = step_of(script->arg);

    EXPECT_PTR_EQ(script, find_context());
    EXPECT_EQ(PIRN_READY, pirn_future_poll(&inner.future, cx));
    EXPECT_EQ(42, inner.value);
    return PIRN_READY;
}

/* Goal: a poll inside a poll is still the same task.
 * Method: a future that polls another by hand. */
TEST(task_polls_futures_inside_its_own)
{
    struct script inner = {0};
    struct script outer = {.on_poll = in_nested_poll, .arg = &inner};
    const pirn_spawn_options options = {.context = &outer};
    struct lab lab;

    lab_begin(&lab);
    (void)lab_spawn_with(&lab, &outer, &options, false);
    EXPECT_EQ(1, lab_run_all(&lab));
    EXPECT_EQ(1, inner.polls);
    lab_finish(&lab);
}
