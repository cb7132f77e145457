/* SPDX-License-Identifier: MIT */
/* tools/pirn/mime.h - the content type that a file's name suggests. */
#ifndef PIRN_TOOLS_MIME_H
#define PIRN_TOOLS_MIME_H

/* The type for the last extension of `path`, in any case of letters; never
 * NULL. */
const char *mime_type_of(const char *path);

#endif /* PIRN_TOOLS_MIME_H */
