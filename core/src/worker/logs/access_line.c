/* Lines of the access log.
 *
 *   common     127.0.0.1 - - [31/Jan/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 13
 *   combined   the same, then "referer" "user agent"
 *   json       {"time":"2026-01-31T12:00:00.123Z","remote_addr":"127.0.0.1","method":"GET",...}
 *   dev        for eyes: put_dev()
 *   own        pieces that config/log_format.c has read
 *
 * Behind an answer that broke off stands ` cut`, or "cut":true behind its bytes; behind a WebSocket or an event stream
 * ` messages_in=1 messages_out=2 bytes_in=4`, or keys of these names. What a peer chose stands between
 * quotes, with quotes, backslashes and controls escaped: it can neither end its field nor its line. Nothing here checks
 * for room: every text is cut at its maximum, and the line's room is counted with all of them. */
#include "worker/logs/access_line.h"

#include "oribi/base/error.h"
#include "oribi/base/escape.h"
#include "oribi/base/mem.h"
#include "oribi/config/address.h"
#include "oribi/http/fields.h"
#include "oribi/http/proxy.h"
#include "oribi/http/head.h"
#include "oribi/worker/logs/request_log.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* --- lines for eyes ---
 *
 *   14:03:07 GET     200    1.4 ms    13 B   /cart?page=2
 *   14:03:09 POST    500   23.1 ms   1.6 kB  /orders
 *
 * What differs in width stands last. Colours are for terminals; what a peer chose is escaped as in the other formats,
 * so that no byte of it reaches the terminal as a control. */

enum { SHORT_CAP = 64 };

/* Of a close code (RFC 6455 7.4.1): our fault, the client's, none. */
static const char *colour_of_close(int code)
{
    bool of_client = code >= 1002 && code <= 1010 && code != 1005 && code != 1006;
    return code == 1011 ? "\x1b[31m" : of_client ? "\x1b[33m" : "\x1b[32m";
}

static const char *colour_of(int status)
{
    if (status >= 1000)
        return colour_of_close(status);
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

/* Behind a line whose columns are taken. */
static char *put_ended(char *dst, const struct oribi_access_entry *entry)
{
    char text[2 * SHORT_CAP];
    if (entry->cut)
        dst = put(dst, " cut");
    if (!entry->is_socket)
        return dst;
    (void)snprintf(text, sizeof(text), " messages_in=%lld messages_out=%lld bytes_in=%lld",
                   (long long)entry->messages_in, (long long)entry->messages_out, (long long)entry->bytes_in);
    return put(dst, text);
}

static char *put_dev(const struct oribi__line_style *style, char *dst, const struct oribi_access_entry *entry)
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
    return put_ended(dst, entry);
}

enum {
    NUMBER_CAP = 20,
    LINE_FIXED_MAX = 1024, /* names, numbers, punctuation and time of one line */
    FIELDS_MAX = 5 * ORIBI_LOGGED_FIELD_MAX + ORIBI_REQUEST_ID_MAX + ORIBI_ADDRESS_TEXT_CAP + ORIBI_TRACE_ID_LEN,
    LINE_MAX_BYTES = LINE_FIXED_MAX + ORIBI_ESCAPE_JSON_GROWTH * (ORIBI_LOGGED_TARGET_MAX + FIELDS_MAX),
    /* the longest of one directive: a request line */
    PIECE_MAX_BYTES = ORIBI_ESCAPE_JSON_GROWTH * (ORIBI_LOGGED_TARGET_MAX + ORIBI_LOGGED_FIELD_MAX) + 16,
    SHORT_PIECE_MAX_BYTES = ORIBI_ESCAPE_JSON_GROWTH * ORIBI_LOGGED_FIELD_MAX + 16,
};

/* --- the style --- */

static bool is_long(uint8_t item)
{
    return item == ORIBI_LOG_REQUEST || item == ORIBI_LOG_TARGET || item == ORIBI_LOG_PATH || item == ORIBI_LOG_QUERY ||
           item == ORIBI_LOG_QUERY_MARKED;
}

static int read_own(struct oribi__line_style *style, const char *text, char *error)
{
    struct oribi_log_format *format = oribi_mem_alloc(1, sizeof(*format));
    int code = oribi_log_format_read(text, format, error);
    if (code < 0) {
        oribi_mem_free(format);
        return code;
    }
    style->kind = ORIBI__LINE_OWN;
    style->format = format;
    style->bytes_max = 16 + (size_t)format->text_len;
    for (uint16_t i = 0; i < format->piece_count; i++)
        style->bytes_max += is_long(format->pieces[i].item) ? PIECE_MAX_BYTES : SHORT_PIECE_MAX_BYTES;
    if (oribi_log_format_has(format, ORIBI_LOG_REQUEST_ID))
        style->wants |= ORIBI_ACCESS_WANTS_ID;
    if (oribi_log_format_has(format, ORIBI_LOG_SENT_FIELD))
        style->wants |= ORIBI_ACCESS_WANTS_SENT;
    return 0;
}

int oribi__line_style_init(struct oribi__line_style *style, const char *format, char *error)
{
    static const char *const names[] = {"common", "combined", "json", "dev"};
    *style = (struct oribi__line_style){.second = INT64_MIN, .bytes_max = LINE_MAX_BYTES};
    for (int i = 0; i < 4; i++) {
        if (strcmp(format, names[i]) != 0)
            continue;
        style->kind = (enum oribi__line_kind)i;
        style->wants = style->kind == ORIBI__LINE_JSON ? ORIBI_ACCESS_WANTS_ID : 0;
        return 0;
    }
    return read_own(style, format, error);
}

void oribi__line_style_deinit(struct oribi__line_style *style)
{
    oribi_mem_free(style->format);
    style->format = NULL;
}

/* --- texts and numbers --- */

static inline char *put_text(char *dst, const char *text, size_t n)
{
    memcpy(dst, text, n);
    return dst + n;
}

#define PUT(dst, literal) put_text((dst), (literal), sizeof(literal) - 1)

static char *put_number(char *dst, int64_t value)
{
    uint64_t rest = value < 0 ? 0 : (uint64_t)value; /* clocks may step back; a log shows no negative durations */
    size_t count = 1;
    for (uint64_t power = 10; count < NUMBER_CAP && rest >= power; power *= 10)
        count++;
    for (size_t i = count; i-- > 0; rest /= 10)
        dst[i] = (char)('0' + rest % 10);
    return dst + count;
}

static char *put_thousandth(char *dst, int64_t ms)
{
    *dst++ = (char)('0' + ms / 100);
    *dst++ = (char)('0' + ms / 10 % 10);
    *dst++ = (char)('0' + ms % 10);
    return dst;
}

/* 1.234 */
static char *put_seconds(char *dst, int64_t ms)
{
    ms = ms < 0 ? 0 : ms;
    dst = put_number(dst, ms / 1000);
    *dst++ = '.';
    return put_thousandth(dst, ms % 1000);
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

/* The value of a field outside the core's table; `lower` is its name in lower case. */
static struct oribi_slice other_value(const struct oribi_head *head, struct oribi_slice lower)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct oribi_field *field = &head->fields[i];
        if (field->id == ORIBI_FIELD_OTHER && field->name_len == lower.n &&
            oribi_slice_equal_fold(oribi_slice(field->name, field->name_len), lower))
            return oribi_slice(field->value, field->value_len);
    }
    return oribi_slice("", 0);
}

/* The value of a field in the head that was sent. */
static struct oribi_slice sent_value(struct oribi_slice head, struct oribi_slice lower)
{
    const char *p = head.n ? memchr(head.p, '\n', head.n) : NULL;
    const char *end = head.p + head.n;
    while (p) {
        const char *name = p + 1;
        p = name < end ? memchr(name, '\n', (size_t)(end - name)) : NULL;
        if (!p || (size_t)(p - name) < lower.n + 3 || name[lower.n] != ':' ||
            !oribi_slice_equal_fold(oribi_slice(name, lower.n), lower))
            continue;
        return oribi_slice(name + lower.n + 2, (size_t)(p - name) - lower.n - 3); /* ": " and "\r\n" */
    }
    return oribi_slice("", 0);
}

/* Formatted once a second. JSON has milliseconds behind it, which put_json adds. */
static void update_time(struct oribi__line_style *style, int64_t second)
{
    time_t when = (time_t)second;
    struct tm parts = {0};
    bool json = style->kind == ORIBI__LINE_JSON;
    if (second == style->second)
        return;
    (void)(json ? gmtime_r(&when, &parts) : localtime_r(&when, &parts)); /* fails for years beyond int only */
    if (strftime(style->time, sizeof(style->time), json ? "%Y-%m-%dT%H:%M:%S" : "[%d/%b/%Y:%H:%M:%S %z]", &parts) == 0)
        style->time[0] = '\0';
    size_t n = json ? 0 : strftime(style->iso, sizeof(style->iso) - 1, "%Y-%m-%dT%H:%M:%S%z", &parts);
    if (n > 2) { /* +0000 becomes +00:00 */
        memmove(style->iso + n - 1, style->iso + n - 2, 3);
        style->iso[n - 2] = ':';
    }
    style->second = second;
}

/* --- common, combined --- */

/* The protocol of the client: with a frontend it may be another one than that of the request on the channel. */
static struct oribi_slice protocol_of(const struct oribi_access_entry *entry)
{
    const struct oribi_head *head = entry->head;
    if (head->method.n == 0)
        return ORIBI_SLICE("");
    if (entry->client && entry->client->protocol == 20)
        return ORIBI_SLICE("HTTP/2");
    bool is_10 = entry->client ? entry->client->protocol == 10 : head->minor == 0;
    return is_10 ? ORIBI_SLICE("HTTP/1.0") : ORIBI_SLICE("HTTP/1.1");
}

static char *put_quoted(char *dst, struct oribi_slice text)
{
    *dst++ = '"';
    dst = text.n ? oribi_escape_text(dst, cut(text, ORIBI_LOGGED_FIELD_MAX)) : PUT(dst, "-");
    *dst++ = '"';
    return dst;
}

static char *put_request(char *dst, const struct oribi_access_entry *entry,
                         char *(*escape)(char *dst, struct oribi_slice text))
{
    const struct oribi_head *head = entry->head;
    struct oribi_slice raw = entry->raw_line;
    if (!head->method.n)
        return raw.n ? escape(dst, cut(raw, ORIBI_LOGGED_TARGET_MAX)) : PUT(dst, "-");
    dst = escape(dst, cut(head->method, ORIBI_LOGGED_FIELD_MAX));
    *dst++ = ' ';
    dst = escape(dst, cut(head->target, ORIBI_LOGGED_TARGET_MAX));
    *dst++ = ' ';
    struct oribi_slice protocol = protocol_of(entry);
    return put_text(dst, protocol.p, protocol.n);
}

static char *put_common(char *dst, const struct oribi__line_style *style, const struct oribi_access_entry *entry)
{
    const struct oribi_head *head = entry->head;
    struct oribi_slice peer = entry->remote_addr;
    dst = peer.n ? oribi_escape_text(dst, cut(peer, ORIBI_LOGGED_FIELD_MAX)) : PUT(dst, "-");
    dst = PUT(dst, " - - ");
    dst = put_text(dst, style->time, strlen(style->time));
    dst = PUT(dst, " \"");
    dst = put_request(dst, entry, oribi_escape_text);
    dst = PUT(dst, "\" ");
    dst = put_number(dst, entry->status);
    *dst++ = ' ';
    dst = put_number(dst, entry->body_bytes);
    if (style->kind == ORIBI__LINE_COMBINED) {
        *dst++ = ' ';
        dst = put_quoted(dst, field_value(head, ORIBI_FIELD_REFERER));
        *dst++ = ' ';
        dst = put_quoted(dst, field_value(head, ORIBI_FIELD_USER_AGENT));
    }
    return put_ended(dst, entry);
}

/* --- json --- */

/* The names are literals, so that their bytes are copied without being counted. */
#define PUT_MEMBER(dst, name, text, max)                                                                               \
    do {                                                                                                               \
        (dst) = PUT((dst), ",\"" name "\":\"");                                                                        \
        (dst) = oribi_escape_json((dst), cut((text), (max)));                                                          \
        *(dst)++ = '"';                                                                                                \
    } while (0)

/* Of the server's own making or checked where it was read: nothing in it needs an escape. */
#define PUT_CLEAN(dst, name, text)                                                                                     \
    do {                                                                                                               \
        (dst) = PUT((dst), ",\"" name "\":\"");                                                                        \
        (dst) = put_text((dst), (text).p, (text).n);                                                                   \
        *(dst)++ = '"';                                                                                                \
    } while (0)

#define PUT_NUMBER(dst, name, value)                                                                                   \
    do {                                                                                                               \
        (dst) = PUT((dst), ",\"" name "\":");                                                                          \
        (dst) = put_number((dst), (value));                                                                            \
    } while (0)

/* Where it was answered and what it is called: keys that came later, behind those that programs know. */
static char *put_json_more(char *dst, const struct oribi_access_entry *entry)
{
    struct oribi_slice trace = oribi__trace_id(entry->head);
    PUT_CLEAN(dst, "request_id", entry->request_id);
    if (trace.n)
        PUT_CLEAN(dst, "trace_id", trace);
    if (entry->refused)
        PUT_CLEAN(dst, "refused", oribi_slice(entry->refused, strlen(entry->refused)));
    if (entry->upstream_us >= 0)
        PUT_NUMBER(dst, "upstream_us", entry->upstream_us);
    if (entry->client && entry->client->tls_version.n) {
        PUT_MEMBER(dst, "tls_protocol", entry->client->tls_version, ORIBI_LOGGED_FIELD_MAX);
        PUT_MEMBER(dst, "tls_cipher", entry->client->cipher, ORIBI_LOGGED_FIELD_MAX);
    }
    PUT_NUMBER(dst, "queue_us", entry->queue_us);
    PUT_NUMBER(dst, "bytes_in", entry->bytes_in);
    PUT_NUMBER(dst, "bytes_out", entry->bytes_out);
    PUT_NUMBER(dst, "worker", entry->worker);
    PUT_MEMBER(dst, "listener", entry->listener, ORIBI_ADDRESS_TEXT_CAP); /* a socket's path may be anything */
    return dst;
}

static char *put_json(char *dst, const struct oribi__line_style *style, const struct oribi_access_entry *entry)
{
    const struct oribi_head *head = entry->head;
    dst = PUT(dst, "{\"time\":\"");
    dst = put_text(dst, style->time, strlen(style->time));
    *dst++ = '.';
    dst = put_thousandth(dst, entry->wall_ms % 1000);
    dst = PUT(dst, "Z\"");
    PUT_MEMBER(dst, "remote_addr", entry->remote_addr, ORIBI_LOGGED_FIELD_MAX);
    PUT_MEMBER(dst, "method", head->method, ORIBI_METHOD_BYTES_MAX);
    PUT_MEMBER(dst, "target", head->target, ORIBI_LOGGED_TARGET_MAX);
    PUT_CLEAN(dst, "protocol", protocol_of(entry));
    if (head->method.n == 0)
        PUT_MEMBER(dst, "line", entry->raw_line, ORIBI_LOGGED_TARGET_MAX);
    PUT_MEMBER(dst, "host", head->host, ORIBI_LOGGED_FIELD_MAX);
    PUT_NUMBER(dst, "status", entry->status);
    PUT_NUMBER(dst, "bytes", entry->body_bytes);
    if (entry->cut)
        dst = PUT(dst, ",\"cut\":true");
    if (entry->is_socket) {
        PUT_NUMBER(dst, "messages_in", entry->messages_in);
        PUT_NUMBER(dst, "messages_out", entry->messages_out);
    }
    PUT_NUMBER(dst, "call_us", entry->call_us);
    PUT_NUMBER(dst, "total_us", entry->total_us);
    PUT_MEMBER(dst, "referer", field_value(head, ORIBI_FIELD_REFERER), ORIBI_LOGGED_FIELD_MAX);
    PUT_MEMBER(dst, "user_agent", field_value(head, ORIBI_FIELD_USER_AGENT), ORIBI_LOGGED_FIELD_MAX);
    dst = put_json_more(dst, entry);
    *dst++ = '}';
    return dst;
}

/* --- formats of one's own --- */

/* False: this item is a text. */
static bool number_of(enum oribi_log_item item, const struct oribi_access_entry *entry, int64_t *value)
{
    switch (item) {
    case ORIBI_LOG_TIME_S:
        *value = entry->wall_ms / 1000;
        return true;
    case ORIBI_LOG_TIME_MS:
        *value = entry->wall_ms;
        return true;
    case ORIBI_LOG_STATUS:
        *value = entry->status;
        return true;
    case ORIBI_LOG_BODY_BYTES:
        *value = entry->body_bytes;
        return true;
    case ORIBI_LOG_BYTES_OUT:
        *value = entry->bytes_out;
        return true;
    case ORIBI_LOG_BYTES_IN:
        *value = entry->bytes_in;
        return true;
    case ORIBI_LOG_TOTAL_US:
        *value = entry->total_us;
        return true;
    case ORIBI_LOG_TOTAL_MS:
        *value = entry->total_us / 1000;
        return true;
    case ORIBI_LOG_TOTAL_S:
        *value = entry->total_us / 1000000;
        return true;
    case ORIBI_LOG_QUEUE_US:
        *value = entry->queue_us;
        return true;
    case ORIBI_LOG_CALL_US:
        *value = entry->call_us;
        return true;
    case ORIBI_LOG_WORKER:
        *value = entry->worker;
        return true;
    case ORIBI_LOG_PID:
        *value = getpid();
        return true;
    case ORIBI_LOG_KEPT:
        *value = (int64_t)entry->connection_requests - 1;
        return true;
    case ORIBI_LOG_CONNECTION_REQUESTS:
        *value = entry->connection_requests;
        return true;
    default:
        return false;
    }
}

static struct oribi_slice time_local(const struct oribi__line_style *style)
{
    size_t n = strlen(style->time);
    return n > 2 ? oribi_slice(style->time + 1, n - 2) : oribi_slice("", 0);
}

static struct oribi_slice text_of(const struct oribi__line_style *style, const struct oribi_log_piece *piece,
                                  const struct oribi_access_entry *entry)
{
    const struct oribi_head *head = entry->head;
    struct oribi_slice name = oribi_log_piece_text(style->format, piece);
    switch ((enum oribi_log_item)piece->item) {
    case ORIBI_LOG_REMOTE_ADDR:
        return entry->remote_addr;
    case ORIBI_LOG_REMOTE_PORT:
        return entry->remote_port;
    case ORIBI_LOG_TIME_BRACKETS:
        return oribi_slice(style->time, strlen(style->time));
    case ORIBI_LOG_TIME_LOCAL:
        return time_local(style);
    case ORIBI_LOG_TIME_ISO:
        return oribi_slice(style->iso, strlen(style->iso));
    case ORIBI_LOG_METHOD:
        return head->method;
    case ORIBI_LOG_TARGET:
        return head->target;
    case ORIBI_LOG_PATH:
        return head->path;
    case ORIBI_LOG_QUERY:
        return head->query;
    case ORIBI_LOG_PROTOCOL:
        return protocol_of(entry);
    case ORIBI_LOG_SCHEME:
        return entry->scheme;
    case ORIBI_LOG_TLS_PROTOCOL:
        return entry->client ? entry->client->tls_version : oribi_slice("", 0);
    case ORIBI_LOG_TLS_CIPHER:
        return entry->client ? entry->client->cipher : oribi_slice("", 0);
    case ORIBI_LOG_HOST:
        return head->host;
    case ORIBI_LOG_PORT:
        return entry->port;
    case ORIBI_LOG_REQUEST_ID:
        return entry->request_id;
    case ORIBI_LOG_TRACE_ID:
        return oribi__trace_id(head);
    case ORIBI_LOG_LISTENER:
        return entry->listener;
    case ORIBI_LOG_CONNECTION:
        return entry->cut ? ORIBI_SLICE("X") : entry->closes ? ORIBI_SLICE("-") : ORIBI_SLICE("+");
    case ORIBI_LOG_REFUSED:
        return oribi_slice(entry->refused, entry->refused ? strlen(entry->refused) : 0);
    case ORIBI_LOG_COMPLETION:
        return entry->cut ? ORIBI_SLICE("") : ORIBI_SLICE("OK");
    case ORIBI_LOG_FIELD:
        return piece->field_id ? field_value(head, (enum oribi_field_id)piece->field_id) : other_value(head, name);
    case ORIBI_LOG_SENT_FIELD:
        return sent_value(entry->sent_head, name);
    default:
        return oribi_slice("", 0);
    }
}

static char *put_number_or_none(char *dst, const struct oribi__line_style *style, bool is, int64_t value)
{
    if (is)
        return put_number(dst, value);
    return style->format->json ? PUT(dst, "null") : PUT(dst, "-");
}

static char *put_piece(char *dst, const struct oribi__line_style *style, const struct oribi_log_piece *piece,
                       const struct oribi_access_entry *entry)
{
    char *(*escape)(char *, struct oribi_slice) = style->format->json ? oribi_escape_json : oribi_escape_text;
    enum oribi_log_item item = (enum oribi_log_item)piece->item;
    struct oribi_slice text;
    int64_t number;
    switch (item) {
    case ORIBI_LOG_LITERAL:
        return put_text(dst, style->format->text + piece->at, piece->n);
    case ORIBI_LOG_REQUEST:
        return put_request(dst, entry, escape);
    case ORIBI_LOG_TIME_S_MS:
        return put_seconds(dst, entry->wall_ms);
    case ORIBI_LOG_TOTAL_S_MS:
        return put_seconds(dst, entry->total_us / 1000);
    case ORIBI_LOG_CALL_S_MS:
        return put_seconds(dst, entry->call_us / 1000);
    case ORIBI_LOG_BODY_OR_DASH:
        return entry->body_bytes > 0 ? put_number(dst, entry->body_bytes) : PUT(dst, "-");
    case ORIBI_LOG_UPSTREAM_US:
        return put_number_or_none(dst, style, entry->upstream_us >= 0, entry->upstream_us);
    case ORIBI_LOG_CLOSE_CODE:
        return put_number_or_none(dst, style, entry->close_code, entry->close_code);
    case ORIBI_LOG_MESSAGES_IN:
        return put_number_or_none(dst, style, entry->is_socket, entry->messages_in);
    case ORIBI_LOG_MESSAGES_OUT:
        return put_number_or_none(dst, style, entry->is_socket, entry->messages_out);
    case ORIBI_LOG_QUERY_MARKED:
        if (entry->head->query.n == 0)
            return dst;
        *dst++ = '?';
        return escape(dst, cut(entry->head->query, ORIBI_LOGGED_TARGET_MAX));
    default:
        break;
    }
    if (number_of(item, entry, &number))
        return put_number(dst, number);
    text = cut(text_of(style, piece, entry), is_long(piece->item) ? ORIBI_LOGGED_TARGET_MAX : ORIBI_LOGGED_FIELD_MAX);
    if (text.n == 0)
        return style->format->json ? dst : PUT(dst, "-");
    return escape(dst, text);
}

static char *put_own(char *dst, const struct oribi__line_style *style, const struct oribi_access_entry *entry)
{
    const struct oribi_log_format *format = style->format;
    for (uint16_t i = 0; i < format->piece_count; i++)
        dst = put_piece(dst, style, &format->pieces[i], entry);
    return dst;
}

char *oribi__access_line(struct oribi__line_style *style, char *dst, const struct oribi_access_entry *entry)
{
    update_time(style, entry->wall_ms / 1000);
    if (style->kind == ORIBI__LINE_JSON)
        dst = put_json(dst, style, entry);
    else if (style->kind == ORIBI__LINE_OWN)
        dst = put_own(dst, style, entry);
    else if (style->kind == ORIBI__LINE_DEV)
        dst = put_dev(style, dst, entry);
    else
        dst = put_common(dst, style, entry);
    *dst++ = '\n';
    return dst;
}
