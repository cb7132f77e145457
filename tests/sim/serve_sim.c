/* SPDX-License-Identifier: MIT */
/* tests/sim/serve_sim.c - `pirn serve` itself, in bad weather.
 *
 * The server is the command's own code, from the listener to the last byte of
 * a file, in a runtime as the seed wants it.  Clients that behave well get what
 * is right; others stall in each place where one can, end a half, hang up, or
 * talk nonsense.  Somebody stops the server at any time, as a request arrives,
 * or when all have got what they wanted.
 *
 * Beside what each answer must be it holds that
 *
 *   - no more connections are admitted than the limit says;
 *   - a deadline of the server is never early, and in calm weather not late;
 *   - after a stop, answers that were begun are finished, for as long as the
 *     grace time allows; then all of it ends at once;
 *   - the idle go home at once, and who waits is told when the last has left;
 *   - the report of the runtime counts exactly the fibers that there were;
 *   - each file that was opened is closed, once.
 */
#include "sim/serve_client.h"

#include "file.h"
#include "serving.h"

enum {
    CLIENTS = 8,
    VISITS = 4,
    PIPELINE = 3,
    SLACK_MS = 100,      /* late ends of waits */
    HOME_MS = 500,       /* the same, and the network */
    SHUTDOWN_MS = 10000, /* as much as there may be */
    QUICKLY_MS = 1000    /* and as much as is needed */
};

/* When the server is stopped. */
enum stop_when {
    STOP_ANY_TIME,
    STOP_AS_ASKED, /* while a request is under way */
    STOP_LAST      /* when all clients have what they wanted */
};

/* The rosters, as seen from outside. */
struct tally {
    size_t live;      /* not more than there are */
    size_t late_live; /* not fewer */
    size_t limit;
};

struct client {
    struct visit visit;
    struct request requests[PIPELINE];
    char text[PIPELINE * REQUEST_SIZE]; /* of all of them */
};

static struct {
    struct serving serving;
    struct tally guests, turned_away;
    uint64_t admitted; /* to both */
    uint64_t empty_ns; /* when the last guest left */
    uint32_t left;     /* threads that have not ended */
    uint32_t clients_left;
    enum stop_when stop_when;
    uint32_t asks_left; /* until it is stopped */
    bool stop_has_begun;
    bool is_hurried;
    struct client clients[CLIENTS];
} world;

/* What the server calls, seen in between. */

bool __real_roster_admit(struct roster *roster, struct guest *guest);
bool __wrap_roster_admit(struct roster *roster, struct guest *guest);
void __real_roster_leave(struct roster *roster, struct guest *guest);
void __wrap_roster_leave(struct roster *roster, struct guest *guest);
int __real_exchange_answer(struct exchange *exchange);
int __wrap_exchange_answer(struct exchange *exchange);
int __real_pirn_id_cancel(pirn_task_id id);
int __wrap_pirn_id_cancel(pirn_task_id id);

static struct tally *tally_of(const struct roster *roster)
{
    return roster == &world.serving.server.roster ? &world.guests
                                                  : &world.turned_away;
}

bool __wrap_roster_admit(struct roster *roster, struct guest *guest)
{
    struct tally *tally = tally_of(roster);
    bool was_full = tally->late_live >= tally->limit;

    if (!__real_roster_admit(roster, guest)) {
        sim_check(was_full || site.stop_ns != 0,
                  "nobody is turned away while there is room");
        return false;
    }
    world.admitted++;
    tally->live++;
    tally->late_live++;
    sim_check(tally->live <= tally->limit, "the limit is kept");
    return true;
}

void __wrap_roster_leave(struct roster *roster, struct guest *guest)
{
    struct tally *tally = tally_of(roster);

    tally->live--;
    /* The server may end before this call returns. */
    if (world.guests.live == 0)
        world.empty_ns = sim_now_ns();
    __real_roster_leave(roster, guest);
    tally->late_live--;
    if (world.guests.late_live == 0)
        world.empty_ns = sim_now_ns();
}

int __wrap_exchange_answer(struct exchange *exchange)
{
    int rc = __real_exchange_answer(exchange);

    sim_check(rc != -ECANCELED || client_may_be_cut_off(),
              "a request in flight may be answered in the grace time");
    return rc;
}

/* Between the decision to cancel and the cancelling others may run, for as long
 * as a processor may be given to others. */
int __wrap_pirn_id_cancel(pirn_task_id id)
{
    if (id.value != world.serving.acceptor_id.value && sim_chance(600))
        sim_block_ms(sim_below(10));
    return __real_pirn_id_cancel(id);
}

/* Who stops it all: a virtual thread that starts when it is time. */

/* A request that was asked for right now arrives after about one latency. */
static uint32_t stop_delay_us(void)
{
    uint32_t latency_us = sim_options()->latency_us;

    switch (world.stop_when) {
    case STOP_ANY_TIME:
        return sim_below((sim_options()->fault_ms + 4000) * 1000);
    case STOP_AS_ASKED:
        return latency_us / 2 + sim_below(2 * latency_us + 1);
    case STOP_LAST:
        break;
    }
    return 0;
}

static void stop_thread(void *arg)
{
    (void)arg;
    while (!site.is_open)
        client_sleep_ms(1);
    sim_check(pirn_sleep(pirn_after_us(stop_delay_us())) == 0,
              "a plain thread can sleep");
    site.stop_ns = sim_now_ns();
    serving_stop(&world.serving);
    if (world.is_hurried) {
        client_sleep_ms(sim_below(site.grace_ms + 1));
        site.hurry_ns = sim_now_ns();
        serving_abandon(&world.serving);
    }
    world.left--;
}

static void stop_if(bool condition)
{
    if (!condition || world.stop_has_begun)
        return;
    world.stop_has_begun = true;
    sim_thread(stop_thread, NULL);
}

static void note_ask(void)
{
    if (world.asks_left > 0)
        world.asks_left--;
    stop_if(world.asks_left == 0 && world.stop_when == STOP_AS_ASKED);
}

/* Visits.  Each ends with 0, or with a code and is repeated. */

typedef int visit_fn(struct client *client);

/* One after the other on one connection. */
static int visit_politely(struct client *client)
{
    struct visit *visit = &client->visit;
    uint32_t count = 1 + sim_below(3);
    enum client_outcome outcome = CLIENT_GOES_ON;

    for (uint32_t i = 0; i < count && outcome == CLIENT_GOES_ON; i++) {
        if (i > 0 && sim_chance(500))
            client_sleep_ms(sim_below(sim_chance(500) ? 10
                                                      : site.idle_ms / 4));
        request_draw(&client->requests[0], site.header_limit);
        note_ask();
        client_ask(visit, &client->requests[0]);
        outcome = client_hear(visit, &client->requests[0]);
    }
    return outcome == CLIENT_AGAIN ? -EAGAIN : 0;
}

/* Several requests in one text, as many as the network takes in at once: who
 * does not read before all is sent could wait for ever. */
static uint32_t ask_at_once(struct client *client)
{
    struct request *requests = client->requests;
    uint32_t wanted = 1 + sim_below(PIPELINE);
    uint32_t count = 0;
    size_t len = 0;

    while (count < wanted && (count == 0 || !requests[count - 1].is_last)) {
        request_draw(&requests[count], site.header_limit);
        if (count > 0 &&
            len + requests[count].len > sim_options()->buffer / 2)
            break;
        memcpy(client->text + len, requests[count].text, requests[count].len);
        len += requests[count++].len;
    }
    client_note_request(&client->visit);
    client_send(&client->visit, client->text, len);
    return count;
}

static int hear_all(struct client *client, uint32_t count)
{
    enum client_outcome outcome = CLIENT_GOES_ON;

    for (uint32_t i = 0; i < count && outcome == CLIENT_GOES_ON; i++)
        outcome = client_hear(&client->visit, &client->requests[i]);
    return outcome == CLIENT_AGAIN ? -EAGAIN : 0;
}

static int visit_ahead(struct client *client)
{
    return hear_all(client, ask_at_once(client));
}

/* All is asked for, and this side ended, before the first answer is read. */
static int visit_half_closed(struct client *client)
{
    struct visit *visit = &client->visit;
    uint32_t count = ask_at_once(client);
    int rc = pirn_tcp_shutdown(visit->tcp, PIRN_HALF_WRITE);

    if (rc == 0)
        rc = hear_all(client, count);
    if (rc == 0)
        client_expect_end(visit);
    return rc;
}

/* The server's patience, of so much since then, has to end the connection: not
 * before, and in calm weather soon after. */
static int expect_impatience(struct visit *visit, uint64_t since_ns,
                             uint32_t ms)
{
    uint64_t until = sim_now_ns() + (uint64_t)(ms + CLIENT_LATE_MS) * NS_PER_MS;
    char byte;
    ssize_t n = pirn_tcp_read(visit->tcp, &byte, 1, (pirn_deadline){until});

    /* Somebody is told that there is no room. */
    if (n > 0) {
        sim_check(visit->is_first, "nobody is answered who has not asked");
        return -EAGAIN;
    }
    sim_check(n != 0 || site.stop_ns != 0 || client_is_due(since_ns, ms),
              "no idle connection is closed early");
    sim_check(n == 0 || !visit->is_calm || site.stop_ns != 0,
              "in calm weather an idle connection is closed in time");
    sim_check(n != 0 || !visit->is_calm || site.stop_ns == 0 ||
                  !client_is_due(site.stop_ns, HOME_MS),
              "in calm weather a stop sends the idle home at once");
    return n < 0 ? (int)n : 0;
}

/* Silent from the start, or after an answer. */
static int visit_silently(struct client *client)
{
    struct visit *visit = &client->visit;

    if (sim_chance(500))
        return expect_impatience(visit, visit->asked_ns, site.idle_ms);
    request_file(&client->requests[0], DISK_SMALL);
    client_ask(visit, &client->requests[0]);
    enum client_outcome outcome = client_hear(visit, &client->requests[0]);
    if (outcome != CLIENT_GOES_ON)
        return outcome == CLIENT_AGAIN ? -EAGAIN : 0;
    return expect_impatience(visit, visit->asked_ns, site.idle_ms);
}

/* So slowly that it takes longer than the server waits, though no byte is long
 * in coming. */
static void drip(struct visit *visit, const char *text, size_t len)
{
    uint32_t pause_ms = site.header_ms / 4;

    /* Until the answer is there. */
    for (size_t i = 0; i < len && visit->sent == 0 && visit->end == 0; i++) {
        client_send_part(visit, text + i, 1);
        client_sleep_ms(pause_ms);
        client_listen(visit);
    }
}

/* A request that does not end. */
static int visit_halting(struct client *client)
{
    struct visit *visit = &client->visit;
    struct request *request = &client->requests[0];
    size_t begun = 1 + sim_below(16);
    size_t most;

    request_file(request, DISK_SMALL);
    most = request->len - 1;
    request->status = 408;
    request->field[0] = '\0';
    request->has_part = false;
    request->is_head = false;
    request->is_last = true;
    client_note_request(visit);
    client_send(visit, request->text, begun);
    if (sim_chance(300))
        drip(visit, request->text + begun, most - begun);
    if (client_hear(visit, request) != CLIENT_IS_DONE)
        return -EAGAIN;
    sim_check(client_is_due(visit->asked_ns, site.header_ms),
              "nobody is told too early that the request is late");
    sim_check(!visit->is_calm ||
                  !client_is_due(visit->asked_ns,
                                 site.header_ms + CLIENT_LATE_MS),
              "in calm weather that is said in time");
    return 0;
}

/* An answer that is not read.  What the network holds is less than a half of
 * it. */
static int visit_deaf(struct client *client)
{
    struct visit *visit = &client->visit;
    struct request *request = &client->requests[0];
    struct request whole = {
        .status = 200,
        .reads_disk = true,
        .has_part = true,
        .file = sim_options()->buffer < 2048 ? DISK_MEDIUM : DISK_LARGE,
    };

    if (sim_options()->buffer < 16)
        return 0;
    whole.count = disk_files[whole.file].size;
    whole.len = (size_t)snprintf(whole.text, sizeof whole.text,
                                 "GET %s HTTP/1.1\r\nHost: sim\r\n\r\n",
                                 disk_files[whole.file].url);
    *request = whole;
    client_ask(visit, request);
    client_sleep_ms(2 * site.idle_ms + CLIENT_LATE_MS);
    visit->is_deaf = true;
    if (client_hear(visit, request) == CLIENT_AGAIN)
        return 0;
    sim_check(!visit->is_calm || site.stop_ns != 0,
              "in calm weather who does not read is cut off");
    return 0;
}

/* Gone before the answer has been read, which resets the connection if some of
 * it is there. */
static int visit_shortly(struct client *client)
{
    struct visit *visit = &client->visit;

    (void)ask_at_once(client);
    if (sim_chance(500))
        client_sleep_ms(sim_below(50));
    for (uint32_t left = sim_below(200); left > 0; left--) {
        if (client_byte(visit) < 0)
            break;
    }
    return 0;
}

static visit_fn *draw_visit(void)
{
    static visit_fn *const kinds[] = {
        visit_politely, visit_politely, visit_politely,    visit_politely,
        visit_ahead,    visit_ahead,    visit_half_closed, visit_silently,
        visit_halting,  visit_deaf,     visit_shortly,     visit_shortly,
    };

    return kinds[sim_below(sizeof kinds / sizeof kinds[0])];
}

static void client_thread(void *arg)
{
    uint32_t me = (uint32_t)(uintptr_t)arg;
    struct client *client = &world.clients[me];
    uint32_t wanted = 1 + sim_options()->buffer / 8;

    if (wanted > VISITS)
        wanted = VISITS;
    if (wanted > sim_options()->requests)
        wanted = sim_options()->requests;
    while (!site.is_open)
        client_sleep_ms(1);
    for (uint32_t i = 0; i < wanted; i++) {
        visit_fn *kind = draw_visit();
        int rc = -EAGAIN;

        /* Ends: the world gets calm, or the server is stopped. */
        while (rc < 0 && site.stop_ns == 0) {
            rc = client_connect(&client->visit);
            if (rc == 0) {
                rc = kind(client);
                pirn_tcp_close(client->visit.tcp);
            }
            if (rc < 0)
                client_sleep_ms(20 + sim_below(80));
        }
    }
    world.clients_left--;
    stop_if(world.clients_left == 0);
    world.left--;
}

/* The server. */

static int open_server(void)
{
    int rc = serving_open(&world.serving, "127.0.0.1:0");

    /* Ends: the world gets calm. */
    while (rc == -EMFILE) {
        rc = sim_sleep_ms(20);
        if (rc == 0)
            rc = serving_open(&world.serving, "127.0.0.1:0");
    }
    return rc;
}

static void check_end(int rc, size_t cut_off)
{
    uint64_t since_ns = site.hurry_ns != 0 ? site.hurry_ns : site.stop_ns;
    uint32_t ms = site.hurry_ns != 0 ? 0 : site.grace_ms;

    sim_check((rc == 0) == (cut_off == 0), "the end says what it is");
    sim_check(!client_is_due(since_ns, ms + SLACK_MS),
              "the end comes within the grace time");
    sim_check(cut_off == 0 || client_may_be_cut_off(),
              "nobody is cut off before the grace time is over");
    sim_check(cut_off > 0 || !client_is_due(site.stop_ns, SLACK_MS) ||
                  !client_is_due(world.empty_ns, SLACK_MS),
              "the end comes when the last has left");
}

/* As serve_fiber of the command. */
static int serve_fiber(void *arg)
{
    size_t cut_off = 0;
    pirn_addr address;
    int rc = open_server();

    (void)arg;
    sim_check(rc == 0, "the server listens");
    if (rc < 0)
        return rc;
    pirn_listener_address(world.serving.listener, &address);
    (void)pirn_addr_format(&address, site.address, sizeof site.address);
    rc = serving_start(&world.serving);
    sim_check(rc == 0, "the server starts");
    site.is_open = true;
    rc = serving_wait(&world.serving);
    sim_check(rc == 0, "accepting ends because it should");
    rc = serving_drain(&world.serving, site.grace_ms, &cut_off);
    check_end(rc, cut_off);
    return 0;
}

static void begin(struct sim_program *program)
{
    struct server *server = &world.serving.server;
    size_t limit = 1 + sim_below(5);

    memset(&site, 0, sizeof site);
    memset(&world, 0, sizeof world);
    site.idle_ms = 700 + sim_below(800);
    site.header_ms = 800 + sim_below(800);
    site.grace_ms = sim_chance(200) ? 0 : sim_below(5000);
    site.header_limit = sim_chance(500) ? 1024 : 5500;
    disk.is_old = sim_chance(100);
    world.stop_when = (enum stop_when)sim_below(3);
    world.asks_left = 1 + sim_below(8);
    world.is_hurried = sim_chance(200);
    world.guests.limit = limit;
    world.turned_away.limit = SERVING_TURN_AWAY_LIMIT;
    serving_init(&world.serving, limit);
    server->site.idle_ms = site.idle_ms;
    server->site.root_fd = file_open_root(disk.folder);
    server->header_ms = site.header_ms;
    server->limits.header_bytes = site.header_limit;
    server->limits.body_bytes = 64 * 1024;
    *program = sim_program_begin();
}

static void start_threads(void)
{
    uint32_t clients = sim_options()->clients;

    world.clients_left = clients < CLIENTS ? clients : CLIENTS;
    world.left = world.clients_left + 1;
    for (uint32_t i = 0; i < world.clients_left; i++)
        sim_thread(client_thread, (void *)(uintptr_t)i);
    stop_if(world.stop_when == STOP_ANY_TIME);
}

static void shut_down(struct sim_program *program)
{
    const pirn_report *report = &program->report;
    uint64_t begun_ns = sim_now_ns();

    sim_program_shutdown(program, SHUTDOWN_MS);
    sim_check(report->in_time && !client_is_due(begun_ns, QUICKLY_MS),
              "who was cut off is gone at once");
    sim_check(report->spawned == 2 + world.admitted,
              "there was a fiber for each connection");
    sim_check(report->completed == report->spawned,
              "each came to its own end");
    sim_check(world.guests.live == 0 && world.turned_away.live == 0,
              "all have left");
}

static void serve_story(void)
{
    struct sim_program program;
    int descriptors = disk_descriptors();

    disk.is_on = true;
    begin(&program);
    start_threads();
    sim_check(sim_program_run(&program, serve_fiber, NULL) == 0,
              "the server comes to an end");
    shut_down(&program);
    while (world.left > 0)
        sim_block_ms(1);
    sim_program_end(&program);
    (void)close(world.serving.server.site.root_fd);
    serving_deinit(&world.serving);
    disk.is_on = false;
    sim_check(disk_descriptors() == descriptors, "all files are closed");
}

static const struct sim_options options = {.live_s = 400};

/* Goal: the server keeps what it promises, to clients of all kinds, and when it
 * is stopped.  Method: a run for each seed. */
TEST(serve_keeps_its_promises)
{
    disk_make();
    sim_expect_clean("serve_keeps_its_promises", serve_story, &options,
                     test_size(30, 400, 20000));
    disk_remove();
}

/* Goal: files on a real disk do not make a run another one.  Method: as for
 * echo. */
TEST(serve_can_be_repeated)
{
    disk_make();
    sim_expect_repeatable("serve_keeps_its_promises", serve_story, 8);
    disk_remove();
}
