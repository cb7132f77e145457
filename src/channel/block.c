/* SPDX-License-Identifier: MIT */
/* src/channel/block.c - the chain of blocks of an unbounded channel.
 *
 *     head_block -> [ taken | taken | message ] -> [ message | free ] <- tail_block
 *
 * A block that has been read to its end goes back: one is kept for the senders,
 * by way of `emptied` (the receiver's) and `spare` (the lock's), the others are
 * freed at once.  So a burst leaves two blocks behind at most, and a steady flow
 * needs no allocation.
 */
#include "base/assert.h"
#include "channel/channel.h"
#include "task/home.h"

static size_t block_bytes(const struct pirn__channel *ch)
{
    size_t count = PIRN__CHANNEL_BLOCK_BYTES / ch->message_size;

    if (count == 0)
        count = 1;
    if (count > PIRN__CHANNEL_BLOCK_MESSAGES)
        count = PIRN__CHANNEL_BLOCK_MESSAGES;
    return count * ch->message_size;
}

struct pirn__block *pirn__block_new(const struct pirn__channel *ch)
{
    struct pirn__block *block = pirn__home_take(
        ch->home, sizeof(struct pirn__block) + block_bytes(ch));

    if (block != NULL)
        block->next = NULL;
    return block;
}

void pirn__block_free(struct pirn__channel *ch, struct pirn__block *block)
{
    if (block != NULL)
        pirn__home_give(ch->home, block,
                        sizeof(struct pirn__block) + block_bytes(ch));
}

void pirn__block_append_locked(struct pirn__channel *ch,
                               struct pirn__block *block)
{
    PIRN_DASSERT(block->next == NULL);
    if (ch->tail_block == NULL) {
        pirn__channel_chain(ch)->head_block = block;
        ch->head_at = block->data;
        ch->head_end = block->data + block_bytes(ch);
    } else {
        ch->tail_block->next = block;
    }
    ch->tail_block = block;
    ch->tail_at = block->data;
    ch->tail_end = block->data + block_bytes(ch);
}

void pirn__block_leave(struct pirn__channel *ch)
{
    struct pirn__chain *chain = pirn__channel_chain(ch);
    struct pirn__block *block = chain->head_block;

    /* There is a message behind this block, so its link is written. */
    chain->head_block = block->next;
    ch->head_at = chain->head_block->data;
    ch->head_end = ch->head_at + block_bytes(ch);
    block->next = NULL;
    if (chain->emptied == NULL)
        chain->emptied = block;
    else
        pirn__block_free(ch, block);
}

void pirn__block_recycle_locked(struct pirn__channel *ch)
{
    struct pirn__chain *chain = pirn__channel_chain(ch);

    if (chain->spare != NULL)
        return;
    chain->spare = chain->emptied;
    chain->emptied = NULL;
}

void pirn__block_free_all(struct pirn__channel *ch)
{
    struct pirn__chain *chain = pirn__channel_chain(ch);
    struct pirn__block *block = chain->head_block;

    while (block != NULL) {
        struct pirn__block *next = block->next;

        pirn__block_free(ch, block);
        block = next;
    }
    pirn__block_free(ch, chain->spare);
    pirn__block_free(ch, chain->emptied);
}
