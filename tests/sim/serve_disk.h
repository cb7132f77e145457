/* SPDX-License-Identifier: MIT */
/* tests/sim/serve_disk.h - the files of a site, on a disk with moods.
 *
 * The files are real ones below a folder made before the run.  The calls that
 * tools/pirn/file.c makes come here first (the linker's --wrap): what is "in
 * memory", how long a disk takes, and what goes wrong in bad weather, is up to
 * the seed.  The mutexes of the server are wrapped as well: all virtual threads
 * are one thread of the system, and a real lock would wait for itself.
 */
#ifndef PIRN_TESTS_SIM_SERVE_DISK_H
#define PIRN_TESTS_SIM_SERVE_DISK_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "engine/sim.h"

enum disk_file {
    DISK_SMALL,
    DISK_EMPTY,
    DISK_WORDS,
    DISK_INDEX,
    DISK_MEDIUM,
    DISK_LARGE, /* more than the server sends in one piece */
    DISK_FILES
};

static const struct {
    const char *path, *url, *type;
    uint32_t size;
} disk_files[DISK_FILES] = {
    [DISK_SMALL] = {"small.txt", "/small.txt", "text/plain", 600},
    [DISK_EMPTY] = {"empty", "/empty", "application/octet-stream", 0},
    [DISK_WORDS] = {"two words.html", "/two%20words.html", "text/html", 1500},
    [DISK_INDEX] = {"folder/index.html", "/folder/", "text/html", 50},
    [DISK_MEDIUM] = {"folder/medium.css", "/folder/./medium.css", "text/css",
                     9000},
    [DISK_LARGE] = {"large", "/x/../large", "application/octet-stream",
                    70001},
};

/* When all of them were modified: 1000000000. */
#define DISK_DATE "Sun, 09 Sep 2001 01:46:40 GMT"

static struct {
    bool is_on;      /* a story runs */
    bool is_old;     /* no openat2() */
    char folder[64]; /* "" without one */
} disk;

static inline unsigned char disk_byte(enum disk_file file, uint64_t offset)
{
    return (unsigned char)(offset * 7 + offset / 251 + (uint64_t)file * 31);
}

/* Before a run, and after it. */

static inline void disk_write(enum disk_file file)
{
    const struct timespec times[] = {{1000000000, 0}, {1000000000, 0}};
    FILE *stream = fopen(disk_files[file].path, "we");

    REQUIRE(stream != NULL);
    for (uint32_t i = 0; i < disk_files[file].size; i++)
        (void)fputc(disk_byte(file, i), stream);
    (void)fclose(stream);
    REQUIRE(utimensat(AT_FDCWD, disk_files[file].path, times, 0) == 0);
}

/* The process moves there. */
static inline void disk_make(void)
{
    strcpy(disk.folder, "/tmp/pirn-serve-sim-XXXXXX");
    REQUIRE(mkdtemp(disk.folder) != NULL);
    REQUIRE(chdir(disk.folder) == 0);
    REQUIRE(mkdir("folder", 0700) == 0);
    REQUIRE(symlink("/etc/passwd", "out") == 0);
    REQUIRE(mkfifo("pipe", 0600) == 0);
    for (int i = 0; i < DISK_FILES; i++)
        disk_write((enum disk_file)i);
}

static inline void disk_remove(void)
{
    for (int i = 0; i < DISK_FILES; i++)
        (void)remove(disk_files[i].path);
    (void)remove("out");
    (void)remove("pipe");
    (void)remove("folder");
    REQUIRE(chdir("/") == 0);
    (void)rmdir(disk.folder);
}

/* How many descriptors of the real system are open. */
static inline int disk_descriptors(void)
{
    DIR *list = opendir("/proc/self/fd");
    int count = 0;

    while (list != NULL && readdir(list) != NULL)
        count++;
    if (list != NULL)
        (void)closedir(list);
    return count;
}

/* The calls. */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
ssize_t __real_preadv2(int fd, const struct iovec *vec, int count,
                       off_t offset, int flags);
ssize_t __wrap_preadv2(int fd, const struct iovec *vec, int count,
                       off_t offset, int flags);
ssize_t __real_pread(int fd, void *buf, size_t len, off_t offset);
ssize_t __wrap_pread(int fd, void *buf, size_t len, off_t offset);
int __real_close(int fd);
int __wrap_close(int fd);
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);

static inline bool disk_trouble(uint32_t per_thousand)
{
    return !sim_is_calm() && sim_chance(per_thousand);
}

static inline int disk_fail(int error)
{
    errno = error;
    return -1;
}

static inline long disk_open(long folder, const char *path,
                             const struct open_how *how)
{
    struct open_how real = *how;

    sim_pause("openat2", how->resolve);
    if (disk.is_old)
        return disk_fail(ENOSYS);
    if (disk_trouble(20))
        return disk_fail(EMFILE);
    if ((how->resolve & RESOLVE_CACHED) == 0) {
        sim_block_ms(sim_below(20));
        if (disk_trouble(200))
            return disk_fail(EAGAIN);
    } else if (sim_chance(300)) {
        return disk_fail(EAGAIN);
    }
    real.resolve &= ~(uint64_t)RESOLVE_CACHED;
    return __real_syscall(SYS_openat2, folder, path, &real, sizeof real);
}

long __wrap_syscall(long number, ...)
{
    va_list list;
    long a[6];

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (disk.is_on && number == SYS_openat2)
        return disk_open(a[0], (const char *)(uintptr_t)a[1],
                         (const struct open_how *)(uintptr_t)a[2]);
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* A part of what is wanted, now and then. */
static inline size_t disk_share(size_t len)
{
    return len > 1 && sim_chance(200) ? 1 + sim_below((uint32_t)len) : len;
}

/* From memory only. */
ssize_t __wrap_preadv2(int fd, const struct iovec *vec, int count,
                       off_t offset, int flags)
{
    if (!disk.is_on)
        return __real_preadv2(fd, vec, count, offset, flags);
    sim_pause("preadv2", (uint64_t)offset);
    if (sim_chance(300))
        return disk_fail(sim_chance(100) ? EOPNOTSUPP : EAGAIN);
    return __real_pread(fd, vec->iov_base, disk_share(vec->iov_len), offset);
}

ssize_t __wrap_pread(int fd, void *buf, size_t len, off_t offset)
{
    if (!disk.is_on)
        return __real_pread(fd, buf, len, offset);
    sim_block_ms(sim_below(10));
    if (sim_chance(50))
        return disk_fail(EINTR);
    if (disk_trouble(20))
        return disk_fail(EIO);
    if (disk_trouble(50))
        return 0; /* somebody has cut the file short */
    return __real_pread(fd, buf, disk_share(len), offset);
}

int __wrap_close(int fd)
{
    int rc = __real_close(fd);

    if (disk.is_on && rc < 0)
        sim_fail("descriptors", "real descriptor %d is closed twice", fd);
    return rc;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    int rc;

    if (!disk.is_on)
        return __real_pthread_mutex_lock(mutex);
    sim_pause("mutex_lock", 0);
    /* Ends: who has it does not wait for others. */
    while ((rc = pthread_mutex_trylock(mutex)) == EBUSY)
        sim_block_ms(1);
    return rc;
}

#endif /* PIRN_TESTS_SIM_SERVE_DISK_H */
