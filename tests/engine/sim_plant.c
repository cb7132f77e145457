/* SPDX-License-Identifier: MIT */
/* tests/engine/sim_plant.c - bugs that are put in on purpose: by a system call
 * that does not do what it should.
 */
#include "engine/sim_internal.h"

enum { EARLY_NS = 3000000 };

static const struct pirn__sys *before;
static uint32_t planted; /* a bit for each bug that has been put in */

bool sim_planted(enum sim_plant plant, uint32_t one_of)
{
    if (sim_options()->plant != plant || (planted & 1u << plant) != 0 ||
        sim_below(one_of) != 0)
        return false;
    planted |= 1u << plant;
    return true;
}

/* Now and then it shows what has not come yet, which is no clock. */
static uint64_t early_clock_ns(void)
{
    uint64_t ns = before->clock_ns();

    return sim_chance(100) ? ns + EARLY_NS : ns;
}

static int lossy_signal(int fd)
{
    return sim_planted(SIM_PLANT_LOST_WAKE, 4) ? 0 : before->eventfd_signal(fd);
}

static bool is_connection(int fd)
{
    const struct pirn__sim_file *file = pirn__sim_file_of(fd);

    return file != NULL && file->kind == PIRN__SIM_SOCKET;
}

static void leaky_close(int fd)
{
    if (!is_connection(fd) || !sim_planted(SIM_PLANT_LEAKED_FD, 4))
        before->close(fd);
}

void sim_plant_begin(void)
{
    static struct pirn__sys table;

    planted = 0;
    before = pirn__sys;
    table = *before;
    if (sim_options()->plant == SIM_PLANT_EARLY_TIMER)
        table.clock_ns = early_clock_ns;
    if (sim_options()->plant == SIM_PLANT_LOST_WAKE)
        table.eventfd_signal = lossy_signal;
    if (sim_options()->plant == SIM_PLANT_LEAKED_FD)
        table.close = leaky_close;
    pirn__sys = &table;
}
