/* SPDX-License-Identifier: MIT */
/* tests/engine/model_memory.h - memory for stacks in model tests: the part of the
 * system table that the explorer's own lacks.
 *
 * Addresses come from one reservation and are never used twice in an execution.
 * What the kernel does to pages counts as a write to all of them: whoever uses a
 * stack must have ended before, and who uses it next must come after.  Uses of the
 * stack as such are told by model_stack_hold() and model_stack_let_go(); fibers
 * that really stand on one touch it besides.
 *
 * It also keeps the kernel's books: what is mapped, where guards are, and how many
 * of them cost mappings.
 */
#ifndef PIRN_TESTS_ENGINE_MODEL_MEMORY_H
#define PIRN_TESTS_ENGINE_MODEL_MEMORY_H

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "engine/explore.h"
#include "fiber/stack.h"
#include "sys/sys.h"

enum { MODEL_PAGE = 4096, MODEL_PIECES = 64 };

#define MODEL_RESERVED ((size_t)32 << 30)

struct model_piece {
    char *base; /* NULL: none */
    size_t size;
};

struct model_memory {
    size_t used;         /* of the reservation */
    size_t mapped_count; /* now */
    size_t mapped_most;  /* at any time */
    size_t guards_most;  /* that cost mappings, at any time */
    struct model_piece mapped[MODEL_PIECES];
    struct model_piece guards[MODEL_PIECES];
    struct model_piece held[MODEL_PIECES];
    bool regions;      /* guards cost nothing */
    int mapping_limit; /* vm.max_map_count */
};

static char *model_reserved;
static struct model_memory memory;
static struct pirn__sys memory_table;
static const struct pirn__sys *memory_beneath;

/* Before the first execution, so that it outlives them. */
__attribute__((constructor)) static void model_memory_reserve(void)
{
    model_reserved =
        mmap(NULL, MODEL_RESERVED, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (model_reserved == MAP_FAILED)
        abort();
}

static inline size_t model_piece_add(struct model_piece *pieces, void *base,
                                     size_t size)
{
    size_t i = 0;

    while (i < MODEL_PIECES && pieces[i].base != NULL)
        i++;
    EXPLORE_CHECK(i < MODEL_PIECES);
    pieces[i] = (struct model_piece){base, size};
    return i;
}

/* The piece that begins there, or NULL. */
static inline struct model_piece *model_piece_at(struct model_piece *pieces,
                                                 const void *base)
{
    for (size_t i = 0; i < MODEL_PIECES; i++) {
        if (pieces[i].base != NULL && pieces[i].base == base)
            return &pieces[i];
    }
    return NULL;
}

/* How many pieces lie in a range. */
static inline size_t model_pieces_in(const struct model_piece *pieces,
                                     const char *base, size_t size)
{
    size_t count = 0;

    for (size_t i = 0; i < MODEL_PIECES; i++)
        count += pieces[i].base >= base && pieces[i].base < base + size;
    return count;
}

static inline size_t model_guard_count(void)
{
    return model_pieces_in(memory.guards, model_reserved, MODEL_RESERVED);
}

/* All that was done with these pages comes before. */
static inline void model_pages_change(void *base, size_t size)
{
    explore_hide(base, size, EXPLORE_PLACE);
    explore_cell(base, sizeof(uint64_t), true, EXPLORE_PLACE);
}

static size_t memory_page_size(void)
{
    return MODEL_PAGE;
}

static int memory_map(size_t size, void **out)
{
    if (size > MODEL_RESERVED - memory.used)
        return -ENOMEM;
    *out = model_reserved + memory.used;
    memory.used += size;
    (void)model_piece_add(memory.mapped, *out, size);
    if (++memory.mapped_count > memory.mapped_most)
        memory.mapped_most = memory.mapped_count;
    return 0;
}

static int memory_unmap(void *base, size_t size)
{
    struct model_piece *piece = model_piece_at(memory.mapped, base);

    EXPLORE_CHECK(piece != NULL && piece->size == size);
    EXPLORE_CHECK(model_pieces_in(memory.held, base, size) == 0);
    model_pages_change(base, size);
    piece->base = NULL;
    memory.mapped_count--;
    for (size_t i = 0; i < MODEL_PIECES; i++) {
        struct model_piece *guard = &memory.guards[i];

        if (guard->base >= (char *)base && guard->base < (char *)base + size)
            guard->base = NULL;
    }
    return 0;
}

static inline int model_guard(void *base, size_t size)
{
    EXPLORE_CHECK(model_piece_at(memory.guards, base) == NULL);
    model_pages_change(base, size);
    (void)model_piece_add(memory.guards, base, size);
    return 0;
}

static int memory_guard_install(void *base, size_t size)
{
    return memory.regions ? model_guard(base, size) : -EINVAL;
}

/* It takes no memory only where a table is there, because of another guard. */
static int memory_guard_beside(void *base, size_t size)
{
    size_t span = pirn__guard_span(MODEL_PAGE);
    char *table = (char *)base - (uintptr_t)base % span;

    EXPLORE_CHECK(memory.regions);
    EXPLORE_CHECK(model_pieces_in(memory.guards, table, span) > 0);
    return model_guard(base, size);
}

static int memory_protect_none(void *base, size_t size)
{
    int rc = model_guard(base, size);

    if (model_guard_count() > memory.guards_most)
        memory.guards_most = model_guard_count();
    return rc;
}

static int memory_discard(void *base, size_t size)
{
    EXPLORE_CHECK(model_piece_at(memory.held, base) == NULL);
    model_pages_change(base, size);
    return 0;
}

static int memory_mapping_limit(void)
{
    return memory.mapping_limit;
}

/* The probe has the kernel write to a guard. */
static ssize_t memory_read(int fd, void *buf, size_t len)
{
    if (model_pieces_in(memory.guards, buf, len) > 0)
        return -EFAULT;
    return memory_beneath->read(fd, buf, len);
}

/* For this execution; `guard_limit` guards at most, or as many as one likes
 * where it is 0. */
static inline void model_memory_begin(int guard_limit)
{
    memory_beneath = pirn__sys;
    memory_table = *pirn__sys;
    memory_table.page_size = memory_page_size;
    memory_table.map = memory_map;
    memory_table.unmap = memory_unmap;
    memory_table.guard_install = memory_guard_install;
    memory_table.guard_beside = memory_guard_beside;
    memory_table.protect_none = memory_protect_none;
    memory_table.discard = memory_discard;
    memory_table.mapping_limit = memory_mapping_limit;
    memory_table.read = memory_read;
    memory.regions = guard_limit == 0;
    /* Of a hundred mappings 45 guards are made. */
    memory.mapping_limit = (guard_limit * 100 + 44) / 45;
    pirn__sys = &memory_table;
}

/* A thread uses the stack: nobody else does, and its guard is there. */
static inline void model_stack_hold(const struct pirn__stack *stack)
{
    char *base = stack->base;
    size_t slot = 0;

    while (slot < MODEL_PIECES && memory.guards[slot].base +
                                          memory.guards[slot].size != base)
        slot++;
    EXPLORE_CHECK(slot < MODEL_PIECES && memory.guards[slot].base != NULL);
    EXPLORE_CHECK(model_piece_at(memory.held, base) == NULL);
    (void)model_piece_add(memory.held, base, stack->size);
    explore_cell(memory.guards[slot].base, sizeof(uint64_t), false,
                 EXPLORE_PLACE);
    explore_cell(base, sizeof(uint64_t), true, EXPLORE_PLACE);
}

static inline void model_stack_let_go(const struct pirn__stack *stack)
{
    struct model_piece *held = model_piece_at(memory.held, stack->base);

    EXPLORE_CHECK(held != NULL);
    held->base = NULL;
    explore_cell(stack->base, sizeof(uint64_t), true, EXPLORE_PLACE);
}

#endif /* PIRN_TESTS_ENGINE_MODEL_MEMORY_H */
