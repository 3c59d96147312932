/* Headers of an operator in every answer. */
#include "http/added.c"

#include "oribi/base/limits.h"
#include "tap.h"

#define DATE "Sun, 06 Nov 1994 08:49:37 GMT"

static char error[ORIBI_ERROR_TEXT_CAP];

static void refused(const char *line, const char *want)
{
    struct oribi_header header;
    error[0] = '\0';
    ok_named(oribi_added_read(line, &header, error) == ORIBI_EINVAL, "%.60s is refused", line);
    ok_named(strstr(error, want) != NULL, "%s: %s", error, want);
}

static void test_lines(void)
{
    struct oribi_header header;
    ok_eq(oribi_added_read("X-Frame-Options: \tDENY", &header, error), 0);
    is_bytes(header.name, header.name_len, "X-Frame-Options", 15);
    is_bytes(header.value, header.value_len, "DENY", 4);
    ok_eq(oribi_added_read("Link:<https://a/b>; rel=preload", &header, error), 0);
    is_bytes(header.value, header.value_len, "<https://a/b>; rel=preload", 26);
    refused("X-A", "needs to be NAME:TEXT");
    refused(":x", "a name that no header may have");
    refused("X A:x", "a name that no header may have");
    refused("X-A:", "a value that no header may have");
    refused("X-A:b ", "a value that no header may have");
    refused("X-A:b\r\nX-B:c", "a value that no header may have");
    refused("Content-LENGTH:5", "the server or the application alone sets");
    refused("transfer-encoding:chunked", "the server or the application alone sets");
    refused("Connection:close", "the server or the application alone sets");
    refused("date:now", "the server or the application alone sets");
}

/* The head of an answer with these headers of the application and of the operator. */
static const char *head_with(struct oribi_header *headers, uint32_t count, char *const *lines, size_t line_count,
                             int status)
{
    static char text[ORIBI_RESPONSE_HEAD_BYTES_MAX];
    struct oribi_added *added;
    ok_eq(oribi_added_create(lines, line_count, &added, error), 0);
    struct oribi_response res = {.status = status,
                                 .headers = headers,
                                 .header_count = count,
                                 .minor = 1,
                                 .keep_alive = true,
                                 .detached = status == 101,
                                 .body_len = 0,
                                 .date = DATE,
                                 .added = added};
    ssize_t n = oribi_response_head(&res, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    oribi_mem_free(added);
    return text;
}

static void test_what_the_application_sets_is_not_doubled(void)
{
    char *const lines[] = {"X-One:1", "X-Two: 2"};
    struct oribi_header headers[] = {{"x-ONE", "mine", 5, 4}, {"X-Two", NULL, 5, 0}};
    is_str(head_with(NULL, 0, lines, 2, 200),
           "HTTP/1.1 200 OK\r\nX-One: 1\r\nX-Two: 2\r\nDate: " DATE "\r\nContent-Length: 0\r\n\r\n");
    is_str(head_with(headers, 2, lines, 2, 404),
           "HTTP/1.1 404 Not Found\r\nx-ONE: mine\r\nX-Two: 2\r\nDate: " DATE "\r\nContent-Length: 0\r\n\r\n");
    ok(!strstr(head_with(NULL, 0, lines, 2, 101), "X-One"));
}

static void test_answers_of_our_own_have_them(void)
{
    char *const lines[] = {"X-One:1"};
    char text[512];
    struct oribi_added *added;
    ok_eq(oribi_added_create(lines, 1, &added, error), 0);
    struct oribi_server_answer own = {.status = 503, .retry_after_s = 1, .date = DATE, .added = added};
    size_t n = oribi_response_own(&own, text, sizeof(text));
    ok(memmem(text, n, "\r\nX-One: 1\r\n", 12) && memmem(text, n, "\r\n\r\n503 Service Unavailable\n", 28));
    own.page = ORIBI_SLICE("<p>");
    own.type = ORIBI_SLICE("text/html");
    n = oribi_response_own(&own, text, sizeof(text));
    ok(memmem(text, n, "Content-Type: text/html\r\n", 25) && memmem(text, n, "Content-Length: 3\r\n", 19));
    ok(n > 4 && memcmp(text + n - 4, "\r\n\r\n", 4) == 0);
    oribi_mem_free(added);
}

static void test_a_head_that_they_do_not_fit_into(void)
{
    char *const lines[] = {"X-One:1"};
    char text[512];
    struct oribi_added *added;
    ok_eq(oribi_added_create(lines, 1, &added, error), 0);
    size_t least = 0;
    for (size_t cap = 1; cap <= sizeof(text); cap++) {
        struct oribi_response res = {.status = 200, .minor = 1, .date = DATE, .added = added};
        ssize_t n = oribi_response_head(&res, text, cap);
        if (n > 0 && !least)
            least = cap;
        if (n > 0 ? (size_t)n > cap : n != ORIBI_ELIMIT || least)
            ok_named(false, "cap %zu gives %zd", cap, n);
    }
    ok(least > 0);
    oribi_mem_free(added);
}

static void test_maxima(void)
{
    static char lines[ORIBI_ADDED_MAX + 1][32];
    static char text[2 * ORIBI_ADDED_VALUE_MAX];
    char *list[ORIBI_ADDED_MAX + 1];
    struct oribi_added *added;
    struct oribi_header header;
    for (int i = 0; i <= ORIBI_ADDED_MAX; i++) {
        (void)snprintf(lines[i], sizeof(lines[i]), "X-%d:v", i);
        list[i] = lines[i];
    }
    ok_eq(oribi_added_create(list, ORIBI_ADDED_MAX, &added, error), 0);
    oribi_mem_free(added);
    ok_eq(oribi_added_create(list, ORIBI_ADDED_MAX + 1, &added, error), ORIBI_EINVAL);
    (void)snprintf(text, sizeof(text), "X-A:%0*d", ORIBI_ADDED_VALUE_MAX, 0);
    ok_eq(oribi_added_read(text, &header, error), 0);
    (void)snprintf(text, sizeof(text), "X-A:%0*d", ORIBI_ADDED_VALUE_MAX + 1, 0);
    refused(text, "is too long");
    (void)snprintf(text, sizeof(text), "%0*d:v", ORIBI_ADDED_NAME_MAX, 0);
    ok_eq(oribi_added_read(text, &header, error), 0);
    (void)snprintf(text, sizeof(text), "%0*d:v", ORIBI_ADDED_NAME_MAX + 1, 0);
    refused(text, "is too long");
    char *const twice[] = {"X-A:1", "x-a:2"};
    ok_eq(oribi_added_create(twice, 2, &added, error), ORIBI_EINVAL);
    is_str(error, "header \"x-a:2\" has a name that another one has");
    for (int more = 0; more <= 1; more++) {
        static char big[2][ORIBI_ADDED_VALUE_MAX + 8];
        int rest = ORIBI_ADDED_BYTES_MAX / 2 - (int)strlen("X-A: \r\n") + 1;
        (void)snprintf(big[0], sizeof(big[0]), "X-A:%0*d", rest - 1, 0);
        (void)snprintf(big[1], sizeof(big[1]), "X-B:%0*d", rest - 1 + more, 0);
        char *const both[] = {big[0], big[1]};
        ok_eq(oribi_added_create(both, 2, &added, error), more ? ORIBI_EINVAL : 0);
        if (!more)
            ok_eq(added->bytes, ORIBI_ADDED_BYTES_MAX);
        oribi_mem_free(added);
    }
}

int main(void)
{
    test_lines();
    test_what_the_application_sets_is_not_doubled();
    test_answers_of_our_own_have_them();
    test_a_head_that_they_do_not_fit_into();
    test_maxima();
    return done_testing();
}
