/* SPDX-License-Identifier: MIT */
/* src/base/directory.h - the one table of every chunk of cells in the process.
 *
 * A chunk index stands for one chunk while it exists and for the generations
 * that chunks with this index have used up: those outlive the chunk, so that an
 * id never names two things.  An index whose generations are used up is never
 * handed out again.
 *
 *     root (static, 4,096) -> block (1,024 entries, made on demand) -> entry
 *
 * The directory belongs to the process: its blocks come from malloc, through a
 * table that sys registers, and are never given back.
 */
#ifndef PIRN_BASE_DIRECTORY_H
#define PIRN_BASE_DIRECTORY_H

#include <pirn/alloc.h>
#include <pirn/link.h>

#include "base/atomic.h"

/* How many bits of generation an id has; the model build has few. */
#ifndef PIRN__GENERATION_BITS
#define PIRN__GENERATION_BITS 32
#endif
#define PIRN__GENERATION_MAX (UINT32_MAX >> (32 - PIRN__GENERATION_BITS))

/* Where the blocks of the directory come from. */
void pirn__directory_set_alloc(const pirn_alloc *alloc);

/* Reserve an index for a chunk, and say with which generation its slots start.
 * False when memory or indices have run out. */
bool pirn__directory_take(uint32_t *index, uint32_t *generation);

/* Let pirn__directory_enter() find the chunk, which is complete. */
void pirn__directory_publish(uint32_t index, void *chunk);

/* Forget the chunk and free its index; on return nobody is inside
 * pirn__directory_enter() with it.  `generation` is above every one that was
 * used, unless all are: then `used_up` retires the index. */
void pirn__directory_give(uint32_t index, uint32_t generation, bool used_up);

enum { PIRN__DIRECTORY_BLOCK_BITS = 10, PIRN__DIRECTORY_BLOCKS = 1 << 12 };

struct pirn__directory_entry {
    pirn_lock lock;
    uint32_t generation;       /* whoever holds the index; 0 means 1 */
    PIRN_ATOMIC(void *) chunk; /* written under lock */
    uint32_t next_free;        /* the directory's lock; index + 1, 0 ends the
                                  stack */
};

typedef PIRN_ATOMIC(struct pirn__directory_entry *) pirn__directory_block;

/* Each is written once, under the directory's lock. */
extern pirn__directory_block pirn__directory_root[PIRN__DIRECTORY_BLOCKS];

/* The chunk at an index which the caller knows to be there and to stay. */
static inline void *pirn__directory_chunk(uint32_t index)
{
    /* acquire [directory.root]: sees the zeroed block. */
    struct pirn__directory_entry *block = pirn__load(
        &pirn__directory_root[index >> PIRN__DIRECTORY_BLOCK_BITS], acquire);

    /* relaxed: the caller was handed a cell of this chunk, after publish(). */
    return pirn__load(
        &block[index & ((1u << PIRN__DIRECTORY_BLOCK_BITS) - 1)].chunk,
        relaxed);
}

/* The chunk at any index, held in place until pirn__directory_leave(), which
 * must follow soon; or NULL and nothing is held. */
void *pirn__directory_enter(uint32_t index);
/* The first one at *index or above; NULL at the end. */
void *pirn__directory_enter_next(uint32_t *index);
void pirn__directory_leave(uint32_t index);

/* Hand the free indices out from the lowest on, as if none had been used before:
 * a walk visits chunks by index, and a simulated run must not depend on the runs
 * before it.  Takes time by the square of their number. */
void pirn__directory_sort_free(void);

/* Every index ever used is below this. */
uint32_t pirn__directory_limit(void);

/* Around fork(): the child gets a directory whose locks are free. */
void pirn__directory_fork_prepare(void);
void pirn__directory_fork_parent(void);
void pirn__directory_fork_child(void);

/* For tests: the generation with which the next chunk at a free index
 * starts. */
void pirn__directory_set_generation(uint32_t index, uint32_t generation);

#endif /* PIRN_BASE_DIRECTORY_H */
