/* SPDX-License-Identifier: MIT */
/* tools/pirn/file.h - open and read files below a folder, from a fiber.
 *
 * What the kernel can answer from its caches is done on the spot; what would
 * wait for a disk goes to the blocking pool, so that no other fiber waits with
 * this one.  No path, whatever its symbolic links say, leads out of the folder.
 */
#ifndef PIRN_TOOLS_FILE_H
#define PIRN_TOOLS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file {
    int fd;
    bool is_folder;
    bool is_regular;
    uint64_t size;
    int64_t modified; /* seconds since 1970 */
};

/* Open the folder that the paths of file_open() start from; a descriptor, or a
 * negative code.  It may block: call it before the runtime runs. */
int file_open_root(const char *folder);

/* Open `path`, which is relative and normalised ("" is the root itself).
 * 0, or a negative code: what open() says, -EXDEV for a link that leads out,
 * and those of pirn_blocking_run(). */
int file_open(int root_fd, const char *path, struct file *out);

void file_close(struct file *file);

/* Read up to `len` bytes at `offset`; fewer only at the end of the file.  The
 * count, or a negative code. */
int64_t file_read(const struct file *file, uint64_t offset, char *buf,
                  size_t len);

#endif /* PIRN_TOOLS_FILE_H */
