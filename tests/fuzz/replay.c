/* SPDX-License-Identifier: MIT */
/* tests/fuzz/replay.c - main() of a fuzzer without libFuzzer: each file that is
 * named, or lies in a folder that is named, once. */
#include "fuzz/fuzz.h"

#include <dirent.h>

enum { INPUT_LIMIT = 1 << 16, PATH_LIMIT = 4096 };

static int replay_file(const char *path)
{
    static uint8_t data[INPUT_LIMIT];
    FILE *file = fopen(path, "rb");
    size_t size;

    if (file == NULL) {
        perror(path);
        return -1;
    }
    size = fread(data, 1, sizeof data, file);
    fclose(file);
    fprintf(stderr, "%s\n", path);
    (void)LLVMFuzzerTestOneInput(data, size);
    return 1;
}

/* How many files; -1 if one cannot be read. */
static int replay(const char *path)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    char name[PATH_LIMIT];
    int count = 0;

    if (dir == NULL)
        return replay_file(path);
    while (count >= 0 && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        count = replay_file(name) < 0 ? -1 : count + 1;
    }
    closedir(dir);
    return count;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (replay(argv[i]) <= 0) {
            fprintf(stderr, "%s: nothing to replay\n", argv[i]);
            return 1;
        }
    }
    return 0;
}
