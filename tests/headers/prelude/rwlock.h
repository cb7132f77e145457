/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/rwlock.h takes for granted. */
struct table {
    pirn_rwlock lock;
};
extern struct table *table;
extern int rc, key, value;
extern int table_look_up(struct table *table, int key);
