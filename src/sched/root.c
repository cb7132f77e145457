/* SPDX-License-Identifier: MIT */
/* src/sched/root.c - the root group of a runtime: the owner of every task that
 * has no other.  Each worker, the driver of a current-thread runtime, and what
 * threads outside spawn with, have a ledger, so that spawning by one does not wait
 * for another; whatever concerns the whole looks at all of them.
 */
#include "sched/runtime.h"
#include "sched/worker.h"

/* The next ledger beside the group's own; NULL at the end.  *i starts as 0. */
static const struct pirn__ledger *next_ledger(const struct pirn_runtime *rt,
                                              uint32_t *i)
{
    const struct pirn__pool *pool = rt->pool;
    uint32_t index = (*i)++;

    if (pool == NULL)
        return index == 0 ? &rt->ledger : NULL;
    if (index < pool->count)
        return &pool->workers[index]->ledger;
    if (index == pool->count)
        return &pool->reaper->ledger;
    index -= pool->count + 1;
    return index < PIRN__OUTSIDES ? &pool->outside[index].ledger : NULL;
}

void pirn__root_close(struct pirn_runtime *rt, enum pirn__group_gate gate)
{
    const struct pirn__ledger *ledger;
    uint32_t i = 0;

    pirn__group_close(&rt->group, gate);
    pirn__outside_close(rt);
    while ((ledger = next_ledger(rt, &i)) != NULL)
        pirn__ledger_see(ledger);
}

void pirn__root_visit(struct pirn_runtime *rt,
                      void (*fn)(struct pirn__task *task, void *arg), void *arg)
{
    pirn__group_visit(&rt->group, fn, arg);
}

struct pirn__group_counts pirn__root_read(struct pirn_runtime *rt)
{
    struct pirn__group_counts sum = {0};
    const struct pirn__ledger *ledger;
    uint32_t i = 0;

    pirn__ledger_read_ends(&rt->group.ledger, &sum);
    while ((ledger = next_ledger(rt, &i)) != NULL)
        pirn__ledger_read_ends(ledger, &sum);
    pirn__ledger_read_spawned(&rt->group.ledger, &sum);
    i = 0;
    while ((ledger = next_ledger(rt, &i)) != NULL)
        pirn__ledger_read_spawned(ledger, &sum);
    return sum;
}
