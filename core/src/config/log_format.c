/* Reading formats of access log lines. The table below is what there is, in both manners, and what the documentation
 * shows. Reading order: oribi_log_format_read, read_piece, take_directive. */
#include "oribi/config/log_format.h"

#include "oribi/config/options.h"
#include "oribi/config/options_names.h"

#include "oribi/base/buf.h"
#include "oribi/base/error.h"
#include "oribi/http/fields.h"

#include <stdio.h>
#include <string.h>

struct directive {
    enum oribi_log_item item;
    const char *apache; /* behind the percent sign; NULL: none */
    const char *nginx;  /* behind the dollar sign; NULL: none */
    bool number;        /* nothing but digits, a point: needs no quotes in JSON */
    const char *meaning;
};

/* A NAME in them stands for the name of a header field. */
static const struct directive directives[] = {
    {ORIBI_LOG_REMOTE_ADDR, "h", "remote_addr", false, "client's address; a trusted proxy's word for it counts"},
    {ORIBI_LOG_REMOTE_ADDR, "a", NULL, false, "the same"},
    {ORIBI_LOG_REMOTE_PORT, "{remote}p", "remote_port", false, "client's port"},
    {ORIBI_LOG_NOTHING, "l", NULL, false, "always `-`"},
    {ORIBI_LOG_NOTHING, "u", "remote_user", false, "always `-`: users are the application's"},
    {ORIBI_LOG_TIME_BRACKETS, "t", NULL, false, "`[31/Jan/2026:12:00:00 +0000]`, local time of the answer"},
    {ORIBI_LOG_TIME_LOCAL, NULL, "time_local", false, "the same without brackets"},
    {ORIBI_LOG_TIME_ISO, "{iso8601}t", "time_iso8601", false, "`2026-01-31T12:00:00+00:00`, local time"},
    {ORIBI_LOG_TIME_S, "{sec}t", NULL, true, "seconds since 1970"},
    {ORIBI_LOG_TIME_MS, "{msec}t", NULL, true, "milliseconds since 1970"},
    {ORIBI_LOG_TIME_S_MS, NULL, "msec", true, "seconds since 1970, with milliseconds behind a point"},
    {ORIBI_LOG_REQUEST, "r", "request", false, "request line; of a refused request what came of it"},
    {ORIBI_LOG_METHOD, "m", "request_method", false, "method"},
    {ORIBI_LOG_TARGET, NULL, "request_uri", false, "request target as it came"},
    {ORIBI_LOG_PATH, "U", "uri", false, "path as it came, without the query"},
    {ORIBI_LOG_PATH, NULL, "document_uri", false, "the same"},
    {ORIBI_LOG_QUERY, NULL, "args", false, "query without its question mark"},
    {ORIBI_LOG_QUERY, NULL, "query_string", false, "the same"},
    {ORIBI_LOG_QUERY_MARKED, "q", NULL, false, "query with its question mark; empty where there is none"},
    {ORIBI_LOG_PROTOCOL, "H", "server_protocol", false, "`HTTP/1.1`, `HTTP/1.0` or `HTTP/2`"},
    {ORIBI_LOG_SCHEME, "{scheme}x", "scheme", false, "`http` or `https`"},
    {ORIBI_LOG_TLS_PROTOCOL, "{SSL_PROTOCOL}x", "ssl_protocol", false,
     "version of TLS, `TLSv1.3`, of a client that spoke it to us"},
    {ORIBI_LOG_TLS_CIPHER, "{SSL_CIPHER}x", "ssl_cipher", false, "its cipher suite"},
    {ORIBI_LOG_HOST, "v", "host", false, "host that the client asked for"},
    {ORIBI_LOG_HOST, "V", "server_name", false, "the same"},
    {ORIBI_LOG_PORT, "p", "server_port", false, "listener's port"},
    {ORIBI_LOG_STATUS, "s", "status", true, "status; `%>s` is the same"},
    {ORIBI_LOG_BODY_BYTES, "B", "body_bytes_sent", true, "bytes of the answer's body"},
    {ORIBI_LOG_BODY_OR_DASH, "b", NULL, false, "the same, `-` for none"},
    {ORIBI_LOG_BYTES_OUT, "O", "bytes_sent", true, "bytes of the answer with its head"},
    {ORIBI_LOG_BYTES_IN, "I", "request_length", true, "bytes of the request: its head and its decoded body"},
    {ORIBI_LOG_TOTAL_US, "D", "total_us", true, "microseconds from the request's last byte to the answer"},
    {ORIBI_LOG_TOTAL_US, "{us}T", NULL, true, "the same"},
    {ORIBI_LOG_TOTAL_MS, "{ms}T", NULL, true, "the same in milliseconds"},
    {ORIBI_LOG_TOTAL_S, "T", NULL, true, "the same in seconds"},
    {ORIBI_LOG_TOTAL_S, "{s}T", NULL, true, "the same"},
    {ORIBI_LOG_TOTAL_S_MS, NULL, "request_time", true, "the same in seconds, with milliseconds behind a point"},
    {ORIBI_LOG_QUEUE_US, "{queue_us}x", "queue_us", true, "microseconds that the request waited for its call"},
    {ORIBI_LOG_UPSTREAM_US, "{upstream_us}x", "upstream_us", true,
     "microseconds from X-Request-Start to the request's last byte; `-` (JSON: null) where no proxy says when"},
    {ORIBI_LOG_CALL_US, "{call_us}x", "call_us", true, "microseconds inside the application"},
    {ORIBI_LOG_CALL_S_MS, NULL, "upstream_response_time", true, "the same in seconds, with milliseconds"},
    {ORIBI_LOG_REQUEST_ID, "L", "request_id", false, "request id"},
    {ORIBI_LOG_REQUEST_ID, "{request_id}x", NULL, false, "the same"},
    {ORIBI_LOG_TRACE_ID, "{trace_id}x", "trace_id", false, "trace id of the request's traceparent field"},
    {ORIBI_LOG_WORKER, "{worker}x", "worker", true, "worker's number"},
    {ORIBI_LOG_LISTENER, "{listener}x", "listener", false, "address of the listener: `tcp://127.0.0.1:9292`"},
    {ORIBI_LOG_PID, "P", "pid", true, "worker's process id"},
    {ORIBI_LOG_KEPT, "k", NULL, true, "requests on this connection before this one"},
    {ORIBI_LOG_CONNECTION_REQUESTS, NULL, "connection_requests", true, "the same, this one counted"},
    {ORIBI_LOG_CONNECTION, "X", NULL, false, "`X`: the answer broke off; `+`: connection kept; `-`: closed"},
    {ORIBI_LOG_REFUSED, "{refused}x", "refused", false,
     "why the server itself refused the request, a reason of `oribi_refusals_total`; `-`: it did not"},
    {ORIBI_LOG_CLOSE_CODE, "{close_code}x", "close_code", true,
     "close code of a WebSocket that has ended; `-` (JSON: null) in other lines"},
    {ORIBI_LOG_MESSAGES_IN, "{messages_in}x", "messages_in", true,
     "messages of a WebSocket's client; `-` (JSON: null) in lines of neither a WebSocket nor an event stream"},
    {ORIBI_LOG_MESSAGES_OUT, "{messages_out}x", "messages_out", true,
     "messages to the client of a WebSocket, or events of a stream; else the same"},
    {ORIBI_LOG_COMPLETION, NULL, "request_completion", false, "`OK` unless the answer broke off"},
    {ORIBI_LOG_FIELD, "{NAME}i", "http_NAME", false, "header field of the request"},
    {ORIBI_LOG_SENT_FIELD, "{NAME}o", "sent_http_NAME", false, "header field of the answer"},
};

enum { DIRECTIVES = sizeof(directives) / sizeof(directives[0]) };

struct reading {
    struct oribi_log_format *format;
    const char *p;
    char *error;
    char sign; /* of the directives: % or $ */
    bool quoted;
};

/* --- names --- */

static bool is_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* Directives of one manner, "%h" or "$status", with NAME cut off where the other end of the word is wanted. */
static const char *text_of(const struct directive *directive, char sign)
{
    return sign == '%' ? directive->apache : directive->nginx;
}

/* The name of the field that `typed` is with this directive; n 0: it is another one. */
static struct oribi_slice field_in(const struct directive *directive, char sign, struct oribi_slice typed)
{
    const char *form = text_of(directive, sign);
    const char *name = form ? strstr(form, "NAME") : NULL;
    size_t before = name ? (size_t)(name - form) : 0;
    size_t after = name ? strlen(name + 4) : 0;
    if (!name || typed.n <= before + after || memcmp(typed.p, form, before) != 0 ||
        memcmp(typed.p + typed.n - after, name + 4, after) != 0)
        return oribi_slice(NULL, 0);
    return oribi_slice(typed.p + before, typed.n - before - after);
}

static int refuse_unknown(const struct reading *r, struct oribi_slice typed)
{
    char word[ORIBI_SUGGEST_WORD_MAX + 1];
    const char *nearest = NULL;
    uint32_t least = UINT32_MAX;
    (void)snprintf(word, sizeof(word), "%.*s", (int)typed.n, typed.p);
    for (int i = 0; i < DIRECTIVES; i++) {
        const char *known = text_of(&directives[i], r->sign);
        uint32_t distance = known ? oribi_suggest_distance(word, known) : UINT32_MAX;
        if (distance < least) {
            least = distance;
            nearest = known;
        }
    }
    return oribi__refuse(r->error, "access_log_format: unknown directive %c%.*s; %s %c%s", r->sign,
                         typed.n < 60 ? (int)typed.n : 60, typed.p,
                         oribi_suggest_likely(word, least) ? "did you mean" : "the nearest is", r->sign,
                         nearest ? nearest : "");
}

/* --- pieces --- */

/* Text goes behind what is there; NULL when the piece has none. */
static int add_piece(struct reading *r, enum oribi_log_item item, struct oribi_slice text)
{
    struct oribi_log_format *format = r->format;
    struct oribi_log_piece *last = &format->pieces[format->piece_count ? format->piece_count - 1 : 0];
    bool joins = item == ORIBI_LOG_LITERAL && format->piece_count && last->item == ORIBI_LOG_LITERAL;
    if (!joins && format->piece_count == ORIBI_LOG_PIECES_MAX)
        return oribi__refuse(r->error, "access_log_format has more than %d directives and texts between them",
                             ORIBI_LOG_PIECES_MAX);
    if (!joins) {
        last = &format->pieces[format->piece_count++];
        *last = (struct oribi_log_piece){.item = (uint8_t)item, .at = format->text_len};
    }
    memcpy(format->text + format->text_len, text.p, text.n); /* never more than the format itself has */
    format->text_len = (uint16_t)(format->text_len + text.n);
    last->n = (uint16_t)(last->n + text.n);
    return 0;
}

/* A token (RFC 9110 5.6.2), in lower case; nginx writes dashes as underscores. */
static int add_field(struct reading *r, enum oribi_log_item item, struct oribi_slice name)
{
    char lower[ORIBI_LOG_NAME_BYTES_MAX];
    if (name.n > ORIBI_LOG_NAME_BYTES_MAX)
        return oribi__refuse(r->error, "access_log_format: the name of a field is longer than %d bytes",
                             ORIBI_LOG_NAME_BYTES_MAX);
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (!is_word(c) && c != '-' && c != '.')
            return oribi__refuse(r->error, "access_log_format: %.*s is no name of a header field", (int)name.n, name.p);
        lower[i] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c == '_' && r->sign == '$' ? '-' : c;
    }
    int code = add_piece(r, item, oribi_slice(lower, name.n));
    if (code == 0)
        r->format->pieces[r->format->piece_count - 1].field_id = (uint16_t)oribi_field_find(lower, name.n);
    return code;
}

static int take_directive(struct reading *r, struct oribi_slice typed)
{
    for (int i = 0; i < DIRECTIVES; i++) {
        const struct directive *directive = &directives[i];
        const char *form = text_of(directive, r->sign);
        struct oribi_slice field = field_in(directive, r->sign, typed);
        if (!form || (field.n == 0 && (strlen(form) != typed.n || memcmp(form, typed.p, typed.n) != 0)))
            continue;
        if (r->format->json && !r->quoted && !directive->number)
            return oribi__refuse(r->error, "access_log_format: %c%.*s needs quotes around it in a line of JSON",
                                 r->sign, typed.n < 60 ? (int)typed.n : 60, typed.p);
        return field.n ? add_field(r, directive->item, field) : add_piece(r, directive->item, oribi_slice("", 0));
    }
    return refuse_unknown(r, typed);
}

/* %h, %>s, %{Name}i. Of the statuses of an internal redirect, which %< and %> choose from, there is one. */
static int read_percent(struct reading *r)
{
    const char *start = ++r->p;
    if (*start == '%') {
        r->p++;
        return add_piece(r, ORIBI_LOG_LITERAL, oribi_slice("%", 1));
    }
    if ((*start == '>' || *start == '<') && start[1])
        start++;
    const char *end = *start == '{' ? strchr(start, '}') : start - 1;
    if (!end || !*start || !end[1])
        return oribi__refuse(r->error, "access_log_format ends within the directive %%%.60s", start);
    r->p = end + 2;
    return take_directive(r, oribi_slice(start, (size_t)(r->p - start)));
}

/* $name or ${name}. */
static int read_dollar(struct reading *r)
{
    const char *start = ++r->p;
    bool braces = *start == '{';
    start += braces;
    const char *end = start;
    while (is_word(*end))
        end++;
    if (end == start || (braces && *end != '}'))
        return oribi__refuse(r->error, "access_log_format: no name of a directive behind $ in $%.60s", start - braces);
    r->p = end + braces;
    return take_directive(r, oribi_slice(start, (size_t)(end - start)));
}

/* \" and \\ are what stands in the files of other servers, within quotes of theirs; \t is a tab there. */
static int read_literal(struct reading *r)
{
    char c = *r->p++;
    if (c == '\\' && !r->format->json && (*r->p == '"' || *r->p == '\\' || *r->p == 't')) {
        c = *r->p == 't' ? '\t' : *r->p;
        r->p++;
    } else if (r->format->json && c == '\\' && *r->p) {
        int code = add_piece(r, ORIBI_LOG_LITERAL, oribi_slice(r->p - 1, 2));
        r->p++;
        return code;
    }
    r->quoted ^= c == '"';
    return add_piece(r, ORIBI_LOG_LITERAL, oribi_slice(&c, 1));
}

int oribi_log_format_read(const char *text, struct oribi_log_format *format, char *error)
{
    const char *first = strpbrk(text, "%$");
    struct reading r = {.format = format, .p = text, .error = error, .sign = first ? *first : '%'};
    if (!first)
        return oribi__refuse(
            error,
            "access_log_format must be common, combined, json, dev or a format with directives such as "
            "%%h or $remote_addr, not \"%.60s\"",
            text);
    if (strlen(text) > ORIBI_LOG_FORMAT_BYTES_MAX)
        return oribi__refuse(error, "access_log_format is longer than %d bytes", ORIBI_LOG_FORMAT_BYTES_MAX);
    format->json = *text == '{';
    format->piece_count = 0;
    format->text_len = 0;
    int code = 0;
    while (code == 0 && *r.p) {
        if (*r.p != r.sign)
            code = read_literal(&r);
        else
            code = r.sign == '%' ? read_percent(&r) : read_dollar(&r);
    }
    return code;
}

bool oribi_log_format_has(const struct oribi_log_format *format, enum oribi_log_item item)
{
    for (uint16_t i = 0; i < format->piece_count; i++)
        if (format->pieces[i].item == item)
            return true;
    return false;
}

/* --- documentation --- */

static void put_directive(struct oribi_buf *out, const char *sign, const char *name)
{
    if (!name)
        return;
    oribi_buf_append(out, " `", 2);
    oribi_buf_append(out, sign, 1);
    oribi_buf_append(out, name, strlen(name));
    oribi_buf_append(out, "`", 1);
}

/* A row of the table: the directive, and those behind it that mean the same. Returns their number. */
static int put_row(struct oribi_buf *out, const struct directive *first, int left)
{
    int same = 1;
    while (same < left && strcmp(first[same].meaning, "the same") == 0)
        same++;
    oribi_buf_append(out, "|", 1);
    for (int i = 0; i < same; i++)
        put_directive(out, "%", first[i].apache);
    oribi_buf_append(out, " |", 2);
    for (int i = 0; i < same; i++)
        put_directive(out, "$", first[i].nginx);
    oribi_buf_append(out, " | ", 3);
    oribi_buf_append(out, first->meaning, strlen(first->meaning));
    oribi_buf_append(out, " |\n", 3);
    return same;
}

void oribi_log_format_doc(struct oribi_buf *out)
{
    static const char head[] = "### Directives of access_log_format\n\n| Apache | nginx | meaning |\n|---|---|---|\n";
    oribi_buf_append(out, head, sizeof(head) - 1);
    for (int i = 0; i < DIRECTIVES;)
        i += put_row(out, &directives[i], DIRECTIVES - i);
    oribi_buf_append(out, "\n", 1);
}
