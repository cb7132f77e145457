/* SPDX-License-Identifier: MIT */
/* bench/peers/peer.h - what the C and C++ peers share: their command line,
 * clocks, the form of a value, and what a server needs before it serves.
 *
 *     PEER ROW [--workers N] [--samples N] [--quick]
 *
 * It has no part of Pirn.
 */
#ifndef BENCH_PEERS_PEER_H
#define BENCH_PEERS_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PEER_THOUSAND = 1000, PEER_MILLION = 1000000 };

struct peer_options {
    unsigned workers;
    unsigned samples;
    bool quick;
};

extern struct peer_options peer_options;

/* A row that a program knows. */
struct peer_row {
    const char *name;
    void (*run)(void);
};

/* Read the command line and run the row that it names; the list ends with a row
 * without a name. */
int peer_main(int argc, char **argv, const struct peer_row *rows);

/* With --quick `small`, else `large`. */
uint64_t peer_scale(uint64_t small, uint64_t large);

uint64_t peer_now_ns(void);
uint64_t peer_cpu_ns(void); /* of all threads */

void peer_print(const char *name, const char *unit, double value);

/* End the program unless `fine`. */
void peer_require(bool fine, const char *what);

/* Run fn once to warm up, then once for each sample, and print ns for each of
 * its operations: what passed, and as NAME.cpu the processor time. */
void peer_measure(const char *name, uint64_t operations, void (*fn)(void));

/* Sort, and print NAME_p50 and NAME_p99 in ns. */
void peer_print_percentiles(const char *name, uint64_t *values, size_t count);

/* xorshift: the same deadlines as in Pirn's program. */
uint64_t peer_draw(uint64_t *state);
uint64_t peer_seed(void); /* to begin with */

/* Which of `live` timers is next: in turn, or drawn. */
struct peer_churn {
    uint64_t random;
    uint64_t next;
    uint64_t live;
    bool in_order;
};
uint64_t peer_pick(struct peer_churn *churn);

/* Resident memory and page tables, in bytes. */
double peer_footprint(void);

/* Sleep until the monotonic clock shows `ns`. */
void peer_sleep_until(uint64_t ns);

/* A listening socket on a free port of the loopback, without blocking; prints
 * "port N". */
int peer_listen(void);

/* HTTP hello: the request ends with an empty line and has no body. */
extern const char peer_response[];
extern const size_t peer_response_size;
bool peer_request_ends(const char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* BENCH_PEERS_PEER_H */
