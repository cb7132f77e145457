/* SPDX-License-Identifier: MIT */
/* src/sys/linux.h - the functions behind pirn__sys_linux, by noun.
 *
 * Only the table in linux.c names them; everyone else calls through
 * `pirn__sys`.  sys.h says what each one promises.
 */
#ifndef PIRN_SYS_LINUX_H
#define PIRN_SYS_LINUX_H

#include <errno.h>
#include <time.h>

#include "sys/sys.h"

#define PIRN__NS_PER_S UINT64_C(1000000000)

/* What the call before said, as a result of ours. */
static inline int pirn__linux_code(int rc)
{
    return rc < 0 ? -errno : rc;
}

static inline ssize_t pirn__linux_count(ssize_t count)
{
    return count < 0 ? -errno : count;
}

/* Nanoseconds as the kernel takes them; 64 bits of them always fit. */
static inline struct timespec pirn__linux_timespec(uint64_t ns)
{
    return (struct timespec){
        .tv_sec = (time_t)(ns / PIRN__NS_PER_S),
        .tv_nsec = (long)(ns % PIRN__NS_PER_S),
    };
}

/* linux_thread.c */
uint64_t pirn__linux_clock_ns(void);
uint64_t pirn__linux_remaining_ns(pirn_deadline deadline); /* 0 when past */
uint64_t pirn__linux_random(void);
int pirn__linux_futex_wait(uint32_t *word, uint32_t expected,
                           pirn_deadline deadline);
void pirn__linux_futex_wake(uint32_t *word, int count);
void pirn__linux_thread_shorten_turns(void);
int pirn__linux_thread_start(const char *name, size_t stack_size,
                             void (*fn)(void *arg), void *arg);

/* linux_memory.c */
size_t pirn__linux_page_size(void);
int pirn__linux_map(size_t size, void **out);
int pirn__linux_unmap(void *base, size_t size);
int pirn__linux_protect_none(void *base, size_t size);
int pirn__linux_guard_install(void *base, size_t size);
int pirn__linux_discard(void *base, size_t size);
int pirn__linux_resident(void *base, size_t size, unsigned char *pages);
int pirn__linux_mapping_limit(void);

/* linux_fd.c */
void pirn__linux_close(int fd);
ssize_t pirn__linux_read(int fd, void *buf, size_t len);
/* Only for the simulated world, whose sockets take files. */
ssize_t pirn__linux_pread(int fd, void *buf, size_t len, off_t offset);
ssize_t pirn__linux_write(int fd, const void *buf, size_t len);
ssize_t pirn__linux_readv(int fd, const struct iovec *vec, int count);
ssize_t pirn__linux_writev(int fd, const struct iovec *vec, int count);
ssize_t pirn__linux_sendfile(int socket, int file, off_t *offset, size_t count);
int pirn__linux_eventfd(void);
int pirn__linux_eventfd_signal(int fd);
int pirn__linux_timerfd(void);
int pirn__linux_timerfd_set(int fd, pirn_deadline deadline);
int pirn__linux_fd_kind(int fd);
int pirn__linux_get_nonblock(int fd);
int pirn__linux_set_nonblock(int fd, bool nonblock);

/* linux_wait.c */
int pirn__linux_poll(struct pollfd *fds, int count, pirn_deadline deadline);
int pirn__linux_epoll_create(void);
int pirn__linux_epoll_add(int epoll_fd, int fd, uint32_t events, void *data);
int pirn__linux_epoll_remove(int epoll_fd, int fd);
int pirn__linux_epoll_wait(int epoll_fd, struct epoll_event *events,
                           int capacity, pirn_deadline deadline);

/* linux_socket.c */
int pirn__linux_socket(int family);
int pirn__linux_bind(int fd, const struct sockaddr *address, unsigned len);
int pirn__linux_listen(int fd, int backlog);
int pirn__linux_accept(int fd, struct sockaddr *address, unsigned *len);
int pirn__linux_connect(int fd, const struct sockaddr *address, unsigned len);
ssize_t pirn__linux_send(int fd, const void *buf, size_t len);
ssize_t pirn__linux_send_more(int fd, const void *buf, size_t len);
ssize_t pirn__linux_recv(int fd, void *buf, size_t len);
ssize_t pirn__linux_sendv(int fd, const struct iovec *vec, int count);
int pirn__linux_shutdown(int fd, int how);
int pirn__linux_getsockopt(int fd, int level, int name, void *value,
                           unsigned *len);
int pirn__linux_setsockopt(int fd, int level, int name, const void *value,
                           unsigned len);
int pirn__linux_sockname(int fd, struct sockaddr *address, unsigned *len);
int pirn__linux_peername(int fd, struct sockaddr *address, unsigned *len);

#endif /* PIRN_SYS_LINUX_H */
