/* SPDX-License-Identifier: MIT */
/* tools/pirn/main.c - the `pirn` command: one word chooses what it does. */
#include <pirn/pirn.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "options.h"

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
};

static const struct command commands[] = {
    {"serve", serve_command},
    {"load", load_command},
};

static const char help[] =
    "usage: pirn serve DIR [OPTION]...   serve the files of a folder by HTTP\n"
    "       pirn load URL [OPTION]...    put a server under load and measure\n"
    "       pirn --version\n"
    "\n"
    "`pirn serve --help` and `pirn load --help` list the options.\n";

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";

    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(word, commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    }
    if (strcmp(word, "--version") == 0) {
        (void)printf("pirn %s\n", pirn_version());
        return 0;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        (void)fputs(help, stdout);
        return 0;
    }
    if (word[0] != '\0')
        (void)fprintf(stderr, "pirn: no command '%s'\n", word);
    (void)fputs(help, stderr);
    return EXIT_USAGE;
}
