/* SPDX-License-Identifier: MIT */
/* src/testing/sim_watch_test.c - futures that are watched. */
#include "testing/sim_test.h"

struct napper {
    pirn_frame frame; /* first */
    pirn_sleep_op sleep;
};

static int cleaned_up;

static enum pirn_poll napper_poll(pirn_future *self, pirn_cx *cx)
{
    struct napper *napper = PIRN_FRAME_OF(self, struct napper, frame);

    PIRN_ASYNC_BEGIN(&napper->frame, cx);
    pirn_sleep_init(&napper->sleep, pirn_after_ms(5));
    PIRN_AWAIT(&napper->sleep.future);
    PIRN_ASYNC_END();
}

static void napper_cleanup(pirn_frame *frame)
{
    (void)frame;
    cleaned_up++;
}

static const pirn_async_ops napper_ops =
    PIRN_ASYNC_OPS(napper_poll, napper_cleanup);

static int nap_twice(void *arg)
{
    struct napper napper;
    int rc;

    (void)arg;
    pirn_frame_init(&napper.frame, &napper_ops);
    rc = pirn_sim_await(&napper.frame.future, PIRN_NEVER);
    EXPECT_EQ(0, rc);
    EXPECT_EQ(0, napper.frame.rc);
    EXPECT_PTR_EQ(&napper_ops.future, napper.frame.future.ops);
    pirn_frame_init(&napper.frame, &napper_ops);
    EXPECT_EQ(-ETIMEDOUT,
              pirn_sim_await(&napper.frame.future, pirn_after_ms(1)));
    EXPECT_EQ(2, cleaned_up);
    return pirn_sim_sleep(pirn_after_ms(3));
}

static int watch_frames(void *arg)
{
    cleaned_up = 0;
    return pirn_run(nap_twice, arg);
}

/* Goal: a frame under watch still cleans up, whether it ends or is dropped, and
 * is itself again afterwards.  Method: await one twice, the second for too short a
 * time. */
TEST(sim_watched_frame_cleans_up)
{
    const pirn_sim_case scenario = {
        .program = watch_frames,
        .options = {.refusals = PIRN_SIM_NONE,
                    .weather_ms = PIRN_SIM_NONE,
                    .late_us = PIRN_SIM_NONE},
    };

    for (uint64_t seed = 0; seed < 20; seed++)
        EXPECT_EQ(0, pirn_sim_run(&scenario, seed, NULL));
}
