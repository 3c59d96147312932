/* Compressed answers over the wire: whole ones, streams, files; what they allocate; what happens when something
 * fails. Which answers are compressed is in spec/compress. */
#include "oribi/http/compress.h"

/* Counts flushes. */
static int counting_write(struct oribi_compressor *compressor, const void *p, size_t n, enum oribi_compress_then then,
                          struct oribi_buf *out);
#define oribi_compressor_write counting_write
#include "worker/compress.c"
#undef oribi_compressor_write

#include "base/mem_counted.h"
#include "http/decode.h"
#include "worker/client.h"

#include <sys/stat.h>

#define REQUEST(method, target, coding) method " " target " HTTP/1.1\r\nHost: a\r\nAccept-Encoding: " coding "\r\n\r\n"
#define GET(target)                     REQUEST("GET", target, "gzip")

enum { WHOLE = ORIBI__COMPRESS_WHOLE_BYTES_MAX, TEXT_BYTES = 3 * WHOLE };

static struct site *app_site;
static struct client *app_client;
static struct oribi_req *kept_req;
static bool with_helper;
static bool fail_flushes;
static atomic_int flushes;
static atomic_int sends; /* that the socket took something of */
static void (*count_bytes)(void *self, int64_t bytes);
static char *text;
static int text_fd;

static int counting_write(struct oribi_compressor *compressor, const void *p, size_t n, enum oribi_compress_then then,
                          struct oribi_buf *out)
{
    atomic_fetch_add(&flushes, then == ORIBI_COMPRESS_FLUSH);
    if (fail_flushes)
        return ORIBI_ESYS;
    return oribi_compressor_write(compressor, p, n, then, out);
}

static void count_send(void *self, int64_t bytes)
{
    atomic_fetch_add(&sends, 1);
    count_bytes(self, bytes);
}

static void make_text(void)
{
    text = oribi_mem_alloc(TEXT_BYTES + 64, 1);
    for (size_t at = 0; at < TEXT_BYTES;)
        at +=
            (size_t)snprintf(text + at, 64, "{\"id\":%zu,\"name\":\"item %zu\",\"open\":true},", at, at * 7919 % 1009);
    char path[] = "/tmp/oribi-compress-XXXXXX";
    text_fd = mkstemp(path);
    ok(text_fd >= 0 && write(text_fd, text, TEXT_BYTES) == TEXT_BYTES);
    unlink(path);
}

static struct client *open_site(struct site *site, void (*app)(struct oribi_req *), const char *codings)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    site_init(site);
    ok_eq(oribi_options_set(&site->options, "compress", codings, error), 0);
    site->options.keepalive_requests_max = 0;
    site->options.helper = with_helper;
    app_site = site;
    site_open(site, app);
    return client_open(site);
}

/* The answer's body is this coding of the first n bytes of the text. */
static bool is_text(const struct answer *answer, enum oribi_coding coding, size_t n)
{
    bool ends;
    char line[64];
    snprintf(line, sizeof(line), "Content-Encoding: %s", oribi_coding_name(coding).p);
    return has_line(answer, line) && has_line(answer, "Vary: Accept-Encoding") &&
           decode(coding, answer->body, answer->body_len, &ends) == (ssize_t)n && ends && memcmp(decoded, text, n) == 0;
}

/* /N: so many bytes in one piece; /parts/N: in pieces of 100 and of none; /file/N; /stream/N. */
static void route_text(struct oribi_req *req)
{
    static struct iovec parts[2 * TEXT_BYTES / 100 + 2];
    long n;
    if ((n = path_number(req, "/parts/")) >= 0) {
        size_t count = 0;
        for (long at = 0; at < n; at += 100) {
            parts[count++] = (struct iovec){NULL, 0};
            parts[count++] = (struct iovec){text + at, n - at < 100 ? (size_t)(n - at) : 100};
        }
        ok_eq(oribi_reply(req, 200, &text_type, 1, parts, count), 0);
    } else if ((n = path_number(req, "/file/")) >= 0) {
        if (oribi_reply_file(req, 200, &text_type, 1, text_fd, 0, n) == ORIBI_EAPP)
            oribi_reply_error(req, 500);
    } else if ((n = path_number(req, "/stream/")) >= 0) {
        if (oribi_reply_begin(req, 200, &text_type, 1, -1) < 0) { /* without memory */
            oribi_reply_error(req, 500);
            return;
        }
        for (long at = 0; at < n; at += 5000) {
            struct iovec piece = {text + at, n - at < 5000 ? (size_t)(n - at) : 5000};
            if (oribi_reply_write(req, &piece, 1) < 0) {
                oribi_reply_abort(req);
                return;
            }
        }
        (void)oribi_reply_end(req);
    } else if (path_is(req, "/hello")) {
        reply_text(req, 200, "hello\n");
    } else {
        struct iovec body = {text, (size_t)path_number(req, "/")};
        if (oribi_reply(req, 200, &text_type, 1, &body, 1) == ORIBI_EAPP)
            oribi_reply_error(req, 500);
    }
}

static void each_coding(void (*test)(struct site *, struct client *, enum oribi_coding, const char *))
{
    static const enum oribi_coding codings[] = {ORIBI_CODING_GZIP, ORIBI_CODING_ZSTD, ORIBI_CODING_BR};
    for (int i = 0; i < 3; i++) {
        const char *name = oribi_coding_name(codings[i]).p;
        if (!oribi_compress_has(codings[i])) {
            diag("skipped: this build has no %s", name);
            continue;
        }
        struct site site;
        struct client *c = open_site(&site, route_text, name);
        test(&site, c, codings[i], name);
        site_close(&site);
    }
}

static struct answer get(struct site *site, struct client *c, const char *path, const char *coding)
{
    char request[200];
    struct answer answer = {0};
    snprintf(request, sizeof(request), REQUEST("GET", "%s", "%s"), path, coding);
    ok(client_send(site, c, request) && next_answer(site, c, &answer));
    return answer;
}

/* ---- what is sent ---- */

static void whole(struct site *site, struct client *c, enum oribi_coding coding, const char *name)
{
    static const long sizes[] = {1024, 30000, WHOLE, WHOLE + 1, TEXT_BYTES};
    static const char *const kinds[] = {"", "parts/", "file/", "stream/"};
    for (size_t i = 0; i < 5; i++)
        for (int kind = 0; kind < 4; kind++) {
            char path[64];
            snprintf(path, sizeof(path), "/%s%ld", kinds[kind], sizes[i]);
            struct answer answer = get(site, c, path, name);
            if (kind == 2 && sizes[i] > ORIBI__COMPRESS_FILE_BYTES_MAX) {
                ok_eq(answer.content_length, sizes[i]);
                ok(!has_line(&answer, "Vary: Accept-Encoding"));
                continue;
            }
            ok_named(is_text(&answer, coding, (size_t)sizes[i]), "%s: %s in %s", where_name, path, name);
            ok_eq(answer.chunked, kind == 3 || sizes[i] > WHOLE);
            ok(answer.chunked || (answer.content_length > 0 && answer.content_length < sizes[i] / 2));
        }
    struct answer answer = get(site, c, "/30000", "identity");
    ok_eq(answer.content_length, 30000);
    ok(has_line(&answer, "Vary: Accept-Encoding"));
    answer = get(site, c, "/hello", name);
    ok_eq(answer.content_length, 6);
    ok(!has_line(&answer, "Vary: Accept-Encoding"));
}

static void test_every_kind_of_answer(void)
{
    each_coding(whole);
}

static void test_http_1_0_and_head(void)
{
    struct site site;
    struct client *c = open_site(&site, route_text, "gzip");
    struct answer answer = {0};
    ok(client_send(&site, c, REQUEST("HEAD", "/30000", "gzip") REQUEST("HEAD", "/stream/30000", "gzip")));
    for (int i = 0; i < 2; i++) {
        ok(next_answer_to(&site, c, true, &answer));
        ok(has_line(&answer, "Content-Encoding: gzip") && has_line(&answer, "Vary: Accept-Encoding"));
        ok_eq(answer.content_length, -1);
    }
    ok(client_send(&site, c, "GET /stream/30000 HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n"));
    ok(next_answer(&site, c, &answer));
    ok(!answer.chunked && is_text(&answer, ORIBI_CODING_GZIP, 30000));
    ok(closed_after(&site, c));
    site_close(&site);
}

/* ---- streams ---- */

static void keeps_it(struct oribi_req *req)
{
    struct oribi_header headers[] = {text_type, {"Content-Length", "3000", 14, 4}};
    kept_req = req;
    bool known = path_is(req, "/short") || path_is(req, "/long");
    ok_eq(oribi_reply_begin(req, 200, headers, known ? 2 : 1, -1), 0);
}

/* The body so far, as a client has it: chunks of a stream that goes on. */
static ssize_t decode_so_far(struct client *c, enum oribi_coding coding, bool *ends)
{
    static char body[TEXT_BYTES];
    size_t len = 0;
    char *p = c->got_len > 0 ? memmem(c->got, c->got_len, "\r\n\r\n", 4) : NULL;
    const char *end = c->got + c->got_len;
    *ends = false;
    if (!p)
        return 0;
    for (p += 4; p < end;) {
        char *line = memmem(p, (size_t)(end - p), "\r\n", 2);
        if (!line)
            break;
        char *data = line + 2;
        size_t size = strtoul(p, NULL, 16);
        if (size == 0 || (size_t)(end - data) < size)
            break;
        memcpy(body + len, data, size);
        len += size;
        p = data + size + 2;
    }
    return decode(coding, body, len, ends);
}

static void at_once(struct site *site, struct client *c, enum oribi_coding coding, const char *name)
{
    bool ends = true;
    site->app = keeps_it;
    kept_req = NULL;
    char request[200];
    snprintf(request, sizeof(request), REQUEST("GET", "/", "%s"), name);
    ok(client_send(site, c, request));
    for (int i = 0; i < 100 && !kept_req; i++)
        settle(site);
    ssize_t sent = 0;
    bool right = kept_req != NULL;
    for (int i = 0; i < 20 && right; i++) {
        struct iovec piece = {text + sent, (size_t)i * 700 + 1};
        right = oribi_reply_write(kept_req, &piece, 1) == 0;
        sent += (ssize_t)piece.iov_len;
        int64_t deadline = real_ms() + PUMP_MS_MAX;
        while (right && decode_so_far(c, coding, &ends) < sent && real_ms() < deadline)
            (void)client_read(c); /* the worker does nothing meanwhile */
        right = right && decode_so_far(c, coding, &ends) == sent && !ends && memcmp(decoded, text, (size_t)sent) == 0;
    }
    ok_named(right, "%s: %s: each write is there at once", where_name, name);
    ok_eq(oribi_reply_end(kept_req), 0);
    struct answer answer = {0};
    ok(next_answer(site, c, &answer) && is_text(&answer, coding, (size_t)sent));
}

static void test_each_write_is_seen_at_once(void)
{
    each_coding(at_once);
}

/* ---- bursts ---- */

enum { PIECES = 100, PIECE_BYTES = 1000 };

/* /gaps: each after a silence; /flushes; else as fast as it can, while the clock stands still. */
static void bursts(struct oribi_req *req)
{
    bool flushing = path_is(req, "/flushes");
    int64_t gap_us = path_is(req, "/gaps") ? ORIBI__GAP_US : 0;
    hold_clock(true);
    atomic_store(&flushes, 0);
    atomic_store(&sends, 0);
    ok_eq(oribi_reply_begin(req, 200, &text_type, 1, -1), 0);
    for (int i = 0; i < PIECES; i++) {
        struct iovec piece = {text + (ptrdiff_t)i * PIECE_BYTES, PIECE_BYTES};
        ok_eq(oribi_reply_write(req, &piece, 1), 0);
        clock_held_us += gap_us;
        (void)client_read(app_client); /* a unix socket has room for few small ones */
        if (flushing)
            ok_eq(oribi_reply_flush(req), 0);
    }
    ok_eq(oribi_reply_end(req), 0);
    hold_clock(false);
}

static struct client *open_bursts(struct site *site, bool helper)
{
    with_helper = helper;
    (void)open_site(site, bursts, "gzip, zstd, br");
    with_helper = false;
    count_bytes = site->worker->reactor.hooks.sent;
    site->worker->reactor.hooks.sent = count_send;
    app_client = client_open(site);
    return app_client;
}

static void check_burst(struct site *site, enum oribi_coding coding, const char *name, const char *path, int want)
{
    struct answer answer = get(site, app_client, path, name);
    ok_named(is_text(&answer, coding, (size_t)PIECES * PIECE_BYTES), "%s: %s: %s: the body", where_name, name, path);
    ok_named(atomic_load(&flushes) == want && atomic_load(&sends) == want + 1,
             "%s: %s: %s: %d flushes and %d sends, not %d", where_name, name, path, atomic_load(&flushes),
             atomic_load(&sends), want);
}

/* The first piece; then as many as fill ORIBI__BURST_CODED_BYTES, with the one that has no room any more; the rest with
 * the end. */
static void test_a_burst_is_flushed_once(void)
{
    enum { TOGETHER = ORIBI__BURST_CODED_BYTES / PIECE_BYTES + 1 };
    static const enum oribi_coding codings[] = {ORIBI_CODING_GZIP, ORIBI_CODING_ZSTD, ORIBI_CODING_BR};
    struct site site;
    (void)open_bursts(&site, true);
    for (int i = 0; i < 3; i++) {
        const char *name = oribi_coding_name(codings[i]).p;
        if (!oribi_compress_has(codings[i]))
            continue;
        check_burst(&site, codings[i], name, "/", 1 + (PIECES - 1) / TOGETHER);
        check_burst(&site, codings[i], name, "/gaps", PIECES);
        check_burst(&site, codings[i], name, "/flushes", PIECES);
    }
    site_close(&site);
}

static void test_without_a_helper_each_write_is_flushed(void)
{
    struct site site;
    (void)open_bursts(&site, false);
    check_burst(&site, ORIBI_CODING_GZIP, "gzip", "/", PIECES);
    site_close(&site);
}

/* A failure in the middle of a burst: the application hears of it, the client sees that the answer is cut. */
static void breaks_off(struct oribi_req *req)
{
    struct iovec piece = {text, PIECE_BYTES};
    hold_clock(true);
    ok_eq(oribi_reply_begin(req, 200, &text_type, 1, -1), 0);
    for (int i = 0; i < 3; i++)
        ok_eq(oribi_reply_write(req, &piece, 1), 0);
    hold_clock(false);
    if (path_is(req, "/abort")) {
        oribi_reply_abort(req);
        return;
    }
    fail_flushes = true;
    ok_eq(oribi_reply_flush(req), ORIBI_ECLOSED);
    fail_flushes = false;
    ok_eq(oribi_reply_write(req, &piece, 1), ORIBI_ECLOSED);
    ok_eq(oribi_reply_end(req), ORIBI_ECLOSED);
}

static void test_a_burst_that_breaks_off(void)
{
    static const char *const paths[] = {"/abort", "/fails"};
    for (int i = 0; i < 2; i++) {
        bool ends;
        struct site site;
        struct answer answer = {0};
        with_helper = true;
        struct client *c = open_site(&site, breaks_off, "gzip");
        with_helper = false;
        char request[100];
        snprintf(request, sizeof(request), GET("%s"), paths[i]);
        ok(client_send(&site, c, request));
        ok(!next_answer(&site, c, &answer));
        ok(pump_until(&site, c->eof || c->error));
        ssize_t want = i == 0 ? 3 * PIECE_BYTES : PIECE_BYTES;
        ok_eq(decode_so_far(c, ORIBI_CODING_GZIP, &ends), want);
        ok(!ends);
        site_close(&site);
    }
}

/* Each time the application goes on when the client has the piece before: the helper compresses and sends it. */
static void asks_and_waits(struct oribi_req *req)
{
    ok_eq(oribi_reply_begin(req, 200, &text_type, 1, -1), 0);
    for (ssize_t i = 0; i < 60; i++) {
        bool ends;
        struct iovec piece = {text + i * PIECE_BYTES, PIECE_BYTES};
        ok_eq(oribi_reply_write(req, &piece, 1), 0);
        int64_t deadline = real_ms() + PUMP_MS_MAX;
        while (i % 3 == 2 && decode_so_far(app_client, ORIBI_CODING_GZIP, &ends) < (i + 1) * PIECE_BYTES &&
               real_ms() < deadline)
            if (!client_read(app_client))
                (void)poll(&(struct pollfd){.fd = app_client->fd, .events = POLLIN}, 1, 10);
        ok_named(i % 3 < 2 || decode_so_far(app_client, ORIBI_CODING_GZIP, &ends) == (i + 1) * PIECE_BYTES,
                 "%s: piece %zd", where_name, i);
    }
    ok_eq(oribi_reply_end(req), 0);
}

static void test_no_piece_of_a_burst_waits_for_the_application(void)
{
    struct site site;
    struct client *c = open_bursts(&site, true);
    site.app = asks_and_waits;
    struct answer answer = get(&site, c, "/", "gzip");
    ok(is_text(&answer, ORIBI_CODING_GZIP, (size_t)60 * PIECE_BYTES));
    site_close(&site);
}

/* Writes 2000 bytes, then 1500: of a Content-Length of 3000. */
static void lengths(struct oribi_req *req)
{
    keeps_it(req);
    struct iovec piece = {text, 2000};
    ok_eq(oribi_reply_write(req, &piece, 1), 0);
    piece = (struct iovec){text + 2000, 1500};
    if (path_is(req, "/long"))
        ok_eq(oribi_reply_write(req, &piece, 1), 0);
    (void)oribi_reply_end(req);
}

static void test_a_stream_against_its_content_length(void)
{
    struct site site;
    struct client *c = open_site(&site, lengths, "gzip");
    struct answer answer = get(&site, c, "/long", "gzip");
    ok(is_text(&answer, ORIBI_CODING_GZIP, 3000));
    ok(client_send(&site, c, GET("/short")));
    ok(!next_answer(&site, c, &answer));
    ok(pump_until(&site, c->eof || c->error));
    site_close(&site);
}

/* ---- headers ---- */

static uint32_t header_total;

static void with_headers(struct oribi_req *req)
{
    static struct oribi_header many[ORIBI__COMPRESS_HEADERS_MAX + 1];
    struct iovec body = {text, 9000};
    many[0] = (struct oribi_header){"Content-Type", "text/plain", 12, 10};
    for (uint32_t i = 1; i < header_total; i++)
        many[i] = (struct oribi_header){"X-One", "1", 5, 1};
    ok_eq(oribi_reply(req, 200, many, header_total, &body, 1), 0);
}

static void test_the_most_headers_and_one_more(void)
{
    for (uint32_t more = 0; more < 2; more++) {
        struct site site;
        header_total = ORIBI__COMPRESS_HEADERS_MAX + more;
        struct client *c = open_site(&site, with_headers, "gzip");
        struct answer answer = get(&site, c, "/", "gzip");
        if (more)
            ok(!has_line(&answer, "Content-Encoding: gzip") && answer.body_len == 9000);
        else
            ok(is_text(&answer, ORIBI_CODING_GZIP, 9000));
        site_close(&site);
    }
}

/* ---- conditions ---- */

static char seen[256];

static void tagged(struct oribi_req *req)
{
    static const struct oribi_header headers[] = {{"Content-Type", "text/plain", 12, 10}, {"ETag", "\"one\"", 4, 5}};
    seen[0] = '\0';
    for (uint32_t i = 0; i < req->head->field_count; i++)
        if (req->head->fields[i].id == ORIBI_FIELD_IF_NONE_MATCH)
            snprintf(seen, sizeof(seen), "%.*s", (int)req->head->fields[i].value_len, req->head->fields[i].value);
    struct iovec body = {text, path_is(req, "/304") ? 0 : 30000};
    ok_eq(oribi_reply(req, path_is(req, "/304") ? 304 : 200, headers, 2, &body, 1), 0);
}

static void test_tags_are_weak_and_come_back(void)
{
    struct site site;
    struct client *c = open_site(&site, tagged, "gzip");
    struct answer answer = get(&site, c, "/", "gzip");
    ok(is_text(&answer, ORIBI_CODING_GZIP, 30000) && has_line(&answer, "ETag: W/\"one\""));
    static const char *const paths[] = {"/304", "/200"};
    for (int i = 0; i < 2; i++) { /* an application that compares, and one that finds no text that is the same */
        char path[128];
        snprintf(path, sizeof(path), "%s HTTP/1.1\r\nIf-None-Match: W/\"one\"\r\nX:", paths[i]);
        answer = get(&site, c, path, "gzip");
        ok_eq(answer.status, 304);
        ok(has_line(&answer, "ETag: W/\"one\"") && has_line(&answer, "Vary: Accept-Encoding"));
        ok(!has_line(&answer, "Content-Type: text/plain") || i == 0);
        ok_eq(strcmp(seen, "W/\"one\", \"one\""), 0);
    }
    answer = get(&site, c, "/304 HTTP/1.1\r\nIf-None-Match: \"one\"\r\nX:", "gzip");
    ok(answer.status == 304 && has_line(&answer, "ETag: \"one\""));
    ok_eq(strcmp(seen, "\"one\""), 0);
    site_close(&site);
}

/* ---- private answers ---- */

static void with_cookie(struct oribi_req *req)
{
    static const struct oribi_header headers[] = {{"Content-Type", "text/plain", 12, 10}, {"Set-Cookie", "a=b", 10, 3}};
    struct iovec body = {text, 30000};
    ok_eq(oribi_reply(req, 200, headers, 2, &body, 1), 0);
}

static void test_private_answers_are_padded(void)
{
    struct site site;
    struct client *c = open_site(&site, with_cookie, "gzip");
    struct answer answer = get(&site, c, "/", "gzip");
    ok_eq(answer.content_length, 30000);
    site_close(&site);
    c = open_site(&site, with_cookie, "gzip");
    site.worker->compression->rules.private_too = true;
    int64_t least = INT64_MAX;
    int64_t most = 0;
    for (int i = 0; i < 300; i++) {
        answer = get(&site, c, "/", "gzip");
        if (!is_text(&answer, ORIBI_CODING_GZIP, 30000))
            ok(false);
        least = answer.content_length < least ? answer.content_length : least;
        most = answer.content_length > most ? answer.content_length : most;
    }
    ok_named(most - least > 100 && most - least <= ORIBI_COMPRESS_PADDING_BYTES_MAX + 8, "%lld to %lld bytes",
             (long long)least, (long long)most);
    site_close(&site);
}

/* ---- memory ---- */

static void steady(struct site *site, struct client *c, enum oribi_coding coding, const char *name)
{
    static const char *const paths[] = {"/30000", "/parts/30000", "/stream/30000", "/file/30000"};
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 4; i++)
            (void)get(site, c, paths[i], name);
    int64_t before = memory_in_use;
    uint64_t counted[4];
    for (int i = 0; i < 4; i++) {
        char request[200];
        struct answer answer = {0};
        snprintf(request, sizeof(request), REQUEST("GET", "%s", "%s"), paths[i], name);
        allocations = 0;
        ok(client_send(site, c, request));
        ok(next_answer(site, c, &answer));
        counted[i] = allocations;
        ok(is_text(&answer, coding, 30000));
    }
    ok_eq(counted[0], 0);
    ok_eq(counted[1], 0);
    ok_named(counted[2] <= 1, "%s: a stream allocates its head alone: %llu", name, (unsigned long long)counted[2]);
    ok_eq(counted[3], 0);
    ok_eq(memory_in_use, before);
}

static void test_an_answer_allocates_nothing(void)
{
    each_coding(steady);
}

static void failing(struct site *site, struct client *c, enum oribi_coding coding, const char *name)
{
    static const char *const paths[] = {"/30000", "/file/30000", "/stream/30000", "/300000"};
    uint64_t failures = 0;
    for (int i = 0; i < 4; i++) {
        bool failed = true;
        for (uint64_t n = 1; n < 60 && failed; n++) {
            char request[200];
            struct answer answer = {0};
            struct client *fresh = client_open(site);
            size_t bytes = i == 3 ? 300000 : 30000;
            snprintf(request, sizeof(request), REQUEST("GET", "%s", "%s"), paths[i], name);
            oribi__compression_destroy(site->worker->compression); /* so that a coder is made anew */
            site->worker->compression = oribi__compression_create(&site->options);
            ok(client_send(site, fresh, request));
            allocations_tried = 0;
            fail_at = n;
            bool whole_answer = next_answer(site, fresh, &answer);
            failed = allocations_tried >= fail_at;
            fail_at = 0;
            failures += failed;
            bool plain = whole_answer && !has_line(&answer, "Content-Encoding: gzip") && answer.body_len == bytes &&
                         memcmp(answer.body, text, bytes) == 0;
            bool own = whole_answer && answer.status >= 500; /* another part of the worker was without memory */
            ok_named(!whole_answer || plain || own || is_text(&answer, coding, bytes), "%s %s: %llu", name, paths[i],
                     (unsigned long long)n);
            client_close(site, fresh);
        }
    }
    ok_named(failures > 8, "%s: %llu failures", name, (unsigned long long)failures);
    struct answer answer = get(site, client_open(site), "/30000", name); /* c may have been refused */
    ok(is_text(&answer, coding, 30000));
}

/* Every allocation fails once: an answer is whole, compressed or not, or it is seen to be none. */
static void test_without_memory(void)
{
    each_coding(failing);
}

static void test_a_file_that_is_shorter_than_said(void)
{
    struct site site;
    struct client *c = open_site(&site, route_text, "gzip");
    struct answer answer = {0};
    ok_eq(ftruncate(text_fd, 20000), 0);
    ok(client_send(&site, c, GET("/file/30000")));
    ok(!next_answer(&site, c, &answer));
    ok(pump_until(&site, c->eof || c->error));
    ok_eq(lseek(text_fd, 0, SEEK_SET), 0);
    ok(write(text_fd, text, TEXT_BYTES) == TEXT_BYTES);
    site_close(&site);
}

int main(void)
{
    quiet_log();
    if (!oribi_compress_has(ORIBI_CODING_GZIP)) {
        tap_skip(1, "this build has no gzip");
        return done_testing();
    }
    make_text();
    run_everywhere(test_every_kind_of_answer);
    run_everywhere(test_http_1_0_and_head);
    run_everywhere(test_each_write_is_seen_at_once);
    run_everywhere(test_a_burst_is_flushed_once);
    run_everywhere(test_without_a_helper_each_write_is_flushed);
    run_everywhere(test_a_burst_that_breaks_off);
    run_everywhere(test_no_piece_of_a_burst_waits_for_the_application);
    run_everywhere(test_a_stream_against_its_content_length);
    test_the_most_headers_and_one_more();
    run_everywhere(test_tags_are_weak_and_come_back);
    test_private_answers_are_padded();
    run_everywhere(test_an_answer_allocates_nothing);
    test_without_memory();
    test_a_file_that_is_shorter_than_said();
    oribi_mem_free(text);
    close(text_fd);
    return done_testing();
}
