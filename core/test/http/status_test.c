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

int main(void)
{
    test_reasons();
    test_every_line_belongs_to_its_reason();
    test_content();
    return done_testing();
}
