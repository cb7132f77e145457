/* SPDX-License-Identifier: MIT */
/* src/sys/linux.c - the table of the real system.
 *
 * The functions stand in linux_thread.c (clock, chance, futexes, threads),
 * linux_memory.c, linux_fd.c (any descriptor), linux_wait.c (poll and epoll)
 * and linux_socket.c.  None of them allocates, none keeps state that matters.
 */
#include "sys/linux.h"

const struct pirn__sys pirn__sys_linux = {
    .clock_ns = pirn__linux_clock_ns,
    .random = pirn__linux_random,

    .futex_wait = pirn__linux_futex_wait,
    .futex_wake = pirn__linux_futex_wake,
    .thread_start = pirn__linux_thread_start,
    .thread_shorten_turns = pirn__linux_thread_shorten_turns,

    .page_size = pirn__linux_page_size,
    .map = pirn__linux_map,
    .unmap = pirn__linux_unmap,
    .protect_none = pirn__linux_protect_none,
    .guard_install = pirn__linux_guard_install,
    .guard_beside = pirn__linux_guard_install,
    .discard = pirn__linux_discard,
    .resident = pirn__linux_resident,
    .mapping_limit = pirn__linux_mapping_limit,

    .close = pirn__linux_close,
    .read = pirn__linux_read,
    .write = pirn__linux_write,
    .readv = pirn__linux_readv,
    .writev = pirn__linux_writev,
    .eventfd = pirn__linux_eventfd,
    .eventfd_signal = pirn__linux_eventfd_signal,
    .timerfd = pirn__linux_timerfd,
    .timerfd_set = pirn__linux_timerfd_set,
    .fd_kind = pirn__linux_fd_kind,
    .get_nonblock = pirn__linux_get_nonblock,
    .set_nonblock = pirn__linux_set_nonblock,
    .poll = pirn__linux_poll,

    .socket = pirn__linux_socket,
    .bind = pirn__linux_bind,
    .listen = pirn__linux_listen,
    .accept = pirn__linux_accept,
    .connect = pirn__linux_connect,
    .send = pirn__linux_send,
    .send_more = pirn__linux_send_more,
    .recv = pirn__linux_recv,
    .sendv = pirn__linux_sendv,
    .shutdown = pirn__linux_shutdown,
    .getsockopt = pirn__linux_getsockopt,
    .setsockopt = pirn__linux_setsockopt,
    .sockname = pirn__linux_sockname,
    .peername = pirn__linux_peername,
    .sendfile = pirn__linux_sendfile,

    .epoll_create = pirn__linux_epoll_create,
    .epoll_add = pirn__linux_epoll_add,
    .epoll_remove = pirn__linux_epoll_remove,
    .epoll_wait = pirn__linux_epoll_wait,
};

#ifdef PIRN_HOSTILE
const struct pirn__sys *pirn__sys = &pirn__sys_hostile;
#else
const struct pirn__sys *pirn__sys = &pirn__sys_linux;
#endif
