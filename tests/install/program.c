/* SPDX-License-Identifier: MIT */
/* tests/install/program.c - a program that has nothing but what is installed.
 */
#include <pirn/pirn.h>

#include <stdio.h>

int main(void)
{
    printf("%s\n", pirn_version());
    return pirn_err_category(0) == PIRN_CATEGORY_NONE ? 0 : 1;
}
