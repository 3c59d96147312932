/* Log lines about a request that never reaches the application: a line of the error log that shows what was refused
 * and why, and one of the access log. And lines about an answer whose rest cannot be kept for its client.
 *
 *   request from 127.0.0.1 refused with 400: byte not allowed in the target: 0x3c '<' at column 7 of "GET /a<b
 *   HTTP/1.1"; closing its connection
 *
 * Of field lines the name alone is shown, and the value where it frames or routes (struct oribi_fault): others can
 * be secrets. */
#include "worker/logs/exchange_log.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/escape.h"
#include "oribi/worker/logs/request_log.h"

#include <stdio.h>

enum {
    BYTE_CAP = 64,
    REASON_CAP = 320,
    SHOWN_CAP = ORIBI_REFUSED_SHOWN_MAX * ORIBI_ESCAPE_TEXT_GROWTH + 1,
    DETAIL_CAP = BYTE_CAP + SHOWN_CAP + 32,
};

/* The part of a long line that has its byte `at` in it: the line's beginning as long as that is possible. */
static struct oribi_slice part_with(struct oribi_slice line, size_t at)
{
    if (line.n <= ORIBI_REFUSED_SHOWN_MAX)
        return line;
    size_t start = at < ORIBI_REFUSED_SHOWN_MAX ? 0 : at - ORIBI_REFUSED_SHOWN_MAX / 2;
    size_t left = line.n - start;
    return oribi_slice(line.p + start, left < ORIBI_REFUSED_SHOWN_MAX ? left : ORIBI_REFUSED_SHOWN_MAX);
}

/* 0x7c '|' at column 7 */
static void describe_byte(char *dst, size_t cap, unsigned char byte, size_t column)
{
    char quoted[8] = "";
    if (byte > 0x20 && byte < 0x7f)
        (void)snprintf(quoted, sizeof(quoted), " '%c'", byte);
    (void)snprintf(dst, cap, "0x%02x%s at column %zu", byte, quoted, column);
}

/* `line` is what of the request is shown, *at the byte that was refused or NULL; it may stand behind what is shown. */
static void describe(char *dst, size_t cap, struct oribi_slice line, const char *at, const char *what)
{
    char byte[BYTE_CAP] = "";
    char shown[SHOWN_CAP];
    size_t column = at ? (size_t)(at - line.p) : 0;
    struct oribi_slice part = part_with(line, column < line.n ? column : 0);
    *oribi_escape_text(shown, part) = '\0';
    if (at)
        describe_byte(byte, sizeof(byte), (unsigned char)*at, column + 1);
    bool empty = part.n == 0;
    (void)snprintf(dst, cap, "%s%s%s%s%s%s%s%s%s", at || !empty ? ": " : "", byte, at && !empty ? " of " : "",
                   empty ? "" : what, empty ? "" : "\"", part.p > line.p ? "..." : "", shown,
                   part.p + part.n < line.p + line.n ? "..." : "", empty ? "" : "\"");
}

void oribi__refused_say(const struct oribi__refusal_line *line)
{
    static const struct oribi_fault none;
    const struct oribi_fault *fault = line->fault ? line->fault : &none;
    struct oribi_slice addr = line->addr.n ? line->addr : ORIBI_SLICE("a unix socket");
    char detail[DETAIL_CAP];
    if (fault->field.p)
        describe(detail, sizeof(detail), fault->field, fault->at, "field ");
    else
        describe(detail, sizeof(detail), line->first_line, fault->at, "");
    oribi_log_about(line->id, line->trace_id);
    oribi_log(ORIBI_LOG_WARN, "request from %.*s refused with %d: %s%s%s", (int)addr.n, addr.p, line->status,
              line->reason, detail, line->closes ? "; closing its connection" : "");
    oribi_log_about(oribi_slice(NULL, 0), oribi_slice(NULL, 0));
}

static void log_refusal(const struct oribi_conn *c, int status, const char *reason, struct oribi_slice first_line,
                        struct oribi_slice id)
{
    const struct oribi__refusal_line line = {.addr = oribi_slice(c->addr, c->addr_len),
                                             .status = status,
                                             .reason = reason,
                                             .fault = c->exchange ? &c->exchange->parser.fault : NULL,
                                             .first_line = first_line,
                                             .id = id,
                                             .trace_id = c->exchange ? oribi__trace_id(&c->exchange->head)
                                                                     : oribi_slice(NULL, 0),
                                             .closes = true};
    oribi__refused_say(&line);
}

int64_t oribi__body_taken(const struct oribi__exchange *exchange)
{
    const struct oribi_conn *c = exchange->base.conn;
    if (exchange->phase != ORIBI_PHASE_STARTED)
        return 0;
    int64_t taken = c->sent_bytes - exchange->sent_before - exchange->overhead;
    return taken > 0 ? taken : 0;
}

void oribi__on_unkept(void *self, struct oribi_conn *c, int error)
{
    struct oribi_worker *w = self;
    struct oribi__exchange *exchange = (struct oribi__exchange *)c->exchange;
    char reason[REASON_CAP] = "no memory for the rest";
    if (error == ORIBI_ELIMIT)
        (void)snprintf(reason, sizeof(reason), "no room for the rest: buffers_file_max is used up");
    else if (error != ORIBI_ENOMEM)
        (void)snprintf(reason, sizeof(reason), "the rest cannot be stored in %.100s: %s", oribi_os_temp_dir(),
                       oribi_os_error_text());
    char line[ORIBI_SLOT_LINE_CAP];
    if (!exchange->thread)
        oribi__note_line(line, &exchange->base.head);
    if (!oribi_log_limit_allows(&w->app_log_limit, w->reactor.now_ms))
        return;
    oribi__log_about(exchange);
    oribi_log(ORIBI_LOG_ERROR, "%s: answer cut after %lld bytes of its body: %s; closing its connection",
              exchange->thread ? exchange->thread->line : line, (long long)oribi__body_taken(exchange), reason);
    oribi__log_about(NULL);
}

void oribi__on_refused(void *self, struct oribi_conn *c, enum oribi_refusal refusal, size_t head_bytes,
                       size_t body_bytes, const char *text)
{
    int status = oribi_refusal_status(refusal);
    struct oribi_worker *w = self;
    struct oribi_slice first_line = oribi_parser_first_line(c->buf, c->buf ? c->len : 0);
    bool ours = status == 503 || status == 507; /* the server has no room, the request is good */
    oribi__count(ours ? &w->slot->shed_count : &w->slot->bad_requests, 1);
    oribi_slot_count_refusal(w->slot, refusal);
    char id_text[ORIBI__ID_LEN];
    struct oribi_slice id = oribi__id_given(w, c); /* of the fields in front of what is wrong */
    if (!id.n) {
        oribi__id_make(&w->ids, w->reactor.now_us, id_text);
        id = oribi_slice(id_text, ORIBI__ID_LEN);
    }
    if (oribi_log_limit_allows(&w->refuse_log_limit, w->reactor.now_ms))
        log_refusal(c, status, text, first_line, oribi__logs_ids(w) ? id : oribi_slice(NULL, 0));
    if (!w->setup.access_log || status == 0)
        return;
    const struct oribi_listener *listener = c->listener;
    const char *shown = oribi_listener_shown(listener);
    static const struct oribi_head nothing; /* a head of which not even the first line is known */
    struct oribi_access_entry entry = {
        .head = c->exchange ? &c->exchange->head : &nothing,
        .raw_line = first_line,
        .remote_addr = oribi_slice(c->addr, c->addr_len),
        .remote_port = oribi_slice(c->port, c->port_len),
        .scheme = c->proxy_tls ? ORIBI_SLICE("https") : ORIBI_SLICE("http"),
        .port = oribi_slice(listener->port, strlen(listener->port)),
        .listener = oribi_slice(shown, strlen(shown)),
        .worker = w->setup.board ? (uint32_t)(w->slot - w->setup.board->slots) : 0,
        .connection_requests = c->request_count,
        .request_id = id,
        .status = status,
        .refused = oribi_refusal_name(refusal),
        .upstream_us = -1,
        .closes = true,
        .body_bytes = (int64_t)body_bytes,
        .bytes_in = c->buf ? c->len : 0,
        .bytes_out = (int64_t)(head_bytes + body_bytes),
        .wall_ms = oribi_clock_wall_ms(),
    };
    oribi_access_log_add(w->setup.access_log, &entry);
}
