#include "http/authority.c"

#include "guard.h"
#include "tap.h"

static void good(const char *text, const char *want_host, const char *want_port)
{
    struct guard in = guard_str(text);
    struct oribi_slice host;
    struct oribi_slice port;
    if (ok_named(oribi_authority_parse(oribi_slice(in.p, in.n), in.n, &host, &port) == 0, "good: %s", text)) {
        is_slice(host, want_host);
        is_slice(port, want_port);
    }
    guard_free(&in);
}

static void bad(const char *text)
{
    struct guard in = guard_str(text);
    struct oribi_slice host;
    struct oribi_slice port;
    ok_named(oribi_authority_parse(oribi_slice(in.p, in.n), in.n, &host, &port) == ORIBI_EBAD, "bad: %s", text);
    guard_free(&in);
}

static void test_names(void)
{
    good("", "", "");
    good("a", "a", "");
    good("example.com", "example.com", "");
    good("example.com:", "example.com", "");
    good("example.com:80", "example.com", "80");
    good("127.0.0.1:9292", "127.0.0.1", "9292");
    good(":80", "", "80");
    good("a%2Fb:1", "a%2Fb", "1");
    good("%41%42c", "%41%42c", "");
    good("under_score.x~y", "under_score.x~y", "");
    good("a-name-that-is-longer-than-thirty-two-bytes.example.com:65535",
         "a-name-that-is-longer-than-thirty-two-bytes.example.com", "65535");
    good("a,b;c=d", "a,b;c=d", "");
}

static void test_no_names(void)
{
    static const char *const texts[] = {
        "a b", "a:b", "a:8x", "a:80:90", "a/b",   "a?b",  "a#b",    "user@a",  "a\\b",  "a<b",   "a>b",
        "a%",  "a%4", "a%4g", "a%g4",    "a\x80", "a[b]", "\"a\"",  "a:-1",    "a: 80", "a:80 ", "[]",
        "a^b", "a|b", "a`b",  "{a}",     "[a",    "a]",   "[::1]x", "[::1]:x", "[::1",  "a\tb",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        bad(texts[i]);
}

static void test_literals(void)
{
    good("[::1]:8080", "[::1]", "8080");
    good("[::]", "[::]", "");
    good("[2001:db8::1]", "[2001:db8::1]", "");
    good("[v1.fe80::a]", "[v1.fe80::a]", "");
    bad("[v.a]");
    bad("[v1.]");
    bad("[v1a]");
    bad("[v1.a/b]");
    bad("[127.0.0.1]");
    bad("[fe80::1%25eth0]");
}

static void test_ipv6(void)
{
    static const char *const valid[] = {
        "::",
        "::1",
        "1::",
        "1:2:3:4:5:6:7:8",
        "1::8",
        "1:2:3:4:5:6:7::",
        "::2:3:4:5:6:7:8",
        "::ffff:1.2.3.4",
        "1:2:3:4:5:6:1.2.3.4",
        "64:ff9b::255.255.255.255",
        "FE80::ABCD",
        "::1:2:3:4:5:0.0.0.0",
    };
    static const char *const invalid[] = {
        "",
        ":",
        ":::",
        "1",
        "1:",
        ":1",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "1::2::3",
        "12345::",
        "g::",
        "::1.2.3",
        "::1.2.3.256",
        "::01.2.3.4",
        "1.2.3.4",
        "::1.2.3.4:5",
        "1:2:3:4:5:6:7::8",
        "::1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7:1.2.3.4",
        "::1.2.3.4.5",
        "1:2:3:4:5::1.2.3.4.",
        "::1:2:3:4:5:6:1.2.3.4",
        "1:2:3:4:5:6:7:8:",
    };
    for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++)
        ok_named(is_ipv6(valid[i], strlen(valid[i])), "IPv6: %s", valid[i]);
    for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
        ok_named(!is_ipv6(invalid[i], strlen(invalid[i])), "not IPv6: %s", invalid[i]);
}

int main(void)
{
    test_names();
    test_no_names();
    test_literals();
    test_ipv6();
    return done_testing();
}
