/* SPDX-License-Identifier: MIT */
/* src/channel/promise_test.c - set once, seen by all. */
#include <pirn/promise.h>

#include "channel/lab_test.h"

static struct waste waste;

static pirn_promise *promise_begin(void)
{
    const pirn_channel_options options = options_with_waste(0, &waste);
    pirn_promise *promise = NULL;

    waste = (struct waste){0};
    EXPECT_EQ(0, pirn_promise_new(&options, &promise));
    return promise;
}

static int set(pirn_promise *promise, int value)
{
    return pirn_promise_set(promise, &value);
}

/* Goal: the first one sets it; everybody gets that value, any number of times.
 */
TEST(promise_first_one_wins)
{
    pirn_promise *promise = promise_begin();
    int value = -1;

    EXPECT(!pirn_promise_is_set(promise));
    EXPECT_EQ(-EAGAIN, pirn_promise_try_get(promise, &value));
    EXPECT_EQ(-ETIMEDOUT, pirn_promise_get(promise, &value, PIRN_EXPIRED));
    EXPECT_EQ(0, set(promise, 5));
    EXPECT_EQ(-EALREADY, set(promise, 6));
    EXPECT(pirn_promise_is_set(promise));
    for (int i = 0; i < 2; i++) {
        value = -1;
        EXPECT_EQ(0, pirn_promise_try_get(promise, &value));
        EXPECT_EQ(5, value);
        value = -1;
        EXPECT_EQ(0, pirn_promise_get(promise, &value, PIRN_EXPIRED));
        EXPECT_EQ(5, value);
    }
    EXPECT_EQ(0, waste.count);
    EXPECT_PTR_EQ(promise, pirn_promise_ref(promise));
    pirn_promise_unref(promise);
    EXPECT_EQ(0, waste.count);
    pirn_promise_unref(promise);
    EXPECT_EQ(1, waste.count);
    EXPECT_EQ(5, waste.sum);
}

struct getting {
    pirn_promise_get_op op;
    int value;
    poller p;
};

static void getting_init(struct getting *g, pirn_promise *promise)
{
    *g = (struct getting){.value = -1, .p = {.fut = &g->op.future}};
    pirn_promise_get_init(&g->op, promise, &g->value);
}

/* Goal: all who wait are woken once, in any number; who has left is not. */
TEST(promise_set_wakes_all_once)
{
    pirn_promise *promise = promise_begin();
    struct getting waiting[40];

    for (int i = 0; i < 40; i++) {
        getting_init(&waiting[i], promise);
        EXPECT_EQ(PIRN_PENDING, poller_poll(&waiting[i].p));
    }
    poller_drop(&waiting[7].p);
    EXPECT_EQ(0, set(promise, 5));
    EXPECT_EQ(-EALREADY, set(promise, 6));
    poller_drop(&waiting[8].p);
    for (int i = 0; i < 40; i++) {
        EXPECT_EQ(i == 7 ? 0 : 1, waiting[i].p.wakes);
        if (waiting[i].p.fut == NULL)
            continue;
        EXPECT_EQ(PIRN_READY, poller_poll(&waiting[i].p));
        EXPECT_EQ(5, waiting[i].value);
    }
    pirn_promise_unref(promise);
}

/* Goal: a get spends budget and describes itself. */
TEST(promise_get_spends_and_describes)
{
    pirn_promise *promise = promise_begin();
    struct pirn__turn turn = {.budget = 0};
    struct getting g;
    char buf[64] = "";
    pirn_text text = {buf, sizeof buf, 0};

    EXPECT_EQ(0, set(promise, 5));
    getting_init(&g, promise);
    pirn_future_describe(&g.op.future, &text);
    EXPECT_STR_EQ("the value of a promise", buf);
    g.p.turn = &turn;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&g.p));
    turn.budget = 1;
    EXPECT_EQ(PIRN_READY, poller_poll(&g.p));
    EXPECT_EQ(5, g.value);
    pirn_promise_unref(promise);
}

/* Goal: a promise that was never kept discards nothing; arguments are checked.
 */
TEST(promise_unset_and_refused)
{
    pirn_channel_options options = {.message_size = 0};
    pirn_promise *promise = promise_begin();

    pirn_promise_unref(promise);
    EXPECT_EQ(0, waste.count);
    EXPECT_EQ(-EINVAL, pirn_promise_new(&options, &promise));
    EXPECT_PTR_EQ(NULL, promise);
    EXPECT_EQ(-EINVAL, pirn_promise_new(NULL, &promise));
    EXPECT_EQ(-EINVAL, pirn_promise_new(&options, NULL));
    options.message_size = (1 << 20) + 1;
    EXPECT_EQ(-EINVAL, pirn_promise_new(&options, &promise));
    pirn_promise_unref(NULL);
}

static void give_up_under_a_get(void *arg)
{
    pirn_promise *promise = promise_begin();
    struct getting g;

    (void)arg;
    getting_init(&g, promise);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&g.p));
    pirn_promise_unref(promise);
}

/* Goal: a promise that is given up under a waiting get is found. */
TEST(promise_given_up_under_a_get_dies)
{
    EXPECT_DEATH(give_up_under_a_get, NULL, "while a get waits on it");
}
