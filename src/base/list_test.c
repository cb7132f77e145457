/* SPDX-License-Identifier: MIT */
/* src/base/list_test.c - both lists against what they should hold. */
#include "base/list.h"

#include "engine/test.h"

enum { NODES = 5 };

struct node {
    int value;
    pirn_link link;
    pirn_slink slink;
};

static void make_nodes(struct node nodes[NODES])
{
    for (int i = 0; i < NODES; i++) {
        nodes[i].value = i;
        pirn__list_init(&nodes[i].link);
    }
}

/* The values in the list as decimal digits, read in both directions. */
static int digits_of(const pirn_link *head)
{
    int forward = 0;
    int backward = 0;
    int weight = 1;

    for (pirn_link *link = head->next_; link != head; link = link->next_)
        forward =
            forward * 10 + PIRN_CONTAINER_OF(link, struct node, link)->value;
    for (pirn_link *link = head->prev_; link != head; link = link->prev_) {
        backward += weight * PIRN_CONTAINER_OF(link, struct node, link)->value;
        weight *= 10;
    }
    EXPECT_EQ(forward, backward);
    return forward;
}

/* Goal: an empty list answers so everywhere.
 * Method: ask. */
TEST(list_empty_gives_nothing)
{
    pirn_link head;
    pirn_link other;

    pirn__list_init(&head);
    pirn__list_init(&other);
    EXPECT(pirn__list_empty(&head));
    EXPECT(!pirn__list_linked(&other));
    EXPECT_PTR_EQ(NULL, pirn__list_first(&head));
    EXPECT_PTR_EQ(NULL, pirn__list_pop_head(&head));
    pirn__list_splice_tail(&head, &other);
    EXPECT(pirn__list_empty(&head));
}

/* Goal: order of pushes at both ends.
 * Method: tail 1, 2, 3, head 4. */
TEST(list_push_at_both_ends_keeps_order)
{
    struct node nodes[NODES];
    pirn_link head;

    make_nodes(nodes);
    pirn__list_init(&head);
    for (int i = 1; i <= 3; i++)
        pirn__list_push_tail(&head, &nodes[i].link);
    pirn__list_push_head(&head, &nodes[4].link);
    EXPECT_EQ(4123, digits_of(&head));
    EXPECT_PTR_EQ(&nodes[4].link, pirn__list_first(&head));
}

/* Goal: removal from any place leaves the rest, and the link on its own, so
 * that a second removal is harmless.
 * Method: remove each of four in turn from a fresh list. */
TEST(list_remove_anywhere_leaves_the_rest)
{
    static const int rest[NODES] = {0, 234, 134, 124, 123};

    for (int victim = 1; victim < NODES; victim++) {
        struct node nodes[NODES];
        pirn_link head;

        make_nodes(nodes);
        pirn__list_init(&head);
        for (int i = 1; i < NODES; i++)
            pirn__list_push_tail(&head, &nodes[i].link);
        EXPECT(pirn__list_linked(&nodes[victim].link));
        pirn__list_remove(&nodes[victim].link);
        EXPECT(!pirn__list_linked(&nodes[victim].link));
        pirn__list_remove(&nodes[victim].link);
        EXPECT_EQ(rest[victim], digits_of(&head));
    }
}

/* Goal: pop takes from the head until nothing is left.
 * Method: three in, three out. */
TEST(list_pop_head_drains_in_order)
{
    struct node nodes[NODES];
    pirn_link head;

    make_nodes(nodes);
    pirn__list_init(&head);
    for (int i = 0; i < 3; i++)
        pirn__list_push_tail(&head, &nodes[i].link);
    for (int i = 0; i < 3; i++)
        EXPECT_PTR_EQ(&nodes[i].link, pirn__list_pop_head(&head));
    EXPECT(pirn__list_empty(&head));
}

/* Goal: a splice moves everything, whichever side is empty.
 * Method: {1,2}+{3,4}, {}+{...}, {...}+{}. */
TEST(list_splice_moves_everything)
{
    struct node nodes[NODES];
    pirn_link target;
    pirn_link source;

    make_nodes(nodes);
    pirn__list_init(&target);
    pirn__list_init(&source);
    for (int i = 1; i <= 2; i++)
        pirn__list_push_tail(&target, &nodes[i].link);
    for (int i = 3; i <= 4; i++)
        pirn__list_push_tail(&source, &nodes[i].link);
    pirn__list_splice_tail(&target, &source);
    EXPECT_EQ(1234, digits_of(&target));
    EXPECT(pirn__list_empty(&source));
    pirn__list_splice_tail(&source, &target);
    EXPECT_EQ(1234, digits_of(&source));
    EXPECT(pirn__list_empty(&target));
    pirn__list_splice_tail(&source, &target);
    EXPECT_EQ(1234, digits_of(&source));
}

/* Goal: the queue is first in, first out, also after it ran empty.
 * Method: two rounds of push and pop. */
TEST(queue_is_first_in_first_out)
{
    struct node nodes[NODES];
    struct pirn__queue queue = {0};

    for (int round = 0; round < 2; round++) {
        EXPECT(pirn__queue_empty(&queue));
        EXPECT_PTR_EQ(NULL, pirn__queue_pop(&queue));
        for (int i = 0; i < NODES; i++)
            pirn__queue_push(&queue, &nodes[i].slink);
        for (int i = 0; i < NODES; i++)
            EXPECT_PTR_EQ(&nodes[i].slink, pirn__queue_pop(&queue));
    }
}

/* Goal: splicing queues keeps order and empties the source.
 * Method: {} + {0,1}, then + {2}, then + {}. */
TEST(queue_splice_appends_all)
{
    struct node nodes[NODES];
    struct pirn__queue target = {0};
    struct pirn__queue source = {0};

    pirn__queue_push(&source, &nodes[0].slink);
    pirn__queue_push(&source, &nodes[1].slink);
    pirn__queue_splice(&target, &source);
    EXPECT(pirn__queue_empty(&source));
    pirn__queue_push(&source, &nodes[2].slink);
    pirn__queue_splice(&target, &source);
    pirn__queue_splice(&target, &source);
    pirn__queue_push(&target, &nodes[3].slink);
    for (int i = 0; i < 4; i++)
        EXPECT_PTR_EQ(&nodes[i].slink, pirn__queue_pop(&target));
    EXPECT(pirn__queue_empty(&target));
}
