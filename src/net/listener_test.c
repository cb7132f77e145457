/* SPDX-License-Identifier: MIT */
/* src/net/listener_test.c - listening, accepting, and running out of
 * descriptors, on a clock that the test moves.
 */
#include <stdlib.h>

#include <pirn/runtime.h>
#include <pirn/time.h>

#include "engine/one_thread.h"
#include "engine/socket_peer.h"
#include "sys/sys.h"

static pirn_listener *open_listener(uint16_t *port)
{
    pirn_listener *listener = NULL;
    pirn_addr address;

    EXPECT_EQ(0, pirn_listener_open("127.0.0.1:0", NULL, &listener));
    pirn_listener_address(listener, &address);
    *port = pirn_addr_port(&address);
    return listener;
}

/* Goal: what cannot be listened on is refused, and leaves no descriptor.
 * Method: bad texts, a negative backlog, an address that is taken or not ours. */
TEST(listener_open_of_nonsense_is_refused)
{
    const pirn_listen_options negative = {.backlog = -1};
    const pirn_listen_options strict = {.no_reuse_addr = true};
    pirn_listener *listener, *second = (pirn_listener *)8;
    char text[PIRN_ADDR_SIZE];
    uint16_t port;
    int before = dup(0);

    close(before);
    EXPECT_EQ(-EINVAL, pirn_listener_open("127.0.0.1:0", NULL, NULL));
    EXPECT_EQ(-EINVAL, pirn_listener_open(NULL, NULL, &second));
    EXPECT_PTR_EQ(NULL, second);
    EXPECT_EQ(-EINVAL, pirn_listener_open("anywhere", NULL, &second));
    EXPECT_EQ(-EINVAL, pirn_listener_open("127.0.0.1:0", &negative, &second));
    EXPECT_EQ(-EADDRNOTAVAIL, pirn_listener_open("192.0.2.1:0", NULL, &second));
    listener = open_listener(&port);
    EXPECT_EQ(-EADDRINUSE,
              pirn_listener_open(peer_text(text, port), &strict, &second));
    EXPECT_PTR_EQ(NULL, second);
    pirn_listener_close(listener);
    pirn_listener_close(NULL);
    pirn_listener_unref(NULL);
    EXPECT_EQ(before, dup(0));
    close(before);
}

/* Goal: two listeners share a port if both ask for it.
 * Method: reuse_port on both. */
TEST(listener_reuse_port_is_shared)
{
    const pirn_listen_options shared = {.reuse_port = true, .backlog = 8};
    pirn_listener *a = NULL, *b = NULL;
    pirn_addr address;
    char text[PIRN_ADDR_SIZE];

    EXPECT_EQ(0, pirn_listener_open("127.0.0.1:0", &shared, &a));
    pirn_listener_address(a, &address);
    EXPECT_EQ(0,
              pirn_listener_open(pirn_addr_format(&address, text, sizeof text),
                                 &shared, &b));
    pirn_listener_close(a);
    pirn_listener_close(b);
}

/* Errors of single connections. */

static struct pirn__sys table;
static int accepts;
static int failures; /* how many more */
static int failure;

static int failing_accept(int fd, struct sockaddr *address, unsigned *len)
{
    accepts++;
    if (failures > 0) {
        failures--;
        return failure;
    }
    return pirn__sys_linux.accept(fd, address, len);
}

static void begin_failing(int count, int code)
{
    table = pirn__sys_linux;
    table.accept = failing_accept;
    accepts = 0;
    failures = count;
    failure = code;
    pirn__sys = &table;
}

static void end_failing(void)
{
    pirn__sys = &pirn__sys_linux;
}

static int accept_past_errors(void *arg)
{
    const int codes[] = {-ECONNABORTED, -EPROTO,       -EPERM,      -ENETDOWN,
                         -EHOSTDOWN,    -EHOSTUNREACH, -ENETUNREACH};
    uint16_t port;
    pirn_listener *listener = open_listener(&port);

    (void)arg;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        int peer = peer_connect(port);
        pirn_tcp *conn = NULL;

        begin_failing(3, codes[i]);
        EXPECT_EQ(0, pirn_listener_accept(listener, PIRN_NEVER, &conn));
        end_failing();
        EXPECT_EQ(4, accepts);
        pirn_tcp_close(conn);
        close(peer);
    }
    EXPECT_EQ(0u, pirn_listener_pauses(listener));
    pirn_listener_close(listener);
    return 0;
}

/* Goal: connections that died are passed over.
 * Method: accept fails three times with each error of that kind. */
TEST(listener_passes_over_dead_connections)
{
    EXPECT_EQ(0, run_on_one_thread(accept_past_errors, NULL));
}

static int accept_other_error(void *arg)
{
    uint16_t port;
    pirn_listener *listener = open_listener(&port);
    pirn_tcp *conn = (pirn_tcp *)8;

    (void)arg;
    begin_failing(1, -EINVAL);
    EXPECT_EQ(-EINVAL, pirn_listener_accept(listener, PIRN_NEVER, &conn));
    end_failing();
    EXPECT_PTR_EQ(NULL, conn);
    EXPECT_EQ(-EINVAL, pirn_listener_accept(NULL, PIRN_NEVER, &conn));
    EXPECT_EQ(-EINVAL, pirn_listener_accept(listener, PIRN_NEVER, NULL));
    EXPECT_EQ(-ETIMEDOUT, pirn_listener_accept(listener, PIRN_EXPIRED, &conn));
    pirn_listener_close(listener);
    return 0;
}

/* Goal: any other error is the caller's, as is nonsense.
 * Method: accept fails once with EINVAL. */
TEST(listener_other_errors_reach_the_caller)
{
    EXPECT_EQ(0, run_on_one_thread(accept_other_error, NULL));
}

/* Shortage. */

struct shortage {
    pirn_runtime *rt;
    pirn_listener *listener;
    uint16_t port;
    int peer;
    pirn_tcp *conn;
    int rc;
    bool done;
};

static int accept_one(void *arg)
{
    struct shortage *shortage = arg;

    shortage->rc =
        pirn_listener_accept(shortage->listener, PIRN_NEVER, &shortage->conn);
    shortage->done = true;
    return 0;
}

static void turn(struct shortage *shortage)
{
    for (int i = 0; i < 3; i++)
        EXPECT_GE(pirn_runtime_turn(shortage->rt, PIRN_NEVER), 0);
}

static void advance_ms(struct shortage *shortage, uint64_t ms)
{
    EXPECT_EQ(0, pirn_runtime_clock_advance(shortage->rt, ms * 1000000));
    turn(shortage);
}

/* A fiber in accept, with a connection that waits for it and `count` failures
 * in its way; the clock stands. */
static void shortage_open(struct shortage *shortage, int count, int code)
{
    const pirn_spawn_options options = {0};
    pirn_runtime *outer;

    *shortage = (struct shortage){0};
    EXPECT_EQ(0, pirn_runtime_new(NULL, &shortage->rt));
    EXPECT_EQ(0, pirn_runtime_clock_pause(shortage->rt));
    outer = pirn_runtime_enter(shortage->rt);
    shortage->listener = open_listener(&shortage->port);
    shortage->peer = peer_connect(shortage->port);
    begin_failing(count, code);
    EXPECT_EQ(0, pirn_go_with(accept_one, shortage, &options, NULL));
    turn(shortage);
    (void)pirn_runtime_enter(outer);
}

static void shortage_close(struct shortage *shortage)
{
    end_failing();
    EXPECT(shortage->done);
    pirn_tcp_close(shortage->conn);
    pirn_listener_close(shortage->listener);
    close(shortage->peer);
    EXPECT_EQ(0, pirn_runtime_shutdown(shortage->rt, PIRN_NEVER, NULL));
    pirn_runtime_unref(shortage->rt);
}

/* Goal: a shortage pauses accepting, 5 ms first and twice as long each time,
 * without an attempt in between, and ends by itself.
 * Method: three failures of each kind; move the clock to just before and onto
 * each end. */
TEST(listener_shortage_backs_off_and_recovers)
{
    const int codes[] = {-EMFILE, -ENFILE, -ENOBUFS, -ENOMEM};

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        struct shortage shortage;

        shortage_open(&shortage, 3, codes[i]);
        EXPECT_EQ(1, accepts);
        advance_ms(&shortage, 4);
        EXPECT_EQ(1, accepts);
        advance_ms(&shortage, 2);
        EXPECT_EQ(2, accepts);
        advance_ms(&shortage, 9);
        EXPECT_EQ(2, accepts);
        advance_ms(&shortage, 2);
        EXPECT_EQ(3, accepts);
        EXPECT(!shortage.done);
        advance_ms(&shortage, 21);
        EXPECT_EQ(4, accepts);
        EXPECT_EQ(0, shortage.rc);
        EXPECT_EQ(3u, pirn_listener_pauses(shortage.listener));
        shortage_close(&shortage);
    }
}

/* Goal: connections that come during a pause do not end it.
 * Method: connect while the clock stands. */
TEST(listener_paused_ignores_new_connections)
{
    struct shortage shortage;
    int others[3];

    shortage_open(&shortage, 1, -EMFILE);
    for (int i = 0; i < 3; i++) {
        others[i] = peer_connect(shortage.port);
        turn(&shortage);
    }
    EXPECT_EQ(1, accepts);
    EXPECT(!shortage.done);
    advance_ms(&shortage, 6);
    EXPECT_EQ(2, accepts);
    for (int i = 0; i < 3; i++)
        close(others[i]);
    shortage_close(&shortage);
}

/* Goal: a pause never lasts longer than a second.
 * Method: many failures; each second brings one attempt. */
TEST(listener_pause_is_at_most_a_second)
{
    struct shortage shortage;
    int before;

    shortage_open(&shortage, 1000, -EMFILE);
    for (int i = 0; i < 12; i++)
        advance_ms(&shortage, 1001);
    before = accepts;
    advance_ms(&shortage, 1001);
    EXPECT_EQ(before + 1, accepts);
    failures = 0;
    advance_ms(&shortage, 1001);
    EXPECT_EQ(before + 2, accepts);
    shortage_close(&shortage);
}

/* Goal: a descriptor of the library that is closed ends the pause at once.
 * Method: close a pirn_fd while the clock stands. */
TEST(listener_pause_ends_when_a_descriptor_is_closed)
{
    struct shortage shortage;
    pirn_fd *file;
    int fds[2];

    EXPECT_EQ(0, pipe(fds));
    EXPECT_EQ(0, pirn_fd_adopt(fds[0], &file));
    shortage_open(&shortage, 1, -EMFILE);
    EXPECT(!shortage.done);
    pirn_fd_close(file);
    turn(&shortage);
    EXPECT_EQ(2, accepts);
    close(fds[1]);
    shortage_close(&shortage);
}

/* Goal: closing a paused listener ends its waiter at once.
 * Method: close it with a second handle while the clock stands. */
TEST(listener_closed_while_paused_answers_eclosed)
{
    struct shortage shortage;

    shortage_open(&shortage, 1, -EMFILE);
    (void)pirn_listener_ref(shortage.listener);
    pirn_listener_close(shortage.listener);
    turn(&shortage);
    EXPECT(shortage.done);
    EXPECT_EQ(PIRN_ECLOSED, shortage.rc);
    EXPECT_EQ(1, accepts);
    pirn_listener_unref(shortage.listener);
    shortage.listener = NULL;
    shortage_close(&shortage);
}

/* Goal: a runtime that ends while its listener is paused takes the timer along.
 * Method: shut down; the listener is still usable on the plain thread. */
TEST(listener_paused_survives_its_runtime)
{
    struct shortage shortage;

    shortage_open(&shortage, 1, -EMFILE);
    EXPECT_EQ(0, pirn_runtime_shutdown(shortage.rt, PIRN_NEVER, NULL));
    EXPECT(shortage.done);
    EXPECT_EQ(-ECANCELED, shortage.rc);
    EXPECT_EQ(
        0, pirn_listener_accept(shortage.listener, PIRN_NEVER, &shortage.conn));
    shortage_close(&shortage);
}

/* Goal: without a runtime the future answers with the error, as documented.
 * Method: await it on the plain thread. */
TEST(listener_shortage_without_runtime_is_the_futures_result)
{
    uint16_t port;
    pirn_listener *listener = open_listener(&port);
    pirn_accept_op op;

    begin_failing(1, -EMFILE);
    pirn_accept_init(&op, listener);
    EXPECT_EQ(0, pirn_await(&op.future, PIRN_NEVER));
    EXPECT_EQ(-EMFILE, op.rc);
    end_failing();
    pirn_listener_close(listener);
}

/* Goal: without a runtime the call pauses by itself, up to its deadline.
 * Method: an expired deadline, then one failure and a connection. */
TEST(listener_shortage_without_runtime_pauses_the_call)
{
    uint16_t port;
    pirn_listener *listener = open_listener(&port);
    pirn_tcp *conn = NULL;
    int peer = peer_connect(port);

    begin_failing(2, -EMFILE);
    EXPECT_EQ(-ETIMEDOUT, pirn_listener_accept(listener, PIRN_EXPIRED, &conn));
    EXPECT_EQ(0, pirn_listener_accept(listener, PIRN_NEVER, &conn));
    EXPECT_EQ(3, accepts);
    EXPECT_EQ(2u, pirn_listener_pauses(listener));
    end_failing();
    pirn_tcp_close(conn);
    pirn_listener_close(listener);
    close(peer);
}

/* Goal: an accepted connection without a taker is closed.
 * Method: discard; the peer sees the end. */
TEST(listener_discarded_accept_closes_the_connection)
{
    uint16_t port;
    pirn_listener *listener = open_listener(&port);
    int peer = peer_connect(port);
    pirn_accept_op op;
    char byte;

    pirn_accept_init(&op, listener);
    EXPECT_EQ(0, pirn_await(&op.future, PIRN_NEVER));
    EXPECT_EQ(0, op.rc);
    pirn_future_discard(&op.future);
    EXPECT_EQ(0, recv(peer, &byte, 1, 0));
    close(peer);
    pirn_listener_close(listener);
}

/* Memory. */

struct refusal {
    pirn_alloc alloc;
    bool refuses;
};

static void *refusing_take(void *ctx, size_t size, size_t align)
{
    struct refusal *refusal = ctx;

    if (refusal->refuses)
        return NULL;
    return aligned_alloc(align, (size + align - 1) / align * align);
}

static void refusing_give(void *ctx, void *memory, size_t size, size_t align)
{
    (void)ctx;
    (void)size;
    (void)align;
    free(memory);
}

static int make_without_memory(void *arg)
{
    struct refusal *refusal = arg;
    uint16_t port;
    pirn_listener *listener = open_listener(&port);
    pirn_listener *none_listener;
    pirn_tcp *conn, *none;
    pirn_fd *none_file;
    char text[PIRN_ADDR_SIZE];
    char byte;
    int before = dup(0);
    int fds[2];
    int peer;

    close(before);
    peer_pair(fds);
    peer = peer_connect(port);
    refusal->refuses = true;
    EXPECT_EQ(-ENOMEM, pirn_listener_accept(listener, PIRN_NEVER, &none));
    EXPECT_PTR_EQ(NULL, none);
    EXPECT_EQ(-ENOMEM, pirn_listener_open("127.0.0.1:0", NULL, &none_listener));
    EXPECT_EQ(-ENOMEM, pirn_tcp_adopt(fds[0], &none));
    EXPECT_EQ(-ENOMEM, pirn_fd_adopt(fds[0], &none_file));
    EXPECT_EQ(0, fcntl(fds[0], F_GETFL) & O_NONBLOCK);
    EXPECT_EQ(-ENOMEM,
              pirn_tcp_connect(peer_text(text, port), NULL, PIRN_NEVER, &none));
    EXPECT_PTR_EQ(NULL, none);
    refusal->refuses = false;
    /* The one that could not be taken in was closed; the next one is served. */
    EXPECT_EQ(0, recv(peer, &byte, 1, 0));
    close(peer);
    close(fds[0]);
    close(fds[1]);
    while (pirn_listener_accept(listener, PIRN_EXPIRED, &conn) == 0)
        pirn_tcp_close(conn);
    EXPECT_EQ(before, dup(0));
    close(before);
    EXPECT_EQ(0u, pirn_listener_pauses(listener));
    pirn_listener_close(listener);
    return 0;
}

/* Goal: without memory nothing is made, nothing leaks, and what was given stays
 * the caller's.
 * Method: an allocator that refuses, under every call that makes an object. */
TEST(listener_and_kin_without_memory_answer_enomem)
{
    struct refusal refusal = {{refusing_take, refusing_give, NULL, &refusal},
                              false};
    const pirn_runtime_options options = {.alloc = &refusal.alloc};

    EXPECT_EQ(0, pirn_run_with(make_without_memory, &refusal, &options, NULL));
}
