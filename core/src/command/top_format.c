/* Numbers for people; see the header. */
#include "command/top_format.h"

#include <stdio.h>

/* One digit behind the point below 10 000 of the unit, none from 100 on. */
static void write_scaled(char dst[ORIBI__TEXT_CAP], double value, const char *unit)
{
    (void)snprintf(dst, ORIBI__TEXT_CAP, value < 99.95 ? "%.1f%s" : "%.0f%s", value, unit); /* units are short */
}

const char *oribi__text_duration(char dst[ORIBI__TEXT_CAP], uint64_t us)
{
    unsigned long long s = us / 1000000;
    if (us < 1000)
        (void)snprintf(dst, ORIBI__TEXT_CAP, "%llu us", (unsigned long long)us); /* as all of them: fits */
    else if (us < 1000000)
        write_scaled(dst, (double)(us < 999000 ? us : 999000) / 1e3, " ms");
    else if (us < 60000000)
        (void)snprintf(dst, ORIBI__TEXT_CAP, "%llu.%02llu s", s, (unsigned long long)us / 10000 % 100);
    else if (s < 3600)
        (void)snprintf(dst, ORIBI__TEXT_CAP, "%llu m %02llu s", s / 60, s % 60);
    else if (s < 86400)
        (void)snprintf(dst, ORIBI__TEXT_CAP, "%llu h %02llu m", s / 3600, s / 60 % 60);
    else if (s < 86400 * 100)
        (void)snprintf(dst, ORIBI__TEXT_CAP, "%llu d %02llu h", s / 86400, s / 3600 % 24);
    else if (s / 86400 < 1000000)
        (void)snprintf(dst, ORIBI__TEXT_CAP, "%llu d", s / 86400);
    else
        (void)snprintf(dst, ORIBI__TEXT_CAP, "ages");
    return dst;
}

/* In steps of a thousand or of 1024; what is beyond all units is of no server. */
static const char *in_steps(char dst[ORIBI__TEXT_CAP], double value, double step, const char *const *units,
                            unsigned count)
{
    unsigned i = 0;
    for (; value >= step && i + 1 < count; i++)
        value /= step;
    write_scaled(dst, value < 9999 ? value : 9999, units[i]);
    return dst;
}

const char *oribi__text_count(char dst[ORIBI__TEXT_CAP], uint64_t count)
{
    static const char *const units[] = {"M", "G", "T", "P", "E"};
    if (count >= 10000000)
        return in_steps(dst, (double)count / 1e6, 1000, units, 5);
    (void)snprintf(dst, ORIBI__TEXT_CAP, "%llu", (unsigned long long)count); /* fits */
    return dst;
}

const char *oribi__text_rate(char dst[ORIBI__TEXT_CAP], double rate)
{
    static const char *const units[] = {"k", "M", "G", "T", "P"};
    if (rate >= 9999.5)
        return in_steps(dst, rate / 1e3, 1000, units, 5);
    if (rate <= 0)
        (void)snprintf(dst, ORIBI__TEXT_CAP, rate < 0 ? "-" : "0"); /* fits */
    else
        write_scaled(dst, rate, "");
    return dst;
}

const char *oribi__text_bytes(char dst[ORIBI__TEXT_CAP], double bytes)
{
    static const char *const units[] = {" KB", " MB", " GB", " TB", " PB"};
    if (bytes >= 1024)
        return in_steps(dst, bytes / 1024, 1024, units, 5);
    (void)snprintf(dst, ORIBI__TEXT_CAP, "%.0f B", bytes > 0 ? bytes : 0); /* fits */
    return dst;
}
