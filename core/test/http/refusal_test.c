/* Reasons: each has a word and a status; what each kind of bad head counts as. */
#include "http/refusal.c"

#include "oribi/http/head.h"
#include "tap.h"

#include <string.h>

static void test_each_reason_has_a_word_of_its_own_and_an_error_status(void)
{
    for (enum oribi_refusal i = 0; i < ORIBI_REFUSALS; i++) {
        const char *name = oribi_refusal_name(i);
        int status = oribi_refusal_status(i);
        ok_named(name && name[strspn(name, "abcdefghijklmnopqrstuvwxyz_")] == '\0', "%s is a word", name);
        ok_named(i == ORIBI_REFUSAL_OTHER ? status == 0 : status >= 400 && status <= 507, "%s has a status", name);
        for (enum oribi_refusal k = 0; k < i; k++)
            if (strcmp(name, oribi_refusal_name(k)) == 0)
                ok_named(false, "%s stands for two reasons", name);
    }
}

/* A code that is answered has a reason with its status. */
static void test_codes_with_a_status_have_a_reason_with_the_same(void)
{
    static const int codes[] = {ORIBI_EBAD,     ORIBI_ETARGET, ORIBI_EHEAD,   ORIBI_EBODY,
                                ORIBI_EEXPECT,  ORIBI_ECODING, ORIBI_EMETHOD, ORIBI_ESTORE,
                                ORIBI_EVERSION, ORIBI_EFULL,   ORIBI_ENOMEM,  ORIBI_ECLOSED};
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        ok_named(oribi_refusal_status(oribi_refusal_of(codes[i], ORIBI_REFUSAL_FIELD)) == oribi_error_status(codes[i]),
                 "%s", oribi_error_text(codes[i]));
}

static const struct {
    const char *text;
    const char *name;
} heads[] = {
    {"\n", "request_line"},
    {"GET\r\n", "request_line"},
    {"GET /a<b HTTP/1.1\r\n", "request_line"},
    {"GET a HTTP/1.1\r\nHost: a\r\n\r\n", "request_line"},
    {"GET * HTTP/1.1\r\nHost: a\r\n\r\n", "request_line"},
    {"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n", "proxy_header"},
    {"GET / HTTP/2.0\r\n\r\n", "version"},
    {"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", "connect"},
    {"GET /a-target-over-the-limit HTTP/1.1\r\n", "target_bytes_max"},
    {"GET / HTTP/1.1\r\nHost: a\r\nX: over the limit of the head\r\nY: 123456789012345678901234567890",
     "head_bytes_max"},
    {"GET / HTTP/1.1\r\nA:\r\nB:\r\nC:\r\nD:\r\nE:\r\n\r\n", "fields_max"},
    {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", "field"},
    {"GET / HTTP/1.1\r\nno colon\r\n\r\n", "field"},
    {"GET / HTTP/1.1\r\nA: a\n\r\n", "field"},
    {"GET / HTTP/1.1\r\nHost: a\r\nContent-Type: a\r\nContent-Type: b\r\n\r\n", "field"},
    {"GET / HTTP/1.1\r\n\r\n", "host"},
    {"GET / HTTP/1.1\r\nHost:\r\n\r\n", "host"},
    {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "host"},
    {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "host"},
    {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", "framing"},
    {"GET / HTTP/1.1\r\nHost: a\r\nContent_Length: 1\r\n\r\n", "framing"},
    {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "framing"},
    {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "framing"},
    {"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n", "framing"},
    {"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", "transfer_coding"},
    {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n", "body_bytes_max"},
    {"GET / HTTP/1.1\r\nHost: a\r\nExpect: much\r\n\r\n", "expect"},
};

/* The reason hangs on the bytes alone, not on how they were cut into calls. */
static void test_what_a_head_is_refused_for(void)
{
    struct oribi_limits limits;
    oribi_limits_init(&limits);
    limits.target_bytes_max = 20;
    limits.head_bytes_max = 80;
    limits.fields_max = 4;
    limits.body_bytes_max = 10;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        size_t len = strlen(heads[i].text);
        for (size_t first = 0; first <= len; first += len) {
            struct oribi_parser parser = {0};
            static struct oribi_head head;
            ssize_t result = ORIBI_AGAIN;
            for (size_t n = first ? first : 1; n <= len && result == ORIBI_AGAIN; n++)
                result = oribi_parser_head(&parser, &limits, heads[i].text, n, &head);
            const char *name = oribi_refusal_name(parser.fault.refusal);
            int status = oribi_refusal_status(parser.fault.refusal);
            ok_named(result < 0 && strcmp(name, heads[i].name) == 0 && status == oribi_error_status((int)result),
                     "%s (%d), not %s: %.40s", heads[i].name, status, name, heads[i].text);
        }
    }
}

int main(void)
{
    test_each_reason_has_a_word_of_its_own_and_an_error_status();
    test_codes_with_a_status_have_a_reason_with_the_same();
    test_what_a_head_is_refused_for();
    return done_testing();
}
