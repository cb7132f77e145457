/* SPDX-License-Identifier: MIT */
/* tools/pirn/serve.c - `pirn serve`: a static file server.
 *
 * The command around serving.c: options, signals, and what is printed.  Two
 * fibers beside those of serving.c:
 *
 *     serve_fiber     starts the others, then waits for the end in order
 *     signal_fiber    the first signal stops the accepting and sends the idle
 *                     connections home; the second ends the waiting
 *
 * After the first signal serve_fiber waits for the requests in flight, at most
 * the grace time.  When it returns, pirn_run_with() cancels what is left. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pirn/pirn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "commands.h"
#include "file.h"
#include "options.h"
#include "serving.h"
#include "signals.h"
#include "workers.h"

enum {
    BODY_LIMIT = 64 * 1024, /* of requests; it is read and thrown away */
    SPARE_DESCRIPTORS = 64 + WORKERS_MAX, /* each worker has one */
    MINIMAL_QUEUE = 1024,
    REPORT_SIZE = 4096
};

static const char help[] =
    "usage: pirn serve DIR [OPTION]...\n"
    "\n"
    "Serve the files below DIR by HTTP/1.1, until SIGINT or SIGTERM.\n"
    "\n"
    "  --listen ADDR:PORT     numeric; port 0 takes a free one\n"
    "                         (default 127.0.0.1:8080)\n"
    "  --max-connections N    answer 503 to more (default 10000)\n"
    "  --idle-ms N            close a connection that is silent, or does not\n"
    "                         read, for so long (default 30000)\n"
    "  --header-ms N          a request must arrive within (default 10000)\n"
    "  --max-header N         bytes of a request's headers (default 16384)\n"
    "  --grace-ms N           time for requests in flight to finish after the\n"
    "                         first signal (default 5000); a second signal\n"
    "                         cuts it short, a third ends the process\n"
    "  --workers N            threads that run it, 1 to 512, or auto: as many\n"
    "                         as there are processors for it, or as\n"
    "                         PIRN_WORKERS in the environment says (default)\n"
    "  --port-file FILE       write the address that is listened on\n"
    "  --log                  one line per request on standard error\n"
    "  --quiet                print nothing but errors\n"
    "  --help\n"
    "\n"
    "The limit on open files is raised as far as --max-connections needs and\n"
    "the system allows.  Exit status: 0 after an orderly stop, 1 if requests\n"
    "were cut off or something failed, 2 for wrong arguments, 130 after a\n"
    "second signal.\n";

struct serve_options {
    const char *folder;
    const char *listen;
    const char *port_file;
    uint64_t max_connections;
    uint64_t idle_ms;
    uint64_t header_ms;
    uint64_t max_header;
    uint64_t grace_ms;
    uint32_t workers;
    bool log;
    bool quiet;
};

struct serve {
    const struct serve_options *options;
    struct serving serving;
    pirn_fd *signals;       /* signal_fiber's */
    struct workers workers; /* when all was over */
};

static void complain(const char *what, const char *object, int rc)
{
    (void)fprintf(stderr, "pirn serve: %s %s: %s\n", what, object,
                  pirn_err_text(rc));
}

/* --help has no place among the numbers of options. */
enum serve_option {
    OPTION_LISTEN = 256,
    OPTION_MAX_CONNECTIONS,
    OPTION_IDLE_MS,
    OPTION_HEADER_MS,
    OPTION_MAX_HEADER,
    OPTION_GRACE_MS,
    OPTION_WORKERS,
    OPTION_PORT_FILE,
    OPTION_LOG,
    OPTION_QUIET,
    OPTION_HELP
};

static const struct option long_options[] = {
    {"listen", required_argument, NULL, OPTION_LISTEN},
    {"max-connections", required_argument, NULL, OPTION_MAX_CONNECTIONS},
    {"idle-ms", required_argument, NULL, OPTION_IDLE_MS},
    {"header-ms", required_argument, NULL, OPTION_HEADER_MS},
    {"max-header", required_argument, NULL, OPTION_MAX_HEADER},
    {"grace-ms", required_argument, NULL, OPTION_GRACE_MS},
    {"workers", required_argument, NULL, OPTION_WORKERS},
    {"port-file", required_argument, NULL, OPTION_PORT_FILE},
    {"log", no_argument, NULL, OPTION_LOG},
    {"quiet", no_argument, NULL, OPTION_QUIET},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static bool take_address(const char *text, struct serve_options *options)
{
    pirn_addr address;

    options->listen = text;
    if (pirn_addr_parse(text, &address) == 0)
        return true;
    (void)fprintf(stderr,
                  "pirn serve: --listen: '%s' is not a numeric address with a "
                  "port, such as 127.0.0.1:8080 or [::1]:8080\n",
                  text);
    return false;
}

/* One option; false if its value makes no sense. */
static bool take_option(int option, const char *text,
                        struct serve_options *options)
{
    const uint64_t day_ms = 24 * 60 * 60 * 1000;

    switch (option) {
    case OPTION_LISTEN:
        return take_address(text, options);
    case OPTION_MAX_CONNECTIONS:
        return option_number("serve", "--max-connections", text, 1, 1000000,
                             &options->max_connections);
    case OPTION_IDLE_MS:
        return option_number("serve", "--idle-ms", text, 1, day_ms,
                             &options->idle_ms);
    case OPTION_HEADER_MS:
        return option_number("serve", "--header-ms", text, 1, day_ms,
                             &options->header_ms);
    case OPTION_MAX_HEADER:
        return option_number("serve", "--max-header", text, 256, 1024 * 1024,
                             &options->max_header);
    case OPTION_GRACE_MS:
        return option_number("serve", "--grace-ms", text, 0, day_ms,
                             &options->grace_ms);
    case OPTION_WORKERS:
        return option_workers("serve", text, &options->workers);
    case OPTION_PORT_FILE:
        options->port_file = text;
        return true;
    case OPTION_LOG:
        options->log = true;
        return true;
    case OPTION_QUIET:
        options->quiet = true;
        return true;
    default:
        return false;
    }
}

/* -1: go on; otherwise the exit status. */
static int read_options(int argc, char **argv, struct serve_options *options)
{
    static char name[] = "pirn serve";
    int option;

    argv[0] = name; /* how getopt_long() begins a complaint */
    while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        if (option == OPTION_HELP || option == 'h') {
            (void)fputs(help, stdout);
            return 0;
        }
        if (!take_option(option, optarg, options)) {
            (void)fputs("Try 'pirn serve --help'.\n", stderr);
            return EXIT_USAGE;
        }
    }
    if (argc - optind != 1) {
        (void)fputs("pirn serve: give one folder\n"
                    "Try 'pirn serve --help'.\n",
                    stderr);
        return EXIT_USAGE;
    }
    options->folder = argv[optind];
    return -1;
}

static int signal_fiber(void *arg)
{
    struct serve *serve = arg;
    int signal = signals_wait(serve->signals, PIRN_NEVER);

    if (signal > 0) {
        serving_stop(&serve->serving);
        signal = signals_wait(serve->signals, PIRN_NEVER);
    }
    if (signal > 0) {
        serving_abandon(&serve->serving);
        signals_unblock();
    }
    pirn_fd_close(serve->signals);
    return 0;
}

/* Written beside and moved into place: a reader finds all or nothing. */
static int write_port_file(const char *file, const char *address)
{
    char temporary[4096];
    int len =
        snprintf(temporary, sizeof temporary, "%s.%ld", file, (long)getpid());

    if (len < 0 || len >= (int)sizeof temporary)
        return -ENAMETOOLONG;
    FILE *stream = fopen(temporary, "we");
    if (stream == NULL)
        return -EACCES;
    bool ok = fprintf(stream, "%s\n", address) > 0;
    ok = fclose(stream) == 0 && ok;
    if (ok && rename(temporary, file) == 0)
        return 0;
    (void)remove(temporary);
    return -EIO;
}

static int announce(const struct serve *serve)
{
    const struct serve_options *options = serve->options;
    char text[PIRN_ADDR_SIZE];
    pirn_addr address;
    int rc = 0;

    pirn_listener_address(serve->serving.listener, &address);
    (void)pirn_addr_format(&address, text, sizeof text);
    if (options->port_file != NULL) {
        rc = write_port_file(options->port_file, text);
        if (rc < 0)
            complain("cannot write", options->port_file, rc);
    }
    if (rc == 0 && !options->quiet) {
        (void)printf("Serving %s at http://%s/\n", options->folder, text);
        (void)fflush(stdout);
    }
    return rc;
}

/* Listen, and say where. */
static int open_listener(struct serve *serve)
{
    const char *address = serve->options->listen;
    int rc = serving_open(&serve->serving, address);

    if (rc < 0) {
        complain("cannot listen on", address, rc);
        return rc;
    }
    rc = announce(serve);
    if (rc < 0)
        pirn_listener_close(serve->serving.listener);
    return rc;
}

/* The start of serve_fiber: on success all its fibers run. */
static int start(struct serve *serve)
{
    struct serving *serving = &serve->serving;
    int rc = open_listener(serve);

    if (rc < 0)
        return rc;
    rc = serving_start(serving);
    if (rc < 0) {
        pirn_listener_close(serving->listener);
        complain("cannot start", "accept_fiber", rc);
        return rc;
    }
    rc = pirn_go_with(signal_fiber, serve,
                      &(pirn_spawn_options){.name = "signals"}, NULL);
    if (rc < 0) {
        serving_stop(serving); /* which closes the listener */
        (void)serving_wait(serving);
        complain("cannot start", "signal_fiber", rc);
    }
    return rc;
}

/* Wait for the requests in flight. */
static int drain(struct serve *serve)
{
    size_t cut_off;
    int rc =
        serving_drain(&serve->serving, serve->options->grace_ms, &cut_off);

    if (rc < 0)
        (void)fprintf(stderr, "pirn serve: %zu connections cut off\n",
                      cut_off);
    return rc;
}

/* From the start to the last connection. */
static int serve_all(struct serve *serve)
{
    int rc = start(serve);

    if (rc < 0) {
        pirn_fd_close(serve->signals);
        return rc;
    }
    rc = serving_wait(&serve->serving);
    if (rc < 0)
        complain("stopped accepting on", serve->options->listen, rc);
    int drained = drain(serve);
    return rc < 0 ? rc : drained;
}

static int serve_fiber(void *arg)
{
    struct serve *serve = arg;
    int rc = serve_all(serve);

    workers_read(&serve->workers);
    return rc;
}

/* As many descriptors as the connections and their files may need. */
static void raise_descriptor_limit(uint64_t max_connections)
{
    struct rlimit limit;
    rlim_t wanted =
        (rlim_t)(2 * max_connections + SERVING_TURN_AWAY_LIMIT + SPARE_DESCRIPTORS);

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    /* With fewer the server still works: accept pauses. */
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void print_report(const pirn_report *report,
                         const struct workers *workers)
{
    char text[REPORT_SIZE];

    (void)pirn_report_format(report, text, sizeof text);
    (void)fputs(text, stdout);
    workers_print(stdout, workers);
}

static pirn_runtime_options runtime_options(const struct serve_options *options)
{
    uint64_t queue = options->max_connections < MINIMAL_QUEUE
                         ? MINIMAL_QUEUE
                         : options->max_connections;

    return (pirn_runtime_options){
        .overflow_report = true,
        .workers = options->workers,
        /* A connection has one job at a time: the queue cannot be full. */
        .blocking_queue = (uint32_t)queue,
    };
}

/* Run with everything that must exist before the runtime. */
static int run(struct serve *serve)
{
    const struct serve_options *options = serve->options;
    const pirn_runtime_options runtime = runtime_options(options);
    pirn_report report = {.in_time = false};
    int rc = pirn_run_with(serve_fiber, serve, &runtime, &report);

    if (rc < 0 && report.spawned == 0)
        complain("cannot start", "a runtime", rc);
    else if (!options->quiet)
        print_report(&report, &serve->workers);
    workers_free(&serve->workers);
    if (rc == 0 && (!report.in_time || report.aborted > 0))
        rc = -ETIMEDOUT;
    return rc;
}

/* The descriptors; then run. */
static int prepare(struct serve *serve)
{
    struct site *site = &serve->serving.server.site;
    int rc = file_open_root(serve->options->folder);

    if (rc < 0) {
        complain("cannot open", serve->options->folder, rc);
        return rc;
    }
    site->root_fd = rc;
    rc = signals_block();
    if (rc < 0)
        goto fail_root;
    int signal_fd = rc;
    rc = pirn_fd_adopt(signal_fd, &serve->signals);
    if (rc < 0)
        goto fail_signals;

    rc = run(serve);
    (void)close(site->root_fd);
    return rc;

fail_signals:
    (void)close(signal_fd);
fail_root:
    (void)close(site->root_fd);
    complain("cannot read", "signals", rc);
    return rc;
}

int serve_command(int argc, char **argv)
{
    struct serve_options options = {
        .listen = "127.0.0.1:8080",
        .max_connections = 10000,
        .idle_ms = 30000,
        .header_ms = 10000,
        .max_header = 16384,
        .grace_ms = 5000,
        .workers = PIRN_WORKERS_AUTO,
    };
    struct serve serve = {.options = &options};
    struct server *server = &serve.serving.server;
    int status = read_options(argc, argv, &options);

    if (status >= 0)
        return status;
    const pirn_runtime_options runtime = runtime_options(&options);
    if (!option_runtime("serve", &runtime))
        return EXIT_USAGE;
    server->site.idle_ms = options.idle_ms;
    server->header_ms = options.header_ms;
    server->limits.header_bytes = (uint32_t)options.max_header;
    server->limits.body_bytes = BODY_LIMIT;
    server->log = options.log;
    serving_init(&serve.serving, (size_t)options.max_connections);
    raise_descriptor_limit(options.max_connections);

    int rc = prepare(&serve);
    serving_deinit(&serve.serving);
    return pirn_exit_code(rc);
}
