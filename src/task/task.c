/* SPDX-License-Identifier: MIT */
/* src/task/task.c - the life of a task cell: built, run, settled, freed.
 *
 * Settlement keeps one order, because each step tells somebody that the one
 * before is over: the future's resources are gone; the group has accounted;
 * completion is published; the join waker is woken; the group's reference
 * goes.
 */
#include "task/task.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "task/group.h"
#include "task/local.h"
#include "task/run_hot.h"

const struct pirn__task_ops pirn__stackless_ops = {.injects = false};

static struct pirn__extras *extras_new(const struct pirn__task_plan *plan)
{
    const pirn_spawn_options *options = plan->options;
    struct pirn__extras *extras =
        pirn__home_take(plan->home, sizeof *extras);

    if (extras == NULL)
        return NULL;
    memset(extras, 0, sizeof *extras);
    extras->site = plan->site;
    extras->context = options->context;
    if (options->name != NULL)
        strncpy(extras->name, options->name, sizeof extras->name - 1);
    return extras;
}

static size_t cell_size(const struct pirn__task_plan *plan)
{
    size_t size = sizeof(struct pirn__task) + plan->size;

    if (plan->home->stamps)
        size += sizeof(uint64_t);
    if (plan->handle)
        size += sizeof(pirn_waker);
    return pirn__round_up(size, PIRN__SLAB_UNIT);
}

pirn_waker *pirn__task_join_slot(struct pirn__task *task)
{
    return (pirn_waker *)(void *)((char *)task + task->size -
                                  sizeof(pirn_waker));
}

uint64_t *pirn__task_stamp(struct pirn__task *task)
{
    size_t size = task->size - sizeof(uint64_t);

    if (pirn__task_has_join_slot(task))
        size -= sizeof(pirn_waker);
    return (uint64_t *)(void *)((char *)task + size);
}

struct pirn__task *pirn__task_new(const struct pirn__task_plan *plan)
{
    struct pirn__extras *extras = NULL;
    size_t size = cell_size(plan);
    struct pirn__cell *cell;
    struct pirn__task *task;

    if (pirn__task_wants_extras(plan)) {
        extras = extras_new(plan);
        if (extras == NULL)
            return NULL;
    }
    cell = pirn__slabs_take(plan->slabs, plan->cache, size);
    if (cell == NULL)
        goto fail_extras;
    task = pirn__task_of_cell(cell);
    task->size = (uint32_t)size;
    task->ops = plan->ops;
    if (extras != NULL)
        task->info.extras = extras;
    else
        task->info.site = plan->site;
    pirn__task_move_in(task, plan->future, plan->size);
    if (plan->handle)
        *pirn__task_join_slot(task) = (pirn_waker){0};
    return task;

fail_extras:
    pirn__home_give(plan->home, extras, sizeof *extras);
    return NULL;
}

void pirn__task_discard_new(struct pirn__task *task,
                            const struct pirn__task_plan *plan)
{
    if (pirn__task_wants_extras(plan))
        pirn__home_give(plan->home, task->info.extras,
                        sizeof *task->info.extras);
    pirn__slabs_give(plan->cache, &task->cell);
}

struct pirn__extras *pirn__task_extras(struct pirn__task *task)
{
    uint64_t word = pirn__state_peek(pirn__task_state(task));

    return (word & PIRN__EXTRAS) != 0 ? task->info.extras : NULL;
}

int pirn__task_outcome(const struct pirn__task *task)
{
    return task->outcome;
}

static void free_extras(struct pirn__task *task, struct pirn__extras *extras)
{
    pirn__home_give(pirn__task_home(task), extras, sizeof *extras);
}

/* Free a cell without references. */
static void free_cell(struct pirn__task *task, struct pirn__slab_cache *cache)
{
    struct pirn__extras *extras = pirn__task_extras(task);
    char *message = task->message;

    if (extras != NULL)
        free_extras(task, extras);
    if (message != NULL)
        pirn__home_give(pirn__task_home(task), message, strlen(message) + 1);
    pirn__state_close(pirn__task_state(task));
    pirn__slabs_give(cache, &task->cell);
}

static void unref_with(struct pirn__task *task, struct pirn__slab_cache *cache)
{
    if (pirn__state_unref(pirn__task_state(task)))
        free_cell(task, cache);
}

void pirn__task_free(struct pirn__task *task)
{
    free_cell(task, NULL);
}

struct pirn__home *pirn__task_home(struct pirn__task *task)
{
    return pirn__cell_slabs(&task->cell)->owner;
}

void pirn__task_report(struct pirn__task *task, const char *message)
{
    int outcome = pirn__task_outcome(task);
    struct pirn__home *home;
    pirn_failure failure;

    if (outcome >= 0 || outcome == -ECANCELED)
        return;
    home = pirn__task_home(task);
    failure = (pirn_failure){
        .id = pirn_task_get_id((pirn_task *)task),
        .name = pirn_task_name((pirn_task *)task),
        .site = pirn_task_site((pirn_task *)task),
        .outcome = outcome,
        .message = message,
    };
    home->ops->failed(home, &failure);
}

/* A copy for whoever gives up the last handle without having joined.  NULL
 * without memory: the failure is then told without its message. */
static char *keep_message(struct pirn__home *home, const char *message)
{
    size_t size = strlen(message) + 1;
    char *copy = pirn__home_take(home, size);

    if (copy != NULL)
        memcpy(copy, message, size);
    return copy;
}

/* The loan goes back whole. */
static void repay_loan(struct pirn__task *task, struct pirn__turn *turn)
{
    if (turn->loan < PIRN__LOAN)
        pirn__state_ref_many(pirn__task_state(task), PIRN__LOAN - turn->loan);
    /* The group has a reference, so that none of these is the last. */
    for (; turn->loan > PIRN__LOAN; turn->loan--)
        (void)pirn__state_unref(pirn__task_state(task));
    turn->loan = PIRN__LOAN;
}

/* Nobody has a reference to a task that ended well and was counted: its cell is free
 * at once.  False: it takes all the steps. */
static bool end_unseen(struct pirn__task *task, struct pirn__slab_cache *cache)
{
    struct pirn__extras *extras = pirn__task_extras(task);

    if (!pirn__state_finish(pirn__task_state(task)))
        return false;
    if (extras != NULL)
        free_extras(task, extras);
    if (cache == NULL ||
        !pirn__slab_give_cached(cache, &task->cell, task->size))
        pirn__slabs_give(cache, &task->cell);
    return true;
}

/* It has been counted, and takes the other steps. */
static void publish_end(struct pirn__task *task, struct pirn__home *home,
                        int outcome, const char *message, bool ready,
                        struct pirn__slab_cache *cache)
{
    uint64_t word;

    task->group = NULL;
    task->message = message[0] != '\0' ? keep_message(home, message) : NULL;
    task->outcome = outcome;
    word = pirn__state_complete(pirn__task_state(task), ready);
    /* The last handle may have gone since we looked. */
    if (ready && (word & PIRN__OUTPUT) == 0)
        pirn_future_discard(pirn__task_future(task));
    if ((word & PIRN__JOIN_WAKER) != 0)
        pirn_waker_wake(pirn_waker_take(pirn__task_join_slot(task)));
    if ((word & PIRN__JOIN_INTEREST) == 0)
        pirn__task_report(task, message);
    unref_with(task, cache);
}

/* The task is over.  `ready`: its future said READY and keeps a result. */
static void settle(struct pirn__task *task, struct pirn__turn *turn,
                   int outcome, bool ready, struct pirn__slab_cache *cache)
{
    pirn__state *state = pirn__task_state(task);
    bool joinable = (pirn__state_peek(state) & PIRN__JOIN_INTEREST) != 0;
    const char *message = turn->failed ? turn->message : "";
    const pirn_waker *own_waker = turn->own_waker;
    struct pirn__home *home = turn->home;

    /* Nothing is lent any more. */
    turn->own_waker = NULL;
    repay_loan(task, turn);
    if (ready && !joinable) {
        if (pirn__task_future(task)->ops->discard != NULL)
            pirn_future_discard(pirn__task_future(task));
        ready = false;
    }
    if (home->ended != NULL)
        home->ended(home, task, outcome);
    pirn__group_leave(task->group, turn->ledger, outcome);
    if (outcome < 0 || joinable || !end_unseen(task, cache))
        publish_end(task, home, outcome, message, ready, cache);
    turn->own_waker = own_waker;
    turn->task = NULL;
}

static void drop_and_settle(struct pirn__task *task, struct pirn__turn *turn,
                            int outcome, struct pirn__slab_cache *cache)
{
    if (outcome == PIRN_EABORTED && turn->home->ops->aborts != NULL)
        turn->home->ops->aborts(turn->home, task);
    pirn_future_drop(pirn__task_future(task));
    settle(task, turn, outcome, false, cache);
}

bool pirn__task_start_aside(struct pirn__task *task, struct pirn__turn *turn,
                            struct pirn__slab_cache *cache)
{
    switch (pirn__state_start_any(pirn__task_state(task), turn->worker_index)) {
    case PIRN__START_POLL:
        return true;
    case PIRN__START_CANCEL:
        if (task->ops->injects)
            return true;
        drop_and_settle(task, turn, -ECANCELED, cache);
        return false;
    case PIRN__START_ABORT:
        drop_and_settle(task, turn, PIRN_EABORTED, cache);
        return false;
    case PIRN__START_LEAVE:
        break;
    }
    turn->task = NULL;
    return false;
}

void pirn__task_end_counted(struct pirn__task *task, struct pirn__turn *turn,
                            struct pirn__slab_cache *cache)
{
    const pirn_waker *own_waker = turn->own_waker;

    turn->own_waker = NULL;
    if (!end_unseen(task, cache))
        publish_end(task, turn->home, 0, "", false, cache);
    turn->own_waker = own_waker;
    turn->task = NULL;
}

void pirn__task_end(struct pirn__task *task, struct pirn__turn *turn,
                    struct pirn__slab_cache *cache)
{
    const pirn_future *future = pirn__task_future(task);
    int outcome =
        future->ops->outcome == NULL ? 0 : future->ops->outcome(future);

    if (outcome == 0 && pirn__task_end_unseen(task, turn, cache))
        return;
    if (turn->failed && outcome != PIRN_EPANIC)
        outcome = PIRN_EFAILED;
    settle(task, turn, outcome, true, cache);
}

enum pirn__wake pirn__task_run(struct pirn__task *task, struct pirn__turn *turn,
                               struct pirn__slab_cache *cache)
{
    struct pirn__loop loop;
    bool again;

    pirn__loop_init(&loop, turn, cache);
    (void)pirn__task_run_here(task, &loop, &again);
    return again ? PIRN__WAKE_SUBMIT : PIRN__WAKE_NONE;
}
