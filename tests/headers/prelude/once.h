/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/once.h takes for granted. */
struct config {
    int value;
};
extern int rc;
extern int load_config(void *arg);
extern void use(struct config *config);
