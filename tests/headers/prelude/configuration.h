/* SPDX-License-Identifier: MIT */
/* What the fragments of docs/guide/configuration.md take for granted. */
#include <inttypes.h>

pirn_fiber_fn service;
