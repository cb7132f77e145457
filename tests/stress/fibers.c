/* SPDX-License-Identifier: MIT */
/* tests/stress/fibers.c - fibers that do a bit of everything, cancelled and aborted
 * at any moment: before their first run, while they run, without a worker, and in
 * the middle of waits for several things.
 *
 * Whatever happens, each of them ends once, the stacks of those that were aborted
 * stay apart, and all others come back.
 */
#include <pirn/blocking.h>
#include <pirn/mutex.h>
#include <pirn/select.h>
#include <pirn/task.h>

#include <unistd.h>

#include "base/lock.h"
#include "base/prng.h"
#include "engine/pool_fixture.h"

enum { FIBERS = 60, ACTS = 12, STOPPERS = 2, DEPTH = 2 };

struct actor;

struct scene {
    struct scene *next; /* of those that are kept */
    pirn_runtime *rt;
    struct meter meter;
    pirn_mutex mutex;
    uint64_t locked; /* mutex: how often */
    bool aborts;     /* some are aborted, not only cancelled */
    uint64_t seed;
    tally begun;
    tally ended; /* by themselves */
    tally failures; /* that nobody expects */
    pirn_lock actors_lock;
    struct actor *actors; /* actors_lock */
};

struct actor {
    struct actor *next;
    struct scene *scene;
    struct pirn__prng prng;
    int depth; /* of those that it is a child of */
};

/* What is at the bottom of a stack stays as it was. */
static void look_after(uint64_t *mark, const struct actor *actor)
{
    EXPECT_EQ((uint64_t)(uintptr_t)actor, *mark);
}

static pirn_deadline soon(struct actor *actor)
{
    return pirn_after_us(pirn__prng_below(&actor->prng, 300));
}

static int block_a_little(void *arg)
{
    struct actor *actor = arg;

    usleep(pirn__prng_below(&actor->prng, 200));
    return 0;
}

static int act(void *arg);

/* One that lives as long as the scene: it may outlive its parent, and end without
 * having run. */
static struct actor *new_actor(struct scene *scene, int depth, uint64_t seed)
{
    struct actor *actor = malloc(sizeof *actor);

    if (actor == NULL)
        abort();
    *actor = (struct actor){.scene = scene, .depth = depth};
    pirn__prng_seed(&actor->prng, seed);
    pirn__lock(&scene->actors_lock);
    actor->next = scene->actors;
    scene->actors = actor;
    pirn__unlock(&scene->actors_lock);
    return actor;
}

static pirn_task *spawn_child(struct actor *actor)
{
    static const size_t sizes[] = {0, 16 << 10, 40 << 10};
    struct actor *child = new_actor(actor->scene, actor->depth + 1,
                                    pirn__prng_next(&actor->prng));
    const pirn_spawn_options options = {
        .stack_size_bytes = sizes[pirn__prng_below(&actor->prng, 3)]};
    pirn_task *task = NULL;

    /* Refused while the runtime ends. */
    return pirn_go_with(act, child, &options, &task) == 0 ? task : NULL;
}

/* Wait for a child and a moment, with a deadline on both. */
static int wait_for_child(struct actor *actor)
{
    pirn_task *task = spawn_child(actor);
    pirn_sleep_op sleep;
    pirn_join_op join;
    pirn_branch branches[2] = {PIRN_BRANCH(&sleep), PIRN_BRANCH(&join)};
    int rc;

    if (task == NULL)
        return 0;
    pirn_sleep_init(&sleep, soon(actor));
    pirn_join_init(&join, task);
    rc = pirn_select(branches, 2, soon(actor));
    if (pirn__prng_below(&actor->prng, 2) == 0)
        pirn_task_cancel(task);
    pirn_task_unref(task);
    return rc;
}

static int lock_a_little(struct actor *actor)
{
    struct scene *scene = actor->scene;
    int rc = pirn_mutex_lock(&scene->mutex, soon(actor));

    if (rc < 0)
        return rc;
    scene->locked++;
    /* Who is aborted while it has the lock would keep it. */
    if (!scene->aborts)
        rc = pirn_yield();
    pirn_mutex_unlock(&scene->mutex);
    return rc;
}

static int act_once(struct actor *actor)
{
    switch (pirn__prng_below(&actor->prng, 8)) {
    case 0:
        return pirn_sleep(soon(actor));
    case 1:
        return actor->depth < DEPTH ? wait_for_child(actor) : 0;
    case 2:
        return lock_a_little(actor);
    case 3:
        return pirn_block_in_place(block_a_little, actor);
    default:
        return pirn_yield();
    }
}

static int act(void *arg)
{
    struct actor *actor = arg;
    uint64_t mark = (uint64_t)(uintptr_t)actor;
    bool shielded = pirn__prng_below(&actor->prng, 8) == 0;
    int rc = 0;

    tally_up(&actor->scene->begun);
    if (shielded)
        pirn_fiber_shield_begin();
    for (int i = 0; i < ACTS && rc != -ECANCELED; i++) {
        rc = act_once(actor);
        look_after(&mark, actor);
    }
    if (shielded)
        pirn_fiber_shield_end();
    tally_up(&actor->scene->ended);
    return rc == -ECANCELED ? rc : 0;
}

/* A thread that starts some and stops most of them. */
static void stop_some(void *arg, size_t index)
{
    struct scene *scene = arg;
    struct pirn__prng prng;

    pirn__prng_seed(&prng, scene->seed + index);
    for (int i = 0; i < FIBERS; i++) {
        pirn_task *task = go_task(
            scene->rt, act, new_actor(scene, 0, pirn__prng_next(&prng)));

        if (pirn__prng_below(&prng, 3) > 0)
            usleep(pirn__prng_below(&prng, 200));
        if (scene->aborts && pirn__prng_below(&prng, 3) == 0)
            pirn_task_abort(task);
        else if (pirn__prng_below(&prng, 2) == 0)
            pirn_task_cancel(task);
        pirn_task_unref(task);
    }
}

static void check_end(struct scene *scene)
{
    pirn_runtime_info info;
    pirn_report report;

    EXPECT_EQ(0, pirn_runtime_shutdown(scene->rt, pirn_after_ms(RESCUE_MS),
                                       &report));
    pirn_runtime_get_info(scene->rt, &info);
    EXPECT_EQ(report.spawned, report.completed + report.cancelled +
                                  report.aborted);
    EXPECT_EQ(tally_of(&scene->begun),
              tally_of(&scene->ended) + report.quarantined);
    EXPECT_LE(report.quarantined, report.aborted);
    EXPECT_EQ(report.quarantined, info.stacks);
    pirn_runtime_unref(scene->rt);
    /* Who was quarantined keeps its memory. */
    if (report.quarantined > 0)
        return;
    wait_for_tally(&scene->meter.dones, 1);
    EXPECT_EQ(0, tally_of(&scene->meter.pieces));
}

static void note_failure(void *arg, const pirn_failure *failure)
{
    struct scene *scene = arg;

    if (failure->outcome != PIRN_EABORTED)
        tally_up(&scene->failures);
}

/* Those in quarantine look there for ever. */
static struct scene *kept;

static void end_scene(struct scene *scene)
{
    struct actor *actor = scene->actors;

    if (scene->aborts) {
        scene->next = kept;
        kept = scene;
        return;
    }
    while (actor != NULL) {
        struct actor *next = actor->next;

        free(actor);
        actor = next;
    }
    free(scene);
}

static void play(uint64_t seed, bool aborts)
{
    struct scene *scene = calloc(1, sizeof *scene);
    struct crew crew;

    REQUIRE(scene != NULL);
    scene->seed = seed;
    scene->aborts = aborts;
    meter_init(&scene->meter);
    pirn_mutex_init(&scene->mutex);
    pirn__lock_init(&scene->actors_lock);
    scene->rt = pool_with(&(pirn_runtime_options){
        .workers = 1 + (uint32_t)(seed % 4),
        .seed = seed + 1,
        .alloc = &scene->meter.alloc,
        .on_failure = note_failure,
        .on_failure_arg = scene,
    });
    crew_start(&crew, STOPPERS, stop_some, scene);
    crew_join(&crew);
    check_end(scene);
    EXPECT_EQ(0, tally_of(&scene->failures));
    end_scene(scene);
}

/* Goal: fibers that are cancelled at any moment run to their end, and everything
 * comes back. */
TEST(fibers_cancelled_at_any_moment)
{
    size_t rounds = test_size(4, 20, 1000);

    for (size_t i = 0; i < rounds; i++)
        play(i, false);
}

/* Goal: fibers that are aborted at any moment end, or stay where they are for ever;
 * the others do not notice. */
TEST(fibers_aborted_at_any_moment)
{
    size_t rounds = test_size(4, 20, 400);

    for (size_t i = 0; i < rounds; i++)
        play(i, true);
}
