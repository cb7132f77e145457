/* SPDX-License-Identifier: MIT */
/* src/reactor/line_test.c - the line alone.  With descriptors and events it is
 * tested in io_test.c.
 */
#include "engine/test.h"
#include "reactor/line.h"

static void open_line(struct pirn__line *line, pirn_io_waiter *waiters, int n)
{
    static pirn__front front;

    pirn__line_init(line, &front);
    for (int i = 0; i < n; i++) {
        waiters[i] = (pirn_io_waiter){.io_ = NULL};
        pirn__list_init(&waiters[i].link_);
    }
}

static bool is_busy(const struct pirn__line *line)
{
    return pirn__front_look(line->front) != 0;
}

static bool calls_up(struct pirn__line *line, const pirn_io_waiter *waiter)
{
    if (!pirn__line_can_call(line))
        return false;
    pirn_waker_drop(pirn__line_call_up(line));
    return pirn__waiter_state(waiter) == PIRN__WAITER_WOKEN;
}

/* Goal: they are called up in the order in which they came, one at a time.
 * Method: three in line; each leaves before the next is called. */
TEST(line_calls_up_in_order_one_at_a_time)
{
    struct pirn__line line;
    pirn_io_waiter waiters[3];

    open_line(&line, waiters, 3);
    EXPECT(!is_busy(&line));
    for (int i = 0; i < 3; i++)
        pirn__line_enter(&line, &waiters[i]);
    EXPECT(is_busy(&line));
    for (int i = 0; i < 3; i++) {
        EXPECT(calls_up(&line, &waiters[i]));
        EXPECT(!pirn__line_can_call(&line));
        EXPECT(is_busy(&line));
        pirn__line_leave(&line, &waiters[i]);
    }
    EXPECT(!is_busy(&line));
    EXPECT(!pirn__line_can_call(&line));
}

/* Goal: who was called up for nothing is the first again; who enters twice
 * keeps its place.
 * Method: the first re-enters, the second enters again. */
TEST(line_entered_again_keeps_the_place)
{
    struct pirn__line line;
    pirn_io_waiter waiters[3];

    open_line(&line, waiters, 3);
    for (int i = 0; i < 3; i++)
        pirn__line_enter(&line, &waiters[i]);
    EXPECT(calls_up(&line, &waiters[0]));
    pirn__line_enter(&line, &waiters[0]);
    pirn__line_enter(&line, &waiters[1]);
    EXPECT(calls_up(&line, &waiters[0]));
    pirn__line_leave(&line, &waiters[0]);
    EXPECT(calls_up(&line, &waiters[1]));
    pirn__line_leave(&line, &waiters[1]);
    pirn__line_leave(&line, &waiters[2]);
    EXPECT(!is_busy(&line));
}

/* Goal: with readiness it is the turn of a newcomer only if nobody is before
 * it, and of a waiter only if it is the first.
 * Method: ask for each in each situation. */
TEST(line_turn_belongs_to_the_first)
{
    struct pirn__line line;
    pirn_io_waiter waiters[3];

    open_line(&line, waiters, 3);
    EXPECT(pirn__line_is_turn_of(&line, &waiters[0]));
    pirn__line_enter(&line, &waiters[0]);
    pirn__line_enter(&line, &waiters[1]);
    EXPECT(!pirn__line_is_turn_of(&line, &waiters[2]));
    EXPECT(!pirn__line_is_turn_of(&line, &waiters[1]));
    /* The first, before its wake has come: that has nobody to call then. */
    EXPECT(pirn__line_is_turn_of(&line, &waiters[0]));
    EXPECT(!pirn__line_can_call(&line));
    EXPECT(pirn__line_is_turn_of(&line, &waiters[0]));
    EXPECT(!pirn__line_is_turn_of(&line, &waiters[1]));
    pirn__line_leave(&line, &waiters[0]);
    EXPECT(!pirn__line_is_turn_of(&line, &waiters[2]));
    EXPECT(pirn__line_is_turn_of(&line, &waiters[1]));
    pirn__line_leave(&line, &waiters[1]);
}

/* Goal: emptied, the line forgets those who waited, not the one who is WOKEN.
 * Method: one called up, two moved away; those leave from the other list. */
TEST(line_emptied_keeps_the_woken_one)
{
    struct pirn__line line;
    pirn_io_waiter waiters[3];
    pirn_link others;

    open_line(&line, waiters, 3);
    pirn__list_init(&others);
    for (int i = 0; i < 3; i++)
        pirn__line_enter(&line, &waiters[i]);
    EXPECT(calls_up(&line, &waiters[0]));
    pirn__line_empty(&line, &others);
    EXPECT(is_busy(&line));
    pirn__line_leave(&line, &waiters[0]);
    EXPECT(!is_busy(&line));
    EXPECT_PTR_EQ(&waiters[1].link_, pirn__list_first(&others));
    pirn__line_leave(&line, &waiters[1]);
    pirn__line_leave(&line, &waiters[2]);
    EXPECT(pirn__list_empty(&others));
}

/* The front knows tasks only by where they are. */
static struct pirn__task tasks[2];

/* Goal: one task has the front, from its coming until it leaves, and is called up
 * once.
 * Method: two that come; the first is called twice. */
TEST(front_belongs_to_one_task)
{
    pirn__front front;
    pirn_waker waker;

    pirn__init(&front, 0);
    EXPECT(pirn__front_enter(&front, &tasks[0]));
    EXPECT(!pirn__front_enter(&front, &tasks[1]));
    EXPECT(pirn__front_waits(pirn__front_look(&front)));
    /* It would leave its reference behind. */
    EXPECT(!pirn__front_leave(&front));
    waker = pirn__front_call_up(&front, PIRN__FRONT_CALLED);
    EXPECT(pirn__waker_is_of(&waker, &tasks[0]));
    waker = pirn__front_call_up(&front, PIRN__FRONT_ENDED);
    EXPECT(waker.ops == NULL);
    EXPECT(!pirn__front_enter(&front, &tasks[1]));
    EXPECT(pirn__front_leave(&front));
    EXPECT(pirn__front_enter(&front, &tasks[1]));
}

/* Goal: the list stands behind the front, and is called only when that is empty,
 * which who leaves has to see to.
 * Method: one in the list while a task comes, is called and leaves. */
TEST(front_comes_before_the_list)
{
    struct pirn__line line;
    pirn_io_waiter waiters[2];
    uintptr_t word;

    open_line(&line, waiters, 2);
    EXPECT(pirn__front_enter(line.front, &tasks[0]));
    EXPECT(!pirn__line_is_turn_of(&line, &waiters[0]));
    pirn__line_enter(&line, &waiters[0]);
    EXPECT(!pirn__line_is_turn_of(&line, &waiters[0]));
    EXPECT(!pirn__line_can_call(&line));
    EXPECT(pirn__front_call_up(line.front, PIRN__FRONT_CALLED).ops != NULL);
    EXPECT(!pirn__line_can_call(&line));
    EXPECT(!pirn__front_leave(line.front));
    word = pirn__front_clear_locked(line.front, false);
    EXPECT_PTR_EQ(&tasks[0], pirn__front_task(word));
    EXPECT(!pirn__front_enter(line.front, &tasks[1]));
    EXPECT(calls_up(&line, &waiters[0]));
    pirn__line_leave(&line, &waiters[0]);
    EXPECT(!is_busy(&line));
}

/* Goal: who goes from the front into the list is its first, and in between
 * nobody takes the front.
 * Method: one called up at the front goes, tries, and waits again before
 * another. */
TEST(front_left_for_the_list_keeps_the_place)
{
    struct pirn__line line;
    pirn_io_waiter waiters[2];

    open_line(&line, waiters, 2);
    EXPECT(pirn__front_enter(line.front, &tasks[0]));
    pirn__line_enter(&line, &waiters[1]);
    EXPECT(pirn__front_call_up(line.front, PIRN__FRONT_CALLED).ops != NULL);
    (void)pirn__front_clear_locked(line.front, true);
    EXPECT(!pirn__front_enter(line.front, &tasks[1]));
    pirn__line_return(&line, &waiters[0]);
    EXPECT(pirn__line_is_turn_of(&line, &waiters[0]));
    EXPECT(!pirn__line_can_call(&line));
    pirn__line_enter(&line, &waiters[0]);
    EXPECT(calls_up(&line, &waiters[0]));
    pirn__line_leave(&line, &waiters[0]);
    EXPECT(calls_up(&line, &waiters[1]));
    pirn__line_leave(&line, &waiters[1]);
    EXPECT(!is_busy(&line));
}
