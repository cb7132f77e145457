/* SPDX-License-Identifier: MIT */
/* tests/sim/serve_request.h - what a client may ask of `pirn serve`, and what
 * it must be told. */
#ifndef PIRN_TESTS_SIM_SERVE_REQUEST_H
#define PIRN_TESTS_SIM_SERVE_REQUEST_H

#include <inttypes.h>

#include "sim/serve_disk.h"

enum { REQUEST_SIZE = 6200, /* more than any limit, and something */
       REQUEST_FIELD_SIZE = 80 };

struct request {
    char text[REQUEST_SIZE];
    size_t len;
    int status; /* of the answer, if nothing goes wrong */
    char field[REQUEST_FIELD_SIZE]; /* what stands in its head, too */
    bool is_head;
    bool is_last;         /* the server closes the connection after it */
    bool reads_disk;      /* so that it can go wrong */
    bool has_part;        /* of a file, as its body */
    enum disk_file file;
    uint32_t first, count;
};

/* Requests without a file, whole. */
static const struct request_form {
    int status;
    bool is_last;
    bool reads_disk;
    const char *text;
    const char *field;
} request_forms[] = {
    {404, false, true, "GET / HTTP/1.1\r\nHost: sim\r\n\r\n", ""},
    {404, false, true, "GET /missing?x HTTP/1.1\r\nHost: sim\r\n\r\n", ""},
    {404, false, true, "GET /small.txt/ HTTP/1.1\r\nHost: sim\r\n\r\n", ""},
    {404, false, true, "GET /out HTTP/1.1\r\nHost: sim\r\n\r\n", ""},
    {404, false, true,
     "GET /%2e%2e/../etc/passwd HTTP/1.1\r\nHost: sim\r\n\r\n", ""},
    {301, false, true, "GET /folder?a=1 HTTP/1.1\r\nHost: sim\r\n\r\n",
     "\r\nLocation: /folder/?a=1\r\n"},
    {404, false, true, "GET /pipe HTTP/1.1\r\nHost: sim\r\n\r\n", ""},
    {404, false, true, "HEAD /missing HTTP/1.1\r\nHost: sim\r\n\r\n", ""},
    {400, false, false, "GET /%zz HTTP/1.1\r\nHost: sim\r\n\r\n", ""},
    {405, false, false,
     "POST /x HTTP/1.1\r\nHost: sim\r\nContent-Length: 5\r\n\r\nhello",
     "\r\nAllow: GET, HEAD\r\n"},
    {405, false, false,
     "PUT /x HTTP/1.1\r\nHost: sim\r\nTransfer-Encoding: chunked\r\n\r\n"
     "3\r\nabc\r\n0\r\n\r\n",
     "\r\nAllow: GET, HEAD\r\n"},
    {405, true, false,
     "POST /x HTTP/1.1\r\nHost: sim\r\nExpect: 100-continue\r\n"
     "Content-Length: 9\r\n\r\n",
     "\r\nAllow: GET, HEAD\r\n"},
    {413, true, false,
     "POST /x HTTP/1.1\r\nHost: sim\r\nContent-Length: 70000\r\n\r\nthe first",
     ""},
    {400, true, false, "\1\2 nonsense \3\r\n\r\nand more of it\r\n", ""},
    {400, true, false, "GET /small.txt HTTP/1.1\r\n\r\n", ""},
    {400, true, false, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", ""},
    {400, true, false,
     "PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
     ""},
    {505, true, false, "GET /small.txt HTTP/2.0\r\nHost: sim\r\n\r\n", ""},
};

enum { REQUEST_FORMS = sizeof request_forms / sizeof request_forms[0] };

static inline void request_form(struct request *request)
{
    const struct request_form *form = &request_forms[sim_below(REQUEST_FORMS)];

    request->len = strlen(form->text);
    memcpy(request->text, form->text, request->len + 1);
    request->status = form->status;
    request->is_last = form->is_last;
    request->reads_disk = form->reads_disk;
    request->is_head = strncmp(form->text, "HEAD", 4) == 0;
    snprintf(request->field, sizeof request->field, "%s", form->field);
}

/* More than the server is ready to read. */
static inline void request_too_large(struct request *request,
                                     uint32_t header_limit)
{
    bool is_path = sim_chance(500);
    uint32_t size = is_path && header_limit > 5000 ? 5000 : header_limit + 500;
    int len = snprintf(request->text, sizeof request->text,
                       is_path ? "GET /%0*d HTTP/1.1\r\nHost: sim\r\n\r\n"
                               : "GET / HTTP/1.1\r\nHost: sim\r\n"
                                 "X: %0*d\r\n\r\n",
                       (int)size, 0);
    request->len = (size_t)len;
    request->status = size > header_limit ? 431 : 414;
    request->is_last = true;
}

/* A part of the file: its header and what is to be expected. */
static inline void request_range(struct request *request, char *field,
                                 size_t size)
{
    uint32_t all = disk_files[request->file].size;
    /* Of a large file often so much that it is sent in pieces. */
    bool is_long = request->file == DISK_LARGE && sim_chance(500);
    uint32_t first = sim_below(is_long ? 1000 : all + all / 4 + 1);
    uint32_t last = first + sim_below(all + 1);

    if (!is_long && first > 0 && sim_chance(200)) {
        uint32_t count = first < all ? first : all;

        snprintf(field, size, "Range: bytes=-%" PRIu32 "\r\n", first);
        first = all - count;
        last = all - 1;
    } else if (is_long || sim_chance(300)) {
        snprintf(field, size, "Range: bytes=%" PRIu32 "-\r\n", first);
        last = all - 1;
    } else {
        snprintf(field, size, "Range: bytes=%" PRIu32 "-%" PRIu32 "\r\n",
                 first, last);
    }
    if (all == 0 || first >= all) {
        request->status = 416;
        request->has_part = false;
        snprintf(request->field, sizeof request->field,
                 "\r\nContent-Range: bytes */%" PRIu32 "\r\n", all);
        return;
    }
    if (last >= all)
        last = all - 1;
    request->status = 206;
    request->first = first;
    request->count = last - first + 1;
    snprintf(request->field, sizeof request->field,
             "\r\nContent-Range: bytes %" PRIu32 "-%" PRIu32 "/%" PRIu32
             "\r\n",
             first, last, all);
}

/* What makes the answer depend on the file's date. */
static inline const char *request_condition(struct request *request)
{
    switch (sim_below(4)) {
    case 0:
        request->status = 304;
        request->has_part = false;
        snprintf(request->field, sizeof request->field,
                 "\r\nLast-Modified: " DISK_DATE "\r\n");
        return "If-Modified-Since: " DISK_DATE "\r\n";
    case 1:
        return "If-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT\r\n";
    case 2:
        return "If-Range: \"a-tag\"\r\nRange: bytes=0-1\r\n";
    default:
        request->status = 206;
        request->first = 1;
        request->count = 1;
        return "If-Range: " DISK_DATE "\r\nRange: bytes=1-1\r\n";
    }
}

static inline void request_file(struct request *request, enum disk_file file)
{
    char range[REQUEST_FIELD_SIZE] = "";
    const char *fields = "";
    bool is_old = sim_chance(100);
    bool keeps = sim_chance(500);

    *request = (struct request){
        .status = 200,
        .reads_disk = true,
        .has_part = true,
        .file = file,
        .count = disk_files[file].size,
    };
    request->is_head = sim_chance(100);
    request->is_last = is_old ? !keeps : sim_chance(100);
    snprintf(request->field, sizeof request->field,
             "\r\nContent-Type: %s", disk_files[file].type);
    if (!request->is_head && sim_chance(400))
        request_range(request, range, sizeof range);
    else if (!request->is_head && request->count > 1 && sim_chance(200))
        fields = request_condition(request);
    int len = snprintf(request->text, sizeof request->text,
                       "%s %s HTTP/1.%d\r\nHost: sim\r\n%s%s%s\r\n",
                       request->is_head ? "HEAD" : "GET", disk_files[file].url,
                       is_old ? 0 : 1, range, fields,
                       is_old && keeps       ? "Connection: keep-alive\r\n"
                       : request->is_last && !is_old ? "Connection: close\r\n"
                                                     : "");
    request->len = (size_t)len;
}

/* Files that a network of this breadth can carry in a while. */
static inline enum disk_file request_some_file(void)
{
    uint32_t buffer = sim_options()->buffer;
    uint32_t files = buffer < 64     ? DISK_MEDIUM
                     : buffer < 1024 ? DISK_LARGE
                                     : DISK_FILES;

    return (enum disk_file)sim_below(files);
}

static inline void request_draw(struct request *request, uint32_t header_limit)
{
    uint32_t kind = sim_below(10);

    *request = (struct request){.status = 0};
    if (kind < 6)
        request_file(request, request_some_file());
    else if (kind < 9 || sim_options()->buffer < 1024)
        request_form(request);
    else
        request_too_large(request, header_limit);
}

#endif /* PIRN_TESTS_SIM_SERVE_REQUEST_H */
