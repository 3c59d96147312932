/* Connection, request bodies: behind their head in its buffer, in memory, or in a file without a name; sized or
 * chunked. Reading order: the two begins, oribi__conn_body_room, oribi__conn_body_input, append_body. */
#include "oribi/event/conn.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"
#include "oribi/event/reactor.h"
#include "oribi/http/fields.h"

#include "event/conn_private.h"

#include <stdio.h>

enum {
    LARGE_BATCH_BYTES = 4 * ORIBI_BODY_BATCH_BYTES,
    DIRECT_FROM_BYTES = 16 * 1024,
    DIRECT_FROM_PART = 64, /* of a body's length */
    STORING_CAP = 320,
};

/* How much of the body may be in memory, its own limit and the worker's budget considered. */
static uint32_t body_memory_max(const struct oribi_reactor *r, const struct oribi_conn_request *exchange)
{
    return (uint32_t)oribi_budget_large(&r->budget, exchange->charge.memory, exchange->body_memory_max,
                                        ORIBI_SMALL_BODY_BYTES);
}

/* How many bytes of a body in a file are collected for one write. Bodies in memory need the budget more: its second
 * half is theirs alone. */
static uint32_t batch_max(const struct oribi_reactor *r)
{
    int64_t max = r->budget.memory_max;
    if (max == 0 || r->budget.memory_used < max / 4)
        return LARGE_BATCH_BYTES;
    return r->budget.memory_used < max / 2 ? ORIBI_BODY_BATCH_BYTES : 0;
}

/* Charges the capacity taken from the heap, not the bytes that have arrived; with the body, the bytes that came behind
 * a chunked one. */
void oribi__conn_charge_body(struct oribi_reactor *r, struct oribi_conn_request *exchange)
{
    size_t memory = oribi_body_memory(&exchange->body) + exchange->rest.cap + exchange->chunked.trailers.cap;
    int64_t file = oribi_body_in_file(&exchange->body) ? exchange->body.len : 0;
    if (exchange->parts) {
        memory += oribi_parts_memory(exchange->parts);
        file += exchange->parts->file_bytes;
    }
    oribi_budget_set(&r->budget, &exchange->charge, (int64_t)memory, file);
}

/* Reserves the announced length only after DIRECT_FROM_BYTES have arrived, and one DIRECT_FROM_PARTth of it; before
 * that the bytes are copied. Clients that announce much and send little would tie up memory. */
static char *body_room(struct oribi_reactor *r, struct oribi_conn_request *exchange, size_t room)
{
    int64_t len = (int64_t)exchange->body.memory.len;
    int64_t announced = exchange->head.content_length;
    if (exchange->parts || oribi_body_in_file(&exchange->body) || len < DIRECT_FROM_BYTES ||
        len < announced / DIRECT_FROM_PART)
        return NULL;
    uint32_t memory_max = body_memory_max(r, exchange);
    char *p = oribi_body_try_room(&exchange->body, (size_t)(announced - len), memory_max);
    if (!p)
        p = oribi_body_try_room(&exchange->body, room, memory_max);
    oribi__conn_charge_body(r, exchange); /* also when the next read brings no byte */
    return p;
}

/* Room for the next batch of a body on its way to a file. */
static char *batch_room(struct oribi_reactor *r, struct oribi_conn_request *exchange, size_t *room)
{
    char *p = oribi_body_try_batch(&exchange->body, room, DIRECT_FROM_BYTES, batch_max(r));
    oribi__conn_charge_body(r, exchange);
    return p;
}

char *oribi__conn_body_room(struct oribi_reactor *r, struct oribi_conn_request *exchange, size_t *room)
{
    *room = ORIBI_SCRATCH_BYTES;
    if (exchange->head.chunked)
        return r->scratch;
    int64_t left = exchange->head.content_length - oribi_conn_request_body_len(exchange);
    if (left < ORIBI_SCRATCH_BYTES)
        *room = (size_t)left;
    bool batches = exchange->body.temp_file && !exchange->parts;
    if (batches && exchange->body.temp_file->bytes.len >= DIRECT_FROM_BYTES)
        *room = left < LARGE_BATCH_BYTES ? (size_t)left : LARGE_BATCH_BYTES;
    char *direct = batches ? batch_room(r, exchange, room) : body_room(r, exchange, *room);
    if (!direct && *room > ORIBI_SCRATCH_BYTES)
        *room = ORIBI_SCRATCH_BYTES; /* no memory for it */
    return direct ? direct : r->scratch;
}

static bool too_slow(const struct oribi_reactor *r, const struct oribi_conn_request *exchange)
{
    return oribi_body_too_slow(oribi_conn_request_body_len(exchange), r->now_ms - exchange->body_started_ms,
                               r->config.body_timeout_ms, r->config.body_rate_min);
}

static void body_progress(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (too_slow(r, c->exchange))
        oribi__conn_refuse(r, c, ORIBI_REFUSAL_BODY_RATE, "body slower than the minimum rate");
    else if (!oribi__conn_store(r, c))
        oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_BODY, r->now_ms);
}

/* The application has not seen the request: 507 when the disk has no room, else 503. */
static void storing_failed(struct oribi_reactor *r, struct oribi_conn *c, int error)
{
    char reason[STORING_CAP];
    if (error == ORIBI_ENOMEM) {
        oribi_conn_refuse_busy(r, c, ORIBI__FULL_RETRY_AFTER_S, ORIBI_REFUSAL_MEMORY, "no memory for the request body");
        return;
    }
    (void)snprintf(reason, sizeof(reason), "request body cannot be stored in %.100s: %s", oribi_os_temp_dir(),
                   oribi_os_error_text());
    oribi__conn_refuse(r, c, oribi_refusal_of(error, ORIBI_REFUSAL_OTHER), reason);
}

/* The body that was to be stored, or that was stored, is no form, or not one that is allowed. */
static void form_failed(struct oribi_reactor *r, struct oribi_conn *c, int error, const char *reason)
{
    char text[STORING_CAP];
    (void)snprintf(text, sizeof(text), "multipart: %s", reason); /* fits: the reasons are ours */
    oribi__conn_refuse(r, c, error == ORIBI_EBODY ? ORIBI_REFUSAL_MULTIPART_MAX : ORIBI_REFUSAL_MULTIPART, text);
}

static void appending_failed(struct oribi_reactor *r, struct oribi_conn *c, int error)
{
    const struct oribi_parts *parts = c->exchange->parts;
    if (parts && (error == ORIBI_EBAD || error == ORIBI_EBODY))
        form_failed(r, c, error, parts->reason);
    else
        storing_failed(r, c, error);
}

/* Of a form that is to be taken apart: a long one goes to files although there is memory, where the application wants
 * its parts. */
static uint32_t frame_memory_max(const struct oribi_reactor *r)
{
    uint32_t max = r->config.limits.body_memory_max;
    return max < ORIBI_SMALL_BODY_BYTES ? max : ORIBI_SMALL_BODY_BYTES;
}

/* Whose part goes to a file. */
struct origin {
    struct oribi_reactor *reactor;
    struct oribi_conn *conn;
};

static struct oribi_temp_file *temp_file_of_part(void *self)
{
    const struct origin *origin = self;
    return oribi__conn_temp_file(origin->reactor, origin->conn);
}

static int append_parts(struct oribi_reactor *r, struct oribi_conn_request *exchange, const char *p, size_t n)
{
    int64_t own = exchange->charge.memory;
    struct origin origin = {r, exchange->conn};
    struct oribi_parts_room room = {
        .frame_memory_max = (uint32_t)oribi_budget_memory(&r->budget, own, frame_memory_max(r)),
        .part_memory_max = (uint32_t)oribi_budget_memory(&r->budget, own, ORIBI_PARTS_FILE_BYTES),
        .batch_max = batch_max(r),
        .temp_file = temp_file_of_part,
        .self = &origin,
    };
    return oribi_parts_append(exchange->parts, &exchange->body, &room, p, n);
}

/* The type of a form that is to be taken apart; p is NULL for other bodies. */
static struct oribi_slice form_type(const struct oribi_reactor *r, const struct oribi_head *head)
{
    for (uint32_t i = 0; r->config.multipart_stream && i < head->field_count; i++) {
        struct oribi_slice value = oribi_slice(head->fields[i].value, head->fields[i].value_len);
        if (head->fields[i].id == ORIBI_FIELD_CONTENT_TYPE)
            return oribi_parts_wanted(value) ? value : oribi_slice(NULL, 0);
    }
    return oribi_slice(NULL, 0);
}

/* A body is about to go to a file. When it is a form to be taken apart: what has come so far is. False: it was
 * refused. */
static bool begin_parts(struct oribi_reactor *r, struct oribi_conn *c)
{
    struct oribi_conn_request *exchange = c->exchange;
    struct oribi_slice type = form_type(r, &exchange->head);
    const char *reason = NULL;
    if (!type.p)
        return true;
    int error = oribi_parts_create(type, &exchange->parts, &reason);
    if (error < 0) {
        if (reason)
            form_failed(r, c, error, reason);
        else
            storing_failed(r, c, error);
        return false;
    }
    struct oribi_body so_far = exchange->body;
    oribi_body_init(&exchange->body);
    error = append_parts(r, exchange, so_far.memory.p, so_far.memory.len);
    oribi_body_deinit(&so_far);
    if (error < 0)
        appending_failed(r, c, error);
    return error == 0;
}

/* From here on the body goes to a file. False: it was refused. */
static bool divert(struct oribi_reactor *r, struct oribi_conn *c)
{
    struct oribi_temp_file *temp_file;
    if (!begin_parts(r, c))
        return false;
    if (c->exchange->parts)
        return true;
    if (!(temp_file = oribi__conn_temp_file(r, c))) {
        storing_failed(r, c, ORIBI_ENOMEM);
        return false;
    }
    oribi_body_divert(&c->exchange->body, temp_file);
    return true;
}

static bool may_store(struct oribi_reactor *r, struct oribi_conn *c, int64_t n)
{
    if (oribi_budget_file(&r->budget, n))
        return true;
    oribi_conn_refuse_busy(r, c, ORIBI__FULL_RETRY_AFTER_S, ORIBI_REFUSAL_BUFFERS_FILE, "buffers_file_max is used up");
    return false;
}

static bool append_body(struct oribi_reactor *r, struct oribi_conn *c, const char *p, size_t n)
{
    struct oribi_body *body = &c->exchange->body;
    if (n == 0)
        return true;
    uint32_t memory_max = body_memory_max(r, c->exchange);
    bool in_file = oribi_body_in_file(body) || c->exchange->parts;
    bool to_file = in_file || body->memory.len + n > memory_max;
    if (to_file && !may_store(r, c, (int64_t)(in_file ? n : body->memory.len + n)))
        return false;
    if (to_file && !in_file && !divert(r, c))
        return false;
    int error = c->exchange->parts ? append_parts(r, c->exchange, p, n)
                                   : oribi_body_append(body, p, n, memory_max, batch_max(r));
    oribi__conn_charge_body(r, c->exchange);
    if (error < 0)
        appending_failed(r, c, error);
    return error == 0;
}

static void body_done(struct oribi_reactor *r, struct oribi_conn *c)
{
    struct oribi_conn_request *exchange = c->exchange;
    int error = 0;
    if (!exchange->parts)
        error = oribi_body_finish(&exchange->body);
    else if (!exchange->body_whole)
        error = oribi_parts_finish(exchange->parts, &exchange->body);
    if (error == 0 && exchange->parts)
        error = oribi_parts_stored(exchange->parts, &exchange->body);
    exchange->body_whole = true;
    if (error < 0) {
        appending_failed(r, c, error);
        return;
    }
    bool settled =
        exchange->parts ? oribi_parts_settled(exchange->parts, &exchange->body) : oribi_body_settled(&exchange->body);
    oribi__conn_charge_body(r, exchange);
    if (settled)
        oribi__conn_complete(r, c);
    else
        (void)oribi__conn_store(r, c);
}

void oribi__conn_body_stored(struct oribi_reactor *r, struct oribi_conn *c)
{
    struct oribi_conn_request *exchange = c->exchange;
    struct oribi_temp_file *temp_file = exchange->body.temp_file;
    int error =
        exchange->parts ? oribi_parts_stored(exchange->parts, &exchange->body) : oribi_body_stored(&exchange->body);
    if (temp_file && !temp_file->busy && batch_max(r) == 0 && temp_file->bytes.len == 0)
        oribi_buf_deinit(&temp_file->bytes);
    oribi__conn_charge_body(r, exchange);
    if (error < 0)
        appending_failed(r, c, error);
    else if (oribi__conn_store(r, c)) /* others of its parts are under way */
        return;
    else if (exchange->body_whole)
        body_done(r, c);
    else
        oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_BODY, r->now_ms);
}

/* Bytes of a file's batch have come. */
static bool batch_input(struct oribi_reactor *r, struct oribi_conn *c, size_t n)
{
    if (!may_store(r, c, (int64_t)n))
        return false;
    int error = oribi_body_batched(&c->exchange->body, n, batch_max(r));
    oribi__conn_charge_body(r, c->exchange);
    if (error < 0)
        appending_failed(r, c, error);
    return error == 0;
}

static void begin_body(struct oribi_reactor *r, struct oribi_conn *c)
{
    c->state = ORIBI_CONN_BODY;
    c->exchange->body_memory_max =
        form_type(r, &c->exchange->head).p ? frame_memory_max(r) : r->config.limits.body_memory_max;
    c->exchange->body_started_ms = r->now_ms;
    oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_BODY, r->now_ms);
    if (c->exchange->head.expect_continue && !c->moving_in) {
        /* Bodies are read before the call, so the interim answer is sent at once: RFC 9110 10.1.1. */
        struct iovec vec = {(void *)"HTTP/1.1 100 Continue\r\n\r\n", 25};
        (void)oribi_conn_send(r, c, &vec, 1, false); /* a broken connection shows at the next read */
        if (c->out)
            oribi_loop_interest(r->loop, &c->watch, ORIBI_READ | ORIBI_WRITE);
    }
}

void oribi__conn_body_begin(struct oribi_reactor *r, struct oribi_conn *c, size_t rest)
{
    struct oribi_conn_request *exchange = c->exchange;
    c->len = exchange->used;
    begin_body(r, c);
    int64_t announced = exchange->head.content_length;
    if (announced > (int64_t)exchange->body_memory_max ||
        (announced > ORIBI_SMALL_BODY_BYTES && announced > (int64_t)body_memory_max(r, exchange)))
        exchange->body_memory_max = 0; /* in a file from its first byte on */
    if (append_body(r, c, c->buf + exchange->used, rest))
        (void)oribi__conn_store(r, c);
}

static void chunked_done(struct oribi_reactor *r, struct oribi_conn *c)
{
    const struct oribi_buf *text = &c->exchange->chunked.trailers;
    if (text->len > 0 && oribi_trailers_read(oribi_slice(text->p, text->len), &c->exchange->trailers) < 0)
        storing_failed(r, c, ORIBI_ENOMEM);
    else
        body_done(r, c);
}

static void chunked_input(struct oribi_reactor *r, struct oribi_conn *c, char *p, size_t n)
{
    struct oribi_conn_request *exchange = c->exchange;
    size_t len = n;
    size_t used = 0;
    int result = oribi_chunked_decode(&exchange->chunked, &r->config.limits, p, &len, &used);
    if (result < 0) {
        oribi__conn_refuse(r, c, oribi_refusal_of(result, ORIBI_REFUSAL_CHUNKED), exchange->chunked.reason);
        return;
    }
    if (!append_body(r, c, p, len))
        return;
    if (!exchange->chunked.done) {
        body_progress(r, c);
        return;
    }
    if (used < n && oribi_buf_try_append(&exchange->rest, p + used, n - used) < 0) {
        storing_failed(r, c, ORIBI_ENOMEM);
        return;
    }
    chunked_done(r, c);
}

/* The bytes behind a chunked head are decoded where they stand: a small body never moves. */
void oribi__conn_chunked_begin(struct oribi_reactor *r, struct oribi_conn *c, size_t rest)
{
    struct oribi_conn_request *exchange = c->exchange;
    char *p = c->buf + exchange->used;
    size_t len = rest;
    size_t used = 0;
    int result = oribi_chunked_decode(&exchange->chunked, &r->config.limits, p, &len, &used);
    if (result < 0) {
        oribi__conn_refuse(r, c, oribi_refusal_of(result, ORIBI_REFUSAL_CHUNKED), exchange->chunked.reason);
        return;
    }
    if (exchange->chunked.done) {
        exchange->in_place = oribi_slice(p, len);
        exchange->used += (uint32_t)used;
        chunked_done(r, c);
        return;
    }
    c->len = exchange->used;
    begin_body(r, c);
    if (append_body(r, c, p, len))
        (void)oribi__conn_store(r, c);
}

void oribi__conn_body_input(struct oribi_reactor *r, struct oribi_conn *c, char *p, size_t n)
{
    struct oribi_conn_request *exchange = c->exchange;
    if (exchange->head.chunked) {
        chunked_input(r, c, p, n);
        return;
    }
    if (p != r->scratch && exchange->body.temp_file) {
        if (!batch_input(r, c, n))
            return;
    } else if (p != r->scratch)
        oribi_body_grown(&exchange->body, n);
    else if (!append_body(r, c, p, n))
        return;
    if (oribi_conn_request_body_len(exchange) == exchange->head.content_length)
        body_done(r, c);
    else
        body_progress(r, c);
}

/* A spooled body arrives whole beside the head that announces it: with a length, or with an empty chunked body. */
void oribi__conn_body_inject(struct oribi_reactor *r, struct oribi_conn *c, int body_fd, int64_t body_len)
{
    struct oribi_conn_request *exchange = c->exchange;
    bool chunked = c->state == ORIBI_CONN_QUEUED && exchange->head.chunked && exchange->in_place.n == 0;
    bool sized = c->state == ORIBI_CONN_BODY && !exchange->head.chunked && exchange->head.content_length == body_len;
    if (!(chunked || sized) || exchange->body.len > 0) {
        oribi_os_close(body_fd);
        oribi__conn_close(r, c);
        return;
    }
    exchange->body.fd = body_fd;
    exchange->body.len = body_len;
    oribi__conn_charge_body(r, exchange);
    if (sized)
        oribi__conn_complete(r, c);
}
