/* SPDX-License-Identifier: MIT */
/* src/net/addr.h - addresses as the system calls take them. */
#ifndef PIRN_NET_ADDR_H
#define PIRN_NET_ADDR_H

#include <netinet/in.h>

#include <pirn/net.h>

union pirn__sockaddr {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* The length of what was written; 0 if `addr` is no address. */
unsigned pirn__addr_to_sockaddr(const pirn_addr *addr,
                                union pirn__sockaddr *out);

/* -EAFNOSUPPORT if it is neither IPv4 nor IPv6. */
int pirn__addr_from_sockaddr(const union pirn__sockaddr *from, pirn_addr *out);

/* Both ends of a socket. */
int pirn__addr_local(int fd, pirn_addr *out);
int pirn__addr_peer(int fd, pirn_addr *out);

/* Append the text of an address. */
void pirn__addr_describe(const pirn_addr *addr, pirn_text *out);

#endif /* PIRN_NET_ADDR_H */
