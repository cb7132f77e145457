/* SPDX-License-Identifier: MIT */
/* tools/pirn/file_test.c - opening below a root, with and without openat2().
 *
 * On this plain thread the blocking pool's jobs run right here. */
#define _GNU_SOURCE

#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/test.h"

enum { LONG_SIZE = 100 * 1000 };

static char base[64];
static int root_fd = -1;

static void make_file(const char *name, size_t size)
{
    FILE *stream = fopen(name, "we");

    REQUIRE(stream != NULL);
    for (size_t i = 0; i < size; i++)
        (void)fputc((int)('a' + i % 26), stream);
    (void)fclose(stream);
}

/* A small tree below a folder of its own; the process moves there. */
static void set_up(void)
{
    strcpy(base, "/tmp/pirn-file-test-XXXXXX");
    REQUIRE(mkdtemp(base) != NULL);
    REQUIRE(chdir(base) == 0);
    REQUIRE(mkdir("root", 0700) == 0);
    REQUIRE(mkdir("root/folder", 0700) == 0);
    make_file("secret", 6);
    make_file("root/small", 5);
    make_file("root/folder/inner", 7);
    make_file("root/long", LONG_SIZE);
    make_file("root/empty", 0);
    REQUIRE(symlink("folder/inner", "root/inside") == 0);
    REQUIRE(symlink("../secret", "root/out") == 0);
    REQUIRE(symlink("/etc/passwd", "root/absolute") == 0);
    REQUIRE(symlink("..", "root/up") == 0);
    REQUIRE(mkfifo("root/pipe", 0600) == 0);
    root_fd = file_open_root("root");
    REQUIRE(root_fd >= 0);
}

static void tear_down(void)
{
    static const char *const names[] = {
        "root/small",  "root/folder/inner", "root/long",     "root/empty",
        "root/inside", "root/out",          "root/absolute", "root/up",
        "root/pipe",   "root/folder",       "root",          "secret",
    };

    (void)close(root_fd);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)remove(names[i]);
    REQUIRE(chdir("/") == 0);
    (void)rmdir(base);
}

/* The code for a path; what was opened is closed again. */
static int try_open(const char *path)
{
    struct file file;
    int rc = file_open(root_fd, path, &file);

    EXPECT_EQ(rc == 0, file.fd >= 0);
    file_close(&file);
    return rc;
}

static void expect_ordinary_files(void)
{
    struct file file;

    EXPECT_EQ(0, file_open(root_fd, "folder/inner", &file));
    EXPECT(file.is_regular && !file.is_folder);
    EXPECT_EQ(7, file.size);
    EXPECT(file.modified > 1700000000);
    file_close(&file);
    EXPECT_EQ(-1, file.fd);

    EXPECT_EQ(0, file_open(root_fd, "", &file));
    EXPECT(file.is_folder && !file.is_regular);
    file_close(&file);
    EXPECT_EQ(0, file_open(root_fd, "pipe", &file));
    EXPECT(!file.is_folder && !file.is_regular);
    file_close(&file);
    EXPECT_EQ(-ENOENT, try_open("missing"));
    EXPECT_EQ(-ENOTDIR, try_open("small/x"));
}

/* Goal: files, folders and other things are told apart.
 * Method: one of each, and what is not there. */
TEST(file_open_tells_what_it_is)
{
    set_up();
    expect_ordinary_files();
    tear_down();
}

/* Goal: links may lead anywhere inside, and nowhere outside.
 * Method: one inside; relative, absolute and a folder outside; and a path that
 * should never have been asked for. */
TEST(file_open_stays_below_root)
{
    set_up();
    EXPECT_EQ(0, try_open("inside"));
    EXPECT_EQ(-EXDEV, try_open("out"));
    EXPECT_EQ(-EXDEV, try_open("absolute"));
    EXPECT_EQ(-EXDEV, try_open("up"));
    EXPECT_EQ(-EXDEV, try_open("up/secret"));
    EXPECT_EQ(-EXDEV, try_open("../secret"));
    EXPECT_EQ(-EXDEV, try_open("/etc/passwd"));
    tear_down();
}

/* Make openat2() unknown to this process, for ever. */
static bool forbid_openat2(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {
        .len = sizeof code / sizeof code[0],
        .filter = code,
    };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

enum { CHILD_GOOD = 0, CHILD_BAD = 1, CHILD_SKIPPED = 2 };

static int run_without_openat2(void)
{
    if (!forbid_openat2())
        return CHILD_SKIPPED;
    expect_ordinary_files();
    EXPECT_EQ(-ELOOP, try_open("inside"));
    EXPECT_EQ(-ELOOP, try_open("out"));
    EXPECT_EQ(-ELOOP, try_open("absolute"));
    EXPECT(try_open("up/secret") < 0);
    return test_failures() == 0 ? CHILD_GOOD : CHILD_BAD;
}

/* Goal: an old kernel or a sandbox without openat2() costs links, not safety.
 * Method: a child process in which the call answers ENOSYS. */
TEST(file_open_without_openat2_follows_no_link)
{
    int status = 0;

    set_up();
    pid_t child = fork();
    if (child == 0)
        _exit(run_without_openat2());
    REQUIRE(child > 0);
    REQUIRE(waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status));
    EXPECT_NE(CHILD_BAD, WEXITSTATUS(status));
    tear_down();
}

/* Goal: a read gives what is there, from memory or from the disk.
 * Method: all, a part, across the end, an empty file; then the same after the
 * pages have been dropped from memory. */
TEST(file_read_gives_what_is_there)
{
    static char buf[LONG_SIZE + 100];
    struct file file;

    set_up();
    REQUIRE(file_open(root_fd, "long", &file) == 0);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(LONG_SIZE, file_read(&file, 0, buf, LONG_SIZE));
        EXPECT_EQ('a', buf[0]);
        EXPECT_EQ('a' + (LONG_SIZE - 1) % 26, buf[LONG_SIZE - 1]);
        EXPECT_EQ(26, file_read(&file, 26, buf, 26));
        EXPECT_EQ('a', buf[0]);
        EXPECT_EQ(10, file_read(&file, LONG_SIZE - 10, buf, 100));
        EXPECT_EQ(0, file_read(&file, LONG_SIZE, buf, 100));
        /* Only a wish; where it is not granted both rounds are alike. */
        (void)fsync(file.fd);
        (void)posix_fadvise(file.fd, 0, 0, POSIX_FADV_DONTNEED);
    }
    file_close(&file);
    REQUIRE(file_open(root_fd, "empty", &file) == 0);
    EXPECT_EQ(0, file_read(&file, 0, buf, 10));
    file_close(&file);
    tear_down();
}
