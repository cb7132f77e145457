/* SPDX-License-Identifier: MIT */
/* bench/peers/peer_uv.c - the libuv side of the comparison: one loop on one
 * thread, callbacks.  It has no tasks, so it has the rows of timers, wakes and
 * servers only.  Its timers count in milliseconds.
 */
#define _GNU_SOURCE
#include "peer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

static uv_loop_t *loop;

static void nothing(uv_timer_t *timer)
{
    (void)timer;
}

/* Insert and cancel. */

static void arm(uv_timer_t *timer, uint64_t *random)
{
    uint64_t hour_ms = 3600 * 1000;

    uv_timer_start(timer, nothing, 600000 + peer_draw(random) % hour_ms, 0);
}

static void churn_timers(const char *name, uint64_t live, bool in_order)
{
    uint64_t rounds = peer_scale(200000, PEER_MILLION);
    uv_timer_t *timers = calloc(live, sizeof *timers);
    struct peer_churn churn = {peer_seed(), 0, live, in_order};

    peer_require(timers != NULL, "calloc");
    for (uint64_t i = 0; i < live; i++) {
        uv_timer_init(loop, &timers[i]);
        arm(&timers[i], &churn.random);
    }
    for (unsigned sample = 0; sample <= peer_options.samples; sample++) {
        uint64_t begin_ns = peer_cpu_ns();

        for (uint64_t i = 0; i < rounds; i++) {
            uv_timer_t *timer = &timers[peer_pick(&churn)];

            uv_timer_stop(timer);
            arm(timer, &churn.random);
        }
        if (sample > 0)
            peer_print(name, "ns",
                       (double)(peer_cpu_ns() - begin_ns) / (double)rounds);
    }
}

static void churn_one(void)
{
    churn_timers("timer_1", 1, true);
}

static void churn_in_order(void)
{
    churn_timers("timer_1m_in_order", PEER_MILLION, true);
}

static void churn_random(void)
{
    churn_timers("timer_1m_random", PEER_MILLION, false);
}

/* Lateness. */

struct late {
    uv_timer_t timer;
    uint64_t until_ns;
    uint64_t late_ns;
};

static void note_lateness(uv_timer_t *timer)
{
    struct late *late = timer->data;

    late->late_ns = peer_now_ns() - late->until_ns;
}

/* libuv counts from the loop's time in whole milliseconds; the next one is
 * asked for, since an earlier one would be early. */
static void start_late(struct late *late, uint64_t base_ns, uint64_t span_ns)
{
    uint64_t until_ms;

    late->until_ns = base_ns + span_ns;
    until_ms = (late->until_ns + 999999) / 1000000;
    late->timer.data = late;
    uv_timer_init(loop, &late->timer);
    uv_timer_start(&late->timer, note_lateness, until_ms - uv_now(loop), 0);
}

static void measure_lateness(void)
{
    size_t count = peer_scale(20000, 100000);
    struct late *lates = calloc(count, sizeof *lates);
    uint64_t *values = calloc(count, sizeof *values);

    peer_require(lates != NULL && values != NULL, "calloc");
    for (unsigned sample = 0; sample <= peer_options.samples; sample++) {
        uint64_t random = peer_seed();
        uint64_t cpu_ns = peer_cpu_ns();
        uint64_t base_ns = peer_now_ns() + 1000000000u;

        uv_update_time(loop);
        for (size_t i = 0; i < count; i++)
            start_late(&lates[i], base_ns, peer_draw(&random) % 1000000000u);
        uv_run(loop, UV_RUN_DEFAULT);
        cpu_ns = peer_cpu_ns() - cpu_ns;
        for (size_t i = 0; i < count; i++)
            values[i] = lates[i].late_ns;
        if (sample > 0) {
            peer_print_percentiles("timer_late", values, count);
            peer_print("timer_late_cpu", "ns", (double)cpu_ns / (double)count);
        }
        for (size_t i = 0; i < count; i++)
            uv_close((uv_handle_t *)&lates[i].timer, NULL);
        uv_run(loop, UV_RUN_DEFAULT);
    }
}

/* Wake. */

static struct {
    uv_async_t async;
    size_t count;
    uint64_t *latencies;
    _Atomic uint64_t sent_ns;
    _Atomic size_t received;
} wakes;

static void receive_wake(uv_async_t *async)
{
    size_t i = atomic_load(&wakes.received);

    wakes.latencies[i] = peer_now_ns() - atomic_load(&wakes.sent_ns);
    atomic_store(&wakes.received, i + 1);
    if (i + 1 == wakes.count)
        uv_close((uv_handle_t *)async, NULL);
}

static void *send_wakes(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < wakes.count; i++) {
        do {
            peer_sleep_until(peer_now_ns() + 200000);
        } while (atomic_load(&wakes.received) < i);
        atomic_store(&wakes.sent_ns, peer_now_ns());
        uv_async_send(&wakes.async);
    }
    return NULL;
}

static void measure_wakes(void)
{
    pthread_t sender;

    wakes.count = peer_scale(500, 2000);
    wakes.latencies = calloc(wakes.count, sizeof *wakes.latencies);
    for (unsigned sample = 0; sample <= peer_options.samples; sample++) {
        atomic_store(&wakes.received, 0);
        uv_async_init(loop, &wakes.async, receive_wake);
        peer_require(pthread_create(&sender, NULL, send_wakes, NULL) == 0,
                     "pthread_create");
        uv_run(loop, UV_RUN_DEFAULT);
        pthread_join(sender, NULL);
        if (sample > 0)
            peer_print_percentiles("wake", wakes.latencies, wakes.count);
    }
}

/* Servers. */

struct session {
    uv_tcp_t tcp;
    uv_write_t write;
    size_t filled;
    char buf[4096];
};

static bool serves_hello;

static void free_session(uv_handle_t *handle)
{
    free(handle->data);
}

static void close_session(struct session *session)
{
    if (!uv_is_closing((uv_handle_t *)&session->tcp))
        uv_close((uv_handle_t *)&session->tcp, free_session);
}

static void give_room(uv_handle_t *handle, size_t hint, uv_buf_t *buf)
{
    struct session *session = handle->data;

    (void)hint;
    *buf = uv_buf_init(session->buf + session->filled,
                       (unsigned)(sizeof session->buf - session->filled));
}

static void end_write(uv_write_t *write, int rc)
{
    if (rc < 0)
        close_session(write->handle->data);
}

/* uv_try_write() first: what libuv offers to those who know that it mostly
 * succeeds. */
static void answer(struct session *session, const char *text, size_t size)
{
    uv_buf_t buf = uv_buf_init((char *)(uintptr_t)text, (unsigned)size);
    int n = uv_try_write((uv_stream_t *)&session->tcp, &buf, 1);

    if (n == (int)size)
        return;
    if (n < 0 && n != UV_EAGAIN) {
        close_session(session);
        return;
    }
    if (n > 0)
        buf = uv_buf_init(buf.base + n, (unsigned)(size - (size_t)n));
    if (uv_write(&session->write, (uv_stream_t *)&session->tcp, &buf, 1,
                 end_write) < 0)
        close_session(session);
}

static void take_input(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct session *session = stream->data;

    (void)buf;
    if (n < 0 || session->filled + (size_t)n == sizeof session->buf) {
        close_session(session);
    } else if (!serves_hello) {
        answer(session, session->buf, (size_t)n);
    } else {
        session->filled += (size_t)n;
        if (!peer_request_ends(session->buf, session->filled))
            return;
        session->filled = 0;
        answer(session, peer_response, peer_response_size);
    }
}

static void accept_one(uv_stream_t *listener, int rc)
{
    struct session *session = calloc(1, sizeof *session);

    peer_require(rc == 0 && session != NULL, "accept");
    uv_tcp_init(loop, &session->tcp);
    session->tcp.data = session;
    if (uv_accept(listener, (uv_stream_t *)&session->tcp) < 0 ||
        uv_read_start((uv_stream_t *)&session->tcp, give_room, take_input) < 0)
        close_session(session);
}

static void serve(void)
{
    static uv_tcp_t listener;

    uv_tcp_init(loop, &listener);
    peer_require(uv_tcp_open(&listener, peer_listen()) == 0, "uv_tcp_open");
    peer_require(uv_listen((uv_stream_t *)&listener, 1024, accept_one) == 0,
                 "uv_listen");
    uv_run(loop, UV_RUN_DEFAULT);
}

static void serve_hello(void)
{
    serves_hello = true;
    serve();
}

int main(int argc, char **argv)
{
    static const struct peer_row rows[] = {
        {"timer_1", churn_one},
        {"timer_1m_in_order", churn_in_order},
        {"timer_1m_random", churn_random},
        {"timer_late", measure_lateness},
        {"wake", measure_wakes},
        {"echo", serve},
        {"hello", serve_hello},
        {NULL, NULL},
    };

    loop = uv_default_loop();
    return peer_main(argc, argv, rows);
}
