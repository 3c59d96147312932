#include "http/percent.c"

#include "guard.h"
#include "tap.h"

/* In place and into a buffer of its own, both against a guard page. */
static ssize_t decode(const char *text, const char *want, size_t want_len)
{
    struct guard in = guard_str(text);
    struct guard out = guard_alloc(in.n);
    ssize_t n = oribi_percent_decode(oribi_slice(in.p, in.n), out.p);
    ssize_t again = oribi_percent_decode(oribi_slice(in.p, in.n), in.p);
    ok_eq(n, again);
    if (n >= 0) {
        is_bytes(out.p, (size_t)n, want, want_len);
        is_bytes(in.p, (size_t)n, want, want_len);
    }
    guard_free(&in);
    guard_free(&out);
    return n;
}

static void test_good_escapes(void)
{
    decode("", "", 0);
    decode("/plain", "/plain", 6);
    decode("/a%20b%2Fc%2fd", "/a b/c/d", 8);
    decode("%41%42", "AB", 2);
    decode("a+b", "a+b", 3);
    decode("%00x", "\0x", 2);
    decode("%25%34%31", "%41", 3);
    decode("%e3%81%82", "\xe3\x81\x82", 3);
}

static void test_bad_escapes(void)
{
    ok_eq(decode("%", "", 0), ORIBI_EBAD);
    ok_eq(decode("a%4", "", 0), ORIBI_EBAD);
    ok_eq(decode("%4g", "", 0), ORIBI_EBAD);
    ok_eq(decode("%g4", "", 0), ORIBI_EBAD);
    ok_eq(decode("%%41", "", 0), ORIBI_EBAD);
    ok_eq(decode("%-1", "", 0), ORIBI_EBAD);
    ok_eq(decode("%u0041", "", 0), ORIBI_EBAD);
    ok_eq(decode("ok%20then%", "", 0), ORIBI_EBAD);
}

int main(void)
{
    test_good_escapes();
    test_bad_escapes();
    return done_testing();
}
