/* Whom a worker lets in, and when: descriptors out, siblings, rotation. connections_max has a test of its own
 * (room_test.c). */
#include "worker/placement/accept.c"

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

static void check_newcomers(uint32_t sibling_state, uint32_t want)
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
    ok_named(conns_in_call[2] == want, "%s: connections between two calls: %u", where_name, conns_in_call[2]);
    ok_named(conns_in_call[5] == want, "%s: connections three calls later: %u", where_name, conns_in_call[5]);
    ok(pump_until(&site, site.worker->reactor.conn_count == 11));
    site_close(&site);
    oribi_scoreboard_destroy(&site.board);
}

/* Kept-alive clients that keep a worker busy cannot starve newcomers, unless a sibling is there for them. */
static void test_newcomers_while_requests_wait(void)
{
    check_newcomers(ORIBI_SLOT_BUSY, 11);
    check_newcomers(ORIBI_SLOT_IDLE, 1);
}

/* With few calls since the last look few are let in, with many as many as were served meanwhile. */
static void test_newcomers_beside_short_calls_come_as_calls_end(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    struct oribi_worker *w = site.worker;
    w->call_lengths.average_us = ORIBI_PASS_US;
    ok_eq(saturated_budget(w), 1);
    w->request_count += 5;
    ok_eq(saturated_budget(w), 6);
    ok_eq(saturated_budget(w), 1);
    w->request_count += ACCEPT_BATCH;
    ok_eq(saturated_budget(w), ACCEPT_BATCH);
    w->call_lengths.average_us = ORIBI_PASS_US + 1;
    ok_eq(saturated_budget(w), ACCEPT_BATCH);
    w->call_lengths.average_us = 2048;
    ok_eq(saturated_budget(w), 64);
    w->call_lengths.average_us = 1000 * 1000;
    ok_eq(saturated_budget(w), ACCEPT_BATCH_MAX);
    w->request_count -= 5 + ACCEPT_BATCH;
    w->call_lengths.average_us = 0;
    site_close(&site);
}

/* The helper has taken the listeners out of the loop, and each turn goes straight into the next long call: what the
 * turn's one poll does not show is never accepted. */
static void test_one_turn_after_a_long_call_sees_newcomers(void)
{
    struct site site;
    site_init(&site);
    set_siblings(&site, ORIBI_SLOT_BUSY);
    site_open(&site, route);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/0")));
    ok_answer(&site, c, 200, "/0");
    (void)client_open(&site);
    oribi__accept_sources_close(site.worker);
    oribi__turn(site.worker);
    ok_eq(site.worker->reactor.conn_count, 2);
    site_close(&site);
    oribi_scoreboard_destroy(&site.board);
}

/* A sibling that is stopped or hangs is shown as idle, and comes for nobody. */
static void test_newcomers_are_not_left_for_ever_to_a_sibling_that_does_not_come(void)
{
    struct site site;
    site_init(&site);
    set_siblings(&site, ORIBI_SLOT_IDLE);
    site_open(&site, route);
    struct oribi_worker *w = site.worker;
    w->reactor.queue_len = 1;
    w->woken = false;
    w->acceptor.ready_us = w->reactor.now_us;
    ok_eq(accept_budget(w), 0);
    w->reactor.now_us += FORSAKEN_US;
    ok_eq(accept_budget(w), 0);
    w->reactor.now_us++;
    ok_eq(accept_budget(w), 1);
    w->reactor.queue_len = 0;
    site_close(&site);
    oribi_scoreboard_destroy(&site.board);
}

static void check_newcomers_in_a_call(uint32_t sibling_state, uint32_t queue_max, bool is_long, uint32_t want)
{
    struct site site;
    site_init(&site);
    site.options.queue_max = queue_max;
    set_siblings(&site, sibling_state);
    site_open(&site, route);
    for (int i = 0; i < 3; i++)
        (void)client_open(&site);
    oribi__listener_watches_unwatch(site.worker); /* as the helper does on its first step in a call */
    atomic_store(&site.worker->placement.expects_long, is_long);
    ok(!oribi__turn_connections(site.worker));
    ok_eq(site.worker->reactor.conn_count, want);
    ok(pump_until(&site, site.worker->reactor.conn_count == 3));
    site_close(&site);
    oribi_scoreboard_destroy(&site.board);
}

/* So that limits on waiting hold, and where no sibling could begin sooner. */
static void test_newcomers_while_a_call_is_long(void)
{
    check_newcomers_in_a_call(ORIBI_SLOT_BUSY, 1, false, 3);
    check_newcomers_in_a_call(ORIBI_SLOT_IDLE, 1, false, 0);
    check_newcomers_in_a_call(ORIBI_SLOT_BUSY, 0, false, 0);
    check_newcomers_in_a_call(ORIBI_SLOT_BUSY, 0, true, 0); /* no hand-off queue: they would wait for this worker */
    check_newcomers_in_a_call(ORIBI_SLOT_IDLE, 0, true, 0);
}

/* As many as the batch at a time, so that the own thread need not wait for long. */
static void test_more_newcomers_than_a_batch_in_a_long_call(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    atomic_store(&site.worker->placement.expects_long, true);
    for (int i = 0; i < ACCEPT_BATCH + 3; i++)
        (void)client_open(&site);
    oribi__listener_watches_unwatch(site.worker);
    ok(oribi__turn_connections(site.worker));
    ok_eq(site.worker->reactor.conn_count, ACCEPT_BATCH);
    ok(!oribi__turn_connections(site.worker));
    ok_eq(site.worker->reactor.conn_count, ACCEPT_BATCH + 3);
    site_close(&site);
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
    test_newcomers_beside_short_calls_come_as_calls_end();
    run_everywhere(test_one_turn_after_a_long_call_sees_newcomers);
    test_newcomers_are_not_left_for_ever_to_a_sibling_that_does_not_come();
    run_everywhere(test_newcomers_while_a_call_is_long);
    run_everywhere(test_more_newcomers_than_a_batch_in_a_long_call);
    run_everywhere(test_rotation_loses_no_connection);
    run_everywhere(test_a_broken_listener_does_not_spin);
    run_everywhere(test_a_connection_answered_and_closed_is_never_registered);
    return done_testing();
}
