/* When a cookie expires. */
#include "oribi/form/cookie.h"

#include <stdio.h>
#include <time.h>

ssize_t oribi_cookie_date(int64_t seconds, char separator, char dst[static ORIBI_COOKIE_DATE_CAP])
{
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t time = (time_t)seconds;
    struct tm at;
    if (!gmtime_r(&time, &at) || at.tm_year < 1000 - 1900 || at.tm_year > 9999 - 1900)
        return ORIBI_EBAD;
    return snprintf(dst, ORIBI_COOKIE_DATE_CAP, "%s, %02d%c%s%c%04d %02d:%02d:%02d GMT", days[at.tm_wday], at.tm_mday,
                    separator, months[at.tm_mon], separator, at.tm_year + 1900, at.tm_hour, at.tm_min, at.tm_sec);
}

static bool is_digit(struct oribi_slice text, size_t at)
{
    return at < text.n && text.p[at] >= '0' && text.p[at] <= '9';
}

static double unit_seconds(struct oribi_slice text, size_t at)
{
    switch (at < text.n ? text.p[at] : 's') {
    case 'm':
        return 60;
    case 'h':
        return 3600;
    case 'd':
        return 86400;
    case 'M':
        return 30 * 86400.0;
    case 'y':
        return 365 * 86400.0;
    default:
        return 1;
    }
}

bool oribi_cookie_expires(struct oribi_slice text, int64_t now, int64_t *seconds)
{
    const double most = 1e15; /* beyond every year of four digits, and within the numbers that a double has */
    size_t at = 0;
    double number = 0;
    double scale = 1;
    if (oribi_slice_equal(text, ORIBI_SLICE("now"))) {
        *seconds = now;
        return true;
    }
    bool negative = text.n && text.p[0] == '-';
    if (text.n && (text.p[0] == '-' || text.p[0] == '+'))
        at++;
    size_t first = at;
    for (; is_digit(text, at); at++)
        number = number < most ? number * 10 + (text.p[at] - '0') : most;
    if (at == text.n && first == 0 && at > 0) {
        *seconds = (int64_t)number;
        return true;
    }
    if (at == first) { /* a fraction without digits in front of it; `1.5h` is 1 to Cookie::Baker, and so to us */
        if (at == text.n || text.p[at] != '.')
            return false;
        for (at++; is_digit(text, at); at++)
            number += (text.p[at] - '0') * (scale /= 10);
    }
    number *= unit_seconds(text, at);
    if (number > most)
        number = most;
    *seconds = (int64_t)((double)now + (negative ? -number : number));
    return true;
}
