/* SPDX-License-Identifier: MIT */
/* src/testing/sim_sys.c - the system table of the simulated world.
 *
 * A wait set keeps which of its entries have had news; what they are ready for
 * is looked up when somebody harvests, as the kernel does.  An event wakes one
 * of those who sleep in a set, and one who leaves something behind wakes the
 * next.
 *
 * Memory is the real one.  Descriptors have numbers from FIRST_FD on, the
 * lowest free one first, so that one that is used after it was closed meets
 * somebody else; smaller numbers are the real system's.
 */
#include "testing/sim.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/lock.h"

enum { FIRST_FD = 100000, FILES = 4096 };

static const struct pirn__sys *const real = &pirn__sys_linux;
static const struct pirn__sys *sys_before;
static const struct pirn__lock_ops *locks_before;

static struct {
    struct pirn__sim_file *files;
    uint32_t used; /* none is open from here on */
    uint32_t more; /* may be opened; UINT32_MAX: no limit */
    uint64_t uses;
    uint32_t spared; /* threads that are not refused */
} w;

/* Files. */

static bool is_ours(int fd)
{
    return fd >= FIRST_FD && fd < FIRST_FD + FILES;
}

struct pirn__sim_file *pirn__sim_file_of(int fd)
{
    struct pirn__sim_file *file = &w.files[is_ours(fd) ? fd - FIRST_FD : 0];

    if (is_ours(fd) && file->kind != PIRN__SIM_CLOSED)
        return file;
    if (fd < FIRST_FD)
        pirn__sim_blame("descriptors",
                        "descriptor %d of the real system is waited for", fd);
    else
        pirn__sim_blame("descriptors", "descriptor %d is used and not open",
                        fd - FIRST_FD);
    return NULL;
}

int pirn__sim_file_fd(const struct pirn__sim_file *file)
{
    return FIRST_FD + (int)(file - w.files);
}

struct pirn__sim_file *pirn__sim_file_next(struct pirn__sim_file *after)
{
    struct pirn__sim_file *file = after == NULL ? w.files : after + 1;

    while (file < w.files + w.used && file->kind == PIRN__SIM_CLOSED)
        file++;
    return file < w.files + w.used ? file : NULL;
}

void pirn__sim_files_limit(uint32_t more)
{
    w.more = more;
}

int pirn__sim_file_open(enum pirn__sim_kind kind)
{
    uint32_t i = 0;

    while (i < w.used && w.files[i].kind != PIRN__SIM_CLOSED)
        i++;
    if (i == FILES || w.more == 0)
        return -EMFILE;
    if (w.more != UINT32_MAX)
        w.more--;
    if (i == w.used)
        w.used++;
    w.files[i] = (struct pirn__sim_file){.kind = kind, .generation = ++w.uses};
    pirn__sim_see(PIRN_SIM_FD_OPENED, FIRST_FD + i);
    return FIRST_FD + (int)i;
}

static int open_paused(const char *what, enum pirn__sim_kind kind)
{
    pirn_sim_pause(what, 0);
    return pirn__sim_file_open(kind);
}

static void clear(struct pirn__sim_file *file)
{
    pirn__sim_give(file->entries, file->entry_room * sizeof *file->entries);
    pirn__sim_give(file->queue, file->queue_room * sizeof(*file->queue));
    *file = (struct pirn__sim_file){.kind = PIRN__SIM_CLOSED};
}

/* Sets. */

static uint32_t mask_of(const struct pirn__sim_file *file);

/* What an entry would be reported with. */
static uint32_t entry_mask(const struct pirn__sim_entry *entry)
{
    bool edge = (entry->events & EPOLLET) != 0;

    if (edge && !entry->ready)
        return 0;
    return mask_of(&w.files[entry->fd - FIRST_FD]) &
           (entry->events | EPOLLERR | EPOLLHUP);
}

static bool has_news(const struct pirn__sim_file *set)
{
    for (size_t i = 0; i < set->entry_count; i++) {
        if (entry_mask(&set->entries[i]) != 0)
            return true;
    }
    return false;
}

static uint32_t mask_of(const struct pirn__sim_file *file)
{
    switch (file->kind) {
    case PIRN__SIM_EVENT:
        return EPOLLOUT | (file->count > 0 ? EPOLLIN : 0u);
    case PIRN__SIM_TIMER:
        return file->count > 0 ? EPOLLIN : 0;
    case PIRN__SIM_SET:
        /* One level deep: nobody puts a set into a set. */
        return has_news(file) ? EPOLLIN : 0;
    case PIRN__SIM_SOCKET:
    case PIRN__SIM_LISTENER:
        return pirn__sim_net_mask(file);
    case PIRN__SIM_CLOSED:
        break;
    }
    return 0;
}

void pirn__sim_file_signal(int fd)
{
    for (uint32_t i = 0; i < w.used; i++) {
        struct pirn__sim_file *set = &w.files[i];

        for (size_t k = 0; set->kind == PIRN__SIM_SET && k < set->entry_count;
             k++) {
            if (set->entries[k].fd != fd)
                continue;
            set->entries[k].ready = true;
            pirn__sim_wake(set, 1);
        }
    }
    /* Those who poll look at everything again. */
    pirn__sim_wake(&w, FILES);
}

static struct pirn__sim_file *set_of(int fd)
{
    struct pirn__sim_file *set = pirn__sim_file_of(fd);

    return set != NULL && set->kind == PIRN__SIM_SET ? set : NULL;
}

static int sys_epoll_create(void)
{
    return open_paused("epoll_create", PIRN__SIM_SET);
}

static int sys_epoll_add(int epoll_fd, int fd, uint32_t events, void *data)
{
    struct pirn__sim_file *set, *file;

    pirn_sim_pause("epoll_add", (uint64_t)fd);
    set = set_of(epoll_fd);
    file = pirn__sim_file_of(fd);
    if (set == NULL || file == NULL)
        return -EBADF;
    if (set->entry_count == set->entry_room)
        set->entries = pirn__sim_grow(set->entries, &set->entry_room,
                                      sizeof *set->entries);
    set->entries[set->entry_count++] =
        (struct pirn__sim_entry){fd, events, data, true};
    if (mask_of(file) != 0) {
        pirn__sim_wake(set, 1);
        pirn__sim_wake(&w, FILES);
    }
    return 0;
}

static bool forget_entry(struct pirn__sim_file *set, int fd)
{
    for (size_t i = 0; i < set->entry_count; i++) {
        if (set->entries[i].fd == fd) {
            set->entries[i] = set->entries[--set->entry_count];
            return true;
        }
    }
    return false;
}

static int sys_epoll_remove(int epoll_fd, int fd)
{
    struct pirn__sim_file *set;

    pirn_sim_pause("epoll_remove", (uint64_t)fd);
    set = set_of(epoll_fd);
    if (set == NULL)
        return -EBADF;
    return forget_entry(set, fd) ? 0 : -ENOENT;
}

/* Begins anywhere: no order is promised. */
static int harvest(struct pirn__sim_file *set, struct epoll_event *events,
                   int capacity)
{
    size_t from =
        set->entry_count > 1 ? pirn_sim_below((uint32_t)set->entry_count) : 0;
    int count = 0;

    for (size_t i = 0; i < set->entry_count && count < capacity; i++) {
        struct pirn__sim_entry *entry =
            &set->entries[(from + i) % set->entry_count];
        uint32_t mask = entry_mask(entry);

        entry->ready = false;
        if (mask != 0)
            events[count++] = (struct epoll_event){
                .events = mask, .data = {.ptr = entry->data}};
    }
    if (count > 0 && has_news(set))
        pirn__sim_wake(set, 1);
    return count;
}

static bool is_due(pirn_deadline deadline)
{
    return deadline.ns <= pirn_sim_now_ns();
}

static int sys_epoll_wait(int epoll_fd, struct epoll_event *events,
                          int capacity, pirn_deadline deadline)
{
    struct pirn__sim_file *set;
    bool timed_out = false;
    int count;

    pirn_sim_pause("epoll_wait", deadline.ns == 0);
    set = set_of(epoll_fd);
    if (set == NULL)
        return -EBADF;
    if (deadline.ns != 0 && pirn__sim_fault(pirn__sim_options()->spurious))
        return 0;
    /* Ends with an event or at the deadline. */
    while ((count = harvest(set, events, capacity)) == 0 && !timed_out &&
           !is_due(deadline)) {
        timed_out = pirn__sim_wait(set, deadline.ns);
        if (set->kind != PIRN__SIM_SET)
            return -EBADF;
    }
    pirn_sim_pause("epoll_wait ends", (uint64_t)count);
    return count;
}

static int look(struct pollfd *fds, int count)
{
    int ready = 0;

    for (int i = 0; i < count; i++) {
        const struct pirn__sim_file *file = pirn__sim_file_of(fds[i].fd);
        uint32_t wanted = (uint16_t)fds[i].events;
        uint32_t mask = file == NULL ? POLLNVAL : mask_of(file);

        mask &= wanted | (uint32_t)(POLLERR | POLLHUP | POLLNVAL);
        fds[i].revents = (short)mask;
        ready += mask != 0;
    }
    return ready;
}

static int sys_poll(struct pollfd *fds, int count, pirn_deadline deadline)
{
    bool timed_out = false;
    int ready;

    pirn_sim_pause("poll", (uint64_t)count);
    if (deadline.ns != 0 && pirn__sim_fault(pirn__sim_options()->spurious))
        deadline = PIRN_EXPIRED;
    /* Ends with an event or at the deadline. */
    while ((ready = look(fds, count)) == 0 && !timed_out && !is_due(deadline))
        timed_out = pirn__sim_wait(&w, deadline.ns);
    return ready;
}

/* Eventfds and timers. */

static int sys_eventfd(void)
{
    return open_paused("eventfd", PIRN__SIM_EVENT);
}

static int sys_eventfd_signal(int fd)
{
    struct pirn__sim_file *file;

    pirn_sim_pause("signal", (uint64_t)fd);
    file = pirn__sim_file_of(fd);
    if (file == NULL)
        return -EBADF;
    file->count++;
    pirn__sim_file_signal(fd);
    return 0;
}

static int sys_timerfd(void)
{
    return open_paused("timerfd", PIRN__SIM_TIMER);
}

static void fire(void *object, uint64_t generation)
{
    struct pirn__sim_file *file = object;

    if (file->kind != PIRN__SIM_TIMER || file->generation != generation)
        return;
    file->count++;
    pirn__sim_file_signal(pirn__sim_file_fd(file));
}

static int sys_timerfd_set(int fd, pirn_deadline deadline)
{
    struct pirn__sim_file *file;

    pirn_sim_pause("timerfd_set", deadline.ns);
    file = pirn__sim_file_of(fd);
    if (file == NULL || file->kind != PIRN__SIM_TIMER)
        return -EBADF;
    file->count = 0;
    file->generation = ++w.uses;
    if (deadline.ns != UINT64_MAX)
        pirn__sim_at(pirn__sim_latest(deadline.ns), fire, file,
                     file->generation);
    return 0;
}

/* Transfers of what is no socket. */

static ssize_t sys_read(int fd, void *buf, size_t len)
{
    struct pirn__sim_file *file;

    if (!is_ours(fd))
        return real->read(fd, buf, len);
    file = pirn__sim_file_of(fd);
    if (file == NULL)
        return -EBADF;
    if (file->kind == PIRN__SIM_SOCKET)
        return pirn__sim_net_recv(fd, buf, len);
    pirn_sim_pause("read", (uint64_t)fd);
    if (file->count == 0)
        return -EAGAIN;
    memcpy(buf, &file->count, sizeof file->count);
    file->count = 0;
    return sizeof file->count;
}

static ssize_t sys_write(int fd, const void *buf, size_t len)
{
    return is_ours(fd) ? pirn__sim_net_send(fd, buf, len)
                       : real->write(fd, buf, len);
}

static void sys_close(int fd)
{
    struct pirn__sim_file *file;

    if (!is_ours(fd)) {
        real->close(fd);
        return;
    }
    pirn_sim_pause("close", (uint64_t)fd);
    file = pirn__sim_file_of(fd);
    if (file == NULL)
        return;
    pirn__sim_net_close(file);
    for (uint32_t i = 0; i < w.used; i++) {
        if (w.files[i].kind == PIRN__SIM_SET)
            (void)forget_entry(&w.files[i], fd);
    }
    clear(file);
    pirn__sim_see(PIRN_SIM_FD_CLOSED, (uint64_t)fd);
}

static int sys_fd_kind(int fd)
{
    const struct pirn__sim_file *file;

    if (!is_ours(fd))
        return real->fd_kind(fd);
    file = pirn__sim_file_of(fd);
    if (file == NULL)
        return -EBADF;
    return file->kind == PIRN__SIM_SOCKET || file->kind == PIRN__SIM_LISTENER
               ? PIRN__FD_TCP
               : PIRN__FD_OTHER;
}

static int sys_get_nonblock(int fd)
{
    const struct pirn__sim_file *file;

    if (!is_ours(fd))
        return real->get_nonblock(fd);
    file = pirn__sim_file_of(fd);
    return file == NULL ? -EBADF : !file->blocking;
}

static int sys_set_nonblock(int fd, bool nonblock)
{
    struct pirn__sim_file *file;
    bool was;

    if (!is_ours(fd))
        return real->set_nonblock(fd, nonblock);
    file = pirn__sim_file_of(fd);
    if (file == NULL)
        return -EBADF;
    was = !file->blocking;
    file->blocking = !nonblock;
    return was;
}

/* Time, chance and threads. */

static uint64_t sys_clock_ns(void)
{
    pirn_sim_pause("clock", 0);
    return pirn_sim_now_ns();
}

static int sys_futex_wait(uint32_t *word, uint32_t expected,
                          pirn_deadline deadline)
{
    pirn_sim_pause("futex_wait", expected);
    if (*word != expected || pirn__sim_fault(pirn__sim_options()->spurious))
        return 0;
    if (is_due(deadline))
        return -ETIMEDOUT;
    return pirn__sim_wait(word, deadline.ns) ? -ETIMEDOUT : 0;
}

static void sys_futex_wake(uint32_t *word, int count)
{
    /* Only the address: the word may be gone. */
    pirn_sim_pause("futex_wake", (uint64_t)count);
    pirn__sim_wake(word, count);
}

void pirn__sim_spare_threads(uint32_t count)
{
    w.spared += count;
}

static int sys_thread_start(const char *name, size_t stack_size,
                            void (*fn)(void *arg), void *arg)
{
    (void)name;
    (void)stack_size;
    pirn_sim_pause("thread_start", 0);
    if (w.spared > 0)
        w.spared--;
    else if (pirn__sim_fault(pirn__sim_options()->refusals))
        return -EAGAIN;
    return pirn__sim_spawn(fn, arg);
}

/* All threads are this one. */
static void sys_thread_shorten_turns(void)
{
}

/* Stacks get guards that need no probe: that would write to one through the
 * kernel. */
static int sys_guard_install(void *base, size_t size)
{
    (void)base;
    (void)size;
    return -EINVAL;
}

/* A lock is held across a call by nobody, but who held it may have been switched
 * away from. */
static void wait_for_lock(uint32_t *word, uint32_t expected)
{
    if (*word == expected)
        (void)pirn__sim_wait(word, UINT64_MAX);
}

static void wake_lock_waiter(uint32_t *word)
{
    pirn__sim_wake(word, 1);
}

void pirn__sim_sys_install(void)
{
    static struct pirn__sys table;
    static const struct pirn__lock_ops locks = {.wait = wait_for_lock,
                                                .wake_one = wake_lock_waiter};

    table = *real;
    table.clock_ns = sys_clock_ns;
    table.random = pirn_sim_random;
    table.futex_wait = sys_futex_wait;
    table.futex_wake = sys_futex_wake;
    table.thread_start = sys_thread_start;
    table.thread_shorten_turns = sys_thread_shorten_turns;
    table.guard_install = sys_guard_install;
    table.close = sys_close;
    table.read = sys_read;
    table.write = sys_write;
    table.eventfd = sys_eventfd;
    table.eventfd_signal = sys_eventfd_signal;
    table.timerfd = sys_timerfd;
    table.timerfd_set = sys_timerfd_set;
    table.fd_kind = sys_fd_kind;
    table.get_nonblock = sys_get_nonblock;
    table.set_nonblock = sys_set_nonblock;
    table.poll = sys_poll;
    table.epoll_create = sys_epoll_create;
    table.epoll_add = sys_epoll_add;
    table.epoll_remove = sys_epoll_remove;
    table.epoll_wait = sys_epoll_wait;
    pirn__sim_net_fill(&table);
    sys_before = pirn__sys;
    pirn__sys = &table;
    locks_before = pirn__lock_set_ops(&locks);
}

void pirn__sim_sys_remove(void)
{
    pirn__sys = sys_before;
    (void)pirn__lock_set_ops(locks_before);
}

int pirn__sim_files_begin(void)
{
    memset(&w, 0, sizeof w);
    w.more = UINT32_MAX;
    w.files = pirn__sim_take(FILES * sizeof *w.files);
    return w.files != NULL ? 0 : -ENOMEM;
}

void pirn__sim_files_end(void)
{
    for (uint32_t i = 0; i < w.used; i++)
        clear(&w.files[i]);
    pirn__sim_give(w.files, FILES * sizeof *w.files);
    memset(&w, 0, sizeof w);
}
