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
#include <pirn/channel.h>
#include <pirn/oneshot.h>
#include <pirn/mpsc.h>
#include <pirn/mpmc.h>
#include <pirn/broadcast.h>
#include <pirn/watch.h>
#include <pirn/promise.h>
#include <pirn/net.h>
#include <pirn/io.h>
#include <pirn/blocking.h>
#include <pirn/sync.h>
#include <pirn/mutex.h>
#include <pirn/rwlock.h>
#include <pirn/sem.h>
#include <pirn/notify.h>
#include <pirn/cond.h>
#include <pirn/barrier.h>
#include <pirn/once.h>
#include <pirn/select.h>
#include <pirn/stream.h>
#include <pirn/channel_stream.h>
#include <pirn/future.h>
#include <pirn/async.h>
#include <pirn/atomic_waker.h>
#include <pirn/waker_set.h>
#include <pirn/waiter.h>
#include <pirn/link.h>
#include <pirn/testing.h>
#include <pirn/sim.h>

#endif /* PIRN_PIRN_H */
