/* SPDX-License-Identifier: MIT */
/* examples/recorder.c - two sensors, one recorder: channels as streams, merged
 * and batched, beside a clock that goes on from turn to turn.
 *
 *     ./recorder
 */
#include <errno.h>
#include <stdio.h>

#include <pirn/pirn.h>

enum { SENSORS = 2, READINGS = 500, BATCH = 64 };

struct reading {
    int sensor;
    int value;
};

struct sensor {
    int number;
    pirn_mpsc_sender *readings;
};

/* Owns the sender. */
static int measure(void *arg)
{
    const struct sensor *sensor = arg;
    int rc = 0;

    for (int i = 0; i < READINGS && rc == 0; i++) {
        struct reading reading = {sensor->number, i};

        rc = pirn_mpsc_send(sensor->readings, &reading, PIRN_NEVER);
        if (rc == 0 && i % 100 == 99)
            rc = pirn_sleep(pirn_after_ms(2));
    }
    pirn_mpsc_sender_unref(sensor->readings);
    return rc;
}

static int start_sensor(struct sensor *sensor, pirn_channel_stream *stream)
{
    const pirn_channel_options options = {.message_size =
                                              sizeof(struct reading)};
    pirn_mpsc_receiver *receiver;
    int rc = pirn_mpsc_new(&options, &sensor->readings, &receiver);

    if (rc < 0)
        return rc;
    rc = pirn_go(measure, sensor);
    if (rc < 0) {
        pirn_mpsc_sender_unref(sensor->readings);
        pirn_mpsc_receiver_free(receiver);
        return rc;
    }
    pirn_mpsc_stream_init(stream, receiver);
    return 0;
}

/* Take chunks until there are no more; a line every few milliseconds. */
static int record(pirn_stream *chunks)
{
    enum { CHUNK, CLOCK };
    size_t count = 0, batches = 0;
    pirn_chunk chunk;
    pirn_next_op next;
    pirn_sleep_op clock;
    pirn_branch branches[2] = {PIRN_BRANCH_KEPT(&next),
                               PIRN_BRANCH_KEPT(&clock)};
    int winner;

    pirn_next_init(&next, chunks, &chunk);
    pirn_sleep_init(&clock, pirn_after_ms(5));
    for (;;) {
        winner = pirn_select(branches, 2, PIRN_NEVER);
        if (winner == CLOCK) {
            printf("%zu readings so far\n", count);
            pirn_sleep_init(&clock, pirn_after_ms(5));
            pirn_branch_set(&branches[CLOCK], &clock.future);
        } else if (winner == CHUNK && next.rc > 0) {
            count += chunk.count;
            batches++;
            pirn_next_init(&next, chunks, &chunk);
            pirn_branch_set(&branches[CHUNK], &next.future);
        } else {
            break;
        }
    }
    pirn_branches_drop(branches, 2);
    printf("%zu readings in %zu batches\n", count, batches);
    if (winner < 0)
        return winner;
    return count == SENSORS * READINGS ? 0 : -EIO;
}

static int run(void *arg)
{
    static struct reading room[BATCH];
    static struct sensor sensors[SENSORS] = {{.number = 0}, {.number = 1}};
    const pirn_chunk_options options = {
        .items = room,
        .item_size = sizeof room[0],
        .max = BATCH,
        .patience_ns = 1000000,
    };
    pirn_channel_stream channels[SENSORS];
    pirn_stream_slot slots[SENSORS] = {{NULL, 0}};
    pirn_merge_stream merge;
    pirn_chunks_stream chunks;
    int rc = 0;

    (void)arg;
    for (int i = 0; i < SENSORS && rc == 0; i++) {
        rc = start_sensor(&sensors[i], &channels[i]);
        if (rc == 0)
            slots[i] = (pirn_stream_slot){&channels[i].stream, (uint64_t)i};
    }
    pirn_merge_init(&merge, slots, SENSORS);
    if (rc == 0)
        rc = pirn_chunks_init(&chunks, &merge.stream, &options);
    if (rc < 0) {
        pirn_stream_drop(&merge.stream);
        return rc;
    }
    rc = record(&chunks.stream);
    pirn_stream_drop(&chunks.stream);
    return rc;
}

int main(void)
{
    return pirn_exit_code(pirn_run(run, NULL));
}
