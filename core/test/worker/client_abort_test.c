/* Clients that leave while their call runs, as the core sees them, over TCP and unix sockets; e2e/gone_test.rb has the
 * helper and the runtimes. */
#include "worker/client_abort.c"

#include "worker/talk.h"

#include <netinet/in.h>

enum what { STAYS, FINISHES, CLOSES, RESETS };

static struct site *app_site;
static enum what client_does;
static bool before;
static bool after;

static void leave(struct client *c)
{
    struct linger now = {.l_onoff = 1};
    if (client_does == FINISHES)
        (void)shutdown(c->fd, SHUT_WR);
    if (client_does == RESETS)
        (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    if (client_does == CLOSES || client_does == RESETS)
        client_close(app_site, c);
}

static void ask_before_and_after(struct oribi_req *req)
{
    if (app_site->calls > 1) { /* it waited behind the one that is looked at */
        reply_text(req, 200, "second");
        return;
    }
    before = oribi_req_gone(req);
    for (uint32_t i = 0; i < app_site->client_count; i++)
        if (app_site->clients[i])
            leave(app_site->clients[i]);
    after = oribi_req_gone(req);
    reply_text(req, 200, "answer");
}

static void check(const char *gone_on, const char *trusted, enum what what, const char *request, bool gone)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct site site;
    site_init(&site);
    ok_eq(oribi_options_set(&site.options, "gone_on", gone_on, error), 0);
    if (*trusted)
        ok_eq(oribi_options_set(&site.options, "trusted_proxies", trusted, error), 0);
    site_open(&site, ask_before_and_after);
    app_site = &site;
    client_does = what;
    struct client *c = client_open(&site);
    ok(client_send(&site, c, request));
    ok(pump_until(&site, site.calls > 0));
    ok_named(!before && after == gone, "%s: gone_on %s, trusted \"%s\", does %d, %.40s: %d, then %d", where_name,
             gone_on, trusted, what, request, before, after);
    if (what == STAYS || what == FINISHES)
        ok_answer(&site, c, 200, "answer");
    site_close(&site);
}

#define KEEPS     "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define CLOSING   "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
#define OLD       "GET / HTTP/1.0\r\n\r\n"
#define FORWARDED "GET / HTTP/1.0\r\nX-Forwarded-For: 10.0.0.1\r\nConnection: close\r\n\r\n"

static void test_what_counts_as_gone(void)
{
    static const char *const modes[] = {"auto", "fin", "reset"};
    for (size_t i = 0; i < 3; i++) {
        bool fin = i == 1;
        bool likely = i != 2 && !over_unix;
        check(modes[i], "", STAYS, KEEPS, false);
        check(modes[i], "", RESETS, KEEPS, true);
        check(modes[i], "", RESETS, OLD, true);
        check(modes[i], "", CLOSES, KEEPS, over_unix || likely);
        check(modes[i], "", CLOSES, OLD, over_unix || fin);
        check(modes[i], "", FINISHES, OLD, fin);
        check(modes[i], "", FINISHES, CLOSING, fin);
        check(modes[i], "", FINISHES, KEEPS, fin || likely);
        check(modes[i], "127.0.0.1,unix", FINISHES, OLD, fin || likely);
        check(modes[i], "10.0.0.1", FINISHES, OLD, fin);
        check(modes[i], "", FINISHES, FORWARDED, fin || likely);
        check(modes[i], "", FINISHES, KEEPS KEEPS, false);
    }
}

static void cancel(struct oribi_req *req)
{
    bool streams = path_is(req, "/stream");
    struct iovec vec = {(char *)"begun", 5};
    if (path_is(req, "/held") || streams)
        (void)oribi_reply_begin(req, 200, &text_type, 1, -1);
    if (streams)
        (void)oribi_reply_write(req, &vec, 1);
    oribi_reply_gone(req);
}

static void check_end(const char *request, const char *got)
{
    struct site site;
    site_init(&site);
    site_open(&site, cancel);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, request));
    ok(pump_until(&site, c->eof || c->error));
    ok_named(*got ? memmem(c->got, c->got_len, got, strlen(got)) != NULL : c->got_len == 0, "%s: %s", where_name, got);
    ok_eq(atomic_load(&site.slot.status_class[0]), 1);
    ok_eq(atomic_load(&site.slot.request_count), 1);
    site_close(&site);
}

static void test_a_cancelled_call_answers_nothing(void)
{
    check_end(GET("/"), "");
    check_end(GET("/held"), "");
    check_end(GET("/stream"), "begun");
}

/* A decision of the helper's about a call counts for that call, and once. */
static void take(struct oribi_req *req)
{
    struct oribi_thread *thread = oribi__exchange_of(req)->thread;
    ok(!oribi_thread_take_gone(thread));
    atomic_store(&thread->gone_us, started_us(thread) - 1); /* of the call before */
    ok(!oribi__client_abort_is_due(thread));
    ok(!oribi_thread_take_gone(thread));
    atomic_store(&thread->gone_us, started_us(thread));
    ok(oribi__client_abort_is_due(thread));
    ok(oribi_thread_take_gone(thread));
    ok(!oribi__client_abort_is_due(thread));
    ok(!oribi_thread_take_gone(thread));
    if (path_is(req, "/own-socket")) {
        oribi_thread_never_gone(thread);
        atomic_store(&thread->gone_us, started_us(thread));
        ok(!oribi_thread_take_gone(thread));
    }
    atomic_store(&thread->gone_us, started_us(thread));
    reply_text(req, 200, "taken");
    ok(!oribi_thread_take_gone(thread));
    oribi_thread_after(thread);
    ok(!oribi_thread_take_gone(thread));
    oribi_thread_back(thread);
}

static void test_one_call_is_told_once(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, take);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/")));
    ok_answer(&site, c, 200, "taken");
    ok(client_send(&site, c, GET("/own-socket")));
    ok_answer(&site, c, 200, "taken");
    ok(client_send(&site, c, GET("/")));
    ok_answer(&site, c, 200, "taken");
    site_close(&site);
}

int main(void)
{
    quiet_log();
    alarm(1000);
    run_everywhere(test_what_counts_as_gone);
    run_everywhere(test_a_cancelled_call_answers_nothing);
    test_one_call_is_told_once();
    return done_testing();
}
