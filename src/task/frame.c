/* SPDX-License-Identifier: MIT */
/* src/task/frame.c - the frame of a stackless task; see pirn/async.h. */
#include <pirn/async.h>

static const pirn_async_ops *ops_of(const pirn_frame *frame)
{
    return PIRN_CONTAINER_OF(frame->future.ops, const pirn_async_ops, future);
}

static void clean_up(pirn_frame *frame)
{
    pirn_cleanup_fn *cleanup = ops_of(frame)->cleanup;

    if (cleanup != NULL)
        cleanup(frame);
}

void pirn_frame_init(pirn_frame *frame, const pirn_async_ops *ops)
{
    *frame = (pirn_frame){.future = {&ops->future}};
}

bool pirn_frame_wait_(pirn_frame *frame, pirn_cx *cx)
{
    pirn_future *child = frame->child_;

    if (child->ops->poll(child, cx) == PIRN_PENDING)
        return false;
    frame->child_ = NULL;
    return true;
}

enum pirn_poll pirn_frame_finish_(pirn_frame *frame, int rc)
{
    frame->rc = rc;
    clean_up(frame);
    return PIRN_READY;
}

void pirn_frame_drop(pirn_future *future)
{
    pirn_frame *frame = PIRN_CONTAINER_OF(future, pirn_frame, future);

    if (frame->child_ != NULL)
        pirn_future_drop(frame->child_);
    frame->child_ = NULL;
    clean_up(frame);
}

int pirn_frame_outcome(const pirn_future *future)
{
    return PIRN_CONTAINER_OF(future, const pirn_frame, future)->rc;
}

void pirn_frame_describe(const pirn_future *future, pirn_text *out)
{
    const pirn_frame *frame =
        PIRN_CONTAINER_OF(future, const pirn_frame, future);

    if (frame->child_ != NULL)
        pirn_future_describe(frame->child_, out);
    else
        pirn_text_append(out, "ready");
}
