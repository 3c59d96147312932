/* Proleptic Gregorian calendar without the C library: strftime would bring the locale's names and gmtime its time
 * zone lock. */
#include "oribi/http/date.h"
#include "oribi/base/error.h"

#include <string.h>

static const char week_days[] = "ThuFriSatSunMonTueWed"; /* 1970-01-01 was a Thursday */
static const char month_letters[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

/* 9999-12-31T23:59:59Z: the format has four digits for the year. */
static const int64_t second_max = 253402300799;

static void put_two(char *dst, unsigned value)
{
    dst[0] = (char)('0' + value / 10);
    dst[1] = (char)('0' + value % 10);
}

void oribi_date_format(int64_t seconds, char dst[ORIBI_DATE_LEN])
{
    if (seconds < 0)
        seconds = 0;
    if (seconds > second_max)
        seconds = second_max;
    unsigned days = (unsigned)(seconds / 86400);
    unsigned rest = (unsigned)(seconds % 86400);

    /* Years counted from March, so that the leap day is a year's last; 146097 days are 400 years, and 719468 lie
     * between 0000-03-01 and 1970. */
    unsigned shifted = days + 719468;
    unsigned era = shifted / 146097;
    unsigned day_of_era = shifted % 146097;
    unsigned year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    unsigned month = (5 * day_of_year + 2) / 153; /* 0 is March */
    unsigned day = day_of_year - (153 * month + 2) / 5 + 1;
    month = month < 10 ? month + 2 : month - 10; /* 0 is January */
    unsigned year = era * 400 + year_of_era + (month < 2);

    memcpy(dst, "Thu, 01 Jan 1970 00:00:00 GMT", ORIBI_DATE_LEN);
    memcpy(dst, week_days + 3 * (size_t)(days % 7), 3);
    put_two(dst + 5, day);
    memcpy(dst + 8, month_letters + 3 * (size_t)month, 3);
    put_two(dst + 12, year / 100);
    put_two(dst + 14, year % 100);
    put_two(dst + 17, rest / 3600);
    put_two(dst + 20, rest / 60 % 60);
    put_two(dst + 23, rest % 60);
}

const char *oribi_date_cached(struct oribi_date_cache *cache, int64_t second)
{
    if (cache->second != second || !cache->text[0]) {
        oribi_date_format(second, cache->text);
        cache->second = second;
    }
    return cache->text;
}

/* ---- date_read ---- */

/* HTTP-date. The three forms are patterns, and one reader follows them; the C library's strptime() would follow the
 * locale and take white space and case as it likes. */

/* %a short and %A long name of a day, %b month, %d day of two digits, %e the same with a space in place of a zero, %Y
 * and %y year of four and two digits, %T time of day. */
static const char *const patterns[] = {"%a, %d %b %Y %T GMT", "%A, %d-%b-%y %T GMT", "%a %b %e %T %Y"};

static const char *const short_days[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", NULL};
static const char *const long_days[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                        "Friday", "Saturday", "Sunday",    NULL};
static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul",
                                     "Aug", "Sep", "Oct", "Nov", "Dec", NULL};

struct parts {
    int year;
    int month; /* 0 is January */
    int day;   /* from 1 */
    int second_of_day;
    bool short_year;
};

/* Takes exactly `digits` of them off the front. */
static bool take_number(struct oribi_slice *text, size_t digits, int *value)
{
    if (text->n < digits)
        return false;
    int number = 0;
    for (size_t i = 0; i < digits; i++) {
        if (text->p[i] < '0' || text->p[i] > '9')
            return false;
        number = number * 10 + (text->p[i] - '0');
    }
    *value = number;
    *text = oribi_slice(text->p + digits, text->n - digits);
    return true;
}

static bool take_text(struct oribi_slice *text, const char *wanted)
{
    size_t n = strlen(wanted);
    if (text->n < n || memcmp(text->p, wanted, n) != 0)
        return false;
    *text = oribi_slice(text->p + n, text->n - n);
    return true;
}

/* Takes one of the names, of which none begins another one of its list. */
static bool take_name(struct oribi_slice *text, const char *const *names, int *index)
{
    for (int i = 0; names[i]; i++)
        if (take_text(text, names[i])) {
            *index = i;
            return true;
        }
    return false;
}

static bool take_time(struct oribi_slice *text, int *second_of_day)
{
    int hour;
    int minute;
    int second;
    if (!take_number(text, 2, &hour) || !take_text(text, ":") || !take_number(text, 2, &minute) ||
        !take_text(text, ":") || !take_number(text, 2, &second))
        return false;
    bool leap = second == 60 && hour == 23 && minute == 59; /* leap seconds are inserted at the end of a UTC day */
    if (hour > 23 || minute > 59 || (second > 59 && !leap))
        return false;
    *second_of_day = hour * 3600 + minute * 60 + second;
    return true;
}

static bool take_part(struct oribi_slice *text, char directive, struct parts *parts)
{
    int ignored;
    switch (directive) {
    case 'a':
        return take_name(text, short_days, &ignored);
    case 'A':
        return take_name(text, long_days, &ignored);
    case 'b':
        return take_name(text, months, &parts->month);
    case 'd':
        return take_number(text, 2, &parts->day);
    case 'e':
        return take_text(text, " ") ? take_number(text, 1, &parts->day) : take_number(text, 2, &parts->day);
    case 'T':
        return take_time(text, &parts->second_of_day);
    case 'Y':
        return take_number(text, 4, &parts->year);
    default:
        parts->short_year = true;
        return take_number(text, 2, &parts->year);
    }
}

static bool follow(const char *pattern, struct oribi_slice text, struct parts *parts)
{
    for (const char *at = pattern; *at; at++) {
        if (*at == '%') {
            if (!take_part(&text, *++at, parts))
                return false;
        } else {
            if (text.n == 0 || *text.p != *at)
                return false;
            text = oribi_slice(text.p + 1, text.n - 1);
        }
    }
    return text.n == 0;
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month] + (month == 1 && leap);
}

/* Seconds since the epoch in the proleptic Gregorian calendar, for years 0 … 9999. A day that the month does not have
 * counts on into the next one. */
static int64_t seconds_of(const struct parts *parts, int year)
{
    int64_t shifted = parts->month < 2 ? year - 1 : year; /* years begin in March, so that the leap day is their last */
    int month = (parts->month + 10) % 12;                 /* 0 is March */
    int64_t era = (shifted + 400) / 400 - 1;              /* 400 years each; January of the year 0 is in era -1 */
    int64_t year_of_era = shifted - era * 400;
    int64_t day_of_era =
        year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + (153 * month + 2) / 5 + parts->day - 1;
    return (era * 146097 + day_of_era - 719468) * 86400 + parts->second_of_day; /* 719468: 0000-03-01 to 1970 */
}

/* Whether the date lies further ahead in that year than a two-digit year may mean. */
static bool is_too_far(const struct parts *parts, int year, int64_t now_s)
{
    struct parts then = *parts;
    int past = year - ORIBI_DATE_FUTURE_YEARS;
    if (then.day > days_in_month(past, then.month))
        then.second_of_day = 0; /* 29 February falls on the begin of 1 March there */
    return seconds_of(&then, past) > now_s;
}

/* The latest year with the two digits at hand that lies not too far ahead. */
static int full_year(const struct parts *parts, int64_t now_s)
{
    int year = parts->year + 10000;
    while (year >= 100 && is_too_far(parts, year, now_s))
        year -= 100;
    return year;
}

int oribi_date_read(struct oribi_slice text, int64_t now_s, int64_t *seconds)
{
    if (text.n > ORIBI_DATE_BYTES_MAX)
        return ORIBI_EBAD;
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        struct parts parts = {0};
        if (!follow(patterns[i], text, &parts))
            continue;
        int year = parts.short_year ? full_year(&parts, now_s) : parts.year;
        if (parts.day < 1 || parts.day > days_in_month(year, parts.month))
            return ORIBI_EBAD;
        *seconds = seconds_of(&parts, year);
        return 0;
    }
    return ORIBI_EBAD;
}
