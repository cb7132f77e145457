/* SPDX-License-Identifier: MIT */
/* src/testing/sim_net.c - the calls for sockets, by descriptor. */
#include "testing/sim_link.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "sys/linux.h"

enum { PIECE = 4096 /* of a file */ };

static uint16_t port_of(const struct sockaddr *address)
{
    struct sockaddr_in in;

    memcpy(&in, address, sizeof in);
    return ntohs(in.sin_port);
}

static struct pirn__sim_file *socket_of(int fd)
{
    struct pirn__sim_file *file = pirn__sim_file_of(fd);

    return file != NULL && (file->kind == PIRN__SIM_SOCKET ||
                            file->kind == PIRN__SIM_LISTENER)
               ? file
               : NULL;
}

static struct pirn__sim_end *end_of(int fd)
{
    struct pirn__sim_file *file = socket_of(fd);

    return file == NULL || file->kind != PIRN__SIM_SOCKET ? NULL : file->end;
}

static int net_socket(int family)
{
    int fd;

    pirn_sim_pause("socket", (uint64_t)family);
    if (family != AF_INET)
        return -EAFNOSUPPORT;
    fd = pirn__sim_file_open(PIRN__SIM_SOCKET);
    if (fd < 0)
        return fd;
    pirn__sim_file_of(fd)->end = pirn__sim_end_new(fd);
    return fd;
}

static int net_bind(int fd, const struct sockaddr *address, unsigned len)
{
    struct pirn__sim_file *file;
    uint16_t port = port_of(address);

    (void)len;
    pirn_sim_pause("bind", port);
    file = socket_of(fd);
    if (file == NULL)
        return -EBADF;
    if (port != 0 && pirn__sim_listener_at(port) != NULL)
        return -EADDRINUSE;
    file->port = port != 0 ? port : pirn__sim_port_new();
    return 0;
}

static int net_listen(int fd, int backlog)
{
    struct pirn__sim_file *file;

    pirn_sim_pause("listen", (uint64_t)backlog);
    file = socket_of(fd);
    if (file == NULL)
        return -EBADF;
    file->end->open = false;
    file->end->fd = -1;
    file->end = NULL;
    file->kind = PIRN__SIM_LISTENER;
    file->backlog = backlog;
    if (file->port == 0)
        file->port = pirn__sim_port_new();
    return 0;
}

static int net_connect(int fd, const struct sockaddr *address, unsigned len)
{
    struct pirn__sim_end *end;

    (void)len;
    pirn_sim_pause("connect", port_of(address));
    end = end_of(fd);
    if (end == NULL)
        return -EBADF;
    if (end->state != PIRN__SIM_FRESH)
        return end->state == PIRN__SIM_CONNECTED ? -EISCONN : -EALREADY;
    pirn__sim_end_connect(end, port_of(address));
    return -EINPROGRESS;
}

static struct pirn__sim_end *dequeue(struct pirn__sim_file *listener)
{
    struct pirn__sim_end *end = listener->queue[0];

    listener->queue_len--;
    memmove(listener->queue, listener->queue + 1,
            listener->queue_len * sizeof(*listener->queue));
    return end;
}

static int net_accept(int fd, struct sockaddr *address, unsigned *len)
{
    struct pirn__sim_file *file;
    struct pirn__sim_end *end;
    int made;

    (void)address;
    (void)len;
    pirn_sim_pause("accept", (uint64_t)fd);
    file = socket_of(fd);
    if (file == NULL || file->kind != PIRN__SIM_LISTENER)
        return -EBADF;
    if (file->queue_len == 0)
        return -EAGAIN;
    made = pirn__sim_file_open(PIRN__SIM_SOCKET);
    if (made < 0)
        return made;
    end = dequeue(file);
    end->fd = made;
    pirn__sim_file_of(made)->end = end;
    if (end->dead && pirn_sim_chance(500)) {
        pirn__sys->close(made);
        return -ECONNABORTED;
    }
    return made;
}

ssize_t pirn__sim_net_recv(int fd, void *buf, size_t len)
{
    ssize_t n;

    pirn_sim_pause("recv", (uint64_t)fd);
    n = pirn__sim_end_receive(end_of(fd), buf, len);
    pirn_sim_pause("received", (uint64_t)n);
    return n;
}

ssize_t pirn__sim_net_send(int fd, const void *buf, size_t len)
{
    ssize_t n;

    pirn_sim_pause("send", len);
    n = pirn__sim_end_transmit(end_of(fd), buf, len);
    pirn_sim_pause("sent", (uint64_t)n);
    return n;
}

typedef ssize_t one_fn(int fd, struct iovec part);

static ssize_t one_recv(int fd, struct iovec part)
{
    return pirn__sim_end_receive(end_of(fd), part.iov_base, part.iov_len);
}

static ssize_t one_send(int fd, struct iovec part)
{
    return pirn__sim_end_transmit(end_of(fd), part.iov_base, part.iov_len);
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
    pirn_sim_pause("readv", (uint64_t)fd);
    return each(one_recv, fd, vec, count);
}

static ssize_t net_sendv(int fd, const struct iovec *vec, int count)
{
    pirn_sim_pause("sendv", (uint64_t)fd);
    return each(one_send, fd, vec, count);
}

/* The file is a real one. */
static ssize_t net_sendfile(int fd, int file, off_t *offset, size_t count)
{
    unsigned char piece[PIECE];
    ssize_t n;

    pirn_sim_pause("sendfile", count);
    n = pirn__linux_pread(file, piece, count < PIECE ? count : PIECE, *offset);
    if (n < 0)
        return n;
    n = pirn__sim_end_transmit(end_of(fd), piece, (size_t)n);
    if (n > 0)
        *offset += n;
    return n;
}

static int net_shutdown(int fd, int how)
{
    struct pirn__sim_end *end;

    pirn_sim_pause("shutdown", (uint64_t)how);
    end = end_of(fd);
    if (end == NULL)
        return -EBADF;
    if (end->state != PIRN__SIM_CONNECTED || end->dead)
        return -ENOTCONN;
    if (how == SHUT_WR || how == SHUT_RDWR)
        pirn__sim_end_finish(end);
    if (how == SHUT_RD || how == SHUT_RDWR)
        end->shut_read = true;
    pirn__sim_end_signal(end);
    return 0;
}

void pirn__sim_net_close(struct pirn__sim_file *file)
{
    if (file->kind == PIRN__SIM_SOCKET && file->end != NULL)
        pirn__sim_end_close(file->end);
    for (size_t i = 0; i < file->queue_len; i++) {
        pirn__sim_end_refuse(file->queue[i]);
    }
}

uint32_t pirn__sim_net_mask(const struct pirn__sim_file *file)
{
    if (file->kind == PIRN__SIM_LISTENER)
        return file->queue_len > 0 ? EPOLLIN : 0;
    return file->end == NULL ? 0 : pirn__sim_end_mask(file->end);
}

static int net_getsockopt(int fd, int level, int name, void *value,
                          unsigned *len)
{
    struct pirn__sim_end *end = end_of(fd);
    int number = 0;

    pirn_sim_pause("getsockopt", (uint64_t)name);
    if (level == SOL_SOCKET && name == SO_TYPE)
        number = SOCK_STREAM;
    if (level == SOL_SOCKET && name == SO_ERROR && end != NULL)
        number = pirn__sim_end_take_error(end);
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
    pirn_sim_pause("setsockopt", (uint64_t)name);
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
    const struct pirn__sim_file *file = socket_of(fd);

    if (file == NULL)
        return -EBADF;
    return name_of(file->end != NULL ? file->end->port : file->port, address,
                   len);
}

static int net_peername(int fd, struct sockaddr *address, unsigned *len)
{
    const struct pirn__sim_end *end = end_of(fd);

    pirn_sim_pause("peername", (uint64_t)fd);
    if (end == NULL)
        return -EBADF;
    if (end->state != PIRN__SIM_CONNECTED || end->dead)
        return -ENOTCONN;
    return name_of(end->peer_port, address, len);
}

void pirn__sim_net_fill(struct pirn__sys *table)
{
    table->readv = net_readv;
    table->writev = net_sendv;
    table->socket = net_socket;
    table->bind = net_bind;
    table->listen = net_listen;
    table->accept = net_accept;
    table->connect = net_connect;
    table->send = pirn__sim_net_send;
    table->send_more = pirn__sim_net_send;
    table->recv = pirn__sim_net_recv;
    table->sendv = net_sendv;
    table->shutdown = net_shutdown;
    table->getsockopt = net_getsockopt;
    table->setsockopt = net_setsockopt;
    table->sockname = net_sockname;
    table->peername = net_peername;
    table->sendfile = net_sendfile;
}
