/* Fixed answers, redirects and health, answered without the application. */
#include "worker/local/local_fixed.c"

#include "worker/client.h"

#define GET(target) "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"

static char *answer_lines[] = {"/robots.txt=200:User-agent: *\nDisallow:\n", "/gone=410", "/quiet=204", "/empty=200",
                               "/page.html=503:<p>later</p>"};
static char *redirect_lines[] = {"/old=/new?a=1#part", "/was/*=308:/is/*", "/see=303:https://example.com/"};

static struct client *open_with(struct site *site)
{
    site_init(site);
    site->options.answers = (struct oribi_text_list){answer_lines, 5};
    site->options.redirects = (struct oribi_text_list){redirect_lines, 3};
    site->options.health = "/up";
    site_open(site, route);
    return client_open(site);
}

static void close_with(struct site *site)
{
    site->options.answers = site->options.redirects = (struct oribi_text_list){0};
    site->options.health = NULL;
    site_close(site);
}

static struct answer asked(struct site *site, struct client *c, const char *request, int status, const char *body)
{
    ok(client_send(site, c, request));
    return ok_answer(site, c, status, body);
}

static void test_texts(void)
{
    struct site site;
    struct client *c = open_with(&site);
    struct answer answer = asked(&site, c, GET("/robots.txt?x"), 200, "User-agent: *\nDisallow:\n");
    ok(has_line(&answer, "Content-Type: text/plain; charset=utf-8"));
    answer = asked(&site, c, GET("/page.html"), 503, "<p>later</p>");
    ok(has_line(&answer, "Content-Type: text/html; charset=utf-8"));
    (void)asked(&site, c, GET("/gone"), 410, "410 Gone\n");
    answer = asked(&site, c, GET("/quiet"), 204, "");
    ok_eq(answer.content_length, -1);
    (void)asked(&site, c, GET("/empty"), 200, "");
    (void)asked(&site, c, GET("/%72obots.txt"), 200, NULL);
    ok_eq(site.calls, 0);
    ok_eq(site.slot.uncalled_count, 6);
    (void)asked(&site, c, GET("/hello"), 200, "hello\n");
    (void)asked(&site, c, GET("/robots.txt/"), 200, NULL);
    ok_eq(site.calls, 2);
    close_with(&site);
}

static void test_redirects(void)
{
    struct site site;
    struct client *c = open_with(&site);
    struct answer answer = asked(&site, c, GET("/old?b=2"), 301, "");
    ok(has_line(&answer, "Location: /new?a=1&b=2#part"));
    answer = asked(&site, c, GET("/was/a%20b/?q"), 308, "");
    ok(has_line(&answer, "Location: /is/a%20b/?q"));
    answer = asked(&site, c, GET("/see"), 303, "");
    ok(has_line(&answer, "Location: https://example.com/"));
    answer = asked(&site, c, "GET http://a/old HTTP/1.1\r\nHost: a\r\n\r\n", 301, "");
    ok(has_line(&answer, "Location: /new?a=1#part"));
    ok_eq(site.calls, 0);
    close_with(&site);
}

static void test_a_location_that_is_too_long_is_414(void)
{
    struct site site;
    char request[2 * ORIBI_FIXED_LOCATION_MAX];
    site_init(&site);
    site.options.limits.target_bytes_max = 64 * 1024;
    site.options.redirects = (struct oribi_text_list){redirect_lines, 3};
    site_open(&site, route);
    struct client *c = client_open(&site);
    for (int more = 0; more <= 1; more++) {
        size_t n = ORIBI_FIXED_LOCATION_MAX - strlen("/new?a=1&#part") + (size_t)more;
        (void)snprintf(request, sizeof(request), "GET /old?%0*d HTTP/1.1\r\nHost: a\r\n\r\n", (int)n, 0);
        (void)asked(&site, c, request, more ? 414 : 301, NULL);
    }
    close_with(&site);
}

static void test_methods(void)
{
    struct site site;
    struct answer answer;
    struct client *c = open_with(&site);
    ok(client_send(&site, c, "HEAD /robots.txt HTTP/1.1\r\nHost: a\r\n\r\n"));
    ok(next_answer_to(&site, c, true, &answer));
    ok_eq(answer.status, 200);
    ok_eq(answer.content_length, 24);
    answer = asked(&site, c, "POST /robots.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde", 405, NULL);
    ok(has_line(&answer, "Allow: GET, HEAD"));
    (void)asked(&site, c, "DELETE /old HTTP/1.1\r\nHost: a\r\n\r\n", 405, NULL);
    (void)asked(&site, c, "POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
                405, NULL);
    answer = asked(&site, c, "POST /was/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde", 308, "");
    ok(has_line(&answer, "Location: /is/x"));
    ok_eq(site.calls, 0);
    (void)asked(&site, c, "POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde", 200, NULL);
    ok_eq(site.calls, 1);
    close_with(&site);
}

static void test_pipelined_with_calls_in_order(void)
{
    struct site site;
    struct client *c = open_with(&site);
    ok(client_send(&site, c,
                   GET("/hello") GET("/robots.txt") "POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab" GET(
                       "/up") GET("/hello") GET("/old")));
    ok_answer(&site, c, 200, "hello\n");
    ok_answer(&site, c, 200, "User-agent: *\nDisallow:\n");
    ok_answer(&site, c, 405, NULL);
    ok_answer(&site, c, 200, "ok\n");
    ok_answer(&site, c, 200, "hello\n");
    ok_answer(&site, c, 301, "");
    close_with(&site);
}

static void test_http_1_0(void)
{
    struct site site;
    struct client *c = open_with(&site);
    struct answer answer = asked(&site, c, "GET /up HTTP/1.0\r\n\r\n", 200, "ok\n");
    ok(answer.closes);
    ok(closed_after(&site, c));
    close_with(&site);
}

static void test_health_tells_of_the_servers_end_alone(void)
{
    static const struct {
        uint32_t word;
        int status;
    } words[] = {{ORIBI_STOP_NONE, 200}, {ORIBI_STOP_SOON, 503}, {ORIBI_STOP_NONE, 200}};
    struct site site;
    struct client *c = open_with(&site);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        atomic_store(&site.slot.stop_soon, words[i].word);
        struct answer answer =
            asked(&site, c, GET("/up"), words[i].status, words[i].status == 200 ? "ok\n" : "draining\n");
        ok(has_line(&answer, "Cache-Control: no-store"));
        ok(!answer.closes);
    }
    /* a reload: this worker ends, the server does not */
    struct oribi_slot slots[2] = {{.stop_soon = ORIBI_STOP_TOLD}, {0}};
    site.worker->setup.board = &(struct oribi_scoreboard){.slots = slots, .count = 2, .fd = -1};
    atomic_store(&site.slot.stop_soon, ORIBI_STOP_TOLD);
    ok(!server_ends(site.worker));
    atomic_store(&slots[1].stop_soon, ORIBI_STOP_SOON);
    ok(server_ends(site.worker));
    atomic_store(&slots[1].stop_soon, ORIBI_STOP_NONE);
    atomic_store(&site.slot.stop_soon, ORIBI_STOP_LAST);
    ok(server_ends(site.worker));
    atomic_store(&site.slot.stop_soon, ORIBI_STOP_NONE);
    site.worker->setup.board = NULL;
    ok(!server_ends(site.worker));
    close_with(&site);
}

static void test_health_as_json(void)
{
    static const struct {
        const char *accept;
        bool json;
    } cases[] = {{"application/json", true},
                 {"text/html, APPLICATION/JSON ; q=0.5", true},
                 {"application/json;q=0.0", false},
                 {"application/json-seq", false},
                 {"*/*", false}};
    struct site site;
    char request[128];
    struct client *c = open_with(&site);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)snprintf(request, sizeof(request), "GET /up HTTP/1.1\r\nHost: a\r\nAccept: %s\r\n\r\n", cases[i].accept);
        struct answer answer = asked(&site, c, request, 200, cases[i].json ? NULL : "ok\n");
        ok_eq(has_line(&answer, "Content-Type: application/json"), cases[i].json);
        if (cases[i].json)
            ok(answer.body_len > 16 && memcmp(answer.body, "{\"status\":\"ok\",\"", 16) == 0);
    }
    close_with(&site);
}

static void run_all(void)
{
    test_texts();
    test_redirects();
    test_a_location_that_is_too_long_is_414();
    test_methods();
    test_pipelined_with_calls_in_order();
    test_http_1_0();
    test_health_tells_of_the_servers_end_alone();
    test_health_as_json();
}

int main(void)
{
    quiet_log();
    run_everywhere(run_all);
    return done_testing();
}
