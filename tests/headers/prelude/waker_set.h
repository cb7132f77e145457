/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/waker_set.h takes for granted. */
struct item;
struct pool {
    pirn_waker_set waiting;
};
struct take_op {
    pirn_future future;
    struct pool *pool;
    struct item *item;
    pirn_waiter waiter;
};
extern struct pool *pool;
extern struct item *item;
extern struct item *pool_try_take(struct pool *pool);
extern void pool_put(struct pool *pool, struct item *item);
