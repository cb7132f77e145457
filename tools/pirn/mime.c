/* SPDX-License-Identifier: MIT */
/* tools/pirn/mime.c - a table of extensions, sorted for the search. */
#include "mime.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct mime {
    const char *extension;
    const char *type;
};

#define PLAIN "text/plain; charset=utf-8"

static const struct mime table[] = {
    {"7z", "application/x-7z-compressed"},
    {"aac", "audio/aac"},
    {"avif", "image/avif"},
    {"bmp", "image/bmp"},
    {"bz2", "application/x-bzip2"},
    {"c", PLAIN},
    {"cc", PLAIN},
    {"conf", PLAIN},
    {"cpp", PLAIN},
    {"css", "text/css; charset=utf-8"},
    {"csv", "text/csv; charset=utf-8"},
    {"flac", "audio/flac"},
    {"gif", "image/gif"},
    {"gz", "application/gzip"},
    {"h", PLAIN},
    {"htm", "text/html; charset=utf-8"},
    {"html", "text/html; charset=utf-8"},
    {"ico", "image/vnd.microsoft.icon"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript; charset=utf-8"},
    {"json", "application/json"},
    {"log", PLAIN},
    {"md", "text/markdown; charset=utf-8"},
    {"mjs", "text/javascript; charset=utf-8"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"oga", "audio/ogg"},
    {"ogg", "audio/ogg"},
    {"ogv", "video/ogg"},
    {"opus", "audio/ogg"},
    {"otf", "font/otf"},
    {"pdf", "application/pdf"},
    {"png", "image/png"},
    {"py", PLAIN},
    {"s", PLAIN},
    {"sh", PLAIN},
    {"svg", "image/svg+xml"},
    {"tar", "application/x-tar"},
    {"tgz", "application/gzip"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"toml", PLAIN},
    {"ttf", "font/ttf"},
    {"txt", PLAIN},
    {"wasm", "application/wasm"},
    {"wav", "audio/wav"},
    {"webm", "video/webm"},
    {"webmanifest", "application/manifest+json"},
    {"webp", "image/webp"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"xhtml", "application/xhtml+xml"},
    {"xml", "application/xml"},
    {"xz", "application/x-xz"},
    {"yaml", PLAIN},
    {"yml", PLAIN},
    {"zip", "application/zip"},
    {"zst", "application/zstd"},
};

static int compare(const void *extension, const void *entry)
{
    const struct mime *mime = entry;

    return strcasecmp(extension, mime->extension);
}

const char *mime_type_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    const char *dot = strrchr(name, '.');
    const struct mime *found = NULL;

    /* A dot at the start makes a hidden file, not an extension. */
    if (dot != NULL && dot != name)
        found = bsearch(dot + 1, table, sizeof table / sizeof table[0],
                        sizeof table[0], compare);
    return found == NULL ? "application/octet-stream" : found->type;
}
