/* SPDX-License-Identifier: MIT */
/* tests/engine/sim_sys.c - the system table of the simulated world.
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
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "engine/sim_internal.h"

enum { FIRST_FD = 100000, FILES = 4096, EARLY_NS = 3000000 };

static const struct pirn__sys *const real = &pirn__sys_linux;
static const struct pirn__sys *before;

static struct {
    struct sim_file files[FILES];
    uint32_t used;  /* none is open from here on */
    uint32_t more;  /* may be opened; UINT32_MAX: no limit */
    uint64_t uses;
} w;

/* Files. */

bool sim_is_ours(int fd)
{
    return fd >= FIRST_FD && fd < FIRST_FD + FILES;
}

struct sim_file *sim_file_of(int fd)
{
    struct sim_file *file = &w.files[sim_is_ours(fd) ? fd - FIRST_FD : 0];

    if (sim_is_ours(fd) && file->kind != SIM_CLOSED)
        return file;
    sim_fail("descriptors", "descriptor %d is used and not open",
             fd - FIRST_FD);
    return NULL;
}

int sim_file_fd(const struct sim_file *file)
{
    return FIRST_FD + (int)(file - w.files);
}

struct sim_file *sim_file_next(struct sim_file *after)
{
    struct sim_file *file = after == NULL ? w.files : after + 1;

    while (file < w.files + w.used && file->kind == SIM_CLOSED)
        file++;
    return file < w.files + w.used ? file : NULL;
}

void sim_files_limit(uint32_t more)
{
    w.more = more;
}

int sim_file_open(enum sim_kind kind)
{
    uint32_t i = 0;

    while (i < w.used && w.files[i].kind != SIM_CLOSED)
        i++;
    if (i == FILES || w.more == 0)
        return -EMFILE;
    if (w.more != UINT32_MAX)
        w.more--;
    if (i == w.used)
        w.used++;
    w.files[i] = (struct sim_file){.kind = kind,
                                   .timer_ns = UINT64_MAX,
                                   .generation = ++w.uses};
    sim_see(SIM_FACT_FD_OPENED, i);
    return FIRST_FD + (int)i;
}

static int open_paused(const char *what, enum sim_kind kind)
{
    sim_pause(what, 0);
    return sim_file_open(kind);
}

static void clear(struct sim_file *file)
{
    free(file->entries);
    free(file->queue);
    *file = (struct sim_file){.kind = SIM_CLOSED};
}

/* Sets. */

static uint32_t mask_of(const struct sim_file *file);

/* What an entry would be reported with. */
static uint32_t entry_mask(const struct sim_entry *entry)
{
    bool edge = (entry->events & EPOLLET) != 0;

    if (edge && !entry->ready)
        return 0;
    return mask_of(&w.files[entry->fd - FIRST_FD]) &
           (entry->events | EPOLLERR | EPOLLHUP);
}

static bool has_news(const struct sim_file *set)
{
    for (size_t i = 0; i < set->entry_count; i++) {
        if (entry_mask(&set->entries[i]) != 0)
            return true;
    }
    return false;
}

static uint32_t mask_of(const struct sim_file *file)
{
    switch (file->kind) {
    case SIM_EVENT:
        return EPOLLOUT | (file->count > 0 ? EPOLLIN : 0u);
    case SIM_TIMER:
        return file->count > 0 ? EPOLLIN : 0;
    case SIM_SET:
        /* One level deep: nobody puts a set into a set. */
        return has_news(file) ? EPOLLIN : 0;
    case SIM_SOCKET:
    case SIM_LISTENER:
        return sim_net_mask(file);
    case SIM_CLOSED:
        break;
    }
    return 0;
}

void sim_file_signal(int fd)
{
    for (uint32_t i = 0; i < w.used; i++) {
        struct sim_file *set = &w.files[i];

        for (size_t k = 0; set->kind == SIM_SET && k < set->entry_count; k++) {
            if (set->entries[k].fd != fd)
                continue;
            set->entries[k].ready = true;
            sim_wake(set, 1);
        }
    }
    /* Those who poll look at everything again. */
    sim_wake(&w, FILES);
}

static struct sim_file *set_of(int fd)
{
    struct sim_file *set = sim_file_of(fd);

    return set != NULL && set->kind == SIM_SET ? set : NULL;
}

static int sys_epoll_create(void)
{
    return open_paused("epoll_create", SIM_SET);
}

static int sys_epoll_add(int epoll_fd, int fd, uint32_t events, void *data)
{
    struct sim_file *set, *file;

    sim_pause("epoll_add", (uint64_t)fd);
    set = set_of(epoll_fd);
    file = sim_file_of(fd);
    if (set == NULL || file == NULL)
        return -EBADF;
    if (set->entry_count == set->entry_room) {
        set->entry_room = set->entry_room == 0 ? 16 : 2 * set->entry_room;
        set->entries = realloc(set->entries,
                               set->entry_room * sizeof *set->entries);
    }
    set->entries[set->entry_count++] =
        (struct sim_entry){fd, events, data, true};
    if (mask_of(file) != 0) {
        sim_wake(set, 1);
        sim_wake(&w, FILES);
    }
    return 0;
}

static bool forget_entry(struct sim_file *set, int fd)
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
    struct sim_file *set;

    sim_pause("epoll_remove", (uint64_t)fd);
    set = set_of(epoll_fd);
    if (set == NULL)
        return -EBADF;
    return forget_entry(set, fd) ? 0 : -ENOENT;
}

/* Begins anywhere: no order is promised. */
static int harvest(struct sim_file *set, struct epoll_event *events,
                   int capacity)
{
    size_t from = set->entry_count > 1
                      ? sim_below((uint32_t)set->entry_count)
                      : 0;
    int count = 0;

    for (size_t i = 0; i < set->entry_count && count < capacity; i++) {
        struct sim_entry *entry = &set->entries[(from + i) % set->entry_count];
        uint32_t mask = entry_mask(entry);

        entry->ready = false;
        if (mask != 0)
            events[count++] = (struct epoll_event){
                .events = mask, .data = {.ptr = entry->data}};
    }
    if (count > 0 && has_news(set))
        sim_wake(set, 1);
    return count;
}

static bool is_due(pirn_deadline deadline)
{
    return deadline.ns <= sim_now_ns();
}

static int sys_epoll_wait(int epoll_fd, struct epoll_event *events,
                          int capacity, pirn_deadline deadline)
{
    struct sim_file *set;
    bool timed_out = false;
    int count;

    sim_pause("epoll_wait", deadline.ns == 0);
    set = set_of(epoll_fd);
    if (set == NULL)
        return -EBADF;
    if (deadline.ns != 0 && sim_fault(sim_options()->spurious))
        return 0;
    /* Ends with an event or at the deadline. */
    while ((count = harvest(set, events, capacity)) == 0 && !timed_out &&
           !is_due(deadline)) {
        timed_out = sim_wait(set, deadline.ns);
        if (set->kind != SIM_SET)
            return -EBADF;
    }
    sim_pause("epoll_wait ends", (uint64_t)count);
    return count;
}

static int look(struct pollfd *fds, int count)
{
    int ready = 0;

    for (int i = 0; i < count; i++) {
        const struct sim_file *file = sim_file_of(fds[i].fd);
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

    sim_pause("poll", (uint64_t)count);
    if (deadline.ns != 0 && sim_fault(sim_options()->spurious))
        deadline = PIRN_EXPIRED;
    /* Ends with an event or at the deadline. */
    while ((ready = look(fds, count)) == 0 && !timed_out && !is_due(deadline))
        timed_out = sim_wait(&w, deadline.ns);
    return ready;
}

/* Eventfds and timers. */

static int sys_eventfd(void)
{
    return open_paused("eventfd", SIM_EVENT);
}

static int sys_eventfd_signal(int fd)
{
    struct sim_file *file;

    sim_pause("signal", (uint64_t)fd);
    file = sim_file_of(fd);
    if (file == NULL)
        return -EBADF;
    if (sim_planted(SIM_PLANT_LOST_WAKE, 4))
        return 0;
    file->count++;
    sim_file_signal(fd);
    return 0;
}

static int sys_timerfd(void)
{
    return open_paused("timerfd", SIM_TIMER);
}

static void fire(void *object, uint64_t generation)
{
    struct sim_file *file = object;

    if (file->kind != SIM_TIMER || file->generation != generation)
        return;
    file->count++;
    sim_file_signal(sim_file_fd(file));
}

static int sys_timerfd_set(int fd, pirn_deadline deadline)
{
    struct sim_file *file;

    sim_pause("timerfd_set", deadline.ns);
    file = sim_file_of(fd);
    if (file == NULL || file->kind != SIM_TIMER)
        return -EBADF;
    file->count = 0;
    file->generation = ++w.uses;
    if (deadline.ns != UINT64_MAX)
        sim_at(sim_latest(deadline.ns), fire, file, file->generation);
    return 0;
}

/* Transfers of what is no socket. */

static ssize_t sys_read(int fd, void *buf, size_t len)
{
    struct sim_file *file;

    if (!sim_is_ours(fd))
        return real->read(fd, buf, len);
    file = sim_file_of(fd);
    if (file == NULL)
        return -EBADF;
    if (file->kind == SIM_SOCKET)
        return sim_net_recv(fd, buf, len);
    sim_pause("read", (uint64_t)fd);
    if (file->count == 0)
        return -EAGAIN;
    memcpy(buf, &file->count, sizeof file->count);
    file->count = 0;
    return sizeof file->count;
}

static ssize_t sys_write(int fd, const void *buf, size_t len)
{
    return sim_is_ours(fd) ? sim_net_send(fd, buf, len)
                           : real->write(fd, buf, len);
}

static void sys_close(int fd)
{
    struct sim_file *file;

    if (!sim_is_ours(fd)) {
        real->close(fd);
        return;
    }
    sim_pause("close", (uint64_t)fd);
    file = sim_file_of(fd);
    if (file == NULL)
        return;
    if (file->kind == SIM_SOCKET && sim_planted(SIM_PLANT_LEAKED_FD, 4))
        return;
    sim_net_close(file);
    for (uint32_t i = 0; i < w.used; i++) {
        if (w.files[i].kind == SIM_SET)
            (void)forget_entry(&w.files[i], fd);
    }
    clear(file);
    sim_see(SIM_FACT_FD_CLOSED, (uint64_t)(fd - FIRST_FD));
}

static int sys_fd_kind(int fd)
{
    const struct sim_file *file;

    if (!sim_is_ours(fd))
        return real->fd_kind(fd);
    file = sim_file_of(fd);
    if (file == NULL)
        return -EBADF;
    return file->kind == SIM_SOCKET || file->kind == SIM_LISTENER
               ? PIRN__FD_TCP
               : PIRN__FD_OTHER;
}

static int sys_get_nonblock(int fd)
{
    const struct sim_file *file;

    if (!sim_is_ours(fd))
        return real->get_nonblock(fd);
    file = sim_file_of(fd);
    return file == NULL ? -EBADF : !file->blocking;
}

static int sys_set_nonblock(int fd, bool nonblock)
{
    struct sim_file *file;
    bool was;

    if (!sim_is_ours(fd))
        return real->set_nonblock(fd, nonblock);
    file = sim_file_of(fd);
    if (file == NULL)
        return -EBADF;
    was = !file->blocking;
    file->blocking = !nonblock;
    return was;
}

/* Time, chance and threads. */

static uint64_t sys_clock_ns(void)
{
    sim_pause("clock", 0);
    /* Now and then it shows what has not come yet, which is no clock. */
    return sim_options()->plant == SIM_PLANT_EARLY_TIMER && sim_chance(100)
               ? sim_now_ns() + EARLY_NS
               : sim_now_ns();
}

static int sys_futex_wait(uint32_t *word, uint32_t expected,
                          pirn_deadline deadline)
{
    sim_pause("futex_wait", expected);
    if (*word != expected || sim_fault(sim_options()->spurious))
        return 0;
    if (is_due(deadline))
        return -ETIMEDOUT;
    return sim_wait(word, deadline.ns) ? -ETIMEDOUT : 0;
}

static void sys_futex_wake(uint32_t *word, int count)
{
    /* Only the address: the word may be gone. */
    sim_pause("futex_wake", (uint64_t)count);
    sim_wake(word, count);
}

static int sys_thread_start(const char *name, size_t stack_size,
                            void (*fn)(void *arg), void *arg)
{
    (void)name;
    (void)stack_size;
    sim_pause("thread_start", 0);
    if (sim_fault(sim_options()->refusals))
        return -EAGAIN;
    return sim_spawn(fn, arg) ? 0 : -EAGAIN;
}

/* Stacks get guards that need no probe: that would write to one through the
 * kernel. */
static int sys_guard_install(void *base, size_t size)
{
    (void)base;
    (void)size;
    return -EINVAL;
}

void sim_sys_install(void)
{
    static struct pirn__sys table;

    table = *real;
    table.clock_ns = sys_clock_ns;
    table.random = sim_random;
    table.futex_wait = sys_futex_wait;
    table.futex_wake = sys_futex_wake;
    table.thread_start = sys_thread_start;
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
    sim_net_fill(&table);
    before = pirn__sys;
    pirn__sys = &table;
}

void sim_sys_remove(void)
{
    pirn__sys = before;
}

void sim_sys_reset(void)
{
    for (uint32_t i = 0; i < w.used; i++)
        clear(&w.files[i]);
    w.used = 0;
    w.uses = 0;
    w.more = UINT32_MAX;
    sim_net_reset();
}
