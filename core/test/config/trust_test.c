#include "config/trust.c"

#include "tap.h"

static struct oribi_trust trust;
static char error[ORIBI_ERROR_TEXT_CAP];

static int set(const char *text)
{
    char *items[] = {(char *)text};
    struct oribi_text_list list = {items, 1};
    return oribi_trust_parse(&list, &trust, error);
}

static bool has(const char *addr)
{
    return oribi_trust_has(&trust, oribi_slice(addr, strlen(addr)));
}

static void is_behind(const char *list, const char *want)
{
    char room[ORIBI_TRUST_CLIENT_CAP];
    struct oribi_slice got = oribi_trust_client(&trust, oribi_slice(list, strlen(list)), room);
    is_bytes(got.p, got.n, want, strlen(want));
}

static void test_nobody_unless_told(void)
{
    trust = (struct oribi_trust){0};
    ok(!has("127.0.0.1"));
    ok(!has("::1"));
    ok(!has(""));
}

static void test_ranges(void)
{
    ok_eq(set("10.0.0.0/8, 192.168.1.1 172.16.0.0/12,2001:db8::/33"), 0);
    ok(has("10.255.0.1"));
    ok(has("::ffff:10.1.2.3"));
    ok(!has("11.0.0.1"));
    ok(has("192.168.1.1"));
    ok(!has("192.168.1.2"));
    ok(has("172.31.255.255"));
    ok(!has("172.32.0.0"));
    ok(has("2001:db8:7fff::1"));
    ok(!has("2001:db8:8000::1"));
    ok(!has(""));
    ok_eq(set("unix"), 0);
    ok(has(""));
    ok(!has("127.0.0.1"));
    ok_eq(set("0.0.0.0/0"), 0);
    ok(has("8.8.8.8"));
    ok(!has("2001:db8::1")); /* every IPv4 address is not every address */
    ok_eq(set("::/0"), 0);
    ok(has("2001:db8::1"));
    ok(has("8.8.8.8"));
}

static void test_what_is_no_range(void)
{
    static const char *const bad[] = {
        "10.0.0.0/33", "::1/129", "10.0.0.0/", "10.0.0.0/8x", "10.0.0.0/-1",  "10.0.0.0/0008", "localhost",
        "10.0.0",      "[::1]",   "/8",        "*",           "10.0.0.0/8/8", "unix:",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        error[0] = '\0';
        ok_eq(set(bad[i]), ORIBI_EINVAL);
        ok(strstr(error, bad[i]) != NULL);
    }
}

static void test_as_many_ranges_as_there_may_be(void)
{
    static char text[ORIBI_TRUST_RANGES_MAX * 8 + 16];
    for (int i = 0; i < ORIBI_TRUST_RANGES_MAX; i++)
        memcpy(text + i * 8, "1.1.1.1,", 8);
    ok_eq(set(text), 0);
    memcpy(text + ORIBI_TRUST_RANGES_MAX * 8, "1.1.1.2", 8);
    ok_eq(set(text), ORIBI_EINVAL);
}

static void test_the_client_is_the_last_who_is_not_trusted(void)
{
    ok_eq(set("10.0.0.0/8,::1"), 0);
    is_behind("", "");
    is_behind("1.2.3.4", "1.2.3.4");
    is_behind("6.6.6.6, 1.2.3.4", "1.2.3.4");
    is_behind("6.6.6.6, 1.2.3.4, 10.0.0.1,10.0.0.2", "1.2.3.4");
    is_behind("10.0.0.3, 10.0.0.1", "10.0.0.3"); /* all of them are ours: the first */
    is_behind("2001:db8::1 ,\t::1", "2001:db8::1");
}

static void test_ports_are_cut_off(void)
{
    is_behind("1.2.3.4:5678", "1.2.3.4");
    is_behind("[2001:db8::1]:5678, 10.0.0.1:80", "2001:db8::1");
    is_behind("[2001:db8::1]", "2001:db8::1");
}

static void test_what_is_no_address_ends_the_walk(void)
{
    is_behind("1.2.3.4, unknown, 10.0.0.1", "10.0.0.1");
    is_behind("unknown", "");
    is_behind("_hidden, 9.9.9.9", "9.9.9.9");
    is_behind("1.2.3.4 5.6.7.8", "");
    is_behind("<script>", "");
}

static void test_empty_elements_do_not_count(void)
{
    ok_eq(set("10.0.0.0/8,::1"), 0);
    is_behind("1.2.3.4, , 10.0.0.1", "1.2.3.4");
    is_behind("1.2.3.4,,,10.0.0.1,", "1.2.3.4");
    is_behind("1.2.3.4,", "1.2.3.4");
    is_behind(" \t, 1.2.3.4 ,\t", "1.2.3.4");
    is_behind(", 10.0.0.3,", "10.0.0.3");
    is_behind(" , ,\t", "");
    is_behind(",", "");
}

static void test_a_mapped_address_is_the_ipv4_address(void)
{
    ok_eq(set("10.0.0.0/8"), 0);
    is_behind("::ffff:1.2.3.4", "1.2.3.4");
    is_behind("1.1.1.1, ::FFFF:1.2.3.4, ::ffff:10.0.0.1", "1.2.3.4");
    is_behind("0:0:0:0:0:ffff:0102:0304, 10.0.0.1", "1.2.3.4");
    is_behind("[::ffff:255.255.255.255]:80", "255.255.255.255");
    is_behind("::ffff:10.0.0.7, ::ffff:10.0.0.8", "10.0.0.7");
    is_behind("::1.2.3.4", "::1.2.3.4");               /* RFC 4291 2.5.5.1: another kind, and deprecated */
    is_behind("64:ff9b::1.2.3.4", "64:ff9b::1.2.3.4"); /* RFC 6052: NAT64 */
}

int main(void)
{
    test_nobody_unless_told();
    test_ranges();
    test_what_is_no_range();
    test_as_many_ranges_as_there_may_be();
    test_the_client_is_the_last_who_is_not_trusted();
    test_ports_are_cut_off();
    test_what_is_no_address_ends_the_walk();
    test_empty_elements_do_not_count();
    test_a_mapped_address_is_the_ipv4_address();
    return done_testing();
}
