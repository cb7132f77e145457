/* SPDX-License-Identifier: MIT */
/* src/task/lab_test.h - task cells without a runtime, for the tests of this
 * folder: a home whose queue is run by hand, one task at a time, over an
 * allocator that counts; and a future that does what a test tells it.
 *
 * Lab tasks are entered in a group as those of a runtime are, so that every
 * step of their life is the real one.
 */
#ifndef PIRN_TASK_LAB_TEST_H
#define PIRN_TASK_LAB_TEST_H

#include <errno.h>
#include <stdlib.h>

#include "base/list.h"
#include "engine/poller.h"
#include "engine/test.h"
#include "sys/heap.h"
#include "sys/sys.h"
#include "task/group.h"
#include "task/home.h"
#include "task/local.h"
#include "task/task.h"

enum { LAB_LOG_SIZE = 32 };

struct lab {
    struct pirn__home home; /* first */
    pirn_alloc alloc;
    struct pirn__slabs slabs;
    struct pirn__group group;
    struct pirn__queue queue;
    struct pirn__turn turn;
    struct pirn__ledger *ledger; /* of whoever spawns; or NULL */
    int submits;
    int wakes; /* of the driver */
    int fails; /* reports to the failure hook */
    int fail_outcome;
    char fail_message[128];
    int frees; /* the home's end */
    int pieces; /* allocations that are out */
    int calls;  /* allocations so far */
    int fail_at; /* this one fails; 0: none does */
    char log[LAB_LOG_SIZE]; /* one letter for each thing that happened */
    size_t log_length;
};

static inline struct lab *lab_of(struct pirn__home *home)
{
    return (struct lab *)(void *)home;
}

/* Note that something happened, to check the order. */
static inline void lab_note(struct lab *lab, char what)
{
    if (lab->log_length < LAB_LOG_SIZE - 1)
        lab->log[lab->log_length++] = what;
}

static inline void *lab_take(void *ctx, size_t size, size_t align)
{
    struct lab *lab = ctx;

    if (++lab->calls == lab->fail_at)
        return NULL;
    lab->pieces++;
    EXPECT_LE(align, 16);
    return malloc(size);
}

static inline void lab_give(void *ctx, void *memory, size_t size, size_t align)
{
    struct lab *lab = ctx;

    (void)size;
    (void)align;
    lab->pieces--;
    free(memory);
}

static inline void lab_submit(struct pirn__home *home, struct pirn__task *task,
                              enum pirn__origin origin)
{
    struct lab *lab = lab_of(home);

    (void)origin;
    lab->submits++;
    pirn__queue_push(&lab->queue, &task->cell.link);
}

static inline void lab_wake(struct pirn__home *home)
{
    lab_of(home)->wakes++;
}

static inline void lab_failed(struct pirn__home *home,
                              const pirn_failure *failure)
{
    struct lab *lab = lab_of(home);

    lab_note(lab, 'f');
    lab->fails++;
    lab->fail_outcome = failure->outcome;
    strncpy(lab->fail_message, failure->message, sizeof lab->fail_message - 1);
}

static inline void lab_free(struct pirn__home *home)
{
    lab_of(home)->frees++;
}

static inline void lab_begin(struct lab *lab)
{
    static const struct pirn__home_ops ops = {
        .submit = lab_submit,
        .wake = lab_wake,
        .failed = lab_failed,
        .free = lab_free,
    };

    *lab = (struct lab){
        .home.ops = &ops,
        .home.alloc = &lab->alloc,
        .alloc = {.take = lab_take, .give = lab_give, .ctx = lab},
        .turn = {.home = &lab->home},
    };
    pirn__init(&lab->home.refs, 1);
    pirn__list_init(&lab->home.participants);
    pirn__slabs_init(&lab->slabs, &lab->alloc, NULL, &lab->home);
    pirn__group_init(&lab->group, &lab->home, &lab->slabs);
}

/* Every task has ended and nobody holds a cell. */
static inline void lab_finish(struct lab *lab)
{
    EXPECT_EQ(0, pirn__group_read(&lab->group).live);
    EXPECT(pirn__slabs_retire(&lab->slabs));
    EXPECT_EQ(0, lab->pieces);
}

/* Run one queued task; false if there is none. */
static inline bool lab_run(struct lab *lab)
{
    struct pirn__local *local = pirn__local();
    pirn_slink *link = pirn__queue_pop(&lab->queue);
    struct pirn__task *task;

    if (link == NULL)
        return false;
    task = pirn__task_of_link(link);
    local->turn = &lab->turn;
    pirn__no_suspend_begin(local);
    lab->turn.budget = PIRN__COOP_BUDGET;
    if (pirn__task_run(task, &lab->turn, NULL) == PIRN__WAKE_SUBMIT)
        pirn__queue_push(&lab->queue, &task->cell.link);
    lab->turn.task = NULL;
    pirn__no_suspend_end(local);
    local->turn = NULL;
    return true;
}

/* Run until the queue is empty, at most a hundred times; returns how often. */
static inline int lab_run_all(struct lab *lab)
{
    int runs = 0;

    while (runs < 100 && lab_run(lab))
        runs++;
    return runs;
}

/* A future that does what its script says.  The script stays where it is when
 * the future is moved into its task. */
struct script {
    struct lab *lab;
    /* Decides each poll; NULL: ready at once. */
    enum pirn_poll (*on_poll)(struct script *script, pirn_cx *cx);
    void *arg;
    int outcome;
    pirn_waker waker; /* for on_poll to keep */
    int polls;
    int drops;
    int discards;
};

struct step {
    pirn_future future;
    struct script *script;
    int value; /* the result */
};

static inline struct script *script_of(const pirn_future *future)
{
    return PIRN_CONTAINER_OF(future, const struct step, future)->script;
}

static inline enum pirn_poll step_poll(pirn_future *self, pirn_cx *cx)
{
    struct script *script = script_of(self);
    enum pirn_poll poll = PIRN_READY;

    script->polls++;
    if (script->on_poll != NULL)
        poll = script->on_poll(script, cx);
    if (poll == PIRN_READY)
        PIRN_CONTAINER_OF(self, struct step, future)->value = 42;
    return poll;
}

static inline void step_drop(pirn_future *self)
{
    struct script *script = script_of(self);

    script->drops++;
    if (script->lab != NULL)
        lab_note(script->lab, 'd');
    pirn_waker_drop(pirn_waker_take(&script->waker));
}

static inline void step_discard(pirn_future *self)
{
    script_of(self)->discards++;
    if (script_of(self)->lab != NULL)
        lab_note(script_of(self)->lab, 'x');
}

static inline void step_describe(const pirn_future *self, pirn_text *out)
{
    pirn_text_append(out, "step after %d polls", script_of(self)->polls);
}

static inline int step_outcome(const pirn_future *self)
{
    return script_of(self)->outcome;
}

static const pirn_future_ops step_ops = {
    .poll = step_poll,
    .drop = step_drop,
    .discard = step_discard,
    .describe = step_describe,
    .outcome = step_outcome,
};

static inline struct step step_of(struct script *script)
{
    return (struct step){.future = {&step_ops}, .script = script};
}

/* For on_poll: wait, keeping the waker. */
static inline enum pirn_poll script_wait(struct script *script, pirn_cx *cx)
{
    pirn_waker_drop(pirn_waker_store(&script->waker, cx));
    return PIRN_PENDING;
}

/* Wake the task once and give the waker up. */
static inline void script_wake(struct script *script)
{
    pirn_waker_wake(pirn_waker_take(&script->waker));
}

/* For on_poll: wait in the first poll, then be ready. */
static inline enum pirn_poll script_wait_once(struct script *script,
                                              pirn_cx *cx)
{
    if (script->polls == 1)
        return script_wait(script, cx);
    pirn_waker_drop(pirn_waker_take(&script->waker));
    return PIRN_READY;
}

/* Start a task for the script; NULL when memory ran out or the gate is shut. */
static inline struct pirn__task *
lab_spawn_with(struct lab *lab, struct script *script,
               const pirn_spawn_options *options, bool handle)
{
    struct step step = step_of(script);
    struct pirn__task_plan plan = {
        .ops = &pirn__stackless_ops,
        .home = &lab->home,
        .slabs = &lab->slabs,
        .future = &step.future,
        .size = sizeof step,
        .options = options,
        .site = PIRN_SITE,
        .handle = handle,
    };
    struct pirn__task *task = pirn__task_new(&plan);

    script->lab = lab;
    if (task == NULL)
        return NULL;
    if (pirn__group_admit(&lab->group, lab->ledger, task, &plan) < 0) {
        pirn__task_discard_new(task, &plan);
        return NULL;
    }
    lab_submit(&lab->home, task, PIRN__ORIGIN_SPAWN);
    lab->submits--;
    return task;
}

/* With a handle, which is the caller's. */
static inline pirn_task *lab_spawn(struct lab *lab, struct script *script)
{
    return (pirn_task *)lab_spawn_with(lab, script, NULL, true);
}

/* Without one; its id. */
static inline pirn_task_id lab_spawn_loose(struct lab *lab,
                                           struct script *script)
{
    struct pirn__task *task = lab_spawn_with(lab, script, NULL, false);

    return pirn_task_get_id((pirn_task *)task);
}

/* The outcome of a task that has ended. */
static inline int lab_outcome(pirn_task *task)
{
    int outcome = -EINPROGRESS;

    EXPECT(pirn_task_is_done(task));
    EXPECT_EQ(0, pirn_task_join(task, PIRN_EXPIRED, &outcome));
    return outcome;
}

#endif /* PIRN_TASK_LAB_TEST_H */
