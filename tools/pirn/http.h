/* SPDX-License-Identifier: MIT */
/* tools/pirn/http.h - HTTP/1.x messages, one after the other, from a stream.
 *
 * A reader is fed whatever bytes arrived.  It stops behind each message, so
 * that what follows in a pipeline stays in the caller's buffer:
 *
 *     used = http_reader_feed(reader, buf, len, &progress);
 *     if (progress == HTTP_PROGRESS_DONE)
 *         answer(http_reader_message(reader));
 *
 * The bytes are parsed by libhttp-parser, which only http.c knows.  Bodies are
 * counted and thrown away.
 */
#ifndef PIRN_TOOLS_HTTP_H
#define PIRN_TOOLS_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HTTP_TARGET_SIZE = 4096, /* longest request target, with its NUL */
    HTTP_VALUE_SIZE = 96,    /* longest header value of interest, with NUL */
    HTTP_HOST_SIZE = 256
};

/* A message of a client, or the answer of a server. */
enum http_kind { HTTP_KIND_REQUEST, HTTP_KIND_RESPONSE };

enum http_progress {
    HTTP_PROGRESS_MORE,  /* feed more */
    HTTP_PROGRESS_DONE,  /* a whole message */
    HTTP_PROGRESS_BROKEN /* the stream makes no sense from here on */
};

/* A part of a longer text. */
struct http_slice {
    const char *text;
    size_t len;
};

/* What is known of the last message.  A value that is absent, given twice or
 * too long is "". */
struct http_message {
    const char *method; /* "GET", in capitals */
    bool is_get;
    bool is_head;
    bool is_http_1_0;
    bool keep_alive;          /* this side may send another message */
    struct http_slice target; /* as it was sent */
    struct http_slice path;   /* of the target, still encoded */
    struct http_slice query;  /* without '?'; text is NULL if there is none */
    char range[HTTP_VALUE_SIZE];
    char if_range[HTTP_VALUE_SIZE];
    char if_modified_since[HTTP_VALUE_SIZE];
    int status; /* of a response */
    uint64_t body_bytes;
};

struct http_limits {
    uint32_t header_bytes; /* request line and headers */
    uint64_t body_bytes;   /* larger bodies are not read */
};

/* An absolute URL taken apart. */
struct http_url {
    char host[HTTP_HOST_SIZE]; /* without brackets */
    bool is_v6;
    uint16_t port;
    struct http_slice target; /* path and query; "/" if there is none */
};

struct http_reader;

/* NULL without memory.  `limits` applies to requests; NULL: none.  The header
 * limit is one for the whole process, the last one given. */
struct http_reader *http_reader_new(enum http_kind kind,
                                    const struct http_limits *limits);
void http_reader_free(struct http_reader *reader);

/* Take bytes; returns how many were used, which is all of them unless a
 * message ended before or the stream broke. */
size_t http_reader_feed(struct http_reader *reader, const char *data,
                        size_t len, enum http_progress *progress);

/* The stream has ended, which may complete a response. */
enum http_progress http_reader_end(struct http_reader *reader);

/* Valid after HTTP_PROGRESS_DONE until the next feed. */
const struct http_message *
http_reader_message(const struct http_reader *reader);

/* After HTTP_PROGRESS_BROKEN: the status that says why. */
int http_reader_error(const struct http_reader *reader);

/* Take "http://host[:port][/path][?query]" apart; the slices point into
 * `text`.  False if it is something else. */
bool http_url_parse(const char *text, struct http_url *out);

#endif /* PIRN_TOOLS_HTTP_H */
