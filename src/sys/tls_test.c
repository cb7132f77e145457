/* SPDX-License-Identifier: MIT */
/* src/sys/tls_test.c - the one thread-local, with real threads. */
#include "sys/tls.h"

#include <pthread.h>

#include "engine/test.h"

static int first_object, second_object;
static void *ended_with;
static void *current_in_hook;
static int ended_count;

static void note_end(void *value)
{
    ended_with = value;
    current_in_hook = pirn__tls_get();
    ended_count++;
}

static void *set_and_end(void *arg)
{
    EXPECT_PTR_EQ(NULL, pirn__tls_get());
    pirn__tls_set(&second_object);
    EXPECT_PTR_EQ(&second_object, pirn__tls_get());
    pirn__tls_set(arg);
    EXPECT_PTR_EQ(arg, pirn__tls_get());
    return NULL;
}

static void run_thread(void *arg)
{
    pthread_t thread;

    EXPECT_EQ(0, pthread_create(&thread, NULL, set_and_end, arg));
    pthread_join(thread, NULL);
}

/* Goal: each thread has a value of its own.
 * Method: another thread sets its own; ours stays. */
TEST(tls_value_belongs_to_the_thread)
{
    pirn__tls_set(&second_object);
    run_thread(&first_object);
    EXPECT_PTR_EQ(&second_object, pirn__tls_get());
    pirn__tls_set(NULL);
    EXPECT_PTR_EQ(NULL, pirn__tls_get());
    EXPECT_EQ(0, ended_count);
}

/* Goal: the hook runs at the end of a thread that has a value, with it, once.
 * Method: one thread ends with a value, one without. */
TEST(tls_exit_hook_runs_for_threads_with_a_value)
{
    pirn__tls_on_exit(note_end);
    run_thread(&first_object);
    EXPECT_EQ(1, ended_count);
    EXPECT_PTR_EQ(&first_object, ended_with);
    EXPECT_PTR_EQ(&first_object, current_in_hook);
    run_thread(NULL);
    EXPECT_EQ(1, ended_count);
}
