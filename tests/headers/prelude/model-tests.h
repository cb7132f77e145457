/* SPDX-License-Identifier: MIT */
/* What the fragments of docs/guide/model-tests.md take for granted. */
#define PIRN_MODEL
#include "engine/explore.h"
#include "sched/inbox.h"

extern size_t taken_count;
void push_two_more(void *arg);
void take_twice(void *arg);
void take(void);
