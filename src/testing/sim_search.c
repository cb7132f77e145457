/* SPDX-License-Identifier: MIT */
/* src/testing/sim_search.c - many seeds, until one is not clean.
 *
 * They run in a child process, which leaves what it has found in memory that
 * both share: so the seed of a run that ended the process is known, too.
 */
#include "testing/sim.h"

#include <errno.h>
#include <stdio.h>

#include "sys/child.h"
#include "sys/environment.h"

enum { RUN_MAX_S = 40 /* of real time */ };

struct search {
    const pirn_sim_case *scenario;
    uint64_t first, count;
    struct shared {
        pirn_sim_result result;
        int rc;
        bool is_over; /* the child came to its end */
    } *shared;
};

static void search_here(void *arg)
{
    const struct search *search = arg;
    struct shared *shared = search->shared;

    for (uint64_t i = 0; i < search->count && shared->rc == 0; i++) {
        /* One that hangs without a system call ends the process. */
        pirn__child_alarm(RUN_MAX_S);
        shared->rc =
            pirn__sim_run(search->scenario, search->first + i, &shared->result);
    }
    shared->is_over = true;
}

static int note_death(pirn_sim_result *result, int status)
{
    char how[32];

    (void)snprintf(result->checker, sizeof result->checker, "world");
    if (pirn__child_is_alarmed(status)) {
        result->finding = PIRN_SIM_LIVELOCK;
        (void)snprintf(result->text, sizeof result->text,
                       "it does not end within %d s of real time", RUN_MAX_S);
        return PIRN_EFAILED;
    }
    pirn__child_describe(status, how, sizeof how);
    result->finding = PIRN_SIM_DIED;
    (void)snprintf(result->text, sizeof result->text,
                   "the process ended with %s", how);
    return PIRN_EFAILED;
}

int pirn__sim_search(const pirn_sim_case *scenario, uint64_t first,
                     uint64_t count, bool quiet, pirn_sim_result *result)
{
    struct search search = {
        .scenario = scenario,
        .first = first,
        .count = count,
        .shared = pirn__child_share(sizeof(struct shared)),
    };
    int status = 0;
    int rc;

    if (search.shared == NULL)
        return -ENOMEM;
    rc = pirn__child_run(search_here, &search, quiet, &status);
    *result = search.shared->result;
    if (rc == 0)
        rc = search.shared->is_over ? search.shared->rc
                                    : note_death(result, status);
    pirn__child_unshare(search.shared, sizeof *search.shared);
    return rc;
}

int pirn_sim_search(const pirn_sim_case *scenario, uint64_t first,
                    uint64_t count, pirn_sim_result *result)
{
    pirn_sim_result own;
    uint64_t seed = 0;
    int is_told;
    int rc = pirn__sim_may_begin(scenario);

    if (rc < 0)
        return rc;
    if (result == NULL)
        result = &own;
    *result = (pirn_sim_result){.finding = PIRN_SIM_CLEAN};
    is_told = pirn__environment_number("PIRN_SIM_SEED", 0, UINT64_MAX, &seed);
    rc = pirn__environment_number("PIRN_SIM_SEEDS", 0, UINT64_MAX, &count);
    if (is_told < 0 || rc < 0)
        return -EINVAL;
    return is_told > 0
               ? pirn__sim_run(scenario, seed, result)
               : pirn__sim_search(scenario, first, count, false, result);
}
