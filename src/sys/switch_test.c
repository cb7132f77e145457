/* SPDX-License-Identifier: MIT */
/* src/sys/switch_test.c - contexts on stacks of plain heap memory, switched by
 * hand on one thread. */
#include "sys/switch.h"

#include <execinfo.h>
#include <stdlib.h>
#include <unwind.h>

#include "engine/test.h"
#include "sys/checker.h"
#include "sys/switch_frame.h"

enum { STACK_SIZE = 64 * 1024, FRAME_LIMIT = 64 };

/* One context with its stack, and where it goes back to. */
struct coroutine {
    struct pirn__context context;
    struct pirn__context *back;
    char *stack;
    uint32_t checker_id;
    void (*body)(struct coroutine *self);
    int64_t value;
};

static void enter(void *arg)
{
    struct coroutine *self = arg;

    self->body(self);
    pirn__context_exit(&self->context, self->back);
}

static void coroutine_init(struct coroutine *self, struct pirn__context *back,
                           void (*body)(struct coroutine *self),
                           bool fp_controls)
{
    self->back = back;
    self->body = body;
    self->value = 0;
    self->stack = malloc(STACK_SIZE);
    self->checker_id = pirn__checker_stack_begin(self->stack, STACK_SIZE);
    pirn__context_make(&self->context, self->stack, STACK_SIZE, enter, self,
                       fp_controls);
}

static void coroutine_deinit(struct coroutine *self)
{
    pirn__context_dispose(&self->context);
    pirn__checker_stack_end(self->checker_id, self->stack, STACK_SIZE);
    free(self->stack);
}

static void run(struct coroutine *self)
{
    pirn__context_switch(self->back, &self->context);
}

static void yield(struct coroutine *self)
{
    pirn__context_switch(&self->context, self->back);
}

static void count_to_ten(struct coroutine *self)
{
    int64_t local = 100;

    for (int i = 0; i < 10; i++) {
        local += i;
        self->value = local;
        yield(self);
    }
    self->value = -1;
}

/* Goal: locals live across switches, and the last switch comes back too.
 * Method: a context sums up in a local and yields; the sums must be right. */
TEST(switch_ping_pong_keeps_locals)
{
    struct pirn__context here = { 0 };
    struct coroutine other;
    int64_t expected = 100;

    coroutine_init(&other, &here, count_to_ten, false);
    for (int i = 0; i < 10; i++) {
        expected += i;
        run(&other);
        EXPECT_EQ(expected, other.value);
    }
    run(&other);
    EXPECT_EQ(-1, other.value);
    coroutine_deinit(&other);
}

static void check_alignment(struct coroutine *self)
{
    _Alignas(16) char local[16];
    uintptr_t address = (uintptr_t)local;

    /* The builtin sees what the caller really set up, not what the compiler
     * assumes. */
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

    __asm__ volatile("" : "+r"(address), "+r"(frame) : : "memory");
    self->value = (int64_t)(address % 16 + frame % 16);
}

/* Goal: the entry finds the stack aligned as the ABI wants it, whatever the
 * bounds of the memory.
 * Method: tops at odd addresses. */
TEST(switch_entry_has_aligned_stack)
{
    struct pirn__context here = { 0 };

    for (size_t cut = 0; cut < 16; cut++) {
        struct coroutine other;

        coroutine_init(&other, &here, check_alignment, false);
        pirn__context_dispose(&other.context);
        pirn__context_make(&other.context, other.stack, STACK_SIZE - cut,
                           enter, &other, false);
        run(&other);
        EXPECT_EQ(0, other.value);
        coroutine_deinit(&other);
    }
}

/* Load every callee-saved register from a table, switch, and store them into
 * the table again. */
#if defined(__x86_64__)

enum { REGISTER_COUNT = 6 };

void test_switch_registers(uint64_t *table, struct pirn__context *from,
                           struct pirn__context *to);

__asm__(
    ".text\n"
    ".type test_switch_registers, @function\n"
    "test_switch_registers:\n"
    "    pushq %rbp\n"
    "    pushq %rbx\n"
    "    pushq %r12\n"
    "    pushq %r13\n"
    "    pushq %r14\n"
    "    pushq %r15\n"
    "    pushq %rdi\n"
    "    movq 0(%rdi), %rbx\n"
    "    movq 8(%rdi), %rbp\n"
    "    movq 16(%rdi), %r12\n"
    "    movq 24(%rdi), %r13\n"
    "    movq 32(%rdi), %r14\n"
    "    movq 40(%rdi), %r15\n"
    "    movq %rsi, %rdi\n"
    "    movq %rdx, %rsi\n"
    "    call test_switch_plain\n"
    "    popq %rdi\n"
    "    movq %rbx, 0(%rdi)\n"
    "    movq %rbp, 8(%rdi)\n"
    "    movq %r12, 16(%rdi)\n"
    "    movq %r13, 24(%rdi)\n"
    "    movq %r14, 32(%rdi)\n"
    "    movq %r15, 40(%rdi)\n"
    "    popq %r15\n"
    "    popq %r14\n"
    "    popq %r13\n"
    "    popq %r12\n"
    "    popq %rbx\n"
    "    popq %rbp\n"
    "    ret\n"
    ".size test_switch_registers, . - test_switch_registers\n");

#elif defined(__aarch64__)

enum { REGISTER_COUNT = 19 };

void test_switch_registers(uint64_t *table, struct pirn__context *from,
                           struct pirn__context *to);

__asm__(
    ".text\n"
    ".type test_switch_registers, %function\n"
    "test_switch_registers:\n"
    "    stp x29, x30, [sp, #-176]!\n"
    "    stp x19, x20, [sp, #16]\n"
    "    stp x21, x22, [sp, #32]\n"
    "    stp x23, x24, [sp, #48]\n"
    "    stp x25, x26, [sp, #64]\n"
    "    stp x27, x28, [sp, #80]\n"
    "    stp d8, d9, [sp, #96]\n"
    "    stp d10, d11, [sp, #112]\n"
    "    stp d12, d13, [sp, #128]\n"
    "    stp d14, d15, [sp, #144]\n"
    "    str x0, [sp, #160]\n"
    "    ldp x19, x20, [x0, #0]\n"
    "    ldp x21, x22, [x0, #16]\n"
    "    ldp x23, x24, [x0, #32]\n"
    "    ldp x25, x26, [x0, #48]\n"
    "    ldp x27, x28, [x0, #64]\n"
    "    ldp d8, d9, [x0, #80]\n"
    "    ldp d10, d11, [x0, #96]\n"
    "    ldp d12, d13, [x0, #112]\n"
    "    ldp d14, d15, [x0, #128]\n"
    "    ldr x29, [x0, #144]\n"
    "    mov x0, x1\n"
    "    mov x1, x2\n"
    "    bl test_switch_plain\n"
    "    ldr x0, [sp, #160]\n"
    "    stp x19, x20, [x0, #0]\n"
    "    stp x21, x22, [x0, #16]\n"
    "    stp x23, x24, [x0, #32]\n"
    "    stp x25, x26, [x0, #48]\n"
    "    stp x27, x28, [x0, #64]\n"
    "    stp d8, d9, [x0, #80]\n"
    "    stp d10, d11, [x0, #96]\n"
    "    stp d12, d13, [x0, #112]\n"
    "    stp d14, d15, [x0, #128]\n"
    "    str x29, [x0, #144]\n"
    "    ldp x19, x20, [sp, #16]\n"
    "    ldp x21, x22, [sp, #32]\n"
    "    ldp x23, x24, [sp, #48]\n"
    "    ldp x25, x26, [sp, #64]\n"
    "    ldp x27, x28, [sp, #80]\n"
    "    ldp d8, d9, [sp, #96]\n"
    "    ldp d10, d11, [sp, #112]\n"
    "    ldp d12, d13, [sp, #128]\n"
    "    ldp d14, d15, [sp, #144]\n"
    "    ldp x29, x30, [sp], #176\n"
    "    ret\n"
    ".size test_switch_registers, . - test_switch_registers\n");

#else

enum { REGISTER_COUNT = 1 };

static void test_switch_registers(uint64_t *table, struct pirn__context *from,
                                  struct pirn__context *to)
{
    (void)table;
    pirn__context_switch(from, to);
}

#endif

/* The assembly above calls it. */
void test_switch_plain(struct pirn__context *from, struct pirn__context *to);

__attribute__((used)) void test_switch_plain(struct pirn__context *from,
                                             struct pirn__context *to)
{
    pirn__context_switch(from, to);
}

static void fill_registers(uint64_t table[REGISTER_COUNT], uint64_t seed)
{
    for (size_t i = 0; i < REGISTER_COUNT; i++)
        table[i] = seed + i;
}

static void expect_registers(const uint64_t table[REGISTER_COUNT],
                             uint64_t seed)
{
    for (size_t i = 0; i < REGISTER_COUNT; i++)
        EXPECT_EQ(seed + i, table[i]);
}

static void switch_with_own_registers(struct coroutine *self)
{
    uint64_t table[REGISTER_COUNT];

    for (uint64_t round = 0; round < 3; round++) {
        fill_registers(table, 5000 + 100 * round);
        test_switch_registers(table, &self->context, self->back);
        expect_registers(table, 5000 + 100 * round);
    }
    self->value = 1;
}

/* Goal: every callee-saved register survives a switch.
 * Method: both sides load all of them with values of their own right before
 * the switch and look right after it. */
TEST(switch_preserves_callee_saved_registers)
{
    struct pirn__context here = { 0 };
    struct coroutine other;
    uint64_t table[REGISTER_COUNT];

    coroutine_init(&other, &here, switch_with_own_registers, false);
    for (uint64_t round = 0; round < 4; round++) {
        fill_registers(table, 1000 + 100 * round);
        test_switch_registers(table, &here, &other.context);
        expect_registers(table, 1000 + 100 * round);
    }
    EXPECT_EQ(1, other.value);
    coroutine_deinit(&other);
}

#if !defined(PIRN_PORTABLE_SWITCH) && \
    (defined(__x86_64__) || defined(__aarch64__))

#if defined(__x86_64__)
/* Rounding towards plus infinity in MXCSR and in the x87 control word. */
static const uint64_t round_up_bits = UINT64_C(0x4000) | UINT64_C(0x800) << 32;
#else
static const uint64_t round_up_bits = UINT64_C(1) << 22;
#endif

static volatile double one = 1.0;
static volatile double three = 3.0;

/* 1/3 is not exact, so its last bit tells how the processor rounds. */
static bool rounds_up(void)
{
    double third = one / three;

    return third * 3.0 > 1.0 || third > 0.33333333333333331;
}

static void set_round_up(void)
{
    pirn__switch_fp_write(pirn__switch_fp_read() | round_up_bits);
}

static void set_round_nearest(void)
{
    pirn__switch_fp_write(pirn__switch_fp_read() & ~round_up_bits);
}

/* Valgrind computes with rounding of its own. */
static bool rounding_works(void)
{
    bool works;

    set_round_up();
    works = rounds_up();
    set_round_nearest();
    return works && !rounds_up();
}

static void round_up_then_look(struct coroutine *self)
{
    EXPECT(!rounds_up());
    set_round_up();
    EXPECT(rounds_up());
    yield(self);
    EXPECT(rounds_up());
    yield(self);
    EXPECT(rounds_up());
}

/* Goal: a context with fp_controls keeps its rounding to itself.
 * Method: it rounds up; its caller, and a second such context started in
 * between, round to nearest. */
TEST(switch_with_fp_controls_keeps_rounding_apart)
{
    struct pirn__context here = { 0 };
    struct coroutine first, second;

    if (!rounding_works())
        SKIP("the processor is emulated without rounding modes");
    coroutine_init(&first, &here, round_up_then_look, true);
    coroutine_init(&second, &here, round_up_then_look, true);
    EXPECT(!rounds_up());
    for (int i = 0; i < 3; i++) {
        run(&first);
        EXPECT(!rounds_up());
        run(&second);
        EXPECT(!rounds_up());
    }
    coroutine_deinit(&first);
    coroutine_deinit(&second);
}

static void set_and_yield(struct coroutine *self)
{
    set_round_up();
    yield(self);
}

/* Goal: without fp_controls the words belong to the thread.
 * Method: a plain context rounds up; its caller sees it, as documented. */
TEST(switch_without_fp_controls_shares_rounding)
{
    struct pirn__context here = { 0 };
    struct coroutine other;

    if (!rounding_works())
        SKIP("the processor is emulated without rounding modes");
    coroutine_init(&other, &here, set_and_yield, false);
    run(&other);
    EXPECT(rounds_up());
    set_round_nearest();
    run(&other);
    EXPECT(!rounds_up());
    coroutine_deinit(&other);
}

static struct coroutine *plain_target;

static void look_at_rounding(struct coroutine *self)
{
    self->value = rounds_up() ? 1 : 2;
    yield(self);
    self->value = rounds_up() ? 3 : 4;
}

static void round_up_and_hand_over(struct coroutine *self)
{
    set_round_up();
    pirn__context_switch(&self->context, &plain_target->context);
    EXPECT(rounds_up());
}

/* Goal: leaving a context with fp_controls for a third one brings the thread's
 * words back, not those of the one that is left.
 * Method: thread -> own words -> plain context directly, new and resumed. */
TEST(switch_from_fp_controls_to_third_restores_thread_words)
{
    struct pirn__context here = { 0 };
    struct coroutine owner, plain;

    if (!rounding_works())
        SKIP("the processor is emulated without rounding modes");
    coroutine_init(&owner, &here, round_up_and_hand_over, true);
    coroutine_init(&plain, &here, look_at_rounding, false);
    plain_target = &plain;
    run(&owner); /* comes back by way of `plain` */
    EXPECT_EQ(2, plain.value);
    EXPECT(!rounds_up());
    run(&plain);
    EXPECT_EQ(4, plain.value);
    run(&owner);
    EXPECT(!rounds_up());
    coroutine_deinit(&owner);
    coroutine_deinit(&plain);
}

#endif

struct walk {
    uintptr_t low, high;
    int frames;
    int outside;
};

static _Unwind_Reason_Code visit_frame(struct _Unwind_Context *context,
                                       void *arg)
{
    struct walk *walk = arg;
    uintptr_t frame = (uintptr_t)_Unwind_GetCFA(context);

    walk->frames++;
    if (frame < walk->low || frame > walk->high)
        walk->outside++;
    return walk->frames < FRAME_LIMIT ? _URC_NO_REASON : _URC_NORMAL_STOP;
}

static void unwind_here(struct coroutine *self)
{
    void *addresses[FRAME_LIMIT];
    struct walk walk = {
        .low = (uintptr_t)self->stack,
        .high = (uintptr_t)self->stack + STACK_SIZE,
    };

    EXPECT_EQ(_URC_END_OF_STACK, _Unwind_Backtrace(visit_frame, &walk));
    EXPECT_LE(3, walk.frames); /* this function, enter, the outermost */
    EXPECT_LE(walk.frames, 12);
    EXPECT_EQ(0, walk.outside);
    self->value = backtrace(addresses, FRAME_LIMIT);
}

/* Goal: a backtrace inside a context ends at its entry.
 * Method: both unwinders that C programs use; every frame must lie on the
 * context's stack and the end must be a regular one. */
TEST(switch_backtrace_ends_at_entry)
{
    struct pirn__context here = { 0 };
    struct coroutine other;

    coroutine_init(&other, &here, unwind_here, false);
    run(&other);
    EXPECT_LE(3, other.value);
    EXPECT_LE(other.value, 12);
    coroutine_deinit(&other);
}

enum { NEST_DEPTH = 500 };

static struct coroutine nest[NEST_DEPTH];

static void go_deeper(struct coroutine *self)
{
    size_t depth = (size_t)(self - nest);

    self->value = 1;
    if (depth + 1 < NEST_DEPTH) {
        coroutine_init(&nest[depth + 1], &self->context, go_deeper, false);
        run(&nest[depth + 1]);
        self->value += nest[depth + 1].value;
        coroutine_deinit(&nest[depth + 1]);
    }
}

/* Goal: contexts start contexts.
 * Method: a chain of them, each waiting for the next; the sum comes back. */
TEST(switch_nests_deeply)
{
    struct pirn__context here = { 0 };

    coroutine_init(&nest[0], &here, go_deeper, false);
    run(&nest[0]);
    EXPECT_EQ(NEST_DEPTH, nest[0].value);
    coroutine_deinit(&nest[0]);
}

static void yield_twice(struct coroutine *self)
{
    self->value = 1;
    yield(self);
    self->value = 2;
}

/* Goal: ten thousand contexts live at once.
 * Method: start all, then finish all in the other order. */
TEST(switch_ten_thousand_contexts_live)
{
    struct pirn__context here = { 0 };
    size_t count = test_size(1000, 10 * 1000, 10 * 1000);
    struct coroutine *all = calloc(count, sizeof *all);
    int64_t sum = 0;

    REQUIRE(all != NULL);
    for (size_t i = 0; i < count; i++) {
        coroutine_init(&all[i], &here, yield_twice, false);
        run(&all[i]);
    }
    for (size_t i = count; i-- > 0;) {
        run(&all[i]);
        sum += all[i].value;
        coroutine_deinit(&all[i]);
    }
    EXPECT_EQ(2 * count, sum);
    free(all);
}

/* Goal: a context that never started, or never ended, can be given up.
 * Method: dispose of one of each; the sanitizers complain if that is wrong. */
TEST(switch_dispose_of_unfinished_contexts)
{
    struct pirn__context here = { 0 };
    struct coroutine fresh, suspended;

    coroutine_init(&fresh, &here, yield_twice, false);
    coroutine_init(&suspended, &here, yield_twice, false);
    run(&suspended);
    EXPECT_EQ(0, fresh.value);
    EXPECT_EQ(1, suspended.value);
    coroutine_deinit(&fresh);
    coroutine_deinit(&suspended);
}

/* A context that is entered, and returns. */
struct guest {
    struct coroutine coroutine;
    struct pirn__host host;
    int calls;
};

static struct guest *guest_of(struct coroutine *self)
{
    return (struct guest *)(void *)self;
}

/* At another depth each time, so that what the processor predicts is wrong. */
__attribute__((noinline)) static int return_from(struct guest *guest, int depth,
                                                 int word)
{
    int rc;

    if (depth > 0)
        rc = return_from(guest, depth - 1, word);
    else
        rc = pirn__host_return(&guest->coroutine.context, &guest->host, word);
    guest->calls++;
    return rc;
}

static void return_sums(struct coroutine *self)
{
    struct guest *guest = guest_of(self);
    int sum = 0;

    for (int i = 0; i < 20; i++) {
        sum += i;
        self->value += return_from(guest, i % 5, sum);
    }
    pirn__host_exit(&self->context, &guest->host, -1);
}

static void guest_init(struct guest *guest, bool fp_controls)
{
    *guest = (struct guest){ .calls = 0 };
    coroutine_init(&guest->coroutine, &guest->host.context, return_sums,
                   fp_controls);
}

/* Goal: a loop that enters contexts gets the word that each returns with, a context
 * gets 0, and both keep their locals, however deep they stand.
 * Method: two contexts that sum up, entered by turns, one of them with control
 * words of its own. */
TEST(switch_host_enters_and_contexts_return)
{
    struct guest guests[2];
    int sum = 0;

    guest_init(&guests[0], false);
    guest_init(&guests[1], true);
    for (int i = 0; i < 20; i++) {
        sum += i;
        for (int k = 0; k < 2; k++)
            EXPECT_EQ(sum, pirn__host_enter(&guests[k].host,
                                            &guests[k].coroutine.context));
    }
    for (int k = 0; k < 2; k++) {
        EXPECT_EQ(-1, pirn__host_enter(&guests[k].host,
                                       &guests[k].coroutine.context));
        EXPECT_EQ(0, guests[k].coroutine.value);
        /* Each returned through all frames: 1 to 5 of them, 4 times. */
        EXPECT_EQ(4 * (1 + 2 + 3 + 4 + 5), guests[k].calls);
        coroutine_deinit(&guests[k].coroutine);
    }
}

#if defined(__x86_64__)

static void spoil_registers(struct coroutine *self)
{
    struct guest *guest = guest_of(self);

    __asm__ volatile("" : : : "rbx", "r12", "r13", "r14", "r15");
    for (;;) {
        __asm__ volatile("movq $-1, %%rbx\n\t"
                         "movq $-1, %%r12\n\t"
                         "movq $-1, %%r13\n\t"
                         "movq $-1, %%r14\n\t"
                         "movq $-1, %%r15"
                         :
                         :
                         : "rbx", "r12", "r13", "r14", "r15");
        (void)pirn__host_return(&self->context, &guest->host, 1);
    }
}

/* Goal: what a loop has in registers survives whatever a context does to them.
 * Method: more live values than registers, and a context that overwrites all that
 * a call would have kept. */
TEST(switch_host_keeps_what_is_in_registers)
{
    struct guest guest;
    uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7;

    guest_init(&guest, false);
    guest.coroutine.body = spoil_registers;
    for (int i = 0; i < 10; i++) {
        __asm__ volatile(""
                         : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f),
                           "+r"(g));
        EXPECT_EQ(1,
                  pirn__host_enter(&guest.host, &guest.coroutine.context));
        __asm__ volatile(""
                         : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f),
                           "+r"(g));
        EXPECT_EQ(1234567, a * 1000000 + b * 100000 + c * 10000 + d * 1000 +
                               e * 100 + f * 10 + g);
    }
    coroutine_deinit(&guest.coroutine);
}

#endif
