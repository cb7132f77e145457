/* SPDX-License-Identifier: MIT */
/* src/fiber/overflow.c - naming the fiber that overran its stack. */
#include <stdio.h>

#include "fiber/fiber.h"
#include "sched/runtime.h"
#include "sys/fault.h"
#include "sys/tls.h"
#include "task/local.h"

/* In a signal handler: only reads of this thread's own state, and snprintf,
 * which with these formats allocates nothing.  A thread without a record is not
 * given one: the fault may have come in the middle of malloc. */
static bool explain(const void *address, char *buf, size_t size)
{
    const struct pirn__local *local = pirn__tls_get();
    struct pirn__fiber *fiber = local == NULL ? NULL : local->fiber;
    const pirn_task *task;
    const char *name;

    if (fiber == NULL || !pirn__stack_guards(&fiber->top->stack, address))
        return false;
    task = (pirn_task *)pirn__fiber_task(fiber);
    name = pirn_task_name(task);
    snprintf(buf, size,
             "pirn: stack overflow in fiber %s (%s): its stack has %zu bytes; "
             "raise stack_size_bytes\n",
             name != NULL ? name : "-", pirn_task_site(task),
             fiber->top->stack.size);
    return true;
}

void pirn__overflow_watch_thread(void)
{
    struct pirn__local *local = pirn__local();

    if (local->watches_faults)
        return;
    local->watches_faults = true;
    pirn__fault_watch_thread();
}

void pirn__overflow_watch(void)
{
    pirn__fault_watch(explain);
}

void pirn__overflow_unwatch(void)
{
    pirn__fault_unwatch();
}
