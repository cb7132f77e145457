/* SPDX-License-Identifier: MIT */
/* src/testing/sim_link.c - TCP as the simulated world has it.
 *
 * A connection has two ends, and for each direction a pipe of a few bytes.
 * What is sent arrives in segments, each after a time of its own, in order
 * within its direction and in any order between connections; what is read makes
 * room again when the sender has heard of it.  A transfer that moves less than
 * it was asked to has emptied, or filled, the pipe, as TCP promises; more comes
 * with an event.
 *
 * An end that is closed with unread bytes, or to which something is sent later,
 * answers with a reset.
 *
 * The weather: connections are cut off for a while, are reset, time out;
 * descriptors run out; all of it stops when it is calm.
 */
#include "testing/sim_link.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

enum {
    NS_PER_US = 1000,
    NS_PER_MS = 1000 * 1000,
    FIRST_PORT = 40000,
    CUT_MS = 900, /* a connection is cut off for at most so long */
    SYN_RETRY_MS = 1000,
    SYN_TRIES = 6,
};

static struct pirn__sim_link *links;
static uint16_t next_port;

uint16_t pirn__sim_port_new(void)
{
    return next_port++;
}

static struct pirn__sim_end *other(const struct pirn__sim_end *end)
{
    return &end->link->ends[!end->side];
}

static uint64_t latency_ns(void)
{
    uint32_t us = pirn__sim_options()->latency_us;

    uint64_t chosen_us = us / 2;

    chosen_us += pirn_sim_below(us);
    /* Now and then one takes very long. */
    if (pirn__sim_fault(20))
        chosen_us += pirn_sim_below(20 * us);
    return chosen_us * NS_PER_US;
}

void pirn__sim_end_signal(const struct pirn__sim_end *end)
{
    if (end->fd >= 0)
        pirn__sim_file_signal(end->fd);
}

/* Things that arrive.  Each waits for the end of a cut. */

static bool is_cut(struct pirn__sim_end *end, pirn__sim_event_fn *fn,
                   uint64_t number)
{
    uint64_t until = end->link->cut_until_ns;

    if (pirn_sim_is_calm() || until <= pirn_sim_now_ns())
        return false;
    pirn__sim_at(until + latency_ns(), fn, end, number);
    return true;
}

/* At `end`: a reset with that error. */
static void reset_arrives(void *object, uint64_t error)
{
    struct pirn__sim_end *end = object;

    if (end->dead)
        return;
    end->dead = true;
    end->state =
        end->state == PIRN__SIM_CONNECTING ? PIRN__SIM_FRESH : end->state;
    end->error = (int)error;
    pirn__sim_end_signal(end);
}

static void send_reset(struct pirn__sim_end *to)
{
    pirn__sim_at(pirn_sim_now_ns() + latency_ns(), reset_arrives, to,
                 ECONNRESET);
}

static bool fin_is_visible(const struct pirn__sim_pipe *pipe)
{
    return pipe->fin_arrived && pipe->arrived == pipe->sent;
}

/* At the other end of `object`, which sent it. */
static void data_arrives(void *object, uint64_t bytes)
{
    struct pirn__sim_end *from = object;
    struct pirn__sim_end *to = other(from);

    if (is_cut(from, data_arrives, bytes))
        return;
    if (to->dead || !to->open) {
        send_reset(from);
        return;
    }
    from->out.arrived += bytes;
    pirn__sim_end_signal(to);
}

static void fin_arrives(void *object, uint64_t unused)
{
    struct pirn__sim_end *from = object;

    if (is_cut(from, fin_arrives, unused))
        return;
    from->out.fin_arrived = true;
    pirn__sim_end_signal(other(from));
}

static void room_arrives(void *object, uint64_t bytes)
{
    struct pirn__sim_end *to = object;

    if (is_cut(to, room_arrives, bytes))
        return;
    to->out.acknowledged += bytes;
    if (to->out.wants_room)
        pirn__sim_end_signal(to);
    to->out.wants_room = false;
}

static void send_later(struct pirn__sim_end *from, pirn__sim_event_fn *fn,
                       uint64_t number)
{
    uint64_t ns = pirn_sim_now_ns() + latency_ns();

    if (ns < from->out.last_ns)
        ns = from->out.last_ns;
    from->out.last_ns = ns;
    pirn__sim_at(ns, fn, from, number);
}

/* Connecting. */

static struct pirn__sim_link *make_link(void)
{
    struct pirn__sim_link *made = pirn__sim_take(sizeof *made);

    made->next = links;
    links = made;
    for (unsigned side = 0; side < 2; side++) {
        struct pirn__sim_pipe *out = &made->ends[side].out;

        made->ends[side].link = made;
        made->ends[side].side = side;
        made->ends[side].fd = -1;
        out->room = 1 + pirn__sim_options()->buffer / 2 +
                    pirn_sim_below(pirn__sim_options()->buffer);
        out->bytes = pirn__sim_take(out->room);
    }
    return made;
}

struct pirn__sim_file *pirn__sim_listener_at(uint16_t port)
{
    for (struct pirn__sim_file *file = pirn__sim_file_next(NULL); file != NULL;
         file = pirn__sim_file_next(file)) {
        if (file->kind == PIRN__SIM_LISTENER && file->port == port)
            return file;
    }
    return NULL;
}

static void answer_arrives(void *object, uint64_t error)
{
    struct pirn__sim_end *end = object;

    if (is_cut(end, answer_arrives, error))
        return;
    if (end->state != PIRN__SIM_CONNECTING) {
        /* It was closed meanwhile. */
        send_reset(other(end));
        return;
    }
    end->state = error == 0 ? PIRN__SIM_CONNECTED : PIRN__SIM_FRESH;
    end->error = (int)error;
    /* It was reset meanwhile, which we could not be told before. */
    if (error == 0 && other(end)->dead)
        send_reset(end);
    pirn__sim_end_signal(end);
}

static void enqueue(struct pirn__sim_file *listener, struct pirn__sim_end *end)
{
    if (listener->queue_len == listener->queue_room)
        listener->queue = pirn__sim_grow(listener->queue, &listener->queue_room,
                                         sizeof(*listener->queue));
    listener->queue[listener->queue_len++] = end;
    pirn__sim_file_signal(pirn__sim_file_fd(listener));
}

static void syn_arrives(void *object, uint64_t unused)
{
    struct pirn__sim_end *client = object;
    struct pirn__sim_end *server = other(client);
    struct pirn__sim_file *listener;

    if (is_cut(client, syn_arrives, unused) ||
        client->state != PIRN__SIM_CONNECTING)
        return;
    listener = pirn__sim_listener_at(client->peer_port);
    if (listener == NULL || pirn__sim_fault(pirn__sim_options()->refusals)) {
        pirn__sim_at(pirn_sim_now_ns() + latency_ns(), answer_arrives, client,
                     ECONNREFUSED);
        return;
    }
    if (listener->queue_len > (size_t)listener->backlog) {
        uint64_t again = pirn_sim_now_ns() + (uint64_t)SYN_RETRY_MS * NS_PER_MS;

        if (++client->link->tries < SYN_TRIES)
            pirn__sim_at(again, syn_arrives, client, 0);
        else
            pirn__sim_at(again, answer_arrives, client, ETIMEDOUT);
        return;
    }
    server->state = PIRN__SIM_CONNECTED;
    server->open = true;
    server->port = client->peer_port;
    server->peer_port = client->port;
    enqueue(listener, server);
    pirn__sim_at(pirn_sim_now_ns() + latency_ns(), answer_arrives, client, 0);
}

struct pirn__sim_end *pirn__sim_end_new(int fd)
{
    struct pirn__sim_end *end = &make_link()->ends[0];

    end->fd = fd;
    end->open = true;
    return end;
}

void pirn__sim_end_connect(struct pirn__sim_end *end, uint16_t port)
{
    end->state = PIRN__SIM_CONNECTING;
    end->port = pirn__sim_port_new();
    end->peer_port = port;
    pirn__sim_at(pirn_sim_now_ns() + latency_ns(), syn_arrives, end, 0);
}

/* Transfers. */

int pirn__sim_end_take_error(struct pirn__sim_end *end)
{
    int error = end->error;

    end->error = 0;
    return error;
}

static size_t copy_out(struct pirn__sim_pipe *pipe, unsigned char *buf,
                       size_t len)
{
    size_t there = (size_t)(pipe->arrived - pipe->read);
    size_t n = len < there ? len : there;

    for (size_t i = 0; i < n; i++)
        buf[i] = pipe->bytes[(pipe->read + i) % pipe->room];
    pipe->read += n;
    return n;
}

ssize_t pirn__sim_end_receive(struct pirn__sim_end *end, void *buf, size_t len)
{
    struct pirn__sim_end *from;
    size_t n;

    if (end == NULL)
        return -EBADF;
    from = other(end);
    n = copy_out(&from->out, buf, len);
    if (n > 0) {
        pirn__sim_at(pirn_sim_now_ns() + latency_ns(), room_arrives, from, n);
        return (ssize_t)n;
    }
    if (end->error != 0)
        return -pirn__sim_end_take_error(end);
    if (end->state != PIRN__SIM_CONNECTED)
        return end->dead ? 0 : -ENOTCONN;
    if (len == 0 || end->dead || end->shut_read || fin_is_visible(&from->out))
        return 0;
    return -EAGAIN;
}

static size_t copy_in(struct pirn__sim_pipe *pipe, const unsigned char *buf,
                      size_t len)
{
    size_t room = pipe->room - (size_t)(pipe->sent - pipe->acknowledged);
    size_t n = len < room ? len : room;

    for (size_t i = 0; i < n; i++)
        pipe->bytes[(pipe->sent + i) % pipe->room] = buf[i];
    pipe->sent += n;
    if (n < len)
        pipe->wants_room = true;
    return n;
}

/* In a few segments. */
static void send_segments(struct pirn__sim_end *end, size_t n)
{
    while (n > 0) {
        size_t one = pirn_sim_chance(500) ? n : 1 + pirn_sim_below((uint32_t)n);

        send_later(end, data_arrives, one);
        n -= one;
    }
}

ssize_t pirn__sim_end_transmit(struct pirn__sim_end *end, const void *buf,
                               size_t len)
{
    size_t n;

    if (end == NULL)
        return -EBADF;
    if (end->error != 0)
        return -pirn__sim_end_take_error(end);
    if (end->dead || end->out.fin_sent)
        return -EPIPE;
    if (end->state != PIRN__SIM_CONNECTED)
        return end->state == PIRN__SIM_CONNECTING ? -EAGAIN : -ENOTCONN;
    if (!pirn_sim_is_calm() &&
        pirn_sim_below(10000) < pirn__sim_options()->resets) {
        send_reset(end);
        send_reset(other(end));
    }
    n = copy_in(&end->out, buf, len);
    if (n == 0 && len > 0)
        return -EAGAIN;
    send_segments(end, n);
    return (ssize_t)n;
}

/* Ending, and what would be polled. */

void pirn__sim_end_finish(struct pirn__sim_end *end)
{
    if (end->out.fin_sent || end->dead)
        return;
    end->out.fin_sent = true;
    send_later(end, fin_arrives, 0);
}

void pirn__sim_end_close(struct pirn__sim_end *end)
{
    struct pirn__sim_pipe *in = &other(end)->out;
    bool unread = in->arrived > in->read;

    end->open = false;
    end->fd = -1;
    if (end->state == PIRN__SIM_CONNECTED && !end->dead && unread)
        send_reset(other(end));
    else if (end->state == PIRN__SIM_CONNECTED)
        pirn__sim_end_finish(end);
    else
        end->state = PIRN__SIM_FRESH;
}

void pirn__sim_end_refuse(struct pirn__sim_end *end)
{
    end->open = false;
    send_reset(other(end));
}

uint32_t pirn__sim_end_mask(const struct pirn__sim_end *end)
{
    const struct pirn__sim_pipe *in = &other(end)->out;
    bool over = end->dead || end->error != 0;
    bool eof = fin_is_visible(in) || end->shut_read;
    uint32_t mask = 0;

    if (end->state == PIRN__SIM_FRESH && !over)
        return EPOLLOUT | EPOLLHUP;
    if (end->state == PIRN__SIM_CONNECTING && !over)
        return 0;
    if (over || eof || in->arrived > in->read)
        mask |= EPOLLIN;
    if (over || end->out.fin_sent ||
        end->out.sent - end->out.acknowledged < end->out.room)
        mask |= EPOLLOUT;
    if (over || eof)
        mask |= EPOLLRDHUP;
    if (over || (eof && end->out.fin_sent))
        mask |= EPOLLHUP;
    if (end->error != 0)
        mask |= EPOLLERR;
    return mask;
}

/* The weather. */

static struct pirn__sim_link *any_connection(void)
{
    struct pirn__sim_link *chosen = NULL;
    uint32_t seen = 0;

    for (struct pirn__sim_link *at = links; at != NULL; at = at->next) {
        if ((at->ends[0].open || at->ends[1].open) &&
            pirn_sim_below(++seen) == 0)
            chosen = at;
    }
    return chosen;
}

static void cut_off(void)
{
    uint32_t part = 1 + pirn_sim_below(1000); /* of a thousand */
    uint64_t until =
        pirn_sim_now_ns() + (uint64_t)pirn_sim_below(CUT_MS) * NS_PER_MS;

    for (struct pirn__sim_link *at = links; at != NULL; at = at->next) {
        if (pirn_sim_chance(part))
            at->cut_until_ns = until;
    }
}

static void break_one(int error)
{
    struct pirn__sim_link *chosen = any_connection();

    if (chosen == NULL)
        return;
    for (unsigned side = 0; side < 2; side++) {
        if (chosen->ends[side].state == PIRN__SIM_CONNECTED)
            reset_arrives(&chosen->ends[side], (uint64_t)error);
    }
}

static void blow(void *object, uint64_t number)
{
    (void)object;
    (void)number;
    if (pirn_sim_is_calm())
        return;
    switch (pirn_sim_below(5)) {
    case 0:
        cut_off();
        break;
    case 1:
        break_one(ECONNRESET);
        break;
    case 2:
        break_one(EHOSTUNREACH);
        break;
    case 3:
        pirn__sim_files_limit(pirn_sim_below(6));
        break;
    default:
        pirn__sim_files_limit(UINT32_MAX);
        break;
    }
    pirn__sim_net_weather();
}

void pirn__sim_net_weather(void)
{
    uint32_t us = pirn__sim_options()->weather_ms * 1000;

    if (us > 0)
        pirn__sim_at(pirn_sim_now_ns() +
                         (us / 2 + pirn_sim_below(us)) * (uint64_t)NS_PER_US,
                     blow, NULL, 0);
}

/* All of it. */

void pirn__sim_net_begin(void)
{
    links = NULL;
    next_port = FIRST_PORT;
    pirn__sim_net_weather();
}

static void free_pipe(struct pirn__sim_pipe *pipe)
{
    pirn__sim_give(pipe->bytes, pipe->room);
}

void pirn__sim_net_end(void)
{
    while (links != NULL) {
        struct pirn__sim_link *next = links->next;

        free_pipe(&links->ends[0].out);
        free_pipe(&links->ends[1].out);
        pirn__sim_give(links, sizeof *links);
        links = next;
    }
}
