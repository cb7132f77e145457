/* SPDX-License-Identifier: MIT */
/* src/sched/inbox_test.c - the inbox alone, without a runtime. */
#include "sched/inbox.h"

#include "sched/runtime_test.h"

/* A link that knows who pushed it, and as which. */
struct letter {
    pirn_slink link;
    size_t sender;
    uint64_t number;
};

static struct letter *letter_of(pirn_slink *link)
{
    return PIRN_CONTAINER_OF(link, struct letter, link);
}

/* Goal: an empty inbox says so and leaves the queue alone.
 * Method: take from one that was never used and from one that was emptied. */
TEST(inbox_take_of_empty_gives_false)
{
    struct pirn__inbox inbox = {{NULL}};
    struct pirn__queue queue = {0};
    struct letter letter = {.number = 1};

    EXPECT(!pirn__inbox_has_some(&inbox));
    EXPECT(!pirn__inbox_take(&inbox, &queue));
    EXPECT(pirn__queue_empty(&queue));

    pirn__inbox_push(&inbox, &letter.link);
    EXPECT(pirn__inbox_has_some(&inbox));
    EXPECT(pirn__inbox_take(&inbox, &queue));
    EXPECT(!pirn__inbox_has_some(&inbox));
    EXPECT(!pirn__inbox_take(&inbox, &queue));
}

/* Goal: what is taken comes oldest first, behind what the queue held.
 * Method: number the letters; one is in the queue before. */
TEST(inbox_take_appends_oldest_first)
{
    struct pirn__inbox inbox = {{NULL}};
    struct pirn__queue queue = {0};
    struct letter letters[5];

    for (uint64_t i = 0; i < 5; i++)
        letters[i].number = i;
    pirn__queue_push(&queue, &letters[0].link);
    for (int i = 1; i < 5; i++)
        pirn__inbox_push(&inbox, &letters[i].link);
    EXPECT(pirn__inbox_take(&inbox, &queue));
    for (uint64_t i = 0; i < 5; i++) {
        pirn_slink *link = pirn__queue_pop(&queue);

        REQUIRE(link != NULL);
        EXPECT_EQ(i, letter_of(link)->number);
    }
    EXPECT(pirn__queue_empty(&queue));
}

enum { SENDERS = 8 };

struct post {
    struct pirn__inbox inbox;
    size_t each;
    struct letter *letters[SENDERS];
};

static void send_letters(void *arg, size_t index)
{
    struct post *post = arg;

    for (uint64_t i = 0; i < post->each; i++) {
        struct letter *letter = &post->letters[index][i];

        *letter = (struct letter){.sender = index, .number = i};
        pirn__inbox_push(&post->inbox, &letter->link);
    }
}

/* Goal: no push is lost or doubled, and each thread's pushes keep their order.
 * Method: eight threads push numbered letters while one takes; of each sender
 * the next letter must carry the next number. */
TEST(inbox_pushes_of_one_thread_keep_their_order)
{
    struct post post = {.each = test_size(2000, 100000, 2000000)};
    uint64_t next[SENDERS] = {0};
    struct pirn__queue queue = {0};
    struct crew crew;
    size_t seen = 0;

    for (size_t i = 0; i < SENDERS; i++) {
        post.letters[i] = calloc(post.each, sizeof(struct letter));
        REQUIRE(post.letters[i] != NULL);
    }
    crew_start(&crew, SENDERS, send_letters, &post);
    while (seen < SENDERS * post.each) {
        pirn_slink *link;

        if (!pirn__inbox_take(&post.inbox, &queue))
            sched_yield();
        while ((link = pirn__queue_pop(&queue)) != NULL) {
            struct letter *letter = letter_of(link);

            EXPECT_EQ(next[letter->sender], letter->number);
            next[letter->sender] = letter->number + 1;
            seen++;
        }
    }
    crew_join(&crew);
    EXPECT(!pirn__inbox_has_some(&post.inbox));
    for (size_t i = 0; i < SENDERS; i++)
        free(post.letters[i]);
}
