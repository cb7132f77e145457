/* SPDX-License-Identifier: MIT */
/* tests/sim/shutdown_sim.c - shutdown at any moment of a busy program.
 *
 * The echo server and its clients run; nobody waits for them.  Some time later
 * the program shuts down, often with a thread outside that spawns and cancels
 * at the same time.
 */
#include "sim/echo_story.h"

enum { LONG_MS = 60000, MOMENT_MS = 400 };

struct busy {
    struct net net;
    uint32_t begun, ended; /* fibers */
    bool meddling;         /* the thread outside is under way */
};

static int be_client(void *arg)
{
    struct busy *busy = arg;
    int rc;

    busy->begun++;
    rc = echo_talk(&busy->net);
    sim_check(rc == 0 || rc == -ECANCELED || rc == PIRN_ESHUTDOWN,
              "a client ends well, or by the shutdown");
    busy->ended++;
    return rc;
}

static int start_clients(void *arg)
{
    struct busy *busy = arg;

    for (uint32_t i = 0; i < sim_options()->clients; i++) {
        int rc = pirn_go(be_client, busy);

        sim_check(rc == 0, "a client starts");
    }
    return 0;
}

/* A thread that does not know of the shutdown. */
static void meddle(void *arg)
{
    struct busy *busy = arg;
    pirn_spawn_options options = {.runtime = busy->net.program.rt};

    for (int i = 0; i < 5; i++) {
        pirn_task *task;
        int rc = pirn_go_with(be_client, busy, &options, &task);

        sim_check(rc == 0 || rc == PIRN_ESHUTDOWN,
                  "a spawn works, or the runtime ends");
        if (rc == 0) {
            rc = pirn_sleep(pirn_after_ms(sim_below(50)));
            sim_check(rc == 0, "a thread can sleep");
            pirn_task_cancel(task);
            pirn_task_unref(task);
        }
    }
    busy->meddling = false;
}

static void shut_down_somewhen(void)
{
    struct busy busy = {0};
    struct net *net = &busy.net;
    bool patient = sim_chance(800);

    net_begin(net, echo_serve);
    sim_check(sim_program_run(&net->program, start_clients, &busy) == 0,
              "the clients start");
    if (sim_chance(500)) {
        busy.meddling = true;
        sim_thread(meddle, &busy);
    }
    /* A current-thread runtime runs while somebody drives it. */
    sim_check(sim_program_run(&net->program, sim_nap,
                              &(uint32_t){sim_below(MOMENT_MS)}) == 0,
              "a moment passes");
    pirn_task_unref(net->acceptor);
    sim_program_shutdown(&net->program, patient ? LONG_MS : sim_below(3));
    pirn_listener_close(net->listener);
    (void)pirn_runtime_enter(NULL);
    while (busy.meddling) {
        int rc = pirn_sleep(pirn_after_ms(10));

        sim_check(rc == 0, "a thread can sleep");
    }
    if (patient) {
        sim_check(net->program.report.in_time, "shutdown is in time");
        sim_check(busy.begun == busy.ended, "each fiber has ended");
    }
    sim_program_end(&net->program);
}

/* Goal: whenever a program shuts down, all its tasks end in order and nothing
 * is left; if there is no time for that, the report says so and accounts for
 * all.  Method: a run for each seed. */
TEST(shutdown_accounts_for_all)
{
    sim_expect_clean("shutdown_accounts_for_all", shut_down_somewhen, NULL,
                     test_size(30, 400, 20000));
}

/* Goal: a shutdown is repeatable, too.  Method: as for echo. */
TEST(shutdown_can_be_repeated)
{
    sim_expect_repeatable("shutdown_accounts_for_all", shut_down_somewhen, 10);
}
