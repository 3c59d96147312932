/* Streams of HTTP/2 as upstream requests: requests from h2.h's events, answers from their channels, the bytes that the
 * client has not taken, and how long a stream is kept. */
#include "frontend/streams_h2.h"
#include "frontend/answers.h"
#include "frontend/canonical.h"
#include "frontend/channel.h"
#include "frontend/clients_h2.h"
#include "frontend/count.h"
#include "frontend/frontend.h"
#include "frontend/local.h"
#include "frontend/streams_h2_private.h"
#include "frontend/upstream_request.h"
#include "frontend/websocket.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/http/head.h"
#include "oribi/event/body.h"

#include <stdio.h>
#include <string.h>

enum { STATUS_GONE = 499, STATUS_REFUSED = 403, LINE_CAP = 4096 };

/* NULL: out of memory. */
static struct oribi__stream *stream_create(struct oribi__client *client, struct oribi_h2_stream *h2);

/* Keeps a copy of the next bytes of the answer. 0, ORIBI_ENOMEM, or ORIBI_EFULL, ORIBI_ESTORE or ORIBI_ELIMIT when
 * neither a file nor memory takes them. */
static int stream_keep(struct oribi__stream *stream, struct oribi_slice body);

/* As oribi_h2_events.pull. */
static size_t stream_pull(void *self, struct oribi_h2_stream *h2, char *dst, size_t cap, bool *last);

/* Answers by itself. reason: for the error log; NULL: that has it. */
static void stream_refuse(struct oribi__stream *stream, int status, enum oribi_refusal refusal, const char *reason);

static const struct oribi__upstream_ops ops;

/* --- bytes of answers --- */

void oribi__stream_charge(struct oribi__stream *stream)
{
    struct oribi_budget *budget = &stream->client->frontend->reactor.budget;
    int64_t memory = (int64_t)(oribi_body_memory(&stream->body) + oribi_body_memory(&stream->file) + stream->out.cap);
    if (stream->bytes)
        memory += oribi__stream_bytes_memory(stream);
    int64_t file = (stream->body.fd >= 0 ? stream->body.len : 0) + (stream->file.fd >= 0 ? stream->file.len : 0);
    if (memory != stream->charge.memory || file != stream->charge.file)
        oribi_budget_set(budget, &stream->charge, memory, file);
}

/* Bytes of all clients together in memory are bounded by the budget: beyond it a file takes the bytes at once. */
static int keep_in_file(struct oribi__stream *stream, struct oribi_slice body)
{
    const struct oribi_budget *budget = &stream->client->frontend->reactor.budget;
    int64_t own = (int64_t)oribi_body_memory(&stream->file);
    int64_t max = oribi_budget_memory(budget, own, ORIBI__FRONTEND_HIGH_BYTES);
    bool fits = max == ORIBI__FRONTEND_HIGH_BYTES;
    if (!oribi_budget_file(budget, (int64_t)body.n))
        return ORIBI_ELIMIT;
    return oribi_body_append(&stream->file, body.p, body.n, fits ? ORIBI__FRONTEND_HIGH_BYTES : 0,
                             fits ? ORIBI_BODY_BATCH_BYTES : 0);
}

/* A full disk makes the worker wait for the client, as that of a stream without a length does: what is here until it
 * waits has room in memory, as far as the budget has. Gives `code`, why the disk takes no more, when it has not. */
static int keep_unstored(struct oribi__stream *stream, struct oribi_slice body, int code)
{
    const struct oribi_budget *budget = &stream->client->frontend->reactor.budget;
    struct oribi_buf *memory = &stream->file.memory;
    int64_t wanted = (int64_t)(memory->len + body.n);
    if (wanted > (int64_t)memory->cap &&
        oribi_budget_memory(budget, (int64_t)oribi_body_memory(&stream->file), wanted) < wanted)
        return code;
    if (oribi_buf_try_append(memory, body.p, body.n) < 0)
        return ORIBI_ENOMEM;
    stream->file.len += (int64_t)body.n;
    return 0;
}

static int keep_behind(struct oribi__stream *stream, struct oribi_slice body)
{
    int code = stream->unstored ? stream->unstored : keep_in_file(stream, body);
    if (code == 0 || code == ORIBI_ENOMEM)
        return code;
    if (!stream->unstored)
        stream->unstored_error = oribi_os_error_save();
    stream->unstored = code;
    code = keep_unstored(stream, body, code);
    oribi_os_error_restore(stream->unstored_error);
    return code;
}

static int stream_keep(struct oribi__stream *stream, struct oribi_slice body)
{
    const struct oribi_budget *budget = &stream->client->frontend->reactor.budget;
    if (body.n == 0)
        return 0;
    size_t cap = stream->out.len + body.n; /* what it grows by at least */
    if (!stream->in_file && cap > stream->out.cap)
        stream->in_file = oribi_budget_memory(budget, (int64_t)stream->out.cap, (int64_t)cap) < (int64_t)cap;
    int code = stream->in_file ? keep_behind(stream, body) : oribi_buf_try_append(&stream->out, body.p, body.n);
    oribi__stream_charge(stream);
    return code;
}

int64_t oribi__stream_pending(const struct oribi__stream *stream)
{
    return (int64_t)(stream->out.len - stream->out_at) + stream->file.len - stream->file_at;
}

static size_t pull_memory(struct oribi__stream *stream, char *dst, size_t cap)
{
    size_t left = stream->out.len - stream->out_at;
    size_t n = cap < left ? cap : left;
    if (cap == 0)
        return left;
    memcpy(dst, stream->out.p + stream->out_at, n);
    stream->out_at += n;
    if (stream->out_at == stream->out.len) {
        stream->out_at = stream->out.len = 0;
        if (stream->whole || stream->in_file)
            oribi_buf_deinit(&stream->out);
    } else if (stream->out_at > ORIBI__FRONTEND_HIGH_BYTES) {
        oribi_buf_consume(&stream->out, stream->out_at);
        stream->out_at = 0;
    }
    return n;
}

/* The disk has lost what was written to it. */
static void log_unread(const struct oribi__stream *stream, ssize_t got)
{
    struct oribi__frontend *frontend = stream->client->frontend;
    if (oribi_log_limit_allows(&frontend->log_limit, frontend->reactor.now_ms))
        oribi_log(ORIBI_LOG_ERROR, "frontend: the file that holds an answer cannot be read: %s; its stream is reset",
                  got < 0 ? oribi_os_error_text() : "it has become shorter");
}

/* Of what the disk does not take only that is in memory which the client has not taken. */
static void forget_pulled(struct oribi__stream *stream)
{
    struct oribi_buf *memory = &stream->file.memory;
    int64_t pulled = stream->file_at - (stream->file.len - (int64_t)memory->len);
    if (stream->unstored && pulled >= ORIBI__FRONTEND_LOW_BYTES)
        oribi_buf_consume(memory, (size_t)pulled);
}

/* The end of the body stands in memory until there is a batch of it. */
static size_t pull_file(struct oribi__stream *stream, char *dst, size_t cap)
{
    const struct oribi_body *file = &stream->file;
    int64_t left = file->len - stream->file_at;
    int64_t written = file->fd >= 0 ? file->len - (int64_t)file->memory.len : 0;
    size_t n = (int64_t)cap < left ? cap : (size_t)left;
    if (cap == 0 || left == 0)
        return left > 0;
    if (stream->file_at < written) {
        n = (int64_t)n < written - stream->file_at ? n : (size_t)(written - stream->file_at);
        ssize_t got = oribi_os_read_at(file->fd, dst, n, stream->file_at);
        if (got <= 0) {
            log_unread(stream, got);
            return ORIBI_H2_PULL_FAILED;
        }
        n = (size_t)got;
    } else {
        memcpy(dst, file->memory.p + (stream->file_at - written), n);
    }
    stream->file_at += (int64_t)n;
    forget_pulled(stream);
    return n;
}

/* A stream without an end would keep all that it ever sent. The disk may have room again. */
static void empty_file(struct oribi__stream *stream)
{
    oribi_body_deinit(&stream->file);
    oribi_body_init(&stream->file);
    stream->file_at = 0;
    stream->in_file = stream->has_length;
    stream->unstored = 0;
}

static size_t stream_pull(void *self, struct oribi_h2_stream *h2, char *dst, size_t cap, bool *last)
{
    struct oribi__stream *stream = h2->user;
    bool in_memory = stream->out_at < stream->out.len;
    size_t n = in_memory ? pull_memory(stream, dst, cap) : pull_file(stream, dst, cap);
    if (n == ORIBI_H2_PULL_FAILED)
        return n;
    *last = stream->whole && oribi__stream_pending(stream) == 0;
    if ((!stream->has_length || stream->unstored) && stream->file.len && stream->file_at == stream->file.len)
        empty_file(stream);
    oribi__stream_charge(stream);
    return n;
}

/* --- life --- */

static struct oribi__stream *stream_create(struct oribi__client *client, struct oribi_h2_stream *h2)
{
    struct oribi__stream *stream = oribi_mem_try_alloc(1, sizeof(*stream));
    if (!stream)
        return NULL;
    stream->client = client;
    stream->h2 = h2;
    oribi_body_init(&stream->body);
    oribi_body_init(&stream->file);
    stream->next = client->streams;
    if (client->streams)
        client->streams->prev = stream;
    client->streams = stream;
    client->frontend->stream_count++;
    client->stream_count++;
    oribi__client_waits(client);
    oribi__client_rests(client);
    h2->user = stream;
    return stream;
}

static void unlist_ended(struct oribi__stream *stream)
{
    struct oribi__stream **at = &stream->client->ended;
    if (!stream->is_ended)
        return;
    while (*at != stream)
        at = &(*at)->ended_next;
    *at = stream->ended_next;
    stream->is_ended = false;
}

void oribi__stream_destroy(struct oribi__stream *stream)
{
    struct oribi__client *client = stream->client;
    unlist_ended(stream);
    oribi__stream_bytes_end(stream);
    if (stream->call) {
        oribi__upstream_destroy(stream->call);
    }
    oribi_body_deinit(&stream->body);
    oribi_body_deinit(&stream->file);
    oribi_buf_deinit(&stream->out);
    oribi_budget_set(&client->frontend->reactor.budget, &stream->charge, 0, 0);
    *(stream->prev ? &stream->prev->next : &client->streams) = stream->next;
    if (stream->next)
        stream->next->prev = stream->prev;
    client->frontend->stream_count--;
    client->stream_count--;
    oribi__client_waits(client);
    oribi__client_rests(client);
    oribi_mem_free(stream);
}

void oribi__stream_ends(struct oribi__stream *stream)
{
    if (stream->is_ended)
        return;
    stream->is_ended = true;
    stream->ended_next = stream->client->ended;
    stream->client->ended = stream;
    oribi__client_dirty(stream->client);
}

void oribi__stream_end_call(struct oribi__stream *stream)
{
    struct oribi__upstream_request *call = stream->call;
    if (!call)
        return;
    stream->call = NULL;
    oribi__upstream_destroy(call);
    stream->data_ms = 0;
    oribi_body_deinit(&stream->body);
    oribi_body_init(&stream->body);
}

void oribi__stream_let_go(struct oribi__stream *stream)
{
    struct oribi__channel *channel = stream->call ? stream->call->channel : NULL;
    struct oribi_h2_stream *h2 = stream->h2;
    stream->h2 = NULL;
    oribi__stream_bytes_end(stream);
    oribi__stream_end_call(stream);
    oribi__stream_ends(stream);
    if (!h2)
        return;
    if (!channel || channel->state != ORIBI__CHANNEL_ABANDONED) {
        oribi_h2_release(h2);
        return;
    }
    h2->user = stream->client;
    channel->left_by = h2;
    stream->client->left_count++;
}

void oribi__h2_left_ended(struct oribi_h2_stream *h2)
{
    struct oribi__client *client = h2->user;
    client->left_count--;
    client->asleep = false; /* it may now */
    oribi_h2_release(h2);
    oribi__client_dirty(client);
}

static void let_workers_go_on(struct oribi__client *client)
{
    client->has_blocked = false;
    for (struct oribi__stream *stream = client->streams; stream; stream = stream->next) {
        if (stream->call && stream->call->blocked)
            oribi__upstream_taken(stream->call); /* may end the call; the stream stays */
        client->has_blocked |= stream->call && stream->call->blocked;
        client->has_blocked |= stream->bytes && oribi__stream_has_taken(stream);
    }
}

void oribi__streams_turn(struct oribi__client *client)
{
    if (client->has_blocked)
        let_workers_go_on(client);
    struct oribi__stream *stream = client->ended;
    while (stream) {
        struct oribi__stream *next = stream->ended_next;
        bool answered = stream->h2 && oribi_h2_is_answered(stream->h2);
        if (answered)
            oribi_h2_release(stream->h2);
        if (answered || !stream->h2)
            oribi__stream_destroy(stream);
        stream = next;
    }
}

/* --- deadlines --- */

static bool too_slow(const struct oribi__stream *stream, int64_t now_ms)
{
    const struct oribi_options *options = stream->client->frontend->config->options;
    return oribi_body_too_slow(stream->body.len, now_ms - stream->began_ms, options->body_timeout_ms,
                               options->body_rate_min);
}

/* In a drain: resets the streams whose client has not taken the end of its WebSocket, or of its events, in time.
 * Returns when to look again. */
static int64_t end_untaken(struct oribi__client *client, int64_t now_ms)
{
    int64_t deadline_ms = INT64_MAX;
    for (struct oribi__stream *stream = client->streams; stream; stream = stream->next) {
        if (!stream->over_ms || !stream->h2)
            continue;
        int64_t until_ms =
            ORIBI__FRONTEND_CLOSING_MS +
            (stream->over_ms > client->frontend->drain_since_ms ? stream->over_ms : client->frontend->drain_since_ms);
        if (now_ms < until_ms) {
            deadline_ms = oribi_earlier(deadline_ms, until_ms);
        } else if (oribi__stream_pending(stream) > 0) {
            oribi__stream_reset(stream, ORIBI_H2_CANCEL);
            oribi__client_dirty(client);
        }
    }
    return deadline_ms;
}

int64_t oribi__streams_deadline(struct oribi__client *client, int64_t now_ms)
{
    int64_t timeout_ms = client->frontend->config->options->body_timeout_ms;
    int64_t deadline_ms = client->frontend->draining ? end_untaken(client, now_ms) : INT64_MAX;
    for (struct oribi__stream *stream = timeout_ms ? client->streams : NULL; stream; stream = stream->next) {
        if (!stream->data_ms || !stream->call)
            continue;
        bool late = now_ms >= stream->data_ms + timeout_ms;
        if (late || too_slow(stream, now_ms))
            stream_refuse(stream, 408, late ? ORIBI_REFUSAL_BODY_TIMEOUT : ORIBI_REFUSAL_BODY_RATE,
                          late ? "body without progress" : "body slower than the minimum rate");
        else if (stream->data_ms + timeout_ms < deadline_ms)
            deadline_ms = stream->data_ms + timeout_ms;
    }
    return deadline_ms;
}

/* --- upstream requests --- */

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

void oribi__stream_reset(struct oribi__stream *stream, uint32_t code)
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
    uint32_t count = oribi__answer_fields(frontend, fields, ORIBI_RESPONSE_FIELDS_MAX - 5);
    fields[count++] = field_of("content-type", type.p, type.n);
    fields[count++] = field_of("content-length", length, (size_t)digits);
    fields[count++] = field_of("date", oribi_reactor_date(&frontend->reactor), 29);
    if (status == 503)
        fields[count++] = field_of("retry-after", "1", 1);
    if (status == 426)
        fields[count++] = field_of("sec-websocket-version", "13", 2);
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

static void stream_refuse(struct oribi__stream *stream, int status, enum oribi_refusal refusal, const char *reason)
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
    stream_refuse(stream, code == ORIBI_EFULL ? 507 : 503, refusal, reason);
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
    if (__builtin_expect(call->accepted != NULL, 0)) {
        oribi__stream_take_record(stream, body, last);
        return;
    }
    int code = stream_keep(stream, body);
    if (code < 0) {
        oribi__own_say_cut(call, code);
        oribi__stream_reset(stream, ORIBI_H2_INTERNAL_ERROR);
        return;
    }
    if (last) {
        stream->whole = true;
        stream->over_ms = call->stream ? call->frontend->reactor.now_ms : 0;
        add_trailers(stream, &call->tail);
        oribi__stream_end_call(stream);
        oribi__stream_ends(stream);
    } else if (!call->blocked && (!stream->has_length || stream->unstored) &&
               oribi__stream_pending(stream) > oribi__upstream_high(call)) {
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
    if (__builtin_expect(call->offers, 0) && oribi__websocket_accepts(answer)) {
        oribi__stream_accept(stream, answer, body, last);
        return;
    }
    if (stream->is_socket && answer->status < 300) /* any 2xx would open the socket (RFC 8441 5) */
        answer->status = STATUS_REFUSED;
    uint32_t count = fields_of(frontend, answer);
    if (stream->client->peer.tls && frontend->answers->extra_tls.name)
        fields[count++] = (struct oribi_field){.name = frontend->answers->extra_tls.name,
                                               .value = frontend->answers->extra_tls.value,
                                               .name_len = (uint16_t)frontend->answers->extra_tls.name_len,
                                               .value_len = frontend->answers->extra_tls.value_len};
    bool bodiless = last && body.n == 0 && !call->tail.len;
    int code = oribi_h2_answer(stream->h2, answer->status, fields, count, bodiless);
    if (code == ORIBI_ECLOSED || code == ORIBI_ENOMEM) {
        oribi__stream_reset(stream, ORIBI_H2_INTERNAL_ERROR);
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
    stream->has_length = answer->content_length >= 0 && !call->of_local && !call->from_file;
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
        oribi__stream_reset(stream, ORIBI_H2_INTERNAL_ERROR);
    else
        answer_own(stream, status);
}

static void reads_file(struct oribi__upstream_request *call)
{
    struct oribi__stream *stream = stream_of(call);
    stream->has_length = false;
    stream->in_file = stream->file.len > 0;
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

static const struct oribi__upstream_ops ops = {.interim = interim,
                                               .begin = begin,
                                               .more = more,
                                               .reads_file = reads_file,
                                               .fail = fail,
                                               .pending = pending,
                                               .waits = waits,
                                               .tunnel = oribi__stream_tunnel};

/* --- requests --- */

static void on_request(void *self, struct oribi_h2_stream *h2, const struct oribi_h2_request *request)
{
    struct oribi__client *client = self;
    struct oribi__stream *stream = stream_create(client, h2);
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
    stream->began_ms = client->frontend->reactor.now_ms;
    if (call && request->socket) {
        oribi__stream_offer(stream, request);
        return;
    }
    if (!call || oribi__upstream_about(call, &client->peer, request->parsed, 20, true) < 0 ||
        oribi_buf_try_append(&call->head, request->head.p, request->framing) < 0) {
        stream_refuse(stream, 503, ORIBI_REFUSAL_MEMORY, "out of memory");
        return;
    }
    call->is_head = request->parsed->is_head;
    call->wants_events = request->parsed->wants_events;
    stream->of_local = oribi__frontend_local_claims(client->frontend, call, request->parsed);
    call->safe = oribi_canonical_is_safe(request->parsed->method);
    stream->data_ms = request->ended ? 0 : stream->began_ms;
    if (request->parsed->expect_continue)
        (void)oribi_h2_interim(h2, 100, NULL, 0); /* a client that waits in vain sends its body some time */
}

static void log_refused(struct oribi__client *client, int status, enum oribi_refusal refusal, const char *reason,
                        const struct oribi_fault *fault)
{
    char line[LINE_CAP];
    size_t n = oribi_h2_request_line(client->h2, line, sizeof(line));
    oribi__answer_log_refused_h2(client->frontend, &client->peer, oribi_h2_refused_head(client->h2),
                                 oribi_slice(line, n), status, refusal, reason, fault);
}

static void on_refused(void *self, struct oribi_h2_stream *h2, int error, const struct oribi_fault *fault, bool is_head)
{
    struct oribi__client *client = self;
    struct oribi__frontend *frontend = client->frontend;
    struct oribi__stream *stream = h2->user ? h2->user : stream_create(client, h2);
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
        oribi__stream_reset(stream, ORIBI_H2_NO_ERROR);
        return;
    }
    stream->is_head = is_head;
    stream_refuse(stream, status, refusal, NULL);
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
    if (stream && stream->bytes) {
        oribi__stream_heard(stream, p, n);
        return;
    }
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
    if (stream && stream->bytes)
        oribi__stream_heard_end(stream);
    if (!stream || !stream->call || stream->call->state != ORIBI__CALL_NEW || stream->is_socket)
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
    .pull = stream_pull,
};
