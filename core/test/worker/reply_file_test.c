/* Conditions and ranges of files that the application answers with, and what it may say to be left alone. */
#include "worker/reply.h"
#include "worker/client.h"

#include <stdarg.h>
#include <sys/stat.h>

#define FIELDS(target, fields) "GET " target " HTTP/1.1\r\nHost: a\r\n" fields "\r\n"
#define GET(target)            FIELDS(target, "")
#define TAG                                                                                                            \
    {                                                                                                                  \
        "ETag", "\"v1\"", 4, 4                                                                                         \
    }
#define MODIFIED                                                                                                       \
    {                                                                                                                  \
        "Last-Modified", "Sun, 09 Sep 2001 01:46:40 GMT", 13, 29                                                       \
    }
#define PLAIN                                                                                                          \
    {                                                                                                                  \
        "Content-Type", "text/plain", 12, 10                                                                           \
    }

enum { LARGE = 4 * 1024 * 1024, HEADERS_MAX = 1100 };

static int app_fd = -1;
static int app_status;
static int64_t app_offset;
static int64_t app_len; /* -1: to the end */
static uint32_t app_count;
static struct oribi_header app_headers[HEADERS_MAX];

static void say(const struct oribi_header *headers, uint32_t count)
{
    app_status = 200;
    app_offset = 0;
    app_len = -1;
    app_count = count;
    memcpy(app_headers, headers, count * sizeof(*headers));
}

#define SAY(...)                                                                                                       \
    say((const struct oribi_header[]){__VA_ARGS__},                                                                    \
        sizeof((const struct oribi_header[]){__VA_ARGS__}) / sizeof(struct oribi_header))

static void app(struct oribi_req *req)
{
    int result = app_len < 0 ? oribi_reply_rest_of_file(req, app_status, app_headers, app_count, app_fd, app_offset)
                             : oribi_reply_file(req, app_status, app_headers, app_count, app_fd, app_offset, app_len);
    if (result == ORIBI_EAPP)
        oribi_reply_error(req, 500);
}

static void make_file(const char *text, size_t n, bool settled)
{
    char name[] = "/tmp/oribi-reply-XXXXXX";
    struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    app_fd = mkstemp(name);
    if (app_fd < 0 || unlink(name) < 0 || write(app_fd, text, n) != (ssize_t)n ||
        (settled && futimens(app_fd, old) < 0))
        fail("make_file");
}

static struct client *open_site(struct site *site)
{
    site_init(site);
    site_open(site, app);
    return client_open(site);
}

static struct answer asked(struct site *site, struct client *c, const char *request, int status, const char *body)
{
    ok(client_send(site, c, request));
    return ok_answer(site, c, status, body);
}

static void done(struct site *site)
{
    site_close(site);
    oribi_os_close(app_fd);
    app_fd = -1;
}

static void test_one_range(void)
{
    struct site site;
    make_file("0123456789", 10, true);
    SAY(PLAIN);
    struct client *c = open_site(&site);
    struct answer answer = asked(&site, c, FIELDS("/", "Range: bytes=2-4\r\n"), 206, "234");
    ok(has_line(&answer, "Content-Range: bytes 2-4/10"));
    ok(has_line(&answer, "Content-Length: 3"));
    ok(has_line(&answer, "Content-Type: text/plain"));
    ok(has_line(&answer, "Accept-Ranges: bytes"));
    (void)asked(&site, c, FIELDS("/", "Range: bytes=-1\r\n"), 206, "9");
    (void)asked(&site, c, FIELDS("/", "Range: bytes=4-2\r\n"), 200, "0123456789");
    (void)asked(&site, c, FIELDS("/", "Range: lines=1-2\r\n"), 200, "0123456789");
    answer = asked(&site, c, GET("/"), 200, "0123456789");
    ok(has_line(&answer, "Accept-Ranges: bytes"));
    ok(client_send(&site, c, "HEAD / HTTP/1.1\r\nHost: a\r\nRange: bytes=2-4\r\n\r\n"));
    ok(next_answer_to(&site, c, true, &answer) && answer.status == 200 && answer.content_length == 10);
    (void)asked(&site, c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nRange: bytes=2-4\r\n\r\n", 200,
                "0123456789");
    (void)asked(&site, c, "GET / HTTP/1.0\r\nConnection: keep-alive\r\nRange: bytes=8-\r\n\r\n", 206, "89");
    ok_eq(site.calls, 8);
    done(&site);
}

/* Headers that let the file be cached go, headers for the client stay. */
static void test_a_range_that_is_not_there(void)
{
    struct site site;
    make_file("0123456789", 10, true);
    SAY(PLAIN, TAG, MODIFIED, {"Cache-Control", "public", 13, 6}, {"Expires", "0", 7, 1},
        {"Content-Disposition", "attachment", 19, 10}, {"Set-Cookie", "a=b", 10, 3}, {"Content-Length", "10", 14, 2});
    struct client *c = open_site(&site);
    struct answer answer = asked(&site, c, FIELDS("/", "Range: bytes=10-\r\n"), 416, "");
    ok(has_line(&answer, "Content-Range: bytes */10"));
    ok(has_line(&answer, "Content-Length: 0"));
    ok(has_line(&answer, "Set-Cookie: a=b"));
    ok(!has_line(&answer, "Cache-Control: public"));
    ok(!has_line(&answer, "Expires: 0"));
    ok(!has_line(&answer, "ETag: \"v1\""));
    ok(!has_line(&answer, "Content-Type: text/plain"));
    ok(!has_line(&answer, "Content-Disposition: attachment"));
    (void)asked(&site, c, FIELDS("/", "Range: bytes=9-\r\n"), 206, "9");
    done(&site);
}

/* Splits at the boundary that the head names. */
static void ok_parts(const struct answer *answer, const char *const *want, size_t count)
{
    const char *boundary = memmem(answer->head, answer->head_len, "boundary=", 9);
    ok(boundary != NULL);
    char mark[40];
    (void)snprintf(mark, sizeof(mark), "\r\n--%.32s", boundary ? boundary + 9 : "");
    const char *p = answer->body;
    const char *end = answer->body + answer->body_len;
    ok(strncmp(p, mark + 2, strlen(mark) - 2) == 0);
    for (size_t i = 0; i < count; i++) {
        const char *next = memmem(p + 1, (size_t)(end - p - 1), mark, strlen(mark));
        size_t n = strlen(want[i]);
        ok_named(next && (size_t)(next - p) >= n && memcmp(next - n, want[i], n) == 0, "part %zu", i);
        p = next ? next : p;
    }
    ok(end - p == (ssize_t)strlen(mark) + 4 && memcmp(end - 4, "--\r\n", 4) == 0);
}

static void test_several_ranges(void)
{
    struct site site;
    make_file("0123456789", 10, true);
    SAY(PLAIN, {"Content-Length", "10", 14, 2});
    struct client *c = open_site(&site);
    struct answer answer = {0};
    ok(client_send(&site, c, FIELDS("/", "Range: bytes=6-7, 0-0,-1\r\n")));
    ok(next_answer(&site, c, &answer) && answer.status == 206);
    ok(!has_line(&answer, "Content-Type: text/plain"));
    ok(!memmem(answer.head, answer.head_len, "Content-Range", 13));
    ok_parts(&answer,
             (const char *const[]){"Content-Type: text/plain\r\nContent-Range: bytes 6-7/10\r\n\r\n67",
                                   "bytes 0-0/10\r\n\r\n0", "bytes 9-9/10\r\n\r\n9"},
             3);
    (void)asked(&site, c, GET("/"), 200, "0123456789");
    done(&site);
}

/* Of a type that is longer than parts repeat, the parts have none. */
static void test_the_longest_type_of_parts_and_one_byte_more(void)
{
    static char type[ORIBI__PART_TYPE_BYTES_MAX + 1];
    struct oribi_ranges ranges;
    struct oribi__byteranges body;
    memset(type, 't', sizeof(type));
    ok_eq(oribi_ranges_read(ORIBI_SLICE("bytes=0-0,2-2"), 10, &ranges), ORIBI_RANGES_PART);
    for (size_t more = 0; more < 2; more++) {
        struct oribi_slice given = oribi_slice(type, ORIBI__PART_TYPE_BYTES_MAX + more);
        ok(oribi__byteranges_make(&body, &ranges, given, 0, 10));
        const struct iovec *text = &body.pieces[0].text;
        ok_eq(memmem(text->iov_base, text->iov_len, "Content-Type", 12) != NULL, more == 0);
        int64_t len = 2; /* of the ranges */
        for (size_t i = 0; i < body.count; i++)
            len += (int64_t)body.pieces[i].text.iov_len;
        ok_eq(len, body.len);
    }
}

static void test_many_large_ranges_to_a_slow_client(void)
{
    struct site site;
    char *text = big_text(LARGE);
    make_file(text, LARGE, true);
    SAY(PLAIN);
    struct client *c = open_site(&site);
    client_hold_little(c);
    c->slice = 60000;
    struct answer answer = {0};
    ok(client_send(&site, c,
                   FIELDS("/", "Range: bytes=3000000-3900000,1-2,10-1000000,2000000-2500000\r\n") GET("/") GET("/")));
    ok(next_answer(&site, c, &answer) && answer.status == 206);
    const char *p = memmem(answer.body, answer.body_len, "\r\n\r\n", 4);
    ok(p && memcmp(p + 4, text + 3000000, 900001) == 0);
    p = memmem(p + 900005, 1000, "\r\n\r\n", 4);
    ok(p && memcmp(p + 4, text + 1, 2) == 0);
    p = memmem(p + 6, 1000, "\r\n\r\n", 4);
    ok(p && memcmp(p + 4, text + 10, 999991) == 0);
    p = memmem(p + 999995, 1000, "\r\n\r\n", 4);
    ok(p && memcmp(p + 4, text + 2000000, 500001) == 0);
    ok(next_answer(&site, c, &answer) && answer.body_len == LARGE && memcmp(answer.body, text, LARGE) == 0);
    ok(next_answer(&site, c, &answer) && answer.body_len == LARGE);
    free(text);
    done(&site);
}

static void test_the_validators_of_the_application(void)
{
    struct site site;
    make_file("0123456789", 10, false);
    SAY(PLAIN, TAG, MODIFIED, {"Cache-Control", "private", 13, 7}, {"Content-Length", "10", 14, 2});
    struct client *c = open_site(&site);
    struct answer answer = asked(&site, c, FIELDS("/", "If-None-Match: \"v1\"\r\n"), 304, NULL);
    ok(has_line(&answer, "ETag: \"v1\""));
    ok(has_line(&answer, "Cache-Control: private"));
    ok(!has_line(&answer, "Content-Type: text/plain"));
    ok(!has_line(&answer, "Content-Length: 10"));
    (void)asked(&site, c, FIELDS("/", "If-None-Match: \"v2\"\r\n"), 200, "0123456789");
    (void)asked(&site, c, FIELDS("/", "If-Modified-Since: Sun, 09 Sep 2001 01:46:40 GMT\r\n"), 304, NULL);
    answer = asked(&site, c, FIELDS("/", "If-Match: \"v2\"\r\n"), 412, "");
    ok(!has_line(&answer, "Cache-Control: private"));
    (void)asked(&site, c, FIELDS("/", "If-Unmodified-Since: Sun, 09 Sep 2001 01:46:39 GMT\r\n"), 412, "");
    (void)asked(&site, c, FIELDS("/", "If-Range: \"v1\"\r\nRange: bytes=0-0\r\n"), 206, "0");
    (void)asked(&site, c, FIELDS("/", "If-Range: \"v2\"\r\nRange: bytes=0-0\r\n"), 200, "0123456789");
    (void)asked(&site, c, FIELDS("/", "If-Range: Sun, 09 Sep 2001 01:46:40 GMT\r\nRange: bytes=0-0\r\n"), 206, "0");
    done(&site);
}

/* The worker does not know whom the file is for, so it makes up no validator that a client could come back with. */
static void test_no_validator_is_made_up(void)
{
    struct site site;
    make_file("0123456789", 10, true);
    SAY(PLAIN);
    struct client *c = open_site(&site);
    struct answer answer = asked(&site, c, GET("/"), 200, "0123456789");
    ok(!memmem(answer.head, answer.head_len, "ETag", 4));
    ok(!memmem(answer.head, answer.head_len, "Last-Modified", 13));
    (void)asked(&site, c, FIELDS("/", "If-Modified-Since: Sun, 09 Sep 2030 01:46:40 GMT\r\n"), 200, "0123456789");
    (void)asked(&site, c, FIELDS("/", "If-Range: \"v1\"\r\nRange: bytes=0-0\r\n"), 200, "0123456789");
    done(&site);
}

/* A file that was written for this answer is not the one that the client has the first bytes of. */
static void test_a_new_file_is_sent_whole(void)
{
    struct site site;
    make_file("0123456789", 10, false);
    SAY(PLAIN);
    struct client *c = open_site(&site);
    struct answer answer = asked(&site, c, FIELDS("/", "Range: bytes=2-4\r\n"), 200, "0123456789");
    ok(!has_line(&answer, "Accept-Ranges: bytes"));
    SAY(PLAIN, MODIFIED);
    (void)asked(&site, c, FIELDS("/", "Range: bytes=2-4\r\n"), 206, "234");
    done(&site);
}

/* Each of these is the application's own decision. */
static void test_what_the_application_decides(void)
{
    static const struct oribi_header said[] = {
        {"Accept-Ranges", "none", 13, 4},
        {"accept-ranges", "bytes", 13, 5},
        {"Content-Range", "bytes 0-9/20", 13, 12},
        {"Content-Encoding", "gzip", 16, 4},
    };
    struct site site;
    make_file("0123456789", 10, true);
    SAY(PLAIN);
    struct client *c = open_site(&site);
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        SAY(said[i], TAG);
        (void)asked(&site, c, FIELDS("/", "Range: bytes=2-4\r\n"), 200, "0123456789");
        (void)asked(&site, c, FIELDS("/", "If-None-Match: \"v1\"\r\n"), i == 3 ? 200 : 304, NULL);
    }
    SAY(TAG);
    for (int status = 201; status < 404; status += 101) {
        app_status = status;
        (void)asked(&site, c, FIELDS("/", "If-None-Match: *\r\nRange: bytes=2-4\r\n"), status, "0123456789");
    }
    SAY(TAG, {"Content-Length", "5", 14, 1});
    (void)asked(&site, c, FIELDS("/", "Range: bytes=2-4\r\n"), 200, "01234");
    done(&site);
}

static void test_a_handle_that_was_read_a_little(void)
{
    struct site site;
    make_file("0123456789", 10, true);
    SAY(PLAIN);
    app_offset = 4;
    struct client *c = open_site(&site);
    struct answer answer = asked(&site, c, FIELDS("/", "Range: bytes=2-3\r\n"), 206, "67");
    ok(has_line(&answer, "Content-Range: bytes 2-3/6"));
    (void)asked(&site, c, FIELDS("/", "Range: bytes=6-\r\n"), 416, "");
    app_len = 4;
    (void)asked(&site, c, FIELDS("/", "Range: bytes=2-9\r\n"), 206, "67");
    app_len = 0;
    (void)asked(&site, c, FIELDS("/", "Range: bytes=-5\r\n"), 200, "");
    done(&site);
}

/* As many headers as the writer of heads takes, and one more. */
static void test_many_headers(void)
{
    struct site site;
    make_file("0123456789", 10, true);
    SAY(PLAIN);
    struct client *c = open_site(&site);
    for (uint32_t i = 0; i < HEADERS_MAX; i++)
        app_headers[i] = (struct oribi_header){"X-A", "b", 3, 1};
    for (uint32_t i = 40; i < 50; i++) {
        app_count = i;
        (void)asked(&site, c, FIELDS("/", "Range: bytes=2-4\r\n"), 206, "234");
    }
    app_count = ORIBI_RESPONSE_FIELDS_MAX - 10;
    (void)asked(&site, c, FIELDS("/", "Range: bytes=2-4\r\n"), 206, "234");
    app_count = ORIBI_RESPONSE_FIELDS_MAX + 1;
    (void)asked(&site, c, FIELDS("/", "Range: bytes=2-4\r\n"), 500, NULL);
    done(&site);
}

/* Never an answer that looks whole. */
static void test_a_file_that_is_cut_while_it_is_sent(void)
{
    enum { SIZE = 40000000, LEFT = 20000000 }; /* more than the kernel holds for a client, each time */
    static const char *const requests[] = {GET("/"), FIELDS("/", "Range: bytes=1-39999998\r\n"),
                                           FIELDS("/", "Range: bytes=1-2,100-39999998\r\n")};
    for (int i = 0; i < 3; i++) {
        struct site site;
        make_file("", 0, true);
        ok_eq(ftruncate(app_fd, SIZE), 0);
        SAY(PLAIN, MODIFIED);
        struct client *c = open_site(&site);
        client_hold_little(c);
        c->slice = 1000;
        ok(client_send(&site, c, requests[i]));
        ok(pump_until(&site, c->got_len > 2000));
        ok_eq(ftruncate(app_fd, LEFT), 0);
        c->slice = 0;
        ok(pump_until(&site, c->eof || c->error));
        ok_named(c->got_len < LEFT + 1000, "%zu bytes came, then the end", c->got_len);
        done(&site);
    }
}

static void run_all(void)
{
    test_one_range();
    test_a_range_that_is_not_there();
    test_several_ranges();
    test_the_longest_type_of_parts_and_one_byte_more();
    test_many_large_ranges_to_a_slow_client();
    test_the_validators_of_the_application();
    test_no_validator_is_made_up();
    test_a_new_file_is_sent_whole();
    test_what_the_application_decides();
    test_a_handle_that_was_read_a_little();
    test_many_headers();
    test_a_file_that_is_cut_while_it_is_sent();
}

int main(void)
{
    run_everywhere(run_all);
    return done_testing();
}
