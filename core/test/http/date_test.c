#include "http/date.c"

#include "guard.h"
#include "tap.h"

#include <time.h>

static void is_date(int64_t second, const char *want)
{
    struct guard dst = guard_alloc(ORIBI_DATE_LEN);
    oribi_date_format(second, dst.p);
    is_bytes(dst.p, ORIBI_DATE_LEN, want, strlen(want));
    guard_free(&dst);
}

static void test_known_dates(void)
{
    is_date(784111777, "Sun, 06 Nov 1994 08:49:37 GMT");
    is_date(0, "Thu, 01 Jan 1970 00:00:00 GMT");
    is_date(951782399, "Mon, 28 Feb 2000 23:59:59 GMT");
    is_date(951782400, "Tue, 29 Feb 2000 00:00:00 GMT");
    is_date(4107542400, "Mon, 01 Mar 2100 00:00:00 GMT");
}

static void test_out_of_range_is_clamped(void)
{
    is_date(253402300799, "Fri, 31 Dec 9999 23:59:59 GMT");
    is_date(253402300800, "Fri, 31 Dec 9999 23:59:59 GMT");
    is_date(-1, "Thu, 01 Jan 1970 00:00:00 GMT");
    is_date(INT64_MAX, "Fri, 31 Dec 9999 23:59:59 GMT");
    is_date(INT64_MIN, "Thu, 01 Jan 1970 00:00:00 GMT");
}

static void test_every_day_of_four_centuries_is_the_c_library_s(void)
{
    bool good = true;
    for (int64_t day = 0; day < 146097 && good; day++) {
        char got[ORIBI_DATE_LEN];
        char want[64];
        time_t second = (time_t)(day * 86400 + day % 86400);
        struct tm parts;
        gmtime_r(&second, &parts);
        strftime(want, sizeof(want), "%a, %d %b %Y %H:%M:%S GMT", &parts);
        oribi_date_format(second, got);
        good = memcmp(got, want, ORIBI_DATE_LEN) == 0;
        if (!good)
            diag("%s", want);
    }
    ok(good);
}

static void test_cache_keeps_and_renews(void)
{
    struct oribi_date_cache cache = {0};
    const char *text = oribi_date_cached(&cache, 0);
    is_bytes(text, ORIBI_DATE_LEN, "Thu, 01 Jan 1970 00:00:00 GMT", ORIBI_DATE_LEN);
    cache.text[0] = 'X'; /* shows whether it is formatted again */
    ok_eq(oribi_date_cached(&cache, 0)[0], 'X');
    is_bytes(oribi_date_cached(&cache, 1), ORIBI_DATE_LEN, "Thu, 01 Jan 1970 00:00:01 GMT", ORIBI_DATE_LEN);
    is_bytes(oribi_date_cached(&cache, 0), ORIBI_DATE_LEN, "Thu, 01 Jan 1970 00:00:00 GMT", ORIBI_DATE_LEN);
}

int main(void)
{
    test_known_dates();
    test_out_of_range_is_clamped();
    test_every_day_of_four_centuries_is_the_c_library_s();
    test_cache_keeps_and_renews();
    return done_testing();
}
