/* SPDX-License-Identifier: MIT */
/* bench/peers/peer.c - see peer.h. */
#define _GNU_SOURCE
#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../plain.h"

enum { BACKLOG = 1024 };

struct peer_options peer_options = {.workers = 1, .samples = 3};

static unsigned number_after(int argc, char **argv, int i)
{
    peer_require(i + 1 < argc, "a number is missing");
    return (unsigned)strtoul(argv[i + 1], NULL, 10);
}

static void read_options(int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], "--quick") == 0)
            peer_options.quick = true;
        else if (strcmp(argv[i], "--workers") == 0)
            peer_options.workers = number_after(argc, argv, i++);
        else if (strcmp(argv[i], "--samples") == 0)
            peer_options.samples = number_after(argc, argv, i++);
        else
            peer_require(false, argv[i]);
}

int peer_main(int argc, char **argv, const struct peer_row *rows)
{
    const char *name = argc > 1 ? argv[1] : "";

    read_options(argc, argv);
    for (; rows->name != NULL; rows++)
        if (strcmp(rows->name, name) == 0) {
            rows->run();
            return 0;
        }
    fprintf(stderr, "%s: no row '%s'\n", argv[0], name);
    return 2;
}

uint64_t peer_scale(uint64_t small, uint64_t large)
{
    return peer_options.quick ? small : large;
}

uint64_t peer_now_ns(void)
{
    return plain_clock_ns(CLOCK_MONOTONIC);
}

uint64_t peer_cpu_ns(void)
{
    return plain_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void peer_print(const char *name, const char *unit, double value)
{
    plain_print(name, unit, value);
}

void peer_require(bool fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "peer: %s (errno: %s)\n", what, strerror(errno));
    exit(1);
}

void peer_measure(const char *name, uint64_t operations, void (*fn)(void))
{
    char cpu_name[64];

    snprintf(cpu_name, sizeof cpu_name, "%s.cpu", name);
    fn();
    for (unsigned i = 0; i < peer_options.samples; i++) {
        uint64_t cpu_ns = peer_cpu_ns();
        uint64_t begin_ns = peer_now_ns();

        fn();
        peer_print(name, "ns",
                   (double)(peer_now_ns() - begin_ns) / (double)operations);
        peer_print(cpu_name, "ns",
                   (double)(peer_cpu_ns() - cpu_ns) / (double)operations);
    }
}

static void print_percentile(const char *name, const uint64_t *values,
                             size_t count, unsigned percent)
{
    char full_name[64];

    snprintf(full_name, sizeof full_name, "%s_p%u", name, percent);
    peer_print(full_name, "ns", plain_percentile(values, count, percent));
}

void peer_print_percentiles(const char *name, uint64_t *values, size_t count)
{
    plain_sort(values, count);
    print_percentile(name, values, count, 50);
    print_percentile(name, values, count, 99);
}

uint64_t peer_draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

uint64_t peer_seed(void)
{
    return 88172645463325252u;
}

uint64_t peer_pick(struct peer_churn *churn)
{
    uint64_t index = churn->next++;

    if (!churn->in_order)
        index = peer_draw(&churn->random) >> 16;
    return index % churn->live;
}

static double read_kilobytes(const char *path, const char *field)
{
    FILE *file = fopen(path, "re");
    char line[256];
    double kilobytes = -1;

    peer_require(file != NULL, path);
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, field, strlen(field)) == 0)
            kilobytes = strtod(line + strlen(field), NULL);
    fclose(file);
    peer_require(kilobytes >= 0, field);
    return kilobytes;
}

double peer_footprint(void)
{
    return 1024 * (read_kilobytes("/proc/self/smaps_rollup", "Rss:") +
                   read_kilobytes("/proc/self/status", "VmPTE:"));
}

void peer_sleep_until(uint64_t ns)
{
    plain_sleep_until(ns);
}

int peer_listen(void)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t size = sizeof address;
    int listener =
        socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    peer_require(listener >= 0, "socket");
    peer_require(bind(listener, (struct sockaddr *)&address, size) == 0,
                 "bind");
    peer_require(listen(listener, BACKLOG) == 0, "listen");
    peer_require(
        getsockname(listener, (struct sockaddr *)&address, &size) == 0,
        "getsockname");
    printf("port %u\n", (unsigned)ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

const char peer_response[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                             "Content-Length: 6\r\n\r\nhello\n";
const size_t peer_response_size = sizeof peer_response - 1;

bool peer_request_ends(const char *text, size_t size)
{
    return size >= 4 && memcmp(text + size - 4, "\r\n\r\n", 4) == 0;
}
