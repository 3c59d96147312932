/* Streamed answers in every framing, applications that wait for slow readers, and sockets that leave the core. */
#include "worker/stream.c"

#include "worker/client.h"

#include <pthread.h>
#include <sched.h>

#define GET(target)      "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"
#define HEAD_OF(target)  "HEAD " target " HTTP/1.1\r\nHost: a\r\n\r\n"
#define GET_1_0(target)  "GET " target " HTTP/1.0\r\n\r\n"
#define KEEP_1_0(target) "GET " target " HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"

static struct site *app_site;
static struct client *app_client;
static int app_result;

static struct client *ask(struct site *site, void (*app)(struct oribi_req *), const char *request)
{
    site_init(site);
    site->options.response_memory_max = 200000;
    site_open(site, app);
    app_site = site;
    app_client = client_open(site);
    ok(client_send(site, app_client, request));
    return app_client;
}

static int write_text(struct oribi_req *req, const char *text)
{
    struct iovec vec[] = {{"", 0}, {(char *)text, strlen(text)}};
    return oribi_reply_write(req, vec, 2);
}

/* ---- framings ---- */

/* /known has a length, /unknown none. */
static void three_pieces(struct oribi_req *req)
{
    if (path_is(req, "/plain")) {
        reply_text(req, 200, "plain");
        return;
    }
    bool known = path_is(req, "/known");
    ok_eq(oribi_reply_begin(req, path_is(req, "/304") ? 304 : 200, &text_type, 1, known ? 11 : -1), 0);
    ok(oribi__exchange_of(req)->phase != ORIBI_PHASE_STARTED);
    ok_eq(write_text(req, "one"), 0);
    ok_eq(write_text(req, ""), 0); /* no chunk of nothing: that would be the end */
    ok_eq(write_text(req, "two"), 0);
    ok(oribi__exchange_of(req)->phase == ORIBI_PHASE_STARTED);
    ok_eq(write_text(req, "three"), 0);
    ok_eq(oribi_reply_end(req), 0);
}

static void test_a_stream_in_every_framing(void)
{
    struct site site;
    struct client *c = ask(&site, three_pieces, GET("/known") GET("/unknown") GET("/plain"));
    struct answer answer = ok_answer(&site, c, 200, "onetwothree");
    ok_eq(answer.content_length, 11);
    answer = ok_answer(&site, c, 200, "onetwothree");
    ok(answer.chunked);
    ok_eq(answer.content_length, -1);
    ok_answer(&site, c, 200, "plain");
    ok(client_send(&site, c, KEEP_1_0("/known") KEEP_1_0("/plain") KEEP_1_0("/unknown") KEEP_1_0("/never")));
    ok_answer(&site, c, 200, "onetwothree");
    ok_answer(&site, c, 200, "plain");
    answer = ok_answer(&site, c, 200, "onetwothree"); /* ends with the connection */
    ok(!answer.chunked);
    ok_eq(answer.content_length, -1);
    ok(closed_after(&site, c));
    ok_eq(site.calls, 6);
    site_close(&site);
}

static void test_no_stream_for_head_and_304(void)
{
    struct site site;
    struct client *c = ask(&site, three_pieces, HEAD_OF("/known") HEAD_OF("/unknown") GET("/304") GET("/plain"));
    struct answer answer = {0};
    ok(next_answer_to(&site, c, true, &answer) && answer.status == 200);
    ok_eq(answer.content_length, 11);
    ok(next_answer_to(&site, c, true, &answer) && answer.status == 200);
    ok_answer(&site, c, 304, NULL);
    ok_answer(&site, c, 200, "plain");
    site_close(&site);
}

static void nothing_written(struct oribi_req *req)
{
    ok_eq(oribi_reply_begin(req, 200, &text_type, 1, path_is(req, "/known") ? 0 : -1), 0);
    ok_eq(oribi_reply_end(req), 0);
}

static void test_a_stream_of_nothing(void)
{
    struct site site;
    struct client *c = ask(&site, nothing_written, GET("/known") GET("/unknown") GET("/known") GET_1_0("/unknown"));
    ok_answer(&site, c, 200, "");
    ok_answer(&site, c, 200, "");
    ok_answer(&site, c, 200, "");
    ok_answer(&site, c, 200, "");
    ok(closed_after(&site, c));
    site_close(&site);
}

static void flushes_first(struct oribi_req *req)
{
    ok_eq(oribi_reply_begin(req, 200, &text_type, 1, -1), 0);
    ok_eq(oribi_reply_flush(req), 0);
    ok(oribi__exchange_of(req)->phase == ORIBI_PHASE_STARTED);
    (void)client_read(app_client); /* the head is there before the first byte of the body */
    ok(memmem(app_client->got, app_client->got_len, "\r\n\r\n", 4) != NULL);
    ok_eq(oribi_reply_flush(req), 0);
    ok_eq(write_text(req, "body"), 0);
    (void)client_read(app_client);
    ok(memmem(app_client->got, app_client->got_len, "body", 4) != NULL); /* nothing is held back */
    ok_eq(oribi_reply_end(req), 0);
}

static void test_flush_sends_the_head(void)
{
    struct site site;
    struct client *c = ask(&site, flushes_first, GET("/"));
    ok_answer(&site, c, 200, "body");
    site_close(&site);
}

/* ---- lengths that are not kept ---- */

static void length_5(struct oribi_req *req)
{
    ok_eq(oribi_reply_begin(req, 200, NULL, 0, 5), 0);
    if (path_is(req, "/longer")) {
        struct iovec vec[] = {{"01", 2}, {"2345", 4}, {"6789", 4}};
        ok_eq(oribi_reply_write(req, vec, 3), 0);
        ok_eq(write_text(req, "more"), 0);
    } else {
        ok_eq(write_text(req, "012"), 0);
    }
    app_result = oribi_reply_end(req);
}

static void test_longer_is_cut_and_shorter_is_broken_off(void)
{
    struct site site;
    struct client *c = ask(&site, length_5, GET("/longer") GET("/shorter") GET("/longer"));
    ok_answer(&site, c, 200, "01234");
    struct answer answer = {0};
    ok(!next_answer(&site, c, &answer));
    ok_eq(answer.content_length, 5);
    ok_eq(site.calls, 2);
    ok(pump_until(&site, nothing_open(&site)));
    site_close(&site);
}

/* ---- long vectors ---- */

static void many_vectors(struct oribi_req *req)
{
    long number = path_number(req, "/");
    size_t count = number > 0 && number < 100000 ? (size_t)number : 0;
    char *text = big_text(count * 3);
    struct iovec *vec = calloc(count, sizeof(*vec));
    for (size_t i = 0; i < count; i++)
        vec[i] = (struct iovec){text + 3 * i, 3};
    ok_eq(oribi_reply_begin(req, 200, NULL, 0, -1), 0);
    ok_eq(oribi_reply_write(req, vec, count), 0);
    memset(text, '!', count * 3);
    free(text);
    free(vec);
    ok_eq(oribi_reply_end(req), 0);
}

static void test_vectors_around_our_own_limit(void)
{
    static const char *const requests[] = {GET("/1"),   GET("/252"), GET("/253"), GET("/254"),
                                           GET("/255"), GET("/256"), GET("/510"), GET("/5000")};
    static const size_t counts[] = {1, 252, 253, 254, 255, 256, 510, 5000};
    struct site site;
    struct client *c = ask(&site, many_vectors, "");
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct answer answer = {0};
        ok(client_send(&site, c, requests[i]));
        ok_named(next_answer(&site, c, &answer) && answer.body_len == 3 * counts[i] &&
                     is_big_text(answer.body, answer.body_len),
                 "%s: %zu vectors in one chunk", where_name, counts[i]);
    }
    site_close(&site);
}

/* ---- slow readers ---- */

enum { STREAM_BYTES = 12000000, PIECE = 50000, LEAVE_PENDING = 50000 };

/* A reader in a thread of its own, for applications that wait. It reads whenever the application waits, and
 * otherwise only while more than LEAVE_PENDING bytes are queued: always a little behind. */
static pthread_t reader;
static atomic_bool reader_stops;
static atomic_bool app_waits;
static atomic_llong app_pending;

static void *read_behind(void *data)
{
    while (!atomic_load(&app_waits) && !atomic_load(&reader_stops)) /* more than the socket takes is queued first */
        (void)sched_yield();
    while (!atomic_load(&reader_stops)) {
        if (atomic_load(&app_waits) || atomic_load(&app_pending) > LEAVE_PENDING)
            (void)client_read(app_client);
        else
            (void)sched_yield();
    }
    return NULL;
}

static uint32_t waits;
static int64_t pending_max;
static int64_t temp_file_max;

/* Writes STREAM_BYTES in pieces and waits when told to. */
static void obedient(struct oribi_req *req)
{
    char *text = big_text(STREAM_BYTES);
    struct oribi_conn *conn = oribi__exchange_of(req)->base.conn;
    ok_eq(oribi_reply_begin(req, 200, NULL, 0, path_is(req, "/known") ? STREAM_BYTES : -1), 0);
    waits = 0;
    pending_max = temp_file_max = 0;
    atomic_store(&reader_stops, false);
    atomic_store(&app_waits, false);
    atomic_store(&app_pending, 0);
    app_client->slice = PIECE;
    ok_eq(pthread_create(&reader, NULL, read_behind, NULL), 0);
    int result = 0;
    for (size_t at = 0; at < STREAM_BYTES && result >= 0; at += PIECE) {
        struct iovec vec = {text + at, PIECE};
        result = oribi_reply_write(req, &vec, 1);
        int64_t pending = oribi_conn_pending(conn);
        int64_t in_temp_file = oribi_conn_in_temp_file(conn);
        pending_max = pending > pending_max ? pending : pending_max;
        temp_file_max = in_temp_file > temp_file_max ? in_temp_file : temp_file_max;
        waits += result == 1;
        atomic_store(&app_waits, result == 1);
        while (result == 1)
            result = oribi_reply_wait(req);
        atomic_store(&app_waits, false);
        atomic_store(&app_pending, oribi_conn_pending(conn));
    }
    ok_eq(result, 0);
    free(text);
    atomic_store(&reader_stops, true);
    (void)pthread_join(reader, NULL);
    app_client->slice = 0;
    ok_eq(oribi_reply_end(req), 0);
}

/* Output that overflows memory goes to a file, and with a reader that is always a little behind that file must not grow
 * with the stream. */
static void test_a_stream_waits_for_its_reader(void)
{
    static const char *const requests[] = {GET("/known"), GET("/unknown")};
    for (int i = 0; i < 2; i++) {
        struct site site;
        struct client *c = ask(&site, obedient, requests[i]);
        struct answer answer = {0};
        ok(next_answer(&site, c, &answer) && answer.body_len == STREAM_BYTES && is_big_text(answer.body, STREAM_BYTES));
        ok(waits > 0);
        ok_named(pending_max <= 200000 + PIECE + 100, "%s: at most %lld bytes waited", where_name,
                 (long long)pending_max);
        ok_named(temp_file_max <= PIECE + 100, "%s: the file grew to %lld bytes", where_name, (long long)temp_file_max);
        site_close(&site);
    }
}

static void waits_in_vain(struct oribi_req *req)
{
    char *text = big_text(STREAM_BYTES);
    struct iovec vec = {text, STREAM_BYTES};
    ok_eq(oribi_reply_begin(req, 200, NULL, 0, -1), 0);
    app_client->paused = true;
    ok_eq(oribi_reply_write(req, &vec, 1), 1);
    free(text);
    if (path_is(req, "/woken")) {
        oribi_worker_wake(app_site->worker);
        ok_eq(oribi_reply_wait(req), 1); /* run interrupts, call again */
        int64_t start = real_ms();
        ok_eq(oribi_reply_wait(req), ORIBI_ECLOSED);
        ok(real_ms() - start >= 40 - 2);
    } else if (path_is(req, "/woken-often")) {
        /* Wake-ups are not progress: the deadline does not begin anew with each. */
        int64_t start = real_ms();
        int result;
        do {
            oribi_worker_wake(app_site->worker);
            result = oribi_reply_wait(req);
        } while (result == 1 && real_ms() - start < 5000);
        ok_eq(result, ORIBI_ECLOSED);
    } else if (path_is(req, "/gone")) {
        client_close(app_site, app_client);
        ok_eq(oribi_reply_wait(req), ORIBI_ECLOSED);
        ok_eq(oribi_reply_wait(req), ORIBI_ECLOSED);
        ok_eq(write_text(req, "more"), ORIBI_ECLOSED);
    } else {
        int64_t start = real_ms();
        ok_eq(oribi_reply_wait(req), ORIBI_ECLOSED);
        ok(real_ms() - start >= 40 - 2);
    }
    ok_eq(oribi_reply_end(req), ORIBI_ECLOSED);
}

/* Reads until the kernel has heard of it: acknowledgements may be late on a machine that has other work. */
static void read_and_acknowledge(void)
{
    int fd = app_site->worker->reactor.conns->watch.fd;
    int64_t queued = oribi_os_send_queue(fd);
    int64_t start = real_ms();
    do
        (void)client_read(app_client);
    while (queued > 0 && oribi_os_send_queue(fd) >= queued && real_ms() - start < 1000 && poll(NULL, 0, 1) == 0);
}

/* The reader reads what the kernel holds for it, slowly, while the socket has no room yet: that is progress too. */
static void waits_for_a_slow_reader(struct oribi_req *req)
{
    char *text = big_text(STREAM_BYTES);
    struct iovec vec = {text, STREAM_BYTES};
    ok_eq(oribi_reply_begin(req, 200, NULL, 0, STREAM_BYTES), 0);
    app_client->paused = true;
    int result = oribi_reply_write(req, &vec, 1);
    ok_eq(result, 1);
    free(text);
    app_client->paused = false;
    app_client->slice = 1000000;
    int i;
    for (i = 0; i < 200 && result == 1; i += !app_site->worker->reactor.conns->unstored) {
        oribi_worker_wake(app_site->worker);
        result = oribi_reply_wait(req);
        pass_ms(30000);
        if (app_site->worker->reactor.conns)
            read_and_acknowledge();
    }
    ok_eq(result, 0);
    ok(i > 2);
    app_client->slice = 0;
    ok_eq(oribi_reply_end(req), 0);
}

static void test_a_slow_reader_has_its_time(void)
{
    struct site site;
    site_init(&site);
    site.options.response_memory_max = 200000;
    site.options.write_timeout_ms = 30000;
    site_open(&site, waits_for_a_slow_reader);
    app_site = &site;
    app_client = client_open(&site);
    client_hold_little(app_client);
    ok(client_send(&site, app_client, GET("/")));
    struct answer answer = {0};
    ok(next_answer(&site, app_client, &answer) && answer.body_len == STREAM_BYTES);
    site_close(&site);
}

static void test_waiting_ends_by_wake_by_time_and_by_leaving(void)
{
    static const char *const requests[] = {GET("/time"), GET("/woken"), GET("/woken-often"), GET("/gone")};
    for (int i = 0; i < 4; i++) {
        struct site site;
        site_init(&site);
        site.options.response_memory_max = 200000;
        site.options.write_timeout_ms = 40;
        site_open(&site, waits_in_vain);
        app_site = &site;
        app_client = client_open(&site);
        ok(client_send(&site, app_client, requests[i]));
        ok(pump_until(&site, site.calls == 1 && nothing_open(&site)));
        site_close(&site);
    }
}

/* A stop asked for while the application waits: it is told (1), and the stop is not forgotten. */
static void stopped_in_wait(struct oribi_req *req)
{
    char *text = big_text(STREAM_BYTES);
    struct iovec vec = {text, STREAM_BYTES};
    ok_eq(oribi_reply_begin(req, 200, NULL, 0, STREAM_BYTES), 0);
    app_client->paused = true;
    ok_eq(oribi_reply_write(req, &vec, 1), 1);
    free(text);
    oribi_worker_stop(app_site->worker);
    ok_eq(oribi_reply_wait(req), 1);
    app_client->paused = false;
    ok_eq(oribi_reply_end(req), 0);
}

static void test_stop_while_waiting(void)
{
    struct site site;
    struct client *c = ask(&site, stopped_in_wait, GET("/"));
    struct answer answer = {0};
    ok(next_answer(&site, c, &answer) && answer.body_len == STREAM_BYTES);
    ok(oribi_worker_stopping(site.worker));
    client_close(&site, c);
    ok(pump_until(&site, oribi_worker_done(site.worker)));
    site_close(&site);
}

/* A disk that is full ends the stream at once, not when the reader happens to read. */
static void no_place(struct oribi_req *req)
{
    char *text = big_text(STREAM_BYTES);
    struct iovec vec = {text, STREAM_BYTES};
    ok_eq(oribi_reply_begin(req, 200, NULL, 0, STREAM_BYTES), 0);
    app_client->paused = true;
    setenv("TMPDIR", "/nonexistent/nowhere", 1);
    int result = oribi_reply_write(req, &vec, 1);
    unsetenv("TMPDIR");
    free(text);
    int64_t start = real_ms();
    while (result == 0 || result == 1)
        result = oribi_reply_wait(req);
    ok_eq(result, ORIBI_ECLOSED);
    ok(real_ms() - start < 1000);
    ok_eq(oribi_reply_end(req), ORIBI_ECLOSED);
}

static void test_a_stream_without_a_place_to_wait(void)
{
    struct site site;
    struct client *c = ask(&site, no_place, GET("/"));
    ok(pump_until(&site, site.calls == 1 && nothing_open(&site)));
    c->paused = false;
    struct answer answer = {0};
    ok(!next_answer(&site, c, &answer));
    site_close(&site);
}

/* ---- breaking off ---- */

static void breaks_off(struct oribi_req *req)
{
    if (path_is(req, "/before")) {
        oribi_reply_abort(req);
        return;
    }
    ok_eq(oribi_reply_begin(req, 200, NULL, 0, path_is(req, "/known") ? 10 : -1), 0);
    if (path_is(req, "/held")) {
        oribi_reply_abort(req); /* nothing has left yet */
        return;
    }
    if (path_is(req, "/error")) {
        oribi_reply_error(req, 503);
        return;
    }
    ok_eq(write_text(req, "half"), 0);
    oribi_reply_abort(req);
}

static void test_abort_is_seen_by_the_client(void)
{
    struct site site;
    struct client *c = ask(&site, breaks_off, GET("/before") GET("/held") GET("/error") GET("/known"));
    ok_answer(&site, c, 500, "500 Internal Server Error\n");
    ok_answer(&site, c, 500, "500 Internal Server Error\n");
    ok_answer(&site, c, 503, "503 Service Unavailable\n");
    struct answer answer = {0};
    ok(!next_answer(&site, c, &answer)); /* fewer bytes than promised */
    c = client_open(&site);
    ok(client_send(&site, c, GET("/unknown")));
    ok(!next_answer(&site, c, &answer)); /* no last chunk */
    ok(memmem(c->got, c->got_len, "half", 4) != NULL);
    ok(memmem(c->got, c->got_len, "0\r\n\r\n", 5) == NULL);
    if (!over_unix) { /* a unix socket has no reset for what was sent */
        c = client_open(&site);
        c->paused = true;
        ok(client_send(&site, c, GET_1_0("/unknown")));
        ok(pump_until(&site, nothing_open(&site)));
        c->paused = false;
        (void)pump_until(&site, c->eof || c->error);
        ok_eq(c->error, ECONNRESET); /* or it would take the half for the whole */
    }
    site_close(&site);
}

/* ---- leaving the core ---- */

static int taken_fd = -1;
static char taken_rest[256];
static size_t taken_rest_len;

static void takes_over(struct oribi_req *req)
{
    struct oribi_slice rest;
    if (path_is(req, "/partial") || path_is(req, "/upgrade")) {
        struct oribi_header headers[] = {{"Connection", "upgrade", 10, 7}, {"Upgrade", "x", 7, 1}};
        int status = path_is(req, "/upgrade") ? 101 : 200;
        ok_eq(oribi_reply_begin(req, status, headers, 2, ORIBI_BODY_DETACHED), 0);
    }
    int before = oribi_req_fd(req);
    app_result = oribi_req_detach(req, &taken_fd, &rest);
    if (app_result < 0)
        return;
    ok_eq(taken_fd, before);
    memcpy(taken_rest, rest.p, rest.n);
    taken_rest_len = rest.n;
    oribi_req_detached(req);
}

static void test_detached_socket_is_the_applications(void)
{
    static const char *const requests[] = {
        GET("/whole") "behind", GET("/partial") "behind", GET("/upgrade") "behind",
        "POST /chunked HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nbehind"};
    for (int i = 0; i < 4; i++) {
        for (int cut = 0; cut < 2; cut++) {
            struct site site;
            struct client *c = ask(&site, takes_over, "");
            size_t len = strlen(requests[i]);
            size_t first = cut ? len - 15 : len;
            ok(client_send_bytes(&site, c, requests[i], first));
            settle(&site);
            ok(client_send_bytes(&site, c, requests[i] + first, len - first));
            ok(pump_until(&site, site.calls == 1 && nothing_open(&site)));
            ok_eq(app_result, 0);
            is_bytes(taken_rest, taken_rest_len, "behind", 6);
            ok(fcntl(taken_fd, F_GETFL) & O_NONBLOCK);
            ok_eq(send(taken_fd, "mine", 4, MSG_NOSIGNAL), 4);
            ok(client_send(&site, c, "yours"));
            char back[16];
            struct pollfd wait = {.fd = taken_fd, .events = POLLIN};
            ok_eq(poll(&wait, 1, 10000), 1);
            ok_eq(recv(taken_fd, back, sizeof(back), 0), 5);
            ok(pump_until(&site, c->got_len >= 4 && memcmp(c->got + c->got_len - 4, "mine", 4) == 0));
            if (i == 1 || i == 2) {
                ok(memmem(c->got, c->got_len, i == 2 ? "HTTP/1.1 101" : "HTTP/1.1 200", 12) != NULL);
                ok(memmem(c->got, c->got_len, "\r\nUpgrade: x\r\n", 14) != NULL);
                ok(memmem(c->got, c->got_len, "chunked", 7) == NULL);
            } else {
                ok_eq(c->got_len, 4);
            }
            ok_eq(oribi_worker_request_count(site.worker), 1);
            oribi_os_close(taken_fd);
            site_close(&site);
        }
    }
}

static void takes_over_from_nobody(struct oribi_req *req)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(app_client->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    client_close(app_site, app_client);
    struct oribi_header link = {"Link", "x", 4, 1};
    (void)oribi_req_inform(req, 103, &link, 1);
    (void)oribi_req_inform(req, 103, &link, 1);
    takes_over(req);
}

static void test_detaching_from_a_client_that_has_gone(void)
{
    struct site site;
    (void)ask(&site, takes_over_from_nobody, GET("/partial"));
    ok(pump_until(&site, site.calls == 1 && nothing_open(&site)));
    ok_eq(app_result, ORIBI_ECLOSED);
    site_close(&site);
}

/* A detached socket and a connection accepted later share nothing but the number. */
static void test_other_connections_go_on_after_a_detach(void)
{
    struct site site;
    (void)ask(&site, takes_over, GET("/whole"));
    ok(pump_until(&site, site.calls == 1));
    site.app = three_pieces;
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/known") GET("/unknown")));
    ok_answer(&site, c, 200, "onetwothree");
    ok_answer(&site, c, 200, "onetwothree");
    oribi_os_close(taken_fd);
    site_close(&site);
}

int main(void)
{
    quiet_log();
    run_everywhere(test_a_stream_in_every_framing);
    run_everywhere(test_no_stream_for_head_and_304);
    run_everywhere(test_a_stream_of_nothing);
    run_everywhere(test_flush_sends_the_head);
    run_everywhere(test_longer_is_cut_and_shorter_is_broken_off);
    run_everywhere(test_vectors_around_our_own_limit);
    run_everywhere(test_a_stream_waits_for_its_reader);
    run_everywhere(test_a_slow_reader_has_its_time);
    run_everywhere(test_waiting_ends_by_wake_by_time_and_by_leaving);
    run_everywhere(test_stop_while_waiting);
    run_everywhere(test_a_stream_without_a_place_to_wait);
    run_everywhere(test_abort_is_seen_by_the_client);
    run_everywhere(test_detached_socket_is_the_applications);
    run_everywhere(test_detaching_from_a_client_that_has_gone);
    run_everywhere(test_other_connections_go_on_after_a_detach);
    return done_testing();
}
