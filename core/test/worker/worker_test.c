/* Requests in, in every way bytes can come, over TCP and unix sockets, with epoll and with poll(2). Answers have their
 * own tests (reply_test.c, stream_test.c), and so has the worker's life (worker_life_test.c). */
#include "worker/worker.c"

#include "worker/client.h"

#define GET(target)   "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"
#define CLOSE(target) "GET " target " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

/* ---- persistence and order ---- */

static void test_kept_alive_connection_serves_one_after_another(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    struct client *c = client_open(&site);
    for (int i = 0; i < 3; i++) {
        ok(client_send(&site, c, GET("/hello")));
        struct answer answer = ok_answer(&site, c, 200, "hello\n");
        ok(!answer.closes);
    }
    ok_eq(site.worker->reactor.conn_count, 1);
    ok(client_send(&site, c, CLOSE("/hello")));
    struct answer answer = ok_answer(&site, c, 200, "hello\n");
    ok(answer.closes);
    ok(closed_after(&site, c));
    ok_eq(oribi_worker_request_count(site.worker), 4);
    site_close(&site);
}

static void test_http_1_0_closes_unless_it_asks(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    struct answer answer = ok_answer(&site, c, 200, "hello\n");
    ok(has_line(&answer, "Connection: keep-alive"));
    ok(client_send(&site, c, "GET /hello HTTP/1.0\r\n\r\n"));
    ok_answer(&site, c, 200, "hello\n");
    ok(closed_after(&site, c));
    site_close(&site);
}

static void test_a_hundred_pipelined_requests_are_answered_in_order(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    struct client *c = client_open(&site);
    char text[100 * 64] = "";
    size_t n = 0;
    for (int i = 0; i < 100; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "GET /r%d HTTP/1.1\r\nHost: a\r\n\r\n", i);
    ok(client_send_bytes(&site, c, text, n));
    bool all = true;
    for (int i = 0; i < 100; i++) {
        struct answer answer;
        char want[16];
        (void)snprintf(want, sizeof(want), "/r%d", i);
        all &= next_answer(&site, c, &answer) && answer.body_len == strlen(want) &&
               memcmp(answer.body, want, strlen(want)) == 0;
    }
    ok(all);
    site_close(&site);
}

static const struct oribi_slot *looked_at;
static uint32_t queued_in_call;

static void look_at_queue(struct oribi_req *req)
{
    queued_in_call = atomic_load(&looked_at->queue_len);
    route(req);
}

static void test_the_running_call_is_not_queued(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, look_at_queue);
    looked_at = site.worker->slot;
    queued_in_call = 100;
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/hello")));
    ok_answer(&site, c, 200, "hello\n");
    ok_eq(queued_in_call, 0);
    site_close(&site);
}

/* Request number i of a long pipeline; a body now and then, in both framings. */
static size_t write_request(char *dst, int i)
{
    char body[16];
    int n = snprintf(body, sizeof(body), "body%d", i);
    if (i % 7 == 3)
        return (size_t)snprintf(dst, 128, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", n, body);
    if (i % 7 == 5)
        return (size_t)snprintf(
            dst, 128, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", n,
            body);
    return (size_t)snprintf(dst, 128, "GET /r%d HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n\r\n", i);
}

static void test_a_megabyte_of_pipelined_requests(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    struct client *c = client_open(&site);
    enum { COUNT = 20000 };
    char *text = malloc(COUNT * 128);
    size_t n = 0;
    for (int i = 0; i < COUNT; i++)
        n += write_request(text + n, i);
    ok_named(n > 1000000, "%zu bytes", n);
    ok(client_send_bytes(&site, c, text, n));
    int good = 0;
    for (int i = 0; i < COUNT; i++) {
        struct answer answer;
        char want[16];
        (void)snprintf(want, sizeof(want), i % 7 == 3 || i % 7 == 5 ? "body%d" : "/r%d", i);
        if (!next_answer(&site, c, &answer))
            break;
        good += answer.body_len == strlen(want) && memcmp(answer.body, want, strlen(want)) == 0;
    }
    ok_eq(good, COUNT);
    free(text);
    site_close(&site);
}

static char order[64];
static void note_order(struct oribi_req *req)
{
    size_t n = strlen(order);
    if (n + 1 < sizeof(order))
        order[n] = req->head->path.p[1];
    route(req);
}

static void test_two_pipelining_connections_take_turns(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, note_order);
    memset(order, 0, sizeof(order));
    struct client *a = client_open(&site);
    struct client *b = client_open(&site);
    settle(&site);
    ok(client_send(&site, a, GET("/a") GET("/a") GET("/a") GET("/a")));
    ok(client_send(&site, b, GET("/b") GET("/b") GET("/b") GET("/b")));
    for (int i = 0; i < 4; i++) {
        ok_answer(&site, a, 200, "/a");
        ok_answer(&site, b, 200, "/b");
    }
    ok_named(strcmp(order, "abababab") == 0 || strcmp(order, "babababa") == 0, "%s: turns: %s", where_name, order);
    site_close(&site);
}

/* ---- cuts: the same bytes, however they come ---- */

struct cut_case {
    const char *name;
    const char *input;
};

static const struct cut_case cut_cases[] = {
    {"two plain requests", GET("/one") GET("/two")},
    {"an empty line between", GET("/one") "\r\n" GET("/two")},
    {"a body and a request behind it",
     "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nhello world" GET("/two")},
    {"an empty body", "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n" GET("/two")},
    {"chunks and a request behind them",
     "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nT: "
     "v\r\n\r\n" GET("/two")},
    {"no chunk at all", "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" GET("/two")},
    {"HEAD, then GET", "HEAD /one HTTP/1.1\r\nHost: a\r\n\r\n" GET("/two")},
    {"1.0 kept alive, then not", "GET /one HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /two HTTP/1.0\r\n\r\n"},
    {"a good request, then a bad one", GET("/one") "GET  /two HTTP/1.1\r\nHost: a\r\n\r\n" GET("/three")},
    {"a bad chunk", "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX" GET("/two")},
    {"CL and TE",
     "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" GET("/two")},
    {"a request after close", CLOSE("/one") GET("/two")},
    {"a status without a body",
     "GET /status/304 HTTP/1.1\r\nHost: a\r\n\r\nGET /status/204 HTTP/1.1\r\nHost: a\r\n\r\n" GET("/two")},
};

/* Everything the server said, Date blanked, interim answers left out (they depend on when the body came). */
static char *all_said(struct site *site, struct client *c, size_t *n)
{
    (void)shutdown(c->fd, SHUT_WR);
    (void)pump_until(site, c->eof || c->error);
    char *copy = malloc(c->got_len + 1);
    memcpy(copy, c->got, c->got_len);
    copy[c->got_len] = '\0';
    *n = c->got_len;
    for (char *at = copy; (at = memmem(at, *n - (size_t)(at - copy), "\r\nDate: ", 8)) != NULL; at += 8)
        memset(at + 8, 'D', 29);
    return copy;
}

static void check_cut(struct site *site, const struct cut_case *one, const char *want, size_t want_len, size_t cut,
                      bool bytewise)
{
    struct client *c = client_open(site);
    size_t len = strlen(one->input);
    size_t n = 0;
    settle(site);
    for (size_t i = 0; i < len;) {
        size_t step = bytewise ? 1 : i == 0 ? cut : len - i;
        if (!client_send_bytes(site, c, one->input + i, step))
            break; /* refused and closed: what matters is what it said */
        i += step;
        settle(site);
    }
    char *said = all_said(site, c, &n);
    if (n != want_len || memcmp(said, want, n) != 0 || c->error) {
        fail("%s: %s, cut at %zu%s%s", where_name, one->name, cut, bytewise ? " (byte by byte)" : "",
             c->error ? strerror(c->error) : "");
        is_bytes(said, n, want, want_len);
    }
    free(said);
    client_close(site, c);
}

static void test_every_cut_gives_the_same_answers(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    for (size_t i = 0; i < sizeof(cut_cases) / sizeof(cut_cases[0]); i++) {
        const struct cut_case *one = &cut_cases[i];
        struct client *c = client_open(&site);
        size_t want_len;
        ok(client_send(&site, c, one->input));
        char *want = all_said(&site, c, &want_len);
        ok_named(want_len > 0, "%s: %s: whole: %.12s", where_name, one->name, want);
        client_close(&site, c);
        check_cut(&site, one, want, want_len, 0, true);
        for (size_t cut = 1; cut < strlen(one->input); cut++)
            check_cut(&site, one, want, want_len, cut, false);
        pass("%s: %s: every cut", where_name, one->name);
        free(want);
    }
    site_close(&site);
}

/* ---- bodies ---- */

/* POST /place with n bytes of big_text; framed by length, or in chunks of `chunk` bytes. Sent in pieces of `piece`
 * bytes, followed by `behind`. */
static void post(struct site *site, struct client *c, size_t n, size_t chunk, size_t piece, const char *behind)
{
    char *body = big_text(n);
    size_t cap = n * 2 + n / (chunk ? chunk : n + 1) * 16 + 1024;
    char *text = malloc(cap);
    size_t len;
    if (!chunk) {
        len = (size_t)snprintf(text, cap, "POST /place HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", n);
        memcpy(text + len, body, n);
        len += n;
    } else {
        len = (size_t)snprintf(text, cap, "POST /place HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        for (size_t i = 0; i < n; i += chunk) {
            size_t size = n - i < chunk ? n - i : chunk;
            len += (size_t)snprintf(text + len, cap - len, "%zx\r\n", size);
            memcpy(text + len, body + i, size);
            memcpy(text + len + size, "\r\n", 2);
            len += size + 2;
        }
        memcpy(text + len, "0\r\n\r\n", 5);
        len += 5;
    }
    memcpy(text + len, behind, strlen(behind));
    len += strlen(behind);
    bool all = true;
    for (size_t i = 0; i < len && all; i += piece) {
        all = client_send_bytes(site, c, text + i, len - i < piece ? len - i : piece);
        settle(site);
    }
    ok_named(all, "%s: %zu bytes sent", where_name, len);
    free(text);
    free(body);
}

static void check_post(size_t n, size_t chunk, size_t piece, const char *place)
{
    struct site site;
    site_init(&site);
    site.options.limits.body_memory_max = 20000;
    site_open(&site, route);
    struct client *c = client_open(&site);
    post(&site, c, n, chunk, piece, GET("/two") GET("/three"));
    struct answer answer = {0};
    bool there = next_answer(&site, c, &answer);
    char line[32];
    (void)snprintf(line, sizeof(line), "X-Place: %s", place);
    ok_named(there && answer.status == 200 && answer.body_len == n && is_big_text(answer.body, n),
             "%s: body of %zu in chunks of %zu, pieces of %zu, comes back", where_name, n, chunk, piece);
    if (!ok_named(has_line(&answer, line), "%s: %zu bytes are kept: %s", where_name, n, place))
        diag("%.*s", (int)answer.head_len, answer.head);
    ok_answer(&site, c, 200, "/two");
    ok_answer(&site, c, 200, "/three");
    site_close(&site);
}

static void test_bodies_by_length_stay_where_there_is_room(void)
{
    check_post(1000, 0, 1 << 20, "in-place");
    check_post(1000, 0, 400, "memory");
    check_post(20000, 0, 7000, "memory");
    check_post(20000, 0, 1 << 20, "memory"); /* body_memory_max */
    check_post(20001, 0, 1 << 20, "file");
    check_post(20001, 0, 3000, "file");
    check_post(3000000, 0, 1 << 20, "file");
}

static void test_chunked_bodies_stay_where_there_is_room(void)
{
    check_post(1000, 100, 1 << 20, "in-place");
    check_post(1000, 100, 333, "memory");
    check_post(20000, 3000, 1 << 20, "memory");
    check_post(20001, 3000, 1 << 20, "file");
    check_post(20001, 1000, 777, "file");
    check_post(3000000, 60000, 1 << 20, "file");
}

static void check_chunked_length(struct oribi_req *req)
{
    const struct oribi_field *length = oribi_head_field(req->head, ORIBI_FIELD_CONTENT_LENGTH);
    ok_eq(req->body_len, 11);
    ok(length && length->value_len == 2 && memcmp(length->value, "11", 2) == 0);
    ok(!oribi_head_field(req->head, ORIBI_FIELD_TRANSFER_ENCODING));
    reply_text(req, 200, "seen");
}

static void test_chunked_request_has_a_length_for_the_application(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, check_chunked_length);
    struct client *c = client_open(&site);
    ok(client_send(&site, c,
                   "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n0\r\n\r\n"));
    ok_answer(&site, c, 200, "seen");
    site_close(&site);
}

static void check_trailers(struct oribi_req *req)
{
    const struct oribi_field *first = req->trailers;
    bool there = req->trailer_count == 1 && first->value_len == 3 && memcmp(first->value, "abc", 3) == 0;
    bool apart = true;
    for (uint32_t i = 0; i < req->head->field_count; i++)
        apart &= req->head->fields[i].name_len != 7;
    reply_text(req, 200, !apart ? "mixed" : there ? "there" : req->trailer_count ? "wrong" : "none");
}

static void test_trailers_come_beside_the_head_and_go_with_the_request(void)
{
    static const char head[] = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    struct site site;
    site_init(&site);
    site_open(&site, check_trailers);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, head));
    ok(client_send(&site, c, "3\r\nxyz\r\n0\r\nHost: b\r\nX-Check: abc\r\n\r\n"));
    ok_answer(&site, c, 200, "there");
    ok(client_send(&site, c, head)); /* body in a later read */
    settle(&site);
    ok(client_send(&site, c, "3\r\nxyz\r\n0\r\nX-Ch"));
    settle(&site);
    ok(client_send(&site, c, "eck: abc\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    ok_answer(&site, c, 200, "there");
    ok_answer(&site, c, 200, "none");
    ok(client_send(&site, c, head));
    ok(client_send(&site, c, "0\r\nContent-Length: 5\r\n\r\n"));
    ok_answer(&site, c, 200, "none");
    site_close(&site);
}

/* A pipeline longer than a head may be, read together with the end of a chunked body: the bytes behind are more than
 * the buffer ever grows to. */
static void test_much_pipelined_behind_a_chunked_body(void)
{
    struct site site;
    site_init(&site);
    site.options.limits.head_bytes_max = 1024;
    site_open(&site, route);
    struct client *c = client_open(&site);
    enum { COUNT = 1200 };
    char *text = malloc(COUNT * 48 + 6000);
    size_t n =
        (size_t)snprintf(text, 200, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1388\r\n");
    size_t head = n;
    for (size_t i = 0; i < 5000; i++)
        text[n++] = big_byte(i);
    n += (size_t)snprintf(text + n, 100, "\r\n0\r\n\r\n");
    for (int i = 0; i < COUNT; i++)
        n += (size_t)snprintf(text + n, 48, "GET /n%d HTTP/1.1\r\nHost: a\r\n\r\n", i);
    ok(client_send_bytes(&site, c, text, head + 4000));
    settle(&site);
    ok(client_send_bytes(&site, c, text + head + 4000, n - head - 4000));
    struct answer answer = {0};
    ok(next_answer(&site, c, &answer) && answer.body_len == 5000 && is_big_text(answer.body, 5000));
    int good = 0;
    for (int i = 0; i < COUNT; i++) {
        char want[16];
        (void)snprintf(want, sizeof(want), "/n%d", i);
        if (!next_answer(&site, c, &answer))
            break;
        good += answer.body_len == strlen(want) && memcmp(answer.body, want, strlen(want)) == 0;
    }
    ok_eq(good, COUNT);
    free(text);
    site_close(&site);
}

/* ---- Expect ---- */

static void test_continue_is_said_when_the_body_is_still_to_come(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"));
    struct answer answer = {0};
    ok(next_answer(&site, c, &answer));
    ok_eq(answer.status, 100);
    ok(client_send(&site, c, "bo"));
    settle(&site);
    ok(client_send(&site, c, "dy"));
    ok_answer(&site, c, 200, "body");
    ok(client_send(&site, c,
                   "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"));
    ok(next_answer(&site, c, &answer));
    ok_eq(answer.status, 100);
    ok(client_send(&site, c, "4\r\nbody\r\n0\r\n\r\n"));
    ok_answer(&site, c, 200, "body");
    site_close(&site);
}

static void test_no_continue_without_need(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, "GET /one HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n"));
    ok_answer(&site, c, 200, "/one");
    ok(client_send(
        &site, c,
        "POST /echo HTTP/1.0\r\nConnection: keep-alive\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"));
    settle(&site);
    ok(client_send(&site, c, "body"));
    ok_answer(&site, c, 200, "body");
    site_close(&site);
}

/* The client asks for a body's go-ahead behind a request whose large answer it has not read: the interim answer
 * finds the socket full, and must come once there is room. */
static struct client *ask_with_a_full_socket(struct site *site, size_t *filled)
{
    struct client *c = client_open(site);
    ok(client_send(site, c, GET("/hello")));
    ok_answer(site, c, 200, "hello\n");
    struct oribi_conn *conn = site->worker->reactor.conns;
    ok(client_send(site, c, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"));
    /* Behind the server's back, so that exactly the interim answer does not fit; again, while the kernel still moves
     * bytes on. */
    char block[4096];
    memset(block, '.', sizeof(block));
    c->paused = true;
    *filled = c->got_len;
    for (int quiet = 0; quiet < 100; quiet++) {
        for (size_t step = sizeof(block); step > 0; step /= 2) {
            ssize_t n;
            while ((n = send(conn->watch.fd, block, step, MSG_NOSIGNAL | MSG_DONTWAIT)) > 0) {
                *filled += (size_t)n;
                quiet = 0;
            }
        }
    }
    settle(site);
    ok_eq(conn->state, ORIBI_CONN_BODY);
    return c;
}

static void test_continue_behind_a_full_socket(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    struct client *c = NULL;
    size_t filled = 0;
    for (int tries = 0; tries < 20; tries++) { /* the kernel may still have found room */
        c = ask_with_a_full_socket(&site, &filled);
        if (site.worker->reactor.conns->out)
            break;
        client_close(&site, c);
        ok(pump_until(&site, nothing_open(&site)));
    }
    ok_named(site.worker->reactor.conns && site.worker->reactor.conns->out, "%s: the interim answer waits", where_name);
    c->paused = false;
    ok(pump_until(&site, c->got_len >= filled + 25));
    c->pos = filled;
    struct answer answer = {0};
    ok(next_answer(&site, c, &answer));
    ok_eq(answer.status, 100);
    ok(client_send(&site, c, "body"));
    ok_answer(&site, c, 200, "body");
    site_close(&site);
}

/* ---- refusals ---- */

struct refusal {
    const char *name;
    const char *input;
    int status;
};

static const struct refusal refusals[] = {
    {"grammar", "GET  / HTTP/1.1\r\n\r\n", 400},
    {"no Host", "GET / HTTP/1.1\r\n\r\n", 400},
    {"body too long", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", 413},
    {"chunked body too long", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n", 413},
    {"target too long", NULL, 414},
    {"expectation", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: tea\r\n\r\n", 417},
    {"head too long", NULL, 431},
    {"coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
    {"CONNECT", "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", 501},
    {"version", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
};

static void test_refused_answer_arrives_although_the_client_goes_on_sending(void)
{
    struct site site;
    site_init(&site);
    site.options.limits.body_bytes_max = 1000;
    site.options.limits.head_bytes_max = 8192;
    site.options.limits.target_bytes_max = 1000;
    site_open(&site, route);
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        const struct refusal *one = &refusals[i];
        struct client *c = client_open(&site);
        char *more = malloc(30000);
        memset(more, 'x', 30000);
        uint32_t calls = site.calls;
        if (one->input)
            ok(client_send(&site, c, one->input));
        else
            ok(client_send(&site, c, one->status == 414 ? "GET /" : "GET / HTTP/1.1\r\nHost: a\r\nX: "));
        settle(&site);
        (void)client_send_bytes(&site, c, more, 15000);
        settle(&site);
        (void)client_send_bytes(&site, c, more, 15000);
        (void)client_send(&site, c, GET("/smuggled"));
        struct answer answer = ok_answer(&site, c, one->status, NULL);
        ok_named(answer.closes, "%s: %s: says that it closes", where_name, one->name);
        ok_eq(site.calls, calls);
        ok_named(pump_until(&site, c->eof || c->error) && !c->error, "%s: %s: FIN, no reset", where_name, one->name);
        ok_eq(c->got_len, c->pos);
        ok(site.worker->reactor.conn_count > 0); /* it lingers until we are done */
        free(more);
        client_close(&site, c);
        ok(pump_until(&site, nothing_open(&site)));
    }
    ok_eq(atomic_load(&site.slot.bad_requests), sizeof(refusals) / sizeof(refusals[0]));
    site_close(&site);
}

static void test_body_bytes_max_is_allowed(void)
{
    struct site site;
    site_init(&site);
    site.options.limits.body_bytes_max = 1000;
    site_open(&site, route);
    struct client *c = client_open(&site);
    post(&site, c, 1000, 0, 1 << 20, "");
    ok_answer(&site, c, 200, NULL);
    post(&site, c, 1000, 100, 1 << 20, "");
    ok_answer(&site, c, 200, NULL);
    post(&site, c, 1001, 100, 1 << 20, "");
    ok_answer(&site, c, 413, NULL);
    site_close(&site);
}

/* ---- what the language's garbage collector has done ---- */

static void note_gc(const struct site *site, uint64_t count, uint64_t us, uint64_t live_objects)
{
    struct oribi_gc now = {.count = count, .us = us, .live_objects = live_objects, .heap_pages = live_objects / 100};
    oribi_worker_note_gc(site->worker, &now);
}

/* Serves one request and lets a second pass. */
static void serve_for_a_second(struct site *site, struct client *c)
{
    ok(client_send(site, c, GET("/hello")));
    ok_answer(site, c, 200, "hello\n");
    ok(!oribi_worker_gc_due(site->worker));
    pass_ms(1000);
    settle(site);
}

static void test_the_collector_is_asked_about_once_a_second(void)
{
    struct site site;
    char error[ORIBI_ERROR_TEXT_CAP];
    site_init(&site);
    ok_eq(oribi_options_set(&site.options, "status", "127.0.0.1:1", error), 0);
    site_open(&site, route);
    struct client *c = client_open(&site);
    for (int i = 0; i < 2; i++) {
        serve_for_a_second(&site, c);
        ok(oribi_worker_gc_due(site.worker));
        ok(!oribi_worker_gc_due(site.worker));
    }
    pass_ms(1000); /* without a call */
    settle(&site);
    ok(!oribi_worker_gc_due(site.worker));
    site_close(&site);
}

static void test_the_collector_is_not_asked_about_without_a_status_listener(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    struct client *c = client_open(&site);
    serve_for_a_second(&site, c);
    ok(!oribi_worker_gc_due(site.worker));
    note_gc(&site, 1, 1, 1000);
    ok_eq(site.worker->slot->live_objects, 0);
    site_close(&site);
}

static void test_collections_before_the_worker_are_not_counted(void)
{
    struct site site;
    char error[ORIBI_ERROR_TEXT_CAP];
    site_init(&site);
    ok_eq(oribi_options_set(&site.options, "status", "127.0.0.1:1", error), 0);
    site_open(&site, route);
    const struct oribi_slot *slot = site.worker->slot;
    note_gc(&site, 40, 9000, 1000);
    ok_eq(slot->gc_count, 0);
    ok_eq(slot->gc_us, 0);
    ok_eq(slot->live_objects, 1000);
    note_gc(&site, 42, 9500, 800);
    note_gc(&site, 43, 9600, 700);
    ok_eq(slot->gc_count, 3);
    ok_eq(slot->gc_us, 600);
    ok_eq(slot->live_objects, 700);
    ok_eq(slot->heap_pages, 7);
    note_gc(&site, 44, 100, 700); /* set back */
    note_gc(&site, 45, 150, 700);
    ok_eq(slot->gc_count, 5);
    ok_eq(slot->gc_us, 650);
    site.worker->abandoned = true; /* a child that the application forked has collections of its own */
    note_gc(&site, 50, 900, 1);
    site.worker->abandoned = false;
    ok_eq(slot->gc_count, 5);
    ok_eq(slot->live_objects, 700);
    site_close(&site);
}

int main(void)
{
    quiet_log();
    run_everywhere(test_kept_alive_connection_serves_one_after_another);
    run_everywhere(test_the_running_call_is_not_queued);
    run_everywhere(test_http_1_0_closes_unless_it_asks);
    run_everywhere(test_a_hundred_pipelined_requests_are_answered_in_order);
    run_everywhere(test_a_megabyte_of_pipelined_requests);
    run_everywhere(test_two_pipelining_connections_take_turns);
    run_everywhere(test_every_cut_gives_the_same_answers);
    run_everywhere(test_bodies_by_length_stay_where_there_is_room);
    run_everywhere(test_chunked_bodies_stay_where_there_is_room);
    run_everywhere(test_chunked_request_has_a_length_for_the_application);
    run_everywhere(test_trailers_come_beside_the_head_and_go_with_the_request);
    run_everywhere(test_much_pipelined_behind_a_chunked_body);
    run_everywhere(test_continue_is_said_when_the_body_is_still_to_come);
    run_everywhere(test_no_continue_without_need);
    run_everywhere(test_continue_behind_a_full_socket);
    run_everywhere(test_refused_answer_arrives_although_the_client_goes_on_sending);
    run_everywhere(test_body_bytes_max_is_allowed);
    test_the_collector_is_asked_about_once_a_second();
    test_the_collector_is_not_asked_about_without_a_status_listener();
    test_collections_before_the_worker_are_not_counted();
    return done_testing();
}
