/* Calendar and limits; what dates look like is in spec/date. */
#include "http/date.c"

#include "guard.h"
#include "tap.h"
#include "oribi/http/date.h"
#include "http/case_folder.h"

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
    bool same = true;
    for (int64_t day = 0; day < 146097 && same; day++) {
        char got[ORIBI_DATE_LEN];
        char want[64];
        time_t second = (time_t)(day * 86400 + day % 86400);
        struct tm parts;
        gmtime_r(&second, &parts);
        strftime(want, sizeof(want), "%a, %d %b %Y %H:%M:%S GMT", &parts);
        oribi_date_format(second, got);
        same = memcmp(got, want, ORIBI_DATE_LEN) == 0;
        if (!same)
            diag("%s", want);
    }
    ok(same);
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

/* ---- date_read ---- */

/* Calendar and limits; what dates look like is in spec/date. */

static const int64_t november_1994 = 784111777;

/* Against both guard pages; the verdicts must agree. */
static int read_guarded(const char *p, size_t n, int64_t now_s, int64_t *seconds)
{
    struct guard back = guard_copy(p, n);
    struct guard front = guard_copy_front(p, n);
    int64_t other = *seconds;
    int result = oribi_date_read(oribi_slice(back.p, n), now_s, seconds);
    if (oribi_date_read(oribi_slice(front.p, n), now_s, &other) != result || other != *seconds)
        complain("verdict");
    guard_free(&back);
    guard_free(&front);
    return result;
}

static int64_t read_now(void)
{
    char text[64];
    int64_t now_s = november_1994;
    size_t n = case_bytes(&file, "now", text, sizeof(text));
    if (n && oribi_date_read(oribi_slice(text, n), 0, &now_s) != 0)
        complain("now");
    return now_s;
}

static void run_case(void)
{
    char text[256];
    char shown[ORIBI_DATE_LEN];
    int64_t now_s = read_now();
    int64_t seconds = -1;
    size_t n = case_bytes(&file, "input", text, sizeof(text));
    int result = read_guarded(text, n, now_s, &seconds);
    if (!case_is(&file, "status", result == 0 ? "ok" : "ignored"))
        complain("status");
    if (result != 0 && (result != ORIBI_EBAD || seconds != -1))
        complain("error");
    if (result == 0)
        check_number("seconds", seconds);
    oribi_date_format(seconds, shown);
    if (result == 0)
        check_bytes("date", oribi_slice(shown, sizeof(shown)));
    for (size_t cut = 0; cut < n && result == 0; cut++) { /* no part of a date is one */
        int64_t untouched = 7;
        if (read_guarded(text, cut, now_s, &untouched) == 0 || untouched != 7)
            complain("cut");
    }
}

static void test_ten_thousand_years_in_three_forms(void)
{
    static const char *const forms[] = {"%a, %d %b %Y %T GMT", "%A, %d-%b-%y %T GMT", "%a %b %e %T %Y"};
    bool same = true;
    for (int64_t day = -719528; day <= 2932896 && same; day += 11) { /* 0000-01-01 … 9999-12-31 */
        time_t second = (time_t)(day * 86400 + (day & 0xffff));
        struct tm parts;
        gmtime_r(&second, &parts);
        for (int form = 0; form < 3 && same; form++) {
            char format[40];
            char text[64];
            int64_t got = -1;
            /* Years are padded here: strftime() writes 5 for the year 5. */
            snprintf(text, sizeof(text), "%04d", parts.tm_year + 1900);
            snprintf(format, sizeof(format), "%s", forms[form]);
            char *year = strstr(format, "%Y");
            if (year) {
                char rest[40];
                snprintf(rest, sizeof(rest), "%s", year + 2);
                snprintf(year, sizeof(format) - (size_t)(year - format), "%.4s%s", text, rest);
            } else if (day < 0) {
                continue; /* two digits never mean that far back */
            }
            size_t n = strftime(text, sizeof(text), format, &parts);
            same = oribi_date_read(oribi_slice(text, n), second > 0 ? second : 0, &got) == 0 && got == second;
            if (!same)
                diag("%s", text);
        }
    }
    ok(same);
}

static void test_two_digits_mean_a_year_up_to_fifty_ahead(void)
{
    static const char text[] = "Sunday, 06-Nov-94 08:49:37 GMT";
    int64_t seconds = 0;
    int64_t fifty_ahead = 2362034977; /* 2044-11-06 08:49:37: 2094 is exactly 50 years away */
    ok_eq(oribi_date_read(ORIBI_SLICE(text), fifty_ahead - 1, &seconds), 0);
    ok_eq(seconds, november_1994);
    ok_eq(oribi_date_read(ORIBI_SLICE(text), fifty_ahead, &seconds), 0);
    ok_eq(seconds, november_1994 + 36525 * (int64_t)86400);
    ok_eq(oribi_date_read(ORIBI_SLICE(text), 0, &seconds), 0);
    ok_eq(seconds, november_1994); /* 24 years ahead of 1970 */
}

static void test_the_longest_date_and_one_byte_more(void)
{
    int64_t seconds = 0;
    ok_eq(sizeof("Wednesday, 09-Nov-94 08:49:37 GMT") - 1, ORIBI_DATE_BYTES_MAX);
    ok_eq(oribi_date_read(ORIBI_SLICE("Wednesday, 09-Nov-94 08:49:37 GMT"), november_1994, &seconds), 0);
    ok_eq(oribi_date_read(ORIBI_SLICE("Wednesday, 09-Nov-94 08:49:37 GMT "), november_1994, &seconds), ORIBI_EBAD);
}

/* Every byte of every form replaced by every other one: the result is no date, or the one that the text says. */
static void test_every_byte_counts(void)
{
    static const char *const texts[] = {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                                        "Sun Nov  6 08:49:37 1994"};
    size_t accepted = 0;
    bool right = true;
    for (int form = 0; form < 3; form++)
        for (size_t at = 0; at < strlen(texts[form]); at++)
            for (int c = 0; c < 256; c++) {
                char text[64];
                size_t n = strlen(texts[form]);
                int64_t seconds;
                memcpy(text, texts[form], n);
                text[at] = (char)c;
                bool read = oribi_date_read(oribi_slice(text, n), november_1994, &seconds) == 0;
                accepted += read;
                bool digit = texts[form][at] >= '0' && texts[form][at] <= '9';
                bool may = c == (uint8_t)texts[form][at] || (c >= '0' && c <= '9' && digit) ||
                           (texts[form][at] == ' ' && c >= '0' && c <= '9') || (digit && c == ' ');
                right &= may || !read;
            }
    ok(right);
    ok(accepted > 200);
}

int main(void)
{
    test_known_dates();
    test_out_of_range_is_clamped();
    test_every_day_of_four_centuries_is_the_c_library_s();
    test_cache_keeps_and_renews();

    run_case_folder("date", run_case);
    test_ten_thousand_years_in_three_forms();
    test_two_digits_mean_a_year_up_to_fifty_ahead();
    test_the_longest_date_and_one_byte_more();
    test_every_byte_counts();
    return done_testing();
}
