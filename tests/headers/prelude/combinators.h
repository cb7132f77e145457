/* SPDX-License-Identifier: MIT */
/* What the fragments of docs/guide/combinators.md take for granted. */
struct job {
    int number;
};
struct fetch {
    const char *url;
};
pirn_fiber_fn fetch;
struct lookup {
    pirn_frame frame;
};
void lookup_init(struct lookup *lookup);
void run(const struct job *job);
void report(void);
bool queue_is_full(void);
void use(const char *buf, ssize_t n);
extern pirn_branch branches[];
extern size_t count;
extern int winner, rc;
extern pirn_timeout_op timeout;
extern pirn_tcp_op reading;
