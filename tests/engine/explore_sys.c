/* SPDX-License-Identifier: MIT */
/* tests/engine/explore_sys.c - the world as the explorer shows it.
 *
 * Futexes, event descriptors, the wait set and the thread-local, keyed by
 * virtual thread.  The wait set is edge-triggered: a signal makes its entry
 * ready, signals coalesce, whoever polls first takes it, and a sleeper that
 * was woken may find that somebody else did.  System calls order nothing: an
 * algorithm must not lean on the kernel's own locks.  Everything else of the
 * table is absent: a model that needs it is too large.
 */
#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>

#include "engine/explore_internal.h"
#include "sys/sys.h"
#include "sys/tls.h"

enum { FIRST_FD = 1000, MAX_FDS = 16, MAX_ENTRIES = 4 };

struct entry {
    int fd;
    void *data;
    bool ready;
};

/* An event descriptor or a wait set; both are named by their number. */
struct file {
    bool open;
    bool is_set;
    uint64_t count;                    /* of an event descriptor */
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

static void announce(const char *what, const void *address, size_t size)
{
    struct explore_op op = {what, (uintptr_t)address, size, true,
                            EXPLORE_PLACE};

    explore_point(&op);
    explore_check_alive(address, EXPLORE_PLACE);
    explore_trace(what, address, 0, EXPLORE_PLACE);
}

static uint64_t sys_clock(void)
{
    return explore_active() ? 1000000 : real->clock_ns();
}

static uint64_t sys_random(void)
{
    return 4;
}

static int sys_futex_wait(uint32_t *word, uint32_t expected,
                          pirn_deadline deadline)
{
    if (!explore_active())
        return real->futex_wait(word, expected, deadline);
    announce("futex wait", word, sizeof *word);
    /* The kernel looks at the newest value. */
    if (*word != expected || explore_spurious())
        return 0;
    if (deadline.ns != UINT64_MAX && explore_choose(2) == 1)
        return -ETIMEDOUT;
    explore_block(EXPLORE_BLOCK_WAIT, word, EXPLORE_PLACE);
    return 0;
}

static void sys_futex_wake(uint32_t *word, int count)
{
    if (!explore_active()) {
        real->futex_wake(word, count);
        return;
    }
    /* The word may be freed memory by now: the kernel only compares its
     * address. */
    struct explore_op op = {"futex wake", (uintptr_t)word, sizeof *word, true,
                            EXPLORE_PLACE};

    explore_point(&op);
    explore_trace("futex wake", word, 0, EXPLORE_PLACE);
    explore_unblock(EXPLORE_BLOCK_WAIT, word, count);
}

static int open_file(bool is_set)
{
    for (int i = 0; i < MAX_FDS; i++) {
        if (!files[i].open) {
            files[i] = (struct file){.open = true, .is_set = is_set};
            return FIRST_FD + i;
        }
    }
    return -EMFILE;
}

static int sys_eventfd(void)
{
    return open_file(false);
}

static int sys_epoll_create(void)
{
    return open_file(true);
}

static int sys_timerfd(void)
{
    return open_file(false);
}

static int sys_timerfd_set(int fd, pirn_deadline deadline)
{
    (void)file_of(fd);
    (void)deadline;
    return 0;
}

static void sys_close(int fd)
{
    announce("close", file_of(fd), sizeof(struct file));
    file_of(fd)->open = false;
}

/* Make the entries that watch `fd` ready and wake one sleeper of each set. */
static void set_ready(int fd)
{
    for (int i = 0; i < MAX_FDS; i++) {
        struct file *set = &files[i];

        for (int k = 0; set->open && k < set->entry_count; k++) {
            if (set->entries[k].fd == fd) {
                set->entries[k].ready = true;
                explore_unblock(EXPLORE_BLOCK_WAIT, set, 1);
            }
        }
    }
}

static int sys_eventfd_signal(int fd)
{
    announce("eventfd signal", files, sizeof files);
    file_of(fd)->count++;
    set_ready(fd);
    return 0;
}

static ssize_t sys_read(int fd, void *buf, size_t len)
{
    struct file *file = file_of(fd);

    announce("eventfd read", files, sizeof files);
    if (file->count == 0)
        return -EAGAIN;
    memcpy(buf, &file->count, len);
    file->count = 0;
    return (ssize_t)len;
}

static int sys_epoll_add(int epoll_fd, int fd, uint32_t events, void *data)
{
    struct file *set = file_of(epoll_fd);

    (void)events;
    announce("epoll add", files, sizeof files);
    if (set->entry_count == MAX_ENTRIES)
        return -ENOSPC;
    set->entries[set->entry_count++] =
        (struct entry){fd, data, file_of(fd)->count > 0};
    return 0;
}

static int sys_epoll_remove(int epoll_fd, int fd)
{
    struct file *set = file_of(epoll_fd);

    announce("epoll remove", files, sizeof files);
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
        if (set->entries[i].ready) {
            set->entries[i].ready = false;
            events[count++] =
                (struct epoll_event){.events = EPOLLIN,
                                     .data = {.ptr = set->entries[i].data}};
        }
    }
    return count;
}

static int sys_epoll_wait(int epoll_fd, struct epoll_event *events,
                          int capacity, pirn_deadline deadline)
{
    struct file *set = file_of(epoll_fd);
    int count;

    announce("epoll wait", files, sizeof files);
    /* Ends: each round follows a signal, or nobody can go on. */
    while ((count = harvest(set, events, capacity)) == 0) {
        if (deadline.ns == 0 || explore_spurious())
            return 0;
        if (deadline.ns != UINT64_MAX && explore_choose(2) == 1)
            return 0;
        explore_block(EXPLORE_BLOCK_WAIT, set, EXPLORE_PLACE);
    }
    return count;
}

static int sys_thread_start(const char *name, void (*fn)(void *arg), void *arg)
{
    (void)name;
    explore_thread(fn, arg);
    return 0;
}

static struct pirn__sys table = {
    .clock_ns = sys_clock,
    .random = sys_random,
    .futex_wait = sys_futex_wait,
    .futex_wake = sys_futex_wake,
    .thread_start = sys_thread_start,
    .close = sys_close,
    .read = sys_read,
    .eventfd = sys_eventfd,
    .eventfd_signal = sys_eventfd_signal,
    .timerfd = sys_timerfd,
    .timerfd_set = sys_timerfd_set,
    .epoll_create = sys_epoll_create,
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

/* The library's one thread-local, instead of src/sys/tls.c. */

static void *outside;

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
    (void)fn;
}
