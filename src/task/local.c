/* SPDX-License-Identifier: MIT */
/* src/task/local.c - the record of a thread, and what upper layers ask of it. */
#include "task/local.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "sys/heap.h"
#include "sys/tls.h"
#include "task/home.h"
#include "task/task.h"

/* Memory of the process, not of a runtime: a thread may serve several. */
struct pirn__local *pirn__local_new(void)
{
    const pirn_alloc *alloc = &pirn__alloc_malloc;
    struct pirn__local *local =
        alloc->take(alloc->ctx, sizeof *local, _Alignof(struct pirn__local));

    if (local != NULL)
        memset(local, 0, sizeof *local);
    return local;
}

static void let_parker_go(struct pirn__local *local)
{
    if (local->parker != NULL)
        pirn__parker_unref(local->parker);
}

static void local_free(void *value)
{
    const pirn_alloc *alloc = &pirn__alloc_malloc;
    struct pirn__local *local = value;

    let_parker_go(local);
    alloc->give(alloc->ctx, local, sizeof *local, _Alignof(struct pirn__local));
}

void pirn__local_adopt(struct pirn__local *local)
{
    pirn__tls_set(local);
}

void pirn__local_disown(struct pirn__local *local)
{
    local_free(local);
}

struct pirn__local *pirn__local_make(void)
{
    struct pirn__local *local = pirn__local_new();

    if (local != NULL)
        pirn__local_adopt(local);
    return local;
}

static const char *who(void)
{
    struct pirn__local *local = pirn__tls_get();

    if (local == NULL || local->turn == NULL || local->turn->task == NULL)
        return NULL;
    const pirn_task *task = (pirn_task *)local->turn->task;
    const char *name = pirn_task_name(task);

    return name != NULL ? name : pirn_task_site(task);
}

__attribute__((constructor)) static void register_with_lower_layers(void)
{
    pirn__tls_on_exit(local_free);
    pirn__abort_set_who(who);
}

struct pirn__local *pirn__local_borrow(struct pirn__local *spare)
{
    struct pirn__local *local = pirn__local();

    if (local != NULL)
        return local;
    *spare = (struct pirn__local){0};
    pirn__local_adopt(spare);
    return spare;
}

void pirn__local_return(struct pirn__local *spare)
{
    if (pirn__tls_get() != spare)
        return;
    let_parker_go(spare);
    pirn__tls_set(NULL);
}

/* Threads that have asked for random numbers. */
static PIRN_ATOMIC(uint64_t) seeds;

uint32_t pirn__random_below(uint32_t limit)
{
    struct pirn__local *local = pirn__local();

    if (local == NULL)
        return 0;
    if (local->prng.state == 0)
        /* relaxed: only has to be another number for each. */
        pirn__prng_seed(&local->prng, pirn__add(&seeds, 1, relaxed));
    return pirn__prng_below(&local->prng, limit);
}

pirn_runtime *pirn_runtime_current(void)
{
    struct pirn__home *home = pirn__local_home();

    return home == NULL ? NULL : home->runtime;
}

pirn_runtime *pirn_runtime_enter(pirn_runtime *rt)
{
    struct pirn__local *local = pirn__local();
    struct pirn__home *before;

    if (local == NULL)
        return NULL;
    before = local->entered;
    local->entered = pirn__home_of(rt);
    return before == NULL ? NULL : before->runtime;
}

int pirn__turn_note_fd(pirn_cx *cx, int fd, uint32_t events)
{
    struct pirn__parker *parker = cx->turn_ == NULL ? NULL : cx->turn_->parker;

    if (parker == NULL)
        return 0;
    for (uint32_t i = 0; i < parker->fd_count; i++) {
        if (parker->fds[i].fd == fd) {
            parker->fds[i].events |= events;
            return 0;
        }
    }
    if (parker->fd_count == PIRN__PARKER_FDS)
        return -ENOSPC;
    parker->fds[parker->fd_count++] = (struct pirn__parker_fd){fd, events};
    return 0;
}

void pirn__turn_note_home(pirn_cx *cx, struct pirn__home *home)
{
    struct pirn__parker *parker = cx->turn_ == NULL ? NULL : cx->turn_->parker;

    /* The first one will do: a poll that notes several is polled again after
     * each sleep. */
    if (parker == NULL || parker->home != NULL)
        return;
    pirn__home_ref(home);
    parker->home = home;
}
