/* SPDX-License-Identifier: MIT */
/* bench/bench_sizes.c - how many bytes each object takes.
 *
 * What the caller places is a sizeof.  What Pirn allocates is what the heap has
 * less of after the call that makes it, with the heap's own part of each piece;
 * a channel is made for 16 messages of 8 bytes.
 */
#include "sample.h"

#include <pirn/pirn.h>

#include <malloc.h>

static const pirn_channel_options channel = {
    .capacity = 16,
    .message_size = sizeof(uint64_t),
};

static void print_types(void)
{
#define PRINT(type) sample_print("size/" #type, "bytes", sizeof(type))
    PRINT(pirn_mutex);
    PRINT(pirn_rwlock);
    PRINT(pirn_sem);
    PRINT(pirn_notify);
    PRINT(pirn_cond);
    PRINT(pirn_barrier);
    PRINT(pirn_once);
    PRINT(pirn_atomic_waker);
    PRINT(pirn_frame);
    PRINT(pirn_waker);
    PRINT(pirn_timer);
    PRINT(pirn_sleep_op);
    PRINT(pirn_timeout_op);
    PRINT(pirn_mutex_lock_op);
    PRINT(pirn_channel_send_op);
    PRINT(pirn_channel_recv_op);
    PRINT(pirn_tcp_op);
#undef PRINT
}

static size_t heap_bytes(void)
{
    struct mallinfo2 heap = mallinfo2();

    return heap.uordblks + heap.hblkhd;
}

static void print_growth(const char *name, size_t before)
{
    sample_print(name, "bytes", (double)(heap_bytes() - before));
}

/* Nothing is given up before the end: what the heap keeps for the next caller
 * would count as in use. */
static struct {
    pirn_mpsc_sender *mpsc_sender;
    pirn_mpsc_receiver *mpsc_receiver;
    pirn_mpmc_sender *mpmc_sender;
    pirn_mpmc_receiver *mpmc_receiver;
    pirn_broadcast_sender *broadcast_sender;
    pirn_broadcast_receiver *broadcast_receiver;
    pirn_watch_sender *watch_sender;
    pirn_watch_receiver *watch_receiver;
    pirn_oneshot_sender *oneshot_sender;
    pirn_oneshot_receiver *oneshot_receiver;
    pirn_promise *promise;
} made;

static void print_queues(void)
{
    size_t before = heap_bytes();

    sample_require(
        pirn_mpsc_new(&channel, &made.mpsc_sender, &made.mpsc_receiver),
        "pirn_mpsc_new");
    print_growth("size/mpsc", before);
    before = heap_bytes();
    sample_require(
        pirn_mpmc_new(&channel, &made.mpmc_sender, &made.mpmc_receiver),
        "pirn_mpmc_new");
    print_growth("size/mpmc", before);
    before = heap_bytes();
    sample_require(pirn_broadcast_new(&channel, &made.broadcast_sender,
                                      &made.broadcast_receiver),
                   "pirn_broadcast_new");
    print_growth("size/broadcast", before);
}

static void print_single(void)
{
    const uint64_t first = 0;
    size_t before = heap_bytes();

    sample_require(pirn_watch_new(&channel, &first, &made.watch_sender,
                                  &made.watch_receiver),
                   "pirn_watch_new");
    print_growth("size/watch", before);
    before = heap_bytes();
    sample_require(pirn_oneshot_new(&channel, &made.oneshot_sender,
                                    &made.oneshot_receiver),
                   "pirn_oneshot_new");
    print_growth("size/oneshot", before);
    before = heap_bytes();
    sample_require(pirn_promise_new(&channel, &made.promise),
                   "pirn_promise_new");
    print_growth("size/promise", before);
}

static void give_up_all(void)
{
    pirn_mpsc_sender_unref(made.mpsc_sender);
    pirn_mpsc_receiver_free(made.mpsc_receiver);
    pirn_mpmc_sender_unref(made.mpmc_sender);
    pirn_mpmc_receiver_unref(made.mpmc_receiver);
    pirn_broadcast_sender_unref(made.broadcast_sender);
    pirn_broadcast_receiver_free(made.broadcast_receiver);
    pirn_watch_sender_unref(made.watch_sender);
    pirn_watch_receiver_free(made.watch_receiver);
    pirn_oneshot_sender_free(made.oneshot_sender);
    pirn_oneshot_receiver_free(made.oneshot_receiver);
    pirn_promise_unref(made.promise);
}

int main(void)
{
    print_types();
    print_queues();
    print_single();
    give_up_all();
    return 0;
}
