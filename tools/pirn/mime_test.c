/* SPDX-License-Identifier: MIT */
/* tools/pirn/mime_test.c - content types. */
#include "mime.h"

#include "engine/test.h"

/* Goal: the search finds what is in the table.
 * Method: the first, the last and some between; a table out of order loses
 * some of them. */
TEST(mime_known_extension_is_found)
{
    EXPECT_STR_EQ("application/x-7z-compressed", mime_type_of("a.7z"));
    EXPECT_STR_EQ("application/zstd", mime_type_of("a.zst"));
    EXPECT_STR_EQ("text/html; charset=utf-8", mime_type_of("index.html"));
    EXPECT_STR_EQ("text/css; charset=utf-8", mime_type_of("x/y/z.css"));
    EXPECT_STR_EQ("image/png", mime_type_of("LOGO.PNG"));
    EXPECT_STR_EQ("font/woff", mime_type_of("a.woff"));
    EXPECT_STR_EQ("font/woff2", mime_type_of("a.woff2"));
    EXPECT_STR_EQ("text/plain; charset=utf-8", mime_type_of("src/a.c"));
    EXPECT_STR_EQ("text/plain; charset=utf-8", mime_type_of("a.h"));
    EXPECT_STR_EQ("text/markdown; charset=utf-8", mime_type_of("README.md"));
    EXPECT_STR_EQ("application/gzip", mime_type_of("a.tar.gz"));
    EXPECT_STR_EQ("text/javascript; charset=utf-8", mime_type_of("a.mjs"));
    EXPECT_STR_EQ("image/svg+xml", mime_type_of("a.svg"));
}

/* Goal: everything else is bytes.
 * Method: no extension, an unknown one, hidden files, a dot in a folder. */
TEST(mime_unknown_extension_is_bytes)
{
    static const char bytes[] = "application/octet-stream";

    EXPECT_STR_EQ(bytes, mime_type_of("Makefile"));
    EXPECT_STR_EQ(bytes, mime_type_of(""));
    EXPECT_STR_EQ(bytes, mime_type_of("a."));
    EXPECT_STR_EQ(bytes, mime_type_of("a.unheard"));
    EXPECT_STR_EQ(bytes, mime_type_of(".html"));
    EXPECT_STR_EQ(bytes, mime_type_of("a.html/b"));
    EXPECT_STR_EQ(bytes, mime_type_of("a.html "));
}
