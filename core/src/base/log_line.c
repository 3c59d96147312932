/* Lines of the error log:
 *
 *   2026-01-31T12:00:00.123Z oribi[4711] warn: text (request 019c13f6-..., trace 0af76519...)
 *   {"time":"2026-01-31T12:00:00.123Z","level":"warn","pid":4711,"worker":2,"generation":1,"message":"text",
 *    "detail":"several\u000alines","request_id":"019c13f6-...","trace_id":"0af76519..."}
 */
#include "base/log_line.h"

#include "oribi/base/escape.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    TEXT_END_ROOM = 1, /* newline */
    JSON_END_ROOM = 3, /* quote, brace, newline */
    MEMBERS_MAX = ORIBI__LOG_LINE_CAP * 3 / 4,
};

static const char *level_name(enum oribi_log_level level)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    return names[level];
}

/* All of it, or nothing. */
static void put_raw(struct oribi__log_line *line, const char *p, size_t n)
{
    size_t end_room = line->json ? JSON_END_ROOM : TEXT_END_ROOM;
    if (line->len + n > ORIBI__LOG_LINE_CAP - end_room)
        return;
    memcpy(line->text + line->len, p, n);
    line->len += n;
}

void oribi__log_line_begin(struct oribi__log_line *line, const struct oribi__log_frame *frame)
{
    time_t seconds = (time_t)(frame->wall_ms / 1000);
    struct tm utc = {0};
    char time_text[96];
    char who[64] = "";
    (void)gmtime_r(&seconds, &utc); /* fails for years beyond int only */
    (void)snprintf(time_text, sizeof(time_text), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", utc.tm_year + 1900,
                   utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, (int)(frame->wall_ms % 1000));
    int n = 0;
    if (frame->json && frame->worker >= 0)
        n = snprintf(who, sizeof(who), ",\"worker\":%ld", frame->worker);
    if (frame->json && frame->generation)
        (void)snprintf(who + n, sizeof(who) - (size_t)n, ",\"generation\":%u", frame->generation); /* both fit */
    line->json = frame->json;
    line->detailed = false;
    n = frame->json ? snprintf(line->text, sizeof(line->text), "{\"time\":\"%s\",\"level\":\"%s\",\"pid\":%ld%s",
                               time_text, level_name(frame->level), frame->pid, who)
                    : snprintf(line->text, sizeof(line->text), "%s oribi[%ld] %s: ", time_text, frame->pid,
                               level_name(frame->level));
    line->len = n > 0 ? (size_t)n : 0;
    if (!frame->json)
        return;
    if (frame->members.n && frame->members.n < MEMBERS_MAX) {
        put_raw(line, ",", 1);
        put_raw(line, frame->members.p, frame->members.n);
    }
    put_raw(line, ",\"message\":\"", 12);
}

static size_t put_hex(char *dst, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)snprintf(dst + 4 * i, 5, "\\x%02x", (unsigned char)p[i]); /* four characters and the NUL */
    return 4 * n;
}

/* Characters one by one, so that none is cut in two. Traces are indented with tabs, which end no line. */
static void put_escaped(struct oribi__log_line *line, const char *p, size_t n)
{
    char escaped[4 * ORIBI_ESCAPE_JSON_GROWTH];
    while (n > 0) {
        unsigned char byte = (unsigned char)*p;
        size_t len = byte < 0x80 ? 1 : oribi_utf8_len(p, n);
        bool plain = len > 0 && !oribi_hidden_character(p, len);
        if (byte < 0x20 || byte == 0x7f)
            plain = byte == '\t';
        len = len ? len : 1;
        if (line->json)
            put_raw(line, escaped, (size_t)(oribi_escape_json(escaped, oribi_slice(p, len)) - escaped));
        else if (plain)
            put_raw(line, p, len);
        else
            put_raw(line, escaped, put_hex(escaped, p, len));
        p += len;
        n -= len;
    }
}

void oribi__log_line_put(struct oribi__log_line *line, const char *p, size_t n)
{
    put_escaped(line, p, n);
}

static void put_request(struct oribi__log_line *line, const struct oribi__log_frame *frame)
{
    if (!frame->request_id.n)
        return;
    put_raw(line, " (request ", 10);
    put_escaped(line, frame->request_id.p, frame->request_id.n);
    if (frame->trace_id.n) {
        put_raw(line, ", trace ", 8);
        put_escaped(line, frame->trace_id.p, frame->trace_id.n);
    }
    put_raw(line, ")", 1);
}

void oribi__log_line_detail(struct oribi__log_line *line, const struct oribi__log_frame *frame, const char *p, size_t n)
{
    if (frame->json) {
        put_raw(line, line->detailed ? "\\u000a" : "\",\"detail\":\"", line->detailed ? 6 : 12);
    } else {
        if (!line->detailed)
            put_request(line, frame);
        put_raw(line, "\n    ", 5);
    }
    line->detailed = true;
    put_escaped(line, p, n);
}

/* A member behind the message; none where there is no room for all of it. */
static void put_last_member(struct oribi__log_line *line, const char *key, struct oribi_slice value)
{
    size_t before = line->len;
    put_raw(line, key, strlen(key));
    size_t opened = line->len;
    put_escaped(line, value.p, value.n);
    size_t closed = line->len;
    put_raw(line, "\"", 1);
    if (opened == before || closed == opened || line->len == closed)
        line->len = before;
}

void oribi__log_line_end(struct oribi__log_line *line, const struct oribi__log_frame *frame)
{
    if (!frame->json) {
        if (!line->detailed)
            put_request(line, frame);
        line->text[line->len++] = '\n';
        return;
    }
    line->text[line->len++] = '"';
    put_last_member(line, ",\"request_id\":\"", frame->request_id);
    put_last_member(line, ",\"trace_id\":\"", frame->trace_id);
    line->text[line->len++] = '}';
    line->text[line->len++] = '\n';
}
