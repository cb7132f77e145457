/* SPDX-License-Identifier: MIT */
/* examples/ticker.c - stackless tasks: frames that await, frames within frames,
 * and deadlines.
 *
 * A ticker counts; a watcher runs a ticker of its own for as long as a deadline
 * allows, and then gives it up. */
#include <errno.h>
#include <pirn/pirn.h>
#include <stdio.h>

struct ticker {
    pirn_frame frame; /* first */
    pirn_sleep_op sleep;
    const char *name;
    int left;
};

static enum pirn_poll ticker_poll(pirn_future *self, pirn_cx *cx)
{
    struct ticker *ticker = PIRN_FRAME_OF(self, struct ticker, frame);

    PIRN_ASYNC_BEGIN(&ticker->frame, cx);
    for (; ticker->left > 0; ticker->left--) {
        (void)printf("%s: %d\n", ticker->name, ticker->left);
        pirn_sleep_init(&ticker->sleep, pirn_after_ms(10));
        PIRN_AWAIT(&ticker->sleep.future);
        if (pirn_sleep_rc(&ticker->sleep) < 0)
            PIRN_ASYNC_RETURN(pirn_sleep_rc(&ticker->sleep));
    }
    PIRN_ASYNC_END();
}

static const pirn_async_ops ticker_ops = PIRN_ASYNC_OPS(ticker_poll, NULL);

static void ticker_init(struct ticker *ticker, const char *name, int count)
{
    pirn_frame_init(&ticker->frame, &ticker_ops);
    ticker->name = name;
    ticker->left = count;
}

struct watcher {
    pirn_frame frame;     /* first */
    struct ticker ticker; /* a child lives in its parent: no allocation */
    pirn_timeout_op timeout;
};

static enum pirn_poll watcher_poll(pirn_future *self, pirn_cx *cx)
{
    struct watcher *watcher = PIRN_FRAME_OF(self, struct watcher, frame);

    PIRN_ASYNC_BEGIN(&watcher->frame, cx);
    ticker_init(&watcher->ticker, "watched", 1000);
    PIRN_AWAIT_UNTIL(&watcher->timeout, &watcher->ticker.frame.future,
                     pirn_after_ms(35));
    (void)printf("watcher: %s, %d ticks left\n",
                 pirn_err_name(watcher->timeout.rc), watcher->ticker.left);
    PIRN_ASYNC_RETURN(watcher->timeout.rc == -ETIMEDOUT ? 0 : -EBADMSG);
    PIRN_ASYNC_END();
}

static void watcher_cleanup(pirn_frame *frame)
{
    (void)frame;
    (void)printf("watcher: done\n");
}

static const pirn_async_ops watcher_ops =
    PIRN_ASYNC_OPS(watcher_poll, watcher_cleanup);

/* A fiber and stackless tasks wait for each other like any two tasks. */
static int start(void *arg)
{
    struct ticker ticker;
    struct watcher watcher;
    pirn_task *task;
    int outcome;

    (void)arg;
    ticker_init(&ticker, "ticker", 5);
    int rc = pirn_spawn(&ticker.frame.future, sizeof ticker, NULL, &task);
    if (rc < 0)
        return rc;

    /* Any future can be awaited right here, without a task of its own. */
    pirn_frame_init(&watcher.frame, &watcher_ops);
    rc = pirn_await(&watcher.frame.future, PIRN_NEVER);
    if (rc == 0)
        rc = watcher.frame.rc;
    int joined = pirn_task_join(task, PIRN_NEVER, &outcome);
    pirn_task_unref(task);
    if (rc == 0)
        rc = joined < 0 ? joined : outcome;
    return rc;
}

int main(void)
{
    return pirn_exit_code(pirn_run(start, NULL));
}
