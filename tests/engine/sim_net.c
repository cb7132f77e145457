/* SPDX-License-Identifier: MIT */
/* tests/engine/sim_net.c - TCP as the simulated world has it.
 *
 * A connection has two ends, and for each direction a pipe of a few bytes.
 * What is sent arrives in segments, each after a time of its own, in order
 * within its direction and in any order between connections; what is read makes
 * room again when the sender has heard of it.  A transfer that moves less than
 * it was asked to has emptied, or filled, the pipe, as TCP promises; more comes
 * with an event.
 *
 * An end that is closed with unread bytes, or to which something is sent later,
 * answers with a reset.
 *
 * The weather: connections are cut off for a while, are reset, time out;
 * descriptors run out; all of it stops when it is calm.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "engine/sim_internal.h"

enum {
    NS_PER_US = 1000,
    NS_PER_MS = 1000 * 1000,
    FIRST_PORT = 40000,
    CUT_MS = 900,     /* a connection is cut off for at most so long */
    SYN_RETRY_MS = 1000,
    SYN_TRIES = 6,
    PIECE = 4096, /* of a file */
};

/* One direction; counts of bytes since the beginning. */
struct pipe {
    unsigned char *bytes;
    size_t room;
    uint64_t sent, arrived, read, acknowledged;
    uint64_t last_ns; /* nothing arrives before what was sent earlier */
    bool fin_sent, fin_arrived;
    bool wants_room; /* the sender found too little */
};

enum end_state { FRESH, CONNECTING, CONNECTED };

struct connection;

struct sim_end {
    struct connection *connection;
    unsigned side;
    int fd;    /* -1: closed, or not accepted yet */
    bool open; /* somebody has it, or will */
    enum end_state state;
    bool dead; /* a reset was sent or received */
    int error; /* to be told once, > 0 */
    bool shut_read;
    uint16_t port, peer_port;
    struct pipe out;
};

struct connection {
    struct sim_end ends[2]; /* who connects, who accepts */
    uint64_t cut_until_ns;
    uint32_t tries;
    struct connection *next;
};

static struct connection *connections;
static uint16_t next_port;

static struct sim_end *other(const struct sim_end *end)
{
    return &end->connection->ends[!end->side];
}

static uint64_t latency_ns(void)
{
    uint32_t us = sim_options()->latency_us;

    /* Now and then one takes very long. */
    return NS_PER_US *
           (uint64_t)(us / 2 + sim_below(us) +
                      (sim_fault(20) ? sim_below(20 * us) : 0));
}

static void signal_end(const struct sim_end *end)
{
    if (end->fd >= 0)
        sim_file_signal(end->fd);
}

/* Things that arrive.  Each waits for the end of a cut. */

static bool is_cut(struct sim_end *end, sim_event_fn *fn, uint64_t number)
{
    uint64_t until = end->connection->cut_until_ns;

    if (sim_is_calm() || until <= sim_now_ns())
        return false;
    sim_at(until + latency_ns(), fn, end, number);
    return true;
}

/* At `end`: a reset with that error. */
static void reset_arrives(void *object, uint64_t error)
{
    struct sim_end *end = object;

    if (end->dead)
        return;
    end->dead = true;
    end->state = end->state == CONNECTING ? FRESH : end->state;
    end->error = (int)error;
    signal_end(end);
}

static void send_reset(struct sim_end *to)
{
    sim_at(sim_now_ns() + latency_ns(), reset_arrives, to, ECONNRESET);
}

static bool fin_is_visible(const struct pipe *pipe)
{
    return pipe->fin_arrived && pipe->arrived == pipe->sent;
}

/* At the other end of `object`, which sent it. */
static void data_arrives(void *object, uint64_t bytes)
{
    struct sim_end *from = object;
    struct sim_end *to = other(from);

    if (is_cut(from, data_arrives, bytes))
        return;
    if (to->dead || !to->open) {
        send_reset(from);
        return;
    }
    from->out.arrived += bytes;
    signal_end(to);
}

static void fin_arrives(void *object, uint64_t unused)
{
    struct sim_end *from = object;

    if (is_cut(from, fin_arrives, unused))
        return;
    from->out.fin_arrived = true;
    signal_end(other(from));
}

static void room_arrives(void *object, uint64_t bytes)
{
    struct sim_end *to = object;

    if (is_cut(to, room_arrives, bytes))
        return;
    to->out.acknowledged += bytes;
    if (to->out.wants_room)
        signal_end(to);
    to->out.wants_room = false;
}

static void send_later(struct sim_end *from, sim_event_fn *fn, uint64_t number)
{
    uint64_t ns = sim_now_ns() + latency_ns();

    if (ns < from->out.last_ns)
        ns = from->out.last_ns;
    from->out.last_ns = ns;
    sim_at(ns, fn, from, number);
}

/* Connecting. */

static struct connection *make_connection(void)
{
    struct connection *made = calloc(1, sizeof *made);

    for (unsigned side = 0; side < 2; side++) {
        struct pipe *out = &made->ends[side].out;

        made->ends[side].connection = made;
        made->ends[side].side = side;
        made->ends[side].fd = -1;
        out->room = 1 + sim_options()->buffer / 2 +
                    sim_below(sim_options()->buffer);
        out->bytes = malloc(out->room);
    }
    made->next = connections;
    connections = made;
    return made;
}

static struct sim_file *listener_at(uint16_t port)
{
    for (struct sim_file *file = sim_file_next(NULL); file != NULL;
         file = sim_file_next(file)) {
        if (file->kind == SIM_LISTENER && file->port == port)
            return file;
    }
    return NULL;
}

static void answer_arrives(void *object, uint64_t error)
{
    struct sim_end *end = object;

    if (is_cut(end, answer_arrives, error))
        return;
    if (end->state != CONNECTING) {
        /* It was closed meanwhile. */
        send_reset(other(end));
        return;
    }
    end->state = error == 0 ? CONNECTED : FRESH;
    end->error = (int)error;
    /* It was reset meanwhile, which we could not be told before. */
    if (error == 0 && other(end)->dead)
        send_reset(end);
    signal_end(end);
}

static void enqueue(struct sim_file *listener, struct sim_end *end)
{
    if (listener->queue_len == listener->queue_room) {
        listener->queue_room += 64;
        listener->queue = realloc(
            listener->queue, listener->queue_room * sizeof *listener->queue);
    }
    listener->queue[listener->queue_len++] = end;
    sim_file_signal(sim_file_fd(listener));
}

static void syn_arrives(void *object, uint64_t unused)
{
    struct sim_end *client = object;
    struct sim_end *server = other(client);
    struct sim_file *listener;

    if (is_cut(client, syn_arrives, unused) || client->state != CONNECTING)
        return;
    listener = listener_at(client->peer_port);
    if (listener == NULL || sim_fault(sim_options()->refusals)) {
        sim_at(sim_now_ns() + latency_ns(), answer_arrives, client,
               ECONNREFUSED);
        return;
    }
    if (listener->queue_len > (size_t)listener->backlog) {
        uint64_t again = sim_now_ns() + (uint64_t)SYN_RETRY_MS * NS_PER_MS;

        if (++client->connection->tries < SYN_TRIES)
            sim_at(again, syn_arrives, client, 0);
        else
            sim_at(again, answer_arrives, client, ETIMEDOUT);
        return;
    }
    server->state = CONNECTED;
    server->open = true;
    server->port = client->peer_port;
    server->peer_port = client->port;
    enqueue(listener, server);
    sim_at(sim_now_ns() + latency_ns(), answer_arrives, client, 0);
}

static uint16_t port_of(const struct sockaddr *address)
{
    struct sockaddr_in in;

    memcpy(&in, address, sizeof in);
    return ntohs(in.sin_port);
}

static struct sim_file *socket_of(int fd)
{
    struct sim_file *file = sim_file_of(fd);

    return file != NULL && (file->kind == SIM_SOCKET ||
                            file->kind == SIM_LISTENER)
               ? file
               : NULL;
}

static struct sim_end *end_of(int fd)
{
    struct sim_file *file = socket_of(fd);

    return file == NULL || file->kind != SIM_SOCKET ? NULL : file->end;
}

static int net_socket(int family)
{
    struct sim_end *end;
    int fd;

    sim_pause("socket", (uint64_t)family);
    if (family != AF_INET)
        return -EAFNOSUPPORT;
    fd = sim_file_open(SIM_SOCKET);
    if (fd < 0)
        return fd;
    end = &make_connection()->ends[0];
    end->fd = fd;
    end->open = true;
    sim_file_of(fd)->end = end;
    return fd;
}

static int net_bind(int fd, const struct sockaddr *address, unsigned len)
{
    struct sim_file *file;
    uint16_t port = port_of(address);

    (void)len;
    sim_pause("bind", port);
    file = socket_of(fd);
    if (file == NULL)
        return -EBADF;
    if (port != 0 && listener_at(port) != NULL)
        return -EADDRINUSE;
    file->port = port != 0 ? port : next_port++;
    return 0;
}

static int net_listen(int fd, int backlog)
{
    struct sim_file *file;

    sim_pause("listen", (uint64_t)backlog);
    file = socket_of(fd);
    if (file == NULL)
        return -EBADF;
    file->end->open = false;
    file->end->fd = -1;
    file->end = NULL;
    file->kind = SIM_LISTENER;
    file->backlog = backlog;
    if (file->port == 0)
        file->port = next_port++;
    return 0;
}

static int net_connect(int fd, const struct sockaddr *address, unsigned len)
{
    struct sim_end *end;

    (void)len;
    sim_pause("connect", port_of(address));
    end = end_of(fd);
    if (end == NULL)
        return -EBADF;
    if (end->state != FRESH)
        return end->state == CONNECTED ? -EISCONN : -EALREADY;
    end->state = CONNECTING;
    end->port = next_port++;
    end->peer_port = port_of(address);
    sim_at(sim_now_ns() + latency_ns(), syn_arrives, end, 0);
    return -EINPROGRESS;
}

static struct sim_end *dequeue(struct sim_file *listener)
{
    struct sim_end *end = listener->queue[0];

    listener->queue_len--;
    memmove(listener->queue, listener->queue + 1,
            listener->queue_len * sizeof(*listener->queue));
    return end;
}

static int net_accept(int fd, struct sockaddr *address, unsigned *len)
{
    struct sim_file *file;
    struct sim_end *end;
    int made;

    (void)address;
    (void)len;
    sim_pause("accept", (uint64_t)fd);
    file = socket_of(fd);
    if (file == NULL || file->kind != SIM_LISTENER)
        return -EBADF;
    if (file->queue_len == 0)
        return -EAGAIN;
    made = sim_file_open(SIM_SOCKET);
    if (made < 0)
        return made;
    end = dequeue(file);
    end->fd = made;
    sim_file_of(made)->end = end;
    if (end->dead && sim_chance(500)) {
        pirn__sys->close(made);
        return -ECONNABORTED;
    }
    return made;
}

/* Transfers. */

static int take_error(struct sim_end *end)
{
    int error = end->error;

    end->error = 0;
    return error;
}

static size_t copy_out(struct pipe *pipe, unsigned char *buf, size_t len)
{
    size_t there = (size_t)(pipe->arrived - pipe->read);
    size_t n = len < there ? len : there;

    for (size_t i = 0; i < n; i++)
        buf[i] = pipe->bytes[(pipe->read + i) % pipe->room];
    pipe->read += n;
    return n;
}

/* What may be received now; a count or a code. */
static ssize_t receive(struct sim_end *end, void *buf, size_t len)
{
    struct sim_end *from;
    size_t n;

    if (end == NULL)
        return -EBADF;
    from = other(end);
    n = copy_out(&from->out, buf, len);
    if (n > 0) {
        sim_at(sim_now_ns() + latency_ns(), room_arrives, from, n);
        return (ssize_t)n;
    }
    if (end->error != 0)
        return -take_error(end);
    if (end->state != CONNECTED)
        return end->dead ? 0 : -ENOTCONN;
    if (len == 0 || end->dead || end->shut_read || fin_is_visible(&from->out))
        return 0;
    return -EAGAIN;
}

ssize_t sim_net_recv(int fd, void *buf, size_t len)
{
    ssize_t n;

    sim_pause("recv", (uint64_t)fd);
    n = receive(end_of(fd), buf, len);
    sim_pause("received", (uint64_t)n);
    return n;
}

static size_t copy_in(struct pipe *pipe, const unsigned char *buf, size_t len)
{
    size_t room = pipe->room - (size_t)(pipe->sent - pipe->acknowledged);
    size_t n = len < room ? len : room;

    for (size_t i = 0; i < n; i++)
        pipe->bytes[(pipe->sent + i) % pipe->room] = buf[i];
    pipe->sent += n;
    if (n < len)
        pipe->wants_room = true;
    return n;
}

/* In a few segments. */
static void send_segments(struct sim_end *end, size_t n)
{
    while (n > 0) {
        size_t one = sim_chance(500) ? n : 1 + sim_below((uint32_t)n);

        send_later(end, data_arrives, one);
        n -= one;
    }
}

static ssize_t transmit(struct sim_end *end, const void *buf, size_t len)
{
    size_t n;

    if (end == NULL)
        return -EBADF;
    if (end->error != 0)
        return -take_error(end);
    if (end->dead || end->out.fin_sent)
        return -EPIPE;
    if (end->state != CONNECTED)
        return end->state == CONNECTING ? -EAGAIN : -ENOTCONN;
    if (!sim_is_calm() && sim_below(10000) < sim_options()->resets) {
        send_reset(end);
        send_reset(other(end));
    }
    n = copy_in(&end->out, buf, len);
    if (n == 0 && len > 0)
        return -EAGAIN;
    send_segments(end, n);
    return (ssize_t)n;
}

ssize_t sim_net_send(int fd, const void *buf, size_t len)
{
    ssize_t n;

    sim_pause("send", len);
    n = transmit(end_of(fd), buf, len);
    sim_pause("sent", (uint64_t)n);
    return n;
}

typedef ssize_t one_fn(int fd, struct iovec part);

static ssize_t one_recv(int fd, struct iovec part)
{
    return receive(end_of(fd), part.iov_base, part.iov_len);
}

static ssize_t one_send(int fd, struct iovec part)
{
    return transmit(end_of(fd), part.iov_base, part.iov_len);
}

/* One call: nobody comes between its parts. */
static ssize_t each(one_fn *fn, int fd, const struct iovec *vec, int count)
{
    ssize_t done = 0;

    for (int i = 0; i < count; i++) {
        ssize_t n = vec[i].iov_len == 0 ? 0 : fn(fd, vec[i]);

        if (n < 0)
            return done > 0 ? done : n;
        done += n;
        if ((size_t)n < vec[i].iov_len)
            break;
    }
    return done;
}

static ssize_t net_readv(int fd, const struct iovec *vec, int count)
{
    sim_pause("readv", (uint64_t)fd);
    return each(one_recv, fd, vec, count);
}

static ssize_t net_sendv(int fd, const struct iovec *vec, int count)
{
    sim_pause("sendv", (uint64_t)fd);
    return each(one_send, fd, vec, count);
}

/* The file is a real one. */
static ssize_t net_sendfile(int fd, int file, off_t *offset, size_t count)
{
    unsigned char piece[PIECE];
    ssize_t n;

    sim_pause("sendfile", count);
    n = pread(file, piece, count < PIECE ? count : PIECE, *offset);
    if (n < 0)
        return -errno;
    n = transmit(end_of(fd), piece, (size_t)n);
    if (n > 0)
        *offset += n;
    return n;
}

/* Ending. */

static void send_fin(struct sim_end *end)
{
    if (end->out.fin_sent || end->dead)
        return;
    end->out.fin_sent = true;
    send_later(end, fin_arrives, 0);
}

static int net_shutdown(int fd, int how)
{
    struct sim_end *end;

    sim_pause("shutdown", (uint64_t)how);
    end = end_of(fd);
    if (end == NULL)
        return -EBADF;
    if (end->state != CONNECTED || end->dead)
        return -ENOTCONN;
    if (how == SHUT_WR || how == SHUT_RDWR)
        send_fin(end);
    if (how == SHUT_RD || how == SHUT_RDWR)
        end->shut_read = true;
    signal_end(end);
    return 0;
}

static void close_end(struct sim_end *end)
{
    struct pipe *in = &other(end)->out;
    bool unread = in->arrived > in->read;

    end->open = false;
    end->fd = -1;
    if (end->state == CONNECTED && !end->dead && unread)
        send_reset(other(end));
    else if (end->state == CONNECTED)
        send_fin(end);
    else
        end->state = FRESH;
}

void sim_net_close(struct sim_file *file)
{
    if (file->kind == SIM_SOCKET && file->end != NULL)
        close_end(file->end);
    for (size_t i = 0; i < file->queue_len; i++) {
        file->queue[i]->open = false;
        send_reset(other(file->queue[i]));
    }
}

/* Questions. */

static uint32_t end_mask(const struct sim_end *end)
{
    const struct pipe *in = &other(end)->out;
    bool over = end->dead || end->error != 0;
    bool eof = fin_is_visible(in) || end->shut_read;
    uint32_t mask = 0;

    if (end->state == FRESH && !over)
        return EPOLLOUT | EPOLLHUP;
    if (end->state == CONNECTING && !over)
        return 0;
    if (over || eof || in->arrived > in->read)
        mask |= EPOLLIN;
    if (over || end->out.fin_sent ||
        end->out.sent - end->out.acknowledged < end->out.room)
        mask |= EPOLLOUT;
    if (over || eof)
        mask |= EPOLLRDHUP;
    if (over || (eof && end->out.fin_sent))
        mask |= EPOLLHUP;
    if (end->error != 0)
        mask |= EPOLLERR;
    return mask;
}

uint32_t sim_net_mask(const struct sim_file *file)
{
    if (file->kind == SIM_LISTENER)
        return file->queue_len > 0 ? EPOLLIN : 0;
    return file->end == NULL ? 0 : end_mask(file->end);
}

static int net_getsockopt(int fd, int level, int name, void *value,
                          unsigned *len)
{
    struct sim_end *end = end_of(fd);
    int number = 0;

    sim_pause("getsockopt", (uint64_t)name);
    if (level == SOL_SOCKET && name == SO_TYPE)
        number = SOCK_STREAM;
    if (level == SOL_SOCKET && name == SO_ERROR && end != NULL)
        number = take_error(end);
    memcpy(value, &number, sizeof number);
    *len = sizeof number;
    return 0;
}

static int net_setsockopt(int fd, int level, int name, const void *value,
                          unsigned len)
{
    (void)level;
    (void)value;
    (void)len;
    sim_pause("setsockopt", (uint64_t)name);
    return socket_of(fd) == NULL ? -EBADF : 0;
}

static int name_of(uint16_t port, struct sockaddr *address, unsigned *len)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};

    memcpy(address, &in, *len < sizeof in ? *len : sizeof in);
    *len = sizeof in;
    return 0;
}

static int net_sockname(int fd, struct sockaddr *address, unsigned *len)
{
    const struct sim_file *file = socket_of(fd);

    if (file == NULL)
        return -EBADF;
    return name_of(file->end != NULL ? file->end->port : file->port, address,
                   len);
}

static int net_peername(int fd, struct sockaddr *address, unsigned *len)
{
    const struct sim_end *end = end_of(fd);

    sim_pause("peername", (uint64_t)fd);
    if (end == NULL)
        return -EBADF;
    if (end->state != CONNECTED || end->dead)
        return -ENOTCONN;
    return name_of(end->peer_port, address, len);
}

/* The weather. */

static struct connection *any_connection(void)
{
    struct connection *chosen = NULL;
    uint32_t seen = 0;

    for (struct connection *at = connections; at != NULL; at = at->next) {
        if ((at->ends[0].open || at->ends[1].open) && sim_below(++seen) == 0)
            chosen = at;
    }
    return chosen;
}

static void cut_off(void)
{
    uint32_t part = 1 + sim_below(1000); /* of a thousand */
    uint64_t until = sim_now_ns() + (uint64_t)sim_below(CUT_MS) * NS_PER_MS;

    for (struct connection *at = connections; at != NULL; at = at->next) {
        if (sim_chance(part))
            at->cut_until_ns = until;
    }
}

static void break_one(int error)
{
    struct connection *chosen = any_connection();

    if (chosen == NULL)
        return;
    for (unsigned side = 0; side < 2; side++) {
        if (chosen->ends[side].state == CONNECTED)
            reset_arrives(&chosen->ends[side], (uint64_t)error);
    }
}

static void blow(void *object, uint64_t number)
{
    (void)object;
    (void)number;
    if (sim_is_calm())
        return;
    switch (sim_below(5)) {
    case 0:
        cut_off();
        break;
    case 1:
        break_one(ECONNRESET);
        break;
    case 2:
        break_one(EHOSTUNREACH);
        break;
    case 3:
        sim_files_limit(sim_below(6));
        break;
    default:
        sim_files_limit(UINT32_MAX);
        break;
    }
    sim_net_weather();
}

void sim_net_weather(void)
{
    uint32_t us = sim_options()->weather_ms * 1000;

    if (us > 0)
        sim_at(sim_now_ns() + (us / 2 + sim_below(us)) * (uint64_t)NS_PER_US,
               blow, NULL, 0);
}

void sim_net_fill(struct pirn__sys *table)
{
    table->readv = net_readv;
    table->writev = net_sendv;
    table->socket = net_socket;
    table->bind = net_bind;
    table->listen = net_listen;
    table->accept = net_accept;
    table->connect = net_connect;
    table->send = sim_net_send;
    table->send_more = sim_net_send;
    table->recv = sim_net_recv;
    table->sendv = net_sendv;
    table->shutdown = net_shutdown;
    table->getsockopt = net_getsockopt;
    table->setsockopt = net_setsockopt;
    table->sockname = net_sockname;
    table->peername = net_peername;
    table->sendfile = net_sendfile;
}

void sim_net_reset(void)
{
    while (connections != NULL) {
        struct connection *next = connections->next;

        free(connections->ends[0].out.bytes);
        free(connections->ends[1].out.bytes);
        free(connections);
        connections = next;
    }
    next_port = FIRST_PORT;
}
