/* SPDX-License-Identifier: MIT */
/* src/net/addr_test.c - addresses as text and for the kernel. */
#include <errno.h>

#include "engine/test.h"
#include "net/addr.h"

/* Goal: what is read is written in the same form.
 * Method: a table of good texts, with the canonical form. */
TEST(addr_parse_and_format_agree)
{
    const char *const rows[][2] = {
        {"127.0.0.1:80", "127.0.0.1:80"},
        {"0.0.0.0:0", "0.0.0.0:0"},
        {"255.255.255.255:65535", "255.255.255.255:65535"},
        {"1.2.3.4:00080", "1.2.3.4:80"},
        {"[::1]:80", "[::1]:80"},
        {"[::]:0", "[::]:0"},
        {"[2001:DB8:0:0:0:0:0:1]:443", "[2001:db8::1]:443"},
        {"[::ffff:1.2.3.4]:5", "[::ffff:1.2.3.4]:5"},
        {"[fe80::1%2]:80", "[fe80::1%2]:80"},
        {"[fe80::1%4294967295]:80", "[fe80::1%4294967295]:80"},
        {"[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535",
         "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[PIRN_ADDR_SIZE];
        pirn_addr addr;

        EXPECT_EQ(0, pirn_addr_parse(rows[i][0], &addr));
        EXPECT_STR_EQ(rows[i][1], pirn_addr_format(&addr, text, sizeof text));
    }
}

/* Goal: everything else is refused, and the result left alone.
 * Method: a table of bad texts. */
TEST(addr_parse_of_nonsense_answers_einval)
{
    const char *const rows[] = {
        "",
        ":",
        ":80",
        "localhost:80",
        "127.0.0.1",
        "127.0.0.1:",
        "127.1:80",
        "127.0.0.256:80",
        "1.2.3.4:x",
        "1.2.3.4:80x",
        "1.2.3.4:-1",
        "1.2.3.4:+1",
        "1.2.3.4: 1",
        "1.2.3.4:65536",
        "1.2.3.4:99999999999",
        "::1:80",
        "[::1]",
        "[::1]80",
        "[::1:80",
        "[]:80",
        "[::1%]:80",
        "[::1%x]:80",
        "[::1%4294967296]:80",
        "[1.2.3.4]:80",
        " 1.2.3.4:80",
        "1.2.3.4:80 ",
        "[::1]:80]",
        "[%1]:80",
        "01.2.3.4:80",
        "[1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb]:1",
    };
    const pirn_addr before = {.port_ = 77};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pirn_addr addr = before;

        EXPECT_EQ(-EINVAL, pirn_addr_parse(rows[i], &addr));
        EXPECT(pirn_addr_equal(&before, &addr));
    }
    EXPECT_EQ(-EINVAL, pirn_addr_parse(NULL, NULL));
    EXPECT_EQ(-EINVAL, pirn_addr_parse("1.2.3.4:5", NULL));
}

/* Goal: a short buffer is filled and terminated; an empty one is left alone.
 * Method: sizes 0, 1 and 5. */
TEST(addr_format_cuts_to_buffer)
{
    char text[8] = "unset";
    pirn_addr addr;

    EXPECT_EQ(0, pirn_addr_parse("10.20.30.40:50", &addr));
    EXPECT_PTR_EQ(NULL, pirn_addr_format(&addr, NULL, 0));
    EXPECT_STR_EQ("unset", pirn_addr_format(&addr, text, 0));
    EXPECT_STR_EQ("10.2", pirn_addr_format(&addr, text, 5));
    EXPECT_STR_EQ("", pirn_addr_format(&addr, text, 1));
}

/* Goal: ports can be read and changed, and addresses compared.
 * Method: change the port away and back. */
TEST(addr_port_is_part_of_equality)
{
    pirn_addr a, b;

    EXPECT_EQ(0, pirn_addr_parse("[::1]:7", &a));
    EXPECT_EQ(0, pirn_addr_parse("[::1]:7", &b));
    EXPECT(pirn_addr_equal(&a, &b));
    pirn_addr_set_port(&a, 8);
    EXPECT_EQ(8, pirn_addr_port(&a));
    EXPECT(!pirn_addr_equal(&a, &b));
    pirn_addr_set_port(&a, 7);
    EXPECT(pirn_addr_equal(&a, &b));
}

/* Goal: the kernel's form carries everything.
 * Method: there and back; another family is refused. */
TEST(addr_survives_the_kernels_form)
{
    const char *const texts[] = {"127.0.0.1:80", "[fe80::1%2]:443"};
    union pirn__sockaddr name;
    pirn_addr from, to;

    for (size_t i = 0; i < 2; i++) {
        EXPECT_EQ(0, pirn_addr_parse(texts[i], &from));
        EXPECT_EQ(i == 0 ? sizeof name.v4 : sizeof name.v6,
                  pirn__addr_to_sockaddr(&from, &name));
        EXPECT_EQ(0, pirn__addr_from_sockaddr(&name, &to));
        EXPECT(pirn_addr_equal(&from, &to));
    }
    EXPECT_EQ(0u, pirn__addr_to_sockaddr(&(pirn_addr){0}, &name));
    name.any.sa_family = AF_UNIX;
    EXPECT_EQ(-EAFNOSUPPORT, pirn__addr_from_sockaddr(&name, &to));
}
