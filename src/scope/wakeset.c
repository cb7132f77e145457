/* SPDX-License-Identifier: MIT */
/* src/scope/wakeset.c - which children of a combinator have been woken. */
#include "scope/wakeset.h"

#include "base/lock.h"
#include "task/home.h"
#include "task/local.h"

#ifdef PIRN_MODEL
enum { WORD_BITS = 2 }; /* so that a model has more than one word */
#else
enum { WORD_BITS = 64 };
#endif

typedef PIRN_ATOMIC(uint64_t) bit_word;

struct pirn__wakeset {
    PIRN_ATOMIC(uint32_t) refs;
    pirn_lock lock;
    pirn_waker parent; /* lock */
    struct pirn__home *home; /* whose memory this is, with a reference; or
                                NULL */
    size_t count;
    bit_word *bits;     /* behind the numbers */
    uint32_t numbers[]; /* each its own index */
};

static size_t words_for(size_t count)
{
    return (count + WORD_BITS - 1) / WORD_BITS;
}

/* Where the bits begin. */
static size_t bits_offset(size_t count)
{
    size_t end = sizeof(struct pirn__wakeset) + count * sizeof(uint32_t);

    return (end + sizeof(bit_word) - 1) & ~(sizeof(bit_word) - 1);
}

static size_t size_for(size_t count)
{
    return bits_offset(count) + words_for(count) * sizeof(bit_word);
}

static struct pirn__wakeset *set_of(const uint32_t *number)
{
    return PIRN_CONTAINER_OF(number - *number, struct pirn__wakeset, numbers);
}

static void set_unref(struct pirn__wakeset *set)
{
    /* acq_rel [wakeset.refs]: release [wakeset.refs] ends our use; acquire
     * [wakeset.refs] is the half of the one that frees. */
    if (pirn__sub(&set->refs, 1, acq_rel) > 1)
        return;
    pirn__home_give_object(set->home, set, size_for(set->count));
}

/* The bit of a child; true if it was set before. */
static bool set_bit(struct pirn__wakeset *set, size_t index)
{
    uint64_t bit = UINT64_C(1) << index % WORD_BITS;

    /* release [wakeset.bits]: what our caller wrote is seen by the poll that
     * takes the bit, also if another wake has set it already. */
    return (pirn__or(&set->bits[index / WORD_BITS], bit, release) & bit) != 0;
}

void pirn__wakeset_mark(struct pirn__wakeset *set, size_t index)
{
    (void)set_bit(set, index);
}

void pirn__wakeset_wake(struct pirn__wakeset *set, size_t index)
{
    pirn_waker parent;

    if (set_bit(set, index))
        return;
    pirn__lock(&set->lock);
    parent = pirn_waker_take(&set->parent);
    pirn__unlock(&set->lock);
    pirn_waker_wake(parent);
}

static pirn_waker child_clone(const pirn_waker *self)
{
    /* relaxed: whoever copies holds one. */
    (void)pirn__add(&set_of(self->data)->refs, 1, relaxed);
    return *self;
}

static void child_wake_by_ref(const pirn_waker *self)
{
    const uint32_t *number = self->data;

    pirn__wakeset_wake(set_of(number), *number);
}

static void child_drop(pirn_waker self)
{
    set_unref(set_of(self.data));
}

static void child_wake(pirn_waker self)
{
    child_wake_by_ref(&self);
    child_drop(self);
}

static const pirn_waker_ops child_waker_ops = {
    .clone = child_clone,
    .wake = child_wake,
    .wake_by_ref = child_wake_by_ref,
    .drop = child_drop,
};

struct pirn__wakeset *pirn__wakeset_new(size_t count, struct pirn__home *home)
{
    struct pirn__wakeset *set = pirn__home_take_object(home, size_for(count));

    if (set == NULL)
        return NULL;
    set->parent = (pirn_waker){0};
    set->home = home;
    set->count = count;
    set->bits = (bit_word *)(void *)((char *)set + bits_offset(count));
    pirn__init(&set->lock.word_, 0);
    pirn__init(&set->refs, 1);
    for (size_t i = 0; i < words_for(count); i++)
        pirn__init(&set->bits[i], 0);
    for (size_t i = 0; i < count; i++) {
        set->numbers[i] = (uint32_t)i;
        (void)set_bit(set, i);
    }
    return set;
}

/* A plain thread asks each operation in every poll what to watch while it is
 * parked; see pirn__turn_note_fd(). */
static bool is_parked(const pirn_cx *cx)
{
    return cx->turn_ != NULL && cx->turn_->parker != NULL;
}

struct pirn__wakeset *pirn__wakeset_for(size_t count, size_t few,
                                        const pirn_cx *cx)
{
    if (count <= few || count > UINT32_MAX || is_parked(cx))
        return NULL;
    return pirn__wakeset_new(count, pirn__cx_home(cx));
}

/* Put a waker in, which may be empty, and drop the one that was there. */
static void replace_parent(struct pirn__wakeset *set, pirn_waker waker)
{
    pirn_waker old;

    pirn__lock(&set->lock);
    old = set->parent;
    set->parent = waker;
    pirn__unlock(&set->lock);
    pirn_waker_drop(old);
}

void pirn__wakeset_close(struct pirn__wakeset *set)
{
    if (set == NULL)
        return;
    replace_parent(set, (pirn_waker){0});
    set_unref(set);
}

void pirn__wakeset_arm(struct pirn__wakeset *set, const pirn_cx *cx)
{
    bool is_there;

    pirn__lock(&set->lock);
    is_there = pirn_waker_same(&set->parent, cx->waker);
    pirn__unlock(&set->lock);
    /* Only the parent puts one in, so nobody does so in between.  A copy is
     * made outside the lock: that may be the user's code. */
    if (!is_there)
        replace_parent(set, pirn_waker_clone(cx->waker));
    for (size_t i = 0; i < set->count && is_parked(cx); i++)
        pirn__wakeset_mark(set, i);
}

struct pirn__round pirn__round_begin(struct pirn__wakeset *set, size_t count,
                                     size_t start)
{
    return (struct pirn__round){.set = set, .count = count, .start = start};
}

static uint64_t rotate(uint64_t bits, size_t by)
{
    const uint64_t all = WORD_BITS == 64 ? UINT64_MAX
                                         : (UINT64_C(1) << WORD_BITS) - 1;

    by %= WORD_BITS;
    return by == 0 ? bits : (bits >> by | bits << (WORD_BITS - by)) & all;
}

/* Go on to a word with bits; they are rotated so that a random start is a
 * random place in each word as well. */
static bool take_word(struct pirn__round *round)
{
    size_t words = words_for(round->count);

    while (round->bits == 0) {
        if (round->step == words)
            return false;
        round->word = (round->start / WORD_BITS + round->step) % words;
        round->step++;
        /* acquire [wakeset.bits]: sees what came before each wake.  A swap:
         * a plain store would cut merged wakes off from whoever takes them. */
        round->bits = pirn__swap(&round->set->bits[round->word], 0, acquire);
        round->bits = rotate(round->bits, round->start);
    }
    return true;
}

static bool next_woken(struct pirn__round *round, size_t *index)
{
    size_t bit;

    if (!take_word(round))
        return false;
    bit = (size_t)__builtin_ctzll(round->bits);
    round->bits &= round->bits - 1;
    *index = round->word * WORD_BITS + (bit + round->start) % WORD_BITS;
    return true;
}

static bool next_of_all(struct pirn__round *round, size_t *index)
{
    if (round->step == round->count)
        return false;
    *index = round->start + round->step;
    if (*index >= round->count)
        *index -= round->count;
    round->step++;
    return true;
}

bool pirn__round_next(struct pirn__round *round, const pirn_cx *cx,
                      pirn_cx *child, size_t *index)
{
    *child = *cx;
    if (round->set == NULL)
        return next_of_all(round, index);
    if (!next_woken(round, index))
        return false;
    round->waker = (pirn_waker){&round->set->numbers[*index], &child_waker_ops};
    child->waker = &round->waker;
    return true;
}

void pirn__round_end(struct pirn__round *round)
{
    if (round->bits == 0)
        return;
    /* relaxed: the parent's own, whose polls come one after the other. */
    (void)pirn__or(&round->set->bits[round->word],
                   rotate(round->bits, WORD_BITS - round->start % WORD_BITS),
                   relaxed);
    round->bits = 0;
}
