/* SPDX-License-Identifier: MIT */
/* src/sys/tls.c - the library's one thread-local pointer.
 *
 * Initial-exec costs one load and no call into the dynamic loader; eight bytes
 * fit what C libraries keep free for libraries that are loaded late.  A pthread
 * key stands beside it only for its destructor.
 *
 * This file stays out of link-time optimisation (see CMakeLists.txt).
 */
#include "sys/tls.h"

#include <pthread.h>

#include "base/atomic.h"

typedef void exit_fn(void *value);

static _Thread_local void *tls_value
    __attribute__((tls_model("initial-exec")));

static PIRN_ATOMIC(exit_fn *) exit_hook;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key;

PIRN__REAL_CALL void *pirn__tls_get(void)
{
    return tls_value;
}

PIRN__REAL_CALL void pirn__tls_set(void *value)
{
    tls_value = value;
    /* acquire [tls.hook]: the key was made before the hook was stored. */
    if (pirn__load(&exit_hook, acquire) == NULL)
        return;
    /* Fails only when a program has used up the keys that need no memory; the
     * thread then ends without the hook. */
    (void)pthread_setspecific(exit_key, value);
}

static void end_thread(void *value)
{
    /* acquire [tls.hook]: as in pirn__tls_set(). */
    exit_fn *fn = pirn__load(&exit_hook, acquire);

    if (fn != NULL)
        fn(value);
    tls_value = NULL;
}

static void make_key(void)
{
    if (pthread_key_create(&exit_key, end_thread) != 0)
        exit_key = (pthread_key_t)-1; /* setspecific will refuse it */
}

void pirn__tls_on_exit(void (*fn)(void *value))
{
    pthread_once(&key_once, make_key);
    /* release [tls.hook]: publishes the key. */
    pirn__store(&exit_hook, fn, release);
}
