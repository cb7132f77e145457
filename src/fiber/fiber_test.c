/* SPDX-License-Identifier: MIT */
/* src/fiber/fiber_test.c - the life of a fiber: started, switched, ended,
 * cancelled, aborted, panicked; its stack and its floating-point words. */
#include "fiber/rig_test.h"

#include "sys/sys.h"

#include <sys/wait.h>
#include <unistd.h>

#include "engine/one_thread.h"
#include "fiber/fiber.h"
#include "sys/switch_frame.h"

__attribute__((noinline)) static double descend(unsigned seed, int depth)
{
    volatile unsigned words[32];
    volatile double number = seed * 1.5 + depth;

    for (unsigned i = 0; i < 32; i++)
        words[i] = seed * 1000 + i + (unsigned)depth;
    EXPECT_EQ(0, pirn_yield());
    double below = depth > 0 ? descend(seed, depth - 1) : 0;

    for (unsigned i = 0; i < 32; i++)
        EXPECT_EQ(seed * 1000 + i + (unsigned)depth, words[i]);
    EXPECT(number == seed * 1.5 + depth);
    return below + number;
}

static int keep_locals(void *arg)
{
    unsigned seed = *(unsigned *)arg;
    double sum = descend(seed, 5);

    EXPECT(sum == 6 * (seed * 1.5) + 15);
    return (int)seed;
}

/* Goal: a fiber's locals survive its switches.
 * Method: many fibers fill locals from their number, yield at several depths of
 * calls, and check. */
TEST(fiber_keeps_its_locals_across_switches)
{
    enum { FIBERS = 20 };
    pirn_task *tasks[FIBERS];
    unsigned seeds[FIBERS];
    struct rig rig;

    rig_begin(&rig);
    for (unsigned i = 0; i < FIBERS; i++) {
        seeds[i] = i + 1;
        tasks[i] = rig_go(keep_locals, &seeds[i]);
    }
    rig_turn(&rig);
    for (int i = 0; i < FIBERS; i++)
        EXPECT_EQ(i + 1, rig_outcome(tasks[i]));
    rig_end(&rig);
}

static int return_arg(void *arg)
{
    return *(int *)arg;
}

/* Goal: what a fiber returns is its outcome; a bad one that nobody joins
 * reaches the hook; a fiber has no output to take.
 * Method: each sign, with and without a handle. */
TEST(fiber_outcome_reaches_joiner_or_hook)
{
    static int outcomes[] = {0, 12, -EIO, -ECANCELED};
    struct rig rig;
    char output[256];

    rig_begin(&rig);
    for (int i = 0; i < 4; i++) {
        const pirn_spawn_options options = {.name = "loose"};
        pirn_task *task = rig_go(return_arg, &outcomes[i]);

        EXPECT_EQ(0, pirn_go_with(return_arg, &outcomes[i], &options, NULL));
        rig_turn(&rig);
        EXPECT_EQ(-EINVAL, pirn_task_take_output(task, output,
                                                 sizeof(struct pirn__fiber)));
        EXPECT_EQ(outcomes[i], rig_outcome(task));
    }
    EXPECT_EQ(1, rig.fails);
    EXPECT_EQ(-EIO, rig.fail_outcome);
    EXPECT_STR_EQ("loose", rig.fail_name);
    EXPECT_STR_EQ("", rig.fail_message);
    rig_end(&rig);
    EXPECT_EQ(8, rig.report.spawned);
    EXPECT_EQ(4, rig.report.completed);
    EXPECT_EQ(2, rig.report.failed);
    EXPECT_EQ(2, rig.report.cancelled);
}

/* Goal: each stack size in range is taken, each other refused; the argument is
 * still the caller's.
 * Method: around both ends. */
TEST(fiber_stack_size_out_of_range_is_refused)
{
    static const struct {
        size_t size;
        int rc;
    } tries[] = {
        {1, -EINVAL},
        {16 * 1024 - 1, -EINVAL},
        {16 * 1024, 0},
        {100000, 0},
        {(size_t)1 << 30, 0},
        {((size_t)1 << 30) + 1, -EINVAL},
        {SIZE_MAX, -EINVAL},
    };
    struct rig rig;
    int seven = 7;

    rig_begin(&rig);
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        const pirn_spawn_options options = {.stack_size_bytes = tries[i].size};
        pirn_task *task = (pirn_task *)(void *)&rig;

        EXPECT_EQ(tries[i].rc, pirn_go_with(return_arg, &seven, &options, &task));
        EXPECT_EQ(tries[i].rc < 0, task == NULL);
        rig_turn(&rig);
        if (task != NULL)
            EXPECT_EQ(7, rig_outcome(task));
    }
    EXPECT_EQ(0, rig_info(&rig).stacks);
    rig_end(&rig);
}

/* Start one with a stack of another size, the first of that size. */
static int start_larger(void *arg)
{
    const pirn_spawn_options options = {.stack_size_bytes = (size_t)1 << 20};

    return pirn_go_with(return_arg, arg, &options, NULL);
}

/* Goal: the smallest stack has room for all that a start may do, in a build
 * without optimisation, too.
 * Method: one there starts the first fiber of another size. */
TEST(fiber_on_the_smallest_stack_may_start_a_larger_one)
{
    const pirn_spawn_options options = {.stack_size_bytes = 16 * 1024};
    pirn_task *task;
    struct rig rig;
    int zero = 0;

    rig_begin(&rig);
    EXPECT_EQ(0, pirn_go_with(start_larger, &zero, &options, &task));
    rig_turn(&rig);
    EXPECT_EQ(0, rig_outcome(task));
    rig_end(&rig);
    EXPECT_EQ(2, rig.report.completed);
}

/* Goal: nonsense, and a place without a runtime, have their own codes.
 * Method: each of them; *out becomes NULL. */
TEST(fiber_spawn_refusals_have_their_codes)
{
    pirn_task *task = (pirn_task *)(void *)&task;
    pirn_spawn_options options = {0};
    struct rig rig;
    int zero = 0;

    EXPECT_EQ(PIRN_ENORUNTIME, pirn_go(return_arg, &zero));
    EXPECT_EQ(PIRN_ENORUNTIME, pirn_go_with(return_arg, &zero, &options, &task));
    EXPECT_PTR_EQ(NULL, task);
    rig_begin(&rig);
    EXPECT_EQ(-EINVAL, pirn_go(NULL, &zero));
    EXPECT_EQ(-EINVAL, pirn_go_with_at(return_arg, &zero, NULL, NULL, NULL));
    EXPECT_EQ(0, pirn_runtime_shutdown(rig.rt, PIRN_EXPIRED, NULL));
    task = (pirn_task *)(void *)&task;
    EXPECT_EQ(PIRN_ESHUTDOWN, pirn_go_with(return_arg, &zero, NULL, &task));
    EXPECT_PTR_EQ(NULL, task);
    rig_end(&rig);
}

/* Goal: in a forked child the parent's runtime refuses.
 * Method: a child that says so by its exit status. */
TEST(fiber_spawn_in_a_forked_child_is_refused)
{
    struct rig rig;
    int zero = 0;
    int status = -1;
    pid_t child;

    rig_begin(&rig);
    child = fork();
    if (child == 0)
        _exit(pirn_go(return_arg, &zero) == PIRN_EFORKED ? 0 : 1);
    EXPECT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
    rig_end(&rig);
}

/* Goal: memory that runs out at any allocation of a spawn refuses it, and
 * nothing is lost.
 * Method: fail the first, the second, ... until it succeeds. */
TEST(fiber_without_memory_is_refused_whole)
{
    const pirn_spawn_options options = {.name = "named"};
    bool spawned = false;
    int seven = 7;

    for (int nth = 1; !spawned; nth++) {
        struct rig rig;
        pirn_task *task;
        int rc;

        REQUIRE(nth < 20);
        rig_begin(&rig);
        rig.fail_at = rig.calls + nth;
        rc = pirn_go_with(return_arg, &seven, &options, &task);
        spawned = rc == 0;
        EXPECT_EQ(spawned ? 0 : -ENOMEM, rc);
        EXPECT_EQ(spawned, task != NULL);
        rig_turn(&rig);
        EXPECT_EQ(0, rig_info(&rig).stacks);
        if (spawned)
            EXPECT_EQ(7, rig_outcome(task));
        rig_end(&rig);
    }
}

static int look_at_self(void *arg)
{
    EXPECT_PTR_EQ(arg, pirn_task_context());
    EXPECT_NE(0, pirn_task_self().value);
    EXPECT(pirn_runtime_current() != NULL);
    EXPECT_EQ(0, pirn_yield());
    EXPECT_PTR_EQ(arg, pirn_task_context());
    return 0;
}

/* Goal: a fiber knows itself, before and after a switch, and is known by name
 * and site.
 * Method: context, id, runtime; a second fiber runs in between. */
TEST(fiber_knows_itself)
{
    static int first, second;
    const pirn_spawn_options one = {.name = "one", .context = &first};
    const pirn_spawn_options two = {.name = "two", .context = &second};
    struct rig rig;
    pirn_task *a, *b;

    rig_begin(&rig);
    EXPECT_EQ(0, pirn_go_with(look_at_self, &first, &one, &a));
    EXPECT_EQ(0, pirn_go_with(look_at_self, &second, &two, &b));
    EXPECT_STR_EQ("one", pirn_task_name(a));
    EXPECT(strstr(pirn_task_site(b), "fiber_test.c:") != NULL);
    rig_turn(&rig);
    EXPECT_EQ(0, rig_outcome(a));
    EXPECT_EQ(0, rig_outcome(b));
    rig_end(&rig);
}

/* Goal: a fiber aborted before its first run never runs; its stack is given
 * back, for nothing is on it.
 * Method: abort at once. */
TEST(fiber_aborted_before_its_first_run_leaves_nothing)
{
    struct rig rig;
    pirn_task *task;
    int seven = 7;

    rig_begin(&rig);
    task = rig_go(return_arg, &seven);
    pirn_task_abort(task);
    rig_turn(&rig);
    EXPECT_EQ(PIRN_EABORTED, rig_outcome(task));
    EXPECT_EQ(0, rig_info(&rig).stacks);
    rig_end(&rig);
    EXPECT_EQ(1, rig.report.aborted);
}

struct sleeper {
    struct gate gate;
    int resumed;
};

static int wait_for_gate(void *arg)
{
    struct sleeper *s = arg;

    pirn_fiber_shield_begin();
    if (pirn_await(&s->gate.future, pirn_after_ms(1000)) == 0)
        s->resumed++;
    s->resumed++;
    return 0;
}

/* Goal: a suspended fiber that is aborted is not resumed: its waits are
 * withdrawn, its stack and cell stay behind and are counted.
 * Method: abort one that waits with a deadline under a shield. */
TEST(fiber_aborted_while_suspended_is_quarantined)
{
    static struct sleeper s = {.gate = GATE};
    struct rig *rig = malloc(sizeof *rig); /* outlives the test */
    pirn_task *task;

    REQUIRE(rig != NULL);
    rig_begin(rig);
    task = rig_go(wait_for_gate, &s);
    rig_turn(rig);
    EXPECT_EQ(1, rig_info(rig).timers);
    pirn_task_abort(task);
    EXPECT_EQ(0, s.gate.drops);
    rig_turn(rig);
    EXPECT_EQ(0, s.resumed);
    EXPECT_EQ(1, s.gate.drops);
    EXPECT_EQ(0, rig_info(rig).timers);
    EXPECT_EQ(1, rig_info(rig).stacks);
    EXPECT_EQ(PIRN_EABORTED, rig_outcome(task));
    EXPECT_EQ(0, rig->fails);
    rig_end_quarantined(rig, 1);
    EXPECT_EQ(1, rig->report.aborted);
}

/* Goal: a suspended fiber is held by pirn_id_suspend() and goes on when woken
 * by id; its wake meanwhile is remembered.
 * Method: open its gate while it is held. */
TEST(fiber_held_by_id_goes_on_when_woken_by_id)
{
    struct sleeper s = {.gate = GATE};
    struct rig rig;
    pirn_task *task;

    rig_begin(&rig);
    task = rig_go(wait_for_gate, &s);
    rig_turn(&rig);
    EXPECT_EQ(0, pirn_id_suspend(pirn_task_get_id(task)));
    gate_open(&s.gate);
    rig_turn(&rig);
    EXPECT_EQ(0, s.resumed);
    EXPECT_EQ(0, pirn_id_wake(pirn_task_get_id(task)));
    rig_turn(&rig);
    EXPECT_EQ(2, s.resumed);
    EXPECT_EQ(0, rig_outcome(task));
    rig_end(&rig);
}

/* Goal: wakers and handles outlive the runtime: a wake does nothing any more,
 * outcome and id can still be asked for, and the memory goes with the last of
 * them, once.
 * Method: keep both over the end of the runtime, in both orders. */
TEST(fiber_handle_and_waker_outlive_the_runtime)
{
    for (int order = 0; order < 2; order++) {
        struct sleeper s = {.gate = GATE};
        enum pirn_task_state state;
        struct rig rig;
        pirn_waker waker;
        pirn_task *task;

        rig_begin(&rig);
        task = rig_go(wait_for_gate, &s);
        rig_turn(&rig);
        waker = pirn_waker_clone(&s.gate.waker);
        gate_open(&s.gate);
        EXPECT_EQ(0, rig_stop(&rig));
        EXPECT_EQ(2, s.resumed);
        EXPECT_EQ(0, rig_dones(&rig));
        pirn_waker_wake_by_ref(&waker);
        EXPECT_EQ(0, pirn_id_state(pirn_task_get_id(task), &state));
        EXPECT_EQ(PIRN_TASK_DONE, state);
        pirn_task_cancel(task);
        if (order == 0)
            pirn_waker_wake(waker);
        EXPECT_EQ(0, rig_dones(&rig));
        EXPECT_EQ(0, rig_outcome(task));
        if (order == 1) {
            EXPECT_EQ(0, rig_dones(&rig));
            pirn_waker_drop(waker);
        }
        EXPECT_EQ(1, rig_dones(&rig));
        EXPECT_EQ(0, rig_pieces(&rig));
    }
}

/* Panic. */

__attribute__((noinline)) static void panic_below(int page)
{
    volatile char frame[256];

    frame[0] = (char)page;
    pirn_panic("lost page %d", frame[0]);
}

static int panic_after_a_switch(void *arg)
{
    (void)arg;
    EXPECT_EQ(0, pirn_yield());
    panic_below(7);
    return 0;
}

/* Goal: a panic ends the fiber at once; its joiner gets PIRN_EPANIC, its words
 * go to the hook if nobody joins, and what it leaves is counted; others run on.
 * Method: one joined, one loose, one whose handle goes later, one bystander. */
TEST(fiber_that_panics_is_quarantined)
{
    struct rig *rig = malloc(sizeof *rig); /* outlives the test */
    const pirn_spawn_options options = {.name = "pager"};
    pirn_task *joined, *unseen, *bystander;
    unsigned seed = 3;

    REQUIRE(rig != NULL);
    rig_begin(rig);
    joined = rig_go(panic_after_a_switch, NULL);
    EXPECT_EQ(0, pirn_go_with(panic_after_a_switch, NULL, &options, NULL));
    unseen = rig_go(panic_after_a_switch, NULL);
    bystander = rig_go(keep_locals, &seed);
    rig_turn(rig);
    EXPECT_EQ(PIRN_EPANIC, rig_outcome(joined));
    EXPECT_EQ(3, rig_outcome(bystander));
    EXPECT_EQ(1, rig->fails);
    EXPECT_EQ(PIRN_EPANIC, rig->fail_outcome);
    EXPECT_STR_EQ("pager", rig->fail_name);
    EXPECT_STR_EQ("lost page 7", rig->fail_message);
    rig->fail_message[0] = '\0';
    pirn_task_unref(unseen);
    EXPECT_EQ(2, rig->fails);
    EXPECT_STR_EQ("lost page 7", rig->fail_message);
    EXPECT_EQ(3, rig_info(rig).stacks);
    rig_end_quarantined(rig, 3);
    EXPECT_EQ(3, rig->report.failed);
}

static void panic_outside(void *arg)
{
    pirn_panic("%s", (const char *)arg);
}

static int panic_in_a_poll(struct gate *gate)
{
    (void)gate;
    pirn_panic("in a poll");
    return 0;
}

static int await_panic(void *arg)
{
    struct gate gate = GATE;

    (void)arg;
    gate.on_poll = panic_in_a_poll;
    return pirn_await(&gate.future, PIRN_NEVER);
}

static void run_panic_in_a_poll(void *arg)
{
    EXPECT_EQ(0, run_on_one_thread(await_panic, arg));
}

/* Goal: where no fiber could be left behind, a panic ends the process with its
 * message.
 * Method: on a plain thread, and inside a poll that a fiber's await drives. */
TEST(panic_outside_a_fiber_ends_the_process)
{
    static char words[] = "no way on";

    EXPECT_DEATH(panic_outside, words, "no way on");
    EXPECT_DEATH(run_panic_in_a_poll, NULL, "in a poll");
}

/* Floating point.  The portable switch keeps all of it anyway. */

#if !defined(PIRN_PORTABLE_SWITCH) && \
    (defined(__x86_64__) || defined(__aarch64__))

/* 1/3 is not exact, so its last bit tells how the processor rounds. */
static bool rounds_up(void)
{
    volatile double one = 1, three = 3;

    return one / three > 0.33333333333333331;
}

static void set_round_up(void)
{
#if defined(__aarch64__)
    pirn__switch_fp_write(pirn__switch_fp_read() | UINT64_C(1) << 22);
#else
    pirn__switch_fp_write(pirn__switch_fp_read() | UINT64_C(0x4000) |
                          UINT64_C(0x800) << 32);
#endif
}

struct rounder {
    bool before, after;
};

static int round_upward(void *arg)
{
    struct rounder *seen = arg;

    seen->before = rounds_up();
    set_round_up();
    EXPECT_EQ(0, pirn_yield());
    seen->after = rounds_up();
    return 0;
}

static int look_at_rounding(void *arg)
{
    struct rounder *seen = arg;

    seen->before = rounds_up();
    EXPECT_EQ(0, pirn_yield());
    seen->after = rounds_up();
    return 0;
}

/* Goal: with fp_controls a fiber's rounding mode is its own and survives its
 * switches.
 * Method: one changes it, another and the thread look. */
TEST(fiber_with_fp_controls_has_its_own_rounding)
{
    const pirn_spawn_options options = {.fp_controls = true};
    struct rounder own = {true, false}, other = {true, true};
    uint64_t words = pirn__switch_fp_read();
    struct rig rig;
    bool works;

    set_round_up();
    works = rounds_up();
    pirn__switch_fp_write(words);
    if (!works)
        SKIP("rounding cannot be set here, as under Valgrind");
    rig_begin(&rig);
    EXPECT_EQ(0, pirn_go_with(round_upward, &own, &options, NULL));
    EXPECT_EQ(0, pirn_go(look_at_rounding, &other));
    rig_turn(&rig);
    EXPECT(!own.before);
    EXPECT(own.after);
    EXPECT(!other.before);
    EXPECT(!other.after);
    EXPECT(!rounds_up());
    rig_end(&rig);
}

#endif

/* Stacks. */

struct diver {
    size_t bytes;      /* to go down by */
    uintptr_t deepest; /* address that was touched */
    pirn_stack_usage before, after;
    size_t used; /* in truth, from the top */
};

/* ASan would put the blocks elsewhere. */
__attribute__((noinline, no_sanitize_address)) static void
dive(struct diver *diver, uintptr_t top)
{
    volatile char block[1024];

    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (char)i;
    if (top - (uintptr_t)block < diver->bytes)
        dive(diver, top);
    else
        diver->deepest = (uintptr_t)block;
    block[0] = block[1];
}

static int measure_dive(void *arg)
{
    struct diver *diver = arg;
    struct pirn__fiber *fiber = pirn__fiber_current();
    uintptr_t top = (uintptr_t)fiber->top->stack.base +
                    fiber->top->stack.size;

    diver->before = pirn_fiber_stack_usage();
    dive(diver, top);
    diver->after = pirn_fiber_stack_usage();
    diver->used = top - diver->deepest;
    return 0;
}

/* Goal: the high-water mark of a stack is right to within a page.
 * Method: go down by a known distance and compare. */
TEST(fiber_stack_usage_is_right_to_a_page)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct diver diver = {.bytes = 100 * 1024};
    const pirn_spawn_options options = {.stack_size_bytes = 256 * 1024};
    struct rig rig;

    rig_begin(&rig);
    EXPECT_EQ(0, pirn_go_with(measure_dive, &diver, &options, NULL));
    rig_turn(&rig);
    EXPECT_GE(diver.before.size_bytes, 256 * 1024);
    EXPECT_EQ(diver.before.size_bytes, diver.after.size_bytes);
    EXPECT_LE(diver.before.high_water_bytes, 32 * 1024);
    EXPECT_GE(diver.after.high_water_bytes + page, diver.used);
    /* Calls made at the bottom may have touched one page more. */
    EXPECT_LE(diver.after.high_water_bytes, diver.used + 2 * page);
    EXPECT_EQ(0, pirn_fiber_stack_usage().size_bytes);
    EXPECT_EQ(0, pirn_fiber_stack_usage().high_water_bytes);
    rig_end(&rig);
}

static int return_zero(void *arg)
{
    (void)arg;
    return 0;
}

/* Goal: stacks are used again, and none stays in use.
 * Method: many fibers one after the other; the report and the allocator agree
 * at the end. */
TEST(fiber_stacks_are_used_again)
{
    size_t count = test_size(200, 5000, 100000);
    struct rig rig;

    rig_begin(&rig);
    for (size_t i = 0; i < count; i++) {
        EXPECT_EQ(0, pirn_go(return_zero, NULL));
        if (i % 16 == 0)
            rig_turn(&rig);
    }
    rig_turn(&rig);
    EXPECT_EQ(0, rig_info(&rig).stacks);
    rig_end(&rig);
    EXPECT_EQ(count, rig.report.completed);
}

static int sleep_until_cancelled(void *arg)
{
    int rc = pirn_sleep(PIRN_NEVER);

    (void)arg;
    return rc;
}

/* Goal: a hundred thousand fibers start under the default limits, or the spawn
 * says -ENOMEM at the limit that the guards have.
 * Method: spawn them, let each wait, and end them by the shutdown. */
TEST(fibers_by_the_hundred_thousand_start_under_default_limits)
{
    size_t count = test_size(500, 100000, 300000);
    size_t limit, started = 0;
    struct rig rig;
    int rc = 0;

    rig_begin(&rig);
    while (started < count && rc == 0) {
        rc = pirn_go(sleep_until_cancelled, NULL);
        started += rc == 0;
    }
    limit = rig_info(&rig).stack_limit;
    if (limit > count)
        EXPECT_EQ(0, rc);
    else
        EXPECT_EQ(-ENOMEM, rc);
    rig_turn(&rig);
    EXPECT_EQ(started, rig_info(&rig).stacks);
    EXPECT_EQ(started, rig_info(&rig).tasks);
    rig_end(&rig);
    EXPECT_EQ(started, rig.report.cancelled);
}

static int no_memory(void *base, size_t size)
{
    (void)base;
    (void)size;
    return -ENOMEM;
}

/* Goal: a fiber that has been started runs, whatever memory there is later; one
 * that cannot have a stack is refused at the spawn.
 * Method: after some spawns the kernel has no memory for a guard. */
TEST(fiber_without_a_stack_is_refused_at_the_spawn)
{
    struct pirn__sys table = pirn__sys_linux;
    uint64_t started = 1;
    struct rig rig;

    rig_begin(&rig);
    EXPECT_EQ(0, pirn_go(return_zero, NULL));
    table.guard_install = no_memory;
    table.protect_none = no_memory;
    pirn__sys = &table;
    while (pirn_go(return_zero, NULL) == 0)
        started++;
    EXPECT_EQ(-ENOMEM, pirn_go(return_zero, NULL));
    EXPECT_EQ(started, rig_info(&rig).stacks);
    rig_turn(&rig);
    EXPECT_EQ(0, rig_info(&rig).stacks);
    pirn__sys = &pirn__sys_linux;
    rig_end(&rig);
    EXPECT_EQ(started, rig.report.completed);
}
