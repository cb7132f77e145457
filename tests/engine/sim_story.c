/* SPDX-License-Identifier: MIT */
/* tests/engine/sim_story.c - what stories are made of.
 *
 * A watched future has a table of operations in front of its own, which tells
 * the checkers of each poll and puts a counted waker in front of the poller's.
 * The watches of a run are freed when the next one begins.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "engine/sim_internal.h"
#include "sched/runtime.h"

struct watch;

/* A waker that is counted. */
struct proxy {
    pirn_waker inner; /* empty without refs */
    uint32_t refs;
    struct watch *watch;
    struct proxy *next;
};

struct watch {
    pirn_future_ops ops;
    const pirn_future_ops *own;
    uint64_t number;
    bool gone;             /* ready, or dropped */
    struct proxy *polled;  /* of the last poll */
    struct proxy *proxies;
    struct watch *next;
};

static struct watch *watches;
static uint64_t watch_count;

/* Wakers. */

static pirn_waker proxy_clone(const pirn_waker *self)
{
    struct proxy *proxy = self->data;

    proxy->refs++;
    sim_see(SIM_FACT_WAKER_CLONED, 0);
    return *self;
}

static void give_proxy(struct proxy *proxy)
{
    if (--proxy->refs == 0)
        pirn_waker_drop(pirn_waker_take(&proxy->inner));
}

static void proxy_drop(pirn_waker self)
{
    sim_see(SIM_FACT_WAKER_GONE, 0);
    give_proxy(self.data);
}

static void proxy_wake_by_ref(const pirn_waker *self)
{
    const struct proxy *proxy = self->data;
    const struct watch *watch = proxy->watch;

    /* An older waker may be of somebody who gave the future away. */
    if (!watch->gone && watch->polled == proxy)
        sim_see(SIM_FACT_WOKEN, watch->number);
    sim_pause("wake", watch->number);
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

/* The proxy that somebody keeps already for this waker, or a new one; to be
 * given back after the poll. */
static struct proxy *take_proxy(struct watch *watch, const pirn_waker *waker)
{
    struct proxy *proxy = watch->proxies;

    if (proxy != NULL && proxy->refs > 0 &&
        pirn_waker_same(&proxy->inner, waker)) {
        proxy->refs++;
        return proxy;
    }
    if (proxy == NULL || proxy->refs > 0) {
        proxy = calloc(1, sizeof *proxy);
        proxy->watch = watch;
        proxy->next = watch->proxies;
        watch->proxies = proxy;
    }
    proxy->inner = pirn_waker_clone(waker);
    proxy->refs = 1;
    return proxy;
}

/* Futures. */

static struct watch *watch_of(const pirn_future *future)
{
    return PIRN_CONTAINER_OF(future->ops, struct watch, ops);
}

static void end_watch(struct watch *watch)
{
    watch->gone = true;
    sim_see(SIM_FACT_FUTURE_GONE, watch->number);
}

static enum pirn_poll watch_poll(pirn_future *self, pirn_cx *cx)
{
    struct watch *watch = watch_of(self);
    struct proxy *proxy = take_proxy(watch, cx->waker);
    const pirn_waker waker = {proxy, &proxy_ops};
    pirn_cx inner = *cx;
    enum pirn_poll poll;

    inner.waker = &waker;
    watch->polled = proxy;
    sim_see(SIM_FACT_POLL_BEGUN, watch->number);
    sim_pause("poll begins", watch->number);
    poll = watch->own->poll(self, &inner);
    sim_pause("poll ends", watch->number);
    sim_see(SIM_FACT_POLL_ENDED, watch->number);
    if (poll == PIRN_READY)
        end_watch(watch);
    give_proxy(proxy);
    return poll;
}

static void watch_drop(pirn_future *self)
{
    struct watch *watch = watch_of(self);

    end_watch(watch);
    watch->own->drop(self);
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

void sim_block_ms(uint32_t ms)
{
    const pirn_deadline until = {sim_now_ns() + ms * UINT64_C(1000000)};
    uint32_t nothing = 0;

    while (sim_now_ns() < until.ns)
        (void)pirn__sys->futex_wait(&nothing, 0, until);
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
    program.by_turns = options.workers == 0 && options.pool == 0 &&
                       sim_chance(300);
    if (rc == 0)
        plant_in(program.rt);
    (void)pirn_runtime_enter(program.rt);
    return program;
}

/* A program with a loop of its own: it polls what the runtime waits for. */
static int drive_by_turns(pirn_runtime *rt, pirn_task *task)
{
    struct pollfd fd = {.fd = pirn_runtime_fd(rt), .events = POLLIN};
    int outcome;
    int rc = 0;

    /* Ends with the task. */
    while (!pirn_task_is_done(task)) {
        rc = pirn_runtime_turn(rt, pirn_after_us(1 + sim_below(1000)));
        if (rc < 0)
            return rc;
        if (!pirn_task_is_done(task))
            (void)pirn__sys->poll(&fd, 1, pirn_runtime_next_deadline(rt));
    }
    rc = pirn_task_join(task, PIRN_EXPIRED, &outcome);
    return rc < 0 ? rc : outcome;
}

static int block_on_join(pirn_runtime *rt, pirn_task *task)
{
    pirn_join_op join;
    int rc;

    pirn_join_init(&join, task);
    rc = pirn_block_on(rt, &join.future, PIRN_NEVER);
    if (rc == 0)
        rc = join.rc;
    return rc < 0 ? rc : join.outcome;
}

int sim_program_run(struct sim_program *program, pirn_fiber_fn *fn, void *arg)
{
    pirn_task *task;
    int rc = pirn_go_with(fn, arg, NULL, &task);

    if (rc < 0)
        return rc;
    rc = program->by_turns ? drive_by_turns(program->rt, task)
                           : block_on_join(program->rt, task);
    pirn_task_unref(task);
    return rc;
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
