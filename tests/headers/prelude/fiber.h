/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/fiber.h takes for granted. */
extern int rc;
