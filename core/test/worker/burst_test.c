/* Pieces of streamed answers that come fast: how many sends they make, and that none waits for the next. The worker is
 * this thread, and its helper is there. By counts and by order: where a test counts, the clock stands still, so that
 * the helper finds nothing that lies too long. Run it under ThreadSanitizer too (make tsan). */
#include "worker/burst.c"

#include "worker/client.h"

#include "worker/placement/helper.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#define GET(target)     "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"
#define GET_1_0(target) "GET " target " HTTP/1.0\r\n\r\n"

enum { PIECES = 100, PIECE_BYTES = 1024, PIECE_CHUNKED_BYTES = PIECE_BYTES + 7 };

static struct site *app_site;
static struct client *app_client;
static const char *app_type = "text/plain";
static int64_t app_gap_us;        /* between two pieces */
static bool app_flushes;          /* after each piece */
static uint64_t most_clock_reads; /* for one piece */
static atomic_int sends;          /* that the socket took something of */
static void (*count_bytes)(void *self, int64_t bytes);

static void count_send(void *self, int64_t bytes)
{
    atomic_fetch_add(&sends, 1);
    count_bytes(self, bytes);
}

static struct client *open_site(struct site *site, void (*app)(struct oribi_req *), bool helper)
{
    site_init(site);
    site->options.helper = helper;
    site->options.response_memory_max = 200000;
    site_open(site, app);
    count_bytes = site->worker->reactor.hooks.sent;
    site->worker->reactor.hooks.sent = count_send;
    app_site = site;
    app_type = "text/plain";
    app_gap_us = 0;
    app_flushes = false;
    app_client = client_open(site);
    return app_client;
}

static int begin(struct oribi_req *req, int64_t len)
{
    struct oribi_header type = {"Content-Type", app_type, 12, (uint32_t)strlen(app_type)};
    return oribi_reply_begin(req, 200, &type, 1, len);
}

static int write_text(struct oribi_req *req, const char *text)
{
    struct iovec vec = {(char *)text, strlen(text)};
    return oribi_reply_write(req, &vec, 1);
}

static bool has(const char *text)
{
    return app_client->got && memmem(app_client->got, app_client->got_len, text, strlen(text));
}

/* The client has this text, sooner or later. */
static bool arrives(const char *text)
{
    int64_t end = real_ms() + PUMP_MS_MAX;
    while (!has(text) && real_ms() < end)
        if (!client_read(app_client))
            (void)poll(&(struct pollfd){.fd = app_client->fd, .events = POLLIN}, 1, 10);
    return has(text);
}

/* ---- counts ---- */

/* A body of PIECES pieces. */
static void pieces(struct oribi_req *req)
{
    char *text = big_text((size_t)PIECES * PIECE_BYTES);
    atomic_store(&sends, 0);
    ok_eq(begin(req, path_is(req, "/known") ? PIECES * PIECE_BYTES : -1), 0);
    for (int i = 0; i < PIECES; i++) {
        struct iovec vec = {text + (size_t)i * PIECE_BYTES, PIECE_BYTES};
        uint64_t reads = clock_reads;
        ok_eq(oribi_reply_write(req, &vec, 1), 0);
        most_clock_reads = clock_reads - reads > most_clock_reads ? clock_reads - reads : most_clock_reads;
        clock_held_us += app_gap_us;
        (void)client_read(app_client); /* a unix socket has room for few small ones */
        if (app_flushes)
            ok_eq(oribi_reply_flush(req), 0);
    }
    ok_eq(oribi_reply_end(req), 0);
    free(text);
}

static void check_sends(struct site *site, const char *request, int want)
{
    struct answer answer = {0};
    hold_clock(true);
    ok(client_send(site, app_client, request));
    ok_named(next_answer(site, app_client, &answer) && answer.body_len == (size_t)PIECES * PIECE_BYTES &&
                 is_big_text(answer.body, answer.body_len),
             "%s: %s: the body", where_name, app_type);
    hold_clock(false);
    ok_named(atomic_load(&sends) == want, "%s: %s: %d sends, not %d", where_name, app_type, want, atomic_load(&sends));
}

/* The first piece; then as many as fill ORIBI__BURST_BYTES, and the one that has no room any more; the rest with the
 * end. */
static int sends_of(int bytes)
{
    int together = ORIBI__BURST_BYTES / bytes + 1;
    return 1 + (PIECES - 1) / together + ((PIECES - 1) % together > 0 ? 1 : 0);
}

static void test_a_burst_is_few_sends(void)
{
    struct site site;
    (void)open_site(&site, pieces, true);
    ok(sends_of(PIECE_CHUNKED_BYTES) == 3);
    most_clock_reads = 0;
    check_sends(&site, GET("/unknown"), sends_of(PIECE_CHUNKED_BYTES));
    ok(site.worker->helper != NULL);
    check_sends(&site, GET("/known"), sends_of(PIECE_BYTES));
    check_sends(&site, GET("/unknown"), sends_of(PIECE_CHUNKED_BYTES));
    check_sends(&site, GET_1_0("/unknown"), sends_of(PIECE_BYTES));
    ok_eq(most_clock_reads, 1);
    site_close(&site);
}

/* At the longest piece that is gathered, and one byte beyond. */
static void long_pieces(struct oribi_req *req)
{
    char *text = big_text(ORIBI__BURST_PIECE_BYTES + 1);
    atomic_store(&sends, 0);
    hold_clock(true);
    ok_eq(begin(req, 1 + 2 * ORIBI__BURST_PIECE_BYTES + 1 + 1), 0);
    struct iovec small = {text, 1};
    struct iovec longest = {text, ORIBI__BURST_PIECE_BYTES};
    struct iovec longer = {text, ORIBI__BURST_PIECE_BYTES + 1};
    ok_eq(oribi_reply_write(req, &small, 1), 0);
    ok_eq(atomic_load(&sends), 1);
    ok_eq(oribi_reply_write(req, &longest, 1), 0);
    ok_eq(atomic_load(&sends), 1);
    (void)client_read(app_client);
    ok_eq(oribi_reply_write(req, &longer, 1), 0);
    ok_eq(atomic_load(&sends), 2);
    hold_clock(false);
    (void)client_read(app_client);
    ok_eq(oribi_reply_write(req, &small, 1), 0);
    ok_eq(oribi_reply_end(req), 0);
    free(text);
}

static void test_a_long_piece_is_not_gathered(void)
{
    struct site site;
    struct answer answer = {0};
    struct client *c = open_site(&site, long_pieces, true);
    ok(client_send(&site, c, GET("/")));
    ok(next_answer(&site, c, &answer) && answer.body_len == 2 * ORIBI__BURST_PIECE_BYTES + 3);
    site_close(&site);
}

/* Pieces that come after a silence leave by themselves, and so does the end of a chunked body. */
static void test_pieces_with_gaps_leave_one_by_one(void)
{
    struct site site;
    (void)open_site(&site, pieces, true);
    app_gap_us = ORIBI__GAP_US;
    check_sends(&site, GET("/unknown"), PIECES + 1);
    check_sends(&site, GET("/known"), PIECES);
    ok_eq(site.worker->bursts.begun, 0); /* nothing was gathered */
    app_gap_us = ORIBI__GAP_US - 1;      /* the helper does not see the clock run so fast */
    check_sends(&site, GET("/known"), 1 + (PIECES - 1) / (ORIBI__BURST_US / (ORIBI__GAP_US - 1) + 2) + 1);
    site_close(&site);
}

static void test_events_leave_one_by_one(void)
{
    static const char *const types[] = {"text/event-stream", "Text/Event-Stream; charset=utf-8"};
    struct site site;
    (void)open_site(&site, pieces, true);
    for (int i = 0; i < 2; i++) {
        app_type = types[i];
        check_sends(&site, GET("/unknown"), PIECES + 1);
    }
    app_type = "text/event-log";
    check_sends(&site, GET("/unknown"), sends_of(PIECE_CHUNKED_BYTES));
    site_close(&site);
}

static void test_without_a_helper_pieces_leave_one_by_one(void)
{
    struct site site;
    (void)open_site(&site, pieces, false);
    check_sends(&site, GET("/unknown"), PIECES + 1);
    check_sends(&site, GET("/known"), PIECES);
    site_close(&site);
}

/* The helper cannot be woken: nothing waits for it. */
static void test_with_a_deaf_helper_pieces_leave_one_by_one(void)
{
    struct site site;
    (void)open_site(&site, pieces, true);
    check_sends(&site, GET("/known"), sends_of(PIECE_BYTES));
    oribi_helper_stop(site.worker); /* another begins, which does not run yet */
    site.worker->helper_failed = true;
    check_sends(&site, GET("/known"), PIECES);
    site.worker->helper_failed = false;
    check_sends(&site, GET("/known"), sends_of(PIECE_BYTES));
    site_close(&site);
}

static void test_a_flush_sends_what_lies_there(void)
{
    struct site site;
    (void)open_site(&site, pieces, true);
    app_flushes = true;
    check_sends(&site, GET("/unknown"), PIECES + 1);
    site_close(&site);
}

/* ---- nothing waits for the next piece ---- */

/* Each time the application goes on when the client has the piece before. */
static void asks_and_waits(struct oribi_req *req)
{
    bool known = path_is(req, "/known");
    ok_eq(begin(req, known ? 21 : -1), 0);
    for (int i = 0; i < 3; i++) {
        char text[8];
        (void)snprintf(text, sizeof(text), "front-%d", i);
        ok_eq(write_text(req, text), 0);
        if (i != 1)
            ok_named(arrives(text), "%s: %s", where_name, text);
    }
    ok_eq(oribi_reply_end(req), 0);
}

static void test_no_piece_waits_for_what_the_application_does(void)
{
    struct site site;
    struct client *c = open_site(&site, asks_and_waits, true);
    for (int i = 0; i < 5; i++) {
        ok(client_send(&site, c, GET("/unknown") GET("/known")));
        ok_answer(&site, c, 200, "front-0front-1front-2");
        ok_answer(&site, c, 200, "front-0front-1front-2");
        while (i == 3 && site.worker->helper && !oribi_helper_parked(site.worker)) /* from now on it must be woken */
            (void)poll(NULL, 0, 1);
    }
    ok(client_send(&site, c, GET_1_0("/unknown")));
    ok_answer(&site, c, 200, "front-0front-1front-2");
    ok(closed_after(&site, c));
    site_close(&site);
}

/* The bytes that complete a known length leave, whatever the application goes on with. */
static void completes(struct oribi_req *req)
{
    hold_clock(true);
    ok_eq(begin(req, 9), 0);
    ok_eq(write_text(req, "one"), 0);
    ok_eq(write_text(req, "two"), 0);
    ok_eq(write_text(req, "end"), 0);
    ok(arrives("onetwoend"));
    hold_clock(false);
    ok_eq(oribi_reply_end(req), 0);
}

static void test_a_complete_answer_waits_for_nothing(void)
{
    struct site site;
    struct client *c = open_site(&site, completes, true);
    ok(client_send(&site, c, GET("/")));
    ok_answer(&site, c, 200, "onetwoend");
    site_close(&site);
}

/* The application has a handle for the socket, by which it writes itself. */
static void writes_beside(struct oribi_req *req)
{
    hold_clock(true);
    ok_eq(begin(req, -1), 0);
    ok_eq(write_text(req, "one"), 0);
    ok_eq(write_text(req, "two"), 0);
    ok(!has("two"));
    oribi_req_lend_fd(req);
    ok(arrives("two"));
    ok_eq(write_text(req, "three"), 0);
    ok(arrives("three"));
    hold_clock(false);
    ok_eq(oribi_reply_end(req), 0);
}

static void lends_before(struct oribi_req *req)
{
    bool lends = path_is(req, "/lends");
    hold_clock(true);
    if (lends)
        oribi_req_lend_fd(req);
    ok_eq(begin(req, -1), 0);
    ok_eq(write_text(req, "one"), 0);
    int before = atomic_load(&sends);
    ok_eq(write_text(req, "two"), 0);
    ok_eq(atomic_load(&sends) - before, lends ? 1 : 0);
    hold_clock(false);
    ok_eq(oribi_reply_end(req), 0);
}

static void test_nothing_lies_beside_a_handle_of_the_application(void)
{
    struct site site;
    struct client *c = open_site(&site, writes_beside, true);
    ok(client_send(&site, c, GET("/")));
    ok_answer(&site, c, 200, "onetwothree");
    site_close(&site);
    c = open_site(&site, lends_before, true);
    ok(client_send(&site, c, GET("/lends") GET("/")));
    ok_answer(&site, c, 200, "onetwo");
    ok_answer(&site, c, 200, "onetwo");
    site_close(&site);
}

static void breaks_off(struct oribi_req *req)
{
    ok_eq(begin(req, -1), 0);
    ok_eq(write_text(req, "first"), 0);
    ok_eq(write_text(req, "second"), 0);
    oribi_reply_abort(req);
}

static void test_what_was_written_before_an_abort_arrives(void)
{
    struct site site;
    struct client *c = open_site(&site, breaks_off, true);
    ok(client_send(&site, c, GET("/")));
    struct answer answer = {0};
    ok(!next_answer(&site, c, &answer));
    ok(memmem(c->got, c->got_len, "second\r\n", 8) != NULL);
    ok(memmem(c->got, c->got_len, "0\r\n\r\n", 5) == NULL);
    ok_eq(atomic_load(&site.worker->threads.single.burst_us), 0);
    site_close(&site);
}

/* ---- clients that leave, clients that read slowly ---- */

static void writes_to_nobody(struct oribi_req *req)
{
    ok_eq(begin(req, -1), 0);
    ok_eq(write_text(req, "first"), 0);
    client_close(app_site, app_client);
    int64_t end = real_ms() + PUMP_MS_MAX;
    int result = 0;
    while (result == 0 && real_ms() < end)
        result = write_text(req, "more");
    ok_eq(result, ORIBI_ECLOSED);
    ok_eq(write_text(req, "more"), ORIBI_ECLOSED);
    ok_eq(oribi_reply_flush(req), ORIBI_ECLOSED);
    ok_eq(oribi_reply_end(req), ORIBI_ECLOSED);
    ok_eq(atomic_load(&app_site->worker->threads.single.burst_us), 0);
}

static void test_the_application_is_told_that_its_client_has_left(void)
{
    struct site site;
    struct client *c = open_site(&site, writes_to_nobody, true);
    ok(client_send(&site, c, GET("/")));
    ok(pump_until(&site, site.calls == 1 && nothing_open(&site)));
    site_close(&site);
}

enum { SLOW_BYTES = 12000000, SLOW_PIECE = 1000 };

static atomic_bool app_waits;
static atomic_bool reader_stops;

/* The client begins to read when the application waits for it. */
static void *read_late(void *data)
{
    while (!atomic_load(&reader_stops))
        if (!atomic_load(&app_waits) || !client_read(app_client))
            (void)sched_yield();
    return data;
}

static void obedient(struct oribi_req *req)
{
    char *text = big_text(SLOW_BYTES);
    pthread_t reader;
    int waits = 0;
    int result = 0;
    atomic_store(&app_waits, false);
    atomic_store(&reader_stops, false);
    ok_eq(pthread_create(&reader, NULL, read_late, NULL), 0);
    ok_eq(begin(req, -1), 0);
    for (size_t at = 0; at < SLOW_BYTES && result >= 0; at += SLOW_PIECE) {
        struct iovec vec = {text + at, SLOW_PIECE};
        result = oribi_reply_write(req, &vec, 1);
        waits += result == 1;
        atomic_store(&app_waits, result == 1);
        while (result == 1)
            result = oribi_reply_wait(req);
        atomic_store(&app_waits, false);
    }
    ok_eq(result, 0);
    ok(waits > 0);
    atomic_store(&reader_stops, true);
    (void)pthread_join(reader, NULL);
    app_client->slice = 0; /* the rest at once: looking for the end of so many chunks takes long */
    ok_eq(oribi_reply_end(req), 0);
    free(text);
}

static void test_back_pressure(void)
{
    struct site site;
    struct client *c = open_site(&site, obedient, true);
    client_hold_little(c);
    c->slice = 100000;
    ok(client_send(&site, c, GET("/")));
    struct answer answer = {0};
    bool there = next_answer(&site, c, &answer);
    ok_named(there && answer.body_len == SLOW_BYTES && is_big_text(answer.body, SLOW_BYTES),
             "%s: answer %d with %zu bytes of %zu", where_name, there, answer.body_len, c->got_len);
    site_close(&site);
}

int main(void)
{
    quiet_log();
    run_everywhere(test_a_burst_is_few_sends);
    run_everywhere(test_a_long_piece_is_not_gathered);
    run_everywhere(test_pieces_with_gaps_leave_one_by_one);
    run_everywhere(test_events_leave_one_by_one);
    run_everywhere(test_without_a_helper_pieces_leave_one_by_one);
    run_everywhere(test_with_a_deaf_helper_pieces_leave_one_by_one);
    run_everywhere(test_a_flush_sends_what_lies_there);
    run_everywhere(test_no_piece_waits_for_what_the_application_does);
    run_everywhere(test_a_complete_answer_waits_for_nothing);
    run_everywhere(test_nothing_lies_beside_a_handle_of_the_application);
    run_everywhere(test_what_was_written_before_an_abort_arrives);
    run_everywhere(test_the_application_is_told_that_its_client_has_left);
    run_everywhere(test_back_pressure);
    return done_testing();
}
