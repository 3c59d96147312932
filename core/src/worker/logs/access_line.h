/* access_line - one line of the access log: an entry as bytes, in the format of the log. Pure but for the local time
 * zone. */
#ifndef ORIBI_WORKER_LOGS_ACCESS_LINE_H
#define ORIBI_WORKER_LOGS_ACCESS_LINE_H

#include "oribi/config/log_format.h"
#include "oribi/worker/logs/access_log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ORIBI__LINE_TIME_CAP = 40 };

enum oribi__line_kind {
    ORIBI__LINE_COMMON,
    ORIBI__LINE_COMBINED,
    ORIBI__LINE_JSON,
    ORIBI__LINE_DEV,
    ORIBI__LINE_OWN,
};

struct oribi__line_style {
    enum oribi__line_kind kind;
    bool colours;                    /* of ORIBI__LINE_DEV, on a terminal */
    struct oribi_log_format *format; /* of ORIBI__LINE_OWN, on the heap */
    size_t bytes_max;                /* of a line, with its newline */
    uint32_t wants;                  /* bits of enum oribi_access_wants */
    char time[ORIBI__LINE_TIME_CAP]; /* [31/Jan/2026:12:00:00 +0000]; json: 2026-01-31T12:00:00 in UTC */
    char iso[ORIBI__LINE_TIME_CAP];  /* 2026-01-31T12:00:00+00:00 */
    int64_t second;                  /* which both show */
};

/* Reads the name of a format, or a format. 0, or ORIBI_EINVAL with one line in `error` (ORIBI_ERROR_TEXT_CAP). */
int oribi__line_style_init(struct oribi__line_style *style, const char *format, char *error);
void oribi__line_style_deinit(struct oribi__line_style *style);

/* Writes the line at dst, which has room for bytes_max; returns its end. */
char *oribi__access_line(struct oribi__line_style *style, char *dst, const struct oribi_access_entry *entry);

#endif
