/* SPDX-License-Identifier: MIT */
/* pirn/io.h - counted buffers, and waiting on any descriptor.
 *
 * pirn_fd lends a descriptor that you made (a pipe, a signalfd, a device) to
 * the runtime:
 *
 *     pirn_fd *in;
 *     int rc = pirn_fd_adopt(descriptor, &in);
 *
 *     if (rc == 0)
 *         n = pirn_fd_read(in, buf, sizeof buf, pirn_after_ms(1000));
 *     pirn_fd_close(in);
 *
 * Sockets have calls of their own in pirn/net.h.
 */
#ifndef PIRN_IO_H
#define PIRN_IO_H

#include <pirn/future.h>
#include <pirn/link.h>

PIRN_BEGIN_DECLS

/* A counted buffer that an operation in flight may share. */
typedef struct pirn_buf pirn_buf;

/* A buffer of `size` > 0 bytes, empty, from the current runtime's allocator
 * (malloc without one).
 *
 * Thread    any
 * Errors    -EINVAL  size is 0 or above 1 GiB
 *           -ENOMEM  no memory
 */
PIRN_API PIRN_MUST_CHECK int pirn_buf_new(size_t size, pirn_buf **out);
PIRN_API pirn_buf *pirn_buf_ref(pirn_buf *buf);
PIRN_API void pirn_buf_unref(pirn_buf *buf);
PIRN_API char *pirn_buf_data(pirn_buf *buf);
PIRN_API size_t pirn_buf_size(const pirn_buf *buf); /* capacity */
PIRN_API size_t pirn_buf_len(const pirn_buf *buf);  /* bytes filled */
/* Set the filled length; more than the capacity counts as the capacity. */
PIRN_API void pirn_buf_set_len(pirn_buf *buf, size_t len);

/* A direction of readiness; a set of them where several make sense. */
enum pirn_interest {
    PIRN_READABLE = 1, /* data, end of stream, a connection, an error */
    PIRN_WRITABLE = 2  /* room, or an error */
};

/* A place among the waiters of a descriptor. */
typedef struct pirn_io_waiter {
    pirn_link link_;
    pirn_waker waker_;
    struct pirn__io *io_;
    PIRN_ATOMIC(uint8_t) state_;
    uint8_t direction_;
    bool entered_;
} pirn_io_waiter;

/* A close that can be awaited from a stackless task: ready when the descriptor
 * is gone.  Inside a poll pirn_fd_close() and its kin do not wait for that. */
typedef struct pirn_close_op {
    pirn_future future;
    pirn_io_waiter waiter_;
} pirn_close_op;

/* A counted wrapper of a descriptor. */
typedef struct pirn_fd pirn_fd;

/* Take over a descriptor and make it non-blocking.  Sockets, pipes, eventfd,
 * timerfd, signalfd, inotify and terminals can be waited on.  A character
 * device that cannot (/dev/null, /dev/zero) is always ready.  Regular files,
 * directories and block devices are refused, because reading them would block:
 * use the blocking pool.  A descriptor has one wrapper at a time, to which others
 * take references; a second one is noticed when it has to wait.
 *
 * Thread    any
 * Owns      on success the pirn_fd owns the descriptor; on error it is the
 *           caller's, open and with its flags unchanged, and *out is NULL
 * Errors    -EBADF   not an open descriptor
 *           -EINVAL  out is NULL
 *           -EPERM   a regular file, a directory or a block device
 *           -ENOMEM  no memory
 */
PIRN_API PIRN_MUST_CHECK int pirn_fd_adopt(int fd, pirn_fd **out);

/* Give the descriptor back as it was adopted, its blocking mode included, and
 * give up the reference.  Waiters and later calls answer PIRN_ECLOSED.
 *
 * Thread    any
 * Owns      the caller owns the returned descriptor; on error it still has the
 *           reference
 * Errors    -EINVAL       file is NULL
 *           -EBUSY        a system call on it is running in another thread
 *           PIRN_ECLOSED  it is closed, or was released before
 */
PIRN_API PIRN_MUST_CHECK int pirn_fd_release(pirn_fd *file);

/* One more reference; give one up.  The last one closes the descriptor, without
 * waiting.  unref(NULL) does nothing.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API pirn_fd *pirn_fd_ref(pirn_fd *file);
PIRN_API void pirn_fd_unref(pirn_fd *file);

/* Seal, wake the waiters with PIRN_ECLOSED and give up the caller's reference;
 * the descriptor goes with the last system call out.  Once: the other owners unref
 * theirs, for a second close stops the program.  close(NULL) does nothing.
 *
 * Thread    any
 * Suspends  in a fiber or on a plain thread until the descriptor is gone, a
 *           few microseconds at most; inside a poll it returns at once
 */
PIRN_API void pirn_fd_close(pirn_fd *file);

/* Close and prepare the wait; gives up the caller's reference.  With NULL it is
 * ready at once.
 *
 * Thread    any
 * Cancel    dropping it only stops waiting
 */
PIRN_API void pirn_fd_close_init(pirn_close_op *op, pirn_fd *file);

/* The descriptor, borrowed: for ioctl and the like. */
PIRN_API int pirn_fd_get(const pirn_fd *file);

/* Wait until the descriptor is ready in the given direction.  Readiness is a
 * hint that holds until a system call says EAGAIN; tell the library when yours
 * did with pirn_fd_not_ready().
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    nothing is lost
 * Errors    -EINVAL       file is NULL, or direction is not one of enum
 *                         pirn_interest
 *           -ECANCELED, -ETIMEDOUT, -EDEADLK  as pirn_await()
 *           PIRN_ECLOSED  closed meanwhile
 *           PIRN_ESHUTDOWN  the runtime it is bound to ended meanwhile
 *           PIRN_ENORUNTIME  polled by hand, and no runtime watches it
 *           PIRN_EFORKED  the runtime it is bound to is the parent process's
 *           -ENOMEM, -ENOSPC  it could not be registered with the runtime
 *           -EEXIST  the same, for another wrapper of this descriptor is
 */
PIRN_API PIRN_MUST_CHECK int pirn_fd_ready(pirn_fd *file,
                                           enum pirn_interest direction,
                                           pirn_deadline deadline);

/* A system call of yours on the descriptor would block.  The library asks the
 * kernel again before it believes it, so it does no harm to say so too late.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API void pirn_fd_not_ready(pirn_fd *file, enum pirn_interest direction);

/* The wait as a future. */
typedef struct pirn_fd_ready_op {
    pirn_future future;
    pirn_io_waiter waiter_;
    int rc; /* 0, or a code as above */
} pirn_fd_ready_op;

/* Prepare a wait.  It borrows `file`, which must stay until the end.
 *
 * Thread    any
 * Cancel    dropping it loses nothing; readiness passes to the next waiter
 */
PIRN_API void pirn_fd_ready_init(pirn_fd_ready_op *op, pirn_fd *file,
                                 enum pirn_interest direction);

/* Read or write what can be transferred at once, waiting until something can.
 * read: 0 is the end of the stream.  A write to a pipe without readers answers
 * -EPIPE; no signal is raised.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    nothing has been transferred
 * Errors    -EINVAL  file or buf is NULL, or len is above SSIZE_MAX
 *           those of pirn_fd_ready(), and what the system says (-EIO, -EPIPE,
 *           -EINVAL, ...)
 */
PIRN_API PIRN_MUST_CHECK ssize_t pirn_fd_read(pirn_fd *file, void *buf,
                                              size_t len,
                                              pirn_deadline deadline);
PIRN_API PIRN_MUST_CHECK ssize_t pirn_fd_write(pirn_fd *file, const void *buf,
                                               size_t len,
                                               pirn_deadline deadline);

PIRN_END_DECLS

#endif /* PIRN_IO_H */
