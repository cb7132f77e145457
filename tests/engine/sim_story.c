/* SPDX-License-Identifier: MIT */
/* tests/engine/sim_story.c - what stories are made of.
 *
 * A watched future has a table of operations in front of its own, which tells
 * the checkers of each poll and puts a counted waker in front of the poller's.
 * The watches of a run are freed when the next one begins.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine/sim_internal.h"
#include "sched/runtime.h"

/* A waker that is counted. */
struct proxy {
    pirn_waker inner; /* ours, while refs > 0 */
    uint32_t refs;
    struct proxy *next;
};

struct watch {
    pirn_future_ops ops;
    const pirn_future_ops *own;
    uint64_t number;
    struct proxy *proxies; /* the first: of the last poll */
    struct watch *next;
};

static struct watch *watches;
static uint64_t watch_count;

/* Wakers. */

static pirn_waker proxy_clone(const pirn_waker *self)
{
    struct proxy *proxy = self->data;

    if (proxy->refs++ == 0)
        proxy->inner = pirn_waker_clone(&proxy->inner);
    sim_see(SIM_FACT_WAKER_CLONED, 0);
    return *self;
}

static void proxy_drop(pirn_waker self)
{
    struct proxy *proxy = self.data;

    sim_see(SIM_FACT_WAKER_GONE, 0);
    if (proxy->refs-- == 1)
        pirn_waker_drop(pirn_waker_take(&proxy->inner));
}

static void proxy_wake_by_ref(const pirn_waker *self)
{
    const struct proxy *proxy = self->data;

    sim_pause("wake", 0);
    pirn_waker_wake_by_ref(&proxy->inner);
}

static void proxy_wake(pirn_waker self)
{
    proxy_wake_by_ref(&self);
    proxy_drop(self);
}

static const pirn_waker_ops proxy_ops = {
    .clone = proxy_clone,
    .wake = proxy_wake,
    .wake_by_ref = proxy_wake_by_ref,
    .drop = proxy_drop,
};

/* The proxy that somebody keeps already for this waker, or a new one, which only
 * borrows it. */
static struct proxy *proxy_for(struct watch *watch, const pirn_waker *waker)
{
    struct proxy *proxy = watch->proxies;

    if (proxy != NULL && proxy->refs > 0 &&
        pirn_waker_same(&proxy->inner, waker))
        return proxy;
    if (proxy == NULL || proxy->refs > 0) {
        proxy = calloc(1, sizeof *proxy);
        proxy->next = watch->proxies;
        watch->proxies = proxy;
    }
    proxy->inner = *waker;
    return proxy;
}

/* Futures. */

static struct watch *watch_of(const pirn_future *future)
{
    return PIRN_CONTAINER_OF(future->ops, struct watch, ops);
}

static enum pirn_poll watch_poll(pirn_future *self, pirn_cx *cx)
{
    struct watch *watch = watch_of(self);
    pirn_waker waker = {proxy_for(watch, cx->waker), &proxy_ops};
    pirn_cx inner = *cx;
    enum pirn_poll poll;

    inner.waker = &waker;
    sim_see(SIM_FACT_POLL_BEGUN, watch->number);
    sim_pause("poll begins", watch->number);
    poll = watch->own->poll(self, &inner);
    sim_pause("poll ends", watch->number);
    sim_see(SIM_FACT_POLL_ENDED, watch->number);
    return poll;
}

static void watch_drop(pirn_future *self)
{
    watch_of(self)->own->drop(self);
}

static void watch_discard(pirn_future *self)
{
    watch_of(self)->own->discard(self);
}

static void watch_describe(const pirn_future *self, pirn_text *out)
{
    watch_of(self)->own->describe(self, out);
}

static int watch_outcome(const pirn_future *self)
{
    return watch_of(self)->own->outcome(self);
}

void sim_watch(pirn_future *future)
{
    struct watch *watch = calloc(1, sizeof *watch);
    const pirn_future_ops *own = future->ops;

    watch->own = own;
    watch->number = watch_count++;
    watch->ops = (pirn_future_ops){
        .poll = watch_poll,
        .drop = watch_drop,
        .discard = own->discard == NULL ? NULL : watch_discard,
        .describe = own->describe == NULL ? NULL : watch_describe,
        .outcome = own->outcome == NULL ? NULL : watch_outcome,
    };
    watch->next = watches;
    watches = watch;
    future->ops = &watch->ops;
}

void sim_story_reset(void)
{
    while (watches != NULL) {
        struct watch *next = watches->next;

        while (watches->proxies != NULL) {
            struct proxy *proxy = watches->proxies;

            watches->proxies = proxy->next;
            free(proxy);
        }
        free(watches);
        watches = next;
    }
    watch_count = 0;
}

/* Waiting. */

int sim_await(pirn_future *future, pirn_deadline deadline)
{
    int rc;

    sim_watch(future);
    rc = pirn_await(future, deadline);
    if (rc == -ETIMEDOUT && deadline.ns != 0)
        sim_see(SIM_FACT_TIME_CAME, deadline.ns);
    return rc;
}

int sim_sleep_ms(uint32_t ms)
{
    pirn_deadline until = {sim_now_ns() + ms * UINT64_C(1000000)};
    pirn_sleep_op op;
    int rc;

    if (sim_chance(500)) {
        rc = pirn_sleep(until);
    } else {
        pirn_sleep_init(&op, until);
        rc = sim_await(&op.future, PIRN_NEVER);
        if (rc == 0)
            rc = pirn_sleep_rc(&op);
    }
    if (rc == 0)
        sim_see(SIM_FACT_TIME_CAME, until.ns);
    return rc;
}

int sim_nap(void *ms)
{
    return sim_sleep_ms(*(uint32_t *)ms);
}

/* The runtime of a story. */

static void *heap_take(void *ctx, size_t size, size_t align)
{
    void *memory = align <= _Alignof(max_align_t)
                       ? malloc(size)
                       : aligned_alloc(align, (size + align - 1) & -align);

    (void)ctx;
    sim_see(SIM_FACT_MEMORY_TAKEN, size);
    sim_pause("take", size);
    return memory;
}

static void heap_give(void *ctx, void *memory, size_t size, size_t align)
{
    (void)ctx;
    (void)align;
    sim_pause("give", size);
    sim_see(SIM_FACT_MEMORY_GIVEN, size);
    free(memory);
}

static const pirn_alloc heap = {.take = heap_take, .give = heap_give};

static void on_spawn(void *arg, const pirn_task_event *event)
{
    (void)arg;
    sim_see(SIM_FACT_TASK_SPAWNED, event->id.value);
    sim_pause("task spawned", 0);
}

static void on_end(void *arg, const pirn_task_event *event)
{
    (void)arg;
    sim_see(SIM_FACT_TASK_ENDED, event->id.value);
    sim_pause("task ended", (uint64_t)event->outcome);
}

static void on_move(void *arg, uint32_t worker)
{
    (void)arg;
    sim_pause("worker parks or unparks", worker);
}

/* Unjoined failures are part of the stories. */
static void on_failure(void *arg, const pirn_failure *failure)
{
    (void)arg;
    sim_pause("failure", (uint64_t)failure->outcome);
}

/* The home's table with one function replaced; of the running story. */
static struct pirn__home_ops dropping_ops;
static void (*submit_before)(struct pirn__home *home, struct pirn__task *task,
                             enum pirn__origin origin);

static void submit_or_drop(struct pirn__home *home, struct pirn__task *task,
                           enum pirn__origin origin)
{
    struct pirn_runtime *rt = pirn__runtime_of(home);

    if (pirn__runtime_phase(rt) != PIRN__PHASE_OPEN &&
        sim_planted(SIM_PLANT_DROPPED_TASK, 1))
        return;
    submit_before(home, task, origin);
}

static void plant_in(pirn_runtime *rt)
{
    if (sim_options()->plant != SIM_PLANT_DROPPED_TASK)
        return;
    dropping_ops = *rt->home.ops;
    submit_before = dropping_ops.submit;
    dropping_ops.submit = submit_or_drop;
    rt->home.ops = &dropping_ops;
}

struct sim_program sim_program_begin(void)
{
    const pirn_runtime_options options = {
        .alloc = &heap,
        .workers = sim_options()->workers,
        .pool = sim_options()->computational != 0 ? PIRN_POOL_COMPUTATIONAL
                                                  : PIRN_POOL_STEALABLE,
        .seed = 1 + sim_below(1000),
        .blocking_threads = 3,
        .stack_size_bytes = 64 << 10,
        .shared_interval = 1 + sim_below(61),
        .event_interval = 1 + sim_below(128),
        .lifo_off = sim_chance(200),
        .on_task_spawn = on_spawn,
        .on_task_end = on_end,
        .on_park = on_move,
        .on_unpark = on_move,
        .on_failure = on_failure,
    };
    struct sim_program program = {0};
    int rc = pirn_runtime_new(&options, &program.rt);

    /* Ends: the world gets calm. */
    while (rc == -EAGAIN || rc == -EMFILE) {
        rc = pirn_sleep((pirn_deadline){sim_now_ns() + 10000000});
        sim_check(rc == 0, "a plain thread can sleep");
        rc = pirn_runtime_new(&options, &program.rt);
    }
    sim_check(rc == 0, "a runtime can be made");
    if (rc == 0)
        plant_in(program.rt);
    (void)pirn_runtime_enter(program.rt);
    return program;
}

int sim_program_run(struct sim_program *program, pirn_fiber_fn *fn, void *arg)
{
    pirn_join_op join;
    pirn_task *task;
    int rc = pirn_go_with(fn, arg, NULL, &task);

    if (rc < 0)
        return rc;
    pirn_join_init(&join, task);
    rc = pirn_block_on(program->rt, &join.future, PIRN_NEVER);
    if (rc == 0)
        rc = join.rc;
    pirn_task_unref(task);
    return rc < 0 ? rc : join.outcome;
}

void sim_program_shutdown(struct sim_program *program, uint32_t ms)
{
    const pirn_report *report = &program->report;
    uint64_t ended;
    int rc;

    rc = pirn_runtime_shutdown(
        program->rt, (pirn_deadline){sim_now_ns() + ms * UINT64_C(1000000)},
        &program->report);
    sim_check(rc == 0 || rc == -ETIMEDOUT, "shutdown answers as documented");
    sim_check((rc == 0) == report->in_time, "the report says the same");
    ended = report->completed + report->failed + report->cancelled +
            report->aborted + report->still_running;
    sim_check(report->spawned == ended, "the report accounts for all tasks");
    if (!report->in_time)
        sim_see(SIM_FACT_ABORTED, report->aborted);
}

void sim_program_end(struct sim_program *program)
{
    (void)pirn_runtime_enter(NULL);
    pirn_runtime_unref(program->rt);
    program->rt = NULL;
}
