/* SPDX-License-Identifier: MIT */
/* src/testing/sim_test.h - what the tests of the simulated world share: programs,
 * and a run of its own for each.
 */
#ifndef PIRN_TESTING_SIM_TEST_H
#define PIRN_TESTING_SIM_TEST_H

#include <pirn/pirn.h>

#include <errno.h>

#include "engine/test.h"

/* Kind, so that what a program does is all that happens. */
static const pirn_sim_options kind = {
    .resets = PIRN_SIM_NONE,
    .refusals = PIRN_SIM_NONE,
    .weather_ms = PIRN_SIM_NONE,
};

/* One run in a child; the finding, and what was returned. */
static inline pirn_sim_result run_apart(pirn_sim_program_fn *program, void *arg,
                                        pirn_sim_options options)
{
    const pirn_sim_case scenario = {
        .program = program, .arg = arg, .options = options};
    pirn_sim_result result;
    int rc = pirn_sim_search(&scenario, 7, 1, &result);

    EXPECT_EQ(result.finding == PIRN_SIM_CLEAN ? 0 : PIRN_EFAILED, rc);
    EXPECT_EQ(7, result.seed);
    return result;
}

/* A program: one says something over the network and another one answers; the
 * network may be bad. */

static inline int answer(void *arg)
{
    pirn_tcp *conn = arg;
    char byte;
    int rc =
        pirn_tcp_read_exact(conn, &byte, 1, pirn_after_ms(5000)) < 0 ? -EIO : 0;

    if (rc == 0)
        rc = pirn_tcp_write_all(conn, &byte, 1, pirn_after_ms(5000));
    pirn_tcp_close(conn);
    return rc < 0 ? 0 : rc;
}

static inline int answer_all(void *arg)
{
    pirn_listener *listener = arg;
    pirn_tcp *conn;

    while (pirn_listener_accept(listener, PIRN_NEVER, &conn) == 0) {
        if (pirn_go(answer, conn) < 0)
            pirn_tcp_close(conn);
    }
    pirn_listener_unref(listener);
    return 0;
}

static inline int ask(const char *address)
{
    char byte = 'x';
    pirn_tcp *conn;
    int rc = pirn_tcp_connect(address, NULL, pirn_after_ms(5000), &conn);

    if (rc < 0)
        return rc;
    rc = pirn_tcp_write_all(conn, &byte, 1, pirn_after_ms(5000));
    if (rc == 0)
        rc = pirn_tcp_read_exact(conn, &byte, 1, pirn_after_ms(5000));
    pirn_tcp_close(conn);
    pirn_sim_check(rc < 0 || byte == 'x', "the answer is right");
    return rc < 0 ? rc : 0;
}

/* Ask until it works after the weather has become good; *arg counts what did not
 * work. */
static inline int converse(void *arg)
{
    uint32_t *failures = arg;
    pirn_listener *listener;
    pirn_addr bound;
    char address[PIRN_ADDR_SIZE];
    bool calm;
    int rc = pirn_listener_open("127.0.0.1:0", NULL, &listener);

    if (rc < 0)
        return rc;
    pirn_listener_address(listener, &bound);
    pirn_addr_format(&bound, address, sizeof address);
    rc = pirn_go(answer_all, pirn_listener_ref(listener));
    if (rc < 0)
        pirn_listener_unref(listener);
    do {
        calm = pirn_sim_is_calm();
        rc = ask(address);
        if (rc < 0 && failures != NULL)
            ++*failures;
        if (pirn_sleep(pirn_after_ms(10)) < 0)
            break;
    } while (!calm);
    pirn_listener_close(listener);
    return rc;
}

static inline int conversation(void *arg)
{
    return pirn_run(converse, arg);
}

/* Smaller ones. */

static inline int end_at_once(void *arg)
{
    (void)arg;
    return 0;
}

static inline int return_error(void *arg)
{
    (void)arg;
    return -EBADMSG;
}

static inline int object(void *arg)
{
    (void)arg;
    EXPECT(!pirn_sim_check(false, "this is wrong"));
    EXPECT(pirn_sim_check(true, "this is right"));
    pirn_sim_fail("a later one does not count");
    return 0;
}

#endif /* PIRN_TESTING_SIM_TEST_H */
