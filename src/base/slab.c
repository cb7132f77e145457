/* SPDX-License-Identifier: MIT */
/* src/base/slab.c - sets of chunks, and caches before them.
 *
 * The set keeps, for each size, the chunks that have something to hand out.  Of
 * the empty ones it keeps one a size and frees the others.  What happens within
 * a chunk is in chunk.c.
 *
 * Invariants
 *   - A chunk is in its class's list exactly while it can give a cell.
 *   - cells_out is the sum of `used`; a retired set keeps no empty chunk.
 *
 * Locks.  A set's lock, the directory's and an entry's could nest in this
 * order, but none is held while another is taken, and the allocator is called
 * under none.  A thread that leaves the lock and will come back to the set
 * counts in `busy`, so that the set cannot end under it.
 *
 * Who ends a retired set: the last cell's chunk is empty, so whoever gives that
 * cell is busy with freeing the chunk; the thread that leaves last finds
 * nothing out and nobody busy, and there is only one such.
 */
#include "base/slab.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/chunk.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/poison.h"

enum { CLASS_BIG = PIRN__SLAB_CLASSES };

static uint32_t class_of(size_t stride)
{
    if (stride > PIRN__SLAB_SIZE_MAX)
        return CLASS_BIG;
    return (uint32_t)((stride - PIRN__SLAB_SIZE_MIN) / PIRN__SLAB_UNIT);
}

/* Fill what is empty with up to `wanted` cells. */
static void take_cells_locked(struct pirn__slabs *set, uint32_t class_index,
                              struct pirn__handful *taken, uint32_t wanted)
{
    struct pirn__slab_class *class = &set->classes[class_index];

    while (taken->count < wanted && !pirn__list_empty(&class->usable)) {
        struct pirn__slab_chunk *chunk = PIRN_CONTAINER_OF(
            class->usable.next_, struct pirn__slab_chunk, link);

        if (chunk == class->empty)
            class->empty = NULL;
        pirn__chunk_take_locked(chunk, taken, wanted);
        if (!pirn__chunk_can_give_locked(chunk))
            pirn__list_remove(&chunk->link);
    }
    set->cells_out += taken->count;
}

/* End an absence from the lock that was counted in `busy`.  The set may be gone
 * afterwards. */
static void come_back(struct pirn__slabs *set)
{
    bool is_last;

    pirn__lock(&set->lock);
    set->busy--;
    is_last = set->retired && set->busy == 0 && set->cells_out == 0;
    pirn__unlock(&set->lock);
    if (is_last)
        set->on_empty(set->owner);
}

/* Bring a new chunk, or NULL where there was no memory for one, into the set
 * and take from what is there now.  The caller is counted in `busy`. */
static void add_chunk(struct pirn__slabs *set, struct pirn__slab_chunk *chunk,
                      uint32_t class_index, struct pirn__handful *taken,
                      uint32_t wanted)
{
    pirn__lock(&set->lock);
    if (!set->retired) {
        if (chunk != NULL) {
            pirn__list_push_head(&set->classes[class_index].usable,
                                 &chunk->link);
            set->chunk_count++;
            set->chunk_bytes += chunk->bytes;
            chunk = NULL;
        }
        take_cells_locked(set, class_index, taken, wanted);
    }
    pirn__unlock(&set->lock);
    if (chunk != NULL)
        pirn__chunk_free(chunk);
    come_back(set);
}

/* A chain of up to `wanted` cells at the end of `out`; how many there are.  0 means
 * that none can be had.  `at_once`: where a new chunk is needed and the set is not
 * small, all of it is made ready under no lock. */
static uint32_t take_cells(struct pirn__slabs *set, size_t stride,
                           uint32_t class_index, struct pirn__queue *out,
                           uint32_t wanted, bool at_once)
{
    struct pirn__handful taken;
    bool is_retired;

    taken.fresh.head = NULL;
    taken.used_count = 0;
    taken.count = 0;
    pirn__lock(&set->lock);
    is_retired = set->retired;
    at_once = at_once && set->chunk_count >= PIRN__SLAB_LARGE;
    if (!is_retired)
        take_cells_locked(set, class_index, &taken, wanted);
    if (taken.count == 0 && !is_retired)
        set->busy++;
    pirn__unlock(&set->lock);
    if (taken.count == 0 && !is_retired)
        add_chunk(set, pirn__chunk_new(set, stride, class_index, at_once),
                  class_index, &taken, wanted);
    for (uint32_t i = 0; i < taken.used_count; i++)
        pirn__queue_push(out, &taken.used[i]->link);
    pirn__queue_splice(out, &taken.fresh);
    return taken.count;
}

static struct pirn__cell *cache_take(struct pirn__slabs *set,
                                     struct pirn__slab_cache *cache,
                                     size_t stride, uint32_t class_index)
{
    struct pirn__slab_bin *bin = &cache->bins[class_index];

    PIRN_DASSERT(cache->set == set || cache->set == NULL);
    if (bin->head == NULL) {
        struct pirn__queue taken = {0};

        bin->count = take_cells(set, stride, class_index, &taken,
                                PIRN__SLAB_REFILL, false);
        if (bin->count == 0)
            return NULL;
        bin->head = taken.head;
        cache->set = set;
    }
    return pirn__slab_bin_pop(bin);
}

static struct pirn__cell *take_one(struct pirn__slabs *set, size_t stride,
                                   uint32_t class_index)
{
    struct pirn__queue taken = {0};

    if (take_cells(set, stride, class_index, &taken, 1, false) == 0)
        return NULL;
    return pirn__cell_of_link(taken.head);
}

/* The chunk has no cell out.  Keep it if the set has no other empty one of this
 * size, else move it to `dead`. */
static void settle_empty_locked(struct pirn__slabs *set,
                                struct pirn__slab_chunk *chunk, pirn_link *dead)
{
    struct pirn__slab_class *class = &set->classes[chunk->class_index];
    bool keep = !set->retired && chunk->class_index != CLASS_BIG &&
                class->empty == NULL && pirn__chunk_can_give_locked(chunk);

    pirn__list_remove(&chunk->link);
    if (keep) {
        class->empty = chunk;
        pirn__list_push_tail(&class->usable, &chunk->link);
        return;
    }
    pirn__list_push_tail(dead, &chunk->link);
    set->chunk_count--;
    set->chunk_bytes -= chunk->bytes;
}

/* Give back up to `limit` cells at the front of a chain that are of one chunk, as
 * most neighbours are; how many.  *first: the rest. */
static uint32_t give_some_locked(struct pirn__slabs *set, pirn_slink **first,
                                 uint32_t limit, pirn_link *dead)
{
    struct pirn__slab_chunk *chunk =
        pirn__chunk_of_cell(pirn__cell_of_link(*first));
    uint32_t count;

    PIRN_DASSERT(chunk->set == set);
    count = pirn__chunk_give_locked(chunk, first, limit);
    set->cells_out -= count;
    if (!pirn__list_linked(&chunk->link) && pirn__chunk_can_give_locked(chunk))
        pirn__list_push_head(&set->classes[chunk->class_index].usable,
                             &chunk->link);
    if (chunk->used == 0)
        settle_empty_locked(set, chunk, dead);
    return count;
}

static void free_chunks(pirn_link *dead)
{
    pirn_link *link;

    while ((link = pirn__list_pop_head(dead)) != NULL)
        pirn__chunk_free(
            PIRN_CONTAINER_OF(link, struct pirn__slab_chunk, link));
}

/* Give back up to `limit` cells of a chain, whose ids have been renewed, and return
 * the rest.  The set may be gone afterwards. */
static pirn_slink *give_cells(struct pirn__slabs *set, pirn_slink *first,
                              uint32_t limit)
{
    pirn_link dead;
    bool has_dead;

    pirn__list_init(&dead);
    pirn__lock(&set->lock);
    while (first != NULL && limit > 0)
        limit -= give_some_locked(set, &first, limit, &dead);
    has_dead = !pirn__list_empty(&dead);
    if (has_dead)
        set->busy++;
    pirn__unlock(&set->lock);
    if (!has_dead)
        return first;
    free_chunks(&dead);
    come_back(set);
    return first;
}

/* Cut a bin of more than PIRN__SLAB_REFILL cells behind as many of the most
 * recent, and return the rest. */
static pirn_slink *bin_cut(struct pirn__slab_bin *bin)
{
    pirn_slink *last = bin->head;
    pirn_slink *rest;

    for (uint32_t i = 1; i < PIRN__SLAB_REFILL; i++)
        last = last->next_;
    rest = last->next_;
    last->next_ = NULL;
    return rest;
}

/* How many cells of a size a bin may ever hold. */
static uint32_t most_of(const struct pirn__slab_cache *cache, size_t stride)
{
    uint32_t most = (uint32_t)(PIRN__SLAB_CACHE_BYTES / stride);

    if (!cache->may_grow || most < PIRN__SLAB_CACHE_LIMIT)
        return PIRN__SLAB_CACHE_LIMIT;
    return most < PIRN__SLAB_CACHE_MOST ? most : PIRN__SLAB_CACHE_MOST;
}

/* A bin holds more than its limit.  Raise that, or give the most recent cells
 * back: they are still at hand. */
static void bin_overflow(struct pirn__slabs *set,
                         struct pirn__slab_cache *cache,
                         struct pirn__slab_bin *bin, size_t stride)
{
    uint32_t most = most_of(cache, stride);

    if (bin->limit < most) {
        bin->limit = bin->limit == 0 ? PIRN__SLAB_CACHE_LIMIT : 2 * bin->limit;
        if (bin->limit > most)
            bin->limit = most;
        if (bin->limit > PIRN__SLAB_CACHE_LIMIT)
            cache->has_grown = true;
        return;
    }
    bin->count -= PIRN__SLAB_REFILL;
    bin->head = give_cells(set, bin->head, PIRN__SLAB_REFILL);
}

/* Turn a cell's id into that of its next user: from here on the old one is
 * stale.  The last generation is followed by 0, which is nobody's. */
static void renew_id(struct pirn__cell *cell)
{
    /* relaxed: only the holder of a cell changes its id. */
    uint64_t id = pirn__load(&cell->id, relaxed);
    uint64_t generation = id >> 32;

    generation = generation == PIRN__GENERATION_MAX ? 0 : generation + 1;
    /* relaxed: a lookup that meets the next user's word takes its reference
     * with acquire, and that word was stored with release after this. */
    pirn__store(&cell->id, generation << 32 | (uint32_t)id, relaxed);
}

/* Chunks that are kept although empty go; the caller counts in `busy`. */
static void collect_empty_locked(struct pirn__slabs *set, pirn_link *dead)
{
    for (uint32_t i = 0; i < PIRN__SLAB_CLASSES; i++) {
        struct pirn__slab_chunk *chunk = set->classes[i].empty;

        if (chunk == NULL)
            continue;
        set->classes[i].empty = NULL;
        settle_empty_locked(set, chunk, dead);
    }
}

void pirn__slabs_init(struct pirn__slabs *set, const pirn_alloc *alloc,
                      void (*on_empty)(void *owner), void *owner)
{
    *set = (struct pirn__slabs){
        .alloc = alloc,
        .on_empty = on_empty,
        .owner = owner,
    };
    for (uint32_t i = 0; i <= CLASS_BIG; i++)
        pirn__list_init(&set->classes[i].usable);
}

struct pirn__cell *pirn__slabs_take(struct pirn__slabs *set,
                                    struct pirn__slab_cache *cache, size_t size)
{
    struct pirn__cell *cell;
    uint32_t class_index;
    size_t stride;

    if (size > SIZE_MAX - PIRN__SLAB_UNIT)
        return NULL;
    if (size < PIRN__SLAB_SIZE_MIN)
        size = PIRN__SLAB_SIZE_MIN;
    stride = pirn__round_up(size, PIRN__SLAB_UNIT);
    class_index = class_of(stride);
    if (cache != NULL && class_index != CLASS_BIG)
        cell = cache_take(set, cache, stride, class_index);
    else
        cell = take_one(set, stride, class_index);
    if (cell != NULL)
        pirn__memory_show(cell + 1, stride - sizeof *cell);
    return cell;
}

void pirn__slabs_give(struct pirn__slab_cache *cache, struct pirn__cell *cell)
{
    struct pirn__slab_chunk *chunk = pirn__chunk_of_cell(cell);
    struct pirn__slabs *set = chunk->set;
    uint32_t class_index = chunk->class_index;
    struct pirn__slab_bin *bin;

    /* relaxed: the caller is alone with the cell. */
    PIRN_ASSERT(pirn__load(&cell->word, relaxed) == 0);
    renew_id(cell);
    pirn__memory_hide(cell + 1, chunk->stride - sizeof *cell);
    if (cache == NULL || cache->set != set || class_index == CLASS_BIG ||
        pirn__cell_generation(cell) == 0) {
        cell->link.next_ = NULL;
        (void)give_cells(set, &cell->link, 1);
        return;
    }
    bin = &cache->bins[class_index];
    pirn__slab_bin_push(bin, cell);
    if (bin->count > bin->limit)
        bin_overflow(set, cache, bin, chunk->stride);
}

void pirn__slabs_trim(struct pirn__slabs *set, struct pirn__slab_cache *cache)
{
    if (!cache->has_grown)
        return;
    cache->has_grown = false;
    for (uint32_t i = 0; i < PIRN__SLAB_CLASSES; i++) {
        struct pirn__slab_bin *bin = &cache->bins[i];

        if (bin->limit <= PIRN__SLAB_CACHE_LIMIT)
            continue;
        bin->limit = PIRN__SLAB_CACHE_LIMIT;
        if (bin->count <= PIRN__SLAB_CACHE_LIMIT)
            continue;
        bin->count = PIRN__SLAB_REFILL;
        (void)give_cells(set, bin_cut(bin), UINT32_MAX);
    }
}

uint32_t pirn__slabs_take_some(struct pirn__slabs *set, size_t size,
                               struct pirn__queue *out)
{
    size_t stride = pirn__round_up(size, PIRN__SLAB_UNIT);

    return take_cells(set, stride, class_of(stride), out, PIRN__SLAB_REFILL,
                      true);
}

void pirn__slab_cache_add(struct pirn__slabs *set,
                          struct pirn__slab_cache *cache, size_t size,
                          struct pirn__queue *cells, uint32_t count)
{
    struct pirn__slab_bin *bin = pirn__slab_bin_of(cache, size);

    PIRN_DASSERT(cache->set == set || cache->set == NULL);
    cache->set = set;
    cells->tail->next_ = bin->head;
    bin->head = cells->head;
    bin->count += count;
}

void pirn__slabs_give_back(struct pirn__slabs *set, struct pirn__queue *cells)
{
    (void)give_cells(set, cells->head, UINT32_MAX);
}

void pirn__slabs_flush(struct pirn__slabs *set, struct pirn__slab_cache *cache)
{
    if (cache->set == NULL)
        return;
    PIRN_ASSERT(cache->set == set);
    /* Unbound, so that a later give does not hide a cell here again. */
    cache->set = NULL;
    for (uint32_t i = 0; i < PIRN__SLAB_CLASSES; i++) {
        pirn_slink *first = cache->bins[i].head;

        cache->bins[i] = (struct pirn__slab_bin){0};
        if (first != NULL)
            (void)give_cells(set, first, UINT32_MAX);
    }
}

bool pirn__slabs_retire(struct pirn__slabs *set)
{
    pirn_link dead;
    bool is_last;

    pirn__list_init(&dead);
    pirn__lock(&set->lock);
    PIRN_ASSERT(!set->retired);
    set->retired = true;
    set->busy++;
    collect_empty_locked(set, &dead);
    pirn__unlock(&set->lock);

    free_chunks(&dead);

    pirn__lock(&set->lock);
    set->busy--;
    is_last = set->busy == 0 && set->cells_out == 0;
    pirn__unlock(&set->lock);
    return is_last;
}

struct pirn__slabs *pirn__cell_slabs(struct pirn__cell *cell)
{
    return pirn__chunk_of_cell(cell)->set;
}

size_t pirn__cell_size(struct pirn__cell *cell)
{
    return pirn__chunk_of_cell(cell)->stride;
}

struct pirn__cell *pirn__slab_lookup(uint64_t id, pirn__try_ref_fn *try_ref,
                                     pirn__unref_fn *unref)
{
    uint32_t index = (uint32_t)id >> PIRN__SLAB_PLACE_BITS;
    uint32_t place = (uint32_t)id & (PIRN__CHUNK_PLACES - 1);
    struct pirn__slab_chunk *chunk;
    struct pirn__cell *cell;

    if (id == 0)
        return NULL;
    chunk = pirn__directory_enter(index);
    if (chunk == NULL)
        return NULL;
    cell = pirn__chunk_ref(chunk, place, id, try_ref);
    pirn__directory_leave(index);
    if (cell == NULL)
        return NULL;
    /* relaxed: try_ref's acquire saw a word of this user or a later one, and
     * its id with it; the reference keeps the id from changing again. */
    if (pirn__load(&cell->id, relaxed) == id)
        return cell;
    unref(cell);
    return NULL;
}

/* The first cell of the set at *place or above that grants a reference; *place
 * is then behind it. */
static struct pirn__cell *walk_chunk(const struct pirn__slabs *set,
                                     struct pirn__slab_chunk *chunk,
                                     uint32_t *place,
                                     pirn__try_ref_fn *try_ref)
{
    uint32_t end = chunk->set == set ? pirn__chunk_fresh(chunk) : 0;
    struct pirn__cell *found = NULL;

    while (*place < end && found == NULL)
        found = pirn__chunk_ref(chunk, (*place)++, 0, try_ref);
    return found;
}

struct pirn__cell *pirn__slabs_walk(struct pirn__slabs *set, uint64_t *cursor,
                                    pirn__try_ref_fn *try_ref)
{
    uint32_t first = (uint32_t)(*cursor >> PIRN__SLAB_PLACE_BITS);
    uint32_t place = (uint32_t)*cursor & (PIRN__CHUNK_PLACES - 1);
    struct pirn__slab_chunk *chunk;
    uint32_t index = first;

    /* Ends: the index grows, and the directory has an end. */
    while ((chunk = pirn__directory_enter_next(&index)) != NULL) {
        struct pirn__cell *found;

        if (index != first)
            place = 0;
        found = walk_chunk(set, chunk, &place, try_ref);
        pirn__directory_leave(index);
        if (found != NULL) {
            *cursor = ((uint64_t)index << PIRN__SLAB_PLACE_BITS) + place;
            return found;
        }
        index++;
    }
    *cursor = (uint64_t)index << PIRN__SLAB_PLACE_BITS;
    return NULL;
}

void pirn__slabs_stats(struct pirn__slabs *set, struct pirn__slab_stats *out)
{
    pirn__lock(&set->lock);
    *out = (struct pirn__slab_stats){
        .cells_out = set->cells_out,
        .chunks = set->chunk_count,
        .bytes = set->chunk_bytes,
    };
    pirn__unlock(&set->lock);
}

static void class_validate_locked(struct pirn__slabs *set, uint32_t class_index)
{
    struct pirn__slab_class *class = &set->classes[class_index];
    bool has_empty = false;

    for (pirn_link *link = class->usable.next_; link != &class->usable;
         link = link->next_) {
        struct pirn__slab_chunk *chunk =
            PIRN_CONTAINER_OF(link, struct pirn__slab_chunk, link);

        pirn__chunk_validate_locked(chunk);
        PIRN_ASSERT(chunk->set == set && chunk->class_index == class_index);
        PIRN_ASSERT((chunk->used == 0) == (chunk == class->empty));
        has_empty |= chunk == class->empty;
    }
    PIRN_ASSERT(has_empty == (class->empty != NULL));
}

void pirn__slabs_validate(struct pirn__slabs *set)
{
    pirn__lock(&set->lock);
    for (uint32_t i = 0; i < PIRN__SLAB_CLASSES; i++)
        class_validate_locked(set, i);
    PIRN_ASSERT(pirn__list_empty(&set->classes[CLASS_BIG].usable));
    PIRN_ASSERT(set->chunk_count <= set->cells_out + PIRN__SLAB_CLASSES);
    pirn__unlock(&set->lock);
}
