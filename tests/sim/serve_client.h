/* SPDX-License-Identifier: MIT */
/* tests/sim/serve_client.h - the clients of the server under test.
 *
 * Each is a virtual thread of its own and not of the server's runtime.  It
 * keeps the times of what it did, and judges by them: an answer that did not
 * come, or only in part, needs a reason, which is the weather, a stop, or a
 * deadline that this client has let pass.
 */
#ifndef PIRN_TESTS_SIM_SERVE_CLIENT_H
#define PIRN_TESTS_SIM_SERVE_CLIENT_H

#include "sim/serve_request.h"

enum {
    CLIENT_PATIENCE_MS = 15000,
    CLIENT_LATE_MS = 2500, /* a pause of accept, and the network */
    CLIENT_HEAD_SIZE = 1024,
    CLIENT_BUF_SIZE = 700,
    CLIENT_PIECE_SIZE = 64 * 1024, /* up to it, a file is sent as one */
    NS_PER_MS = 1000 * 1000
};

/* What the clients know of the server. */
static struct {
    char address[PIRN_ADDR_SIZE];
    uint32_t idle_ms, header_ms, grace_ms, header_limit;
    bool is_open;      /* it listens */
    uint64_t stop_ns;  /* 0: it has not been told to stop */
    uint64_t hurry_ns; /* 0: nor to hurry */
} site;

/* One connection. */
struct visit {
    pirn_tcp *tcp;
    bool is_calm;           /* since before it was made */
    bool is_first;          /* no answer has come yet */
    bool is_deaf;           /* asks to be cut off */
    uint64_t asked_ns;      /* the first byte of the last request */
    uint64_t asked_before_ns; /* of the one before; or the connecting */
    int sent;               /* the code of the last write */
    ssize_t rc;             /* of the last read: 0 at the end */
    size_t start, end;
    char buf[CLIENT_BUF_SIZE];
};

static inline void client_sleep_ms(uint32_t ms)
{
    sim_check(pirn_sleep(pirn_after_ms(ms)) == 0, "a plain thread can sleep");
}

static inline bool client_is_due(uint64_t ns, uint32_t ms)
{
    return sim_now_ns() >= ns + (uint64_t)ms * NS_PER_MS;
}

/* Answers that were begun are finished until then. */
static inline bool client_may_be_cut_off(void)
{
    return site.hurry_ns != 0 ||
           (site.stop_ns != 0 && client_is_due(site.stop_ns, site.grace_ms));
}

/* Connecting. */

static inline int client_connect(struct visit *visit)
{
    int rc;

    *visit = (struct visit){
        .is_calm = sim_is_calm(),
        .is_first = true,
        .asked_ns = sim_now_ns(),
        .asked_before_ns = sim_now_ns(),
    };
    rc = pirn_tcp_connect(site.address, NULL,
                          pirn_after_ms(CLIENT_PATIENCE_MS), &visit->tcp);
    sim_check(rc == 0 || !visit->is_calm || site.stop_ns != 0,
              "in calm weather a client can connect");
    return rc;
}

/* Sending. */

/* The server gives up on slow requests: stay well below. */
static inline uint32_t client_pause_ms(void)
{
    return sim_below(site.header_ms < 2000 ? site.header_ms / 20 : 100);
}

/* Take in what the server says meanwhile: one that refuses does not read
 * what we send before it has said so. */
static inline void client_listen(struct visit *visit)
{
    ssize_t n;

    if (visit->end == sizeof visit->buf)
        return;
    n = pirn_tcp_read(visit->tcp, visit->buf + visit->end,
                      sizeof visit->buf - visit->end, PIRN_EXPIRED);
    if (n > 0)
        visit->end += (size_t)n;
    else if (n < 0 && n != -ETIMEDOUT)
        visit->sent = (int)n;
}

static inline void client_send_part(struct visit *visit, const char *text,
                                    size_t len)
{
    enum { LISTEN_MS = 5 };
    uint64_t begun_ns = sim_now_ns();

    while (len > 0 && visit->sent == 0) {
        ssize_t n = pirn_tcp_write(visit->tcp, text, len,
                                   pirn_after_ms(LISTEN_MS));

        if (n > 0) {
            text += n;
            len -= (size_t)n;
        } else if (n != -ETIMEDOUT ||
                   client_is_due(begun_ns, CLIENT_PATIENCE_MS)) {
            visit->sent = (int)n;
        } else {
            client_listen(visit);
        }
    }
}

/* In a few pieces.  What an error means is judged when the answer is read. */
static inline void client_send(struct visit *visit, const char *text,
                               size_t len)
{
    uint32_t pieces = sim_chance(400) ? 1 : 1 + sim_below(5);

    while (len > 0 && visit->sent == 0) {
        size_t part = pieces <= 1 ? len : 1 + sim_below((uint32_t)len);

        client_send_part(visit, text, part);
        text += part;
        len -= part;
        pieces--;
        if (len > 0 && sim_chance(500))
            client_sleep_ms(client_pause_ms());
    }
}

static inline void client_note_request(struct visit *visit)
{
    visit->asked_before_ns = visit->asked_ns;
    visit->asked_ns = sim_now_ns();
}

static inline void client_ask(struct visit *visit,
                              const struct request *request)
{
    client_note_request(visit);
    client_send(visit, request->text, request->len);
}

/* Receiving. */

/* The next byte, or -1: the end, or an error. */
static inline int client_byte(struct visit *visit)
{
    if (visit->start == visit->end) {
        visit->start = 0;
        visit->end = 0;
        visit->rc = pirn_tcp_read(visit->tcp, visit->buf, sizeof visit->buf,
                                  pirn_after_ms(CLIENT_PATIENCE_MS));
        if (visit->rc <= 0)
            return -1;
        visit->end = (size_t)visit->rc;
    }
    return (unsigned char)visit->buf[visit->start++];
}

/* The end of a connection before the answer has come as a whole: why? */
static inline bool client_end_has_reason(const struct visit *visit,
                                         bool has_begun)
{
    if (has_begun)
        return client_may_be_cut_off() ||
               (!visit->is_calm && client_is_due(visit->asked_ns,
                                                 site.idle_ms));
    return site.stop_ns != 0 ||
           (!visit->is_calm && client_is_due(visit->asked_before_ns,
                                             site.idle_ms));
}

static inline bool client_error_has_reason(const struct visit *visit,
                                           bool has_begun)
{
    if (!visit->is_calm)
        return true;
    if (visit->rc == -ETIMEDOUT)
        return false;
    return has_begun ? client_may_be_cut_off() : site.stop_ns != 0;
}

static inline void client_judge_cut(const struct visit *visit, bool has_begun)
{
    bool is_end = visit->rc == 0 && visit->sent == 0;
    bool has_reason = is_end ? client_end_has_reason(visit, has_begun)
                             : client_error_has_reason(visit, has_begun);

    if (!has_reason && !visit->is_deaf)
        sim_fail("story", "%s an answer the connection ends with %zd%s%s",
                 has_begun ? "within" : "before",
                 visit->rc == 0 ? (ssize_t)visit->sent : visit->rc,
                 visit->is_calm ? " in calm weather" : "",
                 site.stop_ns != 0 ? ", after the stop" : "");
}

struct answer {
    char head[CLIENT_HEAD_SIZE];
    int status;
    bool is_last;
    bool has_length;
    size_t length;
};

/* Those who are turned away come after the others: a stop does not wait for
 * them. */
static inline bool client_has_heard(const struct visit *visit,
                                    const char *head)
{
    return strlen(head) >= 12 &&
           !(visit->is_first && strncmp(head + 9, "503", 3) == 0);
}

/* True if the head is whole. */
static inline bool client_read_head(struct visit *visit, struct answer *answer)
{
    size_t len = 0;

    answer->head[0] = '\0';
    while (len < 4 || strcmp(answer->head + len - 4, "\r\n\r\n") != 0) {
        int byte = client_byte(visit);

        if (byte < 0) {
            client_judge_cut(visit, client_has_heard(visit, answer->head));
            return false;
        }
        if (len == CLIENT_HEAD_SIZE - 1) {
            sim_fail("story", "the head of an answer does not end");
            return false;
        }
        answer->head[len++] = (char)byte;
        answer->head[len] = '\0';
    }
    return true;
}

static inline void client_parse_head(struct answer *answer)
{
    const char *length = strstr(answer->head, "\r\nContent-Length: ");

    sim_check(strncmp(answer->head, "HTTP/1.1 ", 9) == 0,
              "an answer begins with its version");
    answer->status = (int)strtol(answer->head + 9, NULL, 10);
    answer->is_last =
        strstr(answer->head, "\r\nConnection: close\r\n") != NULL;
    answer->has_length = length != NULL;
    answer->length = length == NULL ? 0 : strtoul(length + 18, NULL, 10);
}

/* There is no room: said before the client has asked. */
static inline bool client_is_turned_away(const struct visit *visit,
                                         const struct answer *answer)
{
    return visit->is_first && answer->status == 503 && answer->has_length &&
           answer->length == 0;
}

/* May this be said instead of what is right? */
static inline bool client_is_excused(const struct visit *visit,
                                     const struct request *request,
                                     int status)
{
    if (status == 408)
        return !visit->is_calm && client_is_due(visit->asked_ns,
                                                site.header_ms);
    return !visit->is_calm && request->reads_disk &&
           (status == 503 || status == 500);
}

static inline void client_check_head(const struct visit *visit,
                                     const struct request *request,
                                     const struct answer *answer)
{
    bool should_end = request->is_last || answer->status == 408;

    if (answer->status != request->status &&
        !client_is_excused(visit, request, answer->status))
        sim_fail("story", "%d instead of %d for %.60s", answer->status,
                 request->status, request->text);
    if (answer->status == request->status)
        sim_check(strstr(answer->head, request->field) != NULL,
                  "the head says what it should");
    sim_check(answer->is_last == should_end ||
                  (answer->is_last && site.stop_ns != 0),
              "a connection is kept exactly if it should be");
    sim_check(answer->has_length == (answer->status != 304),
              "an answer has a length, unless it has no body");
}

/* The body of an answer without a file is its own name. */
static inline int client_note_byte(const struct answer *answer, size_t i)
{
    const char *name = answer->head + 9;
    size_t len = strcspn(name, "\r");

    return i < len ? name[i] : '\n';
}

/* True if the body is whole. */
static inline bool client_read_body(struct visit *visit,
                                    const struct request *request,
                                    const struct answer *answer)
{
    bool is_file = answer->status == request->status && request->has_part;
    size_t length = is_file
                        ? request->count
                        : strcspn(answer->head + 9, "\r") + 1;

    if (answer->status == 304)
        return true;
    sim_check(answer->length == length, "the length is right");
    /* Of a request that is late the server does not know what it was. */
    if (request->is_head && answer->status != 408)
        return true;
    for (size_t i = 0; i < answer->length; i++) {
        int byte = client_byte(visit);
        int right = is_file ? disk_byte(request->file, request->first + i)
                            : client_note_byte(answer, i);

        if (byte < 0) {
            /* A disk that fails between pieces leaves nothing else to do. */
            if (visit->is_calm || !is_file || length <= CLIENT_PIECE_SIZE)
                client_judge_cut(visit, true);
            return false;
        }
        if (byte != right) {
            sim_fail("story", "byte %zu of the body is wrong", i);
            return false;
        }
    }
    return true;
}

/* The server has said that it ends the connection, and does. */
static inline void client_expect_end(struct visit *visit)
{
    int byte = client_byte(visit);

    sim_check(byte < 0, "nothing comes after the last answer");
    sim_check(byte >= 0 || visit->rc == 0 || !visit->is_calm ||
                  site.stop_ns != 0,
              "in calm weather the end is orderly");
}

enum client_outcome {
    CLIENT_GOES_ON, /* the answer is whole, and others may follow */
    CLIENT_IS_DONE, /* it is whole, and the last */
    CLIENT_AGAIN    /* cut off, or told to come later */
};

static inline enum client_outcome client_hear(struct visit *visit,
                                              const struct request *request)
{
    struct answer answer;

    if (!client_read_head(visit, &answer))
        return CLIENT_AGAIN;
    client_parse_head(&answer);
    if (client_is_turned_away(visit, &answer)) {
        sim_check(answer.is_last, "who is turned away is told to leave");
        client_expect_end(visit);
        return CLIENT_AGAIN;
    }
    client_check_head(visit, request, &answer);
    if (!client_read_body(visit, request, &answer))
        return CLIENT_AGAIN;
    visit->is_first = false;
    if (answer.is_last)
        client_expect_end(visit);
    if (answer.status != request->status)
        return CLIENT_AGAIN;
    return answer.is_last ? CLIENT_IS_DONE : CLIENT_GOES_ON;
}

#endif /* PIRN_TESTS_SIM_SERVE_CLIENT_H */
