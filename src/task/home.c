/* SPDX-License-Identifier: MIT */
/* src/task/home.c - references, allocation and participants of a home. */
#include "task/home.h"

#include "base/list.h"
#include "base/lock.h"
#include "sys/heap.h"
#include "task/local.h"

enum { HOME_ALIGN = 16 };

void pirn__home_ref(struct pirn__home *home)
{
    /* relaxed: the caller has a reference already. */
    pirn__add(&home->refs, 1, relaxed);
}

void pirn__home_unref(struct pirn__home *home)
{
    /* acq_rel: release [home.refs] our last use before the end; acquire
     * [home.refs] everybody's, for the one that frees. */
    if (pirn__sub(&home->refs, 1, acq_rel) == 1)
        home->ops->free(home);
}

bool pirn__home_add_participant(struct pirn__home *home,
                                struct pirn__participant *participant)
{
    bool open;

    pirn__lock(&home->participants_lock);
    open = !home->participants_closed;
    if (open)
        pirn__list_push_tail(&home->participants, &participant->link);
    pirn__unlock(&home->participants_lock);
    return open;
}

struct pirn__home *pirn__home_for(const pirn_spawn_options *options)
{
    if (options != NULL && options->runtime != NULL)
        return pirn__home_of(options->runtime);
    return pirn__local_home();
}

static const pirn_alloc *alloc_of(struct pirn__home *home)
{
    return home == NULL ? &pirn__alloc_malloc : home->alloc;
}

void *pirn__home_take(struct pirn__home *home, size_t size)
{
    const pirn_alloc *alloc = alloc_of(home);

    return alloc->take(alloc->ctx, size, HOME_ALIGN);
}

void pirn__home_give(struct pirn__home *home, void *memory, size_t size)
{
    const pirn_alloc *alloc = alloc_of(home);

    if (memory != NULL)
        alloc->give(alloc->ctx, memory, size, HOME_ALIGN);
}

void *pirn__home_take_object(struct pirn__home *home, size_t size)
{
    void *object = pirn__home_take(home, size);

    if (object != NULL && home != NULL)
        pirn__home_ref(home);
    return object;
}

void pirn__home_give_object(struct pirn__home *home, void *object, size_t size)
{
    pirn__home_give(home, object, size);
    if (home != NULL)
        pirn__home_unref(home);
}
