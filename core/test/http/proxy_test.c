/* PROXY headers, each whole and cut at every byte, with and without a request behind it. */
#include "http/proxy.c"

#include "guard.h"
#include "tap.h"

static struct guard arena;
static struct oribi_proxy proxy;

/* The verdict on [text, text+n) must not depend on how much of it is there first, nor on what follows. */
static ssize_t parse(const char *text, size_t n)
{
    static char longer[8192];
    ssize_t want = oribi_proxy_parse(guard_place(&arena, text, n), n, &proxy);
    struct oribi_proxy first = proxy;
    bool agreed = true;
    for (size_t cut = 0; cut < n; cut++) {
        ssize_t got = oribi_proxy_parse(guard_place(&arena, text, cut), cut, &proxy);
        agreed &= got == ORIBI_AGAIN || (want < 0 && want != ORIBI_AGAIN && got == want);
    }
    if (want > 0) {
        memcpy(longer, text, n);
        memcpy(longer + n, "GET / HTTP/1.1\r\n", 16);
        agreed &= oribi_proxy_parse(guard_place(&arena, longer, n + 16), n + 16, &proxy) == want;
        agreed &= memcmp(&proxy, &first, sizeof(proxy)) == 0;
    }
    proxy = first;
    ok_named(agreed, "every cut agrees");
    return want;
}

static ssize_t parse_line_of(const char *text)
{
    return parse(text, strlen(text));
}

static void is_client(const char *addr, const char *port)
{
    ok(proxy.known);
    is_bytes(proxy.addr, proxy.addr_len, addr, strlen(addr));
    is_bytes(proxy.port, proxy.port_len, port, strlen(port));
}

static void test_lines_that_name_a_client(void)
{
    ok_eq(parse_line_of("PROXY TCP4 192.168.0.1 10.0.0.1 56324 443\r\n"), 43);
    is_client("192.168.0.1", "56324");
    ok_eq(parse_line_of("PROXY TCP6 2001:db8::1 ::1 0 65535\r\n"), 36);
    is_client("2001:db8::1", "0");
    ok_eq(parse_line_of("PROXY TCP6 2001:0DB8:0:0:0:0:0:1 ::1 1 2\r\n"), 42);
    is_client("2001:db8::1", "1"); /* canonical, whoever wrote it */
    ok_eq(parse_line_of("PROXY TCP6 ::ffff:1.2.3.4 ::1 1 2\r\n"), 35);
    is_client("1.2.3.4", "1"); /* as on a socket of the same client for IPv4 */
    ok_eq(parse_line_of("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n"), 56);
}

static void test_lines_that_name_no_client(void)
{
    ok_eq(parse_line_of("PROXY UNKNOWN\r\n"), 15);
    ok(!proxy.known);
    ok_eq(parse_line_of("PROXY UNKNOWN 1.2.3.4 whatever\r\n"), 32);
    ok(!proxy.known);
}

static void test_the_longest_line(void)
{
    char text[128] = "PROXY UNKNOWN ";
    memset(text + 14, 'x', 91);
    memcpy(text + 105, "\r\n", 3);
    ok_eq(parse(text, 107), 107);
    memset(text + 14, 'x', 92);
    memcpy(text + 106, "\r\n", 3);
    ok_eq(parse(text, 108), ORIBI_EBAD);
    /* the end of line decides */
    ok_eq(parse_line_of("PROXY TCP6 ffff:f...f:ffff:ffff:ffff:ffff:ffff:ffff"), ORIBI_AGAIN);
}

static void test_what_is_no_line(void)
{
    static const char *const bad[] = {
        "GET / HTTP/1.1\r\n",
        "proxy TCP4 1.2.3.4 1.2.3.4 1 2\r\n",
        "PROXY  TCP4 1.2.3.4 1.2.3.4 1 2\r\n",
        "PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 \r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 -1 2\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1x 2\r\n",
        "PROXY TCP4 1.2.3.04 1.2.3.4 1 2\r\n",
        "PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n",
        "PROXY TCP4 1.2.3.4.5 1.2.3.4 1 2\r\n",
        "PROXY TCP4 ::1 ::1 1 2\r\n",
        "PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n",
        "PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n",
        "PROXY TCP5 1.2.3.4 1.2.3.4 1 2\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\r\n",
        "PROXY TCP4 1.2.3.4\t1.2.3.4 1 2\r\n",
        "PROXY TCP4\r\n",
        "PROXY TCP4 \r\n",
        "PROXY UNKNOWNX\r\n",
        "PROXY UNKNOWN \x01\r\n",
        "PROXY UNKNOWN \x80\r\n",
        "PROXY \r\n",
        "\r\n\r\nGET / HTTP/1.1\r\n",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ok_eq(parse_line_of(bad[i]), ORIBI_EBAD);
        ok(proxy.reason && !proxy.known && proxy.addr_len == 0);
    }
    ok_eq(parse("PROXY UNKNOWN \0\r\n", 17), ORIBI_EBAD);
    ok_eq(parse("", 0), ORIBI_AGAIN);
}

/* A header of version 2 in `text`; returns its length. */
static size_t make(char *text, int command, int family, const void *rest, size_t n)
{
    memcpy(text, "\r\n\r\n\0\r\nQUIT\n", 12);
    text[12] = (char)command;
    text[13] = (char)family;
    text[14] = (char)(n >> 8);
    text[15] = (char)n;
    if (n)
        memcpy(text + 16, rest, n);
    return 16 + n;
}

#define V4 "\x01\x02\x03\x04\x7f\x00\x00\x01\x30\x39\x00\x50"
#define V6                                                                                                             \
    "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"                                                                       \
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01"                                                                               \
    "\xff\xff\x01\xbb"

static void test_binary_headers(void)
{
    static char text[8192];
    ok_eq(parse(text, make(text, 0x21, 0x11, V4, 12)), 28);
    is_client("1.2.3.4", "12345");
    ok(!proxy.tls);
    ok_eq(parse(text, make(text, 0x21, 0x21, V6, 36)), 52);
    is_client("2001:db8::1", "65535");
    ok_eq(parse(text, make(text, 0x20, 0x00, NULL, 0)), 16);
    ok(!proxy.known);
    ok_eq(parse(text, make(text, 0x20, 0x11, V4, 12)), 28); /* LOCAL: its addresses do not count */
    ok(!proxy.known);
    ok_eq(parse(text, make(text, 0x21, 0x00, "anything", 8)), 24);
    ok(!proxy.known);
    char unix_addresses[216] = "/run/x";
    ok_eq(parse(text, make(text, 0x21, 0x31, unix_addresses, 216)), 232);
    ok(!proxy.known);
}

static void test_bad_binary_headers(void)
{
    static char text[8192];
    ok_eq(parse(text, make(text, 0x22, 0x11, V4, 12)), ORIBI_EBAD); /* command */
    ok_eq(parse(text, make(text, 0x11, 0x11, V4, 12)), ORIBI_EBAD); /* version */
    ok_eq(parse(text, make(text, 0x21, 0x12, V4, 12)), ORIBI_EBAD); /* datagrams */
    ok_eq(parse(text, make(text, 0x21, 0x41, V4, 12)), ORIBI_EBAD);
    ok_eq(parse(text, make(text, 0x21, 0x11, V4, 11)), ORIBI_EBAD);
    ok_eq(parse(text, make(text, 0x21, 0x21, V6, 35)), ORIBI_EBAD);
    ok_eq(parse("\r\n\r\n\0\r\nQUIT\r", 12), ORIBI_EBAD);
    ok_eq(parse("\r\n\r\nX", 5), ORIBI_EBAD);
    size_t n = make(text, 0x21, 0x11, V4, 12);
    ok_eq(parse(text, n - 1), ORIBI_AGAIN);
}

static void test_the_longest_binary_header(void)
{
    static char text[8192];
    static char rest[4096] = V4;
    size_t ext = 4080 - 12 - 3; /* one extension that fills the rest */
    rest[12] = 4;
    rest[13] = (char)(ext >> 8);
    rest[14] = (char)ext;
    ok_eq(parse(text, make(text, 0x21, 0x11, rest, 4080)), 4096);
    ok_eq(parse(text, make(text, 0x21, 0x11, rest, 4081)), ORIBI_EBAD);
    is_str(proxy.reason, "PROXY header over the limit");
}

static void test_extensions(void)
{
    static char text[8192];
    ok_eq(parse(text, make(text, 0x21, 0x11, V4 "\x20\0\x05\x01\0\0\0\0", 20)), 36);
    ok(proxy.known && proxy.tls);
    ok_eq(parse(text, make(text, 0x21, 0x11, V4 "\x20\0\x05\x00\0\0\0\0", 20)), 36);
    ok(!proxy.tls);
    ok_eq(parse(text, make(text, 0x21, 0x11, V4 "\x20\0\x04\x01\0\0\0", 19)), ORIBI_EBAD);
    ok_eq(parse(text, make(text, 0x21, 0x11, V4 "\x04\0\x02x", 16)), ORIBI_EBAD);
    ok_eq(parse(text, make(text, 0x21, 0x11, V4 "\x04\0", 14)), ORIBI_EBAD);
    ok_eq(parse(text, make(text, 0x21, 0x11, V4 "\x04\0\0", 15)), 31);
}

static void test_checksum(void)
{
    static char text[8192];
    /* the check value of CRC-32C, RFC 3720 B.4 uses the same sum */
    ok_eq(crc32c((const uint8_t *)"123456789", 9, NULL), 0xe3069283u);
    size_t n = make(text, 0x21, 0x11, V4 "\x03\0\x04\0\0\0\0", 19);
    uint32_t sum = crc32c((const uint8_t *)text, n, NULL);
    for (int i = 0; i < 4; i++)
        text[n - 4 + (size_t)i] = (char)(sum >> (24 - 8 * i));
    ok_eq(parse(text, n), 35);
    is_client("1.2.3.4", "12345");
    text[16] ^= 1;
    ok_eq(parse(text, n), ORIBI_EBAD);
    ok_eq(parse(text, make(text, 0x21, 0x11, V4 "\x03\0\x03\0\0\0", 18)), ORIBI_EBAD);
}

int main(void)
{
    arena = guard_alloc(16384);
    test_lines_that_name_a_client();
    test_lines_that_name_no_client();
    test_the_longest_line();
    test_what_is_no_line();
    test_binary_headers();
    test_bad_binary_headers();
    test_the_longest_binary_header();
    test_extensions();
    test_checksum();
    return done_testing();
}
