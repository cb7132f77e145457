/* SPDX-License-Identifier: MIT */
/* tools/pirn/load.c - `pirn load`: put an HTTP server under load.
 *
 * One fiber per connection, a client, sends a GET, reads the whole answer, and
 * sends the next (closed loop: a slow server is asked less often).  The first
 * fiber shows the progress, waits for the end or a signal, and collects the
 * clients.
 *
 * Clients run on all workers at once.  Each counts into one of a few shards,
 * under its lock, so that two workers seldom meet there; the shards are added
 * up when all is over. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pirn/pirn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "commands.h"
#include "http.h"
#include "load_print.h"
#include "load_stats.h"
#include "options.h"
#include "signals.h"
#include "workers.h"

enum {
    BUF_SIZE = 32 * 1024,
    REQUEST_SIZE = 8192,
    CONNECT_MS = 5000,
    RETRY_MS = 20, /* after an error, so that a dead server is not hammered */
    LEAVE_MS = 1000,
    SPARE_DESCRIPTORS = 64 + WORKERS_MAX, /* each worker has one */
    SHARDS_MAX = 64
};

static const char help[] =
    "usage: pirn load URL [OPTION]...\n"
    "\n"
    "Send GET requests for URL over several connections at once, each when\n"
    "the answer before it has arrived, and measure.  The host is a numeric\n"
    "address or 'localhost'.  Load only servers that are yours to load.\n"
    "\n"
    "  -c, --connections N   at the same time (default 50)\n"
    "  -d, --duration S      seconds (default 10)\n"
    "  -k, --keep-alive on|off\n"
    "                        off: a new connection for each request\n"
    "                        (default on)\n"
    "  -t, --timeout-ms N    for one answer (default 10000)\n"
    "      --progress on|off|auto\n"
    "                        a line each second on standard error; auto: if\n"
    "                        it is a terminal (default)\n"
    "      --workers N       threads that run it, 1 to 512, or auto: as many\n"
    "                        as there are processors for it, or as\n"
    "                        PIRN_WORKERS in the environment says (default)\n"
    "      --verbose         print also what each worker did\n"
    "      --json            print the results as JSON\n"
    "      --help\n"
    "\n"
    "Exit status: 0 if every request was answered well, 1 if not, 2 for wrong\n"
    "arguments.\n";

struct load_options {
    const char *url;
    uint64_t connections;
    uint64_t duration_s;
    uint64_t timeout_ms;
    bool keep_alive;
    uint32_t workers;
    bool progress;
    bool verbose;
    bool json;
};

struct shard {
    pthread_mutex_t lock; /* never held across a call that suspends */
    struct load_stats stats;
};

struct client;

/* Constant while clients run, but for what the first fiber alone uses. */
struct load {
    const struct load_options *options;
    pirn_fd *signals; /* the first fiber's */
    char address[HTTP_HOST_SIZE + 16];
    char request[REQUEST_SIZE];
    size_t request_len;
    uint64_t start_ns;
    pirn_deadline end;
    uint64_t stop_ns; /* the first fiber's: when the clients were to stop */
    struct client *clients;
    struct shard *shards;
    size_t shard_count;
    struct load_stats stats; /* the sum, when all is over */
    struct workers workers;  /* when all is over */
};

struct client {
    pirn_task *task; /* the first fiber's; NULL: not started */
    const struct load *load;
    struct shard *shard;
    pirn_tcp *tcp; /* NULL: not connected */
    struct http_reader *reader;
    char *buf;
    uint64_t bytes; /* of the answer so far */
};

static enum load_result result_of(int rc)
{
    switch (pirn_err_category(rc)) {
    case PIRN_CATEGORY_CANCELLED:
        return LOAD_CANCELLED;
    case PIRN_CATEGORY_TIMED_OUT:
        return LOAD_TIMEOUT;
    case PIRN_CATEGORY_NONE:
    case PIRN_CATEGORY_CLOSED:
    case PIRN_CATEGORY_REFUSED:
    case PIRN_CATEGORY_RESOURCE:
    case PIRN_CATEGORY_USAGE:
    case PIRN_CATEGORY_SYSTEM:
    case PIRN_CATEGORY_INTERNAL:
        break;
    }
    return LOAD_RESET;
}

static void disconnect(struct client *client)
{
    pirn_tcp_close(client->tcp);
    client->tcp = NULL;
    http_reader_free(client->reader);
    client->reader = NULL;
}

static enum load_result connect_client(struct client *client)
{
    pirn_deadline deadline = pirn_after_ms(CONNECT_MS);

    client->reader = http_reader_new(HTTP_KIND_RESPONSE, NULL);
    if (client->reader == NULL)
        return LOAD_CONNECT;
    int rc =
        pirn_tcp_connect(client->load->address, NULL, deadline, &client->tcp);
    if (rc < 0)
        return rc == -ECANCELED ? LOAD_CANCELLED : LOAD_CONNECT;
    return LOAD_FINE;
}

/* The whole answer was read. */
static enum load_result judge(const struct client *client)
{
    int status = http_reader_message(client->reader)->status;

    return status >= 200 && status < 400 ? LOAD_FINE : LOAD_STATUS;
}

static enum load_result read_answer(struct client *client,
                                    pirn_deadline deadline)
{
    enum http_progress progress = HTTP_PROGRESS_MORE;

    /* Ends: the deadline stands for all of these reads together. */
    while (progress == HTTP_PROGRESS_MORE) {
        ssize_t n = pirn_tcp_read(client->tcp, client->buf, BUF_SIZE, deadline);

        if (n < 0)
            return result_of((int)n);
        if (n == 0) {
            progress = http_reader_end(client->reader);
            if (progress != HTTP_PROGRESS_DONE)
                return LOAD_RESET;
            break;
        }
        client->bytes += (uint64_t)n;
        size_t used =
            http_reader_feed(client->reader, client->buf, (size_t)n, &progress);
        if (progress == HTTP_PROGRESS_DONE && used < (size_t)n)
            return LOAD_PARSE; /* more than was asked for */
    }
    return progress == HTTP_PROGRESS_DONE ? judge(client) : LOAD_PARSE;
}

/* One request and its answer. */
static enum load_result ask(struct client *client, pirn_deadline deadline)
{
    const struct load *load = client->load;
    enum load_result result = LOAD_FINE;

    client->bytes = 0;
    if (client->tcp == NULL)
        result = connect_client(client);
    if (result != LOAD_FINE)
        return result;
    int rc = pirn_tcp_write_all(client->tcp, load->request, load->request_len,
                                deadline);
    if (rc < 0)
        return result_of(rc);
    return read_answer(client, deadline);
}

static void record(struct client *client, enum load_result result,
                   uint64_t start_ns, uint64_t now_ns)
{
    struct shard *shard = client->shard;
    const struct load_sample sample = {
        .result = result,
        .bytes = client->bytes,
        .start_ns = start_ns,
        .now_ns = now_ns,
    };

    (void)pthread_mutex_lock(&shard->lock);
    load_stats_count(&shard->stats, &sample);
    (void)pthread_mutex_unlock(&shard->lock);
}

/* Ask until the end.  Clock reads are shared: a request begins when the one
 * before it ended. */
static void work(struct client *client)
{
    const struct load *load = client->load;
    const uint64_t timeout_ns = load->options->timeout_ms * 1000 * 1000;
    uint64_t start_ns = pirn_now_ns();

    while (start_ns < load->end.ns) {
        pirn_deadline deadline = {start_ns + timeout_ns};
        enum load_result result = ask(client, deadline);
        uint64_t now_ns = pirn_now_ns();

        record(client, result, start_ns, now_ns);
        if (result == LOAD_CANCELLED)
            return;
        bool is_whole = result == LOAD_FINE || result == LOAD_STATUS;
        if (!is_whole || !load->options->keep_alive ||
            !http_reader_message(client->reader)->keep_alive)
            disconnect(client);
        if (!is_whole) {
            if (pirn_sleep(pirn_after_ms(RETRY_MS)) < 0)
                return;
            now_ns = pirn_now_ns();
        }
        start_ns = now_ns;
    }
}

static int client_fiber(void *arg)
{
    struct client *client = arg;

    client->buf = malloc(BUF_SIZE);
    if (client->buf == NULL)
        return -ENOMEM;
    work(client);
    disconnect(client);
    free(client->buf);
    return 0;
}

/* How many requests were answered until now, and how many failed. */
static void count_until_now(struct load *load, uint64_t *requests,
                            uint64_t *errors)
{
    *requests = 0;
    *errors = 0;
    for (size_t i = 0; i < load->shard_count; i++) {
        struct shard *shard = &load->shards[i];

        (void)pthread_mutex_lock(&shard->lock);
        *requests += shard->stats.requests;
        *errors += load_stats_errors(&shard->stats);
        (void)pthread_mutex_unlock(&shard->lock);
    }
}

static void show_progress(struct load *load, uint64_t *before)
{
    char rate[LOAD_NUMBER_SIZE];
    char errors[LOAD_NUMBER_SIZE];
    bool is_terminal = isatty(STDERR_FILENO) != 0;

    uint64_t requests;
    uint64_t error_total;
    count_until_now(load, &requests, &error_total);
    uint64_t second = (pirn_now_ns() - load->start_ns) / 1000000000;
    (void)fprintf(stderr, "%s  %3" PRIu64 " s  %12s requests/s  %8s errors%s",
                  is_terminal ? "\r" : "", second,
                  load_number(requests - *before, rate),
                  load_number(error_total, errors), is_terminal ? "" : "\n");
    *before = requests;
}

/* Until the end, or a signal; false if it was a signal. */
static bool supervise(struct load *load)
{
    const uint64_t second_ns = 1000 * 1000 * 1000;
    uint64_t before = 0;
    pirn_deadline tick = {load->start_ns};
    int rc = -ETIMEDOUT;

    while (rc == -ETIMEDOUT && !pirn_deadline_expired(load->end)) {
        tick.ns += second_ns;
        rc = signals_wait(load->signals, pirn_deadline_min(tick, load->end));
        if (load->options->progress)
            show_progress(load, &before);
    }
    if (load->options->progress && isatty(STDERR_FILENO) != 0)
        (void)fputc('\n', stderr);
    return rc == -ETIMEDOUT;
}

/* Wait for the answers in flight, but not for ever; at once if `now`. */
static void collect(struct load *load, bool now)
{
    pirn_deadline deadline = now ? PIRN_EXPIRED : pirn_after_ms(LEAVE_MS);
    int outcome;

    for (uint64_t i = 0; i < load->options->connections; i++) {
        pirn_task *task = load->clients[i].task;

        if (task == NULL)
            continue;
        if (pirn_task_join(task, deadline, &outcome) == -ETIMEDOUT) {
            pirn_task_cancel(task);
            (void)!pirn_task_join(task, PIRN_NEVER, &outcome);
        }
        pirn_task_unref(task);
    }
}

static int start_client(struct load *load, uint64_t index)
{
    struct client *client = &load->clients[index];

    client->load = load;
    client->shard = &load->shards[index % load->shard_count];
    return pirn_go_with(client_fiber, client, NULL, &client->task);
}

static int load_fiber(void *arg)
{
    struct load *load = arg;
    int rc = 0;

    load->start_ns = pirn_now_ns();
    load->end.ns = load->start_ns + load->options->duration_s * 1000000000;
    for (uint64_t i = 0; rc == 0 && i < load->options->connections; i++)
        rc = start_client(load, i);
    if (rc < 0)
        (void)fprintf(stderr, "pirn load: cannot start a client: %s\n",
                      pirn_err_text(rc));
    bool is_over = rc == 0 && supervise(load);
    load->stop_ns = pirn_now_ns();
    collect(load, !is_over);
    pirn_fd_close(load->signals);
    workers_read(&load->workers);
    return rc;
}

enum load_option {
    OPTION_PROGRESS = 256,
    OPTION_WORKERS,
    OPTION_VERBOSE,
    OPTION_JSON,
    OPTION_HELP
};

static const struct option long_options[] = {
    {"connections", required_argument, NULL, 'c'},
    {"duration", required_argument, NULL, 'd'},
    {"keep-alive", required_argument, NULL, 'k'},
    {"timeout-ms", required_argument, NULL, 't'},
    {"progress", required_argument, NULL, OPTION_PROGRESS},
    {"workers", required_argument, NULL, OPTION_WORKERS},
    {"verbose", no_argument, NULL, OPTION_VERBOSE},
    {"json", no_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

/* One option; false if its value makes no sense. */
static bool take_option(int option, const char *text,
                        struct load_options *options)
{
    switch (option) {
    case 'c':
        return option_number("load", "--connections", text, 1, 100000,
                             &options->connections);
    case 'd':
        return option_number("load", "--duration", text, 1, 1000000,
                             &options->duration_s);
    case 'k':
        return option_switch("load", "--keep-alive", text,
                             &options->keep_alive);
    case 't':
        return option_number("load", "--timeout-ms", text, 1, 3600 * 1000,
                             &options->timeout_ms);
    case OPTION_PROGRESS:
        if (strcmp(text, "auto") == 0)
            return true;
        return option_switch("load", "--progress", text, &options->progress);
    case OPTION_WORKERS:
        return option_workers("load", text, &options->workers);
    case OPTION_VERBOSE:
        options->verbose = true;
        return true;
    case OPTION_JSON:
        options->json = true;
        return true;
    default:
        return false;
    }
}

/* -1: go on; otherwise the exit status. */
static int read_options(int argc, char **argv, struct load_options *options)
{
    static char name[] = "pirn load";
    int option;

    argv[0] = name; /* how getopt_long() begins a complaint */
    while ((option = getopt_long(argc, argv, "c:d:k:t:h", long_options,
                                 NULL)) != -1) {
        if (option == OPTION_HELP || option == 'h') {
            (void)fputs(help, stdout);
            return 0;
        }
        if (!take_option(option, optarg, options)) {
            (void)fputs("Try 'pirn load --help'.\n", stderr);
            return EXIT_USAGE;
        }
    }
    if (argc - optind != 1) {
        (void)fputs("pirn load: give one URL\nTry 'pirn load --help'.\n",
                    stderr);
        return EXIT_USAGE;
    }
    options->url = argv[optind];
    return -1;
}

/* Where to connect, and what to send. */
static bool prepare_request(struct load *load)
{
    const char *text = load->options->url;
    struct http_url url;
    pirn_addr address;

    if (!http_url_parse(text, &url)) {
        (void)fprintf(stderr, "pirn load: '%s' is not an http:// URL\n", text);
        return false;
    }
    const char *open = url.is_v6 ? "[" : "";
    const char *close = url.is_v6 ? "]" : "";
    const char *host =
        strcmp(url.host, "localhost") == 0 ? "127.0.0.1" : url.host;
    (void)snprintf(load->address, sizeof load->address, "%s%s%s:%u", open, host,
                   close, url.port);
    if (pirn_addr_parse(load->address, &address) < 0) {
        (void)fprintf(stderr,
                      "pirn load: '%s' is not a numeric address; names other "
                      "than localhost are not looked up\n",
                      url.host);
        return false;
    }
    int len = snprintf(
        load->request, sizeof load->request,
        "GET %.*s HTTP/1.1\r\nHost: %s%s%s:%u\r\n"
        "User-Agent: pirn-load\r\n%s\r\n",
        (int)url.target.len, url.target.text, open, url.host, close, url.port,
        load->options->keep_alive ? "" : "Connection: close\r\n");
    load->request_len = len < 0 ? 0 : (size_t)len;
    if (load->request_len < sizeof load->request)
        return true;
    (void)fprintf(stderr, "pirn load: the URL is too long\n");
    return false;
}

static void raise_descriptor_limit(uint64_t connections)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)(connections + SPARE_DESCRIPTORS);

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    /* With fewer, some connections count as errors. */
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static double measured_seconds(const struct load *load)
{
    uint64_t stop_ns = load->stop_ns;

    if (load->stats.last_ns > stop_ns)
        stop_ns = load->stats.last_ns;
    return (double)(stop_ns - load->start_ns) / 1e9;
}

/* The exit status. */
static int print_results(const struct load *load)
{
    const struct load_options *options = load->options;
    const struct load_stats *stats = &load->stats;
    const struct workers *workers = options->verbose ? &load->workers : NULL;

    if (options->json)
        load_print_json(stats, measured_seconds(load), workers);
    else
        load_print_table(stats, measured_seconds(load), workers);
    return stats->requests > 0 && load_stats_errors(stats) == 0 ? EXIT_SUCCESS
                                                                : EXIT_FAILURE;
}

/* Run and print; the exit status. */
static int measure(struct load *load)
{
    const struct load_options *options = load->options;
    const pirn_runtime_options runtime = {
        .overflow_report = true,
        .workers = options->workers,
    };

    if (!option_runtime("load", &runtime))
        return EXIT_USAGE;
    int signal_fd = signals_block();
    if (signal_fd < 0 || pirn_fd_adopt(signal_fd, &load->signals) < 0) {
        (void)fputs("pirn load: cannot read signals\n", stderr);
        return EXIT_FAILURE;
    }
    if (!options->json) {
        (void)printf("%" PRIu64 " connections to %s for %" PRIu64 " s\n",
                     options->connections, options->url, options->duration_s);
        (void)fflush(stdout);
    }
    int rc = pirn_run_with(load_fiber, load, &runtime, NULL);
    if (rc < 0) {
        (void)fprintf(stderr, "pirn load: %s\n", pirn_err_text(rc));
        return pirn_exit_code(rc);
    }
    for (size_t i = 0; i < load->shard_count; i++)
        load_stats_add(&load->stats, &load->shards[i].stats);
    return print_results(load);
}

/* The memory for so many clients; NULL without. */
static struct load *load_new(const struct load_options *options)
{
    size_t shard_count = options->connections < SHARDS_MAX
                             ? (size_t)options->connections
                             : SHARDS_MAX;
    /* Too large for the stack: it holds a histogram. */
    struct load *load = calloc(1, sizeof *load);

    if (load == NULL)
        return NULL;
    load->options = options;
    load->clients = calloc((size_t)options->connections, sizeof *load->clients);
    load->shards = calloc(shard_count, sizeof *load->shards);
    if (load->clients == NULL || load->shards == NULL) {
        free(load->clients);
        free(load->shards);
        free(load);
        return NULL;
    }
    load->shard_count = shard_count;
    for (size_t i = 0; i < shard_count; i++)
        (void)pthread_mutex_init(&load->shards[i].lock, NULL);
    return load;
}

static void load_free(struct load *load)
{
    for (size_t i = 0; i < load->shard_count; i++)
        (void)pthread_mutex_destroy(&load->shards[i].lock);
    workers_free(&load->workers);
    free(load->shards);
    free(load->clients);
    free(load);
}

int load_command(int argc, char **argv)
{
    struct load_options options = {
        .connections = 50,
        .duration_s = 10,
        .timeout_ms = 10000,
        .keep_alive = true,
        .workers = PIRN_WORKERS_AUTO,
        .progress = isatty(STDERR_FILENO) != 0,
    };
    int status = read_options(argc, argv, &options);

    if (status >= 0)
        return status;
    struct load *load = load_new(&options);
    if (load == NULL) {
        (void)fputs("pirn load: no memory\n", stderr);
        return EXIT_FAILURE;
    }
    raise_descriptor_limit(options.connections);
    status = prepare_request(load) ? measure(load) : EXIT_USAGE;
    load_free(load);
    return status;
}
