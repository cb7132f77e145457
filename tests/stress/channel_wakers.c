/* SPDX-License-Identifier: MIT */
/* tests/stress/channel_wakers.c - channels whose users act from inside their
 * wakers.
 *
 * A waker is copied, woken and given up without a lock, so it may do anything
 * that does not wait: send, receive, poll another operation, drop it.  Here one
 * in three does, while others of its batch are yet to be woken, so that on one
 * thread, and again by the same seed, the channel is used in the middle of each
 * of its own steps.
 *
 * After each step the following holds:
 *   - who waits and was not woken has to: there is no room for the first sender,
 *     no message for a receiver, and no end;
 *   - each message is with its sender, or in the channel, or was received or
 *     discarded once.
 */
#include <errno.h>
#include <stdio.h>

#include <pirn/mpmc.h>
#include <pirn/mpsc.h>

#include "engine/test.h"
#include "stress/actor.h"

enum {
    USERS = 40, /* more than are woken at a time */
    PERMITS = 3,
    STEPS = 300,
    MESSAGES = 16384, /* at most, in a round */
};

enum user_kind { USER_NONE, USER_SENDS, USER_RECEIVES, USER_RESERVES };

enum place { NOWHERE, WITH_SENDER, IN_CHANNEL, RECEIVED, DISCARDED };

struct user {
    enum user_kind kind;
    struct actor actor;
    size_t count; /* how many places it wants */
    int message;
    union {
        pirn_future future;
        pirn_channel_send_op send;
        pirn_channel_recv_op recv;
        pirn_mpsc_reserve_op reserve;
    } op;
};

static struct user users[USERS];
static pirn_mpsc_permit permits[PERMITS];
static enum place places[MESSAGES];
static int message_count;

static bool is_many; /* mpmc */
static size_t capacity;
static bool closed;
static pirn_mpsc_sender *tx;
static pirn_mpsc_receiver *rx;
static pirn_mpmc_sender *many_tx;
static pirn_mpmc_receiver *many_rx;

/* Messages. */

static int message_new(void)
{
    EXPECT_LE(message_count + 2, MESSAGES);
    places[++message_count] = WITH_SENDER;
    return message_count;
}

/* A waker may have received it before the send has returned. */
static void message_sent(int message)
{
    if (places[message] == WITH_SENDER)
        places[message] = IN_CHANNEL;
}

static void message_received(int message)
{
    EXPECT(places[message] == IN_CHANNEL || places[message] == WITH_SENDER);
    places[message] = RECEIVED;
}

static void message_discarded(void *arg, void *message)
{
    int number = *(int *)message;

    (void)arg;
    EXPECT(places[number] == IN_CHANNEL || places[number] == RECEIVED);
    places[number] = DISCARDED;
}

/* Users. */

static void permit_keep(pirn_mpsc_permit permit)
{
    for (int i = 0; i < PERMITS; i++) {
        if (permits[i].count > 0)
            continue;
        permits[i] = permit;
        return;
    }
    pirn_mpsc_permit_release(&permit);
}

static void check_answer(int rc)
{
    EXPECT(rc == 0 || (rc == PIRN_ECLOSED && closed));
}

static void user_ended(struct user *user)
{
    int outcome = pirn_future_outcome(&user->op.future);

    if (user->kind == USER_RECEIVES) {
        check_answer(outcome == 1 ? 0 : outcome);
        if (outcome == 1)
            message_received(user->message);
        if (dice(8) == 0)
            pirn_future_discard(&user->op.future);
    } else {
        check_answer(outcome);
        if (user->kind == USER_SENDS && outcome == 0)
            message_sent(user->message);
        else if (user->kind == USER_RESERVES && dice(4) == 0)
            pirn_future_discard(&user->op.future);
        else if (user->kind == USER_RESERVES)
            permit_keep(user->op.reserve.permit);
    }
    user->kind = USER_NONE;
}

static void user_poll(struct user *user)
{
    pirn_waker waker = {&user->actor, &actor_ops};
    pirn_cx cx = pirn_cx_of_waker(&waker);

    user->actor.in_poll = true;
    user->actor.woken = false;
    if (pirn_future_poll(&user->op.future, &cx) == PIRN_READY)
        user_ended(user);
    user->actor.in_poll = false;
}

static void user_drop(struct user *user)
{
    user->actor.in_poll = true;
    pirn_future_drop(&user->op.future);
    if (user->kind == USER_SENDS)
        EXPECT_EQ(WITH_SENDER, places[user->message]);
    user->kind = USER_NONE;
    user->actor.in_poll = false;
}

static bool somebody_receives(void)
{
    for (int i = 0; i < USERS; i++)
        if (users[i].kind == USER_RECEIVES)
            return true;
    return false;
}

static void begin_send(struct user *user)
{
    user->kind = USER_SENDS;
    user->message = message_new();
    if (is_many)
        pirn_mpmc_send_init(&user->op.send, many_tx, &user->message);
    else
        pirn_mpsc_send_init(&user->op.send, tx, &user->message);
    user_poll(user);
}

static void begin_receive(struct user *user)
{
    if (!is_many && somebody_receives())
        return;
    user->kind = USER_RECEIVES;
    if (is_many)
        pirn_mpmc_recv_init(&user->op.recv, many_rx, &user->message);
    else
        pirn_mpsc_recv_init(&user->op.recv, rx, &user->message);
    user_poll(user);
}

static void begin_reserve(struct user *user)
{
    if (is_many || capacity == PIRN_UNBOUNDED)
        return;
    user->kind = USER_RESERVES;
    user->count = 1 + dice(capacity);
    pirn_mpsc_reserve_init(&user->op.reserve, tx, user->count);
    user_poll(user);
}

static void user_begin(struct user *user)
{
    if (user->actor.wakers > 0) /* of what it did before: about to be woken */
        return;
    user->count = 1;
    switch (dice(3)) {
    case 0:
        begin_send(user);
        break;
    case 1:
        begin_receive(user);
        break;
    default:
        begin_reserve(user);
        break;
    }
}

/* Without an operation. */

static void try_send(void)
{
    int message = message_new();
    int rc = is_many ? pirn_mpmc_try_send(many_tx, &message)
                     : pirn_mpsc_try_send(tx, &message);

    if (rc == 0)
        message_sent(message);
    else if (rc != -EAGAIN)
        check_answer(rc);
}

/* One receiver makes one call at a time. */
static bool may_try_recv(void)
{
    for (int i = 0; i < USERS && !is_many; i++)
        if (users[i].kind == USER_RECEIVES && users[i].actor.in_poll)
            return false;
    return true;
}

static void try_recv(void)
{
    int message = 0;
    int rc = -EAGAIN;

    if (may_try_recv())
        rc = is_many ? pirn_mpmc_try_recv(many_rx, &message)
                     : pirn_mpsc_try_recv(rx, &message);
    if (rc == 0)
        message_received(message);
    else if (rc != -EAGAIN)
        check_answer(rc);
}

static void use_permit(void)
{
    pirn_mpsc_permit *mine = &permits[dice(PERMITS)];
    pirn_mpsc_permit permit = *mine;
    int message;

    if (permit.count == 0)
        return;
    *mine = (pirn_mpsc_permit){0};
    if (dice(3) != 0) {
        message = message_new();
        EXPECT_EQ(0, pirn_mpsc_permit_send(&permit, &message));
        message_sent(message);
        if (permit.count > 0)
            permit_keep(permit);
    } else {
        pirn_mpsc_permit_release(&permit);
    }
}

/* Something. */
static void act(void)
{
    struct user *user = &users[dice(USERS)];
    uint32_t what = dice(10);

    if (what < 6) {
        if (user->actor.in_poll)
            return;
        if (user->kind == USER_NONE)
            user_begin(user);
        else if (what == 0)
            user_drop(user);
        else
            user_poll(user);
    } else if (what < 7) {
        try_send();
    } else if (what < 8) {
        try_recv();
    } else {
        use_permit();
    }
}

static void close_channel(void)
{
    closed = true;
    if (is_many)
        pirn_mpmc_receiver_close(many_rx);
    else
        pirn_mpsc_sender_close(tx);
}

/* What holds between two steps. */
static void check_who_waits(void)
{
    pirn_channel_info info =
        is_many ? pirn_mpmc_sender_info(many_tx) : pirn_mpsc_sender_info(tx);
    size_t promised = 0, most = 0;
    bool receiver_waits = false;

    for (int i = 0; i < USERS; i++) {
        const struct user *user = &users[i];

        if (user->kind == USER_RECEIVES && user->actor.woken)
            promised++;
        else if (user->kind == USER_RECEIVES)
            receiver_waits = true;
        else if (user->kind != USER_NONE && !user->actor.woken &&
                 user->count > most)
            most = user->count;
    }
    /* The first in line may be any of them, as wakers act. */
    if (most > 0)
        EXPECT(!closed && info.available < most);
    if (receiver_waits) {
        EXPECT_LE(info.length, promised);
        EXPECT(!closed || info.length > 0 || info.available < info.capacity);
    }
}

static void make_channel(void)
{
    const bool is_endless = !is_many && dice(4) == 0;
    const pirn_channel_options options = {
        .message_size = sizeof(int),
        .capacity = is_endless ? PIRN_UNBOUNDED : 1 + dice(dice(3) ? 4 : 20),
        .discard = message_discarded,
    };

    capacity = options.capacity;
    if (is_many)
        EXPECT_EQ(0, pirn_mpmc_new(&options, &many_tx, &many_rx));
    else
        EXPECT_EQ(0, pirn_mpsc_new(&options, &tx, &rx));
}

static void end_channel(void)
{
    if (is_many) {
        pirn_mpmc_sender_unref(many_tx);
        pirn_mpmc_receiver_unref(many_rx);
    } else {
        pirn_mpsc_sender_unref(tx);
        pirn_mpsc_receiver_free(rx);
    }
    for (int i = 1; i <= message_count; i++)
        EXPECT(places[i] != IN_CHANNEL);
}

static void end_users(void)
{
    for (int i = 0; i < USERS; i++) {
        if (users[i].kind != USER_NONE)
            user_drop(&users[i]);
        check_who_waits();
    }
    for (int i = 0; i < PERMITS; i++)
        pirn_mpsc_permit_release(&permits[i]);
    for (int i = 0; i < USERS; i++)
        EXPECT_EQ(0, users[i].actor.wakers);
}

static void play(uint64_t seed, bool many)
{
    pirn__prng_seed(&prng, seed);
    is_many = many;
    wakers_act = dice(4) != 0;
    closed = false;
    message_count = 0;
    make_channel();
    for (int i = 0; i < STEPS; i++) {
        act();
        if (!closed && dice(2 * STEPS) == 0)
            close_channel();
        check_who_waits();
    }
    wakers_act = false;
    end_users();
    end_channel();
}

static void play_all(bool many)
{
    uint64_t seed = test_seed();
    size_t rounds = test_size(200, 2000, 200000);

    for (size_t i = 0; i < rounds; i++) {
        play(seed + i, many);
        if (test_failures() > 0) {
            printf("it was round %zu, or --seed %llu\n", i,
                   (unsigned long long)(seed + i));
            return;
        }
    }
}

/* Goal: whatever wakers do, with one receiver nobody waits in vain and no message
 * is lost or received twice. */
TEST(channel_wakers_act_one_receiver)
{
    play_all(false);
}

/* Goal: the same with several receivers. */
TEST(channel_wakers_act_many_receivers)
{
    play_all(true);
}
