/* Whom a worker lets in, and when: descriptors out, siblings, rotation. connections_max has a test of its own
 * (room_test.c). */
#include "worker/accept.c"

#include "child.h"
#include "worker/client.h"

#include <netinet/tcp.h>

#include <sys/resource.h>

#define GET(target) "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"

/* Runs in a child, which has few descriptors. */
static int run_out_of_descriptors(void *data)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    struct client *clients[20];
    int at = dup(0);
    oribi_os_close(at);
    for (int i = 0; i < 20; i++)
        clients[i] = client_open(&site);
    struct rlimit limit = {.rlim_cur = (rlim_t)at + 20 + 6, .rlim_max = (rlim_t)at + 20 + 6};
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 2;
    if (!pump_until(&site, !site.worker->acceptor.open))
        return 3; /* did not notice */
    if (site.worker->reactor.conn_count >= 20)
        return 4;
    struct oribi_event events[8];
    settle(&site);
    if (!site.worker->acceptor.open && oribi_loop_poll(site.worker->reactor.loop, 0, events, 8) > 0)
        return 5; /* the waiting listener must not keep us awake */
    int64_t start = real_ms();
    /* Each pause closes connections on which nothing has begun, so in the end everybody who asks is answered or
     * closed. */
    for (int i = 0; i < 20; i++) {
        (void)client_send(&site, clients[i], GET("/hello"));
        if (!pump_until(&site, clients[i]->got_len > 0 || clients[i]->eof || clients[i]->error))
            return 6;
        client_close(&site, clients[i]);
    }
    if (real_ms() - start > 15000)
        return 7;
    if (!pump_until(&site, site.worker->acceptor.open && nothing_open(&site)))
        return 8; /* did not recover */
    struct client *c = client_open(&site);
    struct answer answer;
    if (!client_send(&site, c, GET("/hello")) || !next_answer(&site, c, &answer) || answer.status != 200)
        return 9;
    return 0;
}

static void test_out_of_descriptors_pauses_and_recovers(void)
{
    ok_eq(child_code(run_out_of_descriptors, NULL), 0);
}

static void test_accepted_sockets_are_as_they_must_be(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/hello")));
    ok_answer(&site, c, 200, "hello\n");
    int fd = site.worker->reactor.conns->watch.fd;
    ok(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    ok(fcntl(fd, F_GETFL) & O_NONBLOCK);
    if (!over_unix) {
        int on = 0;
        socklen_t len = sizeof(on);
        ok_eq(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
        ok(on);
    }
    site_close(&site);
}

/* ---- siblings ---- */

static void set_siblings(struct site *site, uint32_t state)
{
    if (!site->board.slots && oribi_scoreboard_create(&site->board, 3) < 0)
        fail("scoreboard");
    for (uint32_t i = 0; i < 3; i++)
        atomic_store(&site->board.slots[i].state, i == 2 ? ORIBI_SLOT_BUSY : state);
}

static void test_an_idle_sibling_is_left_its_share(void)
{
    struct site site;
    site_init(&site);
    set_siblings(&site, ORIBI_SLOT_IDLE);
    site_open(&site, route);
    for (int i = 0; i < 10; i++)
        (void)client_open(&site);
    (void)oribi_worker_take(site.worker);
    ok_eq(site.worker->reactor.conn_count, 1); /* one a turn: the others are woken for the rest */
    (void)oribi_worker_take(site.worker);
    ok_eq(site.worker->reactor.conn_count, 2);
    site_close(&site);
    oribi_scoreboard_destroy(&site.board);
}

static void test_busy_siblings_leave_it_all_to_us(void)
{
    struct site site;
    site_init(&site);
    set_siblings(&site, ORIBI_SLOT_BUSY);
    site_open(&site, route);
    for (int i = 0; i < 10; i++)
        (void)client_open(&site);
    (void)oribi_worker_take(site.worker);
    ok_eq(site.worker->reactor.conn_count, 10);
    site_close(&site);
    oribi_scoreboard_destroy(&site.board);
}

static struct site *app_site;
static uint32_t conns_in_call[16];

static void busy_app(struct oribi_req *req)
{
    if (app_site->calls < 16)
        conns_in_call[app_site->calls] = app_site->worker->reactor.conn_count;
    pass_ms(2); /* longer than the worker goes without a turn */
    route(req);
}

static void check_newcomers(uint32_t sibling_state, uint32_t want_each_turn)
{
    struct site site;
    site_init(&site);
    set_siblings(&site, sibling_state);
    site_open(&site, busy_app);
    app_site = &site;
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/0")));
    ok_answer(&site, c, 200, "/0");
    ok(client_send(&site, c, GET("/1") GET("/2") GET("/3") GET("/4") GET("/5")));
    settle(&site);
    app_site->calls = 0;
    ok(client_send(&site, c, GET("/1") GET("/2") GET("/3") GET("/4") GET("/5")));
    for (int i = 0; i < 10; i++)
        (void)client_open(&site);
    settle(&site);
    /* Turns 2 … 5 find a request of the pipeline queued. */
    uint32_t grown = conns_in_call[5] - conns_in_call[2];
    ok_named(grown == 3 * want_each_turn, "%s: newcomers while busy: %u", where_name, grown);
    ok(pump_until(&site, site.worker->reactor.conn_count == 11));
    site_close(&site);
    oribi_scoreboard_destroy(&site.board);
}

/* Kept-alive clients that keep a worker busy cannot starve newcomers, unless a sibling is there for them. */
static void test_newcomers_while_requests_wait(void)
{
    check_newcomers(ORIBI_SLOT_BUSY, 1);
    check_newcomers(ORIBI_SLOT_IDLE, 0);
}

static void check_newcomers_in_a_call(uint32_t sibling_state, uint32_t queue_max, uint32_t want)
{
    struct site site;
    site_init(&site);
    site.options.queue_max = queue_max;
    set_siblings(&site, sibling_state);
    site_open(&site, route);
    for (int i = 0; i < 3; i++)
        (void)client_open(&site);
    oribi__listener_watches_unwatch(site.worker); /* as the helper does on its first step in a call */
    oribi__turn_connections(site.worker);
    ok_eq(site.worker->reactor.conn_count, want);
    ok(pump_until(&site, site.worker->reactor.conn_count == 3));
    site_close(&site);
    oribi_scoreboard_destroy(&site.board);
}

/* Only so that limits on waiting hold. */
static void test_newcomers_while_a_call_is_long(void)
{
    check_newcomers_in_a_call(ORIBI_SLOT_BUSY, 1, 3);
    check_newcomers_in_a_call(ORIBI_SLOT_IDLE, 1, 0);
    check_newcomers_in_a_call(ORIBI_SLOT_BUSY, 0, 0);
}

static void test_rotation_loses_no_connection(void)
{
    struct site site;
    site_init(&site);
    set_siblings(&site, ORIBI_SLOT_BUSY);
    site_open(&site, route);
    for (int i = 0; i < 50; i++) {
        struct client *c = client_open(&site);
        ok(client_send(&site, c, GET("/hello")));
        ok_answer(&site, c, 200, "hello\n");
    }
    ok_eq(site.worker->reactor.conn_count, 50);
    ok_eq(site.worker->reactor.registered_count, 50);
    ok(site.worker->acceptor.watches[0].watch.added);
    site_close(&site);
    oribi_scoreboard_destroy(&site.board);
}

/* A listener that fails for good (somebody shut it down) is complained about, not spun on. */
static void test_a_broken_listener_does_not_spin(void)
{
    if (over_unix)
        return;
    struct site site;
    site_init(&site);
    site_open(&site, route);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/hello")));
    ok_answer(&site, c, 200, "hello\n");
    (void)shutdown(site.listeners.items[0].fd, SHUT_RD);
    settle(&site);
    settle(&site);
    struct oribi_event events[8];
    ok_eq(oribi_loop_poll(site.worker->reactor.loop, 0, events, 8), 0);
    ok(client_send(&site, c, GET("/hello")));
    ok_answer(&site, c, 200, "hello\n");
    site_close(&site);
}

static void test_a_connection_answered_and_closed_is_never_registered(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    for (int i = 0; i < 5; i++) {
        struct client *c = client_open(&site);
        ok(client_send(&site, c, "GET /hello HTTP/1.0\r\n\r\n"));
        ok_answer(&site, c, 200, "hello\n");
        ok(closed_after(&site, c));
        client_close(&site, c);
    }
    ok_eq(site.worker->reactor.registered_count, 0);
    site_close(&site);
}

int main(void)
{
    quiet_log();
    run_everywhere(test_out_of_descriptors_pauses_and_recovers);
    run_everywhere(test_accepted_sockets_are_as_they_must_be);
    run_everywhere(test_an_idle_sibling_is_left_its_share);
    run_everywhere(test_busy_siblings_leave_it_all_to_us);
    run_everywhere(test_newcomers_while_requests_wait);
    run_everywhere(test_newcomers_while_a_call_is_long);
    run_everywhere(test_rotation_loses_no_connection);
    run_everywhere(test_a_broken_listener_does_not_spin);
    run_everywhere(test_a_connection_answered_and_closed_is_never_registered);
    return done_testing();
}
