/* Clients that take their time and clients that leave: the deadlines of the worker's connections, half-closed ones, and
 * what happens to a call whose client has gone. Over TCP and unix sockets, with epoll and with poll(2). */
#include "worker/worker.c"

#include "worker/client.h"

#define GET(target)   "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"
#define CLOSE(target) "GET " target " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

/* ---- deadlines ---- */

static void test_silence_after_connecting_closes_silently(void)
{
    struct site site;
    site_init(&site);
    site.options.head_timeout_ms = 10000;
    site_open(&site, route);
    struct client *c = client_open(&site);
    ok(pump_until(&site, site.worker->reactor.conn_count == 1));
    pass_ms(5000);
    settle(&site);
    ok_eq(site.worker->reactor.conn_count, 1);
    pass_ms(5000);
    ok(closed_after(&site, c));
    ok_eq(atomic_load(&site.slot.timeouts[ORIBI_TIMEOUT_FIRST]), 1);
    site_close(&site);
}

static void test_idle_connection_closes_silently(void)
{
    struct site site;
    site_init(&site);
    site.options.idle_timeout_ms = 10000;
    site_open(&site, route);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/hello")));
    ok_answer(&site, c, 200, "hello\n");
    pass_ms(5000);
    settle(&site);
    ok_eq(site.worker->reactor.conn_count, 1);
    pass_ms(5000);
    ok(closed_after(&site, c));
    site_close(&site);
}

static void test_head_must_be_complete_in_time_however_often_bytes_come(void)
{
    struct site site;
    site_init(&site);
    site.options.head_timeout_ms = 10000;
    site_open(&site, route);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, "GET / HTTP/1.1\r\nHost: a\r\nX: "));
    settle(&site);
    for (int i = 0; i < 9; i++) {
        pass_ms(1000);
        ok(client_send(&site, c, "x"));
        settle(&site);
    }
    ok_eq(c->got_len, 0);
    ok_eq(site.worker->reactor.conn_count, 1);
    pass_ms(1000);
    struct answer answer = ok_answer(&site, c, 408, NULL);
    ok(answer.closes);
    ok(pump_until(&site, c->eof || c->error));
    site_close(&site);
}

static void test_the_rest_of_a_pipeline_is_a_head_begun(void)
{
    struct site site;
    site_init(&site);
    site.options.head_timeout_ms = 10000;
    site.options.idle_timeout_ms = 60000;
    site_open(&site, route);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/hello") "GET /nev"));
    ok_answer(&site, c, 200, "hello\n");
    pass_ms(10000);
    ok_answer(&site, c, 408, NULL);
    site_close(&site);
}

/* RFC 9112 2.2: an empty line before a request line is no request. A client that adds one to its last body and then
 * rests is idle. */
static void test_an_empty_line_begins_no_request(void)
{
    struct site site;
    site_init(&site);
    site.options.head_timeout_ms = 10000;
    site.options.idle_timeout_ms = 60000;
    site_open(&site, route);
    struct client *behind = client_open(&site);
    struct client *later = client_open(&site);
    ok(client_send(&site, behind, GET("/hello") "\r\n"));
    ok(client_send(&site, later, GET("/hello")));
    ok_answer(&site, behind, 200, "hello\n");
    ok_answer(&site, later, 200, "hello\n");
    ok(client_send(&site, later, "\r\n"));
    settle(&site);
    pass_ms(30000);
    settle(&site);
    ok(client_send(&site, later, GET("/hello")));
    ok_answer(&site, later, 200, "hello\n");
    pass_ms(30000);
    ok(closed_after(&site, behind)); /* no 408 */
    ok_eq(site.worker->reactor.conn_count, 1);
    pass_ms(30000);
    ok(closed_after(&site, later));
    site_close(&site);
}

static void test_body_needs_progress(void)
{
    struct site site;
    site_init(&site);
    site.options.body_timeout_ms = 10000;
    site.options.body_rate_min = 0;
    site_open(&site, route);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nh"));
    for (int i = 0; i < 3; i++) {
        settle(&site);
        pass_ms(9000);
        ok(client_send(&site, c, "x"));
    }
    settle(&site);
    ok_eq(c->got_len, 0);
    pass_ms(10000);
    ok_answer(&site, c, 408, NULL);
    ok_eq(site.calls, 0);
    site_close(&site);
}

static void test_body_needs_a_minimum_rate(void)
{
    struct site site;
    site_init(&site);
    site.options.body_timeout_ms = 10000;
    site.options.body_rate_min = 1000;
    site_open(&site, route);
    struct client *c = client_open(&site);
    struct client *fast = client_open(&site);
    char *second = big_text(2000);
    ok(client_send(&site, c, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 30000\r\n\r\n"));
    ok(client_send(&site, fast, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 30000\r\n\r\n"));
    settle(&site);
    for (int i = 0; i < 15; i++) {
        pass_ms(1000);
        (void)client_send_bytes(&site, c, second, 500);
        ok(client_send_bytes(&site, fast, second, 2000));
        settle(&site);
        (void)client_read(c);
        ok_named(i == 9 || (c->got_len > 0) == (i > 9), "%s: slow body, second %d", where_name, i + 1);
    }
    ok_answer(&site, c, 408, NULL);
    ok_answer(&site, fast, 200, NULL);
    free(second);
    site_close(&site);
}

static void test_timeouts_of_zero_are_off(void)
{
    struct site site;
    site_init(&site);
    site.options.head_timeout_ms = site.options.body_timeout_ms = 0;
    site.options.idle_timeout_ms = site.options.write_timeout_ms = 0;
    site_open(&site, route);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, "GET /hello HT"));
    settle(&site);
    pass_ms(24 * 3600 * 1000);
    settle(&site);
    ok(client_send(&site, c, "TP/1.1\r\nHost: a\r\n\r\n"));
    ok_answer(&site, c, 200, "hello\n");
    ok_eq(oribi_timeouts_next_ms(&site.worker->reactor.timeouts, oribi_clock_ms()), -1);
    site_close(&site);
}

static struct site *app_site;

/* A call that takes longer than every timeout: the time inside the application is nobody's fault but its own. */
static void slow_app(struct oribi_req *req)
{
    pass_ms(80000);
    route(req);
}

static void test_a_long_call_costs_no_client_its_time(void)
{
    struct site site;
    site_init(&site);
    site.options.head_timeout_ms = site.options.idle_timeout_ms = site.options.write_timeout_ms = 60000;
    site_open(&site, slow_app);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/hello")));
    ok_answer(&site, c, 200, "hello\n");
    settle(&site);
    ok_eq(site.worker->reactor.conn_count, 1); /* idle since the answer, not since the call began */
    ok(client_send(&site, c, GET("/hello") "GET /hello HT"));
    ok_answer(&site, c, 200, "hello\n");
    settle(&site);
    ok(client_send(&site, c, "TP/1.1\r\nHost: a\r\n\r\n"));
    ok_answer(&site, c, 200, "hello\n");
    struct client *slow = client_open(&site);
    slow->paused = true;
    ok(client_send(&site, slow, GET("/big/8000000")));
    ok(pump_until(&site, site.calls == 4));
    settle(&site);
    slow->paused = false;
    struct answer answer = {0};
    ok(next_answer(&site, slow, &answer) && answer.body_len == 8000000);
    site_close(&site);
}

/* ---- clients that leave ---- */

static void leave_in_call(struct oribi_req *req)
{
    for (uint32_t i = 0; i < app_site->client_count; i++)
        if (app_site->clients[i])
            client_close(app_site, app_site->clients[i]);
    route(req);
}

static void test_client_gone_at_every_stage(void)
{
    static const char *const stages[] = {
        "",
        "\r\n",
        "GET / HT",
        GET("/hello"),
        GET("/hello") "GET / HT",
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf",
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nhalf",
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n",
        "BAD\r\n\r\n",
        GET("/big/8000000"),
        GET("/big/8000000") GET("/hello"),
        CLOSE("/big/8000000"),
    };
    for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
        for (int reset = 0; reset < 2; reset++) {
            for (int early = 0; early < 2; early++) {
                struct site site;
                site_init(&site);
                site.options.head_timeout_ms = site.options.body_timeout_ms = site.options.idle_timeout_ms =
                    0; /* nothing but its leaving ends it */
                site.options.write_timeout_ms = 0;
                site_open(&site, route);
                struct client *c = client_open(&site);
                c->paused = true;
                ok(client_send(&site, c, stages[i]));
                if (!early)
                    settle(&site);
                if (reset) {
                    struct linger now = {.l_onoff = 1, .l_linger = 0};
                    (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
                }
                client_close(&site, c);
                ok_named(pump_until(&site, atomic_load(&site.slot.connection_count) == 1 && nothing_open(&site)),
                         "%s: stage %zu: gone%s%s", where_name, i, reset ? " by reset" : "",
                         early ? " before the first turn" : "");
                site_close(&site);
            }
        }
    }
}

static void test_client_gone_while_called(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, leave_in_call);
    app_site = &site;
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/hello") GET("/hello")));
    ok(pump_until(&site, site.calls > 0 && nothing_open(&site)));
    c = client_open(&site);
    ok(client_send(&site, c, GET("/big/8000000")));
    ok(pump_until(&site, atomic_load(&site.slot.connection_count) == 2 && nothing_open(&site)));
    site_close(&site);
}

/* FIN is not "client gone": RFC 9112 9.6. */
static void test_half_closed_client_gets_its_answers(void)
{
    static const char *const inputs[] = {GET("/one"), GET("/one") GET("/two"), CLOSE("/one")};
    for (int i = 0; i < 3; i++) {
        for (int registered = 0; registered < 2; registered++) {
            struct site site;
            site_init(&site);
            site_open(&site, route);
            struct client *c = client_open(&site);
            if (registered) {
                ok(client_send(&site, c, GET("/zero")));
                ok_answer(&site, c, 200, "/zero");
            }
            ok(client_send(&site, c, inputs[i]));
            (void)shutdown(c->fd, SHUT_WR);
            ok_answer(&site, c, 200, "/one");
            if (i == 1)
                ok_answer(&site, c, 200, "/two");
            ok(closed_after(&site, c));
            ok(pump_until(&site, nothing_open(&site)));
            site_close(&site);
        }
    }
}

static void test_half_closed_client_gets_a_large_answer(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    struct client *c = client_open(&site);
    c->paused = true;
    ok(client_send(&site, c, GET("/big/8000000")));
    (void)shutdown(c->fd, SHUT_WR);
    ok(pump_until(&site, site.calls == 1));
    settle(&site);
    c->paused = false;
    c->slice = 100000;
    struct answer answer = {0};
    ok(next_answer(&site, c, &answer) && answer.body_len == 8000000 && is_big_text(answer.body, answer.body_len));
    ok(closed_after(&site, c));
    site_close(&site);
}

/* A server that decides to close a connection the client wants to keep must expect the next request to be on its
 * way: closing with that unread would reset the connection, and the reset would take the answer's unread part with
 * it. */
static const char *sent_in_call;
static struct client *client_in_call;
static void send_in_call(struct oribi_req *req)
{
    if (sent_in_call)
        (void)send(client_in_call->fd, sent_in_call, strlen(sent_in_call), MSG_NOSIGNAL);
    sent_in_call = NULL;
    route(req);
}

static void test_closing_a_kept_alive_connection_loses_no_answer(void)
{
    struct site site;
    site_init(&site);
    site.options.keepalive_requests_max = 2;
    site_open(&site, send_in_call);
    struct client *c = client_in_call = client_open(&site);
    ok(client_send(&site, c, GET("/hello")));
    ok_answer(&site, c, 200, "hello\n");
    c->paused = true;
    sent_in_call = GET("/late");
    ok(client_send(&site, c, GET("/big/100000")));
    ok(pump_until(&site, site.calls == 2));
    settle(&site);
    c->paused = false;
    struct answer answer = {0};
    ok(next_answer(&site, c, &answer) && answer.body_len == 100000);
    ok(answer.closes);
    ok(closed_after(&site, c));
    ok_eq(site.calls, 2);
    site_close(&site);
}

int main(void)
{
    quiet_log();
    run_everywhere(test_silence_after_connecting_closes_silently);
    run_everywhere(test_idle_connection_closes_silently);
    run_everywhere(test_head_must_be_complete_in_time_however_often_bytes_come);
    run_everywhere(test_the_rest_of_a_pipeline_is_a_head_begun);
    run_everywhere(test_an_empty_line_begins_no_request);
    run_everywhere(test_body_needs_progress);
    run_everywhere(test_body_needs_a_minimum_rate);
    run_everywhere(test_timeouts_of_zero_are_off);
    run_everywhere(test_a_long_call_costs_no_client_its_time);
    run_everywhere(test_client_gone_at_every_stage);
    run_everywhere(test_client_gone_while_called);
    run_everywhere(test_half_closed_client_gets_its_answers);
    run_everywhere(test_half_closed_client_gets_a_large_answer);
    run_everywhere(test_closing_a_kept_alive_connection_loses_no_answer);
    return done_testing();
}
