/* Proleptic Gregorian calendar without the C library: strftime would bring the locale's names and gmtime its time
 * zone lock. */
#include "oribi/http/date.h"

#include <string.h>

static const char week_days[] = "ThuFriSatSunMonTueWed"; /* 1970-01-01 was a Thursday */
static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

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
    memcpy(dst + 8, months + 3 * (size_t)month, 3);
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
