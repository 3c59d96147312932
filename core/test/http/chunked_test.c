/* Limits and long inputs; the grammar's cases are in spec/chunked. */
#include "http/chunked.c"

#include "guard.h"
#include "http/chunk_cuts.h"
#include "tap.h"

enum { INPUT_MAX = 256 * 1024 };

static struct guard arena;
static char decoded[INPUT_MAX];
static char other[INPUT_MAX];
static char text[INPUT_MAX];
static struct oribi_limits limits;
static struct chunk_result result;

static int decode(size_t n)
{
    bool agreed;
    oribi_buf_deinit(&result.trailers);
    result = chunk_decode(&limits, text, n, &arena, decoded, other, &agreed);
    ok_named(agreed, "every cut agrees");
    return result.error;
}

static int decode_str(const char *in)
{
    memcpy(text, in, strlen(in));
    return decode(strlen(in));
}

static void test_a_body_and_what_follows_it(void)
{
    ok_eq(decode_str("5\r\nhello\r\n6;x=\"y\"\r\n world\r\n0\r\nA: b\r\n\r\nGET /"), 0);
    is_bytes(decoded, result.body_len, "hello world", 11);
    ok_eq(result.used, 38);
    is_bytes(result.trailers.p, result.trailers.len, "A: b\r\n", 6);
    ok_eq(decode_str("0\r\n\r\n"), 0);
    ok_eq(result.body_len, 0);
    ok_eq(decode_str(""), ORIBI_AGAIN);
}

static void test_body_limit(void)
{
    limits.body_bytes_max = 10;
    ok_eq(decode_str("a\r\n0123456789\r\n0\r\n\r\n"), 0);
    ok_eq(decode_str("b\r\n"), ORIBI_EBODY);
    ok_eq(decode_str("5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n"), 0);
    ok_eq(decode_str("5\r\n01234\r\n6\r\n"), ORIBI_EBODY);
    ok_eq(decode_str("ffffffffffffffff\r\n"), ORIBI_EBODY);
    limits.body_bytes_max = INT64_MAX;
    ok_eq(decode_str("7fffffffffffffff\r\n"), ORIBI_AGAIN);
    ok_eq(decode_str("8000000000000000\r\n"), ORIBI_EBODY);
    ok_eq(decode_str("1\r\nx\r\n7fffffffffffffff\r\n"), ORIBI_EBODY);
    oribi_limits_init(&limits);
}

/* A chunk of one byte with an extension of n bytes behind the semicolon. */
static int decode_extension(size_t n)
{
    memcpy(text, "1;", 2);
    memset(text + 2, 'e', n);
    memcpy(text + 2 + n, "\r\nx\r\n0\r\n\r\n", 10);
    return decode(2 + n + 10);
}

static void test_extension_limit(void)
{
    /* Every byte from the one behind the first semicolon to the CR counts. */
    ok_eq(decode_extension(ORIBI_CHUNK_EXT_BYTES_MAX - 1), 0);
    ok_eq(decode_extension(ORIBI_CHUNK_EXT_BYTES_MAX), ORIBI_EBAD);
    is_str(result.reason, "chunk extensions over the limit");
}

static void test_extensions_count_together(void)
{
    size_t n = 0;
    for (int i = 0; i < 100; i++) {
        memcpy(text + n, "1;", 2);
        memset(text + n + 2, 'e', 200);
        memcpy(text + n + 202, "\r\nx\r\n", 5);
        n += 207;
    }
    ok_eq(decode(n), ORIBI_EBAD);
    is_str(result.reason, "chunk extensions over the limit");
}

static int decode_size(const char *zeros, size_t count, const char *rest)
{
    memset(text, zeros[0], count);
    memcpy(text + count, rest, strlen(rest));
    return decode(count + strlen(rest));
}

static void test_size_digits(void)
{
    ok_eq(decode_size("0", 16, "1\r\nx\r\n0\r\n\r\n"), 0);
    ok_eq(decode_size("0", 16 + ORIBI_CHUNK_EXT_BYTES_MAX, "1\r\nx\r\n0\r\n\r\n"), 0);
    ok_eq(decode_size("0", 17 + ORIBI_CHUNK_EXT_BYTES_MAX, "1\r\nx\r\n0\r\n\r\n"), ORIBI_EBAD);
    ok_eq(decode_size("f", 16, "\r\n"), ORIBI_EBODY);
    ok_eq(decode_size("f", 17, "\r\n"), ORIBI_EBAD);
    ok_eq(decode_size("1", 17, "\r\n"), ORIBI_EBAD);
}

static int decode_trailer(size_t n)
{
    memcpy(text, "0\r\nT:", 5);
    memset(text + 5, 'v', n);
    memcpy(text + 5 + n, "\r\n\r\n", 4);
    return decode(5 + n + 4);
}

static void test_trailer_limits(void)
{
    /* "T:", CRLF and the CR of the empty line count too. */
    ok_eq(decode_trailer(ORIBI_TRAILER_BYTES_MAX - 5), 0);
    ok_eq(decode_trailer(ORIBI_TRAILER_BYTES_MAX - 4), ORIBI_EHEAD);
    limits.fields_max = 2;
    ok_eq(decode_str("0\r\nA: 1\r\nB: 2\r\n\r\n"), 0);
    ok_eq(decode_str("0\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n"), ORIBI_EHEAD);
    oribi_limits_init(&limits);
}

static void test_tiny_chunks_pass_and_waste_does_not(void)
{
    size_t n = 0;
    for (int i = 0; i < 20000; i++) {
        memcpy(text + n, "1\r\nx\r\n", 6);
        n += 6;
    }
    memcpy(text + n, "0\r\n\r\n", 5);
    ok_eq(decode(n + 5), 0);
    ok_eq(result.body_len, 20000);
    n = 0;
    for (int i = 0; i < 15000; i++) {
        memcpy(text + n, "0000000001\r\nx\r\n", 15);
        n += 15;
    }
    ok_eq(decode(n), ORIBI_EBAD);
    is_str(result.reason, "too little body in too many chunks");
}

static void test_chunk_heads(void)
{
    static const struct {
        uint64_t size;
        const char *text;
    } cases[] = {{1, "1\r\n"},
                 {15, "f\r\n"},
                 {16, "10\r\n"},
                 {0xabcdef, "abcdef\r\n"},
                 {UINT64_MAX, "ffffffffffffffff\r\n"},
                 {0x1000, "1000\r\n"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char dst[ORIBI_CHUNK_HEAD_CAP];
        size_t n = oribi_chunk_head(dst, cases[i].size);
        is_bytes(dst, n, cases[i].text, strlen(cases[i].text));
    }
}

int main(void)
{
    arena = guard_alloc(INPUT_MAX);
    oribi_limits_init(&limits);
    test_a_body_and_what_follows_it();
    test_body_limit();
    test_extension_limit();
    test_extensions_count_together();
    test_size_digits();
    test_trailer_limits();
    test_tiny_chunks_pass_and_waste_does_not();
    test_chunk_heads();
    oribi_buf_deinit(&result.trailers);
    return done_testing();
}
