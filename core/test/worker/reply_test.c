/* Whole answers: what goes over the wire for every framing, what the application gets wrong, and readers that take
 * their time. */
#include "worker/reply.c"

#include "worker/client.h"

#include <sys/stat.h>

#define GET(target)     "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"
#define HEAD_OF(target) "HEAD " target " HTTP/1.1\r\nHost: a\r\n\r\n"

static struct site *app_site;
static struct client *app_client;
static int app_result;
static int app_fd = -1;

/* Opens a site with one client and sends it a request. */
static struct client *ask(struct site *site, void (*app)(struct oribi_req *), const char *request)
{
    site_init(site);
    site->options.response_memory_max = 1 << 20;
    site_open(site, app);
    app_site = site;
    app_client = client_open(site);
    ok(client_send(site, app_client, request));
    return app_client;
}

/* ---- framing ---- */

static void test_no_body_for_head_204_304(void)
{
    struct site site;
    struct client *c = ask(&site, route, HEAD_OF("/hello") GET("/status/204") GET("/status/304") GET("/hello"));
    struct answer answer = {0};
    ok(next_answer_to(&site, c, true, &answer));
    ok_eq(answer.status, 200);
    ok_eq(answer.content_length, 6);
    answer = ok_answer(&site, c, 204, NULL);
    ok_eq(answer.content_length, -1);
    ok(!answer.chunked);
    ok_answer(&site, c, 304, NULL);
    ok_answer(&site, c, 200, "hello\n"); /* nothing of a body stands before it */
    site_close(&site);
}

static void length_10(struct oribi_req *req)
{
    struct oribi_header headers[] = {{"Content-Length", "10", 14, 2}};
    struct iovec body[] = {{"0123", 4}, {"", 0}, {"456789", 6}, {"abcdef", 6}};
    size_t count = path_is(req, "/longer") ? 4 : path_is(req, "/shorter") ? 1 : 3;
    app_result = oribi_reply(req, 200, headers, 1, body, count);
}

static void test_a_body_longer_than_its_length_is_cut(void)
{
    struct site site;
    struct client *c = ask(&site, length_10, GET("/longer") GET("/exact"));
    ok_answer(&site, c, 200, "0123456789");
    ok_answer(&site, c, 200, "0123456789");
    ok_eq(app_result, 0);
    site_close(&site);
}

static void test_a_body_shorter_than_its_length_ends_the_connection(void)
{
    struct site site;
    struct client *c = ask(&site, length_10, GET("/shorter") GET("/exact"));
    struct answer answer = {0};
    ok(!next_answer(&site, c, &answer));
    ok_eq(answer.content_length, 10);
    ok_eq(site.calls, 1); /* what was pipelined behind it is not served */
    ok(pump_until(&site, nothing_open(&site)));
    site_close(&site);
}

static void zero_with_a_body(struct oribi_req *req)
{
    struct oribi_header headers[] = {{"Content-Length", "0", 14, 1}};
    struct iovec body[] = {{"0123", 4}};
    app_result = oribi_reply(req, 200, headers, 1, body, 1);
}

static void test_a_length_of_zero_sends_no_body(void)
{
    struct site site;
    struct client *c = ask(&site, zero_with_a_body, GET("/") GET("/"));
    ok_answer(&site, c, 200, "");
    ok_answer(&site, c, 200, "");
    site_close(&site);
}

static void no_body_at_all(struct oribi_req *req)
{
    app_result = oribi_reply(req, 200, NULL, 0, NULL, 0);
}

static void test_an_answer_of_nothing(void)
{
    struct site site;
    struct client *c = ask(&site, no_body_at_all, GET("/") GET("/"));
    struct answer answer = ok_answer(&site, c, 200, "");
    ok_eq(answer.content_length, 0);
    ok_answer(&site, c, 200, "");
    site_close(&site);
}

static void says_close(struct oribi_req *req)
{
    struct oribi_header headers[] = {{"Connection", "close", 10, 5}};
    struct iovec body[] = {{"bye", 3}};
    if (path_is(req, "/after")) {
        oribi_req_close_after(req);
        headers[0] = text_type;
    }
    app_result = oribi_reply(req, 200, headers, 1, body, 1);
}

static void decoding(struct oribi_req *req)
{
    char path[64];
    ssize_t n = oribi_req_decode_path(req, path);
    if (n < 0)
        return;
    struct iovec body = {path, (size_t)n};
    (void)oribi_reply(req, 200, &text_type, 1, &body, 1);
}

static void test_a_path_is_decoded_or_refused_by_the_core(void)
{
    static const char *const bad[] = {"/%", "/%4", "/%zz", "/a%2", "/%%41"};
    struct site site;
    site_init(&site);
    site_open(&site, decoding);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, "GET /%41%2f+b?c=%zz HTTP/1.1\r\nHost: a\r\n\r\n"));
    ok_answer(&site, c, 200, "/A/+b");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char request[128];
        struct answer answer = {0};
        (void)snprintf(request, sizeof(request),
                       "GET %s HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n", bad[i]);
        c = client_open(&site);
        ok(client_send(&site, c, request) && next_answer(&site, c, &answer) && answer.status == 400);
        ok(!next_answer(&site, c, &answer)); /* nothing behind it is answered */
    }
    site_close(&site);
}

static void test_the_application_may_close(void)
{
    struct site site;
    struct client *c = ask(&site, says_close, GET("/header") GET("/never"));
    ok(ok_answer(&site, c, 200, "bye").closes);
    ok(closed_after(&site, c));
    c = client_open(&site);
    ok(client_send(&site, c, GET("/after") GET("/never")));
    ok(ok_answer(&site, c, 200, "bye").closes);
    ok(closed_after(&site, c));
    ok_eq(site.calls, 2);
    site_close(&site);
}

/* ---- what is not valid ---- */

static void not_valid(struct oribi_req *req)
{
    struct oribi_header headers[] = {{"X-Bad", "a\r\nSet-Cookie: x", 5, 16}};
    struct iovec body[] = {{"never", 5}};
    if (path_is(req, "/status"))
        app_result = oribi_reply(req, 99, NULL, 0, body, 1);
    else if (path_is(req, "/file"))
        app_result = oribi_reply_file(req, 200, headers, 1, 0, 0, 5);
    else if (path_is(req, "/begin"))
        app_result = oribi_reply_begin(req, 200, headers, 1, -1);
    else
        app_result = oribi_reply(req, 200, headers, 1, body, 1);
    if (app_result == ORIBI_EAPP) {
        ok(oribi__exchange_of(req)->phase != ORIBI_PHASE_STARTED);
        oribi_reply_error(req, 500); /* still open */
    }
}

static void test_what_is_not_valid_is_not_sent(void)
{
    struct site site;
    struct client *c = ask(&site, not_valid, GET("/value") GET("/status") GET("/file") GET("/begin"));
    for (int i = 0; i < 4; i++) {
        ok_answer(&site, c, 500, "500 Internal Server Error\n");
        ok_eq(app_result, ORIBI_EAPP);
    }
    ok(memmem(c->got, c->got_len, "Set-Cookie", 10) == NULL);
    ok_eq(atomic_load(&site.slot.status_class[5]), 4);
    site_close(&site);
}

static void huge_head(struct oribi_req *req)
{
    long n = path_number(req, "/");
    char *value = malloc((size_t)n);
    memset(value, 'v', (size_t)n);
    struct oribi_header headers[] = {{"X-Long", value, 6, (uint32_t)n}};
    struct iovec body[] = {{"body", 4}};
    app_result = oribi_reply(req, 200, headers, 1, body, 1);
    free(value);
    if (app_result == ORIBI_EAPP)
        oribi_reply_error(req, 500);
}

static void test_a_head_longer_than_the_scratch_buffer(void)
{
    struct site site;
    struct client *c = ask(&site, huge_head, GET("/100000") GET("/300000") GET("/10"));
    struct answer answer = ok_answer(&site, c, 200, "body");
    ok(answer.head_len > 100000);
    ok_answer(&site, c, 500, NULL);
    ok_eq(app_result == ORIBI_EAPP || app_result == 0, 1);
    ok_answer(&site, c, 200, "body");
    site_close(&site);
}

/* ---- size ---- */

static void many_vectors(struct oribi_req *req)
{
    size_t count = (size_t)path_number(req, "/");
    char *text = big_text(count * 3);
    struct iovec *body = calloc(count * 2, sizeof(*body));
    for (size_t i = 0; i < count; i++)
        body[2 * i] = (struct iovec){text + 3 * i, 3}; /* every other one is empty */
    app_result = oribi_reply(req, 200, &text_type, 1, body, count * 2);
    memset(text, '!', count * 3);
    free(text);
    free(body);
}

static void test_thousands_of_vectors(void)
{
    static const char *const requests[] = {GET("/127"), GET("/128"),  GET("/129"),  GET("/512"),
                                           GET("/513"), GET("/5000"), GET("/20000")};
    static const size_t counts[] = {127, 128, 129, 512, 513, 5000, 20000};
    struct site site;
    struct client *c = ask(&site, many_vectors, "");
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct answer answer = {0};
        ok(client_send(&site, c, requests[i]));
        ok_named(next_answer(&site, c, &answer) && answer.body_len == 3 * counts[i] &&
                     is_big_text(answer.body, answer.body_len),
                 "%s: %zu vectors", where_name, 2 * counts[i]);
    }
    site_close(&site);
}

/* Some pieces are copied together and some are not, and all of them are more than there is room for copies. */
static void mixed_vectors(struct oribi_req *req)
{
    static const size_t sizes[] = {1, 511, 512, 513, 0, 3, 4000, 512, 512, 2};
    enum { ROUNDS = 60, KINDS = sizeof(sizes) / sizeof(sizes[0]) };
    struct iovec body[ROUNDS * KINDS];
    size_t len = (size_t)path_number(req, "/");
    size_t at = 0;
    char *text = big_text(len);
    for (size_t i = 0; i < ROUNDS * KINDS; i++) {
        size_t n = at + sizes[i % KINDS] <= len ? sizes[i % KINDS] : len - at;
        body[i] = (struct iovec){text + at, n};
        at += n;
    }
    ok_eq(at, len);
    app_result = oribi_reply(req, 200, &text_type, 1, body, ROUNDS * KINDS);
    memset(text, '!', len);
    free(text);
}

static void test_vectors_of_small_and_large_pieces(void)
{
    static const char *const requests[] = {GET("/0"),    GET("/1"),    GET("/512"),   GET("/513"),
                                           GET("/1024"), GET("/6567"), GET("/70000"), GET("/393960")};
    static const size_t lens[] = {0, 1, 512, 513, 1024, 6567, 70000, 393960};
    struct site site;
    struct client *c = ask(&site, mixed_vectors, "");
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        struct answer answer = {0};
        ok(client_send(&site, c, requests[i]));
        ok_named(next_answer(&site, c, &answer) && answer.body_len == lens[i] && is_big_text(answer.body, lens[i]),
                 "%s: %zu bytes", where_name, lens[i]);
    }
    site_close(&site);
}

/* None of them is copied, and with the head before them they are as many as are given to the kernel at once, or one
 * more. */
static void large_vectors(struct oribi_req *req)
{
    enum { BYTES = 600 };
    bool streams = path_number(req, "/stream/") > 0;
    size_t count = (size_t)path_number(req, streams ? "/stream/" : "/whole/");
    char *text = big_text(count * BYTES);
    struct iovec *body = calloc(count, sizeof(*body));
    for (size_t i = 0; i < count; i++)
        body[i] = (struct iovec){text + i * BYTES, BYTES};
    if (!streams) {
        app_result = oribi_reply(req, 200, &text_type, 1, body, count);
    } else {
        app_result = oribi_reply_begin(req, 200, &text_type, 1, -1);
        ok(oribi_reply_write(req, body, count) >= 0);
        ok_eq(oribi_reply_end(req), 0);
    }
    memset(text, '!', count * BYTES);
    free(text);
    free(body);
}

static void test_as_many_large_pieces_as_go_at_once(void)
{
    static const char *const requests[] = {GET("/whole/254"),  GET("/whole/255"),  GET("/whole/256"),
                                           GET("/stream/253"), GET("/stream/254"), GET("/stream/255"),
                                           GET("/stream/513")};
    static const size_t counts[] = {254, 255, 256, 253, 254, 255, 513};
    struct site site;
    struct client *c = ask(&site, large_vectors, "");
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct answer answer = {0};
        ok(client_send(&site, c, requests[i]));
        ok_named(next_answer(&site, c, &answer) && answer.body_len == 600 * counts[i] &&
                     is_big_text(answer.body, answer.body_len),
                 "%s: %zu large pieces", where_name, counts[i]);
    }
    site_close(&site);
}

/* The answer is larger than the socket and than the memory allowed: the rest waits in memory and in a file, the
 * application's memory is free at once (route() overwrites it), and a slow reader gets it all. */
static void test_a_slow_reader_gets_a_large_answer(void)
{
    static const int64_t memory[] = {100 << 20, 1 << 20, 0};
    for (int i = 0; i < 3; i++) {
        struct site site;
        site_init(&site);
        site.options.response_memory_max = memory[i];
        site_open(&site, route);
        struct client *c = client_open(&site);
        c->paused = true;
        ok(client_send(&site, c, GET("/big/8000000") GET("/hello")));
        ok(pump_until(&site, site.calls == 1));
        settle(&site);
        ok_eq(site.calls, 1); /* the next one waits until this is drained */
        struct oribi_conn *conn = site.worker->reactor.conns;
        ok_eq(conn->state, ORIBI_CONN_FLUSH);
        ok(pump_until(&site, !conn->exchange));                  /* what has no place in memory is stored */
        ok_eq(site.worker->reactor.exchange_pool.lent_count, 0); /* a slow reader holds nothing but its output */
        c->paused = false;
        c->slice = 50000;
        struct answer answer = {0};
        ok(next_answer(&site, c, &answer) && answer.body_len == 8000000 && is_big_text(answer.body, answer.body_len));
        ok_answer(&site, c, 200, "hello\n");
        ok_eq(atomic_load(&site.slot.bytes_out), c->got_len);
        site_close(&site);
    }
}

static void test_other_clients_are_served_while_one_reads_slowly(void)
{
    struct site site;
    struct client *c = ask(&site, route, GET("/big/8000000"));
    c->paused = true;
    ok(pump_until(&site, site.calls == 1));
    struct client *other = client_open(&site);
    for (int i = 0; i < 5; i++) {
        ok(client_send(&site, other, GET("/hello")));
        ok_answer(&site, other, 200, "hello\n");
    }
    c->paused = false;
    struct answer answer = {0};
    ok(next_answer(&site, c, &answer) && answer.body_len == 8000000);
    site_close(&site);
}

static void test_a_reader_without_progress_is_closed(void)
{
    struct site site;
    site_init(&site);
    site.options.write_timeout_ms = 30000;
    site_open(&site, route);
    struct client *c = client_open(&site);
    c->paused = true;
    ok(client_send(&site, c, GET("/big/8000000")));
    ok(pump_until(&site, site.calls == 1));
    settle(&site);
    pass_ms(29000);
    settle(&site);
    ok_eq(site.worker->reactor.conn_count, 1);
    pass_ms(1000);
    ok(pump_until(&site, nothing_open(&site)));
    ok_eq(atomic_load(&site.slot.timeouts[ORIBI_TIMEOUT_WRITE]), 1);
    site_close(&site);
}

static void test_a_reader_with_progress_is_not_closed(void)
{
    struct site site;
    site_init(&site);
    site.options.write_timeout_ms = 30000;
    site_open(&site, route);
    struct client *c = client_open(&site);
    client_hold_little(c);
    c->paused = true;
    ok(client_send(&site, c, GET("/big/16000000")));
    ok(pump_until(&site, site.calls == 1));
    settle(&site);
    struct answer answer = {0};
    size_t len;
    c->paused = false;
    c->slice = 1000000;
    for (int i = 0; i < 200 && !peek_answer(c, false, &answer, &len) && !c->eof && !c->error; i++) {
        size_t before = c->got_len;
        pass_ms(10000); /* far longer than the timeout in all */
        (void)pump_until(&site, c->got_len > before || c->eof || c->error);
        settle(&site);
    }
    ok(peek_answer(c, false, &answer, &len) && answer.body_len == 16000000);
    site_close(&site);
}

static void test_no_place_for_the_rest_ends_the_connection(void)
{
    struct site site;
    site_init(&site);
    site.options.response_memory_max = 1000;
    site_open(&site, route);
    struct client *c = client_open(&site);
    c->paused = true;
    setenv("TMPDIR", "/nonexistent/nowhere", 1);
    ok(client_send(&site, c, GET("/big/8000000")));
    ok(pump_until(&site, site.calls == 1 && nothing_open(&site)));
    unsetenv("TMPDIR");
    c->paused = false;
    struct answer answer = {0};
    ok(!next_answer(&site, c, &answer));
    ok_eq(answer.content_length, 8000000); /* so the client can tell */
    site_close(&site);
}

/* ---- files ---- */

static void make_file(size_t n)
{
    char path[] = "/tmp/oribi-test-file-XXXXXX";
    char *text = big_text(n);
    app_fd = mkstemp(path);
    ok(write(app_fd, text, n) == (ssize_t)n);
    (void)unlink(path);
    free(text);
}

static void reply_the_file(struct oribi_req *req)
{
    long offset = 0;
    struct stat file;
    (void)fstat(app_fd, &file);
    int64_t len = file.st_size;
    if (path_is(req, "/part")) {
        offset = 251 * 53; /* big_text() begins anew there */
        len = 5000;
    }
    struct oribi_header headers[] = {text_type, {"Content-Length", "20", 14, 2}};
    uint32_t count = path_is(req, "/longer") || path_is(req, "/shorter") ? 2 : 1;
    if (path_is(req, "/shorter"))
        len = 10;
    if (path_is(req, "/beyond"))
        len += 10; /* it was longer a moment ago */
    app_result = oribi_reply_file(req, 200, headers, count, app_fd, offset, len);
}

static void test_files_whole_and_in_part(void)
{
    struct site site;
    make_file(30000);
    struct client *c = ask(&site, reply_the_file, GET("/whole") GET("/part") HEAD_OF("/whole") GET("/longer"));
    struct answer answer = {0};
    ok(next_answer(&site, c, &answer) && answer.body_len == 30000 && is_big_text(answer.body, 30000));
    ok(next_answer(&site, c, &answer) && answer.body_len == 5000);
    char *want = big_text(30000);
    ok(memcmp(answer.body, want + 251 * 53, 5000) == 0);
    ok(next_answer_to(&site, c, true, &answer) && answer.content_length == 30000);
    ok(next_answer(&site, c, &answer) && answer.body_len == 20 && memcmp(answer.body, want, 20) == 0);
    free(want);
    site_close(&site);
    oribi_os_close(app_fd);
}

static const char *app_path;

static void reply_what_is_there(struct oribi_req *req)
{
    int fds[2];
    if (app_path)
        app_result = oribi_reply_path(req, 200, NULL, 0, app_path);
    else if (path_is(req, "/pipe") && pipe(fds) == 0) {
        app_result = oribi_reply_rest_of_file(req, 200, NULL, 0, fds[0], 0);
        oribi_os_close(fds[0]);
        oribi_os_close(fds[1]);
    } else
        app_result = oribi_reply_rest_of_file(req, 200, NULL, 0, app_fd, path_is(req, "/rest") ? 29990 : 40000);
    if (app_result == 1)
        oribi_reply_error(req, 500); /* it is open still */
}

static void test_the_rest_of_a_file(void)
{
    struct site site;
    make_file(30000);
    app_path = NULL;
    struct client *c = ask(&site, reply_what_is_there, GET("/rest") GET("/behind") GET("/pipe"));
    char *want = big_text(30000);
    struct answer answer = {0};
    ok(next_answer(&site, c, &answer) && answer.body_len == 10 && memcmp(answer.body, want + 29990, 10) == 0);
    ok_answer(&site, c, 200, "");
    ok_answer(&site, c, 500, NULL);
    free(want);
    site_close(&site);
    oribi_os_close(app_fd);
}

static void test_a_file_by_its_name(void)
{
    char fifo[] = "/tmp/oribi-reply-XXXXXX";
    char file[] = "/tmp/oribi-reply-XXXXXX";
    int fd = mkstemp(file);
    if (fd < 0 || write(fd, "named", 5) != 5 || !mkdtemp(fifo))
        exit(2);
    oribi_os_close(fd);
    (void)rmdir(fifo);
    if (mkfifo(fifo, 0600) < 0)
        exit(2);
    const char *const paths[] = {file, "/tmp", fifo, "/nonexistent"};
    for (int i = 0; i < 4; i++) {
        struct site site;
        app_path = paths[i];
        struct client *c = ask(&site, reply_what_is_there, GET("/"));
        ok_answer(&site, c, i == 0 ? 200 : 500, i == 0 ? "named" : NULL);
        site_close(&site);
    }
    (void)unlink(fifo);
    (void)unlink(file);
}

/* /proc says 0 bytes of files that have some, /sys says a page of files that have fewer; a file with a hole has all. */
static void test_a_file_whose_size_is_not_its_content_is_left_to_be_read(void)
{
    static const char *const paths[] = {"/proc/self/stat", "/sys/kernel/mm/transparent_hugepage/enabled"};
    char hole[] = "/tmp/oribi-reply-XXXXXX";
    struct answer answer = {0};
    int fd = mkstemp(hole);
    if (fd < 0 || ftruncate(fd, 4096) < 0)
        exit(2);
    oribi_os_close(fd);
    for (int i = 0; i < 2; i++) {
        struct site site;
        app_path = paths[i];
        if (access(app_path, R_OK) != 0)
            continue;
        struct client *c = ask(&site, reply_what_is_there, GET("/"));
        ok_answer(&site, c, 500, NULL);
        ok_eq(app_result, 1);
        site_close(&site);
    }
    struct site site;
    app_path = hole;
    struct client *c = ask(&site, reply_what_is_there, GET("/"));
    ok(next_answer(&site, c, &answer) && answer.status == 200 && answer.body_len == 4096);
    site_close(&site);
    (void)unlink(hole);
}

static void test_a_file_that_is_too_short_ends_the_connection(void)
{
    static const char *const requests[] = {GET("/shorter"), GET("/beyond")};
    make_file(30000);
    for (int i = 0; i < 2; i++) {
        struct site site;
        struct client *c = ask(&site, reply_the_file, requests[i]);
        struct answer answer = {0};
        ok(!next_answer(&site, c, &answer));
        ok(pump_until(&site, nothing_open(&site)));
        site_close(&site);
    }
    oribi_os_close(app_fd);
}

static void test_a_slow_reader_gets_a_file_that_is_closed_meanwhile(void)
{
    struct site site;
    make_file(8000000);
    site_init(&site);
    site_open(&site, reply_the_file);
    struct client *c = client_open(&site);
    c->paused = true;
    ok(client_send(&site, c, GET("/whole") GET("/whole")));
    ok(pump_until(&site, site.calls == 1));
    settle(&site);
    int kept = fcntl(app_fd, F_DUPFD_CLOEXEC, 3);
    oribi_os_close(app_fd);
    app_fd = kept;
    c->paused = false;
    c->slice = 300000;
    struct answer answer = {0};
    for (int i = 0; i < 2; i++)
        ok(next_answer(&site, c, &answer) && answer.body_len == 8000000 && is_big_text(answer.body, answer.body_len));
    site_close(&site);
    oribi_os_close(app_fd);
}

static void test_a_file_cut_while_it_is_sent_ends_the_connection(void)
{
    struct site site;
    make_file(16000000);
    site_init(&site);
    site_open(&site, reply_the_file);
    struct client *c = client_open(&site);
    c->paused = true;
    ok(client_send(&site, c, GET("/whole")));
    ok(pump_until(&site, site.calls == 1));
    settle(&site);
    ok_eq(ftruncate(app_fd, 15000000), 0);
    c->paused = false;
    struct answer answer = {0};
    ok(!next_answer(&site, c, &answer));
    ok_eq(answer.content_length, 16000000);
    ok(pump_until(&site, nothing_open(&site)));
    site_close(&site);
    oribi_os_close(app_fd);
}

/* ---- interim answers ---- */

/* A client that reads nothing: what waits for it is bounded, and its answer comes. */
static void informs_much(struct oribi_req *req)
{
    static char value[4000];
    const struct oribi_header link = {"Link", value, 4, sizeof(value)};
    const struct oribi_conn *c = oribi__exchange_of(req)->base.conn;
    memset(value, 'x', sizeof(value));
    while (oribi_conn_pending(c) <= ORIBI_INTERIM_UNSENT_BYTES_MAX)
        if (oribi_req_inform(req, 103, &link, 1) != 0)
            abort();
    int64_t full = oribi_conn_pending(c);
    for (int i = 0; i < 100; i++)
        ok_eq(oribi_req_inform(req, 103, &link, 1), 0);
    ok_eq(oribi_conn_pending(c), full);
    reply_text(req, 200, "body");
}

static void test_interim_answers_that_nobody_reads_are_left_out(void)
{
    struct site site;
    struct answer answer = {0};
    struct client *c = ask(&site, informs_much, GET("/"));
    while (next_answer(&site, c, &answer) && answer.status == 103)
        continue;
    ok_eq(answer.status, 200);
    is_bytes(answer.body, answer.body_len, "body", 4);
    site_close(&site);
}

static void informs(struct oribi_req *req)
{
    struct oribi_header link = {"Link", "</a.css>; rel=preload", 4, 21};
    struct oribi_header bad = {"Link", "a\nb", 4, 3};
    ok_eq(oribi_req_inform(req, 103, &bad, 1), req->head->minor ? ORIBI_EAPP : 0);
    ok_eq(oribi_req_inform(req, 101, &link, 1), req->head->minor ? ORIBI_EAPP : 0);
    ok_eq(oribi_req_inform(req, 103, &link, 1), 0);
    ok_eq(oribi_req_inform(req, 103, &link, 1), 0);
    ok(oribi__exchange_of(req)->phase != ORIBI_PHASE_STARTED);
    reply_text(req, 200, "final");
}

static void test_interim_answers(void)
{
    struct site site;
    struct client *c = ask(&site, informs, GET("/"));
    for (int i = 0; i < 2; i++) {
        struct answer answer = ok_answer(&site, c, 103, NULL);
        ok(has_line(&answer, "Link: </a.css>; rel=preload"));
    }
    ok_answer(&site, c, 200, "final");
    ok(client_send(&site, c, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    ok_answer(&site, c, 200, "final"); /* none for 1.0 */
    site_close(&site);
}

/* ---- the client has gone ---- */

static void after_the_client(struct oribi_req *req)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(app_client->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    client_close(app_site, app_client);
    if (path_is(req, "/inform")) {
        /* A reset is seen with the first write at the latest; the request stays open. */
        struct oribi_header link = {"Link", "x", 4, 1};
        (void)oribi_req_inform(req, 103, &link, 1);
        ok_eq(oribi_req_inform(req, 103, &link, 1), ORIBI_ECLOSED);
    }
    if (path_is(req, "/file")) {
        app_result = oribi_reply_file(req, 200, NULL, 0, app_fd, 0, 30000);
        return;
    }
    struct iovec body = {"gone", 4};
    app_result = oribi_reply(req, 200, NULL, 0, &body, 1);
}

static void test_answering_a_client_that_has_gone(void)
{
    static const char *const requests[] = {GET("/plain"), GET("/inform"), GET("/file")};
    make_file(30000);
    for (int i = 0; i < 3; i++) {
        struct site site;
        app_result = 1;
        (void)ask(&site, after_the_client, requests[i]);
        ok(pump_until(&site, site.calls == 1 && nothing_open(&site)));
        ok_eq(app_result, ORIBI_ECLOSED);
        ok_eq(oribi_worker_request_count(site.worker), 1);
        site_close(&site);
    }
    oribi_os_close(app_fd);
}

int main(void)
{
    quiet_log();
    run_everywhere(test_no_body_for_head_204_304);
    run_everywhere(test_a_body_longer_than_its_length_is_cut);
    run_everywhere(test_a_body_shorter_than_its_length_ends_the_connection);
    run_everywhere(test_a_length_of_zero_sends_no_body);
    run_everywhere(test_an_answer_of_nothing);
    run_everywhere(test_a_path_is_decoded_or_refused_by_the_core);
    run_everywhere(test_the_application_may_close);
    run_everywhere(test_what_is_not_valid_is_not_sent);
    run_everywhere(test_a_head_longer_than_the_scratch_buffer);
    run_everywhere(test_thousands_of_vectors);
    run_everywhere(test_vectors_of_small_and_large_pieces);
    run_everywhere(test_as_many_large_pieces_as_go_at_once);
    run_everywhere(test_a_slow_reader_gets_a_large_answer);
    run_everywhere(test_other_clients_are_served_while_one_reads_slowly);
    run_everywhere(test_a_reader_without_progress_is_closed);
    run_everywhere(test_a_reader_with_progress_is_not_closed);
    run_everywhere(test_no_place_for_the_rest_ends_the_connection);
    run_everywhere(test_files_whole_and_in_part);
    run_everywhere(test_the_rest_of_a_file);
    run_everywhere(test_a_file_by_its_name);
    run_everywhere(test_a_file_whose_size_is_not_its_content_is_left_to_be_read);
    run_everywhere(test_a_file_that_is_too_short_ends_the_connection);
    run_everywhere(test_a_slow_reader_gets_a_file_that_is_closed_meanwhile);
    run_everywhere(test_a_file_cut_while_it_is_sent_ends_the_connection);
    run_everywhere(test_interim_answers);
    run_everywhere(test_interim_answers_that_nobody_reads_are_left_out);
    run_everywhere(test_answering_a_client_that_has_gone);
    return done_testing();
}
