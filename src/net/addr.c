/* SPDX-License-Identifier: MIT */
/* src/net/addr.c - numeric addresses and ports, as text and for the kernel. */
#include "net/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sys/sys.h"

enum {
    V4_SIZE = 4,
    V6_SIZE = 16,
    PORT_LIMIT = 65535,
};

/* Reading. */

/* A number in decimal digits alone, up to `limit`. */
static bool parse_number(const char *text, size_t len, uint32_t limit,
                         uint32_t *out)
{
    uint64_t value = 0;

    if (len == 0 || len > 10)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    *out = (uint32_t)value;
    return value <= limit;
}

static bool parse_port(const char *text, uint16_t *out)
{
    uint32_t port;

    if (!parse_number(text, strlen(text), PORT_LIMIT, &port))
        return false;
    *out = (uint16_t)port;
    return true;
}

/* The `len` characters of a host; inet_pton() wants a string. */
static bool parse_host(int family, const char *text, size_t len, uint8_t *bytes)
{
    char host[INET6_ADDRSTRLEN];

    if (len >= sizeof host)
        return false;
    memcpy(host, text, len);
    host[len] = '\0';
    return inet_pton(family, host, bytes) == 1;
}

static bool parse_v4(const char *text, pirn_addr *out)
{
    const char *colon = strchr(text, ':');

    if (colon == NULL)
        return false;
    out->family_ = AF_INET;
    return parse_host(AF_INET, text, (size_t)(colon - text), out->bytes_) &&
           parse_port(colon + 1, &out->port_);
}

/* `text` stands behind the opening bracket. */
static bool parse_v6(const char *text, pirn_addr *out)
{
    const char *end = strchr(text, ']');
    const char *percent;
    size_t host_len;

    if (end == NULL || end[1] != ':')
        return false;
    out->family_ = AF_INET6;
    host_len = (size_t)(end - text);
    percent = memchr(text, '%', host_len);
    if (percent != NULL) {
        host_len = (size_t)(percent - text);
        if (!parse_number(percent + 1, (size_t)(end - percent - 1), UINT32_MAX,
                          &out->scope_))
            return false;
    }
    return parse_host(AF_INET6, text, host_len, out->bytes_) &&
           parse_port(end + 2, &out->port_);
}

int pirn_addr_parse(const char *text, pirn_addr *out)
{
    pirn_addr addr = {0};
    bool good;

    if (text == NULL || out == NULL)
        return -EINVAL;
    good = text[0] == '[' ? parse_v6(text + 1, &addr) : parse_v4(text, &addr);
    if (!good)
        return -EINVAL;
    *out = addr;
    return 0;
}

/* Writing. */

char *pirn_addr_format(const pirn_addr *addr, char *buf, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "?";

    if (buf == NULL || size == 0)
        return buf;
    if (addr->family_ == AF_INET || addr->family_ == AF_INET6)
        (void)inet_ntop(addr->family_, addr->bytes_, host, sizeof host);
    if (addr->family_ != AF_INET6)
        (void)snprintf(buf, size, "%s:%u", host, addr->port_);
    else if (addr->scope_ == 0)
        (void)snprintf(buf, size, "[%s]:%u", host, addr->port_);
    else
        (void)snprintf(buf, size, "[%s%%%u]:%u", host, addr->scope_,
                       addr->port_);
    return buf;
}

void pirn__addr_describe(const pirn_addr *addr, pirn_text *out)
{
    char text[PIRN_ADDR_SIZE];

    pirn_text_append(out, "%s", pirn_addr_format(addr, text, sizeof text));
}

uint16_t pirn_addr_port(const pirn_addr *addr)
{
    return addr->port_;
}

void pirn_addr_set_port(pirn_addr *addr, uint16_t port)
{
    addr->port_ = port;
}

bool pirn_addr_equal(const pirn_addr *a, const pirn_addr *b)
{
    return a->family_ == b->family_ && a->port_ == b->port_ &&
           a->scope_ == b->scope_ &&
           memcmp(a->bytes_, b->bytes_, sizeof a->bytes_) == 0;
}

/* For the kernel. */

unsigned pirn__addr_to_sockaddr(const pirn_addr *addr,
                                union pirn__sockaddr *out)
{
    memset(out, 0, sizeof *out);
    if (addr->family_ == AF_INET) {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons(addr->port_);
        memcpy(&out->v4.sin_addr, addr->bytes_, V4_SIZE);
        return sizeof out->v4;
    }
    if (addr->family_ == AF_INET6) {
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = htons(addr->port_);
        out->v6.sin6_scope_id = addr->scope_;
        memcpy(&out->v6.sin6_addr, addr->bytes_, V6_SIZE);
        return sizeof out->v6;
    }
    return 0;
}

int pirn__addr_from_sockaddr(const union pirn__sockaddr *from, pirn_addr *out)
{
    pirn_addr addr = {.family_ = from->any.sa_family};

    if (addr.family_ == AF_INET) {
        addr.port_ = ntohs(from->v4.sin_port);
        memcpy(addr.bytes_, &from->v4.sin_addr, V4_SIZE);
    } else if (addr.family_ == AF_INET6) {
        addr.port_ = ntohs(from->v6.sin6_port);
        addr.scope_ = from->v6.sin6_scope_id;
        memcpy(addr.bytes_, &from->v6.sin6_addr, V6_SIZE);
    } else {
        return -EAFNOSUPPORT;
    }
    *out = addr;
    return 0;
}

int pirn__addr_local(int fd, pirn_addr *out)
{
    union pirn__sockaddr name;
    unsigned len = sizeof name;
    int rc = pirn__sys->sockname(fd, &name.any, &len);

    return rc < 0 ? rc : pirn__addr_from_sockaddr(&name, out);
}

int pirn__addr_peer(int fd, pirn_addr *out)
{
    union pirn__sockaddr name;
    unsigned len = sizeof name;
    int rc = pirn__sys->peername(fd, &name.any, &len);

    return rc < 0 ? rc : pirn__addr_from_sockaddr(&name, out);
}
