#include "http/status.c"

#include "tap.h"

#include <stdio.h>

static void test_reasons(void)
{
    is_slice(oribi_status_reason(200), "OK");
    is_slice(oribi_status_reason(431), "Request Header Fields Too Large");
    is_slice(oribi_status_reason(299), "");
    is_slice(oribi_status_reason(99), "");
    is_slice(oribi_status_reason(600), "");
    is_slice(oribi_status_reason(-1), "");
}

static void test_every_line_belongs_to_its_reason(void)
{
    bool good = true;
    int registered = 0;
    for (int status = 0; status < 1000; status++) {
        char want[80];
        struct oribi_slice reason = oribi_status_reason(status);
        struct oribi_slice line = oribi_status_line(status);
        good &= (reason.n == 0) == (line.n == 0);
        if (!line.n)
            continue;
        registered++;
        snprintf(want, sizeof(want), "HTTP/1.1 %d %.*s\r\n", status, (int)reason.n, reason.p);
        good &= line.n == strlen(want) && memcmp(line.p, want, line.n) == 0;
    }
    ok(good);
    ok_eq(registered, 61);
}

static void test_content(void)
{
    ok(!oribi_status_has_body(100));
    ok(!oribi_status_has_body(199));
    ok(oribi_status_has_body(200));
    ok(!oribi_status_has_body(204));
    ok(oribi_status_has_body(205));
    ok(!oribi_status_has_body(304));
    ok(oribi_status_has_body(404));
}

static void test_text(void)
{
    static const char *const good[] = {"200", "200 OK", " 200", "200\r\n", "200OK", "\t200\tx"};
    static const char *const bad[] = {"",      " ",       "2",    "20",   "20 0",   "2000",
                                      "200.5", "200\x01", "+200", "-200", "OK 200", "2e2"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        ok_eq(oribi_status_read(oribi_slice(good[i], strlen(good[i]))), 200);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok_eq(oribi_status_read(oribi_slice(bad[i], strlen(bad[i]))), -1);
    ok_eq(oribi_status_read(oribi_slice("404x", 3)), 404);
    ok_eq(oribi_status_read(oribi_slice(NULL, 0)), -1);
}

int main(void)
{
    test_text();
    test_reasons();
    test_every_line_belongs_to_its_reason();
    test_content();
    return done_testing();
}
