/* SPDX-License-Identifier: MIT */
/* tools/pirn/http.c - the only file that knows libhttp-parser.
 *
 * The parser calls back with pieces of the target and of header names and
 * values, cut wherever the network cut them; they are put together here in
 * bounded places.  It is paused behind each message. */
#include "http.h"

#include <http_parser.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The headers that matter, and those that are passed over. */
enum field {
    FIELD_HOST,
    FIELD_EXPECT,
    FIELD_RANGE,
    FIELD_IF_RANGE,
    FIELD_IF_MODIFIED_SINCE,
    FIELD_COUNT,
    FIELD_OTHER = FIELD_COUNT
};

static const char *const field_names[FIELD_COUNT] = {
    [FIELD_HOST] = "host",
    [FIELD_EXPECT] = "expect",
    [FIELD_RANGE] = "range",
    [FIELD_IF_RANGE] = "if-range",
    [FIELD_IF_MODIFIED_SINCE] = "if-modified-since",
};

enum { FIELD_NAME_SIZE = 24, DEFAULT_PORT = 80 };

struct http_reader {
    http_parser parser;
    struct http_message message;
    uint64_t max_body_bytes;
    int error; /* an HTTP status; 0: none yet */
    bool head_done;

    char name[FIELD_NAME_SIZE]; /* of the header that is being read */
    size_t name_len;            /* may exceed the size: then it is no match */
    bool in_value;
    enum field field;
    uint8_t field_counts[FIELD_COUNT];

    size_t target_len;
    char target[HTTP_TARGET_SIZE];
};

static struct http_reader *reader_of(http_parser *parser)
{
    return parser->data;
}

static int fail(struct http_reader *reader, int status)
{
    reader->error = status;
    return -1;
}

static int begin_message(http_parser *parser)
{
    struct http_reader *reader = reader_of(parser);

    memset(&reader->message, 0, sizeof reader->message);
    memset(reader->field_counts, 0, sizeof reader->field_counts);
    reader->head_done = false;
    reader->in_value = false;
    reader->field = FIELD_OTHER;
    reader->name_len = 0;
    reader->target_len = 0;
    return 0;
}

static int take_target(http_parser *parser, const char *at, size_t len)
{
    struct http_reader *reader = reader_of(parser);

    if (len >= HTTP_TARGET_SIZE - reader->target_len)
        return fail(reader, 414);
    memcpy(reader->target + reader->target_len, at, len);
    reader->target_len += len;
    return 0;
}

static int take_field_name(http_parser *parser, const char *at, size_t len)
{
    struct http_reader *reader = reader_of(parser);

    if (reader->in_value) {
        reader->in_value = false;
        reader->name_len = 0;
    }
    for (size_t i = 0; i < len; i++) {
        /* The parser lets it pass; to others it would be another header. */
        if (at[i] == ' ')
            return fail(reader, 400);
        if (reader->name_len < FIELD_NAME_SIZE)
            reader->name[reader->name_len] = at[i];
        reader->name_len++;
    }
    return 0;
}

static enum field find_field(const struct http_reader *reader)
{
    for (int i = 0; i < FIELD_COUNT; i++) {
        if (strlen(field_names[i]) == reader->name_len &&
            strncasecmp(field_names[i], reader->name, reader->name_len) == 0)
            return (enum field)i;
    }
    return FIELD_OTHER;
}

/* Where the value of a field is kept; NULL: only its presence counts. */
static char *field_place(struct http_reader *reader)
{
    switch (reader->field) {
    case FIELD_RANGE:
        return reader->message.range;
    case FIELD_IF_RANGE:
        return reader->message.if_range;
    case FIELD_IF_MODIFIED_SINCE:
        return reader->message.if_modified_since;
    case FIELD_HOST:
    case FIELD_EXPECT:
    case FIELD_OTHER:
        break;
    }
    return NULL;
}

static void start_value(struct http_reader *reader)
{
    reader->in_value = true;
    /* What stands behind a chunked body has no say in it. */
    reader->field = reader->head_done ? FIELD_OTHER : find_field(reader);
    if (reader->field != FIELD_OTHER &&
        reader->field_counts[reader->field] < UINT8_MAX)
        reader->field_counts[reader->field]++;
}

static int take_field_value(http_parser *parser, const char *at, size_t len)
{
    struct http_reader *reader = reader_of(parser);

    if (!reader->in_value)
        start_value(reader);
    char *place = field_place(reader);
    if (place == NULL)
        return 0;

    size_t used = strlen(place);
    if (reader->field_counts[reader->field] > 1 ||
        len >= HTTP_VALUE_SIZE - used) {
        place[0] = '\0';
        reader->field_counts[reader->field] = UINT8_MAX; /* and stays so */
        return 0;
    }
    memcpy(place + used, at, len);
    place[used + len] = '\0';
    return 0;
}

static struct http_slice slice_of(const char *text,
                                  const struct http_parser_url *url,
                                  enum http_parser_url_fields part)
{
    struct http_slice slice = {NULL, 0};

    if ((url->field_set & (1u << part)) != 0) {
        slice.text = text + url->field_data[part].off;
        slice.len = url->field_data[part].len;
    }
    return slice;
}

/* Accept the three forms of a request target; "*" and the authority of CONNECT
 * are no paths, but the methods that use them get their own answer. */
static int split_target(struct http_reader *reader)
{
    struct http_message *message = &reader->message;
    bool is_connect = reader->parser.method == HTTP_CONNECT;
    struct http_parser_url url;

    reader->target[reader->target_len] = '\0';
    message->target.text = reader->target;
    message->target.len = reader->target_len;
    http_parser_url_init(&url);
    if (http_parser_parse_url(reader->target, reader->target_len, is_connect,
                              &url) != 0)
        return fail(reader, 400);
    message->path = slice_of(reader->target, &url, UF_PATH);
    message->query = slice_of(reader->target, &url, UF_QUERY);
    if (message->path.text == NULL)
        message->path = (struct http_slice){"/", 1};
    return 0;
}

static bool has_body(const http_parser *parser)
{
    return (parser->flags & F_CHUNKED) != 0 ||
           (parser->content_length > 0 && parser->content_length != UINT64_MAX);
}

/* The parser takes blanks off the front of a value only. */
static void trim(char *value)
{
    size_t len = strlen(value);

    while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
        len--;
    value[len] = '\0';
}

/* What the parser wants to know after the headers. */
enum { READ_BODY = 0, SKIP_BODY = 1 };

static int end_request_head(struct http_reader *reader)
{
    http_parser *parser = &reader->parser;
    struct http_message *message = &reader->message;

    if (parser->http_major != 1)
        return fail(reader, 505);
    message->is_http_1_0 = parser->http_minor == 0;
    if (reader->field_counts[FIELD_HOST] > 1 ||
        (reader->field_counts[FIELD_HOST] == 0 && !message->is_http_1_0))
        return fail(reader, 400);
    if ((parser->flags & F_CONTENTLENGTH) != 0 &&
        parser->content_length > reader->max_body_bytes)
        return fail(reader, 413);

    trim(message->range);
    trim(message->if_range);
    trim(message->if_modified_since);
    message->method = http_method_str((enum http_method)parser->method);
    message->is_get = parser->method == HTTP_GET;
    message->is_head = parser->method == HTTP_HEAD;
    message->keep_alive = http_should_keep_alive(parser) != 0;
    /* Other protocols are not spoken here: stay with this one. */
    parser->upgrade = 0;
    if (split_target(reader) < 0)
        return -1;
    /* The client holds the body back until it hears that it is welcome.  It
     * is not: answer at once, and end the connection in case it comes. */
    if (reader->field_counts[FIELD_EXPECT] > 0 && has_body(parser)) {
        message->keep_alive = false;
        return SKIP_BODY;
    }
    return READ_BODY;
}

static int end_head(http_parser *parser)
{
    struct http_reader *reader = reader_of(parser);

    reader->head_done = true;
    if (parser->type == HTTP_REQUEST)
        return end_request_head(reader);
    reader->message.status = (int)parser->status_code;
    reader->message.keep_alive = http_should_keep_alive(parser) != 0;
    return READ_BODY;
}

static int take_body(http_parser *parser, const char *at, size_t len)
{
    struct http_reader *reader = reader_of(parser);

    (void)at;
    reader->message.body_bytes += len;
    if (reader->message.body_bytes > reader->max_body_bytes)
        return fail(reader, 413);
    return 0;
}

static int end_message(http_parser *parser)
{
    /* "100 Continue" and its like only announce the real answer. */
    if (parser->type == HTTP_RESPONSE && parser->status_code / 100 == 1)
        return 0;
    http_parser_pause(parser, 1);
    return 0;
}

static const http_parser_settings settings = {
    .on_message_begin = begin_message,
    .on_url = take_target,
    .on_header_field = take_field_name,
    .on_header_value = take_field_value,
    .on_headers_complete = end_head,
    .on_body = take_body,
    .on_message_complete = end_message,
};

struct http_reader *http_reader_new(enum http_kind kind,
                                    const struct http_limits *limits)
{
    struct http_reader *reader = malloc(sizeof *reader);

    if (reader == NULL)
        return NULL;
    http_parser_init(&reader->parser,
                     kind == HTTP_KIND_REQUEST ? HTTP_REQUEST : HTTP_RESPONSE);
    reader->parser.data = reader;
    reader->error = 0;
    reader->max_body_bytes = UINT64_MAX;
    if (limits != NULL) {
        http_parser_set_max_header_size(limits->header_bytes);
        reader->max_body_bytes = limits->body_bytes;
    }
    (void)begin_message(&reader->parser);
    return reader;
}

void http_reader_free(struct http_reader *reader)
{
    free(reader);
}

static enum http_progress progress_of(struct http_reader *reader)
{
    enum http_errno code = HTTP_PARSER_ERRNO(&reader->parser);

    if (code == HPE_OK)
        return HTTP_PROGRESS_MORE;
    if (code == HPE_PAUSED) {
        http_parser_pause(&reader->parser, 0);
        return HTTP_PROGRESS_DONE;
    }
    if (reader->error == 0)
        reader->error = code == HPE_HEADER_OVERFLOW ? 431 : 400;
    return HTTP_PROGRESS_BROKEN;
}

size_t http_reader_feed(struct http_reader *reader, const char *data,
                        size_t len, enum http_progress *progress)
{
    size_t used = 0;

    /* To the parser no bytes are the end of the stream. */
    if (len > 0)
        used = http_parser_execute(&reader->parser, &settings, data, len);
    *progress = progress_of(reader);
    return used;
}

enum http_progress http_reader_end(struct http_reader *reader)
{
    (void)http_parser_execute(&reader->parser, &settings, NULL, 0);
    return progress_of(reader);
}

const struct http_message *http_reader_message(const struct http_reader *reader)
{
    return &reader->message;
}

int http_reader_error(const struct http_reader *reader)
{
    return reader->error;
}

static struct http_slice target_of(const char *text,
                                   const struct http_parser_url *url)
{
    struct http_slice path = slice_of(text, url, UF_PATH);
    struct http_slice query = slice_of(text, url, UF_QUERY);

    if (path.text == NULL)
        return (struct http_slice){"/", 1};
    if (query.text != NULL)
        path.len = (size_t)(query.text + query.len - path.text);
    return path;
}

bool http_url_parse(const char *text, struct http_url *out)
{
    struct http_parser_url url;

    http_parser_url_init(&url);
    if (http_parser_parse_url(text, strlen(text), 0, &url) != 0)
        return false;
    struct http_slice scheme = slice_of(text, &url, UF_SCHEMA);
    struct http_slice host = slice_of(text, &url, UF_HOST);
    if (scheme.len != 4 || strncasecmp(scheme.text, "http", 4) != 0)
        return false;
    if (host.text == NULL || host.len == 0 || host.len >= HTTP_HOST_SIZE)
        return false;
    if ((url.field_set & (1u << UF_PORT)) != 0 && url.port == 0)
        return false;

    memcpy(out->host, host.text, host.len);
    out->host[host.len] = '\0';
    out->is_v6 = memchr(out->host, ':', host.len) != NULL;
    out->port = url.port != 0 ? url.port : DEFAULT_PORT;
    out->target = target_of(text, &url);
    return true;
}
