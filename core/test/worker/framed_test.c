/* Bodies that the application has framed itself: large ones, those that are not framed as they should be, and files.
 * What single bodies become is in spec/response/framed.case. */
#include "worker/framed.c"

#include "worker/client.h"

#define GET(target)      "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"
#define HEAD_OF(target)  "HEAD " target " HTTP/1.1\r\nHost: a\r\n\r\n"
#define GET_1_0(target)  "GET " target " HTTP/1.0\r\n\r\n"
#define KEEP_1_0(target) "GET " target " HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"

enum { CONTENT_BYTES = 300000, CHUNK_BYTES = 1000 };

static const struct oribi_header chunked[] = {{"Transfer-Encoding", "chunked", 17, 7}};
static char *framed_text;
static size_t framed_len;

/* big_text() in chunks of CHUNK_BYTES. */
static void make_text(void)
{
    char *text = big_text(CONTENT_BYTES);
    framed_text = malloc(CONTENT_BYTES * 2);
    for (size_t at = 0; at < CONTENT_BYTES; at += CHUNK_BYTES) {
        framed_len += (size_t)snprintf(framed_text + framed_len, 8, "%x\r\n", CHUNK_BYTES);
        memcpy(framed_text + framed_len, text + at, CHUNK_BYTES);
        memcpy(framed_text + framed_len + CHUNK_BYTES, "\r\n", 2);
        framed_len += CHUNK_BYTES + 2;
    }
    memcpy(framed_text + framed_len, "0\r\n\r\n", 5);
    framed_len += 5;
    free(text);
}

/* In vectors that are cut at any place. */
static void large(struct oribi_req *req)
{
    static struct iovec vec[2000];
    size_t step = path_is(req, "/odd") ? 777 : framed_len;
    size_t count = 0;
    for (size_t at = 0; at < framed_len; at += step)
        vec[count++] = (struct iovec){framed_text + at, framed_len - at < step ? framed_len - at : step};
    if (!path_is(req, "/stream")) {
        ok_eq(oribi_reply(req, 200, chunked, 1, vec, count), 0);
        return;
    }
    ok_eq(oribi_reply_begin(req, 200, chunked, 1, -1), 0);
    int result = oribi_reply_write(req, vec, count);
    ok(result == 0 || result == 1);
    ok_eq(oribi_reply_end(req), 0);
}

static void test_large_bodies(void)
{
    struct site site;
    struct answer answer = {0};
    site_init(&site);
    site_open(&site, large);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/whole") GET("/odd") GET("/stream") HEAD_OF("/whole") KEEP_1_0("/odd")));
    for (int i = 0; i < 3; i++) {
        ok(next_answer(&site, c, &answer));
        ok(answer.body_len == CONTENT_BYTES && is_big_text(answer.body, CONTENT_BYTES));
        ok_eq(answer.content_length, i == 2 ? -1 : CONTENT_BYTES);
        ok_eq(answer.chunked, i == 2);
    }
    ok(next_answer_to(&site, c, true, &answer) && answer.status == 200);
    ok_eq(answer.content_length, -1);
    ok(next_answer(&site, c, &answer) && answer.body_len == CONTENT_BYTES);
    ok(has_line(&answer, "Connection: keep-alive"));
    ok(client_send(&site, c, GET_1_0("/stream")));
    ok(next_answer(&site, c, &answer) && answer.body_len == CONTENT_BYTES);
    ok(!answer.chunked && answer.content_length == -1);
    ok(closed_after(&site, c));
    site_close(&site);
}

static int write_text(struct oribi_req *req, const char *text)
{
    struct iovec vec = {(char *)text, strlen(text)};
    return oribi_reply_write(req, &vec, 1);
}

static void malformed(struct oribi_req *req)
{
    struct iovec vec = {"hello", 5};
    if (path_is(req, "/whole")) {
        ok_eq(oribi_reply(req, 200, chunked, 1, &vec, 1), ORIBI_EAPP);
        ok(oribi__exchange_of(req)->phase != ORIBI_PHASE_STARTED);
        oribi_reply_error(req, 500); /* as bindings do */
        return;
    }
    ok_eq(oribi_reply_begin(req, 200, chunked, 1, -1), 0);
    if (!path_is(req, "/first"))
        ok_eq(write_text(req, "3\r\none\r\n"), 0);
    if (!path_is(req, "/short")) {
        ok_eq(write_text(req, "hello"), ORIBI_EAPP);
        ok_eq(write_text(req, "0\r\n\r\n"), ORIBI_EAPP);
    }
    if (path_is(req, "/ended") || path_is(req, "/short"))
        ok_eq(oribi_reply_end(req), 0);
    else
        oribi_reply_abort(req);
}

/* Nobody takes it for whole; where nothing has left yet, the connection goes on. */
static void test_malformed_framing(void)
{
    static const char *const cut[] = {GET("/later") GET("/never"), GET("/ended") GET("/never"),
                                      GET("/short") GET("/never")};
    struct site site;
    struct answer answer = {0};
    site_init(&site);
    site_open(&site, malformed);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/whole") GET("/first") GET("/whole")));
    for (int i = 0; i < 3; i++)
        ok_answer(&site, c, 500, "500 Internal Server Error\n");
    for (int i = 0; i < 3; i++) {
        int calls = site.calls;
        c = client_open(&site);
        ok(client_send(&site, c, cut[i]));
        ok(!next_answer(&site, c, &answer));
        ok(memmem(c->got, c->got_len, "one", 3) != NULL);
        ok(memmem(c->got, c->got_len, "0\r\n\r\n", 5) == NULL);
        ok_eq(site.calls, calls + 1);
    }
    ok(pump_until(&site, site.worker->reactor.conn_count == 1)); /* the first client's */
    site_close(&site);
}

static void framed_file(struct oribi_req *req)
{
    int result = oribi_reply_path(req, 200, chunked, 1, "/proc/self/exe");
    ok_eq(result, 1); /* to be read, and nothing has happened */
    reply_text(req, 200, "read");
}

static void test_files_are_left_to_who_reads_them(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, framed_file);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/") GET("/")));
    ok_answer(&site, c, 200, "read");
    ok_answer(&site, c, 200, "read");
    site_close(&site);
}

int main(void)
{
    quiet_log();
    make_text();
    run_everywhere(test_large_bodies);
    run_everywhere(test_malformed_framing);
    run_everywhere(test_files_are_left_to_who_reads_them);
    free(framed_text);
    return done_testing();
}
