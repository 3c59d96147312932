/* Results and limits of the parsers as a library; what heads become is in spec/request, spec/response_head and, for
 * both languages, spec/from_string. */
#include "http/from_string.c"

#include "guard.h"
#include "oribi/base/mem.h"
#include "tap.h"

static struct oribi_head head;
static struct oribi_response_head response;

static ssize_t request(const char *text)
{
    struct guard copy = guard_str(text);
    ssize_t result = oribi_from_string_request(copy.p, copy.n, &head);
    oribi_head_release(&head);
    guard_free(&copy);
    return result;
}

static void test_a_result_is_a_length_or_one_of_two_codes(void)
{
    ok_eq(request("GET / HTTP/1.0\r\n\r\nbody"), 18);
    ok_eq(request(""), ORIBI_STRING_INCOMPLETE);
    ok_eq(request("GET / HTTP/1.0\r\n"), ORIBI_STRING_INCOMPLETE);
    ok_eq(request("GET / HTTP/1.0\n\n"), ORIBI_STRING_BROKEN);
}

static void test_every_refusal_is_one_code(void)
{
    ok_eq(request("GET / HTTP/2.0\r\n\r\n"), ORIBI_STRING_BROKEN);
    ok_eq(request("GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n"), ORIBI_STRING_BROKEN);
    ok_eq(request("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n"), ORIBI_STRING_BROKEN);
}

static void test_methods_and_bodies_are_the_callers_matter(void)
{
    ok(request("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n") > 0);
    ok(request("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775807\r\n\r\n") > 0);
    ok_eq(request("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775808\r\n\r\n"), ORIBI_STRING_BROKEN);
}

/* A line, so many fields, the empty line. */
static ssize_t with_fields(const char *line, int fields, bool is_request)
{
    char *text = oribi_mem_alloc(64 * 1024, 1);
    size_t n = (size_t)snprintf(text, 64, "%s", line);
    for (int i = 0; i < fields; i++)
        n += (size_t)snprintf(text + n, 32, "X%d: %d\r\n", i, i);
    memcpy(text + n, "\r\n", 2);
    ssize_t result =
        is_request ? oribi_from_string_request(text, n + 2, &head) : oribi_from_string_response(text, n + 2, &response);
    oribi_mem_free(text);
    return result < 0 ? result : result == (ssize_t)n + 2;
}

static void test_most_fields_and_one_more(void)
{
    ok_eq(with_fields("GET / HTTP/1.0\r\n", ORIBI_STRING_FIELDS_MAX, true), 1);
    ok_eq(head.field_count, ORIBI_STRING_FIELDS_MAX);
    ok_eq(with_fields("GET / HTTP/1.0\r\n", ORIBI_STRING_FIELDS_MAX + 1, true), ORIBI_STRING_BROKEN);
    ok_eq(with_fields("HTTP/1.1 200 OK\r\n", ORIBI_STRING_FIELDS_MAX, false), 1);
    ok_eq(response.field_count, ORIBI_STRING_FIELDS_MAX);
    ok_eq(with_fields("HTTP/1.1 200 OK\r\n", ORIBI_STRING_FIELDS_MAX + 1, false), ORIBI_STRING_BROKEN);
}

/* `start`, as many bytes as make the head so long, `end`. */
static ssize_t of_length(const char *start, size_t n, const char *end, bool is_request)
{
    struct guard text = guard_alloc(n);
    memset(text.p, 'v', n);
    memcpy(text.p, start, strlen(start));
    memcpy(text.p + n - strlen(end), end, strlen(end));
    ssize_t result =
        is_request ? oribi_from_string_request(text.p, n, &head) : oribi_from_string_response(text.p, n, &response);
    guard_free(&text);
    return result;
}

static void test_longest_head_and_one_byte_more(void)
{
    const size_t most = ORIBI_HEAD_BYTES_CAP;
    ok_eq(of_length("GET / HTTP/1.0\r\nA: ", most, "\r\n\r\n", true), (long long)most);
    ok_eq(of_length("GET / HTTP/1.0\r\nA: ", most + 1, "\r\n\r\n", true), ORIBI_STRING_BROKEN);
    ok_eq(of_length("GET / HTTP/1.0\r\nA: ", most - 1, "", true), ORIBI_STRING_INCOMPLETE);
    ok_eq(of_length("GET / HTTP/1.0\r\nA: ", most, "", true), ORIBI_STRING_BROKEN);
    ok_eq(of_length("GET /", most, " HTTP/1.0\r\n\r\n", true), (long long)most);
    ok_eq(of_length("GET /", most + 1, " HTTP/1.0\r\n\r\n", true), ORIBI_STRING_BROKEN);
    ok_eq(of_length("HTTP/1.1 200 ", most, "\r\n\r\n", false), (long long)most);
    ok_eq(of_length("HTTP/1.1 200 ", most + 1, "\r\n\r\n", false), ORIBI_STRING_BROKEN);
    ok_eq(of_length("HTTP/1.1 200 ", most - 1, "", false), ORIBI_STRING_INCOMPLETE);
    ok_eq(of_length("HTTP/1.1 200 ", most, "", false), ORIBI_STRING_BROKEN);
}

int main(void)
{
    test_a_result_is_a_length_or_one_of_two_codes();
    test_every_refusal_is_one_code();
    test_methods_and_bodies_are_the_callers_matter();
    test_most_fields_and_one_more();
    test_longest_head_and_one_byte_more();
    return done_testing();
}
