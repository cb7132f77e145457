/* SPDX-License-Identifier: MIT */
/* tools/pirn/path.h - from the path of a URL to a path below the root folder.
 *
 *     "/docs/../a%20b//c.txt"  ->  "a b/c.txt"
 *
 * Escapes are decoded first, so that "%2e%2e%2f" is as harmless as "../"; then
 * "." and ".." are resolved as RFC 3986 has it: what would leave the root stays
 * at the root.  The result never starts with a slash and has no empty, "." or
 * ".." component.
 */
#ifndef PIRN_TOOLS_PATH_H
#define PIRN_TOOLS_PATH_H

#include <stdbool.h>
#include <stddef.h>

enum { PATH_TEXT_SIZE = 4096 + 16 };

struct path {
    char text[PATH_TEXT_SIZE]; /* "" is the root itself */
    size_t len;
    bool is_folder; /* the URL said so, by a slash or a dot at its end */
};

/* False if the path does not start with a slash, has a broken escape or a NUL,
 * escaped or not, or is too long. */
bool path_from_url(const char *url_path, size_t len, struct path *out);

/* Append a component; false if it does not fit. */
bool path_append(struct path *path, const char *component);

/* Write the path as the URL of a folder, "/a%20b/"; false if it does not
 * fit. */
bool path_to_folder_url(const struct path *path, char *buf, size_t size);

#endif /* PIRN_TOOLS_PATH_H */
