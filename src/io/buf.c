/* SPDX-License-Identifier: MIT */
/* src/io/buf.c - counted buffers: the header and the bytes in one piece. */
#include <pirn/io.h>

#include <errno.h>

#include "base/atomic.h"
#include "task/home.h"
#include "task/local.h"

static const size_t size_limit = (size_t)1 << 30;

struct pirn_buf {
    PIRN_ATOMIC(uint32_t) refs;
    size_t size;             /* constant */
    size_t len;              /* whoever fills it */
    struct pirn__home *home; /* constant: where the memory is from, or NULL */
    char data[];
};

int pirn_buf_new(size_t size, pirn_buf **out)
{
    struct pirn__home *home = pirn__local_home();
    pirn_buf *buf;

    if (out == NULL)
        return -EINVAL;
    *out = NULL;
    if (size == 0 || size > size_limit)
        return -EINVAL;
    buf = pirn__home_take_object(home, sizeof *buf + size);
    if (buf == NULL)
        return -ENOMEM;
    pirn__init(&buf->refs, 1);
    buf->size = size;
    buf->len = 0;
    buf->home = home;
    *out = buf;
    return 0;
}

pirn_buf *pirn_buf_ref(pirn_buf *buf)
{
    /* relaxed: the caller has a reference already. */
    if (buf != NULL)
        pirn__add(&buf->refs, 1, relaxed);
    return buf;
}

void pirn_buf_unref(pirn_buf *buf)
{
    if (buf == NULL)
        return;
    /* acq_rel [buf.refs]: release [buf.refs] ends our use; acquire [buf.refs]
     * is the half of the one that frees. */
    if (pirn__sub(&buf->refs, 1, acq_rel) != 1)
        return;
    pirn__home_give_object(buf->home, buf, sizeof *buf + buf->size);
}

char *pirn_buf_data(pirn_buf *buf)
{
    return buf->data;
}

size_t pirn_buf_size(const pirn_buf *buf)
{
    return buf->size;
}

size_t pirn_buf_len(const pirn_buf *buf)
{
    return buf->len;
}

void pirn_buf_set_len(pirn_buf *buf, size_t len)
{
    buf->len = len < buf->size ? len : buf->size;
}
