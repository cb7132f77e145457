/* SPDX-License-Identifier: MIT */
/* What the fragments of docs/guide/synchronisation.md take for granted. */
struct account;
struct table {
    pirn_rwlock lock;
};
struct file;
struct request {
    pirn_permit permit;
};
struct job_queue {
    pirn_mutex mutex;
    pirn_cond filled;
    int count;
    int jobs[16];
};
struct mailbox {
    pirn_notify filled;
};
struct phase {
    pirn_barrier barrier;
};
void pack(int number);
int table_find(struct table *table, int key);
void table_set(struct table *table, int key, int value);
void report(struct table *table, int key);
int upload(struct file *file);
void answer(struct request *request);
bool mailbox_take(struct mailbox *box);
void compute_step(struct phase *phase, int step);
void publish(struct phase *phase);
int talk_to(pirn_tcp *conn);
