/* SPDX-License-Identifier: MIT */
/* tests/engine/sweep.c - the faults, the rounds and the verdicts; see sweep.h.
 *
 * One sweep runs at a time.  Its present fault is one word that every thread
 * reads at each call that could fail, so that threads of the library which come
 * late meet no fault of the next round: a round is over only when all threads
 * that began in it have ended.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <pirn/base.h>

#include "base/atomic.h"
#include "engine/sweep_internal.h"

enum {
    POINTS_MAX = 5000,    /* of one fault: more is a scenario that never ends */
    SETTLE_TRIES = 4000, /* looks at what must go away */
    NAME_SIZE = 64,
    SEEN_MAX = 512,
};

#define ONE(name, group, call, error) \
    {name, group, call, SWEEP__ERROR, error, SWEEP__ONCE, false, false}
#define FROM_THERE(name, group, call, error) \
    {name " from there on", group, call, SWEEP__ERROR, error, SWEEP__ONWARDS, \
     false, false}
#define BORNE(name, group, call, trick, error, rhythm) \
    {name, group, call, trick, error, rhythm, true, false}

static const struct sweep__fault faults[] = {
    ONE("no memory", SWEEP_MEMORY, SWEEP__TAKE, -ENOMEM),
    FROM_THERE("no memory", SWEEP_MEMORY, SWEEP__TAKE, -ENOMEM),

    ONE("no thread", SWEEP_THREADS, SWEEP__THREAD, -EAGAIN),
    FROM_THERE("no thread", SWEEP_THREADS, SWEEP__THREAD, -EAGAIN),

    ONE("no mapping", SWEEP_MAPPINGS, SWEEP__MAP, -ENOMEM),
    FROM_THERE("no mapping", SWEEP_MAPPINGS, SWEEP__MAP, -ENOMEM),
    ONE("no guard", SWEEP_MAPPINGS, SWEEP__GUARD, -ENOMEM),
    FROM_THERE("no guard", SWEEP_MAPPINGS, SWEEP__GUARD, -ENOMEM),
    ONE("no protection", SWEEP_MAPPINGS, SWEEP__PROTECT, -ENOMEM),
    FROM_THERE("no protection", SWEEP_MAPPINGS, SWEEP__PROTECT, -ENOMEM),
    BORNE("no guard region", SWEEP_MAPPINGS, SWEEP__GUARD, SWEEP__ERROR,
          -EINVAL, SWEEP__ALWAYS),
    BORNE("no discarding", SWEEP_MAPPINGS, SWEEP__DISCARD, SWEEP__ERROR,
          -EINVAL, SWEEP__ALWAYS),
    BORNE("no residency", SWEEP_MAPPINGS, SWEEP__RESIDENT, SWEEP__ERROR,
          -EAGAIN, SWEEP__ALWAYS),
    BORNE("limit unknown", SWEEP_MAPPINGS, SWEEP__LIMIT, SWEEP__ERROR, -EACCES,
          SWEEP__ALWAYS),
    {"no unmapping", SWEEP_MAPPINGS, SWEEP__UNMAP, SWEEP__ERROR, -ENOMEM,
     SWEEP__ONCE, true, true},

    ONE("eventfd: EMFILE", SWEEP_DESCRIPTORS, SWEEP__EVENTFD, -EMFILE),
    FROM_THERE("eventfd: EMFILE", SWEEP_DESCRIPTORS, SWEEP__EVENTFD, -EMFILE),
    ONE("timerfd: ENFILE", SWEEP_DESCRIPTORS, SWEEP__TIMERFD, -ENFILE),
    ONE("epoll: EMFILE", SWEEP_DESCRIPTORS, SWEEP__EPOLL, -EMFILE),

    ONE("epoll_ctl: ENOSPC", SWEEP_WAIT_SET, SWEEP__EPOLL_ADD, -ENOSPC),
    FROM_THERE("epoll_ctl: ENOSPC", SWEEP_WAIT_SET, SWEEP__EPOLL_ADD, -ENOSPC),
    ONE("epoll_ctl: ENOMEM", SWEEP_WAIT_SET, SWEEP__EPOLL_ADD, -ENOMEM),

    ONE("socket: EMFILE", SWEEP_SOCKETS, SWEEP__SOCKET, -EMFILE),
    FROM_THERE("socket: ENFILE", SWEEP_SOCKETS, SWEEP__SOCKET, -ENFILE),
    ONE("socket: ENOMEM", SWEEP_SOCKETS, SWEEP__SOCKET, -ENOMEM),
    ONE("bind: EADDRINUSE", SWEEP_SOCKETS, SWEEP__BIND, -EADDRINUSE),
    ONE("bind: EACCES", SWEEP_SOCKETS, SWEEP__BIND, -EACCES),
    ONE("listen: EADDRINUSE", SWEEP_SOCKETS, SWEEP__LISTEN, -EADDRINUSE),
    ONE("connect: ECONNREFUSED", SWEEP_SOCKETS, SWEEP__CONNECT, -ECONNREFUSED),
    ONE("connect: ENETUNREACH", SWEEP_SOCKETS, SWEEP__CONNECT, -ENETUNREACH),
    ONE("connect: EADDRNOTAVAIL", SWEEP_SOCKETS, SWEEP__CONNECT,
        -EADDRNOTAVAIL),
    ONE("connect: EACCES", SWEEP_SOCKETS, SWEEP__CONNECT, -EACCES),

    BORNE("accept: EAGAIN", SWEEP_ACCEPTS, SWEEP__ACCEPT, SWEEP__AGAIN, 0,
          SWEEP__ONCE),
    BORNE("accept: ECONNABORTED", SWEEP_ACCEPTS, SWEEP__ACCEPT, SWEEP__ERROR,
          -ECONNABORTED, SWEEP__EVERY_OTHER),
    BORNE("accept: EPROTO", SWEEP_ACCEPTS, SWEEP__ACCEPT, SWEEP__ERROR, -EPROTO,
          SWEEP__ONCE),
    BORNE("accept: EMFILE", SWEEP_ACCEPTS, SWEEP__ACCEPT, SWEEP__ERROR, -EMFILE,
          SWEEP__ONCE),
    BORNE("accept: ENFILE", SWEEP_ACCEPTS, SWEEP__ACCEPT, SWEEP__ERROR, -ENFILE,
          SWEEP__EVERY_OTHER),
    BORNE("accept: ENOBUFS", SWEEP_ACCEPTS, SWEEP__ACCEPT, SWEEP__ERROR,
          -ENOBUFS, SWEEP__ONCE),
    BORNE("accept: ENOMEM", SWEEP_ACCEPTS, SWEEP__ACCEPT, SWEEP__ERROR, -ENOMEM,
          SWEEP__ONCE),

    BORNE("receive: EAGAIN", SWEEP_TRANSFERS, SWEEP__RECEIVE, SWEEP__AGAIN, 0,
          SWEEP__ONCE),
    BORNE("receive: EAGAIN now and then", SWEEP_TRANSFERS, SWEEP__RECEIVE,
          SWEEP__AGAIN, 0, SWEEP__EVERY_OTHER),
    BORNE("receive: one byte", SWEEP_TRANSFERS, SWEEP__RECEIVE, SWEEP__SHORT, 0,
          SWEEP__ONCE),
    BORNE("receive: bytes", SWEEP_TRANSFERS, SWEEP__RECEIVE, SWEEP__SHORT, 0,
          SWEEP__ALWAYS),
    BORNE("send: EAGAIN", SWEEP_TRANSFERS, SWEEP__SEND, SWEEP__AGAIN, 0,
          SWEEP__ONCE),
    BORNE("send: EAGAIN now and then", SWEEP_TRANSFERS, SWEEP__SEND,
          SWEEP__AGAIN, 0, SWEEP__EVERY_OTHER),
    BORNE("send: one byte", SWEEP_TRANSFERS, SWEEP__SEND, SWEEP__SHORT, 0,
          SWEEP__ONCE),
    BORNE("send: bytes", SWEEP_TRANSFERS, SWEEP__SEND, SWEEP__SHORT, 0,
          SWEEP__ALWAYS),
    BORNE("sendfile: EAGAIN", SWEEP_TRANSFERS, SWEEP__SENDFILE, SWEEP__AGAIN, 0,
          SWEEP__ONCE),
    BORNE("sendfile: one byte", SWEEP_TRANSFERS, SWEEP__SENDFILE, SWEEP__SHORT,
          0, SWEEP__EVERY_OTHER),
    ONE("receive: ECONNRESET", SWEEP_NETWORK, SWEEP__RECEIVE, -ECONNRESET),
    ONE("receive: ETIMEDOUT", SWEEP_NETWORK, SWEEP__RECEIVE, -ETIMEDOUT),
    ONE("receive: EHOSTUNREACH", SWEEP_NETWORK, SWEEP__RECEIVE,
        -EHOSTUNREACH),
    ONE("send: EPIPE", SWEEP_NETWORK, SWEEP__SEND, -EPIPE),
    ONE("send: ECONNRESET", SWEEP_NETWORK, SWEEP__SEND, -ECONNRESET),
    ONE("sendfile: EIO", SWEEP_NETWORK, SWEEP__SENDFILE, -EIO),
    ONE("sendfile: EPIPE", SWEEP_NETWORK, SWEEP__SENDFILE, -EPIPE),

    ONE("receive: EIO", SWEEP_DEVICES, SWEEP__RECEIVE, -EIO),
    ONE("send: EIO", SWEEP_DEVICES, SWEEP__SEND, -EIO),
    ONE("send: EPIPE", SWEEP_DEVICES, SWEEP__SEND, -EPIPE),

    BORNE("epoll_wait: nothing", SWEEP_WAITS, SWEEP__EPOLL_WAIT, SWEEP__NOTHING,
          0, SWEEP__ONCE),
    BORNE("epoll_wait: nothing now and then", SWEEP_WAITS, SWEEP__EPOLL_WAIT,
          SWEEP__NOTHING, 0, SWEEP__EVERY_OTHER),
    BORNE("poll: nothing", SWEEP_WAITS, SWEEP__POLL, SWEEP__NOTHING, 0,
          SWEEP__EVERY_OTHER),
    BORNE("futex: nothing", SWEEP_WAITS, SWEEP__FUTEX_WAIT, SWEEP__NOTHING, 0,
          SWEEP__EVERY_OTHER),

    BORNE("a signal", SWEEP_INTERRUPTS, SWEEP__LIBC, SWEEP__ERROR, -EINTR,
          SWEEP__ONCE),
    BORNE("signals", SWEEP_INTERRUPTS, SWEEP__LIBC, SWEEP__ERROR, -EINTR,
          SWEEP__EVERY_OTHER),
};

char sweep_junk[16];

/* What is in use. */
struct stock {
    int64_t pieces;
    int64_t mapped_bytes;
    int fds;
    int threads;
};

/* A call that answered a code. */
struct seen {
    char function[NAME_SIZE];
    int rc;
};

struct run {
    sweep_scenario_fn *scenario;
    struct sweep_result result;
    const struct sweep__fault *fault; /* of this round; or NULL */
    uint64_t kth;
    int threads; /* that are there before the first round */
    pthread_mutex_t mutex;
    bool is_over;               /* mutex: no use to go on */
    struct seen seen[SEEN_MAX]; /* mutex; each once */
    size_t seen_count;          /* mutex */
    char failed_call[NAME_SIZE]; /* mutex: the first of this round, or "" */
    int failed_rc;               /* mutex */
};

static struct run run = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* The fault that is about, and how many calls it has met. */
static PIRN_ATOMIC(const struct sweep__fault *) current;
static PIRN_ATOMIC(uint64_t) fails_at;
static PIRN_ATOMIC(uint64_t) calls;
static PIRN_ATOMIC(uint64_t) strikes;

static bool is_verbose(void)
{
    return getenv("PIRN_SWEEP_VERBOSE") != NULL;
}

/* Striking. */

static bool is_hit(const struct sweep__fault *fault, uint64_t call)
{
    /* relaxed: written before `current` was published. */
    uint64_t first = pirn__load(&fails_at, relaxed);

    switch (fault->rhythm) {
    case SWEEP__ONCE:
        return call == first;
    case SWEEP__ONWARDS:
    case SWEEP__ALWAYS:
        return call >= first;
    case SWEEP__EVERY_OTHER:
        return call >= first && (call - first) % 2 == 0;
    }
    return false;
}

const struct sweep__fault *sweep__strike(enum sweep__call call)
{
    /* acquire [sweep.current]: sees the fault that belongs to the count. */
    const struct sweep__fault *fault = pirn__load(&current, acquire);

    if (fault == NULL || fault->call != call)
        return NULL;
    /* relaxed: a count. */
    if (!is_hit(fault, pirn__add(&calls, 1, relaxed) + 1))
        return NULL;
    /* relaxed: a count; the round joins its threads before it is read. */
    pirn__add(&strikes, 1, relaxed);
    return fault;
}

bool sweep__concerns(enum sweep__call call)
{
    /* acquire [sweep.current]: as above. */
    const struct sweep__fault *fault = pirn__load(&current, acquire);

    return fault != NULL && fault->call == call;
}

static void set_current(const struct sweep__fault *fault)
{
    /* release [sweep.current]: after the counts below. */
    pirn__store(&current, fault, release);
}

void sweep_hold(void)
{
    set_current(NULL);
}

void sweep_go_on(void)
{
    set_current(run.fault);
}

/* Verdicts. */

__attribute__((format(printf, 1, 2))) static void find(const char *format, ...)
{
    size_t size = sizeof run.result.problem;
    va_list args;
    int len;

    run.is_over = true;

    if (run.result.problem[0] != '\0')
        return;
    va_start(args, format);
    len = vsnprintf(run.result.problem, size, format, args);
    va_end(args);
    if (len < 0 || (size_t)len >= size)
        return;
    if (run.fault == NULL)
        (void)snprintf(run.result.problem + len, size - (size_t)len,
                       ", and nothing was failed");
    else
        (void)snprintf(run.result.problem + len, size - (size_t)len,
                       ", after \"%s\" at call %llu", run.fault->name,
                       (unsigned long long)run.kth);
}

static const char *documented_errors(const char *function)
{
    for (size_t i = 0; i < sweep__documented_count; i++) {
        if (strcmp(sweep__documented[i].function, function) == 0)
            return sweep__documented[i].errors;
    }
    return NULL;
}

static bool has_word(const char *words, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = words; (at = strstr(at, word)) != NULL; at++) {
        bool begins = at == words || at[-1] == ' ';

        if (begins && (at[len] == ' ' || at[len] == '\0'))
            return true;
    }
    return false;
}

static bool is_documented(const char *function, int rc)
{
    const char *errors = documented_errors(function);

    /* Without a table, made where there is no python3, there is no telling. */
    if (sweep__documented_count == 0)
        return true;
    return errors != NULL && has_word(errors, pirn_err_name(rc));
}

static void note_seen_locked(const char *function, int rc)
{
    for (size_t i = 0; i < run.seen_count; i++) {
        if (run.seen[i].rc == rc &&
            strcmp(run.seen[i].function, function) == 0)
            return;
    }
    if (run.seen_count == SEEN_MAX)
        return;
    memcpy(run.seen[run.seen_count].function, function, NAME_SIZE);
    run.seen[run.seen_count++].rc = rc;
}

static void name_of_call(const char *call, char function[NAME_SIZE])
{
    size_t len = strcspn(call, " (");

    memset(function, 0, NAME_SIZE);
    memcpy(function, call, len < NAME_SIZE ? len : NAME_SIZE - 1);
}

static void judge_code_locked(const char *function, int rc)
{
    bool was_over = run.is_over;

    if (!is_documented(function, rc))
        find("%s answered %s, which its header does not list", function,
             pirn_err_name(rc));
    /* There may be more. */
    run.is_over = was_over;
    if (run.failed_call[0] != '\0')
        return;
    memcpy(run.failed_call, function, NAME_SIZE);
    run.failed_rc = rc;
}

intptr_t sweep_saw(const char *call, intptr_t rc)
{
    char function[NAME_SIZE];

    if (rc >= 0 && !is_verbose())
        return rc;
    name_of_call(call, function);
    pthread_mutex_lock(&run.mutex);
    note_seen_locked(function, rc < 0 ? (int)rc : 0);
    if (rc < 0)
        judge_code_locked(function, (int)rc);
    pthread_mutex_unlock(&run.mutex);
    return rc;
}

/* Stock. */

static int count_entries(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;

    if (dir == NULL)
        return -1;
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

/* The kernel's own count: a listing may miss one while another goes. */
static int count_threads(void)
{
    enum { FIELDS_BEFORE = 17 }; /* after the name in brackets */
    char text[1024] = "";
    FILE *file = fopen("/proc/self/stat", "re");
    const char *at;

    if (file == NULL)
        return -1;
    if (fgets(text, sizeof text, file) == NULL)
        text[0] = '\0';
    fclose(file);
    at = strrchr(text, ')');
    for (int i = 0; i <= FIELDS_BEFORE && at != NULL; i++)
        at = strchr(at + 1, ' ');
    return at == NULL ? -1 : atoi(at);
}

static struct stock take_stock(void)
{
    return (struct stock){
        .pieces = sweep__heap_pieces(),
        .mapped_bytes = sweep__world_mapped_bytes(),
        .fds = count_entries("/proc/self/fd"),
        .threads = count_threads(),
    };
}

/* A thread is still there for a moment after it said its last. */
static struct stock take_stock_when_settled(void)
{
    for (int i = 0; i < SETTLE_TRIES; i++) {
        const struct timespec moment = {0, i < 100 ? 10000 : 1000000};

        if (count_threads() <= run.threads)
            break;
        nanosleep(&moment, NULL);
    }
    return take_stock();
}

static void compare_stock(const struct stock *before, const struct stock *now)
{
    const char *complaint = sweep__heap_complaint();

    if (complaint != NULL)
        find("%s", complaint);
    if (now->threads > run.threads)
        find("%d threads are left", now->threads - run.threads);
    if (now->fds != before->fds)
        find("%d descriptors are left", now->fds - before->fds);
    if (run.fault != NULL && run.fault->is_leaky)
        return;
    if (now->pieces != before->pieces)
        find("%lld pieces of memory are left",
             (long long)(now->pieces - before->pieces));
    if (now->mapped_bytes != before->mapped_bytes)
        find("%lld bytes of mappings are left",
             (long long)(now->mapped_bytes - before->mapped_bytes));
}

/* Rounds. */

static void *run_scenario(void *arg)
{
    (void)arg;
    run.scenario();
    return NULL;
}

static void *do_nothing(void *arg)
{
    return arg;
}

/* A sanitizer adds a thread of its own to the first that is started. */
static void count_own_threads(void)
{
    const struct timespec moment = {0, 1000000};
    pthread_t thread;

    if (pthread_create(&thread, NULL, do_nothing, NULL) == 0)
        pthread_join(thread, NULL);
    run.threads = count_threads();
    for (int i = 0; i < 20; i++) {
        int count = count_threads();

        run.threads = count < run.threads ? count : run.threads;
        nanosleep(&moment, NULL);
    }
}

static void on_a_fresh_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, run_scenario, NULL) != 0) {
        find("no thread for the scenario");
        return;
    }
    pthread_join(thread, NULL);
}

/* Returns how often the fault struck. */
static uint64_t run_under(const struct sweep__fault *fault, uint64_t kth)
{
    run.fault = fault;
    run.kth = kth;
    run.failed_call[0] = '\0';
    /* relaxed: published by `current`. */
    pirn__store(&calls, 0, relaxed);
    /* relaxed: as above. */
    pirn__store(&strikes, 0, relaxed);
    /* relaxed: as above. */
    pirn__store(&fails_at, kth, relaxed);
    set_current(fault);
    on_a_fresh_thread();
    set_current(NULL);
    /* relaxed: late threads strike no more. */
    return pirn__load(&strikes, relaxed);
}

static void judge(bool must_succeed, int failures_before)
{
    if (test_failures() != failures_before)
        find("an expectation failed");
    if (must_succeed && run.failed_call[0] != '\0')
        find("%s answered %s", run.failed_call, pirn_err_name(run.failed_rc));
}

/* Returns how often the fault struck. */
static uint64_t round_of(const struct sweep__fault *fault, uint64_t kth)
{
    struct stock before = take_stock();
    int failures = test_failures();
    uint64_t struck = run_under(fault, kth);
    struct stock now = take_stock_when_settled();

    compare_stock(&before, &now);
    judge(fault == NULL || fault->is_borne, failures);
    if (is_verbose() && struck > 0)
        fprintf(stderr, "  %s, call %llu: %llu times\n", fault->name,
                (unsigned long long)kth, (unsigned long long)struck);
    return struck;
}

/* So many phases of what goes on until the end are enough. */
static uint64_t last_point(const struct sweep__fault *fault)
{
    switch (fault->rhythm) {
    case SWEEP__EVERY_OTHER:
        return 2;
    case SWEEP__ALWAYS:
        return 1;
    case SWEEP__ONCE:
    case SWEEP__ONWARDS:
        break;
    }
    return POINTS_MAX;
}

static void sweep_fault(const struct sweep__fault *fault)
{
    uint64_t last = last_point(fault);
    uint64_t struck = 1;

    for (uint64_t kth = 1; kth <= last && struck > 0; kth++) {
        struck = round_of(fault, kth);
        if (struck == 0)
            continue;
        run.result.points++;
        /* The same scenario works right afterwards. */
        (void)round_of(NULL, 0);
        if (run.is_over)
            return;
    }
    if (struck > 0 && last == POINTS_MAX)
        find("no end of calls");
}

struct sweep_result sweep_run(sweep_scenario_fn *scenario, unsigned groups)
{
    sweep__world_install();
    run.scenario = scenario;
    run.result = (struct sweep_result){.points = 0};
    run.is_over = false;
    count_own_threads();
    /* What belongs to the process is made once: in the first. */
    (void)run_under(NULL, 0);
    (void)take_stock_when_settled();
    (void)round_of(NULL, 0);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        if (!run.is_over && (faults[i].group & groups) != 0)
            sweep_fault(&faults[i]);
    }
    return run.result;
}

static bool was_seen(const char *function, const char *code)
{
    for (size_t i = 0; i < run.seen_count; i++) {
        if (strcmp(run.seen[i].function, function) == 0 &&
            strcmp(pirn_err_name(run.seen[i].rc), code) == 0)
            return true;
    }
    return false;
}

/* What the header promises and nobody has met. */
static void print_unseen(const char *function)
{
    char words[1024];
    char *rest = words;
    const char *errors = documented_errors(function);

    (void)snprintf(words, sizeof words, "%s", errors == NULL ? "" : errors);
    for (char *code; (code = strtok_r(rest, " ", &rest)) != NULL;) {
        if (!was_seen(function, code))
            fprintf(stderr, "  %s never answered %s\n", function, code);
    }
}

/* So far in this program. */
static void print_codes(void)
{
    for (size_t i = 0; i < run.seen_count; i++) {
        const struct seen *seen = &run.seen[i];

        if (seen->rc < 0)
            fprintf(stderr, "  %s answered %s%s\n", seen->function,
                    pirn_err_name(seen->rc),
                    is_documented(seen->function, seen->rc)
                        ? ""
                        : ", undocumented");
        else
            print_unseen(seen->function);
    }
}

void sweep__check(const char *file, int line, const char *scenario,
                  struct sweep_result result)
{
    fprintf(stderr, "sweep %s: %zu injection points\n", scenario,
            result.points);
    if (is_verbose())
        print_codes();
    if (result.problem[0] != '\0')
        test__fail(file, line, "sweep %s: %s", scenario, result.problem);
    if (result.points == 0)
        test__fail(file, line, "sweep %s: nothing could be failed", scenario);
}
