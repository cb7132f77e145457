/* SPDX-License-Identifier: MIT */
/* tests/fuzz/cgroup.c - what the kernel says of control groups, turned into a count
 * of processors.  The input is /proc/self/cgroup, and behind a '|' what the quota
 * files hold, of both versions, in the root group and in one called /a. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "sys/cpu.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz/fuzz.h"

enum { COUNT_LIMIT = 512, NAME_SIZE = 256 };

static const char *const folders[] = {
    "/proc", "/proc/self", "/sys", "/sys/fs", "/sys/fs/cgroup",
    "/sys/fs/cgroup/a", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu/a"};
static const char *const quotas[] = {
    "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/a/cpu.max",
    "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us",
    "/sys/fs/cgroup/cpu/a/cpu.cfs_period_us"};

static char root[] = "/tmp/pirn-fuzz-XXXXXX";

static int remove_entry(const char *path, const struct stat *status, int kind,
                        struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void remove_tree(void)
{
    (void)nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void make_tree(void)
{
    char name[NAME_SIZE];

    if (mkdtemp(root) == NULL)
        abort();
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(name, sizeof name, "%s%s", root, folders[i]);
        if (mkdir(name, 0700) != 0)
            abort();
    }
    atexit(remove_tree);
}

static void write_file(const char *path, const uint8_t *data, size_t size)
{
    char name[NAME_SIZE];
    FILE *file;

    snprintf(name, sizeof name, "%s%s", root, path);
    file = fopen(name, "wb");
    if (file == NULL)
        abort();
    if (size != 0)
        FUZZ_EXPECT(fwrite(data, 1, size, file) == size);
    fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *bar = size == 0 ? NULL : memchr(data, '|', size);
    size_t first = bar == NULL ? size : (size_t)(bar - data);
    size_t second = bar == NULL ? 0 : size - first - 1;
    static bool is_made;
    const char *source = NULL;
    uint32_t count;

    if (!is_made)
        make_tree();
    is_made = true;
    write_file("/proc/self/cgroup", data, first);
    for (size_t i = 0; i < sizeof quotas / sizeof quotas[0]; i++)
        write_file(quotas[i], bar == NULL ? data : bar + 1, second);
    count = pirn__cpu_quota(root, &source);
    FUZZ_EXPECT(count <= COUNT_LIMIT);
    FUZZ_EXPECT((count == 0) == (source == NULL));
    return 0;
}
