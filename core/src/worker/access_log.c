/* Access log. Lines gather in a buffer and leave in one write a turn; several workers append to the same file. What
 * there is no room for stays in the buffer (sink.h, backlog.h).
 *
 *   common     127.0.0.1 - - [31/Jan/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 13
 *   combined   the same, then "referer" "user agent"
 *   json       {"time":"2026-01-31T12:00:00.123Z","remote_addr":"127.0.0.1","method":"GET",...}
 *
 * Behind an answer that broke off stands ` cut`, or "cut":true behind its bytes. What a peer chose stands between
 * quotes, with quotes, backslashes and controls escaped: it can neither end its field nor its line. */
#include "oribi/worker/access_log.h"

#include "oribi/base/backlog.h"
#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/escape.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os.h"
#include "oribi/http/fields.h"
#include "oribi/config/options.h"

#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    TIME_CAP = 40,
    NUMBER_CAP = 20,
    REPORT_INTERVAL_MS = 60 * 1000,
    RESUMED_INTERVAL_MS = 1000, /* between two lines about a reader that comes and goes */
    LINE_FIXED_MAX = 512,       /* names, numbers, punctuation and time of one line */
    LINE_MAX_BYTES = LINE_FIXED_MAX + ORIBI_ESCAPE_JSON_GROWTH * (ORIBI_LOGGED_TARGET_MAX + 5 * ORIBI_LOGGED_FIELD_MAX),
};

enum format { FORMAT_COMMON, FORMAT_COMBINED, FORMAT_JSON };

struct oribi_access_log {
    struct oribi_backlog lines;
    enum format format;
    struct oribi_sink sink;
    bool stalled; /* the last write found no room */
    bool full;    /* lines are dropped until it takes some again, and the error log knows */
    char time[TIME_CAP];
    int64_t time_second; /* which second `time` shows */
    int64_t reported_ms; /* when the error log was told last of lines that were lost; 0: never */
    char path[PATH_MAX]; /* absolute; "" for standard output */
};

static int open_path(struct oribi_access_log *log, const struct oribi_log_owner *owner, bool again, char *error)
{
    bool stream = false;
    int fd = *log->path ? -1 : oribi_os_dup(STDOUT_FILENO);
    int code = *log->path ? oribi_log_file_open(log->path, owner, &fd, &stream) : fd < 0 ? fd : 0;
    if (code == 0 && stream && again) { /* what it was then, we have */
        oribi_os_close(fd);
        return 0;
    }
    if (code < 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "cannot open the access log %.120s: %s",
                       *log->path ? log->path : "-", oribi_os_error_text());
        return code;
    }
    oribi_sink_close(&log->sink);
    oribi_sink_open(&log->sink, fd);
    log->stalled = false;
    return 0;
}

static bool find_format(const char *name, enum format *out)
{
    static const char *const names[] = {"common", "combined", "json"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (enum format)i;
            return true;
        }
    }
    return false;
}

int oribi_access_log_open(const char *path, const char *format, const struct oribi_log_owner *owner,
                          struct oribi_access_log **out, char *error)
{
    if (strcmp(path, "off") == 0) {
        *out = NULL;
        return 0;
    }
    struct oribi_access_log *log = oribi_mem_alloc(1, sizeof(*log));
    int code = 0;
    log->sink = ORIBI_SINK_NONE;
    log->time_second = INT64_MIN;
    if (!find_format(format, &log->format)) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "access log format must be common, combined or json, not %.60s",
                       format);
        code = ORIBI_EINVAL;
    } else if (strcmp(path, "-") != 0 && (code = oribi_os_absolute_path(path, log->path, sizeof(log->path))) < 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "cannot open the access log %.120s: %s", path,
                       oribi_os_error_text());
    }
    if (code == 0)
        code = open_path(log, owner, false, error);
    if (code < 0) {
        oribi_mem_free(log);
        return code;
    }
    log->lines.cap = ORIBI_ACCESS_KEPT_MAX + LINE_MAX_BYTES; /* pages that are never touched are never had */
    log->lines.text = oribi_mem_alloc(1, log->lines.cap);
    *out = log;
    return 0;
}

int oribi_access_log_reopen(struct oribi_access_log *log, const struct oribi_log_owner *owner, char *error)
{
    if (!log)
        return 0;
    oribi_access_log_flush(log); /* what happened before the rotation belongs to the old file */
    return *log->path ? open_path(log, owner, true, error) : 0;
}

int oribi_access_log_follow_stdout(struct oribi_access_log *log, char *error)
{
    return log && !*log->path ? open_path(log, NULL, false, error) : 0;
}

void oribi_access_log_close(struct oribi_access_log *log)
{
    if (!log)
        return;
    oribi_access_log_drain(log, ORIBI_LOG_DRAIN_MS);
    oribi_access_log_forget(log);
}

void oribi_access_log_forget(struct oribi_access_log *log)
{
    if (!log)
        return;
    oribi_sink_close(&log->sink);
    oribi_mem_free(log->lines.text);
    oribi_mem_free(log);
}

int oribi_access_log_fd(const struct oribi_access_log *log)
{
    return log->sink.fd;
}

bool oribi_access_log_intact(const struct oribi_access_log *log)
{
    return !log || oribi_sink_intact(&log->sink);
}

/* Writing */

/* Lines that could not be written: the disk is full, or the reader is gone. */
static void report_lost(struct oribi_access_log *log)
{
    int64_t now_ms = oribi_clock_ms();
    if (log->reported_ms && now_ms - log->reported_ms < REPORT_INTERVAL_MS)
        return;
    oribi_log(ORIBI_LOG_ERROR, "access log: %llu lines lost: %s", (unsigned long long)log->lines.dropped,
              oribi_os_error_text());
    log->lines.dropped = 0;
    log->reported_ms = now_ms;
}

/* Nobody reads, and as many lines are kept as may be. */
static void report_full(struct oribi_access_log *log)
{
    if (!log->full)
        oribi_log(ORIBI_LOG_ERROR,
                  "access log: its reader has not taken the last %d KiB: dropping lines until it reads on",
                  ORIBI_ACCESS_KEPT_MAX / 1024);
    log->full = true;
}

static void report_resumed(struct oribi_access_log *log)
{
    int64_t now_ms = oribi_clock_ms();
    if (log->reported_ms && now_ms - log->reported_ms < RESUMED_INTERVAL_MS)
        return;
    oribi_log(ORIBI_LOG_ERROR, "access log: %llu lines lost while its reader did not read; writing goes on",
              (unsigned long long)log->lines.dropped);
    log->lines.dropped = 0;
    log->full = false;
    log->reported_ms = now_ms;
}

uint64_t oribi_access_log_dropped(const struct oribi_access_log *log)
{
    return log ? atomic_load_explicit(&log->lines.dropped_ever, memory_order_relaxed) : 0;
}

bool oribi_access_log_waits(const struct oribi_access_log *log)
{
    return log && (oribi_backlog_waits(&log->lines) || log->full);
}

void oribi_access_log_flush(struct oribi_access_log *log)
{
    if (!oribi_access_log_waits(log))
        return;
    int code = oribi_backlog_flush(&log->lines, &log->sink);
    log->stalled = code == ORIBI_AGAIN;
    if (log->stalled && log->lines.dropped > 0)
        report_full(log);
    else if (code == 0 && log->full)
        report_resumed(log);
    else if (code < 0 && !log->stalled)
        report_lost(log);
}

void oribi_access_log_drain(struct oribi_access_log *log, int64_t ms)
{
    enum { LOOK_MS = 10 };
    int64_t until_ms = oribi_clock_ms() + ms;
    oribi_access_log_flush(log);
    while (oribi_access_log_waits(log) && oribi_clock_ms() < until_ms) {
        (void)poll(NULL, 0, LOOK_MS);
        oribi_access_log_flush(log);
    }
    if (oribi_access_log_waits(log))
        oribi_log(ORIBI_LOG_ERROR, "access log: its reader does not read: the last lines are lost%s",
                  log->full ? ", and others before" : "");
}

void oribi_access_log_discard(struct oribi_access_log *log)
{
    if (!log)
        return;
    log->lines.pos = log->lines.len = 0;
    log->lines.dropped = 0;
    atomic_store(&log->lines.dropped_ever, 0);
    log->full = false;
}

/* Formatting. The caller has made room for a whole line of the largest size, so that nothing here checks. */

static char *put_text(char *dst, const char *text, size_t n)
{
    memcpy(dst, text, n);
    return dst + n;
}

#define PUT(dst, literal) put_text((dst), (literal), sizeof(literal) - 1)

static char *put_number(char *dst, int64_t value)
{
    char digits[NUMBER_CAP];
    size_t n = 0;
    uint64_t rest = value < 0 ? 0 : (uint64_t)value; /* clocks may step back; a log shows no negative durations */
    do {
        digits[n++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    while (n > 0)
        *dst++ = digits[--n];
    return dst;
}

static struct oribi_slice cut(struct oribi_slice text, size_t max)
{
    return oribi_slice(text.p, text.n < max ? text.n : max);
}

static struct oribi_slice field_value(const struct oribi_head *head, enum oribi_field_id id)
{
    const struct oribi_field *field = oribi_head_field(head, id);
    return field ? oribi_slice(field->value, field->value_len) : oribi_slice("", 0);
}

/* Formatted once a second. JSON has milliseconds behind it, which put_json adds. */
static void update_time(struct oribi_access_log *log, int64_t second)
{
    time_t when = (time_t)second;
    struct tm parts = {0};
    bool json = log->format == FORMAT_JSON;
    if (second == log->time_second)
        return;
    (void)(json ? gmtime_r(&when, &parts) : localtime_r(&when, &parts)); /* fails for years beyond int only */
    if (strftime(log->time, sizeof(log->time), json ? "%Y-%m-%dT%H:%M:%S" : "[%d/%b/%Y:%H:%M:%S %z]", &parts) == 0)
        log->time[0] = '\0';
    log->time_second = second;
}

static char *put_quoted(char *dst, struct oribi_slice text)
{
    *dst++ = '"';
    dst = text.n ? oribi_escape_text(dst, cut(text, ORIBI_LOGGED_FIELD_MAX)) : PUT(dst, "-");
    *dst++ = '"';
    return dst;
}

static char *put_common(char *dst, const struct oribi_access_log *log, const struct oribi_access_entry *entry)
{
    const struct oribi_head *head = entry->head;
    struct oribi_slice peer = entry->remote_addr;
    dst = peer.n ? oribi_escape_text(dst, cut(peer, ORIBI_LOGGED_FIELD_MAX)) : PUT(dst, "-");
    dst = PUT(dst, " - - ");
    dst = put_text(dst, log->time, strlen(log->time));
    dst = PUT(dst, " \"");
    if (head->method.n) {
        dst = oribi_escape_text(dst, cut(head->method, ORIBI_LOGGED_FIELD_MAX));
        *dst++ = ' ';
        dst = oribi_escape_text(dst, cut(head->target, ORIBI_LOGGED_TARGET_MAX));
        dst = PUT(dst, " HTTP/1.");
        *dst++ = head->minor ? '1' : '0';
    } else {
        struct oribi_slice raw = entry->raw_line;
        dst = raw.n ? oribi_escape_text(dst, cut(raw, ORIBI_LOGGED_TARGET_MAX)) : PUT(dst, "-");
    }
    dst = PUT(dst, "\" ");
    dst = put_number(dst, entry->status);
    *dst++ = ' ';
    dst = put_number(dst, entry->body_bytes);
    if (log->format == FORMAT_COMBINED) {
        *dst++ = ' ';
        dst = put_quoted(dst, field_value(head, ORIBI_FIELD_REFERER));
        *dst++ = ' ';
        dst = put_quoted(dst, field_value(head, ORIBI_FIELD_USER_AGENT));
    }
    return entry->cut ? PUT(dst, " cut") : dst;
}

/* ,"name":"text" */
static char *put_member(char *dst, const char *name, struct oribi_slice text, size_t max)
{
    dst = PUT(dst, ",\"");
    dst = put_text(dst, name, strlen(name));
    dst = PUT(dst, "\":\"");
    dst = oribi_escape_json(dst, cut(text, max));
    *dst++ = '"';
    return dst;
}

static char *put_number_member(char *dst, const char *name, int64_t value)
{
    dst = PUT(dst, ",\"");
    dst = put_text(dst, name, strlen(name));
    dst = PUT(dst, "\":");
    return put_number(dst, value);
}

static struct oribi_slice protocol_of(const struct oribi_head *head)
{
    if (head->method.n == 0)
        return ORIBI_SLICE("");
    return head->minor ? ORIBI_SLICE("HTTP/1.1") : ORIBI_SLICE("HTTP/1.0");
}

static char *put_json(char *dst, const struct oribi_access_log *log, const struct oribi_access_entry *entry)
{
    const struct oribi_head *head = entry->head;
    int64_t ms = entry->wall_ms % 1000;
    dst = PUT(dst, "{\"time\":\"");
    dst = put_text(dst, log->time, strlen(log->time));
    *dst++ = '.';
    *dst++ = (char)('0' + ms / 100);
    *dst++ = (char)('0' + ms / 10 % 10);
    *dst++ = (char)('0' + ms % 10);
    dst = PUT(dst, "Z\"");
    dst = put_member(dst, "remote_addr", entry->remote_addr, ORIBI_LOGGED_FIELD_MAX);
    dst = put_member(dst, "method", head->method, ORIBI_METHOD_BYTES_MAX);
    dst = put_member(dst, "target", head->target, ORIBI_LOGGED_TARGET_MAX);
    dst = put_member(dst, "protocol", protocol_of(head), ORIBI_LOGGED_FIELD_MAX);
    if (head->method.n == 0)
        dst = put_member(dst, "line", entry->raw_line, ORIBI_LOGGED_TARGET_MAX);
    dst = put_member(dst, "host", head->host, ORIBI_LOGGED_FIELD_MAX);
    dst = put_number_member(dst, "status", entry->status);
    dst = put_number_member(dst, "bytes", entry->body_bytes);
    if (entry->cut)
        dst = PUT(dst, ",\"cut\":true");
    dst = put_number_member(dst, "call_us", entry->call_us);
    dst = put_number_member(dst, "total_us", entry->total_us);
    dst = put_member(dst, "referer", field_value(head, ORIBI_FIELD_REFERER), ORIBI_LOGGED_FIELD_MAX);
    dst = put_member(dst, "user_agent", field_value(head, ORIBI_FIELD_USER_AGENT), ORIBI_LOGGED_FIELD_MAX);
    *dst++ = '}';
    return dst;
}

void oribi_access_log_add(struct oribi_access_log *log, const struct oribi_access_entry *entry)
{
    if (!log)
        return;
    char *start = oribi_backlog_reserve(&log->lines, LINE_MAX_BYTES);
    if (!start)
        return; /* dropped and counted: the next flush says so */
    update_time(log, entry->wall_ms / 1000);
    char *end = log->format == FORMAT_JSON ? put_json(start, log, entry) : put_common(start, log, entry);
    *end++ = '\n';
    oribi_backlog_commit(&log->lines, (size_t)(end - start));
    if (!log->stalled && log->lines.len >= ORIBI_ACCESS_BUFFER_MAX)
        oribi_access_log_flush(log);
}
