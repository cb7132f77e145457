/* SPDX-License-Identifier: MIT */
/* src/sys/cpu.c - see cpu.h. */
#define _GNU_SOURCE
#include "sys/cpu.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CPU_PATH = 512, CPU_TEXT = 4096, CPU_MAX = 512 };

/* A whole small file as text; false if it cannot be read. */
static bool read_file(const char *root, const char *path, char *text,
                      size_t size)
{
    char name[2 * CPU_PATH + 64];
    ssize_t count;
    int fd;

    snprintf(name, sizeof name, "%s%s", root, path);
    fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    count = read(fd, text, size - 1);
    close(fd);
    if (count < 0)
        return false;
    text[count] = '\0';
    return true;
}

static uint32_t processors(long long quota, long long period)
{
    long long count;

    if (quota <= 0 || period <= 0)
        return 0;
    count = quota / period + (quota % period != 0);
    return count < CPU_MAX ? (uint32_t)count : CPU_MAX;
}

/* "max 100000" or "50000 100000". */
static uint32_t quota_v2(const char *root, const char *group)
{
    char path[CPU_PATH + 64];
    char text[CPU_TEXT];
    long long quota;
    long long period;

    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
    if (!read_file(root, path, text, sizeof text) ||
        sscanf(text, "%lld %lld", &quota, &period) != 2)
        return 0;
    return processors(quota, period);
}

/* cpu.cfs_quota_us is -1 without one. */
static uint32_t quota_v1(const char *root, const char *group)
{
    char path[CPU_PATH + 64];
    char text[CPU_TEXT];
    long long quota;

    snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", group);
    if (!read_file(root, path, text, sizeof text))
        return 0;
    quota = atoll(text);
    snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_period_us",
             group);
    if (!read_file(root, path, text, sizeof text))
        return 0;
    return processors(quota, atoll(text));
}

/* The smallest quota of a group and its parents; 0: none. */
static uint32_t smallest(const char *root, char *group,
                         uint32_t (*quota)(const char *root, const char *group))
{
    uint32_t least = 0;
    char *end;

    /* Ends: the path gets shorter each time. */
    for (;;) {
        uint32_t here = quota(root, strcmp(group, "/") == 0 ? "" : group);

        if (here != 0 && (least == 0 || here < least))
            least = here;
        end = strrchr(group, '/');
        if (end == NULL)
            return least;
        if (end == group && group[1] == '\0')
            return least;
        end[end == group ? 1 : 0] = '\0';
    }
}

/* The process's group in the hierarchy whose line in /proc/self/cgroup has
 * `controller` ("" for version 2: "0::/path"; else "4:cpu,cpuacct:/path"). */
static bool own_group(const char *text, const char *controller, char *group)
{
    const char *line = text;

    while (line != NULL && *line != '\0') {
        const char *names = strchr(line, ':');
        const char *path = names == NULL ? NULL : strchr(names + 1, ':');
        const char *next = strchr(line, '\n');
        char list[CPU_PATH];

        if (path != NULL && (next == NULL || path < next)) {
            snprintf(list, sizeof list, ",%.*s,", (int)(path - names - 1),
                     names + 1);
            if (*controller == '\0' ? path == names + 1
                                    : strstr(list, controller) != NULL) {
                snprintf(group, CPU_PATH, "%.*s",
                         next == NULL ? CPU_PATH : (int)(next - path - 1),
                         path + 1);
                return true;
            }
        }
        line = next == NULL ? NULL : next + 1;
    }
    return false;
}

uint32_t pirn__cpu_quota(const char *root, const char **source)
{
    char text[CPU_TEXT];
    char group[CPU_PATH];
    uint32_t count;

    if (!read_file(root, "/proc/self/cgroup", text, sizeof text))
        return 0;
    if (own_group(text, ",cpu,", group)) {
        count = smallest(root, group, quota_v1);
        if (count != 0) {
            *source = "cgroup v1";
            return count;
        }
    }
    if (own_group(text, "", group)) {
        count = smallest(root, group, quota_v2);
        if (count != 0) {
            *source = "cgroup v2";
            return count;
        }
    }
    return 0;
}

static uint32_t allowed_by_mask(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1; /* more processors than the set can name */
    return (uint32_t)CPU_COUNT(&set);
}

struct pirn__cpu_count pirn__cpu_workers(void)
{
    struct pirn__cpu_count result = {allowed_by_mask(), "affinity"};
    const char *source = "";
    uint32_t quota = pirn__cpu_quota("", &source);

    if (quota != 0 && quota < result.count)
        result = (struct pirn__cpu_count){quota, source};
    if (result.count > CPU_MAX)
        result.count = CPU_MAX;
    return result;
}
