/* SPDX-License-Identifier: MIT */
/* src/net/tcp.h - what the files of this folder know of a connection. */
#ifndef PIRN_NET_TCP_H
#define PIRN_NET_TCP_H

#include <pirn/net.h>

#include "reactor/io.h"

struct pirn_tcp {
    struct pirn__io io; /* first */
};

/* A connection around a non-blocking TCP socket, which `ready` says what to
 * assume about.  -ENOMEM: the socket is still the caller's. */
int pirn__tcp_new(int fd, unsigned ready, pirn_tcp **out);

/* An option of type int. */
int pirn__socket_set(int fd, int level, int name, int value);

#endif /* PIRN_NET_TCP_H */
