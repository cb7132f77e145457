/* SPDX-License-Identifier: MIT */
/* src/base/slab.h - cells of memory that can be named by an id.
 *
 * A cell is a block of memory whose first 24 bytes are a struct pirn__cell; the
 * task header begins with one.  Cells of one size come from chunks of about
 * 64 KiB and stand there at exactly that size.  An id is (generation, slot):
 * slots are numbered across the process, and each time a cell is given back its
 * generation rises.  So an id, however old or forged, is looked up safely.
 *
 *     63         32 31         10 9           0
 *     | generation | chunk index | place       |      never 0
 *
 * A slot that has used up its generations is never handed out again.
 *
 * The protocol of `word`: it is 0 while the cell is free, which includes the
 * time from take until the user stores something there, with release.  try_ref
 * callbacks answer false for 0, take their reference with acquire otherwise,
 * and run under a lock, so they do nothing else.
 */
#ifndef PIRN_BASE_SLAB_H
#define PIRN_BASE_SLAB_H

#include <pirn/alloc.h>
#include <pirn/link.h>

#include "base/atomic.h"
#include "base/list.h"

/* Cells that a cache moves at a time; the model build has few. */
#ifndef PIRN__SLAB_REFILL
#define PIRN__SLAB_REFILL 32
#endif

/* A set of so many chunks is not small.  A small one touches memory as it uses it.
 * The model build has few here, too. */
#ifndef PIRN__SLAB_LARGE
#define PIRN__SLAB_LARGE 16
#endif

struct pirn__cell {
    PIRN_ATOMIC(uint64_t) word; /* the user's; 0 while the cell is free */
    pirn_slink link;            /* the user's, from take to give */
    PIRN_ATOMIC(uint64_t) id;   /* constant from take to give */
};

enum {
    PIRN__SLAB_UNIT = 8,         /* sizes are multiples of this */
    PIRN__SLAB_SIZE_MAX = 1024,  /* bigger cells have a chunk of their own */
    PIRN__SLAB_PLACE_BITS = 10,  /* at most 1,024 cells in a chunk */
    /* Of one size, in one cache: usually, and where it has grown, in cells and in
     * bytes. */
    PIRN__SLAB_CACHE_LIMIT = 2 * PIRN__SLAB_REFILL,
    PIRN__SLAB_CACHE_MOST = 32 * PIRN__SLAB_REFILL,
    PIRN__SLAB_CACHE_BYTES = 128 * 1024,
    PIRN__SLAB_SIZE_MIN = 24,    /* that of a struct pirn__cell */
    PIRN__SLAB_CLASSES =
        (PIRN__SLAB_SIZE_MAX - PIRN__SLAB_SIZE_MIN) / PIRN__SLAB_UNIT + 1,
};

typedef bool pirn__try_ref_fn(struct pirn__cell *cell);
typedef void pirn__unref_fn(struct pirn__cell *cell);

struct pirn__slab_chunk;

struct pirn__slab_class {
    pirn_link usable; /* chunks with cells to hand out, the empty one last */
    struct pirn__slab_chunk *empty; /* the one kept although empty, or NULL */
};

/* All cells of one owner.  Any thread. */
struct pirn__slabs {
    const pirn_alloc *alloc;
    void (*on_empty)(void *owner);
    void *owner;
    pirn_lock lock; /* guards all below, and what chunks say it guards */
    bool retired;
    uint32_t busy; /* threads that will come back to the set */
    size_t cells_out;
    size_t chunk_count;
    size_t chunk_bytes;
    /* One for each size, and the last for all big ones; its list is empty
     * whenever the lock is free. */
    struct pirn__slab_class classes[PIRN__SLAB_CLASSES + 1];
};

struct pirn__slab_bin {
    pirn_slink *head;
    uint32_t count;
    uint32_t limit; /* 0: the usual one; so in all bins of an unbound cache */
};

/* Free cells of one set in the hands of one thread, its only user.  Zeroed is
 * empty.  It is bound to a set from a take until the next flush. */
struct pirn__slab_cache {
    struct pirn__slabs *set;
    bool may_grow; /* the user's: bins that overflow get a higher limit, and
                      pirn__slabs_trim() will be called */
    bool has_grown;
    struct pirn__slab_bin bins[PIRN__SLAB_CLASSES];
};

/* `alloc` and `owner` must live until the set is retired and empty. */
void pirn__slabs_init(struct pirn__slabs *set, const pirn_alloc *alloc,
                      void (*on_empty)(void *owner), void *owner);

/* A cell of at least `size` bytes with word 0 and its id, the rest undefined;
 * aligned to 16 if `size` is a multiple of 16, else to 8.  NULL when memory has
 * run out or the set is retired.  `cache` is the caller's, or NULL. */
struct pirn__cell *pirn__slabs_take(struct pirn__slabs *set,
                                    struct pirn__slab_cache *cache,
                                    size_t size);

/* Give a cell back; its word is 0.  From here on its id is stale.  `cache` is
 * the caller's, or NULL; one that is bound to another set is not used. */
void pirn__slabs_give(struct pirn__slab_cache *cache, struct pirn__cell *cell);

/* The usual way of both, inline.  take: NULL if the cache has none; then ask
 * pirn__slabs_take().  give: false, and nothing done, where that takes
 * pirn__slabs_give(); the cache is bound to no other set than the cell's, and
 * `size` is what that was taken with, in multiples of PIRN__SLAB_UNIT. */
static inline struct pirn__cell *
pirn__slab_take_cached(struct pirn__slab_cache *cache, size_t size);
static inline bool pirn__slab_give_cached(struct pirn__slab_cache *cache,
                                          struct pirn__cell *cell, size_t size);

/* Up to PIRN__SLAB_REFILL cells of at least `size` bytes, at most
 * PIRN__SLAB_SIZE_MAX, at the end of `out`, for a cache that several threads use
 * under a lock; how many.  Their memory is shown when they are taken from there. */
uint32_t pirn__slabs_take_some(struct pirn__slabs *set, size_t size,
                               struct pirn__queue *out);
/* Put them in, or back unused. */
void pirn__slab_cache_add(struct pirn__slabs *set,
                          struct pirn__slab_cache *cache, size_t size,
                          struct pirn__queue *cells, uint32_t count);
void pirn__slabs_give_back(struct pirn__slabs *set, struct pirn__queue *cells);

/* Give back what grown bins hold beyond the usual. */
void pirn__slabs_trim(struct pirn__slabs *set, struct pirn__slab_cache *cache);

/* Empty a cache that is bound to `set`, or to none. */
void pirn__slabs_flush(struct pirn__slabs *set, struct pirn__slab_cache *cache);

/* Take no more, and give kept memory back.  All caches have been flushed.  True
 * if nothing is out: the set may go now.  False: on_empty(owner) will be called
 * once, under no lock, by the thread that gives the last cell or piece of
 * memory back; it may free the set. */
bool pirn__slabs_retire(struct pirn__slabs *set);

/* The set that a cell in the caller's hands belongs to. */
struct pirn__slabs *pirn__cell_slabs(struct pirn__cell *cell);

/* The size that a cell in the caller's hands was taken with, in multiples of
 * PIRN__SLAB_UNIT. */
size_t pirn__cell_size(struct pirn__cell *cell);

/* The cell with this id, with a reference taken by try_ref; NULL if there is
 * none.  Any thread, any id.  `unref`, called under no lock, undoes a try_ref
 * that turned out to have met the cell's next user. */
struct pirn__cell *pirn__slab_lookup(uint64_t id, pirn__try_ref_fn *try_ref,
                                     pirn__unref_fn *unref);

/* The next cell of the set that try_ref accepts, in order of slots, or NULL at
 * the end; *cursor starts as 0.  Cells that come or go meanwhile may or may not
 * be seen.  No lock is held for longer than one chunk takes. */
struct pirn__cell *pirn__slabs_walk(struct pirn__slabs *set, uint64_t *cursor,
                                    pirn__try_ref_fn *try_ref);

struct pirn__slab_stats {
    size_t cells_out; /* those in caches included */
    size_t chunks;
    size_t bytes; /* of chunks; the directory is not counted */
};

void pirn__slabs_stats(struct pirn__slabs *set, struct pirn__slab_stats *out);

/* Assert every invariant. */
void pirn__slabs_validate(struct pirn__slabs *set);

/* The inline ones. */
#include "base/slab_hot.h"

#endif /* PIRN_BASE_SLAB_H */
