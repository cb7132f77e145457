/* SPDX-License-Identifier: MIT */
/* src/sync/rwlock_model.c - readers and writers between threads. */
#include <pirn/rwlock.h>

#include "engine/model_home.h"

static pirn_rwlock lock;
static pirn_rwlock_op ops[2];
static struct model_bell bells[2];
static PIRN_SHARED(int) guarded;

static void write_if_free(void *arg)
{
    (void)arg;
    if (pirn_rwlock_try_write(&lock) < 0)
        return;
    pirn_cell_write(&guarded, pirn_cell_read(&guarded) + 1);
    pirn_rwlock_write_unlock(&lock);
}

static void read_if_free(void *arg)
{
    (void)arg;
    if (pirn_rwlock_try_read(&lock) < 0)
        return;
    EXPLORE_CHECK(pirn_cell_read(&guarded) <= 1);
    pirn_rwlock_read_unlock(&lock);
}

/* Goal: a writer is alone, and readers see what it wrote. */
MODEL(rwlock_writer_against_readers, .preemptions = 3, .stale = 2)
{
    EXPLORE_CHECK(pirn_rwlock_init(&lock, 0) == 0);
    explore_thread(write_if_free, NULL);
    explore_thread(read_if_free, NULL);
    explore_thread(read_if_free, NULL);
    explore_join();
    pirn_rwlock_deinit(&lock);
}

static void downgrade_and_read(void *arg)
{
    (void)arg;
    pirn_cell_write(&guarded, 1);
    pirn_rwlock_downgrade(&lock);
    EXPLORE_CHECK(pirn_cell_read(&guarded) == 1);
    pirn_rwlock_read_unlock(&lock);
}

static void read_when_let_in(void *arg)
{
    (void)arg;
    if (model_bell_poll(&bells[0], &ops[0].future) == PIRN_PENDING)
        return;
    EXPLORE_CHECK(pirn_cell_read(&guarded) == 1);
    pirn_rwlock_read_unlock(&lock);
    ops[0].lock_ = NULL;
}

/* Goal: a downgrade lets in who waits to read, and then both let in who waits
 * to write. */
MODEL(rwlock_downgrade_against_waiters, .preemptions = 3, .stale = 2)
{
    EXPLORE_CHECK(pirn_rwlock_init(&lock, 0) == 0);
    EXPLORE_CHECK(pirn_rwlock_try_write(&lock) == 0);
    pirn_rwlock_read_init(&ops[0], &lock);
    pirn_rwlock_write_init(&ops[1], &lock);
    for (int i = 0; i < 2; i++)
        EXPLORE_CHECK(model_bell_poll(&bells[i], &ops[i].future) ==
                      PIRN_PENDING);
    explore_thread(downgrade_and_read, NULL);
    explore_thread(read_when_let_in, NULL);
    explore_join();
    if (ops[0].lock_ != NULL) {
        EXPLORE_CHECK(model_bell_rang(&bells[0]));
        EXPLORE_CHECK(model_bell_poll(&bells[0], &ops[0].future) == PIRN_READY);
        pirn_rwlock_read_unlock(&lock);
    }
    EXPLORE_CHECK(model_bell_rang(&bells[1]));
    EXPLORE_CHECK(model_bell_poll(&bells[1], &ops[1].future) == PIRN_READY);
    pirn_cell_write(&guarded, 2);
    pirn_rwlock_write_unlock(&lock);
    pirn_rwlock_deinit(&lock);
}
