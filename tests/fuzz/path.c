/* SPDX-License-Identifier: MIT */
/* tests/fuzz/path.c - from a URL to a path below the root, and never out of it. */
#include "../../tools/pirn/path.h"

#include "fuzz/fuzz.h"

static void expect_below_root(const struct path *path)
{
    const char *part = path->text;

    FUZZ_EXPECT(path->len == strlen(path->text));
    while (*part != '\0') {
        size_t len = strcspn(part, "/");

        FUZZ_EXPECT(len != 0);
        FUZZ_EXPECT(!(len == 1 && part[0] == '.'));
        FUZZ_EXPECT(!(len == 2 && part[0] == '.' && part[1] == '.'));
        FUZZ_EXPECT(part[len] == '\0' || part[len + 1] != '\0');
        part += len + (part[len] == '/');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct path path;
    static struct path copy;
    static char url[3 * PATH_TEXT_SIZE + 8];
    char *text = fuzz_text(data, size);

    if (path_from_url(text, size, &path)) {
        expect_below_root(&path);
        if (path_to_folder_url(&path, url, sizeof url)) {
            FUZZ_EXPECT(path_from_url(url, strlen(url), &copy));
            FUZZ_EXPECT(strcmp(path.text, copy.text) == 0);
            FUZZ_EXPECT(copy.is_folder);
        }
    }
    free(text);
    return 0;
}
