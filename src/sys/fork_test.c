/* SPDX-License-Identifier: MIT */
/* src/sys/fork_test.c - a child process sees another generation. */
#include "sys/fork.h"

#include <sys/wait.h>
#include <unistd.h>

#include "engine/test.h"

/* The exit status of a child: how often the number changed on the way down. */
static int count_changes(void)
{
    uint32_t parent = pirn__fork_generation();
    int status = 0;
    pid_t grandchild;

    grandchild = fork();
    if (grandchild == 0)
        _exit(pirn__fork_generation() != parent);
    waitpid(grandchild, &status, 0);
    return 1 + WEXITSTATUS(status);
}

/* Goal: child and grandchild differ from their parents; the parent does not
 * change.
 * Method: exit codes. */
TEST(fork_generation_changes_in_children_only)
{
    uint32_t before = pirn__fork_generation();
    int status = 0;
    pid_t child = fork();

    if (child == 0)
        _exit(pirn__fork_generation() != before ? count_changes() : 0);
    EXPECT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(2, WEXITSTATUS(status));
    EXPECT_EQ(before, pirn__fork_generation());
}
