/* Answers of the application, compressed on their way out. Reading order: plan, oribi__compress_reply,
 * oribi__compress_begin and what follows it; then coders, options. */
#include "worker/compress.h"
#include "worker/burst.h"
#include "worker/call.h"
#include "worker/exchange.h"
#include "worker/placement/ownership.h"
#include "worker/reply.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/http/compress.h"

#include <string.h>

enum {
    FILE_PIECE_BYTES = 16 * 1024,
    RANDOM_BYTES = 256, /* drawn at a time: one system call for so many private answers */
};

struct oribi__coder {
    struct oribi__coder *next; /* while it is kept */
    struct oribi_compressor *compressor;
    struct oribi_buf out;
    struct oribi_buf pieces; /* of a stream: gathered, see burst.h; with the reactor */
    int64_t left;            /* of the Content-Length that the application has given a stream; -1: none */
};

struct oribi__compression {
    struct oribi_compress_rules rules;
    uint32_t level;
    struct oribi__coder *kept[ORIBI_CODING_COUNT]; /* of the reactor's owner, as all that follows */
    uint32_t random_left;
    uint8_t random[RANDOM_BYTES];
};

/* ---- the head ---- */

/* An answer as it is to be sent: its headers point to the application's, or into the plan. */
struct plan {
    struct oribi_compress_question question;
    struct oribi_compress_decision decision;
    int status;
    uint32_t header_count;
    const struct oribi_header *headers;
    struct oribi_compress_texts texts;
    struct oribi_header room[ORIBI__COMPRESS_HEADERS_MAX + ORIBI_COMPRESS_HEADERS_ADDED_MAX];
};

static void write_headers(struct plan *plan)
{
    plan->status = plan->decision.not_modified ? 304 : plan->question.status;
    plan->headers = plan->question.headers;
    plan->header_count = plan->question.header_count;
    if (!plan->decision.changes)
        return;
    plan->header_count = oribi_compress_headers(&plan->question, &plan->decision, &plan->texts, plan->room);
    plan->headers = plan->room;
}

static void make_plan(struct plan *plan, const struct oribi__exchange *exchange, int status,
                      const struct oribi_header *headers, uint32_t header_count, int64_t body_len)
{
    plan->question = (struct oribi_compress_question){.rules = &exchange->worker->compression->rules,
                                                      .head = &exchange->base.head,
                                                      .status = status,
                                                      .headers = headers,
                                                      .header_count = header_count,
                                                      .body_len = body_len,
                                                      .none_match = exchange->none_match};
    if (header_count <= ORIBI__COMPRESS_HEADERS_MAX)
        oribi_compress_decide(&plan->question, &plan->decision);
    else
        plan->decision = (struct oribi_compress_decision){.coding = ORIBI_CODING_IDENTITY, .content_length = -1};
    write_headers(plan);
}

static bool codes(const struct plan *plan)
{
    return plan->decision.coding != ORIBI_CODING_IDENTITY;
}

/* It cannot be compressed after all. */
static void fall_back(struct plan *plan, struct oribi__exchange *exchange, int error)
{
    oribi__log_app(exchange, "answer not compressed: %s",
                   error == ORIBI_ENOMEM ? "out of memory" : "the library or the file fails; it goes as it is");
    plan->decision.coding = ORIBI_CODING_IDENTITY;
    plan->decision.weakens = false;
    plan->decision.changes = plan->decision.varies;
    write_headers(plan);
}

/* ---- coders ---- */

/* 0 … ORIBI_COMPRESS_PADDING_BYTES_MAX; the most where the system gives no random bytes. */
static size_t draw_padding(struct oribi__compression *compression)
{
    if (compression->random_left == 0 && oribi_os_random(compression->random, RANDOM_BYTES) == 0)
        compression->random_left = RANDOM_BYTES;
    return compression->random_left > 0 ? compression->random[--compression->random_left]
                                        : ORIBI_COMPRESS_PADDING_BYTES_MAX;
}

static struct oribi__coder *make_coder(enum oribi_coding coding, uint32_t level)
{
    struct oribi__coder *coder = oribi_mem_try_alloc(1, sizeof(*coder));
    if (coder && oribi_compressor_create(coding, level, &coder->compressor) < 0) {
        oribi_mem_free(coder);
        return NULL;
    }
    return coder;
}

static void destroy_coder(struct oribi__coder *coder)
{
    oribi_compressor_destroy(coder->compressor);
    oribi_buf_deinit(&coder->out);
    oribi_buf_deinit(&coder->pieces);
    oribi_mem_free(coder);
}

/* Gives the exchange a coder that begins; with the reactor. */
static int take_coder(struct oribi__exchange *exchange, const struct plan *plan)
{
    struct oribi__compression *compression = exchange->worker->compression;
    enum oribi_coding coding = plan->decision.coding;
    oribi__compress_give_back(exchange); /* of an answer that was begun and not sent */
    struct oribi__coder *coder = compression->kept[coding];
    if (coder)
        compression->kept[coding] = coder->next;
    else if (!(coder = make_coder(coding, compression->level)))
        return ORIBI_ENOMEM;
    exchange->coder = coder;
    coder->left = -1;
    coder->out.len = coder->pieces.len = 0;
    size_t padding = plan->decision.is_private ? draw_padding(compression) : 0;
    int result = oribi_compressor_begin(coder->compressor, padding);
    if (result < 0)
        oribi__compress_give_back(exchange);
    return result;
}

void oribi__compress_give_back(struct oribi__exchange *exchange)
{
    struct oribi__coder *coder = exchange->coder;
    if (!coder)
        return;
    struct oribi__coder **kept = &exchange->worker->compression->kept[oribi_compressor_coding(coder->compressor)];
    coder->next = *kept;
    *kept = coder;
    exchange->coder = NULL;
}

/* ---- bodies ---- */

/* The first `left` bytes of a vector, in pieces that a compressor takes. */
struct cursor {
    const struct iovec *vec;
    size_t at; /* in vec[0] */
    int64_t left;
};

static struct iovec next_piece(struct cursor *cursor)
{
    while (cursor->at == cursor->vec->iov_len) {
        cursor->vec++;
        cursor->at = 0;
    }
    struct iovec piece = {(char *)cursor->vec->iov_base + cursor->at, cursor->vec->iov_len - cursor->at};
    if (piece.iov_len > ORIBI_COMPRESS_PIECE_BYTES)
        piece.iov_len = ORIBI_COMPRESS_PIECE_BYTES;
    if ((int64_t)piece.iov_len > cursor->left)
        piece.iov_len = (size_t)cursor->left;
    cursor->at += piece.iov_len;
    cursor->left -= (int64_t)piece.iov_len;
    return piece;
}

static int compress_whole(struct oribi__coder *coder, const struct iovec *body, int64_t total)
{
    struct cursor cursor = {body, 0, total};
    int result = 0;
    while (cursor.left > 0 && result == 0) {
        struct iovec piece = next_piece(&cursor);
        result = oribi_compressor_write(coder->compressor, piece.iov_base, piece.iov_len,
                                        cursor.left > 0 ? ORIBI_COMPRESS_GO_ON : ORIBI_COMPRESS_END, &coder->out);
    }
    return result;
}

static int compress_file(struct oribi__coder *coder, int fd, int64_t offset, int64_t len)
{
    char piece[FILE_PIECE_BYTES];
    int result = 0;
    while (len > 0 && result == 0) {
        ssize_t n = oribi_os_read_at(fd, piece, len < FILE_PIECE_BYTES ? (size_t)len : FILE_PIECE_BYTES, offset);
        if (n <= 0)
            return ORIBI_ESYS; /* 0: it has become shorter */
        offset += n;
        len -= n;
        result = oribi_compressor_write(coder->compressor, piece, (size_t)n,
                                        len > 0 ? ORIBI_COMPRESS_GO_ON : ORIBI_COMPRESS_END, &coder->out);
    }
    return result;
}

static int take_coder_alone(struct oribi__exchange *exchange, const struct plan *plan)
{
    oribi__enter(exchange->worker);
    int result = take_coder(exchange, plan);
    oribi__leave(exchange->worker);
    return result;
}

/* ---- whole answers ---- */

/* The compressed body is in the coder. */
static int reply_coded(struct oribi__exchange *exchange, const struct plan *plan)
{
    const struct oribi_buf *out = &exchange->coder->out;
    struct iovec body = {out->p, out->len};
    return oribi__reply_whole(exchange, plan->status, plan->headers, plan->header_count, &body, 1, (int64_t)out->len);
}

/* A long answer: its compressed form need not be in memory as a whole. */
static int reply_as_stream(struct oribi__exchange *exchange, const struct plan *plan, const struct iovec *body,
                           size_t body_count, int64_t total)
{
    const struct oribi_compress_question *question = &plan->question;
    struct oribi_req *req = &exchange->req;
    int result = oribi_reply_begin(req, question->status, question->headers, question->header_count, total);
    if (result < 0)
        return result;
    result = oribi_reply_write(req, body, body_count);
    if (result >= 0)
        return oribi_reply_end(req);
    oribi_reply_abort(req);
    return ORIBI_ECLOSED;
}

int oribi__compress_reply(struct oribi__exchange *exchange, int status, const struct oribi_header *headers,
                          uint32_t header_count, const struct iovec *body, size_t body_count)
{
    struct plan plan;
    int64_t total = oribi_vec_len(body, body_count);
    make_plan(&plan, exchange, status, headers, header_count, total);
    if (codes(&plan)) {
        if (exchange->base.head.is_head)
            return oribi__reply_whole(exchange, plan.status, plan.headers, plan.header_count, NULL, 0, -1);
        if (total > ORIBI__COMPRESS_WHOLE_BYTES_MAX)
            return reply_as_stream(exchange, &plan, body, body_count, total);
        int result = take_coder_alone(exchange, &plan);
        if (result == 0)
            result = compress_whole(exchange->coder, body, total);
        if (result == 0)
            return reply_coded(exchange, &plan);
        fall_back(&plan, exchange, result);
    }
    return oribi__reply_whole(exchange, plan.status, plan.headers, plan.header_count, body, body_count, total);
}

int oribi__compress_reply_file(struct oribi__exchange *exchange, int status, const struct oribi_header *headers,
                               uint32_t header_count, int fd, int64_t offset, int64_t len,
                               struct oribi__compress_plain plain)
{
    struct plan plan;
    make_plan(&plan, exchange, status, headers, header_count, len);
    if (codes(&plan)) {
        if (exchange->base.head.is_head)
            return oribi__reply_whole(exchange, plan.status, plan.headers, plan.header_count, NULL, 0, -1);
        int result = take_coder_alone(exchange, &plan);
        if (result == 0)
            result = compress_file(exchange->coder, fd, offset, len);
        if (result == 0)
            return reply_coded(exchange, &plan);
        fall_back(&plan, exchange, result);
    }
    return plain.send(plain.self, plan.status, plan.headers, plan.header_count);
}

/* ---- streams ---- */

int oribi__compress_begin(struct oribi__exchange *exchange, int status, const struct oribi_header *headers,
                          uint32_t header_count, int64_t body_len)
{
    struct plan plan;
    if (body_len == ORIBI_BODY_DETACHED)
        return oribi__stream_begin(exchange, status, headers, header_count, body_len);
    make_plan(&plan, exchange, status, headers, header_count, body_len);
    if (codes(&plan) && !exchange->base.head.is_head) {
        int result = take_coder(exchange, &plan);
        if (result < 0)
            fall_back(&plan, exchange, result);
        else
            exchange->coder->left = plan.decision.content_length >= 0 ? plan.decision.content_length : body_len;
    }
    if (codes(&plan))
        body_len = -1;
    return oribi__stream_begin(exchange, plan.status, plan.headers, plan.header_count, body_len);
}

/* Passes the coder's output on to the connection. */
static int pass_on(struct oribi__exchange *exchange)
{
    struct iovec made = {exchange->coder->out.p, exchange->coder->out.len};
    oribi__enter(exchange->worker);
    int result = oribi__stream_write(exchange, &made, 1, (int64_t)made.iov_len);
    oribi__clock_anew_at(exchange->thread, exchange->now_us);
    oribi__leave(exchange->worker);
    exchange->coder->out.len = 0;
    return result;
}

static void log_failed(struct oribi__exchange *exchange, int error)
{
    oribi__log_app(exchange, "cannot compress the stream: %s; connection cut",
                   error == ORIBI_ENOMEM ? "out of memory" : "the library fails");
}

static int fail(struct oribi__exchange *exchange, int error)
{
    log_failed(exchange, error);
    exchange->base.conn->broken = true; /* what has been sent cannot be completed */
    return ORIBI_ECLOSED;
}

/* Nothing of the burst is left to be sent by others. */
static struct iovec take_burst(struct oribi__exchange *exchange)
{
    struct oribi_buf *pieces = &exchange->coder->pieces;
    struct iovec burst = {pieces->p, pieces->len};
    pieces->len = 0; /* the bytes stay where they are */
    atomic_store_explicit(&exchange->thread->burst_us, 0, memory_order_relaxed);
    return burst;
}

struct oribi_buf *oribi__compress_pieces(struct oribi__exchange *exchange)
{
    return &exchange->coder->pieces;
}

int oribi__compress_burst(struct oribi__exchange *exchange)
{
    struct oribi__coder *coder = exchange->coder;
    struct iovec burst = take_burst(exchange);
    if (burst.iov_len == 0 || exchange->base.conn->broken)
        return 0;
    int result =
        oribi_compressor_write(coder->compressor, burst.iov_base, burst.iov_len, ORIBI_COMPRESS_FLUSH, &coder->out);
    if (result < 0)
        return fail(exchange, result);
    struct iovec made = {coder->out.p, coder->out.len};
    coder->out.len = 0;
    return oribi__stream_write(exchange, &made, 1, (int64_t)made.iov_len);
}

/* True: the piece waits for others of its burst, and `result` is what the application is told. False: `burst` is what
 * was gathered before it. Then the compressor is the caller's: nothing lies there that the helper could send. */
static bool gather(struct oribi__exchange *exchange, struct cursor *cursor, struct iovec *burst, int *result)
{
    struct oribi__coder *coder = exchange->coder;
    bool begun = exchange->phase == ORIBI_PHASE_BEGUN;
    if (exchange->base.conn->broken) {
        *result = ORIBI_ECLOSED;
        return true;
    }
    if (!oribi__burst_takes(exchange, (size_t)cursor->left) || begun || coder->left == 0) {
        *burst = take_burst(exchange);
        return false;
    }
    while (cursor->left > 0) {
        struct iovec piece = next_piece(cursor);
        memcpy(coder->pieces.p + coder->pieces.len, piece.iov_base, piece.iov_len);
        coder->pieces.len += piece.iov_len;
    }
    *result = oribi__stream_outcome(exchange, oribi__burst_gathered(exchange));
    oribi__clock_anew_at(exchange->thread, exchange->now_us);
    return true;
}

int oribi__compress_write(struct oribi__exchange *exchange, const struct iovec *vec, size_t count, int64_t total)
{
    struct oribi__coder *coder = exchange->coder;
    if (coder->left >= 0 && total > coder->left) {
        if (!exchange->cut)
            oribi__log_app(exchange, "body is longer than its Content-Length: cut");
        exchange->cut = true;
        total = coder->left;
    }
    if (total == 0)
        return 0;
    if (coder->left >= 0)
        coder->left -= total;
    struct cursor cursor = {vec, 0, total};
    struct iovec burst;
    int result = 0;
    oribi__enter(exchange->worker);
    bool gathered = gather(exchange, &cursor, &burst, &result);
    oribi__leave(exchange->worker);
    if (gathered)
        return result;
    int code = burst.iov_len == 0 ? 0
                                  : oribi_compressor_write(coder->compressor, burst.iov_base, burst.iov_len,
                                                           ORIBI_COMPRESS_GO_ON, &coder->out);
    while (code == 0 && cursor.left > 0 && result >= 0) {
        struct iovec piece = next_piece(&cursor);
        code = oribi_compressor_write(coder->compressor, piece.iov_base, piece.iov_len,
                                      cursor.left > 0 ? ORIBI_COMPRESS_GO_ON : ORIBI_COMPRESS_FLUSH, &coder->out);
        if (code == 0 && coder->out.len > 0)
            result = pass_on(exchange);
    }
    if (code == 0)
        return result;
    oribi__enter(exchange->worker);
    result = fail(exchange, code);
    oribi__leave(exchange->worker);
    return result;
}

int oribi__compress_end(struct oribi__exchange *exchange, struct iovec *last)
{
    struct oribi__coder *coder = exchange->coder;
    if (coder->left > 0) {
        oribi__log_app(exchange, "body is %lld bytes shorter than its Content-Length: connection cut",
                       (long long)coder->left);
        return ORIBI_EAPP;
    }
    oribi__enter(exchange->worker);
    struct iovec burst = take_burst(exchange);
    bool broken = exchange->base.conn->broken;
    oribi__leave(exchange->worker);
    if (broken) /* also by a compressor that has failed: the end finds it so */
        return 0;
    int result =
        oribi_compressor_write(coder->compressor, burst.iov_base, burst.iov_len, ORIBI_COMPRESS_END, &coder->out);
    if (result < 0) {
        log_failed(exchange, result);
        return ORIBI_EAPP;
    }
    *last = (struct iovec){coder->out.p, coder->out.len};
    return 0;
}

/* ---- requests, options ---- */

void oribi__compress_request(struct oribi__exchange *exchange)
{
    struct oribi_head *head = &exchange->base.head;
    for (uint32_t i = 0; i < head->field_count; i++) {
        struct oribi_field *field = &head->fields[i];
        if (field->id != ORIBI_FIELD_IF_NONE_MATCH)
            continue;
        struct oribi_slice value = oribi_slice(field->value, field->value_len);
        char *room = exchange->thread->none_match;
        size_t n = oribi_compress_expand_tags(value, room, ORIBI_COMPRESS_EXPANDED_BYTES_MAX);
        if (n == 0)
            return;
        exchange->none_match = value;
        field->value = room;
        field->value_len = (uint32_t)n;
        return;
    }
}

struct oribi__compression *oribi__compression_create(const struct oribi_options *options)
{
    struct oribi_compress_rules rules;
    char ignored[ORIBI_ERROR_TEXT_CAP];
    if (oribi_options_compress_rules(options, &rules, ignored) < 0 || rules.offered_count == 0)
        return NULL;
    struct oribi__compression *compression = oribi_mem_alloc(1, sizeof(*compression));
    compression->rules = rules;
    compression->level = options->compress_level;
    return compression;
}

void oribi__compression_destroy(struct oribi__compression *compression)
{
    if (!compression)
        return;
    for (int coding = 0; coding < ORIBI_CODING_COUNT; coding++)
        while (compression->kept[coding]) {
            struct oribi__coder *coder = compression->kept[coding];
            compression->kept[coding] = coder->next;
            destroy_coder(coder);
        }
    oribi_mem_free(compression);
}
