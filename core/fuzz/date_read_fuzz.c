/* HTTP-dates: what the reader takes is what three regular expressions take, and means what the C library says. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/date.h"

#include "ours.h"

#include <regex.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DAY      "(Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
#define LONG_DAY "(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
#define MONTH    "(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
#define TIME     "([0-9]{2}):([0-9]{2}):([0-9]{2})"

/* A form, and the groups of its day, month, year and hour. */
static const struct form {
    const char *pattern;
    int day;
    int month;
    int year;
    int hour;
} forms[] = {
    {"^" DAY ", ([0-9]{2}) " MONTH " ([0-9]{4}) " TIME " GMT$", 2, 3, 4, 5},
    {"^" LONG_DAY ", ([0-9]{2})-" MONTH "-([0-9]{2}) " TIME " GMT$", 2, 3, 4, 5},
    {"^" DAY " " MONTH " ([0-9]{2}| [0-9]) " TIME " ([0-9]{4})$", 3, 2, 7, 4},
};
enum { FORMS = 3, GROUPS = 9 };

/* Month, day and time as one number that grows with them; a tm_sec of 60 is the largest. */
static long long order_of(const struct tm *tm)
{
    return (((tm->tm_mon * 100LL + tm->tm_mday) * 100 + tm->tm_hour) * 100 + tm->tm_min) * 100 + tm->tm_sec;
}

/* The year with these two digits that is not more than fifty years after now. */
static int full_year(const struct tm *tm, int digits, int64_t now_s)
{
    struct tm now;
    time_t second = (time_t)now_s;
    expect(gmtime_r(&second, &now) != NULL);
    int latest = now.tm_year + 1900 + 50 - (order_of(tm) > order_of(&now));
    return latest - ((latest - digits) % 100 + 100) % 100;
}

static bool read_match(const struct form *form, const char *text, const regmatch_t *at, int64_t now_s, int64_t *seconds)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm tm = {0};
    char name[4] = "";
    memcpy(name, text + at[form->month].rm_so, 3);
    tm.tm_mon = (int)(strstr(months, name) - months) / 3;
    tm.tm_mday = (int)strtol(text + at[form->day].rm_so, NULL, 10);
    tm.tm_hour = (int)strtol(text + at[form->hour].rm_so, NULL, 10);
    tm.tm_min = (int)strtol(text + at[form->hour + 1].rm_so, NULL, 10);
    tm.tm_sec = (int)strtol(text + at[form->hour + 2].rm_so, NULL, 10);
    int year = (int)strtol(text + at[form->year].rm_so, NULL, 10);
    if (at[form->year].rm_eo - at[form->year].rm_so == 2)
        year = full_year(&tm, year, now_s);
    tm.tm_year = year - 1900;
    if (tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60 ||
        (tm.tm_sec == 60 && (tm.tm_hour != 23 || tm.tm_min != 59)))
        return false;
    struct tm back = tm;
    back.tm_hour = back.tm_min = back.tm_sec = 0;
    (void)timegm(&back); /* puts a day that the month does not have into the next one */
    if (tm.tm_mday != back.tm_mday || tm.tm_mon != back.tm_mon)
        return false;
    *seconds = timegm(&tm);
    return true;
}

static bool read_slowly(const char *text, size_t n, int64_t now_s, int64_t *seconds)
{
    static regex_t compiled[FORMS];
    static bool ready;
    regmatch_t at[GROUPS];
    for (int i = 0; i < FORMS && !ready; i++)
        expect(regcomp(&compiled[i], forms[i].pattern, REG_EXTENDED) == 0);
    ready = true;
    if (memchr(text, 0, n))
        return false;
    for (int i = 0; i < FORMS; i++)
        if (regexec(&compiled[i], text, GROUPS, at, 0) == 0)
            return read_match(&forms[i], text, at, now_s, seconds);
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes in = {data, size};
    if (size < 4 || size > 256)
        return 0;
    int64_t now_s = 0;
    for (int i = 0; i < 4; i++)
        now_s = now_s << 8 | next_byte(&in);
    now_s = now_s * 59 % 253402300800; /* up to the year 9999 */
    char *text = oribi_mem_alloc(1, in.n ? in.n : 1);
    char copy[256] = "";
    memcpy(text, in.p, in.n);
    memcpy(copy, in.p, in.n);
    int64_t got = 7;
    int64_t want = 7;
    int result = oribi_date_read(oribi_slice(text, in.n), now_s, &got);
    expect(result == 0 || result == ORIBI_EBAD);
    expect((result == 0) == read_slowly(copy, in.n, now_s, &want));
    expect(got == (result == 0 ? want : 7));
    oribi_mem_free(text);
    return 0;
}
