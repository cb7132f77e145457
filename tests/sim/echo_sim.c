/* SPDX-License-Identifier: MIT */
/* tests/sim/echo_sim.c - an echo server in bad weather. */
#include "sim/echo_story.h"

/* Goal: whatever the network does, nothing is lost or changed, and when it is
 * calm again all clients are served.  Method: a run for each seed. */
TEST(echo_is_complete)
{
    sim_expect_clean("echo_is_complete", echo_story, NULL,
                     test_size(30, 400, 20000));
}

/* Goal: the same seed makes the same run.  Method: the hashes of a batch, run
 * twice and by another process, whose memory lies elsewhere. */
TEST(echo_can_be_repeated)
{
    sim_expect_repeatable("echo_is_complete", echo_story, 10);
}
