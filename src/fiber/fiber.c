/* SPDX-License-Identifier: MIT */
/* src/fiber/fiber.c - a fiber as a future: started, resumed, ended, abandoned.
 *
 * A fiber cannot be dropped like another future, because its stack holds
 * whatever its callers own.  Dropping one that has run withdraws what it waits
 * for and quarantines stack and cell: neither is ever used or freed again.
 */
#include "fiber/fiber.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/hint.h"
#include "base/prefetch.h"
#include "sched/runtime.h"
#include "sys/sys.h"
#include "task/local.h"
#include "time/timers.h"

/* About the stack pointer of a suspended fiber: the frames that the switch returns
 * into, and below them those that they will call. */
enum { STACK_TOP_BYTES = 384, STACK_BELOW_BYTES = 128 };

_Static_assert(sizeof(struct pirn__fiber_top) <= PIRN__STACK_TOP_BYTES,
               "a stack has room for it");

static struct pirn__fiber *fiber_of(const pirn_future *future)
{
    return PIRN_CONTAINER_OF(future, struct pirn__fiber, future);
}

struct pirn__fiber *pirn__fiber_current(void)
{
    struct pirn__local *local = pirn__local();

    return local == NULL ? NULL : local->fiber;
}

/* Leave the stack for ever; the poll returns PIRN_READY. */
PIRN_NORETURN static void leave_for_ever(struct pirn__fiber *fiber,
                                         enum pirn__fiber_state state)
{
    fiber->state = (uint8_t)state;
    pirn__fiber_leave(fiber);
    pirn__host_exit(&fiber->context, &fiber->local->host, PIRN_READY);
    __builtin_unreachable();
}

/* The bottom of every fiber's stack. */
static void fiber_entry(void *arg)
{
    struct pirn__fiber *fiber = arg;
    const struct pirn__fiber_plan *plan = &fiber->top->plan;

    fiber->outcome = plan->fn(plan->arg);
    leave_for_ever(fiber, PIRN__FIBER_DONE);
}

/* Never to be touched again: the extra reference keeps the cell. */
static PIRN__COLD void quarantine(struct pirn__fiber *fiber)
{
    struct pirn__task *task = pirn__fiber_task(fiber);
    struct pirn_runtime *rt = pirn__runtime_of(pirn__task_home(task));

    pirn__state_ref(pirn__task_state(task));
    pirn__stack_quarantine(fiber->top->plan.pool, &fiber->top->stack);
    /* relaxed: a statistic. */
    pirn__add(&rt->quarantined, 1, relaxed);
}

/* Its stack, or the promise of one, to who runs it, the thread whose record `local`
 * is.  Before it has left its group. */
static inline void give_stack(struct pirn__fiber *fiber,
                              struct pirn__stack_pool *pool,
                              const struct pirn__local *local,
                              struct pirn__stack *stack)
{
    struct pirn__task *task = pirn__fiber_task(fiber);
    struct pirn_runtime *rt = pirn__runtime_of(task->group->home);

    pirn__stack_give_back(pool, pirn__stacks_hand(pool, rt, local), stack);
}

static inline void drop_timer(struct pirn__fiber *fiber)
{
    if (fiber->has_timer)
        pirn__timer_drop(&fiber->top->timer);
}

/* Nobody stands on the stack any more. */
static inline void finish(struct pirn__fiber *fiber)
{
    struct pirn__stack stack;

    drop_timer(fiber);
    if (fiber->state == PIRN__FIBER_PANICKED) {
        quarantine(fiber);
        return;
    }
    pirn__context_dispose(&fiber->context);
    stack = fiber->top->stack;
    give_stack(fiber, fiber->top->plan.pool, fiber->local, &stack);
}

/* Have it run on its own stack until it waits or ends: which of the two it says
 * itself when it leaves, to who called the poll. */
static inline enum pirn_poll resume(struct pirn__fiber *fiber, pirn_cx *cx)
{
    struct pirn__turn *turn = cx->turn_;
    struct pirn__local *local = turn->local;

    fiber->cx = cx;
    turn->context = &fiber->context;
    fiber->local = local;
    local->waiter = &pirn__fiber_waiter_ops;
    local->fiber = fiber;
    /* Of the loop that polls: a fiber waits only where it may itself. */
    PIRN_DASSERT(local->no_suspend == 1);
    pirn__no_suspend_end(local);
    return PIRN__POLL_ENTERS;
}

static void start(struct pirn__fiber *fiber, struct pirn_runtime *rt,
                  const struct pirn__local *local)
{
    bool fp_controls = fiber->context.fp_controls;
    const struct pirn__fiber_plan plan = fiber->plan;
    struct pirn__stack_hand *hand = pirn__stacks_hand(plan.pool, rt, local);
    struct pirn__stack stack;
    size_t size;

    pirn__stack_redeem(plan.pool, hand, &stack);
    size = stack.size - PIRN__STACK_TOP_BYTES;
    fiber->top = (void *)((char *)stack.base + size);
    fiber->top->stack = stack;
    fiber->top->plan = plan;
    fiber->state = PIRN__FIBER_STARTED;
    fiber->awaiting = NULL;
    pirn__context_make(&fiber->context, stack.base, size, fiber_entry, fiber,
                       fp_controls);
}

/* The first poll, and each where overflows are reported, for it may be on another
 * thread.  Apart, so that a poll that only resumes the fiber makes no call. */
__attribute__((noinline)) static enum pirn_poll
prepare_and_resume(struct pirn__fiber *fiber, pirn_cx *cx)
{
    struct pirn_runtime *rt = pirn__runtime_of(cx->turn_->home);

    if (rt->overflow_report)
        pirn__overflow_watch_thread();
    if (fiber->state == PIRN__FIBER_NEW)
        start(fiber, rt, cx->turn_->local);
    fiber->is_prepared = !rt->overflow_report;
    return resume(fiber, cx);
}

static enum pirn_poll fiber_poll(pirn_future *self, pirn_cx *cx)
{
    struct pirn__fiber *fiber = fiber_of(self);

    return fiber->is_prepared ? resume(fiber, cx)
                              : prepare_and_resume(fiber, cx);
}

static void fiber_drop(pirn_future *self)
{
    struct pirn__stack promise = { .base = NULL };
    struct pirn__fiber *fiber = fiber_of(self);

    PIRN_ASSERT(fiber->state == PIRN__FIBER_NEW ||
                (fiber->state == PIRN__FIBER_STARTED &&
                 pirn__fiber_current() != fiber));
    if (fiber->state == PIRN__FIBER_NEW) {
        give_stack(fiber, fiber->plan.pool, pirn__local(), &promise);
        return;
    }
    if (fiber->awaiting != NULL)
        pirn_future_drop(fiber->awaiting);
    drop_timer(fiber);
    quarantine(fiber);
}

static void fiber_describe(const pirn_future *self, pirn_text *out)
{
    const struct pirn__fiber *fiber = fiber_of(self);

    if (fiber->state == PIRN__FIBER_NEW)
        pirn_text_append(out, "its first run");
    else if (fiber->awaiting != NULL)
        pirn_future_describe(fiber->awaiting, out);
    else
        pirn_text_append(out, "yield");
}

/* Asked once, by the runtime, when the fiber has left its stack. */
static int fiber_outcome(const pirn_future *self)
{
    struct pirn__fiber *fiber = fiber_of(self);

    finish(fiber);
    return fiber->outcome;
}

static const pirn_future_ops fiber_future_ops = {
    .poll = fiber_poll,
    .drop = fiber_drop,
    .describe = fiber_describe,
    .outcome = fiber_outcome,
};

static void fiber_prefetch(struct pirn__task *task)
{
    const struct pirn__fiber *fiber = fiber_of(pirn__task_future(task));

    if (fiber->state == PIRN__FIBER_NEW)
        return; /* it has no stack yet */
    pirn__prefetch((const char *)fiber->context.sp - STACK_BELOW_BYTES,
                   STACK_BELOW_BYTES + STACK_TOP_BYTES);
}

static const struct pirn__task_ops fiber_task_ops = {
    .injects = true,
    .prefetch = fiber_prefetch,
};

/* The pool for the stack that is asked for. */
static inline int find_pool(struct pirn_runtime *rt,
                            const pirn_spawn_options *options,
                            struct pirn__stack_pool **out)
{
    size_t size = options != NULL ? options->stack_size_bytes : 0;

    *out = size == 0 ? pirn__stacks_usual(rt) : NULL;
    return *out != NULL ? 0 : pirn__stacks_pool(rt, size, out);
}

/* With the checks made: have a stack promised, and spawn. */
static inline int spawn_fiber(const struct pirn__local *local,
                              struct pirn__home *home,
                              struct pirn__fiber *fiber,
                              const pirn_spawn_options *options,
                              const char *site, pirn_task **out)
{
    struct pirn_runtime *rt = pirn__runtime_of(home);
    struct pirn__stack_hand *hand;
    struct pirn__stack_pool *pool;
    struct pirn__stack promise;
    int rc = find_pool(rt, options, &pool);

    if (rc < 0)
        return rc;
    fiber->plan.pool = pool;
    hand = pirn__stacks_hand(pool, rt, local);
    rc = pirn__stack_promise(pool, hand, &promise);
    if (rc < 0)
        return rc;
    rc = pirn__spawn(home, &fiber_task_ops, &fiber->future, sizeof *fiber,
                     options, site, out);
    if (rc < 0)
        pirn__stack_give_back(pool, hand, &promise);
    return rc;
}

/* What the first poll does not set.  Field by field, for the whole is large and
 * most of it is not read before. */
static void init(struct pirn__fiber *fiber, pirn_fiber_fn *fn, void *arg,
                 const pirn_spawn_options *options)
{
    fiber->future.ops = &fiber_future_ops;
    fiber->state = PIRN__FIBER_NEW;
    fiber->is_prepared = false;
    fiber->shield = 0;
    fiber->has_timer = 0;
    fiber->has_clock = 0;
    fiber->context.fp_controls = options != NULL && options->fp_controls;
    fiber->plan.fn = fn;
    fiber->plan.arg = arg;
}

int pirn_go_with_at(pirn_fiber_fn *fn, void *arg,
                    const pirn_spawn_options *options, pirn_task **out,
                    const char *site)
{
    const struct pirn__local *local = pirn__local();
    struct pirn__fiber fiber;
    struct pirn__home *home;
    int rc;

    if (out != NULL)
        *out = NULL;
    if (fn == NULL || site == NULL)
        return -EINVAL;
    home = options != NULL && options->runtime != NULL
               ? pirn__home_of(options->runtime)
               : pirn__local_home_of(local);
    rc = pirn__spawn_check(home);
    if (rc < 0)
        return rc;
    init(&fiber, fn, arg, options);
    return spawn_fiber(local, home, &fiber, options, site, out);
}

int pirn_go_at(pirn_fiber_fn *fn, void *arg, const char *site)
{
    return pirn_go_with_at(fn, arg, NULL, NULL, site);
}

void pirn_fiber_shield_begin(void)
{
    struct pirn__fiber *fiber = pirn__fiber_current();

    if (fiber != NULL)
        fiber->shield++;
}

void pirn_fiber_shield_end(void)
{
    struct pirn__fiber *fiber = pirn__fiber_current();

    if (fiber == NULL)
        return;
    PIRN_REQUIRE(fiber->shield > 0, "a shield that ends has begun");
    fiber->shield--;
}

pirn_stack_usage pirn_fiber_stack_usage(void)
{
    struct pirn__fiber *fiber = pirn__fiber_current();

    if (fiber == NULL)
        return (pirn_stack_usage){0};
    return (pirn_stack_usage){
        .high_water_bytes = pirn__stack_high_water(&fiber->top->stack),
        .size_bytes = fiber->top->stack.size,
    };
}

void pirn_panic(const char *format, ...)
{
    struct pirn__local *local = pirn__local();
    struct pirn__fiber *fiber = local == NULL ? NULL : local->fiber;
    char message[sizeof local->turn->message];
    struct pirn__turn *turn;
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    /* Inside a poll the library's own locks may be held: there is no way out
     * that leaves the rest of the process sound. */
    if (fiber == NULL || local->no_suspend > 0)
        pirn__abort_at("pirn_panic", "panic outside a fiber", message);
    turn = fiber->cx->turn_;
    turn->failed = true;
    snprintf(turn->message, sizeof turn->message, "%s", message);
    fiber->outcome = PIRN_EPANIC;
    leave_for_ever(fiber, PIRN__FIBER_PANICKED);
}
