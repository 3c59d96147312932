/* An answer of the local content: its bytes, its count and its line in the access log. */
#include "worker/local/local_private.h"

#include "oribi/base/clock.h"
#include "oribi/http/fields.h"
#include "oribi/http/response.h"
#include "oribi/http/status.h"

#include <stdio.h>
#include <string.h>

void oribi__local_add(struct oribi__local_answer *a, const char *name, const char *value, size_t n)
{
    a->headers[a->header_count++] = (struct oribi_header){name, value, (uint32_t)strlen(name), (uint32_t)n};
}

void oribi__local_add_text(struct oribi__local_answer *a, const char *name, const char *value)
{
    oribi__local_add(a, name, value, strlen(value));
}

struct oribi_slice oribi__local_field(const struct oribi__local_answer *a, enum oribi_field_id id)
{
    const struct oribi_field *field = oribi_head_field(&a->c->exchange->head, id);
    return field ? oribi_slice(field->value, field->value_len) : oribi_slice(NULL, 0);
}

/* Sets what oribi__on_unkept() and oribi__body_taken() read when the answer breaks off. */
static void begin(struct oribi__local_answer *a, int64_t head_bytes)
{
    struct oribi__exchange *exchange = (struct oribi__exchange *)a->c->exchange;
    exchange->thread = NULL;
    exchange->phase = ORIBI_PHASE_STARTED;
    exchange->sent_before = a->c->sent_bytes + oribi_conn_pending(a->c);
    exchange->overhead = head_bytes;
    oribi__logged_head(exchange, oribi_slice(a->w->reactor.scratch, (size_t)head_bytes));
}

static void log_access(struct oribi__local_answer *a, int status, int64_t body_bytes, bool cut, bool closes)
{
    struct oribi__exchange *exchange = (struct oribi__exchange *)a->c->exchange;
    exchange->req.head = &exchange->base.head;
    oribi__peer_of(exchange);
    struct oribi_access_entry entry = oribi__logged_entry(exchange, cut, oribi_clock_us());
    entry.status = status;
    entry.closes = closes;
    entry.body_bytes = cut ? oribi__body_taken(exchange) : body_bytes;
    entry.bytes_out = entry.body_bytes + exchange->overhead;
    oribi_access_log_add(a->w->setup.access_log, &entry);
    oribi__logged_end(exchange);
}

/* A part of it is on its way to a file: whether it breaks off is not known yet. */
static void note_later(struct oribi__local_answer *a, int status, int64_t body_bytes, bool closes)
{
    struct oribi__exchange *exchange = (struct oribi__exchange *)a->c->exchange;
    exchange->req.head = &exchange->base.head;
    exchange->req.queue_us = 0;
    oribi__peer_of(exchange);
    exchange->aborted = false;
    exchange->body_sent = body_bytes;
    exchange->closes = closes;
    exchange->started_us = a->w->reactor.now_us; /* there is no call */
    oribi__exchange_unstored(exchange, status);
}

static void note(struct oribi__local_answer *a, int status, int64_t body_bytes, bool closes)
{
    struct oribi_worker *w = a->w;
    bool cut = a->c->broken;
    oribi__count(&w->slot->uncalled_count, 1);
    if (a->c->unstored && !cut) {
        note_later(a, status, body_bytes, closes);
        return;
    }
    oribi_slot_count_answer(w->slot, a->c->exchange->head.method, cut ? 0 : status);
    if (w->setup.access_log)
        log_access(a, status, body_bytes, cut, closes);
}

void oribi__local_send_body(struct oribi__local_answer *a, int status, const struct oribi__local_body *body)
{
    static const struct oribi__local_body empty;
    struct oribi_reactor *r = &a->w->reactor;
    struct oribi__exchange *exchange = (struct oribi__exchange *)a->c->exchange;
    if (!body)
        body = &empty;
    struct oribi_response res = {
        .status = status,
        .headers = a->headers,
        .header_count = a->header_count,
        .minor = a->c->exchange->head.minor,
        .is_head = a->c->exchange->head.is_head,
        .keep_alive = oribi__conn_keeps(a->w, a->c),
        .body_len = body->len,
        .date = oribi_reactor_date(r),
        .server = r->config.server,
        .added = r->config.added,
        .reason_index = UINT32_MAX,
    };
    if (a->w->options->request_id_header)
        res.extra = oribi__id_header(exchange);
    ssize_t n = oribi_response_head(&res, r->scratch, ORIBI_SCRATCH_BYTES); /* heads of ours fit */
    begin(a, n > 0 ? n : 0);
    bool bodyless = res.framing == ORIBI_FRAMING_NONE || body->len == 0;
    bool from_source = !bodyless && body->source;
    uint32_t count = bodyless || from_source ? 0 : body->vec_count;
    struct iovec vec[1 + ORIBI__LOCAL_VECS_MAX];
    vec[0] = (struct iovec){r->scratch, n > 0 ? (size_t)n : 0};
    for (uint32_t i = 0; i < count; i++)
        vec[1 + i] = body->vec[i];
    int result = oribi_conn_send(r, a->c, vec, 1 + count, from_source);
    if (result == 0 && from_source)
        (void)oribi_conn_send_source(r, a->c, body->source, body->pieces, body->piece_count); /* a->c->broken tells */
    note(a, status, bodyless ? 0 : body->len, res.closes || n <= 0);
    oribi_conn_finish(r, a->c, res.closes || n <= 0);
}

void oribi__local_send(struct oribi__local_answer *a, int status, struct oribi_slice memory)
{
    const struct iovec vec = {(void *)memory.p, memory.n};
    oribi__local_send_body(a, status,
                           &(struct oribi__local_body){.len = (int64_t)memory.n, .vec_count = 1, .vec = &vec});
}

void oribi__local_send_error(struct oribi__local_answer *a, int status)
{
    char text[ORIBI__OWN_TEXT_CAP];
    struct oribi_slice type;
    struct oribi_slice body = oribi__server_body(a->w, status, text, &type);
    a->header_count = 0;
    oribi__local_add(a, "Content-Type", type.p, type.n);
    if (status == 405)
        oribi__local_add_text(a, "Allow", "GET, HEAD");
    if (status == 503)
        oribi__local_add_text(a, "Retry-After", "1");
    oribi__local_send(a, status, body);
}
