/* SPDX-License-Identifier: MIT */
/* tools/pirn/path.c - decoding, normalising and encoding of URL paths. */
#include "path.h"

#include <string.h>

/* -1 for what is no hexadecimal digit. */
static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Decode the escape at `text`, which has `len` bytes left; -1 if it is broken
 * or a NUL. */
static int decode_escape(const char *text, size_t len)
{
    if (len < 3)
        return -1;
    int high = hex_value(text[1]);
    int low = hex_value(text[2]);
    if (high < 0 || low < 0 || high + low == 0)
        return -1;
    return high * 16 + low;
}

/* Undo the escapes into `out`, which is as large as the input; false if one is
 * broken, or at a NUL, behind which nobody would look. */
static bool decode(const char *text, size_t len, char *out, size_t *out_len)
{
    size_t used = 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\0')
            return false;
        if (text[i] != '%') {
            out[used++] = text[i];
            continue;
        }
        int byte = decode_escape(text + i, len - i);
        if (byte < 0)
            return false;
        out[used++] = (char)byte;
        i += 2;
    }
    *out_len = used;
    return true;
}

static void drop_last_component(struct path *path)
{
    while (path->len > 0 && path->text[path->len - 1] != '/')
        path->len--;
    if (path->len > 0)
        path->len--;
    path->text[path->len] = '\0';
}

/* Fits always: the decoded path is at least as long. */
static void add_component(struct path *path, const char *component, size_t len)
{
    if (path->len > 0)
        path->text[path->len++] = '/';
    memcpy(path->text + path->len, component, len);
    path->len += len;
    path->text[path->len] = '\0';
}

static bool is_dot(const char *component, size_t len)
{
    return len == 1 && component[0] == '.';
}

static bool is_dot_dot(const char *component, size_t len)
{
    return len == 2 && component[0] == '.' && component[1] == '.';
}

bool path_from_url(const char *url_path, size_t len, struct path *out)
{
    char decoded[PATH_TEXT_SIZE];
    size_t decoded_len;

    out->text[0] = '\0';
    out->len = 0;
    out->is_folder = false;
    if (len == 0 || url_path[0] != '/' || len >= PATH_TEXT_SIZE)
        return false;
    if (!decode(url_path, len, decoded, &decoded_len))
        return false;

    const char *end = decoded + decoded_len;
    for (const char *at = decoded; at < end;) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        const char *stop = slash == NULL ? end : slash;
        size_t size = (size_t)(stop - at);

        out->is_folder = slash != NULL || size == 0 || is_dot(at, size) ||
                         is_dot_dot(at, size);
        if (is_dot_dot(at, size))
            drop_last_component(out);
        else if (size > 0 && !is_dot(at, size))
            add_component(out, at, size);
        at = slash == NULL ? end : slash + 1;
    }
    return true;
}

bool path_append(struct path *path, const char *component)
{
    size_t len = strlen(component);

    if (path->len + 1 + len >= PATH_TEXT_SIZE)
        return false;
    add_component(path, component, len);
    return true;
}

/* Bytes that stand for themselves in the path of a URL. */
static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~!$&'()*+,;=:@/", c) != NULL);
}

bool path_to_folder_url(const struct path *path, char *buf, size_t size)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t used = 0;

    if (size < 3)
        return false;
    buf[used++] = '/';
    for (size_t i = 0; i < path->len; i++) {
        unsigned char byte = (unsigned char)path->text[i];

        /* An escape, the closing slash and the NUL must still fit. */
        if (size - used < 5)
            return false;
        if (is_plain(path->text[i])) {
            buf[used++] = path->text[i];
            continue;
        }
        buf[used++] = '%';
        buf[used++] = digits[byte >> 4];
        buf[used++] = digits[byte & 15];
    }
    if (path->len > 0)
        buf[used++] = '/';
    buf[used] = '\0';
    return true;
}
