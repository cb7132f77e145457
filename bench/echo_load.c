/* SPDX-License-Identifier: MIT */
/* bench/echo_load.c - drive an echo server and say what a request cost it.
 *
 * A plain epoll client: N connections, each a closed loop of one message of 64
 * bytes and its echo.  It has no part of Pirn, so that every server meets the
 * same load.
 *
 *     echo_load --port P --connections N --requests R [--warmup W]
 *               [--server-pid PID] [--linger-ms L]
 *
 * The measured part begins after W requests and ends R requests later, both
 * while all connections are busy.  The server's CPU time is read from its
 * process clock, from outside and to the nanosecond, at these two moments: no
 * server has to measure itself, and start-up, accepts and closes stay out.
 *
 * Afterwards the outstanding echoes are awaited and the connections closed, and
 * the program stays for L more milliseconds.  A run with R requests thus makes
 * exactly W + R + N - 1 of them, and who counts the server's system calls over
 * two runs may subtract.
 */
#define _GNU_SOURCE
#include "sample.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE_SIZE = 64, EVENT_COUNT = 1024 };

struct connection {
    int fd;
    uint32_t received; /* bytes of the current echo */
    uint64_t sent_ns;
};

struct load {
    int epoll_fd;
    bool has_server_clock;
    clockid_t server_clock;
    uint64_t warmup;
    uint64_t requests;
    uint64_t done; /* requests since the start, warm-up included */
    uint64_t sent;
    /* The clocks at the beginning of the measured part; from its end on, what
     * it took. */
    uint64_t elapsed_ns;
    uint64_t cpu_ns;
    uint32_t *latencies; /* of the measured part, in ns */
};

static const char message[MESSAGE_SIZE] =
    "sixty-three letters and a zero: the message of every request...";

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;

    if (clock_gettime(clock, &now) < 0)
        fail("echo_load: the server's clock");
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t server_cpu_ns(const struct load *load)
{
    return load->has_server_clock ? read_clock(load->server_clock) : 0;
}

static void send_message(struct load *load, struct connection *conn,
                         uint64_t now_ns)
{
    load->sent++;
    conn->received = 0;
    conn->sent_ns = now_ns;
    if (send(conn->fd, message, sizeof message, MSG_NOSIGNAL) !=
        (ssize_t)sizeof message)
        fail("echo_load: send");
}

/* Connect without blocking the loop on a slow server: loopback connects are
 * completed by the kernel, up to the backlog. */
static void open_connection(struct load *load, struct connection *conn,
                            uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = conn};

    conn->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (conn->fd < 0)
        fail("echo_load: socket");
    if (connect(conn->fd, (struct sockaddr *)&address, sizeof address) < 0)
        fail("echo_load: connect");
    if (epoll_ctl(load->epoll_fd, EPOLL_CTL_ADD, conn->fd, &event) < 0)
        fail("echo_load: epoll_ctl");
}

/* Count one finished request. */
static void finish_request(struct load *load, const struct connection *conn,
                           uint64_t now_ns)
{
    uint64_t index = load->done++;

    if (index >= load->warmup && index < load->warmup + load->requests)
        load->latencies[index - load->warmup] =
            (uint32_t)(now_ns - conn->sent_ns);
    if (load->done == load->warmup) {
        load->cpu_ns = server_cpu_ns(load);
        load->elapsed_ns = sample_now_ns();
    } else if (load->done == load->warmup + load->requests) {
        load->cpu_ns = server_cpu_ns(load) - load->cpu_ns;
        load->elapsed_ns = sample_now_ns() - load->elapsed_ns;
    }
}

/* Take what came; the next message follows at once. */
static void serve_event(struct load *load, struct connection *conn)
{
    char buf[MESSAGE_SIZE];
    ssize_t n = recv(conn->fd, buf, sizeof buf - conn->received, 0);

    if (n <= 0)
        fail("echo_load: recv");
    if (memcmp(buf, message + conn->received, (size_t)n) != 0) {
        fprintf(stderr, "echo_load: the echo differs\n");
        exit(1);
    }
    conn->received += (uint32_t)n;
    if (conn->received < sizeof message)
        return;

    uint64_t now_ns = sample_now_ns();

    finish_request(load, conn, now_ns);
    if (load->done < load->warmup + load->requests)
        send_message(load, conn, now_ns);
}

static void drive(struct load *load)
{
    static struct epoll_event events[EVENT_COUNT];

    while (load->done < load->sent) {
        int count = epoll_wait(load->epoll_fd, events, EVENT_COUNT, -1);

        for (int i = 0; i < count; i++)
            serve_event(load, events[i].data.ptr);
    }
}

static int compare_latencies(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

static uint32_t percentile(const struct load *load, unsigned percent)
{
    return load->latencies[(load->requests - 1) * percent / 100];
}

static void report(struct load *load)
{
    qsort(load->latencies, load->requests, sizeof *load->latencies,
          compare_latencies);
    printf("{\"requests\": %llu, \"elapsed_ns\": %llu, \"server_cpu_ns\": %llu,"
           " \"p50_ns\": %u, \"p99_ns\": %u}\n",
           (unsigned long long)load->requests,
           (unsigned long long)load->elapsed_ns,
           (unsigned long long)load->cpu_ns, percentile(load, 50),
           percentile(load, 99));
    fflush(stdout);
}

static void use_server_clock(struct load *load, pid_t pid)
{
    int rc = clock_getcpuclockid(pid, &load->server_clock);

    if (rc != 0) {
        errno = rc;
        fail("echo_load: clock_getcpuclockid");
    }
    load->has_server_clock = true;
}

static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
    struct load load = {.epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
    uint16_t port = (uint16_t)sample_get_number(argc, argv, "--port", 0);
    size_t count = sample_get_number(argc, argv, "--connections", 50);
    uint64_t pid = sample_get_number(argc, argv, "--server-pid", 0);
    struct connection *conns = calloc(count, sizeof *conns);

    load.requests = sample_get_number(argc, argv, "--requests", 30000);
    /* The first request of each connection is its accept as well. */
    load.warmup = sample_get_number(argc, argv, "--warmup", 2 * count);
    load.latencies = calloc(load.requests, sizeof *load.latencies);
    if (load.epoll_fd < 0 || conns == NULL || load.latencies == NULL ||
        port == 0 || count == 0 || load.requests == 0 || load.warmup == 0) {
        fprintf(stderr, "usage: echo_load --port P [--connections N] "
                        "[--requests R] [--warmup W] [--server-pid PID] "
                        "[--linger-ms L]\n");
        return 2;
    }
    raise_descriptor_limit();
    if (pid != 0)
        use_server_clock(&load, (pid_t)pid);
    for (size_t i = 0; i < count; i++)
        open_connection(&load, &conns[i], port);
    for (size_t i = 0; i < count; i++)
        send_message(&load, &conns[i], sample_now_ns());
    drive(&load);
    report(&load);
    for (size_t i = 0; i < count; i++)
        close(conns[i].fd);
    usleep((useconds_t)sample_get_number(argc, argv, "--linger-ms", 0) * 1000);
    return 0;
}
