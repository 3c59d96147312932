/* Buffers, limits and faults; what heads look like is in spec/response. */
#include "http/response.c"

#include "http/scan_private.h"

#include "guard.h"
#include "tap.h"

#define DATE "Sun, 06 Nov 1994 08:49:37 GMT"
#define HEADER(name, value)                                                                                            \
    {                                                                                                                  \
        name, value, sizeof(name) - 1, sizeof(value) - 1                                                               \
    }
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static char dst[512 * 1024];

static struct oribi_response response(int status, const struct oribi_header *headers, size_t count, int64_t body_len)
{
    return (struct oribi_response){.status = status,
                                   .headers = headers,
                                   .header_count = (uint32_t)count,
                                   .minor = 1,
                                   .keep_alive = true,
                                   .body_len = body_len,
                                   .date = DATE};
}

static void test_a_hello(void)
{
    static const struct oribi_header headers[] = {HEADER("Content-Type", "text/plain")};
    struct oribi_response res = response(200, headers, 1, 13);
    ssize_t n = oribi_response_head(&res, dst, sizeof(dst));
    const char *want = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nDate: " DATE "\r\nContent-Length: 13\r\n\r\n";
    is_bytes(dst, (size_t)n, want, strlen(want));
    ok_eq(res.framing, ORIBI_FRAMING_LENGTH);
    ok_eq(res.content_length, 13);
    ok(!res.closes);
}

static void test_every_cap_either_fits_or_says_so(void)
{
    static const struct oribi_header headers[] = {HEADER("Content-Type", "text/plain"), HEADER("X-Long", "0123456789"),
                                                  HEADER("X-Folded", "0123\r\n 4567\r\n"),
                                                  HEADER("Connection", "close, upgrade")};
    bool good = true;
    bool fitted = false;
    for (size_t cap = 0; cap < 600; cap++) {
        struct guard out = guard_alloc(cap);
        struct oribi_response res = response(511, headers, COUNT(headers), INT64_MAX);
        res.lines = ORIBI_SLICE("Server-Timing: queue;dur=0.001\r\n");
        ssize_t n = oribi_response_head(&res, out.p, cap);
        good &= n == ORIBI_ELIMIT ? !fitted : n > 0 && (size_t)n <= cap;
        fitted |= n > 0;
        guard_free(&out);
    }
    ok(good);
    ok(fitted);
}

static void refuses(const struct oribi_header *header, const char *reason)
{
    struct oribi_header headers[] = {HEADER("X-Good", "1"), *header};
    struct oribi_response res = response(200, headers, 2, 0);
    ok_eq(oribi_response_head(&res, dst, sizeof(dst)), ORIBI_EAPP);
    is_str(res.reason, reason);
    ok_eq(res.reason_index, 1);
    const char *why = NULL;
    if (strcmp(reason, "Content-Length is no number") != 0) {
        ok_eq(oribi_response_interim(103, headers, 2, dst, sizeof(dst), &why), ORIBI_EAPP);
        is_str(why, reason);
    }
}

static void test_every_byte_of_names_and_values_is_checked(void)
{
    bool good = true;
    for (int c = 0; c < 256; c++)
        for (size_t at = 0; at < 40; at++) {
            char part[40];
            memset(part, 'a', sizeof(part));
            part[at] = (char)c;
            struct oribi_header name = {part, "v", sizeof(part), 1};
            struct oribi_header value = {"n", part, 1, sizeof(part)};
            struct oribi_response res = response(200, &name, 1, 0);
            bool token = (oribi__scan_class[c] & SCAN_TOKEN) != 0;
            bool end = at == sizeof(part) - 1 && (c == '\r' || c == '\n'); /* cut off */
            bool text = c == '\t' || (c >= 0x20 && c != 0x7f) || end;
            good &= (oribi_response_head(&res, dst, sizeof(dst)) > 0) == token;
            res.headers = &value;
            good &= (oribi_response_head(&res, dst, sizeof(dst)) > 0) == text;
        }
    ok(good);
}

static void test_faults_name_the_header(void)
{
    refuses(&(struct oribi_header)HEADER("", "v"), "header name is not a token");
    refuses(&(struct oribi_header)HEADER("a b", "v"), "header name is not a token");
    refuses(&(struct oribi_header)HEADER("a:", "v"), "header name is not a token");
    refuses(&(struct oribi_header)HEADER("a", "v\r\nSet-Cookie: x"), "control character in a header value");
    refuses(&(struct oribi_header)HEADER("a", "v\nw"), "control character in a header value");
    refuses(&(struct oribi_header)HEADER("a", "v\0"), "control character in a header value");
    refuses(&(struct oribi_header)HEADER("Content-Length", "5x"), "Content-Length is no number");
    refuses(&(struct oribi_header)HEADER("Content-Length", "5x "), "Content-Length is no number");
    refuses(&(struct oribi_header)HEADER("Content-Length", "9223372036854775808"), "Content-Length is no number");
}

static void test_status_range(void)
{
    static const int wrong[] = {-1, 0, 99, 100, 101, 103, 199, 1000};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct oribi_response res = response(wrong[i], NULL, 0, 0);
        ok_eq(oribi_response_head(&res, dst, sizeof(dst)), ORIBI_EAPP);
        ok_eq(res.reason_index, UINT32_MAX);
    }
    static const int right[] = {599, 600, 999};
    for (size_t i = 0; i < COUNT(right); i++) {
        struct oribi_response res = response(right[i], NULL, 0, 0);
        char line[16];
        (void)snprintf(line, sizeof(line), "HTTP/1.1 %d \r\n", right[i]); /* fits */
        ok(oribi_response_head(&res, dst, sizeof(dst)) > 0);
        ok(memcmp(dst, line, 15) == 0);
    }
}

static void test_head_limits(void)
{
    static struct oribi_header headers[ORIBI_RESPONSE_FIELDS_MAX + 1];
    for (size_t i = 0; i < COUNT(headers); i++)
        headers[i] = (struct oribi_header)HEADER("X", "1");
    struct oribi_response res = response(200, headers, ORIBI_RESPONSE_FIELDS_MAX, 0);
    ok(oribi_response_head(&res, dst, sizeof(dst)) > 0);
    res.header_count++;
    ok_eq(oribi_response_head(&res, dst, sizeof(dst)), ORIBI_EAPP);

    static char value[ORIBI_RESPONSE_HEAD_BYTES_MAX];
    memset(value, 'v', sizeof(value));
    struct oribi_header large = {"X", value, 1, sizeof(value) - 400};
    res = response(200, &large, 1, 0);
    ok(oribi_response_head(&res, dst, sizeof(dst)) > 0);
    ok_eq(oribi_response_head(&res, dst, 4096), ORIBI_ELIMIT);
    large.value_len = sizeof(value);
    ok_eq(oribi_response_head(&res, dst, sizeof(dst)), ORIBI_EAPP);
    is_str(res.reason, "response head over the limit");
}

static void test_error_answers_fit_into_512_bytes(void)
{
    static const int statuses[] = {400, 408, 413, 414, 417, 431, 500, 501, 503, 504, 505, 511, 599};
    for (size_t i = 0; i < COUNT(statuses); i++) {
        struct guard out = guard_alloc(512);
        memset(out.p, 0, out.n);
        size_t n = oribi_response_error(statuses[i], DATE, ORIBI_SLICE("Oribi"), false, out.p, 512);
        char line[64];
        snprintf(line, sizeof(line), "HTTP/1.1 %d ", statuses[i]);
        ok(n > 0 && n <= 512 && memcmp(out.p, line, strlen(line)) == 0);
        ok(memmem(out.p, n, "\r\nConnection: close\r\n", 21) != NULL);
        guard_free(&out);
    }
    size_t n = oribi_response_error(404, DATE, oribi_slice(NULL, 0), false, dst, 512);
    const char *want = "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nDate: " DATE
                       "\r\nContent-Length: 14\r\nConnection: close\r\n\r\n404 Not Found\n";
    is_bytes(dst, n, want, strlen(want));
    ok_eq(oribi_response_error(404, DATE, oribi_slice(NULL, 0), true, dst, 512), n - 14);
    static char server[4096];
    memset(server, 's', sizeof(server));
    ok_eq(oribi_response_error(404, DATE, oribi_slice(server, sizeof(server)), false, dst, 512), n);
}

static void test_interim_answers(void)
{
    static const struct oribi_header headers[] = {
        HEADER("Link", "</a.css>; rel=preload"),
        HEADER("Content-Length", "5"),
        HEADER("transfer-encoding", "chunked"),
    };
    const char *reason = "unset";
    ssize_t n = oribi_response_interim(103, headers, 3, dst, sizeof(dst), &reason);
    const char *want = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";
    is_bytes(dst, (size_t)n, want, strlen(want));
    is_str(reason, NULL);
    n = oribi_response_interim(100, NULL, 0, dst, sizeof(dst), NULL);
    is_bytes(dst, (size_t)n, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    ok_eq(oribi_response_interim(101, NULL, 0, dst, sizeof(dst), NULL), ORIBI_EAPP);
    ok_eq(oribi_response_interim(200, NULL, 0, dst, sizeof(dst), NULL), ORIBI_EAPP);
    ok_eq(oribi_response_interim(99, NULL, 0, dst, sizeof(dst), NULL), ORIBI_EAPP);
    ok_eq(oribi_response_interim(103, headers, 3, dst, 70, NULL), ORIBI_ELIMIT);
}

int main(void)
{
    test_a_hello();
    test_every_cap_either_fits_or_says_so();
    test_every_byte_of_names_and_values_is_checked();
    test_faults_name_the_header();
    test_status_range();
    test_head_limits();
    test_error_answers_fit_into_512_bytes();
    test_interim_answers();
    return done_testing();
}
