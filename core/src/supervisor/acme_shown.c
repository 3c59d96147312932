/* Words about certificates by ACME: lines of the log, the table of ctl. */
#include "supervisor/acme_private.h"

#include "oribi/base/log.h"

#include <stdio.h>
#include <time.h>

enum { LAST_WEEK_S = 7 * 24 * 60 * 60, DAY_S = 24 * 60 * 60 };

const char *oribi__acme_date(int64_t seconds, char dst[ORIBI__ACME_DATE_CAP])
{
    struct tm parts = {0};
    time_t when = (time_t)seconds;
    if (!gmtime_r(&when, &parts) || strftime(dst, ORIBI__ACME_DATE_CAP, "%Y-%m-%d %H:%M UTC", &parts) == 0)
        (void)snprintf(dst, ORIBI__ACME_DATE_CAP, "an unknown date");
    return dst;
}

static const char *or_none(int64_t seconds, char dst[ORIBI__ACME_DATE_CAP])
{
    return seconds ? oribi__acme_date(seconds, dst) : "-";
}

const char *oribi__acme_without_file(const struct oribi__acme_item *item)
{
    return item->shown.placeholder ? "a self-signed placeholder serves" : "the certificate that served last serves on";
}

void oribi__acme_log_begin(const struct oribi__acme *acme, const struct oribi__acme_item *item)
{
    char date[ORIBI__ACME_DATE_CAP];
    const char *directory = acme->context->process.options->acme_directory;
    if (item->shown.expires_s)
        oribi_log(ORIBI_LOG_INFO, "certificate of %s: asking %s for a new one; the one until %s serves on",
                  item->shown.name, directory, oribi__acme_date(item->shown.expires_s, date));
    else
        oribi_log(ORIBI_LOG_INFO, "certificate of %s: asking %s for it; %s until then", item->shown.name, directory,
                  oribi__acme_without_file(item));
}

void oribi__acme_log_done(const struct oribi__acme_item *item)
{
    char from[ORIBI__ACME_DATE_CAP];
    char to[ORIBI__ACME_DATE_CAP];
    char next[ORIBI__ACME_DATE_CAP];
    oribi_log(ORIBI_LOG_INFO, "certificate of %s: issued for %.300s, valid from %s to %s; the next order is at %s",
              item->shown.name, item->names, oribi__acme_date(item->shown.begins_s, from),
              oribi__acme_date(item->shown.expires_s, to), or_none(item->shown.next_s, next));
}

void oribi__acme_log_found(const struct oribi__acme *acme, const struct oribi__acme_item *item)
{
    char to[ORIBI__ACME_DATE_CAP];
    char next[ORIBI__ACME_DATE_CAP];
    oribi_log(ORIBI_LOG_INFO,
              "certificate of %s: another process has put a good one into %s, valid to %s; nothing was asked for; "
              "the next order is at %s",
              item->shown.name, acme->dir, oribi__acme_date(item->shown.expires_s, to),
              or_none(item->shown.next_s, next));
}

void oribi__acme_log_failed(const struct oribi__acme *acme, const struct oribi__acme_item *item)
{
    char to[ORIBI__ACME_DATE_CAP];
    char next[ORIBI__ACME_DATE_CAP];
    int64_t expires_s = item->shown.expires_s;
    bool urgent = expires_s - oribi__acme_now_s(acme) < LAST_WEEK_S &&
                  (!expires_s || expires_s - item->shown.begins_s > 2 * LAST_WEEK_S);
    enum oribi_log_level level = urgent ? ORIBI_LOG_ERROR : ORIBI_LOG_WARN;
    (void)or_none(item->shown.next_s, next);
    if (expires_s)
        oribi_log(level, "certificate of %s: not issued: %s; the certificate until %s serves on; next try at %s",
                  item->shown.name, item->reason, oribi__acme_date(expires_s, to), next);
    else
        oribi_log(level, "certificate of %s: not issued: %s; %s; next try at %s", item->shown.name, item->reason,
                  oribi__acme_without_file(item), next);
}

void oribi__acme_table(const struct oribi__context *context, struct oribi_buf *out)
{
    static const char head[] =
        "certificate                     state        from                  to                    "
        "next try              reason\n";
    const struct oribi__acme_set *set = oribi__acme_set(context);
    oribi_buf_print(out, "%s", head);
    for (uint32_t i = 0; i < set->count; i++) {
        const struct oribi__acme_certificate *shown = set->items[i];
        char dates[3][ORIBI__ACME_DATE_CAP];
        oribi_buf_print(out, "%-30s  %-11s  %-20s  %-20s  %-20s  %s\n", shown->name, shown->state,
                        or_none(shown->begins_s, dates[0]), or_none(shown->expires_s, dates[1]),
                        or_none(shown->next_s, dates[2]), shown->reason[0] ? shown->reason : "-");
    }
}
