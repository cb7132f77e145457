/* SPDX-License-Identifier: MIT */
/* tools/pirn/file.c - cached first, blocking pool second.
 *
 * openat2() with RESOLVE_CACHED looks a path up only in memory and
 * preadv2() with RWF_NOWAIT reads only from it; both say EAGAIN otherwise.
 * RESOLVE_BENEATH confines the whole look-up, links included, to the root.
 *
 * A fiber may go on under another thread after a suspension, so errno is read
 * only in the small functions at the top, which never suspend and are not
 * inlined into one that does. */
#define _GNU_SOURCE

#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <pirn/pirn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define NO_INLINE __attribute__((noinline))

/* Not to wait on a pipe without a writer, nor to become a terminal's owner. */
enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

/* How often a look-up that raced with a rename is tried again. */
enum { LOOKUP_TRIES = 4 };

NO_INLINE static int open_beneath(int root_fd, const char *path,
                                  uint64_t resolve)
{
    struct open_how how = {
        .flags = OPEN_FLAGS,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve,
    };
    long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof how);

    return fd < 0 ? -errno : (int)fd;
}

NO_INLINE static int open_component(int folder_fd, const char *name, int flags)
{
    int fd = openat(folder_fd, name, flags | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

NO_INLINE static int64_t read_cached(int fd, uint64_t offset, char *buf,
                                     size_t len)
{
    struct iovec vec = {.iov_base = buf, .iov_len = len};
    ssize_t n = preadv2(fd, &vec, 1, (off_t)offset, RWF_NOWAIT);

    return n < 0 ? -errno : n;
}

NO_INLINE static int64_t read_waiting(int fd, uint64_t offset, char *buf,
                                      size_t len)
{
    ssize_t n = pread(fd, buf, len, (off_t)offset);

    return n < 0 ? -errno : n;
}

NO_INLINE static int read_status(int fd, struct stat *out)
{
    return fstat(fd, out) < 0 ? -errno : 0;
}

NO_INLINE int file_open_root(const char *folder)
{
    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* For kernels, or sandboxes, without openat2(): one component at a time and no
 * symbolic link at all. */
static int open_by_components(int root_fd, const char *path)
{
    int folder_fd = root_fd;

    for (;;) {
        char name[NAME_MAX + 1];
        const char *slash = strchr(path, '/');
        size_t len = slash == NULL ? strlen(path) : (size_t)(slash - path);

        if (len > NAME_MAX)
            return -ENAMETOOLONG;
        memcpy(name, path, len);
        name[len] = '\0';
        int fd = open_component(
            folder_fd, name, slash == NULL ? OPEN_FLAGS : O_PATH | O_DIRECTORY);
        if (folder_fd != root_fd)
            (void)close(folder_fd);
        if (fd < 0 || slash == NULL)
            return fd;
        folder_fd = fd;
        path = slash + 1;
    }
}

struct open_job {
    int root_fd;
    const char *path;
};

static int open_on_pool(void *arg)
{
    const struct open_job *job = arg;
    int rc = -EAGAIN;

    for (int i = 0; rc == -EAGAIN && i < LOOKUP_TRIES; i++)
        rc = open_beneath(job->root_fd, job->path, 0);
    if (rc == -ENOSYS || rc == -EPERM)
        rc = open_by_components(job->root_fd, job->path);
    return rc;
}

/* EAGAIN: not in memory.  The others: no openat2(), or an older one. */
static bool is_worth_the_pool(int rc)
{
    return rc == -EAGAIN || rc == -ENOSYS || rc == -EPERM || rc == -EINVAL;
}

int file_open(int root_fd, const char *path, struct file *out)
{
    const char *name = path[0] == '\0' ? "." : path;
    struct stat status;

    out->fd = -1;
    int fd = open_beneath(root_fd, name, RESOLVE_CACHED);
    if (is_worth_the_pool(fd)) {
        struct open_job job = {.root_fd = root_fd, .path = name};

        fd = pirn_blocking_run(open_on_pool, &job);
    }
    if (fd < 0)
        return fd;
    int rc = read_status(fd, &status);
    if (rc < 0) {
        (void)close(fd);
        return rc;
    }
    out->fd = fd;
    out->is_folder = S_ISDIR(status.st_mode);
    out->is_regular = S_ISREG(status.st_mode);
    out->size = (uint64_t)status.st_size;
    out->modified = (int64_t)status.st_mtime;
    return 0;
}

void file_close(struct file *file)
{
    if (file->fd >= 0)
        (void)close(file->fd);
    file->fd = -1;
}

struct read_job {
    int fd;
    uint64_t offset;
    char *buf;
    size_t len;
    int64_t result;
};

static int read_on_pool(void *arg)
{
    struct read_job *job = arg;
    size_t done = 0;

    while (done < job->len) {
        int64_t n = read_waiting(job->fd, job->offset + done, job->buf + done,
                                 job->len - done);

        if (n == -EINTR)
            continue;
        if (n < 0) {
            job->result = n;
            return 0;
        }
        if (n == 0)
            break;
        done += (size_t)n;
    }
    job->result = (int64_t)done;
    return 0;
}

int64_t file_read(const struct file *file, uint64_t offset, char *buf,
                  size_t len)
{
    int64_t cached = read_cached(file->fd, offset, buf, len);

    if (cached == (int64_t)len || cached == 0)
        return cached;
    if (cached < 0)
        cached = 0; /* not in memory, or a file system that cannot say */

    struct read_job job = {
        .fd = file->fd,
        .offset = offset + (uint64_t)cached,
        .buf = buf + cached,
        .len = len - (size_t)cached,
    };
    int rc = pirn_blocking_run(read_on_pool, &job);
    if (rc < 0)
        return rc;
    return job.result < 0 ? job.result : cached + job.result;
}
