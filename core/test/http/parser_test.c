/* Tests that are easier in C than as a case in spec/: limits, state between calls, the contents of `head` after an
 * error. */
#include "http/parser.c"

#include "guard.h"
#include "http/parse_cuts.h"
#include "tap.h"

enum { INPUT_MAX = 200 * 1024 };

static struct guard arena;
static struct guard other;
static struct oribi_limits limits;
static struct oribi_head head;
static const char *reason;
static struct oribi_fault fault;

static ssize_t parse(const char *text, size_t n)
{
    bool agreed;
    oribi_head_release(&head);
    ssize_t result = cuts_parse(&limits, text, n, &arena, &other, &head, &reason, &agreed);
    ok_named(agreed, "every cut on every level agrees: %.40s", n ? text : "nothing");
    return result;
}

static ssize_t parse_str(const char *text)
{
    return parse(text, strlen(text));
}

static void test_a_plain_request(void)
{
    const char *text = "GET /a/b?c=d HTTP/1.1\r\nHost: example.com:8080\r\nX-One:\t 1 \t\r\n\r\nGET /next";
    ok_eq(parse_str(text), (long long)strlen(text) - 9);
    is_slice(head.method, "GET");
    is_slice(head.target, "/a/b?c=d");
    is_slice(head.path, "/a/b");
    is_slice(head.query, "c=d");
    is_slice(head.host, "example.com");
    is_slice(head.port, "8080");
    ok_eq(head.minor, 1);
    ok(head.keep_alive);
    ok(!head.has_body);
    ok_eq(head.field_count, 2);
    is_bytes(head.fields[1].name, head.fields[1].name_len, "X-One", 5);
    is_bytes(head.fields[1].value, head.fields[1].value_len, "1", 1);
    ok(oribi_head_field(&head, ORIBI_FIELD_HOST) == &head.fields[0]);
    ok(oribi_head_field(&head, ORIBI_FIELD_COOKIE) == NULL);
}

static void test_nothing_yet_is_again(void)
{
    ok_eq(parse_str(""), ORIBI_AGAIN);
    ok_eq(parse_str("GET / HTTP/1.1\r\nHost: a\r\n"), ORIBI_AGAIN);
    ok_eq(parse_str("GET / HTTP/1.1\r\nHost: a\r\n\r"), ORIBI_AGAIN);
}

/* "GET /aaa… HTTP/1.1" with a target of n bytes. */
static ssize_t parse_target(size_t n, const char *rest)
{
    static char text[64 * 1024];
    memcpy(text, "GET /", 5);
    memset(text + 5, 'a', n - 1);
    memcpy(text + 4 + n, rest, strlen(rest));
    return parse(text, 4 + n + strlen(rest));
}

static void test_target_limit(void)
{
    static const char rest[] = " HTTP/1.1\r\nHost: a\r\n\r\n";
    limits.target_bytes_max = 100;
    ok_eq(parse_target(100, rest), 4 + 100 + (long long)strlen(rest));
    ok_eq(parse_target(101, rest), ORIBI_ETARGET);
    ok_eq(parse_target(101, ""), ORIBI_ETARGET);
    ok_eq(parse_target(100, ""), ORIBI_AGAIN);
    is_slice(head.method, "");
    ok_eq(parse_target(5000, "\x01"), ORIBI_ETARGET);
    is_slice(head.method, "");
    oribi_limits_init(&limits);
    ok_eq(parse_target(16384, rest), 4 + 16384 + (long long)strlen(rest));
    ok_eq(parse_target(16385, rest), ORIBI_ETARGET);
}

static void test_head_limit_is_exact(void)
{
    const char *text = "GET / HTTP/1.1\r\nHost: a\r\nX: 1234567890\r\n\r\n";
    size_t n = strlen(text);
    limits.head_bytes_max = (uint32_t)n;
    ok_eq(parse_str(text), (long long)n);
    limits.head_bytes_max = (uint32_t)n - 1;
    ok_eq(parse_str(text), ORIBI_EHEAD);
    is_slice(head.method, "GET");
    is_slice(head.target, "/");
    limits.head_bytes_max = 20;
    ok_eq(parse_str(text), ORIBI_EHEAD);
    limits.head_bytes_max = 10;
    ok_eq(parse_str(text), ORIBI_ETARGET);
    oribi_limits_init(&limits);
}

static ssize_t parse_field_count(unsigned count)
{
    static char text[64 * 1024];
    size_t n = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a\r\n");
    for (unsigned i = 1; i < count; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "X-%u: %u\r\n", i, i);
    n += (size_t)snprintf(text + n, sizeof(text) - n, "\r\n");
    ssize_t result = parse(text, n);
    return result > 0 ? (ssize_t)head.field_count : result;
}

static void test_field_count_limit(void)
{
    ok_eq(parse_field_count(100), 100);
    ok_eq(parse_field_count(101), ORIBI_EHEAD);
    limits.fields_max = 3;
    ok_eq(parse_field_count(3), 3);
    ok_eq(parse_field_count(4), ORIBI_EHEAD);
    limits.fields_max = ORIBI_FIELDS_CAP;
    ok_eq(parse_field_count(ORIBI_FIELDS_CAP), ORIBI_FIELDS_CAP);
    ok_eq(parse_field_count(ORIBI_FIELDS_CAP + 1), ORIBI_EHEAD);
    oribi_limits_init(&limits);
}

static ssize_t parse_name(size_t n)
{
    static char text[8 * 1024];
    size_t at = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a\r\n");
    memset(text + at, 'n', n);
    memcpy(text + at + n, ": v\r\n\r\n", 7);
    return parse(text, at + n + 7);
}

static void test_name_limit(void)
{
    ok(parse_name(ORIBI_FIELD_NAME_BYTES_MAX) > 0);
    ok_eq(parse_name(ORIBI_FIELD_NAME_BYTES_MAX + 1), ORIBI_EHEAD);
}

static void test_method_limit(void)
{
    ok(parse_str("ABCDEFGHIJKLMNOPQRSTUVWXYZ012345 / HTTP/1.1\r\nHost: a\r\n\r\n") > 0);
    ok_eq(head.method.n, ORIBI_METHOD_BYTES_MAX);
    ok_eq(parse_str("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456 / HTTP/1.1\r\nHost: a\r\n\r\n"), ORIBI_EBAD);
    ok_eq(parse_str("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456"), ORIBI_EBAD);
}

static void test_repeats_fill_one_allocation(void)
{
    static char text[64 * 1024];
    size_t n = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a\r\n");
    for (int i = 1; i < 100; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s: %d\r\n", i % 3 ? "x-a" : "Cookie", i);
    n += (size_t)snprintf(text + n, sizeof(text) - n, "\r\n");
    ok_eq(parse(text, n), (long long)n);
    ok_eq(head.field_count, 3);
    ok(head.joined != NULL);
    ok(head.fields[1].value_len > 16 && memcmp(head.fields[1].value, "1, 2, 4, 5, 7, 8", 16) == 0);
    ok(head.fields[2].value_len > 14 && memcmp(head.fields[2].value, "3; 6; 9; 12; 15", 15) == 0);
    ok_eq(head.fields[2].id, ORIBI_FIELD_COOKIE);
}

static void test_an_error_keeps_what_is_known(void)
{
    ok_eq(parse_str("HEAD /x HTTP/2.0\r\n"), ORIBI_EVERSION);
    ok(head.is_head);
    is_slice(head.method, ""); /* a line that is not all good is known as it came, and in no other way */
    is_slice(head.target, "");
    ok_eq(parse_str("POST /y HTTP/1.0\r\nContent-Length: x\r\nX: 1\r\nX: 2\r\n\r\n"), ORIBI_EBAD);
    is_slice(head.method, "POST");
    is_slice(head.target, "/y");
    ok_eq(head.minor, 0);
    ok_eq(head.field_count, 3); /* as they came */
    ok(head.joined == NULL);
    is_str(reason, "invalid Content-Length");
}

static void test_an_error_keeps_the_parts_of_a_good_target_and_the_fields_in_front(void)
{
    limits.body_bytes_max = 4;
    ok_eq(parse_str("POST /up?x=1 HTTP/1.1\r\nHost: a.example:81\r\nUser-Agent: u\r\nContent-Length: 5\r\n\r\n"),
          ORIBI_EBODY);
    oribi_limits_init(&limits);
    is_slice(head.path, "/up");
    is_slice(head.query, "x=1");
    is_slice(head.host, "a.example");
    is_slice(head.port, "81");
    is_slice(oribi_head_value(&head, ORIBI_SLICE("user-agent")), "u");
    ok_eq(parse_str("GET http://b/y HTTP/1.1\r\nHost: a\r\nX Y: z\r\n\r\n"), ORIBI_EBAD);
    is_slice(head.host, "b");
    ok_eq(head.field_count, 1);
    ok_eq(parse_str("GET /y HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), ORIBI_EBAD);
    is_slice(head.path, "/y");
    is_slice(head.host, ""); /* which of the two is not known */
    ok_eq(parse_str("GET /y HTTP/1.1\r\nHost: a\tb\r\n\r\n"), ORIBI_EBAD);
    is_slice(head.host, "");
    ok_eq(parse_str("GET * HTTP/1.1\r\nHost: a\r\n\r\n"), ORIBI_EBAD);
    is_slice(head.target, "*");
    is_slice(head.path, "");
    limits.fields_max = 2;
    ok_eq(parse_str("GET /z?q HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\n\r\n"), ORIBI_EHEAD);
    oribi_limits_init(&limits);
    is_slice(head.query, "q");
    is_slice(head.host, "a");
    ok_eq(head.field_count, 2);
}

/* Refuses `text`, says `why`, and points at the byte at `at` (-1: at none). */
static void ok_fault(const char *text, const char *why, ssize_t at)
{
    struct oribi_parser parser = {0};
    ssize_t result = parse_str(text);
    bool refused = result < 0 && result != ORIBI_AGAIN;
    ok_named(refused && cuts_fault_at == at, "%s: %zd, byte %zd", why, result, cuts_fault_at);
    is_str(reason, why);
    oribi_head_release(&head);
    (void)oribi_parser_head(&parser, &limits, text, strlen(text), &head);
    fault = parser.fault;
    oribi_head_release(&head);
}

static void test_a_fault_names_its_byte_and_the_option(void)
{
    ok_fault("GET /a<b HTTP/1.1\r\n", "byte not allowed in the target", 6);
    ok_fault("\r\nGET /\x01 HTTP/1.1\r\n", "byte not allowed in the target", 7);
    ok_fault("GET /a#b HTTP/1.1\r\n", "fragment in the target", 6);
    ok_fault("GE(T / HTTP/1.1\r\n", "method is not a token", 2);
    ok_fault("GET / HTTP/1.x\r\n", "malformed HTTP version or line end", 13);
    ok_fault("GET /\r\n", "no HTTP version in the request line", -1);
    ok_fault("\nGET / HTTP/1.1\r\n", "bare LF", 0);
    limits.strict_target = true;
    ok_fault("GET /a|b HTTP/1.1\r\n", "byte not allowed in the target while strict_target is on", 6);
    ok_fault("GET /a<b HTTP/1.1\r\n", "byte not allowed in the target", 6);
    oribi_limits_init(&limits);
}

static void test_of_a_field_line_only_what_is_no_secret_is_shown(void)
{
#define HEAD "GET / HTTP/1.1\r\nHost: a\r\n"
    ok_fault(HEAD "Cookie: a\x01z\r\n\r\n", "control in a field line", 25 + 9);
    is_slice(fault.field, "Cookie");
    ok_fault(HEAD "Cookie: a\nX: y\r\n\r\n", "bare LF", 25 + 9);
    is_slice(fault.field, "Cookie");
    ok_fault(HEAD "Co\x80okie: a\r\n\r\n", "field name is not a token", 25 + 2);
    is_slice(fault.field, "Co");
    ok_fault(HEAD "Authorization Basic abc\r\n\r\n", "white space behind a field name", 25 + 13);
    is_slice(fault.field, "Authorization");
    ok_fault(HEAD " folded\r\n\r\n", "field line starts with white space", 25);
    is_slice(fault.field, "");
    ok_fault(HEAD "Authorization: a\r\nAuthorization: b\r\n\r\n", "field may not be repeated", -1);
    is_slice(fault.field, "Authorization");
    ok_fault(HEAD "Content_Length: 5\r\n\r\n", "field name imitates a framing field", -1);
    is_slice(fault.field, "Content_Length");
    ok_fault(HEAD "Content-Length: 5x\r\n\r\n", "invalid Content-Length", -1);
    is_slice(fault.field, "Content-Length: 5x");
    ok_fault(HEAD "Transfer-Encoding: \t chunked, chunked\r\n\r\n", "malformed Transfer-Encoding", -1);
    is_slice(fault.field, "Transfer-Encoding: \t chunked, chunked");
    ok_fault("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "invalid Host field", -1);
    is_slice(fault.field, "Host: a b");
    ok_fault("GET / HTTP/1.1\r\n\r\n", "no Host field", -1);
    ok(fault.field.p == NULL);
#undef HEAD
}

static void test_the_first_line_is_found_in_anything(void)
{
    static const char *const cases[][2] = {
        {"", ""}, {"\r\n", ""}, {"GE", "GE"}, {"\r\n\nGET / X\r\nHost: a\r\n", "GET / X"}, {"a\rb", "a"}, {"a\nb", "a"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        is_slice(oribi_parser_first_line(cases[i][0], strlen(cases[i][0])), cases[i][1]);
}

static void test_grammar_is_judged_before_meaning(void)
{
    /* Byte by byte the later line's fault is found before the head is complete, so it must be the verdict of the
     * whole as well. */
    ok_eq(parse_str("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\nX Y: 1\r\n\r\n"), ORIBI_EBAD);
    is_str(reason, "white space behind a field name");
    ok_eq(parse_str("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n"), ORIBI_EBODY);
}

/* Work is counted in bytes the scanner is asked to look at. */
static size_t looked_at;
static size_t counting_text(const char *p, size_t n)
{
    looked_at += n;
    return oribi_scan_level(ORIBI_SCAN_SCALAR)->text(p, n);
}

static size_t counting_target(const char *p, size_t n, size_t *query)
{
    looked_at += n;
    return oribi_scan_level(ORIBI_SCAN_SCALAR)->target(p, n, query);
}

static void test_byte_by_byte_is_not_quadratic(void)
{
    static char text[40 * 1024];
    struct oribi_scan counting = *oribi_scan_level(ORIBI_SCAN_SCALAR);
    const struct oribi_scan *chosen = oribi_scan_active;
    struct oribi_parser parser = {0};
    counting.text = counting_text;
    counting.target = counting_target;
    memset(text, 'a', sizeof(text));
    memcpy(text, "GET /", 5);
    memcpy(text + 10000, " HTTP/1.1\r\nX: ", 14);
    oribi_scan_active = &counting;
    ssize_t result = ORIBI_AGAIN;
    for (size_t n = 1; n <= sizeof(text) && result == ORIBI_AGAIN; n++)
        result = oribi_parser_head(&parser, &limits, text, n, &head);
    oribi_scan_active = chosen;
    ok_eq(result, ORIBI_AGAIN);
    ok_named(looked_at < 3 * sizeof(text), "40 KiB byte by byte looks at %zu bytes", looked_at);
}

static void test_a_value_by_its_name(void)
{
    static const char text[] = "GET / HTTP/1.1\r\nHost: a\r\nX-Long: one\r\nx-long: two\r\nEmpty:\r\n\r\n";
    struct oribi_parser parser = {0};
    ok_eq(oribi_parser_head(&parser, &limits, text, sizeof(text) - 1, &head), sizeof(text) - 1);
    ok(oribi_slice_equal(oribi_head_value(&head, ORIBI_SLICE("x-long")), ORIBI_SLICE("one, two")));
    ok_eq(oribi_head_value(&head, ORIBI_SLICE("empty")).n, 0);
    ok_eq(oribi_head_value(&head, ORIBI_SLICE("x-longe")).n, 0);
    oribi_head_release(&head);
}

int main(void)
{
    arena = guard_alloc(INPUT_MAX);
    other = guard_alloc(INPUT_MAX);
    oribi_limits_init(&limits);
    test_a_plain_request();
    test_a_value_by_its_name();
    test_nothing_yet_is_again();
    test_target_limit();
    test_head_limit_is_exact();
    test_field_count_limit();
    test_name_limit();
    test_method_limit();
    test_repeats_fill_one_allocation();
    test_an_error_keeps_what_is_known();
    test_an_error_keeps_the_parts_of_a_good_target_and_the_fields_in_front();
    test_a_fault_names_its_byte_and_the_option();
    test_of_a_field_line_only_what_is_no_secret_is_shown();
    test_the_first_line_is_found_in_anything();
    test_grammar_is_judged_before_meaning();
    test_byte_by_byte_is_not_quadratic();
    oribi_head_release(&head);
    return done_testing();
}
