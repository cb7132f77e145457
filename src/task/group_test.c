/* SPDX-License-Identifier: MIT */
/* src/task/group_test.c - membership, the gate and the counters. */
#include "task/lab_test.h"

enum { MEMBERS = 5 };

/* Goal: every outcome is counted in its own counter, and the sums hold at every
 * moment.
 * Method: one task for each kind of end. */
TEST(group_counts_every_outcome)
{
    struct script ends[MEMBERS] = {
        {.outcome = 0},
        {.outcome = 12},
        {.outcome = -EIO},
        {.outcome = -ECANCELED},
        {.outcome = PIRN_EPANIC},
    };
    struct script dropped[2] = {{0}, {0}};
    struct pirn__group_counts counts;
    struct lab lab;

    lab_begin(&lab);
    for (int i = 0; i < MEMBERS; i++)
        (void)lab_spawn_loose(&lab, &ends[i]);
    counts = pirn__group_read(&lab.group);
    EXPECT_EQ(MEMBERS, counts.live);
    EXPECT_EQ(MEMBERS, counts.spawned);
    while (lab_run(&lab)) {
        counts = pirn__group_read(&lab.group);
        EXPECT_EQ(counts.spawned, counts.live + counts.completed +
                                      counts.failed + counts.cancelled +
                                      counts.aborted);
    }
    pirn_task *task = lab_spawn(&lab, &dropped[0]);

    pirn_task_abort(task);
    pirn_task_unref(task);
    EXPECT_EQ(0, pirn_id_cancel(lab_spawn_loose(&lab, &dropped[1])));
    EXPECT_EQ(2, lab_run_all(&lab));
    counts = pirn__group_read(&lab.group);
    EXPECT_EQ(0, counts.live);
    EXPECT_EQ(MEMBERS + 2, counts.spawned);
    EXPECT_EQ(2, counts.completed);
    EXPECT_EQ(2, counts.failed);
    EXPECT_EQ(2, counts.cancelled);
    EXPECT_EQ(1, counts.aborted);
    lab_finish(&lab);
}

/* Goal: a closed gate admits nobody; the refused future is still its owner's,
 * live and unpolled, and who is inside is not touched.
 * Method: spawn before and after. */
TEST(group_closed_admits_nobody)
{
    struct script inside = {0}, outside = {0};
    struct pirn__ledger ledger = {0};
    struct lab lab;
    int pieces;

    lab_begin(&lab);
    (void)lab_spawn_loose(&lab, &inside);
    pieces = lab.pieces;
    pirn__group_close(&lab.group, PIRN__GROUP_CLOSED);
    EXPECT_PTR_EQ(NULL, lab_spawn_with(&lab, &outside, NULL, false));
    EXPECT_EQ(0, outside.polls + outside.drops + outside.discards);
    EXPECT_EQ(pieces, lab.pieces);
    EXPECT_EQ(1, lab_run_all(&lab));
    EXPECT_EQ(1, inside.polls);
    EXPECT_EQ(1, pirn__group_read(&lab.group).spawned);
    lab.ledger = &ledger;
    EXPECT_PTR_EQ(NULL, lab_spawn_with(&lab, &outside, NULL, false));
    lab_finish(&lab);
}

/* What a visit saw. */
struct tour {
    struct lab *lab;
    struct script *newcomer; /* spawned at the first stop; or NULL */
    int stops;
};

static void stop_at(struct pirn__task *task, void *arg)
{
    struct tour *tour = arg;

    EXPECT((pirn__state_peek(pirn__task_state(task)) & PIRN__REFS_MASK) >=
           2 * PIRN__REF);
    tour->stops++;
    if (tour->newcomer != NULL)
        (void)lab_spawn_loose(tour->lab, tour->newcomer);
    tour->newcomer = NULL;
}

/* Goal: a visit comes to every member that was there at its start once, with a
 * reference, and at most once to a newcomer.
 * Method: three members, a fourth is spawned during the visit. */
TEST(group_visit_comes_to_each_member_once)
{
    struct script scripts[3] = {{0}, {0}, {0}}, newcomer = {0};
    struct lab lab;
    struct tour tour = {&lab, &newcomer, 0};

    lab_begin(&lab);
    pirn__group_visit(&lab.group, stop_at, &tour);
    EXPECT_EQ(0, tour.stops);
    for (int i = 0; i < 3; i++)
        (void)lab_spawn_loose(&lab, &scripts[i]);
    pirn__group_visit(&lab.group, stop_at, &tour);
    EXPECT(tour.stops == 3 || tour.stops == 4);
    tour.stops = 0;
    pirn__group_visit(&lab.group, stop_at, &tour);
    EXPECT_EQ(4, tour.stops);
    EXPECT_EQ(4, lab_run_all(&lab));
    lab_finish(&lab);
}

static void end_another(struct pirn__task *task, void *arg)
{
    struct tour *tour = arg;

    (void)task;
    tour->stops++;
    EXPECT(lab_run(tour->lab));
}

/* Goal: members may leave while a visit goes on.
 * Method: at each stop the next queued task is run to its end, also the one
 * that is being visited; one that has left is not met any more. */
TEST(group_members_may_leave_during_a_visit)
{
    struct script scripts[4] = {{0}, {0}, {0}, {0}};
    struct lab lab;
    struct tour tour = {&lab, NULL, 0};

    lab_begin(&lab);
    for (int i = 0; i < 4; i++)
        (void)lab_spawn_loose(&lab, &scripts[i]);
    pirn__group_visit(&lab.group, end_another, &tour);
    EXPECT(tour.stops > 0 && tour.stops <= 4);
    while (lab_run(&lab))
        continue;
    EXPECT_EQ(0, pirn__group_read(&lab.group).live);
    lab_finish(&lab);
}

/* Goal: what is counted in a ledger and what is counted without one add up, also
 * when a task ends elsewhere than where it was admitted; one that somebody still
 * has a handle of is no member any more.
 * Method: tasks of both kinds, run by the other one. */
TEST(group_ledgers_add_up)
{
    struct script scripts[3] = {{0}, {0}, {.outcome = -EIO}};
    struct pirn__ledger ledger = {0};
    struct pirn__group_counts counts = {0};
    struct lab lab;
    struct tour tour = {&lab, NULL, 0};
    pirn_task *task;

    lab_begin(&lab);
    lab.ledger = &ledger;
    (void)lab_spawn_loose(&lab, &scripts[0]);
    lab.ledger = NULL;
    (void)lab_spawn_loose(&lab, &scripts[1]);
    task = lab_spawn(&lab, &scripts[2]);
    EXPECT(lab_run(&lab));
    lab.turn.ledger = &ledger;
    EXPECT_EQ(2, lab_run_all(&lab));
    pirn__group_visit(&lab.group, stop_at, &tour);
    EXPECT_EQ(0, tour.stops);
    pirn_task_unref(task);
    pirn__ledger_read_ends(&lab.group.ledger, &counts);
    pirn__ledger_read_ends(&ledger, &counts);
    pirn__ledger_read_spawned(&lab.group.ledger, &counts);
    pirn__ledger_read_spawned(&ledger, &counts);
    EXPECT_EQ(3, counts.spawned);
    EXPECT_EQ(2, counts.completed);
    EXPECT_EQ(1, counts.failed);
    EXPECT_EQ(0, counts.live);
    EXPECT(pirn__slabs_retire(&lab.slabs));
}

static void cancel_it(struct pirn__task *task, void *arg)
{
    (void)arg;
    pirn__task_submit(task, pirn__state_cancel(pirn__task_state(task)));
}

/* Goal: closing and cancelling a group reaches each member, whatever it does.
 * Method: one queued, one waiting, one suspended; then run. */
TEST(group_cancelled_ends_every_member)
{
    struct script queued = {0};
    struct script waiting = {.on_poll = script_wait};
    struct script held = {.on_poll = script_wait};
    struct lab lab;

    lab_begin(&lab);
    (void)lab_spawn_loose(&lab, &waiting);
    EXPECT_EQ(1, lab_run_all(&lab));
    EXPECT_EQ(0, pirn_id_suspend(lab_spawn_loose(&lab, &held)));
    (void)lab_spawn_loose(&lab, &queued);
    pirn__group_close(&lab.group, PIRN__GROUP_CLOSED);
    pirn__group_visit(&lab.group, cancel_it, NULL);
    EXPECT_EQ(3, lab_run_all(&lab));
    EXPECT_EQ(3, pirn__group_read(&lab.group).cancelled);
    EXPECT_EQ(3, queued.drops + waiting.drops + held.drops);
    lab_finish(&lab);
}
