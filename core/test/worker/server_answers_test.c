/* Headers of all answers, and pages of the server's own. */
#include "worker/server_answers.c"

#include "worker/client.h"

#define GET(target) "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"

static char page_path[] = "/tmp/oribi-page-XXXXXX";
static char page_line[64];

static void app(struct oribi_req *req)
{
    static const struct oribi_header frame = {"x-frame-options", "SAMEORIGIN", 15, 10};
    struct iovec body = {"404 of the application", 22};
    if (oribi_slice_equal(req->head->path, ORIBI_SLICE("/fails")))
        oribi_reply_error(req, 500);
    else if (oribi_slice_equal(req->head->path, ORIBI_SLICE("/has")))
        (void)oribi_reply(req, 404, &frame, 1, &body, 1);
    else
        route(req);
}

static struct client *open_with(struct site *site)
{
    static char *headers[] = {"X-Frame-Options:DENY", "X-One:1"};
    static char *pages[] = {page_line};
    static char *answers[] = {"/robots.txt=200:x", "/gone=410"};
    site_init(site);
    site->options.headers = (struct oribi_text_list){headers, 2};
    site->options.error_pages = (struct oribi_text_list){pages, 1};
    site->options.answers = (struct oribi_text_list){answers, 2};
    site_open(site, app);
    return client_open(site);
}

static void close_with(struct site *site)
{
    site->options.headers = site->options.error_pages = site->options.answers = (struct oribi_text_list){0};
    site_close(site);
}

static int times(const struct answer *answer, const char *name)
{
    int count = 0;
    size_t n = strlen(name);
    for (size_t i = 0; i + n <= answer->head_len; i++)
        count += strncasecmp(answer->head + i, name, n) == 0;
    return count;
}

static struct answer asked(struct site *site, struct client *c, const char *request, int status, const char *body)
{
    ok(client_send(site, c, request));
    struct answer answer = ok_answer(site, c, status, body);
    ok_eq(times(&answer, "\nX-Frame-Options:"), 1);
    ok_eq(times(&answer, "\nX-One:"), 1);
    return answer;
}

static void test_every_answer_has_the_headers_once(void)
{
    struct site site;
    struct client *c = open_with(&site);
    struct answer answer = asked(&site, c, GET("/hello"), 200, "hello\n");
    ok(has_line(&answer, "X-Frame-Options: DENY"));
    answer = asked(&site, c, GET("/has"), 404, "404 of the application");
    ok(has_line(&answer, "x-frame-options: SAMEORIGIN"));
    (void)asked(&site, c, GET("/robots.txt"), 200, "x");
    close_with(&site);
}

static void test_pages_are_the_servers_own_answers_alone(void)
{
    struct site site;
    struct answer answer;
    struct client *c = open_with(&site);
    answer = asked(&site, c, GET("/fails"), 500, "<p>a page</p>");
    ok(has_line(&answer, "Content-Type: application/octet-stream"));
    (void)asked(&site, c, GET("/gone"), 410, "<p>a page</p>");
    ok(client_send(&site, c, "HEAD /gone HTTP/1.1\r\nHost: a\r\n\r\n"));
    ok(next_answer_to(&site, c, true, &answer));
    ok_eq(answer.content_length, 13);
    (void)asked(&site, c, GET("/has"), 404, "404 of the application");
    answer = asked(&site, c, "GET / HTTP/1.1\r\n\r\n", 400, "<p>a page</p>"); /* no Host */
    ok(answer.closes);
    ok(closed_after(&site, c));
    close_with(&site);
}

static void run_all(void)
{
    test_every_answer_has_the_headers_once();
    test_pages_are_the_servers_own_answers_alone();
}

int main(void)
{
    int fd = mkstemp(page_path);
    ok(fd >= 0 && write(fd, "<p>a page</p>", 13) == 13 && close(fd) == 0);
    (void)snprintf(page_line, sizeof(page_line), "400,404,410,500=%s", page_path);
    quiet_log();
    run_everywhere(run_all);
    ok_eq(unlink(page_path), 0);
    return done_testing();
}
