/* SPDX-License-Identifier: MIT */
/* bench/bench_pool_pairs.c - a thousand pairs of tasks that pass a word to and
 * fro by two channels with room for one: what other runtimes are asked for
 * under the name of ping-pong.
 *
 *   pairs_fiber, pairs_async   the figure is a round trip: two messages, two
 *                              waits
 *
 * `ping_pong` in bench_pool_turns.c is the same game without channels.
 */
#include "rig.h"
#include "sample.h"
#include "tally.h"

enum { PAIRS = 1000, SIDES = 2 };

/* One end of a pair: it sends into the channel of the other. */
struct side {
    pirn_mpsc_sender *sender;
    pirn_mpsc_receiver *receiver;
    bool serves;
};

static struct {
    struct side sides[PAIRS][SIDES];
    uint64_t each; /* round trips of a pair */
    bool as_fibers;
    struct tally left;
} game;

static void open_pair(struct side *sides)
{
    static const pirn_channel_options options = {
        .message_size = sizeof(uint64_t),
        .capacity = 1,
    };

    for (int i = 0; i < SIDES; i++)
        sample_require(pirn_mpsc_new(&options, &sides[i].sender,
                                     &sides[SIDES - 1 - i].receiver),
                       "pirn_mpsc_new");
    sides[0].serves = true;
}

static void close_side(struct side *side)
{
    pirn_mpsc_sender_unref(side->sender);
    pirn_mpsc_receiver_free(side->receiver);
}

static int side_fiber(void *arg)
{
    struct side *side = arg;
    uint64_t word = 0;

    for (uint64_t i = 0; i < game.each; i++) {
        if (side->serves)
            sample_require(pirn_mpsc_send(side->sender, &i, PIRN_NEVER),
                           "send");
        sample_require(pirn_mpsc_recv(side->receiver, &word, PIRN_NEVER),
                       "receive");
        if (!side->serves)
            sample_require(pirn_mpsc_send(side->sender, &word, PIRN_NEVER),
                           "send");
    }
    tally_hit(&game.left);
    return 0;
}

struct side_task {
    pirn_frame frame;
    struct side *side;
    uint64_t left;
    uint64_t word;
    pirn_mpsc_send_op send;
    pirn_mpsc_recv_op recv;
};

static enum pirn_poll side_poll(pirn_future *self, pirn_cx *cx)
{
    struct side_task *task = PIRN_FRAME_OF(self, struct side_task, frame);

    PIRN_ASYNC_BEGIN(&task->frame, cx);
    while (task->left-- > 0) {
        if (task->side->serves) {
            pirn_mpsc_send_init(&task->send, task->side->sender, &task->word);
            PIRN_AWAIT(&task->send.future);
        }
        pirn_mpsc_recv_init(&task->recv, task->side->receiver, &task->word);
        PIRN_AWAIT(&task->recv.future);
        sample_require((int)task->recv.n, "receive");
        if (!task->side->serves) {
            pirn_mpsc_send_init(&task->send, task->side->sender, &task->word);
            PIRN_AWAIT(&task->send.future);
        }
    }
    tally_hit(&game.left);
    PIRN_ASYNC_END();
}

static const pirn_async_ops side_ops = PIRN_ASYNC_OPS(side_poll, NULL);

static int start_side(struct side *side)
{
    struct side_task task = {.side = side, .left = game.each};

    if (game.as_fibers)
        return pirn_go(side_fiber, side);
    pirn_frame_init(&task.frame, &side_ops);
    return pirn_spawn(&task.frame.future, sizeof task, NULL, NULL);
}

static void play(void *arg)
{
    (void)arg;
    tally_init(&game.left, SIDES * PAIRS);
    for (int i = 0; i < PAIRS; i++) {
        open_pair(game.sides[i]);
        for (int k = 0; k < SIDES; k++)
            sample_require(start_side(&game.sides[i][k]), "spawn");
    }
    tally_await(&game.left);
    for (int i = 0; i < PAIRS; i++)
        for (int k = 0; k < SIDES; k++)
            close_side(&game.sides[i][k]);
}

static void measure(const char *name, bool as_fibers)
{
    uint64_t count = rig_scale(100000, 500000);
    struct rig_row row = {
        .name = name,
        .operations = count,
        .fn = play,
    };

    game.each = count / PAIRS;
    game.as_fibers = as_fibers;
    rig_time(&row);
}

int main(int argc, char **argv)
{
    rig_begin(argc, argv);
    measure("pairs_async", false);
    measure("pairs_fiber", true);
    rig_end();
    return 0;
}
