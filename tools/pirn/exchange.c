/* SPDX-License-Identifier: MIT */
/* tools/pirn/exchange.c - from a request to the bytes of its answer.
 *
 * The decision (what to send) fills a struct answer; sending comes after it.
 * Head and small bodies leave in one writev(); large files go by sendfile(), and
 * their head with the first bytes. */
#include "exchange.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "file.h"
#include "mime.h"
#include "path.h"
#include "range.h"

enum {
    HEAD_SIZE = 2048,
    LOCATION_SIZE = 1024,
    NOTE_SIZE = 64,                 /* the body of an error */
    SMALL_FILE_SIZE = 64 * 1024,    /* read and sent in one piece */
    SENDFILE_SIZE = 4 * 1024 * 1024 /* must be sent within the idle time */
};

struct answer {
    int status;
    struct file file; /* fd -1: no file */
    const char *type;
    struct range part; /* of the file: what is sent */
    char location[LOCATION_SIZE];
};

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } table[] = {
        {200, "OK"},
        {206, "Partial Content"},
        {301, "Moved Permanently"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {416, "Range Not Satisfiable"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].status == status)
            return table[i].reason;
    }
    return "Error";
}

/* What a failure to open a file means to the client.  A link that leads out of
 * the root is not there for it. */
static int status_of(int rc)
{
    switch (rc) {
    case -ENOENT:
    case -ENOTDIR:
    case -EXDEV:
    case -ELOOP:
    case -ENAMETOOLONG:
    case -EINVAL:
    case -ENXIO:
        return 404;
    case -EACCES:
    case -EPERM:
        return 403;
    case -EAGAIN:
    case -EMFILE:
    case -ENFILE:
    case -ENOMEM:
        return 503;
    default:
        return 500;
    }
}

static bool is_unmodified(const struct exchange *exchange,
                          const struct file *file)
{
    int64_t since;

    return exchange->message->if_modified_since[0] != '\0' &&
           date_parse(exchange->message->if_modified_since, &since) &&
           file->modified <= since;
}

/* A range with a condition holds only for the very file the client has a part
 * of; a condition that is no date is a tag, which this server gives to none. */
static bool wants_range(const struct exchange *exchange,
                        const struct file *file)
{
    const struct http_message *message = exchange->message;
    int64_t since;

    if (!message->is_get || message->range[0] == '\0')
        return false;
    if (message->if_range[0] == '\0')
        return true;
    return date_parse(message->if_range, &since) && since == file->modified;
}

static int choose_part(const struct exchange *exchange, struct answer *answer)
{
    const struct file *file = &answer->file;

    answer->part.offset = 0;
    answer->part.count = file->size;
    if (is_unmodified(exchange, file))
        return 304;
    if (!wants_range(exchange, file))
        return 200;
    switch (range_parse(exchange->message->range, file->size, &answer->part)) {
    case RANGE_PART:
        return 206;
    case RANGE_UNSATISFIABLE:
        return 416;
    case RANGE_WHOLE:
        break;
    }
    return 200;
}

static int redirect(const struct exchange *exchange, const struct path *path,
                    struct answer *answer)
{
    const struct http_slice *query = &exchange->message->query;

    if (!path_to_folder_url(path, answer->location, LOCATION_SIZE))
        return 404;
    if (query->text == NULL)
        return 301;
    size_t used = strlen(answer->location);
    if (query->len + 2 > LOCATION_SIZE - used)
        return 404;
    answer->location[used] = '?';
    memcpy(answer->location + used + 1, query->text, query->len);
    answer->location[used + 1 + query->len] = '\0';
    return 301;
}

/* Find what the path names: a file, or the index of a folder. */
static int open_answer(const struct exchange *exchange, struct path *path,
                       struct answer *answer)
{
    int root_fd = exchange->site->root_fd;
    int rc = file_open(root_fd, path->text, &answer->file);

    if (rc < 0)
        return status_of(rc);
    if (answer->file.is_folder && !path->is_folder)
        return redirect(exchange, path, answer);
    if (answer->file.is_folder) {
        file_close(&answer->file);
        if (!path_append(path, "index.html"))
            return 404;
        rc = file_open(root_fd, path->text, &answer->file);
        if (rc < 0)
            return status_of(rc);
    } else if (path->is_folder) {
        return 404;
    }
    if (!answer->file.is_regular)
        return 404;
    answer->type = mime_type_of(path->text);
    return choose_part(exchange, answer);
}

/* The status; for those below 400 but 301 a file is open. */
static int decide(const struct exchange *exchange, struct answer *answer)
{
    const struct http_message *message = exchange->message;
    struct path path;

    answer->file.fd = -1;
    if (!message->is_get && !message->is_head)
        return 405;
    if (!path_from_url(message->path.text, message->path.len, &path))
        return 400;
    return open_answer(exchange, &path, answer);
}

/* As many deadlines as it takes: a peer that reads slowly is served, one that
 * does not read at all is not. */
static int send_all(struct exchange *exchange, struct iovec *vec, int count)
{
    while (count > 0) {
        ssize_t n = pirn_tcp_writev(exchange->tcp, vec, count,
                                    pirn_after_ms(exchange->site->idle_ms));

        if (n < 0)
            return (int)n;
        size_t sent = (size_t)n;
        while (count > 0 && sent >= vec->iov_len) {
            sent -= vec->iov_len;
            vec++;
            count--;
        }
        if (count > 0) {
            vec->iov_base = (char *)vec->iov_base + sent;
            vec->iov_len -= sent;
        }
    }
    return 0;
}

/* What comes before the bytes of a file. */
static int send_ahead(struct exchange *exchange, const pirn_text *head)
{
    size_t sent = 0;

    while (sent < head->len) {
        ssize_t n = pirn_tcp_write_more(exchange->tcp, head->buf + sent,
                                        head->len - sent,
                                        pirn_after_ms(exchange->site->idle_ms));

        if (n < 0)
            return (int)n;
        sent += (size_t)n;
    }
    return 0;
}

static void append_connection(const struct exchange *exchange, pirn_text *head)
{
    if (!exchange->keep_alive)
        pirn_text_append(head, "Connection: close\r\n");
    else if (exchange->message != NULL && exchange->message->is_http_1_0)
        pirn_text_append(head, "Connection: keep-alive\r\n");
}

static void append_file(const struct answer *answer, pirn_text *head)
{
    char modified[DATE_SIZE];

    date_format(answer->file.modified, modified);
    pirn_text_append(head, "Last-Modified: %s\r\n", modified);
    if (answer->status == 304)
        return;
    pirn_text_append(head,
                     "Accept-Ranges: bytes\r\nContent-Type: %s\r\n"
                     "Content-Length: %" PRIu64 "\r\n",
                     answer->type, answer->part.count);
    if (answer->status == 206)
        pirn_text_append(
            head,
            "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n",
            answer->part.offset, answer->part.offset + answer->part.count - 1,
            answer->file.size);
}

static void append_special(const struct answer *answer, pirn_text *head)
{
    switch (answer->status) {
    case 301:
        pirn_text_append(head, "Location: %s\r\n", answer->location);
        break;
    case 405:
        pirn_text_append(head, "Allow: GET, HEAD\r\n");
        break;
    case 416:
        pirn_text_append(head, "Content-Range: bytes */%" PRIu64 "\r\n",
                         answer->file.size);
        break;
    case 503:
        pirn_text_append(head, "Retry-After: 1\r\n");
        break;
    default:
        break;
    }
}

static void begin_head(const struct exchange *exchange, int status,
                       pirn_text *head)
{
    head->len = 0;
    pirn_text_append(head, "HTTP/1.1 %d %s\r\nServer: pirn\r\nDate: %s\r\n",
                     status, reason_of(status), date_now(exchange->date));
    append_connection(exchange, head);
}

static bool is_head_request(const struct exchange *exchange)
{
    return exchange->message != NULL && exchange->message->is_head;
}

/* An answer without a file: its body is its own name. */
static int send_note(struct exchange *exchange, const struct answer *answer)
{
    char head_buf[HEAD_SIZE];
    char note[NOTE_SIZE];
    pirn_text head = {.buf = head_buf, .size = sizeof head_buf, .len = 0};
    int note_len = snprintf(note, sizeof note, "%d %s\n", answer->status,
                            reason_of(answer->status));

    begin_head(exchange, answer->status, &head);
    append_special(answer, &head);
    pirn_text_append(&head,
                     "Content-Type: text/plain; charset=utf-8\r\n"
                     "Content-Length: %d\r\n\r\n",
                     note_len);
    struct iovec vec[] = {
        {.iov_base = head.buf, .iov_len = head.len},
        {.iov_base = note, .iov_len = (size_t)note_len},
    };
    bool has_body = !is_head_request(exchange);
    int rc = send_all(exchange, vec, has_body ? 2 : 1);
    if (rc == 0 && has_body)
        exchange->sent = (uint64_t)note_len;
    return rc;
}

/* Head and body in one writev(). */
static int send_small(struct exchange *exchange, const struct answer *answer,
                      pirn_text *head)
{
    size_t count = (size_t)answer->part.count;
    char *body = malloc(count);

    if (body == NULL)
        return exchange_refuse(exchange, 503);
    int64_t n = file_read(&answer->file, answer->part.offset, body, count);
    if (n != (int64_t)count) {
        /* It failed, or somebody cut the file short after it was measured. */
        free(body);
        if (n == -ECANCELED)
            return -ECANCELED;
        return exchange_refuse(exchange, n < 0 ? status_of((int)n) : 500);
    }
    struct iovec vec[] = {
        {.iov_base = head->buf, .iov_len = head->len},
        {.iov_base = body, .iov_len = count},
    };
    int rc = send_all(exchange, vec, 2);
    free(body);
    if (rc == 0)
        exchange->sent = count;
    return rc;
}

/* In pieces, each with a deadline of its own; an expired one counts only if
 * nothing at all was sent. */
static int send_large(struct exchange *exchange, const struct answer *answer)
{
    uint64_t left = answer->part.count;
    int64_t offset = (int64_t)answer->part.offset;

    while (left > 0) {
        size_t count = left < SENDFILE_SIZE ? (size_t)left : SENDFILE_SIZE;
        int64_t before = offset;
        int rc =
            pirn_tcp_sendfile(exchange->tcp, answer->file.fd, &offset, count,
                              pirn_after_ms(exchange->site->idle_ms));
        uint64_t sent = (uint64_t)(offset - before);

        exchange->sent += sent;
        left -= sent;
        if (rc < 0 && !(rc == -ETIMEDOUT && sent > 0))
            return rc;
    }
    return 0;
}

static int send_file(struct exchange *exchange, const struct answer *answer)
{
    char head_buf[HEAD_SIZE];
    pirn_text head = {.buf = head_buf, .size = sizeof head_buf, .len = 0};
    uint64_t count = answer->part.count;
    bool has_body =
        answer->status != 304 && !is_head_request(exchange) && count > 0;

    begin_head(exchange, answer->status, &head);
    append_file(answer, &head);
    pirn_text_append(&head, "\r\n");
    if (has_body && count <= SMALL_FILE_SIZE)
        return send_small(exchange, answer, &head);

    if (!has_body) {
        struct iovec vec = {.iov_base = head.buf, .iov_len = head.len};

        return send_all(exchange, &vec, 1);
    }
    int rc = send_ahead(exchange, &head);
    return rc < 0 ? rc : send_large(exchange, answer);
}

int exchange_answer(struct exchange *exchange)
{
    struct answer answer;
    int rc;

    answer.status = decide(exchange, &answer);
    exchange->status = answer.status;
    exchange->sent = 0;
    if (answer.status == 200 || answer.status == 206 || answer.status == 304)
        rc = send_file(exchange, &answer);
    else
        rc = send_note(exchange, &answer);
    file_close(&answer.file);
    return rc;
}

int exchange_refuse(struct exchange *exchange, int status)
{
    struct answer answer;

    answer.status = status;
    answer.file.fd = -1;
    exchange->status = status;
    exchange->sent = 0;
    return send_note(exchange, &answer);
}
