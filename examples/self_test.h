/* SPDX-License-Identifier: MIT */
/* examples/self_test.h - lets the tests run the servers among the examples.
 *
 * It is no part of what the examples show.  All of 127.0.0.0/8 is this host, so
 * that each process can have an address that no other one uses.
 */
#ifndef PIRN_EXAMPLES_SELF_TEST_H
#define PIRN_EXAMPLES_SELF_TEST_H

#include <errno.h>
#include <pirn/pirn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* True if the program was called with --self-test. */
static inline bool self_test_wanted(int argc, char **argv)
{
    return argc == 2 && strcmp(argv[1], "--self-test") == 0;
}

/* An address of this process alone. */
static inline void self_test_address(char text[PIRN_ADDR_SIZE])
{
    unsigned pid = (unsigned)getpid();

    (void)snprintf(text, PIRN_ADDR_SIZE, "127.%u.%u.%u:7000",
                   1 + (pid >> 16) % 250, (pid >> 8) % 256, 1 + pid % 250);
}

/* In a fiber: say something to the echo server at that address, and compare
 * what comes back.  0, or a negative code. */
static inline int self_test_echo(const char *address)
{
    static const char words[] = "Echo says what you say.";
    char heard[sizeof words] = "";
    pirn_deadline deadline = pirn_after_ms(5000);
    pirn_tcp *conn;
    int rc;

    /* The server may not listen yet. */
    while ((rc = pirn_tcp_connect(address, NULL, deadline, &conn)) ==
           -ECONNREFUSED)
        if ((rc = pirn_sleep(pirn_after_ms(1))) < 0)
            return rc;
    if (rc < 0)
        return rc;
    rc = pirn_tcp_write_all(conn, words, sizeof words, deadline);
    if (rc == 0)
        rc = pirn_tcp_read_exact(conn, heard, sizeof heard, deadline);
    pirn_tcp_close(conn);
    if (rc == 0 && strcmp(words, heard) != 0)
        rc = -EBADMSG;
    return rc;
}

#endif /* PIRN_EXAMPLES_SELF_TEST_H */
