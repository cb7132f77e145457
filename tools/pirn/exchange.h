/* SPDX-License-Identifier: MIT */
/* tools/pirn/exchange.h - one request and its answer. */
#ifndef PIRN_TOOLS_EXCHANGE_H
#define PIRN_TOOLS_EXCHANGE_H

#include <pirn/pirn.h>

#include "date.h"
#include "http.h"

/* What every answer of a server depends on. */
struct site {
    int root_fd;
    uint64_t idle_ms; /* a write may stand still so long */
};

struct exchange {
    const struct site *site;
    pirn_tcp *tcp;
    struct date_cache *date;
    const struct http_message *message; /* NULL: the request made no sense */
    bool keep_alive;                    /* in: it may go on; out: it does */
    int status;                         /* out: what was answered */
    uint64_t sent;                      /* out: bytes of the body */
};

/* Answer the request from the files of the site.  0, or a negative code if the
 * connection is of no further use. */
int exchange_answer(struct exchange *exchange);

/* Answer with an error; the same result. */
int exchange_refuse(struct exchange *exchange, int status);

#endif /* PIRN_TOOLS_EXCHANGE_H */
