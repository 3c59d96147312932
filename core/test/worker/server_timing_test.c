/* Server-Timing of whole answers: where it is wanted, and beside a field of the application's own. */
#include "worker/reply.c"

#include "worker/client.h"

#define GET(target) "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"

static void timed(struct oribi_req *req)
{
    static const struct oribi_header own = {"Server-Timing", "db;dur=1", 13, 8};
    struct iovec vec = {(char *)"text", 4};
    (void)poll(NULL, 0, 5);
    if (path_is(req, "/stream")) {
        (void)oribi_reply_begin(req, 200, &own, 1, -1);
        (void)poll(NULL, 0, 100); /* not told: the head is made */
        (void)oribi_reply_write(req, &vec, 1);
        (void)oribi_reply_end(req);
    } else if (path_is(req, "/error")) {
        oribi_reply_error(req, 500);
    } else {
        (void)oribi_reply(req, 200, &own, 1, &vec, 1);
    }
}

/* The time in ms that stands behind `name` in the server's own line, -1: it does not. */
static double timing_of(const struct answer *answer, const char *name)
{
    char start[64];
    char *line = memmem(answer->head, answer->head_len, "Server-Timing: queue;dur=", 25);
    snprintf(start, sizeof(start), "%s;dur=", name);
    const char *value =
        line ? memmem(line, answer->head_len - (size_t)(line - answer->head), start, strlen(start)) : NULL;
    return value ? strtod(value + strlen(start), NULL) : -1;
}

static void check_timing(const char *request, const char *name, const char *other, bool own)
{
    struct site site;
    struct answer answer = {0};
    site_init(&site);
    site.options.server_timing = true;
    site_open(&site, timed);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, request));
    ok(next_answer(&site, c, &answer));
    ok(timing_of(&answer, "queue") >= 0);
    ok_named(timing_of(&answer, name) >= 5, "%s of %s: %f", name, request, timing_of(&answer, name));
    ok(timing_of(&answer, other) < 0);
    ok_eq(has_line(&answer, "Server-Timing: db;dur=1"), own);
    site_close(&site);
}

static void test_timing_where_it_is_wanted(void)
{
    struct site site;
    struct answer answer = {0};
    check_timing(GET("/"), "call", "ttfb", true);
    check_timing(GET("/error"), "call", "ttfb", false);
    check_timing(GET("/stream"), "ttfb", "call", true);
    site_init(&site);
    site_open(&site, timed);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/")) && next_answer(&site, c, &answer));
    ok(timing_of(&answer, "queue") < 0 && has_line(&answer, "Server-Timing: db;dur=1"));
    site_close(&site);
}

int main(void)
{
    test_timing_where_it_is_wanted();
    return done_testing();
}
