/* SPDX-License-Identifier: MIT */
/* src/net/stream_test.c - reading and writing in all forms, and how many system
 * calls they make.  How the same operations behave in fibers, as futures and on
 * plain threads is in tests/conformance.
 */
#include <stdlib.h>
#include <sys/uio.h>

#include <pirn/runtime.h>

#include "base/atomic.h"
#include "engine/one_thread.h"
#include "engine/socket_peer.h"
#include "sys/sys.h"

/* Counting. */

static struct pirn__sys table;
static int recvs;
static int sends;
static int sends_of_more;
static int polls;

static ssize_t counting_recv(int fd, void *buf, size_t len)
{
    recvs++;
    return pirn__sys_linux.recv(fd, buf, len);
}

static ssize_t counting_send(int fd, const void *buf, size_t len)
{
    sends++;
    return pirn__sys_linux.send(fd, buf, len);
}

static ssize_t counting_send_more(int fd, const void *buf, size_t len)
{
    sends_of_more++;
    return pirn__sys_linux.send_more(fd, buf, len);
}

static int counting_poll(struct pollfd *fds, int count, pirn_deadline deadline)
{
    polls++;
    return pirn__sys_linux.poll(fds, count, deadline);
}

static void begin_count(void)
{
    table = pirn__sys_linux;
    table.recv = counting_recv;
    table.send = counting_send;
    table.send_more = counting_send_more;
    table.poll = counting_poll;
    recvs = 0;
    sends = 0;
    sends_of_more = 0;
    polls = 0;
    pirn__sys = &table;
}

static void end_count(void)
{
    pirn__sys = &pirn__sys_linux;
}

/* Runs a fiber with a connection and its peer. */
struct pair {
    pirn_tcp *conn;
    int peer;
};

static void run_with_pair(pirn_fiber_fn *fn)
{
    struct pair pair;

    EXPECT_EQ(0, run_on_one_thread(fn, &pair));
}

static void open_pair(struct pair *pair)
{
    pair->conn = peer_adopted(&pair->peer);
}

static void close_pair(struct pair *pair)
{
    pirn_tcp_close(pair->conn);
    close(pair->peer);
}

/* A fiber that plays the client. */
static int send_pings(void *arg)
{
    struct pair *pair = arg;

    for (int i = 0; i < 10; i++) {
        peer_send(pair->peer, "ping", 4);
        EXPECT_EQ(0, pirn_yield());
        EXPECT_EQ(0, pirn_yield());
        peer_expect(pair->peer, "pong");
    }
    EXPECT_EQ(0, shutdown(pair->peer, SHUT_WR));
    return 0;
}

static int answer_pings(void *arg)
{
    struct pair *pair = arg;
    char buf[64];
    ssize_t n;

    open_pair(pair);
    EXPECT_EQ(0, pirn_go(send_pings, pair));
    begin_count();
    while ((n = pirn_tcp_read(pair->conn, buf, sizeof buf, PIRN_NEVER)) > 0) {
        EXPECT_EQ(4, n);
        EXPECT_EQ(0, pirn_tcp_write_all(pair->conn, "pong", 4, PIRN_NEVER));
    }
    end_count();
    EXPECT_EQ(0, n);
    /* One more each for the first look and for the end of the stream. */
    EXPECT_LE(recvs, 12);
    EXPECT_EQ(10, sends);
    close_pair(pair);
    return 0;
}

/* Goal: a request and its answer cost one read and one write.
 * Method: ten of each, counted. */
TEST(stream_request_costs_one_read_and_one_write)
{
    run_with_pair(answer_pings);
}

static int read_urgent(void *arg)
{
    struct pair *pair = arg;
    char buf[16] = "";
    size_t got = 0;
    ssize_t n;

    open_pair(pair);
    /* The first read takes the assumption away, so that the event comes. */
    EXPECT_EQ(-ETIMEDOUT,
              pirn_tcp_read(pair->conn, buf, sizeof buf, PIRN_EXPIRED));
    peer_send(pair->peer, "abc", 3);
    EXPECT_EQ(1, send(pair->peer, "!", 1, MSG_OOB));
    peer_send(pair->peer, "def", 3);
    while (got < 6) {
        n = pirn_tcp_read(pair->conn, buf + got, sizeof buf - got, PIRN_NEVER);
        EXPECT_GE(n, 1);
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    EXPECT_STR_EQ("abcdef", buf);
    EXPECT_EQ(-ETIMEDOUT,
              pirn_tcp_read(pair->conn, buf, sizeof buf, PIRN_EXPIRED));
    close_pair(pair);
    return 0;
}

/* Goal: a read that is short because it stopped at an urgent byte does not hide
 * what stands behind it.
 * Method: data, urgent byte, data; all of it must come without further
 * events. */
TEST(stream_short_read_at_urgent_byte_is_not_the_end)
{
    run_with_pair(read_urgent);
}

static int read_to_end(void *arg)
{
    struct pair *pair = arg;
    char buf[16];

    open_pair(pair);
    EXPECT_EQ(-ETIMEDOUT,
              pirn_tcp_read(pair->conn, buf, sizeof buf, PIRN_EXPIRED));
    peer_send(pair->peer, "last", 4);
    EXPECT_EQ(0, shutdown(pair->peer, SHUT_WR));
    EXPECT_EQ(4, pirn_tcp_read(pair->conn, buf, sizeof buf, PIRN_NEVER));
    EXPECT_EQ(0, pirn_tcp_read(pair->conn, buf, sizeof buf, PIRN_NEVER));
    EXPECT_EQ(0, pirn_tcp_read(pair->conn, buf, sizeof buf, PIRN_NEVER));
    EXPECT_EQ(5, pirn_tcp_write(pair->conn, "still", 5, PIRN_NEVER));
    peer_expect(pair->peer, "still");
    close_pair(pair);
    return 0;
}

/* Goal: the end of the stream stands behind the data, lasts, and leaves writing
 * alone.
 * Method: data and end arrive as one event. */
TEST(stream_end_comes_after_the_data_and_stays)
{
    run_with_pair(read_to_end);
}

static int be_reset(void *arg)
{
    struct pair *pair = arg;
    char buf[4];

    open_pair(pair);
    EXPECT_EQ(-ETIMEDOUT,
              pirn_tcp_read(pair->conn, buf, sizeof buf, PIRN_EXPIRED));
    peer_reset(pair->peer);
    EXPECT_EQ(-ECONNRESET,
              pirn_tcp_read(pair->conn, buf, sizeof buf, PIRN_NEVER));
    EXPECT_EQ(-EPIPE, pirn_tcp_write(pair->conn, "x", 1, PIRN_NEVER));
    pirn_tcp_close(pair->conn);
    return 0;
}

/* Goal: a reset is an error of the read, and no signal.
 * Method: the peer resets while a fiber waits; SIGPIPE has its default
 * disposition. */
TEST(stream_reset_by_peer_is_an_error_not_a_signal)
{
    run_with_pair(be_reset);
}

/* Vectors and buffers. */

static int move_vectors(void *arg)
{
    struct pair *pair = arg;
    char a[2], b[3];
    const struct iovec in[] = {{a, 2}, {b, 3}};
    const struct iovec out[] = {{"he", 2}, {"llo", 3}};
    const struct iovec huge[] = {{a, SIZE_MAX / 2}, {b, SIZE_MAX / 2}};

    open_pair(pair);
    EXPECT_EQ(5, pirn_tcp_writev(pair->conn, out, 2, PIRN_NEVER));
    peer_expect(pair->peer, "hello");
    peer_send(pair->peer, "world", 5);
    EXPECT_EQ(5, pirn_tcp_readv(pair->conn, in, 2, PIRN_NEVER));
    EXPECT_EQ(0, memcmp(a, "wo", 2));
    EXPECT_EQ(0, memcmp(b, "rld", 3));
    EXPECT_EQ(0, pirn_tcp_readv(pair->conn, in, 0, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, pirn_tcp_readv(pair->conn, in, -1, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, pirn_tcp_readv(pair->conn, in, 1025, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, pirn_tcp_readv(pair->conn, NULL, 1, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, pirn_tcp_readv(NULL, in, 2, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, pirn_tcp_readv(pair->conn, huge, 2, PIRN_NEVER));
    close_pair(pair);
    return 0;
}

/* Goal: vectors are filled and sent in order, and nonsense is refused.
 * Method: two pieces each way. */
TEST(stream_vectors_keep_their_order)
{
    run_with_pair(move_vectors);
}

static int fill_buffer(void *arg)
{
    struct pair *pair = arg;
    pirn_buf *buf;

    open_pair(pair);
    EXPECT_EQ(0, pirn_buf_new(5, &buf));
    peer_send(pair->peer, "abcdefg", 7);
    pirn_buf_set_len(buf, 1);
    EXPECT_EQ(4, pirn_tcp_read_buf(pair->conn, buf, PIRN_NEVER));
    EXPECT_EQ(5u, pirn_buf_len(buf));
    EXPECT_EQ(0, memcmp(pirn_buf_data(buf) + 1, "abcd", 4));
    EXPECT_EQ(-ENOBUFS, pirn_tcp_read_buf(pair->conn, buf, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, pirn_tcp_read_buf(pair->conn, NULL, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, pirn_tcp_read_buf(NULL, buf, PIRN_NEVER));
    pirn_buf_unref(buf);
    close_pair(pair);
    return 0;
}

/* Goal: a counted buffer is filled behind what it holds, up to its end.
 * Method: five bytes of room, one used. */
TEST(stream_read_buf_appends_until_full)
{
    run_with_pair(fill_buffer);
}

/* Exact forms. */

static int read_exactly(void *arg)
{
    struct pair *pair = arg;
    char buf[8] = "";

    open_pair(pair);
    peer_send(pair->peer, "ab", 2);
    EXPECT_EQ(-ETIMEDOUT,
              pirn_tcp_read_exact(pair->conn, buf, 4, PIRN_EXPIRED));
    peer_send(pair->peer, "cdef", 4);
    EXPECT_EQ(0, pirn_tcp_read_exact(pair->conn, buf, 3, PIRN_NEVER));
    EXPECT_EQ(0, memcmp(buf, "cde", 3));
    EXPECT_EQ(0, shutdown(pair->peer, SHUT_WR));
    EXPECT_EQ(PIRN_EEOF, pirn_tcp_read_exact(pair->conn, buf, 2, PIRN_NEVER));
    EXPECT_EQ(0, pirn_tcp_read_exact(pair->conn, buf, 0, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, pirn_tcp_read_exact(pair->conn, NULL, 2, PIRN_NEVER));
    close_pair(pair);
    return 0;
}

/* Goal: read_exact returns only the whole, and an early end is an error.
 * Method: in pieces; what an expired wait had taken is lost, as documented. */
TEST(stream_read_exact_is_all_or_an_error)
{
    run_with_pair(read_exactly);
}

enum { LARGE = 4 * 1024 * 1024 };

/* Read everything on a thread's worth of patience: from a fiber that yields. */
static int drain_peer(void *arg)
{
    struct pair *pair = arg;
    static char buf[256 * 1024];
    size_t total = 0;

    EXPECT_EQ(0, fcntl(pair->peer, F_SETFL, O_NONBLOCK));
    while (total < LARGE) {
        ssize_t n = recv(pair->peer, buf, sizeof buf, 0);

        if (n == 0)
            break;
        if (n > 0)
            total += (size_t)n;
        EXPECT_EQ(0, pirn_yield());
    }
    EXPECT_EQ(LARGE, total);
    return 0;
}

static int write_much(void *arg)
{
    struct pair *pair = arg;
    char *data = calloc(1, LARGE);
    pirn_task *task;
    int outcome;

    open_pair(pair);
    EXPECT_EQ(0, pirn_go_with(drain_peer, pair, NULL, &task));
    EXPECT_EQ(0, pirn_tcp_write_all(pair->conn, data, LARGE, PIRN_NEVER));
    EXPECT_EQ(0, pirn_task_join(task, PIRN_NEVER, &outcome));
    pirn_task_unref(task);
    free(data);
    close_pair(pair);
    return 0;
}

/* Goal: write_all sends what is larger than every buffer on the way.
 * Method: 4 MB against a reader that takes its time. */
TEST(stream_write_all_outlasts_full_buffers)
{
    run_with_pair(write_much);
}

/* Two writers of one connection. */

static int write_block(void *arg)
{
    struct pair *pair = arg;
    static PIRN_ATOMIC(int) next;
    enum { BLOCK = 3 * 1024 * 1024 };
    /* relaxed: one thread. */
    int letter = 'a' + pirn__add(&next, 1, relaxed) % 2;
    char *data = malloc(BLOCK);

    memset(data, letter, BLOCK);
    EXPECT_EQ(0, pirn_tcp_write_all(pair->conn, data, BLOCK, PIRN_NEVER));
    free(data);
    return 0;
}

static int read_blocks(void *arg)
{
    struct pair *pair = arg;
    static char buf[64 * 1024];
    int changes = 0;
    char last = 0;
    size_t total = 0;

    open_pair(pair);
    EXPECT_EQ(0, pirn_go(write_block, pair));
    EXPECT_EQ(0, pirn_go(write_block, pair));
    EXPECT_EQ(0, fcntl(pair->peer, F_SETFL, O_NONBLOCK));
    while (total < 6 * 1024 * 1024) {
        ssize_t n = recv(pair->peer, buf, sizeof buf, 0);

        for (ssize_t i = 0; i < n; i++) {
            changes += buf[i] != last;
            last = buf[i];
        }
        total += n > 0 ? (size_t)n : 0;
        EXPECT_EQ(0, pirn_yield());
    }
    EXPECT_EQ(2, changes);
    close_pair(pair);
    return 0;
}

/* Goal: two write_all of one connection are served one after the other, not
 * mixed.
 * Method: two large blocks of one letter each; count the changes. */
TEST(stream_two_writers_do_not_mix_their_bytes)
{
    run_with_pair(read_blocks);
}

/* Describing. */

static int describe_ops(void *arg)
{
    struct pair *pair = arg;
    pirn_tcp_op op;
    char buf[8];
    char text[64] = "";
    char expected[64];
    pirn_text out = {text, sizeof text, 0};

    open_pair(pair);
    pirn_tcp_read_init(&op, pair->conn, buf, sizeof buf);
    pirn_future_describe(&op.future, &out);
    (void)snprintf(expected, sizeof expected, "read tcp 127.0.0.1:%u",
                   peer_port(pair->peer));
    EXPECT_STR_EQ(expected, text);
    pirn_future_drop(&op.future);
    close_pair(pair);
    return 0;
}

/* Goal: a dump can say what a task waits for.
 * Method: describe a read. */
TEST(stream_operation_says_what_it_waits_for)
{
    run_with_pair(describe_ops);
}

/* Goal: nonsense is refused by the future as well.
 * Method: init with NULL; the poll answers. */
TEST(stream_operation_on_nonsense_answers_einval)
{
    pirn_tcp_op op;
    char byte;

    pirn_tcp_read_init(&op, NULL, &byte, 1);
    EXPECT_EQ(0, pirn_await(&op.future, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, op.n);
    EXPECT_EQ(-EINVAL, pirn_future_outcome(&op.future));
    pirn_tcp_write_init(&op, NULL, &byte, 1);
    pirn_future_drop(&op.future);
}

static int write_head_and_body(void *arg)
{
    struct pair *pair = arg;
    char got[8];
    size_t done = 0;

    open_pair(pair);
    begin_count();
    EXPECT_EQ(4, pirn_tcp_write_more(pair->conn, "head", 4, PIRN_NEVER));
    EXPECT_EQ(0, pirn_tcp_write_more(pair->conn, "", 0, PIRN_NEVER));
    EXPECT_EQ(1, sends_of_more);
    EXPECT_EQ(0, sends);
    EXPECT_EQ(4, pirn_tcp_write(pair->conn, "body", 4, PIRN_NEVER));
    EXPECT_EQ(1, sends);
    end_count();
    while (done < sizeof got) {
        peer_await(pair->peer, POLLIN);
        ssize_t n = recv(pair->peer, got + done, sizeof got - done, 0);

        EXPECT(n > 0);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    EXPECT_EQ(sizeof got, done);
    EXPECT_EQ(0, memcmp("headbody", got, sizeof got));
    EXPECT_EQ(-EINVAL, pirn_tcp_write_more(NULL, "x", 1, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, pirn_tcp_write_more(pair->conn, NULL, 1, PIRN_NEVER));
    pirn_tcp_close(pair->conn);
    close(pair->peer);
    return 0;
}

/* Goal: what is written ahead goes by the call that says so, and arrives before
 * what follows.
 * Method: a head and a body; nothing; nonsense. */
TEST(stream_write_more_goes_ahead_of_what_follows)
{
    run_with_pair(write_head_and_body);
}
