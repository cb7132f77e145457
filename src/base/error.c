/* SPDX-License-Identifier: MIT */
/* src/base/error.c - names, texts and categories of results. */
#include "base/error.h"

enum {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_CANCELLED = 130, /* 128 + SIGINT */
};

const char *pirn_err_name(int rc)
{
#define ROW(code, name, text, category) \
    case code: \
        return name;
    if (rc >= 0)
        return "OK";
    switch (rc) {
        PIRN__ERROR_TABLE(ROW)
    default:
        return "UNKNOWN";
    }
#undef ROW
}

const char *pirn_err_text(int rc)
{
#define ROW(code, name, text, category) \
    case code: \
        return text;
    if (rc >= 0)
        return "success";
    switch (rc) {
        PIRN__ERROR_TABLE(ROW)
    default:
        return "unknown error";
    }
#undef ROW
}

enum pirn_category pirn_err_category(int rc)
{
#define ROW(code, name, text, category) \
    case code: \
        return PIRN_CATEGORY_##category;
    if (rc >= 0)
        return PIRN_CATEGORY_NONE;
    switch (rc) {
        PIRN__ERROR_TABLE(ROW)
    default:
        return PIRN_CATEGORY_SYSTEM;
    }
#undef ROW
}

int pirn_exit_code(int rc)
{
    if (rc >= 0)
        return EXIT_DONE;
    if (pirn_err_category(rc) == PIRN_CATEGORY_CANCELLED)
        return EXIT_CANCELLED;
    return EXIT_FAILED;
}
