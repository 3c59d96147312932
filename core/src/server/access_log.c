/* Access log. Lines gather in a buffer and leave in one write a turn; several workers append to the same file.
 *
 *   common     127.0.0.1 - - [31/Jan/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 13
 *   combined   the same, then "referer" "user agent"
 *   json       {"time":"2026-01-31T12:00:00.123Z","remote_addr":"127.0.0.1","method":"GET",...}
 *
 * Behind an answer that broke off stands ` cut`, or "cut":true behind its bytes. What a peer chose stands between quotes, with quotes, backslashes and controls escaped: it can neither end its field nor its line. */
#include "oribi/server/access_log.h"

#include "oribi/base/buf.h"
#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/escape.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os.h"
#include "oribi/http/fields.h"
#include "oribi/server/options.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    TIME_CAP = 40,
    NUMBER_CAP = 20,
    REPORT_INTERVAL_MS = 60 * 1000,
    LINE_FIXED_MAX = 512, /* names, numbers, punctuation and time of one line */
    LINE_MAX_BYTES = LINE_FIXED_MAX + ORIBI_ESCAPE_JSON_GROWTH * (ORIBI_LOGGED_TARGET_MAX + 5 * ORIBI_LOGGED_FIELD_MAX),
};

enum format { FORMAT_COMMON, FORMAT_COMBINED, FORMAT_JSON };

struct oribi_access_log {
    struct oribi_buf lines;
    enum format format;
    int fd;
    struct oribi_fd_mark mark;
    bool is_file; /* regular: one write appends everything at one place */
    bool torn;    /* the last write ended inside a line */
    char time[TIME_CAP];
    int64_t time_second; /* which second `time` shows */
    uint64_t lost_count; /* since the last report */
    int64_t lost_report_ms;
    char path[PATH_MAX]; /* absolute; "" for standard output */
};

static int open_path(struct oribi_access_log *log, char *error)
{
    struct stat file;
    int fd = *log->path ? -1 : oribi_os_dup(STDOUT_FILENO);
    int code = *log->path ? oribi_os_open_append(log->path, &fd) : fd < 0 ? fd : 0;
    if (code < 0) {
        (void)snprintf(error, ORIBI_OPTIONS_ERROR_CAP, "cannot open the access log %.120s: %s",
                       *log->path ? log->path : "-", oribi_os_error_text());
        return code;
    }
    oribi_os_close(log->fd);
    log->fd = fd;
    oribi_os_mark(fd, &log->mark);
    log->is_file = fstat(fd, &file) == 0 && S_ISREG(file.st_mode);
    log->torn = false;
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

int oribi_access_log_open(const char *path, const char *format, struct oribi_access_log **out, char *error)
{
    if (strcmp(path, "off") == 0) {
        *out = NULL;
        return 0;
    }
    struct oribi_access_log *log = oribi_mem_alloc(1, sizeof(*log));
    int code = 0;
    log->fd = -1;
    log->time_second = INT64_MIN;
    if (!find_format(format, &log->format)) {
        (void)snprintf(error, ORIBI_OPTIONS_ERROR_CAP, "access log format must be common, combined or json, not %.60s",
                       format);
        code = ORIBI_EINVAL;
    } else if (strcmp(path, "-") != 0 && (code = oribi_os_absolute_path(path, log->path, sizeof(log->path))) < 0) {
        (void)snprintf(error, ORIBI_OPTIONS_ERROR_CAP, "cannot open the access log %.120s: %s", path,
                       oribi_os_error_text());
    }
    if (code == 0)
        code = open_path(log, error);
    if (code < 0) {
        oribi_mem_free(log);
        return code;
    }
    (void)oribi_buf_reserve(&log->lines, LINE_MAX_BYTES); /* no memory is asked for with the first request */
    *out = log;
    return 0;
}

int oribi_access_log_reopen(struct oribi_access_log *log, char *error)
{
    if (!log)
        return 0;
    oribi_access_log_flush(log); /* what happened before the rotation belongs to the old file */
    return *log->path ? open_path(log, error) : 0;
}

int oribi_access_log_follow_stdout(struct oribi_access_log *log, char *error)
{
    return log && !*log->path ? open_path(log, error) : 0;
}

void oribi_access_log_close(struct oribi_access_log *log)
{
    if (!log)
        return;
    oribi_access_log_flush(log);
    oribi_access_log_forget(log);
}

void oribi_access_log_forget(struct oribi_access_log *log)
{
    if (!log)
        return;
    oribi_os_close(log->fd);
    oribi_buf_deinit(&log->lines);
    oribi_mem_free(log);
}

int oribi_access_log_fd(const struct oribi_access_log *log)
{
    return log->fd;
}

bool oribi_access_log_intact(const struct oribi_access_log *log)
{
    return !log || oribi_os_is_marked(log->fd, &log->mark);
}

/* Writing */

/* How much of [p, p+n) to write at once: all of it to a file; to a pipe as many whole lines as go through unmixed with those of other
 * processes (PIPE_BUF, pipe(7)), or one line that is longer. */
static size_t piece_len(const struct oribi_access_log *log, const char *p, size_t n)
{
    if (log->is_file || n <= PIPE_BUF)
        return n;
    const char *end = memrchr(p, '\n', PIPE_BUF);
    if (!end)
        end = memchr(p, '\n', n);
    return end ? (size_t)(end - p) + 1 : n;
}

static uint64_t count_lines(const char *p, size_t n)
{
    uint64_t count = 0;
    for (const char *end = p + n; p < end; count++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        p = newline ? newline + 1 : end;
    }
    return count;
}

static void report_lost(struct oribi_access_log *log)
{
    int64_t now_ms = oribi_clock_ms();
    if (log->lost_count == 0 || (log->lost_report_ms && now_ms - log->lost_report_ms < REPORT_INTERVAL_MS))
        return;
    oribi_log(ORIBI_LOG_ERROR, "access log: %llu lines lost: %s", (unsigned long long)log->lost_count,
              oribi_os_error_text());
    log->lost_count = 0;
    log->lost_report_ms = now_ms;
}

void oribi_access_log_flush(struct oribi_access_log *log)
{
    if (!log || log->lines.len == 0)
        return;
    const char *p = log->lines.p;
    size_t left = log->lines.len;
    if (log->torn && oribi_os_write(log->fd, "\n", 1) == 1)
        log->torn = false;
    while (left > 0) {
        size_t n = piece_len(log, p, left);
        ssize_t sent = oribi_os_write(log->fd, p, n);
        if (sent <= 0) {
            log->lost_count += count_lines(p, left);
            report_lost(log);
            break;
        }
        log->torn = p[sent - 1] != '\n';
        p += sent;
        left -= (size_t)sent;
    }
    log->lines.len = 0;
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
    update_time(log, entry->wall_ms / 1000);
    char *start = oribi_buf_reserve(&log->lines, LINE_MAX_BYTES);
    char *end = log->format == FORMAT_JSON ? put_json(start, log, entry) : put_common(start, log, entry);
    *end++ = '\n';
    log->lines.len += (size_t)(end - start);
    if (log->lines.len >= ORIBI_ACCESS_BUFFER_MAX)
        oribi_access_log_flush(log);
}
