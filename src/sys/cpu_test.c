/* SPDX-License-Identifier: MIT */
/* src/sys/cpu_test.c - the count of processors, on fixture trees and in child
 * processes.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "sys/cpu.h"

#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/test.h"

enum { TREE_PATH = 1024 };

struct tree {
    char root[64];
};

static void tree_init(struct tree *tree)
{
    (void)snprintf(tree->root, sizeof tree->root, "/tmp/pirn-cpu-XXXXXX");
    REQUIRE(mkdtemp(tree->root) != NULL);
}

static int remove_entry(const char *path, const struct stat *status, int kind,
                        struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void tree_deinit(struct tree *tree)
{
    EXPECT_EQ(0, nftw(tree->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS));
}

/* Write a file, and the folders that it needs. */
static void tree_add(const struct tree *tree, const char *path,
                     const char *text)
{
    char name[TREE_PATH];
    FILE *file;

    (void)snprintf(name, sizeof name, "%s%s", tree->root, path);
    for (char *slash = name + strlen(tree->root) + 1;
         (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        (void)mkdir(name, 0700);
        *slash = '/';
    }
    file = fopen(name, "w");
    REQUIRE(file != NULL);
    EXPECT_EQ(strlen(text), fwrite(text, 1, strlen(text), file));
    EXPECT_EQ(0, fclose(file));
}

/* A process's groups, and one file after another: path, text, ..., NULL. */
static void expect_quota(uint32_t count, const char *source,
                         const char *const *files)
{
    const char *found = "none";
    struct tree tree;

    tree_init(&tree);
    for (; *files != NULL; files += 2)
        tree_add(&tree, files[0], files[1]);
    EXPECT_EQ(count, pirn__cpu_quota(tree.root, &found));
    EXPECT_STR_EQ(source, found);
    tree_deinit(&tree);
}

#define EXPECT_QUOTA(count, source, ...) \
    expect_quota(count, source, (const char *const[]){__VA_ARGS__, NULL})

#define GROUPS "/proc/self/cgroup"
#define V2 "/sys/fs/cgroup"
#define V1 "/sys/fs/cgroup/cpu"

/* Goal: a version 2 quota is quota / period, rounded up; "max" is none.
 * Method: one group. */
TEST(cpu_quota_of_version_2)
{
    EXPECT_QUOTA(0, "none", GROUPS, "0::/a\n", V2 "/a/cpu.max", "max 100000\n");
    EXPECT_QUOTA(1, "cgroup v2", GROUPS, "0::/a\n", V2 "/a/cpu.max",
                 "50000 100000\n");
    EXPECT_QUOTA(2, "cgroup v2", GROUPS, "0::/a\n", V2 "/a/cpu.max",
                 "200000 100000\n");
    EXPECT_QUOTA(3, "cgroup v2", GROUPS, "0::/a\n", V2 "/a/cpu.max",
                 "200001 100000\n");
    EXPECT_QUOTA(1, "cgroup v2", GROUPS, "0::/a\n", V2 "/a/cpu.max",
                 "1000 1000000\n");
}

/* Goal: the smallest quota along the path counts, wherever it is.
 * Method: nested groups, the smallest at the top, in the middle and below; also
 * a path that exists only outside, as a container sees it. */
TEST(cpu_quota_walks_the_parents)
{
    EXPECT_QUOTA(2, "cgroup v2", GROUPS, "0::/a/b/c\n", V2 "/cpu.max",
                 "900000 100000\n", V2 "/a/cpu.max", "200000 100000\n",
                 V2 "/a/b/cpu.max", "max 100000\n", V2 "/a/b/c/cpu.max",
                 "400000 100000\n");
    EXPECT_QUOTA(4, "cgroup v2", GROUPS, "0::/a/b\n", V2 "/a/cpu.max",
                 "800000 100000\n", V2 "/a/b/cpu.max", "400000 100000\n");
    EXPECT_QUOTA(3, "cgroup v2", GROUPS, "0::/\n", V2 "/cpu.max",
                 "300000 100000\n");
    EXPECT_QUOTA(3, "cgroup v2", GROUPS, "0::/docker/0123\n", V2 "/cpu.max",
                 "300000 100000\n");
    EXPECT_QUOTA(3, "cgroup v2", GROUPS, "0::/../../a\n", V2 "/cpu.max",
                 "300000 100000\n");
}

/* Goal: a version 1 quota is read from the hierarchy that has the controller,
 * whatever others it shares it with; -1 is none.
 * Method: lines of a real system. */
TEST(cpu_quota_of_version_1)
{
    static const char groups[] = "12:memory:/m\n"
                                 "4:cpuset:/s\n"
                                 "3:cpu,cpuacct:/a/b\n"
                                 "1:name=systemd:/x\n";

    EXPECT_QUOTA(0, "none", GROUPS, groups, V1 "/a/b/cpu.cfs_quota_us", "-1\n",
                 V1 "/a/b/cpu.cfs_period_us", "100000\n");
    EXPECT_QUOTA(2, "cgroup v1", GROUPS, groups, V1 "/a/b/cpu.cfs_quota_us",
                 "150000\n", V1 "/a/b/cpu.cfs_period_us", "100000\n");
    EXPECT_QUOTA(1, "cgroup v1", GROUPS, groups, V1 "/a/b/cpu.cfs_quota_us",
                 "-1\n", V1 "/a/b/cpu.cfs_period_us", "100000\n",
                 V1 "/a/cpu.cfs_quota_us", "50000\n",
                 V1 "/a/cpu.cfs_period_us", "100000\n");
    EXPECT_QUOTA(2, "cgroup v1", GROUPS, "2:cpuacct,cpu:/\n",
                 V1 "/cpu.cfs_quota_us", "200000\n", V1 "/cpu.cfs_period_us",
                 "100000");
    /* A quota without its period says nothing. */
    EXPECT_QUOTA(0, "none", GROUPS, groups, V1 "/a/b/cpu.cfs_quota_us",
                 "150000\n");
}

/* Goal: where both versions are mounted, the one with a quota counts.
 * Method: the controller in version 1, then in version 2. */
TEST(cpu_quota_of_both_versions)
{
    static const char groups[] = "3:cpu,cpuacct:/a\n1:memory:/\n0::/b\n";

    EXPECT_QUOTA(2, "cgroup v1", GROUPS, groups, V1 "/a/cpu.cfs_quota_us",
                 "200000\n", V1 "/a/cpu.cfs_period_us", "100000\n");
    EXPECT_QUOTA(5, "cgroup v2", GROUPS, groups, V1 "/a/cpu.cfs_quota_us",
                 "-1\n", V1 "/a/cpu.cfs_period_us", "100000\n",
                 V2 "/b/cpu.max", "500000 100000\n");
    EXPECT_QUOTA(0, "none", GROUPS, groups, V1 "/a/cpu.cfs_quota_us", "-1\n",
                 V1 "/a/cpu.cfs_period_us", "100000\n");
}

/* Goal: what is missing or makes no sense is no quota.
 * Method: an empty tree, empty files, other words, numbers out of range. */
TEST(cpu_quota_missing_or_malformed_is_none)
{
    static const char *const texts[] = {
        "", "\n", "max\n", "100000\n", "0 100000\n", "-5 100000\n",
        "100000 0\n", "100000 -1\n", "x y\n",
    };
    static const char *const groups[] = {"", "\n", "0:\n", "0::\n", ":::",
                                         "nonsense", "0::/a"};

    EXPECT_QUOTA(0, "none", "/nothing", "");
    EXPECT_QUOTA(0, "none", GROUPS, "0::/a\n");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        EXPECT_QUOTA(0, "none", GROUPS, "0::/a\n", V2 "/a/cpu.max", texts[i]);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        EXPECT_QUOTA(0, "none", GROUPS, groups[i], V2 "/b/cpu.max",
                     "100000 100000\n");
    /* Without its newline it is still a line. */
    EXPECT_QUOTA(1, "cgroup v2", GROUPS, "0::/a", V2 "/a/cpu.max",
                 "100000 100000");
}

/* Goal: a quota beyond all bounds does not wrap to a small count.
 * Method: the largest numbers that fit. */
TEST(cpu_quota_beyond_bounds_stays_large)
{
    const char *source = "none";
    struct tree tree;

    tree_init(&tree);
    tree_add(&tree, GROUPS, "0::/a\n");
    tree_add(&tree, V2 "/a/cpu.max", "9223372036854775807 1000\n");
    EXPECT_EQ(512, pirn__cpu_quota(tree.root, &source));
    tree_add(&tree, V2 "/a/cpu.max", "4294967296000 1000\n");
    EXPECT_EQ(512, pirn__cpu_quota(tree.root, &source));
    tree_deinit(&tree);
}

/* The rest changes the process: each in a child, whose failed expectations come
 * back as its status. */
static void in_child(void (*fn)(void))
{
    int status = -1;
    pid_t child;

    (void)fflush(NULL);
    child = fork();
    if (child == 0) {
        fn();
        _exit(test_failures() != 0);
    }
    EXPECT_EQ(child, waitpid(child, &status, 0));
    EXPECT(WIFEXITED(status));
    EXPECT_EQ(0, WEXITSTATUS(status));
}

/* Only the first processor that is allowed now. */
static void use_one_processor(void)
{
    cpu_set_t set;
    size_t first = 0;

    EXPECT_EQ(0, sched_getaffinity(0, sizeof set, &set));
    while (!CPU_ISSET(first, &set))
        first++;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    EXPECT_EQ(0, sched_setaffinity(0, sizeof set, &set));
}

static void count_with_one_processor(void)
{
    struct pirn__cpu_count found;

    use_one_processor();
    found = pirn__cpu_workers();
    EXPECT_EQ(1, found.count);
    EXPECT_STR_EQ("affinity", found.source);
}

/* Goal: the mask counts, not the processors of the machine.
 * Method: what `taskset -c 0` does. */
TEST(cpu_workers_follow_the_affinity_mask)
{
    in_child(count_with_one_processor);
}

static void count_with_all(void)
{
    struct pirn__cpu_count found;
    const char *source = "affinity";
    uint32_t quota = pirn__cpu_quota("", &source);
    cpu_set_t set;
    uint32_t allowed;

    EXPECT_EQ(0, sched_getaffinity(0, sizeof set, &set));
    allowed = (uint32_t)CPU_COUNT(&set);
    found = pirn__cpu_workers();
    EXPECT_EQ(quota != 0 && quota < allowed ? quota : allowed, found.count);
    EXPECT_STR_EQ(quota != 0 && quota < allowed ? source : "affinity",
                  found.source);
}

/* Goal: the smaller of mask and quota of this very system.
 * Method: work it out once more. */
TEST(cpu_workers_are_the_smaller_of_mask_and_quota)
{
    in_child(count_with_all);
}
