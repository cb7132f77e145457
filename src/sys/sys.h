/* SPDX-License-Identifier: MIT */
/* src/sys/sys.h - the world outside the process as one table of functions.
 *
 * Every system call of the library goes through `pirn__sys`, so that the model
 * explorer and the simulated world can sit under the whole runtime.  Every
 * function returns a result >= 0 or a negative errno value; errno itself is
 * read nowhere else.  Descriptors are made CLOEXEC and non-blocking.
 *
 * The production table is in linux.c.  Further down the same folder stand the
 * heap (heap.h), the thread-local (tls.h), the context switch (switch.h) and
 * what sanitizers must be told (checker.h).
 */
#ifndef PIRN_SYS_SYS_H
#define PIRN_SYS_SYS_H

#include <pirn/base.h>

struct iovec;
struct sockaddr;
struct stat;
struct epoll_event;
struct pollfd;

struct pirn__sys {
    /* Time and chance. */
    uint64_t (*clock_ns)(void); /* CLOCK_MONOTONIC; never 0 */
    uint64_t (*random)(void);   /* 64 bits from the kernel */

    /* Threads.  futex_wait returns 0 when woken or when *word != expected,
     * -ETIMEDOUT at the deadline; it may return 0 for no reason. */
    int (*futex_wait)(uint32_t *word, uint32_t expected,
                      pirn_deadline deadline);
    void (*futex_wake)(uint32_t *word, int count);
    /* Start a detached thread with all signals blocked but those of its own
     * faults; `name` is cut at 15 bytes.  Stack size 0: the C library's, at
     * least 256 KiB. */
    int (*thread_start)(const char *name, size_t stack_size,
                        void (*fn)(void *arg), void *arg);
    /* Ask for turns on the processor that are shorter than usual, which makes
     * the calling thread the next one when it is woken.  Its share does not
     * change.  Nothing where the system does not know such or forbids it, or has
     * been told how to schedule this thread. */
    void (*thread_shorten_turns)(void);

    /* Memory; sizes are multiples of the page size. */
    size_t (*page_size)(void);
    int (*map)(size_t size, void **out); /* private, no-reserve, small pages */
    /* May fail with -ENOMEM: a cut in the middle makes one mapping more. */
    int (*unmap)(void *base, size_t size);
    int (*protect_none)(void *base, size_t size);
    int (*guard_install)(void *base, size_t size); /* a guard region */
    /* The same beside another one, whose page table it shares: takes no memory,
     * so it is refused only where memory has been locked since. */
    int (*guard_beside)(void *base, size_t size);
    int (*discard)(void *base, size_t size); /* give pages back, keep mapping */
    /* One byte per page: bit 0 is set for a page that is in memory. */
    int (*resident)(void *base, size_t size, unsigned char *pages);
    int (*mapping_limit)(void);              /* vm.max_map_count, or -errno */

    /* Descriptors. */
    void (*close)(int fd);
    ssize_t (*read)(int fd, void *buf, size_t len);
    ssize_t (*write)(int fd, const void *buf, size_t len);
    ssize_t (*readv)(int fd, const struct iovec *vec, int count);
    ssize_t (*writev)(int fd, const struct iovec *vec, int count);
    int (*eventfd)(void);
    /* Make it readable: one system call, where write() needs three to keep a
     * pipe's SIGPIPE away. */
    int (*eventfd_signal)(int fd);
    int (*timerfd)(void);
    /* Arm a timerfd for an absolute monotonic time; PIRN_NEVER disarms. */
    int (*timerfd_set)(int fd, pirn_deadline deadline);
    /* Bits: see enum pirn__fd_kind. */
    int (*fd_kind)(int fd);
    int (*get_nonblock)(int fd);                /* 0 or 1 */
    int (*set_nonblock)(int fd, bool nonblock); /* previous setting */
    /* Wait on a few descriptors; poll(2) results in revents.  0 at the
     * deadline. */
    int (*poll)(struct pollfd *fds, int count, pirn_deadline deadline);

    /* Sockets.  socket is a stream socket of `family`. */
    int (*socket)(int family);
    int (*bind)(int fd, const struct sockaddr *address, unsigned len);
    int (*listen)(int fd, int backlog);
    int (*accept)(int fd, struct sockaddr *address, unsigned *len);
    int (*connect)(int fd, const struct sockaddr *address, unsigned len);
    ssize_t (*send)(int fd, const void *buf, size_t len); /* no SIGPIPE */
    /* The same; TCP may wait for more before it sends a part of a segment. */
    ssize_t (*send_more)(int fd, const void *buf, size_t len);
    ssize_t (*recv)(int fd, void *buf, size_t len);
    /* No SIGPIPE either. */
    ssize_t (*sendv)(int fd, const struct iovec *vec, int count);
    int (*shutdown)(int fd, int how);
    int (*getsockopt)(int fd, int level, int name, void *value, unsigned *len);
    int (*setsockopt)(int fd, int level, int name, const void *value,
                      unsigned len);
    int (*sockname)(int fd, struct sockaddr *address, unsigned *len);
    int (*peername)(int fd, struct sockaddr *address, unsigned *len);
    ssize_t (*sendfile)(int socket, int file, off_t *offset, size_t count);

    /* The wait set. */
    int (*epoll_create)(void);
    int (*epoll_add)(int epoll_fd, int fd, uint32_t events, void *data);
    int (*epoll_remove)(int epoll_fd, int fd);
    /* Wait until the deadline: PIRN_EXPIRED does not wait and makes no clock
     * read, PIRN_NEVER waits for ever without one. */
    int (*epoll_wait)(int epoll_fd, struct epoll_event *events, int capacity,
                      pirn_deadline deadline);
};

/* What fd_kind() says. */
enum pirn__fd_kind {
    PIRN__FD_OTHER,
    PIRN__FD_STREAM_SOCKET, /* TCP and Unix streams */
    PIRN__FD_TCP,           /* short transfers mean "would block" */
    PIRN__FD_PIPE,          /* likewise; not so when reading in packet mode,
                               which cannot be told from here */
    PIRN__FD_CHARACTER,     /* a character device */
    PIRN__FD_REGULAR,       /* regular files, directories, block devices */
};

extern const struct pirn__sys *pirn__sys;

/* The table of the real system; and one over it, in the hostile build. */
extern const struct pirn__sys pirn__sys_linux;
extern struct pirn__sys pirn__sys_hostile;

#endif /* PIRN_SYS_SYS_H */
