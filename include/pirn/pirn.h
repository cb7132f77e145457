/* SPDX-License-Identifier: MIT */
/* pirn/pirn.h - all of Pirn, in the order in which one would read it. */
#ifndef PIRN_PIRN_H
#define PIRN_PIRN_H

#include <pirn/base.h>
#include <pirn/alloc.h>
#include <pirn/runtime.h>
#include <pirn/fiber.h>
#include <pirn/task.h>
#include <pirn/histogram.h>
#include <pirn/time.h>
#include <pirn/net.h>
#include <pirn/io.h>
#include <pirn/blocking.h>
#include <pirn/future.h>
#include <pirn/async.h>
#include <pirn/link.h>

#endif /* PIRN_PIRN_H */
