/* Streams of HTTP/2 as calls: requests from h2.h's events, answers from their channels. */
#include "frontend/streams_h2.h"
#include "frontend/answers.h"
#include "frontend/canonical.h"
#include "frontend/channel.h"
#include "frontend/clients_h2.h"
#include "frontend/count.h"
#include "frontend/frontend.h"
#include "frontend/local.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/http/trailers.h"

#include <stdio.h>
#include <string.h>

enum { STATUS_GONE = 499, LINE_CAP = 4096 };

static const struct oribi__upstream_ops ops;

static struct oribi__stream *stream_of(const struct oribi__upstream_request *call)
{
    return call->owner;
}

/* --- answers --- */

static struct oribi_field field_of(const char *name, const char *value, size_t len)
{
    return (struct oribi_field){
        .name = name, .value = value, .name_len = (uint16_t)strlen(name), .value_len = (uint32_t)len};
}

static void count_reset(const struct oribi__client *client)
{
    oribi_frontend_slot_count(&client->frontend->slot->reset_count, 1);
}

static void reset(struct oribi__stream *stream, uint32_t code)
{
    if (!stream->h2)
        return; /* its connection has ended in what was tried last */
    count_reset(stream->client);
    oribi_h2_reset(stream->h2, code);
    oribi__stream_let_go(stream);
}

/* An answer of our own: its status in words. */
static void answer_own(struct oribi__stream *stream, int status)
{
    struct oribi__frontend *frontend = stream->client->frontend;
    struct oribi_field *fields = frontend->h2->fields;
    char text[ORIBI__OWN_TEXT_CAP];
    char length[24];
    struct oribi_slice type;
    struct oribi_slice body = oribi__answer_text(frontend, status, text, &type);
    int digits = snprintf(length, sizeof(length), "%zu", body.n);
    uint32_t count = oribi__answer_fields(frontend, fields, ORIBI_RESPONSE_FIELDS_MAX - 4);
    fields[count++] = field_of("content-type", type.p, type.n);
    fields[count++] = field_of("content-length", length, (size_t)digits);
    fields[count++] = field_of("date", oribi_reactor_date(&frontend->reactor), 29);
    if (status == 503)
        fields[count++] = field_of("retry-after", "1", 1);
    if (oribi_h2_answer(stream->h2, status, fields, count, stream->is_head) == 0 && !stream->is_head) {
        stream->out_at = stream->out.len = 0;
        if (oribi_buf_try_append(&stream->out, body.p, body.n) < 0)
            oribi_h2_reset(stream->h2, ORIBI_H2_INTERNAL_ERROR);
        oribi_h2_ready(stream->h2);
    }
    if (stream->call)
        oribi__answer_log(stream->call, status, stream->is_head ? 0 : (int64_t)body.n);
    stream->whole = true;
    oribi__stream_end_call(stream);
    oribi__stream_ends(stream);
}

void oribi__stream_refuse(struct oribi__stream *stream, int status, enum oribi_refusal refusal, const char *reason)
{
    struct oribi__frontend *frontend = stream->client->frontend;
    if (reason && stream->call && oribi_log_limit_allows(&frontend->log_limit, frontend->reactor.now_ms))
        oribi__answer_say_failed(stream->call, status, refusal, reason);
    if (stream->call)
        stream->call->refusal = (uint8_t)refusal;
    oribi__count_refusal(frontend, status, refusal);
    answer_own(stream, status);
}

/* A body that cannot be kept: a code of error.h. */
static void refuse_body(struct oribi__stream *stream, int code)
{
    enum oribi_refusal refusal = code == ORIBI_ELIMIT   ? ORIBI_REFUSAL_BUFFERS_FILE
                                 : code == ORIBI_ENOMEM ? ORIBI_REFUSAL_MEMORY
                                                        : oribi_refusal_of(code, ORIBI_REFUSAL_STORAGE);
    char reason[ORIBI__OWN_REASON_CAP];
    if (code == ORIBI_ENOMEM)
        (void)snprintf(reason, sizeof(reason), "no memory for the request body");
    else if (code == ORIBI_ELIMIT)
        (void)snprintf(reason, sizeof(reason), "no room for the request body: buffers_file_max is used up");
    else
        (void)snprintf(reason, sizeof(reason), "request body cannot be stored in %.100s: %s", oribi_os_temp_dir(),
                       oribi_os_error_text());
    oribi__stream_refuse(stream, code == ORIBI_EFULL ? 507 : 503, refusal, reason);
}

/* Fields behind the body, where there are some. */
static void add_trailers(struct oribi__stream *stream, const struct oribi_buf *lines)
{
    struct oribi_trailers trailers = {0};
    if (!lines->len || oribi_trailers_read(oribi_slice(lines->p, lines->len), &trailers) < 0)
        return;
    (void)oribi_h2_trailers(stream->h2, trailers.fields, trailers.count); /* without them the answer is whole as well */
    oribi_trailers_release(&trailers);
}

static void more(struct oribi__upstream_request *call, struct oribi_slice body, bool last)
{
    struct oribi__stream *stream = stream_of(call);
    int code = oribi__stream_keep(stream, body);
    if (code < 0) {
        oribi__own_say_cut(call, code);
        reset(stream, ORIBI_H2_INTERNAL_ERROR);
        return;
    }
    if (last) {
        stream->whole = true;
        add_trailers(stream, &call->tail);
        oribi__stream_end_call(stream);
        oribi__stream_ends(stream);
    } else if (!call->blocked && (!stream->has_length || stream->unstored) &&
               oribi__stream_pending(stream) > ORIBI__FRONTEND_HIGH_BYTES) {
        oribi__upstream_block(call);
        stream->client->has_blocked = true;
    }
    oribi_h2_ready(stream->h2);
    oribi__client_dirty(stream->client);
}

/* The fields of an answer, in frontend->h2->fields; returns their number. */
static uint32_t fields_of(struct oribi__frontend *frontend, const struct oribi_answer *answer)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < answer->count; i++) {
        const struct oribi_header *header = &answer->headers[i];
        if (header->name_len <= UINT16_MAX)
            frontend->h2->fields[count++] = (struct oribi_field){.name = header->name,
                                                                 .value = header->value,
                                                                 .name_len = (uint16_t)header->name_len,
                                                                 .value_len = header->value_len};
    }
    return count;
}

static void begin(struct oribi__upstream_request *call, struct oribi_answer *answer, struct oribi_slice body, bool last)
{
    struct oribi__stream *stream = stream_of(call);
    struct oribi__frontend *frontend = call->frontend;
    struct oribi_field *fields = frontend->h2->fields;
    uint32_t count = fields_of(frontend, answer);
    if (stream->client->peer.tls && frontend->answers->extra_tls.name)
        fields[count++] = (struct oribi_field){.name = frontend->answers->extra_tls.name,
                                               .value = frontend->answers->extra_tls.value,
                                               .name_len = (uint16_t)frontend->answers->extra_tls.name_len,
                                               .value_len = frontend->answers->extra_tls.value_len};
    bool bodiless = last && body.n == 0 && !call->tail.len;
    int code = oribi_h2_answer(stream->h2, answer->status, fields, count, bodiless);
    if (code == ORIBI_ECLOSED || code == ORIBI_ENOMEM) {
        reset(stream, ORIBI_H2_INTERNAL_ERROR);
        return;
    }
    if (code < 0) {
        call->begun = false;
        oribi__upstream_failed(call, 502, ORIBI_REFUSAL_OTHER, "an answer that cannot be passed on");
        return;
    }
    if (bodiless) {
        stream->whole = true;
        oribi__stream_end_call(stream);
        oribi__stream_ends(stream);
        return;
    }
    stream->has_length = answer->content_length >= 0 && !call->of_local;
    stream->in_file = stream->has_length && answer->content_length > ORIBI__FRONTEND_HIGH_BYTES;
    more(call, body, last);
}

static void interim(struct oribi__upstream_request *call, const struct oribi_answer *answer)
{
    struct oribi__stream *stream = stream_of(call);
    if (answer->status == 100)
        return;
    uint32_t count = fields_of(call->frontend, answer);
    (void)oribi_h2_interim(stream->h2, answer->status, call->frontend->h2->fields,
                           count); /* the answer itself finds out */
    oribi__client_dirty(stream->client);
}

static void fail(struct oribi__upstream_request *call, int status, const char *reason)
{
    struct oribi__stream *stream = stream_of(call);
    if (call->begun)
        reset(stream, ORIBI_H2_INTERNAL_ERROR);
    else
        answer_own(stream, status);
}

static int64_t pending(const struct oribi__upstream_request *call)
{
    return oribi__stream_pending(stream_of(call));
}

static void waits(struct oribi__upstream_request *call, int change)
{
    struct oribi__client *client = stream_of(call)->client;
    client->waiting_count += (uint32_t)change;
    oribi__client_waits(client);
}

static const struct oribi__upstream_ops ops = {
    .interim = interim, .begin = begin, .more = more, .fail = fail, .pending = pending, .waits = waits};

/* --- requests --- */

static void on_request(void *self, struct oribi_h2_stream *h2, const struct oribi_h2_request *request)
{
    struct oribi__client *client = self;
    struct oribi__stream *stream = oribi__stream_create(client, h2);
    struct oribi__upstream_request *call = stream ? oribi__upstream_create(client->frontend, &ops, stream) : NULL;
    if (!stream) {
        count_reset(client);
        oribi_h2_reset(h2, ORIBI_H2_REFUSED_STREAM);
        oribi_h2_release(h2);
        return;
    }
    stream->is_head = request->parsed->is_head;
    stream->call = call;
    if (call)
        oribi__count_request(call, request->parsed->method, true);
    if (!call || oribi__upstream_about(call, &client->peer, request->parsed, 20, true) < 0 ||
        oribi_buf_try_append(&call->head, request->head.p, request->framing) < 0) {
        oribi__stream_refuse(stream, 503, ORIBI_REFUSAL_MEMORY, "out of memory");
        return;
    }
    call->is_head = request->parsed->is_head;
    stream->of_local = oribi__frontend_local_claims(client->frontend, call, request->parsed);
    call->safe = oribi_canonical_is_safe(request->parsed->method);
    stream->began_ms = client->frontend->reactor.now_ms;
    stream->data_ms = request->ended ? 0 : stream->began_ms;
    if (request->parsed->expect_continue)
        (void)oribi_h2_interim(h2, 100, NULL, 0); /* a client that waits in vain sends its body some time */
}

static void log_refused(struct oribi__client *client, int status, enum oribi_refusal refusal, const char *reason,
                        const struct oribi_fault *fault)
{
    char line[LINE_CAP];
    size_t n = oribi_h2_request_line(client->h2, line, sizeof(line));
    oribi__answer_log_refused_h2(client->frontend, &client->peer, oribi_slice(line, n), status, refusal, reason, fault);
}

static void on_refused(void *self, struct oribi_h2_stream *h2, int error, const struct oribi_fault *fault, bool is_head)
{
    struct oribi__client *client = self;
    struct oribi__frontend *frontend = client->frontend;
    struct oribi__stream *stream = h2->user ? h2->user : oribi__stream_create(client, h2);
    const char *reason = fault && fault->reason ? fault->reason : oribi_error_text(error);
    enum oribi_refusal refusal = oribi_refusal_of(error, ORIBI_REFUSAL_FIELD);
    int status = oribi_error_status(error) ? oribi_error_status(error) : 400;
    if (!stream || !stream->call)
        log_refused(client, status, refusal, reason, fault);
    else if (oribi_log_limit_allows(&frontend->log_limit, frontend->reactor.now_ms))
        oribi__answer_say_failed(stream->call, status, refusal, reason);
    if (!stream) {
        oribi_h2_reset(h2, ORIBI_H2_REFUSED_STREAM);
        oribi_h2_release(h2);
        return;
    }
    if (stream->call && stream->call->begun) {
        reset(stream, ORIBI_H2_NO_ERROR);
        return;
    }
    stream->is_head = is_head;
    oribi__stream_refuse(stream, status, refusal, NULL);
}

static void on_malformed(void *self, uint32_t id, const char *reason)
{
    struct oribi__client *client = self;
    struct oribi__frontend *frontend = client->frontend;
    count_reset(client);
    if (oribi_log_limit_allows(&frontend->log_limit, frontend->reactor.now_ms))
        oribi_log(ORIBI_LOG_WARN, "frontend: reset a stream of %.*s: %s",
                  client->peer.addr_len ? client->peer.addr_len : 4, client->peer.addr_len ? client->peer.addr : "unix",
                  reason);
}

static void on_data(void *self, struct oribi_h2_stream *h2, const char *p, size_t n)
{
    struct oribi__client *client = self;
    struct oribi__stream *stream = h2->user;
    if (!stream || !stream->call || stream->call->state != ORIBI__CALL_NEW) {
        oribi_h2_stored(h2, n);
        return;
    }
    stream->data_ms = client->frontend->reactor.now_ms;
    const struct oribi_budget *budget = &client->frontend->reactor.budget;
    int64_t memory_max =
        oribi_budget_memory(budget, (int64_t)oribi_body_memory(&stream->body), ORIBI__FRONTEND_INLINE_BYTES);
    int code = oribi_budget_file(budget, (int64_t)n)
                   ? oribi_body_append(&stream->body, p, n, (uint32_t)memory_max, ORIBI_BODY_BATCH_BYTES)
                   : ORIBI_ELIMIT;
    oribi__stream_charge(stream);
    if (code < 0)
        refuse_body(stream, code);
    oribi_h2_stored(h2, n);
}

static void on_trailers(void *self, struct oribi_h2_stream *h2, struct oribi_slice lines)
{
    struct oribi__stream *stream = h2->user;
    if (stream && stream->call && stream->call->state == ORIBI__CALL_NEW)
        (void)oribi_buf_try_append(&stream->call->tail, lines.p, lines.n); /* without memory: without trailers */
}

/* Completes the call's body and head, in front of which the channel head says when the head had come. */
static int finish_head(struct oribi__stream *stream)
{
    struct oribi__upstream_request *call = stream->call;
    int64_t len = (int64_t)stream->body.len;
    bool has_body = stream->data_ms != 0 || len > 0;
    bool trailers = call->tail.len > 0;
    int code = oribi_body_finish(&stream->body);
    if (code < 0)
        return code;
    call->body_len = len;
    if (stream->body.fd >= 0)
        call->body_fd = stream->body.fd;
    else
        call->body = oribi_slice(stream->body.memory.p, stream->body.memory.len);
    if (trailers) {
        struct oribi_buf lines = call->tail;
        bool in_memory = call->body.n > 0;
        call->tail = (struct oribi_buf){0};
        if (in_memory)
            call->chunk_len = (uint8_t)oribi_chunk_head(call->chunk, call->body.n);
        code = oribi_buf_try_append(&call->tail, in_memory ? "\r\n0\r\n" : "0\r\n", in_memory ? 5 : 3);
        code = code < 0 ? code : oribi_buf_try_append(&call->tail, lines.p, lines.len);
        code = code < 0 ? code : oribi_buf_try_append(&call->tail, "\r\n", 2);
        oribi_buf_deinit(&lines);
    }
    return code < 0 ? code : oribi_canonical_framing(&call->head, has_body ? len : -1, trailers);
}

static void on_end(void *self, struct oribi_h2_stream *h2)
{
    struct oribi__stream *stream = h2->user;
    if (!stream || !stream->call || stream->call->state != ORIBI__CALL_NEW)
        return;
    int code = finish_head(stream);
    stream->data_ms = 0;
    oribi__stream_charge(stream);
    if (code < 0)
        refuse_body(stream, code);
    else if (!stream->of_local || !oribi__frontend_local_submit(stream->call))
        oribi__upstream_submit(stream->call);
}

static void on_reset(void *self, struct oribi_h2_stream *h2, uint32_t code)
{
    struct oribi__client *client = self;
    struct oribi__stream *stream = h2->user;
    count_reset(client);
    if (!stream) {
        oribi_h2_release(h2);
        return;
    }
    if (stream->call && stream->call->state == ORIBI__CALL_QUEUED) {
        oribi__answer_log(stream->call, STATUS_GONE, 0);
        oribi_frontend_slot_count(&client->frontend->slot->gone_count, 1);
    }
    oribi__stream_let_go(stream); /* its worker sees that the client has gone when it looks or writes */
}

const struct oribi_h2_events oribi__stream_events = {
    .request = on_request,
    .refused = on_refused,
    .malformed = on_malformed,
    .data = on_data,
    .trailers = on_trailers,
    .end = on_end,
    .reset = on_reset,
    .pull = oribi__stream_pull,
};
