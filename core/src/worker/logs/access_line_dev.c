/* Lines of the access log for eyes.
 *
 *   14:03:07 GET     200    1.4 ms    13 B   /cart?page=2
 *   14:03:09 POST    500   23.1 ms   1.6 kB  /orders
 *
 * What differs in width stands last. Colours are for terminals; what a peer chose is escaped as in the other formats,
 * so that no byte of it reaches the terminal as a control. */
#include "worker/logs/access_line.h"

#include "oribi/base/escape.h"
#include "oribi/http/head.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { SHORT_CAP = 64 };

static const char *colour_of(int status)
{
    return status >= 500 ? "\x1b[31m" : status >= 400 ? "\x1b[33m" : status >= 300 ? "\x1b[36m" : "\x1b[32m";
}

/* Three digits that count: "13 B", "1.6 kB", "210 kB". */
static void print_size(char dst[SHORT_CAP], int64_t bytes)
{
    static const char *const units[] = {"kB", "MB", "GB", "TB"};
    double value = (double)bytes / 1000;
    size_t unit = 0;
    if (bytes < 1000) {
        (void)snprintf(dst, SHORT_CAP, "%lld B ", (long long)bytes);
        return;
    }
    for (; value >= 999.5 && unit < 3; unit++)
        value /= 1000;
    (void)snprintf(dst, SHORT_CAP, "%.*f %s", value < 9.95 ? 1 : 0, value, units[unit]);
}

static void print_time(char dst[SHORT_CAP], int64_t us)
{
    if (us < 0)
        us = 0;
    if (us < 9999500)
        (void)snprintf(dst, SHORT_CAP, "%.1f ms", (double)us / 1000);
    else
        (void)snprintf(dst, SHORT_CAP, "%.1f s ", (double)us / 1000000);
}

static char *put(char *dst, const char *text)
{
    size_t n = strlen(text);
    memcpy(dst, text, n);
    return dst + n;
}

static char *put_escaped(char *dst, struct oribi_slice text, size_t max)
{
    return oribi_escape_text(dst, oribi_slice(text.p, text.n < max ? text.n : max));
}

char *oribi__access_line_dev(const struct oribi__line_style *style, char *dst, const struct oribi_access_entry *entry)
{
    const struct oribi_head *head = entry->head;
    time_t second = (time_t)(entry->wall_ms / 1000);
    struct tm parts = {0};
    char text[3 * SHORT_CAP];
    char size[SHORT_CAP];
    char taken[SHORT_CAP];
    (void)localtime_r(&second, &parts);
    print_size(size, entry->body_bytes);
    print_time(taken, entry->total_us);
    (void)snprintf(text, sizeof(text), "%02d:%02d:%02d ", parts.tm_hour, parts.tm_min, parts.tm_sec);
    dst = put(dst, text);
    char *method = dst;
    dst = head->method.n ? put_escaped(dst, head->method, ORIBI_LOGGED_FIELD_MAX) : put(dst, "-");
    while (dst < method + 7)
        *dst++ = ' ';
    (void)snprintf(text, sizeof(text), " %s%d%s ", style->colours ? colour_of(entry->status) : "", entry->status,
                   style->colours ? "\x1b[0m" : "");
    dst = put(dst, text);
    (void)snprintf(text, sizeof(text), "%9s %8s  ", taken, size);
    dst = put(dst, text);
    struct oribi_slice target = head->method.n ? head->target : entry->raw_line;
    dst = target.n ? put_escaped(dst, target, ORIBI_LOGGED_TARGET_MAX) : put(dst, "-");
    return entry->cut ? put(dst, " cut") : dst;
}
