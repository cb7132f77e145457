/* SPDX-License-Identifier: MIT */
/* tests/engine/explore_sys.c - the world as the explorer shows it.
 *
 * Futexes, event descriptors, poll, the wait set, the clock, starting threads
 * and the thread-local, keyed by virtual thread.  The wait set is
 * edge-triggered: a signal makes its entry ready, signals coalesce, whoever
 * polls first takes it, and a sleeper that was woken may find that somebody
 * else did.  System calls order nothing: an algorithm must not lean on the
 * kernel's own locks.  Everything else of the table is absent: a model that
 * needs it is too large.
 *
 * All descriptors are one place for the search: their calls are few.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/epoll.h>

#include "engine/explore_internal.h"
#include "sys/sys.h"
#include "sys/tls.h"

enum { FIRST_FD = 1000, MAX_FDS = 24, MAX_ENTRIES = 12 };

struct entry {
    int fd;
    uint32_t events;
    void *data;
    bool ready;
};

/* An event descriptor, a timer or a wait set. */
struct file {
    bool open;
    uint64_t count;                    /* of an event descriptor or a timer */
    uint64_t timer_ns;                 /* UINT64_MAX: not armed */
    struct entry entries[MAX_ENTRIES]; /* of a set */
    int entry_count;
};

static struct file files[MAX_FDS];
static const struct pirn__sys *real;

void explore_sys_reset(void)
{
    memset(files, 0, sizeof files);
}

static struct file *file_of(int fd)
{
    struct file *file = &files[fd - FIRST_FD];

    explore_check(fd >= FIRST_FD && fd < FIRST_FD + MAX_FDS && file->open,
                  "the descriptor is open", EXPLORE_PLACE);
    return file;
}

static void announce(const char *what, const void *address, size_t size,
                     pirn_deadline deadline)
{
    struct explore_op op = {
        .address = (uintptr_t)address,
        .size = size,
        .write = true,
        .time = explore_may_time_out(deadline.ns),
        .place = EXPLORE_PLACE,
    };

    explore_point(&op);
    explore_trace(what, address, 0, EXPLORE_PLACE);
}

static void announce_files(const char *what, pirn_deadline deadline)
{
    announce(what, files, sizeof files, deadline);
}

static uint64_t sys_clock(void)
{
    return explore_active() ? explore_now() : real->clock_ns();
}

static uint64_t sys_random(void)
{
    return 4;
}

/* ---- Threads. ---- */

static int sys_futex_wait(uint32_t *word, uint32_t expected,
                          pirn_deadline deadline)
{
    if (!explore_active())
        return real->futex_wait(word, expected, deadline);
    announce("futex wait", word, sizeof *word, deadline);
    explore_check_alive(word, sizeof *word, EXPLORE_PLACE);
    /* The kernel looks at the newest value. */
    if (*word != expected || explore_spurious())
        return 0;
    if (deadline.ns <= explore_now() || explore_times_out(deadline.ns))
        return -ETIMEDOUT;
    return explore_wait(word, deadline.ns, EXPLORE_PLACE) ? -ETIMEDOUT : 0;
}

static void sys_futex_wake(uint32_t *word, int count)
{
    if (!explore_active()) {
        real->futex_wake(word, count);
        return;
    }
    /* The word may be freed memory by now: the kernel only compares its
     * address. */
    announce("futex wake", word, sizeof *word, PIRN_NEVER);
    explore_unblock(word, count);
}

static int sys_thread_start(const char *name, size_t stack_size,
                            void (*fn)(void *arg), void *arg)
{
    (void)name;
    (void)stack_size;
    if (explore_refused())
        return -EAGAIN;
    explore_thread(fn, arg);
    return 0;
}

static void sys_thread_shorten_turns(void)
{
}

/* ---- Descriptors. ---- */

static int open_file(void)
{
    for (int i = 0; i < MAX_FDS; i++) {
        if (!files[i].open) {
            files[i] = (struct file){.open = true, .timer_ns = UINT64_MAX};
            return FIRST_FD + i;
        }
    }
    return -EMFILE;
}

/* A set forgets a closed descriptor, as nobody has a copy of it. */
static void sys_close(int fd)
{
    announce_files("close", PIRN_NEVER);
    file_of(fd)->open = false;
    for (int i = 0; i < MAX_FDS; i++) {
        struct file *set = &files[i];

        for (int k = 0; k < set->entry_count; k++) {
            if (set->entries[k].fd == fd)
                set->entries[k--] = set->entries[--set->entry_count];
        }
    }
}

/* Make the entries that watch `fd` ready and wake one sleeper of each set, and
 * everybody who polls. */
static void set_ready(int fd)
{
    for (int i = 0; i < MAX_FDS; i++) {
        struct file *set = &files[i];

        for (int k = 0; set->open && k < set->entry_count; k++) {
            if (set->entries[k].fd == fd) {
                set->entries[k].ready = true;
                explore_unblock(set, 1);
            }
        }
    }
    explore_unblock(files, EXPLORE_THREADS);
}

static int sys_timerfd_set(int fd, pirn_deadline deadline)
{
    announce_files("set timer", PIRN_NEVER);
    file_of(fd)->timer_ns = deadline.ns;
    explore_sys_fire_timers();
    return 0;
}

uint64_t explore_sys_next_timer(void)
{
    uint64_t next = UINT64_MAX;

    for (int i = 0; i < MAX_FDS; i++) {
        if (files[i].open && files[i].timer_ns < next)
            next = files[i].timer_ns;
    }
    return next;
}

void explore_sys_fire_timers(void)
{
    for (int i = 0; i < MAX_FDS; i++) {
        if (!files[i].open || files[i].timer_ns > explore_now())
            continue;
        files[i].timer_ns = UINT64_MAX;
        files[i].count++;
        set_ready(FIRST_FD + i);
    }
}

static int sys_eventfd_signal(int fd)
{
    announce_files("signal", PIRN_NEVER);
    file_of(fd)->count++;
    set_ready(fd);
    return 0;
}

static ssize_t sys_read(int fd, void *buf, size_t len)
{
    struct file *file;

    announce_files("read", PIRN_NEVER);
    file = file_of(fd);
    if (file->count == 0)
        return -EAGAIN;
    memcpy(buf, &file->count, len < sizeof file->count ? len
                                                       : sizeof file->count);
    file->count = 0;
    return (ssize_t)len;
}

/* What the library has to say to people. */
static ssize_t sys_write(int fd, const void *buf, size_t len)
{
    (void)fd;
    (void)buf;
    return (ssize_t)len;
}

static int sys_set_nonblock(int fd, bool nonblock)
{
    (void)file_of(fd);
    return nonblock;
}

/* A set is readable while one of its entries is. */
static bool is_readable(const struct file *file)
{
    bool ready = file->count > 0;

    for (int i = 0; i < file->entry_count; i++)
        ready |= file->entries[i].ready;
    return file->open && ready;
}

static int sys_poll(struct pollfd *fds, int count, pirn_deadline deadline)
{
    announce_files("poll", deadline);
    /* Ends: each round follows a signal, or nobody can go on. */
    for (;;) {
        int ready = 0;

        for (int i = 0; i < count; i++) {
            /* It may have been closed since the wait began. */
            bool is = (fds[i].events & POLLIN) != 0 &&
                      is_readable(&files[fds[i].fd - FIRST_FD]);

            fds[i].revents = is ? POLLIN : 0;
            ready += is;
        }
        if (ready > 0 || deadline.ns <= explore_now() ||
            explore_times_out(deadline.ns) || explore_spurious())
            return ready;
        if (explore_wait(files, deadline.ns, EXPLORE_PLACE))
            return 0;
    }
}

/* ---- The wait set. ---- */

static int sys_epoll_add(int epoll_fd, int fd, uint32_t events, void *data)
{
    struct file *set;

    announce_files("watch", PIRN_NEVER);
    set = file_of(epoll_fd);
    if (set->entry_count == MAX_ENTRIES)
        return -ENOSPC;
    set->entries[set->entry_count++] =
        (struct entry){fd, events, data, file_of(fd)->count > 0};
    return 0;
}

static int sys_epoll_remove(int epoll_fd, int fd)
{
    struct file *set;

    announce_files("unwatch", PIRN_NEVER);
    set = file_of(epoll_fd);
    for (int i = 0; i < set->entry_count; i++) {
        if (set->entries[i].fd == fd) {
            set->entries[i] = set->entries[--set->entry_count];
            return 0;
        }
    }
    return -ENOENT;
}

static int harvest(struct file *set, struct epoll_event *events, int capacity)
{
    int count = 0;

    for (int i = 0; i < set->entry_count && count < capacity; i++) {
        struct entry *entry = &set->entries[i];

        if (entry->ready) {
            entry->ready = false;
            events[count++] = (struct epoll_event){
                .events = entry->events & EPOLLIN,
                .data = {.ptr = entry->data}};
        }
    }
    return count;
}

static int sys_epoll_wait(int epoll_fd, struct epoll_event *events,
                          int capacity, pirn_deadline deadline)
{
    struct file *set;
    int count;

    announce_files("epoll wait", deadline);
    set = file_of(epoll_fd);
    /* Ends: each round follows a signal, or nobody can go on. */
    while ((count = harvest(set, events, capacity)) == 0) {
        if (deadline.ns <= explore_now() || explore_times_out(deadline.ns) ||
            explore_spurious())
            return 0;
        if (explore_wait(set, deadline.ns, EXPLORE_PLACE))
            return 0;
    }
    return count;
}

static const struct pirn__sys table = {
    .clock_ns = sys_clock,
    .random = sys_random,
    .futex_wait = sys_futex_wait,
    .futex_wake = sys_futex_wake,
    .thread_start = sys_thread_start,
    .thread_shorten_turns = sys_thread_shorten_turns,
    .close = sys_close,
    .read = sys_read,
    .write = sys_write,
    .eventfd = open_file,
    .eventfd_signal = sys_eventfd_signal,
    .timerfd = open_file,
    .timerfd_set = sys_timerfd_set,
    .set_nonblock = sys_set_nonblock,
    .poll = sys_poll,
    .epoll_create = open_file,
    .epoll_add = sys_epoll_add,
    .epoll_remove = sys_epoll_remove,
    .epoll_wait = sys_epoll_wait,
};

void explore_sys_install(void)
{
    real = pirn__sys;
    pirn__sys = &table;
}

void explore_sys_remove(void)
{
    pirn__sys = real;
}

/* ---- The library's one thread-local, instead of src/sys/tls.c. ---- */

static void *outside;
static void (*at_end)(void *value);

void *pirn__tls_get(void)
{
    return explore_active() ? *explore_tls() : outside;
}

void pirn__tls_set(void *value)
{
    if (explore_active())
        *explore_tls() = value;
    else
        outside = value;
}

void pirn__tls_on_exit(void (*fn)(void *value))
{
    at_end = fn;
}

void explore_tls_end(void)
{
    void *value = *explore_tls();

    if (value != NULL && at_end != NULL)
        at_end(value);
    *explore_tls() = NULL;
}
