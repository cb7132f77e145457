/* SPDX-License-Identifier: MIT */
/* tools/pirn/http_test.c - messages in one piece, in single bytes, in rows, and
 * messages that are none. */
#include "http.h"

#include "engine/test.h"

#include <stdio.h>
#include <stdlib.h>

static const struct http_limits limits = {
    .header_bytes = 1024,
    .body_bytes = 100,
};

static struct http_reader *new_reader(void)
{
    return http_reader_new(HTTP_KIND_REQUEST, &limits);
}

/* Feed a text in pieces of `step` bytes until something comes of it. */
static enum http_progress feed(struct http_reader *reader, const char *text,
                               size_t step)
{
    enum http_progress progress = HTTP_PROGRESS_MORE;
    size_t len = strlen(text);

    for (size_t at = 0; at < len && progress == HTTP_PROGRESS_MORE;) {
        size_t size = len - at < step ? len - at : step;

        at += http_reader_feed(reader, text + at, size, &progress);
    }
    return progress;
}

static bool slice_is(struct http_slice slice, const char *text)
{
    return slice.len == strlen(text) &&
           strncmp(slice.text, text, slice.len) == 0;
}

/* Goal: all parts of a request arrive, however it is cut.
 * Method: the same request with steps of 1, 2, 3, ... bytes. */
TEST(http_request_in_any_pieces_is_whole)
{
    static const char text[] = "GET /a%20b/c?x=1&y=2 HTTP/1.1\r\n"
                               "Host: here\r\n"
                               "RANGE: bytes=1-2\r\n"
                               "If-Modified-Since: then\r\n"
                               "If-Range:  now \r\n"
                               "X-Ranger: bytes=7-8\r\n"
                               "Connection: close\r\n\r\n";

    for (size_t step = 1; step <= sizeof text; step++) {
        struct http_reader *reader = new_reader();

        REQUIRE(reader != NULL);
        EXPECT_EQ(HTTP_PROGRESS_DONE, (int)feed(reader, text, step));
        const struct http_message *message = http_reader_message(reader);
        EXPECT_STR_EQ("GET", message->method);
        EXPECT(message->is_get && !message->is_head);
        EXPECT(!message->is_http_1_0);
        EXPECT(!message->keep_alive);
        EXPECT(slice_is(message->path, "/a%20b/c"));
        EXPECT(slice_is(message->query, "x=1&y=2"));
        EXPECT_STR_EQ("bytes=1-2", message->range);
        EXPECT_STR_EQ("then", message->if_modified_since);
        EXPECT_STR_EQ("now", message->if_range);
        http_reader_free(reader);
    }
}

/* Goal: the reader stops behind each message of a pipeline and starts the next
 * one clean.
 * Method: three requests in one buffer; headers of one must not show in
 * another. */
TEST(http_pipeline_is_taken_one_by_one)
{
    static const char text[] =
        "GET /1 HTTP/1.1\r\nHost: a\r\nRange: bytes=0-0\r\n\r\n"
        "HEAD /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
        "GET /3 HTTP/1.0\r\n\r\n";
    struct http_reader *reader = new_reader();
    enum http_progress progress;
    size_t at = 0;

    REQUIRE(reader != NULL);
    const struct http_message *message = http_reader_message(reader);
    at += http_reader_feed(reader, text, sizeof text - 1, &progress);
    EXPECT_EQ(HTTP_PROGRESS_DONE, (int)progress);
    EXPECT(slice_is(message->path, "/1"));
    EXPECT_STR_EQ("bytes=0-0", message->range);
    EXPECT(message->keep_alive);

    at += http_reader_feed(reader, text + at, sizeof text - 1 - at, &progress);
    EXPECT_EQ(HTTP_PROGRESS_DONE, (int)progress);
    EXPECT(slice_is(message->path, "/2"));
    EXPECT(message->is_head);
    EXPECT_STR_EQ("", message->range);
    EXPECT_EQ(5, message->body_bytes);

    at += http_reader_feed(reader, text + at, sizeof text - 1 - at, &progress);
    EXPECT_EQ(HTTP_PROGRESS_DONE, (int)progress);
    EXPECT(slice_is(message->path, "/3"));
    EXPECT(message->is_http_1_0);
    EXPECT(!message->keep_alive);
    EXPECT_EQ(sizeof text - 1, at);
    http_reader_free(reader);
}

struct broken_case {
    const char *text;
    int status;
};

static void check_broken(const struct broken_case *c)
{
    struct http_reader *reader = new_reader();

    REQUIRE(reader != NULL);
    EXPECT_EQ(HTTP_PROGRESS_BROKEN, (int)feed(reader, c->text, 16));
    EXPECT_EQ(c->status, http_reader_error(reader));
    http_reader_free(reader);
}

/* Goal: each kind of nonsense gets its own status.
 * Method: a table. */
TEST(http_nonsense_has_a_status)
{
    static const struct broken_case cases[] = {
        {"hello\r\n\r\n", 400},
        {"\x16\x03\x01", 400},
        {"GET  HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n\r\n", 400}, /* no host */
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nBad Name: b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\x01\r\n\r\n", 400},
        {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n", 413},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
         "Transfer-Encoding: chunked\r\n\r\n",
         400},
        {"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
         "zz\r\n",
         400},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_broken(&cases[i]);
}

/* Goal: a NUL cannot hide in a request.
 * Method: one in the target and one in a header. */
TEST(http_nul_is_refused)
{
    static const char in_target[] = "GET /a\0b HTTP/1.1\r\nHost: a\r\n\r\n";
    static const char in_header[] = "GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n";
    enum http_progress progress;
    struct http_reader *reader = new_reader();

    REQUIRE(reader != NULL);
    (void)http_reader_feed(reader, in_target, sizeof in_target - 1, &progress);
    EXPECT_EQ(HTTP_PROGRESS_BROKEN, (int)progress);
    EXPECT_EQ(400, http_reader_error(reader));
    http_reader_free(reader);

    reader = new_reader();
    REQUIRE(reader != NULL);
    (void)http_reader_feed(reader, in_header, sizeof in_header - 1, &progress);
    EXPECT_EQ(HTTP_PROGRESS_BROKEN, (int)progress);
    EXPECT_EQ(400, http_reader_error(reader));
    http_reader_free(reader);
}

/* Goal: endless headers, targets and bodies are cut.
 * Method: more of each than the limits allow. */
TEST(http_excess_is_refused)
{
    enum { BIG = 8000 };
    char *text = malloc(BIG + 128);
    struct broken_case c = {text, 431};

    REQUIRE(text != NULL);
    int len = sprintf(text, "GET / HTTP/1.1\r\nHost: a\r\nX: ");
    memset(text + len, 'x', BIG);
    strcpy(text + len + BIG, "\r\n\r\n");
    check_broken(&c);

    len = sprintf(text, "GET / HTTP/1.1\r\nHost: a\r\n"
                        "Transfer-Encoding: chunked\r\n\r\nff\r\n");
    memset(text + len, 'x', 255);
    strcpy(text + len + 255, "\r\n0\r\n\r\n");
    c.status = 413;
    check_broken(&c);

    /* The header limit must not hide the target's own. */
    static const struct http_limits wide = {.header_bytes = 1 << 20};
    struct http_reader *reader = http_reader_new(HTTP_KIND_REQUEST, &wide);
    REQUIRE(reader != NULL);
    len = sprintf(text, "GET /");
    memset(text + len, 'x', BIG);
    strcpy(text + len + BIG, " HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(HTTP_PROGRESS_BROKEN, (int)feed(reader, text, 100));
    EXPECT_EQ(414, http_reader_error(reader));
    http_reader_free(reader);
    free(text);
}

/* Goal: values that are given twice or are too long count as absent.
 * Method: two ranges; a range longer than its place; a trailer. */
TEST(http_dubious_values_are_dropped)
{
    char text[512];
    char digits[HTTP_VALUE_SIZE + 1];
    struct http_reader *reader = new_reader();

    REQUIRE(reader != NULL);
    const struct http_message *message = http_reader_message(reader);
    EXPECT_EQ(HTTP_PROGRESS_DONE,
              (int)feed(reader,
                        "GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1\r\n"
                        "Range: bytes=2-3\r\n\r\n",
                        7));
    EXPECT_STR_EQ("", message->range);

    memset(digits, '1', sizeof digits - 1);
    digits[sizeof digits - 1] = '\0';
    (void)snprintf(text, sizeof text,
                   "GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=%s-\r\n\r\n",
                   digits);
    EXPECT_EQ(HTTP_PROGRESS_DONE, (int)feed(reader, text, 11));
    EXPECT_STR_EQ("", message->range);

    EXPECT_EQ(HTTP_PROGRESS_DONE, (int)feed(reader,
                                            "GET / HTTP/1.1\r\nHost: a\r\n"
                                            "Transfer-Encoding: chunked\r\n\r\n"
                                            "0\r\nRange: bytes=0-1\r\n\r\n",
                                            5));
    EXPECT_STR_EQ("", message->range);
    http_reader_free(reader);
}

/* Goal: a body that waits for "100 Continue" is not waited for.
 * Method: such a request is done after its head, and ends the connection;
 * without a body the header means nothing. */
TEST(http_expect_with_body_ends_after_head)
{
    struct http_reader *reader = new_reader();

    REQUIRE(reader != NULL);
    const struct http_message *message = http_reader_message(reader);
    EXPECT_EQ(HTTP_PROGRESS_DONE, (int)feed(reader,
                                            "GET / HTTP/1.1\r\nHost: a\r\n"
                                            "Expect: 100-continue\r\n\r\n",
                                            9));
    EXPECT(message->keep_alive);
    EXPECT_EQ(HTTP_PROGRESS_DONE,
              (int)feed(reader,
                        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
                        "Expect: 100-continue\r\n\r\n",
                        9));
    EXPECT(!message->keep_alive);
    http_reader_free(reader);
}

/* Goal: the offer of another protocol is passed over.
 * Method: a request that would upgrade, followed by another one. */
TEST(http_upgrade_is_ignored)
{
    struct http_reader *reader = new_reader();

    REQUIRE(reader != NULL);
    EXPECT_EQ(HTTP_PROGRESS_DONE,
              (int)feed(reader,
                        "GET /1 HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\n"
                        "Connection: Upgrade\r\n\r\n",
                        100));
    EXPECT(http_reader_message(reader)->keep_alive);
    EXPECT_EQ(HTTP_PROGRESS_DONE,
              (int)feed(reader, "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n", 100));
    EXPECT(slice_is(http_reader_message(reader)->path, "/2"));

    /* A tunnel that is not opened: what follows is a body, not a request. */
    EXPECT_EQ(HTTP_PROGRESS_DONE,
              (int)feed(reader,
                        "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n"
                        "Content-Length: 5\r\n\r\nGET /",
                        100));
    EXPECT_EQ(5, http_reader_message(reader)->body_bytes);
    http_reader_free(reader);
}

/* Goal: the absolute form of a target is understood.
 * Method: with and without a path. */
TEST(http_absolute_target_has_a_path)
{
    struct http_reader *reader = new_reader();

    REQUIRE(reader != NULL);
    const struct http_message *message = http_reader_message(reader);
    EXPECT_EQ(HTTP_PROGRESS_DONE,
              (int)feed(reader,
                        "GET http://a:80/x/y?z HTTP/1.1\r\nHost: a\r\n\r\n",
                        100));
    EXPECT(slice_is(message->path, "/x/y"));
    EXPECT(slice_is(message->query, "z"));
    EXPECT_EQ(
        HTTP_PROGRESS_DONE,
        (int)feed(reader, "GET http://a HTTP/1.1\r\nHost: a\r\n\r\n", 100));
    EXPECT(slice_is(message->path, "/"));
    http_reader_free(reader);
}

/* Goal: answers of all three kinds of length are read.
 * Method: by length, in chunks after an announcement, by the end of the
 * stream; and one that breaks off. */
TEST(http_response_lengths)
{
    struct http_reader *reader = http_reader_new(HTTP_KIND_RESPONSE, NULL);

    REQUIRE(reader != NULL);
    const struct http_message *message = http_reader_message(reader);
    EXPECT_EQ(HTTP_PROGRESS_DONE,
              (int)feed(reader,
                        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
                        3));
    EXPECT_EQ(200, message->status);
    EXPECT_EQ(5, message->body_bytes);
    EXPECT(message->keep_alive);
    EXPECT_EQ(HTTP_PROGRESS_DONE, (int)feed(reader,
                                            "HTTP/1.1 100 Continue\r\n\r\n"
                                            "HTTP/1.1 404 Not Found\r\n"
                                            "Transfer-Encoding: chunked\r\n\r\n"
                                            "3\r\nabc\r\n0\r\n\r\n",
                                            3));
    EXPECT_EQ(404, message->status);
    EXPECT_EQ(3, message->body_bytes);
    EXPECT_EQ(HTTP_PROGRESS_MORE,
              (int)feed(reader, "HTTP/1.1 200 OK\r\n\r\nto the end", 3));
    EXPECT_EQ(HTTP_PROGRESS_DONE, (int)http_reader_end(reader));
    EXPECT_EQ(10, message->body_bytes);
    EXPECT(!message->keep_alive);
    http_reader_free(reader);

    reader = http_reader_new(HTTP_KIND_RESPONSE, NULL);
    REQUIRE(reader != NULL);
    EXPECT_EQ(HTTP_PROGRESS_MORE,
              (int)feed(reader,
                        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", 3));
    EXPECT_EQ(HTTP_PROGRESS_BROKEN, (int)http_reader_end(reader));
    http_reader_free(reader);
}

/* Goal: URLs come apart; others are refused.
 * Method: each optional part present and absent. */
TEST(http_url_comes_apart)
{
    struct http_url url;

    EXPECT(http_url_parse("http://127.0.0.1:8080/a/b?c=d", &url));
    EXPECT_STR_EQ("127.0.0.1", url.host);
    EXPECT_EQ(8080, url.port);
    EXPECT(!url.is_v6);
    EXPECT(slice_is(url.target, "/a/b?c=d"));
    EXPECT(http_url_parse("http://[::1]", &url));
    EXPECT_STR_EQ("::1", url.host);
    EXPECT_EQ(80, url.port);
    EXPECT(url.is_v6);
    EXPECT(slice_is(url.target, "/"));
    EXPECT(http_url_parse("HTTP://localhost/x", &url));
    EXPECT(!http_url_parse("https://127.0.0.1/", &url));
    EXPECT(!http_url_parse("127.0.0.1:8080", &url));
    EXPECT(!http_url_parse("/a/b", &url));
    EXPECT(!http_url_parse("", &url));
    EXPECT(!http_url_parse("http://127.0.0.1:0/", &url));
    EXPECT(!http_url_parse("http://127.0.0.1:70000/", &url));
    EXPECT(!http_url_parse("http:///x", &url));
}
