/* SPDX-License-Identifier: MIT */
/* bench/bench_switch.c - the price of leaving one stack for another.
 *
 * The raw switch, one way, below everything that knows of tasks: the thread's
 * own stack and one other take turns, without and with floating-point control
 * words.  In a ring each context finds the next one in its own memory, as a
 * scheduler would; a thousand of them, each on a stack of its own, add the
 * cache misses of so many stacks, which lie as far apart as the library's: at a
 * power of two they would fight for the same places of the TLB, which is 15 ns
 * more.  A loop that enters a context, and is returned to, is what a fiber's run
 * takes.
 */
#define _GNU_SOURCE
#include "sample.h"

#include "sys/switch.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    STACK_SIZE = 64 * 1024,
    STACK_STRIDE = 72 * 1024, /* with the room for colours and the guard */
    COLOUR_COUNT = 16,
    COLOUR_BYTES = 128,
    RING_COUNT = 1000,
    SAMPLES = 9,
};

/* The pair, at fixed addresses, so that the loop is the switch alone. */
static struct pirn__context here;
static struct pirn__context there;

static void switch_back(void *arg)
{
    (void)arg;
    for (;;)
        pirn__context_switch(&there, &here);
}

static double time_pair(uint64_t rounds)
{
    uint64_t begin_ns = sample_cpu_ns();

    for (uint64_t i = 0; i < rounds; i++)
        pirn__context_switch(&here, &there);
    return (double)(sample_cpu_ns() - begin_ns) / (double)(2 * rounds);
}

struct node {
    struct pirn__context context;
    struct node *next;
};

static struct node main_node;

/* Pass control on for ever; only the thread's own stack ever stops. */
static void pass_on(void *arg)
{
    struct node *node = arg;

    for (;;)
        pirn__context_switch(&node->context, &node->next->context);
}

static void *map_stack(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    sample_require(memory == MAP_FAILED ? -ENOMEM : 0, "mmap");
    return memory;
}

/* main_node -> nodes[0] -> ... -> nodes[count - 1] -> main_node; returns the
 * mapping of all stacks. */
static char *make_ring(struct node *nodes, size_t count)
{
    char *stacks = map_stack(count * STACK_STRIDE);

    main_node.next = &nodes[0];
    for (size_t i = 0; i < count; i++) {
        size_t colour = i % COLOUR_COUNT * COLOUR_BYTES;

        pirn__context_make(&nodes[i].context, stacks + i * STACK_STRIDE,
                           STACK_STRIDE - colour, pass_on, &nodes[i], false);
        nodes[i].next = i + 1 < count ? &nodes[i + 1] : &main_node;
    }
    return stacks;
}

static void drop_ring(struct node *nodes, size_t count, char *stacks)
{
    for (size_t i = 0; i < count; i++)
        pirn__context_dispose(&nodes[i].context);
    munmap(stacks, count * STACK_STRIDE);
}

/* Nanoseconds for one switch, over `rounds` times around the ring. */
static double time_ring(size_t count, uint64_t rounds)
{
    uint64_t begin_ns = sample_cpu_ns();

    for (uint64_t i = 0; i < rounds; i++)
        pirn__context_switch(&main_node.context, &main_node.next->context);
    return (double)(sample_cpu_ns() - begin_ns) /
           (double)(rounds * (count + 1));
}

/* The host and its guest. */
static struct pirn__host host;

static void return_at_once(void *arg)
{
    (void)arg;
    for (;;)
        (void)pirn__host_return(&there, &host, 1);
}

static double time_host(uint64_t rounds)
{
    uint64_t begin_ns = sample_cpu_ns();

    for (uint64_t i = 0; i < rounds; i++)
        (void)pirn__host_enter(&host, &there);
    return (double)(sample_cpu_ns() - begin_ns) / (double)rounds;
}

static void measure_host(const char *name, uint64_t rounds)
{
    char *stack;

    if (!sample_is_wanted(name))
        return;
    stack = map_stack(STACK_SIZE);
    pirn__context_make(&there, stack, STACK_SIZE, return_at_once, NULL, false);
    time_host(1000);
    for (int i = 0; i < SAMPLES; i++)
        sample_print(name, "ns", time_host(rounds));
    pirn__context_dispose(&there);
    munmap(stack, STACK_SIZE);
}

static void measure_pair(const char *name, uint64_t switches, bool fp_controls)
{
    char *stack;

    if (!sample_is_wanted(name))
        return;
    stack = map_stack(STACK_SIZE);
    pirn__context_make(&there, stack, STACK_SIZE, switch_back, NULL,
                       fp_controls);
    time_pair(1000);
    for (int i = 0; i < SAMPLES; i++)
        sample_print(name, "ns", time_pair(switches / 2));
    pirn__context_dispose(&there);
    munmap(stack, STACK_SIZE);
}

static void measure_ring(const char *name, size_t count, uint64_t switches)
{
    struct node *nodes;
    char *stacks;

    if (!sample_is_wanted(name))
        return;
    nodes = calloc(count, sizeof *nodes);
    sample_require(nodes == NULL ? -ENOMEM : 0, "calloc");
    stacks = make_ring(nodes, count);
    time_ring(count, 10);
    for (int i = 0; i < SAMPLES; i++)
        sample_print(name, "ns", time_ring(count, switches / (count + 1)));
    drop_ring(nodes, count, stacks);
    free(nodes);
}

int main(int argc, char **argv)
{
    bool quick = sample_has_flag(argc, argv, "--quick");
    uint64_t switches = quick ? 1000000 : 5000000;

    sample_choose(argc, argv);
    measure_pair("switch/raw_one_way", switches, false);
    measure_pair("switch/raw_one_way_fp_controls", switches, true);
    measure_ring("switch/raw_one_way_ring_2", 1, switches);
    measure_ring("switch/raw_one_way_ring_1000", RING_COUNT, switches);
    measure_host("switch/enter_and_return", switches);
    return 0;
}
