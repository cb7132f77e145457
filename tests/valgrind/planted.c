/* SPDX-License-Identifier: MIT */
/* tests/valgrind/planted.c - a program with one bug, which the argument names,
 * of each kind that the memory checker is there to find on fibers.
 *
 *   garbage    a fiber decides by what an earlier one left on its stack
 *   after-end  the address of a local is used when its fiber has ended
 *   lost       a fiber forgets what it has allocated
 *   none       none of them
 */
#include <pirn/fiber.h>
#include <pirn/runtime.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *bug;
static volatile int *address;
static volatile int decisions;

/* Fill the stack with something. */
static int leave_traces(void *arg)
{
    volatile int block[256];

    (void)arg;
    for (int i = 0; i < 256; i++)
        block[i] = i;
    return block[255] & 0;
}

/* Apart, or the compiler sees that it outlives what it points to. */
__attribute__((noinline)) static void keep(volatile int *at)
{
    address = at;
}

__attribute__((noinline)) static int decide(void)
{
    volatile int block[256];

    if (strcmp(bug, "garbage") != 0)
        block[128] = 1;
    if (block[128] == 1)
        decisions++;
    keep(&block[128]);
    return 0;
}

static int act(void *arg)
{
    (void)arg;
    if (strcmp(bug, "lost") == 0) {
        volatile char *memory = malloc(100);

        memory[0] = 1;
    }
    return decide();
}

static int wait_for(pirn_fiber_fn *fn)
{
    pirn_task *task;
    int outcome;
    int rc = pirn_go_with(fn, NULL, NULL, &task);

    if (rc < 0)
        return rc;
    rc = pirn_task_join(task, PIRN_NEVER, &outcome);
    pirn_task_unref(task);
    return rc < 0 ? rc : outcome;
}

/* The first stack of a process is not looked after: this fiber's. */
static int first(void *arg)
{
    int rc = 0;

    (void)arg;
    for (int i = 0; i < 70 && rc == 0; i++)
        rc = wait_for(leave_traces);
    if (rc == 0)
        rc = wait_for(act);
    if (rc == 0 && strcmp(bug, "after-end") == 0)
        decisions += *address;
    return rc;
}

int main(int argc, char **argv)
{
    const pirn_runtime_options options = {.workers = 1};

    if (argc != 2) {
        fprintf(stderr, "usage: %s garbage|after-end|lost|none\n", argv[0]);
        return 2;
    }
    bug = argv[1];
    return pirn_exit_code(pirn_run_with(first, NULL, &options, NULL));
}
