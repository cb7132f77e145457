/* SPDX-License-Identifier: MIT */
/* What the fragments of docs/guide/write-your-own-future.md take for granted. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
struct connection {
    struct connection *next;
};
int run_query(struct connection *connection, const char *text);
