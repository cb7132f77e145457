/* SPDX-License-Identifier: MIT */
/* src/io/buf_test.c - counted buffers. */
#include <errno.h>
#include <stdlib.h>

#include <pirn/io.h>
#include <pirn/runtime.h>

#include "engine/test.h"

/* Goal: a buffer is empty, as large as asked for, and takes a length up to that.
 * Method: set lengths below and above. */
TEST(buf_new_is_empty_and_bounded)
{
    pirn_buf *buf;

    EXPECT_EQ(0, pirn_buf_new(10, &buf));
    EXPECT_EQ(10u, pirn_buf_size(buf));
    EXPECT_EQ(0u, pirn_buf_len(buf));
    memset(pirn_buf_data(buf), 'x', 10);
    pirn_buf_set_len(buf, 7);
    EXPECT_EQ(7u, pirn_buf_len(buf));
    pirn_buf_set_len(buf, 11);
    EXPECT_EQ(10u, pirn_buf_len(buf));
    pirn_buf_unref(buf);
}

/* Goal: sizes outside the range are refused.
 * Method: 0, above 1 GiB, no place for the result; NULL is nobody. */
TEST(buf_new_of_nonsense_answers_einval)
{
    pirn_buf *buf = (pirn_buf *)8;

    EXPECT_EQ(-EINVAL, pirn_buf_new(0, &buf));
    EXPECT_PTR_EQ(NULL, buf);
    EXPECT_EQ(-EINVAL, pirn_buf_new(((size_t)1 << 30) + 1, &buf));
    EXPECT_EQ(-EINVAL, pirn_buf_new(1, NULL));
    EXPECT_PTR_EQ(NULL, pirn_buf_ref(NULL));
    pirn_buf_unref(NULL);
}

/* An allocator that counts and can refuse. */
struct count {
    pirn_alloc alloc;
    int live;
    int done;
    bool refuses;
};

static void *counting_take(void *ctx, size_t size, size_t align)
{
    struct count *count = ctx;

    if (count->refuses)
        return NULL;
    count->live++;
    return aligned_alloc(align, (size + align - 1) / align * align);
}

static void counting_give(void *ctx, void *memory, size_t size, size_t align)
{
    struct count *count = ctx;

    (void)size;
    (void)align;
    count->live--;
    free(memory);
}

static void counting_done(void *ctx)
{
    ((struct count *)ctx)->done++;
}

/* Goal: a buffer comes from the current runtime's allocator and goes back there,
 * also after that runtime is gone; refusal is -ENOMEM.
 * Method: a counting allocator; two references; the last one outlives the
 * runtime. */
TEST(buf_returns_to_the_allocator_it_came_from)
{
    struct count count = {
        .alloc = {counting_take, counting_give, counting_done, &count}};
    const pirn_runtime_options options = {.alloc = &count.alloc};
    pirn_runtime *rt, *outer;
    pirn_buf *buf, *none;
    int before;

    EXPECT_EQ(0, pirn_runtime_new(&options, &rt));
    outer = pirn_runtime_enter(rt);
    before = count.live;
    EXPECT_EQ(0, pirn_buf_new(100, &buf));
    EXPECT_EQ(before + 1, count.live);
    count.refuses = true;
    EXPECT_EQ(-ENOMEM, pirn_buf_new(100, &none));
    EXPECT_PTR_EQ(NULL, none);
    count.refuses = false;
    (void)pirn_runtime_enter(outer);
    EXPECT_PTR_EQ(buf, pirn_buf_ref(buf));
    pirn_buf_unref(buf);
    pirn_runtime_unref(rt);
    EXPECT_EQ(0, count.done);
    pirn_buf_unref(buf);
    EXPECT_EQ(0, count.live);
    EXPECT_EQ(1, count.done);
}
