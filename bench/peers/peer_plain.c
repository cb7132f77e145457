/* SPDX-License-Identifier: MIT */
/* bench/peers/peer_plain.c - what the machine gives to C without any runtime:
 * the practical bounds of some rows.
 *
 *   wake      a thread waits on a futex, another one wakes it
 *   timer     a bare intrusive doubly linked list, 4096 of them by deadline, no
 *             lock and no clock: what insert and cancel cost the memory
 *   switch    swapcontext() of the C library, which saves the signal mask
 *   hello     one epoll loop, one read and one write for a request
 *
 * The echo server is epoll_echo.c.
 */
#define _GNU_SOURCE
#include "peer.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* Wake. */

static struct {
    _Atomic uint32_t word; /* wakes sent */
    _Atomic uint32_t received;
    _Atomic uint64_t sent_ns;
    uint32_t count;
    uint64_t *latencies;
} wakes;

static void futex(int operation, uint32_t value)
{
    syscall(SYS_futex, &wakes.word, operation, value, NULL, NULL, 0);
}

static void *receive_wakes(void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < wakes.count; i++) {
        while (atomic_load(&wakes.word) == i)
            futex(FUTEX_WAIT_PRIVATE, i);
        wakes.latencies[i] = peer_now_ns() - atomic_load(&wakes.sent_ns);
        atomic_store(&wakes.received, i + 1);
    }
    return NULL;
}

static void send_wakes(void)
{
    for (uint32_t i = 0; i < wakes.count; i++) {
        do {
            peer_sleep_until(peer_now_ns() + 200000);
        } while (atomic_load(&wakes.received) < i);
        atomic_store(&wakes.sent_ns, peer_now_ns());
        atomic_store(&wakes.word, i + 1);
        futex(FUTEX_WAKE_PRIVATE, 1);
    }
}

static void measure_wakes(void)
{
    pthread_t receiver;

    wakes.count = (uint32_t)peer_scale(500, 2000);
    wakes.latencies = calloc(wakes.count, sizeof *wakes.latencies);
    for (unsigned sample = 0; sample <= peer_options.samples; sample++) {
        atomic_store(&wakes.word, 0);
        atomic_store(&wakes.received, 0);
        peer_require(
            pthread_create(&receiver, NULL, receive_wakes, NULL) == 0,
            "pthread_create");
        send_wakes();
        pthread_join(receiver, NULL);
        if (sample > 0)
            peer_print_percentiles("wake", wakes.latencies, wakes.count);
    }
}

/* Timers. */

enum { SLOTS = 4096 };

/* On a cache line of its own, as Pirn's sleeps are. */
struct node {
    _Alignas(64) struct node *next;
    struct node *previous;
    uint64_t until_ns;
};

static struct node slots[SLOTS];

static void arm(struct node *node, uint64_t *random)
{
    uint64_t hour_ns = 3600u * 1000000000ull;
    uint64_t span_ns = peer_draw(random) % hour_ns;
    struct node *slot = &slots[span_ns / (hour_ns / SLOTS + 1)];

    node->until_ns = span_ns;
    node->next = slot;
    node->previous = slot->previous;
    node->previous->next = node;
    slot->previous = node;
}

static void disarm(struct node *node)
{
    node->next->previous = node->previous;
    node->previous->next = node->next;
}

static void churn_timers(const char *name, uint64_t live, bool in_order)
{
    uint64_t rounds = peer_scale(200000, PEER_MILLION);
    struct peer_churn churn = {peer_seed(), 0, live, in_order};
    struct node *nodes = aligned_alloc(64, live * sizeof *nodes);

    peer_require(nodes != NULL, "aligned_alloc");
    for (int i = 0; i < SLOTS; i++)
        slots[i].next = slots[i].previous = &slots[i];
    for (uint64_t i = 0; i < live; i++)
        arm(&nodes[i], &churn.random);
    for (unsigned sample = 0; sample <= peer_options.samples; sample++) {
        uint64_t begin_ns = peer_cpu_ns();

        for (uint64_t i = 0; i < rounds; i++) {
            struct node *node = &nodes[peer_pick(&churn)];

            disarm(node);
            arm(node, &churn.random);
        }
        if (sample > 0)
            peer_print(name, "ns",
                       (double)(peer_cpu_ns() - begin_ns) / (double)rounds);
    }
}

static void churn_one(void)
{
    churn_timers("timer_1", 1, true);
}

static void churn_in_order(void)
{
    churn_timers("timer_1m_in_order", PEER_MILLION, true);
}

static void churn_random(void)
{
    churn_timers("timer_1m_random", PEER_MILLION, false);
}

/* Switch. */

static ucontext_t here, there;

static void switch_back(void)
{
    for (;;)
        swapcontext(&there, &here);
}

static uint64_t switch_count(void)
{
    return peer_scale(100000, 1000000);
}

static void switch_often(void)
{
    for (uint64_t i = 0; i < switch_count() / 2; i++)
        swapcontext(&here, &there);
}

static void measure_switch(void)
{
    static char stack[64 * 1024];

    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = sizeof stack;
    makecontext(&there, switch_back, 0);
    peer_measure("switch", switch_count(), switch_often);
}

/* Hello. */

enum { EVENT_COUNT = 1024, SESSION_COUNT = 65536 };

static struct session {
    size_t filled;
    char buf[4096];
} *sessions[SESSION_COUNT]; /* by descriptor */

static void watch(int epoll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    peer_require(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0,
                 "epoll_ctl");
}

static void accept_all(int epoll_fd, int listener)
{
    int conn;

    while ((conn = accept4(listener, NULL, NULL,
                           SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        peer_require(conn < SESSION_COUNT, "too many connections");
        sessions[conn] = calloc(1, sizeof *sessions[conn]);
        peer_require(sessions[conn] != NULL, "calloc");
        watch(epoll_fd, conn);
    }
}

static void end_session(int conn)
{
    close(conn);
    free(sessions[conn]);
}

static void serve_once(int conn)
{
    struct session *session = sessions[conn];
    size_t room = sizeof session->buf - session->filled;
    ssize_t n = read(conn, session->buf + session->filled, room);

    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0 || (size_t)n == room) {
        end_session(conn);
        return;
    }
    session->filled += (size_t)n;
    if (!peer_request_ends(session->buf, session->filled))
        return;
    session->filled = 0;
    if (write(conn, peer_response, peer_response_size) !=
        (ssize_t)peer_response_size)
        end_session(conn);
}

static void serve_hello(void)
{
    static struct epoll_event events[EVENT_COUNT];
    int listener = peer_listen();
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

    peer_require(epoll_fd >= 0, "epoll_create1");
    watch(epoll_fd, listener);
    for (;;) {
        int count = epoll_wait(epoll_fd, events, EVENT_COUNT, -1);

        for (int i = 0; i < count; i++)
            if (events[i].data.fd == listener)
                accept_all(epoll_fd, listener);
            else
                serve_once(events[i].data.fd);
    }
}

int main(int argc, char **argv)
{
    static const struct peer_row rows[] = {
        {"wake", measure_wakes},
        {"timer_1", churn_one},
        {"timer_1m_in_order", churn_in_order},
        {"timer_1m_random", churn_random},
        {"switch", measure_switch},
        {"hello", serve_hello},
        {NULL, NULL},
    };

    return peer_main(argc, argv, rows);
}
