/* Handshakes of WebSockets: origins, and which requests are offered, refused or left to the application. */
#include "frontend/websocket_handshake.c"

#include "tap.h"

static struct oribi_slice slice(const char *text)
{
    return oribi_slice(text, strlen(text));
}

static void test_origins(void)
{
    static char *patterns[] = {(char *)"https://*.example.com", (char *)"http://other.test:81", (char *)"plain.test"};
    const struct oribi_text_list none = {NULL, 0};
    const struct oribi_text_list some = {patterns, 3};
    static const struct {
        const char *origin, *host, *port;
        bool without, with;
    } rows[] = {
        {"", "a.test", "", true, true},
        {"http://a.test", "a.test", "", true, true},
        {"https://A.test", "a.TEST", "", true, true},
        {"https://a.test:443", "a.test", "", true, true},
        {"https://a.test", "a.test", "80", true, true},
        {"http://a.test:8080", "a.test", "8080", true, true},
        {"http://a.test:8080", "a.test", "", false, false},
        {"http://a.test", "a.test", "8080", false, false},
        {"http://[::1]:8080", "[::1]", "8080", true, true},
        {"http://[::1]", "[::1]", "", true, true},
        {"http://xa.test", "a.test", "", false, false},
        {"http://a.test.evil", "a.test", "", false, false},
        {"null", "null", "", false, false},
        {"a.test", "a.test", "", false, false},
        {"https://", "", "", true, true},
        {"https://b.example.com", "a.test", "", false, true},
        {"https://c.b.example.com:443", "a.test", "", false, true},
        {"https://example.com", "a.test", "", false, false},
        {"https://.example.com", "a.test", "", false, false},
        {"https://evilexample.com", "a.test", "", false, false},
        {"http://b.example.com", "a.test", "", false, false},
        {"https://b.example.com:8443", "a.test", "", false, false},
        {"http://other.test:81", "a.test", "", false, true},
        {"http://other.test", "a.test", "", false, false},
        {"https://plain.test", "a.test", "", false, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ok_named(oribi__websocket_origin_allowed(slice(rows[i].origin), slice(rows[i].host), slice(rows[i].port),
                                                 &none) == rows[i].without,
                 "%s at %s:%s, no option", rows[i].origin, rows[i].host, rows[i].port);
        ok_named(oribi__websocket_origin_allowed(slice(rows[i].origin), slice(rows[i].host), slice(rows[i].port),
                                                 &some) == rows[i].with,
                 "%s at %s:%s, with the option", rows[i].origin, rows[i].host, rows[i].port);
    }
}

static void test_every_origin(void)
{
    static char *patterns[] = {(char *)"*"};
    const struct oribi_text_list all = {patterns, 1};
    ok(oribi__websocket_origin_allowed(slice("null"), slice("a"), slice(""), &all));
    ok(oribi__websocket_origin_allowed(slice("https://x"), slice("a"), slice(""), &all));
}

int main(void)
{
    test_origins();
    test_every_origin();
    return done_testing();
}
