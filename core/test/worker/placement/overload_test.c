/* More requests than can be called: queue_max, queue_time_max, X-Request-Start, clients that have gone. */
#include "worker/placement/overload.c"

#include "worker/client.h"
#include "system.h"

#define GET(target) "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"

/* ---- X-Request-Start ---- */

static void check_start(const char *text, int64_t want_us)
{
    ok_named(start_us(oribi_slice(text, strlen(text))) == want_us, "\"%s\" is %lld", text, (long long)want_us);
}

static void test_forms_of_x_request_start(void)
{
    check_start("t=1700000000.123", 1700000000123000);
    check_start("1700000000.123456", 1700000000123456);
    check_start("1700000000.123456789", 1700000000123456);
    check_start("1700000000.", 1700000000000000);
    check_start("t=1700000000", 1700000000000000);
    check_start("1700000000123", 1700000000123000);
    check_start("t=1700000000123456", 1700000000123456);
    check_start("", 0);
    check_start("t=", 0);
    check_start("soon", 0);
    check_start("1700000000s", 0);
    check_start("1700000000.1x", 0);
    check_start("-1700000000", 0);
    check_start("99999999999999999999999999", 0);
}

static int64_t seen_queue_us;

static void note_queue(struct oribi_req *req)
{
    seen_queue_us = req->queue_us;
    route(req);
}

static void ask_with_start(struct site *site, struct client *c, int64_t ago_ms)
{
    char text[160];
    (void)snprintf(text, sizeof(text), "GET /hello HTTP/1.1\r\nHost: a\r\nX-Request-Start: t=%lld\r\n\r\n",
                   (long long)(oribi_clock_wall_ms() - ago_ms));
    ok(client_send(site, c, text));
}

static void test_time_at_the_proxy_counts(void)
{
    struct site site;
    site_init(&site);
    site.options.queue_time_max_ms = 5000;
    site_open(&site, note_queue);
    struct client *c = client_open(&site);
    ask_with_start(&site, c, 3000);
    ok_answer(&site, c, 200, NULL);
    ok(seen_queue_us >= 3000000 && seen_queue_us < 5000000);
    ask_with_start(&site, c, -60000); /* a clock that is ahead */
    ok_answer(&site, c, 200, NULL);
    ok(seen_queue_us >= 0 && seen_queue_us < 1000000);
    ask_with_start(&site, c, 2 * 3600 * 1000); /* one that is wrong */
    ok_answer(&site, c, 200, NULL);
    ask_with_start(&site, c, 5100);
    struct answer answer = ok_answer(&site, c, 503, NULL);
    ok(has_line(&answer, "Retry-After: 1"));
    ok(answer.closes);
    ok_eq(atomic_load(&site.slot.refusals[ORIBI_REFUSAL_QUEUE_TIME]), 1);
    site_close(&site);
}

/* ---- too many, too late ---- */

static void check_queue_max(uint32_t waiting, uint32_t max, int want_refused)
{
    struct site site;
    struct client *c[16];
    struct answer answer;
    site_init(&site);
    site.options.queue_max = max;
    site_open(&site, route);
    for (uint32_t i = 0; i < waiting; i++) {
        c[i] = client_open(&site);
        ok(pump_until(&site, site.worker->reactor.conn_count == i + 1));
    }
    for (uint32_t i = 0; i < waiting; i++)
        ok(client_send(&site, c[i], GET("/hello")));
    int served = 0;
    int refused = 0;
    for (uint32_t i = 0; i < waiting; i++) {
        bool there = next_answer(&site, c[i], &answer);
        served += there && answer.status == 200;
        refused += there && answer.status == 503 && has_line(&answer, "Retry-After: 1") && answer.closes;
    }
    ok_eq(refused, want_refused);
    ok_eq(served, (int)waiting - want_refused);
    ok_eq(atomic_load(&site.slot.shed_count), (uint64_t)want_refused);
    ok_eq(atomic_load(&site.slot.refusals[ORIBI_REFUSAL_QUEUE]), (uint64_t)want_refused);
    site_close(&site);
}

static void test_queue_max_and_one_more(void)
{
    check_queue_max(4, 4, 0);
    check_queue_max(5, 4, 1);
    check_queue_max(7, 1, 6);
    check_queue_max(7, 0, 0);
}

static bool slow_once;

static void slow_app(struct oribi_req *req)
{
    if (slow_once) {
        int64_t end = oribi_clock_ms() + 60;
        while (oribi_clock_ms() < end)
            continue;
    }
    slow_once = false;
    route(req);
}

static void check_queue_time(int64_t max_ms, int want)
{
    struct site site;
    struct client *c[2];
    site_init(&site);
    site.options.queue_time_max_ms = max_ms;
    site_open(&site, slow_app);
    slow_once = true;
    for (uint32_t i = 0; i < 2; i++) {
        c[i] = client_open(&site);
        ok(pump_until(&site, site.worker->reactor.conn_count == i + 1));
    }
    for (uint32_t i = 0; i < 2; i++)
        ok(client_send(&site, c[i], GET("/hello")));
    ok_answer(&site, c[0], 200, NULL);
    ok_answer(&site, c[1], want, NULL);
    site_close(&site);
}

static void test_requests_that_waited_too_long(void)
{
    check_queue_time(0, 200);
    check_queue_time(20, 503);
    check_queue_time(30000, 200);
}

/* ---- clients that have gone ---- */

static uint32_t calls;

static void count(struct oribi_req *req)
{
    calls++;
    slow_app(req);
}

static void check_leaver(bool reset, uint32_t want_calls, uint64_t want_gone)
{
    struct site site;
    struct client *c[2];
    site_init(&site);
    site_open(&site, count);
    for (uint32_t i = 0; i < 2; i++) {
        c[i] = client_open(&site);
        ok(client_send(&site, c[i], GET("/hello")));
        ok_answer(&site, c[i], 200, NULL);
    }
    calls = 0;
    slow_once = true;
    ok(client_send(&site, c[0], GET("/hello")));
    ok(client_send(&site, c[1], GET("/hello")));
    /* Both are queued; the second leaves while the first is called. */
    struct oribi_req *req = NULL;
    int64_t end = oribi_clock_ms() + PUMP_MS_MAX;
    while (site.worker->reactor.queue_len < 2 && oribi_clock_ms() < end)
        oribi__turn_connections(site.worker);
    req = oribi_worker_take(site.worker);
    ok(req);
    if (reset) {
        struct linger now = {.l_onoff = 1};
        (void)setsockopt(c[1]->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        client_close(&site, c[1]);
    } else {
        (void)shutdown(c[1]->fd, SHUT_WR);
    }
    count(req);
    if (!reset)
        ok_answer(&site, c[1], 200, NULL);
    settle(&site);
    ok_eq(calls, want_calls);
    ok_eq(atomic_load(&site.slot.gone_count), want_gone);
    site_close(&site);
}

static void test_a_client_that_has_gone_is_not_called_for(void)
{
    check_leaver(true, 1, 1);
    check_leaver(false, 2, 0); /* it only finished sending */
}

static void test_a_dropped_request_is_logged_as_499(void)
{
    if (!only_on_linux("poll(2) tells of a client in the queue only when it is looked at"))
        return;
    char error[ORIBI_ERROR_TEXT_CAP];
    char path[64];
    char text[4096] = "";
    struct site site;
    site_init(&site);
    (void)snprintf(path, sizeof(path), "/tmp/oribi-test-%d.log", (int)getpid());
    ok_eq(oribi_access_log_open(path, "common", NULL, &site.access_log, error), 0);
    site_open(&site, count);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/hello")));
    ok_answer(&site, c, 200, NULL);
    ok(client_send(&site, c, GET("/left")));
    struct linger now = {.l_onoff = 1};
    int64_t end = oribi_clock_ms() + PUMP_MS_MAX;
    while (site.worker->reactor.queue_len < 1 && oribi_clock_ms() < end)
        oribi__turn_connections(site.worker);
    /* An exchange that has not been called yet holds what its memory held before. */
    ((struct oribi__exchange *)site.worker->reactor.run_first->exchange)->req.client = (void *)-1;
    (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    client_close(&site, c);
    while (atomic_load(&site.slot.gone_count) == 0 && oribi_clock_ms() < end) {
        oribi__turn_connections(site.worker); /* hears of it */
        (void)oribi_worker_take(site.worker);
    }
    struct oribi_access_log *log = site.access_log;
    site_close(&site);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ok(read(fd, text, sizeof(text) - 1) > 0);
    ok(strstr(text, "\"GET /left HTTP/1.1\" 499"));
    oribi_os_close(fd);
    (void)unlink(path);
    oribi_access_log_close(log);
}

int main(void)
{
    quiet_log();
    alarm(1000);
    test_forms_of_x_request_start();
    run_everywhere(test_time_at_the_proxy_counts);
    run_everywhere(test_queue_max_and_one_more);
    run_everywhere(test_requests_that_waited_too_long);
    run_everywhere(test_a_client_that_has_gone_is_not_called_for);
    test_a_dropped_request_is_logged_as_499();
    return done_testing();
}
