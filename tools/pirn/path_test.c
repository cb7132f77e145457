/* SPDX-License-Identifier: MIT */
/* tools/pirn/path_test.c - URL paths that are right, wrong and hostile. */
#include "path.h"

#include "engine/test.h"

struct path_case {
    const char *url;
    const char *expected; /* NULL: refused */
    bool is_folder;
};

static void check(const struct path_case *c)
{
    struct path path;
    bool ok = path_from_url(c->url, strlen(c->url), &path);

    EXPECT_EQ(c->expected != NULL, ok);
    if (!ok || c->expected == NULL)
        return;
    EXPECT_STR_EQ(c->expected, path.text);
    EXPECT_EQ(strlen(c->expected), path.len);
    EXPECT_EQ(c->is_folder, path.is_folder);
}

/* Goal: ordinary paths lose their slash, escapes and detours.
 * Method: a table. */
TEST(path_ordinary_is_normalised)
{
    static const struct path_case cases[] = {
        {"/", "", true},
        {"/a.txt", "a.txt", false},
        {"/docs/", "docs", true},
        {"/docs//guide///x", "docs/guide/x", false},
        {"/./a/./b", "a/b", false},
        {"/a/b/../c", "a/c", false},
        {"/a/b/..", "a", true},
        {"/a/.", "a", true},
        {"/a/..", "", true},
        {"/a%20b", "a b", false},
        {"/%41%4a%4A", "AJJ", false},
        {"/caf%c3%a9", "caf\xc3\xa9", false},
        {"/a+b", "a+b", false},
        {"/100%25", "100%", false},
        {"/%2525", "%25", false},
        {"/...", "...", false},
        {"/..a", "..a", false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(&cases[i]);
}

/* Goal: no spelling of ".." leads above the root.
 * Method: a table of the known tricks; each ends at or below the root. */
TEST(path_hostile_stays_below_root)
{
    static const struct path_case cases[] = {
        {"/../etc/passwd", "etc/passwd", false},
        {"/../../../../etc/passwd", "etc/passwd", false},
        {"/a/../../etc/passwd", "etc/passwd", false},
        {"/%2e%2e/etc/passwd", "etc/passwd", false},
        {"/%2E%2E%2Fetc%2fpasswd", "etc/passwd", false},
        {"/..%2f..%2fetc/passwd", "etc/passwd", false},
        {"/a/.%2e/.%2e/b", "b", false},
        {"//etc/passwd", "etc/passwd", false},
        {"/%2fetc/passwd", "etc/passwd", false},
        {"/..", "", true},
        {"/..\\..\\etc", "..\\..\\etc", false},
        {"/%252e%252e/x", "%2e%2e/x", false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(&cases[i]);
}

/* Goal: what is no path is refused.
 * Method: broken escapes, NUL, no slash, too long. */
TEST(path_broken_is_refused)
{
    static const struct path_case cases[] = {
        {"", NULL, false},      {"a", NULL, false},      {"*", NULL, false},
        {"/%", NULL, false},    {"/%4", NULL, false},    {"/%zz", NULL, false},
        {"/%4g", NULL, false},  {"/a%00b", NULL, false}, {"/a%0", NULL, false},
        {"/%%41", NULL, false},
    };
    char text[PATH_TEXT_SIZE + 1];
    struct path path;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(&cases[i]);

    EXPECT(!path_from_url("/..\0/a", 6, &path));

    memset(text, 'a', sizeof text);
    text[0] = '/';
    EXPECT(path_from_url(text, PATH_TEXT_SIZE - 1, &path));
    EXPECT(!path_from_url(text, PATH_TEXT_SIZE, &path));
}

/* Goal: appending respects the size.
 * Method: append to an ordinary path, and to one that is nearly full. */
TEST(path_append_respects_size)
{
    char text[PATH_TEXT_SIZE];
    struct path path;

    REQUIRE(path_from_url("/docs/", 6, &path));
    EXPECT(path_append(&path, "index.html"));
    EXPECT_STR_EQ("docs/index.html", path.text);
    REQUIRE(path_from_url("/", 1, &path));
    EXPECT(path_append(&path, "index.html"));
    EXPECT_STR_EQ("index.html", path.text);

    memset(text, 'a', sizeof text);
    text[0] = '/';
    REQUIRE(path_from_url(text, PATH_TEXT_SIZE - 1, &path));
    EXPECT(!path_append(&path, "index.html"));
}

/* Goal: a redirect names the same folder, and nothing but a path on this host.
 * Method: encode odd names; a host-like start cannot come out. */
TEST(path_folder_url_is_encoded)
{
    char buf[64];
    struct path path;

    REQUIRE(path_from_url("//evil%0d%0aX:%20y", 18, &path));
    EXPECT(path_to_folder_url(&path, buf, sizeof buf));
    EXPECT_STR_EQ("/evil%0D%0AX:%20y/", buf);
    REQUIRE(path_from_url("/caf%C3%A9/b%3f", 15, &path));
    EXPECT(path_to_folder_url(&path, buf, sizeof buf));
    EXPECT_STR_EQ("/caf%C3%A9/b%3F/", buf);
    REQUIRE(path_from_url("/", 1, &path));
    EXPECT(path_to_folder_url(&path, buf, sizeof buf));
    EXPECT_STR_EQ("/", buf);
    REQUIRE(path_from_url("/abcdefgh", 9, &path));
    EXPECT(!path_to_folder_url(&path, buf, 10));
    EXPECT(path_to_folder_url(&path, buf, 13));
}
